//! The causes of a transfer's delay: its completion time beyond the physical limit, split into causes.
//!
//! The account is kept at the bottleneck, from the arrival of the first data packet until the departure of the packet
//! that completes the transfer. The limit needs the time in which the link carries the transfer's bytes once. All other
//! time there has exactly one cause at each instant:
//!
//! 1. the link carries a packet of the flow without new bytes, because they had arrived before or because the packet is
//!    lost later: **own queue**;
//! 2. it carries others' packets while a packet of the flow waits: **others' queue**;
//! 3. it could have carried a packet of the flow, but none was there. If lost bytes have not yet passed: **tail** when
//!    all data had been sent once before, **recovery** otherwise. If nothing was lost: **flow control** when data
//!    waited, the congestion window had room and only the receiver's window stopped the sender; otherwise **unused
//!    capacity**, because the window was too small or the sender paced.
//!
//! The time of the handshake beyond the limit's is **handshake**. The rest, **other**, is time that the limit does not
//! count: noise of hosts, further queues of a chain, a token bucket's burst, and on recorded traces the difference
//! between the limit's opportunities and those of the packets. The sum of the causes is the completion time minus the
//! limit, to the nanosecond.
//!
//! Every cause except **idle time** and **other** is not negative. The handshake may be a nanosecond or two below zero
//! because the limit halves RTTs. **Other** may be negative if a burst or a trace carried the bytes earlier than in the
//! limit.
//!
//! A video or a page sometimes has nothing to send: everything that it has written was sent once, and nothing is
//! missing. The limit has such time, too; **idle time** is the flow's beyond the limit's. It is negative if a delay
//! fell into the limit's idle time, because a late chunk does not delay the next one. Percentages are therefore parts
//! of the **delay**: the time beyond the limit, plus the time that idle time made up for.

use flowstart_core::time::Duration;
use flowstart_report::{CAUSES, Cause, Causes};
use flowstart_sim::transport::policy::Opening;

use crate::run::outcome::FlowOutcome;
use crate::study::ideal::ideal_idle_time;
use crate::study::plan::{Cell, Plan};
use crate::trace::traced::TracedRun;

mod account;
mod in_order;
#[cfg(test)]
mod reference;

pub use account::{Account, Split};

/// The causes of a transfer's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Completion time.
    pub fct: Duration,
    /// The physical limit.
    pub ideal_fct: Duration,
    /// Nanoseconds of each cause, in the order of [`Cause::ALL`].
    nanos: [i64; CAUSES],
}

impl Explanation {
    /// Milliseconds of one cause.
    pub fn ms(&self, cause: Cause) -> f64 {
        self.nanos[cause as usize] as f64 / 1e6
    }

    /// As milliseconds.
    pub fn causes(&self) -> Causes {
        Causes {
            fct_ms: self.fct.as_millis_f64(),
            ideal_fct_ms: self.ideal_fct.as_millis_f64(),
            causes_ms: Cause::ALL.map(|cause| self.ms(cause)),
        }
    }

    /// Milliseconds beyond the physical limit: the sum of the causes.
    pub fn excess_ms(&self) -> f64 {
        self.nanos.iter().sum::<i64>() as f64 / 1e6
    }

    /// Milliseconds beyond the physical limit, plus those that idle time made up for.
    pub fn delay_ms(&self) -> f64 {
        self.causes().delay_ms()
    }

    /// A cause's part of the delay, in percent. `None` if the delay is almost zero, and for what made up for delays.
    pub fn percent(&self, cause: Cause) -> Option<f64> {
        self.causes().percent(cause)
    }

    /// The rest of a sentence that begins with the flow, its bytes and its link.
    pub fn sentence_end(&self) -> String {
        let (fct, ideal) = (self.fct.as_millis_f64(), self.ideal_fct.as_millis_f64());
        let most = Cause::ALL.into_iter().max_by_key(|cause| self.nanos[*cause as usize]);
        let made_up = [
            (Cause::IdleTime, "idle time"),
            (Cause::Other, "what the limit does not count, such as a link that became faster,"),
        ];
        let made_up = made_up.map(|(cause, name)| match -self.ms(cause) {
            little if little < 0.05 => String::new(),
            ms => format!(", and {name} made up for {ms:.1} ms"),
        });
        match most.and_then(|cause| Some((cause, self.percent(cause)?))) {
            Some((cause, percent)) => format!(
                "in {fct:.1} ms, {:.1} ms beyond the physical limit of {ideal:.1} ms{}. The largest part of that is {} \
                 ({percent:.0} %): {}.",
                self.excess_ms(),
                made_up.concat(),
                cause.name(),
                cause.meaning()
            ),
            None => format!("in {fct:.1} ms, which is the physical limit."),
        }
    }
}

/// Explains the first measured flow of a run with a whole trace. `None` if the flow did not finish, nothing was traced,
/// or the flow took another path: the account is that of one bottleneck.
pub fn explain(plan: &Plan, cell: &Cell, run: &TracedRun) -> Option<Explanation> {
    explain_flow(plan, cell, run, 0)
}

/// Like [`explain`], for the measured flow in this place, from 0.
pub fn explain_flow(plan: &Plan, cell: &Cell, run: &TracedRun, place: usize) -> Option<Explanation> {
    let outcome = run.outcomes.get(place)?;
    let flow = *run.finished.flows.get(place)?;
    let network = &run.finished.world.network;
    let link = &plan.links[cell.link].for_hosts(outcome.rtt);
    let mut account = Account::new(network.monitor.as_ref()?.link, link);
    account.follow(flow, link);
    network.trace.as_deref()?.entries.iter().for_each(|entry| account.on_event(entry));
    explanation(plan, cell, outcome, &account.finish()?)
}

/// Explains a flow from its account. `None` if it did not finish, took another path, or is not the only connection of
/// its transfer.
pub fn explanation(plan: &Plan, cell: &Cell, outcome: &FlowOutcome, split: &Split) -> Option<Explanation> {
    if plan.mobility(cell).is_some() || !plan.is_one_connection(cell) {
        return None;
    }
    let record = &outcome.record;
    let (started, completed, first_sent) = (record.started?, record.completed?, record.first_data_sent?);
    let rtt = outcome.rtt;
    let link = &plan.links[cell.link].for_hosts(rtt);
    let profile = plan.profile(cell);
    let ideal_handshake = match profile.opening {
        Opening::Sender => rtt,
        Opening::Request => rtt + rtt / 2,
        Opening::ZeroRtt => rtt / 2,
    };
    let fct = completed.since(started);
    let handshake = signed(first_sent.since(started)) - signed(ideal_handshake);
    let Split { unused, flow_control, own, others, recovery, tail, idle } = *split;
    let [unused, flow_control, own, others, recovery, tail, idle] =
        [unused, flow_control, own, others, recovery, tail, idle].map(|nanos| nanos as i64);
    let application = plan.sizes[cell.size].value.objects();
    let ideal_idle =
        application.map_or(Duration::ZERO, |application| ideal_idle_time(link, &profile, application, outcome.start));
    let idle = idle - signed(ideal_idle);
    let known = handshake + unused + flow_control + own + others + recovery + tail + idle;
    let other = signed(fct) - signed(outcome.ideal_fct) - known;
    let nanos = [handshake, unused, flow_control, own, others, recovery, tail, idle, other];
    Some(Explanation { fct, ideal_fct: outcome.ideal_fct, nanos })
}

fn signed(duration: Duration) -> i64 {
    duration.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;
    use crate::trace::traced::trace;

    /// A traced run and its explanation, which is exact.
    fn run(link: &str, size: &str, scheme: &str, competitor: &str, transport: &str) -> (TracedRun, Explanation) {
        let scenario = Scenario {
            link: vec![link.into()],
            size: vec![size.into()],
            scheme: vec![scheme.into()],
            aqm: vec!["taildrop".into()],
            competitor: vec![competitor.into()],
            transport: vec![transport.into()],
            flows: 1,
            reps: 1,
            hint: true,
            ..Scenario::default()
        };
        run_scenario(&scenario)
    }

    /// The account that is kept during a run equals that from all its events at once, to the nanosecond.
    fn is_the_account_of_all_events(plan: &Plan, cell: &Cell, run: &TracedRun) {
        let network = &run.finished.world.network;
        let (trace, bottleneck) = (network.trace.as_deref().unwrap(), network.monitor.as_ref().unwrap().link);
        for (flow, outcome) in run.finished.flows.iter().zip(&run.outcomes) {
            let link = &plan.links[cell.link].for_hosts(outcome.rtt);
            let expected = reference::Account::read(trace, *flow, bottleneck, link).unwrap().split();
            let mut account = Account::new(bottleneck, link);
            account.follow(*flow, link);
            trace.entries.iter().for_each(|entry| account.on_event(entry));
            assert_eq!(account.finish().unwrap(), expected);
        }
    }

    fn run_scenario(scenario: &Scenario) -> (TracedRun, Explanation) {
        let plan = scenario.plan(Path::new(".")).unwrap();
        let cell = plan.cells()[0];
        let run = trace(&plan, &cell, 0);
        let explained = explain(&plan, &cell, &run).unwrap();
        is_the_account_of_all_events(&plan, &cell, &run);
        assert_eq!(explained.nanos.iter().sum::<i64>(), signed(explained.fct) - signed(explained.ideal_fct));
        assert!(explained.nanos[0] >= -2 && explained.nanos[1..7].iter().all(|cause| *cause >= 0), "{explained:?}");
        (run, explained)
    }

    fn explained(link: &str, size: &str, scheme: &str, competitor: &str, transport: &str) -> Explanation {
        run(link, size, scheme, competitor, transport).1
    }

    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected} +- {tolerance}");
    }

    #[test]
    fn a_chunk_that_is_late_does_not_delay_the_next_one() {
        let scenario = Scenario {
            link: vec![WIDE.into()],
            application: vec!["chunks:size=100KB,interval=1s,count=3".into()],
            scheme: vec!["slow-start:iw=10".into()],
            idle: vec!["rfc5681".into()],
            aqm: vec!["taildrop".into()],
            competitor: vec!["none".into()],
            transport: vec!["model-quic:pacing=none".into()],
            flows: 1,
            reps: 1,
            ..Scenario::default()
        };
        let (_, explained) = run_scenario(&scenario);
        // 100 KB are 86 packets of about 1 ms. Every chunk has rounds of 10, 20 and 40 packets before the last 16
        // follow: 3 * 100 ms, in which the link carries 70 packets. The next chunk waits for its second, so two of
        // three delays are made up for, and only the last chunk's is beyond the limit.
        let lost = 3.0 * 100.0 - 70.0;
        close(explained.ms(Cause::UnusedCapacity), 3.0 * lost, 30.0);
        close(explained.ms(Cause::IdleTime), -2.0 * lost, 20.0);
        close(explained.excess_ms(), lost, 12.0);
        close(explained.ms(Cause::Other), 0.0, 2.0);
        assert_eq!(explained.percent(Cause::IdleTime), None);
        close(explained.percent(Cause::UnusedCapacity).unwrap_or(0.0), 100.0, 2.0);
    }

    #[test]
    fn waves_of_a_page_wait_for_their_requests_as_the_limit_does() {
        let scenario = Scenario {
            link: vec![WIDE.into()],
            application: vec!["page:objects=2,size=10KB,waves=3".into()],
            scheme: vec!["initial-start:iw=100".into()],
            aqm: vec!["taildrop".into()],
            competitor: vec!["none".into()],
            transport: vec!["model-quic:pacing=none".into()],
            flows: 1,
            reps: 1,
            ..Scenario::default()
        };
        let (_, explained) = run_scenario(&scenario);
        // The window is larger than a wave, so the link is idle only for want of requests. Each of the two arrives
        // later than in the limit by the time of the packet that carries it.
        close(explained.ms(Cause::UnusedCapacity), 0.0, 2.5);
        close(explained.ms(Cause::IdleTime), 0.0, 2.5);
    }

    #[test]
    fn a_receive_window_of_a_quarter_of_the_path_costs_flow_control() {
        // A round takes the RTT of 100 ms, a packet's time and an acknowledgement's: 101.232 ms. The window of 25
        // packets of 1460 bytes fills 30 ms of it.
        let blocked = explained(WIDE, "400KB", "slow-start", "none", &format!("{NS2},receive_window=36500B"));
        let free = explained(WIDE, "400KB", "slow-start", "none", NS2);
        assert_eq!(free.ms(Cause::FlowControl), 0.0);
        // Rounds of 3, 6, 12 and 24 packets as in slow start, and 229 packets in windows of 25: nine rounds and 4
        // packets.
        close(blocked.ms(Cause::UnusedCapacity), 4.0 * 101.232 - 45.0 * 1.2, 3.0);
        close(blocked.ms(Cause::FlowControl), 9.0 * (101.232 - 25.0 * 1.2), 3.0);
        close(blocked.excess_ms(), blocked.ms(Cause::UnusedCapacity) + blocked.ms(Cause::FlowControl), 0.1);
    }

    /// Links, queues, competitors, transports and arrivals that make accounts of every kind.
    #[test]
    fn the_account_of_a_run_that_goes_on_is_that_of_all_its_events() {
        for (link, aqm, competitor, transport, arrival) in [
            (
                "rate=10mbit,rtt=50ms,buffer=20pkt,loss=1%",
                "taildrop",
                "bulk:cubic,count=2",
                "model-tcp",
                "within=1ms,flows=3",
            ),
            (
                "rate=10mbit,rtt=50ms,buffer=100pkt,hops=3",
                "codel",
                "web:load=5mbit",
                "model-quic",
                "every=20ms,flows=4",
            ),
            ("rate=10mbit,rtt=50ms,buffer=60pkt,burst=30KB", "fq-codel", "cbr:rate=3mbit", "model-tcp", "together"),
            ("lte", "pie", "bulk", "model-quic:receive_window=40KB", "together"),
            ("rate=10mbit,rtt=50ms,buffer=20pkt,loss=1%", "taildrop", "bulk", "quic", "within=1ms,flows=2"),
            ("lte", "taildrop", "bulk", "model-quic", "every=50ms,flows=2"),
        ] {
            let text = format!(
                "link = [\"{link}\"]\nsize = [\"500KB\"]\nscheme = [\"slow-start\"]\naqm = [\"{aqm}\"]\n\
                 competitor = [\"{competitor}\"]\ntransport = \"{transport}\"\narrival = [\"{arrival}\"]\nreps = 1"
            );
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            let cell = plan.cells()[0];
            let run = trace(&plan, &cell, 0);
            assert!(run.outcomes.iter().all(|outcome| outcome.failure.is_none()));
            is_the_account_of_all_events(&plan, &cell, &run);
        }
    }

    const WIDE: &str = "rate=10mbit,rtt=100ms,buffer=1000pkt";
    /// Three segments at first, an acknowledgement per packet, packets of 1500 bytes and the data sender opens.
    const NS2: &str = "model-tcp:profile=ns2-sack1";

    #[test]
    fn the_causes_are_the_time_beyond_the_limit() {
        for (link, competitor) in [
            (WIDE, "none"),
            ("rate=10mbit,rtt=50ms,buffer=20pkt,loss=1%", "bulk"),
            ("rate=10mbit,rtt=50ms,buffer=20pkt,hops=3", "cbr:rate=5mbit"),
        ] {
            for transport in ["model-quic", "model-tcp", NS2] {
                let explained = explained(link, "400KB", "slow-start", competitor, transport);
                // No noise of hosts: the rest comes from packets of a different size than the limit's.
                close(explained.ms(Cause::Other), 0.0, 2.0);
            }
        }
    }

    #[test]
    fn slow_start_alone_leaves_capacity_unused_for_its_rounds() {
        // 400 KB are 274 packets of 1.2 ms. The rounds send 3, 6, 12, 24, 48 packets; from the sixth on (96 packets,
        // 115 ms) the link is busy. Each of the five rounds begins 100 ms, the time of its first packet and that of an
        // acknowledgement (40 bytes, 0.032 ms) after the round before. Its packets use a part of that: 5 * 101.232 - 93
        // * 1.2 = 394.56 ms.
        let explained = explained(WIDE, "400KB", "slow-start", "none", NS2);
        close(explained.ms(Cause::UnusedCapacity), 394.56, 0.05);
        close(explained.excess_ms(), explained.ms(Cause::UnusedCapacity), 0.1);
    }

    #[test]
    fn a_launch_at_the_links_rate_wastes_next_to_nothing() {
        let explained = explained(WIDE, "400KB", "jump-start", "none", "model-quic");
        for cause in [Cause::UnusedCapacity, Cause::Recovery, Cause::Tail, Cause::OwnQueue, Cause::OthersQueue] {
            close(explained.ms(cause), 0.0, 1e-9);
        }
    }

    #[test]
    fn constant_traffic_shows_as_others_queue() {
        // Jump-start paces 400 KB over one RTT of 100 ms. In that time others send 5 Mbit/s * 100 ms = 62.5 KB between
        // its packets, which the link carries in 50 ms; their later packets wait behind the transfer. The RTT of the
        // handshake is a few milliseconds longer, two of which are one more packet.
        let alone = explained(WIDE, "400KB", "jump-start", "none", "model-quic");
        let shared = explained(WIDE, "400KB", "jump-start", "cbr:rate=5mbit", "model-quic");
        close(shared.ms(Cause::OthersQueue), 50.0, 3.0);
        close(shared.excess_ms() - alone.excess_ms(), shared.ms(Cause::OthersQueue), 2.5);
    }

    #[test]
    fn lost_packets_cost_recovery_or_tail() {
        let explained = explained("rate=10mbit,rtt=100ms,buffer=20pkt", "400KB", "jump-start", "none", "model-quic");
        assert!(explained.ms(Cause::Recovery) + explained.ms(Cause::Tail) > 50.0, "{explained:?}");
    }

    #[test]
    fn zero_rtt_saves_a_round_trip_of_the_limit_and_nothing_else() {
        let zero = explained(WIDE, "400KB", "slow-start", "none", "model-quic:opening=zero-rtt");
        let one = explained(WIDE, "400KB", "slow-start", "none", "model-quic");
        close((one.ideal_fct.as_millis_f64() - zero.ideal_fct.as_millis_f64()) - 100.0, 0.0, 1e-6);
        // The rounds are the same; the rest of the handshake is the time of the packet with the request.
        close(zero.ms(Cause::UnusedCapacity), one.ms(Cause::UnusedCapacity), 2.0);
        close(zero.ms(Cause::Handshake), 1.2, 0.2);
    }

    #[test]
    fn a_second_hop_only_adds_what_the_limit_counts() {
        let one = explained(WIDE, "400KB", "slow-start", "none", NS2);
        let two = explained(&format!("{WIDE},hops=2"), "400KB", "slow-start", "none", NS2);
        // Each of the five rounds takes an additional packet's and acknowledgement's time at the second link.
        close(two.ms(Cause::UnusedCapacity) - one.ms(Cause::UnusedCapacity), 5.0 * 1.232, 0.05);
        close(two.ms(Cause::Other), 0.0, 0.1);
    }

    #[test]
    fn what_the_wire_loses_was_carried_in_vain() {
        // The buffer holds the whole transfer, so only the wire loses packets. Each took 1.2 ms; the last packet of 400
        // KB is short.
        let (run, explained) = run(&format!("{WIDE},loss=2%"), "400KB", "slow-start", "none", NS2);
        let record = &run.outcomes[0].record;
        assert!(record.dropped > 0, "the seed loses something");
        let needless = record.data_packets - 274;
        close(explained.ms(Cause::OwnQueue), needless as f64 * 1.2, 1.2);
        assert!(needless >= record.dropped, "a lost packet is sent again");
        assert!(explained.ms(Cause::Recovery) + explained.ms(Cause::Tail) > 0.0, "{explained:?}");
        close(explained.ms(Cause::Other), 0.0, 0.1);
    }

    #[test]
    fn a_trace_of_even_opportunities_is_a_fixed_rate() {
        let folder = std::env::temp_dir().join(format!("flowstart-explain-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, lines: &mut dyn Iterator<Item = u64>| {
            let file = folder.join(name);
            std::fs::write(&file, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
            format!("trace={},rtt=100ms,buffer=1000pkt", file.display())
        };
        // An opportunity of 1500 bytes every millisecond: 12 Mbit/s, but each packet waits for the next millisecond.
        let even = file("even", &mut (1..=1000));
        let fixed = explained("rate=12mbit,rtt=100ms,buffer=1000pkt", "400KB", "slow-start", "none", NS2);
        let traced = explained(&even, "400KB", "slow-start", "none", NS2);
        for cause in Cause::ALL {
            close(traced.ms(cause), fixed.ms(cause), 6.0);
        }
        // The same without opportunities from 300 to 700 ms, in which the limit's transfer is not complete either.
        let gap = file("gap", &mut (1..=300).chain(700..=2000));
        let paused = explained(&gap, "400KB", "slow-start", "none", NS2);
        // The sender takes the gap for a loss and starts again.
        assert!(paused.ms(Cause::UnusedCapacity) > traced.ms(Cause::UnusedCapacity), "{paused:?}");
        assert!(paused.ms(Cause::OwnQueue) > 0.0, "{paused:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
