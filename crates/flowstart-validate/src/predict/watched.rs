//! Predict whose packets are watched on their way.

use std::fmt::Debug;

use flowstart_core::aqm::predict::{Config, Predict};
use flowstart_core::aqm::{
    OutgoingLink, QueueContext, QueueDiscipline, QueueLimit, QueueState, QueueStats, QueuedPacket,
};
use flowstart_core::units::{Bytes, Rate};

/// What watches packets on both sides of Predict.
pub trait Watch: Clone + Debug + Send + Sync + 'static {
    /// A packet arrives.
    fn enqueue(&mut self, predict: &mut Predict, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        predict.enqueue(packet, context);
    }

    /// The link asks for a packet.
    fn dequeue(&mut self, predict: &mut Predict, context: &mut QueueContext<'_>) -> Option<QueuedPacket>;
}

#[derive(Clone, Debug)]
struct Watched<W> {
    predict: Predict,
    watch: W,
}

/// Predict in front of a link of this rate, watched.
pub fn watched(watch: impl Watch, config: Config, rate: Rate) -> QueueState {
    let link = OutgoingLink { limit: QueueLimit::default(), rate: Some(rate) };
    QueueState::Custom(Box::new(Watched { predict: Predict::new(config, link), watch }))
}

impl<W: Watch> QueueDiscipline for Watched<W> {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        self.watch.enqueue(&mut self.predict, packet, context);
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.watch.dequeue(&mut self.predict, context)
    }

    fn len(&self) -> usize {
        self.predict.len()
    }

    fn bytes(&self) -> Bytes {
        self.predict.bytes()
    }

    fn stats(&self) -> QueueStats {
        self.predict.stats()
    }

    fn may_have_timer(&self) -> bool {
        false
    }
}
