use std::fmt::Write as _;
use std::io::Cursor;

use flowstart_core::avoidance::{bbr, cubic};
use flowstart_core::path::AccessTechnology;
use flowstart_core::startup::{blitzstart, halfback, slow_start};

use super::*;

/// What quic-go 0.65.0 and aioquic 1.7.2 wrote as servers, over a link of 20 Mbit/s and 40 ms: 40 KB of payload.
const QUIC_GO: &str = include_str!("recorded/quic-go-0.65.0.sqlog");
const AIOQUIC: &str = include_str!("recorded/aioquic-1.7.2.qlog");

fn question(startup: StartupConfig) -> Question {
    let avoidance = AvoidanceConfig::Cubic(cubic::Config::default());
    Question { startup, avoidance, hint: None, saved: None, oracle: None }
}

fn slow_start() -> Question {
    question(StartupConfig::SlowStart(slow_start::Config::default()))
}

/// Blitzstart with a hint of 20 Mbit/s.
fn blitzstart() -> Question {
    let hint = Hint { bandwidth: Rate::from_mbit(20), technology: AccessTechnology::Unknown };
    Question { hint: Some(hint), ..question(StartupConfig::Blitzstart(blitzstart::Config::default())) }
}

fn with(text: &str, question: &Question) -> Result<Replayed, ReplayError> {
    replay_from(Cursor::new(text.as_bytes()), Path::new("c.sqlog"), question, &mut |_| {})
}

fn refusal(text: &str) -> String {
    with(text, &slow_start()).unwrap_err().to_string()
}

/// A recording, in one of the forms.
#[derive(Clone, Default)]
struct Log {
    /// Time in milliseconds, name and data of events.
    events: Vec<(f64, &'static str, String)>,
}

impl Log {
    /// A handshake of 50 ms.
    fn begun() -> Self {
        let mut log = Self::default();
        log.add(0.0, "packet_received", "\"header\":{\"packet_type\":\"initial\",\"packet_number\":0},\"frames\":[]");
        log.send(0.0, "initial", 0, 1200);
        log.metrics(0.0, 12_000);
        log.ack(50.0, "initial", "[[0]]", "");
        log
    }

    fn add(&mut self, time: f64, name: &'static str, data: &str) {
        self.events.push((time, name, format!("{{{data}}}")));
    }

    fn send(&mut self, time: f64, kind: &str, number: u64, bytes: u64) {
        let header = format!("\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}}");
        self.add(time, "packet_sent", &format!("{header},\"raw\":{{\"length\":{bytes}}}"));
    }

    fn ack(&mut self, time: f64, kind: &str, ranges: &str, more: &str) {
        let frame = format!("{{\"frame_type\":\"ack\",\"acked_ranges\":{ranges}{more}}}");
        let header = format!("\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":1}}");
        self.add(time, "packet_received", &format!("{header},\"frames\":[{frame}]"));
    }

    fn lose(&mut self, time: f64, number: u64) {
        let header = format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}");
        self.add(time, "packet_lost", &header);
    }

    fn metrics(&mut self, time: f64, cwnd: u64) {
        self.add(time, "metrics_updated", &format!("\"congestion_window\":{cwnd}"));
    }

    /// As slow start sends: ten packets, and two for each that is acknowledged.
    fn of_slow_start() -> Self {
        let mut log = Self::begun();
        (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
        for number in 0..10_u64 {
            let time = 100.0 + number as f64;
            log.ack(time, "1RTT", &format!("[[0,{number}]]"), "");
            log.metrics(time, 12_000 + 1200 * (number + 1));
            log.send(time, "1RTT", 10 + 2 * number, 1200);
            log.send(time, "1RTT", 11 + 2 * number, 1200);
        }
        log
    }

    /// A sequence of records, as quic-go has it.
    fn sequence(&self) -> String {
        let mut text = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n".to_owned();
        for (time, name, data) in &self.events {
            let category = if name.starts_with("packet_l") || name.starts_with('m') { "recovery" } else { "transport" };
            writeln!(text, "\u{1e}{{\"time\":{time},\"name\":\"{category}:{name}\",\"data\":{data}}}").unwrap();
        }
        text
    }

    /// An object with `traces` and times of a wall clock, as aioquic has it.
    fn contained(&self) -> String {
        let event = |(time, name, data): &(f64, &str, String)| {
            let data = data.replace("congestion_window", "cwnd");
            format!("{{\"data\": {data}, \"name\": \"transport:{name}\", \"time\": {}}}", 1.7e12 + time)
        };
        let events: Vec<String> = self.events.iter().map(event).collect();
        let end = "\"vantage_point\": {\"type\": \"server\"}";
        format!("{{\"qlog_version\": \"0.3\", \"traces\": [{{\"events\": [{}], {end}}}]}}", events.join(", "))
    }

    /// Events as lists, with differences of times in microseconds.
    fn listed(&self) -> String {
        let mut before = 0.0;
        let mut event = |(time, name, data): &(f64, &str, String)| {
            let micros = (time - std::mem::replace(&mut before, *time)) * 1e3;
            format!("[\"{micros}\",\"transport\",\"{name}\",{data}]")
        };
        let events: Vec<String> = self.events.iter().map(&mut event).collect();
        format!(
            "{{\"traces\":[{{\"vantage_point\":{{\"type\":\"server\"}},\"configuration\":{{\"time_units\":\"us\"}},\
             \"common_fields\":{{\"time_format\":\"delta\"}},\
             \"event_fields\":[\"relative_time\",\"category\",\"event_type\",\"data\"],\"events\":[{}]}}]}}",
            events.join(",")
        )
    }
}

#[test]
fn slow_start_has_the_windows_of_a_recorded_slow_start_in_every_form() {
    let log = Log::of_slow_start();
    let replayed = with(&log.sequence(), &slow_start()).unwrap();
    let launch = replayed.launch.clone().unwrap();
    // Ten packets of 1200 bytes; pacing is twice the window in the RTT of 50 ms: 24 KB in 50 ms.
    assert_eq!((launch.time_ms, launch.packet_number, launch.cwnd_bytes), (50.0, Some(0), 12_000));
    assert_eq!((launch.pacing_rate_bps, launch.handshake_rtt_ms), (Some(3_840_000), Some(50.0)));
    assert_eq!((launch.recorded_cwnd_bytes, &launch.depends_on[..]), (Some(12_000), &[][..]));
    assert_eq!((replayed.differs.clone(), replayed.exit.clone()), (None, None));
    let [round] = &replayed.rounds[..] else { panic!("{:?}", replayed.rounds) };
    // The round ends with the first acknowledgement of what left after the launch.
    assert_eq!((round.end.time_ms, round.end.cwnd_bytes, round.end.recorded_cwnd_bytes), (100.0, 13_200, Some(13_200)));
    assert_eq!((replayed.totals.sent, replayed.totals.acknowledged, replayed.totals.unresolved), (31, 11, 20));
    assert_eq!(replayed.end.as_deref(), Some("server"));
    for other in [log.contained(), log.listed(), log.sequence().replace('\u{1e}', "")] {
        assert_eq!(with(&other, &slow_start()).unwrap().rounds, replayed.rounds);
        let exact = |replayed: Replayed| (replayed.launch, replayed.totals, replayed.given, replayed.events);
        assert_eq!(exact(with(&other, &slow_start()).unwrap()), exact(replayed.clone()));
    }
}

#[test]
fn rows_are_those_of_the_launch_and_of_every_acknowledgement() {
    let mut rows = Vec::new();
    let text = Log::of_slow_start().sequence();
    let replayed =
        replay_from(Cursor::new(text), Path::new("c"), &slow_start(), &mut |row| rows.push(row.clone())).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.event, row.cwnd_bytes)).collect();
    assert_eq!(seen[..3], [("launch", 12_000), ("ack", 13_200), ("ack", 14_400)]);
    assert_eq!((seen.len(), rows.last().unwrap().cwnd_bytes), (11, 24_000));
    assert_eq!(replayed.given.bytes_waiting, 30 * 1200);
}

#[test]
fn what_would_have_been_sent_otherwise_is_found() {
    // 20 Mbit/s for 50 ms are 125 KB, more than ten packets: the last of them is where more would have been sent.
    let more = with(&Log::of_slow_start().sequence(), &blitzstart()).unwrap();
    let differs = more.differs.unwrap();
    assert_eq!((differs.how, differs.packet_number, differs.time_ms), (How::More, 9, 50.0));
    assert_eq!((differs.in_flight_bytes, differs.event, differs.line), (12_000, 14, 15));
    assert_eq!(more.launch.unwrap().depends_on, ["the client's hint"]);
    // Of twenty packets with a recorded window of twenty, slow start sends ten, and one more is too little to tell.
    let mut log = Log::begun();
    log.metrics(50.0, 24_000);
    (0..20).for_each(|number| log.send(50.0, "1RTT", number, 1200));
    let less = with(&log.sequence(), &slow_start()).unwrap().differs.unwrap();
    assert_eq!((less.how, less.packet_number, less.in_flight_bytes, less.cwnd_bytes), (How::Less, 11, 13_200, 12_000));
    // Two probes after a timeout exceed the recorded window as well: 50 + 4 * 25 + 25 ms.
    let mut log = Log::begun();
    (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
    (10..12).for_each(|number| log.send(226.0, "1RTT", number, 1200));
    assert_eq!(with(&log.sequence(), &slow_start()).unwrap().differs, None);
}

#[test]
fn losses_end_startup_whether_they_precede_their_acknowledgement_or_follow_it() {
    let log = |first: bool| {
        let mut log = Log::begun();
        (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
        if first {
            log.lose(100.0, 0);
        }
        log.ack(100.01, "1RTT", "[[1,9]]", "");
        if !first {
            log.lose(100.02, 0);
        }
        log.send(100.1, "1RTT", 10, 1200);
        log
    };
    for first in [true, false] {
        let replayed = with(&log(first).sequence(), &slow_start()).unwrap();
        let exit = replayed.exit.unwrap();
        // CUBIC leaves 0.7 of ten packets.
        assert_eq!((&*exit.reason, exit.cwnd_bytes, exit.ssthresh_bytes), ("loss", Some(8400), Some(8400)), "{first}");
        let [loss] = &replayed.losses[..] else { panic!("{:?}", replayed.losses) };
        assert_eq!((loss.packets, loss.cwnd_before_bytes, loss.cwnd_after_bytes), (1, 12_000, 8400));
        assert_eq!((replayed.totals.lost, replayed.totals.lost_bytes), (1, 1200));
    }
    // The packet arrives after all: the reduction is undone.
    let mut late = log(true);
    late.ack(101.0, "1RTT", "[[0,10]]", "");
    late.send(101.1, "1RTT", 11, 1200);
    let mut last = 0;
    let text = late.sequence();
    let replayed =
        replay_from(Cursor::new(text), Path::new("c"), &slow_start(), &mut |row| last = row.cwnd_bytes).unwrap();
    assert_eq!(replayed.totals.spurious, 1);
    assert!(last >= 12_000, "{last}");
}

#[test]
fn marks_and_probes_for_the_size_of_packets_are_told_apart_from_losses() {
    let mut log = Log::begun();
    (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
    log.ack(100.0, "1RTT", "[[0,4]]", ",\"ce\":2");
    log.ack(101.0, "1RTT", "[[0,5]]", ",\"ce\":2");
    let marked = with(&log.sequence(), &slow_start()).unwrap();
    assert_eq!((marked.exit.unwrap().reason.as_str(), marked.totals.marked), ("ecn", 2));
    let mut log = Log::begun();
    (0..9).for_each(|number| log.send(50.0, "1RTT", number, 1200));
    log.add(
        50.0,
        "packet_sent",
        "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":9},\"raw\":{\"length\":1400},\"is_mtu_probe_packet\":true",
    );
    log.lose(100.0, 9);
    log.ack(100.0, "1RTT", "[[0,8]]", "");
    let probed = with(&log.sequence(), &slow_start()).unwrap();
    assert_eq!((probed.exit, probed.totals.lost, probed.given.segment_bytes), (None, 0, 1200));
}

#[test]
fn a_period_of_losses_is_persistent_congestion() {
    let log = |frames: &str, early: bool| {
        let mut log = if early { Log::default() } else { Log::begun() };
        for number in 0..10 {
            let header = format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}");
            let data = format!("{header},\"raw\":{{\"length\":1200}},\"frames\":[{{\"frame_type\":\"{frames}\"}}]");
            log.add(50.0 + 100.0 * f64::from(number), "packet_sent", &data);
        }
        (0..10).for_each(|number| log.lose(1100.0, number));
        log.send(1101.0, "1RTT", 10, 1200);
        with(&log.sequence(), &slow_start()).unwrap().losses
    };
    // Without an RTT sample before them, or without packets that have to be acknowledged, it is none.
    for (frames, early) in [("stream", true), ("padding", false)] {
        let [loss] = &log(frames, early)[..] else { panic!("{frames}") };
        assert!(loss.packets == 10 && !loss.persistent_congestion, "{loss:?}");
    }
    let losses = log("stream", false);
    let [loss] = &losses[..] else { panic!("{losses:?}") };
    // 900 ms are more than three times 50 + 4 * 25 + 25 ms; the smallest window is two packets.
    assert_eq!((loss.persistent_congestion, loss.cwnd_after_bytes), (true, 2400));
}

#[test]
fn packets_grow_when_a_probe_for_their_size_has_arrived() {
    let smallest_window = |arrives: bool| {
        let mut log = Log::begun();
        (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
        let ping = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":10},\"raw\":{\"length\":1400},\
                    \"frames\":[{\"frame_type\":\"ping\"},{\"frame_type\":\"padding\"}]";
        log.add(50.0, "packet_sent", ping);
        log.ack(100.0, "1RTT", if arrives { "[[0,10]]" } else { "[[0,9]]" }, "");
        (11..21).for_each(|number| log.send(100.0 * number as f64, "1RTT", number, 1200));
        (11..21).for_each(|number| log.lose(2100.0, number));
        log.send(2101.0, "1RTT", 21, 1200);
        let replayed = with(&log.sequence(), &slow_start()).unwrap();
        assert_eq!((replayed.given.segment_bytes, replayed.launch.unwrap().cwnd_bytes), (1200, 12_000));
        replayed.losses[0].cwnd_after_bytes
    };
    // After persistent congestion it is two packets.
    assert_eq!((smallest_window(false), smallest_window(true)), (2400, 2800));
}

#[test]
fn windows_that_are_written_with_the_next_acknowledgement_are_judged_by_it() {
    // Every window is written behind the acknowledgement that follows it. The first answer fills the window, the
    // second one does not: it is paced, or the window has not grown.
    let log = |third: u64| {
        let mut log = Log::begun();
        (0..10).for_each(|number| log.send(50.0, "1RTT", number, 1200));
        let mut next = 10;
        for (place, (window, more)) in [(12_000, 4), (14_400, 2), (third, 2), (third, 2)].into_iter().enumerate() {
            let time = 100.0 + 2.0 * place as f64;
            log.ack(time, "1RTT", &format!("[[0,{}]]", 2 * place + 1), "");
            log.metrics(time, window);
            (next..next + more).for_each(|number| log.send(time, "1RTT", number, 1200));
            next += more;
        }
        with(&log.sequence(), &slow_start()).unwrap().differs
    };
    assert_eq!(log(16_800), None);
    let differs = log(14_400).unwrap();
    assert_eq!((differs.how, differs.in_flight_bytes, differs.cwnd_bytes), (How::More, 14_400, 16_800));
}

#[test]
fn a_sender_without_data_is_limited_by_its_application() {
    // Eight packets, and nothing behind them.
    let log = |more: bool| {
        let mut log = Log::begun();
        log.metrics(50.0, 19_000);
        (0..8).for_each(|number| log.send(50.0, "1RTT", number, 1200));
        log.ack(100.0, "1RTT", "[[0,3]]", "");
        if more {
            log.send(150.0, "1RTT", 8, 1200);
        }
        with(&log.sequence(), &slow_start()).unwrap().rounds[0].end.cwnd_bytes
    };
    assert_eq!(log(false), 12_000);
    // Who sends later had nothing then, but nobody knows.
    assert_eq!(log(true), 12_000 + 4 * 1200);
}

#[test]
fn the_recorded_launch_has_its_own_window() {
    let mut log = Log::begun();
    log.send(50.0, "1RTT", 0, 100);
    log.add(51.0, "launch", "\"cwnd_bytes\":168000,\"pacing_rate_bps\":20000000");
    (1..20).for_each(|number| log.send(51.0, "1RTT", number, 1200));
    let text = log.sequence().replace("transport:launch", "flowstart:launch");
    let replayed = with(&text, &slow_start()).unwrap();
    let launch = replayed.launch.unwrap();
    assert_eq!((launch.time_ms, launch.cwnd_bytes), (50.0, 12_000));
    assert_eq!((launch.recorded_cwnd_bytes, launch.recorded_pacing_rate_bps), (Some(168_000), Some(20_000_000)));
    assert_eq!(replayed.differs.unwrap().how, How::Less);
}

#[test]
fn an_rtt_is_that_of_packets_which_have_to_be_acknowledged() {
    let log = |frame: &str| {
        let mut log = Log::default();
        let header = "\"header\":{\"packet_type\":\"handshake\",\"packet_number\":0},\"raw\":{\"length\":50}";
        log.add(0.0, "packet_sent", &format!("{header},\"frames\":[{{\"frame_type\":\"{frame}\"}}]"));
        log.ack(40.0, "handshake", "[[0]]", "");
        log.send(41.0, "1RTT", 0, 1200);
        with(&log.sequence(), &slow_start()).unwrap().launch.map(|launch| launch.handshake_rtt_ms)
    };
    assert_eq!((log("crypto"), log("padding")), (Some(Some(40.0)), None));
}

#[test]
fn recordings_of_other_programs_are_replayed() {
    for (text, segment, events) in [(QUIC_GO, 1280, 176), (AIOQUIC, 1200, 228)] {
        let replayed = with(text, &slow_start()).unwrap();
        assert_eq!((replayed.given.segment_bytes, replayed.events), (segment, events));
        assert!(replayed.cuts.is_empty() && replayed.has_recorded_window);
        let launch = replayed.launch.unwrap();
        assert_eq!(launch.cwnd_bytes, 10 * segment);
        // The link has 40 ms.
        let rtt = launch.handshake_rtt_ms.unwrap();
        assert!((40.0..60.0).contains(&rtt), "{rtt}");
        assert_eq!((replayed.totals.lost, replayed.totals.unresolved), (0, 0));
        assert_eq!(replayed.totals.acknowledged, replayed.totals.sent);
    }
    // aioquic starts like slow start, but counts what it sent before its data as well; quic-go begins with 32 packets.
    let aioquic = with(AIOQUIC, &slow_start()).unwrap();
    assert_eq!(aioquic.differs, None);
    for round in &aioquic.rounds {
        assert_eq!(round.end.recorded_cwnd_bytes.unwrap() - round.end.cwnd_bytes, 1125, "{round:?}");
    }
    assert_eq!(with(QUIC_GO, &slow_start()).unwrap().differs.unwrap().how, How::Less);
}

#[test]
fn a_file_that_is_cut_gives_what_is_whole_and_says_where() {
    for text in [QUIC_GO, AIOQUIC] {
        let whole = with(text, &slow_start()).unwrap();
        for end in (0..text.len()).step_by(997) {
            let cut = &text[..end];
            match with(cut, &slow_start()) {
                Ok(replayed) => {
                    assert!(replayed.events < whole.events);
                    // Between two records nothing is missing that a reader could know of.
                    let [place] = &replayed.cuts[..] else { panic!("{end}: {:?}", replayed.cuts) };
                    assert!(place.place.line as usize <= cut.lines().count(), "{place:?}");
                }
                Err(error) => assert!(error.to_string().contains("no packet_sent event"), "{end}: {error}"),
            }
        }
    }
    let text = Log::of_slow_start().sequence();
    let (kept, rest) = text.split_at(text.rfind("packet_sent").unwrap());
    assert!(!rest.is_empty());
    let replayed = with(kept, &slow_start()).unwrap();
    let line = kept.lines().count() as u64;
    assert_eq!(replayed.cuts, [Cut { place: Place { line, column: 2 }, missing: "the record" }]);
    assert_eq!(replayed.events, line - 2);
}

#[test]
fn bad_values_are_refused_with_file_line_and_field() {
    let log = Log::of_slow_start();
    let with_event = |time: f64, name: &'static str, data: &str| {
        let mut log = log.clone();
        log.add(time, name, data);
        refusal(&log.sequence())
    };
    let line = log.events.len() + 2;
    let error = with_event(200.0, "packet_sent", "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":40}");
    assert!(error.contains(&format!("c.sqlog:{line}:2: data.raw.length: missing; allowed is")), "{error}");
    let error = with_event(200.0, "packet_sent", "\"raw\":{\"length\":0}");
    assert!(error.contains("data.raw.length is 0; allowed is a whole number from 1 to 65535"), "{error}");
    let again = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":29},\"raw\":{\"length\":1200}";
    assert!(with_event(200.0, "packet_sent", again).contains("packet_number 29 is in flight already; allowed"));
    let back = with_event(-2000.0, "packet_sent", again);
    assert!(
        back.contains("time is -2000, which is -2109.000 ms after") && back.contains("at most 1000 ms back"),
        "{back}"
    );
    assert!(with_event(1e12, "packet_sent", again).contains("10000000000 ms in all"));
    let several = log.contained().replace("{\"qlog_version\"", "{\"a\":[{}],\"qlog_version\"");
    let one = &several[several.find("[{\"events\"").unwrap() + 1..several.len() - 2];
    let error = refusal(&several.replacen("\"traces\": [", &format!("\"traces\": [{one}, "), 1));
    assert!(error.contains("several traces have events; allowed is a file of one connection"), "{error}");
    assert!(refusal("").contains("no packet_sent event has a packet number"));
    assert!(refusal("nonsense").contains("c.sqlog:1:1: found `n`; allowed is `{`"));
    assert!(refusal("{\"trace\":{}}\n{\"time\":1,\"name\":tru}\n").contains("c.sqlog:2:"));
    let two = "{\"time\":1,\"name\":\"a:b\",\"group_id\":\"x\"}\n{\"time\":1,\"name\":\"a:b\",\"group_id\":\"y\"}\n";
    assert!(refusal(two).contains("c.sqlog:2:1: group_id is \"y\" after \"x\"; allowed is a file of one connection"));
    let units = "{\"trace\":{\"configuration\":{\"time_units\":\"s\"}}}\n";
    assert!(refusal(units).contains("time_units is \"s\"; allowed is \"ms\" or \"us\""));
}

#[test]
fn schemes_that_a_recording_cannot_show_are_refused() {
    let error = with(QUIC_GO, &question(StartupConfig::Halfback(halfback::Config::default()))).unwrap_err();
    assert!(error.to_string().contains("halfback needs data to be sent again"), "{error}");
    let with_bbr = |version| {
        let avoidance = AvoidanceConfig::Bbr(bbr::Config { version, ..bbr::Config::default() });
        with(QUIC_GO, &Question { avoidance, ..slow_start() })
    };
    for version in [bbr::Version::One, bbr::Version::Three] {
        assert!(with_bbr(version).unwrap().rounds.len() > 1);
    }
}
