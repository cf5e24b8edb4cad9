//! The physical limit of a transfer: how long it would take if nobody had to learn anything.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::transport::profile::{Opening, Profile};

use crate::spec::link::Link;

/// The shortest possible time from the first packet of the handshake to the last payload byte at the receiver.
///
/// The handshake and the first half of the way take 1.5 RTT when the data sender opens, 2 RTT with a request and 1 RTT
/// with 0-RTT. Then the wire bytes take their time at the link's rate, and each further hop adds one packet's time. On a
/// recorded trace the bytes take the opportunities that follow, `start` being when the transfer starts.
pub fn ideal_fct(link: &Link, profile: &Profile, size: Bytes, start: Timestamp) -> Duration {
    let rtt = link.rtt + link.access_delay * 4;
    let handshake = match profile.opening {
        Opening::Sender => rtt + rtt / 2,
        Opening::Request => rtt * 2,
        Opening::ZeroRtt => rtt,
    };
    let payload = u64::from(profile.payload);
    let packets = size.get().div_ceil(payload);
    let last = size.get() - (packets - 1) * payload;
    let wire = Bytes::new(size.get() + packets * u64::from(profile.overhead));
    let last_wire = Bytes::new(last + u64::from(profile.overhead));
    let serialization = match &link.trace {
        None => link.rate.time_for(wire),
        Some(trace) => {
            let sending = start + handshake.saturating_sub(rtt / 2);
            trace.finish_after(sending, wire).since(sending)
        }
    };
    let further_hops = link.rate.time_for(last_wire) * u64::from(link.hops - 1) + link.access_rate.time_for(last_wire);
    handshake + serialization + further_hops
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn link(text: &str) -> Link {
        Link::parse("--link", text, Path::new(".")).unwrap()
    }

    #[test]
    fn it_is_handshake_plus_serialization() {
        let profile = Profile::named("ns2-sack1").unwrap();
        // 100 packets of 1500 bytes at 10 Mbit/s: 120 ms; 1.5 * 80 ms; one more packet time (1.2 ms) for the second hop
        // and 1.2 us for the receiver's access link at 10 Gbit/s.
        let ideal = ideal_fct(&link("rate=10mbit,rtt=80ms,hops=2"), &profile, Bytes::new(146_000), Timestamp::ZERO);
        assert_eq!(ideal, Duration::from_nanos(120_000_000 + 120_000_000 + 1_200_000 + 1_200));
    }

    #[test]
    fn the_opening_decides_the_round_trips() {
        let base = Profile::named("rfc9002").unwrap();
        let zero = Profile { opening: Opening::ZeroRtt, ..base.clone() };
        let ideal = |profile| ideal_fct(&link("rate=10mbit,rtt=80ms"), profile, Bytes::new(1165), Timestamp::ZERO);
        assert_eq!(ideal(&base).saturating_sub(ideal(&zero)), Duration::from_millis(80));
    }
}
