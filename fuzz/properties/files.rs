//! What this program reads of itself and of other simulators: logs, rows, frames, and tables to compare with.

#[path = "../../crates/flowstart-validate/src/reference.rs"]
#[allow(dead_code, reason = "validations use all of it")]
mod reference;
#[path = "../../crates/flowstart-lab/src/ends/quic/frames.rs"]
mod sent_frames;

use std::io::Cursor;
use std::path::Path;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::fleet::observed::{self, Observed};
use flowstart_lab::fleet::population::Population;
use flowstart_lab::results::flows::{self, Row};
use flowstart_serve::analyze::log::{self, LogError};
use flowstart_serve::analyze::{metrics, paths};
use flowstart_serve::replay::{Question, replay_from};

use super::text;
use reference::Table;
use sent_frames::Carried;

/// A connection's qlog file, as `flowstart analyze` reads it.
pub fn connection_log(data: &[u8]) -> bool {
    let read = log::parse(&mut &*data, Path::new("c.sqlog"));
    let Ok(connection) = read.inspect_err(|error| assert!(error.to_string().len() < 1000)) else { return false };
    assert!(connection.answers.iter().all(|answer| answer.millis >= 0.0));
    assert!(connection.lost_share().is_none_or(f64::is_finite));
    // Writers are killed and disks are full: what is left says less, not something else.
    for length in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
        match log::parse(&mut &data[..length], Path::new("c.sqlog")) {
            Ok(left) => assert!(connection.answers.starts_with(&left.answers) && left.sent <= connection.sent),
            Err(error) => assert!(matches!(error, LogError::NoScheme { .. }), "{error}"),
        }
    }
    true
}

/// A recorded connection, as `flowstart replay qlog` reads it.
pub fn recording(data: &[u8]) -> bool {
    let question = Question {
        startup: StartupConfig::defaults().remove(0),
        avoidance: AvoidanceConfig::defaults().remove(0),
        hint: None,
        saved: None,
        oracle: None,
    };
    let read = |data: &[u8]| {
        replay_from(Cursor::new(data), Path::new("c.qlog"), &question, &mut |row| {
            assert!(row.cwnd_bytes > 0 && row.time_ms.is_finite());
        })
    };
    let replayed = read(data).inspect_err(|error| assert!(error.to_string().len() < 2000, "{error}"));
    // A file that is cut says less.
    for length in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
        if let (Ok(whole), Ok(left)) = (&replayed, read(&data[..length])) {
            assert!(left.events <= whole.events);
        }
    }
    let Ok(replayed) = replayed else { return false };
    let totals = &replayed.totals;
    assert!(totals.acknowledged + totals.lost <= totals.sent && replayed.rounds.len() <= 1000);
    serde_json::to_string(&replayed).expect("the result can be written");
    true
}

/// The same file, for what it shows of its path. Whatever that is, its table can be read.
pub fn connection_path(data: &[u8]) -> bool {
    let Ok(connection) = log::parse_path(Cursor::new(data), Path::new("c.sqlog")) else { return false };
    let Some(shown) = connection.shown else { return false };
    assert!(shown.min_rtt > Duration::ZERO && shown.delivered > Bytes::ZERO);
    assert!(shown.highest_rate.is_some() || !shown.is_rate_of_link());
    let observed = Observed {
        weight: 1.0,
        size: connection.size,
        rtt: shown.min_rtt,
        rate: shown.highest_rate.unwrap_or(Rate::from_bits_per_sec(0)),
        is_rate_of_link: true,
        queue: Some(shown.queue),
        has_lost: shown.has_lost,
        known: f64::from(connection.is_known),
    };
    let limited = Observed { is_rate_of_link: false, ..observed };
    let table = observed::table(&[observed, limited]).expect("a rate of a link");
    let read = Population::from_text(&table.text).expect("a table");
    assert!((1..=2).contains(&read.kinds.len()));
    true
}

/// A server's metrics, for what they show of paths.
pub fn path_metrics(data: &[u8]) -> bool {
    let paths = match paths::parse(data, Path::new("m.prom")) {
        Ok(paths) => paths,
        Err(error) => {
            assert!(error.to_string().len() < 1000, "an error quotes little of its file");
            return false;
        }
    };
    for buckets in [&paths.rtts, &paths.rates, &paths.sizes] {
        assert!(!buckets.is_empty() && buckets.iter().all(|one| one.count > 0.0 && one.value > 0.0));
        assert!(
            buckets.iter().all(|one| one.value.is_finite())
                && buckets.windows(2).all(|two| two[0].value <= two[1].value)
        );
    }
    assert!((0.0..=1.0).contains(&paths.known));
    true
}

/// A table of transfers, as `flowstart recommend` reads it.
pub fn population(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let population = match Population::from_text(text) {
        Ok(population) => population,
        Err(error) => {
            assert!(error.to_string().len() < 3000, "an error quotes little of its file");
            return false;
        }
    };
    assert!((population.kinds.iter().map(|kind| kind.share).sum::<f64>() - 1.0).abs() < 1e-6);
    let lines = text.lines().count() as u64;
    assert!(population.kinds.iter().all(|kind| (2..=lines).contains(&kind.line) && (0.0..=1.0).contains(&kind.known)));
    true
}

/// The rows of an interrupted experiment, `flows.partial.csv`.
pub fn flow_rows(data: &[u8]) -> bool {
    let Ok(rows) = flows::read_csv(data) else { return false };
    let written = |rows: &[Row]| {
        let mut text = Vec::new();
        flows::write_csv(rows, &mut text).expect("what was read can be written");
        text
    };
    let text = written(&rows);
    // As text, because a number that is none equals nothing.
    assert_eq!(flows::read_csv(&*text).map(|again| written(&again)).as_ref(), Ok(&text));
    !rows.is_empty()
}

/// A table of reference results, as `flowstart validate --reference` reads it.
pub fn reference_table(data: &[u8]) -> bool {
    let Ok(table) = Table::parse("x.csv", data).inspect_err(|error| assert!(error.starts_with("x.csv"))) else {
        return false;
    };
    for row in table.rows() {
        assert_eq!(row.optional("rate"), row.text("rate").ok());
        match row.number_in("rate", 0.0..=1e9) {
            Ok(rate) => assert!((0.0..=1e9).contains(&rate) && row.number("rate") == Ok(rate)),
            Err(error) => assert!(error.starts_with("x.csv"), "{error}"),
        }
    }
    true
}

/// The frames of a packet, as the simulator reads them before they are encrypted.
pub fn frames(data: &[u8]) -> bool {
    let (mut traced, mut untraced) = (Carried::default(), Carried::default());
    traced.read(data, true);
    untraced.read(data, false);
    for (start, end) in &traced.ranges {
        assert!(start < end);
    }
    for pair in traced.ranges.windows(2) {
        assert!(pair[1].1 < pair[0].0, "{:?}", traced.ranges);
    }
    assert!(traced.chunks().all(|chunk| chunk.len > 0 && chunk.len as usize <= data.len()));
    assert!(untraced.ranges.is_empty());
    traced.ranges.clear();
    assert_eq!(traced, untraced);
    traced != Carried::default()
}

/// The metrics of a server.
pub fn server_metrics(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let scrape = match metrics::parse(text, Path::new("m.prom")) {
        Ok(scrape) => scrape,
        Err(error) => {
            assert!(error.to_string().len() < 1000, "an error quotes little of its file");
            return false;
        }
    };
    let twice = [scrape.clone(), scrape.clone()];
    let nothing = metrics::total(&twice).and_then(|total| metrics::total(&[total]));
    assert!(nothing.is_ok_and(|nothing| metrics::analyze(&nothing, None).is_ok_and(|told| told.connections == 0)));
    let told = metrics::analyze(&scrape, None).expect("a baseline that was not asked for");
    for group in &told.groups {
        assert!(group.n > 0);
        let interval = group.vs_baseline.as_ref().and_then(|versus| versus.speedup.zip(versus.speedup_ci95));
        assert!(interval.is_none_or(|(ratio, [low, high])| low <= ratio && ratio <= high), "{group:?}");
    }
    true
}
