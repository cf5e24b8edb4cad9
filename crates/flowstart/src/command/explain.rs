//! `flowstart explain`.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_core::sources::{Finding, Statement, Verdict};
use flowstart_core::time::Timestamp;
use flowstart_lab::run::knowledge::at_launch;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_lab::trace::explain::Explanation;
use flowstart_lab::trace::observe::{self, MOST_FLOWS, Shown, Watched};
use flowstart_quic::qlog::source;
use flowstart_report::Cause;
use serde_json::{Map, Value, json};

use crate::attention::Waiting;
use crate::command::trace::{Selection, failed};
use crate::failure::{FAILED, Failure};
use crate::output::{fitted, print, wrapped};

#[derive(Debug, Args)]
#[command(
    override_usage = "\
flowstart explain [OPTIONS] --link <LINK> --size <SIZE>
                         --scheme <SCHEME>...
       flowstart explain [OPTIONS] --cell <ID> --from <DIR>",
    after_long_help = "\
Examples:
  flowstart explain --link dsl-fast --size 2MB --scheme slow-start \\
    --competitor cubic
  flowstart explain --link lte --size 2MB \\
    --scheme slow-start hystart blitzstart --competitor cubic
  flowstart explain --cell dsl-fast/taildrop/2MB/slow-start/cubic --rep 3 \\
    --from results/table1 --json

Splits the time of one run beyond the physical limit into causes, at the bottleneck, instant by instant. --flow \
chooses one of several flows. --json prints an object {cell, rep, fct_ms, ideal_fct_ms, causes, sources}; with several \
schemes it prints an array of them. sources are what is known of the path before the run, by whom, and whether the \
launch depends on it; what routers approve is not among them."
)]
pub(crate) struct Arguments {
    /// Startup schemes; a column for each. With parameters, blitzstart:estimate=1.5. See `flowstart list schemes`. Not
    /// with --cell.
    #[arg(long, num_args = 1.., value_name = "SCHEME", required_unless_present_any = ["cell", "from"])]
    scheme: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    /// Which flow of several, 0 to 7. They count from 0 in the order in which they start.
    #[arg(long, value_name = "N", default_value_t = 0)]
    flow: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// A run and its causes; there are none for a transfer that did not finish.
struct Explained {
    cell: Cell,
    explanation: Option<Explanation>,
    /// What sources state of the path.
    sources: Vec<Finding>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (plan, cells) = arguments.selection.cells(arguments.scheme.clone())?;
    let rep = arguments.selection.rep;
    if let Some(text) = cells.iter().find_map(|cell| plan.otherwise(cell).remove("move")) {
        return Err(Failure::Input(format!("--move `{text}`: explain follows one path; `flowstart trace` shows both")));
    }
    if let Some(cell) = cells.iter().find(|cell| !plan.is_one_connection(cell)) {
        let what = match plan.connections_of(cell) {
            1 => format!("--link `{}`", plan.links[cell.link].text),
            _ => format!("--scheme `{}`", plan.schemes[cell.scheme].text),
        };
        let problem = "has several connections for a transfer, and explain follows one; `flowstart trace` shows them";
        return Err(Failure::Input(format!("{what}: {problem}")));
    }
    let mut any_failed = false;
    let mut explained = Vec::new();
    for cell in cells {
        let flows = plan.flow_count(&cell).min(MOST_FLOWS);
        if arguments.flow >= flows {
            let problem = format!("--flow {}: allowed is 0 to {}", arguments.flow, flows.saturating_sub(1));
            return Err(Failure::Input(problem));
        }
        let causes = Shown { watched: Watched { causes: true, series: None }, media_delays: false };
        let waiting = Waiting::begin(format!("simulating {}", plan.schemes[cell.scheme].text));
        let (outcomes, seen) = observe::again(&plan, &cell, rep, causes);
        drop(waiting);
        any_failed |= failed(&outcomes);
        let start = outcomes.get(arguments.flow as usize).map_or(Timestamp::ZERO, |outcome| outcome.start);
        explained.push(Explained {
            cell,
            explanation: seen.explanations.into_iter().nth(arguments.flow as usize).flatten(),
            sources: at_launch(&plan, &cell, start),
        });
    }
    if arguments.json {
        let mut values: Vec<Value> = explained.iter().map(|one| object(&plan, rep, one)).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let sentences: Vec<String> = explained.iter().map(|one| wrapped(&sentence(&plan, one))).collect();
        print(&format!("{}\n{}\n", sentences.concat(), fitted(table(&plan, &explained))))?;
    }
    Ok(if any_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn object(plan: &Plan, rep: u32, one: &Explained) -> Value {
    let known = one.explanation.as_ref();
    let causes = known.map(|explanation| {
        let entry = |cause: Cause| (cause.key().to_owned(), json!(explanation.ms(cause)));
        Cause::ALL.into_iter().map(entry).collect::<Map<_, _>>()
    });
    json!({
        "cell": plan.id(&one.cell),
        "rep": rep,
        "fct_ms": known.map(|explanation| explanation.fct.as_millis_f64()),
        "ideal_fct_ms": known.map(|explanation| explanation.ideal_fct.as_millis_f64()),
        "causes": causes,
        "sources": one.sources.iter().map(source).collect::<Vec<_>>(),
    })
}

fn sentence(plan: &Plan, one: &Explained) -> String {
    let scheme = &plan.schemes[one.cell.scheme].text;
    let (size, link) = (plan.carried(&one.cell), &plan.links[one.cell.link].text);
    let end = match &one.explanation {
        Some(explanation) => format!("{scheme} moved {size} over {link} {}", explanation.sentence_end()),
        None => format!("{scheme} did not finish {size} over {link}."),
    };
    format!("{end}{}", depends_on(&one.sources))
}

/// A sentence about the sources on which the launch depends, if there are any.
fn depends_on(sources: &[Finding]) -> String {
    let said = |statement: &Statement| match statement {
        Statement::Saved(saved) => format!("a window of {} bytes", saved.cwnd.get()),
        other => other.rate().map_or_else(String::new, |rate| rate.to_string()),
    };
    let used = sources.iter().filter(|one| one.verdict == Verdict::Used);
    let named = |one: &Finding| Some(format!("{} ({})", one.source, said(one.believed.as_ref()?)));
    let used: Vec<String> = used.filter_map(named).collect();
    if used.is_empty() { String::new() } else { format!(" Its launch depends on {}.", used.join(" and ")) }
}

/// A row per cause. For one scheme there are columns of milliseconds and percent, for several schemes a column each.
fn table(plan: &Plan, explained: &[Explained]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    let row = |name: &str, entry: &dyn Fn(&Explanation) -> (String, String)| {
        let mut row = vec![name.to_owned()];
        for one in explained {
            let (ms, percent) = one.explanation.as_ref().map_or(("–".into(), String::new()), entry);
            match (explained.len(), percent.is_empty()) {
                (1, _) => row.extend([ms, percent]),
                (_, true) => row.push(ms),
                (_, false) if percent == "–" => row.push(ms),
                (_, false) => row.push(format!("{ms} ({percent} %)")),
            }
        }
        row
    };
    let mut header = vec!["cause".to_owned()];
    match explained {
        [_] => header.extend(["ms".to_owned(), "% of the delay".to_owned()]),
        _ => header.extend(explained.iter().map(|one| format!("{}, ms (%)", plan.schemes[one.cell.scheme].text))),
    }
    table.set_header(header);
    let ms = |value: f64| if value.abs() < 0.05 { "0.0".to_owned() } else { format!("{value:.1}") };
    for cause in Cause::ALL {
        table.add_row(row(cause.name(), &|explanation| {
            let percent = explanation.percent(cause).map_or("–".into(), |percent| format!("{:.0}", percent + 0.0));
            (ms(explanation.ms(cause)), percent)
        }));
    }
    table.add_row(row("beyond the limit", &|explanation| (ms(explanation.excess_ms()), String::new())));
    table.add_row(row("physical limit", &|explanation| (ms(explanation.ideal_fct.as_millis_f64()), String::new())));
    table.add_row(row("FCT", &|explanation| (ms(explanation.fct.as_millis_f64()), String::new())));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
