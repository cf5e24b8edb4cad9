//! What queue disciplines in Python are told. Times are seconds, amounts bytes, rates bits per second.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::aqm::{self, EcnCodepoint, QueuedPacket};
use flowstart_core::rng::Substream;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::algorithm::shown;

shown! {
    /// The link that a queue feeds; None: no limit, or not known.
    OutgoingLink {
        /// Packets that may wait.
        packets: Option<u64>,
        /// Bytes that may wait.
        bytes: Option<u64>,
        /// Its rate, or the mean of a rate that varies.
        rate: Option<u64>,
    }
}

impl OutgoingLink {
    pub(super) fn of(link: &aqm::OutgoingLink) -> Self {
        Self {
            packets: link.limit.packets,
            bytes: link.limit.bytes.map(Bytes::get),
            rate: link.rate.map(Rate::bits_per_sec),
        }
    }
}

shown! {
    /// A packet.
    Packet {
        /// Its flow.
        flow: u32,
        /// Its size on the wire.
        size: u32,
        /// Its ECN field: not-ect, ect0, ect1 or ce.
        ecn: &'static str,
        /// How long it has waited.
        sojourn: f64,
    }
}

impl Packet {
    pub(super) fn of(packet: &QueuedPacket, now: Timestamp) -> Self {
        let ecn = match packet.ecn {
            EcnCodepoint::NotEct => "not-ect",
            EcnCodepoint::Ect0 => "ect0",
            EcnCodepoint::Ect1 => "ect1",
            EcnCodepoint::Ce => "ce",
        };
        Self { flow: packet.flow, size: packet.size, ecn, sojourn: packet.sojourn(now).as_secs() }
    }
}

/// The packets that wait, in the order of their arrival, and what else a call may ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub(super) packets: VecDeque<QueuedPacket>,
    pub(super) bytes: Bytes,
    /// The packet that the link is sending.
    pub(super) in_service: Option<Bytes>,
    /// The time of the call.
    pub(super) now: Timestamp,
    /// The simulator's random numbers, during a call.
    pub(super) rng: Option<Substream>,
}

impl Waiting {
    pub(super) fn push(&mut self, packet: QueuedPacket) {
        self.bytes += Bytes::new(packet.size.into());
        self.packets.push_back(packet);
    }

    /// The oldest packet of a flow, or of all.
    pub(super) fn take(&mut self, flow: Option<u32>) -> Option<QueuedPacket> {
        let is_next = |packet: &QueuedPacket| flow.is_none_or(|flow| packet.flow == flow);
        let packet = self.packets.remove(self.packets.iter().position(is_next)?)?;
        self.bytes = self.bytes.saturating_sub(Bytes::new(packet.size.into()));
        Some(packet)
    }
}

/// The queue: what waits, at the time of the call.
#[pyclass(frozen, module = "flowstart")]
#[derive(Debug)]
pub(crate) struct Queue(pub(super) Arc<Mutex<Waiting>>);

pub(super) fn locked(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Queue {
    /// Packets that wait.
    #[getter]
    fn packets(&self) -> usize {
        locked(&self.0).packets.len()
    }

    /// Bytes that wait.
    #[getter]
    fn bytes(&self) -> u64 {
        locked(&self.0).bytes.get()
    }

    /// Bytes of the packet that the link is sending; None if it is idle.
    #[getter]
    fn in_service(&self) -> Option<u64> {
        locked(&self.0).in_service.map(Bytes::get)
    }

    /// How long the oldest packet has waited; 0 if none waits.
    #[getter]
    fn sojourn(&self) -> f64 {
        let waiting = locked(&self.0);
        waiting.packets.front().map_or(0.0, |packet| packet.sojourn(waiting.now).as_secs())
    }

    /// Packets and bytes of each flow that has some, by its oldest packet.
    #[getter]
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut flows: Vec<(u32, u64, u64)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for packet in &locked(&self.0).packets {
            let place = *places.entry(packet.flow).or_insert(flows.len());
            if place == flows.len() {
                flows.push((packet.flow, 0, 0));
            }
            flows[place].1 += 1;
            flows[place].2 += u64::from(packet.size);
        }
        let shown = PyDict::new(py);
        for (flow, packets, bytes) in flows {
            shown.set_item(flow, (packets, bytes))?;
        }
        Ok(shown)
    }

    /// A random number from 0 to below 1, of the run: with the same seed it is the same.
    fn random(&self) -> PyResult<f64> {
        let mut waiting = locked(&self.0);
        let rng = waiting.rng.as_mut().ok_or_else(|| {
            pyo3::exceptions::PyRuntimeError::new_err("random() is for the methods of a queue discipline")
        })?;
        Ok(rng.uniform())
    }

    fn __repr__(&self) -> String {
        let waiting = locked(&self.0);
        format!("Queue(packets={}, bytes={})", waiting.packets.len(), waiting.bytes.get())
    }
}
