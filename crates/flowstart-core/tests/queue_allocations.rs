//! In steady state no queue discipline allocates.

mod configurations;
mod counting_allocator;
mod standing_queue;

use configurations::{Random, spaces};
use counting_allocator::ALLOCATIONS;
use flowstart_core::aqm::{EcnCodepoint, QueueConfig};
use standing_queue::StandingQueue;

#[test]
fn no_discipline_allocates_per_packet() {
    for config in QueueConfig::defaults() {
        for (flows, ecn) in [(1, EcnCodepoint::NotEct), (1, EcnCodepoint::Ect0), (1000, EcnCodepoint::Ect0)] {
            let mut queue = StandingQueue::new(&config, flows, ecn);
            let before = ALLOCATIONS.get();
            let sent = (0..50_000).filter(|_| queue.pair().is_some()).count();
            let allocated = ALLOCATIONS.get() - before;
            let name = config.name();
            assert!(sent > 40_000, "{name}: {sent} packets say little");
            assert_eq!(allocated, 0, "{name}: allocations for {sent} packets of {flows} flows");
        }
    }
}

#[test]
fn no_valid_configuration_allocates_per_packet() {
    const DRAWS: usize = 12;
    let mut random = Random(1);
    for entry in &spaces().queue {
        // Some laws drop nearly all of a load that stands, and say little: others are drawn beside them.
        let (mut packets, mut draw) = (0, 0);
        while draw < DRAWS || packets <= DRAWS * 5_000 {
            assert!(draw < 20 * DRAWS, "{}: {packets} packets say little", entry.default().name());
            let config = entry.draw(&mut random);
            let (flows, ecn) =
                [(1, EcnCodepoint::NotEct), (1000, EcnCodepoint::Ect0), (7, EcnCodepoint::Ect1)][draw % 3];
            let mut queue = StandingQueue::new(&config, flows, ecn);
            let (before, lost) = (ALLOCATIONS.get(), queue.lost);
            let sent = (0..10_000).filter(|_| queue.pair().is_some()).count();
            assert_eq!(ALLOCATIONS.get() - before, 0, "{config:?}: allocations for {sent} packets of {flows} flows");
            // Nothing leaves an empty queue, which says less, and only what was dropped makes it empty.
            let dropped = (queue.lost - lost) as usize;
            assert!(sent + dropped >= 10_000, "{config:?}: {sent} packets left, {dropped} were dropped");
            packets += sent;
            draw += 1;
        }
    }
}

#[test]
fn the_laws_act_on_the_queue_that_is_measured() {
    for config in QueueConfig::defaults().iter().filter(|config| !matches!(config.name(), "taildrop" | "sfq")) {
        let mut queue = StandingQueue::new(config, 1, EcnCodepoint::Ect0);
        assert!(queue.marked() + queue.lost > 0, "{}: neither marks nor drops", config.name());
    }
}
