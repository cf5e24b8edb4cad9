//! `flowstart analyze`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_serve::analyze::log::{self, Connection, LogError, OfPath};
use flowstart_serve::analyze::{
    Analysis, Comparison, FEWEST_AT_EVERY_LOOK, Group, QuantileRatio, UnknownBaseline, analyze, metrics,
};
use flowstart_serve::printable;
use serde_json::json;

use crate::attention::Waiting;
use crate::failure::{FAILED, Failure};
use crate::output::{fitted, number, print, progress, width, wrapped};

/// Suffixes of the files that are read in a folder: qlog of `flowstart serve`, and metrics.
const EXTENSIONS: [&str; 2] = ["sqlog", "prom"];
/// Suffixes of qlog files, also of other programs: records one after the other, and one object.
const QLOG: [&str; 2] = ["sqlog", "qlog"];
/// Most connections that can be planned.
const MOST_PLANNED: u64 = 1_000_000_000_000_000_000;
/// How many unusable files, and how many that are skipped, are named; more are only counted.
const TOLD: usize = 10;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart serve --self-signed --startup slow-start --ab 0.5=blitzstart \\
    --qlog logs
  flowstart analyze logs
  flowstart analyze logs/*.sqlog --baseline slow-start --json
  curl -s http://127.0.0.1:9100/metrics > before.prom
  sleep 3600
  curl -s http://127.0.0.1:9100/metrics > after.prom
  flowstart analyze before.prom after.prom --baseline slow-start

Compares the schemes of connections: the time from a request until its answer was acknowledged, and the share of \
lost packets. A connection counts once for each size of answer.

The files are the qlog files of `flowstart serve --qlog`, or answers of its --metrics address to /metrics. In a \
folder, all files that end in .sqlog or .prom are read. qlog files and metrics cannot be mixed.

Metrics say less. Their sizes are classes. Their quantiles are the two bounds of the histogram between which they \
lie. Their intervals hold for many connections (Student's t). With several scrapes of one server, the \
difference between the first and the last counts. Servers are added. Exit code: 0 done, 1 a file could not be used, \
2 bad input.")]
pub(crate) struct Arguments {
    /// qlog files or metrics, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The baseline scheme. Without it, the scheme that most connections had.
    #[arg(long, value_name = "SCHEME")]
    baseline: Option<String>,
    /// Intervals that hold at every look, tightest with N connections.
    ///
    /// Without it, intervals hold for a result that is looked at once. Who looks again and again, and stops at the
    /// first difference, errs more often than 5 % of the time. `flowstart trial plan` says how many it takes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_PLANNED))]
    planned: Option<u64>,
    /// Tell the clients' networks apart.
    ///
    /// As `serve --qlog-networks` wrote them: the 20 with most connections; all others are one.
    #[arg(long)]
    by_network: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = files(&arguments.files, &EXTENSIONS)?;
    let of_metrics: Vec<bool> = files.iter().map(|file| is_metrics(file)).collect();
    let (analysis, unusable) = match of_metrics.iter().position(|metrics| *metrics) {
        None => of_logs(&files, arguments)?,
        Some(_) if arguments.planned.is_some() => {
            return Err(Failure::Input("--planned: metrics do not say how times scatter; give qlog files".into()));
        }
        Some(_) if arguments.by_network => {
            return Err(Failure::Input("--by-network: metrics have no networks; give qlog files".into()));
        }
        Some(first) => {
            if let Some((log, _)) = files.iter().zip(&of_metrics).find(|(_, metrics)| !**metrics) {
                let (metrics, log) = (files.get(first).unwrap_or(log).display(), log.display());
                return Err(Failure::Input(format!("{metrics} has metrics and {log} has not; give files of one kind")));
            }
            (of_scrapes(&files, arguments.baseline.as_deref())?, 0)
        }
    };
    if arguments.json {
        let mut value = json!(analysis);
        value["unusable_files"] = json!(unusable);
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let Analysis { connections, without_answer, not_drawn, groups, .. } = &analysis;
        let answers: String = groups
            .iter()
            .filter_map(|group| answer(group, *connections as u64, arguments.planned))
            .map(|sentence| wrapped(&sentence))
            .collect();
        let mut counts = format!("{connections} connections, {without_answer} more without an answer");
        if *not_drawn > 0 {
            counts.push_str(&format!(
                "; the scheme of {not_drawn} was not drawn (their network, the kill switch or losses decided), so they \
                 are compared with nothing"
            ));
        }
        // What the numbers do not say is a part of the answer.
        let limits = "Times are from a request to the last acknowledgement, without the handshake. What others on \
                      these links lose is not seen here.";
        let tables: String =
            tables(&analysis, arguments.planned.is_some()).iter().map(|table| format!("{table}\n")).collect();
        print(&format!("{answers}{counts}\n{}{tables}", wrapped(limits)))?;
    }
    Ok(if unusable == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// What qlog files have.
#[derive(Debug)]
pub(crate) struct Logs<C> {
    /// The connections.
    pub(crate) connections: Vec<C>,
    /// Files that could not be used; they were told of.
    pub(crate) unusable: usize,
}

/// The connections of these files, and of those in these folders, each with its answers.
pub(crate) fn logs(named: &[PathBuf]) -> Result<Logs<Connection>, Failure> {
    read(&log_files(named, &EXTENSIONS)?, log::read, |one| one.id.as_ref())
}

/// The same connections, each with what it shows of its path.
pub(crate) fn paths(named: &[PathBuf]) -> Result<Logs<OfPath>, Failure> {
    read(&log_files(named, &QLOG)?, log::read_path, |one| one.id.as_ref())
}

/// These files, and those in these folders.
fn log_files(named: &[PathBuf], extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let files = files(named, extensions)?;
    match files.iter().find(|file| is_metrics(file)) {
        Some(metrics) => Err(Failure::Input(format!("{}: has metrics; allowed are qlog files", metrics.display()))),
        None => Ok(files),
    }
}

fn of_logs(files: &[PathBuf], arguments: &Arguments) -> Result<(Analysis, usize), Failure> {
    let Logs { connections, unusable } = read(files, log::read, |one| one.id.as_ref())?;
    if arguments.by_network && connections.iter().all(|connection| connection.network.is_none()) {
        tell!("warning: no file names its client's network; `flowstart serve --qlog-networks` writes them");
    }
    let _waiting = Waiting::begin("comparing");
    let analysis = analyze(&connections, arguments.baseline.as_deref(), arguments.planned, arguments.by_network);
    Ok((analysis.map_err(|error| unknown(&error))?, unusable))
}

/// The connections of qlog files, and the number of unusable files.
fn read<C>(
    files: &[PathBuf],
    read: fn(&Path) -> Result<C, LogError>,
    id: fn(&C) -> Option<&String>,
) -> Result<Logs<C>, Failure> {
    let bar = progress(files.len() as u64);
    let mut connections: Vec<C> = Vec::new();
    let mut unusable: Vec<LogError> = Vec::new();
    let (mut ids, mut repeated) = (BTreeSet::new(), 0_usize);
    for file in files {
        match read(file) {
            Ok(connection) => {
                // A connection without an id is known by its file.
                let path = || file.canonicalize().unwrap_or_else(|_| file.clone()).into_os_string();
                match ids.insert(id(&connection).map_or_else(path, OsString::from)) {
                    true => connections.push(connection),
                    false => repeated += 1,
                }
            }
            Err(error) => unusable.push(error),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if repeated > 0 {
        let files = if repeated == 1 {
            "1 file repeats a connection"
        } else {
            &*format!("{repeated} files repeat connections")
        };
        tell!("warning: {files} of other files; each connection counts once");
    }
    for error in unusable.iter().take(TOLD) {
        tell!("warning: {}", printable(&error.to_string()));
    }
    if unusable.len() > TOLD {
        tell!("warning: and {} more files that could not be used", unusable.len() - TOLD);
    }
    Ok(Logs { connections, unusable: unusable.len() })
}

/// The content of metrics. An unusable file is an error, because it would distort the sum.
fn of_scrapes(files: &[PathBuf], baseline: Option<&str>) -> Result<Analysis, Failure> {
    let wrong = |error: metrics::MetricsError| Failure::Input(printable(&error.to_string()));
    let mut known = BTreeSet::new();
    let (new, again): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.iter().partition(|file| known.insert(file.canonicalize().unwrap_or_else(|_| (*file).clone())));
    for file in again {
        tell!("warning: {} is named twice and counts once", printable(&file.display().to_string()));
    }
    let scrapes = new.into_iter().map(|file| metrics::read(file)).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    let total = metrics::total(&scrapes).map_err(wrong)?;
    metrics::analyze(&total, baseline).map_err(|error| unknown(&error))
}

pub(crate) fn unknown(error: &UnknownBaseline) -> Failure {
    Failure::Input(printable(&format!("--baseline {error}")))
}

/// Whether a file has metrics. Metrics begin with a comment, logs do not.
fn is_metrics(file: &Path) -> bool {
    let mut first = [0];
    let opened = flowstart_files::open(file, u64::MAX).ok();
    let begins = opened.is_some_and(|mut file| file.read(&mut first).is_ok_and(|read| read == 1));
    file.extension().is_some_and(|extension| extension == "prom") || (begins && first == *b"#")
}

/// The files to read, in the given order; those of a folder with these suffixes, by name. Tells what of a folder looks
/// like one of them and is skipped.
fn files(named: &[PathBuf], extensions: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut skipped = Vec::new();
    for path in named {
        match std::fs::read_dir(path) {
            Ok(entries) => {
                let mut found = Vec::new();
                for entry in entries {
                    let entry = entry.map_err(|error| unreadable(path, &error))?.path();
                    let ends =
                        |with: &[&str]| entry.extension().is_some_and(|ends| with.iter().any(|one| ends == *one));
                    // Reading a pipe or a device might never end.
                    let is_file = entry.metadata().map_or(true, |metadata| metadata.is_file());
                    match (ends(extensions), is_file) {
                        (true, true) => found.push(entry),
                        (true, false) => skipped.push((entry, "is not a regular file".to_owned())),
                        (false, _) if ends(&QLOG) => {
                            skipped.push((entry, format!("allowed in a folder is .{}", extensions.join(" or ."))));
                        }
                        (false, _) => {}
                    }
                }
                if found.is_empty() {
                    tell_of_skipped(skipped);
                    let extensions = extensions.join(" or .");
                    return Err(Failure::Input(format!("{}: holds no .{extensions} file", path.display())));
                }
                found.sort();
                files.append(&mut found);
            }
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                if !path.metadata().map_err(|error| unreadable(path, &error))?.is_file() {
                    return Err(Failure::Input(format!("{}: is not a regular file", path.display())));
                }
                files.push(path.clone());
            }
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    tell_of_skipped(skipped);
    Ok(files)
}

fn tell_of_skipped(mut skipped: Vec<(PathBuf, String)>) {
    skipped.sort();
    for (path, why) in skipped.iter().take(TOLD) {
        tell!("warning: {} is skipped: {why}", printable(&path.display().to_string()));
    }
    if skipped.len() > TOLD {
        tell!("warning: and {} more are skipped", skipped.len() - TOLD);
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!("{}: cannot be read: {error}", path.display()))
}

/// The interval of a speed-up that is shown.
fn shown(versus: &Comparison, every_look: bool) -> Option<[f64; 2]> {
    if every_look { versus.speedup_at_every_look } else { versus.speedup_ci95 }
}

/// What the comparison of a group says; `None`: there is none. A result of many looks says whether to go on.
fn answer(group: &Group, connections: u64, planned: Option<u64>) -> Option<String> {
    let versus = group.vs_baseline.as_ref()?;
    let (scheme, baseline) = (printable(&group.scheme), printable(&versus.baseline));
    let size = &group.network.as_ref().map_or(group.size.clone(), |network| format!("{} to {network}", group.size));
    let interval = shown(versus, planned.is_some());
    let Some(([low, high], speedup)) = interval.zip(versus.speedup) else {
        let fewest = planned.map_or(String::new(), |_| {
            format!(" An interval for every look needs {FEWEST_AT_EVERY_LOOK} of each, whose times differ.")
        });
        return Some(format!("Of {scheme} or {baseline} there are too few connections with {size} to tell.{fewest}"));
    };
    let ratio = format!("{speedup:.2} times as fast ({low:.2} to {high:.2}");
    let every = if planned.is_some() { " at every look" } else { "" };
    let sentence = match (versus.significant, planned) {
        (true, None) => {
            format!("With {size} {scheme} is {speedup:.2} times as fast as {baseline} ({low:.2} to {high:.2}).")
        }
        (true, Some(_)) => format!(
            "With {size} {scheme} is {speedup:.2} times as fast as {baseline} ({low:.2} to {high:.2}{every}): the trial \
             may end."
        ),
        (false, None) => format!("With {size} {scheme} cannot be told apart from {baseline}: {ratio})."),
        (false, Some(planned)) => {
            let next = if connections < planned {
                format!("The trial goes on up to {planned} connections.")
            } else {
                "All planned connections are there: the trial ends undecided.".to_owned()
            };
            format!("With {size} {scheme} cannot be told apart from {baseline}: {ratio}{every}). {next}")
        }
    };
    let quantiles: Vec<String> = versus.quantiles.iter().filter_map(|(name, one)| quantile_ratio(name, one)).collect();
    let all = if quantiles.is_empty() { String::new() } else { format!(" Each for itself: {}.", quantiles.join(", ")) };
    Some(sentence + &all)
}

/// A quantile of both, in words; `None`: too few connections have it.
fn quantile_ratio(name: &str, one: &QuantileRatio) -> Option<String> {
    let [low, high] = one.ci95?;
    Some(format!("{name} {:.2} times as fast ({low:.2} to {high:.2})", one.speedup))
}

/// Names of the columns, and whether they are numbers.
const COLUMNS: [(&str, bool); 13] = [
    ("size", false),
    ("scheme", false),
    ("connections", true),
    ("answers", true),
    ("ms (mean)", true),
    ("95 %", false),
    ("median", true),
    ("p95", true),
    ("lost %", true),
    ("speed-up", true),
    ("95 %", false),
    ("", false),
    ("why startup ended", false),
];
/// The columns that stand together on a terminal that is not wide enough for all of them.
const NARROW: [&[usize]; 2] = [&[0, 1, 4, 5, 9, 10, 11], &[0, 1, 2, 3, 6, 7, 8, 12]];
/// Columns of a terminal on which all of them stand together.
const WIDE: usize = 140;

/// The tables, one unless the terminal is too narrow for it.
fn tables(analysis: &Analysis, every_look: bool) -> Vec<Table> {
    let all: Vec<usize> = (0..COLUMNS.len()).collect();
    let is_narrow = std::io::stdout().is_terminal() && width() < WIDE;
    let parts = if is_narrow { NARROW.to_vec() } else { vec![&all[..]] };
    parts.into_iter().map(|columns| table(analysis, every_look, columns)).collect()
}

fn table(analysis: &Analysis, every_look: bool, columns: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(columns.iter().map(|place| COLUMNS[*place].0));
    for group in &analysis.groups {
        let row = row(group, every_look);
        table.add_row(columns.iter().map(|place| row[*place].clone()));
    }
    for (column, place) in table.column_iter_mut().zip(columns) {
        if COLUMNS[*place].1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    fitted(table)
}

/// A quantile in milliseconds, or the bounds between which it lies.
fn quantile(value: Option<f64>, bounds: Option<[Option<f64>; 2]>) -> String {
    match bounds {
        None => number(value, 1),
        Some([low, Some(high)]) => format!("{}–{high:.1}", number(low, 1)),
        Some([low, None]) => format!("over {}", number(low, 1)),
    }
}

fn row(group: &Group, every_look: bool) -> Vec<String> {
    let fct = group.metrics.get("fct_request_ms");
    let lost = group.metrics.get("lost_share").and_then(|metric| metric.mean);
    let interval = |ci: Option<[f64; 2]>, digits: usize| {
        ci.map_or("–".into(), |[low, high]| format!("{low:.digits$}–{high:.digits$}"))
    };
    let versus = group.vs_baseline.as_ref();
    let mark = match versus {
        None => "baseline",
        Some(v) if shown(v, every_look).is_none() => "● too few to tell",
        Some(v) if !v.significant => "● not significant",
        Some(v) if v.speedup.unwrap_or(1.0) > 1.0 => "▲ faster",
        Some(_) => "▼ slower",
    };
    let reasons: Vec<String> =
        group.exit_reasons.iter().map(|(reason, count)| printable(&format!("{reason} {count}"))).collect();
    vec![
        group.network.as_ref().map_or(group.size.clone(), |network| format!("{network} {}", group.size)),
        printable(&group.scheme),
        group.n.to_string(),
        group.answers.to_string(),
        number(fct.and_then(|metric| metric.mean), 1),
        interval(fct.and_then(|metric| metric.ci95), 1),
        quantile(fct.and_then(|metric| metric.median), group.histogram.as_ref().map(|one| one.median)),
        quantile(fct.and_then(|metric| metric.p95), group.histogram.as_ref().map(|one| one.p95)),
        number(lost.map(|share| share * 100.0), 2),
        number(versus.and_then(|v| v.speedup), 2),
        interval(versus.and_then(|v| shown(v, every_look)), 2),
        mark.into(),
        reasons.join(", "),
    ]
}
