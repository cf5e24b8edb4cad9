//! A study in pieces, which may run on other machines.

use std::path::PathBuf;

use arrow_csv::WriterBuilder;
use flowstart_core::rng::name_hash;
use flowstart_lab::experiment::{self, Piece, piece, run_count};
use flowstart_lab::perform::{Folder, Performed, Precision, Provenance, Sink, concluded};
use flowstart_lab::results::flows::{Row, read_csv, write_parquet};
use flowstart_lab::results::identity::Identity;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study;
use flowstart_lab::study::plan::{Plan, Setting};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::observe::Kept;
use flowstart_validate::published_table;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::results::{Results, read, simulated};
use crate::work::{Watch, detached};

/// A scenario as pieces: every scheme of a setting for one repetition. Pieces run anywhere and in any order, in
/// programs of one version. Joined they are the results of `run`.
#[pyclass(frozen, module = "flowstart")]
pub(crate) struct Study {
    study: study::Study,
    settings: Vec<Setting>,
    identity: String,
}

impl Study {
    fn new(study: study::Study) -> PyResult<Self> {
        simulated(&study.scenario)?;
        let settings = study.plan.settings();
        let Identity { program, parts, .. } = Identity::of(&study.plan);
        let parts: Vec<String> = parts.iter().map(|(name, part)| format!("{name} {}", part.hash)).collect();
        let identity = format!("{:016x}", name_hash(&format!("{program} {}", parts.join(" "))));
        Ok(Self { study, settings, identity })
    }

    /// The rows of all pieces, and their summary.
    fn joined(&self, py: Python<'_>, parts: &[Py<PyBytes>]) -> PyResult<Performed> {
        let mut all = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            let refused = |problem| PyValueError::new_err(format!("part {place} is not rows in Parquet: {problem}"));
            all.extend(rows(part.as_bytes(py)).map_err(refused)?);
        }
        let plan = &self.study.plan;
        let joined = detached(py, &Watch::default(), || {
            let rows = experiment::join(plan, all)?;
            Ok(Performed { summary: concluded(plan, &rows), rows })
        })?;
        joined.map_err(|error| errors::experiment(&error))
    }

    /// The piece in this place.
    fn at(&self, place: u64) -> PyResult<Piece> {
        let reps = u64::from(self.study.plan.reps);
        let setting = usize::try_from(place / reps).ok().and_then(|setting| self.settings.get(setting));
        let rep = u32::try_from(place % reps).ok();
        let found = setting.zip(rep).map(|(setting, rep)| Piece { setting: *setting, rep });
        found.ok_or_else(|| PyIndexError::new_err(format!("piece {place}: allowed is 0 to {}", self.count() - 1)))
    }

    fn count(&self) -> u64 {
        self.settings.len() as u64 * u64::from(self.study.plan.reps)
    }
}

/// Rows of Parquet that [`write_parquet`] wrote.
fn rows(part: &[u8]) -> Result<Vec<Row>, String> {
    // The readers of rows read CSV, whose numbers are exact.
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::copy_from_slice(part));
    let reader = builder.and_then(ParquetRecordBatchReaderBuilder::build).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new().with_header(true).build(&mut text);
    for batch in reader {
        let batch = batch.map_err(|error| error.to_string())?;
        writer.write(&batch).map_err(|error| error.to_string())?;
    }
    drop(writer);
    read_csv(&*text)
}

#[pymethods]
impl Study {
    /// The study of a scenario: a TOML file, or a name from `list_scenarios`.
    #[staticmethod]
    #[pyo3(signature = (scenario, *, reps=None, seed=None))]
    fn read(scenario: PathBuf, reps: Option<u32>, seed: Option<u64>) -> PyResult<Self> {
        let study = read(&scenario, |scenario| {
            scenario.reps = reps.unwrap_or(scenario.reps);
            scenario.seed = seed.unwrap_or(scenario.seed);
            Ok(())
        })?;
        Self::new(study)
    }

    /// The study of a scenario's text, whose files are relative to `directory`.
    #[staticmethod]
    #[pyo3(signature = (text, *, directory=PathBuf::from(".")))]
    fn parse(text: &str, directory: PathBuf) -> PyResult<Self> {
        let scenario = Scenario::from_text(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Self::new(study::Study::new(scenario, &directory).map_err(|error| errors::input(&error))?)
    }

    /// The folder to which the files of the scenario are relative.
    #[getter]
    fn directory(&self) -> PathBuf {
        std::path::absolute(&self.study.directory).unwrap_or_else(|_| self.study.directory.clone())
    }

    /// What determines the rows: a hash of the question, of the files that it names, and of the version.
    #[getter]
    fn identity(&self) -> &str {
        &self.identity
    }

    /// Repetitions of each cell.
    #[getter]
    fn reps(&self) -> u32 {
        self.study.plan.reps
    }

    /// Number of runs: cells times repetitions.
    #[getter]
    fn runs(&self) -> u64 {
        run_count(&self.study.plan)
    }

    /// The scenario, which `flowstart run` takes.
    #[getter]
    fn scenario(&self) -> PyResult<String> {
        self.study.to_toml().map_err(PyRuntimeError::new_err)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.count()).unwrap_or(usize::MAX)
    }

    /// The same study with this number of repetitions.
    fn with_reps(&self, reps: u32) -> PyResult<Self> {
        let scenario = Scenario { reps, ..self.study.scenario.clone() };
        let study = study::Study::new(scenario, &self.study.directory).map_err(|error| errors::input(&error))?;
        Self::new(study)
    }

    /// The same study with the repetitions with which a search for a precision begins.
    fn first(&self, precision: f64, max_reps: u32) -> PyResult<Self> {
        let precision = Precision { relative: precision, most: max_reps }.checked(&self.study);
        let precision = precision.map_err(|error| errors::input(&error))?;
        self.with_reps(precision.first(self.study.plan.reps))
    }

    /// The repetitions that a precision needs beyond those of these parts; None if it is reached, or cannot be.
    fn more(&self, py: Python<'_>, parts: Vec<Py<PyBytes>>, precision: f64, max_reps: u32) -> PyResult<Option<u32>> {
        let performed = self.joined(py, &parts)?;
        let precision = Precision { relative: precision, most: max_reps };
        Ok(precision.next(&self.study.plan, &performed.summary))
    }

    /// Runs `count` pieces from this place on. Returns their rows as Parquet, and how many of them failed.
    fn pieces<'py>(&self, py: Python<'py>, first: u64, count: u64) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let pieces = (first..first.saturating_add(count)).map(|place| self.at(place)).collect::<PyResult<Vec<_>>>()?;
        let made = detached(py, &Watch::default(), || {
            let rows: Vec<Row> = pieces.into_iter().flat_map(|one| piece(&self.study.plan, one)).collect();
            let failed = rows.iter().filter(|row| row.failed()).count();
            let mut part = Vec::new();
            write_parquet(&rows, &mut part).map(|()| (part, failed))
        })?;
        let (part, failed) = made.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((PyBytes::new(py, &part), failed))
    }

    /// Joins the Parquet of all pieces, in any order. With `out` it writes the folder that `run` writes.
    #[pyo3(signature = (parts, *, out=None))]
    fn join(&self, py: Python<'_>, parts: Vec<Py<PyBytes>>, out: Option<PathBuf>) -> PyResult<Results> {
        let performed = self.joined(py, &parts)?;
        let study = &self.study;
        let provenance = Provenance {
            command: vec![format!("flowstart-sweep ({} parts)", parts.len())],
            ..Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"))
        };
        let written = detached(py, &Watch::default(), || {
            if let Some(out) = out {
                let published = |plan: &Plan, rows: &[Row], summary: &Summary| {
                    published_table(&study.scenario, plan, rows, summary)
                };
                let mut folder = Folder::new(out, false, provenance.clone(), &published);
                folder.open(study, study.plan.reps, &())?;
                folder.close(study, &performed, Kept::default(), 0, &())?;
            }
            Ok(())
        })?;
        written.map_err(|error| errors::experiment(&error))?;
        Ok(Results::new(study.clone(), performed, Kept::default(), provenance))
    }

    fn __repr__(&self) -> String {
        format!("<flowstart.Study {}: {} pieces, {} runs>", self.identity, self.count(), self.runs())
    }
}
