//! The start that a fleet should use, or the queue that its links should have.
//!
//! The gain of a choice is the ratio of geometric means of completion times over the fleet, the baseline's over the
//! choice's: each kind of transfer counts by its share, and not by how long it takes. A repetition of all kinds is one
//! observation, since their worlds have the same seeds. Intervals of gains hold for all choices at once, those of the
//! kinds that get slower for all kinds at once.
//!
//! The regret of a choice in a kind is what it takes longer than the choice with the smallest mean there. The smallest
//! of several means is too small by chance, so regret is at most a little too large.

use flowstart_core::rng::{mix, name_hash};
use flowstart_report::Kind;
use flowstart_statistics::{LEVEL, bca, mean, simultaneous_ratios, weighted_quantile, weighted_quantile_of_sorted};
use serde::Serialize;

use super::choices::Subject;
use super::measured::{Fleet, Measured, Part};
use crate::results::comparison::kind;

/// Resamples of intervals of quantiles, which are costly.
const RESAMPLES_OF_QUANTILES: u32 = 2_000;
/// A cost this little above its limit, relative to it, is within it: sums round.
const ROUNDING: f64 = 1e-9;
/// Gains this close to the largest count as equal to it, if they cannot be told apart.
const EQUAL: f64 = 0.01;
/// A shorter queue is no reason for one with which transfers may be slower by more than this.
const AS_FAST: f64 = 0.05;

/// The most that a choice may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Budget {
    /// Bytes sent twice over the payload, in the mean over the fleet.
    pub max_inflation: Option<f64>,
    /// What others deliver less, in the mean over the fleet, over what they deliver less beside the baseline.
    pub max_harm: Option<f64>,
}

/// A choice for a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct OfChoice {
    /// The choice as the user wrote it.
    pub choice: String,
    /// How many times as fast as with the baseline a transfer is; `None` where transfers fail.
    pub gain: Option<f64>,
    /// Its simultaneous interval; the baseline has none.
    pub gain_ci: Option<[f64; 2]>,
    /// What that shows; `None` for the baseline.
    pub verdict: Option<Kind>,
    /// Median of completion times over the fleet, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Its 95 % interval.
    pub p50_ci95: Option<[f64; 2]>,
    /// The time within which 95 % of the fleet's transfers complete, in milliseconds.
    pub p95_ms: Option<f64>,
    /// Its 95 % interval.
    pub p95_ci95: Option<[f64; 2]>,
    /// What transfers take longer than with the best choice for their kind, over that, in the mean over the fleet.
    pub regret: Option<f64>,
    /// The kinds with the largest regret have at least this, and 5 % of the transfers.
    pub regret_p95: Option<f64>,
    /// Bytes sent twice over the payload, in the mean over the fleet.
    pub inflation: f64,
    /// What others deliver less, in Mbit, in the mean over the transfers that have others.
    pub harm_mbit: Option<f64>,
    /// That over the baseline's; `None`, too, if others lose nothing beside the baseline.
    pub harm_ratio: Option<f64>,
    /// 99th percentile of the time in the bottleneck's queue, in milliseconds, in the mean over the fleet.
    pub queue_delay_ms: Option<f64>,
    /// Packets of a transfer that are dropped, in the mean over the fleet.
    pub dropped_packets: f64,
    /// The part of the fleet's transfers that do not complete.
    pub failed: f64,
    /// Why it is not offered, whatever it gains; `None`: it is.
    pub refused: Option<String>,
}

/// How a choice changes one kind of transfer.
#[derive(Clone, Debug, Serialize)]
pub struct OfKind {
    /// What the table calls it.
    pub name: String,
    /// Whether these are its transfers over known paths.
    pub known: bool,
    /// The start with which they arrive; `None`: it is the choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Their share of all transfers.
    pub share: f64,
    /// How many times as fast as with the baseline they are.
    pub gain: Option<f64>,
    /// Its interval, which holds for all kinds at once.
    pub gain_ci: Option<[f64; 2]>,
    /// What that shows.
    pub verdict: Kind,
    /// The part of them that does not complete with the baseline.
    pub baseline_failed: f64,
}

/// What a fleet or its links should use.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// The choice; the baseline, if no other is measurably better within the budget. `None`: nothing can be compared,
    /// because transfers fail with the baseline.
    pub choice: Option<String>,
    /// The others that are offered and cannot be told from it, the fastest first.
    pub as_good: Vec<String>,
    /// The confidence level of all intervals.
    pub level: f64,
    /// Repetitions of each kind of transfer.
    pub reps: u32,
    /// Every choice, in the order of the question.
    pub choices: Vec<OfChoice>,
    /// The recommended choice in each kind, the largest gains last.
    pub kinds: Vec<OfKind>,
}

/// Before and after by repetition, as far as both are there.
type Pairs = Vec<Option<(f64, f64)>>;

impl Recommendation {
    /// The recommendation for a fleet within a budget.
    pub fn of(fleet: &Fleet, budget: &Budget) -> Self {
        let geometric: Vec<Vec<Option<f64>>> = (0..fleet.choices.len()).map(|place| fleet.geometric(place)).collect();
        let against = |base: usize| -> (Vec<Pairs>, Vec<Option<[f64; 2]>>) {
            let pairs: Vec<Pairs> = geometric.iter().map(|one| paired(&geometric[base], one)).collect();
            let intervals = fleet.intervals(&pairs);
            (pairs, intervals)
        };
        let (pairs, intervals) = against(0);
        let mut choices: Vec<OfChoice> = (0..fleet.choices.len())
            .map(|place| fleet.of_choice(place, &pairs[place], intervals[place].filter(|_| place > 0)))
            .collect();
        let base = choices[0].clone();
        for one in &mut choices {
            let both = one.harm_mbit.zip(base.harm_mbit);
            one.harm_ratio = both.filter(|(_, base)| *base > 0.0).map(|(own, base)| own / base);
            one.refused = refused(one, &base, budget);
        }
        let offered = |place: usize| choices[place].refused.is_none();
        let is_faster = |place: &usize| offered(*place) && choices[*place].verdict == Some(Kind::Faster);
        let gain_of = |place: usize| choices[place].gain.unwrap_or(0.0);
        let mut faster: Vec<usize> = (1..choices.len()).filter(is_faster).collect();
        faster.sort_by(|a, b| gain_of(*b).total_cmp(&gain_of(*a)));
        let best = faster.first().copied().unwrap_or(0);
        // Of those that are as fast as the fastest, the one that costs least: that sends least twice, or lets packets
        // wait least. Shorter queues are a reason of their own, so they need not be faster than the baseline.
        let candidates = match fleet.subject {
            Subject::Scheme => faster.clone(),
            Subject::Queue => (0..choices.len()).filter(|place| offered(*place)).collect(),
        };
        let cost = |place: usize| match fleet.subject {
            Subject::Scheme => choices[place].inflation,
            Subject::Queue => choices[place].queue_delay_ms.unwrap_or(f64::INFINITY),
        };
        let (_, beside_best) = against(best);
        let is_equal =
            |place: usize| place == best || beside_best[place].is_some_and(|[low, high]| low <= 1.0 && high >= 1.0);
        let is_sure = |place: usize| {
            let least = beside_best[place].map(|[low, _]| low);
            place == best || faster.contains(&place) || least.is_some_and(|low| low >= 1.0 - AS_FAST)
        };
        let close = candidates
            .iter()
            .filter(|place| is_equal(**place) && is_sure(**place))
            .filter(|place| gain_of(**place) >= gain_of(best) * (1.0 - EQUAL));
        let chosen = close.copied().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(best);
        let others = candidates.iter().filter(|place| **place != chosen && is_equal(**place));
        Self {
            choice: (base.failed == 0.0).then(|| fleet.choices[chosen].clone()),
            as_good: others.map(|place| fleet.choices[*place].clone()).collect(),
            level: LEVEL,
            reps: fleet.reps,
            kinds: fleet.of_kinds(chosen),
            choices,
        }
    }
}

/// Why a choice is not offered.
fn refused(one: &OfChoice, base: &OfChoice, budget: &Budget) -> Option<String> {
    if one.failed > base.failed {
        return Some(format!("{:.2} % of its transfers fail", one.failed * 100.0));
    }
    let is_beyond = |(value, most): &(f64, f64)| *value > most * (1.0 + ROUNDING);
    let beyond = |value: Option<f64>, most: Option<f64>| value.zip(most).filter(is_beyond);
    if let Some((value, most)) = beyond(Some(one.inflation), budget.max_inflation) {
        return Some(format!("it sends {:.1} % twice, more than {:.1} %", value * 100.0, most * 100.0));
    }
    // More than nothing is more than any number of times nothing.
    if let (Some(most), None, Some(own)) = (budget.max_harm, one.harm_ratio, one.harm_mbit)
        && own > 0.0
    {
        let nothing = format!("nothing beside {}: that is more than {most:.2} times", base.choice);
        return Some(format!("others lose {} Mbit a transfer, and {nothing}", small(own)));
    }
    let (value, most) = beyond(one.harm_ratio, budget.max_harm)?;
    Some(format!("others lose {value:.2} times as much, more than {most:.2} times"))
}

/// A number with two digits that are not zero.
pub(super) fn small(value: f64) -> String {
    let digits = (1.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

/// What pairs show whose gain has this interval.
fn verdict(pairs: &Pairs, interval: Option<[f64; 2]>) -> Kind {
    let mut both = pairs.iter().flatten();
    if pairs.iter().any(Option::is_some) && both.all(|(before, after)| before == after) {
        return Kind::Same;
    }
    // What is sent twice is a cost of its own here.
    gain(pairs).map_or(Kind::Unclear, |gain| kind(gain, interval, 0.0))
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
    /// The geometric mean of a choice's completion times over the fleet, by repetition.
    fn geometric(&self, choice: usize) -> Vec<Option<f64>> {
        let of_rep = |rep: usize| {
            let logarithms = self.parts.iter().map(|part| {
                let fct = part.choices[choice].fct_ms.get(rep).copied().flatten()?;
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

    fn of_choice(&self, place: usize, pairs: &Pairs, gain_ci: Option<[f64; 2]>) -> OfChoice {
        let [p50, p95] = [0.5, 0.95].map(|part| self.quantile(place, part));
        let regrets: Vec<(f64, f64)> =
            self.parts.iter().filter_map(|part| Some((regret(part, place)?, part.share))).collect();
        let is_whole = regrets.len() == self.parts.len();
        let failed = self.mean_of(|part| Some(part.choices[place].failed())).unwrap_or(0.0);
        OfChoice {
            choice: self.choices[place].clone(),
            gain: gain(pairs),
            gain_ci,
            verdict: (place > 0).then(|| verdict(pairs, gain_ci)),
            p50_ms: p50.map(|(value, _)| value),
            p50_ci95: p50.and_then(|(_, interval)| interval),
            p95_ms: p95.map(|(value, _)| value),
            p95_ci95: p95.and_then(|(_, interval)| interval),
            regret: self.mean_of(|part| regret(part, place)).filter(|_| is_whole),
            regret_p95: weighted_quantile(&regrets, 0.95).filter(|_| is_whole),
            inflation: self.mean_of(|part| mean(&part.choices[place].inflation)).unwrap_or(0.0),
            harm_mbit: self.mean_of(|part| mean(&part.choices[place].harm_mbit)),
            harm_ratio: None,
            queue_delay_ms: self.mean_of(|part| mean(&part.choices[place].queue_delay_ms)),
            dropped_packets: self.mean_of(|part| mean(&part.choices[place].dropped_packets)).unwrap_or(0.0),
            failed,
            refused: None,
        }
    }

    /// A quantile of a choice's completion times over the fleet and its interval; `None` if transfers failed.
    fn quantile(&self, choice: usize, probability: f64) -> Option<(f64, Option<[f64; 2]>)> {
        let mut all: Vec<(f64, f64, u32)> = Vec::new();
        for part in &self.parts {
            for (rep, fct) in (0..).zip(&part.choices[choice].fct_ms) {
                all.push(((*fct)?, part.share, rep));
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A repetition that was drawn twice counts twice.
        let of = |drawn: &[u32]| {
            let mut counts = vec![0.0; self.reps as usize];
            drawn.iter().for_each(|rep| counts[*rep as usize] += 1.0);
            let weighted = all.iter().map(|(fct, share, rep)| (*fct, share * counts[*rep as usize]));
            weighted_quantile_of_sorted(weighted, probability)
        };
        let reps: Vec<u32> = (0..self.reps).collect();
        let seed = mix(self.seed ^ name_hash("quantile"));
        let interval = bca(&reps, of, LEVEL, RESAMPLES_OF_QUANTILES, seed);
        Some((of(&reps)?, interval.map(|estimate| [estimate.interval.low, estimate.interval.high])))
    }

    /// A choice in each kind, the smallest gain first.
    fn of_kinds(&self, choice: usize) -> Vec<OfKind> {
        let pairs: Vec<Pairs> =
            self.parts.iter().map(|part| paired(&part.choices[0].fct_ms, &part.choices[choice].fct_ms)).collect();
        let of_part = |((part, pairs), gain_ci): ((&Part, &Pairs), Option<[f64; 2]>)| OfKind {
            name: self.population.kinds[part.kind].name.clone(),
            known: part.is_known,
            start: part.start.clone(),
            share: part.share,
            gain: gain(pairs),
            gain_ci,
            verdict: verdict(pairs, gain_ci),
            baseline_failed: part.choices[0].failed(),
        };
        let mut kinds: Vec<OfKind> = self.parts.iter().zip(&pairs).zip(self.intervals(&pairs)).map(of_part).collect();
        kinds.sort_by(|a, b| a.gain.unwrap_or(0.0).total_cmp(&b.gain.unwrap_or(0.0)));
        kinds
    }
}

/// What a choice takes longer in a part than the best one there, over that.
fn regret(part: &Part, choice: usize) -> Option<f64> {
    let best = part.choices.iter().filter_map(Measured::mean_fct_ms).min_by(f64::total_cmp)?;
    Some(part.choices[choice].mean_fct_ms()? / best - 1.0)
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
            start: None,
            share,
            choices: times
                .iter()
                .map(|(_, times, inflation)| Measured {
                    // Each repetition is a little slower than the one before, in all schemes.
                    fct_ms: (0..10).map(|rep| Some(times[kind] * (1.0 + 0.01 * f64::from(rep)))).collect(),
                    inflation: vec![*inflation; 10],
                    harm_mbit: vec![1.0 + inflation; 10],
                    queue_delay_ms: vec![100.0 * (1.0 - inflation); 10],
                    dropped_packets: vec![0.0; 10],
                })
                .collect(),
        };
        let choices = times.iter().map(|(name, ..)| (*name).to_owned()).collect();
        Fleet {
            population,
            subject: Subject::Scheme,
            choices,
            transport: "model-quic".into(),
            avoidance: "cubic".into(),
            reps: 10,
            seed: 1,
            parts: vec![part(0, 0.75), part(1, 0.25)],
        }
    }

    #[test]
    fn shares_weigh_gains_and_lengths_do_not() {
        let fleet = fleet(&[("base", [100.0, 10_000.0], 0.0), ("fast", [50.0, 20_000.0], 0.1)]);
        let told = Recommendation::of(&fleet, &Budget::default());
        // Three quarters twice as fast, one quarter half as fast: 2^(3/4 - 1/4).
        assert!((told.choices[1].gain.unwrap() - 2_f64.sqrt()).abs() < 1e-9, "{told:?}");
        assert_eq!(told.choice.as_deref(), Some("fast"));
        assert_eq!(told.kinds.iter().map(|kind| &*kind.name).collect::<Vec<_>>(), ["line-3", "line-2"]);
        assert!(told.kinds[0].gain_ci.is_some_and(|[low, high]| (low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9));
        // The best of the first kind is the scheme, that of the second the baseline: 0 and 1.
        assert!((told.choices[1].regret.unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(told.choices[1].regret_p95, Some(1.0));
        // Three quarters of the transfers are the short ones.
        assert!((50.0..55.0).contains(&told.choices[1].p50_ms.unwrap()));
        assert!(told.choices[1].p95_ms.unwrap() >= 20_000.0);
    }

    #[test]
    fn a_budget_refuses_what_costs_more() {
        let fleet = fleet(&[
            ("base", [100.0, 1000.0], 0.0),
            ("fast", [50.0, 500.0], 0.2),
            ("cheap", [80.0, 800.0], 0.01),
            ("slow", [120.0, 1000.0], 0.0),
        ]);
        let scheme = |budget: Budget| Recommendation::of(&fleet, &budget).choice.unwrap();
        assert_eq!(scheme(Budget::default()), "fast");
        assert_eq!(scheme(Budget { max_inflation: Some(0.05), ..Budget::default() }), "cheap");
        assert_eq!(scheme(Budget { max_harm: Some(1.1), ..Budget::default() }), "cheap");
        assert_eq!(scheme(Budget { max_inflation: Some(0.0), ..Budget::default() }), "base");
        let told = Recommendation::of(&fleet, &Budget { max_harm: Some(1.1), ..Budget::default() });
        assert_eq!(told.choices[1].refused.as_deref(), Some("others lose 1.20 times as much, more than 1.10 times"));
        // What is equal is within a limit of one.
        let told = Recommendation::of(&fleet, &Budget { max_harm: Some(1.0), ..Budget::default() });
        assert_eq!(
            told.choices.iter().map(|one| one.refused.is_some()).collect::<Vec<_>>(),
            [false, true, true, false]
        );
    }

    #[test]
    fn harm_where_the_baseline_does_none_is_beyond_any_factor() {
        let mut fleet = fleet(&[("base", [100.0, 1000.0], 0.0), ("fast", [50.0, 500.0], 0.0)]);
        for part in &mut fleet.parts {
            part.choices[0].harm_mbit = vec![0.0; 10];
            part.choices[1].harm_mbit = vec![0.0147; 10];
        }
        let told = Recommendation::of(&fleet, &Budget { max_harm: Some(100.0), ..Budget::default() });
        let why = "others lose 0.015 Mbit a transfer, and nothing beside base: that is more than 100.00 times";
        assert_eq!((told.choice.as_deref(), told.choices[1].refused.as_deref()), (Some("base"), Some(why)));
        assert_eq!(Recommendation::of(&fleet, &Budget::default()).choice.as_deref(), Some("fast"));
    }

    #[test]
    fn a_gain_of_less_than_a_percent_is_none() {
        let fleet =
            fleet(&[("base", [100.0, 1000.0], 0.0), ("fast", [99.5, 995.0], 0.0), ("same", [100.0, 1000.0], 0.0)]);
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!(told.choice.as_deref(), Some("base"));
        let verdicts: Vec<_> = told.choices.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [None, Some(Kind::Negligible), Some(Kind::Same)]);
    }

    #[test]
    fn of_equals_the_one_that_sends_least_is_offered() {
        let mut fleet =
            fleet(&[("base", [100.0, 1000.0], 0.0), ("wasteful", [50.0, 500.0], 0.2), ("careful", [50.1, 501.0], 0.0)]);
        // They scatter more than they differ.
        for part in &mut fleet.parts {
            for (rep, fct) in part.choices[2].fct_ms.iter_mut().enumerate() {
                *fct = fct.map(|fct| fct * if rep % 2 == 0 { 1.02 } else { 0.98 });
            }
        }
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!((told.choice.as_deref(), &told.as_good[..]), (Some("careful"), &["wasteful".to_owned()][..]));
    }

    #[test]
    fn who_fails_more_is_not_offered_and_gains_nothing_by_it() {
        let mut fleet = fleet(&[("base", [100.0, 1000.0], 0.0), ("fast", [50.0, 500.0], 0.0)]);
        fleet.parts[1].choices[1].fct_ms[3] = None;
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!(told.choice.as_deref(), Some("base"));
        assert_eq!(told.choices[1].refused.as_deref(), Some("2.50 % of its transfers fail"));
        assert_eq!((told.choices[1].p50_ms, told.choices[1].regret), (None, None));
    }

    #[test]
    fn of_queues_that_are_as_fast_the_shortest_is_recommended() {
        let of = |subject: Subject, fast: f64| {
            // The queue of the second is 80 ms long, that of the third 50 ms.
            let times =
                [("base", [100.0, 1000.0], 0.0), ("long", [fast, fast * 10.0], 0.2), ("short", [100.0, 1000.0], 0.5)];
            let told = Recommendation::of(&Fleet { subject, ..fleet(&times) }, &Budget::default());
            assert_eq!(
                told.choices.iter().filter_map(|one| one.queue_delay_ms).collect::<Vec<_>>(),
                [100.0, 80.0, 50.0]
            );
            told.choice.unwrap()
        };
        assert_eq!((of(Subject::Queue, 100.0), of(Subject::Scheme, 100.0)), ("short".to_owned(), "base".to_owned()));
        assert_eq!((of(Subject::Queue, 50.0), of(Subject::Scheme, 50.0)), ("long".to_owned(), "long".to_owned()));
    }

    #[test]
    fn a_shorter_queue_is_no_reason_where_transfers_may_be_much_slower() {
        let mut fleet = fleet(&[("base", [100.0, 1000.0], 0.0), ("short", [100.0, 1000.0], 0.5)]);
        fleet.subject = Subject::Queue;
        let choice = |fleet: &Fleet| Recommendation::of(fleet, &Budget::default()).choice.unwrap();
        assert_eq!(choice(&fleet), "short");
        for part in &mut fleet.parts {
            for (rep, fct) in part.choices[1].fct_ms.iter_mut().enumerate() {
                *fct = fct.map(|fct| fct * if rep % 2 == 0 { 1.3 } else { 0.7 });
            }
        }
        assert_eq!(choice(&fleet), "base");
    }

    #[test]
    fn where_transfers_fail_with_the_baseline_nothing_is_recommended() {
        let mut fleet = fleet(&[("base", [100.0, 1000.0], 0.0), ("fast", [50.0, 500.0], 0.0)]);
        for one in &mut fleet.parts[1].choices {
            one.fct_ms[3] = None;
        }
        let told = Recommendation::of(&fleet, &Budget::default());
        assert_eq!((told.choice.as_deref(), told.kinds.len()), (None, 2));
        let failed: Vec<(&str, f64)> = told.kinds.iter().map(|kind| (&*kind.name, kind.baseline_failed)).collect();
        assert!(failed.contains(&("line-3", 0.1)) && failed.contains(&("line-2", 0.0)), "{failed:?}");
    }
}
