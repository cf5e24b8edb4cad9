//! What `compare` and `run` return: rows, cells, the answer, and the report.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flowstart_core::spec::names;
use flowstart_lab::perform::{Folder, Performed, Precision, Progress, Provenance, Sink, perform};
use flowstart_lab::report::{self, Texts};
use flowstart_lab::results::flows::{Row, batch};
use flowstart_lab::results::folder::{ExperimentError, write_file};
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::{MAX_REPS, Scenario, ScenarioError};
use flowstart_lab::study::world::SIMULATOR;
use flowstart_lab::study::{Study, shipped};
use flowstart_lab::trace::observe::{Kept, Wanted};
use flowstart_report::Method;
use flowstart_validate::published_table;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{experiment, input};
use crate::keywords::Given;
use crate::table::Table;
use crate::work::{Reported, Watch, detached};

/// Results of an experiment. `repr` is the answer; in a notebook it is the report.
#[pyclass(frozen, module = "flowstart")]
pub(crate) struct Results {
    study: Study,
    performed: Performed,
    kept: Mutex<Kept>,
    provenance: Provenance,
    page: OnceLock<String>,
}

/// Keeps what the report needs, and writes a folder if one is wanted.
struct Keeping<'a> {
    folder: Option<Folder<'a>>,
    /// The study with all its repetitions, and what was seen of its runs.
    kept: Option<(Study, Kept)>,
}

impl Sink for Keeping<'_> {
    fn open(&mut self, study: &Study, most: u32, progress: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        self.folder.as_mut().map_or(Ok(Vec::new()), |folder| folder.open(study, most, progress))
    }

    fn wanted(&self, study: &Study) -> Wanted {
        report::wanted(&study.plan)
    }

    fn add(&self, rows: &[Row], progress: &dyn Progress) {
        if let Some(folder) = &self.folder {
            folder.add(rows, progress);
        }
    }

    fn close(
        &mut self,
        study: &Study,
        performed: &Performed,
        kept: Kept,
        jobs: usize,
        progress: &dyn Progress,
    ) -> Result<(), ExperimentError> {
        self.kept = Some((study.clone(), kept.clone()));
        self.folder.as_mut().map_or(Ok(()), |folder| folder.close(study, performed, kept, jobs, progress))
    }
}

/// `compare`.
pub(crate) fn compare(py: Python<'_>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
    let watch = Arc::new(Watch::default());
    let (scenario, own) = given.scenario(&watch)?;
    simulated(&scenario)?;
    let study = Study::with_own(scenario, Path::new("."), &own).map_err(|error| input(&error))?;
    performed(py, given, study, &watch)
}

/// `run`.
pub(crate) fn run(py: Python<'_>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
    let named = given.path("scenario")?.unwrap_or_default();
    let mut study = read(&named, |scenario| {
        let reps = given.count("reps", MAX_REPS.into())?.and_then(|reps| u32::try_from(reps).ok());
        scenario.reps = reps.unwrap_or(scenario.reps);
        scenario.seed = given.count("seed", i64::MAX as u64)?.unwrap_or(scenario.seed);
        Ok(())
    })?;
    study.notes.extend(study.scenario.unchosen_avoidance(&study.plan));
    performed(py, given, study, &Arc::new(Watch::default()))
}

/// The study of a scenario: a file, or one that comes with the program when there is no such file.
pub(crate) fn read(named: &Path, change: impl FnOnce(&mut Scenario) -> PyResult<()>) -> PyResult<Study> {
    let refused = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("{}: {error}", named.display()));
    let mut scenario = match Scenario::read(named) {
        Ok(scenario) => scenario,
        Err(ScenarioError::Unreadable(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            shipped::read(&named.to_string_lossy(), Path::new(".")).map_err(PyValueError::new_err)?.scenario
        }
        Err(ScenarioError::Unreadable(error)) => {
            return Err(PyOSError::new_err(format!("{}: {error}", named.display())));
        }
        Err(ScenarioError::Invalid { message, span, text }) => {
            let line = span.map_or(String::new(), |span| {
                format!(" line {}", text.get(..span.start).unwrap_or_default().matches('\n').count() + 1)
            });
            return Err(PyValueError::new_err(format!("{}{line}: {message}", named.display())));
        }
        Err(error) => return Err(refused(&error)),
    };
    change(&mut scenario)?;
    simulated(&scenario)?;
    let folder = named.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    Study::new(scenario, folder).map_err(|error| refused(&error))
}

/// Refuses runs between sockets, which need a testbed.
pub(crate) fn simulated(scenario: &Scenario) -> PyResult<()> {
    match scenario.world.iter().find(|world| !names::is_same(world.trim(), SIMULATOR)) {
        Some(world) => Err(PyValueError::new_err(format!(
            "world `{world}`: allowed is {SIMULATOR}; runs between sockets need the command, `flowstart compare`"
        ))),
        None => Ok(()),
    }
}

fn performed(py: Python<'_>, given: &Given<'_>, study: Study, watch: &Arc<Watch>) -> PyResult<Py<PyAny>> {
    let (jobs, out, resume) = (given.jobs()?, given.path("out")?, given.flag("resume")?);
    if resume && out.is_none() {
        return Err(PyValueError::new_err("resume needs out, the folder of the interrupted run"));
    }
    let most = given.count_or("max_reps", u32::MAX, flowstart_lab::perform::MOST_REPS)?;
    let precision = given.number("precision")?.map(|relative| Precision { relative, most }.checked(&study));
    let precision = precision.transpose().map_err(|error| input(&error))?;
    let provenance = Provenance {
        command: vec![given.command.clone()],
        ..Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"))
    };
    let told = given.get("progress").map(|told| told.clone().unbind());
    let done = detached(py, watch, || {
        let published =
            |plan: &Plan, rows: &[Row], summary: &Summary| published_table(&study.scenario, plan, rows, summary);
        let folder = out.map(|out| Folder::new(out, resume, provenance.clone(), &published));
        let mut sink = Keeping { folder, kept: None };
        let performed = perform(&study, &mut sink, precision, jobs, &Reported::new(watch, told));
        performed.map(|performed| (performed, sink.kept))
    })?;
    let (performed, kept) = done.map_err(|error| experiment(&error))?;
    let (study, kept) = kept.unwrap_or((study, Kept::default()));
    Ok(Py::new(py, Results::new(study, performed, kept, provenance))?.into_any())
}

impl Results {
    pub(crate) fn new(study: Study, performed: Performed, kept: Kept, provenance: Provenance) -> Self {
        Self { study, performed, kept: Mutex::new(kept), provenance, page: OnceLock::new() }
    }

    fn told(&self) -> &Summary {
        &self.performed.summary
    }

    /// The report as HTML; made once.
    fn html(&self, py: Python<'_>) -> PyResult<&str> {
        if let Some(page) = self.page.get() {
            return Ok(page);
        }
        let watch = Watch::default();
        let made = detached(py, &watch, || {
            let Self { study, performed: Performed { rows, summary }, provenance, .. } = self;
            let method = Method {
                command: provenance.command.join(" "),
                version: provenance.version.clone(),
                seed: Some(study.plan.seed),
                repetitions: Some(study.plan.reps),
                host: provenance.host.clone(),
                notes: study.notes.clone(),
                ..Method::default()
            };
            let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
            let texts = Texts::of(&study.scenario);
            let mut page = report::build(&study.plan, rows, summary, &texts, 0, method, kept, &|_| {})?;
            page.published = published_table(&study.scenario, &study.plan, rows, summary);
            flowstart_report::render(&page).map_err(|error| ExperimentError::Report(error.to_string()))
        })?;
        let made = made.map_err(|error| experiment(&error))?;
        Ok(self.page.get_or_init(|| made))
    }
}

#[pymethods]
impl Results {
    /// The answer, in a sentence.
    #[getter]
    fn answer(&self) -> &str {
        &self.told().answer
    }

    /// What belongs to the answer, in further sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.told().answer_notes.iter().chain(&self.study.notes).cloned().collect()
    }

    /// A row per cell: metrics, intervals, and the comparison with the baseline.
    #[getter]
    fn cells(&self) -> PyResult<Table> {
        let cells: Result<Vec<_>, _> = self.told().cells.iter().map(serde_json::to_value).collect();
        let mut cells = cells.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        for cell in &mut cells {
            // One name for each column: metrics stand beside what identifies the cell, and `resolved` is in `summary`.
            let Some(entries) = cell.as_object_mut() else { continue };
            entries.shift_remove("resolved");
            for group in ["vs_baseline", "metrics"] {
                if let Some(serde_json::Value::Object(inner)) = entries.shift_remove(group) {
                    entries.extend(inner);
                }
            }
        }
        Table::of_objects(&cells, false)
    }

    /// A row per measured flow and repetition, as in `flows.parquet`.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        batch(&self.performed.rows).map(Table::of).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// `summary.json`.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(self.told()).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The question as a scenario, which `flowstart run` takes.
    #[getter]
    fn scenario(&self) -> PyResult<String> {
        self.study.to_toml().map_err(PyRuntimeError::new_err)
    }

    /// Writes the report, one HTML file, and returns its path.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<PathBuf> {
        let html = self.html(py)?;
        write_file(&path, |out| out.write_all(html.as_bytes())).map_err(|error| experiment(&error))?;
        Ok(path)
    }

    /// The cells as a stream of Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.cells()?.__arrow_c_stream__(py, requested_schema)
    }

    fn __repr__(&self) -> &str {
        self.answer()
    }

    /// The report, in a frame of its own.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(framed(self.html(py)?))
    }
}

/// A page in a frame for a notebook.
pub(crate) fn framed(html: &str) -> String {
    let page = html.replace('&', "&amp;").replace('"', "&quot;");
    format!("<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 720px; border: 0\"></iframe>")
}
