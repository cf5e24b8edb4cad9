//! Inner variables of algorithms, for traces.
//!
//! An algorithm shows them in `observe`, under the names of its reference. Nobody asks unless a run is traced, so they
//! cost other runs nothing.

use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// The algorithm that a variable belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The startup scheme.
    Startup,
    /// Congestion avoidance.
    Avoidance,
}

impl Owner {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Avoidance => "avoidance",
        }
    }
}

/// The unit of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Mbit/s.
    Mbit,
    /// Milliseconds.
    Millis,
    /// A number without a unit: a factor, a share, a count.
    Number,
}

impl Unit {
    /// The name in files; empty for a number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Mbit => "Mbit/s",
            Self::Millis => "ms",
            Self::Number => "",
        }
    }
}

/// The value of an inner variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Its name in the algorithm's reference.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its value, which is finite.
    pub value: f64,
}

/// Takes the variables of an algorithm. A value that stands for "none" or "no limit" is skipped.
pub struct Variables<'a> {
    now: Timestamp,
    see: &'a mut dyn FnMut(Variable),
}

impl core::fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Variables").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Variables<'a> {
    /// Passes the variables at time `now` to `see`.
    pub fn new(now: Timestamp, see: &'a mut dyn FnMut(Variable)) -> Self {
        Self { now, see }
    }

    /// The time, for variables that are functions of it.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    fn show(&mut self, name: &'static str, unit: Unit, value: f64) {
        if value.is_finite() {
            (self.see)(Variable { name, unit, value });
        }
    }

    /// A number of bytes; [`Bytes::MAX`] is skipped.
    pub fn bytes(&mut self, name: &'static str, value: Bytes) {
        if value != Bytes::MAX {
            self.show(name, Unit::Bytes, value.get() as f64);
        }
    }

    /// A rate; the largest that can be written is skipped.
    pub fn rate(&mut self, name: &'static str, value: Rate) {
        if value.bits_per_sec() != u64::MAX {
            self.show(name, Unit::Mbit, value.as_mbit());
        }
    }

    /// A time span; [`Duration::MAX`] is skipped.
    pub fn time(&mut self, name: &'static str, value: Duration) {
        if value != Duration::MAX {
            self.show(name, Unit::Millis, value.as_millis_f64());
        }
    }

    /// A number without a unit; what is not finite is skipped.
    pub fn number(&mut self, name: &'static str, value: f64) {
        self.show(name, Unit::Number, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn values_have_their_units_and_what_is_no_value_is_skipped() {
        let mut seen = Vec::new();
        let mut see = |variable: Variable| seen.push((variable.name, variable.unit.name(), variable.value));
        let mut variables = Variables::new(Timestamp::ZERO, &mut see);
        variables.bytes("window", Bytes::new(3000));
        variables.bytes("limit", Bytes::MAX);
        variables.rate("max_bw", Rate::from_mbit(25));
        variables.rate("unbounded", Rate::from_bits_per_sec(u64::MAX));
        variables.time("min_rtt", Duration::from_micros(1500));
        variables.time("never", Duration::MAX);
        variables.number("gain", 2.77);
        variables.number("undefined", f64::NAN);
        let expected =
            [("window", "bytes", 3000.0), ("max_bw", "Mbit/s", 25.0), ("min_rtt", "ms", 1.5), ("gain", "", 2.77)];
        assert_eq!(seen, expected);
    }
}
