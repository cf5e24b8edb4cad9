//! The measured worlds, and the clock of the measurement.

#![allow(dead_code, reason = "the benchmark and the example use different parts")]

use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::packet::Direction;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Round-trip time of every case without queues.
const RTT: Duration = Duration::from_millis(50);
/// Delay of each access link: four of them are crossed in a round trip.
const ACCESS_DELAY: Duration = Duration::from_millis(1);

/// Bulk flows over a dumbbell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Transport of all flows.
    pub(crate) profile: &'static str,
    /// Number of flows.
    pub(crate) flows: u32,
    /// Rate of the bottleneck.
    pub(crate) rate: Rate,
    /// Whether the receive window holds as much as the path, so that nothing is lost.
    pub(crate) lossless: bool,
    /// Simulated time before the measurement, after which startup is over and pools have their final size.
    pub(crate) warm_up: f64,
    /// Simulated time of the table's measurement; in the benchmark the number of packets determines the time.
    pub(crate) span: f64,
    /// Packets per second that the project promises, if it promises any.
    pub(crate) target: Option<f64>,
}

/// All measured cases.
pub(crate) const CASES: &[Case] = &[
    Case { target: Some(3e6), ..one("one TCP flow, no loss", "tcp-linux", true) },
    Case { target: Some(3e6), ..one("one TCP flow, CUBIC", "tcp-linux", false) },
    Case { target: Some(1.5e6), ..hundred("100 TCP flows", "tcp-linux") },
    Case { span: 10.0, ..one("one TCP flow, 10 s", "tcp-linux", true) },
    Case { span: 100.0, ..one("one TCP flow, 100 s", "tcp-linux", true) },
    scaled("scaled, 1 TCP flow", "tcp-linux", 1, 600.0),
    scaled("scaled, 100 TCP flows", "tcp-linux", 100, 8.0),
    scaled("scaled, 1000 TCP flows", "tcp-linux", 1_000, 1.0),
    scaled("scaled, 10,000 TCP flows", "tcp-linux", 10_000, 0.2),
    one("one QUIC flow, no loss", "rfc9002", true),
    one("one QUIC flow, Reno", "rfc9002", false),
    hundred("100 QUIC flows", "rfc9002"),
    scaled("scaled, 1000 QUIC flows", "rfc9002", 1_000, 1.0),
    one("one gQUIC flow, CUBIC", "gquic", false),
    hundred("100 gQUIC flows", "gquic"),
];

/// Worlds to copy: two flows with a full window each, like those that experiments fork.
pub(crate) const FORKS: &[Case] = &[two("two TCP flows", "tcp-linux"), two("two QUIC flows", "rfc9002")];

const fn one(name: &'static str, profile: &'static str, lossless: bool) -> Case {
    let rate = Rate::from_mbit(1000);
    Case { name, profile, flows: 1, rate, lossless, warm_up: 20.0, span: 10.0, target: None }
}

const fn hundred(name: &'static str, profile: &'static str) -> Case {
    let rate = Rate::from_mbit(100);
    Case { name, profile, flows: 100, rate, lossless: false, warm_up: 20.0, span: 60.0, target: None }
}

const fn two(name: &'static str, profile: &'static str) -> Case {
    Case { flows: 2, rate: Rate::from_mbit(50), span: 60.0, ..one(name, profile, false) }
}

/// 10 Mbit/s for each flow.
const fn scaled(name: &'static str, profile: &'static str, flows: u32, span: f64) -> Case {
    let rate = Rate::from_mbit(10 * flows as u64);
    Case { name, profile, flows, rate, lossless: false, warm_up: 2.0, span, target: None }
}

impl Case {
    /// The world at the end of the warm-up.
    pub(crate) fn warm_world(&self) -> World {
        let mut world = World::new(1);
        let delay = Duration::from_nanos((RTT.as_nanos() - 4 * ACCESS_DELAY.as_nanos()) / 2);
        let product = self.rate.amount_in(RTT);
        let limit = QueueLimit { bytes: Some(product), ..QueueLimit::default() };
        let forward = LinkConfig { limit, ..LinkConfig::new(self.rate, delay) };
        let back = LinkConfig::new(self.rate, delay);
        let chain = Chain::dumbbell(&mut world, &forward, &back);
        let mut profile = Profile::named(self.profile).expect("the case names a profile");
        profile.receive_window = if self.lossless { product } else { Bytes::new(1 << 30) };
        let profile = Arc::new(profile);
        let access = Access { rate: Rate::from_mbit(10_000), delay: ACCESS_DELAY, jitter: None };
        for flow in 0..self.flows {
            let route = chain.connect(&mut world, access, access);
            // Starts are spread over a second.
            let start = at(f64::from(flow) / f64::from(self.flows));
            world.add_flow(FlowConfig { start, ..FlowConfig::new(profile.clone(), Pattern::Bulk, route) });
        }
        world.run_until(at(self.warm_up));
        world
    }

    /// The end of the measurement.
    pub(crate) fn end(&self) -> Timestamp {
        at(self.warm_up + self.span)
    }

    /// Data packets that left the bottleneck so far: each was sent, queued and delivered.
    pub(crate) fn packets(&self, world: &mut World) -> u64 {
        let bottleneck = world.network.links_of(0, Direction::Forward)[1];
        world.network.link(bottleneck).counters().departed
    }
}

/// A time in seconds since the start of the simulation.
pub(crate) fn at(seconds: f64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs(seconds)
}

/// Nanoseconds of user CPU that the process has used. Other processes of the machine do not count.
pub(crate) fn user_cpu_nanos() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own usage");
    usage.user_time().num_microseconds() as u64 * 1000
}
