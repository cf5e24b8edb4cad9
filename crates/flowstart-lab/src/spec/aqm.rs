//! What manages the queue of a cell's link: a discipline of the registry, such as `codel:target=5ms`, or `oracle`. The
//! default is `taildrop`. Keys are those of the discipline; `oracle` has none.

use flowstart_core::aqm::{QueueConfig, taildrop};
use serde::{Serialize, Serializer};

use super::{InputError, Written, aqm};

/// Its name.
pub const ORACLE: &str = "oracle";

/// What manages a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Aqm {
    /// A discipline of the registry.
    Registered(QueueConfig),
    /// The discipline that knows the measured flows (`run/oracle.rs`).
    Oracle,
}

impl Aqm {
    /// Reads one.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        if text.trim() == ORACLE {
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

    /// What it does, in one line.
    pub fn summary(&self) -> &'static str {
        match self {
            Self::Registered(config) => config.summary(),
            Self::Oracle => {
                "knows every window: signals each flow once when the windows are C x RTT; later CoDel with the true RTT"
            }
        }
    }

    /// What links are built with. The oracle takes its place when the measured flows are known; nothing crosses the
    /// link before.
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
