//! A host that makes valid events: it obeys the window, and acknowledges and loses what it has sent, in order.

use flowstart_core::startup::StartupConfig;

use crate::event::{Acked, Decided, Event, Known, Line};
use crate::reference::Reference;
use crate::{RTT, SEGMENT};

/// Most packets that leave together: what more the window allows is not used.
const MOST_AT_ONCE: u64 = 200;

/// The host of one vector.
pub(crate) struct Host {
    pub(crate) reference: Reference,
    pub(crate) lines: Vec<Line>,
    pub(crate) now: u64,
    /// Size of a full packet.
    segment: u64,
    /// Number of the next packet.
    next: u64,
    /// Number of the oldest packet in flight; all from there on are.
    oldest: u64,
}

impl Host {
    /// A host that launches with what it knows.
    pub(crate) fn launched(scheme: &StartupConfig, known: Known) -> Self {
        let reference = Reference::new(scheme.clone()).expect("a scheme with its defaults, and Reno");
        let mut host = Self { reference, lines: Vec::new(), now: 0, segment: SEGMENT, next: 0, oldest: 0 };
        host.happen(Event::Launch { now: 0, known });
        host
    }

    fn happen(&mut self, event: Event) {
        self.reference.apply(&event);
        self.lines.push(Line { event, decided: self.reference.decided() });
    }

    /// What was decided last.
    pub(crate) fn decided(&self) -> &Decided {
        // A host has launched when it is made.
        &self.lines[self.lines.len() - 1].decided
    }

    /// Size of a full packet.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// Packets in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.next - self.oldest
    }

    /// Packets of which some were acknowledged or lost.
    pub(crate) fn has_news(&self) -> bool {
        self.oldest > 0
    }

    pub(crate) fn wait(&mut self, nanos: u64) {
        self.now += nanos;
    }

    /// As many packets leave as the window allows, but not more than these; how many do.
    pub(crate) fn send(&mut self, most: u64) -> u64 {
        let room = (self.decided().cwnd / self.segment).saturating_sub(self.in_flight());
        let packets = room.min(most).min(MOST_AT_ONCE);
        if packets == 0 {
            return 0;
        }
        let number = self.next;
        self.next += packets;
        let (bytes, in_flight) = (self.segment, self.in_flight() * self.segment);
        self.happen(Event::Sent { now: self.now, number, packets, bytes, in_flight });
        packets
    }

    /// The oldest packets are acknowledged.
    pub(crate) fn acknowledge(&mut self, packets: u64, rtt: u64, limited: bool, marks: u64) {
        let packets = packets.min(self.in_flight());
        if packets == 0 {
            return;
        }
        self.oldest += packets;
        let largest = self.oldest - 1;
        let app_limited = u64::from(limited && self.reference.left_room(largest));
        self.acked(Acked {
            largest,
            bytes: packets * self.segment,
            packets,
            rtt,
            marks,
            app_limited,
            ..Acked::default()
        });
    }

    /// The oldest packets are lost, and the following ones acknowledged; with none of them, a timer has found the loss.
    pub(crate) fn lose(&mut self, packets: u64, acknowledged: u64, persistent: bool) {
        let packets = packets.min(self.in_flight());
        if packets == 0 {
            return;
        }
        self.happen(Event::Lost { number: self.oldest, packets, bytes: self.segment });
        self.oldest += packets;
        let packets = acknowledged.min(self.in_flight());
        self.oldest += packets;
        let largest = self.oldest - 1;
        let persistent = u64::from(persistent);
        self.acked(Acked { largest, bytes: packets * self.segment, packets, persistent, ..Acked::default() });
    }

    /// A mark is reported with nothing new.
    pub(crate) fn mark(&mut self) {
        if self.has_news() {
            self.acked(Acked { largest: self.oldest - 1, marks: 1, ..Acked::default() });
        }
    }

    fn acked(&mut self, acked: Acked) {
        let (now, in_flight) = (self.now, self.in_flight() * self.segment);
        self.happen(Event::Acked(Acked { now, in_flight, ..acked }));
    }

    pub(crate) fn timer(&mut self) {
        self.happen(Event::Timer { now: self.now });
    }

    /// What the scheme has timed, if it is due within this time.
    pub(crate) fn run_timer(&mut self, within: u64) {
        if let Some(due) = self.reference.next_wakeup().filter(|due| *due <= self.now + within) {
            self.now = self.now.max(due);
            self.timer();
        }
    }

    pub(crate) fn time_out(&mut self) {
        let in_flight = self.in_flight() * self.segment;
        self.oldest = self.next;
        self.happen(Event::Timeout { now: self.now, in_flight });
    }

    pub(crate) fn find_spurious(&mut self) {
        self.happen(Event::Spurious { now: self.now });
    }

    /// Everything is acknowledged, and full packets have another size from now on.
    pub(crate) fn change_segment(&mut self, bytes: u64) {
        self.land();
        self.segment = bytes;
        self.happen(Event::Segment { bytes });
    }

    /// Everything is acknowledged, and packets take another path from now on.
    pub(crate) fn change_path(&mut self, known: Known) {
        self.land();
        self.happen(Event::Path { now: self.now, known });
    }

    /// All that is in flight arrives.
    fn land(&mut self) {
        self.acknowledge(self.in_flight(), RTT, true, 0);
    }

    /// Everything is acknowledged, and nothing is sent for this long.
    pub(crate) fn be_idle(&mut self, nanos: u64) {
        self.land();
        self.wait(nanos);
        self.send(10);
    }
}
