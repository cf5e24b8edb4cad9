//! The two ends of a flow: whatever makes packets of an application's data, and data of packets.
//!
//! The model's ends are in the simulator. Others, a real transport for instance, run in its time from outside. A world
//! treats all of them alike. It tells them of timers and packets, and they write what they do into the flow's
//! [`FlowRecord`](crate::observe::record::FlowRecord).
//!
//! Ends from outside send a [`Datagram`] into the links of the flow and keep its bytes. They find them by its tag when
//! it arrives or is lost. Their timer fires first when the flow starts.

use std::any::Any;
use std::fmt;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::time::Timestamp;

use crate::engine::Slot;
use crate::network::Network;
use crate::packet::{Body, Direction, NO_OPTION, OUTSIDE, Packet, QuickStartOption};
use crate::path::signals::PathSignal;

/// Whose timer has fired. Ends from outside have one timer, the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The sender's: loss detection, retransmission, pacing.
    Sender,
    /// The receiver's: a delayed acknowledgement.
    Receiver,
    /// The application's: it opens, repeats the handshake or writes.
    Application,
}

/// The two ends of a flow.
pub trait Ends: Any + fmt::Debug + Send {
    /// A timer of the flow has fired.
    fn on_timer(&mut self, network: &mut Network, timer: Timer);

    /// A packet has crossed the links, with what it carries of the path. What it has in the pool of ranges is given
    /// back.
    fn on_packet(&mut self, network: &mut Network, packet: &Packet, signal: Option<PathSignal>);

    /// A queue, a policer or a wire has lost the datagram with this tag. The model's packets have none.
    fn on_lost(&mut self, _tag: u32) {}

    /// Packets take another route from now on. Those under way go on with its next hop.
    fn on_path_change(&mut self, network: &mut Network);

    /// Whether the connection is lost, so that the flow never completes.
    fn has_failed(&self) -> bool {
        false
    }

    /// The ends in a clone of the world; `None` where they cannot be had twice. The flow is silent there.
    fn fork(&self) -> Option<Box<dyn Ends>> {
        None
    }
}

/// Ends that never send and hear nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silent;

impl Ends for Silent {
    fn on_timer(&mut self, _: &mut Network, _: Timer) {}

    fn on_packet(&mut self, network: &mut Network, packet: &Packet, _: Option<PathSignal>) {
        packet.body.release(&mut network.ranges);
    }

    fn on_path_change(&mut self, _: &mut Network) {}

    fn fork(&self) -> Option<Box<dyn Ends>> {
        Some(Box::new(Self))
    }
}

/// What ends from outside have of the world.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of the flow.
    pub flow: u32,
    timer: Slot,
}

impl Place {
    pub(crate) fn new(flow: u32, timer: Slot) -> Self {
        Self { flow, timer }
    }

    /// Arms the flow's timer; [`Timestamp::NEVER`] disarms it.
    pub fn set_timer(&self, network: &mut Network, time: Timestamp) {
        if network.engine.scheduled(self.timer) != time {
            network.engine.schedule(self.timer, time);
        }
    }

    /// Arms the flow's timer for `time` if it would not fire before.
    #[inline]
    pub fn hasten_timer(&self, network: &mut Network, time: Timestamp) {
        if time < network.engine.scheduled(self.timer) {
            network.engine.schedule(self.timer, time);
        }
    }

    /// Sends a datagram into the first link of the flow's route.
    pub fn send(&self, network: &mut Network, datagram: &Datagram) {
        let Datagram { direction, tag, mut size, ecn, mut body, signal, quick_start: option } = *datagram;
        debug_assert!(tag < OUTSIDE, "a tag takes 31 bits");
        if option != NO_OPTION {
            size += LENGTH as u32;
            match &mut body {
                Body::Handshake { quick_start, .. } => *quick_start = option,
                Body::Data { quick_start, .. } => *quick_start = network.ranges.insert_option(option),
                Body::Acknowledgement(_) => size -= LENGTH as u32,
            }
        }
        network.transmit(self.flow, tag | OUTSIDE, direction, size, ecn, body, signal);
    }
}

/// What ends from outside send.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Which way.
    pub direction: Direction,
    /// The sender's name for it, below 2^31. It is free again when the datagram has arrived or is lost.
    pub tag: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// What it carries, for traces and captures.
    pub body: Body,
    /// What it carries for the path.
    pub signal: Option<PathSignal>,
    /// An option of Quick-Start in the IP header, which adds its bytes to `size`; [`NO_OPTION`]: none. Acknowledgements
    /// have no room for one.
    pub quick_start: QuickStartOption,
}
