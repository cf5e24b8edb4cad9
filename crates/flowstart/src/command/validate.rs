//! `flowstart validate`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use flowstart_validate::{ENTRIES, Status};

use crate::failure::{FAILED, Failure};
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// One entry instead of all.
    name: Option<String>,
    /// Another file with the same columns: other cells of the same experiment.
    #[arg(long, value_name = "FILE", requires = "name")]
    reference: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Threads; 0: one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
}

fn after_help() -> String {
    let entries: String = ENTRIES.iter().map(|entry| format!("  {:33}{}\n", entry.name, entry.source)).collect();
    format!(
        "\
Entries, and what they are compared with:
{entries}
Examples:
  flowstart validate
  flowstart validate ns2-chain
  flowstart validate ns2-single-flow --reference other-cells.csv --json

Exit code 1 when an entry misses its band."
    )
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let names: Vec<&str> = match &arguments.name {
        Some(name) => vec![name.as_str()],
        None => ENTRIES.iter().map(|entry| entry.name).collect(),
    };
    let mut results = Vec::new();
    for name in names {
        if std::io::stderr().is_terminal() && ENTRIES.iter().any(|entry| entry.name == name) {
            tell!("validating {name} ...");
        }
        results.push(
            flowstart_validate::validate(name, arguments.reference.as_deref(), arguments.jobs)
                .map_err(Failure::Input)?,
        );
    }
    let missed = results.iter().any(|result| result.status == Status::Miss);
    if arguments.json {
        let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
    } else {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["entry", "verdict", "numbers", "misses", "note"]);
        for result in &results {
            let verdict = if result.status == Status::Pass { "pass" } else { "MISS" };
            let counts = (result.cells.to_string(), result.misses.len().to_string());
            table.add_row([result.name.as_str(), verdict, &counts.0, &counts.1, &result.note]);
        }
        let mut text = format!("{table}\n");
        for result in &results {
            for miss in &result.misses {
                text += &format!(
                    "{}: {} {}: ours {}, reference {}, allowed {}\n",
                    result.name, miss.cell, miss.metric, miss.ours, miss.reference, miss.band
                );
            }
        }
        print(&text)?;
    }
    Ok(if missed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}
