//! A queue discipline that is not shown the truth about flows: their handshakes, or which packet is whose.

use std::collections::VecDeque;

use flowstart_core::aqm::{QueueContext, QueueDiscipline, QueueState, QueueStats, QueuedPacket};
use flowstart_core::time::Timestamp;
use flowstart_core::units::Bytes;

use super::PACKET;

/// What is hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disguise {
    /// Packets that are no full ones pass without being shown, in front of all others.
    pub handshakes: bool,
    /// How flows are named.
    pub names: Names,
}

/// How flows are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// By their numbers.
    #[default]
    Own,
    /// All alike.
    One,
    /// From flow `first` on as the flow `count` before.
    Again {
        /// The first one.
        first: u32,
        /// Flows with a name of their own from there on.
        count: u32,
    },
}

impl Names {
    fn of(self, flow: u32) -> u32 {
        match self {
            Self::Again { first, count } if flow >= first && count > 0 => first + (flow - first) % count,
            Self::Own | Self::Again { .. } => flow,
            Self::One => 0,
        }
    }
}

/// The queue discipline behind a disguise.
#[derive(Clone, Debug)]
pub struct Disguised {
    inner: QueueState,
    disguise: Disguise,
    hidden: VecDeque<QueuedPacket>,
    hidden_bytes: Bytes,
    /// The flow of each packet by its handle.
    flows: Vec<u32>,
    state: State,
}

/// What the discipline behind it would say.
#[derive(Clone, Copy, Debug)]
struct State {
    len: usize,
    bytes: Bytes,
    stats: QueueStats,
    may_have_timer: bool,
    next_timer: Timestamp,
}

impl State {
    fn of(queue: &mut QueueState) -> Self {
        let queue = queue.as_dyn();
        Self {
            len: queue.len(),
            bytes: queue.bytes(),
            stats: queue.stats(),
            may_have_timer: queue.may_have_timer(),
            next_timer: queue.next_timer(),
        }
    }
}

impl Disguised {
    /// Shows `inner` what `disguise` leaves.
    pub fn new(mut inner: QueueState, disguise: Disguise) -> Self {
        let state = State::of(&mut inner);
        Self { inner, disguise, hidden: VecDeque::new(), hidden_bytes: Bytes::ZERO, flows: Vec::new(), state }
    }

    /// With its own flow again.
    fn reveal(&self, packet: QueuedPacket) -> QueuedPacket {
        QueuedPacket { flow: self.flows.get(packet.handle as usize).copied().unwrap_or(packet.flow), ..packet }
    }

    /// Asks the discipline behind it, and takes the disguise off what it drops.
    fn ask<T>(
        &mut self,
        context: &mut QueueContext<'_>,
        ask: impl FnOnce(&mut dyn QueueDiscipline, &mut QueueContext<'_>) -> T,
    ) -> T {
        let before = context.dropped.len();
        let answer = ask(self.inner.as_dyn(), context);
        for packet in context.dropped.iter_mut().skip(before) {
            *packet = self.reveal(*packet);
        }
        self.state = State::of(&mut self.inner);
        answer
    }
}

impl QueueDiscipline for Disguised {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        let place = packet.handle as usize;
        if self.flows.len() <= place {
            self.flows.resize(place + 1, 0);
        }
        self.flows[place] = packet.flow;
        if self.disguise.handshakes && u64::from(packet.size) < PACKET.get() {
            self.hidden_bytes += Bytes::new(u64::from(packet.size));
            self.hidden.push_back(packet);
            return;
        }
        let shown = QueuedPacket { flow: self.disguise.names.of(packet.flow), ..packet };
        self.ask(context, |queue, context| queue.enqueue(shown, context));
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        if let Some(packet) = self.hidden.pop_front() {
            self.hidden_bytes = self.hidden_bytes.saturating_sub(Bytes::new(u64::from(packet.size)));
            return Some(packet);
        }
        let packet = self.ask(context, |queue, context| queue.dequeue(context));
        packet.map(|packet| self.reveal(packet))
    }

    fn len(&self) -> usize {
        self.hidden.len() + self.state.len
    }

    fn bytes(&self) -> Bytes {
        self.hidden_bytes + self.state.bytes
    }

    fn stats(&self) -> QueueStats {
        self.state.stats
    }

    fn may_have_timer(&self) -> bool {
        self.state.may_have_timer
    }

    fn next_timer(&self) -> Timestamp {
        self.state.next_timer
    }

    fn on_timer(&mut self, context: &mut QueueContext<'_>) {
        self.ask(context, |queue, context| queue.on_timer(context));
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::{EcnCodepoint, OutgoingLink, QueueConfig, predict};
    use flowstart_core::rng::Substream;

    use super::*;

    #[test]
    fn packets_keep_their_flows_and_handshakes_pass_first() {
        let inner = QueueConfig::Predict(predict::Config::default()).build(OutgoingLink::default());
        let mut queue = Disguised::new(inner, Disguise { handshakes: true, names: Names::One });
        let (mut rng, mut dropped) = (Substream::new(0, "queue", 0), Vec::new());
        let now = Timestamp::ZERO;
        let mut context = QueueContext { now, in_service: None, rng: &mut rng, dropped: &mut dropped };
        for (handle, size) in [(0, 1500), (1, 1500), (2, 40)] {
            let packet = QueuedPacket { handle, size, flow: 7 + handle, ecn: EcnCodepoint::NotEct, enqueued_at: now };
            queue.enqueue(packet, &mut context);
        }
        assert_eq!((queue.len(), queue.bytes()), (3, Bytes::new(3040)));
        let left: Vec<u32> = std::iter::from_fn(|| queue.dequeue(&mut context)).map(|packet| packet.flow).collect();
        assert_eq!(left, [9, 7, 8]);
        assert_eq!((queue.len(), queue.bytes()), (0, Bytes::ZERO));
    }

    #[test]
    fn flows_come_again_under_their_old_names() {
        let names = Names::Again { first: 2, count: 3 };
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 8].map(|flow| names.of(flow)), [0, 1, 2, 3, 4, 2, 3, 2]);
        assert_eq!(Names::One.of(8), 0);
    }
}
