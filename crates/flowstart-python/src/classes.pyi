"""The lab in Rust. Made from the lab's own names; see CONTRIBUTING.md."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

from .queue_discipline import QueueDiscipline
from .startup import Startup

__version__: str

@final
class Table:
    """Rows with named columns. Polars, pandas, DuckDB and pyarrow read it as Arrow, without copies."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries, for those who have no library for Arrow."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Results:
    """Results of an experiment. `repr` is the answer; in a notebook it is the report. As Arrow it is `cells`."""

    @property
    def answer(self) -> str:
        """The answer, in a sentence."""

    @property
    def notes(self) -> list[str]:
        """What belongs to the answer, in further sentences."""

    @property
    def cells(self) -> Table:
        """A row per cell: metrics, intervals, and the comparison with the baseline."""

    @property
    def flows(self) -> Table:
        """A row per measured flow and repetition, as in `flows.parquet`."""

    @property
    def summary(self) -> dict[str, Any]:
        """`summary.json`."""

    @property
    def scenario(self) -> str:
        """The question as a scenario, which `flowstart run` takes."""

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes the report, one HTML file, and returns its path."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Trace:
    """One run of each scheme. As Arrow it is `events`; in a notebook it is its page."""

    @property
    def answer(self) -> str:
        """What the run shows, in sentences."""

    @property
    def events(self) -> Table:
        """Every event as a row."""

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes the page, one HTML file, and returns its path."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def _repr_html_(self) -> str: ...

@final
class Explained:
    """Where the time of runs went. As Arrow it is `causes`."""

    @property
    def answer(self) -> str:
        """A sentence for each scheme."""

    @property
    def causes(self) -> Table:
        """A row for each scheme: milliseconds of each cause."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Study:
    """A scenario as pieces: every scheme of a setting for one repetition.

    Pieces run anywhere and in any order, in programs of one version. Joined they are the results of `run`.
    """

    @staticmethod
    def read(scenario: str | PathLike[str], *, reps: int | None = None, seed: int | None = None) -> Study:
        """The study of a scenario: a TOML file, or a name from `list_scenarios`."""

    @staticmethod
    def parse(text: str, *, directory: str | PathLike[str] = ".") -> Study:
        """The study of a scenario's text, whose files are relative to `directory`."""

    @property
    def identity(self) -> str:
        """What determines the rows: a hash of the question, of the files that it names, and of the version."""

    @property
    def reps(self) -> int:
        """Repetitions of each cell."""

    @property
    def runs(self) -> int:
        """Number of runs: cells times repetitions."""

    @property
    def scenario(self) -> str:
        """The scenario, which `flowstart run` takes."""

    @property
    def directory(self) -> Path:
        """The folder to which the files of the scenario are relative."""

    def with_reps(self, reps: int) -> Study:
        """The same study with this number of repetitions."""

    def first(self, precision: float, max_reps: int) -> Study:
        """The same study with the repetitions with which a search for a precision begins."""

    def more(self, parts: Sequence[bytes], precision: float, max_reps: int) -> int | None:
        """The repetitions that a precision needs beyond those of these parts; None if it is reached, or cannot be."""

    def pieces(self, first: int, count: int) -> tuple[bytes, int]:
        """Runs `count` pieces from this place on. Returns their rows as Parquet, and how many of them failed."""

    def join(self, parts: Sequence[bytes], *, out: str | PathLike[str] | None = None) -> Results:
        """Joins the Parquet of all pieces, in any order. With `out` it writes the folder that `run` writes."""

    def __len__(self) -> int: ...

@final
class OutgoingLink:
    """The link that a queue feeds; None is no limit, or not known. Amounts are bytes, rates bits per second."""

    packets: int | None
    bytes: int | None
    rate: int | None

@final
class Packet:
    """A packet. `sojourn` is how long it has waited, in seconds; `size` is on the wire, in bytes."""

    flow: int
    size: int
    ecn: Literal["not-ect", "ect0", "ect1", "ce"]
    sojourn: float

@final
class Queue:
    """What waits, at the time of the call."""

    @property
    def packets(self) -> int:
        """Packets that wait."""

    @property
    def bytes(self) -> int:
        """Bytes that wait."""

    @property
    def in_service(self) -> int | None:
        """Bytes of the packet that the link is sending; None if it is idle."""

    @property
    def sojourn(self) -> float:
        """How long the oldest packet has waited, in seconds; 0 if none waits."""

    @property
    def flows(self) -> dict[int, tuple[int, int]]:
        """Packets and bytes of each flow that has some, by its oldest packet."""

    def random(self) -> float:
        """A random number from 0 to below 1, of the run: with the same seed it is the same."""

@final
class Host:
    """What a scheme's host is like. Amounts are bytes."""

    segment: int
    initial_window: int
    paced: bool

@final
class SavedPath:
    """What an earlier connection over the path saved. Times are seconds."""

    rtt: float
    cwnd: int
    age: float

@final
class PathKnowledge:
    """What is known of the path before the first data packet; what is not known is None.

    Times are seconds, amounts bytes, rates bits per second.
    """

    handshake_rtt: float | None
    saved: SavedPath | None
    receive_window: int | None
    bytes_waiting: int | None
    hint: int | None
    requested_rate: int | None
    interface_rate: int | None
    approved_rate: int | None
    oracle_rate: int | None
    train_rate: int | None

@final
class Sent:
    """A packet that was sent."""

    now: float
    bytes: int
    in_flight: int
    app_limited: bool

@final
class Ack:
    """An acknowledgement of new data. Times are seconds, amounts bytes; rtt is None if it gave no sample."""

    now: float
    bytes: int
    packets: int
    rtt: float | None
    in_flight_before: int
    in_flight: int
    app_limited: bool

@final
class Loss:
    """Packets that were declared lost."""

    now: float
    bytes: int
    in_flight_before: int
    in_flight: int

@final
class Window:
    """Congestion window and slow-start threshold, in bytes; no threshold is None."""

    cwnd: int
    ssthresh: int | None

@final
class Rtt:
    """RTTs in seconds; None before the first sample, but for `smoothed`, which then is an assumption."""

    latest: float | None
    min: float | None
    smoothed: float
    variation: float

@final
class Exit:
    """The end of startup: what congestion avoidance begins with, and why.

    With cwnd below ssthresh slow start leads from one to the other. Without ssthresh it is cwnd.
    """

    def __new__(cls, cwnd: float, ssthresh: float | None = None, reason: str = "own") -> Exit: ...

@final
class Launch:
    """How a flow starts.

    cwnd: its window, bytes. pacing_rate: bits per second until the first acknowledgement. burst: bytes that leave at
    once. exit: congestion avoidance begins at once.
    """

    def __new__(
        cls,
        cwnd: float,
        pacing_rate: float | None = None,
        burst: float | None = None,
        exit: Exit | None = None,
    ) -> Launch: ...

def stub() -> str:
    """The text of this file."""
