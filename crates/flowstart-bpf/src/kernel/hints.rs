//! Hints in the kernel.

use std::num::NonZeroU32;

use ipnet::IpNet;
use libbpf_rs::{ErrorKind, MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};

use super::pins::{self, Found};
use super::wire::{self, Control};
use super::{KernelError, lock, permission};
use crate::hint::Hint;
use crate::port::{HintUse, Port};

/// Takes hints from a loaded scheme and gives it others beside those that it has; returns how many of the destinations
/// to remove had one. A hint replaces another for the same destinations. One that the scheme would not use is refused,
/// and nothing changes.
///
/// # Errors
///
/// The scheme is not loaded, would not use the hints, or has no room for so many.
pub fn change_hints(port: &'static Port, remove: &[IpNet], give: &[Hint]) -> Result<usize, KernelError> {
    permission::check()?;
    let _lock = lock::changes()?;
    if pins::find(port)? != Found::Loaded {
        return Err(KernelError::NotLoaded { scheme: port.scheme });
    }
    if !give.is_empty() {
        check_use(port, give)?;
    }
    let map = pins::map(port, "hints")?;
    let removed = remove_from(&map, port, remove)?;
    write(&map, port.scheme, give)?;
    Ok(removed)
}

/// The hints of a loaded scheme, in the order of their destinations, with those that have expired.
///
/// # Errors
///
/// The scheme is not loaded, or another version of this program has loaded it.
pub fn hints(port: &'static Port) -> Result<Vec<Hint>, KernelError> {
    permission::check()?;
    if pins::find(port)? != Found::Loaded {
        return Err(KernelError::NotLoaded { scheme: port.scheme });
    }
    let map = pins::map(port, "hints")?;
    let mut hints = Vec::new();
    for key in map.keys() {
        // What somebody removes meanwhile is no hint any more.
        let Some(value) = map.lookup(&key, MapFlags::ANY).ok().flatten() else { continue };
        let other_version = || KernelError::OtherVersion { file: pins::file(port, "hints"), scheme: port.scheme };
        // A hint is no younger than this clock, which is read behind it.
        hints.push(wire::read_hint(&key, &value, monotonic_now()).ok_or_else(other_version)?);
    }
    hints.sort_by_key(|hint| hint.destinations);
    // Where a key has gone meanwhile the table begins again.
    hints.dedup_by_key(|hint| hint.destinations);
    Ok(hints)
}

fn check_use(port: &'static Port, hints: &[Hint]) -> Result<(), KernelError> {
    let noted = wire::control(&pins::map(port, pins::CONTROL)?, Control::HintUse);
    let hint_use = noted.ok().flatten().and_then(NonZeroU32::new).and_then(read_use);
    let file = || pins::file(port, pins::CONTROL);
    check(port, hint_use.ok_or_else(|| KernelError::OtherVersion { file: file(), scheme: port.scheme })?, hints)
}

fn remove_from(map: &impl MapCore, port: &'static Port, destinations: &[IpNet]) -> Result<usize, KernelError> {
    let mut removed = 0;
    for network in destinations {
        match map.delete(&wire::destination(*network)) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(KernelError::File { file: pins::file(port, "hints"), cause: pins::as_io(&error) });
            }
        }
    }
    Ok(removed)
}

/// Refuses hints that the scheme would never use.
pub(super) fn check(port: &'static Port, hint_use: HintUse, hints: &[Hint]) -> Result<(), KernelError> {
    let (useless, why) = match hint_use {
        HintUse::Any => return Ok(()),
        HintUse::None => (hints.first(), "uses no hints with these parameters"),
        HintUse::WithRtt => {
            let without = hints.iter().find(|hint| hint.rtt.is_none());
            (without, "uses hints with an RTT only (PREFIX=RATE,RTT) with these parameters")
        }
    };
    useless.map_or(Ok(()), |hint| Err(KernelError::Useless { hint: hint.to_string(), scheme: port.scheme, why }))
}

/// Notes for later calls which hints are used.
pub(super) fn note_use(map: &impl MapCore, port: &'static Port, hint_use: HintUse) -> Result<(), KernelError> {
    let number = match hint_use {
        HintUse::None => 1,
        HintUse::Any => 2,
        HintUse::WithRtt => 3,
    };
    wire::set_control(map, Control::HintUse, number)
        .map_err(|error| KernelError::Refused { scheme: port.scheme, told: error.to_string() })
}

/// What [`note_use`] has noted.
fn read_use(number: NonZeroU32) -> Option<HintUse> {
    match number.get() {
        1 => Some(HintUse::None),
        2 => Some(HintUse::Any),
        3 => Some(HintUse::WithRtt),
        _ => None,
    }
}

/// Puts hints into a map; later ones replace earlier ones for the same destinations. Those that have expired make room.
pub(super) fn write(map: &impl MapCore, scheme: &'static str, hints: &[Hint]) -> Result<(), KernelError> {
    let now = monotonic_now();
    for (given, hint) in hints.iter().enumerate() {
        // This clock may have begun after the hint was learned: what programs subtract from it wraps, too.
        let learned = now.wrapping_sub(hint.age.as_nanos());
        let left = hint.lifetime.map(|lifetime| lifetime.saturating_sub(hint.age).as_nanos());
        let expires = left.map_or(0, |left| now.saturating_add(left).max(1));
        let (key, value) = wire::hint(hint, learned, expires);
        let mut done = map.update(&key, &value, MapFlags::ANY);
        if done.as_ref().is_err_and(is_full) && remove_expired(map, now) > 0 {
            done = map.update(&key, &value, MapFlags::ANY);
        }
        done.map_err(|error| {
            if is_full(&error) {
                return KernelError::Full { scheme, given, wanted: hints.len() };
            }
            KernelError::Refused { scheme, told: format!("the hint {hint}: {error}") }
        })?;
    }
    Ok(())
}

/// Whether a table has no room. libbpf-rs gives the system's number only in its text.
fn is_full(error: &libbpf_rs::Error) -> bool {
    error.to_string().contains(&format!("os error {})", nix::errno::Errno::ENOSPC as i32))
}

/// Removes hints that do not hold any more; returns how many.
fn remove_expired(map: &impl MapCore, now: u64) -> usize {
    let keys: Vec<_> = map.keys().collect();
    let has_expired = |key: &Vec<u8>| {
        let value = map.lookup(key, MapFlags::ANY).ok().flatten();
        value.and_then(|value| wire::expires(&value)).is_some_and(|expires| expires > 0 && expires < now)
    };
    keys.iter().filter(|key| has_expired(key) && map.delete(key).is_ok()).count()
}

/// Nanoseconds of the clock that programs read.
pub(super) fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from).unwrap_or_default();
    now.as_nanos().try_into().unwrap_or(u64::MAX)
}
