//! The datagrams of real flows as a capture at the data sender shows them, and the secrets that decrypt them. A capture
//! at both hosts would show each packet twice: a decoder would take the second copy for another packet and guess its
//! number wrong.

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
    /// The time.
    pub time: Timestamp,
    /// The flow.
    pub flow: u32,
    /// The direction: leaving the data sender, or arriving there.
    pub direction: Direction,
    /// ECN field at that point.
    pub ecn: EcnCodepoint,
    /// Quick-Start's option in its IP header, if it has one.
    pub quick_start: QuickStartOption,
    /// Its source and destination addresses.
    pub addresses: (SocketAddr, SocketAddr),
    /// The UDP payload, encrypted.
    pub payload: Vec<u8>,
}

/// A receiver of the datagrams that data senders of real flows see, during the run.
pub trait CaptureSink: fmt::Debug + Send {
    /// A data sender sees a datagram. `secrets` are those known so far.
    fn on_datagram(&mut self, datagram: &CapturedDatagram, secrets: &Secrets);
}

/// All datagrams that data senders of real flows have seen, or the sink that receives them.
#[derive(Debug, Default)]
pub struct Capture {
    /// The datagrams in order, unless a sink receives them.
    pub datagrams: Vec<CapturedDatagram>,
    /// The secrets that decrypt them.
    pub secrets: Secrets,
    /// The sink.
    sink: Option<Box<dyn CaptureSink>>,
}

impl Capture {
    /// A capture that keeps nothing and passes everything to `sink`.
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
    /// Both ends report the same secrets.
    known: BTreeSet<String>,
}

impl Secrets {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An end of a connection reports a secret: its label, the connection's client random, and the secret itself.
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

    /// Whether no connection has reported any.
    pub fn is_empty(&self) -> bool {
        self.lines().text.is_empty()
    }

    /// A line for each secret, as in files for `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile).
    pub fn text(&self) -> String {
        self.lines().text.clone()
    }
}
