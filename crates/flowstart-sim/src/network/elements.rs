//! Elements at links that read packets before they are queued.

use flowstart_core::quick_start::misbehaviour::BoosterConfig;
use flowstart_core::quick_start::router::Config as QuickStartConfig;
use flowstart_core::scone::element::Config as AdvisingElement;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_core::xcp::router::Config as XcpConfig;

use super::{Network, Owner};
use crate::link::Loss;
use crate::packet::PacketId;
use crate::path::routers::Routed;

impl Network {
    /// Adds a Quick-Start router at a link, which must be unused. `bandwidth` is the link's bandwidth as the router
    /// knows it.
    pub fn add_router(&mut self, link: u32, config: QuickStartConfig, bandwidth: Rate) {
        self.keep_queue(link);
        let timer = (config.processing > Duration::ZERO).then(|| self.engine.slot(Owner::Options(link)));
        self.routers.add(link, config, bandwidth, self.seed, timer);
    }

    /// Adds a receiver that raises the rates in its Quick-Start answers by this many steps. The answers leave on
    /// `link`.
    pub fn add_lying_receiver(&mut self, link: u32, steps: u8) {
        self.keep_queue(link);
        self.routers.add_lying_receiver(link, steps, self.seed);
    }

    /// Adds a performance booster between a sender and the network. Quick-Start requests leave on the first of these
    /// links; answers arrive on the second.
    pub fn add_booster(&mut self, links: [u32; 2], config: BoosterConfig) {
        links.iter().for_each(|link| self.keep_queue(*link));
        self.routers.add_booster(links, config);
    }

    /// Adds an XCP router at a link, which must be unused. `bandwidth` is the link's bandwidth as the router knows it.
    pub fn add_xcp_router(&mut self, link: u32, config: XcpConfig, bandwidth: Rate) {
        self.keep_queue(link);
        self.signals.add_xcp_router(link, config, bandwidth);
    }

    /// Adds an element at a link that advises a rate to flows with SCONE.
    pub fn add_advising_element(&mut self, link: u32, config: AdvisingElement) {
        self.is_read = true;
        self.signals.add_element(link, config);
    }

    /// Marks a link whose packets are read before they are queued.
    fn keep_queue(&mut self, link: u32) {
        self.is_read = true;
        self.links[link as usize].keep_queue();
    }

    /// Puts a packet into the next link after the elements there have read it.
    #[inline(never)]
    pub(super) fn forward_read(&mut self, now: Timestamp, link: u32, id: PacketId) {
        let packet = self.packets.get(id);
        if self.signals.are_used() {
            self.signals.pass(now, link, id, packet.flow_id().number());
        }
        if let Some((timer, time)) = self.routers.hold(now, link, id, packet, &mut self.ranges) {
            self.engine.schedule(timer, time);
            return;
        }
        self.forward_processed(now, link, id);
    }

    /// Puts a packet, whose option needs no more time, into the next link.
    fn forward_processed(&mut self, now: Timestamp, link: u32, id: PacketId) {
        let packet = self.packets.get(id);
        if self.routers.is_at(link) && self.routers.route(now, link, packet, &mut self.ranges) == Routed::Drop {
            self.links[link as usize].refuse();
            self.lose(id, link, Loss::Router);
            return;
        }
        let (size, flow, ecn) = (packet.size, packet.flow, packet.ecn);
        if self.signals.has_xcp_router(link) {
            let queue = self.links[link as usize].waiting_bytes();
            self.signals.arrive_at_xcp(now, link, id, size, queue);
        }
        self.enqueue(now, link, id, size, flow, ecn);
    }

    /// The router at a link has processed options.
    pub(crate) fn options_processed(&mut self, link: u32) {
        let now = self.engine.now();
        while let Some(id) = self.routers.take_processed(now, link) {
            self.forward_processed(now, link, id);
        }
        if let Some((timer, time)) = self.routers.next_processed(link) {
            self.engine.schedule(timer, time);
        }
    }

    /// A packet begins to leave on a link.
    #[inline(never)]
    pub(super) fn tell_readers(&mut self, link: u32) {
        let queue = &mut self.links[link as usize];
        let (Some(handle), waiting) = (queue.in_service(), queue.waiting_bytes()) else { return };
        let packet = self.packets.get(handle);
        let (size, flow) = (packet.size, packet.flow_id().number());
        let now = self.engine.now();
        self.routers.on_departure(now, link, size, flow);
        self.signals.leave_xcp(now, link, handle, size, waiting);
    }
}
