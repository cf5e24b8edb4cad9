//! An HTTP/3 server and client that start transfers with a chosen scheme and report the results.
//!
//! | Looking for | Where |
//! |---|---|
//! | a server of files and generated objects | [`server`] |
//! | a client that measures | [`client`] |
//! | throughput | [`perf`] |
//! | comparison of schemes on real connections | [`analyze`] |
//! | what a scheme would have decided on a recorded connection | [`mod@replay`] |
//! | the startup scheme and congestion avoidance of connections | [`Scheme`] |
//! | certificates and trust | [`tls`] |
//! | tokens by which servers recognize addresses | [`tokens`] |
//! | HTTP/3 on noq, the QUIC stack | `http3` |
//! | short texts over HTTP/1.1, as for metrics | [`http1`] |
//! | how clients report the advice of their path (SCONE) | `scone` |
//! | how clients report the rate at which the handshake arrived | `handshake_train` |
//! | how clients respond to requests to routers (Quick-Start) | `quick_start` |
//! | a server's counters | `metrics` |
//! | what a connection shows of its path | [`PathShown`] |
//! | qlog files of this and of other programs, read | `recording` |
//! | what others say, for a terminal | [`printable`] |
//!
//! No input from a peer ends a server or a client. The crate does not write to the terminal: warnings go to
//! [`Warnings`].

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod analyze;
pub mod client;
mod endpoint;
mod handshake_train;
mod hexadecimal;
pub mod http1;
mod http3;
mod metrics;
mod path_shown;
mod path_state;
pub mod perf;
mod printable;
mod quick_start;
mod recording;
pub mod replay;
mod scheme;
mod scone;
pub mod server;
pub mod tls;
pub mod tokens;
mod warnings;

pub use endpoint::{H3, RECEIVE_WINDOW};
pub use path_shown::PathShown;
pub use printable::printable;
pub use recording::RecordingError;
pub use scheme::Scheme;
pub use warnings::Warnings;
