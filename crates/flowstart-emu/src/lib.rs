//! The simulator's links in real time.
//!
//! | Looking for | Where |
//! |---|---|
//! | a link that a host's clock drives | [`lane`] |
//! | UDP datagrams through a link in each direction (Linux) | [`relay`] |
//! | packets of IP through a link in each direction (Linux) | [`router`] |
//! | each packet that crossed them, and how late packets left (Linux) | [`packet_log`], [`lateness`] |
//! | who tells senders that the time of a packet is over (Linux) | `time_exceeded` |
//! | where these packets come from and go to (Linux) | [`port`] |
//! | the Quick-Start router and the SCONE element at the link of either (Linux) | [`quick_start`], [`scone`] |
//! | what a packet costs a router (Linux) | [`cost`] |
//! | servers and clients on one machine, joined by a router (Linux) | [`dumbbell`], [`namespace`] |
//! | what such a router counts of flows beside each other (Linux) | [`watch`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(target_os = "linux")]
mod checksum;
#[cfg(target_os = "linux")]
pub mod cost;
#[cfg(target_os = "linux")]
pub mod dumbbell;
#[cfg(target_os = "linux")]
mod interface;
pub mod lane;
#[cfg(target_os = "linux")]
pub mod lateness;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
pub mod packet_log;
#[cfg(target_os = "linux")]
pub mod port;
#[cfg(target_os = "linux")]
pub mod quick_start;
#[cfg(target_os = "linux")]
pub mod relay;
#[cfg(target_os = "linux")]
pub mod router;
#[cfg(target_os = "linux")]
pub mod scone;
#[cfg(target_os = "linux")]
mod time_exceeded;
#[cfg(target_os = "linux")]
mod told;
#[cfg(target_os = "linux")]
pub mod watch;
