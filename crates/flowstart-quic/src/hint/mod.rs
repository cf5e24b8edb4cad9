//! What clients say about the rate of their path.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.
//!
//! | Looking for | Where |
//! |---|---|
//! | the hint of a client that knows of it, in a transport parameter | [`codec`] |
//! | what unmodified browsers say in HTTP header fields | [`client_hints`] |
//! | how much of either a server uses | [`policy`] |

pub mod client_hints;
pub mod codec;
pub mod policy;

pub use client_hints::ClientHints;
pub use codec::{BandwidthHint, HintError};
pub use policy::HintPolicy;
