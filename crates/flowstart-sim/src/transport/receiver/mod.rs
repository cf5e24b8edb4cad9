//! Receivers: reassembly, and the times and contents of acknowledgements.

use std::sync::Arc;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::xcp::host::Returned;

use crate::network::Network;
use crate::observe::trace::Event;
use crate::packet::{Acknowledgement, Body, Direction, FlowId, NO_OPTION, QuickStartOption};
use crate::path::signals::{CONGESTION_HEADER, PathSignal};
use crate::ranges::RangeSet;
use crate::transport::policy::Protocol;
use crate::transport::profile::Profile;
use crate::transport::scone::{REPORT_SIZE, SconeReceiver};

mod buffer;
mod window;

use buffer::{Arrived, Buffer};
use window::Autotuning;

/// SACK blocks whose order a TCP receiver remembers.
const BLOCKS_REMEMBERED: usize = 4;
/// SACK blocks beside timestamps and an answer of Quick-Start in the 40 bytes of options: 12 + 8 + 2 + 2 * 8 = 38.
const BLOCKS_WITH_ANSWER: usize = 2;

/// SACK blocks that every acknowledgement has room for (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_SURE: usize = 2;
/// Acknowledgements that report data beyond a gap before later ones are delayed.
const DUPLICATES_AT_ONCE: u32 = 3;
/// Most acknowledgements that are delayed together (`tcp_comp_sack_nr` of Linux).
const MOST_COMPRESSED: u32 = 44;

/// A data packet as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// QUIC packet number.
    pub number: u64,
    /// QUIC: the sender's oldest packet in flight.
    pub least_unacknowledged: u64,
    /// First byte of the stream.
    pub offset: u64,
    /// Payload bytes.
    pub len: u32,
    /// The sender's clock when it was sent.
    pub sent_at: Timestamp,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// Quick-Start: the answer to the packet's request.
    pub answer: QuickStartOption,
}

/// The receiver of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    flow: FlowId,
    profile: Arc<Profile>,
    /// Received bytes of the stream.
    bytes: RangeSet,
    /// End of what was received without gap.
    contiguous: u64,
    /// QUIC: received packet numbers.
    numbers: RangeSet,
    /// QUIC: the sender knows of everything below this.
    least: u64,
    largest: u64,
    largest_at: Timestamp,
    /// TCP: first bytes of the blocks beyond the gap, the most recent first.
    recent_blocks: Vec<u64>,
    /// TCP: the timestamp to echo.
    echo: Timestamp,
    /// TCP: the cumulative acknowledgement sent last.
    last_ack_sent: u64,
    unacknowledged: u32,
    /// Packets that are still acknowledged one by one.
    quick: u32,
    /// Acknowledgements of data beyond the present gap: the number sent, and the number delayed.
    duplicates: (u64, u32),
    compressed: u32,
    /// TCP: the duplicate data since the last acknowledgement.
    repeated: Option<(u64, u64)>,
    /// Payload bytes that arrived, each once.
    received: u64,
    ce_count: u32,
    requests: u32,
    ack_at: Timestamp,
    /// Quick-Start: the next acknowledgement carries this.
    answer: QuickStartOption,
    /// A receive window that grows.
    autotuning: Option<Box<Autotuning>>,
    /// A receive window that follows from a buffer.
    buffer: Option<Box<Buffer>>,
    /// XCP's feedback that has not been returned yet, once there was any.
    pub feedback: Option<Returned>,
    /// The advice of the path, if the ends support SCONE.
    pub scone: Option<Box<SconeReceiver>>,
}

impl Receiver {
    /// A receiver that has not received anything.
    pub fn new(flow: FlowId, profile: Arc<Profile>) -> Self {
        Self {
            flow,
            autotuning: Autotuning::new(&profile).map(Box::new),
            buffer: Buffer::new(&profile).map(Box::new),
            quick: profile.ack.quick,
            feedback: None,
            scone: (!profile.scone.is_none()).then(Box::default),
            profile,
            bytes: RangeSet::default(),
            contiguous: 0,
            numbers: RangeSet::default(),
            least: 0,
            largest: 0,
            largest_at: Timestamp::ZERO,
            recent_blocks: Vec::new(),
            echo: Timestamp::ZERO,
            last_ack_sent: 0,
            unacknowledged: 0,
            duplicates: (0, 0),
            compressed: 0,
            repeated: None,
            received: 0,
            ce_count: 0,
            requests: 0,
            ack_at: Timestamp::NEVER,
            answer: NO_OPTION,
        }
    }

    /// The time when a delayed acknowledgement is due.
    pub fn next_timer(&self) -> Timestamp {
        self.ack_at
    }

    /// End of what was received without gap.
    pub fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Whether `[start, end)` of the stream can be read. If the protocol delivers in order, everything before it must
    /// have arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        match self.profile.protocol {
            Protocol::Tcp => self.contiguous >= end,
            Protocol::Quic => self.bytes.containing(start).is_some_and(|range| range.1 >= end),
        }
    }

    /// Whether all bytes in `[start, end)` of the stream have arrived.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.contiguous >= end || self.bytes.containing(start).is_some_and(|range| range.1 >= end)
    }

    /// The application sends another request, which leaves immediately with an acknowledgement. The following ones
    /// repeat it.
    pub fn request(&mut self, network: &mut Network) {
        self.requests += 1;
        self.acknowledge(network);
    }

    /// The latest request may not have arrived: another acknowledgement repeats it.
    pub fn repeat_request(&mut self, network: &mut Network) {
        self.acknowledge(network);
    }

    /// The next packet is acknowledged immediately.
    pub fn acknowledge_next(&mut self) {
        self.quick = self.quick.max(1);
    }

    /// The handshake measured the RTT at this end.
    pub fn take_rtt(&mut self, now: Timestamp, sample: Duration) {
        if let Some(buffer) = &mut self.buffer {
            buffer.take_rtt(now, sample);
        }
        if let Some(autotuning) = &mut self.autotuning {
            autotuning.take_rtt(sample);
        }
    }

    /// A data packet arrived.
    pub fn on_data(&mut self, network: &mut Network, arrival: &Arrival) {
        let now = network.now();
        let Arrival { offset, len, .. } = *arrival;
        network.note(self.flow.index, || Event::Received { offset, len });
        let end = offset + u64::from(len);
        let had_gap = self.bytes.ranges().len() > 1;
        // RFC 7323, section 4.3: the timestamp of the segment that the last acknowledgement expected.
        if offset <= self.last_ack_sent && self.last_ack_sent < end {
            self.echo = arrival.sent_at;
        }
        let fresh = self.bytes.insert(offset, end);
        if fresh == 0 && self.profile.dsack {
            self.repeated = Some((offset, end));
        }
        network.record(self.flow.index).delivered += fresh;
        self.received += fresh;
        self.contiguous = self.bytes.contiguous_end(0).max(self.contiguous);
        self.unacknowledged += 1;
        let marked = arrival.ecn == EcnCodepoint::Ce;
        self.ce_count += u32::from(marked);
        let at_once = match self.profile.protocol {
            Protocol::Quic => self.note_number(now, arrival),
            Protocol::Tcp => {
                let gap = self.bytes.ranges().len() > 1;
                if offset > self.contiguous || (gap && fresh > 0) {
                    if self.compressed > 0 && self.pushes_out_a_block(offset, end) {
                        self.acknowledge(network);
                    }
                    self.remember_block(offset);
                }
                gap || had_gap || fresh == 0
            }
        };
        self.answer = arrival.answer;
        let answers = self.answer != NO_OPTION;
        let raised = self.autotuning.as_mut().is_some_and(|window| window.on_data(now, self.contiguous));
        let arrived = Arrived {
            len: u64::from(len),
            sent_at: arrival.sent_at,
            contiguous: self.contiguous,
            beyond: (self.received - self.contiguous, self.bytes.ranges().last().map_or(0, |last| last.1)),
            in_order: offset < self.contiguous,
        };
        let grows = self.buffer.as_mut().is_some_and(|buffer| buffer.on_data(now, &arrived));
        if grows && self.profile.ack.while_growing {
            self.quick |= 1;
        }
        let quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        let due = match at_once {
            true => quick || !self.compresses(now),
            false => quick || self.unacknowledged >= self.profile.ack.every,
        };
        if raised || marked || answers || due {
            self.acknowledge(network);
        } else if self.ack_at == Timestamp::NEVER {
            self.ack_at = now + self.profile.ack.max_delay;
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.read(now, &arrived);
        }
    }

    /// Whether the acknowledgement of an out-of-order packet is delayed: it reports only data beyond a gap, and three
    /// such acknowledgements have left.
    fn compresses(&mut self, now: Timestamp) -> bool {
        let Some(delay) = self.profile.ack.compression else { return false };
        let progress = self.contiguous > self.last_ack_sent + u64::from(self.profile.payload);
        if progress || self.bytes.ranges().len() < 2 || self.compressed >= MOST_COMPRESSED {
            return false;
        }
        if self.duplicates.0 != self.contiguous {
            self.duplicates = (self.contiguous, 0);
        }
        if self.duplicates.1 < DUPLICATES_AT_ONCE {
            self.duplicates.1 += 1;
            return false;
        }
        self.compressed += 1;
        self.ack_at = self.ack_at.min(now + delay);
        true
    }

    /// Records a packet number. Returns whether RFC 9000, section 13.2.1 requires an immediate acknowledgement: the
    /// packet is out of order, or a gap opens before it.
    fn note_number(&mut self, now: Timestamp, arrival: &Arrival) -> bool {
        let number = arrival.number;
        if arrival.least_unacknowledged > self.least {
            self.least = arrival.least_unacknowledged;
            self.numbers.forget_below(self.least);
        }
        let expected = self.numbers.ranges().last().map_or(self.least, |last| last.1);
        self.numbers.insert(number, number + 1);
        self.numbers.keep_newest(self.profile.ack_ranges as usize);
        if number + 1 > self.largest || self.largest_at == Timestamp::ZERO {
            self.largest = number;
            self.largest_at = now;
        }
        number != expected
    }

    /// Whether the arrived data moves a block out of the first two places, where it might never be reported. The
    /// delayed acknowledgement then leaves first (`tcp_sack_new_ofo_skb` of Linux).
    fn pushes_out_a_block(&self, offset: u64, end: u64) -> bool {
        let known = self.bytes.containing(offset).filter(|block| *block != (offset, end));
        let place = known.and_then(|(start, end)| self.recent_blocks.iter().position(|at| (start..end).contains(at)));
        place.unwrap_or(self.recent_blocks.len()) >= BLOCKS_SURE
    }

    /// Puts the block that contains `offset` in front of the other blocks (RFC 2018, section 4).
    fn remember_block(&mut self, offset: u64) {
        let Some(block) = self.bytes.containing(offset) else { return };
        self.recent_blocks.retain(|start| !(block.0..block.1).contains(start));
        if offset >= self.contiguous {
            self.recent_blocks.insert(0, offset);
            self.recent_blocks.truncate(BLOCKS_REMEMBERED);
        }
    }

    /// The delayed acknowledgement is due.
    pub fn on_timer(&mut self, network: &mut Network) {
        if self.ack_at <= network.now() {
            self.acknowledge(network);
        }
    }

    fn acknowledge(&mut self, network: &mut Network) {
        let now = network.now();
        let answer = std::mem::replace(&mut self.answer, NO_OPTION);
        let answers = answer != NO_OPTION;
        let mut most = self.profile.ack_ranges as usize;
        let (position, ranges, delay) = match self.profile.protocol {
            Protocol::Quic => {
                let known = self.numbers.ranges();
                let gaps = answers || known.len() > 1 || known.first().is_some_and(|range| range.0 > self.least);
                let ranges = gaps.then(|| network.ranges.insert(known.iter().rev().take(most).copied()));
                (self.largest, ranges, now.since(self.largest_at))
            }
            Protocol::Tcp => {
                let contiguous = self.contiguous;
                self.recent_blocks.retain(|start| *start >= contiguous);
                let (bytes, recent) = (&self.bytes, &self.recent_blocks);
                if answers {
                    most = most.min(BLOCKS_WITH_ANSWER);
                }
                // Duplicates are reported first, and once (RFC 2883, section 4).
                let repeated = self.repeated.take();
                let blocks = recent.iter().filter_map(|start| bytes.containing(*start));
                let ranges = (answers || repeated.is_some() || !recent.is_empty())
                    .then(|| network.ranges.insert(repeated.into_iter().chain(blocks).take(most)));
                (contiguous, ranges, Duration::ZERO)
            }
        };
        let limit = match (&mut self.buffer, &self.autotuning) {
            (Some(buffer), _) => buffer.announce(self.contiguous, self.received - self.contiguous),
            (None, Some(autotuning)) => autotuning.limit(self.contiguous),
            (None, None) => self.contiguous + self.profile.receive_window.get(),
        };
        if let Some(ranges) = ranges.filter(|_| answers) {
            network.ranges.set_answer(ranges, answer);
        }
        let count = ranges.map_or(0, |id| network.ranges.get(id).len()) as u32;
        let listed = match self.profile.protocol {
            Protocol::Quic => count.saturating_sub(1),
            Protocol::Tcp => count,
        };
        let (signal, reported) = match (&mut self.feedback, &mut self.scone) {
            (Some(returned), _) => (Some(PathSignal::Xcp(returned.take())), CONGESTION_HEADER),
            (None, Some(scone)) => scone.report(now).map_or((None, 0), |report| (Some(report), REPORT_SIZE)),
            (None, None) => (None, 0),
        };
        let option = if answers { LENGTH as u32 } else { 0 };
        let size = self.profile.ack_size + self.profile.ack_range_size * listed + reported + option;
        let body = Body::Acknowledgement(Acknowledgement {
            position,
            ranges,
            delay,
            echo: self.echo,
            limit,
            ce_count: self.ce_count,
            requests: self.requests,
        });
        self.unacknowledged = 0;
        self.compressed = 0;
        self.last_ack_sent = self.contiguous;
        self.ack_at = Timestamp::NEVER;
        let FlowId { index, generation } = self.flow;
        network.transmit(index, generation, Direction::Return, size, EcnCodepoint::NotEct, body, signal);
    }
}
