//! The bytes of a saved record: a version, then numbers in network byte order.
//!
//! Reference: none; the format is this project's. An observation is four 64-bit numbers: time in seconds, RTT in
//! nanoseconds, cwnd in bytes, rate in bits per second. A record consists of its version, the number of observations
//! ever put, the number that follows, and these observations. Anything else is refused, because a later version must
//! not be half understood.
//!
//! Status: worked examples; no bytes make it panic.

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};

use super::{Observation, PathRecord, UnixTime};

/// The current version. A change of the layout increases it.
pub(super) const VERSION: u8 = 1;
/// Bytes of an observation.
const OBSERVATION: usize = 4 * 8;
/// Bytes before the first observation: version, samples, count.
const HEAD: usize = 1 + 8 + 2;

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There is not even a version.
    #[error("it is empty")]
    Empty,
    /// Another version of the program wrote it.
    #[error("it has version {0}, and this program reads version {VERSION}")]
    Version(u8),
    /// It is truncated, or extra bytes follow.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// What the head announces, or the head's own length.
        expected: usize,
        /// What there is.
        found: usize,
    },
}

/// Four numbers.
pub(super) fn encode_observation(one: &Observation) -> [u8; OBSERVATION] {
    let mut bytes = [0; OBSERVATION];
    let numbers = [one.at.as_secs(), one.min_rtt.as_nanos(), one.cwnd.get(), one.rate.bits_per_sec()];
    for (field, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        field.copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

/// The opposite of [`encode_observation`].
pub(super) fn decode_observation(bytes: &[u8]) -> Result<Observation, DecodeError> {
    let wrong = || DecodeError::Length { expected: OBSERVATION, found: bytes.len() };
    let bytes: [u8; OBSERVATION] = bytes.try_into().map_err(|_| wrong())?;
    let (fields, _) = bytes.as_chunks::<8>();
    let [at, min_rtt, cwnd, rate] = fields else { return Err(wrong()) };
    Ok(Observation {
        at: UnixTime::from_secs(u64::from_be_bytes(*at)),
        min_rtt: Duration::from_nanos(u64::from_be_bytes(*min_rtt)),
        cwnd: Bytes::new(u64::from_be_bytes(*cwnd)),
        rate: Rate::from_bits_per_sec(u64::from_be_bytes(*rate)),
    })
}

impl PathRecord {
    /// The record as bytes, for stores outside of this crate.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// The opposite of [`Self::to_bytes`]. Observations that are not in order are put in order.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }
}

/// The record as bytes. If there are more observations than the count can express, the oldest are cut off.
pub(super) fn encode(record: &PathRecord) -> Vec<u8> {
    let count = u16::try_from(record.observations.len()).unwrap_or(u16::MAX);
    let latest = record.observations.len() - usize::from(count);
    let mut bytes = Vec::with_capacity(HEAD + OBSERVATION * usize::from(count));
    bytes.push(VERSION);
    bytes.extend_from_slice(&record.samples.to_be_bytes());
    bytes.extend_from_slice(&count.to_be_bytes());
    for one in &record.observations[latest..] {
        bytes.extend_from_slice(&encode_observation(one));
    }
    bytes
}

/// The opposite of [`encode`].
pub(super) fn decode(bytes: &[u8]) -> Result<PathRecord, DecodeError> {
    let (version, rest) = bytes.split_first().ok_or(DecodeError::Empty)?;
    if *version != VERSION {
        return Err(DecodeError::Version(*version));
    }
    let wrong = |expected| DecodeError::Length { expected, found: bytes.len() };
    let (samples, rest) = rest.split_first_chunk().ok_or(wrong(HEAD))?;
    let (count, rest) = rest.split_first_chunk().ok_or(wrong(HEAD))?;
    let count = usize::from(u16::from_be_bytes(*count));
    if rest.len() != count * OBSERVATION {
        return Err(wrong(HEAD + count * OBSERVATION));
    }
    let mut observations = rest.chunks_exact(OBSERVATION).map(decode_observation).collect::<Result<Vec<_>, _>>()?;
    observations.sort_by_key(|one| one.at);
    Ok(PathRecord { observations, samples: u64::from_be_bytes(*samples) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{record, seen};
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record(&[seen(1000, 50, 70_000, 25), seen(1010, 40, 90_000, 30)]);
        let bytes = encode(&record);
        assert_eq!(bytes.len(), 1 + 8 + 2 + 2 * 32);
        assert_eq!(decode(&bytes), Ok(record));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let bytes = encode(&record(&[seen(1000, 50, 70_000, 25)]));
        assert_eq!(decode(&[]), Err(DecodeError::Empty));
        assert_eq!(decode(&[2]), Err(DecodeError::Version(2)));
        assert_eq!(decode(&bytes[..42]), Err(DecodeError::Length { expected: 43, found: 42 }));
        assert_eq!(decode(&bytes[..5]), Err(DecodeError::Length { expected: 11, found: 5 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 0u8..3) {
            let _ = decode(&bytes);
            let _ = decode_observation(&bytes);
            let mut versioned = bytes;
            if let Some(first) = versioned.first_mut() {
                *first = version;
            }
            if let Ok(record) = decode(&versioned) {
                prop_assert_eq!(decode(&encode(&record)), Ok(record));
            }
        }
    }
}
