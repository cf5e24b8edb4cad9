//! The starts and the RTTs of the measured flows: `together`, `every=100ms`, `within=10ms` or `poisson:load=5mbit`, as
//! in `poisson:load=5mbit,flows=200,rtts=20ms/80ms`.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `every` | time between two consecutive starts | |
//! | `within` | each flow starts at a random time within this interval | |
//! | `load` | of `poisson`: the load that the flows offer | needed |
//! | `flows` | number of flows | the command's number for all cells |
//! | `rtts` | round-trip propagation delays, from which each flow draws one | the link's for all |

use std::ops::RangeInclusive;

use flowstart_core::rng::Substream;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use serde::Serialize;

use super::{InputError, Spec, Written};

/// The default arrival. The names of cells omit it.
pub const TOGETHER: &str = "together";

/// Arrivals at random.
const POISSON: &str = "poisson";

/// Loads that flows may offer.
const LOADS: RangeInclusive<Rate> = Rate::from_bits_per_sec(1_000)..=Rate::from_bits_per_sec(1_000_000_000_000);
/// Most measured flows of a cell.
pub const MAX_FLOWS: u32 = 10_000;
/// Most RTTs to draw from, and the longest of them.
const MOST_RTTS: usize = 1000;
const LONGEST_RTT: Duration = Duration::from_millis(100_000);
/// Longest time between two consecutive starts.
pub(super) const LONGEST_GAP: Duration = Duration::from_millis(1_000_000);

/// The law of the starts. In all laws the first flow starts immediately.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// At the same instant.
    Together,
    /// One after another, with this time between consecutive starts.
    Every(Duration),
    /// Each at a uniformly distributed time within this interval.
    Within(Duration),
    /// Exponentially distributed gaps whose mean makes the payload of the flows this load.
    Poisson(Rate),
}

/// The starts and the RTTs of a cell's measured flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrival {
    /// The law.
    pub process: Process,
    /// Number of flows; absent: the command's number for all cells.
    pub flows: Option<u32>,
    /// Round-trip propagation delays from which each flow draws one with equal probability; empty: the link's for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rtts: Vec<Duration>,
}

/// What users may write.
const FORMS: &str = "together, every=GAP, within=TIME or poisson:load=RATE, each with flows=N and rtts=RTT/RTT/...";

impl Arrival {
    /// Reads an arrival.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn parse(field: &str, text: &str) -> Result<Written<Self>, InputError> {
        let mut spec = Spec::parse(field, text)?;
        let named = match spec.name() {
            "" => "",
            _ => spec.choose(&[TOGETHER, POISSON], format_args!("use {FORMS}"))?,
        };
        let process = match named {
            TOGETHER => Some(Process::Together),
            POISSON => spec.within("load", LOADS)?.map(Process::Poisson),
            _ => {
                let gaps = Duration::ZERO..=LONGEST_GAP;
                match (spec.within("every", gaps.clone())?, spec.within("within", gaps)?) {
                    (Some(_), Some(_)) => return Err(spec.refused("every and within; allowed is one of them")),
                    (every, within) => every.map(Process::Every).or(within.map(Process::Within)),
                }
            }
        };
        let flows = spec.within("flows", 1..=MAX_FLOWS)?;
        let rtts: Vec<Duration> = spec.list("rtts")?;
        if rtts.len() > MOST_RTTS {
            return Err(spec.refused(format_args!("rtts has {} values; allowed are 1 to {MOST_RTTS}", rtts.len())));
        }
        if let Some(rtt) = rtts.iter().find(|rtt| **rtt > LONGEST_RTT) {
            return Err(spec.refused(format_args!("rtts has {rtt}; allowed is up to {LONGEST_RTT}")));
        }
        spec.finish()?;
        let process = process.ok_or_else(|| match named {
            POISSON => spec.refused("load is missing, as in poisson:load=5mbit"),
            _ => spec.refused(format_args!("use {FORMS}")),
        })?;
        let is_default = process == Process::Together && flows.is_none() && rtts.is_empty();
        let text = if is_default { TOGETHER } else { text };
        Ok(Written { text: text.to_owned(), value: Self { process, flows, rtts } })
    }

    /// RTTs of `count` flows of a repetition with this seed; `None` if all flows have the link's.
    pub fn draw_rtts(&self, count: u32, seed: u64) -> Vec<Option<Duration>> {
        let mut rng = Substream::new(seed, "measured rtts", 0);
        let mut draw = || self.rtts.get((rng.uniform() * self.rtts.len() as f64) as usize).copied();
        (0..count).map(|_| draw()).collect()
    }

    /// Offered load, if there is one.
    pub fn load(&self) -> Option<Rate> {
        match self.process {
            Process::Poisson(load) => Some(load),
            Process::Together | Process::Every(_) | Process::Within(_) => None,
        }
    }

    /// The time from the first start to the last of `count` flows of `mean_size` bytes, in the mean or at most.
    pub fn span(&self, count: u32, mean_size: f64) -> Duration {
        let gaps = f64::from(count.saturating_sub(1));
        match self.process {
            Process::Together => Duration::ZERO,
            Process::Within(span) => span,
            Process::Every(gap) => gap.scale(gaps),
            Process::Poisson(load) => Duration::from_secs(gaps * mean_size * 8.0 / (load.bits_per_sec().max(1) as f64)),
        }
    }

    /// Starts of `count` flows, relative to the first start, for transfers of `mean_size` bytes on average. `seed` is
    /// the repetition's: the gaps of two loads differ only by a factor.
    pub fn starts(&self, count: u32, mean_size: f64, seed: u64) -> Vec<Duration> {
        let mut rng = Substream::new(seed, "measured arrivals", 0);
        if let Process::Within(span) = self.process {
            let mut starts: Vec<Duration> = (0..count).map(|_| span.scale(rng.uniform())).collect();
            starts.sort_unstable();
            let first = starts.first().copied().unwrap_or(Duration::ZERO);
            return starts.into_iter().map(|start| start.saturating_sub(first)).collect();
        }
        let mut time = Duration::ZERO;
        (0..count)
            .map(|_| {
                let start = time;
                time += match self.process {
                    Process::Together | Process::Within(_) => Duration::ZERO,
                    Process::Every(gap) => gap,
                    Process::Poisson(load) => {
                        Duration::from_secs(rng.exponential(mean_size * 8.0 / load.bits_per_sec() as f64))
                    }
                };
                start
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_span_is_that_of_its_starts() {
        for text in ["together", "every=3s", "within=7s"] {
            let arrival = Arrival::parse("arrival", text).unwrap().value;
            let last = arrival.starts(100, 1e6, 7).last().copied().unwrap();
            let span = arrival.span(100, 1e6);
            assert!(last <= span && last.as_secs() >= 0.9 * span.as_secs(), "{text}: {last} of {span}");
        }
        let poisson = Arrival::parse("arrival", "poisson:load=8mbit").unwrap().value;
        let last = poisson.starts(10_000, 1e6, 7).last().copied().unwrap();
        assert!((last.as_secs() / poisson.span(10_000, 1e6).as_secs() - 1.0).abs() < 0.05, "{last}");
    }

    use super::*;

    fn arrival(text: &str) -> Arrival {
        Arrival::parse("--arrival", text).unwrap().value
    }

    #[test]
    fn flows_start_together_or_one_after_the_other() {
        assert_eq!(arrival("together").starts(3, 1e6, 1), [Duration::ZERO; 3]);
        let starts = arrival("every=100ms,flows=3").starts(3, 1e6, 1);
        assert_eq!(starts, [0, 100, 200].map(Duration::from_millis));
        assert_eq!(arrival("every=100ms,flows=3").flows, Some(3));
        assert_eq!(arrival("together:flows=8").flows, Some(8));
    }

    #[test]
    fn flows_start_within_a_time_at_times_of_the_seed() {
        let within = arrival("within=10ms,flows=1000");
        let starts = within.starts(1000, 1e6, 1);
        // The least of 1000 uniform times is about 10 us, the largest 10 us before the end, the mean of 10 ms is 5 ms
        // +- 0.1.
        assert!(starts[0] == Duration::ZERO && starts.is_sorted());
        assert!((9.8..10.0).contains(&starts[999].as_millis_f64()), "{:?}", starts[999]);
        let mean = starts.iter().map(|start| start.as_millis_f64()).sum::<f64>() / 1000.0;
        assert!((mean - 5.0).abs() < 0.4, "{mean}");
        assert_eq!(within.starts(1000, 5e6, 1), starts);
        assert_ne!(within.starts(1000, 1e6, 2), starts);
    }

    #[test]
    fn poisson_arrivals_offer_their_load() {
        // 1 MB a transfer at 8 Mbit/s: one a second. The standard deviation of the mean of 10,000 gaps is 1 %.
        let starts = arrival("poisson:load=8mbit").starts(10_001, 1e6, 1);
        let mean = starts[10_000].as_secs() / 10_000.0;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        // Twice the load is the same process in half the time.
        let double = arrival("poisson:load=16mbit").starts(10_001, 1e6, 1);
        assert!((starts[5_000].as_secs() / double[5_000].as_secs() - 2.0).abs() < 1e-6);
    }

    #[test]
    fn every_rtt_is_as_likely_as_the_others() {
        let rtts = arrival("poisson:load=8mbit,rtts=20ms/80ms/80ms/200ms").draw_rtts(10_000, 1);
        let count = |ms| rtts.iter().filter(|rtt| **rtt == Some(Duration::from_millis(ms))).count() as f64;
        // 10,000 draws of a quarter and of a half: standard deviations of 43 and 50.
        assert!(
            (count(20) - 2500.0).abs() < 130.0 && (count(80) - 5000.0).abs() < 150.0,
            "{} {}",
            count(20),
            count(80)
        );
        assert_eq!(count(20) + count(80) + count(200), 10_000.0);
        assert_eq!(arrival("together").draw_rtts(2, 1), [None, None]);
    }

    #[test]
    fn wrong_arrivals_say_what_is_allowed() {
        let error = |text: &str| Arrival::parse("--arrival", text).unwrap_err().to_string();
        assert!(error("uniform").contains("`uniform` is not known; use together, every=GAP"));
        assert!(error("poisson").contains("load is missing"));
        assert!(error("poisson:load=0mbit").contains("1kbit to 1000gbit"));
        assert!(error("together:load=5mbit").contains("`load` is not known here"));
        assert!(error("every=2000s").contains("0s to"));
        assert!(error("within=2000s").contains("within is 2000s; allowed is 0s to"), "{}", error("within=2000s"));
        assert!(error("every=1s,within=1s").contains("one of them"));
        assert!(error("every=100ms,flows=0").contains("1 to 10000"));
        assert!(error("flows=3").contains("every=GAP"));
        assert!(error("together:rtts=20ms/x").contains("rtts:"));
        assert!(error("together:rtts=").contains("rtts:"));
        assert!(error("together:rtts=200s").contains("up to 100s"));
    }
}
