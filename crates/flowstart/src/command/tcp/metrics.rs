//! What loaded schemes count, for Prometheus: under the names of `flowstart serve` where they count the same.

use flowstart_bpf::kernel::{self, Status, Statuses};

use crate::metrics_listener::{END, metric};

/// The counts of the schemes that are loaded now, and whether the kernel tells them.
pub(super) fn text() -> String {
    let told = kernel::status().map(|Statuses { loaded, .. }| loaded).ok();
    written(told.as_deref())
}

fn written(told: Option<&[Status]>) -> String {
    let loaded = told.unwrap_or_default();
    let of = |count: fn(&Status) -> u64| -> Vec<(String, u64)> {
        loaded.iter().map(|status| (format!("scheme=\"{}\"", status.port.scheme), count(status))).collect()
    };
    let exits: Vec<(String, u64)> = loaded
        .iter()
        .flat_map(|status| status.counts.exits.iter().map(move |(reason, count)| (status.port.scheme, reason, *count)))
        .map(|(scheme, reason, count)| (format!("scheme=\"{scheme}\",reason=\"{reason}\""), count))
        .collect();
    let mut text = String::new();
    let is_told = [(String::new(), u64::from(told.is_some()))];
    metric(&mut text, "flowstart_kernel_readable", "gauge", "Whether the kernel tells what is loaded (1)", &is_told);
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
