//! The service rate of a queue, measured from departures.
//!
//! Reference: RFC 8033, appendix B, and ns-2's PIE, whose order of steps differs. A measurement begins when at least
//! `dq_threshold` bytes wait, and ends when as many have left. The averages of the two differ in their weights. The
//! RFC's section 5.2 begins a measurement before it counts the first packet, as in ns-2; its appendix begins
//! afterwards. This file follows the appendix. Linux counts like ns-2, with a weight of 1/8.
//!
//! A weakness of the reference: it never measures a queue that never holds `dq_threshold` bytes. At 1 Mbit/s 16 KiB are
//! 131 ms of queue, so an AQM that depends on the measurement is inactive until the delay is far above its target.

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// How measurements are made and averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// A packet is counted before a measurement may begin; a new sample has the weight `dq_threshold` / 2^16.
    Rfc8033,
    /// A measurement begins before its first packet is counted, so the first one after a pause sees a packet more than
    /// it has intervals; a new sample has the weight 1/2.
    Ns2,
}

/// The estimator and its state, under the names of the reference.
#[derive(Clone, Debug)]
pub struct DepartureRate {
    cycle: Cycle,
    dq_threshold: u64,
    in_measurement: bool,
    measurement_start: Timestamp,
    dq_count: u64,
    /// Average rate in bytes/s, 0 before the first sample.
    avg_dq_rate: f64,
}

impl DepartureRate {
    /// Measures with this threshold, at least one byte.
    pub fn new(cycle: Cycle, dq_threshold: Bytes) -> Self {
        Self {
            cycle,
            dq_threshold: dq_threshold.get().max(1),
            in_measurement: false,
            measurement_start: Timestamp::ZERO,
            dq_count: 0,
            avg_dq_rate: 0.0,
        }
    }

    /// A packet of `size` leaves, `waiting` bytes stay behind.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: u32, waiting: Bytes) {
        if self.cycle == Cycle::Ns2 && !self.in_measurement && waiting.get() >= self.dq_threshold {
            self.begin(now);
        }
        if self.in_measurement {
            self.dq_count += u64::from(size);
            if self.dq_count >= self.dq_threshold {
                self.finish(now);
                // ns-2 goes on at once only with more than the threshold.
                if self.cycle == Cycle::Ns2 && waiting.get() > self.dq_threshold {
                    self.begin(now);
                }
            }
        }
        if self.cycle == Cycle::Rfc8033 && !self.in_measurement && waiting.get() >= self.dq_threshold {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Timestamp) {
        self.in_measurement = true;
        self.measurement_start = now;
        self.dq_count = 0;
    }

    fn finish(&mut self, now: Timestamp) {
        self.in_measurement = false;
        let dq_time = now.since(self.measurement_start).as_secs();
        if dq_time <= 0.0 {
            return;
        }
        let (counted, threshold) = (self.dq_count as f64, self.dq_threshold as f64);
        self.avg_dq_rate = match self.cycle {
            Cycle::Ns2 if self.avg_dq_rate > 0.0 => 0.5 * self.avg_dq_rate + 0.5 * counted / dq_time,
            Cycle::Ns2 => counted / dq_time,
            // The RFC averages times per threshold, not rates, and takes the threshold for the counted bytes.
            Cycle::Rfc8033 if self.avg_dq_rate > 0.0 => {
                let weight = (threshold / 65536.0).min(1.0);
                threshold / (dq_time * weight + threshold / self.avg_dq_rate * (1.0 - weight))
            }
            Cycle::Rfc8033 => threshold / dq_time,
        };
    }

    /// Forgets the rate; a running measurement goes on.
    pub fn forget(&mut self) {
        self.avg_dq_rate = 0.0;
    }

    /// How long `bytes` wait at the measured rate; `None` before the first sample.
    pub fn delay(&self, bytes: Bytes) -> Option<Duration> {
        (self.avg_dq_rate > 0.0).then(|| Duration::from_secs(bytes.get() as f64 / self.avg_dq_rate))
    }

    /// The measured rate; `None` before the first sample.
    pub fn rate(&self) -> Option<Rate> {
        (self.avg_dq_rate > 0.0).then(|| Rate::from_bits_per_sec((self.avg_dq_rate * 8.0) as u64))
    }
}

/// The rate of the link behind a queue: from the host, or else from departures.
#[derive(Clone, Debug)]
pub struct LinkRate {
    known: Option<Rate>,
    measured: DepartureRate,
}

impl LinkRate {
    /// With what the host knows of its link.
    pub fn new(known: Option<Rate>) -> Self {
        // Four packets of 1500 bytes: enough to measure, and few enough to wait on slow links.
        Self { known, measured: DepartureRate::new(Cycle::Rfc8033, Bytes::new(6000)) }
    }

    /// A packet of `size` leaves, `waiting` bytes stay behind.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: u32, waiting: Bytes) {
        if self.known.is_none() {
            self.measured.on_departure(now, size, waiting);
        }
    }

    /// Whether the host does not know the rate, so departures have to show it.
    pub fn is_measured(&self) -> bool {
        self.known.is_none()
    }

    /// The rate; `None` while nothing is known.
    pub fn get(&self) -> Option<Rate> {
        self.known.or_else(|| self.measured.rate()).filter(|rate| *rate > Rate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Full packets leave every 1.2 ms (10 Mbit/s), `waiting` bytes are behind each; what is measured, in bytes/s.
    fn measured(cycle: Cycle, threshold: u64, waiting: u64, packets: u64) -> f64 {
        let mut estimator = DepartureRate::new(cycle, Bytes::new(threshold));
        for index in 0..packets {
            estimator.on_departure(Timestamp::from_nanos(index * 1_200_000), 1500, Bytes::new(waiting));
        }
        estimator.avg_dq_rate
    }

    #[test]
    fn the_first_sample_of_ns2_sees_seven_packets_in_six_intervals() {
        // 10,000 bytes are reached with the seventh packet, 7.2 ms after the first: 10,500 / 0.0072 = 1,458,333
        // bytes/s, 16.7 % above the link's 1,250,000.
        assert!((measured(Cycle::Ns2, 10_000, 10_000, 7) - 1_458_333.3).abs() < 1.0);
        // The second sample counts seven in seven, because it began with the end of the first: the average of both.
        assert!((measured(Cycle::Ns2, 10_000, 10_500, 14) - (1_458_333.3 + 1_250_000.0) / 2.0).abs() < 1.0);
    }

    #[test]
    fn rfc_8033_counts_after_the_beginning() {
        // The first packet only begins. 16,384 bytes are reached by the eleventh after it, 13.2 ms later, and count as
        // 16,384.
        assert_eq!(measured(Cycle::Rfc8033, 16_384, 16_384, 11), 0.0);
        assert!((measured(Cycle::Rfc8033, 16_384, 16_384, 12) - 16_384.0 / 0.0132).abs() < 1.0);
    }

    #[test]
    fn a_short_queue_is_never_measured() {
        assert_eq!(measured(Cycle::Rfc8033, 16_384, 16_383, 1000), 0.0);
        assert_eq!(measured(Cycle::Ns2, 10_000, 9_999, 1000), 0.0);
    }

    #[test]
    fn a_known_rate_is_not_measured() {
        let mut rate = LinkRate::new(Some(Rate::from_mbit(10)));
        let mut unknown = LinkRate::new(None);
        for index in 0..100 {
            let now = Timestamp::from_nanos(index * 2_400_000);
            rate.on_departure(now, 1500, Bytes::new(60_000));
            unknown.on_departure(now, 1500, Bytes::new(60_000));
        }
        assert_eq!(rate.get(), Some(Rate::from_mbit(10)));
        // 1500 bytes every 2.4 ms.
        assert_eq!(unknown.get(), Some(Rate::from_mbit(5)));
        assert_eq!(LinkRate::new(None).get(), None);
    }
}
