//! What a loaded scheme is: its programs, its parameters and its hints, as the kernel has them.

use std::fmt::{self, Write};

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::KernelError;
use super::pins::{self, Found};
use super::wire;
use crate::port::Port;

/// How the name of the map of `struct settings` begins; the kernel keeps 15 bytes of it.
const SETTINGS: &str = ".rodata.set";

/// What connections that take a scheme now depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The kernel's tags of its programs, in order.
    programs: Vec<String>,
    /// Its parameters, as the programs have them.
    settings: Vec<u8>,
    /// Its hints without their ages, in order: destinations, rates and RTTs.
    hints: Vec<Vec<u8>>,
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "programs {}, parameters ", self.programs.join("+"))?;
        hex(f, &self.settings)?;
        f.write_str(if self.hints.is_empty() { ", no hints" } else { ", hints" })?;
        for hint in &self.hints {
            f.write_char(' ')?;
            hex(f, hint)?;
        }
        Ok(())
    }
}

/// Without the zeros at the end, of which there are many.
fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..length.max(1).min(bytes.len())].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// What is in force of a scheme; `None`: it is not loaded.
///
/// # Errors
///
/// The kernel shows it to root only, or it is another version's.
pub fn in_force(port: &'static Port) -> Result<Option<InForce>, KernelError> {
    super::permission::check()?;
    if pins::find(port)? != Found::Loaded {
        return Ok(None);
    }
    let other_version = |name: &str| KernelError::OtherVersion { file: pins::file(port, name), scheme: port.scheme };
    let of = |name: &str| pins::map(port, name)?.info().map_err(|_| other_version(name));
    let counts = of("counts")?.info.id;
    // Its programs are those that count its connections.
    let all = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true));
    let own: Vec<_> = all.filter(|program| program.map_ids.contains(&counts)).collect();
    let mut programs: Vec<String> =
        own.iter().map(|program| program.tag.0.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    programs.sort();
    let maps = own.iter().flat_map(|program| &program.map_ids);
    let is_settings = |map: &MapHandle| map.name().to_string_lossy().starts_with(SETTINGS);
    let settings = maps.filter_map(|id| MapHandle::from_map_id(*id).ok()).find(is_settings);
    let settings = settings.and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
    let settings = settings.ok_or_else(|| other_version("counts"))?;
    let map = pins::map(port, "hints")?;
    let hint = |key: Vec<u8>| Some([&key[..], wire::known(&map.lookup(&key, MapFlags::ANY).ok().flatten()?)?].concat());
    let mut hints: Vec<Vec<u8>> = map.keys().filter_map(hint).collect();
    hints.sort();
    Ok(Some(InForce { programs, settings, hints }))
}
