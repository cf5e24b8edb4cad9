//! The journal that an experiment keeps on disk while it runs, and from which a stopped run resumes.
//!
//! The journal, `flows.partial.csv`, begins with a comment that identifies the experiment ([`Identity`]). When a
//! repetition of a setting ends, its rows follow in one write, each with a checksum. A stop of the program loses at
//! most the repetitions in progress: half a line and half a repetition at the end are run again. Anything else that
//! this program could not have written is refused.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use csv::StringRecord;
use flowstart_core::rng::{mix, name_hash};
use flowstart_files::sync_folder_of;

use crate::results::flows::{self, ExtraColumns, Row};
use crate::results::folder::JOURNAL;
use crate::results::folder::{ExperimentError, FILES, MANIFEST, is_occupied, read_file, write_file};
use crate::results::identity::{Identity, short};
use crate::results::manifest::Manifest;
use crate::results::metric::Unit;
use crate::results::row::Metric;
use crate::spec::web::Rows;
use crate::study::plan::{Cell, Plan};

/// Prefix of the checksum of an experiment's results.
pub(crate) const RESULTS: &str = "flows.csv";
/// The last column of a journal.
const CHECKSUM: &str = "checksum";
/// Most bytes of rows that are read: millions of rows.
const LARGEST: u64 = 1 << 30;

/// The contents of an experiment's folder.
#[derive(Debug, Default)]
pub struct Earlier {
    /// The rows of repetitions that are complete, in the order of cells, repetitions and flows.
    pub rows: Vec<Row>,
    /// The new place of a journal that does not identify its experiment.
    pub set_aside: Option<PathBuf>,
}

/// The rows of a stopped experiment, or of one with fewer repetitions.
///
/// # Errors
///
/// The difference, if the folder belongs to another experiment. The line and the reason, if this program could not have
/// written it.
pub fn earlier(folder: &Path, plan: &Plan) -> Result<Earlier, ExperimentError> {
    let now = Identity::of(plan);
    let same = |file: &Path, identity: &Identity| {
        let differences = identity.differences(&now);
        if differences.is_empty() {
            return Ok(());
        }
        let problem = format!("is of another experiment: {}; choose a new folder", differences.join("; "));
        Err(refused(file, problem))
    };
    let (journal, results, manifest) = (folder.join(JOURNAL), folder.join("flows.csv"), folder.join(MANIFEST));
    let known = Manifest::read(folder).map_err(|problem| refused(&manifest, problem))?;
    let has_manifest = known.is_some();
    let (of_manifest, sealed) = known.map_or((None, None), |known| (known.experiment, known.rows));
    if let Some(identity) = &of_manifest {
        same(&manifest, identity)?;
    }
    let extra = ExtraColumns::of(plan);
    let mut earlier = Earlier::default();
    let mut read = BTreeMap::new();
    let (mut of_journal, mut nameless) = (None, false);
    if let Some(mut bytes) = bytes_of(&journal)? {
        // The program may have stopped in the middle of a line.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let text = text_of(&journal, bytes)?;
        of_journal = identity_of_journal(&journal, &text)?;
        if let Some(identity) = &of_journal {
            same(&journal, identity)?;
        }
        // The rows of a journal without an identity do not count.
        let seal = text.lines().next().and_then(|line| line.strip_prefix('#'));
        let columns = |header: &[String]| match header.split_last() {
            Some((last, columns)) if seal.is_some() => last == CHECKSUM && columns == flows::header(&extra),
            _ => seal.is_none() && header == flows::header(&extra),
        };
        let rows = rows_of(&journal, &text, plan, seal, columns)?;
        nameless = of_journal.is_none() && !rows.is_empty();
        if of_journal.is_some() {
            read = rows;
        }
    }
    if of_manifest.is_none() && of_journal.is_none() {
        let file = FILES.iter().map(|name| folder.join(name)).find(|file| file.symlink_metadata().is_ok());
        if let Some(file) = file {
            let why = if has_manifest {
                "manifest.json is of an older program, which did not say of which experiment it is"
            } else {
                "there is no manifest.json that says of which experiment it is"
            };
            return Err(refused(&file, format!("{why}; choose a new folder")));
        }
    }
    if nameless {
        let aside = new_name(folder);
        let renamed = fs::rename(&journal, &aside).and_then(|()| sync_folder_of(&aside));
        renamed.map_err(|error| refused(&journal, error.to_string()))?;
        earlier.set_aside = Some(aside);
    }
    if let Some(bytes) = bytes_of(&results)? {
        let text = text_of(&results, bytes)?;
        // A run that stopped while it wrote its results has all of them in its journal.
        if sealed.is_none() && of_manifest.is_some() && of_journal.is_none() {
            return Err(refused(&manifest, "rows is missing; allowed is the checksum of flows.csv".into()));
        }
        let is_other = sealed.is_some_and(|sealed| sealed != checksum(RESULTS, [text.as_str()]));
        if is_other && of_journal.is_none() {
            let problem = format!("is not the file that {MANIFEST} was written for; choose a new folder");
            return Err(refused(&results, problem));
        }
        // Only columns with a value somewhere are present.
        let allowed = |header: &[String]| flows::is_header_of(header, &extra);
        let rows = if is_other { BTreeMap::new() } else { rows_of(&results, &text, plan, None, allowed)? };
        for (key, row) in rows {
            // Both files hold the rows of a run that stopped while it wrote its results.
            if read.get(&key).is_some_and(|known| *known != row) {
                let (cell, rep, flow) = key;
                let problem = format!("cell {cell}, rep {rep}, flow {flow} differs from that in {JOURNAL}");
                return Err(refused(&results, problem));
            }
            read.insert(key, row);
        }
    }
    let cells: BTreeMap<String, Cell> = plan.cells().into_iter().map(|cell| (plan.id(&cell), cell)).collect();
    let rows: Vec<Row> = read.into_values().collect();
    let groups = rows.chunk_by(|a, b| (&a.cell, a.rep) == (&b.cell, b.rep));
    let complete = |rows: &&[Row]| cells.get(&rows[0].cell).is_some_and(|cell| is_complete(plan, cell, rows));
    earlier.rows = groups.filter(complete).flatten().cloned().collect();
    Ok(earlier)
}

/// Whether a folder holds rows of this experiment from a stopped run.
pub fn is_interrupted(folder: &Path, plan: &Plan) -> bool {
    if is_occupied(folder) {
        return false;
    }
    let journal = folder.join(JOURNAL);
    let identity = bytes_of(&journal).ok().flatten().and_then(|bytes| {
        let line = bytes.split(|byte| *byte == b'\n').next()?;
        identity_of_journal(&journal, std::str::from_utf8(line).ok()?).ok()?
    });
    identity.is_some_and(|identity| identity.differences(&Identity::of(plan)).is_empty())
}

/// The new place of a journal that does not identify its experiment: a file that does not exist yet.
fn new_name(folder: &Path) -> PathBuf {
    let names = (2..).map(|number: u64| format!("flows.unknown-{number}.csv"));
    let mut files = std::iter::once("flows.unknown.csv".to_owned()).chain(names).map(|name| folder.join(name));
    // One of them is free.
    files.find(|file| file.symlink_metadata().is_err()).unwrap_or_default()
}

fn refused(file: &Path, problem: String) -> ExperimentError {
    ExperimentError::Folder { folder: file.to_owned(), problem }
}

fn text_of(file: &Path, bytes: Vec<u8>) -> Result<String, ExperimentError> {
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..place].iter().filter(|byte| **byte == b'\n').count() + 1;
        refused(file, format!("line {line}: not text"))
    })
}

fn bytes_of(file: &Path) -> Result<Option<Vec<u8>>, ExperimentError> {
    read_file(file, LARGEST).map_err(|problem| refused(file, problem))
}

/// The content of the comment in the first line, if there is one.
fn identity_of_journal(file: &Path, text: &str) -> Result<Option<Identity>, ExperimentError> {
    let Some(comment) = text.lines().next().and_then(|line| line.strip_prefix('#')) else { return Ok(None) };
    serde_json::from_str(comment).map(Some).map_err(|error| refused(file, format!("line 1: {error}")))
}

/// A row's cell, repetition and flow.
type Key = (String, u64, u64);

/// The rows of a file. Each must be possible in the plan and occur only once. With a seal each ends with its checksum.
fn rows_of(
    file: &Path,
    text: &str,
    plan: &Plan,
    seal: Option<&str>,
    allowed: impl Fn(&[String]) -> bool,
) -> Result<BTreeMap<Key, Row>, ExperimentError> {
    let cells: BTreeMap<String, Cell> = plan.cells().into_iter().map(|cell| (plan.id(&cell), cell)).collect();
    let mut rows = BTreeMap::new();
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| refused(file, error.to_string()))?.clone();
    let names: Vec<String> = header.iter().map(str::to_owned).collect();
    if !header.is_empty() && !allowed(&names) {
        return Err(refused(
            file,
            format!("its columns are not those of this experiment: {}", short(&names.join(","))),
        ));
    }
    for record in reader.records() {
        let record = record.map_err(|error| refused(file, error.to_string()))?;
        let at = |problem: String| {
            refused(file, format!("line {}: {problem}", record.position().map_or(0, csv::Position::line)))
        };
        if let Some(seal) = seal {
            let (checksum, written) = (checksum(seal, record.iter().take(header.len() - 1)), &record[header.len() - 1]);
            if written != checksum {
                let problem = "the row is not the one that was written";
                return Err(at(format!("{CHECKSUM} is `{}`: {problem}", short(written))));
            }
        }
        let infinite = |(_, value): &(&str, &str)| value.parse().is_ok_and(|value: f64| !value.is_finite());
        // The digits of a checksum may look like a number.
        let columns = header.len() - usize::from(seal.is_some());
        if let Some((name, value)) = header.iter().zip(record.iter()).take(columns).find(infinite) {
            return Err(at(format!("{name} is {value}; allowed is a finite number or nothing")));
        }
        let row: Row = record.deserialize(Some(&header)).map_err(|error| at(error.to_string()))?;
        let cell = cells.get(&row.cell).ok_or_else(|| at(format!("no cell is `{}`", row.cell)))?;
        if row.rep >= u64::from(plan.reps) {
            let enough = largest_rep(text).max(row.rep).saturating_add(1);
            let most = plan.reps - 1;
            let more = format!("or --reps {enough} and more, with --precision --max-reps {enough} and more");
            return Err(at(format!("rep is {}; allowed is 0 to {most}, {more}", row.rep)));
        }
        check(plan, cell, &row).map_err(at)?;
        check_numbers(&header, &record).map_err(at)?;
        let key = (row.cell.clone(), row.rep, row.flow);
        if rows.insert(key, row).is_some() {
            return Err(at("this flow of this repetition is there twice".into()));
        }
    }
    Ok(rows)
}

/// The largest repetition of a file.
fn largest_rep(text: &str) -> u64 {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let place = reader.headers().ok().and_then(|header| header.iter().position(|name| name == "rep"));
    let reps = reader.records().flatten().filter_map(|record| record.get(place?)?.parse().ok());
    reps.max().unwrap_or(0)
}

/// Whether a row is possible in its cell.
fn check(plan: &Plan, cell: &Cell, row: &Row) -> Result<(), String> {
    let seed = plan.run_seed(row.rep as u32);
    if row.seed != seed {
        return Err(format!("seed is {}; that of repetition {} is {seed}", row.seed, row.rep));
    }
    let flows = match plan.sizes[cell.size].value.sessions() {
        None => u64::from(plan.flow_count(cell)),
        Some(web) if web.rows == Rows::Repetition => 1,
        Some(_) => u64::MAX,
    };
    if row.flow >= flows {
        return Err(format!("flow is {}; allowed is 0 to {}", row.flow, flows - 1));
    }
    let texts = [
        ("link", &row.link, &plan.links[cell.link].text),
        ("aqm", &row.aqm, &plan.aqms[cell.aqm].text),
        ("scheme", &row.scheme, &plan.schemes[cell.scheme].text),
        ("competitor", &row.competitor, &plan.competitors[cell.competitor].text),
    ];
    if let Some((name, found, expected)) = texts.into_iter().find(|(_, found, expected)| found != expected) {
        return Err(format!("{name} is `{found}`; that of the cell is `{expected}`"));
    }
    if !flows::STATUS.contains(&row.status.as_str()) {
        return Err(format!("status is `{}`; allowed are {}", row.status, flows::STATUS.join(", ")));
    }
    let size = plan.sizes[cell.size].value;
    if let Some(size) = size.fixed_size()
        && row.size_bytes != size.get()
    {
        return Err(format!("size_bytes is {}; that of the cell is {}", row.size_bytes, size.get()));
    }
    if size.sessions().is_none() && !row.failed() && row.fct_ms.is_none() {
        return Err("fct_ms is missing; a flow whose status is ok has one".into());
    }
    let is_name =
        |text: &str| text.len() <= 40 && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c));
    if let Some(reason) = row.exit_reason.as_deref().filter(|reason| !is_name(reason)) {
        return Err(format!("exit_reason is `{}`; allowed are letters, digits, `-` and `_`", short(reason)));
    }
    Ok(())
}

/// Whether the numbers of a row are possible in their columns.
fn check_numbers(header: &StringRecord, record: &StringRecord) -> Result<(), String> {
    /// Largest value of quantities without a specific range: other programs still distinguish all integers up to it.
    const MOST: f64 = (1_u64 << 53) as f64;
    for (name, text) in header.iter().zip(record) {
        let Ok(value) = text.parse::<f64>() else { continue };
        let unit = Metric::named(name).map(|metric| metric.unit);
        let allowed = match unit {
            None | Some(Unit::Name) => continue,
            _ if name == "seed" => continue,
            Some(Unit::Share) => 0.0..=1.0,
            // Harm to others may be negative.
            _ if name.starts_with("others_") => -MOST..=MOST,
            // A rating has no sign restriction.
            Some(Unit::Rating) => -MOST..=MOST,
            // Simulated time is counted in nanoseconds.
            Some(Unit::Milliseconds) => 0.0..=u64::MAX as f64 / 1e6,
            _ => 0.0..=MOST,
        };
        if !allowed.contains(&value) {
            return Err(format!("{name} is {}; allowed is {} to {}", short(text), allowed.start(), allowed.end()));
        }
    }
    Ok(())
}

/// Whether these are all the rows of a repetition of a cell.
fn is_complete(plan: &Plan, cell: &Cell, rows: &[Row]) -> bool {
    match plan.sizes[cell.size].value.sessions() {
        None => rows.len() == plan.flow_count(cell) as usize,
        Some(web) if web.rows == Rows::Repetition => rows.len() == 1,
        // Each row contains their number.
        Some(_) => rows.iter().all(|row| row.connections == Some(rows.len() as f64)),
    }
}

/// Appends finished repetitions to a file, so that a stopped run keeps them.
#[derive(Debug)]
pub struct Journal {
    file: File,
    extra: ExtraColumns,
    /// The content of the comment in the first line.
    seal: String,
    /// Its bytes, all of complete lines.
    length: u64,
    /// Lines that could not be written yet.
    pending: Vec<u8>,
}

impl Journal {
    /// Begins a journal with known rows. An existing journal is replaced atomically, never emptied.
    pub fn open(folder: &Path, plan: &Plan, known: &[Row]) -> Result<Self, ExperimentError> {
        let path = folder.join(JOURNAL);
        let failed = |error: io::Error| ExperimentError::Write { file: path.clone(), problem: error.to_string() };
        let extra = ExtraColumns::of(plan);
        let seal = serde_json::to_string(&Identity::of(plan)).map_err(|error| failed(error.into()))?;
        write_file(&path, |out| {
            writeln!(out, "#{seal}")?;
            writeln!(out, "{},{CHECKSUM}", flows::header(&extra).join(","))?;
            out.write_all(&body(known, &extra, &seal)?)
        })?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok(Self { file, extra, seal, length, pending: Vec::new() })
    }

    /// Adds the rows of a repetition in one write, with those that could not be written before.
    pub fn add(&mut self, rows: &[Row]) -> io::Result<()> {
        let is_behind = self.is_behind();
        self.pending.extend(body(rows, &self.extra, &self.seal)?);
        if is_behind {
            // A part of them may have been written. Nothing may follow half a line.
            self.file.set_len(self.length)?;
        }
        self.file.write_all(&self.pending)?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Whether rows wait until they can be written.
    pub fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Removes the journal of a folder, whose results are complete.
    pub fn remove(folder: &Path) {
        // What is left of it does no harm.
        let _ = fs::remove_file(folder.join(JOURNAL));
    }
}

/// Rows as CSV without their header, each with its checksum behind it.
fn body(rows: &[Row], extra: &ExtraColumns, seal: &str) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    flows::write_csv_with(rows, &mut plain, extra).map_err(io::Error::other)?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in csv::Reader::from_reader(plain.as_slice()).records() {
        let mut record = record?;
        record.push_field(&checksum(seal, &record));
        writer.write_record(&record)?;
    }
    writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// Checksum of a row of an experiment, which detects digits that a disk or a person changed.
pub fn checksum<'a>(experiment: &str, row: impl IntoIterator<Item = &'a str>) -> String {
    let fields = row.into_iter().fold(name_hash(experiment), |hash, field| mix(hash ^ name_hash(field)));
    format!("{fields:016x}")
}

#[cfg(test)]
mod tests;
