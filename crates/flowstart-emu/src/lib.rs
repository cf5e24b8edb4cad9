//! The simulator's links in real time.
//!
//! | Looking for | Where |
//! |---|---|
//! | a link that a host's clock drives | [`lane`] |
//! | UDP datagrams through a link in each direction (Linux) | [`relay`] |
//! | the Quick-Start router at a relay's link (Linux) | [`router`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod lane;
#[cfg(target_os = "linux")]
pub mod relay;
#[cfg(target_os = "linux")]
pub mod router;
