//! Web sessions in a simulation: hosts, and a connection for each object.
//!
//! A client sends each request on a separate connection of one packet, as ns-2's clients do. When the packet arrives,
//! the server opens the connection of the object. In ns-2 it does so half an RTT later, when the client has the
//! acknowledgement.

use std::sync::Arc;

use flowstart_core::time::Duration;

use crate::engine::Slot;
use crate::flow::FlowConfig;
use crate::network::Owner;
use crate::observe::record::FlowRecord;
use crate::topology::{Chain, Host};
use crate::traffic::Pattern;
use crate::traffic::web::{Due, Object, Session, WebConfig};
use crate::world::World;

/// Hosts whose data flows in one direction.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Servers, of which each page has one.
    pub servers: Vec<Host>,
    /// Clients, one for each session.
    pub clients: Vec<Host>,
}

/// Web sessions over a chain.
#[derive(Clone, Debug)]
pub struct WebTraffic {
    /// The parameters of sessions.
    pub config: WebConfig,
    /// The routers between servers and clients.
    pub chain: Chain,
    /// Servers at the first router and clients at the last.
    pub forward: Side,
    /// Servers at the last router and clients at the first.
    pub reverse: Side,
    /// Connections that use the scheme. Sensing's knowledge is that of hosts without their own delay.
    pub with_scheme: FlowConfig,
    /// All other connections, including those of the clients' requests.
    pub without: FlowConfig,
}

/// A connection from a server.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Session, those of the forward direction first.
    pub session: u32,
    /// Whether its data flows forward.
    pub forward: bool,
    /// Its data.
    pub object: Object,
    /// Round-trip propagation delay of the hosts' own links.
    pub access_rtt: Duration,
    /// Its record so far.
    pub record: FlowRecord,
}

/// The role of a flow in a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    session: u32,
    object: Object,
    kind: RoleKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoleKind {
    /// It requests the object.
    Request,
    /// It carries a requested object.
    Response,
    /// It carries an object without a request.
    Transfer,
}

/// The running sessions.
#[derive(Clone, Debug)]
pub(super) struct RunningWeb {
    traffic: WebTraffic,
    sessions: Vec<(Session, Slot)>,
    /// Connections whose places were reused.
    connections: Vec<Connection>,
}

impl RunningWeb {
    /// The side of a session, and its place there.
    fn side(&self, session: u32) -> (&Side, usize, bool) {
        let (session, forward) = (session as usize, self.traffic.forward.clients.len());
        match session.checked_sub(forward) {
            None => (&self.traffic.forward, session, true),
            Some(place) => (&self.traffic.reverse, place, false),
        }
    }

    /// Client and server, and their routers.
    fn ends(&self, role: Role) -> ([Host; 2], [usize; 2]) {
        let (side, place, forward) = self.side(role.session);
        let last = self.traffic.chain.last_router();
        let routers = if forward { [last, 0] } else { [0, last] };
        ([side.clients[place], side.servers[role.object.server as usize]], routers)
    }

    fn connection(&self, role: Role, record: FlowRecord) -> Option<Connection> {
        let ([client, server], _) = self.ends(role);
        let (_, _, forward) = self.side(role.session);
        let Role { session, object, kind } = role;
        let access_rtt = (client.delay + server.delay) * 2;
        (kind != RoleKind::Request).then_some(Connection { session, forward, object, access_rtt, record })
    }

    /// Keeps the record of a connection.
    pub(super) fn keep(&mut self, role: Role, record: FlowRecord) {
        let connection = self.connection(role, record);
        self.connections.extend(connection);
    }

    fn flow(&self, role: Role) -> FlowConfig {
        let ([client, server], [at_client, at_server]) = self.ends(role);
        let chain = &self.traffic.chain;
        if role.kind == RoleKind::Request {
            let route = chain.route(client, server, at_client, at_server);
            let pattern = Pattern::Transfer(self.traffic.config.payload);
            return FlowConfig { route, pattern, ..self.traffic.without.clone() };
        }
        let route = chain.route(server, client, at_server, at_client);
        let template = if role.object.uses_scheme { &self.traffic.with_scheme } else { &self.traffic.without };
        let mut config = FlowConfig { route, pattern: Pattern::Transfer(role.object.size), ..template.clone() };
        if let Some(saved) = &mut config.sources.knowledge_mut().saved {
            saved.rtt += (client.delay + server.delay) * 2;
        }
        config
    }
}

impl World {
    /// Runs web sessions, which begin now or later. A world has only one kind of them.
    pub fn add_web_traffic(&mut self, traffic: WebTraffic) {
        let config = Arc::new(traffic.config.clone());
        let mut sessions = Vec::new();
        for side in [&traffic.forward, &traffic.reverse] {
            for _ in &side.clients {
                let index = sessions.len() as u32;
                let servers = side.servers.len() as u32;
                let session = Session::new(Arc::clone(&config), servers, self.now(), self.seed, u64::from(index));
                let slot = self.network.engine.slot(Owner::Session(index));
                self.network.engine.schedule(slot, session.next_event());
                sessions.push((session, slot));
            }
        }
        self.web = Some(Box::new(RunningWeb { traffic, sessions, connections: Vec::new() }));
    }

    /// Takes the connections from servers so far, including active ones, in the order of sessions and their objects.
    pub fn take_connections(&mut self) -> Vec<Connection> {
        let Some(mut web) = self.web.take() else { return Vec::new() };
        let mut connections = std::mem::take(&mut web.connections);
        for (flow, record) in self.flows.iter().zip(&self.network.records) {
            connections.extend(flow.role.and_then(|role| web.connection(role, record.clone())));
        }
        connections.sort_by_key(|connection| (connection.session, connection.object.number));
        self.web = Some(web);
        connections
    }

    /// An event of a session is due.
    pub(super) fn on_session(&mut self, session: u32) {
        let now = self.now();
        while let Some(web) = &mut self.web {
            let Some(due) = web.sessions[session as usize].0.due(now) else { break };
            let (object, kind) = match due {
                Due::Request(object) => (object, RoleKind::Request),
                Due::Transfer(object) => (object, RoleKind::Transfer),
            };
            self.start_web_flow(Role { session, object, kind });
        }
        self.schedule_session(session);
    }

    /// The flow of this role has delivered everything.
    pub(super) fn on_web_completion(&mut self, role: Role) {
        let now = self.now();
        match role.kind {
            RoleKind::Request => self.start_web_flow(Role { kind: RoleKind::Response, ..role }),
            RoleKind::Transfer => {}
            RoleKind::Response => {
                if let Some(web) = &mut self.web {
                    web.sessions[role.session as usize].0.on_object(now);
                }
                self.schedule_session(role.session);
            }
        }
    }

    fn start_web_flow(&mut self, role: Role) {
        let Some(web) = &self.web else { return };
        let config = FlowConfig { start: self.now(), ..web.flow(role) };
        self.create_flow(config, Some(role));
    }

    fn schedule_session(&mut self, session: u32) {
        if let Some(web) = &self.web {
            let (session, slot) = &web.sessions[session as usize];
            self.network.engine.schedule(*slot, session.next_event());
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::QueueLimit;
    use flowstart_core::time::Timestamp;
    use flowstart_core::units::{Bytes, Rate};

    use super::*;
    use crate::link::LinkConfig;
    use crate::network::Route;
    use crate::topology::Access;
    use crate::traffic::web::{ObjectSizes, SessionLength};
    use crate::transport::profile::Profile;

    /// Sessions at 10 Mbit/s and 80 ms for 60 s.
    fn world(sessions: usize, reverse: usize) -> World {
        let mut world = World::new(3);
        let back = LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(20));
        let limit = QueueLimit { packets: Some(150), bytes: None, counts_in_service: true };
        let both = (LinkConfig { limit, ..back.clone() }, LinkConfig { limit, ..back });
        let chain = Chain::new(&mut world, &[both.clone(), both]);
        let mut hosts = |count: usize| -> Vec<Host> {
            let access = Access { rate: Rate::from_mbit(1000), delay: Duration::from_millis(5), jitter: None };
            (0..count).map(|_| Chain::attach(&mut world, access)).collect()
        };
        let forward = Side { servers: hosts(sessions), clients: hosts(sessions) };
        let reverse = Side { servers: hosts(reverse), clients: hosts(reverse) };
        let template =
            FlowConfig::new(Arc::new(Profile::ns2_sack1()), Pattern::Transfer(Bytes::new(1)), Route::default());
        let config = WebConfig {
            length: SessionLength::Pages(5),
            inter_page: Duration::from_millis(800),
            objects: 10,
            inter_object: Duration::from_millis(10),
            sizes: ObjectSizes { mean: 400.0, shape: 1.002 },
            payload: Bytes::new(1460),
            transfers: 1,
            transfer_size: Bytes::new(146_000),
            share: 1.0,
            run: Duration::from_secs(20.0),
        };
        let (with_scheme, without) = (template.clone(), template);
        world.add_web_traffic(WebTraffic { config, chain, forward, reverse, with_scheme, without });
        world
    }

    #[test]
    fn every_object_comes_once_over_a_connection_of_its_own() {
        let mut world = world(4, 2);
        world.run_until(Timestamp::ZERO + Duration::from_secs(300.0));
        let connections = world.take_connections();
        // 6 sessions of 50 objects and a transfer each.
        assert_eq!(connections.len(), 6 * 51);
        for (place, connection) in connections.iter().enumerate() {
            assert_eq!((connection.session, connection.object.number), (place as u32 / 51, place as u32 % 51));
            assert_eq!(connection.forward, connection.session < 4);
            assert_eq!(connection.record.delivered, connection.object.size.get());
            assert!(connection.record.completed.is_some());
            assert_eq!(connection.access_rtt, Duration::from_millis(20));
        }
        // Two flows an object would be 612 places; those of complete flows are reused.
        assert!(world.flow_count() < 150, "{}", world.flow_count());
    }

    #[test]
    fn an_object_takes_its_handshake_and_the_way() {
        let mut world = world(1, 0);
        world.run_until(Timestamp::ZERO + Duration::from_secs(100.0));
        let small = |connection: &&Connection| connection.object.size == Bytes::new(1460);
        let connections = world.take_connections();
        let record = &connections.iter().find(small).unwrap().record;
        let fct = record.completed.unwrap().since(record.started.unwrap()).as_millis_f64();
        // 100 ms for SYN and SYN-ACK, 50 ms for the data, and packets of 1500 bytes at 10 Mbit/s: 1.2 ms on each of two
        // links.
        assert!((150.0..175.0).contains(&fct), "{fct}");
    }
}
