//! The player of an adaptive video at the receiver.

use flowstart_core::time::Timestamp;

use super::ModelEnds;
use crate::network::Network;
use crate::observe::record::ObjectTimes;
use crate::traffic::Pattern;
use crate::traffic::video::Player;

/// A player, and when it requests the next chunk.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    pub(super) player: Player,
    pub(super) next_request: Timestamp,
}

impl Viewer {
    pub(super) fn of(pattern: &Pattern) -> Option<Self> {
        let Pattern::Video(video) = pattern else { return None };
        Some(Self { player: Player::new(**video), next_request: Timestamp::NEVER })
    }
}

impl ModelEnds {
    /// The server has the request for the first chunk.
    pub(super) fn expect_first_chunk(&mut self, network: &mut Network) {
        let Some(viewer) = &mut self.viewer else { return };
        let now = network.now();
        let record = network.record(self.id.index);
        let requested = record.request_sent.unwrap_or(now);
        viewer.player.first_request_left(requested);
        record.objects.push(ObjectTimes::new(requested));
    }

    /// Data has arrived: if it completes the chunk on its way, the player may request the next.
    pub(super) fn take_chunk(&mut self, network: &mut Network) {
        let Some(viewer) = &mut self.viewer else { return };
        let now = network.now();
        let record = network.record(self.id.index);
        let Some(chunk) = record.objects.last_mut().filter(|chunk| chunk.arrived.is_none()) else { return };
        if self.receiver.contiguous() < self.source.asked_end() {
            return;
        }
        (chunk.complete, chunk.arrived) = (Some(now), Some(now));
        match viewer.player.on_chunk(now) {
            None => {
                record.completed = Some(now);
                record.playback = Some(Box::new(viewer.player.playback.clone()));
            }
            Some(next) => {
                viewer.next_request = next;
                self.request_due_chunk(network);
                self.schedule_application(network);
            }
        }
    }

    /// Requests the next chunk if its time has come.
    pub(super) fn request_due_chunk(&mut self, network: &mut Network) {
        let now = network.now();
        let Some(viewer) = self.viewer.as_mut().filter(|viewer| viewer.next_request <= now) else { return };
        viewer.next_request = Timestamp::NEVER;
        self.source.ask(viewer.player.request(now));
        network.record(self.id.index).objects.push(ObjectTimes::new(now));
        self.request_next(network);
    }
}
