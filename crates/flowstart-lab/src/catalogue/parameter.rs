//! What the parameters of algorithms and transport profiles are, from the doc comments of their fields (`build.rs`).

use serde_json::Value;

/// A parameter: its name, what its values are, and what it means.
type Documented = (&'static str, &'static str, &'static str);

/// By family and name of the algorithm.
const DOCUMENTED: &[(&str, &str, &[Documented])] = include!(concat!(env!("OUT_DIR"), "/parameters.rs"));

/// A parameter as it is shown.
#[derive(Debug)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// What its values are; empty if that is not known.
    pub values: String,
    /// What it means.
    pub meaning: String,
    /// Its value if it is not written; `None`: it is needed.
    pub default: Option<String>,
    /// A valid use.
    pub example: &'static str,
}

/// The parameters of an algorithm, or of a transport profile, whose defaults are these.
pub(super) fn of(family: &str, name: &str, defaults: &Value) -> Vec<Parameter> {
    let documented = DOCUMENTED.iter().find(|(of, one, _)| *of == family && *one == name);
    let documented = documented.map_or(&[][..], |(_, _, parameters)| parameters);
    let Some(defaults) = defaults.as_object() else { return Vec::new() };
    let parameter = |name: &str, default: String| {
        let found = documented.iter().find(|(known, ..)| *known == name);
        let (_, values, meaning) = found.copied().unwrap_or_default();
        Parameter {
            name: name.to_owned(),
            values: values.to_owned(),
            meaning: meaning.to_owned(),
            default: Some(default),
            example: "",
        }
    };
    // What an algorithm's defaults leave out is off, or follows other values, as its meaning says. Profiles leave out
    // what their protocol does not have.
    let documented = documented.iter().filter(|_| !name.is_empty()).map(|&(known, ..)| known);
    let unset = documented.filter(|known| !defaults.contains_key(*known));
    let set = defaults.iter().map(|(name, default)| parameter(name, plain(default)));
    set.chain(unset.map(|name| parameter(name, "unset".to_owned()))).collect()
}

/// A default as users would write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        Value::Object(group) => {
            let parts = group.iter().map(|(key, value)| format!("{key}={}", plain(value)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::QueueConfig;
    use flowstart_core::avoidance::AvoidanceConfig;
    use flowstart_core::startup::StartupConfig;
    use flowstart_sim::transport::profile::Profile;
    use serde::Serialize;

    use super::*;

    fn check(family: &str, name: &str, config: &impl Serialize) {
        let mut defaults = serde_json::to_value(config).unwrap();
        defaults.as_object_mut().unwrap().remove("kind");
        for Parameter { name: parameter, values, meaning, default, .. } in of(family, name, &defaults) {
            assert!(meaning.len() > 3, "{family} {name}: {parameter} has no meaning");
            // Words are among the words that are allowed.
            let words: Vec<&str> = values.split(", ").collect();
            let is_words =
                words.len() > 1 && values.chars().all(|letter| letter.is_alphanumeric() || " ,-".contains(letter));
            let default = default.unwrap();
            if is_words && default != "none" && default != "unset" {
                assert!(words.contains(&&*default), "{family} {name}: {parameter} is {default}, one of {values}");
            }
        }
    }

    #[test]
    fn every_parameter_of_an_algorithm_and_of_a_profile_has_a_meaning() {
        StartupConfig::defaults().iter().for_each(|config| check("startup", config.name(), config));
        AvoidanceConfig::defaults().iter().for_each(|config| check("avoidance", config.name(), config));
        QueueConfig::defaults().iter().for_each(|config| check("aqm", config.name(), config));
        check("transport", "", &Profile::named("tcp-linux").unwrap());
    }
}
