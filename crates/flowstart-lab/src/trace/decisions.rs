//! The decisions of controllers, in words.

use flowstart_core::event::Decision;
use flowstart_core::units::Rate;
use flowstart_report as report;

/// A client's hint in words.
pub fn describe_hint(told: Option<Rate>, used: Option<Rate>) -> String {
    match (told, used) {
        (None, _) => "the client sends a hint that cannot be read".into(),
        (Some(told), None) => format!("the client hints {told}; the policy uses none of it"),
        (Some(told), Some(used)) if told == used => format!("the client hints {told}"),
        (Some(told), Some(used)) => format!("the client hints {told}; the policy lets {used} be used"),
    }
}

/// A decision in words.
pub fn describe(decision: &Decision) -> (report::TraceEventKind, String) {
    use report::TraceEventKind as Kind;
    match decision {
        Decision::Launched { cwnd, pacing_rate } => {
            let pacing = pacing_rate.map_or(String::new(), |rate| format!("; paced at {:.1} Mbit/s", rate.as_mbit()));
            (Kind::Launch, format!("cwnd {} bytes{pacing}", cwnd.get()))
        }
        Decision::HintCapped { hinted, used } => {
            (Kind::Capped, format!("the hint of {hinted} is outside the bounds; {used} is used"))
        }
        Decision::AdviceCapped { advised, before, after } => {
            let capped = match after < before {
                true => format!("the window of the launch is capped from {} to {} bytes", before.get(), after.get()),
                false => "the rate of the launch is capped".to_owned(),
            };
            (Kind::Capped, format!("{advised} is advised: {capped}"))
        }
        Decision::PhaseEntered { phase, trigger } => (Kind::Other, format!("{phase} ({trigger})")),
        Decision::StartupExited { reason, cwnd, ssthresh } => {
            (Kind::Exit, format!("startup ends ({reason}): cwnd {} and ssthresh {} bytes", cwnd.get(), ssthresh.get()))
        }
        Decision::WindowReduced { before, after } => {
            (Kind::Loss, format!("cwnd from {} to {} bytes", before.get(), after.get()))
        }
        Decision::ReductionUndone { before, after } => {
            (Kind::Other, format!("losses were spurious: cwnd {} to {} bytes", before.get(), after.get()))
        }
        Decision::WindowValidated { before, after, .. } => {
            (Kind::Other, format!("window validation: cwnd {} to {} bytes", before.get(), after.get()))
        }
        Decision::WindowShared { before, after } => {
            (Kind::Other, format!("shared with other connections: cwnd {} to {} bytes", before.get(), after.get()))
        }
        Decision::Recovered { cwnd } => (Kind::Other, format!("recovery ends: cwnd {} bytes", cwnd.get())),
        Decision::Collapsed { before, ssthresh } => {
            (Kind::Rto, format!("cwnd of {} bytes collapses; ssthresh {} bytes", before.get(), ssthresh.get()))
        }
        // A decision that this lab does not know yet.
        _ => (Kind::Other, format!("{decision:?}")),
    }
}
