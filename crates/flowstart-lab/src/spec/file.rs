//! Files that users name, read up to a length.

use std::io::{Error, Read};
use std::path::Path;

/// Longest scenario or recording, in bytes: a recording of more than 30 million packets.
const LONGEST: u64 = 1 << 28;

/// All bytes of a file.
///
/// # Errors
///
/// When it cannot be read, is no regular file, or has more than 256 MiB.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Error> {
    Ok(flowstart_files::read(file, LONGEST)?)
}

/// All bytes of a stream.
///
/// # Errors
///
/// When it cannot be read, or has more than 256 MiB.
pub(crate) fn stream(source: impl Read) -> Result<Vec<u8>, Error> {
    Ok(flowstart_files::read_stream(source, LONGEST)?)
}
