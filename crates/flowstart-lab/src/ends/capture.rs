//! The datagrams of real flows as a capture at the data sender has them, and the secrets that open them. Not at both
//! hosts: to whoever follows a connection, the second sight of a packet is another packet, whose number is guessed
//! wrongly.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::time::Timestamp;
use flowstart_sim::packet::{Direction, QuickStartOption};

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
    /// Quick-Start's option in its IP header, if it has one.
    pub quick_start: QuickStartOption,
    /// Its addresses: where it comes from, and where to.
    pub addresses: (SocketAddr, SocketAddr),
    /// The UDP payload, encrypted.
    pub payload: Vec<u8>,
}

/// Who is told what the data senders of real flows see, while the run goes on.
pub trait CaptureSink: fmt::Debug + Send {
    /// A data sender sees a datagram. The secrets are those that are known by then.
    fn on_datagram(&mut self, datagram: &CapturedDatagram, secrets: &Secrets);
}

/// Everything that the data senders of real flows have seen, or who is told of it.
#[derive(Debug, Default)]
pub struct Capture {
    /// The datagrams in order, unless somebody is told of them.
    pub datagrams: Vec<CapturedDatagram>,
    /// What decrypts them.
    pub secrets: Secrets,
    /// Who is told.
    sink: Option<Box<dyn CaptureSink>>,
}

impl Capture {
    /// A capture that keeps nothing and tells `sink`.
    pub fn told_to(sink: impl CaptureSink + 'static) -> Self {
        Self { sink: Some(Box::new(sink)), ..Self::default() }
    }

    /// A data sender sees a datagram.
    pub fn see(&mut self, datagram: CapturedDatagram) {
        match &mut self.sink {
            Some(sink) => sink.on_datagram(&datagram, &self.secrets),
            None => self.datagrams.push(datagram),
        }
    }
}

/// The TLS secrets of all connections. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Mutex<Lines>>);

/// A line for each secret.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    /// Both ends tell the same ones.
    known: BTreeSet<String>,
}

impl Secrets {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An end of a connection tells one: what it is for, the connection's client random, and the secret.
    pub fn tell(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut lines = self.lines();
        if !lines.known.contains(&line) {
            lines.text.push_str(&line);
            lines.known.insert(line);
        }
    }

    /// Bytes of [`Secrets::text`].
    pub fn len(&self) -> usize {
        self.lines().text.len()
    }

    /// Whether no connection has told any.
    pub fn is_empty(&self) -> bool {
        self.lines().text.is_empty()
    }

    /// A line for each, as in files for `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile).
    pub fn text(&self) -> String {
        self.lines().text.clone()
    }
}
