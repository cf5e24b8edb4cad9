"""Studies on several workers: nothing is lost, nothing is there twice, and the results are those of one process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import flowstart
from flowstart import engines, sweeps

from test_flowstart import needed

TEXT = (
    "link = ['lte', 'dsl-fast']\nsize = ['70KB']\nscheme = ['slow-start', 'jump-start']\n"
    "competitor = ['cubic']\nreps = 4\n"
)
SMALL = (
    "link = ['dsl-fast']\nsize = ['10KB']\nscheme = ['slow-start', 'jump-start']\ncompetitor = ['none']\nreps = 2\n"
)
LONG = (
    "link = ['dsl-fast']\nsize = ['10MB']\nscheme = ['slow-start', 'jump-start', 'suss', 'blitzstart']\n"
    "competitor = ['cubic']\nreps = 16\n"
)


def dies(*_: object) -> tuple[int, float]:
    """A part that its worker does not survive."""
    os._exit(1)


class Sweep(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.study = self.folder / "study.toml"
        self.study.write_text(TEXT)
        self.store = self.folder / "store"

    def parts(self) -> list[str]:
        return sorted(name for name in os.listdir(self.store) if not name.startswith("_"))

    def test_the_rows_are_those_of_run(self) -> None:
        whole = flowstart.run(self.study)
        joined = flowstart.sweep(self.study, store=self.store, workers=2, out=self.folder / "joined")
        self.assertEqual(joined.flows.to_dicts(), whole.flows.to_dicts())
        self.assertEqual((joined.answer, joined.summary), (whole.answer, whole.summary))
        self.assertEqual(len(self.parts()), 8)
        self.assertTrue((self.folder / "joined" / "report.html").exists())
        flowstart.run(self.study, out=self.folder / "run")
        for name in ["flows.csv", "flows.parquet", "summary.json"]:
            own, other = [(self.folder / folder / name).read_bytes() for folder in ("joined", "run")]
            self.assertEqual(own, other, name)

    def test_batches_are_the_same_rows_in_fewer_parts(self) -> None:
        whole = flowstart.run(self.study)
        joined = flowstart.sweep(self.study, store=self.store, batch=2)
        self.assertEqual(joined.flows.to_dicts(), whole.flows.to_dicts())
        self.assertEqual(len(self.parts()), 4)

    def test_what_is_in_the_store_is_not_run_again(self) -> None:
        flowstart.sweep(self.study, store=self.store)
        before = {name: (self.store / name).stat().st_mtime_ns for name in self.parts()}
        with self.assertRaisesRegex(ValueError, "holds parts of this study; resume goes on"):
            flowstart.sweep(self.study, store=self.store)
        gone = self.parts()[3]
        (self.store / gone).unlink()
        more = flowstart.sweep(self.study, store=self.store, resume=True, reps=6)
        self.assertEqual(more.flows.to_dicts(), flowstart.run(self.study, reps=6).flows.to_dicts())
        after = {name: (self.store / name).stat().st_mtime_ns for name in self.parts()}
        self.assertEqual(len(after), 12)
        self.assertEqual([name for name in before if after[name] != before[name]], [gone])

    def test_repetitions_are_added_until_it_is_precise(self) -> None:
        whole = flowstart.run(self.study, precision=0.05, max_reps=60)
        joined = flowstart.sweep(self.study, store=self.store, precision=0.05, max_reps=60)
        self.assertEqual(joined.flows.to_dicts(), whole.flows.to_dicts())
        self.assertGreater(len(joined.flows), 4 * 4)

    def test_stores_of_others_and_bad_input_are_refused(self) -> None:
        flowstart.sweep(self.study, store=self.store)
        self.study.write_text(TEXT.replace("70KB", "80KB"))
        with self.assertRaisesRegex(ValueError, "parts are of another study"):
            flowstart.sweep(self.study, store=self.store, resume=True)
        self.study.write_text(TEXT)
        about = self.store / "_study.json"
        known = json.loads(about.read_text())
        about.write_text(json.dumps({**known, "build": "0.0.1 (000)"}))
        with self.assertRaisesRegex(ValueError, r"parts are of another flowstart \(build 0\.0\.1"):
            flowstart.sweep(self.study, store=self.store, resume=True)
        for text in ["[", "[]", "{}", "null"]:
            about.write_text(text)
            with self.assertRaisesRegex(ValueError, "is not that of a sweep"):
                flowstart.sweep(self.study, store=self.store, resume=True)
        about.write_text("")
        with self.assertRaisesRegex(ValueError, "is not that of a sweep"):
            flowstart.sweep(self.study, store=self.store)
        about.write_text(" " * 100_000)
        with self.assertRaisesRegex(ValueError, "longer than 65536 bytes"):
            flowstart.sweep(self.study, store=self.store)
        about.unlink()
        with self.assertRaisesRegex(ValueError, r"holds \S+\.parquet, and no _study\.json says whose it is"):
            flowstart.sweep(self.study, store=self.store)
        about.write_text(json.dumps(known))
        for arguments, message in [
            ({"engine": "ray"}, "engine `ray`: allowed is local, dask, slurm"),
            ({"workers": 0}, "workers `0`: allowed is 1 to 10000"),
            ({"batch": 3}, "batch `3`: allowed is a part of the 4 repetitions"),
            ({"scheduler": "tcp://127.0.0.1:1"}, "only engine dask has one"),
            ({"engine": "dask", "scheduler": "tcp://127.0.0.1:1", "workers": 2}, "the scheduler has its own"),
            ({"engine": "slurm"}, "workers: engine slurm needs their number"),
            ({"reps": 0}, "reps `0`"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                flowstart.sweep(self.study, store=self.folder / "other", **arguments)  # type: ignore[arg-type]
        file = self.folder / "file"
        file.write_text("")
        with self.assertRaisesRegex(ValueError, "store"):
            flowstart.sweep(self.study, store=file)

    def test_a_part_appears_whole(self) -> None:
        store = sweeps.Store(str(self.folder))
        store.write("part", b"one")
        store.write("part", b"two")
        self.assertEqual(store.read("part"), b"two")
        self.assertIsNone(store.read("other"))
        store.write("empty", b"")
        self.assertEqual(store.read("empty"), b"")
        (self.folder / "folder").mkdir()
        full = mock.patch("os.fsync", side_effect=OSError(28, "No space left on device"))
        with full, self.assertRaisesRegex(ValueError, "No space left on device"):
            store.write("third", b"three")
        with self.assertRaisesRegex(ValueError, "directory"):
            store.write("folder", b"four")
        self.assertEqual([file.name for file in store.files() if file.name.startswith("_")], [])

    def test_of_two_that_create_a_file_one_does(self) -> None:
        stores = [sweeps.Store(str(self.folder)) for _ in range(2)]
        created = [store.create("_study.json", text) for store, text in zip(stores, [b"1", b"2"])]
        self.assertEqual(created, [True, False])
        self.assertEqual(stores[1].read("_study.json"), b"1")
        without_links = mock.patch("os.link", side_effect=PermissionError(1, "no links here"))
        with without_links:
            self.assertEqual([store.create("other", text) for store, text in zip(stores, [b"3", b"4"])], [True, False])
        self.assertEqual(stores[1].read("other"), b"3")
        self.assertEqual(sorted(os.listdir(self.folder)), ["_study.json", "other", "study.toml"])

    def test_of_two_clients_that_begin_at_once_one_is_refused(self) -> None:
        read = sweeps.Store.read
        # The other one begins after this one looked.
        late = iter([None])

        def first(store: sweeps.Store, name: str, most: int | None = None) -> bytes | None:
            if next(late, "began") is None:
                flowstart.sweep(self.study, store=self.store, batch=2)
                return None
            return read(store, name, most)

        with mock.patch.object(sweeps.Store, "read", first):
            problem = r"holds \S+\.parquet|parts are of other parts \(batch 2, this is 1\)"
            with self.assertRaisesRegex(ValueError, problem):
                flowstart.sweep(self.study, store=self.store)
        self.assertEqual(len(self.parts()), 4)

    def test_of_two_that_both_saw_an_empty_store_one_is_refused(self) -> None:
        self.study.write_text(SMALL)
        create = sweeps.Store.create

        def later(store: sweeps.Store, name: str, content: bytes) -> bool:
            # The other one's file is there, and none of its parts.
            self.assertTrue(create(store, name, content))
            return create(store, name, content)

        with mock.patch.object(sweeps.Store, "create", later):
            with self.assertRaisesRegex(ValueError, "another client has just begun with it"):
                flowstart.sweep(self.study, store=self.store)
        self.assertEqual(self.parts(), [])
        with self.assertRaisesRegex(ValueError, r"parts are of other parts \(batch 1, this is 2\)"):
            flowstart.sweep(self.study, store=self.store, batch=2)
        # Nobody has to resume what left nothing.
        flowstart.sweep(self.study, store=self.store)
        self.assertEqual(len(self.parts()), 2)

    def test_what_is_no_part_is_refused_by_name(self) -> None:
        self.study.write_text(SMALL)
        flowstart.sweep(self.study, store=self.store)
        one, other = self.parts()[:2]
        kept = (self.store / one).read_bytes()

        def refused(name: str, message: str) -> None:
            with self.subTest(name), self.assertRaisesRegex(ValueError, message):
                flowstart.sweep(self.study, store=self.store, resume=True)

        (self.store / one).unlink()
        (self.store / one).mkdir()
        refused("folder", f"{one} is not a file; remove it")
        (self.store / one).rmdir()
        (self.store / one).symlink_to(self.store / other)
        refused("link", f"{one} is not a file")
        (self.store / one).unlink()
        if hasattr(os, "mkfifo"):
            os.mkfifo(self.store / one)
            refused("pipe", f"{one} is not a file")
            (self.store / one).unlink()
            about = (self.store / "_study.json").read_bytes()
            (self.store / "_study.json").unlink()
            os.mkfifo(self.store / "_study.json")
            refused("pipe of the study", "_study.json is not a file")
            (self.store / "_study.json").unlink()
            (self.store / "_study.json").write_bytes(about)
        for name, message in [
            ("joined.parquet", "joined.parquet is not a part of this study"),
            ("0" * 16 + one[16:], "is not a part of this study"),
            (one.replace("-0001.", "-0002."), "is of batch 2, this is 1"),
        ]:
            (self.store / name).write_bytes(kept)
            refused(name, message)
            (self.store / name).unlink()
        (self.store / "README.txt").write_text("parts of my study")
        flowstart.sweep(self.study, store=self.store, resume=True)

    def test_a_damaged_part_runs_again(self) -> None:
        self.study.write_text(SMALL)
        whole = flowstart.sweep(self.study, store=self.store).flows.to_dicts()
        part = self.store / self.parts()[1]
        kept = part.read_bytes()
        within = b"PAR1" + b"\0" * (len(kept) - 40) + kept[-36:]
        for damaged in [b"", kept[:100], kept[: len(kept) // 2] + b"PAR1", kept[:-1], b"x" * len(kept), within]:
            part.write_bytes(damaged)
            with self.subTest(damaged[:8]), self.assertLogs("flowstart") as said:
                again = flowstart.sweep(self.study, store=self.store, resume=True)
            self.assertIn(part.name, said.output[0])
            self.assertEqual(again.flows.to_dicts(), whole)
            self.assertEqual(part.read_bytes(), kept)

    def test_a_store_that_loses_what_is_written_ends_the_sweep(self) -> None:
        self.study.write_text(SMALL)
        write = sweeps.Store.write

        def cut(store: sweeps.Store, name: str, content: bytes) -> None:
            write(store, name, content[:50] if name.endswith(".parquet") else content)

        with mock.patch.object(sweeps.Store, "write", cut):
            with self.assertRaisesRegex(ValueError, r"\S+-0001\.parquet was written, and is not rows in Parquet"):
                flowstart.sweep(self.study, store=self.store)

    def test_what_killed_workers_left_is_removed(self) -> None:
        self.study.write_text(SMALL)
        flowstart.sweep(self.study, store=self.store)
        part = self.parts()[0]
        old = [f"_{part}.4242.77", f"_{part}.{time.time_ns() - 3600 * 10**9}.00ff"]
        new = f"_{part}.{time.time_ns()}.00ff"
        for name in [*old, new, "_notes.1.2"]:
            (self.store / name).write_bytes(b"PAR1")
        flowstart.sweep(self.study, store=self.store, resume=True)
        left = sorted(name for name in os.listdir(self.store) if name.startswith("_"))
        self.assertEqual(left, sorted(["_notes.1.2", "_study.json", "_study.toml", new]))

    def test_no_part_is_read_twice(self) -> None:
        reads: list[str] = []
        read = sweeps.Store.read

        def told(store: sweeps.Store, name: str, most: int | None = None) -> bytes | None:
            reads.append(name)
            return read(store, name, most)

        with mock.patch.object(sweeps.Store, "read", told):
            joined = flowstart.sweep(self.study, store=self.store, precision=0.05, max_reps=60)
        self.assertGreater(len(joined.flows), 4 * 4)
        of_parts = [name for name in reads if name.endswith(".parquet")]
        self.assertEqual(sorted(of_parts), self.parts())

    def test_the_rate_is_that_of_the_round(self) -> None:
        lines: list[str] = []
        with mock.patch("time.monotonic", return_value=100.0) as now:
            told = sweeps.Told(lines.append)
            # What starts the workers takes no part.
            now.return_value = 110.0
            told.begins(40)
            now.return_value = 120.0
            told.done, told.known = 30, 10
            told.now()
            now.return_value = 200.0
            told.begins(80)
            now.return_value = 210.0
            told.done, told.known = 60, 40
            told.now(idle=True)
        self.assertEqual(lines, ["30 of 40 pieces, 2.0/s, 5 s left", "60 of 80 pieces, 2.0/s, 10 s left, no workers"])

    def test_a_million_runs_begin_at_once(self) -> None:
        self.study.write_text(
            "link = ['lte']\nsize = ['70KB']\nscheme = ['slow-start', 'jump-start', 'suss', 'search', 'hystart',\n"
            "'blitzstart', 'halfback', 'more-start', 'initial-start', 'rapid-start']\nreps = 100000\n"
        )
        began = time.perf_counter()
        study = flowstart.Study.read(self.study)
        self.assertEqual(study.runs, 1_000_000)
        first = next(sweeps.parts(study, 100))
        self.assertEqual(first.pieces, range(0, 100))
        self.assertLess(time.perf_counter() - began, 10)

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        # A session of its own, so that a signal reaches it and its workers.
        return subprocess.Popen(
            [sys.executable, "-m", "flowstart.sweeps", str(self.study), "--store", str(self.store), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_parts(self, number: int, process: subprocess.Popen[str]) -> None:
        for _ in range(600):
            if self.store.is_dir() and len(self.parts()) >= number:
                return
            if process.poll() is not None:
                self.fail(f"it ended: {process.communicate()}")
            time.sleep(0.1)
        self.fail("no parts appear")

    def test_the_command_answers_and_can_be_interrupted(self) -> None:
        self.study.write_text(LONG)
        process = self.command("--workers", "1")
        self.wait_for_parts(2, process)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("--resume goes on", said)
        kept = self.parts()
        self.assertTrue(2 <= len(kept) < 16, kept)
        times = {name: (self.store / name).stat().st_mtime_ns for name in kept}
        output, said = self.command("--resume").communicate(timeout=300)
        self.assertIn("slow-start", output + said)
        self.assertEqual({name: (self.store / name).stat().st_mtime_ns for name in kept}, times)
        whole = flowstart.run(self.study)
        self.assertEqual(output.strip(), whole.answer)

    def test_the_command_says_what_is_wrong(self) -> None:
        self.study.write_text(TEXT + "schem = []\n")
        process = self.command()
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("study.toml line 6", said)


class Renamed(unittest.TestCase):
    """A store in which a file grows under its name: SFTP, as a file system in memory with its protocols."""

    def test_parts_are_renamed_when_they_are_whole(self) -> None:
        fsspec = needed("fsspec")
        memory = needed("fsspec.implementations.memory")
        made: list[str] = []
        threads: dict[int, set[int]] = {}

        class Server(memory.MemoryFileSystem):  # type: ignore[misc, name-defined]
            protocol = ("grows", "grows-too")
            store: dict[str, object] = {}
            pseudo_dirs = [""]
            full = False

            def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
                made.append(path)
                threads.setdefault(id(self), set()).add(threading.get_ident())
                super().pipe_file(path, value[:7] if Server.full else value, mode=mode, **kwargs)
                if Server.full:
                    raise OSError(28, "No space left on device")

            def mv(self, old: str, new: str, **kwargs: object) -> None:
                if self.exists(new):
                    raise FileExistsError(new)
                super().mv(old, new, **kwargs)

        fsspec.register_implementation("grows", Server, clobber=True)
        fsspec.register_implementation("grows-too", Server, clobber=True)
        with tempfile.TemporaryDirectory() as folder:
            study = pathlib.Path(folder) / "study.toml"
            study.write_text(SMALL)
            joined = flowstart.sweep(study, store="grows://parts", workers=2)
            # Connections are not for several threads.
            self.assertGreater(len(threads), 1)
            self.assertEqual({len(of_one) for of_one in threads.values()}, {1})
            self.assertEqual(joined.flows.to_dicts(), flowstart.run(study).flows.to_dicts())
            self.assertEqual([path for path in made if "/_" not in path], [])
            store = sweeps.Store("grows://parts")
            names = sorted(file.name for file in store.files())
            self.assertEqual(len(names), 4, names)
            part = next(name for name in names if name.endswith(".parquet"))
            store.write(part, b"the same part again")
            self.assertEqual(store.read(part), b"the same part again")
            with self.assertLogs("flowstart"):
                again = flowstart.sweep(study, store="grows://parts", workers=1, resume=True)
            self.assertEqual(again.flows.to_dicts(), joined.flows.to_dicts())
            self.assertEqual([store.create("_new.json", text) for text in (b"1", b"2")], [True, False])
            Server.full = True
            with self.assertRaisesRegex(ValueError, "No space left on device"):
                store.write("other", b"content")
            self.assertEqual(sorted(file.name for file in store.files()), sorted([*names, "_new.json"]))

    def test_a_file_of_this_machine_is_a_folder(self) -> None:
        needed("fsspec")
        with tempfile.TemporaryDirectory() as folder:
            store = sweeps.Store(f"file://{folder}")
            store.write("part", b"one")
            self.assertEqual((pathlib.Path(folder) / "part").read_bytes(), b"one")
            self.assertTrue(store.create("_study.json", b"{}"))


class OnDask(Sweep):
    """The same with workers of Dask."""

    # What does not depend on the engine is tested once.
    test_of_two_that_create_a_file_one_does = None  # type: ignore[assignment]
    test_of_two_clients_that_begin_at_once_one_is_refused = None  # type: ignore[assignment]
    test_of_two_that_both_saw_an_empty_store_one_is_refused = None  # type: ignore[assignment]
    test_what_is_no_part_is_refused_by_name = None  # type: ignore[assignment]
    test_a_damaged_part_runs_again = None  # type: ignore[assignment]
    test_a_store_that_loses_what_is_written_ends_the_sweep = None  # type: ignore[assignment]
    test_what_killed_workers_left_is_removed = None  # type: ignore[assignment]
    test_no_part_is_read_twice = None  # type: ignore[assignment]
    test_the_rate_is_that_of_the_round = None  # type: ignore[assignment]
    test_stores_of_others_and_bad_input_are_refused = None  # type: ignore[assignment]
    test_a_part_appears_whole = None  # type: ignore[assignment]
    test_a_million_runs_begin_at_once = None  # type: ignore[assignment]
    test_the_command_says_what_is_wrong = None  # type: ignore[assignment]
    test_the_command_answers_and_can_be_interrupted = None  # type: ignore[assignment]
    test_batches_are_the_same_rows_in_fewer_parts = None  # type: ignore[assignment]
    test_what_is_in_the_store_is_not_run_again = None  # type: ignore[assignment]
    test_repetitions_are_added_until_it_is_precise = None  # type: ignore[assignment]

    def setUp(self) -> None:
        needed("distributed")
        super().setUp()

    def test_the_rows_are_those_of_run(self) -> None:
        whole = flowstart.run(self.study)
        joined = flowstart.sweep(self.study, store=self.store, engine="dask", workers=2)
        self.assertEqual(joined.flows.to_dicts(), whole.flows.to_dicts())

    def test_workers_that_die_end_the_command_in_a_sentence(self) -> None:
        self.study.write_text(SMALL)
        said = io.StringIO()
        config = needed("dask").config.set({"distributed.scheduler.allowed-failures": 0})
        arguments = [str(self.study), "--store", str(self.store), "--engine", "dask", "--workers", "1"]
        with config, mock.patch.object(sweeps, "_run", dies), contextlib.redirect_stderr(said):
            self.assertEqual(sweeps.main(arguments), 1)
        self.assertIn("flowstart-sweep: engine `dask`: KilledWorker: Attempted to run task", said.getvalue())

    def test_a_scheduler_has_its_own_workers_and_is_waited_for(self) -> None:
        self.study.write_text(SMALL)
        distributed = needed("distributed")
        lines: list[str] = []
        patience = mock.patch.multiple(engines, PATIENCE=0, COUNTED=0)
        with distributed.LocalCluster(n_workers=0, threads_per_worker=2, dashboard_address=None) as cluster:

            def told(line: str) -> None:
                lines.append(line)
                if "no workers" in line:
                    cluster.scale(1)

            asked = {"engine": "dask", "scheduler": cluster.scheduler_address, "progress": told}
            with patience, self.assertLogs("flowstart") as said:
                joined = flowstart.sweep(self.study, store=self.store, **asked)  # type: ignore[arg-type]
        self.assertEqual(joined.flows.to_dicts(), flowstart.run(self.study).flows.to_dicts())
        self.assertIn("engine `dask`: no workers for 0 seconds; it waits for them", said.output[0])
        self.assertEqual(lines[0], "0 of 2 pieces, 0.0/s, no workers")

    def slurm(self, **known: object) -> tuple[list[dict[str, object]], list[int]]:
        """A sweep with a cluster that has the signature of Slurm's; what it was made with, and how often scaled."""
        distributed = needed("distributed")
        made: list[dict[str, object]] = []
        scaled: list[int] = []

        class SLURMCluster(distributed.LocalCluster):  # type: ignore[misc, name-defined]
            def __init__(self, **given: object) -> None:
                made.append(given)
                super().__init__(n_workers=0, threads_per_worker=1, dashboard_address=None, memory_limit=0)

            def scale(self, n: int) -> None:
                scaled.append(n)
                super().scale(n)

        module = types.ModuleType("dask_jobqueue")
        module.SLURMCluster = SLURMCluster  # type: ignore[attr-defined]
        config = needed("dask").config.set({"jobqueue.slurm": known})
        with config, mock.patch.dict(sys.modules, {"dask_jobqueue": module}):
            joined = flowstart.sweep(self.study, store=self.store, engine="slurm", workers=2)
        self.assertEqual(joined.flows.to_dicts(), flowstart.run(self.study).flows.to_dicts())
        return made, scaled

    def test_slurm_has_the_jobs_that_the_user_describes(self) -> None:
        self.study.write_text(SMALL)
        made, scaled = self.slurm(cores=8, memory="16GB", queue="long")
        self.assertEqual(made, [{}])
        # A cluster that is closed has none.
        self.assertEqual(set(scaled) - {0}, {2})

    def test_slurm_has_small_jobs_unless_the_user_describes_them(self) -> None:
        self.study.write_text(SMALL)
        made, _ = self.slurm(cores=None, memory=None)
        self.assertEqual(made, [{"cores": 1, "memory": "2GB"}])

    def test_slurm_is_missing_where_it_is_missing(self) -> None:
        needed("dask_jobqueue")
        with mock.patch("shutil.which", return_value=None):
            with self.assertRaisesRegex(ValueError, "engine `slurm`: there is no sbatch here"):
                flowstart.sweep(self.study, store=self.store, engine="slurm", workers=1)
        with mock.patch.dict(sys.modules, {"dask_jobqueue": None}):
            with self.assertRaisesRegex(ValueError, "engine `slurm`: needs dask_jobqueue: pip install"):
                flowstart.sweep(self.study, store=self.folder / "other", engine="slurm", workers=1)

    def workers_of(self, process: subprocess.Popen[str]) -> list[int]:
        """The processes that Dask started; the last ones are workers."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                command = (entry / "cmdline").read_bytes()
                session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
                if session == process.pid and b"spawn_main" in command:
                    found.append(int(entry.name))
        return sorted(found)

    @unittest.skipUnless(sys.platform == "linux", "finds workers in /proc")
    def test_a_killed_worker_is_replaced(self) -> None:
        self.study.write_text(LONG)
        process = self.command("--engine", "dask", "--workers", "2")
        self.wait_for_parts(3, process)
        workers = self.workers_of(process)
        self.assertGreaterEqual(len(workers), 2)
        os.kill(workers[-1], signal.SIGKILL)
        output, said = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(output.strip(), flowstart.run(self.study).answer)
        self.assertEqual(len(self.parts()), 16)

    @unittest.skipUnless(sys.platform == "linux", "kills a session")
    def test_after_everything_was_killed_it_goes_on(self) -> None:
        self.study.write_text(LONG)
        process = self.command("--engine", "dask", "--workers", "2")
        self.wait_for_parts(5, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        # Workers have sessions of their own on some systems, and end when their scheduler is gone.
        time.sleep(1)
        kept = {name: (self.store / name).stat().st_mtime_ns for name in self.parts()}
        joined = flowstart.sweep(self.study, store=self.store, engine="dask", workers=2, resume=True)
        again = [name for name, time_ns in kept.items() if (self.store / name).stat().st_mtime_ns != time_ns]
        self.assertEqual(again, [])
        self.assertEqual(joined.flows.to_dicts(), flowstart.run(self.study).flows.to_dicts())
        self.assertEqual(len(self.parts()), 16)


class Objects(unittest.TestCase):
    """A store of objects: S3, as moto has it."""

    def test_the_rows_are_those_of_run(self) -> None:
        server = needed("moto.server")
        needed("s3fs")
        boto3 = needed("boto3")
        moto = server.ThreadedMotoServer(port=0)
        with contextlib.redirect_stderr(io.StringIO()):
            moto.start()
        self.addCleanup(moto.stop)
        host, port = moto.get_host_and_port()
        known = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        address = f"http://{host}:{port}"
        os.environ.update(known, AWS_ENDPOINT_URL=address, FSSPEC_S3_ENDPOINT_URL=address)
        boto3.client("s3").create_bucket(Bucket="sweeps")
        with tempfile.TemporaryDirectory() as folder:
            study = pathlib.Path(folder) / "study.toml"
            study.write_text(TEXT)
            joined = flowstart.sweep(study, store="s3://sweeps/lte", workers=2)
            self.assertEqual(joined.flows.to_dicts(), flowstart.run(study).flows.to_dicts())
            again = flowstart.sweep(study, store="s3://sweeps/lte", workers=2, resume=True)
            self.assertEqual(again.flows.to_dicts(), joined.flows.to_dicts())
            store = sweeps.Store("s3://sweeps/lte")
            self.assertEqual([store.create("_new.json", text) for text in (b"1", b"2")], [True, False])
            self.assertEqual(store.read("_new.json"), b"1")
            # A store that does not know conditions.
            pipe = store._files.pipe_file

            def refuses(path: str, value: bytes, mode: str = "overwrite") -> None:
                if mode == "create":
                    raise NotImplementedError("A header you provided implies functionality that is not implemented")
                pipe(path, value)

            with mock.patch.object(store._files, "pipe_file", refuses):
                self.assertEqual([store.create("_newer.json", text) for text in (b"1", b"2")], [True, False])
            self.assertEqual(store.read("_newer.json"), b"1")

    def test_a_store_that_cannot_be_reached_is_named(self) -> None:
        needed("fsspec")
        for store in ["ftp://127.0.0.1:1/parts", "nonsense://parts"]:
            with self.assertRaisesRegex(ValueError, f"store `{store}`"):
                flowstart.sweep("many-flows", store=store)
        with self.assertRaisesRegex(ValueError, "store `ftp://127.0.0.1:1/parts`"):
            flowstart.sweep("many-flows", store="ftp://user:secret@127.0.0.1:1/parts")


if __name__ == "__main__":
    unittest.main()
