//! The command line as other programs and people meet it.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use flowstart_lab::results::journal::checksum;
use predicates::prelude::PredicateBooleanExt;
use serde_json::Value;
use tempfile::TempDir;

fn flowstart(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("flowstart").unwrap();
    command.args(arguments);
    command
}

const COMPARE: [&str; 11] = [
    "compare",
    "--link",
    "dsl-fast",
    "--size",
    "70KB",
    "--scheme",
    "slow-start",
    "blitzstart",
    "--reps",
    "3",
    "--competitor",
];

fn compare(extra: &[&str]) -> Vec<String> {
    COMPARE.iter().chain(&["cubic"]).chain(extra).map(ToString::to_string).collect()
}

fn run(arguments: &[String]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("flowstart").unwrap().args(arguments).assert()
}

/// FNV-1a of a file's bytes.
fn hash(file: &Path) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    fs::read(file).unwrap().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn bad_input_is_refused_with_its_place_and_what_is_allowed() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        file.display().to_string()
    };
    let (empty, junk) = (path("empty.trace", b""), path("junk.trace", &[0xff, 0xfe, 0x00, 0x10]));
    let (falling, words) = (path("falling.trace", b"1\n5\n3\n"), path("words.trace", b"1\n2\nthree\n"));
    let link = |trace: &str| format!("trace={trace},rtt=50ms,buffer=100pkt");
    let base = ["--size", "70KB", "--scheme", "slow-start"];
    for (option, expected) in [
        ("dsl".to_owned(), "dsl-slow"),
        ("rate=0mbit,rtt=50ms".into(), "1kbit"),
        ("rate=25mbit,rtt=0ms".into(), "1us to 100s"),
        ("rate=nanmbit,rtt=50ms".into(), "rate"),
        ("rate=-1mbit,rtt=50ms".into(), "rate"),
        ("rate=20MB/s,rtt=50ms".into(), "20MB/s would be 160mbit"),
        ("rate=20m,rtt=50ms".into(), "write M, or mbit"),
        ("rate=20mbit,rtt=50ms,bufer=1bdp".into(), "did you mean `buffer`?"),
        ("lte=rate=20mbit,rtt=50ms".into(), "`lte` is a preset"),
        ("My-Link=rate=20mbit,rtt=50ms".into(), "cannot be a link's name"),
        ("rate=25mbit,rtt=50ms,buffer=100B".into(), "less than one packet"),
        ("rate=25mbit,rtt=50ms,burst=1B".into(), "burst"),
        (link(&empty), "empty.trace"),
        (link(&junk), "not text"),
        (link(&falling), "line 3"),
        (link(&words), "line 3"),
        (link("/does/not/exist"), "/does/not/exist"),
    ] {
        let output = flowstart(&["compare", "--link", &option]).args(base).assert().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(expected) && stderr.contains("link"), "{option}: {stderr}");
        assert!(output.get_output().stdout.is_empty());
    }
    for (field, value, expected) in [
        ("--scheme", "jumpstart", "(did you mean `jump-start`?); `flowstart list schemes` shows all"),
        ("--scheme", "slowstart", "did you mean `slow-start` or `limited-slow-start`?"),
        ("--scheme", "stak", "did you mean `stack`?"),
        ("--scheme", "stack:avoidance=reno", "`avoidance` is not for stack"),
        ("--scheme", "stack:iw=3", "allowed is stack alone"),
        ("--scheme", "blitzstart:estimate=nan", "estimate"),
        ("--scheme", "blitzstart:estimat=2", "estimat"),
        ("--scheme", "slow-start:iw=0", "1 to 100000"),
        ("--size", "0B", "1B to 1000GB"),
        ("--size", "-3MB", "unexpected argument"),
        ("--size", "2", "unit"),
        ("--competitor", "vegas", "`flowstart list competitors` shows all"),
        ("--competitor", "cubik", "did you mean `cubic`?"),
        ("--aqm", "blue", "`flowstart list aqms` shows all"),
        ("--aqm", "codle", "did you mean `codel`?"),
        ("--avoidance", "rneo", "did you mean `reno`?"),
        ("--transport", "tcp", "did you mean `model-tcp`?"),
        ("--transport", "model-quic:segmnt=3", "did you mean `segment`?"),
        ("--idle", "startpu", "did you mean `startup`?"),
        ("--move", "lte,att=1s", "`at` is missing"),
        ("--reps", "1000000000", "1 to 100000"),
        ("--reps", "0", "1 to 100000"),
        ("--flows", "0", "1 to 10000"),
    ] {
        let mut arguments =
            vec!["compare", "--link", "dsl-fast", "--size", "70KB", "--scheme", "slow-start", "--reps", "1"];
        match arguments.iter().position(|argument| *argument == field) {
            Some(place) => arguments[place + 1] = value,
            None => arguments.extend([field, value]),
        }
        // A value that starts with a dash is clap's to refuse.
        let output = flowstart(&arguments).assert().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(expected), "{field} {value}: {stderr}");
    }
}

#[test]
fn bad_scenarios_are_refused_with_file_and_line() {
    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("s.toml");
    let name = scenario.display().to_string();
    let good = "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\n";
    for (content, expected) in [
        (b"\x00\xff\x01binary".to_vec(), "not text"),
        (b"link = [".to_vec(), "line 1"),
        (format!("{good}repz = 3\n").into_bytes(), "repz"),
        (good.replace("dsl-fast", "dsl-fats").into_bytes(), "line 1"),
        (good.replace("70KB", "70QB").into_bytes(), "line 2"),
        (good.replace("slow-start", "slow-strat").into_bytes(), "line 3"),
        (format!("{good}reps = -1\n").into_bytes(), "line 4"),
        (format!("{good}flows = 0\n").into_bytes(), "flows"),
        (format!("{good}published = \"table 7\"\n").into_bytes(), "blitzstart-table1"),
        (b"".to_vec(), "link"),
    ] {
        fs::write(&scenario, &content).unwrap();
        let output = flowstart(&["run", &name]).assert().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(expected) && stderr.contains("s.toml"), "{expected}: {stderr}");
    }
    flowstart(&["run", "/does/not/exist.toml"]).assert().code(2);

    // The mark is at the field, though the same digits stand elsewhere; what no line says has none.
    let text = format!("title = \"0 to 9\"\n{good}flows = 0\n");
    fs::write(&scenario, &text).unwrap();
    flowstart(&["run", &name]).assert().code(2).stderr(predicates::str::contains("s.toml, line 5: flows `0`"));
    fs::write(&scenario, text.replace("flows = 0", "link_options = \"loss=0%\"")).unwrap();
    for given in [["--reps", "0"], ["--seed", "9223372036854775808"]] {
        let told = flowstart(&["run", &name, given[0], given[1]]).assert().code(2);
        told.stderr(predicates::str::starts_with(format!("error: {} `{}`: allowed is", given[0], given[1])));
    }
}

#[test]
fn a_link_has_the_name_that_the_user_gives_it() {
    let folder = TempDir::new().unwrap();
    let here = |arguments: &[&str]| flowstart(arguments).current_dir(&folder).assert();
    let cable = "cable=rate=20Mbps,rtt=30ms,buffer=1BDP";
    let base = ["--size", "70KB", "--scheme", "slow-start", "--reps", "1"];
    let compare = |links: &[&str], more: &[&str]| here(&[&["compare", "--link"], links, &base[..], more].concat());
    let output = compare(&[cable, "dsl-fast"], &["--out", "results", "--json"]).success();
    let summary: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let cell = &summary["cells"][0];
    let id = "cable/taildrop/70KB/slow-start/none";
    assert_eq!((&cell["id"], &cell["link"]), (&id.into(), &"cable".into()));
    let resolved = &cell["resolved"]["link"];
    assert_eq!(
        (&resolved["stands_for"], &resolved["rate"]),
        (&"rate=20Mbps,rtt=30ms,buffer=1BDP".into(), &"20mbit".into())
    );
    assert!(summary["cells"][1]["resolved"]["link"].get("stands_for").is_none());
    // Its results can be replayed by that name.
    here(&["trace", "--cell", id, "--from", "results"]).success();
    let output = here(&["explain", "--cell", id, "--from", "results"]).success();
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("moved 70KB over cable in"));
    // The same in a scenario.
    let scenario =
        format!("link = [\"{cable}\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 1\nnoise = true\n");
    fs::write(folder.path().join("s.toml"), &scenario).unwrap();
    let output = here(&["run", "s.toml", "--json"]).success();
    let run: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(&run["cells"][0]["metrics"], &cell["metrics"]);
    // A name of two links would make two cells of one name. What is refused leaves nothing behind.
    let told = compare(&[cable, "cable=rate=30mbit,rtt=30ms"], &["--out", "twice"]).code(2).stdout("");
    told.stderr(predicates::str::contains("link `cable`: two links have this name"));
    assert!(!folder.path().join("twice").exists());
}

#[test]
fn shipped_scenarios_run_by_name_from_anywhere() {
    let folder = TempDir::new().unwrap();
    let here = |arguments: &[&str]| flowstart(arguments).current_dir(&folder).assert();
    // A number of repetitions that is refused shows that the scenario was read, without the hours that it takes.
    let output = here(&["run", "blitzstart-table1", "--reps", "0"]).code(2);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("1 to 100000"));
    let output = here(&["run", "blitzstart-table2"]).code(2);
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("no such file") && stderr.contains("blitzstart-table1"), "{stderr}");
    // A file goes before a shipped scenario of its name.
    fs::write(folder.path().join("blitzstart-table1"), "link = [").unwrap();
    let output = here(&["run", "blitzstart-table1"]).code(2);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("line 1"));
}

#[test]
fn an_output_folder_with_other_things_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let precious = folder.path().join("precious.txt");
    fs::write(&precious, "do not touch").unwrap();
    let out = folder.path().display().to_string();
    run(&compare(&["--out", &out])).code(2);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "do not touch");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    run(&compare(&["--out", "/proc/flowstart"])).code(2);
}

#[test]
fn a_precision_is_a_part_of_the_speed_up_and_its_repetitions_can_be_replayed() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out").display().to_string();
    for (option, value, allowed) in [
        ("--precision", "0", "more than 0 and less than 100%"),
        ("--precision", "100%", "more than 0 and less than 100%"),
        ("--precision", "-1%", "more than 0 and less than 100%"),
        ("--precision", "nan", "more than 0 and less than 100%"),
        ("--max-reps", "2", "allowed is 5 to 100000"),
        ("--max-reps", "100001", "--max-reps `100001`: allowed is 5 to 100000"),
    ] {
        let precision = format!("--precision={}", if option == "--precision" { value } else { "1%" });
        let most = if option == "--max-reps" { value } else { "10" };
        let refused = run(&compare(&[&precision, "--max-reps", most])).code(2);
        refused.stderr(predicates::str::contains(allowed));
    }
    run(&compare(&["--max-reps", "10"])).code(2);
    run(&compare(&["--jobs", "1025"])).code(2).stderr(predicates::str::contains("allowed is 0 to 1024"));
    run(&compare(&["--precision", "0.01%", "--max-reps", "7", "--out", &out])).success();
    let summary: Value = serde_json::from_slice(&fs::read(folder.path().join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["reps"], 7);
    let note = summary["answer_notes"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    assert!(note.starts_with("After 7 repetitions, the limit, "), "{note}");
    let id = summary["cells"][1]["id"].as_str().unwrap();
    let capture = folder.path().join("last.pcapng");
    let replay = ["trace", "--cell", id, "--rep", "6", "--from", &out, "--pcap", capture.to_str().unwrap()];
    flowstart(&replay).assert().success();
}

#[test]
fn results_keep_the_contract_and_do_not_depend_on_the_number_of_threads() {
    let folder = TempDir::new().unwrap();
    let (first, second) = (folder.path().join("one"), folder.path().join("two"));
    for (out, jobs) in [(&first, "1"), (&second, "2")] {
        run(&compare(&["--out", &out.display().to_string(), "--jobs", jobs])).success();
    }
    for file in ["flows.csv", "flows.parquet", "summary.json", "manifest.json", "report.html"] {
        assert!(first.join(file).exists(), "{file}");
    }
    assert_eq!(fs::read(first.join("flows.csv")).unwrap(), fs::read(second.join("flows.csv")).unwrap());
    // The page also says how it was made, which differs; what it shows of runs that were simulated again does not.
    let charts = |folder: &Path| {
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        let charts: Vec<String> = page
            .split("class=\"spec\">{")
            .skip(1)
            .filter_map(|rest| Some(rest.split("</script>").next()?.to_owned()))
            .collect();
        assert!(charts.len() > 3, "{} charts", charts.len());
        charts
    };
    assert_eq!(charts(&first), charts(&second));
    // A link of a scenario file has no noise that the file does not ask for.
    let (scenario, regular) = (folder.path().join("regular.toml"), folder.path().join("regular"));
    let text = "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\n\
                competitor = [\"cubic\"]\nreps = 3\n";
    fs::write(&scenario, text).unwrap();
    flowstart(&["run", scenario.to_str().unwrap(), "--out", regular.to_str().unwrap()]).assert().success();
    assert_eq!(hash(&regular.join("flows.csv")), GOLDEN, "flows.csv changed: say why and commit the new hash");
    let manifest: Value = serde_json::from_slice(&fs::read(first.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["directory"], ".", "as the user gave it, not where this machine keeps it");
    let summary: Value = serde_json::from_slice(&fs::read(first.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["schema"], 1);
    assert!(summary["answer"].as_str().unwrap().contains("slow-start") && summary["answer_notes"].is_array());
    assert_eq!(summary["reps"], 3);
    let cell = &summary["cells"][1];
    assert_eq!(cell["resolved"]["link"]["access_jitter"], "1ms/1ms");
    let versus = &cell["vs_baseline"];
    assert_eq!((&versus["level"], versus["speedup_ci"].as_array().unwrap().len()), (&Value::from(0.95), 2));
    assert_eq!(
        versus["significant"] == true,
        ["faster", "faster-by-waste", "slower"].iter().any(|v| versus["verdict"] == *v)
    );
    for key in [
        "id",
        "link",
        "aqm",
        "size_bytes",
        "scheme",
        "avoidance",
        "competitor",
        "transport",
        "resolved",
        "n",
        "failed",
        "distinct",
        "lost_share",
        "ideal_fct_ms",
        "metrics",
        "exit_reasons",
        "others",
        "vs_baseline",
    ] {
        assert!(cell.get(key).is_some(), "{key}");
    }
    for name in [
        "fct_ms",
        "fct_request_ms",
        "dropped_packets",
        "declared_lost_packets",
        "spurious_packets",
        "retransmitted_bytes",
        "inflation",
        "goodput_mbps",
        "share",
        "max_queue_delay_ms",
        "p99_queue_delay_ms",
        "utilization",
        "exit_ms",
        "exit_cwnd_over_bdp",
        "overshoot_bytes",
    ] {
        let metric = &cell["metrics"][name];
        assert!(metric["mean"].is_number(), "{name}");
        assert!(metric["p99"].is_null(), "under 100 runs there is no 99th percentile");
    }
    assert_eq!(cell["vs_baseline"]["baseline"], summary["cells"][0]["id"]);
    assert!(summary["cells"][0]["vs_baseline"].is_null());

    // Every number can be traced.
    let id = cell["id"].as_str().unwrap().to_owned();
    let (from, out) = (first.display().to_string(), folder.path().join("trace").display().to_string());
    flowstart(&["trace", "--cell", &id, "--rep", "1", "--from", &from, "--out", &out]).assert().success();
    assert!(folder.path().join("trace/trace.html").exists());
    // The packets alone, once: nothing is overwritten.
    let capture = folder.path().join("alone.pcapng");
    let alone = ["trace", "--cell", &id, "--rep", "1", "--from", &from, "--pcap", capture.to_str().unwrap()];
    flowstart(&alone).assert().success().stdout("");
    assert_eq!(fs::read(&capture).unwrap(), fs::read(folder.path().join("trace/trace.pcapng")).unwrap());
    flowstart(&alone).assert().code(2).stderr(predicates::str::contains("nothing is overwritten"));
    // A cell of results is a link, a size and a scheme; another one beside it would be ignored.
    flowstart(&["explain", "--cell", &id, "--rep", "1", "--from", &from]).assert().success();
    flowstart(&["trace", "--cell", &id, "--from", &from, "--link", "3g"]).assert().code(2);
    flowstart(&["trace", "--cell", "nonsense", "--rep", "1", "--from", &from]).assert().code(2);
    flowstart(&["trace", "--cell", &id, "--rep", "99", "--from", &from]).assert().code(2);
}

#[test]
fn several_schemes_are_traced_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("overlay");
    let run = ["trace", "--link", "dsl-fast", "--size", "300KB", "--scheme"];
    let schemes = ["slow-start", "blitzstart:estimate=0.5", "blitzstart:estimate=0.5,rtt=min"];
    let shown = flowstart(&run).args(schemes).args(["--out", out.to_str().unwrap()]).assert().success();
    let shown = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
    assert!(
        shown.contains("blitzstart:estimate=0.5,rtt=min sent exactly what blitzstart:estimate=0.5 sent"),
        "{shown}"
    );
    let mut files: Vec<String> =
        fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let stems = ["blitzstart-estimate-0.5", "blitzstart-estimate-0.5-rtt-min", "slow-start"];
    let each = stems.iter().flat_map(|stem| [format!("trace-{stem}.pcapng"), format!("trace-{stem}.sqlog")]);
    let mut expected: Vec<String> = each.chain(["trace.csv".into(), "trace.html".into()]).collect();
    expected.sort();
    assert_eq!(files, expected);
    // The same table on stdout; and each run is that of its scheme alone.
    let table = fs::read_to_string(out.join("trace.csv")).unwrap();
    let printed = flowstart(&run).args(schemes).assert().success();
    assert!(table.as_bytes() == printed.get_output().stdout, "stdout differs from trace.csv");
    let alone = flowstart(&run).arg(schemes[0]).assert().success();
    let alone = String::from_utf8_lossy(&alone.get_output().stdout).into_owned();
    let rows = table.lines().filter_map(|line| line.strip_prefix("slow-start,"));
    assert!(rows.eq(alone.lines().skip(1)), "the run beside others differs from the run alone");
    // One file of packets cannot hold two runs.
    let packets = folder.path().join("packets.pcapng");
    let both = flowstart(&run).args(&schemes[..2]).args(["--pcap", packets.to_str().unwrap()]).assert();
    both.code(2).stderr(predicates::str::contains("one run"));
}

#[test]
fn a_cell_of_a_scheme_that_this_program_does_not_have_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("own");
    let compare = ["compare", "--link", "3g", "--size", "20KB", "--scheme", "slow-start", "--reps", "1", "--out"];
    flowstart(&compare).arg(&out).assert().success();
    // As a program with a scheme of its own would have written it.
    let manifest = out.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("slow-start", "half-of-the-hint");
    fs::write(&manifest, text).unwrap();
    let replay = ["trace", "--cell", "3g/taildrop/20KB/half-of-the-hint/none", "--from", out.to_str().unwrap()];
    let refused = flowstart(&replay).assert().code(2);
    refused.stderr(predicates::str::contains("half-of-the-hint").and(predicates::str::contains("does not have it")));
}

#[test]
fn a_run_is_explained_by_causes_that_add_up() {
    let single = ["explain", "--link", "dsl-fast", "--size", "2MB", "--competitor", "cubic", "--avoidance", "cubic"];
    let output = flowstart(&single).args(["--scheme", "slow-start", "--json"]).assert().success();
    let run: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((&run["cell"], &run["rep"]), (&"dsl-fast/taildrop/2MB/slow-start/cubic".into(), &0.into()));
    let causes = run["causes"].as_object().unwrap();
    let names: Vec<&str> = causes.keys().map(String::as_str).collect();
    let expected = "handshake unused_capacity flow_control own_queue others_queue recovery tail idle_time other";
    assert_eq!(names.join(" "), expected);
    let sum: f64 = causes.values().filter_map(Value::as_f64).sum();
    let excess = run["fct_ms"].as_f64().unwrap() - run["ideal_fct_ms"].as_f64().unwrap();
    assert!((sum - excess).abs() < 1e-6, "{sum} is not {excess}");
    assert!(causes["others_queue"].as_f64() > Some(0.0), "an established flow holds the queue");

    // A column for each scheme, an object for each.
    let both = [&single[..], &["--scheme", "slow-start", "blitzstart"]].concat();
    let output = flowstart(&both).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    for word in ["slow-start moved 2MB over dsl-fast in", "blitzstart, ms (%)", "unused capacity", "physical limit"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let output = flowstart(&both).arg("--json").assert().success();
    let runs: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((runs.as_array().map(Vec::len), &runs[0]), (Some(2), &run));
}

#[test]
fn a_move_needs_a_time_and_a_link_and_shows_in_the_cell() {
    let base = ["--link", "dsl-fast", "--size", "5MB", "--scheme", "slow-start", "--move"];
    let compare = |text: &str| flowstart(&["compare"]).args(base).args([text, "--reps", "1", "--json"]).assert();
    let output = compare("lte,at=500ms").success();
    let summary: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let cell = &summary["cells"][0];
    assert_eq!(cell["id"], "dsl-fast/taildrop/5MB/slow-start/none/move:lte,at=500ms");
    assert_eq!((&cell["move"], &cell["resolved"]["move"]["at"]), (&"lte,at=500ms".into(), &"500ms".into()));
    // Queue and link that are watched are those of the first path.
    assert!(cell["metrics"]["utilization"]["mean"].is_null());
    compare("lte").code(2);
    compare("at=1s").code(2);
    flowstart(&["trace"]).args(base).arg("lte,at=500ms").assert().success();
    flowstart(&["explain"]).args(base).arg("lte,at=500ms").assert().code(2);
    flowstart(&["trace", "--cell", "x", "--from", "y", "--move", "lte,at=1s"]).assert().code(2);
}

#[test]
fn stack_is_what_the_transport_does_by_itself() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("results").display().to_string();
    let base =
        ["--link", "dsl-fast", "--size", "70KB", "--scheme", "stack", "hystart:iw=3", "--transport", "model-tcp"];
    let output = flowstart(&["compare"]).args(base).args(["--reps", "2", "--out", &out, "--json"]).assert().success();
    let summary: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let cell = &summary["cells"][0];
    assert_eq!((&cell["id"], &cell["scheme"]), (&"dsl-fast/taildrop/70KB/stack/none".into(), &"stack".into()));
    assert_eq!(cell["avoidance"], "cubic");
    // What ran: the profile's own, and Linux's HyStart also where a scheme does not say which.
    for cell in 0..2 {
        let resolved = &summary["cells"][cell]["resolved"];
        let scheme = (&resolved["scheme"]["kind"], &resolved["scheme"]["variant"]);
        assert_eq!(scheme, (&"hystart".into(), &"linux".into()), "{resolved}");
        assert_eq!(resolved["avoidance"], resolved["transport"]["policies"]["avoidance"]);
    }
    let flows = fs::read_to_string(Path::new(&out).join("flows.csv")).unwrap();
    assert_eq!(flows.lines().filter(|line| line.split(',').any(|field| field == "stack")).count(), 2, "{flows}");
    flowstart(&["explain", "--cell", "dsl-fast/taildrop/70KB/stack/none", "--from", &out]).assert().success();
    let single = ["trace", "--link", "dsl-fast", "--size", "70KB", "--scheme", "stack"];
    flowstart(&single).assert().success();

    // Its congestion avoidance is not to be chosen, and the real stack has none of its own here.
    for (extra, expected) in [
        (["--avoidance", "reno"], "avoidance `reno`: the scheme stack has the transport's own, cubic; allowed is"),
        (["--transport", "quic"], "scheme `stack`: the real stack runs the controller of this program"),
    ] {
        let mut arguments = vec!["compare"];
        arguments.extend(&base[..if extra[0] == "--transport" { 7 } else { base.len() }]);
        arguments.extend(extra);
        let output = flowstart(&arguments).assert().code(2);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert!(stderr.contains(expected), "{stderr}");
    }
    // In a scenario, and in the list.
    let scenario = folder.path().join("stack.toml");
    let text = "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nscheme = [\"stack\", \"slow-start\"]\nreps = 1\n";
    fs::write(&scenario, text).unwrap();
    let output = flowstart(&["run", &scenario.display().to_string(), "--json"]).assert().success();
    let summary: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(summary["cells"][0]["resolved"]["scheme"]["kind"], "slow-start");
    let listed = flowstart(&["list", "schemes"]).assert().success();
    assert!(String::from_utf8_lossy(&listed.get_output().stdout).lines().any(|line| line.starts_with("stack ")));
}

#[test]
fn explain_shows_the_flow_that_is_named() {
    let of = |flow: &str| {
        let base = [
            "explain",
            "--link",
            "dsl-fast",
            "--size",
            "70KB",
            "--scheme",
            "slow-start",
            "--arrival",
            "every=30ms,flows=2",
        ];
        flowstart(&base).args(["--json", "--flow", flow]).assert()
    };
    let time = |flow: &str| {
        let output = of(flow).success();
        serde_json::from_slice::<Value>(&output.get_output().stdout).unwrap()["fct_ms"].as_f64().unwrap()
    };
    assert_ne!(time("0"), time("1"));
    of("2").code(2);
}

#[test]
fn explain_refuses_and_fails_as_trace_does() {
    for command in ["trace", "explain"] {
        let base = [command, "--link", "dsl-fast", "--size", "70KB", "--scheme", "slow-start"];
        let link = |link: &'static str| {
            let mut arguments = base;
            arguments[2] = link;
            flowstart(&arguments)
        };
        let output = link("dsl").assert().code(2);
        assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("dsl-slow"));
        flowstart(&base).args(["--rep", "30"]).assert().code(2);
        flowstart(&[command, "--link", "dsl-fast", "--size", "70KB"]).assert().code(2);
        flowstart(&[command, "--cell", "x", "--from", "/does/not/exist"]).assert().code(2);
        flowstart(&[command, "--cell", "x", "--from", ".", "--scheme", "slow-start"]).assert().code(2);
        // A wire that loses everything.
        link("rate=10mbit,rtt=20ms,buffer=100pkt,loss=1").assert().code(1);
    }
    let link = "rate=10mbit,rtt=20ms,buffer=100pkt,loss=1";
    let base = ["explain", "--link", link, "--size", "70KB", "--scheme", "slow-start"];
    let output = flowstart(&base).arg("--json").assert().code(1);
    let run: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert!(run["fct_ms"].is_null() && run["causes"].is_null());
    let output = flowstart(&base).assert().code(1);
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("slow-start did not finish 70KB over"));
}

#[test]
fn two_avoidances_that_nobody_chose_are_pointed_out_on_stderr() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let note = "the measured flows use reno, the competitor cubic: give --avoidance to choose";
    let output = run(&compare(&["--json", "--out", &out.display().to_string()])).success();
    let (stdout, stderr) = (&output.get_output().stdout, String::from_utf8_lossy(&output.get_output().stderr));
    assert!(stderr.contains(note), "{stderr}");
    assert!(serde_json::from_slice::<Value>(stdout).is_ok(), "stdout is for data");
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains(note));
    for chosen in ["cubic", "reno"] {
        let output = run(&compare(&["--avoidance", chosen])).success();
        assert!(output.get_output().stderr.is_empty());
    }
}

/// Hash of `flows.csv` of the comparison above.
const GOLDEN: u64 = 82_711_037_851_147_656;

/// The fields of a line of CSV without quotes in its fields.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(character),
        }
    }
    fields
}

/// What a run like that of `whole` leaves that is stopped after so many lines of its rows, the header among them.
fn interrupted(whole: &Path, lines: usize, half: &str) -> String {
    let manifest: Value = serde_json::from_slice(&fs::read(whole.join("manifest.json")).unwrap()).unwrap();
    let experiment = manifest["experiment"].to_string();
    let rows = fs::read_to_string(whole.join("flows.csv")).unwrap();
    let mut rows = rows.lines().take(lines);
    let mut journal = format!("#{experiment}\n{},checksum\n", rows.next().unwrap());
    for row in rows {
        let fields = fields(row);
        journal += &format!("{row},{}\n", checksum(&experiment, fields.iter().map(String::as_str)));
    }
    journal + half
}

#[cfg(unix)]
#[test]
fn a_run_that_is_killed_loses_at_most_the_repetition_in_progress() {
    use std::process::{Command as Program, Stdio};

    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("s.toml");
    let text = "link = [\"lte\"]\nsize = [\"3MB\"]\nscheme = [\"slow-start\", \"hystart\"]\nreps = 30\n";
    fs::write(&scenario, text).unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    let run = |out: &Path| {
        let mut run = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        run.arg("run").arg(&scenario).arg("--out").arg(out).args(["--jobs", "1"]).stdout(Stdio::null());
        run
    };
    let journal = part.join("flows.partial.csv");
    let rows_in_journal = || fs::read_to_string(&journal).unwrap_or_default().lines().count().saturating_sub(2);
    let mut known = 0;
    for _ in 0..2 {
        let mut child = run(&part).arg("--resume").spawn().unwrap();
        // However fast or slow the machine is, some repetitions are done then; a run that is complete is as good.
        while rows_in_journal() < known + 4 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let rows = fs::read_to_string(&journal).map_or(known, |text| text.lines().count().saturating_sub(2));
            assert!(rows >= known, "what is known stays on disk");
        }
        let _ = child.kill();
        child.wait().unwrap();
        if !journal.exists() {
            break;
        }
        known = rows_in_journal();
    }
    // More repetitions and other threads go on with the same rows.
    let reps = |mut run: Program, jobs: &str| run.args(["--reps", "31"]).arg(jobs).status().unwrap().success();
    assert!(reps(run(&part), "--resume") && reps(run(&whole), "--json"));
    let rows = |out: &Path| fs::read_to_string(out.join("flows.csv")).unwrap();
    assert_eq!(rows(&part), rows(&whole));
    assert!(!journal.exists());

    // Another scenario under the same name is refused, and nothing is lost.
    fs::write(&scenario, text.replace("reps", "link_options = \"loss=0.1%\"\nhint = false\nreps")).unwrap();
    let told = run(&part).arg("--resume").stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("link is `lte` as well") && stderr.contains("its hint is `true`, now it is `false`"),
        "{stderr}"
    );
    assert_eq!(rows(&part), rows(&whole));
}

#[test]
fn a_capture_needs_a_folder_that_is_there_or_that_of_the_trace() {
    let folder = TempDir::new().unwrap();
    let trace = |arguments: &[&str]| {
        let run = ["trace", "--link", "dsl-fast", "--size", "10KB", "--scheme", "slow-start"];
        flowstart(&[&run, arguments].concat()).current_dir(&folder).assert()
    };
    for more in [&[][..], &["--out", "out"]] {
        let told = trace(&[&["--pcap", "nowhere/x.pcapng"], more].concat()).code(2).stdout("");
        told.stderr(predicates::str::contains("--pcap `nowhere/x.pcapng`: there is no folder nowhere"));
        assert!(!folder.path().join("out").exists());
    }
    trace(&["--pcap", "out/x.pcapng", "--out", "out"]).success();
    trace(&["--pcap", "x.pcapng"]).success();
}

#[cfg(unix)]
#[test]
fn a_trace_that_is_interrupted_leaves_nothing_half_written() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command as Program, Stdio};

    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        for to_folder in [false, true] {
            let folder = TempDir::new().unwrap();
            let (out, capture) = (folder.path().join("out"), folder.path().join("run.pcapng"));
            let mut trace = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
            trace.args(["trace", "--link", "ethernet-100m", "--size", "20GB", "--scheme", "slow-start"]);
            if to_folder {
                trace.arg("--out").arg(&out);
            } else {
                trace.arg("--pcap").arg(&capture);
            }
            let mut child = trace.stdout(Stdio::null()).spawn().unwrap();
            let place = if to_folder { &out } else { folder.path() };
            let scratch = place.join(".flowstart.0");
            while fs::metadata(&scratch).map_or(0, |file| file.len()) == 0 {
                assert!(child.try_wait().unwrap().is_none());
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            assert!(Program::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            // The shell learns that it was the signal.
            assert_eq!(child.wait().unwrap().signal(), Some(number));
            let names: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(names.iter().all(|name| name == ".flowstart.lock"), "{names:?}");
        }
    }
}

#[test]
fn results_of_a_recording_that_changed_since_are_not_replayed() {
    let folder = TempDir::new().unwrap();
    let here = |arguments: &[&str]| flowstart(arguments).current_dir(&folder).assert();
    let recording = folder.path().join("cur.down");
    fs::write(&recording, "1\n2\n3\n").unwrap();
    let link = "trace=cur.down,rtt=50ms,buffer=100pkt";
    let described = ["--link", link, "--size", "70KB", "--scheme", "slow-start", "--reps", "1"];
    here(&[&["compare", "--out", "results"], &described[..]].concat()).success();
    let id = format!("{link}/taildrop/70KB/slow-start/none");
    let replay = |command: &str| here(&[command, "--cell", &id, "--from", "results"]);
    for command in ["trace", "explain"] {
        replay(command).success().stderr("");
    }
    fs::write(&recording, "1\n9\n").unwrap();
    for command in ["trace", "explain"] {
        let told = replay(command).code(2).stdout("");
        told.stderr(predicates::str::contains("manifest.json: is of another experiment: link is `trace=cur.down"));
    }
    fs::write(&recording, "1\n2\n3\n").unwrap();
    replay("explain").success();
    // Nor is an experiment that somebody wrote into the manifest since.
    let manifest = folder.path().join("results/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("seed = 1", "seed = 2")).unwrap();
    replay("trace").code(2).stderr(predicates::str::contains("its seed is `1`, now it is `2`"));
    // Another program may be what somebody wants to see.
    fs::write(&manifest, text.replace(env!("CARGO_PKG_VERSION"), "0.0.1")).unwrap();
    replay("trace").success().stderr(predicates::str::contains("its program is flowstart 0.0.1"));
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("s.toml");
    let text = "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 4\nflows = 2\n";
    fs::write(&scenario, text).unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    let file = scenario.display().to_string();
    flowstart(&["run", &file, "--out", &whole.display().to_string()]).assert().success();
    fs::create_dir(&part).unwrap();
    let rows = fs::read_to_string(whole.join("flows.csv")).unwrap();
    let resume = || flowstart(&["run", &file, "--resume", "--out", &part.display().to_string()]).assert().success();
    let journal = part.join("flows.partial.csv");
    // The header, a repetition with both flows, one flow of the next, and half a line.
    let half = interrupted(&whole, 4, "dsl-fast/tail");
    fs::write(&journal, &half).unwrap();
    // Who forgets to say so is told how to go on.
    let told = flowstart(&["run", &file, "--out", &part.display().to_string()]).assert().code(2);
    told.stderr(predicates::str::contains("holds an interrupted run of this experiment; --resume goes on with it"));
    assert_eq!(fs::read_to_string(&journal).unwrap(), half);
    resume().stderr(predicates::str::contains("1 of 4 runs are taken over from"));
    assert_eq!(fs::read_to_string(part.join("flows.csv")).unwrap(), rows);
    // Stopped between the results and the end: everything is in both files.
    fs::write(&journal, interrupted(&whole, 100, "")).unwrap();
    resume();
    assert_eq!(fs::read_to_string(part.join("flows.csv")).unwrap(), rows);
    // What cannot be of this program is refused, with the line.
    fs::write(&journal, interrupted(&whole, 2, "dsl-fast,what\n")).unwrap();
    let told = flowstart(&["run", &file, "--resume", "--out", &part.display().to_string()]).assert().code(2);
    told.stderr(predicates::str::contains("flows.partial.csv").and(predicates::str::contains("line: 4")));
    assert!(journal.exists() && fs::read_to_string(part.join("flows.csv")).unwrap() == rows);
    // Rows that do not say of which experiment they are do not count, and are kept.
    fs::write(&journal, &rows).unwrap();
    resume().stderr(predicates::str::contains("they are kept in"));
    assert_eq!(fs::read_to_string(part.join("flows.csv")).unwrap(), rows);
    assert_eq!(fs::read_to_string(part.join("flows.unknown.csv")).unwrap(), rows);
    // A second time beside the first.
    let fewer = rows.lines().take(3).collect::<Vec<_>>().join("\n") + "\n";
    fs::write(&journal, &fewer).unwrap();
    resume().stderr(predicates::str::contains("flows.unknown-2.csv"));
    assert_eq!(fs::read_to_string(part.join("flows.unknown.csv")).unwrap(), rows);
    assert_eq!(fs::read_to_string(part.join("flows.unknown-2.csv")).unwrap(), fewer);
    // Rows of another build of the program are not mixed with these.
    let manifest = part.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    fs::write(&manifest, text.replace(json["experiment"]["build"].as_str().unwrap(), "0123456789abcdef")).unwrap();
    let told = flowstart(&["run", &file, "--resume", "--out", &part.display().to_string()]).assert().code(2);
    told.stderr(predicates::str::contains("it is of another build of the program"));
}

#[test]
fn two_programs_do_not_share_a_folder() {
    use std::process::{Command as Program, Stdio};

    let folder = TempDir::new().unwrap();
    let scenario = folder.path().join("s.toml");
    let text = "link = [\"lte\"]\nsize = [\"3MB\"]\nscheme = [\"slow-start\", \"hystart\"]\nreps = 3000\n";
    fs::write(&scenario, text).unwrap();
    let (file, out) = (scenario.display().to_string(), folder.path().join("out").display().to_string());
    let mut first = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
    first.args(["run", &file, "--out", &out]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = first.spawn().unwrap();
    while !folder.path().join("out/flows.partial.csv").exists() && first.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let second = |more: &[&str]| flowstart(&[&["run", &file, "--out", &out], more].concat()).assert().code(2);
    let told = [second(&["--resume"]), second(&[])];
    first.kill().unwrap();
    first.wait().unwrap();
    for told in told {
        told.stderr(predicates::str::contains("another flowstart is at work in it"));
    }
    // What a program that was killed had locked is free.
    second(&[]).stderr(predicates::str::contains("--resume goes on with it"));
}

#[test]
fn arrivals_sizes_and_racing_transfers_are_cells_that_can_be_replayed_and_resumed() {
    let folder = TempDir::new().unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    let scenario = folder.path().join("s.toml");
    let text = "link = [\"dsl-fast\"]\nsize = [\"pareto:mean=50KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 2\n\
        competitor = [\"none\", \"short:count=2\"]\narrival = [\"together\", \"every=10ms,flows=3\", \"poisson:load=5mbit,flows=4\"]\n";
    fs::write(&scenario, text).unwrap();
    let file = scenario.display().to_string();
    flowstart(&["run", &file, "--out", &whole.display().to_string()]).assert().success();
    let rows = fs::read_to_string(whole.join("flows.csv")).unwrap();
    // (1 + 3 + 4) flows, 2 schemes, 2 competitors, 2 repetitions, and the header.
    assert_eq!(rows.lines().count(), 8 * 8 + 1);
    assert!(rows.lines().next().unwrap().ends_with(",others_extra_fct_ms"));
    fs::create_dir(&part).unwrap();
    fs::write(part.join("flows.partial.csv"), interrupted(&whole, 20, "")).unwrap();
    flowstart(&["run", &file, "--resume", "--out", &part.display().to_string()]).assert().success();
    assert_eq!(fs::read_to_string(part.join("flows.csv")).unwrap(), rows);
    let summary: Value = serde_json::from_slice(&fs::read(whole.join("summary.json")).unwrap()).unwrap();
    let cell = summary["cells"].as_array().unwrap().last().unwrap();
    assert_eq!(cell["arrival"], "poisson:load=5mbit,flows=4");
    assert_eq!((&cell["n"], &cell["resolved"]["flows"]), (&8.into(), &4.into()));
    assert!(cell["others"]["extra_fct_ms"]["mean"].is_number());
    assert!(summary["cells"][0].get("arrival").is_none(), "the default does not show");
    let id = cell["id"].as_str().unwrap();
    assert_eq!(id, "dsl-fast/taildrop/pareto:mean=50KB/blitzstart/short:count=2/poisson:load=5mbit,flows=4");
    flowstart(&["trace", "--cell", id, "--rep", "1", "--from", &whole.display().to_string()]).assert().success();
    for wrong in ["poisson", "every=x", "together:flows=0"] {
        run(&compare(&["--arrival", wrong])).code(2);
    }
}

#[test]
fn chunks_and_pages_have_times_of_their_objects_and_can_be_replayed_resumed_and_explained() {
    let folder = TempDir::new().unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    let scenario = folder.path().join("s.toml");
    let text = "link = [\"dsl-fast\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 2\nidle = [\"keep\", \"startup\"]\n\
        application = [\"chunks:size=100KB,interval=1s,count=3\", \"page:objects=3,size=20KB,waves=2\"]\n";
    fs::write(&scenario, text).unwrap();
    let file = scenario.display().to_string();
    flowstart(&["run", &file, "--out", &whole.display().to_string()]).assert().success();
    let rows = fs::read_to_string(whole.join("flows.csv")).unwrap();
    // Two applications, two policies, two schemes, two repetitions, and the header.
    assert_eq!(rows.lines().count(), 2 * 2 * 2 * 2 + 1);
    let last = ",first_object_fct_ms,later_objects_fct_ms,mean_object_fct_ms,worst_object_fct_ms";
    assert!(rows.lines().next().unwrap().ends_with(last));
    fs::create_dir(&part).unwrap();
    fs::write(part.join("flows.partial.csv"), interrupted(&whole, 8, "")).unwrap();
    flowstart(&["run", &file, "--resume", "--out", &part.display().to_string()]).assert().success();
    assert_eq!(fs::read_to_string(part.join("flows.csv")).unwrap(), rows);
    let summary: Value = serde_json::from_slice(&fs::read(whole.join("summary.json")).unwrap()).unwrap();
    let cells = summary["cells"].as_array().unwrap();
    let (video, page) = (&cells[3], &cells[7]);
    let id = "dsl-fast/taildrop/chunks:size=100KB,interval=1s,count=3/blitzstart/none/idle=startup";
    assert_eq!((&video["id"], &video["idle"]), (&id.into(), &"startup".into()));
    assert_eq!(
        (&page["application"], &page["size_bytes"]),
        (&"page:objects=3,size=20KB,waves=2".into(), &120_000.into())
    );
    // A viewer feels the chunks, a reader the page.
    let mean = |cell: &Value, metric: &str| cell["metrics"][metric]["mean"].as_f64().unwrap();
    for (cell, base, felt) in [(video, &cells[2], "mean_object_fct_ms"), (page, &cells[6], "fct_ms")] {
        let speedup = cell["vs_baseline"]["speedup"].as_f64().unwrap();
        assert!((speedup - mean(base, felt) / mean(cell, felt)).abs() < 1e-9);
    }
    for cell in cells {
        assert!(mean(cell, "fct_ms") >= cell["ideal_fct_ms"].as_f64().unwrap(), "{cell}");
        assert!(mean(cell, "worst_object_fct_ms") >= mean(cell, "mean_object_fct_ms"), "{cell}");
    }
    let from = whole.display().to_string();
    flowstart(&["trace", "--cell", id, "--rep", "1", "--from", &from]).assert().success();
    flowstart(&["explain", "--cell", id, "--rep", "1", "--from", &from]).assert().success();
    let described =
        ["explain", "--link", "lte", "--scheme", "suss", "--application", "page:objects=3,size=20KB,waves=2"];
    flowstart(&described).assert().success();
    for wrong in [["--application", "film"], ["--application", "page:objects=1,size=1KB,waves=1"], ["--idle", "sleep"]]
    {
        run(&compare(&wrong)).code(2);
    }
}

#[test]
fn of_results_with_several_connections_those_with_one_can_be_replayed() {
    let folder = TempDir::new().unwrap();
    let from = folder.path().join("out").display().to_string();
    let pages = ["page:objects=3,size=20KB,waves=2,http=1.1", "page:objects=3,size=20KB,waves=2,http=2"];
    let arguments = ["compare", "--link", "lte", "--scheme", "slow-start", "--transport", "model-tcp", "--reps", "1"];
    let arguments = [&arguments[..], &["--out", &from, "--application"], &pages].concat();
    flowstart(&arguments).assert().success();
    let id = |page: &str| format!("lte/taildrop/{page}/slow-start/none");
    flowstart(&["trace", "--cell", &id(pages[1]), "--from", &from]).assert().success();
    flowstart(&["explain", "--cell", &id(pages[1]), "--from", &from]).assert().success();
    let refused = flowstart(&["trace", "--cell", &id(pages[0]), "--from", &from]).assert().code(2);
    refused.stderr(predicates::str::contains("has connections of HTTP/1.1"));
}

#[test]
fn a_transfer_that_cannot_finish_is_counted_and_named() {
    // A wire that loses everything lets no handshake through.
    let link = "rate=10mbit,rtt=20ms,buffer=100pkt,loss=1";
    let arguments = ["compare", "--link", link, "--size", "70KB", "--scheme", "slow-start", "--reps", "2", "--json"];
    let output = flowstart(&arguments).assert().code(1);
    let summary: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((&summary["cells"][0]["n"], &summary["cells"][0]["failed"]), (&Value::from(0), &Value::from(2)));
    assert!(summary["cells"][0]["metrics"]["fct_ms"]["mean"].is_null());
    let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(stderr.contains("--rep 1") && stderr.contains("seed"), "{stderr}");
}

#[test]
fn the_list_of_congestion_avoidance_names_the_versions_of_bbr() {
    let output = flowstart(&["list", "avoidance", "bbr"]).assert().success();
    let bbr = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert!(bbr.contains("BBRv3, or BBRv1") && bbr.contains("version: default 3\n      Which BBR, 1 or 3."), "{bbr}");
}

#[test]
fn listings_and_help_work_everywhere() {
    // Neither the scenarios nor anything else depends on the folder that a user is in.
    let elsewhere = TempDir::new().unwrap();
    let more = ["link-options", "competitors", "applications"];
    let lists = ["schemes", "avoidance", "aqms", "links", "transports", "scenarios", "metrics"].into_iter().chain(more);
    for what in lists {
        let plain = flowstart(&["list", what]).current_dir(&elsewhere).assert().success();
        let plain = String::from_utf8_lossy(&plain.get_output().stdout).into_owned();
        let json = flowstart(&["list", what, "--json"]).current_dir(&elsewhere).assert().success();
        let json: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
        let names = json.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap());
        let first_words = plain.lines().map(|line| line.split_whitespace().next().unwrap());
        assert!(names.eq(first_words), "a line per entry, the name first: {plain}");
        assert!(!plain.contains(['\t', '│', '─']), "{plain}");
        let output = flowstart(&["list", what, "--json"]).assert().success();
        let list: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
        assert!(list.as_array().is_some_and(|entries| !entries.is_empty()));
    }
    for command in ["compare", "run", "trace", "explain", "list", "oracle", "validate"] {
        let output = flowstart(&[command, "--help"]).assert().success();
        assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("Examples"), "{command}");
    }
    let usage = |command: &str| {
        let output = flowstart(&[command, "--help"]).assert().success();
        let help = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        help.lines()
            .skip_while(|line| !line.starts_with("Usage"))
            .take_while(|line| !line.is_empty())
            .collect::<String>()
    };
    for option in ["--link <LINK>", "--size <SIZE>", "--scheme <SCHEME>"] {
        for command in ["compare", "trace", "explain"] {
            assert!(usage(command).contains(option), "{command} {option}");
        }
    }
    for command in ["trace", "explain"] {
        assert!(usage(command).contains("--cell <ID> --from <DIR>"), "{command}");
    }
    let output = flowstart(&["validate", "--help"]).assert().success();
    let help = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    let words: Vec<&str> = help.split([' ', ',', '\n', '.']).collect();
    for name in flowstart_validate::ENTRIES.iter().map(|entry| entry.name) {
        assert!(words.contains(&name), "{name} is not in the help: {help}");
    }
    flowstart(&["validate", "no-such-entry"]).assert().code(2);
    let output = flowstart(&["validate", "ns2-chain", "--json"]).assert().success();
    let verdicts: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((&verdicts[0]["name"], &verdicts[0]["status"]), (&"ns2-chain".into(), &"pass".into()));
}

#[test]
fn recorded_cellular_links_can_be_used() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if !traces.exists() {
        println!("skipped: {} does not exist", traces.display());
        return;
    }
    let file = traces.join("TMobile-LTE-short.down").canonicalize().unwrap();
    let link = format!("trace={},rtt=60ms,buffer=200pkt", file.display());
    let arguments = ["compare", "--link", &link, "--size", "2MB", "--scheme", "slow-start", "hystart", "--reps", "2"];
    flowstart(&arguments).assert().success();
}
