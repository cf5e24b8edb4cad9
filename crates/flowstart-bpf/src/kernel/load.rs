//! Loads a scheme and leaves it in the kernel.

use std::cell::RefCell;

use libbpf_rs::{MapCore, Object, ObjectBuilder, PrintLevel, set_print};

use super::exchange::Asking;
use super::pins::{self, Found};
use super::{KernelError, available, exchange, hints, lock, permission, read};
use crate::hint::Hint;
use crate::port::{Port, Ported};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The map of `struct settings` in `bpf/startup.bpf.h`.
const SETTINGS: &str = ".rodata.settings";
/// The map of the congestion control itself.
const OPERATIONS: &str = "startup";
/// Lines of the kernel's messages that are shown.
const SHOWN: usize = 12;
/// The first Linux with links of `struct_ops`, which keep a congestion control without a process, and the first with
/// those of programs at an interface (TCX).
const OLDEST: [(u32, u32); 2] = [(6, 4), (6, 6)];

/// The congestion avoidance that follows startup: the kernel's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continuation {
    /// CUBIC.
    #[default]
    Cubic,
    /// Reno.
    Reno,
}

/// Loads a scheme, which stays until [`unload`](super::unload()). Where it asks routers, these hosts ask by these
/// interfaces of this network namespace.
///
/// # Errors
///
/// What this host or kernel cannot do. Nothing is then left behind.
pub fn load(
    ported: &Ported,
    continuation: Continuation,
    hints: &[Hint],
    (interfaces, asking): (&[String], Asking),
) -> Result<(), KernelError> {
    let port = ported.port;
    permission::check()?;
    let interfaces = exchange::indices(interfaces)?;
    hints::check(port, ported.hint_use, hints)?;
    let _lock = lock::changes()?;
    match pins::find(port)? {
        Found::Loaded => return Err(KernelError::Loaded { scheme: port.scheme }),
        Found::Remains => pins::remove_all(port, exchange::files()),
        Found::Nothing => {}
    }
    if available()?.iter().any(|name| name == port.kernel_name) {
        return Err(KernelError::NameTaken { name: port.kernel_name });
    }
    let mut object = in_kernel(port, &settings(ported, continuation))?;
    for map in object.maps() {
        if map.name() == "hints" {
            hints::write(&map, port.scheme, hints)?;
        } else if map.name() == pins::CONTROL {
            hints::note_use(&map, port, ported.hint_use)?;
        }
    }
    let sockets = if port.asks_routers { Some(exchange::all_sockets()?) } else { None };
    pins::make_folder(port)?;
    let mut made = Vec::new();
    let mut pinned = pin(port, &mut object, &mut made);
    if let (Ok(()), Some(sockets)) = (&pinned, sockets) {
        pinned = listening(port.scheme, || exchange::attach(port, &object, &sockets, (&interfaces, asking), &mut made));
    }
    let pinned = pinned.and_then(|()| {
        let is_there = pins::find(port)? == Found::Loaded && available()?.iter().any(|name| name == port.kernel_name);
        let told = || "it took the programs, and has no congestion control of this name".to_owned();
        if is_there { Ok(()) } else { Err(KernelError::Refused { scheme: port.scheme, told: told() }) }
    });
    pinned.inspect_err(|_| pins::remove_folder(port, &made))
}

/// `struct settings`.
fn settings(ported: &Ported, continuation: Continuation) -> Vec<u8> {
    let reno = u32::from(continuation == Continuation::Reno);
    [&reno.to_ne_bytes()[..], &0_u32.to_ne_bytes(), &ported.parameters].concat()
}

thread_local! {
    /// What libbpf and the kernel said last.
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` on a program and says what libbpf printed meanwhile if it fails.
pub(super) fn listening<T>(
    program: &'static str,
    work: impl FnOnce() -> libbpf_rs::Result<T>,
) -> Result<T, KernelError> {
    SAID.take();
    let before = set_print(Some((PrintLevel::Warn, |_, text| {
        SAID.with_borrow_mut(|said| said.extend(text.lines().map(str::to_owned)));
    })));
    let done = work();
    set_print(before);
    done.map_err(|error| {
        let said = SAID.take();
        let last = said.len().saturating_sub(SHOWN);
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let told = [vec![format!("{error:#}")], said[last..].to_vec(), too_old(&release).into_iter().collect()];
        KernelError::Refused { scheme: program, told: told.concat().join("\n  ") }
    })
}

/// A hint for whoever's kernel refuses a program and says that it is older than the programs need. Distributions bring
/// parts of newer kernels to old ones, so the release alone refuses nothing.
fn too_old(release: &str) -> Option<String> {
    let mut numbers = release.trim().split(|one: char| !one.is_ascii_digit()).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    let [oldest, for_routers] = OLDEST.map(|(major, minor)| format!("{major}.{minor}"));
    let told = format!(
        "this is Linux {major}.{minor}, and the programs are for {oldest} or later, those that ask routers for {for_routers}"
    );
    ((major, minor) < OLDEST[1]).then_some(told)
}

/// The program of this file.
pub(super) fn program(file: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(name, _)| *name == file).map(|(_, program)| *program)
}

/// The scheme's program in the kernel, which has verified it.
fn in_kernel(port: &Port, settings: &[u8]) -> Result<Object, KernelError> {
    let refused = |told: &str| KernelError::Refused { scheme: port.scheme, told: told.to_owned() };
    let program = program(&port.scheme.replace('-', "_"));
    verified(port.scheme, program.ok_or_else(|| refused("this build does not contain its program"))?, settings)
}

/// A scheme's object in the kernel.
fn verified(scheme: &'static str, object: &[u8], settings: &[u8]) -> Result<Object, KernelError> {
    listening(scheme, || {
        let mut open = ObjectBuilder::default().open_memory(object)?;
        for mut map in open.maps_mut().filter(|map| map.name() == SETTINGS) {
            map.set_initial_value(settings)?;
        }
        open.load()
    })
}

/// Registers the congestion control and pins what keeps it; `made` gets the names of the files.
fn pin(port: &Port, object: &mut Object, made: &mut Vec<String>) -> Result<(), KernelError> {
    listening(port.scheme, || {
        for mut map in object.maps_mut() {
            if let Some(name) = pins::MAPS.into_iter().find(|name| map.name() == *name) {
                map.pin(pins::file(port, name))?;
                made.push(name.to_owned());
            }
        }
        for mut map in object.maps_mut().filter(|map| map.name() == OPERATIONS) {
            map.attach_struct_ops()?.pin(pins::file(port, pins::LINK))?;
            made.push(pins::LINK.to_owned());
        }
        Ok(())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
mod tests {
    use flowstart_core::startup::{StartupConfig, search};

    use super::*;

    #[test]
    fn only_a_kernel_that_is_older_is_told_so() {
        let told = "this is Linux 5.15, and the programs are for 6.4 or later, those that ask routers for 6.6";
        assert_eq!(too_old("5.15.0-105-generic\n").as_deref(), Some(told));
        assert!(too_old("6.5.13").is_some());
        for other in ["6.6.0", "6.10-rc1", "10.0", "", "next"] {
            assert_eq!(too_old(other), None, "{other}");
        }
    }

    /// Where in a 64-bit ELF file the first section with this name lies.
    fn section(object: &[u8], name: &[u8]) -> usize {
        let number = |at: usize, bytes: usize| {
            object[at..at + bytes].iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let (table, entry, count, names) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2), number(0x3e, 2));
        let place = |index: usize| number(table + index * entry + 0x18, 8);
        let begins = |index: usize| place(names) + number(table + index * entry, 4);
        place((0..count).find(|index| object[begins(*index)..].starts_with(&[name, b"\0"].concat())).unwrap())
    }

    #[test]
    fn what_the_verifier_rejects_is_told_with_its_words() {
        if permission::check().is_err() {
            println!("skipped: loading takes root and BTF");
            return;
        }
        let ported = Ported::new(&StartupConfig::Search(search::Config::default())).unwrap();
        let mut object = program("search").unwrap().to_vec();
        let settings = settings(&ported, Continuation::Cubic);
        assert!(verified("search", &object, &settings).is_ok());
        // The first instruction of a program jumps to itself.
        let begin = section(&object, b"struct_ops");
        object[begin..begin + 8].copy_from_slice(&[0x05, 0, 0xff, 0xff, 0, 0, 0, 0]);
        let told = verified("search", &object, &settings).unwrap_err().to_string();
        assert!(told.starts_with("the kernel refuses search: "), "{told}");
        assert!(told.contains("infinite loop") || told.contains("back-edge") || told.contains("unreachable"), "{told}");
    }
}
