//! Who reads SCONE packets, and what the paths to servers advise.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flowstart_core::scone::endpoint::Advice;
use flowstart_core::scone::wire::RateSignal;
use flowstart_core::time::Timestamp;
use noq_proto::{ConnectionId, EndpointConfig};

use super::datagram::{Beginning, beginning};
use crate::connection_ids::{OwnIds, connection_id};

/// Servers whose advice a client remembers; a new one takes the place of the one that was met first.
const SERVERS: usize = 64;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time since `began`.
pub(super) fn since(began: Instant) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// A client's address and the connection ID that it chose first.
type Key = (SocketAddr, ConnectionId);

/// The connections of a server whose clients read SCONE packets. It holds as many as there are [`Reader`]s.
#[derive(Debug, Default)]
pub struct Clients {
    readers: Mutex<HashMap<Key, usize>>,
    sent: AtomicU64,
    unexpected: AtomicU64,
}

/// A connection whose client gets SCONE packets, if it is admitted before its handshake is answered. When this is gone,
/// a later connection from the same address with the same ID gets none.
#[derive(Debug)]
pub struct Reader {
    clients: Arc<Clients>,
    key: Key,
}

impl Clients {
    /// The client at this address, which has chosen this connection ID, has said that it reads SCONE packets. `None`:
    /// no connection ID is so long.
    pub fn admit(self: &Arc<Self>, address: SocketAddr, initial_source: &[u8]) -> Option<Reader> {
        let key = (address, connection_id(initial_source)?);
        *locked(&self.readers).entry(key).or_default() += 1;
        Some(Reader { clients: Arc::clone(self), key })
    }

    /// SCONE packets that were sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// SCONE packets that clients have sent, who were not told that anybody reads them.
    pub fn unexpected(&self) -> u64 {
        self.unexpected.load(Ordering::Relaxed)
    }

    /// Whether this connection ID at this address is a reader's.
    pub(super) fn reads(&self, address: SocketAddr, destination: &[u8]) -> bool {
        connection_id(destination).is_some_and(|id| locked(&self.readers).contains_key(&(address, id)))
    }

    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// A datagram of a client; how many bytes of it are not for the stack.
    pub(super) fn receive(&self, datagram: &[u8]) -> usize {
        let length = match beginning(datagram) {
            Beginning::Other => return 0,
            Beginning::Signal { length, .. } => Some(length),
            Beginning::Malformed { length } => length,
        };
        self.unexpected.fetch_add(1, Ordering::Relaxed);
        length.unwrap_or(0)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = locked(&self.clients.readers);
        if let Some(count) = readers.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.key);
            }
        }
    }
}

/// A server that a client knows.
#[derive(Debug)]
struct Met {
    server: SocketAddr,
    advice: Advice,
    /// A datagram has come from it.
    heard: bool,
}

/// The servers of a client, and what the paths from them advise.
#[derive(Debug)]
pub struct Servers {
    ids: OwnIds,
    began: Instant,
    met: Mutex<Vec<Met>>,
    /// How many of them nothing has come from.
    silent: AtomicUsize,
    read: AtomicU64,
    malformed: AtomicU64,
}

impl Servers {
    /// None yet. `key` is a random number, by which connection IDs are known that this end has given out.
    pub fn new(key: u64) -> Self {
        Self {
            ids: OwnIds::new(key),
            began: Instant::now(),
            met: Mutex::default(),
            silent: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
        }
    }

    /// Makes an endpoint give out connection IDs that are known here; without this no signal counts.
    pub fn configure(&self, config: &mut EndpointConfig) {
        self.ids.configure(config);
    }

    /// A connection to this server is about to begin. Signals from elsewhere are not remembered.
    pub fn meet(&self, server: SocketAddr) {
        let mut met = locked(&self.met);
        if met.iter().all(|known| known.server != server) {
            if met.len() == SERVERS {
                met.remove(0);
            }
            met.push(Met { server, advice: Advice::default(), heard: false });
            self.silent.store(met.iter().filter(|known| !known.heard).count(), Ordering::Relaxed);
        }
    }

    /// Whether nothing has come from this server, which a connection has begun to.
    pub(super) fn awaits(&self, server: SocketAddr) -> bool {
        self.silent.load(Ordering::Relaxed) > 0
            && locked(&self.met).iter().any(|known| known.server == server && !known.heard)
    }

    fn hear(&self, server: SocketAddr) {
        if self.silent.load(Ordering::Relaxed) > 0 {
            let mut met = locked(&self.met);
            met.iter_mut().filter(|known| known.server == server).for_each(|known| known.heard = true);
            self.silent.store(met.iter().filter(|known| !known.heard).count(), Ordering::Relaxed);
        }
    }

    /// What the path from this server advises now.
    pub fn signal(&self, server: SocketAddr) -> RateSignal {
        let now = since(self.began);
        let mut met = locked(&self.met);
        let known = met.iter_mut().find(|known| known.server == server);
        known.map_or(RateSignal::UNKNOWN, |known| known.advice.signal(now))
    }

    /// SCONE packets that were read, with or without advice.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// SCONE packets that were ignored: damaged, for another connection, or from somebody who was not met.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// A datagram from this address; how many bytes of it are not for the stack.
    pub(super) fn receive(&self, from: SocketAddr, datagram: &[u8]) -> usize {
        self.hear(from);
        let (counts, length) = match beginning(datagram) {
            Beginning::Other => return 0,
            Beginning::Signal { signal, destination, length } => {
                (self.ids.contains(destination) && self.learn(from, signal), Some(length))
            }
            Beginning::Malformed { length } => (false, length),
        };
        let counter = if counts { &self.read } else { &self.malformed };
        counter.fetch_add(1, Ordering::Relaxed);
        length.unwrap_or(0)
    }

    fn learn(&self, from: SocketAddr, signal: RateSignal) -> bool {
        let now = since(self.began);
        let mut met = locked(&self.met);
        let known = met.iter_mut().find(|known| known.server == from);
        known.map(|known| known.advice.on_signal(now, signal)).is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use noq_proto::{ConnectionIdGenerator, HashedConnectionIdGenerator};

    use super::super::datagram::tests::{announced, short};
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn a_reader_is_known_by_address_and_connection_id_until_it_is_gone() {
        let clients = Arc::new(Clients::default());
        let reader = clients.admit(address(1), &[7; 8]).unwrap();
        let again = clients.admit(address(1), &[7; 8]).unwrap();
        assert!(clients.reads(address(1), &[7; 8]));
        assert!(!clients.reads(address(2), &[7; 8]) && !clients.reads(address(1), &[]));
        drop(reader);
        assert!(clients.reads(address(1), &[7; 8]));
        drop(again);
        assert!(!clients.reads(address(1), &[7; 8]) && locked(&clients.readers).is_empty());
        assert!(clients.admit(address(1), &[7; 21]).is_none() && !clients.reads(address(1), &[7; 255]));
    }

    #[test]
    fn only_signals_for_this_end_from_servers_that_were_met_count() {
        let servers = Servers::new(5);
        let mine = HashedConnectionIdGenerator::from_key(5).generate_cid();
        let theirs = HashedConnectionIdGenerator::from_key(6).generate_cid();
        servers.meet(address(1));
        for (from, id, n) in [(address(2), mine, 30), (address(1), theirs, 30), (address(1), mine, 40)] {
            let (datagram, length) = announced(&short(&id), n);
            assert_eq!(servers.receive(from, &datagram), length, "the rest is for the stack in any case");
        }
        assert_eq!((servers.read(), servers.malformed()), (1, 2));
        assert_eq!((servers.signal(address(1)).bits(), servers.signal(address(2))), (40, RateSignal::UNKNOWN));
        let (datagram, _) = announced(&short(&mine), 127);
        servers.receive(address(1), &datagram);
        assert_eq!((servers.read(), servers.signal(address(1)).bits()), (2, 40), "no advice leaves the earlier one");
    }

    #[test]
    fn a_client_remembers_few_servers() {
        let servers = Servers::new(5);
        (0..1000).for_each(|port| servers.meet(address(port)));
        servers.meet(address(999));
        assert_eq!(locked(&servers.met).len(), SERVERS);
    }
}
