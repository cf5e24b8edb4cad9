//! Sensing's knowledge of a link before the handshake of a transfer, and where it comes from.

use flowstart_core::path::Hint;
use flowstart_core::sources::{Sources, Statement, Verdict, name};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::spec::link::{Link, Saved};
use crate::spec::transport::Transport;
use crate::study::plan::Plan;

/// Age of the path information that an earlier connection saved.
pub(crate) const SAVED_AGE: Duration = Duration::from_millis(60_000);

/// What sources state of a link before the handshake, if anything is known of it. All of it is believed.
pub(super) fn sources(plan: &Plan, transport: &Transport, link: &Link, start: Timestamp) -> Sources {
    let profile = &transport.profile;
    let packet = Bytes::new(u64::from(profile.data_wire_size(profile.payload)));
    // An earlier connection was alone on the idle path: its RTT is the mean propagation plus a packet's serialization,
    // and its delivery rate is the link's.
    let cached = link.host_rtt() + link.varies.mean_delay() + link.rate.time_for(packet) * u64::from(link.hops);
    let saved = link.saved.of(Saved { rate: link.rate, rtt: cached, age: SAVED_AGE });
    let mut sources = Sources::default();
    if plan.unknown {
        for source in [name::PATH_STORE, name::INTERFACE, name::ORACLE, name::HINT] {
            sources.lack(source, Verdict::Missing, "");
        }
        return sources;
    }
    let hint = link.hinted(start).filter(|_| plan.hint).map(|bandwidth| {
        let age = Some(link.hint_age()).filter(|age| *age > Duration::ZERO);
        (Statement::Hint(Hint { bandwidth, technology: link.technology }), age)
    });
    let interface = Some((Statement::Interface(link.access_rate), None));
    for (source, stated) in [
        (name::PATH_STORE, saved.map(|saved| (Statement::Saved(saved.path()), Some(saved.age)))),
        (name::INTERFACE, interface),
        (name::ORACLE, link.oracle.of(link.rate).map(|rate| (Statement::Oracle(rate), None))),
        (name::HINT, hint),
    ] {
        match stated {
            Some((statement, age)) => sources.state(source, statement, age, Some(statement), ""),
            None => sources.lack(source, Verdict::Missing, ""),
        }
    }
    sources
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
        let saved = sources(&plan, &plan.transports[0], &plan.links[0], Timestamp::ZERO).knowledge().saved.unwrap();
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
