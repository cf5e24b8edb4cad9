//! What schemes in Python are told and what they return. Times are seconds, amounts bytes, rates bits per second.

use flowstart_core::event;
use flowstart_core::path;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::startup::StartupContext;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window;
use pyo3::prelude::*;

use crate::algorithm::shown;

fn seconds(time: Duration) -> f64 {
    time.as_secs()
}

shown! {
    /// What a scheme's host is like.
    Host {
        /// Segment size.
        segment: u64,
        /// Initial window.
        initial_window: u64,
        /// Whether the host paces by itself.
        paced: bool,
    }
}

impl Host {
    pub(super) fn of(context: StartupContext) -> Self {
        let StartupContext { segment, initial_window, paced, .. } = context;
        Self { segment: segment.get(), initial_window: initial_window.get(), paced }
    }
}

shown! {
    /// What an earlier connection over the path saved.
    SavedPath {
        /// Smallest RTT that it saw.
        rtt: f64,
        /// Bytes that it delivered in an RTT.
        cwnd: u64,
        /// Time since it saved them.
        age: f64,
    }
}

shown! {
    /// What is known of the path before the first data packet; what is not known is None.
    PathKnowledge {
        /// RTT of the handshake.
        handshake_rtt: Option<f64>,
        /// What an earlier connection saved.
        saved: Option<SavedPath>,
        /// The receiver's window.
        receive_window: Option<u64>,
        /// Bytes that are ready to be sent.
        bytes_waiting: Option<u64>,
        /// The client's hint of its bandwidth.
        hint: Option<u64>,
        /// The rate that the application asks for.
        requested_rate: Option<u64>,
        /// The speed of the sender's own interface.
        interface_rate: Option<u64>,
        /// The rate that all routers of the path approved.
        approved_rate: Option<u64>,
        /// An oracle's answer.
        oracle_rate: Option<u64>,
        /// The rate at which the client saw the handshake arrive.
        train_rate: Option<u64>,
    }
}

impl PathKnowledge {
    pub(super) fn of(known: &path::PathKnowledge) -> Self {
        let (bytes, rate) = (|bytes: Bytes| bytes.get(), |rate: Rate| rate.bits_per_sec());
        Self {
            handshake_rtt: known.handshake_rtt.map(seconds),
            saved: known.saved.map(|saved| SavedPath {
                rtt: seconds(saved.rtt),
                cwnd: saved.cwnd.get(),
                age: seconds(saved.age),
            }),
            receive_window: known.receive_window.map(bytes),
            bytes_waiting: known.bytes_waiting.map(bytes),
            hint: known.hint.map(|hint| hint.bandwidth.bits_per_sec()),
            requested_rate: known.requested_rate.map(rate),
            interface_rate: known.interface_rate.map(rate),
            approved_rate: known.approved_rate.map(rate),
            oracle_rate: known.oracle_rate.map(rate),
            train_rate: known.train_rate.map(rate),
        }
    }
}

shown! {
    /// A packet that was sent.
    Sent {
        /// When it left.
        now: f64,
        /// What it adds to the bytes in flight.
        bytes: u64,
        /// Bytes in flight with it.
        in_flight: u64,
        /// The sender had nothing to send before it.
        app_limited: bool,
    }
}

impl Sent {
    pub(super) fn of(sent: &event::Sent) -> Self {
        Self {
            now: sent.now.as_secs(),
            bytes: sent.bytes.get(),
            in_flight: sent.in_flight.get(),
            app_limited: sent.app_limited,
        }
    }
}

shown! {
    /// An acknowledgement of new data.
    Ack {
        /// When it arrived.
        now: f64,
        /// Newly delivered bytes.
        bytes: u64,
        /// Newly delivered packets.
        packets: u64,
        /// Its RTT sample; None if it gave none.
        rtt: Option<f64>,
        /// Bytes in flight before it.
        in_flight_before: u64,
        /// Bytes in flight after it.
        in_flight: u64,
        /// The sender had nothing to send when the newest acknowledged packet left.
        app_limited: bool,
    }
}

impl Ack {
    pub(super) fn of(ack: &event::Ack) -> Self {
        Self {
            now: ack.now.as_secs(),
            bytes: ack.bytes.get(),
            packets: ack.packets,
            rtt: ack.rtt.map(seconds),
            in_flight_before: ack.in_flight_before.get(),
            in_flight: ack.in_flight.get(),
            app_limited: ack.app_limited,
        }
    }
}

shown! {
    /// Packets that were declared lost.
    Loss {
        /// When.
        now: f64,
        /// Their bytes.
        bytes: u64,
        /// Bytes in flight before.
        in_flight_before: u64,
        /// Bytes in flight after.
        in_flight: u64,
    }
}

impl Loss {
    pub(super) fn of(loss: &event::Loss) -> Self {
        Self {
            now: loss.now.as_secs(),
            bytes: loss.bytes.get(),
            in_flight_before: loss.in_flight_before.get(),
            in_flight: loss.in_flight.get(),
        }
    }
}

shown! {
    /// Congestion window and slow-start threshold; no threshold is None.
    Window {
        /// Bytes that may be in flight.
        cwnd: u64,
        /// Slow-start threshold.
        ssthresh: Option<u64>,
    }
}

impl Window {
    pub(super) fn of(window: window::Window) -> Self {
        let ssthresh = Some(window.ssthresh).filter(|ssthresh| *ssthresh != Bytes::MAX);
        Self { cwnd: window.cwnd.get(), ssthresh: ssthresh.map(Bytes::get) }
    }
}

shown! {
    /// RTTs; None before the first sample, but for smoothed, which then is an assumption.
    Rtt {
        /// The latest sample.
        latest: Option<f64>,
        /// The smallest.
        min: Option<f64>,
        /// The smoothed RTT.
        smoothed: f64,
        /// The mean deviation.
        variation: f64,
    }
}

impl Rtt {
    pub(super) fn of(rtt: &RttEstimator) -> Self {
        Self {
            latest: rtt.latest().map(seconds),
            min: rtt.min().map(seconds),
            smoothed: seconds(rtt.smoothed()),
            variation: seconds(rtt.variation()),
        }
    }
}

/// The end of startup: what congestion avoidance begins with, and why. With cwnd below ssthresh slow start leads from
/// one to the other. Without ssthresh it is cwnd.
#[pyclass(frozen, module = "flowstart")]
#[derive(Debug)]
pub(crate) struct Exit {
    pub(super) cwnd: Py<PyAny>,
    pub(super) ssthresh: Option<Py<PyAny>>,
    pub(super) reason: String,
}

#[pymethods]
impl Exit {
    #[new]
    #[pyo3(signature = (cwnd, ssthresh=None, reason="own".to_owned()))]
    fn new(cwnd: Py<PyAny>, ssthresh: Option<Py<PyAny>>, reason: String) -> Self {
        Self { cwnd, ssthresh, reason }
    }

    /// Nothing of it changes.
    fn __deepcopy__(this: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        this
    }

    fn __repr__(&self) -> String {
        format!("Exit(cwnd={}, reason='{}')", self.cwnd, self.reason)
    }
}

/// How a flow starts: its window, its pacing rate until the first acknowledgement, and what leaves at once. With exit
/// congestion avoidance begins at once.
#[pyclass(frozen, module = "flowstart")]
#[derive(Debug)]
pub(crate) struct Launch {
    pub(super) cwnd: Py<PyAny>,
    pub(super) pacing_rate: Option<Py<PyAny>>,
    pub(super) burst: Option<Py<PyAny>>,
    pub(super) exit: Option<Py<Exit>>,
}

#[pymethods]
impl Launch {
    #[new]
    #[pyo3(signature = (cwnd, pacing_rate=None, burst=None, exit=None))]
    fn new(cwnd: Py<PyAny>, pacing_rate: Option<Py<PyAny>>, burst: Option<Py<PyAny>>, exit: Option<Py<Exit>>) -> Self {
        Self { cwnd, pacing_rate, burst, exit }
    }

    /// Nothing of it changes.
    fn __deepcopy__(this: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        this
    }

    fn __repr__(&self) -> String {
        format!("Launch(cwnd={})", self.cwnd)
    }
}
