//! Experiments of the lab: shipped scenarios, and the rows that they give.

use std::path::Path;

use flowstart_lab::experiment;
use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::rows_by_cell;
use flowstart_lab::study::plan::{AXES, Cell, Plan};
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::study::shipped::SHIPPED;
use flowstart_statistics::mean;

pub(crate) type Field = fn(&Row) -> Option<f64>;

/// What came of an experiment.
pub(crate) struct Results {
    pub(crate) plan: Plan,
    pub(crate) rows: Vec<Row>,
}

/// The plan of a shipped scenario.
pub(crate) fn plan(name: &str) -> Result<Plan, String> {
    changed(name, |_| {})
}

/// The plan of a shipped scenario with changes.
pub(crate) fn changed(name: &str, change: impl FnOnce(&mut Scenario)) -> Result<Plan, String> {
    let wrong = |problem: String| format!("built-in scenario {name}: {problem}");
    let text = SHIPPED.iter().find(|(shipped, _)| *shipped == name).map_or("", |(_, text)| text);
    let mut scenario = Scenario::from_text(text).map_err(|_| wrong("cannot be read".to_owned()))?;
    change(&mut scenario);
    scenario.plan(Path::new(".")).map_err(|error| wrong(error.to_string()))
}

/// The mean of a metric over rows that have it. It is NaN, which no band contains, when a run failed: what is left is
/// no mean of all.
pub(crate) fn mean_of<'a>(rows: impl IntoIterator<Item = &'a &'a Row>, field: impl Fn(&Row) -> Option<f64>) -> f64 {
    let values: Option<Vec<Option<f64>>> = rows.into_iter().map(|row| (!row.failed()).then(|| field(row))).collect();
    let values: Option<Vec<f64>> = values.map(|values| values.into_iter().flatten().collect());
    values.and_then(|values| mean(&values)).unwrap_or(f64::NAN)
}

impl Results {
    pub(crate) fn of(name: &str, jobs: usize) -> Result<Self, String> {
        Self::run(plan(name)?, jobs)
    }

    pub(crate) fn run(plan: Plan, jobs: usize) -> Result<Self, String> {
        let rows = experiment::execute(&plan, jobs, &[], |_| {}).map_err(|error| error.to_string())?;
        Ok(Self { plan, rows })
    }

    /// The rows of each cell, in the order of the plan.
    pub(crate) fn by_cell(&self) -> Vec<Vec<&Row>> {
        rows_by_cell(&self.plan, &self.rows)
    }

    /// The mean of a metric in each cell, in the order of the plan.
    pub(crate) fn means(&self, field: Field) -> Vec<f64> {
        self.by_cell().iter().map(|rows| mean_of(rows, field)).collect()
    }

    /// The cells that all words describe. A word is what stands on an axis of the cell, or how its link ends. One of
    /// several characters is written as `[56]`.
    pub(crate) fn cells(&self, words: &[&str]) -> Vec<Cell> {
        let plan = &self.plan;
        let is = |text: &str, word: &str| match word
            .split_once('[')
            .and_then(|(a, rest)| Some((a, rest.split_once(']')?)))
        {
            Some((before, (any, after))) => {
                let place = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
                place.is_some_and(|place| place.len() == 1 && any.contains(place))
            }
            None => text == word,
        };
        let describes = |word: &str, cell: &Cell| {
            let link = plan.links[cell.link].text.strip_suffix(word);
            link.is_some_and(|before| before.is_empty() || before.ends_with(','))
                || AXES.iter().any(|axis| axis.text(plan, cell).is_some_and(|text| is(text, word)))
        };
        plan.cells().into_iter().filter(|cell| words.iter().all(|word| describes(word, cell))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_failed_run_has_no_mean() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 2";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let mut rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let of = |rows: &[Row]| mean_of(&rows.iter().collect::<Vec<_>>(), |row| row.fct_ms);
        assert!(of(&rows).is_finite() && of(&[]).is_nan());
        rows[1].status = "time-limit".into();
        assert!(of(&rows).is_nan());
    }
}
