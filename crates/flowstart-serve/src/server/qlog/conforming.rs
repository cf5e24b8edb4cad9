//! Records of noq in the form of the schema; the module above says what deviates.

use flowstart_quic::qlog::SCHEMA;
use serde_json::{Value, json};

/// The events of QUIC that noq writes.
pub(super) const QUIC: &str = "urn:ietf:params:qlog:events:quic-12";
/// The media type of the file (main schema, section 11.2).
const FORMAT: &str = "application/qlog+json-seq";
/// Default shift of acknowledgement delays in bits (RFC 9000, section 18.2), which noq uses.
pub(super) const ACK_DELAY_EXPONENT: u32 = 3;
/// Stands before every JSON text (RFC 7464).
const RECORD_SEPARATOR: &[u8] = b"\x1e";

/// A JSON text as a record.
pub(super) fn record_of(text: &Value) -> Vec<u8> {
    [RECORD_SEPARATOR, text.to_string().as_bytes(), b"\n"].concat()
}

/// The JSON text of a record.
fn text_of(record: &[u8]) -> &[u8] {
    record.strip_prefix(RECORD_SEPARATOR).unwrap_or(record)
}

/// The header as the main schema wants it. The clock is monotonic, so its epoch is unknown (section 7.1); times count
/// from the first packet.
pub(super) fn conforming_header(record: &[u8]) -> Vec<u8> {
    let Ok(mut header) = serde_json::from_slice::<Value>(text_of(record)) else { return record.to_owned() };
    if let Some(trace) = header.get_mut("trace").and_then(Value::as_object_mut) {
        trace.insert("event_schemas".into(), json!([QUIC, SCHEMA]));
        if let Some(fields) = trace.get_mut("common_fields").and_then(Value::as_object_mut) {
            fields.insert("reference_time".into(), json!({ "clock_type": "monotonic", "epoch": "unknown" }));
        }
    }
    if let Some(format) = header.get_mut("serialization_format") {
        *format = json!(FORMAT);
    }
    record_of(&header)
}

/// An event in the form of the schema; `None` if it needs no change. `peer_exponent` comes from the peer's
/// announcement.
pub(super) fn conforming(record: &[u8], peer_exponent: &mut u32) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text_of(record)).ok()?;
    // Most events have none of them, and are not worth reading.
    if !["\"pacing_rate\"", "\"ack_delay\"", "\"ack_delay_exponent\""].iter().any(|field| text.contains(field)) {
        return None;
    }
    let mut event: Value = serde_json::from_str(text).ok()?;
    let received = event["name"] == "quic:packet_received";
    let data = event.get_mut("data")?;
    if data["initiator"] == "remote" {
        *peer_exponent = data["ack_delay_exponent"].as_u64().and_then(|bits| bits.try_into().ok())?;
        return None;
    }
    if let Some(rate) = data.get_mut("pacing_rate") {
        *rate = json!(rate.as_u64()?.saturating_mul(8));
    }
    let exponent = if received { *peer_exponent } else { ACK_DELAY_EXPONENT };
    for frame in data.get_mut("frames").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(delay) = frame.get_mut("ack_delay") {
            // The exponent is at most 20.
            *delay = json!(delay.as_f64()? * f64::from(1_u32 << exponent.min(20)) / 1e3);
        }
        for range in frame.get_mut("acked_ranges").and_then(Value::as_array_mut).into_iter().flatten() {
            let end = range.get_mut(1)?;
            *end = json!(end.as_u64()?.checked_sub(1)?);
        }
    }
    Some(record_of(&event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_noq_writes_otherwise_is_put_right() {
        let record = |event: Value| record_of(&event);
        let mut exponent = ACK_DELAY_EXPONENT;
        let announced =
            json!({ "name": "quic:parameters_set", "data": { "initiator": "remote", "ack_delay_exponent": 10 }});
        assert_eq!((conforming(&record(announced), &mut exponent), exponent), (None, 10));
        // 125 bytes are 1000 bits.
        let metrics = |rate| record(json!({ "name": "quic:recovery_metrics_updated", "data": { "pacing_rate": rate }}));
        assert_eq!(conforming(&metrics(125), &mut exponent), Some(metrics(1000)));
        let packet = |name: &str, delay: f64, ends: [u64; 2]| {
            let frame =
                json!({ "frame_type": "ack", "ack_delay": delay, "acked_ranges": [[0, ends[0]], [9, ends[1]]] });
            record(json!({ "name": name, "data": { "frames": [{ "frame_type": "ping" }, frame] }}))
        };
        // 25 x 2^10 us = 25.6 ms from the peer, 25 x 2^3 us = 0.2 ms to it; 0..1 and 9..12 are packets 0 and 9 to 11.
        for (name, delay) in [("quic:packet_received", 25.6), ("quic:packet_sent", 0.2)] {
            let mended = conforming(&packet(name, 25.0, [1, 12]), &mut exponent);
            assert_eq!(mended, Some(packet(name, delay, [0, 11])));
        }
        assert_eq!(conforming(&record(json!({ "name": "quic:packet_lost", "data": {} })), &mut exponent), None);
    }
}
