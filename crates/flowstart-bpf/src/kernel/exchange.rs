//! The programs of hosts for a scheme that asks routers (`bpf/quick_start_exchange.bpf.h`), where they are attached,
//! and the files that keep them there.

use std::fs::File;
use std::os::fd::AsRawFd;

use libbpf_rs::{Link, Object};
use nix::net::if_::if_nametoindex;

use super::{KernelError, pins, read};
use crate::port::Port;

/// Which hosts of the interfaces ask routers for a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Servers, with their SYN/ACK: they send what is downloaded.
    #[default]
    Servers,
    /// Clients, with their SYN: they send what is uploaded.
    Clients,
    /// Both.
    Both,
}

/// Most interfaces by which hosts ask.
pub(super) const MOST_INTERFACES: usize = 16;

/// Programs for the sockets of this host, which are also the names of their files.
const FOR_SOCKETS: [&str; 2] = ["quick_start_hear", "quick_start_answer"];
/// Programs for an interface by which servers ask, and clients. Their files have a number in their names.
const OF_SERVERS: &str = "quick_start_ask";
const OF_CLIENTS: &str = "quick_start_ask_opening";

impl Asking {
    /// The programs for an interface.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Servers => &[OF_SERVERS],
            Self::Clients => &[OF_CLIENTS],
            Self::Both => &[OF_SERVERS, OF_CLIENTS],
        }
    }
}

/// Names of all files.
pub(super) fn files() -> impl Iterator<Item = String> {
    let of = |program: &'static str| (0..MOST_INTERFACES).map(move |number| format!("{program}_{number}"));
    let asking = Asking::Both.programs().iter().copied().flat_map(of);
    FOR_SOCKETS.map(str::to_owned).into_iter().chain(asking)
}

/// The numbers of interfaces of this network namespace.
pub(super) fn indices(interfaces: &[String]) -> Result<Vec<i32>, KernelError> {
    if interfaces.len() > MOST_INTERFACES {
        return Err(KernelError::Interfaces);
    }
    let index = |name: &String| {
        let found = if_nametoindex(name.as_str()).ok().and_then(|index| i32::try_from(index).ok());
        found.ok_or_else(|| KernelError::Interface { name: name.clone() })
    };
    interfaces.iter().map(index).collect()
}

/// The root of the hierarchy of control groups, in which all sockets of this host are.
pub(super) fn all_sockets() -> Result<File, KernelError> {
    let mounts = read("/proc/self/mounts")?;
    let of_type = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| place.to_owned())
    };
    let place = mounts.lines().find_map(of_type).ok_or(KernelError::NoControlGroups)?;
    File::open(&place).map_err(|cause| KernelError::File { file: place.into(), cause })
}

/// Attaches and pins them; `made` gets the names of the files.
pub(super) fn attach(
    port: &Port,
    object: &Object,
    sockets: &File,
    (interfaces, asking): (&[i32], Asking),
    made: &mut Vec<String>,
) -> libbpf_rs::Result<()> {
    let mut keep = |mut link: Link, name: String| {
        link.pin(pins::file(port, &name))?;
        made.push(name);
        Ok::<_, libbpf_rs::Error>(())
    };
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if FOR_SOCKETS.contains(&name.as_str()) {
            keep(program.attach_cgroup(sockets.as_raw_fd())?, name)?;
        } else if asking.programs().contains(&name.as_str()) {
            for (number, interface) in interfaces.iter().enumerate() {
                // libbpf's call for XDP makes a link of the program's own kind, here TCX, at an interface.
                keep(program.attach_xdp(*interface)?, format!("{name}_{number}"))?;
            }
        }
    }
    Ok(())
}
