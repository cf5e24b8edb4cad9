//! Signals that elements of the path read and write in packets. They are stored beside the packets: few packets carry
//! any, and the others stay small.

use flowstart_core::scone::element::{Config, Element};
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::xcp::router::{Config as XcpConfig, Router as XcpRouter};
use flowstart_core::xcp::wire::{CongestionHeader, LENGTH};

use crate::packet::PacketId;

/// Bytes that XCP's congestion header adds to a packet.
pub const CONGESTION_HEADER: u32 = LENGTH as u32;

/// A packet's signal to the path, or the report of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSignal {
    /// A SCONE packet at the beginning of the datagram.
    Scone(RateSignal),
    /// The receiver's report of its advice to the sender: a frame or an application's message, which no element reads.
    SconeReport(RateSignal),
    /// XCP's congestion header. Routers fill the sender's, in data; they do not touch the receiver's, in
    /// acknowledgements.
    Xcp(CongestionHeader),
}

/// The signals of all packets in flight, and the elements at links.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSignals {
    /// By packet; grows only when a packet with a signal needs it.
    carried: Vec<Option<PathSignal>>,
    /// The signal of the packet that arrived last.
    arrived: Option<PathSignal>,
    elements: Vec<Option<Box<Element>>>,
    xcp_routers: Vec<Option<Box<XcpRouter>>>,
}

/// Adds an element at `link`.
fn place<T: Clone>(at: &mut Vec<Option<T>>, link: u32, value: T) {
    let index = link as usize;
    if index >= at.len() {
        at.resize(index + 1, None);
    }
    at[index] = Some(value);
}

impl PathSignals {
    /// Adds an advising element at `link`.
    pub(crate) fn add_element(&mut self, link: u32, config: Config) {
        place(&mut self.elements, link, Box::new(Element::new(config)));
    }

    /// Adds an XCP router at `link` that assumes this bandwidth.
    pub(crate) fn add_xcp_router(&mut self, link: u32, config: XcpConfig, bandwidth: Rate) {
        place(&mut self.xcp_routers, link, Box::new(XcpRouter::new(config, bandwidth)));
    }

    /// Whether an XCP router is at `link`.
    #[inline]
    pub(crate) fn has_xcp_router(&self, link: u32) -> bool {
        self.xcp_routers.get(link as usize).is_some_and(Option::is_some)
    }

    /// Whether any packet has carried a signal; otherwise packets are not read.
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

    /// A packet of `size` bytes arrives at the XCP router of `link`, where `queue` bytes wait.
    pub(crate) fn arrive_at_xcp(&mut self, now: Timestamp, link: u32, packet: PacketId, size: u32, queue: Bytes) {
        let Some(Some(router)) = self.xcp_routers.get_mut(link as usize) else { return };
        let header = match self.carried.get(packet as usize) {
            Some(Some(PathSignal::Xcp(header))) => Some(header),
            _ => None,
        };
        router.on_arrival(now, Bytes::new(u64::from(size)), header, queue);
    }

    /// A packet of `size` bytes begins to leave the XCP router of `link`, where `queue` bytes wait behind it.
    pub(crate) fn leave_xcp(&mut self, now: Timestamp, link: u32, packet: PacketId, size: u32, queue: Bytes) {
        let Some(Some(router)) = self.xcp_routers.get_mut(link as usize) else { return };
        let header = match self.carried.get_mut(packet as usize) {
            Some(Some(PathSignal::Xcp(header))) => Some(header),
            _ => None,
        };
        router.on_departure(now, Bytes::new(u64::from(size)), header, queue);
    }

    /// A packet is gone; its number may be reused.
    pub(crate) fn forget(&mut self, packet: PacketId) {
        if let Some(carried) = self.carried.get_mut(packet as usize) {
            *carried = None;
        }
    }

    /// A packet has reached its host.
    pub(crate) fn arrive(&mut self, packet: PacketId) {
        self.arrived = self.carried.get_mut(packet as usize).and_then(Option::take);
    }

    /// Takes the signal of the packet that arrived last.
    pub(crate) fn take_arrived(&mut self) -> Option<PathSignal> {
        self.arrived.take()
    }
}
