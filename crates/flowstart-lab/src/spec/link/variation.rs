//! How a link varies by itself: `rate_steps=50%/15s`, `rate_varies=40%/1s`, `rtt_steps=20ms/15s`.
//!
//! The rate of the link is the mean. What a client hints, what is saved of the path, and buffers in time or BDPs follow
//! from the mean too, unless `hint` says otherwise. The RTT of the link is the smallest: buffers in BDPs follow from
//! it, and what is saved of the path from the mean of what the steps add.

use flowstart_core::spec::Fraction;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::varying_rate::{RateCurve, Variation, VaryingRate};
use flowstart_sim::link::wire::DelaySteps;

use super::super::{InputError, Spec};

/// Shortest and longest time between two changes.
const EVERY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(1_000_000));
/// A packet in whose transmission fading may pass away so many times.
const PACKET: Bytes = Bytes::new(1500);
const MOST_TIMES: u64 = 25;
/// Largest spread of steps, as a part of the mean.
const LARGEST_SPREAD: f64 = 0.95;
/// Longest extra delay.
const LONGEST_DELAY: Duration = Duration::from_millis(10_000);

/// What varies, in every run in its own way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Varies {
    /// The rate.
    pub rate: Option<Variation>,
    /// The delay.
    pub delay: Option<DelaySteps>,
    /// The seed of the run, where it is known.
    pub seed: Option<u64>,
}

impl Varies {
    /// Reads what varies.
    pub(super) fn read(spec: &mut Spec<'_>) -> Result<Self, InputError> {
        let steps = spec.read_with("rate_steps", |text| {
            let (spread, every) = part(text, "50%/15s")?;
            if spread > LARGEST_SPREAD {
                return Err(format!("`{text}`: allowed is up to 95%, as 50%/15s"));
            }
            Ok(Variation::Steps { spread, every })
        })?;
        let fading = spec.read_with("rate_varies", |text| {
            part(text, "40%/1s").map(|(deviation, memory)| Variation::Fading { deviation, memory })
        })?;
        if steps.is_some() && fading.is_some() {
            return Err(spec.refused_value("rate_varies", "a link has rate_steps or rate_varies, not both"));
        }
        let delay = spec.read_with("rtt_steps", |text| {
            let (amplitude, every) = text.split_once('/').ok_or("expected DELAY/TIME, as 20ms/15s")?;
            let amplitude: Duration = amplitude.parse().map_err(|error| format!("{error}"))?;
            if amplitude > LONGEST_DELAY {
                return Err(format!("`{text}`: allowed is up to {LONGEST_DELAY}, as 20ms/15s"));
            }
            Ok(DelaySteps { amplitude, every: time(every)? })
        })?;
        Ok(Self { rate: steps.or(fading), delay, seed: None })
    }

    /// Refuses fading that is over many times while one packet leaves: it has no effect, and takes long to compute.
    pub(super) fn check(&self, spec: &Spec<'_>, rate: Rate) -> Result<(), InputError> {
        let least = rate.time_for(PACKET) / MOST_TIMES;
        match self.rate {
            Some(Variation::Fading { memory, .. }) if memory < least => {
                let problem = format_args!(
                    "a packet takes {} at {rate}, and TIME is {memory}; allowed is {least} to {}",
                    rate.time_for(PACKET),
                    EVERY.1
                );
                Err(spec.refused_value("rate_varies", problem))
            }
            _ => Ok(()),
        }
    }

    /// The mean extra delay of a round trip: each step draws evenly from none to the largest.
    pub fn mean_delay(&self) -> Duration {
        self.delay.map_or(Duration::ZERO, |steps| steps.amplitude / 2)
    }

    /// The rate with this mean in the run whose seed is known.
    pub(super) fn curve(&self, mean: Rate) -> Option<RateCurve> {
        Some(VaryingRate { mean, variation: self.rate? }.in_run(self.seed?))
    }
}

/// Reads a part of the mean and a time.
fn part(text: &str, example: &str) -> Result<(f64, Duration), String> {
    let (part, every) = text.split_once('/').ok_or_else(|| format!("expected PART/TIME, as {example}"))?;
    let Fraction(part) = part.parse()?;
    Ok((part, time(every)?))
}

fn time(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    if !(EVERY.0..=EVERY.1).contains(&time) {
        return Err(format!("{time} is out of range; allowed is {} to {}", EVERY.0, EVERY.1));
    }
    Ok(time)
}

/// `rate_steps` and `rate_varies` as users write them.
pub(super) fn described(variation: Option<Variation>) -> (Option<String>, Option<String>) {
    match variation {
        None => (None, None),
        Some(Variation::Steps { spread, every }) => (Some(format!("{spread}/{every}")), None),
        Some(Variation::Fading { deviation, memory }) => (None, Some(format!("{deviation}/{memory}"))),
    }
}
