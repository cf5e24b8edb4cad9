//! A traced run as a table.

use std::io::{self, Write};

use flowstart_core::time::Timestamp;
use flowstart_core::variable::Variable;
use flowstart_sim::link::Loss;
use flowstart_sim::observe::trace::{Entry, Event};

use crate::trace::decisions::{describe, describe_hint};
use crate::trace::traced::TracedRun;

impl TracedRun {
    /// Every event as a line: time, flow, event and its details.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(out, self.finished.start, &Columns::default())?;
        let Some(trace) = &self.finished.world.network.trace else { return Ok(()) };
        trace.entries.iter().try_for_each(|entry| table.write(entry))
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number, not negative.
    Count,
    /// A number.
    Number,
    /// true or false.
    Flag,
}

/// The columns of every table, in their order.
pub const COLUMNS: [(&str, Kind); 15] = [
    ("time_ms", Kind::Number),
    ("flow", Kind::Count),
    ("event", Kind::Text),
    ("offset", Kind::Count),
    ("bytes", Kind::Count),
    ("retransmission", Kind::Flag),
    ("cwnd", Kind::Count),
    ("ssthresh", Kind::Count),
    ("in_flight", Kind::Count),
    ("pacing_mbit", Kind::Number),
    ("srtt_ms", Kind::Number),
    ("queue_packets", Kind::Count),
    ("queue_bytes", Kind::Count),
    ("delay_ms", Kind::Number),
    ("detail", Kind::Text),
];
/// The column of the scheme, before the others.
const SCHEME: (&str, Kind) = ("scheme", Kind::Text);
/// The columns of inner variables, behind the others.
const VARIABLES: [(&str, Kind); 4] =
    [("algorithm", Kind::Text), ("variable", Kind::Text), ("value", Kind::Number), ("unit", Kind::Text)];

impl Columns {
    /// All columns of the table, in their order.
    pub fn all(&self) -> Vec<(&'static str, Kind)> {
        let scheme = self.scheme.as_ref().map(|_| SCHEME);
        let variables = if self.variables { &VARIABLES[..] } else { &[] };
        scheme.into_iter().chain(COLUMNS).chain(variables.iter().copied()).collect()
    }
}

/// What a table has beside the events of a run.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The scheme, as the first column.
    pub scheme: Option<String>,
    /// The rows of another run stand before these, with the header.
    pub continues: bool,
    /// Rows and columns for inner variables of the algorithms.
    pub variables: bool,
}

/// A table that grows by a line for each event.
#[derive(Debug)]
pub(super) struct Table<W> {
    pub(super) out: W,
    start: Timestamp,
    /// What each line begins with.
    prefix: String,
    /// What each line but those of variables ends with.
    suffix: &'static str,
}

/// A text as a field: in quotation marks if it has separators.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

impl<W: Write> Table<W> {
    /// A table of a run whose newcomers start at `start`.
    pub(super) fn new(mut out: W, start: Timestamp, columns: &Columns) -> io::Result<Self> {
        let prefix = columns.scheme.as_ref().map_or(String::new(), |scheme| format!("{},", field(scheme)));
        let suffix = if columns.variables { ",,,," } else { "" };
        let table = |out| Self { out, start, prefix, suffix };
        if columns.continues {
            return Ok(table(out));
        }
        let names: Vec<&str> = columns.all().iter().map(|(name, _)| *name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(table(out))
    }

    /// A line.
    pub(super) fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let Self { out, prefix, suffix, .. } = self;
        let time = (entry.time.as_secs() - self.start.as_secs()) * 1000.0;
        write!(out, "{prefix}{time:.6},{},", entry.flow)?;
        match entry.event {
            Event::Sent { offset, len, retransmission } => {
                write!(out, "sent,{offset},{len},{retransmission},,,,,,,,,")
            }
            Event::Received { offset, len } => write!(out, "received,{offset},{len},,,,,,,,,,"),
            Event::Acknowledged { contiguous, newly } => {
                write!(out, "acknowledged,{contiguous},{},,,,,,,,,,", newly.get())
            }
            Event::DeclaredLost { offset, len } => {
                write!(out, "declared-lost,{offset},{len},,,,,,,,,,")
            }
            Event::Dropped { link, offset, cause } => {
                let offset = offset.map_or(String::new(), |offset| offset.to_string());
                let cause = match cause {
                    Loss::Queue => "queue",
                    Loss::Policer => "policer",
                    Loss::Wire => "wire",
                    Loss::Router => "router",
                };
                write!(out, "dropped,{offset},,,,,,,,,,,{cause} of link {link}")
            }
            Event::Window { cwnd, ssthresh, in_flight, pacing_rate, srtt_nanos } => {
                let ssthresh = if ssthresh.get() == u64::MAX { String::new() } else { ssthresh.get().to_string() };
                let pacing = pacing_rate.map_or(String::new(), |rate| format!("{:.6}", rate.as_mbit()));
                let (cwnd, in_flight, srtt) = (cwnd.get(), in_flight.get(), srtt_nanos as f64 / 1e6);
                write!(out, "window,,,,{cwnd},{ssthresh},{in_flight},{pacing},{srtt:.6},,,,")
            }
            Event::Queue { packets, bytes, .. } => {
                write!(out, "queue,,,,,,,,,{packets},{},,", bytes.get())
            }
            Event::Departed { size, delay_nanos, .. } => {
                write!(out, "departed,,{size},,,,,,,,,{:.6},", delay_nanos as f64 / 1e6)
            }
            Event::FlowControl { blocked, limit } => {
                let name = if blocked { "flow-control-blocked" } else { "flow-control-unblocked" };
                write!(out, "{name},{limit},,,,,,,,,,,")
            }
            Event::Written { end } => write!(out, "written,{end},,,,,,,,,,,"),
            Event::TimerFired => write!(out, "timer-fired,,,,,,,,,,,,"),
            Event::Hint { told, used } => {
                write!(out, "hint,,,,,,,,,,,,{}", describe_hint(told, used))
            }
            Event::Advised { rate } => write!(out, "advised,,,,,,,,,,,,{rate}"),
            Event::Decided(decision) => {
                write!(out, "decided,,,,,,,,,,,,{}", describe(&decision).1)
            }
            Event::Variable { owner, variable: Variable { name, unit, value } } => {
                let (owner, unit) = (owner.name(), unit.name());
                return writeln!(out, "variable,,,,,,,,,,,,,{owner},{},{value},{unit}", field(name));
            }
        }?;
        writeln!(out, "{suffix}")
    }
}
