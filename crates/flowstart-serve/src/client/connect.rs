//! A client's sockets, and connections over them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flowstart_quic::scone::Servers;
use h3::error::Code;
use noq::VarInt;
use tokio::sync::OnceCell;

use super::{ClientError, Url};
use crate::endpoint::{bind, bind_for_servers};

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
    /// Whether they read SCONE packets.
    scone: bool,
}

/// A socket.
#[derive(Debug)]
struct Bound {
    endpoint: noq::Endpoint,
    /// What paths to it advise, if it reads SCONE packets.
    servers: Option<Arc<Servers>>,
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
    /// What paths to its socket advise, if that reads SCONE packets.
    pub(super) servers: Option<Arc<Servers>>,
}

impl Local {
    /// Sockets for this many connections. They are bound when they are needed.
    pub(super) fn new(connections: u32, scone: bool) -> Self {
        let sockets = connections.div_ceil(PER_SOCKET) as usize;
        let empty = || (0..sockets).map(|_| OnceCell::new()).collect();
        Self { ipv4: empty(), ipv6: empty(), next: AtomicUsize::new(0), scone }
    }

    async fn towards(&self, server: SocketAddr) -> std::io::Result<&Bound> {
        let (any, endpoints): (IpAddr, _) = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), &self.ipv4),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), &self.ipv6),
        };
        let place = self.next.fetch_add(1, Ordering::Relaxed) % endpoints.len().max(1);
        let endpoint = endpoints.get(place).ok_or(std::io::ErrorKind::InvalidInput)?;
        let bound = || async {
            let servers = self.scone.then(|| Arc::new(Servers::new(rand::random())));
            let endpoint = match &servers {
                Some(servers) => bind_for_servers((any, 0).into(), servers.clone()),
                None => bind((any, 0).into(), None),
            };
            endpoint.map(|endpoint| Bound { endpoint, servers })
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
        let mut failure = None;
        for &address in servers {
            let unreachable = |cause: String| ClientError::Unreachable { url: url.uri.to_string(), address, cause };
            match self.connect_to(address, url, config, early).await {
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
        url: &Url,
        config: &noq::ClientConfig,
        early: bool,
    ) -> Result<Connected, String> {
        let Bound { endpoint, servers } = self.towards(server).await.map_err(|error| error.to_string())?;
        if let Some(servers) = servers {
            servers.meet(server);
        }
        let connected = |connection, early| Connected { connection, address: server, early, servers: servers.clone() };
        let connecting = endpoint.connect_with(config.clone(), server, &url.host);
        let mut connecting = connecting.map_err(|error| error.to_string())?;
        if early {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    let outcome = tokio::spawn(async move { (accepted.await, Instant::now()) });
                    return Ok(connected(connection, Some(outcome)));
                }
                Err(full) => connecting = full,
            }
        }
        connecting.await.map(|connection| connected(connection, None)).map_err(|error| error.to_string())
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
