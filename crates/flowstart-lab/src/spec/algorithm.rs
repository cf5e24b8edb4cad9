//! Algorithms of the registries: `NAME`, or `NAME:key=value,...`, such as `blitzstart:estimate=1.5`, `cubic:beta=0.7`
//! or `codel:target=5ms`.
//!
//! The keys are the fields of the algorithm's configuration in `flowstart-core`, which also defines their defaults.
//! `flowstart list schemes|avoidance|aqms --json` prints both. A host's transport profile may have its own defaults.

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::registry::ConfigError;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::profile::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{InputError, Spec, Written};

/// Where users see all schemes.
pub(super) const SCHEMES_LISTED: &str = "`flowstart list schemes` shows all";
/// Where users see all kinds of congestion avoidance.
const AVOIDANCE_LISTED: &str = "`flowstart list avoidance` shows all";
/// Where users see all queue disciplines.
pub(super) const AQMS_LISTED: &str = "`flowstart list aqms` shows all";

/// A key's value as TOML: a boolean, a number, or a string.
pub(super) fn toml_value(text: &str) -> toml::Value {
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

/// Reads an algorithm's configuration from the remaining keys of `spec`. `base` returns a host's configuration of the
/// algorithm with a name; the keys override it.
fn algorithm<'a, C>(
    spec: &Spec<'_>,
    names: &[&'static str],
    listed: &str,
    validate: impl Fn(&C) -> Result<(), ConfigError>,
    base: impl FnOnce(&str) -> Option<&'a C>,
) -> Result<C, InputError>
where
    C: Serialize + DeserializeOwned + 'a,
{
    let name = spec.choose(names, listed)?;
    let mut table = match base(name) {
        Some(config) => toml::Table::try_from(config).map_err(|error| spec.refused(error))?,
        None => toml::Table::new(),
    };
    table.insert("kind".into(), toml::Value::String(name.to_owned()));
    for (key, value) in spec.rest()? {
        // `kind` is the tag of the registry's enum; as a key it would select another algorithm.
        if key == "kind" {
            return Err(spec.refused(format_args!("unknown field `kind`; the name before the colon, {name}, says it")));
        }
        table.insert(key, toml_value(value));
    }
    let value: C = table.try_into().map_err(|error: toml::de::Error| {
        let keys = keys::<C>(name).filter(|_| error.message().starts_with("unknown field"));
        match keys {
            Some(keys) if !error.message().contains("expected") => {
                let message = format!("{}, expected one of `{}`", error.message(), keys.join("`, `"));
                spec.refused(names::suggested(&message))
            }
            _ => spec.refused(names::suggested(error.message())),
        }
    })?;
    validate(&value).map_err(|error| spec.refused(error))?;
    Ok(value)
}

/// The keys of an algorithm. serde does not list them if the algorithm shares some of them with another one.
fn keys<C: Serialize + DeserializeOwned>(name: &str) -> Option<Vec<String>> {
    let table = toml::Table::from_iter([("kind".to_owned(), toml::Value::String(name.to_owned()))]);
    let value = serde_json::to_value(table.try_into::<C>().ok()?).ok()?;
    Some(value.as_object()?.keys().filter(|key| *key != "kind").cloned().collect())
}

/// Reads a startup scheme. `base` is a scheme that provides the keys that the spec omits.
///
/// # Errors
///
/// What cannot be read.
pub fn scheme(field: &str, text: &str, base: &StartupConfig) -> Result<Written<StartupConfig>, InputError> {
    let value = startup(&Spec::parse(field, text)?, base)?;
    Ok(Written { text: text.to_owned(), value })
}

pub(super) fn startup(spec: &Spec<'_>, base: &StartupConfig) -> Result<StartupConfig, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    algorithm(spec, StartupConfig::NAMES, SCHEMES_LISTED, StartupConfig::validate, base)
}

/// Reads a startup scheme of a host with this profile, which provides the keys that the spec omits.
pub(super) fn host_scheme(field: &str, text: &str, profile: &Profile) -> Result<StartupConfig, InputError> {
    host_startup(&Spec::parse(field, text)?, profile)
}

pub(super) fn host_startup(spec: &Spec<'_>, profile: &Profile) -> Result<StartupConfig, InputError> {
    Ok(profile.resolved(startup(spec, &profile.startup)?))
}

/// Reads a congestion avoidance. `base` provides the keys that the spec omits.
///
/// # Errors
///
/// What cannot be read.
pub fn avoidance(field: &str, text: &str, base: &AvoidanceConfig) -> Result<Written<AvoidanceConfig>, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    let spec = Spec::parse(field, text)?;
    let value = algorithm(&spec, AvoidanceConfig::NAMES, AVOIDANCE_LISTED, AvoidanceConfig::validate, base)?;
    Ok(Written { text: text.to_owned(), value })
}

/// Reads a congestion avoidance of a host with this profile, which provides the keys that the spec omits.
pub(crate) fn host_avoidance(
    field: &str,
    text: &str,
    profile: &Profile,
) -> Result<Written<AvoidanceConfig>, InputError> {
    let value = avoidance_of_host(&Spec::parse(field, text)?, profile)?;
    Ok(Written { text: text.to_owned(), value })
}

/// Reads a host's congestion avoidance from the remaining keys of `spec`.
pub(super) fn avoidance_of_host(spec: &Spec<'_>, profile: &Profile) -> Result<AvoidanceConfig, InputError> {
    let base = |name: &str| profile.avoidance_named(name);
    algorithm(spec, AvoidanceConfig::NAMES, AVOIDANCE_LISTED, AvoidanceConfig::validate, base)
}

/// Reads a queue discipline.
///
/// # Errors
///
/// What cannot be read.
pub fn aqm(field: &str, text: &str) -> Result<Written<QueueConfig>, InputError> {
    let spec = Spec::parse(field, text)?;
    let value = algorithm(&spec, QueueConfig::NAMES, AQMS_LISTED, QueueConfig::validate, |_| None)?;
    Ok(Written { text: text.to_owned(), value })
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
    fn names_and_keys_may_be_spelled_with_underscores_and_capitals() {
        let written = scheme("--scheme", "Limited_Slow_Start:IW=4", &baseline()).unwrap();
        assert_eq!(written.value, scheme("--scheme", "limited-slow-start:iw=4", &baseline()).unwrap().value);
        assert_eq!(written.text, "Limited_Slow_Start:IW=4");
        assert_eq!(aqm("--aqm", "fq_codel").unwrap().value, aqm("--aqm", "FQ-CoDel").unwrap().value);
    }

    #[test]
    fn errors_name_the_field_and_what_is_allowed() {
        let error = |text| scheme("--scheme", text, &baseline()).unwrap_err().to_string();
        let meant = "`jumpstart` is not known (did you mean `jump-start`?); `flowstart list schemes` shows all";
        assert!(error("jumpstart").ends_with(meant), "{}", error("jumpstart"));
        assert!(
            error("blitzstart:estimat=1").contains("(did you mean `estimate`?), expected one of `estimate`"),
            "{}",
            error("blitzstart:estimat=1")
        );
        for spec in ["hystart:sample=1", "suss:sample=1"] {
            let meant = "unknown field `sample` (did you mean `samples`?), expected one of `iw`, ";
            assert!(error(spec).contains(meant), "{}", error(spec));
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
