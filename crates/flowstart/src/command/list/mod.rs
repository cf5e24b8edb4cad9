//! `flowstart list`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use flowstart_core::spec::names;

use crate::failure::Failure;
use crate::output::{print, width};

mod entries;
mod page;
mod parameters;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Startup schemes, for --scheme and --startup; tcp marks those for Linux TCP.
    Schemes,
    /// Congestion avoidance, for --avoidance.
    Avoidance,
    /// Queue disciplines, for --aqm.
    Aqms,
    /// Links with a name, for --link.
    Links,
    /// Keys of links, for --link and --move.
    LinkOptions,
    /// Transports, for --transport.
    Transports,
    /// Other users of the link, for --competitor.
    Competitors,
    /// What flows carry, for --application.
    Applications,
    /// Scenarios, for `flowstart run`.
    Scenarios,
    /// What results say of a run.
    Metrics,
}

impl What {
    /// The word that users write.
    fn word(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "\
Examples:
  flowstart list schemes
  flowstart list schemes blitzstart
  flowstart list link-options
  flowstart list links --json"
)]
pub(crate) struct Arguments {
    /// What to list.
    what: What,
    /// One entry, with everything about it.
    name: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// List the scenarios of this folder instead of those that come with the program.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut entries = entries::of(arguments.what, arguments.scenarios.as_deref())?;
    if let Some(name) = &arguments.name {
        let all: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        // Of a profile its own name is enough.
        let is_named = |one: &&str| {
            [Some(*one), one.split_once("profile=").map(|(_, profile)| profile)]
                .into_iter()
                .flatten()
                .any(|one| names::is_same(one, name))
        };
        let entry = match all.iter().position(is_named) {
            Some(place) => entries.swap_remove(place),
            None => entries::implied(arguments.what, name).ok_or_else(|| {
                let allowed = format!("`flowstart list {}` shows all", arguments.what.word());
                Failure::Input(names::unknown(name, &all, allowed))
            })?,
        };
        entries = vec![entry];
    }
    let text = if arguments.json {
        let list: Vec<_> = entries.iter().map(entries::Entry::json).collect();
        serde_json::to_string_pretty(&list).map_err(|error| Failure::Other(error.to_string()))?
    } else if arguments.name.is_some() {
        entries.iter().map(|entry| page::page(entry, width())).collect()
    } else {
        page::lines(&entries, width())
    };
    print(&format!("{}\n", text.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}
