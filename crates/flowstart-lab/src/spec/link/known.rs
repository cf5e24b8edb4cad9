//! What is known of a path besides the client's hint: `saved=40mbit/50ms/60s`, `oracle=40mbit`, `handshake_train=off`.
//! `none` is a source that knows nothing.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use flowstart_core::path::SavedPath;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use super::super::form::Key;
use super::super::{InputError, RATES, Spec};
use super::Link;

/// The keys.
pub(super) const KEYS: &[Key<Link>] = &[
    Key::new(
        "saved",
        "RATE/RTT/AGE, or none",
        "what an earlier connection saved of the path",
        "the bottleneck's rate, the empty path's RTT, 1 minute",
    )
    .such_as("saved=40mbit/50ms/60s"),
    Key::new("oracle", "a rate, or none", "what a capacity oracle answers", "the bottleneck's rate")
        .such_as("oracle=40mbit")
        .only_simulated(|link| link.oracle != Told::Truth),
    Key::new(
        "handshake_train",
        "on, off, or a rate",
        "what clients of QUIC report of the dispersion of the handshake: what they see, nothing, or this",
        "on",
    )
    .such_as("handshake_train=off")
    .only_simulated(|link| link.train != Told::Truth),
];

/// The word for a source that knows nothing.
pub(super) const NOTHING: &str = "none";

/// The words for what a client sees of the handshake, and for a client that does not report it.
const SEEN: &str = "on";
const UNREPORTED: &str = "off";

/// Longest RTT that is saved.
const LONGEST_RTT: Duration = Duration::from_millis(100_000);
/// Oldest path that is saved: 10^9 s, the longest lifetime of a scheme.
const OLDEST: Duration = Duration::from_millis(1_000_000_000_000);

/// What a source of knowledge says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told<T> {
    /// What is true of the link.
    #[default]
    Truth,
    /// Nothing.
    Nothing,
    /// This, true or not.
    This(T),
}

impl<T: Copy> Told<T> {
    /// What it says of a link of which `truth` is true.
    pub fn of(self, truth: T) -> Option<T> {
        match self {
            Self::Truth => Some(truth),
            Self::Nothing => None,
            Self::This(stated) => Some(stated),
        }
    }

    /// As users write it; `None`: it is the default.
    pub(super) fn written(&self, write: impl Fn(&T) -> String) -> Option<String> {
        match self {
            Self::Truth => None,
            Self::Nothing => Some(NOTHING.to_owned()),
            Self::This(stated) => Some(write(stated)),
        }
    }

    fn read(text: &str, this: impl FnOnce(&str) -> Result<T, String>) -> Result<Self, String> {
        if text.eq_ignore_ascii_case(NOTHING) { Ok(Self::Nothing) } else { this(text).map(Self::This) }
    }
}

/// A path that an earlier connection saved, as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The rate that it reached.
    pub rate: Rate,
    /// The smallest RTT that it saw.
    pub rtt: Duration,
    /// Time since it saved them.
    pub age: Duration,
}

impl Saved {
    /// What a connection with this rate and RTT saves: the window is their product.
    pub fn path(self) -> SavedPath {
        SavedPath { rtt: self.rtt, cwnd: self.rate.amount_in(self.rtt), age: self.age }
    }
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.rate, self.rtt, self.age)
    }
}

fn within<T>(name: &str, text: &str, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr<Err: fmt::Display> + PartialOrd + fmt::Display,
{
    let value: T = text.parse().map_err(|error: T::Err| format!("{name}: {error}"))?;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!("{name}: {value} is out of range; allowed is {} to {}", range.start(), range.end()))
}

impl FromStr for Saved {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [rate, rtt, age] = parts[..] else {
            return Err("expected RATE/RTT/AGE, as 40mbit/50ms/60s, or none".into());
        };
        Ok(Self {
            rate: within("RATE", rate, &RATES)?,
            rtt: within("RTT", rtt, &(Duration::from_micros(1)..=LONGEST_RTT))?,
            age: within("AGE", age, &(Duration::ZERO..=OLDEST))?,
        })
    }
}

/// A rate that a source states, as users write it.
///
/// # Errors
///
/// What is wrong, and what is allowed.
pub fn stated_rate(text: &str) -> Result<Rate, String> {
    within("RATE", text, &RATES)
}

/// What clients report of the handshake's train, as users write it.
fn train(text: &str) -> Result<Told<Rate>, String> {
    if text.eq_ignore_ascii_case(SEEN) {
        return Ok(Told::Truth);
    }
    let other = if text.eq_ignore_ascii_case(UNREPORTED) { NOTHING } else { text };
    Told::read(other, stated_rate).map_err(|problem| format!("{problem}, and neither {SEEN} nor {UNREPORTED}"))
}

/// What the keys say.
pub(super) struct Known {
    pub(super) saved: Told<Saved>,
    pub(super) oracle: Told<Rate>,
    pub(super) train: Told<Rate>,
}

/// Reads the keys.
pub(super) fn read(spec: &mut Spec<'_>) -> Result<Known, InputError> {
    let saved = spec.read_with("saved", |text| Told::read(text, str::parse))?;
    let oracle = spec.read_with("oracle", |text| Told::read(text, stated_rate))?;
    let train = spec.read_with("handshake_train", train)?;
    let (saved, oracle) = (saved.unwrap_or_default(), oracle.unwrap_or_default());
    Ok(Known { saved, oracle, train: train.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_core::units::Bytes;

    use super::*;

    fn link(keys: &str) -> Result<Link, InputError> {
        Link::parse("--link", &format!("rate=20mbit,rtt=50ms,{keys}"), Path::new("."))
    }

    #[test]
    fn what_is_stated_need_not_be_true() {
        let stated = link("saved=40mbit/100ms/2s,oracle=5mbit").unwrap();
        let Told::This(saved) = stated.saved else { panic!("{stated:?}") };
        // 40 Mbit/s for 100 ms are 500 kB.
        let path =
            SavedPath { rtt: Duration::from_millis(100), cwnd: Bytes::new(500_000), age: Duration::from_millis(2_000) };
        assert_eq!(saved.path(), path);
        assert_eq!(stated.oracle.of(Rate::from_mbit(20)), Some(Rate::from_mbit(5)));
        let none = link("saved=none,oracle=NONE").unwrap();
        assert_eq!((none.saved, none.oracle.of(Rate::from_mbit(20))), (Told::Nothing, None));
        let trains = [("on", Told::Truth), ("off", Told::Nothing), ("none", Told::Nothing)];
        for (word, told) in trains.into_iter().chain([("5mbit", Told::This(Rate::from_mbit(5)))]) {
            assert_eq!(link(&format!("handshake_train={word}")).unwrap().train, told);
        }
        let truth = link("buffer=1bdp").unwrap();
        assert_eq!((truth.saved, truth.oracle.of(Rate::from_mbit(20))), (Told::Truth, Some(Rate::from_mbit(20))));
    }

    #[test]
    fn what_cannot_be_known_is_refused() {
        for (keys, expected) in [
            ("saved=40mbit", "expected RATE/RTT/AGE"),
            ("saved=40mbit/50ms/1s/2s", "expected RATE/RTT/AGE"),
            ("saved=0bit/50ms/1s", "RATE: 0gbit is out of range"),
            ("saved=40mbit/0s/1s", "RTT: 0s is out of range"),
            ("saved=40mbit/50ms/1e10s", "AGE"),
            ("saved=true", "expected RATE/RTT/AGE"),
            ("oracle=1e30gbit", "oracle"),
            ("oracle=0bit", "RATE: 0gbit is out of range"),
            ("handshake_train=maybe", "neither on nor off"),
        ] {
            let told = link(keys).unwrap_err().to_string();
            assert!(told.contains(expected), "{keys}: {told}");
        }
    }
}
