//! `flowstart get`.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration as StdDuration, Instant};

use bytes::{Buf, Bytes as Chunk};
use clap::Args;
use flowstart_core::path::AccessTechnology;
use flowstart_core::quantize::Grid;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::hint::BandwidthHint;
use flowstart_quic::session;
use flowstart_sensing::estimator::gateway;
#[cfg(target_os = "linux")]
use flowstart_sensing::estimator::wifi;
use flowstart_sensing::interface;
use h3::error::Code;
use http::{Request, StatusCode, Uri, header};
use indicatif::{ProgressBar, ProgressStyle};
use noq::VarInt;
use noq::crypto::rustls::QuicClientConfig;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Barrier, OnceCell, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use crate::failure::{FAILED, Failure};
use crate::http3;
use crate::output::print;
use crate::quic::{self, H3, SchemeOptions, WindowOptions, advised, bind, socket_address, std_time};
use crate::server::paths::PATH_STATE;
use crate::tls::TrustOptions;
use crate::tokens::{Tokens, from_hexadecimal};

/// What may be sent without an acknowledgement: requests.
const SEND_WINDOW: Bytes = Bytes::new(1 << 20);

/// Connections that share a socket.
const PER_SOCKET: u32 = 32;
/// How often a connection says that it is still there while --hold lasts; one that is silent for 30 s ends.
const KEEP_ALIVE: StdDuration = StdDuration::from_secs(10);
/// The longest wait for what a server gives for the next connection.
const CONFIRMATION: StdDuration = StdDuration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart get https://www.example.org/ --out page.html
  flowstart get --insecure https://localhost:4433/generate/2MB --json
  flowstart get --insecure https://localhost:4433/generate/70KB --repeat 2 --tokens tokens
  flowstart get --insecure https://localhost:4433/generate/1MB --connections 2000 --hold 2s
  flowstart get --ca ca.pem --connect 192.0.2.7:4433 https://www.example.org/video --out - | mpv -

HTTP/3 only. Without --out the content is thrown away. The times count from the first packet: handshake, first byte of the \
content, and FCT, its last byte; goodput is the content over the FCT. They go to stderr, with --json to stdout, a line for \
each of --repeat. early_data says what became of a request before the handshake was complete. Session tickets do not outlive \
the command: the TLS library has no way to write them down. --tokens does. \
SSLKEYLOGFILE is obeyed. Exit code: 0 done, 1 not received or a status of 400 or more, 2 bad input.")]
pub(crate) struct Arguments {
    /// What to get, `https://HOST[:PORT]/PATH`.
    url: Uri,
    #[command(flatten)]
    trust: TrustOptions,
    /// Where to connect instead of the URL's host, ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    connect: Option<SocketAddr>,
    /// Tell the server how fast this host's access is: rate=50mbit,technology=wifi,age=60s, where technology and age may be
    /// missing; auto to find it out; or none. The rate is rounded down on a grid of five steps per decade, so that it says
    /// little about who sends it.
    #[arg(long, value_name = "HINT", default_value = "none", value_parser = hint)]
    hint: Hinting,
    /// Write the content to this file, or `-` for stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep in this file what the server says of the path, and send it with the next connection.
    #[arg(long, value_name = "FILE")]
    path_state: Option<PathBuf>,
    /// Get it over this many connections at a time, to put load on a server; the timings are then their distribution.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// How many of them may be in their handshake at a time; the others wait for their turn, which does not count in their
    /// timings.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    handshakes: u32,
    /// Open all of them first, keep them open for this long with nothing to send, and only then get everything at once.
    #[arg(long, value_name = "TIME")]
    hold: Option<Duration>,
    /// Get it this often, over one connection after the other. From the second on the session is resumed and the request leaves
    /// with the first packet (0-RTT), if the server lets it.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "connections", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    /// Keep in this file the tokens by which servers know this host's address again, and use them: a line for each, with the
    /// server's name.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    window: WindowOptions,
    /// The longest that all of it may take.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Print the timings as JSON.
    #[arg(long)]
    json: bool,
}

/// What to tell the server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hinting {
    None,
    Auto,
    Told(BandwidthHint),
}

/// Reads `--hint`.
fn hint(text: &str) -> Result<Hinting, String> {
    const ALLOWED: &str = "use rate=50mbit,technology=wifi,age=60s, or auto, or none";
    let (mut rate, mut technology, mut age) = (None, AccessTechnology::Unknown, Duration::ZERO);
    match text {
        "none" => return Ok(Hinting::None),
        "auto" => return Ok(Hinting::Auto),
        _ => {}
    }
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("rate", value)) => rate = Some(value.parse::<Rate>().map_err(|error| format!("rate: {error}"))?),
            Some(("technology", value)) => technology = value.parse().map_err(|error| format!("{error}"))?,
            Some(("age", value)) => age = value.parse().map_err(|error| format!("age: {error}"))?,
            _ => return Err(format!("`{part}` is not known; {ALLOWED}")),
        }
    }
    let hint = BandwidthHint { rate: rate.ok_or_else(|| format!("the rate is missing; {ALLOWED}"))?, technology, age };
    hint.encode().map_err(|error| error.to_string())?;
    let quantized = hint.quantized(&Grid::default());
    quantized.map(Hinting::Told).ok_or_else(|| format!("rate: allowed is {} or more", Grid::default().lowest))
}

/// The longest that finding out takes.
const ESTIMATION: Duration = Duration::from_millis(1000);

/// What this host finds out about its access towards `server`: the lower of what the gateway and what the Wi-Fi say, else the
/// speed of the interface. Blocks.
fn estimated(server: IpAddr) -> Option<BandwidthHint> {
    let told = |bandwidth, technology| BandwidthHint { rate: bandwidth, technology, age: Duration::ZERO };
    let by_interface = || {
        let speed = interface::Config::default().speed_towards(server).ok().flatten()?;
        Some(told(speed, AccessTechnology::Unknown))
    };
    let patience = gateway::Config { search_bound: ESTIMATION, question_bound: ESTIMATION };
    // Neither a gateway nor an access point has to be there, and neither is on the way to this host itself.
    let by_gateway = || gateway::link_properties(&patience).ok()?.hint();
    let outside = !server.is_loopback();
    let gateway = outside.then(by_gateway).flatten().map(|hint| told(hint.bandwidth, hint.technology));
    let wifi = outside.then(|| wifi_rate(server)).flatten().map(|rate| told(rate, AccessTechnology::Wifi));
    let lowest = [gateway, wifi].into_iter().flatten().min_by_key(|hint| hint.rate);
    lowest.or_else(by_interface)?.quantized(&Grid::default())
}

/// What the access point sends to this host, as IP packets see it.
#[cfg(target_os = "linux")]
fn wifi_rate(server: IpAddr) -> Option<Rate> {
    let name = interface::interface_towards(server).ok()??;
    let modulation = wifi::station(&name, ESTIMATION).ok()??.receive?;
    Some(wifi::ip_rate(modulation.phy_rate()?, modulation.generation, Bytes::new(1500)))
}

/// What the access point sends to this host: not told here.
#[cfg(not(target_os = "linux"))]
fn wifi_rate(_: IpAddr) -> Option<Rate> {
    None
}

/// What happened when.
struct Timings {
    address: SocketAddr,
    status: StatusCode,
    hint: Option<Rate>,
    /// What became of a request before the handshake was complete; `None` when there was none.
    early_data: Option<bool>,
    bytes: u64,
    handshake: StdDuration,
    first_byte: Option<StdDuration>,
    fct: StdDuration,
    request: StdDuration,
}

impl Timings {
    /// Megabits per second over the FCT.
    fn goodput(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.fct.as_secs_f64().max(1e-9)
    }
}

fn millis(time: StdDuration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let url = &arguments.url;
    let wrong = |cause: &str| Failure::Input(format!("URL `{url}`: {cause}; use https://HOST[:PORT]/PATH"));
    if url.scheme_str() != Some("https") {
        return Err(wrong("it does not begin with https://"));
    }
    let host = url.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let to_stdout = arguments.out.as_deref().is_some_and(|out| out.as_os_str() == "-");
    if to_stdout && arguments.json {
        return Err(Failure::Input("--json: stdout is for the content with --out -".into()));
    }
    for (option, times) in [("connections", arguments.connections), ("repeat", arguments.repeat)] {
        if times > 1 && arguments.out.is_some() {
            return Err(Failure::Input(format!("--{option}: what comes many times cannot go to --out")));
        }
    }
    let tokens = arguments.tokens.as_deref().map(Tokens::read).transpose()?.map(Arc::new);
    let window = arguments.window.receive()?;
    let mut tls = arguments.trust.config(&[H3])?;
    tls.enable_early_data = arguments.repeat > 1;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("the network cannot be used: {error}")))?;
    let work = get(arguments, &host, tls, window, to_stdout, tokens.clone());
    let timings = runtime.block_on(async {
        match arguments.timeout {
            None => work.await,
            Some(limit) => tokio::time::timeout(std_time(limit), work)
                .await
                .unwrap_or_else(|_| Err(Failure::Other(format!("{url}: not received within {limit}")))),
        }
    });
    // A name that is still being looked up would keep the program from ending.
    runtime.shutdown_background();
    // A token that was sent is used up, also if nothing came.
    let saved = tokens.map_or(Ok(()), |tokens| tokens.save());
    let Got { timings, failures, open } = timings?;
    saved?;
    if arguments.connections > 1 {
        return tell_many(arguments, &timings, failures, open);
    }
    let told: Vec<_> = timings.iter().map(|one| tell(arguments, one)).collect::<Result<_, _>>()?;
    Ok(if told.contains(&true) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// The distribution of many connections' timings.
fn tell_many(
    arguments: &Arguments,
    timings: &[Timings],
    failures: usize,
    open: Option<usize>,
) -> Result<ExitCode, Failure> {
    let quantiles = |value: fn(&Timings) -> StdDuration| {
        let mut values: Vec<_> = timings.iter().map(value).collect();
        values.sort_unstable();
        // Nearest rank.
        [50, 95, 100].map(|percent| values.get((values.len() * percent).div_ceil(100).max(1) - 1).copied().map(millis))
    };
    let (handshake, fct) = (quantiles(|one| one.handshake), quantiles(|one| one.fct));
    let bytes: u64 = timings.iter().map(|one| one.bytes).sum();
    let refused = timings.iter().filter(|one| one.status != StatusCode::OK).count();
    if arguments.json {
        let told = |[median, p95, most]: [Option<f64>; 3]| json!({ "median": median, "p95": p95, "max": most });
        let told = json!({
            "url": arguments.url.to_string(),
            "connections": timings.len() + failures,
            "failed": failures,
            "open_at_once": open,
            "refused": refused,
            "bytes": bytes,
            "handshake_ms": told(handshake),
            "fct_ms": told(fct),
        });
        print(&format!("{told}\n"))?;
    } else {
        let told =
            |values: [Option<f64>; 3]| values.map(|one| one.map_or("–".into(), |one| format!("{one:.1}"))).join(", ");
        tell!(
            "{} connections, {failures} failed, {refused} refused, {}; median, 95 % and most: handshake {} ms, FCT {} ms",
            timings.len() + failures,
            Bytes::new(bytes),
            told(handshake),
            told(fct)
        );
    }
    Ok(if failures + refused > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Tells of one; whether the server refused it.
fn tell(arguments: &Arguments, timings: &Timings) -> Result<bool, Failure> {
    let Timings { address, status, hint, early_data, bytes, handshake, first_byte, fct, request } = timings;
    let early_data = early_data.map(|accepted| if accepted { "accepted" } else { "rejected" });
    if arguments.json {
        let told = json!({
            "url": arguments.url.to_string(),
            "address": address.to_string(),
            "status": status.as_u16(),
            "hint_bps": hint.map(Rate::bits_per_sec),
            "early_data": early_data,
            "bytes": bytes,
            "handshake_ms": millis(*handshake),
            "first_byte_ms": first_byte.map(millis),
            "fct_ms": millis(*fct),
            "fct_request_ms": millis(*request),
            "goodput_mbps": timings.goodput(),
        });
        print(&format!("{told}\n"))?;
    } else {
        tell!(
            "{status}, {}: handshake {:.1} ms, first byte {}, FCT {:.1} ms, goodput {:.2} Mbit/s{}",
            Bytes::new(*bytes),
            millis(*handshake),
            first_byte.map_or("–".into(), |first| format!("{:.1} ms", millis(first))),
            millis(*fct),
            timings.goodput(),
            early_data.map_or(String::new(), |what| format!(", early data {what}"))
        );
    }
    let refused = status.is_client_error() || status.is_server_error();
    if refused {
        tell!("error: {}: the server answered {status}", arguments.url);
    }
    Ok(refused)
}

/// The addresses of the host, or the one to use instead.
async fn addresses(arguments: &Arguments, host: &str) -> Result<Vec<SocketAddr>, Failure> {
    if let Some(address) = arguments.connect {
        return Ok(vec![address]);
    }
    let port = arguments.url.port_u16().unwrap_or(443);
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<_> = found.map_err(|error| Failure::Other(format!("{host}: {error}")))?.collect();
    if found.is_empty() { Err(Failure::Other(format!("{host}: it has no address"))) } else { Ok(found) }
}

/// This end of all connections: sockets for either family of addresses. Each takes as many connections as its buffer lets
/// have a few packets under way; clients of a real server do not share one either.
struct Local {
    ipv4: Vec<OnceCell<noq::Endpoint>>,
    ipv6: Vec<OnceCell<noq::Endpoint>>,
    next: AtomicUsize,
}

impl Local {
    fn new(connections: u32) -> Self {
        let sockets = connections.div_ceil(PER_SOCKET) as usize;
        let empty = || (0..sockets).map(|_| OnceCell::new()).collect();
        Self { ipv4: empty(), ipv6: empty(), next: AtomicUsize::new(0) }
    }

    async fn towards(&self, server: SocketAddr) -> std::io::Result<&noq::Endpoint> {
        let (any, endpoints): (IpAddr, _) = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), &self.ipv4),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), &self.ipv6),
        };
        let place = self.next.fetch_add(1, Ordering::Relaxed) % endpoints.len().max(1);
        let endpoint = endpoints.get(place).ok_or(std::io::ErrorKind::InvalidInput)?;
        endpoint.get_or_try_init(|| async { bind((any, 0).into(), None) }).await
    }

    /// Lets farewells leave; whether they arrive is the peers' concern.
    async fn close(&self) {
        let idle =
            [&self.ipv4, &self.ipv6].into_iter().flatten().filter_map(OnceCell::get).map(noq::Endpoint::wait_idle);
        drop(tokio::time::timeout(StdDuration::from_millis(100), futures_util::future::join_all(idle)).await);
    }
}

/// Whether the server took early data, and when the handshake was complete.
type Early = tokio::task::JoinHandle<(bool, Instant)>;

/// A connection to the first address that answers; with `early`, before it has answered, where the session is resumed.
async fn connect(
    url: &Uri,
    host: &str,
    local: &Local,
    servers: &[SocketAddr],
    config: &noq::ClientConfig,
    early: bool,
) -> Result<(noq::Connection, SocketAddr, Option<Early>), Failure> {
    let mut failure = None;
    for &address in servers {
        let connected = async {
            let endpoint = local.towards(address).await.map_err(|error| error.to_string())?;
            let mut connecting =
                endpoint.connect_with(config.clone(), address, host).map_err(|error| error.to_string())?;
            if early {
                match connecting.into_0rtt() {
                    Ok((connection, accepted)) => {
                        let outcome = tokio::spawn(async move { (accepted.await, Instant::now()) });
                        return Ok((connection, Some(outcome)));
                    }
                    Err(full) => connecting = full,
                }
            }
            connecting.await.map(|connection| (connection, None)).map_err(|error| error.to_string())
        };
        match connected.await {
            Ok((connection, outcome)) => return Ok((connection, address, outcome)),
            Err(cause) => failure = failure.or(Some(Failure::Other(format!("{url} ({address}): {cause}")))),
        }
    }
    Err(failure.unwrap_or_else(|| Failure::Other(format!("{host}: it has no address"))))
}

/// What came of all of it.
struct Got {
    timings: Vec<Timings>,
    /// How often nothing came.
    failures: usize,
    /// Connections that stood together at the end of --hold.
    open: Option<usize>,
}

/// Gets it as often as was asked for.
async fn get(
    arguments: &Arguments,
    host: &str,
    tls: rustls::ClientConfig,
    window: Bytes,
    to_stdout: bool,
    tokens: Option<Arc<Tokens>>,
) -> Result<Got, Failure> {
    let url = &arguments.url;
    let failed = |cause: &dyn std::fmt::Display| Failure::Other(format!("{url}: {cause}"));
    let out: Out = match &arguments.out {
        None => Box::new(tokio::io::sink()),
        Some(_) if to_stdout => Box::new(tokio::io::stdout()),
        Some(file) => {
            let unusable = |error: std::io::Error| Failure::File {
                file: file.clone(),
                message: format!("cannot be written: {error}"),
                text: None,
            };
            Box::new(tokio::fs::File::create(file).await.map_err(unusable)?)
        }
    };
    let servers = addresses(arguments, host).await?;
    let hint = match arguments.hint {
        Hinting::None => None,
        Hinting::Told(hint) => Some(hint),
        Hinting::Auto => {
            let server = servers.first().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), SocketAddr::ip);
            let found = tokio::task::spawn_blocking(move || estimated(server)).await.ok().flatten();
            tell!("note: {}", found.map_or("no hint was found".into(), |hint| format!("the hint is {}", hint.rate)));
            found
        }
    };
    let path_state = arguments.path_state.as_deref();
    let kept = path_state.map(kept_state).transpose()?.flatten();
    let mut config = match (&hint, &kept) {
        (None, None) => {
            noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(|error| failed(&error))?))
        }
        _ => {
            let crypto = session::ClientConfig::new(tls).map_err(|error| failed(&error))?;
            let crypto = crypto.with_hint(hint.as_ref()).map_err(|error| failed(&error))?;
            let crypto = crypto.with_path_state(kept.as_deref()).map_err(|error| {
                let file = path_state.unwrap_or(Path::new("")).to_owned();
                Failure::File { file, message: error.to_string(), text: None }
            })?;
            noq::ClientConfig::new(Arc::new(crypto))
        }
    };
    if let Some(tokens) = tokens {
        config.token_store(tokens);
    }
    let scheme = SchemeOptions { startup: "slow-start".into(), avoidance: "cubic".into() }.scheme()?;
    let mut transport = quic::transport(&scheme, SEND_WINDOW, window);
    if arguments.hold.is_some() {
        transport.keep_alive_interval(Some(KEEP_ALIVE));
    }
    config.transport_config(Arc::new(transport));

    let (local, hint) = (Local::new(arguments.connections), hint.map(|hint| hint.rate));
    let (local, config, many) = (&local, &config, arguments.connections > 1);
    // All at once they would fill the buffers of both sockets, and wait for each other until the server gives them up.
    let turns = &Semaphore::new(arguments.handshakes as usize);
    let (together, open) = (&Barrier::new(arguments.connections as usize), &AtomicUsize::new(0));
    let again = arguments.repeat > 1 || arguments.tokens.is_some();
    let once = |servers: Vec<SocketAddr>, mut out: Out, mut early: bool| async move {
        let turn = turns.acquire().await.map_err(|error| failed(&error))?;
        let mut start = Instant::now();
        let mut rejected = false;
        let mut connected = connect(url, host, local, &servers, config, early).await;
        drop(turn);
        let mut handshake = start.elapsed();
        if let Some(hold) = arguments.hold {
            // Those that failed are waited with, not for.
            together.wait().await;
            tokio::time::sleep(std_time(hold)).await;
            let stands = connected.as_ref().is_ok_and(|(connection, ..)| connection.close_reason().is_none());
            open.fetch_add(stands.into(), Ordering::Relaxed);
            start = Instant::now().checked_sub(handshake).unwrap_or(start);
        }
        loop {
            let (connection, address, outcome) = connected?;
            early = outcome.is_some();
            let fetched = fetch(url, start, &connection, many, again, &mut out, to_stdout, path_state).await;
            if let Some(outcome) = outcome {
                let (accepted, completed) = outcome.await.map_err(|error| failed(&error))?;
                handshake = completed.saturating_duration_since(start);
                if !accepted && fetched.is_err() {
                    // What the server did not take is lost with its streams. A connection of its own is the simplest way on.
                    close(&connection);
                    rejected = true;
                    connected = connect(url, host, local, &[address], config, false).await;
                    handshake = start.elapsed();
                    continue;
                }
            }
            let answer = fetched?;
            let Answer { status, bytes, first_byte, fct, request } = answer;
            let early_data = (early || rejected).then_some(!rejected);
            return Ok(Timings { address, status, hint, early_data, bytes, handshake, first_byte, fct, request });
        }
    };
    let mut got = Got { timings: Vec::new(), failures: 0, open: None };
    if many {
        let fetches = (0..arguments.connections).map(|_| once(servers.clone(), Box::new(tokio::io::sink()), false));
        let mut failures = Vec::new();
        for result in futures_util::future::join_all(fetches).await {
            match result {
                Ok(timings) => got.timings.push(timings),
                Err(failure) => failures.push(failure),
            }
        }
        got.failures = failures.len();
        if let Some(Failure::Other(first)) = failures.into_iter().next() {
            tell!("warning: {first}");
        }
    } else {
        let first = once(servers, out, false).await?;
        let server = vec![first.address];
        got.timings.push(first);
        for _ in 1..arguments.repeat {
            got.timings.push(once(server.clone(), Box::new(tokio::io::sink()), true).await?);
        }
    }
    got.open = arguments.hold.map(|_| open.load(Ordering::Relaxed));
    local.close().await;
    Ok(got)
}

/// Ends a connection that is not needed any more.
fn close(connection: &noq::Connection) {
    connection.close(VarInt::from_u64(Code::H3_NO_ERROR.value()).unwrap_or_default(), b"");
}

/// What the content goes to.
type Out = Box<dyn AsyncWrite + Unpin>;

/// The state that the server gave earlier, if it did.
fn kept_state(file: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match std::fs::read(file) {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Failure::File { file: file.to_owned(), message: format!("cannot be read: {error}"), text: None })
        }
    }
}

/// What came over one connection, and when.
struct Answer {
    status: StatusCode,
    bytes: u64,
    first_byte: Option<StdDuration>,
    fct: StdDuration,
    request: StdDuration,
}

/// Gets it once, over a connection that was begun at `start`. With `again`, waits for what helps the next connection.
#[expect(clippy::too_many_arguments, reason = "all of it is used once")]
async fn fetch(
    url: &Uri,
    start: Instant,
    connection: &noq::Connection,
    quiet: bool,
    again: bool,
    out: &mut Out,
    to_stdout: bool,
    path_state: Option<&Path>,
) -> Result<Answer, Failure> {
    let failed = |cause: &dyn std::fmt::Display| Failure::Other(format!("{url}: {}", advised(cause)));
    let transport = http3::Connection::new(connection.clone());
    let (mut driver, mut requests) =
        h3::client::builder().build::<_, _, Chunk>(transport).await.map_err(|error| failed(&error))?;
    // However this ends, nobody needs it then.
    let driving = AbortOnDropHandle::new(tokio::spawn(async move {
        std::future::poll_fn(|context| driver.poll_close(context)).await
    }));

    let requested = Instant::now();
    let mut request = Request::get(url.clone());
    if path_state.is_some() {
        request = request.header(header::TE, "trailers");
    }
    let request = request
        .header(header::USER_AGENT, concat!("flowstart/", env!("CARGO_PKG_VERSION")))
        .body(())
        .map_err(|error| failed(&error))?;
    let mut stream = requests.send_request(request).await.map_err(|error| failed(&error))?;
    stream.finish().await.map_err(|error| failed(&error))?;
    let head = stream.recv_response().await.map_err(|error| failed(&error))?;
    let size = head.headers().get(header::CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
    let bar = if quiet { ProgressBar::hidden() } else { progress(size) };
    let (mut bytes, mut first_byte) = (0, None);
    // Of content that is empty, the end of its header.
    let (mut fct, mut request) = (start.elapsed(), requested.elapsed());
    while let Some(mut chunk) = stream.recv_data().await.map_err(|error| failed(&error))? {
        first_byte.get_or_insert_with(|| start.elapsed());
        while chunk.has_remaining() {
            let part = chunk.chunk();
            let length = part.len();
            match out.write_all(part).await {
                // A reader that has seen enough and closed the pipe is no failure.
                Err(error) if to_stdout && error.kind() == std::io::ErrorKind::BrokenPipe => {}
                written => written.map_err(|error| failed(&format!("the content cannot be written: {error}")))?,
            }
            chunk.advance(length);
            bytes += length as u64;
        }
        bar.set_position(bytes);
        (fct, request) = (start.elapsed(), requested.elapsed());
    }
    bar.finish_and_clear();
    out.flush().await.map_err(|error| failed(&format!("the content cannot be written: {error}")))?;
    if let Some(file) = path_state {
        let trailers = stream.recv_trailers().await.map_err(|error| failed(&error))?;
        let state = trailers.and_then(|trailers| from_hexadecimal(trailers.get(PATH_STATE)?.to_str().ok()?));
        if let Some(state) = state {
            let file_failed = |error| failed(&format!("{}: cannot be written: {error}", file.display()));
            std::fs::write(file, state).map_err(file_failed)?;
        }
    }
    if size.is_some_and(|size: u64| size != bytes) {
        return Err(failed(&format!("{bytes} bytes came instead of {}", size.unwrap_or(0))));
    }
    if again {
        // Tickets and tokens come with the confirmation of the handshake.
        drop(tokio::time::timeout(CONFIRMATION, connection.handshake_confirmed()).await);
    }
    // Before its HTTP/3 is dropped, which would end it in its own way.
    close(connection);
    drop(driving);
    Ok(Answer { status: head.status(), bytes, first_byte, fct, request })
}

/// A progress bar on a terminal, silence elsewhere.
fn progress(size: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = size.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    let template = "{elapsed_precise} [{wide_bar}] {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_read_and_rounded_down() {
        // Five steps per decade from 100 kbit/s: 39.8 and 63.1 Mbit/s are next to 50.
        let Ok(Hinting::Told(told)) = hint("rate=50mbit,technology=wifi,age=61s") else { panic!("a valid hint") };
        assert_eq!(told.rate.as_mbit().round(), 40.0);
        assert_eq!((told.technology, told.age), (AccessTechnology::Wifi, Duration::from_millis(120_000)));
        assert_eq!((hint("none"), hint("auto")), (Ok(Hinting::None), Ok(Hinting::Auto)));
        for wrong in ["", "50mbit", "technology=wifi", "rate=x", "rate=1kbit", "rate=1mbit,technology=5g"] {
            assert!(hint(wrong).is_err(), "{wrong}");
        }
    }
}
