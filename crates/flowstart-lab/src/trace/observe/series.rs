//! The time series of a run, reduced while it goes on.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::observe::trace::{Entry, Event};

use super::reduced::{Line, Marks, Volume};

/// Most events of a flow that are kept to be told in words.
const MOST_NOTABLE: usize = 1000;

/// How many points of each series are kept at least, where there were as many.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    /// Bins of a line, each with up to four points.
    pub bins: usize,
    /// Marks: segments and drops.
    pub marks: usize,
    /// Bins of what leaves the bottleneck, for each flow.
    pub volume: usize,
    /// What is later than this after the newcomers' start is not shown.
    pub longest: Duration,
    /// Everything that a trace shows of a flow; otherwise cwnd, bytes in flight, what it sends and its drops.
    pub whole: bool,
}

/// The series of the bottleneck and of the measured flows.
#[derive(Clone, Debug)]
pub struct Series {
    resolution: Resolution,
    /// When the first event happened.
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
    /// ssthresh in bytes, where it is set.
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
    /// Drops, those of packets without data as well.
    pub drops: Marks,
    /// What happened to the sender that is told in words, the first ones.
    pub notable: Vec<(Timestamp, Event)>,
    /// How many of these there were.
    pub notable_count: u64,
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

    /// The measured flows are `count` from this number on.
    pub fn follow(&mut self, first: u32, count: usize) {
        self.first = first;
        self.flows = vec![FlowSeries::new(&self.resolution); count];
    }

    /// Something happened.
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
            Event::Received { .. } | Event::DeclaredLost { .. } | Event::Written { .. } => {}
        }
    }
}
