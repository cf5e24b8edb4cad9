//! Where in a datagram a SCONE packet ends.
//!
//! A SCONE packet that a path has damaged must not take the packet behind it along. So the packet behind is looked for
//! if the first bytes differ from a SCONE packet's in no more than one bit.

use flowstart_core::scone::wire::{RateSignal, SconePacket, VERSION_EVEN, VERSION_ODD};

use super::invariants::{ID_LENGTH, MAX_ID, connection_ids, is_long};

/// Bytes of a SCONE packet before its destination connection ID.
const START: usize = 6;
/// What a datagram begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning<'a> {
    /// No SCONE packet.
    Other,
    /// A SCONE packet that belongs to the packet behind it.
    Signal {
        signal: RateSignal,
        /// The connection ID of both.
        destination: &'a [u8],
        length: usize,
    },
    /// A SCONE packet that is damaged or belongs to another packet, and where the packet behind begins if it was found.
    Malformed { length: Option<usize> },
}

/// What a datagram begins with.
pub(super) fn beginning(datagram: &[u8]) -> Beginning<'_> {
    let Some(&[_, a, b, c, d]) = datagram.first_chunk() else { return Beginning::Other };
    let version = u32::from_be_bytes([a, b, c, d]);
    // The highest bit of the version is the signal's.
    let differs = ((version ^ VERSION_EVEN) & !(VERSION_EVEN ^ VERSION_ODD)).count_ones();
    match differs + u32::from(!is_long(datagram)) {
        0 => intact(datagram).unwrap_or_else(|| {
            let length = behind_id(datagram).or_else(|| behind_lengths(datagram));
            Beginning::Malformed { length }
        }),
        1 => match behind_id(datagram) {
            // A short header whose ID looks like the version of a SCONE packet.
            None if !is_long(datagram) => Beginning::Other,
            length => Beginning::Malformed { length },
        },
        _ => Beginning::Other,
    }
}

fn intact(datagram: &[u8]) -> Option<Beginning<'_>> {
    let (packet, rest) = SconePacket::parse(datagram).ok()?;
    let (destination, source) = connection_ids(rest, ID_LENGTH)?;
    let belongs = destination == packet.destination() && source == packet.source();
    let (signal, length) = (packet.signal(), packet.len());
    belongs.then_some(Beginning::Signal { signal, destination, length })
}

/// The packet behind is the one with the same destination connection ID, whatever the lengths say.
fn behind_id(datagram: &[u8]) -> Option<usize> {
    let after = START + ID_LENGTH + 1;
    let id = datagram.get(START..START + ID_LENGTH)?;
    (after..=after + MAX_ID).find(|at| {
        let behind = datagram.get(*at..).and_then(|rest| connection_ids(rest, ID_LENGTH));
        behind.is_some_and(|(destination, _)| destination == id)
    })
}

/// The packet behind is where the lengths say, whatever the connection IDs are.
fn behind_lengths(datagram: &[u8]) -> Option<usize> {
    let after = START + ID_LENGTH + 1;
    let source = datagram.get(after - 1).map(|length| usize::from(*length)).filter(|source| *source <= MAX_ID)?;
    let fits = datagram.get(START - 1) == Some(&(ID_LENGTH as u8)) && after + source < datagram.len();
    fits.then_some(after + source)
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use proptest::prelude::*;

    use super::*;

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    const OTHER: [u8; 8] = [0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8];

    /// A packet of version 1 from the one end to the other.
    pub(in super::super) fn long(destination: &[u8], source: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xc3, 0, 0, 0, 1, destination.len() as u8];
        packet.extend_from_slice(destination);
        packet.push(source.len() as u8);
        packet.extend_from_slice(source);
        packet.extend_from_slice(&[9; 100]);
        packet
    }

    /// A packet with a short header.
    pub(in super::super) fn short(destination: &[u8]) -> Vec<u8> {
        [&[0x43], destination, &[9; 100]].concat()
    }

    /// A datagram that begins with a SCONE packet, and the length of that packet.
    pub(in super::super) fn announced(packet: &[u8], signal: u8) -> (Vec<u8>, usize) {
        let (destination, source) = connection_ids(packet, ID_LENGTH).unwrap();
        let scone = SconePacket::new(destination, source).unwrap();
        let mut datagram = Vec::new();
        scone.emit(&mut datagram);
        datagram.extend_from_slice(packet);
        flowstart_core::scone::wire::lower(&mut datagram, RateSignal::from_bits(signal));
        (datagram, scone.len())
    }

    #[test]
    fn a_signal_before_either_header_is_read() {
        for packet in [long(&ID, &OTHER), long(&ID, &[]), short(&ID)] {
            let (datagram, length) = announced(&packet, 40);
            let signal = RateSignal::from_bits(40);
            assert_eq!(beginning(&datagram), Beginning::Signal { signal, destination: &ID, length });
            assert_eq!(beginning(&packet), Beginning::Other);
        }
        // Nothing behind it, and nothing at all.
        let (datagram, length) = announced(&short(&ID), 40);
        assert_eq!(beginning(&datagram[..length]), Beginning::Malformed { length: None });
        assert_eq!(beginning(&[]), Beginning::Other);
    }

    #[test]
    fn with_any_bit_flipped_the_packet_behind_is_found() {
        for packet in [long(&ID, &OTHER), short(&ID)] {
            let (datagram, length) = announced(&packet, 40);
            for bit in 0..length * 8 {
                let mut damaged = datagram.clone();
                damaged[bit / 8] ^= 0x80 >> (bit % 8);
                // Six bits of the signal are in the first byte, behind one without meaning; the seventh is the
                // version's.
                let is_signal = (1..9).contains(&bit);
                match beginning(&damaged) {
                    Beginning::Signal { length: found, .. } => assert!(is_signal && found == length, "bit {bit}"),
                    Beginning::Malformed { length: found } => {
                        assert_eq!((is_signal, found), (false, Some(length)), "bit {bit}");
                    }
                    Beginning::Other => panic!("bit {bit} hides the packet behind"),
                }
            }
        }
    }

    #[test]
    fn a_signal_for_another_packet_does_not_count() {
        let (mut datagram, length) = announced(&long(&OTHER, &ID), 40);
        datagram.truncate(length);
        datagram.extend_from_slice(&short(&ID));
        assert_eq!(beginning(&datagram), Beginning::Malformed { length: Some(length) });
    }

    proptest! {
        #[test]
        fn whatever_comes_something_is_left_of_it(
            start in prop::bool::ANY, bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let scone = [&[0xc0][..], &VERSION_EVEN.to_be_bytes()].concat();
            let datagram = if start { [scone, bytes].concat() } else { bytes };
            match beginning(&datagram) {
                Beginning::Other | Beginning::Malformed { length: None } => {}
                Beginning::Signal { length, .. } | Beginning::Malformed { length: Some(length) } => {
                    prop_assert!(length < datagram.len());
                }
            }
        }
    }
}
