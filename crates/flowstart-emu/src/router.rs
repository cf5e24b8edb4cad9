//! Packets of IP through a link in each direction: a wire between two interfaces that is as slow as a link of the lab.
//!
//! The router has no address: what comes in at one port leaves at the other, at the time that the link says. It changes
//! a packet in these ways:
//!
//! - The queue's mark becomes CE in its header.
//! - A Quick-Start router at the link to clients writes its option ([`crate::quick_start`]) in place, and takes one
//!   from the TTL or hop limit, as requests want it (RFC 4782, section 3.3). An option that cannot be read stays.
//! - A SCONE element at the link to clients lowers signals ([`crate::scone`]) in datagrams of UDP that are no
//!   fragments.
//! - With [`Path::decrement_ttl`] it is a hop: it takes one from every TTL or hop limit (RFC 1812, section 5.3.1; RFC
//!   8200, section 3), and drops packets that have no more. Their senders are told by ICMP (`time_exceeded.rs`),
//!   beside the links, if the port at which they came has an address. Packets that a
//!   router would not forward, because they are for hosts of one link, pass as they are: the hosts on either side find
//!   each other by them. Without this it is a wire, because its ends have addresses of one network.
//!
//! Between interfaces that have Ethernet it passes frames; those of ARP, by which hosts find each other, pass beside
//! the link. A packet counts on the link with the bytes that its header of IP says, as a relay's datagrams do. Packets
//! of a flow (addresses, protocol and ports) share a queue where flows have queues of their own.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::router as quick_start;
use flowstart_core::scone::element::{self, Element};
use flowstart_core::scone::wire::lower;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_sim::link::{Departure, LinkConfig};
use nix::poll::{PollFd, PollFlags};

use crate::interface::{Carried, HEAD, Knife, LONGEST_NEIGHBOUR, has_checksums};
use crate::lane::Lane;
use crate::lateness::Lateness;
use crate::links::{Clock, LARGEST, Links, READ, Spare, wait, wake_in_time};
use crate::packet::{Packet, Unusable, mark};
use crate::packet_log::{Entries, Entry, PacketLog, packet_log};
use crate::port::{Port, PortError, PortName};
use crate::quick_start::LinkRouter;
use crate::scone::advised;
use crate::time_exceeded::{Answer, TimeExceeded};
pub use crate::told::{Direction, Told};
use crate::watch::Watch;

/// A router's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The port on the side of servers.
    pub servers: PortName,
    /// The port on the side of clients.
    pub clients: PortName,
    /// What is between them.
    pub path: Path,
}

/// What packets meet between the two ports.
#[derive(Clone, Debug)]
pub struct Path {
    /// The link from servers to clients.
    pub down: LinkConfig,
    /// The link from clients to servers.
    pub up: LinkConfig,
    /// The Quick-Start router at the link to clients, and the bandwidth that it assumes; `None`: there is none.
    pub quick_start: Option<(quick_start::Config, Rate)>,
    /// What an element at the link to clients advises in SCONE packets; `None`: there is none.
    pub advice: Option<element::Config>,
    /// Whether it takes one from the TTL or hop limit of what it forwards.
    pub decrement_ttl: bool,
    /// The seed of the links' random processes.
    pub seed: u64,
}

/// Why a router does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// A port cannot be used.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A port was used, and is no more.
    #[error("{name} is gone: {cause}")]
    Gone {
        /// The port.
        name: PortName,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The system refuses to wait for packets.
    #[error("waiting for packets: {0}")]
    Wait(#[source] io::Error),
}

/// A packet that the router holds.
#[derive(Debug)]
struct Held {
    /// It, behind what stands before it at its port.
    bytes: Vec<u8>,
    /// When the router took it.
    arrived: Timestamp,
    /// Whose it is, if anybody watches.
    flow: u32,
}

/// What the router writes down about packets that are gone.
#[derive(Debug)]
struct Account {
    /// Bytes that stand before each packet of IP.
    head: usize,
    clock: Clock,
    lateness: Lateness,
    log: Option<PacketLog>,
    /// Packets that the system did not take.
    unsent: u64,
}

impl Account {
    /// Sends a packet that crossed the link at this time, and gives its buffer back.
    fn send(
        &mut self,
        is_down: bool,
        port: &Port,
        crossed: Timestamp,
        Held { bytes, arrived, flow }: Held,
        watch: Option<&Watch>,
    ) -> Vec<u8> {
        self.unsent += u64::from(port.write(&bytes).is_err());
        let left = self.clock.now();
        let late = left.since(crossed);
        self.lateness.record(late);
        if let Some(watch) = watch {
            watch.left(flow, late);
        }
        self.log(is_down, &bytes, arrived, Some((crossed, left)));
        bytes
    }

    /// Takes what a lane has dropped, and gives the buffers back.
    fn clear_dropped(&mut self, is_down: bool, lane: &mut Lane<Held>, spare: &mut Spare, watch: Option<&Watch>) {
        while let Some(Held { bytes, arrived, flow }) = lane.take_dropped() {
            if let Some(watch) = watch {
                watch.dropped(flow);
            }
            self.log(is_down, &bytes, arrived, None);
            spare.give(bytes);
        }
    }

    fn log(&mut self, is_down: bool, bytes: &[u8], arrived: Timestamp, crossed: Option<(Timestamp, Timestamp)>) {
        if let Some(log) = &mut self.log {
            log.push(Entry { is_down, size: (bytes.len() - self.head) as u32, arrived, crossed });
        }
    }
}

/// A router whose ports are open.
#[derive(Debug)]
pub struct Router {
    names: [PortName; 2],
    /// Of servers, and of clients.
    ports: [Port; 2],
    knife: Knife,
    /// Which of them have a packet.
    ready: [bool; 2],
    links: Links<Held>,
    account: Account,
    /// At the link to clients.
    quick_start: Option<LinkRouter>,
    /// At the link to clients, too.
    element: Option<Element>,
    watch: Option<Watch>,
    /// For either port who tells senders that the time of a packet is over, if this is a hop.
    hop: Option<[TimeExceeded; 2]>,
    told: Told,
}

impl Router {
    /// Opens the ports.
    ///
    /// # Errors
    ///
    /// [`RouterError::Port`].
    pub fn open(config: &Config) -> Result<Self, RouterError> {
        let names = [config.servers.clone(), config.clients.clone()];
        let ports = [Port::open(&names[0])?, Port::open(&names[1])?];
        if let [Some(servers), Some(clients)] = ports.each_ref().map(Port::mtu)
            && servers != clients
        {
            let [first, second] = names;
            return Err(PortError::Longest(first, servers, second, clients).into());
        }
        Self::between(names, ports, &config.path)
    }

    /// A router between open ports.
    pub(crate) fn between(names: [PortName; 2], ports: [Port; 2], path: &Path) -> Result<Self, RouterError> {
        let [head, other] = ports.each_ref().map(Port::head);
        if head != other {
            let [servers, clients] = names;
            return Err(PortError::Kinds(servers, clients).into());
        }
        let mut links = Links::new(&path.down, &path.up, path.seed);
        links.down = links.down.with_queue().with_dropped();
        links.up = links.up.with_queue().with_dropped();
        let hop = path.decrement_ttl.then(|| names.each_ref().map(|name| TimeExceeded::new(name.interface())));
        let account = Account { head, clock: links.clock, lateness: Lateness::new(), log: None, unsent: 0 };
        Ok(Self {
            names,
            ports,
            knife: Knife::new(),
            ready: [false; 2],
            links,
            account,
            quick_start: path.quick_start.map(|(router, bandwidth)| LinkRouter::new(router, bandwidth, path.seed)),
            element: path.advice.map(Element::new),
            watch: None,
            hop,
            told: Told::default(),
        })
    }

    /// An entry for each packet from now on until [`Router::run`] ends, for another thread. Those that are still on a
    /// link by then, or that never came on one, have none.
    pub fn log_packets(&mut self) -> Entries {
        let (log, entries) = packet_log();
        self.account.log = Some(log);
        entries
    }

    /// Counts from now on. Flows to and from this port of servers are counted apart.
    pub(crate) fn watch(&mut self, port: u16) -> Watch {
        self.watch.insert(Watch::new(port)).clone()
    }

    /// What happened so far.
    pub fn told(&mut self) -> Told {
        let (latest, late, unsent) = (self.links.latest(), self.account.lateness.late(), self.account.unsent);
        let unlogged = self.told.unlogged + self.account.log.as_ref().map_or(0, PacketLog::missed);
        let missed = self.ports.each_ref().map(Port::missed);
        let Links { down, up, .. } = &mut self.links;
        let lanes = [(down, &self.told.down, missed[0]), (up, &self.told.up, missed[1])];
        let [down, up] = lanes.map(|(lane, told, missed)| Direction {
            link: lane.counters().clone(),
            missed,
            waiting: lane.waiting(),
            ..told.clone()
        });
        Told { down, up, latest, late, unsent, unlogged, ..self.told.clone() }
    }

    /// Routes until `stop` is set; each `every`, `report` hears what happened since the begin.
    ///
    /// # Errors
    ///
    /// [`RouterError::Gone`] and [`RouterError::Wait`].
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        every: Option<Duration>,
        mut report: impl FnMut(Timestamp, &Told),
    ) -> Result<(), RouterError> {
        wake_in_time();
        let ended = self.route(stop, every, &mut report);
        self.told.unlogged += self.account.log.take().map_or(0, PacketLog::end);
        ended
    }

    fn route(
        &mut self,
        stop: &AtomicBool,
        every: Option<Duration>,
        report: &mut impl FnMut(Timestamp, &Told),
    ) -> Result<(), RouterError> {
        let mut buffer = vec![0; HEAD + LARGEST];
        let mut reported = self.links.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.links.now();
            self.advance(now);
            if every.is_some_and(|every| now.since(reported) >= every) {
                reported = now;
                report(now, &self.told());
            }
            self.wait()?;
            self.read(&mut buffer)?;
        }
        Ok(())
    }

    /// Sends what has crossed a link by now.
    fn advance(&mut self, now: Timestamp) {
        self.links.note_lateness(now);
        let Self { ports: [servers, clients], links, quick_start, told, account, watch, .. } = self;
        let watch = watch.as_ref();
        let (Links { down, up, spare, .. }, head) = (links, account.head);
        let Direction { marked, sojourn, .. } = &mut told.down;
        down.advance_telling(
            now,
            |at, departure, packet| {
                if let Some(router) = quick_start {
                    router.on_departure(at, departure.size, departure.flow);
                }
                if let Some(watch) = watch {
                    watch.departed(at, packet.flow, departure.size, departure.waited);
                }
                *sojourn = at.since(packet.arrived);
                *marked += u64::from(mark_if_told(departure, &mut packet.bytes[head..]));
            },
            |at, packet| spare.give(account.send(true, clients, at, packet, watch)),
        );
        account.clear_dropped(true, down, spare, watch);
        let Direction { marked, sojourn, .. } = &mut told.up;
        up.advance_telling(
            now,
            |at, departure, packet| {
                *sojourn = at.since(packet.arrived);
                *marked += u64::from(mark_if_told(departure, &mut packet.bytes[head..]));
            },
            |at, packet| spare.give(account.send(false, servers, at, packet, watch)),
        );
        account.clear_dropped(false, up, spare, watch);
    }

    /// Waits for a packet, for the next event, or for a moment.
    fn wait(&mut self) -> Result<(), RouterError> {
        let patience = self.links.patience();
        let mut polled = self.ports.each_ref().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN));
        wait(&mut polled, patience).map_err(RouterError::Wait)?;
        let [servers, clients] = polled.map(|polled| polled.any() != Some(false));
        self.ready = [servers || self.ports[0].may_be_gone(), clients || self.ports[1].may_be_gone()];
        Ok(())
    }

    /// Takes what has arrived.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), RouterError> {
        for side in 0..2 {
            if !self.ready[side] {
                continue;
            }
            for _ in 0..READ {
                let gone = |cause| RouterError::Gone { name: self.names[side].clone(), cause };
                let Some(length) = self.ports[side].read(buffer).map_err(gone)? else { break };
                let now = self.links.now();
                self.advance(now);
                self.receive(side == 0, &mut buffer[..length], now);
            }
        }
        Ok(())
    }

    /// Something has come in.
    fn receive(&mut self, is_down: bool, bytes: &mut [u8], now: Timestamp) {
        if self.account.head == 0 {
            self.take(is_down, bytes, now);
            return;
        }
        match Carried::of(bytes) {
            Carried::Packet => self.take(is_down, bytes, now),
            Carried::Segments => {
                let mut knife = std::mem::take(&mut self.knife);
                let count = knife.cut(bytes).map(|segment| self.take(is_down, segment, now)).count();
                self.knife = knife;
                let direction = self.direction(is_down);
                *if count == 0 { &mut direction.malformed } else { &mut direction.segmented } += 1;
            }
            // What is longer than such a message would pass beside the link.
            Carried::Neighbour if bytes.len() > HEAD + LONGEST_NEIGHBOUR => self.direction(is_down).foreign += 1,
            Carried::Neighbour => {
                let is_sent = self.ports[usize::from(is_down)].write(bytes).is_ok();
                self.account.unsent += u64::from(!is_sent);
            }
            Carried::Nothing => {}
            Carried::Other => self.direction(is_down).foreign += 1,
        }
    }

    fn direction(&mut self, is_down: bool) -> &mut Direction {
        if is_down { &mut self.told.down } else { &mut self.told.up }
    }

    /// Puts a packet on a link.
    fn take(&mut self, is_down: bool, bytes: &mut [u8], now: Timestamp) {
        let packet = match Packet::read(&bytes[self.account.head..]) {
            Ok(packet) => packet,
            Err(Unusable::Foreign) => {
                self.direction(is_down).foreign += 1;
                return;
            }
            Err(Unusable::Malformed) => {
                self.direction(is_down).malformed += 1;
                return;
            }
        };
        if !self.links.have_room(is_down) {
            self.told.refused += 1;
            return;
        }
        let is_hop = self.hop.is_some() && !packet.is_for_one_link;
        let mut ttl = match packet.ttl.checked_sub(is_hop.into()) {
            None | Some(0) if is_hop => {
                self.expire(is_down, bytes, &packet, now);
                return;
            }
            left => left.unwrap_or(packet.ttl),
        };
        let (head, in_ip) = bytes[..self.account.head + packet.length].split_at_mut(self.account.head);
        if let Some(router) = self.quick_start.as_mut().filter(|_| is_down) {
            let left = router.on_packet(now, &packet, in_ip, ttl, &mut self.told.quick_start);
            let Some(left) = left else { return };
            ttl = left;
        }
        if ttl != packet.ttl {
            packet.set_ttl(in_ip, ttl);
        }
        if let Some(element) = self.element.as_mut().filter(|_| is_down)
            && let Some(payload) = packet.payload(in_ip)
            && let Some(signal) = advised(element, payload, packet.flow, now, &mut self.told.scone)
        {
            packet.change_payload(in_ip, has_checksums(head), |payload| {
                lower(payload, signal);
            });
        }
        let bytes = &bytes[..self.account.head + packet.length];
        let flow = self.watch.as_ref().map_or(0, |watch| watch.flow_of(is_down, &packet));
        let held = Held { bytes: self.links.buffer(bytes), arrived: now, flow };
        let Links { down, up, spare, .. } = &mut self.links;
        let lane = if is_down { down } else { up };
        lane.enqueue(now, held, packet.length as u32, packet.flow, packet.ecn);
        self.account.clear_dropped(is_down, lane, spare, self.watch.as_ref());
    }

    /// Drops a packet whose time is over, and tells its sender, at the port where it came in.
    fn expire(&mut self, is_down: bool, bytes: &[u8], packet: &Packet, now: Timestamp) {
        let Self { hop, ports, account, told, .. } = self;
        let direction = if is_down { &mut told.down } else { &mut told.up };
        direction.expired += 1;
        let side = usize::from(!is_down);
        let (head, in_ip) = bytes.split_at(account.head);
        let Some(teller) = hop.as_mut().map(|hop| &mut hop[side]) else { return };
        match teller.answer(now, head, packet, in_ip) {
            Answer::Told => match ports[side].write(teller.message()) {
                Ok(()) => direction.time_exceeded += 1,
                Err(_) => account.unsent += 1,
            },
            Answer::WithoutAddress => direction.without_address += 1,
            Answer::None => {}
        }
    }
}

/// Writes the mark that a packet got in the queue; whether it got one there.
fn mark_if_told(departure: &Departure, packet: &mut [u8]) -> bool {
    let is_new =
        departure.ecn == EcnCodepoint::Ce && Packet::read(packet).is_ok_and(|packet| packet.ecn != EcnCodepoint::Ce);
    if is_new {
        mark(packet);
    }
    is_new
}
