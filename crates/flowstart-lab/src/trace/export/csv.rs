//! A traced run as a table.

use std::io::{self, Write};

use flowstart_core::time::Timestamp;
use flowstart_sim::link::Loss;
use flowstart_sim::observe::trace::{Entry, Event};

use crate::trace::decisions::{describe, describe_hint};
use crate::trace::traced::TracedRun;

impl TracedRun {
    /// Every event as a line: time, flow, event and its details.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(out, self.finished.start)?;
        let Some(trace) = &self.finished.world.network.trace else { return Ok(()) };
        trace.entries.iter().try_for_each(|entry| table.write(entry))
    }
}

/// A table that grows by a line for each event.
#[derive(Debug)]
pub(super) struct Table<W> {
    pub(super) out: W,
    start: Timestamp,
}

impl<W: Write> Table<W> {
    /// A table of a run whose newcomers start at `start`.
    pub(super) fn new(mut out: W, start: Timestamp) -> io::Result<Self> {
        writeln!(
            out,
            "time_ms,flow,event,offset,bytes,retransmission,cwnd,ssthresh,in_flight,pacing_mbit,srtt_ms,queue_packets,queue_bytes,delay_ms,detail"
        )?;
        Ok(Self { out, start })
    }

    /// A line.
    pub(super) fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let out = &mut self.out;
        let time = (entry.time.as_secs() - self.start.as_secs()) * 1000.0;
        let flow = entry.flow;
        match entry.event {
            Event::Sent { offset, len, retransmission } => {
                writeln!(out, "{time:.6},{flow},sent,{offset},{len},{retransmission},,,,,,,,,")
            }
            Event::Received { offset, len } => writeln!(out, "{time:.6},{flow},received,{offset},{len},,,,,,,,,,"),
            Event::Acknowledged { contiguous, newly } => {
                writeln!(out, "{time:.6},{flow},acknowledged,{contiguous},{},,,,,,,,,,", newly.get())
            }
            Event::DeclaredLost { offset, len } => {
                writeln!(out, "{time:.6},{flow},declared-lost,{offset},{len},,,,,,,,,,")
            }
            Event::Dropped { link, offset, cause } => {
                let offset = offset.map_or(String::new(), |offset| offset.to_string());
                let cause = match cause {
                    Loss::Queue => "queue",
                    Loss::Policer => "policer",
                    Loss::Wire => "wire",
                    Loss::Router => "router",
                };
                writeln!(out, "{time:.6},{flow},dropped,{offset},,,,,,,,,,,{cause} of link {link}")
            }
            Event::Window { cwnd, ssthresh, in_flight, pacing_rate, srtt_nanos } => {
                let ssthresh = if ssthresh.get() == u64::MAX { String::new() } else { ssthresh.get().to_string() };
                let pacing = pacing_rate.map_or(String::new(), |rate| format!("{:.6}", rate.as_mbit()));
                let (cwnd, in_flight, srtt) = (cwnd.get(), in_flight.get(), srtt_nanos as f64 / 1e6);
                writeln!(out, "{time:.6},{flow},window,,,,{cwnd},{ssthresh},{in_flight},{pacing},{srtt:.6},,,,")
            }
            Event::Queue { packets, bytes, .. } => {
                writeln!(out, "{time:.6},{flow},queue,,,,,,,,,{packets},{},,", bytes.get())
            }
            Event::Departed { size, delay_nanos, .. } => {
                writeln!(out, "{time:.6},{flow},departed,,{size},,,,,,,,,{:.6},", delay_nanos as f64 / 1e6)
            }
            Event::FlowControl { blocked, limit } => {
                let name = if blocked { "flow-control-blocked" } else { "flow-control-unblocked" };
                writeln!(out, "{time:.6},{flow},{name},{limit},,,,,,,,,,,")
            }
            Event::Written { end } => writeln!(out, "{time:.6},{flow},written,{end},,,,,,,,,,,"),
            Event::TimerFired => writeln!(out, "{time:.6},{flow},timer-fired,,,,,,,,,,,,"),
            Event::Hint { told, used } => {
                writeln!(out, "{time:.6},{flow},hint,,,,,,,,,,,,{}", describe_hint(told, used))
            }
            Event::Advised { rate } => writeln!(out, "{time:.6},{flow},advised,,,,,,,,,,,,{rate}"),
            Event::Decided(decision) => {
                writeln!(out, "{time:.6},{flow},decided,,,,,,,,,,,,{}", describe(&decision).1)
            }
        }
    }
}
