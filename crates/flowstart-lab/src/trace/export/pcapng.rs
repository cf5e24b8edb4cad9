//! A traced run as a packet capture: the headers of model flows, every byte of real QUIC.
//!
//! Packets are Ethernet, IPv4 and TCP or UDP, in the order of simulated time. Times are nanoseconds from the start of
//! the run. At the data sender's interface it is 10.0.0.1, and the data receiver is 10.0.0.2 with a port for each
//! measured flow from 40000 on.
//!
//! **Real QUIC** ([`capture`](super::capture)): the interface `sender` has whole datagrams with their checksums, from
//! and to port 443. Decryption Secrets Blocks have the TLS secrets, ahead of the packets that need them, so `tshark -r
//! FILE` shows the frames. `editcap --extract-secrets` extracts the secrets to a file for `SSLKEYLOGFILE`. A receiver
//! that has moved is 10.0.1.2. Times, lengths and connection IDs follow from the seed. TLS draws key shares and randoms
//! from the system, so secrets and encrypted bytes differ from run to run.
//!
//! **Model flows**: the interfaces `sender` and `receiver` have the packets that leave and reach the two hosts: only
//! headers, with the lengths of the whole packets. A packet that is dropped on its way is missing at the other host.
//! The data sender has port 5001. At the interface `receiver` both hosts have addresses in 10.1.0.0/24, as if a NAT
//! stood between them. So tools see two complete connections, and do not take the second sight of a packet for another
//! copy: `tshark -r FILE -Y 'frame.interface_id == 0 && tcp.analysis.retransmission'` shows what the sender sent
//! again. Packets that the tool calls out of order there are retransmissions as well: nothing overtakes a packet at the
//! host that sends it.
//!
//! TCP has its sequence and acknowledgement numbers, flags and SACK blocks; both initial sequence numbers are 0. The
//! capture does not invent details that a model transport does not have:
//! - Quick-Start's options are those of RFC 4782 byte for byte; a QUIC profile shows only the request and the report,
//!   which are options of IP, because the answer travels encrypted;
//! - header bytes of a profile whose content is unknown, such as those of timestamps, are no-operation options; SACK
//!   blocks that do not fit into a profile's acknowledgement are omitted, the oldest first;
//! - the window of acknowledgements is the receiver's, if the profile's opening packets have room for window scaling;
//!   otherwise, and for the sender's own window, it is the largest that fits;
//! - connections are not closed; marks that a receiver echoes are not shown; checksums of TCP hold for a payload of
//!   zeros, UDP has none;
//! - a profile that does not count the Ethernet header in its wire sizes gets packets that are longer by its 14 bytes.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, Ipv4Options, TcpHeader, TcpOptionElement, TcpOptions,
    UdpHeader,
};
use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire;
use flowstart_core::time::Timestamp;
use flowstart_sim::observe::trace::HostPacket;
use flowstart_sim::packet::{Body, Direction, INITIAL_TTL, NO_OPTION, ip_ttl};
use flowstart_sim::transport::handshake::{ANSWER, COMPLETE, OPEN, REPORT, SECOND_ANSWER, SECOND_PASS};
use flowstart_sim::transport::policy::{Opening, Protocol};
use flowstart_sim::transport::profile::Profile;
use pcap_file::DataLink;
use pcap_file::Endianness;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::unknown::UnknownBlock;
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};

use super::{ETHERNET, IPV4, TCP, UDP, lower_headers, title};
use crate::ends::capture::{CapturedDatagram, Secrets};
use crate::study::plan::{Cell, Plan};
use crate::trace::traced::TracedRun;

/// Number of the data sender's interface.
const SENDER: u32 = 0;
/// Number of the data receiver's interface.
const RECEIVER: u32 = 1;
/// Second byte of the addresses at the data sender's interface.
const SENDER_NETWORK: u8 = 0;
/// The same at the data receiver's interface. Tools tell connections apart by their addresses.
const RECEIVER_NETWORK: u8 = 1;
/// Port of the data sender.
const SENDER_PORT: u16 = 5001;
/// Port of the data receiver's first flow.
const RECEIVER_PORT: u16 = 40_000;
/// Most bytes of a TCP header.
const TCP_MOST: u32 = 60;
/// Most bytes of a packet in the file.
const SNAP: u32 = ETHERNET + IPV4 + wire::LENGTH as u32 + TCP_MOST;
/// As [`SNAP`]: all of them.
const UNLIMITED: u32 = 0;
/// Largest shift of window scaling (RFC 7323, section 2.3).
const SHIFT_MOST: u8 = 14;
/// Replaces payload in checksums.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];

/// Type of a Decryption Secrets Block, and of secrets as in `SSLKEYLOGFILE` (draft-ietf-opsawg-pcapng, section 4.7).
const SECRETS_BLOCK: u32 = 0x0000_000a;
/// `TLSK`.
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// A host.
#[derive(Clone, Copy)]
struct Host {
    mac: [u8; 6],
    address: [u8; 4],
    port: u16,
}

impl Host {
    /// The data sender.
    fn sender(address: [u8; 4], port: u16) -> Self {
        Self { mac: [2, 0, 0, 0, 0, 1], address, port }
    }

    /// The data receiver.
    fn receiver(address: [u8; 4], port: u16) -> Self {
        Self { mac: [2, 0, 0, 0, 0, 2], address, port }
    }
}

impl TracedRun {
    /// Writes the packets of the measured flows as pcapng.
    pub fn write_pcapng(&self, plan: &Plan, cell: &Cell, out: &mut dyn Write) -> io::Result<()> {
        let capture = self.finished.hosts.capture();
        let mut file = Packets::new(out, plan, cell, capture.is_some())?;
        if let Some(capture) = capture {
            return capture.datagrams.iter().try_for_each(|datagram| file.write_datagram(datagram, &capture.secrets));
        }
        file.follow(&self.finished.flows);
        let Some(trace) = &self.finished.world.network.trace else { return Ok(()) };
        trace.packets.iter().try_for_each(|packet| file.write(packet, trace.ranges_of(packet)))
    }
}

/// A file that grows by a packet at a time.
pub(super) struct Packets<W: Write> {
    writer: PcapNgWriter<W>,
    headers: Headers,
    /// The measured flows, numbered in order from the first on.
    first: u32,
    count: u32,
    /// Bytes of the secrets in the file.
    told: usize,
}

impl<W: Write> Packets<W> {
    /// A file of model flows, or of real ones with whole datagrams.
    pub(super) fn new(out: W, plan: &Plan, cell: &Cell, whole: bool) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::UserApplication("flowstart".into()),
                SectionHeaderOption::Common(CommonOption::Comment(title(plan, cell).into())),
            ],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(out, section).map_err(io_error)?;
        let interfaces =
            [("sender", "the data sender, here 10.0.0.1"), ("receiver", "the data receiver, here 10.1.0.2")];
        for (name, description) in interfaces.into_iter().take(if whole { 1 } else { 2 }) {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: if whole { UNLIMITED } else { SNAP },
                options: vec![
                    InterfaceDescriptionOption::IfName(name.into()),
                    InterfaceDescriptionOption::IfDescription(description.into()),
                    InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
                ],
            };
            writer.write_pcapng_block(interface).map_err(io_error)?;
        }
        let headers = Headers::new(&plan.profile(cell));
        Ok(Self { writer, headers, first: u32::MAX, count: 0, told: 0 })
    }

    /// Sets the measured flows, numbered in order.
    pub(super) fn follow(&mut self, flows: &[u32]) {
        (self.first, self.count) = (flows.first().copied().unwrap_or(u32::MAX), flows.len() as u32);
    }

    /// A packet, if it is a measured flow's.
    pub(super) fn write(&mut self, packet: &HostPacket, ranges: &[(u64, u64)]) -> io::Result<()> {
        let place = packet.flow.wrapping_sub(self.first);
        if place >= self.count {
            return Ok(());
        }
        let (data, original_len) = self.headers.of(packet, ranges, place as usize)?;
        let interface = if packet.is_at_sender() { SENDER } else { RECEIVER };
        self.write_block(interface, packet.time, data, original_len)
    }

    /// A datagram of a real flow, behind the secrets known so far, which include those that decrypt it.
    pub(super) fn write_datagram(&mut self, datagram: &CapturedDatagram, secrets: &Secrets) -> io::Result<()> {
        if secrets.len() > self.told {
            let secrets = secrets.text().split_off(self.told).into_bytes();
            self.told += secrets.len();
            let mut block = [TLS_KEY_LOG.to_le_bytes(), (secrets.len() as u32).to_le_bytes()].concat();
            block.extend(secrets);
            block.resize(block.len().next_multiple_of(4), 0);
            // An empty header and the length at the end are 12 bytes.
            let length = block.len() as u32 + 12;
            let block = UnknownBlock::new(SECRETS_BLOCK, length, &block);
            self.writer.write_pcapng_block(block).map_err(io_error)?;
        }
        let data = whole(datagram)?;
        let length = data.len() as u32;
        self.write_block(SENDER, datagram.time, data, length)
    }

    fn write_block(&mut self, interface_id: u32, time: Timestamp, data: Vec<u8>, original_len: u32) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(time.as_nanos()),
            original_len,
            data: data.into(),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(io_error)
    }

    /// The writer of the packets.
    pub(super) fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

/// A datagram of a real flow with its headers.
fn whole(datagram: &CapturedDatagram) -> io::Result<Vec<u8>> {
    let ipv4 = |address: SocketAddr| match address {
        SocketAddr::V4(address) => Ok((address.ip().octets(), address.port())),
        SocketAddr::V6(_) => Err(io::Error::other("an end has an IPv6 address")),
    };
    let (source, destination) = (ipv4(datagram.addresses.0)?, ipv4(datagram.addresses.1)?);
    let (from, to) = match datagram.direction {
        Direction::Forward => (Host::sender(source.0, source.1), Host::receiver(destination.0, destination.1)),
        Direction::Return => (Host::receiver(source.0, source.1), Host::sender(destination.0, destination.1)),
    };
    let payload = &datagram.payload;
    let option: &[u8] = if datagram.quick_start == NO_OPTION { &[] } else { &datagram.quick_start };
    let mut udp = UdpHeader::without_ipv4_checksum(from.port, to.port, payload.len()).map_err(io::Error::other)?;
    udp.checksum = udp.calc_checksum_ipv4_raw(from.address, to.address, payload).map_err(io::Error::other)?;
    let mut bytes = below(from, to, IpNumber::UDP, datagram.ecn, INITIAL_TTL, UDP + payload.len() as u32, option)?;
    bytes.extend(udp.to_bytes());
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

/// Ethernet and IPv4 headers of a packet of this many bytes above them.
fn below(
    from: Host,
    to: Host,
    protocol: IpNumber,
    ecn: EcnCodepoint,
    ttl: u8,
    length: u32,
    option: &[u8],
) -> io::Result<Vec<u8>> {
    let above = u16::try_from(length).map_err(io::Error::other)?;
    let mut ip = Ipv4Header::new(above, ttl, protocol, from.address, to.address).map_err(io::Error::other)?;
    ip.ecn = match ecn {
        EcnCodepoint::NotEct => IpEcn::ZERO,
        EcnCodepoint::Ect1 => IpEcn::ONE,
        EcnCodepoint::Ect0 => IpEcn::TWO,
        EcnCodepoint::Ce => IpEcn::THREE,
    };
    ip.options = Ipv4Options::try_from(option).map_err(io::Error::other)?;
    ip.set_payload_len(length as usize).map_err(io::Error::other)?;
    ip.header_checksum = ip.calc_header_checksum();
    let ethernet = Ethernet2Header { source: from.mac, destination: to.mac, ether_type: EtherType::IPV4 };
    Ok([&ethernet.to_bytes()[..], &ip.to_bytes()].concat())
}

/// Quick-Start's option in the IPv4 header.
fn ip_option(packet: &HostPacket) -> &[u8] {
    if packet.quick_start[0] == wire::IPV4_OPTION { &packet.quick_start } else { &[] }
}

/// Quick-Start's option in the TCP header.
fn tcp_option(packet: &HostPacket) -> &[u8] {
    if packet.quick_start[0] == wire::TCP_OPTION { &packet.quick_start } else { &[] }
}

/// The headers of a profile's packets.
struct Headers {
    profile: Arc<Profile>,
    /// Bytes of a TCP header with payload.
    data_header: u32,
    /// Bytes of the request, which the data receiver sends first.
    request: u32,
    /// Shift of window scaling; absent: the opening packets have no room for it.
    shift: Option<u8>,
}

impl Headers {
    fn new(profile: &Arc<Profile>) -> Self {
        let lower = lower_headers(profile);
        let data_header = header_bytes(profile.overhead.saturating_sub(lower));
        let request = match profile.opening {
            Opening::Sender => 0,
            Opening::Request | Opening::ZeroRtt => profile.completion_size.saturating_sub(lower + data_header),
        };
        let room = profile.opening_size.min(profile.answer_size).saturating_sub(lower + TCP);
        let window = profile.receive_window.get();
        let shift = (0..SHIFT_MOST).find(|shift| window >> shift <= u64::from(u16::MAX)).unwrap_or(SHIFT_MOST);
        // A header grows in steps of four bytes, and window scaling takes three.
        Self { profile: profile.clone(), data_header, request, shift: (room >= 4).then_some(shift) }
    }

    /// The headers of a packet, and the length of the whole packet.
    fn of(&self, packet: &HostPacket, ranges: &[(u64, u64)], place: usize) -> io::Result<(Vec<u8>, u32)> {
        let receiver_port = RECEIVER_PORT.wrapping_add(place as u16);
        let network = if packet.is_at_sender() { SENDER_NETWORK } else { RECEIVER_NETWORK };
        let sender = Host::sender([10, network, 0, 1], SENDER_PORT);
        let receiver = Host::receiver([10, network, 0, 2], receiver_port);
        let (from, to) = match packet.direction {
            Direction::Forward => (sender, receiver),
            Direction::Return => (receiver, sender),
        };
        let (protocol, transport, payload) = match self.profile.protocol {
            Protocol::Tcp => {
                let (mut header, payload) = self.tcp(packet, ranges, from.port, to.port)?;
                header.checksum = header
                    .calc_checksum_ipv4_raw(from.address, to.address, &ZEROS[..payload as usize])
                    .map_err(io::Error::other)?;
                (IpNumber::TCP, header.to_bytes().to_vec(), payload)
            }
            Protocol::Quic => {
                let lower = lower_headers(&self.profile) + ip_option(packet).len() as u32;
                let payload = packet.size.saturating_sub(lower);
                let header =
                    UdpHeader::without_ipv4_checksum(from.port, to.port, payload as usize).map_err(io::Error::other)?;
                (IpNumber::UDP, header.to_bytes().to_vec(), payload)
            }
        };
        let length = transport.len() as u32 + payload;
        let mut bytes = below(from, to, protocol, packet.ecn, ip_ttl(packet.links), length, ip_option(packet))?;
        let below = bytes.len() as u32;
        bytes.extend(transport);
        Ok((bytes, below + length))
    }

    /// The TCP header of a packet without its checksum, and its payload bytes.
    fn tcp(&self, packet: &HostPacket, ranges: &[(u64, u64)], from: u16, to: u16) -> io::Result<(TcpHeader, u32)> {
        let lower = lower_headers(&self.profile) + ip_option(packet).len() as u32;
        let segment = packet.size.saturating_sub(lower);
        let mut header = TcpHeader::new(from, to, 0, u16::MAX);
        let mut options = Vec::new();
        let (length, payload) = match packet.body {
            Body::Handshake { flight: flight @ (OPEN | ANSWER), .. } => {
                header.syn = true;
                if flight == ANSWER {
                    (header.ack, header.acknowledgment_number) = (true, 1);
                }
                let payload = u64::from(self.profile.payload.min(u32::from(u16::MAX))) as u16;
                options.extend(self.shift.map(TcpOptionElement::WindowScale));
                options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
                options.push(TcpOptionElement::MaximumSegmentSize(payload));
                (header_bytes(segment), 0)
            }
            Body::Handshake { flight: flight @ (REPORT | SECOND_PASS | SECOND_ANSWER), .. } => {
                header.ack = true;
                let request = sequence(u64::from(self.request));
                (header.sequence_number, header.acknowledgment_number) =
                    if flight == SECOND_ANSWER { (request, 1) } else { (1, request) };
                (header_bytes(segment), 0)
            }
            Body::Handshake { flight, .. } => {
                (header.ack, header.sequence_number, header.acknowledgment_number) = (true, 1, 1);
                header.psh = self.request > 0 && flight == COMPLETE;
                let option = tcp_option(packet).len() as u32;
                (self.data_header + option, if flight == COMPLETE { self.request } else { 0 })
            }
            Body::Data { offset, len, .. } => {
                header.ack = true;
                header.sequence_number = sequence(offset);
                header.acknowledgment_number = sequence(u64::from(self.request));
                // Headers take what the packet has besides its payload.
                (header_bytes(segment.saturating_sub(len)), len)
            }
            Body::Acknowledgement(ack) => {
                header.ack = true;
                header.sequence_number = sequence(u64::from(self.request));
                header.acknowledgment_number = sequence(ack.position);
                if let Some(shift) = self.shift {
                    let window = ack.limit.saturating_sub(ack.position) >> shift;
                    header.window_size = u16::try_from(window).unwrap_or(u16::MAX);
                }
                let length = header_bytes(segment);
                let room = (length - TCP).saturating_sub(2) / 8;
                let mut blocks =
                    ranges.iter().map(|(start, end)| (sequence(*start), sequence(*end))).take(room as usize);
                if let Some(first) = blocks.next() {
                    let rest = [blocks.next(), blocks.next(), blocks.next()];
                    options.push(TcpOptionElement::SelectiveAcknowledgement(first, rest));
                }
                (length, 0)
            }
        };
        header.options = fit(&options, tcp_option(packet), (length - TCP) as usize)?;
        Ok((header, payload))
    }
}

/// The options that fit into `room` bytes behind `first`, filled up with no-operations.
fn fit(options: &[TcpOptionElement], first: &[u8], room: usize) -> io::Result<TcpOptions> {
    let mut bytes = Vec::with_capacity(room);
    bytes.extend_from_slice(&first[..first.len().min(room)]);
    for option in options {
        let encoded = TcpOptions::try_from_elements(std::slice::from_ref(option)).map_err(io::Error::other)?;
        // Encoded options are filled up with zeros to whole words; the length is in their second byte.
        let encoded = &encoded.as_slice()[..usize::from(encoded.as_slice()[1])];
        if bytes.len() + encoded.len() <= room {
            bytes.extend_from_slice(encoded);
        }
    }
    bytes.resize(room, 1);
    TcpOptions::try_from_slice(&bytes).map_err(io::Error::other)
}

/// The longest possible TCP header of at most this many bytes.
fn header_bytes(available: u32) -> u32 {
    available.clamp(TCP, TCP_MOST) / 4 * 4
}

/// The sequence number of a byte of the stream: the opening packet has number 0.
fn sequence(offset: u64) -> u32 {
    offset.wrapping_add(1) as u32
}

fn io_error(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}
