//! A queue discipline from outside this crate, with a name, wherever a [`QueueConfig`] goes.
//!
//! It is cloned for every link that uses it, and each clone learns its link first ([`QueueDiscipline::set_link`]).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{EcnCodepoint, OutgoingLink, QueueConfig, QueueContext, QueueDiscipline, QueuedPacket};
use crate::custom::Custom;
use crate::registry::ConfigError;
use crate::rng::Substream;
use crate::time::Timestamp;

/// A queue discipline of the caller's, before its first packet.
pub type CustomQueue = Custom<dyn QueueDiscipline>;

impl CustomQueue {
    pub(super) const SUMMARY: &'static str = "a discipline from outside this program";
    pub(super) const REFERENCE: &'static str = "its author";

    /// A discipline with this name. Links begin with clones of `prototype`. A clone is tried with a packet, which must
    /// wait, leave or be dropped, once.
    ///
    /// # Errors
    ///
    /// A name that another discipline has, or that cannot be written in a spec: allowed are lower-case letters, digits
    /// and hyphens. A packet that is lost or doubled in the trial.
    pub fn new(name: &'static str, prototype: Box<dyn QueueDiscipline>) -> Result<Self, ConfigError> {
        let discipline = Self::named(name, QueueConfig::NAMES, prototype)?;
        let places = trial(discipline.build(OutgoingLink::default()));
        if places != 1 {
            let found = format!("a packet in {places} places");
            return Err(ConfigError::new("enqueue", found, "a packet that waits, leaves or is dropped, once"));
        }
        Ok(discipline)
    }

    pub(super) fn build(&self, link: OutgoingLink) -> Box<dyn QueueDiscipline> {
        let mut discipline = self.fresh();
        discipline.set_link(link);
        discipline
    }
}

/// In how many places a packet is after it arrived and the link asked for one.
fn trial(mut discipline: Box<dyn QueueDiscipline>) -> usize {
    let (mut rng, mut dropped) = (Substream::new(1, "trial", 0), Vec::new());
    let mut context = QueueContext { now: Timestamp::ZERO, in_service: None, rng: &mut rng, dropped: &mut dropped };
    let ecn = EcnCodepoint::NotEct;
    let packet = QueuedPacket { handle: 0, size: 1500, flow: 0, ecn, enqueued_at: Timestamp::ZERO };
    discipline.enqueue(packet, &mut context);
    let sent = discipline.dequeue(&mut context);
    discipline.len() + usize::from(sent.is_some()) + dropped.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    /// Keeps one packet; the second field says how many it says that it has besides.
    #[derive(Clone, Debug)]
    struct Place(Option<QueuedPacket>, usize);

    impl QueueDiscipline for Place {
        fn enqueue(&mut self, packet: QueuedPacket, context: &mut QueueContext<'_>) {
            context.dropped.extend(self.0.replace(packet));
        }

        fn dequeue(&mut self, _: &mut QueueContext<'_>) -> Option<QueuedPacket> {
            self.0.take()
        }

        fn len(&self) -> usize {
            self.1 + usize::from(self.0.is_some())
        }

        fn bytes(&self) -> Bytes {
            self.0.map_or(Bytes::ZERO, |packet| Bytes::new(u64::from(packet.size)))
        }
    }

    #[test]
    fn names_of_other_disciplines_and_names_that_no_spec_can_have_are_refused() {
        let named = |name| CustomQueue::new(name, Box::new(Place(None, 0)));
        assert_eq!(named("one-place").map(|discipline| discipline.name()), Ok("one-place"));
        for taken in QueueConfig::NAMES {
            assert_eq!(named(taken).map_err(|error| error.field), Err("name"), "{taken}");
        }
        for unwritable in ["", "Mine", "my queue", "a:b"] {
            assert!(named(unwritable).is_err(), "{unwritable}");
        }
    }

    #[test]
    fn a_discipline_that_miscounts_is_refused() {
        let error = CustomQueue::new("two-places", Box::new(Place(None, 1))).unwrap_err();
        assert_eq!((error.field, &*error.value), ("enqueue", "a packet in 2 places"));
    }

    #[test]
    fn it_is_a_configuration_whose_states_begin_anew() {
        let config = QueueConfig::Custom(CustomQueue::new("one-place", Box::new(Place(None, 0))).unwrap());
        assert_eq!((config.name(), config.validate()), ("one-place", Ok(())));
        for _ in 0..2 {
            assert_eq!(config.build(OutgoingLink::default()).as_dyn().len(), 0);
        }
    }
}
