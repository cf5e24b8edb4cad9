//! Headers of IP: what the router has to know of a packet, and what it may change in one.
//!
//! References: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 3168, section 5 (ECN). A packet is what a stranger wrote: it is
//! either read whole or refused, and its transport's header is only looked at for the flow.

use std::hash::{DefaultHasher, Hasher};

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::LENGTH;

/// Bytes of a header of IPv4 without options.
const SHORTEST_IPV4: usize = 20;
/// Bytes of the fixed header of IPv6.
const HEADER_IPV6: usize = 40;
/// ECN's two bits of the type of service or traffic class, when both are set.
const CE: u8 = 0b11;
/// Protocols whose header begins with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
/// Extension headers that are passed on the way to the transport's: more of them are no honest packet.
const MOST_EXTENSIONS: usize = 8;

/// Kinds of options (RFC 791, section 3.1; RFC 4782, section 3.1).
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const QUICK_START: u8 = 25;

/// Extension headers (RFC 8200, section 4; RFC 4302).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;

/// What the router has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Its bytes, as its header says; what follows them is the filling of a short frame.
    pub(crate) length: usize,
    /// Its ECN field.
    pub(crate) ecn: EcnCodepoint,
    /// A number of its flow: addresses, protocol and ports.
    pub(crate) flow: u32,
    /// The bytes of its header, if it is one of IPv4.
    ipv4_header: Option<usize>,
}

/// Why something is no packet for the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Neither IPv4 nor IPv6.
    Foreign,
    /// Cut off, of a length that it cannot have, or with a checksum that is wrong.
    Malformed,
}

impl Packet {
    /// Reads the headers at the begin of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        match bytes.first().ok_or(Unusable::Malformed)? >> 4 {
            4 => read_ipv4(bytes).ok_or(Unusable::Malformed),
            6 => read_ipv6(bytes).ok_or(Unusable::Malformed),
            _ => Err(Unusable::Foreign),
        }
    }

    /// The options of its header, and its TTL; `None` if it is not of IPv4.
    pub(crate) fn options<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], u8)> {
        let header = bytes.get(..self.ipv4_header?)?;
        Some((header.get(SHORTEST_IPV4..)?, *header.get(8)?))
    }

    /// Writes the option of Quick-Start where there is one, and the TTL.
    pub(crate) fn write_option(&self, bytes: &mut [u8], option: [u8; LENGTH], ttl: u8) {
        self.change_ipv4(bytes, |header| {
            header[8] = ttl;
            replace_option(header, option);
        });
    }

    /// Writes over the option of Quick-Start, so that the length stays what it is.
    pub(crate) fn remove_option(&self, bytes: &mut [u8]) {
        self.change_ipv4(bytes, |header| replace_option(header, [NO_OPERATION; LENGTH]));
    }

    fn change_ipv4(&self, bytes: &mut [u8], change: impl FnOnce(&mut [u8])) {
        if let Some(header) = self.ipv4_header.and_then(|length| bytes.get_mut(..length)) {
            change(header);
            write_checksum(header);
        }
    }
}

/// Writes CE into the header of a packet that could be read.
pub(crate) fn mark(bytes: &mut [u8]) {
    let header = bytes.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    match bytes {
        [first, class, ..] if *first >> 4 == 6 => *class |= CE << 4,
        [first, tos, ..] if *first >> 4 == 4 => {
            *tos |= CE;
            if let Some(header) = bytes.get_mut(..header) {
                write_checksum(header);
            }
        }
        _ => {}
    }
}

fn read_ipv4(bytes: &[u8]) -> Option<Packet> {
    let header_length = usize::from(bytes[0] & 0x0f) * 4;
    let header = bytes.get(..header_length).filter(|header| header.len() >= SHORTEST_IPV4)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // A router has to look (RFC 1812, section 5.2.2).
    if length < header_length || length > bytes.len() || checksum(header) != 0 {
        return None;
    }
    // Only the first fragment has the ports, and the others go with it: all without.
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let transport = bytes.get(header_length..length).filter(|_| !is_fragment);
    let flow = flow(&header[12..20], header[9], transport);
    Some(Packet { length, ecn: ecn(header[1]), flow, ipv4_header: Some(header_length) })
}

fn read_ipv6(bytes: &[u8]) -> Option<Packet> {
    let header = bytes.get(..HEADER_IPV6)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let length = HEADER_IPV6 + payload;
    // No payload but bytes: a jumbogram (RFC 2675), which no link here carries.
    if length > bytes.len() || (payload == 0 && bytes.len() > HEADER_IPV6 && header[6] == HOP_BY_HOP) {
        return None;
    }
    let (protocol, transport) = transport_of_ipv6(header[6], &bytes[HEADER_IPV6..length]);
    let flow = flow(&header[8..40], protocol, transport);
    Some(Packet { length, ecn: ecn(header[1] >> 4), flow, ipv4_header: None })
}

/// The protocol behind the extension headers, and its bytes. A fragment has none, as with IPv4; headers that cannot be
/// followed are their destination's business.
fn transport_of_ipv6(first: u8, payload: &[u8]) -> (u8, Option<&[u8]>) {
    let (mut next, mut rest) = (first, payload);
    for _ in 0..MOST_EXTENSIONS {
        let [following, length, ..] = *rest else { return (next, Some(rest)) };
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => 8 * (usize::from(length) + 1),
            AUTHENTICATION => 4 * (usize::from(length) + 2),
            FRAGMENT => return (following, None),
            _ => return (next, Some(rest)),
        };
        let Some(behind) = rest.get(length..) else { return (next, None) };
        (next, rest) = (following, behind);
    }
    (next, None)
}

fn flow(addresses: &[u8], protocol: u8, transport: Option<&[u8]>) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(addresses);
    hasher.write_u8(protocol);
    if let Some(ports) = transport.and_then(|bytes| bytes.get(..4)).filter(|_| WITH_PORTS.contains(&protocol)) {
        hasher.write(ports);
    }
    hasher.finish() as u32
}

fn ecn(bits: u8) -> EcnCodepoint {
    match bits & CE {
        0b00 => EcnCodepoint::NotEct,
        0b01 => EcnCodepoint::Ect1,
        0b10 => EcnCodepoint::Ect0,
        _ => EcnCodepoint::Ce,
    }
}

/// Writes over the option of Quick-Start in a header of IPv4.
fn replace_option(header: &mut [u8], new: [u8; LENGTH]) {
    let mut place = SHORTEST_IPV4;
    while let Some(&kind) = header.get(place).filter(|kind| **kind != END_OF_OPTIONS) {
        let length = match (kind, header.get(place + 1)) {
            (NO_OPERATION, _) => 1,
            (_, Some(length)) if *length >= 2 => usize::from(*length),
            _ => return,
        };
        if kind == QUICK_START {
            if let Some(old) = header.get_mut(place..place + length).filter(|old| old.len() == LENGTH) {
                old.copy_from_slice(&new);
            }
            return;
        }
        place += length;
    }
}

/// The checksum of these bytes (RFC 1071): zero if a right one is among them.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    // At most 30 words: no carry is lost.
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn write_checksum(header: &mut [u8]) {
    if header.len() >= SHORTEST_IPV4 {
        header[10..12].fill(0);
        let checksum = checksum(header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::quick_start::nonce::Nonce;
    use flowstart_core::quick_start::rate::RateCode;
    use flowstart_core::quick_start::wire::{IpOption, IpVersion};
    use proptest::prelude::*;

    use super::*;

    /// The example of a header in RFC 1071's manner that is known best: its checksum is 0xb861.
    const EXAMPLE: [u8; 20] =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];

    /// A packet of IPv4 with these options, whose length is a multiple of four.
    fn ipv4(tos: u8, fragment: u16, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let header = 20 + options.len();
        let mut packet = vec![0; 20];
        packet[0] = 0x40 | (header / 4) as u8;
        packet[1] = tos;
        packet[2..4].copy_from_slice(&((header + payload.len()) as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..20].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 2]);
        packet.extend_from_slice(options);
        write_checksum(&mut packet);
        packet.extend_from_slice(payload);
        packet
    }

    fn ipv6(class: u8, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60 | class >> 4, class << 4, 0, 0];
        packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[next, 64]);
        packet.extend_from_slice(&[1; 32]);
        packet.extend_from_slice(payload);
        packet
    }

    /// Adds all words anew, with the carry at each step.
    fn is_right(header: &[u8]) -> bool {
        let add = |sum: u16, word: &[u8]| {
            let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([word[0], word[1]]));
            sum + u16::from(carry)
        };
        header.chunks(2).fold(0, add) == 0xffff
    }

    #[test]
    fn a_checksum_is_that_of_the_example() {
        assert_eq!(checksum(&EXAMPLE), 0);
        let mut empty = EXAMPLE;
        empty[10..12].fill(0);
        // 4500 + 0073 + 4000 + 4011 + c0a8 + 0001 + c0a8 + 00c7 = 2479c, and 479c + 2 = 479e.
        assert_eq!(checksum(&empty), !0x479e);
        let packet = [&EXAMPLE[..], &[0; 95]].concat();
        assert_eq!(Packet::read(&packet).map(|packet| (packet.length, packet.ecn)), Ok((115, EcnCodepoint::NotEct)));
    }

    #[test]
    fn a_mark_changes_the_field_and_the_checksum_alone() {
        let mut packet = ipv4(0b1011_1010, 0, 17, &[], &[7; 30]);
        let before = packet.clone();
        mark(&mut packet);
        assert_eq!(Packet::read(&packet).map(|packet| packet.ecn), Ok(EcnCodepoint::Ce));
        let changed: Vec<usize> = (0..packet.len()).filter(|place| packet[*place] != before[*place]).collect();
        // One more in the type of service is one less in the checksum.
        assert_eq!((packet[1], changed), (0b1011_1011, vec![1, 11]));
        let mut packet = ipv6(0b1011_1001, 17, &[7; 30]);
        assert_eq!(Packet::read(&packet).map(|packet| packet.ecn), Ok(EcnCodepoint::Ect1));
        mark(&mut packet);
        assert_eq!((Packet::read(&packet).unwrap().ecn, packet[0], packet[1]), (EcnCodepoint::Ce, 0x6b, 0xb0));
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_refused() {
        let refused = |bytes: &[u8]| Packet::read(bytes).unwrap_err();
        let of_ipv4 = ipv4(0, 0, 17, &[1; 8], &[7; 30]);
        let of_ipv6 = ipv6(0, 17, &[7; 30]);
        for packet in [&of_ipv4, &of_ipv6] {
            for length in 0..packet.len() {
                assert_eq!(refused(&packet[..length]), Unusable::Malformed, "{length} bytes");
            }
            let filled = [&packet[..], &[0; 6]].concat();
            assert_eq!(Packet::read(&filled), Packet::read(packet), "a frame may be longer");
        }
        let with = |place: usize, byte: u8| {
            let mut packet = of_ipv4.clone();
            packet[place] = byte;
            packet
        };
        assert_eq!(refused(&with(8, 63)), Unusable::Malformed, "its checksum is wrong");
        for (place, byte) in [(0, 0x44), (0, 0x40), (3, 27), (2, 1)] {
            let mut packet = with(place, byte);
            let header = usize::from(packet[0] & 15) * 4;
            write_checksum(&mut packet[..header]);
            assert_eq!(refused(&packet), Unusable::Malformed, "{place}: {byte}");
        }
        assert_eq!((refused(&with(0, 0x57)), refused(&[0; 60])), (Unusable::Foreign, Unusable::Foreign));
        let mut jumbogram = ipv6(0, HOP_BY_HOP, &[0; 8]);
        jumbogram[5] = 0;
        assert_eq!(refused(&jumbogram), Unusable::Malformed);
    }

    #[test]
    fn a_flow_has_its_addresses_protocol_and_ports() {
        let flow = |packet: &[u8]| Packet::read(packet).unwrap().flow;
        let (one, other) = ([0, 80, 0, 90, 1, 1, 1, 1], [0, 80, 0, 91, 1, 1, 1, 1]);
        let of = |protocol, payload: &[u8]| flow(&ipv4(0, 0, protocol, &[], payload));
        assert_eq!(of(17, &one), flow(&ipv4(3, 0, 17, &[1; 4], &[&one[..], &[9; 9]].concat())));
        assert!(of(17, &one) != of(17, &other) && of(17, &one) != of(6, &one));
        // ICMP has no ports, and a fragment's are not looked at.
        assert_eq!(of(1, &one), of(1, &other));
        let fragment = |offset: u16, payload| flow(&ipv4(0, offset, 17, &[], payload));
        assert_eq!(fragment(0x2000, &one), fragment(0x00b9, &other));
        assert_ne!(fragment(0x4000, &one), fragment(0x4000, &other), "it may only not be cut");
        assert_eq!(of(17, &[1]), of(17, &[2]), "too short for ports");
    }

    #[test]
    fn ports_are_found_behind_extension_headers() {
        let flow = |next, payload: &[u8]| Packet::read(&ipv6(0, next, payload)).unwrap().flow;
        let udp = [0, 80, 0, 90, 0, 8, 0, 0];
        let plain = flow(17, &udp);
        let behind = |headers: &[u8]| [headers, &udp[..]].concat();
        assert_eq!(flow(HOP_BY_HOP, &behind(&[17, 0, 1, 4, 0, 0, 0, 0])), plain);
        assert_eq!(
            flow(DESTINATION, &behind(&[&[ROUTING, 0, 1, 4, 0, 0, 0, 0], &[17, 1][..], &[0; 14]].concat())),
            plain
        );
        assert_eq!(flow(AUTHENTICATION, &behind(&[&[17, 1][..], &[0; 10]].concat())), plain);
        let fragment = |port| flow(FRAGMENT, &[17, 0, 0, 0, 0, 0, 0, 1, 0, port]);
        assert_eq!(fragment(80), fragment(81));
        // A header that ends nowhere, and headers without an end.
        flow(HOP_BY_HOP, &[17, 200, 0, 0]);
        flow(HOP_BY_HOP, &[0; 800]);
    }

    #[test]
    fn an_option_is_written_where_it_was() {
        let request = |rate| IpOption::RateRequest { rate, ttl: 9, nonce: Nonce::from_bits(7) }.emit(IpVersion::V4);
        let (before, after) = (request(RateCode::ZERO), [25, 8, 1, 2, 3, 4, 5, 6]);
        let source_route = [131, 7, 4, 192, 0, 2, 1, 1];
        let options = [&source_route[..], &before].concat();
        let mut packet = ipv4(0, 0, 6, &options, &[7; 20]);
        let read = Packet::read(&packet).unwrap();
        assert_eq!(read.options(&packet), Some((&options[..], 64)));
        read.write_option(&mut packet, after, 63);
        assert_eq!(Packet::read(&packet), Ok(read));
        assert_eq!(read.options(&packet), Some((&[&source_route[..], &after].concat()[..], 63)));
        read.remove_option(&mut packet);
        assert_eq!(Packet::read(&packet), Ok(read));
        assert_eq!(read.options(&packet), Some((&[&source_route[..], &[1; 8]].concat()[..], 63)));
        assert_eq!(Packet::read(&ipv6(0, 17, &[0; 8])).unwrap().options(&ipv6(0, 17, &[0; 8])), None);
    }

    proptest! {
        #[test]
        fn the_checksum_of_a_marked_header_is_right(
            tos in any::<u8>(), protocol in any::<u8>(), words in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
        ) {
            let options = words.concat();
            let mut packet = ipv4(tos, 0, protocol, &options, &[7; 11]);
            prop_assert!(is_right(&packet[..20 + options.len()]));
            mark(&mut packet);
            prop_assert!(is_right(&packet[..20 + options.len()]));
            prop_assert_eq!(Packet::read(&packet).map(|packet| packet.ecn), Ok(EcnCodepoint::Ce));
        }

        #[test]
        fn nothing_that_arrives_is_a_panic(
            first in prop::sample::select(vec![0x45_u8, 0x4f, 0x46, 0x60, 0x00]),
            rest in prop::collection::vec(any::<u8>(), 0..200), is_repaired in any::<bool>(),
            option in any::<[u8; 8]>(),
        ) {
            let mut bytes = [&[first][..], &rest].concat();
            if is_repaired && bytes.len() >= 60 {
                let length = bytes.len() as u16;
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                let header = usize::from(bytes[0] & 15) * 4;
                write_checksum(&mut bytes[..header]);
            }
            let read = Packet::read(&bytes);
            mark(&mut bytes);
            if let Ok(read) = read {
                prop_assert!(read.length <= bytes.len());
                read.options(&bytes);
                read.write_option(&mut bytes, option, 3);
                read.remove_option(&mut bytes);
                prop_assert!(Packet::read(&bytes).is_ok());
            }
        }
    }
}
