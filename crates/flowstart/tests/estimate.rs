//! What a client knows of its own access link, and tells the server.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use predicates::prelude::*;
use serde_json::Value;
use server::{Server, flowstart};

/// What the source says of itself in `timings`.
fn source<'a>(timings: &'a Value, name: &str) -> &'a Value {
    timings["estimates"].as_array().unwrap().iter().find(|one| one["source"] == name).unwrap()
}

#[test]
fn the_highest_rate_of_a_network_is_kept_shown_and_hinted() {
    let folder = tempfile::tempdir().unwrap();
    let rates = folder.path().join("rates");
    let server = Server::self_signed(&["--hint-policy", "accept"]);
    let get = |network: &str| -> Value {
        let mut get = server.get("/generate/40MB");
        get.args(["--estimate", "--network", network, "--rates"]).arg(&rates);
        serde_json::from_slice(&get.assert().success().get_output().stdout).unwrap()
    };
    let first = get("home");
    assert_eq!(source(&first, "past-maximum")["verdict"], "missing");
    assert_eq!((&first["hint_bps"], first["estimates"].as_array().unwrap().len()), (&Value::Null, 5));

    let second = get("home");
    let past = source(&second, "past-maximum");
    let (kept, hinted) = (past["rate_bps"].as_f64().unwrap(), second["hint_bps"].as_f64().unwrap());
    assert_eq!(past["verdict"], "believed");
    // 10^(1/20) is 1.122: a step of the grid, and 10 Gbit/s is the highest.
    assert!(hinted <= kept && (hinted * 1.1221 > kept || hinted == 1e10), "{kept} {hinted}");
    server.wait_for("flowstart_hints_total{verdict=\"accepted\"} 1");

    assert_eq!(source(&get("elsewhere"), "past-maximum")["verdict"], "missing");
}

#[test]
fn a_modems_carriers_make_a_hint_that_is_rounded_as_wanted() {
    let server = Server::self_signed(&["--hint-policy", "accept"]);
    let hinted = |options: &[&str]| -> u64 {
        let mut get = server.get("/generate/1KB");
        get.args(["--hint", "auto", "--lte", "bandwidth=10MHz,mcs=20,layers=2"]).args(options);
        let output = get.assert().success().get_output().stdout.clone();
        serde_json::from_slice::<Value>(&output).unwrap()["hint_bps"].as_u64().unwrap()
    };
    // 35.55 Mbit/s between 10^(51/20) = 354.8 and 398.1 times 100 kbit/s; 251.2 with five steps.
    assert_eq!((hinted(&[]), hinted(&["--hint-steps", "5"])), (35_481_339, 25_118_864));
    // Two carriers are 71.1 Mbit/s.
    assert_eq!(hinted(&["--lte", "bandwidth=10MHz,mcs=20,layers=2"]), 70_794_578);
}

#[test]
fn each_source_is_told_in_a_sentence() {
    let server = Server::self_signed(&[]);
    let mut get = flowstart();
    get.args(["get", "--insecure", "--estimate", "--lte", "bandwidth=10MHz,mcs=20,layers=2"]);
    let told = get.arg(format!("{}/generate/1KB", server.url)).assert().success();
    for sentence in [
        "gateway: missing (the server is on this host)",
        "lte: 35.5 Mbit/s, lte, which gathers 4.443KB in 1ms (an upper end: what the cell gives if no other phone receives); this is hinted",
        "past-maximum: missing (no rates of this network are kept)",
        "the hint is 35.5 Mbit/s",
    ] {
        let output = String::from_utf8(told.get_output().stderr.clone()).unwrap();
        assert!(output.contains(sentence), "{sentence}: {output}");
    }
}

#[test]
fn bad_rates_and_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rates = folder.path().join("rates");
    std::fs::write(&rates, "{\"version\":7,\"networks\":{}}").unwrap();
    let get = || {
        let mut get = flowstart();
        get.args(["get", "https://localhost:9/"]);
        get
    };
    let refused = get().arg("--rates").arg(&rates).assert().code(2);
    refused.stderr(predicate::str::contains("rates: version is 7; this program reads 1"));
    let refused = get().args(["--rates", "/dev/zero"]).assert().code(2);
    refused.stderr(predicate::str::contains("/dev/zero"));
    get().args(["--hint-steps", "0"]).assert().code(2);
    get().args(["--network", "home"]).assert().code(2);
    let refused = get().args(["--lte", "bandwidth=40MHz,mcs=20,layers=2"]).assert().code(2);
    refused.stderr(predicate::str::contains("use 1.4MHz, 3MHz"));
}
