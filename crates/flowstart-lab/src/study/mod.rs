//! A study: the runs of an experiment, from a scenario file to its cells.
//!
//! | Looking for | Where |
//! |---|---|
//! | scenario files | [`scenario`] |
//! | scenarios that come with the program | [`shipped`] |
//! | the variables of an experiment | [`axis`] |
//! | the cells of an experiment | [`plan`] |
//! | what each transport makes of a text | [`per_transport`] |
//! | algorithms from outside this program | [`own`] |
//! | the physical limit of a transfer | [`ideal`] |

use std::path::{Path, PathBuf};

use crate::spec::InputError;
use own::Own;
use plan::Plan;
use scenario::Scenario;

pub mod axis;
mod entries;
pub mod ideal;
pub mod own;
pub mod per_transport;
pub mod plan;
mod reading;
mod rules;
pub mod scenario;
pub mod shipped;
pub mod world;

/// A question and the runs that answer it.
#[derive(Clone, Debug)]
pub struct Study {
    /// The question as the user wrote it.
    pub scenario: Scenario,
    /// Folder to which the scenario's files are relative.
    pub directory: PathBuf,
    /// The runs, validated.
    pub plan: Plan,
    /// Notes to show beside the results.
    pub notes: Vec<String>,
}

impl Study {
    /// The study that a scenario asks for; its files are relative to `directory`.
    ///
    /// # Errors
    ///
    /// The field that cannot be used, and the allowed values.
    pub fn new(scenario: Scenario, directory: &Path) -> Result<Self, InputError> {
        Self::with_own(scenario, directory, &Own::default())
    }

    /// As [`Study::new`], with algorithms from outside this program: the scenario names them like the shipped ones, and
    /// they stand beside those in all results. Only a program that has them can run the study again.
    ///
    /// # Errors
    ///
    /// The field that cannot be used, and the allowed values.
    pub fn with_own(scenario: Scenario, directory: &Path, own: &Own) -> Result<Self, InputError> {
        let plan = scenario.plan_with(directory, own)?;
        Ok(Self { scenario, directory: directory.to_owned(), plan, notes: Vec::new() })
    }

    /// The same study with this number of repetitions.
    pub fn with_reps(&self, reps: u32) -> Self {
        let (mut scenario, mut plan) = (self.scenario.clone(), self.plan.clone());
        (scenario.reps, plan.reps) = (reps, reps);
        Self { scenario, plan, ..self.clone() }
    }

    /// The scenario as TOML, sufficient to run the study again.
    ///
    /// # Errors
    ///
    /// What cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(&self.scenario).map_err(|error| error.to_string())
    }
}
