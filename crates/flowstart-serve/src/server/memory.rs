//! A bound on what all connections hold together: where it is reached, new ones are refused, and those that are open
//! get content in small pieces, the next when as much has arrived.
//!
//! What an allocator keeps for later is no measure: it stays when the connections are gone. So each connection counts
//! with what it holds at least, and with the content that its client has not acknowledged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use flowstart_core::units::Bytes;

/// What a connection without answers holds: TLS, QUIC, HTTP/3 and its tasks. Measured with 2,000 idle connections.
const CONNECTION: u64 = 80_000;
/// The share of the bound from which on clients have to prove their addresses.
const BUSY: f64 = 0.9;
/// What an open connection is given at a time while the bound is reached.
pub(super) const PIECE: usize = 16 << 10;

/// Who holds content.
pub(super) trait Holder: Send + Sync {
    /// Content that is kept until it is acknowledged, in bytes.
    fn unacknowledged(&self) -> u64;
}

/// What connections hold.
pub(super) struct Memory {
    most: Bytes,
    clients: Mutex<Vec<Weak<dyn Holder>>>,
    unacknowledged: AtomicU64,
}

/// What a new connection may expect of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is enough.
    Enough,
    /// There is little, so nobody gets it who may be a forger.
    Little,
    /// There is none.
    None,
}

impl Memory {
    /// How often the content is counted.
    pub(super) const INTERVAL: Duration = Duration::from_millis(50);

    /// At most this much.
    pub(super) fn new(most: Bytes) -> Self {
        Self { most, clients: Mutex::default(), unacknowledged: AtomicU64::new(0) }
    }

    fn clients(&self) -> MutexGuard<'_, Vec<Weak<dyn Holder>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the connection, until it is dropped.
    pub(super) fn enter(&self, client: Weak<dyn Holder>) {
        self.clients().push(client);
    }

    /// Counts the content.
    pub(super) fn count(&self) {
        let mut all = 0;
        self.clients().retain(|client| {
            let Some(client) = client.upgrade() else { return false };
            all += client.unacknowledged();
            true
        });
        self.unacknowledged.store(all, Ordering::Relaxed);
    }

    /// A connection is given this much content.
    pub(super) fn give(&self, bytes: u64) {
        // The next count knows better.
        self.unacknowledged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether these connections hold all that they may together.
    pub(super) fn is_full(&self, connections: usize) -> bool {
        connections as u64 * CONNECTION + self.unacknowledged.load(Ordering::Relaxed) >= self.most.get()
    }

    /// What there is for one more connection besides `connections`.
    pub(super) fn room(&self, connections: usize) -> Room {
        let held = (connections as u64 + 1) * CONNECTION + self.unacknowledged.load(Ordering::Relaxed);
        match held as f64 / self.most.get() as f64 {
            share if share > 1.0 => Room::None,
            share if share > BUSY => Room::Little,
            _ => Room::Enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_counts_even_if_it_holds_no_content() {
        // 100 connections of 80 KB are 8 MB, 90 % of them 7.2 MB.
        let memory = Memory::new(Bytes::new(8_000_000));
        assert_eq!(
            [0, 89, 90, 99, 100].map(|open| memory.room(open)),
            [Room::Enough, Room::Enough, Room::Little, Room::Little, Room::None]
        );
        memory.unacknowledged.store(4_000_000, Ordering::Relaxed);
        assert_eq!([39, 50].map(|open| memory.room(open)), [Room::Enough, Room::None]);
        assert_eq!([49, 50].map(|open| memory.is_full(open)), [false, true]);
        // What is given between two counts counts at once.
        memory.give(80_000);
        assert!(memory.is_full(49));
        memory.count();
        assert!(!memory.is_full(99));
    }
}
