//! Congestion avoidance: how the window grows after startup and by how much congestion reduces it.
//!
//! | Name | File |
//! |---|---|
//! | `reno` | [`reno`] |
//! | `cubic` | [`cubic`] |
//! | `bbr` | [`bbr`] |
//! | `xcp` | [`xcp`] |
//! | `prague` | [`prague`] |
//!
//! There are three kinds, which the registry below names; each has a trait ([`kind`]).

pub use self::kind::{Algorithm, Custom, Integrated, Kind, LossBased, Scalable};

use crate::needs::Needs;
use crate::units::Bytes;
use crate::window::SegmentSize;

pub mod bbr;
pub mod cubic;
pub mod kind;
pub mod prague;
pub mod reno;
pub mod xcp;

algorithms! {
    /// Which congestion avoidance, and its parameters.
    config AvoidanceConfig;
    /// A congestion-avoidance algorithm and its state.
    state AvoidanceState;
    context SegmentSize;
    with kinds;
    Reno = "reno" in reno: LossBased,
    Cubic = "cubic" in cubic: LossBased,
    Bbr = "bbr" in bbr: Integrated,
    Xcp = "xcp" in xcp: Integrated,
    Prague = "prague" in prague: Scalable,
}

impl AvoidanceConfig {
    /// What the algorithm needs of its host.
    pub fn needs(&self) -> Needs {
        // The size of a segment does not change the needs.
        self.build(SegmentSize(Bytes::new(1200))).needs()
    }
}

impl AvoidanceState {
    /// The algorithm if it takes over from a startup scheme and responds to congestion with reductions.
    #[inline]
    pub(crate) fn conventional(&mut self) -> Option<&mut dyn LossBased> {
        match self.algorithm() {
            Algorithm::LossBased(algorithm) => Some(algorithm),
            Algorithm::Scalable(algorithm) => Some(algorithm),
            Algorithm::Integrated(_) => None,
        }
    }

    /// The algorithm if it is scalable.
    #[inline]
    pub(crate) fn scalable(&mut self) -> Option<&mut dyn Scalable> {
        match self.algorithm() {
            Algorithm::Scalable(algorithm) => Some(algorithm),
            Algorithm::LossBased(_) | Algorithm::Integrated(_) => None,
        }
    }

    /// The algorithm if it is integrated.
    #[inline]
    pub(crate) fn integrated(&mut self) -> Option<&mut dyn Integrated> {
        match self.algorithm() {
            Algorithm::Integrated(algorithm) => Some(algorithm),
            Algorithm::LossBased(_) | Algorithm::Scalable(_) => None,
        }
    }

    /// Segments have another size from now on.
    pub(crate) fn on_segment_size(&mut self, segment: SegmentSize) {
        match self.algorithm() {
            Algorithm::LossBased(algorithm) => algorithm.on_segment_size(segment),
            Algorithm::Scalable(algorithm) => algorithm.on_segment_size(segment),
            Algorithm::Integrated(algorithm) => algorithm.on_segment_size(segment),
        }
    }
}
