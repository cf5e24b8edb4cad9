//! Files that several programs read and replace in turns.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::refuse_special;

/// Longest wait for a file that another program holds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks whether it is free.
const POLL: Duration = Duration::from_millis(5);

/// Holds a file until the value is dropped, so that what is read and replaced meanwhile loses nothing of what others
/// write who hold it, too. An empty one is made where none is, for its owner alone. It may be replaced while it is
/// held.
///
/// # Errors
///
/// Why it cannot be opened, or that somebody else has held it for two seconds.
pub fn hold(file: &Path) -> io::Result<File> {
    refuse_special(file)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(nix::libc::O_NONBLOCK);
    }
    let begin = Instant::now();
    loop {
        let opened = options.open(file)?;
        match opened.try_lock() {
            // Who held it before may have replaced it.
            Ok(()) if is_still(&opened, file) => return Ok(opened),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(opened),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) | Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(POLL),
            Ok(()) | Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another program holds it"));
            }
        }
    }
}

/// Some file systems have no locks.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(nix::libc::ENOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Whether a path still leads to the file that was opened there.
#[cfg(unix)]
#[must_use]
pub fn is_still(file: &File, path: &Path) -> bool {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let place = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), fs::metadata(path)), (Ok(opened), Ok(named)) if place(&opened) == place(&named))
}

/// Whether a path still leads to a file: on other systems an open file cannot be removed.
#[cfg(not(unix))]
#[must_use]
pub fn is_still(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::fs;

    use super::*;
    use crate::{read, replace_secret};

    #[test]
    fn who_holds_a_file_is_alone_also_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("count");
        let add = || {
            let held = hold(&file).unwrap();
            let count: u64 = String::from_utf8(read(&file, 10).unwrap()).unwrap().parse().unwrap_or(0);
            replace_secret(&file, (count + 1).to_string().as_bytes()).unwrap();
            drop(held);
        };
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| (0..5).for_each(|_| add()));
            }
        });
        assert_eq!(fs::read(&file).unwrap(), b"20");
        let held = hold(&file).unwrap();
        assert_eq!(hold(&file).unwrap_err().to_string(), "another program holds it");
        drop(held);
        assert!(hold(&file).is_ok());
        assert!(hold(folder.path()).unwrap_err().to_string().starts_with("is no regular file"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
