//! Variable-length integers of QUIC (RFC 9000, section 16).

/// Largest number that can be written.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// A number at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Varint<'a> {
    pub(crate) value: u64,
    /// Written in as few bytes as possible.
    pub(crate) shortest: bool,
    /// The bytes after it.
    pub(crate) rest: &'a [u8],
}

/// The number at the start of `bytes`; `None` when they end before it does.
pub(crate) fn read(bytes: &[u8]) -> Option<Varint<'_>> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some(Varint { value, shortest: length(value) == number.len(), rest })
}

/// Bytes that a number takes.
pub(crate) const fn length(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends a number in as few bytes as possible. Callers know it to be at most [`MAX`].
pub(crate) fn write(value: u64, bytes: &mut Vec<u8>) {
    let length = length(value);
    // The two highest bits are the binary logarithm of the length.
    let prefix = u64::from(length.trailing_zeros()) << (length * 8 - 2);
    bytes.extend_from_slice(&(value.min(MAX) | prefix).to_be_bytes()[8 - length..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_read_and_written() {
        // RFC 9000, appendix A.1.
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(read(bytes), Some(Varint { value, shortest: true, rest: &[] }));
            let mut written = Vec::new();
            write(value, &mut written);
            assert_eq!(written, bytes);
        }
        assert_eq!(read(&[0x40, 0x25]), Some(Varint { value: 37, shortest: false, rest: &[] }));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value in 0..=MAX, rest in prop::collection::vec(any::<u8>(), 0..4)) {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            prop_assert_eq!(bytes.len(), length(value));
            prop_assert_eq!(read(&bytes[..bytes.len() - 1]), None);
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(read(&bytes), Some(Varint { value, shortest: true, rest: &rest }));
        }
    }
}
