//! `flowstart relay`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use flowstart_emu::quick_start::Options;
use flowstart_emu::relay::{Config, Relay, RelayError, Told};
use flowstart_emu::scone::Signals;
use flowstart_sim::link::LinkCounters;
use serde_json::{Value, json};

use super::real_link::real_link;
use crate::failure::Failure;
use crate::interruption::ends_when_insisted;
use crate::output::print;
use crate::quic::socket_address;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart relay --link dsl-fast --listen 127.0.0.1:4434 --to 127.0.0.1:4433
  flowstart relay --link rate=20mbit,rtt=80ms,buffer=1bdp,loss=0.1% \\
    --aqm fq-codel --listen 0.0.0.0:4434 --to 192.0.2.7:443

Clients send to the address of --listen as if it were the server. What the server sends crosses the link with its AQM, \
what clients send crosses the way back (up_rate, up_buffer). Both are the links of compare and run, in real time, \
without privileges; `flowstart list links` and `list link-options` say what there is. Datagrams count with the headers \
of IP and UDP. Hosts are the real ones, so keys about hosts and hints are refused. ECN is not marked: an AQM drops. A \
client that was silent for two minutes is forgotten; when it comes back, it looks to the server as if it had moved. \
With scone=RATE the link is also an element that advises this rate in SCONE packets to clients. With \
quick_start=target, or another of these keys, the link to clients has a router that approves rates in the option of \
Quick-Start (RFC 4782), as in the lab; this takes Linux and CAP_NET_RAW. SIGINT and SIGTERM end the relay, \
which then says what it counted.")]
pub(crate) struct Arguments {
    /// The link: a preset, a preset with keys, or keys (list links, list link-options).
    #[arg(long)]
    link: String,
    /// The queue discipline of the link to clients (list aqms).
    #[arg(long, default_value = "taildrop")]
    aqm: String,
    /// Where clients send, ADDRESS:PORT; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    listen: SocketAddr,
    /// The server, ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = socket_address)]
    to: SocketAddr,
    /// Seed of loss, jitter and of the queue's random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The address and the counts as JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn config(&self) -> Result<Config, Failure> {
        let (link, aqm) = real_link("relay", &self.link, None, &self.aqm)?;
        let (down, up) = link.hop(&aqm.config());
        let down_advice = link.advising;
        let router = link.routers.map(|routers| (routers.at(0), routers.bandwidth.unwrap_or(link.rate)));
        Ok(Config { down, up, down_advice, router, seed: self.seed, ..Config::new(self.listen, self.to) })
    }
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    run(
        &arguments.config()?,
        arguments.json,
        |told| if arguments.json { as_json(told).to_string() } else { in_words(told) },
    )
}

/// Relays until a signal ends it, and then says what it counted: JSON to stdout, words to stderr.
pub(super) fn run(config: &Config, json: bool, say: impl FnOnce(&Told) -> String) -> Result<ExitCode, Failure> {
    let mut relay = Relay::bind(config).map_err(|error| failure(&error))?;
    let stop = until_signal()?;
    let address = relay.address();
    print(&if json {
        format!("{}\n", json!({ "listening": address.to_string(), "to": config.to.to_string() }))
    } else {
        format!("relaying from {address} to {}\n", config.to)
    })?;
    let ended = relay.run(&stop).map_err(|error| failure(&error));
    let said = say(&relay.told());
    if json {
        print(&format!("{said}\n"))?;
    } else {
        tell!("{said}");
    }
    ended.map(|()| ExitCode::SUCCESS)
}

/// What becomes true when a signal says that the work is to end.
pub(super) fn until_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    ends_when_insisted();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::Other(format!("signals cannot be received: {error}")))?;
    }
    Ok(stop)
}

fn failure(error: &RelayError) -> Failure {
    match error {
        RelayError::Options(_) => Failure::Input(error.to_string()),
        _ => Failure::Other(error.to_string()),
    }
}

fn in_words(told: &Told) -> String {
    let of = |name: &str, counters: &LinkCounters| {
        let LinkCounters { departed, dropped, lost, max_waiting, .. } = counters;
        format!("{name}: {departed} datagrams, {dropped} dropped, {lost} lost, at most {max_waiting} waited")
    };
    let latest = told.latest.as_millis_f64();
    format!("{}; {}; at most {latest:.1} ms late", of("to clients", &told.down), of("back", &told.up))
        + &seen_scone_in_words(&told.scone)
        + &quick_start_in_words(&told.quick_start)
        + &unsent_in_words(told.refused, told.unsent)
}

/// What a Quick-Start router did, if anything.
pub(super) fn quick_start_in_words(seen: &Options) -> String {
    let Options { requests, reduced, denied, reports, removed, malformed, expired } = seen;
    if requests + reports + removed + malformed + expired == 0 {
        return String::new();
    }
    format!(
        "; {requests} Quick-Start requests, {reduced} reduced, {denied} denied, {reports} reports, {removed} options \
         removed, {malformed} malformed, {expired} at the end of their TTL"
    )
}

/// What an element did, if anything.
pub(super) fn seen_scone_in_words(signals: &Signals) -> String {
    if signals.seen + signals.malformed == 0 {
        return String::new();
    }
    format!("; {}", scone_in_words(signals))
}

/// What an element did.
pub(super) fn scone_in_words(Signals { seen, lowered, malformed }: &Signals) -> String {
    format!("{seen} SCONE packets, {lowered} lowered, {malformed} malformed")
}

/// What did not leave, if anything.
pub(super) fn unsent_in_words(refused: u64, unsent: u64) -> String {
    if refused + unsent == 0 {
        return String::new();
    }
    format!("; {refused} refused, {unsent} not taken by the system")
}

/// As [`scone_in_words`].
pub(super) fn scone_as_json(Signals { seen, lowered, malformed }: &Signals) -> Value {
    json!({ "seen": seen, "lowered": lowered, "malformed": malformed })
}

/// As [`quick_start_in_words`].
pub(super) fn quick_start_as_json(
    Options { requests, reduced, denied, reports, removed, malformed, expired }: &Options,
) -> Value {
    json!({
        "requests": requests,
        "reduced": reduced,
        "denied": denied,
        "reports": reports,
        "removed": removed,
        "malformed": malformed,
        "expired": expired,
    })
}

fn as_json(told: &Told) -> Value {
    let of = |counters: &LinkCounters| {
        json!({
            "departed": counters.departed,
            "departed_bytes": counters.departed_bytes,
            "dropped": counters.dropped,
            "lost": counters.lost,
            "max_waiting": counters.max_waiting,
        })
    };
    json!({
        "down": of(&told.down),
        "up": of(&told.up),
        "scone": scone_as_json(&told.scone),
        "quick_start": quick_start_as_json(&told.quick_start),
        "refused": told.refused,
        "unsent": told.unsent,
        "max_late_ms": told.latest.as_millis_f64(),
    })
}
