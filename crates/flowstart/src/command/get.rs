//! `flowstart get`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use clap::Args;
use clap::builder::RangedI64ValueParser;
use flowstart_core::path::AccessTechnology;
use flowstart_core::quantize::Grid;
use flowstart_core::sources::Sources;
use flowstart_core::spec::{InputError, Spec};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::hint::BandwidthHint;
use flowstart_serve::H3;
use flowstart_serve::client::{self, Client, ClientError, Many, Progress, Timings, Url, estimate};
use flowstart_serve::tokens::Tokens;
use http::{StatusCode, Uri};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

mod estimates;
mod out;
mod path;
mod while_read;

use self::out::Out;
use crate::attention::{Waiting, shows_progress};
use crate::failure::{FAILED, Failure, advised};
use crate::interruption::{end_by, signal};
use crate::output::print;
use crate::quic::{TrustOptions, WindowOptions, raise_file_limit, socket_address, std_time};

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart get https://www.example.org/ --out page.html
  flowstart get --insecure https://localhost:4433/generate/2MB --json
  flowstart get --insecure https://localhost:4433/generate/70KB --repeat 2 \\
    --tokens tokens
  flowstart get --insecure https://localhost:4433/generate/1MB \\
    --connections 2000 --hold 2s
  flowstart get --ca ca.pem --connect 192.0.2.7:4433 \\
    https://www.example.org/video --out - | mpv -

HTTP/3 only. Without --out the content is thrown away. Times count from the first packet: the handshake, the first \
byte of the content, and the FCT, which is its last byte. Goodput is the content over the FCT. They go to stderr; \
with --json they go to stdout, a line for each of --repeat. early_data says whether the server accepted a request \
before the handshake was complete. Session tickets do not outlive the command, because the TLS library cannot save \
them. Tokens do (--tokens). SSLKEYLOGFILE is obeyed. Exit code: 0 done, 1 not received or a status of 400 or more, \
2 bad input.")]
pub(crate) struct Arguments {
    /// The URL, `https://HOST[:PORT]/PATH`.
    url: Uri,
    #[command(flatten)]
    trust: TrustOptions,
    /// Where to connect instead of the URL's host, ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    connect: Option<SocketAddr>,
    /// Tell the server how fast this host's access is: rate=50mbit,technology=wifi,age=60s, where technology and age
    /// may be missing; auto to estimate it; or none.
    #[arg(long, value_name = "HINT", default_value = "none", value_parser = hint)]
    hint: Hinting,
    /// Round the hinted rate down to one of this many steps per factor of ten. Fewer reveal less about their sender,
    /// and cost time: with 20, Blitzstart needs up to 5 % more than with the exact rate, with 5 up to 36 %, with 2 up
    /// to 83 %; a scheme that probes after its launch, as More-Start, 5, 12 and 24 %.
    #[arg(long, value_name = "NUMBER", default_value_t = Grid::default().steps_per_decade, value_parser = steps())]
    hint_steps: u8,
    #[command(flatten)]
    estimates: estimates::Options,
    /// How urgent the request is, 0 to 7, 0 first (RFC 9218). To a server with --deadline what is above 3 states no
    /// rate.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=7))]
    urgency: Option<u8>,
    /// Read what elements of the path advise (SCONE), and report it to the server with the request.
    #[arg(long)]
    scone: bool,
    /// Time the server's part of the handshake, and report with the request at which rate it arrived: a server that
    /// measures nothing else learns how fast the path is. It is rounded as --hint-steps says.
    #[arg(long)]
    handshake_train: bool,
    /// Answer the server's request to the routers of the path (Quick-Start). It takes Linux.
    #[arg(long)]
    quick_start: bool,
    /// Write the content to this file, or `-` for stdout. The file appears when the content is complete.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep the server's path state in this file, and send it with the next connection.
    #[arg(long, value_name = "FILE")]
    path_state: Option<PathBuf>,
    /// Get it over this many connections at a time, to put load on a server. The timings are then their distribution.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = many())]
    connections: u32,
    /// How many of them may be in their handshake at a time. The others wait; this does not count in their timings.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = many())]
    handshakes: u32,
    /// Open all of them first, keep them open for this long, and then get everything at once.
    #[arg(long, value_name = "TIME", conflicts_with = "repeat")]
    hold: Option<Duration>,
    /// Get it this often, over one connection after the other. The second and later ones resume the session: the
    /// request leaves with the first packet (0-RTT), if the server allows it.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "connections", value_parser = many())]
    repeat: u32,
    /// Keep in this file the tokens by which servers recognize this host's address, and use them. Each line has a
    /// server's name and a token.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    window: WindowOptions,
    /// Time limit for everything.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Print the timings as JSON.
    #[arg(long)]
    json: bool,
}

fn steps() -> RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(1..=100)
}

fn many() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=100_000)
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
    const ALLOWED: &str = "rate=50mbit,technology=wifi,age=60s, or auto, or none";
    match text {
        "none" => return Ok(Hinting::None),
        "auto" => return Ok(Hinting::Auto),
        _ => {}
    }
    let read = || -> Result<BandwidthHint, InputError> {
        let mut spec = Spec::parse("hint", text)?;
        if !spec.name().is_empty() {
            return Err(spec.unknown_name(&["auto", "none"], format_args!("use {ALLOWED}")));
        }
        let rate = spec.read("rate")?;
        let technology = spec.read("technology")?.unwrap_or(AccessTechnology::Unknown);
        let age = spec.read("age")?.unwrap_or(Duration::ZERO);
        spec.finish()?;
        let rate = rate.ok_or_else(|| spec.refused(format_args!("the rate is missing; use {ALLOWED}")))?;
        Ok(BandwidthHint { rate, technology, age })
    };
    let hint = read().map_err(|error| error.problem)?;
    hint.encode().map_err(|error| error.to_string())?;
    let lowest = Grid::default().lowest;
    if hint.rate < lowest { Err(format!("rate: allowed is {lowest} or more")) } else { Ok(Hinting::Told(hint)) }
}

fn millis(time: StdDuration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Arguments {
    /// What is told to servers is rounded to this.
    fn grid(&self) -> Grid {
        Grid { steps_per_decade: self.hint_steps, ..Grid::default() }
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let url = Url::new(arguments.url.clone())?;
    let to_stdout = arguments.out.as_deref().is_some_and(|out| out.as_os_str() == "-");
    if to_stdout && arguments.json {
        return Err(Failure::Input("--json: stdout is for the content with --out -".into()));
    }
    for (option, times) in [("connections", arguments.connections), ("repeat", arguments.repeat)] {
        if times > 1 && arguments.out.is_some() {
            return Err(Failure::Input(format!("--{option}: what comes many times cannot go to --out")));
        }
    }
    if arguments.connections > 1 {
        raise_file_limit();
    }
    let tokens = arguments.tokens.as_deref().map(Tokens::read).transpose()?.map(Arc::new);
    let config = client::Config {
        receive_window: arguments.window.receive()?,
        path_state: arguments.path_state.clone(),
        tokens: tokens.clone(),
        resume: arguments.repeat > 1,
        urgency: arguments.urgency,
        scone: arguments.scone,
        quick_start: arguments.quick_start,
        handshake_train: arguments.handshake_train.then(|| arguments.grid()),
        connections: arguments.connections,
        handshakes: arguments.handshakes,
        hold: arguments.hold.map(std_time),
        ..client::Config::new(arguments.trust.config(H3)?)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("the network cannot be used: {error}")))?;
    let mut past = arguments.estimates.read()?;
    let work = get(arguments, &url, config, &mut past);
    let got = runtime.block_on(async {
        let work = async {
            match arguments.timeout {
                None => work.await,
                Some(limit) => tokio::time::timeout(std_time(limit), work)
                    .await
                    .unwrap_or_else(|_| Err(Failure::Other(format!("{}: not received within {limit}", arguments.url)))),
            }
        };
        // What is dropped leaves nothing half-written.
        tokio::select! {
            got = work => Ok(got),
            signal = signal() => Err(signal),
        }
    });
    // A running name lookup would keep the program from ending.
    runtime.shutdown_background();
    // A sent token is used up, even if no answer came.
    let saved = tokens.map_or(Ok(()), |tokens| tokens.save());
    let got = match got {
        Ok(got) => got?,
        Err(signal) => return Ok(end_by(signal)),
    };
    saved?;
    past.save()?;
    let (got, unkept) = got;
    let code = match got {
        Got::Many(many) => tell_many(arguments, &many)?,
        Got::Each { is_refused } => {
            if is_refused {
                ExitCode::from(FAILED)
            } else {
                ExitCode::SUCCESS
            }
        }
    };
    match unkept {
        Some(error) => Err(Failure::Other(error.to_string())),
        None => Ok(code),
    }
}

/// What came.
enum Got {
    /// Over many connections at a time.
    Many(Many),
    /// Over one connection after the other, each told as it came. Whether the server refused one.
    Each { is_refused: bool },
}

/// Gets it as often as requested. Returns also why the path state is not in its file.
async fn get(
    arguments: &Arguments,
    url: &Url,
    mut config: client::Config,
    past: &mut estimates::Past,
) -> Result<(Got, Option<ClientError>), Failure> {
    let mut out = Out::open(arguments.out.as_deref()).await?;
    let servers = match arguments.connect {
        Some(address) => vec![address],
        None => url.addresses().await?,
    };
    let server = servers.first().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), SocketAddr::ip);
    let shows = arguments.estimates.estimate;
    let estimates = match arguments.hint {
        Hinting::None | Hinting::Told(_) if !shows => None,
        _ => Some(past.ask(server).await?),
    };
    let told = match arguments.hint {
        Hinting::Told(hint) => Some(hint),
        Hinting::None | Hinting::Auto => estimates.as_ref().and_then(estimate::hint),
    };
    config.hint = told.and_then(|hint| hint.quantized(&arguments.grid()));
    let hint = config.hint.map(|hint| hint.rate);
    if let Some(estimates) = &estimates {
        estimates::tell(estimates, hint, shows && !arguments.json);
    }
    let client = Client::new(config)?;
    let shown = estimates.filter(|_| shows);
    let tell_one = |one: &Timings| tell(arguments, one, hint, shown.as_ref());
    let got = over(&client, arguments, url, &servers, (&mut out, &tell_one), past).await;
    let unkept = client.unkept_path_state();
    // Also of a transfer that failed: the server needs not wait for it.
    client.close().await;
    Ok((got?, unkept))
}

/// Tells a transfer, and whether the server refused it.
type Tell<'a> = dyn Fn(&Timings) -> Result<bool, Failure> + 'a;

/// Gets it with this client, and tells each transfer when it is complete: one that fails takes none with it.
async fn over(
    client: &Client,
    arguments: &Arguments,
    url: &Url,
    servers: &[SocketAddr],
    (out, tell_one): (&mut Out, &Tell<'_>),
    past: &mut estimates::Past,
) -> Result<Got, Failure> {
    if arguments.connections > 1 {
        let waiting = Waiting::begin(format!("getting it over {} connections", arguments.connections));
        let many = client.get_many(url, servers).await;
        drop(waiting);
        if let Some(first) = many.failures.first() {
            tell!("warning: {}", advised(first.to_string()));
        }
        return Ok(Got::Many(many));
    }
    let bar = Bar::new();
    let first = client.get(url, servers, &mut *out.writer, &|progress| bar.show(progress)).await?;
    drop(bar);
    if !first.is_refused() {
        out.complete().await?;
    }
    let mut is_refused = tell_one(&first)?;
    let (server, mut timings) = (first.address, vec![first]);
    for _ in 1..arguments.repeat {
        let bar = Bar::new();
        let next = client.get_again(url, server, &mut tokio::io::sink(), &|progress| bar.show(progress)).await?;
        drop(bar);
        is_refused |= tell_one(&next)?;
        timings.push(next);
    }
    let content = timings.iter().filter(|one| one.status == StatusCode::OK);
    past.observe(content.filter_map(|one| one.rate), server.ip());
    Ok(Got::Each { is_refused })
}

/// The distribution of many connections' timings.
fn tell_many(arguments: &Arguments, Many { timings, failures, open }: &Many) -> Result<ExitCode, Failure> {
    let failures = failures.len();
    let quantiles = |value: fn(&Timings) -> StdDuration| {
        let mut values: Vec<_> = timings.iter().map(value).collect();
        values.sort_unstable();
        // Nearest rank.
        [50, 95, 100].map(|percent| values.get((values.len() * percent).div_ceil(100).max(1) - 1).copied().map(millis))
    };
    let (handshake, fct) = (quantiles(|one| one.handshake), quantiles(|one| one.fct));
    let bytes: u64 = timings.iter().map(|one| one.bytes).sum();
    let refused = timings.iter().filter(|one| one.is_refused()).count();
    let advised = timings.iter().filter(|one| one.scone.is_some_and(|scone| scone.advised.is_some())).count();
    if arguments.json {
        let told = |[median, p95, most]: [Option<f64>; 3]| json!({ "median": median, "p95": p95, "max": most });
        let told = json!({
            "url": arguments.url.to_string(),
            "connections": timings.len() + failures,
            "failed": failures,
            "open_at_once": arguments.hold.map(|_| open),
            "refused": refused,
            "advised": arguments.scone.then_some(advised),
            "bytes": bytes,
            "handshake_ms": told(handshake),
            "fct_ms": told(fct),
        });
        print(&format!("{told}\n"))?;
    } else {
        let told =
            |values: [Option<f64>; 3]| values.map(|one| one.map_or("–".into(), |one| format!("{one:.1}"))).join(", ");
        tell!(
            "{} connections, {failures} failed, {refused} refused, {}; \
             median, 95 % and most: handshake {} ms, FCT {} ms",
            timings.len() + failures,
            Bytes::new(bytes),
            told(handshake),
            told(fct)
        );
    }
    Ok(if failures + refused > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Prints the timings of one; returns whether the server refused it.
fn tell(
    arguments: &Arguments,
    timings: &Timings,
    hint: Option<Rate>,
    estimates: Option<&Sources>,
) -> Result<bool, Failure> {
    let Timings { address, status, early_data, bytes, handshake, first_byte, fct, request, .. } = timings;
    let early_data = early_data.map(|accepted| if accepted { "accepted" } else { "rejected" });
    if arguments.json {
        let told = json!({
            "url": arguments.url.to_string(),
            "address": address.to_string(),
            "status": status.as_u16(),
            "hint_bps": hint.map(Rate::bits_per_sec),
            "estimates": estimates.map(estimates::as_json),
            "scone": timings.scone.map(path::scone_as_json),
            "quick_start": timings.quick_start.map(path::quick_start_as_json),
            "handshake_train_bps": timings.handshake_train.map(Rate::bits_per_sec),
            "early_data": early_data,
            "bytes": bytes,
            "handshake_ms": millis(*handshake),
            "first_byte_ms": first_byte.map(millis),
            "fct_ms": millis(*fct),
            "fct_request_ms": millis(*request),
            "goodput_mbps": timings.goodput_mbps(),
        });
        print(&format!("{told}\n"))?;
    } else {
        tell!(
            "{status}, {}: handshake {:.1} ms, first byte {}, FCT {:.1} ms, goodput {:.2} Mbit/s{}{}{}{}",
            Bytes::new(*bytes),
            millis(*handshake),
            first_byte.map_or("–".into(), |first| format!("{:.1} ms", millis(first))),
            millis(*fct),
            timings.goodput_mbps(),
            early_data.map_or(String::new(), |what| format!(", early data {what}")),
            timings.scone.map_or(String::new(), |scone| format!(", {}", path::scone_in_words(scone))),
            timings.quick_start.map_or(String::new(), |seen| format!(", {}", path::quick_start_in_words(seen))),
            timings.handshake_train.map_or(String::new(), |rate| format!(", the handshake arrived at {rate}"))
        );
    }
    let refused = timings.is_refused();
    if refused {
        tell!("error: {}: the server answered {status}", arguments.url);
    }
    Ok(refused)
}

/// Shows the progress of an answer.
struct Bar(Mutex<Shown>);

/// What is shown of an answer: that there is none yet, or how much of it has arrived.
enum Shown {
    Waiting { _waiting: Waiting },
    Bar(ProgressBar),
}

impl Bar {
    fn new() -> Self {
        Self(Mutex::new(Shown::Waiting { _waiting: Waiting::begin("waiting for the server") }))
    }

    fn show(&self, progress: Progress) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (progress, &*shown) {
            (Progress::Begun(size), _) => *shown = Shown::Bar(bar_of(size)),
            (Progress::Received(bytes), Shown::Bar(bar)) => bar.set_position(bytes),
            (Progress::Complete, Shown::Bar(bar)) => bar.finish_and_clear(),
            (_, Shown::Waiting { .. }) => {}
        }
    }
}

/// A progress bar on a terminal, silence elsewhere.
fn bar_of(size: Option<u64>) -> ProgressBar {
    if !shows_progress() {
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
    fn hints_are_read() {
        let Ok(Hinting::Told(told)) = hint("rate=50mbit,technology=wifi,age=61s") else { panic!("a valid hint") };
        assert_eq!((told.rate, told.technology), (Rate::from_mbit(50), AccessTechnology::Wifi));
        assert_eq!(told.age, Duration::from_millis(61_000));
        assert_eq!((hint("none"), hint("auto")), (Ok(Hinting::None), Ok(Hinting::Auto)));
        for wrong in ["", "50mbit", "technology=wifi", "rate=x", "rate=1kbit", "rate=1mbit,technology=5g"] {
            assert!(hint(wrong).is_err(), "{wrong}");
        }
    }
}
