"""A use of the package that a strict type checker has to accept."""

from pathlib import Path

import flowstart


class Careful(flowstart.Startup):
    """Half of what is hinted."""

    name = "half-of-the-hint"

    def launch(self, now: float, path: flowstart.PathKnowledge) -> flowstart.Launch | float:
        if path.hint is None or path.handshake_rtt is None:
            return self.host.initial_window
        return flowstart.Launch(path.hint * path.handshake_rtt / 16, pacing_rate=path.hint / 2)

    def on_ack(
        self, ack: flowstart.Ack, window: flowstart.Window, in_use: bool, rtt: flowstart.Rtt
    ) -> flowstart.Exit | float:
        return flowstart.Exit(window.cwnd, reason="delivered")


def main() -> None:
    result = flowstart.compare(link=["dsl-fast", "lte"], size="70KB", scheme=["slow-start", Careful()], reps=5)
    page: Path = result.report("report.html")
    best: float = max(row["speedup"] or 0.0 for row in result.cells.to_dicts())
    print(result.answer, page, best)
