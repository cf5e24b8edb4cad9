//! What an experiment consists of: every combination of link, AQM, size, scheme and competitor.

use std::sync::Arc;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::WindowValidation;
use flowstart_core::rng::mix;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::profile::Profile;

use crate::spec::Written;
use crate::spec::aqm::Aqm;
use crate::spec::arrival::{Arrival, TOGETHER};
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::mobility::{Move, NONE};
use crate::spec::size::TransferSize;
use crate::spec::transport::Transport;

/// An experiment, validated: nothing in it can fail any more but a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Links.
    pub links: Vec<Link>,
    /// Queue disciplines.
    pub aqms: Vec<Written<Aqm>>,
    /// Transfer sizes.
    pub sizes: Vec<Written<TransferSize>>,
    /// Startup schemes; the first is the baseline.
    pub schemes: Vec<Written<StartupConfig>>,
    /// Congestion avoidance of the measured flows whose scheme names none.
    pub avoidance: Written<AvoidanceConfig>,
    /// Congestion avoidance that each scheme names.
    pub scheme_avoidances: Vec<Option<Written<AvoidanceConfig>>>,
    /// What else uses the link.
    pub competitors: Vec<Written<Competitor>>,
    /// Transport of all flows.
    pub transport: Transport,
    /// Measured flows of cells whose arrival does not say how many.
    pub flows: u32,
    /// When the measured flows start.
    pub arrivals: Vec<Written<Arrival>>,
    /// What idle time does to the windows of the measured flows; empty: what the transport says.
    pub idle: Vec<WindowValidation>,
    /// When the measured flows take another path, and which.
    pub moves: Vec<Written<Option<Move>>>,
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
    /// Arrival.
    pub arrival: usize,
    /// Idle policy; 0 if there is no choice.
    pub idle: usize,
    /// Mobility.
    pub mobility: usize,
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
            for arrival in 0..self.arrivals.len() {
                for idle in 0..self.idle.len().max(1) {
                    for mobility in 0..self.moves.len() {
                        let before = (place * self.sizes.len() + size) * self.arrivals.len() + arrival;
                        let before = before * self.idle.len().max(1) + idle;
                        let first = (before * self.moves.len() + mobility) * self.schemes.len();
                        let base =
                            Cell { index: first, link, aqm, competitor, size, arrival, idle, mobility, scheme: 0 };
                        let cell = |scheme| Cell { index: first + scheme, scheme, ..base };
                        cells.extend((0..self.schemes.len()).map(cell));
                    }
                }
            }
        }
        cells
    }

    /// All cells, in the order of results.
    pub fn cells(&self) -> Vec<Cell> {
        self.settings().into_iter().flat_map(|setting| self.cells_of(setting)).collect()
    }

    /// Congestion avoidance of a cell's measured flows.
    pub fn avoidance_of(&self, cell: &Cell) -> &Written<AvoidanceConfig> {
        self.scheme_avoidances.get(cell.scheme).and_then(Option::as_ref).unwrap_or(&self.avoidance)
    }

    /// A cell's name: what the user wrote, from link to competitor, and arrival, idle policy and mobility unless they are the
    /// default.
    pub fn id(&self, cell: &Cell) -> String {
        let arrival = self.arrival_text(cell).map_or(String::new(), |text| format!("/{text}"));
        let idle = self.idle_name(cell).map_or(String::new(), |name| format!("/idle={name}"));
        let mobility = self.move_text(cell).map_or(String::new(), |text| format!("/move:{text}"));
        format!(
            "{}/{}/{}/{}/{}{arrival}{idle}{mobility}",
            self.links[cell.link].text,
            self.aqms[cell.aqm].text,
            self.sizes[cell.size].text,
            self.schemes[cell.scheme].text,
            self.competitors[cell.competitor].text
        )
    }

    /// A cell's arrival as the user wrote it, unless it is the default.
    pub fn arrival_text(&self, cell: &Cell) -> Option<&str> {
        Some(self.arrivals[cell.arrival].text.as_str()).filter(|text| *text != TOGETHER)
    }

    /// A cell's idle policy, unless it is the transport's.
    pub fn idle_name(&self, cell: &Cell) -> Option<&'static str> {
        self.idle.get(cell.idle).map(|idle| idle.name())
    }

    /// What a cell's flows carry, as the user wrote it, and what idle time and mobility do to them, where there is a choice.
    pub fn carried(&self, cell: &Cell) -> String {
        let size = &self.sizes[cell.size].text;
        let idle = self.idle_name(cell).map_or(String::new(), |idle| format!(" idle={idle}"));
        let mobility = self.move_text(cell).map_or(String::new(), |text| format!(" move:{text}"));
        format!("{size}{idle}{mobility}")
    }

    /// A cell's mobility as the user wrote it, unless its flows stay.
    pub fn move_text(&self, cell: &Cell) -> Option<&str> {
        self.moves.get(cell.mobility).map(|mobility| mobility.text.as_str()).filter(|text| *text != NONE)
    }

    /// When a cell's flows take another path, and which.
    pub fn mobility(&self, cell: &Cell) -> Option<&Move> {
        self.moves.get(cell.mobility)?.value.as_ref()
    }

    /// The transport of a cell's measured flows.
    pub fn profile(&self, cell: &Cell) -> Arc<Profile> {
        match self.idle.get(cell.idle) {
            None => self.transport.profile.clone(),
            Some(&idle) => Arc::new(Profile { idle, ..Profile::clone(&self.transport.profile) }),
        }
    }

    /// Measured flows of a cell.
    pub fn flow_count(&self, cell: &Cell) -> u32 {
        self.arrivals[cell.arrival].value.flows.unwrap_or(self.flows)
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
