use super::*;
use crate::experiment;
use crate::results::files;
use crate::study::scenario::Scenario;

const TEXT: &str =
    "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 3\nflows = 2\n";

fn plan(text: &str) -> Plan {
    Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap()
}

fn rows(plan: &Plan) -> Vec<Row> {
    experiment::execute(plan, 1, &[], |_| {}).unwrap()
}

/// The journal of all rows of a plan, and the plan.
fn whole(folder: &Path) -> (Plan, Vec<Row>, PathBuf) {
    let plan = plan(TEXT);
    let rows = rows(&plan);
    Journal::open(folder, &plan, &[]).unwrap().add(&rows).unwrap();
    (plan, rows, folder.join(JOURNAL))
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("flowstart-journal-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Rows in the order of [`earlier`].
fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| (&a.cell, a.rep, a.flow).cmp(&(&b.cell, b.rep, b.flow)));
    rows
}

fn problem(folder: &Path, plan: &Plan) -> String {
    earlier(folder, plan).unwrap_err().to_string()
}

#[test]
fn what_was_written_is_read_and_a_larger_number_of_repetitions_goes_on_with_it() {
    let folder = Folder::new("whole");
    let (plan, rows, journal) = whole(&folder.0);
    assert_eq!(earlier(&folder.0, &plan).unwrap().rows, sorted(rows.clone()));
    let more = Plan { reps: 5, ..plan.clone() };
    assert_eq!(earlier(&folder.0, &more).unwrap().rows, sorted(rows.clone()));
    let fewer = Plan { reps: 2, ..plan.clone() };
    assert!(problem(&folder.0, &fewer).contains("rep is 2; allowed is 0 to 1, or --reps 3 and more"));
    // Half a line and half a repetition at the end are run again.
    let text = fs::read_to_string(&journal).unwrap();
    for (cut, left) in [(10, 10), (text.lines().last().unwrap().len() + 11, 10), (1, 10)] {
        fs::write(&journal, &text[..text.len() - cut]).unwrap();
        let found = earlier(&folder.0, &plan).unwrap().rows;
        assert_eq!(found.len(), left, "{cut}");
        assert!(found.iter().all(|row| rows.contains(row)));
    }
    for begin in ["", "#", "#{\"program\""] {
        fs::write(&journal, begin).unwrap();
        assert_eq!(earlier(&folder.0, &plan).unwrap().rows, [], "`{begin}`");
    }
}

#[test]
fn another_experiment_is_refused_and_told_apart() {
    let folder = Folder::new("other");
    whole(&folder.0);
    for (from, to, name) in [
        ("\"lte\"", "\"3g\"", "its link is `lte`, now it is `3g`"),
        ("reps", "link_options = \"loss=1%\"\nreps", "link is `lte` as well, but means something else"),
        ("70KB", "80KB", "its size is `70KB`, now it is `80KB`"),
        ("blitzstart", "jump-start", "its scheme is `slow-start blitzstart`, now it is `slow-start jump-start`"),
        ("reps", "avoidance = \"cubic\"\nreps", "its avoidance is `reno`, now it is `cubic`"),
        ("reps", "aqm = [\"codel\"]\nreps", "its aqm is `taildrop`, now it is `codel`"),
        ("reps", "competitor = [\"bulk\"]\nreps", "its competitor is `none`, now it is `bulk`"),
        ("reps", "transport = \"model-tcp\"\nreps", "its transport is `model-quic`, now it is `model-tcp`"),
        ("reps", "arrival = [\"every=1ms\"]\nreps", "its arrival is `together`, now it is `every=1ms`"),
        ("reps", "idle = [\"keep\"]\nreps", "its idle is ``, now it is `keep`"),
        ("reps", "move = [\"lte,at=1s\"]\nreps", "its move is `none`, now it is `lte,at=1s`"),
        ("flows = 2", "flows = 3", "its flows is `2`, now it is `3`"),
        ("reps", "hint = false\nreps", "its hint is `true`, now it is `false`"),
        ("reps", "seed = 2\nreps", "its seed is `1`, now it is `2`"),
    ] {
        let found = problem(&folder.0, &plan(&TEXT.replace(from, to)));
        assert!(found.contains(name) && found.contains("is of another experiment"), "{to}: {found}");
    }
    let now = Identity::of(&plan(TEXT));
    let then = Identity { program: "0.0.1".into(), ..now.clone() };
    assert!(then.differences(&now)[0].starts_with("its program is flowstart 0.0.1, this is "));
    // Two builds of one version may behave differently.
    let then = Identity { build: "0123456789abcdef".into(), ..now.clone() };
    assert!(then.differences(&now)[0].starts_with("it is of another build of the program (0123456789abcdef, this is "));
    assert_eq!(now.differences(&now), Vec::<String>::new());
    // Rows that are not simulated depend on the machine, but the question does not.
    let then = Identity { conditions: BTreeMap::from([("kernel".to_owned(), "6.1.0".to_owned())]), ..now.clone() };
    let later = Identity { conditions: BTreeMap::from([("kernel".to_owned(), "6.18.2".to_owned())]), ..now.clone() };
    assert_eq!(then.differences(&later), ["its kernel was 6.1.0, now it is 6.18.2"]);
    assert_eq!(then.differences(&now), ["its kernel was 6.1.0, now it is unknown"]);
    assert_eq!(then.edits(&now), Vec::<String>::new());
}

#[test]
fn the_content_of_a_recording_counts_and_its_place_does_not() {
    let (here, there) = (Folder::new("here"), Folder::new("there"));
    let text = TEXT.replace("\"lte\"", "\"trace=down,up_trace=up,rtt=50ms,buffer=100pkt\"");
    let identity = |folder: &Folder, down: &str, up: &str| {
        fs::write(folder.0.join("down"), down).unwrap();
        fs::write(folder.0.join("up"), up).unwrap();
        Identity::of(&Scenario::from_text(&text).unwrap().plan(&folder.0).unwrap())
    };
    let first = identity(&here, "1\n2\n", "1\n2\n");
    assert_eq!(first, identity(&there, "1\n2\n", "1\n2\n"));
    for (down, up) in [("1\n3\n", "1\n2\n"), ("1\n2\n", "1\n3\n")] {
        assert_eq!(first.differences(&identity(&there, down, up)).len(), 1);
    }
}

#[test]
fn a_row_that_this_program_could_not_have_written_is_refused() {
    let folder = Folder::new("rows");
    let (plan, _, journal) = whole(&folder.0);
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let header: Vec<&str> = lines[1].split(',').collect();
    // The sixth row with one value changed, and the checksum of the changed row.
    let with = |column: &str, value: &str| {
        let mut fields: Vec<&str> = lines[7].split(',').collect();
        fields[header.iter().position(|name| *name == column).unwrap()] = value;
        let last = fields.len() - 1;
        let checksum = checksum(&lines[0][1..], fields[..last].iter().copied());
        fields[last] = &checksum;
        let line = fields.join(",");
        let mut lines = lines.clone();
        lines[7] = &line;
        lines.join("\n") + "\n"
    };
    let (twice, long) = (format!("{text}{}\n", lines[3]), format!("{text}{},1\n", lines[3]));
    for (changed, expected) in [
        (with("cell", "lte/taildrop/70KB/search/none"), "line 8: no cell is `lte/taildrop/70KB/search/none`"),
        (with("rep", "3"), "line 8: rep is 3; allowed is 0 to 2"),
        (with("rep", "-1"), "line 8"),
        (with("flow", "2"), "line 8: flow is 2; allowed is 0 to 1"),
        (with("seed", "7"), "line 8: seed is 7"),
        (with("scheme", "search"), "line 8: scheme is `search`"),
        (with("status", "fine"), "line 8: status is `fine`; allowed are ok, time-limit, stalled"),
        (with("fct_ms", "NaN"), "line 8: fct_ms is NaN"),
        (with("ideal_fct_ms", "inf"), "line 8: ideal_fct_ms is inf"),
        (with("fct_ms", "soon"), "line 8"),
        (with("dropped_packets", ""), "line 8"),
        (with("fct_ms", "-5"), "line 8: fct_ms is -5; allowed is 0 to 18446744073709"),
        (with("fct_ms", "1e300"), "line 8: fct_ms is 1e300"),
        (with("fct_ms", ""), "line 8: fct_ms is missing"),
        (with("share", "77"), "line 8: share is 77; allowed is 0 to 1"),
        (with("utilization", "-3"), "line 8: utilization is -3"),
        (with("size_bytes", "80000"), "line 8: size_bytes is 80000; that of the cell is 70000"),
        (with("dropped_packets", &u64::MAX.to_string()), "line 8: dropped_packets is 18446744073709551615"),
        (with("exit_reason", "<script>"), "line 8: exit_reason is `<script>`"),
        (twice, "line 15: this flow of this repetition is there twice"),
        (long, "15"),
        (text.replace("status", "state"), "its columns are not those"),
        (text.replacen("lte/", "l\u{0}te/", 1), "line 3: checksum is"),
    ] {
        fs::write(&journal, &changed).unwrap();
        let found = problem(&folder.0, &plan);
        assert!(found.contains(expected) && found.contains(JOURNAL), "{expected}: {found}");
    }
    fs::write(&journal, [text.as_bytes(), b"\xff\xfe,\n"].concat()).unwrap();
    assert!(problem(&folder.0, &plan).contains("line 15: not text"));
}

#[test]
fn a_digit_that_changed_is_found() {
    let folder = Folder::new("digits");
    let (plan, rows, journal) = whole(&folder.0);
    let text = fs::read_to_string(&journal).unwrap();
    let begin = text.rfind('\n').map(|end| text[..end].rfind('\n').unwrap() + 1).unwrap();
    let mut places = 0;
    for (place, digit) in text[begin..].char_indices().filter(|(_, one)| one.is_ascii_digit()) {
        let mut changed = text.clone().into_bytes();
        changed[begin + place] = if digit == '7' { b'8' } else { b'7' };
        fs::write(&journal, &changed).unwrap();
        assert!(problem(&folder.0, &plan).contains("line 14: checksum is `"), "{place}");
        places += 1;
    }
    assert!(places > 50, "{places}");
    // A row of another experiment does not count either.
    let other = Plan { hint: !plan.hint, ..plan.clone() };
    Journal::open(&folder.0, &other, &rows).unwrap();
    let foreign = fs::read_to_string(&journal).unwrap();
    let swapped = format!("{}\n{}", text.split_once('\n').unwrap().0, foreign.split_once('\n').unwrap().1);
    fs::write(&journal, swapped).unwrap();
    assert!(problem(&folder.0, &plan).contains("line 3: checksum is `"));
}

#[test]
fn rows_that_belong_to_nobody_are_set_aside_or_refused() {
    let folder = Folder::new("nobody");
    let (plan, rows, journal) = whole(&folder.0);
    let nameless = |rows: &[Row]| {
        files::write_rows(&folder.0, rows).unwrap();
        fs::rename(folder.0.join("flows.csv"), &journal).unwrap();
        fs::read_to_string(&journal).unwrap()
    };
    let mut kept = Vec::new();
    for rows in [&rows[..], &rows[1..], &rows[2..]] {
        let text = nameless(rows);
        let found = earlier(&folder.0, &plan).unwrap();
        assert_eq!(found.rows, []);
        kept.push((found.set_aside.unwrap(), text));
        // No such journal overwrites another.
        for (file, text) in &kept {
            assert_eq!(fs::read_to_string(file).unwrap(), *text);
        }
    }
    assert!(kept[2].0.ends_with("flows.unknown-3.csv"), "{:?}", kept[2].0);
    // Beside files of unknown origin they stay where they are.
    fs::write(folder.0.join("report.html"), "precious").unwrap();
    nameless(&rows);
    assert!(problem(&folder.0, &plan).contains("report.html`: there is no manifest.json"));
    fs::remove_file(folder.0.join("report.html")).unwrap();
    assert!(journal.exists());
    fs::remove_file(&journal).unwrap();
    // Results without a manifest could belong to any experiment, unless the journal still exists.
    files::write_rows(&folder.0, &rows).unwrap();
    assert!(problem(&folder.0, &plan).contains("there is no manifest.json"));
    let manifest = folder.0.join(MANIFEST);
    let old = r#"{"version":"0.0.1","command":[],"scenario":"","directory":".","seed":1,"host":"","wall_time_s":1,"unix_time_s":1,"files":[]}"#;
    fs::write(&manifest, old).unwrap();
    let told = problem(&folder.0, &plan);
    assert!(told.contains("manifest.json is of an older program, which did not say"), "{told}");
    fs::remove_file(&manifest).unwrap();
    Journal::open(&folder.0, &plan, &[]).unwrap();
    assert_eq!(earlier(&folder.0, &plan).unwrap().rows, sorted(rows.clone()));
    // The same flow with two results.
    let mut other = rows;
    other[2].dropped_packets += 1;
    Journal::open(&folder.0, &plan, &other).unwrap();
    assert!(problem(&folder.0, &plan).contains("differs from that in flows.partial.csv"));
}

#[test]
fn digits_of_a_checksum_are_no_number() {
    let folder = Folder::new("infinite");
    let (plan, mut rows, journal) = whole(&folder.0);
    // Some values give a checksum that a number parser takes for infinity.
    let looks_infinite = |word: &str| word.parse().is_ok_and(|number: f64| number.is_infinite());
    for dropped in 0.. {
        rows[0].dropped_packets = dropped;
        Journal::open(&folder.0, &plan, &rows[..1]).unwrap();
        let text = fs::read_to_string(&journal).unwrap();
        if text.lines().any(|line| line.rsplit(',').next().is_some_and(looks_infinite)) {
            break;
        }
        assert!(dropped < 200_000, "one in 1500 does");
    }
    earlier(&folder.0, &plan).unwrap();
}

#[test]
fn results_that_the_manifest_was_not_written_for_are_refused() {
    let folder = Folder::new("sealed");
    let (plan, rows, journal) = whole(&folder.0);
    let manifest = Manifest {
        version: String::new(),
        command: Vec::new(),
        scenario: String::new(),
        directory: PathBuf::new(),
        seed: 1,
        host: String::new(),
        wall_time_s: 0.0,
        unix_time_s: 0,
        files: Vec::new(),
        experiment: Some(Identity::of(&plan)),
        own: Vec::new(),
        rows: None,
    };
    let summary = crate::results::summary::summarize(&plan, &rows);
    files::write_results(&folder.0, &rows, &summary, &manifest).unwrap();
    fs::remove_file(&journal).unwrap();
    assert_eq!(earlier(&folder.0, &plan).unwrap().rows, sorted(rows.clone()));
    let mut faster = rows.clone();
    faster[0].fct_ms = Some(1.0);
    files::write_rows(&folder.0, &faster).unwrap();
    assert!(problem(&folder.0, &plan).contains("is not the file that manifest.json was written for"));
    // Without its checksum an edited file would look like the one that was written.
    fs::write(folder.0.join(MANIFEST), serde_json::to_string(&manifest).unwrap()).unwrap();
    assert!(problem(&folder.0, &plan).contains("rows is missing"));
    files::write_results(&folder.0, &rows, &summary, &manifest).unwrap();
    files::write_rows(&folder.0, &faster).unwrap();
    // The rows of a run that stopped between the two are in its journal.
    Journal::open(&folder.0, &plan, &rows).unwrap();
    assert_eq!(earlier(&folder.0, &plan).unwrap().rows, sorted(rows));
}

#[test]
fn connections_are_complete_when_all_that_they_tell_of_are_there() {
    let folder = Folder::new("connections");
    let text = "link = [\"rate=10mbit,rtt=80ms,quick_start=target\"]\nlink_options = \"hops=2,buffer=150pkt\"\nreps = 2\n\
                application = [\"web:sessions=2,run=10s,rows=connections\"]\nscheme = [\"slow-start:iw=3\", \"quick-start:iw=3\"]\n\
                transport = \"model-tcp:profile=ns2-sack1\"";
    let plan = plan(text);
    let rows = rows(&plan);
    assert!(rows.len() > 20, "{}", rows.len());
    let mut journal = Journal::open(&folder.0, &plan, &[]).unwrap();
    let of_rep = |rep: u64| rows.iter().filter(move |row| row.rep == rep).cloned().collect::<Vec<_>>();
    journal.add(&of_rep(0)).unwrap();
    let (first, second) = (of_rep(0), of_rep(1));
    journal.add(&second[..second.len() - 1]).unwrap();
    let found = earlier(&folder.0, &plan).unwrap().rows;
    let unfinished = &second.last().unwrap().cell;
    let complete = first.into_iter().chain(second.iter().filter(|row| row.cell != *unfinished).cloned());
    assert_eq!(found, sorted(complete.collect()));
    let done = std::sync::atomic::AtomicUsize::new(0);
    let again = experiment::execute(&plan, 1, &found, |_| {
        done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!((again.unwrap(), done.into_inner()), (rows, 1), "one repetition is run again");
}

#[cfg(unix)]
#[test]
fn a_journal_is_replaced_and_never_emptied() {
    use std::io::{Read, Seek};

    let folder = Folder::new("replaced");
    let (plan, rows, journal) = whole(&folder.0);
    let text = fs::read_to_string(&journal).unwrap();
    let mut before = File::open(&journal).unwrap();
    Journal::open(&folder.0, &plan, &rows[..4]).unwrap();
    // Whoever still has the old file finds everything in it.
    let mut kept = String::new();
    before.rewind().unwrap();
    before.read_to_string(&mut kept).unwrap();
    assert_eq!(kept, text);
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 2 + 4);
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_or_too_large_is_not_read() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("irregular");
    let plan = plan(TEXT);
    for name in [JOURNAL, MANIFEST, "flows.csv"] {
        let file = folder.0.join(name);
        if name == "flows.csv" {
            // The manifest identifies the experiment of the results.
            Journal::open(&folder.0, &plan, &[]).unwrap();
        }
        // A pipe without a writer would block the program forever, a device would fill its memory.
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert!(problem(&folder.0, &plan).contains(&format!("{name}`: is not a regular file")));
        fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        assert!(problem(&folder.0, &plan).contains(&format!("{name}`: is not a regular file")));
        fs::remove_file(&file).unwrap();
        // Holes take no room on disk.
        File::create(&file).unwrap().set_len(LARGEST + 1).unwrap();
        let told = problem(&folder.0, &plan);
        assert!(told.contains(name) && told.contains("; allowed is "), "{told}");
        fs::remove_file(&file).unwrap();
    }
}

/// A disk may be full for a while.
#[test]
fn rows_that_could_not_be_written_follow_with_the_next() {
    let folder = Folder::new("behind");
    let (plan, rows, journal) = whole(&folder.0);
    let whole = fs::read_to_string(&journal).unwrap();
    let mut kept = Journal::open(&folder.0, &plan, &[]).unwrap();
    let writable = std::mem::replace(&mut kept.file, File::open(&journal).unwrap());
    let mut all = rows.chunks(1);
    assert!(kept.add(all.next().unwrap()).is_err() && kept.add(all.next().unwrap()).is_err() && kept.is_behind());
    // What a failed write left.
    (&writable).write_all(b"half a li").unwrap();
    kept.file = writable;
    all.for_each(|rows| kept.add(rows).unwrap());
    assert!(!kept.is_behind());
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(lines(&fs::read_to_string(&journal).unwrap()), lines(&whole));
    assert_eq!(earlier(&folder.0, &plan).unwrap().rows, sorted(rows));
}
