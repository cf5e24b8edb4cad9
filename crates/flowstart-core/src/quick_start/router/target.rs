//! `target`: approves requests up to a share of the link, without state per flow.
//!
//! Reference: Sarolahti, Allman and Floyd, section 6.1, figure 7. The bandwidth in use is the utilization plus the
//! approvals of the latest intervals, whose data may still be on the way. While this is below `qs_thresh` of the
//! bandwidth, a request gets the rest below the threshold, at most what it asks for. Otherwise it gets nothing.
//!
//! Section 8.2 has three additions, all off by default:
//! - requests beyond `requests_per_second` are ignored;
//! - with `flows` the router remembers the latest approvals by flow, so a report of a lower rate gives back the
//!   difference;
//! - with `provisional` the approval of a first pass lasts only for that time, unless the second pass confirms it; then
//!   it counts like any other. A second pass for more than was approved is refused, and ends the approval. The router
//!   can only confirm what it remembers, so it approves nothing while `flows` approvals wait.
//!
//! Differences: like ns-2, the approved rate is remembered as it was before rounding. A report or a second pass gives
//! back what rounding took away, too. With `flows`, a flow that asks again gives back what it was approved before.
//!
//! Status: `flowstart validate ns2-router-checks` compares with ns-2's grants, `quick-start-attacks` checks what
//! section 8 says.

use crate::quick_start::router::FlowId;
use crate::quick_start::router::approved_flows::{Approval, ApprovedFlows};
use crate::quick_start::router::request_limit::RequestLimit;
use crate::registry::ConfigError;
use crate::time::{Duration, Timestamp};
use crate::units::Rate;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// `qs_thresh`: share of the bandwidth that may be in use, 0 to 1; 0.9 (section 6.1).
    pub qs_thresh: f64,
    /// Length of an interval over which approvals are summed; 150 ms (section 6.1). Two count, the running one
    /// included.
    pub interval: Duration,
    /// Requests that are looked at in each second, `None` for all of them (section 8); all of them.
    pub requests_per_second: Option<u32>,
    /// Flows whose latest approvals are remembered, 0 to 65,536; 0, none (section 8.2).
    pub flows: usize,
    /// How long a first pass is approved without a second, 1 ms to 60 s; `None`: there is no second pass (section 8.2).
    /// It has to be longer than the longest RTT.
    pub provisional: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            qs_thresh: 0.9,
            interval: Duration::from_millis(150),
            requests_per_second: None,
            flows: 0,
            provisional: None,
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
        let times = Duration::from_millis(1)..=Duration::from_millis(60_000);
        ConfigError::unless_in("interval", self.interval, times.clone())?;
        let Some(provisional) = self.provisional else {
            return ConfigError::unless_in("flows", self.flows, 0..=65_536);
        };
        ConfigError::unless_in("provisional", provisional, times)?;
        // Without memory nothing could be confirmed.
        ConfigError::unless_in("flows", self.flows, 1..=65_536)
    }
}

/// What was approved in the running interval and the one before: `recent_qs_approvals`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentApprovals {
    length: Duration,
    /// Number of the running interval.
    running: u64,
    /// Bits per second approved in the interval before and the running one.
    approved: [u64; 2],
}

impl RecentApprovals {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, running: 0, approved: [0; 2] }
    }

    /// Their sum at `now`.
    pub(super) fn sum(&mut self, now: Timestamp) -> f64 {
        let running = now.since(Timestamp::ZERO).as_nanos() / self.length.as_nanos().max(1);
        self.approved = match running - self.running {
            0 => self.approved,
            1 => [self.approved[1], 0],
            _ => [0; 2],
        };
        self.running = running;
        self.approved[0] as f64 + self.approved[1] as f64
    }

    pub(super) fn add(&mut self, approved: Rate) {
        self.approved[1] = self.approved[1].saturating_add(approved.bits_per_sec());
    }

    /// Takes back a part of what was approved at `at`, if that still counts.
    fn give_back(&mut self, at: Timestamp, rate: Rate) {
        let interval = at.since(Timestamp::ZERO).as_nanos() / self.length.as_nanos().max(1);
        if let Some(approved) =
            (interval + 1).checked_sub(self.running).and_then(|index| self.approved.get_mut(index as usize))
        {
            *approved = approved.saturating_sub(rate.bits_per_sec());
        }
    }
}

/// State: O(1) without `flows`, whatever asks, and bounded with them.
#[derive(Clone, Debug)]
pub struct Target {
    config: Config,
    recent_qs_approvals: RecentApprovals,
    request_limit: RequestLimit,
    approved_flows: ApprovedFlows,
    /// Bits per second approved and not confirmed.
    provisional: u64,
}

impl Target {
    /// Nothing was approved yet.
    pub fn new(config: Config) -> Self {
        Self {
            recent_qs_approvals: RecentApprovals::new(config.interval),
            request_limit: RequestLimit::new(config.requests_per_second),
            approved_flows: ApprovedFlows::new(config.flows),
            provisional: 0,
            config,
        }
    }

    /// How much of `requested` is approved, before it is rounded. `used` is the share of the bandwidth in use.
    pub fn approve(&mut self, now: Timestamp, bandwidth: Rate, used: f64, requested: Rate, flow: FlowId) -> Rate {
        let nothing = Rate::from_bits_per_sec(0);
        if !self.request_limit.looks_at(now) {
            return nothing;
        }
        if self.config.flows > 0 {
            self.forget_ended(now);
            if let Some(approval) = self.approved_flows.take(flow) {
                self.give_back(now, approval, approval.rate);
            }
        }
        // Figure 7, in bits per second.
        let bandwidth = bandwidth.bits_per_sec() as f64;
        let util_bw = bandwidth * used + self.recent_qs_approvals.sum(now) + self.provisional as f64;
        let left = self.config.qs_thresh * bandwidth - util_bw;
        if left <= 0.0 || (self.config.provisional.is_some() && !self.approved_flows.has_room()) {
            return nothing;
        }
        let approved = requested.min(Rate::from_bits_per_sec(left as u64));
        match self.config.provisional {
            Some(time) => {
                self.provisional = self.provisional.saturating_add(approved.bits_per_sec());
                self.approved_flows.insert(flow, approved, now, now + time);
            }
            None => {
                self.recent_qs_approvals.add(approved);
                self.approved_flows.insert(flow, approved, now, now + self.config.interval * 2);
            }
        }
        approved
    }

    /// The sender says that `rate` was approved in the end.
    pub fn on_report(&mut self, now: Timestamp, flow: FlowId, rate: Rate) {
        self.forget_ended(now);
        let Some(approval) = self.approved_flows.get_mut(flow).filter(|approval| rate < approval.rate) else { return };
        let unused = Rate::from_bits_per_sec(approval.rate.bits_per_sec() - rate.bits_per_sec());
        let before = *approval;
        approval.rate = rate;
        self.give_back(now, before, unused);
    }

    /// Whether the second pass of a flow for `rate` is confirmed; `None` where there is no second pass.
    pub fn confirm(&mut self, now: Timestamp, flow: FlowId, rate: Rate) -> Option<bool> {
        self.config.provisional?;
        if !self.request_limit.looks_at(now) {
            return Some(false);
        }
        self.forget_ended(now);
        let Some(approval) = self.approved_flows.take(flow) else { return Some(false) };
        self.give_back(now, approval, approval.rate);
        let confirmed = rate <= approval.rate;
        if confirmed {
            self.recent_qs_approvals.sum(now);
            self.recent_qs_approvals.add(rate);
        }
        Some(confirmed)
    }

    /// Approvals whose time is over no longer count; those that are not provisional end by their intervals.
    fn forget_ended(&mut self, now: Timestamp) {
        while let Some(approval) = self.approved_flows.take_ended(now) {
            if self.config.provisional.is_some() {
                self.give_back(now, approval, approval.rate);
            }
        }
    }

    fn give_back(&mut self, now: Timestamp, approval: Approval, rate: Rate) {
        if self.config.provisional.is_some() {
            self.provisional = self.provisional.saturating_sub(rate.bits_per_sec());
        } else {
            self.recent_qs_approvals.sum(now);
            self.recent_qs_approvals.give_back(approval.at, rate);
        }
    }
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

    #[test]
    fn what_is_left_below_the_threshold_is_shared_out_until_it_is_gone() {
        let mut target = Target::new(Config::default());
        // 0.9 * 10 Mbit/s less 2.5 Mbit/s in use: 6.5 Mbit/s are left for 4, then 2.5 of 4, then nothing.
        assert_eq!(target.approve(at(0), LINK, 0.25, kbit(4000), 1), kbit(4000));
        assert_eq!(target.approve(at(1), LINK, 0.25, kbit(4000), 1), kbit(2500));
        assert_eq!(target.approve(at(2), LINK, 0.25, kbit(4000), 1), kbit(0));
    }

    #[test]
    fn approvals_count_in_their_interval_and_the_next() {
        let mut target = Target::new(Config::default());
        assert_eq!(target.approve(at(100), LINK, 0.0, kbit(9000), 1), kbit(9000));
        assert_eq!(target.approve(at(299), LINK, 0.0, kbit(9000), 1), kbit(0), "intervals end at 150 and 300 ms");
        assert_eq!(target.approve(at(300), LINK, 0.0, kbit(9000), 1), kbit(9000));
        assert_eq!(target.approve(at(10_000), LINK, 0.0, kbit(9000), 1), kbit(9000));
    }

    #[test]
    fn a_flood_beyond_the_limit_takes_nothing_from_those_looked_at() {
        let config = Config { requests_per_second: Some(2), ..Config::default() };
        let mut target = Target::new(config);
        assert_eq!(target.approve(at(1), LINK, 0.0, kbit(1000), 1), kbit(1000));
        assert_eq!(target.approve(at(2), LINK, 0.0, kbit(1000), 1), kbit(1000));
        assert_eq!(target.approve(at(3), LINK, 0.0, kbit(1000), 1), kbit(0));
        assert_eq!(target.approve(at(1001), LINK, 0.0, kbit(1000), 1), kbit(1000));
    }

    fn with(flows: usize, provisional: Option<u64>) -> Target {
        Target::new(Config { flows, provisional: provisional.map(Duration::from_millis), ..Config::default() })
    }

    #[test]
    fn a_report_gives_back_what_another_router_took_away_while_it_counts() {
        for (flows, left) in [(0, 1000), (16, 7000)] {
            let mut target = with(flows, None);
            assert_eq!(target.approve(at(0), LINK, 0.0, kbit(8000), 1), kbit(8000));
            target.on_report(at(100), 1, kbit(2000));
            // A higher rate is a lie or useless, and a flow reports only for itself.
            target.on_report(at(100), 1, kbit(9000));
            target.on_report(at(100), 2, kbit(0));
            assert_eq!(target.approve(at(100), LINK, 0.0, kbit(9000), 2), kbit(left), "{flows} flows");
        }
        // The interval of the first is over at 300 ms: its report takes nothing from the second.
        let mut target = with(16, None);
        target.approve(at(0), LINK, 0.0, kbit(8000), 1);
        target.approve(at(299), LINK, 0.0, kbit(500), 2);
        target.on_report(at(300), 1, kbit(0));
        assert_eq!(target.approve(at(301), LINK, 0.0, kbit(9000), 3), kbit(8500));
    }

    #[test]
    fn what_is_not_confirmed_is_given_back_after_its_time() {
        let mut target = with(16, Some(100));
        assert_eq!(target.approve(at(0), LINK, 0.0, kbit(8000), 1), kbit(8000));
        assert_eq!(target.approve(at(99), LINK, 0.0, kbit(8000), 2), kbit(1000));
        assert_eq!(target.approve(at(100), LINK, 0.0, kbit(9000), 3), kbit(8000));
        assert_eq!(target.confirm(at(101), 1, kbit(8000)), Some(false), "too late");
    }

    #[test]
    fn a_second_pass_confirms_what_was_approved_and_no_more() {
        let mut target = with(16, Some(100));
        target.approve(at(0), LINK, 0.0, kbit(8000), 1);
        // The part that a later router took away is given back: 9 - 3 Mbit/s are left.
        assert_eq!(target.confirm(at(80), 1, kbit(3000)), Some(true));
        assert_eq!(target.approve(at(81), LINK, 0.0, kbit(9000), 2), kbit(6000));
        assert_eq!(target.confirm(at(82), 2, kbit(6001)), Some(false), "more than was approved");
        assert_eq!(target.approve(at(83), LINK, 0.0, kbit(9000), 3), kbit(6000), "and that ends the approval");
        assert_eq!(target.confirm(at(84), 1, kbit(1)), Some(false), "once only");
        // The confirmed 3 Mbit/s count until 300 ms.
        assert_eq!(target.approve(at(299), LINK, 0.0, kbit(9000), 4), kbit(6000));
        assert_eq!(target.approve(at(400), LINK, 0.0, kbit(9000), 5), kbit(9000));
        assert_eq!(with(16, None).confirm(at(0), 1, kbit(1)), None, "a router without a second pass");
    }

    #[test]
    fn a_flood_of_flows_needs_no_more_memory_and_leaves_nothing_behind() {
        for provisional in [None, Some(100)] {
            let mut target = with(16, provisional);
            for flow in 0..100_000 {
                let now = Timestamp::ZERO + Duration::from_micros(flow);
                target.approve(now, Rate::from_mbit(10_000), 0.0, kbit(80), flow);
                target.approve(now, Rate::from_mbit(10_000), 0.0, kbit(80), 1);
                target.on_report(now, flow / 2, kbit(0));
                let (flows, order) = target.approved_flows.sizes();
                assert!(flows <= 16 && order <= 32, "{flows} {order}");
            }
            assert_eq!(target.approve(at(10_000), LINK, 0.0, kbit(9000), 1), kbit(9000));
        }
    }

    #[test]
    fn parameters_have_ranges() {
        let refused = |config: Config| config.validate().is_err();
        assert!(refused(Config { flows: 65_537, ..Config::default() }));
        assert!(refused(Config { flows: 16, provisional: Some(Duration::ZERO), ..Config::default() }));
        assert!(
            refused(Config { provisional: Some(Duration::from_millis(100)), ..Config::default() }),
            "without flows"
        );
    }
}
