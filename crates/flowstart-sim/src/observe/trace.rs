//! All events of a run's flows and queues, if a trace is on.
//!
//! [`Trace::entries`] has the events of transports and queues, [`Trace::packets`] the packets that hosts would capture.
//! A trace [for](Trace::told_to) an [`Observer`] keeps neither: the observer gets everything as it happens.

use std::any::Any;
use std::fmt;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::event::Decision;
use flowstart_core::sources::Finding;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::variable::{Owner, Variable};

use crate::link::Loss;
use crate::packet::{Acknowledgement, Body, Direction, NO_OPTION, Packet, QuickStartOption, RangePool};

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A data packet left the sender.
    Sent {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
        /// Whether these bytes were sent before.
        retransmission: bool,
    },
    /// A data packet reached the receiver.
    Received {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
    },
    /// An acknowledgement reached the sender.
    Acknowledged {
        /// Bytes of the stream that are acknowledged without gap.
        contiguous: u64,
        /// Newly acknowledged bytes.
        newly: Bytes,
    },
    /// The sender declared a packet lost.
    DeclaredLost {
        /// First byte of the stream.
        offset: u64,
        /// Payload bytes.
        len: u32,
    },
    /// A queue, a policer or a wire lost a packet of the flow.
    Dropped {
        /// The link.
        link: u32,
        /// First byte of the stream, absent for packets without payload.
        offset: Option<u64>,
        /// The cause of the loss.
        cause: Loss,
    },
    /// The sender's window after something changed it.
    Window {
        /// Congestion window.
        cwnd: Bytes,
        /// Slow-start threshold.
        ssthresh: Bytes,
        /// Bytes in flight.
        in_flight: Bytes,
        /// Pacing rate.
        pacing_rate: Option<Rate>,
        /// Smoothed RTT in nanoseconds.
        srtt_nanos: u64,
    },
    /// Flow control begins or ceases to stop waiting data that the congestion window has room for.
    FlowControl {
        /// Whether the data is stopped now.
        blocked: bool,
        /// First byte that flow control forbids.
        limit: u64,
    },
    /// The application of chunks or a page wrote, or got a request to.
    Written {
        /// The new end of the stream.
        end: u64,
    },
    /// A client's hint has reached the sender.
    Hint {
        /// The rate in the hint; `None` if it cannot be read.
        told: Option<Rate>,
        /// The rate that the sender's policy lets the scheme use; `None` if the hint is not used.
        used: Option<Rate>,
    },
    /// Throughput advice of the path has reached the sender.
    Advised {
        /// The rate that now applies.
        rate: Rate,
    },
    /// A decision of the controller.
    Decided(Decision),
    /// The value of an inner variable of an algorithm, if the trace wants variables.
    Variable {
        /// The algorithm.
        owner: Owner,
        /// The variable.
        variable: Variable,
    },
    /// A retransmission or probe timer fired.
    TimerFired,
    /// Packets waiting at a monitored link.
    Queue {
        /// The link.
        link: u32,
        /// Packets.
        packets: u32,
        /// Bytes.
        bytes: Bytes,
    },
    /// A packet of the flow left a monitored link's transmitter.
    Departed {
        /// The link.
        link: u32,
        /// First byte of the stream, absent for packets without payload.
        offset: Option<u64>,
        /// Bytes on the wire.
        size: u32,
        /// Its waiting time in nanoseconds.
        delay_nanos: u64,
    },
}

/// An event with its time and flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub time: Timestamp,
    /// The flow.
    pub flow: u32,
    /// The event.
    pub event: Event,
}

/// A packet as a capture on a host's own interface shows it.
#[derive(Clone, Copy, Debug)]
pub struct HostPacket {
    /// When.
    pub time: Timestamp,
    /// Number of [`Trace::entries`] before it; 0 if they are not kept.
    pub entries_before: usize,
    /// Whether it reached a host; otherwise it left one.
    pub reached: bool,
    /// The flow.
    pub flow: u32,
    /// Bytes on the wire, as the profile counts them.
    pub size: u32,
    /// Its direction.
    pub direction: Direction,
    /// Number of links that it has crossed.
    pub links: u16,
    /// ECN field as it left or arrived.
    pub ecn: EcnCodepoint,
    /// What it carries. The ranges of an acknowledgement are in [`Trace::ranges_of`].
    pub body: Body,
    /// Quick-Start's option of IP, or a receiver's answer; [`NO_OPTION`] otherwise.
    pub quick_start: QuickStartOption,
    /// Place of its ranges in the trace's list: first and count.
    ranges: (u32, u32),
}

impl HostPacket {
    /// Whether the data sender sees it, rather than the data receiver.
    pub fn is_at_sender(&self) -> bool {
        (self.direction == Direction::Forward) != self.reached
    }
}

/// Gets every event of a world as it happens, in order.
pub trait Observer: Any + fmt::Debug + Send + Sync {
    /// An event happened.
    fn on_event(&mut self, entry: &Entry);

    /// A packet left or reached a host; `ranges` are those that an acknowledgement carries, as in [`Trace::ranges_of`].
    fn on_packet(&mut self, _packet: &HostPacket, _ranges: &[(u64, u64)]) {}

    /// The measured flows have joined, each with the round-trip propagation delay between its hosts.
    fn on_measured(&mut self, _flows: &[(u32, Duration)]) {}

    /// A flow launches, and this is what sources have stated of its path. Told once, before the event.
    fn on_sources(&mut self, _flow: u32, _sources: &[Finding]) {}

    /// Whether it wants packets.
    fn wants_packets(&self) -> bool {
        false
    }

    /// Whether it wants the inner variables of algorithms, after every event of a sender.
    fn wants_variables(&self) -> bool {
        false
    }

    /// Whether it is finished, so that a run that serves only it may end.
    fn is_done(&self) -> bool {
        false
    }

    /// The observer for a clone of the world; `None` if this observer cannot be cloned.
    fn fork(&self) -> Option<Box<dyn Observer>> {
        None
    }
}

/// The events of a run in order, or the observer that gets them.
#[derive(Debug, Default)]
pub struct Trace {
    /// The events.
    pub entries: Vec<Entry>,
    /// Every packet that left or reached a host, in order.
    pub packets: Vec<HostPacket>,
    /// What sources had stated to each flow at its launch.
    pub sources: Vec<(u32, Vec<Finding>)>,
    /// Ranges of the acknowledgements among the packets, one list after the other.
    ranges: Vec<(u64, u64)>,
    /// Gets events and packets, which are then not kept.
    observer: Option<Box<dyn Observer>>,
    /// Whether packets are kept or passed to the observer.
    without_packets: bool,
    /// Whether inner variables of algorithms are events.
    pub variables: bool,
}

impl Clone for Trace {
    fn clone(&self) -> Self {
        let Self { entries, packets, sources, ranges, observer, without_packets, variables } = self;
        let fork = observer.as_ref().map(|observer| observer.fork().unwrap_or_else(|| Box::new(Nobody)));
        Self {
            entries: entries.clone(),
            packets: packets.clone(),
            sources: sources.clone(),
            ranges: ranges.clone(),
            observer: fork,
            without_packets: *without_packets,
            variables: *variables,
        }
    }
}

/// Ignores everything.
#[derive(Debug)]
struct Nobody;

impl Observer for Nobody {
    fn on_event(&mut self, _: &Entry) {}

    fn fork(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(Self))
    }
}

impl Trace {
    /// A trace that keeps nothing and passes everything to an observer.
    pub fn told_to(observer: impl Observer) -> Self {
        Self {
            without_packets: !observer.wants_packets(),
            variables: observer.wants_variables(),
            observer: Some(Box::new(observer)),
            ..Self::default()
        }
    }

    /// Whether its observer is finished.
    pub fn is_done(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.is_done())
    }

    /// Tells the observer the measured flows, each with the round-trip propagation delay between its hosts.
    pub fn measure(&mut self, flows: &[(u32, Duration)]) {
        if let Some(observer) = &mut self.observer {
            observer.on_measured(flows);
        }
    }

    /// The observer, if it is one of this type.
    pub fn observer_mut<T: Observer>(&mut self) -> Option<&mut T> {
        let any: &mut dyn Any = self.observer.as_deref_mut()?;
        any.downcast_mut()
    }

    /// The observer back, if it is one of this type.
    pub fn into_observer<T: Observer>(self) -> Option<T> {
        let any: Box<dyn Any> = self.observer?;
        any.downcast().ok().map(|observer| *observer)
    }

    /// Records an event. It is separate from its callers, so that worlds without a trace run less code.
    #[inline(never)]
    pub(crate) fn note(&mut self, entry: Entry) {
        match &mut self.observer {
            None => self.entries.push(entry),
            Some(observer) => observer.on_event(&entry),
        }
    }

    pub(crate) fn note_sources(&mut self, flow: u32, sources: &[Finding]) {
        match &mut self.observer {
            None => self.sources.push((flow, sources.to_vec())),
            Some(observer) => observer.on_sources(flow, sources),
        }
    }

    /// Records a packet that leaves or reaches a host.
    pub(crate) fn note_packet(&mut self, time: Timestamp, packet: &Packet, reached: bool, pool: &mut RangePool) {
        if self.without_packets {
            return;
        }
        if self.observer.is_some() {
            self.ranges.clear();
        }
        let first = self.ranges.len() as u32;
        let mut quick_start = NO_OPTION;
        if let Body::Acknowledgement(Acknowledgement { ranges: Some(id), .. }) = packet.body {
            self.ranges.extend_from_slice(pool.get(id));
            quick_start = pool.answer(id).unwrap_or(NO_OPTION);
        }
        let Packet { flow, size, direction, hop: links, ecn, mut body, .. } = *packet;
        if let Some(option) = body.quick_start(pool) {
            quick_start = *option;
        }
        let ranges = (first, self.ranges.len() as u32 - first);
        let entries_before = self.entries.len();
        let packet =
            HostPacket { time, entries_before, reached, flow, size, direction, links, ecn, body, quick_start, ranges };
        match &mut self.observer {
            None => self.packets.push(packet),
            Some(observer) => observer.on_packet(&packet, &self.ranges),
        }
    }

    /// The ranges that an acknowledgement carries: QUIC packet numbers, newest first, or TCP SACK blocks, most recent
    /// first; half-open. Empty for other packets and for acknowledgements without gaps.
    pub fn ranges_of(&self, packet: &HostPacket) -> &[(u64, u64)] {
        let (first, count) = packet.ranges;
        &self.ranges[first as usize..][..count as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Counter {
        events: u64,
        is_forked: bool,
    }

    impl Observer for Counter {
        fn on_event(&mut self, _: &Entry) {
            self.events += 1;
        }

        fn fork(&self) -> Option<Box<dyn Observer>> {
            self.is_forked.then(|| Box::new(self.clone()) as Box<dyn Observer>)
        }
    }

    #[test]
    fn an_observer_is_told_and_nothing_is_kept() {
        let entry = Entry { time: Timestamp::ZERO, flow: 0, event: Event::TimerFired };
        for is_forked in [false, true] {
            let mut trace = Trace::told_to(Counter { events: 0, is_forked });
            trace.note(entry);
            let mut fork = trace.clone();
            trace.note(entry);
            fork.note(entry);
            assert!(trace.entries.is_empty() && fork.entries.is_empty());
            assert_eq!(trace.observer_mut::<Counter>().map(|counter| counter.events), Some(2));
            assert_eq!(trace.into_observer::<Counter>().map(|counter| counter.events), Some(2));
            // An observer that cannot be cloned gets no events of the clone.
            assert_eq!(fork.into_observer::<Counter>().map(|counter| counter.events), is_forked.then_some(2));
        }
    }
}
