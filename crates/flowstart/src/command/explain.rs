//! `flowstart explain`.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use flowstart_lab::study::plan::Plan;
use flowstart_lab::trace::explain::Explanation;
use flowstart_lab::trace::explained::{self, Explained};
use flowstart_report::Cause;
use serde_json::Value;

use crate::attention::Waiting;
use crate::command::trace::Selection;
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
schemes it prints an array of them. sources are what was known of the path at the launch, by whom, and whether the \
launch depends on it."
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

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (plan, cells) = arguments.selection.cells(arguments.scheme.clone())?;
    let rep = arguments.selection.rep;
    explained::check(&plan, &cells)?;
    let mut any_failed = false;
    let mut explained = Vec::new();
    for cell in cells {
        let waiting = Waiting::begin(format!("simulating {}", plan.schemes[cell.scheme].text));
        let one = Explained::of(&plan, cell, rep, arguments.flow)?;
        drop(waiting);
        any_failed |= one.failed;
        explained.push(one);
    }
    if arguments.json {
        let mut values: Vec<Value> = explained.iter().map(|one| one.object(&plan)).collect();
        let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
        let text = serde_json::to_string_pretty(&value).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let sentences: Vec<String> = explained.iter().map(|one| wrapped(&one.sentence(&plan))).collect();
        print(&format!("{}\n{}\n", sentences.concat(), fitted(table(&plan, &explained))))?;
    }
    Ok(if any_failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
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
