//! `flowstart break`.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use flowstart_core::spec::names;
use flowstart_lab::perform::Progress;
use flowstart_lab::study::scenario::{Scenario, default_reps, default_seed};
use flowstart_lab::worst::answer::{certainty, sentence, setting};
use flowstart_lab::worst::dimension::DIMENSIONS;
use flowstart_lab::worst::measure::Measure;
use flowstart_lab::worst::search::{FEWEST, Found, Settings, Worst, search};
use flowstart_lab::worst::space::{Question, Space};
use serde_json::{Value, json};

use crate::command::run::jobs;
use crate::failure::{FAILED, Failure, shown};
use crate::new_folder;
use crate::output::{self, Bars};

/// Settings that are tried for each measure, unless told otherwise.
const POINTS: u32 = 150;
/// Most of them.
const MOST_POINTS: i64 = 100_000;

#[derive(Debug, Args)]
#[command(after_long_help = long_help())]
pub(crate) struct Arguments {
    /// The startup scheme whose worst settings are looked for.
    scheme: String,
    /// Schemes beside which it is bad, the baseline first.
    #[arg(long, num_args = 1.., value_name = "SCHEME", default_value = "slow-start")]
    against: Vec<String>,
    /// What is bad: regret, harm or waste. Default: each.
    ///
    /// regret: the completion time over that of the fastest of --against. harm: bytes that others get less than beside
    /// the baseline until the end of the run, for each byte of payload. waste: bytes sent twice beyond the baseline's,
    /// over the payload.
    #[arg(long, num_args = 1.., value_name = "MEASURE")]
    by: Vec<By>,
    /// Values of a dimension, as rate=1mbit..50mbit.
    ///
    /// A range, or several values with | between them, in place of those that it has by itself.
    #[arg(long, num_args = 1.., value_name = "NAME=VALUES")]
    within: Vec<String>,
    /// Settings tried for each measure, besides the corners.
    ///
    /// In a corner one dimension is as far from plain as it can be.
    #[arg(long, value_name = "N", default_value_t = POINTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(FEWEST as i64..=MOST_POINTS))]
    points: u32,
    /// Transport of all transfers.
    #[arg(long, value_name = "TRANSPORT", default_value = "model-quic")]
    transport: String,
    /// Congestion avoidance of all schemes.
    ///
    /// Default: the transport's, or a scheme's own.
    #[arg(long, value_name = "AVOIDANCE")]
    avoidance: Option<String>,
    /// Keys that every link has in addition, such as xcp=on.
    #[arg(long, value_name = "KEYS")]
    link_options: Option<String>,
    /// Repetitions of the settings that are told.
    #[arg(long, value_name = "N", default_value_t = default_reps())]
    #[arg(value_parser = clap::value_parser!(u32).range(5..=10_000))]
    reps: u32,
    /// Master seed.
    #[arg(long, value_name = "N", default_value_t = default_seed())]
    #[arg(value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    seed: u64,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Folder for a scenario of each measure. Default: break-SCHEME.
    ///
    /// `flowstart run` repeats what such a file shows. The folder must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

/// Scenarios hold smaller seeds only, and the two after it are used, too.
const MOST_SEED: u64 = i64::MAX as u64 - 2;

/// A measure of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct By(Measure);

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [By; 3] = [By(Measure::Regret), By(Measure::Harm), By(Measure::Waste)];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

fn long_help() -> String {
    let dimensions: String = DIMENSIONS
        .iter()
        .map(|one| format!("  {:<11} {}\n  {:<11} {}\n", one.name, one.meaning, "", one.values))
        .collect();
    format!(
        "Examples:\n  flowstart break blitzstart\n  flowstart break jump-start --by regret --against slow-start suss \\\n\
         \x20   --within rate=5mbit..50mbit competitor=none --points 300\n\nDimensions and their values, the plain one \
         first:\n{dimensions}\nThe worst setting is made as plain as it can be while it stays nearly as bad."
    )
}

/// The folder of the results, which is refused before the work if it has something in it.
fn folder(arguments: &Arguments) -> Result<PathBuf, Failure> {
    let named = |text: &str| text.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
    let folder = arguments.out.clone().unwrap_or_else(|| {
        let name: String = named(&arguments.scheme);
        PathBuf::from(format!("break-{}", name.chars().take(100).collect::<String>()))
    });
    new_folder::check(&folder)?;
    Ok(folder)
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let folder = folder(arguments)?;
    let Arguments { scheme, against, transport, avoidance, .. } = arguments;
    if against.iter().any(|other| names::is_same(other.trim(), scheme.trim())) {
        return Err(Failure::Input(format!("--against: {scheme} is the scheme in question; name others")));
    }
    let question = Question {
        scheme: scheme.clone(),
        against: against.clone(),
        transport: transport.clone(),
        avoidance: avoidance.clone(),
        link_options: arguments.link_options.clone(),
    };
    let (space, left_out) = Space::new(&question, &arguments.within)?;
    let by = if arguments.by.is_empty() { By::value_variants() } else { &arguments.by };
    let has_others = space.has_others();
    if !has_others && arguments.by.contains(&By(Measure::Harm)) {
        return Err(Failure::Input("--by harm: nobody else uses a link of these settings".into()));
    }
    let is_asked = |one: &Measure| by.contains(&By(*one)) && (has_others || *one != Measure::Harm);
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(is_asked).collect();
    new_folder::make(&folder)?;
    let bars = Bars::default();
    for one in left_out {
        bars.note(&format!("left out: {one}"));
    }
    let settings =
        Settings { points: arguments.points, reps: arguments.reps, seed: arguments.seed, jobs: arguments.jobs };
    let found = search(&space, &question, &measures, &settings, &bars)?;
    drop(bars);
    let files = write(&folder, &question, &found)?;
    if files.iter().all(Option::is_none) {
        // It is empty, unless somebody else put something there.
        let _ = std::fs::remove_dir(&folder);
    }
    let notes = certainty(&question, &found, arguments.reps);
    let mut any_failed = false;
    let mut told = Vec::new();
    for ((measure, worst), file) in found.worst.iter().zip(&files) {
        let sentence = sentence(&question, *measure, worst.as_ref());
        any_failed |= worst.as_ref().is_some_and(|worst| worst.failed > 0.0);
        told.push((sentence, *measure, worst.as_ref(), file));
    }
    if arguments.json {
        let worst: Vec<Value> =
            told.iter().map(|(answer, measure, worst, file)| one(answer, *measure, *worst, file.as_deref())).collect();
        let value = json!({
            "schema": 1,
            "scheme": scheme,
            "against": against,
            "transport": transport,
            "avoidance": avoidance,
            "seed": settings.seed,
            "points": found.points,
            "refused": found.refused,
            "space": space.described(),
            "worst": worst,
            "answer_notes": notes,
        });
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        output::print(&format!("{text}\n"))?;
    } else {
        let mut text = String::new();
        for (sentence, _, _, file) in &told {
            text.push_str(&output::wrapped(sentence));
            if let Some(file) = file {
                text.push_str(&format!("    flowstart run {}\n", shown(file)));
            }
            text.push('\n');
        }
        notes.iter().for_each(|note| text.push_str(&output::item(note)));
        output::print(&text)?;
    }
    Ok(if any_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// A measure's worst setting as JSON.
fn one(answer: &str, measure: Measure, worst: Option<&Worst>, file: Option<&Path>) -> Value {
    json!({
        "measure": measure.name(),
        "answer": answer,
        "found": worst,
        "setting": worst.map(|worst| setting(&worst.study.scenario)),
        "scenario": file,
    })
}

/// Writes a new file: one that is there now is another search's.
fn put(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let (new, mut out) = flowstart_files::begin_beside(file)?;
    let put = out.write_all(content).and_then(|()| flowstart_files::put_where_none_is(&new, file));
    if !matches!(put, Ok(true)) {
        let _ = std::fs::remove_file(&new);
    }
    if put? { Ok(()) } else { Err(std::io::Error::new(ErrorKind::AlreadyExists, "another search has written it")) }
}

/// Writes a scenario for each measure that has a worst setting; its name, in the order of what was found.
fn write(folder: &Path, question: &Question, found: &Found) -> Result<Vec<Option<PathBuf>>, Failure> {
    let failed = |file: &Path, problem: String| Failure::Other(format!("{}: {problem}", file.display()));
    let mut files = Vec::new();
    for (measure, worst) in &found.worst {
        let Some(worst) = worst else {
            files.push(None);
            continue;
        };
        let scenario = Scenario {
            title: format!("{} at its worst by {}", question.scheme, measure.name()),
            question: format!(
                "Is {} as bad beside {} as a search among {} settings found?",
                question.scheme,
                question.against.join(", "),
                found.points
            ),
            analysis: sentence(question, *measure, Some(worst)),
            ..worst.study.scenario.clone()
        };
        let file = folder.join(format!("{}.toml", measure.name()));
        let text = toml::to_string(&scenario).map_err(|error| failed(&file, error.to_string()))?;
        put(&file, text.as_bytes()).map_err(|error| failed(&file, error.to_string()))?;
        files.push(Some(file));
    }
    Ok(files)
}
