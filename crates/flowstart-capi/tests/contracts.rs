//! The functions of C do what the controller does: both get the random events of the contracts of `flowstart-core`, and
//! agree after each of them.

#![allow(unsafe_code, reason = "calls as C makes them")]

#[allow(dead_code, reason = "C has not all policies of hosts")]
#[path = "../../flowstart-core/tests/host/mod.rs"]
mod host;
#[path = "../../flowstart-core/tests/operations/mod.rs"]
mod operations;

use std::ffi::{CStr, CString};
use std::ptr;

use flowstart_capi::boundary::{
    Controller, flowstart_free, flowstart_last_error, flowstart_launch, flowstart_new, flowstart_on_ack,
    flowstart_on_packet_lost, flowstart_on_path_change, flowstart_on_sent, flowstart_on_spurious_loss, flowstart_query,
    flowstart_set_segment,
};
use flowstart_capi::layout::{Ack, Config, Output, Path, Phase, Status};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::{ControllerConfig, Resume};
use flowstart_core::event::{Decision, ExitReason};
use flowstart_core::launch::UNPACED;
use flowstart_core::path::PathKnowledge;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use host::{Host, Operation, SEGMENT, known};
use operations::operation;
use proptest::prelude::*;

/// A host in C: it counts what is in flight and knows no more of the controller than its functions.
struct InC {
    controller: *mut Controller,
    now: u64,
    segment: u64,
    in_flight: u64,
    /// Number of the next packet.
    next: u64,
    acknowledged: u64,
}

impl Drop for InC {
    fn drop(&mut self) {
        // SAFETY: made by flowstart_new() and freed once.
        assert_eq!(unsafe { flowstart_free(self.controller) }, Status::Ok);
    }
}

/// What is known of a path, as C says it.
fn told(path: &PathKnowledge) -> Path {
    let rate = |rate: Option<flowstart_core::units::Rate>| rate.map_or(0, flowstart_core::units::Rate::bits_per_sec);
    let nanos = |span: Option<Duration>| span.map_or(0, Duration::as_nanos);
    Path {
        size: size_of::<Path>(),
        handshake_rtt: nanos(path.handshake_rtt),
        saved_cwnd: path.saved.map_or(0, |saved| saved.cwnd.get()),
        saved_rtt: nanos(path.saved.map(|saved| saved.rtt)),
        saved_age: nanos(path.saved.map(|saved| saved.age)),
        receive_window: path.receive_window.map_or(0, Bytes::get),
        bytes_waiting: path.bytes_waiting.map_or(0, Bytes::get),
        hint_rate: rate(path.hint.map(|hint| hint.bandwidth)),
        requested_rate: rate(path.requested_rate),
        interface_rate: rate(path.interface_rate),
        approved_rate: rate(path.approved_rate),
        advised_rate: rate(path.advised_rate),
        oracle_rate: rate(path.oracle_rate),
        train_rate: rate(path.train_rate),
        // LTE, or unknown.
        hint_technology: if path.hint.is_some() { 6 } else { 0 },
        doubt_handshake: 0,
    }
}

/// A host that was compiled with the first version of the header states nothing that came later.
#[test]
fn what_lies_behind_a_struct_of_the_first_version_is_not_read() {
    let mut path = told(&PathKnowledge {
        handshake_rtt: Some(Duration::from_millis(100)),
        bytes_waiting: Some(Bytes::new(50_000_000)),
        train_rate: Some(flowstart_core::units::Rate::from_mbit(40)),
        ..PathKnowledge::default()
    });
    let window = |path: &Path| InC::launched("plumb", "cubic", path).expect("a pair that works").output().cwnd;
    assert_eq!(window(&path), 64 * SEGMENT);
    path.size = std::mem::offset_of!(Path, train_rate);
    assert_eq!(window(&path), 10 * SEGMENT);
}

fn last_error() -> String {
    // SAFETY: a text that ends with a zero.
    unsafe { CStr::from_ptr(flowstart_last_error()) }.to_string_lossy().into_owned()
}

fn require(status: Status) {
    assert_eq!(status, Status::Ok, "{}", last_error());
}

impl InC {
    /// A host that knows everything of its path; `None`: the library refuses the pair.
    fn new(scheme: &str, avoidance: &str) -> Option<Self> {
        Self::launched(scheme, avoidance, &told(&known()))
    }

    /// A host that launches with what it knows of its path.
    fn launched(scheme: &str, avoidance: &str, path: &Path) -> Option<Self> {
        let (scheme, avoidance) = (CString::new(scheme).expect("a name"), CString::new(avoidance).expect("a name"));
        let config = Config {
            size: size_of::<Config>(),
            scheme: scheme.as_ptr(),
            avoidance: avoidance.as_ptr(),
            segment: SEGMENT,
            initial_window: 0,
            ect1: 1,
            reserved: 0,
        };
        let mut controller = ptr::null_mut();
        // SAFETY: a struct of its size, whose texts outlive the call.
        let status = unsafe { flowstart_new(&raw const config, &raw mut controller) };
        if status != Status::Ok {
            assert!(status == Status::Value && controller.is_null());
            return None;
        }
        // SAFETY: made above.
        require(unsafe { flowstart_launch(controller, 0, ptr::from_ref(path)) });
        Some(Self { controller, now: 0, segment: SEGMENT, in_flight: 0, next: 0, acknowledged: 0 })
    }

    fn output(&self) -> Output {
        let mut output = std::mem::MaybeUninit::<Output>::zeroed();
        // SAFETY: numbers, of which the first is the size; the library fills the rest.
        unsafe {
            (&raw mut (*output.as_mut_ptr()).size).write(size_of::<Output>());
            require(flowstart_query(self.controller, self.now, output.as_mut_ptr()));
            output.assume_init()
        }
    }

    fn ack(&self, change: impl FnOnce(&mut Ack)) {
        let mut ack = Ack {
            size: size_of::<Ack>(),
            now: self.now,
            largest_acked: self.acknowledged.saturating_sub(1),
            delivered_bytes: 0,
            delivered_packets: 0,
            in_flight: self.in_flight,
            rtt: 0,
            ack_delay: 0,
            ce_packets: 0,
            app_limited: 0,
            persistent_congestion: 0,
        };
        change(&mut ack);
        // SAFETY: as made above.
        require(unsafe { flowstart_on_ack(self.controller, &raw const ack) });
    }

    fn lose(&mut self, packets: u8, persistent: bool) {
        let bytes = (u64::from(packets) * self.segment).min(self.in_flight);
        for place in 0..bytes / self.segment {
            let number = (self.next - 1).saturating_sub(place);
            // SAFETY: as made above.
            require(unsafe { flowstart_on_packet_lost(self.controller, number, self.segment) });
        }
        self.in_flight -= bytes;
        self.acknowledged = (self.acknowledged + bytes / self.segment).min(self.next);
        self.ack(|ack| ack.persistent_congestion = persistent.into());
    }

    fn happen(&mut self, operation: &Operation) {
        let controller = self.controller;
        match *operation {
            Operation::Wait(nanos) => self.now += u64::from(nanos),
            Operation::Send => {
                self.in_flight += self.segment;
                let app_limited = (self.next + 1).is_multiple_of(7).into();
                // SAFETY: as made above.
                require(unsafe {
                    flowstart_on_sent(controller, self.now, self.next, self.segment, self.in_flight, app_limited)
                });
                self.next += 1;
            }
            Operation::Acknowledge { packets, rtt_ms, app_limited } => {
                let bytes = (u64::from(packets) * self.segment).min(self.in_flight);
                self.in_flight -= bytes;
                self.acknowledged = (self.acknowledged + bytes / self.segment).min(self.next);
                self.ack(|ack| {
                    (ack.delivered_bytes, ack.delivered_packets) = (bytes, bytes / self.segment);
                    (ack.rtt, ack.app_limited) = (u64::from(rtt_ms) * 1_000_000, app_limited.into());
                });
            }
            Operation::Lose { packets } => self.lose(packets, false),
            Operation::CongestPersistently => self.lose(u8::MAX, true),
            Operation::Mark => self.ack(|ack| ack.ce_packets = 1),
            // SAFETY: as made above.
            Operation::FindSpurious => require(unsafe { flowstart_on_spurious_loss(controller, self.now) }),
            Operation::ChangeSegment(bytes) => {
                self.segment = u64::from(bytes).max(self.segment);
                // SAFETY: as made above.
                require(unsafe { flowstart_set_segment(controller, self.segment) });
            }
            Operation::ChangePath => {
                let path = told(&known().for_new_path());
                // SAFETY: as made above.
                require(unsafe { flowstart_on_path_change(controller, self.now, &raw const path) });
            }
            Operation::Timer => {
                self.output();
            }
            Operation::Idle { ms } => self.now += u64::from(ms) * 1_000_000,
            Operation::TimeOut | Operation::Limited | Operation::Advice(_) | Operation::Share(_) => {
                panic!("C has none")
            }
        }
    }
}

/// The controller as Rust drives it, and as C does.
struct Both {
    rust: Host,
    c: InC,
    last_sent: Timestamp,
    /// Packets that had left when the window was found full.
    full_until: u64,
    exit: Option<ExitReason>,
}

impl Both {
    fn new(startup: &StartupConfig, avoidance: &AvoidanceConfig) -> Option<Self> {
        let config = ControllerConfig {
            segment: Bytes::new(SEGMENT),
            undo: true,
            ..ControllerConfig::new(startup.clone(), avoidance.clone())
        };
        let c = InC::new(startup.name(), avoidance.name())?;
        let rust = Host::new(config, known()).expect("what the library takes is valid");
        let mut both = Self { rust, c, last_sent: Timestamp::ZERO, full_until: 0, exit: None };
        both.agree(&Operation::Timer);
        Some(both)
    }

    /// Due timers run before each event; hosts of Rust do that themselves.
    fn run_timers(&mut self) {
        let Host { controller, now, rtt, .. } = &mut self.rust;
        if controller.in_startup() && controller.next_wakeup() <= *now {
            controller.on_timer(*now, rtt);
        }
    }

    fn apply(&mut self, operation: &Operation) {
        let in_flight = self.rust.packets_in_flight();
        assert_eq!(in_flight, self.c.in_flight / self.c.segment);
        let segment = self.c.segment;
        let mut operation = *operation;
        match &mut operation {
            // What C has no function for: reports that only TCP makes, and advice after the launch.
            Operation::TimeOut | Operation::Limited | Operation::Advice(_) | Operation::Share(_) => return,
            // Packets in flight keep their size in the bookkeeping of both.
            Operation::ChangeSegment(_) if in_flight > 0 => return,
            Operation::Idle { ms } => {
                while self.rust.packets_in_flight() > 0 {
                    self.apply(&Operation::Acknowledge { packets: 19, rtt_ms: 50, app_limited: true });
                }
                self.rust.now += Duration::from_millis(u64::from(*ms));
                self.c.happen(&operation);
                return self.agree(&operation);
            }
            Operation::Send => {
                self.run_timers();
                if (in_flight + 1) * segment > self.rust.controller.cwnd().get() {
                    return;
                }
                if in_flight == 0 {
                    let Host { controller, now, rtt, .. } = &mut self.rust;
                    // RFC 9002, section 6.2.1, with a timer of 1 ms and the default max_ack_delay.
                    let variation = (rtt.variation() * 4).max(Duration::from_millis(1));
                    let timeout = rtt.smoothed() + variation + Duration::from_millis(25);
                    let resume = Resume { now: *now, idle: now.since(self.last_sent), timeout };
                    controller.on_resume(&resume, &PathKnowledge::default(), rtt);
                }
                self.last_sent = self.rust.now;
            }
            Operation::Acknowledge { packets, rtt_ms, app_limited } => {
                *rtt_ms = (*rtt_ms).max(1);
                self.run_timers();
                let (packets, rtt_ms) = (*packets, *rtt_ms);
                self.c.happen(&Operation::Acknowledge { packets, rtt_ms, app_limited: *app_limited });
                // A host of Rust says itself whether the window was full when the packets left.
                *app_limited &= self.c.acknowledged > self.full_until;
                self.rust.apply(&operation);
                return self.agree(&operation);
            }
            Operation::Lose { .. } | Operation::CongestPersistently | Operation::Mark if in_flight == 0 => return,
            // Nothing was acknowledged that could echo a mark.
            Operation::Mark if self.c.acknowledged == 0 => return,
            // Nobody waits for a timer that is not due.
            Operation::Timer => {
                self.run_timers();
                self.c.happen(&operation);
                return self.agree(&operation);
            }
            _ => self.run_timers(),
        }
        self.rust.apply(&operation);
        self.c.happen(&operation);
        if matches!(operation, Operation::Send) && self.c.in_flight + self.c.segment > self.rust.controller.cwnd().get()
        {
            self.full_until = self.c.next;
        }
        self.agree(&operation);
    }

    fn agree(&mut self, operation: &Operation) {
        self.run_timers();
        let path_is_new = matches!(operation, Operation::ChangePath);
        if path_is_new {
            self.exit = None;
        }
        while let Some((_, decision)) = self.rust.controller.take_decision() {
            if let Decision::StartupExited { reason, .. } = decision {
                self.exit.get_or_insert(reason);
            }
        }
        let (told, output) = (self.c.output(), self.rust.controller.output());
        let named = || format!("{operation:?}: {told:?} and {output:?}");
        assert_eq!(told.cwnd, output.cwnd.get().max(2 * self.c.segment), "{}", named());
        assert_eq!(told.pacing_rate, output.pacing_rate.unwrap_or(UNPACED).bits_per_sec(), "{}", named());
        assert_eq!(told.burst, output.burst.get(), "{}", named());
        assert_eq!(told.send_quantum, output.send_quantum.get(), "{}", named());
        assert_eq!(told.next_wakeup, output.next_wakeup.as_nanos(), "{}", named());
        let controller = &self.rust.controller;
        assert_eq!(told.ssthresh, controller.ssthresh().get(), "{}", named());
        assert_eq!(told.phase == Phase::Startup, controller.in_startup(), "{}", named());
        assert_eq!(told.in_recovery == 1, controller.in_recovery(), "{}", named());
        assert_eq!(told.min_rtt, self.rust.rtt.min().unwrap_or_default().as_nanos(), "{}", named());
        // SAFETY: the library ends the name with a zero.
        let reason = unsafe { CStr::from_ptr(told.exit_reason.as_ptr()) };
        assert_eq!(reason.to_str(), Ok(self.exit.map_or("", ExitReason::name)), "{}", named());
    }
}

/// Every pair of scheme and congestion avoidance that C can have.
fn pairs() -> Vec<Both> {
    let avoidance = AvoidanceConfig::defaults();
    let schemes = StartupConfig::defaults();
    schemes.iter().flat_map(|scheme| avoidance.iter().filter_map(|one| Both::new(scheme, one))).collect()
}

#[test]
fn most_schemes_and_every_loss_based_avoidance_can_be_had() {
    let pairs = pairs().len();
    // All but halfback and ensemble-sharing, beside CUBIC, Prague and Reno.
    assert_eq!(pairs, (StartupConfig::NAMES.len() - 2) * 3);
}

#[test]
fn c_and_rust_agree_over_a_long_transfer_with_pauses() {
    for mut both in pairs() {
        for step in 0..3000_u32 {
            both.apply(&Operation::Wait(5_000_000));
            (0..3).for_each(|_| both.apply(&Operation::Send));
            match step % 500 {
                100 | 101 => both.apply(&Operation::Lose { packets: 2 }),
                200 => both.apply(&Operation::Mark),
                250 => both.apply(&Operation::FindSpurious),
                300 => both.apply(&Operation::Idle { ms: 7000 }),
                400 if step > 2000 => both.apply(&Operation::CongestPersistently),
                _ => {}
            }
            let rtt_ms = 50 + (step % 7) as u16;
            both.apply(&Operation::Acknowledge { packets: 2, rtt_ms, app_limited: step % 50 == 0 });
        }
        assert!(both.c.next > 5000, "{} packets say little", both.c.next);
    }
}

/// As `flowstart-quic` tries it with the events of QUIC stacks.
#[test]
fn a_loss_comes_before_the_acknowledgement_of_its_frame() {
    let mut c = InC::launched("slow-start", "cubic", &told(&PathKnowledge::default())).expect("a valid pair");
    (0..10).for_each(|_| c.happen(&Operation::Send));
    // A frame acknowledges 3 to 9 and so reveals that 0 to 2 are lost.
    for number in 0..3 {
        // SAFETY: as made above.
        require(unsafe { flowstart_on_packet_lost(c.controller, number, SEGMENT) });
    }
    (c.now, c.in_flight, c.acknowledged) = (100_000_000, 0, 10);
    let of_seven = |ack: &mut Ack| (ack.delivered_bytes, ack.delivered_packets) = (7 * SEGMENT, 7);
    c.ack(|ack| {
        of_seven(ack);
        ack.rtt = 100_000_000;
    });
    // CUBIC makes 0.7 of a window of 10 packets, not of the 17 that the acknowledgement would have made of it first.
    assert_eq!(c.output().cwnd, 7 * SEGMENT);
    // 7 packets in an RTT of 100 ms, paced at 1.25 of that: 1.25 * 67,200 bit / 0.1 s.
    assert_eq!(c.output().pacing_rate, 840_000);
}

#[test]
fn the_receivers_delay_is_no_part_of_a_sample() {
    let mut c = InC::launched("slow-start", "cubic", &told(&PathKnowledge::default())).expect("a valid pair");
    for (rtt, delay) in [(100, 0), (116, 8)] {
        c.happen(&Operation::Send);
        (c.now, c.in_flight, c.acknowledged) = (c.now + 116_000_000, 0, c.next);
        c.ack(|ack| {
            (ack.delivered_bytes, ack.delivered_packets) = (SEGMENT, 1);
            (ack.rtt, ack.ack_delay) = (rtt * 1_000_000, delay * 1_000_000);
        });
    }
    // RFC 9002, section 5.3: 7/8 * 100 + 1/8 * (116 - 8) = 101.
    assert_eq!((c.output().smoothed_rtt, c.output().min_rtt), (101_000_000, 100_000_000));
}

/// As `flowstart-quic` tries it.
#[test]
fn a_client_that_delays_its_handshake_gains_no_window() {
    // After a flight of 20 packets, 10 of them are acknowledged after 100 ms.
    let after_a_flight = |handshake_ms: u64, doubts: bool| {
        let mut path = told(&PathKnowledge { bytes_waiting: Some(Bytes::new(50_000_000)), ..Default::default() });
        (path.handshake_rtt, path.hint_rate) = (handshake_ms * 1_000_000, 10_000_000);
        path.doubt_handshake = doubts.into();
        let mut c = InC::launched("blitzstart", "cubic", &path).expect("a valid pair");
        let launched = c.output().cwnd;
        (0..20).for_each(|_| c.happen(&Operation::Send));
        c.now += 100_000_000;
        c.happen(&Operation::Acknowledge { packets: 10, rtt_ms: 100, app_limited: false });
        (launched, c.output())
    };
    // 10 Mbit/s for 3 s are 3.75 MB, for 100 ms 125 KB; 12 KB were delivered since the launch.
    let (launched, doubted) = after_a_flight(3000, true);
    assert_eq!(launched, 3_750_000);
    assert!((100_000..=137_000).contains(&doubted.cwnd) && doubted.pacing_rate <= 10_000_000, "{doubted:?}");
    let (_, believed) = after_a_flight(3000, false);
    assert!(believed.cwnd >= 3_750_000, "{believed:?}");
    // Who does not lie loses nothing.
    let (launched, honest) = after_a_flight(100, true);
    assert!(launched == 125_000 && honest.cwnd >= launched, "{launched}, {honest:?}");
}

#[test]
fn a_launch_leaves_at_its_rate() {
    // Blitzstart with a hint of 20 Mbit/s over an RTT of 50 ms: the bandwidth-delay product is 125,000 bytes.
    let mut c = InC::new("blitzstart", "cubic").expect("a valid pair");
    let launched = c.output();
    let mut sent = 0;
    let begin = c.now;
    while c.in_flight + SEGMENT <= launched.cwnd {
        let output = c.output();
        if output.next_send > c.now {
            c.now = output.next_send;
            continue;
        }
        c.happen(&Operation::Send);
        sent += SEGMENT * 8;
    }
    let seconds = (c.now - begin) as f64 / 1e9;
    let rate = (sent as f64 - launched.burst as f64 * 8.0) / seconds;
    assert!((rate / launched.pacing_rate as f64 - 1.0).abs() < 0.02, "{rate} at {launched:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn c_and_rust_agree_after_each_event(operations in prop::collection::vec(operation(), 0..200)) {
        for mut both in pairs() {
            operations.iter().for_each(|operation| both.apply(operation));
        }
    }
}
