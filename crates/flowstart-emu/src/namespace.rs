//! Network namespaces without names.
//!
//! Such a namespace has no entry in `/run/netns`: it is gone, with all its interfaces, when nobody holds it and nothing
//! runs in it. So nothing is left behind, however the program that made it ends.

use std::fs::File;
use std::io;
use std::panic::resume_unwind;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// The namespace of the thread that opens it.
const OWN: &str = "/proc/thread-self/ns/net";
/// Whether interfaces of the reader's namespace have no IPv6.
const WITHOUT_IPV6: &str = "/proc/sys/net/ipv6/conf/all/disable_ipv6";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Makes one. Its interfaces have no IPv6, whose search for routers and neighbours would be traffic that nobody
    /// asked for.
    ///
    /// # Errors
    ///
    /// What the system says; `PermissionDenied` without `CAP_SYS_ADMIN`.
    pub fn new() -> io::Result<Self> {
        in_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // A kernel without IPv6 has no such file.
            match std::fs::write(WITHOUT_IPV6, "1") {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            Ok(Self(File::open(OWN)?))
        })
    }

    /// Does this in the namespace: sockets and interfaces stay where they are made, and processes run in the namespace
    /// of the thread that starts them.
    ///
    /// # Errors
    ///
    /// What the system says, or the work.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }
}

/// A thread that changes its namespace cannot be used for anything else.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let working = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        working.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
