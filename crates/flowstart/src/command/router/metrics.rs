//! What a router counts, for Prometheus.

use std::fmt::Display;
use std::net::SocketAddr;

use flowstart_emu::lateness::TOO_LATE;
use flowstart_emu::router::{Direction, Told};

use super::latest::Latest;
use super::units::seconds;
use crate::failure::Failure;
use crate::metrics_listener;

/// Answers at this address as long as the process lives; the address, with its port.
pub(super) fn listen(address: SocketAddr, latest: &Latest) -> Result<SocketAddr, Failure> {
    let latest = latest.clone();
    metrics_listener::listen(address, move || text(&latest.get().1))
}

/// What is counted of either direction: a name, what it is, and the count.
type OfDirection = (&'static str, &'static str, fn(&Direction) -> u64);

const COUNTERS: [OfDirection; 10] = [
    ("departed_packets", "Packets that left the link's transmitter", |one| one.link.departed),
    ("departed_bytes", "Bytes of these packets", |one| one.link.departed_bytes),
    ("dropped_packets", "Packets that the queue or the policer dropped", |one| one.link.dropped),
    ("lost_packets", "Packets that the link lost", |one| one.link.lost),
    ("missed_packets", "Packets lost before the link by a host that was too slow", |one| one.missed),
    ("marked_packets", "Packets that got a mark of ECN", |one| one.marked),
    ("expired_packets", "Packets dropped at the end of their TTL", |one| one.expired),
    ("time_exceeded_messages", "Messages of ICMP about these", |one| one.time_exceeded),
    ("foreign_packets", "Packets dropped as neither IPv4 nor IPv6", |one| one.foreign),
    ("malformed_packets", "Packets dropped as malformed", |one| one.malformed),
];

const GAUGES: [OfDirection; 2] = [
    ("waiting_packets", "Packets that wait", |one| one.waiting.0 as u64),
    ("waiting_bytes", "Bytes that wait", |one| one.waiting.1.get()),
];

/// The counts in the format of metrics.
fn text(told: &Told) -> String {
    let Told { quick_start: options, scone, late, .. } = told;
    let mut text = String::new();
    for (kind, all) in [("counter", &COUNTERS[..]), ("gauge", &GAUGES)] {
        for (name, help, count) in all {
            let of = |name: &str, direction| (format!("direction=\"{name}\""), count(direction));
            metric(&mut text, name, kind, help, &[of("down", &told.down), of("up", &told.up)]);
        }
    }
    let sojourn = [("down", &told.down), ("up", &told.up)]
        .map(|(name, direction)| (format!("direction=\"{name}\""), seconds(direction.sojourn)));
    metric(&mut text, "sojourn_seconds", "gauge", "How long the packet that left last was here", &sojourn);
    let mut counter = |name, help, label: &str, values: &[(&str, u64)]| {
        let values: Vec<_> = values.iter().map(|(value, count)| (format!("{label}=\"{value}\""), *count)).collect();
        metric(&mut text, name, "counter", help, &values);
    };
    let kinds = [("request", options.requests), ("report", options.reports), ("malformed", options.malformed)];
    counter("quick_start_options", "Options of Quick-Start", "kind", &kinds);
    let actions = [
        ("approved", options.approved()),
        ("reduced", options.reduced),
        ("denied", options.denied),
        ("removed", options.removed),
        ("expired", options.expired),
    ];
    counter("quick_start_actions", "What became of these options", "action", &actions);
    let signals = [("passed", scone.seen - scone.lowered), ("lowered", scone.lowered), ("malformed", scone.malformed)];
    counter("scone_packets", "SCONE packets", "result", &signals);
    let others = [("refused", told.refused), ("unsent", told.unsent)];
    counter("lost_here_packets", "Packets beyond the memory, and that the system did not take", "cause", &others);
    metric(
        &mut text,
        "unlogged_packets",
        "counter",
        "Packets that the log leaves out",
        &[(String::new(), told.unlogged)],
    );
    let too_late = [(String::new(), late.too_late)];
    let help = format!("Packets that left more than {:.1} ms after their time", TOO_LATE.as_millis_f64());
    metric(&mut text, "too_late_packets", "counter", &help, &too_late);
    let quantiles = [("0.5", late.median), ("0.99", late.p99), ("1", late.largest)];
    let quantiles = quantiles.map(|(share, late)| (format!("quantile=\"{share}\""), seconds(late)));
    metric(&mut text, "left_late_seconds", "gauge", "How late packets left, since the begin", &quantiles);
    text + metrics_listener::END
}

/// Writes a metric, with its labels before each value.
fn metric(text: &mut String, name: &str, kind: &str, help: &str, values: &[(String, impl Display)]) {
    metrics_listener::metric(text, &format!("flowstart_router_{name}"), kind, help, values);
}
