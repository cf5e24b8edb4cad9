//! Locks, so that two commands at a time do not take each other's files.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::libc::{O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW};

use super::{KernelError, pins};
use crate::port::Port;

/// What loads, unloads and hints hold. It is outside of the BPF filesystem, which is mounted and unmounted meanwhile.
const FILE: &str = "/run/flowstart-tcp.lock";

/// What the one holds who takes what connections measure.
const LEARNING: &str = "/run/flowstart-tcp-learn.lock";

fn open(file: &str) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    // Others could hold what they can open.
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(O_NOFOLLOW | O_CLOEXEC).open(file)
}

/// Waits until no other command changes what is loaded. The lock ends with its value, or with the process.
pub(super) fn changes() -> Result<File, KernelError> {
    let locked = open(FILE).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|cause| KernelError::File { file: FILE.into(), cause })
}

/// The one place for whoever learns: what is taken is there for nobody else.
pub(super) fn learning() -> Result<File, KernelError> {
    let refused = |cause| KernelError::File { file: LEARNING.into(), cause };
    let file = open(LEARNING).map_err(refused)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(KernelError::Learning),
        Err(TryLockError::Error(cause)) => Err(refused(cause)),
    }
}

/// The one place for whoever follows the events of a loaded scheme.
pub(super) fn following(port: &'static Port) -> Result<File, KernelError> {
    let folder: PathBuf = pins::folder(port);
    let refused = |cause| KernelError::File { file: folder.clone(), cause };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    let file = options.open(&folder).map_err(refused)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(KernelError::Followed { scheme: port.scheme }),
        Err(TryLockError::Error(cause)) => Err(refused(cause)),
    }
}
