//! What Sensing may know about a path before the first data packet leaves.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::spec::names;
use crate::time::Duration;
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// The access technology at the client's end, which affects buffering and burstiness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AccessTechnology {
    /// Not stated.
    #[default]
    Unknown,
    /// A cable from end to end.
    Ethernet,
    /// DSL.
    Dsl,
    /// Cable with DOCSIS, which sends in bursts.
    Docsis,
    /// Wi-Fi.
    Wifi,
    /// Third-generation cellular, deep buffers.
    ThirdGeneration,
    /// LTE, deep buffers.
    Lte,
    /// Fibre to the home.
    Fibre,
}

impl AccessTechnology {
    /// The interval in which the technology's link layer gathers packets, which it then passes on together; zero when
    /// it sends bit by bit, or is unknown. Pacing finer than this gains nothing.
    ///
    /// DOCSIS 3.0 allocates in maps (MULPI, section 7.2.1), which usually are of 2 ms, and only upstream; IEEE 802.11
    /// PPDUs of up to 5.484 ms (`aPPDUMaxTime`); LTE subframes of 1 ms (TS 36.211, section 4); HSDPA subframes of 2 ms
    /// (TS 25.211, section 5.3.3).
    pub const fn gathering_interval(self) -> Duration {
        match self {
            Self::Docsis | Self::ThirdGeneration => Duration::from_millis(2),
            Self::Wifi => Duration::from_micros(5484),
            Self::Lte => Duration::from_millis(1),
            Self::Ethernet | Self::Dsl | Self::Fibre | Self::Unknown => Duration::ZERO,
        }
    }
}

/// Names of access technologies; a cable network is one of DOCSIS.
const TECHNOLOGIES: [(&str, AccessTechnology); 10] = [
    ("unknown", AccessTechnology::Unknown),
    ("ethernet", AccessTechnology::Ethernet),
    ("dsl", AccessTechnology::Dsl),
    ("docsis", AccessTechnology::Docsis),
    ("cable", AccessTechnology::Docsis),
    ("wifi", AccessTechnology::Wifi),
    ("3g", AccessTechnology::ThirdGeneration),
    ("lte", AccessTechnology::Lte),
    ("fibre", AccessTechnology::Fibre),
    ("fiber", AccessTechnology::Fibre),
];

/// An unknown name of an access technology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTechnology(String);

impl fmt::Display for UnknownTechnology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = TECHNOLOGIES.map(|(name, _)| name);
        let Self(written) = self;
        write!(f, "unknown access technology `{written}`{}: use one of ", names::suggestion(written, &names))?;
        f.write_str(&names.join(", "))
    }
}

impl core::error::Error for UnknownTechnology {}

impl FromStr for AccessTechnology {
    type Err = UnknownTechnology;
    fn from_str(text: &str) -> Result<Self, UnknownTechnology> {
        match TECHNOLOGIES.iter().find(|(name, _)| names::is_same(text, name)) {
            Some((_, technology)) => Ok(*technology),
            None => Err(UnknownTechnology(text.into())),
        }
    }
}

/// Its name, as it is read.
impl fmt::Display for AccessTechnology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TECHNOLOGIES.iter().find(|(_, technology)| technology == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// A client's statement about its access link (Blitzstart, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The bandwidth the client believes its bottleneck to have.
    pub bandwidth: Rate,
    /// The access technology behind the estimate.
    pub technology: AccessTechnology,
}

impl Hint {
    /// The burst allowance of the access link: what it gathers and passes on together
    /// ([`AccessTechnology::gathering_interval`]), at the hinted bandwidth, and no more than 64 packets by Wi-Fi, the
    /// window of a block acknowledgement. Zero where it sends bit by bit.
    pub fn burst_allowance(self) -> Bytes {
        let most = if self.technology == AccessTechnology::Wifi { Bytes::new(64 * 1500) } else { Bytes::MAX };
        self.bandwidth.amount_in(self.technology.gathering_interval()).min(most)
    }
}

/// What an earlier connection over the same path saved (RFC 9040; Careful Resume, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPath {
    /// Smallest RTT it saw.
    pub rtt: Duration,
    /// Bytes it delivered in one RTT.
    pub cwnd: Bytes,
    /// Time since it saved them.
    pub age: Duration,
}

impl SavedPath {
    /// The rate it reached: cwnd / RTT; `None` if it saved nothing, or no RTT.
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_transfer(self.cwnd, self.rtt)
    }
}

/// What the host's other connections to the same peer leave to this one (RFC 9040, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrent {
    /// The smallest of their smallest RTTs.
    pub rtt: Duration,
    /// Its share of their windows. ssthresh is [`Bytes::MAX`] as long as none of them has left slow start.
    pub window: Window,
}

/// Everything a startup scheme may use to derive its launch. Unknown is `None`, never a guess.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathKnowledge {
    /// RTT measured by this connection's handshake.
    pub handshake_rtt: Option<Duration>,
    /// What an earlier connection over this path saved.
    pub saved: Option<SavedPath>,
    /// The receiver's flow-control window.
    pub receive_window: Option<Bytes>,
    /// Bytes that the application has ready to send, counted as in flight (in QUIC with the packets' own overhead).
    pub bytes_waiting: Option<Bytes>,
    /// The client's hint.
    pub hint: Option<Hint>,
    /// The rate the application asked for.
    pub requested_rate: Option<Rate>,
    /// Speed of the sender's own interface.
    pub interface_rate: Option<Rate>,
    /// The rate that all routers of the path approved (Quick-Start, RFC 4782).
    pub approved_rate: Option<Rate>,
    /// The throughput that elements of the path advise (SCONE): a cap on what a scheme launches, never a reason to
    /// launch. No scheme reads it; the controller caps the launch.
    pub advised_rate: Option<Rate>,
    /// A capacity oracle's answer for the destination (in the manner of ALTO, RFC 7285).
    pub oracle_rate: Option<Rate>,
    /// The rate at which the client saw the server's part of the handshake arrive ([`crate::dispersion`]), if it
    /// reports that.
    pub train_rate: Option<Rate>,
    /// What concurrent connections to the same peer leave to this one.
    pub concurrent: Option<Concurrent>,
}

impl PathKnowledge {
    /// The part that stays valid when packets take another path: what the two ends know of each other and of their
    /// application. Everything measured, saved, hinted or requested concerned the old path and its ends.
    pub fn for_new_path(&self) -> Self {
        let Self { receive_window, bytes_waiting, .. } = *self;
        Self { receive_window, bytes_waiting, ..Self::default() }
    }

    /// The smallest RTT known for the path, from this handshake or an earlier connection.
    pub fn min_rtt(&self) -> Option<Duration> {
        match (self.handshake_rtt, self.saved.map(|saved| saved.rtt)) {
            (Some(handshake), Some(saved)) => Some(handshake.min(saved)),
            (handshake, saved) => handshake.or(saved),
        }
    }
}
