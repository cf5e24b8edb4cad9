//! The speed of the interface through which a connection leaves: no launch needs to be faster.
//!
//! Reference: Linux, Documentation/ABI/testing/sysfs-class-net (`speed`, in Mbit/s) and networking/operstates; the
//! address that the kernel chooses for a connected UDP socket, before a packet is sent. The route to a destination
//! gives a local address, the address an interface, the interface its speed. A speed from the operator's configuration
//! overrides the kernel's.
//!
//! Differences from the reference: `-1`, `0`, a missing value and the kernel's refusal all mean "unknown". So do the
//! speeds of virtual interfaces, which are invented (10,000 for veth, 10 for TUN). VLANs and bonds pass on or add up
//! the speeds below them, so their speeds count. The ethtool ioctl is not used: `speed` in sysfs is the kernel's answer
//! to it.
//!
//! Status: worked examples on a copy of the tree, and the loopback of the host.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use flowstart_core::units::Rate;
use serde::{Deserialize, Serialize};

/// Longest name of an interface: `IFNAMSIZ` without the final zero.
const NAME_MAX: usize = 15;
/// `SPEED_UNKNOWN` of the kernel's ethtool.h where it is printed without a sign.
const SPEED_UNKNOWN: i64 = 4_294_967_295;
/// Virtual interfaces that have the speed of the interfaces below them, as `DEVTYPE` in their `uevent`.
const STACKED: [&str; 2] = ["vlan", "bond"];

/// Where speeds come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Speeds by the name of the interface, which count before what it says of itself. Default: none.
    pub speeds: BTreeMap<String, Rate>,
    /// Where sysfs is mounted. Default `/sys`.
    pub sysfs: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self { speeds: BTreeMap::new(), sysfs: PathBuf::from("/sys") }
    }
}

/// Why there is no answer. An interface that does not know its speed is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// It is not a valid name, and might lead elsewhere in the file system.
    #[error("`{0}` cannot be the name of an interface")]
    Name(String),
    /// No interface has this name.
    #[error("there is no interface `{0}`")]
    Missing(String),
    /// Its speed is no number.
    #[error("{path}: `{text}` is no speed")]
    Speed {
        /// The file.
        path: PathBuf,
        /// What it says.
        text: String,
    },
    /// A file could not be read.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The kernel has no route.
    #[error("no route to {destination}: {cause}")]
    Route {
        /// Where to.
        destination: IpAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The interfaces of this host could not be listed.
    #[error("the interfaces of this host cannot be listed: {0}")]
    List(#[source] io::Error),
}

impl Config {
    /// The speed of the interface `name`, `None` when neither the operator nor the kernel knows it.
    pub fn speed(&self, name: &str) -> Result<Option<Rate>, InterfaceError> {
        if name.is_empty() || name.len() > NAME_MAX || matches!(name, "." | "..") || name.contains(['/', '\0']) {
            return Err(InterfaceError::Name(name.into()));
        }
        let folder = self.sysfs.join("class/net").join(name);
        let missing = |path: &Path| path.try_exists().map(|exists| !exists);
        let io = |path: &Path, cause| InterfaceError::Io { path: path.into(), cause };
        if missing(&folder).map_err(|cause| io(&folder, cause))? {
            return Err(InterfaceError::Missing(name.into()));
        }
        if let Some(rate) = self.speeds.get(name) {
            return Ok(Some(*rate));
        }
        let device = folder.join("device");
        if missing(&device).map_err(|cause| io(&device, cause))? && !stacked(&folder.join("uevent"))? {
            return Ok(None);
        }
        let path = folder.join("speed");
        match std::fs::read_to_string(&path) {
            Ok(text) => told_speed(&text).map_err(|_| InterfaceError::Speed { path, text }),
            // The kernel's answers for an interface that is down, and for a driver without the question.
            Err(cause) if matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => Ok(None),
            Err(cause) if cause.kind() == ErrorKind::Unsupported => Ok(None),
            Err(cause) => Err(InterfaceError::Io { path, cause }),
        }
    }

    /// Whether an interface may tell a speed later that is unknown now: it is a device, and down.
    pub fn may_come_up(&self, name: &str) -> bool {
        let folder = self.sysfs.join("class/net").join(name);
        let state = std::fs::read_to_string(folder.join("operstate"));
        folder.join("device").exists() && state.is_ok_and(|state| state.trim() == "down")
    }

    /// Whether any interface has a speed that the operator or the kernel knows, or may have one when it is up. What
    /// cannot be read is not known.
    pub fn may_know_any_speed(&self) -> bool {
        if !self.speeds.is_empty() {
            return true;
        }
        let Ok(all) = std::fs::read_dir(self.sysfs.join("class/net")) else { return false };
        let mut names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.any(|name| matches!(self.speed(&name), Ok(Some(_))) || self.may_come_up(&name))
    }

    /// The speed of the interface through which packets to `destination` leave; `None` when it is unknown, or when they
    /// do not leave this host.
    #[cfg(target_os = "linux")]
    pub fn speed_towards(&self, destination: IpAddr) -> Result<Option<Rate>, InterfaceError> {
        let Some(name) = interface_towards(destination)? else { return Ok(None) };
        self.speed(&name)
    }
}

/// The value of `speed` in sysfs; `None` when the kernel does not know it.
pub fn told_speed(text: &str) -> Result<Option<Rate>, std::num::ParseIntError> {
    Ok(match text.trim().parse::<i64>()? {
        megabits @ 1..SPEED_UNKNOWN => Some(Rate::from_bits_per_sec(megabits as u64 * 1_000_000)),
        _ => None,
    })
}

/// Whether `uevent` in sysfs belongs to an interface that passes on the speed of the interfaces below it.
pub fn told_stacked(uevent: &str) -> bool {
    uevent.lines().filter_map(|line| line.strip_prefix("DEVTYPE=")).any(|kind| STACKED.contains(&kind))
}

/// Whether a virtual interface passes on the speed of the interfaces below it.
fn stacked(uevent: &Path) -> Result<bool, InterfaceError> {
    match std::fs::read_to_string(uevent) {
        Ok(text) => Ok(told_stacked(&text)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(InterfaceError::Io { path: uevent.into(), cause }),
    }
}

/// The address that this host would send from. No packet leaves.
fn source_towards(destination: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match destination {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // Any port except zero: the route does not depend on it, and discard (9) is harmless.
    socket.connect(SocketAddr::new(destination, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The name of the interface through which packets to `destination` leave; `None` when they stay on this host, or when
/// no interface has their source address. If several have it, the first one.
#[cfg(target_os = "linux")]
pub fn interface_towards(destination: IpAddr) -> Result<Option<String>, InterfaceError> {
    let destination = destination.to_canonical();
    let source = source_towards(destination).map_err(|cause| InterfaceError::Route { destination, cause })?;
    if source == destination || destination.is_loopback() {
        return Ok(None);
    }
    let interfaces = nix::ifaddrs::getifaddrs().map_err(|errno| InterfaceError::List(errno.into()))?;
    for interface in interfaces {
        let Some(address) = interface.address else { continue };
        let ip = address
            .as_sockaddr_in()
            .map(|v4| IpAddr::V4(v4.ip()))
            .or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())));
        if ip == Some(source) {
            return Ok(Some(interface.interface_name));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A tree with one interface.
    fn tree(name: &str, physical: bool, uevent: &str, speed: Option<&str>) -> (tempfile::TempDir, Config) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("class/net").join(name);
        fs::create_dir_all(&folder).unwrap();
        if physical {
            fs::create_dir(folder.join("device")).unwrap();
        }
        fs::write(folder.join("uevent"), uevent).unwrap();
        if let Some(speed) = speed {
            fs::write(folder.join("speed"), speed).unwrap();
        }
        let config = Config { sysfs: root.path().into(), ..Config::default() };
        (root, config)
    }

    #[test]
    fn a_card_tells_its_speed() {
        let (_root, config) = tree("eth0", true, "INTERFACE=eth0\nIFINDEX=2\n", Some("2500\n"));
        assert_eq!(config.speed("eth0").unwrap(), Some(Rate::from_mbit(2500)));
        assert!(config.may_know_any_speed());
    }

    #[test]
    fn what_nobody_knows_is_none() {
        for speed in [Some("-1\n"), Some("0\n"), Some("4294967295\n"), None] {
            let (_root, config) = tree("eth0", true, "INTERFACE=eth0\n", speed);
            assert_eq!(config.speed("eth0").unwrap(), None, "{speed:?}");
            assert!(!config.may_know_any_speed(), "{speed:?}");
            // Without a carrier its speed may come.
            let state = config.sysfs.join("class/net/eth0/operstate");
            fs::write(&state, "down\n").unwrap();
            assert!(config.may_come_up("eth0") && config.may_know_any_speed(), "{speed:?}");
            fs::write(&state, "up\n").unwrap();
            assert!(!config.may_come_up("eth0") && !config.may_know_any_speed(), "{speed:?}");
        }
    }

    #[test]
    fn virtual_interfaces_are_believed_only_when_they_pass_on_a_speed() {
        let (_root, config) = tree("veth0", false, "INTERFACE=veth0\nIFINDEX=3\n", Some("10000\n"));
        assert_eq!(config.speed("veth0").unwrap(), None);
        let (_root, config) = tree("eth0.7", false, "DEVTYPE=vlan\nINTERFACE=eth0.7\n", Some("1000\n"));
        assert_eq!(config.speed("eth0.7").unwrap(), Some(Rate::from_mbit(1000)));
    }

    #[test]
    fn the_operator_knows_better() {
        let (_root, mut config) = tree("wwan0", true, "DEVTYPE=wwan\n", Some("-1\n"));
        config.speeds.insert("wwan0".into(), Rate::from_mbit(32));
        assert_eq!(config.speed("wwan0").unwrap(), Some(Rate::from_mbit(32)));
        // But not that it is there.
        config.speeds.insert("wwan1".into(), Rate::from_mbit(32));
        assert!(matches!(config.speed("wwan1"), Err(InterfaceError::Missing(_))));
    }

    #[test]
    fn a_speed_that_changes_counts_from_then_on() {
        let (root, config) = tree("eth0", true, "", Some("1000\n"));
        assert_eq!(config.speed("eth0").unwrap(), Some(Rate::from_mbit(1000)));
        fs::write(root.path().join("class/net/eth0/speed"), "100\n").unwrap();
        assert_eq!(config.speed("eth0").unwrap(), Some(Rate::from_mbit(100)));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let (_root, config) = tree("eth0", true, "", Some("fast\n"));
        assert!(matches!(config.speed("eth0"), Err(InterfaceError::Speed { .. })));
        assert!(matches!(config.speed("eth1"), Err(InterfaceError::Missing(_))));
        for name in ["", "..", "../../etc", "a/b", "sixteen-letters-"] {
            assert!(matches!(config.speed(name), Err(InterfaceError::Name(_))), "{name}");
        }
    }

    #[test]
    fn the_host_itself_has_no_interface_speed() {
        assert_eq!(Config::default().speed("lo").unwrap(), None);
        assert_eq!(interface_towards(Ipv4Addr::LOCALHOST.into()).unwrap(), None);
        assert_eq!(Config::default().speed_towards(Ipv4Addr::new(127, 1, 2, 3).into()).unwrap(), None);
    }

    #[test]
    fn a_route_leads_to_an_interface_of_this_host() {
        // 192.0.2.0/24 is for documentation (RFC 5737); a host without a default route has none there.
        match interface_towards(Ipv4Addr::new(192, 0, 2, 1).into()) {
            Ok(Some(name)) => assert!(Path::new("/sys/class/net").join(&name).exists(), "{name}"),
            Ok(None) => {}
            Err(error) => assert!(matches!(error, InterfaceError::Route { .. }), "{error}"),
        }
    }
}
