//! Controllers' decisions as events of a qlog file.
//!
//! Simulated flows and a server's connections use the same events.

use flowstart_core::event::Decision;
use serde_json::{Value, json};

/// A decision of a controller as qlog events: names and data.
///
/// `state` is the state of congestion control, which the decision may change. `collapse` is the cause of a window's
/// collapse on this transport.
pub fn decision_events(
    decision: Decision,
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
            let mut data = json!({ "congestion_window": cwnd.get() });
            if let Some(rate) = pacing_rate {
                data["pacing_rate"] = json!(rate.bits_per_sec());
            }
            vec![("flowstart:launched", data), enter("startup", None)]
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
        Decision::StartupExited { reason, .. } => vec![enter("congestion_avoidance", Some(reason.name()))],
        Decision::WindowReduced { .. } => vec![enter("recovery", None)],
        Decision::ReductionUndone { after, .. } => {
            vec![("flowstart:reduction_undone", json!({ "congestion_window": after.get() }))]
        }
        Decision::WindowValidated { after, ssthresh, .. } => {
            let data = json!({ "congestion_window": after.get(), "ssthresh": ssthresh.get() });
            vec![("flowstart:window_validated", data)]
        }
        Decision::Recovered { .. } => vec![enter("congestion_avoidance", None)],
        Decision::Collapsed { .. } => vec![enter("slow_start", Some(collapse))],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::event::ExitReason;
    use flowstart_core::units::Bytes;

    use super::*;

    #[test]
    fn states_follow_each_other() {
        let mut state = None;
        let launched = Decision::Launched { cwnd: Bytes::new(14_720), pacing_rate: None };
        assert_eq!(decision_events(launched, &mut state, "loss")[1].1, json!({ "new": "startup" }));
        let cwnd = Bytes::new(100_000);
        let exited = Decision::StartupExited { reason: ExitReason::Loss, cwnd, ssthresh: cwnd };
        let expected = json!({ "new": "congestion_avoidance", "old": "startup", "trigger": "loss" });
        assert_eq!(decision_events(exited, &mut state, "loss"), [("quic:congestion_state_updated", expected)]);
    }
}
