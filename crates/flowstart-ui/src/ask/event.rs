//! Events as a browser gets them.

use std::borrow::Cow;

use serde_json::{Value, json};

/// What happens while a question is performed.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nothing: asks whether anybody listens.
    Nothing,
    /// The question was understood: its address, and what controls show of it.
    Asked(Value),
    /// One run of a cell, with its time series.
    Run(Value),
    /// More runs are done.
    Times {
        /// Runs that are done.
        done: u64,
        /// All runs.
        runs: u64,
        /// Cell, repetition and completion time of further ones.
        times: Vec<Value>,
    },
    /// The answer.
    Answer(Value),
    /// There is none, and why.
    Failed(String),
}

impl Event {
    /// Its name, and what it says; none if there is nothing to say.
    pub fn told(&self) -> Option<(&'static str, Cow<'_, Value>)> {
        Some(match self {
            Self::Nothing => return None,
            Self::Asked(value) => ("asked", Cow::Borrowed(value)),
            Self::Run(value) => ("run", Cow::Borrowed(value)),
            Self::Times { done, runs, times } => {
                ("times", Cow::Owned(json!({"done": done, "runs": runs, "times": times})))
            }
            Self::Answer(value) => ("answer", Cow::Borrowed(value)),
            Self::Failed(problem) => ("failed", Cow::Owned(json!({"problem": problem}))),
        })
    }
}
