//! Congestion window validation: what happens to a window that the application does not use.
//!
//! References: RFC 5681, section 4.1 (restart window); RFC 2861, section 3.2 (decay), and Linux, `tcp_cwnd_restart`,
//! `tcp_cwnd_application_limited` and `tcp_is_cwnd_limited`; RFC 7661, sections 4.2 to 4.4 (`pipeACK`, nonvalidated
//! phase), which obsoletes RFC 2861; Scharf, "Quick-Start, Jump-Start, and Other Fast Startup Approaches" (2008), for a
//! startup scheme that runs again.
//!
//! A window says what the path carried when the window was last full. After idle time, or after sending less than the
//! window allows, it is unknown whether the path still carries it. The policies differ in how fast they stop trusting
//! the window, and in what they do instead.
//!
//! Differences from the references: idle time counts from the last packet sent, as RFC 5681 recommends, and its rules
//! act before the first packet after it. RFC 2861 acts after that packet. RFC 7661 leaves the sampling of `pipeACK`
//! open. Here a sample is the bytes acknowledged in each smoothed RTT, and four bins keep the largest sample of the
//! sampling period. After idle time of a whole sampling period `pipeACK` is 0, not undefined. R of section 4.4.1 is
//! what is missing when recovery ends: bytes in flight at its start plus sent, minus delivered and minus in flight. A
//! window that stays nonvalidated is halved once for every five minutes. An integrated algorithm (BBR) has rules of its
//! own for idle time, and these policies do not affect it.
//!
//! Status: worked examples below; behaviour of both model transports in `flowstart-sim/tests/idle.rs`.

use crate::event::{Ack, Sent};
use crate::path::SavedPath;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::window::Window;

/// Which congestion window validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum WindowValidation {
    /// None: the window stays as it is. RFC 9002, section 7.8, asks only that an unused window does not grow.
    #[default]
    Keep,
    /// After idle time of more than a retransmission timeout the window is at most the initial window, and slow start
    /// leads back to ssthresh (RFC 5681, section 4.1).
    Rfc5681,
    /// The window is halved for every retransmission timeout of idle time. While the application limits the sender, it
    /// approaches the used part. ssthresh remembers three quarters of it (RFC 2861, section 3.2).
    Rfc2861,
    /// RFC 2861 as in Linux: the window stays at least as large as the initial window, and in slow start it counts as
    /// full when half of it is in flight.
    Linux,
    /// The window is kept for five minutes, whether idle or barely used, but it does not grow until it is full. After
    /// congestion it is half of the used part (RFC 7661, section 4.4).
    Rfc7661,
    /// After idle time of more than a retransmission timeout the startup scheme runs again, with the connection's
    /// knowledge about its path.
    Startup,
}

impl WindowValidation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Keep, Self::Rfc5681, Self::Rfc2861, Self::Linux, Self::Rfc7661, Self::Startup];

    /// The name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Rfc5681 => "rfc5681",
            Self::Rfc2861 => "rfc2861",
            Self::Linux => "linux",
            Self::Rfc7661 => "rfc7661",
            Self::Startup => "startup",
        }
    }
}

/// How long RFC 7661 keeps a window that is not validated (section 4.4.3: NVP).
pub const NONVALIDATED_PERIOD: Duration = Duration::from_millis(300_000);
/// Least sampling period of `pipeACK` (RFC 7661, section 4.2).
const LEAST_SAMPLING_PERIOD: Duration = Duration::from_millis(1000);
/// Bins of a sampling period (RFC 7661, section 4.5.1 proposes bins in a circular buffer).
const BINS: usize = 4;

/// The sender has data again after idle time: everything was acknowledged, and nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Time of the new data.
    pub now: Timestamp,
    /// Time since the last packet was sent.
    pub idle: Duration,
    /// The retransmission timeout of TCP (RFC 6298), the probe timeout of QUIC (RFC 9002, section 6.2.1).
    pub timeout: Duration,
}

/// `pipeACK` of RFC 7661, section 4.2: the most that was acknowledged in one RTT of the sampling period.
#[derive(Clone, Copy, Debug, Default)]
struct PipeAck {
    /// Largest sample of each bin, and the bin's start; the newest first.
    bins: [Option<(Timestamp, Bytes)>; BINS],
    /// Start of the current sample.
    since: Option<Timestamp>,
    /// What was acknowledged since.
    acknowledged: Bytes,
    /// When something was acknowledged last.
    last_ack: Timestamp,
    period: Duration,
}

impl PipeAck {
    fn on_ack(&mut self, ack: &Ack, rtt: &RttEstimator) {
        self.period = (rtt.smoothed() * 3).max(LEAST_SAMPLING_PERIOD);
        self.last_ack = ack.now;
        // The first acknowledgement answers a packet that is an RTT old.
        let since = *self.since.get_or_insert(ack.now - rtt.smoothed());
        self.acknowledged += ack.bytes;
        if ack.now.since(since) >= rtt.smoothed() {
            self.finish(ack.now);
        }
    }

    /// Ends the current sample, even a short one, because idle time begins.
    fn finish(&mut self, now: Timestamp) {
        let sample = core::mem::replace(&mut self.acknowledged, Bytes::ZERO);
        self.since = Some(now);
        match &mut self.bins[0] {
            Some((began, largest)) if now < *began + self.period / BINS as u64 => *largest = (*largest).max(sample),
            _ => {
                self.bins.rotate_right(1);
                self.bins[0] = Some((now, sample));
            }
        }
    }

    /// The value at `now`; `None`: undefined, because nothing was acknowledged since the start or since a recovery.
    fn at(&self, now: Timestamp) -> Option<Bytes> {
        let fresh = |(began, _): &&(Timestamp, Bytes)| *began + self.period >= now;
        self.bins[0]?;
        Some(self.bins.iter().flatten().filter(fresh).map(|(_, sample)| *sample).max().unwrap_or_default())
    }
}

/// State of the policy.
#[derive(Clone, Debug, Default)]
pub(super) struct Validation {
    policy: WindowValidation,
    /// `T_prev` of RFC 2861: when the window was full, or validated, last; in Linux also when data was acknowledged
    /// last.
    full_at: Timestamp,
    /// `W_used` of RFC 2861: most that was in flight since.
    used: Bytes,
    pipe_ack: PipeAck,
    /// RFC 7661: since when the window is not validated.
    nonvalidated_since: Option<Timestamp>,
    /// RFC 7661: the larger of `pipeACK` and `LossFlightSize`, during recovery from a congestion event in the
    /// nonvalidated phase.
    recovering_from: Option<Bytes>,
}

impl Validation {
    pub(super) fn new(policy: WindowValidation) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(super) fn policy(&self) -> WindowValidation {
        self.policy
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent, window: Window) {
        let is_full = match self.policy {
            WindowValidation::Linux if window.cwnd < window.ssthresh => sent.in_flight * 2 > window.cwnd,
            WindowValidation::Rfc2861 | WindowValidation::Linux => sent.in_flight + sent.bytes > window.cwnd,
            _ => false,
        };
        if is_full {
            self.full_at = sent.now;
            self.used = Bytes::ZERO;
        }
    }

    /// Data was delivered. `recovering` says whether a reduction is not yet confirmed; meanwhile `pipeACK` does not
    /// change.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: Bytes, recovering: bool, rtt: &RttEstimator) {
        if self.policy == WindowValidation::Linux && !recovering {
            // `tcp_cong_avoid` notes the time whether or not the window grows.
            self.full_at = ack.now;
        }
        let samples = matches!(self.policy, WindowValidation::Rfc7661 | WindowValidation::Startup);
        if recovering || !samples {
            return;
        }
        self.pipe_ack.on_ack(ack, rtt);
        self.nonvalidated_since = match self.pipe_ack.at(ack.now) {
            Some(pipe_ack) if pipe_ack * 2 < cwnd => self.nonvalidated_since.or(Some(ack.now)),
            _ => None,
        };
    }

    /// Whether the window may grow with `ack`: RFC 7661 refuses it in the nonvalidated phase unless the sender is
    /// cwnd-limited (sections 4.4 and 4.5.3). A paced sender with data is cwnd-limited (RFC 9002, section 7.8).
    #[inline]
    pub(super) fn may_grow(&self, ack: &Ack, cwnd: Bytes, segment: Bytes) -> bool {
        !self.is_nonvalidated() || !ack.app_limited || ack.in_flight_before + segment > cwnd
    }

    fn is_nonvalidated(&self) -> bool {
        self.policy == WindowValidation::Rfc7661 && self.nonvalidated_since.is_some()
    }

    /// A congestion event with this many bytes in flight (`LossFlightSize`): the window for recovery (RFC 7661, section
    /// 4.4.1), `None` for the standard one.
    pub(super) fn on_congestion(&mut self, now: Timestamp, in_flight: Bytes) -> Option<Bytes> {
        self.recovering_from = self.is_nonvalidated().then(|| in_flight.max(self.pipe_ack.at(now).unwrap_or_default()));
        self.nonvalidated_since = None;
        self.recovering_from.map(|used| used / 2)
    }

    /// Recovery ends, and this much was lost during it (R): the window after it (RFC 7661, section 4.4.1), `None` for
    /// the standard one. `pipeACK` is undefined again.
    pub(super) fn on_recovered(&mut self, lost: Bytes) -> Option<Bytes> {
        self.pipe_ack = PipeAck::default();
        self.recovering_from.take().map(|used| used.saturating_sub(lost) / 2)
    }

    /// A retransmission timeout: standard congestion control goes on (RFC 7661, section 4.4).
    pub(super) fn on_timeout(&mut self, now: Timestamp) {
        *self = Self { full_at: now, ..Self::new(self.policy) };
    }

    /// The sender has data after idle time: the window from now on. `least` is the segment, `initial` the initial
    /// window. Whether the startup scheme runs again is the controller's decision.
    pub(super) fn on_resume(
        &mut self,
        resume: &Resume,
        window: Window,
        win: Bytes,
        segments: (Bytes, Bytes),
    ) -> Window {
        let Resume { now, idle, timeout } = *resume;
        let (segment, initial) = segments;
        if self.pipe_ack.acknowledged > Bytes::ZERO {
            self.pipe_ack.finish(self.pipe_ack.last_ack);
        }
        self.pipe_ack.since = None;
        match self.policy {
            WindowValidation::Keep | WindowValidation::Startup => window,
            WindowValidation::Rfc5681 if idle > timeout => Window { cwnd: window.cwnd.min(initial), ..window },
            WindowValidation::Rfc5681 => window,
            WindowValidation::Linux => {
                // A timeout that is just over counts from the next instant on.
                let timeouts = idle.as_nanos().saturating_sub(1).checked_div(timeout.as_nanos()).unwrap_or(0);
                if timeouts == 0 {
                    return window;
                }
                self.full_at = now;
                self.used = Bytes::ZERO;
                let halved = Bytes::new(window.cwnd.get() >> timeouts.min(63));
                Window { cwnd: halved.max(initial.min(window.cwnd)), ssthresh: remembered(window) }
            }
            WindowValidation::Rfc2861 => {
                let timeouts = idle.as_nanos().checked_div(timeout.as_nanos()).unwrap_or(0);
                if timeouts == 0 {
                    return window;
                }
                self.full_at = now;
                self.used = Bytes::ZERO;
                // Halving 64 times leaves nothing of any window.
                let cwnd = Bytes::new(window.cwnd.min(win).get() >> timeouts.min(63));
                Window { cwnd: cwnd.max(segment), ssthresh: remembered(window) }
            }
            WindowValidation::Rfc7661 => {
                // Acknowledgements from before the idle time do not count if they are older than the sampling period.
                let pipe_ack = self.pipe_ack.at(now);
                if self.nonvalidated_since.is_none() && pipe_ack.is_some_and(|pipe_ack| pipe_ack * 2 < window.cwnd) {
                    self.nonvalidated_since = Some(now - idle);
                }
                let Some(since) = self.nonvalidated_since else { return window };
                let periods = now.since(since).as_nanos() / NONVALIDATED_PERIOD.as_nanos();
                let mut window = window;
                for _ in 0..periods.min(63) {
                    let cwnd = (window.cwnd / 2).max(initial.min(window.cwnd));
                    window = Window { cwnd, ssthresh: remembered(window) };
                }
                self.nonvalidated_since = Some(since + NONVALIDATED_PERIOD * periods);
                window
            }
        }
    }

    /// Nothing waits to be sent and the window is not full: the window from now on. RFC 2861 takes the mean of the
    /// window and its used part, once in a retransmission timeout. `initial` is the initial window.
    pub(super) fn on_limited(
        &mut self,
        now: Timestamp,
        in_flight: Bytes,
        timeout: Duration,
        window: Window,
        (win, initial): (Bytes, Bytes),
    ) -> Window {
        let (win, least) = match self.policy {
            WindowValidation::Rfc2861 => (window.cwnd.min(win), Bytes::ZERO),
            WindowValidation::Linux => (window.cwnd, initial),
            _ => return window,
        };
        self.used = self.used.max(in_flight);
        if now.since(self.full_at) < timeout {
            return window;
        }
        self.full_at = now;
        let used = core::mem::take(&mut self.used).max(least);
        if self.policy == WindowValidation::Linux && used >= win {
            return window;
        }
        Window { cwnd: (win + used) / 2, ssthresh: remembered(window) }
    }

    /// What the connection delivered in an RTT before the idle time, for a scheme that runs again.
    pub(super) fn delivered(&self, idle: Duration, rtt: &RttEstimator) -> Option<SavedPath> {
        let cwnd = self.pipe_ack.at(self.pipe_ack.last_ack)?;
        Some(SavedPath { rtt: rtt.min()?, cwnd, age: idle })
    }
}

/// `ssthresh = max(ssthresh, 3/4 cwnd)` (RFC 2861, section 3.2; RFC 7661, section 4.4.3).
fn remembered(window: Window) -> Bytes {
    window.ssthresh.max(Bytes::new(window.cwnd.get() / 4 * 3))
}

#[cfg(test)]
mod tests {
    use super::super::{Controller, ControllerConfig};
    use super::*;
    use crate::test_support::acked;
    use alloc::boxed::Box;

    use crate::avoidance::{AvoidanceConfig, reno};
    use crate::event::{Decision, DecisionLog, ExitReason, Loss, Timeout};
    use crate::launch::{Continuation, Launch};
    use crate::path::PathKnowledge;
    use crate::startup::{Startup, StartupConfig, StartupState, Step, careful_resume, jump_start, slow_start};
    use crate::units::Rate;
    use crate::window::SegmentSize;

    const SEGMENT: u64 = 1000;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + MS(ms)
    }

    /// A scheme that hands its window over with its launch.
    #[derive(Clone, Debug)]
    struct EndsWithItsLaunch(Continuation);

    impl Startup for EndsWithItsLaunch {
        fn launch(&mut self, _now: Timestamp, _path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
            Launch { continuation: Some(self.0), ..Launch::window(self.0.cwnd) }
        }

        fn on_ack(&mut self, _ack: &Ack, _window: Window, _in_use: bool, _rtt: &RttEstimator) -> Step {
            Step::Exit(self.0)
        }
    }

    /// A host with an RTT of 100 ms whose window is `cwnd` segments in congestion avoidance.
    struct Host {
        controller: Controller,
        rtt: RttEstimator,
        position: u64,
    }

    impl Host {
        fn launched(policy: WindowValidation, startup: StartupConfig, path: &PathKnowledge) -> Self {
            let config = ControllerConfig {
                segment: Bytes::new(SEGMENT),
                window_validation: policy,
                ..ControllerConfig::new(startup, AvoidanceConfig::Reno(reno::Config::default()))
            };
            let mut rtt = RttEstimator::new(MS(100));
            rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
            let mut controller = Controller::new(config).unwrap();
            controller.launch(Timestamp::ZERO, path, &rtt);
            Self { controller, rtt, position: 0 }
        }

        fn new(policy: WindowValidation, cwnd: u64, ssthresh: u64) -> Self {
            let startup = StartupConfig::SlowStart(slow_start::Config::default());
            let avoidance = AvoidanceConfig::Reno(reno::Config::default());
            let config = ControllerConfig {
                segment: Bytes::new(SEGMENT),
                window_validation: policy,
                ..ControllerConfig::new(startup, avoidance.clone())
            };
            let (cwnd, ssthresh) = (Bytes::new(cwnd * SEGMENT), Bytes::new(ssthresh * SEGMENT));
            let known = Continuation { cwnd, ssthresh, reason: ExitReason::Launch };
            let avoidance = avoidance.build(SegmentSize(Bytes::new(SEGMENT)));
            let startup = StartupState::Custom(Box::new(EndsWithItsLaunch(known)));
            let mut host = Self {
                controller: Controller::with_algorithms(config, startup, avoidance).unwrap(),
                rtt: RttEstimator::new(MS(100)),
                position: 0,
            };
            host.rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
            host.controller.launch(Timestamp::ZERO, &PathKnowledge::default(), &host.rtt);
            host
        }

        fn send(&mut self, ms: u64, in_flight: u64) {
            self.position += 1;
            let (bytes, in_flight) = (Bytes::new(SEGMENT), Bytes::new(in_flight * SEGMENT));
            let sent = Sent { now: at(ms), bytes, in_flight, position: self.position, app_limited: false };
            self.controller.on_sent(&sent);
        }

        fn ack(&mut self, ms: u64, segments: u64, app_limited: bool) {
            let mut ack = acked(at(ms), segments * SEGMENT);
            self.position += segments;
            (ack.position, ack.app_limited, ack.in_flight_before) = (self.position, app_limited, Bytes::ZERO);
            self.controller.on_ack(&ack, &self.rtt);
        }

        /// The packet that is sent now is lost.
        fn lose(&mut self, ms: u64, in_flight: u64) {
            self.send(ms, in_flight);
            let in_flight = Bytes::new(in_flight * SEGMENT);
            let bytes = Bytes::new(SEGMENT);
            let after = in_flight.saturating_sub(bytes);
            let loss =
                Loss { now: at(ms), bytes, position: self.position, in_flight_before: in_flight, in_flight: after };
            self.controller.on_loss(&loss, &self.rtt);
        }

        /// Data waits again `idle` after the last packet; the timeout is 300 ms. cwnd and ssthresh in segments.
        fn resume(&mut self, ms: u64, idle: u64) -> (f64, f64) {
            let resume = Resume { now: at(ms), idle: MS(idle), timeout: MS(300) };
            self.controller.on_resume(&resume, &PathKnowledge::default(), &self.rtt);
            self.window()
        }

        fn window(&self) -> (f64, f64) {
            let segments = |bytes: Bytes| bytes.get() as f64 / SEGMENT as f64;
            (segments(self.controller.cwnd()), segments(self.controller.ssthresh()))
        }
    }

    #[test]
    fn a_window_that_is_kept_survives_any_idle_time() {
        assert_eq!(Host::new(WindowValidation::Keep, 80, 40).resume(1_000_000, 1_000_000), (80.0, 40.0));
    }

    #[test]
    fn rfc_5681_restarts_with_the_initial_window_after_a_timeout() {
        // RW = min(IW, cwnd) = min(10, 80), when the idle time exceeds the timeout of 300 ms; ssthresh stays.
        assert_eq!(Host::new(WindowValidation::Rfc5681, 80, 40).resume(1000, 300), (80.0, 40.0));
        let mut host = Host::new(WindowValidation::Rfc5681, 80, 40);
        assert_eq!(host.resume(1000, 301), (10.0, 40.0));
        // min(10, 4).
        assert_eq!(Host::new(WindowValidation::Rfc5681, 4, 40).resume(1000, 301), (4.0, 40.0));
        // Slow start: 10 + 10, 20 + 20 = ssthresh, then 1 / 40 for each segment: 40 + 40 / 40.
        let windows = [10, 20, 40].map(|segments| {
            host.ack(1100, segments, false);
            host.window().0
        });
        assert_eq!(windows, [20.0, 40.0, 41.0]);
    }

    #[test]
    fn rfc_2861_halves_for_every_timeout_and_remembers_three_quarters() {
        // 950 / 300 = 3 timeouts: 80 / 2^3 = 10; ssthresh = max(40, 3/4 * 80) = 60.
        assert_eq!(Host::new(WindowValidation::Rfc2861, 80, 40).resume(10_000, 950), (10.0, 60.0));
        // One timeout: 40. Less than one: nothing.
        assert_eq!(Host::new(WindowValidation::Rfc2861, 80, 70).resume(10_000, 300), (40.0, 70.0));
        assert_eq!(Host::new(WindowValidation::Rfc2861, 80, 40).resume(10_000, 299), (80.0, 40.0));
        // Never below a segment.
        assert_eq!(Host::new(WindowValidation::Rfc2861, 80, 40).resume(100_000, 90_000), (1.0, 60.0));
        // win = min(cwnd, receive window) = 20: 20 / 2.
        let mut host = Host::new(WindowValidation::Rfc2861, 80, 40);
        let path = PathKnowledge { receive_window: Some(Bytes::new(20 * SEGMENT)), ..PathKnowledge::default() };
        host.controller.on_resume(&Resume { now: at(500), idle: MS(300), timeout: MS(300) }, &path, &host.rtt);
        assert_eq!(host.window(), (10.0, 60.0));
    }

    #[test]
    fn rfc_2861_approaches_what_an_application_uses() {
        let mut host = Host::new(WindowValidation::Rfc2861, 80, 40);
        let limited = |host: &mut Host, ms, in_flight| {
            let in_flight = Bytes::new(in_flight * SEGMENT);
            host.controller.on_limited(at(ms), in_flight, MS(300), Bytes::MAX, &host.rtt);
            host.window()
        };
        // The window was full at 1000 ms; less than a timeout later nothing happens, but W_used = 20 is noted.
        host.send(1000, 80);
        assert_eq!(limited(&mut host, 1200, 20), (80.0, 40.0));
        // (80 + max(20, 10)) / 2 = 50; ssthresh = max(40, 60).
        assert_eq!(limited(&mut host, 1300, 10), (50.0, 60.0));
        // A timeout later, with 10 used: (50 + 10) / 2 = 30.
        assert_eq!(limited(&mut host, 1599, 10), (50.0, 60.0));
        assert_eq!(limited(&mut host, 1600, 10), (30.0, 60.0));
    }

    #[test]
    fn linux_keeps_the_initial_window_and_counts_what_is_over_a_timeout() {
        // Over 300 ms, and not over 600: once; 600 exactly is not over it.
        assert_eq!(Host::new(WindowValidation::Linux, 80, 40).resume(10_000, 300), (80.0, 40.0));
        assert_eq!(Host::new(WindowValidation::Linux, 80, 40).resume(10_000, 301), (40.0, 60.0));
        assert_eq!(Host::new(WindowValidation::Linux, 80, 40).resume(10_000, 600), (40.0, 60.0));
        // 80 / 2^3 = 10, and no less than the initial window of 10; a window below it stays.
        assert_eq!(Host::new(WindowValidation::Linux, 80, 40).resume(100_000, 90_000), (10.0, 60.0));
        assert_eq!(Host::new(WindowValidation::Linux, 4, 40).resume(100_000, 90_000), (4.0, 40.0));
    }

    #[test]
    fn linux_approaches_what_an_application_uses_down_to_the_initial_window() {
        let limited = |host: &mut Host, ms, in_flight| {
            let in_flight = Bytes::new(in_flight * SEGMENT);
            host.controller.on_limited(at(ms), in_flight, MS(300), Bytes::MAX, &host.rtt);
            host.window()
        };
        let mut host = Host::new(WindowValidation::Linux, 80, 40);
        host.send(1000, 80);
        // (80 + max(4, 10)) / 2 = 45, then (45 + 10) / 2 = 27.5; a window of 10 stays.
        assert_eq!(limited(&mut host, 1299, 4), (80.0, 40.0));
        assert_eq!(limited(&mut host, 1300, 4), (45.0, 60.0));
        assert_eq!(limited(&mut host, 1600, 4), (27.5, 60.0));
        assert_eq!(limited(&mut Host::new(WindowValidation::Linux, 10, 40), 1600, 4), (10.0, 40.0));
        // While data is acknowledged nothing is taken away.
        let mut host = Host::new(WindowValidation::Linux, 80, 40);
        host.send(1000, 80);
        host.ack(1250, 1, true);
        assert_eq!(limited(&mut host, 1300, 4).0, 80.0);
        assert!(limited(&mut host, 1550, 4).0 < 80.0);
        // In slow start more than half a window is a full one; afterwards it is not.
        for (ssthresh, after) in [(100, (80.0, 100.0)), (40, (45.0, 60.0))] {
            let mut host = Host::new(WindowValidation::Linux, 80, ssthresh);
            host.send(1000, 80);
            assert_eq!(limited(&mut host, 1299, 4).0, 80.0);
            host.send(1299, 41);
            assert_eq!(limited(&mut host, 1300, 4), after, "{ssthresh}");
        }
    }

    /// In the nonvalidated phase: 10 segments were acknowledged in an RTT, of a window of 80.
    fn nonvalidated() -> Host {
        let mut host = Host::new(WindowValidation::Rfc7661, 80, 40);
        host.ack(1000, 10, true);
        host
    }

    #[test]
    fn rfc_7661_keeps_an_unused_window_without_growing_it() {
        let mut host = nonvalidated();
        // pipeACK = 10 < 80 / 2: no growth for a limited application, also not beyond the sampling period.
        host.ack(1100, 10, true);
        assert_eq!(host.window(), (80.0, 40.0));
        assert_eq!(host.resume(200_000, 198_900), (80.0, 40.0));
        // A sender that fills its window grows it: 80 + 40 / 80.
        host.ack(200_100, 40, false);
        assert_eq!(host.window(), (80.5, 40.0));
        // And with pipeACK >= cwnd / 2 the window is validated: 81 acknowledged in an RTT.
        host.ack(200_200, 81, false);
        assert!(!host.controller.validation.as_ref().unwrap().is_nonvalidated());
    }

    #[test]
    fn rfc_7661_halves_a_window_that_was_not_validated_for_five_minutes() {
        let mut host = nonvalidated();
        assert_eq!(host.resume(300_999, 299_000), (80.0, 40.0));
        // ssthresh = max(40, 3/4 * 80), cwnd = max(80 / 2, IW).
        assert_eq!(host.resume(301_000, 300_000), (40.0, 60.0));
        // The next five minutes begin. 10 minutes later: 20, then max(10, IW = 10).
        assert_eq!(host.resume(901_000, 600_000), (10.0, 60.0));
        assert_eq!(host.resume(1_801_000, 600_000), (10.0, 60.0));
    }

    #[test]
    fn rfc_7661_forgets_acknowledgements_older_than_the_sampling_period() {
        let mut host = Host::new(WindowValidation::Rfc7661, 80, 40);
        // 60 in an RTT validate 80; a second without any, and pipeACK is 0.
        host.ack(1000, 60, false);
        let validation = |host: &Host| host.controller.validation.as_ref().unwrap().clone();
        assert_eq!(validation(&host).pipe_ack.at(at(2000)), Some(Bytes::new(60 * SEGMENT)));
        assert_eq!(validation(&host).pipe_ack.at(at(2001)), Some(Bytes::ZERO));
        assert!(!validation(&host).is_nonvalidated());
        host.resume(3000, 1999);
        assert!(validation(&host).is_nonvalidated());
    }

    #[test]
    fn rfc_7661_reduces_to_what_was_really_used() {
        let mut host = nonvalidated();
        // max(pipeACK, LossFlightSize) / 2 = max(10, 12) / 2 = 6, not 80 / 2.
        host.lose(1100, 12);
        assert_eq!(host.window(), (6.0, 6.0));
        // 10 of the 12 arrive, nothing is in flight: R = 12 - 10 = 2, so (12 - 2) / 2 = 5.
        host.ack(1150, 10, true);
        assert_eq!(host.window(), (5.0, 5.0));
        // The standard methods go on until pipeACK is known again.
        let validation = host.controller.validation.as_ref().unwrap();
        assert_eq!(validation.pipe_ack.at(at(1150)), None);
        assert!(!validation.is_nonvalidated());
    }

    #[test]
    fn in_the_validated_phase_the_reduction_is_the_standard_one() {
        let mut host = Host::new(WindowValidation::Rfc7661, 80, 40);
        // 50 >= 80 / 2: validated, and half of 80 remains.
        host.ack(1000, 50, true);
        host.lose(1100, 12);
        assert_eq!(host.window(), (40.0, 40.0));
        host.controller.on_timeout(&Timeout { now: at(1200), in_flight_before: Bytes::ZERO }, &host.rtt);
        assert_eq!(host.controller.cwnd(), Bytes::new(2 * SEGMENT));
    }

    #[test]
    fn the_scheme_runs_again_with_what_the_connection_delivered() {
        let config = careful_resume::Config { max_jump: None, ..careful_resume::Config::default() };
        let startup = StartupConfig::CarefulResume(config);
        let mut host = Host::launched(WindowValidation::Startup, startup, &PathKnowledge::default());
        // 100 segments were acknowledged in an RTT.
        host.ack(100, 100, false);
        let saved = host.controller.validation.as_ref().unwrap().delivered(MS(5000), &host.rtt);
        let expected = SavedPath { rtt: MS(100), cwnd: Bytes::new(100 * SEGMENT), age: MS(5000) };
        assert_eq!(saved, Some(expected));
        host.lose(200, 20);
        host.ack(300, 1, false);
        // Not within the timeout.
        let kept = host.window();
        assert_eq!(host.resume(600, 300), kept);
        assert!(!host.controller.in_startup());
        // The initial window, as the scheme launches, and no threshold.
        assert_eq!(host.resume(5300, 5000).0, 10.0);
        assert_eq!(host.controller.ssthresh(), Bytes::MAX);
        assert!(host.controller.in_startup());
        let launches = core::iter::from_fn(|| host.controller.take_decision())
            .filter(|(_, decision)| matches!(decision, Decision::Launched { .. }))
            .count();
        assert_eq!(launches, 2);
    }

    #[test]
    fn a_launch_after_idle_time_uses_the_rtt_of_now_and_what_waits_now() {
        let startup = StartupConfig::JumpStart(jump_start::Config::default());
        let waits = |segments: u64| PathKnowledge {
            handshake_rtt: Some(MS(20)),
            bytes_waiting: Some(Bytes::new(segments * SEGMENT)),
            ..PathKnowledge::default()
        };
        let mut host = Host::launched(WindowValidation::Startup, startup, &waits(30));
        host.send(0, 30);
        host.ack(100, 30, false);
        let resume = Resume { now: at(5000), idle: MS(4900), timeout: MS(300) };
        host.controller.on_resume(&resume, &waits(50), &host.rtt);
        // 50 segments over the smoothed RTT of 100 ms: 500,000 bytes a second.
        assert_eq!(host.window().0, 50.0);
        assert_eq!(host.controller.pacing_rate(), Some(Rate::from_bits_per_sec(4_000_000)));
    }

    #[test]
    fn a_path_change_forgets_the_path_and_what_was_sent_over_it() {
        let path = PathKnowledge {
            handshake_rtt: Some(MS(20)),
            bytes_waiting: Some(Bytes::new(50 * SEGMENT)),
            receive_window: Some(Bytes::new(90 * SEGMENT)),
            ..PathKnowledge::default()
        };
        let startup = StartupConfig::JumpStart(jump_start::Config::default());
        let mut host = Host::launched(WindowValidation::Keep, startup, &path);
        assert_eq!(host.window().0, 50.0);
        host.send(0, 1);
        let rtt = RttEstimator::new(MS(333));
        host.controller.on_path_change(at(50), &path.for_new_path(), &rtt);
        // Without an RTT there is no jump: the initial window, and the initial RTT for pacing.
        assert_eq!(host.window().0, 10.0);
        // The packet of the old path neither grows nor reduces the window; one of the new path does.
        let mut ack = acked(at(60), SEGMENT);
        ack.position = host.position;
        host.controller.on_ack(&ack, &rtt);
        host.position -= 1;
        host.lose(70, 10);
        assert_eq!(host.window().0, 10.0);
        host.ack(400, 1, false);
        assert_eq!(host.window().0, 11.0);
    }
}
