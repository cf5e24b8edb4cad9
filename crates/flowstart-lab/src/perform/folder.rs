//! A folder as the place of results: rows, summary, manifest and report, and a journal from which a run can resume.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use flowstart_report::{DataFile, Method, PublishedTable};

use super::{Performed, Progress, Sink};
use crate::experiment;
use crate::report::{self, Texts};
use crate::results::files::write_results;
use crate::results::flows::Row;
use crate::results::folder::{ExperimentError, FILES, Occupied, prepare_folder, write_file};
use crate::results::identity::Identity;
use crate::results::journal::{self, Journal};
use crate::results::manifest::Manifest;
use crate::results::summary::Summary;
use crate::study::Study;
use crate::study::plan::Plan;
use crate::trace::observe::{Kept, Wanted};

/// The origin of results.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// The command as the user gave it.
    pub command: Vec<String>,
    /// The machine.
    pub host: String,
}

impl Provenance {
    /// The command line and the machine of this process, a program of this name and version.
    pub fn of_this_process(program: &str, version: &str) -> Self {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self {
            version: version.to_owned(),
            command: std::iter::once(program.to_owned()).chain(arguments).collect(),
            host: format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Shows results beside published numbers, if there are any.
pub type Published<'a> = &'a (dyn Fn(&Plan, &[Row], &Summary) -> Option<PublishedTable> + Sync);

/// A folder of results.
pub struct Folder<'a> {
    path: PathBuf,
    resume: bool,
    provenance: Provenance,
    published: Published<'a>,
    started: Instant,
    /// The study as TOML.
    scenario: String,
    /// Keeps other writers out until the end.
    occupied: Option<Occupied>,
    journal: Mutex<Option<Journal>>,
}

impl<'a> Folder<'a> {
    /// A folder. It must not exist, or must be empty, or with `resume` must hold an interrupted run of the same study.
    pub fn new(path: PathBuf, resume: bool, provenance: Provenance, published: Published<'a>) -> Self {
        Self {
            path,
            resume,
            provenance,
            published,
            started: Instant::now(),
            scenario: String::new(),
            occupied: None,
            journal: Mutex::new(None),
        }
    }

    fn manifest(&self, study: &Study) -> Manifest {
        Manifest {
            version: self.provenance.version.clone(),
            command: self.provenance.command.clone(),
            scenario: self.scenario.clone(),
            // As the user gave it: results are passed on, and should not reveal where a machine keeps its files.
            directory: study.directory.clone(),
            seed: study.plan.seed,
            host: self.provenance.host.clone(),
            wall_time_s: self.started.elapsed().as_secs_f64(),
            unix_time_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            files: FILES.iter().map(|file| (*file).to_owned()).collect(),
            experiment: Some(Identity::of(&study.plan)),
            own: study.plan.own().into_iter().map(str::to_owned).collect(),
            rows: None,
        }
    }
}

impl Sink for Folder<'_> {
    fn open(&mut self, study: &Study, most: u32, progress: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        // Before the work: results without the means to replay a run would be half lost.
        self.scenario = study.to_toml().map_err(ExperimentError::Study)?;
        self.occupied = Some(prepare_folder(&self.path, self.resume)?);
        let mut known = Vec::new();
        if self.resume {
            let earlier = journal::earlier(&self.path, &study.with_reps(most).plan)?;
            if let Some(file) = &earlier.set_aside {
                let why = "the rows of an interrupted run do not say of which experiment they are, and are run again";
                progress.note(&format!("{why}; they are kept in {}", file.display()));
            }
            known = earlier.rows;
            let done: BTreeSet<(&str, u64)> = known.iter().map(|row| (row.cell.as_str(), row.rep)).collect();
            let all = experiment::run_count(&study.plan);
            // Nobody knows yet how many there will be if repetitions are added.
            let of = if most > study.plan.reps { String::new() } else { format!(" of {all}") };
            progress.note(&format!("{}{of} runs are taken over from {}", done.len(), self.path.display()));
        }
        let journal = Journal::open(&self.path, &study.plan, &known)?;
        *self.journal.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(journal);
        Ok(known)
    }

    fn wanted(&self, study: &Study) -> Wanted {
        report::wanted(&study.plan)
    }

    fn add(&self, rows: &[Row], progress: &dyn Progress) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = journal.as_mut() else { return };
        let is_known = journal.is_behind();
        // A failure does not stop the experiment, which writes the results at its end.
        if let Err(error) = journal.add(rows)
            && !is_known
        {
            let problem = "the journal of the run cannot be written, and --resume would run again what is not in it";
            progress.warn(&format!("{problem}: {error}; it is tried again after each repetition"));
        }
    }

    fn close(
        &mut self,
        study: &Study,
        performed: &Performed,
        kept: Kept,
        jobs: usize,
        progress: &dyn Progress,
    ) -> Result<(), ExperimentError> {
        let Performed { rows, summary } = performed;
        // Their number may have grown.
        self.scenario = study.to_toml().map_err(ExperimentError::Study)?;
        let manifest = self.manifest(study);
        self.occupied.as_ref().map_or(Ok(()), Occupied::check)?;
        write_results(&self.path, rows, summary, &manifest)?;
        // Only now: the results are safe even if the page fails.
        let method = method(&self.path, study, &manifest);
        let texts = Texts::of(&study.scenario);
        let again = |again| progress.again(again);
        let mut page = report::build(&study.plan, rows, summary, &texts, jobs, method, kept, &again)?;
        page.published = (self.published)(&study.plan, rows, summary);
        let html = flowstart_report::render(&page).map_err(|error| ExperimentError::Report(error.to_string()))?;
        write_file(&self.path.join("report.html"), |out| out.write_all(html.as_bytes()))?;
        Journal::remove(&self.path);
        Ok(())
    }
}

/// How the results of a folder were obtained.
pub(super) fn method(folder: &Path, study: &Study, manifest: &Manifest) -> Method {
    Method {
        command: manifest.command.join(" "),
        directory: folder.display().to_string(),
        version: manifest.version.clone(),
        seed: Some(study.plan.seed),
        repetitions: Some(study.plan.reps),
        host: manifest.host.clone(),
        date: String::new(),
        wall_time_s: Some(manifest.wall_time_s),
        files: [
            ("flows.csv", "a row per measured flow and repetition"),
            ("flows.parquet", "the same rows for analysis tools"),
            ("summary.json", "metrics, intervals and comparisons of every cell"),
            ("manifest.json", "version, command, seed, host and wall time"),
        ]
        .map(|(name, what)| DataFile { name: name.into(), what: what.into() })
        .to_vec(),
        notes: study.notes.clone(),
    }
}
