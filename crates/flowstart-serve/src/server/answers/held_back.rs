//! What an answer is not given yet, because its connection or all of them hold as much as they may.

use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::time::timeout;

use super::{Client, Cut, LEAST_READ, pause};
use crate::server::memory::{self, Holder};

impl Client {
    /// How much of this much may be given to QUIC now. While all connections hold what they may, it is little: of a
    /// connection that holds next to nothing a piece, and of others as much as has arrived since they got the last.
    pub(super) async fn piece_of(&self, bytes: usize) -> Result<usize, Cut> {
        let Some(memory) = &self.server.memory else { return Ok(bytes) };
        let delivered = || self.flow.status().delivered.get();
        let (mut before, mut since) = (delivered(), Instant::now());
        while memory.is_full(self.server.connections.now()) {
            if self.connection.close_reason().is_some() {
                return Err(Cut);
            }
            let (now, piece) = (delivered(), bytes.min(memory::PIECE));
            // What was cut stays in QUIC until its reset is acknowledged.
            let held = self.given.of_open(now) + self.given.cut();
            if held <= self.given.slack() {
                self.paid.store(now, Ordering::Relaxed);
                return Ok(piece);
            }
            // Of several answers one gets what has arrived.
            let has_arrived = |paid: u64| (now.saturating_sub(paid) >= piece as u64).then_some(now);
            if self.paid.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_arrived).is_ok() {
                return Ok(piece);
            }
            // Who holds much reads as much as anybody who lets an answer wait.
            let least = if held > LEAST_READ.get() { LEAST_READ.get() } else { memory::PIECE as u64 };
            if now.saturating_sub(before) >= least {
                (before, since) = (now, Instant::now());
            } else if since.elapsed() > self.server.limits.stall {
                return Err(Cut);
            }
            tokio::time::sleep(pause(since)).await;
        }
        self.paid.store(delivered(), Ordering::Relaxed);
        Ok(bytes)
    }

    /// Waits while answers that were cut hold as much as a connection may: what is given now would come on top of that.
    pub(super) async fn until_cuts_are_few(&self) -> Result<(), Cut> {
        let began = Instant::now();
        let few = async {
            while self.given.cut() > self.server.limits.connection_memory.get() {
                tokio::time::sleep(pause(began)).await;
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
