//! The Pareto picture of AQM and scheme shows the completion time against the peak of the queue.

use super::document::{Chart, Panel, Row, grid_document};
use super::legend::{LegendItem, item, mark_item, scheme_legend};
use super::style::{COLOURS, NEUTRAL, colours, shapes, style};
use super::table::{Table, named};
use crate::group::distinct;
use crate::{Pair, PairedSetting, SecondCriterion};
use serde_json::json;

/// Height of a panel, and its width on a phone, in pixels.
const HEIGHT: f64 = 330.0;
const PHONE: f64 = 290.0;
/// Room of a number beside a mark.
const LABEL: [f64; 2] = [26.0, 13.0];

/// A panel for each setting, a point for each pair: the scheme's shape in the AQM's colour. A line joins the pairs that
/// nobody beats.
pub(crate) fn pairs(settings: &[PairedSetting], schemes: &[String]) -> Option<Chart> {
    let all = || settings.iter().flat_map(|setting| &setting.pairs);
    let aqms = distinct(all().map(|pair| &pair.aqm));
    let schemes: Vec<String> = schemes.iter().filter(|name| all().any(|pair| pair.scheme == **name)).cloned().collect();
    let mut panels = Vec::new();
    let mut row = Vec::new();
    for setting in settings {
        let mut table = Table::new(&["a", "s", "x", "y", "u"]);
        let (mut slowest, mut lowest, mut highest) = (1.0_f64, f64::INFINITY, 0.0_f64);
        let mut place_of: Vec<[f64; 2]> = Vec::new();
        let mut points: Vec<_> = setting.pairs.iter().filter(|pair| pair.ideal_fct_ms > 0.0).collect();
        points.sort_by(|a, b| a.fct_ms.total_cmp(&b.fct_ms));
        for pair in points {
            let place = |list: &[String], name: &String| list.iter().position(|known| known == name);
            let (Some(a), Some(s)) = (place(&aqms, &pair.aqm), place(&schemes, &pair.scheme)) else { continue };
            // A queue that never forms is shown at the edge of the logarithmic axis.
            let (x, y) = (pair.fct_ms / pair.ideal_fct_ms, height(pair).max(0.1));
            (slowest, lowest, highest) = (slowest.max(x), lowest.min(y), highest.max(y));
            table.push(&[a as f64, s as f64, x, y, f64::from(u8::from(pair.is_unbeaten))]);
            if pair.is_unbeaten {
                place_of.push([x, y]);
            }
        }
        if table.is_empty() {
            continue;
        }
        let domains = [[1.0, slowest * 1.1], [lowest / 1.3, highest * 1.3]];
        let names = labels(&place_of, domains);
        let corners: Vec<_> = place_of.iter().zip(0..).map(|([x, y], k)| json!({"x": x, "y": y, "k": k})).collect();
        let [what, unit] = match setting.pairs.first().map(|pair| pair.second).unwrap_or_default() {
            SecondCriterion::MaxQueueDelayMs => ["peak queue delay", "ms"],
            SecondCriterion::CallNotShown => ["frames of the call not shown", "%"],
            SecondCriterion::WorstSecondMos => ["what the worst second lacks", "MOS"],
        };
        let aria = format!("{}: FCT over the physical limit against the {what}, one point per pair", setting.setting);
        let x = json!({"field": "x", "type": "quantitative", "title": "FCT / physical limit (1 = the limit, log scale)",
            "scale": {"type": "log", "domain": domains[0], "nice": false},
            "axis": {"values": [1, 1.5, 2, 3, 4, 6, 10, 20, 50, 100], "format": "~r"}});
        let y = json!({"field": "y", "type": "quantitative", "title": format!("{what} ({unit}, log scale)"),
            "scale": {"type": "log", "domain": domains[1], "nice": false},
            "axis": {"values": [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], "format": "~r",
                "minExtent": 30}});
        let by = |field: &str, scale| json!({"field": field, "type": "nominal", "title": field, "scale": scale});
        // More AQMs than colours: from then on marks are open.
        let points = |filled: bool| {
            let these = if filled { "<" } else { ">=" };
            json!({"transform": [{"filter": format!("datum.a {these} {}", COLOURS.len())}, named(&aqms, "a", "AQM"),
                named(&schemes, "s", "scheme")],
                "mark": {"type": "point", "filled": filled, "size": 70, "strokeWidth": if filled { 0.6 } else { 1.8 }},
                "encoding": {"x": x, "y": y, "color": by("AQM", colours(&aqms)),
                    "shape": by("scheme", shapes(&schemes)),
                    "opacity": {"condition": {"test": "datum.u == 1", "value": 1}, "value": 0.45},
                    "tooltip": [{"field": "AQM", "title": "AQM"}, {"field": "scheme", "title": "scheme"},
                        {"field": "x", "title": "FCT / limit", "format": ".3~g"},
                        {"field": "y", "title": format!("{what} ({unit})"), "format": ".3~g"}]}})
        };
        let plain = |field: &str| json!({"field": field, "type": "quantitative"});
        panels.push(json!({
            "title": setting.setting, "description": aria, "width": 460, "height": HEIGHT,
            "data": table.data(),
            "layer": [
                {"data": {"values": corners}, "mark": {"type": "line", "interpolate": "step-after", "color": NEUTRAL,
                    "strokeWidth": 1, "strokeDash": [3, 3]},
                 "encoding": {"x": x, "y": y, "order": plain("k")}},
                points(true),
                points(false),
                {"data": {"values": names}, "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 5,
                    "dy": -3, "fontSize": 10, "clip": true},
                 "encoding": {"x": x, "y": y, "text": {"field": "name"}}}
            ]
        }));
        row.push(Panel { index: Some(panels.len() - 1), aria, missing: String::new() });
    }
    if panels.is_empty() {
        return None;
    }
    let entry = |(i, aqm): (usize, &String)| {
        let shape = if i < COLOURS.len() { "bar" } else { "open-square" };
        mark_item(&format!("AQM {aqm}{}", if i < COLOURS.len() { "" } else { " (open marks)" }), style(i).0, shape)
    };
    let mut legend: Vec<_> = aqms.iter().enumerate().map(entry).collect();
    legend.extend(scheme_legend(&schemes, false).into_iter().map(|entry| LegendItem { colour: NEUTRAL, ..entry }));
    legend.push(item("pairs that nobody beats, numbered as in the table", NEUTRAL, &[3, 3], 1.0));
    Some(Chart {
        id: "pairs".to_owned(),
        title: "AQM and scheme together".to_owned(),
        sentence: "One mark is one pair, the scheme's shape in the AQM's colour. The physical limit is the time of a \
            sender that knows the path and has it for itself. The best place is the lower left corner: fast, and with a \
            queue that never gets long, or with people beside it who notice nothing. Pale marks are beaten by a pair that \
            is at least as \
            good in both respects."
            .to_owned(),
        aria: "Scatter charts of FCT over the physical limit against the peak queue delay, a point per pair of AQM \
            and scheme"
            .to_owned(),
        columns: if panels.len() > 1 { 2 } else { 1 },
        legend,
        rows: vec![Row { label: String::new(), panels: row }],
        spec: grid_document("FCT over the physical limit against the peak queue delay, by AQM and scheme", 2, &panels),
        ..Chart::default()
    })
}

/// The best score of a conversation (ITU-T G.107).
const BEST_SCORE: f64 = 4.5;

/// What is drawn upwards: less is better.
fn height(pair: &Pair) -> f64 {
    match (pair.second, pair.met) {
        (SecondCriterion::CallNotShown, Some(share)) => share * 100.0,
        (SecondCriterion::WorstSecondMos, Some(score)) => BEST_SCORE - score,
        _ => pair.max_queue_delay_ms,
    }
}

/// What is written beside the pairs that nobody beats: their numbers, once for those whose numbers would overlap even
/// on a phone.
fn labels(places: &[[f64; 2]], domains: [[f64; 2]; 2]) -> Vec<serde_json::Value> {
    let pixels = |place: &[f64; 2]| {
        let along = |k: usize, length: f64| {
            let [low, high] = domains[k];
            (place[k] / low).ln() / (high / low).ln() * length
        };
        [along(0, PHONE), along(1, HEIGHT)]
    };
    let touch = |a: &[f64; 2], b: &[f64; 2]| {
        let ([ax, ay], [bx, by]) = (pixels(a), pixels(b));
        (ax - bx).abs() < LABEL[0] && (ay - by).abs() < LABEL[1]
    };
    let mut first = 0;
    let mut labels = Vec::new();
    for close in places.chunk_by(touch) {
        let (from, to) = (first + 1, first + close.len());
        let name = if from == to { from.to_string() } else { format!("{from}–{to}") };
        labels.push(json!({"x": close[0][0], "y": close[0][1], "name": name}));
        first = to;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_overlap_are_one_label() {
        let names = |places: &[[f64; 2]]| {
            let labels = labels(places, [[1.0, 10.0], [1.0, 1000.0]]);
            labels.iter().map(|label| label["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&[[1.5, 100.0], [1.55, 99.0], [1.6, 98.0], [3.0, 10.0]]), ["1–3", "4"]);
        // Beside each other, but far above each other.
        assert_eq!(names(&[[1.5, 100.0], [1.55, 10.0]]), ["1", "2"]);
    }
}
