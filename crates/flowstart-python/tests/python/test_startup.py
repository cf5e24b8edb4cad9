"""Startup schemes that are written in Python."""

from __future__ import annotations

import os
import signal
import threading
import time
import unittest
from typing import Any

import flowstart

CELL: dict[str, Any] = {"link": "lte", "size": "2MB", "reps": 2}


class Doubling(flowstart.Startup):
    """Classic slow start (RFC 9002, section 7.3.1)."""

    name = "doubling"

    def launch(self, now: float, path: flowstart.PathKnowledge) -> float:
        return self.host.initial_window

    def on_ack(
        self, ack: flowstart.Ack, window: flowstart.Window, in_use: bool, rtt: flowstart.Rtt
    ) -> float:
        return window.cwnd + ack.bytes if in_use else window.cwnd


class HalfOfTheHint(Doubling):
    """Half of what the client hints, paced over an RTT."""

    name = "half-of-the-hint"

    def launch(self, now: float, path: flowstart.PathKnowledge) -> flowstart.Launch | float:
        if path.hint is None or path.handshake_rtt is None:
            return self.host.initial_window
        return flowstart.Launch(path.hint * path.handshake_rtt / 16, pacing_rate=path.hint / 2)

    def on_ack(
        self, ack: flowstart.Ack, window: flowstart.Window, in_use: bool, rtt: flowstart.Rtt
    ) -> flowstart.Exit:
        return flowstart.Exit(window.cwnd, reason="half-of-the-hint")


class Schemes(unittest.TestCase):
    def test_slow_start_in_python_is_slow_start(self) -> None:
        for competitor in ["none", "cubic"]:
            result = flowstart.compare(**CELL, scheme=["slow-start", Doubling], competitor=competitor)
            rows = result.flows.to_dicts()
            fct = {
                scheme: [row["fct_ms"] for row in rows if row["scheme"] == scheme]
                for scheme in ("slow-start", "doubling")
            }
            self.assertEqual(fct["slow-start"], fct["doubling"])

    def test_a_scheme_uses_what_it_knows_and_says_why_it_ended(self) -> None:
        result = flowstart.compare(**CELL, scheme=["slow-start", HalfOfTheHint()])
        row = result.cells.to_dicts()[1]
        self.assertEqual(row["exit_reasons_half-of-the-hint"], 2)
        hidden = flowstart.compare(**CELL, scheme=["slow-start", HalfOfTheHint()], no_hint=True)
        self.assertLess(hidden.cells.to_dicts()[1]["speedup"], row["speedup"])
        sources = flowstart.explain(link="lte", size="2MB", scheme=HalfOfTheHint)
        self.assertIn("Its launch depends on hint", sources.answer)

    def test_the_report_says_that_only_its_author_can_run_it_again(self) -> None:
        result = flowstart.compare(**CELL, scheme=["slow-start", HalfOfTheHint()])
        self.assertIn("half-of-the-hint is from outside flowstart", result._repr_html_())

    def test_flows_share_nothing(self) -> None:
        class Counting(Doubling):
            name = "counting"

            def __init__(self) -> None:
                self.seen: list[int] = []

            def on_ack(self, ack: Any, window: Any, in_use: bool, rtt: Any) -> float:
                self.seen.append(ack.bytes)
                return super().on_ack(ack, window, in_use, rtt)

        counting = Counting()
        result = flowstart.compare(**CELL, scheme=["slow-start", counting], flows=4)
        self.assertEqual(result.cells.to_dicts()[1]["n"], 8)
        # Only the trial of the scheme itself may have been seen.
        self.assertLessEqual(len(counting.seen), 1)

    def test_every_method_is_called_with_what_it_says(self) -> None:
        calls: dict[str, int] = {}

        class Watching(Doubling):
            name = "watching"

            def note(self, name: str) -> None:
                calls[name] = calls.get(name, 0) + 1

            def on_sent(self, sent: flowstart.Sent) -> None:
                self.note("on_sent")
                assert 0 < sent.bytes <= sent.in_flight

            def on_lost(self, loss: flowstart.Loss) -> None:
                self.note("on_lost")
                assert 0 < loss.bytes <= loss.in_flight_before - loss.in_flight, loss

            def on_congestion(self, loss: Any, window: flowstart.Window, reduced: int) -> float:
                self.note("on_congestion")
                assert 0 < reduced <= window.cwnd
                return reduced

            def on_ack_in_recovery(self, ack: Any, window: Any, rtt: Any) -> None:
                self.note("on_ack_in_recovery")

            def on_recovered(self, now: float, window: flowstart.Window) -> flowstart.Exit:
                self.note("on_recovered")
                return flowstart.Exit(window.cwnd, reason="recovered")

            def pacing_rate(self) -> float | None:
                self.note("pacing_rate")
                return None

            def next_wakeup(self) -> float | None:
                return self.wakeup if hasattr(self, "wakeup") else None

            def on_ack(self, ack: Any, window: Any, in_use: bool, rtt: Any) -> float:
                if "on_timer" not in calls:
                    self.wakeup = ack.now + 0.001
                return super().on_ack(ack, window, in_use, rtt)

            def on_timer(self, now: float, window: flowstart.Window) -> float:
                self.note("on_timer")
                assert now >= self.wakeup
                del self.wakeup
                return window.cwnd

        result = flowstart.compare(
            link="rate=20mbit,rtt=50ms,buffer=20pkt", size="5MB", scheme=["slow-start", Watching], reps=1
        )
        self.assertEqual(result.cells.to_dicts()[1]["exit_reasons_recovered"], 1)
        expected = ["on_congestion", "on_lost", "on_recovered", "on_sent", "on_timer", "pacing_rate"]
        self.assertEqual([name for name in expected if not calls.get(name)], [])

    def test_ten_thousand_packets_a_second(self) -> None:
        began = time.perf_counter()
        rows = flowstart.compare(
            link="rate=1gbit,rtt=50ms,buffer=20bdp", size="30MB", scheme=Doubling, reps=1, no_hint=True
        ).flows.to_dicts()
        packets = 30e6 / 1200
        self.assertEqual(rows[0]["status"], "ok")
        self.assertGreater(packets / (time.perf_counter() - began), 10_000)


def with_on_ack(function: Any, **more: Any) -> type[flowstart.Startup]:
    return type("Bad", (Doubling,), {"name": "bad", "on_ack": function, **more})


class Bad(unittest.TestCase):
    def refused(self, scheme: Any, kind: type[Exception], message: str) -> None:
        with self.assertRaisesRegex(kind, message):
            flowstart.compare(**CELL, scheme=["slow-start", scheme])

    def test_what_on_ack_returns_is_checked(self) -> None:
        for value, message in [
            (float("nan"), "allowed is a number from 0 to 1e15"),
            (float("inf"), "allowed is a number from 0 to 1e15"),
            (-1, "allowed is a number from 0 to 1e15"),
            (1e18, "allowed is a number from 0 to 1e15"),
            ("2MB", "allowed is a number from 0 to 1e15"),
            (True, "allowed is a number from 0 to 1e15"),
            (None, "a window in bytes or an Exit is needed"),
            (0, "a window of 1 byte or more"),
            (flowstart.Exit(12000, reason=""), "reason: allowed is 1 to 60 characters"),
            (flowstart.Exit(float("nan")), "cwnd: allowed"),
            (flowstart.Exit(12000, ssthresh=-1), "ssthresh: allowed"),
        ]:
            with self.subTest(value):
                self.refused(with_on_ack(lambda *_, value=value: value), ValueError, message)

    def test_an_error_late_in_a_run_ends_the_experiment(self) -> None:
        def late(self: Any, ack: Any, window: Any, in_use: bool, rtt: Any) -> float:
            if ack.now > 0.2 and not in_use + 1 == 3:
                raise KeyError("late")
            return window.cwnd + ack.bytes

        self.refused(with_on_ack(late), KeyError, "late")

    def test_a_launch_is_checked(self) -> None:
        for launch, message in [
            (flowstart.Launch(12000, pacing_rate=float("nan")), "pacing_rate: allowed"),
            (flowstart.Launch(12000, pacing_rate=0), "pacing_rate: allowed is a number above 0"),
            (flowstart.Launch(12000, burst=-1), "burst: allowed"),
            (flowstart.Launch("a lot"), "cwnd: allowed"),  # type: ignore[arg-type]
        ]:
            with self.subTest(message):
                bad = type("Bad", (Doubling,), {"name": "bad", "launch": lambda *_, launch=launch: launch})
                self.refused(bad, ValueError, message)

    def test_a_scheme_needs_a_name_of_its_own_and_its_methods(self) -> None:
        class Nameless(flowstart.Startup):
            def launch(self, now: float, path: Any) -> float:
                return 12000

            def on_ack(self, *_: Any) -> float:
                return 12000

        class Empty(flowstart.Startup):
            name = "empty"

        self.refused(Nameless, TypeError, "a text is needed")
        self.refused(Empty, TypeError, r"launch\(\) is missing")
        self.refused(type("Taken", (Doubling,), {"name": "suss"}), ValueError, "a name other than")
        self.refused(type("Odd", (Doubling,), {"name": "A b"}), ValueError, "lower-case letters")
        self.refused(type("Long", (Doubling,), {"name": "a" * 61}), ValueError, "1 to 60 characters")
        self.refused(type("Seven", (Doubling,), {"name": 7}), TypeError, "a text is needed")

    def test_what_cannot_be_copied_is_refused(self) -> None:
        locked = Doubling()
        locked.lock = threading.Lock()  # type: ignore[attr-defined]
        self.refused(locked, TypeError, "pickle")

    def test_a_scheme_that_never_ends_is_interrupted(self) -> None:
        def forever(self: Any, ack: Any, window: Any, in_use: bool, rtt: Any) -> float:
            while ack.now > 0.1:
                pass
            return window.cwnd

        began = time.monotonic()
        self.refused(with_on_ack(forever), TimeoutError, "")
        self.assertLess(time.monotonic() - began, 60)

    def test_control_c_ends_a_comparison(self) -> None:
        def forever(self: Any, ack: Any, window: Any, in_use: bool, rtt: Any) -> float:
            while ack.now > 0.1:
                pass
            return window.cwnd

        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            flowstart.compare(**CELL, scheme=["slow-start", with_on_ack(forever)])
        # Without it the scheme would never end. A machine that is busy takes a while to say so.
        self.assertLess(time.monotonic() - began, 60)


if __name__ == "__main__":
    unittest.main()
