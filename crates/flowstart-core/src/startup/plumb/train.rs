//! The train: the first packets leave at once, and the acknowledgements of them tell the bottleneck's capacity.

use crate::event::{Ack, Position, Sent};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};

/// Instants with acknowledgements that a dispersion takes: fewer give one gap, which may be any timer's.
const INSTANTS: u32 = 3;
/// The train must have left in less than this part of the time that its acknowledgements took. Otherwise the sender's
/// own pace is seen, not the bottleneck's.
const SENT_WITHIN: u64 = 2;

/// What the acknowledgements of the train told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Not all of it is acknowledged.
    NotYet,
    /// The capacity, C^.
    Capacity(Rate),
    /// Nothing: too few acknowledgements, or it did not leave at once.
    Nothing,
}

/// The first packets of the flow and their acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Train {
    /// Bytes of it that have not left.
    left: Bytes,
    first_sent: Option<Timestamp>,
    last_sent: Timestamp,
    /// Its last packet, once it has left.
    end: Option<Position>,
    /// The first acknowledgement, and what had arrived with it.
    first: Option<(Timestamp, Bytes)>,
    latest: Timestamp,
    instants: u32,
}

impl Train {
    /// A train of `length` bytes.
    pub(super) const fn new(length: Bytes) -> Self {
        Self {
            left: length,
            first_sent: None,
            last_sent: Timestamp::ZERO,
            end: None,
            first: None,
            latest: Timestamp::ZERO,
            instants: 0,
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        if self.end.is_some() {
            return;
        }
        self.first_sent.get_or_insert(sent.now);
        self.last_sent = sent.now;
        self.left = self.left.saturating_sub(sent.bytes);
        if self.left == Bytes::ZERO {
            self.end = Some(sent.position);
        }
    }

    /// Takes an acknowledgement, with which `delivered` bytes have arrived.
    pub(super) fn on_ack(&mut self, ack: &Ack, delivered: Bytes) -> Told {
        if ack.now > self.latest || self.first.is_none() {
            self.instants += 1;
            self.latest = ack.now;
        }
        let (first, arrived) = *self.first.get_or_insert((ack.now, delivered));
        if self.end.is_none_or(|end| ack.position < end) {
            return Told::NotYet;
        }
        let dispersion = ack.now.since(first);
        let left_in = self.first_sent.map_or(Duration::ZERO, |sent| self.last_sent.since(sent));
        if self.instants < INSTANTS || left_in * SENT_WITHIN > dispersion {
            return Told::Nothing;
        }
        // C^ = bytes between the first and the last acknowledgement / time between them.
        Rate::from_transfer(delivered.saturating_sub(arrived), dispersion).map_or(Told::Nothing, Told::Capacity)
    }
}
