//! The schemes in C decide as those of `flowstart-core`: both get the events of random transfers. They end startup with
//! the same event for the same reason, and their windows differ by less than a packet.
//!
//! It takes a compiler of C.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use flowstart_bpf::port::{Ported, REASONS};
use flowstart_core::event::{Ack, DecisionLog, Loss, Sent};
use flowstart_core::launch::{Launch, UNPACED};
use flowstart_core::path::{AccessTechnology, Hint, PathKnowledge, SavedPath};
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{Increase, StartupConfig, StartupContext, StartupState, Step, blitzstart};
use flowstart_core::startup::{
    careful_resume, hystart, hystart_plus_plus, initial_start, jump_start, more_start, quick_start, search, suss,
};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;
use proptest::prelude::*;
use tempfile::TempDir;

const SEGMENT: u64 = 1448;
/// Where a connection's positions begin, near the end of TCP's numbers.
const FIRST: u32 = u32::MAX - 50_000;

/// A scheme's program in user space.
fn program(scheme: &str) -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| TempDir::new().unwrap());
    let name = scheme.replace('-', "_");
    let made = folder.path().join(&name);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
    command.args(["-include", &format!("{name}.h"), &format!("-DNAME={name}")]);
    command.arg("-I").arg(here.join("bpf")).arg("-o").arg(&made).arg(here.join("tests/ports/driver.c"));
    assert!(command.status().unwrap().success(), "{scheme} cannot be compiled");
    made
}

/// What was decided: window, ssthresh, reason (0: startup goes on), pacing rate in bytes per second (0: none), and when
/// the scheme wants to be called in nanoseconds (`u64::MAX`: never).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decided {
    cwnd: u64,
    ssthresh: u64,
    reason: u64,
    rate: u64,
    wakeup: u64,
}

impl Decided {
    fn read(line: &str) -> Self {
        let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        let [cwnd, ssthresh, reason, rate, wakeup] = fields[..] else { panic!("{line}") };
        Self { cwnd, ssthresh, reason, rate, wakeup }
    }

    fn is_near(&self, other: &Self) -> bool {
        let near = |one: u64, other: u64| one.abs_diff(other) <= SEGMENT;
        let rates = self.rate.abs_diff(other.rate) <= self.rate / 1000 + 1;
        let wakeups = self.wakeup.abs_diff(other.wakeup) <= 1000;
        let windows = near(self.cwnd, other.cwnd) && near(self.ssthresh, other.ssthresh);
        windows && self.reason == other.reason && rates && wakeups
    }
}

/// An event of a random transfer.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Up to so many packets leave.
    Send(u64),
    /// So many packets are acknowledged; the RTT is longer than the handshake's by so many microseconds.
    Acknowledge(u64, u64),
    /// A packet is acknowledged after this share of the handshake's RTT, in percent.
    Early(u64),
    /// So many percent of an RTT pass.
    Wait(u64),
    /// So many of the oldest packets are lost.
    Lose(u64),
    /// A mark.
    Mark,
}

/// Events of a transfer of which every so many-th is a loss or a mark.
fn events(trouble: u32) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 * trouble => (1..60_u64).prop_map(Event::Send),
        trouble => (200..4000_u64).prop_map(Event::Send),
        8 * trouble => (1..12_u64, 0..30_000_u64).prop_map(|(packets, longer)| Event::Acknowledge(packets, longer)),
        trouble => (20..300_u64, 0..30_000_u64).prop_map(|(packets, longer)| Event::Acknowledge(packets, longer)),
        trouble => (1..30_u64).prop_map(Event::Wait),
        1 => (30..600_u64).prop_map(Event::Wait),
        4 => (5..100_u64).prop_map(Event::Early),
        2 => (1..20_u64).prop_map(Event::Lose),
        1 => (20..300_u64).prop_map(Event::Lose),
        1 => Just(Event::Mark),
    ];
    proptest::collection::vec(event, 0..400)
}

/// A host of both: it tells each event to the scheme of the core, and writes it down for the one in C.
struct Host {
    scheme: StartupState,
    window: Window,
    sent: u64,
    acknowledged: u64,
    rtt: u64,
    estimator: RttEstimator,
    now: Timestamp,
    script: String,
    expected: Vec<Decided>,
    is_over: bool,
    /// Whether the scheme needs no launch to be in charge.
    always_starts: bool,
    /// Whether the program in C says when it wants to be called. Others notice the time with the next event.
    has_wakeups: bool,
}

/// A position as TCP counts it.
fn in_tcp(position: u64) -> u32 {
    FIRST.wrapping_add(position as u32)
}

/// What a scheme is told of a path, behind the event's name.
fn known(path: &PathKnowledge) -> String {
    let micros = |time: Option<Duration>| time.map_or(0, |time| time.as_nanos() / 1000);
    let bytes = |bytes: Option<Bytes>| bytes.map_or(0, Bytes::get);
    format!(
        "{} {} {} {} {} {} {} {} {SEGMENT} {} {FIRST}",
        micros(path.handshake_rtt),
        micros(path.min_rtt()),
        bytes(path.bytes_waiting),
        bytes(path.receive_window),
        path.hint.map_or(0, |hint| hint.bandwidth.bits_per_sec() / 8),
        micros(path.saved.map(|saved| saved.rtt)),
        micros(path.saved.map(|saved| saved.age)),
        path.approved_rate.map_or(0, |rate| rate.bits_per_sec() / 8),
        10 * SEGMENT,
    )
}

impl Host {
    fn new(config: &StartupConfig) -> Self {
        let context = StartupContext {
            segment: Bytes::new(SEGMENT),
            initial_window: Bytes::new(10 * SEGMENT),
            increase: Increase::Bytes,
            paced: false,
        };
        Self {
            scheme: config.build(context),
            window: Window { cwnd: Bytes::new(10 * SEGMENT), ssthresh: Bytes::MAX },
            sent: 0,
            acknowledged: 0,
            rtt: 0,
            estimator: RttEstimator::new(Duration::from_millis(100)),
            now: Timestamp::ZERO,
            script: String::new(),
            expected: Vec::new(),
            is_over: false,
            always_starts: !config.has_launch(),
            has_wakeups: matches!(config, StartupConfig::Suss(_)),
        }
    }

    fn rate(&mut self) -> u64 {
        let rate = self.scheme.as_dyn().pacing_rate().filter(|rate| *rate != UNPACED);
        rate.map_or(0, |rate| rate.bits_per_sec() / 8)
    }

    fn wakeup(&mut self) -> u64 {
        let wakeup = self.scheme.as_dyn().next_wakeup();
        if self.has_wakeups && wakeup != Timestamp::NEVER { wakeup.as_nanos() } else { u64::MAX }
    }

    /// Launches, and returns whether startup goes on.
    fn launch(&mut self, path: &PathKnowledge) -> bool {
        self.rtt = path.handshake_rtt.map_or(0, |rtt| rtt.as_nanos() / 1000);
        let launch = self.scheme.as_dyn().launch(self.now, path, &mut DecisionLog::default());
        writeln!(self.script, "launch {}", known(path)).unwrap();
        let Launch { cwnd, pacing_rate, continuation, .. } = launch;
        self.window.cwnd = cwnd;
        let enters = self.scheme.as_dyn().take_phase().is_some();
        let is_launch = self.always_starts || enters || launch != Launch::window(cwnd);
        let ssthresh = continuation.map_or(u64::MAX, |continuation| continuation.ssthresh.get());
        let rate = pacing_rate.map_or(0, |rate| rate.bits_per_sec() / 8);
        let wakeup = self.wakeup();
        self.expected.push(Decided { cwnd: cwnd.get(), ssthresh, reason: is_launch.into(), rate, wakeup });
        self.is_over = !is_launch || continuation.is_some();
        !self.is_over
    }

    /// The application writes its data in two pieces, of which the first is known at the launch of the program in C. If
    /// it is enough for a launch, `packets` of it leave before the second one comes. The core gets all at once.
    fn launch_in_pieces(config: &StartupConfig, path: &PathKnowledge, first: Bytes, packets: u64) -> Self {
        let mut early = Self::new(config);
        let launched_early = early.launch(&PathKnowledge { bytes_waiting: Some(first), ..*path });
        let mut host = Self::new(config);
        let launches = host.launch(path);
        if !launches {
            return early;
        }
        if launched_early {
            host.script = early.script;
            for _ in 0..packets.min(early.window.cwnd.get() / SEGMENT) {
                host.send();
            }
            writeln!(host.script, "more {}", known(path)).unwrap();
            host.expected = early.expected;
            host.decided(Step::Continue { cwnd: host.window.cwnd });
        } else {
            host.script.insert_str(0, &early.script);
            host.expected.splice(..0, early.expected);
        }
        host
    }

    fn decided(&mut self, step: Step) {
        let (cwnd, ssthresh, reason) = match step {
            Step::Continue { cwnd } => (cwnd, u64::MAX, 0),
            Step::Exit(exit) => {
                self.is_over = true;
                let reason = 1 + REASONS.iter().position(|reason| *reason == exit.reason.name()).unwrap();
                (exit.cwnd, exit.ssthresh.get(), reason as u64)
            }
        };
        self.window.cwnd = cwnd;
        let rate = self.rate();
        let wakeup = self.wakeup();
        self.expected.push(Decided { cwnd: cwnd.get(), ssthresh, reason, rate, wakeup });
    }

    fn in_flight(&self) -> Bytes {
        Bytes::new(self.sent - self.acknowledged)
    }

    fn happens(&mut self, event: Event) {
        if self.is_over {
            return;
        }
        self.now += Duration::from_micros(self.rtt / 50 + 1);
        if self.now >= self.scheme.as_dyn().next_wakeup() {
            let step = self.scheme.as_dyn().on_timer(self.now, self.window);
            writeln!(self.script, "time {}", self.now.as_nanos()).unwrap();
            self.decided(step);
        }
        match event {
            Event::Send(packets) => {
                for _ in 0..packets {
                    if self.in_flight() + Bytes::new(SEGMENT) > self.window.cwnd {
                        break;
                    }
                    self.send();
                }
            }
            Event::Acknowledge(packets, longer) => self.acknowledge(packets, self.rtt + longer),
            Event::Early(percent) => self.acknowledge(1, (self.rtt * percent / 100).max(1)),
            Event::Wait(percent) => self.now += Duration::from_micros(self.rtt * percent / 100),
            Event::Lose(packets) => self.lose(packets),
            Event::Mark => self.congestion(Bytes::ZERO, self.sent),
        }
    }

    fn send(&mut self) {
        self.sent += SEGMENT;
        let sent = Sent::new(self.now, Bytes::new(SEGMENT), self.in_flight(), self.sent);
        self.scheme.as_dyn().on_sent(&sent);
        writeln!(self.script, "sent {} {}", in_tcp(self.sent), self.in_flight().get()).unwrap();
    }

    fn acknowledge(&mut self, packets: u64, rtt: u64) {
        let bytes = (packets * SEGMENT).min(self.in_flight().get());
        if bytes == 0 {
            return;
        }
        let in_use = self.in_flight() + Bytes::new(SEGMENT) > self.window.cwnd;
        self.acknowledged += bytes;
        let mut ack = Ack::new(self.now, Bytes::new(bytes), bytes / SEGMENT, self.acknowledged);
        ack.rtt = Some(Duration::from_micros(rtt));
        ack.in_flight_before = self.in_flight() + Bytes::new(bytes);
        ack.in_flight = self.in_flight();
        self.estimator.update(self.now, Duration::from_micros(rtt), Duration::ZERO);
        let step = self.scheme.as_dyn().on_ack(&ack, self.window, in_use, &self.estimator);
        let (position, sent) = (in_tcp(self.acknowledged), in_tcp(self.sent));
        let (now, in_flight) = (self.now.as_nanos(), self.in_flight().get());
        let ack = format!("ack {now} {bytes} {rtt} {rtt} {in_flight} {position} {sent} {SEGMENT} {}", u8::from(in_use));
        writeln!(self.script, "{ack}").unwrap();
        self.decided(step);
    }

    /// The oldest packets are lost, sent again and acknowledged in one recovery.
    fn lose(&mut self, packets: u64) {
        let packets = packets.min(self.in_flight().get() / SEGMENT);
        if packets == 0 {
            return;
        }
        self.congestion(Bytes::new(packets * SEGMENT), self.acknowledged + packets * SEGMENT);
    }

    /// The oldest packets are sent again after the congestion event. The core learns where each of them ends, the
    /// kernel's program the first byte that is missing.
    fn send_again(&mut self, bytes: Bytes) {
        for number in 1..=bytes.get() / SEGMENT {
            let position = self.acknowledged + number * SEGMENT;
            if number > 1 {
                self.scheme.as_dyn().on_retransmission(position, Bytes::new(SEGMENT));
            }
            writeln!(self.script, "again {} {SEGMENT}", in_tcp(position - SEGMENT)).unwrap();
        }
    }

    /// Data arrives while the oldest packet is missing. The kernel's own rule moves the window meanwhile.
    fn repair(&mut self, bytes: Bytes) {
        let in_flight = self.in_flight();
        let delivered = in_flight.saturating_sub(bytes);
        let mut ack = Ack::new(self.now, delivered, delivered.get() / SEGMENT, self.acknowledged);
        (ack.in_flight_before, ack.in_flight) = (in_flight, in_flight.saturating_sub(delivered));
        let _ = self.scheme.as_dyn().on_ack_in_recovery(&ack, self.window, &self.estimator);
        writeln!(self.script, "repair {}", delivered.get()).unwrap();
    }

    fn congestion(&mut self, bytes: Bytes, position: u64) {
        let reduced = self.window.cwnd.scale(0.7);
        let (before, in_flight) = (self.in_flight(), self.in_flight().saturating_sub(bytes));
        let loss = Loss { now: self.now, bytes, position, in_flight_before: before, in_flight };
        if bytes > Bytes::ZERO {
            self.scheme.as_dyn().on_lost(&loss);
            // The packet that is sent again first; the rest is told behind the event.
            self.scheme.as_dyn().on_retransmission(self.acknowledged + SEGMENT, Bytes::new(SEGMENT));
        }
        let step = self.scheme.as_dyn().on_congestion(&loss, self.window, reduced);
        let (lost, position) = (bytes.get(), in_tcp(position));
        let missing = in_tcp(self.acknowledged);
        writeln!(self.script, "congestion {lost} {position} {missing} {}", reduced.get()).unwrap();
        let recovers = matches!(step, Step::Continue { .. });
        let step = match step {
            // The core does not say whether it was a loss or a mark.
            Step::Exit(mut exit) if bytes == Bytes::ZERO => {
                exit.reason = flowstart_core::event::ExitReason::Ecn;
                Step::Exit(exit)
            }
            other => other,
        };
        self.decided(step);
        if recovers {
            self.send_again(bytes);
            self.repair(bytes);
            let step = self.scheme.as_dyn().on_recovered(self.now, self.window);
            self.script.push_str("recovered\n");
            self.decided(step);
        }
    }
}

/// What the scheme in C decides.
fn decisions(program: &Path, config: &StartupConfig, script: &str) -> Vec<Decided> {
    let parameters = Ported::new(config).unwrap().parameters;
    let parameters: String = parameters.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new(program);
    let mut child = command.arg(parameters).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // A scheme that does not launch ends without reading the rest.
    drop(child.stdin.take().unwrap().write_all(script.as_bytes()));
    let told = child.wait_with_output().unwrap();
    assert!(told.status.success(), "{script}");
    String::from_utf8(told.stdout).unwrap().lines().map(Decided::read).collect()
}

/// Continues a transfer in both and compares all decisions.
fn both_agree(program: &Path, config: &StartupConfig, mut host: Host, events: &[Event]) {
    for event in events {
        host.happens(*event);
    }
    let decided = decisions(program, config, &host.script);
    assert_eq!(decided.len(), host.expected.len(), "{}", host.script);
    for (number, (ours, core)) in decided.iter().zip(&host.expected).enumerate() {
        assert!(ours.is_near(core), "decision {number}: {ours:?} instead of {core:?} after\n{}", host.script);
    }
}

/// What may be known of a path.
fn path() -> impl Strategy<Value = PathKnowledge> {
    let rtt = 1..400_000_u64;
    // A kilobit per second is a whole byte in each of these, so window and RTT have the rate of the hint.
    let saved_rtt = (1..50_u64).prop_map(|steps| steps * 8_000);
    let kbit = 100..400_000_u64;
    let known =
        (proptest::option::of(kbit), proptest::option::of(saved_rtt), proptest::option::weighted(0.8, 1..16_u8));
    (rtt, 1_000..3_000_000_u64, 3_000..3_000_000_u64, known).prop_map(
        |(rtt, waiting, receive_window, (kbit, saved, approved))| PathKnowledge {
            approved_rate: approved.map(|code| RateCode::from_bits(code).rate()),
            handshake_rtt: Some(Duration::from_micros(rtt)),
            bytes_waiting: Some(Bytes::new(waiting)),
            receive_window: Some(Bytes::new(receive_window)),
            hint: kbit.map(|kbit| Hint {
                bandwidth: Rate::from_bits_per_sec(kbit * 1000),
                technology: AccessTechnology::Unknown,
            }),
            saved: saved.filter(|_| kbit.is_some()).map(|saved| SavedPath {
                rtt: Duration::from_micros(saved),
                cwnd: Bytes::new(kbit.unwrap_or(0) * 125 * saved / 1_000_000),
                age: Duration::from_micros(7_000_000),
            }),
            ..PathKnowledge::default()
        },
    )
}

/// Random transfers of a scheme with random parameters.
fn agrees(scheme: &str, configs: impl Strategy<Value = StartupConfig>) {
    let program = program(scheme);
    let cases = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    // Transfers with few troubles come far, others have many.
    let events = prop_oneof![events(1), events(20), events(400)];
    proptest!(cases, |(config in configs, path in path(), events in events)| {
        let mut host = Host::new(&config);
        host.launch(&path);
        both_agree(&program, &config, host, &events);
    });
}

#[test]
fn jump_start_is_that_of_the_core() {
    let configs = (proptest::option::of(1000..2_000_000_u64), any::<bool>()).prop_map(|(threshold, pacing)| {
        let threshold = threshold.map(Bytes::new);
        StartupConfig::JumpStart(jump_start::Config { threshold, pacing, ..Default::default() })
    });
    agrees("jump-start", configs.clone());
    // All that may be launched need not wait at once.
    let program = program("jump-start");
    let cases = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let pieces = (0.0..1.0, 0..100_u64);
    proptest!(cases, |(config in configs, path in path(), (share, packets) in pieces, events in events(20))| {
        let first = path.bytes_waiting.unwrap().scale(share);
        let host = Host::launch_in_pieces(&config, &path, first, packets);
        both_agree(&program, &config, host, &events);
    });
}

/// 100 packets of 1000 bytes leave, of which `first` wait for no acknowledgement. Ten seem lost, and then all of them
/// arrive. Returns what follows.
fn undone(scheme: &str, config: &StartupConfig, first: u32) -> Vec<Decided> {
    let mut script = format!("launch 100000 100000 100000 1000000 2000000 100000 1000000 1000000 1000 10000 {FIRST}\n");
    let at = |packets: u32| FIRST.wrapping_add(packets * 1000);
    let mut tell = |line: String| writeln!(script, "{line}").unwrap();
    tell(format!("sent {} {}", at(first), first * 1000));
    // Careful Resume jumps with this one.
    tell(format!("ack 100000000 10000 100000 100000 10000 {} {} 1000 1", at(10), at(20)));
    tell(format!("sent {} 90000", at(100)));
    tell(format!("congestion 10000 {} {} 70000", at(20), at(10)));
    tell(format!("again {} 10000", at(10)));
    tell("undo".into());
    tell(format!("ack 200000000 20000 100000 100000 70000 {} {} 1000 1", at(30), at(100)));
    tell(format!("congestion 8000 {} {} 60000", at(38), at(30)));
    tell(format!("again {} 8000", at(30)));
    tell("recovered".into());
    let decided = decisions(&program(scheme), config, &script);
    assert_eq!((decided[0].reason, decided[2].reason), (1, 0), "{scheme} stays in charge: {decided:?}");
    decided[3..].to_vec()
}

#[test]
fn what_seemed_lost_leaves_no_trace() {
    // Slow start goes on: the window before the loss grows by what arrives.
    let slow_start = |after: &[Decided], cwnd: u64| {
        assert_eq!((after[0].cwnd, after[0].reason, after[0].rate), (cwnd + 20_000, 0, 0), "{after:?}");
    };
    // Jump-Start and More-Start go on validating. R counts 8 packets of the second loss, none of the first:
    // (D - R) / 2 = (100 - 8) / 2 = 46 packets.
    let jump = StartupConfig::JumpStart(jump_start::Config::default());
    let more = StartupConfig::MoreStart(more_start::Config::default());
    for (scheme, config, cwnd) in [("jump-start", jump, 110_000), ("more-start", more, 210_000)] {
        let after = undone(scheme, &config, 90);
        slow_start(&after, cwnd);
        assert_eq!((after[1].cwnd, after[1].reason), (60_000, 0), "{scheme}");
        assert_eq!((after[2].cwnd, after[2].reason), (46_000, 2), "{scheme} ends with the loss");
    }
    // The jump of Careful Resume and the approved window of Quick-Start are over: the second loss ends startup.
    let careful = StartupConfig::CarefulResume(careful_resume::Config::default());
    let after = undone("careful-resume", &careful, 10);
    // The jump was to half of 200 packets.
    slow_start(&after, 100_000);
    assert_eq!((after[1].cwnd, after[1].reason), (60_000, 2));
    let quick = StartupConfig::QuickStart(quick_start::Config::default());
    let after = undone("quick-start", &quick, 90);
    // The approved window became what had left, and then slow start.
    slow_start(&after, 100_000);
    assert_eq!((after[1].cwnd, after[1].reason), (60_000, 2));
}

/// A rate of 100 kbit/s to 1 Gbit/s.
fn rate() -> impl Strategy<Value = Rate> {
    (100..1_000_000_u64).prop_map(|kbit| Rate::from_bits_per_sec(kbit * 1000))
}

#[test]
fn blitzstart_is_that_of_the_core() {
    use blitzstart::{PacingRtt, RttSource};
    let rtts = proptest::sample::select(vec![RttSource::Min, RttSource::Handshake, RttSource::Cached]);
    let numbers = (0.5..4.0, proptest::option::of(0.5..2.0), 0.25..1.5, 0.5..1.0, 0..30_000_u64);
    let choices = (rtts, any::<bool>(), any::<bool>(), any::<bool>(), rate());
    let configs = (numbers, choices).prop_map(|(numbers, choices)| {
        let (estimate, buffer_factor, pacing_fraction, payload_fraction, ack_delay) = numbers;
        let (rtt, pacing, by_launch, header_correction, max_hint) = choices;
        StartupConfig::Blitzstart(blitzstart::Config {
            estimate,
            buffer_factor,
            pacing_fraction,
            payload_fraction,
            ack_delay: Duration::from_micros(ack_delay),
            rtt,
            pacing,
            pacing_rtt: if by_launch { PacingRtt::Launch } else { PacingRtt::Smoothed },
            header_correction,
            max_hint,
            ..Default::default()
        })
    });
    agrees("blitzstart", configs);
}

#[test]
fn initial_start_is_that_of_the_core() {
    use initial_start::WindowSource;
    let sources = proptest::sample::select(vec![WindowSource::Static, WindowSource::Saved, WindowSource::Hint]);
    let configs = (1..300_u32, sources, 0.1..10.0, 1..10_000_u32, any::<bool>()).prop_map(
        |(iw, window, factor, max_window, pacing)| {
            StartupConfig::InitialStart(initial_start::Config { iw, window, factor, max_window, pacing })
        },
    );
    agrees("initial-start", configs);
}

#[test]
fn more_start_is_that_of_the_core() {
    use more_start::RateSource;
    let sources = vec![RateSource::Any, RateSource::Application, RateSource::Hint, RateSource::Saved];
    let configs = (proptest::option::of(rate()), proptest::sample::select(sources), 0.1..10.0, any::<bool>()).prop_map(
        |(rate, source, factor, pacing)| StartupConfig::MoreStart(more_start::Config { rate, source, factor, pacing }),
    );
    agrees("more-start", configs);
}

#[test]
fn hystart_plus_plus_is_that_of_the_core() {
    use hystart_plus_plus::CssBaseline;
    let thresholds = (0..8_000_u64, 0..20_000_u64, 1..20_u32, 1..12_u32);
    let numbers =
        (2..8_u32, 1..8_u32, proptest::option::of(1..100_u32), proptest::option::of(1..20_u32), any::<bool>());
    let configs = (thresholds, numbers).prop_map(|(thresholds, numbers)| {
        let (least, more, min_rtt_divisor, n_rtt_sample) = thresholds;
        let (css_growth_divisor, css_rounds, iw, l, by_threshold) = numbers;
        StartupConfig::HystartPlusPlus(hystart_plus_plus::Config {
            iw,
            min_rtt_thresh: Duration::from_micros(least),
            max_rtt_thresh: Duration::from_micros(least + more),
            min_rtt_divisor,
            n_rtt_sample,
            css_growth_divisor,
            css_rounds,
            l,
            css_baseline: if by_threshold { CssBaseline::EntryThreshold } else { CssBaseline::CurrentRound },
        })
    });
    agrees("hystart-plus-plus", configs);
}

#[test]
fn search_is_that_of_the_core() {
    let configs = (2.0..5.0, 0.05..0.6, proptest::option::of(1..100_u32)).prop_map(|(window_factor, thresh, iw)| {
        // As the port rounds them.
        let window_factor = f64::round(window_factor * 1000.0) / 1000.0;
        let thresh = Some(f64::round(thresh * 1000.0) / 1000.0);
        StartupConfig::Search(search::Config { window_factor, thresh, iw, ..Default::default() })
    });
    let valid = configs.prop_filter("out of range", |config| config.validate().is_ok());
    agrees("search", valid);
}

#[test]
fn careful_resume_is_that_of_the_core() {
    let windows = (proptest::option::of(1..40_u32), 0.5..10.0, 0.1..1.0, proptest::option::of(10_000..5_000_000_u64));
    let configs = (windows, 5_000..10_000_u64, 0.0..6.0, any::<bool>(), 0.5..1.0).prop_map(
        |((iw, factor, jump, max_jump), lifetime, min_saved, pacing, beta)| {
            StartupConfig::CarefulResume(careful_resume::Config {
                iw,
                factor,
                jump,
                max_jump: max_jump.map(Bytes::new),
                lifetime: Duration::from_millis(lifetime),
                min_saved,
                pacing,
                beta,
            })
        },
    );
    agrees("careful-resume", configs);
}

#[test]
fn suss_is_that_of_the_core() {
    let limits = (1..20_u32, 0..8_000_u64, 0..20_000_u64, 0..40_000_u64, 2..40_u32);
    let choices = (proptest::option::of(1..40_u32), 0..8_u32, 0..50_000_u64, any::<bool>());
    let configs = (limits, choices).prop_map(|(limits, (iw, rounds, smallest_rtt, pacing))| {
        let (samples, least, more, ack_gap, low_window) = limits;
        StartupConfig::Suss(suss::Config {
            iw,
            rounds,
            smallest_rtt: Duration::from_micros(smallest_rtt),
            pacing,
            hystart: hystart::Limits {
                samples,
                min_threshold: Duration::from_micros(least),
                max_threshold: Duration::from_micros(least + more),
                ack_gap: Duration::from_micros(ack_gap),
                low_window,
            },
        })
    });
    agrees("suss", configs);
}

#[test]
fn quick_start_is_that_of_the_core() {
    use quick_start::{SsthreshAfterFailure, Verified};
    let configs = (0..200_u64, proptest::option::of(1..40_u32), any::<bool>(), any::<bool>()).prop_map(
        |(header, iw, reduced, ends)| {
            StartupConfig::QuickStart(quick_start::Config {
                header: Bytes::new(header),
                iw,
                ssthresh_after_failure: if reduced {
                    SsthreshAfterFailure::Reduced
                } else {
                    SsthreshAfterFailure::Initial
                },
                verified: if ends { Verified::CongestionAvoidance } else { Verified::SlowStart },
                ..Default::default()
            })
        },
    );
    agrees("quick-start", configs);
}
