//! A path with a bottleneck, so that schemes meet in vectors what they look for: queues that grow and overflow, and
//! acknowledgements at the bottleneck's rate. It is played in ticks, which bounds the number of events.

use std::collections::VecDeque;

use crate::host::Host;

/// Packets behind a lost one with whose acknowledgement it counts as lost (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;
/// Packets that leave at once when a rate begins.
const BURST: u64 = 2;

/// What a path is like for a while. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// RTT without a queue.
    pub(crate) rtt: u64,
    /// What the bottleneck takes for a packet.
    pub(crate) service: u64,
    /// Packets that its queue holds.
    pub(crate) buffer: u64,
    /// Packets in the queue from which on it marks.
    pub(crate) marks_from: u64,
    /// How often the host acts: acknowledgements of one tick are one acknowledgement.
    pub(crate) tick: u64,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: u64,
    /// When its acknowledgement comes, or would come.
    back: u64,
    lost: bool,
    marked: bool,
}

/// A path on which a host sends.
#[derive(Debug, Default)]
pub(crate) struct Network {
    flight: VecDeque<Packet>,
    /// When the bottleneck has sent all that waits there.
    free: u64,
    /// What the rate has allowed and was not used: bytes times 8 times 10^9.
    credit: u128,
    /// When startup was found over.
    over: Option<u64>,
}

impl Network {
    /// The host sends what its window and its rate allow, for so many RTTs, or until two RTTs after the end of startup.
    pub(crate) fn run(&mut self, host: &mut Host, link: Link, round_trips: u64) {
        let end = host.now + link.rtt * round_trips;
        while host.now < end && self.over.is_none_or(|over| host.now < over + 2 * link.rtt) {
            self.send(host, link);
            let next = host.now + link.tick;
            host.run_timer(link.tick);
            host.now = next;
            self.take(host, link);
            if self.over.is_none() && !host.decided().exit_reason.is_empty() {
                self.over = Some(host.now);
            }
        }
    }

    fn send(&mut self, host: &mut Host, link: Link) {
        let rate = u128::from(host.decided().pacing_rate);
        let packet = u128::from(host.segment()) * 8 * 1_000_000_000;
        self.credit += rate * u128::from(link.tick);
        let paced = u64::try_from(self.credit / packet).unwrap_or(u64::MAX);
        let sent = host.send(if rate == 0 { u64::MAX } else { paced.max(BURST) });
        // What the window does not let out now leaves as soon as it can, but not more than a tick of it at once.
        let rest = self.credit.saturating_sub(packet * u128::from(sent));
        self.credit = rest.min(packet * u128::from(BURST) + rate * u128::from(link.tick));
        for _ in 0..sent {
            let queue = self.free.saturating_sub(host.now) / link.service;
            let lost = queue > link.buffer;
            if !lost {
                self.free = self.free.max(host.now) + link.service;
            }
            let back = self.free.max(host.now) + link.rtt;
            self.flight.push_back(Packet { sent: host.now, back, lost, marked: queue >= link.marks_from });
        }
    }

    /// What has come back by now: acknowledgements, and the losses that they or a timer reveal.
    fn take(&mut self, host: &mut Host, link: Link) {
        loop {
            let lost = self.flight.iter().take_while(|packet| packet.lost).count();
            let is_back = |packet: &&Packet| !packet.lost && packet.back <= host.now;
            let (mut back, mut marks, mut newest) = (0, 0, host.now);
            for packet in self.flight.iter().skip(lost).take_while(is_back) {
                back += 1;
                marks += u64::from(packet.marked);
                newest = packet.sent;
            }
            let late = self.flight.front().is_some_and(|packet| packet.back + link.rtt <= host.now);
            if lost as u64 + back == 0 || (lost > 0 && back < REORDERING && !late) {
                return;
            }
            if lost > 0 {
                host.lose(lost as u64, back, false);
            } else {
                host.acknowledge(back, host.now - newest, false, marks);
            }
            self.flight.drain(..lost + back as usize);
        }
    }
}
