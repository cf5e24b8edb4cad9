//! The library for C passes the conformance kit, exactly: its functions called here, and by the kit's runner in C. A
//! port that is wrong does not, and is told where.

#![allow(unsafe_code, reason = "calls as C makes them")]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Output as Finished};
use std::ptr;

use flowstart_capi::boundary::{
    Controller, flowstart_free, flowstart_last_error, flowstart_launch, flowstart_new, flowstart_on_ack,
    flowstart_on_packet_lost, flowstart_on_path_change, flowstart_on_sent, flowstart_on_spurious_loss, flowstart_query,
    flowstart_set_segment,
};
use flowstart_capi::layout::{Ack, Config, Output, Path, Phase, Status};
use flowstart_conformance::{AVOIDANCE, Decided, Event, INITIAL_WINDOW, Known, SEGMENT, Vectors, files, schemes};
use flowstart_core::launch::UNPACED;

/// The library, as C calls it.
struct InC {
    controller: *mut Controller,
    now: u64,
}

impl Drop for InC {
    fn drop(&mut self) {
        // SAFETY: made by flowstart_new() and freed once.
        assert_eq!(unsafe { flowstart_free(self.controller) }, Status::Ok);
    }
}

fn last_error() -> String {
    // SAFETY: a text that ends with a zero.
    unsafe { CStr::from_ptr(flowstart_last_error()) }.to_string_lossy().into_owned()
}

fn require(status: Status) {
    assert_eq!(status, Status::Ok, "{}", last_error());
}

/// What is known, as the library takes it; it shares no windows.
fn path(known: &Known) -> Path {
    Path {
        size: size_of::<Path>(),
        handshake_rtt: known.handshake_rtt,
        saved_cwnd: known.saved_cwnd,
        saved_rtt: known.saved_rtt,
        saved_age: known.saved_age,
        receive_window: known.receive_window,
        bytes_waiting: known.bytes_waiting,
        hint_rate: known.hint,
        requested_rate: known.requested,
        interface_rate: known.interface,
        approved_rate: known.approved,
        advised_rate: known.advised,
        oracle_rate: known.oracle,
        train_rate: known.train,
        hint_technology: 0,
        doubt_handshake: 0,
    }
}

impl InC {
    fn new(scheme: &str) -> Result<Self, String> {
        let (scheme, avoidance) = (CString::new(scheme).expect("a name"), CString::new(AVOIDANCE).expect("a name"));
        let config = Config {
            size: size_of::<Config>(),
            scheme: scheme.as_ptr(),
            avoidance: avoidance.as_ptr(),
            segment: SEGMENT,
            initial_window: INITIAL_WINDOW,
            ect1: 0,
            reserved: 0,
        };
        let mut controller = ptr::null_mut();
        // SAFETY: a struct of its size, whose texts outlive the call.
        let status = unsafe { flowstart_new(&raw const config, &raw mut controller) };
        if status == Status::Ok { Ok(Self { controller, now: 0 }) } else { Err(last_error()) }
    }

    fn apply(&mut self, event: &Event) {
        // SAFETY: the controller was made above, and the structs are of their sizes.
        unsafe {
            match *event {
                Event::Launch { now, known } => {
                    self.now = now;
                    require(flowstart_launch(self.controller, now, &path(&known)));
                }
                Event::Path { now, known } => {
                    self.now = now;
                    require(flowstart_on_path_change(self.controller, now, &path(&known)));
                }
                Event::Segment { bytes } => require(flowstart_set_segment(self.controller, bytes)),
                Event::Sent { now, number, packets, bytes, in_flight } => {
                    self.now = now;
                    for place in 0..packets {
                        let in_flight = in_flight - (packets - 1 - place) * bytes;
                        require(flowstart_on_sent(self.controller, now, number + place, bytes, in_flight, 0));
                    }
                }
                Event::Lost { number, packets, bytes } => {
                    for place in 0..packets {
                        require(flowstart_on_packet_lost(self.controller, number + place, bytes));
                    }
                }
                Event::Acked(acked) => {
                    self.now = acked.now;
                    let ack = Ack {
                        size: size_of::<Ack>(),
                        now: acked.now,
                        largest_acked: acked.largest,
                        delivered_bytes: acked.bytes,
                        delivered_packets: acked.packets,
                        in_flight: acked.in_flight,
                        rtt: acked.rtt,
                        ack_delay: 0,
                        ce_packets: acked.marks,
                        app_limited: u32::try_from(acked.app_limited).expect("0 or 1"),
                        persistent_congestion: u32::try_from(acked.persistent).expect("0 or 1"),
                    };
                    require(flowstart_on_ack(self.controller, &raw const ack));
                }
                // The question at its end passes the time.
                Event::Timer { now } => self.now = now,
                Event::Spurious { now } => {
                    self.now = now;
                    require(flowstart_on_spurious_loss(self.controller, now));
                }
                Event::Timeout { .. } => panic!("the library has no timeouts"),
            }
        }
    }

    fn decided(&self) -> Decided {
        let mut output = std::mem::MaybeUninit::<Output>::zeroed();
        // SAFETY: numbers, of which the first is the size; the library fills the rest.
        let output = unsafe {
            (&raw mut (*output.as_mut_ptr()).size).write(size_of::<Output>());
            require(flowstart_query(self.controller, self.now, output.as_mut_ptr()));
            output.assume_init()
        };
        // SAFETY: a text that ends with a zero.
        let reason = unsafe { CStr::from_ptr(output.exit_reason.as_ptr()) };
        Decided {
            cwnd: output.cwnd,
            ssthresh: if output.ssthresh == u64::MAX { 0 } else { output.ssthresh },
            pacing_rate: if output.pacing_rate >= UNPACED.bits_per_sec() { 0 } else { output.pacing_rate },
            in_startup: output.phase == Phase::Startup,
            exit_reason: reason.to_string_lossy().into_owned(),
        }
    }
}

/// The scheme of a file with its parameters, as users write it.
fn written(text: &str) -> String {
    let header = text.lines().next().expect("a header");
    let member = |name: &str| {
        let (_, rest) = header.split_once(&format!("\"{name}\":\"")).expect("a member");
        rest.split('"').next().expect("a text").to_owned()
    };
    let (scheme, parameters) = (member("scheme"), member("parameters"));
    if parameters.is_empty() { scheme } else { format!("{scheme}:{parameters}") }
}

#[test]
fn the_functions_of_c_decide_what_the_vectors_expect() {
    let mut refused = Vec::new();
    for (file, scheme) in schemes() {
        // With all parameters written out it is the same scheme.
        let text = written(&flowstart_conformance::text(&scheme));
        let Vectors(vectors) = Vectors::of(&scheme);
        for vector in vectors.iter().filter(|vector| vector.needs != "timeout") {
            let mut port = match InC::new(&text) {
                Ok(port) => port,
                Err(error) => {
                    assert!(error.contains("it needs"), "{text}: {error}");
                    refused.push(file.clone());
                    break;
                }
            };
            for (place, line) in vector.lines.iter().enumerate() {
                port.apply(&line.event);
                let what = (&file, &vector.name, place, line.event);
                assert_eq!(port.decided(), line.decided, "{what:?}");
            }
        }
    }
    // What no host in C gives; README.md says why.
    refused.sort_unstable();
    assert_eq!(refused, ["ensemble-sharing", "halfback"]);
}

/// Runs a program; `None` if it is not installed, which is a failure with CI=true.
fn run(command: &mut Command) -> Option<Finished> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{command:?}: {error}");
            println!("skipped: {command:?}: {error}");
            None
        }
    }
}

/// The kit in a folder, and the port with the library; `None` where they cannot be compiled.
#[cfg(target_os = "linux")]
struct Kit {
    folder: tempfile::TempDir,
    /// The files of vectors.
    vectors: Vec<PathBuf>,
    program: PathBuf,
}

#[cfg(target_os = "linux")]
impl Kit {
    fn compiled() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("vectors")).expect("to make a folder");
        let mut vectors = Vec::new();
        for file in files() {
            let path = folder.path().join(&file.path);
            std::fs::write(&path, file.text).expect("to write");
            vectors.extend((path.extension().is_some_and(|ending| ending == "jsonl")).then_some(path));
        }
        let here = FilePath::new(env!("CARGO_MANIFEST_DIR"));
        let built = std::env::current_exe().expect("a path").parent().expect("a folder").to_owned();
        let mut script = Command::new(here.join("../../scripts/install-capi"));
        let installed = run(script.arg(built).arg(folder.path().join("prefix")))?;
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        let program = folder.path().join("port");
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"]);
        cc.arg("-I").arg(folder.path()).arg("-I").arg(folder.path().join("prefix/include"));
        cc.arg(here.join("tests/conformance/port.c")).arg("-o").arg(&program);
        cc.arg(folder.path().join("prefix/lib/libflowstart.a")).args(["-lpthread", "-ldl", "-lm"]);
        let finished = run(&mut cc)?;
        assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
        Some(Self { folder, vectors, program })
    }

    /// Runs the port, wrong in this way, with these files: the exit code, and what it says.
    fn run(&self, wrong: &str, files: &[PathBuf]) -> (Option<i32>, String) {
        let mut command = Command::new(&self.program);
        let finished = run(command.args(files).env("WRONG", wrong)).expect("a program");
        (finished.status.code(), String::from_utf8_lossy(&finished.stdout).into_owned())
    }

    fn slow_start(&self) -> PathBuf {
        self.folder.path().join("vectors/slow-start.jsonl")
    }

    /// The exit code of the right port with such a file, and what it says.
    fn run_text(&self, text: &str) -> (Option<i32>, String) {
        let file = self.folder.path().join("other.jsonl");
        std::fs::write(&file, text).expect("to write");
        self.run("", &[file])
    }
}

/// What launches slow start's window by the host's rate.
#[cfg(target_os = "linux")]
const LAUNCH_AS_SLOW_START: [&str; 11] = [
    "hybla",
    "hystart",
    "hystart-plus-plus",
    "hystart.linux",
    "hystart.ns3",
    "limited-slow-start",
    "search",
    "search.freebsd",
    "search.linux",
    "search.slides",
    "slow-start",
];

/// Ports that are wrong, the files that they pass, because the scheme does not have what the port lacks, and whether
/// they pass those of [`LAUNCH_AS_SLOW_START`] as well.
#[cfg(target_os = "linux")]
const WRONG: [(&str, &[&str], bool); 15] = [
    ("is-slow-start", &["slow-start"], false),
    ("never-exits", &[], false),
    // Nothing else ends these.
    ("sees-only-congestion", &["hybla", "initial-start", "limited-slow-start", "slow-start"], false),
    ("ignores-pacing", &[], false),
    ("paces-as-hosts-do", &["blitzstart", "initial-start"], true),
    ("senses-nothing", &["initial-start", "rapid-start", "suss", "swift-start"], true),
    ("ignores-advice", &[], true),
    ("measures-nothing", &[], false),
    ("forgets-losses", &[], false),
    ("ignores-marks", &[], false),
    ("grows-unused", &[], false),
    ("never-undoes", &[], false),
    ("keeps-its-packets", &[], false),
    ("stays-on-its-path", &[], false),
    ("rounds-but-promises", &[], false),
];

#[test]
#[cfg(target_os = "linux")]
fn the_runner_in_c_passes_the_library_and_refuses_what_is_wrong() {
    let Some(kit) = Kit::compiled() else { return };
    let (code, told) = kit.run("", &kit.vectors);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("slow-start.jsonl: ") && told.contains("events pass, 4 left out"), "{told}");
    assert!(told.contains("halfback.jsonl: left out, the port has no halfback"), "{told}");

    // Whole kilobytes and a rate that is 1 % lower are near enough, unless a port promises exact numbers.
    let (code, told) = kit.run("rounds", &kit.vectors);
    assert_eq!(code, Some(0), "{told}");

    for (wrong, passes, as_slow_start) in WRONG {
        let (code, told) = kit.run(wrong, &kit.vectors);
        assert_eq!(code, Some(1), "{wrong}: {told}");
        let passed = told.lines().filter(|line| line.contains(" events pass, "));
        let names = passed.filter_map(|line| line.split(".jsonl").next().and_then(|path| path.rsplit('/').next()));
        let others = LAUNCH_AS_SLOW_START.iter().filter(|_| as_slow_start);
        let expected: BTreeSet<&str> = passes.iter().chain(others).copied().collect();
        assert_eq!(names.collect::<BTreeSet<_>>(), expected, "{wrong}");
    }

    // The runner says where, and what is expected.
    let (_, told) = kit.run("forgets-losses", &[kit.slow_start()]);
    let expected = "vector 3 (loss in the launch, nothing known), event acked: cwnd_bytes: expected ";
    assert!(told.contains(expected) && told.contains(", got ") && told.contains("slow-start.jsonl:"), "{told}");

    // A port that makes controllers no more has failed; one that never made any has shown nothing.
    let (code, told) = kit.run("gives-up", &[kit.slow_start()]);
    assert!(code == Some(1) && told.contains("vector 5 ") && told.contains("create() has failed"), "{told}");
    let (code, told) = kit.run("has-nothing", &kit.vectors);
    assert!(code == Some(2) && !told.contains(" pass, "), "{told}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_runner_in_c_refuses_files_that_are_not_whole() {
    let Some(kit) = Kit::compiled() else { return };
    let text = std::fs::read_to_string(kit.slow_start()).expect("to read");
    let whole = text.trim_end();
    let last_line = whole.rfind('\n').expect("lines") + 1;
    let third = text.find("{\"vector\":3").expect("a third");
    let second_event = text.match_indices("\"event\":\"sent\"").nth(1).expect("a second").0;
    let (before, after) = text.split_at(text[..second_event].rfind('\n').expect("lines") + 1);
    let without_one = format!("{before}{}", after.split_once('\n').expect("lines").1);
    let format = format!("\"format\":{}", flowstart_conformance::FORMAT);
    for (content, expected) in [
        ("{}\n", "other.jsonl:1: format: allowed is 2"),
        (&text.replacen(&format, "\"format\":1", 1), "other.jsonl:1: format: allowed is 2"),
        (&text[..text.len() / 2], "other.jsonl:"),
        (&text[..third], "has 2 vectors with "),
        // Cut at the end of a line within the last vector, and without a line in the midst.
        (&text[..last_line], " events; the first line says "),
        (&without_one, " events; the first line says "),
        ("", "no vector was run"),
        (
            &text.replacen("{\"vector\":2,\"event\":\"begin\"", "{\"vector\":3,\"event\":\"begin\"", 1),
            ": vector: allowed is",
        ),
        (&text.replacen("\"packets\":10,", "\"packets\":10000000000000,", 1), "packets: allowed is up to 100000"),
    ] {
        let (code, told) = kit.run_text(content);
        assert!(code == Some(2) && told.contains(expected), "{expected}: {told}");
    }
}
