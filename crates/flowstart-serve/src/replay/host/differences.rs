//! Where the scheme would have sent otherwise than the recorded sender.

use flowstart_core::rtt::GRANULARITY;

use super::super::recorded_sender::At;
use super::super::{Difference, How, millis};
use super::Host;
use crate::recording::Timed;

impl Host<'_> {
    /// The packet `number` leaves, with so much in flight `before` it: would it have left?
    pub(super) fn compare(&mut self, event: &Timed, number: u64, (before, of_data, probes_size): (u64, bool, bool)) {
        let exceeds = self.recorded.metrics.cwnd.is_some_and(|cwnd| before >= cwnd);
        // A probe after a timeout may exceed the window (RFC 9002, section 7.5), and so may the first packet after a
        // loss (section 7.3.2).
        let timeout = self.rtt.probe_timeout(GRANULARITY, self.max_ack_delay);
        self.timed_out |= before > 0 && self.now.since(self.last_acknowledged.max(self.last_sent)) >= timeout;
        // Programs count in flight a little otherwise, but not by a whole packet.
        let is_beyond = self.recorded.metrics.cwnd.is_some_and(|cwnd| before >= cwnd.saturating_add(self.segment));
        self.recorded.is_late |= is_beyond && of_data && !self.timed_out && self.totals.lost == 0;
        let is_first_after_loss = std::mem::take(&mut self.has_lost);
        // Who left before what the file has before it did not know of it.
        let is_allowed =
            event.is_mixed_up || is_first_after_loss || (exceeds && (self.timed_out || !self.recorded.is_late));
        let cwnd = self.controller.cwnd().get();
        if before >= cwnd.saturating_add(self.segment) && !is_allowed && !probes_size {
            self.note_difference(event.into(), number, How::Less, before, cwnd);
        }
    }

    /// An acknowledgement arrives. Where the recorded sender stopped before it, would the scheme have gone on?
    pub(super) fn doubt_stop(&mut self) {
        if let Some(stopped) = self.recorded.stopped.take()
            && self.launched_after.is_some()
            && !self.has_nothing
            && self.controller.cwnd().get() >= stopped.in_flight.saturating_add(2 * self.segment)
        {
            self.recorded.doubted = Some((stopped, self.controller.cwnd().get()));
            if !self.recorded.is_late {
                self.judge(None);
            }
        }
    }

    /// The acknowledgement tells why the recorded sender stopped, or the window that the file has behind it does.
    pub(super) fn judge(&mut self, window_behind: Option<u64>) {
        let Some((stopped, cwnd)) = self.recorded.doubted.take() else { return };
        let was_full = match window_behind {
            Some(window) => stopped.in_flight + self.segment >= window,
            // It did not change.
            None => stopped.is_full,
        };
        if was_full {
            self.note_difference(stopped.at, stopped.number, How::More, stopped.in_flight, cwnd);
        }
    }

    fn note_difference(&mut self, at: At, packet_number: u64, how: How, in_flight: u64, cwnd: u64) {
        if std::mem::replace(&mut self.differs, true) {
            return;
        }
        self.watch.differs(Difference {
            event: at.event,
            line: at.line,
            time_ms: millis(at.time),
            packet_number,
            how,
            in_flight_bytes: in_flight,
            cwnd_bytes: cwnd,
        });
    }
}
