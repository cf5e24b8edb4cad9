//! A question as the command that asks the same.

use flowstart_lab::study::axis::Key;
use flowstart_lab::study::plan::AXES;
use flowstart_lab::study::scenario::{Scenario, default_reps, default_seed};

/// The name of the study file that pages offer.
pub(crate) const FILE: &str = "question.toml";

/// The words of the command: `compare`, or `run` with the study file where that has what `compare` has no option for.
pub(super) fn command(scenario: &Scenario) -> Vec<String> {
    let plain = Scenario {
        title: String::new(),
        question: String::new(),
        analysis: String::new(),
        link_options: None,
        published: None,
        noise: true,
        ..scenario.clone()
    };
    if plain != *scenario {
        return ["flowstart", "run", FILE].map(str::to_owned).to_vec();
    }
    let mut words = vec!["flowstart".to_owned(), "compare".to_owned()];
    let mut scenario = plain;
    for key in AXES.iter().flat_map(|axis| axis.keys) {
        let Key { name, default, .. } = key;
        let Some(list) = scenario.list(name) else { continue };
        let is_default = matches!(&list[..], [one] if Some(one.as_str()) == *default);
        if !list.is_empty() && !is_default {
            words.push(format!("--{name}"));
            words.append(list);
        }
    }
    let numbers = [
        ("--flows", u64::from(scenario.flows), 1),
        ("--reps", u64::from(scenario.reps), u64::from(default_reps())),
        ("--seed", scenario.seed, default_seed()),
    ];
    for (option, number, _) in numbers.into_iter().filter(|(_, number, default)| number != default) {
        words.extend([option.to_owned(), number.to_string()]);
    }
    let flags = [("--no-hint", !scenario.hint), ("--no-knowledge", scenario.unknown)];
    words.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(option, _)| option.to_owned()));
    words
}
