//! `flowstart trial`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use flowstart_serve::analyze::plan::{Guardrail, Plan, Question, SMALLEST_EFFECT, of_connections, of_scatter};
use flowstart_serve::printable;

use crate::command::analyze::{self, Logs};
use crate::command::run;
use crate::failure::{FAILED, Failure};
use crate::output;

/// Connections from which on logs say how times scatter.
const FEW: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say how many connections an A/B trial needs, and what to watch.
    Plan(PlanArguments),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("known").required(true).args(["files", "scatter"]))]
#[command(after_long_help = "\
Examples:
  flowstart trial plan logs --effect 5%
  flowstart trial plan --scatter 0.8 --effect 5% --share 0.1

A trial that is looked at once, when all connections are there, needs the first of two numbers. One that is looked at \
as often as wanted, by `flowstart analyze --planned N`, needs the second, and often ends sooner. Sizes of answers \
share the allowed error of 5 %.")]
struct PlanArguments {
    /// qlog files of `flowstart serve --qlog` with the baseline, or folders of them.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// In place of files: the standard deviation of the logarithm of times.
    ///
    /// 0.8 means that two of three are within a factor of 2.2 around the median. Times of one size over many networks
    /// scatter by as much as the networks do.
    #[arg(long, value_name = "NUMBER", value_parser = scatter)]
    scatter: Option<f64>,
    /// By how much the new scheme is faster, such as 5%.
    #[arg(long, value_name = "P", value_parser = effect, allow_hyphen_values = true)]
    effect: f64,
    /// Part of the connections that get the new scheme.
    #[arg(long, value_name = "PART", default_value = "0.5", value_parser = part)]
    share: f64,
    /// Probability with which the effect is found.
    #[arg(long, value_name = "P", default_value = "0.8", value_parser = power)]
    power: f64,
    /// The baseline scheme. Without it, the scheme that most connections had.
    #[arg(long, value_name = "SCHEME", conflicts_with = "scatter")]
    baseline: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

fn scatter(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (0.01..=5.0).contains(number));
    number.ok_or_else(|| "allowed is 0.01 to 5, such as 0.8".to_owned())
}

/// A gain in percent, as a factor.
fn effect(text: &str) -> Result<f64, String> {
    let gain = run::part(text).map(|gain| 1.0 + gain).filter(|gain| (SMALLEST_EFFECT..=11.0).contains(gain));
    gain.ok_or_else(|| "allowed is 1.5% to 1000%, such as 5%".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part: &f64| (0.01..=0.99).contains(part));
    part.ok_or_else(|| "allowed is 0.01 to 0.99, such as 0.5".to_owned())
}

fn power(text: &str) -> Result<f64, String> {
    let power = text.parse().ok().filter(|power: &f64| (0.5..=0.99).contains(power));
    power.ok_or_else(|| "allowed is 0.5 to 0.99, such as 0.8".to_owned())
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let What::Plan(arguments) = &arguments.what;
    let PlanArguments { effect, share, power, .. } = *arguments;
    let question = Question { effect, share, power };
    let (plan, unusable) = match arguments.scatter {
        Some(deviation) => (of_scatter(question, deviation), 0),
        None => {
            let Logs { connections, unusable } = analyze::logs(&arguments.files)?;
            let plan = of_connections(question, &connections, arguments.baseline.as_deref());
            (plan.map_err(|error| analyze::unknown(&error))?, unusable)
        }
    };
    if arguments.json {
        let text = serde_json::to_string_pretty(&plan).map_err(|error| Failure::Other(error.to_string()))?;
        output::print(&format!("{text}\n"))?;
    } else {
        let notes: String = notes(&plan).iter().map(|note| output::item(note)).collect();
        output::print(&format!("{}\n{}\n\n{notes}", output::wrapped(&answer(&plan)), output::fitted(table(&plan))))?;
    }
    Ok(if unusable == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn count(number: Option<f64>) -> String {
    output::number(number, 0)
}

/// What the experiment needs, in a sentence.
fn answer(plan: &Plan) -> String {
    let Question { effect, share, power } = plan.question;
    let found = format!(
        "that a scheme is {:.3} times as fast{}, with a probability of {:.0} % and {:.1} % of the connections with it",
        effect,
        if plan.baseline.is_empty() { String::new() } else { format!(" as {}", printable(&plan.baseline)) },
        power * 100.0,
        share * 100.0
    );
    match plan.at_one_look.zip(plan.at_every_look) {
        Some((once, always)) => format!(
            "To find by the mean {found}, a trial needs {once:.0} connections if it is looked at once, and {always:.0} if \
             it may be ended at any look; it often ends sooner."
        ),
        None => format!("These times are too few, or all the same, to say what it takes to find {found}."),
    }
}

fn notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.logged > 0 && plan.logged < FEW {
        notes.push(format!(
            "These are {} connections, too few to say how times scatter: the numbers are rough.",
            plan.logged
        ));
    }
    for size in plan.sizes.iter().filter(|size| size.is_rare()) {
        notes.push(format!(
            "{} is on {:.1} % of the connections, and left out of the answer.",
            size.size,
            size.part * 100.0
        ));
    }
    for Guardrail { now, found_from, .. } in &plan.guardrails {
        notes.push(format!(
            "Watch the share of lost packets, now {:.3} %: with {} connections a change by {:.3} points is found.",
            now * 100.0,
            count(plan.at_every_look),
            found_from * 100.0
        ));
    }
    notes.push(
        "Watch also the connections without an answer, which `flowstart analyze` counts, and the 99th percentile of \
         times. What others on the same links lose is not seen."
            .to_owned(),
    );
    notes.push(
        "Connections count as independent, and those that come as like these. Those of one client share its network: \
         with few clients more are needed, and logs of a test network say little of a fleet."
            .to_owned(),
    );
    if let Some(connections) = plan.at_every_look {
        notes.push(format!("At each look: flowstart analyze LOGS --planned {connections:.0}"));
    }
    notes
}

fn table(plan: &Plan) -> Table {
    let mut table = Table::new();
    let titles = ["size", "figure", "connections, one look", "any look"];
    table.load_preset(presets::NOTHING).set_header(titles);
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    for size in &plan.sizes {
        for needed in &size.needed {
            let name = if size.size.is_empty() { "any" } else { &size.size };
            table.add_row([name, needed.figure, &count(needed.at_one_look), &count(needed.at_every_look)]);
        }
    }
    table
}
