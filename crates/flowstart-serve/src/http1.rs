//! Short texts over HTTP/1.1, as for metrics: one request for each connection, and few connections at a time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
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
    serve_within(listener, SLOWEST, answer).await;
}

/// As [`serve`], with this long for each client.
async fn serve_within(
    listener: TcpListener,
    slowest: Duration,
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
            http.keep_alive(false);
            // A client that leaves does not affect the server.
            drop(timeout(slowest, http.serve_connection(TokioIo::new(stream), service)).await);
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// More than the buffers of two sockets hold.
    const LARGE: usize = 32 << 20;

    #[tokio::test]
    async fn who_does_not_ask_or_does_not_read_loses_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = |request: &Parts, _| {
            let size = if request.uri.path() == "/large" { LARGE } else { 1 };
            (StatusCode::OK, PLAIN, "x".repeat(size))
        };
        let serving = tokio::spawn(serve_within(listener, Duration::from_millis(500), answer));
        let mut held = Vec::new();
        for place in 0..CLIENTS {
            let mut client = TcpStream::connect(address).await.unwrap();
            // Nothing, half a head, or a request whose answer nobody reads.
            let sent = ["", "GET / HTTP/1.1\r\nhost: l", "GET /large HTTP/1.1\r\nhost: l\r\n\r\n"][place.min(2)];
            client.write_all(if place > 4 { "GET /" } else { sent }.as_bytes()).await.unwrap();
            held.push(client);
        }
        let got = async {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost: l\r\n\r\n").await.unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).await.unwrap();
            text
        };
        let text = timeout(Duration::from_secs(30), got).await.expect("a place becomes free");
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with('x'), "{text}");
        // Answers that were begun are cut off. By now the time of all is over, and nobody has read.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut cut = Vec::new();
        assert!(held[3].read_to_end(&mut cut).await.is_err() || cut.len() < LARGE, "all of it came");
        serving.abort();
    }
}
