//! What a server learns of the path to a client before it launches, and from where.
//!
//! Path store, oracle and interface are asked at once, while the handshake runs. A source that does not answer within
//! the bound is left out: a launch never waits longer. The client's own statements (its hint, and the path state that
//! it kept) come with its packets, and the application's request with a request.

mod check;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use flowstart_core::path::SavedPath;
use flowstart_core::sources::{Sources, Statement, Verdict};
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::Flow;
use flowstart_quic::hint::policy::Evidence;
use flowstart_sensing::application_request::ApplicationRequest;
use flowstart_sensing::interface;
use flowstart_sensing::oracle::{Capacity, ClientConfig, OracleClient, OracleError};
use flowstart_sensing::path_store::UnixTime;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

pub use self::check::Lack;
use self::check::check;
use super::paths::{self, Paths, Saver};
use super::{Config, ServerError};
use crate::metrics::Metrics;

/// The longest that a launch waits for a source.
const BOUND: Duration = Duration::from_millis(50);
/// Questions to one source at a time. A source that does not answer holds no more threads than that.
const QUESTIONS: usize = 16;
/// No path is faster, so a source that states more states nonsense.
pub const FASTEST: Rate = Rate::from_mbit(1_000_000);

pub(super) use flowstart_core::sources::name;

/// Which interface's speed counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceChoice {
    /// The one through which packets to the client leave.
    Route,
    /// The one of this name.
    Name(String),
}

/// A server's sources.
pub(super) struct SourcesOfServer {
    /// The path store, or why it cannot be used.
    paths: Option<Result<Arc<Paths>, String>>,
    saver: Option<Saver>,
    oracle: Option<Arc<OracleClient>>,
    interface: Option<InterfaceChoice>,
    interfaces: interface::Config,
    /// Whether the policy for hints goes by the speed of a link: the interface that is named, or the client's route.
    judges_by_link: bool,
    /// Of path store, oracle and interface.
    questions: [Arc<Semaphore>; 3],
    deadline: Option<Duration>,
}

/// What the sources say of one client.
pub(super) struct Heard {
    path_store: Option<Told<paths::Known>>,
    oracle: Option<Told<Capacity>>,
    interface: Option<Told<Rate>>,
    /// The speed by which the policy for hints goes; none as well where it is not known.
    link: Option<Rate>,
}

/// What a source says, if anything, or why it does not.
type Told<T> = Result<Option<T>, (Verdict, String)>;

impl SourcesOfServer {
    /// The sources that the configuration names. Warns of a path store that cannot be used, if no scheme needs it.
    ///
    /// # Errors
    ///
    /// A source that cannot be asked, or a scheme that could never start from any.
    pub(super) fn new(config: &Config, metrics: &Arc<Metrics>) -> Result<Self, ServerError> {
        let warnings = &config.warnings;
        if let Some(InterfaceChoice::Name(name)) = &config.interface {
            // Its speed may come and go, its name may not.
            config.interfaces.speed(name).map_err(|error| ServerError::Source(error.to_string()))?;
        }
        // Before anything is opened, because opening a path store makes its file.
        check(config, None)?;
        let oracle = config.oracle.as_ref().map(|server| {
            let bound = flowstart_core::time::Duration::from_millis(BOUND.as_millis() as u64);
            let asked = ClientConfig { server: server.clone(), bound, ..ClientConfig::default() };
            asked.validate().map_err(|error| error.to_string())?;
            Ok::<_, String>(Arc::new(OracleClient::new(asked)))
        });
        let paths = config.path_store.as_deref().map(|name| Paths::open(name, warnings, metrics).map(Arc::new));
        if let Some(Err(problem)) = &paths {
            check(config, Some(problem))?;
            warnings.tell(format_args!("{problem}; connections start without saved paths"));
        }
        Ok(Self {
            saver: paths.clone().and_then(|paths| Saver::new(paths.ok()?)),
            paths,
            oracle: oracle.transpose().map_err(ServerError::Source)?,
            interface: config.interface.clone(),
            interfaces: config.interfaces.clone(),
            judges_by_link: config.hint_policy.needs_link(),
            deadline: config.deadline,
            questions: std::array::from_fn(|_| Arc::new(Semaphore::new(QUESTIONS))),
        })
    }

    /// Where the measurements of paths go.
    pub(super) fn saver(&self) -> Option<&Saver> {
        self.saver.as_ref()
    }

    /// Asks all of them at once.
    pub(super) async fn ask(self: Arc<Self>, client: IpAddr) -> Heard {
        let [of_store, of_oracle, of_interface] = &self.questions;
        let path_store = async {
            let paths = match self.paths.clone()? {
                Ok(paths) => paths,
                Err(problem) => return Some(Err(failed(&problem))),
            };
            Some(in_time(of_store, move || paths.look_up(client).map_err(|error| failed(&error))).await)
        };
        let oracle = async {
            let oracle = self.oracle.clone()?;
            let verdict = |error: OracleError| match error {
                OracleError::Late(_) => (Verdict::Late, error.to_string()),
                _ => failed(&error),
            };
            Some(in_time(of_oracle, move || oracle.capacity(client, UnixTime::now()).map_err(verdict)).await)
        };
        let speed = async {
            // A policy for hints goes by the route where no interface is named.
            let by_policy = self.judges_by_link.then_some(InterfaceChoice::Route);
            let (choice, interfaces) = (self.interface.clone().or(by_policy)?, self.interfaces.clone());
            let speed = move || match choice {
                InterfaceChoice::Route => interfaces.speed_towards(client),
                InterfaceChoice::Name(name) => interfaces.speed(&name),
            };
            Some(in_time(of_interface, move || speed().map_err(|error| failed(&error))).await)
        };
        let (path_store, oracle, speed) = tokio::join!(path_store, oracle, speed);
        let link = speed.as_ref().and_then(|speed| *speed.as_ref().ok()?);
        Heard { path_store, oracle, interface: speed.filter(|_| self.interface.is_some()), link }
    }

    /// The application's request for an answer of this size. One that can wait (RFC 9218) asks for no rate.
    pub(super) fn request(&self, flow: &Flow, size: Bytes, can_wait: bool) {
        let Some(deadline) = self.deadline.filter(|_| size > Bytes::ZERO) else { return };
        if can_wait {
            let why = "its urgency is lower than usual";
            return flow.hear(|sources| sources.lack(name::APPLICATION, Verdict::Missing, why));
        }
        let deadline =
            flowstart_core::time::Duration::from_nanos(u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX));
        let asked = ApplicationRequest { size: Some(size), deadline: Some(deadline), rate: None }.requested_rate();
        flow.hear(|sources| match asked {
            Ok(Some(rate)) => believe(sources, name::APPLICATION, Statement::Requested(rate), None),
            Ok(None) => {}
            Err(error) => sources.lack(name::APPLICATION, Verdict::Failed, &error.to_string()),
        });
    }
}

/// What blocks, in a thread of its own; nobody waits for it, or for one of `questions`, beyond the bound.
async fn in_time<T: Send + 'static>(
    questions: &Arc<Semaphore>,
    asked: impl FnOnce() -> Result<T, (Verdict, String)> + Send + 'static,
) -> Result<T, (Verdict, String)> {
    let answered = async {
        let question = questions.clone().acquire_owned().await.ok()?;
        // The question ends with its answer, not with the interest in it.
        let asked = move || {
            let answer = asked();
            drop(question);
            answer
        };
        spawn_blocking(asked).await.ok()
    };
    match tokio::time::timeout(BOUND, answered).await {
        Ok(Some(answer)) => answer,
        Ok(None) => Err((Verdict::Failed, "it cannot be asked".to_owned())),
        Err(_) => Err((Verdict::Late, format!("no answer within {} ms", BOUND.as_millis()))),
    }
}

/// A source that gave no answer, and why.
fn failed(error: &impl ToString) -> (Verdict, String) {
    (Verdict::Failed, error.to_string())
}

/// A statement that counts as it is, unless it is nonsense.
pub(super) fn believe(
    sources: &mut Sources,
    source: &'static str,
    statement: Statement,
    age: Option<flowstart_core::time::Duration>,
) {
    match statement.rate() {
        Some(rate) if rate > Rate::ZERO && rate <= FASTEST => {
            sources.state(source, statement, age, Some(statement), "");
        }
        _ => sources.state(source, statement, age, None, "no path is so fast, or so slow"),
    }
}

impl Heard {
    /// Tells a connection, and returns what its client's hints are judged by.
    pub(super) fn tell(self, flow: &Flow) -> Evidence {
        let mut delivered = None;
        flow.hear(|sources| {
            match self.path_store {
                None => {}
                Some(Ok(known)) => {
                    delivered = known.and_then(|known| known.delivered);
                    match known.and_then(|known| known.saved) {
                        Some(saved) => believe(sources, name::PATH_STORE, Statement::Saved(saved), Some(saved.age)),
                        None => sources.lack(name::PATH_STORE, Verdict::Missing, ""),
                    }
                }
                Some(Err((verdict, reason))) => sources.lack(name::PATH_STORE, verdict, &reason),
            }
            match self.oracle {
                None => {}
                Some(Ok(Some(capacity))) => {
                    let age =
                        flowstart_core::time::Duration::from_nanos(capacity.age_seconds.saturating_mul(1_000_000_000));
                    believe(sources, name::ORACLE, Statement::Oracle(capacity.rate), Some(age));
                }
                Some(Ok(None)) => sources.lack(name::ORACLE, Verdict::Missing, ""),
                Some(Err((verdict, reason))) => sources.lack(name::ORACLE, verdict, &reason),
            }
            match self.interface {
                None => {}
                Some(Ok(Some(rate))) => believe(sources, name::INTERFACE, Statement::Interface(rate), None),
                Some(Ok(None)) => sources.lack(name::INTERFACE, Verdict::Missing, "its speed is not known"),
                Some(Err((verdict, reason))) => sources.lack(name::INTERFACE, verdict, &reason),
            }
        });
        Evidence { link: self.link, delivered, ..Evidence::default() }
    }
}

/// The client kept what an earlier connection measured. The store may know of later connections.
pub(super) fn remember(sources: &mut Sources, told: SavedPath) {
    let statement = Statement::Saved(told);
    if sources.knowledge().saved.is_none_or(|saved| told.age < saved.age) {
        believe(sources, name::PATH_STATE, statement, Some(told.age));
    } else {
        sources.supersede(name::PATH_STATE, statement, Some(told.age));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_is_believed_beyond_any_path() {
        let mut sources = Sources::default();
        for rate in [Rate::ZERO, Rate::from_bits_per_sec(1_000_000_000_000_000_000), Rate::from_bits_per_sec(u64::MAX)]
        {
            believe(&mut sources, name::ORACLE, Statement::Oracle(rate), None);
            assert_eq!((sources.findings()[0].verdict, sources.knowledge().oracle_rate), (Verdict::Refused, None));
        }
        believe(&mut sources, name::ORACLE, Statement::Oracle(FASTEST), None);
        assert_eq!(sources.knowledge().oracle_rate, Some(FASTEST));
    }
}
