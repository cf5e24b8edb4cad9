//! The datagrams of real flows as a capture at the data sender has them, and the secrets that open them. Not at both hosts:
//! to whoever follows a connection, the second sight of a packet is another packet, whose number is guessed wrongly.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes as Buffer;
use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::time::Timestamp;
use flowstart_sim::packet::Direction;

/// A datagram as the data sender sees it on its own interface.
#[derive(Clone, Debug)]
pub struct CapturedDatagram {
    /// When.
    pub time: Timestamp,
    /// Whose.
    pub flow: u32,
    /// Which way: it leaves the data sender, or has reached it.
    pub direction: Direction,
    /// ECN field as it left or arrived.
    pub ecn: EcnCodepoint,
    /// Its addresses: where it comes from, and where to.
    pub addresses: (SocketAddr, SocketAddr),
    /// The UDP payload, encrypted.
    pub payload: Buffer,
}

/// TLS secrets, a line for each, as in files for `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile).
#[derive(Debug, Default)]
pub(super) struct Secrets(Mutex<String>);

impl Secrets {
    fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.text().push_str(&line);
    }
}

/// Everything that the data senders of real flows have seen.
#[derive(Debug, Default)]
pub struct Capture {
    pub(super) datagrams: Vec<CapturedDatagram>,
    pub(super) secrets: Arc<Secrets>,
}

impl Capture {
    /// The datagrams in order.
    pub fn datagrams(&self) -> &[CapturedDatagram] {
        &self.datagrams
    }

    /// The TLS secrets of all connections in the form of `SSLKEYLOGFILE`.
    pub fn secrets(&self) -> String {
        self.secrets.text().clone()
    }
}
