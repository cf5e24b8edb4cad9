//! `flowstart list`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use flowstart_core::spec::names;
use flowstart_lab::catalogue::{self, Entry, LISTS, List, ListError};

use crate::failure::Failure;
use crate::output::{print, width};

mod page;

/// A list as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct What(List);

impl What {
    const ALL: [Self; LISTS.len()] = {
        let mut all = [Self(List::Schemes); LISTS.len()];
        let mut place = 0;
        while place < LISTS.len() {
            all[place] = Self(LISTS[place].0);
            place += 1;
        }
        all
    };

    /// The word that users write, and what it stands for.
    fn words(self) -> (&'static str, &'static str) {
        let found = LISTS.iter().find(|(list, ..)| *list == self.0);
        found.map_or(("", ""), |(_, word, about)| (word, about))
    }
}

impl ValueEnum for What {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, about) = self.words();
        Some(PossibleValue::new(word).help(about))
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
    let mut entries = catalogue::of(arguments.what.0, arguments.scenarios.as_deref()).map_err(|error| match error {
        ListError::Folder { .. } => Failure::Input(format!("--scenarios {error}")),
        ListError::Scenario { file, error } => Failure::scenario(&file, error),
    })?;
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
            None => catalogue::implied(arguments.what.0, name).ok_or_else(|| {
                let allowed = format!("`flowstart list {}` shows all", arguments.what.words().0);
                Failure::Input(names::unknown(name, &all, allowed))
            })?,
        };
        entries = vec![entry];
    }
    let text = if arguments.json {
        let list: Vec<_> = entries.iter().map(Entry::json).collect();
        serde_json::to_string_pretty(&list).map_err(|error| Failure::Other(error.to_string()))?
    } else if arguments.name.is_some() {
        entries.iter().map(|entry| page::page(entry, width())).collect()
    } else {
        page::lines(&entries, width())
    };
    print(&format!("{}\n", text.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}
