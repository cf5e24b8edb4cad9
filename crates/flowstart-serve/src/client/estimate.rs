//! What this host knows of its access link, for the hint to a server: every estimator's statement, and which is hinted.
//!
//! A connection is as fast as the slowest part of its way, so of what the gateway, the Wi-Fi and the modem state, the
//! lowest rate is hinted. Where none of them answers, it is the highest rate that an earlier transfer had in this
//! network; it is no more than what a server happened to send, so it does not contradict the others. The interface's
//! own speed comes last.

use std::net::IpAddr;

use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::sources::{Finding, Sources, Statement, Verdict};
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_quic::hint::BandwidthHint;
use flowstart_sensing::access_network;
use flowstart_sensing::estimator::gateway::{self, GatewayError};
use flowstart_sensing::estimator::lte;
#[cfg(target_os = "linux")]
use flowstart_sensing::estimator::wifi;
use flowstart_sensing::interface;
use flowstart_sensing::path_store::UnixTime;

use super::rates::Rates;

/// The time limit of each question; no source needs more than two of them.
const PATIENCE: Duration = Duration::from_millis(1000);

/// The size of an IP packet, for the share of the air that its frame takes.
#[cfg(target_os = "linux")]
const PACKET: flowstart_core::units::Bytes = flowstart_core::units::Bytes::new(1500);

/// What can be known only from the user.
#[derive(Debug, Default)]
pub struct Told<'a> {
    /// The LTE modem's carriers.
    pub carriers: &'a [lte::Carrier],
    /// The highest rates of networks, and this network's name.
    pub past: Option<(&'a Rates, &'a str)>,
}

/// Who estimates the rate of the access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// The gateway, by UPnP or TR-064.
    Gateway,
    /// The Wi-Fi's modulation.
    Wifi,
    /// The configuration of an LTE modem.
    Lte,
    /// The highest rate of an earlier transfer in this network.
    PastMaximum,
    /// The interface's speed.
    Interface,
}

impl Estimator {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Wifi, Self::Lte, Self::PastMaximum, Self::Interface];

    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Wifi => "wifi",
            Self::Lte => "lte",
            Self::PastMaximum => "past-maximum",
            Self::Interface => "interface",
        }
    }

    /// How far its rate is to be trusted.
    pub const fn accuracy(self) -> &'static str {
        match self {
            Self::Gateway => "the line's bit rate, of which IP packets get a few per cent less",
            Self::Wifi => "an upper end: what the radio carries if no other station sends",
            Self::Lte => "an upper end: what the cell gives if no other phone receives",
            Self::PastMaximum => {
                "what one transfer got; on a mobile network it may be several times too high a minute later"
            }
            Self::Interface => "an upper end: the access behind it may be far slower",
        }
    }

    /// Of which `finding` is.
    pub fn of(finding: &Finding) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == finding.source)
    }
}

/// What an estimator states and its age; otherwise why it states nothing.
type Answer = Result<(Hint, Duration), (Verdict, String)>;

/// What all estimators state of the access towards `server`. One is believed, and `hint` of it is the hint. Blocks for
/// at most a few seconds.
pub fn estimates(server: IpAddr, told: &Told<'_>) -> Sources {
    // A search waits for answers, so the others are asked meanwhile.
    let answers = std::thread::scope(|scope| {
        let gateway = scope.spawn(|| by_gateway(server));
        let (wifi, lte, interface) = (by_wifi(server), by_modem(told.carriers), by_interface(server));
        let failed = || Err((Verdict::Failed, "the question did not end".to_owned()));
        [gateway.join().unwrap_or_else(|_| failed()), wifi, lte, by_past(told.past), interface]
    });
    believed(answers)
}

/// The name of the access network towards `server`.
///
/// # Errors
///
/// Why this host cannot tell it.
pub fn network(server: IpAddr) -> Result<String, String> {
    #[cfg(target_os = "linux")]
    return match access_network::access_network_towards(server) {
        Ok(name) => name.ok_or_else(|| "the way to the server has no gateway".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    #[cfg(not(target_os = "linux"))]
    Err("this host does not tell its network".to_owned())
}

/// The hint that follows from the estimates, before it is rounded.
pub fn hint(estimates: &Sources) -> Option<BandwidthHint> {
    let Hint { bandwidth, technology } = estimates.knowledge().hint?;
    let believed = |one: &&Finding| one.verdict == Verdict::Believed;
    let age = estimates.findings().iter().find(believed).and_then(|one| one.age).unwrap_or_default();
    Some(BandwidthHint { rate: bandwidth, technology, age })
}

/// Believes one of the answers of [`Estimator::ALL`].
fn believed(answers: [Answer; Estimator::ALL.len()]) -> Sources {
    let all =
        || Estimator::ALL.into_iter().zip(&answers).filter_map(|(one, answer)| Some((one, answer.as_ref().ok()?)));
    let is_of_link = |one| matches!(one, Estimator::Gateway | Estimator::Wifi | Estimator::Lte);
    let lowest = all().filter(|(one, _)| is_of_link(*one)).min_by_key(|(_, (hint, _))| hint.bandwidth);
    let best = lowest.or_else(|| all().next()).map(|(one, _)| one);
    let mut sources = Sources::default();
    for (one, answer) in Estimator::ALL.into_iter().zip(answers) {
        match answer {
            Ok((hint, age)) if best == Some(one) => {
                sources.state(one.name(), Statement::Hint(hint), Some(age), Some(Statement::Hint(hint)), "");
            }
            Ok((hint, age)) => sources.supersede(one.name(), Statement::Hint(hint), Some(age)),
            Err((verdict, reason)) => sources.lack(one.name(), verdict, &reason),
        }
    }
    sources
}

/// A statement of now.
fn now(bandwidth: Rate, technology: AccessTechnology) -> Answer {
    Ok((Hint { bandwidth, technology }, Duration::ZERO))
}

fn missing(reason: &str) -> Answer {
    Err((Verdict::Missing, reason.to_owned()))
}

fn failed(reason: &dyn std::fmt::Display) -> Answer {
    Err((Verdict::Failed, reason.to_string()))
}

/// Neither a gateway nor a radio is on the way from this host to itself.
const OWN_HOST: &str = "the server is on this host";

fn by_gateway(server: IpAddr) -> Answer {
    if server.is_loopback() {
        return missing(OWN_HOST);
    }
    match gateway::link_properties(&gateway::Config { search_bound: PATIENCE, question_bound: PATIENCE }) {
        Ok(link) => match link.hint() {
            Some(hint) => Ok((hint, Duration::ZERO)),
            None => missing("the gateway does not know the rate of its link, or the link is down"),
        },
        Err(error @ GatewayError::None(_)) => Err((Verdict::Missing, error.to_string())),
        Err(error) => failed(&error),
    }
}

#[cfg(target_os = "linux")]
fn by_wifi(server: IpAddr) -> Answer {
    let name = match interface::interface_towards(server) {
        Ok(Some(name)) => name,
        Ok(None) => return missing(OWN_HOST),
        Err(error) => return failed(&error),
    };
    let station = match wifi::station(&name, PATIENCE) {
        Ok(Some(station)) => station,
        Ok(None) => return missing(&format!("{name} is no Wi-Fi that is connected")),
        Err(error) => return failed(&error),
    };
    let modulation = station.receive.and_then(|modulation| Some((modulation.phy_rate()?, modulation.generation)));
    let Some((rate, generation)) = modulation else { return missing(&format!("{name} does not tell its modulation")) };
    now(wifi::ip_rate(rate, generation, PACKET), AccessTechnology::Wifi)
}

#[cfg(not(target_os = "linux"))]
fn by_wifi(_: IpAddr) -> Answer {
    missing("this host does not tell it")
}

fn by_modem(carriers: &[lte::Carrier]) -> Answer {
    if carriers.is_empty() {
        return missing("no modem's configuration is given");
    }
    match lte::ip_rate(carriers, &lte::Overheads::default()) {
        Ok(rate) => now(rate, AccessTechnology::Lte),
        Err(error) => failed(&error),
    }
}

fn by_past(past: Option<(&Rates, &str)>) -> Answer {
    let Some((rates, network)) = past else { return missing("no rates of this network are kept") };
    match rates.highest(network, UnixTime::now()) {
        Some((bandwidth, age)) => Ok((Hint { bandwidth, technology: AccessTechnology::Unknown }, age)),
        None => missing("no transfer has shown it yet"),
    }
}

#[cfg(target_os = "linux")]
fn by_interface(server: IpAddr) -> Answer {
    match interface::Config::default().speed_towards(server) {
        Ok(Some(speed)) => now(speed, AccessTechnology::Unknown),
        Ok(None) => missing("its speed is not known"),
        Err(error) => failed(&error),
    }
}

#[cfg(not(target_os = "linux"))]
fn by_interface(_: IpAddr) -> Answer {
    missing("this host does not tell it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mbit: u64, technology: AccessTechnology) -> Answer {
        now(Rate::from_mbit(mbit), technology)
    }

    fn none() -> Answer {
        missing("")
    }

    fn past(mbit: u64, seconds: f64) -> Answer {
        let hint = Hint { bandwidth: Rate::from_mbit(mbit), technology: AccessTechnology::Unknown };
        Ok((hint, Duration::from_secs(seconds)))
    }

    fn chosen(answers: [Answer; 5]) -> (Option<BandwidthHint>, Vec<Verdict>) {
        let sources = believed(answers);
        (hint(&sources), sources.findings().iter().map(|one| one.verdict).collect())
    }

    #[test]
    fn the_slowest_part_of_the_way_is_hinted() {
        use AccessTechnology::{Dsl, Unknown, Wifi};
        let (hint, verdicts) = chosen([told(50, Dsl), told(30, Wifi), none(), past(20, 60.0), told(1000, Unknown)]);
        let expected = BandwidthHint { rate: Rate::from_mbit(30), technology: Wifi, age: Duration::ZERO };
        assert_eq!(hint, Some(expected));
        let superseded = Verdict::Superseded;
        assert_eq!(verdicts, [superseded, Verdict::Believed, Verdict::Missing, superseded, superseded]);
    }

    #[test]
    fn without_the_link_the_past_counts_and_then_the_interface() {
        let (hint, _) = chosen([none(), none(), none(), past(20, 60.0), told(1000, AccessTechnology::Unknown)]);
        assert_eq!(hint.map(|hint| (hint.rate, hint.age)), Some((Rate::from_mbit(20), Duration::from_secs(60.0))));
        let (hint, _) = chosen([none(), none(), none(), none(), told(1000, AccessTechnology::Unknown)]);
        assert_eq!(hint.map(|hint| hint.rate), Some(Rate::from_mbit(1000)));
        let (hint, verdicts) = chosen([none(), failed(&"x"), none(), none(), none()]);
        assert_eq!((hint, verdicts[1]), (None, Verdict::Failed));
    }

    #[test]
    fn towards_this_host_nothing_is_known_at_once() {
        let sources = estimates(std::net::Ipv4Addr::LOCALHOST.into(), &Told::default());
        assert_eq!(sources.findings().len(), Estimator::ALL.len());
        assert!(sources.findings().iter().all(|one| one.verdict == Verdict::Missing && Estimator::of(one).is_some()));
        assert_eq!(hint(&sources), None);
    }

    #[test]
    fn the_modem_and_the_past_are_what_the_user_gives() {
        let carriers = [lte::Carrier { bandwidth: lte::Bandwidth::Mhz10, mcs: 20, layers: 2 }];
        let folder = tempfile::tempdir().unwrap();
        let mut rates = Rates::read(&folder.path().join("rates")).unwrap();
        rates.observe("home", Rate::from_mbit(90), UnixTime::now());
        let told = Told { carriers: &carriers, past: Some((&rates, "home")) };
        let sources = estimates(std::net::Ipv4Addr::LOCALHOST.into(), &told);
        assert_eq!(hint(&sources).map(|hint| hint.rate), Some(Rate::from_bits_per_sec(35_547_768)));
        assert_eq!(sources.findings()[3].verdict, Verdict::Superseded);
    }
}
