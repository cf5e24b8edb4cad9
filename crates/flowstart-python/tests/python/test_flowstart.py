"""The functions of the package, and their tables in other libraries."""

from __future__ import annotations

import contextlib
import csv
import importlib
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest

import flowstart
from flowstart import _flowstart

SMALL = {"link": "dsl-fast", "size": "70KB", "scheme": ["slow-start", "blitzstart"], "reps": 3}


def needed(name: str) -> types.ModuleType:
    """A library that not everybody has; CI has it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        raise unittest.SkipTest(f"{name} is not installed") from None


class Compare(unittest.TestCase):
    def test_the_answer_is_a_sentence_about_the_numbers_of_the_cells(self) -> None:
        result = flowstart.compare(**SMALL)
        cells = result.cells.to_dicts()
        self.assertEqual([cell["scheme"] for cell in cells], ["slow-start", "blitzstart"])
        self.assertEqual(cells[0]["speedup"], None)
        speedup = cells[1]["speedup"]
        self.assertAlmostEqual(speedup, cells[0]["fct_ms_mean"] / cells[1]["fct_ms_mean"], places=9)
        self.assertLessEqual(cells[1]["speedup_ci95_low"], speedup)
        self.assertIn(f"{speedup:.1f} times as fast as slow-start", result.answer)
        self.assertEqual(repr(result), result.answer)
        self.assertEqual(result.summary["cells"][1]["vs_baseline"]["speedup"], speedup)
        self.assertEqual(len(result.flows), 6)

    def test_one_value_needs_no_list(self) -> None:
        rows = flowstart.compare(link="lte", size="70KB", scheme="slow-start", reps=1).flows.to_dicts()
        self.assertEqual((rows[0]["size_bytes"], len(rows)), (70_000, 1))

    def test_threads_and_seeds_do_what_they_do_in_the_command(self) -> None:
        one = flowstart.compare(**SMALL, jobs=1, competitor="cubic")
        two = flowstart.compare(**SMALL, jobs=2, competitor="cubic")
        other = flowstart.compare(**SMALL, seed=2, competitor="cubic")
        self.assertEqual(one.flows.to_dicts(), two.flows.to_dicts())
        self.assertNotEqual(one.flows.to_dicts(), other.flows.to_dicts())

    def test_a_folder_gets_what_the_command_writes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "results"
            result = flowstart.compare(**SMALL, out=out)
            names = sorted(file.name for file in out.iterdir() if not file.name.startswith("."))
            self.assertEqual(
                names, ["flows.csv", "flows.parquet", "manifest.json", "report.html", "summary.json"]
            )
            with (out / "flows.csv").open() as file:
                fct = [float(row["fct_ms"]) for row in csv.DictReader(file)]
            self.assertEqual(fct, [row["fct_ms"] for row in result.flows.to_dicts()])
            with self.assertRaisesRegex(ValueError, "out"):
                flowstart.compare(**SMALL, out=out)
            page = result.report(pathlib.Path(folder) / "page.html")
            self.assertIn(result.answer.split(",")[0], page.read_text())

    def test_what_was_interrupted_goes_on(self) -> None:
        class Enough(Exception):
            pass

        def stop(done: int, all_runs: int) -> None:
            self.assertLessEqual(done, all_runs)
            if done >= 4:
                raise Enough

        question = {**SMALL, "reps": 40, "jobs": 1}
        whole = flowstart.compare(**question)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "results"
            with self.assertRaises(Enough):
                flowstart.compare(**question, out=out, progress=stop)
            kept = len((out / "flows.partial.csv").read_text().splitlines())
            self.assertTrue(3 <= kept < 60, kept)
            done: list[int] = []
            resumed = flowstart.compare(
                **question, out=out, resume=True, progress=lambda runs, _: done.append(runs)
            )
            self.assertEqual(resumed.flows.to_dicts(), whole.flows.to_dicts())

    def test_bad_input_names_the_argument_and_what_is_allowed(self) -> None:
        cases: list[tuple[dict[str, object], type[Exception], str]] = [
            ({"lnk": "lte"}, TypeError, r"`lnk` is not known \(did you mean `link`\?\)"),
            ({"size": "2MB", "scheme": "slow-start"}, TypeError, "link is needed"),
            ({**SMALL, "link": "dsl-fst"}, ValueError, "did you mean `dsl-fast`"),
            ({**SMALL, "size": True}, ValueError, r"size `True`: a text is needed"),
            ({**SMALL, "size": []}, ValueError, "size has 0 values; allowed is 1 to 10000"),
            ({**SMALL, "reps": 0}, ValueError, "reps `0`: allowed is 1 to 100000"),
            ({**SMALL, "reps": -1}, ValueError, "reps `-1`: allowed is 0 to 100000"),
            ({**SMALL, "reps": 10**30}, ValueError, "reps"),
            ({**SMALL, "jobs": 10**6}, ValueError, "jobs `1000000`: allowed is 0 to 1024"),
            ({**SMALL, "no_hint": "yes"}, ValueError, "no_hint `'yes'`: allowed is True or False"),
            ({**SMALL, "resume": True}, ValueError, "resume needs out"),
            ({**SMALL, "precision": 2.0}, ValueError, "precision"),
            ({**SMALL, "world": "sockets"}, ValueError, "between sockets"),
            ({**SMALL, "size": 70_000}, ValueError, "a text is needed, such as \"2MB\""),
            ({**SMALL, "scheme": ["slow-start", "blitz"]}, ValueError, "blitz"),
        ]
        for arguments, kind, message in cases:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                flowstart.compare(**arguments)
        with self.assertRaisesRegex(TypeError, "takes 0 arguments without a name"):
            flowstart.compare("lte")  # type: ignore[call-arg, misc]

    def test_other_threads_go_on_during_runs(self) -> None:
        done, counted = threading.Event(), [0]

        def count() -> None:
            while not done.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        flowstart.compare(link="dsl-fast", size="2MB", scheme=["slow-start", "blitzstart"], reps=20)
        during = counted[0]
        done.set()
        thread.join()
        self.assertGreater(during, 1000)


class Run(unittest.TestCase):
    TEXT = "link = ['lte']\nsize = ['70KB']\nscheme = ['slow-start', 'jump-start']\nreps = 2\n"

    @contextlib.contextmanager
    def scenario(self, text: str):  # type: ignore[no-untyped-def]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "study.toml"
            file.write_text(text)
            yield file

    def test_a_scenario_is_a_file_or_a_name(self) -> None:
        with self.scenario(self.TEXT) as file:
            self.assertEqual(len(flowstart.run(file).flows), 4)
            self.assertEqual(len(flowstart.run(str(file), reps=3).flows), 6)
        shipped = flowstart.run("many-flows", reps=1)
        self.assertTrue(shipped.answer)
        with self.assertRaisesRegex(ValueError, "no such file, and no scenario of the program"):
            flowstart.run("many-flow")

    def test_a_scenario_that_cannot_be_read_names_file_and_line(self) -> None:
        with self.scenario(self.TEXT + "schem = 1\n") as file:
            with self.assertRaisesRegex(ValueError, r"study\.toml line 5: .*schem"):
                flowstart.run(file)

    def test_what_compare_asks_can_be_run_as_a_scenario(self) -> None:
        compared = flowstart.compare(**SMALL)
        with self.scenario(compared.scenario) as file:
            self.assertEqual(flowstart.run(file).flows.to_dicts(), compared.flows.to_dicts())

    def test_pieces_that_are_joined_are_the_run(self) -> None:
        with self.scenario(self.TEXT) as file:
            study = flowstart.Study.read(file, reps=3)
            again = flowstart.Study.read(file, reps=3)
            self.assertEqual((len(study), study.runs, study.reps), (3, 6, 3))
            parts = [study.pieces(place, 1)[0] for place in reversed(range(len(study)))]
            self.assertEqual(parts[0], again.pieces(2, 1)[0])
            joined = study.join(parts)
            self.assertEqual(joined.flows.to_dicts(), flowstart.run(file, reps=3).flows.to_dicts())
            self.assertEqual(joined.answer, flowstart.run(file, reps=3).answer)
            self.assertEqual(study.join([study.pieces(0, 3)[0]]).answer, joined.answer)
            self.assertNotEqual(study.identity, flowstart.Study.read(file, seed=9).identity)
            with self.assertRaisesRegex(RuntimeError, "missing"):
                study.join(parts[1:])
            with self.assertRaisesRegex(RuntimeError, "twice"):
                study.join([*parts, parts[0]])
            with self.assertRaisesRegex(ValueError, "part 0 is not rows in Parquet"):
                study.join([parts[0][:-10], *parts[1:]])
            with self.assertRaises(IndexError):
                study.pieces(3, 1)
            with self.assertRaises(IndexError):
                study.pieces(0, 2**63)


class Look(unittest.TestCase):
    def test_a_trace_has_every_event_with_types(self) -> None:
        trace = flowstart.trace(link="dsl-fast", size="70KB", scheme=["slow-start", "blitzstart"])
        rows = trace.events.to_dicts()
        self.assertEqual({row["scheme"] for row in rows}, {"slow-start", "blitzstart"})
        sent = [row for row in rows if row["event"] == "sent" and row["scheme"] == "blitzstart"]
        self.assertEqual(sum(row["bytes"] for row in sent if not row["retransmission"]), 70_000)
        self.assertIn("blitzstart", trace.answer)
        self.assertIn("<html", trace._repr_html_().replace("&lt;", "<"))

    def test_explain_has_the_causes_as_columns(self) -> None:
        explained = flowstart.explain(link="dsl-fast", size="2MB", scheme=["slow-start", "blitzstart"])
        rows = explained.causes.to_dicts()
        for row in rows:
            causes = sum(value for name, value in row.items() if name.startswith("causes_"))
            self.assertAlmostEqual(causes, row["fct_ms"] - row["ideal_fct_ms"], places=3)
        self.assertEqual(len(explained.answer.splitlines()), 2)
        with self.assertRaisesRegex(ValueError, "flow `3`: allowed is 0 to 0"):
            flowstart.explain(link="lte", size="70KB", scheme="suss", flow=3)
        with self.assertRaisesRegex(ValueError, "rep `30`: allowed is 0 to 29"):
            flowstart.trace(link="lte", size="70KB", scheme="suss", rep=30)

    def test_lists_are_those_of_the_command(self) -> None:
        schemes = {row["name"]: row for row in flowstart.list_schemes().to_dicts()}
        self.assertIn("RFC", schemes["slow-start"]["source"])
        self.assertEqual(schemes["search"]["kernel_name"], "fs_search")
        for name in dir(flowstart):
            if name.startswith("list_"):
                self.assertGreater(len(getattr(flowstart, name)()), 3, name)

    def test_an_entry_is_validated(self) -> None:
        rows = flowstart.validate("ns2-router-checks").to_dicts()
        self.assertEqual([row["name"] for row in rows], ["ns2-router-checks"])
        self.assertIn(rows[0]["status"], ["pass", "miss"])
        with self.assertRaisesRegex(ValueError, "did you mean"):
            flowstart.validate("ns2-router-check")


class Tables(unittest.TestCase):
    def setUp(self) -> None:
        self.flows = flowstart.compare(**SMALL).flows
        self.rows = self.flows.to_dicts()

    def test_pyarrow_reads_them(self) -> None:
        table = needed("pyarrow").table(self.flows)
        self.assertEqual(table.to_pylist(), self.rows)

    def test_polars_reads_them(self) -> None:
        frame = needed("polars").DataFrame(self.flows)
        self.assertEqual(frame.to_dicts(), self.rows)

    def test_pandas_reads_them(self) -> None:
        frame = needed("pandas").DataFrame.from_arrow(self.flows)
        self.assertEqual(list(frame["fct_ms"]), [row["fct_ms"] for row in self.rows])

    def test_duckdb_reads_them(self) -> None:
        needed("pyarrow")
        flows = self.flows
        duckdb = needed("duckdb")
        ((mean,),) = duckdb.sql("select avg(fct_ms) from flows where scheme = 'blitzstart'").fetchall()
        own = [row["fct_ms"] for row in self.rows if row["scheme"] == "blitzstart"]
        self.assertAlmostEqual(mean, sum(own) / len(own), places=9)
        del flows


class Typed(unittest.TestCase):
    def test_the_stub_is_that_of_the_module(self) -> None:
        stub = pathlib.Path(flowstart.__file__).with_name("_flowstart.pyi")
        self.assertEqual(stub.read_text(), _flowstart.stub())

    def test_functions_say_what_they_take(self) -> None:
        arguments = inspect.signature(flowstart.compare).parameters
        self.assertEqual(list(arguments)[0], "link")
        self.assertEqual(arguments["aqm"].default, "taildrop")
        self.assertIn("reps: Repetitions of each cell.", flowstart.compare.__doc__ or "")

    def test_strict_type_checkers_accept_the_package_and_its_use(self) -> None:
        needed("mypy")
        package = pathlib.Path(flowstart.__file__).parent
        use = pathlib.Path(__file__).with_name("typed_use.py")
        with tempfile.TemporaryDirectory() as cache:
            checked = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, use, package],
                capture_output=True,
                text=True,
                env={**os.environ, "MYPYPATH": str(package.parent)},
            )
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
