"""The base class of queue disciplines that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ._flowstart import OutgoingLink, Packet, Queue

    Verdict = Literal["mark", "drop"] | None


class QueueDiscipline:
    """A queue discipline: what happens to packets that wait for a link.

    Packets wait in the order of their arrival. A discipline decides which of them are marked or dropped, and whose is
    sent next; the limits of the link hold in any case. Times are seconds, amounts bytes, rates bits per second.

    A discipline needs a `name` (lower-case letters, digits, hyphens) and one of `on_arrival`, `on_departure`,
    `next_flow` and `on_full`. Every link gets a deep copy of the object. Its state is its attributes. `link` is set
    before the first packet. An exception ends the experiment, and so does a call of more than ten seconds.
    """

    name: str
    link: OutgoingLink

    def on_arrival(self, now: float, packet: Packet, queue: Queue) -> Verdict:
        """A packet arrives, and there is room for it; `queue` is without it. None: it waits.

        "mark": it waits with the mark CE, or is dropped if its transport does not react to marks. "drop": it is dropped.
        """
        return None

    def on_departure(self, now: float, packet: Packet, queue: Queue) -> Verdict:
        """A packet is about to be sent; `queue` is without it. As `on_arrival`; after a drop the next one is taken."""
        return None

    def next_flow(self, now: float, queue: Queue) -> int | None:
        """The link can send: the flow whose oldest packet is taken. None: the oldest packet of all."""
        return None

    def on_full(self, now: float, packet: Packet, queue: Queue) -> int | None:
        """A packet arrives, and there is no room: the flow whose oldest packet is dropped. None: `packet` is."""
        return None

    def next_timer(self, now: float) -> float | None:
        """When `on_timer` is to be called, later than now; None: not at all. Asked after every packet."""
        return None

    def on_timer(self, now: float, queue: Queue) -> None:
        """The time of `next_timer` has come."""
