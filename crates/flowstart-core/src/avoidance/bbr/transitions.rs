//! The states to which the last event led, for traces.

/// Most states that one event can lead to: the last of STARTUP leads to DRAIN and two more.
const MOST: usize = 4;

/// States and their causes, until a trace takes them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transitions {
    entered: [Option<(&'static str, &'static str)>; MOST],
}

impl Transitions {
    /// `state` was entered because of `trigger`. Beyond the most that an event can lead to, nothing is kept.
    pub(super) fn note(&mut self, state: &'static str, trigger: &'static str) {
        if let Some(place) = self.entered.iter_mut().find(|place| place.is_none()) {
            *place = Some((state, trigger));
        }
    }

    /// The oldest.
    pub(super) fn take(&mut self) -> Option<(&'static str, &'static str)> {
        self.entered.rotate_left(1);
        self.entered[MOST - 1].take()
    }
}
