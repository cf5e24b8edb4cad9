//! What elements of the path read and write in packets, beside the packets: few packets carry any of it, so those that carry none
//! are not made larger by it.

use flowstart_core::scone::element::{Config, Element};
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::Timestamp;

use crate::packet::PacketId;

/// What a packet carries for the path, or of what the path said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSignal {
    /// A SCONE packet at the beginning of the datagram.
    Scone(RateSignal),
    /// The receiver tells the sender which advice it has: a frame or an application's message, which no element reads.
    SconeReport(RateSignal),
}

/// The signals of all packets under way, and the elements that stand at links.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSignals {
    /// By packet; no longer than the first packet with a signal made it.
    carried: Vec<Option<PathSignal>>,
    /// What the packet that arrived last carried.
    arrived: Option<PathSignal>,
    elements: Vec<Option<Box<Element>>>,
}

impl PathSignals {
    /// An advising element at `link`.
    pub(crate) fn add_element(&mut self, link: u32, config: Config) {
        let index = link as usize;
        if index >= self.elements.len() {
            self.elements.resize(index + 1, None);
        }
        self.elements[index] = Some(Box::new(Element::new(config)));
    }

    /// Whether any packet has carried a signal: only then packets are looked at.
    #[inline]
    pub(crate) fn are_used(&self) -> bool {
        !self.carried.is_empty()
    }

    /// A packet is sent with this signal.
    pub(crate) fn set(&mut self, packet: PacketId, signal: PathSignal) {
        let index = packet as usize;
        if index >= self.carried.len() {
            self.carried.resize(index + 1, None);
        }
        self.carried[index] = Some(signal);
    }

    /// A packet is about to enter the queue of `link`.
    pub(crate) fn pass(&mut self, now: Timestamp, link: u32, packet: PacketId, flow: u64) {
        let Some(Some(element)) = self.elements.get_mut(link as usize) else { return };
        if let Some(Some(PathSignal::Scone(signal))) = self.carried.get_mut(packet as usize) {
            *signal = element.on_signal(now, flow, *signal);
        }
    }

    /// A packet is gone; its number may be used again.
    pub(crate) fn forget(&mut self, packet: PacketId) {
        if let Some(carried) = self.carried.get_mut(packet as usize) {
            *carried = None;
        }
    }

    /// A packet has reached its host.
    pub(crate) fn arrive(&mut self, packet: PacketId) {
        self.arrived = self.carried.get_mut(packet as usize).and_then(Option::take);
    }

    /// What the packet that arrived last carried, once.
    pub(crate) fn take_arrived(&mut self) -> Option<PathSignal> {
        self.arrived.take()
    }
}
