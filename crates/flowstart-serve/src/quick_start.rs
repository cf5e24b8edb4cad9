//! How a client answers its server's request to the routers (Quick-Start): a field of its request.
//!
//! RFC 4782 defines the response as an option of TCP. The field has the eight bytes of that option in hexadecimal. The
//! simulator's QUIC sends them in a DATAGRAM frame, but those of HTTP/3 belong to its requests (RFC 9297), and may be
//! lost. A launch waits for the first request anyway.

use flowstart_core::quick_start::wire::{LENGTH, Response};
use http::{HeaderMap, HeaderValue};

use crate::hexadecimal;

/// The field's name.
pub(crate) const RESPONSE: &str = "flowstart-quick-start-response";

/// A field that is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{RESPONSE} is not one Quick-Start Response of {} hexadecimal digits", 2 * LENGTH)]
pub(crate) struct Malformed;

/// The field of a client that a request has reached.
pub(crate) fn field(response: Response) -> Option<HeaderValue> {
    HeaderValue::from_str(&hexadecimal::encode(&response.emit())).ok()
}

/// What a request responds; `None`: nothing.
pub(crate) fn responded(fields: &HeaderMap) -> Option<Result<Response, Malformed>> {
    let mut values = fields.get_all(RESPONSE).iter();
    let value = values.next()?;
    let text = value.to_str().ok().filter(|text| text.len() == 2 * LENGTH && values.next().is_none());
    let response = text.and_then(hexadecimal::decode).and_then(|bytes| Response::parse(&bytes).ok());
    Some(response.ok_or(Malformed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use flowstart_core::quick_start::nonce::Nonce;
    use flowstart_core::quick_start::rate::RateCode;

    use super::*;

    #[test]
    fn a_response_is_the_option_of_tcp_in_digits() {
        let fields = |values: &[&str]| -> HeaderMap {
            values.iter().map(|value| (RESPONSE.parse().unwrap(), value.parse().unwrap())).collect()
        };
        assert_eq!(responded(&fields(&[])), None);
        let response = Response { rate: RateCode::from_bits(9), ttl_diff: 0xe4, nonce: Nonce::from_bits(1) };
        assert_eq!(field(response).unwrap(), "1b0809e400000004");
        assert_eq!(responded(&fields(&["1b0809e400000004"])), Some(Ok(response)));
        for wrong in [
            "",
            "1b",
            "1b0809e40000000",
            "1b0809e4000000040",
            "1b0809e40000000400",
            // An option of IP, another length, a sign, what is no digit.
            "190809e400000004",
            "1b0709e400000004",
            "+b0809e400000004",
            "1b0809e4000000g4",
            "1b0809e400000004,1b0809e400000004",
            " 1b0809e40000004",
        ] {
            assert_eq!(responded(&fields(&[wrong])), Some(Err(Malformed)), "`{wrong}`");
        }
        assert_eq!(responded(&fields(&["1b0809e400000004"; 2])), Some(Err(Malformed)));
    }
}
