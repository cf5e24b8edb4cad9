//! The functions of the module.

use std::ffi::CString;

use flowstart_lab::catalogue::{self, Entry, LISTS};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

use crate::keywords::{self, Given, Keyword};
use crate::table::Table;
use crate::work::{Watch, detached};
use crate::{results, traced};

/// A function of the module.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) returns: &'static str,
    pub(crate) keywords: fn() -> Vec<Keyword>,
    call: fn(Python<'_>, &Given<'_>) -> PyResult<Py<PyAny>>,
}

macro_rules! lists {
    ($($name:literal of $list:literal),+ $(,)?) => {
        [$(Function {
            name: $name,
            about: concat!("`flowstart list ", $list, "` as a table; `parameters` and `keys` are JSON."),
            returns: "Table",
            keywords: Vec::new,
            call: |py, _| list($list).and_then(|table| Ok(Py::new(py, table)?.into_any())),
        }),+]
    };
}

/// A function for each list of the catalogue.
const LIST_FUNCTIONS: [Function; LISTS.len()] = lists!(
    "list_schemes" of "schemes",
    "list_avoidance" of "avoidance",
    "list_aqms" of "aqms",
    "list_links" of "links",
    "list_link_options" of "link-options",
    "list_transports" of "transports",
    "list_competitors" of "competitors",
    "list_applications" of "applications",
    "list_scenarios" of "scenarios",
    "list_metrics" of "metrics",
);

/// Functions that run something.
const RUNNING: [Function; 5] = [
    Function {
        name: "compare",
        about: "Runs every combination of the values, and compares with the first scheme.",
        returns: "Results",
        keywords: keywords::compare,
        call: results::compare,
    },
    Function {
        name: "run",
        about: "Runs a scenario: a TOML file, or a name of `list_scenarios`.",
        returns: "Results",
        keywords: keywords::run,
        call: results::run,
    },
    Function {
        name: "trace",
        about: "Every event of one run of each scheme.",
        returns: "Trace",
        keywords: keywords::trace,
        call: traced::trace,
    },
    Function {
        name: "explain",
        about: "Where the time of one run of each scheme went: what is beyond the physical limit, split into causes.",
        returns: "Explained",
        keywords: keywords::explain,
        call: traced::explain,
    },
    Function {
        name: "validate",
        about: "Compares this build with published figures and other simulators; all entries unless one is named.",
        returns: "Table",
        keywords: keywords::validate,
        call: validate,
    },
];

/// All functions.
pub(crate) fn functions() -> impl Iterator<Item = &'static Function> {
    static ALL: [&[Function]; 2] = [&RUNNING, &LIST_FUNCTIONS];
    ALL.into_iter().flatten()
}

impl Function {
    /// Its signature as Python writes it, each argument as this says.
    pub(crate) fn signature(&self, argument: impl Fn(&Keyword) -> String) -> String {
        let (positional, named): (Vec<Keyword>, Vec<Keyword>) =
            (self.keywords)().into_iter().partition(|keyword| keyword.positional);
        let star = (!named.is_empty()).then(|| "*".to_owned());
        let all = positional.iter().map(&argument).chain(star).chain(named.iter().map(&argument));
        all.collect::<Vec<_>>().join(", ")
    }

    /// Its documentation: what it does, and its arguments.
    pub(crate) fn documentation(&self) -> String {
        let arguments: String = (self.keywords)()
            .iter()
            .map(|keyword| format!("    {}: {}\n", keyword.name, keyword.meaning.replace('\n', " ")))
            .collect();
        let arguments = if arguments.is_empty() { arguments } else { format!("\nArgs:\n{arguments}") };
        format!("{}\n{arguments}", self.about)
    }

    /// The function for Python.
    pub(crate) fn callable<'py>(&'static self, py: Python<'py>) -> PyResult<Bound<'py, PyCFunction>> {
        let argument = |keyword: &Keyword| match &keyword.default {
            Some(default) => format!("{}={default}", keyword.name),
            None => keyword.name.clone(),
        };
        let text = format!("{}({})\n--\n\n{}", self.name, self.signature(argument), self.documentation());
        let lasting = |text: &str| CString::new(text).map(|text| &*Box::leak(text.into_boxed_c_str()));
        let (name, text) = (lasting(self.name)?, lasting(&text)?);
        PyCFunction::new_closure(py, Some(name), Some(text), move |arguments, named| {
            (self.call)(arguments.py(), &Given::new(self.name, (self.keywords)(), arguments, named)?)
        })
    }
}

/// A list of the catalogue.
fn list(word: &str) -> PyResult<Table> {
    let found = LISTS.iter().find(|(_, name, _)| *name == word);
    let (list, ..) = found.ok_or_else(|| PyRuntimeError::new_err(format!("there is no list {word}")))?;
    let entries = catalogue::of(*list, None).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Table::of_objects(&entries.iter().map(Entry::json).collect::<Vec<_>>(), true)
}

/// The verdict on each entry.
fn validate(py: Python<'_>, given: &Given<'_>) -> PyResult<Py<PyAny>> {
    let (reference, jobs) = (given.path("reference")?, given.jobs()?);
    let names = match given.one_text("name")? {
        Some(name) => vec![name],
        None if reference.is_some() => {
            return Err(PyValueError::new_err("validate(): reference needs the name of an entry"));
        }
        None => flowstart_validate::ENTRIES.iter().map(|entry| entry.name.to_owned()).collect(),
    };
    let mut verdicts = Vec::new();
    for name in names {
        let work = || flowstart_validate::validate(&name, reference.as_deref(), jobs);
        let verdict = detached(py, &Watch::default(), work)?.map_err(PyValueError::new_err)?;
        verdicts.push(serde_json::to_value(&verdict).map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    }
    Ok(Py::new(py, Table::of_objects(&verdicts, true)?)?.into_any())
}
