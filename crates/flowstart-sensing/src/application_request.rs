//! What the application asks for: a rate, or a size that has to arrive by a deadline.
//!
//! Reference: none is specific. RFC 4782, section 1, names the application's knowledge of the rate it needs as the
//! input of Quick-Start's request, and draft-briscoe-tsvwg-rapid-start leaves it open. A video player knows its bit
//! rate, a page its size and its deadline. Either gives the rate for a scheme's launch. The application never requests
//! more than it needs.
//!
//! Differences from the reference: the deadline counts from the first data packet to the last, without the RTT that its
//! acknowledgement takes and without retransmissions.
//!
//! Status: worked examples.

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

/// The application's knowledge about a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApplicationRequest {
    /// The rate it needs, in bits of payload per second. Default: unknown.
    pub rate: Option<Rate>,
    /// Bytes of payload. Default: unknown.
    pub size: Option<Bytes>,
    /// The time the payload may take. Default: unknown.
    pub deadline: Option<Duration>,
}

/// A request that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Nobody sends at rate zero.
    #[error("`rate` is zero; leave it out if the application has no rate")]
    NoRate,
    /// There is nothing to send.
    #[error("`size` is zero")]
    NoSize,
    /// Nothing takes no time.
    #[error("`deadline` is zero")]
    NoTime,
    /// A deadline without a number of bytes.
    #[error("`deadline` is {deadline}, but `size` is missing; a rate follows from both")]
    DeadlineWithoutSize {
        /// The deadline.
        deadline: Duration,
    },
    /// The requested rate misses the deadline.
    #[error("`rate` is {rate}, but {size} within {deadline} need {needed}")]
    TooSlow {
        /// What was asked for.
        rate: Rate,
        /// The payload.
        size: Bytes,
        /// When it should have arrived.
        deadline: Duration,
        /// What it would take.
        needed: Rate,
    },
    /// No representable rate is high enough.
    #[error("{size} within {deadline} need a rate beyond all links")]
    Impossible {
        /// The payload.
        size: Bytes,
        /// When it should have arrived.
        deadline: Duration,
    },
}

impl ApplicationRequest {
    /// The rate to ask for: the explicit one, otherwise size / deadline rounded up; `None` if neither is known.
    pub fn requested_rate(&self) -> Result<Option<Rate>, RequestError> {
        if self.rate == Some(Rate::ZERO) {
            return Err(RequestError::NoRate);
        }
        if self.size == Some(Bytes::ZERO) {
            return Err(RequestError::NoSize);
        }
        if self.deadline == Some(Duration::ZERO) {
            return Err(RequestError::NoTime);
        }
        let (size, deadline) = match (self.size, self.deadline) {
            (Some(size), Some(deadline)) => (size, deadline),
            (None, Some(deadline)) => return Err(RequestError::DeadlineWithoutSize { deadline }),
            (_, None) => return Ok(self.rate),
        };
        let needed = (u128::from(size.get()) * 8_000_000_000).div_ceil(u128::from(deadline.as_nanos()));
        let needed = u64::try_from(needed).map_err(|_| RequestError::Impossible { size, deadline })?;
        let needed = Rate::from_bits_per_sec(needed);
        match self.rate {
            Some(rate) if rate < needed => Err(RequestError::TooSlow { rate, size, deadline, needed }),
            Some(rate) => Ok(Some(rate)),
            None => Ok(Some(needed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rate: Option<u64>, size: Option<u64>, deadline_ms: Option<u64>) -> ApplicationRequest {
        ApplicationRequest {
            rate: rate.map(Rate::from_bits_per_sec),
            size: size.map(Bytes::new),
            deadline: deadline_ms.map(Duration::from_millis),
        }
    }

    #[test]
    fn a_rate_is_explicit_or_follows_from_size_and_deadline() {
        assert_eq!(request(None, None, None).requested_rate(), Ok(None));
        assert_eq!(request(None, Some(2_000_000), None).requested_rate(), Ok(None), "a size alone is no rate");
        assert_eq!(request(Some(8_000_000), None, None).requested_rate(), Ok(Some(Rate::from_mbit(8))));
        // 2 MB = 16 Mbit within 500 ms: 32 Mbit/s.
        assert_eq!(request(None, Some(2_000_000), Some(500)).requested_rate(), Ok(Some(Rate::from_mbit(32))));
        // 1 byte within 3 s: 8/3 bit/s, and 2 bit/s would be late.
        assert_eq!(request(None, Some(1), Some(3000)).requested_rate(), Ok(Some(Rate::from_bits_per_sec(3))));
        assert_eq!(
            request(Some(50_000_000), Some(2_000_000), Some(500)).requested_rate(),
            Ok(Some(Rate::from_mbit(50))),
            "more than the deadline needs may be asked for"
        );
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert_eq!(request(Some(0), None, None).requested_rate(), Err(RequestError::NoRate));
        assert_eq!(request(None, Some(0), Some(1)).requested_rate(), Err(RequestError::NoSize));
        assert_eq!(request(None, Some(1), Some(0)).requested_rate(), Err(RequestError::NoTime));
        let deadline = Duration::from_millis(500);
        assert_eq!(
            request(None, None, Some(500)).requested_rate(),
            Err(RequestError::DeadlineWithoutSize { deadline })
        );
        let error = request(Some(8_000_000), Some(2_000_000), Some(500)).requested_rate().unwrap_err();
        assert_eq!(error.to_string(), "`rate` is 8mbit, but 2MB within 500ms need 32mbit");
        let tiny = ApplicationRequest { rate: None, size: Some(Bytes::MAX), deadline: Some(Duration::from_nanos(1)) };
        assert!(matches!(tiny.requested_rate(), Err(RequestError::Impossible { .. })));
    }
}
