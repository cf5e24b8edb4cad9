//! What is known of a cell's path, as a hint to a loaded scheme: rows between sockets know what simulated ones do.

use std::net::IpAddr;

use flowstart_bpf::hint::Hint;
use flowstart_bpf::kernel::{KernelError, change_hints};
use flowstart_bpf::port::Port;
use flowstart_core::sources::Known;
use flowstart_core::time::Duration;
use flowstart_emu::dumbbell::CLIENTS;
use flowstart_lab::run::testbed::known;
use flowstart_lab::study::plan::{Cell, Plan};

use super::words;

/// A hint for the testbed's client alone, which is withdrawn when this is dropped.
pub(super) struct Hinted(&'static Port);

impl Hinted {
    /// Gives it; `None`: nothing is known, or this scheme has no use for it, or `flowstart tcp load` has not loaded it.
    pub(super) fn new(plan: &Plan, cell: &Cell, port: &'static Port) -> Result<Option<Self>, String> {
        let known = known(plan, cell);
        let saved = known.saved.and_then(|saved| saved.rate());
        let hinted = known.hint.map(|hint| hint.bandwidth);
        let senses_saved = plan.schemes[cell.scheme].on(cell.transport).senses().contains(&Known::Saved);
        let rate = if senses_saved { saved.or(hinted) } else { hinted.or(saved) };
        let Some(rate) = rate.filter(|rate| port.takes_hints && Hint::RATES.contains(rate)) else { return Ok(None) };
        let hint = Hint {
            destinations: IpAddr::from(CLIENTS).into(),
            rate,
            rtt: known.saved.map(|saved| saved.rtt),
            age: known.saved.map_or(Duration::ZERO, |saved| saved.age),
            lifetime: None,
        };
        match change_hints(port, &[], &[hint]) {
            Ok(_) => Ok(Some(Self(port))),
            Err(KernelError::Useless { .. } | KernelError::NotLoaded { .. }) => Ok(None),
            Err(error) => Err(words(error)),
        }
    }
}

impl Drop for Hinted {
    fn drop(&mut self) {
        // Who unloads it meanwhile withdraws all of its hints.
        drop(change_hints(self.0, &[IpAddr::from(CLIENTS).into()], &[]));
    }
}
