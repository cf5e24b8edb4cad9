//! Which connections of a server ask routers, and what a client's socket has read of requests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::quick_start::host::{Known, PacketSizes, Refusal, Request, respond};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH, Response};
use flowstart_core::rng::Substream;
use flowstart_core::startup::quick_start::{Config, Reports, RequestKind};
use flowstart_core::units::{Bytes, Rate};
use flowstart_datagram::DEFAULT_TTL;
use noq_proto::{ConnectionId, EndpointConfig};

use crate::connection_ids::{OwnIds, connection_id};
use crate::invariants::{connection_ids, is_long};

/// UDP payload of a packet before the path MTU is known (RFC 9000, section 14).
const SMALLEST_PACKET: Bytes = Bytes::new(1200);
/// Packets of the initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client's address and the connection ID that it chose first.
type Key = (SocketAddr, ConnectionId);

/// The option that waits for a connection's next datagram.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The path that it is about.
    pub(super) to: SocketAddr,
    /// Its bytes as one number, which no option is zero for; zero: none waits.
    option: AtomicU64,
}

impl Waiting {
    fn new(to: SocketAddr, option: IpOption) -> Self {
        Self { to, option: AtomicU64::new(Self::number(to, option)) }
    }

    fn number(to: SocketAddr, option: IpOption) -> u64 {
        u64::from_be_bytes(option.emit(IpVersion::of(to.ip())))
    }

    /// Whether an option waits.
    pub(super) fn is_some(&self) -> bool {
        self.option.load(Ordering::Relaxed) != 0
    }

    /// The option, once.
    pub(super) fn take(&self) -> Option<[u8; LENGTH]> {
        Some(self.option.swap(0, Ordering::Relaxed)).filter(|number| *number != 0).map(u64::to_be_bytes)
    }

    /// The option has not left. If another one waits by now, that one counts.
    pub(super) fn put_back(&self, option: [u8; LENGTH]) {
        let _ = self.option.compare_exchange(0, u64::from_be_bytes(option), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// This option waits now, whatever waited before.
    fn put(&self, option: IpOption) {
        self.option.store(Self::number(self.to, option), Ordering::Relaxed);
    }
}

/// The connections of a server that ask routers for a rate. It holds as many as there are [`Asked`].
#[derive(Debug, Default)]
pub struct Clients {
    asking: Mutex<HashMap<Key, Arc<Waiting>>>,
    requests: AtomicU64,
    reports: AtomicU64,
    unsent: AtomicU64,
}

impl Clients {
    /// The connection of the client at this address, which has chosen this connection ID and has said that it answers,
    /// asks for what `config` wants with this knowledge. `None`: there is nothing to ask for, or another
    /// connection with this ID asks.
    pub fn ask(
        self: &Arc<Self>,
        address: SocketAddr,
        initial_source: &[u8],
        config: &Config,
        known: Known,
        rng: &mut Substream,
    ) -> Option<Asked> {
        let key = (address, connection_id(initial_source)?);
        let of_unknown_size = config.request == RequestKind::Object && known.object.is_none();
        let kind = if of_unknown_size { RequestKind::Fixed } else { config.request };
        let sizes = PacketSizes { mss: SMALLEST_PACKET, header: config.header };
        let rate = Config { request: kind, ..*config }.rate_to_ask(known, sizes, SMALLEST_PACKET * INITIAL_WINDOW)?;
        let request = Request::new(rate, config.rounding, config.encoding, DEFAULT_TTL, rng)?;
        let request = request.comparing(config.nonce_bits);
        let waiting = Arc::new(Waiting::new(address, request.option()));
        match locked(&self.asking).entry(key) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(Arc::clone(&waiting)),
        };
        Some(Asked { clients: Arc::clone(self), key, request, reports: config.reports, waiting })
    }

    /// Requests that were sent.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Reports that were sent.
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Options that never left: the system did not take them, or the connection had moved.
    pub fn unsent(&self) -> u64 {
        self.unsent.load(Ordering::Relaxed)
    }

    /// What waits for the connection whose client has this connection ID at this address.
    pub(super) fn waiting(&self, address: SocketAddr, destination: &[u8]) -> Option<Arc<Waiting>> {
        locked(&self.asking).get(&(address, connection_id(destination)?)).cloned()
    }

    /// This option has left.
    pub(super) fn count_sent(&self, to: SocketAddr, option: &[u8]) {
        let option = IpOption::parse(IpVersion::of(to.ip()), option);
        let is_report = matches!(option, Ok(IpOption::ApprovedRate { .. }));
        let counter = if is_report { &self.reports } else { &self.requests };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// An option has not left, and never will.
    pub(super) fn count_unsent(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection that asks routers, if it does before its handshake is answered. When this is gone, so is what it has
/// not sent.
#[derive(Debug)]
pub struct Asked {
    clients: Arc<Clients>,
    key: Key,
    request: Request,
    reports: Reports,
    waiting: Arc<Waiting>,
}

impl Asked {
    /// What it asks for.
    pub fn rate(&self) -> Rate {
        self.request.rate()
    }

    /// What the client's response says of it: the rate that all routers approved. The next datagram reports it, as the
    /// scheme's `reports` says.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when not all routers approved it, or the response is not credible.
    pub fn verify(&self, response: &Response) -> Result<Rate, Refusal> {
        let approved = self.request.verify(response);
        if let Some(rate) = self.reports.rate(approved.ok()) {
            self.waiting.put(self.request.report(rate));
        }
        approved
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        locked(&self.clients.asking).remove(&self.key);
        self.waiting.take();
    }
}

/// What a client's socket has read of the request of the server that it connects to. One connection at a time has such
/// a socket, because a request does not tell whose it is.
#[derive(Debug)]
pub struct Requests {
    ids: OwnIds,
    read: Mutex<Read>,
    malformed: AtomicU64,
}

#[derive(Debug, Default)]
struct Read {
    /// The server that may ask; `None`: nobody.
    server: Option<SocketAddr>,
    response: Option<Response>,
}

impl Requests {
    /// None yet. `key` is a random number, by which connection IDs are known that this end has given out.
    pub fn new(key: u64) -> Self {
        Self { ids: OwnIds::new(key), read: Mutex::default(), malformed: AtomicU64::new(0) }
    }

    /// Makes an endpoint give out connection IDs that are known here; without this no request counts.
    pub fn configure(&self, config: &mut EndpointConfig) {
        self.ids.configure(config);
    }

    /// A connection to this server is about to begin. Requests from elsewhere do not count.
    pub fn meet(&self, server: SocketAddr) {
        *locked(&self.read) = Read { server: Some(server), response: None };
    }

    /// Stops reading: requests that arrive later do not count. The response to the one that has arrived for the latest
    /// connection, if there is one.
    pub fn stop(&self) -> Option<Response> {
        let mut read = locked(&self.read);
        read.server = None;
        read.response
    }

    /// Options of the server's datagrams that are no request, and requests that are none for this end.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Whether a request may still come.
    pub(super) fn may_come(&self) -> bool {
        let read = locked(&self.read);
        read.server.is_some() && read.response.is_none()
    }

    /// A datagram has come that begins with these bytes, and its header had these options and this TTL.
    pub(super) fn receive(&self, from: SocketAddr, datagram: &[u8], options: &[u8], ttl: Option<u8>) {
        let response = match (IpOption::among(IpVersion::of(from.ip()), options), ttl) {
            (Ok(None), _) => return,
            (Ok(Some(option)), Some(ttl)) => respond(option, ttl),
            (Ok(Some(_)), None) | (Err(_), _) => None,
        };
        let mut read = locked(&self.read);
        let destination = connection_ids(datagram, 0).filter(|_| is_long(datagram)).map(|(destination, _)| destination);
        let counts = read.server == Some(from) && destination.is_some_and(|id| self.ids.contains(id));
        match response.filter(|_| counts) {
            Some(first) => {
                read.response.get_or_insert(first);
            }
            None => {
                self.malformed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use flowstart_core::quick_start::nonce::Nonce;
    use flowstart_core::quick_start::rate::RateCode;
    use noq_proto::{ConnectionIdGenerator, HashedConnectionIdGenerator};

    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    fn rng() -> Substream {
        Substream::new(7, "quick-start", 0)
    }

    fn ask(clients: &Arc<Clients>, address: SocketAddr, id: &[u8]) -> Option<Asked> {
        let config = Config { request: RequestKind::Fixed, rate: Rate::from_mbit(100), ..Config::default() };
        clients.ask(address, id, &config, Known::default(), &mut rng())
    }

    #[test]
    fn a_connection_asks_once_and_reports_what_was_approved() {
        let clients = Arc::new(Clients::default());
        let asked = ask(&clients, address(1), &[7; 8]).unwrap();
        // 40 kbit/s * 2^12 is the first rate at or above 100 Mbit/s.
        assert_eq!(asked.rate(), Rate::from_bits_per_sec(163_840_000));
        assert!(clients.waiting(address(2), &[7; 8]).is_none() && clients.waiting(address(1), &[8; 8]).is_none());
        let waiting = clients.waiting(address(1), &[7; 8]).unwrap();
        let option = waiting.take().unwrap();
        assert_eq!((waiting.take(), waiting.is_some()), (None, false));
        waiting.put_back(option);
        assert_eq!(waiting.take(), Some(option));
        let option = IpOption::parse(IpVersion::V4, &option).unwrap();
        let response = respond(option, DEFAULT_TTL).unwrap();
        assert_eq!(asked.verify(&Response { ttl_diff: response.ttl_diff ^ 1, ..response }), Err(Refusal::TtlDiff));
        assert!(!waiting.is_some(), "nothing was approved, nothing is reported");
        assert_eq!(asked.verify(&response), Ok(asked.rate()));
        let report = waiting.take().unwrap();
        assert!(matches!(IpOption::parse(IpVersion::V4, &report), Ok(IpOption::ApprovedRate { .. })), "{report:?}");
        drop(asked);
        assert!(clients.waiting(address(1), &[7; 8]).is_none() && locked(&clients.asking).is_empty());
    }

    #[test]
    fn the_option_is_that_of_the_packets_to_the_client() {
        let clients = Arc::new(Clients::default());
        for (address, kind) in [("192.0.2.1:9", 25), ("[::ffff:192.0.2.1]:9", 25), ("[2001:db8::1]:9", 0x26)] {
            let address: SocketAddr = address.parse().unwrap();
            let asked = ask(&clients, address, &[7; 8]).unwrap();
            let waiting = clients.waiting(address, &[7; 8]).unwrap();
            let option = waiting.take().unwrap();
            clients.count_sent(address, &option);
            let request = IpOption::parse(IpVersion::of(address.ip()), &option).unwrap();
            asked.verify(&respond(request, DEFAULT_TTL).unwrap()).unwrap();
            let report = waiting.take().unwrap();
            clients.count_sent(address, &report);
            assert_eq!((option[0], report[0]), (kind, kind), "{address}");
        }
        assert_eq!((clients.requests(), clients.reports()), (3, 3));
    }

    #[test]
    fn who_cannot_be_asked_for_is_not_remembered() {
        let clients = Arc::new(Clients::default());
        let small = Known { object: Some(Bytes::new(12_000)), ..Known::default() };
        assert!(
            clients.ask(address(1), &[7; 8], &Config::default(), small, &mut rng()).is_none(),
            "nothing to ask for"
        );
        let asked = clients.ask(address(1), &[7; 8], &Config::default(), Known::default(), &mut rng()).unwrap();
        assert_eq!(asked.rate(), RateCode::MAX.rate(), "as much as there is for an object of unknown size");
        drop(asked);
        assert!(ask(&clients, address(1), &[7; 21]).is_none());
        assert!(locked(&clients.asking).is_empty());
        let first = ask(&clients, address(1), &[7; 8]);
        assert!(ask(&clients, address(1), &[7; 8]).is_none(), "an ID is one connection's");
        assert!(clients.waiting(address(1), &[7; 8]).is_some());
        drop(first);
        assert!(ask(&clients, address(1), &[7; 8]).is_some());
    }

    /// A request with this rate, as bytes.
    fn request(rate: u8) -> Vec<u8> {
        let option = IpOption::RateRequest { rate: RateCode::from_bits(rate), ttl: 9, nonce: Nonce::from_bits(77) };
        option.emit(IpVersion::V4).to_vec()
    }

    /// The first bytes of a packet to the end with this connection ID.
    fn packet(id: &[u8]) -> Vec<u8> {
        [&[0xc3, 0, 0, 0, 1, id.len() as u8], id, &[0, 9, 9, 9]].concat()
    }

    #[test]
    fn of_all_that_may_come_only_the_servers_first_request_to_this_end_counts() {
        let requests = Requests::new(5);
        let mine = HashedConnectionIdGenerator::from_key(5).generate_cid();
        let theirs = HashedConnectionIdGenerator::from_key(6).generate_cid();
        assert!(!requests.may_come());
        requests.meet(address(1));
        let own = request(11);
        let report = IpOption::ApprovedRate { rate: RateCode::MAX, nonce: Nonce::from_bits(1) }.emit(IpVersion::V4);
        let short = [&[0x43][..], &mine, &[9; 40]].concat();
        let malformed: [&[u8]; 8] = [
            &own[..7],
            &[own.clone(), own.clone()].concat(),
            &[&[25, 12][..], &own[2..], &[0; 4]].concat(),
            &[&[25, 9][..], &own[2..]].concat(),
            &[25, 4, 11, 9],
            &[25, 8, 0x3b, 9, 0, 0, 0, 0],
            &[25],
            &report,
        ];
        for options in malformed {
            requests.receive(address(1), &packet(&mine), options, Some(60));
        }
        requests.receive(address(2), &packet(&mine), &own, Some(60));
        requests.receive(address(1), &packet(&theirs), &own, Some(60));
        requests.receive(address(1), &packet(&[7; 255]), &own, Some(60));
        requests.receive(address(1), &short, &own, Some(60));
        requests.receive(address(1), &[], &own, Some(60));
        requests.receive(address(1), &packet(&mine), &own, None);
        let ignored = malformed.len() as u64 + 6;
        assert_eq!((requests.malformed(), requests.may_come()), (ignored, true));
        // What has no option, or another one, is nobody's mistake.
        requests.receive(address(1), &packet(&mine), &[], Some(60));
        requests.receive(address(1), &packet(&mine), &[148, 4, 0, 0], Some(60));
        requests.receive(address(1), &packet(&mine), &[&[1, 1][..], &own].concat(), Some(60));
        requests.receive(address(1), &packet(&mine), &request(15), Some(64));
        assert!(!requests.may_come());
        let response = Response { rate: RateCode::from_bits(11), ttl_diff: 51, nonce: Nonce::from_bits(77) };
        assert_eq!((requests.stop(), requests.malformed()), (Some(response), ignored));
        requests.receive(address(1), &packet(&mine), &request(15), Some(64));
        assert_eq!(requests.stop(), Some(response), "too late");
        requests.meet(address(1));
        assert_eq!(requests.stop(), None, "another connection");
    }
}
