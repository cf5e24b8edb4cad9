//! Proxies that split connections (performance enhancing proxies, RFC 3135, section 2.4).
//!
//! A flow with a proxy in its path is two flows: the server's connection ends at the proxy, which carries the data on
//! in a connection of its own to the client. The proxy passes on what has arrived in order. It opens its connection to
//! the server when the client's request arrives, and launches its own when the server's first byte does. Its memory has
//! no limit, so a slow client never slows the server down.
//!
//! Difference: an integrated proxy may open its connection to the server as soon as the client's SYN arrives. Its data
//! would come one RTT between proxy and server sooner (30 ms in the scenario `pep`).

use flowstart_core::time::Timestamp;

use super::World;
use crate::flow::FlowConfig;
use crate::flow::model::ModelEnds;

/// A flow's side of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The connection with the client; this flow is the one with the server.
    Client { server: u32 },
    /// The connection with the server; this flow is the one with the client.
    Server { client: u32 },
}

impl World {
    /// Puts a proxy into the path of a model flow that has not begun and transfers an object. `flow` becomes its
    /// connection with the client, `server` describes that with the server, of the same object. Its start does not
    /// count. Returns the number of the server's connection.
    pub fn split(&mut self, flow: u32, server: FlowConfig) -> u32 {
        let server = self.add_flow(FlowConfig { start: Timestamp::NEVER, ..server });
        self.flows[server as usize].side = Some(Side::Server { client: flow });
        self.flows[flow as usize].side = Some(Side::Client { server });
        if let Some(ends) = self.model_mut(flow) {
            ends.await_relayed();
        }
        server
    }

    /// A packet of a flow has arrived at one of its ends, of which one is the proxy.
    pub(super) fn pass_on(&mut self, flow: u32, side: Side) {
        match side {
            Side::Client { server } => {
                let is_requested = self.model(flow).is_some_and(ModelEnds::is_requested);
                if let Some(ends) = self.flows[server as usize].ends.model_mut().filter(|_| is_requested) {
                    ends.open_now(&mut self.network);
                }
            }
            Side::Server { client } => {
                let arrived = self.model(flow).map_or(0, ModelEnds::arrived_in_order);
                if let Some(ends) = self.flows[client as usize].ends.model_mut() {
                    ends.relay(&mut self.network, arrived);
                }
            }
        }
    }

    fn model_mut(&mut self, flow: u32) -> Option<&mut ModelEnds> {
        self.flows.get_mut(flow as usize)?.ends.model_mut()
    }
}
