//! `flowstart perf`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_serve::perf::{self, Cost, Direction, PERF};
use serde_json::json;

use crate::attention::Waiting;
use crate::failure::{FAILED, Failure};
use crate::output::print;
use crate::quic::{CertificateOptions, SchemeOptions, TrustOptions, WindowOptions, socket_address, std_time};

mod quick_start_router;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart perf server --self-signed --listen '[::]:4434' --startup search
  flowstart perf client 192.0.2.7:4434 --insecure --download 100MB
  flowstart perf client 192.0.2.7:4434 --insecure --duration 10s \\
    --upload 10GB --streams 4 --json
  flowstart perf pairs --size 1GB --pairs 10
  flowstart perf quick-start-router --repetitions 40

The protocol of server and client is that of draft-banks-quic-performance (ALPN perf).")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Send and receive what clients ask for, until interrupted.
    Server(Server),
    /// Measure throughput over time, from the server, to the server, or both in turn.
    Client(Client),
    /// Compare this program's congestion control with noq's own CUBIC over the loopback interface: throughput and CPU
    /// time.
    Pairs(Pairs),
    /// Measure what a packet costs a Quick-Start router (RFC 4782), by what becomes of its option: in the kernel before
    /// its network stack (XDP), by the rule of this program, and in a whole flowstart router. It takes Linux with BTF,
    /// root and a build with --features tcp.
    QuickStartRouter(quick_start_router::Arguments),
}

/// Whose congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Controller {
    /// This program's, from --startup and --avoidance.
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
    fn choice(&self) -> Result<perf::Congestion, Failure> {
        let scheme = self.scheme.scheme_without_approvals()?;
        Ok(match self.controller {
            Controller::Flowstart => perf::Congestion::Scheme(Arc::new(scheme)),
            Controller::NoqCubic => perf::Congestion::NoqCubic,
        })
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
    /// Bytes to send. Without --download and --upload, 100MB are received.
    #[arg(long, value_name = "BYTES")]
    upload: Option<Bytes>,
    /// Streams that share the bytes.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    streams: u32,
    /// End each direction after this time at the latest.
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Report throughput for intervals of this length.
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
    /// Pairs of transfers, one with each congestion control, in alternating order.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pairs: u32,
    #[command(flatten)]
    scheme: SchemeOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Action::QuickStartRouter(arguments) = &arguments.action {
        return quick_start_router::main(arguments);
    }
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::Other(format!("threads cannot be started: {error}")))?;
    runtime.block_on(async {
        match &arguments.action {
            Action::Server(arguments) => server(arguments).await,
            Action::Client(arguments) => client(arguments).await,
            Action::Pairs(arguments) => pairs(arguments).await,
            Action::QuickStartRouter(arguments) => quick_start_router::main(arguments),
        }
    })
}

async fn server(arguments: &Server) -> Result<ExitCode, Failure> {
    let (congestion, window) = (arguments.congestion.choice()?, arguments.window.receive()?);
    let tls = arguments.certificate.config(PERF)?;
    let server = perf::Server::start(arguments.listen, tls, &congestion, window)?;
    let address = server.address();
    print(&if arguments.json {
        format!("{}\n", json!({ "listening": address.to_string() }))
    } else {
        format!("listening on {address}\n")
    })?;
    server.run().await;
    Ok(ExitCode::SUCCESS)
}

async fn client(arguments: &Client) -> Result<ExitCode, Failure> {
    let long = Duration::from_millis(1)..=Duration::from_millis(3_600_000);
    for (option, value) in [("interval", Some(arguments.interval)), ("duration", arguments.duration)] {
        if let Some(value) = value.filter(|value| !long.contains(value)) {
            return Err(Failure::Input(format!("--{option} `{value}`: use 1ms to 3600s")));
        }
    }
    let (congestion, window) = (arguments.congestion.choice()?, arguments.window.receive()?);
    let tls = arguments.trust.config(PERF)?;
    let mut client = perf::Client::new(arguments.server, &arguments.name, tls, &congestion, window)?;
    client.streams = arguments.streams;
    client.duration = arguments.duration.map(std_time);
    client.interval = std_time(arguments.interval);
    let asked = [(Direction::Download, arguments.download), (Direction::Upload, arguments.upload)];
    let mut told = json!({ "server": arguments.server.to_string(), "streams": arguments.streams });
    let mut text = String::new();
    for (direction, size) in asked {
        let usual = (direction == Direction::Download && arguments.upload.is_none()).then_some(Bytes::new(100_000_000));
        let Some(size) = size.or(usual) else { continue };
        let name = if direction == Direction::Download { "download" } else { "upload" };
        let waiting = Waiting::begin(name);
        let measured = client.transfer(direction, size).await?;
        drop(waiting);
        text += &format!(
            "{name}: {} in {:.3} s, {:.2} Mbit/s, CPU {}\n",
            Bytes::new(measured.bytes),
            measured.seconds,
            measured.goodput_mbps,
            measured.cpu_seconds.map_or("–".into(), |cpu| format!("{cpu:.3} s"))
        );
        for (place, rate) in measured.intervals_mbps.iter().enumerate() {
            let from = place as f64 * measured.interval_ms / 1e3;
            text += &format!("  {from:8.3} s  {rate:10.2} Mbit/s\n");
        }
        told[name] = json!(measured);
    }
    print(&if arguments.json { format!("{told}\n") } else { text })?;
    Ok(ExitCode::SUCCESS)
}

/// A part of the cost.
type Part = fn(&Cost) -> f64;

async fn pairs(arguments: &Pairs) -> Result<ExitCode, Failure> {
    if arguments.size < Bytes::new(1_000_000) {
        return Err(Failure::Input(format!("--size `{}`: use 1MB or more", arguments.size)));
    }
    let bar = crate::output::progress(u64::from(arguments.pairs));
    let congestion = perf::Congestion::Scheme(Arc::new(arguments.scheme.scheme_without_approvals()?));
    let pairs = perf::pairs(arguments.size, arguments.pairs, &congestion, || bar.inc(1)).await?;
    bar.finish_and_clear();
    let mean = |costs: &[Cost], value: Part| costs.iter().map(value).sum::<f64>() / costs.len() as f64;
    let mut told = json!({ "size_bytes": arguments.size.get(), "pairs": arguments.pairs });
    let mut text = format!("{} pairs of {} over loopback\n", arguments.pairs, arguments.size);
    let rows: [(&str, &str, Part); 2] = [
        ("cpu_seconds_per_gb", "CPU s per GB", |cost| cost.cpu_seconds_per_gb),
        ("throughput_mbps", "Mbit/s", |cost| cost.throughput_mbps),
    ];
    let mut complete = true;
    for (key, unit, value) in rows {
        let (us, them) = (mean(&pairs.scheme, value), mean(&pairs.noq_cubic, value));
        let estimate = pairs.ratio(value);
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
