//! Quantities as people write them: a number and a unit.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// A quantity that could not be read: what was written and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    message: String,
}

impl UnitError {
    fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for UnitError {}

/// Largest value of a quantity in its smallest unit: beyond it sums could overflow.
const QUANTITY_MAX: f64 = (1u64 << 62) as f64;

/// A unit of a quantity.
pub(crate) struct Unit {
    /// Its name, in any case.
    pub(crate) name: &'static str,
    /// Other names, in any case.
    pub(crate) also: &'static [&'static str],
    /// Other names, in exactly this case.
    pub(crate) exactly: &'static [&'static str],
    /// Its size in the smallest unit.
    pub(crate) size: f64,
}

impl Unit {
    /// A unit with one name.
    pub(crate) const fn new(name: &'static str, size: f64) -> Self {
        Self { name, also: &[], exactly: &[], size }
    }

    fn is(&self, written: &str) -> bool {
        let any_case = |name: &&str| name.eq_ignore_ascii_case(written);
        any_case(&self.name) || self.also.iter().any(any_case) || self.exactly.contains(&written)
    }
}

/// Reads a non-negative number followed by one of `units`, in the smallest unit. `doubt` may refuse a unit that has
/// more than one meaning; it gets the number as well, and says what to write.
pub(crate) fn parse(
    text: &str,
    expected: &str,
    units: &[Unit],
    doubt: impl Fn(f64, &str) -> Option<String>,
) -> Result<u64, UnitError> {
    let split = text
        .char_indices()
        .find(|&(index, c)| c.is_ascii_alphabetic() && !is_exponent(text, index))
        .map_or(text.len(), |(index, _)| index);
    let (number, unit) = text.split_at(split);
    let unit = unit.trim();
    let refused = |why: &str| UnitError::new(format!("`{text}` is not {expected}: {why}"));
    let value: Result<f64, _> = number.trim().parse();
    if let Some(problem) = doubt(value.as_ref().copied().unwrap_or(f64::NAN), unit) {
        return Err(refused(&problem));
    }
    let Some(Unit { size, .. }) = units.iter().find(|known| known.is(unit)) else {
        let names = units.iter().map(|unit| unit.name).collect::<alloc::vec::Vec<_>>().join(", ");
        return Err(refused(&format!("the unit must be one of {names}")));
    };
    let value = value.map_err(|_| refused("the number cannot be read"))?;
    let scaled = libm::round(value * size);
    if !(0.0..=QUANTITY_MAX).contains(&scaled) {
        return Err(refused("the number must be finite, not negative and not absurdly large"));
    }
    Ok(scaled as u64)
}

/// Whether the letter at `index` is the `e` of a number such as `1e6` and not the start of a unit.
fn is_exponent(text: &str, index: usize) -> bool {
    let bytes = text.as_bytes();
    bytes[index].eq_ignore_ascii_case(&b'e')
        && index > 0
        && bytes[index - 1].is_ascii_digit()
        && bytes.get(index + 1).is_some_and(|next| next.is_ascii_digit() || *next == b'-')
}

/// Writes `value` exactly, in the largest unit that is not larger than it.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (name, size) = units.iter().find(|(_, size)| value >= *size).or(units.first()).copied().unwrap_or(("", 1));
    let whole = value / size;
    let rest = value % size;
    if rest == 0 {
        return write!(f, "{whole}{name}");
    }
    let digits = size.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
}
