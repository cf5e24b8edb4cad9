//! An HTTP/3 server and client that start transfers by a chosen scheme and say what came of it.
//!
//! | Looking for | Where |
//! |---|---|
//! | a server of files and generated objects | [`server`] |
//! | a client that measures | [`client`] |
//! | throughput | [`perf`] |
//! | schemes of real connections compared with each other | [`analyze`] |
//! | the startup scheme and congestion avoidance of connections | [`Scheme`] |
//! | certificates and trust | [`tls`] |
//! | how servers know addresses again | [`tokens`] |
//! | HTTP/3 on noq, the QUIC stack | `http3` |
//! | what a server counts | `metrics` |
//!
//! Nothing that a peer sends ends a server or a client, and nothing here writes to the terminal: warnings go to
//! [`Warnings`].

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod analyze;
pub mod client;
mod endpoint;
mod hexadecimal;
mod http3;
mod metrics;
mod path_state;
pub mod perf;
mod scheme;
pub mod server;
pub mod tls;
pub mod tokens;
mod warnings;

pub use endpoint::{H3, RECEIVE_WINDOW};
pub use scheme::Scheme;
pub use warnings::Warnings;
