//! The service and the client with each other, and with others.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::message::{AnswerError, asked_address, asked_endpoints, told_capacity};
use super::*;
use crate::PATIENCE;
use crate::path_store::memory::MemoryStore;
use crate::path_store::tests::{prefix, seen};
use crate::path_store::{Forgotten, Observation, PathStore, Prefixes, Retention, StoreError};

/// A service that runs until it is dropped.
struct Running {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    fn new(store: Arc<dyn PathStore>, limits: Limits) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let service = Service {
            store,
            prefixes: Prefixes::default(),
            merge: Merge::MostRecent,
            clock: Box::new(|| UnixTime::from_secs(1010)),
        };
        let thread = std::thread::spawn(move || {
            serve_within(listener, service, limits, async {
                let _ = stopped.await;
            })
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    fn client(&self) -> OracleClient {
        client(&format!("http://{}", self.address), PATIENCE.as_millis() as u64)
    }

    /// Sends text as it is and returns all of the answer.
    fn raw(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn post(&self, body: &str) -> String {
        self.raw(&format!(
            "POST /endpointprop HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn get(&self, target: &str) -> String {
        self.raw(&format!("GET {target} HTTP/1.1\r\nHost: oracle\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn client(server: &str, bound_ms: u64) -> OracleClient {
    OracleClient::new(ClientConfig {
        server: server.into(),
        bound: Duration::from_millis(bound_ms),
        ..ClientConfig::default()
    })
}

fn filled() -> Arc<dyn PathStore> {
    let store = MemoryStore::new(Retention::default());
    store.put(prefix("192.0.2.0/24"), seen(1000, 50, 70_000, 25)).unwrap();
    store.put(prefix("2001:db8:1::/48"), seen(1000, 10, 20_000, 5)).unwrap();
    Arc::new(store)
}

fn running() -> Running {
    Running::new(filled(), Limits::default())
}

fn at(seconds: u64) -> UnixTime {
    UnixTime::from_secs(seconds)
}

#[test]
fn a_client_learns_what_the_store_knows() {
    let oracle = running();
    let client = oracle.client();
    let known = client.capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap().unwrap();
    assert_eq!(known.prefix, "192.0.2.0/24".parse::<IpNet>().unwrap());
    assert_eq!((known.rate, known.min_rtt), (Rate::from_mbit(25), Duration::from_millis(50)));
    assert_eq!((known.cwnd, known.age_seconds, known.samples), (Bytes::new(70_000), 10, 1));
    let v6 = client.capacity("2001:db8:1:2::3".parse().unwrap(), at(0)).unwrap().unwrap();
    assert_eq!(v6.rate, Rate::from_mbit(5));
    assert_eq!(client.capacity("198.51.100.1".parse().unwrap(), at(0)).unwrap(), None);
}

#[test]
fn answers_are_remembered_for_their_prefix_and_time() {
    let oracle = running();
    let client = oracle.client();
    let ask = |text: &str, now| client.capacity(text.parse().unwrap(), at(now));
    assert!(ask("192.0.2.7", 0).unwrap().is_some());
    assert_eq!(ask("198.51.100.1", 0).unwrap(), None);
    drop(oracle);
    assert!(ask("192.0.2.99", 59).unwrap().is_some(), "the same prefix");
    assert_eq!(ask("198.51.100.1", 59).unwrap(), None, "that nothing is known is an answer");
    assert!(matches!(ask("192.0.2.7", 60), Err(OracleError::Unreachable(_))), "after 60 s it is asked again");
    assert!(matches!(ask("192.0.2.7", 61), Err(OracleError::Resting(left)) if left == Duration::from_millis(4000)));
    assert!(matches!(ask("192.0.2.7", 65), Err(OracleError::Unreachable(_))));
}

#[test]
fn alto_clients_get_altos_answers() {
    let oracle = running();
    let asked = r#"{"properties": ["priv:flowstart-capacity"],
                    "endpoints": ["ipv4:192.0.2.34", "ipv6:2001:db8:1::1", "ipv4:203.0.113.1"]}"#;
    let answer = oracle.post(asked);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/alto-endpointprop+json"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["endpoint-properties"]["ipv4:192.0.2.34"][PROPERTY]["rate"], "25mbit");
    assert_eq!(body["endpoint-properties"]["ipv6:2001:db8:1::1"][PROPERTY]["rate"], "5mbit");
    assert_eq!(body["endpoint-properties"]["ipv4:203.0.113.1"], json!({}));
}

#[test]
fn what_is_wrong_with_a_question_is_told_by_altos_codes() {
    let oracle = running();
    for (body, code) in [
        ("{", "E_SYNTAX"),
        ("{}", "E_MISSING_FIELD"),
        (r#"{"properties": 1, "endpoints": []}"#, "E_INVALID_FIELD_TYPE"),
        (r#"{"properties": ["pid"], "endpoints": []}"#, "E_INVALID_FIELD_VALUE"),
        (r#"{"properties": [], "endpoints": ["ipv4:2001:db8::"]}"#, "E_INVALID_FIELD_VALUE"),
    ] {
        let answer = oracle.post(body);
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(code), "{body}: {answer}");
    }
    assert!(oracle.get("/capacity").contains("E_MISSING_FIELD"));
    assert!(oracle.get("/capacity?address=here").contains(r#""value":"here""#));
    assert!(oracle.get("/capacity?address=2001%3Adb8%3A1%3A%3A1").starts_with("HTTP/1.1 200"));
    assert!(oracle.get("/else").starts_with("HTTP/1.1 404"));
    assert!(oracle.get("/endpointprop").starts_with("HTTP/1.1 405"));
    assert!(oracle.post(&"x".repeat(BODY_MAX + 1)).contains("E_SYNTAX"));
}

/// A store that always fails.
struct Broken;

impl PathStore for Broken {
    fn get(&self, _: Prefix, _: UnixTime) -> Result<Option<PathRecord>, StoreError> {
        Err(StoreError::Poisoned)
    }
    fn put(&self, _: Prefix, _: Observation) -> Result<(), StoreError> {
        Err(StoreError::Poisoned)
    }
    fn expire(&self, _: UnixTime) -> Result<Forgotten, StoreError> {
        Err(StoreError::Poisoned)
    }
}

#[test]
fn a_store_that_fails_is_told_and_remembered_as_a_failure() {
    let oracle = Running::new(Arc::new(Broken), Limits::default());
    let client = oracle.client();
    let address = "192.0.2.7".parse().unwrap();
    assert!(matches!(client.capacity(address, at(0)), Err(OracleError::Status(503))));
    assert!(matches!(client.capacity(address, at(1)), Err(OracleError::Resting(_))));
}

#[test]
fn clients_that_say_nothing_do_not_keep_others_waiting_for_ever() {
    let limits = Limits { connections: 2, header_time: Duration::from_millis(100), ..Limits::default() };
    let oracle = Running::new(filled(), limits);
    let _silent: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(oracle.address).unwrap()).collect();
    assert!(oracle.client().capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap().is_some());
}

#[test]
fn questions_that_were_asked_before_the_shutdown_are_answered() {
    /// A store that says when it is asked, and answers when it may.
    struct Slow {
        store: Arc<dyn PathStore>,
        asked: mpsc::Sender<()>,
        may_answer: Mutex<mpsc::Receiver<()>>,
    }
    impl PathStore for Slow {
        fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError> {
            self.asked.send(()).unwrap();
            self.may_answer.lock().unwrap().recv().unwrap();
            self.store.get(prefix, now)
        }
        fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError> {
            self.store.put(prefix, observation)
        }
        fn expire(&self, now: UnixTime) -> Result<Forgotten, StoreError> {
            self.store.expire(now)
        }
    }
    let (asked, was_asked) = mpsc::channel();
    let (answer, may_answer) = mpsc::channel();
    // An answer is waited for, and none of these times.
    let limit = Duration::from_millis(10 * PATIENCE.as_millis() as u64);
    let limits = Limits { closing_time: limit, connection_time: limit, ..Limits::default() };
    let store = Slow { store: filled(), asked, may_answer: Mutex::new(may_answer) };
    let mut oracle = Running::new(Arc::new(store), limits);
    let address = oracle.address;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /capacity?address=192.0.2.7 HTTP/1.1\r\nHost: oracle\r\n\r\n").unwrap();
    was_asked.recv_timeout(PATIENCE).unwrap();
    // The shutdown begins, and new connections are refused.
    drop(oracle.stop.take());
    let started = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(started.elapsed() < PATIENCE, "new connections are refused");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    answer.send(()).unwrap();
    drop(oracle);
    assert!(started.elapsed() < PATIENCE, "the answer ends it, not a limit");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("25mbit"), "{answer}");
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_server_is_an_address_of_http() {
    let valid = |server: &str| ClientConfig { server: server.into(), ..ClientConfig::default() }.validate().is_ok();
    assert!(["http://127.0.0.1:8085", "http://[::1]:8085/", "http://oracle.example"].into_iter().all(valid));
    for server in ["", "oracle", "127.0.0.1:8085", "https://oracle", "http://", "http://:80", "http://o/p", "ftp://o"] {
        assert!(!valid(server), "{server}");
    }
}

/// What is wrong with a server's answer, however late it comes.
fn told(server: &str) -> OracleError {
    client(server, PATIENCE.as_millis() as u64).capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap_err()
}

/// The client has to fail within its bound of 50 ms. How busy the machine is says how much later this thread is told.
fn fails_in_time(server: &str) -> OracleError {
    let client = client(server, 50);
    let started = Instant::now();
    let error = client.capacity("192.0.2.7".parse().unwrap(), at(0)).unwrap_err();
    let taken = started.elapsed();
    assert!(taken < PATIENCE, "{taken:?} for a bound of 50 ms");
    error
}

/// A server that sends `head` and then `drop` every 10 ms.
fn dripping(head: &'static [u8], drop: &'static [u8]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let mut sent = stream.write_all(head);
                while sent.is_ok() && !drop.is_empty() {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    sent = stream.write_all(drop);
                }
            });
        }
    });
    server
}

#[test]
fn an_oracle_that_cannot_be_reached_delays_no_longer_than_the_bound() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let late = fails_in_time(&format!("http://{}", silent.local_addr().unwrap()));
    assert!(matches!(late, OracleError::Late(_)), "{late}");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    for server in [format!("http://127.0.0.1:{port}"), "http://no-such-host.invalid".into(), "no address at all".into()]
    {
        assert!(matches!(fails_in_time(&server), OracleError::Unreachable(_)), "{server}");
    }
    // A host that is not there says nothing, or the network says so for it.
    let nobody = fails_in_time("http://192.0.2.1:8085");
    assert!(matches!(nobody, OracleError::Unreachable(_) | OracleError::Late(_)), "{nobody}");
}

#[test]
fn an_oracle_that_answers_byte_by_byte_delays_no_longer_than_the_bound() {
    let in_the_head = dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x");
    assert!(matches!(fails_in_time(&in_the_head), OracleError::Late(_)));
    let in_the_body = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", b" ");
    assert!(matches!(fails_in_time(&in_the_body), OracleError::Late(_)));
}

#[test]
fn an_oracle_that_answers_nonsense_is_told() {
    let body = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwhat", b"");
    assert!(matches!(told(&body), OracleError::Answer(AnswerError::Syntax(_))));
    let status = dripping(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", b"");
    assert!(matches!(told(&status), OracleError::Status(302)));
    let endless = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", &[b' '; 65_536]);
    assert!(matches!(fails_in_time(&endless), OracleError::Unreachable(_)));
    let other = dripping(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"prefix\":\"10.0.0.0/8\",\"rate\":\"1mbit\",\"min_rtt\":\
          \"1ms\",\"cwnd\":\"1KB\",\"age_seconds\":1,\"samples\":1}",
        b"",
    );
    assert!(matches!(told(&other), OracleError::Answer(AnswerError::OtherPrefix { .. })));
}

proptest! {
    #[test]
    fn no_question_makes_the_service_panic(body in prop::collection::vec(any::<u8>(), 0..200), text in ".*") {
        let _ = (asked_endpoints(&body), asked_address(&body), told_capacity(&body, Ipv4Addr::LOCALHOST.into()));
        let _ = asked_endpoints(format!(r#"{{"properties": [], "endpoints": [{text:?}]}}"#).as_bytes());
    }
}
