//! `flowstart get`.

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
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

use crate::failure::{FAILED, Failure};
use crate::http3;
use crate::output::print;
use crate::quic::{self, H3, SchemeOptions, bind, socket_address, std_time};
use crate::tls::TrustOptions;

/// What the server may send before it is read: 100 ms at 5 Gbit/s, or 1 s at 500 Mbit/s.
const RECEIVE_WINDOW: Bytes = Bytes::new(64 << 20);
/// What may be sent without an acknowledgement: requests.
const SEND_WINDOW: Bytes = Bytes::new(1 << 20);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart get https://www.example.org/ --out page.html
  flowstart get --insecure https://localhost:4433/generate/2MB --json
  flowstart get --ca ca.pem --connect 192.0.2.7:4433 https://www.example.org/video --out - | mpv -

HTTP/3 only. Without --out the content is thrown away. The times count from the first packet: handshake, first byte of the \
content, and FCT, its last byte; goodput is the content over the FCT. They go to stderr, with --json to stdout. \
SSLKEYLOGFILE is obeyed. Exit code: 0 done, 1 not received or a status of 400 or more, 2 bad input.")]
pub(crate) struct Arguments {
    /// What to get, https://HOST[:PORT]/PATH.
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
    let tls = arguments.trust.config(&[H3])?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("the network cannot be used: {error}")))?;
    let work = get(arguments, &host, tls, to_stdout);
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
    tell(arguments, &timings?)
}

fn tell(arguments: &Arguments, timings: &Timings) -> Result<ExitCode, Failure> {
    let Timings { address, status, hint, bytes, handshake, first_byte, fct, request } = timings;
    if arguments.json {
        let told = json!({
            "url": arguments.url.to_string(),
            "address": address.to_string(),
            "status": status.as_u16(),
            "hint_bps": hint.map(Rate::bits_per_sec),
            "bytes": bytes,
            "handshake_ms": millis(*handshake),
            "first_byte_ms": first_byte.map(millis),
            "fct_ms": millis(*fct),
            "fct_request_ms": millis(*request),
            "goodput_mbps": timings.goodput(),
        });
        print(&format!("{told}\n"))?;
    } else {
        eprintln!(
            "{status}, {}: handshake {:.1} ms, first byte {}, FCT {:.1} ms, goodput {:.2} Mbit/s",
            Bytes::new(*bytes),
            millis(*handshake),
            first_byte.map_or("–".into(), |first| format!("{:.1} ms", millis(first))),
            millis(*fct),
            timings.goodput()
        );
    }
    let refused = status.is_client_error() || status.is_server_error();
    if refused {
        eprintln!("error: {}: the server answered {status}", arguments.url);
    }
    Ok(if refused { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
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

/// The first address that answers.
async fn connect(
    arguments: &Arguments,
    host: &str,
    servers: Vec<SocketAddr>,
    config: noq::ClientConfig,
) -> Result<(noq::Endpoint, noq::Connection, SocketAddr), Failure> {
    let mut failure = None;
    for address in servers {
        let failed = |cause: String| Failure::Other(format!("{} ({address}): {cause}", arguments.url));
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let connected = async {
            let endpoint = bind((any, 0).into(), None).map_err(|error| failed(error.to_string()))?;
            let connecting =
                endpoint.connect_with(config.clone(), address, host).map_err(|error| failed(error.to_string()))?;
            Ok((endpoint, connecting.await.map_err(|error| failed(error.to_string()))?, address))
        };
        match connected.await {
            Ok(connected) => return Ok(connected),
            Err(problem) => failure = failure.or(Some(problem)),
        }
    }
    Err(failure.unwrap_or_else(|| Failure::Other(format!("{host}: it has no address"))))
}

async fn get(
    arguments: &Arguments,
    host: &str,
    tls: rustls::ClientConfig,
    to_stdout: bool,
) -> Result<Timings, Failure> {
    let url = &arguments.url;
    let failed = |cause: &dyn std::fmt::Display| Failure::Other(format!("{url}: {cause}"));
    let mut out: Box<dyn AsyncWrite + Unpin> = match &arguments.out {
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
            eprintln!(
                "note: {}",
                found.map_or("no hint was found".into(), |hint| format!("the hint is {}", hint.rate))
            );
            found
        }
    };
    let mut config = match &hint {
        None => noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(|error| failed(&error))?)),
        Some(hint) => {
            let crypto = session::ClientConfig::new(tls).map_err(|error| failed(&error))?;
            noq::ClientConfig::new(Arc::new(crypto.with_hint(Some(hint)).map_err(|error| failed(&error))?))
        }
    };
    let scheme = SchemeOptions { startup: "slow-start".into(), avoidance: "cubic".into() }.scheme()?;
    config.transport_config(Arc::new(quic::transport(&scheme, SEND_WINDOW, RECEIVE_WINDOW)));

    let start = Instant::now();
    let (endpoint, connection, address) = connect(arguments, host, servers, config).await?;
    let handshake = start.elapsed();
    let transport = http3::Connection::new(connection.clone());
    let (mut driver, mut requests) =
        h3::client::builder().build::<_, _, Chunk>(transport).await.map_err(|error| failed(&error))?;
    let driving = tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });

    let requested = Instant::now();
    let request = Request::get(url.clone())
        .header(header::USER_AGENT, concat!("flowstart/", env!("CARGO_PKG_VERSION")))
        .body(())
        .map_err(|error| failed(&error))?;
    let mut stream = requests.send_request(request).await.map_err(|error| failed(&error))?;
    stream.finish().await.map_err(|error| failed(&error))?;
    let head = stream.recv_response().await.map_err(|error| failed(&error))?;
    let size = head.headers().get(header::CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
    let bar = progress(size);
    let (mut bytes, mut first_byte) = (0, None);
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
    }
    let (fct, request) = (start.elapsed(), requested.elapsed());
    bar.finish_and_clear();
    out.flush().await.map_err(|error| failed(&format!("the content cannot be written: {error}")))?;
    if size.is_some_and(|size: u64| size != bytes) {
        return Err(failed(&format!("{bytes} bytes came instead of {}", size.unwrap_or(0))));
    }
    connection.close(VarInt::from_u64(Code::H3_NO_ERROR.value()).unwrap_or_default(), b"");
    drop(requests);
    driving.abort();
    // The farewell leaves; whether it arrives is the peer's concern.
    drop(tokio::time::timeout(StdDuration::from_millis(100), endpoint.wait_idle()).await);
    Ok(Timings {
        address,
        status: head.status(),
        hint: hint.map(|hint| hint.rate),
        bytes,
        handshake,
        first_byte,
        fct,
        request,
    })
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
