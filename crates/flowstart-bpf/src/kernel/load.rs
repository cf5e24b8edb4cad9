//! Loads a scheme and leaves it in the kernel.

use std::cell::RefCell;

use libbpf_rs::{MapCore, Object, ObjectBuilder, PrintLevel, set_print};

use super::exchange::Asking;
use super::pins::{self, Found};
use super::{KernelError, available, exchange, hints, lock, permission};
use crate::hint::Hint;
use crate::port::{Port, Ported};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The map of `struct settings` in `bpf/startup.bpf.h`.
const SETTINGS: &str = ".rodata.settings";
/// The map of the congestion control itself.
const OPERATIONS: &str = "startup";
/// Lines of the kernel's messages that are shown.
const SHOWN: usize = 12;

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
        let told = [vec![format!("{error:#}")], said[last..].to_vec()].concat().join("\n  ");
        KernelError::Refused { scheme: program, told }
    })
}

/// The program of this file.
pub(super) fn program(file: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(name, _)| *name == file).map(|(_, program)| *program)
}

/// The scheme's program in the kernel, which has verified it.
fn in_kernel(port: &Port, settings: &[u8]) -> Result<Object, KernelError> {
    let refused = |told: &str| KernelError::Refused { scheme: port.scheme, told: told.to_owned() };
    let program = program(&port.scheme.replace('-', "_"));
    let program = program.ok_or_else(|| refused("this build does not contain its program"))?;
    listening(port.scheme, || {
        let mut open = ObjectBuilder::default().open_memory(program)?;
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
