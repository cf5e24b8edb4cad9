//! Events of qlog files, of all drafts and programs, in one form.
//!
//! | Written by | Names | Worth knowing |
//! |---|---|---|
//! | noq, and so `flowstart serve` | `quic:packet_sent` | `flowstart serve` corrects what noq does otherwise |
//! | quic-go | `transport:packet_sent`, `recovery:metrics_updated` | the losses of an acknowledgement precede it |
//! | aioquic | the same, in an object with `traces` | times are those of the wall clock; the window is `cwnd` |
//! | older drafts | lists that `event_fields` names, or `category` and `event` | times and RTTs may be in microseconds |
//!
//! Every number is checked here, so what follows can compute with it.

use std::ops::RangeInclusive;

use flowstart_core::time::Duration;
use serde_json::Value;

/// Largest packet number (RFC 9000, section 12.3).
const LARGEST_NUMBER: u64 = (1 << 62) - 1;
/// Largest amount of bytes that other programs can write without loss.
const LARGEST_AMOUNT: u64 = 1 << 53;
/// Longest delay of an acknowledgement, in milliseconds: what its field can hold (RFC 9000, section 18.2: 2^14 ms) is
/// less.
const LONGEST_DELAY: f64 = 1e6;
/// Most ranges of an acknowledgement, more than a packet can hold.
const MOST_RANGES: usize = 1 << 16;

/// Bits by which delays of acknowledgements are shifted, unless the peer says otherwise (RFC 9000, section 18.2).
const ACK_DELAY_EXPONENT: u64 = 3;
/// Longest RTT, in milliseconds: 11 days.
const LONGEST_RTT: f64 = 1e9;
/// Longest time of an answer in milliseconds, that of the results of simulations.
const LONGEST_ANSWER: f64 = u64::MAX as f64 / 1e6;
/// Most sources of a launch.
const MOST_SOURCES: usize = 64;
/// Longest name of a connection, in characters.
const LONGEST_GROUP: usize = 100;

/// A packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    Initial,
    Handshake,
    Application,
}

/// What an ACK frame says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Acknowledged {
    /// First and last packet of each range.
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) delay: Duration,
    /// All CE marks so far.
    pub(crate) marks: Option<u64>,
}

/// A packet that left. Without a number or a size it is one that cannot be followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) space: Option<Space>,
    pub(crate) number: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) frames: Frames,
    /// The file says that it probes for the size of packets.
    pub(crate) probes_size: bool,
}

/// What a packet that left has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frames {
    /// It counts towards the bytes in flight (RFC 9002, section 2): not if it has only acknowledgements, or the end of
    /// the connection.
    pub(crate) count: bool,
    /// The peer has to acknowledge it (RFC 9002, section 2: ack-eliciting).
    pub(crate) solicit: bool,
    /// It has nothing but PING and padding, as probes for the size of packets have, and others.
    pub(crate) only_ping: bool,
    /// Streams, and up to where it has their data.
    pub(crate) streams: Vec<(u64, u64)>,
}

/// Files without frames say nothing of what a packet has; most have data.
impl Default for Frames {
    fn default() -> Self {
        Self { count: true, solicit: true, only_ping: false, streams: Vec::new() }
    }
}

/// What the recorded sender said of its window and its path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) cwnd: Option<u64>,
    pub(crate) ssthresh: Option<u64>,
    /// As the file has it.
    pub(crate) pacing_rate: Option<u64>,
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) smoothed_rtt: Option<Duration>,
}

/// A source of a launch, and what became of its statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) verdict: String,
}

/// A launch of this program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Launched {
    pub(crate) cwnd: Option<u64>,
    /// Bits per second.
    pub(crate) pacing_rate: Option<u64>,
    pub(crate) sources: Vec<Source>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Sent(Sent),
    Received {
        space: Option<Space>,
        frames: Vec<Acknowledged>,
    },
    Lost {
        space: Option<Space>,
        number: Option<u64>,
        probes_size: bool,
    },
    Metrics(Metrics),
    /// The sender's state of congestion control, as it names it.
    State(String),
    /// What the peer announced: its receive window in bytes, how long it delays acknowledgements, and by how many bits
    /// their delays are shifted.
    Peer {
        receive_window: Option<u64>,
        max_ack_delay: Option<Duration>,
        ack_delay_exponent: Option<u64>,
    },
    /// Startup scheme of the recorded connection.
    Scheme(String),
    /// The recorded startup began.
    Launched(Launched),
    /// The recorded startup ended.
    Exit {
        reason: String,
        cwnd: Option<u64>,
        ssthresh: Option<u64>,
    },
    /// An answer with so many bytes of payload is complete.
    Answered {
        payload: u64,
    },
    /// An event that nobody here needs.
    Other,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// As the file has it; `None` for events of this program, whose times may count from elsewhere.
    pub(crate) time: Option<f64>,
    /// The connection, if the file has several.
    pub(crate) group: Option<String>,
    pub(crate) what: What,
}

/// What distinguishes a file from what this module expects of the schema.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// The names of the elements of an event that is a list.
    pub(crate) fields: Vec<String>,
    /// Written by noq itself: ranges end with the first packet that was not acknowledged, delays are as encoded, and
    /// rates in bytes per second.
    pub(crate) raw_noq: bool,
    /// By how many bits the peer's delays are shifted, for `raw_noq`.
    pub(crate) ack_delay_exponent: u64,
    /// Milliseconds per unit of times and of RTTs.
    pub(crate) unit: f64,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { fields: Vec::new(), raw_noq: false, ack_delay_exponent: ACK_DELAY_EXPONENT, unit: 1.0 }
    }
}

/// Reads an event. The error names the field and what is allowed.
pub(crate) fn read(event: &Value, dialect: &Dialect) -> Result<Event, String> {
    let listed;
    let event = match event {
        Value::Array(elements) => {
            let named = dialect.fields.iter().cloned().zip(elements.iter().cloned());
            listed = Value::Object(named.collect());
            if dialect.fields.is_empty() {
                return Err("the event is a list; allowed is an object, or a list behind `event_fields`".into());
            }
            &listed
        }
        Value::Object(_) => event,
        _ => return Err("the event is neither an object nor a list, which are allowed".into()),
    };
    let text = |field: &str| event.get(field).and_then(Value::as_str);
    let (category, name) = match text("name").map(|name| name.rsplit_once(':').unwrap_or(("", name))) {
        Some(both) => both,
        None => match (text("category"), text("event").or_else(|| text("event_type"))) {
            (category, Some(name)) => (category.unwrap_or_default(), name),
            _ => return Err("name: missing; allowed is a text such as \"quic:packet_sent\"".into()),
        },
    };
    let data = event.get("data").unwrap_or(&Value::Null);
    let what = what(category, name, data, dialect)?;
    let time = match category {
        "flowstart" => None,
        _ => Some(time(event)?),
    };
    Ok(Event { time, group: text("group_id").map(group), what })
}

/// The name of a connection.
pub(crate) fn group(name: &str) -> String {
    name.chars().take(LONGEST_GROUP).collect()
}

fn time(event: &Value) -> Result<f64, String> {
    let found = ["time", "relative_time"].iter().find_map(|field| event.get(field));
    let time = found.and_then(number_of).filter(|time| time.is_finite());
    time.ok_or_else(|| match found {
        Some(value) => format!("time is {}; allowed is a number", shown(value)),
        None => "time: missing; allowed is a number".into(),
    })
}

fn what(category: &str, name: &str, data: &Value, dialect: &Dialect) -> Result<What, String> {
    let what = match (category, name) {
        ("flowstart", "connection") => match data.get("scheme").and_then(Value::as_str) {
            Some(scheme) => What::Scheme(scheme.to_owned()),
            None => What::Other,
        },
        ("flowstart", "launch") => What::Launched(Launched {
            cwnd: amount(data, "cwnd_bytes")?,
            pacing_rate: amount(data, "pacing_rate_bps")?,
            sources: sources(data),
        }),
        ("flowstart", "answered") => What::Answered { payload: answered(data)? },
        ("flowstart", "startup_exited") => What::Exit {
            reason: data.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
            cwnd: amount(data, "congestion_window")?,
            ssthresh: amount(data, "ssthresh")?,
        },
        ("flowstart" | "http" | "http3" | "h3" | "qpack" | "security", _) => What::Other,
        (_, "packet_sent") => What::Sent(Sent {
            space: space(data),
            number: packet_number(data)?,
            bytes: size(data)?,
            frames: frames(data),
            probes_size: probes_size(data),
        }),
        (_, "packet_received") => What::Received { space: space(data), frames: acknowledged(data, dialect)? },
        (_, "packet_lost") => {
            What::Lost { space: space(data), number: packet_number(data)?, probes_size: probes_size(data) }
        }
        (_, "metrics_updated" | "recovery_metrics_updated") => What::Metrics(Metrics {
            cwnd: amount(data, "congestion_window")?.or(amount(data, "cwnd")?),
            ssthresh: amount(data, "ssthresh")?,
            pacing_rate: amount(data, "pacing_rate")?.map(|rate| if dialect.raw_noq { rate * 8 } else { rate }),
            min_rtt: rtt(data, "min_rtt", dialect)?,
            smoothed_rtt: rtt(data, "smoothed_rtt", dialect)?,
        }),
        (_, "congestion_state_updated") => match data.get("new").and_then(Value::as_str) {
            Some(state) => What::State(state.to_owned()),
            None => What::Other,
        },
        (_, "parameters_set") if is_peers(data) => What::Peer {
            receive_window: amount(data, "initial_max_data")?,
            max_ack_delay: millis(data, "max_ack_delay")?,
            ack_delay_exponent: whole(data, "ack_delay_exponent", 0..=20)?,
        },
        _ => What::Other,
    };
    Ok(what)
}

/// Whether these are the parameters of the peer.
fn is_peers(data: &Value) -> bool {
    ["initiator", "owner"].iter().any(|field| data.get(field).and_then(Value::as_str) == Some("remote"))
}

/// The value behind names with points between them.
fn find<'a>(data: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(data, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// A number, also one that is written as a text, as some programs do.
fn number_of(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// A whole number in a range; `None`: there is none.
fn whole(data: &Value, path: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, String> {
    let Some(value) = find(data, path) else { return Ok(None) };
    whole_of(value, &range).map(Some).ok_or_else(|| refused(&format!("data.{path}"), value, &range))
}

fn whole_of(value: &Value, range: &RangeInclusive<u64>) -> Option<u64> {
    let exact = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    // Some programs write whole numbers with a point.
    let rounded = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number));
    exact.or_else(|| rounded().map(|number| number as u64)).filter(|number| range.contains(number))
}

fn refused(field: &str, value: &Value, range: &RangeInclusive<u64>) -> String {
    format!("{field} is {}; allowed is a whole number from {} to {}", shown(value), range.start(), range.end())
}

/// A value in a message, without its middle if it is long.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(80).chain(['…']).collect() }
}

fn amount(data: &Value, path: &str) -> Result<Option<u64>, String> {
    // A threshold without end is the largest number in some files.
    if path == "ssthresh" && find(data, path).and_then(number_of).is_some_and(|number| number > LARGEST_AMOUNT as f64) {
        return Ok(None);
    }
    whole(data, path, 0..=LARGEST_AMOUNT)
}

fn millis(data: &Value, path: &str) -> Result<Option<Duration>, String> {
    let Some(value) = find(data, path) else { return Ok(None) };
    let number = number_of(value).filter(|number| (0.0..=LONGEST_DELAY).contains(number));
    let allowed = || format!("data.{path} is {}; allowed is 0 to {LONGEST_DELAY:.0} ms", shown(value));
    number.map(|number| Some(Duration::from_secs(number / 1e3))).ok_or_else(allowed)
}

/// An RTT; `None`: there is none, or a coarse clock saw no time pass.
fn rtt(data: &Value, path: &str, dialect: &Dialect) -> Result<Option<Duration>, String> {
    let Some(value) = find(data, path) else { return Ok(None) };
    let millis = number_of(value).map(|number| number * dialect.unit).filter(|ms| (0.0..=LONGEST_RTT).contains(ms));
    let millis =
        millis.ok_or_else(|| format!("data.{path} is {}; allowed is 0 to {LONGEST_RTT:.0} ms", shown(value)))?;
    Ok(Some(Duration::from_secs(millis / 1e3)).filter(|rtt| *rtt > Duration::ZERO))
}

/// The payload of an answer of `flowstart serve`.
fn answered(data: &Value) -> Result<u64, String> {
    let missing = || "flowstart:answered has no payload or no fct_ms".to_owned();
    let payload = whole(data, "payload", 0..=LARGEST_AMOUNT)?.ok_or_else(missing)?;
    let millis = find(data, "fct_ms").ok_or_else(missing)?;
    match number_of(millis).filter(|millis| *millis > 0.0 && *millis <= LONGEST_ANSWER) {
        Some(_) => Ok(payload),
        None => {
            Err(format!("data.fct_ms is {}; allowed is more than 0 and up to {LONGEST_ANSWER:?} ms", shown(millis)))
        }
    }
}

fn sources(data: &Value) -> Vec<Source> {
    let listed = data.get("sources").and_then(Value::as_array).into_iter().flatten();
    let text = |source: &Value, field: &str| source.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    listed.take(MOST_SOURCES).map(|one| Source { name: text(one, "name"), verdict: text(one, "verdict") }).collect()
}

fn packet_number(data: &Value) -> Result<Option<u64>, String> {
    let range = 0..=LARGEST_NUMBER;
    Ok(whole(data, "header.packet_number", range.clone())?.or(whole(data, "packet_number", range)?))
}

fn size(data: &Value) -> Result<Option<u64>, String> {
    for path in ["raw.length", "header.packet_size", "packet_size", "header.length"] {
        if let Some(bytes) = whole(data, path, 1..=65_535)? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn space(data: &Value) -> Option<Space> {
    let found = ["header.packet_type", "packet_type", "type", "header.packet_number_space", "packet_number_space"];
    let name = found.iter().find_map(|path| find(data, path)?.as_str())?;
    match name.to_ascii_lowercase().as_str() {
        "initial" => Some(Space::Initial),
        "handshake" => Some(Space::Handshake),
        "0rtt" | "1rtt" | "zerortt" | "onertt" | "application_data" => Some(Space::Application),
        _ => None,
    }
}

fn frames(data: &Value) -> Frames {
    let Some(listed) = data.get("frames").and_then(Value::as_array).filter(|frames| !frames.is_empty()) else {
        return Frames::default();
    };
    let is = |frame: &Value, kinds: &[&str]| {
        kinds.contains(&frame.get("frame_type").and_then(Value::as_str).unwrap_or_default())
    };
    let silent = ["ack", "path_ack", "connection_close"];
    Frames {
        count: listed.iter().any(|frame| !is(frame, &silent)),
        solicit: listed.iter().any(|frame| !is(frame, &silent) && !is(frame, &["padding"])),
        only_ping: listed.iter().all(|frame| is(frame, &["ping", "immediate_ack", "padding"])),
        streams: listed.iter().filter(|frame| is(frame, &["stream"])).filter_map(stream).collect(),
    }
}

/// A stream, and up to where a frame has its data, if it says so.
fn stream(frame: &Value) -> Option<(u64, u64)> {
    let amount = |path: &str| find(frame, path).and_then(|value| whole_of(value, &(0..=LARGEST_NUMBER)));
    let length = ["length", "raw.payload_length", "raw.length"].iter().find_map(|path| amount(path))?;
    Some((amount("stream_id")?, amount("offset").unwrap_or(0).checked_add(length)?))
}

fn probes_size(data: &Value) -> bool {
    data.get("is_mtu_probe_packet").and_then(Value::as_bool).unwrap_or(false)
}

fn acknowledged(data: &Value, dialect: &Dialect) -> Result<Vec<Acknowledged>, String> {
    let frames = data.get("frames").and_then(Value::as_array).into_iter().flatten();
    let acks = frames.filter(|frame| frame.get("frame_type").and_then(Value::as_str) == Some("ack"));
    acks.map(|frame| acknowledgement(frame, dialect)).collect()
}

fn acknowledgement(frame: &Value, dialect: &Dialect) -> Result<Acknowledged, String> {
    const FIELD: &str = "data.frames.acked_ranges";
    let within = |error: String| error.replacen("data.", "data.frames.", 1);
    let listed = match frame.get("acked_ranges") {
        Some(Value::Array(ranges)) if ranges.len() <= MOST_RANGES => ranges,
        Some(Value::Array(ranges)) => {
            return Err(format!("{FIELD} has {} ranges; allowed are up to {MOST_RANGES}", ranges.len()));
        }
        _ => return Err(format!("{FIELD}: missing; allowed is a list such as [[0,3],[5,9]]")),
    };
    let mut ranges = Vec::with_capacity(listed.len());
    for range in listed {
        let end = |value: &Value| whole_of(value, &(0..=LARGEST_NUMBER));
        let ends: Option<Vec<u64>> = range.as_array().and_then(|range| range.iter().map(end).collect());
        let ends = match ends.as_deref() {
            Some(&[only]) => Some((only, only)),
            Some(&[first, last]) if dialect.raw_noq => last.checked_sub(1).map(|last| (first, last)),
            Some(&[first, last]) => Some((first, last)),
            _ => None,
        };
        let ends = ends.filter(|(first, last)| first <= last);
        let allowed = "allowed are one or two packet numbers, the smaller first";
        ranges.push(ends.ok_or_else(|| format!("{FIELD} has {}; {allowed}", shown(range)))?);
    }
    let delay = if dialect.raw_noq {
        let encoded = whole(frame, "ack_delay", 0..=LARGEST_AMOUNT).map_err(within)?.unwrap_or(0);
        Duration::from_micros(encoded.min(1_000_000_000) << dialect.ack_delay_exponent)
    } else {
        millis(frame, "ack_delay").map_err(within)?.unwrap_or_default()
    };
    Ok(Acknowledged { ranges, delay, marks: whole(frame, "ce", 0..=LARGEST_NUMBER).map_err(within)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_one(event: &Value) -> Result<Event, String> {
        read(event, &Dialect::default())
    }

    fn sent(number: u64, bytes: u64, counts: bool) -> What {
        let (space, number, bytes) = (Some(Space::Application), Some(number), Some(bytes));
        let frames = Frames { count: counts, solicit: counts, ..Frames::default() };
        What::Sent(Sent { space, number, bytes, frames, probes_size: false })
    }

    #[test]
    fn a_packet_means_the_same_in_all_forms() {
        let stream = json!([{ "frame_type": "stream" }, { "frame_type": "ack", "acked_ranges": [[1]] }]);
        let forms = [
            json!({ "time": 3.5, "name": "quic:packet_sent", "data": {
                "header": { "packet_type": "1RTT", "packet_number": 7 }, "raw": { "length": 1200 }, "frames": stream } }),
            json!({ "relative_time": "3.5", "category": "transport", "event": "packet_sent", "data": {
                "packet_type": "1rtt", "header": { "packet_number": "7", "packet_size": 1200 } } }),
            json!({ "time": 3.5, "name": "transport:packet_sent", "data": {
                "type": "0RTT", "packet_number": 7.0, "packet_size": 1200, "frames": [] } }),
        ];
        for form in forms {
            assert_eq!(read_one(&form).unwrap(), Event { time: Some(3.5), group: None, what: sent(7, 1200, true) });
        }
        let fields = ["relative_time", "category", "event_type", "data"].map(str::to_owned).to_vec();
        let listed = json!([3.5, "transport", "packet_sent", { "packet_type": "1RTT", "packet_number": 7,
            "packet_size": 1200, "frames": [{ "frame_type": "ack" }] }]);
        let dialect = Dialect { fields, ..Dialect::default() };
        assert_eq!(read(&listed, &dialect).unwrap().what, sent(7, 1200, false));
    }

    #[test]
    fn acknowledgements_are_read_with_their_delay_and_marks() {
        let event = |ranges: Value| {
            let ack = json!({ "frame_type": "ack", "acked_ranges": ranges, "ack_delay": 25.6, "ce": 4 });
            json!({ "time": 1, "name": "transport:packet_received", "data": {
                "header": { "packet_type": "handshake" }, "frames": [{ "frame_type": "ping" }, ack] } })
        };
        let read = |ranges| match read_one(&event(ranges)).map(|event| event.what) {
            Ok(What::Received { space: Some(Space::Handshake), frames }) => frames,
            other => panic!("{other:?}"),
        };
        let delay = Duration::from_micros(25_600);
        let expected = Acknowledged { ranges: vec![(0, 3), (5, 5)], delay, marks: Some(4) };
        assert_eq!(read(json!([[0, 3], [5]])), [expected]);
        for wrong in [json!([[3, 0]]), json!([[1, 2, 3]]), json!([["x"]]), json!([[-1]]), json!([5])] {
            let error = read_one(&event(wrong)).unwrap_err();
            assert!(
                error.contains("data.frames.acked_ranges has") && error.contains("allowed are one or two"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_noq_writes_otherwise_is_put_right() {
        let dialect = Dialect { raw_noq: true, ack_delay_exponent: 3, ..Dialect::default() };
        let ack = json!({ "frame_type": "ack", "acked_ranges": [[0, 4]], "ack_delay": 25 });
        let event = json!({ "time": 1, "name": "quic:packet_received", "data": {
            "header": { "packet_type": "1RTT" }, "frames": [ack] } });
        let What::Received { frames, .. } = read(&event, &dialect).unwrap().what else { panic!("not received") };
        // 25 x 2^3 us; 0..4 are packets 0 to 3.
        assert_eq!((&frames[0].ranges[..], frames[0].delay), (&[(0, 3)][..], Duration::from_micros(200)));
        let rate = json!({ "time": 1, "name": "quic:recovery_metrics_updated", "data": { "pacing_rate": 125 } });
        let metrics = Metrics { pacing_rate: Some(1000), ..Metrics::default() };
        assert_eq!(read(&rate, &dialect).unwrap().what, What::Metrics(metrics));
    }

    #[test]
    fn windows_have_two_names() {
        for (field, expected) in [("cwnd", Some(5)), ("congestion_window", Some(5)), ("bytes", None)] {
            let event =
                json!({ "time": 0, "name": "recovery:metrics_updated", "data": { field: 5, "ssthresh": 1.8e19 } });
            assert_eq!(read_one(&event).unwrap().what, What::Metrics(Metrics { cwnd: expected, ..Metrics::default() }));
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_field() {
        let sent = |data: Value| json!({ "time": 1, "name": "quic:packet_sent", "data": data });
        for (event, expected) in [
            (
                sent(json!({ "raw": { "length": 65_536 } })),
                "data.raw.length is 65536; allowed is a whole number from 1",
            ),
            (sent(json!({ "raw": { "length": -1 } })), "data.raw.length is -1"),
            (
                sent(json!({ "header": { "packet_number": 1u64 << 62 } })),
                "data.header.packet_number is 4611686018427387904",
            ),
            (json!({ "time": "x", "name": "quic:packet_sent" }), "time is \"x\"; allowed is a number"),
            (json!({ "name": "quic:packet_sent" }), "time: missing"),
            (json!({ "time": 1 }), "name: missing"),
            (json!([1, "transport"]), "the event is a list"),
            (json!(5), "neither an object nor a list"),
            (
                json!({ "time": 1, "name": "recovery:metrics_updated", "data": { "cwnd": 1e300 } }),
                "data.cwnd is 1e+300",
            ),
        ] {
            let error = read_one(&event).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
