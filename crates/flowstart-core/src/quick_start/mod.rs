//! Quick-Start: a sender asks the routers of a path for a rate, and they approve it, reduce it or do not answer.
//!
//! References: RFC 4782 ("Quick-Start for TCP and IP"); Sarolahti, Allman and Floyd, "Determining an Appropriate
//! Sending Rate Over an Underutilized Network Path", Computer Networks 2007. Numbers of sections, figures and equations
//! without a source refer to this paper.
//!
//! | Who | File |
//! |---|---|
//! | Everybody | [`rate`]: rates as four bits; [`nonce`]; [`wire`]: the options as bytes |
//! | Hosts | [`host`]: the request and the meaning of the answer |
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
