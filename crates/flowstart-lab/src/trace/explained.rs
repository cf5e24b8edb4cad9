//! A run with the causes of its delay and what was known of its path, in words and for other programs.

use flowstart_core::sources::{Finding, Statement, Verdict};
use flowstart_quic::qlog::source;
use flowstart_report::Cause;
use serde_json::{Map, Value, json};

use super::explain::Explanation;
use super::observe::{self, MOST_FLOWS, Shown, Watched};
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
    /// What sources had stated of the path at the launch.
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
        Ok(Self {
            cell,
            rep,
            explanation: seen.explanations.into_iter().nth(flow as usize).flatten(),
            sources: seen.sources.into_iter().nth(flow as usize).unwrap_or_default(),
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
        Statement::Saved(saved) => format!("a window of {} bytes in {}", saved.cwnd.get(), saved.rtt),
        other => other.rate().map_or_else(String::new, |rate| rate.to_string()),
    };
    let used = sources.iter().filter(|one| one.verdict == Verdict::Used);
    let named = |one: &Finding| Some(format!("{} ({})", one.source, said(one.believed.as_ref()?)));
    let used: Vec<String> = used.filter_map(named).collect();
    if used.is_empty() { String::new() } else { format!(" Its launch depends on {}.", used.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    /// What sources had stated at the launch of the last of these flows, and what is believed of it in kbit/s.
    fn sources(link: &str, scheme: &str, transport: &str, flows: u32) -> Vec<(&'static str, Verdict, Option<u64>)> {
        let text = format!(
            "link = ['{link}']\nsize = ['300KB']\nscheme = ['{scheme}']\ntransport = '{transport}'\n\
             flows = {flows}\nreps = 1"
        );
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let explained = Explained::of(&plan, plan.cells()[0], 0, flows - 1).unwrap();
        let kbit = |one: &Finding| Some(one.believed?.rate()?.bits_per_sec() / 1000);
        explained.sources.iter().map(|one| (one.source, one.verdict, kbit(one))).collect()
    }

    /// What became of one of them.
    fn source(of: &str, link: &str, scheme: &str, transport: &str, flows: u32) -> Option<(Verdict, Option<u64>)> {
        let stated = sources(link, scheme, transport, flows);
        stated.into_iter().find(|one| one.0 == of).map(|(_, verdict, kbit)| (verdict, kbit))
    }

    /// The model of QUIC, and the stack where it is built.
    const TRANSPORTS: &[&str] = if cfg!(feature = "quic") { &["model-quic", "quic"] } else { &["model-quic"] };
    const PATH: &str = "rate=10mbit,rtt=80ms,buffer=150pkt";

    #[test]
    fn a_launch_depends_on_what_its_scheme_senses() {
        for (scheme, used) in [
            ("slow-start", &[][..]),
            // The RTT of an earlier connection is shorter than that of the handshake.
            ("blitzstart", &["path-store", "hint"]),
            ("careful-resume", &["path-store"]),
            // The client's hint comes before the others.
            ("more-start", &["hint"]),
        ] {
            for transport in TRANSPORTS {
                let stated = sources("lte,hint=20mbit", scheme, transport, 1);
                let asked: Vec<_> = stated.iter().map(|one| one.0).take(4).collect();
                assert_eq!(asked, ["path-store", "interface", "oracle", "hint"], "{transport}");
                let is_used = |one: &&(&str, Verdict, _)| one.1 == Verdict::Used;
                let found: Vec<_> = stated.iter().filter(is_used).map(|one| one.0).collect();
                assert_eq!(found, used, "{transport} {scheme}");
            }
        }
    }

    #[test]
    fn what_the_connection_has_shown_is_among_the_sources() {
        let scheme = "quick-start:request=fixed,rate=10mbit";
        for transport in TRANSPORTS {
            let approval = |link: &str| source("quick-start", link, scheme, transport, 1);
            // 90 % of 10 Mbit/s are 9, which the code of the option rounds down.
            let asked = approval(&format!("{PATH},quick_start=target"));
            assert_eq!(asked, Some((Verdict::Used, Some(5120))), "{transport}");
            assert_eq!(approval(PATH), Some((Verdict::Missing, None)), "{transport}");
        }
    }

    #[test]
    fn advice_counts_where_it_caps_a_launch() {
        for transport in TRANSPORTS {
            let advice = |factor: &str, scheme: &str| {
                let (link, transport) = (format!("{PATH},scone={factor}"), format!("{transport}:scone=handshake"));
                source("scone", &link, scheme, &transport, 1).map(|(verdict, _)| verdict)
            };
            assert_eq!(advice("0.5", "slow-start"), Some(Verdict::Unused), "{transport}");
            assert_eq!(advice("0.5", "blitzstart"), Some(Verdict::Used), "{transport}");
            assert_eq!(advice("2", "blitzstart"), Some(Verdict::Unused), "{transport}");
        }
    }

    #[test]
    fn a_share_of_concurrent_connections_is_among_the_sources() {
        for transport in TRANSPORTS {
            let share = |scheme: &str| source("concurrent-connections", PATH, scheme, transport, 2).map(|one| one.0);
            assert_eq!(share("ensemble-sharing"), Some(Verdict::Used), "{transport}");
            assert_eq!(share("slow-start"), None, "{transport}");
        }
    }

    #[cfg(feature = "quic")]
    #[test]
    fn a_hint_counts_as_far_as_the_servers_policy_goes() {
        for (policy, verdict, believed) in [
            ("accept", Verdict::Used, Some(10_000)),
            ("ignore", Verdict::Refused, None),
            ("cap:rate=4mbit", Verdict::Used, Some(4000)),
        ] {
            let transport = format!("quic:hint_policy={policy}");
            let hint = source("hint", "lte,hint=10mbit", "blitzstart", &transport, 1);
            assert_eq!(hint, Some((verdict, believed)), "{policy}");
        }
    }
}
