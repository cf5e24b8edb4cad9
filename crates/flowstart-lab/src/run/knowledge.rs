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
    // An earlier connection was alone on the idle path: its RTT is the mean propagation plus a packet's serialization,
    // and its delivery rate is the link's.
    let cached = link.host_rtt() + link.varies.mean_delay() + link.rate.time_for(packet) * u64::from(link.hops);
    PathKnowledge {
        saved: Some(SavedPath { rtt: cached, cwnd: link.rate.amount_in(cached), age: SAVED_AGE }),
        hint: link.hinted().filter(|_| plan.hint).map(|bandwidth| Hint { bandwidth, technology: link.technology }),
        interface_rate: Some(link.access_rate),
        oracle_rate: Some(link.rate),
        ..PathKnowledge::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    /// What an earlier connection saved of this link: RTT and window.
    fn saved(link: &str) -> (Duration, Bytes) {
        let text = format!("link = [\"{link}\"]\nsize = [\"2MB\"]\nscheme = [\"careful-resume\"]\nreps = 1");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let saved = knowledge(&plan, &plan.transports[0], &plan.links[0]).saved.unwrap();
        (saved.rtt, saved.cwnd)
    }

    #[test]
    fn what_is_saved_follows_from_the_mean_rtt() {
        let link = "rate=100mbit,rtt=20ms,buffer=100ms";
        let (steady, window) = saved(link);
        assert!(steady > Duration::from_millis(20) && steady < Duration::from_millis(21), "{steady}");
        // 20 ms more at most are 10 ms in the mean, in which the link sends 125 kB.
        let (varied, larger) = saved(&format!("{link},rtt_steps=20ms/15s"));
        assert_eq!(varied, steady + Duration::from_millis(10));
        assert_eq!(larger, window + Bytes::new(125_000));
        // The hops share the extra delay.
        assert_eq!(
            saved(&format!("{link},hops=2,rtt_steps=20ms/15s")).0,
            saved(&format!("{link},hops=2")).0 + Duration::from_millis(10)
        );
    }
}
