//! `ProbeBW`: the cycle of pacing gains.

use super::{Mode, Model, Sample};
use crate::rng::{mix, name_hash, noise};
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;

/// `bbr_pacing_gain`: probes for more bandwidth, drains the resulting queue, then cruises.
const PACING_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `bbr_cycle_rand`: the cycle begins with one of this many phases, never with the draining one.
const FIRST_PHASES: f64 = 7.0;

/// Where the gain cycle stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GainCycle {
    /// `cycle_idx`.
    pub(super) index: usize,
    /// `cycle_mstamp`: when the phase began.
    stamp: Timestamp,
}

impl GainCycle {
    /// Pacing rate over bandwidth in this phase.
    pub(super) fn gain(&self) -> f64 {
        PACING_GAINS[self.index]
    }

    /// `bbr_advance_cycle_phase`.
    fn advance(&mut self, now: Timestamp) {
        self.index = (self.index + 1) % PACING_GAINS.len();
        self.stamp = now;
    }
}

impl Model {
    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle_phase(&mut self, sample: &Sample) {
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(sample) {
            self.cycle.advance(sample.now);
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn is_next_cycle_phase(&self, sample: &Sample) -> bool {
        let min_rtt = self.min_rtt.get().unwrap_or(Duration::MAX);
        let is_full_length = sample.now.since(self.cycle.stamp) > min_rtt;
        let in_flight = self.in_network_at_departure(sample.now, sample.prior_in_flight);
        if self.pacing_gain > 1.0 {
            // Until that much is in flight, unless the path does not hold it.
            let filled = in_flight >= self.inflight(self.max_bw, self.pacing_gain);
            return is_full_length && (sample.newly_lost > Bytes::ZERO || filled);
        }
        is_full_length || (self.pacing_gain < 1.0 && in_flight <= self.inflight(self.max_bw, 1.0))
    }

    /// `bbr_reset_probe_bw_mode`, with a hash of counters for the dice.
    pub(super) fn reset_probe_bw_mode(&mut self, now: Timestamp, trigger: &'static str) {
        const ROLE: u64 = name_hash("bbr gain cycle");
        let position = mix(now.as_nanos()) ^ self.delivered.get();
        let drawn = (noise(u64::from(self.config.seed), ROLE, position) * FIRST_PHASES) as usize;
        self.cycle.index = PACING_GAINS.len() - 1 - drawn;
        self.cycle.advance(now);
        self.enter(Mode::ProbeBw, trigger);
    }
}
