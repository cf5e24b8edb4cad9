//! The set-up drawing shows what stands between sender and receiver. The table of links is below it.

use crate::baseline::{compared, differing};
use crate::group::{Axis, Names, distinct};
use crate::names::shortened;
use crate::number::{UNDEFINED, finite};
use crate::{Cell, Link};
use serde::Serialize;

/// What `setup.html` needs.
#[derive(Serialize)]
pub(super) struct Setup {
    /// One sentence for those who cannot see the drawing.
    aria: String,
    /// In the sender's box.
    flows: String,
    /// Whether there is more than one measured flow.
    several: bool,
    /// Whether all measured flows of the experiment have the same scheme.
    one_scheme: bool,
    /// In the box of other flows. `None` without any.
    others: Option<String>,
    /// In the queue's box.
    aqm: String,
    buffer: String,
    /// On the link.
    rate: String,
    rtt: String,
    /// Rows of the table of links.
    links: Vec<LinkRow>,
    /// Whether a column of other properties is needed.
    has_extra: bool,
}

#[derive(Serialize)]
struct LinkRow {
    name: String,
    rate: String,
    rtt: String,
    buffer: String,
    bdp: String,
    aqms: String,
    others: String,
    extra: String,
}

/// What changes, for the sentence above the drawing.
#[derive(Serialize)]
pub(super) struct Changing {
    /// From cell to cell.
    all: Vec<&'static str>,
    /// From a baseline to the cells that are compared with it.
    compared: Vec<&'static str>,
    /// Whether each comparison changes one of these alone.
    is_single: bool,
}

/// What changes from cell to cell, and in the comparisons.
pub(super) fn changing(cells: &[Cell], names: &Names) -> Changing {
    let mut all = names.varied();
    // Where the transport brings an avoidance, it says so. A scheme does only if it names one.
    let is_named = cells.iter().any(Cell::names_its_avoidance);
    if all.contains(&Axis::Transport) || all.contains(&Axis::Scheme) {
        all.retain(|axis| *axis != Axis::Avoidance);
    }
    let differing = |cell: &Cell, baseline: &Cell| {
        let own = is_named && cell.avoidance != baseline.avoidance;
        differing(cell, baseline).into_iter().chain(own.then_some(Axis::Avoidance)).collect::<Vec<_>>()
    };
    let compared: Vec<Vec<Axis>> =
        compared(cells).into_iter().filter_map(|(cell, baseline)| Some(differing(cell, baseline?))).collect();
    all.extend(compared.iter().any(|axes| axes.contains(&Axis::Avoidance)).then_some(Axis::Avoidance));
    let in_comparisons = all.iter().copied().filter(|axis| compared.iter().any(|axes| axes.contains(axis)));
    Changing {
        compared: in_comparisons.map(name).collect(),
        all: all.into_iter().map(name).collect(),
        is_single: compared.iter().all(|axes| axes.len() == 1),
    }
}

fn name(axis: Axis) -> &'static str {
    match axis {
        Axis::Link => "link",
        Axis::Competitor => "other flows",
        Axis::Arrival => "arrival",
        Axis::Transport => "transport",
        Axis::Size => "transfer size",
        Axis::Aqm => "AQM of the queue",
        Axis::Scheme => "startup scheme",
        Axis::Avoidance => "congestion avoidance",
    }
}

/// Longest text in a box.
const LABEL: usize = 60;

/// Describes the links. `schemes` are those that were tried on the measured flow.
pub(super) fn setup(links: &[Link], schemes: &[String]) -> Option<Setup> {
    let first = links.first()?;
    let mut others = distinct(links.iter().flat_map(|l| l.competitors.iter()));
    others.retain(|c| c != "none" && !c.is_empty());
    let aqms = distinct(links.iter().flat_map(|l| l.aqms.iter()));
    let several = links.len() > 1;
    let each = |value: String, what: &str| {
        if several { format!("{what}: see table") } else { value }
    };
    let measured = links.iter().map(|link| link.measured_flows).max().unwrap_or(1).max(1);
    let scheme = match schemes {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("{} schemes in turn", many.len()),
    };
    let flows = match (measured, schemes) {
        (1, _) => scheme,
        (_, [] | [_]) => format!("{measured} flows, {scheme}"),
        (_, many) => format!("{measured} flows, {} schemes", many.len()),
    };
    let others_label = match others.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("{} in turn", many.len())),
    };
    let aqm = match aqms.as_slice() {
        [] => "AQM: none".to_owned(),
        [one] => format!("AQM: {one}"),
        many => format!("{} AQMs in turn", many.len()),
    };
    let aria = format!(
        "Set-up: a sender{} shares one queue ({aqm}) in front of a bottleneck link that leads to the receiver; \
        acknowledgements return the other way.",
        if others.is_empty() { "" } else { " and other flows" }
    );
    let buffer = if first.buffer.is_empty() { UNDEFINED } else { &first.buffer };
    Some(Setup {
        aria,
        flows: shortened(&flows, LABEL),
        several: measured > 1,
        one_scheme: schemes.len() == 1,
        others: others_label.map(|label| shortened(&label, LABEL)),
        aqm: shortened(&aqm, LABEL),
        buffer: shortened(&each(format!("buffer {buffer}"), "buffer"), LABEL),
        rate: each(rate(first), "rate"),
        rtt: each(format!("RTT {} without queue", milliseconds(first.rtt_ms)), "RTT"),
        has_extra: links.iter().any(|l| !l.extra.is_empty()),
        links: links.iter().map(row).collect(),
    })
}

fn row(link: &Link) -> LinkRow {
    // Mbit/s * ms = kbit; / 8 = KB
    let bdp = link.rate_mbit.zip(link.rtt_ms).map(|(rate, rtt)| rate * rtt / 8.0);
    LinkRow {
        name: link.name.clone(),
        rate: rate(link),
        rtt: milliseconds(link.rtt_ms),
        buffer: link.buffer.clone(),
        bdp: finite(bdp).map_or_else(|| UNDEFINED.to_owned(), |v| format!("{}\u{a0}KB", short(v.round()))),
        aqms: link.aqms.join(", "),
        others: if link.competitors.is_empty() { "none".to_owned() } else { link.competitors.join(", ") },
        extra: link.extra.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("; "),
    }
}

fn rate(link: &Link) -> String {
    let mean = if link.rate_is_mean { "mean " } else { "" };
    let rate = match link.rate_mbit {
        Some(rate) if rate >= 1000.0 => format!("{}\u{a0}Gbit/s", short(rate / 1000.0)),
        Some(rate) if rate < 1.0 => format!("{}\u{a0}kbit/s", short(rate * 1000.0)),
        Some(rate) if rate.is_finite() => format!("{}\u{a0}Mbit/s", short(rate)),
        _ => return "rate from a trace".to_owned(),
    };
    format!("{mean}{rate}")
}

fn milliseconds(value: Option<f64>) -> String {
    finite(value).map_or_else(|| UNDEFINED.to_owned(), |v| format!("{}\u{a0}ms", short(v)))
}

/// A configured value: `25`, `2.5`, without noise digits.
fn short(value: f64) -> String {
    format!("{}", (value * 100.0).round() / 100.0)
}
