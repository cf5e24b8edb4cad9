//! `flowstart man`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart man | man -l -
  flowstart man ~/.local/share/man/man1
  man flowstart-compare")]
pub(crate) struct Arguments {
    /// Folder for a page of each subcommand; without it the main page goes to stdout.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, command: Command) -> Result<ExitCode, Failure> {
    let Some(folder) = &arguments.folder else {
        print(&String::from_utf8_lossy(&page(command).map_err(|error| Failure::Other(error.to_string()))?))?;
        return Ok(ExitCode::SUCCESS);
    };
    let refused = |path: &Path, error: std::io::Error| Failure::Input(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    // Subcommands get the options that all have, and the names of their pages.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, folder).map_err(|error| refused(folder, error))?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(text)
}
