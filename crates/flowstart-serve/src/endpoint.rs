//! Common parts of both ends of a connection: the socket, flow control, the protocol's name.

use std::net::SocketAddr;
use std::sync::Arc;

use flowstart_core::units::Bytes;
use flowstart_quic::runtime::PreciseRuntime;
use flowstart_quic::{handshake_train, quick_start, scone};
use noq::{AsyncUdpSocket, EndpointConfig, Runtime, TransportConfig, VarInt};
use noq_proto::RandomConnectionIdGenerator;

use crate::scheme::Scheme;

/// HTTP/3's protocol name (RFC 9114, section 3.1).
pub const H3: &[u8] = b"h3";
/// Streams that a peer may have open at a time. RFC 9114, section 6.1, wants at least 100.
const STREAMS: u32 = 128;

/// A receive window that no loss pattern of startup can break; it is noq's own default.
///
/// Behind a gap in a stream noq keeps at most 2048 pieces. If there are more, it joins the small ones, and ends the
/// connection if more than 1024 are left. This window is at most 1042 packets of 1200 bytes. A lost packet is repeated
/// in two pieces. If every second packet is lost, that makes 521 + 2 * 521 = 1563 pieces.
pub const RECEIVE_WINDOW: Bytes = Bytes::new(1_250_000);

/// A transport with this scheme, whose flow control does not limit startup.
pub(crate) fn transport(scheme: &Scheme, send: Bytes, receive: Bytes) -> TransportConfig {
    let mut transport = flow_control(send, receive);
    transport.congestion_controller_factory(Arc::new(scheme.factory().clone()));
    transport
}

/// A transport of which `send` bytes may be unacknowledged. `receive` bytes may be unread, on one stream as well as on
/// all of them.
pub(crate) fn flow_control(send: Bytes, receive: Bytes) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let receive = VarInt::from_u64(receive.get()).unwrap_or(VarInt::MAX);
    transport
        .send_window(send.get())
        .receive_window(receive)
        .stream_receive_window(receive)
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_concurrent_uni_streams(STREAMS.into());
    transport
}

/// Buffer of a socket, as far as the system allows: 2,000 first packets of clients, or 6 ms at 5 Gbit/s.
#[cfg(unix)]
const SOCKET_BUFFER: usize = 4 << 20;

/// An endpoint on the network; with a configuration it takes connections.
pub(crate) fn bind(address: SocketAddr, config: Option<noq::ServerConfig>) -> std::io::Result<noq::Endpoint> {
    noq::Endpoint::new(endpoint_of_many(), config, socket(address)?, Arc::new(PreciseRuntime))
}

/// An endpoint whose connection IDs are eight random bytes. By default noq draws three of them, and does not compare
/// that of a Retry with those in use. With 10,000 connections the next packet of one client in 600 then belongs to
/// another connection.
fn endpoint_of_many() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.cid_generator(Arc::new(|| Box::new(RandomConnectionIdGenerator::default())));
    config
}

/// The clients that hear from the path or about it, if any may.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    /// Those that get SCONE packets.
    pub(crate) scone: Option<Arc<scone::Clients>>,
    /// Those for whose connections routers are asked (Quick-Start).
    pub(crate) quick_start: Option<Arc<quick_start::Clients>>,
}

/// A server's endpoint for such clients.
pub(crate) fn bind_for_clients(
    address: SocketAddr,
    config: noq::ServerConfig,
    clients: &Clients,
) -> std::io::Result<noq::Endpoint> {
    let plain = socket(address)?;
    let same = plain.try_clone()?;
    let mut socket = PreciseRuntime.wrap_udp_socket(plain)?;
    if let Some(clients) = clients.quick_start.clone() {
        socket = Box::new(quick_start::ServerSocket::new(socket, same, clients));
    }
    // What it puts before a datagram is in the datagram that the socket below sends.
    if let Some(clients) = clients.scone.clone() {
        socket = Box::new(scone::Socket::of_server(socket, clients));
    }
    with_socket(endpoint_of_many(), Some(config), socket)
}

/// What a client's socket reads of the path, if anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    /// SCONE packets.
    pub(crate) scone: Option<Arc<scone::Servers>>,
    /// Requests to routers (Quick-Start).
    pub(crate) quick_start: Option<Arc<quick_start::Requests>>,
    /// The times of handshakes.
    pub(crate) train: Option<Arc<handshake_train::Trains>>,
}

/// A client's endpoint that reads this.
pub(crate) fn bind_for_servers(address: SocketAddr, read: &Readings) -> std::io::Result<noq::Endpoint> {
    let plain = socket(address)?;
    let same = plain.try_clone()?;
    let (mut endpoint, mut socket) = (EndpointConfig::default(), PreciseRuntime.wrap_udp_socket(plain)?);
    if let Some(trains) = read.train.clone() {
        socket = Box::new(handshake_train::Socket::new(socket, same.try_clone()?, trains));
    }
    if let Some(requests) = read.quick_start.clone() {
        requests.configure(&mut endpoint);
        socket = Box::new(quick_start::ClientSocket::new(socket, same, requests)?);
    }
    // Both know this end's connection IDs by the same number.
    if let Some(servers) = read.scone.clone() {
        servers.configure(&mut endpoint);
        socket = Box::new(scone::Socket::of_client(socket, servers));
    }
    with_socket(endpoint, None, socket)
}

fn with_socket(
    endpoint: EndpointConfig,
    config: Option<noq::ServerConfig>,
    socket: Box<dyn AsyncUdpSocket>,
) -> std::io::Result<noq::Endpoint> {
    noq::Endpoint::new_with_abstract_socket(endpoint, config, socket, Arc::new(PreciseRuntime))
}

fn socket(address: SocketAddr) -> std::io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    enlarge(&socket);
    Ok(socket)
}

/// Lets more packets wait than by default. A system that does not allow this drops some under load, and QUIC repeats
/// them.
#[cfg(unix)]
fn enlarge(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt};
    let _ = setsockopt(socket, sockopt::RcvBuf, &SOCKET_BUFFER);
    let _ = setsockopt(socket, sockopt::SndBuf, &SOCKET_BUFFER);
}

/// Does not change the buffers.
#[cfg(not(unix))]
fn enlarge(_: &std::net::UdpSocket) {}
