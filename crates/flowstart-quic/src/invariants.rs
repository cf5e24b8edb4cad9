//! What every datagram of QUIC shows to those who have no keys.
//!
//! Reference: RFC 8999, sections 5 and 6.

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
