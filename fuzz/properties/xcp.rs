//! XCP's congestion header, and a router that is shown packets.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::xcp::router::Router;
use flowstart_core::xcp::wire::{CongestionHeader, LENGTH};

/// Bytes that may begin with a congestion header: what is read is written again, and means the same.
pub fn congestion_header(data: &[u8]) -> bool {
    let Ok((header, protocol)) = CongestionHeader::parse(data) else { return false };
    assert_eq!(CongestionHeader::parse(&header.emit(protocol)), Ok((header, protocol)));
    true
}

/// A router: packets of 25 bytes: time since the last, size, queue, and a congestion header. What a packet asks for is
/// never raised.
pub fn xcp_router(data: &[u8]) -> bool {
    let mut router = Router::new(Default::default(), Rate::from_mbit(10));
    let mut now = Timestamp::ZERO;
    let mut any = false;
    for packet in data.chunks_exact(5 + LENGTH) {
        now += Duration::from_micros(u64::from(packet[0]) * u64::from(packet[0]) * 50);
        let size = Bytes::new(u64::from(u16::from_be_bytes([packet[1], packet[2]])));
        let queue = Bytes::new(u64::from(u16::from_be_bytes([packet[3], packet[4]])));
        let header = CongestionHeader::parse(&packet[5..]).ok().map(|(header, _)| header);
        any |= header.is_some();
        router.on_arrival(now, size, header.as_ref(), queue);
        let mut left = header;
        router.on_departure(now, size, left.as_mut(), queue);
        if let (Some(header), Some(left)) = (header, left) {
            assert!(left.delta_throughput <= header.delta_throughput, "a router only lowers");
        }
    }
    any
}
