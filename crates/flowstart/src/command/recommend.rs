//! `flowstart recommend`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_core::spec::names;
use flowstart_lab::fleet::answer::sentences;
use flowstart_lab::fleet::measured::{FleetError, Question, measure};
use flowstart_lab::fleet::population::Population;
use flowstart_lab::fleet::recommendation::{Budget, OfScheme, Recommendation};
use flowstart_lab::study::scenario::default_seed;
use serde_json::json;

use crate::command::run::{jobs, part};
use crate::failure::{FAILED, Failure};
use crate::output::{self, Bars};

/// Repetitions of each kind of transfer, unless told otherwise.
const REPS: u32 = 10;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart recommend fleet.csv
  flowstart recommend fleet.csv --scheme slow-start:iw=10 suss jump-start \\
    --max-inflation 2% --max-harm 1.2 --reps 30

POPULATION.csv names its columns in the first line and has a line for each kind of transfer:
  name,weight,rate,rtt,buffer,size,known,aqm,competitor
  dsl,0.6,50mbit,30ms,1bdp,300KB,0.4,taildrop,cubic
weight and size are needed, and rate and rtt, or link, which is any link of --link. weight is a share or a number of \
transfers, known the share of them whose path is known before. buffer is 1bdp unless given, known 1, aqm taildrop and \
competitor none.

The first scheme is the baseline. Recommended is the one with the largest gain that is measurably faster than the \
baseline within the budget, or one that sends less twice and is as fast.")]
pub(crate) struct Arguments {
    /// The fleet's transfers: a line for each kind.
    #[arg(value_name = "POPULATION.csv")]
    population: PathBuf,
    /// Startup schemes, the baseline first.
    ///
    /// Default: all that depend neither on routers nor on other connections.
    #[arg(long, num_args = 1.., value_name = "SCHEME")]
    scheme: Vec<String>,
    /// Transport of all transfers.
    #[arg(long, value_name = "TRANSPORT", default_value = "model-quic")]
    transport: String,
    /// Congestion avoidance of all schemes.
    ///
    /// Default: the transport's, or a scheme's own.
    #[arg(long, value_name = "AVOIDANCE")]
    avoidance: Option<String>,
    /// Most that may be sent twice, such as 2%.
    ///
    /// Of the payload, in the mean over the fleet.
    #[arg(long, value_name = "P", value_parser = share, allow_hyphen_values = true)]
    max_inflation: Option<f64>,
    /// Most that others may lose, such as 1.2.
    ///
    /// Over what they lose beside the baseline.
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_hyphen_values = true)]
    max_harm: Option<f64>,
    /// Repetitions of each kind of transfer.
    #[arg(long, value_name = "N", default_value_t = REPS, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    reps: u32,
    /// Master seed. Default: 1.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    jobs: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let in_range = part(text).filter(|part| (0.0..=10.0).contains(part));
    in_range.ok_or_else(|| "allowed is 0% to 1000%, such as 2%".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| (0.0..=1000.0).contains(factor));
    factor.ok_or_else(|| "allowed is 0 to 1000, such as 1.2".to_owned())
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let file = |problem: String| Failure::File { file: arguments.population.clone(), message: problem, text: None };
    let population = Population::read(&arguments.population).map_err(|error| file(error.to_string()))?;
    if arguments.max_harm.is_some() && population.kinds.iter().all(|kind| names::is_same(&kind.competitor, "none")) {
        let problem = "nobody else uses a link of this population; give its lines a competitor";
        return Err(Failure::Input(format!("--max-harm: {problem}")));
    }
    let schemes = if arguments.scheme.is_empty() { Question::every_scheme() } else { arguments.scheme.clone() };
    if schemes.len() < 2 {
        return Err(Failure::Input("--scheme: two are needed; the first is the baseline".into()));
    }
    let question = Question {
        schemes,
        transport: arguments.transport.clone(),
        avoidance: arguments.avoidance.clone(),
        reps: arguments.reps,
        seed: arguments.seed.unwrap_or(default_seed()),
    };
    let folder = match arguments.population.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let bars = Bars::default();
    let fleet = measure(population, &question, folder, arguments.jobs, &bars).map_err(|error| match error {
        FleetError::Population(error) => file(error.to_string()),
        FleetError::Question(error) => Failure::from(error),
        FleetError::Runs(error) => Failure::from(error),
    })?;
    let budget = Budget { max_inflation: arguments.max_inflation, max_harm: arguments.max_harm };
    let told = Recommendation::of(&fleet, &budget);
    drop(bars);
    let sentences = sentences(&fleet, &told);
    if arguments.json {
        let value = json!({
            "schema": 1,
            "answer": sentences.first(),
            "answer_notes": sentences.get(1..),
            "transport": question.transport,
            "avoidance": question.avoidance,
            "seed": question.seed,
            "budget": budget,
            "recommendation": told,
        });
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        output::print(&format!("{text}\n"))?;
    } else {
        let (first, notes) = sentences.split_first().map_or(("", &[][..]), |(first, notes)| (&**first, notes));
        let notes: String = notes.iter().map(|note| output::item(note)).collect();
        let (schemes, kinds) = (output::fitted(of_schemes(&told)), output::fitted(of_kinds(&told)));
        output::print(&format!("{}\n{schemes}\n\n{kinds}\n\n{notes}", output::wrapped(first)))?;
    }
    let any_failed = told.schemes.iter().any(|one| one.failed > 0.0);
    Ok(if any_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn table(titles: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(titles);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn percent(value: Option<f64>) -> String {
    output::number(value.map(|value| value * 100.0), 1)
}

/// The schemes, the fastest first.
fn of_schemes(told: &Recommendation) -> Table {
    let mut table = table(&["scheme", "times as fast", "p50 ms", "p95 ms", "regret %", "twice %", "harm", ""]);
    let mut schemes: Vec<&OfScheme> = told.schemes.iter().collect();
    schemes.sort_by(|a, b| b.gain.unwrap_or(0.0).total_cmp(&a.gain.unwrap_or(0.0)));
    for one in schemes {
        let mark = match &one.refused {
            _ if one.scheme == told.scheme => "recommended",
            _ if one.scheme == told.schemes[0].scheme => "baseline",
            Some(_) => "not offered",
            None => "",
        };
        table.add_row([
            one.scheme.clone(),
            output::ratio(one.gain, one.gain_ci),
            output::number(one.p50_ms, 0),
            output::number(one.p95_ms, 0),
            percent(one.regret),
            percent(Some(one.inflation)),
            output::number(one.harm_ratio, 2),
            mark.to_owned(),
        ]);
    }
    table
}

/// The recommended scheme in each kind of transfer, where it gains least first.
fn of_kinds(told: &Recommendation) -> Table {
    let title = format!("{} over", told.scheme);
    let mut table = table(&[&title, "path", "transfers %", "times as fast", ""]);
    for kind in &told.kinds {
        let mark = match kind.gain_ci {
            Some([_, high]) if high < 1.0 => "slower",
            Some([low, _]) if low > 1.0 => "faster",
            _ => "",
        };
        table.add_row([
            kind.name.clone(),
            if kind.known { "known" } else { "unknown" }.to_owned(),
            percent(Some(kind.share)),
            output::ratio(kind.gain, kind.gain_ci),
            mark.to_owned(),
        ]);
    }
    table
}
