//! A socket around noq's own, which puts SCONE packets before datagrams or removes them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use ::noq::udp::{RecvMeta, Transmit};
use ::noq::{AsyncUdpSocket, UdpSender};
use flowstart_core::scone::endpoint::Offers;
use flowstart_core::scone::wire::{INDICATION, SconePacket};
use flowstart_core::time::Timestamp;

use super::datagram::{connection_ids, is_long, is_version_negotiation};
use super::peers::{Clients, Servers, since};

/// Largest datagram with a SCONE packet: what every path of IPv6 carries (RFC 8200, section 5), without headers.
const LARGEST: usize = 1280 - 48;

/// Which end of connections the socket is.
#[derive(Clone, Debug)]
enum End {
    Server(Arc<Clients>),
    Client(Arc<Servers>),
}

impl End {
    /// A datagram has come; how many bytes of it are not for the stack.
    fn receive(&self, from: SocketAddr, datagram: &[u8]) -> usize {
        match self {
            Self::Server(clients) => clients.receive(datagram),
            Self::Client(servers) => servers.receive(from, datagram),
        }
    }
}

/// A runtime's socket that speaks SCONE, for `noq::Endpoint::new_with_abstract_socket`.
#[derive(Debug)]
pub struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    end: End,
    /// Datagrams of the last batch that do not fit behind each other without their SCONE packets, as the parts of a batch
    /// have one size. They are handed out before more is read.
    held: VecDeque<(RecvMeta, Vec<u8>)>,
}

impl Socket {
    /// A server's, which sends SCONE packets to these clients.
    pub fn of_server(inner: Box<dyn AsyncUdpSocket>, clients: Arc<Clients>) -> Self {
        Self { inner, end: End::Server(clients), held: VecDeque::new() }
    }

    /// A client's, which reads what comes from these servers. Its datagrams at the beginning of a flow say so to elements
    /// of the path ("Indicating Support on New Flows").
    pub fn of_client(inner: Box<dyn AsyncUdpSocket>, servers: Arc<Servers>) -> Self {
        Self { inner, end: End::Client(servers), held: VecDeque::new() }
    }

    /// Removes the SCONE packets of a batch of datagrams.
    fn strip(&mut self, buffer: &mut [u8], meta: &mut RecvMeta) {
        let (whole, stride) = (meta.len.min(buffer.len()), meta.stride.max(1));
        let (mut read, mut written, mut holds) = (0, 0, false);
        // Size of the datagrams that stay, and whether one that is shorter has ended them.
        let (mut size, mut ended) = (None, false);
        while read < whole {
            let end = (read + stride).min(whole);
            let start = read + self.end.receive(meta.addr, &buffer[read..end]);
            let length = end - start;
            read = end;
            let first = *size.get_or_insert(length);
            if holds || ended || length > first {
                holds = true;
                let mut alone = *meta;
                (alone.len, alone.stride) = (length, length);
                self.held.push_back((alone, buffer[start..end].to_vec()));
                continue;
            }
            ended = length < first;
            if start != written {
                buffer.copy_within(start..end, written);
            }
            written += length;
        }
        if let Some(size) = size {
            (meta.len, meta.stride) = (written, size);
        }
    }

    /// Hands out what was held back.
    fn hand_out(&mut self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let Some((held, bytes)) = self.held.pop_front() else { break };
            // It came in a buffer of this size.
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            *meta = held;
            (meta.len, meta.stride) = (length, length);
            count += 1;
        }
        count
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            end: self.end.clone(),
            began: Instant::now(),
            to: None,
            offers: Offers::default(),
            reader: None,
            settled: false,
            datagram: Vec::new(),
        })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if !self.held.is_empty() {
            return Poll::Ready(Ok(self.hand_out(bufs, meta)));
        }
        let count = ready!(self.inner.poll_recv(context, bufs, meta))?;
        for (buffer, meta) in bufs.iter_mut().zip(meta).take(count) {
            self.strip(buffer, meta);
        }
        Poll::Ready(Ok(count))
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

/// What a connection sends through. noq makes one for each, so this is where the state of a flow is.
#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    end: End,
    began: Instant,
    /// Where the flow goes; another address is another flow.
    to: Option<SocketAddr>,
    offers: Offers,
    /// Bytes of the connection IDs of a client that reads SCONE packets.
    reader: Option<usize>,
    /// The handshake is over. Who is no reader by then is none.
    settled: bool,
    /// The datagram that leaves, to be used again.
    datagram: Vec<u8>,
}

impl Sender {
    /// Whether a single datagram is wanted now.
    fn is_due(&self, now: Timestamp) -> bool {
        let may = match self.end {
            End::Server(_) => self.reader.is_some() || !self.settled,
            End::Client(_) => !self.settled,
        };
        may && self.offers.is_due(now)
    }

    /// Makes the datagram that leaves in the place of `transmit`, if it is to be another one.
    fn extend(&mut self, transmit: &Transmit<'_>, now: Timestamp) -> bool {
        if self.to != Some(transmit.destination) {
            self.to = Some(transmit.destination);
            self.offers = Offers::default();
        }
        let contents = transmit.contents;
        let is_batch = transmit.segment_size.is_some_and(|size| size < contents.len());
        let is_due = self.is_due(now) && !is_batch && !is_version_negotiation(contents);
        self.settled |= !is_long(contents);
        if !is_due || contents.len() > LARGEST {
            return false;
        }
        self.datagram.clear();
        match &self.end {
            End::Client(_) => {
                if !is_long(contents) {
                    return false;
                }
                self.datagram.extend_from_slice(contents);
                self.datagram.extend_from_slice(&INDICATION);
            }
            End::Server(clients) => {
                let Some((destination, source)) = connection_ids(contents, self.reader.unwrap_or(0)) else {
                    return false;
                };
                if self.reader.is_none() && is_long(contents) && clients.reads(transmit.destination, destination) {
                    self.reader = Some(destination.len());
                }
                let Some(packet) = self.reader.and_then(|_| SconePacket::new(destination, source).ok()) else {
                    return false;
                };
                packet.emit(&mut self.datagram);
                self.datagram.extend_from_slice(contents);
            }
        }
        self.datagram.len() <= LARGEST
    }
}

impl UdpSender for Sender {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let now = since(this.began);
        if !this.extend(transmit, now) {
            return this.inner.as_mut().poll_send(transmit, context);
        }
        let Transmit { destination, ecn, src_ip, .. } = *transmit;
        let extended = Transmit { destination, ecn, contents: &this.datagram, segment_size: None, src_ip };
        let sent = this.inner.as_mut().poll_send(&extended, context);
        if sent.is_ready() {
            this.offers.take(now);
            if let End::Server(clients) = &this.end {
                clients.count_sent();
            }
        }
        sent
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        if self.is_due(since(self.began)) { NonZeroUsize::MIN } else { self.inner.max_transmit_segments() }
    }
}
