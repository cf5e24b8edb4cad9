//! Loading the programs into the kernel, unloading them, and what they tell.
//!
//! A loaded scheme lives in the kernel, held by files below [`pins::FOLDER`], until it is unloaded.

use std::io;
use std::path::PathBuf;

pub use self::events::{Event, EventKind, follow};
pub use self::exchange::Asking;
pub use self::hints::{change_hints, hints};
pub use self::in_force::{InForce, in_force};
pub use self::learn::{Learner, Measured, Taken};
pub use self::load::{Continuation, load};
pub use self::status::{Counts, Status, Statuses, status};
pub use self::unload::{Unloaded, unload};

mod events;
mod exchange;
mod hints;
mod in_force;
mod learn;
mod load;
mod lock;
mod permission;
pub mod pins;
pub mod quick_start;
mod status;
mod unload;
mod wire;

/// What the kernel or this host refuses.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The process may not.
    #[error("this needs root, or the capabilities {0}")]
    Permission(String),
    /// The kernel does not describe its types.
    #[error("this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF), which the programs need")]
    NoTypes,
    /// There is no place for what stays loaded.
    #[error("{place}: no BPF filesystem is mounted there and none can be mounted: {cause}")]
    NoFilesystem {
        /// Where it should be.
        place: &'static str,
        /// Why not.
        cause: io::Error,
    },
    /// What would be mounted would not stay.
    #[error(
        "this process has mounts of its own, as below `ip netns exec`, and what is loaded would end with them; use \
         `nsenter --net=/run/netns/NAME`, or load it outside, for schemes are there in all network namespaces"
    )]
    MountNamespace,
    /// The scheme is loaded.
    #[error("{scheme} is loaded already; `flowstart tcp unload {scheme}` makes room for other parameters")]
    Loaded {
        /// The scheme.
        scheme: &'static str,
    },
    /// The scheme is not loaded.
    #[error("{scheme} is not loaded")]
    NotLoaded {
        /// The scheme.
        scheme: &'static str,
    },
    /// Another congestion control has the name.
    #[error("the kernel has a congestion control {name} already, which is not from here or still ends")]
    NameTaken {
        /// The name.
        name: &'static str,
    },
    /// New connections would go on taking it.
    #[error(
        "{name} is the default (net.ipv4.tcp_congestion_control) of this network namespace, so new connections would \
         still get it; choose another first, such as `sysctl net.ipv4.tcp_congestion_control=cubic`"
    )]
    IsDefault {
        /// The congestion control.
        name: &'static str,
    },
    /// The kernel took none of it.
    #[error("the kernel refuses {scheme}: {told}")]
    Refused {
        /// The scheme.
        scheme: &'static str,
        /// What it said.
        told: String,
    },
    /// A file cannot be used.
    #[error("{file}: {cause}")]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Others can change it.
    #[error("{file}: this is no folder that only root can change, so what it holds is not trusted; remove it first")]
    Unsafe {
        /// The folder.
        file: PathBuf,
    },
    /// Something else is where a load would put its link.
    #[error("{file}: this is not what `flowstart tcp load` puts there; remove it first")]
    NoPin {
        /// The file.
        file: PathBuf,
    },
    /// Someone follows the events.
    #[error("the events of {scheme} are followed already, and each goes to one follower only")]
    Followed {
        /// The scheme.
        scheme: &'static str,
    },
    /// Someone learns.
    #[error("another command learns already, and what is measured goes to one only")]
    Learning,
    /// A hint that the scheme would never use.
    #[error("the hint {hint}: {scheme} {why}")]
    Useless {
        /// The hint.
        hint: String,
        /// The scheme.
        scheme: &'static str,
        /// What it uses.
        why: &'static str,
    },
    /// There is no room for more hints.
    #[error("{scheme} has no room for so many hints: gave {given} of {wanted}")]
    Full {
        /// The scheme.
        scheme: &'static str,
        /// Hints that it got.
        given: usize,
        /// All that were to be given.
        wanted: usize,
    },
    /// There is no such interface.
    #[error("this network namespace has no interface {name}")]
    Interface {
        /// Its name.
        name: String,
    },
    /// Too many interfaces.
    #[error("at most {} interfaces can ask", exchange::MOST_INTERFACES)]
    Interfaces,
    /// There is no hierarchy in which all sockets are.
    #[error("no control groups of version 2 are mounted (cgroup2), by which the programs see this host's sockets")]
    NoControlGroups,
    /// What is loaded was written by another version.
    #[error("{file} is not as this version writes it; unload {scheme} and load it again")]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The scheme.
        scheme: &'static str,
    },
}

impl KernelError {
    /// Whether another input would help, and not another host.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Loaded { .. }
                | Self::NotLoaded { .. }
                | Self::IsDefault { .. }
                | Self::NameTaken { .. }
                | Self::Followed { .. }
                | Self::Learning
                | Self::Useless { .. }
                | Self::Full { .. }
                | Self::Interface { .. }
                | Self::Interfaces
        )
    }
}

/// Names of the kernel's congestion controls.
fn available() -> Result<Vec<String>, KernelError> {
    let text = read("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The congestion control of new connections.
fn default_of_namespace() -> Result<String, KernelError> {
    Ok(read("/proc/sys/net/ipv4/tcp_congestion_control")?.trim().to_owned())
}

fn read(file: &str) -> Result<String, KernelError> {
    std::fs::read_to_string(file).map_err(|cause| KernelError::File { file: file.into(), cause })
}
