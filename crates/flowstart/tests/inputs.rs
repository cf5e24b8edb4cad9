//! Files that users name and that are none: a pipe without a writer would hold up the command, a device has no end.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use predicates::str::contains;

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments).timeout(Duration::from_secs(60));
    command
}

/// A pipe that nobody writes into.
fn pipe(folder: &Path, name: &str) -> String {
    let pipe = folder.join(name);
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    pipe.to_str().unwrap().to_owned()
}

#[test]
fn pipes_and_devices_are_refused_as_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    for input in [pipe(folder.path(), "pipe"), "/dev/zero".to_owned()] {
        let url = "https://localhost:9/";
        let link = format!("trace={input},rtt=20ms,buffer=1bdp");
        let refused: &[&[&str]] = &[
            &["serve", "--cert", &input, "--key", &key],
            &["serve", "--cert", &cert, "--key", &input],
            &["serve", "--self-signed", "--path-state-key", &input],
            &["get", url, "--ca", &input],
            &["get", url, "--insecure", "--tokens", &input],
            &["get", url, "--insecure", "--path-state", &input],
            &["get", url, "--insecure", "--hint", "auto", "--rates", &input],
            &["perf", "server", "--cert", &cert, "--key", &input],
            &["compare", "--link", &link, "--size", "70KB", "--scheme", "slow-start"],
            &["trace", "--link", &link, "--size", "70KB", "--scheme", "slow-start"],
            &["run", &input],
            &["validate", "ns2-chain", "--reference", &input],
            &["analyze", &input],
        ];
        for arguments in refused {
            flowstart(arguments).assert().code(2).stderr(contains(&input)).stderr(contains("not a regular file"));
        }
        // In a folder of results.
        let results = folder.path().join(format!("results-{}", input.len()));
        std::fs::create_dir(&results).unwrap();
        std::os::unix::fs::symlink(&input, results.join("manifest.json")).unwrap();
        let resumed = ["--out", results.to_str().unwrap(), "--resume"];
        let run = ["run", "quick-start-gprs", "--reps", "1"];
        flowstart(&[&run[..], &resumed].concat()).assert().code(2).stderr(contains("not a regular file"));
    }
}

#[test]
fn a_scenario_may_come_from_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let scenario = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 1\n";
    flowstart(&["run", "-", "--out", out.to_str().unwrap()]).write_stdin(scenario).assert().success();
    assert!(out.join("summary.json").exists());
}

#[test]
fn a_value_without_end_does_not_hide_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    let long = "x".repeat(4_000_000);
    std::fs::write(&file, format!("size = ['70KB']\nlink = ['dsl-fast']\nscheme = ['{long}']\n")).unwrap();
    let refused = flowstart(&["run", file.to_str().unwrap()]).assert().code(2);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.len() < 10_000 && told.contains("long.toml, line 3") && told.contains("scheme"), "{told:.10000}");
    let refused = flowstart(&["list", "schemes", &long[..100_000]]).assert().code(2);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.len() < 10_000 && told.contains("list schemes"), "{told:.10000}");
}
