//! `flowstart serve` as a process, and a path to it, for tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command as Program, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use flowstart_quic::session;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

/// The program.
pub(crate) fn flowstart() -> Command {
    Command::cargo_bin("flowstart").unwrap()
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    /// Its process.
    pub(crate) child: Child,
    /// Where it listens.
    pub(crate) url: String,
    metrics: String,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::run(Program::new(assert_cmd::cargo::cargo_bin("flowstart")).stderr(Stdio::piped()), options)
    }

    /// Starts it by a program that takes its arguments.
    pub(crate) fn run(program: &mut Program, options: &[&str]) -> Self {
        Self::run_at("127.0.0.1:0", program, options)
    }

    fn run_at(listen: &str, program: &mut Program, options: &[&str]) -> Self {
        let mut child = program
            .args(["serve", "--listen", listen, "--metrics", "127.0.0.1:0", "--json"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no server: {line}"));
        let text = |key: &str| ready[key].as_str().unwrap().to_owned();
        let metrics = text("metrics").strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned();
        Self { url: text("listening"), metrics, child }
    }

    pub(crate) fn self_signed(options: &[&str]) -> Self {
        Self::start(&[&["--self-signed"], options].concat())
    }

    /// One that listens at this address.
    pub(crate) fn self_signed_at(listen: &str, options: &[&str]) -> Self {
        let mut program = Program::new(assert_cmd::cargo::cargo_bin("flowstart"));
        Self::run_at(listen, program.stderr(Stdio::piped()), &[&["--self-signed"], options].concat())
    }

    pub(crate) fn get(&self, path: &str) -> Command {
        let mut get = flowstart();
        get.args(["get", "--insecure", "--json", &format!("{}{path}", self.url)]);
        get
    }

    pub(crate) fn timings(&self, path: &str) -> Value {
        serde_json::from_slice(&self.get(path).assert().success().get_output().stdout).unwrap()
    }

    /// What the address of `--metrics` answers.
    pub(crate) fn http(&self, method: &str, path: &str) -> String {
        self.request(&format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    /// The address of its metrics.
    pub(crate) fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.metrics)
    }

    /// What it answers to this.
    pub(crate) fn request(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A connection to it on which this is sent a thousand times, as far as it is taken, and nothing read.
    pub(crate) fn pipeline(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        drop(stream.write_all(text.repeat(1000).as_bytes()));
        stream
    }

    /// What the metrics have for this name, with its labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.http("GET", "/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        line.map_or(0, |value| value.trim().parse().unwrap())
    }

    /// Waits until the metrics have this line.
    pub(crate) fn wait_for(&self, line: &str) {
        let start = Instant::now();
        loop {
            let metrics = self.http("GET", "/metrics");
            if metrics.lines().any(|one| one == line) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{line} is not in\n{metrics}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(Program::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Ends it in order; what it said on stderr, if that was piped.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.signal("-TERM");
        let status = self.child.wait().unwrap();
        let mut told = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut told).unwrap();
        }
        (status, told)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The fields of all events with this name in the qlog files of this folder.
pub(crate) fn events(folder: &Path, name: &str) -> Vec<Value> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let lines: Vec<Value> = files
        .flat_map(|text| text.split('\u{1e}').map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect();
    lines.into_iter().filter(|event| event["name"] == name).map(|event| event["data"].clone()).collect()
}

/// A relay, or an element of the path, in front of a server.
pub(crate) struct Relay {
    child: Child,
    /// Where clients connect.
    pub(crate) address: String,
}

impl Relay {
    /// `arguments` begin with the command.
    pub(crate) fn start(to: &str, arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", to, arguments)
    }

    /// As [`Relay::start`], at this address.
    pub(crate) fn start_at(listen: &str, to: &str, arguments: &[&str]) -> Self {
        let to = to.strip_prefix("https://").unwrap_or(to);
        let mut child = Program::new(assert_cmd::cargo::cargo_bin("flowstart"))
            .args(arguments)
            .args(["--listen", listen, "--to", to, "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        Self { address: told["listening"].as_str().unwrap().to_owned(), child }
    }

    /// Ends it; what it counted.
    pub(crate) fn end(mut self) -> Value {
        let ended = Program::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(ended.success() && self.child.wait().unwrap().success());
        let mut told = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut told).unwrap();
        serde_json::from_str(&told).unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Stands between a server and a client: delays what the server sends, and loses every second of its large packets from
/// the first to the second number of them. Where clients connect.
pub(crate) fn lossy_path(server: &str, delay: Duration, lost: Range<usize>) -> String {
    let (server, near, far): (SocketAddr, _, _) = (
        server.strip_prefix("https://").unwrap().parse().unwrap(),
        Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()),
        Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap()),
    );
    nix::sys::socket::setsockopt(&*far, nix::sys::socket::sockopt::RcvBuf, &(4 << 20)).unwrap();
    let address = near.local_addr().unwrap().to_string();
    let client: Arc<OnceLock<SocketAddr>> = Arc::default();
    let (queue, delayed) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    let (known, from_client, to_server) = (client.clone(), near.clone(), far.clone());
    std::thread::spawn(move || {
        let mut packet = [0; 2000];
        while let Ok((length, from)) = from_client.recv_from(&mut packet) {
            known.get_or_init(|| from);
            drop(to_server.send_to(&packet[..length], server));
        }
    });
    std::thread::spawn(move || {
        let (mut packet, mut large) = ([0; 2000], 0);
        while let Ok(length) = far.recv(&mut packet) {
            large += usize::from(length >= 1000);
            if length < 1000 || !lost.contains(&large) || large % 2 == 0 {
                drop(queue.send((Instant::now() + delay, packet[..length].to_vec())));
            }
        }
    });
    std::thread::spawn(move || {
        for (due, packet) in delayed {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            drop(near.send_to(&packet, client.get().unwrap()));
        }
    });
    address
}

/// A certificate for localhost that ends in this year, and its key, in `folder`.
pub(crate) fn certificate(folder: &Path, year: i32) -> [String; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let files = ["cert.pem", "key.pem"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&files[0], params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&files[1], key.serialize_pem()).unwrap();
    files
}

/// TLS of a client that trusts this certificate.
pub(crate) fn trusting(cert: &str) -> session::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    session::ClientConfig::new(tls).unwrap()
}

/// Connects to the server with these bytes behind the transport parameters and this window for each stream, and does
/// something with the connection.
pub(crate) fn connected<T>(
    server: &Server,
    cert: &str,
    encoded: &[u8],
    window: u32,
    act: impl AsyncFnOnce(&noq::Connection) -> T,
) -> Result<T, noq::ConnectionError> {
    let session = trusting(cert).with_encoded_parameters(encoded.to_vec());
    connected_by(server, Arc::new(session), window, act)
}

/// As [`connected`], with TLS of any make.
pub(crate) fn connected_by<T>(
    server: &Server,
    tls: Arc<dyn noq_proto::crypto::ClientConfig>,
    window: u32,
    act: impl AsyncFnOnce(&noq::Connection) -> T,
) -> Result<T, noq::ConnectionError> {
    connected_at(server.url.strip_prefix("https://").unwrap().parse().unwrap(), tls, window, act)
}

/// As [`connected_by`], to an address from where packets may come to the server.
pub(crate) fn connected_at<T>(
    address: SocketAddr,
    tls: Arc<dyn noq_proto::crypto::ClientConfig>,
    window: u32,
    act: impl AsyncFnOnce(&noq::Connection) -> T,
) -> Result<T, noq::ConnectionError> {
    let mut config = noq::ClientConfig::new(tls);
    let mut transport = noq::TransportConfig::default();
    // Nothing ends for silence.
    transport.keep_alive_interval(Some(Duration::from_millis(50))).stream_receive_window(window.into());
    config.transport_config(Arc::new(transport));
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let endpoint = noq::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connection = endpoint.connect_with(config, address, "localhost").unwrap().await?;
        let result = act(&connection).await;
        connection.close(0_u32.into(), b"");
        endpoint.wait_idle().await;
        Ok(result)
    })
}

/// A field with its name (RFC 9204, section 4.5.6).
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = match name.len() {
        short @ 0..7 => vec![0x20 | short as u8],
        long => vec![0x27, (long - 7) as u8],
    };
    bytes.extend(name.bytes());
    match value.len() {
        short @ 0..127 => bytes.push(short as u8),
        long => bytes.extend([127, 0x80 | ((long - 127) & 0x7f) as u8, ((long - 127) >> 7) as u8]),
    }
    bytes.extend(value.bytes());
    bytes
}

/// A frame HEADERS with GET, https and an authority of the static table, a literal path, and further fields (RFC 9204,
/// section 4.5).
pub(crate) fn request(path: &str, fields: &[u8]) -> Vec<u8> {
    let literal = [&[0, 0, 0xd1, 0xd7, 0x50, 9][..], b"localhost", &[0x51, path.len() as u8], path.as_bytes()];
    let fields = [&literal.concat(), fields].concat();
    // A length of two bytes.
    [&[1, 0x40 | (fields.len() >> 8) as u8, fields.len() as u8], &fields[..]].concat()
}
