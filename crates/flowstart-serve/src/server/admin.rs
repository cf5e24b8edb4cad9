//! Metrics and the kill switch over HTTP/1.1.
//!
//! `GET /metrics` gives the metrics. `GET /kill-switch` says `on` or `off`. `PUT /kill-switch` turns it on, and
//! `DELETE /kill-switch` turns it off; both are for clients on this host only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::Shared;

/// The format of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The longest that a client may take to send a request's headers.
const SLOWEST: Duration = Duration::from_secs(10);
/// Clients at a time.
const CLIENTS: usize = 64;

/// Answers until it is aborted.
pub(crate) async fn serve(listener: TcpListener, server: Arc<Shared>) {
    let places = Arc::new(tokio::sync::Semaphore::new(CLIENTS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, client)) = listener.accept().await else {
            // Out of file descriptors, most likely. That passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let answer = answer(&server, request.method(), request.uri().path(), client);
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(SLOWEST);
            // A client that leaves does not affect the server.
            drop(http.serve_connection(TokioIo::new(stream), service).await);
            drop(place);
        });
    }
}

fn answer(server: &Shared, method: &Method, path: &str, client: SocketAddr) -> Response<Full<bytes::Bytes>> {
    let (status, media_type, text) = match (path, method) {
        ("/metrics", &Method::GET) => {
            server.metrics.killed.set(server.policy.is_killed().into());
            server.metrics.fallen_back.set(server.policy.is_fallen_back(Instant::now()).into());
            (StatusCode::OK, OPEN_METRICS, server.metrics.text())
        }
        ("/kill-switch", &Method::GET) => (StatusCode::OK, "text/plain", state(server)),
        ("/kill-switch", &Method::PUT | &Method::DELETE) if !client.ip().to_canonical().is_loopback() => {
            (StatusCode::FORBIDDEN, "text/plain", "only from this host\n".into())
        }
        ("/kill-switch", &Method::PUT | &Method::DELETE) => {
            server.policy.kill(method == Method::PUT);
            (StatusCode::OK, "text/plain", state(server))
        }
        ("/metrics" | "/kill-switch", _) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "method not allowed\n".into())
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "use /metrics or /kill-switch\n".into()),
    };
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    response
}

fn state(server: &Shared) -> String {
    if server.policy.is_killed() { "on\n" } else { "off\n" }.to_owned()
}
