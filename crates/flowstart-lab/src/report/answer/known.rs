//! What schemes start from.

use super::words::MOST_NAMED;
use crate::spec::link::Link;
use crate::study::plan::Plan;

/// What a scheme senses that starts as if it knew nothing.
const NOTHING: &str = "nothing";

/// What each scheme that is compared starts from, and how true that is in these runs; `None` if no scheme senses
/// anything, or if they are too many for a sentence.
pub(super) fn known(plan: &Plan) -> Option<String> {
    if plan.schemes.len() > MOST_NAMED {
        return None;
    }
    let of = |(place, text): (usize, &str)| {
        let (sensed, _) = plan.schemes[place].first().phases().split_once(';')?;
        (sensed != NOTHING).then(|| format!("{text} {sensed}"))
    };
    let texts = plan.schemes.iter().map(|scheme| scheme.text.as_str());
    let parts: Vec<String> = texts.enumerate().filter_map(of).collect();
    let is_hinted = |link: &Link| link.hint.is_some() || link.hint_grid.is_some();
    let rates = match (plan.hint, plan.links.iter().any(is_hinted)) {
        (false, _) => "There are no hints; rates that are known",
        (true, true) => "Hints are those of the links' options; other rates that are known",
        (true, false) => "Rates that are known",
    };
    let known = format!("{rates} are the link's, and earlier connections had it for themselves.");
    (!parts.is_empty()).then(|| format!("What they start from: {}. {known}", parts.join("; ")))
}
