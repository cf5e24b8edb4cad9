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
use flowstart_datagram::{DEFAULT_TTL, Header, send};

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
        if self.settled && self.waiting.as_ref().is_some_and(|waiting| waiting.to != destination) {
            // The connection has moved, and the option is about the path that it has left.
            if self.waiting.take().is_some_and(|waiting| waiting.take().is_some()) {
                self.clients.count_unsent();
            }
        }
        let is_batch = segment_size.is_some_and(|size| size < contents.len());
        let Some(waiting) = self.waiting.as_ref().filter(|waiting| waiting.to == destination && !is_batch) else {
            return false;
        };
        let Some(option) = waiting.take() else { return false };
        let tos = ecn.map_or(0, |ecn| ecn as u8);
        let header = Header { options: &option, ttl: DEFAULT_TTL, tos, source: src_ip };
        match send(&self.same, contents, Some(destination), &header) {
            Ok(()) => {
                self.clients.count_sent(destination, &option);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::sync::Mutex;
    use std::task::Waker;

    use flowstart_core::quick_start::host::{Known, respond};
    use flowstart_core::quick_start::wire::{IpOption, IpVersion};
    use flowstart_core::rng::Substream;
    use flowstart_core::startup::quick_start::Config;
    use flowstart_datagram::{receive, show_headers};

    use super::super::try_asking;
    use super::*;

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    /// A socket that takes batches and keeps what it is given.
    #[derive(Clone, Debug, Default)]
    struct Fake(Arc<Mutex<Vec<Vec<u8>>>>);

    impl UdpSender for Fake {
        fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.lock().unwrap().push(transmit.contents.to_vec());
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
            _: &mut [IoSliceMut<'_>],
            _: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Err(ErrorKind::Unsupported.into())
        }
    }

    fn send(sender: &mut Pin<Box<dyn UdpSender>>, destination: SocketAddr, contents: &[u8], segment: Option<usize>) {
        let transmit = Transmit { destination, ecn: None, contents, segment_size: segment, src_ip: None };
        let sent = sender.as_mut().poll_send(&transmit, &mut Context::from_waker(Waker::noop()));
        assert!(matches!(sent, Poll::Ready(Ok(()))));
    }

    /// A packet with a long header, of this version, to the client with this ID.
    fn long(version: u8, id: &[u8]) -> Vec<u8> {
        [&[0xc3, 0, 0, 0, version, id.len() as u8], id, &[0], &[9; 100]].concat()
    }

    #[test]
    fn the_first_single_datagram_of_a_connection_has_the_request_and_a_later_one_the_report() {
        for own in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            the_first_has_the_request(own);
        }
    }

    fn the_first_has_the_request(own: IpAddr) {
        let Ok(client) = UdpSocket::bind((own, 0)) else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which needs {own}");
            println!("skipped: this host has no {own}");
            return;
        };
        let server = UdpSocket::bind((own, 0)).unwrap();
        let (to, other) = (client.local_addr().unwrap(), SocketAddr::new(own, 9));
        if let Err(problem) = try_asking(to.ip()) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test: {problem}");
            println!("skipped: {problem}");
            return;
        }
        show_headers(&client, true).unwrap();
        let (fake, clients) = (Fake::default(), Arc::<Clients>::default());
        let mut rng = Substream::new(7, "quick-start", 0);
        let asked = clients.ask(to, &ID, &Config::default(), Known::default(), &mut rng).unwrap();
        let mut sender = ServerSocket::new(Box::new(fake.clone()), server, clients.clone()).create_sender();
        assert_eq!(sender.max_transmit_segments().get(), 1, "a single datagram is wanted");
        // Version Negotiation, another client, another path, and a batch.
        let (long, short) = (long(1, &ID), [&[0x43][..], &ID, &[9; 100]].concat());
        let plain = [self::long(0, &ID), self::long(1, &[8; 8]), long.clone()];
        send(&mut sender, to, &plain[0], None);
        send(&mut sender, to, &plain[1], None);
        send(&mut sender, other, &plain[2], None);
        let batch = [&long[..], &long].concat();
        send(&mut sender, to, &batch, Some(long.len()));
        assert_eq!(clients.requests(), 0);
        let option = |datagram: &[u8]| {
            let mut buffer = [0; 2000];
            let came = receive(&client, &mut buffer).unwrap();
            assert_eq!((&buffer[..came.length], came.ttl), (datagram, Some(DEFAULT_TTL)));
            IpOption::among(IpVersion::of(came.from.ip()), came.options()).unwrap().unwrap()
        };
        send(&mut sender, to, &long, None);
        let request = option(&long);
        assert_eq!((clients.requests(), sender.max_transmit_segments().get()), (1, 64));
        // A repetition has none.
        send(&mut sender, to, &long, None);
        send(&mut sender, to, &short, None);
        let approved = asked.verify(&respond(request, DEFAULT_TTL).unwrap()).unwrap();
        assert_eq!(sender.max_transmit_segments().get(), 1);
        send(&mut sender, to, &short, None);
        let report = option(&short);
        assert!(matches!(report, IpOption::ApprovedRate { rate, .. } if rate.rate() == approved), "{report:?}");
        send(&mut sender, to, &short, None);
        assert_eq!((clients.requests(), clients.reports(), clients.unsent()), (1, 1, 0));
        let [negotiation, theirs, elsewhere] = plain;
        let left = [negotiation, theirs, elsewhere, batch, long, short.clone(), short];
        assert_eq!(*fake.0.lock().unwrap(), left);
    }

    #[test]
    fn after_a_move_no_option_waits_and_batches_leave() {
        let (client, server) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (to, other) = (client.local_addr().unwrap(), SocketAddr::from(([127, 0, 0, 1], 9)));
        let (fake, clients) = (Fake::default(), Arc::<Clients>::default());
        let mut rng = Substream::new(7, "quick-start", 0);
        let asked = clients.ask(to, &ID, &Config::default(), Known::default(), &mut rng).unwrap();
        let request = clients.waiting(to, &ID).unwrap().take().unwrap();
        let mut sender = ServerSocket::new(Box::new(fake), server, clients.clone()).create_sender();
        send(&mut sender, to, &long(1, &ID), None);
        let short = [&[0x43][..], &ID, &[9; 100]].concat();
        send(&mut sender, to, &short, None);
        let request = IpOption::parse(IpVersion::V4, &request).unwrap();
        asked.verify(&respond(request, DEFAULT_TTL).unwrap()).unwrap();
        assert_eq!(sender.max_transmit_segments().get(), 1, "the report waits for a single datagram");
        send(&mut sender, other, &short, None);
        assert_eq!((sender.max_transmit_segments().get(), clients.unsent(), clients.reports()), (64, 1, 0));
    }
}
