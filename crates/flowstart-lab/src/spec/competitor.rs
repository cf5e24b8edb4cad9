//! Competitors: what else uses the link.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::arrivals::Sizes;
use flowstart_sim::traffic::media::{Media, Playout};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::requests::Requests;

use super::arrival::LONGEST_GAP;
use super::size::{DISTRIBUTION_KEYS, TransferSize, distributed};
use super::{InputError, Parts, Written, host_avoidance, host_scheme, scheme};

/// What else uses the link.
#[derive(Clone, Debug, PartialEq)]
pub enum Competitor {
    /// Nothing.
    None,
    /// Established bulk flows.
    Bulk {
        /// Their number.
        count: u32,
        /// Their startup scheme.
        startup: StartupConfig,
        /// Their congestion avoidance.
        avoidance: AvoidanceConfig,
    },
    /// Traffic without congestion control, or an application that is limited by itself.
    Pattern {
        /// Number of flows.
        count: u32,
        /// What each does.
        pattern: Pattern,
    },
    /// Ordinary transfers that start within an RTT of the first measured flow, or one after the other from its start on.
    Short {
        /// Their number.
        count: u32,
        /// Payload of each.
        size: Bytes,
        /// Time between the starts of two of them; absent: within an RTT.
        every: Option<Duration>,
        /// Their startup scheme.
        startup: StartupConfig,
        /// Their congestion avoidance.
        avoidance: AvoidanceConfig,
    },
    /// Short flows that come and go.
    Web {
        /// Offered load.
        load: Rate,
        /// Their sizes.
        sizes: Sizes,
        /// Their startup scheme; `None`: the transport's.
        startup: Option<StartupConfig>,
        /// Rate of their receivers' own link; `None`: that of all hosts.
        receiver_rate: Option<Rate>,
    },
    /// Requests of Quick-Start without connections.
    Requests(Requests),
}

/// Most requests of an attacker.
const MOST_REQUESTS: u64 = 1_000_000_000;

/// What users may write.
const FORMS: &str = "none, bulk, bulk:AVOIDANCE,count=N,iw=N, cbr:rate=R, onoff:rate=R,on=T,off=T, \
                     media:rate=R,interval=T,playout=T|adaptive, \
                     web:load=R,startup=SCHEME,receiver_rate=R, short:size=S,count=N,every=T,startup=SCHEME, \
                     request-flood:rate=N,count=N, bogus-requests:rate=N,ask=R,confirm=T, or the name of a congestion avoidance";

impl Competitor {
    /// Reads a competitor. `profile` is the transport of all flows.
    pub fn parse(field: &str, text: &str, profile: &Profile) -> Result<Written<Self>, InputError> {
        let parts = Parts::parse(field, text)?;
        let value = match parts.name {
            "none" => Self::None,
            "bulk" => bulk(field, text, None, &parts.keys, profile)?,
            name if AvoidanceConfig::NAMES.contains(&name) => bulk(field, text, Some(name), &parts.keys, profile)?,
            "cbr" => constant(field, text, &parts.keys)?,
            "onoff" => on_off(field, text, &parts.keys)?,
            "media" => media(field, text, &parts.keys)?,
            "web" => web(field, text, &parts.keys, profile)?,
            "request-flood" => requests(field, text, &parts.keys, Rate::from_bits_per_sec(80_000))?,
            "bogus-requests" => requests(field, text, &parts.keys, RateCode::MAX.rate())?,
            "short" => short(field, text, &parts.keys, profile)?,
            _ => {
                let (name, names) = (parts.called(), AvoidanceConfig::NAMES.join(", "));
                return Err(InputError::new(field, text, format!("`{name}` is not known; use {FORMS} ({names})")));
            }
        };
        Ok(Written { text: text.to_owned(), value })
    }

    /// Congestion avoidance of its flows, where the user chose one.
    pub fn avoidance(&self) -> Option<&AvoidanceConfig> {
        match self {
            Self::Bulk { avoidance, .. } | Self::Short { avoidance, .. } => Some(avoidance),
            Self::None | Self::Pattern { .. } | Self::Web { .. } | Self::Requests(_) => None,
        }
    }

    /// What its flows are, of interactive media.
    pub fn media(&self) -> Option<&Media> {
        match self {
            Self::Pattern { pattern: Pattern::Media(media), .. } => Some(media),
            _ => None,
        }
    }

    /// Whether its flows are transfers whose completion times can be compared.
    pub fn has_transfers(&self) -> bool {
        matches!(self, Self::Short { .. })
    }
}

fn read<T>(field: &str, text: &str, key: &str, value: &str) -> Result<T, InputError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|error| InputError::new(field, text, format!("{key}: {error}")))
}

fn count(field: &str, text: &str, value: &str) -> Result<u32, InputError> {
    let count = read(field, text, "count", value)?;
    if (1..=10_000).contains(&count) {
        Ok(count)
    } else {
        Err(InputError::new(field, text, format!("count is {count}; allowed is 1 to 10000")))
    }
}

fn unknown(field: &str, text: &str, key: &str, allowed: &str) -> InputError {
    InputError::new(field, text, format!("`{key}` is not known here; allowed are {allowed}"))
}

fn rate(field: &str, text: &str, key: &str, value: &str) -> Result<Rate, InputError> {
    let rate: Rate = read(field, text, key, value)?;
    if !(1_000..=10_000_000_000_000).contains(&rate.bits_per_sec()) {
        let problem = format!("{key}: {rate} is out of range; allowed is 1kbit to 10000gbit");
        return Err(InputError::new(field, text, problem));
    }
    Ok(rate)
}

fn bulk<'a>(
    field: &str,
    text: &str,
    mut algorithm: Option<&'a str>,
    keys: &[(&'a str, &'a str)],
    profile: &Profile,
) -> Result<Competitor, InputError> {
    let (mut flows, mut iw) = (1, None);
    let named = keys.iter().find(|(key, _)| *key == "startup");
    let named = named.map(|(_, spec)| host_scheme(field, spec, profile)).transpose()?;
    // Keys that are not the competitor's belong to its congestion avoidance.
    let mut rest = Vec::new();
    for &(key, value) in keys {
        match key {
            "count" => flows = count(field, text, value)?,
            "iw" => iw = Some(value),
            "startup" => {}
            name if value.is_empty() && algorithm.is_none() => algorithm = Some(name),
            _ => rest.push(format!("{key}={value}")),
        }
    }
    let name = algorithm.unwrap_or(profile.avoidance.name());
    let spec = if rest.is_empty() { name.to_owned() } else { format!("{name}:{}", rest.join(",")) };
    let avoidance = host_avoidance(field, &spec, profile)?.value;
    let mut startup = named.map_or_else(|| profile.startup_beside(&avoidance), |written| written.value);
    if let Some(iw) = iw {
        let spec = format!("{}:iw={iw}", startup.name());
        startup = scheme(field, &spec, &startup)?.value;
    }
    ControllerConfig::validate_pair(&startup, &avoidance)
        .map_err(|error| InputError::new(field, text, error.to_string()))?;
    Ok(Competitor::Bulk { count: flows, startup, avoidance })
}

fn constant(field: &str, text: &str, keys: &[(&str, &str)]) -> Result<Competitor, InputError> {
    let (mut speed, mut flows, mut packet) = (None, 1, 1500);
    for &(key, value) in keys {
        match key {
            "rate" => speed = Some(rate(field, text, key, value)?),
            "count" => flows = count(field, text, value)?,
            "packet" => {
                let size: Bytes = read(field, text, key, value)?;
                packet =
                    u32::try_from(size.get()).ok().filter(|size| (100..=65_000).contains(size)).ok_or_else(|| {
                        InputError::new(field, text, format!("packet: {size} is out of range; allowed is 100B to 65KB"))
                    })?;
            }
            _ => return Err(unknown(field, text, key, "rate, count, packet")),
        }
    }
    let rate = speed.ok_or_else(|| InputError::new(field, text, "rate is missing, as in cbr:rate=5mbit"))?;
    Ok(Competitor::Pattern { count: flows, pattern: Pattern::ConstantRate { rate, packet } })
}

fn on_off(field: &str, text: &str, keys: &[(&str, &str)]) -> Result<Competitor, InputError> {
    let (mut speed, mut flows) = (None, 1);
    let (mut mean_on, mut mean_off) = (Duration::from_millis(500), Duration::from_millis(500));
    for &(key, value) in keys {
        match key {
            "rate" => speed = Some(rate(field, text, key, value)?),
            "count" => flows = count(field, text, value)?,
            "on" => mean_on = read(field, text, key, value)?,
            "off" => mean_off = read(field, text, key, value)?,
            _ => return Err(unknown(field, text, key, "rate, on, off, count")),
        }
    }
    for (key, mean) in [("on", mean_on), ("off", mean_off)] {
        if !(Duration::from_millis(1)..=Duration::from_millis(1_000_000)).contains(&mean) {
            return Err(InputError::new(field, text, format!("{key} is {mean}; allowed is 1ms to 1000s")));
        }
    }
    let rate = speed.ok_or_else(|| InputError::new(field, text, "rate is missing, as in onoff:rate=5mbit"))?;
    Ok(Competitor::Pattern { count: flows, pattern: Pattern::OnOff { rate, mean_on, mean_off } })
}

/// Interactive media; what is not said is Opus at 32 kbit/s in packets of 20 ms (RFC 7587) with a playout buffer of 60 ms.
fn media(field: &str, text: &str, keys: &[(&str, &str)]) -> Result<Competitor, InputError> {
    let mut flows = 1;
    let mut media = Media {
        rate: Rate::from_bits_per_sec(32_000),
        interval: Duration::from_millis(20),
        playout: Playout::Fixed(Duration::from_millis(60)),
    };
    for &(key, value) in keys {
        match key {
            "rate" => media.rate = rate(field, text, key, value)?,
            "interval" => {
                media.interval = read(field, text, key, value)?;
                if !(Duration::from_micros(2_500)..=Duration::from_millis(120)).contains(&media.interval) {
                    let problem = format!("interval is {}; allowed is 2.5ms to 120ms", media.interval);
                    return Err(InputError::new(field, text, problem));
                }
            }
            "playout" if value == "adaptive" => media.playout = Playout::Adaptive,
            "playout" => {
                let buffer: Duration = read(field, text, key, value)?;
                if buffer > Duration::from_millis(10_000) {
                    let problem = format!("playout is {buffer}; allowed is 0s to 10s, or adaptive");
                    return Err(InputError::new(field, text, problem));
                }
                media.playout = Playout::Fixed(buffer);
            }
            "count" => flows = count(field, text, value)?,
            _ => return Err(unknown(field, text, key, "rate, interval, playout, count")),
        }
    }
    let payload = media.payload().get();
    if !(1..=1_400).contains(&payload) {
        let problem = format!("rate and interval make packets of {payload} B; allowed is 1 B to 1400 B");
        return Err(InputError::new(field, text, problem));
    }
    Ok(Competitor::Pattern { count: flows, pattern: Pattern::Media(media) })
}

fn web(field: &str, text: &str, keys: &[(&str, &str)], profile: &Profile) -> Result<Competitor, InputError> {
    const OWN: [&str; 3] = ["load", "startup", "receiver_rate"];
    let (own, of_sizes): (Vec<_>, Vec<_>) = keys.iter().copied().partition(|(key, _)| OWN.contains(key));
    let named = |name| own.iter().find(|(key, _)| *key == name).copied();
    let load = named("load").map(|(key, value)| rate(field, text, key, value)).transpose()?;
    let receiver_rate = named("receiver_rate").map(|(key, value)| rate(field, text, key, value)).transpose()?;
    let startup = named("startup").map(|(_, spec)| host_scheme(field, spec, profile)).transpose()?;
    let startup = startup.map(|written| written.value);
    if let Some(startup) = &startup {
        ControllerConfig::validate_pair(startup, &profile.avoidance)
            .map_err(|error| InputError::new(field, text, error.to_string()))?;
    }
    if let Some((key, _)) = of_sizes.iter().find(|(key, _)| !["smallest", "mean", "largest", "shape"].contains(key)) {
        return Err(unknown(field, text, key, &format!("load, startup, receiver_rate, {DISTRIBUTION_KEYS}")));
    }
    let sizes = distributed(field, text, &of_sizes)?;
    let load: Rate = load.ok_or_else(|| InputError::new(field, text, "load is missing, as in web:load=5mbit"))?;
    // Gaps that round to no time at all would be arrivals without end.
    if load.bits_per_sec() as f64 > 8e6 * sizes.mean() {
        return Err(InputError::new(field, text, "more than a million transfers a second; choose a smaller load"));
    }
    Ok(Competitor::Web { load, sizes, startup, receiver_rate })
}

/// Requests without connections; `ask` is what each asks for unless the spec says otherwise.
fn requests(field: &str, text: &str, keys: &[(&str, &str)], ask: Rate) -> Result<Competitor, InputError> {
    let mut per_second = None;
    let mut requests = Requests { interval: Duration::ZERO, count: None, ask, spoofed: true, confirm: None };
    for &(key, value) in keys {
        match key {
            "rate" => {
                let rate: f64 = read(field, text, key, value)?;
                if !(0.001..=1e6).contains(&rate) {
                    let problem = format!("rate: {value} requests per second; allowed is 0.001 to 1000000");
                    return Err(InputError::new(field, text, problem));
                }
                per_second = Some(rate);
            }
            "count" => {
                let count = read(field, text, key, value)?;
                if !(1..=MOST_REQUESTS).contains(&count) {
                    let problem = format!("count is {count}; allowed is 1 to {MOST_REQUESTS}");
                    return Err(InputError::new(field, text, problem));
                }
                requests.count = Some(count);
            }
            "ask" => requests.ask = rate(field, text, key, value)?,
            "spoofed" => requests.spoofed = read(field, text, key, value)?,
            "confirm" => {
                let after: Duration = read(field, text, key, value)?;
                if !(Duration::from_millis(1)..=Duration::from_millis(60_000)).contains(&after) {
                    return Err(InputError::new(field, text, format!("confirm is {after}; allowed is 1ms to 60s")));
                }
                requests.confirm = Some(after);
            }
            _ => return Err(unknown(field, text, key, "rate, count, ask, spoofed, confirm")),
        }
    }
    let per_second =
        per_second.ok_or_else(|| InputError::new(field, text, "rate is missing, as in request-flood:rate=1000"))?;
    requests.interval = Duration::from_secs(1.0 / per_second);
    Ok(Competitor::Requests(requests))
}

fn short(field: &str, text: &str, keys: &[(&str, &str)], profile: &Profile) -> Result<Competitor, InputError> {
    let (mut size, mut flows, mut every) = (Bytes::new(70_000), 8, None);
    let mut startup = host_scheme(field, "slow-start", profile)?.value;
    let mut algorithm = profile.avoidance.clone();
    for &(key, value) in keys {
        match key {
            "size" => match TransferSize::parse(field, value)?.value {
                TransferSize::Fixed(fixed) => size = fixed,
                TransferSize::Pareto(_) | TransferSize::Application(_) | TransferSize::Web(_) => {
                    return Err(InputError::new(field, text, "size: one size, such as 70KB"));
                }
            },
            "count" => flows = count(field, text, value)?,
            "every" => {
                let gap: Duration = read(field, text, key, value)?;
                if gap > LONGEST_GAP {
                    return Err(InputError::new(
                        field,
                        text,
                        format!("every is {gap}; allowed is 0s to {LONGEST_GAP}"),
                    ));
                }
                every = Some(gap);
            }
            "startup" => startup = host_scheme(field, value, profile)?.value,
            "avoidance" => algorithm = host_avoidance(field, value, profile)?.value,
            _ => return Err(unknown(field, text, key, "size, count, every, startup, avoidance")),
        }
    }
    ControllerConfig::validate_pair(&startup, &algorithm)
        .map_err(|error| InputError::new(field, text, error.to_string()))?;
    Ok(Competitor::Short { count: flows, size, every, startup, avoidance: algorithm })
}

#[cfg(test)]
mod tests {
    use flowstart_core::avoidance::bbr;

    use flowstart_core::startup::slow_start;

    use super::*;

    fn parse(text: &str) -> Result<Competitor, InputError> {
        let profile = Profile::named("gquic").unwrap();
        Competitor::parse("--competitor", text, &profile).map(|written| written.value)
    }

    #[test]
    fn a_bare_avoidance_is_one_bulk_flow_of_it() {
        assert_eq!(parse("cubic").unwrap(), parse("bulk:cubic").unwrap());
        assert_eq!(parse("bulk").unwrap(), parse("cubic").unwrap());
        assert_ne!(parse("cubic:connections=1").unwrap(), parse("cubic").unwrap());
        let Competitor::Bulk { count, avoidance, .. } = parse("bulk:reno,count=3,iw=10").unwrap() else {
            panic!("a bulk competitor")
        };
        assert_eq!((count, avoidance.name()), (3, "reno"));
    }

    #[test]
    fn a_competitor_that_probes_by_itself_starts_with_the_plain_window_unless_told_otherwise() {
        // The profile's own startup is hystart.
        let Competitor::Bulk { startup, avoidance, .. } = parse("bulk:bbr,iw=20").unwrap() else {
            panic!("a bulk competitor")
        };
        assert_eq!((startup.name(), avoidance.name()), ("slow-start", "bbr"));
        let StartupConfig::SlowStart(slow_start::Config { iw, .. }) = startup else { panic!("slow start") };
        assert_eq!(iw, Some(20));
        assert!(parse("bulk:bbr,startup=blitzstart").is_ok());
        let error = parse("bulk:bbr,startup=hystart").unwrap_err().to_string();
        assert!(error.contains("hystart is only a rule for leaving slow start"), "{error}");
    }

    #[test]
    fn the_version_of_a_competitors_avoidance_may_be_chosen() {
        for text in ["bulk:bbr,version=1,count=2", "bbr:version=1,count=2", "bulk:count=2,bbr,version=1"] {
            let Competitor::Bulk { count, avoidance: AvoidanceConfig::Bbr(config), .. } = parse(text).unwrap() else {
                panic!("a bulk competitor under BBR")
            };
            assert_eq!((count, config.version), (2, bbr::Version::One), "{text}");
        }
        let error = |text| parse(text).unwrap_err().to_string();
        assert!(
            error("bulk:bbr,version=2").contains("version is 2; allowed is 1 or 3"),
            "{}",
            error("bulk:bbr,version=2")
        );
        assert!(error("bulk:cubic,version=1").contains("version"), "{}", error("bulk:cubic,version=1"));
    }

    #[test]
    fn short_flows_are_ordinary_unless_told_otherwise() {
        let Competitor::Short { count, size, every, startup, avoidance } = parse("short:size=30KB").unwrap() else {
            panic!("short flows")
        };
        assert_eq!((count, size, every), (8, Bytes::new(30_000), None));
        assert_eq!((startup.name(), avoidance.name()), ("slow-start", "cubic"));
        assert_eq!(parse("short"), parse("short:size=70KB,count=8,startup=slow-start,avoidance=cubic"));
    }

    #[test]
    fn media_is_opus_unless_told_otherwise() {
        let Competitor::Pattern { count: 1, pattern: Pattern::Media(media) } = parse("media").unwrap() else {
            panic!("one media flow")
        };
        assert_eq!((media.packet(), media.playout), (120, Playout::Fixed(Duration::from_millis(60))));
        assert_eq!(parse("media:rate=32kbit,interval=20ms,playout=60ms,count=1"), parse("media"));
        let error = parse("media:rate=10mbit").unwrap_err().to_string();
        assert!(error.contains("packets of 25000 B; allowed is 1 B to 1400 B"), "{error}");
    }

    #[test]
    fn attackers_ask_for_little_in_a_flood_and_for_much_in_bogus_requests() {
        let requests = |text: &str| match parse(text) {
            Ok(Competitor::Requests(requests)) => requests,
            other => panic!("{other:?}"),
        };
        let flood = requests("request-flood:rate=1000,count=5");
        assert_eq!((flood.interval, flood.count, flood.spoofed), (Duration::from_millis(1), Some(5), true));
        assert_eq!(flood.ask, Rate::from_bits_per_sec(80_000));
        let bogus = requests("bogus-requests:rate=10,spoofed=false,confirm=80ms");
        assert_eq!((bogus.ask, bogus.count, bogus.spoofed), (RateCode::MAX.rate(), None, false));
        assert_eq!(bogus.confirm, Some(Duration::from_millis(80)));
        let error = parse("request-flood:rate=1e7").unwrap_err().to_string();
        assert!(error.contains("rate: 1e7 requests per second; allowed is 0.001 to 1000000"), "{error}");
    }

    #[test]
    fn an_initial_window_belongs_to_the_startup_that_is_named_whatever_the_order() {
        assert_eq!(parse("bulk:iw=3,startup=slow-start"), parse("bulk:startup=slow-start,iw=3"));
        assert_eq!(parse("bulk:iw=3,startup=slow-start"), parse("bulk:startup=slow-start:iw=3"));
    }

    #[test]
    fn wrong_competitors_are_refused() {
        for text in [
            "bulky",
            "bulk:vegas",
            "cbr",
            "cbr:rate=0mbit",
            "web:load=1mbit,shape=99",
            "bulk:count=0",
            "onoff:rate=1mbit,on=0s",
            "cbr:rate=1mbit,packet=1B",
            "web:load=10000gbit,smallest=1B,largest=2B",
            "web:load=1mbit,smallest=4GB,largest=4EB",
            "web:load=1mbit,count=3",
            "short:size=pareto",
            "media:interval=1ms",
            "media:rate=1kbit,interval=2.5ms",
            "media:playout=11s",
            "media:playout=perhaps",
            "media:load=1mbit",
            "short:count=0",
            "short:startup=hystart,avoidance=bbr",
            "short:load=1mbit",
            "short:every=1001s",
            "web:load=1mbit,receiver_rate=1bit",
            "web:load=1mbit,startup=quickstart",
            "request-flood",
            "request-flood:rate=0",
            "request-flood:rate=1e7",
            "request-flood:rate=1,count=0",
            "bogus-requests:rate=1,ask=0mbit",
            "bogus-requests:rate=1,spoofed=perhaps",
            "bogus-requests:rate=1,confirm=0ms",
            "bogus-requests:rate=1,load=1mbit",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
