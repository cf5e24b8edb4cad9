//! The latest counts of a router, for whoever asks from another thread.

use std::sync::{Arc, Mutex, PoisonError};

use flowstart_core::time::Timestamp;
use flowstart_emu::router::Told;

/// What was told last, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest(Arc<Mutex<(Timestamp, Told)>>);

impl Latest {
    /// These are the counts from now on.
    pub(super) fn set(&self, at: Timestamp, told: &Told) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (at, told.clone());
    }

    /// The counts, and when they were true since the router began.
    pub(super) fn get(&self) -> (Timestamp, Told) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
