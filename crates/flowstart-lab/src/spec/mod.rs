//! What users write: specs, quantities, presets.
//!
//! A spec is `name:key=value,key=value`. What was written is kept beside what it means, so that results can show both.

use std::fmt;

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::registry::ConfigError;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::profile::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::transport::Transport;

pub mod application;
pub mod aqm;
pub mod arrival;
pub mod competitor;
pub mod link;
pub mod mobility;
pub mod routers;
mod scone;
pub mod size;
#[cfg(feature = "quic")]
pub mod stack;
#[cfg(not(feature = "quic"))]
#[path = "without_stack.rs"]
pub mod stack;
pub mod transport;
pub mod web;

/// Bad input: where it stands, what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The option or the field of a scenario.
    pub field: String,
    /// What was written there.
    pub value: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl InputError {
    /// An error in `field`, where `value` was written.
    pub fn new(field: impl Into<String>, value: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.into(), problem: problem.into() }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, problem } = self;
        if value.is_empty() { write!(f, "{field}: {problem}") } else { write!(f, "{field} `{value}`: {problem}") }
    }
}

impl std::error::Error for InputError {}

/// A value together with what the user wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// As written.
    pub text: String,
    /// What it means.
    pub value: T,
}

/// A spec taken apart: the name and its keys in the order written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts<'a> {
    pub(crate) name: &'a str,
    pub(crate) keys: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    /// Takes `name:key=value,key=value` apart. Without a name, as in a link, `name` is empty.
    pub(crate) fn parse(field: &str, text: &'a str) -> Result<Self, InputError> {
        let text = text.trim();
        let refused = |problem: String| InputError::new(field, text, problem);
        if text.is_empty() {
            return Err(refused("nothing is written; expected name:key=value,key=value".into()));
        }
        let (name, rest) = match text.split_once(':') {
            // The colon of a value such as a file name comes after the first `=`.
            Some((name, rest)) if !name.contains('=') => (name.trim(), rest),
            _ if text.contains('=') => ("", text),
            _ => (text, ""),
        };
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim(), value.trim());
            if keys.iter().any(|(known, _)| *known == key) {
                return Err(refused(format!("`{key}` is given twice")));
            }
            keys.push((key, value));
        }
        Ok(Self { name, keys })
    }

    /// What stands where a name is expected, for messages about names that are not known.
    pub(crate) fn called(&self) -> &'a str {
        let first = self.keys.first().map_or("", |(key, _)| key);
        if self.name.is_empty() { first } else { self.name }
    }
}

/// A key's value as TOML: a boolean, a number, or a string.
fn toml_value(text: &str) -> toml::Value {
    if let Ok(value) = text.parse::<bool>() {
        return toml::Value::Boolean(value);
    }
    if let Ok(value) = text.parse::<i64>() {
        return toml::Value::Integer(value);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => toml::Value::Float(value),
        _ => toml::Value::String(text.to_owned()),
    }
}

/// Reads an algorithm's spec into its configuration. `base` says how a host runs the algorithm with a name; the spec's
/// keys override that.
fn algorithm<'a, C>(
    field: &str,
    text: &str,
    names: &[&str],
    validate: impl Fn(&C) -> Result<(), ConfigError>,
    base: impl FnOnce(&str) -> Option<&'a C>,
) -> Result<Written<C>, InputError>
where
    C: Serialize + DeserializeOwned + 'a,
{
    let parts = Parts::parse(field, text)?;
    let refused = |problem: String| InputError::new(field, text, problem);
    if !names.contains(&parts.name) {
        return Err(refused(format!("`{}` is not known; use one of {}", parts.called(), names.join(", "))));
    }
    let mut table = match base(parts.name) {
        Some(config) => toml::Table::try_from(config).map_err(|error| refused(error.to_string()))?,
        None => toml::Table::new(),
    };
    table.insert("kind".into(), toml::Value::String(parts.name.to_owned()));
    for (key, value) in parts.keys {
        if value.is_empty() {
            return Err(refused(format!("`{key}` needs a value, as in {key}=...")));
        }
        // `kind` is how the registry's enum knows the algorithm; written as a key it would turn it into another one.
        if key == "kind" {
            return Err(refused(format!("unknown field `kind`; the name before the colon, {}, says it", parts.name)));
        }
        table.insert(key.to_owned(), toml_value(value));
    }
    let value: C = table.try_into().map_err(|error: toml::de::Error| {
        let keys = keys::<C>(parts.name).filter(|_| error.message().starts_with("unknown field"));
        refused(match keys {
            Some(keys) if !error.message().contains("expected") => {
                format!("{}, expected one of `{}`", error.message(), keys.join("`, `"))
            }
            _ => error.message().to_owned(),
        })
    })?;
    validate(&value).map_err(|error| refused(error.to_string()))?;
    Ok(Written { text: text.to_owned(), value })
}

/// The keys of an algorithm, which serde does not list where some of them are shared with another algorithm.
fn keys<C: Serialize + DeserializeOwned>(name: &str) -> Option<Vec<String>> {
    let table = toml::Table::from_iter([("kind".to_owned(), toml::Value::String(name.to_owned()))]);
    let value = serde_json::to_value(table.try_into::<C>().ok()?).ok()?;
    Some(value.as_object()?.keys().filter(|key| *key != "kind").cloned().collect())
}

/// Reads a startup scheme.
pub fn scheme(field: &str, text: &str, base: &StartupConfig) -> Result<Written<StartupConfig>, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    algorithm(field, text, StartupConfig::NAMES, StartupConfig::validate, base)
}

/// Reads a startup scheme of a host with this profile, which decides what the spec leaves to it.
pub(crate) fn host_scheme(field: &str, text: &str, profile: &Profile) -> Result<Written<StartupConfig>, InputError> {
    let written = scheme(field, text, &profile.startup)?;
    Ok(Written { value: profile.resolved(written.value), ..written })
}

/// The scheme that is none: what the transport does by itself.
pub const STACK: &str = "stack";
/// One line for listings.
pub const STACK_SUMMARY: &str =
    "what the transport profile does by itself: its own startup and congestion avoidance; takes no --avoidance";

/// A startup scheme, and the congestion avoidance that comes with it.
type Measured = (Written<StartupConfig>, Option<Written<AvoidanceConfig>>);

/// Reads the scheme of measured flows, which may name a congestion avoidance of its own, `slow-start:avoidance=xcp`, or be
/// [`STACK`].
///
/// # Errors
///
/// What cannot be read of either.
pub fn measured_scheme(field: &str, text: &str, transport: &Transport) -> Result<Measured, InputError> {
    let profile = &*transport.profile;
    let parts = Parts::parse(field, text)?;
    if parts.name == STACK {
        return own_stack(field, text, &parts, transport);
    }
    if !StartupConfig::NAMES.contains(&parts.name) {
        let problem =
            format!("`{}` is not known; use one of {}, {STACK}", parts.called(), StartupConfig::NAMES.join(", "));
        return Err(InputError::new(field, text, problem));
    }
    let Some((_, named)) = parts.keys.iter().find(|(key, _)| *key == "avoidance") else {
        return Ok((host_scheme(field, text, profile)?, None));
    };
    let rest: Vec<String> =
        parts.keys.iter().filter(|(key, _)| *key != "avoidance").map(|(key, value)| format!("{key}={value}")).collect();
    let spec = if rest.is_empty() { parts.name.to_owned() } else { format!("{}:{}", parts.name, rest.join(",")) };
    let startup = host_scheme(field, &spec, profile)?.value;
    let own = host_avoidance(field, named, profile)?;
    Ok((Written { text: text.to_owned(), value: startup }, Some(own)))
}

/// [`STACK`], which is as it is.
fn own_stack(field: &str, text: &str, parts: &Parts<'_>, transport: &Transport) -> Result<Measured, InputError> {
    let profile = &*transport.profile;
    if let Some((key, _)) = parts.keys.first() {
        let problem = format!(
            "`{key}` is not for {STACK}, which is what profile {} does by itself, {} and {}; allowed is {STACK} alone",
            transport.profile_name,
            profile.startup.name(),
            profile.avoidance.name()
        );
        return Err(InputError::new(field, text, problem));
    }
    if transport.stack.is_some() {
        let problem = "the real stack runs the controller of this program, never its own; allowed are the other schemes, such as \
                       slow-start:avoidance=cubic, or --transport model-quic and model-tcp";
        return Err(InputError::new(field, text, problem));
    }
    let startup = Written { text: STACK.to_owned(), value: profile.resolved(profile.startup.clone()) };
    let avoidance = Written { text: profile.avoidance.name().to_owned(), value: profile.avoidance.clone() };
    Ok((startup, Some(avoidance)))
}

/// Reads a congestion avoidance.
pub fn avoidance(field: &str, text: &str, base: &AvoidanceConfig) -> Result<Written<AvoidanceConfig>, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    algorithm(field, text, AvoidanceConfig::NAMES, AvoidanceConfig::validate, base)
}

/// Reads a congestion avoidance of a host with this profile, which says how it runs the algorithm.
pub(crate) fn host_avoidance(
    field: &str,
    text: &str,
    profile: &Profile,
) -> Result<Written<AvoidanceConfig>, InputError> {
    let base = |name: &str| profile.avoidance_named(name);
    algorithm(field, text, AvoidanceConfig::NAMES, AvoidanceConfig::validate, base)
}

/// Reads a queue discipline.
pub fn aqm(field: &str, text: &str) -> Result<Written<QueueConfig>, InputError> {
    algorithm(field, text, QueueConfig::NAMES, QueueConfig::validate, |_| None)
}

#[cfg(test)]
mod tests {
    use flowstart_core::avoidance::{bbr, cubic};
    use flowstart_core::startup::blitzstart;

    use super::*;

    fn baseline() -> StartupConfig {
        StartupConfig::defaults().remove(0)
    }

    #[test]
    fn specs_become_configurations() {
        let written = scheme("--scheme", "blitzstart:estimate=1.5,rtt=handshake", &baseline()).unwrap();
        let expected = blitzstart::Config {
            estimate: 1.5,
            rtt: blitzstart::RttSource::Handshake,
            ..blitzstart::Config::default()
        };
        assert_eq!(written.value, StartupConfig::Blitzstart(expected));
    }

    #[test]
    fn a_hosts_own_variant_is_the_base_of_its_algorithm() {
        let two = cubic::Config { connections: 2, ..cubic::Config::default() };
        let base = AvoidanceConfig::Cubic(two.clone());
        assert_eq!(avoidance("--avoidance", "cubic", &base).unwrap().value, base);
        let Ok(Written { value: AvoidanceConfig::Cubic(config), .. }) =
            avoidance("--avoidance", "cubic:beta=0.5", &base)
        else {
            panic!("a valid spec");
        };
        assert_eq!((config.connections, config.beta), (2, 0.5));
        assert_eq!(avoidance("--avoidance", "reno", &base).unwrap().value.name(), "reno");
    }

    #[test]
    fn a_host_has_variants_of_more_than_its_own_algorithm() {
        let linux = Profile::tcp_linux();
        let version = |text| match host_avoidance("--avoidance", text, &linux).unwrap().value {
            AvoidanceConfig::Bbr(config) => config.version,
            other => panic!("{other:?}"),
        };
        assert_eq!((version("bbr"), version("bbr:version=3")), (bbr::Version::One, bbr::Version::Three));
        let reno = host_avoidance("--avoidance", "reno:beta=0.7", &linux).unwrap().value;
        assert!(matches!(reno, AvoidanceConfig::Reno(config) if config.whole_segments && config.beta == 0.7));
    }

    #[test]
    fn a_version_is_a_key_and_those_that_do_not_exist_are_refused() {
        let base = AvoidanceConfig::defaults().remove(0);
        let Ok(Written { value: AvoidanceConfig::Bbr(config), .. }) = avoidance("--avoidance", "bbr:version=1", &base)
        else {
            panic!("a valid spec");
        };
        assert_eq!(config.version, bbr::Version::One);
        let error = |text| avoidance("--avoidance", text, &base).unwrap_err().to_string();
        assert!(error("bbr:version=2").contains("version is 2; allowed is 1 or 3"), "{}", error("bbr:version=2"));
        assert!(error("bbr:version=1,beta=0.5").contains("beta is 0.5"), "{}", error("bbr:version=1,beta=0.5"));
    }

    #[test]
    fn errors_name_the_field_and_what_is_allowed() {
        let error = |text| scheme("--scheme", text, &baseline()).unwrap_err().to_string();
        assert!(error("jumpstart").contains("slow-start, limited-slow-start, hystart, initial-start, jump-start"));
        assert!(
            error("blitzstart:estimat=1").contains("expected one of `estimate`"),
            "{}",
            error("blitzstart:estimat=1")
        );
        for spec in ["hystart:sample=1", "suss:sample=1"] {
            assert!(error(spec).contains("unknown field `sample`, expected one of `iw`, "), "{}", error(spec));
            assert!(error(spec).contains("`samples`, `min_threshold`"), "{}", error(spec));
        }
        assert!(error("blitzstart:estimate=0").contains("0.001 to 1000"));
        assert!(error("blitzstart:estimate=nan").contains("estimate"), "{}", error("blitzstart:estimate=nan"));
        assert!(error("slow-start:iw=0").contains("1 to 100000"));
        assert!(error("slow-start:iw=-3").contains("--scheme"));
        assert!(error("slow-start:kind=blitzstart").contains("unknown field `kind`"));
        assert!(error("slow-start:iw=3,iw=4").contains("twice"));
        assert!(error("").contains("nothing"));
    }
}
