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

/// Reads a non-negative number followed by one of `units`, in the smallest unit.
pub(crate) fn parse(text: &str, expected: &str, units: &[(&str, f64)]) -> Result<u64, UnitError> {
    let split = text
        .char_indices()
        .find(|&(index, c)| c.is_ascii_alphabetic() && !is_exponent(text, index))
        .map_or(text.len(), |(index, _)| index);
    let (number, unit) = text.split_at(split);
    let refused = |why: &str| UnitError::new(format!("`{text}` is not {expected}: {why}"));
    let Some(&(_, factor)) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim())) else {
        let names = units.iter().map(|(name, _)| *name).collect::<alloc::vec::Vec<_>>().join(", ");
        return Err(refused(&format!("the unit must be one of {names}")));
    };
    let value: f64 = number.trim().parse().map_err(|_| refused("the number cannot be read"))?;
    let scaled = libm::round(value * factor);
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
