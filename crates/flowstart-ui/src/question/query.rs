//! A question in an address: the options of `flowstart compare` by name, and what only study files have.

use flowstart_core::spec::names;
use flowstart_lab::study::plan::{AXES, Axis};
use flowstart_lab::study::scenario::{Scenario, default_reps, default_seed};
use form_urlencoded::{Serializer, parse};

use super::Refusal;
use super::limits::{MOST_FLOWS, MOST_REPS};

/// Most bytes of a question.
const LONGEST: usize = 16_000;
/// Most values of a question.
const MOST_VALUES: usize = 100;

/// Names that are no axes, in the order in which addresses have them.
const OTHERS: [&str; 11] = [
    "flows",
    "reps",
    "seed",
    "no-hint",
    "no-knowledge",
    "noise",
    "link-options",
    "published",
    "title",
    "question",
    "analysis",
];
/// Reads as yes, and so does a name without a value.
const ON: &str = "on";
/// Reads as no.
const OFF: &str = "off";

/// The axes' names, in the order in which addresses have them.
fn axes() -> impl Iterator<Item = &'static str> {
    AXES.iter().flat_map(|axis| axis.keys).map(|key| key.name)
}

/// Reads a question. What is not there is as with `flowstart compare`.
pub(super) fn read(query: &str) -> Result<Scenario, Refusal> {
    if query.len() > LONGEST {
        return Err(Refusal(format!("the question has {} bytes; allowed are {LONGEST}", query.len())));
    }
    let mut scenario = Scenario {
        flows: 1,
        reps: default_reps(),
        seed: default_seed(),
        hint: true,
        noise: true,
        ..Scenario::default()
    };
    let known: Vec<&str> = axes().chain(OTHERS).collect();
    let (mut given, mut values) = (Vec::new(), 0);
    for (name, value) in parse(query.as_bytes()) {
        let value = value.trim();
        let Some(name) = names::find(&name, &known) else {
            let allowed = format!("allowed are {}", known.join(", "));
            return Err(Refusal(names::unknown(&super::shortened(&name), &known, allowed)));
        };
        let is_axis = Axis::key(name).is_some();
        // A text has words, an axis has values.
        values += if is_axis { value.split_whitespace().count().max(1) } else { 1 };
        if values > MOST_VALUES {
            return Err(Refusal(format!("the question has too many values; allowed are {MOST_VALUES}")));
        }
        if is_axis {
            let list = scenario.list(name);
            list.into_iter().for_each(|list| list.extend(value.split_whitespace().map(str::to_owned)));
            continue;
        }
        let is_flag = ["no-hint", "no-knowledge", "noise"].contains(&name);
        if value.is_empty() && !is_flag {
            continue;
        }
        if given.contains(&name) {
            return Err(Refusal(format!("{name} is given twice; allowed is one value")));
        }
        given.push(name);
        match name {
            "flows" => scenario.flows = number(name, value, MOST_FLOWS)?,
            "reps" => scenario.reps = number(name, value, MOST_REPS)?,
            "seed" => {
                let seed = value.parse().ok().filter(|seed| i64::try_from(*seed).is_ok());
                scenario.seed =
                    seed.ok_or_else(|| Refusal::of(name, value, format!("allowed is 0 to {}", i64::MAX)))?;
            }
            "no-hint" => scenario.hint = !flag(name, value)?,
            "no-knowledge" => scenario.unknown = flag(name, value)?,
            "noise" => scenario.noise = flag(name, value)?,
            "link-options" => scenario.link_options = Some(value.to_owned()),
            "published" => scenario.published = Some(value.to_owned()),
            "title" => value.clone_into(&mut scenario.title),
            "question" => value.clone_into(&mut scenario.question),
            _ => value.clone_into(&mut scenario.analysis),
        }
    }
    Ok(scenario)
}

fn number(name: &str, value: &str, most: u32) -> Result<u32, Refusal> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Refusal::of(name, value, format!("allowed is 1 to {most}")))
}

fn flag(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "" => Ok(true),
        _ if names::is_same(value, ON) => Ok(true),
        _ if names::is_same(value, OFF) => Ok(false),
        _ => Err(Refusal::of(name, value, format!("allowed is {ON} or {OFF}"))),
    }
}

/// The address of a question. Its values lose their spaces, which separate values in addresses, and it loses the
/// defaults of its axes: all that mean the same have one address.
pub(super) fn write(scenario: &mut Scenario) -> Result<String, Refusal> {
    let mut query = Serializer::new(String::new());
    for name in axes() {
        let default = Axis::key(name).and_then(|key| key.default);
        let Some(list) = scenario.list(name) else { continue };
        for text in &mut *list {
            *text = text.split_whitespace().collect();
        }
        list.retain(|text| !text.is_empty());
        // What is not written is the default, in files too.
        if matches!(&list[..], [one] if Some(one.as_str()) == default) {
            list.clear();
        }
        query.extend_pairs(list.iter().map(|text| (name, text)));
    }
    let plain = Scenario { flows: 1, reps: default_reps(), seed: default_seed(), ..Scenario::default() };
    if scenario.flows != plain.flows {
        query.append_pair("flows", &scenario.flows.to_string());
    }
    // Always, because it is what readers change.
    query.append_pair("reps", &scenario.reps.to_string());
    if scenario.seed != plain.seed {
        query.append_pair("seed", &scenario.seed.to_string());
    }
    for (name, is_set, text) in
        [("no-hint", !scenario.hint, ON), ("no-knowledge", scenario.unknown, ON), ("noise", !scenario.noise, OFF)]
    {
        if is_set {
            query.append_pair(name, text);
        }
    }
    let (options, published) = (scenario.link_options.as_deref(), scenario.published.as_deref());
    let texts = [Some(&*scenario.title), Some(&*scenario.question), Some(&*scenario.analysis)];
    let names = ["link-options", "published", "title", "question", "analysis"];
    for (name, text) in names.into_iter().zip([options, published].into_iter().chain(texts)) {
        if let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) {
            query.append_pair(name, text);
        }
    }
    let query = query.finish();
    if query.len() > LONGEST {
        return Err(Refusal(format!("the question has {} bytes as an address; allowed are {LONGEST}", query.len())));
    }
    Ok(query)
}
