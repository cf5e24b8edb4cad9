//! Statements that only compare means: tables in `validation/`, a row for each sentence of a source.
//!
//! A file has studies, each a shipped scenario with its statements. `{name}` stands for one of the file's `names` or,
//! one after the other, for the values of the statement's `each`. A number is written as `metric(words)`, the mean of a
//! metric over the cells that all words describe ([`Results::cells`]); as a figure; or as a difference, quotient or
//! product of such, with spaces around the sign.

use std::collections::BTreeMap;

use serde::Deserialize;

use flowstart_lab::results::row::Metric;

use crate::check::{Band, Checker, above, at_least, at_most, below, between};
use crate::results::{Results, changed, mean_of};

pub(crate) const FLOW_INITIATION: &str = include_str!("../../../validation/flow-initiation/statements.toml");
pub(crate) const SHARED_BOTTLENECK: &str = include_str!("../../../validation/slides/shared-bottleneck.toml");

/// A file of statements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the verdict notes.
    #[serde(default)]
    note: String,
    /// What statements without a relation or a band of their own have.
    relation: Option<Relation>,
    band: Option<String>,
    /// Short names.
    #[serde(default)]
    names: BTreeMap<String, String>,
    study: Vec<Study>,
}

/// A scenario and what is said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    scenario: String,
    /// Other links than the scenario's.
    link: Option<Vec<String>>,
    /// Other repetitions than the scenario's.
    reps: Option<u32>,
    statement: Vec<Statement>,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    /// What the source says; of several rows with the same source in the first one.
    #[expect(dead_code, reason = "for readers")]
    #[serde(default)]
    quote: String,
    /// Values that names stand for: those of one table together, tables in every combination, the last one fastest.
    #[serde(default)]
    each: Vec<BTreeMap<String, Vec<String>>>,
    cell: String,
    metric: String,
    ours: String,
    /// How our number lies to the other one; absent: as the file says.
    relation: Option<Relation>,
    than: String,
    /// What `than` is multiplied by for the bound.
    #[serde(default = "one")]
    factor: f64,
    /// What is accepted in words; absent: as the file says, or the relation and the bound.
    band: Option<String>,
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Relation {
    Above,
    Below,
    AtLeast,
    AtMost,
    /// Smaller or larger by at most the factor.
    CloseTo,
}

impl Relation {
    fn band(self, than: f64, factor: f64) -> Band {
        let bound = factor * than;
        match self {
            Self::Above => above(bound),
            Self::Below => below(bound),
            Self::AtLeast => at_least(bound),
            Self::AtMost => at_most(bound),
            Self::CloseTo => between(than / factor, bound, than),
        }
        .beside(than)
    }
}

/// Names and what stands for them.
type Names = BTreeMap<String, String>;

fn replaced(text: &str, names: &Names) -> String {
    // Values may hold names.
    let once =
        |text: String| names.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value));
    once(once(text.to_owned()))
}

impl Statement {
    /// The names of each comparison.
    fn comparisons(&self, names: &Names) -> Vec<Names> {
        self.each.iter().fold(vec![names.clone()], |all, table| {
            let count = table.values().map(Vec::len).max().unwrap_or(0);
            let with = |names: &Names, place: usize| {
                let values = table.iter().filter_map(|(name, values)| Some((name.clone(), values.get(place)?.clone())));
                names.clone().into_iter().chain(values).collect()
            };
            all.iter().flat_map(|names| (0..count).map(move |place| (names, place))).map(|(n, p)| with(n, p)).collect()
        })
    }

    /// Compares; `mean` gives the mean of a metric over the cells that words describe.
    fn check(&self, file: &File, mean: Mean<'_>, checker: &mut Checker) -> Result<(), String> {
        let relation = self.relation.or(file.relation).ok_or_else(|| format!("{}: no relation", self.metric))?;
        for names in self.comparisons(&file.names) {
            let number = |text: &str| value(&replaced(text, &names), mean);
            let band = relation.band(number(&self.than)?, self.factor);
            let band = match self.band.as_ref().or(file.band.as_ref()) {
                Some(text) => band.saying(replaced(text, &names)),
                None => band,
            };
            checker.check(&replaced(&self.cell, &names), &replaced(&self.metric, &names), number(&self.ours)?, band);
        }
        Ok(())
    }
}

/// The mean of a metric over the cells that words describe.
type Mean<'a> = &'a dyn Fn(&str, &[&str]) -> Result<f64, String>;

fn value(text: &str, mean: Mean<'_>) -> Result<f64, String> {
    let operators: [(&str, fn(f64, f64) -> f64); 3] =
        [(" - ", |a, b| a - b), (" / ", |a, b| a / b), (" * ", |a, b| a * b)];
    for (sign, apply) in operators {
        if let Some((left, right)) = text.rsplit_once(sign) {
            return Ok(apply(value(left, mean)?, value(right, mean)?));
        }
    }
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let of_cells = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let (metric, words) = of_cells.ok_or_else(|| format!("`{text}` is no number and no `metric(words)`"))?;
    mean(metric, &words.split_whitespace().collect::<Vec<_>>())
}

/// The metric with this name.
fn metric(name: &str) -> Result<&'static Metric, String> {
    Metric::named(name).ok_or_else(|| format!("no metric `{name}`"))
}

fn read(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| format!("built-in statements: {error}"))
}

/// Runs the scenarios of a file and checks its statements; returns its note.
pub(crate) fn check(text: &str, jobs: usize, checker: &mut Checker) -> Result<String, String> {
    let file = read(text)?;
    for study in &file.study {
        let plan = changed(&study.scenario, |scenario| {
            scenario.link = study.link.clone().unwrap_or_else(|| scenario.link.clone());
            scenario.reps = study.reps.unwrap_or(scenario.reps);
        })?;
        let results = Results::run(plan, jobs)?;
        let by_cell = results.by_cell();
        let mean = |metric: &str, words: &[&str]| {
            let rows = results.cells(words).into_iter().flat_map(|cell| &by_cell[cell.index]);
            let metric = self::metric(metric)?;
            Ok(mean_of(rows, |row| metric.number(row)))
        };
        study.statement.iter().try_for_each(|statement| statement.check(&file, &mean, checker))?;
    }
    Ok(file.note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Status, Verdict};

    /// The verdict of a file on means that are made up.
    fn verdict(text: &str, count: usize, mean: Mean<'_>) -> Verdict {
        let file = read(text).unwrap();
        let mut checker = Checker::declaring(count);
        for statement in file.study.iter().flat_map(|study| &study.statement) {
            statement.check(&file, mean, &mut checker).unwrap();
        }
        checker.verdict("made up", String::new())
    }

    #[test]
    fn numbers_are_figures_and_means_and_what_follows_from_them() {
        let mean: Mean<'_> = &|metric, words| Ok(metric.len() as f64 + 10.0 * words.len() as f64);
        let of = |text: &str| value(text, mean);
        assert_eq!(["4.03", "m(a=1/2 b-c)", "2 * m(a) - mm(a b) / 2"].map(of), [Ok(4.03), Ok(21.0), Ok(22.0 - 11.0)]);
        assert!(of("m").unwrap_err().contains("`m` is no number"));
        assert!(metric("fct").unwrap_err().contains("no metric `fct`"));
    }

    /// A conversation in which delay grows with the window and the number of flows, as the thesis describes it.
    fn conversation(metric: &str, words: &[&str]) -> Result<f64, String> {
        let number = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<f64>().unwrap();
        let (size, window) = (words[0], number(words[1]));
        let flows = if words[2].starts_with("every") { 6.0 } else { number(words[2]) };
        let bytes = if size == "4MB" { 4e6 } else { number(size) * 1e3 };
        Ok(match metric {
            "fct_ms" => 500.0,
            "media_delay_max_ms" => 50.0 + window * window * flows + bytes / 1e4,
            "media_harm_onset_ms" => 150.0,
            "media_harm_ms" => 400.0 + window * 10.0,
            _ => {
                if size == "4MB" {
                    1.1
                } else {
                    4.3
                }
            }
        })
    }

    #[test]
    fn what_a_thesis_says_of_flow_initiation_passes_where_it_holds() {
        // 4 of one against six flows, 4 of small impact, 2 sizes with 4 of more flows and 3 of windows, 5 with 2 of
        // lasting harm, 2 of bulk.
        let of = verdict(FLOW_INITIATION, 4 + 4 + 14 + 10 + 2, &conversation);
        assert_eq!(of.status, Status::Pass, "{:?}", of.misses);
    }

    #[test]
    fn a_link_on_which_nobody_is_harmed_misses_everything_but_small_impact() {
        let calm = |metric: &str, _: &[&str]| {
            Ok(match metric {
                "fct_ms" => 500.0,
                "media_delay_max_ms" => 50.0,
                "media_harm_onset_ms" => f64::NAN,
                "media_harm_ms" => 0.0,
                _ => 4.3,
            })
        };
        let of = verdict(FLOW_INITIATION, 34, &calm);
        assert_eq!((of.cells, of.misses.len()), (34, 34 - 4), "{:?}", of.misses);
    }

    /// Every scheme as slow start, but for those that are named: a factor of the completion time and one of the
    /// inflation.
    fn bottleneck(named: &[(&str, f64, f64)]) -> Verdict {
        let mean = |metric: &str, words: &[&str]| {
            let found = named.iter().find(|(name, ..)| *name == words[0]);
            let (factor, waste) = found.map_or((1.0, 1.0), |(_, factor, waste)| (*factor, *waste));
            let load = words[1].trim_start_matches("poisson:load=").chars().find(char::is_ascii_digit).unwrap();
            let load = f64::from(load.to_digit(10).unwrap());
            // A factor below 1 is a benefit that is lost as the load rises, one above 1 is harm at high load.
            let lost = load >= 8.0 && factor < 1.0;
            Ok(if metric == "inflation" { 0.01 * load * waste } else { 1000.0 * if lost { 1.0 } else { factor } })
        };
        verdict(SHARED_BOTTLENECK, 38, &mean)
    }

    #[test]
    fn what_slides_say_of_a_shared_bottleneck_passes_where_it_holds() {
        let of = bottleneck(&[
            ("jump-start:threshold=64KiB", 0.6, 1.0),
            ("more-start:source=oracle", 0.5, 2.0),
            ("more-start:source=oracle,pacing=false", 1.1, 3.0),
            ("initial-start:iw=167", 1.5, 4.0),
            ("initial-start:iw=167,pacing=true", 1.2, 2.0),
            ("quick-start:iw=3", 0.6, 1.0),
            ("quick-start:iw=3,request=fixed,rate=10mbit", 0.95, 1.0),
        ]);
        // 9 loads, 2 of overshooting, 2 high loads with 3 others, 2 high loads and a decline for two requests, 3 loads
        // between for one of them, and 5 busy loads and a mean for each pair.
        assert_eq!((of.cells, of.status), (9 + 2 + 6 + 6 + 3 + 12, Status::Pass), "{:?}", of.misses);
    }

    #[test]
    fn schemes_without_any_difference_miss() {
        let of = bottleneck(&[]);
        // Jump-Start below half the load, both of More-Start, all of Initial-Start and of pacing, and no decline of
        // Quick-Start.
        assert_eq!(of.misses.len(), 5 + 2 + 6 + 12 + 2, "{:?}", of.misses);
    }
}
