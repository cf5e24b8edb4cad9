//! A capacity oracle: a small service that tells what others saw of a destination, and a client that asks it.
//!
//! Reference: RFC 7285 (ALTO), section 11.4 (Endpoint Property Service) with its error codes of section 8.5.2. The
//! service answers from a [`PathStore`], by the prefix of the address that is asked for. `GET
//! /capacity?address=192.0.2.7` gives a small JSON object; `POST /endpointprop` takes and gives ALTO's media types,
//! with the private property `priv:flowstart-capacity`. The client asks the first, waits no longer than
//! [`ClientConfig::bound`], and remembers answers and failures, so that an oracle that is away costs one connection its
//! bound and the next ones nothing.
//!
//! Differences from the reference: no information resource directory, no maps, no cost services, and no other
//! properties: an ALTO client has to be told where `/endpointprop` is. There is no authentication and no TLS: whoever
//! reaches the service learns how fast the paths to others are, so it belongs on the loopback or behind a proxy.
//!
//! The service is built on hyper, because connections need limits for the time of a header and for their number, which
//! smaller servers lack; it runs in one thread. The client is built on ureq, because it blocks as its callers do and
//! bounds a whole exchange, name resolution included.
//!
//! Status: worked examples between both; oracles that are closed, unreachable, silent, slow or hostile.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes as Payload, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::path_store::{Merge, PathRecord, PathStore, Prefix, Prefixes, StoreError, UnixTime};

/// The name of the property in ALTO's answers. `priv:` is for properties that are not registered (RFC 7285, section
/// 10.8.2).
pub const PROPERTY: &str = "priv:flowstart-capacity";
/// Media types of RFC 7285, sections 11.4.1 and 8.5.
const PROPERTIES_TYPE: &str = "application/alto-endpointprop+json";
const ERROR_TYPE: &str = "application/alto-error+json";
const JSON_TYPE: &str = "application/json";
/// Largest request and largest answer that is read.
const BODY_MAX: usize = 64 * 1024;
/// Most endpoints in one request.
const ENDPOINTS_MAX: usize = 256;

/// What the oracle says of a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// The addresses that the answer holds for.
    pub prefix: IpNet,
    /// The rate that connections reached.
    pub rate: Rate,
    /// The smallest RTT they saw.
    pub min_rtt: Duration,
    /// What they delivered in an RTT.
    pub cwnd: Bytes,
    /// Seconds since the last of them.
    pub age_seconds: u64,
    /// Observations behind the answer.
    pub samples: u64,
}

impl Capacity {
    /// What `record` says of the addresses in `prefix`; `None` when it is empty.
    pub fn of(prefix: Prefix, record: &PathRecord, merge: Merge, now: UnixTime) -> Option<Self> {
        let saved = record.saved_path(merge, now)?;
        Some(Self {
            prefix: prefix.network(),
            rate: record.rate(merge)?,
            min_rtt: saved.rtt,
            cwnd: saved.cwnd,
            age_seconds: saved.age.as_nanos() / 1_000_000_000,
            samples: record.observations().len() as u64,
        })
    }
}

/// What the service answers from.
pub struct Service {
    /// What connections saw.
    pub store: Arc<dyn PathStore>,
    /// How addresses become prefixes: as the connections did that filled the store.
    pub prefixes: Prefixes,
    /// How observations become one.
    pub merge: Merge,
    /// Tells the time.
    pub clock: Box<dyn Fn() -> UnixTime + Send + Sync>,
}

/// Limits of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at the same time; more have to wait. Default 256: chosen, far below the usual limit of open files.
    pub connections: u16,
    /// Longest life of a connection. Default 10 s: chosen, a client asks and goes.
    pub connection_time: Duration,
    /// Longest time until a request's header is complete. Default 2 s: chosen, a few RTTs with a retransmission.
    pub header_time: Duration,
    /// Longest time that questions which were asked before the shutdown get for their answers. Default 1 s: chosen, a
    /// store answers in milliseconds.
    pub closing_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            connection_time: Duration::from_millis(10_000),
            header_time: Duration::from_millis(2000),
            closing_time: Duration::from_millis(1000),
        }
    }
}

/// Answers on `listener` until `shutdown` completes, with the default [`Limits`]. Blocks.
pub fn serve(
    listener: TcpListener,
    service: Service,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_within(listener, service, Limits::default(), shutdown)
}

/// Answers on `listener` until `shutdown` completes. Blocks. New connections are refused then, and those that are open
/// get [`Limits::closing_time`] for their answers.
pub fn serve_within(
    listener: TcpListener,
    service: Service,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let served = runtime.block_on(async {
        let open = GracefulShutdown::new();
        tokio::select! {
            served = accept(listener, Arc::new(service), limits, &open) => served?,
            () = shutdown => {}
        }
        // Whoever has no answer by then gets none.
        let _ = tokio::time::timeout(std_duration(limits.closing_time), open.shutdown()).await;
        Ok(())
    });
    // A store that does not answer must not keep the service from ending.
    runtime.shutdown_background();
    served
}

async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    limits: Limits,
    open: &GracefulShutdown,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(usize::from(limits.connections.max(1))));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            // The peer went away, or there are no files left: neither is a reason to end.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let service = Arc::clone(&service);
        let watcher = open.watcher();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = Arc::clone(&service);
                async move { Ok::<_, std::convert::Infallible>(service.answer(request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(std_duration(limits.header_time))
                .serve_connection(TokioIo::new(stream), answer);
            // How a connection ended concerns its client only.
            let _ = tokio::time::timeout(std_duration(limits.connection_time), watcher.watch(connection)).await;
            drop(place);
        });
    }
}

fn std_duration(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

/// Why the service has no capacity to tell.
enum Refusal {
    /// RFC 7285, section 8.5.2: a field is missing, or has the wrong type or value.
    Field { code: &'static str, field: &'static str, value: Option<String> },
    /// It is no JSON, or too long.
    Syntax,
    /// The store failed.
    Store(StoreError),
    /// The store's thread ended without an answer.
    Ended,
}

impl Refusal {
    fn response(self) -> Response<Full<Payload>> {
        let (status, meta) = match self {
            Self::Field { code, field, value } => {
                (StatusCode::BAD_REQUEST, json!({"code": code, "field": field, "value": value}))
            }
            Self::Syntax => (StatusCode::BAD_REQUEST, json!({"code": "E_SYNTAX"})),
            Self::Store(cause) => {
                (StatusCode::SERVICE_UNAVAILABLE, json!({"code": "E_STORE", "detail": cause.to_string()}))
            }
            Self::Ended => (StatusCode::SERVICE_UNAVAILABLE, json!({"code": "E_STORE"})),
        };
        response(status, ERROR_TYPE, &json!({"meta": meta}))
    }
}

fn response(status: StatusCode, media: &'static str, value: &Value) -> Response<Full<Payload>> {
    let mut response = Response::new(Full::new(Payload::from(value.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

impl Service {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Full<Payload>> {
        let answered = match (request.uri().path(), request.method()) {
            ("/capacity", &Method::GET) => self.answer_capacity(request.uri().query().unwrap_or_default()).await,
            ("/endpointprop", &Method::POST) => match Limited::new(request.into_body(), BODY_MAX).collect().await {
                Ok(body) => self.answer_properties(&body.to_bytes()).await,
                Err(_) => Err(Refusal::Syntax),
            },
            ("/capacity" | "/endpointprop", _) => {
                Ok(response(StatusCode::METHOD_NOT_ALLOWED, JSON_TYPE, &json!({"error": "method not allowed"})))
            }
            _ => Ok(response(StatusCode::NOT_FOUND, JSON_TYPE, &json!({"error": "no such resource"}))),
        };
        answered.unwrap_or_else(Refusal::response)
    }

    async fn answer_capacity(self: Arc<Self>, query: &str) -> Result<Response<Full<Payload>>, Refusal> {
        let (_, text) = form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "address")
            .ok_or(Refusal::Field { code: "E_MISSING_FIELD", field: "address", value: None })?;
        let address: IpAddr = text.parse().map_err(|_| Refusal::Field {
            code: "E_INVALID_FIELD_VALUE",
            field: "address",
            value: Some(text.clone().into_owned()),
        })?;
        let known = self.known(vec![address]).await?;
        Ok(match known.into_iter().next().flatten() {
            Some(capacity) => response(StatusCode::OK, JSON_TYPE, &json!(capacity)),
            None => response(StatusCode::NOT_FOUND, JSON_TYPE, &json!({"error": "nothing is known of this address"})),
        })
    }

    async fn answer_properties(self: Arc<Self>, body: &[u8]) -> Result<Response<Full<Payload>>, Refusal> {
        let (endpoints, addresses) = asked_endpoints(body)?;
        let known = self.known(addresses).await?;
        // An endpoint of which nothing is known is there without the property (section 11.4.1.6).
        let properties: Map<String, Value> = endpoints
            .into_iter()
            .zip(known)
            .map(|(endpoint, capacity)| match capacity {
                Some(capacity) => (endpoint, json!({ PROPERTY: capacity })),
                None => (endpoint, json!({})),
            })
            .collect();
        let value = json!({"meta": {}, "endpoint-properties": properties});
        Ok(response(StatusCode::OK, PROPERTIES_TYPE, &value))
    }

    /// What the store knows of the addresses. Stores block, so they are asked by another thread.
    async fn known(self: Arc<Self>, addresses: Vec<IpAddr>) -> Result<Vec<Option<Capacity>>, Refusal> {
        let asked = tokio::task::spawn_blocking(move || {
            addresses.into_iter().map(|address| self.capacity(address)).collect::<Result<Vec<_>, _>>()
        });
        asked.await.map_err(|_| Refusal::Ended)?.map_err(Refusal::Store)
    }

    fn capacity(&self, address: IpAddr) -> Result<Option<Capacity>, StoreError> {
        let now = (self.clock)();
        let prefix = self.prefixes.prefix_of(address);
        let record = self.store.get(prefix, now)?;
        Ok(record.and_then(|record| Capacity::of(prefix, &record, self.merge, now)))
    }
}

/// The endpoints of ALTO's `ReqEndpointProp`, as they were written and as addresses (sections 11.4.1.3 and 10.4).
fn asked_endpoints(body: &[u8]) -> Result<(Vec<String>, Vec<IpAddr>), Refusal> {
    let refused = |code, field, value: Option<&str>| Refusal::Field { code, field, value: value.map(str::to_owned) };
    let value: Value = serde_json::from_slice(body).map_err(|_| Refusal::Syntax)?;
    let list = |field| match value.get(field) {
        None => Err(refused("E_MISSING_FIELD", field, None)),
        Some(list) => {
            let texts: Option<Vec<&str>> = list.as_array().and_then(|all| all.iter().map(Value::as_str).collect());
            texts.ok_or_else(|| refused("E_INVALID_FIELD_TYPE", field, None))
        }
    };
    if let Some(other) = list("properties")?.into_iter().find(|property| *property != PROPERTY) {
        return Err(refused("E_INVALID_FIELD_VALUE", "properties", Some(other)));
    }
    let endpoints = list("endpoints")?;
    if endpoints.len() > ENDPOINTS_MAX {
        return Err(refused("E_INVALID_FIELD_VALUE", "endpoints", None));
    }
    let address = |text: &str| match text.split_once(':')? {
        ("ipv4", address) => address.parse().ok().map(IpAddr::V4),
        ("ipv6", address) => address.parse().ok().map(IpAddr::V6),
        _ => None,
    };
    let addresses = endpoints
        .iter()
        .map(|text| address(text).ok_or_else(|| refused("E_INVALID_FIELD_VALUE", "endpoints", Some(text))))
        .collect::<Result<_, _>>()?;
    Ok((endpoints.into_iter().map(str::to_owned).collect(), addresses))
}

/// Which oracle is asked, and how patiently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConfig {
    /// Where the service is, `http://host[:port]`. Default: port 8085 of this host.
    pub server: String,
    /// The longest that a question takes, name resolution included. Default 20 ms: chosen, since the answer is needed
    /// before the handshake ends.
    pub bound: Duration,
    /// How long an answer is used again, also one that nothing is known, in whole seconds. Default 60 s: chosen, short
    /// beside the lifetime of what the answer is made from.
    pub remember: Duration,
    /// How long the oracle is left alone after it failed, in whole seconds. Default 5 s: chosen.
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
    /// Refuses a server that is no address of HTTP.
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
    /// It could not be asked, or did not answer in time.
    #[error("the oracle could not be asked: {0}")]
    Unreachable(#[source] Box<ureq::Error>),
    /// It failed a moment ago and is left alone.
    #[error("the oracle failed and is not asked again for {0}")]
    Resting(Duration),
    /// It answered with a status that says neither yes nor no.
    #[error("the oracle answered with status {0}")]
    Status(u16),
    /// Its answer is none.
    #[error("the oracle's answer cannot be read: {0}")]
    Answer(#[source] serde_json::Error),
    /// It answered for somebody else.
    #[error("the oracle was asked for {asked} and answered for {prefix}")]
    OtherPrefix {
        /// The address.
        asked: IpAddr,
        /// The answer.
        prefix: IpNet,
    },
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
                if left > Duration::ZERO {
                    return Err(OracleError::Resting(left));
                }
                // Whoever comes now tries; the others go on without it until that is known.
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
        let unreachable = |cause| OracleError::Unreachable(Box::new(cause));
        let url = format!("{}/capacity", self.config.server.trim_end_matches('/'));
        let mut response = self.agent.get(url).query("address", address.to_string()).call().map_err(unreachable)?;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            other => return Err(OracleError::Status(other)),
        }
        let bytes = response.body_mut().with_config().limit(BODY_MAX as u64).read_to_vec().map_err(unreachable)?;
        let capacity: Capacity = serde_json::from_slice(&bytes).map_err(OracleError::Answer)?;
        if !capacity.prefix.contains(&address) {
            return Err(OracleError::OtherPrefix { asked: address, prefix: capacity.prefix });
        }
        Ok(Some(capacity))
    }

    /// What is remembered is whole after every line that changes it, so a panic elsewhere does not spoil it.
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
            (now.since(*since) < remember).then(|| answer.clone())
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::path_store::memory::MemoryStore;
    use crate::path_store::tests::{prefix, seen};
    use crate::path_store::{Observation, Retention};

    /// A service that runs until it is dropped.
    struct Running {
        address: SocketAddr,
        stop: Option<tokio::sync::oneshot::Sender<()>>,
        thread: Option<std::thread::JoinHandle<io::Result<()>>>,
    }

    impl Running {
        fn new(store: Arc<dyn PathStore>, limits: Limits) -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let service = Service {
                store,
                prefixes: Prefixes::default(),
                merge: Merge::MostRecent,
                clock: Box::new(|| UnixTime::from_secs(1010)),
            };
            let thread = std::thread::spawn(move || {
                serve_within(listener, service, limits, async {
                    let _ = stopped.await;
                })
            });
            Self { address, stop: Some(stop), thread: Some(thread) }
        }

        fn client(&self) -> OracleClient {
            client(&format!("http://{}", self.address), 2000)
        }

        /// Sends text as it is and returns all of the answer.
        fn raw(&self, text: &str) -> String {
            let mut stream = TcpStream::connect(self.address).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        }

        fn post(&self, body: &str) -> String {
            self.raw(&format!(
                "POST /endpointprop HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
        }

        fn get(&self, target: &str) -> String {
            self.raw(&format!("GET {target} HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\n\r\n"))
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            drop(self.stop.take());
            self.thread.take().unwrap().join().unwrap().unwrap();
        }
    }

    fn client(server: &str, bound_ms: u64) -> OracleClient {
        OracleClient::new(ClientConfig {
            server: server.into(),
            bound: Duration::from_millis(bound_ms),
            ..ClientConfig::default()
        })
    }

    fn filled() -> Arc<dyn PathStore> {
        let store = MemoryStore::new(Retention::default(), 100);
        store.put(prefix("192.0.2.0/24"), seen(1000, 50, 70_000, 25)).unwrap();
        store.put(prefix("2001:db8:1::/48"), seen(1000, 10, 20_000, 5)).unwrap();
        Arc::new(store)
    }

    fn running() -> Running {
        Running::new(filled(), Limits::default())
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_secs(seconds)
    }

    #[test]
    fn a_client_learns_what_the_store_knows() {
        let oracle = running();
        let client = oracle.client();
        let known = client.capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap().unwrap();
        assert_eq!(known.prefix, "192.0.2.0/24".parse::<IpNet>().unwrap());
        assert_eq!((known.rate, known.min_rtt), (Rate::from_mbit(25), Duration::from_millis(50)));
        assert_eq!((known.cwnd, known.age_seconds, known.samples), (Bytes::new(70_000), 10, 1));
        let v6 = client.capacity("2001:db8:1:2::3".parse().unwrap(), at(0)).unwrap().unwrap();
        assert_eq!(v6.rate, Rate::from_mbit(5));
        assert_eq!(client.capacity("198.51.100.1".parse().unwrap(), at(0)).unwrap(), None);
    }

    #[test]
    fn answers_are_remembered_for_their_prefix_and_time() {
        let oracle = running();
        let client = oracle.client();
        let ask = |text: &str, now| client.capacity(text.parse().unwrap(), at(now));
        assert!(ask("192.0.2.7", 0).unwrap().is_some());
        assert_eq!(ask("198.51.100.1", 0).unwrap(), None);
        drop(oracle);
        assert!(ask("192.0.2.99", 59).unwrap().is_some(), "the same prefix");
        assert_eq!(ask("198.51.100.1", 59).unwrap(), None, "that nothing is known is an answer");
        assert!(matches!(ask("192.0.2.7", 60), Err(OracleError::Unreachable(_))), "after 60 s it is asked again");
        assert!(matches!(ask("192.0.2.7", 61), Err(OracleError::Resting(left)) if left == Duration::from_millis(4000)));
        assert!(matches!(ask("192.0.2.7", 65), Err(OracleError::Unreachable(_))));
    }

    #[test]
    fn alto_clients_get_altos_answers() {
        let oracle = running();
        let asked = r#"{"properties": ["priv:flowstart-capacity"],
                        "endpoints": ["ipv4:192.0.2.34", "ipv6:2001:db8:1::1", "ipv4:203.0.113.1"]}"#;
        let answer = oracle.post(asked);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/alto-endpointprop+json"), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["endpoint-properties"]["ipv4:192.0.2.34"][PROPERTY]["rate"], "25mbit");
        assert_eq!(body["endpoint-properties"]["ipv6:2001:db8:1::1"][PROPERTY]["rate"], "5mbit");
        assert_eq!(body["endpoint-properties"]["ipv4:203.0.113.1"], json!({}));
    }

    #[test]
    fn what_is_wrong_with_a_question_is_told_by_altos_codes() {
        let oracle = running();
        for (body, code) in [
            ("{", "E_SYNTAX"),
            ("{}", "E_MISSING_FIELD"),
            (r#"{"properties": 1, "endpoints": []}"#, "E_INVALID_FIELD_TYPE"),
            (r#"{"properties": ["pid"], "endpoints": []}"#, "E_INVALID_FIELD_VALUE"),
            (r#"{"properties": [], "endpoints": ["ipv4:2001:db8::"]}"#, "E_INVALID_FIELD_VALUE"),
        ] {
            let answer = oracle.post(body);
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(code), "{body}: {answer}");
        }
        assert!(oracle.get("/capacity").contains("E_MISSING_FIELD"));
        assert!(oracle.get("/capacity?address=here").contains(r#""value":"here""#));
        assert!(oracle.get("/capacity?address=2001%3Adb8%3A1%3A%3A1").starts_with("HTTP/1.1 200"));
        assert!(oracle.get("/else").starts_with("HTTP/1.1 404"));
        assert!(oracle.get("/endpointprop").starts_with("HTTP/1.1 405"));
        assert!(oracle.post(&"x".repeat(BODY_MAX + 1)).contains("E_SYNTAX"));
    }

    /// A store that always fails.
    struct Broken;

    impl PathStore for Broken {
        fn get(&self, _: Prefix, _: UnixTime) -> Result<Option<PathRecord>, StoreError> {
            Err(StoreError::Poisoned)
        }
        fn put(&self, _: Prefix, _: Observation) -> Result<(), StoreError> {
            Err(StoreError::Poisoned)
        }
        fn expire(&self, _: UnixTime) -> Result<u64, StoreError> {
            Err(StoreError::Poisoned)
        }
    }

    #[test]
    fn a_store_that_fails_is_told_and_remembered_as_a_failure() {
        let oracle = Running::new(Arc::new(Broken), Limits::default());
        let client = oracle.client();
        let address = "192.0.2.7".parse().unwrap();
        assert!(matches!(client.capacity(address, at(0)), Err(OracleError::Status(503))));
        assert!(matches!(client.capacity(address, at(1)), Err(OracleError::Resting(_))));
    }

    #[test]
    fn clients_that_say_nothing_do_not_keep_others_waiting_for_ever() {
        let limits = Limits { connections: 2, header_time: Duration::from_millis(100), ..Limits::default() };
        let oracle = Running::new(filled(), limits);
        let _silent: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(oracle.address).unwrap()).collect();
        assert!(oracle.client().capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap().is_some());
    }

    #[test]
    fn questions_that_were_asked_before_the_shutdown_are_answered() {
        /// A store that takes its time.
        struct Slow(Arc<dyn PathStore>);
        impl PathStore for Slow {
            fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError> {
                std::thread::sleep(std::time::Duration::from_millis(200));
                self.0.get(prefix, now)
            }
            fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError> {
                self.0.put(prefix, observation)
            }
            fn expire(&self, now: UnixTime) -> Result<u64, StoreError> {
                self.0.expire(now)
            }
        }
        let oracle = Running::new(Arc::new(Slow(filled())), Limits::default());
        let mut stream = TcpStream::connect(oracle.address).unwrap();
        stream.write_all(b"GET /capacity?address=192.0.2.7 HTTP/1.1\r\nHost: oracle\r\n\r\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let (address, started) = (oracle.address, Instant::now());
        drop(oracle);
        let taken = started.elapsed();
        assert!(taken < std::time::Duration::from_millis(900), "an answer is waited for, not a limit: {taken:?}");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("25mbit"), "{answer}");
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_server_is_an_address_of_http() {
        let valid = |server: &str| ClientConfig { server: server.into(), ..ClientConfig::default() }.validate().is_ok();
        assert!(["http://127.0.0.1:8085", "http://[::1]:8085/", "http://oracle.example"].into_iter().all(valid));
        for server in
            ["", "oracle", "127.0.0.1:8085", "https://oracle", "http://", "http://:80", "http://o/p", "ftp://o"]
        {
            assert!(!valid(server), "{server}");
        }
    }

    /// The client has to fail, and in hardly more than its bound of 50 ms.
    fn fails_in_time(server: &str) -> OracleError {
        let client = client(server, 50);
        let started = Instant::now();
        let error = client.capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap_err();
        let taken = started.elapsed();
        assert!(taken < std::time::Duration::from_millis(300), "{taken:?} for a bound of 50 ms");
        error
    }

    /// A server that sends `head` and then `drop` every 10 ms.
    fn dripping(head: &'static [u8], drop: &'static [u8]) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 4096]);
                    let mut sent = stream.write_all(head);
                    while sent.is_ok() && !drop.is_empty() {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                        sent = stream.write_all(drop);
                    }
                });
            }
        });
        server
    }

    #[test]
    fn an_oracle_that_cannot_be_reached_delays_no_longer_than_the_bound() {
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        for server in [
            format!("http://{}", silent.local_addr().unwrap()),
            format!("http://127.0.0.1:{port}"),
            "http://192.0.2.1:8085".into(),
            "http://no-such-host.invalid".into(),
            "no address at all".into(),
        ] {
            assert!(matches!(fails_in_time(&server), OracleError::Unreachable(_)), "{server}");
        }
    }

    #[test]
    fn an_oracle_that_answers_byte_by_byte_delays_no_longer_than_the_bound() {
        let in_the_head = dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x");
        assert!(matches!(fails_in_time(&in_the_head), OracleError::Unreachable(_)));
        let in_the_body = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", b" ");
        assert!(matches!(fails_in_time(&in_the_body), OracleError::Unreachable(_)));
    }

    #[test]
    fn an_oracle_that_answers_nonsense_is_told() {
        let body = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwhat", b"");
        assert!(matches!(fails_in_time(&body), OracleError::Answer(_)));
        let status = dripping(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", b"");
        assert!(matches!(fails_in_time(&status), OracleError::Status(302)));
        let endless = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", &[b' '; 65_536]);
        assert!(matches!(fails_in_time(&endless), OracleError::Unreachable(_)));
        let other = dripping(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"prefix\":\"10.0.0.0/8\",\"rate\":\"1mbit\",\"min_rtt\":\
              \"1ms\",\"cwnd\":\"1KB\",\"age_seconds\":1,\"samples\":1}",
            b"",
        );
        assert!(matches!(fails_in_time(&other), OracleError::OtherPrefix { .. }));
    }

    proptest! {
        #[test]
        fn no_question_makes_the_service_panic(body in prop::collection::vec(any::<u8>(), 0..200), text in ".*") {
            let _ = asked_endpoints(&body);
            let _ = asked_endpoints(format!(r#"{{"properties": [], "endpoints": [{text:?}]}}"#).as_bytes());
        }
    }
}
