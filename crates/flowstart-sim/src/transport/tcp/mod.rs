//! The model TCP sender: fast retransmit, recovery, limited transmit, RTO.
//!
//! The scoreboard (`scoreboard.rs`) decides on losses and follows RFC 6675. `transmit.rs` chooses the next packet.
//! Bytes in flight are counted in one of two ways ([`Pipe`]).
//!
//! Differences: the receive window never shrinks.

use flowstart_core::controller::AckFrame;
use flowstart_core::event::{Ack, Ecn, Loss, Timeout};
use flowstart_core::sources::Sources;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::network::Network;
use crate::observe::trace::Event;
use crate::packet::Acknowledgement;
use crate::traffic::Source;
use crate::transport::policy::{
    AfterTimeout, LossDetection, MixedAck, Pipe, RttSamples, SpuriousDetection, TailRepair, TimeoutArithmetic,
    TimerRestart, TransitionGrowth,
};
use crate::transport::sender::transmission::Transmission;
use crate::transport::sender::{Sender, SenderBase};

mod rack;
mod scoreboard;
mod segment;
mod spurious;
mod tick_estimator;
mod transmit;

use scoreboard::Scoreboard;
use segment::Outcome;
use spurious::Spurious;
use tick_estimator::TickEstimator;
use transmit::Next;

/// Longest retransmission timeout (RFC 6298, section 2.5).
const MAX_RTO: Duration = Duration::from_millis(60_000);

/// Delay of a loss probe beyond two RTTs (`TCP_TIMEOUT_MIN` of Linux: two ticks of its clock).
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// Recovery from a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// No loss is known.
    None,
    /// Fast recovery until `point` is acknowledged.
    Fast { point: u64, partial_acks: u32 },
    /// After a timeout, until `point` is acknowledged. Senders that go back send `next` next. `advanced`: something was
    /// acknowledged since.
    Timeout { point: u64, next: u64, advanced: bool },
}

/// A loss probe whose fate is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// End of the sent data at its departure (`TLP.end_seq`; `tlp_high_seq` of Linux).
    high: u64,
    /// Whether it sent the last segment again (`TLP.is_retrans`).
    again: bool,
}

/// The sender.
#[derive(Clone, Debug)]
pub struct TcpSender {
    /// Congestion control and everything else that does not depend on the protocol.
    pub base: SenderBase,
    board: Scoreboard,
    duplicates: u32,
    recovery: Recovery,
    /// Whether the first segment is due again regardless of the window: recovery begins (RFC 6675, section 5, step
    /// 4.3), or a partial acknowledgement requires it.
    repair_head: bool,
    /// Whether the rescue retransmission of this recovery was sent.
    rescued: bool,
    /// The segment whose RTT is being measured, if TCP measures one at a time: its end, and its send time.
    timed: Option<(u64, Timestamp)>,
    /// The RTT in ticks, if the timeout is computed with them.
    ticks: Option<TickEstimator>,
    /// Classic pipe, in segments.
    classic_pipe: i64,
    backoff: u32,
    rto_at: Timestamp,
    pacing_at: Timestamp,
    /// The time when segments that may have been reordered count as lost (RFC 8985, section 6.3).
    reorder_at: Timestamp,
    /// The time when the loss probe leaves (RFC 8985, section 7.2), and the last probe that left.
    probe_at: Timestamp,
    probed: Option<Probe>,
    probe_due: bool,
    spurious: Spurious,
}

impl TcpSender {
    /// A sender that has not launched.
    pub fn new(base: SenderBase) -> Self {
        Self {
            base,
            board: Scoreboard::default(),
            duplicates: 0,
            recovery: Recovery::None,
            repair_head: false,
            rescued: false,
            timed: None,
            ticks: None,
            classic_pipe: 0,
            backoff: 0,
            rto_at: Timestamp::NEVER,
            pacing_at: Timestamp::NEVER,
            reorder_at: Timestamp::NEVER,
            probe_at: Timestamp::NEVER,
            probed: None,
            probe_due: false,
            spurious: Spurious::default(),
        }
    }

    /// The retransmission timeout (RFC 6298, sections 2.3, 2.4 and 5.5).
    fn rto(&self) -> Duration {
        let profile = &self.base.profile;
        let rtt = &self.base.rtt;
        let base = if let Some(ticks) = &self.ticks {
            (profile.sample_resolution * ticks.timeout()).max(profile.min_rto)
        } else if rtt.is_sampled() {
            (rtt.smoothed() + (rtt.variation() * 4).max(profile.granularity)).max(profile.min_rto)
        } else {
            profile.initial_timeout
        };
        (base * (1 << self.backoff.min(16))).min(MAX_RTO)
    }

    fn restart_timer(&mut self, now: Timestamp) {
        self.rto_at = if self.board.is_empty() { Timestamp::NEVER } else { now + self.rto() };
        self.schedule_probe(now);
    }

    /// The loss probe leaves two RTTs from now if nothing is acknowledged until then, and later if one packet may wait
    /// for a delayed acknowledgement (RFC 8985, section 7.2; Linux takes the smallest timeout as the longest delay). It
    /// replaces a retransmission timeout that would come first. There is no probe while losses are known, and only one
    /// in a flight.
    fn schedule_probe(&mut self, now: Timestamp) {
        self.probe_at = Timestamp::NEVER;
        let nothing_missing = self.recovery == Recovery::None && self.board.sacked_count == 0;
        if !self.base.profile.loss_probe || !nothing_missing || self.board.is_empty() || self.probed.is_some() {
            return;
        }
        let margin = if self.board.len() == 1 { self.base.profile.min_rto } else { PROBE_MARGIN };
        self.probe_at = self.rto_at.min(now + self.base.rtt.smoothed() * 2 + margin);
    }

    /// This acknowledgement's information about the last probe (RFC 8985, section 7.4.2). Returns the position of the
    /// loss that the probe has repaired: the probe sent something again, and later data is acknowledged without a
    /// report of a duplicate.
    fn end_probe(&mut self, network: &Network, ack: &Acknowledgement, advanced: bool) -> Option<u64> {
        let probe = self.probed.filter(|probe| ack.position >= probe.high)?;
        let beyond = ack.position > probe.high;
        let repeated = ack.ranges.and_then(|id| network.ranges.get(id).first()).map(|block| block.1);
        let twice = repeated == Some(probe.high) || (!beyond && !advanced);
        if beyond || twice || !probe.again {
            self.probed = None;
        }
        (probe.again && beyond && !twice).then(|| probe.high - 1)
    }

    /// Undoes recovery if this acknowledgement shows that the retransmitted data was only late. Fast recovery is undone
    /// only after everything that was sent again is acknowledged (`tcp_try_undo_partial` of Linux).
    fn undo_if_late(&mut self, network: &mut Network, ack: &Acknowledgement, advanced: bool, outcome: &Outcome) {
        if self.base.profile.spurious_detection == SpuriousDetection::None {
            return;
        }
        let now = network.now();
        let late = advanced && self.spurious.is_late(ack.echo);
        match self.recovery {
            Recovery::Timeout { point, .. } if late || self.spurious.disproves_timeout(outcome.original, point) => {
                self.base.controller.on_spurious_timeout(now, &self.base.rtt);
            }
            Recovery::Fast { point, .. } if late && (self.board.una() >= point || !self.board.has_retransmitted()) => {
                self.base.controller.on_spurious_loss(now, &self.base.rtt);
            }
            _ => return,
        }
        self.recovery = Recovery::None;
        self.repair_head = false;
        self.spurious.forget();
        let count = outcome.declared_lost + self.board.unmark_lost(&mut self.base);
        network.record(self.base.flow.index).spurious += count;
    }

    fn is_classic(&self) -> bool {
        self.base.profile.pipe == Pipe::Classic
    }

    /// After a timeout TCP sends everything again in order, in a window that begins at the first segment.
    fn goes_back(&self) -> bool {
        self.base.profile.after_timeout == AfterTimeout::GoBackN && matches!(self.recovery, Recovery::Timeout { .. })
    }

    fn take_sample(&mut self, now: Timestamp, ack: &Acknowledgement) {
        let sent = match self.base.profile.rtt_samples {
            RttSamples::EveryAck => ack.echo,
            RttSamples::OneSegment => match self.timed.take_if(|(end, _)| *end <= ack.position) {
                Some((_, sent)) => sent,
                None => return,
            },
        };
        let resolution = self.base.profile.sample_resolution.as_nanos();
        let floor =
            |time: Timestamp| time.as_nanos().checked_div(resolution).map_or(time.as_nanos(), |n| n * resolution);
        let nanos = floor(now) - floor(sent).min(floor(now));
        if self.base.profile.timeout_arithmetic == TimeoutArithmetic::Ticks {
            let in_ticks = |nanos: u64| nanos.checked_div(resolution).unwrap_or(nanos);
            // The handshake gave the first sample.
            let first = in_ticks(self.base.rtt.smoothed().as_nanos());
            self.ticks.get_or_insert_with(|| TickEstimator::new(first)).update(in_ticks(nanos));
        }
        self.base.rtt.update(now, Duration::from_nanos(nanos.max(1000)), Duration::ZERO);
        self.backoff = 0;
    }

    /// The cumulative acknowledgement advanced.
    fn on_progress(&mut self, network: &mut Network, outcome: &mut Outcome) {
        let now = network.now();
        outcome.sample = self.base.rtt.latest();
        let mut restart = true;
        if self.recovery == Recovery::None && self.probed.is_none() {
            self.spurious.forget();
        }
        match &mut self.recovery {
            Recovery::None => self.duplicates = 0,
            Recovery::Fast { point, .. } | Recovery::Timeout { point, .. } if self.board.una() >= *point => {
                self.recovery = Recovery::None;
                self.duplicates = 0;
                self.spurious.forget();
            }
            Recovery::Fast { partial_acks, .. } => {
                *partial_acks += 1;
                self.repair_head = self.base.profile.tail_repair == TailRepair::PartialAck;
                restart = self.base.profile.timer_restart != TimerRestart::FirstPartialAck || *partial_acks == 1;
            }
            Recovery::Timeout { advanced, .. } => (*advanced, self.duplicates) = (true, 0),
        }
        if restart {
            self.restart_timer(now);
        }
        if self.board.is_empty() {
            self.rto_at = Timestamp::NEVER;
        }
    }

    /// Declares losses and enters recovery. Returns their report to the controller.
    fn detect_losses(
        &mut self,
        network: &mut Network,
        advanced: bool,
        newly_sacked: u64,
        in_flight_before: Bytes,
    ) -> Option<Loss> {
        let now = network.now();
        let classic = self.is_classic();
        let by_time = self.base.profile.loss_detection == LossDetection::Rack;
        if by_time {
            let in_recovery = self.recovery != Recovery::None;
            if let Some(again) = self.board.detect_by_time(&mut self.base, network, in_recovery) {
                self.reorder_at = again;
                // That timer is more informative than a probe.
                if again != Timestamp::NEVER {
                    self.probe_at = Timestamp::NEVER;
                }
            }
        } else if !classic {
            self.board.mark_lost(&mut self.base, network);
        }
        // RFC 6675, section 2: an acknowledgement that newly SACKs is a duplicate, whether or not it also acknowledges
        // cumulatively. Classic stacks follow RFC 5681.
        let goes_back = self.goes_back();
        let too_early = goes_back && matches!(self.recovery, Recovery::Timeout { advanced: false, .. });
        if newly_sacked > 0 && !((classic || goes_back) && advanced) && !too_early {
            self.duplicates += 1;
        }
        if let Recovery::Fast { point, .. } | Recovery::Timeout { point, .. } = self.recovery {
            // More losses of the congestion event behind this recovery.
            let (bytes, in_flight) = (self.base.take_lost(), self.base.in_flight);
            let event = Loss { now, bytes, position: point - 1, in_flight_before, in_flight };
            return Some(event).filter(|event| event.bytes > Bytes::ZERO);
        }
        let head_lost = self.board.head().is_some_and(|head| head.lost);
        if (by_time || self.duplicates < self.base.profile.packet_threshold) && !head_lost {
            return None;
        }
        if !self.board.mark_head_lost(&mut self.base, network) {
            return None;
        }
        self.recovery = Recovery::Fast { point: self.board.high(), partial_acks: 0 };
        self.spurious.begin(false);
        (self.probe_at, self.probed) = (Timestamp::NEVER, None);
        self.rescued = false;
        self.timed = None;
        self.repair_head = !classic;
        self.board.begin_recovery();
        if classic {
            let outstanding = self.board.len() as i64;
            self.classic_pipe = outstanding - i64::from(self.base.profile.packet_threshold);
        }
        // All outstanding data belongs to this event, whichever part is lost. The first segment may have been declared
        // lost in the recovery before this one.
        let head = self.board.head().map_or(0, |head| head.len);
        let bytes = self.base.take_lost().max(Bytes::new(u64::from(head)));
        let in_flight = self.base.in_flight;
        Some(Loss { now, bytes, position: self.board.high() - 1, in_flight_before, in_flight })
    }

    /// The classic pipe: every acknowledgement in recovery decrements it, a partial one twice.
    fn count_classic(&mut self, was_fast: bool, advanced: bool) {
        if was_fast {
            self.classic_pipe -= 1 + i64::from(advanced && self.recovery != Recovery::None);
        }
    }

    fn on_timeout(&mut self, network: &mut Network) {
        let now = network.now();
        network.note(self.base.flow.index, || Event::TimerFired);
        let in_flight_before = self.base.in_flight;
        (self.reorder_at, self.probe_at, self.probed) = (Timestamp::NEVER, Timestamp::NEVER, None);
        self.backoff += 1;
        self.duplicates = 0;
        self.timed = None;
        self.spurious.begin(!matches!(self.recovery, Recovery::Fast { .. }));
        self.recovery = Recovery::Timeout { point: self.board.high(), next: self.board.una(), advanced: false };
        // Classic stacks forget SACKs (RFC 2018, section 8).
        let forget = self.is_classic();
        self.board.mark_all_lost(&mut self.base, now, forget);
        self.base.take_lost();
        self.base.app_limited = false;
        self.base.controller.on_timeout(&Timeout { now, in_flight_before }, &self.base.rtt);
        self.rto_at = now + self.rto();
    }
}

impl Sender for TcpSender {
    fn base(&self) -> Option<&SenderBase> {
        Some(&self.base)
    }

    fn base_mut(&mut self) -> Option<&mut SenderBase> {
        Some(&mut self.base)
    }

    fn launch(&mut self, network: &mut Network, sources: &mut Sources, _: Option<u64>) {
        self.base.launch(network, sources);
    }

    fn on_acknowledgement(&mut self, network: &mut Network, ack: &Acknowledgement) {
        let now = network.now();
        let in_flight_before = self.base.in_flight;
        let una_before = self.board.una();
        self.base.limit = self.base.limit.max(ack.limit);
        self.base.unvalidated = None;
        if ack.position < una_before {
            if let Some(id) = ack.ranges {
                network.ranges.release(id);
            }
            return;
        }
        let advanced = ack.position > una_before;
        let repaired = self.end_probe(network, ack, advanced);
        let answer = self.base.answer_in(network, ack);
        let mut outcome = self.board.take_cumulative(&mut self.base, now, ack.position);
        let in_recovery = self.recovery != Recovery::None;
        let newly_sacked = if self.goes_back() {
            u64::from(self.board.has_new_blocks(network, ack, advanced))
        } else {
            self.board.take_blocks(&mut self.base, network, ack, in_recovery, &mut outcome)
        };
        if advanced && self.base.is_on_path(ack.echo) {
            self.take_sample(now, ack);
        }
        self.undo_if_late(network, ack, advanced, &outcome);
        let was_fast = matches!(self.recovery, Recovery::Fast { .. });
        let only_duplicate = newly_sacked > 0
            && self.recovery == Recovery::None
            && self.base.profile.mixed_ack == MixedAck::DuplicateOnly;
        let progress = advanced && !only_duplicate;
        if progress {
            self.on_progress(network, &mut outcome);
        }
        if let Some(position) = repaired {
            let (bytes, in_flight) = (Bytes::new(u64::from(self.base.profile.payload)), self.base.in_flight);
            let loss = Loss { now, bytes, position, in_flight_before, in_flight };
            self.base.controller.on_repaired_loss(&loss, &self.base.rtt);
        }
        let declared_lost = network.record(self.base.flow.index).declared_lost;
        let lost = self.detect_losses(network, advanced, newly_sacked, in_flight_before);
        let mut frame = AckFrame { lost, duplicate: !progress, ..AckFrame::default() };
        self.count_classic(was_fast, advanced);
        if outcome.bytes > Bytes::ZERO {
            let contiguous = self.board.una();
            network.note(self.base.flow.index, || Event::Acknowledged { contiguous, newly: outcome.bytes });
        }
        if outcome.bytes > Bytes::ZERO {
            let recovered = was_fast && self.recovery == Recovery::None;
            let bytes = match self.base.profile.transition_growth {
                TransitionGrowth::Advance if recovered => Bytes::new(self.board.una() - una_before),
                _ => outcome.bytes,
            };
            let mut event = Ack::new(now, bytes, outcome.packets, self.board.una());
            event.rtt = outcome.sample;
            event.in_flight_before = in_flight_before;
            event.in_flight = self.base.in_flight;
            event.safe = advanced && network.record(self.base.flow.index).declared_lost == declared_lost;
            event.app_limited = outcome.app_limited;
            self.base.add_sample(&mut event);
            frame.delivered = Some(event);
        }
        if ack.ce_count > self.base.ce_count {
            let packets = u64::from(ack.ce_count - self.base.ce_count);
            self.base.ce_count = ack.ce_count;
            frame.marked = Some(Ecn { now, position: self.board.una(), in_flight: in_flight_before, packets });
        }
        self.base.controller.on_ack_frame(&frame, &self.base.rtt);
        if let Some(answer) = answer {
            self.base.on_answer(network, &answer);
        }
        self.base.after_event(network);
    }

    fn on_timer(&mut self, network: &mut Network) {
        let now = network.now();
        if self.reorder_at <= now {
            self.reorder_at = Timestamp::NEVER;
            self.board.rack.look_again();
            if let Some(loss) = self.detect_losses(network, false, 0, self.base.in_flight) {
                self.base.controller.on_loss(&loss, &self.base.rtt);
            }
        }
        if self.probe_at <= now {
            self.probe_at = Timestamp::NEVER;
            self.probe_due = true;
        } else if self.rto_at <= now {
            self.on_timeout(network);
        }
        if self.base.controller.next_wakeup() <= now {
            self.base.controller.on_timer(now, &self.base.rtt);
        }
        self.base.after_event(network);
    }

    fn pump(&mut self, network: &mut Network, source: &Source) {
        self.pacing_at = Timestamp::NEVER;
        if self.is_classic() && matches!(self.recovery, Recovery::Fast { .. }) {
            return self.pump_classic(network, source);
        }
        if let Recovery::Timeout { next, .. } = self.recovery
            && self.goes_back()
        {
            return self.pump_back(network, source, next);
        }
        if std::mem::take(&mut self.repair_head) && self.board.head().is_some_and(|head| !head.retransmitted) {
            // Regardless of the window, so never new data.
            let next = self.next(source).filter(|next| matches!(next, Next::Again(_)));
            self.send(network, next.unwrap_or(Next::Again(0)));
        }
        if std::mem::take(&mut self.probe_due) {
            self.probe(network, source);
        }
        self.pacing_at = self.pump_permitted(network, source);
    }

    fn next_timer(&mut self) -> Timestamp {
        let wakeup = self.base.controller.next_wakeup();
        self.rto_at.min(self.pacing_at).min(wakeup).min(self.reorder_at).min(self.probe_at)
    }

    fn next_offset(&self) -> u64 {
        self.board.high()
    }
}

#[cfg(test)]
mod tests;
