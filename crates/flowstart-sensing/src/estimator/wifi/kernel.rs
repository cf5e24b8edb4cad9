//! The question to the kernel.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use flowstart_core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::netlink::{AttributeError, Attributes, HEAD, Message, MessageError, Messages, number};
use super::station::{StationRates, station_rates};

/// Numbers of netlink.h, genetlink.h and nl80211.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NL80211_CMD_GET_STATION: u8 = 17;
const NL80211_ATTR_IFINDEX: u16 = 3;

/// Why there is no answer from the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WifiError {
    /// The socket failed.
    #[error("the kernel cannot be asked for Wi-Fi: {0}")]
    Socket(#[source] io::Error),
    /// There is no interface of this name.
    #[error("there is no interface `{0}`")]
    Missing(String),
    /// This kernel has no Wi-Fi.
    #[error("this kernel has no `{0}`")]
    NoFamily(&'static str),
    /// The kernel refused.
    #[error("the kernel refused: {0}")]
    Refused(#[source] io::Error),
    /// The kernel did not answer in time.
    #[error("the kernel did not answer within {0}")]
    Late(Duration),
    /// A message has a length that cannot be.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A message has attributes that mean nothing.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
}

/// The rates of the access point of `interface`; `None` without a connection. An interface that is an access point
/// itself has many; the first is returned.
pub fn station(interface: &str, bound: Duration) -> Result<Option<StationRates>, WifiError> {
    let index = nix::net::if_::if_nametoindex(interface).map_err(|_| WifiError::Missing(interface.into()))?;
    let socket = Socket::open(bound)?;
    let family = socket.family("nl80211")?;
    let mut question = vec![NL80211_CMD_GET_STATION, 0, 0, 0];
    push(&mut question, NL80211_ATTR_IFINDEX, &index.to_ne_bytes());
    let mut found = None;
    socket.ask(family, NLM_F_REQUEST | NLM_F_DUMP, &question, |attributes| {
        if found.is_none() {
            found = Some(station_rates(attributes)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Adds an attribute.
fn push(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

pub(super) struct Socket {
    descriptor: OwnedFd,
    bound: Duration,
}

impl Socket {
    pub(super) fn open(bound: Duration) -> Result<Self, WifiError> {
        let refused = |errno: Errno| WifiError::Socket(errno.into());
        let flags = SockFlag::SOCK_CLOEXEC;
        let descriptor =
            socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkGeneric).map_err(refused)?;
        Ok(Self { descriptor, bound })
    }

    /// The number of a family of generic netlink.
    pub(super) fn family(&self, name: &'static str) -> Result<u16, WifiError> {
        let mut question = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        push(&mut question, CTRL_ATTR_FAMILY_NAME, &[name.as_bytes(), b"\0"].concat());
        let mut family = None;
        let asked = self.ask(GENL_ID_CTRL, NLM_F_REQUEST, &question, |attributes| {
            for attribute in Attributes(attributes) {
                let attribute = attribute?;
                if attribute.0 == CTRL_ATTR_FAMILY_ID {
                    family = Some(u16::from_ne_bytes(number(attribute)?));
                }
            }
            Ok(())
        });
        match asked {
            Err(WifiError::Refused(error)) if error.kind() == io::ErrorKind::NotFound => Err(WifiError::NoFamily(name)),
            Err(error) => Err(error),
            Ok(()) => family.ok_or(WifiError::NoFamily(name)),
        }
    }

    /// Sends a question and gives the attributes of each answer to `each`.
    fn ask(
        &self,
        family: u16,
        flags: u16,
        question: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), WifiError>,
    ) -> Result<(), WifiError> {
        let socket = |errno: Errno| WifiError::Socket(errno.into());
        let length = u32::try_from(HEAD + question.len()).unwrap_or(u32::MAX);
        let mut message = length.to_ne_bytes().to_vec();
        message.extend_from_slice(&family.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        // Sequence number and port: the socket asks one question at a time, and the kernel fills in the port.
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(question);
        let end = Instant::now() + std::time::Duration::from_nanos(self.bound.as_nanos());
        sendto(self.descriptor.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty()).map_err(socket)?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WifiError::Late(self.bound));
            }
            // Zero would mean to wait for ever.
            let wait = TimeVal::microseconds(i64::try_from(left.as_micros()).unwrap_or(i64::MAX).max(1));
            setsockopt(&self.descriptor, sockopt::ReceiveTimeout, &wait).map_err(socket)?;
            let received = match recv(self.descriptor.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(received) => received,
                Err(Errno::EINTR | Errno::EAGAIN) => continue,
                Err(errno) => return Err(socket(errno)),
            };
            for message in Messages(buffer.get(..received).unwrap_or_default()) {
                match message? {
                    Message::Answer(attributes) => each(attributes)?,
                    Message::Done | Message::Error(0) => return Ok(()),
                    Message::Error(code) => {
                        return Err(WifiError::Refused(io::Error::from_raw_os_error(code.saturating_neg())));
                    }
                }
            }
            if flags & NLM_F_DUMP != NLM_F_DUMP {
                return Ok(());
            }
        }
    }
}
