//! Controllers' decisions as events of a qlog file.
//!
//! Simulated flows, a server's connections and those of the kernel's TCP use the same events.

use flowstart_core::event::Decision;
use flowstart_core::sources::{Finding, Statement};
use flowstart_core::units::Bytes;
use serde_json::{Value, json};

/// The events of this project, in the `event_schemas` of a file.
pub const SCHEMA: &str = "urn:x-flowstart:qlog:events:flowstart";

/// What a source stated, as a field: bit/s, or what an earlier connection saved.
fn stated(statement: &Statement) -> Value {
    match statement {
        Statement::Saved(saved) => {
            json!({ "cwnd_bytes": saved.cwnd.get(), "rtt_ms": saved.rtt.as_nanos() as f64 / 1e6 })
        }
        other => json!(other.rate().map(flowstart_core::units::Rate::bits_per_sec)),
    }
}

/// A source of the launch, as `flowstart:launch` has it in `sources`.
pub fn source(finding: &Finding) -> Value {
    let mut fields = json!({ "name": finding.source, "verdict": finding.verdict.name() });
    if let Some(statement) = &finding.stated {
        fields["value"] = stated(statement);
    }
    if let Some(believed) = finding.believed.as_ref().filter(|believed| Some(**believed) != finding.stated) {
        fields["believed"] = stated(believed);
    }
    if let Some(age) = finding.age {
        fields["age_ms"] = json!(age.as_nanos() as f64 / 1e6);
    }
    if !finding.reason.is_empty() {
        fields["reason"] = json!(finding.reason);
    }
    fields
}

/// A decision of a controller as qlog events: names and data. `sources` are what is known of the path and from where,
/// for the launch.
///
/// `state` is the state of congestion control, which the decision may change. `collapse` is the cause of a window's
/// collapse on this transport.
pub fn decision_events(
    decision: Decision,
    sources: &[Finding],
    state: &mut Option<&'static str>,
    collapse: &'static str,
) -> Vec<(&'static str, Value)> {
    let mut enter = |new: &'static str, trigger: Option<&'static str>| {
        let mut data = json!({ "new": new });
        if let Some(old) = state.replace(new) {
            data["old"] = json!(old);
        }
        if let Some(trigger) = trigger {
            data["trigger"] = json!(trigger);
        }
        ("quic:congestion_state_updated", data)
    };
    match decision {
        Decision::Launched { cwnd, pacing_rate } => {
            let mut data =
                json!({ "cwnd_bytes": cwnd.get(), "sources": sources.iter().map(source).collect::<Vec<_>>() });
            if let Some(rate) = pacing_rate {
                data["pacing_rate_bps"] = json!(rate.bits_per_sec());
            }
            vec![("flowstart:launch", data), enter("startup", None)]
        }
        Decision::HintCapped { hinted, used } => {
            let data = json!({ "hinted": hinted.bits_per_sec(), "used": used.bits_per_sec() });
            vec![("flowstart:hint_capped", data)]
        }
        Decision::AdviceCapped { advised, after, .. } => {
            let data = json!({ "advised": advised.bits_per_sec(), "congestion_window": after.get() });
            vec![("flowstart:advice_capped", data)]
        }
        Decision::PhaseEntered { phase, trigger } => {
            vec![("flowstart:phase_entered", json!({ "phase": phase, "trigger": trigger }))]
        }
        Decision::StartupExited { reason, cwnd, ssthresh } => {
            let mut data = json!({ "reason": reason.name(), "congestion_window": cwnd.get() });
            // A threshold without end is none.
            if ssthresh < Bytes::MAX {
                data["ssthresh"] = json!(ssthresh.get());
            }
            vec![enter("congestion_avoidance", Some(reason.name())), ("flowstart:startup_exited", data)]
        }
        Decision::WindowReduced { .. } => vec![enter("recovery", None)],
        Decision::ReductionUndone { after, .. } => {
            vec![("flowstart:reduction_undone", json!({ "congestion_window": after.get() }))]
        }
        Decision::WindowValidated { after, ssthresh, .. } => {
            let data = json!({ "congestion_window": after.get(), "ssthresh": ssthresh.get() });
            vec![("flowstart:window_validated", data)]
        }
        Decision::WindowShared { after, .. } => {
            vec![("flowstart:window_shared", json!({ "congestion_window": after.get() }))]
        }
        Decision::Recovered { .. } => vec![enter("congestion_avoidance", None)],
        Decision::Collapsed { .. } => vec![enter("slow_start", Some(collapse))],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::event::ExitReason;

    use super::*;

    #[test]
    fn states_follow_each_other() {
        let mut state = None;
        let launched = Decision::Launched { cwnd: Bytes::new(14_720), pacing_rate: None };
        assert_eq!(decision_events(launched, &[], &mut state, "loss")[1].1, json!({ "new": "startup" }));
        let cwnd = Bytes::new(100_000);
        let exited = Decision::StartupExited { reason: ExitReason::Loss, cwnd, ssthresh: cwnd };
        let expected = json!({ "new": "congestion_avoidance", "old": "startup", "trigger": "loss" });
        let left = json!({ "reason": "loss", "congestion_window": 100_000, "ssthresh": 100_000 });
        let events = [("quic:congestion_state_updated", expected), ("flowstart:startup_exited", left)];
        assert_eq!(decision_events(exited, &[], &mut state, "loss"), events);
    }
}
