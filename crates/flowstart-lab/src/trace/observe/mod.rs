//! Observations for reports and traces, made during the run.
//!
//! A [`Watcher`] is an [`Observer`]: it gets every event of a world, beginning shortly before the newcomers. It keeps
//! an [`Account`] of each measured flow's time, and time series that are reduced as they grow, so it needs the same
//! memory for every transfer. A cloned world clones its watcher.
//!
//! | Looking for | Where |
//! |---|---|
//! | things to watch | [`Watched`] |
//! | time series, and their reduction | `series.rs`, `reduced.rs` |
//! | observations that an experiment keeps | `kept.rs` |
//! | runs that are watched | [`repetition`], [`again`] |

use flowstart_core::sources::Finding;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::observe::trace::{Entry, Observer};

use crate::spec::link::Link;
use crate::trace::explain::{Account, Split};

mod kept;
mod look;
mod reduced;
mod series;

pub use kept::{Kept, Seen, SeenSeries, Shown, Wanted};
pub use look::{again, repetition, seen};
pub use reduced::{Line, Marks, Volume};
pub use series::{FlowSeries, Resolution, Series, VariableSeries};

/// Most measured flows of a run that are watched at the same time.
pub const MOST_FLOWS: u32 = 8;

/// The things to watch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// The causes of the measured flows' delays.
    pub causes: bool,
    /// Time series.
    pub series: Option<Resolution>,
}

impl Watched {
    /// Whether anything is watched.
    pub fn is_anything(&self) -> bool {
        self.causes || self.series.is_some()
    }

    /// The union of both.
    pub fn or(self, other: Self) -> Self {
        Self { causes: self.causes || other.causes, series: self.series.or(other.series) }
    }
}

/// Watches a run.
#[derive(Clone, Debug)]
pub struct Watcher {
    accounts: Vec<Account>,
    /// The cell's bottleneck.
    link: Link,
    /// Number of the first measured flow.
    first: u32,
    /// Whether all accounts need the events of other flows before the bottleneck.
    tell_all: bool,
    series: Option<Box<Series>>,
    /// What sources had stated to each measured flow at its launch, beside the causes.
    sources: Vec<Vec<Finding>>,
}

/// The results of watching a run.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The split of each measured flow's time at the bottleneck.
    pub splits: Vec<Option<Split>>,
    /// Time series.
    pub series: Option<Box<Series>>,
    /// What sources had stated to each measured flow at its launch.
    pub sources: Vec<Vec<Finding>>,
}

impl Watcher {
    /// Watches the link number `bottleneck`, which `link` describes; newcomers start at `start`.
    pub fn new(watched: Watched, bottleneck: u32, link: &Link, start: Timestamp) -> Self {
        let accounts = if watched.causes { vec![Account::new(bottleneck, link)] } else { Vec::new() };
        let tell_all = accounts.iter().any(Account::needs_others);
        Self {
            accounts,
            link: link.clone(),
            first: u32::MAX,
            tell_all,
            series: watched.series.map(|resolution| Box::new(Series::new(resolution, start))),
            sources: Vec::new(),
        }
    }

    /// Stops watching everything outside `watched`: worlds are cloned both for cells that are shown and for others.
    pub fn keep(&mut self, watched: Watched) {
        if !watched.causes {
            self.accounts.clear();
        }
        if watched.series.is_none() {
            self.series = None;
        }
    }

    /// The run has ended.
    pub fn finish(self) -> Observed {
        let splits = self.accounts.into_iter().map(Account::finish).collect();
        Observed { splits, series: self.series, sources: self.sources }
    }
}

impl Observer for Watcher {
    fn on_measured(&mut self, measured: &[(u32, Duration)]) {
        let Some((first, _)) = measured.first() else { return };
        self.first = *first;
        if let Some(account) = self.accounts.pop() {
            let followed = |(flow, rtt): &(u32, Duration)| {
                let mut account = account.clone();
                account.follow(*flow, &self.link.for_hosts(*rtt));
                account
            };
            self.accounts = measured.iter().map(followed).collect();
            self.sources = vec![Vec::new(); measured.len()];
        }
        if let Some(series) = &mut self.series {
            series.follow(*first, measured.len());
        }
    }

    fn on_sources(&mut self, flow: u32, sources: &[Finding]) {
        if let Some(kept) = self.sources.get_mut(flow.wrapping_sub(self.first) as usize) {
            *kept = sources.to_vec();
        }
    }

    fn on_event(&mut self, entry: &Entry) {
        if let Some(series) = &mut self.series {
            series.on_event(entry);
        }
        // Most events matter only to the flow's own account.
        if self.accounts.len() == 1 || !Account::is_own(entry) || self.tell_all {
            self.accounts.iter_mut().for_each(|account| account.on_event(entry));
        } else if let Some(account) = self.accounts.get_mut(entry.flow.wrapping_sub(self.first) as usize) {
            account.on_event(entry);
        }
    }

    fn fork(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(self.clone()))
    }
}
