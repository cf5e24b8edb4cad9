//! The dispersion of the handshake at the ends of a real connection: the client sees the server's datagrams arrive
//! until it sends its request, which reports their rate in kbit/s.
//!
//! A server whose part of the handshake is less than three datagrams gives no rate.

use flowstart_core::dispersion::Dispersion;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::transport::handshake::TrainReport;

/// The client's side.
#[derive(Debug)]
pub(super) struct Train {
    report: TrainReport,
    seen: Dispersion,
    opened: Timestamp,
    /// The time from the opening to the server's first datagram.
    first_answer: Option<Duration>,
}

impl Train {
    /// Of a client that opens at `opened`.
    pub(super) fn new(report: TrainReport, opened: Timestamp) -> Self {
        Self { report, seen: Dispersion::default(), opened, first_answer: None }
    }

    /// A datagram of this payload has arrived.
    pub(super) fn on_arrival(&mut self, now: Timestamp, bytes: Bytes) {
        let first_answer = *self.first_answer.get_or_insert(now.since(self.opened));
        self.seen.on_arrival(now, bytes, first_answer / 2);
    }

    /// What the request says: kbit/s, or 0 for nothing.
    pub(super) fn message(&self) -> u32 {
        let rate = match self.report {
            TrainReport::Measured => self.seen.rate(),
            TrainReport::Nothing => None,
            TrainReport::Stated(rate) => Some(rate),
        };
        rate.map_or(0, |rate| u32::try_from(rate.bits_per_sec() / 1000).unwrap_or(u32::MAX))
    }
}

/// The rate that a request reports.
pub(super) fn read(message: u32) -> Option<Rate> {
    (message > 0).then(|| Rate::from_bits_per_sec(u64::from(message) * 1000))
}
