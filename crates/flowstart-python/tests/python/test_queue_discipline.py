"""Queue disciplines that are written in Python."""

from __future__ import annotations

import math
import time
import unittest
from typing import Any, Literal

import flowstart

CELL: dict[str, Any] = {"link": "rate=20mbit,rtt=50ms,buffer=3bdp", "size": "5MB", "scheme": "slow-start", "reps": 2}
SHARED: dict[str, Any] = {**CELL, "link": "rate=10mbit,rtt=40ms,buffer=1bdp", "size": "1MB", "competitor": "cubic"}


class Full(flowstart.QueueDiscipline):
    """Drops what does not fit."""

    name = "full"

    def on_full(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> int | None:
        return None


class Codel(flowstart.QueueDiscipline):
    """RFC 8289, section 5, without marks."""

    name = "codel-in-python"
    target, interval = 0.005, 0.1

    def __init__(self) -> None:
        self.first_above_time: float | None = None
        self.drop_next = 0.0
        self.count = self.lastcount = self.maxpacket = 0
        self.dropping = self.dropped = False

    def control_law(self, time: float) -> float:
        return time + self.interval / math.sqrt(max(self.count, 1))

    def may_drop(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> bool:
        self.maxpacket = max(self.maxpacket, packet.size)
        if packet.sojourn < self.target or queue.bytes <= self.maxpacket:
            self.first_above_time = None
            return False
        if self.first_above_time is None:
            self.first_above_time = now + self.interval
            return False
        return now >= self.first_above_time

    def on_departure(
        self, now: float, packet: flowstart.Packet, queue: flowstart.Queue
    ) -> Literal["drop"] | None:
        after_a_drop, self.dropped = self.dropped, False
        may_drop = self.may_drop(now, packet, queue)
        if self.dropping:
            self.dropping = may_drop
            if after_a_drop and may_drop:
                self.drop_next = self.control_law(self.drop_next)
            if may_drop and now >= self.drop_next:
                self.count += 1
                self.dropped = True
                return "drop"
        elif may_drop:
            recent = now - self.drop_next < 16 * self.interval
            self.count = max(self.count - self.lastcount, 1) if recent else 1
            self.lastcount = self.count
            self.drop_next = self.control_law(now)
            self.dropping = True
            return "drop"
        return None


class Disciplines(unittest.TestCase):
    def times(self, result: flowstart.Results, aqm: str) -> list[Any]:
        rows = result.flows.to_dicts()
        self.assertTrue(all(row["status"] == "ok" for row in rows))
        return [(row["fct_ms"], row["dropped_packets"]) for row in rows if row["aqm"] == aqm]

    def test_taildrop_in_python_is_taildrop(self) -> None:
        for cell in (CELL, SHARED):
            result = flowstart.compare(**cell, aqm=["taildrop", Full])
            self.assertEqual(self.times(result, "taildrop"), self.times(result, "full"))
            self.assertIn("full is from outside flowstart", result._repr_html_())

    def test_codel_in_python_is_codel(self) -> None:
        for cell in (CELL, SHARED):
            result = flowstart.compare(**cell, aqm=["codel:ecn=false", Codel(), "taildrop"])
            shipped = self.times(result, "codel:ecn=false")
            self.assertEqual(shipped, self.times(result, "codel-in-python"))
            self.assertNotEqual(shipped, self.times(result, "taildrop"))

    def test_a_discipline_separates_flows(self) -> None:
        class Fair(flowstart.QueueDiscipline):
            """The flow that was served longest ago is next; the longest queue loses."""

            name = "fair"

            def __init__(self) -> None:
                self.turns: dict[int, int] = {}

            def next_flow(self, now: float, queue: flowstart.Queue) -> int:
                flow = min(queue.flows, key=lambda flow: self.turns.get(flow, 0))
                self.turns[flow] = 1 + max(self.turns.values(), default=0)
                return flow

            def on_full(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> int:
                return max(queue.flows, key=lambda flow: queue.flows[flow][1])

        result = flowstart.compare(**SHARED, aqm=["taildrop", Fair])
        fct = {cell["aqm"]: cell["fct_ms_mean"] for cell in result.cells.to_dicts()}
        # 1 MB over half of 10 Mbit/s takes 1.6 s at least, and a full queue in front of it adds its delay.
        self.assertLess(fct["fair"], 0.9 * fct["taildrop"])

    def test_random_numbers_are_the_run_s(self) -> None:
        class Random(flowstart.QueueDiscipline):
            name = "random"

            def on_arrival(
                self, now: float, packet: flowstart.Packet, queue: flowstart.Queue
            ) -> Literal["drop"] | None:
                return "drop" if queue.random() < 0.01 else None

        first, again = (flowstart.compare(**CELL, aqm=Random).flows.to_dicts() for _ in range(2))
        self.assertEqual([row["dropped_packets"] for row in first], [row["dropped_packets"] for row in again])
        lost = [row["dropped_packets"] for row in first]
        self.assertNotEqual(lost[0], lost[1])
        # 5 MB are 4,167 packets.
        self.assertTrue(all(15 < one < 80 for one in lost), lost)

    def test_marks_are_drops_for_those_who_do_not_react(self) -> None:
        class Marking(flowstart.QueueDiscipline):
            name = "marking"

            def on_departure(
                self, now: float, packet: flowstart.Packet, queue: flowstart.Queue
            ) -> Literal["mark"] | None:
                return "mark" if queue.packets > 20 else None

        cells = flowstart.compare(**CELL, aqm=["taildrop", Marking]).cells.to_dicts()
        self.assertLess(cells[1]["max_queue_delay_ms_mean"], cells[0]["max_queue_delay_ms_mean"])

    def test_every_method_is_called_with_what_it_says(self) -> None:
        calls: dict[str, int] = {}

        class Watching(flowstart.QueueDiscipline):
            name = "watching"
            due = 0.0

            def note(self, name: str, queue: flowstart.Queue) -> None:
                calls[name] = calls.get(name, 0) + 1
                assert sum(bytes for _, bytes in queue.flows.values()) == queue.bytes
                assert sum(packets for packets, _ in queue.flows.values()) == queue.packets
                assert queue.packets or queue.sojourn == 0
                assert self.link.packets is None or queue.packets <= self.link.packets

            def on_arrival(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> None:
                self.note("on_arrival", queue)
                assert packet.sojourn == 0 and packet.size > 0, packet
                assert packet.ecn in ("not-ect", "ect0", "ect1", "ce")

            def on_departure(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> None:
                self.note("on_departure", queue)
                assert packet.sojourn >= queue.sojourn

            def next_flow(self, now: float, queue: flowstart.Queue) -> None:
                self.note("next_flow", queue)

            def on_full(self, now: float, packet: flowstart.Packet, queue: flowstart.Queue) -> int:
                self.note("on_full", queue)
                return next(iter(queue.flows))

            def next_timer(self, now: float) -> float:
                if self.due <= now:
                    self.due = now + 0.01
                return self.due

            def on_timer(self, now: float, queue: flowstart.Queue) -> None:
                self.note("on_timer", queue)
                assert now >= self.due

        result = flowstart.trace(link="rate=20mbit,rtt=50ms,buffer=20pkt", size="2MB", scheme="jump-start", aqm=Watching)
        self.assertGreater(len(result.events), 100)
        self.assertEqual(sorted(calls), ["next_flow", "on_arrival", "on_departure", "on_full", "on_timer"])

    def test_ten_thousand_packets_a_second(self) -> None:
        began = time.perf_counter()
        cell = {**CELL, "link": "rate=1gbit,rtt=20ms,buffer=5bdp", "size": "30MB", "reps": 1}
        rows = flowstart.compare(**cell, aqm=Codel).flows.to_dicts()
        self.assertEqual(rows[0]["status"], "ok")
        self.assertGreater(30e6 / 1200 / (time.perf_counter() - began), 10_000)


class Bad(unittest.TestCase):
    def refused(self, kind: type[Exception], message: str, **members: Any) -> None:
        members = {"name": "bad", **members}
        bad = type("Bad", (flowstart.QueueDiscipline,), members)
        with self.assertRaisesRegex(kind, message):
            flowstart.compare(**{**CELL, "link": "rate=20mbit,rtt=50ms,buffer=20pkt"}, aqm=["taildrop", bad])

    def test_what_methods_return_is_checked(self) -> None:
        for value in ("keep", "", 1, True, float("nan"), b"drop"):
            with self.subTest(value):
                self.refused(ValueError, 'allowed is "mark", "drop" or None', on_arrival=lambda *_, value=value: value)
        for value in (-1, 2**40, "0", 1.5, 77):
            with self.subTest(value):
                self.refused(ValueError, "allowed is a flow of queue.flows", next_flow=lambda *_, value=value: value)
                self.refused(ValueError, "allowed is a flow of queue.flows", on_full=lambda *_, value=value: value)

    def test_a_timer_moves_on(self) -> None:
        for value in (0, 1e-12, -1, float("nan"), 1e10, "soon"):
            with self.subTest(value):
                message = "allowed is a time"
                members = {"next_timer": lambda *_, value=value: value, "on_arrival": lambda *_: None}
                self.refused(ValueError, message, **members)

    def test_an_error_ends_the_experiment(self) -> None:
        def late(self: Any, now: float, packet: Any, queue: Any) -> None:
            if now > 0.2:
                raise KeyError("late")

        self.refused(KeyError, "late", on_departure=late)

    def test_a_discipline_that_never_ends_is_interrupted(self) -> None:
        def forever(self: Any, now: float, packet: Any, queue: Any) -> None:
            while now > 0.1:
                pass

        began = time.monotonic()
        self.refused(TimeoutError, "", on_arrival=forever)
        self.assertLess(time.monotonic() - began, 60)

    def test_a_name_of_its_own_and_a_decision_are_needed(self) -> None:
        self.refused(TypeError, "it decides nothing; it needs one of on_arrival")
        for name, message in [("codel", "a name other than"), ("oracle", "other than oracle"), ("A b", "lower-case")]:
            with self.subTest(name):
                self.refused(ValueError, message, name=name, on_arrival=lambda *_: None)

    def test_a_discipline_is_no_scheme(self) -> None:
        with self.assertRaisesRegex(ValueError, "a text is needed"):
            flowstart.compare(link="lte", size="2MB", scheme=Full())  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
