//! A server's socket, whose datagrams carry requests and reports.

use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::noq::udp::{RecvMeta, Transmit};
use ::noq::{AsyncUdpSocket, UdpSender};
use flowstart_datagram::{DEFAULT_TTL, Header, ipv4, send};

use super::peers::{Clients, Waiting};
use crate::invariants::{connection_ids, is_long, is_version_negotiation};

/// A runtime's socket that sends options, for `noq::Endpoint::new_with_abstract_socket`.
pub struct ServerSocket {
    inner: Box<dyn AsyncUdpSocket>,
    same: Arc<UdpSocket>,
    clients: Arc<Clients>,
}

impl fmt::Debug for ServerSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSocket").field("same", &self.same).finish_non_exhaustive()
    }
}

impl ServerSocket {
    /// Sends for these clients. `same` is a clone of what `inner` wraps.
    pub fn new(inner: Box<dyn AsyncUdpSocket>, same: UdpSocket, clients: Arc<Clients>) -> Self {
        Self { inner, same: Arc::new(same), clients }
    }
}

impl AsyncUdpSocket for ServerSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            same: Arc::clone(&self.same),
            clients: Arc::clone(&self.clients),
            waiting: None,
            settled: false,
        })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(context, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// What a connection sends through. noq makes one for each.
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    same: Arc<UdpSocket>,
    clients: Arc<Clients>,
    /// Where the connection's options wait, if it asks.
    waiting: Option<Arc<Waiting>>,
    /// The handshake is over. Who does not ask by then never does.
    settled: bool,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Sender {
    /// Sends it with the option that waits; whether it has left.
    fn send_with_option(&mut self, transmit: &Transmit<'_>) -> bool {
        let Transmit { destination, ecn, contents, segment_size, src_ip } = *transmit;
        if self.waiting.is_none() && !self.settled && is_long(contents) && !is_version_negotiation(contents) {
            let ids = connection_ids(contents, 0);
            self.waiting = ids.and_then(|(client, _)| self.clients.waiting(destination, client));
        }
        self.settled |= !is_long(contents);
        let is_batch = segment_size.is_some_and(|size| size < contents.len());
        let Some(waiting) = self.waiting.as_ref().filter(|waiting| waiting.to == destination && !is_batch) else {
            return false;
        };
        let Some(option) = waiting.take() else { return false };
        let tos = ecn.map_or(0, |ecn| ecn as u8);
        let header = Header { options: &option, ttl: DEFAULT_TTL, tos, source: src_ip.and_then(ipv4) };
        match send(&self.same, contents, Some(destination), &header) {
            Ok(()) => {
                self.clients.count_sent(&option);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // The datagram does not wait for the option.
                waiting.put_back(option);
                false
            }
            Err(_) => {
                self.clients.count_unsent();
                false
            }
        }
    }
}

impl UdpSender for Sender {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.send_with_option(transmit) {
            return Poll::Ready(Ok(()));
        }
        this.inner.as_mut().poll_send(transmit, context)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        let single = self.waiting.as_ref().map_or(!self.settled, |waiting| waiting.is_some());
        if single { NonZeroUsize::MIN } else { self.inner.max_transmit_segments() }
    }
}
