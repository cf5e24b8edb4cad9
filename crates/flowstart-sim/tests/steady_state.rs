//! In steady state a simulation does not allocate, and its memory is bounded by what is in flight.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, bbr};
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::{PROFILES, Profile};
use flowstart_sim::world::World;

/// Counts the allocations of the current thread, so that tests do not affect each other.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(allocations: u64, bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two bulk flows over 20 Mbit/s; with `loss`, the wire loses one packet in a thousand in each direction.
fn world(profile: &str, loss: bool) -> World {
    world_of(Profile::named(profile).expect("the profile is in the list"), loss)
}

/// The same with this profile.
fn world_of(profile: Profile, loss: bool) -> World {
    let mut world = World::new(5);
    let loss = loss.then_some(LossModel::Independent { probability: 0.001 });
    let limit = QueueLimit { packets: Some(100), ..QueueLimit::default() };
    let forward = LinkConfig { limit, loss, ..LinkConfig::new(Rate::from_mbit(20), Duration::from_millis(20)) };
    let back = LinkConfig { loss, ..LinkConfig::new(Rate::from_mbit(20), Duration::from_millis(20)) };
    let chain = Chain::dumbbell(&mut world, &forward, &back);
    let access = Access { rate: Rate::from_mbit(1000), delay: Duration::from_millis(1), jitter: None };
    let profile = Arc::new(profile);
    for _ in 0..2 {
        let route = chain.connect(&mut world, access, access);
        world.add_flow(FlowConfig::new(profile.clone(), Pattern::Bulk, route));
    }
    world
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

fn lost(world: &World) -> u64 {
    world.record(0).declared_lost + world.record(1).declared_lost
}

fn sent(world: &World) -> u64 {
    world.record(0).data_packets + world.record(1).data_packets
}

/// Allocations, losses and packets between t = 100 s and t = 250 s.
fn allocations(mut world: World) -> (u64, u64, u64) {
    world.run_until(at(100));
    let before = (ALLOCATIONS.get(), lost(&world), sent(&world));
    world.run_until(at(250));
    (ALLOCATIONS.get() - before.0, lost(&world) - before.1, sent(&world) - before.2)
}

#[test]
fn no_allocation_per_packet() {
    for (profile, _) in PROFILES {
        for loss in [false, true] {
            // Slow start overshoots first, so later windows fit into the memory allocated by then.
            let mut own = Profile::named(profile).expect("the profile is in the list");
            own.startup = StartupConfig::SlowStart(slow_start::Config::default());
            let (allocated, lost, sent) = allocations(world_of(own, loss));
            assert!(sent > 200_000 && lost > 50, "{profile}: {sent} packets and {lost} losses say little");
            assert_eq!(allocated, 0, "{profile}: allocations for {sent} packets, {lost} of them lost");
        }
    }
}

#[test]
fn rate_samples_do_not_allocate_per_packet() {
    for name in ["rfc9002", "tcp-rfc"] {
        let mut profile = Profile::named(name).expect("the profile is in the list");
        profile.startup = StartupConfig::SlowStart(slow_start::Config::default());
        profile.avoidance = AvoidanceConfig::Bbr(bbr::Config::default());
        let (allocated, _, sent) = allocations(world_of(profile, true));
        assert!(sent > 200_000, "{name}: {sent} packets say little");
        assert_eq!(allocated, 0, "{name}: allocations for {sent} packets");
    }
}

#[test]
fn memory_is_bounded_by_what_is_in_flight() {
    for (profile, _) in PROFILES {
        let mut warm = world(profile, true);
        let peak = |world: &mut World, from: u64, to: u64| {
            (from..to)
                .map(|second| {
                    world.run_until(at(second));
                    (world.network.packets_in_flight(), LIVE_BYTES.get())
                })
                .fold((0, 0), |peak, now| (peak.0.max(now.0), peak.1.max(now.1)))
        };
        let early = peak(&mut warm, 1, 20);
        let late = peak(&mut warm, 20, 200);
        assert!(late.0 * 2 < early.0 * 3, "{profile}: packets in flight grew from {} to {}", early.0, late.0);
        assert!(late.1 * 4 < early.1 * 5, "{profile}: bytes grew from {} to {}", early.1, late.1);
    }
}
