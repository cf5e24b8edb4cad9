//! One run of each cell, with its time series: what charts show while the others are simulated.

use flowstart_core::time::Duration;
use flowstart_lab::report::trace;
use flowstart_lab::study::plan::{AXES, Axis, Cell, Plan};
use flowstart_lab::trace::observe::{MOST_FLOWS, Resolution, Shown, Watched, again};
use flowstart_report::{Cause, Method, TraceReport};
use serde_json::{Value, json};

/// Most cells whose runs are shown: as many as there are colours.
const MOST_RUNS: usize = 7;
/// The repetition that is shown.
const REP: u32 = 0;
/// What charts of half a page can show.
const RESOLUTION: Resolution =
    Resolution { bins: 160, marks: 500, volume: 2, longest: Duration::from_millis(60_000), whole: true };

/// A cell by what it differs in from others.
pub(crate) fn label(plan: &Plan, cell: &Cell) -> String {
    let differs = |axis: &&Axis| axis.length(plan) > 1;
    let texts: Vec<&str> = AXES.iter().filter(differs).filter_map(|axis| axis.value(plan, cell)).collect();
    if texts.is_empty() { plan.schemes[cell.scheme].text.clone() } else { texts.join(" · ") }
}

/// Runs one repetition of the first cells; `goes_on` gets each as it is done, and says whether the next is wanted.
pub(super) fn runs(plan: &Plan, goes_on: impl Fn(&Value) -> bool) -> Vec<Value> {
    let is_told = |cell: &Cell| {
        let few = plan.flow_count(cell) * plan.connections_of(cell) <= MOST_FLOWS;
        few && plan.sizes[cell.size].value.is_one_connection()
    };
    let mut runs = Vec::new();
    for cell in plan.cells().into_iter().filter(is_told).take(MOST_RUNS) {
        let has_causes = plan.is_one_connection(&cell) && plan.mobility(&cell).is_none();
        let watched = Watched { causes: has_causes, series: Some(RESOLUTION) };
        let (outcomes, seen) = again(plan, &cell, REP, Shown { watched, media_delays: false });
        let run = told(plan, &cell, &trace(plan, &cell, REP, &outcomes, &seen, Method::default()));
        let is_wanted = goes_on(&run);
        runs.push(run);
        if !is_wanted {
            break;
        }
    }
    runs
}

/// A run in the fewest words.
fn told(plan: &Plan, cell: &Cell, run: &TraceReport) -> Value {
    let causes = run.causes.as_ref().map(|causes| {
        let named = Cause::ALL.iter().zip(causes.causes_ms).map(|(cause, ms)| json!([cause.name(), rounded(ms)]));
        std::iter::once(json!(["physical limit", rounded(causes.ideal_fct_ms)])).chain(named).collect::<Vec<_>>()
    });
    json!({
        "cell": cell.index,
        "label": label(plan, cell),
        "fct_ms": run.fct_ms.map(rounded),
        "exit_ms": run.exit_ms.map(rounded),
        "exit_reason": run.exit_reason,
        "sent": points(&run.sent),
        "again": points(&run.retransmitted),
        "dropped": points(&run.dropped),
        "acked": points(&run.acked),
        "cwnd": points(&run.cwnd),
        "in_flight": points(&run.in_flight),
        "queue": points(&run.queue_packets),
        "causes": causes,
    })
}

/// Two decimals: 10 µs, of which no chart shows less.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Points from the start of the measured flow on; what was before it is told by the first of them.
fn points(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let before = points.iter().rposition(|[time, _]| *time < 0.0);
    let shown = &points[before.unwrap_or(0)..];
    shown.iter().map(|[time, value]| [rounded(time.max(0.0)), rounded(*value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_the_start_is_its_first_point() {
        assert_eq!(points(&[[-50.0, 1.0], [-10.0, 7.0], [3.333, 8.0]]), [[0.0, 7.0], [3.33, 8.0]]);
        assert_eq!(points(&[[1.0, 2.0]]), [[1.0, 2.0]]);
        assert!(points(&[]).is_empty());
    }
}
