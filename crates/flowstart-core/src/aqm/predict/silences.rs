//! Pauses between the packets of young flows: as long as an RTT while windows are waited for.

/// The longest times without a young packet, in the last three octaves of the volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silences {
    longest: [f64; 3],
    octave: f64,
    last: f64,
}

impl Silences {
    /// None so far, and the last packet came at `now`.
    pub(super) fn since(now: f64) -> Self {
        Self { last: now, ..Self::default() }
    }

    /// When the last packet came.
    pub(super) fn last(&self) -> f64 {
        self.last
    }

    /// A packet came when `volume` had come before it.
    pub(super) fn packet(&mut self, now: f64, volume: f64) {
        if volume > 0.0 {
            self.longest[2] = self.longest[2].max(now - self.last);
        }
        if volume >= 2.0 * self.octave {
            self.longest = [self.longest[1], self.longest[2], 0.0];
            self.octave = volume.max(1.0);
        }
        self.last = now;
    }

    /// The longest of them.
    pub(super) fn longest(&self) -> f64 {
        self.longest.iter().fold(0.0, |longest, silence| silence.max(longest))
    }
}
