//! What an experiment keeps on disk while it runs, and how a run that was stopped goes on with it.
//!
//! The journal, `flows.partial.csv`, begins with a comment that says of which experiment it is ([`Identity`]). The rows of each
//! repetition of a setting follow as it ends, in one write. Whatever stops the program, what is lost is at most the repetitions in
//! progress: half a line and half a repetition at the end are run again. Anything else that this program could not have written is
//! refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flowstart_core::rng::name_hash;
use serde::{Deserialize, Serialize};

use crate::experiment::{ExperimentError, MANIFEST, Manifest, read_file, write_file};
use crate::flows::{self, ExtraColumns, Row};
use crate::plan::{Cell, Plan};
use crate::spec::Written;
use crate::spec::link::Link;
use crate::spec::web::Rows;

/// Rows of repetitions that are done, kept on disk while an experiment runs.
const JOURNAL: &str = "flows.partial.csv";
/// A journal that does not say of which experiment it is.
const SET_ASIDE: &str = "flows.unknown.csv";
/// Most bytes of rows that are read, which are millions of them.
const LARGEST: u64 = 1 << 30;
/// Longest text that a message repeats.
const SHOWN: usize = 200;

/// Which experiment rows belong to: everything that decides them. The number of repetitions does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the program.
    pub program: String,
    /// By name what the user wrote, and what it means.
    pub parts: BTreeMap<String, Part>,
}

/// A part of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// As written.
    pub written: String,
    /// Hash of what it means, with every default and the content of files.
    pub hash: String,
}

impl Part {
    fn new(written: String, meaning: &impl Debug) -> Self {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{meaning:?}");
        Self { written, hash: format!("{:016x}", name_hash(&text)) }
    }

    fn of_list<T: Debug>(list: &[Written<T>]) -> Self {
        let texts: Vec<&str> = list.iter().map(|one| one.text.as_str()).collect();
        Self::new(texts.join(" "), &list)
    }
}

/// A link wherever the file of its recording is.
fn without_files(link: &Link) -> Link {
    Link { trace_file: None, up_trace_file: None, ..link.clone() }
}

impl Identity {
    /// That of a plan with this program.
    pub fn of(plan: &Plan) -> Self {
        // Every list of the plan, so that a new one is not forgotten.
        let Plan {
            links,
            aqms,
            sizes,
            schemes,
            avoidance,
            scheme_avoidances,
            competitors,
            transport,
            flows,
            arrivals,
            idle,
            moves,
            reps: _,
            seed,
            hint,
        } = plan;
        let links: Vec<Link> = links.iter().map(without_files).collect();
        let texts: Vec<&str> = links.iter().map(|link| link.text.as_str()).collect();
        let moved: Vec<_> = moves
            .iter()
            .map(|one| (&one.text, one.value.as_ref().map(|to| (to.at, without_files(&to.link)))))
            .collect();
        let moves: Vec<&str> = moves.iter().map(|one| one.text.as_str()).collect();
        let names: Vec<&str> = idle.iter().map(|policy| policy.name()).collect();
        let scheme = Part::of_list(schemes);
        let parts = [
            ("link", Part::new(texts.join(" "), &links)),
            ("aqm", Part::of_list(aqms)),
            ("size", Part::of_list(sizes)),
            ("scheme", Part::new(scheme.written, &(schemes, scheme_avoidances))),
            ("avoidance", Part::new(avoidance.text.clone(), avoidance)),
            ("competitor", Part::of_list(competitors)),
            ("transport", Part::new(transport.text.clone(), transport)),
            ("flows", Part::new(flows.to_string(), flows)),
            ("arrival", Part::of_list(arrivals)),
            ("idle", Part::new(names.join(" "), idle)),
            ("move", Part::new(moves.join(" "), &moved)),
            ("seed", Part::new(seed.to_string(), seed)),
            ("hint", Part::new(hint.to_string(), hint)),
        ];
        let parts = parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
        Self { program: env!("CARGO_PKG_VERSION").to_owned(), parts }
    }

    /// What differs from `self`, which is on disk, in `now`.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        self.other_program(now).into_iter().chain(self.other_parts(now)).collect()
    }

    /// How the program differs, if it does.
    pub fn other_program(&self, now: &Self) -> Option<String> {
        (self.program != now.program)
            .then(|| format!("its program is flowstart {}, this is {}", self.program, now.program))
    }

    /// What differs in what the user wrote and in what it means.
    pub fn other_parts(&self, now: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        let names: BTreeSet<&String> = self.parts.keys().chain(now.parts.keys()).collect();
        for name in names {
            let (then, now) = (self.parts.get(name), now.parts.get(name));
            if then == now {
                continue;
            }
            let written =
                |part: Option<&Part>| part.map_or("nothing".to_owned(), |part| format!("`{}`", short(&part.written)));
            if then.map(|part| &part.written) == now.map(|part| &part.written) {
                let why = "means something else: its options, its defaults or a file that it names are others";
                differences.push(format!("{name} is {} as well, but {why}", written(now)));
            } else {
                differences.push(format!("its {name} is {}, now it is {}", written(then), written(now)));
            }
        }
        differences
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a folder holds of an experiment.
#[derive(Debug, Default)]
pub struct Earlier {
    /// The rows of repetitions that are complete, in the order of cells, repetitions and flows.
    pub rows: Vec<Row>,
    /// Where a journal was put that does not say of which experiment it is.
    pub set_aside: Option<PathBuf>,
}

/// The rows of an experiment that was stopped, or of one with fewer repetitions.
///
/// # Errors
///
/// What differs, when the folder is of another experiment; the line and the reason, when this program could not have written it.
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
    let of_manifest = known.and_then(|known| known.experiment);
    if let Some(identity) = &of_manifest {
        same(&manifest, identity)?;
    }
    let extra = ExtraColumns::of(plan);
    let mut earlier = Earlier::default();
    let mut read = BTreeMap::new();
    let mut of_journal = None;
    if let Some(mut bytes) = bytes_of(&journal)? {
        // What stopped the program may have stopped it in the middle of a line.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let text = text_of(&journal, bytes)?;
        of_journal = identity_of_journal(&journal, &text)?;
        if let Some(identity) = &of_journal {
            same(&journal, identity)?;
        }
        let rows = rows_of(&journal, &text, plan, |header| *header == flows::header(&extra))?;
        if of_journal.is_some() {
            read = rows;
        } else if !rows.is_empty() {
            let aside = folder.join(SET_ASIDE);
            fs::rename(&journal, &aside).map_err(|error| refused(&journal, error.to_string()))?;
            earlier.set_aside = Some(aside);
        }
    }
    if let Some(bytes) = bytes_of(&results)? {
        let text = text_of(&results, bytes)?;
        if of_manifest.is_none() && of_journal.is_none() {
            let problem = "there is no manifest.json that says of which experiment it is; choose a new folder";
            return Err(refused(&results, problem.into()));
        }
        // Only columns that have a value somewhere are there.
        let allowed = |header: &Vec<String>| flows::is_header_of(header, &extra);
        for (key, row) in rows_of(&results, &text, plan, allowed)? {
            // Both files hold the rows of a run that was stopped while it wrote its results.
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

/// What the comment in the first line says, if there is one.
fn identity_of_journal(file: &Path, text: &str) -> Result<Option<Identity>, ExperimentError> {
    let Some(comment) = text.lines().next().and_then(|line| line.strip_prefix('#')) else { return Ok(None) };
    serde_json::from_str(comment).map(Some).map_err(|error| refused(file, format!("line 1: {error}")))
}

/// A row's cell, repetition and flow.
type Key = (String, u64, u64);

/// The rows of a file, each of which must be one that the plan can have, and there only once.
fn rows_of(
    file: &Path,
    text: &str,
    plan: &Plan,
    allowed: impl Fn(&Vec<String>) -> bool,
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
        let infinite = |(_, value): &(&str, &str)| value.parse().is_ok_and(|value: f64| !value.is_finite());
        if let Some((name, value)) = header.iter().zip(record.iter()).find(infinite) {
            return Err(at(format!("{name} is {value}; allowed is a finite number or nothing")));
        }
        let row: Row = record.deserialize(Some(&header)).map_err(|error| at(error.to_string()))?;
        let cell = cells.get(&row.cell).ok_or_else(|| at(format!("no cell is `{}`", row.cell)))?;
        check(plan, cell, &row).map_err(at)?;
        let key = (row.cell.clone(), row.rep, row.flow);
        if rows.insert(key, row).is_some() {
            return Err(at("this flow of this repetition is there twice".into()));
        }
    }
    Ok(rows)
}

/// Whether a row can be one of its cell.
fn check(plan: &Plan, cell: &Cell, row: &Row) -> Result<(), String> {
    if row.rep >= u64::from(plan.reps) {
        let most = plan.reps - 1;
        return Err(format!("rep is {}; allowed is 0 to {most}, or --reps {} and more", row.rep, row.rep + 1));
    }
    let seed = plan.run_seed(row.rep as u32);
    if row.seed != seed {
        return Err(format!("seed is {}; that of repetition {} is {seed}", row.seed, row.rep));
    }
    let flows = match plan.sizes[cell.size].value.web() {
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
    Ok(())
}

/// Whether these are all rows of a repetition of a cell.
fn is_complete(plan: &Plan, cell: &Cell, rows: &[Row]) -> bool {
    match plan.sizes[cell.size].value.web() {
        None => rows.len() == plan.flow_count(cell) as usize,
        Some(web) if web.rows == Rows::Repetition => rows.len() == 1,
        // Each of them says how many there are.
        Some(_) => rows.iter().all(|row| row.connections == Some(rows.len() as f64)),
    }
}

/// Appends finished repetitions to a file, so that a run that is stopped loses nothing else.
#[derive(Debug)]
pub struct Journal {
    file: File,
    extra: ExtraColumns,
}

impl Journal {
    /// Begins a journal with rows that are known. One that is there is replaced at once, never emptied.
    pub fn open(folder: &Path, plan: &Plan, known: &[Row]) -> Result<Self, ExperimentError> {
        let path = folder.join(JOURNAL);
        let extra = ExtraColumns::of(plan);
        write_file(&path, |out| {
            let identity = serde_json::to_string(&Identity::of(plan)).map_err(io::Error::other)?;
            writeln!(out, "#{identity}")?;
            writeln!(out, "{}", flows::header(&extra).join(","))?;
            out.write_all(&body(known, &extra)?)
        })?;
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|error| ExperimentError::Write { file: path, problem: error.to_string() })?;
        Ok(Self { file, extra })
    }

    /// Adds the rows of a repetition in one write.
    pub fn add(&mut self, rows: &[Row]) -> io::Result<()> {
        self.file.write_all(&body(rows, &self.extra)?)
    }

    /// Removes the journal of a folder, whose results are complete.
    pub fn remove(folder: &Path) {
        // What is left of it does no harm.
        let _ = fs::remove_file(folder.join(JOURNAL));
    }
}

/// Rows as CSV without their header.
fn body(rows: &[Row], extra: &ExtraColumns) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    flows::write_csv_with(rows, &mut text, extra).map_err(io::Error::other)?;
    let begin = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    Ok(text.split_off(begin))
}

#[cfg(test)]
mod tests;
