//! Datagrams between the two ends: the simulator carries a number for each, and the bytes wait here.

use std::net::SocketAddr;

use bytes::BytesMut;

use super::frames::Carried;
use crate::ends::capture::{Capture, CapturedDatagram};

/// Memory for datagrams under way is taken in pieces of this many bytes.
const ARENA: usize = 1 << 16;

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Stored {
    bytes: BytesMut,
    pub(super) carried: Carried,
    /// Where it came from.
    pub(super) from: SocketAddr,
}

/// All datagrams on their way, and memory that is used again.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) datagrams: Vec<Stored>,
    free: Vec<u32>,
    arena: BytesMut,
    pub(super) buffer: Vec<u8>,
    pub(super) carried: Vec<Carried>,
    /// What data senders have seen, where somebody wants to know.
    pub(super) capture: Option<Capture>,
}

impl UnderWay {
    /// A data sender sees a datagram.
    pub(super) fn see(&mut self, datagram: impl FnOnce() -> CapturedDatagram) {
        if let Some(capture) = &mut self.capture {
            capture.see(datagram());
        }
    }

    /// Keeps a copy of the datagram until [`UnderWay::release`]; its tag.
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

    /// A datagram is no longer on its way; its bytes. What else is known of it stays until the tag is used again.
    pub(super) fn release(&mut self, tag: u32) -> BytesMut {
        self.free.push(tag);
        std::mem::take(&mut self.datagrams[tag as usize].bytes)
    }
}
