//! A run with the causes of its delay and what was known of its path, in words and for other programs.

use flowstart_core::sources::{Finding, Statement, Verdict};
use flowstart_core::time::Timestamp;
use flowstart_quic::qlog::source;
use flowstart_report::Cause;
use serde_json::{Map, Value, json};

use super::explain::Explanation;
use super::observe::{self, MOST_FLOWS, Shown, Watched};
use crate::run::knowledge::at_launch;
use crate::spec::InputError;
use crate::study::plan::{Cell, Plan};

/// A run and its causes.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Its cell.
    pub cell: Cell,
    /// Its repetition.
    pub rep: u32,
    /// The causes; there are none for a transfer that did not finish.
    pub explanation: Option<Explanation>,
    /// What sources state of the path.
    pub sources: Vec<Finding>,
    /// Whether a measured flow of the run did not finish.
    pub failed: bool,
}

/// Refuses cells that cannot be traced.
///
/// # Errors
///
/// The field, and why.
pub fn check_traced(plan: &Plan, cells: &[Cell]) -> Result<(), InputError> {
    let mut sizes = cells.iter().map(|cell| &plan.sizes[cell.size]);
    if let Some(size) = sizes.find(|size| !size.value.is_one_connection()) {
        let problem =
            "has connections of HTTP/1.1, or sessions; trace and explain show --size, or a page with http=2 or 3";
        return Err(InputError::new("application", &size.text, problem));
    }
    if let Some(cell) = cells.iter().find(|cell| !plan.is_simulated(cell)) {
        let problem = "its runs were between sockets, and cannot be simulated again; trace and explain show others";
        return Err(InputError::new("cell", plan.id(cell), problem));
    }
    Ok(())
}

/// Refuses cells whose runs cannot be explained.
///
/// # Errors
///
/// The field, and why.
pub fn check(plan: &Plan, cells: &[Cell]) -> Result<(), InputError> {
    if let Some(text) = cells.iter().find_map(|cell| plan.otherwise(cell).remove("move")) {
        return Err(InputError::new("move", text, "explain follows one path; `flowstart trace` shows both"));
    }
    if let Some(cell) = cells.iter().find(|cell| !plan.is_one_connection(cell)) {
        let (field, text) = match plan.connections_of(cell) {
            1 => ("link", &plan.links[cell.link].text),
            _ => ("scheme", &plan.schemes[cell.scheme].text),
        };
        let problem = "has several connections for a transfer, and explain follows one; `flowstart trace` shows them";
        return Err(InputError::new(field, text, problem));
    }
    Ok(())
}

impl Explained {
    /// Simulates a repetition of a cell that passes [`check`], and explains the measured flow in this place, from 0.
    ///
    /// # Errors
    ///
    /// There is no such flow.
    pub fn of(plan: &Plan, cell: Cell, rep: u32, flow: u32) -> Result<Self, InputError> {
        let flows = plan.flow_count(&cell).min(MOST_FLOWS);
        if flow >= flows {
            let allowed = format!("allowed is 0 to {}", flows.saturating_sub(1));
            return Err(InputError::new("flow", flow.to_string(), allowed));
        }
        let causes = Shown { watched: Watched { causes: true, series: None }, media_delays: false };
        let (outcomes, seen) = observe::again(plan, &cell, rep, causes);
        let start = outcomes.get(flow as usize).map_or(Timestamp::ZERO, |outcome| outcome.start);
        Ok(Self {
            cell,
            rep,
            explanation: seen.explanations.into_iter().nth(flow as usize).flatten(),
            sources: at_launch(plan, &cell, start),
            failed: outcomes.iter().any(|outcome| outcome.failure.is_some()),
        })
    }

    /// For other programs.
    pub fn object(&self, plan: &Plan) -> Value {
        let known = self.explanation.as_ref();
        let causes = known.map(|explanation| {
            let entry = |cause: Cause| (cause.key().to_owned(), json!(explanation.ms(cause)));
            Cause::ALL.into_iter().map(entry).collect::<Map<_, _>>()
        });
        json!({
            "cell": plan.id(&self.cell),
            "rep": self.rep,
            "fct_ms": known.map(|explanation| explanation.fct.as_millis_f64()),
            "ideal_fct_ms": known.map(|explanation| explanation.ideal_fct.as_millis_f64()),
            "causes": causes,
            "sources": self.sources.iter().map(source).collect::<Vec<_>>(),
        })
    }

    /// In words: how long it took, why, and on what the launch depends.
    pub fn sentence(&self, plan: &Plan) -> String {
        let scheme = &plan.schemes[self.cell.scheme].text;
        let (size, link) = (plan.carried(&self.cell), &plan.links[self.cell.link].text);
        let end = match &self.explanation {
            Some(explanation) => format!("{scheme} moved {size} over {link} {}", explanation.sentence_end()),
            None => format!("{scheme} did not finish {size} over {link}."),
        };
        format!("{end}{}", depends_on(&self.sources))
    }
}

/// A sentence about the sources on which the launch depends, if there are any.
fn depends_on(sources: &[Finding]) -> String {
    let said = |statement: &Statement| match statement {
        Statement::Saved(saved) => format!("a window of {} bytes", saved.cwnd.get()),
        other => other.rate().map_or_else(String::new, |rate| rate.to_string()),
    };
    let used = sources.iter().filter(|one| one.verdict == Verdict::Used);
    let named = |one: &Finding| Some(format!("{} ({})", one.source, said(one.believed.as_ref()?)));
    let used: Vec<String> = used.filter_map(named).collect();
    if used.is_empty() { String::new() } else { format!(" Its launch depends on {}.", used.join(" and ")) }
}
