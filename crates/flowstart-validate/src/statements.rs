//! Statements that only compare numbers: tables in `validation/`, a row for each sentence of a source, which stands in
//! a comment above.
//!
//! A file has studies, each with the entry that it belongs to and with statements about cells of shipped scenarios.
//!
//! - `{name}` stands for one of the file's `names` or, one after the other, for the words of the statement's `each`.
//! - `holds` is our number, how it lies to another one, and the other: `<`, `<=`, `>` or `>=`. `0.9 of` before the
//!   other number multiplies it for the bound. `in 1 to 3 of 2` says between which numbers ours lies, beside which one;
//!   with `inside` neither of the two is accepted itself.
//! - A number is a figure; or `metric(words)`, of the cells that all words describe ([`Results::cells`]) in the study's
//!   first scenario, or in that of a word `@scenario`; or a difference, quotient or product of such, with spaces around
//!   the sign. [`of_cells`] says what may stand before a metric. `max`, `min` and `sum` before a name is that of what
//!   statements have recorded, and `ours`, `than`, `low` and `high` are numbers of the row's comparison.
//! - `<number format>` in bands and notes is a number in this format: `%`, `.2` or `+.2`; `<all name format>` is
//!   everything that was recorded by this name.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Div, Mul, RangeInclusive, Sub};

use flowstart_lab::results::flows::Row;
use flowstart_lab::results::row::Metric;
use flowstart_statistics::{bca_mean, bca_mean_difference_paired, mean};
use rayon::prelude::*;
use serde::Deserialize;

use crate::Input;
use crate::check::{Band, Checker, above, at_least, at_most, below, between, inside, judged};
use crate::results::{Results, changed, mean_of};

const FILES: [&str; 7] = [
    validation_file!("blitzstart/statements.toml"),
    validation_file!("dualpi2/statements.toml"),
    validation_file!("flow-initiation/statements.toml"),
    validation_file!("load-transients/statements.toml"),
    validation_file!("quick-start/statements.toml"),
    validation_file!("slides/statements.toml"),
    validation_file!("xcp/statements.toml"),
];
/// Sizes of flows that are mid-sized, in bytes.
const MID_SIZED: RangeInclusive<u64> = 10_000..=1_000_000;
/// Level of intervals, and resamples of a bootstrap.
const LEVEL: f64 = 0.95;
const RESAMPLES: u32 = 2000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    names: Names,
    study: Vec<Study>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    entry: String,
    #[serde(default)]
    scenarios: Vec<String>,
    /// Other links than the scenarios'.
    link: Option<Vec<String>>,
    /// Other repetitions than the scenarios'.
    reps: Option<u32>,
    /// What statements without a band of their own accept, in words; absent: the relation and the bound.
    band: Option<String>,
    /// What the verdict notes; `{shown}` is what statements show.
    #[serde(default)]
    note: String,
    statement: Vec<Statement>,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    /// Words that names stand for, between spaces or `; `: those of one table together, tables in every combination,
    /// the last one fastest.
    #[serde(default)]
    each: Vec<Names>,
    #[serde(default)]
    cell: String,
    #[serde(default)]
    metric: String,
    /// The comparison; empty: the row only records or shows.
    #[serde(default)]
    holds: String,
    /// Our number, where another one is compared.
    ours: Option<String>,
    band: Option<String>,
    /// Numbers to keep, by name.
    #[serde(default)]
    record: Names,
    show: Option<String>,
}

/// Names and what stands for them.
type Names = BTreeMap<String, String>;

/// What gives the number of a metric, of the cells that words describe.
type Source<'a> = &'a dyn Fn(&str, &[&str]) -> Result<f64, String>;

/// What statements recorded and showed.
#[derive(Default)]
struct Kept {
    numbers: BTreeMap<String, Vec<f64>>,
    shown: Vec<String>,
}

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
            let words = |text: &str| -> Vec<String> {
                let text = replaced(text, names);
                text.split(if text.contains("; ") { "; " } else { " " }).map(str::to_owned).collect()
            };
            let table: Vec<(&String, Vec<String>)> = table.iter().map(|(name, text)| (name, words(text))).collect();
            let count = table.iter().map(|(_, words)| words.len()).max().unwrap_or(0);
            let with = |names: &Names, place: usize| {
                let words = table.iter().filter_map(|(name, words)| Some(((*name).clone(), words.get(place)?.clone())));
                names.clone().into_iter().chain(words).collect()
            };
            all.iter().flat_map(|names| (0..count).map(move |place| (names, place))).map(|(n, p)| with(n, p)).collect()
        })
    }
}

impl Study {
    fn check(&self, names: &Names, source: Source<'_>, checker: &mut Checker) -> Result<String, String> {
        let mut kept = Kept::default();
        for statement in &self.statement {
            for names in statement.comparisons(names) {
                let text = |text: &str| replaced(text, &names);
                if !statement.holds.is_empty() {
                    let (mut ours, mut band, numbers) = comparison(&text(&statement.holds), &kept, source)?;
                    if let Some(number) = &statement.ours {
                        band = judged(band.contains(ours), band.reference(), band.text());
                        ours = value(&text(number), &kept, source)?;
                    }
                    for (name, number) in numbers.into_iter().chain([named(("ours", ours))]) {
                        kept.numbers.insert(name, vec![number]);
                    }
                    if let Some(words) = statement.band.as_ref().or(self.band.as_ref()) {
                        band = band.saying(told(&text(words), &kept, source)?);
                    }
                    checker.check(&text(&statement.cell), &text(&statement.metric), ours, band);
                }
                for (name, number) in &statement.record {
                    let number = value(&text(number), &kept, source)?;
                    kept.numbers.entry(text(name)).or_default().push(number);
                }
                if let Some(words) = &statement.show {
                    kept.shown.push(told(&text(words), &kept, source)?);
                }
            }
        }
        Ok(told(&replaced(&self.note, names), &kept, source)?.replace("{shown}", &kept.shown.join("; ")))
    }
}

/// Our number, what is accepted of it, and the numbers of which that is made.
fn comparison(holds: &str, kept: &Kept, source: Source<'_>) -> Result<(f64, Band, Numbers), String> {
    let value = |text: &str| value(text, kept, source);
    let ranges = [(" in ", between as fn(f64, f64, f64) -> Band), (" inside ", inside)];
    let range = ranges.iter().find_map(|(word, band)| Some((holds.split_once(word)?, band)));
    if let Some(((ours, range), band)) = range
        && let Some((range, beside)) = range.split_once(" of ")
    {
        let (low, high) = range.split_once(" to ").ok_or_else(|| format!("`{range}` has no end"))?;
        let (low, high, than) = (value(low)?, value(high)?, value(beside)?);
        return Ok((
            value(ours)?,
            band(low, high, than),
            [("low", low), ("high", high), ("than", than)].map(named).into(),
        ));
    }
    let relations = [(" < ", below as fn(f64) -> Band), (" <= ", at_most), (" > ", above), (" >= ", at_least)];
    let found = relations.iter().find_map(|(sign, band)| Some((holds.split_once(sign)?, band)));
    let ((ours, than), band) = found.ok_or_else(|| format!("`{holds}` compares nothing"))?;
    let factor = than.split_once(" of ").and_then(|(factor, than)| Some((factor.parse().ok()?, than)));
    let (factor, than): (f64, &str) = factor.unwrap_or((1.0, than));
    let than = value(than)?;
    Ok((value(ours)?, band(factor * than).beside(than), [("than", than)].map(named).into()))
}

/// The sign between two numbers, and what it does with them.
type Operator = (&'static str, fn(f64, f64) -> f64);

fn value(text: &str, kept: &Kept, source: Source<'_>) -> Result<f64, String> {
    let last = |operators: &[Operator]| {
        let places = operators.iter().filter_map(|(sign, apply)| Some((text.rfind(sign)?, *apply)));
        places.max_by_key(|(place, _)| *place)
    };
    if let Some((place, apply)) = last(&[(" - ", f64::sub)]).or_else(|| last(&[(" / ", f64::div), (" * ", f64::mul)])) {
        return Ok(apply(value(&text[..place], kept, source)?, value(&text[place + 3..], kept, source)?));
    }
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    if let Some((metric, words)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        return source(metric, &words.split_whitespace().collect::<Vec<_>>());
    }
    if let Some([number]) = kept.numbers.get(text).map(Vec::as_slice) {
        return Ok(*number);
    }
    let recorded = text.split_once(' ').and_then(|(of, name)| Some((of, kept.numbers.get(name)?.iter().copied())));
    match recorded {
        Some(("max", numbers)) => Ok(numbers.fold(f64::NEG_INFINITY, f64::max)),
        Some(("min", numbers)) => Ok(numbers.fold(f64::INFINITY, f64::min)),
        Some(("sum", numbers)) => Ok(numbers.sum()),
        _ => Err(format!("`{text}` is no number, no `metric(words)` and nothing that was recorded")),
    }
}

/// The text with the numbers in it.
fn told(text: &str, kept: &Kept, source: Source<'_>) -> Result<String, String> {
    let Some((before, rest)) = text.split_once('<') else { return Ok(text.to_owned()) };
    let number = rest.split_once('>').and_then(|(number, behind)| Some((number.rsplit_once(' ')?, behind)));
    let ((number, format), behind) = number.ok_or_else(|| format!("`{text}` has a number without a format"))?;
    let digits = format.trim_start_matches(['+', '.']).parse().unwrap_or(2);
    let shown = |number: &f64| match format {
        "%" => format!("{:.2} %", number * 100.0),
        _ if format.starts_with('+') => format!("{number:+.digits$}"),
        _ => format!("{number:.digits$}"),
    };
    let number = match number.strip_prefix("all ").and_then(|name| kept.numbers.get(name)) {
        Some(numbers) => numbers.iter().map(shown).collect::<Vec<_>>().join(" "),
        None => shown(&value(number, kept, source)?),
    };
    Ok(format!("{before}{number}{}", told(behind, kept, source)?))
}

/// The number of a metric in a scenario's results: the mean over all flows of the cells, or with a word before it
///
/// - `mid-sized:` the same over flows of 10 KB to 1 MB;
/// - `loads:` the mean of the cells' means, `most:` the largest of them, `fastest:` the least of all but the first
///   scheme, all undefined unless every cell's is known;
/// - `low:` and `high:` the ends of the interval of the mean over the repetitions of a cell;
/// - `gain:` how much larger it is in the cells of the words behind `|`, over the repetitions that both have, mean over
///   pairs of cells in their order; `gain-low:` the low end of its interval.
pub(crate) fn of_cells(results: &Results, by_cell: &[Vec<&Row>], metric: &str, words: &[&str]) -> Result<f64, String> {
    let (kind, metric) = metric.split_once(':').unwrap_or(("mean", metric));
    let metric = Metric::named(metric).ok_or_else(|| format!("no metric `{metric}`"))?;
    let number = |row: &Row| metric.number(row);
    let (words, beyond) = match words.iter().position(|word| *word == "|") {
        Some(place) => (&words[..place], &words[place + 1..]),
        None => (words, [].as_slice()),
    };
    let cells = results.cells(words);
    let rows = || cells.iter().flat_map(|cell| &by_cell[cell.index]);
    let means = || cells.iter().map(|cell| mean_of(&by_cell[cell.index], number));
    let ends = || {
        let [cell] = &cells[..] else { return [f64::NAN; 2] };
        let values: Vec<f64> = by_cell[cell.index].iter().filter_map(|row| number(row)).collect();
        let estimate = bca_mean(&values, LEVEL, RESAMPLES, cell.index as u64);
        estimate.map_or([f64::NAN; 2], |estimate| [estimate.interval.low, estimate.interval.high])
    };
    let gains = || {
        let others = results.cells(beyond);
        let pairs = cells.iter().zip(&others).map(|(before, after)| {
            let of = |cell: usize| by_cell[cell].iter().filter_map(|row| Some((row.rep, number(row)?)));
            let after: BTreeMap<u64, f64> = of(after.index).collect();
            let (before, after): (Vec<f64>, Vec<f64>) =
                of(before.index).filter_map(|(rep, value)| Some((value, *after.get(&rep)?))).unzip();
            let gain = mean(&after).zip(mean(&before)).map_or(f64::NAN, |(after, before)| after - before);
            let interval = bca_mean_difference_paired(&before, &after, LEVEL, RESAMPLES, 1);
            [gain, interval.map_or(f64::NAN, |estimate| estimate.interval.low)]
        });
        pairs.collect::<Vec<[f64; 2]>>()
    };
    let mean_of_all = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Ok(match kind {
        "mean" => mean_of(rows(), number),
        "mid-sized" => mean_of(rows().filter(|row| MID_SIZED.contains(&row.size_bytes)), number),
        "loads" => mean_of_all(&means().collect::<Vec<_>>()),
        "fastest" | "most" if means().any(f64::is_nan) => f64::NAN,
        "fastest" => {
            let others = cells.iter().filter(|cell| cell.scheme > 0);
            others.map(|cell| mean_of(&by_cell[cell.index], number)).reduce(f64::min).unwrap_or(f64::NAN)
        }
        "most" => means().reduce(f64::max).unwrap_or(f64::NAN),
        "low" => ends()[0],
        "high" => ends()[1],
        "gain" => mean_of_all(&gains().iter().map(|[gain, _]| *gain).collect::<Vec<_>>()),
        "gain-low" if gains().iter().any(|[_, low]| low.is_nan()) => f64::NAN,
        "gain-low" => gains().iter().map(|[_, low]| *low).reduce(f64::min).unwrap_or(f64::NAN),
        _ => {
            return Err(format!("`{kind}:` is not mean, mid-sized, loads, fastest, most, low, high, gain or gain-low"));
        }
    })
}

/// The studies of an entry, and the names that stand in their files.
fn studies(entry: &str) -> Result<Vec<(Names, Study)>, String> {
    let mut found = Vec::new();
    for text in FILES {
        let File { names, study } = toml::from_str(text).map_err(|error| format!("built-in statements: {error}"))?;
        let own = study.into_iter().filter(|study| study.entry == entry);
        found.extend(own.map(|study| (names.clone(), study)));
    }
    Ok(found)
}

/// Checks an entry's statements on the numbers of a source; returns the note.
pub(crate) fn check(entry: &str, source: Source<'_>, checker: &mut Checker) -> Result<String, String> {
    studies(entry)?.iter().map(|(names, study)| study.check(names, source, checker)).collect()
}

/// What was measured of a cell, by metric.
pub(crate) type Numbers = BTreeMap<String, f64>;

pub(crate) fn named((metric, number): (&str, f64)) -> (String, f64) {
    (metric.to_owned(), number)
}

/// Checks an entry's statements about cells that are measured by their names; returns the note.
pub(crate) fn measured(
    input: &Input,
    checker: &mut Checker,
    measure: impl Fn(&str) -> Result<Numbers, String> + Sync,
) -> Result<String, String> {
    // What is asked for is collected first, to be run at the same time.
    let wanted = RefCell::new(BTreeSet::new());
    let collect = |_: &str, words: &[&str]| {
        wanted.borrow_mut().insert(words.join(" "));
        Ok(1.0)
    };
    check(input.entry, &collect, &mut Checker::default())?;
    let wanted: Vec<String> = wanted.into_inner().into_iter().collect();
    let measured = wanted.into_par_iter().map(|cell| measure(&cell).map(|numbers| (cell, numbers)));
    let measured: BTreeMap<String, Numbers> = measured.collect::<Result<_, String>>()?;
    let source = |metric: &str, words: &[&str]| {
        let number = measured.get(&words.join(" ")).and_then(|numbers| numbers.get(metric));
        number.copied().ok_or_else(|| format!("no `{metric}` was measured"))
    };
    check(input.entry, &source, checker)
}

/// Runs the scenarios of an entry and checks its statements; returns the note.
pub(crate) fn of_scenarios(input: &Input, checker: &mut Checker) -> Result<String, String> {
    let mut notes = String::new();
    for (names, study) in studies(input.entry)? {
        let mut results = Vec::new();
        for scenario in &study.scenarios {
            let plan = changed(scenario, |scenario| {
                scenario.link = study.link.clone().unwrap_or_else(|| scenario.link.clone());
                scenario.reps = study.reps.unwrap_or(scenario.reps);
            })?;
            results.push((scenario.as_str(), Results::run(plan, input.jobs)?));
        }
        let by_cell: Vec<_> = results.iter().map(|(_, results)| results.by_cell()).collect();
        let source = |metric: &str, words: &[&str]| {
            let (named, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('@'));
            let is_named = |scenario: &str| named.first().is_none_or(|word| word[1..] == *scenario);
            let place = results.iter().position(|(scenario, _)| is_named(scenario));
            let place = place.ok_or_else(|| format!("no scenario {named:?}"))?;
            of_cells(&results[place].1, &by_cell[place], metric, &words)
        };
        notes += &study.check(&names, &source, checker)?;
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Status, Verdict};
    use flowstart_lab::study::plan::AXES;

    /// The verdict of an entry on means that are made up.
    fn verdict(entry: &str, count: usize, mean: Source<'_>) -> Verdict {
        let mut checker = Checker::declaring(count);
        check(entry, mean, &mut checker).unwrap();
        checker.verdict("made up", String::new())
    }

    #[test]
    fn numbers_are_figures_and_means_and_what_follows_from_them() {
        let mean: Source<'_> = &|metric, words| Ok(metric.len() as f64 + 10.0 * words.len() as f64);
        let recorded = BTreeMap::from([("peak".to_owned(), vec![1.0, 4.0, 2.0])]);
        let kept = Kept { numbers: recorded, shown: Vec::new() };
        let of = |text: &str| value(text, &kept, mean);
        assert_eq!(["4.03", "m(a=1/2 b-c)", "2 * m(a) - mm(a b) / 2"].map(of), [Ok(4.03), Ok(21.0), Ok(22.0 - 11.0)]);
        assert!(of("m").unwrap_err().contains("`m` is no number"));
        assert_eq!(["max peak", "min peak", "sum peak"].map(of), [Ok(4.0), Ok(1.0), Ok(7.0)]);
        let text = "<2 / 3 %>, <m(a) .1> and <m(a b) +.0>";
        assert_eq!(told(text, &kept, mean), Ok("66.67 %, 11.0 and +21".to_owned()));
        let (ours, band, _) = comparison("m(a) <= 0.5 of m(a b)", &kept, mean).unwrap();
        assert_eq!((ours, band.text()), (11.0, "at most 10.5"));
        assert!(comparison("m(a) = 1", &kept, mean).unwrap_err().contains("compares nothing"));
        let results = Results { rows: Vec::new(), plan: crate::results::plan("quick-start-load").unwrap() };
        assert!(of_cells(&results, &results.by_cell(), "fct", &[]).unwrap_err().contains("no metric `fct`"));
    }

    #[test]
    fn operators_of_one_rank_apply_from_left_to_right() {
        let of = |text: &str| value(text, &Kept::default(), &|_, _| Ok(f64::NAN));
        assert_eq!(["8 / 4 * 2", "8 * 4 / 2", "8 - 4 / 2 - 1"].map(of), [Ok(4.0), Ok(16.0), Ok(5.0)]);
    }

    #[test]
    fn a_range_with_inside_leaves_its_ends_out() {
        let accepts = |holds: &str| {
            let (ours, band, _) = comparison(holds, &Kept::default(), &|_, _| Ok(0.02)).unwrap();
            band.contains(ours)
        };
        assert!(accepts("m(a) in -0.02 to 0.02 of 0") && !accepts("m(a) inside -0.02 to 0.02 of 0"));
    }

    #[test]
    fn numbers_of_cells_that_are_not_there_are_undefined() {
        let results = Results { rows: Vec::new(), plan: crate::results::plan("quick-start-load").unwrap() };
        for kind in ["mean", "mid-sized", "loads", "fastest", "most", "low", "high", "gain", "gain-low"] {
            for words in [&["web:sessions=20", "|", "web:sessions=20"][..], &["nowhere", "|", "nowhere"]] {
                let number = of_cells(&results, &results.by_cell(), &format!("{kind}:fct_ms"), words).unwrap();
                assert!(number.is_nan(), "{kind} {words:?}: {number}");
            }
        }
    }

    #[test]
    fn every_value_of_a_scenario_is_in_a_comparison() {
        let mut left_out = Vec::new();
        for text in FILES {
            let File { names, study } = toml::from_str(text).unwrap();
            // Scenarios of attacks have more cells than the paper has statements.
            let has_all = |study: &&Study| study.entry != "quick-start-attacks" && !study.scenarios.is_empty();
            for study in study.iter().filter(has_all) {
                let of = |scenario: &String| {
                    let links = study.link.clone();
                    let with = |scenario: &mut flowstart_lab::study::scenario::Scenario| {
                        scenario.link = links.unwrap_or_else(|| scenario.link.clone());
                    };
                    Results { rows: Vec::new(), plan: changed(scenario, with).unwrap() }
                };
                let results: Vec<Results> = study.scenarios.iter().map(of).collect();
                let compared = RefCell::new(vec![BTreeSet::new(); results.len()]);
                let source = |_: &str, words: &[&str]| {
                    let (named, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('@'));
                    let is = |scenario: &String| named.first().is_none_or(|word| word[1..] == **scenario);
                    let place = study.scenarios.iter().position(is).unwrap();
                    for words in words.split(|word| *word == "|") {
                        let cells = results[place].cells(words);
                        compared.borrow_mut()[place].extend(cells.iter().map(|cell| cell.index));
                    }
                    Ok(1.0)
                };
                study.check(&names, &source, &mut Checker::default()).unwrap();
                for ((scenario, results), compared) in study.scenarios.iter().zip(&results).zip(compared.into_inner()) {
                    let plan = &results.plan;
                    let cells = plan.cells();
                    // A statement may be about some of the schemes.
                    for axis in AXES.iter().filter(|axis| axis.name() != "scheme") {
                        let places: BTreeSet<usize> = compared.iter().map(|index| axis.place(cells[*index])).collect();
                        let missing = (0..axis.length(plan)).filter(|place| !places.contains(place));
                        left_out.extend(missing.map(|place| format!("{scenario} {} {place}", axis.name())));
                    }
                }
            }
        }
        assert!(left_out.is_empty(), "{}", left_out.join("\n"));
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
        let of = verdict("flow-initiation", 4 + 4 + 14 + 10 + 2, &conversation);
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
        let of = verdict("flow-initiation", 34, &calm);
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
        verdict("slides-shared-bottleneck", 38, &mean)
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

    #[test]
    fn a_small_gain_passes_and_neither_a_second_nor_an_undefined_one_does() {
        // Mean completion times of all transfers and of mid-sized ones, with slow start and with others.
        let misses = |slow: [f64; 2], fast: [f64; 2]| {
            let mean = |metric: &str, words: &[&str]| {
                let of = if words[0].starts_with("slow-start") { slow } else { fast };
                Ok(if metric == "fct_ms" { of[0] } else { of[1] })
            };
            verdict("slides-mixed-rtts", 24, &mean).misses.len()
        };
        assert_eq!(misses([500.0, 900.0], [450.0, 600.0]), 0);
        // 2.5 s - 1.2 s = 1.3 s, and 2.0 / 1.0 = 2.
        assert_eq!(misses([2000.0, 2500.0], [1000.0, 1200.0]), 24);
        assert_eq!(misses([f64::NAN, f64::NAN], [450.0, 600.0]), 24);
    }
}
