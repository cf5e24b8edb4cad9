//! Who may ask: everybody on this machine on a loopback address, and elsewhere who knows the token. Pages of other
//! hosts may lead here, and may not ask behind their reader's back.

use std::net::IpAddr;

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};

use super::answer::{Answer, elsewhere, refused};

/// The name of the token in addresses, and of its cookie.
const TOKEN: &str = "token";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 18;

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Everybody on this machine.
    Loopback,
    /// Who has this token, from the address that the command prints or from the cookie that it leads to.
    Token(String),
}

/// A new token, of letters and digits.
///
/// # Errors
///
/// The system has no random numbers.
pub fn token() -> Result<String, String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers for a token".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Guard {
    /// The answer to who may not ask, or who has to be led on first.
    pub(crate) fn refusal(&self, request: &Parts) -> Option<Answer> {
        let Some(host) = host(&request.headers) else {
            return Some(refused(StatusCode::BAD_REQUEST, "the request names no host"));
        };
        match self {
            // Otherwise a page could give its own name this machine's address (DNS rebinding).
            Self::Loopback if !is_loopback(&host) => {
                let problem = format!("this server is not {host}; allowed are localhost and loopback addresses");
                return Some(refused(StatusCode::MISDIRECTED_REQUEST, &problem));
            }
            Self::Loopback => {}
            Self::Token(token) => {
                if let Some(answer) = without_token(token, request) {
                    return Some(answer);
                }
            }
        }
        is_of_another_page(request, &host)
            .then(|| refused(StatusCode::FORBIDDEN, "asked by a page of somebody else; open the address itself"))
    }
}

/// The host that a request is for.
fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(header::HOST)?.to_str().ok()?.parse().ok()
}

fn is_loopback(host: &Authority) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The answer to a request without the token, or with the token in its address: the cookie takes its place, so that
/// addresses which readers pass on do not have it.
fn without_token(token: &str, request: &Parts) -> Option<Answer> {
    let cookies = request.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|line| line.split(';')).filter_map(|one| one.trim().split_once('='));
    let has_cookie = cookies.any(|(name, value)| name == TOKEN && is_same(value, token));
    let query = request.uri.query().unwrap_or_default();
    let pairs = || form_urlencoded::parse(query.as_bytes());
    let is_token = |name: &str| name == TOKEN;
    if pairs().any(|(name, value)| is_token(&name) && is_same(&value, token)) {
        let rest = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs().filter(|(name, _)| !is_token(name)))
            .finish();
        // Two slashes would lead to another host.
        let path = format!("/{}", request.uri.path().trim_start_matches('/'));
        let address = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        let cookie = format!("{TOKEN}={token}; Path=/; HttpOnly; SameSite=Strict");
        return Some(elsewhere(&address, Some(&cookie)));
    }
    (!has_cookie).then(|| {
        let problem = "the token is missing; open the address that `flowstart ui` has printed";
        refused(StatusCode::UNAUTHORIZED, problem)
    })
}

/// Compares in a time that does not tell how much is right.
fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

/// Paths of which each request performs a question.
const WORK: [&str; 4] = ["/events", "/answers/", "/packets", "/change.html"];

/// Whether a page of somebody else sends the request, other than by leading its reader to a page. A frame of that page
/// does not: its reader need not see it.
fn is_of_another_page(request: &Parts, host: &Authority) -> bool {
    let said = |name: HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
    let is_navigation = request.method == Method::GET
        && said(HeaderName::from_static("sec-fetch-mode")) == Some("navigate")
        && said(HeaderName::from_static("sec-fetch-dest")) == Some("document")
        && !WORK.iter().any(|path| request.uri.path().starts_with(path));
    let is_ours = |origin: &str| origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host.as_str()));
    let is_foreign = match said(HeaderName::from_static("sec-fetch-site")) {
        Some(site) => !["same-origin", "none"].contains(&site),
        // Older browsers say only this, and other programs nothing.
        None => said(header::ORIGIN).is_some_and(|origin| !is_ours(origin)),
    };
    is_foreign && !is_navigation
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn request(method: &str, address: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn code(guard: &Guard, request: &Parts) -> u16 {
        guard.refusal(request).map_or(200, |answer| answer.status().as_u16())
    }

    #[test]
    fn a_name_that_is_given_this_machines_address_is_refused() {
        for (host, expected) in [
            ("127.0.0.1:8080", 200),
            ("localhost:8080", 200),
            ("LOCALHOST", 200),
            ("[::1]:8080", 200),
            ("127.1.2.3", 200),
            ("evil.example:8080", 421),
            ("localhost.evil.example", 421),
            ("192.0.2.1:8080", 421),
            ("not a host", 400),
        ] {
            assert_eq!(code(&Guard::Loopback, &request("GET", "/", &[("host", host)])), expected, "{host}");
        }
        assert_eq!(code(&Guard::Loopback, &request("GET", "/", &[])), 400);
    }

    #[test]
    fn elsewhere_a_token_is_needed_and_becomes_a_cookie() {
        let guard = Guard::Token("abc123".into());
        let host = ("host", "lab.example:8080");
        assert_eq!(code(&guard, &request("GET", "/", &[host])), 401);
        assert_eq!(code(&guard, &request("GET", "/?token=abc124", &[host])), 401);
        assert_eq!(code(&guard, &request("GET", "/?token=", &[host])), 401);
        assert_eq!(code(&guard, &request("GET", "/", &[host, ("cookie", "other=1; token=abc12")])), 401);
        assert_eq!(code(&guard, &request("GET", "/", &[host, ("cookie", "other=1; token=abc123")])), 200);
        let answer = guard.refusal(&request("GET", "//evil.example/x?size=1MB&token=abc123", &[host])).unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()[header::LOCATION], "/evil.example/x?size=1MB");
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.starts_with("token=abc123;") && cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    }

    #[test]
    fn pages_of_others_may_lead_here_and_not_ask() {
        const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");
        const NAVIGATE: (&str, &str) = ("sec-fetch-mode", "navigate");
        let host = ("host", "127.0.0.1:8080");
        let led = [host, CROSS, NAVIGATE, ("sec-fetch-dest", "document")];
        for path in ["/events?size=2MB", "/answers/x/report.html", "/packets?cell=1"] {
            assert_eq!(code(&Guard::Loopback, &request("GET", path, &led)), 403, "{path}");
        }
        for (method, headers, expected) in [
            ("GET", &[CROSS, NAVIGATE, ("sec-fetch-dest", "document")][..], 200),
            ("GET", &[CROSS, NAVIGATE, ("sec-fetch-dest", "iframe")], 403),
            ("GET", &[CROSS, NAVIGATE], 403),
            ("POST", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 403),
            ("GET", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], 403),
            ("GET", &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")], 403),
            ("POST", &[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:8080")], 200),
            ("POST", &[("origin", "http://127.0.0.1:8080")], 200),
            ("POST", &[("origin", "http://127.0.0.1:9090")], 403),
            ("POST", &[("origin", "null")], 403),
            ("POST", &[], 200),
        ] {
            let headers = [&[host], headers].concat();
            assert_eq!(code(&Guard::Loopback, &request(method, "/", &headers)), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn tokens_differ() {
        let [one, other] = [token().unwrap(), token().unwrap()];
        assert!(one != other && one.len() == 2 * TOKEN_BYTES && one.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
