//! A folder for results, which is refused before the work if it has something in it.

use std::io::ErrorKind;
use std::path::Path;

use crate::failure::{Failure, shown};

/// Refuses a folder that has something in it.
pub(crate) fn check(folder: &Path) -> Result<(), Failure> {
    let refused = |problem: String| Failure::Input(format!("--out {}: {problem}", shown(folder)));
    let is_empty = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(refused(error.to_string())),
        Ok(mut entries) => entries.next().is_none(),
    };
    if is_empty {
        return Ok(());
    }
    Err(refused("it is not empty; allowed is a folder that does not exist or is empty".into()))
}

/// Makes the folder: one that cannot be made would lose the work. Returns whether it was not there.
pub(crate) fn make(folder: &Path) -> Result<bool, Failure> {
    let is_new = !folder.exists();
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| Failure::Input(format!("--out {}: {error}", shown(folder))))?;
    Ok(is_new)
}
