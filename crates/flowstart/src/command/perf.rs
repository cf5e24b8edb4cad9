//! `flowstart perf`.
//!
//! The protocol is that of draft-banks-quic-performance: ALPN `perf`; on a stream that the client opens, it sends 8 bytes, in
//! network order the number of bytes that it wants, then any number of its own, and ends. The server sends what was wanted,
//! and ends.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration as StdDuration, Instant};

use bytes::Bytes as Chunk;
use clap::{Args, Subcommand, ValueEnum};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_lab::statistics::bca_mean_ratio_paired;
use noq::congestion::CubicConfig;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{Endpoint, RecvStream, SendStream, VarInt};
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::failure::{FAILED, Failure};
use crate::output::print;
use crate::quic::{SchemeOptions, WindowOptions, advised, bind, socket_address, std_time, transport};
use crate::tls::{CertificateOptions, TrustOptions};

/// The protocol's name.
const PERF: &[u8] = b"perf";
/// What may be sent without an acknowledgement: 100 ms at 5 Gbit/s.
const SEND_WINDOW: Bytes = Bytes::new(64 << 20);
/// Both windows for comparisons over the loopback interface. noq ends a connection when more than 2048 pieces of a
/// stream wait behind a gap ([`crate::quic::RECEIVE_WINDOW`]); 2 MiB are 1445 packets, of which few are lost here.
const LOOPBACK_WINDOW: Bytes = Bytes::new(2 << 20);
/// What is written to a stream in one go.
const CHUNK: usize = 256 << 10;
/// What uploads and downloads consist of.
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// The code with which a client ends a stream or a connection that it has no more use for.
const ENOUGH: VarInt = VarInt::from_u32(0);
/// Resamples behind an interval.
const RESAMPLES: u32 = 10_000;
/// The longest wait for connections to end.
const FAREWELL: StdDuration = StdDuration::from_millis(500);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flowstart perf server --self-signed --listen '[::]:4434' --startup search
  flowstart perf client 192.0.2.7:4434 --insecure --download 100MB
  flowstart perf client 192.0.2.7:4434 --insecure --duration 10s --upload 10GB --streams 4 --json
  flowstart perf pairs --size 1GB --pairs 10

The protocol is that of draft-banks-quic-performance (ALPN perf).")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Send and receive what clients ask for, until interrupted.
    Server(Server),
    /// Measure throughput over time, from the server, to it, or first one and then the other.
    Client(Client),
    /// Compare this program's congestion control with noq's own CUBIC over the loopback interface: throughput and CPU time.
    Pairs(Pairs),
}

/// Whose congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Controller {
    /// This program's, as --startup and --avoidance say.
    Flowstart,
    /// The CUBIC that comes with noq.
    NoqCubic,
}

#[derive(Debug, Args)]
struct Congestion {
    #[command(flatten)]
    scheme: SchemeOptions,
    /// Whose congestion control.
    #[arg(long, value_enum, default_value_t = Controller::Flowstart)]
    controller: Controller,
}

impl Congestion {
    fn transport(&self, send: Bytes, receive: Bytes) -> Result<Arc<noq::TransportConfig>, Failure> {
        let mut transport = transport(&self.scheme.scheme()?, send, receive);
        if self.controller == Controller::NoqCubic {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Ok(Arc::new(transport))
    }
}

#[derive(Debug, Args)]
struct Server {
    /// Where to listen, ADDRESS:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4434", value_parser = socket_address)]
    listen: SocketAddr,
    #[command(flatten)]
    certificate: CertificateOptions,
    #[command(flatten)]
    congestion: Congestion,
    #[command(flatten)]
    window: WindowOptions,
    /// Print the address as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Client {
    /// The server, ADDRESS:PORT.
    #[arg(value_parser = socket_address)]
    server: SocketAddr,
    /// The name that its certificate has.
    #[arg(long, default_value = "localhost")]
    name: String,
    #[command(flatten)]
    trust: TrustOptions,
    /// Bytes to receive.
    #[arg(long, value_name = "BYTES")]
    download: Option<Bytes>,
    /// Bytes to send. Without --download and --upload 100MB are received.
    #[arg(long, value_name = "BYTES")]
    upload: Option<Bytes>,
    /// Streams that share them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    streams: u32,
    /// End each direction after this time at the latest.
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Throughput is told for intervals of this length.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(1000))]
    interval: Duration,
    #[command(flatten)]
    congestion: Congestion,
    #[command(flatten)]
    window: WindowOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Pairs {
    /// Bytes of a transfer.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes::new(1_000_000_000))]
    size: Bytes,
    /// Pairs of transfers, one with each congestion control; which is first alternates.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pairs: u32,
    #[command(flatten)]
    scheme: SchemeOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::Other(format!("threads cannot be started: {error}")))?;
    runtime.block_on(async {
        match &arguments.action {
            Action::Server(arguments) => server(arguments).await,
            Action::Client(arguments) => client(arguments).await,
            Action::Pairs(arguments) => pairs(arguments).await,
        }
    })
}

fn unusable(option: &str, address: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::Input(format!("--{option} `{address}`: {error}"))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

/// A server that listens.
fn listen(
    address: SocketAddr,
    certificate: &CertificateOptions,
    transport: Arc<noq::TransportConfig>,
) -> Result<Endpoint, Failure> {
    let crypto = QuicServerConfig::try_from(certificate.config(&[PERF])?).map_err(failed)?;
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport);
    bind(address, Some(config)).map_err(|error| unusable("listen", address, &error))
}

async fn server(arguments: &Server) -> Result<ExitCode, Failure> {
    let transport = arguments.congestion.transport(SEND_WINDOW, arguments.window.receive()?)?;
    let endpoint = listen(arguments.listen, &arguments.certificate, transport)?;
    let address = endpoint.local_addr().map_err(|error| unusable("listen", arguments.listen, &error))?;
    print(&if arguments.json {
        format!("{}\n", json!({ "listening": address.to_string() }))
    } else {
        format!("listening on {address}\n")
    })?;
    serve(endpoint).await;
    Ok(ExitCode::SUCCESS)
}

/// Accepts connections for as long as the endpoint is open.
async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            // A client that does not come or goes away is its own affair.
            let Ok(connection) = incoming.await else { return };
            while let Ok((send, receive)) = connection.accept_bi().await {
                tokio::spawn(answer(send, receive));
            }
        });
    }
}

/// Takes what a stream brings and gives what it wants. An error is the end of the stream, by the client's will.
async fn answer(mut send: SendStream, mut receive: RecvStream) -> Option<()> {
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await.ok()?;
    while receive.read_chunk(usize::MAX).await.ok()?.is_some() {}
    write(&mut send, u64::from_be_bytes(wanted), &Progress::default()).await?;
    send.finish().ok()
}

/// What was transferred so far, and whether that is enough.
#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    over: AtomicBool,
}

async fn write(send: &mut SendStream, bytes: u64, progress: &Progress) -> Option<()> {
    let mut left = bytes;
    while left > 0 && !progress.over.load(Ordering::Relaxed) {
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        send.write_chunk(Chunk::from_static(&ZEROS).slice(..length)).await.ok()?;
        progress.bytes.fetch_add(length as u64, Ordering::Relaxed);
        left -= length as u64;
    }
    Some(())
}

async fn read(receive: &mut RecvStream, progress: &Progress) -> Option<()> {
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.ok()? {
        progress.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        if progress.over.load(Ordering::Relaxed) {
            // The stream may be at its end already.
            drop(receive.stop(ENOUGH));
            break;
        }
    }
    Some(())
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Download,
    Upload,
}

/// One direction as measured.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    /// Bytes of the application that arrived.
    bytes: u64,
    /// Until the last of them arrived; of an upload, until it was acknowledged.
    seconds: f64,
    /// Over all of it.
    goodput_mbps: f64,
    /// Length of an interval.
    interval_ms: f64,
    /// In each interval. Of an upload, what the sender's buffer took.
    intervals_mbps: Vec<f64>,
    /// From the first packet until the connection stood.
    handshake_ms: f64,
}

/// How a client connects and how much it transfers.
struct Transfer {
    config: noq::ClientConfig,
    server: SocketAddr,
    name: String,
    streams: u32,
    duration: Option<StdDuration>,
    interval: StdDuration,
}

impl Transfer {
    /// `size` bytes in one direction, over a connection of its own.
    async fn run(&self, direction: Direction, size: Bytes) -> Result<Measured, Failure> {
        let problem = |cause: &dyn std::fmt::Display| Failure::Other(format!("{}: {}", self.server, advised(cause)));
        let local = if self.server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let local = local.parse().map_err(failed)?;
        let endpoint = bind(local, None).map_err(|error| problem(&error))?;
        let start = Instant::now();
        let connecting = endpoint.connect_with(self.config.clone(), self.server, &self.name);
        let connection = connecting.map_err(|error| problem(&error))?.await.map_err(|error| problem(&error))?;
        let handshake = start.elapsed();
        let began = Instant::now();
        let progress = Arc::new(Progress::default());
        let mut streams = JoinSet::new();
        let count = u64::from(self.streams);
        for place in 0..count {
            let share = size.get() / count + u64::from(place < size.get() % count);
            let (connection, progress) = (connection.clone(), progress.clone());
            streams.spawn(async move {
                let (mut send, mut receive) = connection.open_bi().await.ok()?;
                let wanted = if direction == Direction::Download { share } else { 0 };
                send.write_all(&wanted.to_be_bytes()).await.ok()?;
                if direction == Direction::Upload {
                    write(&mut send, share, &progress).await?;
                }
                send.finish().ok()?;
                read(&mut receive, &progress).await?;
                // For an upload this is the acknowledgement of its end.
                send.stopped().await.ok().map(drop)
            });
        }
        let (mut intervals, mut known, mut whole) = (Vec::new(), 0, true);
        let mut clock = tokio::time::interval_at((began + self.interval).into(), self.interval);
        let deadline = self.duration.map(|duration| began + duration);
        loop {
            tokio::select! {
                done = streams.join_next() => match done {
                    Some(done) => whole &= done.ok().flatten().is_some(),
                    None => break,
                },
                _ = clock.tick() => {
                    let bytes = progress.bytes.load(Ordering::Relaxed);
                    intervals.push(mbps(bytes - known, self.interval));
                    known = bytes;
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now).into()), if deadline.is_some_and(|_| !progress.over.load(Ordering::Relaxed)) => {
                    progress.over.store(true, Ordering::Relaxed);
                }
            }
        }
        let took = began.elapsed();
        if !whole {
            let cause = connection.close_reason().map_or("a stream ended early".into(), |reason| reason.to_string());
            return Err(problem(&cause));
        }
        let bytes = progress.bytes.load(Ordering::Relaxed);
        connection.close(ENOUGH, b"");
        // Whether the farewell arrives is the server's concern.
        drop(tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await);
        Ok(Measured {
            bytes,
            seconds: took.as_secs_f64(),
            goodput_mbps: mbps(bytes, took),
            interval_ms: self.interval.as_secs_f64() * 1e3,
            intervals_mbps: intervals,
            handshake_ms: handshake.as_secs_f64() * 1e3,
        })
    }
}

fn mbps(bytes: u64, time: StdDuration) -> f64 {
    bytes as f64 * 8e-6 / time.as_secs_f64().max(1e-9)
}

fn client_config(trust: &TrustOptions, transport: Arc<noq::TransportConfig>) -> Result<noq::ClientConfig, Failure> {
    let crypto = QuicClientConfig::try_from(trust.config(&[PERF])?).map_err(failed)?;
    let mut config = noq::ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport);
    Ok(config)
}

async fn client(arguments: &Client) -> Result<ExitCode, Failure> {
    let long = Duration::from_millis(1)..=Duration::from_millis(3_600_000);
    for (option, value) in [("interval", Some(arguments.interval)), ("duration", arguments.duration)] {
        if let Some(value) = value.filter(|value| !long.contains(value)) {
            return Err(Failure::Input(format!("--{option} `{value}`: use 1ms to 3600s")));
        }
    }
    let transport = arguments.congestion.transport(SEND_WINDOW, arguments.window.receive()?)?;
    let transfer = Transfer {
        config: client_config(&arguments.trust, transport)?,
        server: arguments.server,
        name: arguments.name.clone(),
        streams: arguments.streams,
        duration: arguments.duration.map(std_time),
        interval: std_time(arguments.interval),
    };
    let asked = [(Direction::Download, arguments.download), (Direction::Upload, arguments.upload)];
    let mut told = json!({ "server": arguments.server.to_string(), "streams": arguments.streams });
    let mut text = String::new();
    for (direction, size) in asked {
        let usual = (direction == Direction::Download && arguments.upload.is_none()).then_some(Bytes::new(100_000_000));
        let Some(size) = size.or(usual) else { continue };
        let before = cpu();
        let measured = transfer.run(direction, size).await?;
        let cpu = before.zip(cpu()).map(|(before, after)| after - before);
        let name = if direction == Direction::Download { "download" } else { "upload" };
        text += &format!(
            "{name}: {} in {:.3} s, {:.2} Mbit/s, CPU {}\n",
            Bytes::new(measured.bytes),
            measured.seconds,
            measured.goodput_mbps,
            cpu.map_or("–".into(), |cpu| format!("{cpu:.3} s"))
        );
        for (place, rate) in measured.intervals_mbps.iter().enumerate() {
            let from = place as f64 * measured.interval_ms / 1e3;
            text += &format!("  {from:8.3} s  {rate:10.2} Mbit/s\n");
        }
        told[name] = serde_json::to_value(&measured).map_err(failed)?;
        told[name]["cpu_seconds"] = json!(cpu);
    }
    print(&if arguments.json { format!("{told}\n") } else { text })?;
    Ok(ExitCode::SUCCESS)
}

/// What one transfer over the loopback interface took, at both ends together.
#[derive(Clone, Copy, Debug)]
struct Cost {
    throughput_mbps: f64,
    cpu_seconds_per_gb: f64,
}

/// A part of the cost.
type Part = fn(&Cost) -> f64;

async fn over_loopback(arguments: &Pairs, controller: Controller) -> Result<Cost, Failure> {
    let scheme =
        SchemeOptions { startup: arguments.scheme.startup.clone(), avoidance: arguments.scheme.avoidance.clone() };
    let transport = Congestion { scheme, controller }.transport(LOOPBACK_WINDOW, LOOPBACK_WINDOW)?;
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = listen(any, &CertificateOptions::of_this_run(), transport.clone())?;
    let transfer = Transfer {
        config: client_config(&TrustOptions::anyone(), transport)?,
        server: endpoint.local_addr().map_err(failed)?,
        name: "localhost".into(),
        streams: 1,
        duration: None,
        interval: StdDuration::from_secs(3600),
    };
    let serving = tokio::spawn(serve(endpoint.clone()));
    let no_clock = || Failure::Other("this system does not tell the CPU time of a process".into());
    let before = cpu().ok_or_else(no_clock)?;
    let measured = transfer.run(Direction::Download, arguments.size).await?;
    let used = cpu().ok_or_else(no_clock)? - before;
    serving.abort();
    endpoint.close(ENOUGH, b"");
    Ok(Cost { throughput_mbps: measured.goodput_mbps, cpu_seconds_per_gb: used / (measured.bytes as f64 / 1e9) })
}

async fn pairs(arguments: &Pairs) -> Result<ExitCode, Failure> {
    if arguments.size < Bytes::new(1_000_000) {
        return Err(Failure::Input(format!("--size `{}`: use 1MB or more", arguments.size)));
    }
    let bar = crate::output::progress(u64::from(arguments.pairs));
    // The first transfer warms up the allocator and the interface, and counts for nothing.
    over_loopback(arguments, Controller::NoqCubic).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..arguments.pairs {
        let mut order = [Controller::Flowstart, Controller::NoqCubic];
        order.rotate_left(pair as usize % 2);
        for controller in order {
            let cost = over_loopback(arguments, controller).await?;
            if controller == Controller::Flowstart { ours.push(cost) } else { theirs.push(cost) }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let ratio = |value: Part| {
        let of = |costs: &[Cost]| costs.iter().map(value).collect::<Vec<_>>();
        bca_mean_ratio_paired(&of(&ours), &of(&theirs), 0.95, RESAMPLES, 1)
    };
    let mean = |costs: &[Cost], value: Part| costs.iter().map(value).sum::<f64>() / costs.len() as f64;
    let mut told = json!({ "size_bytes": arguments.size.get(), "pairs": arguments.pairs });
    let mut text = format!("{} pairs of {} over loopback\n", arguments.pairs, arguments.size);
    let rows: [(&str, &str, Part); 2] = [
        ("cpu_seconds_per_gb", "CPU s per GB", |cost| cost.cpu_seconds_per_gb),
        ("throughput_mbps", "Mbit/s", |cost| cost.throughput_mbps),
    ];
    let mut complete = true;
    for (key, unit, value) in rows {
        let (us, them) = (mean(&ours, value), mean(&theirs, value));
        let estimate = ratio(value);
        complete &= estimate.is_some();
        let interval = estimate.as_ref().map(|estimate| [estimate.interval.low, estimate.interval.high]);
        told[key] = json!({
            "flowstart": us,
            "noq_cubic": them,
            "ratio": estimate.as_ref().map(|estimate| estimate.estimate),
            "ci95": interval,
        });
        let interval = interval.map_or("–".into(), |[low, high]| format!("{low:.3}–{high:.3}"));
        text +=
            &format!("{unit}: flowstart {us:.3}, noq's CUBIC {them:.3}, ratio {:.3} (95 % {interval})\n", us / them);
    }
    print(&if arguments.json { format!("{told}\n") } else { text })?;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// CPU time that this process has used, in seconds.
#[cfg(unix)]
fn cpu() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// CPU time that this process has used: not told here.
#[cfg(not(unix))]
fn cpu() -> Option<f64> {
    None
}
