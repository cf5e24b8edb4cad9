//! Proxies at satellite gateways, which split TCP connections, as keys of a link: `geo,pep=integrated,pep_rtt=30ms`.

use flowstart_core::time::Duration;

use super::super::form::Key;
use super::super::{InputError, Spec};
use super::Link;

/// The keys.
pub(super) const KEYS: &[Key<Link>] = &[
    Key::new("pep", "integrated or distributed", "a proxy that splits TCP connections", "none")
        .such_as("rtt=600ms,pep=integrated")
        .only_simulated(|link| link.proxy.is_some()),
    Key::new("pep_rtt", "1us to less than rtt", "the part of the RTT between servers and the proxy", "30ms")
        .such_as("rtt=600ms,pep=distributed,pep_rtt=50ms"),
];

/// The part of the RTT between a server and the gateway unless it is given: a continent's. Assumed.
const SERVER_RTT: Duration = Duration::from_millis(30);

/// Where a proxy is (RFC 3135, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// One box at the gateway: the client's handshake crosses the satellite.
    Integrated,
    /// A box at each end of the satellite hop: the client's handshake ends at the near one, and its request crosses the
    /// hop at once.
    Distributed,
}

/// A performance enhancing proxy that splits connections (RFC 3135, section 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is.
    pub distribution: Distribution,
    /// The part of the link's RTT between servers and the gateway.
    pub rtt: Duration,
}

/// Reads the proxy of a link with this RTT.
pub(super) fn read(spec: &mut Spec<'_>, rtt: Option<Duration>) -> Result<Option<Proxy>, InputError> {
    let named = [("integrated", Distribution::Integrated), ("distributed", Distribution::Distributed)];
    let distribution = spec.one_of("pep", &named)?;
    let part: Option<Duration> = spec.read("pep_rtt")?;
    let Some(distribution) = distribution else {
        return match part {
            Some(_) => Err(spec.refused_value("pep_rtt", "is for a link with pep=integrated or pep=distributed")),
            None => Ok(None),
        };
    };
    let given = part.is_some();
    let part = part.unwrap_or(SERVER_RTT);
    let whole = rtt.unwrap_or(Duration::ZERO);
    if part < Duration::from_micros(1) || (part >= whole && rtt.is_some()) {
        let allowed = format_args!("allowed is 1us to less than {whole}, the link's RTT");
        return Err(match given {
            true => spec.refused_value("pep_rtt", format_args!("is {part}; {allowed}")),
            false => spec.refused_value("pep_rtt", format_args!("must be given, its default is {part}; {allowed}")),
        });
    }
    Ok(Some(Proxy { distribution, rtt: part }))
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let distribution = match self.distribution {
            Distribution::Integrated => "integrated",
            Distribution::Distributed => "distributed",
        };
        write!(f, "{distribution}, {} from the server", self.rtt)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Link;

    #[test]
    fn a_refused_default_is_told_from_a_refused_value() {
        let refusal = |keys: &str| {
            let text = format!("rate=1mbit,rtt=20ms,pep=integrated{keys}");
            Link::parse("--link", &text, Path::new(".")).unwrap_err().problem
        };
        let allowed = "allowed is 1us to less than 20ms, the link's RTT";
        assert_eq!(refusal(""), format!("pep_rtt: must be given, its default is 30ms; {allowed}"));
        assert_eq!(refusal(",pep_rtt=30ms"), format!("pep_rtt `30ms`: is 30ms; {allowed}"));
    }
}
