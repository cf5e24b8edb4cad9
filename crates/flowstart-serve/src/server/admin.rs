//! Metrics and the kill switch over HTTP/1.1.
//!
//! `GET /metrics` gives the metrics. `GET /kill-switch` says `on` or `off`. `PUT /kill-switch` turns it on, and
//! `DELETE /kill-switch` turns it off; both are for clients on this host only, and for no web page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::Authority;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::Shared;

/// The format of metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The longest that a client may take for its request and to read the answer. A connection has one request, so nobody
/// keeps a place for longer.
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
                let answer = answer(&server, &request, client);
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(SLOWEST).keep_alive(false);
            // A client that leaves does not affect the server.
            drop(timeout(SLOWEST, http.serve_connection(TokioIo::new(stream), service)).await);
            drop(place);
        });
    }
}

fn answer<B>(server: &Shared, request: &Request<B>, client: SocketAddr) -> Response<Full<bytes::Bytes>> {
    let method = request.method();
    let (status, media_type, text) = match (request.uri().path(), method) {
        ("/metrics", &Method::GET) => {
            server.metrics.killed.set(server.policy.is_killed().into());
            server.metrics.fallen_back.set(server.policy.is_fallen_back(Instant::now()).into());
            if let Some(clients) = &server.scone {
                server.metrics.count_scone(clients);
            }
            if let Some(clients) = &server.quick_start {
                server.metrics.count_quick_start(clients);
            }
            (StatusCode::OK, OPEN_METRICS, server.metrics.text())
        }
        ("/kill-switch", &Method::GET) => (StatusCode::OK, "text/plain", state(server)),
        ("/kill-switch", &Method::PUT | &Method::DELETE) if !client.ip().to_canonical().is_loopback() => {
            (StatusCode::FORBIDDEN, "text/plain", "only from this host\n".into())
        }
        ("/kill-switch", &Method::PUT | &Method::DELETE) if is_of_a_page(request) => {
            (StatusCode::FORBIDDEN, "text/plain", "not from a web page\n".into())
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

/// Whether a browser may have sent the request for a page of somebody else: it says so (`Origin`), or it takes the name
/// of that page's host for this one (DNS rebinding), where other programs use an address or `localhost`.
fn is_of_a_page<B>(request: &Request<B>) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let is_of_this_host = |host: &Authority| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
    };
    request.headers().contains_key(header::ORIGIN) || !host.as_ref().is_some_and(is_of_this_host)
}

fn state(server: &Shared) -> String {
    if server.policy.is_killed() { "on\n" } else { "off\n" }.to_owned()
}
