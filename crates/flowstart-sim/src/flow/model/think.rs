//! Servers that think before they answer, and applications whose send times are set from outside.

use flowstart_core::time::{Duration, Timestamp};

use super::{ModelEnds, SenderState};
use crate::network::Network;

/// What the data waits for when the request has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// The server's think time.
    After(Duration),
    /// The first byte from elsewhere.
    Relayed,
}

/// The launch that waits for the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinking {
    /// When it comes; never while that is not known.
    pub(super) until: Timestamp,
    rtt: Option<Duration>,
    unvalidated: Option<u64>,
}

impl ModelEnds {
    /// The request has arrived: the data leaves with the answer.
    pub(super) fn think(&mut self, network: &mut Network, rtt: Option<Duration>, unvalidated: Option<u64>) {
        let until = match self.answer {
            Answer::After(Duration::ZERO) => return self.launch(network, rtt, unvalidated),
            Answer::After(time) => network.now() + time,
            Answer::Relayed => Timestamp::NEVER,
        };
        self.thinking = Some(Thinking { until, rtt, unvalidated });
    }

    /// The think time is over.
    pub(super) fn stop_thinking(&mut self, network: &mut Network) {
        let now = network.now();
        if let Some(thinking) = self.thinking.take_if(|thinking| thinking.until <= now) {
            self.launch(network, thinking.rtt, thinking.unvalidated);
        }
    }

    /// Sets the time when a thinking server answers, or when a sender without congestion control continues.
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
