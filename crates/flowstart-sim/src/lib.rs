//! A deterministic packet simulator for flow startup.
//!
//! A [`world::World`] owns links, flows and the only clock. It is single-threaded, draws every random number from a
//! seeded substream and can be cloned at any instant, so that one warm-up serves many experiments.
//!
//! | Looking for | Where |
//! |---|---|
//! | the clock and the event queue | [`engine`] |
//! | links: rates, traces, token buckets, loss, jitter | [`link`], [`capacity_trace`] |
//! | packets and their pools | [`packet`] |
//! | what elements of the path read and write in packets | [`path_signals`] |
//! | dumbbells and chains | [`topology`] |
//! | model TCP and model QUIC, and their profiles | [`transport`] |
//! | what applications send | [`traffic`] |
//! | flows whose ends are real transports | [`external`] |
//! | running it all | [`world`] |
//! | what happened: counters, monitors, traces | [`record`], [`monitor`], [`trace`] |

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
