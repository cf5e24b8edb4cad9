//! Options of the axes of an experiment, which the lab declares.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use flowstart_lab::study::axis::{Key, Need};
use flowstart_lab::study::plan::{AXES, Axis};
use flowstart_lab::study::scenario::Scenario;

/// The default of an axis with this key, for commands with options of their own.
pub(crate) fn default_of(key: &str) -> &'static str {
    Axis::key(key).and_then(|key| key.default).unwrap_or_default()
}

/// The options that choose a cell of earlier results instead of a description.
const INSTEAD: [&str; 2] = ["cell", "from"];

/// The values of the options of axes: several each, or one each for commands that run one cell. Those commands have a
/// `--scheme` of their own.
#[derive(Debug)]
pub(crate) struct Axes<const SEVERAL: bool>(Vec<(&'static Key, Vec<String>)>);

impl<const SEVERAL: bool> Axes<SEVERAL> {
    /// The keys, required ones first.
    fn keys() -> impl Iterator<Item = &'static Key> {
        let all = || AXES.iter().flat_map(|axis| axis.keys).filter(|key| SEVERAL || key.one.is_some());
        all().filter(|key| key.need != Need::Never).chain(all().filter(|key| key.need == Need::Never))
    }

    /// Writes it into a scenario.
    pub(crate) fn write(&self, scenario: &mut Scenario) {
        for (key, texts) in &self.0 {
            if let Some(list) = scenario.list(key.name) {
                list.clone_from(texts);
            }
        }
    }

    fn option(key: &Key) -> Arg {
        let option = Arg::new(key.name).long(key.name).value_name(key.takes);
        let option = match key.default {
            Some(default) => option.default_value(default),
            None => option,
        };
        match (key.need, SEVERAL) {
            (Need::Never, _) => option,
            (Need::Always, true) => option.required(true),
            (Need::Without(other), true) => option.required_unless_present(other),
            (Need::Always, false) => option.required_unless_present_any(INSTEAD),
            (Need::Without(other), false) => option.required_unless_present_any(INSTEAD.into_iter().chain([other])),
        }
    }
}

impl<const SEVERAL: bool> Args for Axes<SEVERAL> {
    fn augment_args(command: Command) -> Command {
        Self::keys().fold(command, |command, key| {
            let option = Self::option(key);
            command.arg(match key.one.filter(|_| !SEVERAL) {
                Some(help) => option.help(help),
                None => option.help(key.several).num_args(1..).action(ArgAction::Append),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SEVERAL: bool> FromArgMatches for Axes<SEVERAL> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let texts =
            |key: &Key| matches.get_many::<String>(key.name).map_or(Vec::new(), |texts| texts.cloned().collect());
        Ok(Self(Self::keys().map(|key| (key, texts(key))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
