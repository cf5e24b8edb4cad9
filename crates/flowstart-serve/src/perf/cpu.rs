//! CPU time of this process.

/// Seconds of CPU time that this process has used; `None` if the system does not report it.
#[cfg(unix)]
pub(super) fn seconds() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Seconds of CPU time that this process has used: not told here.
#[cfg(not(unix))]
pub(super) fn seconds() -> Option<f64> {
    None
}
