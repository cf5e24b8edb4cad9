//! The HTTP/3 server behind `flowstart serve`.
//!
//! | Looking for | Where |
//! |---|---|
//! | files and generated objects | [`content`] |
//! | which startup scheme a connection gets, the kill switch, falling back | [`policy`] |
//! | how many connections may come | [`limits`] |
//! | what clients say of their path, and what of it is used | [`hints`] |
//! | what is remembered of paths | [`paths`] |
//! | metrics and where to read them, the kill switch over HTTP | [`metrics`], [`admin`] |
//! | qlog | [`qlog`] |

pub(crate) mod admin;
pub(crate) mod content;
pub(crate) mod hints;
pub(crate) mod limits;
pub(crate) mod metrics;
pub(crate) mod paths;
pub(crate) mod policy;
pub(crate) mod qlog;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes as Chunk;
use flowstart_core::path::PathKnowledge;
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::analyze::size_class;
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::hint::policy::Grant;
use flowstart_quic::transport_parameters::PeerParameters;
use flowstart_quic::{Flow, session};
use futures_util::FutureExt;
use h3::error::Code;
use h3::server::RequestStream;
use http::{Method, Request, Response, StatusCode, header};
use noq::{Connecting, ConnectionError, Endpoint, Incoming, PathId, ServerConfig, TransportConfig, VarInt};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::content::{Absent, Content, Object};
use self::hints::Hints;
use self::limits::{Counted, Counter, RateLimit, Seldom};
use self::metrics::{Answered, Attempt, Exit, Hinted, Metrics, OfScheme};
use self::paths::{Known, PATH_STATE, Paths, Seal};
use self::policy::{Policy, Scheme};
use crate::http3;

/// UDP payload of a packet before the path MTU is known (RFC 9000, section 14).
const SMALLEST_PACKET: u16 = 1200;
/// What browsers are asked to tell of their network with later requests (RFC 8942, Network Information API).
const ACCEPT_CH: &str = "Downlink, RTT, ECT";
/// How often it is looked whether an answer has arrived.
const POLL: Duration = Duration::from_millis(5);
/// Time for packets that tell of the end of connections, after everything else is done.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a server allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time.
    pub(crate) connections: usize,
    /// Handshakes at a time beyond which clients have to prove their address (Retry).
    pub(crate) handshakes: usize,
    /// The longest that a handshake may take.
    pub(crate) handshake: Duration,
    /// The longest that a client may read nothing of an answer.
    pub(crate) stall: Duration,
    /// The longest that answers may take after the server is told to end.
    pub(crate) grace: Duration,
}

/// A server.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) endpoint: Endpoint,
    /// Its TLS, for all connections.
    pub(crate) config: ServerConfig,
    /// What all connections have in common; each gets its own congestion control.
    pub(crate) transport: TransportConfig,
    /// What it serves.
    pub(crate) content: Content,
    /// Which scheme a connection gets.
    pub(crate) policy: Policy,
    /// What it counts.
    pub(crate) metrics: Metrics,
    /// What it allows.
    pub(crate) limits: Limits,
    /// New connections per prefix and second.
    pub(crate) rate: Option<RateLimit>,
    /// What becomes of hints.
    pub(crate) hints: Hints,
    /// Tells of what clients do wrong.
    pub(crate) log: Seldom,
    /// Where qlog files go.
    pub(crate) qlog: Option<qlog::Folder>,
    /// Requests are answered before the handshake is complete.
    pub(crate) early_data: bool,
    /// What it remembers of paths.
    pub(crate) paths: Option<Arc<Paths>>,
    /// What lets clients remember their paths themselves.
    pub(crate) seal: Option<Seal>,
    /// Connections now.
    pub(crate) connections: Counter,
    /// Handshakes now.
    pub(crate) handshakes: Counter,
}

/// One connection, as its requests see it.
struct Client {
    server: Arc<Server>,
    connection: noq::Connection,
    flow: Arc<Flow>,
    /// The scheme's name.
    scheme: String,
    /// What its qlog file is told.
    notes: qlog::Notes,
    address: IpAddr,
    /// Highest rate that was ever delivered to its prefix.
    delivered: Option<Rate>,
    hint: Mutex<HintState>,
    /// Answers that arrived.
    answers: Mutex<metrics::Answers>,
    /// Payload of answers so far.
    answered: AtomicU64,
    /// Payload of answers that are under way.
    waiting: AtomicU64,
}

/// What became of a client's hint.
enum HintState {
    /// It gave none so far.
    None,
    /// It was judged; what it was given lasts as long as the connection.
    Judged { _grant: Option<Grant> },
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Serves until `stop`, and then until the answers under way have arrived or their time is over.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        loop {
            let incoming = tokio::select! {
                () = stop.cancelled() => break,
                incoming = self.endpoint.accept() => incoming,
            };
            let Some(incoming) = incoming else { break };
            self.admit(incoming, &tasks, &stop);
        }
        self.endpoint.set_server_config(None);
        tasks.close();
        if timeout(self.limits.grace, tasks.wait()).await.is_err() {
            tell!("warning: {} connections are cut off", self.connections.now());
        }
        self.endpoint.close(h3_code(Code::H3_NO_ERROR), b"the server ends");
        // Whoever does not answer the farewell is not waited for.
        drop(timeout(FAREWELL, self.endpoint.wait_idle()).await);
    }

    /// Lets a connection in, or not.
    fn admit(self: &Arc<Self>, incoming: Incoming, tasks: &TaskTracker, stop: &CancellationToken) {
        let client = incoming.remote_address().ip();
        let count = |result| {
            self.metrics.attempts.get_or_create(&Attempt { result }).inc();
        };
        let unproven = !incoming.remote_address_validated() && incoming.may_retry();
        if unproven && self.handshakes.now() >= self.limits.handshakes {
            // It may retry, as was asked.
            drop(incoming.retry());
            return count("retry");
        }
        if self.connections.now() >= self.limits.connections {
            incoming.refuse();
            return count("full");
        }
        if self.rate.as_ref().is_some_and(|rate| !rate.admit(client, Instant::now())) {
            incoming.refuse();
            return count("rate");
        }
        let counted = (self.connections.enter(), self.handshakes.enter());
        tasks.spawn(self.clone().accept(incoming, counted, stop.clone()));
    }

    /// One connection from its first packet to its end.
    async fn accept(self: Arc<Self>, incoming: Incoming, counted: (Counted, Counted), stop: CancellationToken) {
        let (_connected, shaking_hands) = counted;
        let count = |result| {
            self.metrics.attempts.get_or_create(&Attempt { result }).inc();
        };
        let address = incoming.remote_address().ip();
        let scheme = self.policy.choose(address, rand::random(), Instant::now());
        // Nothing is sent before the first request, so nothing is lost by waiting for it: it says how much there is to send.
        let flow = Flow::waiting(PathKnowledge::default());
        let said: Arc<Mutex<Option<PeerParameters>>> = Arc::default();
        let notes = qlog::Notes::default();
        let config = self.config_for(scheme, &flow, said.clone(), notes.clone());
        let known = self.paths.clone().map(|paths| tokio::spawn(paths.look_up(address)));
        let connected = match incoming.accept_with(config) {
            Ok(connecting) => timeout(self.limits.handshake, self.connected(connecting)).await,
            Err(error) => Ok(Err(error)),
        };
        let said = locked(&said).take();
        for error in said.iter().flat_map(PeerParameters::errors) {
            self.log.tell(&format!("{address}: {error}"));
        }
        let Ok(Ok(connection)) = connected else { return count("failed") };
        let completed = self.clone().completed(connection.clone(), shaking_hands);
        if self.early_data {
            tokio::spawn(completed);
        } else {
            completed.await;
        }
        let Known { saved, delivered } = match known {
            Some(known) => known.await.ok().flatten().unwrap_or_default(),
            None => Known::default(),
        };
        flow.learn(|path| path.saved = saved);
        self.metrics.active.inc();
        let client = Client {
            server: self.clone(),
            connection,
            flow,
            scheme: scheme.name.clone(),
            notes,
            address,
            delivered,
            hint: Mutex::new(HintState::None),
            answers: Mutex::default(),
            answered: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        };
        if let Some(parameters) = said {
            if let Ok(Some(hint)) = parameters.hint {
                client.judge(&hint);
            }
            if let (Some(seal), Ok(Some(state))) = (&self.seal, parameters.path_state) {
                match seal.open(address, &state) {
                    // The store may know of later connections.
                    Ok(told) if saved.is_none_or(|saved| told.age < saved.age) => {
                        client.flow.learn(|path| path.saved = Some(told));
                    }
                    Ok(_) => {}
                    Err(error) => self.log.tell(&format!("{address}: {error}")),
                }
            }
        }
        Arc::new(client).serve(stop).await;
        self.metrics.active.dec();
    }

    /// A connection after its handshake; with early data as soon as its client's first message is read.
    async fn connected(&self, mut connecting: Connecting) -> Result<noq::Connection, ConnectionError> {
        if !self.early_data {
            return connecting.await;
        }
        connecting.handshake_data().await?;
        match connecting.into_0rtt() {
            Ok((connection, _)) => Ok(connection),
            Err(connecting) => connecting.await,
        }
    }

    /// Counts a connection when its handshake is complete, or ends it when that takes too long.
    async fn completed(self: Arc<Self>, connection: noq::Connection, _shaking_hands: Counted) {
        let completed = timeout(self.limits.handshake, connection.authenticated()).await;
        let result = if matches!(completed, Ok(Ok(()))) { "accepted" } else { "failed" };
        if completed.is_err() {
            connection.close(h3_code(Code::H3_NO_ERROR), b"the handshake took too long");
        }
        self.metrics.attempts.get_or_create(&Attempt { result }).inc();
    }

    /// The configuration of one connection; `said` gets what the client's first message says, `notes` go into its qlog file.
    fn config_for(
        &self,
        scheme: &Scheme,
        flow: &Arc<Flow>,
        said: Arc<Mutex<Option<PeerParameters>>>,
        notes: qlog::Notes,
    ) -> Arc<ServerConfig> {
        let receiver = move |_: &Flow, parameters| *locked(&said) = Some(parameters);
        let Some(qlog) = &self.qlog else {
            return session::accept_config(&self.config, &scheme.factory, flow, receiver);
        };
        let mut transport = self.transport.clone();
        transport.qlog_factory(qlog.of(flow.clone(), &scheme.name, notes));
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        session::accept_config(&config, &scheme.factory, flow, receiver)
    }
}

/// A request's stream.
type Answer = RequestStream<http3::BidiStream<Chunk>, Chunk>;

/// Why an answer ended early. The peer, or its network, is the cause; the connection's end says more than the request's.
struct Cut;

impl From<h3::error::StreamError> for Cut {
    fn from(_: h3::error::StreamError) -> Self {
        Self
    }
}

impl Client {
    /// Answers requests until the client or the server ends the connection.
    async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let transport = http3::Connection::new(self.connection.clone());
        if let Ok(mut connection) = h3::server::builder().build::<_, Chunk>(transport).await {
            self.answer_all(&mut connection, &stop).await;
        }
        self.account();
    }

    async fn answer_all(
        self: &Arc<Self>,
        connection: &mut h3::server::Connection<http3::Connection, Chunk>,
        stop: &CancellationToken,
    ) {
        let mut answers = JoinSet::new();
        let mut ending = false;
        loop {
            tokio::select! {
                accepted = connection.accept() => match accepted {
                    Ok(Some(resolver)) => {
                        let client = self.clone();
                        answers.spawn(async move {
                            if let Ok((request, stream)) = resolver.resolve_request().await {
                                drop(client.answer(&request, stream).await);
                            }
                        });
                    }
                    Ok(None) | Err(_) => break,
                },
                () = stop.cancelled(), if !ending => {
                    ending = true;
                    if connection.shutdown(0).await.is_err() {
                        break;
                    }
                }
                Some(_) = answers.join_next() => {}
            }
            if ending && answers.is_empty() {
                break;
            }
        }
        // Without the connection they end by themselves; one that the client ended because it has everything was answered.
        while answers.join_next().await.is_some() {}
    }

    async fn answer(&self, request: &Request<()>, mut stream: Answer) -> Result<(), Cut> {
        let began = Instant::now();
        let early = self.is_early(request);
        if early {
            self.server.metrics.early.inc();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            if early {
                // Whoever recorded the client's first packets may send them again (RFC 8470, section 5.2).
                return self.refuse(stream, StatusCode::TOO_EARLY, "only GET and HEAD may be early", &[]).await;
            }
            let allowed = [(header::ALLOW, "GET, HEAD")];
            return self.refuse(stream, StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD", &allowed).await;
        }
        self.take_client_hints(request);
        let (server, path) = (self.server.clone(), request.uri().path().to_owned());
        let opened = tokio::task::spawn_blocking(move || server.content.open(&path)).await;
        let object = match opened {
            Ok(Ok(object)) => object,
            Ok(Err(Absent::NotFound)) => return self.refuse(stream, StatusCode::NOT_FOUND, "not found", &[]).await,
            Ok(Err(Absent::BadPath(cause))) => return self.refuse(stream, StatusCode::BAD_REQUEST, &cause, &[]).await,
            Ok(Err(Absent::Unreadable(cause))) => {
                tell!("warning: {}: {cause}", request.uri().path());
                return self.refuse(stream, StatusCode::INTERNAL_SERVER_ERROR, "cannot be read", &[]).await;
            }
            Err(_) => return self.refuse(stream, StatusCode::INTERNAL_SERVER_ERROR, "cannot be read", &[]).await,
        };
        self.count(StatusCode::OK);
        let head = self.head(StatusCode::OK, object.size, &object.media_type).body(()).map_err(|_| Cut)?;
        let size = if request.method() == Method::HEAD { Bytes::ZERO } else { object.size };
        self.expect(size);
        let sent = async {
            stream.send_response(head).await?;
            if size > Bytes::ZERO {
                self.send(object, &mut stream).await?;
                self.send_path_state(request, &mut stream).await?;
            }
            match stream.finish().await {
                // A client that has everything may end the connection before its last acknowledgement.
                Err(error) if error.is_h3_no_error() => Ok(()),
                finished => Ok::<_, Cut>(finished?),
            }
        };
        let sent = sent.await;
        self.waiting.fetch_sub(size.get(), Ordering::Relaxed);
        if sent.is_ok() && size > Bytes::ZERO {
            let (of_scheme, taken) = (OfScheme { scheme: self.scheme.clone() }, began.elapsed());
            self.server.metrics.fct.get_or_create(&of_scheme).observe(taken.as_secs_f64());
            let (number, seconds) = &mut locked(&self.answers)[size_class(size.get())];
            *number += 1;
            *seconds += taken.as_secs_f64();
            if self.server.qlog.is_some() {
                self.notes.answered(size.get(), taken);
            }
        }
        sent
    }

    /// Whether the client has not yet proved that the request is no repetition; a proxy says so of what it passes on
    /// (RFC 8470, section 5.1).
    fn is_early(&self, request: &Request<()>) -> bool {
        request.headers().contains_key("early-data") || self.connection.authenticated().now_or_never().is_none()
    }

    /// Waits until next to nothing is in flight any more.
    async fn until_delivered(&self) {
        let waiting = || Bytes::new(self.waiting.load(Ordering::Relaxed));
        while self.flow.status().delivered < waiting() || self.flow.status().in_flight > Bytes::ZERO {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Gives a client that takes trailers what the connection saw, for its next one.
    async fn send_path_state(&self, request: &Request<()>, stream: &mut Answer) -> Result<(), Cut> {
        let Some(seal) = &self.server.seal else { return Ok(()) };
        if request.headers().get(header::TE).is_none_or(|accepted| accepted != "trailers") {
            return Ok(());
        }
        // The content has left the application, not the sender. Whoever asks for trailers waits for them after the content.
        drop(timeout(FAREWELL, self.until_delivered()).await);
        let Some(state) = seal.seal(self.address, &self.flow.status()) else { return Ok(()) };
        let mut trailers = http::HeaderMap::new();
        trailers.insert(PATH_STATE, state.parse().map_err(|_| Cut)?);
        Ok(stream.send_trailers(trailers).await?)
    }

    async fn send(&self, mut object: Object, stream: &mut Answer) -> Result<(), Cut> {
        loop {
            let chunk = match object.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => {
                    tell!("warning: a file cannot be read to its end: {error}");
                    stream.stop_stream(Code::H3_INTERNAL_ERROR);
                    return Err(Cut);
                }
            };
            self.server.metrics.payload.inc_by(chunk.len() as u64);
            match timeout(self.server.limits.stall, stream.send_data(chunk)).await {
                Ok(sent) => sent?,
                Err(_) => {
                    stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                    return Err(Cut);
                }
            }
        }
    }

    /// Answers with an error and a line that says it.
    async fn refuse(
        &self,
        mut stream: Answer,
        status: StatusCode,
        cause: &str,
        fields: &[(header::HeaderName, &str)],
    ) -> Result<(), Cut> {
        self.count(status);
        let text = format!("{cause}\n");
        let mut head = self.head(status, Bytes::new(text.len() as u64), "text/plain; charset=utf-8");
        for (name, value) in fields {
            head = head.header(name, *value);
        }
        stream.send_response(head.body(()).map_err(|_| Cut)?).await?;
        stream.send_data(text.into()).await?;
        Ok(stream.finish().await?)
    }

    fn head(&self, status: StatusCode, size: Bytes, media_type: &str) -> http::response::Builder {
        Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, media_type)
            .header(header::CONTENT_LENGTH, size.get())
            .header(header::DATE, httpdate::fmt_http_date(SystemTime::now()))
            .header("accept-ch", ACCEPT_CH)
    }

    fn count(&self, status: StatusCode) {
        self.server.metrics.requests.get_or_create(&Answered { status: status.as_u16() }).inc();
    }

    /// A browser's hint counts if it comes before anything else did.
    fn take_client_hints(&self, request: &Request<()>) {
        if !matches!(*locked(&self.hint), HintState::None) {
            return;
        }
        let (hint, errors) = hints::of_browser(request.headers());
        for error in errors {
            self.server.log.tell(&format!("{}: {error}", self.address));
        }
        if let Some(hint) = hint {
            self.judge(&hint);
        }
    }

    /// Uses as much of a hint as the policy allows.
    fn judge(&self, hint: &BandwidthHint) {
        let (verdict, used, grant) = self.server.hints.admit(self.address, hint, self.delivered);
        self.server.metrics.hints.get_or_create(&Hinted { verdict: verdict.reason.to_string() }).inc();
        *locked(&self.hint) = HintState::Judged { _grant: grant };
        self.flow.learn(|path| path.hint = used);
    }

    /// Tells the controller what there is to send. What fits into the initial window needs no launch, and a launch for it
    /// would be none for what comes later.
    fn expect(&self, size: Bytes) {
        let waiting = self.waiting.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        let answered = self.answered.fetch_add(size.get(), Ordering::Relaxed) + size.get();
        let packet = self.connection.path_stats(PathId::ZERO).map_or(SMALLEST_PACKET, |stats| stats.current_mtu);
        let window = u64::from(packet) * INITIAL_WINDOW;
        if answered > window {
            self.flow.expect(Bytes::new(waiting), Bytes::new(packet.into()));
        }
    }

    /// Writes down how the connection started.
    fn account(&self) {
        let address = self.address;
        let (status, metrics) = (self.flow.status(), &self.server.metrics);
        if let Some(paths) = self.server.paths.clone() {
            // Nobody waits for it; a server that ends waits for the threads that do such work.
            drop(tokio::task::spawn_blocking(move || paths.save(address, &status)));
        }
        let (sent, lost) =
            self.connection.path_stats(PathId::ZERO).map_or((0, 0), |path| (path.sent_packets, path.lost_packets));
        let lost_share = if sent > 0 { lost as f64 / sent as f64 } else { 0.0 };
        let reason = status.exit.map_or(NO_EXIT, |(_, reason, _)| reason.name());
        metrics.connections.count(&self.scheme, &locked(&self.answers), lost_share.min(1.0), reason);
        if status.launch.is_none() {
            return;
        }
        let of_scheme = OfScheme { scheme: self.scheme.clone() };
        metrics.launches.get_or_create(&of_scheme).inc();
        metrics.startup_sent.get_or_create(&of_scheme).inc_by(status.startup_sent.get());
        metrics.startup_lost.get_or_create(&of_scheme).inc_by(status.startup_lost.get());
        if let Some((_, reason, _)) = status.exit {
            metrics.exits.get_or_create(&Exit { scheme: self.scheme.clone(), reason: reason.name() }).inc();
        }
        if self.server.policy.record(&self.scheme, status.startup_sent, status.startup_lost, Instant::now()) {
            tell!("warning: launches lose too much; connections start with plain slow start for a while");
        }
    }
}

/// Packets of the initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10;

/// Why startup ended where it did not, as `flowstart analyze` says of qlog files.
const NO_EXIT: &str = "transfer-ended";

fn h3_code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
