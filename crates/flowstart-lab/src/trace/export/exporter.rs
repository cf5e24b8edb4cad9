//! A run that is written to files while it goes on.

use std::fmt;
use std::io::{self, BufWriter, Write};

use flowstart_core::time::Timestamp;
use flowstart_sim::observe::trace::{Entry, HostPacket, Observer, Trace};

use super::PAGE;
use super::csv::Table;
use super::pcapng::Packets;
use super::qlog::Log;
#[cfg(feature = "quic")]
use crate::ends::capture::{CapturedDatagram, Secrets};
use crate::run::{self, FlowOutcome};
use crate::spec::link::Link;
use crate::study::plan::{Cell, Plan};
use crate::trace::observe::{Seen, Watcher};

/// Where a file's bytes go; they are buffered before.
pub type Sink = Box<dyn Write + Send + Sync>;

type Out = BufWriter<Sink>;

/// Bytes of each buffer.
const BUFFER: usize = 1 << 16;

/// What is written of a run.
#[derive(Default)]
pub struct Outputs {
    /// A table of events.
    pub csv: Option<Sink>,
    /// A log for QUIC tools.
    pub qlog: Option<Sink>,
    /// A capture for packet tools; of real QUIC flows with whole datagrams.
    pub pcapng: Option<Sink>,
    /// What [`page`](super::page) shows.
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
    /// Which one.
    pub format: Format,
    /// Why.
    pub error: io::Error,
}

/// A run that was written.
#[derive(Debug)]
pub struct Exported {
    /// Its measured flows.
    pub outcomes: Vec<FlowOutcome>,
    /// What [`page`](super::page) shows, if that was wanted.
    pub seen: Seen,
}

/// Runs one repetition of a cell and writes what happens while it happens: memory does not depend on the transfer. The
/// run ends at the first output that cannot be written.
pub fn export(plan: &Plan, cell: &Cell, rep: u32, outputs: Outputs) -> Result<Exported, ExportError> {
    let captured = outputs.pcapng.is_some();
    // The tracer is called once, when the trace begins.
    let outputs = std::cell::Cell::new(Some(outputs));
    let mut finished = run::told(plan, cell, rep, captured, &|world, start| {
        let bottleneck = world.network.monitor.as_ref().map_or(u32::MAX, |monitor| monitor.link);
        let outputs = outputs.take().unwrap_or_default();
        Trace::told_to(Exporter::new(plan, cell, outputs, bottleneck, start))
    });
    let outcomes = run::outcomes(plan, cell, &mut finished);
    let exporter = finished.world.network.trace.take().and_then(|trace| trace.into_observer::<Exporter>());
    let watcher = exporter.map(Exporter::finish).transpose()?.flatten();
    let seen = watcher.map_or_else(Seen::default, |watcher| run::seen(plan, cell, &finished, &outcomes, watcher));
    Ok(Exported { outcomes, seen })
}

/// Writes what it hears. It cannot be cloned with its world: files cannot.
pub(crate) struct Exporter {
    watcher: Option<Watcher>,
    table: Option<Table<Out>>,
    log: Option<Log<Out>>,
    packets: Option<Packets<Out>>,
    /// The capture has datagrams of real flows, and no packets of the model.
    is_real: bool,
    failed: Option<ExportError>,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Exporter {
    fn new(plan: &Plan, cell: &Cell, outputs: Outputs, bottleneck: u32, start: Timestamp) -> Self {
        let Outputs { csv, qlog, pcapng, page } = outputs;
        let is_real = plan.transport.stack.is_some();
        let mut failed = None;
        let table = csv.map(|out| Table::new(BufWriter::with_capacity(BUFFER, out), start));
        let log = qlog.map(|out| Log::new(BufWriter::with_capacity(BUFFER, out), plan, cell, start));
        let packets = pcapng.map(|out| Packets::new(BufWriter::with_capacity(BUFFER, out), plan, cell, is_real));
        Self {
            watcher: page.then(|| Watcher::new(PAGE, bottleneck, &plan.links[cell.link], start)),
            table: table.and_then(|table| kept(&mut failed, Format::Csv, table)),
            log: log.and_then(|log| kept(&mut failed, Format::Qlog, log)),
            packets: packets.and_then(|packets| kept(&mut failed, Format::Pcapng, packets)),
            is_real,
            failed,
        }
    }

    /// The measured flows are these, numbered in order, each with the link that its hosts see.
    pub(crate) fn follow(&mut self, flows: &[u32], links: impl Iterator<Item = Link>) {
        self.log.iter_mut().for_each(|log| log.follow(flows));
        self.packets.iter_mut().for_each(|packets| packets.follow(flows));
        if let Some(watcher) = &mut self.watcher {
            watcher.follow(flows, links);
        }
    }

    /// The data sender of a real flow sees a datagram.
    #[cfg(feature = "quic")]
    pub(crate) fn on_datagram(&mut self, datagram: &CapturedDatagram, secrets: &Secrets) {
        if let Some(packets) = self.packets.as_mut().filter(|_| self.failed.is_none()) {
            let written = packets.write_datagram(datagram, secrets);
            kept(&mut self.failed, Format::Pcapng, written);
        }
    }

    /// The run has ended: what is buffered is written.
    fn finish(mut self) -> Result<Option<Watcher>, ExportError> {
        let outs = [
            (Format::Csv, self.table.map(|table| table.out)),
            (Format::Qlog, self.log.map(|log| log.out)),
            (Format::Pcapng, self.packets.map(Packets::into_inner)),
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
        if let Some(table) = &mut self.table {
            kept(&mut self.failed, Format::Csv, table.write(entry));
        }
        if let Some(log) = &mut self.log {
            kept(&mut self.failed, Format::Qlog, log.write_event(entry));
        }
    }

    fn on_packet(&mut self, packet: &HostPacket, ranges: &[(u64, u64)]) {
        if self.is_done() {
            return;
        }
        if let Some(log) = &mut self.log {
            kept(&mut self.failed, Format::Qlog, log.write_packet(packet, ranges));
        }
        if let Some(packets) = self.packets.as_mut().filter(|_| !self.is_real) {
            kept(&mut self.failed, Format::Pcapng, packets.write(packet, ranges));
        }
    }

    fn wants_packets(&self) -> bool {
        self.log.is_some() || self.packets.is_some() && !self.is_real
    }

    fn is_done(&self) -> bool {
        self.failed.is_some()
    }
}
