//! The entries of each list.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flowstart_bpf::port::PORTS;
use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::transport::profile::{PROFILES, Profile};
use serde::Serialize;
use serde_json::{Value, json};

use super::List;
use super::parameter::{self, Parameter};
use crate::experiment::run_count;
use crate::results::metric::Group;
use crate::results::row::METRICS;
use crate::spec::form::{Form, Key};
use crate::spec::link::{PRESETS, Preset, options};
use crate::spec::{SCHEME_KEYS, STACK, STACK_SUMMARY, application, aqm, competitor, transport};
use crate::study::scenario::{Scenario, ScenarioError};
use crate::study::shipped::SHIPPED;

/// A list that cannot be made.
#[derive(Debug)]
pub enum ListError {
    /// The folder of scenarios cannot be read.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file in it is no scenario.
    Scenario {
        /// The file.
        file: PathBuf,
        /// Why.
        error: ScenarioError,
    },
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { folder, error } => write!(f, "{}: {error}", folder.display()),
            Self::Scenario { file, error } => write!(f, "{}: {error}", file.display()),
        }
    }
}

impl std::error::Error for ListError {}

/// An entry of a list.
#[derive(Debug, Default)]
pub struct Entry {
    /// What users write.
    pub name: String,
    /// What it is, in a line if `title` is empty.
    pub summary: String,
    /// A shorter summary.
    pub title: String,
    /// The document that defines it.
    pub source: String,
    /// Startup schemes: Sensing, Probing, Validation and Continuation.
    pub phases: Option<&'static str>,
    /// Startup schemes: what the kernel's TCP calls it, where it has it.
    pub kernel_name: Option<&'static str>,
    /// Metrics: of their numbers.
    pub unit: Option<&'static str>,
    /// Algorithms and profiles: their parameters with their defaults, for other programs.
    defaults: Value,
    /// What users may set.
    pub parameters: Vec<Parameter>,
    /// How to write it with its parameters.
    pub usage: String,
    /// A valid use.
    pub example: String,
    /// Scenarios: how much they run.
    pub cost: String,
}

impl Entry {
    fn new(name: &str, summary: &str) -> Self {
        Self { name: name.into(), summary: summary.into(), ..Self::default() }
    }

    /// An algorithm of a registry; `option` takes its name.
    fn algorithm(
        family: &str,
        option: &str,
        config: &impl Serialize,
        name: &str,
        summary: &str,
        reference: &str,
    ) -> Self {
        let defaults = defaults(config);
        Self {
            source: reference.into(),
            parameters: parameter::of(family, name, &defaults),
            usage: format!("--{option} {name}:KEY=VALUE,..."),
            example: format!("--{option} {name}"),
            defaults,
            ..Self::new(name, summary)
        }
    }

    fn form(option: &str, form: &Form) -> Self {
        Self {
            parameters: form.keys.iter().map(key).collect(),
            usage: format!("--{option} {}:KEY=VALUE,...", form.name),
            example: format!("--{option} {}", form.example),
            ..Self::new(form.name, form.summary)
        }
    }

    /// For other programs.
    pub fn json(&self) -> Value {
        let Self { name, summary, .. } = self;
        if let Some(unit) = self.unit {
            return json!({"name": name, "unit": unit, "meaning": summary});
        }
        let mut value = json!({"name": name, "summary": summary, "source": self.source, "parameters": self.defaults});
        if let Some(phases) = self.phases {
            value["phases"] = json!(phases);
            value["kernel_name"] = json!(self.kernel_name);
        }
        if !self.example.is_empty() {
            value["example"] = json!(self.example);
        }
        if !self.parameters.is_empty() {
            let one = |parameter: &Parameter| {
                let Parameter { name, values, meaning, default, .. } = parameter;
                json!({"name": name, "values": values, "default": default, "meaning": meaning})
            };
            value["keys"] = self.parameters.iter().map(one).collect();
        }
        value
    }
}

fn key(key: &Key) -> Parameter {
    Parameter {
        name: key.name.into(),
        values: key.values.into(),
        meaning: key.meaning.into(),
        default: (!key.default.is_empty()).then(|| key.default.into()),
        example: key.example,
    }
}

/// Parameters with their defaults.
fn defaults(config: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.remove("kind");
    }
    value
}

/// The entries of a list. Scenarios are those of a folder, if one is given.
///
/// # Errors
///
/// The folder that cannot be read, or the file in it that is no scenario.
pub fn of(list: List, folder: Option<&Path>) -> Result<Vec<Entry>, ListError> {
    Ok(match list {
        List::Schemes => StartupConfig::defaults()
            .iter()
            .map(|c| {
                let mut entry = Entry::algorithm("startup", "scheme", c, c.name(), c.summary(), c.reference());
                entry.parameters.extend(SCHEME_KEYS.iter().map(key));
                let port = PORTS.iter().find(|port| port.scheme == c.name());
                Entry { phases: Some(c.phases()), kernel_name: port.map(|port| port.kernel_name), ..entry }
            })
            .chain([Entry { example: format!("--scheme {STACK}"), ..Entry::new(STACK, STACK_SUMMARY) }])
            .collect(),
        List::Avoidance => AvoidanceConfig::defaults()
            .iter()
            .map(|c| Entry::algorithm("avoidance", "avoidance", c, c.name(), c.summary(), c.reference()))
            .collect(),
        List::Aqms => QueueConfig::defaults()
            .iter()
            .map(|c| Entry::algorithm("aqm", "aqm", c, c.name(), c.summary(), c.reference()))
            .chain([Entry {
                example: format!("--aqm {}", aqm::ORACLE),
                ..Entry::new(aqm::ORACLE, aqm::Aqm::Oracle.summary())
            }])
            .collect(),
        List::Links => PRESETS.iter().map(preset).collect(),
        List::LinkOptions => options().map(|option| link_option(&option)).collect(),
        List::Transports => PROFILES.iter().filter_map(|(name, about)| profile(name, about)).chain([stack()]).collect(),
        List::Competitors => competitor::FORMS.iter().map(|form| Entry::form("competitor", form)).collect(),
        List::Applications => application::FORMS.iter().map(|form| Entry::form("application", form)).collect(),
        List::Scenarios => match folder {
            Some(folder) => scenarios(folder)?,
            None => shipped()?,
        },
        List::Metrics => METRICS
            .iter()
            .filter(|metric| metric.group != Group::Identity)
            .map(|metric| Entry { unit: Some(metric.unit.symbol()), ..Entry::new(metric.name, metric.meaning()) })
            .collect(),
    })
}

/// What users may write though lists show it only by what stands for it: congestion avoidance as a competitor, and
/// transports with the profile that they have by default.
pub fn implied(list: List, name: &str) -> Option<Entry> {
    match list {
        List::Competitors => {
            let config = AvoidanceConfig::defaults().into_iter().find(|config| names::is_same(config.name(), name))?;
            let form = competitor::FORMS.iter().find(|form| form.name == competitor::AVOIDANCE)?;
            let name = config.name();
            let own = Entry::algorithm("avoidance", "competitor", &config, name, form.summary, config.reference());
            let parameters = form.keys.iter().map(key).chain(own.parameters).collect();
            Some(Entry { summary: form.summary.replace(competitor::AVOIDANCE, name), parameters, ..own })
        }
        List::Transports => {
            let default = transport::default_profile(name)?;
            let (name, about) = PROFILES.iter().find(|(name, _)| *name == default)?;
            profile(name, about)
        }
        _ => None,
    }
}

fn preset(preset: &Preset) -> Entry {
    let meaning = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let known = options().find(|known| known.name == name)?;
        Some(Parameter { default: Some(value.into()), values: String::new(), ..key(&known) })
    };
    Entry {
        source: preset.source.into(),
        parameters: preset.spec.split(',').filter_map(meaning).collect(),
        usage: format!("--link {},KEY=VALUE,...", preset.name),
        example: format!("--link {},buffer=1bdp", preset.name),
        ..Entry::new(preset.name, preset.spec)
    }
}

fn link_option(option: &Key) -> Entry {
    Entry {
        parameters: vec![key(option)],
        usage: format!("--link PRESET,{}=VALUE,...", option.name),
        example: option.example.into(),
        ..Entry::new(option.name, option.meaning)
    }
}

fn profile(name: &str, about: &str) -> Option<Entry> {
    let profile = Profile::named(name)?;
    let protocol = match profile.protocol {
        Protocol::Tcp => "model-tcp",
        Protocol::Quic => "model-quic",
    };
    let defaults = defaults(&profile);
    let spec = format!("{protocol}:profile={name}");
    Some(Entry {
        parameters: parameter::of("transport", "", &defaults),
        usage: format!("--transport {spec},KEY=VALUE,..."),
        example: format!("--transport {spec}"),
        defaults,
        ..Entry::new(&spec, about)
    })
}

/// The real stack.
fn stack() -> Entry {
    let summary = "the real QUIC stack noq 1.4.0 in simulated time; competitors are models";
    Entry { example: "--transport quic".into(), ..Entry::new("quic", summary) }
}

/// A text of possibly several lines, joined into one.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text without line breaks inside its paragraphs.
fn paragraphs(text: &str) -> String {
    text.trim().split("\n\n").map(words).collect::<Vec<_>>().join("\n\n")
}

fn scenario(name: &str, scenario: &Scenario, folder: &Path) -> Entry {
    // A scenario without its recordings has no plan.
    let cost = scenario.plan(folder).map_or(String::new(), |plan| {
        let runs = run_count(&plan);
        format!("{} cells of {} repetitions, {runs} runs", runs / u64::from(plan.reps), plan.reps)
    });
    Entry {
        cost,
        title: words(&scenario.title),
        source: paragraphs(&scenario.analysis),
        example: format!("flowstart run {name} --reps 5"),
        ..Entry::new(name, &paragraphs(&scenario.question))
    }
}

fn shipped() -> Result<Vec<Entry>, ListError> {
    SHIPPED
        .iter()
        .map(|(name, text)| {
            let read =
                Scenario::from_text(text).map_err(|error| ListError::Scenario { file: PathBuf::from(name), error })?;
            Ok(scenario(name, &read, Path::new(".")))
        })
        .collect()
}

fn scenarios(folder: &Path) -> Result<Vec<Entry>, ListError> {
    let refused = |error| ListError::Folder { folder: folder.to_owned(), error };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(refused)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let read = Scenario::read(file).map_err(|error| ListError::Scenario { file: file.clone(), error })?;
            Ok(scenario(&file.display().to_string(), &read, folder))
        })
        .collect()
}
