//! Competitors: what else uses the link.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::arrivals::Sizes;
use flowstart_sim::transport::profile::Profile;

use super::size::{DISTRIBUTION_KEYS, TransferSize, distributed};
use super::{InputError, Parts, Written, avoidance, scheme};

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
    /// Ordinary transfers that start within an RTT of the first measured flow.
    Short {
        /// Their number.
        count: u32,
        /// Payload of each.
        size: Bytes,
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
    },
}

/// What users may write.
const FORMS: &str = "none, bulk, bulk:AVOIDANCE,count=N,iw=N, cbr:rate=R, onoff:rate=R,on=T,off=T, web:load=R, \
                     short:size=S,count=N,startup=SCHEME, or the name of a congestion avoidance";

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
            "web" => web(field, text, &parts.keys)?,
            "short" => short(field, text, &parts.keys, profile)?,
            _ => {
                let (name, names) = (parts.called(), AvoidanceConfig::NAMES.join(", "));
                return Err(InputError::new(field, text, format!("`{name}` is not known; use {FORMS} ({names})")));
            }
        };
        Ok(Written { text: text.to_owned(), value })
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
    let mut startup = match named {
        Some((_, spec)) => scheme(field, spec, &profile.startup)?.value,
        None => profile.startup.clone(),
    };
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
    let avoidance = avoidance(field, &spec, &profile.avoidance)?.value;
    if named.is_none() && avoidance.integrated() && !startup.has_launch() {
        // The profile's own startup is only a rule for leaving slow start: what is left of it is the initial window.
        startup = StartupConfig::SlowStart(slow_start::Config::default());
    }
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

fn web(field: &str, text: &str, keys: &[(&str, &str)]) -> Result<Competitor, InputError> {
    let (of_load, of_sizes): (Vec<_>, Vec<_>) = keys.iter().copied().partition(|(key, _)| *key == "load");
    let load = of_load.first().map(|(key, value)| rate(field, text, key, value)).transpose()?;
    if let Some((key, _)) = of_sizes.iter().find(|(key, _)| !["smallest", "mean", "largest", "shape"].contains(key)) {
        return Err(unknown(field, text, key, &format!("load, {DISTRIBUTION_KEYS}")));
    }
    let sizes = distributed(field, text, &of_sizes)?;
    let load: Rate = load.ok_or_else(|| InputError::new(field, text, "load is missing, as in web:load=5mbit"))?;
    // Gaps that round to no time at all would be arrivals without end.
    if load.bits_per_sec() as f64 > 8e6 * sizes.mean() {
        return Err(InputError::new(field, text, "more than a million transfers a second; choose a smaller load"));
    }
    Ok(Competitor::Web { load, sizes })
}

fn short(field: &str, text: &str, keys: &[(&str, &str)], profile: &Profile) -> Result<Competitor, InputError> {
    let (mut size, mut flows) = (Bytes::new(70_000), 8);
    let mut startup = scheme(field, "slow-start", &profile.startup)?.value;
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
            "startup" => startup = scheme(field, value, &profile.startup)?.value,
            "avoidance" => algorithm = avoidance(field, value, &profile.avoidance)?.value,
            _ => return Err(unknown(field, text, key, "size, count, startup, avoidance")),
        }
    }
    ControllerConfig::validate_pair(&startup, &algorithm)
        .map_err(|error| InputError::new(field, text, error.to_string()))?;
    Ok(Competitor::Short { count: flows, size, startup, avoidance: algorithm })
}

#[cfg(test)]
mod tests {
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
    fn short_flows_are_ordinary_unless_told_otherwise() {
        let Competitor::Short { count, size, startup, avoidance } = parse("short:size=30KB").unwrap() else {
            panic!("short flows")
        };
        assert_eq!((count, size, startup.name(), avoidance.name()), (8, Bytes::new(30_000), "slow-start", "cubic"));
        assert_eq!(parse("short"), parse("short:size=70KB,count=8,startup=slow-start,avoidance=cubic"));
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
            "short:count=0",
            "short:startup=hystart,avoidance=bbr",
            "short:load=1mbit",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
