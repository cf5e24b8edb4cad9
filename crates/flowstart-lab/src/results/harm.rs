//! The measure of harm to others.

use super::cell_summary::CellSummary;
use crate::spec::competitor::Competitor;
use crate::study::per_transport::PerTransport;
use crate::study::plan::Plan;

/// The measure of harm to others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HarmIn {
    /// Decrease of their delivered Mbit.
    Goodput,
    /// Additional milliseconds of their transfers.
    Time,
    /// The score of the worst second of interactive media, which loses almost no bytes.
    Score,
    /// The part of a video call's frames that were not shown.
    Frames,
}

impl HarmIn {
    /// The measure for all competitors of a plan that are there: what each of them has.
    pub fn of(plan: &Plan) -> Self {
        let others = || plan.competitors.iter().map(PerTransport::first).filter(|other| **other != Competitor::None);
        if others().next().is_none() {
            Self::Goodput
        } else if others().all(Competitor::has_transfers) {
            Self::Time
        } else if others().all(|other| other.media().is_some()) {
            Self::Score
        } else if others().all(|other| other.call().is_some()) {
            Self::Frames
        } else {
            Self::Goodput
        }
    }

    /// What one competitor loses, whether or not people notice it.
    pub fn of_one(competitor: &Competitor) -> Self {
        if competitor.has_transfers() { Self::Time } else { Self::Goodput }
    }

    /// What the competitors of a plan lose: one measure, or two where some have transfers and others have none.
    pub fn all_of(plan: &Plan) -> Vec<Self> {
        let has_transfers = |other: &PerTransport<Competitor>| other.first().has_transfers();
        match Self::of(plan) {
            Self::Goodput if plan.competitors.iter().any(has_transfers) => vec![Self::Time, Self::Goodput],
            one => vec![one],
        }
    }

    /// What people notice beside any of a plan's measured flows: of calls and of conversations.
    pub fn of_people(plan: &Plan) -> Vec<Self> {
        let others = || plan.competitors.iter().map(PerTransport::first);
        let has = |is: fn(&Competitor) -> bool, measure| others().any(is).then_some(measure);
        let frames = has(|other| other.call().is_some(), Self::Frames);
        let score = has(|other| other.media().is_some(), Self::Score);
        frames.into_iter().chain(score).collect()
    }

    /// Whether people notice it.
    pub(crate) fn is_felt(self) -> bool {
        matches!(self, Self::Score | Self::Frames)
    }

    /// Its mean in a cell with others.
    pub fn mean(self, cell: &CellSummary) -> Option<f64> {
        let others = cell.others.as_ref()?;
        match self {
            Self::Goodput => others.goodput_lost_mbit.mean,
            Self::Time => others.extra_fct_ms.as_ref()?.mean,
            Self::Score => cell.metrics.get("media_worst_1s_mos")?.mean,
            Self::Frames => cell.metrics.get("call_not_shown")?.mean,
        }
    }

    /// The 95 % interval of this cell's mean alone, of what people notice.
    pub(crate) fn ci95(self, cell: &CellSummary) -> Option<[f64; 2]> {
        match self {
            Self::Goodput | Self::Time => None,
            Self::Score => cell.metrics.get("media_worst_1s_mos")?.ci95,
            Self::Frames => cell.metrics.get("call_not_shown")?.ci95,
        }
    }

    /// The best of several values.
    pub(crate) fn best(self, values: &[f64]) -> Option<f64> {
        values.iter().copied().reduce(if self == Self::Score { f64::max } else { f64::min })
    }

    /// The worst of several values: the lowest score, and the most of everything else.
    pub(crate) fn worst(self, values: &[f64]) -> Option<f64> {
        values.iter().copied().reduce(if self == Self::Score { f64::min } else { f64::max })
    }
}
