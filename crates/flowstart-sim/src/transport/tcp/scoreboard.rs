//! The scoreboard of the TCP sender: outstanding, SACKed and lost data (RFC 6675, sections 2 to 4).
//!
//! A segment is lost when three segments above it were SACKed. The retransmission timer detects the loss of a
//! retransmission. If the profile says so, the SACK of a segment that was sent later also detects it (RFC 8985 in
//! spirit). Profiles that detect losses by time ask `rack.rs` instead.
//!
//! Differences: segments are never split or merged.

use std::collections::VecDeque;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::network::Network;
use crate::observe::trace::Event;
use crate::packet::Acknowledgement;
use crate::transport::policy::{AfterTimeout, LossDetection};
use crate::transport::sender::{Chunk, SenderBase};

use super::rack::{Rack, Verdict};
use super::segment::{Outcome, Segment};

/// The scoreboard.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    /// End of all sent data.
    high: u64,
    high_sacked: u64,
    /// Below this, every segment that is not SACKed was declared lost.
    lost_below: u64,
    /// No segment below this waits for retransmission.
    retransmit_from: u64,
    /// Bytes and segments above `una` that are SACKed.
    sacked_bytes: u64,
    pub(super) sacked_count: u64,
    /// State of loss detection by time.
    pub(super) rack: Rack,
    /// SACK blocks of the last acknowledgement.
    known: [(u64, u64); 4],
    /// The same while nothing is marked, after a timeout that goes back.
    unmarked: [(u64, u64); 4],
    /// The walk of proactive retransmissions has passed everything from here on.
    walked_from: u64,
    /// Whether something was sent again proactively.
    has_copies: bool,
}

impl Scoreboard {
    /// First byte that is not cumulatively acknowledged.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// End of all sent data.
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Outstanding segments.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether everything is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The first outstanding segment.
    pub(super) fn head(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// The segment at `index`.
    pub(super) fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// Removes the segments that `position` acknowledges cumulatively.
    pub(super) fn take_cumulative(&mut self, base: &mut SenderBase, now: Timestamp, position: u64) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(segment) = self.segments.front()
            && segment.end() <= position
        {
            segment.leave_flight(base);
            if segment.sacked {
                self.sacked_bytes -= u64::from(segment.len);
                self.sacked_count -= 1;
            } else {
                self.rack.deliver(now, segment, base.rtt.min());
                base.sample_delivered(0, now, segment.end(), Bytes::new(u64::from(segment.len)));
                outcome.deliver(segment);
            }
            outcome.app_limited = segment.app_limited;
            self.segments.pop_front();
            if let Some(sampling) = &mut base.sampling {
                sampling.pop(1);
            }
        }
        self.una = position;
        outcome
    }

    /// Marks segments that the SACK blocks newly report; returns their number. `in_recovery`: retransmissions may be
    /// lost.
    pub(super) fn take_blocks(
        &mut self,
        base: &mut SenderBase,
        network: &mut Network,
        ack: &Acknowledgement,
        in_recovery: bool,
        outcome: &mut Outcome,
    ) -> u64 {
        let Some(id) = ack.ranges else {
            self.known = [(0, 0); 4];
            return 0;
        };
        let mut blocks = [(0, 0); 4];
        for (place, range) in blocks.iter_mut().zip(network.ranges.get(id)) {
            *place = *range;
        }
        network.ranges.release(id);
        let mut count = 0;
        let mut newest = None;
        for (start, end) in blocks {
            let mut seq = start.max(self.una);
            while seq < end {
                // Segments that the last acknowledgement already reported are skipped in one step.
                if let Some(known) = self.known.iter().find(|known| known.0 <= seq && seq < known.1) {
                    seq = known.1;
                    continue;
                }
                let Some(index) = self.index_of(seq) else { break };
                let segment = &mut self.segments[index];
                if segment.end() > end {
                    break;
                }
                seq = segment.end();
                if segment.sacked {
                    continue;
                }
                segment.leave_flight(base);
                base.sample_delivered(index, network.now(), seq, Bytes::new(u64::from(segment.len)));
                outcome.deliver(segment);
                // It is unknown whether the first packet or its proactive copy arrived, so this is no evidence about
                // the order.
                if !(self.has_copies && segment.retransmitted && !segment.lost) {
                    newest = newest.max(Some(segment.sent_at));
                }
                self.rack.deliver(network.now(), segment, base.rtt.min());
                segment.sacked = true;
                segment.lost = false;
                segment.retransmitted = false;
                self.sacked_bytes += u64::from(segment.len);
                self.sacked_count += 1;
                self.high_sacked = self.high_sacked.max(segment.end());
                count += 1;
            }
        }
        self.known = blocks;
        let by_order = base.profile.lost_retransmissions && base.profile.loss_detection == LossDetection::SackedAbove;
        if let (true, true, Some(newest)) = (in_recovery, by_order, newest) {
            self.detect_lost_retransmissions(base, network.now(), newest);
        }
        count
    }

    /// Whether the SACK blocks report anything new since the last acknowledgement, without marking it.
    pub(super) fn has_new_blocks(&mut self, network: &mut Network, ack: &Acknowledgement, advanced: bool) -> bool {
        let mut blocks = [(0, 0); 4];
        if let Some(id) = ack.ranges {
            for (place, range) in blocks.iter_mut().zip(network.ranges.get(id)) {
                *place = *range;
            }
            network.ranges.release(id);
        }
        blocks.sort_unstable();
        let before = std::mem::replace(&mut self.unmarked, blocks);
        (advanced && ack.ranges.is_some()) || blocks != before
    }

    /// A retransmission older than something that has since arrived is lost.
    fn detect_lost_retransmissions(&mut self, base: &mut SenderBase, now: Timestamp, newest: Timestamp) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.seq >= self.high_sacked {
                break;
            }
            if segment.retransmitted && !segment.sacked && segment.sent_at < newest {
                segment.leave_flight(base);
                segment.retransmitted = false;
                segment.lost = true;
                segment.declare_lost(base, index, now);
                segment.tell_retransmission(base);
                self.retransmit_from = self.retransmit_from.min(segment.seq);
            }
        }
    }

    /// The index of the segment that starts at `seq`.
    pub(super) fn index_of(&self, seq: u64) -> Option<usize> {
        let first = self.segments.front()?;
        // Nearly all segments have the same size, so the guess is nearly always right.
        let guess = (seq.checked_sub(first.seq)? / u64::from(first.len.max(1))) as usize;
        if self.segments.get(guess).is_some_and(|segment| segment.seq == seq) {
            return Some(guess);
        }
        self.segments.binary_search_by_key(&seq, |segment| segment.seq).ok()
    }

    /// RFC 6675, `IsLost`: three SACKed segments above.
    pub(super) fn mark_lost(&mut self, base: &mut SenderBase, network: &mut Network) {
        if self.sacked_bytes == 0 {
            return;
        }
        let top = self.index_from(self.high_sacked);
        let mut above = 0;
        let mut edge = None;
        for index in (0..top).rev() {
            if self.segments[index].seq < self.lost_below {
                break;
            }
            above += u32::from(self.segments[index].sacked);
            if above == base.profile.packet_threshold {
                edge = Some(index);
                break;
            }
        }
        let Some(edge) = edge else { return };
        let first = self.index_from(self.lost_below);
        for index in first..edge {
            let segment = &mut self.segments[index];
            if segment.sacked || segment.lost {
                continue;
            }
            base.in_flight = base.in_flight.saturating_sub(Bytes::new(u64::from(segment.len)));
            segment.lost = true;
            segment.declare_lost(base, index, network.now());
            // What was sent again without evidence of loss, or proactively, does not leave once more.
            if !segment.retransmitted {
                segment.tell_retransmission(base);
            }
            self.retransmit_from = self.retransmit_from.min(segment.seq);
            note_lost(base, network, segment);
        }
        self.lost_below = self.segments[edge].seq;
    }

    /// Declares losses by time. Returns the time of the next check, if it is new: the time when segments that may have
    /// been reordered are late.
    pub(super) fn detect_by_time(
        &mut self,
        base: &mut SenderBase,
        network: &mut Network,
        in_recovery: bool,
    ) -> Option<Timestamp> {
        let at_once = in_recovery || self.sacked_count >= u64::from(base.profile.packet_threshold);
        let reordering = if at_once { Duration::ZERO } else { base.rtt.min().unwrap_or_default() / 4 };
        let search = self.rack.search(network.now(), reordering)?;
        let mut again = Timestamp::NEVER;
        for index in 0..self.segments.len() {
            match search.judge(&self.segments[index]) {
                Verdict::NotLost => {}
                Verdict::Early(late) => again = if again == Timestamp::NEVER { late } else { again.max(late) },
                Verdict::Lost => self.declare(index, base, network),
                Verdict::End => break,
            }
        }
        Some(again)
    }

    /// Declares the segment at `index` lost, or its retransmission.
    fn declare(&mut self, index: usize, base: &mut SenderBase, network: &mut Network) {
        let segment = &mut self.segments[index];
        segment.leave_flight(base);
        segment.lost = true;
        segment.retransmitted = false;
        segment.declare_lost(base, index, network.now());
        segment.tell_retransmission(base);
        self.retransmit_from = self.retransmit_from.min(segment.seq);
        note_lost(base, network, segment);
    }

    /// Declares the first segment lost, if it is not yet; returns whether there is one.
    pub(super) fn mark_head_lost(&mut self, base: &mut SenderBase, network: &mut Network) -> bool {
        let Some(head) = self.segments.front() else { return false };
        if !head.lost {
            self.declare(0, base, network);
        }
        true
    }

    /// After a timeout everything that was not SACKed is lost. `forget` includes SACKed segments.
    pub(super) fn mark_all_lost(&mut self, base: &mut SenderBase, now: Timestamp, forget: bool) {
        self.retransmit_from = self.una;
        self.lost_below = self.una;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.pipe() > 0 {
                segment.declare_lost(base, index, now);
            }
            segment.sacked &= !forget;
            segment.lost = !segment.sacked;
            segment.retransmitted = false;
        }
        if forget {
            self.sacked_bytes = 0;
            self.sacked_count = 0;
            self.high_sacked = self.una;
            self.known = [(0, 0); 4];
        }
        base.in_flight = Bytes::ZERO;
    }

    /// Nothing was lost: segments that were declared lost are in flight, and retransmitted segments are in flight
    /// twice. Returns the number of these segments. Loss detection by time checks everything again.
    pub(super) fn unmark_lost(&mut self, base: &mut SenderBase) -> u64 {
        let mut count = 0;
        for segment in self.segments.iter_mut().filter(|segment| segment.lost) {
            segment.leave_flight(base);
            segment.lost = false;
            base.in_flight += Bytes::new(segment.pipe());
            count += 1;
        }
        self.lost_below = self.una;
        self.retransmit_from = self.una;
        self.rack.look_again();
        count
    }

    /// Whether any outstanding segment was sent again since it was last declared lost.
    pub(super) fn has_retransmitted(&self) -> bool {
        self.segments.iter().any(|segment| segment.retransmitted && !segment.sacked)
    }

    /// Recovery begins: retransmission starts with the first segment.
    pub(super) fn begin_recovery(&mut self) {
        self.retransmit_from = self.una;
    }

    /// Whether nothing was retransmitted since recovery began and the first segment waits for retransmission.
    pub(super) fn is_head_due(&self) -> bool {
        self.retransmit_from == self.una && self.head().is_some_and(|head| head.lost && !head.retransmitted)
    }

    /// The index of the first segment that starts at `seq` or above.
    fn index_from(&self, seq: u64) -> usize {
        self.segments.partition_point(|segment| segment.seq < seq)
    }

    /// The next hole below something that was SACKed, each only once.
    pub(super) fn next_hole(&self) -> Option<usize> {
        (self.index_from(self.retransmit_from)..self.segments.len())
            .take_while(|&index| self.segments[index].seq < self.high_sacked)
            .find(|&index| !self.segments[index].sacked && !self.segments[index].retransmitted)
    }

    /// The next segment that is lost and waits for retransmission (RFC 6675, `NextSeg`, rule 1).
    pub(super) fn next_lost(&mut self, after_timeout: AfterTimeout) -> Option<usize> {
        let from = self.index_from(self.retransmit_from);
        let end = match after_timeout {
            AfterTimeout::BelowHighestSack if self.sacked_bytes > 0 => self.index_from(self.high_sacked),
            _ => self.segments.len(),
        };
        let lost = (from..end).find(|&index| {
            let segment = &self.segments[index];
            segment.lost && !segment.sacked && !segment.retransmitted
        });
        self.retransmit_from = match lost {
            Some(index) => self.segments[index].seq,
            None => self.segments.get(end).map_or(self.high, |segment| segment.seq),
        };
        lost
    }

    /// A segment below something that was SACKed, not retransmitted and not known to be lost (rule 3).
    pub(super) fn next_unsure(&self) -> Option<usize> {
        self.segments.iter().position(|s| !s.sacked && !s.retransmitted && s.seq < self.high_sacked)
    }

    /// The last segment that was not SACKed (rule 4). A proactive copy has rescued it already.
    pub(super) fn last(&self) -> Option<usize> {
        let last = self.segments.iter().rposition(|segment| !segment.sacked)?;
        (!(self.has_copies && self.segments[last].retransmitted)).then_some(last)
    }

    /// New data is sent.
    pub(super) fn push(&mut self, chunk: Chunk, now: Timestamp, app_limited: bool) {
        self.segments.push_back(Segment {
            seq: chunk.offset,
            len: chunk.len,
            sent_at: now,
            sacked: false,
            lost: false,
            retransmitted: false,
            sent_again: false,
            app_limited,
        });
        self.high = chunk.offset + u64::from(chunk.len);
        self.walked_from = self.high;
    }

    /// The highest segment that was neither SACKed nor declared lost nor sent again, below the position of the walk.
    pub(super) fn next_copy(&mut self) -> Option<usize> {
        let end = self.index_from(self.walked_from);
        let found = self.segments.range(..end).rposition(|s| !s.sacked && !s.lost && !s.retransmitted);
        self.walked_from = found.map_or(self.una, |index| self.segments[index].end());
        found
    }

    /// The segment at `index` is sent again proactively: both copies count as in flight. Returns its place in the
    /// stream.
    pub(super) fn copy(&mut self, index: usize, now: Timestamp) -> Chunk {
        let segment = &mut self.segments[index];
        segment.retransmitted = true;
        segment.sent_again = true;
        segment.sent_at = now;
        self.walked_from = segment.seq;
        self.has_copies = true;
        Chunk { offset: segment.seq, len: segment.len }
    }

    /// The segment at `index` is sent again. Returns its place in the stream, and whether this rescues a tail: nothing
    /// above it was SACKed, or it is repaired a second time.
    pub(super) fn retransmit(&mut self, base: &mut SenderBase, index: usize, now: Timestamp) -> (Chunk, bool) {
        // A retransmission without evidence of loss counts twice, as in RFC 6675's pipe.
        let segment = &mut self.segments[index];
        if !segment.lost {
            segment.tell_retransmission(base);
        }
        let mut rescues = !segment.lost && segment.seq >= self.high_sacked;
        if segment.retransmitted {
            // A segment that is rescued after its retransmission: the earlier copy stops counting.
            rescues = true;
            base.in_flight = base.in_flight.saturating_sub(Bytes::new(u64::from(segment.len)));
        }
        segment.retransmitted = true;
        segment.sent_again = true;
        segment.sent_at = now;
        // A retransmission that waited for the window lets the window grow.
        segment.app_limited &= base.app_limited;
        self.retransmit_from = self.retransmit_from.max(segment.end());
        (Chunk { offset: segment.seq, len: segment.len }, rescues)
    }
}

fn note_lost(base: &SenderBase, network: &mut Network, segment: &Segment) {
    let (offset, len) = (segment.seq, segment.len);
    network.record(base.flow.index).declared_lost += 1;
    network.note(base.flow.index, || Event::DeclaredLost { offset, len });
}
