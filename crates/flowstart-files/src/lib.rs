//! Files that users name: those that are read, up to a length, and those that are written, whole or not at all.
//!
//! | Looking for | Where |
//! |---|---|
//! | a file's content | [`read`], [`read_if_any`] |
//! | a file that is read piece by piece | [`open`], [`open_without_waiting`] |
//! | the content of a stream, such as stdin | [`read_stream`] |
//! | a file that is there at once | [`replace`], [`replace_secret`] |
//! | a file that grows under another name | [`begin_beside`], [`put_in_place`] |
//! | a file that several programs read and replace | [`hold`], [`is_still`] |
//! | what survives a loss of power | [`sync_content`], [`sync_folder_of`], [`create_folders`] |

mod held;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

pub use held::{hold, is_still};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Why a file is not read. The texts continue a sentence that begins with its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system does not read it.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a folder, or it may have no end, or wait for a writer.
    #[error("is not a regular file; pipes and devices may have no end")]
    NotRegular,
    /// It is longer than anything that makes sense.
    #[error("is too long; allowed is up to {most} bytes")]
    TooLong {
        /// The most that is read.
        most: u64,
    },
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Unreadable(error) => error,
            FileError::NotRegular => Self::new(io::ErrorKind::InvalidInput, format!("it {error}")),
            FileError::TooLong { .. } => Self::new(io::ErrorKind::FileTooLarge, format!("it {error}")),
        }
    }
}

/// Opens a regular file of at most `most` bytes.
///
/// # Errors
///
/// [`FileError`].
pub fn open(file: &Path, most: u64) -> Result<File, FileError> {
    let opened = open_without_waiting(file)?;
    let found = opened.metadata()?;
    match found.len() {
        _ if !found.is_file() => Err(FileError::NotRegular),
        length if length > most => Err(FileError::TooLong { most }),
        _ => Ok(opened),
    }
}

/// Opens a file to read, whatever it is. A pipe without a writer opens too, where the system's default is to wait for
/// one.
///
/// # Errors
///
/// Why it cannot be opened.
pub fn open_without_waiting(file: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
    options.read(true).open(file)
}

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
///
/// [`FileError`].
pub fn read(file: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    // It may grow meanwhile, and files of the kernel say that they are empty.
    read_stream(open(file, most)?, most)
}

/// As [`read`]; `None` if there is no file of this name.
///
/// # Errors
///
/// [`FileError`].
pub fn read_if_any(file: &Path, most: u64) -> Result<Option<Vec<u8>>, FileError> {
    match read(file, most) {
        Err(FileError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// All of a stream that has at most `most` bytes. Of one without an end no more is read.
///
/// # Errors
///
/// [`FileError`].
pub fn read_stream(source: impl Read, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(FileError::TooLong { most }) } else { Ok(bytes) }
}

/// Refuses what is no regular file: a device, a pipe or a folder would be gone where a file takes its place.
fn refuse_special(file: &Path) -> io::Result<()> {
    match fs::metadata(file) {
        Ok(there) if !there.is_file() => {
            let problem = "is no regular file; allowed are regular files and names that are free";
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
        _ => Ok(()),
    }
}

/// Begins a file beside this one, to be put in its place when it is complete: its name, which no other file has, and
/// the file.
///
/// # Errors
///
/// Why it cannot be made. What is there and is no regular file is refused.
pub fn begin_beside(file: &Path) -> io::Result<(PathBuf, File)> {
    begin(file, OpenOptions::new().write(true))
}

/// As [`begin_beside`], opened as these options say.
fn begin(file: &Path, options: &mut OpenOptions) -> io::Result<(PathBuf, File)> {
    refuse_special(file)?;
    loop {
        let mut name = file.to_owned().into_os_string();
        name.push(format!(".{:08x}.new", rand::random::<u32>()));
        match options.create_new(true).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            begun => return begun.map(|begun| (name.into(), begun)),
        }
    }
}

/// What nobody else might do with `file` he may not do with `new`.
#[cfg(unix)]
fn keep_private(new: &Path, file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Ok(before) = fs::metadata(file) else { return Ok(()) };
    let mode = fs::metadata(new)?.permissions().mode();
    let common = mode & (before.permissions().mode() | 0o600);
    if common == mode { Ok(()) } else { fs::set_permissions(new, fs::Permissions::from_mode(common)) }
}

/// Other systems have no such permissions.
#[cfg(not(unix))]
fn keep_private(_new: &Path, _file: &Path) -> io::Result<()> {
    Ok(())
}

/// Gives the complete file `new` the name `file`, in the same folder, so that a loss of power leaves what had this name
/// before, or all of `new`. It gets no more permissions than what had this name before; of a symbolic link it takes the
/// place.
///
/// # Errors
///
/// Why it does not have the name, or might lose it. `new` is then where it was, or in its place. Nothing but a regular
/// file is replaced.
pub fn put_in_place(new: &Path, file: &Path) -> io::Result<()> {
    refuse_special(file)?;
    // Its content before its name: otherwise the name could lead to an empty file.
    sync_content(new)?;
    keep_private(new, file)?;
    fs::rename(new, file)?;
    // Its name: it belongs to the content of the folder.
    sync_folder_of(file)
}

/// Gives the complete file `new` the name `file`, in the same folder, unless something has this name already. Says
/// whether it has it now; if not, `new` is where it was.
///
/// # Errors
///
/// Why it does not have the name, or might lose it.
pub fn put_where_none_is(new: &Path, file: &Path) -> io::Result<bool> {
    sync_content(new)?;
    match rename_to_free(new, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        renamed => renamed?,
    }
    sync_folder_of(file).map(|()| true)
}

/// In one step, where the file system can.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_to_free(new: &Path, file: &Path) -> io::Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, new, AT_FDCWD, file, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => link_to_free(new, file),
        renamed => renamed.map_err(io::Error::from),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_to_free(new: &Path, file: &Path) -> io::Result<()> {
    link_to_free(new, file)
}

/// In two steps: a process that is killed between them leaves both names.
fn link_to_free(new: &Path, file: &Path) -> io::Result<()> {
    fs::hard_link(new, file)?;
    fs::remove_file(new)
}

/// Puts the content of a file on the disk.
///
/// # Errors
///
/// Why it might get lost.
pub fn sync_content(file: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.sync_all()
}

/// Puts the names in the folder of `file` on the disk.
///
/// # Errors
///
/// Why they might get lost. A folder that this program may not read, or that its file system does not synchronize, is
/// no error.
pub fn sync_folder_of(file: &Path) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Other systems do not open folders as files.
    if !cfg!(unix) {
        return Ok(());
    }
    let synchronized = File::open(folder).and_then(|folder| synchronize(&folder));
    synchronized.or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

#[cfg(not(all(test, unix)))]
fn synchronize(folder: &File) -> io::Result<()> {
    folder.sync_all()
}

/// In tests: folders that were synchronized are told to the thread's test. Whether they were is otherwise seen only
/// after a loss of power.
#[cfg(all(test, unix))]
fn synchronize(folder: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    folder.sync_all()?;
    let found = folder.metadata()?;
    tests::SYNCHRONIZED.with_borrow_mut(|all| all.push(found.ino()));
    Ok(())
}

/// Makes a folder and those above it, as far as they are missing, and puts their names on the disk.
///
/// # Errors
///
/// Why one of them cannot be made, or might lose its name.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    let named = folder.ancestors().take_while(|one| !one.as_os_str().is_empty());
    let missing: Vec<_> = named.take_while(|one| !one.exists()).collect();
    fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(sync_folder_of)
}

/// Writes a file that appears whole or not at all, also after a loss of power.
///
/// # Errors
///
/// Why it cannot be written. A file of that name is then as it was, unless only its name might get lost.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    complete(begin_beside(file)?, file, content)
}

/// As [`replace`], a file that only its owner may read: what it holds lets others pass for this user, or tells where
/// the user was.
///
/// # Errors
///
/// As [`replace`].
pub fn replace_secret(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    complete(begin(file, options.write(true))?, file, content)
}

fn complete((new, mut out): (PathBuf, File), file: &Path, content: &[u8]) -> io::Result<()> {
    let written = out.write_all(content).and_then(|()| put_in_place(&new, file));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

    use std::cell::RefCell;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    thread_local! {
        /// The folders that this thread has synchronized, by their inodes.
        pub(super) static SYNCHRONIZED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }

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
    fn devices_and_pipes_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for special in [&*pipe, folder.path(), Path::new("/dev/null")] {
            let error = replace(special, b"content").unwrap_err();
            assert!(error.to_string().starts_with("is no regular file"), "{}: {error}", special.display());
        }
        let new = folder.path().join("new");
        fs::write(&new, "content").unwrap();
        assert!(put_in_place(&new, &pipe).is_err() && new.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_was_private_stays_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (before, allowed) in [(0o600, 0o600), (0o640, 0o640), (0o755, 0o644), (0o400, 0o600)] {
            replace(&file, b"one").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
            replace(&file, b"two").unwrap();
            let mode = fs::metadata(&file).unwrap().mode() & 0o777;
            // The system may allow new files less than 0644.
            assert_eq!(mode & !allowed, 0, "{before:o} became {mode:o}");
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_secret_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        replace(&file, b"one").unwrap();
        replace_secret(&file, b"two").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().mode() & 0o777), (b"two".to_vec(), 0o600));
    }

    #[test]
    fn a_name_is_on_the_disk_when_the_file_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let inode = |folder: &Path| fs::metadata(folder).unwrap().ino();
        let synchronized = || SYNCHRONIZED.take();
        replace(&folder.path().join("file"), b"one").unwrap();
        assert_eq!(synchronized(), [inode(folder.path())]);
        let new = folder.path().join("new");
        fs::write(&new, "two").unwrap();
        put_in_place(&new, &folder.path().join("file")).unwrap();
        assert_eq!(synchronized(), [inode(folder.path())]);
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("outer/inner"));
        create_folders(&inner).unwrap();
        assert_eq!(synchronized(), [inode(&outer), inode(folder.path())]);
        create_folders(&inner).unwrap();
        assert_eq!(synchronized(), []);
        // A name alone is one in the current folder.
        sync_folder_of(Path::new("file")).unwrap();
        assert_eq!(synchronized(), [inode(Path::new("."))]);
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for endless in [&pipe, Path::new("/dev/zero"), Path::new("/dev/null"), folder.path()] {
            let (tell, told) = std::sync::mpsc::channel();
            let file = endless.to_owned();
            std::thread::spawn(move || {
                let results = [open(&file, 10).err(), read(&file, 10).err(), read_if_any(&file, 10).err()];
                tell.send(results.map(|error| error.unwrap().to_string()))
            });
            let told = told.recv_timeout(std::time::Duration::from_secs(20)).expect("an answer without waiting");
            let all = told.iter().all(|one| one.starts_with("is not a regular file"));
            assert!(all, "{}: {told:?}", endless.display());
        }
        let none = folder.path().join("none");
        assert!(read_if_any(&none, 10).unwrap().is_none());
        assert!(matches!(read(&none, 10), Err(FileError::Unreadable(_))));
    }

    #[test]
    fn no_more_is_read_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert_eq!(read(&file, 3).unwrap_err().to_string(), "is too long; allowed is up to 3 bytes");
        assert!(matches!(open(&file, 3), Err(FileError::TooLong { most: 3 })));
        assert_eq!(read_stream(&b"four"[..], 4).unwrap(), b"four");
        assert!(matches!(read_stream(io::repeat(0), 4), Err(FileError::TooLong { most: 4 })));
        // A file of the kernel that says that it has no bytes has more.
        if cfg!(target_os = "linux") {
            assert!(matches!(read(Path::new("/proc/self/status"), 4), Err(FileError::TooLong { most: 4 })));
        }
    }
}
