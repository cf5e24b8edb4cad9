//! What a packet costs a router with a Quick-Start router at its link.
//!
//! [`of_rule`] is the time to read a packet in memory, to decide on its option and to write it. [`of_forwarding`] is
//! the CPU time of a whole router: it also takes the packet from the system, puts it on the link, waits for its time,
//! and gives it back, and the system hands it to the other end meanwhile.

use std::hint::black_box;
use std::io;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::{Duration as StdDuration, Instant};

use flowstart_core::quick_start::router::Config;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_datagram::Header;
use flowstart_sim::link::LinkConfig;

use crate::dumbbell::{CLIENTS, Dumbbell, DumbbellError, SERVERS};
use crate::packet::Packet;
use crate::quick_start::{LinkRouter, Options};
use crate::router::Path;

/// The port that packets go to.
const PORT: u16 = 4000;
/// Packets that are sent before the router gets time to take them: less than its device holds.
const BURST: u32 = 500;
/// A link on which no packet waits; the router at it may be told less.
const FAST: Rate = Rate::from_mbit(1_000_000);
/// How long the router gets for the last of them.
const REST: StdDuration = StdDuration::from_millis(100);

/// Nanoseconds of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The mean over all packets.
    pub nanos: f64,
    /// What became of their options.
    pub seen: Options,
}

/// A packet that comes again and again, `step` later each time beside the time that passes.
/// One that cannot be read costs what it takes to find that out.
pub fn of_rule(config: Config, bandwidth: Rate, packet: &[u8], step: Duration, packets: u32) -> Cost {
    let (mut router, mut seen) = (LinkRouter::new(config, bandwidth, 1), Options::default());
    let mut bytes = packet.to_vec();
    let began = Instant::now();
    for _ in 0..packets {
        black_box(&mut bytes).copy_from_slice(black_box(packet));
    }
    let copying = began.elapsed();
    let (began, mut later) = (Instant::now(), Duration::ZERO);
    for _ in 0..packets {
        black_box(&mut bytes).copy_from_slice(black_box(packet));
        later += step;
        let now = Timestamp::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)) + later;
        if let Ok(packet) = Packet::read(&bytes)
            && let Some(ttl) = router.on_packet(now, &packet, &mut bytes, packet.ttl, &mut seen)
        {
            if ttl != packet.ttl {
                packet.set_ttl(&mut bytes, ttl);
            }
            router.on_departure(now, packet.length as u32, packet.flow);
        }
    }
    let took = began.elapsed().saturating_sub(copying);
    Cost { nanos: took.as_nanos() as f64 / f64::from(packets.max(1)), seen }
}

/// Datagrams with this payload and these options, through a whole router between two network namespaces.
///
/// # Errors
///
/// [`DumbbellError`]; also where no packet came to the link.
pub fn of_forwarding(
    config: Config,
    bandwidth: Rate,
    options: &[u8],
    payload: &[u8],
    packets: u32,
) -> Result<Cost, DumbbellError> {
    let link = LinkConfig::new(FAST, Duration::ZERO);
    let path = Path {
        down: link.clone(),
        up: link,
        quick_start: Some((config, bandwidth)),
        advice: None,
        decrement_ttl: false,
        seed: 1,
    };
    let testbed = Dumbbell::new(&path)?;
    let unusable = |cause: io::Error| DumbbellError::Thread(format!("no packets can be sent through it: {cause}"));
    let client = testbed.clients.within(|| UdpSocket::bind((CLIENTS, PORT))).map_err(unusable)?;
    let server = testbed.servers.within(|| UdpSocket::bind((SERVERS, PORT))).map_err(unusable)?;
    server.connect((CLIENTS, PORT)).map_err(unusable)?;
    let header = Header { options, ..Header::default() };
    for number in 1..=packets {
        flowstart_datagram::send(&server, payload, None, &header).map_err(unusable)?;
        if number % BURST == 0 {
            sleep(StdDuration::from_millis(1));
        }
    }
    sleep(REST);
    let ended = testbed.end_with_cost()?;
    drop(client);
    let came = ended.told.down.link.departed;
    if came == 0 {
        return Err(DumbbellError::Thread("no packet came to its link".into()));
    }
    Ok(Cost { nanos: ended.cpu_time.as_nanos() as f64 / came as f64, seen: ended.told.quick_start })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with a request for the highest rate in its option, and without one.
    const WITH: [u8; 28] =
        [0x47, 0, 0, 0x1c, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 25, 8, 0x0f, 64, 1, 2, 3, 4];

    fn sealed(mut packet: [u8; 28]) -> [u8; 28] {
        let checksum = crate::checksum::checksum(&packet).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
        packet
    }

    #[test]
    fn every_packet_is_routed_as_the_first() {
        let step = Duration::from_millis(300);
        let cost = of_rule(Config::default(), Rate::from_mbit(20), &sealed(WITH), step, 1000);
        // What was approved is over when the next one comes.
        assert_eq!(cost.seen, Options { requests: 1000, reduced: 1000, ..Options::default() });
        assert!(cost.nanos > 0.0, "{cost:?}");
        let cost = of_rule(Config::default(), Rate::from_mbit(20), &WITH, step, 1000);
        assert_eq!(cost.seen, Options::default(), "a checksum that is wrong");
    }

    fn is_root() -> bool {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
    }

    #[test]
    fn a_whole_router_counts_what_it_forwards() {
        let option = &sealed(WITH)[20..];
        match of_forwarding(Config::default(), Rate::from_mbit(10_000), option, &[7; 100], 600) {
            Ok(cost) => assert!(cost.nanos > 0.0 && cost.seen.requests > 0, "{cost:?}"),
            // Root has them wherever all tests must run.
            Err(why) if std::env::var_os("CI").is_some() && is_root() => panic!("{why}"),
            Err(DumbbellError::Namespace(why)) => println!("skipped: {why}"),
            Err(DumbbellError::Port(why)) => println!("skipped: {why}"),
            Err(other) => panic!("{other}"),
        }
    }
}
