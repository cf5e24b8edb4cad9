//! `extreme`: approves requests with state per flow, so an approval counts until it is used or known to be unused.
//!
//! Reference: Sarolahti, Allman and Floyd, section 6.2, which describes what such a router may do but gives no
//! algorithm. For each approval the router remembers the expected bytes (rate times RTT) and subtracts those that
//! arrive. Besides the utilization, the bytes still expected count, not the recent approvals. The report of the
//! approved rate lowers what is expected when a later router granted less. An approval ends when its bytes have arrived
//! or its time is over.
//!
//! The paper leaves details open; this file decides as follows. The bytes of an approval arrive between one and two
//! RTTs after it (the handshake's answer and then a paced RTT), so it lives for two RTTs. Of flows that want more than
//! is left, each gets at most `largest_share` of what `qs_thresh` leaves (fairness between requests). A flow whose
//! latest approval ended with less than half of it used gets half of what it asks for next time, a quarter after the
//! second time, and so on; a used approval restores it. A flow here is a connection: a sender that opens a new one for
//! each request has no past.
//!
//! Memory is bounded by `flows`. A flow without a running approval is forgotten for a new one. If all places hold
//! running approvals, nothing more is approved, because forgetting one would promise its rate twice. A second pass
//! (section 8.2) is confirmed while an approval of at least that rate runs, which begins anew with it.
//!
//! Status: worked examples below; `quick-start-extreme` and `quick-start-extreme-conservative` compare figures 10 and
//! 11.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::quick_start::rate::RateCode;
use crate::quick_start::router::FlowId;
use crate::quick_start::router::request_limit::RequestLimit;
use crate::registry::ConfigError;
use crate::rng::mix;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// `qs_thresh`: share of the bandwidth that may be in use, 0 to 1; 0.9 (section 6.1).
    pub qs_thresh: f64,
    /// The RTT that flows are assumed to have; 100 ms, the middle of the range of figure 10.
    pub rtt: Duration,
    /// Largest share of what is left that one request gets, above 0 and at most 1; 1, no limit.
    pub largest_share: f64,
    /// Flows that are remembered, 1 to 65,536; 1024. One whose approval has ended is forgotten for a new one.
    pub flows: usize,
    /// Requests that are looked at in each second, `None` for all of them (section 8); all of them.
    pub requests_per_second: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            qs_thresh: 0.9,
            rtt: Duration::from_millis(100),
            largest_share: 1.0,
            flows: 1024,
            requests_per_second: None,
        }
    }
}

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("qs_thresh", self.qs_thresh, 0.0..=1.0)?;
        ConfigError::unless_in("rtt", self.rtt, Duration::from_millis(1)..=Duration::from_millis(60_000))?;
        ConfigError::unless_in("largest_share", self.largest_share, 1e-6..=1.0)?;
        ConfigError::unless_in("flows", self.flows, 1..=65_536)
    }
}

/// The lowest rate that a packet can name.
const LOWEST: Rate = RateCode::from_bits(1).rate();
/// Slots that are looked at for a flow.
const PROBES: usize = 4;

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
struct FlowState {
    flow: FlowId,
    /// When the approval ends, or ended.
    ends: Timestamp,
    /// The approved rate, as far as it is known.
    rate: Rate,
    /// Bytes that were expected and bytes that came.
    expected: Bytes,
    arrived: Bytes,
    /// Of the rate, what is still to come, in bits per second; part of [`Extreme::outstanding`].
    outstanding: u64,
    /// How often in a row less than half of an approval was used.
    unused: u32,
    /// Whether the approval has not ended.
    runs: bool,
}

/// State of a router: memory for `flows` flows, and work for each packet that does not depend on how many there are.
#[derive(Clone, Debug)]
pub struct Extreme {
    config: Config,
    request_limit: RequestLimit,
    slots: Vec<Option<FlowState>>,
    /// Flows with an approval, in the order in which approvals end, which is that in which they were given. Approvals
    /// that were replaced stay in here until they would have ended.
    order: VecDeque<(FlowId, Timestamp)>,
    /// What is still to come of all approvals, in bits per second.
    outstanding: u64,
}

impl Extreme {
    /// Nothing was approved yet.
    pub fn new(config: Config) -> Self {
        let slots = alloc::vec![None; config.flows.max(1)];
        let request_limit = RequestLimit::new(config.requests_per_second);
        Self { order: VecDeque::with_capacity(2 * slots.len()), slots, request_limit, config, outstanding: 0 }
    }

    fn slots_of(&self, flow: FlowId) -> impl Iterator<Item = usize> + use<> {
        let length = self.slots.len();
        let first = mix(flow) as usize % length;
        (0..PROBES.min(length)).map(move |probe| (first + probe) % length)
    }

    fn find(&self, flow: FlowId) -> Option<usize> {
        self.slots_of(flow).find(|slot| self.slots[*slot].is_some_and(|state| state.flow == flow))
    }

    /// The slot of the flow, an empty one, or that of the flow whose approval ended first.
    fn slot_for(&self, flow: FlowId) -> Option<usize> {
        let own = self.find(flow);
        let free = |slot: &usize| self.slots[*slot].is_none_or(|state| !state.runs);
        own.or_else(|| self.slots_of(flow).filter(free).min_by_key(|slot| self.slots[*slot].map(|state| state.ends)))
    }

    /// Data of a flow begins to leave.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes, flow: FlowId) {
        if self.order.is_empty() {
            return;
        }
        let Some(slot) = self.find(flow) else { return };
        let Some(state) = self.slots[slot].as_mut().filter(|state| state.runs && now < state.ends) else { return };
        state.arrived += size;
        let left = state.expected.saturating_sub(state.arrived).get() as f64 / state.expected.get().max(1) as f64;
        let outstanding = (state.rate.bits_per_sec() as f64 * left) as u64;
        self.outstanding -= state.outstanding.saturating_sub(outstanding);
        state.outstanding = state.outstanding.min(outstanding);
    }

    /// The sender says that `rate` was approved in the end.
    pub fn on_report(&mut self, now: Timestamp, flow: FlowId, rate: Rate) {
        let Some(slot) = self.find(flow) else { return };
        let Some(state) = self.slots[slot].as_mut().filter(|state| state.runs && now < state.ends) else { return };
        if rate < state.rate {
            state.rate = rate;
            state.expected = expected(rate, self.config.rtt);
            self.on_departure(now, Bytes::ZERO, flow);
        }
    }

    /// How much of `requested` is approved, before it is rounded. `used` is the share of the bandwidth in use.
    pub fn approve(&mut self, now: Timestamp, bandwidth: Rate, used: f64, requested: Rate, flow: FlowId) -> Rate {
        let nothing = Rate::from_bits_per_sec(0);
        if !self.request_limit.looks_at(now) {
            return nothing;
        }
        self.end_approvals(now);
        let Some(slot) = self.slot_for(flow) else { return nothing };
        // A flow that asks again ends its approval, because an early request must not hide an unused approval.
        let unused = match self.slots[slot] {
            Some(state) if state.flow == flow => {
                self.end(flow, state.ends);
                self.slots[slot].map_or(0, |state| state.unused)
            }
            _ => 0,
        };
        let bandwidth = bandwidth.bits_per_sec() as f64;
        let left = (self.config.qs_thresh - used) * bandwidth - self.outstanding as f64;
        let most = (left * self.config.largest_share).max(0.0) as u64;
        let asked = requested.bits_per_sec().checked_shr(unused).unwrap_or(0);
        let approved = Rate::from_bits_per_sec(asked.min(most));
        // A rate that rounds to nothing cannot be used: only the requesting packet itself would be expected.
        if approved < LOWEST {
            return nothing;
        }
        self.begin(now, slot, flow, approved, unused);
        approved
    }

    /// Whether the second pass of a flow for `rate` is confirmed.
    pub fn confirm(&mut self, now: Timestamp, flow: FlowId, rate: Rate) -> bool {
        if !self.request_limit.looks_at(now) {
            return false;
        }
        self.end_approvals(now);
        let Some(slot) = self.find(flow) else { return false };
        let Some(state) = self.slots[slot].as_mut().filter(|state| state.runs) else { return false };
        let (confirmed, unused) = (rate <= state.rate, state.unused);
        self.outstanding -= state.outstanding;
        state.outstanding = 0;
        if confirmed {
            self.begin(now, slot, flow, rate, unused);
        }
        confirmed
    }

    /// An approval begins, in the place of what the slot held.
    fn begin(&mut self, now: Timestamp, slot: usize, flow: FlowId, approved: Rate, unused: u32) {
        // At most half of them run, so this happens once in as many.
        if self.order.len() >= 2 * self.slots.len() {
            self.order.clear();
            let running = self.slots.iter().flatten().filter(|state| state.runs).map(|state| (state.flow, state.ends));
            self.order.extend(running);
            self.order.make_contiguous().sort_unstable_by_key(|(flow, ends)| (*ends, *flow));
        }
        let ends = now + self.config.rtt * 2;
        self.outstanding += approved.bits_per_sec();
        self.slots[slot] = Some(FlowState {
            flow,
            ends,
            rate: approved,
            expected: expected(approved, self.config.rtt),
            arrived: Bytes::ZERO,
            outstanding: approved.bits_per_sec(),
            unused,
            runs: true,
        });
        self.order.push_back((flow, ends));
    }

    fn end_approvals(&mut self, now: Timestamp) {
        while let Some((flow, ends)) = self.order.front().copied().filter(|(_, ends)| *ends <= now) {
            self.order.pop_front();
            self.end(flow, ends);
        }
    }

    /// The approval of `flow` that ends then is over.
    fn end(&mut self, flow: FlowId, ends: Timestamp) {
        let Some(slot) = self.find(flow) else { return };
        let Some(state) = self.slots[slot].as_mut().filter(|state| state.runs && state.ends == ends) else { return };
        self.outstanding -= state.outstanding;
        state.outstanding = 0;
        state.runs = false;
        state.unused = if state.arrived.get() * 2 < state.expected.get() { state.unused.saturating_add(1) } else { 0 };
    }
}

/// Bytes that come at `rate` in an RTT.
fn expected(rate: Rate, rtt: Duration) -> Bytes {
    Bytes::new((u128::from(rate.bits_per_sec()) * u128::from(rtt.as_nanos()) / 8_000_000_000) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    fn kbit(kbit: u64) -> Rate {
        Rate::from_bits_per_sec(kbit * 1000)
    }

    const LINK: Rate = Rate::from_mbit(10);

    fn extreme() -> Extreme {
        Extreme::new(Config::default())
    }

    #[test]
    fn what_has_arrived_is_not_counted_twice() {
        let mut extreme = extreme();
        // 8 Mbit/s for 100 ms: 100,000 bytes are expected.
        assert_eq!(extreme.approve(at(0), LINK, 0.0, kbit(8000), 1), kbit(8000));
        // 9 Mbit/s less the 8 that are still to come.
        assert_eq!(extreme.approve(at(50), LINK, 0.0, kbit(8000), 2), kbit(1000));
        // Three quarters of it have arrived and are in the utilization, say 30 % of the link: 9 - 3 - 2 - 1 Mbit/s are
        // left.
        extreme.on_departure(at(150), Bytes::new(75_000), 1);
        assert_eq!(extreme.approve(at(150), LINK, 0.3, kbit(8000), 3), kbit(3000));
    }

    #[test]
    fn a_report_returns_what_another_router_took_away() {
        let mut extreme = extreme();
        extreme.approve(at(0), LINK, 0.0, kbit(8000), 1);
        extreme.on_report(at(100), 1, kbit(2000));
        assert_eq!(extreme.approve(at(100), LINK, 0.0, kbit(8000), 2), kbit(7000));
        // A higher one is a lie or useless.
        extreme.on_report(at(100), 2, kbit(9000));
        assert_eq!(extreme.approve(at(100), LINK, 0.0, kbit(8000), 3), kbit(0));
    }

    #[test]
    fn approvals_end_after_two_round_trips() {
        let mut extreme = extreme();
        extreme.approve(at(0), LINK, 0.0, kbit(9000), 1);
        assert_eq!(extreme.approve(at(199), LINK, 0.0, kbit(1000), 2), kbit(0));
        assert_eq!(extreme.approve(at(200), LINK, 0.0, kbit(1000), 3), kbit(1000));
    }

    #[test]
    fn who_leaves_approvals_unused_gets_less() {
        let mut extreme = extreme();
        extreme.approve(at(0), LINK, 0.0, kbit(4000), 1);
        assert_eq!(extreme.approve(at(1000), LINK, 0.0, kbit(4000), 1), kbit(2000));
        assert_eq!(extreme.approve(at(2000), LINK, 0.0, kbit(4000), 1), kbit(1000));
        // Asking before the approval has ended changes nothing.
        assert_eq!(extreme.approve(at(2050), LINK, 0.0, kbit(8000), 1), kbit(1000));
        // 1 Mbit/s for 100 ms are 12,500 bytes; more than half of them come.
        extreme.on_departure(at(2100), Bytes::new(10_000), 1);
        assert_eq!(extreme.approve(at(3000), LINK, 0.0, kbit(4000), 1), kbit(4000));
    }

    #[test]
    fn a_flow_that_only_asks_ends_with_nothing() {
        let mut extreme = extreme();
        for request in 0..1000 {
            let approved = extreme.approve(at(100 * request), LINK, 0.0, kbit(9000), 1);
            assert!(
                approved == kbit(0) || request < 8,
                "9 Mbit/s halved seven times are the last 70 kbit/s: {approved}"
            );
            extreme.on_departure(at(100 * request), Bytes::new(48), 1);
        }
    }

    #[test]
    fn a_share_leaves_something_for_the_next() {
        let mut extreme = Extreme::new(Config { largest_share: 0.5, ..Config::default() });
        // Half of 9, half of the 4.5 that are left.
        assert_eq!(extreme.approve(at(0), LINK, 0.0, kbit(9000), 1), kbit(4500));
        assert_eq!(extreme.approve(at(1), LINK, 0.0, kbit(9000), 2), kbit(2250));
    }

    #[test]
    fn approvals_that_run_are_not_forgotten_for_new_ones() {
        // 16 places, and 80 kbit/s for each of a thousand flows on a link that has room for all.
        let mut extreme = Extreme::new(Config { flows: 16, ..Config::default() });
        let link = Rate::from_mbit(1000);
        let mut approve = |flow| extreme.approve(at(0), link, 0.0, kbit(80), flow).bits_per_sec();
        let approved: u64 = (0..1000).map(&mut approve).sum();
        assert!(approved <= 16 * 80_000, "{approved}");
        assert_eq!(extreme.outstanding, approved);
        // A flow that asks again and again takes no place of others and gets nothing. A request without an approval
        // takes no place either.
        for _ in 0..1000 {
            extreme.approve(at(1), link, 0.0, kbit(80), 0);
            extreme.approve(at(1), link, 0.9, kbit(80), 7777);
        }
        assert_eq!(extreme.outstanding, approved - 80_000);
        assert!(extreme.order.len() <= 32, "{}", extreme.order.len());
        assert_eq!(extreme.approve(at(300), link, 0.0, kbit(80), 7777), kbit(80), "until they have ended");
    }

    #[test]
    fn a_second_pass_begins_the_approval_anew() {
        let mut extreme = extreme();
        extreme.approve(at(0), LINK, 0.0, kbit(8000), 1);
        assert!(extreme.confirm(at(190), 1, kbit(4000)));
        assert_eq!(extreme.approve(at(210), LINK, 0.0, kbit(9000), 2), kbit(5000), "it has not ended");
        assert!(!extreme.confirm(at(220), 2, kbit(5001)), "more than was approved");
        assert!(!extreme.confirm(at(220), 3, kbit(1)), "unknown");
        assert_eq!(extreme.approve(at(230), LINK, 0.0, kbit(9000), 3), kbit(5000));
    }

    #[test]
    fn requests_beyond_the_limit_are_not_looked_at() {
        let mut extreme = Extreme::new(Config { requests_per_second: Some(1), ..Config::default() });
        assert_eq!(extreme.approve(at(1), LINK, 0.0, kbit(1000), 1), kbit(1000));
        assert_eq!(extreme.approve(at(2), LINK, 0.0, kbit(1000), 2), kbit(0));
        assert_eq!(extreme.approve(at(1001), LINK, 0.0, kbit(1000), 3), kbit(1000));
    }

    #[test]
    fn a_flood_of_flows_needs_no_more_memory_and_leaves_nothing_behind() {
        let mut extreme = Extreme::new(Config { flows: 16, ..Config::default() });
        let (slots, order) = (extreme.slots.capacity(), extreme.order.capacity());
        for flow in 0..100_000 {
            extreme.approve(Timestamp::ZERO + Duration::from_micros(flow), LINK, 0.0, kbit(80), flow);
            extreme.on_departure(Timestamp::ZERO + Duration::from_micros(flow), Bytes::new(40), flow / 2);
        }
        assert_eq!((extreme.slots.capacity(), extreme.order.capacity()), (slots, order));
        let sum: u64 = extreme.slots.iter().flatten().map(|state| state.outstanding).sum();
        assert_eq!(extreme.outstanding, sum);
        // A flow without a past.
        assert_eq!(extreme.approve(at(10_000), LINK, 0.0, kbit(9000), 1 << 40), kbit(9000));
    }
}
