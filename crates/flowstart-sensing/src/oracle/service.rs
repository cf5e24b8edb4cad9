//! The service.

use std::future::Future;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

use flowstart_core::time::Duration;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes as Payload, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::message::{QuestionError, asked_address, asked_endpoints};
use super::{BODY_MAX, Capacity, PROPERTY, std_duration};
use crate::path_store::{Merge, PathStore, Prefixes, StoreError, UnixTime};

/// Media types of RFC 7285, sections 11.4.1 and 8.5.
const PROPERTIES_TYPE: &str = "application/alto-endpointprop+json";
const ERROR_TYPE: &str = "application/alto-error+json";
const JSON_TYPE: &str = "application/json";

/// The service's data and clock.
pub struct Service {
    /// Measurements of connections.
    pub store: Arc<dyn PathStore>,
    /// How addresses become prefixes: the same way as for the connections that filled the store.
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
    /// Longest time for answers to questions from before the shutdown. Default 1 s: chosen, a store answers in
    /// milliseconds.
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

/// Answers on `listener` until `shutdown` completes. Blocks. After that it refuses new connections, and open ones get
/// [`Limits::closing_time`] for their answers.
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
        // Clients without an answer by then get none.
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
            // The peer is gone, or there are no file descriptors left: neither is a reason to stop.
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

/// Why the service cannot tell a capacity.
enum Refusal {
    /// The question cannot be answered.
    Question(QuestionError),
    /// The store failed.
    Store(StoreError),
    /// The store's thread ended without an answer.
    Ended,
}

impl Refusal {
    fn response(self) -> Response<Full<Payload>> {
        let (status, meta) = match self {
            Self::Question(QuestionError::Field { code, field, value }) => {
                (StatusCode::BAD_REQUEST, json!({"code": code, "field": field, "value": value}))
            }
            Self::Question(QuestionError::Syntax) => (StatusCode::BAD_REQUEST, json!({"code": "E_SYNTAX"})),
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
                Err(_) => Err(Refusal::Question(QuestionError::Syntax)),
            },
            ("/capacity" | "/endpointprop", _) => {
                Ok(response(StatusCode::METHOD_NOT_ALLOWED, JSON_TYPE, &json!({"error": "method not allowed"})))
            }
            _ => Ok(response(StatusCode::NOT_FOUND, JSON_TYPE, &json!({"error": "no such resource"}))),
        };
        answered.unwrap_or_else(Refusal::response)
    }

    async fn answer_capacity(self: Arc<Self>, query: &str) -> Result<Response<Full<Payload>>, Refusal> {
        let address = asked_address(query.as_bytes()).map_err(Refusal::Question)?;
        let known = self.known(vec![address]).await?;
        Ok(match known.into_iter().next().flatten() {
            Some(capacity) => response(StatusCode::OK, JSON_TYPE, &json!(capacity)),
            None => response(StatusCode::NOT_FOUND, JSON_TYPE, &json!({"error": "nothing is known of this address"})),
        })
    }

    async fn answer_properties(self: Arc<Self>, body: &[u8]) -> Result<Response<Full<Payload>>, Refusal> {
        let (endpoints, addresses) = asked_endpoints(body).map_err(Refusal::Question)?;
        let known = self.known(addresses).await?;
        // The answer has an unknown endpoint without the property (section 11.4.1.6).
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

    /// The store's knowledge about the addresses. Stores block, so another thread asks them.
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
