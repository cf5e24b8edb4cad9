//! UDP datagrams through a link in each direction: clients send to the relay as if it were the server.
//!
//! What this host adds is how late it wakes; [`Told::latest`] says the worst.
//!
//! A relay is the end of the IP packets on either side, so options do not pass it, unless a router at the link to
//! clients writes them anew ([`crate::quick_start`]).

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use flowstart_core::aqm::EcnCodepoint;
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::router as quick_start;
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH};
use flowstart_core::scone::element::{self, Element};
use flowstart_core::scone::wire::lower;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;
use flowstart_datagram::{Header, Unable, options_length, receive, send, show_headers, try_sending};
use flowstart_sim::link::{Departure, LinkConfig, LinkCounters};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{setsockopt, sockopt::RcvBuf, sockopt::SndBuf};

use crate::links::{LARGEST, Links, READ, wait, wake_in_time};
use crate::quick_start::{Fate, LinkRouter, Options, Rewritten};
use crate::scone::{Signals, advised};

/// Clients at a time; datagrams of further ones are dropped.
const CLIENTS: usize = 1024;
/// A client that was silent for so long is forgotten: no sooner than behind a NAT (RFC 4787, section 4.3), because a
/// client that comes back gets another port towards the server.
const SILENCE: Duration = Duration::from_millis(120_000);
/// How often silent clients are looked for.
const SWEEP: Duration = Duration::from_millis(10_000);
/// Buffers of the sockets: what arrives while this host does something else.
const SOCKET_BUFFER: usize = 4 << 20;
/// A link that no transfer notices.
const FASTEST: Rate = Rate::from_mbit(1_000_000);

/// A relay's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients send; port 0 is any free one.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// The link from the server to clients.
    pub down: LinkConfig,
    /// The link from clients to the server.
    pub up: LinkConfig,
    /// What an element at the link to clients advises in SCONE packets; `None`: there is none.
    pub down_advice: Option<element::Config>,
    /// What one at the link to the server advises.
    pub up_advice: Option<element::Config>,
    /// The Quick-Start router at the link to clients, and the bandwidth that it assumes; `None`: there is none. It
    /// takes `CAP_NET_RAW`.
    pub router: Option<(quick_start::Config, Rate)>,
    /// The seed of the links' random processes.
    pub seed: u64,
}

impl Config {
    /// A relay whose links take no time and lose nothing.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        let link = LinkConfig::new(FASTEST, Duration::ZERO);
        Self { listen, to, down: link.clone(), up: link, down_advice: None, up_advice: None, router: None, seed: 1 }
    }
}

/// Why a relay does not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The address for clients cannot be used.
    #[error("{address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A router's options cannot be sent.
    #[error("a Quick-Start router writes an option of IP, and {0}")]
    Options(#[from] Unable),
    /// The system refuses to wait for datagrams.
    #[error("waiting for datagrams: {0}")]
    Wait(#[source] io::Error),
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The link to clients.
    pub down: LinkCounters,
    /// The link to the server.
    pub up: LinkCounters,
    /// Datagrams of clients that were too many, or beyond the memory.
    pub refused: u64,
    /// Datagrams that the system did not take.
    pub unsent: u64,
    /// What the elements did.
    pub scone: Signals,
    /// What the router did.
    pub quick_start: Options,
    /// The longest time by which an event was late.
    pub latest: Duration,
}

/// A datagram on its way.
#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    client: SocketAddr,
    /// The header that a router has written.
    rewritten: Option<Rewritten>,
}

/// A client's socket towards the server.
#[derive(Debug)]
struct Client {
    socket: UdpSocket,
    flow: u32,
    heard: Timestamp,
}

/// A relay that listens.
#[derive(Debug)]
pub struct Relay {
    socket: UdpSocket,
    address: SocketAddr,
    to: SocketAddr,
    links: Links<Datagram>,
    /// At the link to clients, and at the one back.
    elements: [Option<Element>; 2],
    /// At the link to clients.
    router: Option<LinkRouter>,
    clients: HashMap<SocketAddr, Client>,
    flows: u32,
    /// When silent clients were looked for.
    swept: Timestamp,
    /// Clients to whom the server has sent something, and their flows.
    ready: Vec<(SocketAddr, u32)>,
    told: Told,
}

/// A socket of this address that never blocks.
fn bound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    // The system may allow less.
    let _ = setsockopt(&socket, RcvBuf, &SOCKET_BUFFER);
    let _ = setsockopt(&socket, SndBuf, &SOCKET_BUFFER);
    Ok(socket)
}

/// Finds out whether a router of this relay could write options.
fn check_router(config: &Config) -> Result<(), RelayError> {
    let nothing = IpOption::RateRequest { rate: RateCode::ZERO, ttl: 0, nonce: Nonce::from_bits(0) };
    let address = config.listen.ip();
    Ok(try_sending(address, &nothing.emit(IpVersion::of(address)))?)
}

/// Headers of IP and UDP, which a link carries, too.
fn headers(address: SocketAddr) -> u32 {
    match IpVersion::of(address.ip()) {
        IpVersion::V4 => 28,
        IpVersion::V6 => 48,
    }
}

impl Relay {
    /// Listens.
    ///
    /// # Errors
    ///
    /// [`RelayError`] when the address cannot be used, or when the router could not do its work.
    pub fn bind(config: &Config) -> Result<Self, RelayError> {
        let unusable = |cause| RelayError::Listen { address: config.listen, cause };
        if config.router.is_some() {
            check_router(config)?;
        }
        let socket = bound(config.listen).map_err(unusable)?;
        let mut links = Links::new(&config.down, &config.up, config.seed);
        if config.router.is_some() {
            links.down = links.down.with_queue();
        }
        Ok(Self {
            address: socket.local_addr().map_err(unusable)?,
            socket,
            to: config.to,
            links,
            router: config.router.map(|(router, bandwidth)| LinkRouter::new(router, bandwidth, config.seed)),
            elements: [config.down_advice, config.up_advice].map(|config| config.map(Element::new)),
            clients: HashMap::new(),
            flows: 0,
            swept: Timestamp::ZERO,
            ready: Vec::new(),
            told: Told::default(),
        })
    }

    /// Where clients send.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happened so far.
    pub fn told(&self) -> Told {
        let Links { down, up, .. } = &self.links;
        let latest = self.links.latest();
        Told { down: down.counters().clone(), up: up.counters().clone(), latest, ..self.told.clone() }
    }

    /// Relays until `stop` is set.
    ///
    /// # Errors
    ///
    /// [`RelayError::Wait`].
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), RelayError> {
        wake_in_time();
        let mut buffer = vec![0; LARGEST];
        while !stop.load(Ordering::Relaxed) {
            let now = self.links.now();
            self.advance(now);
            self.wait()?;
            self.read(&mut buffer);
        }
        Ok(())
    }

    /// Sends what has crossed a link by now, and forgets clients that are silent.
    fn advance(&mut self, now: Timestamp) {
        if now.since(self.swept) >= SWEEP {
            self.swept = now;
            self.clients.retain(|_, client| now.since(client.heard) < SILENCE);
        }
        self.links.note_lateness(now);
        let Self { socket, links: Links { down, up, spare, .. }, router, clients, told, .. } = self;
        let mut sent = |result: io::Result<()>, bytes: Vec<u8>| {
            told.unsent += u64::from(result.is_err());
            spare.give(bytes);
        };
        let leave = |at, packet: &Departure, _: &mut Datagram| {
            if let Some(router) = router {
                router.on_departure(at, packet.size, packet.flow);
            }
        };
        down.advance_telling(now, leave, |_, Datagram { bytes, client, rewritten }| match rewritten {
            None => sent(socket.send_to(&bytes, client).map(|_| ()), bytes),
            Some(Rewritten { option, ttl }) => {
                let option = option.emit(IpVersion::of(client.ip()));
                let header = Header { options: &option, ttl, ..Header::default() };
                sent(send(socket, &bytes, Some(client), &header), bytes);
            }
        });
        up.advance(now, |Datagram { bytes, client, .. }| {
            let Some(client) = clients.get(&client) else { return };
            sent(client.socket.send(&bytes).map(|_| ()), bytes);
        });
    }

    /// Waits for a datagram, for the next event, or for a moment.
    fn wait(&mut self) -> Result<(), RelayError> {
        let patience = self.links.patience();
        let Self { socket, clients, ready, .. } = self;
        let sockets = std::iter::once(&*socket).chain(clients.values().map(|client| &client.socket));
        let mut polled: Vec<PollFd<'_>> =
            sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        ready.clear();
        wait(&mut polled, patience).map_err(RelayError::Wait)?;
        let answered = clients.iter().zip(&polled[1..]).filter(|(_, polled)| polled.any() != Some(false));
        ready.extend(answered.map(|((address, client), _)| (*address, client.flow)));
        Ok(())
    }

    /// Takes what has arrived.
    fn read(&mut self, buffer: &mut [u8]) {
        for _ in 0..READ {
            let Ok((length, from)) = self.socket.recv_from(buffer) else { break };
            let now = self.links.now();
            self.advance(now);
            if let Some(flow) = self.client(from, now) {
                self.take(false, &buffer[..length], None, from, flow, now);
            } else {
                self.told.refused += 1;
            }
        }
        for place in 0..self.ready.len() {
            let (address, flow) = self.ready[place];
            for _ in 0..READ {
                let Some(client) = self.clients.get(&address) else { break };
                let (length, came) = match self.router {
                    None => (client.socket.recv(buffer), None),
                    Some(_) => match receive(&client.socket, buffer) {
                        Ok(came) => (Ok(came.length), Some(came)),
                        Err(error) => (Err(error), None),
                    },
                };
                let length = match length {
                    Ok(length) => length,
                    // The server's host said that nobody listens; the next datagram may find somebody.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(_) => break,
                };
                let now = self.links.now();
                self.advance(now);
                let fate = self.router.as_mut().zip(came).map(|(router, came)| {
                    let version = IpVersion::of(self.to.ip());
                    router.on_datagram(now, flow, version, came.options(), came.ttl, &mut self.told.quick_start)
                });
                match fate {
                    None | Some(Fate::Plain | Fate::Without) => {
                        self.take(true, &buffer[..length], None, address, flow, now);
                    }
                    Some(Fate::With(header)) => self.take(true, &buffer[..length], Some(header), address, flow, now),
                    Some(Fate::Drop) => {}
                }
            }
        }
    }

    /// Puts a datagram on a link.
    fn take(
        &mut self,
        is_down: bool,
        datagram: &[u8],
        rewritten: Option<Rewritten>,
        client: SocketAddr,
        flow: u32,
        now: Timestamp,
    ) {
        if !self.links.have_room(is_down) {
            self.told.refused += 1;
            return;
        }
        let mut bytes = self.links.buffer(datagram);
        if let Some(element) = &mut self.elements[usize::from(!is_down)]
            && let Some(advised) = advised(element, &bytes, flow, now, &mut self.told.scone)
        {
            lower(&mut bytes, advised);
        }
        let option = options_length(client.ip(), if rewritten.is_some() { LENGTH } else { 0 }) as u32;
        let size = datagram.len() as u32 + headers(client) + option;
        let lane = if is_down { &mut self.links.down } else { &mut self.links.up };
        lane.enqueue(now, Datagram { bytes, client, rewritten }, size, flow, EcnCodepoint::NotEct);
    }

    /// The flow of this client, which gets a socket when it comes.
    fn client(&mut self, address: SocketAddr, now: Timestamp) -> Option<u32> {
        if let Some(client) = self.clients.get_mut(&address) {
            client.heard = now;
            return Some(client.flow);
        }
        if self.clients.len() >= CLIENTS {
            return None;
        }
        let any = if self.to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = bound(SocketAddr::new(any, 0)).ok()?;
        socket.connect(self.to).ok()?;
        if self.router.is_some() {
            show_headers(&socket, true).ok()?;
        }
        self.flows = self.flows.wrapping_add(1);
        self.clients.insert(address, Client { socket, flow: self.flows, heard: now });
        Some(self.flows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration as StdDuration, Instant};

    use flowstart_core::units::Rate;

    use super::*;

    #[test]
    fn a_client_that_is_silent_is_forgotten_and_others_are_not() {
        let config = Config::new("127.0.0.1:0".parse().unwrap(), "127.0.0.1:9".parse().unwrap());
        let mut relay = Relay::bind(&config).unwrap();
        let seconds = |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000);
        let [silent, alive] = [1, 2].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let first = relay.client(silent, seconds(1)).unwrap();
        for second in (1..=130).step_by(3) {
            relay.advance(seconds(second));
            relay.client(alive, seconds(second)).unwrap();
        }
        // Who was silent for 120 s is forgotten within the next ten.
        relay.advance(seconds(131));
        assert_eq!(relay.clients.keys().collect::<Vec<_>>(), [&alive]);
        assert_ne!(relay.client(silent, seconds(132)), Some(first), "its flow is a new one");
    }

    #[test]
    fn datagrams_cross_both_links_in_order_and_in_time() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let link = LinkConfig::new(Rate::from_mbit(8), Duration::from_millis(30));
        let config = Config {
            down: link.clone(),
            up: LinkConfig::new(Rate::from_mbit(1000), Duration::from_millis(30)),
            ..Config::new("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap())
        };
        let mut relay = Relay::bind(&config).unwrap();
        let (address, stop) = (relay.address(), Arc::new(AtomicBool::new(false)));
        let running = std::thread::spawn({
            let stop = stop.clone();
            move || relay.run(&stop).map(|()| relay.told())
        });
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"question");
            for number in 0..50_u8 {
                server.send_to(&[number; 972], from).unwrap();
            }
        });
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(StdDuration::from_secs(20))).unwrap();
        let began = Instant::now();
        client.send_to(b"question", address).unwrap();
        let mut buffer = [0; 2000];
        for number in 0..50_u8 {
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((length, buffer[0], from), (972, number, address));
            // 60 ms, and 1 ms for each 1000 bytes on the wire.
            assert!(began.elapsed() >= StdDuration::from_millis(60 + 1 + u64::from(number)));
        }
        answering.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        let told = running.join().unwrap().unwrap();
        assert_eq!((told.down.departed, told.up.departed, told.refused), (50, 1, 0));
    }
}
