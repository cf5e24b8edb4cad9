//! The keyword arguments of functions, which are the options of the command: those of axes come from the lab.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flowstart_core::aqm::CustomQueue;
use flowstart_core::spec::names;
use flowstart_core::startup::CustomStartup;
use flowstart_lab::experiment::MOST_JOBS;
use flowstart_lab::perform::MOST_REPS;
use flowstart_lab::study::axis::{Key, Need};
use flowstart_lab::study::own::Own;
use flowstart_lab::study::plan::{AXES, Axis};
use flowstart_lab::study::scenario::{MAX_REPS, Scenario, default_reps, default_seed};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::work::Watch;
use crate::{discipline, scheme};

/// What a keyword takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A text.
    Text,
    /// One or several of them.
    Texts,
    /// One or several names of schemes or schemes of the caller's.
    Schemes,
    /// A name of a queue discipline or one of the caller's.
    Discipline,
    /// One or several of them.
    Disciplines,
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// True or False.
    Flag,
    /// A file or folder.
    Path,
    /// A function of the runs that are done and of all runs.
    Function,
}

impl Takes {
    /// Its type in Python.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Text => "str",
            Self::Texts => "str | Sequence[str]",
            Self::Schemes => "str | Startup | Sequence[str | Startup]",
            Self::Discipline => "str | QueueDiscipline",
            Self::Disciplines => "str | QueueDiscipline | Sequence[str | QueueDiscipline]",
            Self::Count => "int",
            Self::Number => "float",
            Self::Flag => "bool",
            Self::Path => "str | PathLike[str]",
            Self::Function => "Callable[[int, int], object]",
        }
    }
}

/// A keyword argument.
pub(crate) struct Keyword {
    pub(crate) name: String,
    pub(crate) takes: Takes,
    /// What stands for it, as Python; `None`: it must be given.
    pub(crate) default: Option<String>,
    /// Whether it may be given without its name.
    pub(crate) positional: bool,
    pub(crate) meaning: String,
}

/// A keyword as Python writes it.
fn python_name(option: &str) -> String {
    option.replace('-', "_")
}

fn keyword(name: &str, takes: Takes, default: impl Into<Option<&'static str>>, meaning: &str) -> Keyword {
    let default = default.into().map(str::to_owned);
    Keyword { name: python_name(name), takes, default, positional: false, meaning: meaning.to_owned() }
}

fn count(name: &str, default: u64, meaning: &str) -> Keyword {
    Keyword { default: Some(default.to_string()), ..keyword(name, Takes::Count, None, meaning) }
}

/// The keywords of the axes, needed ones first.
fn axes(several: bool) -> Vec<Keyword> {
    let one = |key: &Key| {
        let takes = match (key.name, several) {
            (name, _) if name == Axis::scheme().name() => Takes::Schemes,
            (name, true) if name == Axis::aqm().name() => Takes::Disciplines,
            (name, false) if name == Axis::aqm().name() => Takes::Discipline,
            (_, true) => Takes::Texts,
            (_, false) => Takes::Text,
        };
        let default = match (key.need, key.default) {
            (Need::Always, _) => None,
            (_, Some(default)) => Some(format!("\"{default}\"")),
            _ => Some("None".to_owned()),
        };
        let meaning = key.one.filter(|_| !several).unwrap_or(key.several);
        Keyword { name: python_name(key.name), takes, default, positional: false, meaning: meaning.to_owned() }
    };
    let mut all: Vec<Keyword> = AXES.iter().flat_map(|axis| axis.keys).map(one).collect();
    all.sort_by_key(|keyword| keyword.default.is_some());
    all
}

/// How flows behave and how often they run.
fn setup() -> Vec<Keyword> {
    vec![
        count("flows", 1, "Number of measured flows. arrival may say another one."),
        keyword("no-hint", Takes::Flag, "False", "Hide the client's bandwidth from schemes."),
        keyword("no-knowledge", Takes::Flag, "False", "Hide all that is known of paths before."),
        count("reps", default_reps().into(), "Repetitions of each cell."),
        count("seed", default_seed(), "Master seed."),
    ]
}

/// Where results go.
fn destination() -> Vec<Keyword> {
    vec![
        count("jobs", 0, "Threads; 0: one per core."),
        keyword("out", Takes::Path, "None", "Folder for results and the report; new, empty, or with resume."),
        keyword("resume", Takes::Flag, "False", "Go on with an interrupted run in the same folder."),
        keyword("precision", Takes::Number, "None", "Add repetitions until this precise, such as 0.01."),
        count("max-reps", MOST_REPS.into(), "Most repetitions of precision."),
        keyword("progress", Takes::Function, "None", "Called with the runs that are done and all runs."),
    ]
}

/// Those of `compare`.
pub(crate) fn compare() -> Vec<Keyword> {
    axes(true).into_iter().chain(setup()).chain(destination()).collect()
}

/// Those of `run`.
pub(crate) fn run() -> Vec<Keyword> {
    let file = keyword("scenario", Takes::Path, None, "A TOML file, or a name from `list_scenarios`.");
    let of_scenario = |name, meaning| keyword(name, Takes::Count, "None", meaning);
    let mut all = vec![
        Keyword { positional: true, ..file },
        of_scenario("reps", "Repetitions of each cell; the scenario's unless given."),
        of_scenario("seed", "Master seed; the scenario's unless given."),
    ];
    all.extend(destination());
    all
}

/// Those of `trace`.
pub(crate) fn trace() -> Vec<Keyword> {
    let mut all: Vec<Keyword> = axes(false).into_iter().chain(setup()).collect();
    all.push(count("rep", 0, "Repetition to show."));
    all.push(keyword("variables", Takes::Flag, "False", "Also inner variables of the algorithms."));
    all
}

/// Those of `explain`.
pub(crate) fn explain() -> Vec<Keyword> {
    let mut all: Vec<Keyword> = axes(false).into_iter().chain(setup()).collect();
    all.push(count("rep", 0, "Repetition to explain."));
    all.push(count("flow", 0, "Which flow of several, from 0, in the order in which they start."));
    all
}

/// Those of `validate`.
pub(crate) fn validate() -> Vec<Keyword> {
    let name = keyword("name", Takes::Text, "None", "One entry instead of all.");
    vec![
        Keyword { positional: true, ..name },
        keyword("reference", Takes::Path, "None", "Another file with the same columns."),
        count("jobs", 0, "Threads; 0: one per core."),
    ]
}

/// The arguments of a call, each of which is one of the function's keywords.
pub(crate) struct Given<'py> {
    function: &'static str,
    keywords: Vec<Keyword>,
    values: BTreeMap<String, Bound<'py, PyAny>>,
    /// The call as Python, for reports.
    pub(crate) command: String,
}

impl<'py> Given<'py> {
    pub(crate) fn new(
        function: &'static str,
        keywords: Vec<Keyword>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let name = function;
        let mut values = BTreeMap::new();
        let mut command = Vec::new();
        let positional: Vec<&Keyword> = keywords.iter().filter(|keyword| keyword.positional).collect();
        if arguments.len() > positional.len() {
            let most = positional.len();
            let problem = format!("{name}() takes {most} arguments without a name, and {} are given", arguments.len());
            return Err(PyTypeError::new_err(problem));
        }
        for (keyword, value) in positional.iter().zip(arguments.iter()) {
            command.push(value.repr()?.to_string());
            values.insert(keyword.name.clone(), value);
        }
        for (key, value) in named.into_iter().flatten() {
            let key: String = key.extract()?;
            let names: Vec<&str> = keywords.iter().map(|keyword| &*keyword.name).collect();
            if !names.contains(&&*key) {
                let problem = names::unknown(&key, &names, format!("`help(flowstart.{name})` shows all arguments"));
                return Err(PyTypeError::new_err(format!("{name}(): {problem}")));
            }
            command.push(format!("{key}={}", value.repr()?));
            if values.insert(key.clone(), value).is_some() {
                return Err(PyTypeError::new_err(format!("{name}(): {key} is given twice")));
            }
        }
        values.retain(|_, value| !value.is_none());
        if let Some(keyword) = keywords.iter().find(|one| one.default.is_none() && !values.contains_key(&one.name)) {
            return Err(PyTypeError::new_err(format!("{name}(): {} is needed: {}", keyword.name, keyword.meaning)));
        }
        Ok(Self { function, keywords, values, command: format!("flowstart.{name}({})", command.join(", ")) })
    }

    fn refused(&self, keyword: &str, value: &Bound<'py, PyAny>, allowed: &str) -> PyErr {
        let written = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
        let written: String = written.chars().take(200).collect();
        PyValueError::new_err(format!("{}(): {keyword} `{written}`: {allowed}", self.function))
    }

    pub(crate) fn get(&self, keyword: &str) -> Option<&Bound<'py, PyAny>> {
        self.values.get(keyword)
    }

    /// A whole number in this range; `None` if it is not given.
    pub(crate) fn count(&self, keyword: &str, most: u64) -> PyResult<Option<u64>> {
        let Some(value) = self.get(keyword) else { return Ok(None) };
        let number = value.extract::<u64>().ok().filter(|number| *number <= most);
        number.map(Some).ok_or_else(|| self.refused(keyword, value, &format!("allowed is 0 to {most}")))
    }

    /// A whole number, or the default.
    pub(crate) fn count_or(&self, keyword: &str, most: u32, default: u32) -> PyResult<u32> {
        let given = self.count(keyword, most.into())?;
        Ok(given.and_then(|number| u32::try_from(number).ok()).unwrap_or(default))
    }

    /// The number of threads.
    pub(crate) fn jobs(&self) -> PyResult<usize> {
        let given = self.count("jobs", MOST_JOBS as u64)?;
        Ok(given.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(0))
    }

    /// A number.
    pub(crate) fn number(&self, keyword: &str) -> PyResult<Option<f64>> {
        let Some(value) = self.get(keyword) else { return Ok(None) };
        value.extract().map(Some).map_err(|_| self.refused(keyword, value, "a number is needed"))
    }

    /// True or False; False if it is not given.
    pub(crate) fn flag(&self, keyword: &str) -> PyResult<bool> {
        let Some(value) = self.get(keyword) else { return Ok(false) };
        value.extract().map_err(|_| self.refused(keyword, value, "allowed is True or False"))
    }

    /// A file or folder.
    pub(crate) fn path(&self, keyword: &str) -> PyResult<Option<PathBuf>> {
        let Some(value) = self.get(keyword) else { return Ok(None) };
        value.extract().map(Some).map_err(|_| self.refused(keyword, value, "a text or a path is needed"))
    }

    fn text(&self, keyword: &str, value: &Bound<'py, PyAny>) -> PyResult<String> {
        value.extract().map_err(|_| self.refused(keyword, value, "a text is needed, such as \"2MB\""))
    }

    /// The text of a keyword; `None` if it is not given.
    pub(crate) fn one_text(&self, keyword: &str) -> PyResult<Option<String>> {
        self.get(keyword).map(|value| self.text(keyword, value)).transpose()
    }

    /// The values of a keyword, one or several.
    fn several(&self, keyword: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        /// Most values of one keyword: beyond it nobody could look at the results.
        const MOST: usize = 10_000;
        let Some(value) = self.get(keyword) else { return Ok(Vec::new()) };
        let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
        if !is_list || value.is_instance_of::<PyString>() {
            return Ok(vec![value.clone()]);
        }
        let length = value.len()?;
        if length == 0 || length > MOST {
            let problem = format!("{}(): {keyword} has {length} values; allowed is 1 to {MOST}", self.function);
            return Err(PyValueError::new_err(problem));
        }
        value.try_iter()?.collect()
    }

    /// The scenario of the axes and of how flows behave, and the algorithms that are the caller's.
    pub(crate) fn scenario(&self, watch: &std::sync::Arc<Watch>) -> PyResult<(Scenario, Own)> {
        let mut scenario = Scenario {
            flows: self.count_or("flows", u32::MAX, 1)?,
            reps: self.count_or("reps", MAX_REPS, default_reps())?,
            seed: self.count("seed", i64::MAX as u64)?.unwrap_or(default_seed()),
            hint: !self.flag("no_hint")?,
            unknown: self.flag("no_knowledge")?,
            noise: true,
            ..Scenario::default()
        };
        let mut own = Own::default();
        for key in AXES.iter().flat_map(|axis| axis.keys) {
            let name = python_name(key.name);
            let Some(keyword) = self.keywords.iter().find(|keyword| keyword.name == name) else { continue };
            let mut texts = Vec::new();
            for value in self.several(&name)? {
                let family = match keyword.takes {
                    Takes::Schemes => Some(scheme::FAMILY),
                    Takes::Discipline | Takes::Disciplines => Some(discipline::FAMILY),
                    _ => None,
                };
                let object = family.map(|family| family.of(&value)).transpose()?.flatten();
                let named = match (object, keyword.takes) {
                    (Some(object), Takes::Schemes) => {
                        let scheme = scheme::InPython::prepared(&object, watch)?;
                        own.schemes.push(scheme);
                        own.schemes.last().map(CustomStartup::name)
                    }
                    (Some(object), _) => {
                        own.aqms.push(discipline::InPython::prepared(&object, watch)?);
                        own.aqms.last().map(CustomQueue::name)
                    }
                    (None, _) => None,
                };
                texts.push(match named {
                    Some(name) => name.to_owned(),
                    None => self.text(&name, &value)?,
                });
            }
            if texts.is_empty()
                && let Some(default) = key.default
            {
                texts.push(default.to_owned());
            }
            if let Some(list) = scenario.list(key.name) {
                *list = texts;
            }
        }
        Ok((scenario, own))
    }
}
