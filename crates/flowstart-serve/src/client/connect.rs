//! A client's sockets, and connections over them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use h3::error::Code;
use noq::VarInt;
use tokio::sync::OnceCell;

use super::{ClientError, Url};
use crate::endpoint::bind;

/// Connections that share a socket.
const PER_SOCKET: u32 = 32;
/// The longest wait until closing packets have left.
const FAREWELL: Duration = Duration::from_millis(100);

/// This end of all connections: sockets for either family of addresses. A socket's buffer holds a few packets for each
/// of its connections, so their number is limited. Clients of a real server do not share a socket either.
#[derive(Debug)]
pub(super) struct Local {
    ipv4: Vec<OnceCell<noq::Endpoint>>,
    ipv6: Vec<OnceCell<noq::Endpoint>>,
    next: AtomicUsize,
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
}

impl Local {
    /// Sockets for this many connections. They are bound when they are needed.
    pub(super) fn new(connections: u32) -> Self {
        let sockets = connections.div_ceil(PER_SOCKET) as usize;
        let empty = || (0..sockets).map(|_| OnceCell::new()).collect();
        Self { ipv4: empty(), ipv6: empty(), next: AtomicUsize::new(0) }
    }

    async fn towards(&self, server: SocketAddr) -> std::io::Result<&noq::Endpoint> {
        let (any, endpoints): (IpAddr, _) = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), &self.ipv4),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), &self.ipv6),
        };
        let place = self.next.fetch_add(1, Ordering::Relaxed) % endpoints.len().max(1);
        let endpoint = endpoints.get(place).ok_or(std::io::ErrorKind::InvalidInput)?;
        endpoint.get_or_try_init(|| async { bind((any, 0).into(), None) }).await
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
                Ok((connection, early)) => return Ok(Connected { connection, address, early }),
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
    ) -> Result<(noq::Connection, Option<Early>), String> {
        let endpoint = self.towards(server).await.map_err(|error| error.to_string())?;
        let connecting = endpoint.connect_with(config.clone(), server, &url.host);
        let mut connecting = connecting.map_err(|error| error.to_string())?;
        if early {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    let outcome = tokio::spawn(async move { (accepted.await, Instant::now()) });
                    return Ok((connection, Some(outcome)));
                }
                Err(full) => connecting = full,
            }
        }
        connecting.await.map(|connection| (connection, None)).map_err(|error| error.to_string())
    }

    /// Lets closing packets leave, without waiting for their arrival.
    pub(super) async fn close(&self) {
        let idle =
            [&self.ipv4, &self.ipv6].into_iter().flatten().filter_map(OnceCell::get).map(noq::Endpoint::wait_idle);
        drop(tokio::time::timeout(FAREWELL, futures_util::future::join_all(idle)).await);
    }
}

/// Ends a connection that is not needed.
pub(super) fn close(connection: &noq::Connection) {
    connection.close(VarInt::from_u64(Code::H3_NO_ERROR.value()).unwrap_or_default(), b"");
}
