//! What `flowstart get` says of what it has read of the path.

use flowstart_core::units::Rate;
use flowstart_serve::client::{QuickStartSeen, SconeSeen};
use serde_json::{Value, json};

/// What was read of SCONE packets.
pub(super) fn scone_as_json(SconeSeen { packets, malformed, advised }: SconeSeen) -> Value {
    json!({ "packets": packets, "malformed": malformed, "advised_bps": advised.map(Rate::bits_per_sec) })
}

/// As [`scone_as_json`].
pub(super) fn scone_in_words(SconeSeen { packets, malformed, advised }: SconeSeen) -> String {
    let advice = advised.map_or_else(|| "the path advises nothing".into(), |rate| format!("the path advises {rate}"));
    let damaged = if malformed > 0 { format!(", {malformed} malformed") } else { String::new() };
    format!("{advice} ({packets} SCONE packets{damaged})")
}

/// What was read of the request to the routers.
pub(super) fn quick_start_as_json(QuickStartSeen { arrived, malformed }: QuickStartSeen) -> Value {
    json!({ "arrived_bps": arrived.map(Rate::bits_per_sec), "malformed": malformed })
}

/// As [`quick_start_as_json`].
pub(super) fn quick_start_in_words(QuickStartSeen { arrived, malformed }: QuickStartSeen) -> String {
    let what = match arrived {
        None => "no Quick-Start request arrived".into(),
        Some(Rate::ZERO) => "a router refused the Quick-Start request".into(),
        Some(rate) => format!("a Quick-Start request for {rate} arrived"),
    };
    if malformed > 0 { format!("{what}, {malformed} malformed options") } else { what }
}
