//! `manifest.json`: what produced a folder of results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::{MANIFEST, read_file};
use super::identity::Identity;

/// What produced a folder of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program.
    pub version: String,
    /// The command.
    pub command: Vec<String>,
    /// The scenario that the command amounts to, as TOML, enough to run it again or to replay one run.
    pub scenario: String,
    /// Folder that the scenario's files are relative to.
    pub directory: PathBuf,
    /// Master seed.
    pub seed: u64,
    /// Where it ran.
    pub host: String,
    /// Seconds of wall time.
    pub wall_time_s: f64,
    /// When, in seconds since 1970.
    pub unix_time_s: u64,
    /// Files written.
    pub files: Vec<String>,
    /// Which experiment the rows belong to; absent in folders of programs that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Identity>,
    /// Checksum of `flows.csv`; absent in folders of programs that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

/// Most bytes of one that is read.
const LARGEST_MANIFEST: u64 = 64 << 20;

impl Manifest {
    /// That of a folder, if it has one.
    ///
    /// # Errors
    ///
    /// Why the file is none of this program.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        let Some(bytes) = read_file(&folder.join(MANIFEST), LARGEST_MANIFEST)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string())
    }
}
