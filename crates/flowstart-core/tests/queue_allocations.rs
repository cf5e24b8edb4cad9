//! In steady state no queue discipline allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod standing_queue;

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
fn the_laws_act_on_the_queue_that_is_measured() {
    for config in QueueConfig::defaults().iter().filter(|config| !matches!(config.name(), "taildrop" | "sfq")) {
        let mut queue = StandingQueue::new(config, 1, EcnCodepoint::Ect0);
        assert!(queue.marked() + queue.lost > 0, "{}: neither marks nor drops", config.name());
    }
}
