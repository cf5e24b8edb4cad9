//! A startup scheme from outside this crate, with a name, wherever a [`StartupConfig`] goes.
//!
//! It is cloned for every flow that uses it, and each clone learns its host first ([`Startup::set_context`]).

use alloc::boxed::Box;

use super::{Startup, StartupConfig, StartupContext, Step};
use crate::custom::Custom;
use crate::event::{Ack, DecisionLog, Position};
use crate::launch::Continuation;
use crate::path::PathKnowledge;
use crate::registry::ConfigError;
use crate::rtt::RttEstimator;
use crate::time::{Duration, Timestamp};
use crate::units::Bytes;
use crate::window::Window;

/// A startup scheme of the caller's, in its state before the first launch.
pub type CustomStartup = Custom<dyn Startup>;

impl CustomStartup {
    pub(super) const SUMMARY: &'static str = "a scheme from outside this program";
    pub(super) const REFERENCE: &'static str = "its author";
    pub(super) const PHASES: &'static str = "what its author chose; as its author decides";

    /// A scheme with this name. Flows begin with clones of `prototype`. A clone is tried with a launch and an
    /// acknowledgement, both of which must give a window. A window of zero that comes later is held to one segment.
    ///
    /// # Errors
    ///
    /// A name that another scheme has, or that cannot be written in a spec: allowed are lower-case letters, digits and
    /// hyphens. A window of zero in the trial.
    pub fn new(name: &'static str, prototype: Box<dyn Startup>) -> Result<Self, ConfigError> {
        let scheme = Self::named(name, StartupConfig::NAMES, prototype)?;
        match without_window(scheme.fresh()) {
            Some(field) => Err(ConfigError::new(field, "a window of 0 bytes", "a window of 1 byte or more")),
            None => Ok(scheme),
        }
    }

    pub(super) fn build(&self, context: StartupContext) -> Box<dyn Startup> {
        let mut scheme = self.fresh();
        scheme.set_context(context);
        scheme
    }
}

/// What gives a window of zero in a trial: the launch or the first acknowledgement.
fn without_window(mut trial: Box<dyn Startup>) -> Option<&'static str> {
    let (context, handshake) = (StartupContext::USUAL, Duration::from_millis(50));
    trial.set_context(context);
    let path = PathKnowledge { handshake_rtt: Some(handshake), ..PathKnowledge::default() };
    let launch = trial.launch(Timestamp::ZERO, &path, &mut DecisionLog::default());
    if launch.cwnd == Bytes::ZERO {
        return Some("launch");
    }
    if launch.continuation.is_some() {
        return None;
    }
    let now = Timestamp::ZERO + handshake;
    let ack = Ack { rtt: Some(handshake), ..Ack::new(now, context.segment, 1, Position::default()) };
    let mut rtt = RttEstimator::new(handshake);
    rtt.update(now, handshake, Duration::ZERO);
    let window = Window { cwnd: launch.cwnd, ssthresh: Bytes::MAX };
    let (Step::Continue { cwnd } | Step::Exit(Continuation { cwnd, .. })) = trial.on_ack(&ack, window, true, &rtt);
    (cwnd == Bytes::ZERO).then_some("on_ack")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launch;
    use crate::startup::{Increase, slow_start};

    fn boxed() -> Box<dyn Startup> {
        let context = slow_start::tests::context(Increase::Bytes);
        Box::new(slow_start::SlowStart::new(slow_start::Config::default(), context))
    }

    #[test]
    fn names_of_other_schemes_and_names_that_no_spec_can_have_are_refused() {
        assert_eq!(CustomStartup::new("half-of-the-hint", boxed()).map(|scheme| scheme.name()), Ok("half-of-the-hint"));
        for taken in StartupConfig::NAMES {
            assert_eq!(CustomStartup::new(taken, boxed()).map_err(|error| error.field), Err("name"), "{taken}");
        }
        for unwritable in ["", "Mine", "my scheme", "a:b", "a,b", "a=b", "a/b"] {
            assert!(CustomStartup::new(unwritable, boxed()).is_err(), "{unwritable}");
        }
    }

    /// Windows that do not depend on anything: of the launch and of the first acknowledgement.
    #[derive(Clone, Debug)]
    struct Fixed(u64, u64);

    impl Startup for Fixed {
        fn launch(&mut self, _: Timestamp, _: &PathKnowledge, _: &mut DecisionLog) -> Launch {
            Launch::window(Bytes::new(self.0))
        }

        fn on_ack(&mut self, _: &Ack, _: Window, _: bool, _: &RttEstimator) -> Step {
            Step::Continue { cwnd: Bytes::new(self.1) }
        }
    }

    #[test]
    fn a_window_of_zero_is_refused_with_what_is_allowed() {
        let tried = |launch, next| CustomStartup::new("mine", Box::new(Fixed(launch, next)));
        assert!(tried(1, 1).is_ok());
        for (launch, next, field) in [(0, 1, "launch"), (1, 0, "on_ack")] {
            let error = tried(launch, next).unwrap_err();
            assert_eq!((error.field, &*error.allowed), (field, "a window of 1 byte or more"));
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn it_is_written_but_never_read() {
        let scheme = StartupConfig::Custom(CustomStartup::new("mine", boxed()).unwrap());
        let written = serde_json::to_value(&scheme).unwrap();
        assert_eq!((&written["kind"], &written["name"]), (&"custom".into(), &"mine".into()));
        assert!(serde_json::from_value::<StartupConfig>(written).is_err());
    }
}
