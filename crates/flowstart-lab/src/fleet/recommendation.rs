//! The scheme that a fleet should use.
//!
//! The gain of a scheme is the ratio of geometric means of completion times over the fleet, the baseline's over the
//! scheme's: each kind of transfer counts by its share, and not by how long it takes. A repetition of all kinds is one
//! observation, since their worlds have the same seeds. Intervals of gains hold for all schemes at once, those of the
//! kinds that get slower for all kinds at once.
//!
//! The regret of a scheme in a kind is what it takes longer than the scheme with the smallest mean there. The smallest
//! of several means is too small by chance, so regret is at most a little too large.

use flowstart_core::rng::{mix, name_hash};
use flowstart_statistics::{LEVEL, bca, mean, simultaneous_ratios};
use serde::Serialize;

use super::measured::{Fleet, Measured, Part};

/// Resamples of intervals of quantiles, which are costly.
const RESAMPLES_OF_QUANTILES: u32 = 2_000;
/// Gains this close to the largest count as equal to it, if they cannot be told apart.
const EQUAL: f64 = 0.01;

/// The most that a scheme may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Budget {
    /// Bytes sent twice over the payload, in the mean over the fleet.
    pub max_inflation: Option<f64>,
    /// What others deliver less, in the mean over the fleet, over what they deliver less beside the baseline.
    pub max_harm: Option<f64>,
}

/// A scheme for a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct OfScheme {
    /// The scheme as the user wrote it.
    pub scheme: String,
    /// How many times as fast as with the baseline a transfer is; `None` where transfers fail.
    pub gain: Option<f64>,
    /// Its simultaneous interval; the baseline has none.
    pub gain_ci: Option<[f64; 2]>,
    /// Median of completion times over the fleet, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its 95 % interval.
    pub p50_ci95: Option<[f64; 2]>,
    /// The time within which 95 % of the fleet's transfers complete, in milliseconds.
    pub p95_ms: Option<f64>,
    /// Its 95 % interval.
    pub p95_ci95: Option<[f64; 2]>,
    /// What transfers take longer than with the best scheme of their kind, over that, in the mean over the fleet.
    pub regret: Option<f64>,
    /// The kinds with the largest regret have at least this, and 5 % of the transfers.
    pub regret_p95: Option<f64>,
    /// Bytes sent twice over the payload, in the mean over the fleet.
    pub inflation: f64,
    /// What others deliver less, in Mbit, in the mean over the transfers that have others.
    pub harm_mbit: Option<f64>,
    /// That over the baseline's.
    pub harm_ratio: Option<f64>,
    /// The part of the fleet's transfers that do not complete.
    pub failed: f64,
    /// Why it is not offered, whatever it gains; `None`: it is.
    pub refused: Option<String>,
}

/// How a scheme changes one kind of transfer.
#[derive(Clone, Debug, Serialize)]
pub struct OfKind {
    /// What the table calls it.
    pub name: String,
    /// Whether these are its transfers over known paths.
    pub known: bool,
    /// Their share of all transfers.
    pub share: f64,
    /// How many times as fast as with the baseline they are.
    pub gain: Option<f64>,
    /// Its interval, which holds for all kinds at once.
    pub gain_ci: Option<[f64; 2]>,
}

/// What a fleet should use.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The scheme; the baseline, if no other is measurably faster within the budget.
    pub scheme: String,
    /// The others that are offered and cannot be told from it, the fastest first.
    pub as_good: Vec<String>,
    /// The confidence level of all intervals.
    pub level: f64,
    /// Repetitions of each kind of transfer.
    pub reps: u32,
    /// Every scheme, in the order of the question.
    pub schemes: Vec<OfScheme>,
    /// The recommended scheme in each kind, the largest gains last.
    pub kinds: Vec<OfKind>,
}

/// Before and after by repetition, as far as both are there.
type Pairs = Vec<Option<(f64, f64)>>;

impl Recommendation {
    /// The recommendation for a fleet within a budget.
    pub fn of(fleet: &Fleet, budget: &Budget) -> Self {
        let geometric: Vec<Vec<Option<f64>>> = (0..fleet.schemes.len()).map(|place| fleet.geometric(place)).collect();
        let against = |base: usize| -> (Vec<Pairs>, Vec<Option<[f64; 2]>>) {
            let pairs: Vec<Pairs> = geometric.iter().map(|one| paired(&geometric[base], one)).collect();
            let intervals = fleet.intervals(&pairs);
            (pairs, intervals)
        };
        let (pairs, intervals) = against(0);
        let mut schemes: Vec<OfScheme> = (0..fleet.schemes.len())
            .map(|place| fleet.of_scheme(place, gain(&pairs[place]), intervals[place].filter(|_| place > 0)))
            .collect();
        let (base_harm, base_failed) = (schemes[0].harm_mbit, schemes[0].failed);
        for one in &mut schemes {
            one.harm_ratio = one.harm_mbit.zip(base_harm).filter(|(_, base)| *base > 0.0).map(|(own, base)| own / base);
            one.refused = refused(one, base_failed, budget);
        }
        let offered = |place: usize| schemes[place].refused.is_none();
        let is_faster = |place: &usize| offered(*place) && intervals[*place].is_some_and(|[low, _]| low > 1.0);
        let gain_of = |place: usize| schemes[place].gain.unwrap_or(0.0);
        let mut faster: Vec<usize> = (1..schemes.len()).filter(is_faster).collect();
        faster.sort_by(|a, b| gain_of(*b).total_cmp(&gain_of(*a)));
        let best = faster.first().copied().unwrap_or(0);
        // Of those that are as fast as the fastest, the one that sends least.
        let (_, beside_best) = against(best);
        let is_equal =
            |place: usize| place == best || beside_best[place].is_some_and(|[low, high]| low <= 1.0 && high >= 1.0);
        let close =
            faster.iter().filter(|place| is_equal(**place) && gain_of(**place) >= gain_of(best) * (1.0 - EQUAL));
        let chosen =
            close.copied().min_by(|a, b| schemes[*a].inflation.total_cmp(&schemes[*b].inflation)).unwrap_or(best);
        let others = faster.iter().filter(|place| **place != chosen && is_equal(**place));
        Self {
            scheme: fleet.schemes[chosen].clone(),
            as_good: others.map(|place| fleet.schemes[*place].clone()).collect(),
            level: LEVEL,
            reps: fleet.reps,
            kinds: fleet.of_kinds(chosen),
            schemes,
        }
    }
}

/// Why a scheme is not offered.
fn refused(one: &OfScheme, base_failed: f64, budget: &Budget) -> Option<String> {
    if one.failed > base_failed {
        return Some(format!("{:.2} % of its transfers fail", one.failed * 100.0));
    }
    let beyond = |value: Option<f64>, most: Option<f64>| value.zip(most).filter(|(value, most)| value > most);
    if let Some((value, most)) = beyond(Some(one.inflation), budget.max_inflation) {
        return Some(format!("it sends {:.1} % twice, more than {:.1} %", value * 100.0, most * 100.0));
    }
    let (value, most) = beyond(one.harm_ratio, budget.max_harm)?;
    Some(format!("others lose {value:.2} times as much, more than {most:.2} times"))
}

fn paired(before: &[Option<f64>], after: &[Option<f64>]) -> Pairs {
    before.iter().zip(after).map(|(before, after)| before.zip(*after)).collect()
}

/// The mean before over the mean after.
fn gain(pairs: &Pairs) -> Option<f64> {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().flatten().copied().unzip();
    Some(mean(&before)? / mean(&after)?)
}

impl Fleet {
    /// The geometric mean of a scheme's completion times over the fleet, by repetition.
    fn geometric(&self, scheme: usize) -> Vec<Option<f64>> {
        let of_rep = |rep: usize| {
            let logarithms = self.parts.iter().map(|part| {
                let fct = part.schemes[scheme].fct_ms.get(rep).copied().flatten()?;
                Some(part.share * fct.ln())
            });
            logarithms.sum::<Option<f64>>().map(f64::exp)
        };
        (0..self.reps as usize).map(of_rep).collect()
    }

    fn intervals(&self, family: &[Pairs]) -> Vec<Option<[f64; 2]>> {
        let seed = mix(self.seed ^ name_hash("fleet"));
        let all = simultaneous_ratios(family, LEVEL, flowstart_statistics::RESAMPLES, seed);
        all.into_iter().map(|one| one.map(|interval| [interval.low, interval.high])).collect()
    }

    /// The mean over the fleet of what a part has; `None` where no part has it.
    fn mean_of(&self, of: impl Fn(&Part) -> Option<f64>) -> Option<f64> {
        let (sum, shares) = self
            .parts
            .iter()
            .filter_map(|part| Some((of(part)?, part.share)))
            .fold((0.0, 0.0), |(sum, shares), (value, share)| (sum + value * share, shares + share));
        (shares > 0.0).then(|| sum / shares)
    }

    fn of_scheme(&self, place: usize, gain: Option<f64>, gain_ci: Option<[f64; 2]>) -> OfScheme {
        let [p50, p95] = [0.5, 0.95].map(|part| self.quantile(place, part));
        let regrets: Vec<(f64, f64)> =
            self.parts.iter().filter_map(|part| Some((regret(part, place)?, part.share))).collect();
        let is_whole = regrets.len() == self.parts.len();
        let failed = self.mean_of(|part| Some(part.schemes[place].failed())).unwrap_or(0.0);
        OfScheme {
            scheme: self.schemes[place].clone(),
            gain,
            gain_ci,
            p50_ms: p50.map(|(value, _)| value),
            p50_ci95: p50.and_then(|(_, interval)| interval),
            p95_ms: p95.map(|(value, _)| value),
            p95_ci95: p95.and_then(|(_, interval)| interval),
            regret: self.mean_of(|part| regret(part, place)).filter(|_| is_whole),
            regret_p95: weighted_quantile(regrets, 0.95).filter(|_| is_whole),
            inflation: self.mean_of(|part| mean(&part.schemes[place].inflation)).unwrap_or(0.0),
            harm_mbit: self.mean_of(|part| mean(&part.schemes[place].harm_mbit)),
            harm_ratio: None,
            failed,
            refused: None,
        }
    }

    /// A quantile of a scheme's completion times over the fleet and its interval; `None` if transfers failed.
    fn quantile(&self, scheme: usize, probability: f64) -> Option<(f64, Option<[f64; 2]>)> {
        let mut all: Vec<(f64, f64, u32)> = Vec::new();
        for part in &self.parts {
            for (rep, fct) in (0..).zip(&part.schemes[scheme].fct_ms) {
                all.push(((*fct)?, part.share, rep));
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A repetition that was drawn twice counts twice.
        let of = |drawn: &[u32]| {
            let mut counts = vec![0.0; self.reps as usize];
            drawn.iter().for_each(|rep| counts[*rep as usize] += 1.0);
            let weighted = || all.iter().map(|(fct, share, rep)| (*fct, share * counts[*rep as usize]));
            first_beyond(weighted(), probability * weighted().map(|(_, weight)| weight).sum::<f64>())
        };
        let reps: Vec<u32> = (0..self.reps).collect();
        let seed = mix(self.seed ^ name_hash("quantile"));
        let interval = bca(&reps, of, LEVEL, RESAMPLES_OF_QUANTILES, seed);
        Some((of(&reps)?, interval.map(|estimate| [estimate.interval.low, estimate.interval.high])))
    }

    /// A scheme in each kind, the smallest gain first.
    fn of_kinds(&self, scheme: usize) -> Vec<OfKind> {
        let pairs: Vec<Pairs> =
            self.parts.iter().map(|part| paired(&part.schemes[0].fct_ms, &part.schemes[scheme].fct_ms)).collect();
        let of_part = |((part, pairs), gain_ci): ((&Part, &Pairs), Option<[f64; 2]>)| OfKind {
            name: self.population.kinds[part.kind].name.clone(),
            known: part.is_known,
            share: part.share,
            gain: gain(pairs),
            gain_ci,
        };
        let mut kinds: Vec<OfKind> = self.parts.iter().zip(&pairs).zip(self.intervals(&pairs)).map(of_part).collect();
        kinds.sort_by(|a, b| a.gain.unwrap_or(0.0).total_cmp(&b.gain.unwrap_or(0.0)));
        kinds
    }
}

/// What a scheme takes longer in a part than the best one there, over that.
fn regret(part: &Part, scheme: usize) -> Option<f64> {
    let best = part.schemes.iter().filter_map(Measured::mean_fct_ms).min_by(f64::total_cmp)?;
    Some(part.schemes[scheme].mean_fct_ms()? / best - 1.0)
}

/// The smallest value that, with all smaller ones, has this part of the weight.
fn weighted_quantile(mut values: Vec<(f64, f64)>, probability: f64) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    first_beyond(values.into_iter(), probability * all)
}

/// The first of ascending values at which the weights reach `weight`.
fn first_beyond(values: impl Iterator<Item = (f64, f64)>, weight: f64) -> Option<f64> {
    // The sum of weights is as exact as its rounding.
    let weight = weight * (1.0 - 1e-12);
    let mut sum = 0.0;
    let mut last = None;
    for (value, own) in values {
        sum += own;
        last = Some(value);
        if sum >= weight {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::population::Population;
    use super::*;

    /// Two kinds of three quarters and one quarter, and the completion times of each scheme in both.
    fn fleet(times: &[(&str, [f64; 2], f64)]) -> Fleet {
        let text = "weight,size,rate,rtt\n3,300KB,50mbit,30ms\n1,2MB,10mbit,80ms\n";
        let population = Population::from_text(text).unwrap();
        let part = |kind: usize, share: f64| Part {
            kind,
            is_known: true,
            share,
            schemes: times
                .iter()
                .map(|(_, times, inflation)| Measured {
                    // Each repetition is a little slower than the one before, in all schemes.
                    fct_ms: (0..10).map(|rep| Some(times[kind] * (1.0 + 0.01 * f64::from(rep)))).collect(),
                    inflation: vec![*inflation; 10],
                    harm_mbit: vec![1.0 + inflation; 10],
                })
                .collect(),
        };
        let schemes = times.iter().map(|(name, ..)| (*name).to_owned()).collect();
        Fleet { population, schemes, reps: 10, seed: 1, parts: vec![part(0, 0.75), part(1, 0.25)] }
    }

    #[test]
    fn shares_weigh_gains_and_lengths_do_not() {
        let fleet = fleet(&[("base", [100.0, 10_000.0], 0.0), ("fast", [50.0, 20_000.0], 0.1)]);
        let told = Recommendation::of(&fleet, &Budget::default());
        // Three quarters twice as fast, one quarter half as fast: 2^(3/4 - 1/4).
        assert!((told.schemes[1].gain.unwrap() - 2_f64.sqrt()).abs() < 1e-9, "{told:?}");
        assert_eq!(told.scheme, "fast");
        assert_eq!(told.kinds.iter().map(|kind| &*kind.name).collect::<Vec<_>>(), ["line-3", "line-2"]);
        assert!(told.kinds[0].gain_ci.is_some_and(|[low, high]| (low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9));
        // The best of the first kind is the scheme, that of the second the baseline: 0 and 1.
        assert!((told.schemes[1].regret.unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(told.schemes[1].regret_p95, Some(1.0));
        // Three quarters of the transfers are the short ones.
        assert!((50.0..55.0).contains(&told.schemes[1].p50_ms.unwrap()));
        assert!(told.schemes[1].p95_ms.unwrap() >= 20_000.0);
    }

    #[test]
    fn a_budget_refuses_what_costs_more() {
        let fleet = fleet(&[
            ("base", [100.0, 1000.0], 0.0),
            ("fast", [50.0, 500.0], 0.2),
            ("cheap", [80.0, 800.0], 0.01),
            ("slow", [120.0, 1000.0], 0.0),
        ]);
        let scheme = |budget: Budget| Recommendation::of(&fleet, &budget).scheme;
        assert_eq!(scheme(Budget::default()), "fast");
        assert_eq!(scheme(Budget { max_inflation: Some(0.05), ..Budget::default() }), "cheap");
        assert_eq!(scheme(Budget { max_harm: Some(1.1), ..Budget::default() }), "cheap");
        assert_eq!(scheme(Budget { max_inflation: Some(0.0), ..Budget::default() }), "base");
        let told = Recommendation::of(&fleet, &Budget { max_harm: Some(1.1), ..Budget::default() });
        assert_eq!(told.schemes[1].refused.as_deref(), Some("others lose 1.20 times as much, more than 1.10 times"));
    }

    #[test]
    fn of_equals_the_one_that_sends_least_is_offered() {
        let mut fleet =
            fleet(&[("base", [100.0, 1000.0], 0.0), ("wasteful", [50.0, 500.0], 0.2), ("careful", [50.1, 501.0], 0.0)]);
        // They scatter more than they differ.
        for part in &mut fleet.parts {
            for (rep, fct) in part.schemes[2].fct_ms.iter_mut().enumerate() {
                *fct = fct.map(|fct| fct * if rep % 2 == 0 { 1.02 } else { 0.98 });
            }
        }
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!((&*told.scheme, &told.as_good[..]), ("careful", &["wasteful".to_owned()][..]));
    }

    #[test]
    fn who_fails_more_is_not_offered_and_gains_nothing_by_it() {
        let mut fleet = fleet(&[("base", [100.0, 1000.0], 0.0), ("fast", [50.0, 500.0], 0.0)]);
        fleet.parts[1].schemes[1].fct_ms[3] = None;
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!(told.scheme, "base");
        assert_eq!(told.schemes[1].refused.as_deref(), Some("2.50 % of its transfers fail"));
        assert_eq!((told.schemes[1].p50_ms, told.schemes[1].regret), (None, None));
    }
}
