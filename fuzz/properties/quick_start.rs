//! Quick-Start's options, and routers that are shown them.

use flowstart_core::quick_start::host::respond;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::router::{Algorithm, Behaviour, Config, Router, UtilizationConfig, Verdict};
use flowstart_core::quick_start::router::{extreme, target};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH, Response};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

/// Bytes that may begin with an option, or be the options of a header: what is read is written again, and means the
/// same.
pub fn quick_start_option(data: &[u8]) -> bool {
    let mut read = false;
    for version in [IpVersion::V4, IpVersion::V6] {
        if let Ok(option) = IpOption::parse(version, data) {
            assert_eq!(IpOption::parse(version, &option.emit(version)), Ok(option));
            if let Some(response) = respond(option, 64) {
                assert_eq!(Response::parse(&response.emit()), Ok(response));
            }
            read = true;
        }
        if let Ok(Some((place, option))) = IpOption::find(version, data) {
            assert_eq!(IpOption::among(version, &option.emit(version)), Ok(Some(option)));
            let mut filled = data.to_vec();
            filled[place..place + LENGTH].copy_from_slice(&version.filling());
            assert_eq!(IpOption::among(version, &filled), Ok(None));
            read = true;
        }
    }
    if let Ok(response) = Response::parse(data) {
        assert_eq!(Response::parse(&response.emit()), Ok(response));
        read = true;
    }
    read
}

/// A router: its kind, then packets of twelve bytes: time since the last, flow, size, and an option.
pub fn quick_start_router(data: &[u8]) -> bool {
    let Some((kind, packets)) = data.split_first() else { return false };
    let behaviours = [
        Behaviour::Participate,
        Behaviour::ApproveAll,
        Behaviour::Ignore,
        Behaviour::Zero,
        Behaviour::Delete,
        Behaviour::Drop,
        Behaviour::Hidden,
    ];
    let target = target::Config {
        flows: if kind & 0x20 == 0 { 0 } else { 4 },
        provisional: (kind & 0x60 == 0x60).then(|| Duration::from_millis(80)),
        requests_per_second: (kind & 0x80 != 0).then_some(100),
        ..target::Config::default()
    };
    let extreme = extreme::Config { flows: if kind & 0x20 == 0 { 1024 } else { 4 }, ..extreme::Config::default() };
    let config = Config {
        algorithm: if kind & 1 == 0 { Algorithm::Target(target) } else { Algorithm::Extreme(extreme) },
        utilization: if kind & 2 == 0 {
            UtilizationConfig::default()
        } else {
            UtilizationConfig::MovingAverage(Default::default())
        },
        behaviour: behaviours[usize::from(kind >> 2 & 0x7) % behaviours.len()],
        ..Config::default()
    };
    let bandwidth = Rate::from_mbit(10);
    let mut router = Router::new(config, bandwidth);
    let mut rng = Substream::new(1, "fuzz", 0);
    let mut now = Timestamp::ZERO;
    let mut any = false;
    for packet in packets.chunks_exact(4 + LENGTH) {
        now += Duration::from_micros(u64::from(packet[0]) * u64::from(packet[0]) * 50);
        let (flow, size) = (u64::from(packet[1]), u64::from(u16::from_be_bytes([packet[2], packet[3]])));
        if let Ok(option) = IpOption::parse(IpVersion::V4, &packet[4..]) {
            any = true;
            let verdict = router.on_option(now, flow, option, &mut rng);
            if let (IpOption::RateRequest { rate, .. }, Verdict::Forward(IpOption::RateRequest { rate: left, .. })) =
                (option, verdict)
            {
                assert!(left <= rate, "a router never approves more than was asked for");
                let honest = matches!(config.behaviour, Behaviour::Participate);
                assert!(!honest || left.rate() <= bandwidth, "nor more than its link carries");
            }
            if let (
                IpOption::RateConfirmation { rate, .. },
                Verdict::Forward(IpOption::RateConfirmation { rate: left, .. }),
            ) = (option, verdict)
            {
                assert!(left == rate || left == RateCode::ZERO, "a second pass is confirmed or refused, never reduced");
            }
        }
        router.on_departure(now, Bytes::new(size), flow);
    }
    any
}
