//! How a client reports to its server at which rate the server's part of the handshake arrived: a field of its request,
//! with a number of kbit/s.
//!
//! No RFC has it. As a hint it is rounded down to a step of a grid, and reveals no more of its sender than one.

use flowstart_core::quantize::Grid;
use flowstart_core::units::Rate;
use http::{HeaderMap, HeaderValue};

/// The field's name.
pub(crate) const TRAIN: &str = "flowstart-handshake-train";
/// The highest number, 10 Tbit/s: more is nonsense.
const MOST: u64 = 10_000_000_000;

/// A field that is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{TRAIN} is not one number of kbit/s from 1 to {MOST}")]
pub(crate) struct Malformed;

/// The field of a client that has seen this; `None`: it is slower than the grid.
pub(crate) fn report(seen: Rate, grid: &Grid) -> Option<HeaderValue> {
    let kilobits = grid.quantize(seen)?.bits_per_sec() / 1000;
    (1..=MOST).contains(&kilobits).then(|| HeaderValue::from(kilobits))
}

/// What a request reports; `None`: nothing.
pub(crate) fn reported(fields: &HeaderMap) -> Option<Result<Rate, Malformed>> {
    let mut values = fields.get_all(TRAIN).iter();
    let value = values.next()?;
    // One number in one way: `+40` and `040` are none.
    let digits = value.to_str().ok().filter(|text| !text.starts_with(['0', '+']));
    let number = digits.and_then(|text| text.parse::<u64>().ok()).filter(|number| (1..=MOST).contains(number));
    let rate = number.filter(|_| values.next().is_none()).map(|number| Rate::from_bits_per_sec(number * 1000));
    Some(rate.ok_or(Malformed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use super::*;

    #[test]
    fn a_report_is_one_number_of_kilobits() {
        let fields = |values: &[&str]| -> HeaderMap {
            values.iter().map(|value| (TRAIN.parse().unwrap(), value.parse().unwrap())).collect()
        };
        assert_eq!(reported(&fields(&[])), None);
        assert_eq!(reported(&fields(&["40000"])), Some(Ok(Rate::from_mbit(40))));
        assert_eq!(reported(&fields(&["1"])), Some(Ok(Rate::from_bits_per_sec(1000))));
        for wrong in ["", "0", "-1", "+40", "040", "0x28", "40,40", "4 0", "10mbit", "1.5", "10000000001"] {
            assert_eq!(reported(&fields(&[wrong])), Some(Err(Malformed)), "`{wrong}`");
        }
        assert_eq!(reported(&fields(&["40", "40"])), Some(Err(Malformed)));
    }

    #[test]
    fn a_report_is_a_step_of_the_grid() {
        let grid = Grid::default();
        let field = |bits| report(Rate::from_bits_per_sec(bits), &grid).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(field(10_000_000).as_deref(), Some("10000"));
        assert_eq!(field(10_900_000), field(10_000_000));
        assert_eq!(field(99_999), None, "below the lowest step");
    }
}
