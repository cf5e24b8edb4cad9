//! Requests of Quick-Start without a connection: floods and bogus requests.
//!
//! Reference: Sarolahti, Allman and Floyd, section 8.1. The packets need no answer, so their source addresses can be
//! forged: to routers each is the first packet of another flow. The receiver does not answer, and no data follows.

use std::collections::VecDeque;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::wire::{IpOption, IpVersion};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;

use crate::engine::Slot;
use crate::network::Network;
use crate::packet::{Body, Direction};
use crate::transport::handshake::OPEN;

/// Bytes of a packet on the wire: headers of IPv4 and TCP, and the option.
const SIZE: u32 = 48;

/// The requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// Time between two requests.
    pub interval: Duration,
    /// Number of requests; `None`: without end.
    pub count: Option<u64>,
    /// The rate that each requests, rounded up to a code.
    pub ask: Rate,
    /// Whether each comes from another flow; otherwise all come from one.
    pub spoofed: bool,
    /// After this time a second pass for the same rate follows each request, regardless of the approved rate: the
    /// sender of a spoofed packet sees no answer.
    pub confirm: Option<Duration>,
}

/// The sender.
#[derive(Clone, Debug)]
pub(crate) struct RequestSender {
    requests: Requests,
    /// Its place among flows; packets of generations other than 0 reach nobody.
    flow: u32,
    slot: Slot,
    next: Timestamp,
    sent: u64,
    /// Flows whose second pass is due, with the times.
    due: VecDeque<(Timestamp, u32)>,
    rng: Substream,
}

impl RequestSender {
    pub(crate) fn new(requests: Requests, flow: u32, slot: Slot, start: Timestamp, seed: u64) -> Self {
        let rng = Substream::new(seed, "requests", u64::from(flow));
        Self { requests, flow, slot, next: start, sent: 0, due: VecDeque::new(), rng }
    }

    /// Sends the due requests.
    pub(crate) fn on_timer(&mut self, network: &mut Network) {
        let now = network.now();
        while let Some((_, generation)) = self.due.pop_front_if(|(time, _)| *time <= now) {
            self.send(network, generation, true);
        }
        if self.next <= now {
            self.sent += 1;
            // Marks of flows with external ends are above.
            let generation = if self.requests.spoofed { 1 + (self.sent % (1 << 30)) as u32 } else { 1 };
            self.send(network, generation, false);
            self.due.extend(self.requests.confirm.map(|after| (now + after, generation)));
            let is_last = self.requests.count.is_some_and(|count| self.sent >= count);
            self.next = if is_last { Timestamp::NEVER } else { self.next + self.requests.interval };
        }
        let due = self.due.front().map_or(Timestamp::NEVER, |(time, _)| *time);
        network.engine.schedule(self.slot, self.next.min(due));
    }

    fn send(&mut self, network: &mut Network, generation: u32, second: bool) {
        let (rate, ttl) = (RateCode::at_least(self.requests.ask), self.rng.next_u64() as u8);
        let nonce = Nonce::random(&mut self.rng);
        let option = match second {
            false => IpOption::RateRequest { rate, ttl, nonce },
            true => IpOption::RateConfirmation { rate, ttl, nonce },
        };
        let quick_start = option.emit(IpVersion::V4);
        let body = Body::Handshake { flight: OPEN, part: 0, attempt: 0, quick_start };
        network.transmit(self.flow, generation, Direction::Forward, SIZE, EcnCodepoint::NotEct, body, None);
    }
}
