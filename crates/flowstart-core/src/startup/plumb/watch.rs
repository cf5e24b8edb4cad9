//! WATCH: the flow is alone, and the window follows the capacity instead of looking for losses.

use super::{Plumb, State, Step};
use crate::event::{Ack, ExitReason};
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// Rounds in a row with a queue of others, or of a path that got slower, after which startup ends.
const CROWDED: u32 = 3;
/// Parts of thr, and multiples of it: a round whose least queue is below the first has room, one whose least is above
/// the second has another cause than this flow's own queue, which is thr.
const ROOM_PART: u64 = 2;
const CROWD: u64 = 3;
/// Percent of the capacity from which on a round has delivered more than before.
const MORE: u32 = 110;

/// What WATCH keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    /// Rounds in a row that had room.
    quiet: u32,
    /// Rounds in a row that were crowded, and the window before the first of them.
    crowded: u32,
    before: Bytes,
    /// Least queue of this round.
    least: Duration,
}

impl Watch {
    const BEGIN: Self = Self { quiet: 0, crowded: 0, before: Bytes::ZERO, least: Duration::MAX };
}

impl Plumb {
    /// The flow is alone at this rate: WATCH, or the window that the path holds without it.
    pub(super) fn alone(&mut self, ack: &Ack, arriving: Rate) -> Step {
        if self.config.watch == 0 {
            return self.leave_alone(arriving);
        }
        self.capacity = Some(arriving);
        self.enter(State::Watch(Watch::BEGIN), "watch", "alone");
        self.begin_round(ack.now);
        Step::Continue { cwnd: self.watched(arriving) }
    }

    /// The window that keeps the flow's own queue visible.
    fn watched(&self, rate: Rate) -> Bytes {
        rate.amount_in(self.min_rtt + self.threshold()).max(self.context.segment * 2)
    }

    /// An acknowledgement in WATCH. Each round decides by the least queue that it had.
    pub(super) fn watch(&mut self, ack: &Ack, cwnd: Bytes, in_use: bool, watch: Watch) -> Step {
        let watch = Watch { least: watch.least.min(self.queue), ..watch };
        self.state = State::Watch(watch);
        if ack.position < self.round_end {
            return Step::Continue { cwnd };
        }
        let (began, before) = self.round_start;
        let arrived = Rate::from_transfer(self.delivered.saturating_sub(before), ack.now.since(began));
        self.begin_round(ack.now);
        let (Some(arrived), threshold) = (arrived, self.threshold()) else { return Step::Continue { cwnd } };
        let next = Watch { least: Duration::MAX, ..watch };
        if watch.least > threshold * CROWD {
            let next = Watch {
                quiet: 0,
                crowded: watch.crowded + 1,
                before: if watch.crowded == 0 { cwnd } else { watch.before },
                ..next
            };
            if next.crowded == CROWDED {
                return self.leave(next.before, next.before, ExitReason::Delay);
            }
            self.state = State::Watch(next);
            self.capacity = self.capacity.map(|capacity| capacity.min(arrived));
            return Step::Continue { cwnd: cwnd.min(self.watched(arrived)) };
        }
        let has_more = self.reaches(arrived, MORE);
        self.capacity = self.capacity.max(Some(arrived));
        let has_room = watch.least * ROOM_PART < threshold && in_use;
        let quiet = if has_room { watch.quiet + 1 } else { 0 };
        self.state = State::Watch(Watch { quiet, crowded: 0, ..next });
        let cwnd = match (has_room, has_more) {
            (true, true) => cwnd * 2,
            (true, false) if quiet >= self.config.watch => cwnd + cwnd / 4,
            _ => cwnd.max(self.watched(arrived)),
        };
        Step::Continue { cwnd }
    }
}
