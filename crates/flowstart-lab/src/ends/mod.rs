//! The two ends of measured flows that are no model.
//!
//! | Looking for | Where |
//! |---|---|
//! | the real QUIC stack, if the feature `quic` is on | [`quic`] |
//! | what a capture at their senders has | [`capture`] |

pub mod capture;
#[cfg(feature = "quic")]
pub mod quic;
#[cfg(not(feature = "quic"))]
#[path = "without_quic.rs"]
pub mod quic;
