//! Sensing's knowledge of a link before the handshake of a transfer, and where it comes from.

use flowstart_core::path::{Hint, PathKnowledge};
use flowstart_core::sources::{Finding, Sources, Statement, Verdict, name};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_quic::hint::BandwidthHint;

use crate::spec::link::{Link, Saved};
use crate::spec::transport::Transport;
use crate::study::plan::{Cell, Plan};

/// Age of the path information that an earlier connection saved.
pub(crate) const SAVED_AGE: Duration = Duration::from_millis(60_000);

/// Sensing's knowledge of a link before the handshake of a transfer that starts at `start`.
pub(super) fn knowledge(plan: &Plan, transport: &Transport, link: &Link, start: Timestamp) -> PathKnowledge {
    sources(plan, transport, link, start).knowledge().clone()
}

/// What sources state of a link before the handshake, if anything is known of it. All of it is believed.
fn sources(plan: &Plan, transport: &Transport, link: &Link, start: Timestamp) -> Sources {
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

/// What each source states to the measured flows of a cell that start at `start`, and whether their launch depends on
/// it. It is tried with the RTT of the empty path, and a server's policy for hints counts. What routers approve, what
/// concurrent connections leave, and the RTT of a host that draws one, only a run shows.
pub fn at_launch(plan: &Plan, cell: &Cell, start: Timestamp) -> Vec<Finding> {
    let (transport, link) = (plan.transport_of(cell), &plan.links[cell.link]);
    let mut sources = sources(plan, transport, link, start);
    let path = sources.knowledge_mut();
    path.handshake_rtt = Some(link.host_rtt());
    path.bytes_waiting = plan.sizes[cell.size].value.fixed_size();
    path.receive_window = Some(transport.profile.first_receive_window());
    if let Some(element) = &link.advising {
        let advice = Statement::Advised(element.rate);
        sources.state(name::SCONE, advice, None, Some(advice), "");
    }
    let path = sources.knowledge_mut();
    if let Some(options) = &transport.stack
        && let Some(Hint { bandwidth: rate, technology }) = path.hint.take()
    {
        let hint = BandwidthHint { rate, technology, age: link.hint_age() };
        let hint = hint.in_started_minutes();
        options.judge(&hint, sources.knowledge()).state(name::HINT, &hint, &mut sources);
    }
    let used = plan.schemes[cell.scheme].on(cell.transport).depends_on(sources.knowledge());
    sources.launched(&used);
    sources.findings().to_vec()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_core::units::Rate;

    use super::*;
    use crate::study::scenario::Scenario;

    /// What an earlier connection saved of this link: RTT and window.
    fn saved(link: &str) -> (Duration, Bytes) {
        let text = format!("link = [\"{link}\"]\nsize = [\"2MB\"]\nscheme = [\"careful-resume\"]\nreps = 1");
        let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
        let saved = knowledge(&plan, &plan.transports[0], &plan.links[0], Timestamp::ZERO).saved.unwrap();
        (saved.rtt, saved.cwnd)
    }

    #[test]
    fn a_launch_depends_on_what_its_scheme_senses() {
        let text = "link = ['lte,hint=20mbit']\nsize = ['2MB']\nreps = 1\n\
                    scheme = ['slow-start', 'blitzstart', 'careful-resume', 'more-start']";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let used = |cell: &Cell| {
            let findings = at_launch(&plan, cell, Timestamp::ZERO);
            assert_eq!(findings.len(), 4, "{findings:?}");
            let used = findings.into_iter().filter(|one| one.verdict == Verdict::Used);
            used.map(|one| (one.source, one.stated.unwrap().rate().unwrap().bits_per_sec())).collect::<Vec<_>>()
        };
        let used: Vec<_> = plan.cells().iter().map(used).collect();
        assert_eq!(used[0], []);
        assert_eq!(used[1], [("hint", 20_000_000)]);
        assert_eq!(used[2].len(), 1);
        assert_eq!(used[2][0].0, "path-store");
        assert_eq!(used[3], [("hint", 20_000_000)], "the client's hint comes before the others");
    }

    #[test]
    fn advice_counts_where_it_caps_a_launch() {
        let verdicts = |factor: &str| {
            let text = format!(
                "link = ['rate=40mbit,rtt=50ms,scone={factor}']\nsize = ['2MB']\nreps = 1\n\
                 scheme = ['slow-start', 'blitzstart']"
            );
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            let advice = |cell: &Cell| {
                at_launch(&plan, cell, Timestamp::ZERO).into_iter().find(|one| one.source == name::SCONE).unwrap()
            };
            plan.cells().iter().map(advice).map(|one| (one.stated.unwrap().rate(), one.verdict)).collect::<Vec<_>>()
        };
        let half = Some(Rate::from_mbit(20));
        assert_eq!(verdicts("0.5"), [(half, Verdict::Unused), (half, Verdict::Used)]);
        assert_eq!(verdicts("2").into_iter().map(|(_, verdict)| verdict).collect::<Vec<_>>(), [Verdict::Unused; 2]);
    }

    #[test]
    fn a_hint_counts_as_far_as_the_servers_policy_goes() {
        for (policy, verdict, believed) in [
            ("accept", Verdict::Used, Some(10_000_000)),
            ("ignore", Verdict::Refused, None),
            ("cap:rate=4mbit", Verdict::Used, Some(4_000_000)),
        ] {
            let text = format!(
                "link = ['lte,hint=10mbit']\nsize = ['2MB']\nreps = 1\nscheme = ['blitzstart']\n\
                 transport = ['quic:hint_policy={policy}']"
            );
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            let findings = at_launch(&plan, &plan.cells()[0], Timestamp::ZERO);
            let hint = findings.iter().find(|one| one.source == name::HINT).unwrap();
            let rate = hint.believed.and_then(|one| one.rate()).map(Rate::bits_per_sec);
            assert_eq!((hint.verdict, rate), (verdict, believed), "{policy}");
        }
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
