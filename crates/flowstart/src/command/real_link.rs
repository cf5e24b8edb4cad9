//! A link of the lab for real packets, with the queue discipline that it gets.

use std::path::Path;

use flowstart_core::time::Duration;
use flowstart_lab::spec::aqm::Aqm;
use flowstart_lab::spec::link::{ACCESS_RATE, Link};

use crate::failure::Failure;

/// Reads both, with further `keys` of the link, and refuses what only the simulator's hosts and routers have. `whose`
/// is who will have the link.
pub(super) fn real_link(whose: &str, link: &str, keys: Option<&str>, aqm: &str) -> Result<(Link, Aqm), Failure> {
    let text = link;
    let link = Link::parse_with("--link", text, keys, false, Path::new("."));
    let link = link.map_err(|error| Failure::Input(error.to_string()))?;
    let aqm = Aqm::parse("--aqm", aqm).map_err(|error| Failure::Input(error.to_string()))?.value;
    if aqm == Aqm::Oracle {
        return Err(Failure::Input("--aqm oracle: only a simulator knows every window".into()));
    }
    let of_routers = link.routers.and_then(|routers| routers.key_without_sockets());
    let elsewhere = [
        ("access_rate", link.access_rate < ACCESS_RATE),
        ("access_delay", link.access_delay > Duration::ZERO),
        ("access_jitter", link.access_jitter.is_some()),
        ("hops", link.hops > 1),
        ("hint", link.hint.is_some()),
        ("hint_steps", link.hint_grid.is_some()),
        ("xcp", link.xcp),
        ("pep", link.proxy.is_some()),
        ("trace_start", link.trace_start_varies),
    ];
    let elsewhere = elsewhere.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key);
    if let Some(key) = elsewhere.or(of_routers) {
        let allowed = if key == "access_rate" { "; access_rate=10gbit leaves it out" } else { "" };
        return Err(Failure::Input(format!("--link `{text}`: a {whose} has no {key}{allowed}")));
    }
    Ok((link, aqm))
}
