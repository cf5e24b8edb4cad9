//! The QUIC stack noq as a node of the simulator: measured flows whose two ends are real, in simulated time.
//!
//! Each flow has a client and a server of its own. The client opens, and requests a number of bytes; the server's
//! congestion controller is the one of `flowstart-quic`. Handshake, encryption, loss detection, acknowledgements and flow
//! control are noq's; links, queues and competitors are the simulator's. What packets carry is read before they are
//! encrypted, so records and traces say the same as those of model flows.
//!
//! Quick-Start's options are added to datagrams and read from them by the node, as a host's IP layer does, without the stack
//! (`transfer/quick_start.rs`).
//!
//! Differences from the model flow that follow from the stack: pacing is noq's token bucket and
//! RTT samples are an acknowledgement late (see `flowstart_quic::noq`), and the receive window is renewed as noq does it: by what
//! the client has read, and it reads what has arrived, in any order.
//! Packets have the sizes and times of every other run with the same seed; their encrypted bytes do not repeat.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use flowstart_core::path::Hint;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_quic::Flow;
use flowstart_quic::hint::BandwidthHint;
use flowstart_sim::network::Route;
use flowstart_sim::world::external::ExternalEvent;
use flowstart_sim::world::{FlowConfig, Stopped, World};

mod end;
mod frames;
mod transfer;
mod under_way;
mod watch;

use crate::ends::capture::Capture;
use crate::spec::stack::StackOptions;
use end::{CLIENT, SERVER, Setup, instant};
use transfer::Transfer;
use under_way::UnderWay;

/// Measured flows with real ends.
pub struct QuicFlows {
    transfers: Vec<Transfer>,
    /// Number of the first flow; the others follow it.
    first: u32,
    under_way: UnderWay,
    options: StackOptions,
}

impl fmt::Debug for QuicFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicFlows").field("flows", &self.transfers.len()).finish_non_exhaustive()
    }
}

impl QuicFlows {
    /// No flows yet; what is added to `world` has these options.
    pub fn new(world: &World, options: &StackOptions) -> Self {
        Self {
            transfers: Vec::new(),
            first: world.flow_count() as u32,
            under_way: UnderWay::default(),
            options: options.clone(),
        }
    }

    /// Keeps what the data senders see, and the secrets that open it. Begin before the flows are added.
    pub fn start_capture(&mut self, capture: Capture) {
        self.under_way.capture = Some(capture);
    }

    /// What the data senders have seen, where it is kept.
    pub fn capture(&self) -> Option<&Capture> {
        self.under_way.capture.as_ref()
    }

    /// Adds a flow that transfers `size` bytes. All of them must be added before another flow of the world is. The hint that
    /// `config` knows is the client's: it sends it to the server.
    ///
    /// # Panics
    ///
    /// When noq cannot run the scheme; plans are checked for that.
    pub fn add(&mut self, world: &mut World, mut config: FlowConfig, size: Bytes, seed: u64) -> u32 {
        let hint = config.knowledge.hint.take();
        let hint = hint.map(|Hint { bandwidth, technology }| BandwidthHint {
            rate: bandwidth,
            technology,
            age: Duration::ZERO,
        });
        let value = hint.and_then(|hint| hint.encode().ok());
        self.add_with_hint(world, config, size, seed, value)
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
        let number = world.add_external_flow(config.profile.clone(), &config.route, config.start);
        let secrets = self.under_way.capture.as_ref().map(|capture| capture.secrets.clone());
        let setup = Setup { place: self.transfers.len() as u16, seed, secrets, options: &self.options, hint };
        match Transfer::new(number, config, size, &setup) {
            Ok(transfer) => self.transfers.push(transfer),
            Err(error) => panic!("the ends of a flow cannot be set up: {error}"),
        }
        number
    }

    /// The link between a flow's server and its controller.
    pub fn flow(&self, flow: u32) -> Option<&Arc<Flow>> {
        Some(&self.transfers.get(flow.checked_sub(self.first)? as usize)?.flow)
    }

    /// What noq counts at a flow's server; `None` before the connection stands.
    pub fn server_stats(&mut self, flow: u32) -> Option<noq_proto::ConnectionStats> {
        let transfer = self.transfers.get_mut(flow.checked_sub(self.first)? as usize)?;
        Some(transfer.ends[SERVER].connection.as_mut()?.1.stats())
    }

    /// A flow's client has another address from now on, and its packets take `route`.
    pub fn move_client(&mut self, world: &mut World, flow: u32, route: &Route) {
        let Some(transfer) = self.transfers.get_mut(flow.saturating_sub(self.first) as usize) else { return };
        world.change_external_route(flow, route);
        transfer.at_once = 1;
        transfer.forget_advice();
        let IpAddr::V4(host) = transfer.ends[CLIENT].address.ip() else { return };
        let [a, b, c, d] = host.octets();
        transfer.ends[CLIENT].address.set_ip(IpAddr::V4(Ipv4Addr::new(a, b, c + 1, d)));
        if let Some((_, connection)) = &mut transfer.ends[CLIENT].connection {
            connection.handle_network_change(None, instant(world.now()));
        }
        transfer.pump(world, &mut self.under_way, CLIENT);
    }

    /// Runs everything that happens until `time`; the clock then stands at `time`.
    pub fn run_until(&mut self, world: &mut World, time: Timestamp) {
        while let Ok(event) = world.run_external(time) {
            self.on_event(world, event);
        }
        world.network.engine.advance(time);
    }

    /// Runs while `condition` holds, looking after every event; an error when `limit` passes first.
    pub fn run_while(
        &mut self,
        world: &mut World,
        limit: Timestamp,
        condition: impl Fn(&World) -> bool,
    ) -> Result<(), Stopped> {
        while condition(world) {
            let event = world.run_external(limit)?;
            self.on_event(world, event);
        }
        Ok(())
    }

    /// Runs until `flow` is complete or who observes the world wants to hear no more; an error when `limit` passes
    /// first, or nothing is left to happen.
    pub fn run_flow(&mut self, world: &mut World, flow: u32, limit: Timestamp) -> Result<(), Stopped> {
        while world.record(flow).completed.is_none() && !world.network.is_observation_done() {
            let transfer = self.transfers.get(flow.saturating_sub(self.first) as usize);
            if transfer.is_none_or(|transfer| transfer.failed) {
                return Err(Stopped::Idle);
            }
            let event = world.run_external(limit)?;
            self.on_event(world, event);
        }
        Ok(())
    }

    /// Lets a flow fail as if its stack had closed the connection.
    #[cfg(test)]
    pub(crate) fn give_up(&mut self, flow: u32) {
        let place = flow.saturating_sub(self.first) as usize;
        self.transfers[place].failed = true;
    }

    fn on_event(&mut self, world: &mut World, event: ExternalEvent) {
        let place = |flow: u32| flow.saturating_sub(self.first) as usize;
        match event {
            ExternalEvent::Lost { tag } => drop(self.under_way.release(tag)),
            ExternalEvent::Timer { flow } => {
                if let Some(transfer) = self.transfers.get_mut(place(flow)) {
                    transfer.on_timer(world, &mut self.under_way);
                }
            }
            ExternalEvent::Arrived { flow, direction, tag, ecn, signal, quick_start, links } => {
                if let Some(transfer) = self.transfers.get_mut(place(flow)) {
                    transfer.hear_option(direction, &quick_start, links);
                    transfer.deliver(world, &mut self.under_way, direction, tag, ecn, signal);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::QueueLimit;
    use flowstart_core::startup::StartupConfig;
    use flowstart_core::units::Rate;
    use flowstart_sim::link::LinkConfig;
    use flowstart_sim::observe::record::FlowRecord;
    use flowstart_sim::observe::trace::Event;
    use flowstart_sim::traffic::Pattern;
    use flowstart_sim::transport::profile::Profile;

    use super::transfer::AT_ONCE;
    use super::*;

    const RATE: Rate = Rate::from_mbit(50);

    /// A world with a path of 50 Mbit/s and 50 ms, and what a flow over it is told.
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

    fn finish(world: &mut World, quic: &mut QuicFlows, flow: u32) -> FlowRecord {
        assert_eq!(quic.run_flow(world, flow, Timestamp::ZERO + Duration::from_millis(60_000)), Ok(()));
        world.record(flow).clone()
    }

    fn record(startup: &StartupConfig, window: u64, size: u64, at_once: u64) -> FlowRecord {
        let (mut world, mut config) = stage(startup, window, size);
        config.knowledge.hint = Some(Hint { bandwidth: RATE, technology: Default::default() });
        let mut quic = QuicFlows::new(&world, &StackOptions::default());
        let flow = quic.add(&mut world, config, Bytes::new(size), 1);
        quic.transfers[0].at_once = at_once;
        finish(&mut world, &mut quic, flow)
    }

    /// A Blitzstart transfer whose server knows `known` and whose client sends `told`, and what the trace says of it.
    fn hinted(known: Option<Rate>, told: Option<Vec<u8>>, policy: &str) -> (FlowRecord, Vec<Event>) {
        let startup = StartupConfig::Blitzstart(Default::default());
        let (mut world, mut config) = stage(&startup, 1 << 24, 2_000_000);
        config.knowledge.hint = known.map(|bandwidth| Hint { bandwidth, technology: Default::default() });
        config.knowledge.interface_rate = Some(RATE);
        world.network.trace = Some(Default::default());
        let options = StackOptions { hint_policy: policy.parse().unwrap(), ..StackOptions::default() };
        let mut quic = QuicFlows::new(&world, &options);
        let flow = quic.add_with_hint(&mut world, config, Bytes::new(2_000_000), 1, told);
        let record = finish(&mut world, &mut quic, flow);
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
            assert_eq!(sent, known, "{policy}");
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
            // Two sizes, so that the last packets differ, and a receive window that stops the sender again and again.
            for (window, size) in [(1 << 24, 3_000_000), (1 << 24, 3_000_020), (100_000, 1_000_000)] {
                let single = record(&startup, window, size, 1);
                assert_eq!(record(&startup, window, size, AT_ONCE), single, "{} {window} {size}", startup.name());
                lost += single.dropped;
            }
        }
        assert!(lost > 0, "no case with loss");
    }
}
