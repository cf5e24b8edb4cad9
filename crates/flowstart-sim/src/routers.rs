//! Quick-Start routers at links: what becomes of a packet with an option before it is queued.

use flowstart_core::quick_start::router::{Config, Router, Verdict};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH};
use flowstart_core::rng::Substream;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};

use crate::packet::{Packet, RangePool};

/// A router and its own random numbers.
#[derive(Clone, Debug)]
struct Placed {
    router: Router,
    rng: Substream,
}

/// The routers of all links that have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routers {
    at: Vec<Option<Box<Placed>>>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routed {
    /// It goes on.
    Forward,
    /// The router drops it.
    Drop,
}

impl Routers {
    /// A router at `link`, whose bandwidth it believes to be this.
    pub(crate) fn add(&mut self, link: u32, config: Config, bandwidth: Rate, seed: u64) {
        let index = link as usize;
        if index >= self.at.len() {
            self.at.resize(index + 1, None);
        }
        let rng = Substream::new(seed, "quick-start router", u64::from(link));
        self.at[index] = Some(Box::new(Placed { router: Router::new(config, bandwidth), rng }));
    }

    /// Whether `link` has a router: packets on other links are not looked at.
    #[inline]
    pub(crate) fn is_at(&self, link: u32) -> bool {
        self.at.get(link as usize).is_some_and(Option::is_some)
    }

    /// A packet is about to enter the queue of `link`.
    pub(crate) fn route(&mut self, now: Timestamp, link: u32, packet: &mut Packet, pool: &mut RangePool) -> Routed {
        let flow = flow_id(packet.flow, packet.generation);
        let Some(placed) = self.at.get_mut(link as usize).and_then(Option::as_mut) else { return Routed::Forward };
        let Some(bytes) = packet.body.quick_start(pool) else { return Routed::Forward };
        // Answers travel above IP: no router sees them.
        let Ok(option) = IpOption::parse(IpVersion::V4, bytes) else { return Routed::Forward };
        match placed.router.on_option(now, flow, option, &mut placed.rng) {
            Verdict::Forward(option) => *bytes = option.emit(IpVersion::V4),
            Verdict::Delete => {
                packet.body.delete_quick_start(pool);
                packet.size = packet.size.saturating_sub(LENGTH as u32);
            }
            Verdict::Drop => return Routed::Drop,
        }
        Routed::Forward
    }

    /// A packet begins to leave on `link`.
    #[inline]
    pub(crate) fn on_departure(&mut self, now: Timestamp, link: u32, size: u32, flow: u64) {
        if let Some(Some(placed)) = self.at.get_mut(link as usize) {
            placed.router.on_departure(now, Bytes::new(u64::from(size)), flow);
        }
    }
}

/// How routers tell flows apart, also those that use the same place one after the other.
pub(crate) fn flow_id(flow: u32, generation: u32) -> u64 {
    (u64::from(generation) << 32) | u64::from(flow)
}
