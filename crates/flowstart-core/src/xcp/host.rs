//! A host's part: what a sender writes into its packets, and how a receiver brings the feedback back.
//!
//! Reference: the draft's section on end systems. A sender writes its RTT, the time between its packets and the change
//! of throughput that it wants, here as much as the field can say. A receiver returns the sum of what arrived since its
//! last packet.
//!
//! Difference: a header that no router has touched still holds the sender's wish, which is not feedback. A receiver
//! does not count it, so a path without XCP does not open the window.

use crate::time::Duration;
use crate::units::Bytes;
use crate::xcp::wire::{CongestionHeader, FixedTime, Format};

/// The change that senders want.
const WANTED: i32 = i32::MAX;

/// The header of a data packet of `packet` bytes of a sender with this window; an RTT of `None` is unknown.
pub fn request(rtt: Option<Duration>, cwnd: Bytes, packet: Bytes) -> CongestionHeader {
    let rtt = rtt.unwrap_or(Duration::ZERO);
    let x = rtt.as_secs() * packet.get() as f64 / cwnd.get().max(1) as f64;
    CongestionHeader {
        format: Format::Standard,
        rtt: FixedTime::new(rtt),
        x: FixedTime::from_secs(x),
        delta_throughput: if rtt > Duration::ZERO { WANTED } else { 0 },
        reverse_feedback: 0,
    }
}

/// A receiver: what has arrived and was not returned yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    sum: i32,
}

impl Returned {
    /// A data packet has arrived with this header.
    pub fn on_header(&mut self, header: &CongestionHeader) {
        if header.delta_throughput != WANTED {
            self.sum = self.sum.saturating_add(header.delta_throughput);
        }
    }

    /// The header of the acknowledgement that leaves now.
    pub fn take(&mut self) -> CongestionHeader {
        CongestionHeader {
            format: Format::Minimal,
            rtt: FixedTime::ZERO,
            x: FixedTime::ZERO,
            delta_throughput: 0,
            reverse_feedback: core::mem::take(&mut self.sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_writes_the_time_between_its_packets() {
        // 10 packets of 1000 bytes per 100 ms: one in 10 ms.
        let header = request(Some(Duration::from_millis(100)), Bytes::new(10_000), Bytes::new(1000));
        assert!((header.x.as_secs() - 0.01).abs() < 1e-8);
        assert_eq!(header.delta_throughput, i32::MAX);
        let unknown = request(None, Bytes::new(10_000), Bytes::new(1000));
        assert_eq!((unknown.rtt, unknown.delta_throughput), (FixedTime::ZERO, 0));
    }

    #[test]
    fn a_receiver_returns_the_sum_once_and_not_what_no_router_touched() {
        let mut returned = Returned::default();
        let header = request(Some(Duration::from_millis(100)), Bytes::new(10_000), Bytes::new(1000));
        returned.on_header(&header);
        returned.on_header(&CongestionHeader { delta_throughput: 700, ..header });
        returned.on_header(&CongestionHeader { delta_throughput: -200, ..header });
        assert_eq!(returned.take().reverse_feedback, 500);
        assert_eq!(returned.take().reverse_feedback, 0);
    }
}
