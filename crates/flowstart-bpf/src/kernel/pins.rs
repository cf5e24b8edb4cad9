//! The files that keep a scheme loaded, in the BPF filesystem.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
pub(super) const MAPS: [&str; 5] = ["hints", "counts", "events", "measured", CONTROL];
/// The map of `enum control`.
pub(super) const CONTROL: &str = "control";
/// The file of the link, whose removal takes the scheme out of the kernel.
pub(super) const LINK: &str = "link";

/// The folder of a scheme.
pub(super) fn folder(port: &Port) -> PathBuf {
    Path::new(FOLDER).join(port.scheme)
}

/// The file of a scheme.
pub(super) fn file(port: &Port, name: &str) -> PathBuf {
    folder(port).join(name)
}

/// What the files of a scheme say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is not loaded.
    Nothing,
    /// It is not loaded, but a load that was killed has left files.
    Remains,
    /// It is loaded.
    Loaded,
}

/// What there is of a scheme. Files in a folder that others can change are refused.
pub(super) fn find(port: &Port) -> Result<Found, KernelError> {
    for folder in [Path::new(FOLDER), &folder(port)] {
        if !is_folder_of_root(folder)? {
            return Ok(Found::Nothing);
        }
    }
    let kind = |name: &str| {
        let file = file(port, name);
        match fs::symlink_metadata(&file) {
            Ok(found) => Ok(Some(found.file_type())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(KernelError::File { file, cause }),
        }
    };
    match kind(LINK)? {
        Some(kind) if kind.is_file() => Ok(Found::Loaded),
        Some(_) => Err(KernelError::NoPin { file: file(port, LINK) }),
        None => {
            let found = MAPS.iter().map(|name| kind(name)).collect::<Result<Vec<_>, _>>()?;
            Ok(if found.iter().any(Option::is_some) { Found::Remains } else { Found::Nothing })
        }
    }
}

/// Whether there is a folder; one that is a link, or that users other than root can change, is refused: its files are
/// not what a load has made.
fn is_folder_of_root(folder: &Path) -> Result<bool, KernelError> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() && found.uid() == 0 && found.mode() & 0o022 == 0 => Ok(true),
        Ok(_) => Err(KernelError::Unsafe { file: folder.to_owned() }),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(KernelError::File { file: folder.to_owned(), cause }),
    }
}

/// Refuses a filesystem in which users other than root can replace the folder.
fn check_filesystem() -> Result<(), KernelError> {
    let file = PathBuf::from(FILESYSTEM);
    let found = match fs::symlink_metadata(&file) {
        Ok(found) => found,
        Err(cause) => return Err(KernelError::File { file, cause }),
    };
    // With the sticky bit only its owner can.
    let is_held = found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0;
    if found.is_dir() && found.uid() == 0 && is_held { Ok(()) } else { Err(KernelError::Unsafe { file }) }
}

/// Removes all that loads make: the files of the congestion control, and those of the programs beside it.
pub(super) fn remove_all(port: &Port, beside: impl Iterator<Item = String>) {
    let own = MAPS.iter().copied().chain([LINK]).map(str::to_owned);
    remove_folder(port, &own.chain(beside).collect::<Vec<_>>());
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
        // As systemd mounts it; the kernel's own mode lets every user make folders.
        let mode = Some("mode=0700");
        mount(Some("bpf"), FILESYSTEM, Some("bpf"), MsFlags::empty(), mode).map_err(|error| refused(error.into()))?;
    }
    let mut made = check_filesystem().and_then(|()| make(FOLDER.as_ref()));
    if !is_mounted {
        // Until it is written there that this has mounted it, nobody else would unmount it.
        made = made.and_then(|()| make(MOUNTED.as_ref())).inspect_err(|_| {
            let _ = umount(FILESYSTEM);
        });
    }
    made?;
    make(&folder(port)).inspect_err(|_| remove_folder(port, &[]))
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

/// Makes a folder that only root can use, or finds it.
fn make(folder: &Path) -> Result<(), KernelError> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
            Err(KernelError::NoFilesystem { place: FILESYSTEM, cause })
        }
        _ => is_folder_of_root(folder).map(drop),
    }
}

/// Removes the named files of a scheme, and what nothing needs any more: folders that are empty, and the filesystem if
/// it was mounted for this. What others put there stays.
pub(super) fn remove_folder(port: &Port, files: &[String]) {
    let is_own = |folder: &Path| matches!(is_folder_of_root(folder), Ok(true));
    if !is_own(FOLDER.as_ref()) {
        return;
    }
    let folder = folder(port);
    if is_own(&folder) {
        for name in files {
            drop(fs::remove_file(folder.join(name)));
        }
        drop(fs::remove_dir(&folder));
    }
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
