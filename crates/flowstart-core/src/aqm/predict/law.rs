//! Which packets are signalled. Knows arrivals, departures and how much waits, not the queue itself.

use super::background::Background;
use super::busy_period::BusyPeriod;
use super::estimate::{Estimate, INITIAL_WINDOWS, fit};
use super::flow_table::{FlowTable, HANDSHAKE};
use super::opening::Openings;
use super::service_rate::ServiceRate;
use super::silences::Silences;
use super::volume::VolumeLog;
use super::{Config, LoadEstimate, Trigger};
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// Packets beyond the initial windows before anything is estimated.
const GUARD_PACKETS: f64 = 4.0;
/// A constant rate takes twice as long for the second half of a volume as for the quarter before; slow start about as
/// long.
const LINEAR_RATIO: f64 = 1.6;
/// While the link is saturated the clock of departures also makes slow start linear. But then the queue takes (g - 1) /
/// g of the arrivals, a third or a half. A load that only fills the link does not change the queue.
const QUEUE_SHARE: f64 = 0.15;
/// An estimate lapses when the volume has grown by this factor without a new one: half an octave is not exponential
/// growth.
const FRESH: f64 = 1.4;
/// Measured silences may be this much longer than the RTT: time between the packets of a round.
const SILENCE: f64 = 0.9;
/// The part of the link that background never takes from the estimate.
const LEAST_AVAILABLE: f64 = 0.25;
/// Assumed growth before it shows: between 1.5 and 2, so the error is at most a sixth for either.
const EARLY_GROWTH: f64 = 1.75;
/// Growth shows when this many times the initial windows have arrived.
const EARLY: f64 = 3.0;
/// Bounds of the measured growth: an acknowledgement for several packets, and for each.
const GROWTH: (f64, f64) = (1.3, 2.0);
/// Windows that grow by less do not grow.
const LEAST_GROWTH: f64 = 1.25;
/// After pauses, growth counts when this many packets have been answered.
const LEAST_CAUSES: f64 = 3.0;
/// After pauses, growth counts when at least this part of the data sent without an answer is known to be initial
/// windows.
const MOST_WINDOWS: f64 = 0.6;
/// A lag shorter than this part of the RTT that handshakes showed refutes that RTT.
const THINKING: f64 = 0.75;
/// An estimate of windows beyond this many times what the link takes in an RTT says that there is a queue.
const FULL: f64 = 1.5;
/// At least this part of the excess must be visible in the queue. Otherwise the estimate is wrong.
const VISIBLE: f64 = 0.5;
/// Packets of each active flow that the fallback lets wait if it would have to drop.
const LEAST_PACKETS: f64 = 4.0;
/// Bounds of the fallback's interval, in seconds.
const INTERVAL: (f64, f64) = (0.02, 1.0);
/// A flow whose RTT is known has been idle after this many RTTs, but not before the least time in seconds.
const IDLE_RTTS: f64 = 3.0;
const LEAST_IDLE: f64 = 0.2;
/// The queue that launches may build, as a part of what the link takes in an RTT.
const LAUNCH_QUEUE: f64 = 0.5;
/// RTTs for which a flow whose launch was refused has no more of the queue.
const LAUNCH_RTTS: f64 = 10.0;
/// Signals of a transient go out for this many RTTs: every flow sends within one.
const SIGNAL_RTTS: f64 = 2.0;

/// The state of the law. Times are in seconds, volumes in bytes, rates in bytes a second.
#[derive(Clone, Debug)]
pub(super) struct Law {
    /// Load at which slow start should end.
    threshold: f64,
    idle: f64,
    default_interval: f64,
    flows: FlowTable,
    /// The current transient; flows of an earlier one are not young.
    epoch: u64,
    /// Flows that are young, and flows that became young in this epoch.
    young: u32,
    joined: u32,
    arrived: VolumeLog,
    departed: VolumeLog,
    /// Largest packet of the epoch, and of all.
    segment: f64,
    largest: f64,
    estimate: Option<Estimate>,
    openings: Openings,
    /// Connections among these flows, as far as handshakes tell.
    connections: u32,
    /// Start of the signals, and bytes of a connection's window.
    signalling: Option<f64>,
    window: f64,
    /// RTT of the last transient, and the fallback's interval for it.
    rtt: Option<f64>,
    fallback: Option<f64>,
    background: Background,
    silences: Silences,
    busy: BusyPeriod,
    /// Bytes that the flows of the epoch have sent without an answer.
    unasked: f64,
    /// When the queue was last empty.
    empty_at: f64,
    service: ServiceRate,
    triggers: u64,
    last_trigger: Option<Trigger>,
}

impl Law {
    pub(super) fn new(config: &Config, rate: Option<f64>) -> Self {
        let interval = config.interval.as_secs();
        Self {
            threshold: config.load,
            idle: config.idle.as_secs(),
            default_interval: interval,
            flows: FlowTable::new(config.flows, config.idle.as_secs()),
            epoch: 1,
            young: 0,
            joined: 0,
            arrived: VolumeLog::new(),
            departed: VolumeLog::new(),
            segment: 1.0,
            largest: 0.0,
            estimate: None,
            openings: Openings::default(),
            connections: 0,
            signalling: None,
            window: 0.0,
            rtt: None,
            fallback: None,
            background: Background::default(),
            silences: Silences::default(),
            busy: BusyPeriod::default(),
            unasked: 0.0,
            empty_at: 0.0,
            service: ServiceRate::new(rate),
            triggers: 0,
            last_trigger: None,
        }
    }

    /// Forgets the transient; flows that were young in it are background from now on.
    fn end_epoch(&mut self, now: f64) {
        self.epoch += 1;
        self.young = 0;
        self.joined = 0;
        self.arrived.clear();
        self.departed.clear();
        self.segment = 1.0;
        self.estimate = None;
        self.openings = Openings::default();
        self.connections = 0;
        self.signalling = None;
        self.silences = Silences::since(now);
        self.busy = BusyPeriod::default();
        self.unasked = 0.0;
    }

    /// A packet of `size` bytes arrives where `backlog` bytes wait. Returns whether to drop it, because it belongs to a
    /// launch that no signal can end in time.
    pub(super) fn arrive(&mut self, now: Timestamp, flow: u32, size: u32, backlog: Bytes) -> bool {
        let (now, size, backlog) = (now.as_secs(), f64::from(size), backlog.get() as f64);
        if backlog == 0.0 {
            let (arrived, departed) = (self.arrived.volume(), self.departed.volume());
            self.busy = BusyPeriod { arrived, departed, ..BusyPeriod::default() };
            self.empty_at = now;
        }
        self.background.update(now);
        self.largest = self.largest.max(size);
        let over = self.signalling.is_some_and(|since| now - since > SIGNAL_RTTS * self.signal_time());
        if self.young > 0 && (over || now - self.silences.last() > self.idle) {
            self.end_epoch(now);
        }
        let latest = self.flows.bucket(flow, now);
        let idle = idle_time(latest.rtt, self.idle);
        let small = size <= HANDSHAKE;
        if now - latest.last > idle && latest.told && !small {
            // Its slow start ends at the ssthresh of the last signal.
            latest.begin(now, 0);
        } else if now - latest.last > idle {
            let was_young = latest.epoch == self.epoch;
            if self.young == 0 {
                self.end_epoch(now);
                self.busy.standing = backlog;
            }
            self.young += u32::from(!was_young);
            self.joined += 1;
            let epoch = self.epoch;
            self.flows.bucket(flow, now).begin(now, epoch);
        }
        let idle_at = self.empty_at;
        let bucket = self.flows.bucket(flow, now);
        let young = bucket.epoch == self.epoch;
        let counted = core::mem::replace(&mut bucket.interval, self.background.interval) == self.background.interval;
        let linear = bucket.count(now, size, idle_at) && young;
        self.connections += u32::from(young && (small || bucket.bytes == size));
        let unasked = bucket.add_unasked();
        let (first, bytes) = (bucket.first, bucket.bytes);
        let known = bucket.opening.arrived(now, size, small).filter(|_| young);
        let judged = bucket.may_be_refused(self.largest);
        let (refused, launches) = if judged { self.judge_launch(flow, now, backlog) } else { (false, false) };
        self.background.flows.0 += u32::from(!counted);
        known.into_iter().for_each(|known| self.openings.add(known));
        if !young {
            self.background.bytes += size;
            return refused;
        }
        if linear && !launches {
            self.settle_linear(flow, now, first, bytes, size);
            return false;
        }
        self.unasked += unasked;
        self.segment = self.segment.max(size);
        self.silences.packet(now, self.arrived.volume());
        let grown = self.arrived.add(size, now, backlog);
        let (arrived, departed) = (self.arrived.volume(), self.departed.volume());
        let (arrived, departed) = self.busy.volumes(arrived, departed);
        self.busy.unasked.packet(arrived, departed);
        if grown && self.signalling.is_none() {
            self.update_estimate(now, backlog);
        }
        refused
    }

    /// Whether to drop the packet of a launch that just arrived, and whether one of the flow was dropped lately. The
    /// queue that launches may build is no less than a loss needs to be noticed.
    fn judge_launch(&mut self, flow: u32, now: f64, backlog: f64) -> (bool, bool) {
        let rtt = self.openings.rtt().unwrap_or(self.default_interval);
        let queue = LAUNCH_QUEUE * rtt * self.service.rate.unwrap_or(f64::INFINITY);
        let queue = queue.max(self.least_backlog().get() as f64);
        let (largest, within) = (self.largest, LAUNCH_RTTS * rtt);
        let bucket = self.flows.bucket(flow, now);
        (bucket.is_refused(now, largest, within, backlog > queue), bucket.refused > now - within)
    }

    /// A constant rate is background, and has been since it began.
    fn settle_linear(&mut self, flow: u32, now: f64, first: f64, bytes: f64, size: f64) {
        self.arrived.subtract_ramp(first, now, bytes - size);
        self.departed.subtract_ramp(first, now, bytes - size);
        self.background.rate += (bytes - size) / (now - first).max(1e-6);
        let (arrived, departed) = (self.arrived.volume(), self.departed.volume());
        self.busy = BusyPeriod { arrived, departed, ..BusyPeriod::default() };
        self.estimate = None;
        self.settle(flow, now);
        self.joined = self.joined.saturating_sub(1);
    }

    /// Ends the flow's youth.
    fn settle(&mut self, flow: u32, now: f64) {
        let epoch = self.epoch;
        let rtt = self.estimate.map(|estimate| estimate.rtt);
        let bucket = self.flows.bucket(flow, now);
        if bucket.epoch != epoch {
            return;
        }
        bucket.epoch = 0;
        bucket.rtt = rtt.unwrap_or(bucket.rtt);
        self.young = self.young.saturating_sub(1);
        if self.young == 0 {
            self.end_epoch(now);
        }
    }

    fn signal_time(&self) -> f64 {
        self.rtt.unwrap_or(self.default_interval).max(INTERVAL.0)
    }

    /// Whether the volume grows faster than a constant load, or one that only fills the link, would.
    fn grows(&self, now: f64, backlog: f64) -> bool {
        let volume = self.arrived.volume();
        let (Some(half), Some(quarter)) = (self.arrived.reached(volume / 2.0), self.arrived.reached(volume / 4.0))
        else {
            return false;
        };
        if self.empty_at > half.time {
            now - half.time <= LINEAR_RATIO * (half.time - quarter.time)
        } else {
            backlog - half.backlog >= QUEUE_SHARE * (volume - half.volume)
        }
    }

    /// Whether the queue has also grown over the later half of the busy period. Windows sent at once fill it in the
    /// first half.
    fn queue_grows(&self, now: f64, backlog: f64) -> bool {
        let begin = self.empty_at.max(self.arrived.first().map_or(0.0, |first| first.time));
        let middle = self.arrived.mark_at((begin + now) / 2.0);
        middle.is_none_or(|middle| backlog - middle.backlog >= QUEUE_SHARE * (self.arrived.volume() - middle.volume))
    }

    fn update_estimate(&mut self, now: f64, backlog: f64) {
        let windows = f64::from(self.joined.max(1)) * self.segment;
        // What has arrived may still be initial windows.
        let largest = (INITIAL_WINDOWS[1] * windows).max(self.unasked);
        if self.arrived.volume() < largest + GUARD_PACKETS * self.segment || !self.grows(now, backlog) {
            return;
        }
        let silence = SILENCE * self.silences.longest();
        let estimate = fit(now, &self.arrived, &self.departed, [windows, self.unasked], self.segment, silence);
        self.estimate = estimate.or(self.estimate);
    }

    /// The rate that background leaves.
    fn available(&self) -> Option<f64> {
        let rate = self.service.rate?;
        Some((rate - self.background.rate).max(LEAST_AVAILABLE * rate))
    }

    /// The growth of windows: from complete flights; else, after handshakes, the usual value; else, after pauses, the
    /// answers so far over their possible causes.
    fn opening_growth(&self, now: f64) -> Option<f64> {
        let openings = self.openings;
        if let Some(measured) = openings.growth() {
            return Some(measured);
        }
        if !openings.paused {
            return (self.arrived.volume() < EARLY * openings.initial).then_some(EARLY_GROWTH);
        }
        if openings.initial < MOST_WINDOWS * self.unasked {
            return None;
        }
        let causes = self.departed.at(now - openings.rtt()?);
        let answers = self.arrived.volume() - openings.initial;
        // Each flow may be a packet ahead of its share.
        let margin = f64::from(openings.flows + 1) * self.segment;
        (causes >= LEAST_CAUSES * self.segment && answers - margin >= LEAST_GROWTH * causes).then(|| answers / causes)
    }

    /// The estimated load now and an RTT ahead.
    pub(super) fn load(&self, now: f64) -> Option<LoadEstimate> {
        let available = self.available()?;
        // Measured windows that did not grow.
        let complete = self.openings.flows == self.joined;
        let growth = self.opening_growth(now);
        if complete && growth.is_some_and(|growth| growth < LEAST_GROWTH) {
            return None;
        }
        let opening = growth.and_then(|growth| self.opening_load(available, growth));
        let Some(estimate) = self.estimate else { return opening };
        // An RTT from handshakes is too long if servers think before they answer, which the lag shows.
        if opening.is_some_and(|load| complete && estimate.rtt >= THINKING * load.rtt.as_secs()) {
            return opening;
        }
        let pipe = estimate.rtt * available;
        Some(LoadEstimate {
            rtt: Duration::from_secs(estimate.rtt),
            growth: estimate.growth,
            load: estimate.window_now(self.arrived.volume()) / pipe,
            load_ahead: estimate.window_ahead(self.departed.volume()) / pipe,
        })
    }

    /// The load from handshakes and initial windows. The growth compares the departures of an RTT ago with the
    /// resulting arrivals.
    fn opening_load(&self, available: f64, growth: f64) -> Option<LoadEstimate> {
        let openings = self.openings;
        let rtt = openings.rtt()?;
        if growth < LEAST_GROWTH {
            return None;
        }
        let growth = growth.clamp(GROWTH.0, GROWTH.1);
        let window = Estimate { rtt, growth, initial: openings.initial, volume: 0.0 }.window_now(self.arrived.volume());
        Some(LoadEstimate {
            rtt: Duration::from_secs(rtt),
            growth,
            load: window / (rtt * available),
            load_ahead: openings.rate_ahead(growth) / available,
        })
    }

    /// Bytes that a drop should not reduce: with fewer packets of a flow in flight only a timeout notices its loss (RFC
    /// 5681, section 3.2, takes three packets behind it).
    pub(super) fn least_backlog(&self) -> Bytes {
        let (now, before) = self.background.flows;
        Bytes::new((LEAST_PACKETS * f64::from(now.max(before)) * self.largest) as u64)
    }

    pub(super) fn triggers(&self) -> u64 {
        self.triggers
    }

    pub(super) fn last_trigger(&self) -> Option<Trigger> {
        self.last_trigger
    }

    /// A packet of `size` bytes leaves, and `backlog` bytes in `waiting` packets stay. Returns whether to signal its
    /// flow; `signalled` says that the fallback has already done so.
    pub(super) fn depart(
        &mut self,
        at: Timestamp,
        (flow, size): (u32, u32),
        (waiting, backlog): (usize, Bytes),
        signalled: bool,
    ) -> bool {
        let (now, size, backlog) = (at.as_secs(), f64::from(size), backlog.get() as f64);
        self.service.departed(now, size, waiting > 0);
        let mut signal = false;
        let bucket = self.flows.bucket(flow, now);
        bucket.departed += size;
        if bucket.epoch == self.epoch {
            self.departed.add(size, now, backlog);
            if let Some(known) = bucket.opening.departed(now, size, size <= HANDSHAKE) {
                self.openings.add(known);
            }
            if self.signalling.is_none() {
                self.decide(at, now, waiting, backlog);
            }
            signal = self.signal(flow, now, size);
            if signalled {
                self.settle(flow, now);
            }
        }
        if signal || signalled {
            self.flows.bucket(flow, now).told = true;
        }
        signal && !signalled
    }

    /// Whether this packet is signalled: one of each connection, as far as handshakes tell how many share the place.
    fn signal(&mut self, flow: u32, now: f64, size: f64) -> bool {
        // A packet much smaller than the others is a handshake's, whose loss costs more than a late signal.
        if self.signalling.is_none() || 2.0 * size < self.segment {
            return false;
        }
        let window = self.window;
        let bucket = self.flows.bucket(flow, now);
        if bucket.signals == 0 {
            bucket.signals = bucket.opening.handshakes.max(1);
            bucket.next_signal = bucket.departed;
        }
        if bucket.departed < bucket.next_signal {
            return false;
        }
        bucket.next_signal = bucket.departed + window;
        bucket.signals -= 1;
        if bucket.signals == 0 {
            self.settle(flow, now);
        }
        true
    }

    /// The fallback has dropped a packet of the flow.
    pub(super) fn dropped(&mut self, at: Timestamp, flow: u32) {
        self.settle(flow, at.as_secs());
        self.flows.bucket(flow, at.as_secs()).told = true;
    }

    /// Begins to signal when the load an RTT ahead is too much, or when the link has been saturated for an RTT.
    fn decide(&mut self, at: Timestamp, now: f64, waiting: usize, backlog: f64) {
        if self.estimate.is_some_and(|estimate| self.arrived.volume() > FRESH * estimate.volume) {
            self.estimate = None;
        }
        let ahead = self.load(now);
        if let Some(load) = ahead.filter(|load| load.load_ahead >= self.threshold && self.agrees(load)) {
            let rtt = load.rtt.as_secs();
            // Lags alone have found 5 ms on a path of 350: they do not shorten the interval.
            let known = self.openings.rtt().unwrap_or(self.default_interval);
            (self.rtt, self.fallback) = (Some(rtt), Some(rtt.max(known)));
            self.trigger(at, now, ahead);
            return;
        }
        // What left before the busy period can cause (g - 1) times its volume and the initial windows, at most as much
        // again and the largest of these. More responds to the busy period itself, which has lasted an RTT then.
        // Windows that do not grow keep no more than themselves in the queue.
        let (busy, unasked) = (self.busy, self.busy.unasked.bytes);
        let (arrived, departed) = busy.volumes(self.arrived.volume(), self.departed.volume());
        let largest = (INITIAL_WINDOWS[1] * f64::from(self.joined) * self.segment).max(unasked);
        let answered = arrived > busy.arrived + largest + 2.0 * self.segment;
        let grows = arrived - departed - busy.standing >= unasked + QUEUE_SHARE * (arrived - unasked);
        if waiting > 1 && answered && grows && self.queue_grows(now, backlog) {
            self.trigger(at, now, None);
        }
    }

    /// Whether the queue holds the part of the windows that the link cannot hold, in addition to its earlier content.
    fn agrees(&self, load: &LoadEstimate) -> bool {
        let pipe = load.rtt.as_secs() * self.available().unwrap_or(0.0);
        let waiting = self.arrived.volume() - self.departed.volume() - self.busy.standing;
        waiting >= VISIBLE * (load.load - FULL) * pipe
    }

    fn trigger(&mut self, at: Timestamp, now: f64, estimate: Option<LoadEstimate>) {
        self.signalling = Some(now);
        let rtt = estimate.map_or(self.signal_time(), |estimate| estimate.rtt.as_secs());
        self.window = rtt * self.available().unwrap_or(0.0) / f64::from(self.connections.max(1));
        self.triggers += 1;
        self.last_trigger = Some(Trigger { at, estimate });
    }

    /// The fallback's interval, about an RTT (RFC 8289, section 4.3): the measured one.
    pub(super) fn interval(&self) -> Duration {
        let known = self.fallback.unwrap_or(self.default_interval);
        let interval = match self.estimate {
            Some(estimate) => known.max(estimate.rtt),
            None if self.young > 0 => self.openings.rtt().unwrap_or(known.max(self.default_interval)),
            None => known,
        };
        Duration::from_secs(interval.clamp(INTERVAL.0, INTERVAL.1))
    }
}

/// Seconds without a packet after which a flow begins anew, from the configured time. An RTT of 0 means unknown.
fn idle_time(rtt: f64, configured: f64) -> f64 {
    if rtt > 0.0 { (IDLE_RTTS * rtt).max(LEAST_IDLE).min(configured) } else { configured }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1500;
    /// 10 Mbit/s: a packet takes 1.2 ms.
    const SERVICE: f64 = 1.2e-3;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_rate_that_is_not_told_is_that_of_departures_while_packets_wait() {
        let mut law = Law::new(&Config::default(), None);
        assert_eq!(law.available(), None);
        // Gaps of 10 ms: nothing waits behind a packet, so nothing is known of the rate.
        for packet in 0..20 {
            law.depart(at(0.01 * f64::from(packet)), (1, PACKET), (0, Bytes::ZERO), false);
        }
        assert_eq!(law.available(), None);
        for packet in 0..40 {
            law.depart(at(1.0 + SERVICE * f64::from(packet)), (1, PACKET), (5, Bytes::new(7500)), false);
        }
        // 1500 bytes in 1.2 ms are 1.25 MB/s.
        assert!(law.available().is_some_and(|rate| (rate / 1.25e6 - 1.0).abs() < 1e-6), "{:?}", law.available());
    }

    /// Flows of `window` packets each, sent within 100 ms, through a link of 10 Mbit/s: the longest queue in
    /// packets, and how many were refused.
    fn launched(flows: u32, window: u32) -> (u64, u32) {
        let mut law = Law::new(&Config::default(), Some(1.25e6));
        // A handshake an RTT of 100 ms before the data.
        (0..flows).for_each(|flow| {
            law.arrive(at(0.9), flow, 40, Bytes::ZERO);
        });
        let (mut waiting, mut free, mut longest, mut refused) = (alloc::collections::VecDeque::new(), 0.0, 0, 0);
        for packet in 0..window * flows {
            let now = 1.0 + 0.1 * f64::from(packet) / f64::from(window * flows);
            while let Some(flow) = waiting.front().copied().filter(|_| free <= now) {
                waiting.pop_front();
                let left = waiting.len();
                law.depart(at(free), (flow, PACKET), (left, Bytes::new(left as u64 * u64::from(PACKET))), false);
                free += SERVICE;
            }
            let flow = packet % flows;
            if law.arrive(at(now), flow, PACKET, Bytes::new(waiting.len() as u64 * u64::from(PACKET))) {
                refused += 1;
            } else {
                free = if waiting.is_empty() { now + SERVICE } else { free };
                waiting.push_back(flow);
                longest = longest.max(waiting.len() as u64);
            }
        }
        (longest, refused)
    }

    #[test]
    fn launches_get_half_an_rtt_of_the_queue_and_initial_windows_all_of_it() {
        // Half an RTT is 50 ms or 41.7 packets: the launch packet that finds 42 waiting is refused. Before the first
        // refusal, a packet that a departure may have caused passes.
        let (longest, refused) = launched(2, 600);
        assert!((42..=43).contains(&longest), "{longest}");
        // 1200 packets arrive; 83 leave within the RTT, and the queue keeps 42.
        assert!((1070..=1080).contains(&refused), "{refused}");
        // 150 packets of initial windows fill twice that, and none is refused.
        let (filled, dropped) = launched(15, 10);
        assert!(filled > 60 && dropped == 0, "{filled} {dropped}");
    }

    /// Bytes that were sent at once and what answers them, through a link of 10 Mbit/s with an RTT of 100 ms behind it:
    /// the triggers after so many rounds.
    fn triggers(config: &Config, window: u32, answers: u32, rounds: u32) -> u64 {
        let mut law = Law::new(config, Some(1.25e6));
        let (mut waiting, mut free) = (0_u64, 0.0_f64);
        let mut arrivals: alloc::collections::VecDeque<f64> =
            (0..window).map(|packet| 1.0 + 0.1 * SERVICE * f64::from(packet)).collect();
        let end = 1.0 + 0.1 * f64::from(rounds);
        loop {
            let next = arrivals.front().copied().unwrap_or(f64::INFINITY);
            if waiting > 0 && free <= next {
                waiting -= 1;
                let left = (waiting as usize, Bytes::new(waiting * u64::from(PACKET)));
                law.depart(at(free), (1, PACKET), left, false);
                // A packet leaves the sender for each that is acknowledged, or more.
                arrivals.extend((0..answers).map(|answer| free + 0.1 + 0.1 * SERVICE * f64::from(answer)));
                free += SERVICE;
            } else if next < end {
                arrivals.pop_front();
                law.arrive(at(next), 1, PACKET, Bytes::new(waiting * u64::from(PACKET)));
                waiting += 1;
                free = free.max(next);
            } else {
                return law.triggers();
            }
        }
    }

    #[test]
    fn a_window_that_is_sent_at_once_and_kept_is_no_growth_but_slow_start_is() {
        // The bandwidth-delay product is 83 packets: below it, and above it.
        for window in [60, 120] {
            assert_eq!(triggers(&Config::default(), window, 1, 15), 0, "{window}");
        }
        assert_eq!(triggers(&Config::default(), 10, 2, 5), 1);
    }

    /// A packet arrives and leaves at once, on an idle link.
    fn pass(law: &mut Law, seconds: f64, flow: u32, size: u32) {
        law.arrive(at(seconds), flow, size, Bytes::ZERO);
        law.depart(at(seconds), (flow, size), (0, Bytes::ZERO), false);
    }

    #[test]
    fn after_idle_time_a_flow_that_was_signalled_is_background_unless_it_shakes_hands_again() {
        let mut law = Law::new(&Config::default(), Some(1.25e6));
        pass(&mut law, 1.0, 1, PACKET);
        assert_eq!(law.young, 1);
        law.dropped(at(1.0), 1);
        pass(&mut law, 3.0, 1, PACKET);
        assert_eq!(law.young, 0);
        pass(&mut law, 6.0, 1, 40);
        assert_eq!(law.young, 1);
        // Another, which was never signalled, is young after each idle time.
        pass(&mut law, 8.0, 2, PACKET);
        pass(&mut law, 10.0, 2, PACKET);
        assert_eq!(law.young, 1);
    }

    #[test]
    fn a_place_that_several_share_gets_a_signal_for_each_handshake_a_window_apart() {
        let mut law = Law::new(&Config::default(), Some(1.25e6));
        for handshake in 0..3 {
            law.arrive(at(1.0 + 0.001 * f64::from(handshake)), 1, 40, Bytes::ZERO);
        }
        law.arrive(at(1.1), 1, PACKET, Bytes::ZERO);
        // The default interval of 100 ms is 125 000 bytes, for three connections 41 667 each: 27.8 packets.
        law.trigger(at(1.1), 1.1, None);
        let signals = (0..100).filter(|_| law.depart(at(1.1), (1, PACKET), (1, Bytes::new(1500)), false));
        assert_eq!(signals.collect::<alloc::vec::Vec<_>>(), [0, 28, 56]);
    }

    #[test]
    fn windows_that_the_queue_does_not_hold_are_refuted() {
        let mut law = Law::new(&Config::default(), Some(1.25e6));
        let estimate = |load| LoadEstimate { rtt: Duration::from_secs(0.1), growth: 2.0, load, load_ahead: 2.0 * load };
        // Of 2.5 times the 125 000 bytes that the link takes in an RTT, half of what is beyond 1.5 should wait: 62 500.
        law.arrived.add(100_000.0, 1.0, 0.0);
        law.departed.add(40_000.0, 1.0, 0.0);
        assert!(law.agrees(&estimate(1.4)));
        assert!(!law.agrees(&estimate(2.5)));
        law.arrived.add(2_500.0, 1.0, 0.0);
        assert!(law.agrees(&estimate(2.5)));
    }

    #[test]
    fn an_idle_time_is_three_rtts_and_never_more_than_configured() {
        // Three RTTs of 100 ms, and at least 200 ms. Without an RTT, or if it is shorter, the configured time.
        assert_eq!(idle_time(0.1, 10.0), 3.0 * 0.1);
        assert_eq!(idle_time(0.01, 10.0), 0.2);
        assert_eq!((idle_time(0.0, 10.0), idle_time(0.1, 0.01)), (10.0, 0.01));
        // So after 5 ms a packet is the same flow's, and after 15 ms one begins.
        let mut law = Law::new(&Config { idle: Duration::from_millis(10), ..Config::default() }, Some(1.25e6));
        for (seconds, packets) in [(1.0, 1), (1.005, 2), (1.02, 1)] {
            law.arrive(at(seconds), 1, PACKET, Bytes::ZERO);
            assert_eq!(law.flows.bucket(1, seconds).packets, packets, "{seconds}");
        }
    }
}
