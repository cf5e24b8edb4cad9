//! What an element at a link of a relay or of a router advises in SCONE packets.

use flowstart_core::scone::element::Element;
use flowstart_core::scone::wire::{RateSignal, SconePacket, WireError};
use flowstart_core::time::Timestamp;

/// Bytes of a SCONE packet without connection IDs.
const SHORTEST: usize = 7;

/// SCONE packets that elements have seen, in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// All that are whole.
    pub seen: u64,
    /// Of those, the ones whose signal was lowered.
    pub lowered: u64,
    /// Beginnings of SCONE packets that do not end, or with nothing behind them; they pass as they are.
    pub malformed: u64,
}

/// A datagram passes an element: the signal that it gets, if that is lower than its own.
pub(crate) fn advised(
    element: &mut Element,
    datagram: &[u8],
    flow: u32,
    now: Timestamp,
    signals: &mut Signals,
) -> Option<RateSignal> {
    let signal = match SconePacket::parse(datagram) {
        Ok((packet, _)) => packet.signal(),
        // A shorter datagram is no SCONE packet for anybody.
        Err(WireError::Truncated { bytes }) if bytes < SHORTEST => return None,
        Err(WireError::Truncated { .. } | WireError::Alone) => {
            signals.malformed += 1;
            return None;
        }
        Err(_) => return None,
    };
    signals.seen += 1;
    let advised = Some(element.on_signal(now, flow.into(), signal)).filter(|advised| *advised < signal);
    signals.lowered += u64::from(advised.is_some());
    advised
}

#[cfg(test)]
mod tests {
    use flowstart_core::scone::element::Config;
    use flowstart_core::scone::wire::lower;
    use flowstart_core::units::Rate;

    use super::*;

    #[test]
    fn an_element_lowers_whole_scone_packets_and_leaves_the_rest() {
        let mut element = Element::new(Config::new(Rate::from_mbit(10)));
        let mut signals = Signals::default();
        let mut pass = |datagram: &[u8]| {
            let mut passed = datagram.to_vec();
            if let Some(advised) = advised(&mut element, datagram, 1, Timestamp::ZERO, &mut signals) {
                assert!(lower(&mut passed, advised), "only what is lower is told");
            }
            (passed == datagram, SconePacket::parse(&passed).ok().map(|(packet, _)| packet.signal().bits()))
        };
        let mut scone = Vec::new();
        SconePacket::new(&[7; 8], &[]).unwrap().emit(&mut scone);
        let alone = scone.clone();
        scone.push(0x40);
        // 10 Mbit/s is n = 40 exactly.
        assert_eq!(pass(&scone), (false, Some(40)));
        lower(&mut scone, RateSignal::from_bits(30));
        assert_eq!(pass(&scone), (true, Some(30)), "a signal is never raised");
        for other in [&alone[..], &alone[..9], &[], &[0xc0, 0, 0, 0, 1, 0, 0, 0], &[0x40; 1200]] {
            assert_eq!(pass(other), (true, None));
        }
        assert_eq!(signals, Signals { seen: 2, lowered: 1, malformed: 2 });
    }
}
