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
        let last = self.opportunities_before(start) + needed - 1;
        let time = milliseconds(self.times[(last % per_period) as usize]);
        Timestamp::ZERO + self.period() * (last / per_period) + time
    }

    /// The mean rate of the part that is `window` long and ended `age` before `start`; `None` if the link gave nothing
    /// in it. Together they must not be longer than the period. Before its beginning is its end.
    pub fn rate_before(&self, start: Timestamp, age: Duration, window: Duration) -> Option<Rate> {
        let end = (start + self.period()) - age;
        let opportunities = self.opportunities_before(end) - self.opportunities_before(end - window);
        Rate::from_transfer(Bytes::new(opportunities * u64::from(OPPORTUNITY)), window)
    }

    /// Opportunities from zero up to `time`, with the one at the end of a repetition in that repetition.
    fn opportunities_before(&self, time: Timestamp) -> u64 {
        let (repetition, within) = self.place_of(time);
        repetition * self.times.len() as u64 + self.times.partition_point(|ms| milliseconds(*ms) < within) as u64
    }

    /// The repetition of this time, and the place in it.
    fn place_of(&self, time: Timestamp) -> (u64, Duration) {
        let (time, period) = (time.as_nanos(), self.period().as_nanos());
        (time / period, Duration::from_nanos(time % period))
    }

    /// The time after which it repeats.
    pub fn period(&self) -> Duration {
        milliseconds(self.period)
    }

    /// The average rate over one period.
    pub fn mean_rate(&self) -> Rate {
        let bytes = Bytes::new(self.times.len() as u64 * u64::from(OPPORTUNITY));
        // A trace without opportunities or without a period is refused when it is read.
        Rate::from_transfer(bytes, Duration::from_millis(u64::from(self.period))).unwrap_or(Rate::ZERO)
    }
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
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
    fn the_past_of_a_start_is_what_the_link_gave() {
        let trace = CapacityTrace::parse("1\n10\n10\n100\n").unwrap();
        let before = |start, age, window| {
            let rate = trace.rate_before(ms(start), Duration::from_millis(age), Duration::from_millis(window));
            rate.map(Rate::bits_per_sec)
        };
        // Two packets of 12,000 bits in 10 ms.
        assert_eq!(before(15, 0, 10), Some(2_400_000));
        assert_eq!(before(25, 10, 10), before(15, 0, 10));
        // The opportunity at a time is not before it.
        assert_eq!(before(10, 0, 10), Some(1_200_000));
        assert_eq!(before(90, 0, 50), None);
        // Before the beginning is the end, and each repetition is like the first.
        assert_eq!(before(0, 0, 100), Some(480_000));
        // The packets at 100 ms, 5 ms before the start, and at 1 ms.
        assert_eq!(before(5, 0, 10), Some(2_400_000));
        assert_eq!(before(5, 4, 96), Some(375_000));
        assert_eq!(before(1_005, 4, 96), before(5, 4, 96));
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
