//! Hints in the kernel.

use libbpf_rs::{MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};

use super::{KernelError, wire};
use crate::hint::Hint;
use flowstart_core::time::Duration;

/// Puts hints into a map. They expire after `lifetime`, if there is one.
pub(super) fn write(
    map: &impl MapCore,
    scheme: &'static str,
    hints: &[Hint],
    lifetime: Option<Duration>,
) -> Result<(), KernelError> {
    let now = monotonic_now();
    let expires = lifetime.map_or(0, |lifetime| now.saturating_add(lifetime.as_nanos()));
    for hint in hints {
        let (key, value) = wire::hint(hint, now, expires);
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
