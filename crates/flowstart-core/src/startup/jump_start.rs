//! Jump-Start: sends all waiting data in the first round trip.
//!
//! Reference: Liu, Allman, Jin, Wang, "Congestion Control Without a Startup Phase", `PFLDnet` 2007; Scharf,
//! "Quick-Start, Jump-Start, and Other Fast Startup Approaches", 2008. The sender paces the data in its queue over the
//! first RTT, limited by the receiver's window. Without loss it continues like TCP. When R of the D paced packets had
//! to be retransmitted, cwnd after recovery is (D - R) / 2, at least one segment.
//!
//! Differences from the reference: D and R count bytes. A retransmission that is lost during recovery counts again;
//! losses after the launch do not count. With `pacing = false` the window leaves as a burst, to measure the value of
//! pacing. Without a known RTT, and when the data fits the initial window, it is slow start.
//!
//! `retreat=acknowledged` is the rule of quicly (h2o, commit b11d3634) for the window that it calls "jumpstart". The
//! first acknowledgement ends the jump, and cwnd becomes the bytes in flight. After a loss cwnd is half of the
//! acknowledged part of the window, at least half of the initial window. During recovery it rises to 0.7 times the
//! acknowledged part. quicly does not jump by the waiting data but by a configured number of packets; `threshold`
//! stands for it. It jumps as soon as it knows an RTT; here the launch does. With quicly's Rapid Start the reduction is
//! that of [`rapid_start`](super::rapid_start), whose first flight is such a jump. With the rate of an earlier
//! connection quicly's jump is the BDP; [`careful_resume`](super::careful_resume) takes half of it.
//!
//! Status: worked examples; no published numbers are reproduced.

pub use super::launched_window::Retreat;
use super::launched_window::{Flight, Launched, LaunchesWindow, all_that_waits};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::units::Bytes;

/// One line for listings.
pub const SUMMARY: &str = "all queued data paced over the first RTT; after losses cwnd = (D - R) / 2";
/// The document that defines it.
pub const REFERENCE: &str = "Liu et al., Congestion Control Without a Startup Phase, PFLDnet 2007";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "queued data and receive window; all of it over the first RTT; retransmissions R of D; slow start, or \
    cwnd (D - R) / 2";

/// Parameters of Jump-Start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// Most bytes that are launched. Scharf (2008) names 64 KiB as a possible threshold. Default: only the receive
    /// window limits.
    pub threshold: Option<Bytes>,
    /// Whether the window is paced over the RTT. Reference: yes.
    pub pacing: bool,
    /// What happens to the window. Reference: `half-delivered`.
    pub retreat: Retreat,
    /// For `retreat=acknowledged`: the share of the acknowledged bytes to which the window rises in recovery, 0.1 to 1.
    /// quicly: 0.7.
    pub beta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: None, pacing: true, retreat: Retreat::HalfDelivered, beta: 0.7 }
    }
}

impl Config {
    /// Refuses parameters out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let range = Bytes::new(1000)..=Bytes::new(1_000_000_000_000);
        self.threshold.map_or(Ok(()), |threshold| ConfigError::unless_in("threshold", threshold, range))?;
        ConfigError::unless_in("beta", self.beta, 0.1..=1.0)
    }
}

/// State of Jump-Start.
pub type JumpStart = Launched<Config>;

// Validation and Continuation are those of every launched window; `retreat` chooses among them.
impl LaunchesWindow for Config {
    fn needs(&self) -> Needs {
        if self.pacing { Needs::NONE } else { Needs::BURST }
    }

    // Sensing: D = min(queued data, receive window, threshold). Probing: over the RTT of the handshake.
    fn flight(&self, path: &PathKnowledge, initial_window: Bytes) -> Option<Flight> {
        all_that_waits(path, initial_window, self.threshold, self.pacing)
    }

    fn retreat(&self) -> Retreat {
        self.retreat
    }

    fn beta(&self) -> f64 {
        self.beta
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::event::{DecisionLog, ExitReason, Loss, Sent};
    use crate::launch::{Continuation, Launch};
    use crate::rtt::RttEstimator;
    use crate::startup::slow_start::tests::context;
    use crate::startup::{Increase, Startup, Step};
    use crate::test_support::acked;
    use crate::time::{Duration, Timestamp};
    use crate::units::Rate;
    use crate::window::Window;

    /// 100 segments of 1000 bytes wait, the RTT is 200 ms.
    fn path() -> PathKnowledge {
        PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(200)),
            bytes_waiting: Some(Bytes::new(100_000)),
            receive_window: Some(Bytes::new(1_000_000)),
            ..PathKnowledge::default()
        }
    }

    fn launch(config: Config, path: &PathKnowledge) -> (JumpStart, Launch) {
        let mut scheme = JumpStart::new(config, context(Increase::Bytes));
        let launch = scheme.launch(Timestamp::ZERO, path, &mut DecisionLog::default());
        (scheme, launch)
    }

    /// Sends `segments` segments from position 1.
    pub(crate) fn send(scheme: &mut dyn Startup, segments: u64) {
        for position in 1..=segments {
            let in_flight = Bytes::new(position * 1000);
            scheme.on_sent(&Sent {
                now: Timestamp::ZERO,
                bytes: Bytes::new(1000),
                in_flight,
                position,
                app_limited: false,
            });
        }
    }

    /// Loses `segments` segments of a window of 100.
    pub(crate) fn lose(scheme: &mut dyn Startup, segments: u64) -> Step {
        let loss = Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::new(segments * 1000),
            position: 100,
            in_flight_before: Bytes::new(100_000),
            in_flight: Bytes::new(100_000 - segments * 1000),
        };
        scheme.on_retransmission(loss.position, loss.bytes);
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        scheme.on_congestion(&loss, window, Bytes::new(50_000))
    }

    fn recovered(scheme: &mut JumpStart) -> Bytes {
        let window = Window { cwnd: Bytes::new(50_000), ssthresh: Bytes::new(50_000) };
        match scheme.on_recovered(Timestamp::ZERO, window) {
            Step::Exit(exit) => exit.cwnd,
            Step::Continue { .. } => panic!("recovery ends startup"),
        }
    }

    #[test]
    fn all_data_leaves_in_one_rtt() {
        // 100,000 bytes in 200 ms: 4 Mbit/s.
        let (scheme, launch) = launch(Config::default(), &path());
        assert_eq!((launch.cwnd, launch.pacing_rate), (Bytes::new(100_000), Some(Rate::from_mbit(4))));
        assert_eq!(scheme.pacing_rate(), Some(Rate::from_mbit(4)));
    }

    #[test]
    fn the_receive_window_and_the_threshold_limit_it() {
        let config = Config { threshold: Some(Bytes::new(65_536)), ..Config::default() };
        assert_eq!(launch(config, &path()).1.cwnd, Bytes::new(65_536));
        let path = PathKnowledge { receive_window: Some(Bytes::new(30_000)), ..path() };
        assert_eq!(launch(Config::default(), &path).1.cwnd, Bytes::new(30_000));
    }

    #[test]
    fn without_pacing_it_is_a_burst_and_without_an_rtt_or_need_slow_start() {
        let (scheme, burst) = launch(Config { pacing: false, ..Config::default() }, &path());
        assert_eq!((burst.pacing_rate, burst.burst, scheme.pacing_rate()), (None, Some(Bytes::new(100_000)), None));
        let blind = PathKnowledge { handshake_rtt: None, ..path() };
        assert_eq!(launch(Config::default(), &blind).1, Launch::window(Bytes::new(10_000)));
        let small = PathKnowledge { bytes_waiting: Some(Bytes::new(10_000)), ..path() };
        assert_eq!(launch(Config::default(), &small).1, Launch::window(Bytes::new(10_000)));
    }

    #[test]
    fn after_losses_the_window_is_half_of_what_arrived() {
        let (mut scheme, _) = launch(Config::default(), &path());
        send(&mut scheme, 100);
        assert_eq!(scheme.pacing_rate(), None, "the window has left");
        assert_eq!(lose(&mut scheme, 30), Step::Continue { cwnd: Bytes::new(50_000) });
        // (D - R) / 2 = (100 - 30) / 2 = 35 segments.
        assert_eq!(recovered(&mut scheme), Bytes::new(35_000));
    }

    #[test]
    fn losses_found_during_recovery_count_and_one_segment_remains() {
        let (mut scheme, _) = launch(Config::default(), &path());
        send(&mut scheme, 100);
        lose(&mut scheme, 60);
        lose(&mut scheme, 39);
        // max(1, (100 - 99) / 2) = 1.
        assert_eq!(recovered(&mut scheme), Bytes::new(1000));
    }

    #[test]
    fn what_was_sent_after_the_launch_counts_neither_as_d_nor_as_r() {
        let (mut scheme, _) = launch(Config::default(), &path());
        send(&mut scheme, 100);
        let later = Sent {
            now: Timestamp::ZERO,
            bytes: Bytes::new(1000),
            in_flight: Bytes::new(100_000),
            position: 101,
            app_limited: false,
        };
        scheme.on_sent(&later);
        scheme.on_retransmission(101, Bytes::new(1000));
        lose(&mut scheme, 20);
        // A retransmission of a launched segment is lost, too, and a segment that was sent later.
        scheme.on_retransmission(7, Bytes::new(1000));
        scheme.on_retransmission(101, Bytes::new(1000));
        // (100 - 20 - 1) / 2 = 39.5 segments.
        assert_eq!(recovered(&mut scheme), Bytes::new(39_500));
    }

    #[test]
    fn a_loss_that_spares_the_launch_is_an_ordinary_one() {
        let (mut scheme, _) = launch(Config::default(), &path());
        send(&mut scheme, 100);
        let loss = Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::new(1000),
            position: 101,
            in_flight_before: Bytes::new(100_000),
            in_flight: Bytes::new(99_000),
        };
        scheme.on_retransmission(101, Bytes::new(1000));
        let reduced = Bytes::new(50_000);
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        let exit = Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss };
        assert_eq!(scheme.on_congestion(&loss, window, reduced), Step::Exit(exit));
    }

    #[test]
    fn a_delivered_window_goes_on_in_slow_start() {
        let (mut scheme, _) = launch(Config::default(), &path());
        send(&mut scheme, 100);
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        let mut ack = acked(Timestamp::ZERO, 1000);
        ack.position = 100;
        let rtt = RttEstimator::new(Duration::from_millis(200));
        assert_eq!(scheme.on_ack(&ack, window, true, &rtt), Step::Continue { cwnd: Bytes::new(101_000) });
        let reduced = Bytes::new(50_000);
        let exit = Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss };
        assert_eq!(lose(&mut scheme, 1), Step::Exit(exit), "a later loss is nothing special");
    }

    fn acknowledged() -> Config {
        Config { retreat: Retreat::Acknowledged, ..Config::default() }
    }

    /// An acknowledgement of a segment with this position, with `in_flight` segments in flight before it.
    fn ack(position: u64, in_flight: u64) -> crate::event::Ack {
        let mut ack = acked(Timestamp::ZERO, 1000);
        (ack.position, ack.in_flight_before) = (position, Bytes::new(in_flight * 1000));
        ack
    }

    #[test]
    fn with_the_other_retreat_the_first_acknowledgement_makes_the_window_what_is_in_flight() {
        let (mut scheme, _) = launch(acknowledged(), &path());
        send(&mut scheme, 80);
        let rtt = RttEstimator::new(Duration::from_millis(200));
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        // 80 of 100 segments have left: 80, and slow start's one.
        let step = scheme.on_ack(&ack(1, 80), window, true, &rtt);
        assert_eq!((step, scheme.pacing_rate()), (Step::Continue { cwnd: Bytes::new(81_000) }, None));
        let window = Window { cwnd: Bytes::new(81_000), ssthresh: Bytes::MAX };
        assert_eq!(scheme.on_ack(&ack(2, 81), window, true, &rtt), Step::Continue { cwnd: Bytes::new(82_000) });
        // The 80th segment is the last of the launch: the loss of a later one is nothing special.
        scheme.on_ack(&ack(80, 81), window, true, &rtt);
        assert!(matches!(lose(&mut scheme.clone(), 1), Step::Exit(_)));
        let marked = Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::ZERO,
            position: 90,
            in_flight_before: Bytes::new(81_000),
            in_flight: Bytes::new(81_000),
        };
        assert!(matches!(scheme.clone().on_congestion(&marked, window, Bytes::new(40_000)), Step::Exit(_)));
        // The 79th is found lost only now: half of the initial window, of 10, is more than half of the 3 that are
        // acknowledged.
        scheme.on_retransmission(79, Bytes::new(1000));
        assert_eq!(lose(&mut scheme, 1), Step::Continue { cwnd: Bytes::new(5_000) });
    }

    #[test]
    fn with_the_other_retreat_the_window_is_beta_times_what_was_acknowledged() {
        let (mut scheme, _) = launch(acknowledged(), &path());
        send(&mut scheme, 100);
        let rtt = RttEstimator::new(Duration::from_millis(200));
        let mut window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        for position in 1..=30 {
            scheme.on_ack(&ack(position, 100), window, true, &rtt);
        }
        // 30 segments * 0.5.
        assert_eq!(lose(&mut scheme, 40), Step::Continue { cwnd: Bytes::new(15_000) });
        window.cwnd = Bytes::new(15_000);
        for position in 71..=100 {
            if let Some(Step::Continue { cwnd }) = scheme.on_ack_in_recovery(&ack(position, 60), window, &rtt) {
                window.cwnd = cwnd;
            }
        }
        // (30 + 30) * 0.7 = 42 segments. What was sent after the launch does not count.
        assert_eq!(window.cwnd, Bytes::new(42_000));
        let later = scheme.on_ack_in_recovery(&ack(101, 60), window, &rtt);
        assert_eq!(later, Some(Step::Continue { cwnd: Bytes::new(42_000) }));
        let exit = Continuation { cwnd: window.cwnd, ssthresh: window.cwnd, reason: ExitReason::Loss };
        assert_eq!(scheme.on_recovered(Timestamp::ZERO, window), Step::Exit(exit));
    }

    #[test]
    fn with_the_other_retreat_half_of_the_initial_window_remains() {
        let (mut scheme, _) = launch(acknowledged(), &path());
        send(&mut scheme, 100);
        let rtt = RttEstimator::new(Duration::from_millis(200));
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        scheme.on_ack(&ack(1, 100), window, true, &rtt);
        // One segment was acknowledged, 10 are the initial window: 10 * 0.5.
        assert_eq!(lose(&mut scheme, 90), Step::Continue { cwnd: Bytes::new(5_000) });
        assert_eq!(Config { beta: 0.0, ..acknowledged() }.validate().map_err(|error| error.field), Err("beta"));
    }
}
