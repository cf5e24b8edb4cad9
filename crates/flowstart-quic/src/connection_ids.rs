//! Which connection IDs are an endpoint's own.

use std::sync::Arc;

use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, HashedConnectionIdGenerator};

use crate::invariants::{ID_LENGTH, MAX_ID};

/// A connection ID of these bytes; `None`: none is so long.
pub(crate) fn connection_id(bytes: &[u8]) -> Option<ConnectionId> {
    (bytes.len() <= MAX_ID).then(|| ConnectionId::new(bytes))
}

/// The connection IDs that an endpoint gives out, which are known by a random number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnIds(u64);

impl OwnIds {
    /// Those that belong to this number.
    pub(crate) fn new(key: u64) -> Self {
        Self(key)
    }

    /// Makes an endpoint give them out.
    pub(crate) fn configure(self, config: &mut EndpointConfig) {
        config.cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(self.0))));
    }

    /// Whether this is one of them. Who guesses one is right once in 2^40.
    pub(crate) fn contains(self, id: &[u8]) -> bool {
        id.len() == ID_LENGTH && HashedConnectionIdGenerator::from_key(self.0).validate(ConnectionId::new(id)).is_ok()
    }
}
