//! The Quick-Start routers and the cheaters of a path, as keys of its link: `lte,quick_start=target,qs_thresh=0.5`.

use flowstart_core::quick_start::misbehaviour::BoosterConfig;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config, LONGEST_PROCESSING, UtilizationConfig};
use flowstart_core::quick_start::router::{extreme, moving_average, peak_utilization, target};
use flowstart_core::spec::names;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use super::form::Key;
use super::{InputError, RATES, Spec};

/// The keys.
pub(super) const KEYS: &[Key<Routers>] = &[
    Key::new("quick_start", "target, extreme, ignore, ...", "what Quick-Start routers do", "none")
        .such_as("quick_start=target"),
    Key::new("qs_thresh", "0 to 1", "share of the link that may be in use", "0.9")
        .such_as("quick_start=target,qs_thresh=0.5"),
    Key::new("qs_interval", "a time", "interval of recent approvals (target) or assumed RTT (extreme)", "150ms, 100ms")
        .such_as("quick_start=target,qs_interval=100ms"),
    Key::new("qs_utilization", "peak/N/TIME or average/W", "estimate of the utilization", "peak/5/150ms")
        .such_as("quick_start=target,qs_utilization=average/0.01"),
    Key::new("qs_limit", "a number", "requests processed per second", "all").such_as("quick_start=target,qs_limit=100"),
    Key::new("qs_routers", "a number", "routers that take part, counted from the sender", "all")
        .such_as("quick_start=target,qs_routers=1"),
    Key::new("qs_delay", "0s to 10s", "extra time of each router for a packet with an option", "0s")
        .such_as("quick_start=target,qs_delay=5ms")
        .only_simulated(|routers| routers.config.processing > Duration::ZERO),
    Key::new("qs_flows", "a number", "flows remembered, for reports, second passes or approvals", "0, extreme: 1024")
        .such_as("quick_start=target,qs_flows=64"),
    Key::new("qs_provisional", "a time", "validity of a first pass without a second (target)", "no second pass")
        .such_as("quick_start=target,qs_flows=64,qs_provisional=500ms"),
    Key::new("qs_bandwidth", "a rate", "assumed bandwidth of the routers' links", "the real one")
        .such_as("quick_start=target,qs_bandwidth=5mbit"),
    Key::new("qs_upstream", "a rate", "an additional router's link in front of the path", "none")
        .such_as("quick_start=target,qs_upstream=100mbit")
        .only_simulated(|routers| routers.upstream.is_some()),
    Key::new("qs_hidden", "1 to 66", "the router that does not see requests: a tunnel or a switch", "none")
        .such_as("quick_start=target,qs_hidden=1"),
    Key::new("qs_receiver", "raise/STEPS", "receivers add steps to the rate that arrived", "honest")
        .such_as("quick_start=target,qs_receiver=raise/3")
        .only_simulated(|routers| routers.receiver_steps.is_some()),
    Key::new("qs_booster", "raise/STEPS, ttl or both", "a box that raises requests at senders", "none")
        .such_as("quick_start=target,qs_booster=raise/2/ttl")
        .only_simulated(|routers| routers.booster.is_some()),
];

/// What the routers of a path do.
const BEHAVIOURS: [&str; 7] = ["target", "extreme", "ignore", "zero", "delete", "drop", "approve-all"];

/// Most routers of a path: 64 hops, one in front and the receiver's.
const MOST_ROUTERS: u32 = 66;

/// The routers of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routers {
    config: Config,
    /// Number of participating routers; `None`: all.
    taking_part: Option<u32>,
    /// The bandwidth that the path's routers assume for their links.
    pub bandwidth: Option<Rate>,
    /// The link of an additional router in front of the path.
    pub upstream: Option<Rate>,
    /// The place of the router that does not see requests.
    hidden: Option<u32>,
    /// Steps that receivers of measured flows add to the rate.
    pub receiver_steps: Option<u8>,
    /// The box at senders of measured flows.
    pub booster: Option<BoosterConfig>,
}

fn utilization(text: &str) -> Result<UtilizationConfig, String> {
    let refused = || format!("`{text}` is neither peak/INTERVALS/LENGTH nor average/WEIGHT");
    let parts: Vec<&str> = text.split('/').collect();
    Ok(match parts[..] {
        ["peak", intervals, interval] => {
            let interval: Duration = interval.parse().map_err(|_| refused())?;
            let intervals = intervals.parse().map_err(|_| refused())?;
            UtilizationConfig::PeakUtilization(peak_utilization::Config { interval, intervals, ..Default::default() })
        }
        ["average", weight] => {
            UtilizationConfig::MovingAverage(moving_average::Config { weight: weight.parse().map_err(|_| refused())? })
        }
        _ => return Err(refused()),
    })
}

/// Steps of the rate's code, 1 to 15.
fn steps(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(steps @ 1..=15) => Ok(steps),
        _ => Err(format!("`{text}` steps; allowed is 1 to 15")),
    }
}

fn receiver(text: &str) -> Result<u8, String> {
    match text.strip_prefix("raise/") {
        Some(count) => steps(count),
        None => Err(format!("`{text}` is not raise/STEPS, as raise/3")),
    }
}

fn booster(text: &str) -> Result<BoosterConfig, String> {
    let (rest, ttl) = match text.strip_suffix("ttl") {
        Some(rest) => (rest.strip_suffix('/').unwrap_or(rest), true),
        None => (text, false),
    };
    match rest.strip_prefix("raise/") {
        Some(count) => Ok(BoosterConfig { steps: steps(count)?, ttl }),
        None if ttl && rest.is_empty() => Ok(BoosterConfig { steps: 0, ttl }),
        None => Err(format!("`{text}` is neither raise/STEPS nor ttl nor raise/STEPS/ttl")),
    }
}

impl Routers {
    /// Reads the routers from the keys of a link.
    pub(super) fn read(spec: &mut Spec<'_>) -> Result<Option<Self>, InputError> {
        let name = spec.value("quick_start")?;
        let thresh: Option<f64> = spec.read("qs_thresh")?;
        let interval: Option<Duration> = spec.read("qs_interval")?;
        let mut config = Config::default();
        if let Some(utilization) = spec.read_with("qs_utilization", utilization)? {
            config.utilization = utilization;
        }
        let mut target = target::Config::default();
        target.qs_thresh = thresh.unwrap_or(target.qs_thresh);
        target.interval = interval.unwrap_or(target.interval);
        target.requests_per_second = spec.read("qs_limit")?;
        let taking_part = spec.read("qs_routers")?;
        let processing = spec.within("qs_delay", Duration::ZERO..=LONGEST_PROCESSING)?;
        config.processing = processing.unwrap_or(config.processing);
        let flows: Option<usize> = spec.read("qs_flows")?;
        target.flows = flows.unwrap_or(target.flows);
        target.provisional = spec.read("qs_provisional")?;
        let bandwidth = spec.within("qs_bandwidth", RATES)?;
        let upstream = spec.within("qs_upstream", RATES)?;
        let hidden = spec.within("qs_hidden", 1..=MOST_ROUTERS)?;
        let receiver_steps = spec.read_with("qs_receiver", receiver)?;
        let booster = spec.read_with("qs_booster", booster)?;
        let Some(name) = name else {
            return match spec.asked().iter().find(|key| key.starts_with("qs_") && spec.has(key)) {
                Some(key) => Err(spec.refused_value(key, "is for routers with quick_start=target or another")),
                None => Ok(None),
            };
        };
        config.algorithm = Algorithm::Target(target);
        let name = names::find(name, &BEHAVIOURS).ok_or_else(|| {
            let allowed = format_args!("allowed are {}", BEHAVIOURS.join(", "));
            spec.refused_value("quick_start", names::unknown(name, &BEHAVIOURS, allowed))
        })?;
        config.behaviour = match name {
            "target" => Behaviour::Participate,
            "extreme" => {
                let mut extreme = extreme::Config::default();
                extreme.qs_thresh = thresh.unwrap_or(extreme.qs_thresh);
                extreme.rtt = interval.unwrap_or(extreme.rtt);
                extreme.flows = flows.unwrap_or(extreme.flows);
                extreme.requests_per_second = target.requests_per_second;
                if target.provisional.is_some() {
                    let problem = "is for target; extreme ends approvals after two RTTs";
                    return Err(spec.refused_value("qs_provisional", problem));
                }
                config.algorithm = Algorithm::Extreme(extreme);
                Behaviour::Participate
            }
            "ignore" => Behaviour::Ignore,
            "zero" => Behaviour::Zero,
            "delete" => Behaviour::Delete,
            "drop" => Behaviour::Drop,
            _ => Behaviour::ApproveAll,
        };
        config.validate().map_err(|error| spec.refused(format_args!("quick_start: {error}")))?;
        Ok(Some(Self { config, taking_part, bandwidth, upstream, hidden, receiver_steps, booster }))
    }

    /// The router in front of the link number `place` of the path, the sender's own link not counted.
    pub fn at(&self, place: u32) -> Config {
        match self.taking_part {
            _ if self.hidden == Some(place + 1) => Config { behaviour: Behaviour::Hidden, ..self.config },
            Some(count) if place >= count => Config { behaviour: Behaviour::Ignore, ..self.config },
            _ => self.config,
        }
    }
}

impl std::fmt::Display for Routers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Config { algorithm, utilization, behaviour, .. } = self.config;
        match (behaviour, algorithm) {
            (Behaviour::Participate, Algorithm::Target(target)) => {
                write!(f, "target/{}/{}", target.qs_thresh, target.interval)?;
                if let Some(limit) = target.requests_per_second {
                    write!(f, "/{limit} per s")?;
                }
                if target.flows > 0 {
                    write!(f, "/{} flows", target.flows)?;
                }
                if let Some(provisional) = target.provisional {
                    write!(f, "/provisional {provisional}")?;
                }
            }
            (Behaviour::Participate, Algorithm::Extreme(extreme)) => {
                write!(f, "extreme/{}/{}", extreme.qs_thresh, extreme.rtt)?;
                if extreme.flows != extreme::Config::default().flows {
                    write!(f, "/{} flows", extreme.flows)?;
                }
                if let Some(limit) = extreme.requests_per_second {
                    write!(f, "/{limit} per s")?;
                }
            }
            (behaviour, _) => f.write_str(match behaviour {
                Behaviour::Participate | Behaviour::Ignore => "ignore",
                Behaviour::Zero => "zero",
                Behaviour::Delete => "delete",
                Behaviour::Drop => "drop",
                Behaviour::ApproveAll => "approve-all",
                Behaviour::Hidden => "hidden",
            })?,
        }
        match utilization {
            UtilizationConfig::PeakUtilization(peak) => write!(f, ", peak/{}/{}", peak.intervals, peak.interval)?,
            UtilizationConfig::MovingAverage(average) => write!(f, ", average/{}", average.weight)?,
        }
        let mut also = |text: Option<String>| text.map_or(Ok(()), |text| write!(f, ", {text}"));
        also(self.taking_part.map(|count| format!("{count} routers")))?;
        let processing = self.config.processing;
        also((processing > Duration::ZERO).then(|| format!("{processing} for an option")))?;
        also(self.bandwidth.map(|rate| format!("believed {rate}")))?;
        also(self.upstream.map(|rate| format!("behind {rate}")))?;
        also(self.hidden.map(|place| format!("router {place} hidden")))?;
        also(self.receiver_steps.map(|steps| format!("receivers raise {steps} steps")))?;
        also(self.booster.map(|booster| {
            format!("booster {} steps{}", booster.steps, if booster.ttl { ", TTL repaired" } else { "" })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Routers>, InputError> {
        let mut spec = Spec::parse("--link", text)?;
        let routers = Routers::read(&mut spec)?;
        spec.finish().map(|()| routers)
    }

    #[test]
    fn keys_become_routers() {
        let mut none = Spec::parse("--link", "rate=1mbit").unwrap();
        assert_eq!(Routers::read(&mut none), Ok(None));
        let routers =
            read("quick_start=target,qs_thresh=0.5,qs_utilization=peak/3/50ms,qs_routers=1").unwrap().unwrap();
        assert_eq!(routers.to_string(), "target/0.5/150ms, peak/3/50ms, 1 routers");
        assert_eq!((routers.at(0).behaviour, routers.at(1).behaviour), (Behaviour::Participate, Behaviour::Ignore));
    }

    #[test]
    fn attacks_and_what_helps_against_them_are_keys_too() {
        let keys = "quick_start=target,qs_flows=64,qs_provisional=100ms,qs_bandwidth=5mbit,qs_upstream=100mbit,\
                    qs_hidden=2,qs_receiver=raise/3,qs_booster=raise/2/ttl";
        let routers = read(keys).unwrap().unwrap();
        let text = "target/0.9/150ms/64 flows/provisional 100ms, peak/5/150ms, believed 5mbit, behind 100mbit, \
                    router 2 hidden, receivers raise 3 steps, booster 2 steps, TTL repaired";
        assert_eq!(routers.to_string(), text);
        assert_eq!((routers.at(0).behaviour, routers.at(1).behaviour), (Behaviour::Participate, Behaviour::Hidden));
        assert_eq!(booster("ttl"), Ok(BoosterConfig { steps: 0, ttl: true }));
        assert!(booster("").unwrap_err().contains("raise/STEPS/ttl"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_is_allowed() {
        for (keys, key, problem) in [
            ("qs_thresh=0.5", "qs_thresh", "quick_start=target"),
            ("quick_start=exteme", "quick_start", "allowed are target, extreme"),
            ("quick_start=target,qs_thresh=1.5", "quick_start", "qs_thresh is 1.5; allowed is 0 to 1"),
            ("quick_start=target,qs_utilization=peak/0", "qs_utilization", "peak/INTERVALS/LENGTH"),
            ("quick_start=target,qs_utilization=peak/0/1ms", "quick_start", "1 to 64"),
            ("quick_start=target,qs_limit=-1", "qs_limit", "`-1`"),
            ("quick_start=target,qs_flows=70000", "quick_start", "0 to 65536"),
            ("quick_start=target,qs_provisional=100ms", "quick_start", "flows is 0; allowed is 1 to 65536"),
            ("quick_start=target,qs_hidden=0", "qs_hidden", "1 to 66"),
            ("qs_delay=5ms", "qs_delay", "is for routers with quick_start=target"),
            ("quick_start=target,qs_delay=11s", "qs_delay", "0s to 10s"),
            ("quick_start=target,qs_delay=-1ms", "qs_delay", "-1ms"),
            ("quick_start=target,qs_upstream=1bit", "qs_upstream", "1kbit to 10000gbit"),
            ("quick_start=target,qs_bandwidth=fast", "qs_bandwidth", "`fast`"),
            ("quick_start=target,qs_receiver=raise/16", "qs_receiver", "1 to 15"),
            ("quick_start=target,qs_receiver=3", "qs_receiver", "raise/STEPS"),
            ("quick_start=target,qs_booster=raise/0/ttl", "qs_booster", "1 to 15"),
            ("quick_start=target,qs_booster=", "qs_booster", "needs a value"),
            ("quick_start=extreme,qs_provisional=1ms", "qs_provisional", "is for target"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.problem.starts_with(key) && error.problem.contains(problem), "{keys}: {error}");
        }
    }
}
