//! What others pay, in words.

use flowstart_statistics::median;

use super::words::{MOST_NAMED, NOBODY, is_of_others, listed, listed_by_value, middle_of, percent, plural};
use crate::results::cell_summary::CellSummary;
use crate::results::harm::HarmIn;
use crate::results::summary::Summary;
use crate::study::plan::{Axis, Cell, Plan};

/// Harm to others beside a value of an axis and beside the first one: in the median over settings, and at worst where
/// people feel it. What flows lose in bytes and time depends on the size first, so their worst setting says little, and
/// sizes that differ much are told one by one.
pub(super) struct Harm {
    measure: HarmIn,
    parts: Vec<Part>,
    /// Whether the parts are competitors.
    by_competitor: bool,
}

/// Harm with a size or to a competitor, or with and to all of them.
struct Part {
    /// Empty for all.
    name: String,
    measure: HarmIn,
    /// The median of each side.
    middle: [f64; 2],
    worst: [f64; 2],
    /// Packets that others lost, in the median: on a full link nobody can take less from them than what he carries, so
    /// only this tells how hard he was on them.
    dropped: Option<[f64; 2]>,
    /// Settings that the medians are taken over.
    count: usize,
}

impl Part {
    /// What the medians are, behind a number.
    fn which(&self) -> String {
        if self.count > 1 { format!(" in the {}", middle_of(self.count)) } else { String::new() }
    }
}

/// Sizes differ much if the largest is this many times the smallest.
const MUCH_LARGER: u64 = 4;
/// Harm is the same if it differs by less than this part.
const ALIKE: f64 = 0.01;

impl Harm {
    /// From the cells of a value beside others, each with its results and those of the cell that it is compared with.
    pub(super) fn of(plan: &Plan, cells: &[(Cell, [&CellSummary; 2])]) -> Option<Self> {
        let measure = HarmIn::of(plan);
        let part = |of: Option<(&Axis, usize)>| {
            let measure = match of {
                Some((axis, place)) if is_of_others(axis) => HarmIn::of_one(plan.competitors[place].first()),
                _ => measure,
            };
            let own = || cells.iter().filter(|(cell, _)| of.is_none_or(|(axis, place)| axis.place(*cell) == place));
            let dropped = |side: usize| {
                let packets = |cells: &[&CellSummary; 2]| cells[side].others.as_ref()?.dropped_packets.mean;
                median(&own().filter_map(|(_, cells)| packets(cells)).collect::<Vec<_>>())
            };
            let dropped = dropped(0).zip(dropped(1)).map(|(own, base)| [own, base]);
            let harm = own().filter_map(|(_, [own, base])| measure.mean(own).zip(measure.mean(base)));
            let (own, base): (Vec<f64>, Vec<f64>) = harm.unzip();
            Some(Part {
                name: of.map_or(String::new(), |(axis, place)| axis.texts(plan)[place].to_owned()),
                measure,
                middle: [median(&own)?, median(&base)?],
                worst: [measure.worst(&own)?, measure.worst(&base)?],
                dropped: dropped.filter(|_| measure == HarmIn::Goodput),
                count: own.len(),
            })
        };
        let bytes = || cells.iter().map(|(_, [own, _])| own.size_bytes);
        let differ = bytes().max()? >= bytes().min()?.saturating_mul(MUCH_LARGER);
        // Competitors have nothing in common that a median would be of.
        let competitors = Axis::competitor();
        let others = competitors.texts(plan).into_iter().filter(|text| *text != NOBODY).count();
        let sizes = Axis::size();
        let told = match (others > 1, differ && plan.sizes.len() <= MOST_NAMED) {
            _ if measure.is_felt() => None,
            (true, _) => Some(competitors),
            (false, true) => Some(sizes),
            (false, false) => None,
        };
        let by_competitor = told.is_some_and(is_of_others);
        let parts: Vec<Part> = match told {
            Some(axis) => (0..axis.length(plan)).filter_map(|place| part(Some((axis, place)))).collect(),
            None => part(None).into_iter().collect(),
        };
        (!parts.is_empty()).then_some(Self { measure, parts, by_competitor })
    }

    /// The clause behind an answer about `it`.
    pub(super) fn words(&self, it: &str, baseline: &str) -> String {
        let part = &self.parts[0];
        let [own, base] = [0, 1].map(|side| {
            let [middle, worst] = [part.middle[side], part.worst[side]].map(|value| in_words(self.measure, value));
            if middle == worst { middle } else { format!("{middle} (at worst {worst})") }
        });
        let which = part.which();
        match self.measure {
            HarmIn::Score => {
                format!("the conversation's worst second scores{which} {own} beside {it} and {base} beside {baseline}")
            }
            HarmIn::Frames => {
                format!("of the call's frames{which} {own} are not shown beside {it}, and {base} beside {baseline}")
            }
            HarmIn::Time | HarmIn::Goodput => self.taken(it, baseline) + &self.lost(it, baseline),
        }
    }

    /// The packets that others lost, where they lost more or fewer than beside the first value.
    fn lost(&self, it: &str, baseline: &str) -> String {
        let in_part = |part: &Part| {
            let [own, base] = part.dropped?.map(packets);
            let name = match &*part.name {
                "" => String::new(),
                other if self.by_competitor => format!(" ({other})"),
                size => format!(" with {size}"),
            };
            (own != base).then(|| format!("{own} and {base}{name}"))
        };
        let lost: Vec<String> = self.parts.iter().filter_map(in_part).collect();
        if lost.is_empty() {
            return String::new();
        }
        format!("; packets that they lose because of {it} and because of {baseline}: {}", listed(&lost))
    }

    /// What flows without people lose, where they lose anything and more than beside the first value.
    fn taken(&self, it: &str, baseline: &str) -> String {
        let which = || self.parts.iter().map(Part::which).find(|which| !which.is_empty()).unwrap_or_default();
        let are_none = |part: &Part, values: [f64; 2]| {
            values.iter().all(|value| in_words(part.measure, *value) == in_words(part.measure, 0.0))
        };
        let is_alike = |part: &Part| {
            let [own, base] = part.middle;
            in_words(part.measure, own) == in_words(part.measure, base)
                || (own - base).abs() <= ALIKE * own.abs().max(base.abs())
        };
        if self.parts.iter().all(|part| are_none(part, part.middle)) {
            let is_all = self.parts.iter().all(|part| are_none(part, part.worst));
            return format!("{it} takes nothing from others{}", if is_all { String::new() } else { which() });
        }
        let which = which();
        let (alike, apart): (Vec<&Part>, Vec<&Part>) = self.parts.iter().partition(|part| is_alike(part));
        if apart.is_empty() {
            return format!("{it} takes as much from others as {baseline}{which}");
        }
        let in_part = |part: &Part| {
            let [own, base] = part.middle.map(|value| in_words(part.measure, value));
            let said = format!("{own} beside {it} and {base} beside {baseline}");
            match &*part.name {
                "" => said,
                other if self.by_competitor => format!("{said} ({other})"),
                size => format!("{said} with {size}"),
            }
        };
        let losses = [(HarmIn::Time, "other transfers take"), (HarmIn::Goodput, "competing flows deliver")];
        let said = losses.into_iter().filter_map(|(measure, others)| {
            let own: Vec<String> =
                apart.iter().filter(|part| part.measure == measure).map(|part| in_part(part)).collect();
            (!own.is_empty()).then(|| format!("{others}{which} {}", own.join(", ")))
        });
        let said = said.collect::<Vec<_>>().join("; ");
        let rest: Vec<String> = alike.into_iter().map(|part| part.name.clone()).collect();
        let to = if self.by_competitor { "from" } else { "with" };
        let rest = match rest.is_empty() {
            true => String::new(),
            false => format!("; {it} takes as much as {baseline} {to} {}", listed(&rest)),
        };
        format!("{said}{rest}")
    }
}

/// What people heard or saw beside every value of the axis, the baseline too: at worst, where there are several cells.
pub(super) fn felt_by_people(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Vec<String> {
    let of = |measure: HarmIn| {
        let what = match measure {
            HarmIn::Score => "Score of the conversation's worst second",
            HarmIn::Frames => "Frames of the call not shown",
            HarmIn::Goodput | HarmIn::Time => return None,
        };
        let said = |place: usize| {
            let (worst, cell) = at_worst(plan, summary, measure, axis, place)?;
            let interval = match measure.ci95(cell) {
                Some([low, high]) if low < high => {
                    let [low, high] = [low.max(0.0), high].map(|end| in_words(measure, end));
                    format!(" ({} to {high})", low.trim_end_matches(" %"))
                }
                _ => String::new(),
            };
            Some(format!("{}{interval}", in_words(measure, worst)))
        };
        let when = if plan.cells().len() > axis.length(plan) { ", at worst" } else { "" };
        Some(format!("{what}{when}: {}.", listed_by_value(plan, axis, said)?))
    };
    HarmIn::of_people(plan).into_iter().filter_map(of).collect()
}

/// The worst that people met beside a value of an axis, and the cell in which they did.
fn at_worst<'a>(
    plan: &Plan,
    summary: &'a Summary,
    measure: HarmIn,
    axis: &Axis,
    place: usize,
) -> Option<(f64, &'a CellSummary)> {
    let cells = plan.cells().into_iter().filter(|cell| axis.place(*cell) == place);
    let values = cells.filter_map(|cell| Some((measure.mean(&summary.cells[cell.index])?, cell.index)));
    let values: Vec<(f64, usize)> = values.collect();
    let worst = measure.worst(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>())?;
    let (_, index) = values.into_iter().find(|(value, _)| *value == worst)?;
    Some((worst, &summary.cells[index]))
}

/// The clause about the value that is best for the people beside the measured flows: of the AQMs, if there are several,
/// because a queue protects people whatever schemes do.
pub(super) fn best_for_people(plan: &Plan, summary: &Summary, compared: &'static Axis) -> Option<String> {
    let axis = Some(Axis::aqm()).filter(|axis| axis.length(plan) > 1).unwrap_or(compared);
    let texts = axis.texts(plan);
    let clauses = HarmIn::of_people(plan).into_iter().filter_map(|measure| {
        let met = (0..texts.len()).map(|place| at_worst(plan, summary, measure, axis, place));
        let (values, cells): (Vec<f64>, Vec<&CellSummary>) = met.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let (best, worst) = (measure.best(&values)?, measure.worst(&values)?);
        // Of several settings each value's worst.
        let at_worst = if plan.cells().len() > axis.length(plan) { "at worst " } else { "" };
        let who = if measure == HarmIn::Score { "conversation" } else { "call" };
        let met = |value: f64| match measure {
            HarmIn::Score => format!("a worst second of {at_worst}{}", in_words(measure, value)),
            _ => format!("{at_worst}{} of its frames not shown", in_words(measure, value)),
        };
        let named = |wanted: &dyn Fn(usize) -> bool| {
            let names: Vec<String> =
                (0..texts.len()).filter(|place| wanted(*place)).map(|place| texts[place].to_owned()).collect();
            (names.len() > 1, listed(&names))
        };
        // Values that read the same are named together.
        let is_like = |value: f64| {
            let values = &values;
            move |place: usize| in_words(measure, values[place]) == in_words(measure, value)
        };
        if in_words(measure, best) == in_words(measure, worst) {
            return Some(format!("for the {who} all {} are alike, with {}", plural(plan, axis), met(best)));
        }
        let ((several, best_names), (_, worst_names)) = (named(&is_like(best)), named(&is_like(worst)));
        let end = in_words(measure, worst);
        let reach = |place: usize| measure.ci95(cells[place]).unwrap_or([values[place]; 2]);
        let of_best = values.iter().position(|value| *value == best).map(reach)?;
        let overlaps = |place: usize| reach(place)[0] <= of_best[1] && of_best[0] <= reach(place)[1];
        if (0..texts.len()).all(overlaps) {
            let from = format!("{} with {best_names} to {end} with {worst_names}", met(best));
            return Some(format!("for the {who} no two {} can be told apart, from {from}", plural(plan, axis)));
        }
        let are = if several { "are" } else { "is" };
        let unsure = match named(&|place| overlaps(place) && !is_like(best)(place)) {
            (_, none) if none.is_empty() => String::new(),
            (_, names) => format!(", which cannot be told from {names}"),
        };
        Some(format!("for the {who} {best_names} {are} best, with {} ({end} with {worst_names}){unsure}", met(best)))
    });
    let clauses: Vec<String> = clauses.collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

fn in_words(measure: HarmIn, value: f64) -> String {
    match measure {
        HarmIn::Time => signed(value, "ms", 0, ["longer", "shorter", "as long"]),
        HarmIn::Score => format!("{value:.2}"),
        HarmIn::Frames => percent(value),
        HarmIn::Goodput => signed(value, "Mbit", 1, ["less", "more", "as much"]),
    }
}

/// Packets that were lost more than without the newcomers.
fn packets(value: f64) -> String {
    let number = format!("{:.0}", value.abs());
    if value < 0.0 && number != "0" { format!("{number} fewer") } else { number }
}

/// A quantity, and the word for its sign; the last word alone for what rounds to zero.
fn signed(value: f64, unit: &str, digits: usize, [positive, negative, none]: [&str; 3]) -> String {
    let number = format!("{:.digits$}", value.abs());
    if number == format!("{:.digits$}", 0.0) {
        return none.to_owned();
    }
    format!("{number} {unit} {}", if value < 0.0 { negative } else { positive })
}
