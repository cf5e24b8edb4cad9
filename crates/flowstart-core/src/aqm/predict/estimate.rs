//! The RTT, the growth and the initial windows of flows in slow start, from arrivals and departures of one queue.
//!
//! In slow start every departure causes `g` arrivals an RTT later, and the initial windows come by themselves:
//! `A(t) = g D(t - R) + c`. With the right `g` and `c` the lag between the departure number `x / g` and the arrival
//! number `c + x` is the same for all `x`: the RTT behind this queue. The departures carry the queue's own delay, so
//! the lag does not contain it. It holds for bursts, for paced packets and for many flows.

use super::volume::VolumeLog;

/// Growths of the window in an RTT: an acknowledgement for each packet, and for every other one (RFC 5681, section 3.1,
/// without byte counting).
const GROWTHS: [f64; 2] = [2.0, 1.5];
/// Initial windows in segments: RFC 3390 at 1460 bytes, and RFC 6928.
pub(super) const INITIAL_WINDOWS: [f64; 2] = [3.0, 10.0];
/// Volumes at which the lag is read, over the last octave.
const LAGS: usize = 8;
/// How many of the worst the spread leaves out: a lag read across an idle gap is off by up to an RTT.
const LEFT_OUT: usize = 2;
/// Largest spread of the rest over the lag.
const MAX_SPREAD: f64 = 0.2;
/// The older lags over the recent ones; a linear load gives 2/3 when the initial windows do not matter.
const LAG_RATIO: core::ops::RangeInclusive<f64> = 0.8..=1.3;
/// Arrivals of an RTT over the departures of the RTT before: 1.5 or 2 in slow start, 1 in congestion avoidance.
const LEAST_GROWTH: f64 = 1.25;
/// The part of an RTT after the first packet in which no answers arrive: RTTs may differ.
const UNANSWERED: f64 = 0.7;
/// Most that arrives in it, over the initial windows.
const MAX_INITIAL: f64 = 1.25;
/// RTTs that can be found, in seconds.
const RTT: core::ops::RangeInclusive<f64> = 0.002..=1.5;

/// Knowledge about the flows in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    /// RTT behind the queue, in seconds.
    pub(super) rtt: f64,
    /// Packets that a departure causes.
    pub(super) growth: f64,
    /// Initial windows of all flows, in bytes.
    pub(super) initial: f64,
    /// Bytes that had arrived when it was made.
    pub(super) volume: f64,
}

impl Estimate {
    /// Bytes in flight when the response to current departures has arrived: the window that a mark meets.
    pub(super) fn window_ahead(&self, departed: f64) -> f64 {
        (self.growth - 1.0) * departed + self.initial
    }

    /// Bytes in flight now: the response to the departures of an RTT ago has arrived.
    pub(super) fn window_now(&self, arrived: f64) -> f64 {
        let responses = (arrived - self.initial).max(0.0);
        (responses * (self.growth - 1.0) / self.growth + self.initial).min(arrived)
    }
}

/// The hypothesis about growth and initial windows whose lags agree best, if any does.
///
/// `windows` is the number of flows times the segment size, `unasked` the minimum of the initial windows. A lag below
/// `silence`, the longest time without arrivals, is invalid, because growing flows send at least once an RTT.
pub(super) fn fit(
    now: f64,
    arrived: &VolumeLog,
    departed: &VolumeLog,
    [windows, unasked]: [f64; 2],
    segment: f64,
    silence: f64,
) -> Option<Estimate> {
    let mut best: Option<(f64, Estimate)> = None;
    for initial_window in INITIAL_WINDOWS {
        for growth in GROWTHS {
            let initial = (initial_window * windows).max(unasked);
            let responses = arrived.volume() - initial;
            // Of linear loads the lag grows with the volume, which shows only well beyond the initial windows.
            if responses < (2.0 * initial).max(8.0 * segment) {
                continue;
            }
            let lags = lags(arrived, departed, responses, growth, initial);
            let Some((spread, rtt)) = constant(lags) else { continue };
            if rtt >= silence
                && begins_with(arrived, initial + segment, rtt)
                && best.is_none_or(|(least, _)| spread < least)
            {
                best = Some((spread, Estimate { rtt, growth, initial, volume: arrived.volume() }));
            }
        }
    }
    best.filter(|(spread, estimate)| !is_steady(now, arrived, departed, estimate, *spread))
        .map(|(_, estimate)| estimate)
}

/// Whether only the initial windows arrived before the first possible answers.
fn begins_with(arrived: &VolumeLog, initial: f64, rtt: f64) -> bool {
    arrived.first().is_none_or(|first| arrived.at(first.time + UNANSWERED * rtt) <= MAX_INITIAL * initial)
}

/// Whether windows that do not grow agree as well: then each departure causes one arrival, over the volume and over the
/// last RTT.
fn is_steady(now: f64, arrived: &VolumeLog, departed: &VolumeLog, estimate: &Estimate, spread: f64) -> bool {
    let responses = arrived.volume() - estimate.initial;
    let lags = lags(arrived, departed, responses, 1.0, estimate.initial);
    if deviation(&lags) / estimate.rtt <= spread {
        return true;
    }
    let answers = arrived.volume() - arrived.at(now - estimate.rtt);
    let causes = departed.at(now - estimate.rtt) - departed.at(now - 2.0 * estimate.rtt);
    answers < LEAST_GROWTH * causes
}

/// Lags over the last octave of the responses, the most recent first; -1 where a volume is not known.
fn lags(arrived: &VolumeLog, departed: &VolumeLog, responses: f64, growth: f64, initial: f64) -> [f64; LAGS] {
    let mut lags = [0.0; LAGS];
    for (index, lag) in lags.iter_mut().enumerate() {
        let response = responses * (1.0 - index as f64 / (2.0 * (LAGS as f64 - 1.0)));
        let times = (arrived.reached(initial + response), departed.reached(response / growth));
        *lag = match times {
            (Some(arrival), Some(departure)) => arrival.time - departure.time,
            _ => -1.0,
        };
    }
    lags
}

/// Mean deviation from the median of those that are not left out.
fn deviation(lags: &[f64; LAGS]) -> f64 {
    let middle = median(lags);
    let mut deviations = lags.map(|lag| (lag - middle).abs());
    deviations.sort_unstable_by(f64::total_cmp);
    let kept = LAGS - LEFT_OUT;
    deviations[..kept].iter().sum::<f64>() / kept as f64
}

/// The spread of all lags over their median, and the lag of the recent half, if they are the same.
fn constant(lags: [f64; LAGS]) -> Option<(f64, f64)> {
    if lags.iter().filter(|lag| **lag < *RTT.start()).count() > 1 {
        return None;
    }
    let recent = median(&lags[..LAGS / 2]);
    let older = median(&lags[LAGS / 2..]);
    if !RTT.contains(&recent) || !LAG_RATIO.contains(&(older / recent)) {
        return None;
    }
    let spread = deviation(&lags) / median(&lags);
    (spread < MAX_SPREAD).then_some((spread, recent))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = [0.0; LAGS];
    let sorted = &mut sorted[..values.len()];
    sorted.copy_from_slice(values);
    sorted.sort_unstable_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow start in bursts through a link that takes `service` seconds a packet: arrivals at the rounds' beginnings.
    fn slow_start(rtt: f64, initial_window: u32, growth: f64, rounds: u32, service: f64) -> (VolumeLog, VolumeLog) {
        let (mut arrived, mut departed) = (VolumeLog::new(), VolumeLog::new());
        let mut window = f64::from(initial_window);
        for round in 0..rounds {
            for packet in 0..window as u32 {
                // Acknowledgements are clocked by the departures: `growth` packets for each.
                let start = f64::from(round) * rtt;
                arrived.add(1500.0, start + service * (f64::from(packet) / growth).floor(), 0.0);
            }
            for packet in 0..window as u32 {
                departed.add(1500.0, f64::from(round) * rtt + service * f64::from(packet + 1), 0.0);
            }
            window *= growth;
        }
        (arrived, departed)
    }

    #[test]
    fn the_rtt_growth_and_initial_window_are_found() {
        for (initial_window, growth, rounds) in [(10, 2.0, 5), (3, 2.0, 6), (10, 1.5, 6)] {
            let (arrived, departed) = slow_start(0.1, initial_window, growth, rounds, 1e-4);
            let estimate = fit(f64::INFINITY, &arrived, &departed, [1500.0, 0.0], 1500.0, 0.0).unwrap();
            assert!((estimate.rtt / 0.1 - 1.0).abs() < 0.1, "{initial_window} {growth}: {estimate:?}");
            assert_eq!(estimate.growth, growth);
        }
    }

    #[test]
    fn a_silence_longer_than_the_lag_refutes_it() {
        let (arrived, departed) = slow_start(0.1, 10, 2.0, 5, 1e-4);
        assert!(fit(f64::INFINITY, &arrived, &departed, [1500.0, 0.0], 1500.0, 0.2).is_none());
    }

    #[test]
    fn a_constant_rate_has_no_lag_that_stays() {
        let (mut arrived, mut departed) = (VolumeLog::new(), VolumeLog::new());
        for packet in 0..2000 {
            arrived.add(1500.0, 0.01 * f64::from(packet), 0.0);
            departed.add(1500.0, 0.01 * f64::from(packet) + 0.001, 0.0);
        }
        assert!(fit(f64::INFINITY, &arrived, &departed, [1500.0, 0.0], 1500.0, 0.0).is_none());
    }
}
