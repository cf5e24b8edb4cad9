//! What the QUIC commands have in common: schemes as users write them, windows of flow control, quantities.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_lab::spec;
use noq::{TransportConfig, VarInt};

use crate::failure::Failure;
use crate::server::policy::Scheme;

/// HTTP/3's protocol name (RFC 9114, section 3.1).
pub(crate) const H3: &[u8] = b"h3";
/// Streams that a peer may have open at a time (RFC 9114, section 6.1, wants at least 100).
const STREAMS: u32 = 128;

/// The default of --receive-window, and noq's own. What waits behind a gap in a stream may consist of 2048 pieces; of more noq
/// joins the small ones, and ends the connection if more than 1024 are left. These are at most 1042 packets of 1200 bytes;
/// repeated packets are cut anew, so each that was lost comes in two pieces. When every second one is lost, that makes
/// 521 + 2 * 521 = 1563.
pub(crate) const RECEIVE_WINDOW: Bytes = Bytes::new(1_250_000);

/// How much may arrive before it is read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WindowOptions {
    /// What the peer may send before it is read. The default is enough for 100 Mbit/s times 100 ms; faster or longer paths
    /// need more to be filled. But with more, a startup that loses every second packet of a large window can make noq, the
    /// QUIC stack, end the connection, because too many pieces wait behind gaps.
    #[arg(long, value_name = "BYTES", default_value_t = RECEIVE_WINDOW)]
    receive_window: Bytes,
}

impl WindowOptions {
    /// The window.
    pub(crate) fn receive(self) -> Result<Bytes, Failure> {
        if (10_000..=4_000_000_000).contains(&self.receive_window.get()) {
            return Ok(self.receive_window);
        }
        Err(Failure::Input(format!("--receive-window `{}`: use 10KB to 4GB", self.receive_window)))
    }
}

/// What a connection that broke is told of with; noq's own words say nothing of the window.
pub(crate) fn advised(cause: &dyn std::fmt::Display) -> String {
    let cause = cause.to_string();
    let advice =
        if cause.contains("too many gaps") { "; use a smaller --receive-window; the default is safe" } else { "" };
    cause + advice
}

/// How connections begin and go on.
#[derive(Debug, Args)]
pub(crate) struct SchemeOptions {
    /// The startup scheme, such as blitzstart:estimate=1.5; `flowstart list schemes`.
    #[arg(long, value_name = "SPEC", default_value = "slow-start")]
    pub(crate) startup: String,
    /// The congestion avoidance after it; `flowstart list avoidance`.
    #[arg(long, value_name = "SPEC", default_value = "cubic")]
    pub(crate) avoidance: String,
}

impl SchemeOptions {
    /// The congestion avoidance.
    pub(crate) fn avoidance(&self) -> Result<AvoidanceConfig, Failure> {
        let base = AvoidanceConfig::Cubic(cubic::Config::default());
        Ok(spec::avoidance("avoidance", &self.avoidance, &base)?.value)
    }

    /// The scheme that both make.
    pub(crate) fn scheme(&self) -> Result<Scheme, Failure> {
        scheme("startup", &self.startup, &self.avoidance()?)
    }
}

/// The scheme that `text` names, in the option `field`.
pub(crate) fn scheme(field: &str, text: &str, avoidance: &AvoidanceConfig) -> Result<Scheme, Failure> {
    let startup = spec::scheme(field, text, &StartupConfig::SlowStart(slow_start::Config::default()))?.value;
    if let StartupConfig::QuickStart(_) = startup {
        return Err(Failure::Input(format!(
            "--{field} `{text}`: on sockets nobody asks the routers: the request is an option of IP, which takes privileges \
             that these commands do not have; allowed are the other schemes, or flowstart compare --transport quic in \
             simulated time"
        )));
    }
    Scheme::new(text, startup, avoidance.clone())
        .map_err(|error| Failure::Input(format!("--{field} `{text}`: {error}")))
}

/// Slow start as it is without anything of this program.
pub(crate) fn plain(avoidance: &AvoidanceConfig) -> Result<Scheme, Failure> {
    scheme("avoidance", "slow-start", avoidance)
        .or_else(|_| scheme("avoidance", "slow-start", &AvoidanceConfig::Cubic(cubic::Config::default())))
}

/// A transport whose flow control does not limit startup: `send` bytes may be unacknowledged, and `receive` bytes
/// unread, on one stream as well as on all of them.
pub(crate) fn transport(scheme: &Scheme, send: Bytes, receive: Bytes) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let receive = VarInt::from_u64(receive.get()).unwrap_or(VarInt::MAX);
    transport
        .send_window(send.get())
        .receive_window(receive)
        .stream_receive_window(receive)
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_concurrent_uni_streams(STREAMS.into())
        .congestion_controller_factory(Arc::new(scheme.factory.clone()));
    transport
}

/// An address and a port.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "use an address and a port such as 127.0.0.1:4433 or [::]:4433")
}

/// A time of the operating system's clock.
pub(crate) fn std_time(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

/// Buffer of a socket, as far as the system allows: 2,000 first packets of clients, or 6 ms at 5 Gbit/s.
#[cfg(unix)]
const SOCKET_BUFFER: usize = 4 << 20;

/// An end of this program on the network.
pub(crate) fn bind(address: SocketAddr, config: Option<noq::ServerConfig>) -> std::io::Result<noq::Endpoint> {
    let socket = std::net::UdpSocket::bind(address)?;
    enlarge(&socket);
    noq::Endpoint::new(noq::EndpointConfig::default(), config, socket, Arc::new(noq::TokioRuntime))
}

/// Lets more packets wait than by default. A system that does not allow it drops some under load, and QUIC repeats them.
#[cfg(unix)]
fn enlarge(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt};
    let _ = setsockopt(socket, sockopt::RcvBuf, &SOCKET_BUFFER);
    let _ = setsockopt(socket, sockopt::SndBuf, &SOCKET_BUFFER);
}

/// Leaves the buffers as they are.
#[cfg(not(unix))]
fn enlarge(_: &std::net::UdpSocket) {}
