//! An algorithm that is written in Python: an object of a class that inherits from one of the package's.
//!
//! An error that it raises ends the experiment. Until the runs that have begun are over, its caller goes on without it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_core::registry::ConfigError;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::work::Watch;

/// Largest number of bytes, and of bits per second, that an algorithm may return: a number of seconds of it is still a
/// number of nanoseconds.
const MOST: f64 = 1e15;
/// Most different names of algorithms and of their reasons in a process: they are kept for its lifetime.
const MOST_NAMES: usize = 10_000;
/// Most characters of such a name.
pub(crate) const LONGEST_NAME: usize = 60;

/// A class that only shows its fields.
macro_rules! shown {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "flowstart")]
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $($(#[$field_doc])* $field: $type,)+
        }

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                format!("{self:?}")
            }

            /// Nothing of it changes.
            fn __deepcopy__(this: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
                this
            }
        }
    };
}
pub(crate) use shown;

/// A name that is kept for the lifetime of the process.
pub(crate) fn kept(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES || name.is_empty() || name.chars().count() > LONGEST_NAME {
        return None;
    }
    let kept = &*Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    Some(kept)
}

/// A value in a message.
fn shortened(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
    if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text }
}

/// A number of bytes, or of bits per second.
pub(crate) fn amount(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    let number: Option<f64> = value.extract().ok().filter(|_| !value.is_instance_of::<PyBool>());
    match number.filter(|number| (0.0..=MOST).contains(number)) {
        // Bounded above; a part of a byte is none.
        Some(number) => Ok(number as u64),
        None => Err(PyValueError::new_err(format!("{what}: allowed is a number from 0 to 1e15"))),
    }
}

/// A number of bytes.
pub(crate) fn bytes(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Bytes> {
    amount(value, what).map(Bytes::new)
}

/// A time; None is never.
pub(crate) fn time(value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    if value.is_none() {
        return Ok(Timestamp::NEVER);
    }
    let seconds: Option<f64> = value.extract().ok().filter(|seconds| (0.0..=1e9).contains(seconds));
    let allowed = "allowed is a time in seconds from 0 to 1e9, or None";
    let seconds = seconds.ok_or_else(|| PyValueError::new_err(allowed))?;
    // Whoever asks for a time finds that it has come, also where numbers round.
    let mut nanos = (seconds * 1e9).ceil();
    if nanos / 1e9 < seconds {
        nanos += 1.0;
    }
    Ok(Timestamp::ZERO + Duration::from_nanos(nanos as u64))
}

/// A family of algorithms, as the package has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    /// Its module.
    pub(crate) module: &'static str,
    /// Its base class there.
    pub(crate) class: &'static str,
}

impl Family {
    /// Its base class.
    fn base(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        py.import(self.module)?.getattr(self.class)
    }

    /// The algorithm that a value is, if it is none by name. A class stands for an object of it.
    pub(crate) fn of<'py>(self, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let base = self.base(value.py())?;
        if value.is_instance(&base)? {
            return Ok(Some(value.clone()));
        }
        match value.cast::<PyType>() {
            Ok(class) if class.is_subclass(&base)? => class.call0().map(Some),
            _ => Ok(None),
        }
    }
}

/// What the lab takes, unless it failed in its trial.
pub(crate) fn tried<T>(name: &str, watch: &Watch, prepared: Result<T, ConfigError>) -> PyResult<T> {
    match watch.take_error() {
        Some(error) => Err(error),
        None => prepared.map_err(|error| PyValueError::new_err(format!("{name}: {error}"))),
    }
}

/// An algorithm in Python.
pub(crate) struct Algorithm {
    /// Its name.
    pub(crate) name: &'static str,
    object: Py<PyAny>,
    watch: Arc<Watch>,
}

impl Algorithm {
    /// The algorithm, and which of these methods its class has of its own.
    ///
    /// # Errors
    ///
    /// Its name is not usable.
    pub(crate) fn new<const N: usize>(
        object: &Bound<'_, PyAny>,
        family: Family,
        methods: [&str; N],
        watch: &Arc<Watch>,
    ) -> PyResult<(Self, [bool; N])> {
        let (py, class) = (object.py(), object.get_type());
        let name: Option<String> = object.getattr("name").and_then(|name| name.extract()).ok();
        let name = name.ok_or_else(|| {
            PyTypeError::new_err(format!("{class}: name: a text is needed, such as name = \"my-own\""))
        })?;
        let name = kept(&name).ok_or_else(|| {
            let allowed = format!("allowed is 1 to {LONGEST_NAME} characters");
            PyValueError::new_err(format!("{class}: name `{name}`: {allowed}"))
        })?;
        let base = family.base(py)?;
        let mut own = [false; N];
        for (own, method) in own.iter_mut().zip(methods) {
            *own = !class.getattr(method)?.is(&base.getattr(method)?);
        }
        Ok((Self { name, object: object.clone().unbind(), watch: watch.clone() }, own))
    }

    /// Calls a method; `None` if it failed, or if the work has ended already.
    pub(crate) fn call<T>(
        &self,
        method: &str,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
        read: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.watch.is_cancelled() {
            return None;
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            let result = self.watch.call(py, || call(object)).and_then(|value| {
                read(&value).map_err(|error| {
                    // A bad value, not an error of the algorithm's own code.
                    let (problem, value) = (error.value(py).to_string(), shortened(&value));
                    PyValueError::new_err(format!("{}.{method}() returned {value}: {problem}", self.name))
                })
            });
            result.map_err(|error| self.watch.fail(error)).ok()
        })
    }

    /// Ends the work with this error.
    pub(crate) fn fail(&self, error: PyErr) {
        self.watch.fail(error);
    }

    /// Sets an attribute, which ends the work if it cannot be set.
    pub(crate) fn set<'py, T: IntoPyObject<'py>>(&self, py: Python<'py>, attribute: &str, value: T) {
        if let Err(error) = self.object.bind(py).setattr(attribute, value) {
            self.watch.fail(error);
        }
    }
}

/// A deep copy: copies share nothing.
impl Clone for Algorithm {
    fn clone(&self) -> Self {
        let object = Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (&self.object,)));
            match copied {
                Ok(copied) => copied.unbind(),
                Err(error) => {
                    self.watch.fail(error);
                    self.object.clone_ref(py)
                }
            }
        });
        Self { name: self.name, object, watch: self.watch.clone() }
    }
}

/// The attributes of the object: hosts compare them.
impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes = Python::attach(|py| {
            let attributes = self.object.bind(py).getattr("__dict__").and_then(|all| all.repr());
            attributes.map_or_else(|error| error.to_string(), |text| text.to_string())
        });
        write!(f, "{} {attributes}", self.name)
    }
}
