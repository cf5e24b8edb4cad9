//! This host's knowledge about its access link, as a hint for a server.

use std::net::IpAddr;

use flowstart_core::path::AccessTechnology;
use flowstart_core::quantize::Grid;
use flowstart_core::time::Duration;
#[cfg(target_os = "linux")]
use flowstart_core::units::Bytes;
use flowstart_core::units::Rate;
use flowstart_quic::hint::BandwidthHint;
use flowstart_sensing::estimator::gateway;
#[cfg(target_os = "linux")]
use flowstart_sensing::estimator::wifi;
use flowstart_sensing::interface;

/// The time limit.
const ESTIMATION: Duration = Duration::from_millis(1000);

/// The rate of this host's access towards `server`: the lower of the gateway's and the Wi-Fi's rate, else the speed of
/// the interface. It is rounded down on the grid of hints. Blocks.
pub fn estimated(server: IpAddr) -> Option<BandwidthHint> {
    let told = |bandwidth, technology| BandwidthHint { rate: bandwidth, technology, age: Duration::ZERO };
    let by_interface = || {
        let speed = interface::Config::default().speed_towards(server).ok().flatten()?;
        Some(told(speed, AccessTechnology::Unknown))
    };
    let patience = gateway::Config { search_bound: ESTIMATION, question_bound: ESTIMATION };
    // Neither a gateway nor an access point has to be there, and neither is on the way to this host itself.
    let by_gateway = || gateway::link_properties(&patience).ok()?.hint();
    let outside = !server.is_loopback();
    let gateway = outside.then(by_gateway).flatten().map(|hint| told(hint.bandwidth, hint.technology));
    let wifi = outside.then(|| wifi_rate(server)).flatten().map(|rate| told(rate, AccessTechnology::Wifi));
    let lowest = [gateway, wifi].into_iter().flatten().min_by_key(|hint| hint.rate);
    lowest.or_else(by_interface)?.quantized(&Grid::default())
}

/// What the access point sends to this host, as IP packets see it.
#[cfg(target_os = "linux")]
fn wifi_rate(server: IpAddr) -> Option<Rate> {
    let name = interface::interface_towards(server).ok()??;
    let modulation = wifi::station(&name, ESTIMATION).ok()??.receive?;
    Some(wifi::ip_rate(modulation.phy_rate()?, modulation.generation, Bytes::new(1500)))
}

/// What the access point sends to this host: not told here.
#[cfg(not(target_os = "linux"))]
fn wifi_rate(_: IpAddr) -> Option<Rate> {
    None
}
