//! SCONE packets, and elements and endpoints that are shown them.

use flowstart_core::rng::mix;
use flowstart_core::scone::element::{Config, Element};
use flowstart_core::scone::endpoint::{Advice, Offers};
use flowstart_core::scone::wire::{RateSignal, SconePacket, is_indicated, lower};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;

/// A datagram that may begin with a SCONE packet: what is read is written again, and an element only lowers its signal.
pub fn scone_packet(data: &[u8]) -> bool {
    let _ = is_indicated(data);
    let Ok((packet, rest)) = SconePacket::parse(data) else { return false };
    let mut written = Vec::new();
    packet.emit(&mut written);
    assert_eq!(written.len(), packet.len());
    written.extend_from_slice(rest);
    assert_eq!(SconePacket::parse(&written), Ok((packet, rest)));
    let advised = RateSignal::from_bits(data[0]);
    let changed = lower(&mut written, advised);
    let after = SconePacket::parse(&written).map(|(packet, _)| packet.signal());
    assert_eq!((after, changed), (Ok(packet.signal().min(advised)), advised < packet.signal()));
    true
}

/// A path: the parameters of an element, then packets of four bytes: time since the last, flow, signal, and whether the
/// element sees it.
pub fn scone_path(data: &[u8]) -> bool {
    let Some((&[rate, refresh, first], packets)) = data.split_first_chunk() else { return false };
    let config = Config {
        rate: Rate::from_bits_per_sec(1000 << (rate % 40)),
        refresh: (refresh > 0).then(|| Duration::from_millis(u64::from(refresh) * 400)),
        first: u32::from(first),
    };
    if config.validate().is_err() {
        return false;
    }
    let (mut element, mut offers, mut advice) = (Element::new(config), Offers::default(), Advice::default());
    let mut now = Timestamp::ZERO;
    for &[wait, flow, signal, passes] in packets.as_chunks().0 {
        now += Duration::from_millis(u64::from(wait) * u64::from(wait) * 2);
        let _ = offers.take(now);
        let signal = RateSignal::from_bits(signal);
        let left = if passes & 1 == 0 { element.on_signal(now, mix(u64::from(flow)), signal) } else { signal };
        assert!(left <= signal, "an element never raises");
        advice.on_signal(now, left);
        assert!(advice.signal(now) <= left, "the lowest counts");
    }
    !packets.is_empty()
}
