//! Factories of controllers for a host, and the wrapper of a controller that all hosts share.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use flowstart_core::avoidance::{AvoidanceConfig, AvoidanceState};
use flowstart_core::controller::{Controller, ControllerConfig};
use flowstart_core::needs::Needs;
use flowstart_core::path::PathKnowledge;
use flowstart_core::startup::quick_start::{self, OptionRoom};
use flowstart_core::startup::{StartupConfig, StartupState};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::Unsupported;
use crate::clock::Clock;
use crate::flow::Flow;
use crate::sender::{Answer, Sender};

/// A QUIC stack, described by what it can give to schemes.
pub trait Host {
    /// The name in errors.
    const NAME: &'static str;
    /// What it can give to schemes.
    const GIVES: Needs;
}

/// Refuses what cannot work on the host `H`. `name` is that of the algorithm.
fn check<H: Host>(name: &'static str, needs: Needs) -> Result<(), Unsupported> {
    let missing = needs.without(H::GIVES);
    if missing == Needs::NONE { Ok(()) } else { Err(Unsupported::Needs { host: H::NAME, scheme: name, missing }) }
}

/// Refuses what no host of this crate can follow of a request for a rate.
fn check_request<H: Host>(request: &quick_start::Config) -> Result<(), Unsupported> {
    let refused = |key, why| Err(Unsupported::Request { host: H::NAME, key, why });
    if request.asks_in_connection() {
        return refused("after_idle or after_move", "its connections ask once, with the handshake");
    }
    if request.granularity > Duration::ZERO {
        return refused("granularity", "it paces in its own way");
    }
    if request.room == OptionRoom::Connection {
        return refused("room=connection", "its packets do not become smaller by the option");
    }
    Ok(())
}

/// Builds controllers of one kind for the host `H`.
///
/// A host builds a controller for each path of a connection. The first controller of a [`Flow`] launches with the
/// flow's knowledge. A later one, after the connection has moved, starts without it ([`PathKnowledge::for_new_path`]).
/// Without a flow, nothing is known of any path.
#[derive(Debug)]
pub struct Factory<H> {
    config: ControllerConfig,
    algorithms: Option<Arc<Mutex<(StartupState, AvoidanceState)>>>,
    flow: Option<Arc<Flow>>,
    host: PhantomData<fn() -> H>,
}

impl<H> Clone for Factory<H> {
    fn clone(&self) -> Self {
        let Self { config, algorithms, flow, host } = self;
        Self { config: config.clone(), algorithms: algorithms.clone(), flow: flow.clone(), host: *host }
    }
}

impl<H: Host> Factory<H> {
    /// Controllers of this pair with the defaults of RFC 9002 and pacing, which undo reductions after spurious losses.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the pair is meaningless, a parameter is out of its range, or the scheme cannot work on this
    /// host.
    pub fn new(startup: StartupConfig, avoidance: AvoidanceConfig) -> Result<Self, Unsupported> {
        let config = ControllerConfig { undo: true, ..ControllerConfig::new(startup, avoidance) };
        Self::with_config(config)
    }

    /// Controllers with these policies. The segment size is the host's packet size, whatever `config` says.
    ///
    /// # Errors
    ///
    /// As [`Factory::new`].
    pub fn with_config(config: ControllerConfig) -> Result<Self, Unsupported> {
        // An algorithm is built to say what it needs, so its parameters must be in range before.
        config.startup.validate()?;
        config.avoidance.validate()?;
        check::<H>(config.avoidance.name(), config.avoidance.needs())?;
        if let Some(request) = config.startup.request() {
            check_request::<H>(request)?;
        }
        check::<H>(config.startup.name(), config.startup.needs())?;
        Self::forced(config)
    }

    /// Like [`Factory::with_config`], but accepts schemes whose needs the host does not meet. The result is then not
    /// the requested scheme.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Config`] when the pair is meaningless, or a parameter or a policy is out of its range.
    pub fn forced(config: ControllerConfig) -> Result<Self, Unsupported> {
        config.validate()?;
        Ok(Self { config, algorithms: None, flow: None, host: PhantomData })
    }

    /// The names of the schemes that work on this host beside this congestion avoidance.
    pub fn schemes(avoidance: &AvoidanceConfig) -> Vec<&'static str> {
        let works = |one: &StartupConfig| Self::new(one.clone(), avoidance.clone()).is_ok();
        StartupConfig::defaults().iter().filter(|one| works(one)).map(StartupConfig::name).collect()
    }

    /// Controllers with the caller's own algorithms: schemes that live outside `flowstart-core`
    /// ([`StartupState::Custom`], [`AvoidanceState::Custom`]). Each controller gets a clone of them as they are now.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the host does not meet their needs, or the pair is meaningless.
    pub fn with_algorithms(self, startup: StartupState, avoidance: AvoidanceState) -> Result<Self, Unsupported> {
        check::<H>("the caller's", startup.needs().and(avoidance.needs()))?;
        Controller::with_algorithms(self.config.clone(), startup.clone(), avoidance.clone())?;
        Ok(Self { algorithms: Some(Arc::new(Mutex::new((startup, avoidance)))), ..self })
    }

    /// The factory of one connection.
    #[must_use]
    pub fn for_flow(&self, flow: Arc<Flow>) -> Self {
        Self { flow: Some(flow), ..self.clone() }
    }

    /// What its controllers are made of.
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }

    /// A controller for a path with packets of this size, which the host's clock drives.
    pub(crate) fn host<C>(&self, clock: C, packet: u16) -> Hosted<C> {
        let config = ControllerConfig { segment: Bytes::new(packet.max(1).into()), ..self.config.clone() };
        let initial_window = config.segment * config.initial_window;
        let controller = match &self.algorithms {
            None => Controller::new(config),
            Some(algorithms) => {
                let (startup, avoidance) = algorithms.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Controller::with_algorithms(config, startup, avoidance)
            }
        };
        let controller = controller.expect("the configuration is that of this factory, with a packet of any size");
        let flow = self.flow.clone().unwrap_or_else(|| Flow::new(PathKnowledge::default()));
        Hosted {
            sender: Mutex::new(Sender::new(controller, Bytes::new(packet.into()), flow)),
            settled: None,
            clock,
            initial_window,
        }
    }
}

/// A sender where a host keeps it.
#[derive(Debug)]
pub(crate) struct Hosted<C = Clock> {
    /// A mutex, because hosts ask for the window through a shared reference, and the latest event may change the
    /// answer.
    sender: Mutex<Sender>,
    /// The answer, if the latest event does not change it. So most packets need no lock.
    settled: Option<Answer>,
    pub(crate) clock: C,
    initial_window: Bytes,
}

impl<C: Copy> Clone for Hosted<C> {
    fn clone(&self) -> Self {
        let Self { sender, settled, clock, initial_window } = self;
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self { sender: Mutex::new(sender), settled: *settled, clock: *clock, initial_window: *initial_window }
    }
}

impl Hosted {
    /// The time of an event.
    pub(crate) fn at(&mut self, now: Instant) -> Timestamp {
        self.clock.at(0, now)
    }

    /// The time when the event's packet left.
    pub(crate) fn left_at(&mut self, sent: Instant) -> Timestamp {
        self.clock.at(1, sent)
    }
}

impl Hosted {
    /// With its part in the window that its flow shares, if its scheme shares one.
    #[must_use]
    pub(crate) fn sharing(mut self) -> Self {
        let origin = self.clock.origin();
        self.tell(|sender| sender.share_from(origin));
        self
    }
}

impl<C> Hosted<C> {
    /// Tells the sender of an event.
    pub(crate) fn tell(&mut self, event: impl FnOnce(&mut Sender)) {
        let sender = self.sender.get_mut().unwrap_or_else(PoisonError::into_inner);
        event(sender);
        self.settled = sender.settled();
    }

    /// Everything that a host may ask for.
    #[inline]
    pub(crate) fn answer(&self) -> Answer {
        self.settled.unwrap_or_else(|| self.sender.lock().unwrap_or_else(PoisonError::into_inner).answer())
    }

    pub(crate) fn initial_window(&self) -> Bytes {
        self.initial_window
    }
}
