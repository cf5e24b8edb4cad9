//! The transfers of a fleet as a table: a line for each kind of path and size, with its share.
//!
//! ```csv
//! name,weight,rate,rtt,buffer,size,known,aqm,competitor
//! dsl,0.6,50mbit,30ms,1bdp,300KB,0.4,taildrop,cubic
//! ```
//!
//! [`COLUMNS`] has all columns. Their order is free, and unknown ones are refused. Values are written as elsewhere.
//! Lines that begin with `#` are comments.

use std::fmt;
use std::path::Path;

use flowstart_core::spec::names;

use crate::spec::InputError;

/// Longest table, in bytes.
const LONGEST: u64 = 16 << 20;
/// Longest value, in bytes.
const LONGEST_VALUE: usize = 1000;
/// Most lines of a table.
const MOST: usize = 1000;
/// Largest weight.
const LARGEST_WEIGHT: f64 = 1e12;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What the first line calls it.
    pub name: &'static str,
    /// What it has.
    pub meaning: &'static str,
    /// What a table without it, or a line without a value, means; `None`: each line has a value.
    pub default: Option<&'static str>,
}

const fn column(name: &'static str, meaning: &'static str, default: Option<&'static str>) -> Column {
    Column { name, meaning, default }
}

/// The columns.
pub static COLUMNS: [Column; 10] = [
    column("weight", "transfers of this kind, as a share or a number, above 0", None),
    column("size", "what a transfer carries, as 300KB", None),
    column("rate", "the bottleneck's rate, as 50mbit; or link", Some("link's")),
    column("rtt", "the path's RTT, as 30ms; or link", Some("link's")),
    column("buffer", "the bottleneck's buffer, as 1bdp or 100ms", Some("1bdp")),
    column("link", "any link of --link, in place of rate, rtt and buffer", Some("rate's")),
    column("known", "share of these transfers whose path is known before, 0 to 1", Some("0")),
    column("aqm", "the bottleneck's queue discipline", Some("taildrop")),
    column("competitor", "who else uses the bottleneck", Some("none")),
    column("name", "what results call it", Some("line-N")),
];

/// The columns whose defaults say something of the paths.
const ASSUMED: [&str; 4] = ["buffer", "known", "aqm", "competitor"];

/// A kind of transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its line in the table, from 1.
    pub line: u64,
    /// What results call it.
    pub name: String,
    /// Its share of all transfers; all shares together are 1.
    pub share: f64,
    /// The part of these transfers whose path is known.
    pub known: f64,
    /// The link without its buffer, as `--link` takes it.
    pub path: String,
    /// The bottleneck's buffer; `None`: the path's own.
    pub buffer: Option<String>,
    /// The size, as `--size` takes it.
    pub size: String,
    /// The queue discipline, as `--aqm` takes it.
    pub aqm: String,
    /// The competitor, as `--competitor` takes it.
    pub competitor: String,
}

impl Kind {
    /// The link, as `--link` takes it.
    pub fn link(&self) -> String {
        self.link_with(self.buffer.as_deref())
    }

    /// The link with another buffer; `None`: the path's own.
    pub fn link_with(&self, buffer: Option<&str>) -> String {
        buffer.map_or_else(|| self.path.clone(), |buffer| format!("{},buffer={buffer}", self.path))
    }
}

/// A link and its buffer, if it has one.
fn without_buffer(link: &str) -> (String, Option<String>) {
    let (buffers, others): (Vec<&str>, Vec<&str>) =
        link.split(',').partition(|part| part.trim().starts_with("buffer="));
    match buffers[..] {
        [buffer] if !others.is_empty() => {
            let value = buffer.split_once('=').map_or("", |(_, value)| value);
            (others.join(","), Some(value.trim().to_owned()))
        }
        // A link that is nothing else, or has two of them, is refused as it is written.
        _ => (link.to_owned(), None),
    }
}

/// The transfers of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// Each kind, in the order of the table.
    pub kinds: Vec<Kind>,
    /// The columns that the table does not have, and whose defaults matter to the answer.
    pub assumed: Vec<&'static Column>,
}

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopulationError {
    /// The line, from 1; 0: all of it.
    pub line: u64,
    /// The column, if it is one.
    pub column: String,
    /// The problem, and what is allowed.
    pub problem: String,
}

impl fmt::Display for PopulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, problem } = self;
        match (line, &**column) {
            (0, "") => f.write_str(problem),
            (line, "") => write!(f, "line {line}: {problem}"),
            (line, column) => write!(f, "line {line}, {column}: {problem}"),
        }
    }
}

impl std::error::Error for PopulationError {}

impl PopulationError {
    pub(super) fn new(line: u64, column: &str, problem: impl fmt::Display) -> Self {
        Self { line, column: column.to_owned(), problem: problem.to_string() }
    }

    /// The problem of a kind whose value the lab refuses.
    pub(super) fn of(kind: &Kind, error: &InputError) -> Self {
        let is_column = |name: &str| COLUMNS.iter().any(|column| column.name == name);
        // A link's problem begins with its key, which may have a column of its own.
        match error.problem.split_once(": ") {
            Some((key, problem)) if error.field == "link" && is_column(key) => Self::new(kind.line, key, problem),
            _ => {
                let column = if is_column(&error.field) { &*error.field } else { "" };
                Self::new(kind.line, column, format_args!("`{}`: {}", error.value, error.problem))
            }
        }
    }
}

impl Population {
    /// The text of a file that has a table.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is not text.
    pub fn text(file: &Path) -> Result<String, PopulationError> {
        let whole = |problem: &dyn fmt::Display| PopulationError::new(0, "", format_args!("cannot be read: {problem}"));
        let bytes = flowstart_files::read(file, LONGEST).map_err(|error| whole(&error))?;
        String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            PopulationError::new(line, "", "this is not text (UTF-8)")
        })
    }

    /// Reads a table. Links, sizes, queue disciplines and competitors are checked when they are run.
    ///
    /// # Errors
    ///
    /// The first line and column that cannot be used, and what is allowed.
    pub fn from_text(text: &str) -> Result<Self, PopulationError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // What the reader of CSV would skip, it would count for the line behind it.
        let is_content = |(_, line): &(u64, &str)| !line.trim().is_empty() && !line.starts_with('#');
        let (lines, content): (Vec<u64>, Vec<&str>) = (1..).zip(text.lines()).filter(is_content).unzip();
        let place = |position: Option<&csv::Position>| {
            let kept = position.and_then(|position| usize::try_from(position.line()).ok()?.checked_sub(1));
            kept.and_then(|kept| lines.get(kept)).copied().unwrap_or(0)
        };
        let unreadable = |error: &csv::Error| PopulationError::new(place(error.position()), "", error);
        let content = content.join("\n");
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(content.as_bytes());
        let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
        let columns = columns(&header, lines.first().copied().unwrap_or(1))?;
        let mut kinds: Vec<Kind> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| unreadable(&error))?;
            let line = place(record.position());
            if record.len() != header.len() {
                let problem = format_args!("has {} values; the first line names {}", record.len(), header.len());
                return Err(PopulationError::new(line, "", problem));
            }
            if kinds.len() == MOST {
                return Err(PopulationError::new(line, "", format_args!("allowed are {MOST} lines of transfers")));
            }
            let kind = Values { line, record: &record, columns: &columns }.kind()?;
            if let Some(other) = kinds.iter().find(|other| other.name == kind.name) {
                let problem = format_args!("`{}` is the name of line {}, too", kind.name, other.line);
                return Err(PopulationError::new(line, "name", problem));
            }
            kinds.push(kind);
        }
        let all: f64 = kinds.iter().map(|kind| kind.share).sum();
        if kinds.is_empty() {
            return Err(PopulationError::new(0, "", "has no line of transfers below the names of its columns"));
        }
        kinds.iter_mut().for_each(|kind| kind.share /= all);
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        // A link has a buffer of its own.
        let matters = |column: &&Column| ASSUMED.contains(&column.name) && !(column.name == "buffer" && has("link"));
        let assumed = COLUMNS.iter().filter(|column| matters(column) && !has(column.name)).collect();
        Ok(Self { kinds, assumed })
    }
}

/// The column of each place of a line; this is the line with their names.
fn columns(header: &csv::StringRecord, line: u64) -> Result<Vec<&'static Column>, PopulationError> {
    let all: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let mut columns: Vec<&'static Column> = Vec::new();
    for name in header {
        let Some(column) = COLUMNS.iter().find(|column| names::is_same(column.name, name)) else {
            let shown: String = name.chars().take(40).collect();
            let problem = names::unknown(&shown, &all, format!("allowed are {}", all.join(", ")));
            return Err(PopulationError::new(line, "", format_args!("the names of the columns: {problem}")));
        };
        if columns.iter().any(|other| other.name == column.name) {
            return Err(PopulationError::new(line, column.name, "is named twice"));
        }
        columns.push(column);
    }
    match COLUMNS.iter().find(|column| column.default.is_none() && columns.iter().all(|one| one.name != column.name)) {
        Some(missing) => Err(PopulationError::new(
            line,
            missing.name,
            format_args!("is missing among the names of the columns: {}", missing.meaning),
        )),
        None => Ok(columns),
    }
}

/// The values of a line.
struct Values<'a> {
    line: u64,
    record: &'a csv::StringRecord,
    columns: &'a [&'static Column],
}

impl Values<'_> {
    fn refused(&self, column: &str, problem: impl fmt::Display) -> PopulationError {
        PopulationError::new(self.line, column, problem)
    }

    /// The value of a column, if the line has one.
    fn given(&self, name: &str) -> Result<Option<&str>, PopulationError> {
        let place = self.columns.iter().position(|column| column.name == name);
        let value = place.and_then(|place| self.record.get(place)).filter(|value| !value.is_empty());
        match value {
            Some(value) if value.len() > LONGEST_VALUE => {
                let problem = format_args!("has {} bytes; allowed are {LONGEST_VALUE}", value.len());
                Err(self.refused(name, problem))
            }
            value => Ok(value),
        }
    }

    /// The value of a column that each line has.
    fn needed(&self, name: &'static str) -> Result<&str, PopulationError> {
        let meaning = || COLUMNS.iter().find(|column| column.name == name).map_or("", |column| column.meaning);
        self.given(name)?.ok_or_else(|| self.refused(name, format_args!("is missing: {}", meaning())))
    }

    /// A part of a link: it is no key of another one.
    fn part(&self, name: &'static str) -> Result<&str, PopulationError> {
        let value = self.needed(name)?;
        if value.contains([',', '=', '/']) {
            return Err(self.refused(name, format_args!("`{value}` is more than one value")));
        }
        Ok(value)
    }

    fn number(&self, name: &'static str, text: &str, most: f64) -> Result<f64, PopulationError> {
        let number = text.parse().ok().filter(|number: &f64| (0.0..=most).contains(number));
        number.ok_or_else(|| self.refused(name, format_args!("`{text}`: allowed is a number of 0 to {most}")))
    }

    fn kind(&self) -> Result<Kind, PopulationError> {
        let text = self.needed("weight")?;
        let weight = self.number("weight", text, LARGEST_WEIGHT)?;
        if weight == 0.0 {
            return Err(self.refused("weight", "`0`: allowed is more than 0; leave the line out"));
        }
        let (path, buffer) = match self.given("link")? {
            Some(link) => {
                for other in ["rate", "rtt", "buffer"] {
                    if self.given(other)?.is_some() {
                        return Err(self.refused(other, "is the link's; allowed is one of both"));
                    }
                }
                without_buffer(link)
            }
            None => {
                let buffer = if self.given("buffer")?.is_some() { self.part("buffer")? } else { "1bdp" };
                (format!("rate={},rtt={}", self.part("rate")?, self.part("rtt")?), Some(buffer.to_owned()))
            }
        };
        let known = self.given("known")?.map_or(Ok(0.0), |text| self.number("known", text, 1.0))?;
        let or_default = |name: &'static str| {
            let default = COLUMNS.iter().find(|column| column.name == name).and_then(|column| column.default);
            Ok(self.given(name)?.or(default).unwrap_or_default().to_owned())
        };
        let name = self.given("name")?.map_or_else(|| format!("line-{}", self.line), str::to_owned);
        if name.chars().any(char::is_control) {
            return Err(self.refused("name", "has a control character"));
        }
        Ok(Kind {
            line: self.line,
            name,
            share: weight,
            known,
            path,
            buffer,
            size: self.needed("size")?.to_owned(),
            aqm: or_default("aqm")?,
            competitor: or_default("competitor")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Population::from_text(text).unwrap_err().to_string()
    }

    #[test]
    fn a_table_has_shares_and_defaults() {
        let text =
            "name, size,weight ,rate,rtt,buffer,known\ndsl,300KB,3,50mbit,30ms,100ms,0.4\n,2MB,1,10mbit,80ms,,\n";
        let kinds = Population::from_text(text).unwrap().kinds;
        assert_eq!(kinds.iter().map(|kind| (kind.line, kind.share)).collect::<Vec<_>>(), [(2, 0.75), (3, 0.25)]);
        assert_eq!((&*kinds[0].link(), kinds[0].known), ("rate=50mbit,rtt=30ms,buffer=100ms", 0.4));
        assert_eq!((&*kinds[1].name, &*kinds[1].link()), ("line-3", "rate=10mbit,rtt=80ms,buffer=1bdp"));
        assert_eq!((kinds[1].known, &*kinds[1].aqm, &*kinds[1].competitor), (0.0, "taildrop", "none"));
        let assumed = |text: &str| -> Vec<&str> {
            Population::from_text(text).unwrap().assumed.iter().map(|column| column.name).collect()
        };
        assert_eq!(assumed(text), ["aqm", "competitor"]);
        assert_eq!(assumed("weight,size,link\n1,2MB,lte\n"), ["known", "aqm", "competitor"]);
        let links = "\u{feff}# from where\r\nweight,size,link\r\n1,2MB,\"lte,buffer=1bdp\"\r\n# more\r\n1,2MB,lte\r\n";
        let kinds = Population::from_text(links).unwrap().kinds;
        assert_eq!((&*kinds[0].link(), kinds[0].line), ("lte,buffer=1bdp", 3));
        assert_eq!((&*kinds[1].link(), kinds[1].line), ("lte", 5));
        assert_eq!(kinds.iter().map(|kind| kind.link_with(Some("50ms"))).collect::<Vec<_>>(), ["lte,buffer=50ms"; 2]);
    }

    #[test]
    fn published_populations_say_where_they_come_from_and_what_is_assumed() {
        let folder = Path::new(env!("FLOWSTART_SCENARIOS")).join("populations");
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 5);
        for file in files {
            let text = Population::text(&file).unwrap();
            assert!(text.starts_with("# ") && text.contains("ssumed, for the source"), "{}", file.display());
            let comments: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
            let is_year = |word: &str| word.parse().is_ok_and(|year: u32| (2015..=2026).contains(&year));
            let has_year = comments.iter().any(|line| line.split(|c: char| !c.is_ascii_digit()).any(is_year));
            let is_source = |line: &&str| line.contains("https://") || line.contains("Table 1");
            assert!(has_year && comments.iter().any(is_source), "{}", file.display());
            let population = Population::from_text(&text).unwrap();
            let assumed: Vec<&str> = population.assumed.iter().map(|column| column.name).collect();
            assert_eq!(assumed, ["aqm"], "{}", file.display());
            assert!(population.kinds.len() >= 12, "{}", file.display());
        }
    }

    #[test]
    fn defaults_are_those_of_the_options() {
        for name in ["aqm", "competitor"] {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            assert_eq!(column.default, crate::study::plan::Axis::key(name).unwrap().default);
        }
    }

    #[test]
    fn wrong_tables_name_line_column_and_what_is_allowed() {
        let long = "9".repeat(2_000);
        for (text, expected) in [
            ("", "weight: is missing"),
            ("weight,size,rate,rtt\n", "no line of transfers"),
            ("weight,size,rate,rtt,speed\n", "line 1: the names of the columns: `speed`"),
            ("weight,sise\n", "size"),
            ("weight,size,size\n", "line 1, size: is named twice"),
            ("weight,size,rate,rtt\n0.5,2MB\n", "line 2: has 2 values; the first line names 4"),
            ("weight,size,rate,rtt\n-1,2MB,1mbit,1ms\n", "line 2, weight: `-1`"),
            ("weight,size,rate,rtt\nNaN,2MB,1mbit,1ms\n", "line 2, weight: `NaN`"),
            ("weight,size,rate,rtt\ninf,2MB,1mbit,1ms\n", "line 2, weight: `inf`"),
            ("weight,size,rate,rtt\n0,2MB,1mbit,1ms\n", "line 2, weight: `0`"),
            (
                "weight,size,rate,rtt,known\n1,2MB,1mbit,1ms,1.5\n",
                "line 2, known: `1.5`: allowed is a number of 0 to 1",
            ),
            ("weight,size,rate,rtt\n1,2MB,,1ms\n", "line 2, rate: is missing"),
            ("weight,size,rate,rtt\n1,2MB,\"1mbit,loss=1%\",1ms\n", "more than one value"),
            ("weight,size,rate,link\n1,2MB,1mbit,lte\n", "line 2, rate: is the link's"),
            (
                "weight,size,rate,rtt,name\n1,2MB,1mbit,1ms,a\n1,2MB,1mbit,1ms,a\n",
                "line 3, name: `a` is the name of line 2",
            ),
            (&format!("weight,size,rate,rtt\n{long},2MB,1mbit,1ms\n"), "has 2000 bytes; allowed are 1000"),
            (&format!("weight,size,link\n{}", "1,2MB,lte\n".repeat(MOST + 1)), "allowed are 1000 lines"),
        ] {
            let told = error(text);
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
