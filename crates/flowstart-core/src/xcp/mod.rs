//! XCP: the routers of a path tell every packet by how much its flow's throughput may change.
//!
//! References: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002,
//! called the paper; Falk, Pryadkin, Katabi, draft-falk-xcp-spec-03 ("Specification for the Explicit Control
//! Protocol"), called the draft. The paper gives feedback in bytes of window, the draft in bytes per second, and both
//! lead to the same windows. This module has the draft's form. The draft does not keep the paper's equation numbers, so
//! [`router`] numbers the equations itself.
//!
//! Quick-Start asks once ([`crate::quick_start`]); XCP controls the flow for its whole life. It works only where every
//! bottleneck takes part.
//!
//! | Who | File |
//! |---|---|
//! | Everybody | [`wire`]: the congestion header |
//! | Routers | [`router`]: efficiency and fairness controllers |
//! | Hosts | [`host`]: what is written into packets and read from them; the window rule is
//!   [`avoidance::xcp`](crate::avoidance::xcp) |

pub mod host;
#[cfg(feature = "router")]
pub mod router;
pub mod wire;
