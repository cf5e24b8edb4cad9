//! The real QUIC stack in simulated time: it agrees with the model if only the stack differs, and has functions that
//! the model lacks.
#![cfg(feature = "quic")]

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::{EcnCodepoint, QueueContext, QueueDiscipline, QueueState, QueuedPacket};
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::Hint;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::ends::Hosts;
use flowstart_lab::ends::quic::QuicFlows;
use flowstart_lab::experiment;
use flowstart_lab::results::flows::{Row, write_csv};
use flowstart_lab::spec::stack::StackOptions;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::trace::traced::{self, TracedRun};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

fn scenario(link: &str, size: &str, schemes: &[&str], transport: &str) -> Scenario {
    Scenario {
        link: vec![link.into()],
        size: vec![size.into()],
        scheme: schemes.iter().map(|scheme| (*scheme).to_owned()).collect(),
        aqm: vec!["taildrop".into()],
        competitor: vec!["none".into()],
        flows: 1,
        transport: vec![transport.into()],
        reps: 1,
        seed: 1,
        hint: true,
        ..Scenario::default()
    }
}

fn rows(scenario: &Scenario, jobs: usize) -> Vec<Row> {
    let plan = scenario.plan(Path::new(".")).expect("a valid scenario");
    experiment::execute(&plan, jobs, &[], |_| {}).expect("threads")
}

fn run(link: &str, size: &str, scheme: &str, transport: &str) -> Row {
    rows(&scenario(link, size, &[scheme], transport), 1).remove(0)
}

/// The model with the stack's policies. At the low rates of these beginnings 10 ms bound the stack's bursts.
const MODEL: &str = "model-quic:profile=noq,pacing.quantum=10ms";

/// Cells without loss in which the stack's completion time differs from the model's by more than 3 %.
fn differences(schemes: &[&str]) -> Vec<String> {
    let mut differences = Vec::new();
    for link in ["rate=10mbit,rtt=40ms", "rate=100mbit,rtt=100ms", "rate=50mbit,rtt=600ms"] {
        for size in ["70KB", "100KB", "2MB"] {
            let link = format!("{link},buffer=unlimited");
            let of = |transport: &str| rows(&scenario(&link, size, schemes, transport), 1);
            for (model, stack) in of(MODEL).iter().zip(&of("quic")) {
                assert_eq!((model.dropped_packets, stack.dropped_packets, stack.retransmitted_bytes), (0, 0, 0));
                let (model_ms, stack_ms) = (model.fct_ms.unwrap_or(f64::NAN), stack.fct_ms.unwrap_or(f64::NAN));
                let close = (stack_ms / model_ms - 1.0).abs() <= 0.03;
                if !close {
                    eprintln!("{}: model {model_ms:.1} ms, stack {stack_ms:.1} ms", stack.cell);
                    differences.push(stack.cell.clone());
                }
            }
        }
    }
    differences
}

#[test]
fn without_loss_the_stack_takes_as_long_as_the_model_with_the_same_policies() {
    let schemes =
        ["slow-start", "search:variant=slides", "jump-start", "blitzstart", "more-start", "rapid-start", "plumb"];
    // 70 kB are 60 packets of the model. The stack's first packet carries frames of the handshake's end, so it needs 61
    // packets, which one more acknowledgement has to release: 3.2 %.
    let one_packet_more = ["slow-start", "search:variant=slides"]
        .map(|scheme| format!("rate=100mbit,rtt=100ms,buffer=unlimited/taildrop/70KB/{scheme}/none"));
    assert_eq!(differences(&schemes), one_packet_more);
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_threads() {
    let mut lossy = scenario("rate=20mbit,rtt=40ms,buffer=30pkt", "300KB", &["slow-start", "blitzstart"], "quic");
    (lossy.competitor, lossy.reps) = (vec!["cubic".into()], 3);
    let csv = |jobs| {
        let mut bytes = Vec::new();
        write_csv(&rows(&lossy, jobs), &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let first = csv(1);
    assert!(first.contains("ok"), "{first}");
    assert_eq!(first, csv(2));
}

#[test]
fn several_flows_share_a_link() {
    let mut two = scenario("rate=20mbit,rtt=40ms,buffer=100pkt", "500KB", &["slow-start"], "quic");
    two.flows = 2;
    let rows = rows(&two, 1);
    assert_eq!(rows.len(), 2);
    // A megabyte takes 0.4 s at 20 Mbit/s.
    assert!(rows.iter().all(|row| row.status == "ok"));
    assert!(rows.iter().filter_map(|row| row.fct_ms).fold(0.0, f64::max) > 400.0);
}

#[test]
fn zero_rtt_saves_a_round_trip_and_retry_costs_one() {
    let link = "rate=100mbit,rtt=100ms,buffer=unlimited";
    let fct = |transport| run(link, "500B", "slow-start", transport).fct_ms.unwrap();
    let (plain, early, retry) = (fct("quic"), fct("quic:opening=zero-rtt"), fct("quic:retry=true"));
    assert!((plain - 200.0).abs() < 3.0, "{plain}");
    assert!((plain - early - 100.0).abs() < 3.0, "{plain} {early}");
    assert!((retry - plain - 100.0).abs() < 3.0, "{plain} {retry}");
}

#[test]
fn losses_are_found_and_repaired() {
    let row = run("rate=20mbit,rtt=50ms,buffer=unlimited,loss=1%", "2MB", "slow-start", "quic");
    assert_eq!(row.status, "ok");
    // 2 MB are 1700 packets, of which one in a hundred is lost.
    assert!(row.dropped_packets >= 5, "{row:?}");
    assert!(row.declared_lost_packets >= 5 && row.retransmitted_bytes > 5000, "{row:?}");
    assert!(row.window_cuts > Some(0) && row.exit_reason.as_deref() == Some("loss"), "{row:?}");
}

#[test]
fn a_large_overshoot_is_survived() {
    // Slow start loses about as many packets as the queue and the path hold together, every second one.
    let row = run("rate=100mbit,rtt=600ms,buffer=1bdp", "50MB", "slow-start", "quic");
    assert_eq!(row.status, "ok", "{row:?}");
    assert!(row.dropped_packets > 5000 && row.declared_lost_packets > 5000, "{row:?}");
}

#[test]
fn a_small_receive_window_holds_the_sender_back() {
    let link = "rate=100mbit,rtt=100ms,buffer=unlimited";
    let wide = run(link, "2MB", "slow-start", "quic").fct_ms.unwrap();
    // At most 100 kB in 100 ms: 2 MB take at least 2 s.
    let narrow = run(link, "2MB", "slow-start", "quic:receive_window=100KB").fct_ms.unwrap();
    assert!(narrow >= 2000.0 && wide < 1500.0, "{narrow} {wide}");
}

#[test]
fn larger_packets_are_found_and_used() {
    let link = "rate=20mbit,rtt=40ms,buffer=unlimited";
    let trace = |transport: &str| {
        let plan = scenario(link, "2MB", &["slow-start"], transport).plan(Path::new(".")).unwrap();
        let run = traced::capture(&plan, &plan.cells()[0], 0);
        assert_eq!(run.outcomes[0].failure, None);
        run
    };
    let longest = |run: &TracedRun| {
        let capture = run.finished.hosts.capture().unwrap();
        capture.datagrams.iter().map(|datagram| datagram.payload.len()).max()
    };
    let (fixed, found) = (trace("quic"), trace("quic:mtu_discovery=true"));
    assert_eq!((longest(&fixed), longest(&found)), (Some(1200), Some(1452)));
    let packets = |run: &TracedRun| run.outcomes[0].record.data_packets as f64;
    // 1200/1452 is 0.83; the first packets are small.
    let ratio = packets(&found) / packets(&fixed);
    assert!((0.82..0.90).contains(&ratio), "{ratio}");
    assert_eq!(found.outcomes[0].record.declared_lost, 0);
}

/// Three routers of 10 Mbit/s that approve at most 9, or do something else.
fn routers(behaviour: &str) -> String {
    format!("rate=10mbit,rtt=80ms,buffer=150pkt,hops=2,quick_start={behaviour}")
}

#[test]
fn what_routers_approve_is_worth_as_much_to_the_stack_as_to_the_model() {
    for size in ["20KB", "100KB", "300KB", "1MB"] {
        let of = |transport: &str| run(&routers("target"), size, "quick-start", transport).fct_ms.unwrap_or(f64::NAN);
        let (stack, model) = (of("quic"), of("model-quic:profile=noq"));
        assert!((stack / model - 1.0).abs() <= 0.03, "{size}: stack {stack:.1} ms, model {model:.1} ms");
        // A window that carries the first 20 kB, or 51, in the round trip that slow start needs for ten packets.
        let slow_start = run(&routers("target"), size, "slow-start", "quic").fct_ms.unwrap_or(f64::NAN);
        assert!(stack < slow_start - 50.0, "{size}: {stack:.1} ms, slow start {slow_start:.1} ms");
    }
}

#[test]
fn a_request_of_the_stack_that_comes_to_nothing_leaves_slow_start() {
    let fct = |behaviour: &str, scheme: &str, transport: &str| {
        run(&routers(behaviour), "100KB", scheme, transport).fct_ms.unwrap_or(f64::NAN)
    };
    for transport in ["quic", "quic:retry=true"] {
        let slow_start = fct("target", "slow-start", transport);
        for behaviour in ["ignore", "delete", "zero"] {
            // The option takes 6 microseconds of a link, three times.
            let refused = fct(behaviour, "quick-start", transport);
            assert!((refused - slow_start).abs() < 0.1, "{transport}, {behaviour}: {refused} ms, {slow_start} ms");
        }
        assert!(fct("target", "quick-start", transport) < slow_start - 100.0, "{transport}");
        // The server's first flight is repeated after a timeout, without the option.
        let dropped = fct("drop", "quick-start", transport);
        assert!((slow_start + 100.0..slow_start + 2000.0).contains(&dropped), "{transport}: {dropped}");
    }
    // With 0-RTT there is no rate request.
    let early = "quic:opening=zero-rtt";
    assert_eq!(fct("target", "quick-start", early), fct("target", "slow-start", early));
}

#[test]
fn what_the_stack_cannot_do_is_refused() {
    let refused = |scenario: Scenario| scenario.plan(Path::new(".")).unwrap_err().to_string();
    let link = "rate=20mbit,rtt=40ms";
    let halfback = refused(scenario(link, "1MB", &["slow-start", "halfback"], "quic"));
    assert!(halfback.contains("halfback") && halfback.contains("noq"), "{halfback}");
    for (key, problem) in [
        ("after_idle=1s", "its connections ask once"),
        ("after_move=true", "its connections ask once"),
        ("granularity=1ms", "paces in its own way"),
        ("room=connection", "do not become smaller"),
    ] {
        let scheme = format!("quick-start:{key}");
        let error = refused(scenario(link, "1MB", &["slow-start", &scheme], "quic"));
        assert!(error.contains(problem) && error.contains("model-quic"), "{error}");
    }
    let pages = Scenario {
        size: Vec::new(),
        application: vec!["page:objects=6,size=50KB,waves=3".into()],
        ..scenario(link, "1MB", &["slow-start"], "quic")
    };
    let pages = refused(pages);
    assert!(pages.contains("application") && pages.contains("allowed is transfer"), "{pages}");
}

/// A separate world around one real flow.
struct Stage {
    world: World,
    quic: QuicFlows,
    flow: u32,
    route: Route,
}

impl Stage {
    fn new(profile: Profile, scheme: &str, rate: Rate, size: Bytes) -> Self {
        let mut world = World::new(1);
        let way = LinkConfig::new(rate, Duration::from_millis(25));
        let route = Route { forward: vec![world.add_link(&way)], back: vec![world.add_link(&way)] };
        let startup = StartupConfig::defaults().into_iter().find(|config| config.name() == scheme).expect("a scheme");
        let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(size), route.clone());
        config.startup = startup;
        config.avoidance =
            AvoidanceConfig::defaults().into_iter().find(|config| config.name() == "cubic").expect("CUBIC");
        config.sources.knowledge_mut().hint = Some(Hint { bandwidth: rate, technology: Default::default() });
        let mut quic = QuicFlows::new(&world, &StackOptions::default(), Duration::ZERO, None);
        let flow = quic.add(&mut world, config, size, 1);
        Self { world, quic, flow, route }
    }

    fn finish(&mut self) {
        let limit = Timestamp::ZERO + Duration::from_millis(60_000);
        assert_eq!(self.world.run_flow(self.flow, limit), Ok(()));
    }
}

/// Marks every packet that finds more than ten others waiting.
#[derive(Clone, Debug, Default)]
struct Marker(std::collections::VecDeque<QueuedPacket>);

impl QueueDiscipline for Marker {
    fn enqueue(&mut self, packet: QueuedPacket, _: &mut QueueContext<'_>) {
        let marked = self.0.len() > 10 && packet.ecn == EcnCodepoint::Ect0;
        self.0.push_back(QueuedPacket { ecn: if marked { EcnCodepoint::Ce } else { packet.ecn }, ..packet });
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.0.pop_front()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.0.iter().map(|packet| u64::from(packet.size)).sum())
    }
}

#[test]
fn marks_of_a_queue_reduce_the_window() {
    for ecn in [true, false] {
        let profile = Profile { ecn, ..Profile::noq() };
        let mut stage = Stage::new(profile, "slow-start", Rate::from_mbit(20), Bytes::new(2_000_000));
        let marker = QueueState::Custom(Box::new(Marker::default()));
        stage.world.network.set_queue(stage.route.forward[0], marker);
        stage.finish();
        let record = stage.world.record(stage.flow);
        assert_eq!((record.dropped, record.declared_lost), (0, 0));
        assert_eq!(record.window_cuts > 0, ecn, "{record:?}");
    }
}

#[test]
fn a_connection_that_moves_does_not_launch_again_with_what_it_knew() {
    let rate = Rate::from_mbit(50);
    let mut stage = Stage::new(Profile::noq(), "blitzstart", rate, Bytes::new(5_000_000));
    stage.world.run_until(Timestamp::ZERO + Duration::from_millis(300));
    let before = stage.quic.flow(stage.flow).unwrap().status();
    // The hint of 50 Mbit/s and 50 ms: 312.5 kB.
    assert!(before.launch.unwrap().1 > Bytes::new(250_000), "{before:?}");
    assert_eq!(before.moves, 0);
    let way = LinkConfig::new(Rate::from_mbit(5), Duration::from_millis(25));
    let slow = Route { forward: vec![stage.world.add_link(&way)], back: stage.route.back.clone() };
    stage.world.change_path(stage.flow, &slow);
    stage.finish();
    let after = stage.quic.flow(stage.flow).unwrap().status();
    // The new path is launched as an unknown one: with the initial window of ten packets.
    assert_eq!(after.moves, 1);
    assert_eq!(after.launch.unwrap().1, Bytes::new(12_000));
}

#[test]
fn advice_reaches_a_real_server_as_it_reaches_the_models() {
    let link = |scone: &str| format!("rate=50mbit,rtt=50ms,buffer=1bdp{scone}");
    let of = |link: &str, transport: &str| run(link, "2MB", "jump-start", transport);
    let (advised, free) = (link(",scone=10mbit"), link(""));
    let stack = of(&advised, "quic:scone=handshake");
    let model = of(&advised, &format!("{MODEL},scone=handshake"));
    // Without advice 2 MB in an RTT overflow the queue. At 10 Mbit/s all of it would take 1.6 s; congestion avoidance
    // goes on from there, and nothing is lost.
    assert!(of(&free, "quic:scone=handshake").dropped_packets > 100);
    assert_eq!((stack.dropped_packets, model.dropped_packets), (0, 0));
    let (stack, model) = (stack.fct_ms.expect("complete"), model.fct_ms.expect("complete"));
    assert!(
        (1300.0..1600.0).contains(&stack) && (stack / model - 1.0).abs() < 0.03,
        "{stack} ms, the model {model} ms"
    );
    // A client that does not announce SCONE support gets no SCONE packets.
    assert!(of(&advised, "quic").dropped_packets > 100);
}

#[test]
fn advice_with_the_first_data_comes_too_late_for_a_launch() {
    let link = "rate=50mbit,rtt=50ms,buffer=1bdp,scone=10mbit";
    let late = run(link, "2MB", "jump-start", "quic:scone=data");
    assert!(late.dropped_packets > 100, "{late:?}");
    let transport = "quic:scone=handshake,opening=zero-rtt";
    assert_eq!(run(link, "20KB", "slow-start", transport).status, "ok");
}
