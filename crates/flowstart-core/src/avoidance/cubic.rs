//! CUBIC: the window is a cubic function of the time since the last congestion event.
//!
//! Reference: RFC 9438. After a congestion event the window approaches the size where it happened (`W_max`), stays near
//! it and then probes beyond, `W(t) = C (t - K)^3 + W_max`. If a Reno flow would be faster, the window follows Reno's
//! estimate. A flow that has a loss before it is back at `W_max` makes room for newcomers (fast convergence).
//!
//! Differences from the reference: `connections = N` makes one flow as aggressive as N, as in Google's QUIC (its
//! default is 2): beta becomes (N - 1 + beta) / N and the Reno estimate grows N^2 times as fast.
//! `approach = "half-acked"` takes Google's way to the target: the window jumps to W(t + min RTT) but by at most half
//! of the acknowledged bytes. `approach = "whole-segments"` takes that of Linux (`tcp_cubic.c`), which ns-3 shares:
//! windows are whole segments, the target is W(t + min RTT), at least two acknowledged segments make one of growth, at
//! most 20 before the first loss, and an unused window does not change the epoch, for which idle time does not count
//! (the RFC leaves this open in section 5.8). Where Linux and ns-3 differ, ns-3 is the default, and `surplus` and
//! `recount_after` are for Linux (`tcp_cong_avoid_ai`, `bictcp_update`). Some details of Linux are not modelled: it
//! counts time in ticks, evaluates the curve at most once a tick, has a C of 410/1024, and looks ahead by the smallest
//! RTT of data, without that of the handshake. In the other approaches an unused window ends the epoch, and a new one
//! starts with the next growth (section 5.8 leaves this open; Google's code does the same). Without an earlier loss
//! `W_max` is the window at the start of the epoch and K is 0, so the growth is convex at once. A timeout forgets
//! `W_max`, so the next epoch begins the same way (section 4.8; Linux and Google's code forget it too); with
//! `after_timeout = "keep-plateau"` it stays, as in ns-3.
//!
//! `beta_ecn` is what remains of the window after CE marks (ABE, RFC 8511). It also applies to the mark that ends slow
//! start; the RFC speaks of congestion avoidance. The plateau and the Reno estimate still use beta.
//!
//! Status: validated by `ns3-startup`; Google's variant by `blitzstart-table1`; `beta_ecn` by worked examples.

use super::LossBased;
use crate::event::Ack;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// One line for listings.
pub const SUMMARY: &str = "cubic function of the time since the last congestion event";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 9438";

/// How the window moves to the cubic target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Approach {
    /// RFC 9438, section 4.4: (target - cwnd) / cwnd per acknowledged segment.
    #[default]
    Rfc9438,
    /// Google's QUIC: to the target, by at most half of the acknowledged bytes.
    HalfAcked,
    /// Linux and ns-3: one segment for every cwnd / (target - cwnd) acknowledged segments, everything in whole
    /// segments.
    WholeSegments,
}

/// What a timeout leaves of the plateau.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AfterTimeout {
    /// Nothing: K = 0 and `W_max` = cwnd in the next epoch (RFC 9438, section 4.8; Linux; Google's QUIC).
    #[default]
    Forget,
    /// `W_max` is that of the reduction, and the next epoch approaches it (ns-3 since 2024).
    KeepPlateau,
}

/// Whole segments: what happens to acknowledged segments that were counted when growth needed more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Surplus {
    /// They count like all others, an acknowledgement adds at most one segment of growth, and reductions do not change
    /// the count (ns-3).
    #[default]
    Counts,
    /// They always make one segment of growth. The segments of an acknowledgement then make as many as they can, and a
    /// reduction restarts the count (Linux).
    OneSegment,
}

#[cfg(feature = "serde")]
impl Surplus {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(feature = "serde")]
impl AfterTimeout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Parameters of CUBIC.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// C in segments/s^3, 0.0001 to 100. RFC 9438, section 5.1: 0.4.
    pub c: f64,
    /// `beta_cubic` of one connection, 0.1 to 0.99. RFC 9438, section 4.6: 0.7.
    /// Linux: 717 / 1024.
    pub beta: f64,
    /// What remains of the window of one connection after CE marks, 0.1 to 0.99. Default: as after loss. RFC 8511,
    /// section 3.1: 0.85.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub beta_ecn: Option<f64>,
    /// Connections to emulate, 1 to 100. Google's QUIC: 2.
    pub connections: u32,
    /// Fast convergence (RFC 9438, section 4.7). Default: on.
    pub fast_convergence: bool,
    /// Segments by which a window may miss `W_max` and still count as back there, 0 to 1000. RFC 9438: 0; Google's
    /// QUIC: 1, since byte-counted growth ends slightly below `W_max` without any competition.
    pub convergence_margin: f64,
    /// Follow the Reno estimate when it is larger (RFC 9438, section 4.3). Default: on.
    pub reno_friendly: bool,
    /// How the window moves to the target. Default: as in RFC 9438.
    pub approach: Approach,
    /// What a timeout leaves of the plateau. Default: as in RFC 9438.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "AfterTimeout::is_default"))]
    pub after_timeout: AfterTimeout,
    /// Whole segments: what happens to those that were counted at a slower pace. Default: they count like all others.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Surplus::is_default"))]
    pub surplus: Surplus,
    /// Whole segments: how long the number of segments for one of growth stays valid while the window does not change,
    /// up to 1 s. Default: 0, each acknowledgement computes a new one; Linux: 1/32 s.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_zero"))]
    pub recount_after: Duration,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(duration: &Duration) -> bool {
    *duration == Duration::ZERO
}

impl Default for Config {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            beta_ecn: None,
            connections: 1,
            fast_convergence: true,
            convergence_margin: 0.0,
            reno_friendly: true,
            approach: Approach::Rfc9438,
            after_timeout: AfterTimeout::Forget,
            surplus: Surplus::Counts,
            recount_after: Duration::ZERO,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("c", self.c, 0.000_1..=100.0)?;
        ConfigError::unless_in("beta", self.beta, 0.1..=0.99)?;
        ConfigError::unless_in("beta_ecn", self.beta_ecn.unwrap_or(self.beta), 0.1..=0.99)?;
        ConfigError::unless_in("connections", self.connections, 1..=100)?;
        ConfigError::unless_in("convergence_margin", self.convergence_margin, 0.0..=1000.0)?;
        ConfigError::unless_in("recount_after", self.recount_after, Duration::ZERO..=Duration::from_millis(1000))
    }
}

/// State of CUBIC, in segments and seconds as in the reference.
#[derive(Clone, Debug)]
pub struct Cubic {
    c: f64,
    fast_convergence: bool,
    convergence_margin: f64,
    reno_friendly: bool,
    approach: Approach,
    after_timeout: AfterTimeout,
    surplus: Surplus,
    recount_after: Duration,
    /// `beta_cubic` of the emulated connections together.
    beta: f64,
    /// The same after CE marks.
    beta_ecn: f64,
    /// `alpha_cubic`: additive increase of the Reno estimate.
    alpha: f64,
    /// The share of the window that is acknowledged for each segment of the Reno estimate in whole segments.
    reno_step: f64,
    segment: f64,
    /// Window at the last congestion event; `None` before the first.
    w_max: Option<f64>,
    /// Window before the last reduction.
    cwnd_prior: f64,
    /// Start of the current congestion avoidance stage.
    epoch_start: Option<Timestamp>,
    /// Time from the epoch's start until the window is back at `origin`.
    k: f64,
    /// The plateau of the current epoch: `w_max`, or the epoch's first window when that is larger.
    origin: f64,
    /// Estimate of the window Reno would have.
    w_est: f64,
    /// Growth below one byte, carried to the next acknowledgement; with whole segments, segments acknowledged since the
    /// last growth.
    carry: f64,
    /// Whole segments: segments acknowledged since `w_est` grew (`ack_cnt` of Linux).
    acknowledged: f64,
    /// Whole segments: the last computed count, if it stays valid for a while.
    counted: Option<Count>,
}

/// Acknowledged segments that make one of growth.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// How many.
    segments: f64,
    /// Time of the computation (`last_time`).
    at: Timestamp,
    /// For which window (`last_cwnd`).
    cwnd: f64,
}

/// Acknowledged segments that make one segment of growth, with whole segments: at least this many.
const FASTEST: f64 = 2.0;
/// At most this many before the first loss.
const SLOWEST_BEFORE_LOSS: f64 = 20.0;
/// And this many times the window when the target is not above it.
const SLOWEST: f64 = 100.0;

impl Cubic {
    /// CUBIC that counts in segments of this size.
    #[expect(clippy::needless_pass_by_value, reason = "the registry builds every algorithm with its configuration")]
    pub fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        let n = f64::from(config.connections.max(1));
        let beta = (n - 1.0 + config.beta) / n;
        let beta_ecn = (n - 1.0 + config.beta_ecn.unwrap_or(config.beta)) / n;
        let alpha = 3.0 * n * n * (1.0 - beta) / (1.0 + beta);
        // Linux and ns-3 have eighths (`beta_scale`: 15 with their beta), and one connection.
        let reno_step = if config.connections == 1 { libm::floor(8.0 / alpha) / 8.0 } else { 1.0 / alpha };
        Self {
            c: config.c,
            fast_convergence: config.fast_convergence,
            convergence_margin: config.convergence_margin,
            reno_friendly: config.reno_friendly,
            approach: config.approach,
            after_timeout: config.after_timeout,
            surplus: config.surplus,
            recount_after: config.recount_after,
            beta,
            beta_ecn,
            alpha,
            reno_step,
            segment: segment.get() as f64,
            w_max: None,
            cwnd_prior: 0.0,
            epoch_start: None,
            k: 0.0,
            origin: 0.0,
            w_est: 0.0,
            carry: 0.0,
            acknowledged: 0.0,
            counted: None,
        }
    }

    /// A window in segments; whole segments if the approach counts them.
    fn in_segments(&self, window: Bytes) -> f64 {
        let segments = window.get() as f64 / self.segment;
        if self.approach == Approach::WholeSegments { libm::floor(segments) } else { segments }
    }

    /// Starts a congestion avoidance stage with the window `cwnd` (RFC 9438, section 4.2).
    fn start_epoch(&mut self, now: Timestamp, cwnd: f64) {
        self.epoch_start = Some(now);
        self.w_est = cwnd;
        self.acknowledged = 0.0;
        if self.approach != Approach::WholeSegments {
            self.carry = 0.0;
        }
        match self.w_max {
            // K = cbrt((W_max - cwnd_epoch) / C) (equation 2)
            Some(w_max) if w_max > cwnd => {
                self.k = libm::cbrt((w_max - cwnd) / self.c);
                self.origin = w_max;
            }
            _ => {
                self.k = 0.0;
                self.origin = cwnd;
            }
        }
    }

    /// Seconds since the epoch began; an epoch begins now if there is none.
    fn time_in_epoch(&mut self, now: Timestamp, cwnd: f64) -> f64 {
        if self.epoch_start.is_none() {
            self.start_epoch(now, cwnd);
        }
        now.since(self.epoch_start.unwrap_or(now)).as_secs()
    }

    /// Segments that must be acknowledged for a segment of growth: `bictcp_update` of Linux.
    fn segments_per_growth(&mut self, t: f64, cwnd: f64, acked: f64) -> f64 {
        let distance = libm::fabs(t - self.k);
        let delta = libm::floor(self.c * distance * distance * distance);
        let target = if t < self.k { self.origin - delta } else { self.origin + delta };
        let mut count = if target > cwnd { libm::floor(cwnd / (target - cwnd)) } else { SLOWEST * cwnd };
        if self.w_max.is_none() {
            count = count.min(SLOWEST_BEFORE_LOSS);
        }
        self.acknowledged += acked;
        if self.reno_friendly {
            // Whole steps, which are never empty with the betas of Linux and of ns-3. With an alpha above the window
            // the estimate grows by more than a segment for each that is acknowledged.
            let whole = libm::floor(cwnd * self.reno_step);
            let step = if whole < 1.0 { (cwnd.max(1.0) / self.alpha).min(1.0) } else { whole };
            if self.acknowledged > step {
                let steps = libm::ceil(self.acknowledged / step) - 1.0;
                self.acknowledged -= steps * step;
                self.w_est += steps;
            }
            if self.w_est > cwnd {
                count = count.min(libm::floor(cwnd / (self.w_est - cwnd)));
            }
        }
        count.max(FASTEST)
    }

    /// The same, if it stays valid for a while (`bictcp_update` of Linux). The epoch begins when it is computed.
    fn kept_count(&mut self, now: Timestamp, ahead: f64, cwnd: f64, acked: f64) -> f64 {
        if let Some(known) = self.counted
            && known.cwnd.to_bits() == cwnd.to_bits()
            && now.since(known.at) <= self.recount_after
        {
            self.acknowledged += acked;
            return known.segments;
        }
        let t = self.time_in_epoch(now, cwnd) + ahead;
        let segments = self.segments_per_growth(t, cwnd, acked);
        self.counted = (self.recount_after > Duration::ZERO).then_some(Count { segments, at: now, cwnd });
        segments
    }

    /// Segments of growth when `acked` more were acknowledged and `count` make one (`tcp_cong_avoid_ai` of Linux, and
    /// `TcpCubic::IncreaseWindow` of ns-3).
    fn whole_growth(&mut self, acked: f64, count: f64) -> f64 {
        let mut grown = 0.0;
        if self.surplus == Surplus::OneSegment && self.carry >= count {
            (self.carry, grown) = (0.0, 1.0);
        }
        self.carry += acked;
        let earned = libm::floor(self.carry / count);
        let earned = if self.surplus == Surplus::OneSegment { earned } else { earned.min(1.0) };
        self.carry -= earned * count;
        grown + earned
    }

    /// A congestion event that leaves `beta` of `base`.
    fn reduce(&mut self, beta: f64, base: Bytes, window: Window) -> Bytes {
        let cwnd = self.in_segments(window.cwnd);
        // Fast convergence: W_max = cwnd (1 + beta) / 2 when the window had not come back to W_max (section 4.7).
        let shrinks = self.fast_convergence && self.w_max.is_some_and(|w_max| cwnd + self.convergence_margin < w_max);
        let w_max = if shrinks { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch_start = None;
        if self.approach == Approach::WholeSegments {
            if self.surplus == Surplus::OneSegment {
                self.carry = 0.0;
            }
            self.w_max = Some(libm::floor(w_max));
            return Bytes::new((libm::floor(self.in_segments(base) * beta) * self.segment) as u64);
        }
        self.w_max = Some(w_max);
        base.scale(beta)
    }

    /// `W_cubic(t) = C (t - K)^3 + W_max` (equation 1).
    fn w_cubic(&self, t: f64) -> f64 {
        let distance = t - self.k;
        self.c * distance * distance * distance + self.origin
    }
}

impl LossBased for Cubic {
    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        let segment = segment.get() as f64;
        // Windows of the past are bytes that the path carried; in larger segments they are fewer.
        let scale = self.segment / segment;
        self.w_max = self.w_max.map(|w_max| w_max * scale);
        for past in [&mut self.cwnd_prior, &mut self.origin, &mut self.w_est] {
            *past *= scale;
        }
        self.counted = None;
        self.segment = segment;
    }

    fn on_enter(&mut self, _now: Timestamp, _window: Window) {
        self.epoch_start = None;
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes {
        let cwnd = self.in_segments(window.cwnd);
        let acked = ack.bytes.get() as f64 / self.segment;
        let ahead = rtt.min().unwrap_or_default().as_secs();
        let grown = match self.approach {
            Approach::Rfc9438 => {
                let t = self.time_in_epoch(ack.now, cwnd);
                // Once the estimate has passed cwnd_prior it grows like one Reno flow (section 4.3).
                let alpha = if self.w_est < self.cwnd_prior { self.alpha } else { self.alpha.max(1.0) };
                self.w_est += alpha * acked / cwnd; // equation 4
                if self.reno_friendly && self.w_cubic(t) < self.w_est {
                    self.w_est.max(cwnd)
                } else {
                    let target = self.w_cubic(t + rtt.smoothed().as_secs()).clamp(cwnd, 1.5 * cwnd);
                    cwnd + (target - cwnd) / cwnd * acked
                }
            }
            Approach::HalfAcked => {
                let t = self.time_in_epoch(ack.now, cwnd);
                self.w_est += self.alpha * acked / self.w_est;
                let target = self.w_cubic(t + ahead).min(cwnd + acked / 2.0);
                let estimate = if self.reno_friendly { self.w_est } else { 0.0 };
                target.max(estimate).max(cwnd)
            }
            Approach::WholeSegments => {
                let count = self.kept_count(ack.now, ahead, cwnd, acked);
                return window.cwnd + Bytes::new((self.whole_growth(acked, count) * self.segment) as u64);
            }
        };
        let bytes = (grown - cwnd) * self.segment + self.carry;
        self.carry = bytes - libm::floor(bytes);
        window.cwnd + Bytes::new(bytes as u64)
    }

    fn on_underused(&mut self, _now: Timestamp) {
        if self.approach != Approach::WholeSegments {
            self.epoch_start = None;
        }
    }

    fn on_resume(&mut self, now: Timestamp, idle: Duration) {
        // Otherwise the window would jump to its value without the pause: by a fifth in the first RTT after 2 s.
        self.epoch_start = self.epoch_start.map(|start| (start + idle).min(now));
    }

    // The plateau of all connections together stays where it was.
    fn on_share(&mut self, _now: Timestamp, before: Bytes, window: Window) {
        let part = window.cwnd.get() as f64 / before.get().max(1) as f64;
        self.w_max = self.w_max.map(|w_max| w_max * part);
        self.cwnd_prior *= part;
        self.epoch_start = None;
        self.counted = None;
    }

    fn on_congestion(&mut self, _now: Timestamp, base: Bytes, window: Window) -> Bytes {
        self.reduce(self.beta, base, window)
    }

    fn on_ecn(&mut self, _now: Timestamp, base: Bytes, window: Window) -> Bytes {
        self.reduce(self.beta_ecn, base, window)
    }

    // K = 0 and W_max = cwnd in the first stage after a timeout (section 4.8): as before the first congestion event.
    fn on_timeout(&mut self) {
        self.epoch_start = None;
        if self.after_timeout == AfterTimeout::Forget {
            self.w_max = None;
            self.counted = None;
        }
    }

    // In the reference windows are in segments, here in bytes, as the window itself is.
    fn observe(&self, seen: &mut Variables<'_>) {
        let bytes = |segments: f64| Bytes::new((segments * self.segment) as u64);
        if let Some(w_max) = self.w_max {
            seen.bytes("W_max", bytes(w_max));
        }
        if let Some(start) = self.epoch_start {
            seen.time("K", Duration::from_secs(self.k));
            seen.bytes("W_cubic", bytes(self.w_cubic(seen.now().since(start).as_secs())));
            if self.reno_friendly {
                seen.bytes("W_est", bytes(self.w_est));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::test_support::acked;
    use crate::time::Duration;

    const SEGMENT: u64 = 1200;

    fn window(segments: f64) -> Window {
        let cwnd = Bytes::new((segments * SEGMENT as f64) as u64);
        Window { cwnd, ssthresh: cwnd }
    }

    fn seconds(t: f64) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(t)
    }

    #[test]
    fn the_plateau_is_reached_after_k() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        // W_max = 2304 segments: the cut of 30 % leaves 1612.8, and K = cbrt(2304 * 0.3 / 0.4) = cbrt(1728) = 12 s.
        let after = cubic.on_congestion(seconds(0.0), window(2304.0).cwnd, window(2304.0));
        assert_eq!(after, Bytes::new((1612.8 * 1200.0) as u64));
        cubic.start_epoch(seconds(0.0), 1612.8);
        assert!((cubic.k - 12.0).abs() < 1e-9, "{}", cubic.k);
        // W(0) = 0.4 * (-12)^3 + 2304 = 1612.8; W(12) = 2304; W(15) = 0.4 * 27 + 2304 = 2314.8.
        assert!((cubic.w_cubic(0.0) - 1612.8).abs() < 1e-9);
        assert!((cubic.w_cubic(12.0) - 2304.0).abs() < 1e-9);
        assert!((cubic.w_cubic(15.0) - 2314.8).abs() < 1e-9);
    }

    #[test]
    fn the_plateau_has_as_many_bytes_in_segments_of_another_size() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(2304.0).cwnd, window(2304.0));
        cubic.on_segment_size(SegmentSize(Bytes::new(1452)));
        cubic.start_epoch(seconds(0.0), 1612.8 * 1200.0 / 1452.0);
        assert!((cubic.w_cubic(cubic.k) * 1452.0 - 2304.0 * 1200.0).abs() < 1.0, "{}", cubic.origin);
    }

    #[test]
    fn a_small_window_grows_at_least_like_reno() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(10.0).cwnd, window(10.0));
        let mut current = window(7.0);
        let mut rtt = RttEstimator::new(Duration::from_millis(10));
        rtt.update(Timestamp::ZERO, Duration::from_millis(10), Duration::ZERO);
        let rounds = 20;
        for round in 0..rounds {
            for _ in 0..current.cwnd.get() / SEGMENT {
                let ack = acked(seconds(0.01 * f64::from(round)), SEGMENT);
                current.cwnd = cubic.on_ack(&ack, current, &rtt);
            }
        }
        // alpha = 3 * 0.3 / 1.7 = 0.529 segments a round until W_est passes 10, then 1: after six rounds 10, after 20
        // about 23. In 0.2 s the cubic term alone would have gained 0.4 * (K^3 - (K - 0.2)^3) < 1 segment.
        let segments = current.cwnd.get() as f64 / SEGMENT as f64;
        assert!((21.0..24.0).contains(&segments), "{segments}");
    }

    #[test]
    fn two_connections_are_twice_as_aggressive() {
        let config = Config { connections: 2, ..Config::default() };
        let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
        // beta = (2 - 1 + 0.7) / 2 = 0.85; alpha = 3 * 4 * 0.15 / 1.85 = 0.97297.
        assert_eq!(cubic.on_congestion(seconds(0.0), Bytes::new(100_000), window(100.0)), Bytes::new(85_000));
        assert!((cubic.alpha - 0.972_97).abs() < 1e-4, "{}", cubic.alpha);
    }

    #[test]
    fn marks_can_take_less_than_loss() {
        let config = Config { beta_ecn: Some(0.85), ..Config::default() };
        let cut = |config: &Config, ecn: bool| {
            let mut cubic = Cubic::new(config.clone(), SegmentSize(Bytes::new(SEGMENT)));
            let (base, window) = (Bytes::new(100_000), window(100.0));
            let cwnd = if ecn {
                cubic.on_ecn(seconds(0.0), base, window)
            } else {
                cubic.on_congestion(seconds(0.0), base, window)
            };
            (cwnd.get(), cubic.w_max)
        };
        assert_eq!([cut(&config, true), cut(&config, false)], [(85_000, Some(100.0)), (70_000, Some(100.0))]);
        assert_eq!(cut(&Config::default(), true), (70_000, Some(100.0)));
        // Two connections: (2 - 1 + 0.85) / 2 = 0.925.
        assert_eq!(cut(&Config { connections: 2, ..config }, true), (92_500, Some(100.0)));
        assert_eq!(Config { beta_ecn: Some(0.0), ..Config::default() }.validate().unwrap_err().field, "beta_ecn");
    }

    fn whole_segments() -> Cubic {
        let config = Config { approach: Approach::WholeSegments, reno_friendly: false, ..Config::default() };
        Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)))
    }

    #[test]
    fn idle_time_does_not_count_for_the_epoch() {
        let mut cubic = whole_segments();
        cubic.on_congestion(seconds(0.0), window(100.0).cwnd, window(100.0));
        cubic.start_epoch(seconds(1.0), 70.0);
        // At 3 s the last packet left, 2 s into the epoch; at 8 s there is data again.
        cubic.on_resume(seconds(8.0), Duration::from_secs(5.0));
        assert_eq!(cubic.epoch_start, Some(seconds(6.0)));
        // Idle time longer than the epoch leaves nothing of it, and does not move it into the future.
        cubic.on_resume(seconds(9.0), Duration::from_secs(5.0));
        assert_eq!(cubic.epoch_start, Some(seconds(9.0)));
    }

    /// Segments that must be acknowledged at `t` after a window of `w_max` was cut.
    fn count(w_max: f64, t: f64) -> f64 {
        let mut cubic = whole_segments();
        let after = cubic.on_congestion(seconds(0.0), window(w_max).cwnd, window(w_max));
        let cwnd = after.get() as f64 / SEGMENT as f64;
        cubic.start_epoch(seconds(0.0), cwnd);
        cubic.segments_per_growth(t, cwnd, 0.0)
    }

    #[test]
    fn with_whole_segments_the_distance_to_the_target_sets_the_pace() {
        // W_max = 2304: the cut leaves floor(1612.8) = 1612, K = cbrt(692 / 0.4) = 12.0046 s.
        // t = 2: target = 2304 - floor(0.4 * 10.0046^3) = 1904, count = floor(1612 / 292) = 5.
        assert_eq!(count(2304.0, 2.0).to_bits(), 5.0f64.to_bits());
        // t = 8: target = 2304 - floor(0.4 * 4.0046^3) = 2279, 1612 / 667: no faster than 2.
        assert_eq!(count(2304.0, 8.0).to_bits(), 2.0f64.to_bits());
        // At t = 0 the target is the window: 100 windows.
        assert_eq!(count(2304.0, 0.0).to_bits(), 161_200.0f64.to_bits());
    }

    #[test]
    fn with_whole_segments_the_window_grows_by_at_least_a_twentieth_before_the_first_loss() {
        let mut cubic = whole_segments();
        let mut rtt = RttEstimator::new(Duration::from_millis(10));
        rtt.update(Timestamp::ZERO, Duration::from_millis(10), Duration::ZERO);
        let mut current = window(100.5);
        for _ in 0..100 {
            current.cwnd = cubic.on_ack(&acked(seconds(0.0), SEGMENT), current, &rtt);
        }
        assert_eq!(current.cwnd, Bytes::new((105.5 * SEGMENT as f64) as u64));
    }

    /// Windows in segments after acknowledgements of this many segments each, at these times in ms, from a cut of 100
    /// on.
    fn windows_after(config: &Config, acks: &[(u64, u64)]) -> (Vec<f64>, Cubic) {
        let whole = Config { approach: Approach::WholeSegments, reno_friendly: false, ..config.clone() };
        let mut cubic = Cubic::new(whole, SegmentSize(Bytes::new(SEGMENT)));
        let mut current = window(100.0);
        current.cwnd = cubic.on_congestion(seconds(0.0), current.cwnd, current);
        let rtt = RttEstimator::new(Duration::from_millis(10));
        let mut windows = Vec::new();
        for (millis, segments) in acks {
            let ack = acked(Timestamp::ZERO + Duration::from_millis(*millis), segments * SEGMENT);
            current.cwnd = cubic.on_ack(&ack, current, &rtt);
            windows.push(current.cwnd.get() as f64 / SEGMENT as f64);
        }
        (windows, cubic)
    }

    #[test]
    fn segments_that_were_counted_at_a_slower_pace_can_make_one_of_growth_at_most() {
        // W_max = 100, the window 70, K = cbrt(30 / 0.4) = 4.217 s. At first the target is 70 or 71 and 60 segments are
        // too few. At 1 s target = 100 - floor(0.4 * 3.217^3) = 87: a count of floor(70 / 17) = 4.
        let acks = [(0, 60), (1000, 1), (1000, 1), (1000, 1), (1000, 1)];
        let (all_count, _) = windows_after(&Config::default(), &acks);
        assert_eq!(all_count, [70.0, 71.0, 72.0, 73.0, 74.0]);
        let one = Config { surplus: Surplus::OneSegment, ..Config::default() };
        // One for the 60. Windows of 71 still have a count of 71 / 16 = 4: with the fourth segment the next.
        let (windows, cubic) = windows_after(&one, &acks);
        assert_eq!(windows, [70.0, 71.0, 71.0, 71.0, 72.0]);
        assert!(cubic.carry.abs() < 1e-12, "{}", cubic.carry);
        // What one acknowledgement adds is not surplus: 9 segments make two of growth where 4 make one.
        let (windows, cubic) = windows_after(&one, &[(0, 1), (1000, 9)]);
        assert_eq!((windows, cubic.carry.to_bits()), (vec![70.0, 72.0], 2.0f64.to_bits()));
        // A reduction begins anew.
        let (_, mut cubic) = windows_after(&one, &[(0, 60)]);
        cubic.on_congestion(seconds(1.0), window(70.0).cwnd, window(70.0));
        assert!(cubic.carry.abs() < 1e-12, "{}", cubic.carry);
    }

    #[test]
    fn the_count_can_stay_while_the_window_does() {
        let kept = Config { recount_after: Duration::from_micros(31_250), ..Config::default() };
        assert_eq!(kept.validate(), Ok(()));
        // As above the count is 4 at 1 s. At 1.031 s target = 100 - floor(0.4 * 3.186^3) = 88 makes floor(70 / 18) = 3.
        let at_once = windows_after(&Config::default(), &[(0, 1), (1000, 1), (1031, 1)]);
        let still_kept = windows_after(&kept, &[(0, 1), (1000, 1), (1031, 1)]);
        let recounted = windows_after(&kept, &[(0, 1), (1000, 1), (1032, 1)]);
        assert_eq!((at_once.0[2], still_kept.0[2], recounted.0[2]), (71.0, 70.0, 71.0));
        // Another window has another count, at once.
        let (windows, cubic) = windows_after(&kept, &[(0, 1), (1000, 3), (1001, 1)]);
        assert_eq!(windows, [70.0, 71.0, 71.0]);
        assert_eq!(cubic.counted.map(|count| (count.at, count.cwnd)), Some((seconds(1.001), 71.0)));
        assert!(at_once.1.counted.is_none());
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_only_when_the_window_had_not_recovered() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(100.0).cwnd, window(100.0));
        assert_eq!(cubic.w_max, Some(100.0));
        cubic.on_congestion(seconds(1.0), window(80.0).cwnd, window(80.0));
        // 80 < 100: W_max = 80 * (1 + 0.7) / 2 = 68.
        assert!((cubic.w_max.unwrap() - 68.0).abs() < 1e-9);
    }

    #[test]
    fn a_window_that_misses_the_plateau_by_less_than_the_margin_has_recovered() {
        let config = Config { convergence_margin: 1.0, ..Config::default() };
        let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(100.0).cwnd, window(100.0));
        cubic.on_congestion(seconds(1.0), window(99.5).cwnd, window(99.5));
        assert_eq!(cubic.w_max, Some(99.5));
        // 98 + 1 < 99.5: W_max = 98 * (1 + 0.7) / 2 = 83.3.
        cubic.on_congestion(seconds(2.0), window(98.0).cwnd, window(98.0));
        assert!((cubic.w_max.unwrap() - 83.3).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_the_plateau_is_the_window_itself() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(100.0).cwnd, window(100.0));
        cubic.on_timeout();
        // Slow start has led to ssthresh, 70 segments: K = 0 and W_max = 70, not K = cbrt(30 / 0.4) = 4.2 s and W_max =
        // 100.
        cubic.start_epoch(seconds(1.0), 70.0);
        assert_eq!((cubic.k.to_bits(), cubic.origin.to_bits()), (0.0f64.to_bits(), 70.0f64.to_bits()));
        // W(5) = 0.4 * 125 + 70 = 120.
        assert!((cubic.w_cubic(5.0) - 120.0).abs() < 1e-9);
        // There is no W_max that the next loss could miss: no fast convergence.
        cubic.on_congestion(seconds(2.0), window(80.0).cwnd, window(80.0));
        assert_eq!(cubic.w_max, Some(80.0));
    }

    #[test]
    fn the_plateau_can_survive_a_timeout() {
        let config = Config { after_timeout: AfterTimeout::KeepPlateau, ..Config::default() };
        let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_congestion(seconds(0.0), window(100.0).cwnd, window(100.0));
        cubic.on_timeout();
        cubic.start_epoch(seconds(1.0), 70.0);
        // K = cbrt((100 - 70) / 0.4) = 4.217 s.
        assert!((cubic.k - 4.217).abs() < 1e-3, "{}", cubic.k);
    }

    #[test]
    fn with_whole_segments_the_reno_estimate_takes_steps_of_fifteen_eighths_of_the_window() {
        let rtt = RttEstimator::new(Duration::from_millis(10));
        for beta in [0.7, 717.0 / 1024.0] {
            // 100 * 15 / 8 = 187.5. The equation's 1 / alpha would be 1.889 windows, 188 segments.
            let config = Config { approach: Approach::WholeSegments, beta, ..Config::default() };
            let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
            cubic.on_ack(&acked(seconds(0.0), 187 * SEGMENT), window(100.0), &rtt);
            assert_eq!((cubic.w_est.to_bits(), cubic.acknowledged.to_bits()), (100.0f64.to_bits(), 187.0f64.to_bits()));
            cubic.on_ack(&acked(seconds(0.0), SEGMENT), window(100.0), &rtt);
            assert_eq!((cubic.w_est.to_bits(), cubic.acknowledged.to_bits()), (101.0f64.to_bits(), 1.0f64.to_bits()));
        }
    }

    #[test]
    fn the_beta_of_linux_is_a_fraction_of_1024() {
        let cut = |beta| {
            let config = Config { approach: Approach::WholeSegments, beta, ..Config::default() };
            let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
            let first = cubic.on_congestion(seconds(0.0), window(10_240.0).cwnd, window(10_240.0));
            let second = cubic.on_congestion(seconds(1.0), window(7170.0).cwnd, window(7170.0));
            (first.get() / SEGMENT, second.get() / SEGMENT, cubic.w_max)
        };
        // 10240 * 717 / 1024 = 7170; 7170 * 717 / 1024 = 5020.4; the plateau 7170 * (1024 + 717) / 2048 = 6095.2.
        assert_eq!(cut(717.0 / 1024.0), (7170, 5020, Some(6095.0)));
        // 10240 * 0.7; 7170 * 0.7 = 5019; 7170 * 1.7 / 2 = 6094.5.
        assert_eq!(cut(0.7), (7168, 5019, Some(6094.0)));
    }

    #[test]
    fn with_whole_segments_an_alpha_above_the_window_has_an_end() {
        let rtt = RttEstimator::new(Duration::from_millis(10));
        // Segments in the window, and the parameters with which a step of the estimate would be empty.
        let windows = [(4.0, 10, 0.7), (2.0, 1, 0.1), (0.27, 1, 0.7), (1.0, 100, 0.1)];
        for (segments, connections, beta) in windows {
            let config = Config { approach: Approach::WholeSegments, connections, beta, ..Config::default() };
            assert_eq!(config.validate(), Ok(()));
            let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
            let after = cubic.on_ack(&acked(seconds(1.0), 10 * SEGMENT), window(segments), &rtt);
            assert!(after >= window(segments).cwnd && after <= window(segments + 1.0).cwnd, "{after}");
        }
        // 18 connections: beta = 17.7 / 18, alpha = 3 * 324 * (0.3 / 18) / (35.7 / 18) = 8.168; a window of 400 makes
        // steps of 48 whole segments. Of 100 segments two steps are 96, and the rest is not one.
        let config = Config { approach: Approach::WholeSegments, connections: 18, ..Config::default() };
        let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_ack(&acked(seconds(1.0), 100 * SEGMENT), window(400.0), &rtt);
        assert!((cubic.w_est - 402.0).abs() < 1e-9, "{}", cubic.w_est);
        // beta = 0.1: alpha = 3 * 0.9 / 1.1 = 2.4545; a window of 2 makes steps of 0.8148. Ten segments are 12 whole
        // steps and a rest of 0.2222: W_est = 2 + 12.
        let config = Config { approach: Approach::WholeSegments, beta: 0.1, ..Config::default() };
        let mut cubic = Cubic::new(config, SegmentSize(Bytes::new(SEGMENT)));
        cubic.on_ack(&acked(seconds(1.0), 10 * SEGMENT), window(2.0), &rtt);
        assert!((cubic.w_est - 14.0).abs() < 1e-9, "{}", cubic.w_est);
        assert!((cubic.acknowledged - 0.222_222).abs() < 1e-5, "{}", cubic.acknowledged);
    }

    #[test]
    fn without_an_earlier_loss_growth_is_convex_at_once() {
        let mut cubic = Cubic::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        cubic.start_epoch(seconds(0.0), 50.0);
        assert!(cubic.k.abs() < 1e-12);
        // W(5) = 0.4 * 125 + 50 = 100.
        assert!((cubic.w_cubic(5.0) - 100.0).abs() < 1e-9);
    }
}
