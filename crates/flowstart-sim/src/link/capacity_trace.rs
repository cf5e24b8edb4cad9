//! Recorded capacity of a link in Mahimahi's format.
//!
//! One line is one millisecond timestamp: an opportunity to send up to 1500 bytes. A repeated timestamp is several
//! opportunities in that millisecond. The trace repeats when it ends. Bytes that a packet leaves unused serve the next
//! waiting packet. An opportunity without a waiting packet is lost.

use std::fmt;
use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// Bytes that one opportunity carries.
pub const OPPORTUNITY: u32 = 1500;

/// A trace with at least one opportunity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityTrace {
    /// Times of the opportunities in milliseconds, ascending.
    times: Vec<u32>,
    /// After this many milliseconds it repeats.
    period: u32,
}

/// A trace that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// A line is not a number of milliseconds.
    Malformed {
        /// Line, from 1.
        line: usize,
        /// Its text.
        found: String,
    },
    /// A timestamp is smaller than the one before.
    NotMonotonic {
        /// Line, from 1.
        line: usize,
        /// The timestamp.
        time: u32,
        /// The one before.
        previous: u32,
    },
    /// There is no opportunity, or all of them are at 0 ms.
    Empty,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { line, found } => {
                write!(f, "line {line}: `{found}` is not a whole number of milliseconds (0 to 4294967295)")
            }
            Self::NotMonotonic { line, time, previous } => {
                write!(f, "line {line}: {time} ms comes after {previous} ms; timestamps must not decrease")
            }
            Self::Empty => f.write_str("the trace has no opportunity after 0 ms; one line per opportunity is expected"),
        }
    }
}

impl std::error::Error for TraceError {}

impl CapacityTrace {
    /// Reads a trace.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let content = line.trim();
            if content.is_empty() {
                continue;
            }
            let time: u32 = content.parse().map_err(|_| TraceError::Malformed {
                line: line_number,
                found: content.chars().take(40).flat_map(char::escape_default).collect(),
            })?;
            if let Some(&previous) = times.last()
                && time < previous
            {
                return Err(TraceError::NotMonotonic { line: line_number, time, previous });
            }
            times.push(time);
        }
        match times.last() {
            Some(&period) if period > 0 => Ok(Self { times, period }),
            _ => Err(TraceError::Empty),
        }
    }

    /// The time when `amount` has left if it is sent without pause from `start` on.
    pub fn finish_after(&self, start: Timestamp, amount: Bytes) -> Timestamp {
        let needed = amount.get().div_ceil(u64::from(OPPORTUNITY)).max(1);
        let per_period = self.times.len() as u64;
        let period = Duration::from_millis(u64::from(self.period));
        let repetition = start.as_nanos() / period.as_nanos();
        let within = Duration::from_nanos(start.as_nanos() % period.as_nanos());
        let first = self.times.partition_point(|ms| Duration::from_millis(u64::from(*ms)) < within) as u64;
        let last = first + needed - 1;
        let time = Duration::from_millis(u64::from(self.times[(last % per_period) as usize]));
        Timestamp::ZERO + period * (repetition + last / per_period) + time
    }

    /// The time after which it repeats.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.period))
    }

    /// The average rate over one period.
    pub fn mean_rate(&self) -> Rate {
        let bytes = Bytes::new(self.times.len() as u64 * u64::from(OPPORTUNITY));
        // A trace without opportunities or without a period is refused when it is read.
        Rate::from_transfer(bytes, Duration::from_millis(u64::from(self.period))).unwrap_or(Rate::ZERO)
    }
}

/// A place in a repeating trace.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: Arc<CapacityTrace>,
    /// The next opportunity not yet used.
    next: usize,
    /// Start of the current repetition.
    base: Timestamp,
    /// Remaining bytes of the opportunity used last, and its time.
    left: (Timestamp, u32),
}

impl Cursor {
    pub(crate) fn new(trace: Arc<CapacityTrace>) -> Self {
        Self { trace, next: 0, base: Timestamp::ZERO, left: (Timestamp::ZERO, 0) }
    }

    /// The time when a packet of `size` that waits from `now` on has left.
    pub(crate) fn finish(&mut self, now: Timestamp, size: u32) -> Timestamp {
        let mut needed = size;
        if self.left.0 == now {
            let used = needed.min(self.left.1);
            needed -= used;
            self.left.1 -= used;
        }
        let mut time = now;
        while needed > 0 {
            time = self.next_opportunity(now);
            let used = needed.min(OPPORTUNITY);
            needed -= used;
            self.left = (time, OPPORTUNITY - used);
        }
        time
    }

    /// Takes the first unused opportunity not before `now`.
    fn next_opportunity(&mut self, now: Timestamp) -> Timestamp {
        let period = Duration::from_millis(u64::from(self.trace.period));
        // A long silence skips whole repetitions at once.
        let silent = now.since(self.base).as_nanos() / period.as_nanos();
        if silent > 1 {
            self.base += period * (silent - 1);
            self.next = 0;
        }
        loop {
            let Some(&millis) = self.trace.times.get(self.next) else {
                self.base += period;
                self.next = 0;
                continue;
            };
            self.next += 1;
            let time = self.base + Duration::from_millis(u64::from(millis));
            if time >= now {
                return time;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> Cursor {
        Cursor::new(Arc::new(CapacityTrace::parse(text).unwrap()))
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn unused_bytes_serve_the_next_waiting_packet() {
        let mut cursor = cursor("5\n5\n9\n20\n");
        // 1000 of the first 1500 bytes at 5 ms; the next 1000 take the other 500 and 500 of the second opportunity.
        assert_eq!(cursor.finish(ms(0), 1000), ms(5));
        assert_eq!(cursor.finish(ms(5), 1000), ms(5));
        assert_eq!(cursor.finish(ms(5), 1000), ms(5));
        assert_eq!(cursor.finish(ms(5), 1), ms(9));
        // At 10 ms the opportunity at 9 ms is lost.
        assert_eq!(cursor.finish(ms(10), 1500), ms(20));
    }

    #[test]
    fn the_trace_repeats() {
        let mut cursor = cursor("1\n10\n");
        let times: Vec<Timestamp> = (0..4).map(|_| cursor.finish(ms(0), 1500)).collect();
        assert_eq!(times, [ms(1), ms(10), ms(11), ms(20)]);
        assert_eq!(cursor.finish(ms(1_000_005), 1500), ms(1_000_010));
    }

    #[test]
    fn the_limit_counts_opportunities_across_repetitions() {
        let trace = CapacityTrace::parse("1\n10\n").unwrap();
        assert_eq!(trace.finish_after(ms(0), Bytes::new(1500)), ms(1));
        assert_eq!(trace.finish_after(ms(2), Bytes::new(1501)), ms(11));
        assert_eq!(trace.finish_after(ms(12), Bytes::new(4500)), ms(30));
    }

    #[test]
    fn a_large_packet_takes_several_opportunities() {
        assert_eq!(cursor("1\n2\n3\n").finish(ms(0), 3001), ms(3));
    }

    #[test]
    fn bad_traces_are_refused_with_their_line() {
        let error = |text| CapacityTrace::parse(text).unwrap_err().to_string();
        assert!(error("1\nx\n").contains("line 2"));
        assert!(error("5\n4\n").contains("line 2"));
        assert!(error("").contains("no opportunity"));
        assert!(error("0\n0\n").contains("no opportunity"));
        assert!(error("-3").contains("line 1"));
    }
}
