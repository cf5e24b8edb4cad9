//! What every datagram of QUIC shows to those who have no keys, and which connection IDs are an endpoint's own.
//!
//! Reference: RFC 8999, sections 5 and 6.

use std::sync::Arc;

use noq_proto::{ConnectionId, ConnectionIdGenerator, EndpointConfig, HashedConnectionIdGenerator};

/// Bytes of the connection IDs that noq gives out.
pub(crate) const ID_LENGTH: usize = 8;
/// Longest connection ID of QUIC version 1 (RFC 9000, section 17.2).
pub(crate) const MAX_ID: usize = 20;
/// Header form of a long header.
const LONG: u8 = 0x80;

/// Whether a datagram begins with a long header.
pub(crate) fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG != 0)
}

/// Whether a datagram begins with Version Negotiation (RFC 8999, section 6), which belongs to no connection.
pub(crate) fn is_version_negotiation(datagram: &[u8]) -> bool {
    is_long(datagram) && datagram.get(1..5) == Some(&[0; 4])
}

/// Destination and source connection ID of a datagram's first packet (RFC 8999, section 5). A short header does not
/// tell the length of its ID.
pub(crate) fn connection_ids(datagram: &[u8], id_length: usize) -> Option<(&[u8], &[u8])> {
    if !is_long(datagram) {
        return Some((datagram.get(1..=id_length)?, &[]));
    }
    let id = |bytes| -> Option<(_, _)> {
        let (length, rest): (&u8, &[u8]) = <[u8]>::split_first(bytes)?;
        rest.split_at_checked(usize::from(*length))
    };
    let (destination, rest) = id(datagram.get(5..)?)?;
    Some((destination, id(rest)?.0))
}

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
