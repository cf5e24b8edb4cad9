//! A client's socket for noq that times the server's part of the handshake: how far apart its datagrams arrive says how
//! fast the path is, before any data comes ([`flowstart_core::dispersion`]).
//!
//! The kernel's receive timestamps count where it gives them (Linux with glibc): when the runtime reads is later, and
//! for several datagrams at once. Datagrams that were gathered below the socket have one time. A socket has one
//! connection with a server: datagrams of two cannot be told apart here, and two handshakes at once are not measured.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use ::noq::udp::RecvMeta;
use ::noq::{AsyncUdpSocket, UdpSender};
use flowstart_core::dispersion::Dispersion;
use flowstart_core::time;
use flowstart_core::units::{Bytes, Rate};

/// Handshakes of a socket that are timed at once.
const HANDSHAKES: usize = 64;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A handshake under way.
#[derive(Debug)]
struct Met {
    server: SocketAddr,
    opened: Instant,
    /// Time from the opening to the server's first datagram.
    first_answer: Option<Duration>,
    seen: Dispersion,
    /// Whether the kernel tells when its datagrams arrive; the first one decides.
    has_times: Option<bool>,
    /// Another handshake with this server began meanwhile, or only some datagrams have the kernel's time.
    is_mixed: bool,
}

/// The handshakes of a client's socket.
#[derive(Debug)]
pub struct Trains {
    began: Instant,
    met: Mutex<Vec<Met>>,
    /// The socket, to ask for times.
    socket: OnceLock<std::net::UdpSocket>,
}

impl Default for Trains {
    fn default() -> Self {
        Self { began: Instant::now(), met: Mutex::default(), socket: OnceLock::new() }
    }
}

/// A handshake that is timed; dropped, it no longer is.
#[derive(Debug)]
pub struct Timed {
    trains: Arc<Trains>,
    server: SocketAddr,
    is_over: bool,
}

impl Timed {
    /// The handshake is over. The rate at which the server's datagrams arrived; `None`: there were too few.
    pub fn stop(mut self) -> Option<Rate> {
        self.is_over = true;
        self.trains.stop(self.server)
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        if !self.is_over {
            self.trains.stop(self.server);
        }
    }
}

impl Trains {
    fn met(&self) -> MutexGuard<'_, Vec<Met>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake with this server is about to begin. Beyond a number of them at once it is not timed.
    pub fn meet(self: &Arc<Self>, server: SocketAddr) -> Timed {
        let mut met = self.met();
        if met.is_empty() {
            self.show_times(true);
        }
        let (opened, seen) = (Instant::now(), Dispersion::default());
        if let Some(before) = met.iter_mut().find(|one| one.server == server) {
            before.is_mixed = true;
        } else if met.len() < HANDSHAKES {
            met.push(Met { server, opened, first_answer: None, seen, has_times: None, is_mixed: false });
        }
        Timed { trains: Arc::clone(self), server, is_over: false }
    }

    fn stop(&self, server: SocketAddr) -> Option<Rate> {
        let mut met = self.met();
        let place = met.iter().position(|one| one.server == server)?;
        let one = met.swap_remove(place);
        if met.is_empty() {
            self.show_times(false);
        }
        one.seen.rate().filter(|_| !one.is_mixed)
    }

    fn receive(&self, batch: &RecvMeta) {
        let mut met = self.met();
        let Some(one) = met.iter_mut().find(|one| one.server == batch.addr) else { return };
        let first_answer = *one.first_answer.get_or_insert_with(|| one.opened.elapsed());
        one.is_mixed |= *one.has_times.get_or_insert(batch.timestamp.is_some()) != batch.timestamp.is_some();
        let arrived = time::Timestamp::from_nanos(nanos(batch.timestamp.unwrap_or_else(|| self.began.elapsed())));
        let gap = time::Duration::from_nanos(nanos(first_answer / 2));
        one.seen.on_arrival(arrived, Bytes::new(batch.len as u64), gap);
    }

    /// Whether nothing is timed.
    fn is_idle(&self) -> bool {
        self.met().is_empty()
    }

    /// Asks the kernel to say when datagrams arrive, or no more. Meanwhile it gathers none (UDP GRO): of gathered ones
    /// noq has no room for the time and for the ECN bits, and without those of the handshake it gives up ECN for good.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn show_times(&self, show: bool) {
        use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns, sockopt::UdpGroSegment};
        // Without them the time of the reading counts. Nothing comes with both.
        let Some(socket) = self.socket.get() else { return };
        if show && setsockopt(socket, UdpGroSegment, &false).is_ok() {
            let _ = setsockopt(socket, ReceiveTimestampns, &true);
        } else if !show {
            let _ = setsockopt(socket, ReceiveTimestampns, &false);
            let _ = setsockopt(socket, UdpGroSegment, &true);
        }
    }

    /// noq reads no timestamps here, or not those of this C library.
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn show_times(&self, _: bool) {}
}

/// A runtime's socket that times handshakes, for `noq::Endpoint::new_with_abstract_socket`.
#[derive(Debug)]
pub struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    trains: Arc<Trains>,
}

impl Socket {
    /// Times these handshakes, which are of this socket alone. `same` is a clone of what `inner` wraps.
    pub fn new(inner: Box<dyn AsyncUdpSocket>, same: std::net::UdpSocket, trains: Arc<Trains>) -> Self {
        let _ = trains.socket.set(same);
        Self { inner, trains }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        self.inner.create_sender()
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(context, bufs, meta))?;
        if !self.trains.is_idle() {
            meta.iter().take(count).for_each(|batch| self.trains.receive(batch));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn server(port: u16) -> SocketAddr {
        (std::net::Ipv4Addr::LOCALHOST, port).into()
    }

    fn came(from: SocketAddr, micros: u64, length: usize) -> RecvMeta {
        let timestamp = Some(Duration::from_secs(1_700_000_000) + Duration::from_micros(micros));
        let mut meta = RecvMeta::default();
        (meta.addr, meta.len, meta.stride, meta.timestamp) = (from, length, length, timestamp);
        meta
    }

    /// What is measured of datagrams of 1200 bytes at these times; the first answer takes 50 ms.
    fn measured(micros: &[u64]) -> Option<Rate> {
        let trains = Arc::<Trains>::default();
        let timed = trains.meet(server(1));
        trains.met()[0].first_answer = Some(Duration::from_millis(50));
        for micros in micros {
            trains.receive(&came(server(1), *micros, 1200));
            trains.receive(&came(server(2), *micros, 9000));
        }
        let rate = timed.stop();
        assert!(trains.is_idle());
        rate
    }

    #[test]
    fn datagrams_of_the_server_give_the_rate_at_which_they_arrive() {
        // 2400 bytes in 1.92 ms.
        assert_eq!(measured(&[0, 960, 1920]), Some(Rate::from_mbit(10)));
        assert_eq!(measured(&[0, 960]), None);
        assert_eq!(measured(&[0, 960, 60_000]), None, "sent again");
        assert_eq!(measured(&[0, 960, 1920, 60_000]), Some(Rate::from_mbit(10)));
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_measured() {
        let trains = Arc::<Trains>::default();
        let both = [trains.meet(server(1)), trains.meet(server(1))];
        for micros in [0, 960, 1920] {
            trains.receive(&came(server(1), micros, 1200));
        }
        assert_eq!(both.map(Timed::stop), [None; 2]);
        // Of two clocks.
        let timed = trains.meet(server(1));
        trains.met()[0].first_answer = Some(Duration::from_secs(1));
        trains.receive(&came(server(1), 0, 1200));
        for micros in [1000, 2000, 3000] {
            let mut later = came(server(1), micros, 1200);
            later.timestamp = later.timestamp.filter(|_| micros == 1000);
            trains.receive(&later);
        }
        assert_eq!(timed.stop(), None);
        // There are only so many, and who gives up leaves nothing behind.
        let many: Vec<_> = (0..1000).map(|port| trains.meet(server(port))).collect();
        assert_eq!(trains.met().len(), HANDSHAKES);
        drop(many);
        assert!(trains.is_idle());
    }

    /// Length, length of a datagram, ECN bits, and whether there is a time.
    #[cfg(all(feature = "runtime", target_os = "linux", target_env = "gnu"))]
    type Read = (usize, usize, Option<noq::udp::EcnCodepoint>, bool);

    /// What a socket reads of three datagrams that were sent at once with ECT(0).
    #[cfg(all(feature = "runtime", target_os = "linux", target_env = "gnu"))]
    async fn read_of_three(is_timed: bool) -> Vec<Read> {
        use noq::Runtime;
        let bound = || std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wrapped = |socket| crate::runtime::PreciseRuntime.wrap_udp_socket(socket).unwrap();
        let (from, to, trains) = (bound(), bound(), Arc::<Trains>::default());
        let (sender_address, destination) = (from.local_addr().unwrap(), to.local_addr().unwrap());
        let same = to.try_clone().unwrap();
        let mut socket = Socket::new(wrapped(to), same, trains.clone());
        let _timed = is_timed.then(|| trains.meet(sender_address));
        let contents = [7; 3600];
        let ecn = Some(noq::udp::EcnCodepoint::Ect0);
        let transmit =
            noq::udp::Transmit { destination, ecn, contents: &contents, segment_size: Some(1200), src_ip: None };
        let mut sender = wrapped(from).create_sender();
        std::future::poll_fn(|context| sender.as_mut().poll_send(&transmit, context)).await.unwrap();
        let mut read: Vec<Read> = Vec::new();
        while read.iter().map(|(length, ..)| length).sum::<usize>() < contents.len() {
            let (mut buffers, mut metas) = (vec![[0; 1 << 16]; 4], vec![RecvMeta::default(); 4]);
            let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
            let count =
                std::future::poll_fn(|context| socket.poll_recv(context, &mut slices, &mut metas)).await.unwrap();
            read.extend(
                metas.iter().take(count).map(|meta| (meta.len, meta.stride, meta.ecn, meta.timestamp.is_some())),
            );
        }
        read
    }

    #[cfg(all(feature = "runtime", target_os = "linux", target_env = "gnu"))]
    #[tokio::test]
    async fn datagrams_that_are_timed_keep_their_ecn_bits() {
        let ect0 = Some(noq::udp::EcnCodepoint::Ect0);
        assert_eq!(read_of_three(false).await, [(3600, 1200, ect0, false)], "gathered");
        assert_eq!(read_of_three(true).await, [(1200, 1200, ect0, true); 3], "each with its time");
    }
}
