//! A client's socket, which looks at the headers of datagrams until a request has come.

use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::noq::udp::RecvMeta;
use ::noq::{AsyncUdpSocket, UdpSender};
use flowstart_datagram::{peek, show_headers};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::peers::Requests;
use crate::invariants::MAX_ID;

/// Bytes of a datagram that tell whose it is: a long header up to its second connection ID.
const BEGINNING: usize = 1 + 4 + 2 * (1 + MAX_ID);

/// A runtime's socket that reads requests, for `noq::Endpoint::new_with_abstract_socket`. While a request may come,
/// datagrams are taken one by one.
pub struct ClientSocket {
    inner: Box<dyn AsyncUdpSocket>,
    same: UdpSocket,
    requests: Arc<Requests>,
    shows_headers: bool,
}

impl fmt::Debug for ClientSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSocket").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl ClientSocket {
    /// Reads these requests. `same` is a clone of what `inner` wraps. The caller is in the context of a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::Unsupported`] where it shows no headers.
    pub fn new(inner: Box<dyn AsyncUdpSocket>, same: std::net::UdpSocket, requests: Arc<Requests>) -> io::Result<Self> {
        show_headers(&same, true)?;
        same.set_nonblocking(true)?;
        Ok(Self { inner, same: UdpSocket::from_std(same)?, requests, shows_headers: true })
    }

    /// Whether datagrams have to be looked at. Headers are shown only then, because they cost something for each.
    fn looks(&mut self) -> bool {
        let wanted = self.requests.may_come();
        if self.shows_headers != wanted && show_headers(&self.same, wanted).is_ok() {
            self.shows_headers = wanted;
        }
        wanted && self.shows_headers
    }

    /// Takes one datagram, or what arrived as one, after a look at its header. Only what `inner` has taken counts:
    /// otherwise the next look is at the same one.
    fn poll_recv_one(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut beginning = [0; BEGINNING];
        let seen = loop {
            ready!(self.same.poll_recv_ready(context))?;
            match self.same.try_io(Interest::READABLE, || peek(&self.same, &mut beginning)) {
                Ok(seen) => break seen,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A message of the network about something that was sent: the owner of the socket knows what to do.
                Err(_) => return self.inner.poll_recv(context, bufs, meta),
            }
        };
        let count = ready!(self.inner.poll_recv(context, bufs, meta))?;
        self.requests.receive(seen.from, &beginning[..seen.length], seen.options(), seen.ttl);
        Poll::Ready(Ok(count))
    }
}

impl AsyncUdpSocket for ClientSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        self.inner.create_sender()
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if !bufs.is_empty() && !meta.is_empty() && self.looks() {
            return self.poll_recv_one(context, &mut bufs[..1], &mut meta[..1]);
        }
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
