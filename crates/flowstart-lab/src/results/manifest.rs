//! `manifest.json`: the origin of a folder of results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::{MANIFEST, read_file};
use super::identity::Identity;

/// The origin of a folder of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// The command.
    pub command: Vec<String>,
    /// The scenario equivalent to the command, as TOML, sufficient to run it again or to replay one run.
    pub scenario: String,
    /// Folder to which the scenario's files are relative.
    pub directory: PathBuf,
    /// Master seed.
    pub seed: u64,
    /// The machine that ran it.
    pub host: String,
    /// Seconds of wall time.
    pub wall_time_s: f64,
    /// The time, in seconds since 1970.
    pub unix_time_s: u64,
    /// Files written.
    pub files: Vec<String>,
    /// The identity of the rows' experiment; absent in folders of programs that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Identity>,
    /// Algorithms from outside the program: only a program that has them can read the folder.
    #[serde(default, alias = "own_schemes", skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// Checksum of `flows.csv`; absent in folders of programs that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

/// Most bytes of a manifest that are read.
const LARGEST_MANIFEST: u64 = 64 << 20;

impl Manifest {
    /// The manifest of a folder, if it has one.
    ///
    /// # Errors
    ///
    /// The reason why the file is not a manifest of this program.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        let Some(bytes) = read_file(&folder.join(MANIFEST), LARGEST_MANIFEST)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string())
    }
}
