//! Sensing's knowledge of a link before the handshake.

use flowstart_core::path::{Hint, PathKnowledge, SavedPath};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;

use crate::spec::link::Link;
use crate::spec::transport::Transport;
use crate::study::plan::Plan;

/// Age of the path information that an earlier connection saved.
const SAVED_AGE: Duration = Duration::from_millis(60_000);

/// Sensing's knowledge of a link before the handshake.
pub(super) fn knowledge(plan: &Plan, transport: &Transport, link: &Link) -> PathKnowledge {
    let profile = &transport.profile;
    let packet = Bytes::new(u64::from(profile.data_wire_size(profile.payload)));
    // An earlier connection was alone on the idle path: its RTT is propagation plus a packet's serialization, and its
    // delivery rate is the link's.
    let cached = link.host_rtt() + link.rate.time_for(packet) * u64::from(link.hops);
    PathKnowledge {
        saved: Some(SavedPath { rtt: cached, cwnd: link.rate.amount_in(cached), age: SAVED_AGE }),
        hint: link.hinted().filter(|_| plan.hint).map(|bandwidth| Hint { bandwidth, technology: link.technology }),
        interface_rate: Some(link.access_rate),
        oracle_rate: Some(link.rate),
        ..PathKnowledge::default()
    }
}
