//! What clients say about the rate of their path.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.
//!
//! | Looking for | Where |
//! |---|---|
//! | the hint of a client that knows of it, in a transport parameter | [`codec`] |

pub mod codec;

pub use codec::{BandwidthHint, HintError};
