//! The queue discipline of a cell's link: one of the registry, such as `codel:target=5ms`, or `oracle`. The default is
//! `taildrop`. The keys are those of the discipline; `oracle` has none.

use flowstart_core::aqm::{QueueConfig, taildrop};
use serde::{Serialize, Serializer};

use super::algorithm::AQMS_LISTED;
use super::{InputError, Spec, Written, aqm};

/// Its name.
pub const ORACLE: &str = "oracle";

/// The management of a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Aqm {
    /// A discipline of the registry.
    Registered(QueueConfig),
    /// The discipline with knowledge of the measured flows (`run/oracle.rs`).
    Oracle,
}

impl Aqm {
    /// Reads a queue discipline.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        let names: Vec<&str> = QueueConfig::NAMES.iter().copied().chain([ORACLE]).collect();
        let spec = Spec::parse(field, text)?;
        if spec.choose(&names, AQMS_LISTED)? == ORACLE {
            spec.finish()?;
            return Ok(Written { text: text.to_owned(), value: Self::Oracle });
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
