//! The congestion avoidance that `flowstart serve` has written at the beginning of a file.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::recording;

/// The event stands behind the file's head, which is a few hundred bytes.
const BEGINNING: u64 = 64 * 1024;
/// Longest text that is read as one.
const LONGEST: usize = 200;

/// What a file of `flowstart serve --qlog` says of the congestion avoidance of its connection, as `--avoidance` takes
/// it; `None`: it says nothing, as the files of others, or cannot be read, which [`replay`](super::replay) refuses.
pub fn avoidance_of(path: &Path) -> Option<String> {
    let mut beginning = Vec::new();
    recording::open(path).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    written_in(&beginning)
}

fn written_in(beginning: &[u8]) -> Option<String> {
    // Records are separated by this byte (RFC 7464).
    let records =
        beginning.split(|byte| *byte == 0x1e).filter_map(|record| serde_json::from_slice::<Value>(record).ok());
    let connection = records.into_iter().find(|record| record["name"] == "flowstart:connection")?;
    let text = connection["data"]["avoidance"].as_str()?;
    (text.len() <= LONGEST).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_connections_event_says() {
        let file = |data: &str| {
            format!(
                "\u{1e}{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\"}}\n\
                 \u{1e}{{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{data}}}\n\
                 \u{1e}{{\"time\":0,\"name\":\"quic:packet_rec"
            )
        };
        let said = |data: &str| written_in(file(data).as_bytes());
        assert_eq!(said(r#"{"scheme":"x","avoidance":"cubic:beta=0.8"}"#).as_deref(), Some("cubic:beta=0.8"));
        assert_eq!(said(r#"{"scheme":"x"}"#), None);
        assert_eq!(said(r#"{"scheme":"x","avoidance":7}"#), None);
        assert_eq!(said(&format!(r#"{{"avoidance":"{}"}}"#, "x".repeat(LONGEST + 1))), None);
        assert_eq!(written_in(b"no qlog"), None);
    }
}
