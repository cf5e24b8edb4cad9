//! Web sessions: users who read pages with a separate connection for each object, as with HTTP/1.0.
//!
//! References: ns-2's generator (`PagePool/WebTraf`), with which Sarolahti, Allman and Floyd made the traffic of
//! "Determining an Appropriate Sending Rate Over an Underutilized Network Path", 2007, section 4. A session has a fixed
//! number of pages, a page a fixed number of objects and one server. Gaps between the requests for the objects of a
//! page are exponential. So are those between pages, which run from the end of a page (the arrival of its last object)
//! to the next. Sizes are [`ObjectSizes`]. Sessions start at any time of the run with the same probability.
//!
//! Each session draws all its random numbers from its own substreams in an order that does not depend on the network.
//! Object number n of a session has the same size and server with all schemes.

use std::sync::Arc;

use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

/// Most packets of an object: the largest `int`, in which ns-2 keeps them.
const MOST_PACKETS: f64 = 2_147_483_647.0;

/// Sizes of objects in packets: Pareto II (Lomax), P(X > x) = (1 + x / scale)^-shape with scale = mean (shape - 1),
/// rounded up to whole packets. With a shape near 1 most of the mean lies in objects that a run never sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectSizes {
    /// Mean of the distribution before rounding, in packets.
    pub mean: f64,
    /// Shape of the tail, above 1.
    pub shape: f64,
}

impl ObjectSizes {
    /// The scale, in packets.
    pub fn scale(&self) -> f64 {
        self.mean * (self.shape - 1.0)
    }

    /// Draws a size in packets by inverting the distribution.
    pub fn draw(&self, rng: &mut Substream) -> u64 {
        let packets = self.scale() * (libm::pow(1.0 - rng.uniform(), -1.0 / self.shape) - 1.0);
        libm::ceil(packets).clamp(1.0, MOST_PACKETS) as u64
    }
}

/// The length of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SessionLength {
    /// This many pages: a user's demand does not depend on the speed.
    Pages(u32),
    /// This much time, with as many pages as fit into it.
    Time(Duration),
}

/// The parameters of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct WebConfig {
    /// The length of each.
    pub length: SessionLength,
    /// Mean gap between two pages.
    pub inter_page: Duration,
    /// Objects of a page.
    pub objects: u32,
    /// Mean gap between two requests of a page.
    pub inter_object: Duration,
    /// Sizes of the objects.
    pub sizes: ObjectSizes,
    /// Payload of the packets that are the unit of sizes; a request has one packet.
    pub payload: Bytes,
    /// Transfers of each session beside its pages, which servers start at any time of the run.
    pub transfers: u32,
    /// Payload of such a transfer.
    pub transfer_size: Bytes,
    /// Share of the connections from servers that use the scheme.
    pub share: f64,
    /// The time in which sessions may start.
    pub run: Duration,
}

/// Something that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Place in the order of the session: transfers first.
    pub number: u32,
    /// The server.
    pub server: u32,
    /// Payload.
    pub size: Bytes,
    /// Whether its connection uses the scheme.
    pub uses_scheme: bool,
}

/// An event of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The client requests an object.
    Request(Object),
    /// A server starts a transfer.
    Transfer(Object),
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    config: Arc<WebConfig>,
    rng: Substream,
    scheme: Substream,
    servers: u32,
    /// Pages that have not begun.
    pages_left: u32,
    /// The latest start of a page.
    ends: Timestamp,
    /// Objects of the current page without a request so far, the next one last, each with the gap before the object
    /// after it.
    page: Vec<(Object, Duration)>,
    /// Number of requested objects that have not arrived.
    outstanding: u32,
    /// The time of the next request for an object or page.
    next_request: Timestamp,
    /// Transfers that have not started, the next one last.
    transfers: Vec<(Timestamp, Object)>,
    numbered: u32,
}

impl Session {
    /// Session number `index` of a run that begins at `origin`, with this many servers to choose from.
    pub fn new(config: Arc<WebConfig>, servers: u32, origin: Timestamp, seed: u64, index: u64) -> Self {
        let mut rng = Substream::new(seed, "web session", index);
        let start = origin + config.run.scale(rng.uniform());
        let (pages_left, ends) = match config.length {
            SessionLength::Pages(pages) => (pages, Timestamp::NEVER),
            SessionLength::Time(time) => (u32::MAX, start + time),
        };
        let mut session = Self {
            rng,
            scheme: Substream::new(seed, "web scheme", index),
            servers,
            pages_left,
            ends,
            page: Vec::with_capacity(config.objects as usize),
            outstanding: 0,
            next_request: start,
            transfers: Vec::new(),
            numbered: 0,
            config,
        };
        session.draw_transfers(origin, Substream::new(seed, "web transfers", index));
        session
    }

    fn draw_transfers(&mut self, origin: Timestamp, mut rng: Substream) {
        let (run, size) = (self.config.run, self.config.transfer_size);
        for _ in 0..self.config.transfers {
            let (start, server) = (origin + run.scale(rng.uniform()), self.any_server(rng.uniform()));
            let object = self.number(server, size);
            self.transfers.push((start, object));
        }
        self.transfers.sort_by_key(|(start, object)| std::cmp::Reverse((*start, object.number)));
    }

    /// A server by a number in 0..1.
    fn any_server(&self, uniform: f64) -> u32 {
        (uniform * f64::from(self.servers)) as u32
    }

    fn number(&mut self, server: u32, size: Bytes) -> Object {
        let number = self.numbered;
        self.numbered += 1;
        Object { number, server, size, uses_scheme: self.scheme.uniform() < self.config.share }
    }

    /// The time of the next event.
    pub fn next_event(&self) -> Timestamp {
        let transfer = self.transfers.last().map_or(Timestamp::NEVER, |(start, _)| *start);
        transfer.min(self.next_request)
    }

    /// The next due event. Call it until there is none.
    pub fn due(&mut self, now: Timestamp) -> Option<Due> {
        if let Some((_, object)) = self.transfers.pop_if(|(start, _)| *start <= now) {
            return Some(Due::Transfer(object));
        }
        if self.next_request > now {
            return None;
        }
        if self.page.is_empty() {
            self.begin_page();
        }
        let Some((object, gap)) = self.page.pop() else {
            self.next_request = Timestamp::NEVER;
            return None;
        };
        self.next_request = if self.page.is_empty() { Timestamp::NEVER } else { now + gap };
        self.outstanding += 1;
        Some(Due::Request(object))
    }

    fn begin_page(&mut self) {
        self.pages_left = self.pages_left.saturating_sub(1);
        let uniform = self.rng.uniform();
        let server = self.any_server(uniform);
        for _ in 0..self.config.objects {
            let size = self.config.payload * self.config.sizes.draw(&mut self.rng);
            let gap = Duration::from_secs(self.rng.exponential(self.config.inter_object.as_secs()));
            let object = self.number(server, size);
            self.page.push((object, gap));
        }
        self.page.reverse();
    }

    /// A requested object has arrived.
    pub fn on_object(&mut self, now: Timestamp) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding > 0 || !self.page.is_empty() || self.pages_left == 0 {
            return;
        }
        let next = now + Duration::from_secs(self.rng.exponential(self.config.inter_page.as_secs()));
        if next < self.ends {
            self.next_request = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(length: SessionLength) -> Arc<WebConfig> {
        Arc::new(WebConfig {
            length,
            inter_page: Duration::from_millis(800),
            objects: 10,
            inter_object: Duration::from_millis(10),
            sizes: ObjectSizes { mean: 400.0, shape: 1.002 },
            payload: Bytes::new(1460),
            transfers: 0,
            transfer_size: Bytes::new(146_000),
            share: 0.5,
            run: Duration::from_secs(150.0),
        })
    }

    /// Runs a session whose objects arrive after `delay`; returns the time of each request.
    fn requests(mut session: Session, delay: Duration) -> Vec<(Timestamp, Object)> {
        let mut asked = Vec::new();
        let mut arrivals: Vec<Timestamp> = Vec::new();
        loop {
            let arrival = arrivals.first().copied().unwrap_or(Timestamp::NEVER);
            let now = arrival.min(session.next_event());
            if now == Timestamp::NEVER {
                return asked;
            }
            if arrival == now {
                arrivals.remove(0);
                session.on_object(now);
            }
            while let Some(due) = session.due(now) {
                let (Due::Request(object) | Due::Transfer(object)) = due;
                if matches!(due, Due::Request(_)) {
                    arrivals.push(now + delay);
                }
                asked.push((now, object));
            }
        }
    }

    #[test]
    fn sizes_follow_the_distribution() {
        // Rounded up, P(size <= n) = 1 - (1 + n / scale)^-shape. 200,000 draws: a standard deviation of 0.0011 at most.
        for (mean, shape) in [(400.0, 1.002), (60.0, 1.002), (12.0, 1.2)] {
            let sizes = ObjectSizes { mean, shape };
            let mut rng = Substream::new(5, "test", 0);
            let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut rng)).collect();
            for packets in [1, 2, 3, 10, 100, 1000, 10_000] {
                let expected = 1.0 - libm::pow(1.0 + packets as f64 / sizes.scale(), -shape);
                let found = drawn.iter().filter(|size| **size <= packets).count() as f64 / 200_000.0;
                assert!((found - expected).abs() < 0.005, "{mean}, {packets} packets: {found}, not {expected}");
            }
            assert!(drawn.iter().all(|size| (1..=2_147_483_647).contains(size)));
        }
        // Scale 0.8 packets: P(one packet) = 1 - (1 + 1 / 0.8)^-1.002 = 0.556.
        assert!((ObjectSizes { mean: 400.0, shape: 1.002 }.scale() - 0.8).abs() < 1e-9);
    }

    #[test]
    fn a_session_has_its_pages_and_gaps() {
        let session = |index| Session::new(config(SessionLength::Pages(30)), 7, Timestamp::ZERO, 1, index);
        let delay = Duration::from_millis(300);
        let (mut within, mut between) = (Vec::new(), Vec::new());
        for index in 0..100 {
            let asked = requests(session(index), delay);
            assert_eq!(asked.len(), 300);
            for page in asked.chunks(10) {
                assert!(page.iter().all(|(_, object)| object.server == page[0].1.server && object.server < 7));
                within.extend(page.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs()));
            }
            let pages: Vec<_> = asked.chunks(10).collect();
            // The next page begins an exponential gap after the arrival of this page's last object.
            between.extend(pages.windows(2).map(|pair| pair[1][0].0.since(pair[0][9].0 + delay).as_secs()));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // 27,000 and 2900 gaps: standard deviations of the means of 0.6 and 1.9 %.
        assert!((mean(&within) / 0.010 - 1.0).abs() < 0.03, "{}", mean(&within));
        assert!((mean(&between) / 0.8 - 1.0).abs() < 0.08, "{}", mean(&between));
    }

    #[test]
    fn what_is_asked_for_does_not_depend_on_the_network() {
        let asked = |millis| {
            let session = Session::new(config(SessionLength::Pages(30)), 7, Timestamp::ZERO, 1, 3);
            requests(session, Duration::from_millis(millis)).into_iter().map(|(_, object)| object).collect::<Vec<_>>()
        };
        let objects = asked(50);
        assert_eq!(objects, asked(5000));
        let with = objects.iter().filter(|object| object.uses_scheme).count();
        // Half of 300: a standard deviation of 8.7.
        assert!((100..200).contains(&with), "{with}");
    }

    #[test]
    fn who_has_time_asks_for_more_when_it_comes_sooner() {
        let count = |millis| {
            let length = SessionLength::Time(Duration::from_secs(45.0));
            let session = Session::new(config(length), 7, Timestamp::ZERO, 1, 0);
            requests(session, Duration::from_millis(millis)).len()
        };
        // Pages of 10 objects; 45 s are 40 to 50 pages of 0.8 + 0.1 + 0.05 s and a third of it with 2 s instead of 0.05
        // s.
        let (soon, late) = (count(50), count(2000));
        assert!((300..700).contains(&soon) && (100..250).contains(&late), "{soon}, {late}");
    }

    #[test]
    fn transfers_start_in_the_run_and_bring_no_page_nearer() {
        let config = Arc::new(WebConfig { transfers: 10, ..(*config(SessionLength::Pages(1))).clone() });
        let asked = requests(Session::new(config, 7, Timestamp::ZERO, 1, 0), Duration::from_millis(300));
        let transfers: Vec<_> = asked.iter().filter(|(_, object)| object.number < 10).collect();
        assert_eq!((asked.len(), transfers.len()), (20, 10));
        assert!(transfers.iter().all(|(start, object)| start.as_secs() < 150.0 && object.size == Bytes::new(146_000)));
    }
}
