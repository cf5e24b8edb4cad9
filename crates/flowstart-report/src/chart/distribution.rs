//! CDFs show how the runs of a cell scatter.

use super::document::{Chart, Panel, Row, grid_document};
use super::key::Key;
use super::table::Table;
use crate::Cell;
use crate::group::{Group, distinct};
use crate::number::finite;
use crate::reduce::{CDF_POINTS, cdf};
use crate::time::{TimeWords, time_words};
use serde_json::{Value, json};

/// What is distributed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Metric {
    Fct,
    QueueDelay,
    Share,
    Dropped,
    MediaDelay,
}

impl Metric {
    /// Those of a group of cells, in the order of the page.
    const ALL: [Self; 4] = [Self::Fct, Self::QueueDelay, Self::Share, Self::Dropped];

    fn values(self, cell: &Cell) -> &[f64] {
        let samples = &cell.samples;
        match self {
            Self::Fct => &samples.fct_ms,
            Self::QueueDelay => &samples.max_queue_delay_ms,
            Self::Share => &samples.share,
            Self::Dropped => &samples.dropped_packets,
            Self::MediaDelay => &samples.media_delay_ms,
        }
    }

    fn title(self, time: TimeWords) -> &'static str {
        match self {
            Self::Fct => time.long,
            Self::QueueDelay => "peak queue delay",
            Self::Share => "share of the bottleneck",
            Self::Dropped => "dropped packets",
            Self::MediaDelay => "delay of media packets",
        }
    }

    fn axis(self, time: TimeWords) -> String {
        let axis = match self {
            Self::Fct => return format!("{} (ms)", time.name),
            Self::QueueDelay => "peak queue delay (ms)",
            Self::Share => "share (0 to 1)",
            Self::Dropped => "dropped packets per run",
            Self::MediaDelay => "one-way delay (ms)",
        };
        axis.to_owned()
    }

    /// Whether a chart of these cells says anything.
    fn is_known(self, cells: &[&Cell]) -> bool {
        let mut values = cells.iter().flat_map(|cell| self.values(cell)).filter(|value| value.is_finite());
        match self {
            Self::Dropped | Self::QueueDelay => values.any(|value| *value > 0.0),
            _ => values.next().is_some(),
        }
    }

    /// Whether its charts stay folded where there are many.
    pub(super) fn is_secondary(self) -> bool {
        matches!(self, Self::Share | Self::Dropped)
    }
}

/// CDFs of all cells: of one group a row for each size and a column for each metric, of several a chart for each metric
/// with a panel for each group and size. Secondary ones are marked.
pub(crate) fn distributions(groups: &[Group<'_>], key: &Key) -> Vec<(Chart, bool)> {
    let all: Vec<&Cell> = groups.iter().flat_map(|group| group.cells.clone()).collect();
    let time = time_words(all.iter().copied());
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| metric.is_known(&all)).collect();
    let sizes = distinct(all.iter().map(|cell| &cell.size));
    if let ([group], false) = (groups, key.is_split) {
        let rows = sizes.iter().map(|size| {
            let cells: Vec<&Cell> = group.cells.iter().copied().filter(|cell| cell.size == *size).collect();
            let label = if sizes.len() > 1 { size.clone() } else { String::new() };
            let panels = metrics.iter().map(|metric| {
                // The queue is the same for all sizes, a completion time is not.
                let alike = if *metric == Metric::Fct { &cells } else { &all };
                (*metric, metric.title(time).to_owned(), cells.clone(), Frame::of(*metric, alike))
            });
            (label, panels.collect())
        });
        let title = "Distributions over the runs".to_owned();
        return chart("distribution", title, rows.collect(), key).into_iter().map(|chart| (chart, false)).collect();
    }
    let mut charts: Vec<(Chart, bool)> = Vec::new();
    for metric in metrics {
        let mut panels = Vec::new();
        for group in groups {
            for (size, cells) in group.sizes() {
                // Panels of one size share their axis.
                let alike: Vec<&Cell> = all.iter().copied().filter(|cell| cell.size == size).collect();
                for (scheme, cells) in key.panels(&cells) {
                    let size = if sizes.len() > 1 { &*size } else { "" };
                    let place = if groups.len() > 1 { &*group.label } else { "" };
                    let title: Vec<&str> = [place, size, &scheme].into_iter().filter(|part| !part.is_empty()).collect();
                    panels.push((metric, title.join(", "), cells, Frame::of(metric, &alike)));
                }
            }
        }
        let id = format!("distribution-{}", charts.len() + 1);
        let title = format!("Distribution of the {}", metric.title(time));
        let Some(mut chart) = chart(&id, title, vec![(String::new(), panels)], key) else { continue };
        if !charts.is_empty() {
            // Once is enough.
            let told = "almost the same value.";
            let rest = chart.sentence.find(told).map_or(0, |at| at + told.len());
            chart.sentence = chart.sentence.split_off(rest);
            chart.legend.clear();
        }
        charts.push((chart, metric.is_secondary()));
    }
    charts
}

/// A panel's metric, title, cells and axis.
type Planned<'a> = (Metric, String, Vec<&'a Cell>, Option<Frame>);

/// A chart of these rows of panels.
fn chart(id: &str, title: String, mut planned: Vec<(String, Vec<Planned<'_>>)>, key: &Key) -> Option<Chart> {
    let (mut panels, mut rows) = (Vec::new(), Vec::new());
    let count = |planned: &[(String, Vec<Planned<'_>>)]| planned.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    let all = count(&planned);
    // Among many panels those say nothing in which every run has the same value.
    if all > 4 {
        planned.iter_mut().for_each(|(_, row)| row.retain(|(metric, _, cells, frame)| !is_flat(*metric, cells, frame)));
    }
    let widest = count(&planned);
    // Many are small multiples, of which each is small.
    let columns = match widest {
        0..=4 => widest.max(1),
        5..=8 => 4,
        _ => 6,
    };
    for (label, planned) in planned {
        let mut row = Vec::new();
        for (metric, title, cells, frame) in planned {
            let what = metric.title(time_words(cells.iter().copied()));
            let aria = format!("Cumulative distribution of the {what}: {title} {label}");
            // Nothing to see is left out.
            let panel = frame.and_then(|frame| cdf_panel(&cells, &frame, &title, key, &aria));
            let Some(mut panel) = panel else { continue };
            panel["height"] = json!(if columns > 4 { 62 } else { 110 });
            panels.push(panel);
            row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
        }
        rows.push(Row { label, panels: row });
    }
    rows.retain(|row| !row.panels.is_empty());
    let flat = match all - widest {
        0 => String::new(),
        1 => " One setting is left out because all its runs have the same value.".to_owned(),
        several => format!(" {several} settings are left out because all their runs have the same value."),
    };
    (!panels.is_empty()).then(|| Chart {
        id: id.to_owned(),
        sentence: format!(
            "The height of a line is the portion of runs at or below the value under it: further left is less, \
            and a line straight up is runs of almost the same value.{flat}"
        ),
        aria: format!("{title}, a line per {}", key.title()),
        columns,
        legend: key.legend(true, |_| true),
        rows,
        spec: grid_document(&title, columns, &panels),
        title,
        ..Chart::default()
    })
}

/// Whether all values lie within 2 % of the axis.
fn is_flat(metric: Metric, cells: &[&Cell], frame: &Option<Frame>) -> bool {
    let values = || cells.iter().flat_map(|cell| metric.values(cell)).copied().filter(|value| value.is_finite());
    let ends = values().reduce(f64::min).zip(values().reduce(f64::max)).zip(frame.as_ref());
    ends.is_none_or(|((low, high), frame)| high - low <= (frame.domain[1] - frame.domain[0]) * 0.02)
}

/// An axis that several panels share.
#[derive(Clone)]
pub(super) struct Frame {
    metric: Metric,
    scale: &'static str,
    domain: [f64; 2],
    title: String,
}

impl Frame {
    /// The axis for these cells.
    pub(super) fn of(metric: Metric, cells: &[&Cell]) -> Option<Self> {
        let lines: Vec<Vec<[f64; 2]>> = cells.iter().map(|cell| cdf(metric.values(cell), CDF_POINTS)).collect();
        let points = || lines.iter().flatten().map(|point| point[0]);
        let (low, high) = (points().reduce(f64::min)?, points().reduce(f64::max)?);
        // With sizes from a heavy-tailed distribution a few runs would take the whole axis.
        let squeezed = lines.iter().flatten().filter(|point| point[1] <= 0.9).all(|point| {
            let [value, _] = *point;
            value - low < (high - low) / 4.0
        });
        let is_wide = low > 0.0 && high / low > 6.0;
        let (scale, note) = match metric {
            Metric::Fct if (squeezed || is_wide) && low > 0.0 => ("log", ", log scale"),
            Metric::Dropped if squeezed && high > 10.0 => ("symlog", ", log scale from 1"),
            _ => ("linear", ""),
        };
        let domain = match metric {
            Metric::Share => [0.0, 1.0],
            Metric::Dropped | Metric::QueueDelay => [0.0, if high > 0.0 { high * 1.04 } else { 1.0 }],
            Metric::Fct if scale == "log" => [low / 1.1, high * 1.1],
            Metric::Fct | Metric::MediaDelay => {
                // A difference of a few per mille must not look like one that matters.
                let pad = ((high - low) * 0.04).max((high * 0.1 - (high - low)) / 2.0).max(1.0);
                [(low - pad).max(0.0), high + pad]
            }
        };
        Some(Self { metric, scale, domain, title: format!("{}{note}", metric.axis(time_words(cells.iter().copied()))) })
    }
}

/// Few ticks, and round ones where the scale is logarithmic.
fn axis_ticks(scale: &str) -> Value {
    let decades = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
    let values: Vec<u32> = match scale {
        "linear" => return json!({"tickCount": 4}),
        "log" => decades.iter().flat_map(|decade| [1, 2, 5].map(|step| step * decade)).collect(),
        _ => std::iter::once(0).chain(decades).collect(),
    };
    json!({"values": values, "format": ",d"})
}

/// A line for each cell.
pub(super) fn cdf_panel(cells: &[&Cell], frame: &Frame, title: &str, key: &Key, aria: &str) -> Option<Value> {
    let Frame { metric, scale, domain, title: axis } = frame;
    let lines: Vec<(usize, Vec<[f64; 2]>)> = cells
        .iter()
        .filter_map(|cell| Some((key.place(cell)?, cdf(metric.values(cell), CDF_POINTS))))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return None;
    }
    let mut table = Table::new(&["i", "x", "y", "m"]);
    for (i, line) in &lines {
        // Shapes sit at different heights per line, so that lines on top of each other stay distinguishable.
        let marks = [0.2, 0.5, 0.8].map(|at| {
            let at = at + 0.03 * ((i % 6) as f64 - 2.5);
            line.iter().position(|p| p[1] >= at).unwrap_or(0)
        });
        // The line comes from the edge of the panel, and goes on to it: no run had less or more.
        table.push(&[*i as f64, domain[0], 0.0, 0.0]);
        for (k, point) in line.iter().enumerate() {
            table.push(&[*i as f64, point[0], point[1], f64::from(u8::from(k > 0 && marks.contains(&k)))]);
        }
        table.push(&[*i as f64, domain[1], 1.0, 0.0]);
    }
    let x = json!({"field": "x", "type": "quantitative", "title": axis,
        "scale": {"type": scale, "domain": domain, "nice": false}, "axis": axis_ticks(scale)});
    let of = if *metric == Metric::MediaDelay { "packets, portion" } else { "runs, portion" };
    let y = json!({"field": "y", "type": "quantitative", "title": of, "scale": {"domain": [0, 1]},
        "axis": {"values": [0, 0.5, 1], "format": ".1~f", "minExtent": 26}});
    let mut layers = Vec::new();
    let equal = cells.iter().find_map(|c| finite(c.equal_share));
    if let (Metric::Share, Some(equal)) = (metric, equal) {
        layers.push(
            json!({"data": {"values": [{"x": equal}]}, "mark": {"type": "rule", "color": "#999", "strokeWidth": 1},
            "encoding": {"x": {"field": "x", "type": "quantitative"}}}),
        );
    }
    layers.push(json!({"mark": {"type": "line", "interpolate": "step-after", "clip": true}, "encoding": {
        "x": x, "y": y, "color": key.colour(), "strokeDash": key.dash(),
        "order": {"field": "y", "type": "quantitative"}}}));
    layers.push(json!({"transform": [{"filter": "datum.m == 1"}],
        "mark": {"type": "point", "filled": true, "size": 34, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": key.colour(), "shape": key.shape(),
            "tooltip": [{"field": "line", "title": key.title()}, {"field": "x", "title": axis, "format": ",.4~g"},
                {"field": "y", "title": of, "format": ".2f"}]}}));
    Some(json!({"title": title, "description": aria, "width": 300, "height": 120,
        "data": table.data(), "transform": [key.named()], "layer": layers}))
}
