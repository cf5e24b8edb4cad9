//! What happens when a caller in C makes a mistake.

#![allow(unsafe_code, reason = "calls as C makes them")]

use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstart_capi::boundary::{
    Controller, flowstart_free, flowstart_last_error, flowstart_launch, flowstart_new, flowstart_on_ack,
    flowstart_on_packet_lost, flowstart_on_path_change, flowstart_on_sent, flowstart_on_spurious_loss, flowstart_query,
    flowstart_set_segment, flowstart_version,
};
use flowstart_capi::layout::{Ack, Config, Output, Path, Phase, Status};
use proptest::prelude::*;

/// All bytes zero but the size, as `{.size = sizeof it}` in C.
fn zeroed<T: Copy>() -> T {
    let mut made = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: used for the structs of the header: numbers and pointers, the first of which is the size.
    unsafe {
        made.as_mut_ptr().cast::<usize>().write(size_of::<T>());
        made.assume_init()
    }
}

fn last_error() -> String {
    // SAFETY: a text that ends with a zero.
    unsafe { CStr::from_ptr(flowstart_last_error()) }.to_string_lossy().into_owned()
}

/// A call was refused, and the text says these things.
fn refused(status: Status, expected: Status, parts: &[&str]) {
    let error = last_error();
    assert_eq!(status, expected, "{error}");
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

fn new(change: impl FnOnce(&mut Config)) -> (Status, *mut Controller) {
    let mut config: Config = zeroed();
    change(&mut config);
    let mut controller = ptr::null_mut();
    // SAFETY: the struct is complete but for what the test says.
    let status = unsafe { flowstart_new(&raw const config, &raw mut controller) };
    assert_eq!(status == Status::Ok, !controller.is_null());
    (status, controller)
}

fn with_texts(scheme: &str, avoidance: &str) -> (Status, *mut Controller) {
    let (scheme, avoidance) = (CString::new(scheme).expect("a text"), CString::new(avoidance).expect("a text"));
    new(|config| (config.scheme, config.avoidance) = (scheme.as_ptr(), avoidance.as_ptr()))
}

/// A controller that has launched at 0 and frees itself.
struct Launched(*mut Controller);

impl Launched {
    fn new() -> Self {
        let (_, controller) = new(|_| ());
        // SAFETY: made above.
        assert_eq!(unsafe { flowstart_launch(controller, 0, ptr::null()) }, Status::Ok, "{}", last_error());
        Self(controller)
    }

    fn send(&self, now: u64, number: u64, in_flight: u64) -> Status {
        // SAFETY: made by `new`.
        unsafe { flowstart_on_sent(self.0, now, number, 1200, in_flight, 0) }
    }

    fn ack(&self, change: impl FnOnce(&mut Ack)) -> Status {
        let mut ack: Ack = zeroed();
        change(&mut ack);
        // SAFETY: made by `new`.
        unsafe { flowstart_on_ack(self.0, &raw const ack) }
    }

    fn query(&self, now: u64) -> (Status, Output) {
        let mut output = zeroed();
        // SAFETY: made by `new`.
        (unsafe { flowstart_query(self.0, now, &raw mut output) }, output)
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and freed only here.
        assert_eq!(unsafe { flowstart_free(self.0) }, Status::Ok);
    }
}

#[test]
fn a_missing_pointer_is_named() {
    let none = ptr::null_mut();
    let flow = Launched::new();
    let (ack, config): (Ack, Config) = (zeroed(), zeroed());
    let mut output: Output = zeroed();
    // SAFETY: NULL is what this is about.
    unsafe {
        let named = |status, name| refused(status, Status::Null, &[name, " is NULL; allowed is a pointer"]);
        named(flowstart_new(ptr::null(), &mut ptr::null_mut()), "config");
        named(flowstart_new(&raw const config, ptr::null_mut()), "created");
        named(flowstart_launch(none, 0, ptr::null()), "controller");
        named(flowstart_on_path_change(none, 0, ptr::null()), "controller");
        named(flowstart_on_sent(none, 0, 0, 1, 1, 0), "controller");
        named(flowstart_on_packet_lost(none, 0, 1), "controller");
        named(flowstart_on_ack(none, &raw const ack), "controller");
        named(flowstart_on_ack(flow.0, ptr::null()), "ack");
        named(flowstart_on_spurious_loss(none, 0), "controller");
        named(flowstart_set_segment(none, 1200), "controller");
        named(flowstart_query(flow.0, 0, ptr::null_mut()), "output");
        named(flowstart_query(none, 0, &raw mut output), "controller");
        // Whoever goes on regardless has a window.
        assert_eq!((output.cwnd, output.phase, output.size), (2400, Phase::Fallback, size_of::<Output>()));
        assert!(output.pacing_rate > 0);
        assert_eq!(flowstart_free(none), Status::Ok);
        assert_eq!(CStr::from_ptr(flowstart_version()).to_str(), Ok(env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn a_wrong_size_is_refused_and_nothing_is_read_or_written() {
    let flow = Launched::new();
    for size in [0, 1, 8, size_of::<Ack>() - 1, size_of::<Ack>() + 1, 1 << 20, usize::MAX] {
        refused(new(|config| config.size = size).0, Status::Size, &["config.size is ", "sizeof(flowstart_config)"]);
        refused(flow.ack(|ack| ack.size = size), Status::Size, &["ack.size is ", "sizeof(flowstart_ack)"]);
        let mut path: Path = zeroed();
        path.size = size;
        let (_, controller) = new(|_| ());
        // SAFETY: made above, freed once.
        unsafe {
            let status = flowstart_launch(controller, 0, &raw const path);
            refused(status, Status::Size, &["path.size is ", "sizeof(flowstart_path)"]);
            // Nothing has happened, so it can still launch.
            assert_eq!(flowstart_launch(controller, 0, ptr::null()), Status::Ok);
            assert_eq!(flowstart_free(controller), Status::Ok);
        }
        let mut output: Output = zeroed();
        (output.size, output.cwnd) = (size, 77);
        // SAFETY: the size is wrong, so nothing is written.
        let status = unsafe { flowstart_query(flow.0, 0, &raw mut output) };
        refused(status, Status::Size, &["output.size is ", "sizeof(flowstart_output)"]);
        assert_eq!(output.cwnd, 77);
    }
}

#[test]
fn what_no_host_can_run_is_refused_with_the_reason() {
    for (scheme, avoidance, parts) in [
        ("jumpstart", "cubic", &["scheme `jumpstart`", "did you mean `jump-start`?"][..]),
        ("blitzstart:estimate=nan", "cubic", &["estimate `nan`: allowed is a number"]),
        ("blitzstart:estimate=-1", "cubic", &["estimate is -1; allowed is 0.001 to 1000"]),
        ("slow-start", "cubic:beta=inf", &["avoidance `cubic:beta=inf`", "allowed is a number"]),
        ("slow-start", "bbr", &["avoidance `bbr`", "rate sample", "allowed are ", "cubic"]),
        ("slow-start", "xcp", &["congestion header"]),
        ("slow-start", "prague", &["ect1 = 1"]),
        ("ensemble-sharing", "cubic", &["connections to the same peer share", "allowed are ", "blitzstart"]),
        ("halfback", "cubic", &["sent again before it is lost", "allowed are ", "blitzstart"]),
        ("quick-start:after_idle=2s", "cubic", &["in mid-connection"]),
        ("", "cubic", &["nothing is written"]),
        ("slow\u{1}start", "cubic", &["control characters"]),
        ("sl\u{f6}w-start", "cubic", &["is not known"]),
    ] {
        refused(with_texts(scheme, avoidance).0, Status::Value, parts);
    }
    refused(with_texts(&"x".repeat(5000), "cubic").0, Status::Value, &["scheme is too long"]);
    let latin = [0xf6_u8, 0];
    refused(new(|config| config.scheme = latin.as_ptr().cast::<c_char>()).0, Status::Value, &["UTF-8"]);
    for (change, part) in [
        ((|config| config.segment = 65_536) as fn(&mut Config), "segment is "),
        (|config| config.segment = u64::MAX, "segment is "),
        (|config| config.initial_window = 1_000_001, "initial_window is 1000001; allowed is 1 to 1000000"),
        (|config| config.ect1 = 2, "ect1 is 2; allowed is 0 to 1"),
        (|config| config.reserved = 1, "reserved is 1"),
    ] {
        refused(new(change).0, Status::Value, &[part]);
    }
}

#[test]
fn values_out_of_range_are_refused_and_change_nothing() {
    let flow = Launched::new();
    let before = flow.query(0).1.cwnd;
    // Nothing was sent yet.
    refused(flow.ack(|ack| ack.delivered_bytes = 1200), Status::Value, &["delivered_bytes is 1200; allowed is 0 to 0"]);
    refused(flow.ack(|ack| ack.ce_packets = 1), Status::Value, &["largest_acked is 0; allowed is none"]);
    assert_eq!(flow.send(1000, 5, 1200), Status::Ok);
    refused(flow.send(1000, 5, 2400), Status::Value, &["packet_number is 5; allowed is 6 to "]);
    refused(flow.send(u64::MAX, 6, 2400), Status::Value, &["now is 18446744073709551615; allowed is 0 to "]);
    refused(flow.send(1000, u64::MAX, 2400), Status::Value, &["packet_number is "]);
    refused(flow.send(1000, 6, 100), Status::Value, &["in_flight is 100; allowed is 1200 to "]);
    // A packet that was never sent, and more than was sent.
    let of_six = |ack: &mut Ack| (ack.largest_acked, ack.delivered_bytes, ack.delivered_packets) = (6, 1200, 1);
    refused(flow.ack(of_six), Status::Value, &["largest_acked is 6; allowed is 0 to 5"]);
    let twice = |ack: &mut Ack| (ack.largest_acked, ack.delivered_bytes) = (5, 2400);
    refused(flow.ack(twice), Status::Value, &["delivered_bytes is 2400; allowed is 0 to 1200"]);
    let odd = |ack: &mut Ack| (ack.largest_acked, ack.delivered_bytes, ack.app_limited) = (5, 1200, 7);
    refused(flow.ack(odd), Status::Value, &["app_limited is 7; allowed is 0 to 1"]);
    refused(flow.ack(|ack| ack.rtt = u64::MAX), Status::Value, &["rtt is "]);
    // SAFETY: made by `new`.
    unsafe {
        let lost = |number, bytes| flowstart_on_packet_lost(flow.0, number, bytes);
        refused(lost(6, 1200), Status::Value, &["packet_number is 6; allowed is 0 to 5"]);
        refused(lost(5, 1201), Status::Value, &["bytes is 1201; allowed is 0 to 1200"]);
        refused(flowstart_set_segment(flow.0, 0), Status::Value, &["segment is 0; allowed is 1 to 65535"]);
        refused(flowstart_launch(flow.0, 0, ptr::null()), Status::State, &["launched already"]);
        for (change, part) in [
            ((|path| path.hint_rate = u64::MAX) as fn(&mut Path), "hint_rate is "),
            (|path| path.handshake_rtt = u64::MAX, "handshake_rtt is "),
            (|path| path.saved_cwnd = 1, "saved_rtt is 0; with saved_cwnd allowed is 1 to "),
            (|path| path.hint_technology = 8, "hint_technology is 8; allowed is 0 to 7"),
            (|path| path.doubt_handshake = 2, "doubt_handshake is 2; allowed is 0 to 1"),
        ] {
            let mut path: Path = zeroed();
            change(&mut path);
            refused(flowstart_on_path_change(flow.0, 0, &raw const path), Status::Value, &[part]);
        }
    }
    let (status, output) = flow.query(u64::MAX);
    refused(status, Status::Value, &["now is "]);
    assert_eq!((output.cwnd, output.phase), (2400, Phase::Fallback));
    // The flow goes on as if nothing had been said.
    assert_eq!((flow.query(1000).1.cwnd, flow.query(1000).1.phase), (before, Phase::Startup));
}

#[test]
fn a_time_that_goes_back_is_the_latest_time() {
    let (flow, steady) = (Launched::new(), Launched::new());
    let mut outputs = [(&flow, 900), (&steady, 1_000_000)].map(|(flow, earlier)| {
        assert_eq!(flow.send(1_000_000, 0, 1200), Status::Ok);
        assert_eq!(flow.send(earlier, 1, 2400), Status::Ok);
        let acked = |ack: &mut Ack| {
            (ack.now, ack.rtt) = (earlier, 50_000_000);
            (ack.largest_acked, ack.delivered_bytes, ack.delivered_packets) = (1, 2400, 2);
        };
        assert_eq!(flow.ack(acked), Status::Ok);
        flow.query(0).1
    });
    let [back, on] = &mut outputs;
    assert_eq!(format!("{back:?}"), format!("{on:?}"));
}

#[test]
fn congestion_before_the_launch_launches_without_knowledge() {
    let (_, controller) = new(|_| ());
    let flow = Launched(controller);
    assert_eq!(flow.query(0).1.phase, Phase::Waiting);
    assert_eq!(flow.send(0, 0, 1200), Status::Ok);
    assert_eq!(flow.ack(|ack| ack.rtt = 1), Status::Ok);
    assert_eq!(flow.query(0).1.phase, Phase::Waiting);
    // SAFETY: made above.
    assert_eq!(unsafe { flowstart_on_packet_lost(flow.0, 0, 1200) }, Status::Ok);
    assert_eq!(flow.ack(|_| ()), Status::Ok);
    assert_eq!(flow.query(0).1.phase, Phase::Avoidance);
    // SAFETY: made above.
    refused(unsafe { flowstart_launch(flow.0, 0, ptr::null()) }, Status::State, &["launched already"]);
}

#[test]
fn two_threads_get_an_error_and_no_harm() {
    let flow = Launched::new();
    let address = flow.0.expose_provenance();
    let (stop, begun) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let busy = std::thread::scope(|scope| {
        scope.spawn(move || {
            let other = ptr::with_exposed_provenance_mut::<Controller>(address);
            while !stop.load(Ordering::Relaxed) {
                let mut output: Output = zeroed();
                // SAFETY: the controller outlives the scope.
                let status = unsafe { flowstart_query(other, 0, &raw mut output) };
                assert!([Status::Ok, Status::Busy].contains(&status), "{}", last_error());
                assert!(output.cwnd >= 2400);
                begun.store(true, Ordering::Relaxed);
            }
        });
        while !begun.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        let mut busy = 0_u64;
        for number in 0..200_000 {
            // Whoever gets this error has to say it again.
            while flow.send(number, number, 1200) == Status::Busy {
                busy += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        busy
    });
    println!("{busy} calls met another");
    // Every packet was counted once.
    refused(flow.ack(|ack| ack.delivered_bytes = 1200 * 200_000 + 1), Status::Value, &["allowed is 0 to 240000000"]);
}

/// Numbers that are plausible, and those at the ends of ranges.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..5_u64,
        0..20_000_u64,
        1_000_000..1_000_000_000_u64,
        prop::sample::select(vec![(1 << 62) - 2, (1 << 62) - 1, 1 << 62, u64::MAX, 1_000_000_000_000_000]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_numbers_a_caller_says_the_library_does_not_fail(
        calls in prop::collection::vec((0..9_u8, prop::array::uniform12(number())), 0..60),
        scheme in 0..8_usize,
    ) {
        let schemes = ["slow-start", "blitzstart", "careful-resume", "jump-start", "search", "suss", "swift-start",
            "quick-start"];
        let (_, controller) = with_texts(schemes[scheme], if scheme % 2 == 0 { "cubic" } else { "reno" });
        let flow = Launched(controller);
        let mut next = 0;
        for (call, n) in calls {
            let mut path: Path = zeroed();
            (path.handshake_rtt, path.saved_cwnd, path.saved_rtt, path.saved_age) = (n[1], n[2], n[3], n[4]);
            (path.receive_window, path.bytes_waiting, path.hint_rate) = (n[5], n[6], n[7]);
            (path.requested_rate, path.interface_rate, path.approved_rate) = (n[8], n[9], n[10]);
            (path.advised_rate, path.oracle_rate, path.train_rate) = (n[11], n[0], n[2]);
            path.doubt_handshake = (n[1] % 2) as u32;
            // SAFETY: made above.
            let status = unsafe {
                match call {
                    0 => flowstart_launch(flow.0, n[0], &raw const path),
                    1 => flowstart_on_path_change(flow.0, n[0], &raw const path),
                    2 => flowstart_on_packet_lost(flow.0, n[0], n[1]),
                    3 => flowstart_on_spurious_loss(flow.0, n[0]),
                    4 => flowstart_set_segment(flow.0, n[0]),
                    5 | 6 => {
                        let bytes = n[1] % 1500 + 1;
                        next += 1 + n[2] % 2;
                        flowstart_on_sent(flow.0, n[0], next, bytes, bytes.saturating_add(n[3]), (n[4] % 2) as u32)
                    }
                    _ => flow.ack(|ack| {
                        (ack.now, ack.largest_acked, ack.delivered_bytes) = (n[0], n[1] % (next + 1), n[2] % 3000);
                        (ack.delivered_packets, ack.in_flight, ack.rtt) = (n[3] % 3, n[4], n[5]);
                        (ack.ack_delay, ack.ce_packets) = (n[6], n[7] % 2);
                        (ack.app_limited, ack.persistent_congestion) = ((n[8] % 2) as u32, (n[9] % 2) as u32);
                    }),
                }
            };
            prop_assert!(status != Status::Failed, "{}", last_error());
            let (status, output) = flow.query(n[10]);
            prop_assert!(status != Status::Failed, "{}", last_error());
            prop_assert!(output.cwnd >= 2 && output.pacing_rate > 0, "{:?}", output);
            prop_assert!(output.cwnd < 1 << 60, "{:?}", output);
        }
    }
}
