//! Dispersion of a packet train: how far apart the bottleneck has moved packets that left together.
//!
//! Reference: C. Dovrolis, P. Ramanathan, D. Moore, "What do packet dispersion techniques measure?", IEEE INFOCOM 2001.
//! The bytes behind the first packet over the time from the first arrival to the last are the rate of the bottleneck,
//! if nothing came between them. Here the train is the server's part of the handshake, which a client sees arrive
//! before it sends its request: it can report what it saw in time for the launch.
//!
//! Differences: a train of the paper has as many packets as its sender likes. A server's part of the handshake has
//! three or so, for before the client's address is validated it is at most three times what came (RFC 9000, section
//! 8.1). So the rate is a rough one: cross traffic between the packets makes it lower, and what gathers them behind the
//! bottleneck (Wi-Fi, interrupts that are put off) higher.

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Instants with arrivals that a dispersion takes. Two give one gap, which any timer may have made.
pub const INSTANTS: u32 = 3;

/// What a receiver has seen of a train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispersion {
    first: Option<Timestamp>,
    latest: Timestamp,
    instants: u32,
    /// Bytes that came later than the first.
    behind: Bytes,
    /// It has ended.
    is_over: bool,
}

impl Dispersion {
    /// A packet of the train has arrived. What arrives at the same instant as the one before has been gathered with it.
    /// What comes more than `gap` after the one before was not sent with it: it was sent again, or it waited for an
    /// acknowledgement. Neither it nor what follows belongs to the train.
    pub fn on_arrival(&mut self, now: Timestamp, bytes: Bytes, gap: Duration) {
        let first = *self.first.get_or_insert(now);
        self.is_over |= self.instants > 0 && now.since(self.latest) > gap;
        if self.is_over {
            return;
        }
        if self.instants == 0 || now > self.latest {
            self.instants = self.instants.saturating_add(1);
            self.latest = now;
        }
        if now > first {
            self.behind += bytes;
        }
    }

    /// The rate of the bottleneck: bytes behind the first / time between the first and the last (equation 1); `None`:
    /// there were fewer than [`INSTANTS`].
    pub fn rate(&self) -> Option<Rate> {
        let span = self.latest.since(self.first?);
        Rate::from_transfer(self.behind, span).filter(|_| self.instants >= INSTANTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(arrivals: &[(u64, u64)]) -> Option<u64> {
        let mut train = Dispersion::default();
        for (micros, bytes) in arrivals {
            let now = Timestamp::ZERO + Duration::from_micros(*micros);
            train.on_arrival(now, Bytes::new(*bytes), Duration::from_millis(25));
        }
        train.rate().map(Rate::bits_per_sec)
    }

    #[test]
    fn the_bytes_behind_the_first_over_the_time_they_take_are_the_rate() {
        // 2500 bytes behind the first within 2 ms: 10 Mbit/s.
        assert_eq!(seen(&[(7000, 1250), (8000, 1250), (9000, 1250)]), Some(10_000_000));
        // The second and the third came together: gathered, but two instants tell nothing.
        assert_eq!(seen(&[(7000, 1250), (9000, 1250), (9000, 1250)]), None);
        assert_eq!(seen(&[(7000, 1250), (8000, 1250), (9000, 1250), (9000, 1250)]), Some(15_000_000));
        assert_eq!((seen(&[]), seen(&[(0, 1250); 4]), seen(&[(0, 1250), (1000, 1250)])), (None, None, None));
    }

    #[test]
    fn a_packet_that_was_not_sent_with_the_others_is_no_part_of_the_train() {
        let train = [(0, 1250), (1000, 1250), (2000, 1250)];
        let with = |late: &[(u64, u64)]| seen(&[&train, late].concat());
        assert_eq!(with(&[(27_000, 1250)]), Some(1_111_111), "as slow as that may be");
        assert_eq!(with(&[(27_001, 1250), (27_002, 1250)]), Some(10_000_000));
        assert_eq!(seen(&[(0, 1250), (1000, 1250), (50_000, 1250), (51_000, 1250)]), None);
    }
}
