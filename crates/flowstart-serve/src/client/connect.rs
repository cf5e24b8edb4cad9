//! A client's sockets, and connections over them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flowstart_core::units::Rate;
use flowstart_quic::handshake_train::{self, Timed};
use flowstart_quic::{quick_start, scone};
use h3::error::Code;
use noq::VarInt;
use tokio::sync::OnceCell;

use super::{ClientError, Url};
use crate::endpoint::{Readings, bind_for_servers};

/// Connections that share a socket.
const PER_SOCKET: u32 = 32;
/// The longest wait until closing packets have left.
const FAREWELL: Duration = Duration::from_millis(100);

/// This end of all connections: sockets for either family of addresses. A socket's buffer holds a few packets for each
/// of its connections, so their number is limited. Clients of a real server do not share a socket either.
#[derive(Debug)]
pub(super) struct Local {
    ipv4: Vec<OnceCell<Bound>>,
    ipv6: Vec<OnceCell<Bound>>,
    next: AtomicUsize,
    reads: Reads,
}

/// What sockets read of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    /// SCONE packets.
    pub(super) scone: bool,
    /// Requests to routers (Quick-Start).
    pub(super) quick_start: bool,
    /// The times of handshakes.
    pub(super) train: bool,
}

/// A socket.
#[derive(Debug)]
struct Bound {
    endpoint: noq::Endpoint,
    read: Readings,
}

/// Whether the server took early data, and when the handshake was complete.
type Early = tokio::task::JoinHandle<(bool, Instant)>;

/// A connection.
pub(super) struct Connected {
    /// It.
    pub(super) connection: noq::Connection,
    /// The server that answered, or that is going to.
    pub(super) address: SocketAddr,
    /// The fate of early data, if the connection is used before the server has answered.
    pub(super) early: Option<Early>,
    /// What its socket reads of the path.
    pub(super) read: Readings,
    /// The rate at which the server's part of the handshake arrived, if that was measured.
    pub(super) train: Option<Rate>,
}

impl Local {
    /// Sockets for this many connections. They are bound when they are needed.
    pub(super) fn new(connections: u32, reads: Reads) -> Self {
        // A request to routers does not tell whose it is among the connections of a socket, nor does a datagram that is
        // timed.
        let sockets = connections.div_ceil(if reads.quick_start || reads.train { 1 } else { PER_SOCKET }) as usize;
        let empty = || (0..sockets).map(|_| OnceCell::new()).collect();
        Self { ipv4: empty(), ipv6: empty(), next: AtomicUsize::new(0), reads }
    }

    /// The socket in this place among those for the server's family of addresses.
    async fn towards(&self, server: SocketAddr, place: usize) -> std::io::Result<&Bound> {
        let (any, endpoints): (IpAddr, _) = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), &self.ipv4),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), &self.ipv6),
        };
        let endpoint = endpoints.get(place % endpoints.len().max(1)).ok_or(std::io::ErrorKind::InvalidInput)?;
        let bound = || async {
            let key = rand::random();
            let read = Readings {
                scone: self.reads.scone.then(|| Arc::new(scone::Servers::new(key))),
                quick_start: self.reads.quick_start.then(|| Arc::new(quick_start::Requests::new(key))),
                train: self.reads.train.then(Arc::<handshake_train::Trains>::default),
            };
            bind_for_servers((any, 0).into(), &read).map(|endpoint| Bound { endpoint, read })
        };
        endpoint.get_or_try_init(bound).await
    }

    /// A connection to the first address that answers. With `early` it does not wait for the answer if the session is
    /// resumed.
    pub(super) async fn connect(
        &self,
        url: &Url,
        servers: &[SocketAddr],
        config: &noq::ClientConfig,
        early: bool,
    ) -> Result<Connected, ClientError> {
        // A connection has one place, however many addresses are tried.
        let (mut failure, place) = (None, self.next.fetch_add(1, Ordering::Relaxed));
        for &address in servers {
            let unreachable = |cause: String| ClientError::Unreachable { url: url.uri.to_string(), address, cause };
            match self.connect_to(address, place, url, config, early).await {
                Ok(connected) => return Ok(connected),
                Err(cause) => failure = failure.or(Some(unreachable(cause))),
            }
        }
        let nowhere = || ClientError::Host { host: url.host.clone(), cause: "it has no address".into() };
        Err(failure.unwrap_or_else(nowhere))
    }

    async fn connect_to(
        &self,
        server: SocketAddr,
        place: usize,
        url: &Url,
        config: &noq::ClientConfig,
        early: bool,
    ) -> Result<Connected, String> {
        let Bound { endpoint, read } = self.towards(server, place).await.map_err(|error| error.to_string())?;
        if let Some(servers) = &read.scone {
            servers.meet(server);
        }
        if let Some(requests) = &read.quick_start {
            requests.meet(server);
        }
        let timed = read.train.as_ref().map(|trains| trains.meet(server));
        let connected =
            |connection, early, train| Connected { connection, address: server, early, read: read.clone(), train };
        let connecting = endpoint.connect_with(config.clone(), server, &url.host);
        let mut connecting = connecting.map_err(|error| error.to_string())?;
        if early {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    let outcome = tokio::spawn(async move { (accepted.await, Instant::now()) });
                    // The request leaves before there is anything to report.
                    drop(timed);
                    return Ok(connected(connection, Some(outcome), None));
                }
                Err(full) => connecting = full,
            }
        }
        let outcome = connecting.await;
        let train = timed.and_then(Timed::stop);
        outcome.map(|connection| connected(connection, None, train)).map_err(|error| error.to_string())
    }

    /// Lets closing packets leave, without waiting for their arrival.
    pub(super) async fn close(&self) {
        let idle = [&self.ipv4, &self.ipv6]
            .into_iter()
            .flatten()
            .filter_map(OnceCell::get)
            .map(|bound| bound.endpoint.wait_idle());
        drop(tokio::time::timeout(FAREWELL, futures_util::future::join_all(idle)).await);
    }
}

/// Ends a connection that is not needed.
pub(super) fn close(connection: &noq::Connection) {
    connection.close(VarInt::from_u64(Code::H3_NO_ERROR.value()).unwrap_or_default(), b"");
}
