//! A startup scheme that is written in Python, in front of the lab.
//!
//! A scheme is an object of a class that inherits from `flowstart.Startup`. Every flow gets a deep copy of it. After an
//! error the window stays as it is.

use std::sync::Arc;

use flowstart_core::event::{Ack, DecisionLog, ExitReason, Loss, Sent};
use flowstart_core::launch::{Continuation, Launch};
use flowstart_core::path::PathKnowledge;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::{CustomStartup, Startup, StartupContext, Step};
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::algorithm::{Algorithm, Family, LONGEST_NAME, amount, bytes, kept, time, tried};
use crate::work::Watch;

pub(crate) mod values;

/// Schemes, as the package has them.
pub(crate) const FAMILY: Family = Family { module: "flowstart.startup", class: "Startup" };

/// The methods that a scheme may leave to its base class.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    on_sent: bool,
    on_lost: bool,
    on_congestion: bool,
    on_ack_in_recovery: bool,
    on_recovered: bool,
    pacing_rate: bool,
    next_wakeup: bool,
}

/// A scheme in Python.
#[derive(Clone)]
pub(crate) struct InPython {
    scheme: Algorithm,
    has: Has,
}

impl InPython {
    /// The scheme as the lab takes it.
    ///
    /// # Errors
    ///
    /// Its name is not usable, or it fails in a trial.
    pub(crate) fn prepared(object: &Bound<'_, PyAny>, watch: &Arc<Watch>) -> PyResult<CustomStartup> {
        let methods = [
            "launch",
            "on_ack",
            "on_sent",
            "on_lost",
            "on_congestion",
            "on_ack_in_recovery",
            "on_recovered",
            "pacing_rate",
            "next_wakeup",
        ];
        let (scheme, own) = Algorithm::new(object, FAMILY, methods, watch)?;
        let [_, _, on_sent, on_lost, on_congestion, on_ack_in_recovery, on_recovered, pacing_rate, next_wakeup] = own;
        if let Some((method, _)) = methods.iter().zip(own).take(2).find(|(_, own)| !own) {
            let problem = format!("{}: {method}() is missing; every scheme needs it", scheme.name);
            return Err(PyTypeError::new_err(problem));
        }
        let has = Has { on_sent, on_lost, on_congestion, on_ack_in_recovery, on_recovered, pacing_rate, next_wakeup };
        tried(scheme.name, watch, CustomStartup::new(scheme.name, Box::new(Self { scheme, has })))
    }

    /// What an event made of the window, which stays as it is if the call failed.
    fn step(
        &self,
        method: &str,
        window: Window,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Step {
        self.scheme.call(method, call, step).unwrap_or(Step::Continue { cwnd: window.cwnd })
    }
}

/// The attributes of the scheme: hosts compare them to find out what a launch depends on.
impl std::fmt::Debug for InPython {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.scheme.fmt(f)
    }
}

fn rate(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Rate>> {
    if value.is_none() {
        return Ok(None);
    }
    match amount(value, what)? {
        0 => Err(PyValueError::new_err(format!("{what}: allowed is a number above 0, or None"))),
        bits => Ok(Some(Rate::from_bits_per_sec(bits))),
    }
}

fn optional<T>(
    value: Option<&Py<PyAny>>,
    py: Python<'_>,
    read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    value.map(|value| read(value.bind(py))).transpose()
}

/// A reason: one that schemes of the program have, or the scheme's own.
fn reason(text: &str) -> PyResult<ExitReason> {
    let own = || kept(text).map(ExitReason::Other);
    ExitReason::named(text)
        .or_else(own)
        .ok_or_else(|| PyValueError::new_err(format!("reason: allowed is 1 to {LONGEST_NAME} characters")))
}

fn continuation(exit: &values::Exit, py: Python<'_>) -> PyResult<Continuation> {
    let cwnd = bytes(exit.cwnd.bind(py), "cwnd")?;
    let ssthresh = optional(exit.ssthresh.as_ref(), py, |value| bytes(value, "ssthresh"))?;
    Ok(Continuation { cwnd, ssthresh: ssthresh.unwrap_or(cwnd), reason: reason(&exit.reason)? })
}

/// A window, or the end of startup.
fn step(value: &Bound<'_, PyAny>) -> PyResult<Step> {
    match value.cast::<values::Exit>() {
        Ok(exit) => Ok(Step::Exit(continuation(exit.get(), value.py())?)),
        Err(_) if value.is_none() => Err(PyValueError::new_err("a window in bytes or an Exit is needed")),
        Err(_) => Ok(Step::Continue { cwnd: bytes(value, "cwnd")? }),
    }
}

/// A launch; a number is its window.
fn launch(value: &Bound<'_, PyAny>) -> PyResult<Launch> {
    let py = value.py();
    let Ok(launch) = value.cast::<values::Launch>() else { return Ok(Launch::window(bytes(value, "cwnd")?)) };
    let launch = launch.get();
    let exit = launch.exit.as_ref().map(|exit| continuation(exit.get(), py)).transpose()?;
    Ok(Launch {
        cwnd: bytes(launch.cwnd.bind(py), "cwnd")?,
        pacing_rate: optional(launch.pacing_rate.as_ref(), py, |value| rate(value, "pacing_rate"))?.flatten(),
        burst: optional(launch.burst.as_ref(), py, |value| bytes(value, "burst"))?,
        continuation: exit,
    })
}

impl Startup for InPython {
    fn set_context(&mut self, context: StartupContext) {
        let host = values::Host::of(context);
        Python::attach(|py| self.scheme.set(py, "host", host));
    }

    fn launch(&mut self, now: Timestamp, path: &PathKnowledge, _: &mut DecisionLog) -> Launch {
        let known = values::PathKnowledge::of(path);
        let call = self.scheme.call("launch", |object| object.call_method1("launch", (now.as_secs(), known)), launch);
        // What a run that has failed starts with matters to nobody, as long as it ends.
        call.unwrap_or_else(|| Launch::window(Bytes::new(12_000)))
    }

    fn on_sent(&mut self, sent: &Sent) {
        if self.has.on_sent {
            let sent = values::Sent::of(sent);
            self.scheme.call("on_sent", |object| object.call_method1("on_sent", (sent,)), |_| Ok(()));
        }
    }

    fn on_ack(&mut self, ack: &Ack, window: Window, in_use: bool, rtt: &RttEstimator) -> Step {
        let arguments = (values::Ack::of(ack), values::Window::of(window), in_use, values::Rtt::of(rtt));
        self.step("on_ack", window, |object| object.call_method1("on_ack", arguments))
    }

    fn on_lost(&mut self, loss: &Loss) {
        if self.has.on_lost {
            let loss = values::Loss::of(loss);
            self.scheme.call("on_lost", |object| object.call_method1("on_lost", (loss,)), |_| Ok(()));
        }
    }

    fn on_congestion(&mut self, loss: &Loss, window: Window, reduced: Bytes) -> Step {
        let usual = Step::Exit(Continuation { cwnd: reduced, ssthresh: reduced, reason: ExitReason::Loss });
        if !self.has.on_congestion {
            return usual;
        }
        let arguments = (values::Loss::of(loss), values::Window::of(window), reduced.get());
        let called = self.scheme.call("on_congestion", |object| object.call_method1("on_congestion", arguments), step);
        called.unwrap_or(usual)
    }

    fn on_ack_in_recovery(&mut self, ack: &Ack, window: Window, rtt: &RttEstimator) -> Option<Step> {
        if !self.has.on_ack_in_recovery {
            return None;
        }
        let arguments = (values::Ack::of(ack), values::Window::of(window), values::Rtt::of(rtt));
        let read = |value: &Bound<'_, PyAny>| if value.is_none() { Ok(None) } else { step(value).map(Some) };
        self.scheme
            .call("on_ack_in_recovery", |object| object.call_method1("on_ack_in_recovery", arguments), read)
            .flatten()
    }

    fn on_recovered(&mut self, now: Timestamp, window: Window) -> Step {
        let usual = Continuation { cwnd: window.cwnd, ssthresh: window.cwnd, reason: ExitReason::Loss };
        if !self.has.on_recovered {
            return Step::Exit(usual);
        }
        let arguments = (now.as_secs(), values::Window::of(window));
        self.step("on_recovered", window, |object| object.call_method1("on_recovered", arguments))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if !self.has.pacing_rate {
            return None;
        }
        let read = |value: &Bound<'_, PyAny>| rate(value, "a rate");
        self.scheme.call("pacing_rate", |object| object.call_method0("pacing_rate"), read).flatten()
    }

    fn next_wakeup(&self) -> Timestamp {
        if !self.has.next_wakeup {
            return Timestamp::NEVER;
        }
        let call = self.scheme.call("next_wakeup", |object| object.call_method0("next_wakeup"), time);
        call.unwrap_or(Timestamp::NEVER)
    }

    fn on_timer(&mut self, now: Timestamp, window: Window) -> Step {
        let arguments = (now.as_secs(), values::Window::of(window));
        self.step("on_timer", window, |object| object.call_method1("on_timer", arguments))
    }
}
