//! The SCONE packet as bytes.
//!
//! Reference: draft-ietf-scone-protocol-08, "SCONE Packet", "Rate Signals", "Negotiating SCONE" and "Applying
//! Throughput Advice Signals". It is a long header without payload, the first packet of its datagram, and another
//! packet follows.
//!
//! | Bytes | What |
//! |---|---|
//! | 0 | 1, a bit that means nothing, and the six high bits of the rate signal |
//! | 1-4 | version: the lowest bit of the rate signal, then 0x6f7dc0fd without its highest bit |
//! | 5 | length of the destination connection ID, which follows |
//! | then | length of the source connection ID, which follows; empty before a short header |

use alloc::vec::Vec;
use core::fmt;

use crate::units::Rate;

/// Version of a packet whose rate signal is even.
pub const VERSION_EVEN: u32 = 0x6f7d_c0fd;
/// Version of a packet whose rate signal is odd.
pub const VERSION_ODD: u32 = 0xef7d_c0fd;
/// The transport parameter by which an endpoint says that it reads SCONE packets; it is empty, and not remembered for
/// 0-RTT.
pub const SCONE_SUPPORTED: u64 = 0x219e;
/// The end of the datagrams by which a client begins a flow that may carry SCONE packets.
pub const INDICATION: [u8; 2] = [0xc8, 0x13];

/// Header form of a long header.
const LONG: u8 = 0x80;
/// A bit that receivers ignore; set, as in other QUIC packets.
const FIXED: u8 = 0x40;
/// The high bits of the rate signal.
const HIGH_BITS: u8 = 0x3f;
/// The bit of the version that is part of the rate signal.
const SIGNAL_BIT: u32 = VERSION_EVEN ^ VERSION_ODD;
/// Bytes before the destination connection ID, its length included.
const START: usize = 6;

/// Throughput advice as its seven bits: 100 kbit/s * 10^(n/20) for n = 0 to 126, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateSignal(u8);

impl RateSignal {
    /// No element has advised anything; what endpoints send.
    pub const UNKNOWN: Self = Self(127);
    /// 199.5 Gbit/s, the highest rate.
    pub const MAX: Self = Self(126);

    /// The low seven bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x7f)
    }

    /// n; 127 is unknown.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// 100 kbit/s * 10^(n/20); `None`: unknown.
    pub fn rate(self) -> Option<Rate> {
        let exponent = f64::from(self.0) / 20.0;
        (self < Self::UNKNOWN).then(|| Rate::from_bits_per_sec(libm::round(1e5 * libm::pow(10.0, exponent)) as u64))
    }

    /// The highest signal whose rate is at most `rate`; the lowest one, 100 kbit/s, where there is none.
    pub fn at_most(rate: Rate) -> Self {
        let steps = libm::floor(20.0 * libm::log10(rate.bits_per_sec().max(100_000) as f64 / 1e5));
        // The logarithm may have a rounding error, so one step more is tried first.
        let next = Self((steps as u8).saturating_add(1).min(Self::MAX.0));
        if next.rate().is_some_and(|next| next <= rate) { next } else { Self(next.0.min(steps as u8)) }
    }
}

impl Default for RateSignal {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl fmt::Display for RateSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate() {
            Some(rate) => write!(f, "{rate}"),
            None => f.write_str("unknown"),
        }
    }
}

/// Why bytes do not begin with a SCONE packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The packet ends before its connection IDs do.
    Truncated {
        /// How many bytes there were.
        bytes: usize,
    },
    /// A packet with a short header.
    ShortHeader,
    /// A packet of another version.
    Version(u32),
    /// No packet follows: the signal must not be used ("Endpoint Processing of SCONE Packets").
    Alone,
    /// A connection ID that no length byte can tell.
    ConnectionId {
        /// Its length.
        bytes: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { bytes } => write!(f, "a SCONE packet does not end within {bytes} bytes"),
            Self::ShortHeader => f.write_str("a short header is no SCONE packet"),
            Self::Version(version) => write!(f, "version {version:#010x} is not SCONE"),
            Self::Alone => f.write_str("nothing follows the SCONE packet"),
            Self::ConnectionId { bytes } => write!(f, "a connection ID has {bytes} bytes; allowed is up to 255"),
        }
    }
}

impl core::error::Error for WireError {}

/// A SCONE packet: a view of the bytes that it was read from or that it will name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SconePacket<'a> {
    signal: RateSignal,
    destination: &'a [u8],
    source: &'a [u8],
}

impl<'a> SconePacket<'a> {
    /// A packet as an endpoint sends it, without advice. `destination` is the connection ID of the packet that follows,
    /// and so is `source`, which is empty where that has a short header.
    ///
    /// # Errors
    ///
    /// [`WireError::ConnectionId`] when one has more than 255 bytes.
    pub fn new(destination: &'a [u8], source: &'a [u8]) -> Result<Self, WireError> {
        match [destination, source].iter().map(|id| id.len()).find(|bytes| *bytes > usize::from(u8::MAX)) {
            Some(bytes) => Err(WireError::ConnectionId { bytes }),
            None => Ok(Self { signal: RateSignal::UNKNOWN, destination, source }),
        }
    }

    /// Reads the packet that `datagram` begins with, and the packets that follow it.
    ///
    /// # Errors
    ///
    /// [`WireError`] when it begins with anything else, or when nothing follows.
    pub fn parse(datagram: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        let truncated = WireError::Truncated { bytes: datagram.len() };
        let signal = signal(datagram)?;
        let (destination, rest) = connection_id(&datagram[START - 1..]).ok_or(truncated)?;
        let (source, rest) = connection_id(rest).ok_or(truncated)?;
        if rest.is_empty() {
            return Err(WireError::Alone);
        }
        Ok((Self { signal, destination, source }, rest))
    }

    /// What is advised.
    pub fn signal(&self) -> RateSignal {
        self.signal
    }

    /// The connection ID of the receiver, who must know it.
    pub fn destination(&self) -> &'a [u8] {
        self.destination
    }

    /// The connection ID of the sender; empty before a short header.
    pub fn source(&self) -> &'a [u8] {
        self.source
    }

    /// Its bytes, without those of the packets that follow.
    pub fn len(&self) -> usize {
        START + 1 + self.destination.len() + self.source.len()
    }

    /// Never: a packet has bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends its bytes. The packets of the datagram come after it.
    pub fn emit(&self, datagram: &mut Vec<u8>) {
        let [first, version @ ..] = start(LONG | FIXED, self.signal);
        datagram.push(first);
        datagram.extend_from_slice(&version);
        for id in [self.destination, self.source] {
            // `new` and `parse` check the length.
            datagram.push(id.len() as u8);
            datagram.extend_from_slice(id);
        }
    }
}

/// The first byte and the version that carry `signal`; the two highest bits of `first` stay.
fn start(first: u8, signal: RateSignal) -> [u8; 5] {
    let version = if signal.0 & 1 == 0 { VERSION_EVEN } else { VERSION_ODD };
    let [a, b, c, d] = version.to_be_bytes();
    [(first & !HIGH_BITS) | (signal.0 >> 1), a, b, c, d]
}

/// The rate signal of the SCONE packet that `datagram` begins with.
fn signal(datagram: &[u8]) -> Result<RateSignal, WireError> {
    let Some(&[first, a, b, c, d, _]) = datagram.first_chunk::<START>() else {
        return Err(WireError::Truncated { bytes: datagram.len() });
    };
    let version = u32::from_be_bytes([a, b, c, d]);
    if first & LONG == 0 {
        return Err(WireError::ShortHeader);
    }
    if version & !SIGNAL_BIT != VERSION_EVEN {
        return Err(WireError::Version(version));
    }
    Ok(RateSignal(((first & HIGH_BITS) << 1) | (version >> 31) as u8))
}

/// A connection ID behind its length, and what follows it.
fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// What an element does to a datagram: lowers the rate signal to `advised` if the datagram begins with a SCONE packet
/// whose signal is higher. Tells whether the datagram was changed, so that its UDP checksum has to be computed again.
pub fn lower(datagram: &mut [u8], advised: RateSignal) -> bool {
    if signal(datagram).is_ok_and(|signal| advised < signal)
        && let Some(bytes) = datagram.first_chunk_mut::<5>()
    {
        *bytes = start(bytes[0], advised);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kbit(kbit: u64) -> Rate {
        Rate::from_bits_per_sec(kbit * 1000)
    }

    /// A datagram with this signal, connection IDs of two bytes and none, and one byte of another packet.
    fn datagram(signal: RateSignal) -> Vec<u8> {
        let mut bytes = Vec::new();
        SconePacket { signal, ..SconePacket::new(&[7, 8], &[]).unwrap() }.emit(&mut bytes);
        bytes.push(0x42);
        bytes
    }

    #[test]
    fn the_rates_of_the_drafts_table() {
        // 20 steps to a factor of ten; 10^(1/20) = 1.122; 10^(126/20) * 100 kbit/s = 199.526 Gbit/s.
        let rate = |n| RateSignal::from_bits(n).rate().map(Rate::bits_per_sec);
        assert_eq!((rate(0), rate(1), rate(20)), (Some(100_000), Some(112_202), Some(1_000_000)));
        assert_eq!((rate(60), rate(100), rate(126)), (Some(100_000_000), Some(10_000_000_000), Some(199_526_231_497)));
        assert_eq!(rate(127), None);
    }

    #[test]
    fn a_rate_becomes_the_signal_below_it() {
        // 20 log10(500) = 53.98: 50 Mbit/s is said as n = 53, 100 kbit/s * 10^2.65 = 44.668 Mbit/s.
        assert_eq!(RateSignal::at_most(kbit(50_000)).bits(), 53);
        assert_eq!(RateSignal::at_most(kbit(50_000)).rate(), Some(Rate::from_bits_per_sec(44_668_359)));
        assert_eq!((RateSignal::at_most(Rate::ZERO).bits(), RateSignal::at_most(kbit(99)).bits()), (0, 0));
        assert_eq!(RateSignal::at_most(Rate::from_bits_per_sec(u64::MAX)), RateSignal::MAX);
        for n in 0..127 {
            let signal = RateSignal::from_bits(n);
            assert_eq!(RateSignal::at_most(signal.rate().unwrap()), signal);
        }
    }

    #[test]
    fn the_packet_as_bytes() {
        // 53 = 0b110101: 0xc0 | 26, and an odd version.
        let odd = [0xda, 0xef, 0x7d, 0xc0, 0xfd, 2, 7, 8, 0, 0x42];
        assert_eq!(datagram(RateSignal::from_bits(53)), odd);
        assert_eq!(datagram(RateSignal::from_bits(52))[..5], [0xda, 0x6f, 0x7d, 0xc0, 0xfd]);
        assert_eq!(datagram(RateSignal::UNKNOWN)[..2], [0xff, 0xef]);
        let (packet, rest) = SconePacket::parse(&odd).unwrap();
        assert_eq!((packet.signal().bits(), packet.destination(), packet.source()), (53, &[7, 8][..], &[][..]));
        assert_eq!((packet.len(), rest), (9, &[0x42][..]));
    }

    #[test]
    fn what_is_no_scone_packet_is_refused_with_the_reason() {
        let whole = datagram(RateSignal::UNKNOWN);
        let parse = |bytes: &[u8]| SconePacket::parse(bytes).map(|_| ());
        assert_eq!(parse(&whole[..8]), Err(WireError::Truncated { bytes: 8 }));
        assert_eq!(parse(&whole[..3]), Err(WireError::Truncated { bytes: 3 }));
        assert_eq!(parse(&whole[..9]), Err(WireError::Alone));
        assert_eq!(parse(&[0x42; 20]), Err(WireError::ShortHeader));
        assert_eq!(parse(&[0xc3, 0, 0, 0, 1, 0, 0, 0]), Err(WireError::Version(1)));
        assert_eq!(SconePacket::new(&[0; 256], &[]), Err(WireError::ConnectionId { bytes: 256 }));
    }

    #[test]
    fn an_element_only_lowers() {
        let mut bytes = datagram(RateSignal::UNKNOWN);
        assert!(lower(&mut bytes, RateSignal::from_bits(60)));
        assert_eq!(bytes, datagram(RateSignal::from_bits(60)));
        assert!(!lower(&mut bytes, RateSignal::from_bits(61)));
        assert!(lower(&mut bytes, RateSignal::from_bits(59)));
        let mut other = [0xc3, 0, 0, 0, 1, 0, 0, 0];
        assert!(!lower(&mut other, RateSignal::from_bits(0)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..40), code: u8, scone: bool) {
            if scone && bytes.len() > 5 {
                bytes[..5].copy_from_slice(&start(LONG, RateSignal::from_bits(code)));
            }
            let before = SconePacket::parse(&bytes).map(|(packet, rest)| {
                let mut written = Vec::new();
                packet.emit(&mut written);
                written.extend_from_slice(rest);
                (packet.signal(), written)
            });
            if let Ok((_, written)) = &before {
                prop_assert_eq!(&written[1..], &bytes[1..]);
                prop_assert_eq!(written[0] & !FIXED, bytes[0] & !FIXED);
            }
            let advised = RateSignal::from_bits(code / 2);
            let changed = lower(&mut bytes, advised);
            if let Ok((signal, _)) = before {
                let (after, _) = SconePacket::parse(&bytes).unwrap();
                prop_assert_eq!((after.signal(), changed), (signal.min(advised), advised < signal));
            }
        }

        #[test]
        fn packets_survive_a_round_trip(
            code: u8,
            destination in prop::collection::vec(any::<u8>(), 0..=255),
            source in prop::collection::vec(any::<u8>(), 0..=255),
        ) {
            let mut bytes = Vec::new();
            let signal = RateSignal::from_bits(code);
            let packet = SconePacket { signal, ..SconePacket::new(&destination, &source).unwrap() };
            packet.emit(&mut bytes);
            prop_assert_eq!(packet.len(), bytes.len());
            bytes.push(1);
            prop_assert_eq!(SconePacket::parse(&bytes), Ok((packet, &[1][..])));
        }
    }
}
