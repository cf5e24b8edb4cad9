//! In steady state no queue discipline allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod configurations;
mod standing_queue;

use configurations::{Random, spaces};
use flowstart_core::aqm::{EcnCodepoint, QueueConfig};
use standing_queue::StandingQueue;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        let mut packets = 0;
        for draw in 0..DRAWS {
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
        }
        assert!(packets > DRAWS * 5_000, "{}: {packets} packets say little", entry.default().name());
    }
}

#[test]
fn the_laws_act_on_the_queue_that_is_measured() {
    for config in QueueConfig::defaults().iter().filter(|config| !matches!(config.name(), "taildrop" | "sfq")) {
        let mut queue = StandingQueue::new(config, 1, EcnCodepoint::Ect0);
        assert!(queue.marked() + queue.lost > 0, "{}: neither marks nor drops", config.name());
    }
}
