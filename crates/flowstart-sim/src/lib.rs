//! A deterministic packet simulator for flow startup.
//!
//! A [`world::World`] owns links, flows and the only clock. It is single-threaded and draws every random number from a
//! seeded substream. It can be cloned at any instant, so one warm-up serves many experiments.
//!
//! From bottom to top, each module uses only modules above it in this table:
//!
//! | Looking for | Where |
//! |---|---|
//! | the clock and the event queue | [`engine`] |
//! | sets of packet numbers and bytes | [`ranges`] |
//! | packets and their pools | [`packet`] |
//! | links: rates, recordings, token buckets, loss, jitter | [`link`] |
//! | traffic of applications | [`traffic`] |
//! | observation: counts, monitors, traces | [`observe`] |
//! | elements that read packets at links: routers and advising elements | [`path`] |
//! | links and the packets in them | [`network`] |
//! | dumbbells and chains | [`topology`] |
//! | transports of hosts: TCP, QUIC, their policies and profiles | [`transport`] |
//! | flows and their two ends, the model's or others | [`flow`] |
//! | the whole simulation, and processes that create flows | [`world`] |

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
