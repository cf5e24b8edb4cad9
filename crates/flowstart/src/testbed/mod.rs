//! Transfers between sockets: a server and a client in two network namespaces, joined by the cell's link.
//!
//! Every transfer has namespaces, a link, a server and a client of its own, so nothing of one reaches the next. All of
//! them live in this process and end with it.

#[cfg(feature = "tcp")]
mod hinted;
mod others;
mod quic;
pub(crate) mod scratch;
mod startup;
mod tcp;
mod tcp_info;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use flowstart_core::quick_start::router::{self as quick_start, Behaviour};
use flowstart_core::time::Duration;
use flowstart_emu::dumbbell::Dumbbell;
use flowstart_emu::router;
use flowstart_emu::watch::{self, Counts, Watch};
use flowstart_lab::run::harm::{AFTERMATH, Service};
use flowstart_lab::run::outcome::{Failure, Host, Known};
use flowstart_lab::run::testbed::{Testbed, Transferred};
use flowstart_lab::spec::aqm::Aqm;
use flowstart_lab::spec::link::Link;
use flowstart_lab::study::plan::{Cell, Plan, Setting};
use flowstart_sim::observe::record::FlowRecord;

use self::others::Others;
use crate::quic::std_time;

/// Runs transfers between sockets of this machine.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// The longest time by which a packet was late, in nanoseconds.
    latest: AtomicU64,
    /// Packets that this host lost.
    lost: AtomicU64,
    /// Links, and those of them in whose place this host may have shown.
    links: AtomicU64,
    shown: AtomicU64,
    /// Transfers whose start a scheme left to the kernel.
    fell_back: AtomicU64,
}

impl Sockets {
    /// Refuses what no host can run, before anything runs.
    pub(crate) fn check(plan: &Plan) -> Result<(), String> {
        let is_of_kernel = |cell: &Cell| !plan.is_simulated(cell) && plan.transport_of(cell).stack.is_none();
        let cells = plan.cells();
        cells.iter().filter(|cell| is_of_kernel(cell)).try_for_each(|cell| tcp::check(plan, cell))?;
        let between_sockets = cells.iter().filter(|cell| !plan.is_simulated(cell));
        between_sockets.map(Cell::setting).try_for_each(|setting| others::check(plan, setting))?;
        // Before anything is simulated for nothing.
        match cells.iter().find(|cell| !plan.is_simulated(cell)) {
            Some(cell) => {
                let path = path(&plan.links[cell.link], &plan.aqms[cell.aqm].value, false, plan.run_seed(0));
                Dumbbell::new(&path).map(drop).map_err(|error| format!("--world sockets: {error}"))
            }
            None => Ok(()),
        }
    }

    /// What of this machine determines the rows of a plan, by name; nothing if all of them are simulated.
    pub(crate) fn conditions(plan: &Plan) -> Result<BTreeMap<String, String>, String> {
        let cells = plan.cells();
        let between_sockets: Vec<&Cell> = cells.iter().filter(|cell| !plan.is_simulated(cell)).collect();
        if between_sockets.is_empty() {
            return Ok(BTreeMap::new());
        }
        let file = "/proc/sys/kernel/osrelease";
        let release = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let mut conditions = BTreeMap::from([("kernel".to_owned(), release.trim().to_owned())]);
        for cell in between_sockets.iter().filter(|cell| plan.transport_of(cell).stack.is_none()) {
            conditions.extend(tcp::in_force(&plan.schemes[cell.scheme].text)?);
        }
        Ok(conditions)
    }

    /// The longest time by which this host was late to send a packet; `None`: nothing ran here.
    pub(crate) fn latest(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.latest.load(Ordering::Relaxed))).filter(|latest| *latest > Duration::ZERO)
    }

    /// Packets that this host lost, because it was too slow for them.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many links there were, and in place of how many this host may have shown, because packets left too late.
    pub(crate) fn shown(&self) -> (u64, u64) {
        (self.links.load(Ordering::Relaxed), self.shown.load(Ordering::Relaxed))
    }

    /// Transfers whose start a scheme of the kernel's TCP left to the kernel, for it lacked its input.
    pub(crate) fn fell_back(&self) -> u64 {
        self.fell_back.load(Ordering::Relaxed)
    }
}

/// What both ends saw.
struct Seen {
    record: FlowRecord,
    known: Known,
    /// Why the transfer is not complete.
    failure: Option<Failure>,
    /// The scheme left the start to the kernel.
    fell_back: bool,
}

/// What the others have got so far.
fn service(others: &Others, counts: &mut Counts) -> Service {
    let at_link = counts.monitor.flow(watch::OTHERS);
    let (packets, waited_nanos) = (at_link.packets, at_link.waited_nanos);
    Service { delivered: others.delivered(), dropped: counts.dropped[watch::OTHERS as usize], packets, waited_nanos }
}

/// What they get until this time.
fn service_until(time: Instant, others: &Others, watch: &Watch) -> Service {
    thread::sleep(time.saturating_duration_since(Instant::now()));
    service(others, &mut watch.counts())
}

impl Sockets {
    /// The dumbbell of a setting in a repetition.
    fn dumbbell(plan: &Plan, setting: Setting, rep: u32) -> Result<Dumbbell, String> {
        let seed = plan.run_seed(rep);
        let link = &plan.links[setting.link];
        let mut path = path(&link.in_run(seed), &plan.aqms[setting.aqm].value, false, seed);
        // As in the simulator: the routers of such a path do not know Quick-Start.
        let ignoring = quick_start::Config { behaviour: Behaviour::Ignore, ..Default::default() };
        path.quick_start.get_or_insert((ignoring, link.rate));
        Dumbbell::new(&path).map_err(words)
    }

    /// Ends it. Packets that this host lost.
    fn end(&self, dumbbell: Dumbbell) -> Result<u64, String> {
        let told = dumbbell.end().map_err(words)?;
        let lost = told.lost_by_host();
        self.latest.fetch_max(told.latest.as_nanos(), Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.links.fetch_add(1, Ordering::Relaxed);
        self.shown.fetch_add(told.late.shows_host().into(), Ordering::Relaxed);
        Ok(lost)
    }
}

impl Testbed for Sockets {
    fn transfer(&self, plan: &Plan, cell: &Cell, rep: u32) -> Result<Transferred, String> {
        let dumbbell = Self::dumbbell(plan, cell.setting(), rep)?;
        let watch = &dumbbell.watch;
        let transferred = others::beside(plan, cell.setting(), rep, &dumbbell, |others| {
            watch.restart();
            let (began, mut before) = (Instant::now(), watch.counts());
            let others_before = others.map(|others| service(others, &mut before));
            let completed = OnceCell::new();
            let complete = || drop(completed.set((Instant::now(), watch.counts())));
            let Seen { mut record, known, failure, fell_back } = match plan.transport_of(cell).stack {
                Some(_) => quic::transfer(plan, cell, &dumbbell, &complete)?,
                None => tcp::transfer(plan, cell, &dumbbell, &complete)?,
            };
            complete();
            self.fell_back.fetch_add(fell_back.into(), Ordering::Relaxed);
            let Some((ended, mut counts)) = completed.into_inner() else { return Err("it has no end".into()) };
            let others = others.zip(others_before).map(|(others, before)| {
                let end = ended + std_time(AFTERMATH);
                (
                    service_until(end, others, watch).since(&before),
                    Duration::from_nanos((end - began).as_nanos() as u64),
                )
            });
            record.dropped = counts.dropped[watch::MEASURED as usize];
            let late = counts.late();
            Ok(Transferred {
                record,
                known,
                share: counts.monitor.flow(watch::MEASURED).share(),
                max_queue_delay: counts.monitor.delays.max(),
                p99_queue_delay: counts.monitor.delays.quantile(0.99),
                departed: counts.monitor.total - before.monitor.total,
                others,
                host: Some(Host { p99_late: late.p99, max_late: late.largest, lost: 0 }),
                failure,
            })
        })?;
        let lost = self.end(dumbbell)?;
        Ok(Transferred { host: transferred.host.map(|host| Host { lost, ..host }), ..transferred })
    }

    fn without(&self, plan: &Plan, setting: Setting, rep: u32, times: &[Duration]) -> Result<Vec<Service>, String> {
        let dumbbell = Self::dumbbell(plan, setting, rep)?;
        let mut places: Vec<usize> = (0..times.len()).collect();
        places.sort_by_key(|place| times[*place]);
        let services = others::beside(plan, setting, rep, &dumbbell, |others| {
            let others = others.ok_or("there are no others")?;
            let (began, before) = (Instant::now(), service(others, &mut dumbbell.watch.counts()));
            let mut services = vec![Service::default(); times.len()];
            for place in places {
                let service = service_until(began + std_time(times[place]), others, &dumbbell.watch);
                services[place] = service.since(&before);
            }
            Ok(services)
        })?;
        self.end(dumbbell)?;
        Ok(services)
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
