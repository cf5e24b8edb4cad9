//! The Quick-Start routers of a path and those who cheat there, as keys of its link.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `quick_start` | `target`, `extreme`, or what else routers do: `ignore`, `zero`, `delete`, `drop`, `approve-all` | none |
//! | `qs_thresh` | share of the link that may be in use | 0.9 |
//! | `qs_interval` | interval of recent approvals (`target`) or assumed RTT (`extreme`) | 150ms, 100ms |
//! | `qs_utilization` | `peak/5/150ms` or `average/0.01` | `peak/5/150ms` |
//! | `qs_limit` | requests looked at per second | all |
//! | `qs_routers` | how many of the path's routers take part, from the sender on; the others ignore the option | all |
//! | `qs_flows` | flows remembered: for reports and second passes (`target`), for all approvals (`extreme`) | 0, 1024 |
//! | `qs_provisional` | how long a first pass is approved without a second (`target`, needs `qs_flows`) | no second pass |
//! | `qs_bandwidth` | what the path's routers believe their links to have | what they have |
//! | `qs_upstream` | rate of one more router's link in front of the path: behind it the path's first link is a narrow one | none |
//! | `qs_hidden` | the number of the router that requests do not see, from the sender on: a tunnel or a switch | none |
//! | `qs_receiver` | measured flows' receivers add steps to the rate that arrived: `raise/STEPS` | honest |
//! | `qs_booster` | a box at measured flows' senders: `raise/STEPS`, `ttl` or `raise/STEPS/ttl` | none |

use flowstart_core::quick_start::misbehaviour::BoosterConfig;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config, UtilizationConfig};
use flowstart_core::quick_start::router::{extreme, moving_average, peak_utilization, target};
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

/// The keys.
pub(super) const KEYS: [&str; 13] = [
    "quick_start",
    "qs_thresh",
    "qs_interval",
    "qs_utilization",
    "qs_limit",
    "qs_routers",
    "qs_flows",
    "qs_provisional",
    "qs_bandwidth",
    "qs_upstream",
    "qs_hidden",
    "qs_receiver",
    "qs_booster",
];

/// Most routers of a path: 64 hops, one in front and the receiver's.
const MOST_ROUTERS: u32 = 66;

/// The routers of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routers {
    config: Config,
    /// How many take part; `None`: all.
    taking_part: Option<u32>,
    /// What those of the path believe their links to have.
    pub bandwidth: Option<Rate>,
    /// The link of one more router in front of the path.
    pub upstream: Option<Rate>,
    /// The place of the router that requests do not see.
    hidden: Option<u32>,
    /// Steps that receivers of measured flows add.
    pub receiver_steps: Option<u8>,
    /// The box at senders of measured flows.
    pub booster: Option<BoosterConfig>,
}

/// What is wrong with which key.
type Refused = (&'static str, String);

fn read<T>(key: &'static str, text: Option<&str>) -> Result<Option<T>, Refused>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    text.map(|text| text.parse().map_err(|error| (key, format!("`{text}`: {error}")))).transpose()
}

fn utilization(text: &str) -> Result<UtilizationConfig, Refused> {
    let refused = || ("qs_utilization", format!("`{text}` is neither peak/INTERVALS/LENGTH nor average/WEIGHT"));
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

fn rate(key: &'static str, text: Option<&str>) -> Result<Option<Rate>, Refused> {
    match read::<Rate>(key, text)? {
        Some(rate) if !(1_000..=10_000_000_000_000).contains(&rate.bits_per_sec()) => {
            Err((key, format!("{rate} is out of range; allowed is 1kbit to 10000gbit")))
        }
        rate => Ok(rate),
    }
}

/// Steps of the rate's code, 1 to 15.
fn steps(key: &'static str, text: &str) -> Result<u8, Refused> {
    match text.parse() {
        Ok(steps @ 1..=15) => Ok(steps),
        _ => Err((key, format!("`{text}` steps; allowed is 1 to 15"))),
    }
}

fn receiver(text: &str) -> Result<u8, Refused> {
    match text.strip_prefix("raise/") {
        Some(count) => steps("qs_receiver", count),
        None => Err(("qs_receiver", format!("`{text}` is not raise/STEPS, as raise/3"))),
    }
}

fn booster(text: &str) -> Result<BoosterConfig, Refused> {
    let (rest, ttl) = match text.strip_suffix("ttl") {
        Some(rest) => (rest.strip_suffix('/').unwrap_or(rest), true),
        None => (text, false),
    };
    match rest.strip_prefix("raise/") {
        Some(count) => Ok(BoosterConfig { steps: steps("qs_booster", count)?, ttl }),
        None if ttl && rest.is_empty() => Ok(BoosterConfig { steps: 0, ttl }),
        None => Err(("qs_booster", format!("`{text}` is neither raise/STEPS nor ttl nor raise/STEPS/ttl"))),
    }
}

impl Routers {
    /// Reads them from the keys of a link.
    pub(super) fn parse<'a>(raw: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>, Refused> {
        let Some(name) = raw("quick_start") else {
            return match KEYS.iter().find(|key| raw(key).is_some()) {
                Some(key) => Err((key, "is for routers with quick_start=target or another".into())),
                None => Ok(None),
            };
        };
        let interval: Option<Duration> = read("qs_interval", raw("qs_interval"))?;
        let thresh: Option<f64> = read("qs_thresh", raw("qs_thresh"))?;
        let mut config = Config::default();
        let mut target = target::Config::default();
        target.qs_thresh = thresh.unwrap_or(target.qs_thresh);
        target.interval = interval.unwrap_or(target.interval);
        target.requests_per_second = read("qs_limit", raw("qs_limit"))?;
        let flows: Option<usize> = read("qs_flows", raw("qs_flows"))?;
        target.flows = flows.unwrap_or(target.flows);
        target.provisional = read("qs_provisional", raw("qs_provisional"))?;
        config.algorithm = Algorithm::Target(target);
        config.behaviour = match name {
            "target" => Behaviour::Participate,
            "extreme" => {
                let mut extreme = extreme::Config::default();
                extreme.qs_thresh = thresh.unwrap_or(extreme.qs_thresh);
                extreme.rtt = interval.unwrap_or(extreme.rtt);
                extreme.flows = flows.unwrap_or(extreme.flows);
                extreme.requests_per_second = target.requests_per_second;
                if target.provisional.is_some() {
                    return Err(("qs_provisional", "is for target; extreme ends approvals after two RTTs".into()));
                }
                config.algorithm = Algorithm::Extreme(extreme);
                Behaviour::Participate
            }
            "ignore" => Behaviour::Ignore,
            "zero" => Behaviour::Zero,
            "delete" => Behaviour::Delete,
            "drop" => Behaviour::Drop,
            "approve-all" => Behaviour::ApproveAll,
            _ => {
                let allowed = "target, extreme, ignore, zero, delete, drop and approve-all";
                return Err(("quick_start", format!("`{name}` is not known; allowed are {allowed}")));
            }
        };
        if let Some(text) = raw("qs_utilization") {
            config.utilization = utilization(text)?;
        }
        config.validate().map_err(|error| ("quick_start", error.to_string()))?;
        let hidden: Option<u32> = read("qs_hidden", raw("qs_hidden"))?;
        if hidden.is_some_and(|place| !(1..=MOST_ROUTERS).contains(&place)) {
            return Err(("qs_hidden", format!("allowed is 1 to {MOST_ROUTERS}, the first router being 1")));
        }
        Ok(Some(Self {
            config,
            taking_part: read("qs_routers", raw("qs_routers"))?,
            bandwidth: rate("qs_bandwidth", raw("qs_bandwidth"))?,
            upstream: rate("qs_upstream", raw("qs_upstream"))?,
            hidden,
            receiver_steps: raw("qs_receiver").map(receiver).transpose()?,
            booster: raw("qs_booster").map(booster).transpose()?,
        }))
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

    fn parse(keys: &[(&'static str, &'static str)]) -> Result<Option<Routers>, Refused> {
        Routers::parse(|key| keys.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    #[test]
    fn keys_become_routers() {
        assert_eq!(parse(&[]), Ok(None));
        let keys =
            [("quick_start", "target"), ("qs_thresh", "0.5"), ("qs_utilization", "peak/3/50ms"), ("qs_routers", "1")];
        let routers = parse(&keys).unwrap().unwrap();
        assert_eq!(routers.to_string(), "target/0.5/150ms, peak/3/50ms, 1 routers");
        assert_eq!((routers.at(0).behaviour, routers.at(1).behaviour), (Behaviour::Participate, Behaviour::Ignore));
    }

    #[test]
    fn attacks_and_what_helps_against_them_are_keys_too() {
        let keys = [
            ("quick_start", "target"),
            ("qs_flows", "64"),
            ("qs_provisional", "100ms"),
            ("qs_bandwidth", "5mbit"),
            ("qs_upstream", "100mbit"),
            ("qs_hidden", "2"),
            ("qs_receiver", "raise/3"),
            ("qs_booster", "raise/2/ttl"),
        ];
        let routers = parse(&keys).unwrap().unwrap();
        let text = "target/0.9/150ms/64 flows/provisional 100ms, peak/5/150ms, believed 5mbit, behind 100mbit, router 2 hidden, \
                    receivers raise 3 steps, booster 2 steps, TTL repaired";
        assert_eq!(routers.to_string(), text);
        assert_eq!((routers.at(0).behaviour, routers.at(1).behaviour), (Behaviour::Participate, Behaviour::Hidden));
        assert_eq!(booster("ttl"), Ok(BoosterConfig { steps: 0, ttl: true }));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_is_allowed() {
        let error = |keys: &[(&'static str, &'static str)]| parse(keys).unwrap_err();
        assert!(error(&[("qs_thresh", "0.5")]).1.contains("quick_start=target"));
        assert!(error(&[("quick_start", "exteme")]).1.contains("allowed are target, extreme"));
        assert!(
            error(&[("quick_start", "target"), ("qs_thresh", "1.5")]).1.contains("qs_thresh is 1.5; allowed is 0 to 1")
        );
        assert!(error(&[("quick_start", "target"), ("qs_utilization", "peak/0")]).1.contains("peak/INTERVALS/LENGTH"));
        assert!(error(&[("quick_start", "target"), ("qs_utilization", "peak/0/1ms")]).1.contains("1 to 64"));
        assert_eq!(error(&[("quick_start", "target"), ("qs_limit", "-1")]).0, "qs_limit");
        for (key, value, allowed) in [
            ("qs_flows", "70000", "0 to 65536"),
            ("qs_provisional", "100ms", "flows is 0; allowed is 1 to 65536"),
            ("qs_hidden", "0", "1 to 66"),
            ("qs_upstream", "1bit", "1kbit to 10000gbit"),
            ("qs_bandwidth", "fast", "qs_bandwidth"),
            ("qs_receiver", "raise/16", "1 to 15"),
            ("qs_receiver", "3", "raise/STEPS"),
            ("qs_booster", "raise/0/ttl", "1 to 15"),
            ("qs_booster", "", "raise/STEPS/ttl"),
        ] {
            let (named, problem) = error(&[("quick_start", "target"), (key, value)]);
            assert!(format!("{named}: {problem}").contains(allowed), "{key}={value}: {named}: {problem}");
        }
        assert_eq!(error(&[("quick_start", "extreme"), ("qs_provisional", "1ms")]).0, "qs_provisional");
    }
}
