//! Short texts over HTTP/1.1, as for metrics: one request for each connection, and few connections at a time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// The format of metrics.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The format of other texts.
pub const PLAIN: &str = "text/plain";
/// The longest that a client may take for its request and to read the answer. A connection has one request, so nobody
/// keeps a place for longer.
const SLOWEST: Duration = Duration::from_secs(10);
/// Clients at a time.
const CLIENTS: usize = 64;

/// An answer: its status, its media type and its text.
pub type Answer = (StatusCode, &'static str, String);

/// Answers until it is aborted.
pub async fn serve(
    listener: TcpListener,
    answer: impl Fn(&Parts, SocketAddr) -> Answer + Clone + Send + Sync + 'static,
) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CLIENTS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, client)) = listener.accept().await else {
            // Out of file descriptors, most likely. That passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let (status, media_type, text) = answer(&request.into_parts().0, client);
                let mut response = Response::new(Full::<bytes::Bytes>::new(text.into()));
                *response.status_mut() = status;
                response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(SLOWEST).keep_alive(false);
            // A client that leaves does not affect the server.
            drop(timeout(SLOWEST, http.serve_connection(TokioIo::new(stream), service)).await);
            drop(place);
        });
    }
}
