//! `summary.json`: the summary of all cells' repetitions.

use std::collections::BTreeMap;

use flowstart_core::rng::name_hash;
use flowstart_core::time::Timestamp;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::world::requests::Requests;
use serde::Serialize;
use serde_json::{Value, json};

use crate::results::cell_summary::{CellSummary, Others};
use crate::results::comparison::{comparisons, distinct};
use crate::results::felt::{cell_seed, felt};
use crate::results::metric::Shown;
use crate::results::pairs;
use crate::results::row::{METRICS, Row};
use crate::spec::competitor::Competitor;
use crate::study::ideal::limit_of;
use crate::study::plan::{Cell, Plan};
use flowstart_report::PairedSetting;
use flowstart_statistics::{LEVEL, Metric, RESAMPLES, RUNS_FOR_P99, bca, bca_mean, mean, median, quantile};

/// Version of the format of `summary.json`.
pub const SCHEMA: u32 = 1;

/// All cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this format.
    pub schema: u32,
    /// The answer, in a sentence; empty until it is written from the rest.
    pub answer: String,
    /// What belongs to the answer, in further sentences.
    pub answer_notes: Vec<String>,
    /// Repetitions of each cell.
    pub reps: u32,
    /// The cells in the order of the plan.
    pub cells: Vec<CellSummary>,
    /// The pairs of AQM and scheme that no other pair beats, for each setting, if there are several AQMs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unbeaten_pairs: Vec<PairedSetting>,
}

/// The values of a metric over the runs that completed.
pub fn values(rows: &[&Row], field: impl Fn(&Row) -> Option<f64>) -> Vec<f64> {
    rows.iter().filter(|row| !row.failed()).filter_map(|row| field(row)).collect()
}

/// The interval of the mean over all flows. What is drawn again are repetitions: these are independent of each other,
/// flows that share a link are not. One with more flows counts for more, as in the mean.
fn interval(rows: &[&Row], field: impl Fn(&Row) -> Option<f64>, seed: u64) -> Option<[f64; 2]> {
    let of_repetition = |rows: &[&Row]| {
        let values = values(rows, &field);
        mean(&values).map(|mean| (mean, values.len() as f64))
    };
    let means: Vec<(f64, f64)> = rows.chunk_by(|a, b| a.rep == b.rep).filter_map(of_repetition).collect();
    let have_equal_flows = means.iter().all(|(_, flows)| *flows == means[0].1);
    let estimate = if have_equal_flows {
        bca_mean(&means.iter().map(|(mean, _)| *mean).collect::<Vec<_>>(), LEVEL, RESAMPLES, seed)
    } else {
        let weighted = |rows: &[(f64, f64)]| {
            let flows: f64 = rows.iter().map(|(_, flows)| flows).sum();
            (flows > 0.0).then(|| rows.iter().map(|(mean, count)| mean * count).sum::<f64>() / flows)
        };
        bca(&means, weighted, LEVEL, RESAMPLES, seed)
    };
    estimate.map(|estimate| [estimate.interval.low, estimate.interval.high])
}

fn metric(rows: &[&Row], field: impl Fn(&Row) -> Option<f64>, seed: u64) -> Metric {
    let values = values(rows, &field);
    let p99 = if values.len() >= RUNS_FOR_P99 { quantile(&values, 0.99) } else { None };
    Metric {
        mean: mean(&values),
        median: median(&values),
        p95: quantile(&values, 0.95),
        p99,
        ci95: interval(rows, field, seed),
    }
}

/// The rows of each cell, in the order of the plan.
pub fn rows_by_cell<'a>(plan: &Plan, rows: &'a [Row]) -> Vec<Vec<&'a Row>> {
    let cells = plan.cells();
    let places: BTreeMap<String, usize> = cells.iter().map(|cell| (plan.id(cell), cell.index)).collect();
    let mut by_cell = vec![Vec::new(); cells.len()];
    for row in rows {
        if let Some(&place) = places.get(&row.cell) {
            by_cell[place].push(row);
        }
    }
    by_cell
}

/// Summarizes an experiment.
pub fn summarize(plan: &Plan, rows: &[Row]) -> Summary {
    let by_cell = rows_by_cell(plan, rows);
    let mut cells: Vec<CellSummary> =
        plan.cells().iter().map(|cell| summarize_cell(plan, cell, &by_cell[cell.index])).collect();
    for (place, comparison) in comparisons(plan, &by_cell) {
        cells[place].vs_baseline = Some(comparison);
    }
    let unbeaten_pairs = pairs::paired(plan, &cells).iter().map(PairedSetting::unbeaten).collect();
    Summary { schema: SCHEMA, answer: String::new(), answer_notes: Vec::new(), reps: plan.reps, cells, unbeaten_pairs }
}

/// The part of values within 20 % of their mean.
fn near_mean(values: &[f64]) -> Option<f64> {
    const NEAR: f64 = 0.2;
    let mean = mean(values)?;
    let near = values.iter().filter(|value| (*value - mean).abs() <= NEAR * mean).count();
    Some(near as f64 / values.len() as f64)
}

fn summarize_cell(plan: &Plan, cell: &Cell, rows: &[&Row]) -> CellSummary {
    let seed = cell_seed(plan, cell);
    let link = &plan.links[cell.link];
    let size = plan.sizes[cell.size].value.mean_bytes();
    let application = plan.sizes[cell.size].value.objects();
    let web = plan.sizes[cell.size].value.sessions();
    let metrics = METRICS
        .iter()
        .filter(|one| one.shown == Shown::Summary && one.group.is_of(plan, cell))
        .map(|one| (one.name, metric(rows, |row| one.number(row), seed ^ name_hash(one.name))))
        .collect();
    let mut exit_reasons = BTreeMap::new();
    for reason in rows.iter().filter(|row| !row.failed()).filter_map(|row| row.exit()) {
        *exit_reasons.entry(reason.to_owned()).or_insert(0) += 1;
    }
    let has_others = *plan.competitors[cell.competitor].on(cell.transport) != Competitor::None;
    let others = has_others.then(|| Others {
        goodput_lost_mbit: metric(rows, |row| row.others_goodput_lost_mbit, seed ^ 1),
        dropped_packets: metric(rows, |row| row.others_dropped_packets, seed ^ 2),
        extra_delay_ms: metric(rows, |row| row.others_extra_delay_ms, seed ^ 3),
        extra_fct_ms: plan.competitors[cell.competitor]
            .on(cell.transport)
            .has_transfers()
            .then(|| metric(rows, |row| row.others_extra_fct_ms, seed ^ 4)),
    });
    // On a trace the limit depends on the start of the transfer; the cell has the mean over the runs.
    let ideals: Vec<f64> = rows.iter().map(|row| row.ideal_fct_ms).collect();
    let ideal = mean(&ideals)
        .unwrap_or_else(|| limit_of(plan, cell, &plan.links[cell.link], size, Timestamp::ZERO).as_millis_f64());
    CellSummary {
        id: plan.id(cell),
        link: link.text.clone(),
        aqm: plan.aqms[cell.aqm].text.clone(),
        size_bytes: size.get(),
        scheme: plan.schemes[cell.scheme].text.clone(),
        avoidance: plan.avoidance_of(cell).text.clone(),
        competitor: plan.competitors[cell.competitor].text.clone(),
        transport: plan.transport_of(cell).text.clone(),
        application: (application.is_some() || web.is_some()).then(|| plan.sizes[cell.size].text.clone()),
        otherwise: plan.otherwise(cell),
        resolved: resolved(plan, cell),
        n: rows.iter().filter(|row| !row.failed()).count(),
        failed: rows.iter().filter(|row| row.failed()).count(),
        distinct: distinct(rows),
        near_mean: near_mean(&values(rows, felt(plan, cell).1)),
        lost_share: metric(rows, |row| lost_share(plan, cell, row), seed ^ 5),
        ideal_fct_ms: ideal,
        metrics,
        exit_reasons,
        others,
        vs_baseline: None,
    }
}

/// The part of a flow's data packets that was lost. Rows have no number of packets sent; it is that of full packets
/// with the payload and with what was sent again. Web sessions count their packets themselves.
fn lost_share(plan: &Plan, cell: &Cell, row: &Row) -> Option<f64> {
    if plan.sizes[cell.size].value.sessions().is_some() {
        return row.drop_rate;
    }
    let payload = u64::from(plan.profile(cell).payload).max(1);
    let sent = (row.size_bytes + row.retransmitted_bytes).div_ceil(payload);
    (sent > 0).then(|| (row.dropped_packets as f64 / sent as f64).min(1.0))
}

/// Everything about a cell, canonical, with every default filled in.
fn resolved(plan: &Plan, cell: &Cell) -> Value {
    let competitor = match plan.competitors[cell.competitor].on(cell.transport) {
        Competitor::None => json!("none"),
        Competitor::Bulk { count, startup, avoidance } => {
            json!({"kind": "bulk", "count": count, "startup": startup, "avoidance": avoidance})
        }
        Competitor::Pattern { count, pattern: Pattern::Media(media) } => {
            json!({"kind": "media", "count": count, "media": media})
        }
        Competitor::Pattern { count, pattern: Pattern::Call(call) } => {
            json!({"kind": "call", "count": count, "call": call})
        }
        Competitor::Pattern { count, pattern } => {
            json!({"kind": "pattern", "count": count, "pattern": pattern})
        }
        Competitor::Short { count, size, every, startup, avoidance } => {
            let kind = "short";
            let mut short =
                json!({"kind": kind, "count": count, "size": size, "startup": startup, "avoidance": avoidance});
            if let Some(every) = every {
                short["every"] = json!(every);
            }
            short
        }
        Competitor::Web { load, sizes, startup, receiver_rate } => {
            let mut web = json!({"kind": "web", "load": load, "smallest": sizes.smallest, "largest": sizes.largest,
                "shape": sizes.shape});
            if let Some(startup) = startup {
                web["startup"] = json!(startup);
            }
            if let Some(rate) = receiver_rate {
                web["receiver_rate"] = json!(rate);
            }
            web
        }
        Competitor::Requests(Requests { interval, count, ask, spoofed, confirm }) => {
            json!({"kind": "requests", "interval": interval, "count": count, "ask": ask, "spoofed": spoofed,
                "confirm": confirm})
        }
    };
    let mut resolved = json!({
        "link": plan.links[cell.link].resolved(),
        "aqm": plan.aqms[cell.aqm].value,
        "size_bytes": plan.sizes[cell.size].value,
        "scheme": plan.schemes[cell.scheme].on(cell.transport),
        "avoidance": plan.avoidance_of(cell).value,
        "competitor": competitor,
        "transport": {
            "profile": plan.profile_for(plan.transport_of(cell), &plan.sizes[cell.size].value).0,
            "policies": *plan.profile(cell),
        },
        "flows": plan.flow_count(cell),
        "hint": plan.hint,
        "unknown": plan.unknown,
    });
    if let Some(stack) = &plan.transport_of(cell).stack {
        resolved["transport"]["stack"] = stack.resolved();
    }
    if let Some(application) = plan.sizes[cell.size].value.objects() {
        resolved["application"] = json!(application);
    }
    if plan.connections_of(cell) > 1 {
        resolved["connections"] = json!(plan.connections_of(cell));
    }
    if plan.otherwise(cell).contains_key("arrival") {
        resolved["arrival"] = json!(plan.arrivals[cell.arrival].value.process);
    }
    if let Some(mobility) = plan.mobility(cell) {
        resolved["move"] = json!({"at": mobility.at, "link": mobility.link.resolved()});
    }
    if !plan.arrivals[cell.arrival].value.rtts.is_empty() {
        resolved["rtts"] = json!(plan.arrivals[cell.arrival].value.rtts);
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resolved_is_json_throughout_and_complete() {
        let folder = std::env::temp_dir().join(format!("flowstart-resolved-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("up"), "1\n2\n").unwrap();
        let text = "link = [\"rate=10mbit,rtt=50ms,up_trace=up\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\"]\nreps = 1\n\
                    competitor = [\"cbr:rate=5mbit\", \"onoff:rate=5mbit,on=200ms,off=300ms\"]";
        let plan = crate::study::scenario::Scenario::from_text(text).unwrap().plan(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let resolved: Vec<Value> = plan.cells().iter().map(|cell| resolved(&plan, cell)).collect();
        let cbr =
            json!({"kind": "pattern", "count": 1, "pattern": {"constant-rate": {"rate": "5mbit", "packet": 1500}}});
        assert_eq!(resolved[0]["competitor"], cbr);
        let on_off = json!({"on-off": {"rate": "5mbit", "mean_on": "200ms", "mean_off": "300ms"}});
        assert_eq!(resolved[1]["competitor"]["pattern"], on_off);
        let file = folder.join("up").display().to_string();
        assert!(resolved.iter().all(|one| one["link"]["up_trace"] == file.as_str()));
    }

    #[test]
    fn flows_of_one_repetition_are_one_observation() {
        let text = "link = [\"lte,access_jitter=5ms/5ms\"]\nsize = [\"70KB\"]\nscheme = [\"slow-start\", \"blitzstart\"]\nreps = 4\nflows = 8";
        let scenario = crate::study::scenario::Scenario::from_text(text).unwrap();
        let plan = scenario.plan(std::path::Path::new(".")).unwrap();
        let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        let by_cell = rows_by_cell(&plan, &rows);
        assert_eq!(by_cell[0].len(), 32);
        // An interval of 32 observations that each have a neighbour of their repetition would be too narrow.
        let [low, high] = interval(&by_cell[0], |row| row.fct_ms, 1).unwrap();
        let all = values(&by_cell[0], |row| row.fct_ms);
        let alone = bca_mean(&all, LEVEL, RESAMPLES, 1).unwrap().interval;
        assert!(low < mean(&all).unwrap() && mean(&all).unwrap() < high && [low, high] != [alone.low, alone.high]);
        // Where repetitions have different numbers of flows it is that of the mean over all flows, too.
        let few = |row: &Row| row.fct_ms.filter(|_| row.rep > 0 || row.flow == 7);
        let mean = mean(&values(&by_cell[0], few)).unwrap();
        let [low, high] = interval(&by_cell[0], few, 1).unwrap();
        assert!(low < mean && mean < high, "{low} {mean} {high}");
        assert_eq!(crate::results::comparison::paired(&by_cell[0], &by_cell[1], |row| row.fct_ms).len(), 4);
    }
}
