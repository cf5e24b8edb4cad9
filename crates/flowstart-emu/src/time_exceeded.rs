//! The message that tells a sender that the time of its packet is over.
//!
//! References: RFC 792 and RFC 1812, sections 4.3.2 and 5.3.1 (IPv4); RFC 4443, sections 2.4 and 3.3 (IPv6). None
//! answers an error, a fragment other than the first, what is for many or comes from no single host, so nobody answers
//! an answer. Messages have a rate (RFC 1812, section 4.3.2.8), however many packets end here.
//!
//! Differences: fragments of IPv6 get no answer, the first included.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowstart_core::quick_start::wire::IpVersion;
use flowstart_core::time::{Duration, Timestamp};
use nix::ifaddrs::getifaddrs;

use crate::checksum::checksum;
use crate::interface::{ETHERNET, HEAD};
use crate::packet::{HEADER_IPV6, ICMPV6, Packet, transport_of_ipv6};

/// Messages in a second, and at once.
const PER_SECOND: u64 = 100;
const AT_ONCE: u64 = 50;
/// How long addresses of an interface are believed.
const BELIEVED: Duration = Duration::from_millis(1000);
/// The longest message: what every host and link takes (RFC 1812, section 4.3.2.3; RFC 4443, section 2.4).
const LONGEST_IPV4: usize = 576;
const LONGEST_IPV6: usize = 1280;
/// The TTL and hop limit that it begins with.
const TTL: u8 = 64;
/// The type of service of what routers say to hosts: internetwork control (RFC 1812, section 4.3.2.5).
const CONTROL: u8 = 0b110 << 5;
/// ICMP's protocol in IPv4, and the bytes of its header.
const ICMP: u8 = 1;
const ICMP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
/// The type of the message in IPv4 and IPv6; its code is 0, "in transit".
const TYPE_IPV4: u8 = 11;
const TYPE_IPV6: u8 = 3;
/// Types of ICMP that are errors: unreachable, quench, redirect, exceeded, parameters (RFC 1122, section 3.2.2).
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// From here on messages of ICMP for IPv6 are no errors; a redirect is like one (RFC 4443, section 2.4).
const FIRST_QUERY: u8 = 128;
const REDIRECT: u8 = 137;

/// What happened to a packet whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its sender is told so.
    Told,
    /// The interface has no address that could tell it.
    WithoutAddress,
    /// It gets no answer, or there are too many.
    None,
}

/// What an interface is called by others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
    ethernet: Option<[u8; 6]>,
}

impl Own {
    /// The first address of each kind; of IPv6 one that reaches beyond its link.
    fn of(interface: &str) -> io::Result<Self> {
        let mut own = Self::default();
        for found in getifaddrs()?.filter(|found| found.interface_name == interface) {
            let Some(address) = found.address else { continue };
            if let Some(ipv4) = address.as_sockaddr_in() {
                own.ipv4 = own.ipv4.or(Some(ipv4.ip()));
            } else if let Some(ipv6) = address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::ip) {
                own.ipv6 = own.ipv6.or(Some(ipv6).filter(|ipv6| !ipv6.is_unicast_link_local()));
            } else if let Some(link) = address.as_link_addr() {
                own.ethernet = link.addr();
            }
        }
        Ok(own)
    }

    fn address(&self, version: IpVersion) -> Option<IpAddr> {
        match version {
            IpVersion::V4 => self.ipv4.map(IpAddr::V4),
            IpVersion::V6 => self.ipv6.map(IpAddr::V6),
        }
    }
}

/// Writes the messages of one port.
#[derive(Debug)]
pub(crate) struct TimeExceeded {
    interface: String,
    own: Option<(Timestamp, Own)>,
    /// Until when messages are paid for.
    paid: Timestamp,
    message: Vec<u8>,
}

impl TimeExceeded {
    /// Those of the port with this name.
    pub(crate) fn new(interface: &str) -> Self {
        let message = Vec::with_capacity(HEAD + LONGEST_IPV6);
        Self { interface: interface.to_owned(), own: None, paid: Timestamp::ZERO, message }
    }

    /// Prepares the answer to a packet that came behind `head`.
    pub(crate) fn answer(&mut self, now: Timestamp, head: &[u8], packet: &Packet, in_ip: &[u8]) -> Answer {
        let (Some(source), true) = (answered(packet, in_ip), came_to_one(head)) else { return Answer::None };
        let cost = Duration::from_nanos(1_000_000_000 / PER_SECOND);
        let paid = self.paid.max(now) + cost;
        if paid.since(now) > cost * AT_ONCE {
            return Answer::None;
        }
        self.paid = paid;
        let own = self.own(now);
        // The address of a TUN device may be that of the host behind it, which does not answer itself.
        let Some(address) = own.address(packet.version).filter(|address| *address != source) else {
            return Answer::WithoutAddress;
        };
        self.message.clear();
        if let Some((offloads, ethernet)) = head.split_at_checked(HEAD - ETHERNET).filter(|_| head.len() == HEAD) {
            let Some(here) = own.ethernet else { return Answer::WithoutAddress };
            self.message.resize(offloads.len(), 0);
            self.message.extend_from_slice(&ethernet[6..12]);
            self.message.extend_from_slice(&here);
            self.message.extend_from_slice(&ethernet[12..]);
        }
        write(&mut self.message, address, source, &in_ip[..packet.length.min(in_ip.len())]);
        Answer::Told
    }

    /// The message, behind what stands before packets at its port.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    fn own(&mut self, now: Timestamp) -> Own {
        match self.own {
            Some((at, own)) if now.since(at) < BELIEVED => own,
            _ => {
                let own = Own::of(&self.interface).unwrap_or_default();
                self.own = Some((now, own));
                own
            }
        }
    }
}

/// Whether a frame was for one host and came from one; what has no frame was and did.
fn came_to_one(head: &[u8]) -> bool {
    let is_group = |place: usize| head.get(place).is_some_and(|first| first & 1 != 0);
    !is_group(HEAD - ETHERNET) && !is_group(HEAD - ETHERNET + 6)
}

/// The source of a packet, if it may be told.
fn answered(packet: &Packet, in_ip: &[u8]) -> Option<IpAddr> {
    match packet.version {
        IpVersion::V4 => {
            let [source, to] = [12, 16].map(|place| in_ip.get(place..)?.first_chunk().copied().map(Ipv4Addr::from));
            let header = usize::from(in_ip.first()? & 0x0f) * 4;
            let offset = u16::from_be_bytes(*in_ip.get(6..)?.first_chunk()?) & 0x1fff;
            let kind = in_ip.get(header).filter(|_| in_ip.get(9) == Some(&ICMP));
            let (source, to) = (source?, to?);
            // 0 and 240 to 255 are addresses of no host.
            let is_host = !matches!(source.octets()[0], 0 | 127 | 224..);
            let is_error = in_ip.get(9) == Some(&ICMP) && kind.is_none_or(|kind| ERRORS.contains(kind));
            (offset == 0 && is_host && !is_error && to.octets()[0] < 224).then_some(IpAddr::V4(source))
        }
        IpVersion::V6 => {
            let [source, to] = [8, 24].map(|place| in_ip.get(place..)?.first_chunk().copied().map(Ipv6Addr::from));
            let payload = in_ip.get(HEADER_IPV6..packet.length)?;
            let (protocol, transport) = transport_of_ipv6(*in_ip.get(6)?, payload);
            let is_error = match transport?.first().copied() {
                _ if protocol != ICMPV6 => false,
                None | Some(0..FIRST_QUERY | REDIRECT) => true,
                Some(_) => false,
            };
            let (source, to) = (source?, to?);
            let is_host = !(source.is_unspecified() || source.is_loopback() || source.is_multicast());
            (is_host && !is_error && !to.is_multicast()).then_some(IpAddr::V6(source))
        }
    }
}

/// Writes the message behind what is there.
fn write(message: &mut Vec<u8>, from: IpAddr, to: IpAddr, packet: &[u8]) {
    let begin = message.len();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let quoted = &packet[..packet.len().min(LONGEST_IPV4 - IPV4_HEADER - ICMP_HEADER)];
            let length = (IPV4_HEADER + ICMP_HEADER + quoted.len()) as u16;
            message.extend_from_slice(&[0x45, CONTROL]);
            message.extend_from_slice(&length.to_be_bytes());
            message.extend_from_slice(&[0, 0, 0, 0, TTL, ICMP, 0, 0]);
            message.extend_from_slice(&from.octets());
            message.extend_from_slice(&to.octets());
            seal(message, begin..begin + IPV4_HEADER, begin + 10, 0);
            write_icmp(message, TYPE_IPV4, quoted, 0);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let quoted = &packet[..packet.len().min(LONGEST_IPV6 - HEADER_IPV6 - ICMP_HEADER)];
            let length = (ICMP_HEADER + quoted.len()) as u16;
            message.extend_from_slice(&[0x60, 0, 0, 0]);
            message.extend_from_slice(&length.to_be_bytes());
            message.extend_from_slice(&[ICMPV6, TTL]);
            let addresses = message.len();
            message.extend_from_slice(&from.octets());
            message.extend_from_slice(&to.octets());
            // The sum also covers addresses, length and protocol (RFC 8200, section 8.1).
            let covered = !checksum(&message[addresses..]);
            let covered = u32::from(covered) + u32::from(length) + u32::from(ICMPV6);
            write_icmp(message, TYPE_IPV6, quoted, covered);
        }
        // Both are of the version of the packet.
        _ => {}
    }
}

fn write_icmp(message: &mut Vec<u8>, kind: u8, quoted: &[u8], covered: u32) {
    let begin = message.len();
    message.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(quoted);
    let end = message.len();
    seal(message, begin..end, begin + 2, covered);
}

/// Writes the checksum of a part, with the sum of what it covers beside.
fn seal(message: &mut [u8], part: std::ops::Range<usize>, place: usize, covered: u32) {
    let sum = u32::from(!checksum(&message[part])) + covered;
    let folded = (sum & 0xffff) + (sum >> 16);
    let right = !((folded & 0xffff) + (folded >> 16)) as u16;
    message[place..place + 2].copy_from_slice(&right.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IPV4: &str = "192.0.2.1";
    const IPV6: &str = "2001:db8::1";

    fn with_addresses(head: usize) -> (TimeExceeded, Vec<u8>) {
        let own = Own {
            ipv4: Some("192.0.2.254".parse().unwrap()),
            ipv6: Some("2001:db8::fe".parse().unwrap()),
            ethernet: Some([2, 0, 0, 0, 0, 9]),
        };
        let mut port = TimeExceeded::new("none");
        port.own = Some((Timestamp::ZERO, own));
        let mut before = vec![2; head];
        if head > 0 {
            before[HEAD - 2..].copy_from_slice(&[8, 0]);
        }
        (port, before)
    }

    fn ipv4(protocol: u8, offset: u16, source: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 1]);
        packet.extend_from_slice(&offset.to_be_bytes());
        packet.extend_from_slice(&[1, protocol, 0, 0]);
        for address in [source, to] {
            packet.extend_from_slice(&address.parse::<Ipv4Addr>().unwrap().octets());
        }
        packet.extend_from_slice(payload);
        seal(&mut packet, 0..20, 10, 0);
        packet
    }

    fn ipv6(next: u8, source: &str, to: &str, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[next, 1]);
        for address in [source, to] {
            packet.extend_from_slice(&address.parse::<Ipv6Addr>().unwrap().octets());
        }
        packet.extend_from_slice(payload);
        packet
    }

    fn answer(packet: &[u8], head: usize) -> (Answer, Vec<u8>) {
        let (mut port, before) = with_addresses(head);
        let answer = port.answer(Timestamp::ZERO, &before, &Packet::read(packet).unwrap(), packet);
        (answer, port.message().to_vec())
    }

    #[test]
    fn the_sender_of_a_packet_of_ipv4_gets_its_begin() {
        let packet = ipv4(17, 0, IPV4, "198.51.100.2", &[7; 1000]);
        let (told, message) = answer(&packet, 0);
        assert_eq!((told, message.len()), (Answer::Told, 576));
        let read = Packet::read(&message).unwrap();
        assert_eq!((read.length, read.ttl), (576, 64));
        assert_eq!(message[12..20], [192, 0, 2, 254, 192, 0, 2, 1]);
        assert_eq!((message[20..22].to_vec(), checksum(&message[20..])), (vec![11, 0], 0));
        assert_eq!(message[28..], packet[..548]);
    }

    #[test]
    fn the_sender_of_a_packet_of_ipv6_gets_its_begin() {
        let packet = ipv6(17, IPV6, "2001:db8:1::2", &[7; 100]);
        let (told, message) = answer(&packet, 0);
        assert_eq!((told, message.len()), (Answer::Told, 40 + 8 + packet.len()));
        assert_eq!((message[6], message[40..42].to_vec(), &message[48..]), (58, vec![3, 0], &packet[..]));
        // Addresses, length and protocol stand before it (RFC 8200, section 8.1).
        let length = (message.len() - 40) as u32;
        let covered = [&message[8..40], &length.to_be_bytes(), &[0, 0, 0, 58], &message[40..]].concat();
        assert_eq!(checksum(&covered), 0);
    }

    #[test]
    fn between_interfaces_it_goes_to_the_frame_s_sender() {
        let (told, message) = answer(&ipv4(17, 0, IPV4, "198.51.100.2", &[7; 8]), HEAD);
        assert_eq!(told, Answer::Told);
        assert_eq!(message[..HEAD], [&[0; 10][..], &[2; 6], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat());
        let (mut port, mut before) = with_addresses(HEAD);
        let packet = ipv4(17, 0, IPV4, "198.51.100.2", &[]);
        let read = Packet::read(&packet).unwrap();
        // A frame for all.
        before[10..16].fill(0xff);
        assert_eq!(port.answer(Timestamp::ZERO, &before, &read, &packet), Answer::None);
    }

    #[test]
    fn nobody_answers_errors_fragments_groups_and_what_has_no_sender() {
        let to = "198.51.100.2";
        for packet in [
            ipv4(1, 0, IPV4, to, &[3, 1, 0, 0, 0, 0, 0, 0]),
            ipv4(1, 0, IPV4, to, &[11, 0, 0, 0, 0, 0, 0, 0]),
            ipv4(1, 0, IPV4, to, &[]),
            ipv4(17, 185, IPV4, to, &[7; 8]),
            ipv4(17, 0, IPV4, "239.1.2.3", &[7; 8]),
            ipv4(17, 0, "0.0.0.0", to, &[7; 8]),
            ipv4(17, 0, "127.0.0.1", to, &[7; 8]),
            ipv4(17, 0, "224.0.1.1", to, &[7; 8]),
            ipv4(17, 0, "255.255.255.255", to, &[7; 8]),
            ipv6(58, IPV6, "2001:db8:1::2", &[1, 0, 0, 0, 0, 0, 0, 0]),
            ipv6(58, IPV6, "2001:db8:1::2", &[3, 0, 0, 0, 0, 0, 0, 0]),
            ipv6(58, IPV6, "2001:db8:1::2", &[137, 0, 0, 0, 0, 0, 0, 0]),
            ipv6(44, IPV6, "2001:db8:1::2", &[17, 0, 0, 8, 0, 0, 0, 1, 7, 7, 7, 7]),
            ipv6(17, IPV6, "ff0e::1", &[7; 8]),
            ipv6(17, "::", "2001:db8:1::2", &[7; 8]),
            ipv6(17, "ff0e::1", "2001:db8:1::2", &[7; 8]),
        ] {
            assert_eq!(answer(&packet, 0).0, Answer::None, "{packet:?}");
        }
        // An echo, and the first fragment.
        for packet in [
            ipv4(1, 0, IPV4, to, &[8, 0, 0, 0, 0, 0, 0, 0]),
            ipv4(17, 0x2000, IPV4, to, &[7; 8]),
            ipv6(58, IPV6, "2001:db8:1::2", &[128, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(answer(&packet, 0).0, Answer::Told, "{packet:?}");
        }
    }

    #[test]
    fn without_an_address_nobody_is_told() {
        let packet = ipv4(17, 0, IPV4, "198.51.100.2", &[7; 8]);
        let read = Packet::read(&packet).unwrap();
        let mut port = TimeExceeded::new("fs-there-is-none");
        assert_eq!(port.answer(Timestamp::ZERO, &[], &read, &packet), Answer::WithoutAddress);
        // A host does not answer itself.
        let own = ipv4(17, 0, "192.0.2.254", "198.51.100.2", &[7; 8]);
        assert_eq!(answer(&own, 0).0, Answer::WithoutAddress);
    }

    #[test]
    fn however_many_packets_end_here_messages_have_a_rate() {
        let (mut port, before) = with_addresses(0);
        let packet = ipv4(17, 0, IPV4, "198.51.100.2", &[7; 8]);
        let read = Packet::read(&packet).unwrap();
        let mut told = |from: u64, to: u64| {
            let at = |micros| Timestamp::ZERO + Duration::from_micros(micros);
            (from..to).filter(|micros| port.answer(at(*micros), &before, &read, &packet) == Answer::Told).count()
        };
        // 50 at once, and one for each 10 ms.
        assert_eq!((told(0, 1000), told(1000, 500_000)), (50, 49));
        // 41 of the 50 are paid back by then.
        assert_eq!(told(900_000, 900_100), 41);
    }

    proptest! {
        #[test]
        fn nothing_that_ends_here_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
            if let Ok(packet) = Packet::read(&bytes) {
                let (mut port, before) = with_addresses(if head { HEAD } else { 0 });
                port.answer(Timestamp::ZERO, &before, &packet, &bytes);
            }
        }
    }
}
