//! What takes the kernel: loading, unloading, counts, events.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flowstart_bpf::hint::Hint;
use flowstart_bpf::kernel::{self, Event, EventKind, KernelError, Status, Statuses, Unloaded};
use flowstart_bpf::port::{HintUse, Port, Ported};
use flowstart_core::time::Duration as Span;
use flowstart_core::units::Rate;
use serde_json::{Map, Value, json};

use super::qlog::Log;
use super::{Asking, Continuation, Load, More, metrics};
use crate::command::relay::until_signal;
use crate::failure::Failure;
use crate::metrics_listener;
use crate::output::{print, wrapped};

/// How often somebody looks whether a signal has come.
const LOOKS: Duration = Duration::from_millis(50);

pub(super) fn failure(error: &KernelError) -> Failure {
    let told = format!("tcp: {error}");
    if error.is_input() { Failure::Input(told) } else { Failure::Other(told) }
}

pub(super) fn load(arguments: &Load, ported: &Ported) -> Result<(), Failure> {
    let continuation = match arguments.continuation {
        Continuation::Cubic => kernel::Continuation::Cubic,
        Continuation::Reno => kernel::Continuation::Reno,
    };
    let hints = arguments.hints.all()?;
    let asking = match arguments.asking {
        Asking::Servers => kernel::Asking::Servers,
        Asking::Clients => kernel::Asking::Clients,
        Asking::Both => kernel::Asking::Both,
    };
    kernel::load(ported, continuation, &hints, (&arguments.interfaces, asking)).map_err(|error| failure(&error))?;
    let Port { scheme, kernel_name, asks_routers, .. } = ported.port;
    if *asks_routers && arguments.interfaces.is_empty() {
        note!("without --interface nobody on this host asks routers");
    }
    if ported.hint_use != HintUse::None && hints.is_empty() {
        note!("without --hint {scheme} knows nothing of any destination");
    }
    print(&if arguments.form.json {
        format!("{}\n", json!({ "scheme": scheme, "kernel_name": kernel_name, "hints": hints.len() }))
    } else if let [hint, ..] = &hints[..] {
        // Who says a network means connections to it.
        let network = hint.destinations;
        wrapped(&format!(
            "loaded {scheme} as {kernel_name}; a route to {network} with `congctl {kernel_name}` gives it to connections to \
             that network, sysctl net.ipv4.tcp_congestion_control={kernel_name} to all new ones"
        ))
    } else {
        wrapped(&format!(
            "loaded {scheme} as {kernel_name}; sysctl net.ipv4.tcp_congestion_control={kernel_name} makes it the default"
        ))
    })
}

pub(super) fn hint(port: &'static Port, more: &More) -> Result<(), Failure> {
    let hints = more.hints.all()?;
    if hints.is_empty() && more.remove.is_empty() {
        return Err(Failure::Input("tcp: there is no hint to give; use --hint or --path-store".into()));
    }
    let destinations: Vec<_> = more.remove.iter().map(|network| network.0).collect();
    let removed = kernel::change_hints(port, &destinations, &hints).map_err(|error| failure(&error))?;
    let (scheme, number) = (port.scheme, hints.len());
    let counted = |number: usize| format!("{number} {}", if number == 1 { "hint" } else { "hints" });
    print(&if more.form.json {
        format!("{}\n", json!({ "scheme": scheme, "hints": number, "removed": removed }))
    } else if destinations.is_empty() {
        format!("gave {scheme} {}\n", counted(number))
    } else if hints.is_empty() {
        format!("took {} from {scheme}\n", counted(removed))
    } else {
        format!("took {} from {scheme} and gave it {}\n", counted(removed), counted(number))
    })
}

pub(super) fn hints(port: &'static Port, json: bool) -> Result<(), Failure> {
    let hints = kernel::hints(port).map_err(|error| failure(&error))?;
    if json {
        return print(&format!(
            "{}\n",
            json!({ "scheme": port.scheme, "hints": hints.len(), "known": hints.iter().map(known).collect::<Value>() })
        ));
    }
    if hints.is_empty() {
        return print(&format!("{} has no hints\n", port.scheme));
    }
    let line = |hint: &Hint| {
        let left = match hint.lifetime {
            None => String::new(),
            Some(_) if hint.has_expired() => ", expired".to_owned(),
            Some(lifetime) => format!(", for {:.0} s more", seconds(lifetime) - seconds(hint.age)),
        };
        format!("{hint}, {:.0} s old{left}\n", seconds(hint.age))
    };
    print(&hints.iter().map(line).collect::<String>())
}

fn seconds(time: Span) -> f64 {
    time.as_millis_f64() / 1e3
}

fn known(hint: &Hint) -> Value {
    json!({
        "destinations": hint.destinations.to_string(),
        "rate_bps": hint.rate.bits_per_sec(),
        "rtt_ms": hint.rtt.map(Span::as_millis_f64),
        "age_s": seconds(hint.age),
        "expired": hint.has_expired(),
        "lifetime_s": hint.lifetime.map(seconds),
    })
}

pub(super) fn unload(port: &'static Port, json: bool) -> Result<(), Failure> {
    let unloaded = kernel::unload(port).map_err(|error| failure(&error))?;
    let Unloaded { connections, in_use, was_remains } = unloaded;
    let scheme = port.scheme;
    print(&if json {
        let loaded = !was_remains;
        format!("{}\n", json!({ "scheme": scheme, "loaded": loaded, "connections": connections, "in_use": in_use }))
    } else if was_remains {
        format!("{scheme} was not loaded; removed what a load that did not end had left\n")
    } else {
        let left = match (connections, in_use) {
            (0, false) => String::new(),
            (0, true) => {
                "; sockets that listen with it, or network namespaces whose default it is, still keep it".into()
            }
            (1, _) => "; 1 connection goes on with it until it ends".into(),
            (open, _) => format!("; {open} connections go on with it until they end"),
        };
        format!("unloaded {scheme}{left}\n")
    })
}

/// Loaded schemes; what is in the way of others goes to the standard error.
pub(super) fn loaded() -> Result<Vec<Status>, Failure> {
    let Statuses { loaded, remains, failed } = kernel::status().map_err(|error| failure(&error))?;
    for port in remains {
        let scheme = port.scheme;
        tell!("warning: {scheme} is not loaded; a load that did not end has left files, which unload and load remove");
    }
    for error in failed {
        tell!("warning: {error}");
    }
    Ok(loaded)
}

pub(super) fn status(json: bool) -> Result<(), Failure> {
    let loaded = loaded()?;
    if json {
        return print(&format!("{}\n", loaded.iter().map(as_json).collect::<Value>()));
    }
    if loaded.is_empty() {
        return print("nothing is loaded\n");
    }
    print(&loaded.iter().map(in_words).collect::<String>())
}

fn as_json(status: &Status) -> Value {
    let Status { port, counts, hints } = status;
    let exits: Map<_, _> = counts.exits.iter().map(|(reason, count)| ((*reason).to_owned(), json!(count))).collect();
    json!({
        "scheme": port.scheme,
        "kernel_name": port.kernel_name,
        "connections": counts.started,
        "open": counts.started.saturating_sub(counts.ended),
        "launched": counts.launched,
        "fell_back": counts.fell_back,
        "exits": exits,
        "hints": hints,
    })
}

fn in_words(status: &Status) -> String {
    let Status { port, counts, hints } = status;
    let open = counts.started.saturating_sub(counts.ended);
    let exits: Vec<_> = counts.exits.iter().map(|(reason, count)| format!("{count} by {reason}")).collect();
    let exits = if exits.is_empty() { "none".into() } else { exits.join(", ") };
    let hints = if port.takes_hints { format!("; hints: {hints}") } else { String::new() };
    let (scheme, name) = (port.scheme, port.kernel_name);
    let (started, launched, fell_back) = (counts.started, counts.launched, counts.fell_back);
    format!(
        "{scheme} ({name}): {started} connections, {open} of them open; {launched} launched, {fell_back} without its \
         input or need; ended startups: {exits}{hints}\n"
    )
}

/// Tells events, or answers with counts, until a signal comes.
pub(super) fn watch(follow: bool, qlog: Option<&Path>, address: Option<SocketAddr>) -> Result<(), Failure> {
    if loaded()?.is_empty() {
        return Err(Failure::Input("tcp: nothing is loaded that could be followed".into()));
    }
    let stop = until_signal()?;
    if let Some(address) = address {
        let address = metrics_listener::listen(address, metrics::text)?;
        // Standard output is for events where there are any.
        let told = format!("metrics at http://{address}/metrics\n");
        if follow { tell!("{}", told.trim_end()) } else { print(&told)? }
    }
    while !follow && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOKS);
    }
    if !follow {
        return Ok(());
    }
    let mut log = qlog.map(Log::create).transpose()?;
    let mut told = Ok(());
    let followed = kernel::follow(&stop, |event| {
        told = print(&format!("{}\n", line(event)));
        if let Some(log) = log.as_mut().filter(|_| told.is_ok()) {
            told = log.write(event);
        }
        told.is_ok()
    });
    told?;
    if followed.is_err() {
        log.into_iter().for_each(Log::remove_without_events);
    }
    let lost = followed.map_err(|error| failure(&error))?;
    if lost > 0 {
        tell!("warning: {lost} more events came faster than they were taken and are lost");
    }
    Ok(())
}

fn line(event: &Event) -> Value {
    let Event { scheme, time, kind, source, destination, cwnd, segment, ssthresh, srtt_us, pacing_rate } = event;
    let (kind, reason) = match kind {
        EventKind::Launch => ("launch", None),
        EventKind::Fallback => ("fallback", None),
        EventKind::Exit(reason) => ("exit", Some(reason)),
    };
    json!({
        "event": kind,
        "scheme": scheme,
        "seconds": time.as_nanos() as f64 / 1e9,
        "source": source.to_string(),
        "destination": destination.to_string(),
        "reason": reason,
        "cwnd_packets": cwnd,
        "segment_bytes": segment,
        "ssthresh_packets": ssthresh,
        "rtt_ms": f64::from(*srtt_us) / 1000.0,
        "pacing_mbit": pacing_rate.map(Rate::as_mbit),
    })
}
