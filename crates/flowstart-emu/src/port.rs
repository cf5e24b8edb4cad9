//! Where a router's packets come from and go to.
//!
//! A TUN device is a network interface whose packets a program reads and writes. It is there as long as the router
//! holds it, also if it has moved to another network namespace, and it has neither Ethernet nor offloads: each read is
//! one packet of IP, as it would leave for a wire. Interfaces that exist are in `interface.rs`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::str::FromStr;

use nix::net::if_::if_nametoindex;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::interface::{Found, HEAD, Interface};

/// Longest name of an interface (Linux, `IFNAMSIZ` without the zero at the end).
const LONGEST_NAME: usize = 15;
/// What programs open for a TUN device.
const TUN: &str = "/dev/net/tun";
/// Packets that wait in the kernel while this host does something else; 500 are usual, 6 ms at 1 Gbit/s.
const QUEUE: u32 = 10_000;
/// Bytes of what the kernel tells of interfaces: some 130 for each.
const MOST_TOLD: u64 = 1 << 20;
/// Longest packet of IP of a device that gets an address: that of Ethernet.
const MTU: u16 = 1500;

/// The name of a port, as users write it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortName {
    /// A TUN device that is made for the router, and is gone with it.
    Tun(String),
    /// An interface that exists.
    Interface(String),
}

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// This cannot be the name of an interface.
    #[error("`{0}` is no name for an interface: 1 to 15 letters, digits, `-`, `_` or `.`")]
    Name(String),
    /// One has Ethernet, the other has not.
    #[error("`{0}` and `{1}`: two TUN devices or two interfaces are needed, as only the latter have Ethernet")]
    Kinds(PortName, PortName),
    /// There is no interface of this name.
    #[error("`{0}`: there is no interface of this name; `tun:{0}` makes a TUN device")]
    NoInterface(String),
    /// Nothing comes in there.
    #[error("`{0}` is down; `ip link set {0} up` brings it up")]
    Down(String),
    /// What comes in at one does not fit into the other.
    #[error("`{0}` takes packets of {1} bytes and `{2}` of {3}; the longest (MTU) has to be the same")]
    Longest(PortName, u32, PortName, u32),
    /// There is an interface of this name.
    #[error("tun:{0}: there is an interface of this name already")]
    Taken(String),
    /// The system has no TUN devices.
    #[error("tun:{0}: there is no {TUN}; `modprobe tun` may make it")]
    Missing(String),
    /// This process may not.
    #[error("{0}: a TUN device or an interface takes root (CAP_NET_ADMIN, and CAP_NET_RAW for an interface)")]
    Privilege(PortName),
    /// Something else.
    #[error("{name}: {cause}")]
    Other {
        /// The port.
        name: PortName,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl FromStr for PortName {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let (name, is_tun) = text.strip_prefix("tun:").map_or((text, false), |name| (name, true));
        // The kernel takes more, as `%d` for a number, and `ip` does not.
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_usual) || matches!(name, "." | "..") {
            return Err(PortError::Name(name.to_owned()));
        }
        Ok(if is_tun { Self::Tun(name.to_owned()) } else { Self::Interface(name.to_owned()) })
    }
}

impl PortName {
    /// The interface that it is.
    pub(crate) fn interface(&self) -> &str {
        match self {
            Self::Tun(name) | Self::Interface(name) => name,
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tun(name) => write!(f, "tun:{name}"),
            Self::Interface(name) => write!(f, "{name}"),
        }
    }
}

/// An open port, which never blocks.
pub(crate) enum Port {
    Tun(Tun),
    Interface(Interface),
}

/// A TUN device that this process made.
pub(crate) struct Tun {
    device: SyncDevice,
    /// What the kernel tells of the interfaces in the network namespace of its making, whoever reads it.
    interfaces: Option<File>,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tun(_) => "Tun",
            Self::Interface(_) => "Interface",
        })
    }
}

impl Port {
    /// Opens a port. A TUN device is down: whoever gives it addresses brings it up.
    pub(crate) fn open(name: &PortName) -> Result<Self, PortError> {
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::PermissionDenied => PortError::Privilege(name.clone()),
            _ => PortError::Other { name: name.clone(), cause },
        };
        match name {
            PortName::Interface(text) => match Interface::open(text).map_err(failed)? {
                Some(Found::Up(interface)) => Ok(Self::Interface(interface)),
                Some(Found::Down) => Err(PortError::Down(text.clone())),
                None => Err(PortError::NoInterface(text.clone())),
            },
            // A device that some program has left behind would be taken over.
            PortName::Tun(text) if if_nametoindex(text.as_str()).is_ok() => Err(PortError::Taken(text.clone())),
            PortName::Tun(text) if !Path::new(TUN).exists() => Err(PortError::Missing(text.clone())),
            PortName::Tun(text) => made(text, None).map(Self::Tun).map_err(|cause| match cause.kind() {
                io::ErrorKind::ResourceBusy => PortError::Taken(text.clone()),
                _ => failed(cause),
            }),
        }
    }

    /// A TUN device that is up and has an address, in a namespace of this thread where nothing else is.
    pub(crate) fn with_address(name: &str, address: Ipv4Addr, prefix: u8) -> Result<Self, PortError> {
        if !Path::new(TUN).exists() {
            return Err(PortError::Missing(name.to_owned()));
        }
        made(name, Some((address, prefix))).map(Self::Tun).map_err(|cause| {
            let name = PortName::Tun(name.to_owned());
            match cause.kind() {
                io::ErrorKind::PermissionDenied => PortError::Privilege(name),
                _ => PortError::Other { name, cause },
            }
        })
    }

    /// Bytes before a packet of IP.
    pub(crate) fn head(&self) -> usize {
        match self {
            Self::Tun(_) => 0,
            Self::Interface(_) => HEAD,
        }
    }

    /// Takes the next packet; `None`: there is none for now.
    ///
    /// # Errors
    ///
    /// What the system says of a port that is no more.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Interface(interface) => interface.read(buffer),
            Self::Tun(tun) => match tun.device.recv(buffer) {
                Ok(length) => Ok(Some(length)),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    Ok(None)
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Packets that came and that this program did not take in time; nothing is known of a TUN device that has moved to
    /// another network namespace.
    pub(crate) fn missed(&self) -> u64 {
        match self {
            Self::Interface(interface) => interface.missed(),
            Self::Tun(tun) => tun.dropped().unwrap_or(0),
        }
    }

    /// The longest packet that it takes, in bytes; `None`: it takes all, or nobody tells.
    pub(crate) fn mtu(&self) -> Option<u32> {
        match self {
            Self::Interface(interface) => interface.mtu(),
            Self::Tun(_) => None,
        }
    }

    /// Whether it has to be read to find out that it is no more.
    pub(crate) fn may_be_gone(&self) -> bool {
        matches!(self, Self::Interface(interface) if interface.may_be_gone())
    }

    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// What the system says, for example of a port that is down.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.device.send(packet).map(|_| ()),
            Self::Interface(interface) => interface.write(packet),
        }
    }
}

impl Tun {
    /// What the system dropped on its way to the device, which is what this program did not read in time; `None`: the
    /// device is no more in the namespace of its making.
    fn dropped(&self) -> Option<u64> {
        let mut told = Vec::new();
        let mut interfaces = self.interfaces.as_ref()?;
        interfaces.rewind().ok()?;
        interfaces.take(MOST_TOLD).read_to_end(&mut told).ok()?;
        dropped_by(&self.device.name().ok()?, &String::from_utf8_lossy(&told))
    }
}

/// The packets for an interface that were dropped, by what `/proc/net/dev` says: behind the name come eight numbers of
/// what was received, then bytes, packets, errors and drops of what was sent (`proc_pid_net`(5)).
fn dropped_by(interface: &str, told: &str) -> Option<u64> {
    let mut lines = told.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    numbers.split_ascii_whitespace().nth(11)?.parse().ok()
}

/// Makes a TUN device, which is up if it gets an address.
fn made(name: &str, address: Option<(Ipv4Addr, u8)>) -> io::Result<Tun> {
    let device = DeviceBuilder::new().name(name).enable(address.is_some()).with(|builder| {
        builder.offload(false).packet_information(false).tx_queue_len(QUEUE);
    });
    let device = match address {
        Some((address, prefix)) => device.ipv4(address, prefix, None).mtu(MTU),
        None => device,
    };
    let device = device.build_sync()?;
    device.set_nonblocking(true)?;
    // This thread may be in another namespace than the process.
    Ok(Tun { device, interfaces: File::open("/proc/thread-self/net/dev").ok() })
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.device.as_fd(),
            Self::Interface(interface) => interface.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_stands_behind_what_was_received() {
        let told = "Inter-|   Receive    |  Transmit\n face |bytes    packets errs drop\n\
                    \x20   lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nservers: 0 0 0 0 0 0 0 0 9 8 0 77 0 0 0 0\n";
        assert_eq!((dropped_by("servers", told), dropped_by("lo", told)), (Some(77), Some(12)));
        assert_eq!((dropped_by("server", told), dropped_by("servers", "servers: 1 2")), (None, None));
    }

    #[test]
    fn a_name_is_one_that_linux_takes() {
        let parse = |text: &str| text.parse::<PortName>();
        assert_eq!(parse("tun:fs-server.1").unwrap().to_string(), "tun:fs-server.1");
        assert!(parse("tun:fifteen-letters").is_ok());
        for wrong in
            ["tun:", "", "tun:sixteen-letters-", "tun:a/b", "tun:%d", "tun:a b", "tun:.", "tun:..", "a:b", "tun:ä"]
        {
            assert!(matches!(parse(wrong), Err(PortError::Name(_))), "{wrong}");
        }
        assert_eq!(parse("eth0").unwrap(), PortName::Interface("eth0".into()));
    }
}
