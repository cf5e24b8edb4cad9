//! Hybla: slow start that is as fast on a long path as on one of 25 ms.
//!
//! Reference: Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of
//! Satellite Communications and Networking 22 (2004), as in Linux (`tcp_hybla.c`, cc9ae575). rho is how many times the
//! reference RTT of 25 ms fits into the smallest smoothed RTT, at least 1. The initial window is rho segments, and each
//! acknowledgement adds 2^rho - 1, so the window doubles every 25 ms. Loss, a CE mark or ssthresh end it as in slow
//! start.
//!
//! As in Linux, rho counts in eighths, rounded down, and 2^rho in 128ths. Here rho counts as at most 16 and seven
//! eighths. Every acknowledgement adds the same amount, so a receiver that acknowledges every second packet halves the
//! growth.
//!
//! Differences from the reference: this is its slow start only. Its congestion avoidance adds rho^2 / cwnd for each
//! acknowledgement; here the configured congestion avoidance follows, as in the stack of SEARCH's authors
//! (github.com/AmberCronin/quicly, 844b1939, `ss-hybla.c`), where Hybla is one startup among others. The article also
//! multiplies the first ssthresh by rho and spaces packets. Linux does neither; packets leave by the host's rule.
//!
//! Status: worked examples; no published numbers are reproduced.

use super::slow_start::up_to_ssthresh;
use super::{Startup, StartupContext, Step};
use crate::event::{Ack, DecisionLog};
use crate::launch::Launch;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str =
    "slow start that doubles every 25 ms, however long the RTT is: 2^rho - 1 segments for each ACK";
/// The document that defines it.
pub const REFERENCE: &str = "Caini, Firrincieli, TCP Hybla, IJSCN 22 (2004); Linux tcp_hybla.c";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "the RTT, from which rho; 2^rho - 1 segments for each ACK; until loss, a CE mark or ssthresh; congestion avoidance from there";

/// The unit of rho, as parts of 1 (`rho_3ls`).
const RHO_PARTS: u64 = 8;
/// Whole rho above which growth is not faster; Linux shifts by no more.
const MAX_RHO: u64 = 16;
/// Parts of a segment in which the window grows (`snd_cwnd_cents`).
const CENTS: u64 = 128;
/// Largest window in segments (`snd_cwnd_clamp`).
const CLAMP: u64 = 65_535;

/// Parameters of Hybla.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Initial window in segments, 1 to 65535. Default: rho of the handshake's RTT, rounded down; 1 without one
    /// (Linux).
    pub iw: Option<u32>,
    /// Reference RTT: longer paths grow as fast as a path with this RTT, 1 ms to 100 s. Reference and Linux: 25 ms.
    pub rtt0: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { iw: None, rtt0: Duration::from_millis(25) }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        // A larger one would be clamped with the first acknowledgement.
        ConfigError::unless_in("iw", u64::from(self.iw.unwrap_or(1)), 1..=CLAMP)?;
        ConfigError::unless_in("rtt0", self.rtt0, Duration::from_millis(1)..=Duration::from_millis(100_000))
    }

    /// rho = max(RTT / RTT0, 1), in eighths.
    fn rho(&self, rtt: Duration) -> u64 {
        (rtt * RHO_PARTS).as_nanos().checked_div(self.rtt0.as_nanos()).unwrap_or(0).max(RHO_PARTS)
    }
}

/// What an acknowledgement adds, in [`CENTS`]: (2^rho - 1) segments.
fn increment(rho: u64) -> u64 {
    let (whole, part) = (rho / RHO_PARTS, rho % RHO_PARTS);
    let fraction = libm::floor(libm::exp2(part as f64 / RHO_PARTS as f64) * CENTS as f64) as u64;
    (fraction << whole.min(MAX_RHO)) - CENTS
}

/// State of Hybla. Names as in Linux.
#[derive(Clone, Debug)]
pub struct Hybla {
    config: Config,
    context: StartupContext,
    /// rho in eighths; 0 while no RTT is known.
    rho: u64,
    /// The smallest smoothed RTT, from which rho follows.
    minrtt: Duration,
    /// Parts of a segment by which the window has not grown yet.
    snd_cwnd_cents: u64,
}

impl Hybla {
    /// Hybla that has not launched yet.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self { config, context, rho: RHO_PARTS, minrtt: Duration::MAX, snd_cwnd_cents: 0 }
    }

    fn see(&mut self, smoothed: Duration) {
        if smoothed < self.minrtt {
            self.minrtt = smoothed;
            self.rho = self.config.rho(smoothed);
        }
    }
}

impl Startup for Hybla {
    fn has_launch(&self) -> bool {
        false
    }

    // Sensing: the RTT of the handshake.
    fn launch(&mut self, _now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        if let Some(rtt) = path.handshake_rtt {
            self.see(rtt);
        }
        let segments = self.config.iw.map_or(self.rho / RHO_PARTS, u64::from);
        Launch::window(self.context.segment * segments.min(CLAMP))
    }

    // Probing: 2^rho - 1 segments. Validation and Continuation as in slow start.
    fn on_ack(&mut self, _ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        self.see(rtt.smoothed());
        if !in_use {
            return up_to_ssthresh(window.cwnd, window);
        }
        self.snd_cwnd_cents += increment(self.rho);
        let cwnd = window.cwnd + self.context.segment * (self.snd_cwnd_cents / CENTS);
        self.snd_cwnd_cents %= CENTS;
        up_to_ssthresh(cwnd.min((self.context.segment * CLAMP).max(window.cwnd)), window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ExitReason;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;
    use crate::units::Bytes;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn scheme() -> Hybla {
        Hybla::new(Config::default(), context(Increase::Bytes))
    }

    fn initial_window(handshake_rtt: Option<Duration>) -> u64 {
        let path = PathKnowledge { handshake_rtt, ..PathKnowledge::default() };
        scheme().launch(Timestamp::ZERO, &path, &mut DecisionLog::default()).cwnd.get() / 1000
    }

    /// The window in bytes after `acks` acknowledgements on a path with this RTT, from 100 segments.
    fn after(rtt_ms: u64, acks: u32) -> u64 {
        let mut scheme = scheme();
        let mut rtt = RttEstimator::new(MS(100));
        rtt.update(Timestamp::ZERO, MS(rtt_ms), Duration::ZERO);
        let mut window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        for _ in 0..acks {
            let Step::Continue { cwnd } = scheme.on_ack(&acked(Timestamp::ZERO, 2000), window, true, &rtt) else {
                panic!("no reason to leave startup");
            };
            window.cwnd = cwnd;
        }
        window.cwnd.get()
    }

    #[test]
    fn the_initial_window_is_rho() {
        // 600 / 25 = 24; 110 / 25 = 4.4, rounded down; 10 / 25 is less than 1.
        assert_eq!([600, 110, 10].map(|rtt| initial_window(Some(MS(rtt)))), [24, 4, 1]);
        assert_eq!(initial_window(None), 1);
        let mut chosen = Hybla::new(Config { iw: Some(10), ..Config::default() }, context(Increase::Bytes));
        let launch = chosen.launch(Timestamp::ZERO, &PathKnowledge::default(), &mut DecisionLog::default());
        assert_eq!(launch.cwnd, Bytes::new(10_000));
    }

    #[test]
    fn an_acknowledgement_adds_two_to_the_rho_minus_one() {
        // 25 ms and less: 2^1 - 1 = 1, whatever was acknowledged. 100 ms: 2^4 - 1 = 15.
        assert_eq!((after(25, 1), after(5, 1), after(100, 1)), (101_000, 101_000, 115_000));
        // 40 ms: rho = 1.6, 12 eighths: 2 * floor(128 * 2^0.5) = 2 * 181 - 128 = 234 cents, 1 segment and 106 / 128.
        // The second acknowledgement makes it 340 cents less 128: 1 + 2 segments.
        assert_eq!((after(40, 1), after(40, 2)), (101_000, 103_000));
    }

    #[test]
    fn fractions_of_two_are_those_of_linux() {
        let fractions: alloc::vec::Vec<u64> = (0..8).map(|part| (increment(8 + part) + 128) / 2).collect();
        assert_eq!(fractions, [128, 139, 152, 165, 181, 197, 215, 234]);
    }

    #[test]
    fn growth_has_an_end_and_so_has_the_window() {
        // 600 ms: rho = 24 counts as 16. 2^16 - 1 segments.
        assert_eq!(increment(24 * 8), 65_535 * 128);
        assert_eq!(after(600, 1), 65_535_000, "not 100 + 65,535");
    }

    #[test]
    fn rho_follows_the_smallest_smoothed_rtt_only() {
        let mut scheme = scheme();
        scheme.see(MS(200));
        scheme.see(MS(400));
        assert_eq!(scheme.rho, 64);
        scheme.see(MS(100));
        assert_eq!(scheme.rho, 32);
    }

    #[test]
    fn it_ends_exactly_at_ssthresh_and_an_unused_window_does_not_grow() {
        let mut scheme = scheme();
        let mut rtt = RttEstimator::new(MS(100));
        rtt.update(Timestamp::ZERO, MS(100), Duration::ZERO);
        let window = Window { cwnd: Bytes::new(95_000), ssthresh: Bytes::new(100_000) };
        let ack = acked(Timestamp::ZERO, 1000);
        assert_eq!(scheme.on_ack(&ack, window, false, &rtt), Step::Continue { cwnd: window.cwnd });
        let Step::Exit(exit) = scheme.on_ack(&ack, window, true, &rtt) else {
            panic!("95 + 15 segments exceed the threshold of 100");
        };
        assert_eq!((exit.cwnd, exit.reason), (Bytes::new(100_000), ExitReason::Ssthresh));
    }

    #[test]
    fn a_reference_without_length_is_refused() {
        let error = Config { rtt0: Duration::ZERO, ..Config::default() }.validate().unwrap_err();
        assert_eq!(error.field, "rtt0");
    }
}
