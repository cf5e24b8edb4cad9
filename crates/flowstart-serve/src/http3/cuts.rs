//! Answers that were cut: the QUIC stack keeps what a stream was given until the peer has acknowledged its reset.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noq::SendStream;

/// The streams of a connection that were cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts(Arc<Mutex<HashMap<u64, SendStream>>>);

impl Cuts {
    fn streams(&self) -> MutexGuard<'_, HashMap<u64, SendStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This stream was reset. The stack may have forgotten it already, as it has others of which nobody asked.
    pub(super) fn keep(&self, stream: SendStream) {
        let mut streams = self.streams();
        streams.retain(|_, stream| stream.priority().is_ok());
        if stream.priority().is_ok() {
            streams.insert(stream.id().into(), stream);
        }
    }

    /// Whether the stack still keeps what this stream was given.
    pub(crate) fn holds(&self, id: u64) -> bool {
        let mut streams = self.streams();
        let is_held = streams.get(&id).is_some_and(|stream| stream.priority().is_ok());
        if !is_held {
            streams.remove(&id);
        }
        is_held
    }
}
