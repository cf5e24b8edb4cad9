"""What runs the parts of a study: threads of this process, or workers of Dask on this machine, Slurm or elsewhere."""

from __future__ import annotations

import concurrent.futures
import importlib
import logging
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any, Protocol

from .stores import SweepError

#: Seconds without any worker after which a person is told.
PATIENCE = 30
#: Seconds between questions to a scheduler for its workers.
COUNTED = 5
#: Seconds that Slurm may take to say whether it takes a job.
ANSWERED = 60
#: A job of Slurm, unless the user's jobqueue.yaml says what it is.
JOB = {"cores": 1, "memory": "2GB"}
#: Engines, and what each needs besides this package.
ENGINES = {"local": "", "dask": "flowstart[dask]", "slurm": "flowstart[slurm]"}

LOG = logging.getLogger("flowstart")

#: What an engine calls: it returns how many flows failed, and how many seconds it took.
Work = Callable[..., tuple[int, float]]


class EngineError(RuntimeError):
    """Workers that are gone, or that nobody can reach."""


class Engine(Protocol):
    """What runs parts somewhere."""

    def slots(self) -> int:
        """How many parts it can run at once. Workers come and go."""

    def start(self, work: Work, arguments: tuple[Any, ...]) -> Any:
        """Begins a call with these arguments."""

    def wait(self, running: set[Any]) -> set[Any]:
        """Waits about a second until at least one is done, and returns those that are."""

    def result(self, one: Any) -> tuple[int, float]:
        """The result of one that is done; forgets it."""

    def close(self) -> None:
        """Ends workers, without waiting for what they do."""


class Local:
    """Threads of this process: a piece runs without the interpreter's lock."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)

    def slots(self) -> int:
        return self._workers

    def start(self, work: Work, arguments: tuple[Any, ...]) -> Any:
        return self._pool.submit(work, *arguments)

    def wait(self, running: set[Any]) -> set[Any]:
        first = concurrent.futures.FIRST_COMPLETED
        return concurrent.futures.wait(running, timeout=1, return_when=first).done

    def result(self, one: Any) -> tuple[int, float]:
        result: tuple[int, float] = one.result()
        return result

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Dask:
    """Workers of Dask: of this machine, of Slurm, or of a scheduler that is there already."""

    def __init__(self, engine: str, workers: int | None, scheduler: str | None) -> None:
        self._engine, self._workers = engine, workers
        self._distributed = self._module("distributed")
        self._cluster: Any = None
        self._slots, self._counted = 0, float("-inf")
        self._idle = time.monotonic()
        if scheduler is not None:
            try:
                self._client = self._distributed.Client(scheduler, timeout=10)
            except (OSError, ValueError) as error:
                raise SweepError(f"scheduler `{scheduler}`: {error}") from error
            return
        if engine == "slurm":
            self._cluster = self._slurm()
        else:
            self._cluster = self._distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
            )
        self._client = self._distributed.Client(self._cluster)

    def _module(self, name: str) -> Any:
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise SweepError(f"engine `{self._engine}`: needs {name}: pip install {ENGINES[self._engine]}") from error

    def _slurm(self) -> Any:
        made = self._module("dask_jobqueue").SLURMCluster
        submit = getattr(getattr(made, "job_cls", None), "submit_command", None)
        if submit is not None and shutil.which(submit) is None:
            raise SweepError(f"engine `slurm`: there is no {submit} here; begin where Slurm takes jobs")
        said = self._module("dask").config.get("jobqueue.slurm", None) or {}
        try:
            cluster = made(**({} if any(said.get(name) for name in JOB) else JOB))
        except (ValueError, TypeError) as error:
            raise SweepError(f"engine `slurm`: jobqueue.yaml: {error}") from error
        if submit is not None:
            try:
                _taken(submit, cluster.job_script())
            except SweepError:
                cluster.close(timeout=5)
                raise
        return cluster

    def slots(self) -> int:
        now = time.monotonic()
        if now - self._counted > COUNTED:
            if self._engine == "slurm":
                # Jobs end with their time limit; in place of those that ended come others.
                self._cluster.scale(self._workers)
            self._slots, self._counted = sum(self._asked(self._client.nthreads).values()), now
            if self._slots:
                self._idle = now
            elif now - self._idle > PATIENCE:
                LOG.warning("engine `%s`: no workers for %s seconds; it waits for them", self._engine, PATIENCE)
                # Said once, until there were some.
                self._idle = float("inf")
        return self._slots

    def _asked(self, what: Callable[[], Any]) -> Any:
        try:
            return what()
        except (ValueError, OSError, RuntimeError, self._distributed.TimeoutError):
            raise
        except Exception as error:
            # KilledWorker, what was cancelled because its scheduler is gone, and whatever else Dask has.
            raise EngineError(f"engine `{self._engine}`: {type(error).__name__}: {error}") from error

    def start(self, work: Work, arguments: tuple[Any, ...]) -> Any:
        # Its name has no meaning: what is in the store is not asked for again.
        return self._asked(lambda: self._client.submit(work, *arguments, pure=False, retries=2))

    def wait(self, running: set[Any]) -> set[Any]:
        try:
            waited = self._asked(lambda: self._distributed.wait(running, timeout=1, return_when="FIRST_COMPLETED"))
        except (TimeoutError, self._distributed.TimeoutError):
            return set()
        done: set[Any] = waited.done
        return done

    def result(self, one: Any) -> tuple[int, float]:
        result: tuple[int, float] = self._asked(one.result)
        # The scheduler would compute what it holds again when its worker dies.
        one.release()
        return result

    def close(self) -> None:
        self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close(timeout=5)


def _taken(submit: str, script: str) -> None:
    """Refuses jobs that Slurm would refuse: Dask would say so in its log, and wait for ever."""
    command = [submit, "--test-only"]
    try:
        asked = subprocess.run(command, input=script, capture_output=True, text=True, timeout=ANSWERED, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise SweepError(f"engine `slurm`: {error}") from error
    if asked.returncode != 0:
        lines = asked.stderr.strip().splitlines() or [f"{submit} ended with {asked.returncode}"]
        raise SweepError(f"engine `slurm`: {lines[0]}")
