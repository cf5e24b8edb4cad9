//! Model ends: a handshake, a sender, a receiver and an application.

use std::sync::Arc;

use flowstart_core::controller::Controller;
use flowstart_core::quick_start::host::Known;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::rng::Substream;
use flowstart_core::sources::{Sources, Statement, Verdict, name};
use flowstart_core::startup::quick_start::OptionRoom;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_core::xcp::wire::Format;

use crate::engine::Slot;
use crate::flow::FlowConfig;
use crate::flow::ends::{Ends, Timer};
use crate::network::Network;
use crate::packet::{Body, FlowId, NO_OPTION, Packet};
use crate::path::signals::PathSignal;
use crate::traffic::Source;
use crate::transport::handshake::{Handshake, Progress, TrainReport};
use crate::transport::profile::Profile;
use crate::transport::quick_start::{QuickStart, answer_to};
use crate::transport::receiver::{Arrival, Receiver};
use crate::transport::sender::SenderBase;

mod objects;
mod relay;
mod requests;
mod sender;
mod think;
mod video;

use requests::Asked;
use sender::SenderState;
use think::{Answer, Thinking};
use video::Viewer;

/// The model's ends of a flow.
#[derive(Clone, Debug)]
pub(crate) struct ModelEnds {
    id: FlowId,
    profile: Arc<Profile>,
    handshake: Handshake,
    sender: SenderState,
    receiver: Receiver,
    source: Source,
    /// What is known of its path, and by whom.
    sources: Sources,
    /// What its client reports of the handshake's train.
    train: TrainReport,
    start: Timestamp,
    started: bool,
    answer: Answer,
    thinking: Option<Thinking>,
    /// The receiver's request that has no answer yet.
    asked: Option<Asked>,
    /// The player of an adaptive video.
    viewer: Option<Box<Viewer>>,
    slots: Slots,
}

/// The timers of model ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    pub(crate) sender: Slot,
    pub(crate) receiver: Slot,
    pub(crate) application: Slot,
}

impl Slots {
    /// Disarms them.
    pub(crate) fn cancel(self, network: &mut Network) {
        [self.sender, self.receiver, self.application].iter().for_each(|slot| network.engine.cancel(*slot));
    }
}

impl ModelEnds {
    /// Ends that follow `config` and open at its start time. `seed` is that of the run.
    pub(crate) fn new(
        network: &mut Network,
        id: FlowId,
        slots: Slots,
        config: FlowConfig,
        controller: Controller,
        seed: u64,
    ) -> Self {
        let FlowConfig { mut profile, startup, pattern, sources, train, start, think_time, ensemble, .. } = config;
        let stream = id.number();
        let viewer = Viewer::of(&pattern);
        let mut source = Source::new(pattern, seed, stream);
        let viewer = viewer.map(|mut viewer| {
            source.ask(viewer.player.request(start));
            Box::new(viewer)
        });
        let request = startup.request();
        if request.is_some_and(|request| request.room == OptionRoom::Connection) {
            let mut smaller = Profile::clone(&profile);
            smaller.payload = smaller.payload.saturating_sub(LENGTH as u32).max(1);
            profile = Arc::new(smaller);
        }
        let mut handshake = Handshake::new(id, profile.clone());
        if let Some(config) = request {
            let known = Known { rtt: sources.knowledge().min_rtt(), object: source.first_object(), ..Known::default() };
            let segment = Bytes::new(u64::from(profile.segment));
            let initial_window = segment * config.iw.map_or(profile.initial_window, u64::from);
            let rng = Substream::new(seed, "quick-start", stream);
            handshake.quick_start = Some(Box::new(QuickStart::new(config, known, segment, initial_window, rng)));
        }
        let mut base = SenderBase::new(id, profile.clone(), controller);
        base.share_window(ensemble);
        network.engine.schedule(slots.application, start);
        Self {
            id,
            handshake,
            sender: SenderState::new(base, &source, seed),
            receiver: Receiver::new(id, profile.clone()),
            profile,
            source,
            sources,
            train,
            start,
            started: false,
            answer: Answer::After(think_time),
            thinking: None,
            asked: None,
            viewer,
            slots,
        }
    }

    /// Its timers, for the flow that replaces it.
    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    /// The common part of senders with congestion control, if there is one.
    pub(crate) fn sender(&self) -> Option<&SenderBase> {
        self.sender.as_ref().base()
    }

    /// Handles a packet's signal from the path, before the packet itself.
    fn on_path_signal(&mut self, network: &mut Network, signal: PathSignal) {
        let launched = self.handshake.is_launched();
        let Some(base) = self.sender.as_dyn().base_mut() else { return };
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
            PathSignal::SconeReport(signal) => match base.on_report(network, signal) {
                Some(rate) => self.sources.believe(name::SCONE, Statement::Advised(rate)),
                None => {
                    self.sources.knowledge_mut().advised_rate = None;
                    self.sources.lack(name::SCONE, Verdict::Missing, "");
                }
            },
        }
    }

    /// A part of the handshake has arrived.
    fn on_handshake(&mut self, network: &mut Network, packet: &Packet) {
        let Body::Handshake { flight, part, attempt, quick_start } = packet.body else { return };
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

    /// Data has arrived.
    fn on_data(&mut self, network: &mut Network, arrival: &Arrival) {
        if network.record(self.id.index).delivered == 0 {
            self.handshake.on_data();
            self.schedule_application(network);
        }
        let Arrival { offset, len, .. } = *arrival;
        match &self.sender {
            SenderState::Constant(constant) => return constant.on_arrival(network, offset, len),
            SenderState::Call(call) => return call.on_arrival(network, offset, len),
            SenderState::Tcp(_) | SenderState::Quic(_) => {}
        }
        if self.profile.ack.after_slow_start && self.sender().is_some_and(SenderBase::is_in_slow_start) {
            self.receiver.acknowledge_next();
        }
        self.receiver.on_data(network, arrival);
        if self.asked.is_some() {
            self.take_answer(offset + u64::from(len));
        }
        if let Some((size, _)) = self.source.objects() {
            self.take_objects(network, size, offset, offset + u64::from(len));
        } else if self.viewer.is_some() {
            self.take_chunk(network);
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

    fn launch(&mut self, network: &mut Network, rtt: Option<Duration>, unvalidated: Option<u64>) {
        if let Some(rate) = self.handshake.train_rate(self.train) {
            self.sources.believe(name::HANDSHAKE_TRAIN, Statement::Train(rate));
        }
        if let Some(quick_start) = &mut self.handshake.quick_start {
            match quick_start.approved() {
                Some(rate) => self.sources.believe(name::QUICK_START, Statement::Approved(rate)),
                None => self.sources.lack(name::QUICK_START, Verdict::Missing, ""),
            }
            let record = network.record(self.id.index);
            (record.requested_rate, record.approved_rate) = (quick_start.requested(), quick_start.approved());
            self.handshake.send_report(network);
            self.keep_quick_start();
        }
        let now = network.now();
        self.source.start(now);
        self.source.write(now);
        self.expect_first_objects(network);
        // The next data of an endless application is unknown.
        let written = self.source.written();
        let is_known = self.source.knows_size() && self.source.relayed().is_none();
        let path = self.sources.knowledge_mut();
        path.handshake_rtt = rtt;
        path.receive_window = self.profile.announced_receive_window();
        path.bytes_waiting = is_known.then(|| self.profile.bytes_in_flight(written));
        self.sender.as_dyn().launch(network, &mut self.sources, unvalidated);
        self.pump(network);
    }

    /// The scheme's use of Quick-Start after the opening.
    fn keep_quick_start(&mut self) {
        let Some(base) = self.sender.as_dyn().base_mut() else { return };
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
        self.repeat_request(network);
        self.request_due_chunk(network);
        if self.handshake.is_launched() && self.thinking.is_none() {
            self.source.write(now);
            self.note_written(network);
            self.pump(network);
        }
        self.schedule_application(network);
    }

    fn schedule_application(&mut self, network: &mut Network) {
        let mut next = self.handshake.next_timer();
        if let Some(viewer) = &self.viewer {
            next = next.min(viewer.next_request);
        }
        if let Some(asked) = self.asked {
            next = next.min(asked.repeat_at);
        }
        if let Some(thinking) = self.thinking {
            next = next.min(thinking.until);
        } else if self.handshake.is_launched() {
            next = next.min(self.source.next_write());
        }
        network.engine.schedule(self.slots.application, next);
    }

    #[inline]
    fn schedule_receiver(&mut self, network: &mut Network) {
        let next = self.receiver.next_timer();
        // A timer that fires too early finds nothing to do and is armed again; moving it with every packet costs more.
        if next < network.engine.scheduled(self.slots.receiver) {
            network.engine.schedule(self.slots.receiver, next);
        }
    }

    /// Sends as much as it may, and arms the sender's timer.
    #[inline]
    fn pump(&mut self, network: &mut Network) {
        let sender = self.sender.as_dyn();
        sender.pump(network, &self.source);
        let next = sender.next_timer();
        if next < network.engine.scheduled(self.slots.sender) {
            network.engine.schedule(self.slots.sender, next);
        }
    }
}

impl Ends for ModelEnds {
    fn on_timer(&mut self, network: &mut Network, timer: Timer) {
        match timer {
            Timer::Sender => {
                self.sender.as_dyn().on_timer(network);
                self.pump(network);
            }
            Timer::Receiver => {
                self.receiver.on_timer(network);
                self.schedule_receiver(network);
            }
            Timer::Application => self.on_application(network),
        }
    }

    fn on_packet(&mut self, network: &mut Network, packet: &Packet, signal: Option<PathSignal>) {
        if let Some(signal) = signal {
            self.on_path_signal(network, signal);
        }
        match packet.body {
            Body::Handshake { .. } => self.on_handshake(network, packet),
            Body::Data { number, offset, len, least_unacknowledged, sent_at, quick_start } => {
                let answer = quick_start.map_or(NO_OPTION, |id| {
                    let answer = answer_to(network.ranges.option(id), packet.hop);
                    network.ranges.release_option(id);
                    answer
                });
                let ecn = packet.ecn;
                let arrival = Arrival { number, least_unacknowledged, offset, len, sent_at, ecn, answer };
                self.on_data(network, &arrival);
            }
            Body::Acknowledgement(ack) => {
                if ack.requests > 0 {
                    self.source.request(ack.requests + 1);
                    self.note_written(network);
                }
                self.sender.as_dyn().on_acknowledgement(network, &ack);
                self.pump(network);
            }
        }
    }

    fn on_path_change(&mut self, network: &mut Network) {
        // Advice is specific to a path.
        self.receiver.scone = self.receiver.scone.take().map(|_| Box::default());
        let sender = self.sender.as_dyn();
        let sent = sender.next_offset();
        let left = Bytes::new(self.source.written().saturating_sub(sent));
        let waiting = self.source.knows_size().then_some(left);
        if let Some(base) = sender.base_mut() {
            base.change_path(network, self.sources.knowledge(), waiting);
        }
        self.pump(network);
    }
}
