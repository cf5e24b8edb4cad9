//! The window: a multiple of the bandwidth-delay product with room for what hosts hold, and its changes in recovery.

use super::{Mode, Model, Sample};
use crate::units::{Bytes, Rate};

/// `TCP_INIT_CWND`: segments of a window without any RTT sample; up to this amount of delivered data the window always
/// grows.
pub(super) const INIT_CWND: u64 = 10;
/// `bbr_min_tso_rate`: at lower rates packets leave one by one.
const MIN_TSO_RATE: Rate = Rate::from_bits_per_sec(1_200_000);
/// `sk_pacing_shift` of 10: the time whose packets leave together is 1/1024 s.
const BURSTS_PER_SECOND: u64 = 1024;
/// `GSO_MAX_SIZE` without the largest header: the most that leaves together.
const LARGEST_BURST: u64 = 65_535 - 320;
/// Most segments that leave together.
const MOST_SEGMENTS: u64 = 127;

/// TCP's state of loss recovery (`icsk_ca_state`), as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Congestion {
    /// Nothing is lost, or all of it is repaired.
    #[default]
    None,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Loss recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    state: Congestion,
    /// `prev_ca_state`: the same at the last acknowledgement.
    prev: Congestion,
    /// `packet_conservation`: in the first round of recovery as much leaves as is delivered.
    pub(super) conserve: bool,
    /// What was delivered when the last packet was declared lost.
    last_loss: Bytes,
    /// The host's recovery is over.
    finished: bool,
}

impl Recovery {
    /// A loss was found.
    pub(super) fn begin(&mut self) {
        self.state = Congestion::Recovery;
        self.finished = false;
    }

    /// A retransmission timeout.
    pub(super) fn time_out(&mut self) {
        self.state = Congestion::Loss;
        self.prev = Congestion::Loss;
    }

    /// A packet was declared lost when this much was delivered.
    pub(super) fn note_loss(&mut self, delivered: Bytes) {
        self.last_loss = delivered;
    }

    /// Everything that was sent before it is acknowledged or lost.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Recovery is over with the acknowledgement of a packet that was sent after the last loss was found: when this
    /// much was delivered.
    pub(super) fn update(&mut self, prior_delivered: Option<Bytes>) {
        if self.finished && prior_delivered.is_none_or(|prior| prior >= self.last_loss) {
            self.state = Congestion::None;
            self.finished = false;
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.state != Congestion::None
    }
}

impl Model {
    /// `bbr_cwnd_min_target`.
    pub(super) fn cwnd_min_target(&self) -> Bytes {
        self.segment * u64::from(self.config.min_pipe_cwnd)
    }

    /// `bbr_tso_segs_goal`: segments that leave together.
    pub(super) fn tso_segs_goal(&self) -> u64 {
        let bytes = (self.pacing_rate.bits_per_sec() / 8 / BURSTS_PER_SECOND).min(LARGEST_BURST);
        let least = if self.pacing_rate < MIN_TSO_RATE { 1 } else { 2 };
        (bytes / self.segment.get().max(1)).clamp(least, MOST_SEGMENTS)
    }

    /// `bbr_bdp`: segments of bandwidth * RTT * gain, rounded up.
    fn bdp(&self, bw: Rate, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt.get() else { return INIT_CWND };
        let bytes = bw.bits_per_sec() as f64 * min_rtt.as_nanos() as f64 / 8e9;
        libm::ceil(bytes * gain / self.segment.get().max(1) as f64) as u64
    }

    /// `bbr_quantization_budget`, of segments.
    fn quantization_budget(&self, segments: u64) -> Bytes {
        // One burst each that the sender holds back, that its interface splits, and that the receiver has not
        // acknowledged.
        let segments = segments + 3 * self.tso_segs_goal();
        // An even number, because every other segment is acknowledged.
        let even = segments.next_multiple_of(2);
        // Even a small bandwidth-delay product is exceeded when the gain is above 1.
        let probes = self.mode == Mode::ProbeBw && self.cycle.index == 0;
        self.segment * (even + if probes { 2 } else { 0 })
    }

    /// `bbr_inflight`.
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.quantization_budget(self.bdp(bw, gain))
    }

    /// `bbr_save_cwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = self.recovery.prev == Congestion::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, sample: &Sample) {
        let acked = sample.newly_acked;
        if acked > Bytes::ZERO && !self.set_cwnd_to_recover_or_restore(sample) {
            let segments = self.bdp(self.bw(), self.cwnd_gain);
            let extra = self.ack_aggregation_cwnd().get() / self.segment.get().max(1);
            let target = self.quantization_budget(segments + extra);
            if self.full_pipe.reached {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || self.delivered < self.segment * INIT_CWND {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.cwnd_min_target());
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.cwnd_min_target());
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`; returns whether packets are conserved, so nothing else changes the window.
    fn set_cwnd_to_recover_or_restore(&mut self, sample: &Sample) -> bool {
        if sample.newly_lost > Bytes::ZERO {
            self.cwnd = self.cwnd.saturating_sub(sample.newly_lost).max(self.segment);
        }
        let conserving = self.in_flight + sample.newly_acked;
        let Recovery { state, prev, .. } = self.recovery;
        if state == Congestion::Recovery && prev != Congestion::Recovery {
            self.recovery.conserve = true;
            self.rounds.restart(self.delivered);
            self.cwnd = conserving;
        } else if prev != Congestion::None && state == Congestion::None {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.recovery.conserve = false;
        }
        self.recovery.prev = state;
        if self.recovery.conserve {
            self.cwnd = self.cwnd.max(conserving);
        }
        self.recovery.conserve
    }
}
