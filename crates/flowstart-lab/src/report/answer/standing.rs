//! How a value of an axis compares with the first one, in words.

use flowstart_core::event::ExitReason;
use flowstart_report::{Certainty, Kind, Verdict, WASTE};
use flowstart_statistics::median;

use super::harm::Harm;
use super::words::{
    MOST_NAMED, against, at, beside_one, listed, longer, middle_of, percent, percent_range, plural, ratio, settings,
};
use super::{EQUAL, carried, verbs};
use crate::results::cell_summary::{CellSummary, Comparison};
use crate::results::row::NO_EXIT;
use crate::results::summary::Summary;
use crate::study::plan::{AXES, Axis, Cell, Plan};

/// Behind a ratio of times.
pub(super) const AS_FAST: &str = "times as fast";
/// What comparisons show most of which are unclear.
const UNCLEAR: &str = "no clear difference";
/// What comparisons show in all of which every packet is the same.
const SAME: &str = "no difference";
/// What comparisons show all of which are known to differ little.
const SMALL: &str = "no difference of more than 1 %";
/// The part of the bytes that is said to be none.
const FEW_BYTES: f64 = 0.0005;
/// The part of the bytes by which a setting has to exceed the median to be named.
const MUCH_MORE: f64 = 0.02;
/// Gains are by waste where more than one in this many is.
const WASTEFUL: usize = 4;

/// Whether so many gains are by waste, taken together.
fn is_by_waste(gains: usize, wasteful: usize) -> bool {
    wasteful * WASTEFUL > gains
}

/// The comparison of a value of an axis with the first one, over all settings.
pub(super) struct Standing<'a> {
    pub(super) name: &'a str,
    pub(super) baseline: &'a str,
    axis: &'static Axis,
    cells: Vec<(Cell, &'a CellSummary, &'a Comparison)>,
    pub(super) verdict: Verdict,
    /// The median, the smallest and the largest speed-up.
    pub(super) middle: f64,
    range: [f64; 2],
    /// The median of the extra bytes, as a part of what the first one sends.
    bytes: Option<f64>,
    /// Their largest value.
    most_bytes: Option<f64>,
    /// The median of the extra bytes, as a part of the payload.
    waste: Option<f64>,
    /// The bytes sent twice in each setting, as parts of the payload.
    twice: Vec<f64>,
    /// Transfers that failed, of this value and of the first one.
    failed: [usize; 2],
    harm: Option<Harm>,
}

impl<'a> Standing<'a> {
    /// The values of an axis that are compared with its first one, the fastest first.
    pub(super) fn of_axis(plan: &'a Plan, summary: &'a Summary, axis: &'static Axis) -> Vec<Self> {
        Self::where_true(plan, summary, axis, |_| true)
    }

    /// Those in the cells that `holds` is true of.
    pub(super) fn where_true(
        plan: &'a Plan,
        summary: &'a Summary,
        axis: &'static Axis,
        holds: impl Fn(Cell) -> bool,
    ) -> Vec<Self> {
        let of = |place| Self::of(plan, summary, axis, place, &holds);
        let mut standings: Vec<Self> = (1..axis.length(plan)).filter_map(of).collect();
        standings.sort_by(|a, b| b.middle.total_cmp(&a.middle));
        standings
    }

    fn of(
        plan: &'a Plan,
        summary: &'a Summary,
        axis: &'static Axis,
        place: usize,
        holds: impl Fn(Cell) -> bool,
    ) -> Option<Self> {
        let (mut cells, mut speedups, mut bytes, mut waste, mut twice) = (vec![], vec![], vec![], vec![], vec![]);
        let mut compared = vec![];
        let own: Vec<Cell> =
            plan.cells().into_iter().filter(|cell| axis.place(*cell) == place && holds(*cell)).collect();
        for cell in &own {
            let (own, baseline) = (&summary.cells[cell.index], plan.baseline_of(cell)?);
            // Another axis is compared first: such a cell says nothing about this one.
            if axis.place(baseline) == place {
                continue;
            }
            let base = &summary.cells[baseline.index];
            let Some((versus, speedup)) = own.vs_baseline.as_ref().and_then(|v| Some((v, v.speedup?))) else {
                continue;
            };
            cells.push((*cell, own, versus));
            speedups.push(speedup);
            waste.extend(versus.inflation_delta);
            let inflation = |cell: &CellSummary| cell.metrics.get("inflation").and_then(|metric| metric.mean);
            twice.extend(inflation(own));
            bytes.extend(inflation(own).zip(inflation(base)).map(|(own, base)| (1.0 + own) / (1.0 + base) - 1.0));
            compared.push((*cell, [own, base]));
        }
        let middle = median(&speedups)?;
        let mut standing = Self {
            name: axis.texts(plan)[place],
            baseline: axis.texts(plan)[0],
            axis,
            verdict: Verdict::of_interval(Kind::Unclear),
            middle,
            range: [speedups.iter().copied().reduce(f64::min)?, speedups.iter().copied().reduce(f64::max)?],
            bytes: median(&bytes),
            most_bytes: bytes.iter().copied().reduce(f64::max),
            waste: median(&waste),
            twice,
            failed: [0, 1].map(|side| compared.iter().map(|(_, cells)| cells[side].failed).sum()),
            harm: Harm::of(plan, &compared),
            cells,
        };
        standing.verdict = standing.over_all();
        Some(standing)
    }

    /// The median of the longer times, as a speed-up: over an even number of settings it is not that of the speed-ups.
    fn slowed(&self) -> f64 {
        let times: Vec<f64> = self.cells.iter().filter_map(|(.., versus)| Some(1.0 / versus.speedup?)).collect();
        median(&times).map_or(self.middle, |longer| 1.0 / longer)
    }

    /// How much sooner it is, and in how many comparisons by waste.
    pub(super) fn gain(&self) -> String {
        let by_waste = match self.signs() {
            [.., 0] => String::new(),
            [.., wasteful] => format!(", {wasteful} of {} by waste", self.cells.len()),
        };
        format!("{} {AS_FAST}{by_waste}", ratio([self.middle; 2]))
    }

    /// Whether it cannot be told from a faster value: by their intervals, if both have one, or else by 1 %.
    pub(super) fn is_as_good_as(&self, faster: &Self) -> bool {
        let apart = self.interval().zip(faster.interval()).is_none_or(|([_, high], [low, _])| high < low);
        !apart || self.middle * EQUAL >= faster.middle
    }

    /// The extra bytes that it sends in the median.
    pub(super) fn sent(&self) -> f64 {
        self.bytes.unwrap_or(0.0)
    }

    /// Whether more transfers fail than with the first value.
    pub(super) fn fails_more(&self) -> bool {
        self.failed[0] > self.failed[1]
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.cells.iter().filter_map(|(.., versus)| versus.verdict)
    }

    fn count(&self, kind: Kind) -> usize {
        self.verdicts().filter(|other| other.kind == kind).count()
    }

    /// The verdict over all settings: that of the median, if any setting has it.
    fn over_all(&self) -> Verdict {
        if let [only] = self.verdicts().collect::<Vec<_>>()[..] {
            return only;
        }
        let is_of_one_run = |verdict: Verdict| verdict.kind == Kind::Same || verdict.is_deterministic();
        let certainty = if self.verdicts().all(is_of_one_run) { Certainty::OneRun } else { Certainty::Interval };
        Verdict { kind: self.kind(), certainty }
    }

    /// What the settings show together.
    fn kind(&self) -> Kind {
        let same = self.count(Kind::Same);
        if same == self.cells.len() {
            return Kind::Same;
        }
        if same + self.count(Kind::Negligible) == self.cells.len() {
            return Kind::Negligible;
        }
        let [gains, losses, wasteful] = self.signs();
        let most = |count: usize| count * 2 >= self.cells.len();
        if self.middle > 1.0 && losses == 0 && most(gains) {
            let is_waste = self.waste.is_some_and(|waste| waste > WASTE) || is_by_waste(gains, wasteful);
            if is_waste { Kind::FasterByWaste } else { Kind::Faster }
        } else if self.middle < 1.0 && gains == 0 && most(losses) {
            Kind::Slower
        } else {
            Kind::Unclear
        }
    }

    /// How many comparisons are faster, how many slower, and how many of the faster ones by waste.
    fn signs(&self) -> [usize; 3] {
        let wasteful = self.count(Kind::FasterByWaste);
        [self.count(Kind::Faster) + wasteful, self.count(Kind::Slower), wasteful]
    }

    /// Whether some comparisons show a gain or a loss, and not all show the same.
    pub(super) fn is_partly(&self) -> bool {
        let [gains, losses, _] = self.signs();
        gains + losses > 0 && gains.max(losses) < self.cells.len()
    }

    /// What some comparisons show and others do not, for each value of the axis that tells them apart best.
    fn parts(&self, plan: &Plan) -> Option<String> {
        let Self { name, baseline, .. } = self;
        let others = AXES.iter().filter(|axis| *axis != self.axis && axis.length(plan) > 1);
        let named = others.filter(|axis| axis.length(plan) <= MOST_NAMED);
        let told = named.filter_map(|axis| Some((axis, self.told_apart(plan, axis)?)));
        // Of those that tell equally well the first.
        let told = told.reduce(|best, other| if other.1.1 > best.1.1 { other } else { best });
        let (axis, (parts, _)) = told?;
        Some(format!("{name} differs between {} from {baseline}: {}", plural(plan, axis), listed(&parts)))
    }

    /// How many comparisons show a gain, and how many a loss.
    fn counted(&self) -> String {
        let Self { name, baseline, .. } = self;
        let [gains, losses, wasteful] = self.signs();
        let by_waste = match wasteful {
            0 => String::new(),
            all if all == gains => " by waste".to_owned(),
            some => format!(" ({some} by waste)"),
        };
        let mut said = Vec::new();
        said.extend((gains > 0).then(|| format!("faster than {baseline} in {gains}{by_waste}")));
        let than = if gains > 0 { String::new() } else { format!(" than {baseline}") };
        said.extend((losses > 0).then(|| format!("slower{than} in {losses}")));
        format!("{name} is {} of {} comparisons", listed(&said), self.cells.len())
    }

    /// What the comparisons of each value of an axis show, and how many of all comparisons show what is said of their
    /// value. `None` if those of one value contradict each other, if nothing is clear, or if all values show the same.
    fn told_apart(&self, plan: &Plan, axis: &'static Axis) -> Option<(Vec<String>, usize)> {
        let texts = axis.texts(plan);
        let mut right = 0;
        let mut signs = Vec::new();
        let part = |place: usize| {
            let own = self.cells.iter().filter(|(cell, ..)| axis.place(*cell) == place);
            let comparisons: Vec<&Comparison> = own.map(|(.., versus)| *versus).collect();
            let count =
                |is: fn(Verdict) -> bool| comparisons.iter().filter(|versus| versus.verdict.is_some_and(is)).count();
            let gains = count(Verdict::is_gain);
            let losses = count(|one| one.kind == Kind::Slower);
            let wasteful = count(|one| one.kind == Kind::FasterByWaste);
            let small = count(|one| matches!(one.kind, Kind::Negligible | Kind::Same));
            let all = comparisons.len();
            // What is said of some is in numbers of these.
            let middle_where = |is: fn(Verdict) -> bool, of: fn(f64) -> f64| {
                let own = comparisons.iter().filter(|versus| versus.verdict.is_some_and(is));
                median(&own.filter_map(|versus| versus.speedup.map(of)).collect::<Vec<_>>())
            };
            let in_some = |some: usize| if some < all { format!(" in {some} of {all}") } else { String::new() };
            let same = count(|one| one.kind == Kind::Same);
            let (sign, as_said, said) = match (gains * 2 >= all, losses * 2 >= all) {
                _ if gains > 0 && losses > 0 => return None,
                (true, _) if gains > 0 => {
                    let by_waste = match wasteful {
                        0 => String::new(),
                        _ if is_by_waste(gains, wasteful) => " by waste".to_owned(),
                        some => format!(" ({some} by waste)"),
                    };
                    let middle = ratio([middle_where(Verdict::is_gain, |speedup| speedup)?; 2]);
                    (1, gains, format!("{middle} times as fast{by_waste}{}", in_some(gains)))
                }
                (_, true) if losses > 0 => {
                    let middle = longer(middle_where(|one| one.kind == Kind::Slower, f64::recip)?.recip());
                    (-1, losses, format!("{middle}{}", in_some(losses)))
                }
                _ => {
                    let unclear = all - gains - losses;
                    let said = match all {
                        0 => "nothing to compare",
                        _ if same == all => SAME,
                        _ if small == all => SMALL,
                        _ => UNCLEAR,
                    };
                    (0, unclear, format!("{said}{}", in_some(unclear)))
                }
            };
            right += as_said;
            signs.push(sign);
            Some(format!("{said} {}", at(axis, texts[place])))
        };
        let parts: Vec<String> = (0..texts.len()).map(part).collect::<Option<_>>()?;
        (signs.iter().any(|sign| *sign != signs[0])).then_some((parts, right))
    }

    /// The bytes sent twice, if they are the price of the speed.
    fn waste(&self) -> String {
        percent_range(&self.twice).map_or(String::new(), |twice| format!(", at {twice} sent twice"))
    }

    /// The interval of the only comparison, or the reason why there is none.
    fn interval(&self) -> Option<[f64; 2]> {
        match self.cells[..] {
            [(_, _, versus)] => versus.speedup_ci,
            _ => None,
        }
    }

    /// What is to be known of the numbers: over what they are taken, and why there is no interval.
    fn basis(&self, plan: &Plan) -> String {
        let deterministic = match (self.verdict.is_deterministic(), plan.reps) {
            (true, 1) => " (one repetition: no interval)",
            (true, _) => " (deterministic, one distinct run)",
            _ => "",
        };
        match self.cells.len() {
            1 => deterministic.to_owned(),
            all => {
                let range = ratio(self.range);
                let wasteful = match (self.verdict.kind, self.signs()) {
                    (Kind::Faster, [.., wasteful]) if wasteful > 0 => format!(", by waste in {wasteful} of {all}"),
                    _ => String::new(),
                };
                let over = settings(plan, self.axis);
                format!(" in the {} over {over} (speed-up {range}){deterministic}{wasteful}", middle_of(all))
            }
        }
    }

    /// The answer about this value; where settings disagree a second sentence says what each of them shows.
    pub(super) fn sentences(&self, plan: &Plan) -> Vec<String> {
        if !self.is_partly() {
            let paid = if self.cells.len() > 1 { self.paid() } else { None };
            return std::iter::once(self.sentence(plan)).chain(paid).collect();
        }
        let cost = match self.verdict.kind {
            Kind::FasterByWaste => format!(", by waste{}", self.waste()),
            _ => self.bytes_sent(),
        };
        // A median over settings that disagree is not what a reader meets in any of them, so the counts come first.
        let (range, middle) = (ratio(self.range), ratio([self.middle; 2]));
        let which = middle_of(self.cells.len());
        let headline = format!("{}; speed-up {range}, {which} {middle}{cost}", self.counted());
        let mut sentences: Vec<String> = std::iter::once(headline).chain(self.parts(plan)).collect();
        sentences.iter_mut().for_each(|sentence| sentence.push('.'));
        sentences.extend(self.paid());
        sentences
    }

    /// What others pay, in a sentence of its own: over several settings it is long.
    fn paid(&self) -> Option<String> {
        Some(format!("What others pay: {}.", self.harm.as_ref()?.words(self.name, self.baseline)))
    }

    /// The answer about a value that is the same everywhere.
    fn sentence(&self, plan: &Plan) -> String {
        let Self { name, baseline, .. } = self;
        let [verb, infinitive] = verbs(plan);
        let place = match self.cells[..] {
            [(_, cell, _)] if self.axis == Axis::link() => format!(" {}", carried(cell)),
            [(_, cell, _)] => format!(" {} on {}", carried(cell), cell.link),
            _ => String::new(),
        };
        let basis = self.basis(plan);
        let bytes = self.bytes_sent();
        let harm = self.harm.as_ref().filter(|_| self.cells.len() == 1);
        let harm = harm.map_or(String::new(), |harm| format!("; {}", harm.words("it", baseline)));
        match self.verdict.kind {
            Kind::Same => format!("{name} makes no difference{}: {}.", on(&place), self.same()),
            Kind::Negligible => {
                let [speedup, interval] = beside_one(self.middle, self.interval());
                format!(
                    "{name} does not {infinitive}{place} sooner or later than {baseline} by more than 1 %: {speedup} times \
                     as fast{interval}{basis}{bytes}{harm}."
                )
            }
            Kind::Unclear => {
                let speedup = ratio([self.middle; 2]);
                let interval = self.interval().map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
                format!(
                    "{name} does not {infinitive}{place} measurably sooner or later than {baseline}: {speedup} times as \
                     fast{interval}{basis}{bytes}{harm}."
                )
            }
            Kind::FasterByWaste => {
                let against = against(self.middle, self.interval(), baseline);
                format!("{name} {verb}{place} {against}{basis}, but by waste{}{harm}.", self.waste())
            }
            Kind::Faster | Kind::Slower if self.middle >= 1.0 => {
                format!("{name} {verb}{place} {}{basis}{bytes}{harm}.", against(self.middle, self.interval(), baseline))
            }
            Kind::Faster | Kind::Slower => {
                let against = against(self.slowed(), self.interval(), baseline);
                format!("{name} takes {against} to {infinitive}{place}{basis}{bytes}{harm}.")
            }
        }
    }

    fn same(&self) -> String {
        let reasons = || self.cells.iter().flat_map(|(_, cell, _)| cell.exit_reasons.keys());
        let are_all = |wanted: &str| reasons().next().is_some() && reasons().all(|reason| reason == wanted);
        let startup = if are_all(NO_EXIT) {
            ", and every transfer ended in startup (`flowstart trace` shows it)"
        } else if are_all(ExitReason::Loss.name()) {
            ", and packet loss ended every startup"
        } else {
            ""
        };
        format!("in every repetition all times and losses are the same as with {}{startup}", self.baseline)
    }

    /// How many bytes more or less are sent, and at most, if that is much more than in the median.
    fn bytes_sent(&self) -> String {
        let Some((bytes, most)) = self.bytes.zip(self.most_bytes) else { return String::new() };
        let said = match bytes {
            few if few.abs() < FEW_BYTES => ", for as many bytes".to_owned(),
            more if more > 0.0 => format!(", for {:.1} % more bytes", more * 100.0),
            fewer => format!(", for {:.1} % fewer bytes", -fewer * 100.0),
        };
        match most {
            _ if most <= bytes + MUCH_MORE => said,
            few if few.abs() < FEW_BYTES => format!("{said} (at most as many)"),
            more if more > 0.0 => format!("{said} (at most {} more)", percent(more)),
            fewer => format!("{said} (at least {} fewer)", percent(-fewer)),
        }
    }

    /// A short sentence about this value. `fastest` is the speed-up of the one that is offered.
    pub(super) fn short(&self, plan: &Plan, fastest: Option<f64>) -> String {
        let Self { name, .. } = self;
        let in_median = match self.cells.len() {
            1 => String::new(),
            all => format!(" in the {}", middle_of(all)),
        };
        let interval = self.interval().map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
        match self.verdict.kind {
            Kind::Same => format!("{name} makes no difference: {}.", self.same()),
            _ if self.is_partly() => {
                let is_waste = self.verdict.kind == Kind::FasterByWaste;
                let said = self.parts(plan).unwrap_or_else(|| self.counted());
                format!("{said}{}.", if is_waste { self.waste() } else { String::new() })
            }
            Kind::Negligible => {
                let [speedup, interval] = beside_one(self.middle, self.interval());
                format!(
                    "{name} differs from {} by 1 % at most: {speedup} times as fast{interval}{in_median}.",
                    self.baseline
                )
            }
            Kind::Unclear => {
                let speedup = ratio([self.middle; 2]);
                format!(
                    "{name} cannot be told apart from {}: {speedup} times as fast{interval}{in_median}.",
                    self.baseline
                )
            }
            Kind::FasterByWaste => {
                let still = if fastest.is_some_and(|fastest| self.middle > fastest) { " still" } else { "" };
                let speedup = ratio([self.middle; 2]);
                format!("{name} is faster{still}, {speedup} times{interval}{in_median}{}.", self.waste())
            }
            Kind::Faster | Kind::Slower => {
                let (verb, middle) =
                    if self.middle >= 1.0 { (verbs(plan)[0], self.middle) } else { ("takes", self.slowed()) };
                format!("{name} {verb} {}{in_median}.", against(middle, self.interval(), self.baseline))
            }
        }
    }
}

/// The place of an effect, as in `to a 2MB transfer`.
fn on(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" to{place}") }
}
