//! The end that asks, and measures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flowstart_core::units::Bytes;
use noq::crypto::rustls::QuicClientConfig;
use serde::Serialize;
use tokio::task::JoinSet;

use super::{Congestion, ENOUGH, PerfError, Progress, SEND_WINDOW, cpu, read, write};
use crate::endpoint::bind;

/// The longest wait for connections to end.
const FAREWELL: Duration = Duration::from_millis(500);
/// The longest wait for streams to end after the time of a measurement.
const GRACE: Duration = Duration::from_secs(1);

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server.
    Download,
    /// To the server.
    Upload,
}

/// One direction as measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Bytes of the application that arrived.
    pub bytes: u64,
    /// Until the last of them arrived; of an upload, until it was acknowledged.
    pub seconds: f64,
    /// Over all of it.
    pub goodput_mbps: f64,
    /// Length of an interval.
    pub interval_ms: f64,
    /// In each interval. Of an upload, what the sender's buffer took.
    pub intervals_mbps: Vec<f64>,
    /// From the first packet until the connection was established.
    pub handshake_ms: f64,
    /// CPU time that this process used.
    pub cpu_seconds: Option<f64>,
}

/// How a client connects and transfers.
#[derive(Debug)]
pub struct Client {
    config: noq::ClientConfig,
    server: SocketAddr,
    name: String,
    /// Streams that share the bytes, 1 or more.
    pub streams: u32,
    /// The time limit of a transfer; missing bytes are then left out.
    pub duration: Option<Duration>,
    /// Length of the intervals of throughput, above zero.
    pub interval: Duration,
}

impl Client {
    /// A client of the server at `server` whose certificate has this `name`, with TLS for [`super::PERF`].
    /// `receive_window` bounds the server's unread data.
    ///
    /// # Errors
    ///
    /// [`PerfError`] when the TLS does not work with QUIC.
    pub fn new(
        server: SocketAddr,
        name: &str,
        tls: rustls::ClientConfig,
        congestion: &Congestion,
        receive_window: Bytes,
    ) -> Result<Self, PerfError> {
        Self::with_windows(server, name, tls, congestion, SEND_WINDOW, receive_window)
    }

    pub(super) fn with_windows(
        server: SocketAddr,
        name: &str,
        tls: rustls::ClientConfig,
        congestion: &Congestion,
        send: Bytes,
        receive: Bytes,
    ) -> Result<Self, PerfError> {
        let crypto = QuicClientConfig::try_from(tls).map_err(|error| PerfError::Quic(error.to_string()))?;
        let mut config = noq::ClientConfig::new(Arc::new(crypto));
        config.transport_config(congestion.transport(send, receive));
        let name = name.to_owned();
        Ok(Self { config, server, name, streams: 1, duration: None, interval: Duration::from_secs(1) })
    }

    /// Transfers `size` bytes in one direction, over a connection of its own.
    ///
    /// # Errors
    ///
    /// [`PerfError::Broken`] when not all of it arrives.
    pub async fn transfer(&self, direction: Direction, size: Bytes) -> Result<Measured, PerfError> {
        let problem =
            |cause: &dyn std::fmt::Display| PerfError::Broken { server: self.server, cause: cause.to_string() };
        let before = cpu::seconds();
        let local: SocketAddr = if self.server.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
        let endpoint = bind(local, None).map_err(|error| problem(&error))?;
        let start = Instant::now();
        let connecting = endpoint.connect_with(self.config.clone(), self.server, &self.name);
        let connection = connecting.map_err(|error| problem(&error))?.await.map_err(|error| problem(&error))?;
        let handshake = start.elapsed();
        let began = Instant::now();
        let progress = Arc::new(Progress::default());
        let streams = self.open(&connection, direction, size, &progress);
        let (intervals, whole) = self.watch(streams, began, &progress).await;
        let took = began.elapsed();
        if !whole {
            let cause = connection.close_reason().map_or("a stream ended early".into(), |reason| reason.to_string());
            return Err(problem(&cause));
        }
        let bytes = progress.bytes.load(Ordering::Relaxed);
        connection.close(ENOUGH, b"");
        // The arrival of the closing packet does not matter here.
        drop(tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await);
        Ok(Measured {
            bytes,
            seconds: took.as_secs_f64(),
            goodput_mbps: mbps(bytes, took),
            interval_ms: self.interval.as_secs_f64() * 1e3,
            intervals_mbps: intervals,
            handshake_ms: handshake.as_secs_f64() * 1e3,
            cpu_seconds: before.zip(cpu::seconds()).map(|(before, after)| after - before),
        })
    }

    /// Opens the streams. Each ends when its share has arrived.
    fn open(
        &self,
        connection: &noq::Connection,
        direction: Direction,
        size: Bytes,
        progress: &Arc<Progress>,
    ) -> JoinSet<Option<()>> {
        let mut streams = JoinSet::new();
        let count = u64::from(self.streams.max(1));
        for place in 0..count {
            let share = size.get() / count + u64::from(place < size.get() % count);
            let (connection, progress) = (connection.clone(), progress.clone());
            streams.spawn(async move {
                let (mut send, mut receive) = connection.open_bi().await.ok()?;
                let wanted = if direction == Direction::Download { share } else { 0 };
                send.write_all(&wanted.to_be_bytes()).await.ok()?;
                if direction == Direction::Upload {
                    write(&mut send, share, &progress).await?;
                }
                send.finish().ok()?;
                read(&mut receive, &progress).await?;
                // For an upload this is the acknowledgement of its end.
                send.stopped().await.ok().map(drop)
            });
        }
        streams
    }

    /// Waits for the streams; throughput of each interval, and whether everything arrived.
    async fn watch(&self, mut streams: JoinSet<Option<()>>, began: Instant, progress: &Progress) -> (Vec<f64>, bool) {
        let (mut intervals, mut known, mut whole) = (Vec::new(), 0, true);
        let mut clock = tokio::time::interval_at((began + self.interval).into(), self.interval);
        let deadline = self.duration.map(|duration| began + duration);
        loop {
            let ending = deadline.is_some() && !progress.over.load(Ordering::Relaxed);
            tokio::select! {
                done = streams.join_next() => match done {
                    Some(done) => whole &= done.ok().flatten().is_some(),
                    None => return (intervals, whole),
                },
                _ = clock.tick() => {
                    let bytes = progress.bytes.load(Ordering::Relaxed);
                    intervals.push(mbps(bytes - known, self.interval));
                    known = bytes;
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now).into()), if ending => {
                    progress.over.store(true, Ordering::Relaxed);
                }
                // A peer that sends nothing more ends no stream.
                () = tokio::time::sleep_until((deadline.unwrap_or_else(Instant::now) + GRACE).into()),
                    if deadline.is_some() && !ending => return (intervals, whole),
            }
        }
    }
}

fn mbps(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8e-6 / time.as_secs_f64().max(1e-9)
}
