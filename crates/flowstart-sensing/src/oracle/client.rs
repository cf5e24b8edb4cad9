//! The client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowstart_core::time::Duration;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::message::{AnswerError, told_capacity};
use super::{BODY_MAX, Capacity, std_duration};
use crate::path_store::UnixTime;

/// The oracle's address, and time limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConfig {
    /// Where the service is, `http://host[:port]`. Default: port 8085 of this host.
    pub server: String,
    /// The longest that a question takes, name resolution included. Default 20 ms: chosen, since the answer is needed
    /// before the handshake ends.
    pub bound: Duration,
    /// How long the client reuses an answer, also a negative one, in whole seconds. Default 60 s: chosen, short
    /// compared with the lifetime of the observations behind it.
    pub remember: Duration,
    /// How long the client does not ask after a failure, in whole seconds. Default 5 s: chosen.
    pub rest: Duration,
    /// Answers kept at the same time. Default 4096: chosen, below 1 MB.
    pub answers: u32,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            server: "http://127.0.0.1:8085".into(),
            bound: Duration::from_millis(20),
            remember: Duration::from_millis(60_000),
            rest: Duration::from_millis(5000),
            answers: 4096,
        }
    }
}

/// A server that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`server` is `{0}`: use http://HOST or http://HOST:PORT")]
pub struct ServerError(String);

impl ClientConfig {
    /// Refuses a server that is not an HTTP address.
    pub fn validate(&self) -> Result<(), ServerError> {
        let refused = || ServerError(self.server.clone());
        let server: ureq::http::Uri = self.server.parse().map_err(|_| refused())?;
        let plain =
            server.scheme_str() == Some("http") && matches!(server.path(), "/" | "") && server.query().is_none();
        // A host of no letters is what is left of `http://:80`.
        if plain && server.host().is_some_and(|host| !host.is_empty()) { Ok(()) } else { Err(refused()) }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// It did not answer in time.
    #[error("the oracle did not answer within {0}")]
    Late(Duration),
    /// It could not be asked.
    #[error("the oracle could not be asked: {0}")]
    Unreachable(#[source] Box<ureq::Error>),
    /// It failed a moment ago, so it is not asked.
    #[error("the oracle failed and is not asked again for {0}")]
    Resting(Duration),
    /// It answered with a status that says neither yes nor no.
    #[error("the oracle answered with status {0}")]
    Status(u16),
    /// Its answer is none.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// Asks an oracle. Calls block, no longer than the bound.
#[derive(Debug)]
pub struct OracleClient {
    config: ClientConfig,
    agent: ureq::Agent,
    memory: Mutex<Memory>,
}

/// What the client remembers.
#[derive(Debug, Default)]
struct Memory {
    answers: BTreeMap<IpNet, (UnixTime, Option<Capacity>)>,
    rests_since: Option<UnixTime>,
}

impl OracleClient {
    /// A client; it connects with the first question.
    pub fn new(config: ClientConfig) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(std_duration(config.bound)))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            // A kept connection that the service has closed would look like a failure of the service.
            .max_idle_connections(0)
            .build()
            .new_agent();
        Self { config, agent, memory: Mutex::default() }
    }

    /// What the oracle knows of `address`, now or a moment ago.
    pub fn capacity(&self, address: IpAddr, now: UnixTime) -> Result<Option<Capacity>, OracleError> {
        let address = address.to_canonical();
        {
            let mut memory = self.memory();
            if let Some(answer) = memory.find(address, now, self.config.remember) {
                return Ok(answer);
            }
            if let Some(since) = memory.rests_since {
                let left = self.config.rest.saturating_sub(now.since(since));
                // After a clock was set back nothing is known of how long it has rested.
                if now >= since && left > Duration::ZERO {
                    return Err(OracleError::Resting(left));
                }
                // The next caller tries; the others go on without the oracle until the result is known.
                memory.rests_since = Some(now);
            }
        }
        let answer = self.ask(address);
        let mut memory = self.memory();
        match &answer {
            Ok(known) => {
                memory.rests_since = None;
                let network = known.as_ref().map_or_else(|| IpNet::from(address), |capacity| capacity.prefix);
                memory.remember(network, now, known.clone(), self.config.answers);
            }
            Err(_) => memory.rests_since = Some(now),
        }
        answer
    }

    fn ask(&self, address: IpAddr) -> Result<Option<Capacity>, OracleError> {
        let failed = |cause| match cause {
            ureq::Error::Timeout(_) => OracleError::Late(self.config.bound),
            other => OracleError::Unreachable(Box::new(other)),
        };
        let url = format!("{}/capacity", self.config.server.trim_end_matches('/'));
        let mut response = self.agent.get(url).query("address", address.to_string()).call().map_err(failed)?;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            other => return Err(OracleError::Status(other)),
        }
        let bytes = response.body_mut().with_config().limit(BODY_MAX as u64).read_to_vec().map_err(failed)?;
        Ok(Some(told_capacity(&bytes, address)?))
    }

    /// The memory is consistent after every line that changes it, so a panic elsewhere does not corrupt it.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// A remembered answer for `address`: that of the longest prefix.
    fn find(&self, address: IpAddr, now: UnixTime, remember: Duration) -> Option<Option<Capacity>> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        (0..=longest).rev().find_map(|bits| {
            let network = IpNet::new(address, bits).ok()?.trunc();
            let (since, answer) = self.answers.get(&network)?;
            (now >= *since && now.since(*since) < remember).then(|| answer.clone())
        })
    }

    fn remember(&mut self, network: IpNet, now: UnixTime, answer: Option<Capacity>, most: u32) {
        let network = network.trunc();
        if self.answers.len() >= most.max(1) as usize && !self.answers.contains_key(&network) {
            let oldest = self.answers.iter().min_by_key(|(_, (since, _))| *since).map(|(network, _)| *network);
            if let Some(oldest) = oldest {
                self.answers.remove(&oldest);
            }
        }
        self.answers.insert(network, (now, answer));
    }
}
