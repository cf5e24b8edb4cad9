//! Short help: the first sentence of what `--help` says of an option.

use clap::{Arg, Command};

/// Longest text that stays on the line of its option in a terminal of 80 columns.
const SHORT: usize = 46;

/// Gives options whose help is long a short help, for `-h`. A number below zero is a value of an option, which says
/// what it allows, and no option of its own.
pub(crate) fn with_short_help(command: Command) -> Command {
    command.mut_args(|arg| shortened(negative(arg))).mut_subcommands(with_short_help)
}

fn negative(arg: Arg) -> Arg {
    let takes_values = arg.get_action().takes_values() && !arg.is_positional();
    arg.allow_negative_numbers(takes_values)
}

fn shortened(arg: Arg) -> Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
    let first = first_sentence(&help);
    if help.chars().count() <= SHORT || first.len() == help.len() || arg.get_long_help().is_some() {
        return arg;
    }
    let first = first.to_owned();
    arg.help(first).long_help(help)
}

/// The text up to the end of its first sentence or clause.
fn first_sentence(text: &str) -> &str {
    let end = [". ", "; "].iter().filter_map(|mark| text.find(mark)).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_is_the_short_help_and_nothing_is_lost() {
        let long = "Links. A preset, such as lte; or a link of your own";
        let command =
            Command::new("x").arg(Arg::new("link").long("link").help(long)).arg(Arg::new("n").help("A number"));
        let command = with_short_help(Command::new("all").subcommand(command));
        let sub = command.find_subcommand("x").unwrap();
        let text = |name: &str| {
            let arg = sub.get_arguments().find(|arg| arg.get_id() == name).unwrap();
            (arg.get_help().map(ToString::to_string), arg.get_long_help().map(ToString::to_string))
        };
        assert_eq!(text("link"), (Some("Links".into()), Some(long.into())));
        assert_eq!(text("n"), (Some("A number".into()), None));
    }
}
