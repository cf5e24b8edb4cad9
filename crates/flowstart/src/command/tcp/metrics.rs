//! What loaded schemes count, for Prometheus: under the names of `flowstart serve` where they count the same.

use flowstart_bpf::kernel::{self, Status, Statuses};

use crate::metrics_listener::{END, metric};

/// The counts of the schemes that are loaded now. If the kernel does not tell them, there are none.
pub(super) fn text() -> String {
    written(&kernel::status().map_or(Vec::new(), |Statuses { loaded, .. }| loaded))
}

fn written(loaded: &[Status]) -> String {
    let of = |count: fn(&Status) -> u64| -> Vec<(String, u64)> {
        loaded.iter().map(|status| (format!("scheme=\"{}\"", status.port.scheme), count(status))).collect()
    };
    let exits: Vec<(String, u64)> = loaded
        .iter()
        .flat_map(|status| status.counts.exits.iter().map(move |(reason, count)| (status.port.scheme, reason, *count)))
        .map(|(scheme, reason, count)| (format!("scheme=\"{scheme}\",reason=\"{reason}\""), count))
        .collect();
    let mut text = String::new();
    let open = of(|status| status.counts.started.saturating_sub(status.counts.ended));
    metric(&mut text, "flowstart_connections_active", "gauge", "Connections now", &open);
    metric(&mut text, "flowstart_connections", "counter", "Connections that began", &of(|one| one.counts.started));
    metric(&mut text, "flowstart_launches", "counter", "Launches by startup scheme", &of(|one| one.counts.launched));
    let help = "Connections without the scheme's input or without need, which start with CUBIC";
    metric(&mut text, "flowstart_launches_left_out", "counter", help, &of(|one| one.counts.fell_back));
    metric(&mut text, "flowstart_startup_exits", "counter", "Ends of startup by scheme and reason", &exits);
    metric(&mut text, "flowstart_destination_hints", "gauge", "Hints by destination", &of(|one| one.hints as u64));
    text + END
}
