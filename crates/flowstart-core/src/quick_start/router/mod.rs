//! A router's part: how busy the output link is, and how much of a request it approves.
//!
//! | Name | File |
//! |---|---|
//! | `target` | [`target`]: a share of the link that may be used, no state per flow |
//! | `extreme` | [`extreme`]: the same with state per flow |
//! | `peak-utilization` | [`peak_utilization`] |
//! | `moving-average` | [`moving_average`] |
//!
//! [`Router`] stands at an output link: it reads the option of a packet that is about to leave, and writes the granted
//! rate into it. It knows neither clock nor link. The host tells it when packets leave and how large they are, so it
//! runs in a simulator and in a real router alike.

use crate::quick_start::nonce::Nonce;
use crate::quick_start::rate::{RateCode, RateEncoding, Rounding};
use crate::quick_start::wire::IpOption;
use crate::registry::ConfigError;
use crate::rng::Substream;
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

mod approved_flows;
pub mod extreme;
pub mod moving_average;
pub mod peak_utilization;
mod request_limit;
pub mod target;

/// The flow that a request belongs to, as far as a router tells flows apart.
pub type FlowId = u64;

/// How the utilization of the output link is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "kebab-case")
)]
pub enum UtilizationConfig {
    /// The most used of the latest intervals.
    PeakUtilization(peak_utilization::Config),
    /// An exponentially weighted average over departures.
    MovingAverage(moving_average::Config),
}

impl Default for UtilizationConfig {
    fn default() -> Self {
        Self::PeakUtilization(peak_utilization::Config::default())
    }
}

/// An estimate of the utilization and its state.
#[derive(Clone, Debug)]
pub enum Utilization {
    /// The most used of the latest intervals.
    PeakUtilization(peak_utilization::PeakUtilization),
    /// An exponentially weighted average over departures.
    MovingAverage(moving_average::MovingAverage),
}

impl Utilization {
    /// The estimate of a link of this bandwidth that has never been used.
    pub fn new(config: UtilizationConfig, bandwidth: Rate) -> Self {
        match config {
            UtilizationConfig::PeakUtilization(config) => {
                Self::PeakUtilization(peak_utilization::PeakUtilization::new(config, bandwidth))
            }
            UtilizationConfig::MovingAverage(config) => {
                Self::MovingAverage(moving_average::MovingAverage::new(config, bandwidth))
            }
        }
    }

    /// A packet of `size` begins to leave at `now`.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes) {
        match self {
            Self::PeakUtilization(peak) => peak.on_departure(now, size),
            Self::MovingAverage(average) => average.on_departure(now, size),
        }
    }

    /// Share of the bandwidth in use, 0 to 1.
    pub fn share(&mut self, now: Timestamp) -> f64 {
        match self {
            Self::PeakUtilization(peak) => peak.share(now),
            Self::MovingAverage(average) => average.share(),
        }
    }
}

/// How a router decides.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "kebab-case")
)]
pub enum Algorithm {
    /// No state per flow.
    Target(target::Config),
    /// State per flow.
    Extreme(extreme::Config),
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::Target(target::Config::default())
    }
}

/// How a router treats requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Behaviour {
    /// As RFC 4782 says. A request that is not approved loses its rate, TTL and nonce (section 3.3).
    #[default]
    Participate,
    /// Does not know the option and forwards it as it is: the sender sees that the TTLs differ.
    Ignore,
    /// Approves nothing.
    Zero,
    /// Takes the option out of the packet.
    Delete,
    /// Drops packets with the option.
    Drop,
    /// Approves every request in full: a broken router.
    ApproveAll,
    /// Is not seen by requests: a hop inside a tunnel that does not count down the inner TTL, or a switch (section 7).
    /// The sender cannot notice it. A simulator counts every hop into the IP TTL, so such a hop counts down the QS TTL,
    /// too.
    Hidden,
}

/// A router's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Config {
    /// How it decides; `target`.
    pub algorithm: Algorithm,
    /// How it estimates the utilization; the peak of 5 intervals of 150 ms.
    pub utilization: UtilizationConfig,
    /// How it treats requests; as it should.
    pub behaviour: Behaviour,
    /// How rates are named; as in RFC 4782.
    pub encoding: RateEncoding,
    /// How it rounds what it grants; down.
    pub rounding: Rounding,
    /// How long it takes to process an option, before the packet is queued: routers process packets with IP options in
    /// their slow path (RFC 4782, section 9.2). The host of the router delays the packet. None by default, as in the
    /// paper's simulations; up to [`LONGEST_PROCESSING`].
    pub processing: Duration,
}

/// The longest time for which a router may process an option.
pub const LONGEST_PROCESSING: Duration = Duration::from_millis(10_000);

impl Config {
    /// Refuses parameters that are out of range.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the parameter and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::unless_in("processing", self.processing, Duration::ZERO..=LONGEST_PROCESSING)?;
        match self.algorithm {
            Algorithm::Target(config) => config.validate()?,
            Algorithm::Extreme(config) => config.validate()?,
        }
        match self.utilization {
            UtilizationConfig::PeakUtilization(config) => config.validate(),
            UtilizationConfig::MovingAverage(config) => config.validate(),
        }
    }
}

#[derive(Clone, Debug)]
enum Approver {
    Target(target::Target),
    Extreme(extreme::Extreme),
}

/// The fate of a packet with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves with this option.
    Forward(IpOption),
    /// It leaves without one.
    Delete,
    /// It does not leave.
    Drop,
}

/// A Quick-Start router at one output link.
#[derive(Clone, Debug)]
pub struct Router {
    config: Config,
    bandwidth: Rate,
    utilization: Utilization,
    approver: Approver,
}

impl Router {
    /// A router at a link of this bandwidth.
    pub fn new(config: Config, bandwidth: Rate) -> Self {
        let approver = match config.algorithm {
            Algorithm::Target(config) => Approver::Target(target::Target::new(config)),
            Algorithm::Extreme(config) => Approver::Extreme(extreme::Extreme::new(config)),
        };
        Self { config, bandwidth, utilization: Utilization::new(config.utilization, bandwidth), approver }
    }

    /// How long a packet with an option stays before [`Router::on_option`]: not at all where the option is not seen.
    pub fn processing(&self) -> Duration {
        if self.config.behaviour == Behaviour::Hidden { Duration::ZERO } else { self.config.processing }
    }

    /// A packet of `flow` begins to leave on the link.
    #[inline]
    pub fn on_departure(&mut self, now: Timestamp, size: Bytes, flow: FlowId) {
        self.utilization.on_departure(now, size);
        if let Approver::Extreme(extreme) = &mut self.approver {
            extreme.on_departure(now, size, flow);
        }
    }

    /// A packet of `flow` with `option` is to be forwarded on the link.
    pub fn on_option(&mut self, now: Timestamp, flow: FlowId, option: IpOption, rng: &mut Substream) -> Verdict {
        match (self.config.behaviour, option) {
            (Behaviour::Ignore, _) => Verdict::Forward(option),
            (Behaviour::Delete, _) => Verdict::Delete,
            (Behaviour::Drop, _) => Verdict::Drop,
            (Behaviour::Hidden, IpOption::ApprovedRate { .. }) => Verdict::Forward(option),
            (Behaviour::Hidden, IpOption::RateRequest { rate, ttl, nonce }) => {
                Verdict::Forward(IpOption::RateRequest { rate, ttl: ttl.wrapping_sub(1), nonce })
            }
            (Behaviour::Hidden, IpOption::RateConfirmation { rate, ttl, nonce }) => {
                Verdict::Forward(IpOption::RateConfirmation { rate, ttl: ttl.wrapping_sub(1), nonce })
            }
            (_, IpOption::ApprovedRate { rate, .. }) => {
                match &mut self.approver {
                    Approver::Target(target) => target.on_report(now, flow, rate.rate()),
                    Approver::Extreme(extreme) => extreme.on_report(now, flow, rate.rate()),
                }
                Verdict::Forward(option)
            }
            (behaviour, IpOption::RateConfirmation { rate, ttl, nonce }) => {
                let confirmed = match behaviour {
                    Behaviour::Zero => Some(false),
                    Behaviour::ApproveAll => Some(true),
                    _ => self.confirm(now, flow, self.config.encoding.requested(rate, nonce)),
                };
                Verdict::Forward(match confirmed {
                    // A router without a second pass does not know the function.
                    None => option,
                    Some(true) => IpOption::RateConfirmation { rate, ttl: ttl.wrapping_sub(1), nonce },
                    Some(false) => REFUSED,
                })
            }
            (Behaviour::Zero, IpOption::RateRequest { .. }) => Verdict::Forward(DENIED),
            (behaviour, IpOption::RateRequest { rate, ttl, nonce }) => {
                let requested = self.config.encoding.requested(rate, nonce);
                let approved = match behaviour {
                    Behaviour::ApproveAll => requested,
                    _ => self.approve(now, flow, requested),
                };
                let granted = self.config.encoding.round(approved, self.config.rounding).min(requested);
                if granted == Rate::from_bits_per_sec(0) {
                    return Verdict::Forward(DENIED);
                }
                let (rate, nonce) = match self.config.encoding {
                    RateEncoding::Exponential => {
                        let code = RateCode::at_most(granted);
                        (code, nonce.reduced(rate, code, rng))
                    }
                    RateEncoding::Linear => self.config.encoding.written(granted),
                };
                Verdict::Forward(IpOption::RateRequest { rate, ttl: ttl.wrapping_sub(1), nonce })
            }
        }
    }

    /// How much of `requested` is approved, before it is rounded.
    fn approve(&mut self, now: Timestamp, flow: FlowId, requested: Rate) -> Rate {
        let used = self.utilization.share(now);
        match &mut self.approver {
            Approver::Target(target) => target.approve(now, self.bandwidth, used, requested, flow),
            Approver::Extreme(extreme) => extreme.approve(now, self.bandwidth, used, requested, flow),
        }
    }

    /// Whether the second pass for `rate` is confirmed; `None`: this router has no second pass.
    fn confirm(&mut self, now: Timestamp, flow: FlowId, rate: Rate) -> Option<bool> {
        match &mut self.approver {
            Approver::Target(target) => target.confirm(now, flow, rate),
            Approver::Extreme(extreme) => Some(extreme.confirm(now, flow, rate)),
        }
    }
}

/// A second pass that is refused.
const REFUSED: IpOption = IpOption::RateConfirmation { rate: RateCode::ZERO, ttl: 0, nonce: Nonce::from_bits(0) };
/// A request of which nothing is left.
const DENIED: IpOption = IpOption::RateRequest { rate: RateCode::ZERO, ttl: 0, nonce: Nonce::from_bits(0) };
