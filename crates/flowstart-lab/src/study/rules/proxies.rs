//! Experiments in which a proxy may split connections.

use flowstart_sim::transport::policy::{Opening, Protocol};

use crate::spec::InputError;
use crate::study::plan::Plan;

/// A proxy splits TCP connections that carry a transfer each. It cannot split QUIC, which encrypts what it would have
/// to read and write (RFC 3135, section 4.1.1, on encryption below the transport).
pub(in crate::study) fn check(plan: &Plan) -> Result<(), InputError> {
    let moved = plan.moves.iter().filter_map(|mobility| Some((&mobility.text, &mobility.value.as_ref()?.link)));
    if let Some((text, _)) = moved.clone().find(|(_, link)| link.proxy.is_some()) {
        return Err(InputError::new("move", text, "pep is for the link of a flow's start; allowed is none here"));
    }
    let Some(link) = plan.links.iter().find(|link| link.proxy.is_some()) else { return Ok(()) };
    let beside = |field: &str, text: &str, allowed: &str| {
        Err(InputError::new(field, text, format!("with pep on link {} allowed is {allowed}", link.text)))
    };
    for transport in &plan.transports {
        if transport.stack.is_some() || transport.profile.protocol != Protocol::Tcp {
            return beside("transport", &transport.text, "model-tcp; QUIC is encrypted, and no proxy can split it");
        }
        if transport.profile.opening != Opening::Request {
            return beside("transport", &transport.text, "opening=request");
        }
    }
    if let Some(size) = plan.sizes.iter().find(|size| size.value.smallest().is_none()) {
        return beside("application", &size.text, "transfer");
    }
    if let Some((scheme, _)) =
        plan.schemes.iter().zip(&plan.scheme_connections).find(|(_, connections)| **connections > 1)
    {
        return beside("scheme", &scheme.text, "one connection for each transfer");
    }
    match moved.map(|(text, _)| text).next() {
        Some(text) => beside("move", text, "none"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::study::scenario::Scenario;

    fn refusal(link: &str, scheme: &str, transport: &str, more: &str) -> String {
        let text =
            format!("link = [\"geo\", \"geo,{link}\"]\nscheme = [\"{scheme}\"]\ntransport = \"{transport}\"\n{more}");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new("."));
        plan.map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn proxies_are_for_transfers_over_tcp() {
        let size = "size = [\"2MB\"]\n";
        for link in ["pep=integrated", "pep=distributed,pep_rtt=599ms", "pep=integrated,hops=2"] {
            assert_eq!(refusal(link, "slow-start", "model-tcp", size), "", "{link}");
        }
        let pep = "pep=integrated";
        for (link, scheme, transport, more, expected) in [
            (pep, "slow-start", "model-quic", size, "QUIC is encrypted"),
            (pep, "slow-start", "model-tcp:opening=sender", size, "opening=request"),
            (pep, "slow-start:connections=2", "model-tcp", size, "one connection"),
            (pep, "slow-start", "model-tcp", "application = [\"page:objects=2,size=1KB,waves=2\"]\n", "transfer"),
            (pep, "slow-start", "model-tcp", "size = [\"2MB\"]\nmove = [\"lte,at=1s\"]\n", "none"),
            ("hops=1", "slow-start", "model-tcp", "size = [\"2MB\"]\nmove = [\"geo,pep=integrated,at=1s\"]\n", "pep"),
            ("pep=on", "slow-start", "model-tcp", size, "integrated"),
            ("pep_rtt=30ms", "slow-start", "model-tcp", size, "is for a link with pep"),
            ("pep=integrated,pep_rtt=600ms", "slow-start", "model-tcp", size, "less than 600ms"),
            ("pep=integrated,pep_rtt=0ms", "slow-start", "model-tcp", size, "1us"),
            ("pep=integrated,quick_start=target", "slow-start", "model-tcp", size, "not allowed beside it"),
            ("pep=integrated,hops=2,cross=2", "slow-start", "model-tcp", size, "not allowed beside it"),
        ] {
            let refusal = refusal(link, scheme, transport, more);
            assert!(refusal.contains(expected), "{link} {scheme} {transport}: {refusal}");
        }
        #[cfg(feature = "quic")]
        assert!(refusal(pep, "slow-start", "quic", size).contains("QUIC is encrypted"));
    }
}
