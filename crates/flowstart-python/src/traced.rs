//! What `trace` and `explain` return.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_csv::ReaderBuilder;
use arrow_schema::{DataType, Field, Schema};
use flowstart_lab::perform::Provenance;
use flowstart_lab::report;
use flowstart_lab::results::folder::write_file;
use flowstart_lab::study::Study;
use flowstart_lab::study::plan::Cell;
use flowstart_lab::trace::explained::{self, check_traced};
use flowstart_lab::trace::export::{Columns, Exported, Kind, Outputs, export};
use flowstart_report::Method;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{experiment, input};
use crate::keywords::Given;
use crate::results::framed;
use crate::table::Table;
use crate::work::{Watch, detached};

/// Most bytes of a table of events in memory; the command writes larger ones to files.
const MOST_BYTES: usize = 1 << 30;

/// The cells that the arguments describe, one for each scheme, and the repetition.
fn described(given: &Given<'_>, watch: &Arc<Watch>) -> PyResult<(Study, Vec<Cell>, u32)> {
    let (scenario, own) = given.scenario(watch)?;
    let study = Study::with_own(scenario, Path::new("."), &own).map_err(|error| input(&error))?;
    let cells = study.plan.cells();
    if study.plan.transports.len() > 1 {
        let names: Vec<&str> = study.plan.transports.iter().map(|one| &*one.text).collect();
        let problem = format!("transport: trace and explain show one transport; give {}", names.join(" or "));
        return Err(PyValueError::new_err(problem));
    }
    check_traced(&study.plan, &cells).map_err(|error| input(&error))?;
    let rep = given.count("rep", u64::from(study.plan.reps.saturating_sub(1)))?;
    Ok((study, cells, rep.and_then(|rep| u32::try_from(rep).ok()).unwrap_or(0)))
}

/// A table in memory, up to a bound.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One run of each scheme. As Arrow it is the table of its events; in a notebook it is its page.
#[pyclass(frozen, module = "flowstart")]
pub(crate) struct Trace {
    events: Py<Table>,
    answer: Vec<String>,
    html: String,
}

/// `trace`.
pub(crate) fn trace(py: Python<'_>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
    let watch = Arc::new(Watch::default());
    let (study, cells, rep) = described(given, &watch)?;
    let variables = given.flag("variables")?;
    let several = cells.len() > 1;
    let plan = &study.plan;
    let scheme = |cell: &Cell| several.then(|| plan.schemes[cell.scheme].text.clone());
    let memory = Memory::default();
    let runs = detached(py, &watch, || {
        let run = |(place, cell): (usize, &Cell)| {
            let columns = Columns { scheme: scheme(cell), continues: place > 0, variables };
            let outputs = Outputs { csv: Some(Box::new(memory.clone())), columns, page: true, ..Outputs::default() };
            export(plan, cell, rep, outputs)
        };
        cells.iter().enumerate().map(run).collect::<Result<Vec<Exported>, _>>()
    })?;
    let runs = runs.map_err(|failed| match failed.error.kind() {
        io::ErrorKind::OutOfMemory => PyMemoryError::new_err(format!(
            "the table of events has more than {MOST_BYTES} bytes; `flowstart trace --out DIR` writes it to a file"
        )),
        _ => PyRuntimeError::new_err(failed.error.to_string()),
    })?;
    let Provenance { version, host, .. } = Provenance::of_this_process("flowstart", env!("CARGO_PKG_VERSION"));
    let method = Method { command: given.command.clone(), version, seed: Some(plan.seed), host, ..Method::default() };
    let rendered = match (&*cells, &*runs) {
        ([cell], [run]) => {
            let page = report::trace(plan, cell, rep, &run.outcomes, &run.seen, method);
            flowstart_report::render_trace(&page).map(|html| (html, page.answer))
        }
        _ => {
            let page = report::overlay(plan, &cells, rep, &runs, method);
            flowstart_report::render_overlay(&page).map(|html| (html, page.answer))
        }
    };
    let (html, answer) = rendered.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let held = memory.0.lock().unwrap_or_else(PoisonError::into_inner);
    let events =
        Py::new(py, events(&held, &Columns { scheme: cells.first().and_then(scheme), variables, continues: false })?)?;
    Ok(Py::new(py, Trace { events, answer, html })?.into_any())
}

/// A table of events in the form of Arrow.
fn events(csv: &[u8], columns: &Columns) -> PyResult<Table> {
    let field = |(name, kind): (&'static str, Kind)| {
        let kind = match kind {
            Kind::Text => DataType::Utf8,
            Kind::Count => DataType::UInt64,
            Kind::Number => DataType::Float64,
            Kind::Flag => DataType::Boolean,
        };
        Field::new(name, kind, true)
    };
    let schema = Arc::new(Schema::new(columns.all().into_iter().map(field).collect::<Vec<Field>>()));
    let refused = |error: arrow_schema::ArrowError| PyRuntimeError::new_err(error.to_string());
    let reader = ReaderBuilder::new(schema.clone()).with_header(true).with_batch_size(1 << 16).build(csv);
    let batches = reader.map_err(refused)?.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    Ok(Table::of_batches(schema, batches))
}

#[pymethods]
impl Trace {
    /// What the run shows, in sentences.
    #[getter]
    fn answer(&self) -> String {
        self.answer.join(" ")
    }

    /// Every event as a row.
    #[getter]
    fn events(&self, py: Python<'_>) -> Py<Table> {
        self.events.clone_ref(py)
    }

    /// Writes the page, one HTML file, and returns its path.
    fn report(&self, path: PathBuf) -> PyResult<PathBuf> {
        write_file(&path, |out| out.write_all(self.html.as_bytes())).map_err(|error| experiment(&error))?;
        Ok(path)
    }

    /// The events as a stream of Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.events.get().__arrow_c_stream__(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        self.answer()
    }

    fn _repr_html_(&self) -> String {
        framed(&self.html)
    }
}

/// Where the time of runs went: a row for each scheme.
#[pyclass(frozen, module = "flowstart")]
pub(crate) struct Explained {
    table: Py<Table>,
    sentences: Vec<String>,
}

/// `explain`.
pub(crate) fn explain(py: Python<'_>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
    let watch = Arc::new(Watch::default());
    let (study, cells, rep) = described(given, &watch)?;
    let plan = &study.plan;
    explained::check(plan, &cells).map_err(|error| input(&error))?;
    let flow = given.count_or("flow", u32::MAX, 0)?;
    let explained = detached(py, &watch, || {
        let of = |cell: &Cell| explained::Explained::of(plan, *cell, rep, flow);
        cells.iter().map(of).collect::<Result<Vec<_>, _>>()
    })?;
    let explained = explained.map_err(|error| input(&error))?;
    // Sources are lists; their columns would differ between schemes.
    let objects: Vec<_> = explained
        .iter()
        .map(|one| {
            let mut object = one.object(plan);
            object["sources"] = object["sources"].to_string().into();
            object
        })
        .collect();
    let sentences = explained.iter().map(|one| one.sentence(plan)).collect();
    let table = Py::new(py, Table::of_objects(&objects, false)?)?;
    Ok(Py::new(py, Explained { table, sentences })?.into_any())
}

#[pymethods]
impl Explained {
    /// A sentence for each scheme.
    #[getter]
    fn answer(&self) -> String {
        self.sentences.join("\n")
    }

    /// A row for each scheme: milliseconds of each cause.
    #[getter]
    fn causes(&self, py: Python<'_>) -> Py<Table> {
        self.table.clone_ref(py)
    }

    /// The rows as a stream of Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.table.get().__arrow_c_stream__(py, requested_schema)
    }

    fn __repr__(&self) -> String {
        self.answer()
    }
}
