//! `flowstart analyze`, as people and programs meet it.

use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;

fn analyze() -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the binary");
    command.arg("analyze");
    command
}

/// A connection that answered 70 KB.
fn log(folder: &Path, name: &str, scheme: &str, millis: f64) {
    let text = format!(
        "\u{1e}{{\"trace\":{{}}}}\n\
         \u{1e}{{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{{\"scheme\":\"{scheme}\"}}}}\n\
         \u{1e}{{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{{}}}}\n\
         \u{1e}{{\"time\":2,\"name\":\"flowstart:answered\",\"data\":{{\"payload\":70000,\"fct_ms\":{millis}}}}}\n"
    );
    std::fs::write(folder.join(format!("{name}.sqlog")), text).expect("to write");
}

#[test]
fn schemes_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in 0..30 {
        log(folder.path(), &format!("s{place}"), "slow-start", 200.0 + f64::from(place));
        log(folder.path(), &format!("b{place}"), "blitzstart", 100.0 + f64::from(place));
    }
    std::fs::write(folder.path().join("notes.txt"), "no log").expect("to write");
    analyze().arg(folder.path()).args(["--baseline", "slow-start"]).assert().success().stdout(contains("▲ faster"));
    let output = analyze().arg(folder.path()).args(["--baseline", "slow-start", "--json"]).output().expect("to run");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["connections"], &value["unusable_files"]), (&60.into(), &0.into()));
    let speedup = value["groups"][1]["vs_baseline"]["speedup"].as_f64().expect("a number");
    // 214.5 / 114.5
    assert!((speedup - 1.8734).abs() < 0.001, "{speedup}");
}

#[test]
fn what_cannot_be_used_is_said_and_the_rest_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    log(folder.path(), "a", "slow-start", 10.0);
    std::fs::write(folder.path().join("b.sqlog"), "nonsense\n").expect("to write");
    std::fs::write(folder.path().join("c.sqlog"), "").expect("to write");
    let assert = analyze().arg(folder.path()).assert().code(1).stdout(contains("1 connections"));
    assert.stderr(contains("b.sqlog:1: ")).stderr(contains("c.sqlog: no flowstart:connection event"));
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    analyze().arg(folder.path()).assert().code(2).stderr(contains("holds no .sqlog or .prom file"));
    analyze().arg(folder.path().join("missing")).assert().code(2).stderr(contains("cannot be read"));
    log(folder.path(), "a", "slow-start", 10.0);
    let unknown = analyze().arg(folder.path()).args(["--baseline", "bltz"]).assert();
    unknown.code(2).stderr(contains("no connection drew it; there are slow-start"));
    analyze().assert().code(2);
}

#[test]
fn a_connection_counts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    log(folder.path(), "a", "slow-start", 10.0);
    let text = std::fs::read_to_string(folder.path().join("a.sqlog")).expect("to read");
    let text = text.replace("{\"trace\":{}}", "{\"trace\":{\"common_fields\":{\"group_id\":\"c0ffee\"}}}");
    std::fs::write(folder.path().join("b.sqlog"), &text).expect("to write");
    analyze().args([folder.path(); 1]).assert().success().stdout(contains("2 connections")).stderr("");
    std::fs::write(folder.path().join("c.sqlog"), &text).expect("to write");
    let assert = analyze().args([folder.path(); 2]).assert().success().stdout(contains("2 connections"));
    assert.stderr(contains("4 files repeat connections of other files; each connection counts once"));
}

#[cfg(unix)]
#[test]
fn pipes_are_not_read_and_control_characters_not_obeyed() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("b.sqlog");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    log(folder.path(), "a", "\\u001b[31mred", 10.0);
    analyze().arg(folder.path()).assert().success().stdout(contains("\\u{1b}[31mred")).stdout(contains("\u{1b}").not());
    analyze().arg(&pipe).assert().code(2).stderr(contains("b.sqlog: is not a regular file"));
    std::fs::write(folder.path().join("c.qlog"), "{}").expect("to write");
    std::os::unix::fs::symlink("/dev/null", folder.path().join("d.sqlog")).expect("a link");
    let assert = analyze().arg(folder.path()).assert().success().stdout(contains("1 connections"));
    let skipped = |name: &str| contains(format!("{name} is skipped: is not a regular file"));
    let other = contains("c.qlog is skipped: allowed in a folder is .sqlog or .prom");
    assert.stderr(skipped("b.sqlog").and(skipped("d.sqlog")).and(other));
}

/// Metrics of a server that answered 40 connections of each scheme.
fn metrics(folder: &Path, name: &str, instance: &str) {
    let mut text = format!(
        "# HELP flowstart_server Which run of the server this is.\nflowstart_server_info{{instance=\"{instance}\"}} 1\n\
         flowstart_connections_answered_total 80\nflowstart_connections_unanswered_total 0\n"
    );
    // Half of 40 connections take a tenth less than the mean, half a tenth more: 1.01 times the mean squared.
    for (scheme, mean) in [("slow-start", 0.2_f64), ("blitzstart", 0.1)] {
        let labels = format!("scheme=\"{scheme}\",size=\"10 to 100 KB\"");
        let fct = "flowstart_connection_fct_seconds";
        text += &format!("{fct}_bucket{{{labels},le=\"{mean}\"}} 20\n{fct}_bucket{{{labels},le=\"+Inf\"}} 40\n");
        text += &format!("{fct}_sum{{{labels}}} {}\n{fct}_count{{{labels}}} 40\n", mean * 40.0);
        text += &format!("flowstart_connection_fct_squared_total{{{labels}}} {}\n", mean * mean * 40.0 * 1.01);
    }
    std::fs::write(folder.join(name), text + "# EOF\n").expect("to write");
}

#[test]
fn metrics_are_compared_as_logs_are() {
    let folder = tempfile::tempdir().expect("a folder");
    metrics(folder.path(), "a.prom", "1");
    let output = analyze().arg(folder.path()).args(["--baseline", "slow-start", "--json"]).output().expect("to run");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&value["connections"], &value["unusable_files"], &value["schema"]), (&80.into(), &0.into(), &1.into()));
    let versus = &value["groups"][1]["vs_baseline"];
    assert!((versus["speedup"].as_f64().expect("a number") - 2.0).abs() < 1e-9 && versus["significant"] == true);
    // The relative error of each mean is 0.1 * sqrt(40 / 39) / sqrt(40) = 0.016013; t of 78 degrees is 1.9908.
    let low = versus["speedup_ci95"][0].as_f64().expect("a number");
    assert!((low - 2.0 * (-1.9908 * 0.016_013 * 2.0_f64.sqrt()).exp()).abs() < 1e-3, "{low}");
    analyze().arg(folder.path().join("a.prom")).assert().success().stdout(contains("0.0–200.0"));
}

#[test]
fn metrics_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.txt");
    std::fs::write(&file, "# HELP x\nflowstart_connections_answered_total many\n").expect("to write");
    let message = "m.txt:2: flowstart_connections_answered_total: `many` is no number";
    analyze().arg(&file).assert().code(2).stderr(contains(message));
    std::fs::write(&file, "# HELP x\nup 1\n# EOF\n").expect("to write");
    analyze().arg(&file).assert().code(2).stderr(contains("m.txt: no flowstart_server_info"));
    std::fs::write(&file, "# HELP x\nup 1\n").expect("to write");
    analyze().arg(&file).assert().code(2).stderr(contains("m.txt:2: the last line is not `# EOF`"));
    metrics(folder.path(), "a.prom", "1");
    log(folder.path(), "a", "slow-start", 10.0);
    analyze().arg(folder.path()).assert().code(2).stderr(contains("give files of one kind"));
}

#[test]
fn a_look_before_the_end_has_wider_intervals_and_says_whether_to_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in 0..60 {
        log(folder.path(), &format!("s{place}"), "slow-start", 200.0 + f64::from(place));
        log(folder.path(), &format!("b{place}"), "blitzstart", 193.0 + f64::from(place));
    }
    let told = |planned: &[&str]| {
        let options = [&["--baseline", "slow-start", "--json"], planned].concat();
        let output = analyze().arg(folder.path()).args(options).output().expect("to run");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["groups"][1]["vs_baseline"].clone()
    };
    let (once, always) = (told(&[]), told(&["--planned", "240"]));
    assert!(once["significant"] == true && once["speedup_at_every_look"].is_null(), "{once}");
    assert!(always["significant"] == false && always["speedup_ci95"] == once["speedup_ci95"], "{always}");
    let low = |interval: &serde_json::Value| interval[0].as_f64().expect("a number");
    assert!(low(&always["speedup_at_every_look"]) < low(&once["speedup_ci95"]), "{always}");
    let planned =
        analyze().arg(folder.path()).args(["--baseline", "slow-start", "--planned", "240"]).assert().success();
    planned.stdout(contains("The trial goes on").and(contains("at every look")));
    let ended = analyze().arg(folder.path()).args(["--baseline", "slow-start", "--planned", "100"]).assert().success();
    ended.stdout(contains("ends undecided"));
    metrics(folder.path(), "a.prom", "1");
    let of_metrics = folder.path().join("a.prom");
    analyze().arg(of_metrics).args(["--planned", "240"]).assert().code(2).stderr(contains("give qlog files"));
}

fn trial(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").expect("the binary");
    command.args(["trial", "plan"]).args(arguments);
    command
}

#[test]
fn a_trial_is_planned_from_logs_or_from_a_scatter() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in 0..200 {
        log(folder.path(), &format!("s{place}"), "slow-start", 100.0 + f64::from(place));
    }
    let logs = folder.path().to_str().expect("a path");
    let plan = |arguments: &[&str]| -> serde_json::Value {
        let output = trial(&[arguments, &["--json"]].concat()).assert().success();
        serde_json::from_slice(&output.get_output().stdout).expect("JSON")
    };
    let of_logs = plan(&[logs, "--effect", "10%"]);
    assert_eq!((&of_logs["baseline"], &of_logs["sizes"][0]["size"]), (&"slow-start".into(), &"70KB".into()));
    // Uniform from 100 to 299: a variance of 3350 over 199.5^2 = 0.0842; 7.849 / 0.009084 * 0.0842 * 4 = 291.
    let needed = of_logs["sizes"][0]["needed"][0]["at_one_look"].as_f64().expect("a number");
    assert!((needed - 291.0).abs() < 3.0, "{of_logs:#}");
    // Nothing was lost, so nothing is known of how losses scatter.
    assert_eq!((&of_logs["logged"], &of_logs["guardrails"]), (&200.into(), &serde_json::json!([])));
    let of_scatter = plan(&["--scatter", "0.5", "--effect", "0.1"]);
    assert_eq!(of_scatter["sizes"][0]["needed"].as_array().expect("figures").len(), 3);
    trial(&[logs, "--effect", "10%"]).assert().success().stdout(contains("--planned"));
    for (arguments, expected) in [
        (&["--effect", "5%"][..], "required"),
        (&["--scatter", "0.5"], "--effect"),
        (&["--scatter", "0", "--effect", "5%"], "0.01 to 5"),
        (&["--scatter", "NaN", "--effect", "5%"], "0.01 to 5"),
        (&["--scatter", "0.5", "--effect", "0%"], "1.5% to 1000%"),
        (&["--scatter", "0.5", "--effect", "-5%"], "1.5% to 1000%"),
        (&["--scatter", "0.5", "--effect", "5%", "--power", "0.1"], "0.5 to 0.99"),
        (&["--scatter", "0.5", "--effect", "5%", "--share", "1"], "0.01 to 0.99"),
        (&["--scatter", "0.5", "--effect", "5%", "--baseline", "slow-start"], "--baseline"),
        (&[logs, "--scatter", "0.5", "--effect", "5%"], "cannot be used with"),
        (&[logs, "--effect", "5%", "--baseline", "fast"], "no connection drew it"),
        (&["nowhere", "--effect", "5%"], "cannot be read"),
    ] {
        trial(arguments).assert().code(2).stderr(contains(expected));
    }
}
