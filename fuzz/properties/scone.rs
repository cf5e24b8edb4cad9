//! SCONE packets, elements and endpoints that are shown them, and a socket's datagrams that may begin with them.

#[path = "../../crates/flowstart-quic/src/scone/batch.rs"]
mod batch;
#[path = "../../crates/flowstart-quic/src/scone/datagram.rs"]
#[allow(dead_code, reason = "the socket uses all of it")]
mod datagram;
#[path = "../../crates/flowstart-quic/src/invariants.rs"]
#[allow(dead_code, reason = "the socket uses all of it")]
mod invariants;

use flowstart_core::rng::mix;
use flowstart_core::scone::element::{Config, Element};
use flowstart_core::scone::endpoint::{Advice, Offers};
use flowstart_core::scone::wire::{RateSignal, SconePacket, lower};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;

use batch::strip;
use datagram::{Beginning, beginning};
use invariants::{ID_LENGTH, MAX_ID, connection_ids};

/// A datagram that may begin with a SCONE packet: what is read is written again, and an element only lowers its signal.
pub fn scone_packet(data: &[u8]) -> bool {
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

/// A datagram from the network: a signal belongs to the packet behind it, and something is left for the stack.
pub fn scone_datagram(data: &[u8]) -> bool {
    for length in 0..=MAX_ID {
        if let Some((destination, source)) = connection_ids(data, length) {
            assert!(destination.len() + source.len() < data.len());
        }
    }
    match beginning(data) {
        Beginning::Other => false,
        Beginning::Signal { signal, destination, length } => {
            let (packet, rest) = SconePacket::parse(data).expect("a signal is in a whole packet");
            assert_eq!((packet.signal(), packet.len(), rest), (signal, length, &data[length..]));
            let behind = connection_ids(rest, ID_LENGTH);
            assert_eq!(behind, Some((destination, packet.source())));
            true
        }
        Beginning::Malformed { length } => {
            assert!(length.is_none_or(|length| length < data.len()));
            true
        }
    }
}

/// How many bytes of a datagram are not for the stack.
fn before(datagram: &[u8]) -> usize {
    match beginning(datagram) {
        Beginning::Other | Beginning::Malformed { length: None } => 0,
        Beginning::Signal { length, .. } | Beginning::Malformed { length: Some(length) } => length,
    }
}

/// A batch from the network, the size of its datagrams first: the stack gets each of them, in their order.
pub fn scone_batch(data: &[u8]) -> bool {
    let Some((&stride, datagrams)) = data.split_first() else { return false };
    let stride = usize::from(stride).max(1);
    let wanted: Vec<&[u8]> = datagrams.chunks(stride).map(|datagram| &datagram[before(datagram)..]).collect();
    let mut buffer = datagrams.to_vec();
    let left = strip(&mut buffer, stride, before);
    let together = buffer[..left.length].chunks(left.stride.max(1));
    let got: Vec<&[u8]> = together.chain(left.alone.iter().map(Vec::as_slice)).collect();
    assert_eq!(got, wanted);
    datagrams.len() > stride && wanted.iter().any(|datagram| datagram.len() < stride)
}
