//! Random configurations that are in range, of whatever serde can write and read: no registry entry has to say anything
//! for them. The contracts, the tests of queue disciplines and the fuzz targets have it in common.
//!
//! The keys come from the default as serde writes it, and from what serde says of a key that is not known. What a key
//! may be comes from its default, from what serde says of a value that is not known, and from the ranges in the errors
//! of `validate`, whose ends are candidates too. A draw changes one key after another, as long as the whole is
//! accepted, so that keys which bound each other meet both their bounds.

#![allow(dead_code, reason = "each of its users needs a part")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::OnceLock;

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::registry::ConfigError;
use flowstart_core::rng::mix;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What can be drawn.
pub(crate) trait Configuration: Clone + Debug + PartialEq + Serialize + DeserializeOwned {
    /// Refuses what is out of range.
    fn check(&self) -> Result<(), ConfigError>;
}

macro_rules! configurations {
    ($($config:ty),*) => {$(
        impl Configuration for $config {
            fn check(&self) -> Result<(), ConfigError> {
                self.validate()
            }
        }
    )*};
}

configurations!(StartupConfig, AvoidanceConfig, QueueConfig, ControllerConfig);

/// A source of random numbers that begins with `seed`.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }

    /// One of `items`, which are not empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number in [0, 1].
    fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / ((1u64 << 53) - 1) as f64
    }
}

/// How the values of a key are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Real,
    Time,
    Amount,
    Speed,
}

const KINDS: [Kind; 5] = [Kind::Whole, Kind::Real, Kind::Time, Kind::Amount, Kind::Speed];

impl Kind {
    /// The number that `value` is, in the smallest unit.
    fn read(self, value: &Value) -> Option<f64> {
        let text = || value.as_str();
        match self {
            Self::Whole => value.as_u64().map(|number| number as f64),
            Self::Real => value.as_f64(),
            Self::Time => text()?.parse::<Duration>().ok().map(|span| span.as_nanos() as f64),
            Self::Amount => text()?.parse::<Bytes>().ok().map(|amount| amount.get() as f64),
            Self::Speed => text()?.parse::<Rate>().ok().map(|rate| rate.bits_per_sec() as f64),
        }
    }

    /// A part of an error's text that is such a value.
    fn read_text(self, text: &str) -> Option<f64> {
        match self {
            Self::Whole | Self::Real => text.parse().ok(),
            Self::Time | Self::Amount | Self::Speed => self.read(&json!(text)),
        }
    }

    fn write(self, number: f64) -> Value {
        match self {
            Self::Whole => json!(number as u64),
            Self::Real => json!(number),
            Self::Time => json!(Duration::from_nanos(number as u64)),
            Self::Amount => json!(Bytes::new(number as u64)),
            Self::Speed => json!(Rate::from_bits_per_sec(number as u64)),
        }
    }

    /// Values worth trying where nothing is known, in the smallest unit.
    fn guesses(self) -> &'static [f64] {
        match self {
            Self::Whole => &[0.0, 1.0, 2.0, 3.0, 7.0, 10.0, 100.0, 4096.0, 1e6, 4_294_967_295.0, 1e15, 1.8e19],
            Self::Real => &[-1.0, 0.0, 1e-9, 0.001, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 10.0, 1e3, 1e9, 1e300],
            Self::Time => &[0.0, 1.0, 1e3, 1e6, 2e7, 1e9, 6e10, 1e13, 1.8e19],
            Self::Amount => &[0.0, 1.0, 100.0, 1500.0, 9000.0, 1e5, 1e7, 1e12, 1.8e19],
            Self::Speed => &[0.0, 1.0, 1e3, 64e3, 1e6, 1e8, 1e10, 1e15, 1.8e19],
        }
    }
}

/// A key, and what it may be.
#[derive(Clone, Debug)]
struct Key {
    /// Names from the outside to the inside.
    path: Vec<String>,
    /// Values that serde takes; whether they are in range depends on the other keys too.
    values: Vec<Value>,
    /// How it is written, and the ends of its range, where it is a number.
    range: Option<(Kind, f64, f64)>,
}

/// Everything that a configuration may be.
#[derive(Clone, Debug)]
pub(crate) struct Space<T> {
    start: Value,
    keys: Vec<Key>,
    default: T,
}

impl<T: Configuration> Space<T> {
    /// Everything that can be reached from `default`, the `kind` of which stays.
    pub(crate) fn of(default: &T) -> Self {
        let mut start = serde_json::to_value(default).expect("a configuration can be written");
        let mut paths = Vec::new();
        find_keys::<T>(&mut start, &mut Vec::new(), &mut paths);
        assert_eq!(read::<T>(&start).as_ref(), Ok(default), "what was written can be read");
        let keys = paths.into_iter().map(|path| learn::<T>(&start, path)).collect();
        Self { start, keys, default: default.clone() }
    }

    /// What it starts from.
    pub(crate) fn default(&self) -> &T {
        &self.default
    }

    /// The names of all keys, `outer.inner` where one is in a group.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.path.join(".")).collect()
    }

    /// A configuration that `validate` accepts.
    pub(crate) fn draw(&self, random: &mut Random) -> T {
        let (mut value, mut drawn) = (self.start.clone(), self.default.clone());
        // Some draws change a key or two, most change nearly all.
        let changed = *random.pick(&[1, 4, 7, 8]);
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, random.below(place + 1));
        }
        order.retain(|_| random.below(8) < changed);
        // Some values are in range only beside what other keys become, so a key that was refused has another turn.
        for _ in 0..2 {
            order.retain(|&index| {
                let key = &self.keys[index];
                for _ in 0..4 {
                    let mut next = value.clone();
                    // A key of a group that is absent has no place.
                    let Some(place) = place_of(&mut next, &key.path) else { break };
                    let before = std::mem::replace(place, key.draw(random));
                    if *place == before {
                        continue;
                    }
                    if let Ok(accepted) = accept::<T>(&next) {
                        (value, drawn) = (next, accepted);
                        return false;
                    }
                }
                true
            });
        }
        drawn
    }

    /// Draws until every key has had two values that were accepted, and says which keys never had.
    pub(crate) fn keys_that_do_not_vary(&self, draws: u32, random: &mut Random) -> Vec<String> {
        let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for _ in 0..draws {
            let mut value = serde_json::to_value(self.draw(random)).expect("a configuration can be written");
            for key in &self.keys {
                if let Some(place) = place_of(&mut value, &key.path) {
                    seen.entry(key.path.join(".")).or_default().insert(place.to_string());
                }
            }
        }
        self.keys().into_iter().filter(|key| seen.get(key).is_none_or(|values| values.len() < 2)).collect()
    }
}

/// Everything that each entry of the registries may be, and what hosts may choose besides.
pub(crate) struct Spaces {
    /// A space for each startup scheme.
    pub(crate) startup: Vec<Space<StartupConfig>>,
    /// A space for each congestion avoidance.
    pub(crate) avoidance: Vec<Space<AvoidanceConfig>>,
    /// A space for each queue discipline.
    pub(crate) queue: Vec<Space<QueueConfig>>,
    /// The policies of hosts, with any startup scheme and congestion avoidance.
    pub(crate) policies: Space<ControllerConfig>,
}

/// The spaces of all registries; what they may be is found out once.
pub(crate) fn spaces() -> &'static Spaces {
    static SPACES: OnceLock<Spaces> = OnceLock::new();
    SPACES.get_or_init(|| {
        let (startup, avoidance) = (StartupConfig::defaults(), AvoidanceConfig::defaults());
        let policies = ControllerConfig::new(startup[0].clone(), avoidance[0].clone());
        Spaces {
            startup: startup.iter().map(Space::of).collect(),
            avoidance: avoidance.iter().map(Space::of).collect(),
            queue: QueueConfig::defaults().iter().map(Space::of).collect(),
            policies: Space::of(&policies),
        }
    })
}

impl Key {
    fn draw(&self, random: &mut Random) -> Value {
        match self.range {
            Some((kind, least, most)) if random.below(2) == 0 => {
                let share = random.share();
                let number = match random.below(3) {
                    0 => least + (most - least) * share,
                    // By orders of magnitude, from both ends.
                    1 if least > 0.0 => least * (most / least).powf(share),
                    1 => most * 1e-12f64.powf(share),
                    _ => least + (most - least) * 1e-9f64.powf(share),
                };
                kind.write(number)
            }
            _ => random.pick(&self.values).clone(),
        }
    }
}

/// The key's place; an absent key of a group that is there gets one.
fn place_of<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    let (last, outer) = path.split_last()?;
    let mut group = value;
    for name in outer {
        group = group.get_mut(name)?;
    }
    Some(group.as_object_mut()?.entry(last).or_insert(Value::Null))
}

fn read<T: Configuration>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

/// What `value` means, or the range that an error names.
fn accept<T: Configuration>(value: &Value) -> Result<T, Option<ConfigError>> {
    let config: T = read(value).map_err(|_| None)?;
    config.check().map_err(Some)?;
    Ok(config)
}

/// The names that an error of serde says were expected.
fn expected(error: &str) -> Vec<String> {
    let Some((_, names)) = error.split_once("expected ") else { return Vec::new() };
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Finds the keys of a group and of groups in it, and writes those down that the default leaves out.
fn find_keys<T: Configuration>(whole: &mut Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let group = |whole: &mut Value, path: &[String]| -> Option<Map<String, Value>> {
        let mut place = whole;
        for name in path {
            place = place.get_mut(name)?;
        }
        place.as_object().cloned()
    };
    let Some(keys) = group(whole, path) else { return };
    let mut probe = whole.clone();
    path.push("?".into());
    if let Some(place) = place_of(&mut probe, path) {
        *place = json!(1);
    }
    path.pop();
    let mut names: Vec<String> = keys.keys().cloned().collect();
    for name in read::<T>(&probe).err().iter().flat_map(|error| expected(error)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names.into_iter().filter(|name| name != "kind") {
        let is_new = !keys.contains_key(&name);
        path.push(name);
        let mut with = whole.clone();
        if let Some(place) = place_of(&mut with, path) {
            let is_group = place.is_object();
            found.push(path.clone());
            // A key that may be absent need not be able to say so.
            if !is_new || read::<T>(&with).is_ok() {
                *whole = with;
            }
            if is_group {
                find_keys::<T>(whole, path, found);
            }
        }
        path.pop();
    }
}

/// What the key at `path` may be.
fn learn<T: Configuration>(start: &Value, path: Vec<String>) -> Key {
    let with = |value: &Value| {
        let mut whole = start.clone();
        if let Some(place) = place_of(&mut whole, &path) {
            *place = value.clone();
        }
        whole
    };
    let default = place_of(&mut start.clone(), &path).cloned().unwrap_or(Value::Null);
    let mut values = Vec::new();
    let mut range = None;
    let offer = |values: &mut Vec<Value>, value: Value| -> Option<ConfigError> {
        let whole = with(&value);
        if !values.contains(&value) && read::<T>(&whole).is_ok() {
            values.push(value);
        }
        accept::<T>(&whole).err().flatten()
    };
    for value in [default.clone(), Value::Null, json!(true), json!(false)] {
        offer(&mut values, value);
    }
    for name in read::<T>(&with(&json!("?"))).err().iter().flat_map(|error| expected(error)) {
        offer(&mut values, json!(name));
    }
    let first = KINDS.into_iter().find(|kind| kind.read(&default).is_some());
    for kind in KINDS.into_iter().filter(|kind| default.is_null() || Some(*kind) == first) {
        let near = kind.read(&default).into_iter().flat_map(|number| [number / 2.0, number * 1.01, number * 2.0]);
        let numbers: Vec<f64> = near.chain(kind.guesses().iter().copied()).collect();
        let mut ends: Option<(f64, f64)> = None;
        for number in numbers {
            let Some(error) = offer(&mut values, kind.write(number)) else { continue };
            let named = error.allowed.split([' ', ',', ';', ':']).filter_map(|word| kind.read_text(word));
            for end in named {
                offer(&mut values, kind.write(end));
                let (least, most) = ends.unwrap_or((end, end));
                ends = Some((least.min(end), most.max(end)));
            }
        }
        // A key that is absent by default may be of another kind.
        let fits = |(least, most): &(f64, f64)| {
            least < most && read::<T>(&with(&kind.write(least + (most - least) * 0.37))).is_ok()
        };
        range = range.or(ends.filter(fits).map(|(least, most)| (kind, least, most)));
    }
    // Values that can be read but are refused whatever the other keys are would only be tried in vain.
    let accepted: Vec<Value> = values.iter().filter(|value| accept::<T>(&with(value)).is_ok()).cloned().collect();
    let near_misses = values.iter().filter(|value| !accepted.contains(value)).cloned();
    let values = accepted.iter().cycle().take(accepted.len() * 3).cloned().chain(near_misses).collect();
    Key { path, values, range }
}
