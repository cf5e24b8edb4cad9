//! A path between real sockets that adds delay, and what is seen on it.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::time::sleep_until;

/// Delay of either direction.
pub const ONE_WAY: Duration = Duration::from_millis(40);

/// When packets of the server came, and their sizes.
pub type Arrivals = Arc<Mutex<Vec<(Instant, usize)>>>;

/// Passes packets on after [`ONE_WAY`]; notes what arrives from the server.
pub async fn relay(server: SocketAddr, arrivals: Arrivals) -> SocketAddr {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let front = Arc::new(UdpSocket::bind(any).await.expect("a socket"));
    let back = Arc::new(UdpSocket::bind(any).await.expect("a socket"));
    back.connect(server).await.expect("a server");
    let address = front.local_addr().expect("an address");
    let client = Arc::new(Mutex::new(None));
    tokio::spawn({
        let (front, back, client) = (front.clone(), back.clone(), client.clone());
        async move {
            let mut buffer = [0; 2048];
            while let Ok((size, from)) = front.recv_from(&mut buffer).await {
                *client.lock().expect("no panic") = Some(from);
                let (back, packet, at) = (back.clone(), buffer[..size].to_vec(), Instant::now() + ONE_WAY);
                tokio::spawn(async move {
                    sleep_until(at.into()).await;
                    let _ = back.send(&packet).await;
                });
            }
        }
    });
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok(size) = back.recv(&mut buffer).await {
            let now = Instant::now();
            arrivals.lock().expect("no panic").push((now, size));
            let Some(to) = *client.lock().expect("no panic") else { continue };
            let (front, packet) = (front.clone(), buffer[..size].to_vec());
            tokio::spawn(async move {
                sleep_until((now + ONE_WAY).into()).await;
                let _ = front.send_to(&packet, to).await;
            });
        }
    });
    address
}

/// The first flight of full packets after the handshake.
pub struct Flight {
    /// Packets of 1200 bytes.
    pub packets: usize,
    /// From the first to the last of them.
    pub span: Duration,
    /// Most packets of which each came within 0.1 ms of the one before: those that left together.
    pub burst: usize,
    /// Median of the gaps between bursts.
    pub gap: Duration,
}

impl Flight {
    /// The first `packets` of it that `seen` has; what is repeated comes behind them.
    pub fn of(seen: &[(Instant, usize)], packets: usize) -> Self {
        let begin = seen[0].0 + ONE_WAY;
        let full = seen.iter().filter(|(at, size)| *at >= begin && *size == 1200).map(|(at, _)| *at);
        let times: Vec<_> = full.take(packets).collect();
        let (mut burst, mut longest, mut gaps) = (1, 1, Vec::new());
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            if gap < Duration::from_micros(100) {
                burst += 1;
            } else {
                burst = 1;
                gaps.push(gap);
            }
            longest = longest.max(burst);
        }
        gaps.sort_unstable();
        let gap = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
        Self { packets: times.len(), span: times[times.len() - 1] - times[0], burst: longest, gap }
    }
}

impl std::fmt::Display for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { packets, span, burst, gap } = self;
        write!(f, "{packets} packets in {span:.1?}, at most {burst} together, {gap:.2?} between (median)")
    }
}
