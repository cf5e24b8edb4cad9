//! Datagrams that came in one buffer, of one size but for the last, without what is before them.
//!
//! The parts of a batch have one size for the stack as well. So datagrams that do not fit behind each other any more
//! are handed out alone, in their order.

/// What is left of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stripped {
    /// Bytes at the beginning of the buffer, in datagrams of `stride` bytes; the last may be shorter.
    pub(super) length: usize,
    pub(super) stride: usize,
    /// Datagrams that come after those.
    pub(super) alone: Vec<Vec<u8>>,
}

/// Removes what is before the datagrams of `stride` bytes in this buffer; `receive` says how many bytes of a datagram
/// that is.
pub(super) fn strip(buffer: &mut [u8], stride: usize, mut receive: impl FnMut(&[u8]) -> usize) -> Stripped {
    let (whole, stride) = (buffer.len(), stride.max(1));
    let (mut read, mut ended, mut left) = (0, false, Stripped::default());
    while read < whole {
        let end = (read + stride).min(whole);
        let start = (read + receive(&buffer[read..end])).min(end);
        let length = end - start;
        read = end;
        if left.length == 0 && left.alone.is_empty() {
            left.stride = length;
        }
        if ended || length > left.stride {
            ended = true;
            left.alone.push(buffer[start..end].to_vec());
            continue;
        }
        // One that is shorter is the last of its batch.
        ended = length < left.stride;
        buffer.copy_within(start..end, left.length);
        left.length += length;
    }
    left
}
