//! The startup scheme and congestion avoidance of connections.

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::needs::Needs;
use flowstart_core::sources::Known;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_quic::{ControllerFactory, Unsupported};

/// A startup scheme with its congestion avoidance, under the name that it has in metrics and logs.
#[derive(Debug)]
pub struct Scheme {
    name: String,
    factory: ControllerFactory,
    shares_window: bool,
}

impl Scheme {
    /// This scheme and congestion avoidance.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the QUIC stack cannot run them, or when the scheme needs routers' approvals.
    pub fn new(name: &str, startup: StartupConfig, avoidance: AvoidanceConfig) -> Result<Self, Unsupported> {
        if asks(&startup) {
            return Err(Unsupported::Approval { host: "this program", scheme: startup.name() });
        }
        let shares_window = startup.needs().contains(Needs::SHARED_WINDOW);
        Ok(Self { name: name.to_owned(), factory: ControllerFactory::new(startup, avoidance)?, shares_window })
    }

    /// The names of the schemes that work beside this congestion avoidance.
    pub fn all(avoidance: &AvoidanceConfig) -> Vec<&'static str> {
        let mut names = ControllerFactory::schemes(avoidance);
        names.retain(|name| !StartupConfig::defaults().iter().any(|one| one.name() == *name && asks(one)));
        names
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

    /// The factory of its connections' controllers.
    pub(crate) fn factory(&self) -> &ControllerFactory {
        &self.factory
    }
}

/// Whether routers have to approve a rate. On sockets nobody asks them: the request is an option of IP.
fn asks(startup: &StartupConfig) -> bool {
    startup.needs().contains(Needs::APPROVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_need_approvals_are_refused_and_not_listed() {
        let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
        let names = Scheme::all(&avoidance);
        assert!(names.contains(&"blitzstart"), "{names:?}");
        for startup in StartupConfig::defaults() {
            let name = startup.name();
            let taken = Scheme::new(name, startup.clone(), avoidance.clone());
            assert_eq!(taken.is_ok(), names.contains(&name), "{name}");
            assert_eq!(asks(&startup), matches!(taken, Err(Unsupported::Approval { .. })), "{name}");
        }
        assert!(StartupConfig::defaults().iter().any(asks));
    }
}
