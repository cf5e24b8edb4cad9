//! A client's socket for noq that times the server's part of the handshake: how far apart its datagrams arrive says how
//! fast the path is, before any data comes ([`flowstart_core::dispersion`]).
//!
//! The kernel's receive timestamps count where it gives them (Linux with glibc): when the runtime reads is later, and
//! for several datagrams at once. Datagrams that were gathered below the socket have one time. While a socket has two
//! handshakes with a server, neither is measured: their datagrams cannot be told apart here.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Another handshake with this server began meanwhile.
    is_mixed: bool,
}

/// The handshakes of a client's socket.
#[derive(Debug)]
pub struct Trains {
    began: Instant,
    met: Mutex<Vec<Met>>,
}

impl Default for Trains {
    fn default() -> Self {
        Self { began: Instant::now(), met: Mutex::default() }
    }
}

impl Trains {
    fn met(&self) -> MutexGuard<'_, Vec<Met>> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handshake with this server is about to begin. Beyond a number of them at once it is not timed.
    pub fn meet(&self, server: SocketAddr) {
        let mut met = self.met();
        if let Some(before) = met.iter_mut().find(|one| one.server == server) {
            before.is_mixed = true;
        } else if met.len() < HANDSHAKES {
            let (opened, seen) = (Instant::now(), Dispersion::default());
            met.push(Met { server, opened, first_answer: None, seen, is_mixed: false });
        }
    }

    /// The handshake with this server is over, or failed. The rate at which its datagrams arrived; `None`: there were
    /// too few.
    pub fn stop(&self, server: SocketAddr) -> Option<Rate> {
        let mut met = self.met();
        let place = met.iter().position(|one| one.server == server)?;
        let one = met.swap_remove(place);
        one.seen.rate().filter(|_| !one.is_mixed)
    }

    fn receive(&self, batch: &RecvMeta) {
        let mut met = self.met();
        let Some(one) = met.iter_mut().find(|one| one.server == batch.addr) else { return };
        let first_answer = *one.first_answer.get_or_insert_with(|| one.opened.elapsed());
        let arrived = time::Timestamp::from_nanos(nanos(batch.timestamp.unwrap_or_else(|| self.began.elapsed())));
        let gap = time::Duration::from_nanos(nanos(first_answer / 2));
        one.seen.on_arrival(arrived, Bytes::new(batch.len as u64), gap);
    }

    /// Whether anything is timed.
    fn is_idle(&self) -> bool {
        self.met().is_empty()
    }
}

/// Asks the kernel to say when datagrams arrive.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn show_times(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
    // Without it the time of the reading counts.
    let _ = setsockopt(socket, ReceiveTimestampns, &true);
}

/// noq reads no timestamps here, or not those of this C library.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn show_times(_: &std::net::UdpSocket) {}

/// A runtime's socket that times handshakes, for `noq::Endpoint::new_with_abstract_socket`.
#[derive(Debug)]
pub struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    trains: Arc<Trains>,
}

impl Socket {
    /// Times these handshakes. `same` is a clone of what `inner` wraps.
    pub fn new(inner: Box<dyn AsyncUdpSocket>, same: &std::net::UdpSocket, trains: Arc<Trains>) -> Self {
        show_times(same);
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
        let trains = Trains::default();
        trains.meet(server(1));
        trains.met()[0].first_answer = Some(Duration::from_millis(50));
        for micros in micros {
            trains.receive(&came(server(1), *micros, 1200));
            trains.receive(&came(server(2), *micros, 9000));
        }
        let rate = trains.stop(server(1));
        assert!(trains.is_idle() && trains.stop(server(1)).is_none());
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
    fn two_handshakes_with_one_server_are_not_told_apart() {
        let trains = Trains::default();
        trains.meet(server(1));
        trains.meet(server(1));
        for micros in [0, 960, 1920] {
            trains.receive(&came(server(1), micros, 1200));
        }
        assert_eq!(trains.stop(server(1)), None);
        // There are only so many.
        for port in 0..1000 {
            trains.meet(server(port));
        }
        assert_eq!(trains.met().len(), HANDSHAKES);
    }
}
