//! Flow-startup schemes, congestion avoidance and queue disciplines, free of I/O, clocks and global randomness.
//!
//! A host (a transport protocol, a router, a simulator) owns one [`controller::Controller`] per path and tells it what
//! happened; the controller answers how much may be sent and how fast. A queue owns one [`aqm::QueueState`].
//!
//! | Looking for | Where |
//! |---|---|
//! | what a transport talks to | [`controller`] |
//! | what a startup scheme is, and all of them | [`startup`] |
//! | congestion avoidance: Reno, CUBIC, BBR | [`avoidance`] |
//! | what an algorithm needs of its host | [`needs`] |
//! | queue disciplines | [`aqm`] |
//! | what Sensing may know, and from where | [`path`], [`sources`] |
//! | what routers and other elements of the path say | [`quick_start`], [`scone`], [`xcp`] |
//! | hints that do not identify their sender | [`quantize`] |
//! | events in, trace out | [`event`] |
//! | inner variables of algorithms | [`variable`] |
//! | registration of algorithms, and refused parameters | [`registry`] |
//! | algorithms from outside | [`custom`] |
//! | RTT estimation, delivery rate, dispersion of trains, pacing | [`rtt`], [`delivery_rate`], [`dispersion`], [`pacer`] |
//! | specs as users write them, and bad input | [`spec`] |
//! | units, time, seeded randomness | [`units`], [`time`], [`rng`] |
//! | windows and launches, and launches that are held to later samples | [`window`], [`launch`], [`doubt`] |
//! | a window that connections to one peer share | [`ensemble`] |
//!
//! Without features the crate has only controllers. `serde` reads and writes configurations. `aqm` adds queue
//! disciplines, `router` the routers' part of Quick-Start, XCP and SCONE, `experimental` algorithms without a published
//! reference.

#![no_std]
extern crate alloc;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[macro_use]
pub mod registry;

#[cfg(feature = "aqm")]
pub mod aqm;
pub mod avoidance;
pub mod controller;
pub mod custom;
pub mod delivery_rate;
pub mod dispersion;
pub mod doubt;
pub mod ensemble;
pub mod event;
pub mod launch;
pub mod needs;
pub mod pacer;
pub mod path;
mod quantity;
pub mod quantize;
pub mod quick_start;
pub mod rng;
pub mod rtt;
pub mod scone;
pub mod sources;
pub mod spec;
pub mod startup;
#[cfg(test)]
mod test_support;
pub mod time;
pub mod units;
pub mod variable;
pub mod window;
pub mod xcp;
