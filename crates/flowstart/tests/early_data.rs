//! Requests with the first packets of returning clients (0-RTT) and the tokens that prove their addresses.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::QuicClientConfig;
use noq::{NoneTokenStore, VarInt};
use predicates::prelude::*;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use server::{Relay, Server, certificate, flowstart, lossy_path};

/// One way, from the server to the client: a round trip that nothing on a busy host takes as long as.
const DELAY: Duration = Duration::from_millis(300);

/// The timings of each download.
fn told(output: &[u8]) -> Vec<Value> {
    output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn repeated(path: &str, options: &[&str]) -> Vec<Value> {
    let url = format!("https://{path}/generate/5KB");
    let get = flowstart().args(["get", "--insecure", "--json", "--repeat", "3", &url]).args(options).assert().success();
    told(&get.get_output().stdout)
}

#[test]
fn a_returning_clients_request_saves_the_round_trip_of_the_handshake() {
    let server = Server::self_signed(&["--early-data"]);
    let path = lossy_path(&server.url, DELAY, 0..0);
    let timings = repeated(&path, &[]);
    let early: Vec<_> = timings.iter().map(|one| one["early_data"].as_str()).collect();
    assert_eq!(early, [None, Some("accepted"), Some("accepted")]);
    let fct: Vec<_> = timings.iter().map(|one| one["fct_ms"].as_f64().unwrap()).collect();
    // One delay for the handshake and one for the answer; then only one.
    assert!(fct[0] > 600.0 && fct[1] > 300.0 && fct[1] < 550.0 && fct[2] < 550.0, "{fct:?}");
    server.wait_for("flowstart_early_requests_total 2");
    server.wait_for("flowstart_connection_attempts_total{result=\"accepted\"} 3");
    // Each ticket is good for one connection, and each connection brings new ones.
    assert!(timings.iter().all(|one| one["bytes"] == 5000 && one["status"] == 200));
}

#[test]
fn a_returning_clients_answer_is_launched_with_what_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (folder.path().join("logs"), folder.path().join("paths.redb"));
    std::fs::create_dir(&logs).unwrap();
    let [log, store] = [&logs, &store].map(|path| path.to_str().unwrap());
    let startup = ["--startup", "more-start:source=saved", "--path-store", store];
    let server = Server::self_signed(&[&["--early-data", "--qlog", log][..], &startup].concat());
    let relay = Relay::start(&server.url, &["relay", "--link", "rate=20mbit,rtt=200ms,buffer=400pkt"]);
    let url = format!("https://{}/generate/300KB", relay.address);
    let tokens = folder.path().join("tokens");
    let mut get = flowstart();
    get.args(["get", "--insecure", "--json", "--repeat", "3", &url, "--tokens"]).arg(&tokens);
    let timings = told(&get.assert().success().get_output().stdout);
    assert_eq!(timings[2]["early_data"], "accepted", "{timings:?}");
    server.wait_for("flowstart_connections_active 0");
    assert!(server.end().0.success());
    // When a connection's scheme launched, and its window.
    let mut launches: Vec<(f64, u64)> = std::fs::read_dir(&logs)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .flat_map(|text| {
            text.split('\u{1e}').skip(1).map(|one| serde_json::from_str(one).unwrap()).collect::<Vec<Value>>()
        })
        .filter(|event| event["name"] == "flowstart:launch")
        .map(|event| (event["time"].as_f64().unwrap(), event["data"]["cwnd_bytes"].as_u64().unwrap()))
        .collect();
    launches.sort_by(|one, other| one.0.total_cmp(&other.0));
    // When the second begins, the end of the first may not have come to the server. The third knows the path: it waits
    // for no round trip, and for no sample.
    let [(early, window), _, (first, initial)] = launches[..] else { panic!("{launches:?}") };
    assert!(first >= 200.0 && early < 150.0 && initial == 12_000 && window > 24_000, "{launches:?}");
}

#[test]
fn a_server_that_takes_no_early_data_answers_all_the_same() {
    let server = Server::self_signed(&[]);
    let timings = repeated(server.url.strip_prefix("https://").unwrap(), &[]);
    assert!(timings.iter().all(|one| one["early_data"].is_null() && one["bytes"] == 5000), "{timings:?}");
    server.wait_for("flowstart_early_requests_total 0");
}

#[test]
fn tokens_are_kept_in_a_file_and_spare_a_retry() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    // Every client has to prove its address.
    let server = Server::self_signed(&["--early-data", "--max-handshakes", "0"]);
    let get = |retries: &str| {
        server.get("/generate/5KB").arg("--tokens").arg(&file).assert().success();
        server.wait_for(&format!("flowstart_connection_attempts_total{{result=\"retry\"}} {retries}"));
    };
    get("1");
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(first.lines().count() > 0 && first.lines().all(|line| line.starts_with("127.0.0.1 ")), "{first}");
    get("1");
    let second = std::fs::read_to_string(&file).unwrap();
    let used = first.lines().filter(|line| !second.contains(line)).count();
    assert!(used >= 1, "the token that was sent is still there:\n{first}\n{second}");
    // The same token again proves nothing.
    std::fs::write(&file, first.lines().last().unwrap()).unwrap();
    get("2");
}

#[test]
fn bad_tokens_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "localhost 00\nlocalhost xyz\n").unwrap();
    let get = flowstart().args(["get", "https://localhost/", "--tokens"]).arg(&file).assert().code(2);
    get.stderr(predicate::str::contains("tokens: line 2: use a server's name"));
    let many = flowstart().args(["get", "https://localhost/", "--repeat", "2", "--out", "x"]).assert().code(2);
    many.stderr(predicate::str::contains("--repeat: what comes many times cannot go to --out"));
}

/// A HEADERS frame of HTTP/3 with fields of QPACK's static table (RFC 9204, appendix A): `method` is its number there,
/// then `:scheme https`, `:path /` and `:authority localhost`.
fn request(method: u8) -> Vec<u8> {
    let fields = [&[0, 0, 0xc0 | method, 0xc0 | 23, 0xc0 | 1, 0x50, 9], &b"localhost"[..]].concat();
    [&[1, u8::try_from(fields.len()).unwrap()], &fields[..]].concat()
}

const POST: u8 = 20;
const GET: u8 = 17;

/// The same for this path, by GET.
fn request_for(path: &[u8]) -> Vec<u8> {
    let length = |text: &[u8]| u8::try_from(text.len()).unwrap();
    let fields = [&[0, 0, 0xc0 | GET, 0xc0 | 23, 0x51, length(path)], path, &[0x50, 9], b"localhost"].concat();
    [&[1, length(&fields)], &fields[..]].concat()
}

async fn ask(connection: &noq::Connection, request: Vec<u8>) -> Vec<u8> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&request).await.unwrap();
    send.finish().unwrap();
    receive.read_to_end(1_000_000).await.unwrap()
}

fn says(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|part| part == text.as_bytes())
}

/// A server that takes early data, and a client of it.
fn server_and_client(options: &[&str]) -> (Server, Client) {
    let folder = tempfile::tempdir().unwrap();
    let files = certificate(folder.path(), 2999);
    let server = Server::start(&[&["--cert", &files[0], "--key", &files[1], "--early-data"], options].concat());

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files[0]).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]);
    let mut tls = tls.unwrap().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.enable_early_data = true;
    let mut config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    // A token would prove its address.
    config.token_store(Arc::new(NoneTokenStore));
    let endpoint = noq::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    (server, Client { endpoint, config })
}

struct Client {
    endpoint: noq::Endpoint,
    config: noq::ClientConfig,
}

impl Client {
    fn connect(&self, address: SocketAddr) -> noq::Connecting {
        self.endpoint.connect_with(self.config.clone(), address, "localhost").unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_request_of_a_forged_address_is_counted_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (folder.path().join("logs"), folder.path().join("paths.redb"));
    std::fs::create_dir(&logs).unwrap();
    let [log, store] = [&logs, &store].map(|path| path.to_str().unwrap());
    let knows = ["--startup", "more-start:source=saved", "--path-store", store, "--qlog", log];
    let (server, client) = server_and_client(&[&knows[..], &["--handshake-time", "1s"]].concat());
    let address = server.url.strip_prefix("https://").unwrap().parse().unwrap();
    let content = || request_for(b"/generate/100KB");

    // The first has an answer beyond the initial window, so its path is known, and a ticket.
    let first = client.connect(address).await.unwrap();
    first.handshake_confirmed().await.unwrap();
    assert!(ask(&first, content()).await.len() > 100_000);
    first.close(VarInt::from_u32(0x100), b"");
    server.wait_for("flowstart_launches_total{scheme=\"more-start:source=saved\"} 1");

    let counted = || {
        let metrics = server.http("GET", "/metrics");
        let is_of_starts =
            |line: &&str| ["launches", "sources", "startup"].iter().any(|name| line[10..].starts_with(name));
        metrics.lines().filter(|line| line.starts_with("flowstart_")).filter(is_of_starts).map(str::to_owned).collect()
    };
    let before: Vec<String> = counted();

    // What the second sends comes to the server, and nothing from there comes back, as with somebody's address.
    let path = lossy_path(&server.url, Duration::from_secs(3600), 0..0).parse().unwrap();
    let Ok((second, _)) = client.connect(path).into_0rtt() else { panic!("no ticket") };
    let asking = tokio::spawn(async move { ask(&second, content()).await });
    server.wait_for("flowstart_early_requests_total 1");
    server.wait_for("flowstart_connection_attempts_total{result=\"failed\"} 1");
    server.wait_for("flowstart_connections_active 0");
    asking.abort();
    assert_eq!(counted(), before);
    assert!(server.end().0.success());
    assert_eq!(std::fs::read_dir(&logs).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_safe_methods_are_answered_early() {
    let (server, client) = server_and_client(&[]);
    let connect = |address: SocketAddr| client.connect(address);

    let first = connect(server.url.strip_prefix("https://").unwrap().parse().unwrap()).await.unwrap();
    // The methods that are served, and those that are not, after a handshake.
    assert!(says(&ask(&first, request(POST)).await, "use GET or HEAD"));
    first.handshake_confirmed().await.unwrap();

    let path = lossy_path(&server.url, DELAY, 0..0).parse().unwrap();
    let Ok((second, accepted)) = connect(path).into_0rtt() else { panic!("no ticket") };
    let (early, get) = tokio::join!(ask(&second, request(POST)), ask(&second, request(GET)));
    assert!(accepted.await);
    // HEADERS, its length in two bytes, QPACK's prefix; `:status 425` is number 70 of the static table, 63 + 7 in a
    // prefix of 6 bits.
    assert_eq!((early[0], &early[3..7]), (1, &[0, 0, 0xff, 7][..]), "{early:?}");
    assert!(says(&early, "only GET and HEAD may be early"));
    assert!(says(&get, "not found"));
    // The client may ask again now.
    assert!(says(&ask(&second, request(POST)).await, "use GET or HEAD"));
}
