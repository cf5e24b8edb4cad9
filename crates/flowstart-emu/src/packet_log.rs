//! An entry for each packet that a router took: with it, whoever has the link's configuration can check every
//! departure.
//!
//! The router puts entries into blocks, and another thread takes whole ones. It never waits for that thread: if no
//! block is free, entries are left out and counted.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use flowstart_core::time::Timestamp;

/// Entries of a block.
const BLOCK: usize = 1024;
/// Blocks: a second at 1 Gbit/s, and 4 MB.
const BLOCKS: usize = 80;

/// A packet that was put on a link and is gone from it. Times count from the begin of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether it went to clients.
    pub is_down: bool,
    /// Its bytes on the link.
    pub size: u32,
    /// When the router took it.
    pub arrived: Timestamp,
    /// When it has crossed the link, as the link says, and when the system had taken it; `None`: it was dropped or
    /// lost.
    pub crossed: Option<(Timestamp, Timestamp)>,
}

/// The router's side.
#[derive(Debug)]
pub(crate) struct PacketLog {
    block: Vec<Entry>,
    full: SyncSender<Vec<Entry>>,
    empty: Receiver<Vec<Entry>>,
    missed: u64,
}

/// The side of whoever writes entries down.
#[derive(Debug)]
pub struct Entries {
    full: Receiver<Vec<Entry>>,
    empty: SyncSender<Vec<Entry>>,
}

/// Both sides.
pub(crate) fn packet_log() -> (PacketLog, Entries) {
    let (full, take_full) = sync_channel(BLOCKS);
    let (empty, take_empty) = sync_channel(BLOCKS);
    for _ in 1..BLOCKS {
        // There is room for all of them.
        let _ = empty.try_send(Vec::with_capacity(BLOCK));
    }
    let log = PacketLog { block: Vec::with_capacity(BLOCK), full, empty: take_empty, missed: 0 };
    (log, Entries { full: take_full, empty })
}

impl PacketLog {
    /// A packet has left or will not.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.block.push(entry);
        if self.block.len() == BLOCK {
            self.hand_over();
        }
    }

    /// Gives the block away, or begins it again if nobody takes it.
    fn hand_over(&mut self) {
        let Ok(empty) = self.empty.try_recv() else {
            self.missed += self.block.len() as u64;
            self.block.clear();
            return;
        };
        match self.full.try_send(std::mem::replace(&mut self.block, empty)) {
            Ok(()) => {}
            Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) => self.missed += block.len() as u64,
        }
    }

    /// Entries that were left out.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    /// The last block goes, too; how many entries were left out.
    pub(crate) fn end(mut self) -> u64 {
        let rest = std::mem::take(&mut self.block);
        self.missed += self.full.send(rest).map_or_else(|unsent| unsent.0.len() as u64, |()| 0);
        self.missed
    }
}

impl Entries {
    /// Shows all entries until the router ends, or until one is refused.
    ///
    /// # Errors
    ///
    /// That of `write`.
    pub fn write<E>(self, mut write: impl FnMut(&Entry) -> Result<(), E>) -> Result<(), E> {
        while let Ok(mut block) = self.full.recv() {
            block.iter().try_for_each(&mut write)?;
            block.clear();
            // If the router is gone it needs none.
            let _ = self.empty.try_send(block);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> Entry {
        Entry { is_down: true, size: number, arrived: Timestamp::ZERO, crossed: None }
    }

    #[test]
    fn all_entries_arrive_in_their_order() {
        let (mut log, entries) = packet_log();
        let writing = std::thread::spawn(move || {
            let mut sizes = Vec::new();
            entries.write(|entry| {
                sizes.push(entry.size);
                Ok::<_, ()>(())
            })?;
            Ok::<_, ()>(sizes)
        });
        for number in 0..5000 {
            log.push(entry(number));
        }
        assert_eq!(log.end(), 0);
        assert!(writing.join().unwrap().unwrap().into_iter().eq(0..5000));
    }

    #[test]
    fn nobody_waits_for_who_does_not_take_them() {
        let (mut log, entries) = packet_log();
        let pushed = (BLOCKS + 10) * BLOCK;
        for number in 0..pushed {
            log.push(entry(number as u32));
        }
        let missed = log.missed();
        assert!(missed >= 10 * BLOCK as u64, "{missed}");
        drop(entries);
        assert!(log.end() >= missed);
    }
}
