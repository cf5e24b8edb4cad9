//! The queue discipline of a cell's link: one of the registry, such as `codel:target=5ms`, or `oracle`. The default is
//! `taildrop`. The keys are those of the discipline; `oracle` has none.

use flowstart_core::aqm::{CustomQueue, QueueConfig, taildrop};
use serde::{Serialize, Serializer};

use super::algorithm::{AQMS_LISTED, beside};
use super::{InputError, Spec, Written, aqm};

/// Its name.
pub const ORACLE: &str = "oracle";

/// The management of a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Aqm {
    /// A discipline of the registry, or the caller's own.
    Registered(QueueConfig),
    /// The discipline with knowledge of the measured flows (`run/oracle.rs`).
    Oracle,
}

impl Aqm {
    /// Reads a queue discipline.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        Self::parse_with(field, text, &[])
    }

    /// As [`Aqm::parse`]; it may also be one of the caller's `own`, which have no keys.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse_with(field: &str, text: &str, own: &[CustomQueue]) -> Result<Written<Self>, InputError> {
        let own_names = own.iter().map(CustomQueue::name);
        let names: Vec<&str> = QueueConfig::NAMES.iter().copied().chain([ORACLE]).chain(own_names).collect();
        let spec = Spec::parse(field, text)?;
        let name = spec.choose(&names, format_args!("{AQMS_LISTED}{}", beside(own)))?;
        let own = own.iter().find(|discipline| discipline.name() == name);
        let without_keys = match own {
            Some(own) => Some(Self::Registered(QueueConfig::Custom(own.clone()))),
            None => (name == ORACLE).then_some(Self::Oracle),
        };
        if let Some(value) = without_keys {
            spec.finish()?;
            return Ok(Written { text: text.to_owned(), value });
        }
        let Written { text, value } = aqm(field, text)?;
        Ok(Written { text, value: Self::Registered(value) })
    }

    /// Its name, without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Registered(config) => config.name(),
            Self::Oracle => ORACLE,
        }
    }

    /// A description in one line.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Registered(config) => config.summary(),
            Self::Oracle => {
                "knows every window: signals each flow once when the windows are C x RTT; later CoDel with the true RTT"
            }
        }
    }

    /// The discipline that links are built with. The oracle replaces it once the measured flows are known; nothing
    /// crosses the link before that.
    pub fn config(&self) -> QueueConfig {
        match self {
            Self::Registered(config) => config.clone(),
            Self::Oracle => QueueConfig::TailDrop(taildrop::Config::default()),
        }
    }
}

impl Serialize for Aqm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Registered(config) => config.serialize(serializer),
            Self::Oracle => serializer.collect_map([("kind", ORACLE)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracle_is_one_of_the_names_and_has_no_keys() {
        let error = |text: &str| Aqm::parse("--aqm", text).unwrap_err().to_string();
        assert_eq!(Aqm::parse("--aqm", "Oracle").unwrap().value, Aqm::Oracle);
        assert!(error("oracel").contains("did you mean `oracle`?"), "{}", error("oracel"));
        assert!(error("oracle:target=5ms").contains("oracle has no keys"), "{}", error("oracle:target=5ms"));
        assert!(error("red:min_thr=5").contains("did you mean `min_th`?"), "{}", error("red:min_thr=5"));
    }
}
