//! Checksums of the internet, computed and changed.
//!
//! References: RFC 1071; RFC 1624, equation 3, for a change: HC' = ~(~HC + ~m + m'). So what was wrong before stays
//! wrong.

use std::ops::Range;

/// The ones' complement sum of these words; a byte that is left over has a zero behind it.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match *word {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    });
    fold(words.sum())
}

/// Adds the carries; there is none left after three times.
fn fold(sum: u64) -> u16 {
    let fold = |sum: u64| (sum & 0xffff) + (sum >> 16);
    fold(fold(fold(sum))) as u16
}

/// The checksum of these bytes: zero if a right one is among them.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// Changes what stands in `place`, and the checksum of `bytes`, whose first byte is at `checksum`, by the difference.
/// Nothing happens if they are too short.
pub(crate) fn change(bytes: &mut [u8], checksum: usize, place: Range<usize>, change: impl FnOnce(&mut [u8])) {
    let words = (place.start / 2 * 2)..place.end.next_multiple_of(2).min(bytes.len());
    let old = bytes.get(words.clone()).map(sum);
    let Some((old, changed)) = old.zip(bytes.get_mut(place)) else { return };
    change(changed);
    let new = bytes.get(words).map_or(old, sum);
    if let Some(field) = bytes.get_mut(checksum..).and_then(<[u8]>::first_chunk_mut) {
        let before = !u16::from_be_bytes(*field);
        *field = (!fold([before, !old, new].into_iter().map(u64::from).sum())).to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1624_ends_with_zero_and_not_with_its_complement() {
        let mut bytes = [0xdd, 0x2f, 0x55, 0x55];
        change(&mut bytes, 0, 2..4, |word| word.copy_from_slice(&[0x32, 0x85]));
        assert_eq!(bytes, [0, 0, 0x32, 0x85]);
    }

    #[test]
    fn what_is_too_short_stays() {
        let mut bytes = [1, 2, 3];
        change(&mut bytes, 0, 2..4, |_| unreachable!("there are three bytes"));
        change(&mut bytes, 2, 0..1, |byte| byte[0] = 9);
        assert_eq!(bytes, [9, 2, 3], "no place for a checksum");
    }

    proptest! {
        #[test]
        fn a_changed_checksum_is_that_of_all_bytes(
            mut bytes in prop::collection::vec(any::<u8>(), 6..40), new in prop::collection::vec(any::<u8>(), 0..8),
            place in 2_usize..32,
        ) {
            bytes[0..2].fill(0);
            // A header of zeros has none.
            bytes[2] |= 1;
            let right = checksum(&bytes);
            bytes[0..2].copy_from_slice(&right.to_be_bytes());
            let place = place..(place + new.len());
            prop_assume!(place.end <= bytes.len());
            change(&mut bytes, 0, place, |old| old.copy_from_slice(&new));
            prop_assert!(checksum(&bytes) == 0 || bytes[2..].iter().all(|byte| *byte == 0));
        }
    }
}
