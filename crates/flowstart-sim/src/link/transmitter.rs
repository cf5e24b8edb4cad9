//! Transmitters, which compute the time when a packet that starts now has left.
//!
//! At a fixed rate the remainder of each division carries over while packets follow each other, so a busy link never
//! drifts from its rate.

use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use super::capacity_trace::{CapacityTrace, Cursor};
use super::varying_rate::{Varying, VaryingRate};

/// The limit of a transmitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A fixed rate.
    Rate(Rate),
    /// A token bucket: `burst` bytes may leave at the rate `peak`, the average is `rate`.
    TokenBucket {
        /// Average rate: tokens per time.
        rate: Rate,
        /// Size of the bucket.
        burst: Bytes,
        /// Rate of a packet that has its tokens.
        peak: Rate,
    },
    /// Opportunities of a recorded trace, 1500 bytes each.
    Trace(Arc<CapacityTrace>),
    /// A rate that varies by itself.
    Varying(VaryingRate),
}

/// A transmitter.
#[derive(Clone, Debug)]
pub(super) enum Transmitter {
    Rate(Serializer),
    TokenBucket { bucket: Bucket, serializer: Serializer },
    Trace(Cursor),
    Varying(Varying),
}

/// Divides bytes by a rate without losing the remainder.
#[derive(Clone, Debug)]
pub(super) struct Serializer {
    rate: u64,
    /// Remainder of the divisions so far, in units of 1/rate nanoseconds.
    remainder: u64,
    /// When the last packet had left; a gap forgets the remainder.
    pub(super) finished: Timestamp,
    /// The last size with its quotient and remainder: sizes repeat.
    last: (u32, u64, u64),
}

impl Serializer {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate: rate.bits_per_sec().max(1), remainder: 0, finished: Timestamp::ZERO, last: (0, 0, 0) }
    }

    #[inline]
    pub(super) fn finish(&mut self, start: Timestamp, size: u32) -> Timestamp {
        if start != self.finished {
            self.remainder = 0;
        }
        if self.last.0 != size {
            let bits = u64::from(size) * 8_000_000_000;
            self.last = (size, bits / self.rate, bits % self.rate);
        }
        let (_, mut nanos, rest) = self.last;
        self.remainder += rest;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            nanos += 1;
        }
        self.finished = start + Duration::from_nanos(nanos);
        self.finished
    }
}

/// A token bucket as a virtual clock (the generic cell rate algorithm of ITU-T I.371).
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// When the bucket will be full again.
    full_at: Timestamp,
    /// How long an empty bucket takes to fill.
    depth: Duration,
    serializer: Serializer,
}

impl Bucket {
    pub(super) fn new(rate: Rate, burst: Bytes) -> Self {
        Self { full_at: Timestamp::ZERO, depth: rate.time_for(burst), serializer: Serializer::new(rate) }
    }

    /// The time when the bucket will hold the tokens for `size`, without taking them.
    pub(super) fn ready(&self, now: Timestamp, size: u32) -> Timestamp {
        let mut trial = self.serializer.clone();
        (trial.finish(self.full_at.max(now), size) - self.depth).max(now)
    }

    pub(super) fn take(&mut self, now: Timestamp, size: u32) {
        self.full_at = self.serializer.finish(self.full_at.max(now), size);
    }
}

impl Transmitter {
    pub(super) fn new(capacity: &Capacity, seed: u64) -> Self {
        match capacity {
            Capacity::Rate(rate) => Self::Rate(Serializer::new(*rate)),
            Capacity::TokenBucket { rate, burst, peak } => {
                Self::TokenBucket { bucket: Bucket::new(*rate, *burst), serializer: Serializer::new(*peak) }
            }
            Capacity::Trace(trace) => Self::Trace(Cursor::new(trace.clone())),
            Capacity::Varying(rate) => Self::Varying(Varying::new(rate.in_run(seed))),
        }
    }

    #[inline]
    pub(super) fn finish(&mut self, now: Timestamp, size: u32) -> Timestamp {
        match self {
            Self::Rate(serializer) => serializer.finish(now, size),
            Self::TokenBucket { bucket, serializer } => {
                let start = bucket.ready(now, size);
                bucket.take(start, size);
                serializer.finish(start, size)
            }
            Self::Trace(cursor) => cursor.finish(now, size),
            Self::Varying(varying) => varying.finish(now, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_never_drifts_from_its_rate() {
        // 1500 bytes at 7 Mbit/s are 1,714,285.714... ns: a million of them take exactly 1,714,285,714,285 ns.
        let mut serializer = Serializer::new(Rate::from_mbit(7));
        let mut time = Timestamp::ZERO;
        for _ in 0..1_000_000 {
            time = serializer.finish(time, 1500);
        }
        assert_eq!(time, Timestamp::from_nanos(1_714_285_714_285));
    }
}
