//! Parameters as bytes: the structs of C that programs read.

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

use super::PortError;

/// Bits of a factor's mantissa. A rate of 10,000 Gbit/s times one has 63 bits.
const MANTISSA: u32 = 22;

/// A struct of C that is being written, field by field.
#[derive(Debug)]
pub(super) struct Layout {
    scheme: &'static str,
    bytes: Vec<u8>,
}

impl Layout {
    pub(super) fn new(scheme: &'static str) -> Self {
        Self { scheme, bytes: Vec::new() }
    }

    /// The struct, of a length that is a multiple of eight as its `u64` require.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes
    }

    /// A `u64`.
    pub(super) fn wide(&mut self, value: u64) {
        debug_assert_eq!(self.bytes.len() % 8, 0, "C leaves a gap before a u64");
        self.bytes.extend(value.to_ne_bytes());
    }

    /// A `u32`.
    pub(super) fn number(&mut self, value: u32) {
        self.bytes.extend(value.to_ne_bytes());
    }

    /// A `u32` that is 0 or 1.
    pub(super) fn switch(&mut self, value: bool) {
        self.number(value.into());
    }

    /// Bytes, without a limit if there is none.
    pub(super) fn limit(&mut self, value: Option<Bytes>) {
        self.wide(value.map_or(u64::MAX, Bytes::get));
    }

    /// Bytes per second.
    pub(super) fn rate(&mut self, value: Rate) {
        self.wide(value.bits_per_sec() / 8);
    }

    /// Microseconds.
    pub(super) fn time(&mut self, value: Duration) {
        self.wide(value.as_nanos() / 1000);
    }

    /// A `struct factor`.
    pub(super) fn factor(&mut self, value: f64) {
        let (mantissa, shift) = factor(value);
        self.number(mantissa);
        self.number(shift);
    }

    /// Refuses a parameter that the port does not have, unless it `is` what the port does.
    pub(super) fn only(&self, parameter: &'static str, is: bool, implemented: &'static str) -> Result<(), PortError> {
        if is { Ok(()) } else { Err(PortError::Parameter { scheme: self.scheme, parameter, implemented }) }
    }
}

/// A positive number as mantissa / 2^shift.
fn factor(value: f64) -> (u32, u32) {
    let limit = f64::from(1 << MANTISSA);
    let (mut mantissa, mut shift) = (value, 0);
    while mantissa * 2.0 < limit && shift < 63 {
        mantissa *= 2.0;
        shift += 1;
    }
    (mantissa.round().min(limit) as u32, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact_to_a_millionth() {
        for value in [0.001, 0.5, 0.75, 1.0, 1350.0 / 1392.0, 1.5, 1000.0] {
            let (mantissa, shift) = factor(value);
            let read = f64::from(mantissa) / 2_f64.powi(shift as i32);
            assert!((read / value - 1.0).abs() < 1e-6 && mantissa <= 1 << MANTISSA, "{value}: {read}");
        }
        assert_eq!(factor(1.0), (1 << 21, 21));
    }
}
