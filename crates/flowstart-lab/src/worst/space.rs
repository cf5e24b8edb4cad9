//! The settings among which the worst one is looked for: links, traffic, and what is known of the path.

use std::path::Path;

use flowstart_core::needs::Needs;
use flowstart_core::sources::Known;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use serde::Serialize;

use super::dimension::{
    ALONE, COMPETITOR, DIMENSIONS, Declared, Dimension, FALSE, NOTHING, OWN, Place, Quantity, TRUE, Values, WITHOUT,
};
use crate::run::knowledge::SAVED_AGE;
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

/// Smallest buffer in bytes, and as it is written. A tenth of a small BDP is less than a packet, which no link has.
const SMALLEST: f64 = 15_000.0;
const SMALLEST_PACKETS: &str = "10pkt";

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

/// Refuses keys of all links that would hide what is searched.
fn check_options(question: &Question) -> Result<(), InputError> {
    let Some(options) = &question.link_options else { return Ok(()) };
    let is_of = |one: &&Declared| {
        let is_key = matches!(one.place, Place::Link | Place::Factor(_));
        is_key && options.split(',').any(|key| names::is_same(key.split('=').next().unwrap_or(key).trim(), one.name))
    };
    DIMENSIONS.iter().find(is_of).map_or(Ok(()), |one| {
        let problem = format!("{} is searched; its values are given by --within {}=VALUES", one.name, one.name);
        Err(InputError::new("link_options", options, problem))
    })
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
        check_options(question)?;
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

    /// Whether there are others in any of its settings.
    pub fn has_others(&self) -> bool {
        let is_alone = |values: &Values| matches!(values, Values::Words(words) if words.iter().all(|one| one == ALONE));
        !self.0.iter().any(|dimension| dimension.name() == COMPETITOR && is_alone(&dimension.values))
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

    /// The settings in which one dimension is as far from plain as it can be: each end of a range, and each word. What
    /// is known is false where that is what makes a dimension matter.
    pub(super) fn corners(&self) -> Vec<Point> {
        let is_knowledge = |dimension: &Dimension| dimension.declared.place == Place::Knowledge;
        let knowledge = self.0.iter().position(is_knowledge);
        let false_word = knowledge.and_then(|place| match &self.0[place].values {
            Values::Words(words) => words.iter().position(|word| word == FALSE).map(|word| word as f64),
            Values::Range(..) => None,
        });
        let mut corners = Vec::new();
        for (place, dimension) in self.0.iter().enumerate() {
            let values = match &dimension.values {
                Values::Range(least, most) => vec![*least, *most],
                Values::Words(words) => (1..words.len()).map(|word| word as f64).collect(),
            };
            for value in values {
                let mut corner = self.plain();
                corner[place] = value;
                if let (Place::Factor(_), Some(knowledge), Some(word)) =
                    (dimension.declared.place, knowledge, false_word)
                {
                    corner[knowledge] = word;
                }
                corners.push(self.canonical(corner));
            }
        }
        corners
    }

    /// Whether a dimension changes anything in this setting.
    pub fn matters(&self, point: &Point, place: usize) -> bool {
        !matches!(self.0[place].declared.place, Place::Factor(_)) || self.knowledge(point) == FALSE
    }

    /// The same setting, plain where nothing depends on a value.
    pub(super) fn canonical(&self, mut point: Point) -> Point {
        let plain = self.plain();
        for place in 0..point.len() {
            if !self.matters(&point, place) {
                point[place] = plain[place];
            }
        }
        point
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
        let named = |name: &str| {
            let dimension = self.0.iter().zip(point).find(|(dimension, _)| dimension.name() == name);
            dimension.map_or((1.0, String::new()), |(one, value)| (one.number(*value), one.text(*value)))
        };
        let ((rate, _), (rtt, rtt_text)) = (named("rate"), named("rtt"));
        let mut keys = Vec::new();
        for (dimension, value) in self.0.iter().zip(point) {
            let (name, text, number) = (dimension.name(), dimension.text(*value), dimension.number(*value));
            match dimension.declared.place {
                Place::Link if dimension.declared.quantity == Some(Quantity::Bdp) => {
                    let buffer = number * rate * rtt / 8e9;
                    keys.push(format!("{name}={}", if buffer < SMALLEST { SMALLEST_PACKETS.to_owned() } else { text }));
                }
                Place::Link if text != WITHOUT => keys.push(format!("{name}={text}")),
                Place::Factor(of) if self.knowledge(point) == FALSE && number != 1.0 => {
                    let stated = Quantity::Rate.write(rate * number);
                    keys.push(match of {
                        Known::Saved => format!("saved={stated}/{rtt_text}/{SAVED_AGE}"),
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
                Place::Transport(key) if text != OWN => {
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
    use super::super::dimension::rounded;
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
        let corners = space.corners();
        assert!(corners.iter().any(|corner| space.link(corner).ends_with("buffer=1bdp,hint=3gbit")), "{corners:?}");
        // Words of a quantity are numbers, too.
        let worded = Space::new(
            &question("blitzstart"),
            &[
                "rate=20mbit".to_owned(),
                "rtt=50ms|80ms".to_owned(),
                "buffer=2bdp|3bdp".to_owned(),
                "hint=0.5|20".to_owned(),
            ],
        );
        let worded = worded.unwrap().0;
        let names: Vec<&str> = worded.dimensions().iter().map(Dimension::name).collect();
        let at = |name: &str| names.iter().position(|one| *one == name).unwrap();
        let mut point = worded.plain();
        point[at("knowledge")] = 1.0;
        point[at("hint")] = 1.0;
        point[at("rtt")] = 1.0;
        assert_eq!(worded.link(&point), "rate=20mbit,rtt=80ms,buffer=2bdp,hint=400mbit");
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
        let hidden = Question { link_options: Some("xcp=off,rtt=20ms".to_owned()), ..question("blitzstart") };
        assert!(Space::new(&hidden, &[]).unwrap_err().to_string().contains("rtt is searched"));
        let routed = Question { link_options: Some("quick_start=target".to_owned()), ..question("quick-start") };
        assert!(Space::new(&routed, &[]).is_ok());
        let twice = ["rtt=10ms".to_owned(), "rtt=20ms".to_owned()];
        assert!(Space::new(&question("blitzstart"), &twice).unwrap_err().to_string().contains("given twice"));
    }
}
