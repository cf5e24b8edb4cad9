//! Metrics and the kill switch over HTTP/1.1.
//!
//! `GET /metrics` gives the metrics. `GET /kill-switch` says `on` or `off`. `PUT /kill-switch` turns it on, and
//! `DELETE /kill-switch` turns it off; both are for clients on this host only, and for no web page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode, header};
use tokio::net::TcpListener;

use super::Shared;
use crate::http1::{self, Answer, OPEN_METRICS, PLAIN};

/// Answers until it is aborted.
pub(crate) async fn serve(listener: TcpListener, server: Arc<Shared>) {
    http1::serve(listener, move |request, client| answer(&server, request, client)).await;
}

fn answer(server: &Shared, request: &Parts, client: SocketAddr) -> Answer {
    let method = &request.method;
    match (request.uri.path(), method) {
        ("/metrics", &Method::GET) => {
            server.metrics.killed.set(server.policy.is_killed().into());
            let now = Instant::now();
            server.metrics.fallen_back.set(server.policy.is_fallen_back(now).into());
            server.metrics.fallen_back_prefixes.set(server.policy.fallen_back_prefixes(now) as i64);
            if let Some(clients) = &server.scone {
                server.metrics.count_scone(clients);
            }
            if let Some(clients) = &server.quick_start {
                server.metrics.count_quick_start(clients);
            }
            (StatusCode::OK, OPEN_METRICS, server.metrics.text())
        }
        ("/kill-switch", &Method::GET) => (StatusCode::OK, PLAIN, state(server)),
        ("/kill-switch", &Method::PUT | &Method::DELETE) if !client.ip().to_canonical().is_loopback() => {
            (StatusCode::FORBIDDEN, PLAIN, "only from this host\n".into())
        }
        ("/kill-switch", &Method::PUT | &Method::DELETE) if is_of_a_page(request) => {
            (StatusCode::FORBIDDEN, PLAIN, "not from a web page\n".into())
        }
        ("/kill-switch", &Method::PUT | &Method::DELETE) => {
            server.policy.kill(method == Method::PUT);
            (StatusCode::OK, PLAIN, state(server))
        }
        ("/metrics" | "/kill-switch", _) => (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "method not allowed\n".into()),
        _ => (StatusCode::NOT_FOUND, PLAIN, "use /metrics or /kill-switch\n".into()),
    }
}

/// Whether a browser may have sent the request for a page of somebody else: it says so (`Origin`), or it takes the name
/// of that page's host for this one (DNS rebinding), where other programs use an address or `localhost`.
fn is_of_a_page(request: &Parts) -> bool {
    let host = request.headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let is_of_this_host = |host: &Authority| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
    };
    request.headers.contains_key(header::ORIGIN) || !host.as_ref().is_some_and(is_of_this_host)
}

fn state(server: &Shared) -> String {
    if server.policy.is_killed() { "on\n" } else { "off\n" }.to_owned()
}
