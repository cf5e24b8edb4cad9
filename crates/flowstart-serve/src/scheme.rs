//! The startup scheme and congestion avoidance of connections.

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::controller::ControllerConfig;
use flowstart_core::needs::Needs;
use flowstart_core::sources::Known;
use flowstart_core::startup::{StartupConfig, quick_start, slow_start};
use flowstart_quic::{ControllerFactory, Unsupported};

/// What stands behind a scheme's name in metrics and logs where it was not drawn for the connection: where its network,
/// the kill switch or losses decided. Such connections are no part of an experiment, for what decided may also decide
/// how long they take.
const NOT_DRAWN: &str = " (not drawn)";

/// The name of a scheme in metrics and logs.
pub(crate) fn label(name: &str, is_drawn: bool) -> String {
    if is_drawn { name.to_owned() } else { format!("{name}{NOT_DRAWN}") }
}

/// The scheme behind a name in metrics and logs, and whether it was drawn.
pub(crate) fn of_label(label: &str) -> (&str, bool) {
    label.strip_suffix(NOT_DRAWN).map_or((label, true), |name| (name, false))
}

/// A startup scheme with its congestion avoidance, under the name that it has in metrics and logs.
#[derive(Debug)]
pub struct Scheme {
    name: String,
    factory: ControllerFactory,
    shares_window: bool,
    /// The congestion avoidance as logs write it.
    avoidance: Option<String>,
}

impl Scheme {
    /// This scheme and congestion avoidance.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the QUIC stack cannot run them.
    pub fn new(name: &str, startup: StartupConfig, avoidance: AvoidanceConfig) -> Result<Self, Unsupported> {
        Ok(Self::of(name, ControllerFactory::new(startup, avoidance)?))
    }

    /// A scheme and congestion avoidance with policies of the caller's.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the QUIC stack cannot run them.
    pub fn with_config(name: &str, config: ControllerConfig) -> Result<Self, Unsupported> {
        Ok(Self::of(name, ControllerFactory::with_config(config)?))
    }

    fn of(name: &str, factory: ControllerFactory) -> Self {
        let shares_window = factory.config().startup.needs().contains(Needs::SHARED_WINDOW);
        Self { name: name.to_owned(), factory, shares_window, avoidance: None }
    }

    /// With `text` for the congestion avoidance in logs, from which a replay takes it, if that is what it has: the
    /// plain scheme has CUBIC where the other starts by itself.
    #[must_use]
    pub fn with_avoidance_text(self, text: &str, avoidance: &AvoidanceConfig) -> Self {
        let is_it = self.factory.config().avoidance == *avoidance;
        Self { avoidance: is_it.then(|| text.to_owned()), ..self }
    }

    /// The congestion avoidance as logs write it; `None`: they do not.
    pub(crate) fn avoidance_text(&self) -> Option<&str> {
        self.avoidance.as_deref()
    }

    /// As it is, if it works where nobody asks routers.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Needs`] when it needs their approvals.
    pub fn without_approvals(self) -> Result<Self, Unsupported> {
        let startup = &self.factory.config().startup;
        if startup.needs().contains(Needs::APPROVAL) {
            return Err(Unsupported::Needs { host: "this command", scheme: startup.name(), missing: Needs::APPROVAL });
        }
        Ok(self)
    }

    /// The names of the schemes that work beside this congestion avoidance.
    pub fn all(avoidance: &AvoidanceConfig) -> Vec<&'static str> {
        ControllerFactory::schemes(avoidance)
    }

    /// Slow start, the behaviour without this crate. Its congestion avoidance is CUBIC if `avoidance` does not fit slow
    /// start.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the QUIC stack runs neither.
    pub fn plain(avoidance: &AvoidanceConfig) -> Result<Self, Unsupported> {
        let with =
            |avoidance| Self::new("slow-start", StartupConfig::SlowStart(slow_start::Config::default()), avoidance);
        with(avoidance.clone()).or_else(|_| with(AvoidanceConfig::Cubic(cubic::Config::default())))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the connections of one client share a window.
    pub(crate) fn shares_window(&self) -> bool {
        self.shares_window
    }

    /// What it can start from, of what sources state.
    pub(crate) fn senses(&self) -> Vec<Known> {
        self.factory.config().startup.senses()
    }

    /// What it asks routers for, if it does.
    pub(crate) fn request(&self) -> Option<&quick_start::Config> {
        self.factory.config().startup.request()
    }

    /// The factory of its connections' controllers.
    pub(crate) fn factory(&self) -> &ControllerFactory {
        &self.factory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_need_approvals_are_refused_where_there_are_none() {
        let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
        let without = |name: &&str| {
            let startup = StartupConfig::defaults().into_iter().find(|one| one.name() == *name)?;
            Scheme::new(name, startup, avoidance.clone()).ok()?.without_approvals().ok()
        };
        let (kept, refused): (Vec<_>, Vec<_>) =
            Scheme::all(&avoidance).into_iter().partition(|name| without(name).is_some());
        assert!(kept.contains(&"blitzstart"), "{kept:?}");
        assert_eq!(refused, ["quick-start"]);
    }
}
