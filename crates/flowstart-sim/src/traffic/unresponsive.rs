//! Irregular load without congestion control: on/off sources and video frames, whose packets leave regardless of the
//! network.
//!
//! - **On/off**: packets at a constant rate while on, silence while off. The lengths of both are exponential, or Pareto
//!   with a shape between 1 and 2. Such a Pareto distribution has a finite mean without a finite variance, and the sum
//!   of many such sources is self-similar (W. Willinger, M. Taqqu, R. Sherman, D. Wilson, "Self-similarity through
//!   high-variability", 1997).
//! - **Frames**: a burst of packets per video frame, at fixed intervals. At a fixed period a frame is a key frame,
//!   several times as large as the others, and sizes vary. This model is this project's own; sizes of real encoders
//!   also vary more slowly.
//!
//! All have the same mean rate for the same [`Unresponsive::rate`], and packets of one size.

use flowstart_core::rng::Substream;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use serde::Serialize;

/// Frames from one key frame to the next.
const GROUP: u32 = 12;
/// Size of a key frame over that of the others.
const KEY_FRAME: f64 = 4.0;
/// Sizes vary uniformly by this share.
const VARIATION: f64 = 0.5;

/// The distribution of an on or off time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// Exponentially distributed.
    Exponential,
    /// Pareto with this shape, above 1.
    Pareto {
        /// Shape.
        shape: f64,
    },
}

impl Lengths {
    fn draw(self, mean: f64, rng: &mut Substream) -> f64 {
        match self {
            Self::Exponential => rng.exponential(mean),
            // The mean is smallest * shape / (shape - 1).
            Self::Pareto { shape } => rng.pareto(mean * (shape - 1.0) / shape, shape),
        }
    }
}

/// The times of packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// On and off in turn.
    OnOff {
        /// Mean time on.
        mean_on: Duration,
        /// Mean time off.
        mean_off: Duration,
        /// The distribution of these times.
        lengths: Lengths,
    },
    /// Video frames.
    Frames {
        /// Time between two frames.
        interval: Duration,
    },
}

/// A source without congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unresponsive {
    /// Mean rate on the wire, above 0.
    pub rate: Rate,
    /// Bytes of a packet on the wire.
    pub packet: u32,
    /// The times of packets.
    pub shape: Shape,
}

impl Unresponsive {
    /// Rate while on of an on/off source, and the mean rate of others.
    fn peak(&self) -> Rate {
        match self.shape {
            Shape::OnOff { mean_on, mean_off, .. } => {
                self.rate.scale(1.0 + mean_off.as_secs() / mean_on.as_secs().max(1e-9))
            }
            Shape::Frames { .. } => self.rate,
        }
    }
}

/// A source that runs: the time to its next packet.
#[derive(Clone, Debug)]
pub struct Gaps {
    source: Unresponsive,
    /// Rest of the present on time.
    on: f64,
    /// Remaining packets of the present frame, frames so far, and remaining bytes that do not fill a packet.
    packets: u32,
    frames: u32,
    rest: f64,
    rng: Substream,
}

impl Gaps {
    /// A source at its beginning. An on/off source is on; `index` separates its random numbers from those of others.
    pub fn new(source: Unresponsive, seed: u64, index: u64) -> Self {
        let mut rng = Substream::new(seed, "unresponsive", index);
        let on = match source.shape {
            Shape::OnOff { mean_on, lengths, .. } => lengths.draw(mean_on.as_secs(), &mut rng),
            Shape::Frames { .. } => 0.0,
        };
        let mut gaps = Self { source, on, packets: 0, frames: 0, rest: 0.0, rng };
        if let Shape::Frames { interval } = source.shape {
            gaps.frame(interval);
        }
        gaps
    }

    /// Time from the packet that leaves now to the next.
    pub fn next_gap(&mut self) -> Duration {
        match self.source.shape {
            Shape::OnOff { mean_on, mean_off, lengths } => {
                let interval = self.source.peak().time_for(Bytes::new(u64::from(self.source.packet))).as_secs();
                let mut gap = interval;
                while self.on < interval {
                    gap += lengths.draw(mean_off.as_secs(), &mut self.rng);
                    self.on += lengths.draw(mean_on.as_secs(), &mut self.rng);
                }
                self.on -= interval;
                Duration::from_secs(gap)
            }
            Shape::Frames { interval } => {
                self.packets = self.packets.saturating_sub(1);
                let mut gap = Duration::ZERO;
                while self.packets == 0 {
                    gap += interval;
                    self.frame(interval);
                }
                gap
            }
        }
    }

    /// Draws the size of the next frame.
    fn frame(&mut self, interval: Duration) {
        let group = f64::from(GROUP);
        let mean = self.source.rate.amount_in(interval).get() as f64 * group / (group - 1.0 + KEY_FRAME);
        let times = if self.frames.is_multiple_of(GROUP) { KEY_FRAME } else { 1.0 };
        let varied = 1.0 + VARIATION * (2.0 * self.rng.uniform() - 1.0);
        let packets = (self.rest + mean * times * varied) / f64::from(self.source.packet.max(1));
        self.packets = libm::floor(packets) as u32;
        self.rest = (packets - f64::from(self.packets)) * f64::from(self.source.packet);
        self.frames += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn onoff(lengths: Lengths) -> Shape {
        Shape::OnOff { mean_on: Duration::from_millis(500), mean_off: Duration::from_millis(1500), lengths }
    }

    /// Packets in a time, as gaps.
    fn gaps(shape: Shape, secs: f64) -> Vec<f64> {
        let source = Unresponsive { rate: Rate::from_mbit(3), packet: 1500, shape };
        let mut gaps = Gaps::new(source, 1, 0);
        let mut now = 0.0;
        std::iter::from_fn(|| {
            let gap = gaps.next_gap().as_secs();
            now += gap;
            (now < secs).then_some(gap)
        })
        .collect()
    }

    #[test]
    fn every_shape_has_its_mean_rate() {
        // 3 Mbit/s are 250 packets of 1500 bytes in a second. On/off times without a finite variance converge slowly.
        for (shape, most) in [
            (onoff(Lengths::Exponential), 0.05),
            (onoff(Lengths::Pareto { shape: 1.5 }), 0.2),
            (Shape::Frames { interval: Duration::from_millis(40) }, 0.02),
        ] {
            let rate = gaps(shape, 4000.0).len() as f64 / 4000.0;
            assert!((rate / 250.0 - 1.0).abs() < most, "{shape:?}: {rate}");
        }
    }

    #[test]
    fn an_on_off_source_sends_at_its_peak_rate_and_is_silent() {
        // On a quarter of the time: 12 Mbit/s, a packet in a millisecond.
        let gaps = gaps(onoff(Lengths::Exponential), 1000.0);
        let (at_peak, silent) = gaps.iter().partition::<Vec<f64>, _>(|gap| (*gap - 0.001).abs() < 1e-6);
        // 2 s for an on and an off time: 500 silences.
        assert!((400..600).contains(&silent.len()) && at_peak.len() > 200_000, "{}", silent.len());
    }

    #[test]
    fn key_frames_are_larger() {
        let source = Unresponsive {
            rate: Rate::from_mbit(12),
            packet: 1500,
            shape: Shape::Frames { interval: Duration::from_millis(40) },
        };
        let mut gaps = Gaps::new(source, 1, 0);
        let mut sizes = vec![1];
        while sizes.len() <= 12 * 100 {
            if gaps.next_gap() == Duration::ZERO {
                *sizes.last_mut().unwrap() += 1;
            } else {
                sizes.push(1);
            }
        }
        // 12 Mbit/s x 40 ms = 40 packets, so 32 in a frame and 128 in a key frame.
        let mean = |key: bool| {
            let of = (0..1200).filter(|frame| (frame % 12 == 0) == key).map(|frame| f64::from(sizes[frame]));
            of.clone().sum::<f64>() / of.count() as f64
        };
        assert!((115.0..141.0).contains(&mean(true)) && (30.0..34.0).contains(&mean(false)));
    }
}
