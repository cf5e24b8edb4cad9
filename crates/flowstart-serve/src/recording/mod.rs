//! qlog files of one connection, of all drafts and programs, as sequences of timed events.
//!
//! This is the only reader of files that other programs may have written: [`replay`](crate::replay) and what
//! [`analyze`](crate::analyze) says of paths both rely on it. A file is read once for what surrounds the events,
//! because some programs write that last, and then for its events. Nobody keeps the events.
//!
//! | Looking for | Where |
//! |---|---|
//! | one JSON value after the other, also of a file that is cut | `scan` |
//! | events of all drafts and programs, checked | `event` |
//! | times, and what concerns the whole file | this module |

pub(crate) mod event;
mod scan;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flowstart_core::time::{Duration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use self::event::{Dialect, Event, What};
pub use self::scan::Place;
use self::scan::{Item, ScanError, Scanner};

/// Largest file that is read, in bytes.
const LONGEST_FILE: u64 = 1 << 32;
/// How far time may go back from one event to the next, in milliseconds. Programs with several threads mix events up
/// a little.
const FARTHEST_BACK: f64 = 1000.0;
/// Longest recording, in milliseconds: 115 days.
const LONGEST: f64 = 1e10;
/// Longest name of an end, in characters.
const LONGEST_END: usize = 32;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("{path}: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A part of it cannot be used.
    #[error("{path}:{place}: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the event begins, or where it is no JSON.
        place: Place,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// It is not what is needed.
    #[error("{path}: {problem}")]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what is needed.
        problem: String,
    },
}

/// Where a file ends too early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Where what has no end begins.
    #[serde(flatten)]
    pub place: Place,
    /// What has no end.
    pub missing: &'static str,
}

/// What surrounds the events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Which end wrote the file, if it says so.
    pub(crate) end: Option<String>,
    /// The connection, if the file names it.
    pub(crate) group: Option<String>,
    /// How its events are to be read.
    pub(crate) dialect: Dialect,
    /// Times count from the event before.
    differences: bool,
}

/// An event with its time and its place.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) time: Timestamp,
    /// The file has a later event before it, whose time is taken for both.
    pub(crate) is_mixed_up: bool,
    pub(crate) place: Place,
    /// Its number; the first is 1.
    pub(crate) number: u64,
    pub(crate) what: What,
}

/// Most places of a file that are told as cut.
const MOST_CUTS: usize = 16;

/// A file.
#[derive(Debug)]
pub(crate) struct Recording<R> {
    path: PathBuf,
    input: R,
}

/// The file at `path`.
pub(crate) fn open(path: &Path) -> Result<File, RecordingError> {
    flowstart_files::open(path, LONGEST_FILE)
        .map_err(|error| RecordingError::Unreadable { path: path.to_owned(), cause: error.into() })
}

/// What surrounds events.
#[derive(Debug)]
enum Around {
    Header(Value),
    Field(String, Value),
}

impl<R: Read + Seek> Recording<R> {
    /// What `input` holds; `path` is for messages.
    pub(crate) fn new(input: R, path: &Path) -> Self {
        Self { path: path.to_owned(), input }
    }

    /// The file cannot be used.
    pub(crate) fn unfit(&self, problem: String) -> RecordingError {
        RecordingError::Unfit { path: self.path.clone(), problem }
    }

    /// What surrounds the events. A sequence is read up to its header.
    pub(crate) fn surroundings(&mut self) -> Result<Surroundings, RecordingError> {
        let mut found = Surroundings::default();
        let path = self.path.clone();
        self.around(|place, around| {
            let taken = match around {
                Around::Header(header) => found.take_header(&header),
                Around::Field(name, value) => found.take_field(&name, &value),
            };
            taken.map_err(|problem| damaged(&path, place, problem))
        })?;
        Ok(found)
    }

    /// A scanner at the beginning.
    fn scanner(&mut self) -> Result<Scanner<BufReader<&mut R>>, RecordingError> {
        let rewound = self.input.seek(SeekFrom::Start(0));
        rewound.map_err(|cause| RecordingError::Unreadable { path: self.path.clone(), cause })?;
        Ok(Scanner::new(BufReader::with_capacity(1 << 16, &mut self.input)))
    }

    /// What surrounds the events.
    fn around(
        &mut self,
        mut visit: impl FnMut(Place, Around) -> Result<(), RecordingError>,
    ) -> Result<(), RecordingError> {
        let path = self.path.clone();
        let mut scanner = self.scanner()?;
        let mut text = Vec::new();
        while let Some(item) = scanner.next(&mut text).map_err(|error| of_scan(&path, error))? {
            let place = scanner.place();
            match item {
                Item::Event | Item::Trace | Item::Cut(_) => {}
                Item::Field(name) => visit(place, Around::Field(name, parsed(&path, place, &text)?))?,
                // The first record may be a header; what follows are events.
                Item::Record => return visit(place, Around::Header(parsed(&path, place, &text)?)),
            }
        }
        Ok(())
    }

    /// Every event, in order. Returns up to [`MOST_CUTS`] places where the file is cut.
    pub(crate) fn events(
        &mut self,
        surroundings: &Surroundings,
        visit: &mut dyn FnMut(Timed) -> Result<(), String>,
    ) -> Result<Vec<Cut>, RecordingError> {
        let path = self.path.clone();
        let mut scanner = self.scanner()?;
        let mut clock = Clock::new(surroundings);
        let mut cuts = Vec::new();
        let (mut text, mut number, mut group) = (Vec::new(), 0, None);
        let (mut trace, mut with_events) = (0_u64, None);
        while let Some(item) = scanner.next(&mut text).map_err(|error| of_scan(&path, error))? {
            let place = scanner.place();
            match item {
                Item::Trace => trace += 1,
                Item::Cut(missing) if cuts.len() < MOST_CUTS => cuts.push(Cut { place, missing }),
                Item::Field(_) | Item::Cut(_) => {}
                Item::Record | Item::Event => {
                    let value = parsed(&path, place, &text)?;
                    if item == Item::Record && is_header(&value) {
                        continue;
                    }
                    if *with_events.get_or_insert(trace) != trace {
                        let problem = "several traces have events; allowed is a file of one connection".into();
                        return Err(RecordingError::Unfit { path, problem });
                    }
                    number += 1;
                    let wrong = |problem| damaged(&path, place, problem);
                    let Event { time, group: of, what } = event::read(&value, &surroundings.dialect).map_err(wrong)?;
                    if let Some(of) = of {
                        let known = group.get_or_insert_with(|| of.clone());
                        if *known != of {
                            let problem =
                                format!("group_id is {of:?} after {known:?}; allowed is a file of one connection");
                            return Err(wrong(problem));
                        }
                    }
                    let time = clock.at(time).map_err(wrong)?;
                    let is_mixed_up = clock.before < clock.latest;
                    visit(Timed { time, is_mixed_up, place, number, what }).map_err(wrong)?;
                }
            }
        }
        Ok(cuts)
    }
}

/// Whether a record is a header: it says what the file is, and is no event.
fn is_header(value: &Value) -> bool {
    value.is_object() && ["name", "event", "event_type"].iter().all(|field| value.get(field).is_none())
}

fn damaged(path: &Path, place: Place, problem: String) -> RecordingError {
    RecordingError::Damaged { path: path.to_owned(), place, problem }
}

fn of_scan(path: &Path, error: ScanError) -> RecordingError {
    match error {
        ScanError::Unreadable(cause) => RecordingError::Unreadable { path: path.to_owned(), cause },
        ScanError::Damaged(place, problem) => damaged(path, place, problem),
    }
}

fn parsed(path: &Path, place: Place, text: &[u8]) -> Result<Value, RecordingError> {
    serde_json::from_slice(text).map_err(|error| {
        let column = if error.line() == 1 { place.column + error.column().saturating_sub(1) as u64 } else { 1 };
        let place = Place { line: place.line + error.line().saturating_sub(1) as u64, column };
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        damaged(path, place, format!("{message}; allowed is JSON"))
    })
}

impl Surroundings {
    /// The header of a sequence.
    fn take_header(&mut self, header: &Value) -> Result<(), String> {
        if !is_header(header) {
            return Ok(());
        }
        let Some(Value::Object(trace)) = header.get("trace") else { return Ok(()) };
        // noq itself names no schemas; `flowstart serve` does.
        let format = header.get("serialization_format").and_then(Value::as_str);
        self.dialect.raw_noq = format == Some("JSON-SEQ")
            && trace.get("event_schemas").and_then(Value::as_array).is_some_and(Vec::is_empty);
        trace.iter().try_for_each(|(name, value)| self.take_field(name, value))
    }

    /// A member of a trace.
    fn take_field(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        match name {
            "vantage_point" => self.end = text("type").map(|end| end.chars().take(LONGEST_END).collect()),
            "event_fields" => {
                let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                self.dialect.fields = names.take(32).map(str::to_owned).collect();
            }
            "configuration" | "common_fields" => {
                self.dialect.unit = match value.get("time_units") {
                    None => self.dialect.unit,
                    Some(unit) if unit == "ms" => 1.0,
                    Some(unit) if unit == "us" => 1e-3,
                    Some(other) => {
                        return Err(format!("time_units is {}; allowed is \"ms\" or \"us\"", event::shown(other)));
                    }
                };
                self.differences |= matches!(text("time_format"), Some("delta" | "relative_to_previous_event"));
                let group = text("group_id").or_else(|| text("ODCID")).map(event::group);
                self.group = group.or(self.group.take());
            }
            _ => {}
        }
        Ok(())
    }
}

/// Times of a file as times of a recording, which begins at 0.
#[derive(Debug)]
struct Clock {
    /// Milliseconds per unit of time.
    unit: f64,
    differences: bool,
    /// The first time, which is where the recording begins: it may be the wall clock's.
    first: Option<f64>,
    /// Time of the event before, in milliseconds from the first.
    before: f64,
    /// The latest of all times.
    latest: f64,
}

impl Clock {
    fn new(surroundings: &Surroundings) -> Self {
        let (unit, differences) = (surroundings.dialect.unit, surroundings.differences);
        Self { unit, differences, first: None, before: 0.0, latest: 0.0 }
    }

    /// The time of an event; without one, it is that of the latest.
    fn at(&mut self, time: Option<f64>) -> Result<Timestamp, String> {
        let Some(time) = time else { return Ok(self.timestamp()) };
        let is_first = self.first.is_none();
        let first = *self.first.get_or_insert(time);
        let millis = match self.differences {
            // The first one has nothing before it, and counts from elsewhere.
            true if is_first => 0.0,
            true => self.before + time * self.unit,
            false => (time - first) * self.unit,
        };
        if !(millis <= LONGEST && millis >= self.latest - FARTHEST_BACK) {
            let from = format!("{:.3} ms after the event before it", millis - self.latest);
            let allowed = format!("allowed is at most {FARTHEST_BACK:.0} ms back, and {LONGEST:.0} ms in all");
            return Err(format!("time is {time}, which is {from}; {allowed}"));
        }
        (self.before, self.latest) = (millis, self.latest.max(millis));
        Ok(self.timestamp())
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::ZERO + Duration::from_secs(self.latest / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(differences: bool, unit: f64, times: &[f64]) -> Result<Vec<u64>, String> {
        let dialect = Dialect { unit, ..Dialect::default() };
        let mut clock = Clock::new(&Surroundings { dialect, differences, ..Surroundings::default() });
        times
            .iter()
            .map(|time| clock.at(Some(*time)).map(|time| time.since(Timestamp::ZERO).as_nanos() / 1000))
            .collect()
    }

    #[test]
    fn the_first_time_is_the_origin_in_every_format() {
        // The example of the drafts: absolute, and as differences.
        let expected = vec![0, 5000, 22_000, 88_000];
        assert_eq!(times(false, 1.0, &[1500.0, 1505.0, 1522.0, 1588.0]).unwrap(), expected);
        assert_eq!(times(true, 1.0, &[1500.0, 5.0, 17.0, 66.0]).unwrap(), expected);
        assert_eq!(times(true, 1.0, &[1.7e12, 5.0, 17.0, 66.0]).unwrap(), expected);
        assert_eq!(times(true, 1e-3, &[1500.0, 5e3, 17e3, 66e3]).unwrap(), expected);
        // Time that goes back a little stands still, and what follows counts from the event itself.
        assert_eq!(times(true, 1.0, &[0.0, 10.0, -4.0, 6.0]).unwrap(), [0, 10_000, 10_000, 12_000]);
        assert!(times(true, 1.0, &[0.0, 2e10]).unwrap_err().contains("10000000000 ms in all"));
        assert!(times(false, 1.0, &[5000.0, 3999.0]).unwrap_err().contains("-1001.000 ms after the event before it"));
    }
}
