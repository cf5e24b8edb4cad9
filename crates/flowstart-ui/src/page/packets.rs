//! The page of the packets of one run.

use flowstart_lab::study::plan::Plan;
use minijinja::context;
use serde::Serialize;
use serde_json::json;

use super::Site;
use super::lab::in_script;
use crate::ask::label;
use crate::question::Run;

/// Another run of the question.
#[derive(Serialize)]
struct Other {
    label: String,
    cell: usize,
    is_shown: bool,
}

/// The page of a run, which is simulated for it.
pub fn page(run: &Run, site: &Site) -> String {
    let Run { question, cell, rep } = run;
    let (place, run) = (cell.index, run.packets());
    let plan: &Plan = &question.study.plan;
    let cells = plan.cells();
    let others: Vec<Other> = cells
        .iter()
        .map(|cell| Other { label: label(plan, cell), cell: cell.index, is_shown: cell.index == place })
        .collect();
    let link = &plan.links[cell.link];
    let start = json!({
        "run": run,
        // What a link holds is a BDP and its buffer.
        "buffer": link.holds().map(|bytes| bytes.saturating_sub(link.bdp()).get()),
        "payload": plan.profile(cell).payload,
        "rtt_ms": link.rtt.as_millis_f64(),
        "rate": link.rate.to_string(),
        "scheme": plan.schemes[cell.scheme].text,
    });
    site.fill(
        "packets.html",
        context! {
            title => format!("Packets: {}", label(plan, cell)),
            scripts => ["chart.js", "packets.js"],
            cell => place,
            place => "lab",
            others, rep,
            reps => plan.reps,
            query => question.query,
            scheme => plan.schemes[cell.scheme].text,
            size => plan.carried(cell),
            link => link.text,
            aqm => plan.aqms[cell.aqm].text,
            competitor => plan.competitors[cell.competitor].text,
            rate => link.rate.to_string(),
            rtt => link.rtt.to_string(),
            buffer => link.buffer.to_string(),
            count => run.packets.len(),
            goes_on => run.goes_on,
            completed => run.completed.map(|ms| format!("{ms:.1}")),
            start => in_script(&start),
        },
    )
}
