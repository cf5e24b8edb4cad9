//! Transfers between sockets: a server and a client in two network namespaces, joined by the cell's link.
//!
//! Every transfer has namespaces, a link, a server and a client of its own, so nothing of one reaches the next. All of
//! them live in this process and end with it. Only a folder for the server's log stays, below the system's temporary
//! folder, if a signal ends the process during a transfer.

mod quic;
mod tcp;

use std::sync::atomic::{AtomicU64, Ordering};

use flowstart_core::time::Duration;
use flowstart_emu::dumbbell::Dumbbell;
use flowstart_emu::router;
use flowstart_lab::run::outcome::Failure;
use flowstart_lab::run::testbed::{Testbed, Transferred};
use flowstart_lab::spec::aqm::Aqm;
use flowstart_lab::spec::link::Link;
use flowstart_lab::study::plan::{Cell, Plan};
use flowstart_sim::observe::record::FlowRecord;

/// Runs transfers between sockets of this machine.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// The longest time by which a packet was late, in nanoseconds.
    latest: AtomicU64,
}

impl Sockets {
    /// Refuses what no host can run, before anything runs.
    pub(crate) fn check(plan: &Plan) -> Result<(), String> {
        let is_of_kernel = |cell: &Cell| !plan.is_simulated(cell) && plan.transport_of(cell).stack.is_none();
        let cells = plan.cells();
        cells.iter().filter(|cell| is_of_kernel(cell)).try_for_each(|cell| tcp::check(plan, cell))?;
        // Before anything is simulated for nothing.
        match cells.iter().find(|cell| !plan.is_simulated(cell)) {
            Some(cell) => {
                let path = path(&plan.links[cell.link], &plan.aqms[cell.aqm].value, false, plan.run_seed(0));
                Dumbbell::new(&path).map(drop).map_err(|error| format!("--world sockets: {error}"))
            }
            None => Ok(()),
        }
    }

    /// The longest time by which this host was late to send a packet; `None`: nothing ran here.
    pub(crate) fn latest(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.latest.load(Ordering::Relaxed))).filter(|latest| *latest > Duration::ZERO)
    }
}

/// What both ends saw, and why the transfer is not complete.
type Seen = (FlowRecord, Option<Failure>);

impl Testbed for Sockets {
    fn transfer(&self, plan: &Plan, cell: &Cell, rep: u32) -> Result<Transferred, String> {
        let seed = plan.run_seed(rep);
        let path = path(&plan.links[cell.link].in_run(seed), &plan.aqms[cell.aqm].value, false, seed);
        let dumbbell = Dumbbell::new(&path).map_err(words)?;
        let (mut record, failure) = match plan.transport_of(cell).stack {
            Some(_) => quic::transfer(plan, cell, &dumbbell)?,
            None => tcp::transfer(plan, cell, &dumbbell)?,
        };
        let told = dumbbell.end().map_err(words)?;
        self.latest.fetch_max(told.latest.as_nanos(), Ordering::Relaxed);
        record.dropped = [&told.down, &told.up].iter().map(|way| way.link.dropped + way.link.lost).sum();
        Ok(Transferred { record, max_queue_delay: Some(told.down.link.max_delay), failure })
    }
}

/// What packets of IP meet on this link.
pub(crate) fn path(link: &Link, aqm: &Aqm, decrement_ttl: bool, seed: u64) -> router::Path {
    let (down, up) = link.hop(&aqm.config());
    let quick_start = link.routers.map(|routers| (routers.at(0), routers.bandwidth.unwrap_or(link.rate)));
    router::Path { down, up, quick_start, advice: link.advising, decrement_ttl, seed }
}

/// An error in words, of those that keep this from working at all.
fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
