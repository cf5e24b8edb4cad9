//! What clients say about the rate of their path.
//!
//! Reference: Rüth et al., "Blitz-starting QUIC Connections" (2019), section 3.
//!
//! | Looking for | Where |
//! |---|---|
//! | an explicit hint of a client, in a transport parameter | [`codec`] |
//! | HTTP header fields of unmodified browsers | [`client_hints`] |
//! | how much of a hint a server uses | [`policy`] |

pub mod client_hints;
pub mod codec;
pub mod policy;

pub use client_hints::ClientHints;
pub use codec::{BandwidthHint, HintError};
pub use policy::HintPolicy;
