//! Datagrams between the two ends: the simulator carries a number for each, and the bytes wait here.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;

use super::frames::Carried;
use crate::ends::capture::{Capture, CapturedDatagram};

/// Memory for datagrams in flight is allocated in pieces of this many bytes.
const ARENA: usize = 1 << 16;

/// A datagram in flight.
#[derive(Debug)]
pub(super) struct Stored {
    bytes: BytesMut,
    pub(super) carried: Carried,
    /// Its source.
    pub(super) from: SocketAddr,
}

/// All datagrams of a flow in flight, in memory that is reused.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) datagrams: Vec<Stored>,
    free: Vec<u32>,
    arena: BytesMut,
    pub(super) buffer: Vec<u8>,
    pub(super) carried: Vec<Carried>,
    /// The capture at the run's data senders, if any.
    capture: Option<Arc<Mutex<Capture>>>,
}

impl UnderWay {
    /// Nothing is in flight. `capture` receives the datagrams that data senders see.
    pub(super) fn new(capture: Option<Arc<Mutex<Capture>>>) -> Self {
        Self { capture, ..Self::default() }
    }

    /// A data sender sees a datagram.
    pub(super) fn see(&self, datagram: impl FnOnce() -> CapturedDatagram) {
        if let Some(capture) = &self.capture {
            capture.lock().unwrap_or_else(PoisonError::into_inner).see(datagram());
        }
    }

    /// Keeps a copy of the datagram until [`UnderWay::release`], and returns its tag.
    pub(super) fn insert(&mut self, bytes: &[u8], carried: Carried, from: SocketAddr) -> u32 {
        if self.arena.capacity() < bytes.len() {
            self.arena.reserve(ARENA);
        }
        self.arena.extend_from_slice(bytes);
        let stored = Stored { bytes: self.arena.split(), carried, from };
        match self.free.pop() {
            Some(tag) => {
                self.datagrams[tag as usize] = stored;
                tag
            }
            None => {
                self.datagrams.push(stored);
                (self.datagrams.len() - 1) as u32
            }
        }
    }

    /// Ends the flight of a datagram and returns its bytes. Its other data stays until the tag is reused.
    pub(super) fn release(&mut self, tag: u32) -> BytesMut {
        self.free.push(tag);
        std::mem::take(&mut self.datagrams[tag as usize].bytes)
    }
}
