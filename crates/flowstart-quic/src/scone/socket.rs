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

use super::batch::strip;
use super::peers::{Clients, Servers, since};
use crate::invariants::{connection_ids, is_long, is_version_negotiation};

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
    /// Datagrams of the last batch that do not fit behind each other without their SCONE packets, as the parts of a
    /// batch have one size. They are handed out before more is read.
    held: VecDeque<(RecvMeta, Vec<u8>)>,
}

impl Socket {
    /// A server's, which sends SCONE packets to these clients.
    pub fn of_server(inner: Box<dyn AsyncUdpSocket>, clients: Arc<Clients>) -> Self {
        Self { inner, end: End::Server(clients), held: VecDeque::new() }
    }

    /// A client's, which reads what comes from these servers. Its datagrams at the beginning of a flow say so to
    /// elements of the path ("Indicating Support on New Flows").
    pub fn of_client(inner: Box<dyn AsyncUdpSocket>, servers: Arc<Servers>) -> Self {
        Self { inner, end: End::Client(servers), held: VecDeque::new() }
    }

    /// Removes the SCONE packets of a batch of datagrams.
    fn strip(&mut self, buffer: &mut [u8], meta: &mut RecvMeta) {
        let (whole, end) = (meta.len.min(buffer.len()), &self.end);
        let left = strip(&mut buffer[..whole], meta.stride, |datagram| end.receive(meta.addr, datagram));
        for bytes in left.alone {
            let mut alone = *meta;
            (alone.len, alone.stride) = (bytes.len(), bytes.len());
            self.held.push_back((alone, bytes));
        }
        (meta.len, meta.stride) = (left.length, left.stride);
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
        match &self.end {
            End::Server(_) => (self.reader.is_some() || !self.settled) && self.offers.is_due(now),
            // In every datagram until the server answers. Later ones may end with a packet without a length, which two
            // bytes behind it would damage.
            End::Client(servers) => self.to.is_none_or(|to| servers.awaits(to)),
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::sync::Mutex;
    use std::task::Waker;

    use flowstart_core::scone::wire::RateSignal;
    use noq_proto::{ConnectionIdGenerator, HashedConnectionIdGenerator};

    use super::super::datagram::tests::{announced, long, short};
    use super::*;

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    const OTHER: [u8; 8] = [9; 8];

    /// What left, and with which size of its segments.
    type Left = Arc<Mutex<Vec<(Vec<u8>, Option<usize>)>>>;

    /// A socket that takes batches, of whose sendings every second one has to wait.
    #[derive(Clone, Debug, Default)]
    struct Fake {
        left: Left,
        waits: bool,
        comes: Option<(Vec<u8>, usize)>,
    }

    impl UdpSender for Fake {
        fn poll_send(mut self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.waits = !self.waits;
            if self.waits {
                return Poll::Pending;
            }
            self.left.lock().unwrap().push((transmit.contents.to_vec(), transmit.segment_size));
            Poll::Ready(Ok(()))
        }

        fn max_transmit_segments(&self) -> NonZeroUsize {
            NonZeroUsize::new(64).unwrap()
        }
    }

    impl AsyncUdpSocket for Fake {
        fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
            Box::pin(self.clone())
        }

        fn poll_recv(
            &mut self,
            _: &mut Context<'_>,
            bufs: &mut [IoSliceMut<'_>],
            meta: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            let Some((bytes, stride)) = self.comes.take() else { return Poll::Pending };
            bufs[0][..bytes.len()].copy_from_slice(&bytes);
            (meta[0].addr, meta[0].len, meta[0].stride) = (address(1), bytes.len(), stride);
            Poll::Ready(Ok(1))
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(address(9))
        }
    }

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    /// Sends it, as noq does: again until it has left.
    fn send(sender: &mut Pin<Box<dyn UdpSender>>, port: u16, contents: &[u8], segment_size: Option<usize>) {
        let transmit = Transmit { destination: address(port), ecn: None, contents, segment_size, src_ip: None };
        let mut context = Context::from_waker(Waker::noop());
        assert!(sender.as_mut().poll_send(&transmit, &mut context).is_pending());
        assert!(sender.as_mut().poll_send(&transmit, &mut context).is_ready());
    }

    fn of_server() -> (Pin<Box<dyn UdpSender>>, Arc<Clients>, Left) {
        let (fake, clients) = (Fake::default(), Arc::<Clients>::default());
        let left = fake.left.clone();
        (Socket::of_server(Box::new(fake), clients.clone()).create_sender(), clients, left)
    }

    #[test]
    fn the_first_single_datagrams_of_a_reader_begin_with_a_scone_packet() {
        let (mut sender, clients, left) = of_server();
        let _reader = clients.admit(address(1), &ID).unwrap();
        let (long, short) = (long(&ID, &OTHER), short(&ID));
        let batch = [&short[..], &short, &short[..50]].concat();
        let large = [&short[..], &[0; 1200]].concat();
        assert_eq!(sender.max_transmit_segments().get(), 1, "a single datagram is wanted");
        send(&mut sender, 1, &long, None);
        // A batch and what leaves no room are as they were, and the SCONE packet waits for the next.
        send(&mut sender, 1, &batch, Some(short.len()));
        send(&mut sender, 1, &large, None);
        assert_eq!(sender.max_transmit_segments().get(), 1);
        send(&mut sender, 1, &short, Some(short.len()));
        send(&mut sender, 1, &short, None);
        assert_eq!(sender.max_transmit_segments().get(), 64, "three are enough for 20 s");
        send(&mut sender, 1, &batch, Some(short.len()));
        send(&mut sender, 1, &short, None);
        let unknown = |packet: &[u8]| (announced(packet, 127).0, None);
        let expected = [
            unknown(&long),
            (batch.clone(), Some(short.len())),
            (large, None),
            unknown(&short),
            unknown(&short),
            (batch, Some(short.len())),
            (short.clone(), None),
        ];
        assert_eq!((clients.sent(), &left.lock().unwrap()[..]), (3, &expected[..]));
        // Another path is another flow.
        send(&mut sender, 2, &short, None);
        assert_eq!((clients.sent(), left.lock().unwrap().last().unwrap()), (4, &unknown(&short)));
    }

    #[test]
    fn who_reads_no_scone_packets_gets_none() {
        let (mut sender, clients, left) = of_server();
        let _of_another_address = clients.admit(address(2), &ID).unwrap();
        let negotiation = [&[0x80, 0, 0, 0, 0][..], &long(&ID, &OTHER)[5..]].concat();
        let packets = [long(&ID, &OTHER), negotiation.clone(), short(&ID), short(&ID)];
        packets.iter().for_each(|packet| send(&mut sender, 1, packet, None));
        send(&mut sender, 2, &negotiation, None);
        assert_eq!(sender.max_transmit_segments().get(), 64);
        let plain: Vec<_> = packets.into_iter().chain([negotiation]).map(|packet| (packet, None)).collect();
        assert_eq!((clients.sent(), &*left.lock().unwrap()), (0, &plain));
    }

    #[test]
    fn a_client_says_at_the_beginning_of_a_flow_that_it_reads_scone_packets() {
        let fake = Fake::default();
        let (left, servers) = (fake.left.clone(), Arc::new(Servers::new(5)));
        servers.meet(address(1));
        let mut sender = Socket::of_client(Box::new(fake), servers.clone()).create_sender();
        for _ in 0..5 {
            send(&mut sender, 1, &long(&OTHER, &ID), None);
        }
        assert_eq!(sender.max_transmit_segments().get(), 1);
        servers.receive(address(2), &long(&ID, &OTHER));
        send(&mut sender, 1, &long(&OTHER, &ID), None);
        // The server answers. A long header may now have a short one behind it.
        servers.receive(address(1), &long(&ID, &OTHER));
        assert_eq!(sender.max_transmit_segments().get(), 64);
        for packet in [[long(&OTHER, &ID), short(&OTHER)].concat(), short(&OTHER)] {
            send(&mut sender, 1, &packet, None);
        }
        let indicated = [true, true, true, true, true, true, false, false];
        assert!(left.lock().unwrap().iter().map(|(sent, _)| sent.ends_with(&INDICATION)).eq(indicated));
    }

    /// What a client's stack gets of a batch, in the order in which it gets it.
    fn received(batch: &[Vec<u8>], servers: &Arc<Servers>) -> Vec<Vec<u8>> {
        let comes = Some((batch.concat(), batch[0].len()));
        let mut socket = Socket::of_client(Box::new(Fake { comes, ..Fake::default() }), servers.clone());
        let mut context = Context::from_waker(Waker::noop());
        let (mut datagrams, mut buffers) = (Vec::new(), [vec![0; 4000], vec![0; 4000]]);
        loop {
            let mut meta = [RecvMeta::default(); 2];
            let mut bufs = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
            let Poll::Ready(count) = socket.poll_recv(&mut context, &mut bufs, &mut meta) else { return datagrams };
            for (buffer, meta) in bufs.iter().zip(meta).take(count.unwrap()) {
                datagrams.extend(buffer[..meta.len].chunks(meta.stride).map(<[u8]>::to_vec));
            }
        }
    }

    #[test]
    fn a_batch_that_comes_loses_its_scone_packets_and_keeps_its_datagrams() {
        let servers = Arc::new(Servers::new(5));
        servers.meet(address(1));
        let id = HashedConnectionIdGenerator::from_key(5).generate_cid();
        let packet = |size: usize| [&short(&id)[..], &vec![7; size]].concat();
        // With the SCONE packets all have one size, without them the third is larger than the first.
        let plain = [packet(100), packet(100), packet(115), packet(100), packet(20)];
        let with = |packet: &Vec<u8>| announced(packet, 40).0;
        let batch = [with(&plain[0]), with(&plain[1]), plain[2].clone(), with(&plain[3]), plain[4].clone()];
        assert!(batch[..4].iter().all(|datagram| datagram.len() == batch[0].len()));
        assert_eq!(received(&batch, &servers), plain);
        assert_eq!((servers.read(), servers.signal(address(1))), (3, RateSignal::from_bits(40)));
        let untouched = [packet(100), packet(100), packet(3)];
        assert_eq!(received(&untouched, &servers), untouched);
        // With a shorter one in the middle, only the last of a batch may be shorter.
        let plain = [packet(100), packet(85), packet(100)];
        assert_eq!(received(&[plain[0].clone(), with(&plain[1]), plain[2].clone()], &servers), plain);
    }
}
