//! Specs as users write them: `name:key=value,key=value`, or `key=value,key=value`.
//!
//! A parser takes a [`Spec`] apart, reads the keys that it knows, and ends with [`Spec::finish`], which refuses other
//! keys and lists the known ones:
//!
//! ```
//! use flowstart_core::spec::Spec;
//! use flowstart_core::time::Duration;
//!
//! let mut spec = Spec::parse("--competitor", "onoff:on=200ms,off=1s")?;
//! let mean_on: Option<Duration> = spec.read("on")?;
//! let mean_off: Option<Duration> = spec.read("off")?;
//! spec.finish()?;
//! assert_eq!((spec.name(), mean_on), ("onoff", Some(Duration::from_millis(200))));
//! # assert_eq!(mean_off, Some(Duration::from_millis(1000)));
//!
//! let mut wrong = Spec::parse("--competitor", "onoff:of=1s")?;
//! let _: Option<Duration> = wrong.read("off")?;
//! let error = wrong.finish().unwrap_err().to_string();
//! assert_eq!(error, "--competitor `onoff:of=1s`: `of` is not known here (did you mean `off`?); allowed are off");
//! # Ok::<(), flowstart_core::spec::InputError>(())
//! ```
//!
//! The first colon ends the name unless a `=` stands before it, so values may hold colons: names of files, and specs of
//! one key. A comma ends every value; lists are separated by `/`. Case does not count in names and keys, and `_` is
//! `-`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::ops::RangeInclusive;
use core::str::FromStr;

pub mod names;
pub mod plain;

/// Bad input: where it stands, what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The option or the field of a scenario.
    pub field: String,
    /// What was written there.
    pub value: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl InputError {
    /// An error in `field`, where `value` was written.
    pub fn new(field: impl Into<String>, value: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), value: value.into(), problem: problem.into() }
    }
}

impl Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, problem } = self;
        let (value, problem) = (printable(value), printable(problem));
        if value.is_empty() { write!(f, "{field}: {problem}") } else { write!(f, "{field} `{value}`: {problem}") }
    }
}

impl core::error::Error for InputError {}

/// A text for a terminal, which would obey its control characters.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// A text in which two spellings of one spec are the same: names and keys in lower case with `-`, keys in alphabetical
/// order, nothing empty. Values stay as they are, because they may be names of files.
pub fn canonical(text: &str) -> String {
    let Ok(spec) = Spec::parse("", text) else { return text.trim().to_string() };
    let folded = |text: &str| names::key(text).replace('_', "-");
    let written = |part: &Part<'_>| match part.value {
        Some(value) => format!("{}={value}", folded(part.key)),
        None => folded(part.key),
    };
    let mut parts: Vec<String> = spec.parts.iter().map(written).collect();
    parts.sort();
    format!("{}:{}", folded(spec.name), parts.join(","))
}

/// A key with its value, or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part<'a> {
    key: &'a str,
    /// `None`: a word, without `=`.
    value: Option<&'a str>,
    taken: bool,
}

/// A spec taken apart. It remembers which keys were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec<'a> {
    field: &'a str,
    text: &'a str,
    name: &'a str,
    parts: Vec<Part<'a>>,
    asked: Vec<&'static str>,
}

impl<'a> Spec<'a> {
    /// Takes the text in `field` apart. Without a name, as in a link, the name is empty.
    ///
    /// # Errors
    ///
    /// When nothing is written, a key is given twice, or a value is empty.
    pub fn parse(field: &'a str, text: &'a str) -> Result<Self, InputError> {
        let text = text.trim();
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) if !name.contains('=') => (name.trim(), rest),
            _ if text.contains('=') => ("", text),
            _ => (text, ""),
        };
        let mut spec = Self { field, text, name, parts: Vec::new(), asked: Vec::new() };
        if text.is_empty() {
            return Err(spec.refused("nothing is written; expected name:key=value,key=value"));
        }
        // What is written is shown on terminals, which would obey them, and is a field of tables.
        if text.chars().any(char::is_control) {
            return Err(spec.refused("control characters are not allowed"));
        }
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = match part.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (part, None),
            };
            if spec.parts.iter().any(|known| names::is_same(known.key, key)) {
                return Err(spec.refused(format_args!("`{key}` is given twice")));
            }
            if value == Some("") {
                return Err(spec.without_value(key));
            }
            spec.parts.push(Part { key, value, taken: false });
        }
        Ok(spec)
    }

    /// The text before the colon, or the whole text without one.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The whole spec, as written.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// An error in this spec.
    pub fn refused(&self, problem: impl Display) -> InputError {
        InputError::new(self.field, self.text, problem.to_string())
    }

    /// An error in a value that could not be read: what is allowed, where the standard library says only that it
    /// cannot read it.
    fn unreadable(&self, key: &str, error: &impl Display, range: &str) -> InputError {
        let problem = error.to_string();
        let Some(kind) = plain::of_text(&problem) else { return self.refused_value(key, problem) };
        if range.is_empty() {
            return self.refused_value(key, format_args!("allowed is {kind}"));
        }
        // A range says that itself.
        self.refused_value(key, format_args!("allowed is {}, {range}", kind.trim_end_matches(" from 0 on")))
    }

    /// An error in the value of `key`; it names the value if `problem` does not.
    pub fn refused_value(&self, key: &str, problem: impl Display) -> InputError {
        let problem = problem.to_string();
        match self.find(key).and_then(|part| part.value) {
            Some(value) if !problem.contains(&format!("`{value}`")) => {
                self.refused(format_args!("{key} `{value}`: {problem}"))
            }
            _ => self.refused(format_args!("{key}: {problem}")),
        }
    }

    /// The error for a name that is none of `names`. `allowed` says what is, or where that is listed. Without a name
    /// it shows the text in its place.
    pub fn unknown_name(&self, names: &[&str], allowed: impl Display) -> InputError {
        let first = self.parts.first().map_or("", |part| part.key);
        if self.name.is_empty()
            && let Some(name) = names::find(first, names)
        {
            let keys = self.text.split_once(',').map_or("", |(_, keys)| keys.trim());
            let keys = if self.parts[0].value.is_some() || keys.is_empty() { "key=value" } else { keys };
            return self.refused(format_args!("a colon ends the name; expected is {name}:{keys}"));
        }
        let name = if self.name.is_empty() { first } else { self.name };
        let several: Vec<&str> = name.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if name.contains(',') && several.iter().all(|part| names::find(part, names).is_some()) {
            return self
                .refused(format_args!("a comma separates keys, a space values; expected is {}", several.join(" ")));
        }
        self.refused(names::unknown(name, names, allowed))
    }

    /// The one of `names` that the name before the colon means.
    ///
    /// # Errors
    ///
    /// When it is none of them; `allowed` says what is, or where that is listed.
    pub fn choose<'n>(&self, names: &[&'n str], allowed: impl Display) -> Result<&'n str, InputError> {
        names::find(self.name, names).ok_or_else(|| self.unknown_name(names, allowed))
    }

    fn without_value(&self, key: &str) -> InputError {
        self.refused(format_args!("{key}: needs a value, as in {key}=..."))
    }

    fn find(&self, key: &str) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| names::is_same(part.key, key))
    }

    /// Whether this key is written; this does not count as reading it.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Takes the first part if it is a word.
    pub fn leading_word(&mut self) -> Option<&'a str> {
        let leads = self.parts.first().is_some_and(|part| part.value.is_none());
        if leads { self.word() } else { None }
    }

    /// Takes the first word: a part without `=` that was not taken as a key.
    pub fn word(&mut self) -> Option<&'a str> {
        let part = self.parts.iter_mut().find(|part| part.value.is_none() && !part.taken)?;
        part.taken = true;
        Some(part.key)
    }

    /// What is written for `key`.
    ///
    /// # Errors
    ///
    /// When the key has no value.
    pub fn value(&mut self, key: &'static str) -> Result<Option<&'a str>, InputError> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let Some(part) = self.parts.iter_mut().find(|part| names::is_same(part.key, key)) else { return Ok(None) };
        part.taken = true;
        match part.value {
            Some(value) => Ok(Some(value)),
            None => Err(self.without_value(key)),
        }
    }

    /// The value of `key`, as a quantity with its unit, a number, or anything else that can be read from text.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read<T>(&mut self, key: &'static str) -> Result<Option<T>, InputError>
    where
        T: FromStr,
        T::Err: Display,
    {
        self.read_with(key, str::parse)
    }

    /// The value of `key`, read by `read`.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read_with<T, E: Display>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, InputError> {
        let text = self.value(key)?;
        text.map(|text| read(text).map_err(|error| self.unreadable(key, &error, ""))).transpose()
    }

    /// The value of `key`, if it is in `range`; NaN is in no range.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is outside `range`.
    pub fn within<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Result<Option<T>, InputError>
    where
        T: FromStr + PartialOrd + Display,
        T::Err: Display,
    {
        let Some(text) = self.value(key)? else { return Ok(None) };
        let allowed = || format!("{} to {}", range.start(), range.end());
        match text.parse() {
            Ok(value) if range.contains(&value) => Ok(Some(value)),
            Ok(value) => Err(self.refused(format_args!("{key} is {value}; allowed is {}", allowed()))),
            Err(error) => Err(self.unreadable(key, &error, &allowed())),
        }
    }

    /// The meaning of the word written for `key`.
    ///
    /// # Errors
    ///
    /// When it is none of `words`.
    pub fn one_of<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Result<Option<T>, InputError> {
        let Some(text) = self.value(key)? else { return Ok(None) };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| names::is_same(word, text)) {
            return Ok(Some(*meaning));
        }
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let meant = names::suggestion(text, &allowed);
        Err(self.refused(format_args!("{key} is `{text}`{meant}; allowed are {}", allowed.join(" and "))))
    }

    /// Whether `key` is `on`; absent: off.
    ///
    /// # Errors
    ///
    /// When it is neither `on` nor `off`.
    pub fn switch(&mut self, key: &'static str) -> Result<bool, InputError> {
        Ok(self.one_of(key, &[("on", true), ("off", false)])?.unwrap_or(false))
    }

    /// The values of a list `a/b/c`; absent: none.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub fn list<T>(&mut self, key: &'static str) -> Result<Vec<T>, InputError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let Some(text) = self.value(key)? else { return Ok(Vec::new()) };
        let values = text.split('/').map(|value| value.trim().parse());
        values.collect::<Result<_, _>>().map_err(|error| self.refused(format_args!("{key}: {error}")))
    }

    /// The unread keys, spelled as [`names::key`] does, with their values, for algorithms whose keys are fields of a
    /// configuration.
    ///
    /// # Errors
    ///
    /// When one of them has no value.
    pub fn rest(&self) -> Result<Vec<(String, &'a str)>, InputError> {
        let rest = self.parts.iter().filter(|part| !part.taken);
        let read = |part: &Part<'a>| Some((names::key(part.key), part.value?));
        rest.map(|part| read(part).ok_or_else(|| self.without_value(part.key))).collect()
    }

    /// The unread part, as a spec of another name.
    #[must_use]
    pub fn rest_as(&self, name: &'a str) -> Self {
        let parts = self.parts.iter().filter(|part| !part.taken).copied().collect();
        Self { name, parts, asked: Vec::new(), ..*self }
    }

    /// Adds the keys of `other` that this spec does not have.
    pub fn add_defaults(&mut self, other: Self) {
        let missing: Vec<_> = other.parts.into_iter().filter(|part| !self.has(part.key)).collect();
        self.parts.extend(missing);
    }

    /// Adds the keys of `other`, which replace keys of the same name.
    pub fn replace_by(&mut self, other: Self) {
        for part in other.parts {
            self.parts.retain(|known| !names::is_same(known.key, part.key));
            self.parts.push(part);
        }
    }

    /// A key that was not read.
    pub fn unasked(&self) -> Option<&'a str> {
        self.parts.iter().find(|part| !part.taken).map(|part| part.key)
    }

    /// The keys that were read.
    pub fn asked(&self) -> &[&'static str] {
        &self.asked
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// When a key was not read.
    pub fn finish(&self) -> Result<(), InputError> {
        let Some(key) = self.unasked() else { return Ok(()) };
        if self.asked.is_empty() {
            return Err(self.refused(format_args!("`{key}` is not known here; {} has no keys", self.name)));
        }
        let meant = names::suggestion(key, &self.asked);
        Err(self.refused(format_args!("`{key}` is not known here{meant}; allowed are {}", self.asked.join(", "))))
    }
}

/// A probability or a share: 0 to 1, or 0% to 100%.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(pub f64);

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().map(|value| value / 100.0),
            None => text.parse::<f64>(),
        };
        match value {
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(Self(value)),
            _ => Err(format!("`{text}` is not a probability; allowed is 0 to 1, or 0% to 100%")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use crate::units::Rate;

    fn spec(text: &str) -> Spec<'_> {
        Spec::parse("--spec", text).unwrap()
    }

    #[test]
    fn a_name_ends_with_the_first_colon_unless_it_is_a_values() {
        assert_eq!(
            (spec("cbr:rate=1mbit").name(), spec("rate=1mbit").name(), spec(" reno ").name()),
            ("cbr", "", "reno")
        );
        let mut nested = spec("startup=slow-start:iw=3,count=2");
        assert_eq!((nested.name(), nested.value("startup")), ("", Ok(Some("slow-start:iw=3"))));
        assert_eq!(nested.rest(), Ok(alloc::vec![("count".into(), "2")]));
    }

    #[test]
    fn spellings_of_one_spec_have_one_canonical_text() {
        for same in [
            &["fq_codel", "FQ-CoDel", " fq-codel: ", "fq-codel:,"][..],
            &["cubic:beta=0.7,beta_ecn=0.8", "Cubic:Beta-ECN=0.8, BETA = 0.7"],
            &["lte,buffer=1bdp", "buffer=1bdp,LTE"],
        ] {
            assert!(same.iter().all(|text| canonical(text) == canonical(same[0])), "{same:?}");
        }
        for [one, other] in [
            ["codel", "codel:target=5ms"],
            ["trace=A,rtt=1s", "trace=a,rtt=1s"],
            ["lte", "rate=lte"],
            ["a:b", "b:a"],
            ["", "x:y="],
        ] {
            assert_ne!(canonical(one), canonical(other));
        }
    }

    #[test]
    fn words_stand_beside_keys() {
        let mut bulk = spec("bulk:count=2,bbr,version=1");
        assert_eq!((bulk.word(), bulk.word()), (Some("bbr"), None));
        assert_eq!(bulk.read::<u32>("count"), Ok(Some(2)));
        assert_eq!(bulk.rest_as("bbr").rest(), Ok(alloc::vec![("version".into(), "1")]));
        let mut link = spec("rate=1mbit,rtt=50ms");
        link.replace_by(spec("rtt=60ms,hops=2"));
        link.add_defaults(spec("rtt=70ms,buffer=1bdp"));
        assert_eq!((link.value("rtt"), link.value("hops")), (Ok(Some("60ms")), Ok(Some("2"))));
        assert_eq!((link.value("buffer"), link.leading_word()), (Ok(Some("1bdp")), None));
        assert_eq!(spec("lte,rtt=60ms").leading_word(), Some("lte"));
    }

    #[test]
    fn values_have_types() {
        let mut spec = spec("x:rate=5mbit,rtts=20ms/80ms,ecn=on,order=up,share=0.5");
        assert_eq!(spec.within("rate", Rate::from_mbit(1)..=Rate::from_mbit(9)), Ok(Some(Rate::from_mbit(5))));
        assert_eq!(spec.list("rtts"), Ok([20, 80].map(Duration::from_millis).to_vec()));
        assert_eq!((spec.switch("ecn"), spec.switch("other")), (Ok(true), Ok(false)));
        assert_eq!(spec.one_of("order", &[("up", 1), ("down", 2)]), Ok(Some(1)));
        assert_eq!(("0.5".parse(), "50%".parse()), (Ok(Fraction(0.5)), Ok(Fraction(0.5))));
        assert!(["2", "-1%", "nan", "101%", ""].iter().all(|text| text.parse::<Fraction>().is_err()));
        assert_eq!((spec.read("share"), spec.read::<f64>("none")), (Ok(Some(0.5)), Ok(None)));
        assert_eq!(spec.finish(), Ok(()));
    }

    #[test]
    fn errors_say_field_text_what_is_wrong_and_what_is_allowed() {
        let error = |text| Spec::parse("--spec", text).unwrap_err().to_string();
        assert_eq!(error(""), "--spec: nothing is written; expected name:key=value,key=value");
        assert_eq!(error("a:b=1,b=2"), "--spec `a:b=1,b=2`: `b` is given twice");
        assert_eq!(error("a:b="), "--spec `a:b=`: b: needs a value, as in b=...");
        let told = "--spec `trace=\\u{1b}[31m\\u{7},rtt=1s`: control characters are not allowed";
        assert_eq!(error("trace=\u{1b}[31m\u{7},rtt=1s"), told);
        let mut wrong = spec("a:rate=5,count=x,size=70,on=perhaps,bare");
        let mut problems = [
            wrong.read::<Rate>("rate").unwrap_err(),
            wrong.read::<u32>("count").unwrap_err(),
            wrong.within("size", 1..=60).unwrap_err(),
            wrong.switch("on").unwrap_err(),
            wrong.value("bare").unwrap_err(),
        ]
        .map(|error| error.problem);
        problems[0].truncate("rate: `5` is not".len());
        assert_eq!(
            problems,
            [
                "rate: `5` is not",
                "count `x`: allowed is a whole number from 0 on",
                "size is 70; allowed is 1 to 60",
                "on is `perhaps`; allowed are on and off",
                "bare: needs a value, as in bare=..."
            ]
        );
        assert_eq!(spec("none:count=3").finish().unwrap_err().problem, "`count` is not known here; none has no keys");
        // A comma in place of the colon.
        for (text, meant) in [("reno,beta=0.5", "reno:beta=0.5"), ("Reno=0.5", "reno:key=value")] {
            let told = spec(text).choose(&["reno"], "use reno").unwrap_err().problem;
            assert_eq!(told, format!("a colon ends the name; expected is {meant}"));
        }
        // A comma between values.
        for text in ["reno,cubic", "reno, cubic,"] {
            let told = spec(text).choose(&["reno", "cubic"], "use reno").unwrap_err().problem;
            assert_eq!(told, "a comma separates keys, a space values; expected is reno cubic");
        }
        assert!(spec("reno,vegas").unknown_name(&["reno"], "").problem.starts_with("`reno,vegas` is not known"));
        let mut numbers = spec("a:hops=2.5,waves=-1,share=x,many=99999999999");
        let within = [
            numbers.within("hops", 1..=64).unwrap_err(),
            numbers.within("waves", 1_u32..=9).unwrap_err(),
            numbers.within("share", 0.5..=1.0).unwrap_err(),
            numbers.within("many", 1_u32..=9).unwrap_err(),
        ];
        assert_eq!(
            within.map(|error| error.problem),
            [
                "hops `2.5`: allowed is a whole number, 1 to 64",
                "waves `-1`: allowed is a whole number, 1 to 9",
                "share `x`: allowed is a number, 0.5 to 1",
                "many `99999999999`: allowed is a whole number, 1 to 9",
            ]
        );
        for text in ["vegas:a=1", "vegas=1"] {
            let error = spec(text).unknown_name(&["reno"], "use reno");
            assert_eq!(error.problem, "`vegas` is not known; use reno");
        }
        let meant = spec("bulk:cuont=3").choose(&["bluk"], "use bluk").unwrap_err();
        assert_eq!(meant.problem, "`bulk` is not known (did you mean `bluk`?); use bluk");
    }

    #[test]
    fn names_and_keys_may_be_spelled_with_other_case_and_with_underscores() {
        let mut lenient = spec("FQ_CoDel:Up-Rate=5mbit,COUNTS=System,Max-Delay=3");
        assert_eq!(lenient.choose(&["codel", "fq-codel"], ""), Ok("fq-codel"));
        assert_eq!(lenient.read("up_rate"), Ok(Some(Rate::from_mbit(5))));
        assert_eq!(lenient.one_of("counts", &[("waiting", 1), ("system", 2)]), Ok(Some(2)));
        assert_eq!(lenient.rest(), Ok(alloc::vec![("max_delay".into(), "3")]));
        let twice = Spec::parse("--spec", "a:up_rate=1,up-rate=2").unwrap_err();
        assert_eq!(twice.problem, "`up-rate` is given twice");
        let mut slip = spec("a:cuonts=waiting");
        assert_eq!(slip.switch("counts"), Ok(false));
        let error = slip.finish().unwrap_err().problem;
        assert_eq!(error, "`cuonts` is not known here (did you mean `counts`?); allowed are counts");
    }
}
