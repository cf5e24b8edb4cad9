//! Hints in the kernel.

use libbpf_rs::{MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};

use super::{KernelError, permission, pins, wire};
use crate::hint::Hint;
use crate::port::Port;

/// Gives hints to a loaded scheme, beside those that it has; one for the same destinations is replaced.
///
/// # Errors
///
/// The scheme is not loaded, or has no room for so many.
pub fn give_hints(port: &'static Port, hints: &[Hint]) -> Result<(), KernelError> {
    permission::check()?;
    if !pins::is_loaded(port)? {
        return Err(KernelError::NotLoaded { scheme: port.scheme });
    }
    write(&pins::map(port, "hints")?, port.scheme, hints)
}

/// Puts hints into a map; later ones replace earlier ones for the same destinations.
pub(super) fn write(map: &impl MapCore, scheme: &'static str, hints: &[Hint]) -> Result<(), KernelError> {
    let now = monotonic_now();
    for hint in hints {
        // This clock may have begun after the hint was learned.
        let given = now.saturating_sub(hint.age.as_nanos());
        let left = hint.lifetime.map(|lifetime| lifetime.saturating_sub(hint.age).as_nanos());
        let expires = left.map_or(0, |left| now.saturating_add(left).max(1));
        let (key, value) = wire::hint(hint, given, expires);
        map.update(&key, &value, MapFlags::ANY)
            .map_err(|error| KernelError::Refused { scheme, told: format!("the hint {hint}: {error}") })?;
    }
    Ok(())
}

/// Nanoseconds of the clock that programs read.
fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from).unwrap_or_default();
    now.as_nanos().try_into().unwrap_or(u64::MAX)
}
