//! A measured flow: two ends, the datagrams between them, and their timers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Buf;
use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::path::PathKnowledge;
use flowstart_core::scone::wire::{RateSignal, lower};
use flowstart_core::sources::{Verdict, name};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_quic::{ControllerFactory, Flow};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::flow::ends::{Datagram, Ends, Place, Timer};
use flowstart_sim::network::Network;
use flowstart_sim::packet::{Direction, NO_OPTION, Packet, QuickStartOption};
use flowstart_sim::path::signals::PathSignal;
use flowstart_sim::ranges::RangeSet;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::transport::quick_start::QuickStart;
use flowstart_sim::transport::sender::Chunk;
use noq_proto::{ClientConfig, DatagramEvent, FourTuple, Incoming, StreamId, Transmit};

use super::end::{BothEnds, CLIENT, End, SERVER, Setup, SetupError, instant, timestamp};
use super::frames::Carried;
use super::under_way::{Stored, UnderWay};
use crate::ends::capture::CapturedDatagram;

mod application;
mod quick_start;
mod records;
mod scone;
mod train;

/// Headers below QUIC on the wire: IPv4 20, UDP 8, Ethernet 14.
const BELOW: u32 = 42;
/// Datagrams in one request to noq: about the size of its token bucket.
pub(super) const AT_ONCE: u64 = 16;

/// A datagram that an end wants to send.
struct Outgoing<'a> {
    bytes: &'a [u8],
    carried: Carried,
    ecn: EcnCodepoint,
    to: SocketAddr,
    quick_start: QuickStartOption,
}

impl<'a> Outgoing<'a> {
    /// A datagram of an endpoint that has no connection yet.
    fn reply(buffer: &'a [u8], transmit: &Transmit) -> Self {
        let (bytes, to) = (&buffer[..transmit.size], transmit.destination);
        Self { bytes, carried: Carried::default(), ecn: EcnCodepoint::NotEct, to, quick_start: NO_OPTION }
    }
}

/// A measured flow.
pub(super) struct Transfer {
    place: Place,
    number: u32,
    profile: Arc<Profile>,
    /// The server validates the client's address by a Retry packet.
    retry: bool,
    size: u64,
    start: Timestamp,
    pub(super) ends: [End; 2],
    /// The client's initial configuration, until it begins.
    client_config: Option<ClientConfig>,
    pub(super) flow: Arc<Flow>,
    /// The scheme has launched, on this path or another.
    has_launched: bool,
    /// The connection was lost.
    pub(super) failed: bool,
    /// The stream of the request and the response, at each end.
    streams: [Option<StreamId>; 2],
    request: Vec<u8>,
    /// Bytes that the server has not yet given to the stream.
    unwritten: u64,
    /// Bytes that the client has read.
    read: u64,
    /// Bytes of the stream that the server has sent, and bytes that the client has received.
    sent: RangeSet,
    received: RangeSet,
    /// Numbers of the packets that the client has received.
    arrived: RangeSet,
    /// Numbers of packets that were declared lost and have not arrived.
    lost: BTreeSet<u64>,
    /// Packets of the server with their pieces and their acknowledged parts; only with a trace.
    pieces: BTreeMap<u64, Vec<Chunk>>,
    acknowledged: RangeSet,
    /// First byte that flow control forbids, as known to the server.
    limit: u64,
    blocked_since: Option<Timestamp>,
    /// The next wake-up time of each end.
    timeouts: [Timestamp; 2],
    /// When the timer of either end fired last.
    timed_out: [Timestamp; 2],
    /// End of the new data in the server's last packet, if the next packet must be like it. The last packet was full
    /// and carried nothing else of the stream, and no event since could change the next one. A packet carries lost data
    /// before new data.
    steady: Option<u64>,
    /// SCONE, which noq does not support.
    scone: scone::Scone,
    train: train::Train,
    /// Most datagrams in one request to noq.
    pub(super) at_once: u64,
    /// Quick-Start at both ends, if the scheme uses it.
    quick_start: Option<Box<QuickStart>>,
    under_way: UnderWay,
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").field("flow", &self.number).finish_non_exhaustive()
    }
}

impl Ends for Transfer {
    fn on_timer(&mut self, network: &mut Network, _: Timer) {
        let mut under_way = std::mem::take(&mut self.under_way);
        self.wake(network, &mut under_way);
        self.under_way = under_way;
    }

    fn on_packet(&mut self, network: &mut Network, packet: &Packet, signal: Option<PathSignal>) {
        let Packet { direction, ecn, hop: links, mut body, .. } = *packet;
        let quick_start = body.take_quick_start(&mut network.ranges);
        body.release(&mut network.ranges);
        let mut under_way = std::mem::take(&mut self.under_way);
        self.hear_option(direction, &quick_start, links);
        self.deliver(network, &mut under_way, direction, packet.tag(), ecn, signal);
        self.under_way = under_way;
    }

    fn on_lost(&mut self, tag: u32) {
        self.under_way.release(tag);
    }

    /// The client has a new address from now on.
    fn on_path_change(&mut self, network: &mut Network) {
        self.at_once = 1;
        self.forget_advice();
        let IpAddr::V4(host) = self.ends[CLIENT].address.ip() else { return };
        let [a, b, c, d] = host.octets();
        self.ends[CLIENT].address.set_ip(IpAddr::V4(Ipv4Addr::new(a, b, c + 1, d)));
        if let Some((_, connection)) = &mut self.ends[CLIENT].connection {
            connection.handle_network_change(None, instant(network.now()));
        }
        let mut under_way = std::mem::take(&mut self.under_way);
        self.pump(network, &mut under_way, CLIENT);
        self.under_way = under_way;
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

impl Transfer {
    /// The flow in `place`, configured by `config`, and the knowledge of its controller.
    pub(super) fn new(
        place: Place,
        config: FlowConfig,
        size: Bytes,
        setup: &Setup<'_>,
        under_way: UnderWay,
    ) -> Result<Self, SetupError> {
        let FlowConfig { profile, startup, avoidance, mut sources, train, start, .. } = config;
        sources.knowledge_mut().receive_window = profile.announced_receive_window();
        let quick_start = quick_start::both_ends(&profile, &startup, sources.knowledge(), size, setup.seed);
        if quick_start.is_some() {
            sources.lack(name::QUICK_START, Verdict::Missing, "");
        }
        let factory = ControllerFactory::with_config(profile.controller(startup, avoidance))?;
        let flow = Flow::waiting(PathKnowledge::default());
        flow.hear(|all| *all = sources);
        if let Some(window) = &setup.shared {
            flow.share(Arc::clone(window));
        }
        let BothEnds { client, server, client_config } = BothEnds::new(&profile, &factory, &flow, setup)?;
        Ok(Self {
            place,
            number: place.flow,
            under_way,
            retry: setup.options.retry,
            size: size.get(),
            start,
            ends: [client, server],
            client_config: Some(client_config),
            flow,
            has_launched: false,
            failed: false,
            streams: [None; 2],
            request: Vec::new(),
            unwritten: 0,
            read: 0,
            sent: RangeSet::default(),
            received: RangeSet::default(),
            arrived: RangeSet::default(),
            lost: BTreeSet::new(),
            pieces: BTreeMap::new(),
            acknowledged: RangeSet::default(),
            limit: profile.first_receive_window().get(),
            blocked_since: None,
            timeouts: [Timestamp::NEVER; 2],
            timed_out: [Timestamp::NEVER; 2],
            steady: None,
            scone: scone::Scone::new(profile.scone),
            train: train::Train::new(train, start),
            // Between full packets there may be probes.
            at_once: if setup.options.mtu_discovery { 1 } else { AT_ONCE },
            profile,
            quick_start,
        })
    }

    fn wake(&mut self, network: &mut Network, under_way: &mut UnderWay) {
        let now = network.now();
        if let Some(config) = self.client_config.take_if(|_| self.start <= now) {
            network.record(self.number).started = Some(now);
            if self.ends[CLIENT].connect(instant(now), config).is_err() {
                self.failed = true;
                return;
            }
            // 0-RTT: the request need not wait.
            self.send_request(now);
            self.pump(network, under_way, CLIENT);
        }
        for side in [CLIENT, SERVER] {
            if self.timeouts[side] > now {
                continue;
            }
            let Some((_, connection)) = &mut self.ends[side].connection else { continue };
            connection.handle_timeout(instant(now));
            self.steady = self.steady.filter(|_| side == CLIENT);
            self.pump(network, under_way, side);
            // noq's pacer waits for no time at all if less than a nanosecond is missing. On a host time passes anyway.
            if std::mem::replace(&mut self.timed_out[side], now) == now {
                self.timeouts[side] = self.timeouts[side].max(now + Duration::from_nanos(1));
            }
        }
        self.arm(network);
    }

    fn deliver(
        &mut self,
        network: &mut Network,
        under_way: &mut UnderWay,
        direction: Direction,
        tag: u32,
        ecn: EcnCodepoint,
        signal: Option<PathSignal>,
    ) {
        let Some(Stored { carried, from, .. }) = under_way.datagrams.get(tag as usize) else { return };
        let from = *from;
        let side = match direction {
            Direction::Forward => {
                self.note_arrival(network, carried);
                CLIENT
            }
            Direction::Return => {
                self.limit = self.limit.max(carried.limit.unwrap_or(0));
                SERVER
            }
        };
        let mut bytes = under_way.release(tag);
        let mut advised = None;
        if let Some(PathSignal::Scone(signal)) = signal {
            // The simulator's elements have changed the number, so the bytes must change too.
            lower(&mut bytes, signal);
            if let Some((signal, length)) = scone::read(&bytes) {
                bytes.advance(length);
                advised = Some(signal);
            }
        }
        if side == SERVER {
            let (flow, time, addresses) = (self.number, network.now(), (from, self.ends[SERVER].address));
            under_way.see(|| {
                let (quick_start, payload) = (NO_OPTION, bytes.to_vec());
                CapturedDatagram { time, flow, direction, ecn, quick_start, addresses, payload }
            });
        }
        if side == CLIENT && self.streams[CLIENT].is_none() {
            self.train.on_arrival(network.now(), Bytes::new(bytes.len() as u64));
        }
        let now = instant(network.now());
        let ecn = match ecn {
            EcnCodepoint::NotEct => None,
            EcnCodepoint::Ect0 => Some(noq_proto::EcnCodepoint::Ect0),
            EcnCodepoint::Ect1 => Some(noq_proto::EcnCodepoint::Ect1),
            EcnCodepoint::Ce => Some(noq_proto::EcnCodepoint::Ce),
        };
        let end = &mut self.ends[side];
        let mut response = std::mem::take(&mut under_way.buffer);
        response.clear();
        match end.endpoint.handle(now, FourTuple::new(from, None), ecn, bytes, &mut response) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut end.connection {
                    connection.handle_event(event);
                }
                if let Some(signal) = advised {
                    self.read_signal(network.now(), signal);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(network, under_way, incoming, &mut response),
            Some(DatagramEvent::Response(transmit)) => {
                self.send(network, under_way, side, Outgoing::reply(&response, &transmit));
            }
            None => {}
        }
        under_way.buffer = response;
        self.pump(network, under_way, side);
        self.arm(network);
    }

    /// A client contacts the server.
    fn admit(&mut self, network: &mut Network, under_way: &mut UnderWay, incoming: Incoming, response: &mut Vec<u8>) {
        let end = &mut self.ends[SERVER];
        if self.retry && !incoming.remote_address_validated() {
            if let Ok(transmit) = end.endpoint.retry(incoming, response) {
                self.send(network, under_way, SERVER, Outgoing::reply(response, &transmit));
            }
            return;
        }
        match end.endpoint.accept(incoming, instant(network.now()), response, None) {
            Ok(connection) => end.connection = Some(connection),
            Err(_) => self.failed = true,
        }
    }

    /// An end has events: its application reads and writes, and the end sends as much as it may.
    pub(super) fn pump(&mut self, network: &mut Network, under_way: &mut UnderWay, side: usize) {
        self.ends[side].settle();
        self.run_application(network, side);
        if side == SERVER {
            self.note_controller(network);
        }
        self.transmit(network, under_way, side);
        self.ends[side].settle();
        if side == SERVER {
            let record = network.record(self.number);
            if record.exit.is_none() {
                let max_in_flight = Bytes::new(self.ends[SERVER].watch.seen().max_in_flight);
                record.startup_in_flight = record.startup_in_flight.max(max_in_flight);
            }
            self.note_blocked(network);
        }
        let timeout = self.ends[side].connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.timeouts[side] = timeout.map_or(Timestamp::NEVER, timestamp);
    }

    /// Bytes of a full packet.
    fn packet(&self) -> u64 {
        u64::from(self.profile.payload + self.profile.overhead_in_flight)
    }

    /// The number of datagrams for one request to noq. noq makes all datagrams of a request equally long. The number is
    /// therefore above one only if all of them are full and leave more data behind.
    fn datagrams_at_once(&self, side: usize) -> NonZeroUsize {
        let Some(end) = self.steady.filter(|_| side == SERVER) else { return NonZeroUsize::MIN };
        let left = (self.size - self.unwritten).min(self.limit).saturating_sub(end);
        let full = (left / self.packet()).saturating_sub(1).min(self.at_once);
        NonZeroUsize::new(full as usize).unwrap_or(NonZeroUsize::MIN)
    }

    fn transmit(&mut self, network: &mut Network, under_way: &mut UnderWay, side: usize) {
        let now = instant(network.now());
        self.ends[side].watch.set_traced(network.is_traced());
        let mut buffer = std::mem::take(&mut under_way.buffer);
        let mut carried = std::mem::take(&mut under_way.carried);
        loop {
            let at_once = self.datagrams_at_once(side);
            let Some((_, connection)) = &mut self.ends[side].connection else { break };
            buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, at_once, &mut buffer) else { break };
            let ecn = match transmit.ecn.filter(|_| self.profile.ecn) {
                Some(noq_proto::EcnCodepoint::Ect0) => EcnCodepoint::Ect0,
                Some(noq_proto::EcnCodepoint::Ect1) => EcnCodepoint::Ect1,
                Some(noq_proto::EcnCodepoint::Ce) => EcnCodepoint::Ce,
                None => EcnCodepoint::NotEct,
            };
            std::mem::swap(&mut carried, &mut self.ends[side].watch.seen().carried);
            let mut carried = carried.drain(..);
            let datagrams = buffer[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size).max(1));
            for bytes in datagrams {
                let (carried, to) = (carried.next().unwrap_or_default(), transmit.destination);
                let quick_start = self.option_of_next(side);
                self.send(network, under_way, side, Outgoing { bytes, carried, ecn, to, quick_start });
            }
        }
        buffer.clear();
        under_way.buffer = buffer;
        under_way.carried = carried;
    }

    /// Puts a datagram into the network.
    fn send(&mut self, network: &mut Network, under_way: &mut UnderWay, side: usize, outgoing: Outgoing<'_>) {
        let Outgoing { bytes, carried, ecn, to, quick_start } = outgoing;
        let (direction, body) = match side {
            CLIENT => (Direction::Return, self.note_client_sends(network, &carried)),
            _ => {
                self.steady = self.steady_after(&carried, bytes);
                (Direction::Forward, self.note_server_sends(network, &carried))
            }
        };
        let reads = side == SERVER && self.ends[SERVER].watch.seen().scone;
        let whole = if reads { self.scone.offer(network.now(), bytes) } else { None };
        let signal = whole.is_some().then_some(PathSignal::Scone(RateSignal::UNKNOWN));
        let bytes = whole.as_deref().unwrap_or(bytes);
        let size = bytes.len() as u32 + BELOW;
        let from = self.ends[side].address;
        if side == SERVER {
            let (flow, time, addresses) = (self.number, network.now(), (from, to));
            under_way.see(|| {
                let payload = bytes.to_vec();
                CapturedDatagram { time, flow, direction, ecn, quick_start, addresses, payload }
            });
        }
        let tag = under_way.insert(bytes, carried, from);
        self.place.send(network, &Datagram { direction, tag, size, ecn, body, signal, quick_start });
    }

    /// The value of `steady` after a packet of the server, before the packet counts as sent.
    fn steady_after(&self, carried: &Carried, bytes: &[u8]) -> Option<u64> {
        let Chunk { offset, len } = carried.chunk?;
        let (end, known) = (offset + u64::from(len), self.sent.ranges().last().map_or(0, |range| range.1));
        (bytes.len() as u64 == self.packet() && carried.further.is_empty() && offset == known).then_some(end)
    }

    /// Arms the flow's timer. A timer that fires too early finds nothing to do and is armed again, which costs less
    /// than moving it with every packet.
    fn arm(&mut self, network: &mut Network) {
        let next = if self.client_config.is_some() { self.start } else { Timestamp::NEVER };
        let next = next.min(self.timeouts[CLIENT]).min(self.timeouts[SERVER]);
        self.place.hasten_timer(network, next);
    }
}
