//! Metrics over HTTP/1.1, for Prometheus: of commands that are no HTTP/3 servers.

use std::fmt::{Display, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use flowstart_serve::http1::{self, OPEN_METRICS, PLAIN};
use http::{Method, StatusCode};

use crate::failure::Failure;

/// Answers with `text` at this address as long as the process lives; the address, with its port. `text` may block for a
/// moment: whoever asks waits.
pub(crate) fn listen(
    address: SocketAddr,
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> Result<SocketAddr, Failure> {
    let unusable = |cause| Failure::Input(format!("--metrics {address}: {cause}"));
    let listener = TcpListener::bind(address).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let bound = listener.local_addr().map_err(unusable)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unusable)?;
    thread::spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            http1::serve(listener, move |request, _| match (request.uri.path(), &request.method) {
                ("/metrics", &Method::GET) => (StatusCode::OK, OPEN_METRICS, text()),
                ("/metrics", _) => (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "method not allowed\n".into()),
                _ => (StatusCode::NOT_FOUND, PLAIN, "use /metrics\n".into()),
            })
            .await;
        });
    });
    Ok(bound)
}

/// Writes a metric, with its labels before each value.
pub(crate) fn metric(text: &mut String, name: &str, kind: &str, help: &str, values: &[(String, impl Display)]) {
    // A string takes all that is written.
    let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    let suffix = if kind == "counter" { "_total" } else { "" };
    for (labels, value) in values {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(text, "{name}{suffix}{labels} {value}");
    }
}

/// The last line of a text.
pub(crate) const END: &str = "# EOF\n";
