//! What takes the kernel: loading, unloading, counts, events.

use flowstart_bpf::kernel::{self, Event, EventKind, KernelError, Status, Unloaded};
use flowstart_bpf::port::{Port, Ported};
use flowstart_core::units::Rate;
use serde_json::{Map, Value, json};

use super::{Continuation, Hints, Load};
use crate::command::relay::until_signal;
use crate::failure::Failure;
use crate::output::print;

fn failure(error: &KernelError) -> Failure {
    let told = format!("tcp: {error}");
    if error.is_input() { Failure::Input(told) } else { Failure::Other(told) }
}

pub(super) fn load(arguments: &Load, ported: &Ported) -> Result<(), Failure> {
    let continuation = match arguments.continuation {
        Continuation::Cubic => kernel::Continuation::Cubic,
        Continuation::Reno => kernel::Continuation::Reno,
    };
    let hints = arguments.hints.all()?;
    kernel::load(ported, continuation, &hints).map_err(|error| failure(&error))?;
    let Port { scheme, kernel_name, .. } = ported.port;
    if ported.uses_hints && hints.is_empty() {
        note!("note: without --hint {scheme} knows nothing of any destination");
    }
    print(&if arguments.form.json {
        format!("{}\n", json!({ "scheme": scheme, "kernel_name": kernel_name, "hints": hints.len() }))
    } else {
        format!(
            "loaded {scheme} as {kernel_name}; sysctl net.ipv4.tcp_congestion_control={kernel_name} makes it the default\n"
        )
    })
}

pub(super) fn hint(port: &'static Port, given: &Hints, json: bool) -> Result<(), Failure> {
    let hints = given.all()?;
    if hints.is_empty() {
        return Err(Failure::Input("tcp: there is no hint to give; use --hint or --path-store".into()));
    }
    kernel::give_hints(port, &hints).map_err(|error| failure(&error))?;
    let (scheme, number) = (port.scheme, hints.len());
    print(&if json {
        format!("{}\n", json!({ "scheme": scheme, "hints": number }))
    } else {
        format!("gave {scheme} {number} {}\n", if number == 1 { "hint" } else { "hints" })
    })
}

pub(super) fn unload(port: &'static Port, json: bool) -> Result<(), Failure> {
    let Unloaded { connections, in_use } = kernel::unload(port).map_err(|error| failure(&error))?;
    let scheme = port.scheme;
    print(&if json {
        format!("{}\n", json!({ "scheme": scheme, "connections": connections, "in_use": in_use }))
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

pub(super) fn status(json: bool) -> Result<(), Failure> {
    let loaded = kernel::status().map_err(|error| failure(&error))?;
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

pub(super) fn follow() -> Result<(), Failure> {
    let loaded = kernel::status().map_err(|error| failure(&error))?;
    if loaded.is_empty() {
        return Err(Failure::Input("tcp: nothing is loaded that could be followed".into()));
    }
    let stop = until_signal()?;
    let mut told = Ok(());
    let followed = kernel::follow(&stop, |event| {
        told = print(&format!("{}\n", line(event)));
        told.is_ok()
    });
    told?;
    followed.map_err(|error| failure(&error))
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
