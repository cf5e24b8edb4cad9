//! The JSON values of a qlog file, one after the other, in memory that does not depend on the file.
//!
//! A file is a sequence of records (RFC 7464, or a line each): a header with `trace`, and events. Or it is one object
//! that contains `traces`, each with its `events`. [`Scanner`] walks through both and hands out one event at a time, so
//! of a file that ends too early everything that is whole is found.

use std::fmt;
use std::io::{self, BufRead};

use serde::Serialize;

/// Longest value that is handed out, in bytes. An acknowledgement with many gaps is far shorter.
const LONGEST: usize = 1 << 20;
/// Deepest nesting of values.
const DEEPEST: usize = 64;
/// Longest name of a member that is read.
const LONGEST_KEY: usize = 256;
/// Stands before every record (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The byte in that line.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// What the scanner has found. Its text is in the caller's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A record of a sequence: the header, or an event.
    Record,
    /// Another of `traces` begins.
    Trace,
    /// A member of a trace, such as `common_fields`.
    Field(String),
    /// One of the events of a trace.
    Event,
    /// A value has no end: the file ends, or the next record begins. Says what has no end.
    Cut(&'static str),
}

/// Why scanning ends.
#[derive(Debug)]
pub(crate) enum ScanError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// It is no JSON at this place.
    Damaged(Place, String),
}

/// Why a value cannot be handed out.
enum Broken {
    /// It has no end.
    Cut,
    Other(ScanError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Other(ScanError::Unreadable(error))
    }
}

/// Where the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Between records.
    Sequence,
    /// Among the members of the object that contains `traces`.
    Container,
    /// Among `traces`.
    Traces,
    /// Among the members of a trace.
    Trace,
    /// Among the events of a trace.
    Events,
    /// Behind the end of what can be read.
    End,
}

impl Level {
    /// What has no end if the file ends here.
    const fn unfinished(self) -> &'static str {
        match self {
            Self::Sequence | Self::End => "the record",
            Self::Container => "the object around `traces`",
            Self::Traces => "the list `traces`",
            Self::Trace => "the trace",
            Self::Events => "the list `events`",
        }
    }
}

/// Walks through a file.
#[derive(Debug)]
pub(crate) struct Scanner<R> {
    input: R,
    next: Place,
    /// Where the latest item begins.
    begin: Place,
    level: Level,
    /// Nothing of the list or object was read yet, so no comma is due.
    first: bool,
}

impl<R: BufRead> Scanner<R> {
    /// A scanner at the beginning of `input`.
    pub(crate) fn new(input: R) -> Self {
        let start = Place { line: 1, column: 1 };
        Self { input, next: start, begin: start, level: Level::Sequence, first: true }
    }

    /// Where the latest item begins.
    pub(crate) fn place(&self) -> Place {
        self.begin
    }

    /// The next item, whose text replaces `text`; `None` at the end.
    pub(crate) fn next(&mut self, text: &mut Vec<u8>) -> Result<Option<Item>, ScanError> {
        loop {
            let level = self.level;
            match self.step(text) {
                Ok(Step::Found(item)) => return Ok(Some(item)),
                Ok(Step::On) => {}
                Ok(Step::End) => return Ok(None),
                Err(Broken::Other(error)) => return Err(error),
                Err(Broken::Cut) => {
                    let within_event = level == Level::Events && !text.is_empty();
                    let at_end = self.input.fill_buf().map_err(ScanError::Unreadable)?.is_empty();
                    self.level = if at_end { Level::End } else { Level::Sequence };
                    return Ok(Some(Item::Cut(if within_event { "the event" } else { level.unfinished() })));
                }
            }
        }
    }

    fn step(&mut self, text: &mut Vec<u8>) -> Result<Step, Broken> {
        text.clear();
        match self.level {
            Level::End => Ok(Step::End),
            Level::Sequence => self.record(text),
            Level::Container => self.member(text, Level::Sequence),
            Level::Trace => self.member(text, Level::Traces),
            Level::Traces => self.element(text),
            Level::Events => self.element(text),
        }
    }

    /// A record, or the beginning of an object that contains traces.
    fn record(&mut self, text: &mut Vec<u8>) -> Result<Step, Broken> {
        loop {
            match self.peek_behind_space()? {
                None => {
                    self.level = Level::End;
                    return Ok(Step::End);
                }
                Some(RECORD_SEPARATOR) => self.skip(RECORD_SEPARATOR),
                Some(b'{') => break,
                Some(other) => return Err(self.unexpected(other, "`{`, a record")),
            }
        }
        self.begin = self.next;
        self.take(b'{', text);
        let mut first = true;
        loop {
            let Some(key) = self.key(text, &mut first)? else { return Ok(Step::Found(Item::Record)) };
            self.space(text)?;
            let byte = self.peek()?.ok_or(Broken::Cut)?;
            if key == "traces" && byte == b'[' {
                text.clear();
                self.skip(b'[');
                (self.level, self.first) = (Level::Traces, true);
                return Ok(Step::On);
            }
            self.value(text)?;
        }
    }

    /// A member of an object, of which lists are entered that lead to events. At its end the level is `outer`.
    fn member(&mut self, text: &mut Vec<u8>, outer: Level) -> Result<Step, Broken> {
        self.begin = self.next;
        let mut first = self.first;
        let Some(key) = self.key(text, &mut first)? else {
            (self.level, self.first) = (outer, false);
            return Ok(Step::On);
        };
        self.first = first;
        text.clear();
        self.space(text)?;
        text.clear();
        let byte = self.peek()?.ok_or(Broken::Cut)?;
        let enters = match self.level {
            Level::Trace if key == "events" => Some(Level::Events),
            Level::Container if key == "traces" => Some(Level::Traces),
            _ => None,
        };
        if let Some(inner) = enters.filter(|_| byte == b'[') {
            self.skip(b'[');
            (self.level, self.first) = (inner, true);
            return Ok(Step::On);
        }
        self.begin = self.next;
        self.value(text)?;
        Ok(if self.level == Level::Trace { Step::Found(Item::Field(key)) } else { Step::On })
    }

    /// An element of a list of traces or events.
    fn element(&mut self, text: &mut Vec<u8>) -> Result<Step, Broken> {
        let outer = if self.level == Level::Events { Level::Trace } else { Level::Container };
        let mut byte = self.peek_behind_space()?.ok_or(Broken::Cut)?;
        if byte == b']' {
            self.skip(byte);
            (self.level, self.first) = (outer, false);
            return Ok(Step::On);
        }
        if !std::mem::replace(&mut self.first, false) {
            if byte != b',' {
                return Err(self.unexpected(byte, "`,` or `]`"));
            }
            self.skip(byte);
            byte = self.peek_behind_space()?.ok_or(Broken::Cut)?;
        }
        self.begin = self.next;
        if self.level == Level::Events {
            self.value(text)?;
            return Ok(Step::Found(Item::Event));
        }
        if byte != b'{' {
            return Err(self.unexpected(byte, "`{`, a trace"));
        }
        self.skip(byte);
        (self.level, self.first) = (Level::Trace, true);
        Ok(Step::Found(Item::Trace))
    }

    /// The name of the next member and its colon; `None` at the end of the object.
    fn key(&mut self, text: &mut Vec<u8>, first: &mut bool) -> Result<Option<String>, Broken> {
        self.space(text)?;
        let mut byte = self.peek()?.ok_or(Broken::Cut)?;
        if byte == b'}' {
            self.take(byte, text);
            return Ok(None);
        }
        if !std::mem::replace(first, false) {
            if byte != b',' {
                return Err(self.unexpected(byte, "`,` or `}`"));
            }
            self.take(byte, text);
            self.space(text)?;
            byte = self.peek()?.ok_or(Broken::Cut)?;
        }
        if byte != b'"' {
            return Err(self.unexpected(byte, "the name of a member"));
        }
        let begin = text.len();
        self.value(text)?;
        let name = text.get(begin + 1..text.len() - 1).unwrap_or_default();
        let name = String::from_utf8_lossy(name.get(..LONGEST_KEY).unwrap_or(name)).into_owned();
        self.space(text)?;
        match self.peek()?.ok_or(Broken::Cut)? {
            b':' => self.take(b':', text),
            other => return Err(self.unexpected(other, "`:`")),
        }
        Ok(Some(name))
    }

    /// A whole value. Whether it is valid inside is for the JSON parser to say.
    fn value(&mut self, text: &mut Vec<u8>) -> Result<(), Broken> {
        let mut depth = 0_usize;
        loop {
            self.space(text)?;
            let byte = self.peek()?.ok_or(Broken::Cut)?;
            match byte {
                RECORD_SEPARATOR => return Err(Broken::Cut),
                b'"' => self.string(text)?,
                b'{' | b'[' => {
                    depth += 1;
                    if depth > DEEPEST {
                        let problem = format!("values nest deeper than {DEEPEST}, which is what is allowed");
                        return Err(self.damaged(problem));
                    }
                    self.take(byte, text);
                    continue;
                }
                b'}' | b']' if depth == 0 => return Err(self.unexpected(byte, "a value")),
                b'}' | b']' => {
                    depth -= 1;
                    self.take(byte, text);
                }
                b',' | b':' if depth == 0 => return Err(self.unexpected(byte, "a value")),
                b',' | b':' => {
                    self.take(byte, text);
                    continue;
                }
                _ => self.scalar(text)?,
            }
            self.bounded(text)?;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn string(&mut self, text: &mut Vec<u8>) -> Result<(), Broken> {
        self.take(b'"', text);
        loop {
            self.peek()?.ok_or(Broken::Cut)?;
            let buffer = self.input.fill_buf()?;
            let special = |byte: &u8| matches!(*byte, b'"' | b'\\' | b'\n' | RECORD_SEPARATOR);
            let plain = buffer.iter().position(special).unwrap_or(buffer.len());
            text.extend(buffer.iter().take(plain));
            self.input.consume(plain);
            self.next.column += plain as u64;
            self.bounded(text)?;
            match self.peek()? {
                Some(b'"') => {
                    self.take(b'"', text);
                    return self.bounded(text);
                }
                Some(b'\\') => {
                    self.take(b'\\', text);
                    if let escaped @ (b'"' | b'\\') = self.peek()?.ok_or(Broken::Cut)? {
                        self.take(escaped, text);
                    }
                }
                Some(b'\n') => return Err(self.damaged("a text goes over the end of a line".into())),
                Some(RECORD_SEPARATOR) => return Err(Broken::Cut),
                // What follows is not in the buffer yet.
                Some(_) => {}
                None => return Err(Broken::Cut),
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn scalar(&mut self, text: &mut Vec<u8>) -> Result<(), Broken> {
        loop {
            match self.peek()? {
                // The last characters of a number may be missing.
                None | Some(RECORD_SEPARATOR) => return Err(Broken::Cut),
                Some(b',' | b'}' | b']' | b':' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\r' | b'\n') => return Ok(()),
                Some(byte) => self.take(byte, text),
            }
            self.bounded(text)?;
        }
    }

    fn bounded(&self, text: &[u8]) -> Result<(), Broken> {
        if text.len() <= LONGEST {
            return Ok(());
        }
        Err(self.damaged(format!("a record is longer than {LONGEST} bytes, which is what is allowed")))
    }

    fn space(&mut self, text: &mut Vec<u8>) -> Result<(), Broken> {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek()? {
            self.take(byte, text);
            self.bounded(text)?;
        }
        Ok(())
    }

    /// The next byte behind space, which nobody keeps.
    fn peek_behind_space(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            match self.peek()? {
                Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) => self.skip(byte),
                other => return Ok(other),
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            match self.input.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, byte: u8, text: &mut Vec<u8>) {
        text.push(byte);
        self.skip(byte);
    }

    fn skip(&mut self, byte: u8) {
        self.input.consume(1);
        if byte == b'\n' {
            self.next = Place { line: self.next.line + 1, column: 1 };
        } else {
            self.next.column += 1;
        }
    }

    fn unexpected(&self, byte: u8, allowed: &str) -> Broken {
        let found = char::from(byte).escape_default();
        if byte == RECORD_SEPARATOR {
            Broken::Cut
        } else {
            self.damaged(format!("found `{found}`; allowed is {allowed}"))
        }
    }

    fn damaged(&self, problem: String) -> Broken {
        Broken::Other(ScanError::Damaged(self.next, problem))
    }
}

/// What one step of the scanner did.
enum Step {
    Found(Item),
    On,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Result<Vec<(Item, String)>, ScanError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        while let Some(item) = scanner.next(&mut buffer)? {
            let text = if matches!(item, Item::Cut(_)) { scanner.place().to_string() } else { String::new() };
            found.push((item, text + &String::from_utf8_lossy(&buffer)));
        }
        Ok(found)
    }

    fn record(text: &str) -> (Item, String) {
        (Item::Record, text.to_owned())
    }

    #[test]
    fn records_of_a_sequence_are_found_with_and_without_separators() {
        let expected = [record("{\"trace\":{}}"), record("{\"time\":1,\"data\":[\"}\\\"\"]}")];
        for text in [
            "\u{1e}{\"trace\":{}}\n\u{1e}{\"time\":1,\"data\":[\"}\\\"\"]}\n",
            "{\"trace\":{}}\n\n{\"time\":1,\"data\":[\"}\\\"\"]}",
        ] {
            assert_eq!(scanned(text).unwrap(), expected);
        }
        assert!(scanned("").unwrap().is_empty());
    }

    #[test]
    fn a_record_without_end_is_told_and_the_next_one_found() {
        let found = scanned("\u{1e}{\"a\":1}\n\u{1e}{\"b\":\"x\u{1e}{\"c\":3}\n\u{1e}{\"d\":").unwrap();
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], record("{\"a\":1}"));
        assert!(matches!(found[1].0, Item::Cut("the record")) && found[1].1.starts_with("2:2"), "{found:?}");
        assert_eq!(found[2], record("{\"c\":3}"));
        assert!(matches!(found[3].0, Item::Cut("the record")) && found[3].1.starts_with("3:2"), "{found:?}");
    }

    #[test]
    fn events_of_contained_traces_are_found_one_by_one() {
        let text = "{ \"qlog_version\": \"0.3\", \"traces\": [ { \"common_fields\": {\"x\": 1},\n\
                    \"events\": [ {\"time\": 1}, [2, \"t\"] ], \"vantage_point\": {} }, { \"events\": [] } ], \"a\": [1] }";
        let found = scanned(text).unwrap();
        let expected = [
            (Item::Trace, ""),
            (Item::Field("common_fields".into()), "{\"x\": 1}"),
            (Item::Event, "{\"time\": 1}"),
            (Item::Event, "[2, \"t\"]"),
            (Item::Field("vantage_point".into()), "{}"),
            (Item::Trace, ""),
        ];
        assert_eq!(found, expected.map(|(item, text)| (item, text.to_owned())));
    }

    #[test]
    fn a_container_that_is_cut_anywhere_gives_the_events_that_are_whole() {
        let text = "{\"traces\":[{\"events\":[{\"time\":1},{\"time\":2}],\"vantage_point\":{}}]}";
        for end in 1..text.len() {
            let found = scanned(&text[..end]).unwrap();
            let whole = text[..end].matches("1}").count() + text[..end].matches("2}").count();
            assert_eq!(found.iter().filter(|(item, _)| *item == Item::Event).count(), whole, "{}", &text[..end]);
            assert!(matches!(found.last(), Some((Item::Cut(_), _))), "{found:?}");
        }
        assert!(!scanned(text).unwrap().iter().any(|(item, _)| matches!(item, Item::Cut(_))));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, place, expected) in [
            ("{}\nnonsense", "2:1", "`n`; allowed is `{`"),
            ("{\"a\" 1}", "1:6", "`1`; allowed is `:`"),
            ("{\"traces\":[{\"events\":[{} {}]}]}", "1:26", "allowed is `,` or `]`"),
            ("{\"a\":\"x\ny\"}", "1:8", "over the end of a line"),
        ] {
            match scanned(text) {
                Err(ScanError::Damaged(at, problem)) => {
                    assert!(at.to_string() == place && problem.contains(expected), "{at}: {problem}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        let deep = format!("{{\"a\":{}", "[".repeat(100));
        assert!(matches!(scanned(&deep), Err(ScanError::Damaged(_, problem)) if problem.contains("deeper than 64")));
        let long = format!("{{\"a\":\"{}", "x".repeat(LONGEST + 10));
        assert!(matches!(scanned(&long), Err(ScanError::Damaged(_, problem)) if problem.contains("longer than")));
    }
}
