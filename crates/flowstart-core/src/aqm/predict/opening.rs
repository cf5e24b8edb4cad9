//! What the handshake of a flow and its first flight tell before anything was answered: its RTT and its initial window.
//!
//! A handshake is a small packet, and data follows an RTT later or, if the server thinks, more. So the time between them is no
//! less than the RTT. What arrives within that time from the first data on is the initial window, paced or not. A source that
//! sends at a constant rate, or at random, shows neither: its first packet is as large as the others, and no window follows.

/// The first packet of a handshake is at most this part of the first data.
const SMALL: f64 = 0.5;
/// RTTs that are believed, in seconds.
const RTT: core::ops::RangeInclusive<f64> = 0.002..=1.5;
/// The part of the RTT in which only the initial window arrives: acknowledgements may come a little early.
const FLIGHT: f64 = 0.9;
/// Packets of a flight that is taken for an initial window (RFC 3390: at least 2, and 3 of Ethernet's size).
const LEAST_PACKETS: u32 = 3;

/// The beginning of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// When the first packet arrived, and its size.
    first: f64,
    size: f64,
    /// When the first data arrived; 0: not yet.
    data: f64,
    /// RTT at most; 0: unknown.
    rtt: f64,
    /// Packets and bytes of the flight so far.
    packets: u32,
    initial: f64,
    /// Bytes of data that have left.
    departed: f64,
    /// When the present flight began, after the initial window, and bytes of it and of the one before.
    flight: f64,
    arrived: f64,
    before: f64,
}

/// What is new: bytes of the initial window, and bytes that have left, which will cause more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// The flow is new among those with an initial window.
    pub(super) begins: bool,
    pub(super) rtt: f64,
    pub(super) initial: f64,
    pub(super) departed: f64,
    /// Bytes of a flight that is complete, and of the one before.
    pub(super) flights: (f64, f64),
}

impl Opening {
    pub(super) const NONE: Self = Self {
        first: 0.0,
        size: 0.0,
        data: 0.0,
        rtt: 0.0,
        packets: 0,
        initial: 0.0,
        departed: 0.0,
        flight: 0.0,
        arrived: 0.0,
        before: 0.0,
    };

    /// A packet of the flow arrives.
    pub(super) fn arrived(&mut self, now: f64, size: f64) -> Option<Known> {
        if self.size == 0.0 {
            (self.first, self.size) = (now, size);
            return None;
        }
        if self.data == 0.0 {
            if self.size > SMALL * size {
                return None;
            }
            self.data = now;
            self.rtt = if RTT.contains(&(now - self.first)) { now - self.first } else { 0.0 };
        }
        if self.rtt == 0.0 {
            return None;
        }
        if now > self.data + FLIGHT * self.rtt {
            return self.answered(now, size);
        }
        self.packets += 1;
        self.initial += size;
        match self.packets {
            LEAST_PACKETS => Some(Known {
                begins: true,
                rtt: self.rtt,
                initial: self.initial,
                departed: self.departed,
                flights: (0.0, 0.0),
            }),
            packets if packets > LEAST_PACKETS => Some(Known { rtt: self.rtt, initial: size, ..Known::default() }),
            _ => None,
        }
    }

    /// A packet arrives after the initial window. Flights are an RTT long, those before the queue was busy.
    fn answered(&mut self, now: f64, size: f64) -> Option<Known> {
        if self.packets < LEAST_PACKETS {
            return None;
        }
        let mut complete = None;
        if self.flight == 0.0 {
            (self.flight, self.arrived, self.before) = (self.data + FLIGHT * self.rtt, 0.0, self.initial);
        }
        if now > self.flight + self.rtt {
            complete = Some(Known { rtt: self.rtt, flights: (self.arrived, self.before), ..Known::default() });
            self.flight += self.rtt;
            (self.arrived, self.before) = (0.0, self.arrived);
        }
        self.arrived += size;
        complete
    }

    /// A packet of the flow leaves.
    pub(super) fn departed(&mut self, size: f64) -> Option<Known> {
        if self.data == 0.0 || self.rtt == 0.0 {
            return None;
        }
        self.departed += size;
        (self.packets >= LEAST_PACKETS).then_some(Known { rtt: self.rtt, departed: size, ..Known::default() })
    }
}

/// The openings of all flows of a transient together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Openings {
    /// Flows whose initial window has begun.
    pub(super) flows: u32,
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
        self.initial += known.initial;
        self.initial_rate += known.initial / known.rtt;
        self.departed_rate += known.departed / known.rtt;
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
            if let Some(known) = opening.arrived(time, size) {
                openings.add(known);
            }
        }
        // Ten packets come within 0.9 of the 100 ms after the first data; the one after 100 ms is an answer.
        assert!((openings.rtt().unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(openings.initial, 15_000.0);
        // None has left: 15000 bytes in 0.1 s. Ten have, and windows grow by 1.75.
        assert!((openings.rate_ahead(1.75) - 150_000.0).abs() < 1e-3);
        for _ in 0..10 {
            openings.add(opening.departed(1500.0).unwrap());
        }
        assert!((openings.rate_ahead(1.75) - 262_500.0).abs() < 1e-3);
    }

    #[test]
    fn packets_of_one_size_tell_nothing() {
        let mut opening = Opening::NONE;
        assert!((0..100).all(|packet| opening.arrived(0.01 * f64::from(packet), 1500.0).is_none()));
        assert!(opening.departed(1500.0).is_none());
    }

    #[test]
    fn a_constant_rate_after_a_small_packet_is_no_window() {
        let mut opening = Opening::NONE;
        opening.arrived(0.0, 100.0);
        // One packet in each interval.
        assert!((1..100).all(|packet| opening.arrived(0.01 * f64::from(packet), 1500.0).is_none()));
    }
}
