//! All cells of the comparison.

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;

use super::Config;

/// The values of each dimension. Cells are their product, but mixed RTTs need more than one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Rates.
    pub rates: Vec<Rate>,
    /// Round-trip times.
    pub rtts: Vec<Duration>,
    /// Flows of a transient.
    pub flows: Vec<u32>,
    /// Initial windows in segments.
    pub initial_windows: Vec<u64>,
    /// Pacing gains; absent: not paced.
    pub pacing_gains: Vec<Option<f64>>,
    /// Delayed acknowledgements.
    pub delayed_acks: Vec<bool>,
    /// Marks, or drops.
    pub ecn: Vec<bool>,
    /// Parts of the rate that the background takes.
    pub backgrounds: Vec<f64>,
    /// Same or mixed RTTs.
    pub mixed_rtts: Vec<bool>,
    /// What a reduction leaves of the window.
    pub reductions: Vec<f64>,
}

impl Grid {
    /// The whole grid: 12,096 cells. Paced flows have this gain in slow start.
    pub fn whole(pacing_gain: f64) -> Self {
        Self {
            rates: [2, 10, 50].map(Rate::from_mbit).to_vec(),
            rtts: [20, 50, 100, 200, 350, 500].map(Duration::from_millis).to_vec(),
            flows: vec![1, 2, 6, 18],
            initial_windows: vec![3, 10],
            pacing_gains: vec![None, Some(pacing_gain)],
            delayed_acks: vec![false, true],
            ecn: vec![true, false],
            backgrounds: vec![0.0, 0.3],
            mixed_rtts: vec![false, true],
            reductions: vec![0.5, 0.7, 0.85],
        }
    }

    /// Of every dimension the ends, with ECN and a reduction to 0.7: for tuning and quick looks.
    pub fn reduced(pacing_gain: f64) -> Self {
        Self {
            rtts: [20, 100, 200, 500].map(Duration::from_millis).to_vec(),
            flows: vec![1, 6],
            ecn: vec![true],
            reductions: vec![0.7],
            ..Self::whole(pacing_gain)
        }
    }

    /// The cells, rates changing slowest.
    pub fn cells(&self) -> impl Iterator<Item = Config> + '_ {
        let links = self.rates.iter().flat_map(|&rate| self.rtts.iter().map(move |&rtt| Config::new(rate, rtt)));
        let cells = links.flat_map(|cell| vary(cell, &self.flows, |cell, &flows| cell.flows = flows));
        let cells = cells.flat_map(|cell| vary(cell, &self.initial_windows, |cell, &iw| cell.initial_window = iw));
        let cells = cells.flat_map(|cell| vary(cell, &self.pacing_gains, |cell, &gain| cell.pacing_gain = gain));
        let cells = cells.flat_map(|cell| vary(cell, &self.delayed_acks, |cell, &on| cell.delayed_acks = on));
        let cells = cells.flat_map(|cell| vary(cell, &self.ecn, |cell, &ecn| cell.ecn = ecn));
        let cells = cells.flat_map(|cell| vary(cell, &self.backgrounds, |cell, &part| cell.background = part));
        let cells = cells.flat_map(|cell| vary(cell, &self.mixed_rtts, |cell, &mixed| cell.mixed_rtts = mixed));
        let cells = cells.flat_map(|cell| vary(cell, &self.reductions, |cell, &beta| cell.reduction = beta));
        cells.filter(|cell| cell.flows > 1 || !cell.mixed_rtts)
    }
}

/// The cell with each of the values.
fn vary<'a, T>(cell: Config, values: &'a [T], set: impl Fn(&mut Config, &T) + 'a) -> impl Iterator<Item = Config> + 'a {
    values.iter().map(move |value| {
        let mut cell = cell.clone();
        set(&mut cell, value);
        cell
    })
}
