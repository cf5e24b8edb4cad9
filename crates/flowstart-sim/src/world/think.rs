//! Servers that think before they answer, and applications that are told from outside when to send.

use flowstart_core::time::{Duration, Timestamp};

use super::{Flow, Sender, World};
use crate::network::Network;

/// The launch that waits until the server has thought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinking {
    /// Until when.
    pub(super) until: Timestamp,
    rtt: Option<Duration>,
    unvalidated: Option<u64>,
}

impl World {
    /// Sets when a flow that still thinks answers, whatever its think time. A flow without congestion control sends from then
    /// on, or is silent until it is told again if `at` is [`Timestamp::NEVER`]; it needs no handshake, so it may never start.
    pub fn answer_at(&mut self, flow: u32, at: Timestamp) {
        let Some(flow) = self.flows.get_mut(flow as usize) else { return };
        if let Sender::Constant { next, .. } = &mut flow.sender {
            *next = at;
            self.network.engine.schedule(flow.sender_slot, at);
        } else if let Some(thinking) = &mut flow.thinking {
            thinking.until = at;
            flow.schedule_application(&mut self.network);
        }
    }
}

impl Flow {
    /// The request is there: the data leaves when the server has thought.
    pub(super) fn think(&mut self, network: &mut Network, rtt: Option<Duration>, unvalidated: Option<u64>) {
        if self.think_time == Duration::ZERO {
            self.launch(network, rtt, unvalidated);
        } else {
            self.thinking = Some(Thinking { until: network.now() + self.think_time, rtt, unvalidated });
        }
    }

    /// The server has thought.
    pub(super) fn stop_thinking(&mut self, network: &mut Network) {
        let now = network.now();
        if let Some(thinking) = self.thinking.take_if(|thinking| thinking.until <= now) {
            self.launch(network, thinking.rtt, thinking.unvalidated);
        }
    }
}
