//! Flows: applications whose data travels from one end to the other.
//!
//! | Looking for | Where |
//! |---|---|
//! | the two ends of a flow as a world sees them | [`ends`] |
//! | model ends: TCP, QUIC and packets without congestion control | `model/` |

use std::sync::Arc;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::Controller;
use flowstart_core::registry::ConfigError;
use flowstart_core::sources::Sources;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};

use crate::network::Route;
use crate::traffic::Pattern;
use crate::transport::handshake::TrainReport;
use crate::transport::profile::Profile;

pub mod ends;
pub(crate) mod model;

use ends::{Ends, Silent};
use model::ModelEnds;

/// The configuration of a flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Transport.
    pub profile: Arc<Profile>,
    /// Startup scheme.
    pub startup: StartupConfig,
    /// Congestion avoidance.
    pub avoidance: AvoidanceConfig,
    /// Application.
    pub pattern: Pattern,
    /// Links that its packets cross.
    pub route: Route,
    /// What is known of its path before the handshake, and by whom.
    pub sources: Sources,
    /// What its client reports of the rate at which the server's part of the handshake arrived.
    pub train: TrainReport,
    /// Its start.
    pub start: Timestamp,
    /// Time from the request to the data: the server's think time.
    pub think_time: Duration,
    /// The number of the ensemble in its network whose window it shares, if its scheme shares one.
    pub ensemble: Option<u32>,
}

impl FlowConfig {
    /// A flow with the startup scheme and congestion avoidance of its profile, starting at the origin.
    pub fn new(profile: Arc<Profile>, pattern: Pattern, route: Route) -> Self {
        Self {
            startup: profile.startup.clone(),
            avoidance: profile.avoidance.clone(),
            profile,
            pattern,
            route,
            sources: Sources::default(),
            train: TrainReport::default(),
            start: Timestamp::ZERO,
            think_time: Duration::ZERO,
            ensemble: None,
        }
    }

    /// Refuses a profile, a scheme or a congestion avoidance from which no controller can be made. Code that reads them
    /// from user input calls this, or its parts, before a world gets the flow.
    ///
    /// # Errors
    ///
    /// Everything that [`ControllerConfig::validate`](flowstart_core::controller::ControllerConfig::validate) refuses.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.profile.controller(self.startup.clone(), self.avoidance.clone()).validate()
    }

    /// The controller of this configuration.
    pub(crate) fn controller(&self) -> Controller {
        let config = self.profile.controller(self.startup.clone(), self.avoidance.clone());
        match Controller::new(config) {
            Ok(controller) => controller,
            Err(error) => panic!("a flow that was not validated: {error}"),
        }
    }
}

/// The ends of a flow, the model's or external.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "almost all are the model's, which a box would keep apart from each other"
)]
pub(crate) enum EndsState {
    Model(ModelEnds),
    Other(Box<dyn Ends>),
}

impl EndsState {
    #[inline]
    pub(crate) fn as_dyn(&mut self) -> &mut dyn Ends {
        match self {
            Self::Model(ends) => ends,
            Self::Other(ends) => ends.as_mut(),
        }
    }

    /// The model's ends, if it has them.
    pub(crate) fn model(&self) -> Option<&ModelEnds> {
        match self {
            Self::Model(ends) => Some(ends),
            Self::Other(_) => None,
        }
    }

    /// The model's ends, if it has them.
    pub(crate) fn model_mut(&mut self) -> Option<&mut ModelEnds> {
        match self {
            Self::Model(ends) => Some(ends),
            Self::Other(_) => None,
        }
    }
}

impl Clone for EndsState {
    fn clone(&self) -> Self {
        match self {
            Self::Model(ends) => Self::Model(ends.clone()),
            Self::Other(ends) => Self::Other(ends.fork().unwrap_or_else(|| Box::new(Silent))),
        }
    }
}
