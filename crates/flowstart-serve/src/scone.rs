//! How a client reports to its server what the path advises (SCONE): a field of its request.
//!
//! draft-ietf-scone-protocol-08 leaves the report to the application. The field has the number of the rate signal, 0 to
//! 126; 127 says as much as no field: there is no advice.

use flowstart_core::scone::wire::RateSignal;
use http::{HeaderMap, HeaderValue};

/// The field's name.
pub(crate) const ADVICE: &str = "flowstart-scone-advice";

/// A field that is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ADVICE} is not one number from 0 to 127")]
pub(crate) struct Malformed;

/// The field of a client whose path advises this; `None`: there is nothing to report.
pub(crate) fn report(signal: RateSignal) -> Option<HeaderValue> {
    (signal != RateSignal::UNKNOWN).then(|| HeaderValue::from(u16::from(signal.bits())))
}

/// What a request reports; `None`: nothing.
pub(crate) fn reported(fields: &HeaderMap) -> Option<Result<RateSignal, Malformed>> {
    let mut values = fields.get_all(ADVICE).iter();
    let value = values.next()?;
    // One number in one way: `+40` and `040` are none.
    let digits = value.to_str().ok().filter(|text| *text == "0" || !text.starts_with(['0', '+']));
    let number = digits.and_then(|text| text.parse().ok()).filter(|number| *number <= RateSignal::UNKNOWN.bits());
    Some(number.filter(|_| values.next().is_none()).map(RateSignal::from_bits).ok_or(Malformed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use super::*;

    #[test]
    fn a_report_is_one_number_of_seven_bits() {
        let fields = |values: &[&str]| -> HeaderMap {
            values.iter().map(|value| (ADVICE.parse().unwrap(), value.parse().unwrap())).collect()
        };
        assert_eq!(reported(&fields(&[])), None);
        for n in 0..=126 {
            let signal = RateSignal::from_bits(n);
            let own: HeaderMap = [(ADVICE.parse().unwrap(), report(signal).unwrap())].into_iter().collect();
            assert_eq!(reported(&own), Some(Ok(signal)));
        }
        assert_eq!(report(RateSignal::UNKNOWN), None);
        assert_eq!(reported(&fields(&["127"])), Some(Ok(RateSignal::UNKNOWN)));
        for wrong in ["", "128", "256", "-1", "+40", "040", "0x28", "40,40", "4 0", "10mbit", "99999999999999999999"] {
            assert_eq!(reported(&fields(&[wrong])), Some(Err(Malformed)), "`{wrong}`");
        }
        assert_eq!(reported(&fields(&["40", "40"])), Some(Err(Malformed)));
    }
}
