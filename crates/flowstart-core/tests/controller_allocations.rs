//! In steady state no controller allocates, whatever it is made of.

mod configurations;
mod counting_allocator;
#[allow(dead_code, reason = "the contracts use all of it")]
mod host;

use configurations::{Random, Spaces, spaces};
use counting_allocator::ALLOCATIONS;
use flowstart_core::controller::ControllerConfig;
use host::{Host, Operation, POLICIES, known};

/// Two packets every 5 ms, acknowledged after some 50 ms, with losses and marks among them. Packets that were sent.
fn busy(host: &mut Host, steps: u32) -> u64 {
    let before = host.sent();
    for step in 0..steps {
        host.apply(&Operation::Wait(5_000_000));
        (0..2).for_each(|_| host.apply(&Operation::Send));
        // Something else is under way, where the window has room for it.
        if host.packets_in_flight() < 20 {
            host.apply(&Operation::Send);
        }
        host.apply(&Operation::Timer);
        match step % 500 {
            100 | 101 => host.apply(&Operation::Lose { packets: 2 }),
            200 => host.apply(&Operation::Mark),
            300 => host.apply(&Operation::Limited),
            _ => {}
        }
        let rtt_ms = 50 + (step % 7) as u16;
        host.apply(&Operation::Acknowledge { packets: 2, rtt_ms, app_limited: step % 50 == 0 });
    }
    host.sent() - before
}

#[test]
fn no_valid_configuration_allocates_per_packet() {
    const STEPS: u32 = 10_000;
    let Spaces { startup, avoidance, policies, .. } = spaces();
    let mut random = Random(1);
    for round in 0..8 {
        let schemes = startup.iter().map(|scheme| (scheme, random.pick(avoidance))).collect::<Vec<_>>();
        // Every congestion avoidance takes the first scheme.
        for (scheme, algorithm) in schemes.into_iter().chain(avoidance.iter().map(|entry| (&startup[0], entry))) {
            let (scheme, algorithm) = match round {
                0 => (scheme.default().clone(), algorithm.default().clone()),
                _ => (scheme.draw(&mut random), algorithm.draw(&mut random)),
            };
            let config = match round % 2 {
                0 => host::config(scheme, algorithm, *random.pick(&POLICIES)),
                _ => ControllerConfig { startup: scheme, avoidance: algorithm, ..policies.draw(&mut random) },
            };
            let Some(mut host) = Host::new(config.clone(), known()) else { continue };
            busy(&mut host, STEPS);
            let before = ALLOCATIONS.get();
            let sent = busy(&mut host, STEPS);
            // What a reduction may have to take back is kept aside, once for each.
            let reductions = if config.undo { u64::from(STEPS / 500 * 2) } else { 0 };
            let allocated = ALLOCATIONS.get() - before;
            assert!(allocated <= reductions, "{config:?}: {allocated} allocations for {sent} packets");
            assert!(sent > 5_000, "{config:?}: {sent} packets say little");
        }
    }
}
