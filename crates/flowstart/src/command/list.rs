//! `flowstart list`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_lab::results::metric::Group;
use flowstart_lab::results::row::METRICS;
use flowstart_lab::spec::link::PRESETS;
use flowstart_lab::spec::{STACK, STACK_SUMMARY};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::study::shipped::SHIPPED;
use flowstart_sim::transport::profile::PROFILES;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::print;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Schemes,
    Avoidance,
    Aqms,
    Links,
    Transports,
    Scenarios,
    Metrics,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowstart list schemes\n  flowstart list links --json")]
pub(crate) struct Arguments {
    /// What to list.
    what: What,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// List the scenarios of this folder instead of those that come with the program.
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
}

/// An entry: its name, summary and reference, and its parameters with their defaults.
struct Entry {
    name: String,
    summary: String,
    source: String,
    /// Startup schemes: Sensing, Probing, Validation and Continuation.
    phases: Option<&'static str>,
    /// Metrics: of their numbers.
    unit: Option<&'static str>,
    parameters: Value,
}

fn parameters(config: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.remove("kind");
    }
    value
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let entries = match arguments.what {
        What::Schemes => StartupConfig::defaults()
            .iter()
            .map(|c| Entry { phases: Some(c.phases()), ..entry(c.name(), c.summary(), c.reference(), parameters(c)) })
            .chain([entry(STACK, STACK_SUMMARY, "", Value::Null)])
            .collect(),
        What::Avoidance => AvoidanceConfig::defaults()
            .iter()
            .map(|c| entry(c.name(), c.summary(), c.reference(), parameters(c)))
            .collect(),
        What::Aqms => {
            QueueConfig::defaults().iter().map(|c| entry(c.name(), c.summary(), c.reference(), parameters(c))).collect()
        }
        What::Links => {
            PRESETS.iter().map(|preset| entry(preset.name, preset.spec, preset.source, Value::Null)).collect()
        }
        What::Transports => PROFILES
            .iter()
            .filter_map(|(name, about)| {
                let profile = flowstart_sim::transport::profile::Profile::named(name)?;
                let protocol = match profile.protocol {
                    flowstart_sim::transport::policy::Protocol::Tcp => "model-tcp",
                    flowstart_sim::transport::policy::Protocol::Quic => "model-quic",
                };
                Some(entry(&format!("{protocol}:profile={name}"), about, "", parameters(&profile)))
            })
            .chain([entry(
                "quic",
                "the real QUIC stack noq 1.4.0 in simulated time; competitors are models",
                "",
                Value::Null,
            )])
            .collect(),
        What::Scenarios => match &arguments.scenarios {
            Some(folder) => scenarios(folder)?,
            None => shipped()?,
        },
        What::Metrics => METRICS
            .iter()
            .filter(|metric| metric.group != Group::Identity)
            .map(|metric| Entry {
                unit: Some(metric.unit.symbol()),
                ..entry(metric.name, metric.meaning(), "", Value::Null)
            })
            .collect(),
    };
    if arguments.json {
        let list: Vec<Value> = entries
            .iter()
            .map(|e| {
                if let Some(unit) = e.unit {
                    return json!({"name": e.name, "unit": unit, "meaning": e.summary});
                }
                let mut value =
                    json!({"name": e.name, "summary": e.summary, "source": e.source, "parameters": e.parameters});
                if let Some(phases) = e.phases {
                    value["phases"] = json!(phases);
                }
                value
            })
            .collect();
        let text = serde_json::to_string_pretty(&list).map_err(|error| Failure::Other(error.to_string()))?;
        print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let brief = matches!(arguments.what, What::Transports);
    let text = if std::io::stdout().is_terminal() { table(&entries, brief) } else { lines(&entries, brief) };
    print(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// An entry's parameters with their defaults. Profiles have too many to read.
fn defaults(entry: &Entry, brief: bool) -> String {
    if brief {
        return "see --json".into();
    }
    entry.parameters.as_object().map_or(String::new(), |object| {
        object.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(", ")
    })
}

/// For other programs: one line per entry, the name first.
fn lines(entries: &[Entry], brief: bool) -> String {
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let mut line = format!("{:width$}  {}", entry.name, words(&entry.summary));
        if let Some(unit) = entry.unit {
            line += &format!(" [{unit}]");
        }
        if !entry.source.is_empty() {
            line += &format!(" ({})", entry.source);
        }
        if let Some(phases) = entry.phases {
            line += &format!("; senses, probes, validates, continues: {phases}");
        }
        let parameters = defaults(entry, brief);
        if !brief && !parameters.is_empty() {
            line += &format!("; {parameters}");
        }
        line
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A text of possibly several lines, joined into one.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text without line breaks inside its paragraphs.
fn paragraphs(text: &str) -> String {
    text.trim().split("\n\n").map(words).collect::<Vec<_>>().join("\n\n")
}

fn table(entries: &[Entry], brief: bool) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["name", "what", "source", "parameters (defaults)"]);
    for entry in entries {
        let what = match entry.phases {
            Some(phases) => format!("{}\nsenses; probes; validates; continues: {phases}", entry.summary),
            None => entry.summary.clone(),
        };
        let what = entry.unit.map_or(what.clone(), |unit| format!("{what} [{unit}]"));
        table.add_row([&entry.name, &what, &entry.source, &defaults(entry, brief)]);
    }
    table.to_string()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

fn entry(name: &str, summary: &str, source: &str, parameters: Value) -> Entry {
    Entry { name: name.into(), summary: summary.into(), source: source.into(), phases: None, unit: None, parameters }
}

fn shipped() -> Result<Vec<Entry>, Failure> {
    SHIPPED
        .iter()
        .map(|(name, text)| {
            let scenario = Scenario::from_text(text).map_err(|error| Failure::scenario(Path::new(name), error))?;
            Ok(entry(name, &paragraphs(&scenario.question), "", Value::Null))
        })
        .collect()
}

fn scenarios(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let refused = |error: std::io::Error| Failure::Input(format!("--scenarios {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(refused)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let scenario = Scenario::read(file).map_err(|error| Failure::scenario(file, error))?;
            Ok(entry(&file.display().to_string(), &paragraphs(&scenario.question), "", Value::Null))
        })
        .collect()
}
