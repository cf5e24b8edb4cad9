//! Dumbbells and chains: routes made of links.

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use crate::link::LinkConfig;
use crate::link::wire::Jitter;
use crate::network::{Network, Route};

/// Anything that takes links: a network, or a world with one.
pub trait Links {
    /// Adds a link and returns its number for routes.
    fn add_link(&mut self, config: &LinkConfig) -> u32;
}

impl Links for Network {
    fn add_link(&mut self, config: &LinkConfig) -> u32 {
        Self::add_link(self, config)
    }
}

/// A host's own link to the first or from the last router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// Rate in both directions.
    pub rate: Rate,
    /// Propagation delay in each direction.
    pub delay: Duration,
    /// Variable delay of the host's packets, from its own scheduling. Without it, drop-tail queues favour senders in
    /// phase with their departures (Floyd, Jacobson, "On traffic phase effects", 1992).
    pub jitter: Option<Jitter>,
}

/// A host at an end of a chain: its link to the router, and the one from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// The link that it sends into.
    pub out: u32,
    /// The link that ends at it.
    pub into: u32,
    /// Propagation delay of each link.
    pub delay: Duration,
}

/// Routers in a row. Link `i` leads from router `i` to router `i + 1`, and has a partner that leads back.
#[derive(Clone, Debug)]
pub struct Chain {
    forward: Vec<u32>,
    back: Vec<u32>,
}

impl Chain {
    /// Routers connected by these pairs of links: towards the receivers, and back.
    pub fn new(links: &mut impl Links, hops: &[(LinkConfig, LinkConfig)]) -> Self {
        let forward = hops.iter().map(|(link, _)| links.add_link(link)).collect();
        let back = hops.iter().map(|(_, link)| links.add_link(link)).collect();
        Self { forward, back }
    }

    /// A dumbbell: two routers and one pair of links between them.
    pub fn dumbbell(links: &mut impl Links, forward: &LinkConfig, back: &LinkConfig) -> Self {
        Self::new(links, &[(forward.clone(), back.clone())])
    }

    /// The link from router `hop` to the next.
    pub fn forward_link(&self, hop: usize) -> u32 {
        self.forward[hop]
    }

    /// The link back to router `hop`.
    pub fn back_link(&self, hop: usize) -> u32 {
        self.back[hop]
    }

    /// A new pair of hosts at the two ends of the chain.
    pub fn connect(&self, links: &mut impl Links, sender: Access, receiver: Access) -> Route {
        self.connect_between(links, sender, receiver, 0, self.last_router())
    }

    /// A new pair of hosts whose packets cross the links from router `from` to router `to`: cross traffic. If `from >
    /// to`, the data flows against the direction of the chain.
    pub fn connect_between(
        &self,
        links: &mut impl Links,
        sender: Access,
        receiver: Access,
        from: usize,
        to: usize,
    ) -> Route {
        let (sender, receiver) = (Self::attach(links, sender), Self::attach(links, receiver));
        self.route(sender, receiver, from, to)
    }

    /// A new host. Its routes determine its router.
    pub fn attach(links: &mut impl Links, access: Access) -> Host {
        let plain = LinkConfig::new(access.rate, access.delay);
        let out = links.add_link(&LinkConfig { jitter: access.jitter, ..plain.clone() });
        Host { out, into: links.add_link(&plain), delay: access.delay }
    }

    /// The number of the last router.
    pub fn last_router(&self) -> usize {
        self.forward.len()
    }

    /// From a sender at router `from` to a receiver at router `to`.
    pub fn route(&self, sender: Host, receiver: Host, from: usize, to: usize) -> Route {
        let (low, high) = (from.min(to), from.max(to));
        let up: Vec<u32> = self.forward[low..high].to_vec();
        let down: Vec<u32> = self.back[low..high].iter().rev().copied().collect();
        let (there, home) = if from <= to { (up, down) } else { (down, up) };
        Route {
            forward: [vec![sender.out], there, vec![receiver.into]].concat(),
            back: [vec![receiver.out], home, vec![sender.into]].concat(),
        }
    }
}
