//! Hints: what is known of the paths to destinations.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use ipnet::IpNet;

/// Bytes of a destination: those of an IPv6 address.
pub const ADDRESS: usize = 16;

/// What is known of the paths to all addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The destinations.
    pub destinations: IpNet,
    /// The bandwidth of the paths to them.
    pub rate: Rate,
    /// The smallest RTT that earlier connections saw.
    pub rtt: Option<Duration>,
    /// How old this knowledge is.
    pub age: Duration,
    /// The age from which on it is not used; `None`: it always is.
    pub lifetime: Option<Duration>,
}

impl Hint {
    /// Rates that a hint may have.
    pub const RATES: RangeInclusive<Rate> = Rate::from_bits_per_sec(1000)..=Rate::from_mbit(10_000_000);
    /// RTTs that a hint may have.
    pub const RTTS: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_millis(10_000);

    /// Whether it is not used any more.
    pub fn has_expired(&self) -> bool {
        self.lifetime.is_some_and(|lifetime| lifetime <= self.age)
    }
}

/// Why a hint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct HintError {
    text: String,
    problem: String,
}

/// How hints are written.
pub const FORM: &str = "PREFIX=RATE or PREFIX=RATE,RTT, such as 192.0.2.0/24=25mbit,40ms";

impl FromStr for Hint {
    type Err = HintError;

    fn from_str(text: &str) -> Result<Self, HintError> {
        let refused = |problem: String| HintError { text: text.to_owned(), problem };
        let (network, known) = text.split_once('=').ok_or_else(|| refused(format!("use {FORM}")))?;
        let destinations = match (network.parse::<IpNet>(), network.parse::<IpAddr>()) {
            (Ok(network), _) => network.trunc(),
            (_, Ok(address)) => address.into(),
            _ => return Err(refused(format!("`{network}` is no address and no network; use {FORM}"))),
        };
        let (rate, rtt) = known.split_once(',').map_or((known, None), |(rate, rtt)| (rate, Some(rtt)));
        let rate: Rate = rate.parse().map_err(|error| refused(format!("{error}")))?;
        if !Self::RATES.contains(&rate) {
            return Err(refused(format!("{rate}: allowed is 1kbit to 10000gbit")));
        }
        let rtt = rtt.map(str::parse::<Duration>).transpose().map_err(|error| refused(format!("{error}")))?;
        if rtt.is_some_and(|rtt| !Self::RTTS.contains(&rtt)) {
            return Err(refused("an RTT is 1us to 10s".into()));
        }
        Ok(Self { destinations, rate, rtt, age: Duration::ZERO, lifetime: None })
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.destinations, self.rate)?;
        self.rtt.map_or(Ok(()), |rtt| write!(f, ",{rtt}"))
    }
}

/// A network as the programs look for it: its prefix's length and its first address, with those of IPv4 mapped into
/// IPv6.
pub fn as_ipv6(network: IpNet) -> (u32, [u8; ADDRESS]) {
    match network {
        IpNet::V4(network) => (96 + u32::from(network.prefix_len()), network.network().to_ipv6_mapped().octets()),
        IpNet::V6(network) => (network.prefix_len().into(), network.network().octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_network_a_rate_and_perhaps_an_rtt() {
        let hint: Hint = "192.0.2.7/24=25mbit,40ms".parse().unwrap();
        assert_eq!((hint.rate, hint.rtt), (Rate::from_mbit(25), Some(Duration::from_millis(40))));
        assert_eq!(hint.to_string(), "192.0.2.0/24=25mbit,40ms");
        let (length, address) = as_ipv6(hint.destinations);
        assert_eq!((length, &address[10..]), (120, &[0xff, 0xff, 192, 0, 2, 0][..]));
        let hint: Hint = "2001:db8::/32=1gbit".parse().unwrap();
        assert_eq!((as_ipv6(hint.destinations).0, hint.rtt), (32, None));
        assert_eq!("2001:db8::1=1gbit".parse().map(|hint: Hint| as_ipv6(hint.destinations).0), Ok(128));
    }

    #[test]
    fn what_cannot_be_a_hint_is_refused() {
        for (text, told) in [
            ("192.0.2.0/24", "use PREFIX=RATE"),
            ("192.0.2.0/33=1mbit", "is no address and no network"),
            ("example.org=1mbit", "is no address and no network"),
            ("192.0.2.1=fast", "a rate such as"),
            ("192.0.2.1=1bit", "allowed is 1kbit to 10000gbit"),
            ("192.0.2.1=1mbit,0ms", "1us to 10s"),
            ("192.0.2.1=1mbit,11s", "1us to 10s"),
        ] {
            let refused = text.parse::<Hint>().unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
