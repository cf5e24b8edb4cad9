//! Limits of connections, in total and per prefix, and of warnings about misbehaving clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowstart_core::units::Bytes;
use flowstart_sensing::path_store::{Prefix, Prefixes};

use crate::warnings::Warnings;

/// Prefixes whose rate is watched at a time. One takes about 80 bytes.
const WATCHED: usize = 1 << 16;
/// A full table is looked through no more often, for anybody can fill it.
const SWEPT_EVERY: Duration = Duration::from_secs(1);

/// A server's limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one prefix, /24 or /48; `None`: any number.
    pub of_prefix: Option<usize>,
    /// New connections per second from one prefix, /24 or /48; `None`: any number.
    pub rate: Option<f64>,
    /// Concurrent handshakes above which clients have to prove their address (Retry).
    pub handshakes: usize,
    /// The longest that a handshake may take.
    pub handshake: Duration,
    /// Unacknowledged bytes per connection: the largest window that startup can use, and a connection's memory.
    pub connection_memory: Bytes,
    /// What all connections may hold together; `None`: what they need. It counts what is not acknowledged, and 80 KB
    /// for each.
    pub memory: Option<Bytes>,
    /// The longest that a client may read nothing of an answer, or send nothing of a request that it has begun.
    pub stall: Duration,
    /// How long a connection may be open without a request, whatever else the client sends to keep it open.
    pub idle: Duration,
    /// The longest time for answers after the start of a shutdown.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            of_prefix: None,
            rate: None,
            handshakes: 256,
            handshake: Duration::from_secs(10),
            connection_memory: Bytes::new(32_000_000),
            memory: None,
            stall: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            grace: Duration::from_secs(30),
        }
    }
}

/// Limits the rate of new connections per prefix with a token bucket for each, which holds the tokens of a second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// New connections per second.
    rate: f64,
    prefixes: Prefixes,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    of: HashMap<Prefix, Bucket>,
    /// When full ones were last looked for.
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl RateLimit {
    /// This many per second from one prefix: /24 for IPv4, /48 for IPv6.
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, prefixes: Prefixes::default(), buckets: Mutex::default() }
    }

    /// Whether one more connection from `client` may come. Anybody can send packets with an address that is not
    /// `proven`. So these get the upper half of a bucket, and the upper half of the watched prefixes is not for them.
    pub(crate) fn admit(&self, client: IpAddr, is_proven: bool, now: Instant) -> bool {
        let most = self.rate.max(1.0);
        let (watched, least) = if is_proven { (WATCHED, 1.0) } else { (WATCHED / 2, 1.0 + most / 2.0) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = |bucket: &Bucket| {
            let gained = now.saturating_duration_since(bucket.filled).as_secs_f64() * self.rate;
            (bucket.tokens + gained).min(most)
        };
        let was_swept = buckets.swept.is_some_and(|swept| now.saturating_duration_since(swept) < SWEPT_EVERY);
        if buckets.of.len() >= watched && !was_swept {
            // A full bucket is as good as none.
            buckets.of.retain(|_, bucket| tokens(bucket) < most);
            buckets.swept = Some(now);
        }
        let prefix = self.prefixes.prefix_of(client);
        if buckets.of.len() >= watched && !buckets.of.contains_key(&prefix) {
            return false;
        }
        let bucket = buckets.of.entry(prefix).or_insert(Bucket { tokens: most, filled: now });
        let have = tokens(bucket);
        let admitted = have >= least;
        *bucket = Bucket { tokens: if admitted { have - 1.0 } else { have }, filled: now };
        admitted
    }
}

/// Limits the connections of each prefix at a time. Its memory is bounded by the number of all connections.
#[derive(Debug)]
pub(crate) struct PrefixLimit {
    most: usize,
    prefixes: Prefixes,
    open: Mutex<HashMap<Prefix, usize>>,
}

/// A connection that counts for its prefix, until it is dropped.
#[derive(Debug)]
pub(crate) struct OfPrefix {
    limit: Arc<PrefixLimit>,
    prefix: Prefix,
}

impl PrefixLimit {
    /// At most this many from one prefix: /24 for IPv4, /48 for IPv6.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, prefixes: Prefixes::default(), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Prefix, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more connection from `client`; `None` if its prefix has as many as it may. Half of the places are for
    /// addresses that are proven.
    pub(crate) fn enter(self: &Arc<Self>, client: IpAddr, is_proven: bool) -> Option<OfPrefix> {
        let most = if is_proven { self.most } else { self.most / 2 };
        let prefix = self.prefixes.prefix_of(client);
        let mut open = self.open();
        let number = open.get(&prefix).copied().unwrap_or(0);
        (number < most).then(|| {
            open.insert(prefix, number + 1);
            OfPrefix { limit: self.clone(), prefix }
        })
    }
}

impl Drop for OfPrefix {
    fn drop(&mut self) {
        let mut open = self.limit.open();
        if let Some(number) = open.get_mut(&self.prefix) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.prefix);
            }
        }
    }
}

/// Counts current items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Counter);

impl Counter {
    /// How many there are.
    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until the returned guard is dropped.
    pub(crate) fn enter(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Warns once per second, and says how many warnings were left out, because nonsense from clients must not fill the
/// log.
#[derive(Debug)]
pub(crate) struct Seldom {
    warnings: Warnings,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    last: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// Gives what it says to `warnings`.
    pub(crate) fn new(warnings: Warnings) -> Self {
        Self { warnings, said: Mutex::default() }
    }

    /// Says it, or counts it as unsaid.
    pub(crate) fn tell(&self, message: &str) {
        if let Some(line) = self.line(message, Instant::now()) {
            self.warnings.tell(line);
        }
    }

    fn line(&self, message: &str, now: Instant) -> Option<String> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.last.is_some_and(|last| now.saturating_duration_since(last) < Duration::from_secs(1)) {
            said.unsaid += 1;
            return None;
        }
        let unsaid = std::mem::take(&mut said.unsaid);
        said.last = Some(now);
        let more = if unsaid == 0 { String::new() } else { format!(" ({unsaid} more were not told)") };
        Some(format!("{message}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_gets_its_rate_and_no_more() {
        let (limit, start) = (RateLimit::new(2.0), Instant::now());
        let from =
            |client: &str, millis| limit.admit(client.parse().unwrap(), true, start + Duration::from_millis(millis));
        // Two at once; a third needs half a second.
        assert!(from("192.0.2.1", 0) && from("192.0.2.2", 0) && !from("192.0.2.3", 0));
        assert!(!from("192.0.2.1", 499));
        assert!(from("192.0.2.1", 500) && !from("192.0.2.1", 501));
        // Another prefix has its own.
        assert!(from("198.51.100.1", 501));
        assert!(from("2001:db8::1", 501) && from("2001:db8:0:ffff::1", 501) && !from("2001:db8::2", 501));
    }

    #[test]
    fn addresses_that_are_not_proven_leave_half_of_the_rate_to_those_that_are() {
        let (limit, now) = (RateLimit::new(8.0), Instant::now());
        let admitted = |number: u8, is_proven| limit.admit([192, 0, 2, number].into(), is_proven, now);
        // 8 tokens: 4 are for anybody.
        assert_eq!((0..100).filter(|number| admitted(*number, false)).count(), 4);
        assert_eq!((0..100).filter(|number| admitted(*number, true)).count(), 4);
        // One connection per second is not shared.
        assert!(!RateLimit::new(1.0).admit([192, 0, 2, 1].into(), false, now));
        // Nor are all watched prefixes.
        let (limit, prefix) = (RateLimit::new(4.0), |number: u32| IpAddr::from((number << 8).to_be_bytes()));
        let anybody = (0..WATCHED as u32).filter(|number| limit.admit(prefix(*number), false, now)).count();
        assert_eq!(anybody, WATCHED / 2);
        assert!(limit.admit(prefix(WATCHED as u32), true, now));
    }

    #[test]
    fn a_flood_from_everywhere_does_not_fill_the_memory() {
        let (limit, start) = (RateLimit::new(1.0), Instant::now());
        let client = |number: u32| IpAddr::from((0x0a00_0000 + (number << 8)).to_be_bytes());
        for number in 0..WATCHED as u32 {
            assert!(limit.admit(client(number), true, start));
        }
        assert!(!limit.admit(client(WATCHED as u32), true, start));
        assert!(limit.admit(client(WATCHED as u32), true, start + Duration::from_secs(1)));
        assert_eq!(limit.buckets.lock().unwrap().of.len(), 1);
    }

    #[test]
    fn a_prefix_has_its_places_and_no_more() {
        let limit = Arc::new(PrefixLimit::new(2));
        let enter = |client: &str| limit.enter(client.parse().unwrap(), true);
        // Half of them are for anybody.
        let anybody = || limit.enter([192, 0, 2, 7].into(), false);
        let (first, none) = (anybody(), anybody());
        let second = enter("192.0.2.200");
        assert!(none.is_none());
        assert!(first.is_some() && second.is_some() && enter("192.0.2.3").is_none());
        let other = enter("2001:db8::1");
        assert!(other.is_some());
        drop(first);
        let third = enter("192.0.2.3");
        assert!(third.is_some() && enter("192.0.2.4").is_none());
        drop((second, third, other));
        assert!(limit.open().is_empty());
    }

    #[test]
    fn nonsense_is_told_of_once_per_second() {
        let (log, start) = (Seldom::new(Warnings::default()), Instant::now());
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(log.line("a", after(0)).as_deref(), Some("a"));
        assert_eq!((log.line("b", after(1)), log.line("c", after(999))), (None, None));
        assert_eq!(log.line("d", after(1000)).as_deref(), Some("d (2 more were not told)"));
    }
}
