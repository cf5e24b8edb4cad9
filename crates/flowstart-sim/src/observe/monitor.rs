//! The packets that passed a link, and their waiting times there.

use flowstart_core::time::{Duration, Timestamp};

/// Counts of one flow at the monitored link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowAtLink {
    /// Wire bytes that left.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that the queue marked CE.
    pub marked: u64,
    /// Sum of the times they waited, in nanoseconds.
    pub waited_nanos: u64,
    /// When its first packet left.
    pub first: Option<Timestamp>,
    /// When its latest packet left.
    pub last: Option<Timestamp>,
    /// Wire bytes of all flows that had left before the flow's first packet.
    total_before: u64,
    /// Wire bytes of all flows that had left when the flow's latest packet had.
    total_at_last: u64,
}

impl FlowAtLink {
    /// The flow's share of all wire bytes that left between its first and its latest packet.
    pub fn share(&self) -> Option<f64> {
        let total = self.total_at_last - self.total_before;
        (total > 0).then(|| self.bytes as f64 / total as f64)
    }
}

/// A departure in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed {
    /// When the packet left the transmitter.
    pub time: Timestamp,
    /// Its flow.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Its waiting time.
    pub delay: Duration,
}

/// Watches one link.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// The link.
    pub link: u32,
    /// Counts of each flow.
    pub flows: Vec<FlowAtLink>,
    /// Waiting times since [`Monitor::restart`].
    pub delays: DelayHistogram,
    /// Wire bytes that left since the start of the run.
    pub total: u64,
    /// Every departure, when the log is on.
    pub log: Option<Vec<Departed>>,
    /// Every drop with its flow, when the log is on.
    pub drops: Vec<(Timestamp, u32)>,
}

impl Monitor {
    /// A monitor of `link`.
    pub fn new(link: u32) -> Self {
        Self { link, flows: Vec::new(), delays: DelayHistogram::default(), total: 0, log: None, drops: Vec::new() }
    }

    /// Forgets the waiting times so far.
    pub fn restart(&mut self) {
        self.delays = DelayHistogram::default();
    }

    /// The counts of a flow.
    pub fn flow(&mut self, flow: u32) -> &mut FlowAtLink {
        let index = flow as usize;
        if index >= self.flows.len() {
            self.flows.resize(index + 1, FlowAtLink::default());
        }
        &mut self.flows[index]
    }

    /// The counts of several flows together, from the first packet of any to the latest.
    pub fn joint(&mut self, flows: &[u32]) -> FlowAtLink {
        let mut joint = FlowAtLink::default();
        for flow in flows {
            let flow = self.flow(*flow).clone();
            if flow.first.is_none() {
                continue;
            }
            joint.bytes += flow.bytes;
            joint.packets += flow.packets;
            joint.marked += flow.marked;
            joint.waited_nanos += flow.waited_nanos;
            let is_first = joint.first.is_none();
            joint.total_before = if is_first { flow.total_before } else { joint.total_before.min(flow.total_before) };
            joint.total_at_last = joint.total_at_last.max(flow.total_at_last);
            joint.first = joint.first.into_iter().chain(flow.first).min();
            joint.last = joint.last.max(flow.last);
        }
        joint
    }

    /// A packet left the transmitter.
    pub fn departed(&mut self, departure: Departed) {
        let before = self.total;
        self.total += u64::from(departure.size);
        let total = self.total;
        self.delays.add(departure.delay);
        let flow = self.flow(departure.flow);
        if flow.first.is_none() {
            flow.first = Some(departure.time);
            flow.total_before = before;
        }
        flow.last = Some(departure.time);
        flow.bytes += u64::from(departure.size);
        flow.packets += 1;
        flow.waited_nanos += departure.delay.as_nanos();
        flow.total_at_last = total;
        if let Some(log) = &mut self.log {
            log.push(departure);
        }
    }

    /// The queue had marked a packet that left.
    pub fn marked(&mut self, flow: u32) {
        self.flow(flow).marked += 1;
    }

    /// A packet was dropped.
    pub fn dropped(&mut self, time: Timestamp, flow: u32) {
        if self.log.is_some() {
            self.drops.push((time, flow));
        }
    }
}

/// Significant bits kept of a delay: buckets are at most 1/64 wide.
const PRECISION_BITS: u32 = 6;

/// Waiting times in buckets of about 1.5 %, so that a run of any length needs the same memory.
#[derive(Clone, Debug, Default)]
pub struct DelayHistogram {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl DelayHistogram {
    fn bucket(nanos: u64) -> usize {
        let magnitude = (u64::BITS - nanos.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
        ((u64::from(magnitude) << PRECISION_BITS) + (nanos >> magnitude)) as usize
    }

    fn bucket_top(bucket: usize) -> u64 {
        let base = 1usize << PRECISION_BITS;
        if bucket < 2 * base {
            return bucket as u64;
        }
        let magnitude = (bucket >> PRECISION_BITS) - 1;
        let mantissa = bucket - (magnitude << PRECISION_BITS);
        ((mantissa as u64 + 1) << magnitude) - 1
    }

    /// Adds a waiting time.
    pub fn add(&mut self, delay: Duration) {
        let bucket = Self::bucket(delay.as_nanos());
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.max = self.max.max(delay);
    }

    /// The longest waiting time, `None` when nothing was added.
    pub fn max(&self) -> Option<Duration> {
        (self.total > 0).then_some(self.max)
    }

    /// The waiting time that a fraction `p` of packets does not exceed, to about 1.5 %.
    pub fn quantile(&self, p: f64) -> Option<Duration> {
        if self.total == 0 {
            return None;
        }
        let rank = libm::ceil(p * self.total as f64).max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(Duration::from_nanos(Self::bucket_top(bucket)).min(self.max));
            }
        }
        Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_their_precision() {
        let mut histogram = DelayHistogram::default();
        (1..=1000u64).for_each(|us| histogram.add(Duration::from_micros(us)));
        assert_eq!(histogram.max(), Some(Duration::from_micros(1000)));
        for (p, expected) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(p).unwrap().as_nanos() as f64 / 1000.0;
            assert!((found / expected - 1.0).abs() < 0.016, "{p}: {found}");
        }
        assert_eq!(DelayHistogram::default().quantile(0.5), None);
    }

    #[test]
    fn buckets_are_contiguous_and_contain_their_values() {
        for nanos in (0..100_000u64).chain([1 << 40, u64::MAX >> 1]) {
            let bucket = DelayHistogram::bucket(nanos);
            assert!(DelayHistogram::bucket_top(bucket) >= nanos);
            assert!(bucket == 0 || DelayHistogram::bucket_top(bucket - 1) < nanos);
        }
    }

    #[test]
    fn share_counts_only_the_time_of_the_flow() {
        let mut monitor = Monitor::new(0);
        let mut depart = |time: u64, flow| {
            monitor.departed(Departed { time: Timestamp::from_nanos(time), flow, size: 100, delay: Duration::ZERO });
        };
        for (time, flow) in [(1, 0), (2, 0), (3, 1), (4, 0), (5, 0), (6, 1), (7, 0)] {
            depart(time, flow);
        }
        // Between its first and last packet flow 1 has 2 of 4 packets.
        assert_eq!(monitor.flow(1).share(), Some(0.5));
        // Together they have all; flow 2 has nothing.
        assert_eq!(monitor.joint(&[2, 1]), *monitor.flow(1));
        let both = monitor.joint(&[1, 0, 2]);
        assert_eq!((both.share(), both.packets, both.first), (Some(1.0), 7, Some(Timestamp::from_nanos(1))));
    }
}
