//! Queue disciplines over the RTT: curves for links that differ only in their RTT.

use super::cell::estimate;
use crate::results::summary::Summary;
use crate::spec::aqm::{Aqm, ORACLE};
use crate::study::plan::{AXES, Axis, Cell, Plan};
use flowstart_report as report;

/// Fewest RTTs that make a curve.
const LEAST_RTTS: usize = 3;
/// The shown metrics, with titles and units.
const SHOWN: [(&str, &str); 2] =
    [("max_queue_delay_ms", "largest queuing delay (ms)"), ("fct_ms", "mean FCT of a flow (ms)")];

/// Whether the experiment compares AQMs over the RTT: one scheme, one value of every other axis, and links of one rate.
fn compares_aqms(plan: &Plan) -> bool {
    let mut others = AXES.iter().filter(|axis| ![Axis::link(), Axis::aqm()].contains(axis));
    let mut rtts: Vec<_> = plan.links.iter().map(|link| link.rtt).collect();
    rtts.sort_unstable();
    rtts.dedup();
    others.all(|axis| axis.length(plan) == 1)
        && plan.sizes.iter().all(|size| size.value.sessions().is_none())
        && plan.aqms.len() > 1
        && rtts.len() == plan.links.len()
        && rtts.len() >= LEAST_RTTS
        && plan.links.iter().all(|link| link.rate == plan.links[0].rate)
}

/// The points of a cell.
pub(super) fn curves(plan: &Plan, cell: &Cell, summary: &Summary) -> Vec<report::CurvePoint> {
    if !compares_aqms(plan) {
        return Vec::new();
    }
    let rtt = plan.links[cell.link].rtt.as_millis_f64();
    let point = |metric: &str, y: report::Estimate| report::CurvePoint {
        metric: metric.to_owned(),
        variant: plan.aqms[cell.aqm].text.clone(),
        x_title: "RTT (ms)".to_owned(),
        x: rtt,
        y,
    };
    let metric = |cell: &Cell, name: &str| summary.cells.get(cell.index)?.metrics.get(name);
    let mut points: Vec<_> =
        SHOWN.iter().filter_map(|(name, title)| Some(point(title, estimate(metric(cell, name)?)))).collect();
    let oracle = plan.aqms.iter().position(|aqm| aqm.value == Aqm::Oracle);
    let oracle = plan.cells().into_iter().find(|other| other.link == cell.link && Some(other.aqm) == oracle);
    if let Some(oracle) = oracle {
        let pair = |name| Some((metric(cell, name)?.mean?, metric(&oracle, name)?.mean?));
        let mean = |value| report::Estimate { mean: Some(value), ci95: None };
        if let Some((ours, best)) = pair("max_queue_delay_ms") {
            points
                .push(point(&format!("largest queuing delay above the {ORACLE}'s (RTTs)"), mean((ours - best) / rtt)));
        }
        if let Some((ours, best)) = pair("fct_ms") {
            points.push(point(&format!("mean FCT over the {ORACLE}'s"), mean(ours / best)));
        }
    }
    points
}

/// The distance of each AQM from the oracle, in a sentence. `None` without an oracle, or if something else is compared.
pub(super) fn answer(plan: &Plan, summary: &Summary) -> Option<String> {
    if !compares_aqms(plan) {
        return None;
    }
    let cells = plan.cells();
    let metric = |cell: &Cell, name: &str| summary.cells.get(cell.index)?.metrics.get(name)?.mean;
    let oracle = plan.aqms.iter().position(|aqm| aqm.value == Aqm::Oracle)?;
    let mut parts = Vec::new();
    for (aqm, text) in plan.aqms.iter().map(|aqm| aqm.text.as_str()).enumerate().filter(|(aqm, _)| *aqm != oracle) {
        let (mut highest, mut slowest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for cell in cells.iter().filter(|cell| cell.aqm == aqm) {
            let best = cells.iter().find(|other| other.link == cell.link && other.aqm == oracle)?;
            let rtt = plan.links[cell.link].rtt.as_millis_f64();
            let delays = (metric(cell, "max_queue_delay_ms")?, metric(best, "max_queue_delay_ms")?);
            highest = highest.max((delays.0 - delays.1) / rtt);
            slowest = slowest.max(metric(cell, "fct_ms")? / metric(best, "fct_ms")?);
        }
        parts.push(format!("{text} {highest:+.2} RTT and {slowest:.2} times"));
    }
    let rtts = plan.links.iter().map(|link| link.rtt);
    let (shortest, longest) = (rtts.clone().min()?, rtts.max()?);
    let list = parts.join("; ");
    Some(format!(
        "At its worst RTT from {shortest} to {longest}, the largest queuing delay beside the {ORACLE}'s and the mean FCT over the \
         {ORACLE}'s are: {list}."
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    fn plan(more: &str) -> Plan {
        let text = format!("size = [\"2MB\"]\ntransport = \"model-tcp\"\nscheme = [\"slow-start\"]\n{more}");
        Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap()
    }

    #[test]
    fn aqms_make_curves_over_the_rtt_where_nothing_else_varies() {
        let links = |rates: [u32; 3]| {
            let link = |(rate, rtt)| format!("\"rate={rate}mbit,rtt={rtt}ms,buffer=1bdp\"");
            rates.into_iter().zip([20, 50, 100]).map(link).collect::<Vec<_>>().join(", ")
        };
        let aqms = "aqm = [\"codel\", \"oracle\"]";
        assert!(compares_aqms(&plan(&format!("link = [{}]\n{aqms}", links([10; 3])))));
        assert!(!compares_aqms(&plan(&format!("link = [{}]\n{aqms}", links([10, 20, 30])))));
        assert!(!compares_aqms(&plan(&format!("link = [{}]", links([10; 3])))));
        let two = "arrival = [\"every=1s,flows=2\", \"every=1s,flows=3\"]";
        assert!(!compares_aqms(&plan(&format!("link = [{}]\n{aqms}\n{two}", links([10; 3])))));
    }
}
