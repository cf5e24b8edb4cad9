//! The two ends of a flow, which turn an application's data into packets and packets into data.
//!
//! The model's ends are part of the simulator. External ends, for instance a real transport, run outside in simulated
//! time. A world treats all ends alike: it calls them for timers and packets, and they record their actions in the
//! flow's [`FlowRecord`](crate::observe::record::FlowRecord).
//!
//! External ends send a [`Datagram`] into the links of the flow and keep its bytes. The tag finds the bytes when the
//! datagram arrives or is lost. The first timer fires at the start of the flow.

use std::any::Any;
use std::fmt;

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::time::Timestamp;

use crate::engine::Slot;
use crate::network::Network;
use crate::packet::{Body, Direction, NO_OPTION, OUTSIDE, Packet, QuickStartOption};
use crate::path::signals::PathSignal;

/// The owner of a timer. External ends have one timer, the sender's.
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

    /// A packet has crossed the links, with its signal from the path. The callee frees the packet's memory in the pool
    /// of ranges.
    fn on_packet(&mut self, network: &mut Network, packet: &Packet, signal: Option<PathSignal>);

    /// A queue, a policer or a wire has lost the datagram with this tag. The model's packets have none.
    fn on_lost(&mut self, _tag: u32) {}

    /// Packets take another route from now on. Packets in flight continue with its next hop.
    fn on_path_change(&mut self, network: &mut Network);

    /// Whether the connection is lost, so that the flow never completes.
    fn has_failed(&self) -> bool {
        false
    }

    /// The ends in a clone of the world; `None` if they cannot be cloned. The flow is then silent in the clone.
    fn fork(&self) -> Option<Box<dyn Ends>> {
        None
    }
}

/// Ends that never send and ignore everything.
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

/// The world's interface for external ends.
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

/// A datagram of external ends.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Its direction.
    pub direction: Direction,
    /// The sender's tag, below 2^31. The tag may be reused when the datagram has arrived or is lost.
    pub tag: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// Its contents, for traces and captures.
    pub body: Body,
    /// Its signal for the path.
    pub signal: Option<PathSignal>,
    /// An option of Quick-Start in the IP header, which adds its bytes to `size`; [`NO_OPTION`]: none. Acknowledgements
    /// have no room for one.
    pub quick_start: QuickStartOption,
}
