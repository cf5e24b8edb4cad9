//! Throughput over QUIC.
//!
//! The protocol is that of draft-banks-quic-performance (ALPN `perf`). On a stream that the client opens it sends 8
//! bytes, in network order: the number of bytes that it wants. Then it sends any number of its own, and ends. The
//! server sends what was wanted, and ends.

mod client;
mod cpu;
mod pairs;
mod server;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes as Chunk;
use flowstart_core::units::Bytes;
use noq::congestion::CubicConfig;
use noq::{RecvStream, SendStream, VarInt};

pub use self::client::{Client, Direction, Measured};
pub use self::pairs::{Cost, Pairs, pairs};
pub use self::server::Server;
use crate::endpoint::{flow_control, transport};
use crate::scheme::Scheme;

/// The protocol's name.
pub const PERF: &[u8] = b"perf";
/// What may be sent without an acknowledgement: 100 ms at 5 Gbit/s.
const SEND_WINDOW: Bytes = Bytes::new(64 << 20);
/// What is written to a stream in one go.
const CHUNK: usize = 256 << 10;
/// What uploads and downloads consist of.
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// The code with which a client ends a stream or a connection that it does not need.
const ENOUGH: VarInt = VarInt::from_u32(0);

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfError {
    /// The address to listen at cannot be used.
    #[error("{address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
    /// The transfer broke.
    #[error("{server}: {cause}")]
    Broken {
        /// The server.
        server: SocketAddr,
        /// Why.
        cause: String,
    },
    /// TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// The TLS is none for QUIC.
    #[error("{0}")]
    Quic(String),
    /// The system does not count CPU time.
    #[error("this system does not tell the CPU time of a process")]
    NoClock,
}

/// Whose congestion control.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// That of a scheme.
    Scheme(Arc<Scheme>),
    /// The CUBIC that comes with noq, the QUIC stack.
    NoqCubic,
}

impl Congestion {
    fn transport(&self, send: Bytes, receive: Bytes) -> Arc<noq::TransportConfig> {
        Arc::new(match self {
            Self::Scheme(scheme) => transport(scheme, send, receive),
            Self::NoqCubic => {
                let mut transport = flow_control(send, receive);
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
                transport
            }
        })
    }
}

/// The transferred amount so far, and whether it is enough.
#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    over: AtomicBool,
}

async fn write(send: &mut SendStream, bytes: u64, progress: &Progress) -> Option<()> {
    let mut left = bytes;
    while left > 0 && !progress.over.load(Ordering::Relaxed) {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        send.write_chunk(Chunk::from_static(&ZEROS).slice(..length)).await.ok()?;
        progress.bytes.fetch_add(length as u64, Ordering::Relaxed);
        left -= length as u64;
    }
    Some(())
}

async fn read(receive: &mut RecvStream, progress: &Progress) -> Option<()> {
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.ok()? {
        progress.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if progress.over.load(Ordering::Relaxed) {
            // The stream may be at its end already.
            drop(receive.stop(ENOUGH));
            break;
        }
    }
    Some(())
}
