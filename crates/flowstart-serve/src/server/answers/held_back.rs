//! What an answer is not given yet, because its connection or all of them hold as much as they may.

use std::time::Instant;

use tokio::time::timeout;

use super::{ANSWERS, Client, Cut, POLL, SLACK};
use crate::server::memory::{self, Holder};
use crate::server::unacknowledged;

/// Of a connection with this much at most, all may have arrived: fields of each answer are counted with more than they
/// have.
const NOTHING_HELD: u64 = SLACK + ANSWERS as u64 * unacknowledged::FIELDS;

impl Client {
    /// How much of this much may be given to QUIC now. While all connections hold what they may, it is little, and
    /// waits until what this one was given has arrived.
    pub(super) async fn piece_of(&self, bytes: usize) -> Result<usize, Cut> {
        let Some(memory) = &self.server.memory else { return Ok(bytes) };
        let delivered = || self.flow.status().delivered.get();
        let (mut before, mut since) = (delivered(), Instant::now());
        while memory.is_full(self.server.connections.now()) {
            let now = delivered();
            if self.given.of_open(now) <= NOTHING_HELD {
                return Ok(bytes.min(memory::PIECE));
            }
            if now.saturating_sub(before) >= memory::PIECE as u64 {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > self.server.limits.stall {
                return Err(Cut);
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(bytes)
    }

    /// Waits while answers that were cut hold as much as a connection may: what is given now would come on top of that.
    pub(super) async fn until_cuts_are_few(&self) -> Result<(), Cut> {
        let few = async {
            while self.given.cut() > self.server.limits.connection_memory.get() {
                tokio::time::sleep(POLL).await;
            }
        };
        timeout(self.server.limits.stall, few).await.map_err(|_| Cut)
    }
}

impl Holder for Client {
    fn unacknowledged(&self) -> u64 {
        self.given.held(self.flow.status().delivered.get(), self.server.limits.connection_memory.get())
    }
}
