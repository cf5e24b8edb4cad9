//! `quick-start`: the rate that the routers of the path approved is the launch.
//!
//! References: RFC 4782, sections 4.4 to 4.7; Sarolahti, Allman and Floyd, "Determining an Appropriate Sending Rate
//! Over an Underutilized Network Path", Computer Networks 2007, section 3.1. The host asks for a rate with the
//! handshake ([`crate::quick_start`]). The window is what an approved rate carries in an RTT (equation 1) and leaves
//! paced over it. With the first acknowledgement of such a packet the window becomes what has left, and slow start goes
//! on. If one of these packets is lost or marked (a Quick-Start failure), the flow starts as if nothing had been
//! approved.
//!
//! In mid-connection (section 4.8), after idle time or on another path, the request travels with data. When the answer
//! comes, the flow uses the approval if it is more than the current window ([`Startup::on_approval`]). When the
//! approved window has been acknowledged, congestion avoidance follows, or slow start up to an ssthresh above it. After
//! a failure the window is the one without Quick-Start or half of the approved one, whichever is smaller, and ssthresh
//! at most half of what was delivered (section 4.6).
//!
//! Differences: windows are whole segments, and an approved window that is not larger than the initial one is ignored,
//! both as in ns-2. After a failure slow start begins from the initial window, even during the repair of the losses, up
//! to what congestion avoidance would make of the failed window. The references leave ssthresh to the host; here it is
//! [`Config::ssthresh_after_failure`]. In mid-connection the loss of packets sent before the answer also counts as a
//! failure. An approval that finds nothing to send for an RTT is given up.
//!
//! Status: `flowstart validate ns2-quick-start` compares single flows with ns-2's. The rules of sections 4.6 and 4.8
//! are not compared with the RFC's text.

use super::{Startup, StartupConfig, StartupContext, Step, validate_initial_window};
use crate::event::{Ack, DecisionLog, ExitReason, Loss, Position, Sent};
use crate::launch::{Continuation, Launch};
use crate::needs::Needs;
use crate::path::PathKnowledge;
use crate::quick_start::host::{Known, PacketSizes, RequestSize, window};
use crate::quick_start::nonce::BITS_PER_STEP;
use crate::quick_start::rate::{RateEncoding, Rounding};
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// One line for listings.
pub const SUMMARY: &str = "the rate that all routers approved, paced over the first RTT; slow start after it";
/// The phase that a failure leads to, in traces.
pub const FAILED: &str = "failed";
/// The document that defines it.
pub const REFERENCE: &str = "RFC 4782; Sarolahti, Allman, Floyd, Computer Networks 2007";
/// Sensing; Probing; Validation; Continuation.
pub const PHASES: &str = "a rate asked of the routers with the handshake; its window over the first RTT; the first \
    acknowledgement, or a loss; slow start from what was sent, or from the initial window";

/// How a request is sized (section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RequestKind {
    /// `rate`, unless the data fits the initial window.
    Fixed,
    /// `rate`, always, even for data that needs no request: the paper's Greedy senders.
    Greedy,
    /// min(socket buffer, receive window) / RTT.
    Buffers,
    /// The rate that sends the object in one RTT: the paper's Ideal senders; `rate` if the size is unknown.
    #[default]
    Object,
}

/// ssthresh after a Quick-Start failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SsthreshAfterFailure {
    /// As at the start: slow start goes on.
    #[default]
    Initial,
    /// What congestion avoidance makes of the failed window.
    Reduced,
}

/// When the sender reports to the routers (function 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Reports {
    /// The approved rate.
    #[default]
    Approved,
    /// The approved rate, or a rate of 0 after a refusal: the routers before the one that refused get back what they
    /// approved.
    Always,
    /// Never.
    Never,
}

impl Reports {
    /// The rate to report when this much was approved; `None`: nothing is reported.
    pub fn rate(self, approved: Option<Rate>) -> Option<Rate> {
        approved.or((self == Self::Always).then_some(Rate::ZERO)).filter(|_| self != Self::Never)
    }
}

/// What follows after the acknowledgement of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Verified {
    /// Slow start (RFC 4782, section 4.4).
    #[default]
    SlowStart,
    /// Congestion avoidance from the window: the path has carried the approved rate, and no more was approved.
    CongestionAvoidance,
}

/// Where the bytes of an option come from in a packet with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OptionRoom {
    /// That packet has less payload.
    #[default]
    Packet,
    /// All packets of the connection have less payload, so segments keep one size.
    Connection,
}

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
pub struct Config {
    /// How the request is sized; object.
    pub request: RequestKind,
    /// The requested rate with `fixed` and `greedy`, and the maximum otherwise; 1.31072 Gbit/s, the highest rate of the
    /// encoding. It may be the capacity of the last hop or a share of an access link (section 5.2).
    pub rate: Rate,
    /// RTT that turns an object or a buffer into a rate before any RTT is known, as in a first packet; 100 ms
    /// (assumed).
    pub rtt: Duration,
    /// Socket buffer of the sender, for `buffers`; none, only the receive window counts.
    pub send_buffer: Option<Bytes>,
    /// How a request is rounded to a rate of the encoding; up, to ask for enough.
    pub rounding: Rounding,
    /// The encoding of rates; as in RFC 4782.
    pub encoding: RateEncoding,
    /// H: headers of a packet that the segment size does not count; 40 bytes (IPv4 and TCP without options).
    pub header: Bytes,
    /// Initial window in segments without Quick-Start; the host's.
    pub iw: Option<u32>,
    /// ssthresh after a failure; as at the start.
    pub ssthresh_after_failure: SsthreshAfterFailure,
    /// What follows after the acknowledgement of the window; slow start. In mid-connection ssthresh decides.
    pub verified: Verified,
    /// Passes through the network, 1 or 2; 1. The second asks for what the first has left. It costs an RTT in which
    /// nothing is sent (section 8.2).
    pub passes: u8,
    /// When the sender reports; the approved rate.
    pub reports: Reports,
    /// Bits of each step of the nonce that the sender compares, 0 to 2; 2, all that RFC 4782 has. For experiments: with
    /// 0 the sender believes any receiver.
    pub nonce_bits: u32,
    /// Data after this much idle time asks again (RFC 4782, section 4.8: at least a retransmission timeout); never.
    pub after_idle: Option<Duration>,
    /// Whether the first data on another path asks again; no.
    pub after_move: bool,
    /// Number of connections that the host opens to the same peer together. Each asks for its part of the rate, so
    /// together they ask for no more than one would; 1.
    pub parallel: u32,
    /// Granularity of the pacing timer: packets that fall due between two ticks leave with the second (footnote 1 of
    /// section 3.1); exact.
    pub granularity: Duration,
    /// Where the bytes of an option come from; the packet that carries it.
    pub room: OptionRoom,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request: RequestKind::Object,
            rate: Rate::from_bits_per_sec(1_310_720_000),
            rtt: Duration::from_millis(100),
            send_buffer: None,
            rounding: Rounding::Up,
            encoding: RateEncoding::Exponential,
            header: Bytes::new(40),
            iw: None,
            ssthresh_after_failure: SsthreshAfterFailure::Initial,
            verified: Verified::SlowStart,
            passes: 1,
            reports: Reports::Approved,
            nonce_bits: BITS_PER_STEP,
            after_idle: None,
            after_move: false,
            parallel: 1,
            granularity: Duration::ZERO,
            room: OptionRoom::Packet,
        }
    }
}

impl Config {
    /// Refuses parameters out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("rate", self.rate, Rate::from_bits_per_sec(1000)..=Rate::from_mbit(1_000_000))?;
        ConfigError::unless_in("rtt", self.rtt, Duration::from_micros(10)..=Duration::from_millis(60_000))?;
        ConfigError::unless_in("header", self.header, Bytes::ZERO..=Bytes::new(1000))?;
        ConfigError::unless_in("passes", self.passes, 1..=2)?;
        ConfigError::unless_in("nonce_bits", self.nonce_bits, 0..=BITS_PER_STEP)?;
        if let Some(idle) = self.after_idle {
            ConfigError::unless_in("after_idle", idle, Duration::from_millis(1)..=Duration::from_millis(1_000_000))?;
        }
        ConfigError::unless_in("parallel", self.parallel, 1..=10_000)?;
        ConfigError::unless_in("granularity", self.granularity, Duration::ZERO..=Duration::from_millis(1000))?;
        validate_initial_window(self.iw)
    }

    /// Whether anything is asked for after the first request.
    pub fn asks_in_connection(&self) -> bool {
        self.after_idle.is_some() || self.after_move
    }

    /// How the request is sized.
    pub fn request_size(&self) -> RequestSize {
        match self.request {
            RequestKind::Fixed | RequestKind::Greedy => RequestSize::Fixed { rate: self.rate },
            RequestKind::Buffers => RequestSize::Buffers,
            RequestKind::Object => RequestSize::Object,
        }
    }

    /// The rate to ask for with this knowledge of the data and the path; `None`: Quick-Start is useless for it.
    pub fn rate_to_ask(&self, known: Known, sizes: PacketSizes, initial_window: Bytes) -> Option<Rate> {
        let known = Known {
            rtt: known.rtt.or(Some(self.rtt)),
            // A socket's buffer is a bound, whatever the configuration assumes.
            send_buffer: known.send_buffer.into_iter().chain(self.send_buffer).min(),
            object: known.object.filter(|_| self.request != RequestKind::Greedy),
            ..known
        };
        let rate = self.request_size().rate(&known, sizes, initial_window)?.min(self.rate);
        Some(Rate::from_bits_per_sec(rate.bits_per_sec() / u64::from(self.parallel)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was approved, or the approval is over: slow start.
    SlowStart,
    /// The window leaves, and nothing of it was acknowledged.
    Sending,
    /// Some of it was acknowledged.
    Validating,
    /// Some of it was lost, and recovery goes on.
    Failed,
}

/// An approval in mid-connection.
#[derive(Clone, Copy, Debug)]
struct InConnection {
    /// The window without it.
    without: Window,
    /// First packet that left because of it.
    first: Option<Position>,
    /// Bytes that were delivered from that packet on.
    delivered: Bytes,
    /// When an unused approval is given up.
    expires: Timestamp,
}

/// State.
#[derive(Clone, Debug)]
pub struct QuickStart {
    config: Config,
    context: StartupContext,
    state: State,
    /// Rate at which the window leaves.
    rate: Option<Rate>,
    /// Bytes of it that have left.
    sent: Bytes,
    /// Last packet that was sent.
    last: Position,
    /// Last packet of the window, once it is known.
    end: Option<Position>,
    /// Some of the window had to be sent again.
    lost: bool,
    /// ssthresh after a failure.
    reduced: Bytes,
    /// Set for an approval in mid-connection.
    connection: Option<InConnection>,
    phase: Option<(&'static str, &'static str)>,
}

impl QuickStart {
    /// The scheme before its launch.
    pub fn new(config: Config, context: StartupContext) -> Self {
        Self {
            context: context.with_initial_window(config.iw),
            config,
            state: State::SlowStart,
            rate: None,
            sent: Bytes::ZERO,
            last: 0,
            end: None,
            lost: false,
            reduced: Bytes::MAX,
            connection: None,
            phase: None,
        }
    }

    /// The scheme for a rate that is approved in mid-connection, when the window is `without`. It launches only with a
    /// larger one.
    fn in_connection(config: Config, context: StartupContext, without: Window) -> Self {
        let context = StartupContext { initial_window: without.cwnd, ..context };
        let connection = InConnection { without, first: None, delivered: Bytes::ZERO, expires: Timestamp::NEVER };
        Self { connection: Some(connection), ..Self::new(Config { iw: None, ..config }, context) }
    }

    /// Whether `position` lies in the approved window or before it.
    fn is_window(&self, position: Position) -> bool {
        self.state != State::SlowStart && self.end.is_none_or(|end| position <= end)
    }
}

impl StartupConfig {
    /// The host's request to the path's routers, if the scheme uses their approval ([`Needs::APPROVAL`]).
    pub fn request(&self) -> Option<&Config> {
        match self {
            Self::QuickStart(config) => Some(config),
            _ => None,
        }
    }
}

impl Startup for QuickStart {
    fn needs(&self) -> Needs {
        let later = if self.config.asks_in_connection() { Needs::APPROVAL_IN_CONNECTION } else { Needs::NONE };
        Needs::APPROVAL.and(later)
    }

    // Sensing: equation (1) for the approved rate.
    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, _log: &mut DecisionLog) -> Launch {
        let initial = Launch::window(self.context.initial_window);
        let (Some(approved), Some(rtt)) = (path.approved_rate, path.handshake_rtt) else { return initial };
        let segment = self.context.segment;
        let sizes = PacketSizes { mss: segment, header: self.config.header };
        let whole = segment * (window(approved, rtt, sizes).get() / segment.get().max(1));
        if whole <= self.context.initial_window {
            return initial;
        }
        self.state = State::Sending;
        self.rate = Rate::from_transfer(whole, rtt);
        if let Some(connection) = &mut self.connection {
            connection.expires = now + rtt;
            self.context.initial_window = connection.without.cwnd.min(Bytes::new(whole.get() / 2)).max(segment);
        }
        Launch { pacing_rate: self.rate, ..Launch::window(whole) }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.last = sent.position;
        if self.state == State::Sending {
            self.sent += sent.bytes;
            if let Some(connection) = &mut self.connection {
                connection.first.get_or_insert(sent.position);
                connection.expires = Timestamp::NEVER;
            }
        }
    }

    // Probing: over the RTT, until the first acknowledgement.
    fn pacing_rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.state == State::Sending)
    }

    // Validation.
    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, _rtt: &RttEstimator) -> Step {
        let mut cwnd = window.cwnd;
        let mut limit = Bytes::MAX;
        let mut floor = self.context.initial_window;
        if let Some(connection) = &mut self.connection {
            if connection.first.is_none_or(|first| ack.position < first) {
                return Step::Continue { cwnd };
            }
            connection.delivered += ack.bytes;
            (limit, floor) = (connection.without.ssthresh, connection.without.cwnd);
        }
        if self.state == State::Sending {
            self.state = State::Validating;
            self.end = Some(self.last);
            self.phase = Some(("slow-start", "the first packet of the window was acknowledged"));
            cwnd = self.sent.max(floor);
        }
        if self.state == State::Validating && self.end.is_some_and(|end| ack.position >= end) {
            (self.state, self.lost) = (State::SlowStart, false);
            if self.connection.is_some() {
                return Step::Exit(Continuation { cwnd, ssthresh: limit.max(cwnd), reason: ExitReason::Validated });
            }
            if self.config.verified == Verified::CongestionAvoidance {
                return Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Validated });
            }
        }
        let grows = in_use && cwnd < limit;
        Step::Continue { cwnd: if grows { self.context.slow_start_growth(cwnd, ack) } else { cwnd } }
    }

    // Packets sent after the window are no evidence about it.
    fn on_retransmission(&mut self, position: Position, _bytes: Bytes) {
        self.lost |= self.is_window(position);
    }

    fn on_approval(&mut self, context: StartupContext, window: Window) -> bool {
        *self = Self::in_connection(self.config, context, window);
        true
    }

    fn without_approval(&self) -> Option<Window> {
        self.connection.as_ref().filter(|connection| connection.first.is_none()).map(|connection| connection.without)
    }

    fn on_congestion(&mut self, loss: &Loss, _window: Window, reduced: Bytes) -> Step {
        if let Some(connection) = &mut self.connection {
            connection.expires = Timestamp::NEVER;
            if connection.first.is_none() {
                // Nothing of the approved window has left, so the congestion is the connection's own: the approval is
                // void, and the window without it is reduced (RFC 5681, equation 4).
                self.state = State::SlowStart;
                let half = (connection.without.cwnd / 2).max(self.context.segment * 2);
                let cwnd = reduced.min(half);
                return Step::Exit(Continuation { cwnd, ssthresh: cwnd, reason: ExitReason::Loss });
            }
        }
        // An echoed mark loses nothing, but counts as a failure (section 4.6).
        let marked = loss.bytes == Bytes::ZERO && self.is_window(loss.position);
        if !self.lost && !marked {
            return Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss });
        }
        self.state = State::Failed;
        self.reduced = reduced;
        let lost = if marked {
            "a packet of the approved window was marked"
        } else {
            "a packet of the approved window was lost"
        };
        self.phase = Some((FAILED, lost));
        Step::Continue { cwnd: self.context.initial_window }
    }

    fn on_ack_in_recovery(&mut self, ack: &Ack, window: Window, _rtt: &RttEstimator) -> Option<Step> {
        if let Some(connection) = &mut self.connection {
            if connection.first.is_some_and(|first| ack.position >= first) {
                connection.delivered += ack.bytes;
            }
            return None;
        }
        if self.state != State::Failed {
            return None;
        }
        // Slow start retransmits the losses at its own pace. The rest of the failed window goes first, and its
        // acknowledgements do not open the window.
        let grows = ack.in_flight < window.cwnd && window.cwnd < self.reduced;
        Some(Step::Continue {
            cwnd: if grows { self.context.slow_start_growth(window.cwnd, ack) } else { window.cwnd },
        })
    }

    fn next_wakeup(&self) -> Timestamp {
        self.connection.map_or(Timestamp::NEVER, |connection| connection.expires)
    }

    // Nothing of the window has left: it is as if nothing had been approved.
    fn on_timer(&mut self, now: Timestamp, window: Window) -> Step {
        match &mut self.connection {
            Some(connection) if connection.expires <= now => {
                connection.expires = Timestamp::NEVER;
                self.state = State::SlowStart;
                let Window { cwnd, ssthresh } = connection.without;
                Step::Exit(Continuation { cwnd, ssthresh, reason: ExitReason::Other("unused") })
            }
            _ => Step::Continue { cwnd: window.cwnd },
        }
    }

    // Continuation: as if nothing had been approved.
    fn on_recovered(&mut self, _now: Timestamp, window: Window) -> Step {
        (self.state, self.lost) = (State::SlowStart, false);
        let cwnd = if self.connection.is_some() { window.cwnd.min(self.context.initial_window) } else { window.cwnd };
        if let Some(InConnection { without, delivered, .. }) = self.connection {
            let half = Bytes::new(delivered.get() / 2).max(self.context.segment * 2);
            let ssthresh = without.ssthresh.min(half);
            return Step::Exit(Continuation { cwnd, ssthresh, reason: ExitReason::Loss });
        }
        match self.config.ssthresh_after_failure {
            SsthreshAfterFailure::Initial => Step::Continue { cwnd },
            SsthreshAfterFailure::Reduced => {
                Step::Exit(Continuation { cwnd, ssthresh: self.reduced, reason: ExitReason::Loss })
            }
        }
    }

    fn take_phase(&mut self) -> Option<(&'static str, &'static str)> {
        self.phase.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::Increase;
    use crate::startup::slow_start::tests::context;
    use crate::test_support::acked;

    fn path(approved_mbit: u64) -> PathKnowledge {
        PathKnowledge {
            approved_rate: Some(Rate::from_mbit(approved_mbit)),
            handshake_rtt: Some(Duration::from_millis(100)),
            ..PathKnowledge::default()
        }
    }

    /// Segments of 1000 bytes without other headers, 10 of them as initial window.
    fn launched(config: Config, path: &PathKnowledge) -> (QuickStart, Launch) {
        let mut scheme = QuickStart::new(Config { header: Bytes::ZERO, ..config }, context(Increase::Bytes));
        let launch = scheme.launch(Timestamp::ZERO, path, &mut DecisionLog::default());
        (scheme, launch)
    }

    fn send(scheme: &mut QuickStart, first: Position, count: u64) {
        for position in first..first + count {
            scheme.on_sent(&Sent {
                now: Timestamp::ZERO,
                bytes: Bytes::new(1000),
                in_flight: Bytes::new(1000 * position),
                position,
                app_limited: false,
            });
        }
    }

    fn ack(scheme: &mut QuickStart, position: Position, cwnd: u64) -> Step {
        let mut ack = acked(Timestamp::ZERO, 1000);
        ack.position = position;
        let window = Window { cwnd: Bytes::new(cwnd), ssthresh: Bytes::MAX };
        scheme.on_ack(&ack, window, true, &RttEstimator::new(Duration::from_millis(100)))
    }

    fn lose(scheme: &mut QuickStart, position: Position, reduced: u64) -> Step {
        scheme.on_retransmission(position, Bytes::new(1000));
        let loss = Loss {
            now: Timestamp::ZERO,
            bytes: Bytes::new(1000),
            position,
            in_flight_before: Bytes::new(100_000),
            in_flight: Bytes::new(99_000),
        };
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
        scheme.on_congestion(&loss, window, Bytes::new(reduced))
    }

    #[test]
    fn what_was_approved_leaves_over_one_round_trip() {
        // 8 Mbit/s * 100 ms = 100 segments.
        let (scheme, launch) = launched(Config::default(), &path(8));
        assert_eq!((launch.cwnd, launch.pacing_rate), (Bytes::new(100_000), Some(Rate::from_mbit(8))));
        assert_eq!(scheme.pacing_rate(), Some(Rate::from_mbit(8)));
        // With 250 bytes of headers a packet, 80 segments.
        let mut scheme =
            QuickStart::new(Config { header: Bytes::new(250), ..Config::default() }, context(Increase::Bytes));
        let launch = scheme.launch(Timestamp::ZERO, &path(8), &mut DecisionLog::default());
        assert_eq!(launch.cwnd, Bytes::new(80_000));
    }

    #[test]
    fn without_approval_or_with_less_than_the_initial_window_it_is_slow_start() {
        let nothing = PathKnowledge { approved_rate: None, ..path(8) };
        // 0.8 Mbit/s * 100 ms = 10 segments: not more than the initial window.
        let little = PathKnowledge { approved_rate: Some(Rate::from_bits_per_sec(800_000)), ..path(8) };
        for path in [nothing, little] {
            let (mut scheme, launch) = launched(Config::default(), &path);
            assert_eq!(launch, Launch::window(Bytes::new(10_000)));
            send(&mut scheme, 1, 10);
            assert_eq!(ack(&mut scheme, 1, 10_000), Step::Continue { cwnd: Bytes::new(11_000) });
            let exit = Continuation { cwnd: Bytes::new(5500), ssthresh: Bytes::new(5500), reason: ExitReason::Loss };
            assert_eq!(lose(&mut scheme, 1, 5500), Step::Exit(exit));
        }
    }

    #[test]
    fn the_first_acknowledgement_makes_the_window_what_has_left() {
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 60);
        // 60 segments were sent when the first is acknowledged, which adds one.
        assert_eq!(ack(&mut scheme, 1, 100_000), Step::Continue { cwnd: Bytes::new(61_000) });
        assert_eq!(scheme.pacing_rate(), None);
        assert_eq!(scheme.take_phase().map(|(phase, _)| phase), Some("slow-start"));
        assert_eq!(ack(&mut scheme, 60, 61_000), Step::Continue { cwnd: Bytes::new(62_000) });
    }

    #[test]
    fn a_failure_starts_as_if_nothing_had_been_approved() {
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 100);
        assert_eq!(lose(&mut scheme, 7, 50_000), Step::Continue { cwnd: Bytes::new(10_000) });
        let window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::new(10_000) };
        assert_eq!(scheme.on_recovered(Timestamp::ZERO, window), Step::Continue { cwnd: Bytes::new(10_000) });
        assert_eq!(ack(&mut scheme, 101, 10_000), Step::Continue { cwnd: Bytes::new(11_000) });
        // With the option, ssthresh remembers the window that failed.
        let config = Config { ssthresh_after_failure: SsthreshAfterFailure::Reduced, ..Config::default() };
        let (mut scheme, _) = launched(config, &path(8));
        send(&mut scheme, 1, 100);
        lose(&mut scheme, 7, 50_000);
        let exit = Continuation { cwnd: Bytes::new(10_000), ssthresh: Bytes::new(50_000), reason: ExitReason::Loss };
        assert_eq!(scheme.on_recovered(Timestamp::ZERO, window), Step::Exit(exit));
    }

    #[test]
    fn what_was_lost_is_sent_again_by_slow_start() {
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 100);
        lose(&mut scheme, 7, 13_000);
        let mut recovering = |in_flight: u64, cwnd: u64| {
            let mut ack = acked(Timestamp::ZERO, 1000);
            ack.in_flight = Bytes::new(in_flight);
            let window = Window { cwnd: Bytes::new(cwnd), ssthresh: Bytes::new(10_000) };
            scheme.on_ack_in_recovery(&ack, window, &RttEstimator::new(Duration::from_millis(100)))
        };
        let to = |cwnd| Some(Step::Continue { cwnd: Bytes::new(cwnd) });
        // 40 packets of the failed window are left; then its end; then half of the window is reached.
        assert_eq!(recovering(40_000, 10_000), to(10_000));
        assert_eq!(recovering(9_000, 10_000), to(11_000));
        assert_eq!(recovering(9_000, 13_000), to(13_000));
    }

    #[test]
    fn a_mark_on_the_window_is_a_failure_and_a_later_one_is_not() {
        let mark = |scheme: &mut QuickStart, position| {
            let (now, in_flight) = (Timestamp::ZERO, Bytes::new(50_000));
            let event = Loss { now, bytes: Bytes::ZERO, position, in_flight_before: in_flight, in_flight };
            let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::MAX };
            scheme.on_congestion(&event, window, Bytes::new(50_000))
        };
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 100);
        assert_eq!(mark(&mut scheme, 7), Step::Continue { cwnd: Bytes::new(10_000) });
        assert_eq!(scheme.take_phase(), Some((FAILED, "a packet of the approved window was marked")));
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 100);
        ack(&mut scheme, 1, 100_000);
        send(&mut scheme, 101, 1);
        let exit = Continuation { cwnd: Bytes::new(50_000), ssthresh: Bytes::new(50_000), reason: ExitReason::Loss };
        assert_eq!(mark(&mut scheme, 101), Step::Exit(exit));
    }

    #[test]
    fn a_loss_that_spares_the_window_is_an_ordinary_one() {
        let (mut scheme, _) = launched(Config::default(), &path(8));
        send(&mut scheme, 1, 100);
        ack(&mut scheme, 1, 100_000);
        send(&mut scheme, 101, 1);
        let exit = Continuation { cwnd: Bytes::new(50_000), ssthresh: Bytes::new(50_000), reason: ExitReason::Loss };
        assert_eq!(lose(&mut scheme, 101, 50_000), Step::Exit(exit));
    }

    #[test]
    fn a_verified_window_may_begin_congestion_avoidance() {
        let config = Config { verified: Verified::CongestionAvoidance, ..Config::default() };
        let (mut scheme, _) = launched(config, &path(8));
        send(&mut scheme, 1, 100);
        assert_eq!(ack(&mut scheme, 1, 100_000), Step::Continue { cwnd: Bytes::new(101_000) });
        let window = Bytes::new(101_000);
        let exit = Continuation { cwnd: window, ssthresh: window, reason: ExitReason::Validated };
        assert_eq!(ack(&mut scheme, 100, 101_000), Step::Exit(exit));
    }

    /// In mid-connection, with ten segments of window and this ssthresh, packets 1 to 10 sent and 8 Mbit/s approved.
    fn in_connection(ssthresh: u64) -> (QuickStart, Launch) {
        let without = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::new(ssthresh) };
        let config = Config { header: Bytes::ZERO, iw: Some(3), ..Config::default() };
        let mut scheme = QuickStart::in_connection(config, context(Increase::Bytes), without);
        let launch = scheme.launch(Timestamp::ZERO, &path(8), &mut DecisionLog::default());
        (scheme, launch)
    }

    #[test]
    fn in_mid_connection_what_was_sent_before_the_answer_says_nothing() {
        // 8 Mbit/s * 100 ms = 100 segments, more than the current ten.
        let (mut scheme, launch) = in_connection(20_000);
        assert_eq!((launch.cwnd, launch.pacing_rate), (Bytes::new(100_000), Some(Rate::from_mbit(8))));
        send(&mut scheme, 11, 60);
        assert_eq!(ack(&mut scheme, 10, 100_000), Step::Continue { cwnd: Bytes::new(100_000) });
        assert_eq!(scheme.pacing_rate(), Some(Rate::from_mbit(8)));
        // The first of the window: 60 segments have left, and beyond ssthresh slow start does not go on.
        assert_eq!(ack(&mut scheme, 11, 100_000), Step::Continue { cwnd: Bytes::new(60_000) });
        let window = Bytes::new(60_000);
        let exit = Continuation { cwnd: window, ssthresh: window, reason: ExitReason::Validated };
        assert_eq!(ack(&mut scheme, 70, 60_000), Step::Exit(exit));
    }

    #[test]
    fn in_mid_connection_slow_start_goes_on_up_to_an_ssthresh_above() {
        let (mut scheme, _) = in_connection(500_000);
        send(&mut scheme, 11, 60);
        assert_eq!(ack(&mut scheme, 11, 100_000), Step::Continue { cwnd: Bytes::new(61_000) });
        let exit =
            Continuation { cwnd: Bytes::new(61_000), ssthresh: Bytes::new(500_000), reason: ExitReason::Validated };
        assert_eq!(ack(&mut scheme, 70, 61_000), Step::Exit(exit));
    }

    #[test]
    fn a_failure_in_mid_connection_leads_to_the_window_without_and_half_of_what_arrived() {
        let (mut scheme, _) = in_connection(80_000);
        send(&mut scheme, 11, 100);
        (11..41).for_each(|position| {
            ack(&mut scheme, position, 100_000);
        });
        // Without it the window would be 10 segments, less than half of 100.
        assert_eq!(lose(&mut scheme, 50, 50_000), Step::Continue { cwnd: Bytes::new(10_000) });
        // 30 of the window were delivered before, none in recovery: ssthresh is 15.
        let window = Window { cwnd: Bytes::new(10_000), ssthresh: Bytes::new(10_000) };
        let exit = Continuation { cwnd: Bytes::new(10_000), ssthresh: Bytes::new(15_000), reason: ExitReason::Loss };
        assert_eq!(scheme.on_recovered(Timestamp::ZERO, window), Step::Exit(exit));
    }

    #[test]
    fn a_failed_window_that_was_not_much_larger_is_halved() {
        let without = Window { cwnd: Bytes::new(80_000), ssthresh: Bytes::MAX };
        let config = Config { header: Bytes::ZERO, ..Config::default() };
        let mut scheme = QuickStart::in_connection(config, context(Increase::Bytes), without);
        scheme.launch(Timestamp::ZERO, &path(8), &mut DecisionLog::default());
        send(&mut scheme, 1, 100);
        assert_eq!(lose(&mut scheme, 7, 90_000), Step::Continue { cwnd: Bytes::new(50_000) });
    }

    #[test]
    fn an_approval_that_finds_nothing_to_send_for_an_rtt_is_given_up() {
        let (mut scheme, _) = in_connection(20_000);
        let after = Timestamp::ZERO + Duration::from_millis(100);
        assert_eq!(scheme.next_wakeup(), after);
        let window = Window { cwnd: Bytes::new(100_000), ssthresh: Bytes::new(20_000) };
        let Step::Exit(exit) = scheme.on_timer(after, window) else { panic!("it is given up") };
        assert_eq!((exit.cwnd, exit.ssthresh), (Bytes::new(10_000), Bytes::new(20_000)));
        assert_eq!(scheme.next_wakeup(), Timestamp::NEVER);
        // Once something has left it is not.
        let (mut scheme, _) = in_connection(20_000);
        send(&mut scheme, 11, 1);
        assert_eq!(scheme.next_wakeup(), Timestamp::NEVER);
    }

    #[test]
    fn parameters_have_ranges() {
        assert_eq!(Config::default().validate(), Ok(()));
        assert!(Config { rate: Rate::from_bits_per_sec(0), ..Config::default() }.validate().is_err());
        assert!(Config { rtt: Duration::ZERO, ..Config::default() }.validate().is_err());
        assert!(Config { iw: Some(0), ..Config::default() }.validate().is_err());
        assert!(Config { passes: 3, ..Config::default() }.validate().is_err());
        assert!(Config { nonce_bits: 3, ..Config::default() }.validate().is_err());
        assert!(Config { parallel: 0, ..Config::default() }.validate().is_err());
        assert!(Config { after_idle: Some(Duration::ZERO), ..Config::default() }.validate().is_err());
        assert!(Config { granularity: Duration::from_millis(2000), ..Config::default() }.validate().is_err());
    }
}
