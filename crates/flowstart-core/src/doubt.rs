//! Holds a launch to what later samples of the RTT bear out.
//!
//! A window is a rate times an RTT, and at the launch the only RTT is that of the handshake, which the client can
//! lengthen: it delays its packets until its request has arrived, and no longer. A hint that a policy holds to 10
//! Mbit/s then becomes a window for hundreds of them. So the window is at most
//!
//! `launched * smallest RTT / that RTT + delivered since the launch`,
//!
//! which is what slow start would make of the window that the launch would have had with the smallest RTT. A slow start
//! threshold that the launch has set is at most the first term. Until that window is delivered, the pacing rate is at
//! most that of the launch. If no RTT is smaller than that of the handshake, the window stays what it is. So it does
//! if it is the same for any RTT, as that of the queued data: a longer RTT makes it leave more slowly. A window of an
//! earlier connection is held to the RTT of that one, which the client could lengthen likewise.

use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// Its window.
    launched: Bytes,
    /// The rate at which it leaves, if it is paced.
    rate: Option<Rate>,
    /// The RTT of the handshake, or of the earlier connection; `None`: no RTT makes the window larger.
    claimed: Option<Duration>,
}

impl Doubt {
    /// A launch of this window, which leaves at this rate if it is paced, with the RTT that the client may have
    /// lengthened to make the window larger.
    pub const fn new(launched: Bytes, rate: Option<Rate>, claimed: Option<Duration>) -> Self {
        Self { launched, rate, claimed }
    }

    /// The window that the launch would have had with this RTT; that of the launch if the RTT is not smaller.
    fn borne_out(&self, smallest: Duration) -> Bytes {
        let claimed = self.claimed.filter(|claimed| smallest < *claimed);
        claimed.map_or(self.launched, |claimed| self.launched.scale(smallest.as_secs() / claimed.as_secs()))
    }

    /// The window that the launch would have had, and the largest one after this much was delivered; `None`: no RTT is
    /// smaller.
    pub fn windows(&self, smallest: Duration, delivered: Bytes) -> Option<(Bytes, Bytes)> {
        let borne_out = self.borne_out(smallest);
        self.claimed.is_some_and(|claimed| smallest < claimed).then(|| (borne_out, borne_out + delivered))
    }

    /// Largest pacing rate after this much was delivered; `None`: any.
    pub fn pacing_rate(&self, smallest: Duration, delivered: Bytes) -> Option<Rate> {
        self.rate.filter(|_| delivered < self.borne_out(smallest))
    }
}
