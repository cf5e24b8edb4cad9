//! The settings among which the worst one is looked for: links, traffic, and what is known of the path.
//!
//! Each dimension has values that are written as `1mbit..100mbit`, a range whose logarithm is drawn, or as
//! `taildrop|codel|pie`. The first of several is the plain one, to which the smallest setting goes back where it can.

use std::path::Path;

use flowstart_core::needs::Needs;
use flowstart_core::sources::Known;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use serde::Serialize;

use crate::spec::InputError;
use crate::spec::algorithm::scheme;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::study::scenario::Scenario;

/// The question of a search.
#[derive(Clone, Debug)]
pub struct Question {
    /// The scheme whose worst setting is looked for, as `--scheme` takes it.
    pub scheme: String,
    /// The schemes beside which it is bad; the first is the baseline.
    pub against: Vec<String>,
    /// The transport, as `--transport` takes it.
    pub transport: String,
    /// The congestion avoidance, as `--avoidance` takes it; `None`: the schemes' own.
    pub avoidance: Option<String>,
    /// Keys that every link has in addition, such as `quick_start=target`.
    pub link_options: Option<String>,
}

impl Question {
    /// All schemes of a run, the one in question last.
    pub fn schemes(&self) -> Vec<String> {
        self.against.iter().chain([&self.scheme]).cloned().collect()
    }
}

/// What the numbers of a dimension are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Rate,
    Time,
    Size,
    /// A buffer in bandwidth-delay products.
    Bdp,
    /// What is known over what is true.
    Factor,
}

impl Quantity {
    fn read(self, text: &str) -> Result<f64, String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let number = |text: &str, what: &str| {
            let number = text.trim().parse().ok().filter(|number: &f64| (1e-6..=1e6).contains(number));
            number.ok_or_else(|| format!("`{text}` is not {what}"))
        };
        let value = match self {
            Self::Rate => text.parse::<Rate>().map_err(|error| words(&error))?.bits_per_sec() as f64,
            Self::Time => text.parse::<Duration>().map_err(|error| words(&error))?.as_nanos() as f64,
            Self::Size => text.parse::<Bytes>().map_err(|error| words(&error))?.get() as f64,
            Self::Bdp => {
                let what = "a buffer in bandwidth-delay products, such as 0.5bdp";
                number(text.strip_suffix("bdp").ok_or_else(|| format!("`{text}` is not {what}"))?, what)?
            }
            Self::Factor => number(text, "a factor, such as 10")?,
        };
        if value > 0.0 { Ok(value) } else { Err(format!("`{text}`: allowed is more than 0")) }
    }

    fn write(self, value: f64) -> String {
        match self {
            Self::Rate => Rate::from_bits_per_sec(value.round() as u64).to_string(),
            Self::Time => Duration::from_nanos(value.round() as u64).to_string(),
            Self::Size => Bytes::new(value.round() as u64).to_string(),
            Self::Bdp => format!("{value}bdp"),
            Self::Factor => value.to_string(),
        }
    }
}

/// Where a dimension's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A key of the link, by the dimension's name.
    Link,
    /// A key of the scenario, by the dimension's name.
    Axis,
    /// A key of the transport.
    Transport(&'static str),
    /// Whether what is known is true, false, or nothing.
    Knowledge,
    /// How false a source is, if what is known is false.
    Factor(Known),
}

/// A dimension as it is without instructions.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its values.
    pub values: &'static str,
    quantity: Option<Quantity>,
    /// The plain value of a range.
    plain: Option<f64>,
    place: Place,
}

const fn numbers(name: &'static str, meaning: &'static str, values: &'static str, quantity: Quantity) -> Declared {
    Declared { name, meaning, values, quantity: Some(quantity), plain: None, place: Place::Link }
}

const fn words(name: &'static str, meaning: &'static str, values: &'static str, place: Place) -> Declared {
    Declared { name, meaning, values, quantity: None, plain: None, place }
}

const fn factor(name: &'static str, meaning: &'static str, of: Known) -> Declared {
    let declared = numbers(name, meaning, "0.1..100", Quantity::Factor);
    Declared { plain: Some(1.0), place: Place::Factor(of), ..declared }
}

/// Smallest buffer in bytes, and as it is written. A tenth of a small BDP is less than a packet, which no link has.
const SMALLEST: f64 = 15_000.0;
const SMALLEST_PACKETS: &str = "10pkt";
/// The word for a key that is left out.
const WITHOUT: &str = "none";
/// The values of what is known.
const TRUE: &str = "true";
const FALSE: &str = "false";
const NOTHING: &str = "none";

/// All dimensions. Rate and RTT end where a search has to wait: a flow that is established over a large BDP takes long
/// to simulate.
pub const DIMENSIONS: [Declared; 14] = [
    numbers("rate", "rate of the bottleneck", "1mbit..100mbit", Quantity::Rate),
    numbers("rtt", "RTT of the path", "10ms..300ms", Quantity::Time),
    Declared { plain: Some(1.0), ..numbers("buffer", "buffer of the bottleneck", "0.1bdp..4bdp", Quantity::Bdp) },
    Declared { place: Place::Axis, ..numbers("size", "what a transfer carries", "70KB..5MB", Quantity::Size) },
    words("aqm", "queue discipline of the bottleneck", "taildrop|codel|fq-codel|pie|red", Place::Axis),
    words("competitor", "who else uses it", "none|cubic|reno|bbr|cubic:count=4", Place::Axis),
    words("acks", "packets for an acknowledgement", "default|1|10", Place::Transport("ack.every")),
    words("policer", "bucket whose excess is dropped", "none|30KB|300KB", Place::Link),
    words("jitter", "variable delay of the bottleneck", "none|5ms/20ms|20ms/20ms", Place::Link),
    words("rate_steps", "steps of the rate", "none|50%/1s|80%/1s", Place::Link),
    words("knowledge", "what is known of the path: true, false, none", "true|false|none", Place::Knowledge),
    factor("hint", "false hints over the truth", Known::Hint),
    factor("saved", "false saved rates over the truth", Known::Saved),
    factor("oracle", "false oracles over the truth", Known::Oracle),
];

/// The values of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers from the first to the second, by their logarithm.
    Range(f64, f64),
    /// Words, the plain one first.
    Words(Vec<String>),
}

/// A dimension of a space.
#[derive(Clone, Debug)]
pub struct Dimension {
    declared: &'static Declared,
    /// Its values.
    pub values: Values,
    /// Whether the user gave them.
    is_given: bool,
}

/// A setting: the value of each dimension; of words their place.
pub type Point = Vec<f64>;

/// The dimensions of a search.
#[derive(Clone, Debug)]
pub struct Space(Vec<Dimension>);

/// What results say of a dimension.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    name: &'static str,
    values: String,
}

fn refused(given: &str, problem: impl std::fmt::Display) -> InputError {
    InputError::new("within", given, problem.to_string())
}

impl Declared {
    fn values(&self, text: &str) -> Result<Values, String> {
        let number = |text: &str| self.quantity.map_or(Ok(0.0), |quantity| quantity.read(text.trim()));
        if let Some((least, most)) = text.split_once("..") {
            if self.quantity.is_none() {
                return Err(format!("{} has no range; allowed are values with | between them", self.name));
            }
            let (least, most) = (number(least)?, number(most)?);
            if least > most {
                return Err(format!("the range {text} is empty; the smaller value comes first"));
            }
            return Ok(Values::Range(least, most));
        }
        let words: Vec<String> = text.split('|').map(|word| word.trim().to_owned()).collect();
        for (place, word) in words.iter().enumerate() {
            if word.is_empty() {
                return Err("a value is empty; allowed are LEAST..MOST, or values with | between them".into());
            }
            if words[..place].contains(word) {
                return Err(format!("`{word}` is there twice"));
            }
            number(word)?;
        }
        if self.place == Place::Knowledge
            && let Some(word) = words.iter().find(|word| ![TRUE, FALSE, NOTHING].contains(&word.as_str()))
        {
            return Err(format!("`{word}`: allowed are {TRUE}, {FALSE} and {NOTHING}"));
        }
        Ok(Values::Words(words))
    }
}

/// Refuses schemes that get nothing of what makes them another one than the baseline.
fn check_needs(plan: &Plan) -> Result<(), InputError> {
    let lacks_routers = plan.links.iter().any(|link| link.routers.is_none());
    for scheme in &plan.schemes {
        let (text, needs) = (&scheme.text, scheme.first().needs());
        if needs.contains(Needs::APPROVAL) && lacks_routers {
            let problem = "needs routers that approve its requests: add quick_start=target to the links' options";
            return Err(InputError::new("scheme", text, problem));
        }
        if needs.contains(Needs::SHARED_WINDOW) {
            let problem = "shares with other transfers of the same server, and here there is one";
            return Err(InputError::new("scheme", text, problem));
        }
    }
    Ok(())
}

/// A number with this many significant digits.
pub(super) fn rounded(value: f64, digits: i32) -> f64 {
    if value <= 0.0 {
        return value;
    }
    let scale = 10f64.powi(digits - 1 - value.log10().floor() as i32);
    let number = (value * scale).round() / scale;
    // Scaling leaves digits that nobody wrote.
    format!("{number:.12}").parse().unwrap_or(number)
}

impl Dimension {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.declared.name
    }

    /// The plain value.
    fn plain(&self) -> f64 {
        match self.values {
            Values::Words(_) => 0.0,
            Values::Range(least, most) => match self.declared.plain {
                Some(plain) => plain.clamp(least, most),
                None => rounded((least * most).sqrt(), 1).clamp(least, most),
            },
        }
    }

    /// The values that are simpler than this one, the simplest first.
    pub(super) fn simpler(&self, value: f64) -> Vec<f64> {
        let Values::Range(least, most) = self.values else {
            return if value == 0.0 { Vec::new() } else { vec![0.0] };
        };
        let rounder = [1, 2].map(|digits| rounded(value, digits).clamp(least, most));
        let mut all: Vec<f64> = self.declared.plain.map(|plain| plain.clamp(least, most)).into_iter().collect();
        all.extend(rounder);
        let end = all.iter().position(|one| *one == value).unwrap_or(all.len());
        all.truncate(end);
        all
    }

    fn text(&self, value: f64) -> String {
        match (&self.values, self.declared.quantity) {
            (Values::Words(words), _) => words.get(value as usize).or(words.first()).cloned().unwrap_or_default(),
            (Values::Range(..), Some(quantity)) => quantity.write(value),
            (Values::Range(..), None) => String::new(),
        }
    }
}

impl Space {
    /// The space of a question, each of `given` in place of what the dimension has by itself: `rate=10mbit..50mbit`.
    /// Also the values that are left out, because the transport or a scheme refuses them.
    ///
    /// # Errors
    ///
    /// What cannot be read, and values of the user's that are refused.
    pub fn new(question: &Question, given: &[String]) -> Result<(Self, Vec<String>), InputError> {
        let mut dimensions = Vec::new();
        for declared in &DIMENSIONS {
            let values = declared.values(declared.values).map_err(|problem| refused(declared.values, problem))?;
            dimensions.push(Dimension { declared, values, is_given: false });
        }
        for text in given {
            let Some((name, values)) = text.split_once('=') else {
                return Err(refused(text, "expected NAME=LEAST..MOST, or NAME=VALUE|VALUE"));
            };
            let Some(dimension) = dimensions.iter_mut().find(|one| names::is_same(one.name(), name.trim())) else {
                let all: Vec<&str> = DIMENSIONS.iter().map(|one| one.name).collect();
                return Err(refused(text, names::unknown(name, &all, format!("allowed are {}", all.join(", ")))));
            };
            if dimension.is_given {
                return Err(refused(text, "is given twice"));
            }
            dimension.values = dimension.declared.values(values).map_err(|problem| refused(text, problem))?;
            dimension.is_given = true;
        }
        let mut space = Self(dimensions);
        space.leave_out_unknown(question)?;
        let left_out = space.leave_out_refused(question)?;
        Ok((space, left_out))
    }

    /// Leaves out knowledge that no scheme senses.
    fn leave_out_unknown(&mut self, question: &Question) -> Result<(), InputError> {
        let mut sensed = Vec::new();
        for text in question.schemes() {
            // The transport's own scheme has no configuration, and senses nothing here.
            if let Ok(read) = scheme("scheme", &text, &StartupConfig::SlowStart(Default::default())) {
                sensed.extend(read.value.senses());
            }
        }
        let is_sensed = |dimension: &Dimension| match dimension.declared.place {
            Place::Factor(of) => sensed.contains(&of),
            Place::Knowledge => !sensed.is_empty(),
            _ => true,
        };
        if let Some(dimension) = self.0.iter().find(|dimension| dimension.is_given && !is_sensed(dimension)) {
            let problem = format!("no scheme of {} senses it", question.schemes().join(", "));
            return Err(refused(dimension.name(), problem));
        }
        self.0.retain(is_sensed);
        Ok(())
    }

    /// Leaves out the values that cannot be run beside otherwise plain ones, and says which.
    fn leave_out_refused(&mut self, question: &Question) -> Result<Vec<String>, InputError> {
        let plain = self.plain();
        check_needs(&self.study(&plain, question, 1, 1)?.plan)?;
        let mut left_out = Vec::new();
        for place in 0..self.0.len() {
            let with = |value: f64| {
                let mut point = plain.clone();
                point[place] = value;
                self.study(&point, question, 1, 1).err()
            };
            let dimension = &self.0[place];
            match &dimension.values {
                Values::Range(least, most) => {
                    if let Some(error) = [*least, *most].into_iter().find_map(with) {
                        return Err(error);
                    }
                }
                Values::Words(words) => {
                    let problems: Vec<Option<InputError>> = (0..words.len()).map(|word| with(word as f64)).collect();
                    if let Some(error) = problems.iter().flatten().next().filter(|_| dimension.is_given) {
                        return Err(error.clone());
                    }
                    let mut kept = Vec::new();
                    for (word, problem) in words.iter().zip(problems) {
                        match problem {
                            None => kept.push(word.clone()),
                            Some(error) => left_out.push(format!("{} {word}: {error}", dimension.name())),
                        }
                    }
                    self.0[place].values = Values::Words(kept);
                }
            }
        }
        Ok(left_out)
    }

    /// The dimensions.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.0
    }

    /// What results say of them.
    pub fn described(&self) -> Vec<Described> {
        let values = |dimension: &Dimension| match (&dimension.values, dimension.declared.quantity) {
            (Values::Words(words), _) => words.join("|"),
            (Values::Range(least, most), Some(quantity)) => {
                format!("{}..{}", quantity.write(*least), quantity.write(*most))
            }
            (Values::Range(..), None) => String::new(),
        };
        self.0.iter().map(|dimension| Described { name: dimension.name(), values: values(dimension) }).collect()
    }

    /// The plain setting.
    pub fn plain(&self) -> Point {
        self.0.iter().map(Dimension::plain).collect()
    }

    /// Whether a dimension changes anything in this setting.
    pub fn matters(&self, point: &Point, place: usize) -> bool {
        !matches!(self.0[place].declared.place, Place::Factor(_)) || self.knowledge(point) == FALSE
    }

    fn text(&self, point: &Point, of: impl Fn(&Declared) -> bool) -> Option<String> {
        let place = self.0.iter().position(|dimension| of(dimension.declared))?;
        Some(self.0[place].text(point[place]))
    }

    fn knowledge(&self, point: &Point) -> String {
        self.text(point, |one| one.place == Place::Knowledge).unwrap_or_else(|| TRUE.to_owned())
    }

    /// The link of a setting, as `--link` takes it.
    fn link(&self, point: &Point) -> String {
        let named = |name: &str| self.text(point, |one| one.name == name).unwrap_or_default();
        let rate = Quantity::Rate.read(&named("rate")).unwrap_or(1e6);
        let mut keys = Vec::new();
        for (dimension, value) in self.0.iter().zip(point) {
            let (name, text) = (dimension.name(), dimension.text(*value));
            match dimension.declared.place {
                Place::Link if dimension.declared.quantity == Some(Quantity::Bdp) => {
                    let rtt = Quantity::Time.read(&named("rtt")).unwrap_or(1e6);
                    let buffer = value * rate * rtt / 8e9;
                    keys.push(format!("{name}={}", if buffer < SMALLEST { SMALLEST_PACKETS.to_owned() } else { text }));
                }
                Place::Link if text != WITHOUT => keys.push(format!("{name}={text}")),
                Place::Factor(of) if self.knowledge(point) == FALSE && *value != 1.0 => {
                    let factor = Quantity::Factor.read(&text).unwrap_or(1.0);
                    let stated = Quantity::Rate.write(rate * factor);
                    keys.push(match of {
                        Known::Saved => format!("saved={stated}/{}/60s", named("rtt")),
                        _ => format!("{name}={stated}"),
                    });
                }
                _ => {}
            }
        }
        keys.join(",")
    }

    /// The scenario of a setting.
    pub fn scenario(&self, point: &Point, question: &Question, reps: u32, seed: u64) -> Scenario {
        let mut scenario = Scenario {
            link: vec![self.link(point)],
            scheme: question.schemes(),
            avoidance: question.avoidance.iter().cloned().collect(),
            link_options: question.link_options.clone(),
            flows: 1,
            reps,
            seed,
            hint: true,
            unknown: self.knowledge(point) == NOTHING,
            noise: true,
            ..Scenario::default()
        };
        let mut transport = question.transport.clone();
        for (dimension, value) in self.0.iter().zip(point) {
            let text = dimension.text(*value);
            match dimension.declared.place {
                Place::Axis => {
                    if let Some(list) = scenario.list(dimension.name()) {
                        *list = vec![text];
                    }
                }
                // The first of its values is the transport's own.
                Place::Transport(key) if *value > 0.0 || dimension.is_given => {
                    let before = if transport.contains(':') { ',' } else { ':' };
                    transport = format!("{transport}{before}{key}={text}");
                }
                _ => {}
            }
        }
        scenario.transport = vec![transport];
        scenario
    }

    /// The study of a setting.
    ///
    /// # Errors
    ///
    /// What the transport or a scheme refuses.
    pub fn study(&self, point: &Point, question: &Question, reps: u32, seed: u64) -> Result<Study, InputError> {
        Study::new(self.scenario(point, question, reps, seed), Path::new("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(scheme: &str) -> Question {
        Question {
            scheme: scheme.to_owned(),
            against: vec!["slow-start".to_owned()],
            transport: "model-quic".to_owned(),
            avoidance: None,
            link_options: None,
        }
    }

    fn space(scheme: &str, given: &[&str]) -> Space {
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        let (space, left_out) = Space::new(&question(scheme), &given).unwrap();
        assert_eq!(left_out, [] as [String; 0]);
        space
    }

    #[test]
    fn a_setting_is_a_scenario() {
        let space = space("blitzstart", &["rate=20mbit..40mbit", "rtt=50ms", "aqm=pie"]);
        let names: Vec<&str> = space.dimensions().iter().map(Dimension::name).collect();
        assert!(names.contains(&"hint") && !names.contains(&"saved"), "{names:?}");
        let mut point = space.plain();
        let at = |name: &str| names.iter().position(|one| *one == name).unwrap();
        // The middle of 20 and 40 by their logarithms is 28, one digit of it 30.
        assert_eq!(space.link(&point), "rate=30mbit,rtt=50ms,buffer=1bdp");
        point[at("hint")] = 10.0;
        assert!(!space.matters(&point, at("hint")));
        point[at("knowledge")] = 1.0;
        point[at("policer")] = 2.0;
        point[at("buffer")] = 0.1;
        // A tenth of 188 kB.
        assert!(space.link(&point).contains("buffer=0.1bdp"));
        point[at("buffer")] = 0.05;
        assert!(space.link(&point).contains("buffer=10pkt"));
        point[at("buffer")] = 1.0;
        point[at("acks")] = 2.0;
        assert!(space.matters(&point, at("hint")));
        let scenario = space.scenario(&point, &question("blitzstart"), 3, 7);
        assert_eq!(scenario.link, ["rate=30mbit,rtt=50ms,buffer=1bdp,policer=300KB,hint=300mbit"]);
        assert_eq!((&scenario.aqm[0][..], &scenario.transport[0][..]), ("pie", "model-quic:ack.every=10"));
        point[at("knowledge")] = 2.0;
        assert!(space.scenario(&point, &question("blitzstart"), 3, 7).unknown);
        let saved = Space::new(&question("careful-resume"), &[]).unwrap().0;
        let mut point = saved.plain();
        let names: Vec<&str> = saved.dimensions().iter().map(Dimension::name).collect();
        point[names.iter().position(|one| *one == "knowledge").unwrap()] = 1.0;
        point[names.iter().position(|one| *one == "saved").unwrap()] = 4.0;
        assert!(saved.link(&point).ends_with("saved=40mbit/50ms/60s"), "{}", saved.link(&point));
    }

    #[test]
    fn numbers_get_simpler_by_their_digits() {
        assert_eq!([rounded(12_345.0, 3), rounded(0.123_45, 2), rounded(98.7, 1)], [12_300.0, 0.12, 100.0]);
        let space = space("slow-start:iw=32", &["buffer=0.1bdp..8bdp"]);
        let buffer = space.dimensions().iter().find(|one| one.name() == "buffer").unwrap();
        assert_eq!(buffer.simpler(2.345), [1.0, 2.0, 2.3]);
        assert_eq!(buffer.simpler(2.0), [1.0]);
        assert_eq!(buffer.simpler(1.0), [] as [f64; 0]);
        let aqm = space.dimensions().iter().find(|one| one.name() == "aqm").unwrap();
        assert_eq!((aqm.simpler(3.0), aqm.simpler(0.0)), (vec![0.0], vec![]));
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        for (given, expected) in [
            ("speed=1mbit..2mbit", "`speed`"),
            ("rate", "expected NAME="),
            ("rate=2mbit..1mbit", "is empty"),
            ("rate=fast", "`fast`"),
            ("rate=0bit..1mbit", "more than 0"),
            ("rate=1mbit|1mbit", "twice"),
            ("rate=", "empty"),
            ("buffer=1MB..2MB", "bandwidth-delay products"),
            ("buffer=NaNbdp..1bdp", "bandwidth-delay products"),
            ("aqm=codel..pie", "has no range"),
            ("aqm=taildrop|kodel", "kodel"),
            ("knowledge=maybe", "`maybe`: allowed are"),
            ("saved=1..10", "no scheme of slow-start, blitzstart senses it"),
            ("rate=1bit..1mbit", "rate"),
            ("size=70KB|none", "none"),
        ] {
            let told = Space::new(&question("blitzstart"), &[given.to_owned()]).unwrap_err().to_string();
            assert!(told.contains(expected), "{given}: {told}");
        }
        for (scheme, expected) in [
            ("quick-start", "needs routers"),
            ("ensemble-sharing", "shares with other transfers"),
            ("kick-start", "kick-start"),
        ] {
            let told = Space::new(&question(scheme), &[]).unwrap_err().to_string();
            assert!(told.contains(expected), "{scheme}: {told}");
        }
        let routed = Question { link_options: Some("quick_start=target".to_owned()), ..question("quick-start") };
        assert!(Space::new(&routed, &[]).is_ok());
        let twice = ["rtt=10ms".to_owned(), "rtt=20ms".to_owned()];
        assert!(Space::new(&question("blitzstart"), &twice).unwrap_err().to_string().contains("given twice"));
    }
}
