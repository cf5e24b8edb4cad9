//! A qlog file for every connection.
//!
//! noq writes the standard events (`quic:packet_sent` and the like); this adds what the startup scheme decided, at its place
//! among them: `flowstart:launched`, `flowstart:hint_capped`, `flowstart:phase_entered`, `flowstart:reduction_undone`,
//! `flowstart:window_validated`, and `quic:congestion_state_updated` with the reason for which startup ended as its trigger.
//! `flowstart:connection` says which scheme the connection has, and `flowstart:answered` what was acknowledged completely:
//! its `payload` in bytes and `fct_ms` since the request. `flowstart analyze` reads these.
//! The names and fields are those of `flowstart trace --format qlog`. When a connection has moved to another path, the
//! times of these additions count from the move.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flowstart_core::event::Decision;
use flowstart_quic::Flow;
use noq::{ConnectionId, QlogConfig, QlogFactory, Side};
use serde_json::{Value, json};

/// The events of QUIC that noq writes.
const QUIC: &str = "urn:ietf:params:qlog:events:quic-12";
/// The events of this program.
const FLOWSTART: &str = "urn:x-flowstart:qlog:events:flowstart";
/// Stands before every JSON text (RFC 7464).
const RECORD_SEPARATOR: &[u8] = b"\x1e";

/// A folder of qlog files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether it was told that a file cannot be written.
    told: Arc<AtomicBool>,
}

impl Folder {
    /// The folder, which is made where there is none.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self { path: path.to_owned(), told: Arc::default() })
    }

    /// What makes the file of one connection with this scheme.
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

/// What a connection answered, on its way into the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Answered>>>);

#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    payload: u64,
    taken: Duration,
}

impl Notes {
    /// An answer was acknowledged completely.
    pub(crate) fn answered(&self, payload: u64, taken: Duration) {
        self.list().push(Answered { at: Instant::now(), payload, taken });
    }

    fn list(&self) -> MutexGuard<'_, Vec<Answered>> {
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
            told: self.folder.told.clone(),
            flow: self.flow.clone(),
            scheme: self.scheme.clone(),
            notes: self.notes.clone(),
            start: now,
            record: Vec::new(),
            begun: false,
            state: None,
        };
        match File::create(&path) {
            Ok(file) => writer.out = Some(BufWriter::new(file)),
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

/// Puts the scheme's decisions between the records that noq writes. A file that cannot be written ends; the connection
/// does not.
struct Writer<W: Write> {
    out: Option<W>,
    path: PathBuf,
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
}

impl<W: Write> Writer<W> {
    /// Tells of the first failure only: of a full disk every connection would tell.
    fn failed(&mut self, error: &io::Error) {
        self.out = None;
        if !self.told.swap(true, Ordering::Relaxed) {
            eprintln!(
                "warning: {}: qlog cannot be written: {error}; further failures are not told",
                self.path.display()
            );
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
            self.write_out(&record);
        } else {
            self.begun = true;
            self.write_out(&with_schemas(&record));
            self.write_event(0.0, "flowstart:connection", &json!({ "scheme": self.scheme }));
        }
        record.clear();
        self.record = record;
    }

    fn write_decisions(&mut self) {
        while let Some((time, decision)) = self.flow.take_decision() {
            for (name, data) in events(decision, &mut self.state) {
                self.write_event(time.as_nanos() as f64 / 1e6, name, &data);
            }
        }
        let answers = std::mem::take(&mut *self.notes.list());
        for Answered { at, payload, taken } in answers {
            let data = json!({ "payload": payload, "fct_ms": taken.as_secs_f64() * 1e3 });
            let time = at.saturating_duration_since(self.start).as_secs_f64() * 1e3;
            self.write_event(time, "flowstart:answered", &data);
        }
    }

    /// An event at a time in milliseconds.
    fn write_event(&mut self, time: f64, name: &str, data: &Value) {
        let mut record = RECORD_SEPARATOR.to_vec();
        let event = json!({ "time": time, "name": name, "data": data });
        record.extend_from_slice(event.to_string().as_bytes());
        record.push(b'\n');
        self.write_out(&record);
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

/// The header with the schemas of the events that follow, which noq leaves out.
fn with_schemas(record: &[u8]) -> Vec<u8> {
    let text = record.strip_prefix(RECORD_SEPARATOR).unwrap_or(record);
    let Ok(mut header) = serde_json::from_slice::<Value>(text) else { return record.to_owned() };
    if let Some(trace) = header.get_mut("trace").and_then(Value::as_object_mut) {
        trace.insert("event_schemas".into(), json!([QUIC, FLOWSTART]));
    }
    [RECORD_SEPARATOR, header.to_string().as_bytes(), b"\n"].concat()
}

/// A decision as events; `state` is the state of congestion control before and after it.
fn events(decision: Decision, state: &mut Option<&'static str>) -> Vec<(&'static str, Value)> {
    let mut enter = |new: &'static str, trigger: Option<&'static str>| {
        let mut data = json!({ "new": new });
        if let Some(old) = state.replace(new) {
            data["old"] = json!(old);
        }
        if let Some(trigger) = trigger {
            data["trigger"] = json!(trigger);
        }
        ("quic:congestion_state_updated", data)
    };
    match decision {
        Decision::Launched { cwnd, pacing_rate } => {
            let mut data = json!({ "congestion_window": cwnd.get() });
            if let Some(rate) = pacing_rate {
                data["pacing_rate"] = json!(rate.bits_per_sec());
            }
            vec![("flowstart:launched", data), enter("startup", None)]
        }
        Decision::HintCapped { hinted, used } => {
            let data = json!({ "hinted": hinted.bits_per_sec(), "used": used.bits_per_sec() });
            vec![("flowstart:hint_capped", data)]
        }
        Decision::PhaseEntered { phase, trigger } => {
            vec![("flowstart:phase_entered", json!({ "phase": phase, "trigger": trigger }))]
        }
        Decision::StartupExited { reason, .. } => vec![enter("congestion_avoidance", Some(reason.name()))],
        Decision::WindowReduced { .. } => vec![enter("recovery", None)],
        Decision::ReductionUndone { after, .. } => {
            vec![("flowstart:reduction_undone", json!({ "congestion_window": after.get() }))]
        }
        Decision::WindowValidated { after, ssthresh, .. } => {
            let data = json!({ "congestion_window": after.get(), "ssthresh": ssthresh.get() });
            vec![("flowstart:window_validated", data)]
        }
        Decision::Recovered { .. } => vec![enter("congestion_avoidance", None)],
        Decision::Collapsed { .. } => vec![enter("slow_start", Some("persistent_congestion"))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::event::ExitReason;
    use flowstart_core::path::PathKnowledge;
    use flowstart_core::units::Bytes;

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
        Writer {
            out: Some(out),
            path: PathBuf::new(),
            told,
            flow,
            scheme: "blitzstart".into(),
            notes: Notes::default(),
            start: Instant::now(),
            record: Vec::new(),
            begun: false,
            state: None,
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
    fn a_full_disk_ends_the_file_and_nothing_else() {
        let mut writer = writer(FullDisk);
        writer.write_all(b"\x1e{}\n\x1e{}\n").unwrap();
        assert!(writer.out.is_none());
        writer.flush().unwrap();
    }

    #[test]
    fn states_follow_each_other() {
        let mut state = None;
        let launched = Decision::Launched { cwnd: Bytes::new(14_720), pacing_rate: None };
        assert_eq!(events(launched, &mut state)[1].1, json!({ "new": "startup" }));
        let cwnd = Bytes::new(100_000);
        let exited = Decision::StartupExited { reason: ExitReason::Loss, cwnd, ssthresh: cwnd };
        let expected = json!({ "new": "congestion_avoidance", "old": "startup", "trigger": "loss" });
        assert_eq!(events(exited, &mut state), [("quic:congestion_state_updated", expected)]);
    }
}
