//! A client and a server of noq on a path of two delays and one bottleneck, in virtual time: a small independent world
//! in which tests drop, mark, delay and readdress packets.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowstart_quic::{ControllerFactory, Flow};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
    FourTuple, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

/// What happens to a packet of the server on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    Mark,
    Delay(Duration),
}

/// The path and what happens on it.
pub(crate) struct Path {
    /// One-way delay.
    pub delay: Duration,
    /// Bytes per second from server to client.
    pub rate: f64,
    /// Decides by the number of the server's datagram and its time.
    pub fate: Box<dyn FnMut(u64, Duration) -> Fate>,
    /// The client has another address from this time on.
    pub moves_at: Option<Duration>,
    /// Whether noq looks for a larger MTU.
    pub mtu_discovery: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(50),
            rate: 12_500_000.0,
            fate: Box::new(|_, _| Fate::Deliver),
            moves_at: None,
            mtu_discovery: false,
        }
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// When the last byte arrived.
    pub done: Option<Duration>,
    /// Departures of the server's datagrams: time and size.
    pub departures: Vec<(Duration, usize)>,
}

struct Datagram {
    to_server: bool,
    bytes: Vec<u8>,
    ecn: Option<EcnCodepoint>,
    from: SocketAddr,
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The server sends `size` bytes when the connection stands; the run ends with them or after `limit`.
pub(crate) fn transfer(
    factory: &ControllerFactory,
    flow: &Arc<Flow>,
    size: usize,
    path: Path,
    limit: Duration,
) -> Outcome {
    transfer_with(Arc::new(factory.for_flow(flow.clone())), size, path, limit)
}

/// [`transfer`] with controllers of any make.
pub(crate) fn transfer_with(
    factory: Arc<dyn noq_proto::congestion::ControllerFactory + Send + Sync>,
    size: usize,
    mut path: Path,
    limit: Duration,
) -> Outcome {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let client_tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();

    let mut server_transport = TransportConfig::default();
    server_transport.send_window(1 << 30).congestion_controller_factory(factory);
    let mut client_transport = TransportConfig::default();
    client_transport.stream_receive_window((1u32 << 30).into()).receive_window((1u32 << 30).into());
    if !path.mtu_discovery {
        server_transport.mtu_discovery_config(None);
        client_transport.mtu_discovery_config(None);
    }
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    server.transport_config(Arc::new(server_transport));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client_tls).unwrap()));
    client.transport_config(Arc::new(client_transport));

    let mut client_end = address("10.0.0.1:1000");
    let server_end = address("10.0.0.2:443");
    let mut endpoints = [
        Endpoint::new(Arc::new(EndpointConfig::default()), None, true),
        Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(server)), true),
    ];
    let base = Instant::now();
    let mut connections: [Option<(ConnectionHandle, Connection)>; 2] = [None, None];
    connections[0] = Some(endpoints[0].connect(base, client, server_end, "localhost").unwrap());

    let mut outcome = Outcome::default();
    let mut arrivals: BinaryHeap<Reverse<(Duration, u64)>> = BinaryHeap::new();
    let mut datagrams: std::collections::HashMap<u64, Datagram> = std::collections::HashMap::new();
    let (mut sequence, mut departed) = (0u64, 0u64);
    let (mut now, mut free_at) = (Duration::ZERO, Duration::ZERO);
    let (mut stream, mut incoming): (Option<StreamId>, Option<StreamId>) = (None, None);
    let (mut written, mut received) = (0, 0);
    let payload = vec![0u8; 65_536];
    // Until the last acknowledgements have arrived.
    let end = |done: Option<Duration>| done.map_or(limit, |done| done + 4 * path.delay);
    while now < end(outcome.done) {
        for side in 0..2 {
            let Some((handle, connection)) = connections[side].as_mut() else { continue };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoints[side].handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected if side == 1 => stream = connection.streams().open(Dir::Uni),
                    Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) if side == 0 => {
                        incoming = connection.streams().accept(Dir::Uni);
                    }
                    Event::ConnectionLost { reason } => panic!("side {side}: {reason}"),
                    _ => {}
                }
            }
            if side == 1
                && let Some(stream) = stream
            {
                while written < size {
                    let next = payload.len().min(size - written);
                    let Ok(taken) = connection.send_stream(stream).write(&payload[..next]) else { break };
                    written += taken;
                    if written == size {
                        connection.send_stream(stream).finish().unwrap();
                    }
                }
            }
            if side == 0
                && let Some(stream) = incoming
            {
                let mut reader = connection.recv_stream(stream);
                if let Ok(mut chunks) = reader.read(true) {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        received += chunk.bytes.len();
                    }
                    let _ = chunks.finalize();
                }
                if received >= size {
                    outcome.done.get_or_insert(now);
                }
            }
            loop {
                let mut buffer = Vec::new();
                let batch = NonZeroUsize::new(10).unwrap();
                let Some(transmit) = connection.poll_transmit(base + now, batch, &mut buffer) else { break };
                let segment = transmit.segment_size.unwrap_or(transmit.size);
                for bytes in buffer[..transmit.size].chunks(segment) {
                    let mut arrives = now + path.delay;
                    let mut ecn = transmit.ecn;
                    if side == 1 {
                        outcome.departures.push((now, bytes.len()));
                        departed += 1;
                        match (path.fate)(departed, now) {
                            Fate::Deliver => {}
                            Fate::Drop => continue,
                            Fate::Mark => ecn = Some(EcnCodepoint::Ce),
                            Fate::Delay(more) => arrives += more,
                        }
                        free_at = free_at.max(now) + Duration::from_secs_f64(bytes.len() as f64 / path.rate);
                        arrives += free_at - now;
                    }
                    sequence += 1;
                    let from = if side == 0 { client_end } else { server_end };
                    arrivals.push(Reverse((arrives, sequence)));
                    datagrams.insert(sequence, Datagram { to_server: side == 0, bytes: bytes.to_vec(), ecn, from });
                }
            }
        }
        if path.moves_at.is_some_and(|at| at <= now) {
            path.moves_at = None;
            client_end = address("10.9.9.9:1000");
            if let Some((_, connection)) = &mut connections[0] {
                connection.handle_network_change(None, base + now);
            }
            continue;
        }
        let timers = connections.iter_mut().flatten().filter_map(|(_, connection)| connection.poll_timeout());
        let next_timer = timers.min().map(|at| at.saturating_duration_since(base));
        let next_arrival = arrivals.peek().map(|Reverse((at, _))| *at);
        let Some(next) = next_timer.into_iter().chain(next_arrival).chain(path.moves_at).min() else { break };
        now = now.max(next);
        for (_, connection) in connections.iter_mut().flatten() {
            if connection.poll_timeout().is_some_and(|at| at <= base + now) {
                connection.handle_timeout(base + now);
            }
        }
        while arrivals.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, number))) = arrivals.pop() else { break };
            let Some(datagram) = datagrams.remove(&number) else { continue };
            let side = usize::from(datagram.to_server);
            let mut response = Vec::new();
            let path = FourTuple::new(datagram.from, None);
            let bytes = bytes::BytesMut::from(&datagram.bytes[..]);
            match endpoints[side].handle(base + now, path, datagram.ecn, bytes, &mut response) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    connections[side].as_mut().unwrap().1.handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = endpoints[side].accept(incoming, base + now, &mut response, None);
                    connections[side] = Some(accepted.map_err(|error| error.cause).unwrap());
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
    }
    outcome
}
