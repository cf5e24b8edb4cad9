//! `flowstart completions`.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart completions bash > \\
    ~/.local/share/bash-completion/completions/flowstart
  flowstart completions zsh > ~/.zfunc/_flowstart
  flowstart completions fish > ~/.config/fish/completions/flowstart.fish

For zsh, the folder must be one of $fpath.")]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

pub(crate) fn main(arguments: &Arguments, mut command: Command) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "flowstart", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
