//! `flowstart oracle`.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::SystemTime;

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_sensing::oracle::{self, Capacity, ClientConfig, OracleClient, OracleError, Service};
use flowstart_sensing::path_store::embedded::{EmbeddedStore, Problem};
use flowstart_sensing::path_store::{Merge, Observation, PathStore, Prefixes, Retention, StoreError, UnixTime};
use ipnet::IpNet;
use serde::Serialize;
use serde_json::json;

use crate::attention::Waiting;
use crate::failure::{FAILED, Failure};
use crate::interruption::Interruptions;
use crate::output::{fitted, print};

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart oracle record --store paths.redb 192.0.2.7 --rate 25mbit \\
    --rtt 50ms --cwnd 70KB
  flowstart oracle show --store paths.redb
  flowstart oracle serve --store paths.redb --listen 127.0.0.1:8085
  flowstart oracle ask http://127.0.0.1:8085 192.0.2.99
  curl 'http://127.0.0.1:8085/capacity?address=192.0.2.99'

Several of these may use the same file at the same time. That nothing is known is an answer, too: null with \
--json, exit code 0. Exit code 1: an oracle that cannot be asked, a store that is in use or fails; 2: bad input.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Answer questions over HTTP from a path store until interrupted.
    Serve(Serve),
    /// Ask a running oracle what it knows of an address.
    Ask(Ask),
    /// Put the measurements of a connection into a path store.
    Record(Record),
    /// Show the content of a path store.
    Show(Show),
}

/// A path store and how it is read. All programs that use a store have to choose the same options.
#[derive(Debug, Args)]
struct StoreOptions {
    /// The path store's file.
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// How long an observation stays valid.
    #[arg(long, value_name = "TIME", default_value_t = Retention::default().lifetime)]
    lifetime: Duration,
    /// Bits of an IPv4 address that identify its path.
    #[arg(long, value_name = "BITS", default_value_t = Prefixes::default().ipv4_bits)]
    ipv4_bits: u8,
    /// Bits of an IPv6 address that identify its path.
    #[arg(long, value_name = "BITS", default_value_t = Prefixes::default().ipv6_bits)]
    ipv6_bits: u8,
    /// Networks that are known to be one path each, such as 198.51.100.0/22.
    #[arg(long, num_args = 1.., value_name = "NETWORK", value_parser = network)]
    network: Vec<IpNet>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart oracle serve --store paths.redb
  flowstart oracle serve --store paths.redb --listen '[::1]:0' --json \\
    --ewma 0.25

Prints its address when it is ready. GET /capacity?address=ADDRESS gives JSON; POST /endpointprop is the endpoint \
property service of ALTO (RFC 7285, section 11.4) for the property priv:flowstart-capacity. There is no \
authentication: anyone who reaches the service learns how fast the paths to others are. SIGINT and SIGTERM end it.")]
struct Serve {
    #[command(flatten)]
    store: StoreOptions,
    /// Where to answer, ADDRESS:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8085", value_parser = socket_address)]
    listen: SocketAddr,
    #[command(flatten)]
    merge: MergeOptions,
    /// Print the address as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct MergeOptions {
    /// Average the observations, the later of two with this weight, above 0 to 1; without it only the latest counts.
    #[arg(long, value_name = "WEIGHT", value_parser = weight)]
    ewma: Option<f64>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart oracle ask http://127.0.0.1:8085 192.0.2.7
  flowstart oracle ask http://oracle.example:8085 2001:db8::1 \\
    --bound 200ms --json")]
struct Ask {
    /// Where the oracle is, `http://HOST` or `http://HOST:PORT`.
    url: String,
    /// The address to ask for.
    #[arg(value_parser = address)]
    address: IpAddr,
    /// The longest time to wait, name resolution included.
    #[arg(long, value_name = "TIME", default_value_t = Duration::from_millis(1000))]
    bound: Duration,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart oracle record --store paths.redb 192.0.2.7 --rate 25mbit \\
    --rtt 50ms --cwnd 70KB
  flowstart oracle record --store paths.redb 2001:db8::1 --rate 5mbit \\
    --rtt 10ms --cwnd 20KB --json

Creates the file if it does not exist.")]
struct Record {
    #[command(flatten)]
    store: StoreOptions,
    /// The peer of the connection.
    #[arg(value_parser = address)]
    address: IpAddr,
    /// The highest delivery rate, 1kbit to 1000gbit.
    #[arg(long)]
    rate: Rate,
    /// The smallest RTT, 1us to 100s.
    #[arg(long, value_name = "TIME")]
    rtt: Duration,
    /// Bytes that were delivered in one RTT, 1B to 1000GB.
    #[arg(long, value_name = "BYTES")]
    cwnd: Bytes,
    /// When it was measured, in seconds since 1970-01-01 UTC; default: the current time.
    #[arg(long, value_name = "SECONDS")]
    at: Option<u64>,
    /// Print the saved values as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart oracle show --store paths.redb
  flowstart oracle show --store paths.redb 192.0.2.7 --json

--json prints an array; for one address it prints the oracle's answer.")]
struct Show {
    #[command(flatten)]
    store: StoreOptions,
    /// Only the answer for this address.
    #[arg(value_parser = address)]
    address: Option<IpAddr>,
    #[command(flatten)]
    merge: MergeOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> Result<IpAddr, &'static str> {
    text.parse().map_err(|_| "use an IPv4 or IPv6 address such as 192.0.2.7 or 2001:db8::1")
}

fn socket_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "use an address and a port such as 127.0.0.1:8085 or [::1]:8085")
}

fn network(text: &str) -> Result<IpNet, &'static str> {
    text.parse().map_err(|_| "use an address and its bits such as 198.51.100.0/22 or 2001:db8::/32")
}

fn weight(text: &str) -> Result<f64, &'static str> {
    let weight = text.parse().ok().filter(|weight| *weight > 0.0 && *weight <= 1.0);
    weight.ok_or("use a number above 0 and at most 1")
}

/// A value out of range.
fn refused(option: &str, value: impl std::fmt::Display, allowed: &str) -> Failure {
    Failure::Input(format!("--{option} `{value}`: use {allowed}"))
}

impl MergeOptions {
    fn merge(&self) -> Merge {
        self.ewma.map_or(Merge::MostRecent, |weight| Merge::Ewma { weight })
    }
}

impl StoreOptions {
    fn prefixes(&self) -> Result<Prefixes, Failure> {
        for (option, bits, most) in [("ipv4-bits", self.ipv4_bits, 32), ("ipv6-bits", self.ipv6_bits, 128)] {
            if bits > most {
                return Err(refused(option, bits, &format!("0 to {most}")));
            }
        }
        Ok(Prefixes { ipv4_bits: self.ipv4_bits, ipv6_bits: self.ipv6_bits, networks: self.network.clone() })
    }

    fn retention(&self) -> Result<Retention, Failure> {
        if self.lifetime < Duration::from_millis(1000) {
            return Err(refused("lifetime", self.lifetime, "1s or more"));
        }
        Ok(Retention { lifetime: self.lifetime, ..Retention::default() })
    }

    /// The store in the file, which is created if it does not exist.
    fn open(&self) -> Result<EmbeddedStore, Failure> {
        open(&self.store, self.retention()?)
    }

    fn open_existing(&self) -> Result<EmbeddedStore, Failure> {
        open_existing(&self.store, self.retention()?)
    }
}

/// The store in a file, which is made if there is none.
pub(super) fn open(file: &Path, retention: Retention) -> Result<EmbeddedStore, Failure> {
    let (store, repaired) = EmbeddedStore::open_shared(file, retention).map_err(|problem| cannot_open(&problem))?;
    if let Some(repaired) = repaired {
        tell!("warning: {repaired}");
    }
    Ok(store)
}

/// The store in an existing file, because a wrong name would look like an empty store.
pub(super) fn open_existing(store: &Path, retention: Retention) -> Result<EmbeddedStore, Failure> {
    let refused = |message| Failure::File { file: store.to_path_buf(), message, text: None };
    match store.metadata() {
        Ok(file) if file.is_file() && file.len() == 0 => Err(refused("the file is empty".into())),
        Ok(_) => open(store, retention),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(refused("there is no such file; `flowstart oracle record` makes one".into()))
        }
        Err(error) => Err(refused(format!("the path store cannot be opened: {error}"))),
    }
}

/// A file in use is not the user's mistake; a file that is not a store is.
fn cannot_open(problem: &Problem) -> Failure {
    match problem {
        Problem::Locked { .. } | Problem::Database { .. } => Failure::Other(problem.to_string()),
        _ => Failure::Input(problem.to_string()),
    }
}

pub(super) fn store_failed(path: &Path, error: &StoreError) -> Failure {
    Failure::Other(format!("{}: {error}", path.display()))
}

pub(super) fn now() -> UnixTime {
    // A clock before 1970 counts as 1970.
    UnixTime::from_secs(SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()))
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Other(error.to_string()))?;
    print(&format!("{text}\n"))
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.action {
        Action::Serve(arguments) => serve(arguments),
        Action::Ask(arguments) => ask(arguments),
        Action::Record(arguments) => record(arguments),
        Action::Show(arguments) => show(arguments),
    }
}

fn serve(arguments: &Serve) -> Result<ExitCode, Failure> {
    let prefixes = arguments.store.prefixes()?;
    let store = Arc::new(arguments.store.open_existing()?);
    let unusable = |error: std::io::Error| Failure::Input(format!("--listen `{}`: {error}", arguments.listen));
    let listener = TcpListener::bind(arguments.listen).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    if !address.ip().is_loopback() {
        note!("whoever reaches {address} learns how fast the paths in the store are");
    }
    let service = Service { store, prefixes, merge: arguments.merge.merge(), clock: Box::new(now) };
    let json = arguments.json;
    let ready = move || {
        let url = format!("http://{address}");
        if json { print_json(&json!({ "listening": url })) } else { print(&format!("listening on {url}\n")) }
    };
    // A failure before the first question ends the service.
    let (failed, failure) = mpsc::channel();
    let shutdown = async move {
        let ended = match Interruptions::caught() {
            Ok(interruptions) => ready().map(|()| interruptions),
            Err(error) => Err(Failure::Other(format!("signals cannot be received: {error}"))),
        };
        match ended {
            Ok(mut interruptions) => interruptions.next().await,
            Err(failure) => drop(failed.send(failure)),
        }
    };
    oracle::serve(listener, service, shutdown).map_err(|error| Failure::Other(error.to_string()))?;
    failure.try_recv().map_or(Ok(ExitCode::SUCCESS), Err)
}

fn ask(arguments: &Ask) -> Result<ExitCode, Failure> {
    if !(Duration::from_millis(1)..=Duration::from_millis(600_000)).contains(&arguments.bound) {
        return Err(refused("bound", arguments.bound, "1ms to 600s"));
    }
    let config = ClientConfig { server: arguments.url.clone(), bound: arguments.bound, ..ClientConfig::default() };
    if config.validate().is_err() {
        return Err(Failure::Input(format!("URL `{}`: use http://HOST or http://HOST:PORT", arguments.url)));
    }
    let waiting = Waiting::begin(format!("asking {}", arguments.url));
    let known = OracleClient::new(config).capacity(arguments.address, now());
    drop(waiting);
    let known = known.map_err(|error| {
        let cause = match &error {
            OracleError::Unreachable(cause) => format!("cannot be asked: {cause}"),
            OracleError::Late(bound) => format!("cannot be asked: no answer within {bound}"),
            other => other.to_string(),
        };
        Failure::Other(format!("{}: {cause}", arguments.url))
    })?;
    tell(arguments.address, known.as_ref(), arguments.json)
}

/// Prints an answer for one address.
fn tell(address: IpAddr, known: Option<&Capacity>, json: bool) -> Result<ExitCode, Failure> {
    match known {
        known if json => print_json(&known)?,
        Some(known) => print(&format!("{}\n", table(std::slice::from_ref(known))))?,
        None => print(&format!("nothing is known of {address}\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn record(arguments: &Record) -> Result<ExitCode, Failure> {
    let (rate, min_rtt, cwnd) = (arguments.rate, arguments.rtt, arguments.cwnd);
    if !(1_000..=1_000_000_000_000).contains(&rate.bits_per_sec()) {
        return Err(refused("rate", rate, "1kbit to 1000gbit"));
    }
    if !(1_000..=100_000_000_000).contains(&min_rtt.as_nanos()) {
        return Err(refused("rtt", min_rtt, "1us to 100s"));
    }
    if !(1..=1_000_000_000_000).contains(&cwnd.get()) {
        return Err(refused("cwnd", cwnd, "1B to 1000GB"));
    }
    let now = now();
    let at = arguments.at.map_or(now, UnixTime::from_secs);
    // A store takes an observation's time for the present, and would forget observations far from it.
    if at > now || now.since(at) >= arguments.store.retention()?.lifetime {
        let allowed = format!("a time in the last {}; now is {}", arguments.store.lifetime, now.as_secs());
        return Err(refused("at", at.as_secs(), &allowed));
    }
    let prefix = arguments.store.prefixes()?.prefix_of(arguments.address);
    let observation = Observation { at, min_rtt, cwnd, rate };
    let path = &arguments.store.store;
    arguments.store.open()?.put(prefix, observation).map_err(|error| store_failed(path, &error))?;
    if arguments.json {
        print_json(&json!({ "prefix": prefix.network(), "observation": observation }))?;
    } else {
        print(&format!("saved for {prefix}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &Show) -> Result<ExitCode, Failure> {
    let (prefixes, merge) = (arguments.store.prefixes()?, arguments.merge.merge());
    let path = &arguments.store.store;
    let failed = |error: StoreError| store_failed(path, &error);
    let store = arguments.store.open_existing()?;
    let now = now();
    if let Some(address) = arguments.address {
        let prefix = prefixes.prefix_of(address);
        let record = store.get(prefix, now).map_err(failed)?;
        let known = record.and_then(|record| Capacity::of(prefix, &record, merge, now));
        return tell(address, known.as_ref(), arguments.json);
    }
    let mut known = Vec::new();
    let mut unreadable = false;
    for record in store.records(now).map_err(failed)? {
        match record {
            Ok((prefix, record)) => known.extend(Capacity::of(prefix, &record, merge, now)),
            Err(error) => {
                unreadable = true;
                tell!("error: {}: {error}", path.display());
            }
        }
    }
    if arguments.json {
        print_json(&known)?;
    } else if known.is_empty() {
        print("nothing is known of any address\n")?;
    } else {
        print(&format!("{}\n", fitted(table(&known))))?;
    }
    Ok(if unreadable { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn table(known: &[Capacity]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["prefix", "rate", "RTT (least)", "cwnd", "age", "observations"]);
    for one in known {
        table.add_row([
            one.prefix.to_string(),
            one.rate.to_string(),
            one.min_rtt.to_string(),
            one.cwnd.to_string(),
            format!("{} s", one.age_seconds),
            one.samples.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
