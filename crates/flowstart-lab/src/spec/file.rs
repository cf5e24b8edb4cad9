//! Files that users name, read up to a length: a device or a pipe may have no end.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Longest scenario or recording, in bytes: a recording of more than 30 million packets.
const LONGEST: u64 = 1 << 28;

/// All bytes of a file.
///
/// # Errors
///
/// When it cannot be read, or has more than 256 MiB.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, Error> {
    stream(File::open(file)?)
}

/// All bytes of a stream.
///
/// # Errors
///
/// When it cannot be read, or has more than 256 MiB.
pub(crate) fn stream(source: impl Read) -> Result<Vec<u8>, Error> {
    read(source, LONGEST)
}

/// All bytes of what has at most so many.
pub(crate) fn read(source: impl Read, longest: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    source.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let problem = format!("it is longer than {longest} bytes, the most that is allowed");
        return Err(Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_at_the_longest_length() {
        assert_eq!(read(&b"1234"[..], 4).unwrap(), b"1234");
        let error = read(std::io::repeat(0), 4).unwrap_err();
        assert!(error.to_string().contains("longer than 4 bytes"), "{error}");
    }
}
