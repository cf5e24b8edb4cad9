//! Errors as Python has them: bad input is a `ValueError`, a file an `OSError`, all else a `RuntimeError`.

use flowstart_lab::results::folder::ExperimentError;
use flowstart_lab::spec::InputError;
use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};

/// Bad input; the message names field, value and what is allowed.
pub(crate) fn input(error: &InputError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A study that was not performed.
pub(crate) fn experiment(error: &ExperimentError) -> PyErr {
    match error {
        ExperimentError::Folder { .. } | ExperimentError::Question { .. } => PyValueError::new_err(error.to_string()),
        ExperimentError::Write { .. } => PyOSError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
