//! A name for the access network through which connections leave, so what was learned in one is not used in another.
//!
//! Reference: Linux, `/proc/net/route`, `/proc/net/ipv6_route` and `/proc/net/arp` (proc(5)); Rüth et al.,
//! "Blitz-starting QUIC Connections" (2019), section 3.1, whose past maximum belongs to a network. The name is the
//! address of the default gateway on the interface that the kernel chooses, and with IPv4 the gateway's own address on
//! the link, because half of all homes have a gateway 192.168.1.1.
//!
//! Differences from the reference: it does not say what tells networks apart. A gateway that was replaced is a new
//! network. Routes to a destination other than the default one are not followed: a tunnel has no gateway, and a host of
//! the own network is no access network.
//!
//! Status: worked examples of the kernel's files, and arbitrary text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
#[cfg(target_os = "linux")]
use std::path::Path;

#[cfg(target_os = "linux")]
use crate::interface::{InterfaceError, interface_towards};

/// `RTF_GATEWAY` of the kernel's route.h: the route leads over a gateway.
const RTF_GATEWAY: u32 = 2;

/// The name of the network through which packets to `destination` leave this host; `None` if they do not pass a
/// gateway.
///
/// # Errors
///
/// Why the route cannot be told.
#[cfg(target_os = "linux")]
pub fn access_network_towards(destination: IpAddr) -> Result<Option<String>, InterfaceError> {
    let Some(interface) = interface_towards(destination)? else { return Ok(None) };
    let read = |file: &str| match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        // A kernel without this version of IP.
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(cause) => Err(InterfaceError::Io { path: Path::new(file).into(), cause }),
    };
    if destination.to_canonical().is_ipv6() {
        let gateway = told_gateway_v6(&read("/proc/net/ipv6_route")?, &interface);
        return Ok(gateway.map(|gateway| format!("{gateway} on {interface}")));
    }
    let Some(gateway) = told_gateway_v4(&read("/proc/net/route")?, &interface) else { return Ok(None) };
    let neighbour = told_neighbour(&read("/proc/net/arp")?, gateway, &interface);
    Ok(Some(format!("{gateway} ({}) on {interface}", neighbour.unwrap_or_else(|| "unknown".into()))))
}

/// The gateway of the default route over `interface`, from `/proc/net/route`; of several the one with the lowest
/// metric.
pub fn told_gateway_v4(routes: &str, interface: &str) -> Option<Ipv4Addr> {
    let default = routes.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, "00000000", gateway, flags, _, _, metric, "00000000", ..] = fields[..] else { return None };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        if name != interface || flags & RTF_GATEWAY == 0 {
            return None;
        }
        // In the byte order of the machine that the kernel printed it on.
        let gateway = Ipv4Addr::from(u32::from_str_radix(gateway, 16).ok()?.to_ne_bytes());
        Some((metric.parse::<u32>().ok()?, gateway))
    });
    default.min().map(|(_, gateway)| gateway)
}

/// The gateway of the default route over `interface`, from `/proc/net/ipv6_route`; of several the one with the lowest
/// metric.
pub fn told_gateway_v6(routes: &str, interface: &str) -> Option<Ipv6Addr> {
    const ANY: &str = "00000000000000000000000000000000";
    let default = routes.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [ANY, "00", _, _, gateway, metric, _, _, flags, name] = fields[..] else { return None };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        if name != interface || flags & RTF_GATEWAY == 0 || gateway.len() != ANY.len() {
            return None;
        }
        let gateway = Ipv6Addr::from(u128::from_str_radix(gateway, 16).ok()?);
        Some((u32::from_str_radix(metric, 16).ok()?, gateway))
    });
    default.min().map(|(_, gateway)| gateway)
}

/// The address of a neighbour on the link, from `/proc/net/arp`; `None` while it is not resolved.
pub fn told_neighbour(neighbours: &str, address: Ipv4Addr, interface: &str) -> Option<String> {
    let address = address.to_string();
    neighbours.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [ip, _, _, link, _, name] = fields[..] else { return None };
        let is_resolved = link.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0');
        (ip == address && name == interface && is_resolved).then(|| link.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t00000000\t0102000A\t0003\t0\t0\t20\t00000000\t0\t0\t0
eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_default_gateway_is_that_of_the_interface_with_the_lowest_metric() {
        assert_eq!(told_gateway_v4(ROUTES, "wlan0"), Some(Ipv4Addr::new(192, 168, 1, 1)));
        assert_eq!(told_gateway_v4(ROUTES, "eth0"), Some(Ipv4Addr::new(10, 0, 2, 1)));
        assert_eq!(told_gateway_v4(ROUTES, "tun0"), None, "a tunnel has no gateway");
        assert_eq!(told_gateway_v4(ROUTES, "eth1"), None);
    }

    #[test]
    fn of_ipv6_too() {
        let any = "0".repeat(32);
        let routes = format!(
            "{any} 00 {any} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 wlan0\n\
             {any} 00 {any} 00 {any} ffffffff 00000001 00000000 00200200 lo\n"
        );
        assert_eq!(told_gateway_v6(&routes, "wlan0"), Some("fe80::1".parse().unwrap()));
        assert_eq!(told_gateway_v6(&routes, "lo"), None);
    }

    #[test]
    fn a_gateway_has_an_address_on_its_link() {
        let neighbours = "IP address       HW type     Flags       HW address            Mask     Device\n\
                          192.168.1.1      0x1         0x2         aa:bb:cc:00:11:22     *        wlan0\n\
                          192.168.1.9      0x1         0x0         00:00:00:00:00:00     *        wlan0\n";
        let of = |last, interface| told_neighbour(neighbours, Ipv4Addr::new(192, 168, 1, last), interface);
        assert_eq!(of(1, "wlan0").as_deref(), Some("aa:bb:cc:00:11:22"));
        assert_eq!((of(1, "eth0"), of(9, "wlan0"), of(7, "wlan0")), (None, None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_host_itself_is_no_network() {
        assert_eq!(access_network_towards(Ipv4Addr::LOCALHOST.into()).unwrap(), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", columns in prop::collection::vec("[0-9a-f]{0,40}", 0..12)) {
            for text in [text, columns.join(" ")] {
                let _ = (told_gateway_v4(&text, "a"), told_gateway_v6(&text, "a"));
                let _ = told_neighbour(&text, Ipv4Addr::LOCALHOST, "a");
            }
        }
    }
}
