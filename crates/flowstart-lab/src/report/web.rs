//! Web sessions in a report: curves over the number of sessions, and the connections of one repetition.

use crate::results::cell_summary::CellSummary;
use crate::results::flows::Row;
use crate::results::summary::Summary;
use crate::spec::web::{Rows, Sessions, WEB};
use crate::study::plan::{Cell, Plan};
use flowstart_report as report;
use flowstart_statistics::Metric;

/// The shown metrics, with their units and factors.
const SHOWN: [(&str, &str, f64); 9] = [
    ("offered_mbps", "offered load (Mbit/s)", 1.0),
    ("utilization", "utilization of the link (%)", 100.0),
    ("drop_rate", "data packets dropped (%)", 100.0),
    ("quick_start_approved", "requests approved (%)", 100.0),
    ("quick_start_failures", "approved requests that failed (%)", 100.0),
    ("quick_start_bytes", "data sent in Quick-Start (%)", 100.0),
    ("quick_start_kbytes_per_s", "data sent in Quick-Start (KB/s)", 1.0),
    ("fct_ms", "mean FCT of a connection (ms)", 1.0),
    ("connections", "connections completed", 1.0),
];

/// The points of a cell.
pub(super) fn curves(plan: &Plan, cell: &Cell, summary: &CellSummary) -> Vec<report::CurvePoint> {
    let Some(web) = plan.sizes[cell.size].value.sessions() else { return Vec::new() };
    let (all, baseline) = (web.share >= 1.0, cell.scheme == 0);
    // All connections use the first scheme, so the values are those of all connections.
    if !all && baseline && plan.schemes.len() > 1 {
        return Vec::new();
    }
    let sessions = |web: &Sessions| web.sessions;
    let varied =
        plan.sizes.iter().filter_map(|size| size.value.sessions()).any(|other| sessions(other) != web.sessions);
    if !varied {
        return Vec::new();
    }
    let variant = variant(plan, cell);
    let point = |metric: &str, variant: String, y: report::Estimate| report::CurvePoint {
        metric: metric.to_owned(),
        variant,
        x_title: "web sessions".to_owned(),
        x: f64::from(web.sessions),
        y,
    };
    let scaled = |name: &str, factor: f64| {
        let metric = summary.metrics.get(name);
        let mean = metric.and_then(|metric| metric.mean).map(|mean| mean * factor);
        let ci95 = metric.and_then(|metric| metric.ci95).map(|interval| interval.map(|end| end * factor));
        report::Estimate { mean, ci95 }
    };
    let mut points = Vec::new();
    for (name, title, factor) in SHOWN {
        if name == "drop_rate" && !all {
            for (part, which) in [("with_scheme", "with it"), ("without", "the others")] {
                let y = scaled(&format!("{name}_{part}"), factor);
                points.push(point(title, format!("{variant}, {which}"), y));
            }
        } else {
            points.push(point(title, variant.clone(), scaled(name, factor)));
        }
    }
    points
}

/// The outcome of rate requests, in a sentence. `None` without requests.
pub(super) fn answer(summary: &Summary) -> Option<String> {
    let range = |name: &str| -> Option<[f64; 2]> {
        let means = summary.cells.iter().filter(|cell| cell.metrics.get("quick_start_approved").is_some_and(has_mean));
        let means: Vec<f64> = means.filter_map(|cell| Some(cell.metrics.get(name)?.mean? * 100.0)).collect();
        Some([means.iter().copied().reduce(f64::min)?, means.iter().copied().reduce(f64::max)?])
    };
    let [fewest, most] = range("quick_start_approved")?;
    let [least_used, most_used] = range("utilization")?;
    let [least, largest] = range("quick_start_bytes")?;
    let failures =
        range("quick_start_failures").map_or(String::new(), |[_, most]| format!(", at most {most:.1} % of these fail"));
    Some(format!(
        "Where the link is used to between {least_used:.0} and {most_used:.0} %, routers approve between {fewest:.0} and \
         {most:.0} % of the requests{failures}, and {least:.1} to {largest:.1} % of the data leave in Quick-Start."
    ))
}

fn has_mean(metric: &Metric) -> bool {
    metric.mean.is_some()
}

/// The label that distinguishes a cell from cells that differ in more than the number of sessions.
fn variant(plan: &Plan, cell: &Cell) -> String {
    let links: Vec<&str> = plan.links.iter().map(|link| link.text.as_str()).collect();
    let sizes: Vec<String> = plan.sizes.iter().map(|size| without_sessions(&size.text)).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let aqms: Vec<&str> = plan.aqms.iter().map(|aqm| aqm.text.as_str()).collect();
    let schemes: Vec<&str> = plan.schemes.iter().map(|scheme| scheme.text.as_str()).collect();
    let parts = [(&links, cell.link), (&aqms, cell.aqm), (&sizes, cell.size), (&schemes, cell.scheme)];
    let named: Vec<String> = parts
        .into_iter()
        .map(|(texts, place)| report::own_keys(texts).0[place].clone())
        .filter(|part| !part.is_empty())
        .collect();
    if named.is_empty() { schemes[cell.scheme].to_owned() } else { named.join(", ") }
}

/// The application without its name and the number of sessions.
fn without_sessions(text: &str) -> String {
    let keys = text.split_once(':').map_or(text, |(_, keys)| keys);
    let kept: Vec<&str> = keys.split(',').filter(|key| !key.trim().starts_with("sessions=") && *key != WEB).collect();
    kept.join(",")
}

/// Size and FCT of the connections of the first repetition, if each has a row.
pub(super) fn connections(plan: &Plan, cell: &Cell, rows: &[&Row]) -> Vec<[f64; 2]> {
    let each = plan.sizes[cell.size].value.sessions().is_some_and(|web| web.rows == Rows::Connections);
    let first = rows.iter().filter(|row| each && row.rep == 0);
    first.filter_map(|row| Some([row.size_bytes as f64, row.fct_ms?])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::scenario::Scenario;

    #[test]
    fn variants_are_called_by_what_they_do_not_share() {
        let text = "link = [\"rate=10mbit,rtt=80ms,quick_start=target,qs_thresh=0.5\", \
                    \"rate=10mbit,rtt=80ms,quick_start=target,qs_thresh=0.9\"]\n\
                    application = [\"web:sessions=5\", \"web:sessions=10\", \"web:sessions=10,share=0.5\"]\n\
                    scheme = [\"slow-start\", \"quick-start\"]\ntransport = \"model-tcp:profile=ns2-sack1\"";
        let plan = Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let names: Vec<String> = plan.cells().iter().map(|cell| variant(&plan, cell)).collect();
        assert_eq!(names[0], "qs_thresh=0.5, slow-start");
        assert_eq!(names[1], "qs_thresh=0.5, quick-start");
        assert_eq!(names[5], "qs_thresh=0.5, share=0.5, quick-start");
        assert_eq!(names[6], "qs_thresh=0.9, slow-start");
    }
}
