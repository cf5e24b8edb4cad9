//! The QUIC stack noq as a node of the simulator: measured flows whose two ends are real, in simulated time.
//!
//! Each flow has its own client and server. The client opens and requests a number of bytes. The server's congestion
//! controller is that of `flowstart-quic`. Handshake, encryption, loss detection, acknowledgements and flow control are
//! noq's; links, queues and competitors are the simulator's. Contents of packets are read before encryption, so records
//! and traces contain the same as those of model flows.
//!
//! The node adds Quick-Start's options to datagrams and reads them, like a host's IP layer, without the stack
//! (`transfer/quick_start.rs`).
//!
//! Three differences from the model flow follow from the stack. Pacing is noq's token bucket. RTT samples are an
//! acknowledgement late (see `flowstart_quic::noq`). The receive window grows with the bytes that the client has read,
//! and the client reads arrived bytes in any order. Sizes and times of packets are the same in all runs with the same
//! seed; their encrypted bytes differ.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::path::Hint;
use flowstart_core::sources::{Verdict, name};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_quic::Flow;
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::sharing::SharedWindow;
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::world::World;

mod end;
mod frames;
mod transfer;
mod under_way;
mod watch;

use crate::ends::Hosts;
use crate::ends::capture::Capture;
use crate::spec::stack::StackOptions;
use end::{Setup, instant};
use transfer::Transfer;
use under_way::UnderWay;

/// Measured flows with real ends. The ends themselves are in the world.
#[derive(Debug)]
pub struct QuicFlows {
    flows: Vec<Arc<Flow>>,
    /// Number of the first flow; the others follow it.
    first: u32,
    capture: Option<Arc<Mutex<Capture>>>,
    options: StackOptions,
    /// The age of the clients' hints.
    hint_age: Duration,
    /// The windows that flows share, by the number of their ensemble.
    windows: BTreeMap<u32, Arc<SharedWindow>>,
}

impl QuicFlows {
    /// No flows yet; flows added to `world` will have these options, and their clients' hints this age. A capture gets
    /// the datagrams that data senders see, and the secrets that decrypt them.
    pub fn new(world: &World, options: &StackOptions, hint_age: Duration, capture: Option<Capture>) -> Self {
        let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
        Self {
            flows: Vec::new(),
            first: world.flow_count() as u32,
            capture,
            options: options.clone(),
            hint_age,
            windows: BTreeMap::new(),
        }
    }

    /// Adds a flow whose client sends these bytes as its hint.
    fn add_with_hint(
        &mut self,
        world: &mut World,
        config: FlowConfig,
        size: Bytes,
        seed: u64,
        hint: Option<Vec<u8>>,
    ) -> u32 {
        let secrets = self.capture().map(|capture| capture.secrets.clone());
        let shared = config.ensemble.map(|ensemble| {
            let window = self.windows.entry(ensemble).or_insert_with(|| SharedWindow::new(instant(world.now())));
            Arc::clone(window)
        });
        let setup = Setup { place: self.flows.len() as u16, seed, secrets, options: &self.options, hint, shared };
        let under_way = UnderWay::new(self.capture.clone());
        let (route, start) = (config.route.clone(), config.start);
        let mut flow = None;
        let number =
            world.add_ends(&route, start, |place| match Transfer::new(place, config, size, &setup, under_way) {
                Ok(transfer) => {
                    flow = Some(Arc::clone(&transfer.flow));
                    Box::new(transfer)
                }
                Err(error) => panic!("the ends of a flow cannot be set up: {error}"),
            });
        self.flows.extend(flow);
        number
    }

    /// The link between a flow's server and its controller.
    pub fn flow(&self, flow: u32) -> Option<&Arc<Flow>> {
        self.flows.get(flow.checked_sub(self.first)? as usize)
    }

    /// Makes a flow fail as if its stack had closed the connection.
    #[cfg(test)]
    pub(crate) fn give_up(world: &mut World, flow: u32) {
        if let Some(transfer) = world.ends_mut::<Transfer>(flow) {
            transfer.failed = true;
        }
    }
}

impl Hosts for QuicFlows {
    /// All flows must be added before any other flow of the world. The hint in `config` is the client's, which sends it
    /// to the server.
    ///
    /// # Panics
    ///
    /// If noq cannot run the scheme; plans are checked for that.
    fn add(&mut self, world: &mut World, mut config: FlowConfig, size: Bytes, seed: u64) -> u32 {
        let hint = config.sources.knowledge_mut().hint.take();
        // Until the server has heard of it.
        config.sources.lack(name::HINT, Verdict::Missing, "");
        let hint = hint.map(|Hint { bandwidth, technology }| BandwidthHint {
            rate: bandwidth,
            technology,
            age: self.hint_age,
        });
        let value = hint.and_then(|hint| hint.in_started_minutes().encode().ok());
        self.add_with_hint(world, config, size, seed, value)
    }

    fn capture(&self) -> Option<MutexGuard<'_, Capture>> {
        Some(self.capture.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::QueueLimit;
    use flowstart_core::startup::StartupConfig;
    use flowstart_core::time::Timestamp;
    use flowstart_core::units::Rate;
    use flowstart_sim::link::LinkConfig;
    use flowstart_sim::network::Route;
    use flowstart_sim::observe::record::FlowRecord;
    use flowstart_sim::observe::trace::Event;
    use flowstart_sim::traffic::Pattern;
    use flowstart_sim::transport::profile::Profile;

    use super::transfer::AT_ONCE;
    use super::*;

    const RATE: Rate = Rate::from_mbit(50);

    /// A world with a path of 50 Mbit/s and 50 ms, and the configuration of a flow over it.
    fn stage(startup: &StartupConfig, window: u64, size: u64) -> (World, FlowConfig) {
        let mut world = World::new(1);
        // The queue has room for 50 ms.
        let limit = QueueLimit { bytes: Some(Bytes::new(312_500)), ..QueueLimit::default() };
        let way = LinkConfig { limit, ..LinkConfig::new(RATE, Duration::from_millis(25)) };
        let route = Route { forward: vec![world.add_link(&way)], back: vec![world.add_link(&way)] };
        let profile = Profile { receive_window: Bytes::new(window), ..Profile::noq() };
        let mut config = FlowConfig::new(Arc::new(profile), Pattern::Transfer(Bytes::new(size)), route);
        config.startup = startup.clone();
        (world, config)
    }

    fn finish(world: &mut World, flow: u32) -> FlowRecord {
        assert_eq!(world.run_flow(flow, Timestamp::ZERO + Duration::from_millis(60_000)), Ok(()));
        world.record(flow).clone()
    }

    fn record(startup: &StartupConfig, window: u64, size: u64, at_once: u64) -> FlowRecord {
        let (mut world, mut config) = stage(startup, window, size);
        config.sources.knowledge_mut().hint = Some(Hint { bandwidth: RATE, technology: Default::default() });
        let mut quic = QuicFlows::new(&world, &StackOptions::default(), Duration::ZERO, None);
        let flow = quic.add(&mut world, config, Bytes::new(size), 1);
        world.ends_mut::<Transfer>(flow).unwrap().at_once = at_once;
        finish(&mut world, flow)
    }

    /// The trace of a Blitzstart transfer whose server knows `known` and whose client sends `told`.
    fn hinted(known: Option<Rate>, told: Option<Vec<u8>>, policy: &str) -> (FlowRecord, Vec<Event>) {
        let startup = StartupConfig::Blitzstart(Default::default());
        let (mut world, mut config) = stage(&startup, 1 << 24, 2_000_000);
        config.sources.knowledge_mut().hint = known.map(|bandwidth| Hint { bandwidth, technology: Default::default() });
        config.sources.knowledge_mut().interface_rate = Some(RATE);
        world.network.trace = Some(Default::default());
        let options = StackOptions { hint_policy: policy.parse().unwrap(), ..StackOptions::default() };
        let mut quic = QuicFlows::new(&world, &options, Duration::ZERO, None);
        let flow = quic.add_with_hint(&mut world, config, Bytes::new(2_000_000), 1, told);
        let record = finish(&mut world, flow);
        let entries = world.network.trace.unwrap().entries;
        (record, entries.into_iter().map(|entry| entry.event).filter(|e| matches!(e, Event::Hint { .. })).collect())
    }

    fn encoded(rate: Rate) -> Option<Vec<u8>> {
        let hint = BandwidthHint { rate, technology: Default::default(), age: Duration::ZERO };
        Some(hint.encode().unwrap())
    }

    #[test]
    fn a_hint_of_the_client_is_worth_as_much_as_one_that_the_server_knows() {
        let (known, _) = hinted(Some(RATE), None, "accept");
        let (sent, seen) = hinted(None, encoded(RATE), "accept");
        assert_eq!(sent, known);
        assert_eq!(seen, [Event::Hint { told: Some(RATE), used: Some(RATE) }]);
        assert!(sent.completed < hinted(None, None, "accept").0.completed);
    }

    #[test]
    fn the_servers_policy_bounds_what_a_client_hints() {
        let half = Rate::from_mbit(25);
        let (known, _) = hinted(Some(half), None, "accept");
        // Half of the server's own link of 50 Mbit/s.
        for policy in ["cap:rate=25mbit", "cap:link=0.5"] {
            let (sent, seen) = hinted(None, encoded(Rate::from_mbit(1000)), policy);
            let window = |record: &FlowRecord| record.exit.as_ref().map(|exit| (exit.reason, exit.cwnd));
            assert_eq!(window(&sent), window(&known), "{policy}");
            // The launch leaves at the cap, where the host would pace it at 1.25 times the rate, over 40 of 50 ms.
            let [later, soon] = [&sent, &known].map(|record| record.completed.unwrap());
            assert!(later > soon && later.since(soon) < Duration::from_millis(10), "{policy}: {later:?} {soon:?}");
            assert_eq!(seen, [Event::Hint { told: Some(Rate::from_mbit(1000)), used: Some(half) }]);
        }
        let (ignored, seen) = hinted(None, encoded(RATE), "ignore");
        assert_eq!(ignored, hinted(None, None, "accept").0);
        assert_eq!(seen, [Event::Hint { told: Some(RATE), used: None }]);
    }

    #[test]
    fn a_hint_that_cannot_be_read_is_none() {
        let (without, nothing) = hinted(None, None, "accept");
        assert_eq!(nothing, []);
        let cut_off = encoded(RATE).map(|value| value[..3].to_vec());
        // A later version, and a rate of 2^62 - 1.
        let others = [vec![9, 9, 9, 9], vec![1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0], Vec::new()];
        for told in cut_off.into_iter().chain(others) {
            let (record, seen) = hinted(None, Some(told.clone()), "accept");
            assert_eq!(record, without, "{told:?}");
            assert_eq!(seen, [Event::Hint { told: None, used: None }], "{told:?}");
        }
    }

    #[test]
    fn datagrams_that_are_asked_for_at_once_are_those_of_single_calls() {
        let mut lost = 0;
        for startup in StartupConfig::defaults() {
            if !["slow-start", "blitzstart", "jump-start"].contains(&startup.name()) {
                continue;
            }
            // Two sizes, so that the last packets differ, and a receive window that stops the sender repeatedly.
            for (window, size) in [(1 << 24, 3_000_000), (1 << 24, 3_000_020), (100_000, 1_000_000)] {
                let single = record(&startup, window, size, 1);
                assert_eq!(record(&startup, window, size, AT_ONCE), single, "{} {window} {size}", startup.name());
                lost += single.dropped;
            }
        }
        assert!(lost > 0, "no case with loss");
    }
}
