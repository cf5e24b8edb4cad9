//! Whether this process may load programs.

use super::{KernelError, read};

/// Capabilities and their numbers in the kernel's header.
const NEEDED: [(&str, u32); 3] = [("CAP_BPF", 39), ("CAP_PERFMON", 38), ("CAP_NET_ADMIN", 12)];
/// It stands for the first two.
const SYS_ADMIN: u32 = 21;

/// Refuses a process without the capabilities, and a kernel that does not describe its types.
pub(super) fn check() -> Result<(), KernelError> {
    let status = read("/proc/self/status")?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |number: u32| effective & (1 << number) != 0;
    let missing = NEEDED.iter().filter(|(_, number)| !has(*number) && (*number == 12 || !has(SYS_ADMIN)));
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        return Err(KernelError::Permission(missing.join(", ")));
    }
    if std::path::Path::new("/sys/kernel/btf/vmlinux").exists() { Ok(()) } else { Err(KernelError::NoTypes) }
}
