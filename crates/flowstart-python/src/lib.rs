//! The lab for Python: the extension module `flowstart._flowstart`.
//!
//! It is a front end, as the command is. Names, ranges and defaults come from the lab's axes and registries.
//!
//! | Looking for | Where |
//! |---|---|
//! | the functions | `functions` |
//! | keyword arguments, and the scenario that they are | `keywords` |
//! | what `compare` and `run` return | `results` |
//! | what `trace` and `explain` return | `traced` |
//! | tables in the form of Arrow | `table` |
//! | what is written in Python | `algorithm`: startup schemes `scheme`, queue disciplines `discipline` |
//! | work that can be interrupted | `work` |
//! | a study in pieces, for other machines | `study` |
//! | the stub for type checkers | `stub` |

#![allow(clippy::needless_pass_by_value, reason = "arguments of functions that Python calls are owned")]

mod algorithm;
mod discipline;
mod errors;
mod functions;
mod keywords;
mod results;
mod scheme;
mod stub;
mod study;
mod table;
mod traced;
mod work;

use pyo3::prelude::*;

/// What Python imports.
#[pymodule]
mod _flowstart {
    use super::*;

    #[pymodule_export]
    use super::discipline::values::{OutgoingLink, Packet, Queue};
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::scheme::values::{Ack, Exit, Host, Launch, Loss, PathKnowledge, Rtt, SavedPath, Sent, Window};
    #[pymodule_export]
    use super::study::Study;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::traced::{Explained, Trace};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        for function in functions::functions() {
            module.add(function.name, function.callable(module.py())?)?;
        }
        Ok(())
    }

    /// The stub of this module for type checkers, as it is in the package.
    #[pyfunction]
    fn stub() -> String {
        super::stub::text()
    }
}
