//! A queue discipline that is written in Python, in front of the lab.
//!
//! A discipline is an object of a class that inherits from `flowstart.QueueDiscipline`. Every link gets a deep copy of
//! it. It decides; the packets stay here, so that it can neither lose nor double one. After an error packets go on in
//! the order of their arrival.

use std::sync::{Arc, Mutex};

use flowstart_core::aqm::{CustomQueue, OutgoingLink, QueueContext, QueueDiscipline, QueueStats, QueuedPacket};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use values::{Packet, Queue, Waiting, locked};

use crate::algorithm::{Algorithm, Family, time, tried};
use crate::work::Watch;

pub(crate) mod values;

/// Queue disciplines, as the package has them.
pub(crate) const FAMILY: Family = Family { module: "flowstart.queue_discipline", class: "QueueDiscipline" };

/// The methods of a discipline, all of which it may leave to its base class, but not all of the first four at once.
const METHODS: [&str; 5] = ["on_arrival", "on_departure", "next_flow", "on_full", "next_timer"];

/// Which of them it has.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    on_arrival: bool,
    on_departure: bool,
    next_flow: bool,
    on_full: bool,
    next_timer: bool,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

fn verdict(value: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    let text: Option<String> = if value.is_none() { None } else { Some(value.extract().unwrap_or_default()) };
    match text.as_deref() {
        None => Ok(Verdict::Pass),
        Some("mark") => Ok(Verdict::Mark),
        Some("drop") => Ok(Verdict::Drop),
        Some(_) => Err(PyValueError::new_err("allowed is \"mark\", \"drop\" or None")),
    }
}

/// A queue discipline in Python, and the packets that wait.
#[derive(Debug)]
pub(crate) struct InPython {
    discipline: Algorithm,
    has: Has,
    limit: flowstart_core::aqm::QueueLimit,
    waiting: Arc<Mutex<Waiting>>,
    /// The same packets for Python.
    queue: Py<Queue>,
    stats: QueueStats,
    /// When `on_timer` is due; never, if the discipline has no `next_timer`.
    timer: Timestamp,
}

/// The packets as they are, for Python.
fn shared(waiting: Waiting) -> PyResult<(Arc<Mutex<Waiting>>, Py<Queue>)> {
    let waiting = Arc::new(Mutex::new(waiting));
    let queue = Python::attach(|py| Py::new(py, Queue(waiting.clone())))?;
    Ok((waiting, queue))
}

/// Copies share nothing.
impl Clone for InPython {
    fn clone(&self) -> Self {
        let discipline = self.discipline.clone();
        // Not locked any more while another thread may have the interpreter.
        let waiting = locked(&self.waiting).clone();
        let (waiting, queue) = shared(waiting).unwrap_or_else(|error| {
            discipline.fail(error);
            (self.waiting.clone(), Python::attach(|py| self.queue.clone_ref(py)))
        });
        Self { discipline, waiting, queue, ..*self }
    }
}

impl InPython {
    /// The discipline as the lab takes it.
    ///
    /// # Errors
    ///
    /// Its name is not usable, it decides nothing, or it fails in a trial.
    pub(crate) fn prepared(object: &Bound<'_, PyAny>, watch: &Arc<Watch>) -> PyResult<CustomQueue> {
        let (discipline, own) = Algorithm::new(object, FAMILY, METHODS, watch)?;
        let name = discipline.name;
        let [on_arrival, on_departure, next_flow, on_full, next_timer] = own;
        let has = Has { on_arrival, on_departure, next_flow, on_full, next_timer };
        if !own.iter().take(4).any(|own| *own) {
            let problem = format!("{name}: it decides nothing; it needs one of {}", METHODS[..4].join(", "));
            return Err(PyTypeError::new_err(problem));
        }
        let (waiting, queue) = shared(Waiting::default())?;
        let (limit, stats) = Default::default();
        let prototype = Self { discipline, has, limit, waiting, queue, stats, timer: Timestamp::NEVER };
        tried(name, watch, CustomQueue::new(name, Box::new(prototype)))
    }

    /// Asks the discipline about the queue as it is now.
    fn ask<T>(
        &self,
        context: &mut QueueContext<'_>,
        method: &str,
        packet: Option<&QueuedPacket>,
        read: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        {
            let mut waiting = locked(&self.waiting);
            (waiting.now, waiting.in_service) = (context.now, context.in_service);
            waiting.rng = Some(context.rng.clone());
        }
        let now = context.now.as_secs();
        let packet = packet.map(|packet| Packet::of(packet, context.now));
        let answer = self.discipline.call(
            method,
            |object| match packet {
                Some(packet) => object.call_method1(method, (now, packet, &self.queue)),
                None => object.call_method1(method, (now, &self.queue)),
            },
            read,
        );
        if let Some(rng) = locked(&self.waiting).rng.take() {
            *context.rng = rng;
        }
        answer
    }

    /// What the discipline says of a packet. Marks are drops where the transport does not react to them.
    fn judged(&mut self, packet: &mut QueuedPacket, context: &mut QueueContext<'_>, method: &str) -> bool {
        let said = self.ask(context, method, Some(packet), verdict).unwrap_or(Verdict::Pass);
        if said == Verdict::Mark && packet.mark() {
            self.stats.marked += 1;
            return true;
        }
        if said != Verdict::Pass {
            self.stats.dropped_early += 1;
            context.dropped.push(*packet);
        }
        said == Verdict::Pass
    }

    /// A flow that the discipline names, which must have a packet.
    fn flow(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        if value.is_none() {
            return Ok(None);
        }
        let flow: Option<u32> = value.extract().ok();
        let has_packets = |flow: &u32| locked(&self.waiting).packets.iter().any(|packet| packet.flow == *flow);
        let flow = flow.filter(has_packets);
        flow.map(Some).ok_or_else(|| PyValueError::new_err("allowed is a flow of queue.flows, or None"))
    }

    fn admits(&self, packet: &QueuedPacket, context: &QueueContext<'_>) -> bool {
        let waiting = locked(&self.waiting);
        self.limit.admits(packet.size, waiting.packets.len() as u64, waiting.bytes, context.in_service)
    }

    /// Makes room for a packet. Returns whether there is some.
    fn make_room(&mut self, packet: &QueuedPacket, context: &mut QueueContext<'_>) -> bool {
        while !self.admits(packet, context) {
            let victim = match self.has.on_full {
                true => self.ask(context, "on_full", Some(packet), |value| self.flow(value)).flatten(),
                false => None,
            };
            let dropped = victim.and_then(|flow| locked(&self.waiting).take(Some(flow)));
            self.stats.dropped_full += 1;
            match dropped {
                Some(other) => context.dropped.push(other),
                None => {
                    context.dropped.push(*packet);
                    return false;
                }
            }
        }
        true
    }

    /// Asks when the discipline wants to be called next.
    fn set_timer(&mut self, context: &mut QueueContext<'_>) {
        if !self.has.next_timer {
            return;
        }
        let now = context.now;
        let later = |value: &Bound<'_, PyAny>| {
            let due = time(value)?;
            // A time that does not move on would be called again at once, for ever.
            if due <= now { Err(PyValueError::new_err("allowed is a time after now, or None")) } else { Ok(due) }
        };
        let call =
            self.discipline.call("next_timer", |object| object.call_method1("next_timer", (now.as_secs(),)), later);
        self.timer = call.unwrap_or(Timestamp::NEVER);
    }
}

impl QueueDiscipline for InPython {
    fn set_link(&mut self, link: OutgoingLink) {
        self.limit = link.limit;
        let link = values::OutgoingLink::of(&link);
        Python::attach(|py| self.discipline.set(py, "link", link));
    }

    fn enqueue(&mut self, mut packet: QueuedPacket, context: &mut QueueContext<'_>) {
        if self.make_room(&packet, context) && (!self.has.on_arrival || self.judged(&mut packet, context, "on_arrival"))
        {
            locked(&self.waiting).push(packet);
        }
        self.set_timer(context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        let mut sent = None;
        while sent.is_none() && !self.is_empty() {
            let flow = match self.has.next_flow {
                true => self.ask(context, "next_flow", None, |value| self.flow(value)).flatten(),
                false => None,
            };
            let taken = locked(&self.waiting).take(flow);
            sent = taken.and_then(|mut packet| {
                let leaves = !self.has.on_departure || self.judged(&mut packet, context, "on_departure");
                leaves.then_some(packet)
            });
        }
        self.set_timer(context);
        sent
    }

    fn len(&self) -> usize {
        locked(&self.waiting).packets.len()
    }

    fn bytes(&self) -> Bytes {
        locked(&self.waiting).bytes
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }

    fn may_have_timer(&self) -> bool {
        self.has.next_timer
    }

    fn next_timer(&self) -> Timestamp {
        self.timer
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        self.ask(context, "on_timer", None, |_| Ok(()));
        self.set_timer(context);
    }
}
