//! SCONE at both ends of a flow: the data sender's offers of SCONE packets, and the reports of the advice to the
//! sender.
//!
//! Reference: draft-ietf-scone-protocol-08. The signal travels with the data, so the data receiver reads it and has to
//! report it to the sender.
//! - `handshake`: a server that sends the data puts a SCONE packet into each datagram of its part of the handshake, as
//!   the client's transport parameter allows. The client reports with its request, so the launch knows the advice.
//! - `data`, as in mvfst: the first data carries SCONE packets, and the client reports with the next acknowledgement.
//!   The sender knows the advice one RTT after its first data. `handshake` does the same if the data sender opens the
//!   connection or sends with 0-RTT, because its first packets leave before the advice can be known.
//!
//! The draft leaves the report to the application; draft-duke-scone-scone-echo proposes a frame. Here the report is
//! [`REPORT_SIZE`] bytes, repeated with a few acknowledgements instead of a retransmission.

use flowstart_core::scone::endpoint::{Advice, Offers};
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Rate;
use serde::{Deserialize, Serialize};

use crate::path::signals::PathSignal;

/// Bytes of a SCONE packet before a short header: 7 and a connection ID of 8.
pub const BEFORE_SHORT_HEADER: u32 = 15;
/// Bytes of a SCONE packet before a long header: two connection IDs of 8.
pub const BEFORE_LONG_HEADER: u32 = 23;
/// Bytes of the receiver's report to the sender: a frame with its type and the signal. Assumed.
pub const REPORT_SIZE: u32 = 4;
/// Acknowledgements that carry the same report.
const REPORTS: u8 = 3;

/// The time from which the data sender offers SCONE packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SconePolicy {
    /// Never: one of the ends does not support SCONE.
    #[default]
    None,
    /// In the server's part of the handshake, and with data.
    Handshake,
    /// Only with data.
    Data,
}

impl SconePolicy {
    /// Whether SCONE is off.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// The data sender's side.
#[derive(Clone, Debug, Default)]
pub struct SconeSender {
    offers: Offers,
    advice: Advice,
}

impl SconeSender {
    /// The signal of the data packet that leaves now.
    pub fn offer(&mut self, now: Timestamp) -> Option<PathSignal> {
        self.offers.take(now).then_some(PathSignal::Scone(RateSignal::UNKNOWN))
    }

    /// The receiver reports its advice. Returns the rate that now applies.
    pub fn on_report(&mut self, now: Timestamp, signal: RateSignal) -> Option<Rate> {
        self.advice.on_signal(now, signal);
        self.advice.rate(now)
    }

    /// The rate that now applies; `None` without advice or if it has expired.
    pub fn rate(&mut self, now: Timestamp) -> Option<Rate> {
        self.advice.rate(now)
    }
}

/// The data receiver's side.
#[derive(Clone, Debug, Default)]
pub struct SconeReceiver {
    advice: Advice,
    /// Acknowledgements that will carry a report.
    reports: u8,
}

impl SconeReceiver {
    /// A SCONE packet has arrived.
    pub fn on_signal(&mut self, now: Timestamp, signal: RateSignal) {
        let before = self.advice.signal(now);
        // Known advice need not be reported again, except in time before the sender forgets it.
        if self.advice.on_signal(now, signal) && (before != self.advice.signal(now) || self.reports == 0) {
            self.reports = REPORTS;
        }
    }

    /// The report that is due now.
    pub fn signal(&mut self, now: Timestamp) -> RateSignal {
        self.advice.signal(now)
    }

    /// The report of the packet that the receiver sends now.
    pub fn report(&mut self, now: Timestamp) -> Option<PathSignal> {
        self.reports = self.reports.checked_sub(1)?;
        let signal = self.advice.signal(now);
        (signal != RateSignal::UNKNOWN).then_some(PathSignal::SconeReport(signal))
    }
}
