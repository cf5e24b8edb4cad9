//! A sender without congestion control: packets at a fixed interval or at random intervals, without acknowledgements
//! and retransmissions.

use flowstart_core::sources::Sources;
use flowstart_core::time::{Duration, Timestamp};

use crate::network::Network;
use crate::packet::{Acknowledgement, Body, Direction, FlowId};
use crate::traffic::media::PacketTimes;
use crate::traffic::unresponsive::Gaps;
use crate::traffic::{Pattern, Source};
use crate::transport::sender::{Sender, SenderBase};

/// The sender.
#[derive(Clone, Debug)]
pub struct Constant {
    flow: FlowId,
    interval: Duration,
    drawn: Option<Box<Gaps>>,
    /// Bytes of a packet on the wire.
    packet: u32,
    payload: u32,
    next: Timestamp,
    offset: u64,
    /// Whether the times of packets are kept.
    media: bool,
}

impl Constant {
    /// A silent sender of packets of `packet` bytes on the wire, of which `overhead` are not payload.
    pub fn new(flow: FlowId, pattern: &Pattern, interval: Duration, packet: u32, overhead: u32, seed: u64) -> Self {
        let drawn = match pattern {
            Pattern::Unresponsive(unresponsive) => Some(Box::new(Gaps::new(*unresponsive, seed, flow.number()))),
            _ => None,
        };
        Self {
            flow,
            interval,
            drawn,
            packet,
            payload: packet.saturating_sub(overhead).max(1),
            next: Timestamp::NEVER,
            offset: 0,
            media: matches!(pattern, Pattern::Media(_)),
        }
    }

    /// Sends from this time on; [`Timestamp::NEVER`]: not until the next call.
    pub fn resume_at(&mut self, time: Timestamp) {
        self.next = time;
    }

    /// A packet has arrived.
    pub fn on_arrival(&self, network: &mut Network, offset: u64, len: u32) {
        let now = network.now();
        let record = network.record(self.flow.index);
        record.delivered += u64::from(len);
        if self.media
            && let Some(packet) = record.media.get_mut((offset / u64::from(self.payload)) as usize)
        {
            packet.arrived = Some(now);
        }
    }
}

impl Sender for Constant {
    fn base(&self) -> Option<&SenderBase> {
        None
    }

    fn base_mut(&mut self) -> Option<&mut SenderBase> {
        None
    }

    fn launch(&mut self, network: &mut Network, _: &mut Sources, _: Option<u64>) {
        self.next = network.now();
    }

    fn on_acknowledgement(&mut self, _: &mut Network, _: &Acknowledgement) {}

    fn on_timer(&mut self, _: &mut Network) {}

    fn pump(&mut self, network: &mut Network, _: &Source) {
        let now = network.now();
        while self.next <= now {
            let body = Body::Data {
                number: 0,
                offset: self.offset,
                len: self.payload,
                least_unacknowledged: 0,
                sent_at: now,
                quick_start: None,
            };
            self.offset += u64::from(self.payload);
            self.next += self.drawn.as_mut().map_or(self.interval, |gaps| gaps.next_gap());
            let record = network.record(self.flow.index);
            record.data_packets += 1;
            if self.media {
                record.media.push(PacketTimes { sent: now, arrived: None });
            }
            let FlowId { index, generation } = self.flow;
            network.transmit(index, generation, Direction::Forward, self.packet, Default::default(), body, None);
        }
    }

    fn next_timer(&mut self) -> Timestamp {
        self.next
    }

    fn next_offset(&self) -> u64 {
        self.offset
    }
}
