//! `flowstart serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_quic::hint::HintPolicy;
use ipnet::IpNet;
use noq::crypto::rustls::QuicServerConfig;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::output::print;
use crate::quic::{self, H3, SchemeOptions, bind, plain, socket_address, std_time};
use crate::server::content::Content;
use crate::server::hints::Hints;
use crate::server::limits::{Counter, RateLimit, Seldom};
use crate::server::metrics::Metrics;
use crate::server::paths::{Paths, Seal};
use crate::server::policy::{FallBack, Policy, Scheme};
use crate::server::{Limits, Server, admin, qlog};
use crate::tls::CertificateOptions;
use crate::tokens::Used;

/// What clients may send before it is read: requests, and nothing large.
const RECEIVE_WINDOW: Bytes = Bytes::new(256 << 10);

/// Address tokens that a connection gives its client for the next ones.
const TOKENS: u32 = 2;
/// Sessions that may be resumed: two per connection, of a few hundred bytes each.
const SESSIONS: usize = 20_000;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart serve --root site --self-signed
  flowstart serve --root site --listen '[::]:443' --cert cert.pem --key key.pem --startup blitzstart --hint-policy cap:rate=50mbit
  flowstart serve --self-signed --startup-for 192.0.2.0/24=slow-start --ab 0.1=jump-start --metrics 127.0.0.1:9100
  flowstart get --insecure https://localhost:4433/generate/2MB

HTTP/3 only. Below --root are files; /generate/SIZE is an object of any size, as in /generate/70KB or /generate/2MB. \
Prints its address when it is ready.

Which scheme a connection gets: plain slow start while the kill switch is on or launches lose too much, else that of the \
client's network (--startup-for), else an alternative for its share of the connections (--ab), else --startup. The kill \
switch is on while the file of --kill-file exists; SIGUSR1 turns it on and off, and so do PUT and DELETE /kill-switch at \
the address of --metrics.

A client's hint comes with its first message (`flowstart get --hint`), or from browsers as Downlink, RTT and ECT with a \
request. Without --hint-policy it is not used, and a scheme that launches by hints, such as blitzstart, is slow start. \
history and validate look into --path-store; link is the speed of the interface.

With --early-data a returning client's request needs no round trip before it is answered. Each session ticket works once and \
only with the process that gave it, so a first packet that was recorded is not answered twice by this process; behind a load \
balancer, or after a restart, tickets are worth nothing and the handshake is a full one. A method that is not safe gets 425. \
Until the client has proved its address (a token of an earlier connection does), the answer is limited to three times what \
came. The scheme launches when the first acknowledgement has measured the RTT, not before.

SIGINT and SIGTERM end it: new connections are refused, answers under way have --grace to arrive. SSLKEYLOGFILE is \
obeyed. Exit code: 0 ended, 1 something failed, 2 bad input.")]
pub(crate) struct Arguments {
    /// The folder whose files are served; without it only generated objects.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Where to listen, ADDRESS:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4433", value_parser = socket_address)]
    listen: SocketAddr,
    #[command(flatten)]
    certificate: CertificateOptions,
    #[command(flatten)]
    scheme: SchemeOptions,
    /// The startup scheme of clients in a network, as in 192.0.2.0/24=blitzstart; the longest network counts.
    #[arg(long, value_name = "NETWORK=SPEC", num_args = 1..)]
    startup_for: Vec<String>,
    /// Another startup scheme for a random share of the connections, as in 0.1=jump-start.
    #[arg(long, value_name = "SHARE=SPEC", num_args = 1..)]
    ab: Vec<String>,
    /// What to make of clients' hints: accept, ignore, validate:share=0.5, or cap: with some of
    /// rate=50mbit,prefix=200mbit,link=0.5,history=4,age=3600s.
    #[arg(long, value_name = "POLICY", default_value = "ignore")]
    hint_policy: HintPolicy,
    /// While this file exists, connections start with plain slow start.
    #[arg(long, value_name = "FILE")]
    kill_file: Option<PathBuf>,
    /// Share of what launches sent that may be lost; beyond it connections start with plain slow start for a while.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    launch_loss_limit: f64,
    /// How many launches are looked at for this, the latest ones.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    launch_window: usize,
    /// How long connections start with plain slow start then.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(300_000))]
    launch_recovery: Duration,
    /// Remember paths in this file, or on a server `redis://HOST`, and tell the schemes.
    #[arg(long, value_name = "FILE")]
    path_store: Option<String>,
    /// Let clients that take trailers (`flowstart get --path-state`) remember their paths themselves, sealed with the 32
    /// bytes of this file; servers that share it open each other's.
    #[arg(long, value_name = "FILE")]
    path_state_key: Option<PathBuf>,
    /// Answer GET and HEAD of returning clients with their first packets, before the handshake is complete (0-RTT, RFC 8470).
    /// Whoever recorded such packets may make the server answer them again.
    #[arg(long)]
    early_data: bool,
    /// Write a qlog file per connection into this folder.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Answer /metrics (Prometheus) and /kill-switch over HTTP/1.1 here.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
    /// Connections at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_connections: usize,
    /// New connections per second from one prefix, /24 or /48; without it any number.
    #[arg(long, value_name = "NUMBER")]
    max_rate: Option<f64>,
    /// Handshakes at a time beyond which clients have to prove their address (Retry) before they take up memory.
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    max_handshakes: usize,
    /// The longest that a handshake may take. On a host that is overloaded, clients fail that would have been served later.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(10_000))]
    handshake_time: Duration,
    /// Unacknowledged bytes per connection: the largest window that startup can use, and a connection's memory.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes::new(32_000_000))]
    connection_memory: Bytes,
    /// How long a client may read nothing of an answer.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(60_000))]
    stall: Duration,
    /// How long answers may take after the signal to end.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(30_000))]
    grace: Duration,
    /// Print the addresses as JSON.
    #[arg(long)]
    json: bool,
}

fn refused(option: &str, value: impl std::fmt::Display, allowed: &str) -> Failure {
    Failure::Input(format!("--{option} `{value}`: {allowed}"))
}

impl Arguments {
    fn policy(&self) -> Result<Policy, Failure> {
        let avoidance = self.scheme.avoidance()?;
        let mut networks: Vec<(IpNet, Scheme)> = Vec::new();
        for text in &self.startup_for {
            let wrong = || refused("startup-for", text, "use NETWORK=SPEC such as 192.0.2.0/24=blitzstart");
            let (network, spec) = text.split_once('=').ok_or_else(wrong)?;
            networks.push((network.parse().map_err(|_| wrong())?, quic::scheme("startup-for", spec, &avoidance)?));
        }
        let mut shares: Vec<(f64, Scheme)> = Vec::new();
        for text in &self.ab {
            let wrong = || refused("ab", text, "use SHARE=SPEC such as 0.1=jump-start, with a share above 0 to 1");
            let (share, spec) = text.split_once('=').ok_or_else(wrong)?;
            let share = share.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(wrong)?;
            shares.push((share, quic::scheme("ab", spec, &avoidance)?));
        }
        let all: f64 = shares.iter().map(|(share, _)| share).sum();
        // Ten shares of 0.1 add up to a little more than 1.
        if all > 1.0 + 1e-9 {
            return Err(refused("ab", all, "the shares together are at most 1"));
        }
        if !(self.launch_loss_limit > 0.0 && self.launch_loss_limit <= 1.0) {
            return Err(refused("launch-loss-limit", self.launch_loss_limit, "use a number above 0 to 1"));
        }
        if !(1..=100_000).contains(&self.launch_window) {
            return Err(refused("launch-window", self.launch_window, "use 1 to 100000"));
        }
        let rule = FallBack {
            limit: self.launch_loss_limit,
            launches: self.launch_window,
            recovery: std_time(self.launch_recovery),
        };
        let listener = self.scheme.scheme()?;
        Ok(Policy::new(listener, networks, shares, plain(&avoidance)?, self.kill_file.clone(), rule))
    }

    fn rate(&self) -> Result<Option<RateLimit>, Failure> {
        match self.max_rate {
            Some(rate) if !(rate > 0.0 && rate <= 1e9) => Err(refused("max-rate", rate, "use a number above 0 to 1e9")),
            rate => Ok(rate.map(RateLimit::new)),
        }
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !(100_000..=4_000_000_000).contains(&arguments.connection_memory.get()) {
        return Err(refused("connection-memory", arguments.connection_memory, "use 100KB to 4GB"));
    }
    if arguments.handshake_time < Duration::from_millis(1) {
        return Err(refused("handshake-time", arguments.handshake_time, "use 1ms or more"));
    }
    let (policy, rate) = (arguments.policy()?, arguments.rate()?);
    let content = Content::new(arguments.root.as_deref()).map_err(|cause| {
        let root = arguments.root.as_deref().unwrap_or_else(|| std::path::Path::new(""));
        refused("root", root.display(), &cause)
    })?;
    let qlog = match &arguments.qlog {
        None => None,
        Some(folder) => {
            let unusable = |error: std::io::Error| refused("qlog", folder.display(), &error.to_string());
            Some(qlog::Folder::new(folder).map_err(unusable)?)
        }
    };
    let seal = match &arguments.path_state_key {
        None => None,
        Some(file) => {
            let unusable = |message| Failure::File { file: file.clone(), message, text: None };
            Some(Seal::new(file).map_err(unusable)?)
        }
    };
    let mut tls = arguments.certificate.config(&[H3])?;
    if arguments.early_data {
        // QUIC knows all or nothing (RFC 9001, section 4.6.1). How much comes is for flow control to say.
        tls.max_early_data_size = u32::MAX;
        tls.session_storage = rustls::server::ServerSessionMemoryCache::new(SESSIONS);
    }
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| Failure::Other(error.to_string()))?;
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    if arguments.early_data {
        let mut tokens = noq::ValidationTokenConfig::default();
        tokens.sent(TOKENS).log(Arc::new(Used::default()));
        config.validation_token_config(tokens);
    }
    let transport = quic::transport(&policy.plain, arguments.connection_memory, RECEIVE_WINDOW);
    let limits = Limits {
        connections: arguments.max_connections,
        handshakes: arguments.max_handshakes,
        handshake: std_time(arguments.handshake_time),
        stall: std_time(arguments.stall),
        grace: std_time(arguments.grace),
    };
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::Other(format!("threads cannot be started: {error}")))?;
    runtime.block_on(async {
        let unusable =
            |option: &str, address: SocketAddr, error: std::io::Error| refused(option, address, &error.to_string());
        let endpoint = bind(arguments.listen, Some(config.clone()))
            .map_err(|error| unusable("listen", arguments.listen, error))?;
        let address = endpoint.local_addr().map_err(|error| unusable("listen", arguments.listen, error))?;
        let mut addresses = json!({ "listening": format!("https://{address}") });
        let mut text = format!("listening on https://{address}\n");
        let server = Arc::new(Server {
            endpoint,
            config,
            transport,
            content,
            policy,
            metrics: Metrics::new(),
            limits,
            rate,
            hints: Hints::new(arguments.hint_policy.clone()),
            log: Seldom::default(),
            qlog,
            early_data: arguments.early_data,
            paths: arguments.path_store.as_deref().and_then(Paths::open).map(Arc::new),
            seal,
            connections: Counter::default(),
            handshakes: Counter::default(),
        });
        if let Some(metrics) = arguments.metrics {
            let failed = |error| unusable("metrics", metrics, error);
            let listener = tokio::net::TcpListener::bind(metrics).await.map_err(failed)?;
            let metrics = listener.local_addr().map_err(failed)?;
            addresses["metrics"] = json!(format!("http://{metrics}/metrics"));
            text += &format!("metrics at http://{metrics}/metrics\n");
            tokio::spawn(admin::serve(listener, server.clone()));
        }
        let stop = CancellationToken::new();
        signals(server.clone(), stop.clone())
            .map_err(|error| Failure::Other(format!("signals cannot be received: {error}")))?;
        print(&if arguments.json { format!("{addresses}\n") } else { text })?;
        server.run(stop).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// From now on SIGINT and SIGTERM stop the server, and SIGUSR1 turns the kill switch on and off.
#[cfg(unix)]
fn signals(server: Arc<Server>, stop: CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut switch = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                Some(()) = switch.recv() => {
                    tell!("note: the kill switch is {}", if server.policy.toggle() { "on" } else { "off" });
                }
            }
        }
        stop.cancel();
    });
    Ok(())
}

/// From now on Ctrl-C stops the server.
#[cfg(not(unix))]
fn signals(_: Arc<Server>, stop: CancellationToken) -> std::io::Result<()> {
    tokio::spawn(async move {
        drop(tokio::signal::ctrl_c().await);
        stop.cancel();
    });
    Ok(())
}
