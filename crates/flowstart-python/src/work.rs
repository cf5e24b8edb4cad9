//! Work outside of the interpreter's lock that `Ctrl-C` ends.

use std::collections::HashMap;
use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flowstart_lab::perform::{Again, Progress};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;

/// How often signals and late calls are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Longest that one call of a scheme may take.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(10);

/// What a piece of work shares with those who watch it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The results are not wanted any more.
    cancelled: AtomicBool,
    /// The first error of a scheme.
    error: Mutex<Option<PyErr>>,
    /// The thread of each running call of a scheme, as Python names it, and since when.
    calls: Mutex<HashMap<c_long, Instant>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Whether the results are not wanted any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Ends the work with this error, unless it has one.
    pub(crate) fn fail(&self, error: PyErr) {
        locked(&self.error).get_or_insert(error);
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The error with which the work ended.
    pub(crate) fn take_error(&self) -> Option<PyErr> {
        locked(&self.error).take()
    }

    /// Runs a call of a scheme that others may interrupt.
    pub(crate) fn call<T>(&self, py: Python<'_>, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let thread: c_long = py.import("threading")?.call_method0("get_ident")?.extract()?;
        locked(&self.calls).insert(thread, Instant::now());
        let result = call();
        locked(&self.calls).remove(&thread);
        result
    }

    /// Interrupts calls that take too long, all of them if the work is cancelled.
    fn interrupt(&self, py: Python<'_>) {
        let late: Vec<c_long> = {
            let calls = locked(&self.calls);
            let is_late = |since: &Instant| self.is_cancelled() || since.elapsed() > LONGEST_CALL;
            calls.iter().filter(|(_, since)| is_late(since)).map(|(thread, _)| *thread).collect()
        };
        let exception = py.get_type::<PyTimeoutError>();
        for thread in late {
            // SAFETY: the interpreter is attached, the exception is a class that lives, and a thread that is gone is
            // not found, which is no error.
            #[allow(unsafe_code, reason = "Python can raise an error in another thread only through its C interface")]
            unsafe {
                pyo3::ffi::PyThreadState_SetAsyncExc(thread, exception.as_ptr());
            }
        }
    }
}

/// Does work without the interpreter's lock, which schemes in Python take for each call. Ends with the error of a
/// scheme or of a signal's handler, such as `KeyboardInterrupt`.
pub(crate) fn detached<T: Send>(py: Python<'_>, watch: &Watch, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move || {
                // Nobody waits for it any more only if this function is left, which waits for this thread.
                let _ = sender.send(work());
            });
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok(done) => return Some(done),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| {
                        if let Err(error) = py.check_signals() {
                            watch.fail(error);
                        }
                        watch.interrupt(py);
                    }),
                }
            }
        })
    });
    match (watch.take_error(), done) {
        (Some(error), _) => Err(error),
        (None, Some(done)) => Ok(done),
        (None, None) => Err(PyRuntimeError::new_err("a run ended without a result")),
    }
}

/// Tells a Python function how far the work is.
pub(crate) struct Reported<'a> {
    watch: &'a Watch,
    told: Option<Py<PyAny>>,
    /// Runs done, and all of them.
    runs: Mutex<(u64, u64)>,
}

impl<'a> Reported<'a> {
    pub(crate) fn new(watch: &'a Watch, told: Option<Py<PyAny>>) -> Self {
        Self { watch, told, runs: Mutex::new((0, 0)) }
    }

    fn tell(&self, change: impl FnOnce(&mut (u64, u64))) {
        let (done, all) = {
            let mut runs = locked(&self.runs);
            change(&mut runs);
            *runs
        };
        if let Some(told) = &self.told {
            Python::attach(|py| {
                if let Err(error) = told.call1(py, (done, all)) {
                    self.watch.fail(error);
                }
            });
        }
    }
}

impl Progress for Reported<'_> {
    fn note(&self, _: &str) {}

    fn begins(&self, runs: u64) {
        self.tell(|(_, all)| *all += runs);
    }

    fn done(&self, runs: u64) {
        self.tell(|(done, _)| *done += runs);
    }

    fn ended(&self) {}

    fn again(&self, _: Again) {}

    fn goes_on(&self) -> bool {
        !self.watch.is_cancelled()
    }
}
