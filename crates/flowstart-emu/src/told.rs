//! What a router has counted.

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::link::LinkCounters;

use crate::lateness::Late;
use crate::quick_start::Options;
use crate::scone::Signals;

/// What happened in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// What the link has counted.
    pub link: LinkCounters,
    /// Packets that came faster than this host took them, and are lost before the link. Of a TUN device that has moved
    /// to another network namespace nobody tells them.
    pub missed: u64,
    /// Packets that left with CE and came without.
    pub marked: u64,
    /// Packets that are neither of IPv4 nor of IPv6.
    pub foreign: u64,
    /// Packets that are cut off, have a length that they cannot have, or a wrong checksum of the header.
    pub malformed: u64,
    /// Packets that offloads had left whole, and that were cut into segments.
    pub segmented: u64,
    /// Packets that were dropped because their TTL or hop limit ended here.
    pub expired: u64,
    /// Those of them whose sender was told by ICMP.
    pub time_exceeded: u64,
    /// Those whose sender was not told because the port has no address.
    pub without_address: u64,
    /// Packets that wait now, and their bytes.
    pub waiting: (usize, Bytes),
    /// How long the packet that left last had been in the queue and in service.
    pub sojourn: Duration,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Towards clients.
    pub down: Direction,
    /// Towards servers.
    pub up: Direction,
    /// Packets beyond the memory.
    pub refused: u64,
    /// Packets that the system did not take, as for a device that is down.
    pub unsent: u64,
    /// What the Quick-Start router did.
    pub quick_start: Options,
    /// What the element did.
    pub scone: Signals,
    /// The longest time by which an event was late.
    pub latest: Duration,
    /// How much later than the links say packets left.
    pub late: Late,
    /// Packets that are not in the log, because nobody took its entries in time.
    pub unlogged: u64,
}

impl Told {
    /// Packets that this host lost: it took them too late, had no memory for them, or the system did not take them.
    pub fn lost_by_host(&self) -> u64 {
        self.down.missed + self.up.missed + self.refused + self.unsent
    }
}
