//! Ten million packets of a thousand flows through the disciplines that separate flows: memory does not grow after the
//! first.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod configurations;

use configurations::{Random, spaces};
use flowstart_core::aqm::{EcnCodepoint, QueueConfig, QueueContext, QueueLimit, QueuedPacket, cake};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Disciplines that separate flows.
const SEPARATING: [&str; 6] = ["fq-codel", "fq-pie", "sfq", "sfq-codel", "dualpi2", "cake"];

/// How full the queues are.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// A packet leaves for each that arrives, and 1000 wait.
    Standing,
    /// A tenth more arrives than leaves, up to what fits.
    Overload,
}

/// How often `packets` packets of 1000 flows allocated after the first `warm`.
fn run(config: &QueueConfig, warm: u64, packets: u64, load: Load) -> u64 {
    let limit = QueueLimit { packets: Some(4000), ..QueueLimit::default() };
    let mut state = config.build(limit.into());
    let queue = state.as_dyn();
    let mut rng = Substream::new(1, "queue", 0);
    let mut arrivals = Substream::new(1, "arrivals", 0);
    let mut dropped = Vec::with_capacity(10_000);
    let (mut allocations, mut credit) = (0, 0);
    for index in 0..packets {
        if index == warm {
            allocations = ALLOCATIONS.get();
        }
        let now = Timestamp::ZERO + Duration::from_nanos(1200 * index);
        let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
        while queue.next_timer() <= now {
            queue.on_timer(&mut context);
        }
        let flow = (arrivals.next_u64() >> 32) as u32 % 1000;
        let ecn = if flow.is_multiple_of(2) { EcnCodepoint::NotEct } else { EcnCodepoint::Ect0 };
        let packet = QueuedPacket { handle: index as u32, size: 1500, flow, ecn, enqueued_at: now };
        queue.enqueue(packet, &mut context);
        credit += match load {
            Load::Standing => u64::from(queue.len() > 1000) * 10,
            Load::Overload => 9,
        };
        if credit >= 10 {
            credit -= 10;
            queue.dequeue(&mut context);
        }
        context.dropped.clear();
    }
    ALLOCATIONS.get() - allocations
}

#[test]
fn ten_million_packets_need_no_more_memory_than_the_first_million() {
    for config in QueueConfig::defaults() {
        if !SEPARATING.contains(&config.name()) {
            continue;
        }
        let packets = if config.name() == "fq-codel" { 10_000_000 } else { 2_000_000 };
        for load in [Load::Standing, Load::Overload] {
            assert_eq!(run(&config, 1_000_000, packets, load), 0, "{} {load:?}", config.name());
        }
    }
}

/// CAKE ignores the limit of the link, so its own memory has to be full before allocations are counted.
fn with_a_reachable_limit(config: QueueConfig) -> QueueConfig {
    match config {
        QueueConfig::Cake(cake) => {
            let memlimit = cake.memlimit.map(|memory| memory.min(Bytes::new(6_000_000)));
            QueueConfig::Cake(cake::Config { memlimit, ..cake })
        }
        other => other,
    }
}

#[test]
fn no_valid_configuration_needs_more_memory_for_more_packets() {
    let mut random = Random(1);
    for entry in spaces().queue.iter().filter(|entry| SEPARATING.contains(&entry.default().name())) {
        for _ in 0..8 {
            let config = with_a_reachable_limit(entry.draw(&mut random));
            for load in [Load::Standing, Load::Overload] {
                assert_eq!(run(&config, 100_000, 150_000, load), 0, "{config:?} {load:?}");
            }
        }
    }
}
