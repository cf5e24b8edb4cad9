//! `flowstart tcp`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use flowstart_bpf::hint::Hint;
use flowstart_bpf::port::{self, HintUse, PORTS, Port, Ported};
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::Duration;
use flowstart_lab::spec;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::print;
use crate::quic::socket_address;

#[cfg(all(target_os = "linux", feature = "tcp"))]
mod kernel;
#[cfg(all(target_os = "linux", feature = "tcp"))]
mod learn;
#[cfg(all(target_os = "linux", feature = "tcp"))]
mod metrics;
mod path_store;
#[cfg(all(target_os = "linux", feature = "tcp"))]
mod qlog;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart tcp load jump-start:threshold=64KB
  sysctl net.ipv4.tcp_congestion_control=fs_jump_start
  flowstart tcp status --follow --qlog starts.sqlog
  flowstart tcp status --metrics 127.0.0.1:9102
  sysctl net.ipv4.tcp_congestion_control=cubic   (or what it was)
  flowstart tcp unload jump-start
  flowstart tcp load blitzstart --hint 192.0.2.0/24=25mbit,40ms
  flowstart tcp hint blitzstart --hint 192.0.2.0/24=50mbit,40ms
  flowstart tcp hint blitzstart --remove 192.0.2.0/24
  flowstart tcp learn --path-store paths.redb
  flowstart tcp load quick-start:rate=100mbit --interface eth0
  flowstart tcp load quick-start:rate=20mbit --interface eth0 --asking clients   (uploads)
  flowstart tcp list

A loaded scheme is a congestion control of the kernel (eBPF), under the name that `list` shows. Programs need no \
change: they get it as the default of their network namespace (the sysctl above), by a route (`ip route change ... \
congctl NAME`), or ask for it (TCP_CONGESTION). Until startup ends the scheme decides on the window; then the \
kernel's own CUBIC or Reno does. Recovery from losses is the kernel's throughout. A scheme that lacks its input \
leaves the start to CUBIC, and the counts of `status` say so.

With quick-start a server's SYN/ACKs ask the routers of the path for a rate (RFC 4782), or with `--asking clients` \
the SYNs of clients, and hosts where it is loaded answer. A server answers if it began to listen after that. \
Programs see all IPv4 packets and sockets of the host for that (control groups of version 2), and the packets that \
leave by the named interfaces (TCX, Linux 6.6).

A scheme stays loaded until `unload`, held by files below /sys/fs/bpf/flowstart. Connections that have it when it is \
unloaded go on with it until they end. Only root may choose it for a socket, unless \
net.ipv4.tcp_allowed_congestion_control names it, or it is the default of the first network namespace; other \
namespaces can make it their default only then.

It takes Linux 6.4 or later with BTF (6.18 is tested), root (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN; CAP_SYS_ADMIN to \
mount the BPF filesystem), and a build with `--features tcp`.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Load a scheme into the kernel.
    Load(Load),
    /// Give a loaded scheme more hints, or newer ones, or take some away. Without any it shows those that it has.
    Hint(More),
    /// Save what connections of loaded schemes measure of their paths, and make hints of it for the next ones, until a
    /// signal comes.
    Learn(Learn),
    /// Take a scheme out of the kernel.
    Unload(Named),
    /// The schemes that TCP of Linux can have.
    List(Form),
    /// What is loaded, and what its connections have done.
    Status(Status),
}

#[derive(Debug, Args)]
struct Load {
    /// The scheme: NAME or NAME:key=value,... (tcp list; list schemes NAME shows the keys).
    scheme: String,
    /// The kernel's congestion avoidance after startup.
    #[arg(long, value_enum, default_value_t = Continuation::Cubic)]
    continuation: Continuation,
    #[command(flatten)]
    hints: Hints,
    /// quick-start: the interfaces of this network namespace by which hosts ask, over IPv4, up to 16. Without any they
    /// do not ask. They always answer.
    #[arg(long = "interface", value_name = "NAME", num_args = 1..)]
    interfaces: Vec<String>,
    /// Who asks by them: servers with their SYN/ACK, for what they send, or clients with their SYN, for uploads.
    #[arg(long, value_enum, default_value_t = Asking::Servers, requires = "interfaces")]
    asking: Asking,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
struct Hints {
    /// What is known of the paths to a network or an address: PREFIX=RATE or PREFIX=RATE,RTT, such as
    /// 192.0.2.0/24=25mbit,40ms. The longest prefix counts.
    #[arg(long = "hint", value_name = "HINT", num_args = 1..)]
    hints: Vec<Hint>,
    /// A path store, as of serve --path-store and oracle: its prefixes become hints, with the age they have. A --hint
    /// for the same prefix counts instead.
    #[arg(long, value_name = "FILE")]
    path_store: Option<PathBuf>,
    /// How long hints are believed, 1s to 31536000s. Default: one hour for those of a path store, and always for
    /// others.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    hint_lifetime: Option<Duration>,
}

#[derive(Debug, Args)]
struct More {
    /// The scheme.
    scheme: String,
    #[command(flatten)]
    hints: Hints,
    /// Networks and addresses whose hints are withdrawn, before others are given.
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    remove: Vec<Network>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart tcp load careful-resume
  flowstart tcp learn --path-store paths.redb
  flowstart tcp load blitzstart --path-store paths.redb   (after a restart)

When a connection of a loaded scheme ends that began meanwhile, and to which 100 KB were acknowledged, its highest \
delivery rate and its smallest RTT become an observation of its /24 or /48, as those of serve --path-store, and the \
prefix's hint in all loaded schemes that use hints, for an hour. It takes the place of another hint for the same \
prefix. Of connections to one prefix that end within a second the last one counts. Schemes that are loaded later get \
the hints, too. One command learns at a time; serve and oracle can use the file meanwhile. A peer can lie about what \
has arrived, and so raise the hint of its neighbours.")]
struct Learn {
    /// The path store, which is made if there is none.
    #[arg(long, value_name = "FILE")]
    path_store: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// A network or an address.
#[derive(Clone, Copy, Debug)]
struct Network(#[cfg_attr(not(all(target_os = "linux", feature = "tcp")), allow(dead_code))] IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse::<IpNet>(), text.parse::<IpAddr>()) {
            (Ok(network), _) => Ok(Self(network.trunc())),
            (_, Ok(address)) => Ok(Self(address.into())),
            _ => Err("this is no address and no network, such as 192.0.2.0/24".into()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Continuation {
    Cubic,
    Reno,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Asking {
    Servers,
    Clients,
    Both,
}

#[derive(Debug, Args)]
struct Named {
    /// The scheme.
    scheme: String,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Args)]
struct Form {
    /// JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Status {
    /// Tell launches and ends of startups as they happen, a line of JSON each, until a signal comes.
    #[arg(long)]
    follow: bool,
    /// Write them into this new file as qlog, with the events of `serve --qlog`, up to 1 GB.
    #[arg(long, value_name = "FILE", requires = "follow")]
    qlog: Option<PathBuf>,
    /// Answer /metrics (Prometheus) over HTTP/1.1 here until a signal comes, with the counts of all loaded schemes.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address, conflicts_with = "json")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    form: Form,
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    let allowed = Duration::from_millis(1000)..=Duration::from_millis(365 * 86_400_000);
    if allowed.contains(&time) { Ok(time) } else { Err("allowed is 1s to 31536000s".into()) }
}

impl Load {
    /// The scheme as the kernel gets it.
    fn ported(&self) -> Result<Ported, Failure> {
        let base = StartupConfig::SlowStart(slow_start::Config::default());
        let config = spec::scheme("SCHEME", &self.scheme, &base).map_err(|error| positional(&error))?.value;
        let ported = Ported::new(&config).map_err(|error| Failure::Input(error.to_string()))?;
        if ported.hint_use == HintUse::None {
            self.hints.refuse(&format!("{} uses no hints with these parameters", ported.port.scheme))?;
        }
        if let Some(interface) = self.interfaces.first().filter(|_| !ported.port.asks_routers) {
            return Err(Failure::Input(format!("--interface `{interface}`: {} asks no routers", ported.port.scheme)));
        }
        Ok(ported)
    }
}

impl More {
    /// Whether nothing is given or taken.
    fn changes_nothing(&self) -> bool {
        let Hints { hints, path_store, hint_lifetime } = &self.hints;
        hints.is_empty() && path_store.is_none() && hint_lifetime.is_none() && self.remove.is_empty()
    }
}

impl Hints {
    /// Refuses any.
    fn refuse(&self, why: &str) -> Result<(), Failure> {
        let hint = self.hints.first().map(|hint| format!("--hint `{hint}`"));
        let store = self.path_store.as_ref().map(|file| format!("--path-store `{}`", file.display()));
        let lifetime = self.hint_lifetime.map(|lifetime| format!("--hint-lifetime `{lifetime}`"));
        hint.or(store).or(lifetime).map_or(Ok(()), |option| Err(Failure::Input(format!("{option}: {why}"))))
    }

    /// Those of the path store, and then those of the command line.
    #[cfg_attr(not(all(target_os = "linux", feature = "tcp")), allow(dead_code, reason = "nothing is loaded there"))]
    fn all(&self) -> Result<Vec<Hint>, Failure> {
        if let Some(lifetime) = self.hint_lifetime.filter(|_| self.hints.is_empty() && self.path_store.is_none()) {
            let told = format!("--hint-lifetime `{lifetime}`: there is no hint; use --hint or --path-store");
            return Err(Failure::Input(told));
        }
        let mut hints = self.path_store.as_deref().map_or(Ok(Vec::new()), path_store::hints_of)?;
        hints.extend(&self.hints);
        for hint in &mut hints {
            hint.lifetime = self.hint_lifetime.or(hint.lifetime);
        }
        Ok(hints)
    }
}

/// The scheme is no option.
fn positional(error: &spec::InputError) -> Failure {
    Failure::Input(error.to_string())
}

/// The scheme that a user names without parameters.
fn named(scheme: &str) -> Result<&'static Port, Failure> {
    port::find(scheme).map_err(|error| Failure::Input(error.to_string()))
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.action {
        Action::List(form) => list(form.json)?,
        Action::Load(load) => kernel::load(load, &load.ported()?)?,
        Action::Hint(more) => {
            let port = named(&more.scheme)?;
            if !port.takes_hints {
                return Err(Failure::Input(format!("tcp: {} uses no hints", port.scheme)));
            }
            if more.changes_nothing() { kernel::hints(port, more.form.json)? } else { kernel::hint(port, more)? }
        }
        Action::Learn(Learn { path_store, form }) => learn::learn(path_store, form.json)?,
        Action::Unload(arguments) => kernel::unload(named(&arguments.scheme)?, arguments.form.json)?,
        Action::Status(Status { follow, qlog, metrics, .. }) if *follow || metrics.is_some() => {
            kernel::watch(*follow, qlog.as_deref(), *metrics)?;
        }
        Action::Status(Status { form, .. }) => kernel::status(form.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<(), Failure> {
    let lines = PORTS.iter().map(|Port { scheme, kernel_name, needs, takes_hints, asks_routers }| {
        if json {
            json!({
                "scheme": scheme,
                "kernel_name": kernel_name,
                "needs": needs,
                "takes_hints": takes_hints,
                "asks_routers": asks_routers,
            })
        } else {
            let needs = needs.map_or(String::new(), |needs| format!("; needs {needs}"));
            Value::String(format!("{scheme}: {kernel_name}{needs}"))
        }
    });
    if json {
        return print(&format!("{}\n", Value::Array(lines.collect())));
    }
    let lines: Vec<_> = lines.filter_map(|line| Some(line.as_str()?.to_owned())).collect();
    print(&format!("{}\n", lines.join("\n")))
}

/// What takes the programs, in a build without them.
#[cfg(not(all(target_os = "linux", feature = "tcp")))]
mod kernel {
    use std::net::SocketAddr;
    use std::path::Path;

    use flowstart_bpf::port::{Port, Ported};

    use super::{Failure, Load, More};

    pub(super) fn missing() -> Failure {
        let told = "tcp: this build has no programs for the kernel. On Linux with clang, libelf and zlib \
                    (`scripts/setup kernel`) `cargo build --release -p flowstart --features tcp` builds them";
        Failure::Input(told.into())
    }

    pub(super) fn load(load: &Load, _: &Ported) -> Result<(), Failure> {
        let Load { continuation: _, form: _, .. } = load;
        Err(missing())
    }

    pub(super) fn hint(_: &Port, more: &More) -> Result<(), Failure> {
        let More { form: _, .. } = more;
        Err(missing())
    }

    pub(super) fn hints(_: &Port, _: bool) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn unload(_: &Port, _: bool) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn status(_: bool) -> Result<(), Failure> {
        Err(missing())
    }

    pub(super) fn watch(_: bool, _: Option<&Path>, _: Option<SocketAddr>) -> Result<(), Failure> {
        Err(missing())
    }
}

/// As above.
#[cfg(not(all(target_os = "linux", feature = "tcp")))]
mod learn {
    use std::path::Path;

    use super::{Failure, kernel};

    pub(super) fn learn(_: &Path, _: bool) -> Result<(), Failure> {
        Err(kernel::missing())
    }
}
