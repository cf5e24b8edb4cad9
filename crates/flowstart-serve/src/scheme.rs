//! The startup scheme and congestion avoidance of connections.

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::needs::Needs;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_quic::{ControllerFactory, Unsupported};

/// A startup scheme with its congestion avoidance, under the name that it has in metrics and logs.
#[derive(Debug)]
pub struct Scheme {
    name: String,
    factory: ControllerFactory,
}

impl Scheme {
    /// This scheme and congestion avoidance.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the QUIC stack cannot run them.
    pub fn new(name: &str, startup: StartupConfig, avoidance: AvoidanceConfig) -> Result<Self, Unsupported> {
        Ok(Self { name: name.to_owned(), factory: ControllerFactory::new(startup, avoidance)? })
    }

    /// The names of the schemes that work beside this congestion avoidance. Nobody asks routers for an approval here.
    pub fn all(avoidance: &AvoidanceConfig) -> Vec<&'static str> {
        let asks = |name: &str| {
            let named = |one: &StartupConfig| one.name() == name && one.needs().contains(Needs::APPROVAL);
            StartupConfig::defaults().iter().any(named)
        };
        ControllerFactory::schemes(avoidance).into_iter().filter(|name| !asks(name)).collect()
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

    /// The factory of its connections' controllers.
    pub(crate) fn factory(&self) -> &ControllerFactory {
        &self.factory
    }
}
