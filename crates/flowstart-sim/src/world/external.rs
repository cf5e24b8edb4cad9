//! Flows whose two ends are outside of the simulator: a real transport that runs in the simulator's time.
//!
//! The simulator carries such a flow's datagrams through its links and keeps its timer. What happens to them is told by
//! [`World::run_external`], in order; the caller keeps the datagrams themselves and finds them by their tags. A world with
//! such flows is still `Clone`, but the ends are not in it: fork it before they begin.

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::wire::LENGTH;
use flowstart_core::time::Timestamp;

use crate::network::Route;
use crate::packet::{Body, Direction, FlowId, NO_OPTION, OUTSIDE, Packet, QuickStartOption};
use crate::path::signals::PathSignal;
use crate::transport::profile::Profile;
use crate::world::{Stopped, World};

/// A datagram on its way through the links of its flow.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The flow.
    pub flow: u32,
    /// Which way.
    pub direction: Direction,
    /// The caller's name for it, below 2^31. It is free again when the datagram has arrived or is lost.
    pub tag: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// ECN field.
    pub ecn: EcnCodepoint,
    /// What it carries, for traces and captures.
    pub body: Body,
    /// What it carries for the path.
    pub signal: Option<PathSignal>,
    /// An option of Quick-Start in the IP header, which adds its bytes to `size`; [`NO_OPTION`]: none. Acknowledgements have
    /// no room for one.
    pub quick_start: QuickStartOption,
}

/// What happened to a flow that ends outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalEvent {
    /// Its timer fired.
    Timer {
        /// The flow.
        flow: u32,
    },
    /// A datagram has crossed the links.
    Arrived {
        /// The flow.
        flow: u32,
        /// Which way.
        direction: Direction,
        /// The datagram.
        tag: u32,
        /// ECN field as it arrived.
        ecn: EcnCodepoint,
        /// What it carries for the path, as it arrived.
        signal: Option<PathSignal>,
        /// Its option of Quick-Start as it arrived.
        quick_start: QuickStartOption,
        /// Links that it has crossed.
        links: u16,
    },
    /// A queue, a policer or a wire has lost a datagram.
    Lost {
        /// The datagram.
        tag: u32,
    },
}

impl World {
    /// Adds a flow whose ends are outside. Its timer fires first at `start`. `profile` describes its packets to traces.
    pub fn add_external_flow(&mut self, profile: std::sync::Arc<Profile>, route: &Route, start: Timestamp) -> u32 {
        let index = self.add_placeholder(profile, route);
        self.set_external_timer(index, start);
        index
    }

    /// Arms the timer of an external flow; [`Timestamp::NEVER`] disarms.
    pub fn set_external_timer(&mut self, flow: u32, time: Timestamp) {
        let slot = self.external_slot(flow);
        if self.network.engine.scheduled(slot) != time {
            self.network.engine.schedule(slot, time);
        }
    }

    /// Arms the timer of an external flow for `time` if it would not fire before.
    #[inline]
    pub fn hasten_external_timer(&mut self, flow: u32, time: Timestamp) {
        let slot = self.external_slot(flow);
        if time < self.network.engine.scheduled(slot) {
            self.network.engine.schedule(slot, time);
        }
    }

    /// Sends a datagram into the first link of its flow's route.
    pub fn send_external(&mut self, datagram: &Datagram) {
        let Datagram { flow, direction, tag, mut size, ecn, mut body, signal, quick_start: option } = *datagram;
        debug_assert!(tag < OUTSIDE, "a tag takes 31 bits");
        if option != NO_OPTION {
            size += LENGTH as u32;
            match &mut body {
                Body::Handshake { quick_start, .. } => *quick_start = option,
                Body::Data { quick_start, .. } => *quick_start = self.network.ranges.insert_option(option),
                Body::Acknowledgement(_) => size -= LENGTH as u32,
            }
        }
        self.network.transmit(flow, tag | OUTSIDE, direction, size, ecn, body, signal);
    }

    /// Runs until something happens to an external flow; an error when `limit` passes first. The clock then stands where
    /// the last event left it.
    pub fn run_external(&mut self, limit: Timestamp) -> Result<ExternalEvent, Stopped> {
        loop {
            for FlowId { generation, .. } in self.network.lost_outside.drain(..) {
                self.external.push_back(ExternalEvent::Lost { tag: generation & !OUTSIDE });
            }
            if let Some(event) = self.external.pop_front() {
                return Ok(event);
            }
            let Some(owner) = self.network.engine.next(limit) else {
                let idle = self.network.engine.pending() == 0;
                return Err(if idle { Stopped::Idle } else { Stopped::TimeLimit });
            };
            self.dispatch(owner);
        }
    }

    /// Another route for an external flow. A packet under way goes on with the next hop of the new route.
    pub fn change_external_route(&mut self, flow: u32, route: &Route) {
        self.network.change_route(flow, route);
    }

    /// A datagram has crossed the links.
    pub(super) fn external_arrived(&mut self, packet: &Packet, signal: Option<PathSignal>) {
        let Packet { flow, direction, ecn, hop: links, mut body, .. } = *packet;
        let quick_start = body.quick_start(&mut self.network.ranges).copied().unwrap_or(NO_OPTION);
        body.release(&mut self.network.ranges);
        let tag = packet.generation & !OUTSIDE;
        self.external.push_back(ExternalEvent::Arrived { flow, direction, tag, ecn, signal, quick_start, links });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flowstart_core::aqm::QueueLimit;
    use flowstart_core::time::Duration;
    use flowstart_core::units::{Bytes, Rate};

    use super::*;
    use crate::link::LinkConfig;

    fn world() -> (World, u32) {
        let mut world = World::new(1);
        let link = LinkConfig::new(Rate::from_mbit(8), Duration::from_millis(10));
        let (there, home) = (world.add_link(&link), world.add_link(&link));
        let route = Route { forward: vec![there], back: vec![home] };
        let profile = Arc::new(Profile::rfc9002());
        let flow = world.add_external_flow(profile, &route, Timestamp::ZERO + Duration::from_millis(5));
        (world, flow)
    }

    #[test]
    fn timers_and_datagrams_come_in_the_order_of_time() {
        let (mut world, flow) = world();
        let limit = Timestamp::ZERO + Duration::from_millis(1000);
        assert_eq!(world.run_external(limit), Ok(ExternalEvent::Timer { flow }));
        assert_eq!(world.now().as_secs(), 0.005);
        let body = Body::Handshake { flight: 0, part: 0, attempt: 0, quick_start: NO_OPTION };
        for (tag, direction) in [(7, Direction::Forward), (8, Direction::Return)] {
            let ecn = EcnCodepoint::Ect0;
            let (signal, quick_start) = (None, NO_OPTION);
            world.send_external(&Datagram { flow, direction, tag, size: 1000, ecn, body, signal, quick_start });
        }
        world.set_external_timer(flow, Timestamp::ZERO + Duration::from_millis(12));
        // 1000 bytes take 1 ms at 8 Mbit/s, and 10 ms to the other end: there at 16 ms.
        assert_eq!(world.run_external(limit), Ok(ExternalEvent::Timer { flow }));
        let (ecn, signal, quick_start, links) = (EcnCodepoint::Ect0, None, NO_OPTION, 1);
        let arrived = |tag, direction| ExternalEvent::Arrived { flow, direction, tag, ecn, signal, quick_start, links };
        assert_eq!(world.run_external(limit), Ok(arrived(7, Direction::Forward)));
        assert_eq!(world.now().as_secs(), 0.016);
        assert_eq!(world.run_external(limit), Ok(arrived(8, Direction::Return)));
        assert_eq!(world.run_external(limit), Err(Stopped::Idle));
    }

    #[test]
    fn what_is_lost_is_told() {
        let (mut world, flow) = world();
        let limited = QueueLimit { bytes: Some(Bytes::new(2000)), ..QueueLimit::default() };
        let config = LinkConfig { limit: limited, ..LinkConfig::new(Rate::from_mbit(8), Duration::ZERO) };
        let link = world.add_link(&config);
        world.change_external_route(flow, &Route { forward: vec![link], back: vec![link] });
        let body = Body::Handshake { flight: 0, part: 0, attempt: 0, quick_start: NO_OPTION };
        let (direction, ecn) = (Direction::Forward, EcnCodepoint::NotEct);
        // One is in transmission, two wait, the fourth finds no room.
        let (signal, quick_start) = (None, NO_OPTION);
        (0..4).for_each(|tag| {
            world.send_external(&Datagram { flow, direction, tag, size: 1000, ecn, body, signal, quick_start });
        });
        let limit = Timestamp::ZERO + Duration::from_millis(100);
        let events: Vec<_> = std::iter::from_fn(|| world.run_external(limit).ok()).collect();
        assert_eq!(events[0], ExternalEvent::Lost { tag: 3 });
        assert_eq!((events.len(), world.record(flow).dropped), (5, 1));
    }
}
