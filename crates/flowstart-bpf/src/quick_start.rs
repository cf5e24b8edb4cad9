//! A Quick-Start router as a program at an interface (XDP): its parameters as the program reads them.
//!
//! `bpf/quick_start_target.h` is the Target rule of `flowstart-core` in integers; a test gives both the same packets at
//! the same times. It reads and writes the option of IPv4; packets of IPv6 pass as by a router that does not know
//! Quick-Start. Frames count as leaving by the link when they come.
//!
//! Differences from the core: integers stand where fractions do, so an approval that is a power of two of 40 kbit/s to
//! the last bit may be taken for one step less.

use flowstart_core::quick_start::rate::{RateEncoding, Rounding};
use flowstart_core::quick_start::router::peak_utilization::Intervals;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config, UtilizationConfig};
use flowstart_core::registry::ConfigError;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

/// Bytes of `struct target_config`.
pub const SETTINGS: usize = 48;

/// What the program's products hold: 10,000 Gbit/s.
const FASTEST: Rate = Rate::from_bits_per_sec(10_000_000_000_000);
/// Longest interval of the utilization, whose square the program holds.
const LONGEST_INTERVAL: Duration = Duration::from_millis(4000);
/// No limit of requests.
const UNLIMITED: u64 = u64::MAX;

/// What the program does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A parameter is out of range.
    #[error(transparent)]
    Range(#[from] ConfigError),
    /// Another way of working.
    #[error("the program has {allowed}, and no other {what}")]
    Other {
        /// What is different.
        what: &'static str,
        /// What there is.
        allowed: &'static str,
    },
}

/// `struct target_config`: the parameters of a router at a link of this bandwidth.
///
/// # Errors
///
/// What the program does not have.
pub fn settings(config: &Config, bandwidth: Rate) -> Result<[u8; SETTINGS], Unsupported> {
    config.validate()?;
    let only = |what, allowed, is_so: bool| if is_so { Ok(()) } else { Err(Unsupported::Other { what, allowed }) };
    let slowest = Rate::from_bits_per_sec(1);
    ConfigError::unless_in("bandwidth", bandwidth, slowest..=FASTEST)?;
    only("behaviour", "routers that participate", config.behaviour == Behaviour::Participate)?;
    only("encoding", "that of RFC 4782", config.encoding == RateEncoding::Exponential)?;
    only("rounding", "that to the next lower rate", config.rounding == Rounding::Down)?;
    ConfigError::unless_in("processing", config.processing, Duration::ZERO..=Duration::ZERO)?;
    let Algorithm::Target(target) = config.algorithm else {
        return Err(Unsupported::Other { what: "rule", allowed: "target" });
    };
    ConfigError::unless_in("flows", target.flows, 0..=0)?;
    let UtilizationConfig::PeakUtilization(peak) = config.utilization else {
        return Err(Unsupported::Other { what: "utilization", allowed: "peak-utilization" });
    };
    only("end of intervals", "multiples of their length", peak.ends == Intervals::Fixed)?;
    ConfigError::unless_in("interval", peak.interval, Duration::from_millis(1)..=LONGEST_INTERVAL)?;
    let limit = (target.qs_thresh * bandwidth.bits_per_sec() as f64) as u64;
    let requests = target.requests_per_second.map_or(UNLIMITED, u64::from);
    let wide =
        [bandwidth.bits_per_sec(), limit, target.interval.as_nanos(), peak.interval.as_nanos(), requests].into_iter();
    let mut settings = [0; SETTINGS];
    // The rest is reserved.
    let values = wide.flat_map(u64::to_ne_bytes).chain((peak.intervals as u32).to_ne_bytes());
    for (to, value) in settings.iter_mut().zip(values) {
        *to = value;
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use flowstart_core::quick_start::router::{extreme, moving_average, peak_utilization, target};

    use super::*;

    const LINK: Rate = Rate::from_mbit(20);

    #[test]
    fn the_parameters_stand_where_the_program_reads_them() {
        let settings = settings(&Config::default(), LINK).unwrap();
        let wide: Vec<u64> = settings.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        // 90 % of 20 Mbit/s, and 150 ms.
        assert_eq!(wide[..5], [20_000_000, 18_000_000, 150_000_000, 150_000_000, u64::MAX]);
        assert_eq!(settings[40..], [&5_u32.to_ne_bytes()[..], &[0; 4]].concat());
    }

    #[test]
    fn what_the_program_does_not_have_is_refused_with_what_it_has() {
        let refused = |config: Config| settings(&config, LINK).unwrap_err().to_string();
        let extreme = Algorithm::Extreme(extreme::Config::default());
        assert_eq!(
            refused(Config { algorithm: extreme, ..Config::default() }),
            "the program has target, and no other rule"
        );
        let average = UtilizationConfig::MovingAverage(moving_average::Config::default());
        assert!(refused(Config { utilization: average, ..Config::default() }).contains("peak-utilization"));
        let flows = Algorithm::Target(target::Config { flows: 16, ..target::Config::default() });
        assert!(refused(Config { algorithm: flows, ..Config::default() }).contains("flows"));
        let long = peak_utilization::Config { interval: Duration::from_millis(4001), ..Default::default() };
        let long = UtilizationConfig::PeakUtilization(long);
        assert!(refused(Config { utilization: long, ..Config::default() }).contains("interval"));
        assert!(refused(Config { behaviour: Behaviour::Zero, ..Config::default() }).contains("behaviour"));
        assert!(refused(Config { processing: Duration::from_millis(1), ..Config::default() }).contains("processing"));
        assert!(settings(&Config::default(), Rate::ZERO).is_err());
    }
}
