//! The two ends of measured flows: the model's, or those of a real stack.
//!
//! A world treats all ends alike ([`flowstart_sim::flow::ends::Ends`]). [`Hosts`] adds them.
//!
//! | Looking for | Where |
//! |---|---|
//! | the real QUIC stack, if the feature `quic` is on | [`quic`] |
//! | captures at their senders | [`capture`] |

use std::fmt;
use std::sync::MutexGuard;

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::world::World;

pub mod capture;
#[cfg(feature = "quic")]
pub mod quic;

use crate::spec::transport::stack::StackOptions;
use capture::Capture;

/// Adds measured flows, with both ends, to a world.
pub trait Hosts: fmt::Debug + Send {
    /// Adds a flow that transfers `size` bytes and returns its number. `seed` determines the random numbers of its
    /// ends.
    fn add(&mut self, world: &mut World, config: FlowConfig, size: Bytes, seed: u64) -> u32;

    /// The datagrams that the data senders have seen, if kept.
    fn capture(&self) -> Option<MutexGuard<'_, Capture>> {
        None
    }
}

/// The model's hosts, whose ends are in the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Model;

impl Hosts for Model {
    fn add(&mut self, world: &mut World, config: FlowConfig, _: Bytes, _: u64) -> u32 {
        world.add_flow(config)
    }
}

/// The hosts of the real stack, or the model's. Clients of real flows say that their hints are `hint_age` old, and
/// `capture` records their datagrams.
#[cfg_attr(
    not(feature = "quic"),
    expect(unused_variables, clippy::needless_pass_by_value, reason = "only a real stack has something to capture")
)]
pub fn hosts(
    stack: Option<&StackOptions>,
    world: &World,
    hint_age: Duration,
    capture: Option<Capture>,
) -> Box<dyn Hosts> {
    match stack {
        None => Box::new(Model),
        #[cfg(feature = "quic")]
        Some(options) => Box::new(quic::QuicFlows::new(world, options, hint_age, capture)),
        #[cfg(not(feature = "quic"))]
        Some(options) => match *options {},
    }
}
