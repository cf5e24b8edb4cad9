//! The QUIC stack noq as a node of the simulator: measured flows whose two ends are real, in simulated time.
//!
//! Each flow has a client and a server of its own. The client opens, and requests a number of bytes; the server's
//! congestion controller is the one of `flowstart-quic`. Handshake, encryption, loss detection, acknowledgements and flow
//! control are noq's; links, queues and competitors are the simulator's. What packets carry is read before they are
//! encrypted, so records and traces say the same as those of model flows.
//!
//! Differences from the model flow that follow from the stack: pacing is noq's token bucket and
//! RTT samples are an acknowledgement late (see `flowstart_quic::noq`), and the receive window is renewed as noq does it: by what
//! the client has read, and it reads what has arrived, in any order.
//! Packets have the sizes and times of every other run with the same seed; their encrypted bytes do not repeat.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes as Buffer;
use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::event::Decision;
use flowstart_core::path::PathKnowledge;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_quic::{ControllerFactory, Flow, Unsupported};
use flowstart_sim::external::{Datagram, ExternalEvent};
use flowstart_sim::network::Route;
use flowstart_sim::packet::{Acknowledgement, Body, Direction, NO_OPTION};
use flowstart_sim::ranges::RangeSet;
use flowstart_sim::record::StartupExit;
use flowstart_sim::trace::Event;
use flowstart_sim::transport::handshake::{ANSWER, COMPLETE, OPEN, PARTIAL};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::transport::sender::Chunk;
use flowstart_sim::world::{FlowConfig, Stopped, World};
use noq_proto::{ClientConfig, DatagramEvent, Dir, FourTuple, Incoming, StreamEvent, StreamId};

mod end;
mod frames;
mod under_way;
mod watch;

use end::{CLIENT, End, Ends, SERVER, SetupError, instant, timestamp};
use frames::Carried;
use under_way::{Stored, UnderWay};

/// The stack.
pub const STACK: &str = "noq 1.4.0";
/// Bytes of a request: a GET with its headers, as the model's completion of the handshake has room for.
const REQUEST: usize = 230;
/// Headers below QUIC on the wire: IPv4 20, UDP 8, Ethernet 14.
const BELOW: u32 = 42;
/// What servers send, piece by piece. It is never written to, so the machine keeps one page of it; few enough pages that
/// their addresses stay in the processor's cache of addresses.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
/// Datagrams that noq is asked for at once: about what its token bucket holds.
const AT_ONCE: u64 = 16;

/// What only a real stack can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackOptions {
    /// The server wants every client's address validated by a Retry packet (RFC 9000, section 8.1.2).
    pub retry: bool,
}

/// Whether noq can run a flow with this profile and these algorithms.
///
/// # Errors
///
/// What it cannot run, and why.
pub fn check(profile: &Profile, startup: &StartupConfig, avoidance: &AvoidanceConfig) -> Result<(), Unsupported> {
    ControllerFactory::with_config(profile.controller(startup.clone(), avoidance.clone())).map(|_| ())
}

/// Measured flows with real ends.
pub struct QuicFlows {
    transfers: Vec<Transfer>,
    /// Number of the first flow; the others follow it.
    first: u32,
    under_way: UnderWay,
}

impl fmt::Debug for QuicFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicFlows").field("flows", &self.transfers.len()).finish_non_exhaustive()
    }
}

impl QuicFlows {
    /// No flows yet.
    pub fn new(world: &World) -> Self {
        Self { transfers: Vec::new(), first: world.flow_count() as u32, under_way: UnderWay::default() }
    }

    /// Adds a flow that transfers `size` bytes. All of them must be added before another flow of the world is.
    ///
    /// # Panics
    ///
    /// When noq cannot run the scheme, which [`check`] finds out before.
    pub fn add(&mut self, world: &mut World, config: FlowConfig, size: Bytes, options: StackOptions, seed: u64) -> u32 {
        let FlowConfig { profile, startup, avoidance, route, mut knowledge, start, .. } = config;
        knowledge.receive_window = profile.announced_receive_window();
        let number = world.add_external_flow(profile.clone(), &route, start);
        let transfer = ControllerFactory::with_config(profile.controller(startup, avoidance))
            .map_err(SetupError::from)
            .and_then(|factory| Transfer::new(number, profile, &factory, knowledge, size, options, seed));
        match transfer {
            Ok(transfer) => self.transfers.push(Transfer { start, ..transfer }),
            Err(error) => panic!("the ends of a flow cannot be set up: {error}"),
        }
        number
    }

    /// The link between a flow's server and its controller.
    pub fn flow(&self, flow: u32) -> Option<&Arc<Flow>> {
        Some(&self.transfers.get(flow.checked_sub(self.first)? as usize)?.flow)
    }

    /// What noq counts at a flow's server; `None` before the connection stands.
    pub fn server_stats(&mut self, flow: u32) -> Option<noq_proto::ConnectionStats> {
        let transfer = self.transfers.get_mut(flow.checked_sub(self.first)? as usize)?;
        Some(transfer.ends[SERVER].connection.as_mut()?.1.stats())
    }

    /// A flow's client has another address from now on, and its packets take `route`.
    pub fn move_client(&mut self, world: &mut World, flow: u32, route: &Route) {
        let Some(transfer) = self.transfers.get_mut(flow.saturating_sub(self.first) as usize) else { return };
        world.change_external_route(flow, route);
        transfer.at_once = 1;
        let IpAddr::V4(host) = transfer.ends[CLIENT].address.ip() else { return };
        let [a, b, c, d] = host.octets();
        transfer.ends[CLIENT].address.set_ip(IpAddr::V4(Ipv4Addr::new(a, b, c + 1, d)));
        if let Some((_, connection)) = &mut transfer.ends[CLIENT].connection {
            connection.handle_network_change(None, instant(world.now()));
        }
        transfer.pump(world, &mut self.under_way, CLIENT);
    }

    /// Runs everything that happens until `time`; the clock then stands at `time`.
    pub fn run_until(&mut self, world: &mut World, time: Timestamp) {
        while let Ok(event) = world.run_external(time) {
            self.on_event(world, event);
        }
        world.network.engine.advance(time);
    }

    /// Runs until `flow` is complete; an error when `limit` passes first, or nothing is left to happen.
    pub fn run_flow(&mut self, world: &mut World, flow: u32, limit: Timestamp) -> Result<(), Stopped> {
        while world.record(flow).completed.is_none() {
            let transfer = self.transfers.get(flow.saturating_sub(self.first) as usize);
            if transfer.is_none_or(|transfer| transfer.failed) {
                return Err(Stopped::Idle);
            }
            let event = world.run_external(limit)?;
            self.on_event(world, event);
        }
        Ok(())
    }

    fn on_event(&mut self, world: &mut World, event: ExternalEvent) {
        let place = |flow: u32| flow.saturating_sub(self.first) as usize;
        match event {
            ExternalEvent::Lost { tag } => drop(self.under_way.release(tag)),
            ExternalEvent::Timer { flow } => {
                if let Some(transfer) = self.transfers.get_mut(place(flow)) {
                    transfer.on_timer(world, &mut self.under_way);
                }
            }
            ExternalEvent::Arrived { flow, direction, tag, ecn } => {
                if let Some(transfer) = self.transfers.get_mut(place(flow)) {
                    transfer.deliver(world, &mut self.under_way, direction, tag, ecn);
                }
            }
        }
    }
}

/// A measured flow.
struct Transfer {
    number: u32,
    profile: Arc<Profile>,
    options: StackOptions,
    size: u64,
    start: Timestamp,
    ends: [End; 2],
    /// What the client begins with, until it does.
    client_config: Option<ClientConfig>,
    flow: Arc<Flow>,
    /// The connection was lost.
    failed: bool,
    /// The stream of the request and the response, as each end knows it.
    streams: [Option<StreamId>; 2],
    request: Vec<u8>,
    /// Bytes that the server has not yet given to the stream.
    unwritten: u64,
    /// Bytes that the client has read.
    read: u64,
    /// Bytes of the stream that the server has sent, and that the client has.
    sent: RangeSet,
    received: RangeSet,
    /// Numbers of the packets that the client has.
    arrived: RangeSet,
    /// Numbers of packets that were declared lost and have not arrived.
    lost: std::collections::BTreeSet<u64>,
    /// Packets of the server with the pieces that they carry, and what of them is acknowledged; only where somebody traces.
    pieces: std::collections::BTreeMap<u64, Vec<Chunk>>,
    acknowledged: RangeSet,
    /// First byte that flow control forbids, as the server knows it.
    limit: u64,
    blocked_since: Option<Timestamp>,
    /// When each end wants to be woken.
    timeouts: [Timestamp; 2],
    /// End of the new data in the server's last packet if that was full, carried nothing else of the stream, and nothing has
    /// happened since that could make the next one different. A packet brings lost data before new data.
    steady: Option<u64>,
    /// Datagrams that noq may be asked for at once.
    at_once: u64,
}

impl Transfer {
    fn new(
        number: u32,
        profile: Arc<Profile>,
        factory: &ControllerFactory,
        knowledge: PathKnowledge,
        size: Bytes,
        options: StackOptions,
        seed: u64,
    ) -> Result<Self, SetupError> {
        let flow = Flow::waiting(knowledge);
        let Ends { client, server, client_config } = Ends::new(&profile, factory, &flow, seed)?;
        Ok(Self {
            number,
            options,
            size: size.get(),
            start: Timestamp::ZERO,
            ends: [client, server],
            client_config: Some(client_config),
            flow,
            failed: false,
            streams: [None; 2],
            request: Vec::new(),
            unwritten: 0,
            read: 0,
            sent: RangeSet::default(),
            received: RangeSet::default(),
            arrived: RangeSet::default(),
            lost: std::collections::BTreeSet::new(),
            pieces: std::collections::BTreeMap::new(),
            acknowledged: RangeSet::default(),
            limit: profile.first_receive_window().get(),
            blocked_since: None,
            timeouts: [Timestamp::NEVER; 2],
            steady: None,
            at_once: AT_ONCE,
            profile,
        })
    }

    fn on_timer(&mut self, world: &mut World, under_way: &mut UnderWay) {
        let now = world.now();
        if let Some(config) = self.client_config.take_if(|_| self.start <= now) {
            world.network.record(self.number).started = Some(now);
            if self.ends[CLIENT].connect(instant(now), config).is_err() {
                self.failed = true;
                return;
            }
            // 0-RTT: the request need not wait.
            self.send_request();
            self.pump(world, under_way, CLIENT);
        }
        for side in [CLIENT, SERVER] {
            if self.timeouts[side] > now {
                continue;
            }
            let Some((_, connection)) = &mut self.ends[side].connection else { continue };
            connection.handle_timeout(instant(now));
            self.steady = self.steady.filter(|_| side == CLIENT);
            self.pump(world, under_way, side);
        }
        self.arm(world);
    }

    fn deliver(
        &mut self,
        world: &mut World,
        under_way: &mut UnderWay,
        direction: Direction,
        tag: u32,
        ecn: EcnCodepoint,
    ) {
        let Some(Stored { carried, from, .. }) = under_way.datagrams.get(tag as usize) else { return };
        let from = *from;
        let side = match direction {
            Direction::Forward => {
                self.note_arrival(world, carried);
                CLIENT
            }
            Direction::Return => {
                self.limit = self.limit.max(carried.limit.unwrap_or(0));
                SERVER
            }
        };
        let bytes = under_way.release(tag);
        let now = instant(world.now());
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
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(world, under_way, incoming, &mut response),
            Some(DatagramEvent::Response(transmit)) => {
                self.send(world, under_way, side, &response[..transmit.size], Carried::default(), EcnCodepoint::NotEct);
            }
            None => {}
        }
        under_way.buffer = response;
        self.pump(world, under_way, side);
        self.arm(world);
    }

    /// A client knocks at the server.
    fn admit(&mut self, world: &mut World, under_way: &mut UnderWay, incoming: Incoming, response: &mut Vec<u8>) {
        let end = &mut self.ends[SERVER];
        if self.options.retry && !incoming.remote_address_validated() {
            if let Ok(transmit) = end.endpoint.retry(incoming, response) {
                self.send(
                    world,
                    under_way,
                    SERVER,
                    &response[..transmit.size],
                    Carried::default(),
                    EcnCodepoint::NotEct,
                );
            }
            return;
        }
        match end.endpoint.accept(incoming, instant(world.now()), response, None) {
            Ok(connection) => end.connection = Some(connection),
            Err(_) => self.failed = true,
        }
    }

    /// Counts what the client has received.
    fn note_arrival(&mut self, world: &mut World, carried: &Carried) {
        let network = &mut world.network;
        for Chunk { offset, len } in carried.chunks() {
            network.note(self.number, || Event::Received { offset, len });
            network.record(self.number).delivered += self.received.insert(offset, offset + u64::from(len));
        }
        let Some(number) = carried.number else { return };
        self.arrived.insert(number, number + 1);
        if self.lost.remove(&number) {
            network.record(self.number).spurious += 1;
        }
    }

    /// An end has news: its application reads and writes, and it sends what it may.
    fn pump(&mut self, world: &mut World, under_way: &mut UnderWay, side: usize) {
        self.ends[side].settle();
        self.run_application(world, side);
        if side == SERVER {
            self.note_controller(world);
        }
        self.transmit(world, under_way, side);
        self.ends[side].settle();
        if side == SERVER {
            let record = world.network.record(self.number);
            if record.exit.is_none() {
                let max_in_flight = Bytes::new(self.ends[SERVER].watch.seen().max_in_flight);
                record.startup_in_flight = record.startup_in_flight.max(max_in_flight);
            }
            self.note_blocked(world);
        }
        let timeout = self.ends[side].connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.timeouts[side] = timeout.map_or(Timestamp::NEVER, timestamp);
    }

    /// Bytes of a full packet.
    fn packet(&self) -> u64 {
        u64::from(self.profile.payload + self.profile.overhead_in_flight)
    }

    /// How many datagrams noq may be asked for at once. It makes the datagrams of a call equally long, so that there are more
    /// than one only where all of them are full anyway, and more data is left than they take.
    fn datagrams_at_once(&self, side: usize) -> NonZeroUsize {
        let Some(end) = self.steady.filter(|_| side == SERVER) else { return NonZeroUsize::MIN };
        let left = (self.size - self.unwritten).min(self.limit).saturating_sub(end);
        let full = (left / self.packet()).saturating_sub(1).min(self.at_once);
        NonZeroUsize::new(full as usize).unwrap_or(NonZeroUsize::MIN)
    }

    fn transmit(&mut self, world: &mut World, under_way: &mut UnderWay, side: usize) {
        let now = instant(world.now());
        self.ends[side].watch.set_traced(world.network.is_traced());
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
            let count = datagrams.len();
            for bytes in datagrams {
                self.send(world, under_way, side, bytes, carried.next().unwrap_or_default(), ecn);
            }
            // There is more data, so the window or the pacer stops it. Another call would find out the same.
            if count < at_once.get() && self.steady.is_some() {
                break;
            }
        }
        buffer.clear();
        under_way.buffer = buffer;
        under_way.carried = carried;
    }

    /// Puts a datagram into the network.
    fn send(
        &mut self,
        world: &mut World,
        under_way: &mut UnderWay,
        side: usize,
        bytes: &[u8],
        carried: Carried,
        ecn: EcnCodepoint,
    ) {
        let (direction, body) = match side {
            CLIENT => (Direction::Return, self.note_client_sends(world, &carried)),
            _ => {
                self.steady = self.steady_after(&carried, bytes);
                (Direction::Forward, self.note_server_sends(world, &carried))
            }
        };
        let size = bytes.len() as u32 + BELOW;
        let tag = under_way.insert(bytes, carried, self.ends[side].address);
        world.send_external(&Datagram { flow: self.number, direction, tag, size, ecn, body });
    }

    /// What `steady` is after a packet of the server, before it counts as sent.
    fn steady_after(&self, carried: &Carried, bytes: &[u8]) -> Option<u64> {
        let Chunk { offset, len } = carried.chunk?;
        let (end, known) = (offset + u64::from(len), self.sent.ranges().last().map_or(0, |range| range.1));
        (bytes.len() as u64 == self.packet() && carried.further.is_empty() && offset == known).then_some(end)
    }

    /// What a packet of the client is to a trace.
    fn note_client_sends(&mut self, world: &mut World, carried: &Carried) -> Body {
        let now = world.now();
        if carried.chunk.is_some() {
            world.network.record(self.number).request_sent.get_or_insert(now);
            return Body::Handshake { flight: COMPLETE, part: 0, attempt: 0, quick_start: NO_OPTION };
        }
        let Some((position, delay)) = carried.acknowledged else {
            let flight =
                if self.received.ranges().is_empty() && self.streams[CLIENT].is_none() { OPEN } else { PARTIAL };
            return Body::Handshake { flight, part: 0, attempt: 0, quick_start: NO_OPTION };
        };
        let gaps = carried.ranges.len() > 1;
        // The exponent of the delay is the default, 3 (RFC 9000, section 18.2).
        let delay = Duration::from_nanos(delay.saturating_mul(8_000));
        Body::Acknowledgement(Acknowledgement {
            position,
            ranges: gaps.then(|| world.network.ranges.insert(carried.ranges.iter().copied())),
            delay,
            echo: Timestamp::ZERO,
            limit: carried.limit.unwrap_or(self.limit),
            ce_count: 0,
            requests: 0,
        })
    }

    /// Counts what the server sends, and says what it is to a trace.
    fn note_server_sends(&mut self, world: &mut World, carried: &Carried) -> Body {
        let now = world.now();
        let (Some(number), Some(first)) = (carried.number, carried.chunk) else {
            return Body::Handshake { flight: ANSWER, part: 0, attempt: 0, quick_start: NO_OPTION };
        };
        let mut again = 0;
        for Chunk { offset, len } in carried.chunks() {
            let fresh = self.sent.insert(offset, offset + u64::from(len));
            let old = u64::from(len) - fresh;
            again += old;
            world.network.note(self.number, || Event::Sent { offset, len, retransmission: old > 0 });
        }
        let record = world.network.record(self.number);
        record.data_packets += 1;
        record.first_data_sent.get_or_insert(now);
        record.retransmitted += again;
        record.retransmissions += u64::from(again > 0);
        if world.network.is_traced() {
            self.pieces.insert(number, carried.chunks().collect());
        }
        let len = carried.chunks().map(|chunk| chunk.len).sum();
        Body::Data { number, offset: first.offset, len, least_unacknowledged: 0, sent_at: now }
    }

    /// What the applications do: the client requests and reads, the server reads the request and answers.
    fn run_application(&mut self, world: &mut World, side: usize) {
        loop {
            let Some((_, connection)) = &mut self.ends[side].connection else { return };
            let Some(event) = connection.poll() else { break };
            match event {
                noq_proto::Event::Connected if side == CLIENT => self.send_request(),
                noq_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) if side == SERVER => {
                    self.streams[SERVER] = connection.streams().accept(Dir::Bi);
                    self.read_request();
                }
                noq_proto::Event::Stream(StreamEvent::Readable { .. }) => {
                    if side == CLIENT {
                        self.read_response(world);
                    } else {
                        self.read_request();
                    }
                }
                noq_proto::Event::Stream(StreamEvent::Writable { .. }) if side == SERVER => self.write_response(),
                noq_proto::Event::ConnectionLost { .. } => self.failed = true,
                _ => {}
            }
        }
    }

    /// The client asks, as soon as it may.
    fn send_request(&mut self) {
        let Some((_, connection)) = &mut self.ends[CLIENT].connection else { return };
        let allowed = !connection.is_handshaking() || connection.has_0rtt();
        if self.streams[CLIENT].is_some() || !allowed {
            return;
        }
        self.streams[CLIENT] = connection.streams().open(Dir::Bi);
        let Some(stream) = self.streams[CLIENT] else { return };
        let mut request = [0; REQUEST];
        request[..8].copy_from_slice(&self.size.to_be_bytes());
        let mut stream = connection.send_stream(stream);
        let written = stream.write(&request);
        if written != Ok(REQUEST) || stream.finish().is_err() {
            self.failed = true;
        }
    }

    fn read_request(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[SERVER].connection, self.streams[SERVER]) else {
            return;
        };
        let mut reader = connection.recv_stream(stream);
        let Ok(mut chunks) = reader.read(true) else { return };
        let mut complete = false;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.request.extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // Whether that has to be told to the peer is asked when packets are polled for.
        let _ = chunks.finalize();
        if let (true, Some(size)) = (complete, self.request.first_chunk::<8>()) {
            self.unwritten = u64::from_be_bytes(*size);
            self.flow.expect(Bytes::new(self.unwritten), Bytes::new(self.packet()));
            self.write_response();
        }
    }

    fn write_response(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[SERVER].connection, self.streams[SERVER]) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        while self.unwritten > 0 {
            let next = self.unwritten.min(ZEROS.len() as u64) as usize;
            let Ok(written) = stream.write_chunks(&mut &mut [Buffer::from_static(&ZEROS[..next])][..]) else { return };
            self.unwritten -= written as u64;
            if self.unwritten == 0 && stream.finish().is_err() {
                self.failed = true;
            }
        }
    }

    fn read_response(&mut self, world: &mut World) {
        let (Some((_, connection)), Some(stream)) = (&mut self.ends[CLIENT].connection, self.streams[CLIENT]) else {
            return;
        };
        let mut reader = connection.recv_stream(stream);
        // In any order, as into a file: noq closes a connection whose reader lets more than some thousand pieces wait behind
        // gaps, and slow start on a long path loses every second packet of a whole window.
        let Ok(mut chunks) = reader.read(false) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.read += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        if self.read >= self.size {
            let now = world.now();
            world.network.record(self.number).completed.get_or_insert(now);
        }
    }

    /// Turns what the controller was told and what it decided into records and traces.
    fn note_controller(&mut self, world: &mut World) {
        let network = &mut world.network;
        let traced = network.is_traced();
        let (origin, lost, acknowledged) = {
            let seen = &mut *self.ends[SERVER].watch.seen();
            let Some(origin) = seen.origin else { return };
            (timestamp(origin), std::mem::take(&mut seen.lost), std::mem::take(&mut seen.acknowledged))
        };
        if !lost.is_empty() {
            self.steady = None;
        }
        let mut newly = 0;
        for number in acknowledged {
            for Chunk { offset, len } in self.pieces.remove(&number).unwrap_or_default() {
                newly += self.acknowledged.insert(offset, offset + u64::from(len));
            }
        }
        for number in lost {
            network.record(self.number).declared_lost += 1;
            for Chunk { offset, len } in self.pieces.get(&number).cloned().unwrap_or_default() {
                network.note(self.number, || Event::DeclaredLost { offset, len });
            }
            if self.arrived.containing(number).is_some() {
                network.record(self.number).spurious += 1;
            } else {
                self.lost.insert(number);
            }
        }
        if newly > 0 {
            let contiguous = self.acknowledged.contiguous_end(0);
            network.note(self.number, || Event::Acknowledged { contiguous, newly: Bytes::new(newly) });
        }
        let status = self.flow.status();
        while let Some((time, decision)) = self.flow.take_decision() {
            let record = network.record(self.number);
            match decision {
                Decision::Launched { .. } => record.handshake_rtt = record.handshake_rtt.or(status.min_rtt),
                Decision::StartupExited { reason, cwnd, .. } => {
                    let time = origin + time.since(Timestamp::ZERO);
                    record.exit.get_or_insert(StartupExit { time, reason, cwnd });
                }
                Decision::WindowReduced { .. } => record.window_cuts += 1,
                Decision::Collapsed { .. } => record.timeouts += 1,
                _ => {}
            }
            network.note(self.number, || Event::Decided(decision));
        }
        let record = network.record(self.number);
        record.max_cwnd = record.max_cwnd.max(status.cwnd);
        if traced && status.launch.is_some() {
            network.note(self.number, || Event::Window {
                cwnd: status.cwnd,
                ssthresh: status.ssthresh.unwrap_or(Bytes::MAX),
                in_flight: status.in_flight,
                pacing_rate: status.pacing_rate,
                srtt_nanos: status.smoothed_rtt.unwrap_or_default().as_nanos(),
            });
        }
    }

    /// Notes whether nothing but flow control stops new data.
    fn note_blocked(&mut self, world: &mut World) {
        // Nothing is left unwritten where flow control lets everything pass.
        if self.unwritten == 0 && self.blocked_since.is_none() {
            return;
        }
        let status = self.flow.status();
        let packet = Bytes::new(self.packet());
        let stopped = self.unwritten > 0 && self.sent.contiguous_end(0) >= self.limit;
        let blocked = stopped && status.in_flight + packet <= status.cwnd;
        if blocked == self.blocked_since.is_some() {
            return;
        }
        let (now, limit) = (world.now(), self.limit);
        match self.blocked_since.take() {
            Some(since) => world.network.record(self.number).flow_control_blocked += now.since(since),
            None => self.blocked_since = Some(now),
        }
        world.network.note(self.number, || Event::FlowControl { blocked, limit });
    }

    /// Arms the flow's timer. One that fires too early finds nothing to do and is armed again, which costs less than moving
    /// it with every packet.
    fn arm(&mut self, world: &mut World) {
        let next = if self.client_config.is_some() { self.start } else { Timestamp::NEVER };
        let next = next.min(self.timeouts[CLIENT]).min(self.timeouts[SERVER]);
        world.hasten_external_timer(self.number, next);
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::QueueLimit;
    use flowstart_core::path::Hint;
    use flowstart_core::units::Rate;
    use flowstart_sim::link::LinkConfig;
    use flowstart_sim::record::FlowRecord;
    use flowstart_sim::traffic::Pattern;

    use super::*;

    fn record(startup: &StartupConfig, window: u64, size: u64, at_once: u64) -> FlowRecord {
        let mut world = World::new(1);
        let rate = Rate::from_mbit(50);
        // The queue has room for 50 ms.
        let limit = QueueLimit { bytes: Some(Bytes::new(312_500)), ..QueueLimit::default() };
        let way = LinkConfig { limit, ..LinkConfig::new(rate, Duration::from_millis(25)) };
        let route = Route { forward: vec![world.add_link(&way)], back: vec![world.add_link(&way)] };
        let profile = Profile { receive_window: Bytes::new(window), ..Profile::noq() };
        let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(size)), route);
        config.startup = startup.clone();
        config.knowledge.hint = Some(Hint { bandwidth: rate, technology: Default::default() });
        let mut quic = QuicFlows::new(&world);
        let flow = quic.add(&mut world, config, Bytes::new(size), StackOptions::default(), 1);
        quic.transfers[0].at_once = at_once;
        assert_eq!(quic.run_flow(&mut world, flow, Timestamp::ZERO + Duration::from_millis(60_000)), Ok(()));
        world.record(flow).clone()
    }

    #[test]
    fn datagrams_that_are_asked_for_at_once_are_those_of_single_calls() {
        let mut lost = 0;
        for startup in StartupConfig::defaults() {
            if !["slow-start", "blitzstart", "jump-start"].contains(&startup.name()) {
                continue;
            }
            // Two sizes, so that the last packets differ, and a receive window that stops the sender again and again.
            for (window, size) in [(1 << 24, 3_000_000), (1 << 24, 3_000_020), (100_000, 1_000_000)] {
                let single = record(&startup, window, size, 1);
                assert_eq!(record(&startup, window, size, AT_ONCE), single, "{} {window} {size}", startup.name());
                lost += single.dropped;
            }
        }
        assert!(lost > 0, "no case with loss");
    }
}
