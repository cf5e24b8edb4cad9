//! Quick-Start: a sender asks the routers of a path for a rate, and they approve it, reduce it or do not answer.
//!
//! References: RFC 4782 ("Quick-Start for TCP and IP"); Sarolahti, Allman and Floyd, "Determining an Appropriate
//! Sending Rate Over an Underutilized Network Path", Computer Networks 2007, whose sections, figures and equations are
//! meant where numbers stand without a source.
//!
//! | Who | File |
//! |---|---|
//! | Everybody | [`rate`]: rates as four bits; [`nonce`]; [`wire`]: the options as bytes |
//! | Hosts | [`host`]: what is asked for and what the answer means |
//! | Routers | [`router`]: who is granted how much |
//! | Cheats | [`misbehaviour`]: receivers and middleboxes that change answers |

mod code;
pub mod host;
#[cfg(feature = "router")]
pub mod misbehaviour;
pub mod nonce;
pub mod rate;
#[cfg(feature = "router")]
pub mod router;
pub mod wire;
