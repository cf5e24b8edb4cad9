//! The client's bandwidth hint as the value of a QUIC transport parameter.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3, which signals the bandwidth and the
//! access technology to the other end. RFC 9000, section 18 (transport parameters) and section 16 (variable-length
//! integers).
//!
//! The layout is this project's. Four variable-length integers, each in as few bytes as possible, and nothing after
//! them:
//!
//! | Number | Meaning |
//! |---|---|
//! | version | 2. A change of the layout or a new technology increases it |
//! | technology | 0 unknown, 1 Ethernet, 2 DSL, 3 DOCSIS, 4 Wi-Fi, 5 third-generation cellular, 6 LTE, 7 fibre |
//! | rate | bits per second, [`MIN_RATE`] to [`MAX_RATE`] |
//! | age | whole seconds since the rate was estimated, rounded up, 0 to [`MAX_AGE`] |
//!
//! Differences from the reference: the paper has neither a layout nor an age. The parser refuses anything but these
//! four numbers, because it must not half understand a later version.
//!
//! Status: worked examples, and the round trip of every hint; no bytes make it panic.

use flowstart_core::path::{AccessTechnology, Hint};
use flowstart_core::quantize::Grid;
use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use crate::varint;

/// The version that is written and read.
pub const VERSION: u64 = 2;
/// Lowest rate that may be hinted, the lowest that the simulator's links may have.
pub const MIN_RATE: Rate = Rate::from_bits_per_sec(1_000);
/// Highest rate that may be hinted, the highest `max_hint` of Blitzstart: 10 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_mbit(10_000_000);
/// Longest age that may be told: 2^30 - 1 s, 34 years, which takes four bytes.
pub const MAX_AGE: Duration = Duration::from_nanos(MAX_AGE_SECONDS * SECOND);

const MAX_AGE_SECONDS: u64 = (1 << 30) - 1;
const SECOND: u64 = 1_000_000_000;
/// Ages are quantized to minutes.
const MINUTE: u64 = 60 * SECOND;

/// Technologies in the order of their codes.
const TECHNOLOGIES: [AccessTechnology; 8] = [
    AccessTechnology::Unknown,
    AccessTechnology::Ethernet,
    AccessTechnology::Dsl,
    AccessTechnology::Docsis,
    AccessTechnology::Wifi,
    AccessTechnology::ThirdGeneration,
    AccessTechnology::Lte,
    AccessTechnology::Fibre,
];

/// What a client says about its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthHint {
    /// The rate that it believes its bottleneck to have.
    pub rate: Rate,
    /// The technology of its access link.
    pub technology: AccessTechnology,
    /// Time since it estimated the rate.
    pub age: Duration,
}

/// Why a client's hint is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HintError {
    /// It ends inside a number or before the last number.
    #[error("hint is cut off: {found} bytes do not hold version, technology, rate and age")]
    Truncated {
        /// Number of bytes.
        found: usize,
    },
    /// A later program wrote it.
    #[error("hint has version {0}; this program reads version {VERSION}")]
    Version(u64),
    /// A number takes more bytes than it needs.
    #[error("hint is not canonical: the number {0} takes more bytes than it needs")]
    NotCanonical(u64),
    /// No technology has this code.
    #[error("hint has technology {0}; allowed is 0 to {last}", last = TECHNOLOGIES.len() - 1)]
    Technology(u64),
    /// A rate that no path has.
    #[error("hint has a rate of {0} bit/s; allowed is {MIN_RATE} to {MAX_RATE}")]
    Rate(u64),
    /// An age that no estimate has.
    #[error("hint has an age of {0} s; allowed is up to {MAX_AGE_SECONDS} s")]
    Age(u64),
    /// Extra bytes follow.
    #[error("hint has {0} bytes after its age")]
    Trailing(usize),
}

impl BandwidthHint {
    /// The hint as schemes know it.
    pub const fn hint(&self) -> Hint {
        Hint { bandwidth: self.rate, technology: self.technology }
    }

    /// A hint that reveals less about its sender: the largest rate of the grid that does not exceed its own, and its
    /// age in started minutes. `None` when the rate is below the grid.
    pub fn quantized(&self, grid: &Grid) -> Option<Self> {
        let rate = grid.quantize(self.rate)?;
        Some(Self { rate, ..self.in_started_minutes() })
    }

    /// The same with its age in started minutes, as clients tell it.
    #[must_use]
    pub const fn in_started_minutes(&self) -> Self {
        let age = Duration::from_nanos(self.age.as_nanos().div_ceil(MINUTE).saturating_mul(MINUTE));
        Self { age, ..*self }
    }

    /// The value of the transport parameter.
    ///
    /// # Errors
    ///
    /// [`HintError::Rate`] and [`HintError::Age`] when the hint is out of range.
    pub fn encode(&self) -> Result<Vec<u8>, HintError> {
        let technology = TECHNOLOGIES.iter().position(|known| *known == self.technology).unwrap_or_default() as u64;
        let (rate, age) = (self.rate.bits_per_sec(), self.age.as_nanos().div_ceil(SECOND));
        let mut bytes = Vec::with_capacity(14);
        for number in [VERSION, technology, check_rate(rate)?, check_age(age)?] {
            varint::write(number, &mut bytes);
        }
        Ok(bytes)
    }

    /// The opposite of [`BandwidthHint::encode`].
    ///
    /// # Errors
    ///
    /// [`HintError`] for anything that [`BandwidthHint::encode`] would not have written.
    pub fn decode(bytes: &[u8]) -> Result<Self, HintError> {
        let mut rest = bytes;
        let mut number = || {
            let read = varint::read(rest).ok_or(HintError::Truncated { found: bytes.len() })?;
            rest = read.rest;
            if read.shortest { Ok(read.value) } else { Err(HintError::NotCanonical(read.value)) }
        };
        let version = number()?;
        if version != VERSION {
            return Err(HintError::Version(version));
        }
        let (technology, rate, age) = (number()?, number()?, number()?);
        if !rest.is_empty() {
            return Err(HintError::Trailing(rest.len()));
        }
        let known = usize::try_from(technology).ok().and_then(|code| TECHNOLOGIES.get(code));
        Ok(Self {
            technology: *known.ok_or(HintError::Technology(technology))?,
            rate: Rate::from_bits_per_sec(check_rate(rate)?),
            age: Duration::from_nanos(check_age(age)? * SECOND),
        })
    }
}

fn check_rate(bits: u64) -> Result<u64, HintError> {
    let allowed = MIN_RATE.bits_per_sec()..=MAX_RATE.bits_per_sec();
    if allowed.contains(&bits) { Ok(bits) } else { Err(HintError::Rate(bits)) }
}

fn check_age(seconds: u64) -> Result<u64, HintError> {
    if seconds <= MAX_AGE_SECONDS { Ok(seconds) } else { Err(HintError::Age(seconds)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hint(mbit: u64, technology: AccessTechnology, seconds: u64) -> BandwidthHint {
        BandwidthHint { rate: Rate::from_mbit(mbit), technology, age: Duration::from_nanos(seconds * SECOND) }
    }

    fn decode(bytes: &[u8]) -> Result<BandwidthHint, HintError> {
        BandwidthHint::decode(bytes)
    }

    #[test]
    fn a_hint_of_fifty_megabits_takes_seven_bytes() {
        // Version 2; DSL is 2; 50,000,000 = 0x02faf080 below 2^30 takes four bytes, marked by 0x80; 59 s is one byte.
        let bytes = [0x02, 0x02, 0x82, 0xfa, 0xf0, 0x80, 0x3b];
        assert_eq!(hint(50, AccessTechnology::Dsl, 59).encode(), Ok(bytes.to_vec()));
        assert_eq!(decode(&bytes), Ok(hint(50, AccessTechnology::Dsl, 59)));
        // 10 Gbit/s = 0x02540be400 needs eight bytes, marked by 0xc0; 3600 s = 0x0e10 needs two, marked by 0x40.
        let bytes = [0x02, 0x00, 0xc0, 0x00, 0x00, 0x02, 0x54, 0x0b, 0xe4, 0x00, 0x4e, 0x10];
        assert_eq!(decode(&bytes), Ok(hint(10_000, AccessTechnology::Unknown, 3600)));
    }

    #[test]
    fn ages_are_rounded_up() {
        let young = BandwidthHint { age: Duration::from_millis(1), ..hint(50, AccessTechnology::Dsl, 0) };
        assert_eq!(decode(&young.encode().unwrap()).unwrap().age, Duration::from_millis(1000));
    }

    #[test]
    fn each_defect_has_its_error() {
        let good = hint(50, AccessTechnology::Dsl, 59).encode().unwrap();
        assert_eq!(decode(&[]), Err(HintError::Truncated { found: 0 }));
        assert_eq!(decode(&good[..6]), Err(HintError::Truncated { found: 6 }));
        assert_eq!(decode(&good[..4]), Err(HintError::Truncated { found: 4 }));
        // A later version may look entirely different.
        assert_eq!(decode(&[3]), Err(HintError::Version(3)));
        assert_eq!(decode(&[1, 2, 0x82, 0xfa, 0xf0, 0x80, 0]), Err(HintError::Version(1)));
        // 2 in two bytes.
        assert_eq!(decode(&[0x40, 0x02, 0x02, 0x82, 0xfa, 0xf0, 0x80, 0x3b]), Err(HintError::NotCanonical(2)));
        assert_eq!(decode(&[2, 8, 0x82, 0xfa, 0xf0, 0x80, 0]), Err(HintError::Technology(8)));
        assert_eq!(decode(&[2, 2, 0, 0]), Err(HintError::Rate(0)));
        // 2^62 - 1 is the largest number that QUIC can write.
        let largest = [0xff; 8];
        assert_eq!(decode(&[&[2, 2], &largest[..], &[0]].concat()), Err(HintError::Rate(varint::MAX)));
        assert_eq!(decode(&[&good[..6], &largest[..]].concat()), Err(HintError::Age(varint::MAX)));
        assert_eq!(decode(&[&good[..], &[0]].concat()), Err(HintError::Trailing(1)));
        // A repeated hint is the parameter twice, which the search finds, or this.
        assert_eq!(decode(&[&good[..], &good[..]].concat()), Err(HintError::Trailing(7)));
    }

    #[test]
    fn what_is_out_of_range_is_not_written() {
        let absurd = BandwidthHint { rate: Rate::from_bits_per_sec(1 << 62), ..hint(1, AccessTechnology::Lte, 0) };
        assert_eq!(absurd.encode(), Err(HintError::Rate(1 << 62)));
        let old = BandwidthHint { age: Duration::MAX, ..hint(1, AccessTechnology::Lte, 0) };
        // 2^64 ns are 18,446,744,073.7 s.
        assert_eq!(old.encode(), Err(HintError::Age(18_446_744_074)));
    }

    #[test]
    fn a_quantized_hint_is_a_step_of_the_grid_and_whole_minutes() {
        // 50 Mbit/s lies between the steps 44.7 and 50.1 Mbit/s of the default grid; 61 s are two started minutes.
        let told = hint(50, AccessTechnology::Dsl, 61).quantized(&Grid::default()).unwrap();
        assert_eq!((told.rate.bits_per_sec(), told.age), (44_668_359, Duration::from_millis(120_000)));
        let slow = BandwidthHint { rate: Rate::from_bits_per_sec(99_999), ..told };
        assert_eq!(slow.quantized(&Grid::default()), None);
    }

    proptest! {
        #[test]
        fn a_hint_is_read_as_it_was_written(
            bits in MIN_RATE.bits_per_sec()..=MAX_RATE.bits_per_sec(), code in 0..TECHNOLOGIES.len(),
            seconds in 0..=MAX_AGE_SECONDS, cut in 0usize..14,
        ) {
            let hint = BandwidthHint {
                rate: Rate::from_bits_per_sec(bits),
                technology: TECHNOLOGIES[code],
                age: Duration::from_nanos(seconds * SECOND),
            };
            let bytes = hint.encode().unwrap();
            prop_assert_eq!(decode(&bytes), Ok(hint));
            if cut < bytes.len() {
                prop_assert_eq!(decode(&bytes[..cut]), Err(HintError::Truncated { found: cut }));
            }
        }

        #[test]
        fn bytes_are_refused_or_are_what_would_be_written(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first &= 0x03;
            }
            if let Ok(hint) = decode(&bytes) {
                prop_assert_eq!(hint.encode(), Ok(bytes));
            }
        }
    }
}
