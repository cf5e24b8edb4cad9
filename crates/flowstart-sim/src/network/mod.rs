//! Links and the packets in them: everything between the end hosts.

use flowstart_core::aqm::{EcnCodepoint, QueueState};
use flowstart_core::ensemble::Ensemble;
use flowstart_core::sources::Finding;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use crate::engine::{Engine, Slot};
use crate::link::{Departure, Link, LinkConfig, Loss, Wanted};
use crate::observe::monitor::{Departed, Monitor};
use crate::observe::record::FlowRecord;
use crate::observe::trace::{Entry, Event, Trace};
use crate::packet::{Body, Direction, FlowId, Packet, PacketId, PacketPool, RangePool};
use crate::path::routers::Routers;
use crate::path::signals::{PathSignal, PathSignals};

mod elements;

/// The object that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A link's transmitter has finished a packet.
    Service(u32),
    /// A packet arrives at the far end of a link.
    Arrival(u32),
    /// A link's queue discipline has a timer.
    Queue(u32),
    /// A router at a link has processed an option.
    Options(u32),
    /// A flow's sender has a timer: loss detection, retransmission, pacing. External ends have one too.
    Sender(u32),
    /// A flow's receiver has to send a delayed acknowledgement.
    Receiver(u32),
    /// A flow opens, repeats its handshake or its application writes.
    Application(u32),
    /// A process creates flows.
    Arrivals(u32),
    /// An event of a web session is due.
    Session(u32),
    /// A source sends requests without connections.
    Requests(u32),
}

/// The route of a flow's packets.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Links from the data sender to the data receiver.
    pub forward: Vec<u32>,
    /// Links back.
    pub back: Vec<u32>,
}

/// The routes of all flows in one list. Every hop of every packet reads it, so it has to be small.
#[derive(Clone, Debug, Default)]
struct Routes {
    links: Vec<u32>,
    /// The places of each flow's links, forward and back.
    paths: Vec<[Path; 2]>,
}

/// A piece of [`Routes::links`].
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    start: u32,
    len: u16,
    /// Number of links that fit here: a flow that replaces another mostly has a route of the same length.
    room: u16,
}

impl Routes {
    fn set(&mut self, flow: u32, route: &Route) {
        let index = flow as usize;
        if index >= self.paths.len() {
            self.paths.resize(index + 1, Default::default());
        }
        for (path, links) in self.paths[index].iter_mut().zip([&route.forward, &route.back]) {
            path.len = links.len() as u16;
            if path.len > path.room {
                path.start = self.links.len() as u32;
                path.room = path.len;
                self.links.extend(links);
            } else {
                self.links[path.start as usize..][..links.len()].copy_from_slice(links);
            }
        }
    }

    #[inline]
    fn links(&self, flow: u32, direction: Direction) -> &[u32] {
        let Path { start, len, .. } = self.paths[flow as usize][direction as usize];
        &self.links[start as usize..][..usize::from(len)]
    }
}

/// Links, packets and clock.
#[derive(Clone, Debug)]
pub struct Network {
    /// The clock and the event queue.
    pub engine: Engine<Owner>,
    /// Ranges in acknowledgements.
    pub ranges: RangePool,
    /// The record of each flow.
    pub records: Vec<FlowRecord>,
    /// Watches one link; set by [`Network::watch`].
    pub monitor: Option<Box<Monitor>>,
    /// Keeps events, or passes them to an observer.
    pub trace: Option<Box<Trace>>,
    /// The windows that connections share, by number.
    pub(crate) ensembles: Vec<Ensemble>,
    /// Lost datagrams of flows with external ends that have not been reported yet.
    pub(crate) lost_outside: Vec<FlowId>,
    packets: PacketPool,
    links: Vec<Link>,
    link_slots: Vec<(Slot, Slot)>,
    /// Timers of the queue disciplines that have needed one so far, separate from the timers that every packet needs.
    queue_slots: Vec<Option<Slot>>,
    routes: Routes,
    routers: Routers,
    pub(crate) signals: PathSignals,
    /// Whether anything at a link reads packets; otherwise links skip that step.
    is_read: bool,
    seed: u64,
}

impl Network {
    /// No links yet. Random processes of links derive from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            engine: Engine::new(),
            ranges: RangePool::default(),
            records: Vec::new(),
            monitor: None,
            trace: None,
            ensembles: Vec::new(),
            lost_outside: Vec::new(),
            packets: PacketPool::default(),
            links: Vec::new(),
            link_slots: Vec::new(),
            queue_slots: Vec::new(),
            routes: Routes::default(),
            routers: Routers::default(),
            signals: PathSignals::default(),
            is_read: false,
            seed,
        }
    }

    /// Adds a link and returns its number for routes.
    pub fn add_link(&mut self, config: &LinkConfig) -> u32 {
        let id = self.links.len() as u32;
        self.links.push(Link::new(config, self.seed, u64::from(id)));
        self.link_slots.push((self.engine.slot(Owner::Service(id)), self.engine.slot(Owner::Arrival(id))));
        self.queue_slots.push(None);
        self.arm_queue(id);
        id
    }

    /// Adds an ensemble in which no connection gets a smaller window than `least`, and returns its number for flows.
    pub fn add_ensemble(&mut self, least: Bytes) -> u32 {
        self.ensembles.push(Ensemble::new(least));
        self.ensembles.len() as u32 - 1
    }

    /// Replaces the queue discipline of a link by one from outside the registry. A discipline with a periodic timer
    /// keeps the clock running forever: runs then end by their conditions or limits, never for want of events.
    pub fn set_queue(&mut self, link: u32, queue: QueueState) {
        self.links[link as usize].set_queue(queue);
        self.arm_queue(link);
    }

    /// Watches a link, which must be unused.
    pub fn watch(&mut self, link: u32) {
        // An unwatched link that drops nothing only computes arrivals.
        self.links[link as usize].keep_queue();
        self.monitor = Some(Box::new(Monitor::new(link)));
    }

    /// Sets the route of flow number `flow`.
    pub(crate) fn set_route(&mut self, flow: u32, route: &Route) {
        let index = flow as usize;
        self.routes.set(flow, route);
        if index >= self.records.len() {
            self.records.resize(index + 1, FlowRecord::default());
        }
        self.records[index] = FlowRecord::default();
    }

    /// Changes the route of flow number `flow`, which continues.
    pub(crate) fn change_route(&mut self, flow: u32, route: &Route) {
        self.routes.set(flow, route);
    }

    /// A link.
    pub fn link(&mut self, id: u32) -> &mut Link {
        &mut self.links[id as usize]
    }

    /// Packets in the network.
    pub fn packets_in_flight(&self) -> usize {
        self.packets.len()
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.engine.now()
    }

    /// The record of flow number `flow`.
    #[inline]
    pub fn record(&mut self, flow: u32) -> &mut FlowRecord {
        &mut self.records[flow as usize]
    }

    /// Records an event of `flow`, if there is a trace.
    #[inline]
    pub fn note(&mut self, flow: u32, event: impl FnOnce() -> Event) {
        if let Some(trace) = &mut self.trace {
            trace.note(Entry { time: self.engine.now(), flow, event: event() });
        }
    }

    /// Records what sources had stated of the path when `flow` launched, if there is a trace.
    pub fn note_sources(&mut self, flow: u32, sources: &[Finding]) {
        if let Some(trace) = &mut self.trace {
            trace.note_sources(flow, sources);
        }
    }

    /// Records a packet that leaves or reaches a host, if there is a trace.
    #[inline]
    pub(crate) fn note_packet(&mut self, packet: &Packet, reached: bool) {
        if let Some(trace) = &mut self.trace {
            trace.note_packet(self.engine.now(), packet, reached, &mut self.ranges);
        }
    }

    /// Whether there is a trace.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Whether there is a trace that wants inner variables of algorithms.
    #[inline]
    pub fn wants_variables(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.variables)
    }

    /// Whether the observer of the world is finished.
    #[inline]
    pub fn is_observation_done(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_done())
    }

    /// Sends a packet, with its signal for the path, into the first link of its flow's route.
    #[expect(
        clippy::too_many_arguments,
        reason = "a packet's fields, of which none would be clearer for a name of their sum"
    )]
    #[inline]
    pub fn transmit(
        &mut self,
        flow: u32,
        generation: u32,
        direction: Direction,
        size: u32,
        ecn: EcnCodepoint,
        body: Body,
        signal: Option<PathSignal>,
    ) {
        let packet = Packet { flow, generation, size, hop: 0, direction, ecn, body };
        self.note_packet(&packet, false);
        let id = self.packets.insert(packet);
        if let Some(signal) = signal {
            self.signals.set(id, signal);
        }
        self.forward(id);
    }

    /// Puts a packet into the next link of its route; returns it when it has crossed them all.
    #[inline]
    fn forward(&mut self, id: PacketId) -> Option<Packet> {
        let packet = self.packets.get(id);
        let links = self.routes.links(packet.flow, packet.direction);
        let Some(&link) = links.get(usize::from(packet.hop)) else {
            if self.signals.are_used() {
                self.signals.arrive(id);
            }
            return Some(self.packets.remove(id));
        };
        packet.hop += 1;
        let now = self.engine.now();
        let (size, flow, ecn) = (packet.size, packet.flow, packet.ecn);
        if self.is_read {
            self.forward_read(now, link, id);
            return None;
        }
        self.enqueue(now, link, id, size, flow, ecn);
        None
    }

    #[inline]
    fn enqueue(&mut self, now: Timestamp, link: u32, id: PacketId, size: u32, flow: u32, ecn: EcnCodepoint) {
        let wanted = self.links[link as usize].enqueue(now, id, size, flow, ecn);
        self.schedule(link, wanted);
        self.after_queue_change(link, flow);
    }

    #[inline]
    fn schedule(&mut self, link: u32, wanted: Wanted) {
        let (service, arrival) = self.link_slots[link as usize];
        if let Some(time) = wanted.service {
            self.engine.schedule(service, time);
            if self.is_read {
                self.tell_readers(link);
            }
        }
        if let Some(time) = wanted.arrival {
            self.engine.schedule(arrival, time);
        }
    }

    /// Arms the timer of a link's queue discipline.
    fn arm_queue(&mut self, link: u32) {
        let time = self.links[link as usize].next_queue_timer();
        let slot = match self.queue_slots[link as usize] {
            Some(slot) => slot,
            None if time == Timestamp::NEVER => return,
            None => *self.queue_slots[link as usize].insert(self.engine.slot(Owner::Queue(link))),
        };
        if self.engine.scheduled(slot) != time {
            self.engine.schedule(slot, time);
        }
    }

    /// The timer of a link's queue discipline has fired.
    pub(crate) fn queue_timer(&mut self, link: u32) {
        let wanted = self.links[link as usize].on_queue_timer(self.engine.now());
        self.schedule(link, wanted);
        let moved = self.links[link as usize].first_moved(wanted);
        match moved {
            Some(flow) => self.after_queue_change(link, flow),
            None => self.arm_queue(link),
        }
    }

    /// Accounts for drops and shows the queue of a monitored link.
    #[inline]
    fn after_queue_change(&mut self, link: u32, flow: u32) {
        if self.links[link as usize].is_timed() {
            self.arm_queue(link);
        }
        while let Some((dropped, cause)) = self.links[link as usize].take_dropped() {
            self.lose(dropped.handle, link, cause);
        }
        if self.trace.is_some() && self.monitor.as_ref().is_some_and(|monitor| monitor.link == link) {
            let queue = &mut self.links[link as usize];
            let (packets, bytes) = (queue.waiting() as u32, queue.waiting_bytes());
            self.note(flow, || Event::Queue { link, packets, bytes });
        }
    }

    fn lose(&mut self, id: PacketId, link: u32, cause: Loss) {
        let packet = self.packets.remove(id);
        self.signals.forget(id);
        let now = self.engine.now();
        let record = &mut self.records[packet.flow as usize];
        record.dropped += 1;
        record.first_drop.get_or_insert(now);
        if let Some(offset) = packet.body.offset() {
            record.dropped_data += 1;
            // They are the first of the stream. A dropped retransmission follows a loss of its own.
            record.quick_start_dropped += u64::from(offset < record.quick_start_bytes);
        }
        if let Some(monitor) = &mut self.monitor
            && monitor.link == link
        {
            monitor.dropped(now, packet.flow);
        }
        packet.body.release(&mut self.ranges);
        if packet.is_outside() {
            self.lost_outside.push(packet.flow_id());
        }
        let offset = packet.body.offset();
        self.note(packet.flow, || Event::Dropped { link, offset, cause });
    }

    /// A transmitter has finished a packet.
    pub(crate) fn service_finished(&mut self, link: u32) {
        let now = self.engine.now();
        let (departure, wanted) = self.links[link as usize].finish_service(now);
        let Some(departure) = departure else { return };
        self.schedule(link, wanted);
        // A trace reads each departing packet, which has left the cache while it waited. A prefetch has one packet's
        // time to bring the next one back.
        if self.is_traced()
            && let Some(next) = self.links[link as usize].in_service()
        {
            self.packets.prefetch(next);
        }
        let Departure { flow, size, waited, .. } = departure;
        // Only a mark is written back: reading the packet costs more than everything else here.
        if departure.ecn == EcnCodepoint::Ce {
            let before = std::mem::replace(&mut self.packets.get(departure.handle).ecn, EcnCodepoint::Ce);
            if before != EcnCodepoint::Ce
                && let Some(monitor) = &mut self.monitor
                && monitor.link == link
            {
                monitor.marked(flow);
            }
        }
        if let Some(monitor) = &mut self.monitor
            && monitor.link == link
        {
            monitor.departed(Departed { time: now, flow, size, delay: waited });
            if self.is_traced() {
                let offset = self.packets.get(departure.handle).body.offset();
                self.note(flow, || Event::Departed { link, offset, size, delay_nanos: waited.as_nanos() });
            }
        }
        if departure.lost {
            self.lose(departure.handle, link, Loss::Wire);
        }
        self.after_queue_change(link, flow);
    }

    /// A packet arrives at the far end of a link. Returns it if that is an end host.
    #[inline]
    pub(crate) fn arrived(&mut self, link: u32) -> Option<Packet> {
        let (id, next) = self.links[link as usize].arrive();
        if let Some(approaching) = self.links[link as usize].approaching() {
            self.packets.prefetch(approaching);
        }
        if let Some(time) = next {
            self.engine.schedule(self.link_slots[link as usize].1, time);
        }
        self.forward(id?)
    }

    /// The links that a flow's packets cross in a direction.
    pub fn links_of(&self, flow: u32, direction: Direction) -> &[u32] {
        self.routes.links(flow, direction)
    }
}
