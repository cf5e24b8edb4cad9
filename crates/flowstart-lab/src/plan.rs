//! What an experiment consists of: every combination of link, AQM, size, scheme and competitor.

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::rng::mix;
use flowstart_core::startup::StartupConfig;
use flowstart_core::units::Bytes;

use crate::spec::Written;
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::transport::Transport;

/// An experiment, validated: nothing in it can fail any more but a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Links.
    pub links: Vec<Link>,
    /// Queue disciplines.
    pub aqms: Vec<Written<QueueConfig>>,
    /// Transfer sizes.
    pub sizes: Vec<Written<Bytes>>,
    /// Startup schemes; the first is the baseline.
    pub schemes: Vec<Written<StartupConfig>>,
    /// Congestion avoidance of the measured flows.
    pub avoidance: Written<AvoidanceConfig>,
    /// What else uses the link.
    pub competitors: Vec<Written<Competitor>>,
    /// Transport of all flows.
    pub transport: Transport,
    /// Measured flows that start together.
    pub flows: u32,
    /// Repetitions of each cell.
    pub reps: u32,
    /// Master seed.
    pub seed: u64,
    /// Whether Sensing knows the client's hint.
    pub hint: bool,
}

/// One combination, as places in the plan's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Place in the order of results.
    pub index: usize,
    /// Link.
    pub link: usize,
    /// AQM.
    pub aqm: usize,
    /// Competitor.
    pub competitor: usize,
    /// Size.
    pub size: usize,
    /// Scheme.
    pub scheme: usize,
}

/// Cells that share a warm-up: the same link, AQM and competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Link.
    pub link: usize,
    /// AQM.
    pub aqm: usize,
    /// Competitor.
    pub competitor: usize,
}

impl Plan {
    /// All settings, in the order of results.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for link in 0..self.links.len() {
            for aqm in 0..self.aqms.len() {
                for competitor in 0..self.competitors.len() {
                    settings.push(Setting { link, aqm, competitor });
                }
            }
        }
        settings
    }

    /// The cells of a setting.
    pub fn cells_of(&self, setting: Setting) -> Vec<Cell> {
        let Setting { link, aqm, competitor } = setting;
        let place = (link * self.aqms.len() + aqm) * self.competitors.len() + competitor;
        let mut cells = Vec::new();
        for size in 0..self.sizes.len() {
            for scheme in 0..self.schemes.len() {
                let index = (place * self.sizes.len() + size) * self.schemes.len() + scheme;
                cells.push(Cell { index, link, aqm, competitor, size, scheme });
            }
        }
        cells
    }

    /// All cells, in the order of results.
    pub fn cells(&self) -> Vec<Cell> {
        self.settings().into_iter().flat_map(|setting| self.cells_of(setting)).collect()
    }

    /// A cell's name: what the user wrote, from link to competitor.
    pub fn id(&self, cell: &Cell) -> String {
        format!(
            "{}/{}/{}/{}/{}",
            self.links[cell.link].text,
            self.aqms[cell.aqm].text,
            self.sizes[cell.size].text,
            self.schemes[cell.scheme].text,
            self.competitors[cell.competitor].text
        )
    }

    /// The cell with this name.
    pub fn cell(&self, id: &str) -> Option<Cell> {
        self.cells().into_iter().find(|cell| self.id(cell) == id)
    }

    /// The baseline of a cell: the same with the first scheme.
    pub fn baseline_of(&self, cell: &Cell) -> Cell {
        Cell { index: cell.index - cell.scheme, scheme: 0, ..*cell }
    }

    /// The seed of a repetition: the same for every cell, so that schemes meet the same channel and the same competitor.
    pub fn run_seed(&self, rep: u32) -> u64 {
        mix(mix(self.seed).wrapping_add(u64::from(rep)))
    }

    /// Where in the competitor's cycle a repetition's flow starts, 0..1: a golden-ratio sequence, which covers the cycle
    /// evenly however many repetitions there are (Weyl).
    pub fn phase(&self, rep: u32) -> f64 {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
        let offset = (mix(self.seed ^ 0x9e37) >> 11) as f64 / (1u64 << 53) as f64;
        (offset + f64::from(rep) * GOLDEN_RATIO).fract()
    }
}
