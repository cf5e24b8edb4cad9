//! The forest plot shows every comparison in a row: the speed-up with its interval, and what it costs.
//!
//! One table feeds two drawings: columns beside each other for screens, and rows of two or three lines for phones. The
//! second stands in `usermeta`, where the page finds it.

use super::document::{Chart, document};
use super::legend::{LegendItem, item, mark_item};
use super::style::NEUTRAL;
use super::table::{Table, named};
use super::ticks::{digits_of, padded, ticks};
use crate::baseline::{Baselines, Comparison, compared, differing, schemes_vary};
use crate::group::{Axis, Names};
use crate::names::{shortened, shortened_apart};
use crate::number::{Format, finite, interval};
use crate::pareto::{harm, harm_in};
use crate::time::time_words;
use crate::verdict::{LOOKS, Look, look_of, verdict};
use crate::{Cell, Verdict};
use serde_json::{Value, json};

/// Columns of the table: row, place of the verdict, speed-up and its ends, the costs and the baseline's, whether a
/// setting begins here, whether the interval goes on below and above what is drawn.
const COLUMNS: &[&str] =
    &["r", "v", "x", "low", "high", "c0", "c1", "c2", "c3", "b0", "b1", "b2", "b3", "first", "below", "above"];
/// Width of a column of costs.
const COST: f64 = 92.0;
/// Gap between columns.
const GAP: f64 = 10.0;
/// Rows up to which each has room for its costs on a phone.
const FEW: usize = 24;
/// Characters of a name and its setting that fit a line of a phone beside a number.
const LINE: usize = 42;
/// The widest columns of settings, names and speed-ups.
const WIDEST: [f64; 3] = [300.0, 260.0, 260.0];
/// Widths of a letter in settings and names where a text is to fit: few texts are of wide letters only.
const FITTING: [f64; 2] = [0.69, 0.58];
/// Widths of a letter in the columns of settings, which are bold, of names and of speed-ups, of the letters' size.
const LETTERS: [f64; 3] = [0.72, 0.57, 0.57];

/// A comparison.
struct Row<'a> {
    cell: &'a Cell,
    baseline: Option<&'a Cell>,
    verdict: Verdict,
    /// What rows above and below share.
    setting: String,
    name: String,
}

fn rows<'a>(cells: &'a [Cell]) -> Vec<Row<'a>> {
    let compared = compared(cells);
    let names = Names::of(&compared.iter().map(|(cell, _)| *cell).collect::<Vec<_>>());
    let baselines = Baselines::of(&compared);
    let (own, given) = named_by(&names.varied(), schemes_vary(&compared));
    let row = |(cell, baseline): Comparison<'a>| {
        // A scheme is named even where all compared cells have the same one.
        let scheme = own.contains(&Axis::Scheme).then(|| names.short(Axis::Scheme, cell).to_owned());
        let rest: Vec<Axis> = own.iter().copied().filter(|axis| *axis != Axis::Scheme).collect();
        let rest = Some(names.label(cell, &rest)).filter(|label| !label.is_empty());
        let label = scheme.into_iter().chain(rest).collect::<Vec<_>>().join(", ");
        let other = baseline.map_or(Vec::new(), |baseline| differing(cell, baseline));
        let name = match (label.is_empty(), &other[..]) {
            (false, _) => label,
            (true, []) => cell.scheme.clone(),
            (true, axes) => axes.iter().map(|axis| axis.value(cell)).collect::<Vec<_>>().join(" + "),
        };
        let against = baselines.name((cell, baseline)).filter(|_| baselines.are_several());
        let name = against.map_or(name.clone(), |baseline| format!("{name} against {baseline}"));
        Some(Row { cell, baseline, verdict: verdict(cell)?, setting: names.label(cell, &given), name })
    };
    compared.iter().copied().filter_map(row).collect()
}

/// The axes that name a row, and those that name the setting it shares with others: a row is the scheme, and its
/// avoidance where that varies. Where all have the same scheme, it is what varies last.
fn named_by(varied: &[Axis], schemes_vary: bool) -> (Vec<Axis>, Vec<Axis>) {
    let (chosen, mut given): (Vec<Axis>, Vec<Axis>) =
        varied.iter().partition(|axis| matches!(axis, Axis::Scheme | Axis::Avoidance));
    let mut own = match given.pop() {
        Some(last) if !schemes_vary => vec![last],
        last => {
            given.extend(last);
            if schemes_vary || !chosen.is_empty() { vec![Axis::Scheme] } else { vec![] }
        }
    };
    own.extend(chosen.into_iter().filter(|axis| *axis == Axis::Avoidance));
    (own, given)
}

/// What it costs, as far as any cell knows.
#[derive(Clone, Copy)]
struct Cost {
    /// Above its column.
    title: &'static str,
    /// Beside its number.
    words: &'static str,
    of: fn(&Cell) -> Option<f64>,
    format: Format,
}

/// Number of columns of costs.
const COSTS: usize = 4;

/// The costs of these rows. What others pay is told as people notice it where all others are people: a call's frames,
/// or a conversation's score. They lose almost no bytes. Transfers lose time, and what has no end loses bytes: both
/// have a column where both are there.
fn costs_of(rows: &[Row<'_>]) -> [Cost; COSTS] {
    let cost = |title, words, of: fn(&Cell) -> Option<f64>, format| Cost { title, words, of, format };
    let others = || rows.iter().map(|row| row.cell).filter(|cell| harm(cell).is_some());
    let are_all = |has: fn(&Cell) -> bool| others().next().is_some() && others().all(has);
    let none = cost("", "", |_| None, Format::Plain);
    let late = cost("harm (ms)", "harm to others (ms)", |cell| harm_in("ms", cell), Format::Plain);
    let less = cost("harm (Mbit)", "harm to others (Mbit)", |cell| harm_in("Mbit", cell), Format::Plain);
    let to_others = if are_all(|cell| cell.call.is_some_and(|call| finite(call.not_shown.mean).is_some())) {
        let of = |cell: &Cell| cell.call.and_then(|call| finite(call.not_shown.mean));
        [cost("call: not shown", "frames of the call not shown", of, Format::Percent), none]
    } else if are_all(|cell| cell.media.is_some_and(|media| finite(media.worst_1s_mos.mean).is_some())) {
        let of = |cell: &Cell| cell.media.and_then(|media| finite(media.worst_1s_mos.mean));
        [cost("MOS, worst 1 s", "score of the conversation's worst second", of, Format::Fraction), none]
    } else {
        [late, less]
    };
    let twice = cost("sent twice", "sent twice", |cell| finite(cell.inflation.mean), Format::Percent);
    let lost = cost("lost", "lost", |cell| finite(cell.lost.mean), Format::Percent);
    [twice, lost, to_others[0], to_others[1]]
}

/// The plot of all comparisons; nothing without any.
pub(crate) fn forest(cells: &[Cell]) -> Option<Chart> {
    plot(cells, None)
}

/// The plot of cells after a change, each compared with the same cell `before`.
pub(crate) fn changes(cells: &[Cell]) -> Option<Chart> {
    plot(cells, Some("before"))
}

/// The plot; `reference` is what all are compared with, where it is no cell of the same question.
fn plot(cells: &[Cell], reference: Option<&str>) -> Option<Chart> {
    let rows = rows(cells);
    let first = rows.first()?;
    let all_costs = costs_of(&rows);
    let costs: Vec<usize> =
        (0..COSTS).filter(|k| rows.iter().any(|row| (all_costs[*k].of)(row.cell).is_some())).collect();
    let mut table = Table::new(COLUMNS);
    let (mut lowest, mut highest, mut dearest) = (1.0_f64, 1.0_f64, [1e-6_f64; COSTS]);
    let points: Vec<f64> = rows.iter().filter_map(|row| finite(row.cell.speedup.mean)).collect();
    let ends = [points.iter().copied().fold(1.0, f64::min) / 3.0, points.iter().copied().fold(1.0, f64::max) * 3.0];
    for (r, row) in rows.iter().enumerate() {
        let x = row.cell.speedup.mean.unwrap_or(1.0);
        // An interval that says nothing must not press all others together.
        let whole = interval(row.cell.speedup).unwrap_or([x, x]);
        let [low, high] = whole.map(|end| end.clamp(ends[0], ends[1]));
        let [below, above] = [whole[0] < low, whole[1] > high].map(|is_cut| f64::from(u8::from(is_cut)));
        (lowest, highest) = (lowest.min(low), highest.max(high));
        let cost = |k: usize, cell: Option<&Cell>| cell.and_then(all_costs[k].of).unwrap_or(-1.0);
        let begins = r == 0 || rows[r - 1].setting != row.setting;
        let place = look_of(row.verdict).place as f64;
        let [c, b] = [Some(row.cell), row.baseline].map(|cell| std::array::from_fn::<f64, COSTS, _>(|k| cost(k, cell)));
        for k in 0..COSTS {
            dearest[k] = dearest[k].max(c[k]).max(b[k]);
        }
        let begins = f64::from(u8::from(begins));
        table.push(&[&[r as f64, place, x, low, high], &c[..], &b[..], &[begins, below, above]].concat());
    }
    let fitted = |column: usize, text: for<'b> fn(&'b Row<'_>) -> &'b String| {
        let texts: Vec<String> = rows.iter().map(|row| text(row).clone()).collect();
        shortened_apart(&texts, fitting(rows.len(), column))
    };
    let [settings, names] = [fitted(0, |row| &row.setting), fitted(1, |row| &row.name)];
    let numbers: Vec<String> = rows.iter().map(numbers).collect();
    let words: Vec<&str> = LOOKS.iter().map(|look| look.words).collect();
    let mut transform = vec![
        named(&names, "r", "name"),
        named(&settings, "r", "setting"),
        named(&numbers, "r", "numbers"),
        named(&words.into_iter().map(str::to_owned).collect::<Vec<_>>(), "v", "verdict"),
    ];
    for &k in &costs {
        let texts: Vec<String> = rows.iter().map(|row| all_costs[k].format.show((all_costs[k].of)(row.cell))).collect();
        let theirs: Vec<String> =
            rows.iter().map(|row| all_costs[k].format.show(row.baseline.and_then(all_costs[k].of))).collect();
        transform.extend([named(&texts, "r", &format!("t{k}")), named(&theirs, "r", &format!("u{k}"))]);
    }
    let baselines = Baselines::of(&rows.iter().map(|row| (row.cell, row.baseline)).collect::<Vec<_>>());
    let one = baselines.one().map_or_else(|| "the baseline".to_owned(), |one| shortened(one, fitting(rows.len(), 1)));
    let baseline = reference.map_or(one, str::to_owned);
    let drawing = Drawing {
        count: rows.len(),
        costs,
        all_costs,
        has_settings: rows.iter().any(|row| !row.setting.is_empty()),
        widths: [longest(&settings), longest(&names), longest(&numbers)],
        domain: padded(lowest, highest),
        highest: dearest,
        baseline: baseline.clone(),
    };
    let title = match rows.len() {
        _ if reference.is_some() => {
            format!("Change of the {}", time_words(rows.iter().map(|row| row.cell)).long)
        }
        1 => format!("{} against {baseline}", first.name),
        several if baselines.are_several() => format!("All {several} comparisons with their baselines"),
        several => format!("All {several} comparisons with {baseline}"),
    };
    let mut spec = document(&title, drawing.wide());
    spec["data"] = table.data();
    spec["transform"] = json!(transform);
    spec["usermeta"] = json!({"plot": drawing.place_of_plot(), "taken": drawing.taken(), "narrow": drawing.narrow()});
    let mut legend: Vec<LegendItem> = LOOKS
        .iter()
        .filter(|look| rows.iter().any(|row| look_of(row.verdict).place == look.place))
        .map(|look: &Look| mark_item(&look.words.replace("the baseline", &baseline), look.colour, look.shape))
        .collect();
    let has_intervals = rows.iter().any(|row| interval(row.cell.speedup).is_some());
    if has_intervals {
        legend.push(item("95 % interval", NEUTRAL, &[1, 0], 2.0));
    }
    if rows.iter().any(|row| row.baseline.is_some()) {
        legend.push(mark_item(&format!("cost of {baseline}"), NEUTRAL, "upright"));
    }
    Some(Chart {
        id: "forest".to_owned(),
        sentence: "Right of the line is faster. Differences that are sure have a mark in colour.".to_owned(),
        aria: format!(
            "Forest plot: {title}; speed-up with its interval, and what it costs. The table has the numbers."
        ),
        title,
        mode: "forest",
        legend,
        spec,
        ..Chart::default()
    })
}

/// The speed-up and its interval.
fn numbers(row: &Row<'_>) -> String {
    let (mean, ends) = Format::Factor.estimate(row.cell.speedup);
    match (row.verdict.is_deterministic(), ends.is_empty()) {
        (true, _) => format!("{mean} (one run)"),
        (_, true) => mean,
        (_, false) => format!("{mean} ({ends})"),
    }
}

fn longest(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Height of a row where there are so many, and the size of its letters.
fn row_of(count: usize) -> (f64, f64) {
    match count {
        0..=6 => (30.0, 13.0),
        7..=12 => (25.0, 12.5),
        13..=24 => (19.0, 12.0),
        25..=40 => (13.0, 10.5),
        // So many fit the first screen.
        41..=60 => (9.7, 9.2),
        _ => (13.0, 10.5),
    }
}

/// Characters that fit a column of text that is as wide as any: of settings or of names.
fn fitting(count: usize, column: usize) -> usize {
    (WIDEST[column] / (FITTING[column] * row_of(count).1)) as usize
}

/// How the rows are drawn.
struct Drawing {
    count: usize,
    /// Places of those that any cell knows.
    costs: Vec<usize>,
    all_costs: [Cost; COSTS],
    has_settings: bool,
    /// Characters of the longest setting, name and speed-up.
    widths: [usize; 3],
    domain: [f64; 2],
    /// The highest of each cost.
    highest: [f64; COSTS],
    baseline: String,
}

impl Drawing {
    /// Height of a row, and the size of its letters.
    fn row(&self) -> (f64, f64) {
        row_of(self.count)
    }

    fn height(&self) -> f64 {
        self.row().0 * self.count as f64
    }

    /// Widths of the columns of text: settings, names, speed-ups.
    fn columns(&self) -> [f64; 3] {
        [0, 1, 2].map(|k| (self.widths[k] as f64 * LETTERS[k] * self.row().1 + 6.0).clamp(30.0, WIDEST[k] + 6.0))
    }

    /// The plot's place among the columns.
    fn place_of_plot(&self) -> usize {
        1 + usize::from(self.has_settings)
    }

    /// Width of everything but the plot, with the gaps.
    fn taken(&self) -> f64 {
        let [setting, name, numbers] = self.columns();
        let settings = if self.has_settings { setting } else { 0.0 };
        let gaps = (self.place_of_plot() + 1 + self.costs.len()) as f64 * GAP;
        settings + name + numbers + self.costs.len() as f64 * COST + gaps + 12.0
    }

    fn y(&self, field: &str) -> Value {
        json!({"field": field, "type": "quantitative", "axis": null,
            "scale": {"domain": [self.count as f64 - 0.5, -0.5], "nice": false, "zero": false, "padding": 0}})
    }

    /// The stripe behind a row, which shows all its numbers.
    fn stripe(&self) -> Value {
        let mut tooltip = vec![
            json!({"field": "setting", "title": "setting"}),
            json!({"field": "name", "title": "what"}),
            json!({"field": "numbers", "title": "speed-up"}),
            json!({"field": "verdict", "title": "verdict"}),
        ];
        if !self.has_settings {
            tooltip.remove(0);
        }
        for &k in &self.costs {
            tooltip.push(json!({"field": format!("t{k}"), "title": self.all_costs[k].words}));
            tooltip.push(json!({"field": format!("u{k}"), "title": "the baseline's"}));
        }
        let edges =
            [json!({"calculate": "datum.r - 0.5", "as": "top"}), json!({"calculate": "datum.r + 0.5", "as": "bottom"})];
        json!({"transform": edges,
            "mark": {"type": "rect", "color": "#f3f3f3", "stroke": null, "cornerRadius": 0},
            "encoding": {"y": self.y("top"), "y2": {"field": "bottom"}, "tooltip": tooltip,
                "opacity": {"condition": {"test": "datum.r % 2 == 0", "value": 1}, "value": 0.001}}})
    }

    /// A line above the first row of each setting.
    fn separator(&self) -> Value {
        json!({"transform": [{"filter": "datum.first == 1 && datum.r > 0"},
                {"calculate": "datum.r - 0.5", "as": "top"}],
            "mark": {"type": "rule", "color": "#c9c9c9", "strokeWidth": 1}, "encoding": {"y": self.y("top")}})
    }

    fn text(&self, field: &str, width: f64, bold: bool) -> Value {
        json!({"mark": {"type": "text", "align": "left", "baseline": "middle", "limit": width, "fontSize": self.row().1,
            "fontWeight": if bold { 600 } else { 400 }, "color": "#222"},
            "encoding": {"y": self.y("r"), "x": {"value": 0}, "text": {"field": field}}})
    }

    fn column(&self, title: &str, width: f64, mut layers: Vec<Value>) -> Value {
        let mut all = vec![self.stripe()];
        if self.has_settings {
            all.push(self.separator());
        }
        all.append(&mut layers);
        json!({"width": width, "height": self.height(), "view": {"stroke": null}, "layer": all,
            "title": {"text": title, "anchor": "start", "fontSize": 12, "fontWeight": 400, "offset": 6,
                "color": "#555555"}})
    }

    fn x(&self, field: &str, count: f64) -> Value {
        let values = ticks(self.domain, count);
        let digits = digits_of(&values);
        json!({"field": field, "type": "quantitative",
            "title": format!("slower ◂ speed-up over {} (log scale) ▸ faster", self.baseline),
            "scale": {"type": "log", "domain": self.domain, "nice": false},
            "axis": {"orient": "top", "values": values, "labelExpr": format!("'×' + format(datum.value, '{digits}')"),
                "grid": true, "titleLimit": 600, "titlePadding": 5, "domain": false}})
    }

    /// The line at 1, the intervals and the marks. Where names stand above marks, the line is only `beside` marks: this
    /// much to both sides, in rows.
    fn marks(&self, up: f64, ticks: f64, size: f64, beside: Option<f64>) -> Vec<Value> {
        let looks: Vec<usize> = LOOKS.iter().map(|look| look.place).collect();
        let colour = json!({"field": "v", "type": "nominal", "legend": null,
            "scale": {"domain": looks, "range": LOOKS.map(|look| look.colour)}});
        let middle = json!({"calculate": format!("datum.r + {up}"), "as": "m"});
        let rule = json!({"type": "rule", "color": "#222", "strokeWidth": 1.2});
        let at = json!({"field": "one", "type": "quantitative"});
        let line = match beside {
            None => json!({"data": {"values": [{"one": 1}]}, "transform": [], "mark": rule, "encoding": {"x": at}}),
            Some(half) => json!({"transform": [{"calculate": "1", "as": "one"},
                    {"calculate": format!("datum.r + {}", up - half), "as": "from"},
                    {"calculate": format!("datum.r + {}", up + half), "as": "to"}],
                "mark": rule, "encoding": {"x": at, "y": self.y("from"), "y2": {"field": "to"}}}),
        };
        // An interval that goes on beyond what is drawn ends in an arrow.
        let arrow = |cut: &str, end: &str, angle: i32| {
            json!({"transform": [middle.clone(), {"filter": format!("datum.{cut} == 1")}],
                "mark": {"type": "point", "shape": "triangle", "filled": true, "opacity": 1, "size": size,
                    "angle": angle},
                "encoding": {"x": self.x(end, ticks), "y": self.y("m"), "color": colour}})
        };
        vec![
            line,
            json!({"transform": [middle, {"filter": "datum.low < datum.high"}],
                "mark": {"type": "rule", "strokeWidth": 2, "clip": true},
                "encoding": {"x": self.x("low", ticks), "x2": {"field": "high"}, "y": self.y("m"), "color": colour}}),
            arrow("below", "low", -90),
            arrow("above", "high", 90),
            json!({"transform": [middle],
                "mark": {"type": "point", "filled": true, "opacity": 1, "size": size},
                "encoding": {"x": self.x("x", ticks), "y": self.y("m"), "color": colour,
                    "shape": {"field": "v", "type": "nominal", "legend": null,
                        "scale": {"domain": looks, "range": LOOKS.map(|look| look.shape)}}}}),
        ]
    }

    fn cost(&self, k: usize) -> Value {
        let [own, theirs] = [format!("c{k}"), format!("b{k}")];
        let from = format!("z{k}");
        // Room for the number behind the longest bar.
        let domain = json!([0, self.highest[k] / 0.42]);
        let x = |field: &str| {
            json!({"field": field, "type": "quantitative", "axis": null,
                "scale": {"domain": domain, "nice": false, "zero": true, "padding": 0}})
        };
        let known = |field: &str| json!({"filter": format!("datum.{field} >= 0")});
        let height = (self.row().0 * 0.45).clamp(6.0, 11.0);
        let layers = vec![
            json!({"transform": [known(&own), {"calculate": "0", "as": from}],
                "mark": {"type": "bar", "height": height, "color": "#9db7c9"},
                "encoding": {"y": self.y("r"), "x": x(&own), "x2": {"field": from}}}),
            json!({"transform": [known(&theirs)],
                "mark": {"type": "tick", "orient": "vertical", "size": height + 4.0, "thickness": 1.6,
                    "color": NEUTRAL},
                "encoding": {"y": self.y("r"), "x": x(&theirs)}}),
            json!({"mark": {"type": "text", "align": "right", "baseline": "middle", "fontSize": self.row().1,
                "color": "#222"},
                "encoding": {"y": self.y("r"), "x": {"value": COST - 4.0}, "text": {"field": format!("t{k}")}}}),
        ];
        self.column(self.all_costs[k].title, COST, layers)
    }

    fn wide(&self) -> Value {
        let [setting, name, numbers] = self.columns();
        let mut columns = Vec::new();
        if self.has_settings {
            let mut texts = self.text("setting", setting, true);
            texts["transform"] = json!([{"filter": "datum.first == 1"}]);
            columns.push(self.column("", setting, vec![texts]));
        }
        columns.push(self.column("", name, vec![self.text("name", name, false)]));
        let size = if self.count > 24 { 46.0 } else { 80.0 };
        let mut plot = self.column("", 420.0, self.marks(0.0, 7.0, size, None));
        plot["title"] = Value::Null;
        columns.push(plot);
        columns.push(self.column("speed-up", numbers, vec![self.text("numbers", numbers, false)]));
        columns.extend(self.costs.iter().map(|&k| self.cost(k)));
        json!({"spacing": GAP, "hconcat": columns})
    }

    /// Rows of two lines: the name, and the interval below it. Where rows are few, the costs are between them.
    fn narrow(&self) -> Value {
        let is_short = self.count > FEW;
        // Name and setting share a line where both fit.
        let has_two = self.has_settings && self.widths[0] + self.widths[1] > LINE;
        let height = match (is_short, has_two) {
            (true, false) => 34.0,
            (true, true) => 48.0,
            (false, _) => 66.0,
        };
        // What does not fit is cut at the end, so what is compared comes first.
        let behind = if self.has_settings { " + ' · ' + datum.setting" } else { "" };
        let name = format!("datum.name{behind}");
        let text = |up: f64, field: &str, expression: &str, bold: bool, limit: u32| {
            let y = format!("y{field}");
            json!({"transform": [{"calculate": format!("datum.r + {up}"), "as": y},
                    {"calculate": expression, "as": field}],
                "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": 11.5, "color": "#222",
                    "fontWeight": if bold { 600 } else { 400 }, "limit": limit},
                "encoding": {"y": self.y(&y), "x": {"value": 2}, "text": {"field": field}}})
        };
        let mut layers = vec![self.stripe()];
        if is_short && has_two {
            layers.extend(self.marks(0.3, 5.0, 60.0, Some(0.16)));
            layers.push(text(-0.32, "line1", "split(datum.numbers, ' (')[0] + '  ' + datum.name", false, 340));
            layers.push(text(-0.06, "line2", "datum.setting", false, 340));
        } else if is_short {
            layers.extend(self.marks(0.24, 5.0, 60.0, Some(0.22)));
            layers.push(text(-0.22, "line1", &format!("split(datum.numbers, ' (')[0] + '  ' + {name}"), false, 340));
        } else {
            let costs: Vec<String> =
                self.costs.iter().map(|&k| format!("'{} ' + datum.t{k}", self.all_costs[k].title)).collect();
            layers.extend(self.marks(0.34, 5.0, 70.0, Some(0.13)));
            layers.push(text(-0.36, "line1", &name, true, 340));
            layers.push(text(-0.12, "line2", "'speed-up ' + datum.numbers", false, 340));
            if !costs.is_empty() {
                layers.push(text(0.11, "line3", &costs.join(" + ', ' + "), false, 340));
            }
        }
        json!({"height": height * self.count as f64, "layer": layers})
    }
}
