//! What stands for the real QUIC stack in a program that was built without the feature `quic`: there are no values of
//! these types, because nobody can choose the stack.

use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::network::Route;
use flowstart_sim::world::{Stopped, World};

use crate::ends::capture::Capture;
use crate::spec::stack::StackOptions;

/// Flows of a stack that is not there.
#[derive(Debug)]
pub enum QuicFlows {}

impl QuicFlows {
    pub(crate) fn new(_: &World, options: &StackOptions) -> Self {
        match *options {}
    }

    pub(crate) fn start_capture(&mut self, _: Capture) {
        match *self {}
    }

    pub(crate) fn capture(&self) -> Option<&Capture> {
        match *self {}
    }

    pub(crate) fn add(&mut self, _: &mut World, _: FlowConfig, _: Bytes, _: u64) -> u32 {
        match *self {}
    }

    pub(crate) fn move_client(&mut self, _: &mut World, _: u32, _: &Route) {
        match *self {}
    }

    pub(crate) fn run_until(&mut self, _: &mut World, _: Timestamp) {
        match *self {}
    }

    pub(crate) fn run_while(&mut self, _: &mut World, _: Timestamp, _: impl Fn(&World) -> bool) -> Result<(), Stopped> {
        match *self {}
    }

    pub(crate) fn run_flow(&mut self, _: &mut World, _: u32, _: Timestamp) -> Result<(), Stopped> {
        match *self {}
    }
}
