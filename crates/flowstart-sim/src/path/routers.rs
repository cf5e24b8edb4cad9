//! Elements at links that change Quick-Start's options before a packet is queued: routers, lying receivers and
//! middleboxes.

use flowstart_core::quick_start::misbehaviour::{Booster, BoosterConfig, raised};
use flowstart_core::quick_start::router::{Config, Router, Verdict};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH, Response};
use flowstart_core::rng::Substream;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};

use crate::packet::{Direction, Packet, RangePool, ip_ttl};

/// The element at a link, with its own random numbers.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for a link, in a box, and almost all are routers")]
enum Placed {
    Router {
        router: Router,
        rng: Substream,
    },
    /// The link of a receiver that raises the rate by this many steps.
    Receiver {
        steps: u8,
        rng: Substream,
    },
    /// One of the two links of a host behind this booster.
    Booster(usize),
}

/// The routers and the cheaters of all links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routers {
    at: Vec<Option<Box<Placed>>>,
    boosters: Vec<Booster>,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routed {
    /// It continues.
    Forward,
    /// The router drops it.
    Drop,
}

impl Routers {
    /// Adds a router at `link` that assumes this bandwidth.
    pub(crate) fn add(&mut self, link: u32, config: Config, bandwidth: Rate, seed: u64) {
        let rng = Substream::new(seed, "quick-start router", u64::from(link));
        self.place(link, Placed::Router { router: Router::new(config, bandwidth), rng });
    }

    /// Adds a receiver that raises the rates in its answers, which leave on `link`.
    pub(crate) fn add_lying_receiver(&mut self, link: u32, steps: u8, seed: u64) {
        let rng = Substream::new(seed, "quick-start receiver", u64::from(link));
        self.place(link, Placed::Receiver { steps, rng });
    }

    /// Adds a booster between a sender and the network. Requests leave on the first of the links; answers arrive on the
    /// second.
    pub(crate) fn add_booster(&mut self, links: [u32; 2], config: BoosterConfig) {
        links.iter().for_each(|link| self.place(*link, Placed::Booster(self.boosters.len())));
        self.boosters.push(Booster::new(config));
    }

    fn place(&mut self, link: u32, placed: Placed) {
        let index = link as usize;
        if index >= self.at.len() {
            self.at.resize(index + 1, None);
        }
        self.at[index] = Some(Box::new(placed));
    }

    /// Whether an element is at `link`: packets on other links are not read.
    #[inline]
    pub(crate) fn is_at(&self, link: u32) -> bool {
        self.at.get(link as usize).is_some_and(Option::is_some)
    }

    /// A packet is about to enter the queue of `link`.
    pub(crate) fn route(&mut self, now: Timestamp, link: u32, packet: &mut Packet, pool: &mut RangePool) -> Routed {
        let flow = packet.flow_id().number();
        let (direction, ttl) = (packet.direction, ip_ttl(packet.hop));
        let Some(placed) = self.at.get_mut(link as usize).and_then(Option::as_deref_mut) else {
            return Routed::Forward;
        };
        let Some(bytes) = packet.body.quick_start(pool) else { return Routed::Forward };
        match placed {
            Placed::Router { router, rng } => {
                // Answers travel above IP, invisible to routers.
                let Ok(option) = IpOption::parse(IpVersion::V4, bytes) else { return Routed::Forward };
                match router.on_option(now, flow, option, rng) {
                    Verdict::Forward(option) => *bytes = option.emit(IpVersion::V4),
                    Verdict::Delete => {
                        packet.body.delete_quick_start(pool);
                        packet.size = packet.size.saturating_sub(LENGTH as u32);
                    }
                    Verdict::Drop => return Routed::Drop,
                }
            }
            Placed::Receiver { steps, rng } => {
                if let (Direction::Return, Ok(response)) = (direction, Response::parse(bytes)) {
                    *bytes = raised(response, *steps, rng).emit();
                }
            }
            Placed::Booster(index) => {
                let booster = &mut self.boosters[*index];
                match (direction, IpOption::parse(IpVersion::V4, bytes), Response::parse(bytes)) {
                    (Direction::Forward, Ok(option), _) => booster.on_option(flow, option, ttl),
                    (Direction::Return, _, Ok(response)) => *bytes = booster.on_response(flow, response).emit(),
                    _ => {}
                }
            }
        }
        Routed::Forward
    }

    /// A packet begins to leave on `link`.
    #[inline]
    pub(crate) fn on_departure(&mut self, now: Timestamp, link: u32, size: u32, flow: u64) {
        if let Some(Placed::Router { router, .. }) = self.at.get_mut(link as usize).and_then(Option::as_deref_mut) {
            router.on_departure(now, Bytes::new(u64::from(size)), flow);
        }
    }
}
