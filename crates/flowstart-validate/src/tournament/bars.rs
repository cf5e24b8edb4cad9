//! What the scheme in question has to reach. The bars were written down before it was tuned, and a bar of which there
//! are no cells is neither reached nor missed.
//!
//! Bars 1 to 3 are about plain links: those that police, vary or aggregate have bars of their own. Where a bar says no
//! more, the mean over cells counts. A transfer that does not complete takes for ever.

use flowstart_statistics::{LEVEL, clopper_pearson};
use serde::Serialize;

use super::journal::Collected;
use super::runs::{CellResult, Runs};
use super::sets::{Drawn, Others, Traits, Transport};

/// The scheme that every user has anyway.
const BASE: &str = "slow-start";
/// The one that bar 6 also names.
const SECOND: &str = "more-start";
/// Harm is compared where the base does at least so much, in Mbit.
const LEAST_HARM: f64 = 1.0;
/// Most cells that are named as the worst ones.
const MOST_NAMED: usize = 5;

/// The scheme in question in a cell, beside others.
struct Judged<'a> {
    cell: &'a Drawn,
    result: &'a CellResult,
    scheme: &'a Runs,
    base: &'a Runs,
}

/// A ratio of times, of which both may be infinite.
fn ratio(a: f64, b: f64) -> f64 {
    if a.is_infinite() && b.is_infinite() { 1.0 } else { a / b }
}

fn time(of: &Judged<'_>) -> f64 {
    of.scheme.mean_fct_ms()
}

fn over_best(of: &Judged<'_>) -> Option<f64> {
    Some(ratio(time(of), of.result.best_fct_ms()?))
}

fn rtts_above_best(of: &Judged<'_>) -> Option<f64> {
    Some((time(of) - of.result.best_fct_ms()?) / of.cell.traits.rtt_ms)
}

fn over_base(of: &Judged<'_>) -> Option<f64> {
    Some(ratio(time(of), of.base.mean_fct_ms()))
}

fn speedup(of: &Judged<'_>) -> Option<f64> {
    Some(ratio(of.base.mean_fct_ms(), time(of)))
}

fn over_better(of: &Judged<'_>) -> Option<f64> {
    let second = of.result.of(SECOND)?.mean_fct_ms();
    Some(ratio(time(of), second.min(of.base.mean_fct_ms())))
}

fn waste(of: &Judged<'_>) -> Option<f64> {
    of.scheme.mean_sent_twice()
}

fn more_waste(of: &Judged<'_>) -> Option<f64> {
    Some(waste(of)? - of.base.mean_sent_twice()?)
}

fn beyond(of: &Judged<'_>) -> Option<f64> {
    of.scheme.most_beyond()
}

fn more_harm(of: &Judged<'_>) -> Option<f64> {
    let base = of.base.harm_mbit().filter(|harm| *harm >= LEAST_HARM)?;
    Some(of.scheme.harm_mbit()? / base)
}

fn less_mos(of: &Judged<'_>) -> Option<f64> {
    Some(of.base.mean_worst_mos()? - of.scheme.mean_worst_mos()?)
}

/// How the values of cells become one number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joined {
    Mean,
    Median,
    P95,
    Worst,
    /// The share of cells with at most this.
    AtMost(f64),
    /// The share of cells with at least this.
    AtLeast(f64),
}

/// What is allowed of the number.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Most(f64),
    Least(f64),
}

/// A condition of a bar.
struct Declared {
    bar: u8,
    says: &'static str,
    of: fn(&Traits) -> bool,
    value: fn(&Judged<'_>) -> Option<f64>,
    joined: Joined,
    bound: Bound,
}

/// A condition of a bar, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// The bar, 1 to 10.
    pub bar: u8,
    /// What is measured.
    pub says: String,
    /// Cells that it is about and that have all that it needs.
    pub cells: usize,
    /// The number; absent without cells, and if a transfer did not complete that counts.
    pub number: Option<f64>,
    /// The bound.
    pub bound: f64,
    /// Whether the number has to be at least the bound, rather than at most.
    pub at_least: bool,
    /// Whether it is reached; absent without cells.
    pub reached: Option<bool>,
    /// The worst cells.
    pub worst: Vec<String>,
}

impl Bound {
    fn is_kept(self, number: f64) -> bool {
        match self {
            Self::Most(most) => number <= most,
            Self::Least(least) => number >= least,
        }
    }
}

fn share(values: &[f64], is: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| is(**value)).count() as f64 / values.len().max(1) as f64
}

/// The value at this part of sorted ones, of which some may be infinite.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let position = part * sorted.len().saturating_sub(1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(position.floor()), at(position.ceil()));
    if low == high { low } else { low + (position - position.floor()) * (high - low) }
}

impl Joined {
    pub(super) fn of(self, values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Median => quantile(&sorted, 0.5),
            Self::P95 => quantile(&sorted, 0.95),
            Self::Worst => quantile(&sorted, 1.0),
            Self::AtMost(most) => share(values, |value| value <= most),
            Self::AtLeast(least) => share(values, |value| value >= least),
        }
    }
}

impl Condition {
    fn new(bar: u8, says: &str, bound: Bound, cells: usize, number: Option<f64>) -> Self {
        let (limit, at_least) = match bound {
            Bound::Most(limit) => (limit, false),
            Bound::Least(limit) => (limit, true),
        };
        Self {
            bar,
            says: says.to_owned(),
            cells,
            number: number.filter(|number| number.is_finite()),
            bound: limit,
            at_least,
            reached: number.map(|number| bound.is_kept(number)),
            worst: Vec::new(),
        }
    }
}

impl Declared {
    fn judge(&self, judged: &[Judged<'_>]) -> Condition {
        let of = judged.iter().filter(|one| (self.of)(&one.cell.traits));
        let mut values: Vec<(f64, &str)> = of
            .filter_map(|one| Some(((self.value)(one)?, &*one.cell.name)))
            .filter(|(value, _)| !value.is_nan())
            .collect();
        let numbers: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
        let number = (!numbers.is_empty()).then(|| self.joined.of(&numbers));
        // What is a gain is worst where it is least.
        let is_gain = matches!(self.joined, Joined::AtLeast(_))
            || (matches!(self.bound, Bound::Least(_)) && !matches!(self.joined, Joined::AtMost(_)));
        values.sort_by(|a, b| if is_gain { a.0.total_cmp(&b.0) } else { b.0.total_cmp(&a.0) });
        let worst = values.iter().take(MOST_NAMED).map(|(value, name)| format!("{name} {value:.3}")).collect();
        Condition { worst, ..Condition::new(self.bar, self.says, self.bound, numbers.len(), number) }
    }
}

/// Whether clients report the handshake's train. The real stack's part of the handshake is one packet in the lab, which
/// is no train.
fn has_train(traits: &Traits) -> bool {
    traits.transport == Transport::ModelQuic
}

/// Whether one source says what is true, and the train is there to bear it out.
fn has_source_and_train(traits: &Traits) -> bool {
    traits.knowledge.is_single_and_true() && has_train(traits)
}

fn plain_alone(traits: &Traits) -> bool {
    traits.is_alone() && traits.is_plain()
}

fn is_established(traits: &Traits) -> bool {
    matches!(traits.others, Others::Established(_))
}

const fn declared(
    bar: u8,
    says: &'static str,
    of: fn(&Traits) -> bool,
    value: fn(&Judged<'_>) -> Option<f64>,
    joined: Joined,
    bound: Bound,
) -> Declared {
    Declared { bar, says, of, value, joined, bound }
}

/// The conditions on cells.
const CONDITIONS: &[Declared] = &[
    declared(
        1,
        "true, alone: share of cells that send at most 1 % twice",
        |of| plain_alone(of) && of.knowledge.is_true(),
        waste,
        Joined::AtMost(0.01),
        Bound::Least(0.95),
    ),
    declared(
        1,
        "corroborated, alone: share of cells within 1.02 times the best",
        |of| plain_alone(of) && of.knowledge.is_corroborated(),
        over_best,
        Joined::AtMost(1.02),
        Bound::Least(0.95),
    ),
    declared(
        1,
        "one true source and train, alone: median time over the best",
        |of| plain_alone(of) && has_source_and_train(of),
        over_best,
        Joined::Median,
        Bound::Most(1.05),
    ),
    declared(
        1,
        "one true source and train, alone: most RTTs above the best",
        |of| plain_alone(of) && has_source_and_train(of),
        rtts_above_best,
        Joined::Worst,
        Bound::Most(1.1),
    ),
    declared(
        1,
        "one true source without a train, alone: most RTTs above the best",
        |of| plain_alone(of) && of.knowledge.is_single_and_true() && !has_source_and_train(of),
        rtts_above_best,
        Joined::Worst,
        Bound::Most(2.1),
    ),
    declared(
        2,
        "false, alone: 95th percentile of time over slow start's",
        |of| plain_alone(of) && of.knowledge.is_false(),
        over_base,
        Joined::P95,
        Bound::Most(1.05),
    ),
    declared(
        2,
        "false, alone: 95th percentile of what is sent twice beyond slow start's",
        |of| plain_alone(of) && of.knowledge.is_false(),
        more_waste,
        Joined::P95,
        Bound::Most(0.01),
    ),
    declared(
        2,
        "false, alone: most packets beyond path and buffer in the first RTT",
        |of| plain_alone(of) && of.knowledge.is_false(),
        beyond,
        Joined::Worst,
        Bound::Most(100.0),
    ),
    declared(
        3,
        "nothing known, alone, TCP: median speed-up over slow start",
        |of| plain_alone(of) && knows_nothing(of) && of.transport == Transport::ModelTcp,
        speedup,
        Joined::Median,
        Bound::Least(1.20),
    ),
    declared(
        3,
        "train alone, QUIC: median speed-up over slow start",
        |of| plain_alone(of) && knows_nothing(of) && has_train(of),
        speedup,
        Joined::Median,
        Bound::Least(1.35),
    ),
    declared(
        4,
        "false, beside established flows: share of cells with 0.95 of slow start's speed",
        |of| is_established(of) && of.knowledge.is_false(),
        speedup,
        Joined::AtLeast(0.95),
        Bound::Least(0.90),
    ),
    declared(
        4,
        "false, beside established flows: mean harm over slow start's",
        |of| is_established(of) && of.knowledge.is_false(),
        more_harm,
        Joined::Mean,
        Bound::Most(1.1),
    ),
    declared(
        4,
        "true, beside established flows: median speed-up over slow start",
        |of| is_established(of) && of.knowledge.is_true(),
        speedup,
        Joined::Median,
        Bound::Least(1.3),
    ),
    declared(
        4,
        "true, beside established flows: mean of what is sent twice",
        |of| is_established(of) && of.knowledge.is_true(),
        waste,
        Joined::Mean,
        Bound::Most(0.05),
    ),
    declared(
        6,
        "capacity that varies, alone: mean time over the better of slow start and More-Start",
        |of| of.is_alone() && of.is_varying,
        over_better,
        Joined::Mean,
        Bound::Most(1.03),
    ),
    declared(
        7,
        "policed, alone: mean of what is sent twice beyond slow start's",
        |of| of.is_alone() && of.is_policed,
        more_waste,
        Joined::Mean,
        Bound::Most(0.05),
    ),
    declared(
        7,
        "policed, alone: mean time over slow start's",
        |of| of.is_alone() && of.is_policed,
        over_base,
        Joined::Mean,
        Bound::Most(1.05),
    ),
    declared(
        8,
        "acknowledgements that arrive together, alone: mean time over slow start's",
        |of| of.is_alone() && of.is_aggregated,
        over_base,
        Joined::Mean,
        Bound::Most(1.03),
    ),
    declared(
        9,
        "beside media: mean MOS of the worst second below slow start's",
        |of| of.others == Others::Media,
        less_mos,
        Joined::Mean,
        Bound::Most(0.1),
    ),
];

fn knows_nothing(traits: &Traits) -> bool {
    !(traits.knowledge.is_true() || traits.knowledge.is_false())
}

/// So many transfers at once have a bar.
const AT_ONCE: u32 = 64;

/// Bar 5: transfers that start at once.
fn at_once(judged: &[Judged<'_>]) -> [Condition; 2] {
    let of = || judged.iter().filter(|one| one.cell.traits.others == Others::Itself && one.cell.flows == AT_ONCE);
    let times: Vec<f64> = of().filter_map(over_base).collect();
    let wasted = of().map(|one| Some((waste(one)?, one.base.mean_sent_twice()?)));
    let wasted: Option<Vec<(f64, f64)>> = wasted.collect();
    let sums = wasted.map(|all| all.iter().fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1)));
    // What nobody sends twice is not more than twice nothing.
    let more = |(own, base): (f64, f64)| if own == 0.0 { 0.0 } else { own / base };
    let has_cells = !times.is_empty();
    let mean = has_cells.then(|| Joined::Mean.of(&times));
    let wasted = sums.filter(|_| has_cells).map(more);
    [
        Condition::new(5, "64 at once: mean time over slow start's", Bound::Most(1.03), times.len(), mean),
        Condition::new(5, "64 at once: what is sent twice over slow start's", Bound::Most(2.0), times.len(), wasted),
    ]
}

/// Bar 3: without knowledge no other scheme is better.
fn nobody_better(judged: &[Judged<'_>], schemes: &[String]) -> Condition {
    let of: Vec<&Judged<'_>> =
        judged.iter().filter(|one| plain_alone(&one.cell.traits) && knows_nothing(&one.cell.traits)).collect();
    let mut least: Option<(f64, &str)> = None;
    for rival in schemes {
        // In the cells that both have.
        let (own, theirs): (Vec<f64>, Vec<f64>) = of
            .iter()
            .filter(|one| one.scheme.scheme != *rival)
            .filter_map(|one| {
                let base = one.base.mean_fct_ms();
                Some((speedup(one)?, ratio(base, one.result.of(rival)?.mean_fct_ms())))
            })
            .unzip();
        if own.is_empty() {
            continue;
        }
        let lead = Joined::Median.of(&own) - Joined::Median.of(&theirs);
        if least.is_none_or(|(least, _)| lead < least) {
            least = Some((lead, rival));
        }
    }
    let says = "nothing known, alone: lead of the median speed-up over the best rival's";
    let cells = if least.is_some() { of.len() } else { 0 };
    let worst = least.map(|(_, rival)| rival.to_owned()).into_iter().collect();
    Condition { worst, ..Condition::new(3, says, Bound::Least(0.0), cells, least.map(|(lead, _)| lead)) }
}

/// Bar 10: the upper bound of the share of cells in which it is beaten.
fn beaten(beaten: usize, cells: usize) -> Condition {
    let bound = clopper_pearson(beaten, cells, LEVEL).map(|interval| interval.high);
    Condition::new(10, "beaten: upper bound of the share of cells (Clopper-Pearson)", Bound::Most(0.05), cells, bound)
}

/// All bars of a scheme that is beaten in `times_beaten` of these cells.
pub fn bars(collected: &Collected, scheme: &str, schemes: &[String], times_beaten: usize) -> Vec<Condition> {
    let judged: Vec<Judged<'_>> = collected
        .cells
        .iter()
        .filter_map(|(cell, result)| Some(Judged { cell, result, scheme: result.of(scheme)?, base: result.of(BASE)? }))
        .collect();
    let has_scheme = collected.cells.iter().filter(|(_, result)| result.of(scheme).is_some()).count();
    let mut all: Vec<Condition> = CONDITIONS.iter().map(|declared| declared.judge(&judged)).collect();
    all.push(nobody_better(&judged, schemes));
    all.extend(at_once(&judged));
    all.push(beaten(times_beaten, has_scheme));
    all.sort_by_key(|condition| condition.bar);
    all
}

#[cfg(test)]
mod tests;
