//! Numbers of C as quantities of core, with their ranges.

use flowstart_core::launch::UNPACED;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::refusal::Refusal;

/// Largest time, packet number and sum of bytes: 2^62 - 1, as in QUIC (RFC 9000, section 16). A time is 146 years.
pub(crate) const LARGEST: u64 = (1 << 62) - 1;
/// Largest rate: 10^15 bit/s, beyond which nothing is paced.
pub(crate) const FASTEST: u64 = UNPACED.bits_per_sec();

/// A time that a host states.
pub(crate) fn time(field: &str, nanos: u64) -> Result<Timestamp, Refusal> {
    Refusal::unless_in(field, nanos, 0..=LARGEST)?;
    Ok(Timestamp::from_nanos(nanos))
}

pub(crate) fn span(field: &str, nanos: u64) -> Result<Duration, Refusal> {
    Refusal::unless_in(field, nanos, 0..=LARGEST)?;
    Ok(Duration::from_nanos(nanos))
}

pub(crate) fn amount(field: &str, bytes: u64) -> Result<Bytes, Refusal> {
    Refusal::unless_in(field, bytes, 0..=LARGEST)?;
    Ok(Bytes::new(bytes))
}

/// A flag of C, which may hold any number.
pub(crate) fn flag(field: &str, value: u32) -> Result<bool, Refusal> {
    Refusal::unless_in(field, value.into(), 0..=1)?;
    Ok(value == 1)
}

/// A rate; `None`: zero.
pub(crate) fn some_rate(field: &str, bits: u64) -> Result<Option<Rate>, Refusal> {
    Refusal::unless_in(field, bits, 0..=FASTEST)?;
    Ok(Some(Rate::from_bits_per_sec(bits)).filter(|rate| *rate > Rate::ZERO))
}

/// An amount; `None`: zero.
pub(crate) fn some_amount(field: &str, bytes: u64) -> Result<Option<Bytes>, Refusal> {
    Ok(Some(amount(field, bytes)?).filter(|bytes| *bytes > Bytes::ZERO))
}

/// A span of time; `None`: zero.
pub(crate) fn some_span(field: &str, nanos: u64) -> Result<Option<Duration>, Refusal> {
    Ok(Some(span(field, nanos)?).filter(|span| *span > Duration::ZERO))
}
