//! Answers of HTTP, each with what a browser may do with it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

use crate::ask::Event;

/// An answer.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Media types.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";
pub(crate) const STYLE: &str = "text/css; charset=utf-8";
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const TOML: &str = "application/toml; charset=utf-8";
pub(crate) const CSV: &str = "text/csv; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// What a page of this server may do: show and run what is of this server, and nothing else.
const OWN: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                   frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";
/// What a report may do. It is one file with scripts inside and may be anybody's, so it gets an origin of its own: it
/// reaches neither this server nor the page around it.
const REPORT: &str = "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src \
                      'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'";

/// What every answer says.
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

fn with(body: BoxBody<Bytes, Infallible>, media: &'static str, policy: &'static str) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

/// A page, script or text of this server.
pub(crate) fn own(media: &'static str, text: impl Into<Bytes>) -> Answer {
    with(Full::new(text.into()).boxed(), media, OWN)
}

/// A report, which may be anybody's.
pub(crate) fn report(html: impl Into<Bytes>) -> Answer {
    with(Full::new(html.into()).boxed(), HTML, REPORT)
}

/// A file to keep, with this name.
pub(crate) fn file(name: &str, media: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut answer = own(media, content);
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
    let name: String = name.chars().filter(is_plain).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    answer
}

/// The same answer with another status.
pub(crate) fn status(status: StatusCode, mut answer: Answer) -> Answer {
    *answer.status_mut() = status;
    answer
}

/// A line that says what is wrong.
pub(crate) fn refused(code: StatusCode, problem: &str) -> Answer {
    status(code, own(PLAIN, format!("{problem}\n")))
}

/// Another address, with a cookie if there is one to set.
pub(crate) fn elsewhere(address: &str, cookie: Option<&str>) -> Answer {
    let mut answer = status(StatusCode::SEE_OTHER, own(PLAIN, Bytes::new()));
    for (name, value) in [(header::LOCATION, Some(address)), (header::SET_COOKIE, cookie)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// An event as a line of its name and one of what it says (server-sent events of HTML); none if there is nothing to
/// say.
pub(super) fn line(event: &Event) -> Option<Bytes> {
    let (name, data) = event.told()?;
    // JSON has no line breaks of its own.
    Some(format!("event: {name}\ndata: {data}\n\n").into())
}

/// Events that come from this channel; a client that goes closes it.
pub(crate) fn events(events: mpsc::Receiver<Bytes>) -> Answer {
    with(Events(events).boxed(), EVENTS, OWN)
}

/// The body of an answer that is written as its parts come.
struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_two_lines_whatever_it_says() {
        let event = line(&Event::Failed("two\nlines".into())).unwrap();
        assert_eq!(&*event, b"event: failed\ndata: {\"problem\":\"two\\nlines\"}\n\n");
        assert!(line(&Event::Nothing).is_none());
    }
}
