//! `flowstart recommend`: a table of transfers in, a scheme for them out.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;

const FLEET: &str = "name,weight,rate,rtt,buffer,size,known,aqm,competitor\n\
                     dsl,3,50mbit,30ms,1bdp,300KB,0.5,taildrop,cubic\n\
                     slow,1,2mbit,80ms,300ms,70KB,1,fq-codel,none\n";

fn recommend(folder: &Path, table: &str, options: &[&str]) -> Command {
    let file = folder.join("fleet.csv");
    std::fs::write(&file, table).unwrap();
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.arg("recommend").arg(file).args(options);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.arg("--json").assert().success().get_output().stdout).unwrap()
}

#[test]
fn a_fleet_gets_a_scheme_with_its_cost_and_its_losers() {
    let folder = tempfile::tempdir().unwrap();
    let schemes = ["--scheme", "slow-start", "blitzstart", "jump-start", "--reps", "3"];
    let told = json(&mut recommend(folder.path(), FLEET, &schemes));
    let recommendation = &told["recommendation"];
    assert_eq!(recommendation["scheme"], "jump-start", "{told:#}");
    assert!(told["answer"].as_str().unwrap().starts_with("jump-start: a transfer of this fleet is "));
    // Two parts of the first kind, whose path is known to half of the transfers.
    let shares: Vec<f64> =
        recommendation["kinds"].as_array().unwrap().iter().map(|kind| kind["share"].as_f64().unwrap()).collect();
    assert_eq!((shares.len(), shares.iter().sum::<f64>()), (3, 1.0));
    // Without knowledge Blitzstart is slow start.
    let dearer = [&schemes[..], &["--max-inflation", "0%"]].concat();
    let told = json(&mut recommend(folder.path(), FLEET, &dearer));
    let refused = told["recommendation"]["schemes"][2]["refused"].as_str().unwrap();
    assert!(refused.contains("more than 0.0 %"), "{refused}");
    let unknown = FLEET.replace("0.5", "0").replace(",1,fq", ",0,fq");
    let told = json(&mut recommend(folder.path(), &unknown, &["--scheme", "slow-start", "blitzstart", "--reps", "2"]));
    assert_eq!(told["recommendation"]["scheme"], "slow-start", "{told:#}");
    assert_eq!(told["recommendation"]["schemes"][1]["gain"], 1.0);
}

#[test]
fn numbers_do_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let told = |jobs: &str| {
        let options = ["--scheme", "slow-start", "suss", "--reps", "2", "--jobs", jobs];
        json(&mut recommend(folder.path(), FLEET, &options))
    };
    assert_eq!(told("1"), told("2"));
}

#[test]
fn an_operator_gets_a_queue_for_the_starts_that_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let table = "name,weight,rate,rtt,buffer,size,known,competitor\n\
                 dsl,1,10mbit,40ms,500ms,2MB,1,cubic\n";
    let options = ["--aqm", "codel", "--buffer", "50ms", "--scheme", "slow-start", "0.25=jump-start", "--reps", "10"];
    let told = json(&mut recommend(folder.path(), table, &options));
    let recommendation = &told["recommendation"];
    let names: Vec<&str> =
        recommendation["queues"].as_array().unwrap().iter().map(|one| one["queue"].as_str().unwrap()).collect();
    assert_eq!(names, ["taildrop", "codel", "taildrop buffer=50ms", "codel buffer=50ms"]);
    let delay = |place: usize| recommendation["queues"][place]["queue_delay_ms"].as_f64().unwrap();
    // A CUBIC flow fills 500 ms; CoDel keeps its target, and a short buffer its length.
    assert!(delay(0) > 300.0 && delay(1) < 200.0 && delay(2) <= 51.0, "{told:#}");
    assert_ne!(recommendation["queue"], "taildrop", "{told:#}");
    let starts: Vec<f64> =
        told["starts"].as_array().unwrap().iter().map(|one| one["share"].as_f64().unwrap()).collect();
    assert_eq!(starts, [0.75, 0.25]);
    let kinds = recommendation["kinds"].as_array().unwrap();
    assert_eq!((kinds.len(), kinds.iter().all(|kind| kind["start"].is_string())), (2, true));
    let shown = recommend(folder.path(), table, &options).assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(text.contains("queue ms") && text.contains("as with taildrop and the link's own buffer"), "{text}");
}

#[test]
fn a_folder_has_the_page_and_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ["--scheme", "slow-start", "jump-start", "--reps", "2", "--out", out.to_str().unwrap()];
    let told = json(&mut recommend(folder.path(), FLEET, &options));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    // The page keeps numbers and their units together.
    let page = read("report.html").replace('\u{a0}', " ");
    assert!(page.contains(told["answer"].as_str().unwrap()) && page.contains("For whom it gets worse"));
    assert_eq!(serde_json::from_str::<Value>(&read("recommendation.json")).unwrap(), told);
    assert_eq!(read("population.csv"), FLEET);
    assert!(read("choices.csv").starts_with("scheme,gain,gain_ci.lo") && read("choices.csv").lines().count() == 3);
    assert_eq!(read("kinds.csv").lines().count(), 4);
    // Results of earlier runs stay as they are.
    let refused = recommend(folder.path(), FLEET, &options).assert().code(2);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("it is not empty"));
}

/// A connection that filled its link for a while, and one that did not.
fn log(folder: &Path, name: &str, fills: bool) {
    let mut text = String::from(
        "\u{1e}{\"trace\":{}}\n\u{1e}{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{\"scheme\":\"x\"}}\n",
    );
    let mut add = |time: u32, name: &str, data: String| {
        text += &format!("\u{1e}{{\"time\":{time},\"name\":\"quic:{name}\",\"data\":{data}}}\n");
    };
    let sent =
        |number: u32| format!("{{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number},\"length\":1000}}}}");
    let acknowledged = |number: u32| {
        format!(
            "{{\"header\":{{\"packet_type\":\"1RTT\"}},\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[[0,{number}]]}}]}}"
        )
    };
    (0..80).for_each(|number| add(0, "packet_sent", sent(number)));
    for number in 0..if fills { 400 } else { 80 } {
        if number == 0 {
            add(41, "recovery_metrics_updated", "{\"min_rtt\":41,\"smoothed_rtt\":41}".into());
        }
        add(41 + number, "packet_received", acknowledged(number));
        if number + 80 < 400 && fills {
            add(41 + number, "packet_sent", sent(number + 80));
        }
    }
    add(500, "recovery_metrics_updated", format!("{{\"smoothed_rtt\":{}}}", if fills { 80 } else { 42 }));
    text += "\u{1e}{\"time\":501,\"name\":\"flowstart:answered\",\"data\":{\"payload\":70000,\"fct_ms\":400}}\n";
    std::fs::write(folder.join(format!("{name}.sqlog")), text).unwrap();
}

#[test]
fn a_population_of_logs_says_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let made = || {
        let mut command = Command::cargo_bin("flowstart").unwrap();
        command.args(["recommend", "--from-qlog"]).arg(folder.path()).args(["--write-population", "-"]);
        command
    };
    log(folder.path(), "a", false);
    let refused = made().assert().code(2);
    let told = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(told.contains("no connection filled its link, so no rate is known") && told.contains("(1 conn"), "{told}");
    log(folder.path(), "b", true);
    let table = String::from_utf8(made().assert().success().get_output().stdout.clone()).unwrap();
    assert!(
        table.contains("# Of 2 connections 1 filled their link") && table.contains(",8mbit,41ms,1bdp,70KB,0"),
        "{table}"
    );
    // Files of other programs end otherwise, and a file without an event is none.
    std::fs::rename(folder.path().join("b.sqlog"), folder.path().join("b.qlog")).unwrap();
    assert_eq!(String::from_utf8(made().assert().success().get_output().stdout.clone()).unwrap(), table);
    for text in ["bad", ""] {
        std::fs::write(folder.path().join("c.sqlog"), text).unwrap();
        made().assert().code(1).stdout(contains("# 1 files could not be used.")).stderr(contains("c.sqlog:"));
    }
    // What cannot be read is said, and the rest is used.
    std::fs::write(folder.path().join("c.sqlog"), "nonsense\n").unwrap();
    let partial = made().assert().code(1);
    let (out, told) = (&partial.get_output().stdout, String::from_utf8_lossy(&partial.get_output().stderr));
    assert!(String::from_utf8_lossy(out).contains("# 1 files could not be used.") && told.contains("c.sqlog:1:1: "));
    // A table and logs are two populations.
    let mut both = made();
    both.arg("fleet.csv").arg("--scheme").arg("suss");
    both.assert().code(2);
}

#[test]
fn bad_input_names_its_line_and_column_and_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (table, options, expected) in [
        (FLEET.replace("50mbit", "fast"), &[][..], "fleet.csv: line 2, rate: `fast` is not a rate"),
        (FLEET.replace("fq-codel", "fq-kodel"), &[], "fleet.csv: line 3, aqm: `fq-kodel`"),
        (FLEET.replace("300KB", "300XB"), &[], "fleet.csv: line 2, size: `300XB`"),
        (FLEET.replace("cubic", "kubic"), &[], "fleet.csv: line 2, competitor: `kubic`"),
        (FLEET.replace(",0.5,", ",2,"), &[], "line 2, known: `2`: allowed is a number of 0 to 1"),
        (FLEET.to_owned(), &["--scheme", "slow-start"], "two are needed"),
        (FLEET.to_owned(), &["--scheme", "slow-start", "blitsstart"], "did you mean `blitzstart`"),
        (FLEET.to_owned(), &["--max-inflation", "-1%"], "--max-inflation"),
        (FLEET.to_owned(), &["--aqm", "kodel"], "--aqm `kodel`"),
        (FLEET.to_owned(), &["--aqm", "taildrop"], "--aqm: taildrop is the baseline; name others, or buffers"),
        (FLEET.to_owned(), &["--aqm", "codel", "--buffer", "deep"], "--buffer `deep`"),
        (FLEET.to_owned(), &["--buffer", "50ms"], "--aqm"),
        (FLEET.to_owned(), &["--aqm", "--scheme", "2=suss"], "--scheme `2=suss`: use SHARE=SCHEME"),
        (FLEET.to_owned(), &["--aqm", "--scheme", "blitsstart"], "did you mean `blitzstart`"),
        (FLEET.to_owned(), &["--scheme", "slow-start", "suss", "--transport", "both"], "--transport `both`"),
        (FLEET.to_owned(), &["--write-population", "x.csv"], "--from-qlog"),
        (FLEET.replace("cubic", "none"), &["--max-harm", "1.2"], "nobody else uses a link of this population"),
    ] {
        let refused = recommend(folder.path(), &table, options).assert().code(2);
        let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(refused.get_output().stdout.is_empty());
    }
}
