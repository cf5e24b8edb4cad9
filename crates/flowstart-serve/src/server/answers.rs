//! One connection of a server: its requests and their answers.

mod asked;
mod held_back;
mod start;

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes as Chunk;
use flowstart_core::sources::Known;
use flowstart_core::units::Bytes;
use flowstart_quic::Flow;
use flowstart_quic::hint::policy::{Evidence, Grant};
use flowstart_quic::hint::{BandwidthHint, client_hints};
use futures_util::FutureExt;
use h3::error::{Code, StreamError};
use h3::server::RequestStream;
use http::{Request, Response, StatusCode, header};
use noq::{PathId, VarInt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::asked::{Asked, malformed, refusal};
use super::content::{self, Absent, Object};
use super::qlog;
use super::quick_start::Asking;
use super::scone::Advised;
use super::shared::{FAREWELL, Shared, locked};
use super::unacknowledged::{self, OpenAnswer, Unacknowledged};
use crate::http3;
use crate::metrics::{self, Answered, OfScheme, size_class};
use crate::path_state::PATH_STATE;

/// Answers of a connection whose content is read at a time; each holds a file, and two parts of it (128 KB).
const ANSWERS: usize = 16;
/// What a client acknowledges, within the time that an answer may wait for it, to let its other answers wait on: 16 KiB
/// for each of those that are read at a time.
const LEAST_READ: Bytes = Bytes::new(16 * 1024 * ANSWERS as u64);
/// How much more than is in flight may count as not acknowledged: fields are counted with more than they have.
const SLACK: u64 = 2 * unacknowledged::FIELDS;
/// Interval between checks for the arrival of an answer.
const POLL: Duration = Duration::from_millis(5);
/// The longest such interval.
const SELDOM: Duration = Duration::from_millis(250);

/// Interval to the next check of what is waited for since then. Many may wait so, and what does not come soon does not
/// matter soon.
fn pause(since: Instant) -> Duration {
    (since.elapsed() / 8).clamp(POLL, SELDOM)
}

/// One connection, as its requests see it.
pub(super) struct Client {
    server: Arc<Shared>,
    connection: noq::Connection,
    flow: Arc<Flow>,
    /// The scheme's name.
    scheme: String,
    /// Notes for its qlog file.
    notes: qlog::Notes,
    address: IpAddr,
    /// What is known of its path, for what its hints claim.
    evidence: Evidence,
    word: Mutex<Word>,
    /// What its scheme can start by.
    senses: Vec<Known>,
    /// Its first packet proved its address, by a token.
    is_validated: bool,
    /// What its path advises, if it carries SCONE packets.
    advised: Option<Advised>,
    /// What it asks the routers of its path, if it does.
    asking: Option<Asking>,
    /// Answers that arrived.
    answers: Mutex<metrics::Answers>,
    /// Payload of answers so far.
    answered: AtomicU64,
    /// Payload of answers that arrived.
    arrived: AtomicU64,
    /// Payload of answers in flight.
    waiting: AtomicU64,
    /// What was given to QUIC, and the streams of answers that were cut.
    given: Unacknowledged,
    cuts: http3::Cuts,
    /// What had arrived when the last piece was given while the memory of all connections was full.
    paid: AtomicU64,
    /// Answers whose content is read.
    turns: Semaphore,
}

/// What a client has stated.
#[derive(Default)]
struct Word {
    /// A hint was judged.
    has_hinted: bool,
    /// A hint that counts when the handshake is complete: whoever sent it may have forged the address.
    unproven: Option<BandwidthHint>,
    /// What it is given of its prefix's total, as long as the connection lasts.
    grant: Option<Grant>,
}

/// A request's stream.
type Answer = RequestStream<http3::BidiStream<Chunk>, Chunk>;

/// An answer ended early, by the peer or its network. The connection's end says why.
struct Cut;

impl From<StreamError> for Cut {
    fn from(_: StreamError) -> Self {
        Self
    }
}

impl Client {
    /// A connection without requests so far.
    pub(super) fn new(
        server: Arc<Shared>,
        connection: noq::Connection,
        flow: Arc<Flow>,
        scheme: &str,
        notes: qlog::Notes,
        address: IpAddr,
        evidence: Evidence,
    ) -> Self {
        Self {
            server,
            connection,
            flow,
            scheme: scheme.to_owned(),
            notes,
            address,
            evidence,
            word: Mutex::default(),
            senses: Vec::new(),
            is_validated: false,
            advised: None,
            asking: None,
            answers: Mutex::default(),
            answered: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            given: Unacknowledged::default(),
            cuts: http3::Cuts::default(),
            paid: AtomicU64::new(0),
            turns: Semaphore::new(ANSWERS),
        }
    }

    /// Its scheme can start by this, and its first packet proved its address or not.
    pub(super) fn with_start(self, senses: Vec<Known>, is_validated: bool) -> Self {
        Self { senses, is_validated, ..self }
    }

    /// It carries SCONE packets, or asks routers.
    pub(super) fn with_path(self, advised: Option<Advised>, asking: Option<Asking>) -> Self {
        Self { advised, asking, ..self }
    }

    /// Answers requests until the client or the server ends the connection.
    pub(super) async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let transport = http3::Connection::new(self.connection.clone(), self.cuts.clone());
        let mut builder = h3::server::builder();
        let built = builder.max_field_section_size(http3::LARGEST_FIELDS).build::<_, Chunk>(transport);
        if let Ok(Ok(mut connection)) = timeout(self.server.limits.stall, built).await {
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
                            // What is left of a request that does not come to its end goes with its stream.
                            let head = timeout(client.server.limits.stall, resolver.resolve_request()).await;
                            match head {
                                Ok(Ok((request, stream))) => drop(client.answer(request, stream).await),
                                Ok(Err(error)) => client.refuse_head(&error),
                                Err(_) => {}
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
                // Every request and every end of an answer begins this time anew.
                () = tokio::time::sleep(self.server.limits.idle), if answers.is_empty() => break,
            }
            if ending && answers.is_empty() {
                break;
            }
        }
        // Without the connection they end by themselves. If the client ended the connection because it has everything,
        // the request was answered.
        while answers.join_next().await.is_some() {}
    }

    /// A request without a head that can be answered; its stream is reset.
    fn refuse_head(&self, error: &StreamError) {
        match error {
            StreamError::RemoteTerminate { code: Code::H3_MESSAGE_ERROR, .. } => {
                self.count_malformed("its pseudo-header fields");
            }
            StreamError::StreamError { code: Code::H3_MESSAGE_ERROR, .. } => self.count_malformed("its fields"),
            _ => {}
        }
    }

    fn count_malformed(&self, cause: &str) {
        self.count(StatusCode::BAD_REQUEST);
        self.server.log.tell(&format!("{}: a malformed request: {cause}", self.address));
    }

    async fn answer(&self, request: Request<()>, mut stream: Answer) -> Result<(), Cut> {
        let began = Instant::now();
        let is_complete = self.is_complete();
        let early = !is_complete || request.headers().contains_key("early-data");
        if early {
            self.server.metrics.early.inc();
        }
        if is_complete {
            self.judge_unproven();
        } else if self.is_validated {
            self.flow.launch_early();
            self.notes.proven();
        }
        if let Some(cause) = malformed(&request) {
            // RFC 9114, section 4.1.2.
            self.count_malformed(cause);
            stream.stop_stream(Code::H3_MESSAGE_ERROR);
            return Err(Cut);
        }
        // Whatever waits from here on does not hold the fields, of which a small head may have very many.
        if let Some((status, problem, fields)) = refusal(&request, early) {
            drop(request);
            return self.refuse(stream, status, problem, fields).await;
        }
        if is_complete || self.is_validated {
            self.take_client_hints(&request);
            self.take_train(&request);
        }
        self.server.take_advice(request.headers(), self.advised.as_ref(), &self.flow, self.address);
        let rtt = self.connection.rtt(PathId::ZERO).unwrap_or_default();
        self.server.take_response(request.headers(), self.asking.as_ref(), &self.flow, self.address, rtt);
        let asked = Asked::of(&request);
        drop(request);
        // What waits here holds neither a file nor a part of one.
        let turn = self.turns.acquire().await.map_err(|_| Cut)?;
        let (server, path) = (self.server.clone(), asked.path.clone());
        let place = if content::is_generated(&path) {
            None
        } else {
            match timeout(self.server.limits.stall, self.server.files.acquire()).await {
                Ok(Ok(place)) => Some(place),
                _ => {
                    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
                    return self.refuse(stream, unavailable, "too many files are open", &[]).await;
                }
            }
        };
        let opened = tokio::task::spawn_blocking(move || server.content.open(&path)).await;
        let object = match opened {
            Ok(Ok(object)) => object,
            absent => {
                // An explanation needs no file, however long its reader takes.
                drop((place, turn));
                let (status, cause) = match absent {
                    Ok(Err(Absent::NotFound)) => (StatusCode::NOT_FOUND, "not found".to_owned()),
                    Ok(Err(Absent::BadPath(cause))) => (StatusCode::BAD_REQUEST, cause.to_string()),
                    Ok(Err(Absent::Unreadable(cause))) => {
                        self.server.log.tell(&format!("{}: {cause}", asked.path));
                        (StatusCode::INTERNAL_SERVER_ERROR, "cannot be read".to_owned())
                    }
                    _ => (StatusCode::INTERNAL_SERVER_ERROR, "cannot be read".to_owned()),
                };
                return self.refuse(stream, status, &cause, &[]).await;
            }
        };
        self.count(StatusCode::OK);
        let head = self.head(StatusCode::OK, object.size, &object.media_type).body(()).map_err(|_| Cut)?;
        let size = if asked.is_head { Bytes::ZERO } else { object.size };
        // Of what is made on the spot, the client chooses the size.
        let is_ours = !content::is_generated(&asked.path);
        self.expect(size, is_ours, asked.can_wait);
        let mut open = self.given.begin(self.flow.status().delivered.get());
        let sent = async {
            self.in_time(stream.send_response(head)).await?;
            if size > Bytes::ZERO {
                self.send(object, &mut stream, &mut open).await?;
            }
            // All of it is in the memory of the connection.
            drop((place, turn));
            if size > Bytes::ZERO && asked.takes_trailers {
                self.send_path_state(&mut stream).await?;
            }
            self.finish(&mut stream).await
        };
        let sent = sent.await;
        self.waiting.fetch_sub(size.get(), Ordering::Relaxed);
        self.end(stream, open, sent.is_err()).await;
        if sent.is_ok() && size > Bytes::ZERO {
            let (of_scheme, taken) = (OfScheme { scheme: self.scheme.clone() }, began.elapsed());
            self.server.metrics.fct.get_or_create(&of_scheme).observe(taken.as_secs_f64());
            let (number, seconds) = &mut locked(&self.answers)[size_class(size.get())];
            *number += 1;
            *seconds += taken.as_secs_f64();
            self.arrived.fetch_add(size.get(), Ordering::Relaxed);
            if self.server.qlog.is_some() {
                self.notes.answered(size.get(), taken);
            }
        }
        sent
    }

    /// Whether the handshake is complete. A request before may be a replay, and so may one of which a proxy says that
    /// it passed it on early (RFC 8470, section 5.1).
    fn is_complete(&self) -> bool {
        matches!(self.connection.authenticated().now_or_never(), Some(Ok(())))
    }

    /// Waits until everything is acknowledged.
    async fn until_delivered(&self) {
        let waiting = || Bytes::new(self.waiting.load(Ordering::Relaxed));
        let began = Instant::now();
        while self.flow.status().delivered < waiting() || self.flow.status().in_flight > Bytes::ZERO {
            tokio::time::sleep(pause(began)).await;
        }
    }

    /// Sends the connection's measurements, for the next connection, to a client that accepts trailers.
    async fn send_path_state(&self, stream: &mut Answer) -> Result<(), Cut> {
        let Some(seal) = &self.server.seal else { return Ok(()) };
        // The content has left the application, not the sender. A client that asks for trailers waits for them after
        // the content.
        drop(timeout(FAREWELL, self.until_delivered()).await);
        let Some(state) = seal.seal(self.address, &self.flow.status()) else { return Ok(()) };
        let mut trailers = http::HeaderMap::new();
        trailers.insert(PATH_STATE, state.parse().map_err(|_| Cut)?);
        self.in_time(stream.send_trailers(trailers)).await
    }

    async fn send(&self, mut object: Object, stream: &mut Answer, open: &mut OpenAnswer<'_>) -> Result<(), Cut> {
        loop {
            let mut chunk = match object.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.server.log.tell(&format!("a file cannot be read to its end: {error}"));
                    stream.stop_stream(Code::H3_INTERNAL_ERROR);
                    return Err(Cut);
                }
            };
            self.until_cuts_are_few().await?;
            while !chunk.is_empty() {
                let piece = chunk.split_to(self.piece_of(chunk.len()).await?);
                let bytes = piece.len() as u64;
                self.server.metrics.payload.inc_by(bytes);
                open.give(bytes);
                if let Some(memory) = &self.server.memory {
                    memory.give(bytes);
                }
                self.in_time(stream.send_data(piece)).await?;
            }
        }
    }

    /// What a client that reads ends soon, or waits for while it reads other answers of the connection.
    async fn in_time(&self, sent: impl Future<Output = Result<(), StreamError>>) -> Result<(), Cut> {
        let mut sent = std::pin::pin!(sent);
        let mut delivered = self.flow.status().delivered;
        loop {
            match timeout(self.server.limits.stall, &mut sent).await {
                Ok(sent) => return Ok(sent?),
                Err(_) if self.flow.status().delivered.saturating_sub(delivered) >= LEAST_READ => {
                    delivered = self.flow.status().delivered;
                }
                Err(_) => return Err(Cut),
            }
        }
    }

    /// Whether all that was given to QUIC has been sent, and at most its last flight is not acknowledged.
    fn is_all_under_way(&self) -> bool {
        let status = self.flow.status();
        self.given.of_open(status.delivered.get()) <= status.in_flight.get() + SLACK
    }

    /// Ends an answer, and waits for its acknowledgement as long as the client acknowledges anything.
    async fn finish(&self, stream: &mut Answer) -> Result<(), Cut> {
        let mut finishing = std::pin::pin!(stream.finish());
        let mut delivered = self.flow.status().delivered;
        loop {
            match timeout(self.server.limits.stall, &mut finishing).await {
                // A client that has everything may end the connection before its last acknowledgement.
                Ok(Err(error)) if error.is_h3_no_error() && self.is_all_under_way() => return Ok(()),
                Ok(finished) => return Ok(finished?),
                Err(_) if self.flow.status().delivered > delivered => delivered = self.flow.status().delivered,
                Err(_) => return Err(Cut),
            }
        }
    }

    /// Answers with an error and a line that explains it.
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
        let head = head.body(()).map_err(|_| Cut)?;
        let mut open = self.given.begin(self.flow.status().delivered.get());
        open.give(text.len() as u64);
        let sent = async {
            self.in_time(stream.send_response(head)).await?;
            self.in_time(stream.send_data(text.into())).await?;
            self.finish(&mut stream).await
        };
        let sent = sent.await;
        self.end(stream, open, sent.is_err()).await;
        sent
    }

    /// The end of an answer. One that was cut is kept by QUIC until the client has acknowledged that, and a client that
    /// does not is given up.
    async fn end(&self, mut stream: Answer, open: OpenAnswer<'_>, is_cut: bool) {
        if !is_cut {
            return;
        }
        let id = stream.send_id().into_inner();
        stream.stop_stream(Code::H3_REQUEST_CANCELLED);
        drop(stream);
        let cut = open.cut(self.server.limits.connection_memory.get());
        let began = Instant::now();
        while self.cuts.holds(id) && self.connection.close_reason().is_none() {
            if began.elapsed() > self.server.limits.stall {
                self.connection.close(
                    VarInt::from_u64(Code::H3_EXCESSIVE_LOAD.value()).unwrap_or_default(),
                    b"the end of an answer is not acknowledged",
                );
            }
            tokio::time::sleep(pause(began)).await;
        }
        drop(cut);
    }

    fn head(&self, status: StatusCode, size: Bytes, media_type: &str) -> http::response::Builder {
        Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, media_type)
            .header(header::CONTENT_LENGTH, size.get())
            .header(header::DATE, httpdate::fmt_http_date(SystemTime::now()))
            .header("accept-ch", client_hints::ACCEPT_CH)
    }

    fn count(&self, status: StatusCode) {
        self.server.metrics.requests.get_or_create(&Answered { status: status.as_u16() }).inc();
    }
}
