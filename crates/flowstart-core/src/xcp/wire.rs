//! The congestion header as bytes.
//!
//! Reference: the draft's section on the header, between IP and the transport: 20 bytes. Times are fixed point with 28
//! bits after the point, in seconds, which ends just below 16 s. Rates are bytes per second with a sign. Field order
//! and widths are not compared with the bytes of another implementation, and no simulation depends on them.
//!
//! | Bytes | What |
//! |---|---|
//! | 0 | protocol number of what follows |
//! | 1 | length of the header |
//! | 2 | version (2) and format: 1 of data, 2 of what only brings feedback back |
//! | 3 | unused |
//! | 4-7 | RTT, zero if unknown |
//! | 8-11 | X: time between two packets of the flow |
//! | 12-15 | `Delta_Throughput`: the change that the sender wants, and what routers leave of it |
//! | 16-19 | `Reverse_Feedback`: the change that the other direction was given |

use core::fmt;

use crate::time::Duration;

/// Bytes of the header.
pub const LENGTH: usize = 20;
/// Version of the draft.
const VERSION: u8 = 2;
/// Bits after the point.
const FRACTION: u32 = 28;

/// What a header is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Routers read and write it.
    Standard,
    /// It only brings feedback to the sender; routers leave it alone.
    Minimal,
}

/// A time in a header: seconds in steps of 2^-28, below 16 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedTime(u32);

impl FixedTime {
    /// Nothing is known.
    pub const ZERO: Self = Self(0);

    /// `time`, rounded to the step; the largest where it is longer.
    pub fn new(time: Duration) -> Self {
        Self::from_secs(time.as_secs())
    }

    /// `seconds`, rounded to the step; the largest where there are more, zero where they are negative.
    pub fn from_secs(seconds: f64) -> Self {
        // A cast of a float ends at the bounds of the integer.
        Self(libm::round(seconds * f64::from(1u32 << FRACTION)) as u32)
    }

    /// Seconds.
    pub fn as_secs(self) -> f64 {
        f64::from(self.0) / f64::from(1u32 << FRACTION)
    }

    /// The bits of the field.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// A congestion header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionHeader {
    /// What it is for.
    pub format: Format,
    /// The sender's RTT; zero: unknown.
    pub rtt: FixedTime,
    /// X: the time between two packets of the flow.
    pub x: FixedTime,
    /// The change of throughput that the sender wants, bytes per second, and what routers leave of it.
    pub delta_throughput: i32,
    /// The change of throughput that routers gave to the other direction, bytes per second.
    pub reverse_feedback: i32,
}

/// Why bytes are no congestion header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than a header has.
    Truncated {
        /// How many there were.
        bytes: usize,
    },
    /// A length that no header has.
    Length(u8),
    /// Another version.
    Version(u8),
    /// A format that the draft does not define.
    Format(u8),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes } => write!(f, "a congestion header has {LENGTH} bytes, not {bytes}"),
            Self::Length(length) => write!(f, "the header's length is {length}; allowed is {LENGTH}"),
            Self::Version(version) => write!(f, "version {version} is not known; allowed is {VERSION}"),
            Self::Format(format) => write!(f, "format {format} is neither 1 (standard) nor 2 (minimal)"),
        }
    }
}

impl core::error::Error for WireError {}

impl CongestionHeader {
    /// Reads the header that `bytes` begin with, and the protocol number of what follows it.
    ///
    /// # Errors
    ///
    /// [`WireError`] when they begin with anything else.
    pub fn parse(bytes: &[u8]) -> Result<(Self, u8), WireError> {
        let header: &[u8; LENGTH] = bytes.first_chunk().ok_or(WireError::Truncated { bytes: bytes.len() })?;
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if usize::from(header[1]) != LENGTH {
            return Err(WireError::Length(header[1]));
        }
        if header[2] >> 4 != VERSION {
            return Err(WireError::Version(header[2] >> 4));
        }
        let format = match header[2] & 0x0f {
            1 => Format::Standard,
            2 => Format::Minimal,
            format => return Err(WireError::Format(format)),
        };
        let (rtt, x) = (FixedTime(word(4)), FixedTime(word(8)));
        let (delta_throughput, reverse_feedback) = (word(12).cast_signed(), word(16).cast_signed());
        Ok((Self { format, rtt, x, delta_throughput, reverse_feedback }, header[0]))
    }

    /// Its bytes before a header of `protocol`.
    pub fn emit(&self, protocol: u8) -> [u8; LENGTH] {
        let format = match self.format {
            Format::Standard => 1,
            Format::Minimal => 2,
        };
        let mut bytes = [0; LENGTH];
        bytes[..3].copy_from_slice(&[protocol, LENGTH as u8, VERSION << 4 | format]);
        bytes[4..8].copy_from_slice(&self.rtt.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.x.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.delta_throughput.to_be_bytes());
        bytes[16..].copy_from_slice(&self.reverse_feedback.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_as_bytes() {
        // 100 ms = 0.1 * 2^28 = 26,843,546 = 0x0199999a; 2^-8 s = 0x00100000.
        let header = CongestionHeader {
            format: Format::Standard,
            rtt: FixedTime::new(Duration::from_millis(100)),
            x: FixedTime::from_secs(1.0 / 256.0),
            delta_throughput: -2,
            reverse_feedback: 0x0102_0304,
        };
        let bytes =
            [6, 20, 0x21, 0, 0x01, 0x99, 0x99, 0x9a, 0, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xfe, 0x01, 0x02, 0x03, 0x04];
        assert_eq!(header.emit(6), bytes);
        assert_eq!(CongestionHeader::parse(&bytes), Ok((header, 6)));
    }

    #[test]
    fn what_is_no_header_is_refused_with_the_reason() {
        let parse = |bytes: &[u8]| CongestionHeader::parse(bytes).map(|_| ());
        assert_eq!(parse(&[6; 19]), Err(WireError::Truncated { bytes: 19 }));
        let with = |length, kind| {
            let mut bytes = [0; 20];
            (bytes[1], bytes[2]) = (length, kind);
            parse(&bytes)
        };
        assert_eq!(with(21, 0x21), Err(WireError::Length(21)));
        assert_eq!(with(20, 0x11), Err(WireError::Version(1)));
        assert_eq!(with(20, 0x23), Err(WireError::Format(3)));
    }

    #[test]
    fn times_end_where_the_field_does() {
        assert_eq!(FixedTime::new(Duration::from_millis(20_000)).bits(), u32::MAX);
        assert_eq!(FixedTime::from_secs(-1.0), FixedTime::ZERO);
        assert!((FixedTime::from_secs(0.08).as_secs() - 0.08).abs() < 1e-8);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..40), valid: bool, minimal: bool) {
            if valid && bytes.len() > 2 {
                (bytes[1], bytes[2]) = (20, 0x21 + u8::from(minimal));
            }
            if let Ok((header, protocol)) = CongestionHeader::parse(&bytes) {
                prop_assert_eq!(CongestionHeader::parse(&header.emit(protocol)), Ok((header, protocol)));
            }
        }
    }
}
