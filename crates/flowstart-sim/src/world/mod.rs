//! A whole simulation: links, flows, processes that create flows, and the clock.

use std::any::Any;

use flowstart_core::controller::Controller;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::engine::Slot;
use crate::flow::ends::{Ends, Place, Silent, Timer};
use crate::flow::model::{ModelEnds, Slots};
use crate::flow::{EndsState, FlowConfig};
use crate::link::LinkConfig;
use crate::network::{Network, Owner, Route};
use crate::observe::record::FlowRecord;
use crate::packet::{FlowId, OUTSIDE, Packet};
use crate::topology::Links;
use crate::traffic::Pattern;
use crate::traffic::arrivals::Arrivals;

pub mod page;
pub mod proxy;
pub mod requests;
pub mod web;

use page::RunningPage;
use proxy::Side;
use requests::{RequestSender, Requests};
use web::{Role, RunningWeb};

/// A flow.
#[derive(Clone, Debug)]
struct Flow {
    ends: EndsState,
    /// The use of its place.
    generation: u32,
    /// Whether a new flow may replace it when it is complete.
    recyclable: bool,
    /// Its role in a web session.
    role: Option<Role>,
    /// The page whose objects it carries.
    page: Option<u32>,
    /// Its side of a proxy.
    side: Option<Side>,
}

impl Flow {
    fn new(ends: EndsState, generation: u32) -> Self {
        Self { ends, generation, recyclable: false, role: None, page: None, side: None }
    }
}

/// A process that creates flows from a template.
#[derive(Clone, Debug)]
struct ArrivalProcess {
    arrivals: Arrivals,
    template: FlowConfig,
    next_size: Bytes,
    slot: Slot,
}

/// Why a run did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The run reached the limit of simulated time.
    TimeLimit,
    /// No events are left.
    Idle,
}

/// A simulation.
#[derive(Clone, Debug)]
pub struct World {
    /// Links, packets and the clock.
    pub network: Network,
    flows: Vec<Flow>,
    processes: Vec<ArrivalProcess>,
    requests: Vec<RequestSender>,
    /// Places of complete flows that arrivals may use again.
    free: Vec<u32>,
    seed: u64,
    /// Records of flows whose places were reused.
    finished: Vec<FlowRecord>,
    /// Web sessions, if there are any.
    web: Option<Box<RunningWeb>>,
    /// Pages over several connections.
    pages: Vec<RunningPage>,
}

impl World {
    /// A world without links and flows. All its random processes derive from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            network: Network::new(seed),
            flows: Vec::new(),
            processes: Vec::new(),
            requests: Vec::new(),
            free: Vec::new(),
            seed,
            finished: Vec::new(),
            web: None,
            pages: Vec::new(),
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.network.now()
    }

    /// Adds a link and returns its number for routes.
    pub fn add_link(&mut self, config: &LinkConfig) -> u32 {
        self.network.add_link(config)
    }

    /// Adds a flow and returns its number for records and traces.
    ///
    /// # Panics
    ///
    /// If [`FlowConfig::validate`] refuses it.
    pub fn add_flow(&mut self, config: FlowConfig) -> u32 {
        let controller = config.controller();
        self.add_flow_with(config, controller)
    }

    /// Adds a flow with the caller's controller, for schemes outside the registry.
    pub fn add_flow_with(&mut self, config: FlowConfig, controller: Controller) -> u32 {
        let index = self.flows.len() as u32;
        let [sender, receiver, application] = [Owner::Sender(index), Owner::Receiver(index), Owner::Application(index)]
            .map(|owner| self.network.engine.slot(owner));
        let slots = Slots { sender, receiver, application };
        let flow = self.new_flow(FlowId { index, generation: 0 }, slots, config, controller);
        self.flows.push(flow);
        index
    }

    /// Adds a flow with external ends, which `make` connects to it. Its first timer fires at `start`.
    pub fn add_ends(&mut self, route: &Route, start: Timestamp, make: impl FnOnce(Place) -> Box<dyn Ends>) -> u32 {
        let index = self.flows.len() as u32;
        let place = Place::new(index, self.network.engine.slot(Owner::Sender(index)));
        self.add_silent(route);
        place.set_timer(&mut self.network, start);
        self.flows[index as usize].ends = EndsState::Other(make(place));
        index
    }

    /// A place in the numbering of flows.
    fn add_silent(&mut self, route: &Route) -> u32 {
        let index = self.flows.len() as u32;
        self.network.set_route(index, route);
        self.flows.push(Flow::new(EndsState::Other(Box::new(Silent)), 0));
        index
    }

    /// The ends of a flow, if they are of this type.
    pub fn ends_mut<T: Ends>(&mut self, flow: u32) -> Option<&mut T> {
        let EndsState::Other(ends) = &mut self.flows.get_mut(flow as usize)?.ends else { return None };
        let any: &mut dyn Any = ends.as_mut();
        any.downcast_mut()
    }

    /// Lets `arrivals` create flows like `template`. Their records are in [`World::finished_flows`] and
    /// [`World::record`].
    pub fn add_arrivals(&mut self, mut arrivals: Arrivals, template: FlowConfig) {
        let slot = self.network.engine.slot(Owner::Arrivals(self.processes.len() as u32));
        if let Some((time, size)) = arrivals.next(template.start.max(self.now())) {
            self.network.engine.schedule(slot, time);
            self.processes.push(ArrivalProcess { arrivals, template, next_size: size, slot });
        }
    }

    /// Adds a source that sends Quick-Start requests without connections over a route from `start` on. Returns its
    /// number for records and traces.
    pub fn add_requests(&mut self, requests: Requests, route: &Route, start: Timestamp) -> u32 {
        let flow = self.add_silent(route);
        let slot = self.network.engine.slot(Owner::Requests(self.requests.len() as u32));
        self.network.engine.schedule(slot, start);
        self.requests.push(RequestSender::new(requests, flow, slot, start, self.seed));
        flow
    }

    fn new_flow(&mut self, id: FlowId, slots: Slots, config: FlowConfig, controller: Controller) -> Flow {
        self.network.set_route(id.index, &config.route);
        let ends = ModelEnds::new(&mut self.network, id, slots, config, controller, self.seed);
        Flow::new(EndsState::Model(ends), id.generation)
    }

    /// The record of a flow so far.
    pub fn record(&self, flow: u32) -> &FlowRecord {
        &self.network.records[flow as usize]
    }

    /// Records of flows from arrivals whose places were reused.
    pub fn finished_flows(&self) -> &[FlowRecord] {
        &self.finished
    }

    /// Number of places for flows: flows that were added, and flows of arrivals that run at the same time.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Bytes in flight, congestion window and smoothed RTT of a model flow now.
    pub fn window(&self, flow: u32) -> Option<(Bytes, Bytes, Duration)> {
        let sender = self.model(flow)?.sender()?;
        Some((sender.in_flight, sender.controller.cwnd(), sender.rtt.smoothed()))
    }

    /// Whether a model flow is in slow start now: its window is below ssthresh (RFC 5681, section 3.1).
    pub fn is_in_slow_start(&self, flow: u32) -> bool {
        let sender = self.model(flow).and_then(ModelEnds::sender);
        sender.is_some_and(|sender| sender.controller.cwnd() < sender.controller.ssthresh())
    }

    fn model(&self, flow: u32) -> Option<&ModelEnds> {
        self.flows.get(flow as usize)?.ends.model()
    }

    /// A mobility event: the flow's packets take `route` from now on, and its sender starts again. A packet in flight
    /// continues with the next hop of the new route.
    pub fn change_path(&mut self, flow: u32, route: &Route) {
        self.network.change_route(flow, route);
        if let Some(flow) = self.flows.get_mut(flow as usize) {
            flow.ends.as_dyn().on_path_change(&mut self.network);
        }
        self.tell_losses();
    }

    /// Sets the time when a thinking flow answers, regardless of its think time. A flow without congestion control
    /// sends from then on. If `at` is [`Timestamp::NEVER`], it is silent until the next call; it needs no handshake, so
    /// it may never start.
    pub fn answer_at(&mut self, flow: u32, at: Timestamp) {
        if let Some(ends) = self.flows.get_mut(flow as usize).and_then(|flow| flow.ends.model_mut()) {
            ends.answer_at(&mut self.network, at);
        }
    }

    /// Runs all events until `time`; the clock then shows `time`.
    pub fn run_until(&mut self, time: Timestamp) {
        while let Some(owner) = self.network.engine.next(time) {
            self.dispatch(owner);
        }
        self.network.engine.advance(time);
    }

    /// Runs until `flow` is complete or the observer is finished. Fails if `limit` passes first, or the flow's
    /// connection is lost.
    pub fn run_flow(&mut self, flow: u32, limit: Timestamp) -> Result<(), Stopped> {
        let ended = |world: &Self| world.record(flow).completed.is_some() || world.network.is_observation_done();
        self.run_while(limit, |world| !ended(world) && !world.has_failed(flow))?;
        if ended(self) { Ok(()) } else { Err(Stopped::Idle) }
    }

    /// Whether the connection of a flow is lost.
    fn has_failed(&self, flow: u32) -> bool {
        matches!(&self.flows[flow as usize].ends, EndsState::Other(ends) if ends.has_failed())
    }

    /// Runs while `condition` holds, and checks it after every event. Fails if `limit` passes first.
    pub fn run_while(&mut self, limit: Timestamp, condition: impl Fn(&Self) -> bool) -> Result<(), Stopped> {
        while condition(self) {
            let Some(owner) = self.network.engine.next(limit) else {
                let idle = self.network.engine.pending() == 0;
                return Err(if idle { Stopped::Idle } else { Stopped::TimeLimit });
            };
            self.dispatch(owner);
        }
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, owner: Owner) {
        match owner {
            Owner::Service(link) => self.network.service_finished(link),
            Owner::Arrival(link) => {
                if let Some(packet) = self.network.arrived(link) {
                    self.deliver(&packet);
                }
            }
            Owner::Queue(link) => self.network.queue_timer(link),
            Owner::Options(link) => self.network.options_processed(link),
            Owner::Sender(flow) => self.on_timer(flow, Timer::Sender),
            Owner::Receiver(flow) => self.on_timer(flow, Timer::Receiver),
            Owner::Application(flow) => self.on_timer(flow, Timer::Application),
            Owner::Arrivals(process) => self.next_arrival(process as usize),
            Owner::Session(session) => self.on_session(session),
            Owner::Requests(index) => self.requests[index as usize].on_timer(&mut self.network),
        }
        self.tell_losses();
    }

    #[inline]
    fn on_timer(&mut self, flow: u32, timer: Timer) {
        self.flows[flow as usize].ends.as_dyn().on_timer(&mut self.network, timer);
    }

    /// Reports lost datagrams to external ends.
    #[inline]
    fn tell_losses(&mut self) {
        while let Some(FlowId { index, generation }) = self.network.lost_outside.pop() {
            self.flows[index as usize].ends.as_dyn().on_lost(generation & !OUTSIDE);
        }
    }

    /// A packet reached an end host.
    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        self.network.note_packet(packet, true);
        let signals = &mut self.network.signals;
        let signal = if signals.are_used() { signals.take_arrived() } else { None };
        let flow = &mut self.flows[packet.flow as usize];
        if flow.generation != packet.generation && !packet.is_outside() {
            packet.body.release(&mut self.network.ranges);
            return;
        }
        flow.ends.as_dyn().on_packet(&mut self.network, packet, signal);
        if let Some(page) = flow.page {
            self.on_page_packet(page, packet.flow);
            return;
        }
        if let Some(side) = flow.side {
            self.pass_on(packet.flow, side);
            return;
        }
        if flow.recyclable && self.network.records[packet.flow as usize].completed.is_some() {
            flow.recyclable = false;
            let role = flow.role;
            self.free.push(packet.flow);
            if let Some(role) = role {
                self.on_web_completion(role);
            }
        }
    }

    /// An arrival process creates its next flow.
    fn next_arrival(&mut self, process: usize) {
        let now = self.now();
        let ArrivalProcess { arrivals, template, next_size, slot } = &mut self.processes[process];
        let config = FlowConfig { pattern: Pattern::Transfer(*next_size), start: now, ..template.clone() };
        if let Some((time, size)) = arrivals.next(now) {
            *next_size = size;
            self.network.engine.schedule(*slot, time);
        }
        self.create_flow(config, None);
    }

    /// A new flow in the place of a complete one, if there is any.
    fn create_flow(&mut self, config: FlowConfig, role: Option<Role>) {
        let controller = config.controller();
        let reused = self.free.pop().and_then(|index| Some((index, self.model(index)?.slots())));
        let index = match reused {
            Some((index, slots)) => {
                let record = std::mem::take(&mut self.network.records[index as usize]);
                self.keep_record(index, record);
                slots.cancel(&mut self.network);
                let id = FlowId { index, generation: self.flows[index as usize].generation + 1 };
                self.flows[index as usize] = self.new_flow(id, slots, config, controller);
                index
            }
            None => self.add_flow_with(config, controller),
        };
        let flow = &mut self.flows[index as usize];
        (flow.recyclable, flow.role) = (true, role);
    }

    /// Keeps the record of the flow in a place before another flow takes the place.
    fn keep_record(&mut self, index: u32, record: FlowRecord) {
        match (self.flows[index as usize].role, &mut self.web) {
            (Some(role), Some(web)) => web.keep(role, record),
            _ => self.finished.push(record),
        }
    }
}

impl Links for World {
    fn add_link(&mut self, config: &LinkConfig) -> u32 {
        Self::add_link(self, config)
    }
}
