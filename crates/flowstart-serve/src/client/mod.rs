//! An HTTP/3 client that measures.
//!
//! | Looking for | Where |
//! |---|---|
//! | sockets and connections | `connect` |
//! | the configuration of each connection | `configuration` |
//! | what to get | [`Url`] |
//! | one request and its answer | `fetch` |
//! | the server's path state, kept for the next connection | `kept_state` |
//! | what this host knows of its access link | [`estimate`] |
//! | the highest rate of each access network, kept from run to run | [`rates`] |

mod configuration;
mod connect;
pub mod estimate;
mod fetch;
mod kept_state;
pub mod rates;
mod url;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flowstart_core::avoidance::{AvoidanceConfig, cubic};
use flowstart_core::quantize::Grid;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::session;
use futures_util::future::join_all;
use http::StatusCode;
use noq::crypto::rustls::QuicClientConfig;
use tokio::io::AsyncWrite;
use tokio::sync::{Barrier, Semaphore};

use self::configuration::{Configuration, Crypto};
use self::connect::{Connected, Local, Reads};
use self::fetch::{Answer, Fetch};
use self::kept_state::KeptState;
pub use self::url::Url;
use crate::endpoint::{RECEIVE_WINDOW, transport};
use crate::scheme::Scheme;
use crate::tokens::Tokens;

/// What may be sent without an acknowledgement: requests.
const SEND_WINDOW: Bytes = Bytes::new(1 << 20);
/// The keep-alive interval of a held connection. A connection that is silent for 30 s ends.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL does not work with HTTP/3.
    #[error("URL `{url}`: {problem}; use https://HOST[:PORT]/PATH")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file with data for the server is malformed.
    #[error("{}: {problem}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The host is not known.
    #[error("{host}: {cause}")]
    Host {
        /// Its name.
        host: String,
        /// Why.
        cause: String,
    },
    /// TLS cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The server does not answer.
    #[error("{url} ({address}): {cause}")]
    Unreachable {
        /// What was to be got.
        url: String,
        /// The server's first address.
        address: SocketAddr,
        /// Why.
        cause: String,
    },
    /// It did not arrive, or not all of it.
    #[error("{url}: {cause}")]
    Failed {
        /// What was to be got.
        url: String,
        /// Why.
        cause: String,
    },
}

/// How a client connects, and what it tells servers.
#[derive(Debug)]
pub struct Config {
    /// TLS for [`crate::H3`], as [`crate::tls::Trust::config`] makes it.
    pub tls: rustls::ClientConfig,
    /// Receive window for the server's data.
    pub receive_window: Bytes,
    /// How fast this host's access is.
    pub hint: Option<BandwidthHint>,
    /// The file with a server's path state, for the next connection. The client writes a new state into it.
    pub path_state: Option<PathBuf>,
    /// Tokens by which servers know this host's address again.
    pub tokens: Option<Arc<Tokens>>,
    /// Whether [`Client::get_again`] is going to resume the session.
    pub resume: bool,
    /// How urgent the requests are, 0 to 7, 0 first (RFC 9218); `None`: they do not say.
    pub urgency: Option<u8>,
    /// Whether it reads SCONE packets, and reports with its requests what the path advises.
    pub scone: bool,
    /// Whether it reads what servers ask of routers (Quick-Start), and responds with its requests. That takes Linux,
    /// and each connection has a socket of its own.
    pub quick_start: bool,
    /// It times the server's part of the handshake, and reports the rate with its first request, rounded as hints are
    /// to this grid; `None`: it does not.
    pub handshake_train: Option<Grid>,
    /// Connections that [`Client::get_many`] opens.
    pub connections: u32,
    /// How many of them may be in their handshake at a time.
    pub handshakes: u32,
    /// How long connections are kept open, all of them together, before anything is requested.
    pub hold: Option<Duration>,
}

impl Config {
    /// One connection that sends no hint and no state.
    pub fn new(tls: rustls::ClientConfig) -> Self {
        Self {
            tls,
            receive_window: RECEIVE_WINDOW,
            hint: None,
            path_state: None,
            tokens: None,
            resume: false,
            urgency: None,
            scone: false,
            quick_start: false,
            handshake_train: None,
            connections: 1,
            handshakes: 64,
            hold: None,
        }
    }
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its header is here and may tell its size.
    Begun(Option<u64>),
    /// This many bytes are here.
    Received(u64),
    /// All of it is here.
    Complete,
}

/// What a client has read of SCONE packets. Packets count for all connections of its socket so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SconeSeen {
    /// Packets that were read, with or without advice.
    pub packets: u64,
    /// Packets that were ignored, because they were damaged or not for this client.
    pub malformed: u64,
    /// What the path advises at the end; `None`: nothing.
    pub advised: Option<Rate>,
}

/// What a client has read of its server's request to the routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickStartSeen {
    /// The rate that was left of it when it arrived, zero if a router took it away; `None`: no request arrived in time.
    pub arrived: Option<Rate>,
    /// Options that were ignored, because they were malformed or not for this client.
    pub malformed: u64,
}

/// What happened when. Times count from the first packet.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// The server.
    pub address: SocketAddr,
    /// How it answered.
    pub status: StatusCode,
    /// Whether a request before the handshake was complete was accepted; `None` when there was none.
    pub early_data: Option<bool>,
    /// Bytes of the content.
    pub bytes: u64,
    /// Until the handshake was complete.
    pub handshake: Duration,
    /// Until the first byte of the content.
    pub first_byte: Option<Duration>,
    /// Until the last one.
    pub fct: Duration,
    /// From the request until the last one.
    pub request: Duration,
    /// The delivery rate of the last half of the content or more; `None` if this took less than three round trips.
    pub rate: Option<Rate>,
    /// What was read of SCONE packets; `None` without SCONE.
    pub scone: Option<SconeSeen>,
    /// What was read of the request to the routers; `None` without Quick-Start.
    pub quick_start: Option<QuickStartSeen>,
    /// The rate at which the server's part of the handshake arrived; `None`: it was not timed, or there was no rate.
    pub handshake_train: Option<Rate>,
}

impl Timings {
    /// Whether the server's answer is not what was asked for: of all that is answered to a request for a whole object,
    /// only 200 and 203 have it (RFC 9110, section 15.3).
    pub fn is_refused(&self) -> bool {
        !has_object(self.status)
    }

    /// Megabits per second over the FCT.
    pub fn goodput_mbps(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.fct.as_secs_f64().max(1e-9)
    }
}

/// Whether an answer with this status has the object as its content.
fn has_object(status: StatusCode) -> bool {
    matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION)
}

/// The results of many connections.
#[derive(Debug)]
pub struct Many {
    /// Those with an answer.
    pub timings: Vec<Timings>,
    /// The errors of the others.
    pub failures: Vec<ClientError>,
    /// Connections that were open together at the end of [`Config::hold`].
    pub open: usize,
}

/// State shared by connections that are opened together.
#[derive(Debug)]
struct Together {
    /// All handshakes at once would fill the buffers of both sockets, and wait for each other until the server gives
    /// them up.
    turns: Semaphore,
    all: Barrier,
    hold: Option<Duration>,
    open: AtomicUsize,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    local: Local,
    configuration: Configuration,
    path_state: Option<KeptState>,
    tokens: Option<Arc<Tokens>>,
    /// Whether it waits for what helps the next connection.
    again: bool,
    urgency: Option<u8>,
    train: Option<Grid>,
    connections: u32,
    together: Together,
}

impl Client {
    /// A client without connections.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the TLS does not work with QUIC, or when the path state cannot be read or sent.
    pub fn new(config: Config) -> Result<Self, ClientError> {
        let Config { mut tls, receive_window, hint, path_state, tokens, .. } = config;
        let Config { resume, urgency, scone, quick_start, handshake_train, .. } = config;
        let Config { connections, handshakes, hold, .. } = config;
        tls.enable_early_data = resume;
        let failed = |error: &dyn std::fmt::Display| ClientError::Tls(error.to_string());
        let path_state = path_state.map(KeptState::read).transpose()?;
        let crypto = if hint.is_none() && path_state.is_none() && !scone && !quick_start {
            Crypto::Plain(Arc::new(QuicClientConfig::try_from(tls).map_err(|error| failed(&error))?))
        } else {
            let crypto = session::ClientConfig::new(tls).map_err(|error| failed(&error))?;
            let crypto = crypto.with_scone(scone).with_quick_start(quick_start);
            Crypto::Telling(Box::new(crypto.with_hint(hint.as_ref()).map_err(|error| failed(&error))?))
        };
        let plain = Scheme::plain(&AvoidanceConfig::Cubic(cubic::Config::default()));
        let mut transport = transport(&plain.map_err(|error| failed(&error))?, SEND_WINDOW, receive_window);
        if hold.is_some() {
            transport.keep_alive_interval(Some(KEEP_ALIVE));
        }
        let together = Together {
            turns: Semaphore::new(handshakes as usize),
            all: Barrier::new(connections as usize),
            hold,
            open: AtomicUsize::new(0),
        };
        let again = resume || tokens.is_some();
        let configuration = Configuration::new(crypto, transport, tokens.clone());
        // A state that cannot be sent is an error before anything is sent.
        configuration.of_next(path_state.as_ref())?;
        let local = Local::new(connections, Reads { scone, quick_start, train: handshake_train.is_some() });
        let train = handshake_train;
        Ok(Self { local, configuration, path_state, tokens, again, urgency, train, connections, together })
    }

    /// Gets `url` from the first of `servers` that answers, over a connection of its own.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when it does not arrive. An answer with an error status is an answer.
    pub async fn get(
        &self,
        url: &Url,
        servers: &[SocketAddr],
        out: &mut (dyn AsyncWrite + Unpin + Send),
        watch: &(dyn Fn(Progress) + Sync),
    ) -> Result<Timings, ClientError> {
        let timings = self.once(url, servers, false, out, watch).await;
        self.keep();
        timings
    }

    /// As [`Client::get`], and resumes the session with `server`: the request leaves with the first packet (0-RTT), if
    /// the server lets it.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub async fn get_again(
        &self,
        url: &Url,
        server: SocketAddr,
        out: &mut (dyn AsyncWrite + Unpin + Send),
        watch: &(dyn Fn(Progress) + Sync),
    ) -> Result<Timings, ClientError> {
        let timings = self.once(url, &[server], true, out, watch).await;
        self.keep();
        timings
    }

    /// Gets `url` over [`Config::connections`] at a time, and throws the content away.
    pub async fn get_many(&self, url: &Url, servers: &[SocketAddr]) -> Many {
        let one = |_| async {
            let mut nowhere = tokio::io::sink();
            self.once(url, servers, false, &mut nowhere, &|_| {}).await
        };
        let (mut timings, mut failures) = (Vec::new(), Vec::new());
        for result in join_all((0..self.connections).map(one)).await {
            match result {
                Ok(came) => timings.push(came),
                Err(failure) => failures.push(failure),
            }
        }
        self.keep();
        Many { timings, failures, open: self.together.open.load(Ordering::Relaxed) }
    }

    /// Puts the path state that came into its file.
    fn keep(&self) {
        if let Some(kept) = &self.path_state {
            kept.keep();
        }
    }

    /// Why the path state of a transfer that is complete is not in its file, told once.
    pub fn unkept_path_state(&self) -> Option<ClientError> {
        self.path_state.as_ref().and_then(KeptState::unkept)
    }

    /// Lets closing packets leave, without waiting for their arrival.
    pub async fn close(self) {
        self.local.close().await;
    }

    async fn once(
        &self,
        url: &Url,
        servers: &[SocketAddr],
        early: bool,
        out: &mut (dyn AsyncWrite + Unpin + Send),
        watch: &(dyn Fn(Progress) + Sync),
    ) -> Result<Timings, ClientError> {
        let turn = self.together.turns.acquire().await.map_err(|error| url.failed(&error))?;
        if let Some(tokens) = self.tokens.clone() {
            let host = url.host.clone();
            let reserved = tokio::task::spawn_blocking(move || tokens.reserve(&host)).await;
            reserved.map_err(|error| url.failed(&error))?;
        }
        let mut start = Instant::now();
        let connected =
            self.local.connect(url, servers, &self.configuration.of_next(self.path_state.as_ref())?, early).await;
        drop(turn);
        let handshake = start.elapsed();
        if let Some(hold) = self.together.hold {
            // Failed connections count here, but are not waited for.
            self.together.all.wait().await;
            tokio::time::sleep(hold).await;
            let stands = connected.as_ref().is_ok_and(|connected| connected.connection.close_reason().is_none());
            self.together.open.fetch_add(stands.into(), Ordering::Relaxed);
            start = Instant::now().checked_sub(handshake).unwrap_or(start);
        }
        let mut connected = connected?;
        let (again, path_state, train) = (self.again, self.path_state.as_ref(), self.train);
        let mut fetch = Fetch { url, start, again, urgency: self.urgency, train, path_state, out, watch };
        let fetched = fetch.over(&connected).await;
        let early = connected.early.take();
        let Some(outcome) = early else { return Ok(fetched?.timings(&connected, handshake, None)) };
        let (accepted, completed) = outcome.await.map_err(|error| url.failed(&error))?;
        if accepted || fetched.is_ok() {
            let handshake = completed.saturating_duration_since(start);
            return Ok(fetched?.timings(&connected, handshake, Some(true)));
        }
        // Data that the server did not take is lost with its streams. A new connection is the simplest way to continue.
        let connected = self
            .local
            .connect(url, &[connected.address], &self.configuration.of_next(self.path_state.as_ref())?, false)
            .await;
        let (handshake, connected) = (start.elapsed(), connected?);
        let answer = fetch.over(&connected).await?;
        Ok(answer.timings(&connected, handshake, Some(false)))
    }
}

impl Answer {
    fn timings(self, connected: &Connected, handshake: Duration, early_data: Option<bool>) -> Timings {
        let Self { status, bytes, first_byte, fct, request, rate } = self;
        let &Connected { address, ref read, train: handshake_train, .. } = connected;
        let scone = read.scone.as_ref().map(|servers| SconeSeen {
            packets: servers.read(),
            malformed: servers.malformed(),
            advised: servers.signal(address).rate(),
        });
        let quick_start = read.quick_start.as_ref().map(|requests| QuickStartSeen {
            arrived: requests.stop().map(|response| response.rate.rate()),
            malformed: requests.malformed(),
        });
        Timings {
            address,
            status,
            early_data,
            bytes,
            handshake,
            first_byte,
            fct,
            request,
            rate,
            scone,
            quick_start,
            handshake_train,
        }
    }
}
