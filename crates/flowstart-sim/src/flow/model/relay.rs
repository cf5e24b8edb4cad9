//! Flows whose data come from another flow: the two connections of a proxy ([`crate::world::proxy`]).

use super::ModelEnds;
use super::think::Answer;
use crate::network::Network;

impl ModelEnds {
    /// The sender launches when the first byte has come from elsewhere.
    pub(crate) fn await_relayed(&mut self) {
        self.source.relay(0);
        self.answer = Answer::Relayed;
    }

    /// Opens now, if it has not begun.
    pub(crate) fn open_now(&mut self, network: &mut Network) {
        let now = network.now();
        if !self.started && self.start > now {
            self.start = now;
            network.engine.schedule(self.slots.application, now);
        }
    }

    /// Whether the request has arrived at the sender.
    pub(crate) fn is_requested(&self) -> bool {
        self.thinking.is_some() || self.handshake.is_launched()
    }

    /// Bytes that have arrived in order.
    pub(crate) fn arrived_in_order(&self) -> u64 {
        self.receiver.contiguous()
    }

    /// Whether `[start, end)` has arrived, in order or not.
    pub(crate) fn holds(&self, start: u64, end: u64) -> bool {
        self.receiver.holds(start, end)
    }

    /// This much has come from elsewhere: sends it on.
    pub(crate) fn relay(&mut self, network: &mut Network, arrived: u64) {
        if self.source.relayed() == Some(arrived) {
            return;
        }
        self.source.relay(arrived);
        if self.thinking.is_some() {
            self.answer_at(network, network.now());
        } else {
            self.pump(network);
        }
    }
}
