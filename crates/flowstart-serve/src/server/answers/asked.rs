//! What a request asks for, and whether it gets anything.

use http::uri::Scheme;
use http::{HeaderValue, Method, Request, StatusCode, header};

use crate::http3;
use crate::server::priority;

/// Longest path of a request in bytes, that of files (`PATH_MAX` of Linux).
const LONGEST_PATH: usize = 4096;

/// Whether a TE field has this value alone (RFC 9114, section 4.2); case does not count (RFC 9110, section 10.1.4).
fn is_trailers(accepted: &HeaderValue) -> bool {
    accepted.as_bytes().eq_ignore_ascii_case(b"trailers")
}

/// What makes a request malformed that the HTTP library lets pass (RFC 9114, sections 4.2 and 4.3.1).
pub(super) fn malformed(request: &Request<()>) -> Option<&'static str> {
    let fields = request.headers();
    http3::forbidden_field(fields).or_else(|| {
        let (authority, is_connect) = (request.uri().authority(), request.method() == Method::CONNECT);
        let wrong = [
            ("te", fields.get_all(header::TE).iter().any(|accepted| !is_trailers(accepted))),
            ("host", fields.get_all(header::HOST).iter().count() > 1),
            ("content-length", http3::content_length(fields).is_err()),
            // CONNECT alone has none of both (RFC 9114, section 4.4).
            (":scheme", request.uri().scheme().is_some() == is_connect),
            (":path", request.uri().path_and_query().is_some() == is_connect),
            (":authority", authority.is_some_and(|authority| authority.as_str().contains('@'))),
        ];
        wrong.into_iter().find(|(_, is_wrong)| *is_wrong).map(|(name, _)| name)
    })
}

/// What an answer needs of its request.
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) is_head: bool,
    /// Whether later answers go first (RFC 9218).
    pub(super) can_wait: bool,
    pub(super) takes_trailers: bool,
}

impl Asked {
    pub(super) fn of(request: &Request<()>) -> Self {
        Self {
            path: request.uri().path().to_owned(),
            is_head: request.method() == Method::HEAD,
            can_wait: priority::can_wait(request),
            takes_trailers: request.headers().get(header::TE).is_some_and(is_trailers),
        }
    }
}

/// Fields of an answer.
pub(super) type Fields = &'static [(header::HeaderName, &'static str)];

/// Why a request gets no content, if it does not, with the fields of the answer.
pub(super) fn refusal(request: &Request<()>, early: bool) -> Option<(StatusCode, &'static str, Fields)> {
    const ALLOWED: Fields = &[(header::ALLOW, "GET, HEAD")];
    if request.uri().scheme().is_some_and(|scheme| *scheme != Scheme::HTTPS) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "only https is served", &[]));
    }
    if request.uri().path().len() > LONGEST_PATH {
        return Some((StatusCode::URI_TOO_LONG, "the path is too long", &[]));
    }
    match *request.method() {
        Method::GET | Method::HEAD => None,
        // An attacker who has recorded the client's first packets may send them again (RFC 8470, section 5.2).
        _ if early => Some((StatusCode::TOO_EARLY, "only GET and HEAD may be early", &[])),
        _ => Some((StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD", ALLOWED)),
    }
}
