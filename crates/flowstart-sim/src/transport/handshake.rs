//! Connection set-up: the opener, the exchanged packets, the time when data may flow.
//!
//! Flight 0 opens, flight 1 answers, flight 2 completes and carries the request. The opener repeats its part after a
//! timeout, which doubles each time. The other end answers every repetition and has no timer of its own. A QUIC server
//! sends at most three times what it received before the client's address is validated (RFC 9000, section 8.1). A
//! client that has received part of the answer acknowledges it (flight 3), which validates its address.
//!
//! A client of QUIC also sees how far apart the parts of the answer arrive, and reports their rate with its request
//! ([`TrainReport`]). No RFC has such a report. It is a field of the request, whose size has room for it.
//!
//! Differences from RFC 6298: a packet says which repetition it answers, so a repeated handshake gives an RTT too,
//! where Karn's rule (section 3) allows none without timestamps. The data's timeout follows from this RTT; after a
//! timeout of the SYN it has to be 3 s when data begins (section 5.7). The request is repeated by the handshake's
//! timer, although the answer has given its sender an RTT R; by section 2.2 the timeout would be 3 R, and 1 s at least.

use std::sync::Arc;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::dispersion::Dispersion;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::network::Network;
use crate::packet::{Body, Direction, FlowId, NO_OPTION, QuickStartOption};
use crate::path::signals::PathSignal;
use crate::transport::policy::{Opening, Protocol};
use crate::transport::profile::Profile;
use crate::transport::quick_start::QuickStart;
use crate::transport::scone::{BEFORE_LONG_HEADER, REPORT_SIZE, SconePolicy};

/// Flight of the opening packet.
pub const OPEN: u8 = 0;
/// Flight of the answer, one or more packets.
pub const ANSWER: u8 = 1;
/// Flight of the completion with the request.
pub const COMPLETE: u8 = 2;
/// Flight of the acknowledgement of part of the answer.
pub const PARTIAL: u8 = 3;
/// Flight of Quick-Start's report of the approved rate: the sender's part, when the handshake is over.
pub const REPORT: u8 = 4;
/// Flight of Quick-Start's second pass: the sender's part, and the launch waits for its answer.
pub const SECOND_PASS: u8 = 5;
/// Flight of the answer to the second pass.
pub const SECOND_ANSWER: u8 = 6;

/// Repetitions of the opening whose times are remembered.
const ATTEMPTS: usize = 16;
/// Bytes on the wire of a handshake acknowledgement.
const PARTIAL_SIZE: u32 = 100;
/// RFC 9000, section 8.1.
const AMPLIFICATION_LIMIT: u64 = 3;

/// What a client reports of the rate at which the server's part of the handshake arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrainReport {
    /// What it has measured.
    #[default]
    Measured,
    /// Nothing.
    Nothing,
    /// This, whatever it has measured.
    Stated(Rate),
}

/// The effect of a handshake packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing yet.
    Waiting,
    /// The data sender may launch.
    Launch {
        /// RTT measured by the handshake, if it was measured.
        rtt: Option<Duration>,
        /// Bytes that may be sent before the client's address is validated; `None` if it is validated.
        unvalidated: Option<u64>,
    },
}

/// Both ends' state of a handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    flow: FlowId,
    profile: Arc<Profile>,
    /// Departure of each repetition of the opening (sender opens) or of the answer.
    sent_at: [Timestamp; ATTEMPTS],
    tries: u32,
    /// Parts of the answer that arrived, as bits.
    answered: u64,
    /// Parts of the answer that were sent.
    answer_sent: u8,
    /// The repetition of the opening that is answered.
    attempt: u8,
    opened: bool,
    requested: bool,
    launched: bool,
    retry_at: Timestamp,
    /// The latest departure of the opening.
    opened_at: Timestamp,
    /// The launch that waits for the answer to the second pass, and its deadline.
    pending: Option<(Progress, Timestamp)>,
    /// Quick-Start, if the sender uses it.
    pub quick_start: Option<Box<QuickStart>>,
    /// The SCONE advice that the opener has read and reports with its request.
    pub advised: RateSignal,
    /// What the opener has seen of the answer's parts.
    train: Dispersion,
    /// The time from the opening to the first of them.
    first_answer: Duration,
}

impl Handshake {
    /// A handshake that has not begun.
    pub fn new(flow: FlowId, profile: Arc<Profile>) -> Self {
        Self {
            flow,
            profile,
            sent_at: [Timestamp::ZERO; ATTEMPTS],
            tries: 0,
            answered: 0,
            answer_sent: 0,
            attempt: 0,
            opened: false,
            requested: false,
            launched: false,
            retry_at: Timestamp::NEVER,
            opened_at: Timestamp::ZERO,
            pending: None,
            quick_start: None,
            advised: RateSignal::UNKNOWN,
            train: Dispersion::default(),
            first_answer: Duration::ZERO,
        }
    }

    /// The rate of the answer's parts, as the client reports it with its request; `None`: it reports nothing, or the
    /// data left before the request could come.
    pub fn train_rate(&self, report: TrainReport) -> Option<Rate> {
        if self.profile.opening != Opening::Request || self.profile.protocol != Protocol::Quic {
            return None;
        }
        match report {
            TrainReport::Measured => self.train.rate(),
            TrainReport::Nothing => None,
            TrainReport::Stated(rate) => Some(rate),
        }
    }

    /// The time when the opener repeats its part, or when the sender stops waiting for the answer to the second pass.
    pub fn next_timer(&self) -> Timestamp {
        self.retry_at.min(self.pending.map_or(Timestamp::NEVER, |(_, until)| until))
    }

    /// Whether data may flow.
    pub fn is_launched(&self) -> bool {
        self.launched && self.pending.is_none()
    }

    /// The opener begins.
    pub fn open(&mut self, network: &mut Network) {
        network.record(self.flow.index).started = Some(network.now());
        self.send_opening(network);
    }

    /// Payload arrived, so the request has arrived.
    pub fn on_data(&mut self) {
        self.retry_at = Timestamp::NEVER;
    }

    /// A timer fired.
    pub fn on_timer(&mut self, network: &mut Network) -> Progress {
        if let Some((launch, _)) = self.pending.take_if(|(_, until)| *until <= network.now()) {
            return launch;
        }
        self.tries += 1;
        if self.is_answered() && self.profile.opening == Opening::Request {
            self.send_request(network);
        } else {
            self.send_opening(network);
        }
        Progress::Waiting
    }

    /// A packet of the handshake arrived.
    pub fn on_packet(&mut self, network: &mut Network, flight: u8, part: u8, attempt: u8) -> Progress {
        match flight {
            SECOND_PASS => {
                self.send(network, Direction::Return, SECOND_ANSWER, 0, self.profile.ack_size);
                return Progress::Waiting;
            }
            SECOND_ANSWER => return self.pending.take().map_or(Progress::Waiting, |(launch, _)| launch),
            _ => {}
        }
        let progress = self.on_flight(network, flight, part, attempt);
        if let (Progress::Launch { .. }, Some(quick_start)) = (progress, &mut self.quick_start)
            && let Some(option) = quick_start.second_pass()
        {
            self.pending = Some((progress, network.now() + self.profile.handshake_timeout));
            self.transmit(network, Direction::Forward, SECOND_PASS, 0, self.profile.ack_size, option);
            return Progress::Waiting;
        }
        progress
    }

    fn on_flight(&mut self, network: &mut Network, flight: u8, part: u8, attempt: u8) -> Progress {
        self.attempt = attempt;
        match flight {
            OPEN => {
                self.opened = true;
                self.answer_sent = 0;
                if self.opener_direction() == Direction::Return {
                    self.sent_at[usize::from(attempt) % ATTEMPTS] = network.now();
                }
                self.send_answer(network, self.answer_budget());
                self.launch_without_round_trip()
            }
            ANSWER => self.on_answer(network, part),
            COMPLETE => self.on_completion(network),
            PARTIAL => {
                self.send_answer(network, u64::MAX);
                Progress::Waiting
            }
            _ => Progress::Waiting,
        }
    }

    /// The RTT that the data receiver measures with this packet, if the receiver opened and the packet is the first
    /// answer to its latest opening.
    pub fn receiver_rtt(&self, now: Timestamp, flight: u8, attempt: u8) -> Option<Duration> {
        let latest = u32::from(attempt) == self.tries.min(u32::from(u8::MAX));
        let first = flight == ANSWER && self.answered == 0 && self.opener_direction() == Direction::Return;
        (first && latest).then(|| now.since(self.opened_at))
    }

    fn on_answer(&mut self, network: &mut Network, part: u8) -> Progress {
        if self.answered == 0 {
            self.first_answer = network.now().since(self.opened_at);
        }
        if self.answered & (1 << part) == 0 {
            let size = Bytes::new(u64::from(self.profile.answer_size));
            self.train.on_arrival(network.now(), size, self.first_answer / 2);
        }
        self.answered |= 1 << part;
        if !self.is_answered() {
            self.send(network, self.opener_direction(), PARTIAL, 0, PARTIAL_SIZE);
            return Progress::Waiting;
        }
        match self.profile.opening {
            Opening::Request => {
                self.tries = 0;
                self.send_request(network);
                Progress::Waiting
            }
            Opening::ZeroRtt => Progress::Waiting,
            Opening::Sender if self.launched => Progress::Waiting,
            Opening::Sender => {
                self.launched = true;
                self.retry_at = Timestamp::NEVER;
                if self.profile.completion_size > 0 {
                    self.send(network, Direction::Forward, COMPLETE, 0, self.profile.completion_size);
                }
                Progress::Launch { rtt: Some(self.round_trip(network)), unvalidated: None }
            }
        }
    }

    fn on_completion(&mut self, network: &mut Network) -> Progress {
        self.requested = true;
        match self.profile.opening {
            Opening::Sender => Progress::Waiting,
            Opening::ZeroRtt => self.launch_without_round_trip(),
            Opening::Request if self.launched => Progress::Waiting,
            Opening::Request => {
                self.launched = true;
                let rtt = self.opened.then(|| self.round_trip(network));
                Progress::Launch { rtt, unvalidated: None }
            }
        }
    }

    /// 0-RTT: the opening and the request have arrived.
    fn launch_without_round_trip(&mut self) -> Progress {
        if self.profile.opening != Opening::ZeroRtt || self.launched || !self.opened || !self.requested {
            return Progress::Waiting;
        }
        self.launched = true;
        let received = u64::from(self.profile.opening_size + self.profile.completion_size);
        let answer = u64::from(self.profile.answer_size) * u64::from(self.answer_sent);
        let unvalidated = (!self.profile.token).then(|| (AMPLIFICATION_LIMIT * received).saturating_sub(answer));
        Progress::Launch { rtt: None, unvalidated }
    }

    /// Time since the departure of the data sender's part of the answered attempt.
    fn round_trip(&self, network: &Network) -> Duration {
        network.now().since(self.sent_at[usize::from(self.attempt) % ATTEMPTS])
    }

    fn is_answered(&self) -> bool {
        self.answered.count_ones() >= u32::from(self.profile.answer_packets)
    }

    /// Bytes allowed for the answer before the client's address is validated.
    fn answer_budget(&self) -> u64 {
        match self.profile.protocol {
            Protocol::Tcp => u64::MAX,
            Protocol::Quic if self.profile.token && self.profile.opening == Opening::ZeroRtt => u64::MAX,
            Protocol::Quic => AMPLIFICATION_LIMIT * u64::from(self.profile.opening_size),
        }
    }

    fn opener_direction(&self) -> Direction {
        match self.profile.opening {
            Opening::Sender => Direction::Forward,
            Opening::Request | Opening::ZeroRtt => Direction::Return,
        }
    }

    fn send_opening(&mut self, network: &mut Network) {
        let now = network.now();
        self.retry_at = now + self.timeout();
        self.opened_at = now;
        self.attempt = self.tries.min(u32::from(u8::MAX)) as u8;
        if self.opener_direction() == Direction::Forward {
            self.sent_at[usize::from(self.attempt) % ATTEMPTS] = now;
        }
        self.send(network, self.opener_direction(), OPEN, 0, self.profile.opening_size);
        match self.profile.opening {
            Opening::Sender => {
                network.record(self.flow.index).request_sent.get_or_insert(now);
            }
            Opening::ZeroRtt => self.send_request(network),
            Opening::Request => {}
        }
    }

    fn send_request(&mut self, network: &mut Network) {
        let now = network.now();
        self.retry_at = now + self.timeout();
        network.record(self.flow.index).request_sent.get_or_insert(now);
        self.send(network, Direction::Return, COMPLETE, 0, self.profile.completion_size);
    }

    /// Sends the unsent parts of the answer that fit into `budget`.
    fn send_answer(&mut self, network: &mut Network, mut budget: u64) {
        let direction = match self.opener_direction() {
            Direction::Forward => Direction::Return,
            Direction::Return => Direction::Forward,
        };
        let size = u64::from(self.profile.answer_size);
        while self.answer_sent < self.profile.answer_packets && budget >= size {
            self.send(network, direction, ANSWER, self.answer_sent, self.profile.answer_size);
            self.answer_sent += 1;
            budget -= size;
        }
    }

    /// Sends Quick-Start's report of the approved rate, if there is one.
    pub fn send_report(&mut self, network: &mut Network) {
        if self.quick_start.as_ref().is_some_and(|quick_start| quick_start.has_report()) {
            self.send(network, Direction::Forward, REPORT, 0, self.profile.ack_size);
        }
    }

    fn timeout(&self) -> Duration {
        self.profile.handshake_timeout * (1 << self.tries.min(16))
    }

    fn send(&mut self, network: &mut Network, direction: Direction, flight: u8, part: u8, size: u32) {
        let first = self.attempt == 0 && part == 0;
        let quick_start = match &mut self.quick_start {
            Some(quick_start) if self.profile.opening != Opening::ZeroRtt => match flight {
                REPORT => quick_start.take_report(),
                _ => quick_start.option_for(direction, first),
            },
            _ => NO_OPTION,
        };
        self.transmit(network, direction, flight, part, size, quick_start);
    }

    fn transmit(
        &self,
        network: &mut Network,
        direction: Direction,
        flight: u8,
        part: u8,
        size: u32,
        quick_start: QuickStartOption,
    ) {
        let size = if quick_start == NO_OPTION { size } else { size + LENGTH as u32 };
        let (signal, added) = self.scone(direction, flight);
        let body = Body::Handshake { flight, part, attempt: self.attempt, quick_start };
        let FlowId { index, generation } = self.flow;
        network.transmit(index, generation, direction, size + added, EcnCodepoint::NotEct, body, signal);
    }

    /// A packet's SCONE signal, and the bytes that it adds. The data sender's answer carries a SCONE packet, the
    /// receiver's request the advice that it has read.
    fn scone(&self, direction: Direction, flight: u8) -> (Option<PathSignal>, u32) {
        match (direction, flight) {
            (Direction::Forward, ANSWER) if self.profile.scone == SconePolicy::Handshake => {
                (Some(PathSignal::Scone(RateSignal::UNKNOWN)), BEFORE_LONG_HEADER)
            }
            (Direction::Return, COMPLETE) if self.advised != RateSignal::UNKNOWN => {
                (Some(PathSignal::SconeReport(self.advised)), REPORT_SIZE)
            }
            _ => (None, 0),
        }
    }
}
