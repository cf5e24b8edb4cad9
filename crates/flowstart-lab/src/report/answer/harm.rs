//! What others pay, in words.

use flowstart_statistics::median;

use super::words::{MOST_NAMED, listed, listed_by_value, percent};
use crate::results::cell_summary::CellSummary;
use crate::results::harm::HarmIn;
use crate::results::summary::Summary;
use crate::study::plan::{AXES, Axis, Plan};

/// Harm to others beside a value of an axis and beside the first one: in the median over settings, and at worst where
/// people feel it. What flows lose in bytes and time depends on the size first, so their worst setting says little, and
/// sizes that differ much are told one by one.
pub(super) struct Harm {
    measure: HarmIn,
    /// The size, the medians, and the worst of each side.
    parts: Vec<(String, [f64; 2], [f64; 2])>,
    /// Packets that others lost, in the median: on a full link nobody can take less from them than what he carries, so
    /// only this tells how hard he was on them.
    dropped: Option<[f64; 2]>,
}

/// Sizes differ much if the largest is this many times the smallest.
const MUCH_LARGER: u64 = 4;
/// Harm is the same if it differs by less than this part.
const ALIKE: f64 = 0.01;

impl Harm {
    /// From the cells of a value beside others, each with the place of its size and with the cell that it is compared
    /// with.
    pub(super) fn of(plan: &Plan, cells: &[(usize, [&CellSummary; 2])]) -> Option<Self> {
        let measure = HarmIn::of(plan);
        let part = |size: Option<usize>| {
            let own = cells.iter().filter(|(place, _)| size.is_none_or(|size| size == *place));
            let harm = own.filter_map(|(_, [own, base])| measure.mean(own).zip(measure.mean(base)));
            let (own, base): (Vec<f64>, Vec<f64>) = harm.unzip();
            let name = size.map_or(String::new(), |size| plan.sizes[size].text.clone());
            Some((name, [median(&own)?, median(&base)?], [measure.worst(&own)?, measure.worst(&base)?]))
        };
        let bytes = || cells.iter().map(|(_, [own, _])| own.size_bytes);
        let differ = bytes().max()? >= bytes().min()?.saturating_mul(MUCH_LARGER);
        let parts: Vec<_> = match differ && !measure.is_felt() && plan.sizes.len() <= MOST_NAMED {
            true => (0..plan.sizes.len()).filter_map(|size| part(Some(size))).collect(),
            false => part(None).into_iter().collect(),
        };
        let dropped = |side: usize| {
            let packets = |cells: &[&CellSummary; 2]| cells[side].others.as_ref()?.dropped_packets.mean;
            median(&cells.iter().filter_map(|(_, cells)| packets(cells)).collect::<Vec<_>>())
        };
        let dropped = (measure == HarmIn::Goodput).then(|| dropped(0).zip(dropped(1))).flatten();
        (!parts.is_empty()).then_some(Self { measure, parts, dropped: dropped.map(|(own, base)| [own, base]) })
    }

    /// The clause behind an answer.
    pub(super) fn words(&self, baseline: &str) -> String {
        let (_, middle, worst) = &self.parts[0];
        let [own, base] = [0, 1].map(|side| {
            let [middle, worst] = [middle[side], worst[side]].map(|value| in_words(self.measure, value));
            if middle == worst { middle } else { format!("{middle} (at worst {worst})") }
        });
        match self.measure {
            HarmIn::Score => {
                format!("the conversation's worst second scores {own} beside it and {base} beside {baseline}")
            }
            HarmIn::Frames => {
                format!("the call beside it does not show {own} of its frames, and {base} beside {baseline}")
            }
            HarmIn::Time | HarmIn::Goodput => self.taken(baseline) + &self.lost(baseline),
        }
    }

    /// The packets that others lost, where they lost more or fewer than beside the first value.
    fn lost(&self, baseline: &str) -> String {
        match self.dropped.map(|sides| sides.map(packets)) {
            Some([own, base]) if own != base => {
                format!("; because of it they lose {own} packets, because of {baseline} {base}")
            }
            _ => String::new(),
        }
    }

    /// What flows without people lose, where they lose anything and more than beside the first value.
    fn taken(&self, baseline: &str) -> String {
        let is_none = |value: f64| in_words(self.measure, value) == in_words(self.measure, 0.0);
        let is_alike = |[own, base]: [f64; 2]| {
            in_words(self.measure, own) == in_words(self.measure, base)
                || (own - base).abs() <= ALIKE * own.abs().max(base.abs())
        };
        if self.parts.iter().all(|(_, middle, _)| middle.iter().all(|value| is_none(*value))) {
            return "it takes nothing from others".to_owned();
        }
        let (alike, apart): (Vec<_>, Vec<_>) = self.parts.iter().partition(|(_, middle, _)| is_alike(*middle));
        if apart.is_empty() {
            return format!("it takes no more from others than {baseline}");
        }
        let (others, verb) = match self.measure {
            HarmIn::Time => ("other transfers", "take"),
            _ => ("competing flows", "deliver"),
        };
        let with = |size: &str| if size.is_empty() { String::new() } else { format!(" with {size}") };
        let said = apart.into_iter().map(|(size, [own, base], _)| {
            let [own, base] = [*own, *base].map(|value| in_words(self.measure, value));
            format!("{own} beside it and {base} beside {baseline}{}", with(size))
        });
        let said = said.collect::<Vec<_>>().join(", ");
        let rest: Vec<String> = alike.into_iter().map(|(size, ..)| size.clone()).collect();
        let rest = match rest.is_empty() {
            true => String::new(),
            false => format!("; it takes no more than {baseline} with {}", listed(&rest)),
        };
        format!("{others} {verb} {said}{rest}")
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
    let axis = AXES.iter().find(|axis| axis.name() == "aqm" && axis.length(plan) > 1).unwrap_or(compared);
    let texts = axis.texts(plan);
    let clauses = HarmIn::of_people(plan).into_iter().filter_map(|measure| {
        let met = (0..texts.len()).map(|place| at_worst(plan, summary, measure, axis, place));
        let (values, cells): (Vec<f64>, Vec<&CellSummary>) = met.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let (best, worst) = (measure.best(&values)?, measure.worst(&values)?);
        let who = if measure == HarmIn::Score { "conversation" } else { "call" };
        let met = |value: f64| match measure {
            HarmIn::Score => format!("a worst second of {}", in_words(measure, value)),
            _ => format!("{} of its frames not shown", in_words(measure, value)),
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
            return Some(format!("for the {who} all {} are alike, with {}", axis.plural, met(best)));
        }
        let ((several, best_names), (_, worst_names)) = (named(&is_like(best)), named(&is_like(worst)));
        let end = in_words(measure, worst);
        let reach = |place: usize| measure.ci95(cells[place]).unwrap_or([values[place]; 2]);
        let of_best = values.iter().position(|value| *value == best).map(reach)?;
        let overlaps = |place: usize| reach(place)[0] <= of_best[1] && of_best[0] <= reach(place)[1];
        if (0..texts.len()).all(overlaps) {
            let from = format!("{} with {best_names} to {end} with {worst_names}", met(best));
            return Some(format!("for the {who} no two {} can be told apart, from {from}", axis.plural));
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
