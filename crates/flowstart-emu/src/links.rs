//! A link in each direction, which the clock of this host drives: what the relay and the router have in common.
//!
//! One thread sleeps until something can be read or an event of a lane comes, with the kernel's high-resolution timers.
//! What a host adds is how late it wakes, usually less than 0.1 ms.

use std::io;
use std::time::{Duration as StdDuration, Instant};

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::link::LinkConfig;
use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;

use crate::lane::Lane;

/// What may be in the link of a direction at a time, whatever it allows.
const HELD: Bytes = Bytes::new(128_000_000);
/// How many packets that may be: each takes some 130 bytes, even if it is empty.
const MOST_HELD: usize = 250_000;
/// How long nobody looks at whether the work is to end.
const NAP: StdDuration = StdDuration::from_millis(50);

/// Largest packet or datagram.
pub(crate) const LARGEST: usize = 65_536;
/// Packets that are read before the lanes are looked at again.
pub(crate) const READ: usize = 64;

/// The time since it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now(self) -> Timestamp {
        Timestamp::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Bytes of buffers that wait to be used again.
const MOST_SPARE: usize = 16_000_000;
/// Bytes of the smallest buffer, and how many sizes there are, each twice the one before.
const SMALLEST: usize = 64;
const SIZES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;

/// Buffers to be used again, by their size: a small packet takes none of a large one, so what is held is at most twice
/// what the packets have, and [`SMALLEST`] for each.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    by_size: [Vec<Vec<u8>>; SIZES],
    bytes: usize,
}

impl Spare {
    /// A buffer with these bytes.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let place = bytes.len().div_ceil(SMALLEST).next_power_of_two().ilog2() as usize;
        let mut buffer = self.by_size.get_mut(place).and_then(Vec::pop).map_or_else(
            || Vec::with_capacity(SMALLEST << place),
            |buffer| {
                self.bytes -= buffer.capacity();
                buffer
            },
        );
        buffer.clear();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes a buffer back, or frees it if enough wait.
    pub(crate) fn give(&mut self, buffer: Vec<u8>) {
        let size = buffer.capacity();
        // A buffer may hold more than was asked for, and never less than others in its place.
        let place = (size / SMALLEST).checked_ilog2().map(|place| place as usize);
        if let Some(alike) = place.and_then(|place| self.by_size.get_mut(place))
            && self.bytes + size <= MOST_SPARE
        {
            self.bytes += size;
            alike.push(buffer);
        }
    }
}

/// The two lanes and their clock.
#[derive(Debug)]
pub(crate) struct Links<T> {
    /// The link to clients.
    pub(crate) down: Lane<T>,
    /// The link to servers.
    pub(crate) up: Lane<T>,
    /// Buffers to be used again.
    pub(crate) spare: Spare,
    pub(crate) clock: Clock,
    latest: Duration,
}

impl<T> Links<T> {
    /// Empty ones, whose time begins now.
    pub(crate) fn new(down: &LinkConfig, up: &LinkConfig, seed: u64) -> Self {
        Self {
            down: Lane::new(down, seed, 0),
            up: Lane::new(up, seed, 1),
            spare: Spare::default(),
            clock: Clock(Instant::now()),
            latest: Duration::ZERO,
        }
    }

    /// The time since they began.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a packet may come in. One direction takes no room of the other.
    pub(crate) fn have_room(&self, is_down: bool) -> bool {
        let lane = if is_down { &self.down } else { &self.up };
        lane.packets() < MOST_HELD && lane.held() <= HELD
    }

    /// A buffer with these bytes.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.spare.take(bytes)
    }

    /// The longest time by which an event was late.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// Notes how late the next event is. Call it before the lanes advance.
    pub(crate) fn note_lateness(&mut self, now: Timestamp) {
        if let Some(due) = self.next_event() {
            self.latest = self.latest.max(now.since(due));
        }
    }

    fn next_event(&mut self) -> Option<Timestamp> {
        [self.down.next_event(), self.up.next_event()].into_iter().flatten().min()
    }

    /// How long to wait for the next event, but not longer than nobody looks at whether the work is to end.
    pub(crate) fn patience(&mut self) -> StdDuration {
        let now = self.now();
        self.next_event().map_or(NAP, |next| StdDuration::from_nanos(next.since(now).as_nanos()).min(NAP))
    }
}

/// Makes this thread wake at the time that it asks for: a timer otherwise fires up to 50 us late, to wake the processor
/// less often.
pub(crate) fn wake_in_time() {
    let _ = set_timerslack(1);
}

/// Waits until one of these can be read, at most so long; afterwards they say which.
pub(crate) fn wait(polled: &mut [PollFd<'_>], patience: StdDuration) -> io::Result<()> {
    match ppoll(polled, Some(TimeSpec::from_duration(patience)), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::aqm::EcnCodepoint;
    use flowstart_core::units::Rate;

    use super::*;

    /// Whoever sends large packets, then small ones and then large ones again gets no small packet into a large buffer.
    #[test]
    fn a_buffer_is_at_most_twice_its_packet_and_few_wait() {
        let mut spare = Spare::default();
        let large: Vec<_> = (0..500).map(|_| spare.take(&[1; 60_000])).collect();
        large.into_iter().for_each(|buffer| spare.give(buffer));
        assert!((MOST_SPARE / 2..=MOST_SPARE).contains(&spare.bytes), "{}", spare.bytes);
        for size in [0, 1, 64, 65, 1500, 60_000, LARGEST] {
            let (packet, before) = (vec![7; size], spare.bytes);
            let buffer = spare.take(&packet);
            assert!(buffer == packet && buffer.capacity() <= (2 * size).max(SMALLEST), "{size}: {}", buffer.capacity());
            spare.give(buffer);
            assert!(spare.bytes <= before.max(MOST_SPARE), "{size}");
        }
    }

    #[test]
    fn memory_is_bounded_whatever_the_links_allow() {
        let endless = LinkConfig::new(Rate::from_mbit(1), Duration::ZERO);
        for (size, most) in [(1, MOST_HELD), (60_000, 2134)] {
            let mut links = Links::new(&endless, &endless, 1);
            for is_down in [true, false] {
                let mut held = 0;
                while links.have_room(is_down) {
                    let lane = if is_down { &mut links.down } else { &mut links.up };
                    lane.enqueue(Timestamp::ZERO, (), size, 0, EcnCodepoint::NotEct);
                    held += 1;
                }
                // 2133 packets of 60 kB are 127.98 MB, and the next one is the last.
                assert_eq!(held, most);
            }
        }
    }
}
