//! What startups of the kernel's TCP decided, as a qlog file: the events of `flowstart serve`, with all connections in
//! one file. The group of an event is its connection's own address and its peer's.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use flowstart_bpf::kernel::{Event, EventKind};
use flowstart_core::event::{Decision, ExitReason};
use flowstart_core::units::Bytes;
use flowstart_quic::qlog::{SCHEMA, decision_events};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Largest file. Peers make connections, and each leaves some 1000 bytes.
const LARGEST: u64 = 1_000_000_000;
/// Connections that are known at a time, of which each is in startup.
const MOST_CONNECTIONS: usize = 1 << 16;
/// Stands before every JSON text (RFC 7464).
const RECORD_SEPARATOR: &[u8] = b"\x1e";

/// A file that grows with each event.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    name: PathBuf,
    /// Bytes that may be written yet.
    room: u64,
    has_events: bool,
    /// The states of connections in startup.
    states: HashMap<(SocketAddr, SocketAddr), Option<&'static str>>,
}

impl Log {
    /// A new file.
    pub(super) fn create(name: &Path) -> Result<Self, Failure> {
        let file =
            File::create_new(name).map_err(|cause| Failure::Input(format!("--qlog {}: {cause}", name.display())))?;
        let mut log = Self { file, name: name.to_owned(), room: LARGEST, has_events: false, states: HashMap::new() };
        // Times are those of the kernel's monotonic clock.
        log.append(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": "flowstart tcp",
            "trace": {
                "common_fields": { "reference_time": { "clock_type": "monotonic", "epoch": "unknown" } },
                "vantage_point": { "type": "unknown" },
                "event_schemas": ["urn:ietf:params:qlog:events:quic-12", SCHEMA],
            },
        }))?;
        Ok(log)
    }

    /// Appends what follows from an event of a connection.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), Failure> {
        let connection = (event.source, event.destination);
        if self.states.len() >= MOST_CONNECTIONS {
            self.states.clear();
        }
        self.has_events = true;
        let mut state = self.states.remove(&connection).flatten();
        let time = event.time.as_nanos() as f64 / 1e6;
        let group = format!("{} {}", event.source, event.destination);
        for (name, data) in events(event, &mut state) {
            self.append(&json!({ "time": time, "group_id": group, "name": name, "data": data }))?;
        }
        if event.kind == EventKind::Launch {
            self.states.insert(connection, state);
        }
        Ok(())
    }

    /// Removes the file if no event came.
    pub(super) fn remove_without_events(self) {
        if !self.has_events {
            drop(std::fs::remove_file(&self.name));
        }
    }

    fn append(&mut self, text: &Value) -> Result<(), Failure> {
        let record = [RECORD_SEPARATOR, text.to_string().as_bytes(), b"\n"].concat();
        let failed = |cause: String| Failure::Other(format!("--qlog {}: {cause}", self.name.display()));
        self.room = self.room.checked_sub(record.len() as u64).ok_or_else(|| failed("1 GB is written".into()))?;
        self.file.write_all(&record).map_err(|error| failed(error.to_string()))
    }
}

/// An event of the kernel as those of a file.
fn events(event: &Event, state: &mut Option<&'static str>) -> Vec<(&'static str, Value)> {
    let bytes = |packets: u32| Bytes::new(u64::from(packets) * u64::from(event.segment));
    let cwnd = bytes(event.cwnd);
    let decision = match event.kind {
        EventKind::Launch => Decision::Launched { cwnd, pacing_rate: event.pacing_rate },
        EventKind::Fallback => Decision::PhaseEntered { phase: "slow start", trigger: "no input, or no need" },
        EventKind::Exit(reason) => {
            let (reason, ssthresh) = (ExitReason::Other(reason), event.ssthresh.map_or(Bytes::MAX, bytes));
            Decision::StartupExited { reason, cwnd, ssthresh }
        }
    };
    let mut events = Vec::new();
    if !matches!(event.kind, EventKind::Exit(_)) {
        events.push(("flowstart:connection", json!({ "scheme": event.scheme })));
    }
    events.extend(decision_events(decision, &[], state, "timeout"));
    let metrics = json!({ "smoothed_rtt": f64::from(event.srtt_us) / 1000.0, "congestion_window": cwnd.get() });
    events.push(("quic:recovery_metrics_updated", metrics));
    events
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use flowstart_core::time::Timestamp;
    use flowstart_core::units::Rate;

    use super::*;

    fn event(kind: EventKind) -> Event {
        Event {
            scheme: "jump-start",
            time: Timestamp::from_nanos(1_500_000_000),
            kind,
            source: "192.0.2.1:443".parse().unwrap(),
            destination: "198.51.100.7:50000".parse().unwrap(),
            cwnd: 40,
            segment: 1448,
            ssthresh: Some(20),
            srtt_us: 80_000,
            pacing_rate: Some(Rate::from_mbit(5)),
        }
    }

    #[test]
    fn a_startup_becomes_records_of_its_connection() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("starts.sqlog");
        let mut log = Log::create(&name).unwrap();
        log.write(&event(EventKind::Launch)).unwrap();
        log.write(&event(EventKind::Exit("loss"))).unwrap();
        assert!(log.states.is_empty());
        let text = std::fs::read_to_string(&name).unwrap();
        let records: Vec<Value> =
            text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
        let of = |wanted: &str| records.iter().find(|record| record["name"] == wanted).unwrap();
        assert_eq!(records[0]["trace"]["event_schemas"][1], SCHEMA);
        assert_eq!(of("flowstart:connection")["data"]["scheme"], "jump-start");
        let launch = of("flowstart:launch");
        assert_eq!(
            (&launch["time"], &launch["group_id"]),
            (&json!(1500.0), &json!("192.0.2.1:443 198.51.100.7:50000"))
        );
        assert_eq!(
            (&launch["data"]["cwnd_bytes"], &launch["data"]["pacing_rate_bps"]),
            (&json!(57_920), &json!(5_000_000))
        );
        let exit = &of("flowstart:startup_exited")["data"];
        assert_eq!((&exit["reason"], &exit["ssthresh"]), (&json!("loss"), &json!(28_960)));
        let states = records.iter().filter(|record| record["name"] == "quic:congestion_state_updated");
        let states: Vec<_> = states.map(|record| record["data"]["new"].as_str().unwrap()).collect();
        assert_eq!(states, ["startup", "congestion_avoidance"]);
    }

    #[test]
    fn a_file_that_exists_stays() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("starts.sqlog");
        std::fs::write(&name, "mine").unwrap();
        assert!(matches!(Log::create(&name), Err(Failure::Input(told)) if told.contains("starts.sqlog")));
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "mine");
    }

    #[test]
    fn no_more_is_written_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("starts.sqlog");
        let mut log = Log { room: 500, ..Log::create(&name).unwrap() };
        let written = (0..9).map(|_| log.write(&event(EventKind::Launch))).find_map(Result::err);
        assert!(matches!(written, Some(Failure::Other(told)) if told.contains("1 GB is written")));
        assert!(std::fs::read_to_string(&name).unwrap().ends_with("}\n"));
    }
}
