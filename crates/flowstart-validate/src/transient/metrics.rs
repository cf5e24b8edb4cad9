//! What is measured of load transients.

use flowstart_core::time::{Duration, Timestamp};

/// Slow start that reaches more than this many available bandwidth-delay products was not ended in time: the link had
/// been full for a whole doubling.
const MISSED_ABOVE: f64 = 2.0;
/// Slow start that ends below this part of the available bandwidth-delay product was ended by a false signal: a
/// doubling early.
const FALSE_BELOW: f64 = 0.5;

/// One transient.
#[derive(Clone, Debug, PartialEq)]
pub struct Transient {
    /// Start, a moment before the first data packet left.
    pub start: Timestamp,
    /// When all flows of it were complete; of the endless one ten RTTs after the last flow had left slow start.
    pub end: Timestamp,
    /// Whether its transfers had an end.
    pub finite: bool,
    /// Longest time that a packet of anybody waited; `None` if nothing left.
    pub peak: Option<Duration>,
    /// Time that 99 % of the packets did not exceed.
    pub p99: Option<Duration>,
    /// Sum over flows of the largest window of slow start over the flow's RTT, over the available rate: 1 where slow
    /// start ended with the link just full. A flow that had not left slow start counts with the window that it had.
    pub exit_load: f64,
    /// Flows that left slow start.
    pub exits: u32,
    /// Mean over flows of the time from the start of the transient's flow, its first data, to its last payload byte;
    /// `None` unless all are complete.
    pub fct: Option<Duration>,
    /// Data packets of the flows that were dropped.
    pub dropped: u64,
    /// Packets of the flows that the queue marked.
    pub marked: u64,
    /// Retransmission timeouts of the flows.
    pub timeouts: u64,
    /// Wire bytes of everybody over the capacity in the ten RTTs after the last flow left slow start; of the endless
    /// one only.
    pub utilization: Option<f64>,
}

impl Transient {
    /// No signal came in time: slow start went on to more than twice the available bandwidth-delay product.
    pub fn is_missed(&self) -> bool {
        self.exit_load > MISSED_ABOVE
    }

    /// A signal came although the flows did not fill the link: slow start ended below half of the available
    /// bandwidth-delay product.
    pub fn is_false(&self) -> bool {
        self.exits > 0 && self.exit_load < FALSE_BELOW
    }
}

/// A run: means over its transients.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// The transients in their order, the endless one last.
    pub transients: Vec<Transient>,
    /// Round-trip time of the cell, in which delays are also told.
    pub rtt: Duration,
}

impl Metrics {
    /// Mean of what `value` gives, of the transients that have it; NaN if none does.
    fn mean(&self, value: impl Fn(&Transient) -> Option<f64>) -> f64 {
        let (sum, count) = self.transients.iter().filter_map(value).fold((0.0, 0u32), |(s, n), v| (s + v, n + 1));
        sum / f64::from(count)
    }

    /// Mean of the peak queuing delays in seconds.
    pub fn peak_secs(&self) -> f64 {
        self.mean(|transient| transient.peak.map(Duration::as_secs))
    }

    /// The same in RTTs.
    pub fn peak_rtts(&self) -> f64 {
        self.peak_secs() / self.rtt.as_secs()
    }

    /// Mean of the 99th percentiles of the queuing delay in seconds.
    pub fn p99_secs(&self) -> f64 {
        self.mean(|transient| transient.p99.map(Duration::as_secs))
    }

    /// Mean of the completion times in seconds; NaN unless all transfers are complete.
    pub fn fct_secs(&self) -> f64 {
        let complete = self.transients.iter().all(|transient| !transient.finite || transient.fct.is_some());
        if complete { self.mean(|transient| transient.fct.map(Duration::as_secs)) } else { f64::NAN }
    }

    /// Mean of [`Transient::exit_load`].
    pub fn exit_load(&self) -> f64 {
        self.mean(|transient| Some(transient.exit_load))
    }

    /// Utilization in the ten RTTs after the endless flows left slow start; `None` if they did not.
    pub fn utilization(&self) -> Option<f64> {
        self.transients.last().and_then(|transient| transient.utilization)
    }

    /// Mean number of dropped data packets.
    pub fn dropped(&self) -> f64 {
        self.mean(|transient| Some(transient.dropped as f64))
    }

    /// Mean number of marks.
    pub fn marked(&self) -> f64 {
        self.mean(|transient| Some(transient.marked as f64))
    }

    /// Retransmission timeouts in all.
    pub fn timeouts(&self) -> u64 {
        self.transients.iter().map(|transient| transient.timeouts).sum()
    }

    /// Transients without a signal in time.
    pub fn missed(&self) -> usize {
        self.transients.iter().filter(|transient| transient.is_missed()).count()
    }

    /// Transients with a false signal.
    pub fn false_signals(&self) -> usize {
        self.transients.iter().filter(|transient| transient.is_false()).count()
    }

    /// Whether the completion time is at most `fct` times that of `oracle`, and the peak delay at most so many RTTs
    /// above. What is undefined is not within anything.
    pub fn is_within(&self, oracle: &Self, fct: f64, peak_rtts: f64) -> bool {
        self.fct_secs() <= fct * oracle.fct_secs() && self.peak_rtts() <= oracle.peak_rtts() + peak_rtts
    }

    /// Whether the cell is won: 1.05 of the oracle's completion time, and 0.25 RTT above its peak delay.
    pub fn wins_against(&self, oracle: &Self) -> bool {
        self.is_within(oracle, 1.05, 0.25)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient(exit_load: f64, exits: u32, peak_ms: u64, fct_ms: Option<u64>) -> Transient {
        Transient {
            start: Timestamp::ZERO,
            end: Timestamp::ZERO,
            finite: true,
            peak: Some(Duration::from_millis(peak_ms)),
            p99: None,
            exit_load,
            exits,
            fct: fct_ms.map(Duration::from_millis),
            dropped: 0,
            marked: 0,
            timeouts: 0,
            utilization: None,
        }
    }

    fn metrics(transients: Vec<Transient>) -> Metrics {
        Metrics { transients, rtt: Duration::from_millis(100) }
    }

    #[test]
    fn a_doubling_late_is_missed_and_a_doubling_early_false() {
        let judged = [(2.01, 1), (2.0, 1), (0.5, 1), (0.49, 1), (0.49, 0)]
            .map(|(load, exits)| transient(load, exits, 0, None))
            .map(|transient| (transient.is_missed(), transient.is_false()));
        // A transfer that ends within slow start below the capacity was not signalled.
        assert_eq!(judged, [(true, false), (false, false), (false, false), (false, true), (false, false)]);
    }

    #[test]
    fn a_cell_is_won_by_completion_time_and_peak_delay_together() {
        let oracle = metrics(vec![transient(1.0, 1, 20, Some(1000)), transient(1.0, 1, 40, Some(1000))]);
        assert_eq!((oracle.peak_secs(), oracle.fct_secs()), (0.03, 1.0));
        let wins = |peak, fct| metrics(vec![transient(1.0, 1, peak, fct)]).wins_against(&oracle);
        // At most 1050 ms, and at most 30 + 25 ms.
        assert!(wins(55, Some(1050)) && !wins(56, Some(1050)) && !wins(55, Some(1051)));
        assert!(!wins(10, None));
    }
}
