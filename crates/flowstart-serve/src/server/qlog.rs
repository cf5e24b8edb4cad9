//! A qlog file for every connection.
//!
//! noq writes the standard events (`quic:packet_sent` and the like). This module adds the decisions of the startup
//! scheme at their places among them, and `quic:congestion_state_updated`, whose trigger is the cause of startup's end.
//! `flowstart:connection` names the connection's scheme. `flowstart:answered` marks the complete acknowledgement of an
//! answer, with the time since the request. [`crate::analyze`] reads these. The names and fields are those of
//! `flowstart trace --format qlog`. After a connection has moved to another path, the times of these additions count
//! from the move.
//!
//! | Event of this program | Fields; all are required unless marked |
//! |---|---|
//! | `flowstart:connection` | `scheme` |
//! | `flowstart:launch` | `cwnd_bytes`, `sources`; optional: `pacing_rate_bps` |
//! | `flowstart:hint_capped` | `hinted` and `used`, in bit/s |
//! | `flowstart:advice_capped` | `advised`, in bit/s, and `congestion_window`, what is left |
//! | `flowstart:phase_entered` | `phase`, `trigger` |
//! | `flowstart:reduction_undone` | `congestion_window` in bytes |
//! | `flowstart:window_validated` | `congestion_window` and `ssthresh`, in bytes |
//! | `flowstart:window_shared` | others gave window or took it: `congestion_window`, in bytes |
//! | `flowstart:answered` | `payload` in bytes, `fct_ms` |
//!
//! Each of `sources` has a `name` and a `verdict` ([`flowstart_core::sources::Verdict`]); optional are `value` and, if
//! less counts, `believed`, in bit/s or as `cwnd_bytes` and `rtt_ms` of an earlier connection, `age_ms` and `reason`.
//!
//! The file follows draft-ietf-quic-qlog-main-schema-13 and draft-ietf-quic-qlog-quic-events-12. This module corrects
//! deviations of noq 1.4.0:
//!
//! - the header names no schemas, no media type and an empty clock;
//! - `pacing_rate` is in bytes per second, and has to be in bits per second;
//! - `ack_delay` is as encoded in the frame, and has to be in milliseconds;
//! - each of `acked_ranges` ends with the first packet that is not acknowledged, and has to end with the last that is.
//!
//! Two things stay unchanged: fields `path_id`, which the schema allows as extensions, and timers and frames of noq's
//! extensions of QUIC, whose names the schema does not define.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flowstart_core::event::Decision;
use flowstart_quic::Flow;
use flowstart_quic::qlog::decision_events;
use noq::{ConnectionId, QlogConfig, QlogFactory, Side};
use serde_json::{Value, json};

use crate::warnings::Warnings;

/// The events of QUIC that noq writes.
const QUIC: &str = "urn:ietf:params:qlog:events:quic-12";
/// The events of this program.
const FLOWSTART: &str = "urn:x-flowstart:qlog:events:flowstart";
/// Why QUIC's window collapses (RFC 9002, section 7.6).
const COLLAPSE: &str = "persistent_congestion";
/// The media type of the file (main schema, section 11.2).
const FORMAT: &str = "application/qlog+json-seq";
/// Default shift of acknowledgement delays in bits (RFC 9000, section 18.2), which noq uses.
const ACK_DELAY_EXPONENT: u32 = 3;
/// Stands before every JSON text (RFC 7464).
const RECORD_SEPARATOR: &[u8] = b"\x1e";

/// A folder of qlog files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    warnings: Warnings,
    /// Whether a failure to write was reported.
    told: Arc<AtomicBool>,
}

impl Folder {
    /// The folder, which is made where there is none.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub(crate) fn new(path: &Path, warnings: Warnings) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self { path: path.to_owned(), warnings, told: Arc::default() })
    }

    /// The factory of the file of one connection with this scheme.
    pub(crate) fn of(&self, flow: Arc<Flow>, scheme: &str, notes: Notes) -> Arc<dyn QlogFactory> {
        Arc::new(OfConnection { folder: self.clone(), flow, scheme: scheme.to_owned(), notes })
    }
}

struct OfConnection {
    folder: Folder,
    flow: Arc<Flow>,
    scheme: String,
    notes: Notes,
}

/// A connection's answers on their way into the file. Without a file nothing is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Option<Vec<Answered>>>>);

#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    payload: u64,
    taken: Duration,
}

impl Notes {
    /// An answer was acknowledged completely.
    pub(crate) fn answered(&self, payload: u64, taken: Duration) {
        if let Some(list) = &mut *self.list() {
            list.push(Answered { at: Instant::now(), payload, taken });
        }
    }

    /// A file was opened or closed.
    fn keep(&self, keep: bool) {
        *self.list() = keep.then(Vec::new);
    }

    fn take(&self) -> Vec<Answered> {
        self.list().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn list(&self) -> MutexGuard<'_, Option<Vec<Answered>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QlogFactory for OfConnection {
    fn for_connection(&self, side: Side, _: SocketAddr, initial: ConnectionId, now: Instant) -> Option<QlogConfig> {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let side = if side.is_server() { "server" } else { "client" };
        let path = self.folder.path.join(format!("{millis}-{initial}-{side}.sqlog"));
        let mut writer = Writer {
            out: None,
            path: path.clone(),
            warnings: self.folder.warnings.clone(),
            told: self.folder.told.clone(),
            flow: self.flow.clone(),
            scheme: self.scheme.clone(),
            notes: self.notes.clone(),
            start: now,
            record: Vec::new(),
            begun: false,
            state: None,
            peer_exponent: ACK_DELAY_EXPONENT,
        };
        match File::create(&path) {
            Ok(file) => {
                writer.out = Some(BufWriter::new(file));
                writer.notes.keep(true);
            }
            Err(error) => {
                writer.failed(&error);
                return None;
            }
        }
        let mut config = QlogConfig::new(Box::new(writer));
        config.start_time(now).title(Some(format!("flowstart {side}")));
        Some(config)
    }
}

/// Puts the scheme's decisions between the records that noq writes. A failure to write ends the file, not the
/// connection.
struct Writer<W: Write> {
    out: Option<W>,
    path: PathBuf,
    warnings: Warnings,
    told: Arc<AtomicBool>,
    flow: Arc<Flow>,
    scheme: String,
    notes: Notes,
    /// Time zero of the file.
    start: Instant,
    /// The record that is being written.
    record: Vec<u8>,
    /// The header was written.
    begun: bool,
    state: Option<&'static str>,
    /// By how many bits the peer's delays of acknowledgements are shifted.
    peer_exponent: u32,
}

impl<W: Write> Writer<W> {
    /// Reports only the first failure, because with a full disk every connection would report one.
    fn failed(&mut self, error: &io::Error) {
        self.out = None;
        self.notes.keep(false);
        if !self.told.swap(true, Ordering::Relaxed) {
            let path = self.path.display();
            self.warnings.tell(format_args!("{path}: qlog cannot be written: {error}; further failures are not told"));
        }
    }

    fn write_out(&mut self, bytes: &[u8]) {
        if let Some(Err(error)) = self.out.as_mut().map(|out| out.write_all(bytes)) {
            self.failed(&error);
        }
    }

    /// A record is complete.
    fn finish_record(&mut self) {
        let mut record = std::mem::take(&mut self.record);
        if self.begun {
            self.write_decisions();
            match conforming(&record, &mut self.peer_exponent) {
                Some(mended) => self.write_out(&mended),
                None => self.write_out(&record),
            }
        } else {
            self.begun = true;
            self.write_out(&conforming_header(&record));
            self.write_event(0.0, "flowstart:connection", &json!({ "scheme": self.scheme }));
            drop(self.flush());
            if self.out.is_none() {
                // Without these two records a file is useless. If it cannot be removed, it does no harm.
                drop(std::fs::remove_file(&self.path));
            }
        }
        record.clear();
        self.record = record;
    }

    fn write_decisions(&mut self) {
        while let Some((time, decision)) = self.flow.take_decision() {
            let launches = matches!(decision, Decision::Launched { .. });
            let sources = if launches { self.flow.findings() } else { Vec::new() };
            for (name, data) in decision_events(decision, &sources, &mut self.state, COLLAPSE) {
                self.write_event(time.as_nanos() as f64 / 1e6, name, &data);
            }
        }
        for Answered { at, payload, taken } in self.notes.take() {
            let data = json!({ "payload": payload, "fct_ms": taken.as_secs_f64() * 1e3 });
            let time = at.saturating_duration_since(self.start).as_secs_f64() * 1e3;
            self.write_event(time, "flowstart:answered", &data);
        }
    }

    /// An event at a time in milliseconds.
    fn write_event(&mut self, time: f64, name: &str, data: &Value) {
        self.write_out(&record_of(&json!({ "time": time, "name": name, "data": data })));
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.is_none() {
            return Ok(bytes.len());
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.record.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.finish_record();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(Err(error)) = self.out.as_mut().map(Write::flush) {
            self.failed(&error);
        }
        Ok(())
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        self.write_decisions();
        drop(self.flush());
    }
}

/// A JSON text as a record.
fn record_of(text: &Value) -> Vec<u8> {
    [RECORD_SEPARATOR, text.to_string().as_bytes(), b"\n"].concat()
}

/// The JSON text of a record.
fn text_of(record: &[u8]) -> &[u8] {
    record.strip_prefix(RECORD_SEPARATOR).unwrap_or(record)
}

/// The header as the main schema wants it. The clock is monotonic, so its epoch is unknown (section 7.1); times count
/// from the first packet.
fn conforming_header(record: &[u8]) -> Vec<u8> {
    let Ok(mut header) = serde_json::from_slice::<Value>(text_of(record)) else { return record.to_owned() };
    if let Some(trace) = header.get_mut("trace").and_then(Value::as_object_mut) {
        trace.insert("event_schemas".into(), json!([QUIC, FLOWSTART]));
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
fn conforming(record: &[u8], peer_exponent: &mut u32) -> Option<Vec<u8>> {
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
    use flowstart_core::path::PathKnowledge;

    struct FullDisk;

    impl Write for FullDisk {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer<W: Write>(out: W) -> Writer<W> {
        let flow = Flow::new(PathKnowledge::default());
        let told = Arc::new(AtomicBool::new(true));
        let notes = Notes::default();
        notes.keep(true);
        Writer {
            out: Some(out),
            path: PathBuf::new(),
            warnings: Warnings::default(),
            told,
            flow,
            scheme: "blitzstart".into(),
            notes,
            start: Instant::now(),
            record: Vec::new(),
            begun: false,
            state: None,
            peer_exponent: ACK_DELAY_EXPONENT,
        }
    }

    #[test]
    fn the_header_names_the_schemas_and_records_stay_whole() {
        let mut kept = Vec::new();
        let mut writer = writer(&mut kept);
        for piece in ["\u{1e}{\"trace\":{\"event_schemas\"", ":[]}}\n\u{1e}{\"a\"", ":1}", "\n"] {
            writer.write_all(piece.as_bytes()).unwrap();
        }
        writer.notes.answered(70_000, Duration::from_millis(20));
        drop(writer);
        let text = String::from_utf8(kept).unwrap();
        let records: Vec<_> = text.split('\u{1e}').skip(1).collect();
        let header: Value = serde_json::from_str(records[0]).unwrap();
        assert_eq!(header["trace"]["event_schemas"], json!([QUIC, FLOWSTART]));
        let named: Value = serde_json::from_str(records[1]).unwrap();
        assert_eq!(named["data"], json!({ "scheme": "blitzstart" }));
        assert_eq!(records[2], "{\"a\":1}\n");
        let answered: Value = serde_json::from_str(records[3]).unwrap();
        assert_eq!(answered["data"], json!({ "payload": 70_000, "fct_ms": 20.0 }));
    }

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

    #[test]
    fn a_full_disk_ends_the_file_and_nothing_else() {
        let mut writer = writer(FullDisk);
        writer.write_all(b"\x1e{}\n\x1e{}\n").unwrap();
        assert!(writer.out.is_none());
        writer.flush().unwrap();
        // Answers that no file will hold are not kept.
        writer.notes.answered(70_000, Duration::from_millis(20));
        assert!(writer.notes.take().is_empty());
    }
}
