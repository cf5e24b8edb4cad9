//! The choice of a connection's startup scheme.
//!
//! In this order: plain slow start while the kill switch is on, or while launches lose too much, for the client's
//! prefix or for all of them; the scheme of the client's network; an alternative, for its share of the connections; the
//! listener's scheme.
//!
//! A client can lose its packets on purpose. So among the launches that count for everybody, each prefix has a tenth at
//! most, all launches weigh the same, whatever they send, and none counts for more than twice the limit. More than half
//! of the launches have to lose too much, and a prefix alone falls back alone.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowstart_core::units::Bytes;
use flowstart_sensing::path_store::{Prefix, Prefixes};
use ipnet::IpNet;

use crate::scheme::{Scheme, label, of_label};

/// A prefix has at most one in this many of the launches that count for everybody.
const PREFIXES: usize = 10;
/// As much may count of one launch, however low the limit is: with a limit of zero any loss is too much.
const MOST_OF_ONE: f64 = 0.01;
/// Most launches that count for a prefix alone.
const OWN: usize = 100;
/// Prefixes whose own launches are watched at a time.
const WATCHED: usize = 4096;

/// When launches are given up for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FallBack {
    /// Share of what a launch sent that may be lost, in the mean over launches. One that loses more than twice as much
    /// counts as that.
    pub limit: f64,
    /// How many of the latest launches count. With fewer there is no verdict, and none for everybody with fewer than
    /// ten.
    pub launches: usize,
    /// For how long connections start plainly then.
    pub recovery: Duration,
}

impl Default for FallBack {
    /// A tenth of 100 launches; then five minutes.
    fn default() -> Self {
        Self { limit: 0.1, launches: 100, recovery: Duration::from_secs(300) }
    }
}

/// The schemes from which a server chooses.
#[derive(Debug)]
pub struct Schemes {
    /// The default.
    pub listener: Scheme,
    /// Those of clients in a network. The longest network counts.
    pub networks: Vec<(IpNet, Scheme)>,
    /// Those of random shares of the connections. Shares beyond a total of 1 are never drawn.
    pub shares: Vec<(f64, Scheme)>,
    /// The scheme while launches are given up: [`Scheme::plain`].
    pub plain: Scheme,
    /// While this file exists, or cannot be looked for, connections get `plain`.
    pub kill_file: Option<PathBuf>,
    /// When launches are given up for their losses.
    pub fall_back: FallBack,
}

impl Schemes {
    /// `listener` for everyone, and `plain` when launches lose too much.
    pub fn new(listener: Scheme, plain: Scheme) -> Self {
        let (networks, shares, kill_file) = (Vec::new(), Vec::new(), None);
        Self { listener, networks, shares, plain, kill_file, fall_back: FallBack::default() }
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Scheme> {
        let networks = self.networks.iter().map(|(_, scheme)| scheme);
        let shares = self.shares.iter().map(|(_, scheme)| scheme);
        [&self.listener, &self.plain].into_iter().chain(networks).chain(shares)
    }
}

/// The recent losses of launches.
#[derive(Debug)]
struct Watch {
    rule: FallBack,
    /// To whom each launch went, and which share of it was lost.
    recent: VecDeque<(Prefix, f64)>,
    /// How many of them may be of one prefix.
    of_prefix: usize,
    plain_until: Option<Instant>,
}

impl Watch {
    fn new(rule: FallBack, of_prefix: usize) -> Self {
        Self { rule, recent: VecDeque::new(), of_prefix, plain_until: None }
    }

    /// A launch to `prefix` sent and lost this much. Returns whether launches are given up from now on.
    fn record(&mut self, prefix: Prefix, sent: Bytes, lost: Bytes, now: Instant) -> bool {
        if self.is_plain(now) {
            return false;
        }
        let own = || self.recent.iter().enumerate().filter(|(_, one)| one.0 == prefix);
        if own().count() >= self.of_prefix
            && let Some((oldest, _)) = own().next()
        {
            self.recent.remove(oldest);
        }
        if self.recent.len() >= self.rule.launches {
            self.recent.pop_front();
        }
        let share = lost.get() as f64 / sent.get().max(1) as f64;
        self.recent.push_back((prefix, share));
        let most = (self.rule.limit * 2.0).max(MOST_OF_ONE);
        let mean = self.recent.iter().map(|one| one.1.min(most)).sum::<f64>() / self.recent.len() as f64;
        if self.recent.len() < self.rule.launches || mean <= self.rule.limit {
            return false;
        }
        // Afterwards the schemes get another chance, with a clean record.
        self.recent.clear();
        self.plain_until = Some(now + self.rule.recovery);
        true
    }

    fn is_plain(&self, now: Instant) -> bool {
        self.plain_until.is_some_and(|until| now < until)
    }
}

/// For whom launches are given up for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GivenUp {
    /// Everybody.
    ForAll,
    /// The clients of a prefix.
    For(Prefix),
}

/// Chooses schemes.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The longest network comes first.
    schemes: Schemes,
    killed: AtomicBool,
    watch: Mutex<Watch>,
    /// Each prefix by itself.
    own: Mutex<HashMap<Prefix, Watch>>,
    prefixes: Prefixes,
}

impl Policy {
    /// A policy whose kill switch is off. While the kill file exists the switch counts as on.
    pub(crate) fn new(mut schemes: Schemes) -> Self {
        schemes.networks.sort_by_key(|(network, _)| std::cmp::Reverse(network.prefix_len()));
        // With fewer launches, fewer prefixes would decide for everybody.
        let all = FallBack { launches: schemes.fall_back.launches.max(PREFIXES), ..schemes.fall_back };
        let watch = Mutex::new(Watch::new(all, all.launches / PREFIXES));
        let (own, prefixes) = (Mutex::default(), Prefixes::default());
        Self { schemes, killed: AtomicBool::new(false), watch, own, prefixes }
    }

    /// The scheme while launches are given up.
    pub(crate) fn plain(&self) -> &Scheme {
        &self.schemes.plain
    }

    /// The scheme of a connection from `client`, and its name in metrics and logs; `draw` is a random number from 0 to
    /// below 1.
    pub(crate) fn choose(&self, client: IpAddr, draw: f64, now: Instant) -> (&Scheme, String) {
        let (scheme, is_drawn) = self.chosen(client, draw, now);
        (scheme, label(scheme.name(), is_drawn))
    }

    /// The scheme of a connection, and whether it was drawn.
    fn chosen(&self, client: IpAddr, draw: f64, now: Instant) -> (&Scheme, bool) {
        let prefix = self.prefixes.prefix_of(client);
        let is_plain = || self.own().get(&prefix).is_some_and(|own| own.is_plain(now));
        if self.is_killed() || self.is_fallen_back(now) || is_plain() {
            return (self.plain(), false);
        }
        let client = client.to_canonical();
        if let Some((_, scheme)) = self.schemes.networks.iter().find(|(network, _)| network.contains(&client)) {
            return (scheme, false);
        }
        let mut from = 0.0;
        for (share, scheme) in &self.schemes.shares {
            if (from..from + share).contains(&draw) {
                return (scheme, true);
            }
            from += share;
        }
        (&self.schemes.listener, true)
    }

    /// A launch of the scheme with this name in metrics to `client` sent and lost this much. Says for whom launches are
    /// given up because of it.
    pub(crate) fn record(
        &self,
        client: IpAddr,
        scheme: &str,
        sent: Bytes,
        lost: Bytes,
        now: Instant,
    ) -> Option<GivenUp> {
        // Plain slow start is the alternative, so its losses do not count against launches.
        if of_label(scheme).0 == self.plain().name() {
            return None;
        }
        let (prefix, rule) = (self.prefixes.prefix_of(client), self.schemes.fall_back);
        let rule = FallBack { launches: rule.launches.min(OWN), ..rule };
        let mut own = self.own();
        if own.len() >= WATCHED && !own.contains_key(&prefix) {
            // Those that fell back stay; the others begin anew.
            own.retain(|_, watch| watch.is_plain(now));
        }
        let has_place = own.len() < WATCHED || own.contains_key(&prefix);
        let is_prefix_plain = has_place
            && own.entry(prefix).or_insert_with(|| Watch::new(rule, rule.launches)).record(prefix, sent, lost, now);
        drop(own);
        match (self.watch().record(prefix, sent, lost, now), is_prefix_plain) {
            (true, _) => Some(GivenUp::ForAll),
            (false, true) => Some(GivenUp::For(prefix)),
            (false, false) => None,
        }
    }

    /// Number of prefixes to which launches are given up for now because of their own losses.
    pub(crate) fn fallen_back_prefixes(&self, now: Instant) -> usize {
        self.own().values().filter(|own| own.is_plain(now)).count()
    }

    fn own(&self) -> MutexGuard<'_, HashMap<Prefix, Watch>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether launches are given up for now because of their losses.
    pub(crate) fn is_fallen_back(&self, now: Instant) -> bool {
        self.watch().is_plain(now)
    }

    /// Whether the kill switch is on.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
            || self.schemes.kill_file.as_ref().is_some_and(|file| file.try_exists().unwrap_or(true))
    }

    /// Turns the kill switch on or off. A file that turns it on stays in force.
    pub(crate) fn kill(&self, on: bool) {
        self.killed.store(on, Ordering::Relaxed);
    }

    /// Toggles the kill switch; returns its new state.
    pub(crate) fn toggle(&self) -> bool {
        !self.killed.fetch_xor(true, Ordering::Relaxed)
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::avoidance::{AvoidanceConfig, cubic};
    use flowstart_core::startup::{StartupConfig, slow_start};

    use super::*;

    fn scheme(name: &str) -> Scheme {
        let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
        Scheme::new(name, StartupConfig::SlowStart(slow_start::Config::default()), avoidance).unwrap()
    }

    fn policy(kill_file: Option<PathBuf>) -> Policy {
        let network = |text: &str| text.parse::<IpNet>().unwrap();
        let networks = vec![(network("192.0.2.0/24"), scheme("wide")), (network("192.0.2.128/25"), scheme("narrow"))];
        let shares = vec![(0.1, scheme("a")), (0.2, scheme("b"))];
        let fall_back = FallBack { limit: 0.05, launches: 10, recovery: Duration::from_secs(60) };
        let own = Schemes::new(scheme("listener"), scheme("plain"));
        Policy::new(Schemes { networks, shares, kill_file, fall_back, ..own })
    }

    #[test]
    fn the_longest_network_wins_and_then_the_draw() {
        let (policy, now) = (policy(None), Instant::now());
        let name = |client: &str, draw| policy.choose(client.parse().unwrap(), draw, now).1;
        assert_eq!(name("192.0.2.200", 0.0), "narrow (not drawn)");
        assert_eq!(name("::ffff:192.0.2.1", 0.0), "wide (not drawn)");
        // a has 0 to 0.1, b 0.1 to 0.3, the listener the rest.
        let drawn = [0.0, 0.099, 0.1, 0.29, 0.31, 0.999].map(|draw| name("198.51.100.1", draw));
        assert_eq!(drawn, ["a", "a", "b", "b", "listener", "listener"]);
    }

    #[test]
    fn the_kill_switch_goes_before_everything() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kill");
        let (policy, now) = (policy(Some(file.clone())), Instant::now());
        let name = || policy.choose("192.0.2.200".parse().unwrap(), 0.0, now).1;
        assert!(policy.toggle());
        assert_eq!(name(), "plain (not drawn)");
        policy.kill(false);
        assert_eq!(name(), "narrow (not drawn)");
        std::fs::write(&file, "").unwrap();
        assert_eq!(name(), "plain (not drawn)");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(name(), "narrow (not drawn)");
    }

    #[test]
    fn launches_that_lose_too_much_are_given_up_for_a_while() {
        let (policy, start) = (policy(None), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let clients = std::cell::Cell::new(0_u8);
        let lost = |bytes, seconds| {
            // Each from another prefix.
            clients.set(clients.get() + 1);
            let client = IpAddr::from([10, 0, clients.get(), 1]);
            policy.record(client, "a", Bytes::new(100_000), Bytes::new(bytes), after(seconds)) == Some(GivenUp::ForAll)
        };
        // 5 % each are within, and one that loses 6 % instead of them is not.
        assert!((0..10).all(|_| !lost(5_000, 0)));
        assert!(!policy.is_fallen_back(after(0)));
        assert!(lost(6_000, 1));
        assert!(policy.is_fallen_back(after(60)) && !policy.is_fallen_back(after(61)));
        // Earlier launches do not count after it: ten more are needed.
        assert!(!lost(90_000, 30) && (0..9).all(|_| !lost(90_000, 61)));
        assert!(lost(90_000, 61));
        let client = IpAddr::from([10, 0, 0, 1]);
        for plain in ["plain", "plain (not drawn)"] {
            assert_eq!(policy.record(client, plain, Bytes::new(1), Bytes::new(1), after(200)), None);
        }
    }

    #[test]
    fn a_prefix_that_loses_alone_falls_back_alone() {
        let (policy, now) = (policy(None), Instant::now());
        let client = |third| IpAddr::from([10, 0, third, 1]);
        let record = |third| policy.record(client(third), "a", Bytes::new(100_000), Bytes::new(90_000), now);
        let lost = |third| record(third) == Some(GivenUp::ForAll);
        let own = Prefixes::default().prefix_of(client(1));
        let told: Vec<GivenUp> = (0..50).filter_map(|_| record(1)).collect();
        assert!(!told.is_empty() && told.iter().all(|one| *one == GivenUp::For(own)), "for itself alone: {told:?}");
        assert_eq!(policy.fallen_back_prefixes(now), 1);
        let name = |third| policy.choose(client(third), 0.0, now).1;
        assert_eq!((&*name(1), &*name(2)), ("plain (not drawn)", "a"));
        // Ten prefixes decide.
        assert!((2..10).all(|third| !lost(third)) && lost(10));
        assert_eq!(name(2), "plain (not drawn)");
    }

    #[test]
    fn large_launches_weigh_no_more_than_small_ones() {
        let policy = Policy::new(Schemes::new(scheme("listener"), scheme("plain")));
        let now = Instant::now();
        let record = |third, sent, lost| {
            let client = IpAddr::from([10, 0, third, 1]);
            policy.record(client, "a", Bytes::new(sent), Bytes::new(lost), now) == Some(GivenUp::ForAll)
        };
        // One prefix has a tenth of the launches, and nine others lose nothing.
        assert!((0..90).all(|number| !record(number % 9, 40_000, 0)));
        assert!((0..20).all(|_| !record(100, 2_000_000, 1_200_000)), "one prefix decides for all");
        // Almost the limit, while five prefixes lose everything; with six it is more.
        assert!((0..39).all(|number| !record(101 + number % 4, 2_000_000, 2_000_000)));
        assert!((0..10).any(|_| record(105, 2_000_000, 2_000_000)));
    }

    #[test]
    fn one_launch_may_decide_for_its_prefix_and_never_for_all() {
        let fall_back = FallBack { limit: 0.05, launches: 1, recovery: Duration::from_secs(60) };
        let policy = Policy::new(Schemes { fall_back, ..Schemes::new(scheme("listener"), scheme("plain")) });
        let (now, client) = (Instant::now(), |third| IpAddr::from([10, 0, third, 1]));
        for third in 1..10 {
            let told = policy.record(client(third), "a", Bytes::new(100_000), Bytes::new(90_000), now);
            assert!(matches!(told, Some(GivenUp::For(_))), "{told:?}");
            assert_eq!(policy.choose(client(third), 0.0, now).1, "plain (not drawn)");
        }
        assert_eq!(policy.choose(client(10), 0.0, now).1, "listener");
        let last = policy.record(client(10), "a", Bytes::new(100_000), Bytes::new(90_000), now);
        assert_eq!(last, Some(GivenUp::ForAll));
    }

    #[test]
    fn a_prefix_that_is_watched_stays_watched_when_no_other_can_be() {
        let fall_back = FallBack { limit: 0.05, launches: 1, recovery: Duration::from_secs(60) };
        let policy = Policy::new(Schemes { fall_back, ..Schemes::new(scheme("listener"), scheme("plain")) });
        let now = Instant::now();
        let record = |place: usize, lost| {
            let client = IpAddr::from([10, (place / 256) as u8, (place % 256) as u8, 1]);
            policy.record(client, "a", Bytes::new(100_000), Bytes::new(lost), now)
        };
        let last = WATCHED - 1;
        assert!((0..last).all(|place| record(place, 90_000).is_some()));
        assert_eq!(record(last, 0), None);
        assert!(matches!(record(last, 90_000), Some(GivenUp::For(_))));
        assert_eq!(policy.fallen_back_prefixes(now), WATCHED);
        assert_eq!(record(WATCHED, 90_000), None, "there is no place for it");
    }
}
