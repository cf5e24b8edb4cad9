//! Writes a run to files during the run.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::sources::Finding;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::variable::Owner;
use flowstart_sim::observe::trace::{Entry, Event, HostPacket, Observer, Trace};

use super::PAGE;
use super::csv::{Columns, Table};
use super::pcapng::Packets;
use super::qlog::Log;
use crate::ends::capture::{Capture, CaptureSink, CapturedDatagram, Secrets};
use crate::run::newcomers::outcomes;
use crate::run::outcome::FlowOutcome;
use crate::run::repetition::told;
use crate::study::plan::{Cell, Plan};
use crate::trace::observe::{Seen, Watcher, seen};

/// The destination of a file's bytes, behind a buffer.
pub type Sink = Box<dyn Write + Send + Sync>;

type Out = BufWriter<Sink>;

/// Bytes of each buffer.
const BUFFER: usize = 1 << 16;

/// The outputs of a run.
#[derive(Default)]
pub struct Outputs {
    /// A table of events.
    pub csv: Option<Sink>,
    /// What it has beside them. With variables the log has them as well.
    pub columns: Columns,
    /// A log for QUIC tools.
    pub qlog: Option<Sink>,
    /// A capture for packet tools; of real QUIC flows with whole datagrams.
    pub pcapng: Option<Sink>,
    /// The contents of the page of one run.
    pub page: bool,
}

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").field("page", &self.page).finish_non_exhaustive()
    }
}

/// A format of [`Outputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// [`Outputs::csv`].
    Csv,
    /// [`Outputs::qlog`].
    Qlog,
    /// [`Outputs::pcapng`].
    Pcapng,
}

/// An output that could not be written.
#[derive(Debug)]
pub struct ExportError {
    /// The output.
    pub format: Format,
    /// The error.
    pub error: io::Error,
}

/// A run that was written.
#[derive(Debug)]
pub struct Exported {
    /// Its measured flows.
    pub outcomes: Vec<FlowOutcome>,
    /// The contents of the page of one run, if requested.
    pub seen: Seen,
}

/// Runs one repetition of a cell and writes events as they happen, so memory does not depend on the transfer. The run
/// ends at the first output that cannot be written.
pub fn export(plan: &Plan, cell: &Cell, rep: u32, mut outputs: Outputs) -> Result<Exported, ExportError> {
    let real = match outputs.pcapng.take_if(|_| plan.transport_of(cell).stack.is_some()) {
        Some(out) => Some(RealPackets::new(plan, cell, out)?),
        None => None,
    };
    let capture = real.clone().map(Capture::told_to);
    // The tracer is called once, when the trace begins.
    let parts = std::cell::Cell::new(Some((outputs, real)));
    let mut finished = told(plan, cell, rep, capture, &|world, start| {
        let bottleneck = world.network.monitor.as_ref().map_or(u32::MAX, |monitor| monitor.link);
        let (outputs, real) = parts.take().unwrap_or_default();
        Trace::told_to(Exporter::new(plan, cell, outputs, real, bottleneck, start))
    });
    let outcomes = outcomes(plan, cell, &mut finished);
    let exporter = finished.world.network.trace.take().and_then(|trace| trace.into_observer::<Exporter>());
    let watcher = exporter.map(Exporter::finish).transpose()?.flatten();
    let seen = watcher.map_or_else(Seen::default, |watcher| seen(plan, cell, &finished, &outcomes, watcher));
    Ok(Exported { outcomes, seen })
}

/// The capture of real flows. The run passes it datagrams, the exporter ends it.
#[derive(Clone)]
struct RealPackets(Arc<SharedPackets>);

struct SharedPackets {
    /// Whether something could not be written.
    failed: AtomicBool,
    file: Mutex<RealFile>,
}

struct RealFile {
    packets: Option<Packets<Out>>,
    error: Option<io::Error>,
}

impl fmt::Debug for RealPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealPackets").field("failed", &self.0.failed).finish_non_exhaustive()
    }
}

impl RealPackets {
    fn new(plan: &Plan, cell: &Cell, out: Sink) -> Result<Self, ExportError> {
        let packets = Packets::new(BufWriter::with_capacity(BUFFER, out), plan, cell, true);
        let packets = packets.map_err(|error| ExportError { format: Format::Pcapng, error })?;
        let file = Mutex::new(RealFile { packets: Some(packets), error: None });
        Ok(Self(Arc::new(SharedPackets { failed: AtomicBool::new(false), file })))
    }

    fn file(&self) -> MutexGuard<'_, RealFile> {
        self.0.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed)
    }
}

impl CaptureSink for RealPackets {
    fn on_datagram(&mut self, datagram: &CapturedDatagram, secrets: &Secrets) {
        if self.has_failed() {
            return;
        }
        let mut file = self.file();
        if let Some(Err(error)) = file.packets.as_mut().map(|packets| packets.write_datagram(datagram, secrets)) {
            file.error = Some(error);
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Writes the events that it observes. It cannot be cloned with its world, because files cannot.
struct Exporter {
    watcher: Option<Watcher>,
    table: Option<Table<Out>>,
    log: Option<Log<Out>>,
    /// Packets of the model.
    packets: Option<Packets<Out>>,
    /// Datagrams of real flows.
    real: Option<RealPackets>,
    /// The inner variables so far, if the table and the log have them.
    variables: Option<Values>,
    failed: Option<ExportError>,
}

/// The last values of inner variables, by flow, algorithm and name.
#[derive(Debug, Default)]
struct Values(BTreeMap<(u32, Owner, &'static str), f64>);

impl Values {
    /// Whether an event tells something new: everything but a variable that keeps its value.
    fn is_news(&mut self, entry: &Entry) -> bool {
        let Event::Variable { owner, variable } = entry.event else { return true };
        self.0.insert((entry.flow, owner, variable.name), variable.value) != Some(variable.value)
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Exporter {
    fn new(
        plan: &Plan,
        cell: &Cell,
        outputs: Outputs,
        real: Option<RealPackets>,
        bottleneck: u32,
        start: Timestamp,
    ) -> Self {
        let Outputs { csv, columns, qlog, pcapng, page } = outputs;
        let mut failed = None;
        let table = csv.map(|out| Table::new(BufWriter::with_capacity(BUFFER, out), start, &columns));
        let log = qlog.map(|out| Log::new(BufWriter::with_capacity(BUFFER, out), plan, cell, start));
        let packets = pcapng.map(|out| Packets::new(BufWriter::with_capacity(BUFFER, out), plan, cell, false));
        Self {
            watcher: page.then(|| Watcher::new(PAGE, bottleneck, &plan.links[cell.link], start)),
            table: table.and_then(|table| kept(&mut failed, Format::Csv, table)),
            log: log.and_then(|log| kept(&mut failed, Format::Qlog, log)),
            packets: packets.and_then(|packets| kept(&mut failed, Format::Pcapng, packets)),
            real,
            variables: columns.variables.then(Values::default),
            failed,
        }
    }

    /// The run has ended: writes the buffered bytes.
    fn finish(mut self) -> Result<Option<Watcher>, ExportError> {
        let mut real = None;
        if let Some(packets) = &self.real {
            let mut file = packets.file();
            real = file.packets.take();
            if let Some(error) = file.error.take() {
                self.failed.get_or_insert(ExportError { format: Format::Pcapng, error });
            }
        }
        let outs = [
            (Format::Csv, self.table.map(|table| table.out)),
            (Format::Qlog, self.log.map(|log| log.out)),
            (Format::Pcapng, self.packets.or(real).map(Packets::into_inner)),
        ];
        for (format, out) in outs {
            if let Some(mut out) = out {
                kept(&mut self.failed, format, out.flush());
            }
        }
        self.failed.map_or(Ok(self.watcher), Err)
    }
}

/// The value; the first error is kept.
fn kept<T>(failed: &mut Option<ExportError>, format: Format, value: io::Result<T>) -> Option<T> {
    value.map_err(|error| failed.get_or_insert(ExportError { format, error })).ok()
}

impl Observer for Exporter {
    fn on_event(&mut self, entry: &Entry) {
        if self.is_done() {
            return;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.on_event(entry);
        }
        let is_written = match &mut self.variables {
            Some(values) => values.is_news(entry),
            None => !matches!(entry.event, Event::Variable { .. }),
        };
        if !is_written {
            return;
        }
        if let Some(table) = &mut self.table {
            kept(&mut self.failed, Format::Csv, table.write(entry));
        }
        if let Some(log) = &mut self.log {
            kept(&mut self.failed, Format::Qlog, log.write_event(entry));
        }
    }

    fn on_sources(&mut self, flow: u32, sources: &[Finding]) {
        self.log.iter_mut().for_each(|log| log.take_sources(flow, sources));
    }

    fn on_packet(&mut self, packet: &HostPacket, ranges: &[(u64, u64)]) {
        if self.is_done() {
            return;
        }
        if let Some(log) = &mut self.log {
            kept(&mut self.failed, Format::Qlog, log.write_packet(packet, ranges));
        }
        if let Some(packets) = &mut self.packets {
            kept(&mut self.failed, Format::Pcapng, packets.write(packet, ranges));
        }
    }

    fn on_measured(&mut self, measured: &[(u32, Duration)]) {
        let flows: Vec<u32> = measured.iter().map(|(flow, _)| *flow).collect();
        self.log.iter_mut().for_each(|log| log.follow(&flows));
        self.packets.iter_mut().for_each(|packets| packets.follow(&flows));
        if let Some(real) = &self.real {
            real.file().packets.iter_mut().for_each(|packets| packets.follow(&flows));
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.on_measured(measured);
        }
    }

    fn wants_packets(&self) -> bool {
        self.log.is_some() || self.packets.is_some()
    }

    fn wants_variables(&self) -> bool {
        self.watcher.is_some() || self.variables.is_some()
    }

    fn is_done(&self) -> bool {
        self.failed.is_some() || self.real.as_ref().is_some_and(RealPackets::has_failed)
    }
}
