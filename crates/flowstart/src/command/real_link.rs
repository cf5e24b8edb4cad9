//! A link of the lab for real packets, with the queue discipline that it gets.

use std::path::Path;

use flowstart_lab::spec::aqm::Aqm;
use flowstart_lab::spec::link::{Link, Told};

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
    let of_hosts = [
        ("hint", link.hint.is_some()),
        ("hint_steps", link.hint_grid.is_some()),
        ("saved", link.saved != Told::Truth),
        ("oracle", link.oracle != Told::Truth),
    ];
    let of_hosts = of_hosts.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key);
    if let Some(key) = link.key_without_sockets().or(of_hosts) {
        let allowed = if key == "access_rate" { "; access_rate=10gbit leaves it out" } else { "" };
        return Err(Failure::Input(format!("--link `{text}`: a {whose} has no {key}{allowed}")));
    }
    Ok((link, aqm))
}
