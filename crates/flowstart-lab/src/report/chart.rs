//! Vega-Lite specifications of every chart, and the legends beside them.
//!
//! A chart is one complete specification, the one that «chart specification» downloads. On the page a `Grid` chart is
//! taken apart into its panels, so that they flow into as many columns as the screen has room for; a `Stack` keeps its
//! panels together because they share a zoomable time axis.

use super::number::{finite, interval};
use super::page::Group;
use super::reduce::{CDF_POINTS, cdf, rolling_mean, thin_line, thin_points};
use super::{Cell, ExampleRun, PublishedCell, TraceReport};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Okabe and Ito's colours, distinguishable with every kind of colour vision; yellow is left out (too pale on white).
const COLOURS: [&str; 7] = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES: [&[u32]; 6] = [&[1, 0], &[7, 3], &[2, 2], &[9, 3, 2, 3], &[4, 2], &[12, 3, 2, 3, 2, 3]];
const SHAPES: [&str; 8] =
    ["circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"];

/// The measured flow, other flows, and things that are neither.
const MEASURED: &str = COLOURS[1];
const OTHER: &str = COLOURS[2];
const NEUTRAL: &str = "#555555";

/// Points per line of a time series.
const LINE_POINTS: usize = 1200;
/// Points per series of a trace.
const TRACE_POINTS: usize = 20_000;
/// Drop marks per panel of a time series.
const DROP_MARKS: usize = 400;

/// A chart as the template shows it.
#[derive(Serialize)]
pub(super) struct Chart {
    pub(super) id: String,
    pub(super) title: String,
    /// One sentence saying what to see.
    pub(super) sentence: String,
    /// Read aloud instead of the picture.
    pub(super) aria: String,
    /// `grid` or `stack`, see the module's description.
    pub(super) mode: &'static str,
    /// Columns on a wide screen.
    pub(super) columns: usize,
    /// `svg`, or `canvas` for very many points.
    pub(super) renderer: &'static str,
    pub(super) legend: Vec<LegendItem>,
    pub(super) rows: Vec<Row>,
    /// How to zoom, replay command and other remarks below the chart.
    pub(super) replay: Option<String>,
    pub(super) zoomable: bool,
    /// The specification as JSON.
    #[serde(skip)]
    pub(super) spec: Value,
    /// The same, safe inside a script element; filled in when the page is written.
    pub(super) json: String,
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) panels: Vec<Panel>,
}

/// A panel of a grid: its index in the specification, or the reason why there is none.
#[derive(Serialize)]
pub(super) struct Panel {
    pub(super) index: Option<usize>,
    pub(super) aria: String,
    pub(super) missing: String,
}

/// A legend entry. Its swatch is drawn by the template.
#[derive(Serialize, Clone)]
pub(super) struct LegendItem {
    pub(super) label: String,
    pub(super) colour: &'static str,
    pub(super) dash: String,
    pub(super) width: f64,
    /// Whether a line is shown, and which shape on it.
    pub(super) line: bool,
    pub(super) shape: &'static str,
}

/// Colour, dash and shape of the series with this index. 7 x 6 x 8 differ from each other longer than anyone can read.
fn style(index: usize) -> (&'static str, &'static [u32], &'static str) {
    (COLOURS[index % COLOURS.len()], DASHES[index % DASHES.len()], SHAPES[index % SHAPES.len()])
}

fn item(label: &str, colour: &'static str, dash: &[u32], width: f64) -> LegendItem {
    let dash = dash.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    LegendItem { label: label.to_owned(), colour, dash, width, line: true, shape: "" }
}

fn mark_item(label: &str, colour: &'static str, shape: &'static str) -> LegendItem {
    LegendItem { line: false, shape, ..item(label, colour, &[], 1.5) }
}

/// Legend of the schemes, with their lines or only their shapes.
fn scheme_legend(schemes: &[String], line: bool) -> Vec<LegendItem> {
    let entry = |(i, scheme): (usize, &String)| {
        let (colour, dash, shape) = style(i);
        LegendItem { line, shape, ..item(scheme, colour, dash, 2.0) }
    };
    schemes.iter().enumerate().map(entry).collect()
}

/// Colour scale over series names, shared by every encoding of the same series.
fn colours(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).0).collect::<Vec<_>>()})
}

fn dashes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).1).collect::<Vec<_>>()})
}

fn shapes(names: &[String]) -> Value {
    json!({"domain": names, "range": (0..names.len()).map(|i| style(i).2).collect::<Vec<_>>()})
}

/// A table as Vega-Lite reads it, but a third the size of JSON objects. All columns are numbers.
struct Table {
    columns: &'static [&'static str],
    text: String,
}

impl Table {
    fn new(columns: &'static [&'static str]) -> Self {
        Self { columns, text: columns.join("\t") }
    }

    /// Adds a row unless one of its values is undefined.
    fn push(&mut self, row: &[f64]) {
        if row.iter().any(|v| !v.is_finite()) {
            return;
        }
        for (i, value) in row.iter().enumerate() {
            self.text.push(if i == 0 { '\n' } else { '\t' });
            self.text.push_str(&rounded(*value));
        }
    }

    fn data(self) -> Value {
        let parse: serde_json::Map<String, Value> =
            self.columns.iter().map(|c| ((*c).to_owned(), json!("number"))).collect();
        json!({"values": self.text, "format": {"type": "tsv", "parse": parse}})
    }
}

/// Five significant digits: far beyond what a chart can show.
fn rounded(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (4 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A transform that turns the index in `field` into the name it stands for.
fn named(names: &[String], field: &str, into: &str) -> Value {
    json!({"calculate": format!("{}[datum.{field}]", json!(names)), "as": into})
}

/// Look of every chart.
pub(super) fn config() -> Value {
    json!({
        "background": "#ffffff",
        "locale": {"number": {"decimal": ".", "thousands": "\u{202f}", "grouping": [3], "currency": ["", ""]}},
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "view": {"stroke": "#c9c9c9"},
        "axis": {
            "labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": "normal", "titleColor": "#222", "labelColor": "#222",
            "gridColor": "#ececec", "domainColor": "#777", "tickColor": "#777", "titlePadding": 6, "labelOverlap": true
        },
        "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "symbolStrokeWidth": 2, "labelLimit": 260},
        "title": {"fontSize": 12, "fontWeight": 600, "anchor": "start", "color": "#222", "offset": 6},
        "line": {"strokeWidth": 1.8, "strokeCap": "butt"}
    })
}

fn document(description: &str, mut body: Value) -> Value {
    body["$schema"] = json!("https://vega.github.io/schema/vega-lite/v6.json");
    body["description"] = json!(description);
    body["config"] = config();
    body
}

fn grid_document(description: &str, columns: usize, panels: &[Value]) -> Value {
    document(description, json!({"columns": columns, "spacing": 24, "concat": panels}))
}

// ---------------------------------------------------------------------------------------------- distributions

/// CDFs of one group of cells (same link, AQM, competitor): a row per size, columns FCT, share, dropped packets.
pub(super) fn distributions(id: String, group: &Group<'_>, schemes: &[String]) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    for (size, cells) in group.sizes() {
        let mut row = Vec::new();
        for (metric, axis, missing) in [
            (Metric::Fct, "FCT (ms)", "No run completed."),
            (Metric::Share, "share (0 to 1)", "No other flow, so there is nothing to share."),
            (Metric::Dropped, "dropped packets per run", "Drops were not recorded."),
        ] {
            let aria = format!("Cumulative distribution of {axis} for {size} on {}, one line per scheme", group.label);
            let index = cdf_panel(&cells, metric, axis, &size, schemes, &aria).map(|panel| {
                panels.push(panel);
                panels.len() - 1
            });
            row.push(Panel { index, aria, missing: missing.to_owned() });
        }
        rows.push(Row { label: size, panels: row });
    }
    if panels.is_empty() {
        return None;
    }
    let used: Vec<String> = schemes.to_vec();
    Some(Chart {
        id,
        title: format!("Distributions on {}", group.label),
        sentence: "The height of a line is the portion of runs at or below the value under it: for FCT and drops a line further to the left is better, \
            and a steep line means that the scheme behaves the same in every run."
            .to_owned(),
        aria: format!("Grid of cumulative distributions on {}: rows are sizes, columns are FCT, share and dropped packets", group.label),
        mode: "grid",
        columns: 3,
        renderer: "svg",
        legend: scheme_legend(&used, true),
        rows,
        replay: None,
        zoomable: false,
        spec: grid_document(&format!("Distributions on {}", group.label), 3, &panels),
        json: String::new(),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Metric {
    Fct,
    Share,
    Dropped,
}

fn cdf_panel(cells: &[&Cell], metric: Metric, axis: &str, size: &str, schemes: &[String], aria: &str) -> Option<Value> {
    let samples = |cell: &Cell| match metric {
        Metric::Fct => cdf(&cell.samples.fct_ms, CDF_POINTS),
        Metric::Share => cdf(&cell.samples.share, CDF_POINTS),
        Metric::Dropped => cdf(&cell.samples.dropped_packets, CDF_POINTS),
    };
    let lines: Vec<(usize, Vec<[f64; 2]>)> = cells
        .iter()
        .filter_map(|cell| Some((schemes.iter().position(|s| *s == cell.scheme)?, samples(cell))))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let low = lines.iter().map(|(_, l)| l[0][0]).reduce(f64::min)?;
    let high = lines.iter().map(|(_, l)| l[l.len() - 1][0]).reduce(f64::max)?;
    let domain = match metric {
        Metric::Share => [0.0, 1.0],
        Metric::Dropped => [0.0, if high > 0.0 { high * 1.04 } else { 1.0 }],
        Metric::Fct => {
            let pad = if high > low { (high - low) * 0.04 } else { high.abs() * 0.05 + 1.0 };
            [(low - pad).max(0.0), high + pad]
        }
    };
    let mut table = Table::new(&["i", "x", "y", "m"]);
    for (i, line) in &lines {
        // Shapes sit at different heights per scheme, so that lines on top of each other stay distinguishable.
        let marks = [0.2, 0.5, 0.8].map(|at| {
            let at = at + 0.03 * ((i % 6) as f64 - 2.5);
            line.iter().position(|p| p[1] >= at).unwrap_or(0)
        });
        for (k, point) in line.iter().enumerate() {
            table.push(&[*i as f64, point[0], point[1], f64::from(u8::from(k > 0 && marks.contains(&k)))]);
        }
        // The line goes on to the edge of the panel: no run had more.
        table.push(&[*i as f64, domain[1], 1.0, 0.0]);
    }
    let x = json!({"field": "x", "type": "quantitative", "title": axis,
        "scale": {"domain": domain, "nice": false, "zero": false}, "axis": {"tickCount": 5}});
    let y = json!({"field": "y", "type": "quantitative", "title": "portion of runs", "scale": {"domain": [0, 1]},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f", "minExtent": 30}});
    let colour = json!({"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)});
    let mut layers = Vec::new();
    let equal = cells.iter().find_map(|c| finite(c.equal_share));
    if let (Metric::Share, Some(equal)) = (metric, equal) {
        layers.push(
            json!({"data": {"values": [{"x": equal}]}, "mark": {"type": "rule", "color": "#999", "strokeWidth": 1},
            "encoding": {"x": {"field": "x", "type": "quantitative"}}}),
        );
    }
    layers.push(json!({"mark": {"type": "line", "interpolate": "step-after", "clip": true}, "encoding": {
        "x": x, "y": y, "color": colour,
        "strokeDash": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": dashes(schemes)},
        "order": {"field": "y", "type": "quantitative"}}}));
    layers.push(json!({"transform": [{"filter": "datum.m == 1"}],
        "mark": {"type": "point", "filled": true, "size": 34, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": colour,
            "shape": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": shapes(schemes)},
            "tooltip": [{"field": "scheme", "title": "scheme"}, {"field": "x", "title": axis, "format": ",.4~g"}, {"field": "y", "title": "portion of runs", "format": ".2f"}]}}));
    Some(json!({"title": size, "description": aria, "width": 300, "height": 170,
        "data": table.data(), "transform": [named(schemes, "i", "scheme")], "layer": layers}))
}

// ---------------------------------------------------------------------------------------------- Pareto picture

/// FCT over the limit against inflation and against harm to others, a row of two panels per group.
pub(super) fn pareto(groups: &[Group<'_>], schemes: &[String]) -> Option<Chart> {
    let factor = |cell: &Cell| {
        let limit = finite(cell.ideal_fct_ms).filter(|v| *v > 0.0)?;
        Some(finite(cell.fct_ms.mean)? / limit).filter(|v| *v > 0.0)
    };
    let slowest = groups.iter().flat_map(|g| &g.cells).filter_map(|c| factor(c)).reduce(f64::max)?;
    // The same sizes keep the same mark size everywhere.
    let mut sizes: Vec<(u64, String)> =
        groups.iter().flat_map(|g| &g.cells).map(|c| (c.size_bytes, c.size.clone())).collect();
    sizes.sort();
    sizes.dedup();
    let sizes: Vec<String> = sizes.into_iter().map(|(_, name)| name).collect();
    let areas: Vec<f64> = (0..sizes.len()).map(|i| 55.0 + 130.0 * i as f64 / (sizes.len().max(2) - 1) as f64).collect();
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    for group in groups {
        let mut row = Vec::new();
        for (harm, axis, missing) in [
            (false, "inflation (% of the payload sent again)", "Inflation was not recorded."),
            (true, "harm to others (Mbit of goodput lost)", "No other flow, so nobody can be harmed."),
        ] {
            let mut table = Table::new(&["i", "s", "x", "y", "fct"]);
            for cell in &group.cells {
                let y = if harm { cell.goodput_lost_mbit.mean } else { cell.inflation.mean.map(|v| v * 100.0) };
                let (Some(i), Some(s), Some(x), Some(y), Some(fct)) = (
                    schemes.iter().position(|n| *n == cell.scheme),
                    sizes.iter().position(|n| *n == cell.size),
                    factor(cell),
                    finite(y),
                    finite(cell.fct_ms.mean),
                ) else {
                    continue;
                };
                table.push(&[i as f64, s as f64, x, y, fct]);
            }
            let aria = format!("{}: FCT over the physical limit against {axis}, one point per cell", group.label);
            let mut index = None;
            if table.text.contains('\n') {
                let name = |field: &str| json!({"field": field, "title": field});
                panels.push(json!({
                    "title": group.label, "description": aria, "width": 460, "height": 250,
                    "data": table.data(),
                    "transform": [named(schemes, "i", "scheme"), named(&sizes, "s", "size")],
                    "mark": {"type": "point", "filled": true, "opacity": 0.85, "stroke": "white", "strokeWidth": 0.6},
                    "encoding": {
                        "x": {"field": "x", "type": "quantitative", "title": "FCT / physical limit (1 = as fast as possible, log scale)",
                            "scale": {"type": "log", "domain": [1, (slowest * 1.1).max(2.0)], "nice": false},
                            "axis": {"values": [1, 1.5, 2, 3, 4, 6, 10, 20, 50, 100, 1000], "format": "~r"}},
                        "y": {"field": "y", "type": "quantitative", "title": axis, "scale": {"zero": true}, "axis": {"tickCount": 5, "minExtent": 30}},
                        "color": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": colours(schemes)},
                        "shape": {"field": "scheme", "type": "nominal", "title": "scheme", "scale": shapes(schemes)},
                        "size": {"field": "size", "type": "ordinal", "title": "transfer size", "scale": {"domain": sizes, "range": areas}},
                        "tooltip": [name("scheme"), name("size"), {"field": "fct", "title": "mean FCT (ms)", "format": ",.4~g"},
                            {"field": "x", "title": "FCT / limit", "format": ".3~g"}, {"field": "y", "title": axis, "format": ".3~g"}]
                    }
                }));
                index = Some(panels.len() - 1);
            }
            row.push(Panel { index, aria, missing: missing.to_owned() });
        }
        rows.push(Row { label: group.label.clone(), panels: row });
    }
    if panels.is_empty() {
        return None;
    }
    let mut legend = scheme_legend(schemes, false);
    if sizes.len() > 1 {
        legend.push(mark_item(&format!("larger mark = larger transfer ({})", sizes.join(", ")), NEUTRAL, "sizes"));
    }
    Some(Chart {
        id: "pareto".to_owned(),
        title: "What the speed costs".to_owned(),
        sentence: "The best place is the lower left corner: fast, without sending bytes twice and without taking goodput from others; \
            a point that has another one both to its left and below it is beaten in both respects."
            .to_owned(),
        aria: "Scatter charts of FCT over the physical limit against inflation and against harm to others".to_owned(),
        mode: "grid",
        columns: 2,
        renderer: "svg",
        legend,
        rows,
        replay: None,
        zoomable: false,
        spec: grid_document("FCT over the physical limit against inflation and harm to others", 2, &panels),
        json: String::new(),
    })
}

// ------------------------------------------------------------------------------------------- published numbers

/// Our speed-up against the published one.
pub(super) fn published(cells: &[PublishedCell], links: &[String]) -> Option<Chart> {
    let mut table = Table::new(&["i", "x", "y", "low", "high", "estimate", "cell"]);
    let mut ends: Vec<f64> = Vec::new();
    for (k, cell) in cells.iter().enumerate() {
        let positive = |v: Option<f64>| finite(v).filter(|v| *v > 0.0);
        let (Some(x), Some(y)) = (positive(cell.published_speedup), positive(cell.ours_speedup.mean)) else {
            continue;
        };
        let [low, high] = interval(cell.ours_speedup).filter(|[low, _]| *low > 0.0).unwrap_or([y, y]);
        let Some(i) = links.iter().position(|l| *l == cell.link) else {
            continue;
        };
        ends.extend([x, y, low, high]);
        table.push(&[i as f64, x, y, low, high, cell.estimate, k as f64]);
    }
    let low = ends.iter().copied().reduce(f64::min)? / 1.06;
    let high = ends.iter().copied().reduce(f64::max)? * 1.06;
    let names: Vec<String> = cells.iter().map(|c| c.size.clone()).collect();
    let scale = json!({"type": "log", "domain": [low, high], "nice": false});
    let ticks: Vec<f64> = [0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0]
        .into_iter()
        .filter(|t| (low..=high).contains(t))
        .collect();
    let axis = json!({"values": ticks, "format": "~g"});
    let colour = json!({"field": "link", "type": "nominal", "title": "link", "scale": colours(links)});
    let x = json!({"field": "x", "type": "quantitative", "title": "published speed-up (log scale)", "scale": scale, "axis": axis});
    let y = json!({"field": "y", "type": "quantitative", "title": "our speed-up (log scale)", "scale": scale, "axis": axis});
    let title = "Our speed-up against the published one";
    let panel = json!({
        "title": title, "description": title, "width": 440, "height": 400,
        "data": table.data(),
        "transform": [named(links, "i", "link"), named(&names, "cell", "size")],
        "layer": [
            {"data": {"values": [{"a": low, "b": low}, {"a": high, "b": high}]},
             "mark": {"type": "line", "color": "#888", "strokeWidth": 1, "strokeDash": [4, 3]},
             "encoding": {"x": {"field": "a", "type": "quantitative"}, "y": {"field": "b", "type": "quantitative"}}},
            {"mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
             "encoding": {"x": x, "y": {"field": "low", "type": "quantitative", "scale": scale}, "y2": {"field": "high"}, "color": colour}},
            {"mark": {"type": "point", "filled": true, "size": 70, "opacity": 0.9, "stroke": "white", "strokeWidth": 0.6},
             "encoding": {"x": x, "y": y, "color": colour,
                "shape": {"field": "link", "type": "nominal", "title": "link", "scale": shapes(links)},
                "tooltip": [{"field": "link", "title": "link"}, {"field": "size", "title": "size"}, {"field": "estimate", "title": "estimate"},
                    {"field": "y", "title": "ours", "format": ".3~g"}, {"field": "x", "title": "published", "format": ".3~g"}]}}
        ]
    });
    let mut legend: Vec<LegendItem> =
        scheme_legend(links, false).into_iter().map(|entry| LegendItem { line: false, ..entry }).collect();
    legend.push(item("dashed diagonal: equal", "#888888", &[4, 3], 1.0));
    legend.push(item("vertical bar: our 95 % interval", NEUTRAL, &[1, 0], 1.0));
    Some(Chart {
        id: "published-scatter".to_owned(),
        title: title.to_owned(),
        sentence:
            "On the diagonal both agree; above it our speed-up is larger than the published one, below it is smaller."
                .to_owned(),
        aria: "Scatter chart of our speed-up against the published one, one point per cell".to_owned(),
        mode: "grid",
        columns: 1,
        renderer: "svg",
        legend,
        rows: vec![Row {
            label: String::new(),
            panels: vec![Panel { index: Some(0), aria: title.to_owned(), missing: String::new() }],
        }],
        replay: None,
        zoomable: false,
        spec: grid_document(title, 1, &[panel]),
        json: String::new(),
    })
}

// ------------------------------------------------------------------------------------------------- time series

/// Highest values over the runs that share axes.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    from: f64,
    to: f64,
    rate: f64,
    window: f64,
    queue: f64,
}

impl Extent {
    /// The extent of these runs together.
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a ExampleRun>) -> Self {
        let top = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).filter(|v| v.is_finite()).fold(0.0, f64::max);
        runs.fold(Self::default(), |all, run| {
            let throughput = run.flows.iter().flat_map(|f| short_mean(run, f)).map(|p| p[1]).fold(0.0, f64::max);
            Self {
                from: all.from.min(finite(Some(run.from_ms)).unwrap_or(0.0)),
                to: all.to.max(finite(Some(run.to_ms)).unwrap_or(0.0)),
                rate: all.rate.max(finite(run.rate_mbit).unwrap_or(0.0)).max(throughput),
                window: all.window.max(top(&run.cwnd)).max(top(&run.in_flight)),
                queue: all.queue.max(top(&run.queue_packets)),
            }
        })
    }
}

fn short_mean(run: &ExampleRun, flow: &super::RunFlow) -> Vec<[f64; 2]> {
    mean_of(run, flow, run.rtt_ms, 500)
}

/// Rolling mean of a flow. Nothing is known of other flows before the record begins, so their line starts one window later.
fn mean_of(run: &ExampleRun, flow: &super::RunFlow, window: f64, samples: usize) -> Vec<[f64; 2]> {
    let from = if flow.measured { run.from_ms.max(0.0) } else { run.from_ms + window };
    rolling_mean(&flow.departures, window, from, run.to_ms, samples)
}

/// Throughput, then cwnd and bytes in flight, then the queue, over a common time axis.
pub(super) fn run(id: String, run: &ExampleRun, extent: Extent, replay: Option<String>) -> Chart {
    let time = |title: Option<&str>| time_axis(title, Some([extent.from / 1000.0, extent.to / 1000.0]));
    let mut throughput = Table::new(&["t", "v", "other", "flow", "wide"]);
    for (k, flow) in run.flows.iter().enumerate() {
        let other = f64::from(u8::from(!flow.measured));
        for (wide, window, samples) in [(0.0, run.rtt_ms, 500), (1.0, 1000.0, 300)] {
            for [t, v] in mean_of(run, flow, window, samples) {
                throughput.push(&[t / 1000.0, v, other, k as f64, wide]);
            }
        }
    }
    let line = |wide: u8, width: f64, opacity: f64| {
        json!({"transform": [{"filter": format!("datum.wide == {wide}")}],
            "mark": {"type": "line", "strokeWidth": width, "opacity": opacity, "clip": true},
            "encoding": {"x": time(None),
                "y": {"field": "v", "type": "quantitative", "title": "throughput (Mbit/s)",
                    "scale": {"domain": [0, (extent.rate * 1.08).max(0.001)], "nice": false}, "axis": {"tickCount": 5, "minExtent": 44, "maxExtent": 44}},
                "color": {"field": "other", "type": "nominal", "legend": null, "scale": {"domain": [0, 1], "range": [MEASURED, OTHER]}},
                "strokeDash": {"field": "other", "type": "nominal", "legend": null, "scale": {"domain": [0, 1], "range": [[1, 0], [6, 3]]}},
                "detail": {"field": "flow"}}})
    };
    let mut layers = vec![line(0, 1.0, 0.75), line(1, 2.8, 1.0)];
    if let Some(rate) = finite(run.rate_mbit) {
        layers.push(rule_at(rate));
    }
    let mut panels = vec![json!({"height": 170, "data": throughput.data(), "layer": layers})];
    panels.push(window_panel(&run.cwnd, &run.in_flight, &[], extent.window, LINE_POINTS, 110, &time(None)));
    panels.push(queue_panel(
        &run.queue_packets,
        &run.drops,
        &run.other_drops,
        extent.queue,
        LINE_POINTS,
        &time(Some(TIME)),
    ));
    let title = match finite(run.fct_ms) {
        Some(fct) => format!("{}: {} (FCT {} ms)", run.scheme, run.label, super::number::Format::Plain.show(Some(fct))),
        None => format!("{}: {}", run.scheme, run.label),
    };
    let aria = format!(
        "Time series of {} on {} with {}: throughput of the flows, cwnd and bytes in flight, queue and drops",
        run.size, run.link, run.scheme
    );
    Chart {
        id,
        title: title.clone(),
        sentence: String::new(),
        aria,
        mode: "stack",
        columns: 1,
        renderer: "svg",
        legend: Vec::new(),
        rows: Vec::new(),
        replay,
        zoomable: true,
        spec: stack_document(&title, panels),
        json: String::new(),
    }
}

const TIME: &str = "time since the measured flow opened (s)";

/// Legend shared by all time series.
pub(super) fn run_legend(others: bool) -> Vec<LegendItem> {
    let mut legend = vec![item("measured flow", MEASURED, &[1, 0], 2.8)];
    if others {
        legend.push(item("other flow", OTHER, &[6, 3], 2.8));
    }
    legend.extend([
        item("thick: mean of the last 1 s, thin: of the last RTT", NEUTRAL, &[1, 0], 1.0),
        item("rate of the link", NEUTRAL, &[2, 3], 1.0),
    ]);
    legend.extend(window_legend(false));
    legend.extend(queue_legend(others));
    legend
}

fn window_legend(ssthresh: bool) -> Vec<LegendItem> {
    let mut legend = vec![item("cwnd", COLOURS[0], &[1, 0], 1.8), item("bytes in flight", MEASURED, &[3, 2], 1.4)];
    if ssthresh {
        legend.push(item("ssthresh", OTHER, &[8, 3, 2, 3], 1.6));
    }
    legend
}

fn queue_legend(others: bool) -> Vec<LegendItem> {
    let mut legend =
        vec![item("queue", NEUTRAL, &[1, 0], 1.4), mark_item("drop of the measured flow", MEASURED, "tick-low")];
    if others {
        legend.push(mark_item("drop of another flow", OTHER, "tick-high"));
    }
    legend
}

fn time_axis(title: Option<&str>, domain: Option<[f64; 2]>) -> Value {
    let mut axis = json!({"field": "t", "type": "quantitative", "title": title, "axis": {"tickCount": 6},
        "scale": {"nice": false, "zero": false}});
    if title.is_none() {
        axis["axis"]["labels"] = json!(false);
    }
    if let Some(domain) = domain {
        axis["scale"]["domain"] = json!(domain);
    }
    axis
}

fn rule_at(y: f64) -> Value {
    json!({"data": {"values": [{"v": y}]}, "mark": {"type": "rule", "color": NEUTRAL, "strokeWidth": 1, "strokeDash": [2, 3]},
        "encoding": {"y": {"field": "v", "type": "quantitative"}}})
}

/// cwnd, bytes in flight and, when there is any, ssthresh.
fn window_panel(
    cwnd: &[[f64; 2]],
    in_flight: &[[f64; 2]],
    ssthresh: &[[f64; 2]],
    highest: f64,
    points: usize,
    height: u32,
    time: &Value,
) -> Value {
    let mut table = Table::new(&["t", "v", "s"]);
    for (s, series) in [cwnd, in_flight, ssthresh].into_iter().enumerate() {
        for [t, v] in thin_line(series, points) {
            table.push(&[t / 1000.0, v / 1000.0, s as f64]);
        }
    }
    let domain = json!([0, 1, 2]);
    json!({"height": height, "data": table.data(), "layer": [{
        "mark": {"type": "line", "interpolate": "step-after", "clip": true},
        "encoding": {"x": time,
            "y": {"field": "v", "type": "quantitative", "title": "cwnd, in flight (KB)", "scale": {"domain": [0, (highest / 1000.0 * 1.05).max(0.001)], "nice": false}, "axis": {"tickCount": 4, "minExtent": 44, "maxExtent": 44}},
            "color": {"field": "s", "type": "nominal", "legend": null, "scale": {"domain": domain, "range": [COLOURS[0], MEASURED, OTHER]}},
            "strokeDash": {"field": "s", "type": "nominal", "legend": null, "scale": {"domain": domain, "range": [[1, 0], [3, 2], [8, 3, 2, 3]]}},
            "strokeWidth": {"field": "s", "type": "ordinal", "legend": null, "scale": {"domain": domain, "range": [1.8, 1.2, 1.5]}}}}]})
}

/// Queue length with a short tick for each drop: at the bottom for the measured flow, at the top for others.
fn queue_panel(queue: &[[f64; 2]], drops: &[f64], others: &[f64], highest: f64, points: usize, time: &Value) -> Value {
    let top = (highest * 1.2).max(1.0);
    let mut table = Table::new(&["t", "v"]);
    for [t, v] in thin_line(queue, points) {
        table.push(&[t / 1000.0, v]);
    }
    let ticks = |times: &[f64], low: f64, high: f64, colour: &str| {
        let mut table = Table::new(&["t", "v", "w"]);
        for t in thin_points(times, DROP_MARKS) {
            table.push(&[t / 1000.0, low * top, high * top]);
        }
        json!({"data": table.data(), "mark": {"type": "rule", "color": colour, "strokeWidth": 1, "clip": true, "opacity": 0.8},
            "encoding": {"x": time, "y": {"field": "v", "type": "quantitative"}, "y2": {"field": "w"}}})
    };
    json!({"height": 100, "layer": [
        {"data": table.data(), "mark": {"type": "area", "interpolate": "step-after", "color": "#dddddd", "line": {"color": NEUTRAL, "strokeWidth": 1.2}, "clip": true},
         "encoding": {"x": time, "y": {"field": "v", "type": "quantitative", "title": "queue (packets)", "stack": null, "scale": {"domain": [0, top], "nice": false}, "axis": {"tickCount": 4, "minExtent": 44, "maxExtent": 44}}}},
        ticks(drops, 0.0, 0.16, MEASURED),
        ticks(others, 0.86, 1.0, OTHER)]})
}

/// Panels below each other whose time axes zoom together.
fn stack_document(description: &str, mut panels: Vec<Value>) -> Value {
    for panel in &mut panels {
        panel["width"] = json!(620);
        // One layer of each panel carries the zoom; the same name makes it the same zoom.
        panel["layer"][0]["params"] = json!([{"name": "zoom", "bind": "scales", "select": {
            "type": "interval", "encodings": ["x"],
            // Plain scrolling stays with the page.
            "zoom": "wheel![event.ctrlKey || event.altKey || event.metaKey]"}}]);
    }
    // Each panel has its own series, so its own scales; the time axes are tied together by the zoom.
    let own = json!({"scale": {"color": "independent", "strokeDash": "independent", "strokeWidth": "independent"}});
    document(description, json!({"spacing": 6, "resolve": own, "vconcat": panels}))
}

// ------------------------------------------------------------------------------------------------------- trace

/// All panels of a traced run. Times are shown in milliseconds when the run is short.
pub(super) fn trace(report: &TraceReport) -> Option<Chart> {
    let series: [&[[f64; 2]]; 8] = [
        &report.sent,
        &report.retransmitted,
        &report.dropped,
        &report.acked,
        &report.cwnd,
        &report.in_flight,
        &report.pacing_rate_mbit,
        &report.queue_packets,
    ];
    let times = || series.iter().flat_map(|s| s.iter()).map(|p| p[0]).filter(|t| t.is_finite());
    let (first, last) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
    let domain = [(first.min(0.0)) / 1000.0, (last + (last - first) * 0.02 + 1.0) / 1000.0];
    let time = |title: Option<&str>| time_axis(title, Some(domain));
    let top = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).filter(|v| v.is_finite()).fold(0.0, f64::max);

    let mut points = Table::new(&["t", "v", "s"]);
    for (s, set) in [&report.sent, &report.retransmitted, &report.dropped].into_iter().enumerate() {
        for [t, v] in thin_points(set, TRACE_POINTS) {
            points.push(&[t / 1000.0, v / 1000.0, s as f64]);
        }
    }
    let mut acked = Table::new(&["t", "v"]);
    for [t, v] in thin_line(&report.acked, TRACE_POINTS) {
        acked.push(&[t / 1000.0, v / 1000.0]);
    }
    let offset = json!({"field": "v", "type": "quantitative", "title": "offset in the payload (KB)",
        "scale": {"domainMin": 0, "nice": false}, "axis": {"tickCount": 6, "minExtent": 50, "maxExtent": 50}});
    let point = |s: u8, mark: Value| json!({"transform": [{"filter": format!("datum.s == {s}")}], "mark": mark, "encoding": {"x": time(None), "y": offset}});
    let sequence = json!({"height": 320, "data": points.data(), "layer": [
        {"data": acked.data(), "mark": {"type": "line", "interpolate": "step-after", "color": COLOURS[3], "strokeWidth": 1.6, "clip": true},
         "encoding": {"x": time(None), "y": offset}},
        point(0, json!({"type": "point", "shape": "circle", "filled": true, "size": 9, "color": COLOURS[0], "opacity": 0.75, "clip": true})),
        point(1, json!({"type": "point", "shape": "square", "filled": false, "size": 34, "color": MEASURED, "strokeWidth": 1.3, "clip": true})),
        point(2, json!({"type": "point", "shape": CROSS, "filled": false, "size": 46, "color": OTHER, "strokeWidth": 1.4, "clip": true})),
    ]});
    let mut panels = vec![sequence];
    let window = top(&report.cwnd).max(top(&report.in_flight)).max(top(&report.ssthresh));
    // What does not change any more stays as it is until the end.
    let held = |points: &[[f64; 2]]| {
        let mut points = points.to_vec();
        points.extend(points.last().map(|p| [last, p[1]]));
        points
    };
    let (cwnd, in_flight, ssthresh) = (held(&report.cwnd), held(&report.in_flight), held(&report.ssthresh));
    panels.push(window_panel(&cwnd, &in_flight, &ssthresh, window, TRACE_POINTS, 150, &time(None)));
    if !report.pacing_rate_mbit.is_empty() {
        let mut pacing = Table::new(&["t", "v"]);
        for [t, v] in thin_line(&held(&report.pacing_rate_mbit), TRACE_POINTS) {
            pacing.push(&[t / 1000.0, v]);
        }
        let highest = top(&report.pacing_rate_mbit).max(finite(report.link.rate_mbit).unwrap_or(0.0));
        let mut layers = vec![
            json!({"data": pacing.data(), "mark": {"type": "line", "interpolate": "step-after", "color": COLOURS[3], "clip": true},
            "encoding": {"x": time(None), "y": {"field": "v", "type": "quantitative", "title": "pacing (Mbit/s)",
                "scale": {"domain": [0, (highest * 1.08).max(0.001)], "nice": false}, "axis": {"tickCount": 4, "minExtent": 50, "maxExtent": 50}}}}),
        ];
        if let Some(rate) = finite(report.link.rate_mbit) {
            layers.push(rule_at(rate));
        }
        panels.push(json!({"height": 100, "layer": layers}));
    }
    let own: Vec<f64> = report.dropped.iter().map(|p| p[0]).collect();
    panels.push(queue_panel(
        &report.queue_packets,
        &own,
        &report.other_drops,
        top(&report.queue_packets),
        TRACE_POINTS,
        &time(Some(TIME)),
    ));
    // Numbered events, as in the list. Those too close to tell apart share a label.
    let mut labels: Vec<(f64, String)> = Vec::new();
    for (number, event) in numbered_events(report) {
        match labels.last_mut() {
            Some((t, label)) if (event.time_ms - *t).abs() < (last - first) * 0.015 => {
                label.push_str(&format!(", {number}"));
            }
            _ => labels.push((event.time_ms, number.to_string())),
        }
    }
    let events = json!({"values": labels.iter().map(|(t, n)| json!({"t": t / 1000.0, "n": n})).collect::<Vec<_>>()});
    let last_panel = panels.len() - 1;
    for (k, panel) in panels.iter_mut().enumerate() {
        let Some(layers) = panel["layer"].as_array_mut() else {
            continue;
        };
        layers.push(json!({"data": events, "mark": {"type": "rule", "color": "#999", "strokeWidth": 1, "strokeDash": [3, 3], "clip": true},
            "encoding": {"x": time((k == last_panel).then_some(TIME))}}));
    }
    if let Some(layers) = panels[0]["layer"].as_array_mut() {
        layers.push(json!({"data": events,
            "mark": {"type": "text", "align": "left", "baseline": "top", "dx": 3, "dy": 2, "fontSize": 11, "fontWeight": 600, "color": "#333", "clip": true},
            "encoding": {"x": time(None), "y": {"value": 0}, "text": {"field": "n", "type": "nominal"}}}));
    }
    let spec = stack_document("Time-sequence diagram of one run", panels);
    let others = !report.other_drops.is_empty();
    let mut legend = vec![
        mark_item("segment sent", COLOURS[0], "dot"),
        mark_item("sent again", MEASURED, "open-square"),
        mark_item("dropped on the way", OTHER, "x"),
        item("acknowledged up to here", COLOURS[3], &[1, 0], 1.6),
    ];
    legend.extend(window_legend(!report.ssthresh.is_empty()));
    if !report.pacing_rate_mbit.is_empty() {
        legend.push(item("pacing rate", COLOURS[3], &[1, 0], 1.8));
        legend.push(item("rate of the link", NEUTRAL, &[2, 3], 1.0));
    }
    legend.extend(queue_legend(others));
    if report.events.iter().any(|e| e.time_ms.is_finite()) {
        legend.push(item("numbered event of the list", "#999999", &[3, 3], 1.0));
    }
    let largest = series.iter().map(|s| s.len()).max().unwrap_or(0);
    let thinned = if largest > TRACE_POINTS {
        format!(" Series of more than {TRACE_POINTS} points are shown thinned.")
    } else {
        String::new()
    };
    Some(Chart {
        id: "trace".to_owned(),
        title: "Time-sequence diagram".to_owned(),
        sentence: format!(
            "A dot is a segment leaving the sender and the line below is what has been acknowledged: the horizontal distance between the two is the RTT, \
            the vertical distance is the data in flight, and the steeper the dots, the faster the sender.{thinned}"
        ),
        aria: "Time-sequence diagram of one run, with cwnd, bytes in flight, pacing rate and queue below it".to_owned(),
        mode: "stack",
        columns: 1,
        renderer: if report.sent.len() > 3000 { "canvas" } else { "svg" },
        legend,
        rows: Vec::new(),
        replay: None,
        zoomable: true,
        spec,
        json: String::new(),
    })
}

/// A diagonal cross, as an SVG path in the unit square around the origin.
const CROSS: &str = "M-0.8,-0.8L0.8,0.8M-0.8,0.8L0.8,-0.8";

/// Events with the numbers that the chart and the list share.
pub(super) fn numbered_events(report: &TraceReport) -> impl Iterator<Item = (usize, &super::TraceEvent)> {
    report.events.iter().filter(|e| e.time_ms.is_finite()).enumerate().map(|(i, e)| (i + 1, e))
}

/// The specification as text that may stand inside a script element.
pub(super) fn embed(spec: &Value) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for c in serde_json::to_string(spec)?.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Infallible: writing to a String.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}
