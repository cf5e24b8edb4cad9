//! `flowstart report`: pages of stored results, and two folders compared.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use flowstart_lab::results::journal::checksum;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use tempfile::TempDir;

fn flowstart(arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("flowstart").unwrap().args(arguments).assert()
}

/// A folder of results.
fn results(within: &Path, name: &str, more: &[&str]) -> PathBuf {
    let folder = within.join(name);
    let out = folder.display().to_string();
    let common = ["compare", "--link", "dsl-fast", "--competitor", "cubic", "--scheme", "slow-start", "blitzstart"];
    flowstart(&[&common[..], more, &["--out", &out]].concat()).success();
    folder
}

const SMALL: [&str; 4] = ["--size", "70KB", "--reps", "3"];

fn report(folders: &[&Path], more: &[&str]) -> assert_cmd::assert::Assert {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let mut arguments = vec!["report"];
    arguments.extend(folders.iter().map(String::as_str));
    arguments.extend(more);
    flowstart(&arguments)
}

#[test]
fn a_page_is_written_again_from_what_is_stored() {
    let folder = TempDir::new().unwrap();
    let one = results(folder.path(), "one", &SMALL);
    let first = fs::read_to_string(one.join("report.html")).unwrap();
    fs::remove_file(one.join("report.html")).unwrap();
    report(&[&one], &[]).success().stdout(contains("report.html"));
    let again = fs::read_to_string(one.join("report.html")).unwrap();
    // The first page also has the notes that the command told its user.
    let specs =
        |page: &str| page.split("class=\"spec\">").skip(1).map(|rest| rest[..200].to_owned()).collect::<Vec<_>>();
    assert_eq!(specs(&again), specs(&first));
    let elsewhere = folder.path().join("page.html");
    report(&[&one], &["--out", elsewhere.to_str().unwrap()]).success();
    assert!(elsewhere.exists());
    report(&[&one], &["--out", elsewhere.to_str().unwrap()]).code(2).stderr(contains("nothing was overwritten"));
}

#[test]
fn the_same_results_did_not_change_and_others_did() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (results(folder.path(), "one", &SMALL), results(folder.path(), "two", &SMALL));
    report(&[&one, &two], &[])
        .success()
        .stdout(contains("Nothing changed: every repetition of all 2 cells takes exactly as long as before."));
    // As if another build had produced them: every completion time of one scheme is half.
    let csv = fs::read_to_string(two.join("flows.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "fct_ms").unwrap();
    let halved = |line: &str| {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        if line.contains("blitzstart") {
            fields[column] = (fields[column].parse::<f64>().unwrap() / 2.0).to_string();
        }
        fields.join(",")
    };
    let changed = csv.lines().map(halved).collect::<Vec<_>>().join("\n") + "\n";
    fs::write(two.join("flows.csv"), changed).unwrap();
    report(&[&one, &two], &[]).code(2).stderr(contains("flows.csv is not the file that manifest.json was written for"));
    seal(&two);
    let page = folder.path().join("change.html");
    report(&[&one, &two], &["--out", page.to_str().unwrap()])
        .success()
        .stdout(contains("1 of 2 cells changed by more than 1 % (faster); most: ").and(contains("2.00 times as fast")));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("2.00 times as fast") && page.contains("id=\"forest\"") && page.contains("before / after"));
}

/// Makes the rows of a folder those that its manifest was written for.
fn seal(folder: &Path) {
    let csv = fs::read_to_string(folder.join("flows.csv")).unwrap();
    edit(folder, |manifest| manifest["rows"] = checksum("flows.csv", [&*csv]).into());
}

/// Changes a folder's manifest.
fn edit(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let file = folder.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(file, manifest.to_string()).unwrap();
}

#[test]
fn folders_that_cannot_be_compared_are_refused_with_what_differs() {
    let folder = TempDir::new().unwrap();
    let one = results(folder.path(), "one", &SMALL);
    let sizes = results(folder.path(), "sizes", &["--size", "80KB", "--reps", "3", "--seed", "7"]);
    let different = contains("answer different questions: seed is `1` in ").and(contains("size is `70KB` in "));
    report(&[&one, &sizes], &[]).code(2).stderr(different);

    let other = results(folder.path(), "other", &SMALL);
    edit(&other, |manifest| manifest["experiment"]["program"] = "0.0.1".into());
    report(&[&one, &other], &[]).code(2).stderr(contains("of 0.0.1: --across-versions compares them all the same"));
    report(&[&one, &other], &["--across-versions"]).success().stdout(contains("Nothing changed"));

    let swapped = results(folder.path(), "swapped", &SMALL);
    edit(&swapped, |manifest| {
        let scenario = manifest["scenario"].as_str().unwrap();
        let text = scenario.replace("\"slow-start\", \"blitzstart\"", "\"blitzstart\", \"slow-start\"");
        assert_ne!(text, scenario);
        manifest["scenario"] = text.into();
    });
    let edited = || contains("scheme is `slow-start blitzstart`, now it is `blitzstart slow-start`");
    report(&[&one, &swapped], &[]).code(2).stderr(edited());
    report(&[&swapped, &one], &["--across-versions"]).code(2).stderr(edited());
    report(&[&swapped, &swapped], &[]).code(2).stderr(edited());
    report(&[&swapped], &[]).code(2).stderr(edited());

    let summary = other.join("summary.json");
    let text = fs::read_to_string(&summary).unwrap().replacen("\"schema\": 1", "\"schema\": 2", 1);
    fs::write(&summary, text).unwrap();
    report(&[&one, &other], &["--across-versions"])
        .code(2)
        .stderr(contains("its format is version 2; this program reads version 1"));

    fs::write(other.join("flows.partial.csv"), "").unwrap();
    report(&[&other], &[]).code(2).stderr(contains("holds an interrupted run").and(contains("--resume")));
    let empty = TempDir::new().unwrap();
    report(&[empty.path()], &[]).code(2).stderr(contains("is not a folder of results: it has no manifest.json"));
    report(&[&empty.path().join("nowhere")], &[]).code(2).stderr(contains("there is no such folder"));
    report(&[&one], &["--across-versions"]).code(2);
    // Neither is what could not be written, which is told before the work.
    let nowhere = folder.path().join("nowhere/page.html");
    for folders in [&[&*one][..], &[&one, &one]] {
        report(folders, &["--out", nowhere.to_str().unwrap()])
            .code(2)
            .stdout("")
            .stderr(contains("there is no folder"));
    }
}

#[test]
fn a_journal_that_says_nothing_new_keeps_nobody_from_the_results() {
    let folder = TempDir::new().unwrap();
    let one = results(folder.path(), "one", &SMALL);
    let rows = fs::read_to_string(one.join("flows.csv")).unwrap();
    // As a program leaves it that was killed while it made the page.
    fs::remove_file(one.join("report.html")).unwrap();
    let journal = one.join("flows.partial.csv");
    fs::write(&journal, format!("#{{}}\n{rows}half a li")).unwrap();
    report(&[&one], &[]).success();
    report(&[&one, &one], &[]).success().stdout(contains("Nothing changed"));
    // More repetitions began, or the results that the manifest names are not there.
    let interrupted = || contains("holds an interrupted run").and(contains("--resume"));
    fs::write(&journal, format!("#{{}}\n{rows}one more\n")).unwrap();
    report(&[&one], &[]).code(2).stderr(interrupted());
    fs::write(&journal, format!("#{{}}\n{rows}")).unwrap();
    fs::write(one.join("flows.csv"), rows.lines().next().unwrap()).unwrap();
    report(&[&one], &[]).code(2).stderr(interrupted());
}

/// The answer is worth as much without its page.
#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_costs_only_the_page() {
    use std::process::Command as Program;

    // Files cannot grow beyond so many blocks of 512 bytes: writing more fails, as on a full disk.
    let limited = |blocks: u64, arguments: &[&str]| {
        let mut shell = Program::new("sh");
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
        let out = shell.arg(assert_cmd::cargo::cargo_bin("flowstart")).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let question = ["--link", "dsl-fast", "--scheme", "slow-start", "blitzstart", "--size", "70KB", "--reps", "3"];
    let compare = [&["compare", "--out", out.to_str().unwrap()], &question[..]].concat();
    let (code, stdout, stderr) = limited(200, &compare);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stdout.contains(" times as fast") && !stdout.contains("Report: "), "{stdout}");
    assert!(stderr.contains("cannot write") && stderr.contains("report.html"), "{stderr}");
    // What is there is complete: it has a page when there is room, by either command.
    let page = out.join("report.html");
    assert!(!page.exists());
    report(&[&out], &[]).success();
    fs::remove_file(&page).unwrap();
    flowstart(&compare).code(2).stderr(contains("holds an interrupted run of this experiment; --resume goes on"));
    flowstart(&[&compare[..], &["--resume"]].concat()).success().stderr(contains("6 of 6 runs are taken over"));
    assert!(page.exists() && !out.join("flows.partial.csv").exists());
    flowstart(&[&compare[..], &["--resume", "--no-hint"]].concat()).code(2).stderr(contains("of another experiment"));
    flowstart(&[&["compare", "--resume"], &question[..]].concat()).code(2).stderr(contains("--out"));

    let changes = folder.path().join("changes.html");
    let both = ["report", out.to_str().unwrap(), out.to_str().unwrap(), "--out", changes.to_str().unwrap()];
    let (code, stdout, stderr) = limited(20, &both);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stdout.contains("Nothing changed") && !stdout.contains("Report: "), "{stdout}");

    let traced = folder.path().join("trace");
    let (code, stdout, stderr) = limited(
        200,
        &["trace", "--out", traced.to_str().unwrap(), "--link", "dsl-fast", "--scheme", "slow-start", "--size", "10KB"],
    );
    assert_eq!(code, Some(1), "{stderr}");
    assert!(!stdout.is_empty() && !stdout.contains("Page: "), "{stdout}");
}

#[test]
fn a_repetition_that_no_run_has_is_refused() {
    let folder = TempDir::new().unwrap();
    let one = results(folder.path(), "one", &SMALL);
    let csv = fs::read_to_string(one.join("flows.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "rep").unwrap();
    let mut lines: Vec<String> = csv.lines().map(str::to_owned).collect();
    let mut fields: Vec<&str> = lines[1].split(',').collect();
    fields[column] = "1000000000000";
    lines[1] = fields.join(",");
    fs::write(one.join("flows.csv"), lines.join("\n") + "\n").unwrap();
    seal(&one);
    report(&[&one], &[]).code(2).stderr(contains("rep is 1000000000000; with this many rows it is at most 5"));
}
