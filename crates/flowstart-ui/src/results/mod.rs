//! Results that were written before: folders of results and records below one folder. Nothing outside of it is read,
//! whatever an address, a link of the file system or a manifest says.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use flowstart_lab::results::folder::{FILES, MANIFEST};
use flowstart_lab::results::manifest::Manifest;
use flowstart_lab::results::stored::Stored;
use flowstart_lab::study::scenario::Scenario;
use flowstart_lab::study::shipped::named_recordings;

mod record;

pub(crate) use record::{RECORD, Record};

/// The page of a folder of results.
pub(crate) const REPORT: &str = "report.html";
/// Most folders that are listed.
const MOST_LISTED: usize = 500;
/// Most entries of the file system that are looked at for a list.
const MOST_SEEN: usize = 20_000;
/// How deep folders of results may lie.
const DEEPEST: usize = 3;
/// Most bytes of a file that is shown: a report of many cells has some megabytes.
const LARGEST: u64 = 64 << 20;
/// Most bytes of a manifest.
const LARGEST_MANIFEST: u64 = 1 << 20;
/// Most bytes of rows of which a page is made anew, or that are compared.
const LARGEST_ROWS: u64 = 64 << 20;

/// The folder below which results are.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its path, without links.
    root: PathBuf,
}

/// Why a folder or a file is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderError(String);

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Results of `compare` or `run`.
    Results,
    /// A record.
    Record,
}

/// A folder of results, as a list shows it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its path below the folder, with `/`.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) kind: Kind,
    /// The title of its question, if it has one.
    pub(crate) title: String,
    /// The command that made it.
    pub(crate) command: String,
}

/// What is listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    /// By name.
    pub(crate) entries: Vec<Entry>,
    /// Whether there may be more.
    pub(crate) is_cut: bool,
}

impl Folder {
    /// The folder at this path.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let refused = |problem: String| FolderError(format!("`{}`: {problem}", path.display()));
        let root = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        if !root.is_dir() {
            return Err(refused("is no folder".into()));
        }
        Ok(Self { root })
    }

    /// The place of a name below the folder, if there is something.
    fn place(&self, name: &str) -> Result<PathBuf, FolderError> {
        let refused = |problem: &str| FolderError(format!("`{name}`: {problem}"));
        let path = Path::new(name);
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || name.contains(['\\', '\0']) || !is_below {
            return Err(refused("allowed are names of folders below the folder of results"));
        }
        let place = self.root.join(path).canonicalize().map_err(|_| refused("is not there"))?;
        if !place.starts_with(&self.root) {
            return Err(refused("leads out of the folder of results"));
        }
        Ok(place)
    }

    /// The content of a file of a folder; `None` if it is not there.
    fn content(&self, name: &str, file: &str, most: u64) -> Result<Option<Vec<u8>>, FolderError> {
        let folder = self.place(name)?;
        if folder.join(file).symlink_metadata().is_err() {
            return Ok(None);
        }
        let place = self.place(&format!("{name}/{file}"))?;
        let content = flowstart_files::read(&place, most);
        content.map(Some).map_err(|error| FolderError(format!("`{name}/{file}`: {error}")))
    }

    /// A file of a folder of results, of those that the lab writes.
    pub(crate) fn file(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, FolderError> {
        if !FILES.contains(&file) {
            return Err(FolderError(format!("`{file}`: allowed are {}", FILES.join(", "))));
        }
        self.content(name, file, LARGEST)
    }

    /// What a folder holds.
    pub(crate) fn kind(&self, name: &str) -> Result<Kind, FolderError> {
        let place = self.place(name)?;
        match (place.join(MANIFEST).exists(), place.join(RECORD).exists()) {
            (true, _) => Ok(Kind::Results),
            (false, true) => Ok(Kind::Record),
            (false, false) => Err(FolderError(format!("`{name}`: holds no results: it has no {MANIFEST}"))),
        }
    }

    /// The manifest of a folder of results.
    pub(crate) fn manifest(&self, name: &str) -> Result<Manifest, FolderError> {
        let content = self.content(name, MANIFEST, LARGEST_MANIFEST)?;
        let content = content.ok_or_else(|| FolderError(format!("`{name}`: has no {MANIFEST}")))?;
        serde_json::from_slice(&content).map_err(|error| FolderError(format!("`{name}/{MANIFEST}`: {error}")))
    }

    /// The question of a folder of results.
    pub(crate) fn scenario(&self, name: &str) -> Result<Scenario, FolderError> {
        let manifest = self.manifest(name)?;
        Scenario::from_text(&manifest.scenario)
            .map_err(|error| FolderError(format!("`{name}/{MANIFEST}`: scenario: {error}")))
    }

    /// The record in a folder.
    pub(crate) fn record(&self, name: &str) -> Result<Record, FolderError> {
        Record::read(|file| self.content(name, file, record::LARGEST)).map_err(|problem| match problem {
            record::Problem::Folder(error) => error,
            record::Problem::Content(problem) => FolderError(format!("`{name}`: {problem}")),
        })
    }

    /// All results of a folder, read and checked.
    pub(crate) fn stored(&self, name: &str) -> Result<Stored, FolderError> {
        let refused = |problem: &str| FolderError(format!("`{name}`: {problem}"));
        let scenario = self.scenario(name)?;
        // They may be anywhere.
        if !named_recordings(&scenario).is_empty() {
            let problem = "its links follow recordings, which are files outside of it; `flowstart report` reads them";
            return Err(refused(problem));
        }
        let folder = self.place(name)?;
        for file in FILES {
            if folder.join(file).symlink_metadata().is_err() {
                continue;
            }
            let place = self.place(&format!("{name}/{file}"))?;
            if place.metadata().map_or(0, |metadata| metadata.len()) > LARGEST_ROWS {
                return Err(refused(&format!("{file} is too large here; `flowstart report` has no such limit")));
            }
        }
        Stored::read(&folder).map_err(|problem| FolderError(self.without_place(&problem)))
    }

    /// A message without the place of the folder, which is nobody's business.
    pub(crate) fn without_place(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.root.display()), "")
    }

    /// The folders of results and records.
    pub(crate) fn list(&self) -> List {
        let mut list = List::default();
        let mut seen = 0;
        let mut waiting = vec![(String::new(), 0)];
        while let Some((name, depth)) = waiting.pop() {
            let Ok(entries) = fs::read_dir(self.root.join(&name)) else { continue };
            let mut below: Vec<String> = Vec::new();
            for entry in entries.flatten() {
                seen += 1;
                if seen > MOST_SEEN {
                    list.is_cut = true;
                    break;
                }
                // A link of the file system has another name where it leads to, if that is here.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let Some(own) = entry.file_name().to_str().filter(|own| !own.starts_with('.')).map(str::to_owned)
                else {
                    continue;
                };
                if is_folder {
                    below.push(if name.is_empty() { own } else { format!("{name}/{own}") });
                }
            }
            below.sort_unstable();
            for name in below.into_iter().rev() {
                match self.entry(&name) {
                    Some(_) if list.entries.len() >= MOST_LISTED => list.is_cut = true,
                    Some(entry) => list.entries.push(entry),
                    None if depth + 1 < DEEPEST => waiting.push((name, depth + 1)),
                    None => {}
                }
            }
        }
        list.entries.sort_by(|one, other| one.name.cmp(&other.name));
        list
    }

    /// A folder as a list shows it, if it holds something.
    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        let kind = self.kind(name).ok()?;
        let (title, command) = match kind {
            Kind::Results => {
                let manifest = self.manifest(name);
                let title = self.scenario(name).map_or(String::new(), |scenario| scenario.title);
                (title, manifest.map_or_else(|error| error.to_string(), |manifest| manifest.command.join(" ")))
            }
            Kind::Record => {
                let record = self.record(name);
                (String::new(), record.map_or_else(|error| error.to_string(), |record| record.command()))
            }
        };
        Some(Entry { name: name.to_owned(), kind, title, command })
    }
}

#[cfg(test)]
mod tests;
