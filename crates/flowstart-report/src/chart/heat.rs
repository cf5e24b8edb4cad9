//! Heat maps show the speed-up where two things vary: the colour is the speed-up, and its number stands in the field.

use std::cmp::Reverse;

use super::document::{Chart, Panel, Row, grid_document};
use super::table::{Table, named};
use crate::baseline::{alike, compared};
use crate::group::{Axis, Names, distinct};
use crate::names::shortened;
use crate::number::{Format, finite};
use crate::verdict::{LOOKS, look_of, verdict};
use crate::{Cell, Kind, Link};
use serde_json::{Value, json};

/// Most maps.
const MOST: usize = 6;
/// Fewest fields: with fewer the table says it as well.
const FEWEST: usize = 6;

/// Widths in pixels: of the page on a usual screen, of a letter, of the text in a field, and of the longest labels.
const SCREEN: f64 = 1230.0;
const LETTER: f64 = 5.4;
const FIELD: f64 = 44.0;
const LONGEST_LABEL: f64 = 110.0;
const LONGEST_LINE: f64 = 150.0;

/// Something that varies, and its values in order.
struct Dimension {
    title: String,
    /// Of all labels.
    unit: &'static str,
    labels: Vec<String>,
    /// The place of each compared cell among the values.
    places: Vec<usize>,
    /// Whether it is the scheme, or the congestion avoidance.
    is_scheme: bool,
}

/// A map for each scheme and whatever else varies besides the two dimensions; nothing where fewer than two vary.
pub(crate) fn heat(cells: &[Cell], links: &[Link]) -> Option<Chart> {
    let compared: Vec<&Cell> = alike(compared(cells)).into_iter().map(|(cell, _)| cell).collect();
    let mut dimensions = dimensions(&compared, links);
    // Settings first: a scheme is a map of its own where there are two of them.
    dimensions.sort_by_key(|dimension| dimension.is_scheme);
    if dimensions.iter().take(2).map(|dimension| dimension.labels.len()).product::<usize>() < FEWEST {
        dimensions.sort_by_key(|dimension| (dimension.is_scheme, Reverse(dimension.labels.len())));
    }
    let mut dimensions = dimensions.into_iter();
    let (x, y) = (dimensions.next()?, dimensions.next()?);
    if x.labels.len() * y.labels.len() < FEWEST {
        return None;
    }
    let rest: Vec<Dimension> = dimensions.collect();
    let name = |k: usize| rest.iter().map(|one| one.labels[one.places[k]].clone()).collect::<Vec<_>>().join(", ");
    let names: Vec<String> = (0..compared.len()).map(name).collect();
    let is_told = |map: &String| {
        let here = compared.iter().zip(&names).filter(|(_, name)| *name == map);
        here.into_iter().any(|(cell, _)| verdict(cell).is_none_or(|verdict| verdict.kind != Kind::Same))
    };
    let (maps, same): (Vec<String>, Vec<String>) = distinct(names.iter()).into_iter().partition(is_told);
    let furthest = compared.iter().filter_map(|cell| finite(cell.speedup.mean)).map(|mean| mean.log2().abs());
    let furthest = furthest.fold(0.1_f64, f64::max);
    let (mut panels, mut row, mut used) = (Vec::new(), Vec::new(), [false; LOOKS.len()]);
    for map in maps.iter().take(MOST) {
        let (mut table, mut texts) = (Table::new(&["k", "x", "y", "l", "s"]), Vec::new());
        for (k, cell) in compared.iter().enumerate().filter(|(k, _)| names[*k] == *map) {
            let Some(mean) = finite(cell.speedup.mean) else { continue };
            let text = Format::Factor.show(Some(mean)).replace('×', "");
            let place = [texts.len() as f64, x.places[k] as f64, y.places[k] as f64];
            let look = verdict(cell).map(look_of);
            let is_sure = look.is_none_or(|look| look.class != "unclear");
            table.push(&[place[0], place[1], place[2], if is_sure { mean.log2() } else { 0.0 }, mean]);
            texts.push(match look {
                Some(look) => {
                    used[look.place] = true;
                    format!("{} {text}", look.glyph)
                }
                None => text,
            });
        }
        if table.is_empty() {
            continue;
        }
        let aria = format!("{map}: speed-up by {} and {}", x.title, y.title);
        panels.push(panel(table, &texts, [&x, &y], map, furthest, &aria));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    if panels.is_empty() {
        return None;
    }
    let mut sentence = "Blue is faster than the baseline, orange slower, grey neither for certain.".to_owned();
    let used: Vec<_> = LOOKS.iter().filter(|look| used[look.place]).collect();
    let marks: Vec<String> = used.iter().map(|look| format!("{} {}", look.glyph, look.words)).collect();
    if !marks.is_empty() {
        sentence = format!("{sentence} Marks: {}.", marks.join("; "));
    }
    match same.len() {
        0 => {}
        1 => sentence += " One map is left out because all in it is the same as the baseline.",
        several => {
            sentence += &format!(" {several} maps are left out because all in them is the same as the baseline.");
        }
    }
    match maps.len().saturating_sub(MOST) {
        0 => {}
        1 => sentence += " One more map is left out; the table has all.",
        several => sentence += &format!(" {several} more maps are left out; the table has all."),
    }
    let columns = row.len().clamp(1, most_columns(&x, &y));
    Some(Chart {
        id: "heat".to_owned(),
        title: format!("Speed-up by {} and {}", x.title, y.title),
        sentence,
        aria: format!("Heat maps of the speed-up by {} and {}", x.title, y.title),
        columns,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document(&format!("Speed-up by {} and {}", x.title, y.title), columns, &panels),
        ..Chart::default()
    })
}

/// Maps beside each other on a wide screen: as many as leave room for a field's text and for the labels above it.
fn most_columns(x: &Dimension, y: &Dimension) -> usize {
    let longest = |labels: &[String]| labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64;
    let field = (longest(&x.labels) * LETTER + 6.0).clamp(FIELD, LONGEST_LABEL);
    let map = field * x.labels.len() as f64 + (longest(&y.labels) * LETTER).min(LONGEST_LINE) + 26.0;
    ((SCREEN / map) as usize).clamp(1, 5)
}

fn dimensions(cells: &[&Cell], links: &[Link]) -> Vec<Dimension> {
    let names = Names::of(cells);
    let mut dimensions = Vec::new();
    for axis in names.varied() {
        match axis {
            // What follows from the transport varies with it.
            Axis::Avoidance if follows_from_transport(cells) => {}
            Axis::Link => match rates_and_delays(cells, links) {
                Some(both) => dimensions.extend(both),
                None => dimensions.push(listed(axis, cells, &names)),
            },
            Axis::Size => {
                let mut sizes: Vec<(u64, &str)> = cells.iter().map(|cell| (cell.size_bytes, &*cell.size)).collect();
                sizes.sort_unstable();
                sizes.dedup();
                let place = |cell: &&Cell| sizes.iter().position(|(_, size)| *size == cell.size).unwrap_or(0);
                dimensions.push(Dimension {
                    title: "transfer size".to_owned(),
                    unit: "",
                    labels: sizes.iter().map(|(_, size)| shortened(size, 16)).collect(),
                    places: cells.iter().map(place).collect(),
                    is_scheme: false,
                });
            }
            _ => dimensions.push(listed(axis, cells, &names)),
        }
    }
    dimensions
}

/// Whether each scheme has one avoidance on each transport.
fn follows_from_transport(cells: &[&Cell]) -> bool {
    let places = || cells.iter().map(|cell| format!("{}\n{}", cell.transport, cell.scheme));
    let all = cells.iter().zip(places()).map(|(cell, place)| format!("{place}\n{}", cell.avoidance));
    distinct(all).len() == distinct(places()).len()
}

/// The values of an axis in their order.
fn listed(axis: Axis, cells: &[&Cell], names: &Names) -> Dimension {
    Dimension {
        title: axis.title().to_owned(),
        unit: "",
        labels: names.all_short(axis),
        places: cells.iter().map(|cell| names.place(axis, cell).unwrap_or(0)).collect(),
        is_scheme: matches!(axis, Axis::Scheme | Axis::Avoidance),
    }
}

/// Rate and RTT where the links are a grid of both.
fn rates_and_delays(cells: &[&Cell], links: &[Link]) -> Option<[Dimension; 2]> {
    let of = |cell: &Cell| {
        let link = links.iter().find(|link| link.name == cell.link)?;
        Some([finite(link.rate_mbit)?, finite(link.rtt_ms)?])
    };
    let values: Vec<[f64; 2]> = cells.iter().map(|cell| of(cell)).collect::<Option<_>>()?;
    let sorted = |k: usize| {
        let mut sorted: Vec<f64> = values.iter().map(|both| both[k]).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        sorted
    };
    let (rates, delays) = (sorted(0), sorted(1));
    let count = distinct(cells.iter().map(|cell| &cell.link)).len();
    if rates.len() < 2 || delays.len() < 2 || rates.len() * delays.len() != count {
        return None;
    }
    let dimension = |k: usize, title: &str, unit: &'static str, all: &[f64]| Dimension {
        title: title.to_owned(),
        unit,
        labels: all.iter().map(|value| format!("{}", (value * 100.0).round() / 100.0)).collect(),
        places: values.iter().map(|both| all.iter().position(|value| *value == both[k]).unwrap_or(0)).collect(),
        is_scheme: false,
    };
    Some([dimension(0, "rate", "Mbit/s", &rates), dimension(1, "RTT", "ms", &delays)])
}

fn panel(table: Table, texts: &[String], [x, y]: [&Dimension; 2], title: &str, furthest: f64, aria: &str) -> Value {
    let along = |field: &str, dimension: &Dimension, axis: Value| {
        let mut axis = axis;
        axis["domain"] = json!(false);
        axis["ticks"] = json!(false);
        // The chart's title has the names of both; a unit stands nowhere else.
        let title = match dimension.unit {
            "" => Value::Null,
            unit => json!(format!("{} ({unit})", dimension.title)),
        };
        json!({"field": field, "type": "ordinal", "title": title, "sort": null,
            "scale": {"domain": dimension.labels, "paddingInner": 0.04}, "axis": axis})
    };
    // No label is longer than its field is wide.
    let limit = json!({"expr": format!("max(24, width / {} - 4)", x.labels.len())});
    let x_axis =
        along("column", x, json!({"labelAngle": 0, "labelLimit": limit, "labelOverlap": false, "orient": "top"}));
    let y_axis = along("line", y, json!({"labelLimit": LONGEST_LINE}));
    json!({"title": title, "description": aria, "width": 300, "height": 24 * y.labels.len(), "view": {"stroke": null},
        "data": table.data(),
        "transform": [named(&x.labels, "x", "column"), named(&y.labels, "y", "line"), named(texts, "k", "text")],
        "encoding": {"x": x_axis, "y": y_axis},
        "layer": [
            {"mark": {"type": "rect"},
             "encoding": {"color": {"field": "l", "type": "quantitative", "legend": null,
                    "scale": {"domain": [-furthest, 0, furthest], "range": ["#b35806", "#f4f4f4", "#0072B2"]}},
                "tooltip": [{"field": "column", "title": x.title}, {"field": "line", "title": y.title},
                    {"field": "s", "title": "speed-up", "format": ".3~g"}]}},
            {"mark": {"type": "text", "fontSize": 11.5},
             "encoding": {"text": {"field": "text"},
                "color": {"condition": {"test": format!("abs(datum.l) > {}", furthest * 0.55), "value": "white"},
                    "value": "#222"}}}]})
}
