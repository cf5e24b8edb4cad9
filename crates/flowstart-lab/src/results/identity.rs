//! The identity of the experiment that rows belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use flowstart_core::rng::{mix, name_hash};
use serde::{Deserialize, Serialize};

use super::folder::MANIFEST;
use crate::study::plan::{AXES, Axis, Plan};

/// Longest text that a message repeats.
const SHOWN: usize = 200;

/// The beginning of a text that may be long.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The identity of the experiment that rows belong to: everything that determines them. The number of repetitions does
/// not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the program.
    pub program: String,
    /// Hash of its executable file.
    #[serde(default)]
    pub build: String,
    /// The user's text and its meaning, by name.
    pub parts: BTreeMap<String, Part>,
    /// What else determines rows that are not simulated, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
}

/// A part of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The user's text.
    pub written: String,
    /// Hash of its meaning, with every default and the content of files.
    pub hash: String,
}

impl Part {
    fn new(written: String, meaning: &str) -> Self {
        Self { written, hash: format!("{:016x}", name_hash(meaning)) }
    }
}

/// The user's text, or what stands for it where the transport decides.
fn written(plan: &Plan, axis: &Axis) -> String {
    let mut texts: Vec<String> = axis.texts(plan).into_iter().map(str::to_owned).collect();
    if axis == Axis::avoidance() && texts.is_empty() {
        texts.extend(plan.transports.iter().map(|transport| transport.own_avoidance().text));
        texts.dedup();
    }
    texts.join(" ")
}

impl Identity {
    /// The identity of a plan with this program.
    pub fn of(plan: &Plan) -> Self {
        let axes = AXES.iter().map(|axis| (axis.name(), Part::new(written(plan, axis), &axis.meaning(plan))));
        let Plan { flows, seed, hint, unknown, conditions, .. } = plan;
        let others = [
            ("flows", Part::new(flows.to_string(), &format!("{flows:?}"))),
            ("seed", Part::new(seed.to_string(), &format!("{seed:?}"))),
            ("hint", Part::new(hint.to_string(), &format!("{hint:?}"))),
            ("unknown", Part::new(unknown.to_string(), &format!("{unknown:?}"))),
        ];
        let parts = axes.chain(others).map(|(name, part)| (name.to_owned(), part)).collect();
        let (program, build) = (env!("CARGO_PKG_VERSION").to_owned(), build().to_owned());
        Self { program, build, parts, conditions: conditions.clone() }
    }

    /// The difference between `self`, which is on disk, and `now`.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        self.other_program(now).into_iter().chain(self.other_parts(now)).chain(self.other_conditions(now)).collect()
    }

    /// The differences of the machine, for rows that are not simulated.
    fn other_conditions(&self, now: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.conditions.keys().chain(now.conditions.keys()).collect();
        let difference = |name: &String| {
            let [then, now] = [self, now].map(|one| one.conditions.get(name).map_or("unknown", String::as_str));
            (then != now).then(|| format!("its {name} was {}, now it is {}", short(then), short(now)))
        };
        names.into_iter().filter_map(difference).collect()
    }

    /// The difference of the program, if any.
    pub fn other_program(&self, now: &Self) -> Option<String> {
        if self.program != now.program {
            return Some(format!("its program is flowstart {}, this is {}", self.program, now.program));
        }
        (self.build != now.build).then(|| {
            format!("it is of another build of the program ({}, this is {})", named(&self.build), named(&now.build))
        })
    }

    /// The differences between the question of `self`, with which rows are stored, and what the text beside them means
    /// to this program. Another version may have other defaults: of its text only the words must be the same.
    pub fn edits(&self, now: &Self) -> Vec<String> {
        let mut then = self.clone();
        if self.program != now.program {
            for (name, part) in &mut then.parts {
                if let Some(same) = now.parts.get(name).filter(|same| same.written == part.written) {
                    part.hash.clone_from(&same.hash);
                }
            }
            then.parts.retain(|name, _| now.parts.contains_key(name));
        }
        then.other_parts(now)
    }

    /// The differences in the user's text and in its meaning.
    pub fn other_parts(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let names: BTreeSet<&String> = self.parts.keys().chain(now.parts.keys()).collect();
        for name in names {
            let (then, now) = (self.parts.get(name), now.parts.get(name));
            if then == now || is_default(name, then, now) {
                continue;
            }
            let written =
                |part: Option<&Part>| part.map_or("nothing".to_owned(), |part| format!("`{}`", short(&part.written)));
            if then.map(|part| &part.written) == now.map(|part| &part.written) {
                let why = "means something else: its options, its defaults or a file that it names are others";
                differences.push(format!("{name} is {} as well, but {why}", written(now)));
            } else {
                differences.push(format!("its {name} is {}, now it is {}", written(then), written(now)));
            }
        }
        differences
    }
}

/// Whether an axis has its default now that an older program did not know.
fn is_default(name: &str, then: Option<&Part>, now: Option<&Part>) -> bool {
    let default = Axis::key(name).and_then(|key| key.default);
    then.is_none() && now.is_some_and(|now| Some(now.written.as_str()) == default)
}

/// What is said of results whose rows answer another question than the text beside them asks.
pub fn other_question(differences: &[String]) -> String {
    format!("this program reads another question from {MANIFEST} than the results answer: {}", differences.join("; "))
}

/// Hash of the program's executable file, which distinguishes builds of one version; empty if it cannot be read.
fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        // The running file, even if another file has its name by now.
        let running = Path::new("/proc/self/exe");
        let file = File::open(running).or_else(|_| File::open(std::env::current_exe()?));
        file.and_then(content_hash).map_or_else(|_| String::new(), |hash| format!("{hash:016x}"))
    })
}

/// Hash of all readable bytes, in words of eight bytes.
fn content_hash(mut input: impl Read) -> io::Result<u64> {
    let mut hash = 0;
    let mut block = Vec::new();
    loop {
        block.clear();
        let length = (&mut input).take(1 << 20).read_to_end(&mut block)?;
        if length == 0 {
            return Ok(hash);
        }
        for word in block.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            hash = mix(hash ^ u64::from_le_bytes(bytes));
        }
        hash = mix(hash ^ length as u64);
    }
}

fn named(build: &str) -> &str {
    if build.is_empty() { "unknown" } else { build }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_known_and_every_byte_of_it_counts() {
        assert_eq!(build().len(), 16, "`{}`", build());
        let hash = |bytes: &[u8]| content_hash(bytes).unwrap();
        let long: Vec<u8> = (0..(1 << 20) + 9).map(|place: u32| (place % 251) as u8).collect();
        for place in [0, 7, 8, 1 << 20, (1 << 20) + 8] {
            let mut other = long.clone();
            other[place] ^= 1;
            assert_ne!(hash(&long), hash(&other), "byte {place}");
        }
        // Zeros at the end do not count as padding.
        assert_ne!(hash(b"a"), hash(b"a\0"));
        assert_ne!(hash(b""), hash(b"\0"));
    }
}
