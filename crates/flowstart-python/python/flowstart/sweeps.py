"""A study on many machines: its pieces run on the workers of an engine, and each leaves a part in a store.

A part is the rows of some repetitions of one setting as Parquet. Its name follows from the study, the version, the
setting and the repetitions, and it is written whole or not at all, so a piece that runs twice does no harm. What is in
the store is not run again, unless it is damaged. Names that begin with `_` are not parts.

    flowstart-sweep study.toml --engine dask --workers 8 --store results/sweep --out results/joined
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import logging
import os
import pathlib
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from . import _flowstart
from ._flowstart import Results, Study
from .engines import ENGINES, Dask, Engine, Local
from .stores import Store, SweepError, abandoned

#: The file of a store that says whose parts it has.
ABOUT = "_study.json"
#: The study as a scenario.
SCENARIO = "_study.toml"
#: Longest such file, in bytes.
ABOUT_MOST = 65_536
#: Tasks that wait at the engine for each worker: enough that none is idle.
WAITING = 4
#: The name of a part: its study, its setting, its first repetition, their number.
PART = re.compile(r"(.+)-[0-9]{6,}-[0-9]{6,}-([0-9]{4,})\.parquet")
#: What a file in Parquet begins and ends with. Before the end is the length of its description.
MAGIC = b"PAR1"
#: Bytes of a file in Parquet without description and rows.
LEAST = 2 * len(MAGIC) + 4

LOG = logging.getLogger("flowstart")


@functools.cache
def build() -> str:
    """The version of this package and a hash of its extension module: rows of two builds are not mixed."""
    module = pathlib.Path(str(_flowstart.__file__)).read_bytes()
    return f"{_flowstart.__version__} ({hashlib.sha256(module).hexdigest()[:12]})"


class Part:
    """Some repetitions of one setting."""

    def __init__(self, study: Study, setting: int, reps: range) -> None:
        self.pieces = range(setting * study.reps + reps.start, setting * study.reps + reps.stop)
        self.name = f"{study.identity}-{setting:06}-{reps.start:06}-{len(reps):04}.parquet"
        self.reps = reps
        self.setting = setting


def parts(study: Study, batch: int) -> Iterator[Part]:
    """The parts of a study, in its order. They are made one by one: there may be millions."""
    for setting in range(len(study) // study.reps):
        for first in range(0, study.reps, batch):
            yield Part(study, setting, range(first, min(first + batch, study.reps)))


@functools.lru_cache(maxsize=4)
def _study(text: str, directory: str) -> Study:
    return Study.parse(text, directory=directory)


def _run(
    text: str, directory: str, identity: str, asked: str, setting: int, first: int, count: int, store: Store
) -> tuple[int, float]:
    """On a worker: runs a part and leaves it in the store. Returns its number of failed flows, and its seconds."""
    if build() != asked:
        raise SweepError(f"a worker has flowstart {build()}, the client {asked}; give all the same")
    study = _study(text, directory)
    if study.identity != identity:
        raise SweepError("a worker reads another study: the files that the study names differ there")
    began = time.perf_counter()
    part = Part(study, setting, range(first, first + count))
    rows, failed = study.pieces(part.pieces.start, len(part.pieces))
    store.of_this_thread().write(part.name, rows)
    return failed, time.perf_counter() - began


class Told:
    """What a person sees of a sweep: how much is done, how fast, what failed, and what time is left."""

    def __init__(self, report: Callable[[str], None] | None) -> None:
        self._report, self._began, self._last = report, time.monotonic(), 0.0
        self.done = self.known = self.failed = self.all = 0

    def begins(self, pieces: int) -> None:
        """So many pieces are to be there. Those that are there already count for no rate."""
        self._began, self.all, self.done, self.known = time.monotonic(), pieces, 0, 0

    def now(self, last: bool = False, idle: bool = False) -> None:
        if self._report is None or (not last and time.monotonic() - self._last < 1):
            return
        self._last = time.monotonic()
        ran, spent = self.done - self.known, self._last - self._began
        rate = ran / spent if spent > 0 else 0.0
        left = (self.all - self.done) / rate if rate > 0 else float("inf")
        end = "" if last or left == float("inf") else f", {left:.0f} s left"
        failed = f", {self.failed} flows failed" if self.failed else ""
        waits = ", no workers" if idle else ""
        self._report(f"{self.done} of {self.all} pieces, {rate:.1f}/s{failed}{end}{waits}")


def _checked(study: Study, store: Store, resume: bool, batch: int) -> None:
    """Refuses a store with other parts, and one whose parts nobody asked to go on with."""
    store.prepare()
    about = {"identity": study.identity, "build": build(), "batch": batch}
    known = store.read(ABOUT, ABOUT_MOST)
    begun = False
    if known is None:
        found = _first_part(store)
        if found is not None:
            raise SweepError(f"store `{store.name}`: holds {found}, and no {ABOUT} says whose it is")
        # Two that begin at once have different files, so that each knows whether it is the one.
        if store.create(ABOUT, json.dumps({**about, "client": uuid.uuid4().hex}).encode()):
            store.write(SCENARIO, study.scenario.encode())
            return
        known, begun = store.read(ABOUT, ABOUT_MOST) or b"", True
    try:
        there = {name: json.loads(known)[name] for name in about}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SweepError(f"store `{store.name}`: {ABOUT} is not that of a sweep: {error!r}") from error
    for name, what in [("identity", "of another study"), ("build", "of another flowstart"), ("batch", "of other parts")]:
        if there[name] != about[name]:
            raise SweepError(
                f"store `{store.name}`: its parts are {what} ({name} {there[name]}, this is {about[name]})"
            )
    if not resume and begun:
        raise SweepError(f"store `{store.name}`: another client has just begun with it; resume works with it")
    # One that ended before its first part, as its engine could not start, is not in the way.
    if not resume and _first_part(store) is not None:
        raise SweepError(f"store `{store.name}`: holds parts of this study; resume goes on with them")


def _first_part(store: Store) -> str | None:
    return next((file.name for file in store.files() if file.name.endswith(".parquet")), None)


def _whole(part: bytes) -> bool:
    """Whether a file in Parquet was not cut off."""
    if len(part) < LEAST or not part.startswith(MAGIC) or not part.endswith(MAGIC):
        return False
    described = int.from_bytes(part[-len(MAGIC) - 4 : -len(MAGIC)], "little")
    return LEAST + described <= len(part)


class Sweep:
    """The parts of a study in a store. All that were read stay in memory: they are joined there."""

    def __init__(self, study: Study, store: Store, batch: int, told: Told) -> None:
        self.study = study
        self._store, self._batch, self._told = store, batch, told
        #: Names of parts that the store has; of those that ran in this sweep; and the rows of those that were read.
        self._there: set[str] = set()
        self._ran: set[str] = set()
        self._rows: dict[str, bytes] = {}
        self._complete = False

    def with_reps(self, reps: int) -> None:
        """Goes on with more repetitions."""
        self.study, self._complete = self.study.with_reps(reps), False

    def find(self) -> None:
        """Finds the parts that are there, and removes what killed workers left."""
        damaged = []
        for file in self._store.files():
            if abandoned(file.name):
                self._store.remove(file.name)
            if file.name.startswith("_") or not file.name.endswith(".parquet"):
                continue
            self._expect(file.name, file.plain)
            if file.size is not None and file.size < LEAST:
                damaged.append(file.name)
            else:
                self._there.add(file.name)
        self._again(damaged)

    def _expect(self, name: str, plain: bool) -> None:
        """Refuses what is not a part of this sweep: a query over the store would read it too."""
        part = PART.fullmatch(name)
        if part is None or part[1] != self.study.identity:
            raise SweepError(f"store `{self._store.name}`: {name} is not a part of this study; it belongs elsewhere")
        if int(part[2]) != self._batch:
            raise SweepError(f"store `{self._store.name}`: {name} is of batch {int(part[2])}, this is {self._batch}")
        if not plain:
            raise SweepError(f"store `{self._store.name}`: {name} is not a file; remove it, and resume runs its part")

    def _again(self, damaged: list[str]) -> None:
        """Has parts run once more that are damaged or gone."""
        if not damaged:
            return
        again = next((name for name in damaged if name in self._ran), None)
        if again is not None:
            raise SweepError(f"store `{self._store.name}`: {again} was written, and is not rows in Parquet")
        LOG.warning(
            "store `%s`: %s of its parts %s not rows in Parquet and will run again, the first being %s",
            self._store.name, len(damaged), "is" if len(damaged) == 1 else "are", damaged[0],
        )
        for name in damaged:
            self._complete = False
            self._there.discard(name)
            self._rows.pop(name, None)
            self._store.remove(name)

    def spread(self, engine: Engine) -> None:
        """Runs the parts that the store does not have."""
        self._told.begins(len(self.study))
        study, store = self.study, self._store
        text, directory = study.scenario, str(study.directory)
        missing = parts(study, self._batch)
        running: dict[Any, Part] = {}
        ended = False
        while running or not ended:
            slots = engine.slots()
            while not ended and len(running) < WAITING * max(slots, 1):
                part = next(missing, None)
                if part is None:
                    ended = True
                elif part.name in self._there:
                    self._told.done += len(part.pieces)
                    self._told.known += len(part.pieces)
                else:
                    place = (part.setting, part.reps.start, len(part.reps))
                    running[engine.start(_run, (text, directory, study.identity, build(), *place, store))] = part
            if not running:
                continue
            for one in engine.wait(set(running)):
                part = running.pop(one)
                failed, _ = engine.result(one)
                self._there.add(part.name)
                self._ran.add(part.name)
                self._told.done += len(part.pieces)
                self._told.failed += failed
            self._told.now(idle=slots == 0)
        self._complete = True

    def read(self) -> bool:
        """Reads the parts that were not read before; whether all are whole, so that none has to run again."""
        damaged = []
        for part in parts(self.study, self._batch):
            if part.name not in self._rows:
                rows = self._store.read(part.name)
                if rows is not None and _whole(rows):
                    self._rows[part.name] = rows
                else:
                    damaged.append(part.name)
        self._again(damaged)
        return not damaged

    def joined(self, how: Callable[[list[bytes]], Any]) -> tuple[bool, Any]:
        """What `how` makes of all rows; or nothing, with a part that has to run again."""
        try:
            return True, how(list(self._rows.values()))
        except ValueError as error:
            place = re.match(r"part ([0-9]+) is not rows in Parquet", str(error))
            if place is None:
                raise
            self._again([list(self._rows)[int(place[1])]])
            return False, None

    def whole(self, engine: Engine, how: Callable[[list[bytes]], Any]) -> Any:
        """Runs what is missing, and returns what `how` makes of all rows."""
        while True:
            if not self._complete:
                self.spread(engine)
            if self.read():
                done, made = self.joined(how)
                if done:
                    return made


def sweep(
    study: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str],
    engine: str = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    reps: int | None = None,
    seed: int | None = None,
    precision: float | None = None,
    max_reps: int = 1000,
    batch: int = 1,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Results:
    """Runs a scenario on the workers of an engine, and returns the results that `run` returns.

    Args:
        study: A TOML file, or a name from `list_scenarios`.
        store: Folder or URL of fsspec for the parts, one Parquet file each. All workers have to reach it.
        engine: local (threads of this process), dask or slurm.
        workers: How many; one per core unless given. Engine slurm needs it: so many jobs. A scheduler has its own.
        scheduler: Address of a Dask scheduler that is there already.
        reps: Repetitions of each cell; the scenario's unless given.
        seed: Master seed; the scenario's unless given.
        precision: Add repetitions until this precise, such as 0.01.
        max_reps: Most repetitions of precision.
        batch: Repetitions of a part: more of them where a cell takes milliseconds.
        out: Folder for the joined results and the report.
        resume: Go on with the parts that are in the store.
        progress: Called with a line about once a second.
    """
    if engine not in ENGINES:
        raise SweepError(f"engine `{engine}`: allowed is {', '.join(ENGINES)}")
    if scheduler is not None and engine != "dask":
        raise SweepError("scheduler: only engine dask has one")
    if scheduler is not None and workers is not None:
        raise SweepError("workers: the scheduler has its own")
    if engine == "slurm" and workers is None:
        raise SweepError("workers: engine slurm needs their number; this machine's cores are not those of the jobs")
    count = workers if workers is not None else os.cpu_count() or 1
    for name, value, most in [("workers", count, 10_000), ("batch", batch, 1000)]:
        if not 1 <= value <= most:
            raise SweepError(f"{name} `{value}`: allowed is 1 to {most}")
    asked = Study.read(study, reps=reps, seed=seed)
    if precision is not None:
        asked = asked.first(precision, max_reps)
    if asked.reps % batch or (precision is not None and batch > 1):
        # A shorter last part would be there twice as soon as there are more repetitions.
        raise SweepError(f"batch `{batch}`: allowed is a part of the {asked.reps} repetitions, and 1 with precision")
    # Workers may have another current folder.
    url = os.fspath(store) if "://" in os.fspath(store) else os.path.abspath(store)
    files, told = Store(url), Told(progress)
    _checked(asked, files, resume, batch)
    made = Sweep(asked, files, batch, told)
    made.find()
    running: Engine = Local(count) if engine == "local" else Dask(engine, count, scheduler)
    try:
        while precision is not None:
            more = made.whole(running, lambda rows: made.study.more(rows, precision, max_reps))
            if more is None:
                break
            made.with_reps(more)
        results: Results = made.whole(running, lambda rows: made.study.join(rows, out=out))
    finally:
        running.close()
    told.now(last=True)
    return results


def main(arguments: list[str] | None = None) -> int:
    """`flowstart-sweep`."""
    parser = argparse.ArgumentParser(
        prog="flowstart-sweep",
        description="Run a study on many machines. Parts that are in the store are not run again.",
        epilog="With DuckDB: SELECT scheme, avg(fct_ms) FROM read_parquet('STORE/*.parquet', union_by_name=true) "
        "GROUP BY scheme",
    )
    parser.add_argument("study", metavar="STUDY.toml", help="scenario, or a name from `flowstart list scenarios`")
    parser.add_argument("--store", required=True, metavar="URL", help="folder or URL for the parts")
    parser.add_argument("--engine", default="local", choices=list(ENGINES), help="what runs them (default: local)")
    parser.add_argument("--workers", type=int, metavar="N", help="how many (default: one per core; slurm needs N)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler that is there already")
    parser.add_argument("--reps", type=int, metavar="N", help="repetitions of each cell")
    parser.add_argument("--seed", type=int, metavar="N", help="master seed")
    parser.add_argument("--precision", type=float, metavar="P", help="add repetitions until this precise: 0.01")
    parser.add_argument("--max-reps", type=int, default=1000, metavar="N", help="most of them (default: 1000)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="repetitions of a part (default: 1)")
    parser.add_argument("--out", metavar="DIR", help="folder for the joined results and the report")
    parser.add_argument("--resume", action="store_true", help="go on with the parts that are in the store")
    given = vars(parser.parse_args(arguments))
    on_terminal = sys.stderr.isatty()

    def line(text: str) -> None:
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        results = sweep(given.pop("study"), **given, progress=line if on_terminal else None)
    except KeyboardInterrupt:
        print("\ninterrupted; --resume goes on with what is in the store", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"flowstart-sweep: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"flowstart-sweep: {error}", file=sys.stderr)
        return 1
    if on_terminal:
        print(file=sys.stderr)
    print(results.answer)
    failed = sum(cell["failed"] for cell in results.cells.to_dicts())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
