//! Algorithms of the registries: `NAME`, or `NAME:key=value,...`, such as `blitzstart:estimate=1.5`, `cubic:beta=0.7`
//! or `codel:target=5ms`.
//!
//! The keys are the fields of the algorithm's configuration in `flowstart-core`, which also defines their defaults.
//! `flowstart list schemes|avoidance|aqms --json` prints both. A host's transport profile may have its own defaults.

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::custom::Custom;
use flowstart_core::registry::ConfigError;
use flowstart_core::spec::{names, plain};
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::profile::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::form::Key;
use super::{InputError, Spec, Written};

/// Where users see all schemes.
pub(super) const SCHEMES_LISTED: &str = "`flowstart list schemes` shows all";
/// Where users see all kinds of congestion avoidance.
const AVOIDANCE_LISTED: &str = "`flowstart list avoidance` shows all";
/// Where users see all queue disciplines.
pub(super) const AQMS_LISTED: &str = "`flowstart list aqms` shows all";

/// The names of the caller's own algorithms, after where users see all others.
pub(super) fn beside<T: ?Sized>(own: &[Custom<T>]) -> String {
    own.iter().map(|algorithm| format!(", beside {}", algorithm.name())).collect()
}

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
/// algorithm with a name; the keys override it. `beside` are keys that the caller reads, which messages name too.
fn algorithm<'a, C>(
    spec: &Spec<'_>,
    names: &[&'static str],
    listed: &str,
    beside: &[Key],
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
    let keys = spec.rest()?;
    // `kind` is the tag of the registry's enum; as a key it would select another algorithm.
    if keys.iter().any(|(key, _)| key == "kind") {
        return Err(spec.refused(format_args!("unknown field `kind`; the name before the colon, {name}, says it")));
    }
    let with = |given: &[(&str, toml::Value)]| {
        let given = given.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        table.clone().into_iter().chain(given).collect::<toml::Table>().try_into::<C>()
    };
    let all: Vec<_> = keys.iter().map(|(key, value)| (key.as_str(), toml_value(value))).collect();
    let value = with(&all).map_err(|error| {
        let listed = || own_keys::<C>(name).unwrap_or_default();
        match unknown_key(&error, listed, &["kind"], beside) {
            Some(problem) => spec.refused(problem),
            None => unreadable(spec, &error, &keys, |key, value| with(&[(key, value)]).err()),
        }
    })?;
    validate(&value).map_err(|error| spec.refused(error))?;
    Ok(value)
}

/// The error for keys whose values a configuration refuses. serde does not always say which it is: `with` tries one
/// alone.
pub(super) fn unreadable(
    spec: &Spec<'_>,
    error: &toml::de::Error,
    keys: &[(String, &str)],
    with: impl Fn(&str, toml::Value) -> Option<toml::de::Error>,
) -> InputError {
    for (key, value) in keys {
        let Some(alone) = with(key, toml_value(value)) else { continue };
        // `0` looks like a number where a time is expected.
        let as_text = with(key, toml::Value::String((*value).to_owned()));
        let error = as_text.filter(|error| plain::of_serde(error.message()).is_none()).unwrap_or(alone);
        return match plain::of_serde(error.message()) {
            Some(allowed) => spec.refused(format_args!("{key} `{value}`: allowed is {allowed}")),
            None => spec.refused_value(key, names::suggested(error.message())),
        };
    }
    spec.refused(plain::plain(error.message()))
}

/// The field that serde does not know.
pub(super) fn unknown_field(error: &toml::de::Error) -> Option<&str> {
    error.message().strip_prefix("unknown field `")?.split('`').next()
}

/// The message for a key that is neither one of a configuration nor one that the caller reads. serde lists the former,
/// unless the configuration shares some of them with another one; then they are `own`. Some are not for users.
pub(super) fn unknown_key(
    error: &toml::de::Error,
    own: impl Fn() -> Vec<String>,
    not_for_users: &[&str],
    beside: &[Key],
) -> Option<String> {
    let written = unknown_field(error)?;
    let mut listed: Vec<String> = error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect();
    if listed.is_empty() {
        listed = own();
    }
    listed.retain(|key| !not_for_users.contains(&key.as_str()));
    listed.extend(beside.iter().map(|key| key.name.to_owned()));
    Some(names::suggested(&format!("unknown field `{written}`, expected one of `{}`", listed.join("`, `"))))
}

/// The keys of an algorithm. serde does not list them if the algorithm shares some of them with another one.
fn own_keys<C: Serialize + DeserializeOwned>(name: &str) -> Option<Vec<String>> {
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
    let value = startup(&Spec::parse(field, text)?, base, &[])?;
    Ok(Written { text: text.to_owned(), value })
}

/// Reads a startup scheme from the remaining keys of `spec`; `beside` are keys that the caller reads.
pub(super) fn startup(spec: &Spec<'_>, base: &StartupConfig, beside: &[Key]) -> Result<StartupConfig, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    algorithm(spec, StartupConfig::NAMES, SCHEMES_LISTED, beside, StartupConfig::validate, base)
}

/// Reads a startup scheme of a host with this profile, which provides the keys that the spec omits.
pub(super) fn host_scheme(field: &str, text: &str, profile: &Profile) -> Result<StartupConfig, InputError> {
    host_startup(&Spec::parse(field, text)?, profile, &[])
}

pub(super) fn host_startup(spec: &Spec<'_>, profile: &Profile, beside: &[Key]) -> Result<StartupConfig, InputError> {
    Ok(profile.resolved(startup(spec, &profile.startup, beside)?))
}

/// Reads a congestion avoidance. `base` provides the keys that the spec omits.
///
/// # Errors
///
/// What cannot be read.
pub fn avoidance(field: &str, text: &str, base: &AvoidanceConfig) -> Result<Written<AvoidanceConfig>, InputError> {
    let base = |name: &str| Some(base).filter(|base| base.name() == name);
    let spec = Spec::parse(field, text)?;
    let value = algorithm(&spec, AvoidanceConfig::NAMES, AVOIDANCE_LISTED, &[], AvoidanceConfig::validate, base)?;
    Ok(Written { text: text.to_owned(), value })
}

/// Reads a congestion avoidance of a host with this profile, which provides the keys that the spec omits.
pub(crate) fn host_avoidance(
    field: &str,
    text: &str,
    profile: &Profile,
) -> Result<Written<AvoidanceConfig>, InputError> {
    let value = avoidance_of_host(&Spec::parse(field, text)?, profile, &[])?;
    Ok(Written { text: text.to_owned(), value })
}

/// Reads a host's congestion avoidance from the remaining keys of `spec`; `beside` are keys that the caller reads.
pub(super) fn avoidance_of_host(
    spec: &Spec<'_>,
    profile: &Profile,
    beside: &[Key],
) -> Result<AvoidanceConfig, InputError> {
    if let Some(scheme) = names::find(spec.name(), StartupConfig::NAMES) {
        return Err(spec.refused(format_args!("{scheme} is a startup scheme; {AVOIDANCE_LISTED}")));
    }
    let base = |name: &str| profile.avoidance_named(name);
    algorithm(spec, AvoidanceConfig::NAMES, AVOIDANCE_LISTED, beside, AvoidanceConfig::validate, base)
}

/// Reads a queue discipline.
///
/// # Errors
///
/// What cannot be read.
pub fn aqm(field: &str, text: &str) -> Result<Written<QueueConfig>, InputError> {
    let spec = Spec::parse(field, text)?;
    let value = algorithm(&spec, QueueConfig::NAMES, AQMS_LISTED, &[], QueueConfig::validate, |_| None)?;
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

    #[test]
    fn a_value_that_cannot_be_read_is_named_with_its_key_and_what_is_allowed() {
        let error = |text| aqm("--aqm", text).unwrap_err().problem;
        assert!(error("cake:rtt=0").starts_with("rtt: `0` is not a duration"), "{}", error("cake:rtt=0"));
        assert_eq!(error("red:min_th=x"), "min_th `x`: allowed is a number");
        assert_eq!(error("cake,rtt=1ms"), "a colon ends the name; expected is cake:rtt=1ms");
        let error = |text| scheme("--scheme", text, &baseline()).unwrap_err().problem;
        assert_eq!(error("slow-start:spread=yes"), "spread `yes`: allowed is true or false");
        assert_eq!(error("slow-start:spread=true,iw=-1"), "iw `-1`: allowed is a whole number from 0 on");
    }
}
