//! `--world sockets`: transfers of real QUIC over a link in real time.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod namespaces;

use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

/// Compares schemes on a link of 10 Mbit/s and 100 ms, where a disturbed host matters less than on a faster one.
fn compare(more: &[&str]) -> Command {
    let mut command = namespaces::program_before_others();
    command.args(["compare", "--link", "rate=10mbit,rtt=100ms,buffer=1bdp", "--size", "70KB", "--transport", "quic"]);
    command.args(["--avoidance", "cubic", "--json"]).args(more);
    command
}

fn output(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stderr)
}

#[test]
fn transfers_between_sockets_take_as_long_as_simulated_ones() {
    if namespaces::are_missing() {
        return;
    }
    let schemes = ["--scheme", "slow-start", "blitzstart", "careful-resume"];
    let (told, stderr) = output(compare(&[&["--world", "simulator", "sockets", "--reps", "5"][..], &schemes].concat()));
    assert!(told.status.success(), "{stderr}");
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    let cells = summary["cells"].as_array().unwrap();
    let (simulated, between_sockets) = cells.split_at(schemes.len() - 1);
    for (simulated, real) in simulated.iter().zip(between_sockets) {
        assert_eq!((&simulated["scheme"], &real["world"]), (&real["scheme"], &"sockets".into()));
        let [expected, found] = [simulated, real].map(|cell| cell["metrics"]["fct_ms"]["median"].as_f64().unwrap());
        assert!((found / expected - 1.0).abs() < 0.1, "{}: {found} ms, {expected} ms expected", real["id"]);
    }
    // The answer is of one world, and whether the other agrees is said.
    assert!(summary["answer"].as_str().unwrap().starts_with("In the simulator: "), "{}", summary["answer"]);
    let notes = summary["answer_notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("world"), "{notes:?}");
    // The stack does not say which packets it lost that arrived; the rest of the counts it does.
    for metric in ["spurious_packets", "overshoot_bytes"] {
        let mean = |cell: &Value| cell["metrics"][metric]["mean"].clone();
        assert!(mean(&simulated[0]).is_number(), "{metric}");
        assert_eq!(mean(&between_sockets[0]).is_null(), metric == "spurious_packets", "{metric}");
    }
    // The client's hint reaches the server.
    let fct = |cell: &Value| cell["metrics"]["fct_ms"]["median"].as_f64().unwrap();
    let [slow_start, blitzstart] = [0, 1].map(|place| fct(&between_sockets[place]));
    assert!(blitzstart < 0.8 * slow_start, "{blitzstart} ms, {slow_start} ms without a launch");
}

#[test]
fn a_scenario_runs_in_both_worlds() {
    if namespaces::are_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let text = "link = ['rate=10mbit,rtt=100ms,buffer=1bdp']\nsize = ['70KB']\nscheme = ['slow-start']\n\
                transport = 'quic'\navoidance = 'cubic'\nreps = 1\n";
    std::fs::write(&file, text).unwrap();
    let run = |worlds: &[&str]| {
        let mut run = namespaces::program_before_others();
        run.arg("run").arg(&file).args(["--json", "--world"]).args(worlds);
        output(run)
    };
    let (told, stderr) = run(&["simulator", "sockets"]);
    assert!(told.status.success(), "{stderr}");
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    let late = |cell: usize| summary["cells"][cell]["metrics"]["p99_late_ms"]["mean"].as_f64();
    assert_eq!((late(0), late(1).is_some_and(|late| late > 0.0)), (None, true), "{summary}");
    let (refused, stderr) = run(&["moon"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr.contains("--world `moon`"), "{stderr}");
}

#[test]
fn results_between_sockets_are_resumed_and_shown_and_not_simulated_again() {
    if namespaces::are_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let place = out.to_str().unwrap();
    let (told, stderr) =
        output(compare(&["--world", "sockets", "--scheme", "slow-start", "--reps", "1", "--out", place]));
    assert!(told.status.success(), "{stderr}");
    // Another kernel answers another question.
    let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let kernel = format!("\"kernel\": \"{}\"", release.trim());
    assert!(manifest.contains(&kernel), "{manifest}");
    let resume =
        || compare(&["--world", "sockets", "--scheme", "slow-start", "--reps", "1", "--out", place, "--resume"]);
    std::fs::write(out.join("manifest.json"), manifest.replace(&kernel, "\"kernel\": \"0.0.1\"")).unwrap();
    let (refused, stderr) = output(resume());
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(&format!("its kernel was 0.0.1, now it is {}", release.trim())), "{stderr}");
    std::fs::write(out.join("manifest.json"), manifest).unwrap();
    let (resumed, stderr) = output(resume());
    assert!(resumed.status.success() && stderr.contains("1 of 1 runs are taken over"), "{stderr}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("flowstart trace --cell"), "a replay would be another run");
    let mut trace = Command::new(cargo_bin("flowstart"));
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    let cell = summary["cells"][0]["id"].as_str().unwrap().to_owned();
    trace.args(["trace", "--from", place, "--cell", &cell]);
    let (told, stderr) = output(trace);
    assert_eq!(told.status.code(), Some(2));
    assert!(stderr.contains("between sockets"), "{stderr}");
}

#[test]
fn others_are_established_flows_of_the_kernels_tcp_and_the_harm_to_them_is_told() {
    if namespaces::are_missing() {
        return;
    }
    for more in [["--transport", "quic", "slow-start"], ["--transport", "model-tcp:receive_window=auto", "stack"]] {
        let mut command = Command::new(cargo_bin("flowstart"));
        command.args(["compare", "--link", "rate=10mbit,rtt=20ms,buffer=1bdp", "--size", "1MB", "--json"]);
        command.args(["--competitor", "bulk:reno,count=2", "--world", "sockets", "--reps", "1"]);
        command.args(&more[..2]).args(["--scheme", more[2]]);
        let (told, stderr) = output(command);
        assert!(told.status.success(), "{stderr}");
        let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
        let cell = &summary["cells"][0];
        let mean = |metric: &Value| metric["mean"].as_f64().unwrap_or_else(|| panic!("{metric} in {cell}"));
        // Alone it would take 0.9 s, and others never leave it more than half for long.
        assert!(mean(&cell["metrics"]["fct_ms"]) > 1000.0, "{cell}");
        let share = mean(&cell["metrics"]["share"]);
        assert!((0.1..0.95).contains(&share), "{share}");
        // Their queue was there before.
        assert!(mean(&cell["metrics"]["max_queue_delay_ms"]) > 10.0, "{cell}");
        assert!(mean(&cell["metrics"]["utilization"]) > 0.7, "{cell}");
        let late = ["p99_late_ms", "max_late_ms"].map(|name| mean(&cell["metrics"][name]));
        assert!(0.0 < late[0] && late[0] <= late[1], "{late:?}");
        // They get less by about what the transfer takes: 8 Mbit and its headers, of some 70 Mbit in all.
        let lost = mean(&cell["others"]["goodput_lost_mbit"]);
        assert!((2.0..20.0).contains(&lost), "{lost} Mbit");
        assert!(cell["others"]["dropped_packets"]["mean"].is_number(), "{cell}");
        assert!(cell["others"]["extra_delay_ms"]["mean"].is_number(), "{cell}");
    }
}

#[test]
fn a_rate_that_this_host_cannot_carry_is_no_secret() {
    if namespaces::are_missing() {
        return;
    }
    let mut command = Command::new(cargo_bin("flowstart"));
    command.args(["compare", "--link", "rate=100gbit,rtt=10ms,buffer=1bdp", "--size", "50MB", "--json"]);
    command.args(["--transport", "model-tcp:receive_window=auto", "--scheme", "stack"]);
    command.args(["--world", "sockets", "--reps", "1"]);
    let (told, stderr) = output(command);
    assert!(told.status.success(), "{stderr}");
    assert!(stderr.contains("warning: in 1 of 1 runs more than one of 100 packets left more than 0.5 ms"), "{stderr}");
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    let late = summary["cells"][0]["metrics"]["p99_late_ms"]["mean"].as_f64();
    assert!(late.is_some_and(|late| late > 0.5), "{late:?}");
}

#[test]
fn a_signal_during_a_transfer_leaves_no_folder() {
    if namespaces::are_missing() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut command = compare(&["--world", "sockets", "--scheme", "slow-start", "--reps", "1", "--size", "100MB"]);
    let mut child = command.env("TMPDIR", temporary.path()).spawn().unwrap();
    let is_empty = || temporary.path().read_dir().unwrap().next().is_none();
    let began = Instant::now();
    while is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "no transfer begins");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert!(!child.wait().unwrap().success());
    assert!(is_empty(), "{:?}", temporary.path().read_dir().unwrap().collect::<Vec<_>>());
}

#[test]
fn what_sockets_cannot_do_is_refused_before_anything_runs() {
    for (more, expected) in [
        (["--scheme", "slow-start", "--competitor", "cbr:rate=5mbit"], "allowed is none, or established flows of the"),
        (["--scheme", "slow-start", "--competitor", "bulk:cubic,iw=4"], "whose only key is a count of 1 to 32"),
        (["--scheme", "slow-start", "--competitor", "prague"], "no prague; with world sockets allowed is none, or "),
        (["--scheme", "stack", "--transport", "model-quic"], "allowed is quic, the real stack"),
        (["--scheme", "slow-start", "--transport", "model-tcp"], "there is no slow-start for TCP of Linux"),
        (["--scheme", "slow-start:connections=6", "--reps", "1"], "allowed is one connection"),
    ] {
        let mut command = Command::new(cargo_bin("flowstart"));
        command.args(["compare", "--link", "lte", "--size", "70KB", "--world", "sockets"]);
        if more[2] != "--transport" {
            command.args(["--transport", "quic"]);
        }
        let (told, stderr) = output({
            command.args(more);
            command
        });
        assert_eq!(told.status.code(), Some(2), "{more:?}: {stderr}");
        assert!(stderr.contains(expected), "{more:?}: {stderr}");
    }
}

#[test]
fn a_testbed_without_privileges_says_which_it_takes() {
    if namespaces::are_missing() {
        return;
    }
    let program = cargo_bin("flowstart");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin", "--"]).arg(program);
    command.args(["compare", "--link", "lte", "--size", "70KB", "--transport", "quic", "--world", "sockets"]);
    command.args(["--scheme", "slow-start", "--reps", "1"]);
    let (told, stderr) = output(command);
    assert_eq!(told.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("CAP_SYS_ADMIN"), "{stderr}");
}

#[test]
fn the_kernels_tcp_is_held_to_a_receive_window() {
    if namespaces::are_missing() {
        return;
    }
    let mut command = Command::new(cargo_bin("flowstart"));
    command.args(["compare", "--link", "rate=50mbit,rtt=100ms,buffer=1bdp", "--size", "1MB", "--json", "--reps", "3"]);
    command.args(["--transport", "model-tcp:receive_window=64KB", "--world", "simulator", "sockets"]);
    let (told, stderr) = output({
        command.args(["--scheme", "stack"]);
        command
    });
    assert!(told.status.success(), "{stderr}");
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    // 16 windows, one in each RTT, and the handshake.
    let fct = |place: usize| summary["cells"][place]["metrics"]["fct_ms"]["median"].as_f64().unwrap();
    assert!((fct(1) / fct(0) - 1.0).abs() < 0.15, "{} ms, {} ms expected", fct(1), fct(0));
    // What is in flight stays far below the BDP, and nothing is lost.
    let real = &summary["cells"][1];
    assert!(real["metrics"]["overshoot_bytes"]["mean"] == 0.0 && real["metrics"]["exit_ms"]["mean"].is_null());
    assert_eq!(real["exit_reasons"], serde_json::json!({ "transfer-ended": 3 }));
    assert!(real["metrics"]["share"]["mean"].as_f64().unwrap() > 0.99);
}

#[test]
fn of_the_kernels_tcp_it_is_known_how_startup_ended() {
    if namespaces::are_missing() {
        return;
    }
    // Path and buffer hold less than the 16 packets from which on HyStart looks; over the long path it sees a train, or
    // a delay if a busy host tears the train apart.
    for (link, size, reasons, latest, most) in [
        ("rate=2mbit,rtt=40ms,buffer=4pkt", "300KB", &["loss"][..], 1.15, 20_000.0),
        ("rate=50mbit,rtt=200ms,buffer=4bdp", "8MB", &["ack-train", "delay"], 1.5, 3_000_000.0),
    ] {
        let mut command = Command::new(cargo_bin("flowstart"));
        command.args(["compare", "--link", link, "--size", size, "--json", "--reps", "3", "--scheme", "stack"]);
        command.args(["--transport", "model-tcp:receive_window=open", "--world", "simulator", "sockets"]);
        let (told, stderr) = output(command);
        assert!(told.status.success(), "{stderr}");
        let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
        let real = &summary["cells"][1];
        let counted = reasons.iter().filter_map(|reason| real["exit_reasons"][reason].as_u64()).sum::<u64>();
        assert_eq!(counted, 3, "{link}: {}", real["exit_reasons"]);
        let exits = |place: usize| summary["cells"][place]["metrics"]["exit_ms"]["median"].as_f64().unwrap();
        let ratio = exits(1) / exits(0);
        assert!((0.85..latest).contains(&ratio), "{link}: {} ms, {} expected", exits(1), exits(0));
        let overshoot = real["metrics"]["overshoot_bytes"]["mean"].as_f64().unwrap();
        assert!((1.0..most).contains(&overshoot), "{link}: {overshoot} bytes");
    }
}

#[test]
fn programs_of_the_user_run_on_both_sides_and_their_failures_are_told() {
    if namespaces::are_missing() {
        return;
    }
    let testbed = |server: &str, client: &str, more: &[&str]| {
        let mut command = Command::new(cargo_bin("flowstart"));
        command.args(["testbed", "--link", "rate=10mbit,rtt=40ms,buffer=1bdp", "--json"]);
        command.args(["--server", server, "--client", client]).args(more);
        output(command)
    };
    let program = cargo_bin("flowstart").display().to_string();
    let serve = format!("{program} serve --self-signed --listen {{server}}:{{port}}");
    let get = format!("{program} get --insecure --json https://{{server}}:{{port}}/generate/10KB");
    let (told, stderr) = testbed(&serve, &get, &["--reps", "2", "--ready-after", "1s"]);
    assert!(told.status.success(), "{stderr}");
    let lines: Vec<Value> =
        String::from_utf8(told.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let got: Value = serde_json::from_str(line["output"].as_str().unwrap()).unwrap();
        assert!(got["fct_ms"].as_f64().unwrap() > 80.0, "{line}");
        assert!(line["link"]["down"]["departed_bytes"].as_u64().unwrap() > 10_000, "{line}");
    }
    for (server, client, more) in
        [("exit 3", "sleep 0.5", &[][..]), ("sleep 9", "exit 4", &[]), ("sleep 9", "sleep 9", &["--limit", "300ms"])]
    {
        let (told, _) = testbed(server, client, more);
        assert_eq!(told.status.code(), Some(1), "{server} {client}");
    }
}
