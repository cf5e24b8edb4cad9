//! Running the cells of a set, or a part of them.

use std::path::PathBuf;
use std::str::FromStr;

use flowstart_lab::experiment::threads;
use flowstart_lab::perform::Progress;
use rayon::prelude::*;

use super::cells::{self, Question};
use super::journal::{Header, Journal};
use super::sets::{Drawn, Set};

/// Most parts of a set.
const MOST_PARTS: usize = 1000;

/// One of several parts of a set, each of which has every so-many-th cell, so that all take about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=MOST_PARTS).contains(&of) && (1..=of).contains(&number) => {
                Ok(Self { number, of })
            }
            _ => Err(format!("expected NUMBER/PARTS, as 1/8; allowed are up to {MOST_PARTS} parts")),
        }
    }
}

/// Which cells are run, and where the results go.
#[derive(Clone, Debug)]
pub struct Work {
    /// The set.
    pub set: Set,
    /// The part of it.
    pub part: Part,
    /// Only the first so many cells of the part.
    pub only: Option<usize>,
    /// The folder of recordings; `None`: cells that need one are left out.
    pub recordings: Option<PathBuf>,
    /// The file of results.
    pub file: PathBuf,
    /// Whether it goes on with a file that is there.
    pub resume: bool,
    /// Threads; 0: one per core.
    pub jobs: usize,
}

/// What was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Cells that were run.
    pub cells: usize,
    /// Cells whose results were there.
    pub known: usize,
    /// Cells that lack their recording.
    pub without_recording: usize,
}

impl Work {
    /// The cells of the part, and how many of it lack their recording.
    fn cells<'a>(&self, all: &'a [Drawn]) -> (Vec<&'a Drawn>, usize) {
        let of_part = all.iter().skip(self.part.number - 1).step_by(self.part.of);
        let cells: Vec<&Drawn> = of_part.take(self.only.unwrap_or(usize::MAX)).collect();
        let count = cells.len();
        let has_recording = |cell: &&Drawn| self.recordings.is_some() || !cell.needs_recordings();
        let cells: Vec<&Drawn> = cells.into_iter().filter(has_recording).collect();
        let lacking = count - cells.len();
        (cells, lacking)
    }
}

/// Runs the cells whose results are not there, and adds each to the file as it ends.
///
/// # Errors
///
/// A scheme or a cell that cannot be used, and a file that cannot be written.
pub fn perform(work: &Work, question: &Question, progress: &dyn Progress) -> Result<Ran, String> {
    cells::check(question).map_err(|error| error.to_string())?;
    let all = work.set.cells();
    let (cells, without_recording) = work.cells(&all);
    let journal = Journal::open(&work.file, &Header::new(work.set, question), &all, work.resume)?;
    let count = cells.len();
    let todo: Vec<&Drawn> = cells.into_iter().filter(|cell| !journal.known.contains(&cell.name)).collect();
    let ran = Ran { cells: todo.len(), known: count - todo.len(), without_recording };
    let folder = work.recordings.clone().unwrap_or_else(|| PathBuf::from("."));
    progress.begins(todo.len() as u64);
    let pool = threads(work.jobs).map_err(|error| error.to_string())?;
    let one = |cell: &&Drawn| {
        if !progress.goes_on() {
            return Err("stopped".to_owned());
        }
        let result = cells::perform(cell, question, &folder).map_err(|error| format!("{}: {error}", cell.name))?;
        journal.add(&result)?;
        progress.done(1);
        Ok(())
    };
    pool.install(|| todo.par_iter().with_max_len(1).try_for_each(one))?;
    progress.ended();
    Ok(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_each_cell_once() {
        let all = Set::Design.cells();
        let work = |part: Part, only, recordings| Work {
            set: Set::Design,
            part,
            only,
            recordings,
            file: PathBuf::new(),
            resume: false,
            jobs: 1,
        };
        let folder = Some(PathBuf::from("."));
        let mut names: Vec<&str> = Vec::new();
        for number in 1..=8 {
            let (cells, lacking) = work(Part { number, of: 8 }, None, folder.clone()).cells(&all);
            assert_eq!(lacking, 0);
            names.extend(cells.iter().map(|cell| &*cell.name));
        }
        names.sort_unstable();
        assert_eq!(names, all.iter().map(|cell| &*cell.name).collect::<Vec<_>>());
        let whole = Part { number: 1, of: 1 };
        assert_eq!(work(whole, Some(3), None).cells(&all).0.len(), 3);
        let (cells, lacking) = work(whole, None, None).cells(&all);
        assert!(lacking >= 3 && cells.len() + lacking == all.len());
    }

    #[test]
    fn a_part_is_read_as_it_is_written() {
        assert_eq!("2/8".parse(), Ok(Part { number: 2, of: 8 }));
        for text in ["", "2", "0/8", "9/8", "1/0", "1/1001", "a/b", "-1/2", "1/2/3"] {
            assert!(text.parse::<Part>().unwrap_err().contains("1/8"), "{text}");
        }
    }

    #[test]
    fn cells_run_once_and_go_on() {
        struct Quiet;
        impl Progress for Quiet {
            fn note(&self, _: &str) {}
            fn begins(&self, _: u64) {}
            fn done(&self, _: u64) {}
            fn ended(&self) {}
            fn again(&self, _: flowstart_lab::perform::Again) {}
        }
        let folder = tempfile::tempdir().unwrap();
        let question = Question { scheme: "more-start".into(), rivals: vec!["slow-start".into()], reps: 1, seed: 1 };
        // Of the presets only, whose cells come first.
        let work = |only, resume| Work {
            set: Set::Design,
            part: Part { number: 3, of: 223 },
            only,
            recordings: None,
            file: folder.path().join("design.jsonl"),
            resume,
            jobs: 2,
        };
        let ran = perform(&work(Some(1), false), &question, &Quiet).unwrap();
        assert_eq!(ran, Ran { cells: 1, known: 0, without_recording: 0 });
        let ran = perform(&work(None, true), &question, &Quiet).unwrap();
        assert_eq!((ran.cells, ran.known), (0, 1));
        let collected = super::super::journal::collect(&[work(None, true).file]).unwrap();
        let (cell, result) = &collected.cells[0];
        assert_eq!((&*cell.name, result.schemes.len()), ("design-003", 2));
        let misspelt = Question { scheme: "mor-start".into(), ..question };
        assert!(perform(&work(None, true), &misspelt, &Quiet).unwrap_err().contains("more-start"));
    }
}
