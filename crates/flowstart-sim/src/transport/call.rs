//! The sender of a video call: the packets of each frame, paced, without acknowledgements and retransmissions.

use std::collections::VecDeque;

use flowstart_core::sources::Sources;
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use crate::network::Network;
use crate::packet::{Acknowledgement, Body, Direction, FlowId};
use crate::traffic::Source;
use crate::traffic::call::{self, Call, Encoder, FrameTimes, PAYLOAD};
use crate::traffic::media::HEADERS;
use crate::transport::sender::{Sender, SenderBase};

/// The sender.
#[derive(Clone, Debug)]
pub struct CallSender {
    flow: FlowId,
    call: Call,
    encoder: Encoder,
    /// When the next frame is encoded.
    next_frame: Timestamp,
    /// When the pacer lets the next packet go.
    next_packet: Timestamp,
    /// Ends of the frames that have not left entirely.
    ends: VecDeque<u64>,
    /// Bytes of all frames so far.
    encoded: u64,
    /// Bytes that have left.
    offset: u64,
}

impl CallSender {
    /// A silent sender.
    pub fn new(flow: FlowId, call: Call, seed: u64) -> Self {
        Self {
            flow,
            call,
            encoder: Encoder::new(call, seed, flow.number()),
            next_frame: Timestamp::NEVER,
            next_packet: Timestamp::ZERO,
            ends: VecDeque::new(),
            encoded: 0,
            offset: 0,
        }
    }

    /// A packet has arrived.
    pub fn on_arrival(&self, network: &mut Network, offset: u64, len: u32) {
        let now = network.now();
        let record = network.record(self.flow.index);
        record.delivered += u64::from(len);
        call::arrived(&mut record.frames, offset, len, now);
    }

    fn encode(&mut self, network: &mut Network) {
        let (size, is_key) = self.encoder.next_frame();
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        let frame =
            FrameTimes { sent: self.next_frame, start: self.encoded, size, is_key, received: 0, complete: None };
        network.record(self.flow.index).frames.push(frame);
        self.encoded += u64::from(size);
        self.ends.push_back(self.encoded);
        self.next_frame += self.call.interval();
    }

    /// Sends the next packet of the oldest frame, up to `end`.
    fn send(&mut self, network: &mut Network, end: u64) {
        let now = network.now();
        let len = (end - self.offset).min(u64::from(PAYLOAD)) as u32;
        let body = Body::Data {
            number: 0,
            offset: self.offset,
            len,
            least_unacknowledged: 0,
            sent_at: now,
            quick_start: None,
        };
        self.offset += u64::from(len);
        self.next_packet = now + self.call.pacing_rate().time_for(Bytes::new(u64::from(len)));
        network.record(self.flow.index).data_packets += 1;
        let FlowId { index, generation } = self.flow;
        network.transmit(index, generation, Direction::Forward, len + HEADERS, Default::default(), body, None);
    }
}

impl Sender for CallSender {
    fn base(&self) -> Option<&SenderBase> {
        None
    }

    fn base_mut(&mut self) -> Option<&mut SenderBase> {
        None
    }

    fn launch(&mut self, network: &mut Network, _: &mut Sources, _: Option<u64>) {
        self.next_frame = network.now();
    }

    fn on_acknowledgement(&mut self, _: &mut Network, _: &Acknowledgement) {}

    fn on_timer(&mut self, _: &mut Network) {}

    fn pump(&mut self, network: &mut Network, _: &Source) {
        let now = network.now();
        while self.next_frame <= now {
            self.encode(network);
        }
        while self.next_packet <= now
            && let Some(&end) = self.ends.front()
        {
            self.send(network, end);
            if self.offset == end {
                self.ends.pop_front();
            }
        }
    }

    fn next_timer(&mut self) -> Timestamp {
        if self.ends.is_empty() { self.next_frame } else { self.next_frame.min(self.next_packet) }
    }

    fn next_offset(&self) -> u64 {
        self.offset
    }
}
