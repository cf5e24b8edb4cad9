//! Servers that think before they answer, and applications that are told from outside when to send.

use flowstart_core::time::{Duration, Timestamp};

use super::{ModelEnds, SenderState};
use crate::network::Network;

/// The launch that waits until the server has thought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinking {
    /// Until when.
    pub(super) until: Timestamp,
    rtt: Option<Duration>,
    unvalidated: Option<u64>,
}

impl ModelEnds {
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

    /// Sets when a server that still thinks answers, or when a sender without congestion control goes on.
    pub(crate) fn answer_at(&mut self, network: &mut Network, at: Timestamp) {
        if let SenderState::Constant(constant) = &mut self.sender {
            constant.resume_at(at);
            network.engine.schedule(self.slots.sender, at);
        } else if let Some(thinking) = &mut self.thinking {
            thinking.until = at;
            self.schedule_application(network);
        }
    }
}
