//! Headers of IP: what the router has to know of a packet, and what it may change in one.
//!
//! References: RFC 791 and 1812 (IPv4), RFC 8200 (IPv6), RFC 3168, section 5 (ECN). A packet is what a stranger wrote:
//! it is either read whole or refused, and its transport's header is only looked at for the flow and for SCONE. A
//! checksum over what is changed changes by the difference, so nothing else that it covers is made right.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH};

use crate::checksum::{change, checksum};

/// Bytes of a header of IPv4 without options.
const SHORTEST_IPV4: usize = 20;
/// Where fields of it are that are changed.
const TOS: usize = 1;
const TTL: usize = 8;
const IPV4_CHECKSUM: usize = 10;
/// Bytes of the fixed header of IPv6.
pub(crate) const HEADER_IPV6: usize = 40;
/// Where its hop limit is.
const HOP_LIMIT: usize = 7;
/// ECN's two bits of the type of service or traffic class, when both are set.
const CE: u8 = 0b11;
/// Protocols whose header begins with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, UDP, 33, 132, 136];
/// Extension headers that are passed on the way to the transport's: more of them are no honest packet.
const MOST_EXTENSIONS: usize = 8;

/// UDP, the bytes of its header, and where its length and its checksum are (RFC 768).
const UDP: u8 = 17;
const HEADER_UDP: usize = 8;
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;
/// ICMP for IPv6, and its messages by which the hosts and routers of a link find each other (RFC 4861, section 4):
/// receivers refuse those that have crossed a router.
pub(crate) const ICMPV6: u8 = 58;
const NEIGHBOR_DISCOVERY: RangeInclusive<u8> = 133..=137;

/// Extension headers (RFC 8200, section 4; RFC 4302).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Bytes of a hop-by-hop header before its options.
const BEFORE_OPTIONS: usize = 2;

/// What the router has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Its bytes, as its header says; what follows them is the filling of a short frame.
    pub(crate) length: usize,
    /// Its ECN field.
    pub(crate) ecn: EcnCodepoint,
    /// A number of its flow: addresses, protocol and ports.
    pub(crate) flow: u32,
    /// The ports that it comes from and goes to, if its protocol has any.
    pub(crate) ports: Option<[u16; 2]>,
    /// Its version of IP.
    pub(crate) version: IpVersion,
    /// Its TTL or hop limit.
    pub(crate) ttl: u8,
    /// It is for hosts of one link, so no router would forward it.
    pub(crate) is_for_one_link: bool,
    /// Where its options begin and end: those of the header of IPv4, or of a hop-by-hop header.
    options: (usize, usize),
    /// Where the header of UDP begins, if it is a whole datagram.
    udp: Option<usize>,
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

    /// The options that every router may look at.
    pub(crate) fn options<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.options.0..self.options.1).unwrap_or_default()
    }

    /// Writes this over the option of Quick-Start, if there is one.
    pub(crate) fn replace_option(&self, bytes: &mut [u8], new: [u8; LENGTH]) {
        if let Ok(Some((place, _))) = IpOption::find(self.version, self.options(bytes)) {
            let begin = self.options.0 + place;
            self.change_header(bytes, begin..begin + LENGTH, |old| old.copy_from_slice(&new));
        }
    }

    /// Writes the TTL or hop limit.
    pub(crate) fn set_ttl(&self, bytes: &mut [u8], ttl: u8) {
        let begin = match self.version {
            IpVersion::V4 => TTL,
            IpVersion::V6 => HOP_LIMIT,
        };
        self.change_header(bytes, begin..begin + 1, |old| old.fill(ttl));
    }

    /// Changes a place in the header, and its checksum if it has one.
    fn change_header(&self, bytes: &mut [u8], place: Range<usize>, write: impl FnOnce(&mut [u8])) {
        match self.version {
            IpVersion::V4 => change(bytes, IPV4_CHECKSUM, place, write),
            IpVersion::V6 => {
                if let Some(old) = bytes.get_mut(place) {
                    write(old);
                }
            }
        }
    }

    /// The payload of UDP, if it is a whole datagram.
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.datagram(bytes)?)?.get(HEADER_UDP..)
    }

    /// Where the datagram of UDP is, with its header.
    fn datagram(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let begin = self.udp?;
        let length = bytes.get(begin + UDP_LENGTH..)?.first_chunk().copied().map(u16::from_be_bytes)?;
        let end = begin + usize::from(length);
        (end <= self.length).then_some(begin..end)
    }

    /// Changes the payload of UDP, and its checksum, unless that is still to be computed by hardware.
    pub(crate) fn change_payload(&self, bytes: &mut [u8], has_checksum: bool, write: impl FnOnce(&mut [u8])) {
        let Some(datagram) = self.datagram(bytes).and_then(|place| bytes.get_mut(place)) else { return };
        let checksum = |datagram: &[u8]| datagram.get(UDP_CHECKSUM..HEADER_UDP) != Some(&[0; 2]);
        // Over IPv4 a sender may leave it out (RFC 768).
        if !has_checksum || !checksum(datagram) {
            if let Some(payload) = datagram.get_mut(HEADER_UDP..) {
                write(payload);
            }
            return;
        }
        let end = datagram.len();
        change(datagram, UDP_CHECKSUM, HEADER_UDP..end, write);
        // A zero would mean that there is none, and its complement is the same number.
        if !checksum(datagram)
            && let Some(field) = datagram.get_mut(UDP_CHECKSUM..HEADER_UDP)
        {
            field.fill(0xff);
        }
    }
}

/// Writes CE into the header of a packet that could be read.
pub(crate) fn mark(bytes: &mut [u8]) {
    match bytes {
        [first, class, ..] if *first >> 4 == 6 => *class |= CE << 4,
        [first, ..] if *first >> 4 == 4 => change(bytes, IPV4_CHECKSUM, TOS..TOS + 1, |tos| tos[0] |= CE),
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
    let [from, to] = [12, 16].map(|place| header[place..].first_chunk().copied().map(Ipv4Addr::from));
    let is_for_one_link = from?.is_link_local() || is_for_one_link(to?);
    Some(Packet {
        length,
        ecn: ecn(header[TOS]),
        flow: flow(&header[12..20], header[9], transport),
        ports: ports(header[9], transport),
        version: IpVersion::V4,
        ttl: header[TTL],
        is_for_one_link,
        options: (SHORTEST_IPV4, header_length),
        udp: transport.and((header[9] == UDP).then_some(header_length)),
    })
}

/// Of the multicast addresses, those of RFC 5771, section 4.
fn is_for_one_link(to: Ipv4Addr) -> bool {
    to.is_link_local() || to.is_broadcast() || matches!(to.octets(), [224, 0, 0, _])
}

fn read_ipv6(bytes: &[u8]) -> Option<Packet> {
    let header = bytes.get(..HEADER_IPV6)?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let length = HEADER_IPV6 + payload;
    // No payload but bytes: a jumbogram (RFC 2675), which no link here carries.
    if length > bytes.len() || (payload == 0 && bytes.len() > HEADER_IPV6 && header[6] == HOP_BY_HOP) {
        return None;
    }
    let payload = &bytes[HEADER_IPV6..length];
    let (protocol, transport) = transport_of_ipv6(header[6], payload);
    let [from, to] = [8, 24].map(|place| header[place..].first_chunk().copied().map(Ipv6Addr::from));
    let kind = transport.and_then(|message| message.first()).filter(|_| protocol == ICMPV6);
    let is_neighbors = kind.is_some_and(|kind| NEIGHBOR_DISCOVERY.contains(kind));
    Some(Packet {
        length,
        ecn: ecn(header[1] >> 4),
        flow: flow(&header[8..40], protocol, transport),
        ports: ports(protocol, transport),
        version: IpVersion::V6,
        ttl: header[HOP_LIMIT],
        is_for_one_link: is_neighbors || [from?, to?].into_iter().any(is_of_one_link),
        options: (HEADER_IPV6 + BEFORE_OPTIONS, HEADER_IPV6 + hop_by_hop(header[6], payload)),
        udp: transport.filter(|_| protocol == UDP).map(|transport| length - transport.len()),
    })
}

/// An address of one link, or a multicast address whose scope (RFC 4291, section 2.7) is no more than that.
fn is_of_one_link(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local() || matches!(address.octets(), [0xff, scope, ..] if scope & 0x0f <= 2)
}

/// Bytes of the hop-by-hop header that the payload begins with; zero: there is none, or none that is whole.
fn hop_by_hop(first: u8, payload: &[u8]) -> usize {
    let length = payload.get(1).map(|length| 8 * (usize::from(*length) + 1));
    length.filter(|length| first == HOP_BY_HOP && *length <= payload.len()).unwrap_or(0)
}

/// The protocol behind the extension headers, and its bytes. A fragment has none, as with IPv4; headers that cannot be
/// followed are their destination's business.
pub(crate) fn transport_of_ipv6(first: u8, payload: &[u8]) -> (u8, Option<&[u8]>) {
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
    // Without a key of its own anybody could look for two flows that share a queue.
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEY.build_hasher();
    hasher.write(addresses);
    hasher.write_u8(protocol);
    if let Some(ports) = bytes_of_ports(protocol, transport) {
        hasher.write(ports);
    }
    hasher.finish() as u32
}

fn bytes_of_ports(protocol: u8, transport: Option<&[u8]>) -> Option<&[u8; 4]> {
    transport.and_then(|bytes| bytes.first_chunk()).filter(|_| WITH_PORTS.contains(&protocol))
}

fn ports(protocol: u8, transport: Option<&[u8]>) -> Option<[u16; 2]> {
    let [a, b, c, d] = *bytes_of_ports(protocol, transport)?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

fn ecn(bits: u8) -> EcnCodepoint {
    match bits & CE {
        0b00 => EcnCodepoint::NotEct,
        0b01 => EcnCodepoint::Ect1,
        0b10 => EcnCodepoint::Ect0,
        _ => EcnCodepoint::Ce,
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::quick_start::nonce::Nonce;
    use flowstart_core::quick_start::rate::RateCode;
    use flowstart_core::quick_start::wire::{IpOption, IpVersion};
    use proptest::prelude::*;

    use super::*;

    fn write_checksum(header: &mut [u8]) {
        if header.len() >= SHORTEST_IPV4 {
            header[10..12].fill(0);
            let checksum = checksum(header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
    }

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

    /// A request with this rate, as bytes.
    fn request(version: IpVersion, rate: RateCode) -> [u8; LENGTH] {
        IpOption::RateRequest { rate, ttl: 9, nonce: Nonce::from_bits(7) }.emit(version)
    }

    #[test]
    fn an_option_is_written_where_it_was() {
        let (before, after) = (request(IpVersion::V4, RateCode::ZERO), [25, 8, 1, 2, 3, 4, 5, 6]);
        // Behind one of an odd length, too.
        for others in [&[131, 7, 4, 192, 0, 2, 1, 1][..], &[1, 1, 1], &[]] {
            let with = |option: &[u8]| [others, option, &[0; 4][(others.len() + 3) % 4 + 1..]].concat();
            let mut packet = ipv4(0, 0, 6, &with(&before), &[7; 20]);
            let read = Packet::read(&packet).unwrap();
            assert_eq!((read.options(&packet), read.ttl), (&with(&before)[..], 64));
            read.replace_option(&mut packet, after);
            assert_eq!(Packet::read(&packet), Ok(read), "its checksum is right");
            assert_eq!(read.options(&packet), with(&after));
            read.replace_option(&mut packet, IpVersion::V4.filling());
            assert_eq!(Packet::read(&packet), Ok(read));
            assert_eq!(read.options(&packet), with(&[1; 8]));
        }
    }

    #[test]
    fn an_option_of_a_hop_by_hop_header_is_written_where_it_was() {
        let (before, after) = (request(IpVersion::V6, RateCode::ZERO), [0x26, 6, 1, 2, 3, 4, 5, 6]);
        let udp = [0, 80, 0, 90, 0, 12, 1, 2, 3, 4, 5, 6];
        let with = |option: &[u8]| {
            ipv6(0, HOP_BY_HOP, &[&[17, 2, 5, 2, 0, 0][..], option, &[1, 8, 0, 0, 0, 0, 0, 0, 0, 0], &udp].concat())
        };
        let mut packet = with(&before);
        let read = Packet::read(&packet).unwrap();
        assert_eq!((read.options(&packet).len(), read.options(&packet)[..4].to_vec()), (22, vec![5, 2, 0, 0]));
        assert_eq!((read.ttl, read.payload(&packet)), (64, Some(&[3, 4, 5, 6][..])));
        read.replace_option(&mut packet, after);
        assert_eq!(packet, with(&after), "nothing else has changed");
        read.replace_option(&mut packet, IpVersion::V6.filling());
        assert_eq!(packet, with(&IpVersion::V6.filling()));
        read.replace_option(&mut packet, after);
        assert_eq!(packet, with(&IpVersion::V6.filling()), "there is none");
        // The header has to be the first, and whole.
        let behind = ipv6(0, DESTINATION, &[&[HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0, 17, 1][..], &before, &[0; 6]].concat());
        let cut = ipv6(0, HOP_BY_HOP, &[&[17, 9][..], &before, &[0; 6]].concat());
        for packet in [behind, cut, ipv6(0, 17, &udp)] {
            assert_eq!(Packet::read(&packet).unwrap().options(&packet), &[] as &[u8]);
        }
    }

    #[test]
    fn a_hop_changes_the_ttl_and_the_checksum_alone() {
        let mut packet = EXAMPLE.to_vec();
        packet[3] = 20;
        write_checksum(&mut packet);
        let (read, before) = (Packet::read(&packet).unwrap(), packet.clone());
        read.set_ttl(&mut packet, read.ttl - 1);
        let lower = Packet { ttl: 63, ..read };
        assert_eq!(Packet::read(&packet), Ok(lower));
        let changed: Vec<usize> = (0..packet.len()).filter(|place| packet[*place] != before[*place]).collect();
        // One less in the high byte of a word is one more in that of the checksum.
        assert_eq!((changed, packet[10]), (vec![8, 10], before[10] + 1));
        let mut packet = ipv6(0, 17, &[7; 30]);
        let read = Packet::read(&packet).unwrap();
        read.set_ttl(&mut packet, 0);
        assert_eq!(Packet::read(&packet), Ok(Packet { ttl: 0, ..read }));
    }

    #[test]
    fn what_is_for_one_link_is_no_hops_business() {
        let to = |address: &str| match address.parse().unwrap() {
            std::net::IpAddr::V4(to) => {
                let mut packet = ipv4(0, 0, 17, &[], &[7; 30]);
                packet[16..20].copy_from_slice(&to.octets());
                write_checksum(&mut packet[..20]);
                packet
            }
            std::net::IpAddr::V6(to) => {
                let mut packet = ipv6(0, 17, &[7; 30]);
                packet[24..40].copy_from_slice(&to.octets());
                packet
            }
        };
        let is_for_one_link = |packet: &[u8]| Packet::read(packet).unwrap().is_for_one_link;
        for address in ["224.0.0.22", "255.255.255.255", "169.254.3.4", "fe80::1", "febf::1", "ff02::16", "ff11::1"] {
            assert!(is_for_one_link(&to(address)), "{address}");
        }
        for address in ["10.9.0.2", "224.0.1.1", "239.1.2.3", "fd09::1", "fec0::1", "ff05::2", "ff0e::1"] {
            assert!(!is_for_one_link(&to(address)), "{address}");
        }
        // A solicitation of a neighbour, and an echo.
        assert!(is_for_one_link(&ipv6(0, ICMPV6, &[135, 0, 0, 0])) && !is_for_one_link(&ipv6(0, ICMPV6, &[128, 0])));
        assert!(!is_for_one_link(&ipv6(0, 17, &[135, 0, 0, 0])));
    }

    /// The sum of a datagram of UDP with what stands for its header of IP (RFC 768; RFC 8200, section 8.1).
    fn is_whole(packet: &[u8], header: usize) -> bool {
        let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
        let length = ((packet.len() - header) as u32).to_be_bytes();
        checksum(&[addresses, &length, &[0, 0, 0, 17], &packet[header..]].concat()) == 0
    }

    /// A datagram with this payload, whose checksum is right in a packet of `build`.
    fn udp(payload: &[u8], build: impl Fn(&[u8]) -> Vec<u8>, header: usize) -> Vec<u8> {
        let length = (HEADER_UDP + payload.len()) as u16;
        let mut datagram = [&[0, 80, 0, 90][..], &length.to_be_bytes(), &[0, 0], payload].concat();
        let packet = build(&datagram);
        let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
        let sum = checksum(&[addresses, &[0, 0, 0, 17, 0, 0], &length.to_be_bytes(), &datagram].concat());
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        let packet = build(&datagram);
        assert!(is_whole(&packet, header));
        packet
    }

    #[test]
    fn a_changed_payload_has_a_right_checksum() {
        for payload in [&[7; 10][..], &[7; 11], &[], &[0xff; 6]] {
            let of_ipv4 = udp(payload, |datagram| ipv4(0, 0, 17, &[1; 4], datagram), 24);
            let of_ipv6 = udp(payload, |datagram| ipv6(0, 17, datagram), 40);
            for (mut packet, header) in [(of_ipv4, 24), (of_ipv6, 40)] {
                let read = Packet::read(&packet).unwrap();
                assert_eq!(read.payload(&packet), Some(payload));
                read.change_payload(&mut packet, true, |payload| payload.iter_mut().for_each(|byte| *byte ^= 0x5a));
                assert!(is_whole(&packet, header));
                assert!(read.payload(&packet).unwrap().iter().zip(payload).all(|(new, old)| new ^ old == 0x5a));
                // One that the hardware computes stays, and so does one that is left out.
                let before = packet[header + 6..header + 8].to_vec();
                read.change_payload(&mut packet, false, |payload| payload.fill(0));
                assert_eq!(packet[header + 6..header + 8], before);
                packet[header + 6..header + 8].fill(0);
                read.change_payload(&mut packet, true, |payload| payload.fill(9));
                assert_eq!(packet[header + 6..header + 8], [0, 0]);
            }
        }
        // A sum of zero is sent as its complement.
        let mut packet = udp(&[0, 0], |datagram| ipv6(0, 17, datagram), 40);
        let sum = u16::from_be_bytes([packet[46], packet[47]]);
        Packet::read(&packet)
            .unwrap()
            .change_payload(&mut packet, true, |word| word.copy_from_slice(&sum.to_be_bytes()));
        assert_eq!(packet[46..48], [0xff, 0xff]);
        // Longer than the packet, shorter than its own header, and a fragment.
        for wrong in [[0, 80, 0, 90, 0, 40, 1, 2], [0, 80, 0, 90, 0, 7, 1, 2]] {
            let mut packet = ipv6(0, 17, &wrong);
            let (read, before) = (Packet::read(&packet).unwrap(), packet.clone());
            read.change_payload(&mut packet, true, |payload| payload.fill(9));
            assert_eq!((read.payload(&packet), &packet), (None, &before));
        }
        let fragment = ipv4(0, 0x2000, 17, &[], &[0, 80, 0, 90, 0, 9, 1, 2, 3]);
        assert_eq!(Packet::read(&fragment).unwrap().payload(&fragment), None);
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
                read.payload(&bytes);
                read.replace_option(&mut bytes, option);
                read.set_ttl(&mut bytes, 3);
                read.change_payload(&mut bytes, true, |payload| payload.fill(3));
                prop_assert!(Packet::read(&bytes).is_ok());
            }
        }
    }
}
