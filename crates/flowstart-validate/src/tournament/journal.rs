//! Results on disk: a line of JSON for each cell, appended when the cell ends, behind a line that says of what.
//!
//! A run that was stopped loses the cells in progress. What it left is read again: half a line at the end is cut off,
//! and anything else that this program could not have written is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::cells::Question;
use super::runs::CellResult;
use super::sets::{Drawn, Set};

/// Most bytes of a file of results.
const LARGEST: u64 = 1 << 30;

/// Of what a file has results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of this form.
    schema: u32,
    /// The set.
    set: String,
    /// Its SHA-256.
    sha256: String,
    /// The version of the program.
    version: String,
    /// The schemes that were run.
    schemes: Vec<String>,
    /// Repetitions of each cell.
    pub reps: u32,
    /// The master seed.
    pub seed: u64,
}

impl Header {
    /// Of results of this set.
    pub fn new(set: Set, question: &Question) -> Self {
        Self {
            schema: 1,
            set: set.name().to_owned(),
            sha256: set.sha256().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schemes: question.schemes(),
            reps: question.reps,
            seed: question.seed,
        }
    }
}

/// What is wrong with a file.
fn refused(file: &Path, problem: impl std::fmt::Display) -> String {
    format!("{}: {problem}", file.display())
}

/// Reads a line; the error says its number and what is wrong.
fn read_line<'a, T: Deserialize<'a>>(file: &Path, number: usize, line: &'a str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| refused(file, format!("line {number}: {error}")))
}

/// What a file has, and how many of its bytes are whole lines.
fn read(file: &Path, bytes: &[u8], drawn: &BTreeMap<&str, &Drawn>) -> Result<(Header, Vec<CellResult>), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| refused(file, format!("is not text: {error}")))?;
    let mut lines = text.lines().zip(1..);
    let Some((first, _)) = lines.next() else { return Err(refused(file, "is empty; expected a line of JSON")) };
    let header: Header = read_line(file, 1, first)?;
    let mut results = Vec::new();
    let mut names = BTreeSet::new();
    for (line, number) in lines {
        let result: CellResult = read_line(file, number, line)?;
        let wrong = |problem: &str| Err(refused(file, format!("line {number}, {}: {problem}", result.cell)));
        match drawn.get(result.cell.as_str()) {
            None => return wrong("is no cell of the set"),
            Some(cell) if cell.line() != result.text => return wrong("is another cell than that of the set"),
            Some(_) => {}
        }
        if let Some(problem) = result.schemes.iter().find_map(|runs| runs.problem(header.reps)) {
            return wrong(&problem);
        }
        if !names.insert(result.cell.clone()) {
            return wrong("is there twice");
        }
        results.push(result);
    }
    Ok((header, results))
}

/// The bytes of whole lines.
fn whole(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    bytes
}

/// By their names.
fn by_name(cells: &[Drawn]) -> BTreeMap<&str, &Drawn> {
    cells.iter().map(|cell| (&*cell.name, cell)).collect()
}

/// A file of results that grows.
#[derive(Debug)]
pub struct Journal {
    name: PathBuf,
    file: Mutex<File>,
    /// The cells that it had.
    pub known: BTreeSet<String>,
}

impl Journal {
    /// Begins a file of results, or goes on with one that a run left (`resume`).
    ///
    /// # Errors
    ///
    /// A file that is there and should not be, or is of something else, or that another run writes.
    pub fn open(name: &Path, header: &Header, cells: &[Drawn], resume: bool) -> Result<Self, String> {
        let failed = |error: std::io::Error| refused(name, error);
        let mut options = OpenOptions::new();
        options.append(true).read(true);
        let file = if resume { options.create(true).open(name) } else { options.create_new(true).open(name) };
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => refused(name, "is there; --resume goes on with it"),
            _ => failed(error),
        })?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(refused(name, "another run writes it")),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Ok(()) => {}
        }
        let bytes = whole(flowstart_files::read(name, LARGEST).map_err(|error| refused(name, error))?);
        file.set_len(bytes.len() as u64).map_err(failed)?;
        let mut journal = Self { name: name.to_owned(), file: Mutex::new(file), known: BTreeSet::new() };
        if bytes.is_empty() {
            journal.append(header)?;
            return Ok(journal);
        }
        let (of_file, results) = read(name, &bytes, &by_name(cells))?;
        if of_file != *header {
            return Err(refused(name, "is of another set, program, seed or choice of schemes; choose a new folder"));
        }
        journal.known = results.into_iter().map(|result| result.cell).collect();
        Ok(journal)
    }

    fn append(&self, line: &impl Serialize) -> Result<(), String> {
        let mut text = serde_json::to_string(line).map_err(|error| refused(&self.name, error))?;
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write for each line, so that a stop leaves at most a part of one.
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(|error| refused(&self.name, error))
    }

    /// Adds what came of a cell.
    ///
    /// # Errors
    ///
    /// Why it could not be written.
    pub fn add(&self, result: &CellResult) -> Result<(), String> {
        self.append(result)
    }
}

/// Results of a set from several files, in the order of the set.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The set.
    pub set: Set,
    /// The number of its cells.
    pub of: usize,
    /// Each cell of which there are results, with them.
    pub cells: Vec<(Drawn, CellResult)>,
    /// Repetitions of each cell.
    pub reps: u32,
}

/// Joins files of results. Of a scheme that two files have in a cell the later file counts, so that one scheme may be
/// run again without the others.
///
/// # Errors
///
/// A file that cannot be read, or files of different sets, seeds or numbers of repetitions.
pub fn collect(files: &[PathBuf]) -> Result<Collected, String> {
    let mut first: Option<(Header, Set, Vec<Drawn>)> = None;
    let mut joined: BTreeMap<String, CellResult> = BTreeMap::new();
    for file in files {
        let bytes = whole(flowstart_files::read(file, LARGEST).map_err(|error| refused(file, error))?);
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).map_err(|error| refused(file, format!("is not text: {error}")))?;
        let header: Header = read_line(file, 1, line)?;
        if first.is_none() {
            let set = Set::named(&header.set).ok_or_else(|| refused(file, "line 1: no set has this name"))?;
            first = Some((header.clone(), set, set.cells()));
        }
        let Some((of_first, set, cells)) = &first else { continue };
        if (&header.set, header.reps, header.seed) != (&of_first.set, of_first.reps, of_first.seed)
            || header.sha256 != set.sha256()
        {
            return Err(refused(file, "is of another set, seed or number of repetitions than the first file"));
        }
        let (_, results) = read(file, &bytes, &by_name(cells))?;
        for mut result in results {
            match joined.get_mut(&result.cell) {
                None => {
                    joined.insert(result.cell.clone(), result);
                }
                Some(known) => {
                    let is_new = |scheme: &str| {
                        result.of(scheme).is_some() || result.left_out.iter().any(|one| one.scheme == scheme)
                    };
                    known.schemes.retain(|runs| !is_new(&runs.scheme));
                    known.left_out.retain(|one| !is_new(&one.scheme));
                    known.schemes.append(&mut result.schemes);
                    known.left_out.append(&mut result.left_out);
                    known.seconds += result.seconds;
                }
            }
        }
    }
    let Some((header, set, cells)) = first else { return Err("no file of results is given".into()) };
    let of = cells.len();
    let cells = cells.into_iter().filter_map(|cell| joined.remove(&cell.name).map(|result| (cell, result))).collect();
    Ok(Collected { set, of, cells, reps: header.reps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tournament::runs::{LeftOut, Runs};

    fn question() -> Question {
        Question { scheme: "a".into(), rivals: vec!["b".into()], reps: 2, seed: 1 }
    }

    fn result(cell: &Drawn, schemes: &[(&str, f64)]) -> CellResult {
        let runs = |(scheme, fct): &(&str, f64)| Runs {
            scheme: (*scheme).into(),
            fct_ms: vec![Some(*fct); 2],
            sent_twice: vec![0.0; 2],
            ..Runs::default()
        };
        let schemes = schemes.iter().map(runs).collect();
        CellResult { cell: cell.name.clone(), text: cell.line(), seconds: 1.0, schemes, ..CellResult::default() }
    }

    #[test]
    fn a_stopped_run_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("part.jsonl");
        let cells = Set::Design.cells();
        let header = Header::new(Set::Design, &question());
        let journal = Journal::open(&file, &header, &cells, false).unwrap();
        journal.add(&result(&cells[0], &[("a", 1.0), ("b", 2.0)])).unwrap();
        assert!(Journal::open(&file, &header, &cells, true).unwrap_err().contains("another run writes it"));
        drop(journal);
        // Half a line is what a killed run leaves.
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, [&whole[..], &whole[whole.len() - 20..whole.len() - 1]].concat()).unwrap();
        assert!(Journal::open(&file, &header, &cells, false).unwrap_err().contains("--resume"));
        let journal = Journal::open(&file, &header, &cells, true).unwrap();
        assert_eq!(journal.known.iter().collect::<Vec<_>>(), [&cells[0].name]);
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        drop(journal);
        let other = Header { seed: 2, ..header };
        assert!(Journal::open(&file, &other, &cells, true).unwrap_err().contains("another set"));
    }

    #[test]
    fn a_scheme_that_ran_again_counts_as_it_ran_last() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Set::Design.cells();
        let write = |name: &str, results: &[CellResult]| {
            let file = folder.path().join(name);
            let journal = Journal::open(&file, &Header::new(Set::Design, &question()), &cells, false).unwrap();
            results.iter().for_each(|result| journal.add(result).unwrap());
            file
        };
        let first = write("1", &[result(&cells[3], &[("a", 1.0), ("b", 2.0)]), result(&cells[1], &[("a", 3.0)])]);
        let left_out = vec![LeftOut { scheme: "b".into(), why: "no".into() }];
        let again = CellResult { left_out, ..result(&cells[3], &[("a", 5.0)]) };
        let second = write("2", &[again]);
        let collected = collect(&[first, second]).unwrap();
        assert_eq!((collected.of, collected.reps, collected.set), (cells.len(), 2, Set::Design));
        let names: Vec<&str> = collected.cells.iter().map(|(cell, _)| &*cell.name).collect();
        assert_eq!(names, [&*cells[1].name, &*cells[3].name]);
        let (_, joined) = &collected.cells[1];
        assert_eq!(joined.of("a").unwrap().mean_fct_ms(), 5.0);
        assert!(joined.of("b").is_none() && joined.left_out.len() == 1);
    }

    #[test]
    fn what_this_program_did_not_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Set::Design.cells();
        let header = serde_json::to_string(&Header::new(Set::Design, &question())).unwrap();
        let good = result(&cells[0], &[("a", 1.0)]);
        let line = |result: &CellResult| format!("{header}\n{}\n", serde_json::to_string(result).unwrap());
        let file = folder.path().join("results.jsonl");
        for (text, expected) in [
            (String::new(), "line 1"),
            ("{}\n".into(), "line 1: missing field `schema`"),
            (format!("{header}\n{{\"cell\": 3}}\n"), "line 2: invalid type"),
            (line(&CellResult { cell: "design-999".into(), ..good.clone() }), "design-999: is no cell of the set"),
            (line(&CellResult { text: "another".into(), ..good.clone() }), "is another cell than that of the set"),
            (line(&result(&cells[0], &[("a", -1.0)])), "above 0"),
            (header.replace("\"design\"", "\"designs\"") + "\n", "no set has this name"),
            (header.replace(Set::Design.sha256(), "00") + "\n", "is of another set"),
            (format!("{}{}", line(&good), &line(&good)[header.len() + 1..]), "is there twice"),
        ] {
            std::fs::write(&file, &text).unwrap();
            let error = collect(std::slice::from_ref(&file)).unwrap_err();
            assert!(error.contains(expected) && error.contains("results.jsonl"), "{error}");
        }
        assert!(collect(&[]).is_err());
        assert!(collect(&[folder.path().join("none")]).unwrap_err().contains("cannot be read"));
    }
}
