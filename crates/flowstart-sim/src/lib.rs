//! A deterministic packet simulator for flow startup.
//!
//! A [`world::World`] owns links, flows and the only clock. It is single-threaded, draws every random number from a
//! seeded substream and can be cloned at any instant, so that one warm-up serves many experiments.
//!
//! From bottom to top, each uses only what stands above it here:
//!
//! | Looking for | Where |
//! |---|---|
//! | the clock and the event queue | [`engine`] |
//! | sets of packet numbers and bytes | [`ranges`] |
//! | packets and their pools | [`packet`] |
//! | links: rates, recordings, token buckets, loss, jitter | [`link`] |
//! | what applications send | [`traffic`] |
//! | what happened: counts, monitors, traces | [`observe`] |
//! | what reads packets at links: routers and advising elements | [`path`] |
//! | links and the packets in them | [`network`] |
//! | dumbbells and chains | [`topology`] |
//! | what hosts do with packets: TCP, QUIC, their policies and profiles | [`transport`] |
//! | flows and their two ends, the model's or others | [`flow`] |
//! | running it all, and processes that create flows | [`world`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod engine;
pub mod flow;
pub mod link;
pub mod network;
pub mod observe;
pub mod packet;
pub mod path;
pub mod ranges;
pub mod topology;
pub mod traffic;
pub mod transport;
pub mod world;
