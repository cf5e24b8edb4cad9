//! How many connections may come, and from whom.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use flowstart_sensing::path_store::{Prefix, Prefixes};

/// Prefixes whose rate is watched at a time. One takes about 80 bytes.
const WATCHED: usize = 1 << 16;

/// Limits the rate of new connections per prefix: a token bucket for each, which holds what comes within a second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// New connections per second.
    rate: f64,
    prefixes: Prefixes,
    buckets: Mutex<HashMap<Prefix, Bucket>>,
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

    /// Whether one more connection from `client` may come.
    pub(crate) fn admit(&self, client: IpAddr, now: Instant) -> bool {
        let most = self.rate.max(1.0);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = |bucket: &Bucket| {
            let gained = now.saturating_duration_since(bucket.filled).as_secs_f64() * self.rate;
            (bucket.tokens + gained).min(most)
        };
        if buckets.len() >= WATCHED {
            // A full bucket is as good as none.
            buckets.retain(|_, bucket| tokens(bucket) < most);
        }
        let prefix = self.prefixes.prefix_of(client);
        if buckets.len() >= WATCHED && !buckets.contains_key(&prefix) {
            return false;
        }
        let bucket = buckets.entry(prefix).or_insert(Bucket { tokens: most, filled: now });
        let have = tokens(bucket);
        let admitted = have >= 1.0;
        *bucket = Bucket { tokens: if admitted { have - 1.0 } else { have }, filled: now };
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_prefix_gets_its_rate_and_no_more() {
        let (limit, start) = (RateLimit::new(2.0), Instant::now());
        let from = |client: &str, millis| limit.admit(client.parse().unwrap(), start + Duration::from_millis(millis));
        // Two at once; a third needs half a second.
        assert!(from("192.0.2.1", 0) && from("192.0.2.2", 0) && !from("192.0.2.3", 0));
        assert!(!from("192.0.2.1", 499));
        assert!(from("192.0.2.1", 500) && !from("192.0.2.1", 501));
        // Another prefix has its own.
        assert!(from("198.51.100.1", 501));
        assert!(from("2001:db8::1", 501) && from("2001:db8:0:ffff::1", 501) && !from("2001:db8::2", 501));
    }

    #[test]
    fn a_flood_from_everywhere_does_not_fill_the_memory() {
        let (limit, start) = (RateLimit::new(1.0), Instant::now());
        let client = |number: u32| IpAddr::from((0x0a00_0000 + (number << 8)).to_be_bytes());
        for number in 0..WATCHED as u32 {
            assert!(limit.admit(client(number), start));
        }
        assert!(!limit.admit(client(WATCHED as u32), start));
        assert!(limit.admit(client(WATCHED as u32), start + Duration::from_secs(1)));
        assert_eq!(limit.buckets.lock().unwrap().len(), 1);
    }
}
