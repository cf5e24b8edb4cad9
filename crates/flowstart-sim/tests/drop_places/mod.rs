//! A queue that loses chosen packets.

use flowstart_core::aqm::taildrop::{Config, TailDrop};
use flowstart_core::aqm::{OutgoingLink, QueueContext, QueueDiscipline, QueueState, QueuedPacket};
use flowstart_core::units::Bytes;

/// Drops the data packets with these places in the order of arrival.
#[derive(Clone, Debug)]
struct DropPlaces {
    queue: TailDrop,
    places: Vec<u64>,
    /// Full-size packets that arrived.
    seen: u64,
}

impl QueueDiscipline for DropPlaces {
    fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
        // Handshakes and acknowledgements are smaller than data, which is 1300 bytes and more.
        self.seen += u64::from(packet.size > 1250);
        if packet.size > 1250 && self.places.contains(&self.seen) {
            context.dropped.push(packet);
        } else {
            self.queue.enqueue(packet, context);
        }
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_>) -> Option<QueuedPacket> {
        self.queue.dequeue(context)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn bytes(&self) -> Bytes {
        self.queue.bytes()
    }
}

/// A queue that drops the data packets with these places, counted from 1, and no other.
pub(crate) fn queue(places: &[u64]) -> QueueState {
    let queue = TailDrop::new(Config::default(), OutgoingLink::default());
    QueueState::Custom(Box::new(DropPlaces { queue, places: places.to_vec(), seen: 0 }))
}
