//! Texts such as `blitzstart:estimate=1.5` and `cubic:beta=0.8`.
//!
//! `flowstart_core::spec` takes the text apart, and the keys are the fields of the algorithm's configuration, which
//! serde reads. So names, defaults and ranges are those of the command line, and this file has none of them.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::registry::ConfigError;
use flowstart_core::spec::{InputError, Spec, names, plain};
use flowstart_core::startup::StartupConfig;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};

/// The scheme that a text names.
pub(crate) fn startup(text: &str) -> Result<StartupConfig, InputError> {
    read("scheme", text, StartupConfig::NAMES, StartupConfig::validate)
}

/// The congestion avoidance that a text names.
pub(crate) fn avoidance(text: &str) -> Result<AvoidanceConfig, InputError> {
    read("avoidance", text, AvoidanceConfig::NAMES, AvoidanceConfig::validate)
}

fn read<C: for<'de> Deserialize<'de>>(
    field: &str,
    text: &str,
    known: &[&'static str],
    validate: impl Fn(&C) -> Result<(), ConfigError>,
) -> Result<C, InputError> {
    let spec = Spec::parse(field, text)?;
    let name = spec.choose(known, format_args!("allowed are {}", known.join(", ")))?;
    let keys = spec.rest()?;
    // The tag of the registry's enum; as a key it would select another algorithm.
    if keys.iter().any(|(key, _)| key == "kind") {
        return Err(spec.refused(format_args!("unknown field `kind`; the name before the colon, {name}, says it")));
    }
    let with = |given: &[(&str, Value<'_>)]| {
        C::deserialize(MapDeserializer::new([("kind", Value::Text(name))].into_iter().chain(given.iter().copied())))
    };
    let given: Vec<_> = keys.iter().map(|(key, value)| (key.as_str(), Value::of(value))).collect();
    let config = with(&given).map_err(|error| {
        // serde does not say which value it cannot read: one alone shows it.
        for (key, value) in &keys {
            let Err(alone) = with(&[(key, Value::of(value))]) else { continue };
            // `0` looks like a number where a time is expected.
            let as_text = with(&[(key, Value::Text(value))]).err();
            let is_told = |error: &Error| plain::of_serde(&error.to_string()).is_none();
            let message = as_text.filter(is_told).unwrap_or(alone).to_string();
            return match plain::of_serde(&message) {
                Some(allowed) => spec.refused(format_args!("{key} `{value}`: allowed is {allowed}")),
                None => spec.refused_value(key, names::suggested(&message)),
            };
        }
        spec.refused(plain::plain(&error.to_string()))
    })?;
    validate(&config).map_err(|error| spec.refused(error))?;
    Ok(config)
}

/// A key's value: a boolean, a number, or a text.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(&'a str),
}

impl<'a> Value<'a> {
    fn of(text: &'a str) -> Self {
        let truth = text.parse().ok().map(Self::Truth);
        let whole = || text.parse().ok().map(Self::Whole);
        let number = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Number);
        truth.or_else(whole).or_else(number).unwrap_or(Self::Text(text))
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Truth(value) => visitor.visit_bool(value),
            Self::Whole(value) => visitor.visit_i64(value),
            Self::Number(value) => visitor.visit_f64(value),
            Self::Text(value) => visitor.visit_str(value),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Value<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::startup::blitzstart;

    #[test]
    fn texts_become_configurations() {
        let expected = blitzstart::Config {
            estimate: 1.5,
            rtt: blitzstart::RttSource::Handshake,
            ..blitzstart::Config::default()
        };
        assert_eq!(startup("blitzstart:estimate=1.5,rtt=handshake"), Ok(StartupConfig::Blitzstart(expected)));
        assert_eq!(startup("Slow_Start"), Ok(StartupConfig::SlowStart(Default::default())));
        for name in StartupConfig::NAMES {
            assert_eq!(startup(name).map(|config| config.name()), Ok(*name));
        }
        for name in AvoidanceConfig::NAMES {
            assert_eq!(avoidance(name).map(|config| config.name()), Ok(*name));
        }
    }

    #[test]
    fn what_the_command_line_reads_is_read() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        let texts = |folder: &str| {
            let files: Vec<_> = std::fs::read_dir(seeds.join(folder)).unwrap().map(|file| file.unwrap()).collect();
            assert!(files.len() > 3, "{folder}");
            files.into_iter().map(|file| std::fs::read_to_string(file.path()).unwrap())
        };
        for text in texts("scheme") {
            assert!(startup(&text).is_ok(), "{text}: {:?}", startup(&text));
        }
        for text in texts("avoidance") {
            assert!(avoidance(&text).is_ok(), "{text}: {:?}", avoidance(&text));
        }
    }

    #[test]
    fn errors_name_the_field_the_value_and_what_is_allowed() {
        for (text, expected) in [
            ("jumpstart", "scheme `jumpstart`: `jumpstart` is not known (did you mean `jump-start`?); allowed are "),
            ("blitzstart:estimat=1", "unknown field `estimat` (did you mean `estimate`?)"),
            ("blitzstart:estimate=0", "estimate is 0; allowed is 0.001 to 1000"),
            ("blitzstart:estimate=nan", "estimate `nan`: allowed is a number"),
            ("blitzstart:estimate=inf", "estimate `inf`"),
            ("blitzstart:estimate=1e999", "estimate `1e999`"),
            ("slow-start:iw=-3", "iw `-3`: allowed is a whole number from 0 on"),
            ("slow-start:spread=yes", "spread `yes`: allowed is true or false"),
            ("careful-resume:lifetime=0", "lifetime: `0` is not a duration"),
            ("slow-start:kind=blitzstart", "unknown field `kind`"),
            ("slow-start:iw=3,iw=4", "twice"),
            ("", "nothing is written"),
        ] {
            let error = startup(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
