//! The common part of the TCP and the QUIC sender: the controller, RTT estimation, pacing and bookkeeping.

use std::sync::Arc;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::controller::Controller;
use flowstart_core::event::{Ack, Decision, Position, Sent};
use flowstart_core::needs::Needs;
use flowstart_core::pacer::Pacer;
use flowstart_core::path::PathKnowledge;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::sources::{Sources, Statement, Verdict, name};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::xcp::host::request;

use crate::network::Network;
use crate::observe::record::StartupExit;
use crate::observe::trace::Event;
use crate::packet::{Acknowledgement, Body, Direction, FlowId, QuickStartOption};
use crate::path::signals::{CONGESTION_HEADER, PathSignal};
use crate::traffic::Source;
use crate::transport::policy::{IgnoreReceiveWindow, WindowTest};
use crate::transport::profile::Profile;
use crate::transport::quick_start::QuickStart;
use crate::transport::sampling::Sampling;
use crate::transport::scone::{BEFORE_SHORT_HEADER, SconeSender};

mod resumption;
mod sharing;
pub mod transmission;

use resumption::Resumption;
use sharing::Sharing;

/// A piece of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// A QUIC packet's number, and the oldest that is in flight with it. TCP has neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketNumber {
    /// Number.
    pub number: u64,
    /// Oldest packet in flight.
    pub least_unacknowledged: u64,
}

/// Whether a packet may leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Immediately.
    Now,
    /// The window is full.
    Window,
    /// Not before this time.
    Paced(Timestamp),
}

/// A flow's interface to the sender of its data.
pub trait Sender {
    /// The common part of senders with congestion control; `None` without congestion control.
    fn base(&self) -> Option<&SenderBase>;

    /// The common part, mutable.
    fn base_mut(&mut self) -> Option<&mut SenderBase>;

    /// The handshake is over: data may leave. `unvalidated` limits the bytes before the client's address is validated;
    /// `None` if it is validated.
    fn launch(&mut self, network: &mut Network, sources: &mut Sources, unvalidated: Option<u64>);

    /// An acknowledgement arrived.
    fn on_acknowledgement(&mut self, network: &mut Network, ack: &Acknowledgement);

    /// The sender's timer fired.
    fn on_timer(&mut self, network: &mut Network);

    /// Sends as much as it may.
    fn pump(&mut self, network: &mut Network, source: &Source);

    /// The time at which [`Sender::on_timer`] must be called.
    fn next_timer(&mut self) -> Timestamp;

    /// First byte that was never sent.
    fn next_offset(&self) -> u64;
}

/// The common part of a sender.
#[derive(Clone, Debug)]
pub struct SenderBase {
    /// The flow.
    pub flow: FlowId,
    /// Its policies.
    pub profile: Arc<Profile>,
    /// Congestion control.
    pub controller: Controller,
    /// RTT estimation.
    pub rtt: RttEstimator,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// First byte that flow control forbids.
    pub limit: u64,
    /// Whether the sender ran out of data, or flow control stopped it, since it last filled the window.
    pub app_limited: bool,
    /// CE marks echoed so far.
    pub ce_count: u32,
    /// Quick-Start in mid-connection, if the scheme uses it.
    quick_start: Option<Box<QuickStart>>,
    /// Bytes declared lost but not yet reported to the controller.
    newly_lost: Bytes,
    /// Bytes that may still be sent to an address that is not validated; `None` if it is validated.
    pub unvalidated: Option<u64>,
    /// Delivery rate samples, if the controller needs them.
    pub sampling: Option<Box<Sampling>>,
    /// State for sending after idle time.
    resumption: Resumption,
    /// RTT samples of packets that were sent before this time are ignored: they took another path.
    path_since: Timestamp,
    /// The window that it shares with others, if it does.
    sharing: Option<Sharing>,
    /// SCONE, if the ends support it.
    pub scone: Option<Box<SconeSender>>,
    /// Whether the window of an approved rate is leaving, with nothing of it acknowledged or lost.
    approved_window: bool,
    /// The time since when only flow control has stopped new data.
    blocked_since: Option<Timestamp>,
    pacer: Pacer,
    /// Granularity of the timer that paces; zero: exact.
    tick: Duration,
}

impl SenderBase {
    /// A sender that has not launched.
    pub fn new(flow: FlowId, profile: Arc<Profile>, controller: Controller) -> Self {
        let quantum = profile.pacing.map_or(Duration::ZERO, |pacing| pacing.quantum);
        Self {
            flow,
            sampling: controller.needs().contains(Needs::RATE_SAMPLES).then(Box::default),
            controller,
            rtt: RttEstimator::new(profile.initial_timeout),
            in_flight: Bytes::ZERO,
            limit: profile.first_receive_window().get(),
            blocked_since: None,
            app_limited: false,
            ce_count: 0,
            quick_start: None,
            newly_lost: Bytes::ZERO,
            unvalidated: None,
            resumption: Resumption::default(),
            sharing: None,
            scone: (!profile.scone.is_none()).then(Box::default),
            path_since: Timestamp::ZERO,
            approved_window: false,
            pacer: Pacer::new(quantum),
            tick: Duration::ZERO,
            profile,
        }
    }

    /// Whether the window grows as in startup, the first time or again after a timeout.
    pub fn is_in_slow_start(&self) -> bool {
        let ssthresh = self.controller.ssthresh();
        self.controller.in_startup() || (ssthresh < Bytes::MAX && self.controller.cwnd() < ssthresh)
    }

    /// The handshake is over: launches.
    pub fn launch(&mut self, network: &mut Network, sources: &mut Sources) {
        let now = network.now();
        let handshake_rtt = sources.knowledge().handshake_rtt;
        if let Some(sample) = handshake_rtt {
            self.rtt.update(now, sample, Duration::ZERO);
        }
        network.record(self.flow.index).handshake_rtt = handshake_rtt;
        // An approval is good for one launch.
        self.resumption.knowledge = PathKnowledge { approved_rate: None, ..sources.knowledge().clone() };
        if self.sharing.is_some() {
            match self.enter_ensemble(network).map(Statement::Concurrent) {
                Some(share) => sources.believe(name::CONCURRENT, share),
                None => sources.lack(name::CONCURRENT, Verdict::Missing, ""),
            }
        }
        if network.is_traced() {
            let used = self.controller.depends_on(now, sources.knowledge());
            sources.launched(&used);
            network.note_sources(self.flow.index, sources.findings());
        }
        self.controller.launch(now, sources.knowledge(), &self.rtt);
        self.ignore_limit(0);
        self.pacer.allow_burst(self.controller.output().burst);
        self.after_event(network);
    }

    /// The opening is over, and the scheme may request a rate again in mid-connection. Called before
    /// [`SenderBase::launch`].
    pub fn keep_quick_start(&mut self, quick_start: Box<QuickStart>) {
        self.quick_start = Some(quick_start);
    }

    /// The timer that paces ticks with this granularity.
    pub fn set_tick(&mut self, tick: Duration) {
        self.pacer.set_tick(tick);
        self.tick = tick;
    }

    /// Payload of the next full packet with new data; an option takes its bytes from it.
    #[inline]
    pub fn payload_of_next(&self) -> u32 {
        match &self.quick_start {
            Some(quick_start) if quick_start.takes_payload() => {
                self.profile.payload.saturating_sub(LENGTH as u32).max(1)
            }
            _ => self.profile.payload,
        }
    }

    /// The receiver's answer to a request in mid-connection, if an acknowledgement has brought one.
    #[inline]
    pub fn answer_in(&self, network: &Network, ack: &Acknowledgement) -> Option<QuickStartOption> {
        self.quick_start.as_ref()?;
        network.ranges.answer(ack.ranges?)
    }

    /// The rate that all routers have approved in mid-connection becomes the window. Called after everything else in
    /// the acknowledgement.
    #[inline(never)]
    pub fn on_answer(&mut self, network: &mut Network, answer: &QuickStartOption) {
        let Some(quick_start) = &mut self.quick_start else { return };
        let Some(approved) = quick_start.on_answer(answer) else { return };
        network.record(self.flow.index).later_approvals += 1;
        // The RTT of the request and its answer: the smoothed RTT may contain a queue from before the idle time.
        let rtt = self.rtt.latest();
        let path = PathKnowledge { approved_rate: Some(approved), handshake_rtt: rtt, ..PathKnowledge::default() };
        if self.controller.on_approval(network.now(), &path, &self.rtt) {
            // The window is meant to be filled.
            self.app_limited = false;
            self.pacer.allow_burst(self.controller.output().burst);
        }
        self.after_event(network);
    }

    /// A launch: if the profile says so, its window leaves regardless of the announced receive window.
    fn ignore_limit(&mut self, next_offset: u64) {
        if self.profile.ignore_receive_window == IgnoreReceiveWindow::Probing {
            self.limit = self.limit.max(next_offset + self.controller.cwnd().get());
        }
    }

    /// Records whether only flow control stops new data.
    #[inline]
    fn note_blocked(&mut self, network: &mut Network, blocked: bool) {
        if blocked == self.blocked_since.is_some() {
            return;
        }
        let (now, limit) = (network.now(), self.limit);
        if let Some(since) = self.blocked_since.take() {
            network.record(self.flow.index).flow_control_blocked += now.since(since);
        }
        if blocked {
            self.blocked_since = Some(now);
        }
        network.note(self.flow.index, || Event::FlowControl { blocked, limit });
    }

    /// The signal of a data packet of `size` for the path, and the bytes that it adds. A sender that XCP controls does
    /// not use advice.
    #[inline]
    fn path_signal(&mut self, now: Timestamp, size: Bytes) -> (Option<PathSignal>, u32) {
        if self.controller.needs().contains(Needs::CONGESTION_HEADER) {
            let rtt = self.rtt.is_sampled().then(|| self.rtt.smoothed());
            return (Some(PathSignal::Xcp(request(rtt, self.controller.cwnd(), size))), CONGESTION_HEADER);
        }
        let offer = self.scone.as_mut().and_then(|scone| scone.offer(now));
        offer.map_or((None, 0), |offer| (Some(offer), BEFORE_SHORT_HEADER))
    }

    /// The routers' feedback has returned.
    pub fn on_feedback(&mut self, network: &mut Network, feedback: i32) {
        self.controller.on_feedback(network.now(), feedback, &self.rtt);
        self.after_event(network);
    }

    /// The receiver reports the path's throughput advice.
    pub fn on_report(&mut self, network: &mut Network, signal: RateSignal) -> Option<Rate> {
        let now = network.now();
        let rate = self.scone.as_mut()?.on_report(now, signal)?;
        network.record(self.flow.index).advised.get_or_insert((now, rate));
        network.note(self.flow.index, || Event::Advised { rate });
        Some(rate)
    }

    /// Like [`SenderBase::on_report`], after the launch.
    pub fn on_late_report(&mut self, network: &mut Network, signal: RateSignal) {
        if let Some(rate) = self.on_report(network, signal) {
            self.controller.on_advice(network.now(), Some(rate), &self.rtt);
            self.after_event(network);
        }
    }

    /// Whether a packet that was sent at this time took the current path.
    #[inline]
    pub fn is_on_path(&self, sent_at: Timestamp) -> bool {
        sent_at >= self.path_since
    }

    /// Whether a packet that adds `size` to the bytes in flight may leave.
    #[inline]
    pub fn permission(&self, now: Timestamp, size: Bytes) -> Permission {
        let cwnd = self.controller.cwnd();
        let fits = match self.profile.window_test {
            WindowTest::Fits => self.in_flight + size <= cwnd,
            WindowTest::Open => self.in_flight < cwnd,
        };
        if !fits || self.unvalidated.is_some_and(|budget| budget < size.get()) {
            return Permission::Window;
        }
        if self.controller.pacing_rate().is_some() {
            let release = self.pacer.release_time(now);
            if release > now {
                return Permission::Paced(release);
            }
        }
        Permission::Now
    }

    /// Sends a data packet and accounts for it. `position` is its place in the order of transmission.
    #[inline]
    pub fn send(
        &mut self,
        network: &mut Network,
        chunk: Chunk,
        number: PacketNumber,
        position: u64,
        retransmission: bool,
    ) {
        let now = network.now();
        let size = self.profile.in_flight_size(chunk.len);
        if self.in_flight == Bytes::ZERO && !self.controller.in_recovery() && self.profile.pacing.is_some() {
            self.pacer.allow_burst(self.controller.output().burst);
        }
        self.in_flight += size;
        self.resumption.last_sent = Some(now);
        if let Some(budget) = &mut self.unvalidated {
            *budget = budget.saturating_sub(size.get());
        }
        if let Some(rate) = self.controller.pacing_rate() {
            self.pacer.set_group(self.controller.send_group());
            self.pacer.on_sent(now, size, rate);
        }
        let mut sent = Sent::new(now, size, self.in_flight, position);
        sent.app_limited = self.app_limited;
        self.controller.on_sent(&sent);
        let in_startup = self.controller.in_startup();
        let record = network.record(self.flow.index);
        record.data_packets += 1;
        record.first_data_sent.get_or_insert(now);
        if retransmission {
            record.retransmitted += u64::from(chunk.len);
            record.retransmissions += 1;
        } else if self.approved_window {
            record.quick_start_bytes += u64::from(chunk.len);
        }
        if in_startup || record.exit.is_none() {
            record.startup_in_flight = record.startup_in_flight.max(self.in_flight);
        }
        let Chunk { offset, len } = chunk;
        let mut option = None;
        if let Some(exchange) = self.quick_start.as_mut().filter(|_| !retransmission) {
            option = network.ranges.insert_option(exchange.take_pending());
        }
        network.note(self.flow.index, || Event::Sent { offset, len, retransmission });
        let ecn = match (self.controller.needs().contains(Needs::SCALABLE_MARKS), self.profile.ecn) {
            (true, _) => EcnCodepoint::Ect1,
            (false, true) => EcnCodepoint::Ect0,
            (false, false) => EcnCodepoint::NotEct,
        };
        let (signal, added) = self.path_signal(now, size);
        let wire = self.profile.data_wire_size(chunk.len) + added + if option.is_some() { LENGTH as u32 } else { 0 };
        let PacketNumber { number, least_unacknowledged } = number;
        let body = Body::Data { number, offset, len, least_unacknowledged, sent_at: now, quick_start: option };
        network.transmit(self.flow.index, self.flow.generation, Direction::Forward, wire, ecn, body, signal);
    }

    /// The packet at `index` of the sender's list was delivered.
    #[inline]
    pub fn sample_delivered(&mut self, index: usize, now: Timestamp, position: Position, size: Bytes) {
        if let Some(sampling) = &mut self.sampling {
            sampling.deliver(index, now, position, size);
        }
    }

    /// The packet at `index` of the sender's list, whose places are `places`, was declared lost.
    #[inline]
    pub fn declare_lost(&mut self, index: usize, now: Timestamp, places: (Position, Position), size: Bytes) {
        self.newly_lost += size;
        if let Some(sampling) = &mut self.sampling
            && let Some(lost) = sampling.lose(index, now, places, size)
        {
            self.controller.on_packet_lost(&lost);
        }
    }

    /// Bytes declared lost since the last call.
    pub fn take_lost(&mut self) -> Bytes {
        std::mem::take(&mut self.newly_lost)
    }

    /// Adds its rate sample to the acknowledgement that was just processed.
    #[inline]
    pub fn add_sample(&mut self, ack: &mut Ack) {
        if let Some(sampling) = &mut self.sampling {
            ack.sample = sampling.take_sample(self.rtt.min());
        }
    }

    /// No data waits, or flow control stops it.
    fn run_dry(&mut self) {
        self.app_limited = true;
        if let Some(sampling) = &mut self.sampling
            && self.in_flight < self.controller.cwnd()
        {
            sampling.mark_app_limited(self.in_flight);
        }
    }

    /// Turns the controller's decisions into records, and shows the window to a trace.
    #[inline]
    pub fn after_event(&mut self, network: &mut Network) {
        self.report_window(network);
        while let Some((time, decision)) = self.controller.take_decision() {
            let record = network.record(self.flow.index);
            match decision {
                Decision::StartupExited { reason, cwnd, .. } => {
                    let reached = record.max_cwnd;
                    record.exit.get_or_insert(StartupExit { time, reason, cwnd, reached });
                }
                Decision::WindowReduced { .. } => record.window_cuts += 1,
                Decision::Collapsed { .. } => {
                    record.timeouts += 1;
                    self.approved_window = false;
                }
                // An approved rate is paced, unless its window is not larger than the initial one and is ignored.
                Decision::Launched { pacing_rate, .. } => {
                    self.approved_window = record.approved_rate.is_some() && pacing_rate.is_some();
                }
                Decision::PhaseEntered { phase, .. } => {
                    self.approved_window = false;
                    self.quick_start.iter_mut().for_each(|exchange| exchange.on_phase(phase));
                }
                _ => {}
            }
            network.note(self.flow.index, || Event::Decided(decision));
        }
        let cwnd = self.controller.cwnd();
        let record = network.record(self.flow.index);
        record.max_cwnd = record.max_cwnd.max(cwnd);
        if network.is_traced() {
            let (ssthresh, pacing_rate) = (self.controller.ssthresh(), self.controller.pacing_rate());
            let (in_flight, srtt_nanos) = (self.in_flight, self.rtt.smoothed().as_nanos());
            network.note(self.flow.index, || Event::Window { cwnd, ssthresh, in_flight, pacing_rate, srtt_nanos });
            if network.wants_variables() {
                let (now, flow) = (network.now(), self.flow.index);
                self.controller.observe(now, &mut |owner, variable| {
                    network.note(flow, || Event::Variable { owner, variable });
                });
            }
        }
    }
}
