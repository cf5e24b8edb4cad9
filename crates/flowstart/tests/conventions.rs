//! What people expect of every command: lists, stdin, stderr, help, completions, manual pages.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command as Program, Stdio};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str =
    "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 2\n";

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments);
    command
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

/// Whether a program is installed that a test needs.
fn is_installed(program: &str) -> bool {
    let found = Program::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let installed = found.is_ok_and(|status| status.success());
    if !installed {
        println!("skipped: {program} is not installed");
    }
    installed
}

#[test]
fn an_entry_of_a_list_has_a_page_and_a_slip_gets_the_name_that_was_meant() {
    let page = stdout(&flowstart(&["list", "schemes", "Careful_Resume"]).assert().success());
    for part in
        ["careful-resume\n", "Source: ", "Senses: ", "Continues: ", "jump: a number; default 0.5\n      Share of"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = stdout(&flowstart(&["list", "competitors", "cbr"]).assert().success());
    assert!(page.contains("rate: a rate; needed") && page.contains("Example: --competitor cbr:rate=5mbit"), "{page}");
    let page = stdout(&flowstart(&["list", "link-options", "reorder"]).assert().success());
    assert!(page.contains("as in reorder=1%/5ms"), "{page}");
    let page = stdout(&flowstart(&["list", "scenarios", "blitzstart-table1"]).assert().success());
    assert!(page.contains("Size: 72 cells of 30 repetitions, 2160 runs"), "{page}");
    let page = stdout(&flowstart(&["list", "transports", "tcp_linux"]).assert().success());
    assert!(page.contains("--transport model-tcp:profile=tcp-linux,KEY=VALUE,..."), "{page}");
    // What stands for others in the list, and what is there with the profile that it implies.
    let page = stdout(&flowstart(&["list", "competitors", "Cubic"]).assert().success());
    for part in ["cubic\n", "the same as bulk:cubic", "count: 1 to 10000", "beta: ", "Example: --competitor cubic"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (name, profile) in [("model-quic", "model-quic:profile=rfc9002"), ("model_tcp", "model-tcp:profile=tcp-linux")]
    {
        let page = stdout(&flowstart(&["list", "transports", name]).assert().success());
        assert!(page.starts_with(profile), "{page}");
    }
    let json = stdout(&flowstart(&["list", "aqms", "codel", "--json"]).assert().success());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["name"], json.as_array().unwrap().len()), (&"codel".into(), 1));
    assert_eq!(json[0]["parameters"]["target"], "5ms");
    for (what, wrong, meant) in [("schemes", "slowstrat", "slow-start"), ("metrics", "fct_mss", "fct_ms")] {
        let told = flowstart(&["list", what, wrong]).assert().code(2).stdout("");
        told.stderr(contains(format!("(did you mean `{meant}`")).and(contains(format!("`flowstart list {what}`"))));
    }
}

#[test]
fn what_is_listed_can_be_used() {
    for (what, option) in [("schemes", "--scheme"), ("aqms", "--aqm"), ("competitors", "--competitor")] {
        let list = stdout(&flowstart(&["list", what, "--json"]).assert().success());
        let list: Value = serde_json::from_str(&list).unwrap();
        for entry in list.as_array().unwrap() {
            let example: Vec<&str> = entry["example"].as_str().unwrap().split(' ').collect();
            assert_eq!(example[0], option);
            // A number of repetitions that is refused shows that nothing else is wrong.
            let mut arguments = vec!["compare", "--link", "dsl-fast", "--size", "70KB"];
            let slow_start = ["--scheme", "slow-start"];
            arguments.extend(slow_start.iter().filter(|_| option != "--scheme"));
            let tcp = if example[1] == "oracle" { "model-tcp" } else { "model-quic" };
            arguments.extend(example.iter().chain(&["--transport", tcp, "--flows", "0"]));
            flowstart(&arguments).assert().code(2).stderr(contains("--flows `0`"));
        }
    }
}

#[test]
fn a_scenario_is_read_from_stdin() {
    let folder = TempDir::new().unwrap();
    let from_stdin = |more: &[&str], text: &str| {
        let arguments = [&["run", "-"], more].concat();
        flowstart(&arguments).current_dir(&folder).write_stdin(text).assert()
    };
    let of_stdin = stdout(&from_stdin(&["--json"], SCENARIO).success());
    fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    let of_file = flowstart(&["run", "s.toml", "--json"]).current_dir(&folder).assert().success();
    assert_eq!(of_stdin, stdout(&of_file));
    for (text, place) in [
        ("link = [".to_owned(), "<stdin>, line 1"),
        (SCENARIO.replace("reps", "repz"), "<stdin>, line 4: unknown field `repz` (did you mean `reps`?)"),
        (SCENARIO.replace("dsl-fast", "dsl-fats"), "<stdin>, line 1: link `dsl-fats`"),
    ] {
        let told = from_stdin(&["--out", "refused"], &text).code(2).stdout("");
        assert!(stderr(&told).contains(place), "{place}: {}", stderr(&told));
        assert!(!folder.path().join("refused").exists());
    }
    // Its results can be replayed, and more of the same goes into the same folder.
    from_stdin(&["--out", "out"], SCENARIO).success();
    let id = "dsl-fast/taildrop/70KB/blitzstart/none";
    flowstart(&["explain", "--cell", id, "--from", "out"]).current_dir(&folder).assert().success();
    let more = from_stdin(&["--out", "out", "--resume", "--reps", "3"], SCENARIO).success();
    assert!(stderr(&more).contains("4 of 6 runs are taken over"), "{}", stderr(&more));
    let other = SCENARIO.replace("70KB", "80KB");
    from_stdin(&["--out", "out", "--resume"], &other).code(2).stderr(contains("80KB"));
}

#[test]
fn a_scenario_without_its_recordings_says_so_before_it_starts() {
    let folder = TempDir::new().unwrap();
    let told = flowstart(&["run", "cellular", "--out", "out"]).current_dir(&folder).assert().code(2).stdout("");
    let text = stderr(&told);
    for part in ["cellular: needs recorded capacities", "TMobile-LTE-short.down", "github.com/ravinet/mahimahi"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!folder.path().join("out").exists());
    let told = flowstart(&["run", "celular"]).current_dir(&folder).assert().code(2);
    assert!(stderr(&told).contains("(did you mean `cellular`?); no such file"), "{}", stderr(&told));
}

#[test]
fn stderr_says_as_much_as_the_user_wants() {
    let run = |more: &[&str]| {
        let base = ["compare", "--link", "dsl-fast", "--size", "70KB", "--scheme", "slow-start", "--reps", "2"];
        flowstart(&[&base, more].concat()).assert()
    };
    let note = "note: the measured flows use reno, the competitor cubic";
    run(&["--competitor", "cubic"]).success().stderr(contains(note));
    run(&["--competitor", "cubic", "--quiet"]).success().stderr("");
    run(&["--competitor", "cubik", "-q"]).code(2).stderr(contains("did you mean `cubic`?"));
    let detailed = run(&["-v", "--seed", "7", "--jobs", "1"]).success();
    let text = stderr(&detailed);
    assert!(text.contains("cells: 1, repetitions: 2, runs: 2, seed: 7, threads: 1\n"), "{text}");
    for step in ["runs: ", "evaluating and writing results: "] {
        let line = text.lines().find(|line| line.starts_with(step)).unwrap_or_else(|| panic!("{step}{text}"));
        assert!(line.ends_with(" s") && line.contains('.'), "{line}");
    }
    assert_eq!(stdout(&detailed), stdout(&run(&["--seed", "7", "-q"]).success()), "stdout is for data");
    run(&["-v", "-q"]).code(2);
}

/// What a command writes to a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(arguments: &str, folder: &Path, no_color: bool) -> String {
    let command = format!("{} {arguments}", assert_cmd::cargo::cargo_bin("flowstart").display());
    let mut script = Program::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]).current_dir(folder);
    script.env_remove("NO_COLOR").env("TERM", "xterm-256color").stdin(Stdio::null());
    if no_color {
        script.env("NO_COLOR", "1");
    }
    String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn no_color_turns_colors_off() {
    if !is_installed("script") {
        return;
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("wrong.toml"), SCENARIO.replace("reps", "repz")).unwrap();
    // Colors and bold are set by sequences that end in m.
    let is_colored = |text: &str| {
        text.split("\u{1b}[").skip(1).any(|rest| {
            rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';').starts_with('m')
        })
    };
    for arguments in ["run wrong.toml", "compare --nothing", "--help"] {
        let (colored, plain) =
            (on_a_terminal(arguments, folder.path(), false), on_a_terminal(arguments, folder.path(), true));
        assert!(is_colored(&colored), "{arguments}: {colored:?}");
        assert!(!is_colored(&plain) && plain.len() > 20, "{arguments}: {plain:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_wait_shows_a_sign_of_life() {
    if !is_installed("script") || !is_installed("timeout") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let shown = |arguments: &str| {
        let command = format!("timeout 4 {} {arguments}", assert_cmd::cargo::cargo_bin("flowstart").display());
        let mut script = Program::new("script");
        script.args(["--quiet", "--command", &command, "/dev/null"]).current_dir(&folder).stdin(Stdio::null());
        String::from_utf8_lossy(&script.env("TERM", "xterm-256color").output().unwrap().stdout).into_owned()
    };
    let huge = "--link ethernet-100m --size 50GB --scheme slow-start";
    for arguments in [format!("trace {huge} --pcap run.pcapng"), format!("trace {huge} > /dev/null")] {
        let text = shown(&arguments);
        assert!(text.contains("simulating and writing the trace"), "{arguments}: {text:?}");
    }
    let text = shown(&format!("compare {huge} --reps 2"));
    assert!(text.contains("0/2 runs") && text.contains("00:00:02") && !text.contains("left"), "{text:?}");
}

#[test]
fn help_is_short_or_long_and_fits_80_columns() {
    let commands = "compare break recommend run trace explain list oracle serve get perf analyze ui validate \
                    completions man";
    for command in commands.split(' ') {
        let help = |option: &str| stdout(&flowstart(&[command, option]).assert().success());
        let (short, long) = (help("-h"), help("--help"));
        assert!(!short.contains("Examples:") && long.contains("Examples:"), "{command}");
        assert!(short.lines().count() < long.lines().count(), "{command}");
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
    // One line for each option, but for a long default.
    let short = stdout(&flowstart(&["compare", "-h"]).assert().success());
    let options: Vec<&str> = short.lines().skip_while(|line| !line.starts_with("Options:")).skip(1).collect();
    for line in &options {
        assert!(line.contains("--") || line.trim_start().starts_with('['), "{line} in {short}");
    }
    let long = stdout(&flowstart(&["compare", "--help"]).assert().success());
    let words = long.split_whitespace().collect::<Vec<_>>().join(" ");
    for list in "links link-options aqms competitors applications schemes avoidance transports".split(' ') {
        assert!(words.contains(&format!("flowstart list {list}")), "{list}: {long}");
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let folder = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&flowstart(&["completions", shell]).assert().success());
        for word in ["compare", "application", "verbose"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        let file = folder.path().join(shell);
        fs::write(&file, script).unwrap();
        if is_installed(shell) {
            let checked = Program::new(shell).arg("-n").arg(&file).output().unwrap();
            assert!(checked.status.success() && checked.stderr.is_empty(), "{shell}: {checked:?}");
        }
    }
    flowstart(&["completions", "csh"]).assert().code(2).stderr(contains("bash"));
}

#[test]
fn manual_pages_exist_for_every_subcommand_and_render() {
    let folder = TempDir::new().unwrap();
    let pages = folder.path().join("man1");
    flowstart(&["man", &pages.display().to_string()]).assert().success().stdout("");
    for page in ["flowstart", "flowstart-compare", "flowstart-oracle-ask", "flowstart-perf-client", "flowstart-man"] {
        let file = pages.join(page).with_extension("1");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH OPTIONS"), "{page}");
        if is_installed("groff") {
            let rendered = Program::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(&file).output().unwrap();
            assert!(rendered.status.success() && rendered.stderr.is_empty(), "{page}: {rendered:?}");
            assert!(String::from_utf8_lossy(&rendered.stdout).contains(page), "{page}");
        }
    }
    let main = stdout(&flowstart(&["man"]).assert().success());
    assert!(main.starts_with(".ie") && main.contains("flowstart"), "{main}");
    fs::write(folder.path().join("file"), "").unwrap();
    let taken = folder.path().join("file").display().to_string();
    flowstart(&["man", &taken]).assert().code(2).stderr(contains("file"));
}

#[test]
fn manual_pages_replace_only_manual_pages_of_their_own_and_are_written_whole() {
    let folder = TempDir::new().unwrap();
    let pages = folder.path().display().to_string();
    flowstart(&["man", &pages]).assert().success();
    let (last, other) = (folder.path().join("flowstart.1"), folder.path().join("flowstart-run.1"));
    let text = fs::read_to_string(&last).unwrap();
    // An older page is replaced, also beside pages of other programs; a file of somebody is not.
    fs::write(&last, text.replace("Compare", "Contrast")).unwrap();
    fs::write(folder.path().join("flow.1"), "another program's").unwrap();
    flowstart(&["man", &pages]).assert().success();
    assert_eq!(fs::read_to_string(&last).unwrap(), text);
    fs::remove_file(&last).unwrap();
    fs::write(&other, "precious").unwrap();
    let told = flowstart(&["man", &pages]).assert().code(2);
    told.stderr(contains("flowstart-run.1: exists, and is not a page of flowstart; nothing was overwritten"));
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    assert!(!last.exists());
    assert_eq!(fs::read_to_string(folder.path().join("flow.1")).unwrap(), "another program's");
}

/// Files cannot grow beyond so many blocks of 512 bytes: writing more fails, as on a full disk.
#[cfg(unix)]
#[test]
fn a_manual_page_for_which_there_is_no_room_is_not_begun() {
    let folder = TempDir::new().unwrap();
    let mut shell = Program::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" man \"$1\""]);
    let told = shell.arg(assert_cmd::cargo::cargo_bin("flowstart")).arg(folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains(".1: "), "{stderr}");
    for entry in fs::read_dir(&folder).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(page.contains(".TH flowstart") && page.ends_with('\n') && page.len() <= 4 * 512, "{page}");
    }
}

#[test]
fn validations_are_printed_as_they_end() {
    let mut all = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    let mut all = all.arg("validate").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(all.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // The others take minutes.
    let is_running = all.try_wait().unwrap().is_none();
    all.kill().unwrap();
    all.wait().unwrap();
    assert!(is_running && first.starts_with("pass  ns2-single-flow "), "{first}");

    let one = flowstart(&["validate", "ns2-chain"]).assert().success();
    assert!(stdout(&one).ends_with("\n1 of 1 entries pass; 0 of 36 numbers missed\n"), "{}", stdout(&one));
    let json = flowstart(&["validate", "ns2-chain", "--json"]).assert().success();
    assert!(stderr(&json).starts_with("pass  ns2-chain "), "{}", stderr(&json));
    flowstart(&["validate", "ns2-chain", "--json", "-q"]).assert().success().stderr("");
    let wrong = flowstart(&["validate", "ns2-chian"]).assert().code(2).stdout("");
    wrong.stderr(contains("did you mean `ns2-chain`?"));
}
