//! The rate of the link.

/// The link's rate: told, or the rate of departures while packets wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceRate {
    pub(super) rate: Option<f64>,
    told: bool,
    /// Start of the measurement, and bytes since.
    since: f64,
    bytes: f64,
    packets: u32,
}

impl ServiceRate {
    /// Packets of a measurement.
    const PACKETS: u32 = 8;

    /// A rate in bytes a second that the host tells, or none.
    pub(super) fn new(rate: Option<f64>) -> Self {
        Self { rate, told: rate.is_some(), since: 0.0, bytes: 0.0, packets: 0 }
    }

    /// A packet leaves; the next one follows at once if any waits.
    pub(super) fn departed(&mut self, now: f64, bytes: f64, waiting: bool) {
        if self.told {
            return;
        }
        if self.packets > Self::PACKETS && now > self.since {
            let sample = self.bytes / (now - self.since);
            self.rate = Some(self.rate.map_or(sample, |rate| rate + (sample - rate) / 8.0));
            self.packets = 0;
        }
        if self.packets == 0 {
            (self.since, self.bytes) = (now, 0.0);
        }
        self.bytes += bytes;
        self.packets = if waiting { self.packets + 1 } else { 0 };
    }
}
