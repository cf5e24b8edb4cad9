//! The evidence in a flow's first packets: its RTT, its initial window, and later the growth of its flights.
//!
//! A handshake is a small packet, and data follows an RTT later or, if the server thinks, more. So the time between
//! them is no less than the RTT. What arrives within that time from the first data on is the initial window, paced or
//! not.
//!
//! If no handshake is seen, or if the server thinks, a pause shows the same: the initial window is sent, then nothing,
//! and the first packet after the pause answers the first departure. Flows that do not grow also have such pauses, as
//! do random loads. So here growth has to show before it counts.

/// RTTs that are believed, in seconds.
const RTT: core::ops::RangeInclusive<f64> = 0.002..=1.5;
/// The part of the RTT in which only the initial window arrives: acknowledgements may come a little early.
const FLIGHT: f64 = 0.9;
/// Packets of a flight that is taken for an initial window (RFC 3390: at least 2, and 3 of Ethernet's size).
const LEAST_PACKETS: u32 = 3;
/// A pause is this many times as long as the mean time between the packets before it. Three packets that are paced with
/// a gain of 2 are a sixth of an RTT apart, and two thirds pass before the first answer.
const PAUSE: f64 = 3.0;

/// The beginning of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// Small packets before any data was answered, and when the first of them arrived: handshakes.
    pub(super) handshakes: u32,
    first: f64,
    /// When the first data arrived and left; 0: not yet.
    data: f64,
    left: f64,
    /// RTT at most; 0: unknown.
    rtt: f64,
    /// Packets and bytes of the initial window so far, and when the latest arrived.
    packets: u32,
    initial: f64,
    last: f64,
    /// Bytes of data that have left.
    departed: f64,
    /// When the present flight began, after the initial window, and bytes of it and of the one before.
    flight: f64,
    arrived: f64,
    before: f64,
}

/// What is new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// The flow is new among those with an initial window.
    pub(super) begins: bool,
    /// Its RTT is that of a pause: its growth has to show.
    pub(super) paused: bool,
    /// Bytes of the initial window, and over the RTT.
    initial: f64,
    initial_rate: f64,
    /// Bytes that have left, which will cause more, over the RTT.
    departed_rate: f64,
    /// Bytes of a flight that is complete, and of the one before.
    flights: (f64, f64),
}

impl Opening {
    pub(super) const NONE: Self = Self {
        handshakes: 0,
        first: 0.0,
        data: 0.0,
        left: 0.0,
        rtt: 0.0,
        packets: 0,
        initial: 0.0,
        last: 0.0,
        departed: 0.0,
        flight: 0.0,
        arrived: 0.0,
        before: 0.0,
    };

    /// A packet of the flow arrives; a `small` one is no data.
    pub(super) fn arrived(&mut self, now: f64, size: f64, small: bool) -> Option<Known> {
        if small {
            self.handshakes += u32::from(self.flight == 0.0);
            self.first = if self.first == 0.0 { now } else { self.first };
            return None;
        }
        if self.data == 0.0 {
            (self.data, self.last) = (now, now);
            let seen = self.first > 0.0 && RTT.contains(&(now - self.first));
            self.rtt = if seen { now - self.first } else { 0.0 };
        }
        if self.flight > 0.0 {
            return self.answered(now, size);
        }
        if self.rtt > 0.0 && now > self.data + FLIGHT * self.rtt {
            (self.flight, self.before) = (self.data + FLIGHT * self.rtt, self.initial);
            return self.answered(now, size);
        }
        // Those of a tunnel begin one after the other.
        let pause = self.handshakes < 2
            && now - self.last > PAUSE * (self.last - self.data) / f64::from(self.packets.max(2) - 1);
        if self.packets >= LEAST_PACKETS && pause && self.left > 0.0 && RTT.contains(&(now - self.left)) {
            let known = self.correct(now - self.left);
            (self.flight, self.before, self.arrived) = (now, self.initial, size);
            return Some(known);
        }
        self.last = now;
        self.packets += 1;
        self.initial += size;
        if self.rtt == 0.0 || self.packets < LEAST_PACKETS {
            return None;
        }
        let begins = self.packets == LEAST_PACKETS;
        let (initial, departed) = if begins { (self.initial, self.departed) } else { (size, 0.0) };
        let (initial_rate, departed_rate) = (initial / self.rtt, departed / self.rtt);
        Some(Known { begins, initial, initial_rate, departed_rate, ..Known::default() })
    }

    /// The RTT is another than was believed, or was unknown.
    fn correct(&mut self, rtt: f64) -> Known {
        let (begins, before) = (self.rtt == 0.0, if self.rtt > 0.0 { 1.0 / self.rtt } else { 0.0 });
        let change = 1.0 / rtt - before;
        self.rtt = rtt;
        Known {
            begins,
            paused: true,
            initial: if begins { self.initial } else { 0.0 },
            initial_rate: self.initial * change,
            departed_rate: self.departed * change,
            flights: (0.0, 0.0),
        }
    }

    /// A packet arrives after the initial window. Flights are an RTT long, those before the queue was busy.
    fn answered(&mut self, now: f64, size: f64) -> Option<Known> {
        if self.packets < LEAST_PACKETS {
            return None;
        }
        let mut complete = None;
        if now > self.flight + self.rtt {
            complete = Some(Known { flights: (self.arrived, self.before), ..Known::default() });
            self.flight += self.rtt;
            (self.arrived, self.before) = (0.0, self.arrived);
        }
        self.arrived += size;
        complete
    }

    /// A packet of the flow leaves.
    pub(super) fn departed(&mut self, now: f64, size: f64, small: bool) -> Option<Known> {
        if small {
            return None;
        }
        if self.left == 0.0 {
            self.left = now;
        }
        self.departed += size;
        let known = self.packets >= LEAST_PACKETS && self.rtt > 0.0;
        known.then(|| Known { departed_rate: size / self.rtt, ..Known::default() })
    }
}

/// The openings of all flows of a transient together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Openings {
    /// Flows whose initial window has begun.
    pub(super) flows: u32,
    /// Whether the RTT of any is that of a pause.
    pub(super) paused: bool,
    /// Initial windows in bytes, and over the RTTs of their flows.
    pub(super) initial: f64,
    initial_rate: f64,
    /// Bytes that have left, over the RTTs of their flows.
    departed_rate: f64,
    /// Bytes of flights that are complete, and of those before each.
    flights: (f64, f64),
}

impl Openings {
    pub(super) fn add(&mut self, known: Known) {
        self.flows += u32::from(known.begins);
        self.paused |= known.paused;
        self.initial += known.initial;
        self.initial_rate += known.initial_rate;
        self.departed_rate += known.departed_rate;
        self.flights.0 += known.flights.0;
        self.flights.1 += known.flights.1;
    }

    /// RTT of the flows, weighted by their windows.
    pub(super) fn rtt(&self) -> Option<f64> {
        (self.initial > 0.0).then(|| self.initial / self.initial_rate)
    }

    /// Growth of the windows in an RTT; `None` before it shows.
    pub(super) fn growth(&self) -> Option<f64> {
        (self.flights.1 > 0.0).then(|| self.flights.0 / self.flights.1)
    }

    /// Rate of arrivals an RTT ahead if windows grow by `growth`.
    pub(super) fn rate_ahead(&self, growth: f64) -> f64 {
        self.initial_rate + (growth - 1.0) * self.departed_rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_and_a_flight_tell_the_rtt_and_the_initial_window() {
        let (mut opening, mut openings) = (Opening::NONE, Openings::default());
        let packets =
            core::iter::once((1.0, 40.0)).chain((0..10).map(|packet| (1.1 + 0.001 * f64::from(packet), 1500.0)));
        for (time, size) in packets.chain(core::iter::once((1.2, 1500.0))) {
            if let Some(known) = opening.arrived(time, size, size < 100.0) {
                openings.add(known);
            }
        }
        // Ten packets come within 0.9 of the 100 ms after the first data; the one after 100 ms is an answer.
        assert!((openings.rtt().unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(openings.initial, 15_000.0);
        // None has left: 15000 bytes in 0.1 s. Ten have, and windows grow by 1.75.
        assert!((openings.rate_ahead(1.75) - 150_000.0).abs() < 1e-3);
        for _ in 0..10 {
            openings.add(opening.departed(1.3, 1500.0, false).unwrap());
        }
        assert!((openings.rate_ahead(1.75) - 262_500.0).abs() < 1e-3);
    }

    #[test]
    fn a_pause_tells_the_rtt_without_a_handshake_and_corrects_that_of_a_server_that_thinks() {
        for handshake in [None, Some(0.75)] {
            let (mut opening, mut openings) = (Opening::NONE, Openings::default());
            let mut add = |known: Option<Known>| known.into_iter().for_each(|known| openings.add(known));
            // The handshake is 250 ms before the data, of which the server has thought 150 ms.
            handshake.into_iter().for_each(|time| add(opening.arrived(time, 40.0, true)));
            (0..10).for_each(|packet| add(opening.arrived(1.0 + 0.001 * f64::from(packet), 1500.0, false)));
            (0..10).for_each(|_| add(opening.departed(1.002, 1500.0, false)));
            // The first answer comes 100 ms after the first packet has left.
            add(opening.arrived(1.102, 1500.0, false));
            assert!(openings.paused, "{handshake:?}");
            assert!(openings.rtt().is_some_and(|rtt| (rtt - 0.1).abs() < 1e-9), "{handshake:?} {openings:?}");
            assert_eq!((openings.flows, openings.initial), (1, 15_000.0));
            // What has left counts with the new RTT: 150 000 + 0.75 * 150 000 bytes a second.
            assert!((openings.rate_ahead(1.75) - 262_500.0).abs() < 1e-3, "{handshake:?}");
        }
    }

    #[test]
    fn packets_of_one_size_tell_nothing() {
        let mut opening = Opening::NONE;
        assert!((0..100).all(|packet| opening.arrived(0.01 * f64::from(packet), 1500.0, false).is_none()));
        assert!(opening.departed(1.3, 1500.0, false).is_none());
    }

    #[test]
    fn a_constant_rate_after_a_small_packet_is_no_window() {
        let mut opening = Opening::NONE;
        opening.arrived(0.0, 100.0, true);
        // One packet in each interval.
        assert!((1..100).all(|packet| opening.arrived(0.01 * f64::from(packet), 1500.0, false).is_none()));
    }
}
