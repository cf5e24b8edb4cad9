//! The set-up drawing shows what stands between sender and receiver. The table of links is below it.

use crate::Link;
use crate::group::distinct;
use crate::number::{UNDEFINED, finite};
use serde::Serialize;

/// What `setup.html` needs. The same labels serve the wide and the narrow drawing.
#[derive(Serialize)]
pub(super) struct Setup {
    /// One sentence for those who cannot see the drawing.
    aria: String,
    /// Below «sender».
    flows: String,
    /// Whether there is more than one measured flow.
    several: bool,
    /// Whether all measured flows of the experiment have the same scheme.
    one_scheme: bool,
    /// Below «other flows». `None` without any.
    others: Option<String>,
    /// Below «queue».
    aqm: String,
    buffer: String,
    /// The same beside the queue of the narrow drawing.
    queue_lines: Vec<String>,
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

/// Characters that fit below a box of the drawing.
const LABEL: usize = 24;
/// Characters that fit beside the queue of the narrow drawing.
const NARROW_LABEL: usize = 19;

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
    let narrow = |text: &str| shorten(text, NARROW_LABEL);
    let buffer = if first.buffer.is_empty() { UNDEFINED } else { &first.buffer };
    let buffer = each(format!("buffer {buffer}"), "buffer");
    let mut queue_lines = vec![narrow(&aqm)];
    match buffer.split_once(" (") {
        // `buffer 208 packets (50 ms)` takes two lines.
        Some((size, rest)) if buffer.chars().count() > NARROW_LABEL => {
            queue_lines.extend([narrow(size), narrow(&format!("({rest}"))]);
        }
        _ => queue_lines.push(narrow(&buffer)),
    }
    Some(Setup {
        aria,
        flows: shorten(&flows, LABEL),
        several: measured > 1,
        one_scheme: schemes.len() == 1,
        others: others_label.map(|label| shorten(&label, LABEL)),
        aqm: shorten(&aqm, LABEL),
        buffer: shorten(&buffer, LABEL + 7),
        queue_lines,
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
    match link.rate_mbit {
        Some(rate) if rate >= 1000.0 => format!("{}\u{a0}Gbit/s", short(rate / 1000.0)),
        Some(rate) if rate < 1.0 => format!("{}\u{a0}kbit/s", short(rate * 1000.0)),
        Some(rate) if rate.is_finite() => format!("{}\u{a0}Mbit/s", short(rate)),
        _ => "rate from a trace".to_owned(),
    }
}

fn milliseconds(value: Option<f64>) -> String {
    finite(value).map_or_else(|| UNDEFINED.to_owned(), |v| format!("{}\u{a0}ms", short(v)))
}

/// A configured value: `25`, `2.5`, without noise digits.
fn short(value: f64) -> String {
    format!("{}", (value * 100.0).round() / 100.0)
}

/// A label that is cut at `most` characters.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}
