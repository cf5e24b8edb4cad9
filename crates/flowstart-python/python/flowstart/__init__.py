"""Compare how network transfers start: simulate, trace, explain, validate.

    import flowstart

    result = flowstart.compare(link="dsl-fast", size="2MB", scheme=["slow-start", "blitzstart"], reps=10)
    print(result.answer)
    result.report("report.html")

Keyword arguments are the options of the command `flowstart`. Tables are Arrow: Polars, pandas, DuckDB and pyarrow read
them without copies, as in `polars.DataFrame(result.cells)`.
"""

from ._flowstart import (
    Ack,
    Exit,
    Explained,
    Host,
    Launch,
    Loss,
    OutgoingLink,
    Packet,
    PathKnowledge,
    Queue,
    Results,
    Rtt,
    SavedPath,
    Sent,
    Study,
    Table,
    Trace,
    Window,
    __version__,
    compare,
    explain,
    list_applications,
    list_aqms,
    list_avoidance,
    list_competitors,
    list_link_options,
    list_links,
    list_metrics,
    list_scenarios,
    list_schemes,
    list_transports,
    run,
    trace,
    validate,
)
from .queue_discipline import QueueDiscipline
from .startup import Startup
from .sweeps import sweep

__all__ = [
    "Ack",
    "Exit",
    "Explained",
    "Host",
    "Launch",
    "Loss",
    "OutgoingLink",
    "Packet",
    "PathKnowledge",
    "Queue",
    "QueueDiscipline",
    "Results",
    "Rtt",
    "SavedPath",
    "Sent",
    "Startup",
    "Study",
    "Table",
    "Trace",
    "Window",
    "__version__",
    "compare",
    "explain",
    "list_applications",
    "list_aqms",
    "list_avoidance",
    "list_competitors",
    "list_link_options",
    "list_links",
    "list_metrics",
    "list_scenarios",
    "list_schemes",
    "list_transports",
    "run",
    "sweep",
    "trace",
    "validate",
]
