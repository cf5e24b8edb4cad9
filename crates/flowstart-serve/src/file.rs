//! Files of the user: some whose size others decide, some that are kept from run to run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

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

/// The content of a file that is kept from run to run, if it exists. Only a regular file can be replaced later.
///
/// # Errors
///
/// Why it cannot be read, that it is longer than `longest`, or no regular file.
pub(crate) fn kept(file: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if !found.is_file() => Err(io::Error::other("it is no regular file; choose another")),
        Ok(_) => read(file, longest).map(Some),
    }
}

/// Begins a file beside this one, to be renamed when it is complete: its name, which no other file has, and the file.
///
/// # Errors
///
/// Why it cannot be made.
pub fn begin_beside(file: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let mut name = file.to_owned().into_os_string();
        name.push(format!(".{:08x}.new", rand::random::<u32>()));
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            begun => return begun.map(|begun| (name.into(), begun)),
        }
    }
}

/// Writes a file that appears whole or not at all, also after a loss of power.
///
/// # Errors
///
/// Why it cannot be written. A file of that name is then as it was.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let (new, mut out) = begin_beside(file)?;
    let mut write = || {
        out.write_all(content)?;
        out.sync_all()?;
        fs::rename(&new, file)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        // A folder cannot be replaced by a file, and nothing of the attempt remains.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, b"three").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(kept(&pipe, 10).unwrap_err().to_string().contains("regular file"));
        assert!(kept(&folder.path().join("none"), 10).unwrap().is_none());
    }

    #[test]
    fn no_more_is_read_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert!(read(&file, 3).unwrap_err().to_string().contains("more than 3 bytes"));
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero"), 1000).is_err());
    }
}
