//! SCONE: an element on the path tells the endpoints of a QUIC flow which throughput it advises.
//!
//! Reference: draft-ietf-scone-protocol-08 ("Standard Communication with Network Elements"), whose section titles are
//! cited below. The advice is an upper bound on the throughput averaged over [`MONITORING_PERIOD`]. It is neither a
//! congestion signal nor a permission: here it only caps what a startup scheme launches beyond slow start
//! ([`Controller::on_advice`](crate::controller::Controller::on_advice)).
//!
//! The advice travels in the direction of the data, so the receiver learns it. The draft leaves it to the application
//! to return the advice to the sender; draft-duke-scone-scone-echo proposes a frame. Either takes half a round trip
//! more.
//!
//! | Who | File |
//! |---|---|
//! | Everybody | [`wire`]: the rate signal and the packet |
//! | The network | [`element`]: who lowers the signal |
//! | Hosts | [`endpoint`]: when to offer a packet, and what is known of the advice |

use crate::time::Duration;

#[cfg(feature = "router")]
pub mod element;
pub mod endpoint;
pub mod wire;

/// The time to which advice applies, and after which it expires ("Monitoring Period").
pub const MONITORING_PERIOD: Duration = Duration::from_millis(67_000);
