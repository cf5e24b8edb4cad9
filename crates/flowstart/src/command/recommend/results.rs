//! The folder of a recommendation.

use std::path::Path;

use flowstart_lab::fleet::files;
use flowstart_lab::fleet::measured::Fleet;
use flowstart_lab::fleet::page::page;
use flowstart_lab::fleet::recommendation::Recommendation;
use flowstart_lab::perform::Provenance;
use flowstart_report::{DataFile, Method};

use crate::failure::{Failure, shown};

/// Everything that is written.
pub(super) struct Results<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) told: &'a Recommendation,
    pub(super) sentences: &'a [String],
    /// The table of the population.
    pub(super) population: &'a str,
    /// All of it as JSON.
    pub(super) json: &'a str,
}

impl Results<'_> {
    /// Writes the tables and, when they are safe, the page.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let failed = |name: &str, problem: &dyn std::fmt::Display| {
            Failure::Other(format!("{}: {problem}", shown(&folder.join(name))))
        };
        for (name, content) in [("population.csv", self.population), ("recommendation.json", self.json)] {
            flowstart_files::replace(&folder.join(name), content.as_bytes()).map_err(|error| failed(name, &error))?;
        }
        files::write(folder, self.fleet.subject, self.told).map_err(|(name, error)| failed(&name, &error))?;
        let (provenance, word) =
            (Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION")), self.fleet.subject.word());
        let method = Method {
            command: provenance.command.join(" "),
            directory: folder.display().to_string(),
            version: provenance.version,
            seed: Some(self.fleet.seed),
            repetitions: Some(self.fleet.reps),
            host: provenance.host,
            files: [
                ("population.csv", "the transfers".to_owned()),
                ("choices.csv", format!("a line for each {word}")),
                ("kinds.csv", format!("the recommended {word} in each kind of transfer")),
                ("recommendation.json", "all of it".to_owned()),
            ]
            .map(|(name, what)| DataFile { name: name.into(), what })
            .to_vec(),
            ..Method::default()
        };
        let report = page(self.fleet, self.told, self.sentences, method);
        let name = "report.html";
        let html = flowstart_report::render_fleet(&report).map_err(|error| failed(name, &error))?;
        flowstart_files::replace(&folder.join(name), html.as_bytes()).map_err(|error| failed(name, &error))
    }
}
