//! A connection, read from its qlog file.
//!
//! The file is a sequence of JSON texts (RFC 7464) as `flowstart serve --qlog` writes it: besides the standard events
//! it names the connection's scheme (`flowstart:connection`) and its answers (`flowstart:answered`). A file whose
//! writer was killed may end within a record; everything before it counts.

use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flowstart_core::units::Bytes;
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::path::Tracker;
use crate::path_shown::PathShown;
use crate::recording::event::What;
use crate::recording::{self, Recording, RecordingError};

/// Longest record that is read. The writer's are a few hundred bytes.
const LONGEST_RECORD: usize = 1 << 20;
/// Longest file that is read: forty times what the server writes unless it is told otherwise.
const LONGEST_FILE: u64 = 1 << 32;

/// Largest payload of an answer: other programs still distinguish all integers up to it.
const MOST_PAYLOAD: u64 = 1 << 53;
/// Longest time of an answer in milliseconds, that of the results of simulations.
const LONGEST_MILLIS: f64 = u64::MAX as f64 / 1e6;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Payload.
    pub bytes: u64,
    /// Milliseconds from the request until all of it was acknowledged.
    pub millis: f64,
}

/// When a connection left startup, and with what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exit {
    /// Milliseconds since the first packet.
    pub millis: f64,
    /// The congestion window, in bytes.
    pub cwnd: u64,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connection {
    /// Its first destination connection ID and the end that wrote the file, which distinguish it from all others.
    pub id: Option<String>,
    /// The startup scheme as the operator wrote it.
    pub scheme: String,
    /// The client's network, /24 or /48, if the server was to write it.
    pub network: Option<String>,
    /// What was answered completely.
    pub answers: Vec<Answer>,
    /// Why startup ended, if it did.
    pub exit: Option<String>,
    /// When it did. Files of older versions do not say.
    pub exited: Option<Exit>,
    /// Most bytes in flight until then.
    pub startup_in_flight: u64,
    /// Reductions of the window for congestion.
    pub window_cuts: u64,
    /// Collapses of the window: persistent congestion.
    pub collapses: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Bytes of the packets declared lost, with their headers.
    pub lost_bytes: u64,
}

impl Connection {
    /// Share of the packets that were declared lost; `None` when none was sent.
    pub fn lost_share(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

/// A connection for a description of its server's paths.
#[derive(Clone, Debug, PartialEq)]
pub struct OfPath {
    /// What distinguishes it from all others, as [`Connection::id`].
    pub id: Option<String>,
    /// What it carried: the payload of its complete answers, or, in the file of another server, all that was
    /// acknowledged.
    pub size: Bytes,
    /// Whether a source of path knowledge knew its path.
    pub is_known: bool,
    /// What it shows of its path; `None` if no RTT was measured.
    pub shown: Option<PathShown>,
}

/// Why a file is useless.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("{path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A record is no event.
    #[error("{path}:{line}: {cause}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line of the record.
        line: usize,
        /// What is wrong.
        cause: String,
    },
    /// What other programs write as well cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// It is not a sender's.
    #[error("{path}: is the file of a client; use files of the server, which sends")]
    OfClient {
        /// The file.
        path: PathBuf,
    },
    /// It is not of a connection that `flowstart serve` answered.
    #[error("{path}: no flowstart:connection event; use files that `flowstart serve --qlog` wrote")]
    NoScheme {
        /// The file.
        path: PathBuf,
    },
}

/// The parts of an event that are read; the header has no name.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(default)]
    name: &'a str,
    #[serde(default)]
    time: f64,
    /// Read only where it is needed, because the data of other events may have other types.
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    /// The header's.
    #[serde(borrow, default)]
    trace: Option<&'a RawValue>,
}

/// The parts of a header that are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Trace {
    vantage_point: VantagePoint,
    common_fields: CommonFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VantagePoint {
    #[serde(rename = "type")]
    end: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommonFields {
    group_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    scheme: Option<String>,
    network: Option<String>,
    payload: Option<u64>,
    fct_ms: Option<f64>,
    old: Option<String>,
    new: Option<String>,
    trigger: Option<String>,
    congestion_window: Option<u64>,
    bytes_in_flight: Option<u64>,
    header: Option<Header>,
}

/// The part of a packet's header that is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    length: u64,
}

/// Reads the file of one connection.
///
/// # Errors
///
/// [`LogError`] with the file and the line.
pub fn read(path: &Path) -> Result<Connection, LogError> {
    let unreadable = |cause| LogError::Unreadable { path: path.to_owned(), cause };
    let file = flowstart_files::open(path, LONGEST_FILE).map_err(|error| unreadable(error.into()))?;
    parse(&mut BufReader::new(file), path)
}

/// Reads the file of one connection for what it shows of its path. Standard events will do, so the file may be another
/// server's, in any form that [`replay`](crate::replay) reads.
///
/// # Errors
///
/// [`LogError`] with the file and the line.
pub fn read_path(path: &Path) -> Result<OfPath, LogError> {
    parse_path(recording::open(path)?, path)
}

/// Reads what a connection shows of its path; `path` is for messages.
///
/// # Errors
///
/// As [`read_path`].
pub fn parse_path<R: Read + Seek>(input: R, path: &Path) -> Result<OfPath, LogError> {
    let mut recording = Recording::new(input, path);
    let surroundings = recording.surroundings()?;
    if surroundings.end.as_deref() == Some("client") {
        return Err(LogError::OfClient { path: path.to_owned() });
    }
    let mut tracker = Tracker::default();
    let (mut events, mut is_served, mut answered) = (0, false, Bytes::ZERO);
    recording.events(&surroundings, &mut |event| {
        events = event.number;
        tracker.take(&event);
        match &event.what {
            What::Scheme(_) => is_served = true,
            What::Answered { payload } => answered += Bytes::new(*payload),
            _ => {}
        }
        Ok(())
    })?;
    if events == 0 {
        return Err(recording.unfit("no event; what is needed is a qlog file of QUIC".into()).into());
    }
    let id = surroundings.group.map(|group| format!("{group} {}", surroundings.end.unwrap_or_default()));
    let size = if is_served { answered } else { tracker.delivered() };
    Ok(OfPath { id, size, is_known: tracker.is_known(), shown: tracker.shown() })
}

/// Reads a connection; `path` is for messages.
///
/// # Errors
///
/// As [`read`].
pub fn parse(input: &mut dyn BufRead, path: &Path) -> Result<Connection, LogError> {
    let mut connection = Connection::default();
    let mut record = Vec::new();
    for line in 1.. {
        record.clear();
        let limit = LONGEST_RECORD as u64 + 1;
        let read = Read::take(&mut *input, limit).read_until(b'\n', &mut record);
        read.map_err(|cause| LogError::Unreadable { path: path.to_owned(), cause })?;
        let damaged = |cause: String| LogError::Damaged { path: path.to_owned(), line, cause };
        if record.len() > LONGEST_RECORD {
            return Err(damaged(format!("a record is longer than {LONGEST_RECORD} bytes")));
        }
        // The last record of a writer that was killed has no end.
        let Some(text) = record.strip_suffix(b"\n") else { break };
        let text = text.strip_prefix(b"\x1e").unwrap_or(text);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let broken = |error: serde_json::Error| damaged(abridged(error.to_string()));
        let Record { name, time, data, trace } = serde_json::from_slice(text).map_err(broken)?;
        if let Some(trace) = trace {
            let Trace { vantage_point, common_fields } = serde_json::from_str(trace.get()).map_err(broken)?;
            connection.id = common_fields.group_id.map(|group| format!("{group} {}", vantage_point.end));
        }
        let name = name.strip_prefix("quic:").unwrap_or(name);
        let data = || data.map_or(Ok(Data::default()), |data| serde_json::from_str(data.get())).map_err(broken);
        match name {
            "packet_sent" => connection.sent += 1,
            "packet_lost" => {
                connection.lost += 1;
                let length = data()?.header.map_or(0, |header| header.length);
                connection.lost_bytes = connection.lost_bytes.saturating_add(length);
            }
            "congestion_state_updated" => {
                let Data { old, new, trigger, .. } = data()?;
                if old.as_deref() == Some("startup") {
                    connection.exit = connection.exit.or(trigger);
                }
                connection.window_cuts += u64::from(new.as_deref() == Some("recovery"));
                connection.collapses += u64::from(new.as_deref() == Some("slow_start"));
            }
            "recovery_metrics_updated" if connection.exit.is_none() => {
                let in_flight = data()?.bytes_in_flight.unwrap_or(0);
                connection.startup_in_flight = connection.startup_in_flight.max(in_flight);
            }
            "flowstart:startup_exited" => {
                let window = data()?.congestion_window;
                connection.exited = connection.exited.or(window.map(|cwnd| Exit { millis: time, cwnd }));
            }
            "flowstart:connection" => {
                let Data { scheme, network, .. } = data()?;
                if let Some(network) = &network {
                    network.parse::<IpNet>().map_err(|_| {
                        let shown: String = network.chars().take(60).collect();
                        damaged(format!("network is `{shown}`; allowed are those such as 192.0.2.0/24"))
                    })?;
                }
                connection.network = network;
                let scheme = scheme.filter(|scheme| !scheme.is_empty());
                connection.scheme = scheme.ok_or_else(|| damaged("flowstart:connection has no scheme".into()))?;
            }
            "flowstart:answered" => match data()? {
                Data { payload: Some(bytes), .. } if bytes > MOST_PAYLOAD => {
                    let problem = format!("payload is {bytes}; allowed is 0 to {MOST_PAYLOAD}");
                    return Err(damaged(format!("flowstart:answered: {problem}")));
                }
                Data { fct_ms: Some(millis), .. } if !(millis > 0.0 && millis <= LONGEST_MILLIS) => {
                    let problem = format!("fct_ms is {millis:?}; allowed is more than 0 and up to {LONGEST_MILLIS:?}");
                    return Err(damaged(format!("flowstart:answered: {problem}")));
                }
                Data { payload: Some(bytes), fct_ms: Some(millis), .. } => {
                    connection.answers.push(Answer { bytes, millis });
                }
                _ => return Err(damaged("flowstart:answered has no payload or no fct_ms".into())),
            },
            _ => {}
        }
    }
    if connection.scheme.is_empty() { Err(LogError::NoScheme { path: path.to_owned() }) } else { Ok(connection) }
}

/// `message` without its middle when it is long: the parser quotes a wrong value whole, and ends with the place.
fn abridged(message: String) -> String {
    let kept = |character: &(usize, char)| character.0 < 100 || character.0 + 100 > message.len();
    if message.len() <= 300 {
        return message;
    }
    let (start, end): (Vec<_>, Vec<_>) = message.char_indices().filter(kept).partition(|(place, _)| *place < 100);
    start.into_iter().chain([(0, '…')]).chain(end).map(|(_, character)| character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_little_of_a_long_value() {
        let value = "ä".repeat(2000);
        let record = format!("{{\"name\":\"flowstart:answered\",\"data\":{{\"payload\":\"{value}\"}}}}\n");
        let message = parsed(&record).unwrap_err().to_string();
        assert!(message.len() < 400, "{message}");
        assert!(message.starts_with("c.sqlog:1: invalid type: string \"ää"), "{message}");
        assert!(message.contains("ä…ä") && message.contains("expected u64 at line 1 column"), "{message}");
    }

    fn parsed(text: &str) -> Result<Connection, LogError> {
        parse(&mut text.as_bytes(), Path::new("c.sqlog"))
    }

    const LOG: &str = "\u{1e}{\"file_schema\":\"urn\",\"trace\":{}}\n\
        \u{1e}{\"time\":0,\"name\":\"flowstart:connection\",\"data\":{\"scheme\":\"blitzstart\",\"avoidance\":\"cubic\"}}\n\
        \u{1e}{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"initial\"}}}\n\
        \u{1e}{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{}}\n\
        \u{1e}{\"time\":8,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"bytes_in_flight\":60000}}\n\
        \u{1e}{\"time\":9,\"name\":\"quic:packet_lost\",\
             \"data\":{\"header\":{\"packet_number\":3,\"length\":1200},\"trigger\":\"time_threshold\"}}\n\
        \u{1e}{\"time\":9,\"name\":\"quic:congestion_state_updated\",\
             \"data\":{\"old\":\"startup\",\"new\":\"recovery\",\"trigger\":\"loss\"}}\n\
        \u{1e}{\"time\":9.5,\"name\":\"flowstart:startup_exited\",\"data\":{\"congestion_window\":30000}}\n\
        \u{1e}{\"time\":10,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"bytes_in_flight\":90000}}\n\
        \u{1e}{\"time\":20,\"name\":\"flowstart:answered\",\"data\":{\"payload\":70000,\"fct_ms\":18.5}}\n";

    #[test]
    fn a_connection_is_read() {
        let expected = Connection {
            id: None,
            scheme: "blitzstart".into(),
            network: None,
            answers: vec![Answer { bytes: 70_000, millis: 18.5 }],
            exit: Some("loss".into()),
            exited: Some(Exit { millis: 9.5, cwnd: 30_000 }),
            startup_in_flight: 60_000,
            window_cuts: 1,
            collapses: 0,
            sent: 2,
            lost: 1,
            lost_bytes: 1200,
        };
        assert_eq!(parsed(LOG).unwrap(), expected);
        assert_eq!(expected.lost_share(), Some(0.5));
        let of = |network: &str| parsed(&LOG.replace("\"cubic\"", &format!("\"cubic\",\"network\":\"{network}\"")));
        assert_eq!(of("2001:db8:1::/48").unwrap().network.as_deref(), Some("2001:db8:1::/48"));
        let error = of("somewhere").unwrap_err().to_string();
        assert!(error.starts_with("c.sqlog:2: network is `somewhere`; allowed are"), "{error}");
        // The writer was killed.
        assert_eq!(parsed(&format!("{LOG}\u{1e}{{\"time\":21,\"na")).unwrap(), expected);
    }

    #[test]
    fn a_connection_has_the_id_of_its_header() {
        let header =
            "{\"trace\":{\"vantage_point\":{\"type\":\"server\"},\"common_fields\":{\"group_id\":\"c0ffee\"}}}";
        assert_eq!(parsed(&format!("{header}\n{LOG}")).unwrap().id, None);
        let (_, events) = LOG.split_once('\n').unwrap();
        assert_eq!(parsed(&format!("{header}\n{events}")).unwrap().id.as_deref(), Some("c0ffee server"));
    }

    #[test]
    fn impossible_values_are_refused_with_their_line_and_field() {
        for (payload, millis, told) in [
            ("1", "0", "c.sqlog:2: flowstart:answered: fct_ms is 0.0; allowed is more than 0 and up to "),
            ("1", "1e308", "c.sqlog:2: flowstart:answered: fct_ms is 1e308; allowed is"),
            ("1", "-1", "fct_ms is -1.0"),
            ("18446744073709551615", "1", "payload is 18446744073709551615; allowed is 0 to 9007199254740992"),
        ] {
            let data = format!("{{\"payload\":{payload},\"fct_ms\":{millis}}}");
            let error = parsed(&format!("{{}}\n{{\"name\":\"flowstart:answered\",\"data\":{data}}}\n")).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_place() {
        let error = parsed("\u{1e}{\"time\":0}\n\u{1e}nonsense\n").unwrap_err().to_string();
        assert!(error.starts_with("c.sqlog:2: "), "{error}");
        let error = parsed("").unwrap_err().to_string();
        assert!(error.contains("flowstart serve --qlog"), "{error}");
        let error =
            parsed("\u{1e}{\"name\":\"flowstart:answered\",\"data\":{\"payload\":1}}\n").unwrap_err().to_string();
        assert!(error.contains("no fct_ms"), "{error}");
        let long = "x".repeat(LONGEST_RECORD + 10);
        let error = parsed(&long).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
    }
}
