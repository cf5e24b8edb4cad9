//! Elements at links that change Quick-Start's options before a packet is queued: routers, lying receivers and
//! middleboxes.
//!
//! A router may need time to process an option (`processing`). The packet then waits beside the fast path, before the
//! router judges it, and packets without an option overtake it: data may overtake a report, or a request in
//! mid-connection, whose packet is then late for the receiver. Only the packets of a handshake stay in order, because
//! they wait behind their flow's option. The number of options that are processed at a time is not limited; `target`
//! and `extreme` limit their rate.

use std::collections::VecDeque;

use flowstart_core::quick_start::misbehaviour::{Booster, BoosterConfig, raised};
use flowstart_core::quick_start::router::{Config, Router, Verdict};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH, Response};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};

use crate::engine::Slot;
use crate::packet::{Body, Direction, Packet, PacketId, RangePool, ip_ttl};

/// The element at a link, with its own random numbers.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for a link, in a box, and almost all are routers")]
enum Placed {
    Router {
        router: Router,
        rng: Substream,
        /// Packets whose option is being processed, if that takes time.
        slow_path: Option<SlowPath>,
    },
    /// The link of a receiver that raises the rate by this many steps.
    Receiver { steps: u8, rng: Substream },
    /// One of the two links of a host behind this booster.
    Booster(usize),
}

/// Packets whose option a router is processing, with the end of that and their flow, the first one first.
#[derive(Clone, Debug)]
struct SlowPath {
    timer: Slot,
    packets: VecDeque<(Timestamp, PacketId, u32)>,
}

impl SlowPath {
    /// The time for its timer, while there are packets.
    fn next(&self) -> Option<(Slot, Timestamp)> {
        Some((self.timer, self.packets.front()?.0))
    }
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
    /// Adds a router at `link` that assumes this bandwidth. It needs a timer if it needs time for options.
    pub(crate) fn add(&mut self, link: u32, config: Config, bandwidth: Rate, seed: u64, timer: Option<Slot>) {
        let rng = Substream::new(seed, "quick-start router", u64::from(link));
        let slow_path = timer.map(|timer| SlowPath { timer, packets: VecDeque::new() });
        self.place(link, Placed::Router { router: Router::new(config, bandwidth), rng, slow_path });
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

    /// A packet has arrived at `link`. If its option has to be processed first, or if it may not overtake such a
    /// packet, the router keeps it. Returns the time for the timer, at which [`Routers::take_processed`] returns it.
    pub(crate) fn hold(
        &mut self,
        now: Timestamp,
        link: u32,
        id: PacketId,
        packet: &mut Packet,
        pool: &mut RangePool,
    ) -> Option<(Slot, Timestamp)> {
        let placed = self.at.get_mut(link as usize)?.as_deref_mut()?;
        let Placed::Router { router, slow_path: Some(slow_path), .. } = placed else { return None };
        let (flow, packets) = (packet.flow, &mut slow_path.packets);
        let before = packets.iter().rposition(|(_, _, other)| *other == flow);
        let option = packet.body.quick_start(pool).and_then(|bytes| IpOption::parse(IpVersion::V4, bytes).ok());
        match (option, before, packet.body) {
            (Some(_), ..) if router.processing() > Duration::ZERO => {
                packets.push_back((now + router.processing(), id, flow));
            }
            (_, Some(before), Body::Handshake { .. }) => packets.insert(before + 1, (packets[before].0, id, flow)),
            _ => return None,
        }
        slow_path.next()
    }

    /// A packet whose option the router at `link` has processed by now.
    pub(crate) fn take_processed(&mut self, now: Timestamp, link: u32) -> Option<PacketId> {
        let packets = &mut self.slow_path(link)?.packets;
        packets.pop_front_if(|(time, ..)| *time <= now).map(|(_, id, _)| id)
    }

    /// When the router at `link` has processed its next option.
    pub(crate) fn next_processed(&mut self, link: u32) -> Option<(Slot, Timestamp)> {
        self.slow_path(link)?.next()
    }

    fn slow_path(&mut self, link: u32) -> Option<&mut SlowPath> {
        match self.at.get_mut(link as usize)?.as_deref_mut()? {
            Placed::Router { slow_path, .. } => slow_path.as_mut(),
            Placed::Receiver { .. } | Placed::Booster(_) => None,
        }
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
            Placed::Router { router, rng, .. } => {
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
