//! What schemes start from.

use super::words::listed;
use crate::spec::link::{Link, Told};
use crate::study::per_transport::PerTransport;
use crate::study::plan::Plan;

/// What a scheme senses that starts as if it knew nothing.
const NOTHING: &str = "nothing";

/// What each kind of scheme starts from, and how true that is in these runs; `None` if no scheme senses anything.
pub(super) fn known(plan: &Plan) -> Option<String> {
    let mut parts: Vec<(Vec<String>, &'static str)> = Vec::new();
    for scheme in plan.schemes.iter().map(PerTransport::first) {
        let Some((sensed, _)) = scheme.phases().split_once(';').filter(|(sensed, _)| *sensed != NOTHING) else {
            continue;
        };
        let name = scheme.name().to_owned();
        match parts.iter_mut().find(|(_, known)| *known == sensed) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => parts.push((vec![name], sensed)),
        }
    }
    if parts.is_empty() {
        return None;
    }
    let parts: Vec<String> = parts.into_iter().map(|(names, sensed)| format!("{} {sensed}", listed(&names))).collect();
    let is_hinted = |link: &Link| link.hint.is_some() || link.hint_grid.is_some();
    let is_stated = |link: &Link| link.saved != Told::Truth || link.oracle != Told::Truth;
    if plan.unknown {
        return Some("Nothing is known of paths before their handshakes.".to_owned());
    }
    let rates = match (plan.hint, plan.links.iter().any(is_hinted), plan.links.iter().any(is_stated)) {
        (_, _, true) => "Hints, saved paths and oracles say what the links' options say; other rates that are known",
        (false, ..) => "There are no hints; rates that are known",
        (true, true, _) => "Hints are those of the links' options; other rates that are known",
        (true, false, _) => "Rates that are known",
    };
    let is_varied = |link: &Link| link.trace.is_some() || link.varies.rate.is_some() || link.varies.delay.is_some();
    let whose = if plan.links.iter().any(is_varied) { "the means of the link" } else { "the link's" };
    let known = format!("{rates} are {whose}, and earlier connections were alone on it and kept a window of its BDP.");
    Some(format!("What they start from: {}. {known}", parts.join("; ")))
}
