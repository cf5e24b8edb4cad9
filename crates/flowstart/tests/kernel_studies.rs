//! Short forms of the studies with the kernel's TCP and with routers, whose long ones are in `record/`.
//!
//! What they need and a machine lacks is said: root, `ip`, TUN devices, the programs that transfer, and for schemes in
//! the kernel BTF and a build with the feature `tcp`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assert_cmd::cargo::cargo_bin;

/// Studies load schemes and need the machine for themselves, so one at a time. `None`: a program is missing.
fn alone(programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if namespaces::are_missing() {
        return None;
    }
    let found = |program: &&&str| Command::new("which").arg(program).output().is_ok_and(|told| told.status.success());
    if let Some(missing) = programs.iter().find(|program| !found(program)) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which needs {missing}");
        println!("skipped: {missing} is not installed");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// As [`alone`], for schemes in the kernel.
fn alone_with_kernel(programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let missing = if !cfg!(feature = "tcp") {
        "this build has no feature `tcp`"
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        "this kernel has no BTF"
    } else {
        return alone(programs);
    };
    println!("skipped: {missing}");
    None
}

/// The lines of a study whose times count, in words.
fn study(arguments: &[&str]) -> Vec<Vec<String>> {
    lines_of(namespaces::before_others(&root().join(arguments[0])), arguments)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lines_of(mut command: Command, arguments: &[&str]) -> Vec<Vec<String>> {
    command.args(&arguments[1..]).current_dir(root()).env("FLOWSTART", cargo_bin("flowstart"));
    let told = command.output().unwrap();
    let (lines, errors) = [told.stdout, told.stderr].map(|text| String::from_utf8(text).unwrap()).into();
    assert!(told.status.success(), "{arguments:?}: {lines}{errors}");
    lines.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

#[test]
fn search_and_hystart_plus_plus_take_as_long_as_the_kernels_cubic_on_a_satellite_link() {
    let Some(_alone) = alone_with_kernel(&["python3", "nginx", "curl"]) else { return };
    let schemes = ["cubic", "search", "hystart-plus-plus"];
    let mut arguments = vec!["scripts/loaded", "search", "hystart-plus-plus", "--"];
    arguments.extend(["scripts/kernel-search", "--reps", "1", "usual/curl/50MB/*"]);
    let lines = study(&arguments);
    let names: Vec<_> = lines.iter().map(|line| line[0].as_str()).collect();
    assert_eq!(names, schemes.map(|scheme| format!("usual/curl/50MB/{scheme}")));
    for line in &lines {
        // "seconds 9.61 again 2145 early 1 late 0 complete 1 of 1"
        assert_eq!(line[9..], ["complete", "1", "of", "1"].map(str::to_owned)[..], "{line:?}");
        assert_eq!(number(&line[6]) + number(&line[8]), 1.0, "startup ends, and once: {line:?}");
        let ratio = number(&line[2]) / number(&lines[0][2]);
        assert!((0.8..1.2).contains(&ratio), "{line:?} beside {:?}", lines[0]);
    }
}

#[test]
fn tshark_follows_a_quick_start_request_from_hop_to_hop() {
    let Some(_alone) = alone(&["python3", "tshark"]) else { return };
    // Each wire: TTL, the option's TTL, their difference and the rate (RFC 4782, section 3.1).
    let hops = |more: &[&str]| -> Vec<[u8; 4]> {
        let lines = study(&[&["scripts/quick-start-hops"], more].concat());
        let wires: Vec<_> = lines[1..].iter().map(|line| line[0].as_str()).collect();
        assert_eq!(wires, ["s0", "m0", "c0"]);
        lines[1..].iter().map(|line| [1, 2, 3, 4].map(|place| line[place].parse().unwrap())).collect()
    };
    let routers = hops(&[]);
    let taken = |hops: &[[u8; 4]]| -> Vec<[u8; 2]> {
        hops.iter().map(|hop| [hops[0][0] - hop[0], hops[0][1].wrapping_sub(hop[1])]).collect()
    };
    assert_eq!(taken(&routers), [[0, 0], [1, 1], [2, 2]]);
    assert!(routers.iter().all(|hop| hop[2] == routers[0][2]), "{routers:?}");
    // 15 is what was asked for; 10 is 40 kbit/s * 2^10 = 41 Mbit/s, within 50 Mbit/s; 8 is 10 Mbit/s, within 20.
    assert_eq!(routers.iter().map(|hop| hop[3]).collect::<Vec<_>>(), [15, 10, 8]);
    // A router that does not take part lowers only the packet's TTL.
    let with_another = hops(&["middle"]);
    assert_eq!(taken(&with_another), [[0, 0], [1, 1], [3, 2]]);
    assert_ne!(with_another[2][2], with_another[0][2]);
}

#[test]
fn the_programs_of_a_scheme_are_a_small_part_of_the_cpu_time() {
    let Some(_alone) = alone_with_kernel(&["python3", "iperf3", "bpftool"]) else { return };
    for scheme in ["search", "quick-start"] {
        // With real-time priority both ends of iperf3 would keep each other from their core.
        let arguments = ["scripts/tcp-cost", "--pairs", "0", scheme];
        let lines = lines_of(Command::new(root().join(arguments[0])), &arguments);
        assert_eq!((lines.len(), lines[0][0].as_str()), (1, scheme));
        let percent = number(&lines[0][1]);
        assert!(0.0 < percent && percent < 10.0, "{lines:?}");
    }
}

#[test]
fn after_a_lesson_the_kernels_tcp_starts_as_with_a_true_hint() {
    let Some(_alone) = alone_with_kernel(&["python3", "nginx", "curl"]) else { return };
    let lines = study(&["scripts/kernel-learn", "--link", "dsl-fast", "--reps", "1"]);
    assert_eq!(lines.len(), 9, "{lines:?}");
    for line in &lines {
        let [cubic, before, after, hinted] = [1, 2, 3, 4].map(|place| number(&line[place]));
        // What was not learnt changes nothing, and what was learnt is what a hint would say.
        assert!((before / cubic - 1.0).abs() < 0.25, "{line:?}");
        assert!((after / hinted - 1.0).abs() < 0.25, "{line:?}");
        let gains = !line[0].contains("careful-resume");
        assert!(!gains || after < 0.9 * cubic, "{line:?}");
    }
}
