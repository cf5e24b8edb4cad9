//! `flowstart serve`.

use std::collections::HashSet;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use flowstart_core::sources::Known;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::hint::HintPolicy;
use flowstart_sensing::interface;
use flowstart_serve::server::{self, FASTEST, FallBack, InterfaceChoice, Lack, Limits, Schemes, Server, ServerError};
use flowstart_serve::{H3, Scheme};
use ipnet::IpNet;
use serde_json::json;

use crate::failure::Failure;
use crate::interruption::Interruptions;
use crate::output::print;
use crate::quic::{self, CertificateOptions, SchemeOptions, socket_address, std_time, warnings};

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart serve --root site --self-signed
  flowstart serve --root site --listen '[::]:443' --cert cert.pem \\
    --key key.pem --startup blitzstart --hint-policy cap:rate=50mbit
  flowstart serve --self-signed --startup-for 192.0.2.0/24=slow-start \\
    --ab 0.1=jump-start --metrics 127.0.0.1:9100
  flowstart get --insecure https://localhost:4433/generate/2MB
  flowstart serve --self-signed --startup quick-start --quick-start
  flowstart get --insecure --quick-start \
    https://127.0.0.1:4433/generate/2MB

HTTP/3 only. Files are below --root. /generate/SIZE is an object of any size, such as /generate/70KB or \
/generate/2MB. The server prints its address when it is ready.

A connection gets the first of these schemes that applies: plain slow start while the kill switch is on or launches \
lose too much; the scheme of the client's network (--startup-for); an alternative for its share of the connections \
(--ab); --startup. The kill switch is on while the file of --kill-file exists. SIGUSR1 turns it on and off. So do \
PUT and DELETE /kill-switch at the address of --metrics.

A client gives a hint with its first message (`flowstart get --hint`). A browser gives one as Downlink, RTT and ECT \
with a request. Without --hint-policy no hint is used. In a policy, history and validate look into --path-store, and \
link goes by the speed of --interface, or of the one through which packets to the client leave. Clients tell the age \
of a hint in started minutes, so age=30s refuses all but new ones.

A scheme starts from what sources state of the path: hints, --path-store and --path-state-key, --oracle, --interface, \
--deadline, --quick-start. A source that does not answer within 50 ms is left out. A scheme that could use none of \
what the server knows is refused: blitzstart without --hint-policy, or with one whose evidence can never come, a path \
store that cannot be opened, an interface that does not tell its speed. What each source stated and whether the \
launch depended on it stand in --qlog (flowstart:launch) and in --metrics (flowstart_sources).

With --early-data a returning client's request is answered before the handshake is complete. Each session ticket \
works once, and only with the process that gave it. So this process does not answer a recorded first packet twice. \
Behind a load balancer, or after a restart, the handshake is a full one. A method that is not safe gets 425. Until \
the client has proved its address, the answer is limited to three times what came; a token of an earlier connection \
proves it. A scheme that takes its RTT and rate from an earlier connection (--path-store, --path-state-key) launches \
with the answer, more-start, plumb and blitzstart:rtt=cached among others; one that has none, or validates it first, \
launches when the first acknowledgement has measured the RTT.

With --scone, elements of the path may advise a rate, which a client that reads it (`flowstart get --scone`) reports \
with its request. Advice caps the launch of any scheme at what the rate carries in a round trip, and never raises it. \
It stands in --qlog (flowstart:advice_capped) and in --metrics (flowstart_advice_capped, flowstart_scone_reports).

With --quick-start a connection whose scheme is quick-start asks the routers of the path for a rate (RFC 4782), in an \
option of its first datagram, if the client answers (`flowstart get --quick-start`). The client reports what arrived \
with its request, and what all routers approved is the launch; a second option reports it to the routers. Nobody else \
is asked. A client that lies can make up an approval where no router takes part; quick-start:rate=RATE is the most \
that is asked for and believed. It stands in --qlog (flowstart:launch) and in --metrics (flowstart_quick_start_responses). \
`flowstart relay` with quick_start=target is a router. In IPv6 the option is one of a hop-by-hop header, which more \
networks drop than options of IPv4. Linux and CAP_NET_RAW only, one pass, and nothing in mid-connection.

SIGINT and SIGTERM end the server: it refuses new connections, and answers under way have --grace to arrive. A second \
one ends it at once. It \
obeys SSLKEYLOGFILE. Exit code: 0 ended, 1 something failed, 2 bad input.")]
pub(crate) struct Arguments {
    /// The folder whose files are served; without it only generated objects.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Where to listen, ADDRESS:PORT. Port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4433", value_parser = socket_address)]
    listen: SocketAddr,
    #[command(flatten)]
    certificate: CertificateOptions,
    #[command(flatten)]
    scheme: SchemeOptions,
    /// The startup scheme of clients in a network, such as 192.0.2.0/24=blitzstart. The longest network counts.
    #[arg(long, value_name = "NETWORK=SPEC", num_args = 1..)]
    startup_for: Vec<String>,
    /// An alternative startup scheme for a random share of the connections, such as 0.1=jump-start.
    #[arg(long, value_name = "SHARE=SPEC", num_args = 1..)]
    ab: Vec<String>,
    /// How far to believe clients' hints: accept, ignore, validate:share=0.5, or cap: with some of
    /// rate=50mbit,prefix=200mbit,link=0.5,history=4,age=3600s.
    #[arg(long, value_name = "POLICY", default_value = "ignore")]
    hint_policy: HintPolicy,
    /// While this file exists, connections start with plain slow start.
    #[arg(long, value_name = "FILE")]
    kill_file: Option<PathBuf>,
    /// Share of a launch's bytes that may be lost, in the mean over launches, of which none counts for more than twice
    /// this. Above it connections start with plain slow start for a while: those of a prefix, /24 or /48, for its own
    /// losses, and all of them if at least six prefixes lose.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    launch_loss_limit: f64,
    /// How many of the latest launches count for this. For all prefixes together it is ten at least.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    launch_window: usize,
    /// How long connections start with plain slow start after that.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(300_000))]
    launch_recovery: Duration,
    /// Remember paths in this file, or on a server `redis://HOST`, and use them in schemes. A file keeps 65536 prefixes
    /// for an hour each.
    #[arg(long, value_name = "FILE")]
    path_store: Option<String>,
    /// Let clients that accept trailers (`flowstart get --path-state`) keep their path state, sealed with the 32 bytes
    /// of this file. Servers that share the file open each other's states.
    #[arg(long, value_name = "FILE")]
    path_state_key: Option<PathBuf>,
    /// Ask this oracle how fast the path to a client is (`flowstart oracle serve`), and use the answer in schemes.
    #[arg(long, value_name = "URL")]
    oracle: Option<String>,
    /// Use the speed of this interface in schemes; `route`: of the one through which packets to the client leave. A
    /// rate behind the name, as in eth0=1gbit, counts in place of what the interface says.
    #[arg(long, value_name = "NAME[=RATE]", value_parser = interface_choice)]
    interface: Option<(InterfaceChoice, Option<Rate>)>,
    /// How long an answer may take. Its size and this time are a rate that the application asks for.
    #[arg(long, value_name = "TIME")]
    deadline: Option<Duration>,
    /// Answer GET and HEAD of returning clients with their first packets, before the handshake is complete (0-RTT, RFC
    /// 8470). An attacker who has recorded such packets can make the server answer them again.
    #[arg(long)]
    early_data: bool,
    /// Put SCONE packets before datagrams to clients that read them, and let the advice that they report cap launches.
    /// Packets of all connections stay at 1200 bytes.
    #[arg(long)]
    scone: bool,
    /// Let connections with the scheme quick-start ask the routers of the path for a rate, if their clients answer. It
    /// takes Linux and the capability `CAP_NET_RAW`.
    #[arg(long)]
    quick_start: bool,
    /// Write a qlog file per connection into this folder, once it has proved its address. It has the client's address.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// What all files in the folder of --qlog may take, each 4 KB at least, and one of them a tenth of it. Beyond it
    /// files end with their last whole event, and further connections have none, until files are moved away.
    #[arg(long, value_name = "BYTES", default_value_t = server::QLOG_LIMIT)]
    qlog_limit: Bytes,
    /// Write each client's network into its qlog file, /24 or /48.
    ///
    /// `flowstart analyze --by-network` tells them apart.
    #[arg(long, requires = "qlog")]
    qlog_networks: bool,
    /// Answer /metrics (Prometheus) and /kill-switch over HTTP/1.1 here.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    metrics: Option<SocketAddr>,
    /// Connections at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_connections: usize,
    /// Connections at a time from one prefix, /24 or /48. Behind a network's gateway many clients may share one.
    /// Default: nine tenths of --max-connections, so that no prefix alone takes all places.
    #[arg(long, value_name = "NUMBER")]
    max_per_prefix: Option<usize>,
    /// New connections per second from one prefix, /24 or /48. Default: no limit.
    #[arg(long, value_name = "NUMBER")]
    max_rate: Option<f64>,
    /// Concurrent handshakes above which clients have to prove their address (Retry) before they take up memory.
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    max_handshakes: usize,
    /// The longest that a handshake may take. On an overloaded host a short limit rejects clients that could be served
    /// later.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(10_000))]
    handshake_time: Duration,
    /// Unacknowledged bytes per connection: the largest window that startup can use, and a connection's memory.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes::new(32_000_000))]
    connection_memory: Bytes,
    /// What all connections may hold together: what is not acknowledged, and 80 KB for each. Beyond it new connections
    /// are refused, and open ones get content in small pieces, each when as much has arrived. From 90 % on
    /// clients have to prove their addresses. Default: no limit.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// How long a client may read nothing of an answer, or send nothing of a request that it has begun.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(60_000))]
    stall: Duration,
    /// How long a connection may be open without a request.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(120_000))]
    idle: Duration,
    /// How long answers may take after the signal to stop.
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
    fn schemes(&self) -> Result<Schemes, Failure> {
        let avoidance = self.scheme.avoidance()?;
        let logged = |scheme: Scheme| self.scheme.logged(scheme, &avoidance);
        let mut networks: Vec<(IpNet, Scheme)> = Vec::new();
        for text in &self.startup_for {
            let wrong = || refused("startup-for", text, "use NETWORK=SPEC such as 192.0.2.0/24=blitzstart");
            let (network, spec) = text.split_once('=').ok_or_else(wrong)?;
            let scheme = quic::scheme("startup-for", spec, &avoidance)?;
            networks.push((network.parse().map_err(|_| wrong())?, logged(scheme)));
        }
        let mut shares: Vec<(f64, Scheme)> = Vec::new();
        for text in &self.ab {
            let wrong = || refused("ab", text, "use SHARE=SPEC such as 0.1=jump-start, with a share above 0 to 1");
            let (share, spec) = text.split_once('=').ok_or_else(wrong)?;
            let share = share.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(wrong)?;
            shares.push((share, logged(quic::scheme("ab", spec, &avoidance)?)));
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
        let fall_back = FallBack {
            limit: self.launch_loss_limit,
            launches: self.launch_window,
            recovery: std_time(self.launch_recovery),
        };
        let listener = logged(self.scheme.scheme()?);
        let plain = logged(Scheme::plain(&avoidance).map_err(|error| Failure::Other(error.to_string()))?);
        Ok(Schemes { networks, shares, kill_file: self.kill_file.clone(), fall_back, ..Schemes::new(listener, plain) })
    }

    fn limits(&self) -> Result<Limits, Failure> {
        if !(100_000..=4_000_000_000).contains(&self.connection_memory.get()) {
            return Err(refused("connection-memory", self.connection_memory, "use 100KB to 4GB"));
        }
        let times = [
            ("handshake-time", self.handshake_time),
            ("stall", self.stall),
            ("idle", self.idle),
            ("launch-recovery", self.launch_recovery),
        ];
        if let Some((option, time)) = times.into_iter().find(|(_, time)| *time < Duration::from_millis(1)) {
            return Err(refused(option, time, "use 1ms or more"));
        }
        let numbers = [("max-connections", Some(self.max_connections)), ("max-per-prefix", self.max_per_prefix)];
        if let Some((option, _)) = numbers.into_iter().find(|(_, number)| *number == Some(0)) {
            return Err(refused(option, 0, "use 1 or more"));
        }
        if let Some(rate) = self.max_rate.filter(|rate| !(*rate > 0.0 && *rate <= 1e9)) {
            return Err(refused("max-rate", rate, "use a number above 0 to 1e9"));
        }
        if let Some(memory) = self.memory.filter(|memory| memory.get() < 1_000_000) {
            return Err(refused("memory", memory, "use 1MB or more"));
        }
        Ok(Limits {
            connections: self.max_connections,
            of_prefix: Some(self.max_per_prefix.unwrap_or(self.max_connections - self.max_connections / 10)),
            rate: self.max_rate,
            handshakes: self.max_handshakes,
            handshake: std_time(self.handshake_time),
            connection_memory: self.connection_memory,
            memory: self.memory,
            stall: std_time(self.stall),
            idle: std_time(self.idle),
            grace: std_time(self.grace),
        })
    }

    fn qlog_limit(&self) -> Result<Bytes, Failure> {
        if self.qlog_limit.get() < 1_000_000 {
            return Err(refused("qlog-limit", self.qlog_limit, "use 1MB or more"));
        }
        Ok(self.qlog_limit)
    }

    fn deadline(&self) -> Result<Option<std::time::Duration>, Failure> {
        let allowed = Duration::from_millis(1)..=Duration::from_millis(86_400_000);
        match self.deadline {
            Some(deadline) if !allowed.contains(&deadline) => Err(refused("deadline", deadline, "use 1ms to 86400s")),
            deadline => Ok(deadline.map(std_time)),
        }
    }

    fn config(&self) -> Result<server::Config, Failure> {
        let (limits, schemes) = (self.limits()?, self.schemes()?);
        Ok(server::Config {
            listen: self.listen,
            root: self.root.clone(),
            hint_policy: self.hint_policy.clone(),
            path_store: self.path_store.clone(),
            path_state_key: self.path_state_key.clone(),
            oracle: self.oracle.clone(),
            interface: self.interface.as_ref().map(|(choice, _)| choice.clone()),
            interfaces: interface::Config {
                speeds: self.interface.iter().filter_map(told_speed).collect(),
                ..interface::Config::default()
            },
            deadline: self.deadline()?,
            early_data: self.early_data,
            scone: self.scone,
            quick_start: self.quick_start,
            qlog: self.qlog.clone(),
            qlog_limit: self.qlog_limit()?,
            qlog_networks: self.qlog_networks,
            metrics: self.metrics,
            limits,
            warnings: warnings(),
            ..server::Config::new(self.certificate.config(H3)?, schemes)
        })
    }
}

/// Reads --interface.
fn interface_choice(text: &str) -> Result<(InterfaceChoice, Option<Rate>), String> {
    match text.split_once('=') {
        None if text == "route" => Ok((InterfaceChoice::Route, None)),
        None => Ok((InterfaceChoice::Name(text.to_owned()), None)),
        Some(("route", _)) => Err("a rate is that of one interface; name it, as in eth0=1gbit".into()),
        Some((name, rate)) => {
            let rate: Rate = rate.parse().map_err(|error| format!("{error}"))?;
            if !(Rate::from_bits_per_sec(1)..=FASTEST).contains(&rate) {
                return Err(format!("no path is so fast, or so slow; allowed is a rate above 0 to {FASTEST}"));
            }
            Ok((InterfaceChoice::Name(name.to_owned()), Some(rate)))
        }
    }
}

/// What the operator says of an interface.
fn told_speed((choice, rate): &(InterfaceChoice, Option<Rate>)) -> Option<(String, Rate)> {
    match choice {
        InterfaceChoice::Name(name) => Some((name.clone(), (*rate)?)),
        InterfaceChoice::Route => None,
    }
}

/// The option that lets the server know it.
fn option_of(known: Known) -> &'static str {
    match known {
        Known::Hint => "--hint-policy",
        Known::Saved => "--path-store or --path-state-key",
        Known::Oracle => "--oracle",
        Known::Interface => "--interface",
        Known::Requested => "--deadline",
        Known::Approved => "--quick-start",
        Known::Concurrent => "several connections of a client",
        Known::Advised => "--scone",
        Known::Train => "--hint-policy",
    }
}

/// What is wrong with the source of it that was given, and what to give instead; `None` without one.
fn remedy(known: Known, lack: &Lack) -> Option<String> {
    Some(match (lack, known) {
        (Lack::Interface(name), _) => {
            format!(
                "--interface `{name}` does not tell its speed, as most virtual ones do not; name one that does, or say \
                 it, as in {name}=1gbit"
            )
        }
        (Lack::NoInterface, _) => {
            "--interface `route`: no interface tells its speed, or --listen is an address of this host alone; name one \
             that does"
                .into()
        }
        (Lack::NoHistory, _) => "--hint-policy goes by what the client's network has received, which --path-store \
                                 keeps; add that, or use cap:rate=50mbit"
            .into(),
        (Lack::NoLink, _) => "--hint-policy goes by the speed of this host's link, and no interface tells one, or \
                              --listen is an address of this host alone; use cap:rate=50mbit"
            .into(),
        (Lack::PathStore(problem), Known::Hint) => {
            format!("--hint-policy goes by --path-store {problem}; name another, or use cap:rate=50mbit")
        }
        (Lack::PathStore(problem), _) => format!("--path-store {problem}; name another, or use --path-state-key"),
        _ => return None,
    })
}

/// A server that cannot start mostly has a wrong option.
fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Root { root, cause } => refused("root", root.display(), &cause),
        ServerError::Qlog { folder, cause } => refused("qlog", folder.display(), &cause.to_string()),
        ServerError::PathStateKey { file, problem } => Failure::File { file, message: problem, text: None },
        ServerError::Listen { address, cause } => refused("listen", address, &cause.to_string()),
        ServerError::Metrics { address, cause } => refused("metrics", address, &cause.to_string()),
        ServerError::NoSource { ref lacks, .. } => {
            let without = lacks.iter().filter(|(_, lack)| *lack == Lack::NoSource);
            let mut options: Vec<_> = without.map(|(known, _)| option_of(*known)).collect();
            let mut told = HashSet::new();
            options.retain(|option| told.insert(*option));
            let mut ways: Vec<_> = lacks.iter().filter_map(|(known, lack)| remedy(*known, lack)).collect();
            if !options.is_empty() {
                ways.push(format!("use {}", options.join(" or ")));
            }
            Failure::Input(format!("{error}: {}", ways.join("; or ")))
        }
        ServerError::QuickStart(error) => Failure::Input(format!("--quick-start: {error}")),
        ServerError::Source(_) | ServerError::Request { .. } => Failure::Input(error.to_string()),
        other => Failure::Other(other.to_string()),
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let config = arguments.config()?;
    quic::raise_file_limit();
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::Other(format!("threads cannot be started: {error}")))?;
    let ended = runtime.block_on(async {
        let server = Server::start(config).await.map_err(failure)?;
        let address = server.address();
        let mut addresses = json!({ "listening": format!("https://{address}") });
        let mut text = format!("listening on https://{address}\n");
        if let Some(metrics) = server.metrics_address() {
            addresses["metrics"] = json!(format!("http://{metrics}/metrics"));
            text += &format!("metrics at http://{metrics}/metrics\n");
        }
        let (stop, again) =
            signals(&server).map_err(|error| Failure::Other(format!("signals cannot be received: {error}")))?;
        print(&if arguments.json { format!("{addresses}\n") } else { text })?;
        tokio::select! {
            () = server.run(stop) => {}
            () = again => note!("{}", "answers under way are cut off"),
        }
        Ok(ExitCode::SUCCESS)
    });
    // A thread that waits for a file or a store may take any time.
    runtime.shutdown_background();
    ended
}

/// The first of these completes with the first SIGINT or SIGTERM, the second with the second. Until the first signal
/// SIGUSR1 turns the kill switch on and off. All are caught as soon as this has returned.
fn signals(server: &Server) -> std::io::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let (mut first, mut second) = (Interruptions::caught()?, Interruptions::caught()?);
    let switched = switches(server)?;
    let stop = async move {
        tokio::select! {
            () = first.next() => {}
            () = switched => {}
        }
    };
    let again = async move {
        second.next().await;
        second.next().await;
    };
    Ok((stop, again))
}

/// What turns the kill switch with each SIGUSR1, and never completes.
#[cfg(unix)]
fn switches(server: &Server) -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut switch = signal(SignalKind::user_defined1())?;
    Ok(async move {
        loop {
            switch.recv().await;
            note!("the kill switch is {}", if server.toggle_kill_switch() { "on" } else { "off" });
        }
    })
}

/// Other systems have no such signal.
#[cfg(not(unix))]
fn switches(_: &Server) -> std::io::Result<impl Future<Output = ()>> {
    Ok(std::future::pending())
}
