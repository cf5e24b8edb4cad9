//! `flowstart man`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;
use flowstart_lab::results::folder::write_file;

use crate::failure::Failure;
use crate::interruption::leaves_nothing_half_written;
use crate::output::print;

/// The title of a page stands within so many bytes of its start.
const TITLE_WITHIN: u64 = 500;

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
    fs::create_dir_all(folder).map_err(|error| {
        let message = format!("{}: {error}", folder.display());
        if error.kind() == io::ErrorKind::StorageFull { Failure::Other(message) } else { Failure::Input(message) }
    })?;
    // Subcommands get the options that all have, and the names of their pages.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages).map_err(|error| Failure::Other(error.to_string()))?;
    let files = || pages.iter().map(|(name, _)| folder.join(name));
    if let Some(file) = files().find(|file| !may_be_replaced(file)) {
        let problem = "exists, and is not a page of flowstart; nothing was overwritten";
        return Err(Failure::Input(format!("{}: {problem}", file.display())));
    }
    leaves_nothing_half_written();
    for (file, (_, text)) in files().zip(&pages) {
        write_file(&file, |out| out.write_all(text))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of all below it, with the names of their files.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, pages)?;
    }
    pages.push((Man::new(command.clone()).get_filename(), page(command.clone())?));
    Ok(())
}

/// Whether nothing is lost if a page gets this name: nothing has it, or a page of flowstart, of any version. Folders of
/// manual pages have those of other programs, too.
fn may_be_replaced(file: &Path) -> bool {
    match file.symlink_metadata() {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(metadata) if !metadata.is_file() => false,
        Ok(_) => {
            let mut start = Vec::new();
            let read = File::open(file).and_then(|file| file.take(TITLE_WITHIN).read_to_end(&mut start));
            read.is_ok() && String::from_utf8_lossy(&start).lines().any(|line| line.starts_with(".TH flowstart"))
        }
    }
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(text)
}
