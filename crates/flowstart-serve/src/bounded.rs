//! Files whose size others decide.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The content of a file of at most `longest` bytes; of a device without an end, no more is read.
///
/// # Errors
///
/// Why it cannot be read, or that it is longer.
pub(crate) fn read(file: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let kind = io::ErrorKind::FileTooLarge;
        return Err(io::Error::new(kind, format!("it has more than {longest} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert!(read(&file, 3).unwrap_err().to_string().contains("more than 3 bytes"));
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero"), 1000).is_err());
    }
}
