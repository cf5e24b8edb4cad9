//! Why a call was refused: a code for programs and a text for people.

use std::fmt::Display;
use std::ops::RangeInclusive;

use flowstart_core::registry::ConfigError;
use flowstart_core::spec::InputError;

use crate::layout::Status;

/// A refused call. Nothing of it has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What the function returns.
    pub(crate) status: Status,
    /// What is wrong, and what is allowed.
    pub(crate) message: String,
}

impl Refusal {
    /// A refusal with this code.
    pub(crate) fn new(status: Status, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }

    /// A value that is not allowed.
    pub(crate) fn value(message: impl Display) -> Self {
        Self::new(Status::Value, message)
    }

    /// Refuses a value of `field` outside `range`.
    pub(crate) fn unless_in(field: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        let (from, to) = range.into_inner();
        Err(Self::value(format_args!("{field} is {value}; allowed is {from} to {to}")))
    }
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Self::value(error)
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::value(error)
    }
}
