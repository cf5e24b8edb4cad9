//! What a router has counted, in words and as JSON.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_emu::lateness::{Late, TOO_LATE};
use flowstart_emu::router::{Direction, Told};
use serde_json::{Value, json};

use super::units::micros;
use crate::command::relay::{
    quick_start_as_json, quick_start_in_words, scone_as_json, seen_scone_in_words, unsent_in_words,
};

/// What happened until a time.
pub(super) type Moment = (Timestamp, Told);

pub(super) fn mbit_per_second(now: &Direction, before: &Direction, passed: Duration) -> f64 {
    let bytes = now.link.departed_bytes - before.link.departed_bytes;
    bytes as f64 * 8.0 / 1000.0 / passed.as_millis_f64()
}

pub(super) fn lately_in_words(now: &Direction, before: &Direction, passed: Duration) -> String {
    let (packets, bytes) = now.waiting;
    let (dropped, marked) = (now.link.dropped - before.link.dropped, now.marked - before.marked);
    let rate = mbit_per_second(now, before, passed);
    let sojourn = now.sojourn.as_millis_f64();
    format!("{rate:.2} Mbit/s, {packets} wait ({} bytes, sojourn {sojourn:.1} ms), {dropped} dropped", bytes.get())
        + &format!(", {marked} marked")
}

pub(super) fn lately_as_json(now: &Direction, before: &Direction, passed: Duration) -> Value {
    let (packets, bytes) = now.waiting;
    json!({
        "mbit_per_s": mbit_per_second(now, before, passed),
        "waiting": packets,
        "waiting_bytes": bytes.get(),
        "sojourn_ms": now.sojourn.as_millis_f64(),
        "dropped": now.link.dropped - before.link.dropped,
        "marked": now.marked - before.marked,
    })
}

pub(in crate::command) fn in_words(told: &Told) -> String {
    let of = |name: &str, direction: &Direction| {
        let (link, marked) = (&direction.link, direction.marked);
        let (departed, dropped, lost, waiting) = (link.departed, link.dropped, link.lost, link.max_waiting);
        let text = format!(
            "{name}: {departed} packets, {dropped} dropped, {marked} marked, {lost} lost, at most {waiting} waited"
        );
        let others = [
            (direction.missed, "lost before the link, for this host was too slow"),
            (direction.foreign, "neither IPv4 nor IPv6"),
            (direction.malformed, "malformed"),
            (direction.expired, "at the end of their TTL"),
            (direction.time_exceeded, "of those told by ICMP"),
            (direction.without_address, "not, as the port has no address"),
        ];
        let others = others.into_iter().filter(|(number, _)| *number > 0);
        others.fold(text, |text, (number, what)| format!("{text}, {number} {what}"))
    };
    let latest = told.latest.as_millis_f64();
    let [median, p99] = [told.late.median, told.late.p99].map(micros);
    format!("{}; {}; at most {latest:.1} ms late", of("to clients", &told.down), of("back", &told.up))
        + &format!(", half of the packets {median:.0} us or less, 99 of 100 {p99:.0} us or less")
        + &match told.late.too_late {
            0 => String::new(),
            late => format!(", {late} of {} more than {:.1} ms", told.late.count, TOO_LATE.as_millis_f64()),
        }
        + &seen_scone_in_words(&told.scone)
        + &quick_start_in_words(&told.quick_start)
        + &unsent_in_words(told.refused, told.unsent)
        + &match told.unlogged {
            0 => String::new(),
            unlogged => format!("; {unlogged} packets are missing in the packet log"),
        }
}

/// Says so if what was seen may be this host's doing.
pub(in crate::command) fn warn_of_slow_host(late: &Late) {
    if late.shows_host() {
        tell!(
            "warning: {} of {} packets left more than {:.1} ms after their time, so this machine may show in place of \
             the link; `chrt --fifo 10` before the command or a lower rate may help",
            late.too_late,
            late.count,
            TOO_LATE.as_millis_f64()
        );
    }
}

pub(in crate::command) fn as_json(told: &Told) -> Value {
    let of = |direction: &Direction| {
        let Direction { link, marked, foreign, malformed, segmented, expired, waiting, sojourn, .. } = direction;
        json!({
            "waiting": waiting.0,
            "waiting_bytes": waiting.1.get(),
            "sojourn_ms": sojourn.as_millis_f64(),
            "departed": link.departed,
            "departed_bytes": link.departed_bytes,
            "dropped": link.dropped,
            "marked": marked,
            "lost": link.lost,
            "missed": direction.missed,
            "foreign": foreign,
            "malformed": malformed,
            "segmented": segmented,
            "expired": expired,
            "time_exceeded": direction.time_exceeded,
            "without_address": direction.without_address,
            "max_waiting": link.max_waiting,
            "max_delay_ms": link.max_delay.as_millis_f64(),
        })
    };
    json!({
        "down": of(&told.down),
        "up": of(&told.up),
        "quick_start": quick_start_as_json(&told.quick_start),
        "scone": scone_as_json(&told.scone),
        "refused": told.refused,
        "unsent": told.unsent,
        "max_late_ms": told.latest.as_millis_f64(),
        "left_late_us": {
            "p50": micros(told.late.median),
            "p99": micros(told.late.p99),
            "max": micros(told.late.largest),
        },
        "left": told.late.count,
        "left_too_late": told.late.too_late,
        "unlogged": told.unlogged,
    })
}
