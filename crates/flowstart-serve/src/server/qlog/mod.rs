//! A qlog file for every connection whose client has proved its address, as long as there is room ([`folder`]).
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
//! | `flowstart:connection` | `scheme`; optional: `network`, the client's, /24 or /48 |
//! | `flowstart:launch` | `cwnd_bytes`, `sources`; `pacing_rate_bps`, unless it leaves at once |
//! | `flowstart:hint_capped` | `hinted` and `used`, in bit/s |
//! | `flowstart:advice_capped` | `advised`, in bit/s, and `congestion_window`, what is left |
//! | `flowstart:phase_entered` | `phase`, `trigger` |
//! | `flowstart:startup_exited` | `reason`, `congestion_window`; optional: `ssthresh`; in bytes |
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

mod conforming;
mod file;
mod folder;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flowstart_core::event::Decision;
use flowstart_quic::Flow;
use flowstart_quic::qlog::decision_events;
use noq::{ConnectionId, QlogConfig, QlogFactory, Side};
use serde_json::{Value, json};

use self::conforming::{ACK_DELAY_EXPONENT, conforming, conforming_header, record_of};
use self::file::LogFile;
pub(crate) use self::folder::Folder;

/// Why QUIC's window collapses (RFC 9002, section 7.6).
const COLLAPSE: &str = "persistent_congestion";

impl Folder {
    /// The factory of the file of one connection with this scheme and, if it is known, congestion avoidance, to this
    /// network if the file shall name it.
    pub(crate) fn of(
        &self,
        flow: Arc<Flow>,
        (scheme, avoidance): (&str, Option<&str>),
        network: Option<String>,
        notes: Notes,
    ) -> Arc<dyn QlogFactory> {
        let mut connection = json!({ "scheme": scheme });
        if let Some(avoidance) = avoidance {
            connection["avoidance"] = json!(avoidance);
        }
        if let Some(network) = network {
            connection["network"] = json!(network);
        }
        Arc::new(OfConnection { folder: self.clone(), flow, connection, notes })
    }
}

struct OfConnection {
    folder: Folder,
    flow: Arc<Flow>,
    /// The data of `flowstart:connection`.
    connection: Value,
    notes: Notes,
}

/// What a connection says to the writer of its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    /// The client has proved its address (RFC 9000, section 8.1): the handshake is complete, or its early data came
    /// with a token.
    proven: AtomicBool,
    /// Answers on their way into the file. Without a file nothing is kept.
    answers: Mutex<Option<Vec<Answered>>>,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    payload: u64,
    taken: Duration,
}

impl Notes {
    /// The client has proved its address.
    pub(crate) fn proven(&self) {
        self.0.proven.store(true, Ordering::Relaxed);
    }

    /// Whether [`Notes::proven`] was called.
    pub(crate) fn is_proven(&self) -> bool {
        self.0.proven.load(Ordering::Relaxed)
    }

    /// An answer was acknowledged completely.
    pub(crate) fn answered(&self, payload: u64, taken: Duration) {
        if let Some(list) = &mut *self.list() {
            list.push(Answered { at: Instant::now(), payload, taken });
        }
    }

    /// There is a file, or none any more.
    fn keep(&self, keep: bool) {
        *self.list() = keep.then(Vec::new);
    }

    fn take(&self) -> Vec<Answered> {
        self.list().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn list(&self) -> MutexGuard<'_, Option<Vec<Answered>>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QlogFactory for OfConnection {
    fn for_connection(&self, side: Side, _: SocketAddr, initial: ConnectionId, now: Instant) -> Option<QlogConfig> {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let side = if side.is_server() { "server" } else { "client" };
        let file = LogFile::new(&self.folder, &format!("{millis}-{initial}-{side}.sqlog"));
        let writer = Writer::new(file, self.flow.clone(), self.connection.clone(), self.notes.clone(), now);
        let mut config = QlogConfig::new(Box::new(writer));
        config.start_time(now).title(Some(format!("flowstart {side}")));
        Some(config)
    }
}

/// Puts the scheme's decisions between the records that noq writes. A failure to write ends the file, not the
/// connection.
struct Writer {
    file: LogFile,
    flow: Arc<Flow>,
    /// The data of `flowstart:connection`.
    connection: Value,
    notes: Notes,
    /// Time zero of the file.
    start: Instant,
    /// The record that is being written.
    record: Vec<u8>,
    /// The header was written.
    begun: bool,
    state: Option<&'static str>,
    /// A launch was written. Later ones, after moves, start from no source.
    has_launched: bool,
    /// By how many bits the peer's delays of acknowledgements are shifted.
    peer_exponent: u32,
}

impl Writer {
    fn new(file: LogFile, flow: Arc<Flow>, connection: Value, notes: Notes, start: Instant) -> Self {
        notes.keep(true);
        Self {
            file,
            flow,
            connection,
            notes,
            start,
            record: Vec::new(),
            begun: false,
            state: None,
            has_launched: false,
            peer_exponent: ACK_DELAY_EXPONENT,
        }
    }

    /// A record is complete.
    fn finish_record(&mut self) {
        let mut record = std::mem::take(&mut self.record);
        if self.begun {
            self.write_decisions();
            match conforming(&record, &mut self.peer_exponent) {
                Some(mended) => self.file.add(&mended),
                None => self.file.add(&record),
            }
        } else {
            self.begun = true;
            self.file.add(&conforming_header(&record));
            let connection = std::mem::take(&mut self.connection);
            self.write_event(0.0, "flowstart:connection", &connection);
        }
        self.begin_if_proven();
        record.clear();
        self.record = record;
    }

    fn begin_if_proven(&mut self) {
        if self.notes.is_proven() {
            self.file.begin();
        }
        if self.file.is_over() {
            self.notes.keep(false);
        }
    }

    fn write_decisions(&mut self) {
        while let Some((time, mut decision)) = self.flow.take_decision() {
            let launches = matches!(decision, Decision::Launched { .. });
            if let Decision::Launched { pacing_rate, .. } = &mut decision {
                // A scheme without a rate of its own leaves at the host's, and what a client states has a cap.
                *pacing_rate = self.flow.status().launch_rate;
            }
            let sources = if launches && !self.has_launched { self.flow.findings() } else { Vec::new() };
            self.has_launched |= launches;
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
        self.file.add(&record_of(&json!({ "time": time, "name": name, "data": data })));
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_over() {
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
        self.file.write_waiting();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.write_decisions();
        self.begin_if_proven();
        self.file.write_waiting();
    }
}

#[cfg(test)]
mod tests {
    use flowstart_quic::qlog::SCHEMA;

    use super::conforming::QUIC;
    use super::folder::tests::folder;
    use super::*;
    use flowstart_core::path::PathKnowledge;

    fn writer(folder: &Folder, notes: &Notes) -> Writer {
        let flow = Flow::new(PathKnowledge::default());
        let connection = json!({ "scheme": "blitzstart" });
        Writer::new(LogFile::new(folder, "log"), flow, connection, notes.clone(), Instant::now())
    }

    #[test]
    fn the_header_names_the_schemas_and_records_stay_whole() {
        let place = tempfile::tempdir().unwrap();
        let notes = Notes::default();
        let mut writer = writer(&folder(place.path(), 1_000_000).0, &notes);
        let path = place.path().join("log");
        for (number, piece) in ["\u{1e}{\"trace\":{\"event_schemas\"", ":[]}}\n\u{1e}{\"a\"", ":1}", "\n\u{1e}{\"b"]
            .into_iter()
            .enumerate()
        {
            writer.write_all(piece.as_bytes()).unwrap();
            assert!(!path.exists());
            if number == 2 {
                notes.answered(70_000, Duration::from_millis(20));
            }
        }
        // A client that proves its address last gets its file.
        notes.proven();
        drop(writer);
        let text = std::fs::read_to_string(path).unwrap();
        let records: Vec<_> = text.split('\u{1e}').skip(1).collect();
        assert_eq!(records.len(), 4, "what was begun is left out: {text}");
        let header: Value = serde_json::from_str(records[0]).unwrap();
        assert_eq!(header["trace"]["event_schemas"], json!([QUIC, SCHEMA]));
        let named: Value = serde_json::from_str(records[1]).unwrap();
        assert_eq!(named["data"], json!({ "scheme": "blitzstart" }));
        let answered: Value = serde_json::from_str(records[2]).unwrap();
        assert_eq!(answered["data"], json!({ "payload": 70_000, "fct_ms": 20.0 }));
        assert_eq!(records[3], "{\"a\":1}\n");
    }

    #[test]
    fn without_a_file_nothing_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let (notes, (folder, _)) = (Notes::default(), folder(place.path(), 100));
        notes.proven();
        let mut writer = writer(&folder, &notes);
        writer.write_all(b"\x1e{}\n\x1e{}\n").unwrap();
        assert!(writer.file.is_over());
        writer.flush().unwrap();
        notes.answered(70_000, Duration::from_millis(20));
        assert!(notes.take().is_empty());
    }
}
