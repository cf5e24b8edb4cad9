//! Times that outlive the program.

use flowstart_core::time::Duration;
use serde::{Deserialize, Serialize};

/// A point in time as seconds since 1970-01-01 UTC. Stores read no clock: they are told the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnixTime(u64);

impl UnixTime {
    /// The time `seconds` seconds after the epoch.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// This host's clock; the epoch if it stands before that.
    pub fn now() -> Self {
        Self(std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()))
    }

    /// Seconds since the epoch.
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later, as after a clock was set back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0).saturating_mul(1_000_000_000))
    }
}
