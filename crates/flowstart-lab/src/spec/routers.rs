//! The Quick-Start routers of a path, as keys of its link.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `quick_start` | `target`, `extreme`, or what else routers do: `ignore`, `zero`, `delete`, `drop`, `approve-all` | none |
//! | `qs_thresh` | share of the link that may be in use | 0.9 |
//! | `qs_interval` | interval of recent approvals (`target`) or assumed RTT (`extreme`) | 150ms, 100ms |
//! | `qs_utilization` | `peak/5/150ms` or `average/0.01` | `peak/5/150ms` |
//! | `qs_limit` | requests looked at per second (`target`) | all |
//! | `qs_routers` | how many of the path's routers take part, from the sender on; the others ignore the option | all |

use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config, UtilizationConfig};
use flowstart_core::quick_start::router::{extreme, moving_average, peak_utilization, target};
use flowstart_core::time::Duration;

/// The keys.
pub(super) const KEYS: [&str; 6] =
    ["quick_start", "qs_thresh", "qs_interval", "qs_utilization", "qs_limit", "qs_routers"];

/// The routers of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routers {
    config: Config,
    /// How many take part; `None`: all.
    taking_part: Option<u32>,
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
        config.algorithm = Algorithm::Target(target);
        config.behaviour = match name {
            "target" => Behaviour::Participate,
            "extreme" => {
                let mut extreme = extreme::Config::default();
                extreme.qs_thresh = thresh.unwrap_or(extreme.qs_thresh);
                extreme.rtt = interval.unwrap_or(extreme.rtt);
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
        let taking_part = read("qs_routers", raw("qs_routers"))?;
        Ok(Some(Self { config, taking_part }))
    }

    /// The router behind the link number `place` of the path, the host's own link not counted.
    pub fn at(&self, place: u32) -> Config {
        match self.taking_part {
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
            }
            (Behaviour::Participate, Algorithm::Extreme(extreme)) => {
                write!(f, "extreme/{}/{}", extreme.qs_thresh, extreme.rtt)?;
            }
            (behaviour, _) => f.write_str(match behaviour {
                Behaviour::Participate | Behaviour::Ignore => "ignore",
                Behaviour::Zero => "zero",
                Behaviour::Delete => "delete",
                Behaviour::Drop => "drop",
                Behaviour::ApproveAll => "approve-all",
            })?,
        }
        match utilization {
            UtilizationConfig::PeakUtilization(peak) => write!(f, ", peak/{}/{}", peak.intervals, peak.interval)?,
            UtilizationConfig::MovingAverage(average) => write!(f, ", average/{}", average.weight)?,
        }
        self.taking_part.map_or(Ok(()), |count| write!(f, ", {count} routers"))
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
    }
}
