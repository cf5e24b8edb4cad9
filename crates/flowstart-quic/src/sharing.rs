//! One window for a host's connections to the same peer ([`Ensemble`]).
//!
//! A host gives the same [`SharedWindow`] to the [`Flow`](crate::Flow) of each of them. It works for schemes that share
//! a window (`ensemble-sharing`); others ignore it. A connection that has moved to another path shares no longer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flowstart_core::ensemble::Ensemble;
use flowstart_core::path::Concurrent;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_core::window::Window;

use crate::clock::span;

/// What no connection gets less than: two packets of 1200 bytes (RFC 9002, section 7.2).
const LEAST: Bytes = Bytes::new(2400);

/// The window that connections to one peer share.
#[derive(Debug)]
pub struct SharedWindow {
    ensemble: Mutex<Ensemble>,
    /// Its time zero.
    origin: Instant,
    next: AtomicU64,
}

impl SharedWindow {
    /// A window that nobody has yet. `now` is the host's time.
    pub fn new(now: Instant) -> Arc<Self> {
        Arc::new(Self { ensemble: Mutex::new(Ensemble::new(LEAST)), origin: now, next: AtomicU64::new(0) })
    }

    /// Another thread's panic while it holds the lock leaves nothing half-changed here.
    fn ensemble(&self) -> MutexGuard<'_, Ensemble> {
        self.ensemble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A controller's place in a shared window, which it gives back when it goes.
#[derive(Debug)]
struct Place {
    shared: Arc<SharedWindow>,
    key: u64,
    /// Time zero of the controller, on the clock of the shared window.
    offset: Duration,
    /// The latest time of the controller that was told, in nanoseconds.
    latest: AtomicU64,
}

impl Place {
    fn at(&self, now: Timestamp) -> Timestamp {
        self.latest.fetch_max(now.since(Timestamp::ZERO).as_nanos(), Ordering::Relaxed);
        now + self.offset
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = Timestamp::ZERO + Duration::from_nanos(self.latest.load(Ordering::Relaxed));
        self.shared.ensemble().leave(now + self.offset, self.key);
    }
}

/// A controller's part in a shared window.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// The copies of a controller have one place.
    place: Arc<Place>,
    /// Whether there is data in flight or waiting, as far as the others know.
    sends: bool,
}

impl Membership {
    /// A place for a controller whose time zero is `origin`.
    pub(crate) fn new(shared: Arc<SharedWindow>, origin: Instant) -> Self {
        let offset = span(origin.saturating_duration_since(shared.origin));
        let key = shared.next.fetch_add(1, Ordering::Relaxed);
        Self { place: Arc::new(Place { shared, key, offset, latest: AtomicU64::new(0) }), sends: false }
    }

    /// Whether the connection sends, as far as the others know.
    pub(crate) fn sends(&self) -> bool {
        self.sends
    }

    /// It begins to send: what the others leave to it.
    pub(crate) fn enter(&mut self, now: Timestamp) -> Option<Concurrent> {
        self.sends = true;
        let Place { shared, key, .. } = &*self.place;
        shared.ensemble().enter(self.place.at(now), *key)
    }

    /// What it has now. Returns its window if others have changed it.
    pub(crate) fn report(&self, now: Timestamp, window: Window, rtt: Duration) -> Option<Bytes> {
        self.place.at(now);
        self.place.shared.ensemble().report(self.place.key, window, rtt)
    }

    /// It has nothing to send.
    pub(crate) fn leave(&mut self, now: Timestamp) {
        self.sends = false;
        self.place.shared.ensemble().leave(self.place.at(now), self.place.key);
    }
}
