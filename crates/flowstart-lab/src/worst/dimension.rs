//! The dimensions of a search: their names, meanings and values.
//!
//! Each dimension has values that are written as `1mbit..100mbit`, a range whose logarithm is drawn, or as
//! `taildrop|codel|pie`. The first of several is the plain one, to which the smallest setting goes back where it can.

use flowstart_core::sources::Known;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

/// What the numbers of a dimension are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Rate,
    Time,
    Size,
    /// A buffer in bandwidth-delay products.
    Bdp,
    /// What is known over what is true.
    Factor,
}

impl Quantity {
    pub(super) fn read(self, text: &str) -> Result<f64, String> {
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

    pub(super) fn write(self, value: f64) -> String {
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
pub(super) enum Place {
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
    pub(super) quantity: Option<Quantity>,
    /// The plain value of a range.
    plain: Option<f64>,
    pub(super) place: Place,
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

/// The word for a key that is left out.
pub(super) const WITHOUT: &str = "none";
/// The word for what the transport does by itself.
pub(super) const OWN: &str = "default";
/// The dimension of other users, and its value where there are none.
pub(super) const COMPETITOR: &str = "competitor";
pub(super) const ALONE: &str = "none";
/// The values of what is known.
pub(super) const TRUE: &str = "true";
pub(super) const FALSE: &str = "false";
pub(super) const NOTHING: &str = "none";

/// All dimensions. Rate and RTT end where a search has to wait: a flow that is established over a large BDP takes long
/// to simulate.
pub const DIMENSIONS: [Declared; 14] = [
    numbers("rate", "rate of the bottleneck", "1mbit..100mbit", Quantity::Rate),
    numbers("rtt", "RTT of the path", "10ms..300ms", Quantity::Time),
    Declared {
        plain: Some(1.0),
        ..numbers("buffer", "buffer of the bottleneck, at least 10 packets", "0.1bdp..4bdp", Quantity::Bdp)
    },
    Declared { place: Place::Axis, ..numbers("size", "what a transfer carries", "70KB..5MB", Quantity::Size) },
    words("aqm", "queue discipline of the bottleneck", "taildrop|codel|fq-codel|pie|red", Place::Axis),
    words(COMPETITOR, "who else uses it", "none|cubic|reno|bbr|cubic:count=4", Place::Axis),
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
    pub(super) declared: &'static Declared,
    /// Its values.
    pub values: Values,
    /// Whether the user gave them.
    pub(super) is_given: bool,
}

impl Declared {
    pub(super) fn values(&self, text: &str) -> Result<Values, String> {
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
    pub(super) fn plain(&self) -> f64 {
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

    /// What a value of a quantity is; of words that which is written.
    pub(super) fn number(&self, value: f64) -> f64 {
        match (&self.values, self.declared.quantity) {
            (Values::Words(_), Some(quantity)) => quantity.read(&self.text(value)).unwrap_or(1.0),
            _ => value,
        }
    }

    pub(super) fn text(&self, value: f64) -> String {
        match (&self.values, self.declared.quantity) {
            (Values::Words(words), _) => words.get(value as usize).or(words.first()).cloned().unwrap_or_default(),
            (Values::Range(..), Some(quantity)) => quantity.write(value),
            (Values::Range(..), None) => String::new(),
        }
    }
}
