//! A router's two controllers: one decides how much the total traffic changes, the other how much each flow's
//! throughput changes.
//!
//! Reference: the paper, section 3.5, in the draft's form. In each control interval, one mean RTT long, the efficiency
//! controller compares the traffic that arrived with the capacity, and the queue that did not drain with none. The
//! fairness controller shares out an increase equally to flows and a decrease in proportion to what they send (AIMD),
//! and shuffles some of the traffic when little changes, so shares become equal. C is the capacity, y the rate of
//! arriving traffic, Q the persistent queue, d the mean RTT, s a packet's size; sums are over the packets of an
//! interval.
//!
//! 1. `d = sum(RTT * X) / sum(X)`
//! 2. `F = alpha * (C - y) - beta * Q / d`
//! 3. `h = max(0, gamma * y - |F|)`
//! 4. `C_p = (h + max(F, 0)) / sum(X)`, `C_n = (h + max(-F, 0)) / sum(s)`
//! 5. feedback of a packet: `C_p * X - C_n * s`, each term no more than what is left of its sum
//! 6. `Q`: the smallest queue of `max(2 ms, (d - queue / C) / 2)`
//!
//! Equation 5 writes the smaller of what the packet already says and the feedback. What another router took is used for
//! other packets: the negative share grows by it, as in the draft.
//!
//! The router learns the time from its packets: an interval ends with the first packet after it, and is computed for
//! its nominal end. An interval without traffic leaves nothing to share out.
//!
//! Differences: none known but rounding. Packets without a header count as traffic and get no feedback, as in ns-2.
//!
//! Status: worked examples; `flowstart validate xcp-fairness`.

use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::xcp::wire::{CongestionHeader, FixedTime, Format};

/// Mean RTT and queue interval before any traffic; ns-2: 50 ms.
const INITIAL_INTERVAL: f64 = 0.05;
/// Shortest control interval, in seconds; ns-2: 1 ms.
const LEAST_INTERVAL: f64 = 0.001;
/// Longest RTT that counts, in seconds; ns-2: 1 s. Flows with a longer one are counted with it.
const LONGEST_RTT: f64 = 1.0;
/// Shortest interval of the persistent queue, in seconds; the draft and ns-2: 2 ms.
const LEAST_QUEUE_INTERVAL: f64 = 0.002;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// Share of the spare bandwidth that is given away per mean RTT, 0.01 to 1; 0.4 (section 3.5).
    pub alpha: f64,
    /// Share of the persistent queue that is drained per mean RTT, 0.01 to 1; 0.226 (section 3.5, alpha^2 * sqrt 2).
    pub beta: f64,
    /// Share of the traffic that is shuffled per mean RTT, 0 to 1; 0.1 (section 3.5).
    pub gamma: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 0.4, beta: 0.226, gamma: 0.1 }
    }
}

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("alpha", self.alpha, 0.01..=1.0)?;
        ConfigError::unless_in("beta", self.beta, 0.01..=1.0)?;
        ConfigError::unless_in("gamma", self.gamma, 0.0..=1.0)
    }
}

/// A router at one output link. Rates are bytes per second, times seconds.
#[derive(Clone, Debug)]
pub struct Router {
    config: Config,
    capacity: f64,
    /// d.
    mean_rtt: f64,
    /// Length and end of the running control interval.
    interval: f64,
    interval_ends: Timestamp,
    /// End of the running interval of the persistent queue.
    queue_interval_ends: Timestamp,
    /// Q, and the smallest queue of the running interval.
    persistent_queue: f64,
    smallest_queue: f64,
    /// Of the running control interval: sum(s) of all packets, sum(X) and sum(RTT * X) of those with a header.
    input_traffic: f64,
    sum_x: f64,
    sum_rtt_x: f64,
    /// `C_p` and `C_n`, and what is left to share out.
    positive: f64,
    negative: f64,
    residue_positive: f64,
    residue_negative: f64,
}

impl Router {
    /// A router at a link of this bandwidth, before any traffic. Its first intervals begin with its first packet.
    pub fn new(config: Config, bandwidth: Rate) -> Self {
        Self {
            config,
            capacity: bandwidth.bits_per_sec() as f64 / 8.0,
            mean_rtt: INITIAL_INTERVAL,
            interval: INITIAL_INTERVAL,
            interval_ends: Timestamp::NEVER,
            queue_interval_ends: Timestamp::NEVER,
            persistent_queue: 0.0,
            smallest_queue: 0.0,
            input_traffic: 0.0,
            sum_x: 0.0,
            sum_rtt_x: 0.0,
            positive: 0.0,
            negative: 0.0,
            residue_positive: 0.0,
            residue_negative: 0.0,
        }
    }

    /// A packet of `size` arrives while `queue` waits.
    #[inline]
    pub fn on_arrival(&mut self, now: Timestamp, size: Bytes, header: Option<&CongestionHeader>, queue: Bytes) {
        if self.interval_ends == Timestamp::NEVER {
            self.interval_ends = now + seconds(self.interval);
            self.queue_interval_ends = now + seconds(self.interval);
        }
        self.advance(now, queue);
        self.smallest_queue = self.smallest_queue.min(queue.get() as f64);
        self.input_traffic += size.get() as f64;
        if let Some(header) = header.filter(|header| counts(header)) {
            let x = header.x.as_secs();
            self.sum_x += x;
            self.sum_rtt_x += header.rtt.as_secs().min(LONGEST_RTT) * x;
        }
    }

    /// A packet of `size` begins to leave, and `queue` remains: writes the feedback into its header.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes, header: Option<&mut CongestionHeader>, queue: Bytes) {
        self.advance(now, queue);
        self.smallest_queue = self.smallest_queue.min(queue.get() as f64);
        let Some(header) = header.filter(|header| header.format == Format::Standard) else { return };
        if header.rtt == FixedTime::ZERO {
            header.delta_throughput = header.delta_throughput.min(0);
            return;
        }
        let mut positive = (self.positive * header.x.as_secs()).min(self.residue_positive);
        let mut negative = (self.negative * size.get() as f64).min(self.residue_negative);
        let (feedback, wanted) = (positive - negative, f64::from(header.delta_throughput));
        if wanted >= feedback {
            header.delta_throughput = libm::floor(feedback) as i32;
        } else {
            // Another router gave less, or took more.
            negative = (negative + (feedback - wanted)).min(self.residue_negative);
            positive = wanted + negative;
        }
        self.residue_positive = (self.residue_positive - positive).max(0.0);
        self.residue_negative = (self.residue_negative - negative).max(0.0);
    }

    /// Ends the intervals whose time has come; `queue` waits since the last packet.
    fn advance(&mut self, now: Timestamp, queue: Bytes) {
        let queue = queue.get() as f64;
        while now >= self.queue_interval_ends {
            (self.persistent_queue, self.smallest_queue) = (self.smallest_queue, queue);
            let interval = ((self.mean_rtt - queue / self.capacity) / 2.0).max(LEAST_QUEUE_INTERVAL);
            self.queue_interval_ends = end_after(self.queue_interval_ends, interval, now);
        }
        while now >= self.interval_ends {
            let idle = self.input_traffic == 0.0;
            self.end_interval();
            let from = if idle { now } else { self.interval_ends };
            self.interval_ends = end_after(from, self.interval, from);
        }
    }

    /// Equations 1 to 4.
    fn end_interval(&mut self) {
        let input_bandwidth = self.input_traffic / self.interval;
        self.mean_rtt = if self.sum_x > 0.0 { self.sum_rtt_x / self.sum_x } else { INITIAL_INTERVAL };
        let (mut change, mut shuffled) = (0.0, 0.0);
        if self.input_traffic > 0.0 {
            let spare = self.capacity - input_bandwidth;
            change = self.config.alpha * spare - self.config.beta * self.persistent_queue / self.mean_rtt;
            shuffled = (self.config.gamma * input_bandwidth - libm::fabs(change)).max(0.0);
        }
        self.residue_positive = shuffled + change.max(0.0);
        self.residue_negative = shuffled + (-change).max(0.0);
        let per = |residue: f64, sum: f64| if sum > 0.0 { residue / sum } else { 0.0 };
        self.positive = per(self.residue_positive, self.sum_x);
        self.negative = per(self.residue_negative, self.input_traffic);
        (self.input_traffic, self.sum_x, self.sum_rtt_x) = (0.0, 0.0, 0.0);
        self.interval = self.mean_rtt.max(LEAST_INTERVAL);
    }
}

/// Whether a header takes part in the sums.
fn counts(header: &CongestionHeader) -> bool {
    header.format == Format::Standard && header.rtt > FixedTime::ZERO
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs(seconds)
}

/// The end of an interval of `length` that begins at `from`, or at `now` when all of it has passed: intervals in which
/// nothing happened need not be walked through.
fn end_after(from: Timestamp, length: f64, now: Timestamp) -> Timestamp {
    let end = from + seconds(length);
    if end > now { end } else { now + seconds(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s: 1 MB/s.
    const LINK: Rate = Rate::from_mbit(8);

    fn at(micros: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_micros(micros)
    }

    /// A header of a flow with an RTT of 50 ms and this time between its packets.
    fn header(x_ms: u64) -> CongestionHeader {
        CongestionHeader {
            format: Format::Standard,
            rtt: FixedTime::new(Duration::from_millis(50)),
            x: FixedTime::new(Duration::from_millis(x_ms)),
            delta_throughput: i32::MAX,
            reverse_feedback: 0,
        }
    }

    /// Arrivals of `count` packets of 1000 bytes, evenly over the 50 ms from `start`, that all find this queue.
    fn interval(router: &mut Router, start: u64, count: u64, x_ms: u64, queue: u64) {
        for packet in 0..count {
            let now = at(start + packet * 50_000 / count);
            router.on_arrival(now, Bytes::new(1000), Some(&header(x_ms)), Bytes::new(queue));
        }
    }

    fn leave(router: &mut Router, now: u64, mut header: CongestionHeader) -> i32 {
        router.on_departure(at(now), Bytes::new(1000), Some(&mut header), Bytes::ZERO);
        header.delta_throughput
    }

    #[test]
    fn the_spare_bandwidth_is_shared_out_over_the_packets_of_an_interval() {
        let mut router = Router::new(Config::default(), LINK);
        // 25 packets in 50 ms are 0.5 MB/s of 1 MB/s; F = 0.4 * 0.5 MB/s = 200 kB/s; 0.1 * 0.5 MB/s is less, so nothing
        // is shuffled. X = 2 ms, so sum(X) = 50 ms, and each packet gets 200 kB/s * 2 / 50 = 8 kB/s.
        interval(&mut router, 0, 25, 2, 0);
        assert!((leave(&mut router, 50_000, header(2)) - 8000).abs() <= 1);
        // All 25 of them get the rest, and the 26th nothing.
        let rest: i32 = (0..24).map(|packet| leave(&mut router, 50_100 + packet, header(2))).sum();
        assert!((rest - 24 * 8000).abs() <= 24, "{rest}");
        assert!(leave(&mut router, 51_000, header(2)) <= 1);
    }

    #[test]
    fn a_packet_for_a_longer_time_gets_more_of_an_increase() {
        let mut router = Router::new(Config::default(), LINK);
        // Flow a sends 20 packets, one in 2.5 ms; flow b 5, one in 10 ms. sum(X) = 20 * 2.5 + 5 * 10 = 100 ms, so each
        // flow gets half of 200 kB/s: an increase is equal for flows.
        for packet in 0..25 {
            let x = if packet % 5 == 0 {
                header(10)
            } else {
                CongestionHeader { x: FixedTime::from_secs(0.0025), ..header(1) }
            };
            router.on_arrival(at(packet * 2000), Bytes::new(1000), Some(&x), Bytes::ZERO);
        }
        assert!((leave(&mut router, 50_000, header(10)) - 20_000).abs() <= 1);
        let often = CongestionHeader { x: FixedTime::from_secs(0.0025), ..header(1) };
        assert!((leave(&mut router, 50_001, often) - 5000).abs() <= 1);
    }

    #[test]
    fn a_full_link_with_a_queue_takes_back_in_proportion_to_what_is_sent() {
        let mut router = Router::new(Config::default(), LINK);
        // y = C = 1 MB/s. The smallest queue of the first interval is 0, that of the next 10,000 bytes.
        interval(&mut router, 0, 50, 1, 10_000);
        interval(&mut router, 50_000, 50, 1, 10_000);
        // F = -0.226 * 10 kB / 50 ms = -45.2 kB/s; h = 100 - 45.2 = 54.8 kB/s. Every packet gets (54.8 - 54.8 - 45.2) /
        // 50 kB/s.
        let feedback = leave(&mut router, 100_100, header(1));
        assert!((feedback + 904).abs() <= 1, "{feedback}");
    }

    #[test]
    fn shuffling_moves_a_full_link_towards_equal_shares() {
        let mut router = Router::new(Config::default(), LINK);
        // y = C, no queue: F = 0, h = 0.1 * 1 MB/s = 100 kB/s. Flow a sends 40 packets, flow b 10.
        for packet in 0..50 {
            let x = if packet % 5 == 0 { 5.0 } else { 1.25 };
            let header = CongestionHeader { x: FixedTime::from_secs(x / 1000.0), ..header(1) };
            router.on_arrival(at(packet * 1000), Bytes::new(1000), Some(&header), Bytes::ZERO);
        }
        // sum(X) = 40 * 1.25 + 10 * 5 = 100 ms: each flow gets 50 kB/s, over 40 and 10 packets 1250 and 5000 B/s.
        // 100 kB/s over 50 packets are 2000 B/s taken of each: a loses 40 * 750 = 30 kB/s, which b wins.
        let feedback = |router: &mut Router, x: f64| {
            leave(router, 50_000, CongestionHeader { x: FixedTime::from_secs(x / 1000.0), ..header(1) })
        };
        assert!((feedback(&mut router, 1.25) + 750).abs() <= 1);
        assert!((feedback(&mut router, 5.0) - 3000).abs() <= 1);
    }

    #[test]
    fn a_router_leaves_what_another_made_smaller() {
        let mut router = Router::new(Config::default(), LINK);
        interval(&mut router, 0, 25, 2, 0);
        let small = CongestionHeader { delta_throughput: 500, ..header(2) };
        assert_eq!(leave(&mut router, 50_000, small), 500);
        let taken = CongestionHeader { delta_throughput: -700, ..header(2) };
        assert_eq!(leave(&mut router, 50_001, taken), -700);
        // Who has no RTT yet gets nothing, and feedback on its way back is not for this router.
        assert_eq!(leave(&mut router, 50_002, CongestionHeader { rtt: FixedTime::ZERO, ..header(2) }), 0);
        let minimal = CongestionHeader { format: Format::Minimal, delta_throughput: 9, ..header(2) };
        assert_eq!(leave(&mut router, 50_003, minimal), 9);
    }

    #[test]
    fn after_a_silence_nothing_old_is_shared_out() {
        let mut router = Router::new(Config::default(), LINK);
        interval(&mut router, 0, 25, 2, 0);
        // Two intervals have passed, the second without traffic.
        assert_eq!(leave(&mut router, 200_000, header(2)), 0);
    }

    #[test]
    fn wrong_parameters_are_refused() {
        assert!(Config { alpha: 1.5, ..Config::default() }.validate().is_err());
        assert!(Config { gamma: f64::NAN, ..Config::default() }.validate().is_err());
        assert_eq!(Config::default().validate(), Ok(()));
    }
}
