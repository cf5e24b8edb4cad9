//! Where a router's packets come from and go to.
//!
//! A TUN device is a network interface whose packets a program reads and writes. It is there as long as the router holds
//! it, also if it has moved to another network namespace, and it has neither Ethernet nor offloads: each read is one
//! packet of IP, as it would leave for a wire.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::str::FromStr;

use nix::net::if_::if_nametoindex;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Longest name of an interface (Linux, `IFNAMSIZ` without the zero at the end).
const LONGEST_NAME: usize = 15;
/// What programs open for a TUN device.
const TUN: &str = "/dev/net/tun";
/// Packets that wait in the kernel while this host does something else; 500 are usual, 6 ms at 1 Gbit/s.
const QUEUE: u32 = 10_000;

/// The name of a port, as users write it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortName {
    /// A TUN device that is made for the router, and is gone with it.
    Tun(String),
}

/// Why a port cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// This cannot be the name of an interface.
    #[error("`{0}` is no name for an interface: 1 to 15 letters, digits, `-`, `_` or `.`")]
    Name(String),
    /// Another kind of port.
    #[error(
        "`{0}`: existing interfaces are not taken yet, only TUN devices; `tun:{0}` makes one, which can move to another \
         network namespace"
    )]
    Kind(String),
    /// There is an interface of this name.
    #[error("tun:{0}: there is an interface of this name already")]
    Taken(String),
    /// The system has no TUN devices.
    #[error("tun:{0}: there is no {TUN}; `modprobe tun` may make it")]
    Missing(String),
    /// This process may not.
    #[error("tun:{0}: a TUN device takes root (CAP_NET_ADMIN)")]
    Privilege(String),
    /// Something else.
    #[error("tun:{name}: {cause}")]
    Other {
        /// The device.
        name: String,
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
        if is_tun { Ok(Self::Tun(name.to_owned())) } else { Err(PortError::Kind(name.to_owned())) }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tun(name) => write!(f, "tun:{name}"),
        }
    }
}

/// An open port, which never blocks.
pub(crate) struct Port {
    device: SyncDevice,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

impl Port {
    /// Makes the device. It is down: whoever gives it addresses brings it up.
    pub(crate) fn open(name: &PortName) -> Result<Self, PortError> {
        let PortName::Tun(name) = name;
        if !Path::new(TUN).exists() {
            return Err(PortError::Missing(name.clone()));
        }
        // A device that some program has left behind would be taken over.
        if if_nametoindex(name.as_str()).is_ok() {
            return Err(PortError::Taken(name.clone()));
        }
        let opened = DeviceBuilder::new().name(name).enable(false).with(|builder| {
            builder.offload(false).packet_information(false).tx_queue_len(QUEUE);
        });
        let made = opened.build_sync().and_then(|device| device.set_nonblocking(true).map(|()| device));
        match made {
            Ok(device) => Ok(Self { device }),
            Err(cause) => Err(match cause.kind() {
                io::ErrorKind::PermissionDenied => PortError::Privilege(name.clone()),
                io::ErrorKind::ResourceBusy => PortError::Taken(name.clone()),
                _ => PortError::Other { name: name.clone(), cause },
            }),
        }
    }

    /// Takes the next packet; `None`: there is none for now.
    ///
    /// # Errors
    ///
    /// What the system says of a device that is no more.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// What the system says, for example of a device that is down.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(|_| ())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(matches!(parse("eth0"), Err(PortError::Kind(_))));
    }
}
