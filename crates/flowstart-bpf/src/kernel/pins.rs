//! The files that keep a scheme loaded, in the BPF filesystem.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::MapHandle;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use super::KernelError;
use crate::port::Port;

/// Where the BPF filesystem is.
const FILESYSTEM: &str = "/sys/fs/bpf";
/// Where the files of all schemes are, each in a folder of its name.
pub const FOLDER: &str = "/sys/fs/bpf/flowstart";
/// A folder that says that the filesystem was mounted for this.
const MOUNTED: &str = "/sys/fs/bpf/flowstart/mounted_for_it";

/// What every BPF filesystem has of its own.
const OWN_FILES: [&str; 2] = ["maps.debug", "progs.debug"];

/// The maps that have a file.
pub(super) const MAPS: [&str; 4] = ["hints", "counts", "events", "following"];
/// The file of the link, whose removal takes the scheme out of the kernel.
pub(super) const LINK: &str = "link";

/// The file of a scheme.
pub(super) fn file(port: &Port, name: &str) -> PathBuf {
    Path::new(FOLDER).join(port.scheme).join(name)
}

/// Whether a scheme is loaded.
pub(super) fn is_loaded(port: &Port) -> Result<bool, KernelError> {
    let file = file(port, LINK);
    file.try_exists().map_err(|cause| KernelError::File { file, cause })
}

/// A map of a loaded scheme.
pub(super) fn map(port: &Port, name: &str) -> Result<MapHandle, KernelError> {
    let file = file(port, name);
    MapHandle::from_pinned_path(&file).map_err(|error| KernelError::File { file, cause: as_io(&error) })
}

/// What libbpf says, as the system's error if it is one.
pub(super) fn as_io(error: &libbpf_rs::Error) -> io::Error {
    io::Error::new(error.kind().into_io(), error.to_string())
}

/// Kinds of errors of libbpf that callers tell apart.
trait IntoIo {
    fn into_io(self) -> io::ErrorKind;
}

impl IntoIo for libbpf_rs::ErrorKind {
    fn into_io(self) -> io::ErrorKind {
        match self {
            Self::NotFound => io::ErrorKind::NotFound,
            Self::PermissionDenied => io::ErrorKind::PermissionDenied,
            Self::AlreadyExists => io::ErrorKind::AlreadyExists,
            _ => io::ErrorKind::Other,
        }
    }
}

/// Makes the folder of a scheme, and mounts the filesystem where it is missing.
pub(super) fn make_folder(port: &Port) -> Result<(), KernelError> {
    let refused = |cause| KernelError::NoFilesystem { place: FILESYSTEM, cause };
    let is_mounted = statfs(FILESYSTEM).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    if !is_mounted {
        if is_in_mount_namespace_of_its_own() {
            return Err(KernelError::MountNamespace);
        }
        let none: Option<&str> = None;
        mount(Some("bpf"), FILESYSTEM, Some("bpf"), MsFlags::empty(), none).map_err(|error| refused(error.into()))?;
    }
    let made = make(FOLDER.as_ref()).and_then(|()| if is_mounted { Ok(()) } else { make(MOUNTED.as_ref()) });
    made.and_then(|()| make(&Path::new(FOLDER).join(port.scheme))).map_err(|cause| {
        remove_folder(port);
        refused(cause)
    })
}

/// Whether what is mounted here ends with this process or a few of its ancestors, as in `ip netns exec`.
fn is_in_mount_namespace_of_its_own() -> bool {
    let namespace = |process: u32| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let parent = |process: u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok().filter(|parent| *parent > 0)
    };
    let own = std::process::id();
    let mut ancestors = std::iter::successors(parent(own), |process| parent(*process));
    ancestors.any(|process| namespace(process).is_some_and(|other| namespace(own) != Some(other)))
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Removes all files of a scheme, and what nothing needs any more: folders that are empty, and the filesystem if it was
/// mounted for this. What others put there stays.
pub(super) fn remove_folder(port: &Port) {
    let folder = Path::new(FOLDER).join(port.scheme);
    for entry in entries(&folder) {
        drop(fs::remove_file(entry));
    }
    drop(fs::remove_dir(&folder));
    let was_mounted = Path::new(MOUNTED).exists();
    if entries(FOLDER).iter().any(|entry| entry != Path::new(MOUNTED)) {
        return;
    }
    drop(fs::remove_dir(MOUNTED));
    drop(fs::remove_dir(FOLDER));
    let is_own = |entry: &PathBuf| OWN_FILES.iter().any(|own| entry.ends_with(own));
    if was_mounted && entries(FILESYSTEM).iter().all(is_own) {
        let _ = umount(FILESYSTEM);
    }
}

fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
