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

def compare(*, link: str | Sequence[str], scheme: str | Startup | Sequence[str | Startup], aqm: str | QueueDiscipline | Sequence[str | QueueDiscipline] = "taildrop", competitor: str | Sequence[str] = "none", transport: str | Sequence[str] = "model-quic", world: str | Sequence[str] = "simulator", size: str | Sequence[str] | None = None, application: str | Sequence[str] = "transfer", arrival: str | Sequence[str] = "together", idle: str | Sequence[str] | None = None, move: str | Sequence[str] = "none", avoidance: str | Sequence[str] | None = None, flows: int = 1, no_hint: bool = False, no_knowledge: bool = False, reps: int = 30, seed: int = 1, jobs: int = 0, out: str | PathLike[str] | None = None, resume: bool = False, precision: float | None = None, max_reps: int = 1000, progress: Callable[[int, int], object] | None = None) -> Results:
    """Runs every combination of the values, and compares with the first scheme.

    Args:
        link: Links. A preset, such as lte, also with keys that change it, lte,buffer=1bdp; or a link of your own, rate=25mbit,rtt=50ms,buffer=50ms, also with a name for results, cable=rate=25mbit,rtt=50ms. See `flowstart list links` and `flowstart list link-options`
        scheme: Startup schemes (the first is the baseline). With parameters, blitzstart:estimate=1.5, with a congestion avoidance of its own, slow-start:avoidance=bbr, and with several connections for a transfer, slow-start:connections=6. See `flowstart list schemes`
        aqm: Queue disciplines of the link. With parameters, codel:target=5ms. See `flowstart list aqms`
        competitor: Other users of the link. Such as none, cubic, bulk:cubic,count=2, cbr:rate=5mbit or web:load=5mbit. See `flowstart list competitors`
        transport: Transports of all flows. model-quic or model-tcp, with `:profile=NAME` and policies; quic: the measured flows are the real QUIC stack noq; both: model-quic and quic. See `flowstart list transports`
        world: Where runs happen. simulator, or sockets: real QUIC (--transport quic) or the kernel's TCP (--transport model-tcp) between two network namespaces of this machine, over the link in real time (Linux, root)
        size: Transfer sizes, such as 70KB or 2MB. KB is 1000 bytes, KiB is 1024. A distribution is pareto:mean=100KB,shape=1.2, with smallest in place of mean, and largest
        application: What flows carry. Such as transfer, which needs --size, chunks:size=1MB,interval=2s,count=30, page:objects=6,size=50KB,waves=3 or video:count=30, which take no --size. See `flowstart list applications`
        arrival: When measured flows start. together, every=100ms, within=10ms or poisson:load=5mbit, each with flows=N, and with rtts=20ms/80ms/200ms, of which each flow draws one in place of the link's
        idle: What idle time does to windows. keep, rfc5681, rfc2861, linux, rfc7661 or startup (the scheme runs again); without it what the transport says, for all flows
        move: Change of the flows' path. none, or the new link with `at`, the time from a flow's start: at=2s,rate=5mbit,rtt=80ms or lte,at=2s. The measured flows have the new path for themselves, and nothing is known of it. See `flowstart list link-options`
        avoidance: Congestion avoidance of measured flows. With parameters, cubic:beta_ecn=0.85. Default: the transport profile's. See `flowstart list avoidance`
        flows: Number of measured flows. arrival may say another one.
        no_hint: Hide the client's bandwidth from schemes.
        no_knowledge: Hide all that is known of paths before.
        reps: Repetitions of each cell.
        seed: Master seed.
        jobs: Threads; 0: one per core.
        out: Folder for results and the report; new, empty, or with resume.
        resume: Go on with an interrupted run in the same folder.
        precision: Add repetitions until this precise, such as 0.01.
        max_reps: Most repetitions of precision.
        progress: Called with the runs that are done and all runs.
    """

def run(scenario: str | PathLike[str], *, reps: int | None = None, seed: int | None = None, jobs: int = 0, out: str | PathLike[str] | None = None, resume: bool = False, precision: float | None = None, max_reps: int = 1000, progress: Callable[[int, int], object] | None = None) -> Results:
    """Runs a scenario: a TOML file, or a name of `list_scenarios`.

    Args:
        scenario: A TOML file, or a name from `list_scenarios`.
        reps: Repetitions of each cell; the scenario's unless given.
        seed: Master seed; the scenario's unless given.
        jobs: Threads; 0: one per core.
        out: Folder for results and the report; new, empty, or with resume.
        resume: Go on with an interrupted run in the same folder.
        precision: Add repetitions until this precise, such as 0.01.
        max_reps: Most repetitions of precision.
        progress: Called with the runs that are done and all runs.
    """

def trace(*, link: str, scheme: str | Startup | Sequence[str | Startup], aqm: str | QueueDiscipline = "taildrop", competitor: str = "none", transport: str = "model-quic", world: str = "simulator", size: str | None = None, application: str = "transfer", arrival: str = "together", idle: str | None = None, move: str = "none", avoidance: str | None = None, flows: int = 1, no_hint: bool = False, no_knowledge: bool = False, reps: int = 30, seed: int = 1, rep: int = 0, variables: bool = False) -> Trace:
    """Every event of one run of each scheme.

    Args:
        link: The link. A preset, such as lte, also with keys that change it, lte,buffer=1bdp; or a link of your own, rate=25mbit,rtt=50ms,buffer=50ms, also with a name for results, cable=rate=25mbit,rtt=50ms. See `flowstart list links` and `flowstart list link-options`. Not with --cell
        scheme: Startup schemes (the first is the baseline). With parameters, blitzstart:estimate=1.5, with a congestion avoidance of its own, slow-start:avoidance=bbr, and with several connections for a transfer, slow-start:connections=6. See `flowstart list schemes`
        aqm: Queue discipline of the link. With parameters, codel:target=5ms. See `flowstart list aqms`
        competitor: Other users of the link. Such as none, cubic, bulk:cubic,count=2, cbr:rate=5mbit or web:load=5mbit. See `flowstart list competitors`
        transport: Transport of all flows. model-quic or model-tcp, with `:profile=NAME` and policies; or quic: the measured flows are the real QUIC stack noq. See `flowstart list transports`
        world: Where runs happen. simulator, or sockets: real QUIC (--transport quic) or the kernel's TCP (--transport model-tcp) between two network namespaces of this machine, over the link in real time (Linux, root)
        size: The transfer's size, such as 70KB or 2MB. KB is 1000 bytes, KiB is 1024. Not with --cell
        application: What the flow carries. Such as transfer, which needs --size, chunks:size=1MB,interval=2s,count=30, page:objects=6,size=50KB,waves=3 or video:count=30, which take no --size. See `flowstart list applications`
        arrival: When measured flows start. together, every=100ms, within=10ms or poisson:load=5mbit, each with flows=N, and with rtts=20ms/80ms/200ms, of which each flow draws one in place of the link's
        idle: What idle time does to windows. keep, rfc5681, rfc2861, linux, rfc7661 or startup (the scheme runs again); without it what the transport says, for all flows
        move: Change of the flow's path. none, or the new link with `at`, the time from a flow's start: at=2s,rate=5mbit,rtt=80ms or lte,at=2s. The measured flows have the new path for themselves, and nothing is known of it. See `flowstart list link-options`
        avoidance: Congestion avoidance of measured flows. With parameters, cubic:beta_ecn=0.85. Default: the transport profile's. See `flowstart list avoidance`
        flows: Number of measured flows. arrival may say another one.
        no_hint: Hide the client's bandwidth from schemes.
        no_knowledge: Hide all that is known of paths before.
        reps: Repetitions of each cell.
        seed: Master seed.
        rep: Repetition to show.
        variables: Also inner variables of the algorithms.
    """

def explain(*, link: str, scheme: str | Startup | Sequence[str | Startup], aqm: str | QueueDiscipline = "taildrop", competitor: str = "none", transport: str = "model-quic", world: str = "simulator", size: str | None = None, application: str = "transfer", arrival: str = "together", idle: str | None = None, move: str = "none", avoidance: str | None = None, flows: int = 1, no_hint: bool = False, no_knowledge: bool = False, reps: int = 30, seed: int = 1, rep: int = 0, flow: int = 0) -> Explained:
    """Where the time of one run of each scheme went: what is beyond the physical limit, split into causes.

    Args:
        link: The link. A preset, such as lte, also with keys that change it, lte,buffer=1bdp; or a link of your own, rate=25mbit,rtt=50ms,buffer=50ms, also with a name for results, cable=rate=25mbit,rtt=50ms. See `flowstart list links` and `flowstart list link-options`. Not with --cell
        scheme: Startup schemes (the first is the baseline). With parameters, blitzstart:estimate=1.5, with a congestion avoidance of its own, slow-start:avoidance=bbr, and with several connections for a transfer, slow-start:connections=6. See `flowstart list schemes`
        aqm: Queue discipline of the link. With parameters, codel:target=5ms. See `flowstart list aqms`
        competitor: Other users of the link. Such as none, cubic, bulk:cubic,count=2, cbr:rate=5mbit or web:load=5mbit. See `flowstart list competitors`
        transport: Transport of all flows. model-quic or model-tcp, with `:profile=NAME` and policies; or quic: the measured flows are the real QUIC stack noq. See `flowstart list transports`
        world: Where runs happen. simulator, or sockets: real QUIC (--transport quic) or the kernel's TCP (--transport model-tcp) between two network namespaces of this machine, over the link in real time (Linux, root)
        size: The transfer's size, such as 70KB or 2MB. KB is 1000 bytes, KiB is 1024. Not with --cell
        application: What the flow carries. Such as transfer, which needs --size, chunks:size=1MB,interval=2s,count=30, page:objects=6,size=50KB,waves=3 or video:count=30, which take no --size. See `flowstart list applications`
        arrival: When measured flows start. together, every=100ms, within=10ms or poisson:load=5mbit, each with flows=N, and with rtts=20ms/80ms/200ms, of which each flow draws one in place of the link's
        idle: What idle time does to windows. keep, rfc5681, rfc2861, linux, rfc7661 or startup (the scheme runs again); without it what the transport says, for all flows
        move: Change of the flow's path. none, or the new link with `at`, the time from a flow's start: at=2s,rate=5mbit,rtt=80ms or lte,at=2s. The measured flows have the new path for themselves, and nothing is known of it. See `flowstart list link-options`
        avoidance: Congestion avoidance of measured flows. With parameters, cubic:beta_ecn=0.85. Default: the transport profile's. See `flowstart list avoidance`
        flows: Number of measured flows. arrival may say another one.
        no_hint: Hide the client's bandwidth from schemes.
        no_knowledge: Hide all that is known of paths before.
        reps: Repetitions of each cell.
        seed: Master seed.
        rep: Repetition to explain.
        flow: Which flow of several, from 0, in the order in which they start.
    """

def validate(name: str | None = None, *, reference: str | PathLike[str] | None = None, jobs: int = 0) -> Table:
    """Compares this build with published figures and other simulators; all entries unless one is named.

    Args:
        name: One entry instead of all.
        reference: Another file with the same columns.
        jobs: Threads; 0: one per core.
    """

def list_schemes() -> Table:
    """`flowstart list schemes` as a table; `parameters` and `keys` are JSON.
    """

def list_avoidance() -> Table:
    """`flowstart list avoidance` as a table; `parameters` and `keys` are JSON.
    """

def list_aqms() -> Table:
    """`flowstart list aqms` as a table; `parameters` and `keys` are JSON.
    """

def list_links() -> Table:
    """`flowstart list links` as a table; `parameters` and `keys` are JSON.
    """

def list_link_options() -> Table:
    """`flowstart list link-options` as a table; `parameters` and `keys` are JSON.
    """

def list_transports() -> Table:
    """`flowstart list transports` as a table; `parameters` and `keys` are JSON.
    """

def list_competitors() -> Table:
    """`flowstart list competitors` as a table; `parameters` and `keys` are JSON.
    """

def list_applications() -> Table:
    """`flowstart list applications` as a table; `parameters` and `keys` are JSON.
    """

def list_scenarios() -> Table:
    """`flowstart list scenarios` as a table; `parameters` and `keys` are JSON.
    """

def list_metrics() -> Table:
    """`flowstart list metrics` as a table; `parameters` and `keys` are JSON.
    """
