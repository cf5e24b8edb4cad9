//! What others pay, in words.

use flowstart_statistics::median;

use super::words::{listed_by_value, percent};
use crate::results::cell_summary::CellSummary;
use crate::results::harm::HarmIn;
use crate::results::summary::Summary;
use crate::study::plan::{Axis, Plan};

/// Harm to others beside a value of an axis and beside the first one: in the median over settings, and at worst where
/// people feel it. What flows lose in bytes and time depends on the size first, so their worst setting says little.
pub(super) struct Harm {
    measure: HarmIn,
    middle: [f64; 2],
    worst: [f64; 2],
}

impl Harm {
    /// From the cells of a value, each with the one that it is compared with.
    pub(super) fn of<'a>(measure: HarmIn, cells: impl Iterator<Item = [&'a CellSummary; 2]>) -> Option<Self> {
        let harm = cells.filter_map(|[own, base]| measure.mean(own).zip(measure.mean(base)));
        let (own, base): (Vec<f64>, Vec<f64>) = harm.unzip();
        let middle = [median(&own)?, median(&base)?];
        Some(Self { measure, middle, worst: [measure.worst(&own)?, measure.worst(&base)?] })
    }

    /// The clause behind an answer.
    pub(super) fn words(&self, baseline: &str) -> String {
        let [own, base] = [0, 1].map(|side| {
            let [middle, worst] = [self.middle[side], self.worst[side]].map(|value| in_words(self.measure, value));
            if middle == worst || !self.measure.is_felt() { middle } else { format!("{middle} (at worst {worst})") }
        });
        match self.measure {
            HarmIn::Time => format!("other transfers take {own} beside it and {base} beside {baseline}"),
            HarmIn::Score => {
                format!("the conversation's worst second scores {own} beside it and {base} beside {baseline}")
            }
            HarmIn::Frames => {
                format!("the call beside it does not show {own} of its frames, and {base} beside {baseline}")
            }
            HarmIn::Goodput => format!("competing flows deliver {own} beside it and {base} beside {baseline}"),
        }
    }
}

/// What people heard or saw beside every value of the axis, the baseline too: at worst, where there are several cells.
pub(super) fn felt_by_people(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<String> {
    let measure = HarmIn::of(plan);
    let what = match measure {
        HarmIn::Score => "Score of the conversation's worst second",
        HarmIn::Frames => "Frames of the call not shown",
        HarmIn::Goodput | HarmIn::Time => return None,
    };
    let cells = plan.cells();
    let at_worst = |place: usize| {
        let own = cells.iter().filter(|cell| axis.place(**cell) == place).map(|cell| &summary.cells[cell.index]);
        let values: Vec<(f64, &CellSummary)> = own.filter_map(|cell| Some((measure.mean(cell)?, cell))).collect();
        let worst = measure.worst(&values.iter().map(|(value, _)| *value).collect::<Vec<_>>())?;
        let (_, cell) = values.into_iter().find(|(value, _)| *value == worst)?;
        let interval = match measure.ci95(cell) {
            Some([low, high]) if low < high => {
                let [low, high] = [low.max(0.0), high].map(|end| in_words(measure, end));
                format!(" ({} to {high})", low.trim_end_matches(" %"))
            }
            _ => String::new(),
        };
        Some(format!("{}{interval}", in_words(measure, worst)))
    };
    let when = if cells.len() > axis.length(plan) { ", at worst" } else { "" };
    Some(format!("{what}{when}: {}.", listed_by_value(plan, axis, at_worst)?))
}

fn in_words(measure: HarmIn, value: f64) -> String {
    match measure {
        HarmIn::Time => signed(value, "ms", 0, ["longer", "shorter"]),
        HarmIn::Score => format!("{value:.2}"),
        HarmIn::Frames => percent(value),
        HarmIn::Goodput => signed(value, "Mbit", 1, ["less", "more"]),
    }
}

/// A quantity, and the word for its sign.
fn signed(value: f64, unit: &str, digits: usize, [positive, negative]: [&str; 2]) -> String {
    let word = if value < 0.0 { negative } else { positive };
    format!("{:.digits$} {unit} {word}", value.abs())
}
