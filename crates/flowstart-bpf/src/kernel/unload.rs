//! Takes a scheme out of the kernel.

use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapHandle};

use super::pins::{self, Found};
use super::status::counts;
use super::{KernelError, available, default_of_namespace, exchange, lock, permission};
use crate::port::Port;

/// How long the kernel may take to let go of what nothing uses.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is asked.
const PAUSE: Duration = Duration::from_millis(20);

/// What is left of an unloaded scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Connections that go on with it until they end. No new one gets it.
    pub connections: u64,
    /// Whether the kernel still holds the programs, for those connections or for sockets that listen with it.
    pub in_use: bool,
    /// Whether it was not loaded, and only files of a load that was killed were removed.
    pub was_remains: bool,
}

/// Takes a scheme out of the kernel.
///
/// # Errors
///
/// It is not loaded, or new connections would go on taking it.
pub fn unload(port: &'static Port) -> Result<Unloaded, KernelError> {
    permission::check()?;
    let _lock = lock::changes()?;
    match pins::find(port)? {
        Found::Nothing => return Err(KernelError::NotLoaded { scheme: port.scheme }),
        Found::Remains => {
            pins::remove_all(port, exchange::files());
            return Ok(Unloaded { connections: 0, in_use: false, was_remains: true });
        }
        Found::Loaded => {}
    }
    if default_of_namespace()? == port.kernel_name {
        return Err(KernelError::IsDefault { name: port.kernel_name });
    }
    let file = pins::file(port, pins::LINK);
    let link = Link::open(&file).map_err(|error| KernelError::File { file, cause: pins::as_io(&error) })?;
    let operations = operations_of(&link);
    // Older kernels cannot detach; there the removal of the file does it.
    drop(link.detach());
    drop(link);
    let counted = counts(port);
    pins::remove_all(port, exchange::files());
    let began = Instant::now();
    while available()?.iter().any(|name| name == port.kernel_name) && began.elapsed() < PATIENCE {
        sleep(PAUSE);
    }
    let in_use = || operations.is_some_and(|id| MapHandle::from_map_id(id).is_ok());
    let open = counted.map_or(0, |counted| counted.started.saturating_sub(counted.ended));
    // Without connections it takes a moment; with them there is nothing to wait for.
    while open == 0 && in_use() && began.elapsed() < PATIENCE {
        sleep(PAUSE);
    }
    Ok(Unloaded { connections: open, in_use: in_use(), was_remains: false })
}

/// The kernel's number for the map that holds the programs.
fn operations_of(link: &Link) -> Option<u32> {
    match link.info().ok()?.info {
        libbpf_rs::query::LinkTypeInfo::StructOps(info) => Some(info.map_id),
        _ => None,
    }
}
