//! What every queue discipline must keep, whatever happens to it.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod configurations;
mod router;

use configurations::{Random, spaces};
use flowstart_core::aqm::{OutgoingLink, QueueConfig};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use proptest::prelude::*;
use router::{Operation, Router, links};

/// Configurations besides the defaults, at the edges of what is allowed and as others use them.
const OTHERS: &[&str] = &[
    "kind = 'red'\nmin_th = 0.0\nmax_th = 0.0",
    "kind = 'red'\nmin_th = 1.0\nmax_th = 2.0\nw_q = 1.0\nmax_p = 1.0\ngentle = false\nwait = true\necn = false",
    "kind = 'red'\nmin_th = 2.0\nmax_th = 6.0\nw_q = 0.0\nunit = 'bytes'\nbyte_mode = true\nmean_packet = '500B'",
    "kind = 'adaptive-red'\ntarget_delay = '1ms'\ninterval = '1ms'\nalpha = 1.0\nbeta = 0.01\nbottom = 0.000001\ntop = 1.0",
    "kind = 'hred'\nrtt = '100us'\nw_q = 1.0\nmax_p = 1.0",
    "kind = 'hred'\nrtt = '100s'\nmax_p = 0.0\necn = false",
    "kind = 'pi'\na = 0.02\nb = 0.019\nq_ref = 5.0\nw = 1000.0",
    "kind = 'pi'\na = 1.0\nb = 1.0\nunit = 'bytes'\nmean_packet = '1B'",
    "kind = 'avq'\nalpha = 100.0\ngamma = 1.0\ninitial = 0.0\nbuffer = '3000B'",
    "kind = 'avq'\nalpha = 0.0\ninitial = 1.0\nbuffer = '1B'\necn = false",
    "kind = 'pie'\nqdelay_ref = '1us'\nt_update = '100us'\nalpha = 1000.0\nbeta = 1000.0\nmax_burst = '0ms'",
    "kind = 'pie'\nestimator = 'departure-rate'\ndq_threshold = '1B'\nmark_ecnth = 1.0",
    "kind = 'pie'\nrules = 'ns2'\nestimator = 'departure-rate'\ndq_threshold = '10KB'\nbyte_mode = true\nmean_packet = '1000B'",
    "kind = 'pie'\nderandomization = true\ncap_drop_adjustment = true\nbyte_mode = true\nmax_burst = '0ms'\nt_update = '1ms'",
    "kind = 'codel'\ntarget = '1us'\ninterval = '1us'\necn = false",
    "kind = 'codel'\nreentry = 'ns2-2013'\ntarget = '1ms'\ninterval = '10ms'",
    "kind = 'fq-codel'\nflows = 1\nquantum = '256B'\nlimit = 5\nmemory = '1000B'\ndrop_batch = 1000\ntarget = '1us'\ninterval = '1us'",
    "kind = 'fq-codel'\nflows = 3\nquantum = '1MB'\necn = false\nlimit = 20\nce_threshold = '0ms'",
    "kind = 'fq-pie'\nflows = 2\nquantum = '256B'\nlimit = 10\nmax_burst = '0ms'\nqdelay_ref = '1us'\nt_update = '100us'\nalpha = 1000.0",
    "kind = 'fq-pie'\nflows = 3\nderandomization = true\ncap_drop_adjustment = true\nmax_burst = '0ms'\nt_update = '1ms'",
    "kind = 'sfq'\nflows = 1",
    "kind = 'sfq'\nflows = 4\nquantum = '256B'\nperturb = '10ms'",
    "kind = 'sfq-codel'\nbins = 2\nquantum = '300B'\ntarget = '1us'\ninterval = '1us'\necn = false",
    "kind = 'dualpi2'\ntarget = '1us'\nt_update = '100us'\nalpha = 1000.0\nbeta = 1000.0\ncoupling = 100.0\nstep = '0ms'\nclassic_weight = 99",
    "kind = 'dualpi2'\nlaqm = 'ramp'\nmin_th = '0ms'\nrange = '0ms'\ndrop_overload = false",
    "kind = 'cake'\nrtt = '100us'\nmemlimit = '3028B'",
    "kind = 'cake'\nrtt = '100s'\nmemlimit = '1GB'",
    "kind = 'predict'\nload = 0.5\nidle = '10ms'\ntarget = '100us'\ninterval = '1ms'\nflows = 1",
];

fn configs() -> Vec<QueueConfig> {
    let others = OTHERS.iter().map(|text| toml::from_str::<QueueConfig>(text).expect("a configuration of the list"));
    let configs: Vec<_> = QueueConfig::defaults().into_iter().chain(others).collect();
    configs.iter().for_each(|config| assert_eq!(config.validate(), Ok(()), "{}", config.name()));
    configs
}

/// A configuration of every entry of the registry, drawn at random from what is valid.
fn drawn(seed: u64) -> Vec<QueueConfig> {
    let mut random = Random(seed);
    spaces().queue.iter().map(|entry| entry.draw(&mut random)).collect()
}

fn operation() -> impl Strategy<Value = Operation> {
    let arrive = || {
        (0..8u8, prop_oneof![Just(1500u16), 40..1500u16], prop::bool::weighted(0.1))
            .prop_map(|(flow, size, marked)| Operation::Arrive { flow, size, marked })
    };
    prop_oneof![
        12 => arrive(),
        4 => Just(Operation::Dequeue),
        3 => (0..20_000u64).prop_map(|us| Operation::Serve(Duration::from_micros(us))),
        2 => (0..30_000u64).prop_map(|us| Operation::Wait(Duration::from_micros(us))),
        1 => (0..3000u64).prop_map(|ms| Operation::Wait(Duration::from_millis(ms))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_is_accounted_for_in_order_and_never_held_back(
        operations in prop::collection::vec(operation(), 0..400),
        link in prop::sample::select(links()),
        seed in any::<u64>(),
    ) {
        for config in configs().into_iter().chain(drawn(seed)) {
            let mut router = Router::new(&config, link);
            operations.iter().for_each(|operation| router.apply(*operation));
            router.drain();
        }
    }

    #[test]
    fn a_copy_of_a_queue_goes_on_as_the_queue(
        operations in prop::collection::vec(operation(), 0..200),
        link in prop::sample::select(links()),
        seed in any::<u64>(),
    ) {
        for config in configs().into_iter().chain(drawn(seed)) {
            let mut router = Router::new(&config, link);
            let half = operations.len() / 2;
            operations[..half].iter().for_each(|operation| router.apply(*operation));
            let mut copy = router.clone();
            operations[half..].iter().for_each(|operation| router.apply(*operation));
            operations[half..].iter().for_each(|operation| copy.apply(*operation));
            prop_assert_eq!((router.left, router.lost), (copy.left, copy.lost));
        }
    }
}

/// `packets` of 1500 bytes arrive from four flows that cannot be marked, two for each that a link of 10 Mbit/s sends.
fn overload(router: &mut Router, packets: u32) {
    for number in 0..packets {
        router.apply(Operation::Arrive { flow: (number % 4) as u8 * 3, size: 1500, marked: false });
        router.apply(Operation::Serve(Duration::from_micros(600)));
    }
}

fn link() -> OutgoingLink {
    links().remove(0)
}

#[test]
fn overload_makes_every_discipline_drop_and_none_starves_the_link() {
    for config in QueueConfig::defaults() {
        let mut router = Router::new(&config, link());
        overload(&mut router, 20_000);
        // 12 s at 10 Mbit/s are 10,000 packets. AVQ begins with a capacity of 80 %; the others need not drop that much.
        assert!((8_000..=10_001).contains(&router.left), "{}: {} packets left", config.name(), router.left);
        assert!(router.lost > 9_000, "{}: {} packets lost", config.name(), router.lost);
    }
}

#[test]
fn an_idle_link_costs_no_timers_for_ever() {
    for config in QueueConfig::defaults() {
        let mut router = Router::new(&config, link());
        overload(&mut router, 2000);
        router.drain();
        let timers = router.idle_timers(100_000);
        assert!(timers < 100_000, "{}: its timer goes on", config.name());
    }
}

#[test]
fn no_valid_configuration_keeps_a_timer_that_changes_nothing() {
    for config in (0..60).flat_map(drawn).chain(configs()) {
        let mut router = Router::new(&config, link());
        overload(&mut router, 2000);
        router.drain();
        // Slow laws need longer than this, but they get somewhere.
        let ends = router.idle_timers(50_000) < 50_000;
        assert!(ends || router.timer_has_an_effect(), "{config:?}: its timer goes on");
    }
}

/// Whether the configuration can take a packet of this size, and has a law that can come to rest within a minute.
fn can_serve(config: &QueueConfig, size: u64) -> bool {
    let QueueConfig::Avq(avq) = config else { return true };
    // What does not fit into the virtual buffer is signalled, and the virtual capacity is what the law makes of it.
    (avq.buffer == Bytes::ZERO || avq.buffer >= Bytes::new(size)) && avq.alpha * avq.gamma > 0.001
}

/// Most samples of a law that a test waits for.
const MOST_SAMPLES: f64 = 2e6;

/// The time of an empty queue after which a law is at rest, whatever came before; `None`: longer than a test can wait.
fn rest(config: &QueueConfig) -> Option<Duration> {
    match config {
        // Each sample takes (a - b) q_ref off a probability of at most 1; with a = b it follows the queue.
        QueueConfig::Pi(pi) if pi.b < pi.a => {
            let samples = 1.0 / ((pi.a - pi.b) * pi.q_ref);
            (samples < MOST_SAMPLES).then(|| Duration::from_secs((samples + 1.0) / pi.w))
        }
        _ => Some(Duration::ZERO),
    }
}

#[test]
fn a_link_that_has_been_idle_serves_whatever_happened_before() {
    const SIZE: u16 = 900;
    for config in (0..60).flat_map(drawn).chain(configs()).filter(|config| can_serve(config, SIZE.into())) {
        let mut router = Router::new(&config, link());
        overload(&mut router, 2000);
        router.drain();
        let light = |router: &mut Router, packets: u64| {
            let before = router.left;
            for _ in 0..packets {
                router.apply(Operation::Arrive { flow: 3, size: SIZE, marked: false });
                router.apply(Operation::Serve(Duration::from_millis(600)));
            }
            router.left - before
        };
        // A minute of a packet now and then, and every one after that has the link for itself.
        light(&mut router, 100);
        let Some(rest) = rest(&config) else { continue };
        router.apply(Operation::Wait(rest));
        assert_eq!(light(&mut router, 50), 50, "{config:?} drops packets that nobody is in the way of");
    }
}
