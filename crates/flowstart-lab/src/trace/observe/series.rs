//! The time series of a run, reduced during the run.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_core::variable::{Owner, Unit};
use flowstart_sim::observe::trace::{Entry, Event};

use super::reduced::{Line, Marks, Volume};

/// Most events of a flow that are kept for the text.
const MOST_NOTABLE: usize = 1000;

/// Least number of points that each series keeps, if there were as many.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    /// Bins of a line, each with up to four points.
    pub bins: usize,
    /// Marks: segments and drops.
    pub marks: usize,
    /// Bins of departures from the bottleneck, for each flow.
    pub volume: usize,
    /// Events later than this after the newcomers' start are not shown.
    pub longest: Duration,
    /// Everything that a trace shows of a flow; otherwise cwnd, bytes in flight, sent data and drops.
    pub whole: bool,
}

/// The series of the bottleneck and of the measured flows.
#[derive(Clone, Debug)]
pub struct Series {
    resolution: Resolution,
    /// The time of the first event.
    pub from: Option<Timestamp>,
    until: Timestamp,
    /// Wire bytes of each flow that left the bottleneck, by the flow's number.
    pub departures: Vec<Volume>,
    /// Packets waiting at the bottleneck.
    pub queue: Line,
    /// Number of the first measured flow.
    pub first: u32,
    /// The series of each measured flow.
    pub flows: Vec<FlowSeries>,
    /// Drops of flows that are not measured.
    pub other_drops: Marks,
}

/// The series of a measured flow.
#[derive(Clone, Debug)]
pub struct FlowSeries {
    /// cwnd in bytes.
    pub cwnd: Line,
    /// Bytes in flight.
    pub in_flight: Line,
    /// ssthresh in bytes, if set.
    pub ssthresh: Line,
    /// Pacing rate in Mbit/s.
    pub pacing_rate_mbit: Line,
    /// Contiguously acknowledged bytes.
    pub acked: Line,
    /// Data sent for the first time: offsets.
    pub sent: Marks,
    /// Data sent again.
    pub retransmitted: Marks,
    /// Data dropped.
    pub dropped: Marks,
    /// Drops, including packets without data.
    pub drops: Marks,
    /// Inner variables of the algorithms, in the order in which they appeared.
    pub variables: Vec<VariableSeries>,
    /// The first events of the sender for the text.
    pub notable: Vec<(Timestamp, Event)>,
    /// The number of these events.
    pub notable_count: u64,
}

/// The series of an inner variable.
#[derive(Clone, Debug)]
pub struct VariableSeries {
    /// The algorithm.
    pub owner: Owner,
    /// Its name in the algorithm's reference.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its values.
    pub line: Line,
}

impl FlowSeries {
    fn new(resolution: &Resolution) -> Self {
        let (line, marks) = (Line::new(resolution.bins), Marks::new(resolution.marks));
        Self {
            cwnd: line.clone(),
            in_flight: line.clone(),
            ssthresh: line.clone(),
            pacing_rate_mbit: line.clone(),
            acked: line,
            sent: marks.clone(),
            retransmitted: marks.clone(),
            dropped: marks.clone(),
            drops: marks,
            variables: Vec::new(),
            notable: Vec::new(),
            notable_count: 0,
        }
    }
}

impl Series {
    /// Nothing yet. The newcomers start at `start`.
    pub fn new(resolution: Resolution, start: Timestamp) -> Self {
        Self {
            resolution,
            from: None,
            until: start + resolution.longest,
            departures: Vec::new(),
            queue: Line::new(resolution.bins),
            first: u32::MAX,
            flows: Vec::new(),
            other_drops: Marks::new(resolution.marks),
        }
    }

    /// The measured flows are `count` flows beginning with this number.
    pub fn follow(&mut self, first: u32, count: usize) {
        self.first = first;
        self.flows = vec![FlowSeries::new(&self.resolution); count];
    }

    /// Handles an event.
    #[inline]
    pub fn on_event(&mut self, entry: &Entry) {
        let time = entry.time;
        if time > self.until {
            return;
        }
        self.from.get_or_insert(time);
        let flow = self.flows.get_mut(entry.flow.wrapping_sub(self.first) as usize);
        match entry.event {
            Event::Departed { size, .. } => {
                let place = entry.flow as usize;
                if place >= self.departures.len() {
                    self.departures.resize(place + 1, Volume::new(self.resolution.volume));
                }
                self.departures[place].push(time, u64::from(size));
            }
            Event::Queue { packets, .. } => self.queue.push(time, f64::from(packets)),
            Event::Dropped { offset, .. } => match flow {
                Some(flow) => {
                    flow.drops.push(time, 0.0);
                    let offset = offset.filter(|_| self.resolution.whole);
                    offset.into_iter().for_each(|offset| flow.dropped.push(time, offset as f64));
                }
                None => self.other_drops.push(time, 0.0),
            },
            Event::Sent { offset, retransmission, .. } => {
                if let Some(flow) = flow {
                    if !retransmission {
                        flow.sent.push(time, offset as f64);
                    } else if self.resolution.whole {
                        flow.retransmitted.push(time, offset as f64);
                    }
                }
            }
            Event::Acknowledged { contiguous, .. } => {
                let flow = flow.filter(|_| self.resolution.whole);
                flow.into_iter().for_each(|flow| flow.acked.push(time, contiguous as f64));
            }
            Event::Window { cwnd, ssthresh, in_flight, pacing_rate, .. } => {
                let Some(flow) = flow else { return };
                flow.cwnd.push(time, cwnd.get() as f64);
                flow.in_flight.push(time, in_flight.get() as f64);
                if !self.resolution.whole {
                    return;
                }
                if ssthresh != Bytes::MAX {
                    flow.ssthresh.push(time, ssthresh.get() as f64);
                }
                pacing_rate.into_iter().for_each(|rate| flow.pacing_rate_mbit.push(time, rate.as_mbit()));
            }
            Event::Decided(_)
            | Event::Hint { .. }
            | Event::Advised { .. }
            | Event::FlowControl { .. }
            | Event::TimerFired => {
                let Some(flow) = flow.filter(|_| self.resolution.whole) else { return };
                flow.notable_count += 1;
                if flow.notable.len() < MOST_NOTABLE {
                    flow.notable.push((time, entry.event));
                }
            }
            Event::Variable { owner, variable } => {
                let Some(flow) = flow.filter(|_| self.resolution.whole) else { return };
                let same = |series: &VariableSeries| series.owner == owner && series.name == variable.name;
                let place = flow.variables.iter().position(same).unwrap_or_else(|| {
                    let line = Line::new(self.resolution.bins);
                    flow.variables.push(VariableSeries { owner, name: variable.name, unit: variable.unit, line });
                    flow.variables.len() - 1
                });
                flow.variables[place].line.push(time, variable.value);
            }
            Event::Received { .. } | Event::DeclaredLost { .. } | Event::Written { .. } => {}
        }
    }
}
