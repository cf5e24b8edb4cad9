//! A whole simulation: links, flows, processes that create flows, and the clock.

use std::collections::VecDeque;
use std::sync::Arc;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::Controller;
use flowstart_core::path::PathKnowledge;
use flowstart_core::quick_start::host::Known;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::registry::ConfigError;
use flowstart_core::rng::Substream;
use flowstart_core::startup::StartupConfig;
use flowstart_core::startup::quick_start::OptionRoom;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_core::xcp::wire::Format;

use crate::engine::Slot;
use crate::link::LinkConfig;
use crate::network::{Network, Owner, Route};
use crate::observe::record::{FlowRecord, ObjectTimes};
use crate::observe::trace::Event;
use crate::packet::{Body, Direction, FlowId, NO_OPTION, Packet};
use crate::path::signals::PathSignal;
use crate::topology::Links;
use crate::traffic::arrivals::Arrivals;
use crate::traffic::media::PacketTimes;
use crate::traffic::unresponsive::Gaps;
use crate::traffic::{Pattern, Source};
use crate::transport::handshake::{Handshake, Progress};
use crate::transport::policy::Protocol;
use crate::transport::profile::Profile;
use crate::transport::quic::QuicSender;
use crate::transport::quick_start::{QuickStart, answer_to};
use crate::transport::receiver::{Arrival, Receiver};
use crate::transport::sender::SenderBase;
use crate::transport::sender::transmission::Transmission;
use crate::transport::tcp::TcpSender;

pub mod external;
pub mod requests;
mod think;
mod web;

use external::ExternalEvent;
use requests::{RequestSender, Requests};
use think::Thinking;
pub use web::{Connection, Side, WebTraffic};
use web::{Role, RunningWeb};

/// Objects of a stream that a record has room for from the start.
const OBJECTS_EXPECTED: u32 = 4096;

/// What a flow is made of.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Transport.
    pub profile: Arc<Profile>,
    /// Startup scheme.
    pub startup: StartupConfig,
    /// Congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// Application.
    pub pattern: Pattern,
    /// Links that its packets cross.
    pub route: Route,
    /// What Sensing knows before the handshake.
    pub knowledge: PathKnowledge,
    /// When it starts.
    pub start: Timestamp,
    /// Time from the request to the data: the server thinks.
    pub think_time: Duration,
}

impl FlowConfig {
    /// A flow with the startup scheme and congestion avoidance of its profile, starting at the origin.
    pub fn new(profile: Arc<Profile>, pattern: Pattern, route: Route) -> Self {
        Self {
            startup: profile.startup.clone(),
            avoidance: profile.avoidance.clone(),
            profile,
            pattern,
            route,
            knowledge: PathKnowledge::default(),
            start: Timestamp::ZERO,
            think_time: Duration::ZERO,
        }
    }

    /// Refuses a profile, a scheme or a congestion avoidance that no controller can be made of. Whoever reads them from outside
    /// calls this, or its parts, before a world gets the flow.
    ///
    /// # Errors
    ///
    /// What [`ControllerConfig::validate`](flowstart_core::controller::ControllerConfig::validate) refuses.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.profile.controller(self.startup.clone(), self.avoidance.clone()).validate()
    }

    fn controller(&self) -> Controller {
        let config = self.profile.controller(self.startup.clone(), self.avoidance.clone());
        match Controller::new(config) {
            Ok(controller) => controller,
            Err(error) => panic!("a flow that was not validated: {error}"),
        }
    }
}

/// What sends the data.
#[derive(Clone, Debug)]
enum Sender {
    Tcp(Box<TcpSender>),
    Quic(Box<QuicSender>),
    /// Packets at a fixed interval or at intervals that are drawn, without congestion control.
    Constant {
        interval: Duration,
        drawn: Option<Box<Gaps>>,
        /// Bytes of a packet on the wire.
        packet: u32,
        payload: u32,
        next: Timestamp,
        offset: u64,
        /// Whether the times of packets are kept.
        media: bool,
    },
    /// Both ends are outside of the simulator.
    External,
}

/// A flow.
#[derive(Clone, Debug)]
struct Flow {
    id: FlowId,
    profile: Arc<Profile>,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    source: Source,
    knowledge: PathKnowledge,
    start: Timestamp,
    started: bool,
    think_time: Duration,
    thinking: Option<Thinking>,
    sender_slot: Slot,
    receiver_slot: Slot,
    application_slot: Slot,
    /// The flow may be replaced by a new one when it is complete.
    recyclable: bool,
    /// What it is to a web session.
    role: Option<Role>,
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
    /// The limit of simulated time passed.
    TimeLimit,
    /// Nothing is left to happen.
    Idle,
}

/// A simulation.
#[derive(Clone, Debug)]
pub struct World {
    /// Links, packets and the clock.
    pub network: Network,
    flows: Vec<Flow>,
    /// What happened to flows whose ends are outside, and was not told yet.
    external: VecDeque<ExternalEvent>,
    processes: Vec<ArrivalProcess>,
    requests: Vec<RequestSender>,
    /// Places of complete flows that arrivals may use again.
    free: Vec<u32>,
    seed: u64,
    /// Records of flows whose places were used again.
    finished: Vec<FlowRecord>,
    /// Web sessions, where there are any.
    web: Option<Box<RunningWeb>>,
}

impl World {
    /// A world without links and flows; all its random processes derive from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            network: Network::new(seed),
            flows: Vec::new(),
            external: VecDeque::new(),
            processes: Vec::new(),
            requests: Vec::new(),
            free: Vec::new(),
            seed,
            finished: Vec::new(),
            web: None,
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.network.now()
    }

    /// Adds a link; its number is what routes name.
    pub fn add_link(&mut self, config: &LinkConfig) -> u32 {
        self.network.add_link(config)
    }

    /// Adds a flow; its number names it in records and traces.
    ///
    /// # Panics
    ///
    /// When [`FlowConfig::validate`] refuses it.
    pub fn add_flow(&mut self, config: FlowConfig) -> u32 {
        let controller = config.controller();
        self.add_flow_with(config, controller)
    }

    /// Adds a flow with a controller of the caller, for schemes outside the registry.
    pub fn add_flow_with(&mut self, config: FlowConfig, controller: Controller) -> u32 {
        let index = self.flows.len() as u32;
        let slots = [Owner::Sender(index), Owner::Receiver(index), Owner::Application(index)]
            .map(|owner| self.network.engine.slot(owner));
        let flow = self.new_flow(FlowId { index, generation: 0 }, slots, config, controller);
        self.flows.push(flow);
        index
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

    /// Lets somebody send Quick-Start's requests over a route without connections, from `start` on; the number in records and traces.
    pub fn add_requests(&mut self, requests: Requests, profile: Arc<Profile>, route: &Route, start: Timestamp) -> u32 {
        let flow = self.add_placeholder(profile, route);
        let slot = self.network.engine.slot(Owner::Requests(self.requests.len() as u32));
        self.network.engine.schedule(slot, start);
        self.requests.push(RequestSender::new(requests, flow, slot, start, self.seed));
        flow
    }

    /// A place in the numbering of flows for one whose ends are outside.
    pub(crate) fn add_placeholder(&mut self, profile: Arc<Profile>, route: &Route) -> u32 {
        let index = self.flows.len() as u32;
        let slot = self.network.engine.slot(Owner::External(index));
        let id = FlowId { index, generation: 0 };
        self.network.set_route(index, route);
        self.flows.push(Flow {
            id,
            handshake: Handshake::new(id, profile.clone()),
            receiver: Receiver::new(id, profile.clone()),
            profile,
            sender: Sender::External,
            source: Source::new(Pattern::Bulk, self.seed, u64::from(index)),
            knowledge: PathKnowledge::default(),
            start: Timestamp::NEVER,
            started: true,
            think_time: Duration::ZERO,
            thinking: None,
            sender_slot: slot,
            receiver_slot: slot,
            application_slot: slot,
            recyclable: false,
            role: None,
        });
        index
    }

    /// The timer of an external flow.
    pub(crate) fn external_slot(&self, flow: u32) -> Slot {
        self.flows[flow as usize].application_slot
    }

    fn new_flow(&mut self, id: FlowId, slots: [Slot; 3], config: FlowConfig, controller: Controller) -> Flow {
        let FlowConfig { mut profile, startup, pattern, route, knowledge, start, think_time, .. } = config;
        self.network.set_route(id.index, &route);
        let stream = (u64::from(id.generation) << 32) | u64::from(id.index);
        let source = Source::new(pattern, self.seed, stream);
        let request = startup.request();
        if request.is_some_and(|request| request.room == OptionRoom::Connection) {
            let mut smaller = Profile::clone(&profile);
            smaller.payload = smaller.payload.saturating_sub(LENGTH as u32).max(1);
            profile = Arc::new(smaller);
        }
        let mut handshake = Handshake::new(id, profile.clone());
        if let Some(config) = request {
            let known = Known { rtt: knowledge.min_rtt(), object: source.total().map(Bytes::new), ..Known::default() };
            let segment = Bytes::new(u64::from(profile.segment));
            let initial_window = segment * config.iw.map_or(profile.initial_window, u64::from);
            let rng = Substream::new(self.seed, "quick-start", stream);
            handshake.quick_start = Some(Box::new(QuickStart::new(config, known, segment, initial_window, rng)));
        }
        let base = SenderBase::new(id, profile.clone(), controller);
        let sender = match (source.constant(), profile.protocol) {
            (Some((interval, packet)), _) => Sender::Constant {
                interval,
                drawn: match source.pattern() {
                    Pattern::Unresponsive(unresponsive) => Some(Box::new(Gaps::new(*unresponsive, self.seed, stream))),
                    _ => None,
                },
                packet,
                payload: packet.saturating_sub(profile.overhead).max(1),
                next: Timestamp::NEVER,
                offset: 0,
                media: matches!(source.pattern(), Pattern::Media(_)),
            },
            (None, Protocol::Tcp) => Sender::Tcp(Box::new(TcpSender::new(base))),
            (None, Protocol::Quic) => Sender::Quic(Box::new(QuicSender::new(base))),
        };
        let [sender_slot, receiver_slot, application_slot] = slots;
        self.network.engine.schedule(application_slot, start);
        Flow {
            id,
            handshake,
            receiver: Receiver::new(id, profile.clone()),
            profile,
            sender,
            source,
            knowledge,
            start,
            started: false,
            think_time,
            thinking: None,
            sender_slot,
            receiver_slot,
            application_slot,
            recyclable: false,
            role: None,
        }
    }

    /// What a flow did so far.
    pub fn record(&self, flow: u32) -> &FlowRecord {
        &self.network.records[flow as usize]
    }

    /// Records of flows that were created by arrivals and whose places were used again.
    pub fn finished_flows(&self) -> &[FlowRecord] {
        &self.finished
    }

    /// Number of places for flows: flows that were added, and flows of arrivals that run at the same time.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Bytes in flight, congestion window and smoothed RTT of a flow now.
    pub fn window(&self, flow: u32) -> Option<(Bytes, Bytes, Duration)> {
        let base = self.base(flow)?;
        Some((base.in_flight, base.controller.cwnd(), base.rtt.smoothed()))
    }

    /// Whether a flow is in slow start now: its window is below ssthresh (RFC 5681, section 3.1).
    pub fn is_in_slow_start(&self, flow: u32) -> bool {
        self.base(flow).is_some_and(|base| base.controller.cwnd() < base.controller.ssthresh())
    }

    fn base(&self, flow: u32) -> Option<&SenderBase> {
        match &self.flows.get(flow as usize)?.sender {
            Sender::Tcp(sender) => Some(&sender.base),
            Sender::Quic(sender) => Some(&sender.base),
            Sender::Constant { .. } | Sender::External => None,
        }
    }

    /// A mobility event: the flow's packets take `route` from now on, and its sender starts again. A packet under way goes
    /// on with the next hop of the new route.
    pub fn change_path(&mut self, flow: u32, route: &Route) {
        self.network.change_route(flow, route);
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        // Advice is for a path.
        flow.receiver.scone = flow.receiver.scone.take().map(|_| Box::default());
        let written = flow.source.total().map(|_| flow.source.written());
        let waiting = |sent: u64| written.map(|written| Bytes::new(written.saturating_sub(sent)));
        match &mut flow.sender {
            Sender::Tcp(sender) => {
                let waiting = waiting(sender.next_offset());
                sender.base.change_path(&mut self.network, &flow.knowledge, waiting);
            }
            Sender::Quic(sender) => {
                let waiting = waiting(sender.next_offset());
                sender.base.change_path(&mut self.network, &flow.knowledge, waiting);
            }
            Sender::Constant { .. } | Sender::External => {}
        }
        flow.pump(&mut self.network);
    }

    /// Runs everything that happens until `time`; the clock then stands at `time`.
    pub fn run_until(&mut self, time: Timestamp) {
        while let Some(owner) = self.network.engine.next(time) {
            self.dispatch(owner);
        }
        self.network.engine.advance(time);
    }

    /// Runs until `flow` is complete or who observes the world wants to hear no more; an error when `limit` passes
    /// first.
    pub fn run_flow(&mut self, flow: u32, limit: Timestamp) -> Result<(), Stopped> {
        self.run_while(limit, |world| world.record(flow).completed.is_none() && !world.network.is_observation_done())
    }

    /// Runs while `condition` holds, looking after every event; an error when `limit` passes first.
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
    pub(crate) fn dispatch(&mut self, owner: Owner) {
        match owner {
            Owner::Service(link) => self.network.service_finished(link),
            Owner::Arrival(link) => {
                if let Some(packet) = self.network.arrived(link) {
                    self.deliver(&packet);
                }
            }
            Owner::Queue(link) => self.network.queue_timer(link),
            Owner::Sender(index) => self.flows[index as usize].on_sender_timer(&mut self.network),
            Owner::Receiver(index) => self.flows[index as usize].on_receiver_timer(&mut self.network),
            Owner::Application(index) => self.flows[index as usize].on_application(&mut self.network),
            Owner::Arrivals(process) => self.next_arrival(process as usize),
            Owner::Session(session) => self.on_session(session),
            Owner::External(flow) => self.external.push_back(ExternalEvent::Timer { flow }),
            Owner::Requests(index) => self.requests[index as usize].on_timer(&mut self.network),
        }
    }

    /// A packet reached an end host.
    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        self.network.note_packet(packet, true);
        let signals = &mut self.network.signals;
        let signal = if signals.are_used() { signals.take_arrived() } else { None };
        let flow = &mut self.flows[packet.flow as usize];
        if flow.id.generation != packet.generation {
            if packet.is_outside() {
                return self.external_arrived(packet, signal);
            }
            packet.body.release(&mut self.network.ranges);
            return;
        }
        if let Some(signal) = signal {
            flow.on_path_signal(&mut self.network, signal);
        }
        flow.on_packet(&mut self.network, packet);
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
        let index = match self.free.pop() {
            Some(index) => {
                let record = std::mem::take(&mut self.network.records[index as usize]);
                self.keep_record(index, record);
                let old = &self.flows[index as usize];
                let slots = [old.sender_slot, old.receiver_slot, old.application_slot];
                slots.iter().for_each(|slot| self.network.engine.cancel(*slot));
                let id = FlowId { index, generation: old.id.generation + 1 };
                self.flows[index as usize] = self.new_flow(id, slots, config, controller);
                index
            }
            None => self.add_flow_with(config, controller),
        };
        let flow = &mut self.flows[index as usize];
        (flow.recyclable, flow.role) = (true, role);
    }

    /// Keeps what the flow in a place did before another takes it.
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

impl Flow {
    /// What a packet carries of the path, before the packet itself is looked at.
    fn on_path_signal(&mut self, network: &mut Network, signal: PathSignal) {
        let launched = self.handshake.is_launched();
        let base = match &mut self.sender {
            Sender::Tcp(sender) => &mut sender.base,
            Sender::Quic(sender) => &mut sender.base,
            Sender::Constant { .. } | Sender::External => return,
        };
        match signal {
            PathSignal::Scone(signal) => {
                if let Some(scone) = &mut self.receiver.scone {
                    scone.on_signal(network.now(), signal);
                    self.handshake.advised = scone.signal(network.now());
                }
            }
            PathSignal::Xcp(header) if header.format == Format::Standard => {
                self.receiver.feedback.get_or_insert_default().on_header(&header);
            }
            PathSignal::Xcp(header) => base.on_feedback(network, header.reverse_feedback),
            PathSignal::SconeReport(signal) if launched => base.on_late_report(network, signal),
            PathSignal::SconeReport(signal) => self.knowledge.advised_rate = base.on_report(network, signal),
        }
    }

    fn on_packet(&mut self, network: &mut Network, packet: &Packet) {
        match packet.body {
            Body::Handshake { flight, part, attempt, quick_start } => {
                if let (Some(exchange), true) = (&mut self.handshake.quick_start, quick_start != NO_OPTION) {
                    exchange.on_option(packet.direction, &quick_start, packet.hop);
                }
                if let Some(sample) = self.handshake.receiver_rtt(network.now(), flight, attempt) {
                    self.receiver.take_rtt(network.now(), sample);
                }
                let progress = self.handshake.on_packet(network, flight, part, attempt);
                if let Progress::Launch { rtt, unvalidated } = progress {
                    self.think(network, rtt, unvalidated);
                }
                self.schedule_application(network);
            }
            Body::Data { number, offset, len, least_unacknowledged, sent_at, quick_start } => {
                let had = network.record(self.id.index).delivered;
                let answer = quick_start.map_or(NO_OPTION, |id| {
                    let answer = answer_to(network.ranges.option(id), packet.hop);
                    network.ranges.release_option(id);
                    answer
                });
                let arrival = Arrival { number, least_unacknowledged, offset, len, sent_at, ecn: packet.ecn, answer };
                if had == 0 {
                    self.handshake.on_data();
                    self.schedule_application(network);
                }
                if let Sender::Constant { payload, media, .. } = self.sender {
                    let now = network.now();
                    let record = network.record(self.id.index);
                    record.delivered += u64::from(len);
                    if media && let Some(packet) = record.media.get_mut((offset / u64::from(payload)) as usize) {
                        packet.arrived = Some(now);
                    }
                    return;
                }
                self.receiver.on_data(network, &arrival);
                if let Some((size, _)) = self.source.objects() {
                    self.take_objects(network, size, offset, offset + u64::from(len));
                }
                if let Some(total) = self.source.total() {
                    let now = network.now();
                    let record = network.record(self.id.index);
                    if record.delivered >= total && record.completed.is_none() {
                        record.completed = Some(now);
                    }
                }
                self.schedule_receiver(network);
            }
            Body::Acknowledgement(ack) => {
                if ack.requests > 0 {
                    self.source.request(ack.requests + 1);
                    self.note_written(network);
                }
                match &mut self.sender {
                    Sender::Tcp(sender) => sender.on_acknowledgement(network, &ack),
                    Sender::Quic(sender) => sender.on_acknowledgement(network, &ack),
                    Sender::Constant { .. } | Sender::External => {}
                }
                self.pump(network);
            }
        }
    }

    fn launch(&mut self, network: &mut Network, rtt: Option<Duration>, unvalidated: Option<u64>) {
        self.knowledge.handshake_rtt = rtt;
        if let Some(quick_start) = &mut self.handshake.quick_start {
            self.knowledge.approved_rate = quick_start.approved();
            let record = network.record(self.id.index);
            (record.requested_rate, record.approved_rate) = (quick_start.requested(), quick_start.approved());
            self.handshake.send_report(network);
            self.keep_quick_start();
        }
        self.knowledge.receive_window = self.profile.announced_receive_window();
        let now = network.now();
        self.source.start(now);
        self.source.write(now);
        if let Some((_, count)) = self.source.objects() {
            network.record(self.id.index).objects.reserve(count.min(OBJECTS_EXPECTED) as usize);
        }
        self.note_written(network);
        if let Some((objects, _)) = self.source.waves() {
            let requested = network.record(self.id.index).request_sent.unwrap_or(now);
            self.expect_objects(network, objects, requested);
        }
        // What an application without end writes next is not known.
        let written = self.source.written();
        self.knowledge.bytes_waiting = self.source.total().map(|_| self.profile.bytes_in_flight(written));
        match &mut self.sender {
            Sender::Tcp(sender) => sender.base.launch(network, &self.knowledge),
            Sender::Quic(sender) => {
                sender.base.unvalidated = unvalidated;
                sender.base.launch(network, &self.knowledge);
            }
            Sender::Constant { next, .. } => *next = now,
            Sender::External => {}
        }
        self.pump(network);
    }

    /// What the scheme wants of Quick-Start beyond the opening.
    fn keep_quick_start(&mut self) {
        let base = match &mut self.sender {
            Sender::Tcp(sender) => &mut sender.base,
            Sender::Quic(sender) => &mut sender.base,
            Sender::Constant { .. } | Sender::External => return,
        };
        let Some(quick_start) = &self.handshake.quick_start else { return };
        let config = *quick_start.config();
        base.set_tick(config.granularity);
        if config.asks_in_connection()
            && let Some(quick_start) = self.handshake.quick_start.take()
        {
            base.keep_quick_start(quick_start);
        }
    }

    fn on_application(&mut self, network: &mut Network) {
        let now = network.now();
        if !self.started {
            if now < self.start {
                return;
            }
            self.started = true;
            self.handshake.open(network);
        } else if self.handshake.next_timer() <= now
            && let Progress::Launch { rtt, unvalidated } = self.handshake.on_timer(network)
        {
            self.think(network, rtt, unvalidated);
        }
        self.stop_thinking(network);
        if self.handshake.is_launched() && self.thinking.is_none() {
            self.source.write(now);
            self.note_written(network);
            self.pump(network);
        }
        self.schedule_application(network);
    }

    /// Notes the chunks that were written since the last time, and tells a trace where the stream ends.
    fn note_written(&mut self, network: &mut Network) {
        let Some((size, _)) = self.source.objects() else { return };
        let written = self.source.written();
        if self.source.waves().is_none() {
            let known = network.record(self.id.index).objects.len() as u64;
            self.expect_objects(network, (written / size - known) as u32, network.now());
        }
        network.note(self.id.index, || Event::Written { end: written });
    }

    fn expect_objects(&mut self, network: &mut Network, count: u32, requested: Timestamp) {
        let objects = &mut network.record(self.id.index).objects;
        objects.extend((0..count).map(|_| ObjectTimes { requested, arrived: None }));
    }

    /// Notes which objects are complete now that `[start, end)` has arrived, and requests the next wave of a page.
    fn take_objects(&mut self, network: &mut Network, size: u64, start: u64, end: u64) {
        let now = network.now();
        let objects = &mut network.record(self.id.index).objects;
        // What arrives in order may be the first of much that is already there.
        let end = end.max(self.receiver.contiguous());
        for place in start / size..end.div_ceil(size) {
            let Some(object) = objects.get_mut(place as usize) else { break };
            if object.arrived.is_none() && self.receiver.has(place * size, (place + 1) * size) {
                object.arrived = Some(now);
            }
        }
        let Some((per_wave, waves)) = self.source.waves() else { return };
        let requested = objects.len() as u32 / per_wave;
        let newest = objects[((requested - 1) * per_wave) as usize];
        if requested < waves && newest.arrived.is_some() {
            self.expect_objects(network, per_wave, now);
            self.receiver.request(network);
        }
    }

    fn schedule_application(&mut self, network: &mut Network) {
        let mut next = self.handshake.next_timer();
        if let Some(thinking) = self.thinking {
            next = next.min(thinking.until);
        } else if self.handshake.is_launched() {
            next = next.min(self.source.next_write());
        }
        network.engine.schedule(self.application_slot, next);
    }

    fn on_sender_timer(&mut self, network: &mut Network) {
        match &mut self.sender {
            Sender::Tcp(sender) => sender.on_timer(network),
            Sender::Quic(sender) => sender.on_timer(network),
            Sender::Constant { .. } | Sender::External => {}
        }
        self.pump(network);
    }

    fn on_receiver_timer(&mut self, network: &mut Network) {
        self.receiver.on_timer(network);
        self.schedule_receiver(network);
    }

    #[inline]
    fn schedule_receiver(&mut self, network: &mut Network) {
        let next = self.receiver.next_timer();
        // A timer that is armed too early finds nothing to do and is armed again; moving it with every packet costs more.
        if next < network.engine.scheduled(self.receiver_slot) {
            network.engine.schedule(self.receiver_slot, next);
        }
    }

    /// Sends what may be sent, and arms the sender's timer.
    #[inline]
    fn pump(&mut self, network: &mut Network) {
        let next = match &mut self.sender {
            Sender::Tcp(sender) => {
                sender.pump(network, &self.source);
                sender.next_timer()
            }
            Sender::Quic(sender) => {
                sender.pump(network, &self.source);
                sender.next_timer()
            }
            Sender::Constant { interval, drawn, packet, payload, next, offset, media } => {
                let now = network.now();
                while *next <= now {
                    let body = Body::Data {
                        number: 0,
                        offset: *offset,
                        len: *payload,
                        least_unacknowledged: 0,
                        sent_at: now,
                        quick_start: None,
                    };
                    *offset += u64::from(*payload);
                    *next += drawn.as_mut().map_or(*interval, |gaps| gaps.next_gap());
                    let record = network.record(self.id.index);
                    record.data_packets += 1;
                    if *media {
                        record.media.push(PacketTimes { sent: now, arrived: None });
                    }
                    let FlowId { index, generation } = self.id;
                    network.transmit(index, generation, Direction::Forward, *packet, Default::default(), body, None);
                }
                *next
            }
            Sender::External => Timestamp::NEVER,
        };
        if next < network.engine.scheduled(self.sender_slot) {
            network.engine.schedule(self.sender_slot, next);
        }
    }
}
