//! What is loaded, and what its connections have done.

use libbpf_rs::{MapCore, MapFlags};

use super::KernelError;
use super::pins::{self, Found};
use super::wire::Fields;
use crate::port::{PORTS, Port, REASONS};

/// What a scheme's connections have done since it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that took it.
    pub started: u64,
    /// Those of them that have ended.
    pub ended: u64,
    /// Launches.
    pub launched: u64,
    /// Connections that started with CUBIC's slow start, because the scheme lacked something.
    pub fell_back: u64,
    /// Ends of startup, with their reasons.
    pub exits: Vec<(&'static str, u64)>,
}

/// A loaded scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The scheme.
    pub port: &'static Port,
    /// What its connections have done.
    pub counts: Counts,
    /// Its hints, of whatever age.
    pub hints: usize,
}

/// What is loaded, and what is in the way.
#[derive(Debug, Default)]
pub struct Statuses {
    /// Loaded schemes.
    pub loaded: Vec<Status>,
    /// Schemes of which a load that was killed has left files, which `unload` and the next load remove.
    pub remains: Vec<&'static Port>,
    /// What cannot be read.
    pub failed: Vec<KernelError>,
}

/// All schemes.
///
/// # Errors
///
/// The kernel shows them to root only.
pub fn status() -> Result<Statuses, KernelError> {
    super::permission::check()?;
    let mut statuses = Statuses::default();
    for port in PORTS {
        match pins::find(port) {
            Ok(Found::Nothing) => {}
            Ok(Found::Remains) => statuses.remains.push(port),
            Ok(Found::Loaded) => match of_loaded(port) {
                Ok(status) => statuses.loaded.push(status),
                Err(error) => statuses.failed.push(error),
            },
            Err(error) => statuses.failed.push(error),
        }
    }
    Ok(statuses)
}

fn of_loaded(port: &'static Port) -> Result<Status, KernelError> {
    let hints = pins::map(port, "hints")?.keys().count();
    Ok(Status { port, counts: counts(port)?, hints })
}

/// The counts of a loaded scheme.
pub(super) fn counts(port: &'static Port) -> Result<Counts, KernelError> {
    let other_version = || KernelError::OtherVersion { file: pins::file(port, "counts"), scheme: port.scheme };
    let map = pins::map(port, "counts")?;
    let found = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
    let of_cpus = found.ok().flatten().ok_or_else(other_version)?;
    let mut counts = Counts { exits: REASONS.map(|reason| (reason, 0)).to_vec(), ..Counts::default() };
    for of_cpu in of_cpus {
        let mut fields = Fields::new(&of_cpu);
        let mut add = |to: &mut u64| fields.wide().map(|value| *to += value);
        let head = [&mut counts.started, &mut counts.ended, &mut counts.launched, &mut counts.fell_back];
        let mut complete = head.into_iter().all(|to| add(to).is_some());
        // The first reason is that startup goes on.
        complete &= add(&mut 0).is_some();
        complete &= counts.exits.iter_mut().all(|(_, to)| add(to).is_some());
        if !complete {
            return Err(other_version());
        }
    }
    counts.exits.retain(|(_, count)| *count > 0);
    Ok(counts)
}
