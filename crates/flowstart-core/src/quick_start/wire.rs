//! The options of Quick-Start as bytes.
//!
//! Reference: RFC 4782, sections 3.1 to 3.3 and 4.2: the IPv4 option 25, the IPv6 hop-by-hop option 0x26 and the option
//! 27 of TCP. All three are eight bytes: kind and length, four bits each of function and rate, a TTL, a nonce of 30
//! bits and two reserved bits. Reserved bits are sent as zero and ignored.
//!
//! Not in RFC 4782: function 1, a Rate Confirmation, is the second pass of two (Sarolahti, Allman and Floyd, section
//! 8.2, which gives it no code). It looks like a Rate Request otherwise. Routers that do not know a function leave the
//! option as it is; `tshark` 4.0 calls it `Unknown (1)`, shows none of its other fields, and calls no packet malformed.
//!
//! | Bytes | IPv4 | IPv6 hop-by-hop | TCP |
//! |---|---|---|---|
//! | 0 | 25 | 0x26 | 27 |
//! | 1 | 8, the whole option | 6, what follows | 8, the whole option |
//! | 2 | function, rate | function, rate | reserved, rate |
//! | 3 | QS TTL | QS TTL | TTL Diff |
//! | 4-7 | QS Nonce, reserved | QS Nonce, reserved | QS Nonce, reserved |

use core::fmt;
use core::net::IpAddr;

use crate::quick_start::code::RateCode;
use crate::quick_start::nonce::Nonce;

/// IPv4 option type (copied flag 0, class 0, number 25).
pub const IPV4_OPTION: u8 = 25;
/// IPv6 hop-by-hop option type: skipped where unknown, may change on its way.
pub const IPV6_OPTION: u8 = 0x26;
/// TCP option kind.
pub const TCP_OPTION: u8 = 27;
/// Bytes of each option.
pub const LENGTH: usize = 8;

/// End of the options of an IPv4 header (RFC 791, section 3.1).
const END_OF_OPTIONS: u8 = 0;
/// An option of one byte that fills a place in an IPv4 header (RFC 791, section 3.1).
const NO_OPERATION: u8 = 1;
/// The option of one byte that fills a place in a hop-by-hop header (RFC 8200, section 4.2).
const PAD1: u8 = 0;
/// The one of several bytes, which are zero behind its type and length (RFC 8200, section 4.2).
const PAD_N: u8 = 1;

/// Function of a Rate Request.
const RATE_REQUEST: u8 = 0;
/// Function of a Rate Confirmation: ours, unassigned.
const RATE_CONFIRMATION: u8 = 1;
/// Function of a Report of Approved Rate.
const APPROVED_RATE: u8 = 8;

/// The header that an option is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// An IPv4 option.
    V4,
    /// An IPv6 hop-by-hop option.
    V6,
}

impl IpVersion {
    /// That of the packets between here and this address. One of IPv6 that stands for one of IPv4 (RFC 4291, section
    /// 2.5.5.2) is on no wire.
    pub const fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// What stands in the place of an option that is taken away, so that the header keeps its length.
    pub const fn filling(self) -> [u8; LENGTH] {
        match self {
            Self::V4 => [NO_OPERATION; LENGTH],
            Self::V6 => [PAD_N, LENGTH as u8 - 2, 0, 0, 0, 0, 0, 0],
        }
    }

    /// Type and length byte.
    const fn start(self) -> [u8; 2] {
        match self {
            Self::V4 => [IPV4_OPTION, LENGTH as u8],
            // Without type and length.
            Self::V6 => [IPV6_OPTION, LENGTH as u8 - 2],
        }
    }

    /// The bytes of the option that `rest` begins with, which has some; `None`: nothing stands from there on.
    fn next_option(self, rest: &[u8]) -> Result<Option<usize>, WireError> {
        // What the length of an option leaves out.
        let (shortest, outside) = match (self, rest) {
            (Self::V4, [END_OF_OPTIONS, ..]) => return Ok(None),
            (Self::V4, [NO_OPERATION, ..]) | (Self::V6, [PAD1, ..]) => return Ok(Some(1)),
            (Self::V4, _) => (2, 0),
            (Self::V6, _) => (0, 2),
        };
        let length = rest.get(1).copied().filter(|length| *length >= shortest).ok_or(WireError::CutOff)?;
        Some(usize::from(length) + outside).filter(|length| *length <= rest.len()).map(Some).ok_or(WireError::CutOff)
    }
}

/// What an IP option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpOption {
    /// A sender asks for a rate.
    RateRequest {
        /// The rate: the sender's, or what routers have left of it.
        rate: RateCode,
        /// Counted down by every router that takes part.
        ttl: u8,
        /// The sender's nonce, or what routers have left of it.
        nonce: Nonce,
    },
    /// The second pass: a sender asks for the rate that the first pass left. Routers confirm or refuse it, and never
    /// reduce it.
    RateConfirmation {
        /// The rate, 0 once it is refused.
        rate: RateCode,
        /// Counted down by every router that confirms.
        ttl: u8,
        /// A nonce of its own.
        nonce: Nonce,
    },
    /// A sender says which rate was approved, so that routers see it.
    ApprovedRate {
        /// The rate.
        rate: RateCode,
        /// The nonce of the request.
        nonce: Nonce,
    },
}

/// The answer of a receiver, as a TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The rate that arrived.
    pub rate: RateCode,
    /// IP TTL less QS TTL, as they arrived, modulo 256.
    pub ttl_diff: u8,
    /// The nonce that arrived.
    pub nonce: Nonce,
}

/// Why bytes are no option of Quick-Start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than an option has.
    Truncated {
        /// How many there were.
        bytes: usize,
    },
    /// Another option.
    Kind(u8),
    /// A length that the option does not have.
    Length {
        /// What the length byte said.
        said: u8,
        /// What it has to say.
        allowed: u8,
    },
    /// A function that nobody defines.
    Function(u8),
    /// The options of a header end within one of them.
    CutOff,
    /// A header has more than one.
    Repeated,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes } => write!(f, "a Quick-Start option has {LENGTH} bytes, not {bytes}"),
            Self::Kind(kind) => write!(f, "option {kind} is not Quick-Start"),
            Self::Length { said, allowed } => write!(f, "the option's length is {said}; allowed is {allowed}"),
            Self::CutOff => f.write_str("the header ends within an option"),
            Self::Repeated => f.write_str("a header has one Quick-Start option, not more"),
            Self::Function(function) => {
                write!(
                    f,
                    "function {function} is none of {RATE_REQUEST} (Rate Request), {RATE_CONFIRMATION} (Rate Confirmation) and \
                     {APPROVED_RATE} (Report)"
                )
            }
        }
    }
}

impl core::error::Error for WireError {}

/// The first eight bytes, if they begin with `start`.
fn checked(bytes: &[u8], start: [u8; 2]) -> Result<&[u8; LENGTH], WireError> {
    let option: &[u8; LENGTH] = bytes.first_chunk().ok_or(WireError::Truncated { bytes: bytes.len() })?;
    if option[0] != start[0] {
        return Err(WireError::Kind(option[0]));
    }
    if option[1] != start[1] {
        return Err(WireError::Length { said: option[1], allowed: start[1] });
    }
    Ok(option)
}

fn nonce(option: &[u8; LENGTH]) -> Nonce {
    Nonce::from_bits(u32::from_be_bytes([option[4], option[5], option[6], option[7]]) >> 2)
}

fn emit(start: [u8; 2], function: u8, rate: RateCode, ttl: u8, nonce: Nonce) -> [u8; LENGTH] {
    let [a, b, c, d] = (nonce.bits() << 2).to_be_bytes();
    [start[0], start[1], function << 4 | rate.bits(), ttl, a, b, c, d]
}

impl IpOption {
    /// Reads the option that `bytes` begin with.
    ///
    /// # Errors
    ///
    /// [`WireError`] when they begin with anything else.
    pub fn parse(version: IpVersion, bytes: &[u8]) -> Result<Self, WireError> {
        let option = checked(bytes, version.start())?;
        let (rate, nonce) = (RateCode::from_bits(option[2]), nonce(option));
        match option[2] >> 4 {
            RATE_REQUEST => Ok(Self::RateRequest { rate, ttl: option[3], nonce }),
            RATE_CONFIRMATION => Ok(Self::RateConfirmation { rate, ttl: option[3], nonce }),
            APPROVED_RATE => Ok(Self::ApprovedRate { rate, nonce }),
            function => Err(WireError::Function(function)),
        }
    }

    /// Reads the option among all those of a header; `None`: it has none.
    ///
    /// # Errors
    ///
    /// As [`IpOption::find`].
    pub fn among(version: IpVersion, options: &[u8]) -> Result<Option<Self>, WireError> {
        Ok(Self::find(version, options)?.map(|(_, option)| option))
    }

    /// Reads the option among all those of a header, with the place of its first byte. They are those of an IPv4
    /// header, or those of a hop-by-hop header behind its two first bytes.
    ///
    /// # Errors
    ///
    /// [`WireError`] when it is malformed or comes twice, or when the options cannot be told from each other.
    pub fn find(version: IpVersion, options: &[u8]) -> Result<Option<(usize, Self)>, WireError> {
        let (mut found, mut place) = (None, 0);
        while let Some(rest) = options.get(place..).filter(|rest| !rest.is_empty()) {
            let Some(length) = version.next_option(rest)? else { break };
            if rest[0] == version.start()[0] {
                let option = Self::parse(version, &rest[..length])?;
                if found.replace((place, option)).is_some() {
                    return Err(WireError::Repeated);
                }
            }
            place += length;
        }
        Ok(found)
    }

    /// Its bytes.
    pub fn emit(self, version: IpVersion) -> [u8; LENGTH] {
        match self {
            Self::RateRequest { rate, ttl, nonce } => emit(version.start(), RATE_REQUEST, rate, ttl, nonce),
            Self::RateConfirmation { rate, ttl, nonce } => emit(version.start(), RATE_CONFIRMATION, rate, ttl, nonce),
            Self::ApprovedRate { rate, nonce } => emit(version.start(), APPROVED_RATE, rate, 0, nonce),
        }
    }
}

impl Response {
    /// Reads the TCP option that `bytes` begin with.
    ///
    /// # Errors
    ///
    /// [`WireError`] when they begin with anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let option = checked(bytes, [TCP_OPTION, LENGTH as u8])?;
        Ok(Self { rate: RateCode::from_bits(option[2]), ttl_diff: option[3], nonce: nonce(option) })
    }

    /// Its bytes.
    pub fn emit(self) -> [u8; LENGTH] {
        emit([TCP_OPTION, LENGTH as u8], 0, self.rate, self.ttl_diff, self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: IpOption =
        IpOption::RateRequest { rate: RateCode::from_bits(11), ttl: 0x5c, nonce: Nonce::from_bits(0x2abb_ccdd) };

    #[test]
    fn the_options_of_rfc_4782_as_bytes() {
        // The nonce 0x2abbccdd, moved up by the two reserved bits: 0xaaef3374.
        assert_eq!(REQUEST.emit(IpVersion::V4), [25, 8, 0x0b, 0x5c, 0xaa, 0xef, 0x33, 0x74]);
        assert_eq!(REQUEST.emit(IpVersion::V6), [0x26, 6, 0x0b, 0x5c, 0xaa, 0xef, 0x33, 0x74]);
        let report = IpOption::ApprovedRate { rate: RateCode::from_bits(9), nonce: Nonce::from_bits(1) };
        assert_eq!(report.emit(IpVersion::V4), [25, 8, 0x89, 0, 0, 0, 0, 4]);
        let second = IpOption::RateConfirmation { rate: RateCode::from_bits(9), ttl: 3, nonce: Nonce::from_bits(1) };
        assert_eq!(second.emit(IpVersion::V4), [25, 8, 0x19, 3, 0, 0, 0, 4]);
        let response = Response { rate: RateCode::from_bits(9), ttl_diff: 0xe4, nonce: Nonce::from_bits(1) };
        assert_eq!(response.emit(), [27, 8, 0x09, 0xe4, 0, 0, 0, 4]);
    }

    #[test]
    fn what_is_no_option_is_refused_with_the_reason() {
        let parse = |bytes: &[u8]| IpOption::parse(IpVersion::V4, bytes);
        let option = REQUEST.emit(IpVersion::V4);
        assert_eq!(parse(&option[..7]), Err(WireError::Truncated { bytes: 7 }));
        assert_eq!(parse(&REQUEST.emit(IpVersion::V6)), Err(WireError::Kind(0x26)));
        let long = [25, 9, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse(&long), Err(WireError::Length { said: 9, allowed: 8 }));
        assert_eq!(parse(&[25, 8, 0x30, 0, 0, 0, 0, 0]), Err(WireError::Function(3)));
        assert_eq!(Response::parse(&option), Err(WireError::Kind(25)));
    }

    #[test]
    fn the_option_is_found_among_others_of_a_header() {
        let own = REQUEST.emit(IpVersion::V4);
        let read = |parts: &[&[u8]]| IpOption::among(IpVersion::V4, &parts.concat());
        // A router alert (148) and a record of the route (7) are others.
        let (alert, record): (&[u8], &[u8]) = (&[148, 4, 0, 0], &[7, 3, 4]);
        for others in [&[][..], &[1, 1], alert, record] {
            assert_eq!(read(&[others, &own, others]), Ok(Some(REQUEST)));
            assert_eq!(read(&[others]), Ok(None));
        }
        assert_eq!(read(&[&[0], &own]), Ok(None), "nothing stands behind the end");
        assert_eq!(read(&[&own, &own]), Err(WireError::Repeated));
        assert_eq!(read(&[&own[..7]]), Err(WireError::CutOff));
        assert_eq!(read(&[&[25, 4, 0, 0]]), Err(WireError::Truncated { bytes: 4 }));
        assert_eq!(read(&[&[25, 12], &[0; 10]]), Err(WireError::Length { said: 12, allowed: 8 }));
        for cut in [&[25][..], &[7], &[7, 0], &[7, 1], &[7, 3, 4, 9, 9]] {
            assert_eq!(read(&[cut]), Err(WireError::CutOff), "{cut:?}");
        }
    }

    #[test]
    fn the_option_is_found_among_others_of_a_hop_by_hop_header() {
        let own = REQUEST.emit(IpVersion::V6);
        let read = |parts: &[&[u8]]| IpOption::find(IpVersion::V6, &parts.concat());
        // A router alert (5), an option without content, and as many as a header can have.
        let (alert, filled): (&[u8], _) = (&[5, 2, 0, 0], [PAD1; 2046 - LENGTH]);
        for others in [&[][..], &[0, 0], &[1, 0], &[1, 4, 0, 0, 0, 0], alert, &[0x3e, 0], &filled] {
            assert_eq!(read(&[others, &own]), Ok(Some((others.len(), REQUEST))));
            assert_eq!(read(&[others]), Ok(None));
        }
        assert_eq!(read(&[&own, &[1, 4, 0, 0, 0, 0]]), Ok(Some((0, REQUEST))), "as it is sent");
        assert_eq!(read(&[&REQUEST.emit(IpVersion::V4)]), Err(WireError::CutOff), "eight bytes behind the length");
        assert_eq!(read(&[&REQUEST.emit(IpVersion::V4), &[0; 2]]), Ok(None), "another option");
        assert_eq!(read(&[&own, &own]), Err(WireError::Repeated));
        assert_eq!(read(&[&[0x26, 2, 0, 0]]), Err(WireError::Truncated { bytes: 4 }));
        assert_eq!(read(&[&[0x26, 7], &[0; 7]]), Err(WireError::Length { said: 7, allowed: 6 }));
        for cut in [&[0x26][..], &own[..7], &[5], &[5, 1], &[5, 2, 0], &[1, 200, 0]] {
            assert_eq!(read(&[cut]), Err(WireError::CutOff), "{cut:?}");
        }
    }

    #[test]
    fn the_place_of_an_option_may_be_filled() {
        for version in [IpVersion::V4, IpVersion::V6] {
            let filled = [version.filling(), REQUEST.emit(version), version.filling()].concat();
            assert_eq!(IpOption::find(version, &filled), Ok(Some((LENGTH, REQUEST))));
            assert_eq!(IpOption::find(version, &version.filling()), Ok(None));
        }
    }

    #[test]
    fn the_version_is_that_of_the_packets() {
        for (address, version) in
            [("192.0.2.1", IpVersion::V4), ("::ffff:192.0.2.1", IpVersion::V4), ("2001:db8::1", IpVersion::V6)]
        {
            assert_eq!(address.parse().map(IpVersion::of), Ok(version), "{address}");
        }
    }

    #[test]
    fn reserved_bits_are_ignored() {
        let mut bytes = REQUEST.emit(IpVersion::V4);
        bytes[7] |= 0b11;
        assert_eq!(IpOption::parse(IpVersion::V4, &bytes), Ok(REQUEST));
        let mut bytes = Response { rate: RateCode::MAX, ttl_diff: 1, nonce: Nonce::from_bits(2) }.emit();
        bytes[2] |= 0xf0;
        assert_eq!(Response::parse(&bytes).map(|response| response.rate), Ok(RateCode::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..12), version in any::<bool>()) {
            let version = if version { IpVersion::V6 } else { IpVersion::V4 };
            if let Ok(Some((place, option))) = IpOption::find(version, &bytes) {
                prop_assert_eq!(IpOption::parse(version, &bytes[place..]), Ok(option));
                prop_assert_eq!(IpOption::among(version, &option.emit(version)), Ok(Some(option)));
            }
            if let Ok(option) = IpOption::parse(version, &bytes) {
                prop_assert_eq!(IpOption::parse(version, &option.emit(version)), Ok(option));
            }
            if let Ok(response) = Response::parse(&bytes) {
                prop_assert_eq!(Response::parse(&response.emit()), Ok(response));
            }
        }

        #[test]
        fn options_survive_a_round_trip(rate in 0..16u8, ttl: u8, nonce: u32, function in 0..3) {
            let (rate, nonce) = (RateCode::from_bits(rate), Nonce::from_bits(nonce));
            let option = match function {
                0 => IpOption::ApprovedRate { rate, nonce },
                1 => IpOption::RateConfirmation { rate, ttl, nonce },
                _ => IpOption::RateRequest { rate, ttl, nonce },
            };
            for version in [IpVersion::V4, IpVersion::V6] {
                prop_assert_eq!(IpOption::parse(version, &option.emit(version)), Ok(option));
            }
            let response = Response { rate, ttl_diff: ttl, nonce };
            prop_assert_eq!(Response::parse(&response.emit()), Ok(response));
        }
    }
}
