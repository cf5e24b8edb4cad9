//! Prague: the window follows the share of marked packets instead of single marks.
//!
//! Reference: TCP Prague's Linux module (`tcp_prague.c` of `L4STeam`, version 0.6),
//! draft-briscoe-iccrg-prague-congestion-control, RFC 9331, section 4, and RFC 8257, section 3.3, for the moving
//! average. Data carries ECT(1). Alpha is a moving average of the share of marked packets in a round trip. While there
//! are marks the window loses alpha / 2 of itself once per round trip; a loss reduces it as in Reno. It grows by a
//! segment per round trip, only for unmarked packets.
//!
//! Differences from the reference: the fractional window is bytes. The smallest window is the host's (Linux: two
//! segments). Rounds are times, not sequence numbers. A host without pacing paces for Prague. Linux paces at twice the
//! rate up to half of ssthresh, and the initial window only if `tcp_pace_iw` is set; here it is always paced.
//!
//! **Classic queues.** A queue that does not know ECT(1) marks rarely, as for classic flows, and Prague then takes more
//! than its share. RFC 9331, section 4.3, requires the detection of such queues outside controlled networks, and
//! recommends a classic response to marks from then on. The Linux module can detect them by the variation of the RTT
//! and keeps alpha up (`prague_ecn_fallback`), off by default. Here there is no detection.
//!
//! Inherent: alpha starts at 1 (RFC 8257; Linux: `prague_init`, `dctcp_alpha_on_init`) and stays there until the first
//! mark, so each of the first two or three round trips with marks halves the window. Transfers that end soon after are
//! slower than with CUBIC. The same authors' Prague over UDP starts at 0.
//!
//! Status: worked examples; not compared with the draft's text; rates beside CUBIC by `dualpi2-coexistence`.

use super::{LossBased, Scalable};
use crate::event::{Ack, Ecn};
use crate::needs::Needs;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::variable::Variables;
use crate::window::{SegmentSize, Window};

/// One line for listings.
pub const SUMMARY: &str = "scalable: the window goes with the share of marked packets (L4S)";
/// The document that defines it.
pub const REFERENCE: &str = "draft-briscoe-iccrg-prague-congestion-control";

/// Parameters of Prague.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// g, the weight of the latest round in alpha, 0.001 to 1. RFC 8257, section 3.3: 1/16.
    pub g: f64,
    /// What remains of the window after a loss, 0.1 to 0.99. RFC 8257, section 3.5: as Reno, 0.5.
    pub beta: f64,
    /// Flows with a shorter RTT grow and respond as if they had this RTT, 0s to 1s; 0s: their own RTT. Linux: 25 ms.
    pub rtt_virtual: Duration,
    /// Rounds after slow start before `rtt_virtual` takes effect, 0 to 1,000,000. Linux: 500.
    pub rtt_transition: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { g: 1.0 / 16.0, beta: 0.5, rtt_virtual: Duration::from_millis(25), rtt_transition: 500 }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("g", self.g, 0.001..=1.0)?;
        ConfigError::unless_in("beta", self.beta, 0.1..=0.99)?;
        ConfigError::unless_in("rtt_virtual", self.rtt_virtual, Duration::ZERO..=Duration::from_millis(1000))?;
        ConfigError::unless_in("rtt_transition", self.rtt_transition, 0..=1_000_000)
    }
}

/// State of Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    config: Config,
    segment: u64,
    /// Moving average of the share of marked packets; 1 before the first mark (RFC 8257, section 3.3).
    alpha: f64,
    /// A mark has come, so there is a queue that marks.
    saw_ce: bool,
    /// When this round began, and the packets that were delivered and marked since.
    round_start: Timestamp,
    delivered: u64,
    marked: u64,
    /// When marks reduced the window last.
    reduced_at: Option<Timestamp>,
    /// Rounds since slow start ended; none before.
    rounds: Option<u32>,
    /// The longer of the RTT and `rtt_virtual` after the transition, the RTT before.
    virtual_rtt: Duration,
    /// Marked bytes that do not let the window grow.
    unearned: u64,
    /// Growth below one byte.
    carry: f64,
}

impl Prague {
    /// Prague with segments of this size.
    pub fn new(config: Config, SegmentSize(segment): SegmentSize) -> Self {
        Self {
            rounds: None,
            virtual_rtt: Duration::ZERO,
            config,
            segment: segment.get(),
            alpha: 1.0,
            saw_ce: false,
            round_start: Timestamp::ZERO,
            delivered: 0,
            marked: 0,
            reduced_at: None,
            unearned: 0,
            carry: 0.0,
        }
    }

    /// The moving average of the share of marked packets.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl LossBased for Prague {
    fn needs(&self) -> Needs {
        Needs::SCALABLE_MARKS
    }

    fn on_segment_size(&mut self, SegmentSize(segment): SegmentSize) {
        self.segment = segment.get();
    }

    fn on_enter(&mut self, _now: Timestamp, _window: Window) {
        (self.unearned, self.carry) = (0, 0.0);
        self.rounds.get_or_insert(0);
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Bytes {
        let unmarked = ack.bytes.get().saturating_sub(self.unearned);
        self.unearned = self.unearned.saturating_sub(ack.bytes.get());
        let cwnd = window.cwnd.get().max(1) as f64;
        let ratio = rtt.smoothed().as_secs() / self.virtual_rtt.as_secs().max(1e-9);
        let scale = ratio.min(1.0) * ratio.min(1.0);
        self.carry += unmarked as f64 * self.segment as f64 / cwnd * scale;
        let whole = libm::floor(self.carry);
        self.carry -= whole;
        window.cwnd + Bytes::new(whole as u64)
    }

    fn on_ecn(&mut self, now: Timestamp, base: Bytes, _window: Window) -> Bytes {
        self.reduced_at = Some(now);
        base.scale(1.0 - self.alpha / 2.0)
    }

    fn on_congestion(&mut self, _now: Timestamp, base: Bytes, _window: Window) -> Bytes {
        (self.unearned, self.carry) = (0, 0.0);
        base.scale(self.config.beta)
    }

    fn observe(&self, seen: &mut Variables<'_>) {
        seen.number("alpha", self.alpha);
        seen.time("RTT_virt", self.virtual_rtt);
    }
}

impl Scalable for Prague {
    fn on_delivered(&mut self, ack: &Ack, rtt: &RttEstimator) {
        self.delivered += ack.packets;
        let is_independent = self.rounds.unwrap_or(0) >= self.config.rtt_transition;
        let least = if is_independent { self.config.rtt_virtual } else { Duration::ZERO };
        self.virtual_rtt = rtt.smoothed().max(least);
        if ack.now.since(self.round_start) < self.virtual_rtt {
            return;
        }
        if self.saw_ce {
            // alpha = (1 - g) alpha + g F (RFC 8257, equation 1).
            let share = (self.marked as f64 / self.delivered.max(1) as f64).min(1.0);
            self.alpha += self.config.g * (share - self.alpha);
        }
        (self.round_start, self.delivered, self.marked) = (ack.now, 0, 0);
        self.rounds = self.rounds.map(|rounds| rounds.saturating_add(1));
    }

    fn on_mark(&mut self, ecn: &Ecn) {
        self.saw_ce = true;
        self.marked += ecn.packets;
        self.unearned = self.unearned.saturating_add(ecn.packets.saturating_mul(self.segment));
    }

    fn response_due(&self, now: Timestamp) -> bool {
        self.reduced_at.is_none_or(|time| now.since(time) >= self.virtual_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::acked;

    const SEGMENT: u64 = 1000;

    fn at(ms: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(ms)
    }

    fn rtt(ms: u64) -> RttEstimator {
        let mut rtt = RttEstimator::new(Duration::from_millis(ms));
        rtt.update(Timestamp::ZERO, Duration::from_millis(ms), Duration::ZERO);
        rtt
    }

    /// After the transition to independence of the RTT.
    fn prague() -> Prague {
        Prague::new(Config { rtt_transition: 0, ..Config::default() }, SegmentSize(Bytes::new(SEGMENT)))
    }

    fn window(segments: u64) -> Window {
        Window { cwnd: Bytes::new(segments * SEGMENT), ssthresh: Bytes::new(segments * SEGMENT) }
    }

    /// A round of `packets` acknowledgements, of which the first `marked` are marked, that ends at `ms`.
    fn round(prague: &mut Prague, packets: u64, marked: u64, ms: u64) {
        prague.on_mark(&Ecn { now: at(ms), position: 0, in_flight: Bytes::ZERO, packets: marked });
        for _ in 0..packets {
            prague.on_delivered(&acked(at(ms), SEGMENT), &rtt(100));
        }
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_share_of_marks() {
        let mut prague = prague();
        assert!((prague.alpha() - 1.0).abs() < 1e-12);
        // The round ends with its first packet a round trip after the last: 1 of 1 marked, then 9 are left for the
        // next.
        round(&mut prague, 10, 1, 100);
        assert!((prague.alpha() - 1.0).abs() < 1e-12);
        // 5 marks of 9 + 1 packets: 15/16 + 0.5/16 = 0.96875.
        round(&mut prague, 10, 5, 200);
        assert!((prague.alpha() - 0.968_75).abs() < 1e-12, "{}", prague.alpha());
        // None of 10: * 15/16.
        round(&mut prague, 10, 0, 300);
        assert!((prague.alpha() - 0.968_75 * 15.0 / 16.0).abs() < 1e-12, "{}", prague.alpha());
    }

    #[test]
    fn marks_take_half_of_alpha_and_losses_half_of_the_window() {
        let mut prague = prague();
        assert_eq!(prague.on_ecn(at(0), Bytes::new(100_000), window(100)), Bytes::new(50_000));
        prague.alpha = 0.1;
        assert_eq!(prague.on_ecn(at(0), Bytes::new(100_000), window(100)), Bytes::new(95_000));
        assert_eq!(prague.on_congestion(at(0), Bytes::new(100_000), window(100)), Bytes::new(50_000));
    }

    #[test]
    fn a_response_is_due_once_in_a_virtual_round_trip() {
        let mut prague = prague();
        prague.on_delivered(&acked(at(0), SEGMENT), &rtt(10));
        assert!(prague.response_due(at(0)));
        prague.on_ecn(at(0), Bytes::new(100_000), window(100));
        assert!(!prague.response_due(at(24)) && prague.response_due(at(25)));
        prague.on_delivered(&acked(at(100), SEGMENT), &rtt(50));
        assert!(!prague.response_due(at(49)) && prague.response_due(at(50)));
    }

    /// Growth in bytes for a window of 100 segments, acknowledged without marks except for `marked` packets.
    fn growth(rtt_ms: u64, marked: u64) -> u64 {
        let mut prague = prague();
        prague.on_delivered(&acked(at(0), SEGMENT), &rtt(rtt_ms));
        prague.on_mark(&Ecn { now: at(0), position: 0, in_flight: Bytes::ZERO, packets: marked });
        let mut current = window(100);
        for _ in 0..100 {
            current.cwnd = prague.on_ack(&acked(at(0), SEGMENT), current, &rtt(rtt_ms));
        }
        current.cwnd.get() - 100 * SEGMENT
    }

    #[test]
    fn what_came_unmarked_adds_a_segment_per_round_trip_of_25_ms_or_more() {
        // A little less than 1000, as the window grows meanwhile.
        assert!((990..=1000).contains(&growth(50, 0)), "{}", growth(50, 0));
        // (10 / 25)^2 = 0.16.
        assert!((158..=160).contains(&growth(10, 0)), "{}", growth(10, 0));
        assert!((590..=600).contains(&growth(50, 40)), "{}", growth(50, 40));
    }

    #[test]
    fn flows_do_not_depend_on_the_rtt_from_500_rounds_after_slow_start_on() {
        let mut prague = Prague::new(Config::default(), SegmentSize(Bytes::new(SEGMENT)));
        // 20 ms of slow start do not count, and a round of 10 ms ends with each of these acknowledgements.
        for round in 0..=501 {
            prague.on_delivered(&acked(at(10 * round), SEGMENT), &rtt(10));
            if round == 1 {
                prague.on_enter(at(10), window(100));
            }
            // The 500th round after slow start ends with the 501st acknowledgement; the one after it knows.
            assert_eq!(prague.virtual_rtt, Duration::from_millis(10), "{round}");
        }
        prague.on_delivered(&acked(at(5020), SEGMENT), &rtt(10));
        assert_eq!(prague.virtual_rtt, Duration::from_millis(25));
        // A longer RTT never is.
        prague.on_delivered(&acked(at(5030), SEGMENT), &rtt(50));
        assert_eq!(prague.virtual_rtt, Duration::from_millis(50));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (config, field) in [
            (Config { g: 0.0, ..Config::default() }, "g"),
            (Config { beta: 1.0, ..Config::default() }, "beta"),
            (Config { rtt_virtual: Duration::from_millis(1001), ..Config::default() }, "rtt_virtual"),
            (Config { rtt_transition: 1_000_001, ..Config::default() }, "rtt_transition"),
        ] {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }
}
