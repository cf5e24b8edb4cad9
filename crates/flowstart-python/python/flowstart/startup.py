"""The base class of startup schemes that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._flowstart import Ack, Exit, Host, Launch, Loss, PathKnowledge, Rtt, Sent, Window


class Startup:
    """A startup scheme: four decisions, in this order.

    **Sensing** is `launch`, **probing** `on_ack`, **validation** `on_ack`, `on_lost` and `on_congestion`, and
    **continuation** the `Exit` that any of them returns. Times are seconds, amounts bytes, rates bits per second.

    A scheme needs a `name` (lower-case letters, digits, hyphens), `launch` and `on_ack`. Every flow gets a deep copy of
    the object. Its state is its attributes: two copies with the same attributes have to act alike. `host` is set before
    `launch`. An exception ends the experiment, and so does a call of more than ten seconds.
    """

    name: str
    host: Host

    def launch(self, now: float, path: PathKnowledge) -> Launch | float:
        """Sensing: how the flow starts. A number is its window."""
        raise NotImplementedError

    def on_sent(self, sent: Sent) -> None:
        """A packet was sent."""

    def on_ack(self, ack: Ack, window: Window, in_use: bool, rtt: Rtt) -> Exit | float:
        """Probing and validation: data was delivered. Returns the window, or the end of startup.

        `in_use` says whether the sender was using its window.
        """
        raise NotImplementedError

    def on_lost(self, loss: Loss) -> None:
        """Validation: packets were declared lost. Comes before `on_congestion`."""

    def on_congestion(self, loss: Loss, window: Window, reduced: int) -> Exit | float:
        """Validation: a congestion event. `reduced` is what congestion avoidance would make of the window.

        With a number the scheme stays in charge: recovery leads to that window. Unless overridden startup ends.
        """
        raise NotImplementedError

    def on_ack_in_recovery(self, ack: Ack, window: Window, rtt: Rtt) -> Exit | float | None:
        """Data was delivered in recovery after the scheme stayed in charge. None: the host moves the window."""
        return None

    def on_recovered(self, now: float, window: Window) -> Exit | float:
        """Recovery is over and the scheme stayed in charge. Unless overridden startup ends."""
        raise NotImplementedError

    def pacing_rate(self) -> float | None:
        """Rate at which packets may leave from now on; None: the launch's, then the host's own rule."""
        return None

    def next_wakeup(self) -> float | None:
        """When `on_timer` is to be called; None: not at all."""
        return None

    def on_timer(self, now: float, window: Window) -> Exit | float:
        """The time of `next_wakeup` has come."""
        return window.cwnd
