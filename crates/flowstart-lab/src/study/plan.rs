//! The plan of an experiment: every combination of the values of its axes.

use std::collections::BTreeMap;
use std::sync::Arc;

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::WindowValidation;
use flowstart_core::rng::mix;
use flowstart_core::startup::StartupConfig;
use flowstart_sim::transport::profile::Profile;

use crate::spec::Written;
use crate::spec::application::TRANSFER;
use crate::spec::aqm::Aqm;
use crate::spec::arrival::{Arrival, TOGETHER};
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::mobility::{self, Move};
use crate::spec::transport::{DEFAULT_TRANSPORT, Transport};
use crate::spec::workload::Workload;
use crate::study::axis::{Key, Need, Part, Shown, axes};
use crate::study::per_transport::{PerTransport, written};
use crate::study::world::{SIMULATOR, World};

macro_rules! plan {
    (World { $({ $(#[doc = $world_doc:literal])+ $worlds:ident: $world_type:ty, place: $world:ident, $($a:tt)* })+ }
     Newcomers { $({ $(#[doc = $doc:literal])+ $list:ident: $type:ty, place: $place:ident, $($b:tt)* })+ }) => {
        /// An experiment, validated: only a run of it can fail.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Plan {
            $($(#[doc = $world_doc])+ pub $worlds: $world_type,)+
            $($(#[doc = $doc])+ pub $list: $type,)+
            /// Congestion avoidance that schemes name: for each transport, that of each scheme.
            pub scheme_avoidances: Vec<Vec<Option<Written<AvoidanceConfig>>>>,
            /// Connections of a transfer with each scheme.
            pub scheme_connections: Vec<u32>,
            /// Number of measured flows of cells whose arrival does not specify it.
            pub flows: u32,
            /// Repetitions of each cell.
            pub reps: u32,
            /// Master seed.
            pub seed: u64,
            /// Whether Sensing knows the client's hint.
            pub hint: bool,
            /// Whether Sensing knows nothing before a handshake.
            pub unknown: bool,
            /// What else determines runs that are not simulated, by name: the machine's part. Whoever has it writes it.
            pub conditions: BTreeMap<String, String>,
        }

        /// One combination, as places in the plan's lists.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Cell {
            /// Place in the order of results.
            pub index: usize,
            $(#[doc = concat!("Place in [`Plan::", stringify!($worlds), "`].")] pub $world: usize,)+
            $(#[doc = concat!("Place in [`Plan::", stringify!($list), "`].")] pub $place: usize,)+
        }

        /// Cells that share a warm-up: those of one world.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Setting {
            $(#[doc = concat!("Place in [`Plan::", stringify!($worlds), "`].")] pub $world: usize,)+
        }

        impl Cell {
            /// The cells that share its warm-up.
            pub fn setting(&self) -> Setting {
                Setting { $($world: self.$world),+ }
            }
        }

        impl Setting {
            /// Its first cell, except for the place in the order of results.
            fn cell(self) -> Cell {
                Cell { $($world: self.$world,)+ ..Cell::default() }
            }
        }
    };
}
axes!(plan);

/// A variable of an experiment.
#[derive(Debug)]
pub struct Axis {
    /// Its keys in user input, the first of which is its name.
    pub keys: &'static [Key],
    /// The part of a run that it belongs to.
    pub part: Part,
    /// Its appearance in the names of cells.
    pub shown: Shown,
    /// Whether it is a part of the flows' traffic.
    pub is_carried: bool,
    /// The word for several of its values.
    pub plural: &'static str,
    texts: fn(&Plan) -> Vec<&str>,
    length: fn(&Plan) -> usize,
    text: fn(&Plan, usize) -> Option<&str>,
    place: fn(&mut Cell) -> &mut usize,
    meaning: fn(&Plan) -> String,
}

macro_rules! table {
    ($($part:ident { $({
        $(#[doc = $doc:literal])+
        $list:ident: $type:ty, place: $place:ident, shown: $shown:expr, carried: $carried:expr,
        plural: $plural:literal, meaning: $meaning:expr,
        keys: { $($(#[$serde:meta])* $field:ident = $key:literal { $($entry:ident: $value:expr,)+ })+ }
    })+ })+) => {
        /// All axes, the outermost first.
        pub static AXES: &[Axis] = &[$($(Axis {
            keys: &[$(Key { name: $key, $($entry: $value,)+ },)+],
            part: Part::$part,
            shown: $shown,
            is_carried: $carried,
            plural: $plural,
            texts: |plan| texts(&plan.$list),
            length: |plan| plan.$list.len(),
            text: |plan, place| text(&plan.$list, place),
            place: |cell| &mut cell.$place,
            meaning: $meaning,
        },)+)+];

        /// Places in [`AXES`].
        #[allow(non_camel_case_types)]
        enum Place { $($($place,)+)+ }

        impl Axis {
            $($(
                #[doc = concat!("The axis of [`Plan::", stringify!($list), "`].")]
                pub const fn $place() -> &'static Self {
                    &AXES[Place::$place as usize]
                }
            )+)+
        }
    };
}
axes!(table);

/// The axes whose values are compared only if no other axis has a choice: with several links and schemes, schemes are
/// compared on each link.
const COMPARED_ALONE: [&Axis; 4] = [Axis::idle(), Axis::world(), Axis::transport(), Axis::link()];
/// The axes whose values are compared with their first one, those that matter most first.
const COMPARED: [&Axis; 7] =
    [Axis::scheme(), Axis::avoidance(), Axis::aqm(), Axis::idle(), Axis::world(), Axis::transport(), Axis::link()];

/// There is one of each name.
impl PartialEq for Axis {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Axis {
    /// The key of this name.
    pub fn key(name: &str) -> Option<&'static Key> {
        AXES.iter().flat_map(|axis| axis.keys).find(|key| key.name == name)
    }

    /// Its name: the first of its keys.
    pub fn name(&self) -> &'static str {
        self.keys[0].name
    }

    /// Number of its values in a plan, at least one.
    pub fn length(&self, plan: &Plan) -> usize {
        (self.length)(plan).max(1)
    }

    /// Whether names of cells show it only if it differs from the default.
    pub fn is_shown_otherwise(&self) -> bool {
        matches!(self.shown, Shown::Otherwise(_))
    }

    /// All its values as users wrote them.
    pub fn texts<'a>(&self, plan: &'a Plan) -> Vec<&'a str> {
        (self.texts)(plan)
    }

    /// The meaning of its values, with every default and regardless of the places of files.
    pub fn meaning(&self, plan: &Plan) -> String {
        (self.meaning)(plan)
    }

    /// The place of a cell's value.
    pub fn place(&self, mut cell: Cell) -> usize {
        *(self.place)(&mut cell)
    }

    /// The cell with the value in this place.
    pub fn at(&self, mut cell: Cell, place: usize) -> Cell {
        *(self.place)(&mut cell) = place;
        cell
    }

    /// A cell's value as the user wrote it. `None` without a list.
    pub fn value<'a>(&self, plan: &'a Plan, cell: &Cell) -> Option<&'a str> {
        (self.text)(plan, self.place(*cell))
    }

    /// A cell's value as the user wrote it, unless names of cells do not show it.
    pub fn text<'a>(&self, plan: &'a Plan, cell: &Cell) -> Option<&'a str> {
        let is_shown = |text: &&str| match self.shown {
            Shown::At(_) => true,
            Shown::Otherwise(_) => Some(*text) != self.keys[0].default,
            Shown::Several(_) => self.length(plan) > 1,
        };
        self.value(plan, cell).filter(is_shown)
    }
}

/// A value of an axis, written by users.
trait Named {
    fn text(&self) -> &str;
}

impl Named for Link {
    fn text(&self) -> &str {
        &self.text
    }
}

impl<T> Named for Written<T> {
    fn text(&self) -> &str {
        &self.text
    }
}

impl<T> Named for PerTransport<T> {
    fn text(&self) -> &str {
        &self.text
    }
}

impl Named for Transport {
    fn text(&self) -> &str {
        &self.text
    }
}

impl Named for World {
    fn text(&self) -> &str {
        self.name()
    }
}

impl Named for WindowValidation {
    fn text(&self) -> &str {
        self.name()
    }
}

fn text<T: Named>(list: &[T], place: usize) -> Option<&str> {
    list.get(place).map(T::text)
}

fn texts<T: Named>(list: &[T]) -> Vec<&str> {
    list.iter().map(T::text).collect()
}

/// A link regardless of the place of its recording's file.
fn without_files(link: &Link) -> Link {
    Link { trace_file: None, up_trace_file: None, ..link.clone() }
}

fn is_of_world(axis: &&Axis) -> bool {
    axis.part == Part::World
}

impl Plan {
    /// All settings, in the order of results.
    pub fn settings(&self) -> Vec<Setting> {
        let worlds = self.nested(Cell::default(), AXES.iter().filter(is_of_world));
        worlds.iter().map(Cell::setting).collect()
    }

    /// The cells of a setting.
    pub fn cells_of(&self, setting: Setting) -> Vec<Cell> {
        let mut cell = setting.cell();
        for axis in AXES.iter().filter(is_of_world) {
            cell.index = cell.index * axis.length(self) + axis.place(cell);
        }
        self.nested(cell, AXES.iter().filter(|axis| !is_of_world(axis)))
    }

    /// The cells that result from one cell when these axes take all their values, the last axis fastest.
    fn nested(&self, cell: Cell, axes: impl Iterator<Item = &'static Axis>) -> Vec<Cell> {
        axes.fold(vec![cell], |cells, axis| {
            let length = axis.length(self);
            let at = |cell: Cell, place| axis.at(Cell { index: cell.index * length + place, ..cell }, place);
            cells.into_iter().flat_map(|cell| (0..length).map(move |place| at(cell, place))).collect()
        })
    }

    /// Names of the algorithms from outside this program.
    pub fn own(&self) -> Vec<&'static str> {
        let schemes = self.schemes.iter().filter_map(|scheme| match scheme.first() {
            StartupConfig::Custom(own) => Some(own.name()),
            _ => None,
        });
        let aqms = self.aqms.iter().filter_map(|aqm| match &aqm.value {
            Aqm::Registered(QueueConfig::Custom(own)) => Some(own.name()),
            _ => None,
        });
        let mut names: Vec<_> = schemes.chain(aqms).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All cells, in the order of results.
    pub fn cells(&self) -> Vec<Cell> {
        self.settings().into_iter().flat_map(|setting| self.cells_of(setting)).collect()
    }

    /// Congestion avoidance of a cell's measured flows.
    pub fn avoidance_of(&self, cell: &Cell) -> Written<AvoidanceConfig> {
        let own = self.scheme_avoidances[cell.transport].get(cell.scheme);
        own.and_then(Clone::clone).unwrap_or_else(|| self.avoidance_beside(cell))
    }

    /// Whether a scheme names its congestion avoidance itself.
    pub fn names_avoidance(&self, scheme: usize, transport: usize) -> bool {
        self.scheme_avoidances[transport].get(scheme).is_some_and(Option::is_some)
    }

    /// Congestion avoidance of a cell, whatever its scheme names.
    pub fn avoidance_beside(&self, cell: &Cell) -> Written<AvoidanceConfig> {
        match self.avoidances.get(cell.avoidance) {
            Some(chosen) => Written { text: chosen.text.clone(), value: chosen.on(cell.transport).clone() },
            None => self.transport_of(cell).own_avoidance(),
        }
    }

    /// The transport of a cell's flows.
    pub fn transport_of(&self, cell: &Cell) -> &Transport {
        &self.transports[cell.transport]
    }

    /// Whether a cell's runs are simulated, and can be simulated again.
    pub fn is_simulated(&self, cell: &Cell) -> bool {
        self.worlds[cell.world] == World::Simulator
    }

    /// A text about each transport, by its place.
    pub(in crate::study) fn on_each(&self, text: impl Fn(usize) -> String) -> String {
        (0..self.transports.len()).map(text).collect::<Vec<_>>().join("; ")
    }

    /// Connections that carry a transfer of a cell together.
    pub fn connections_of(&self, cell: &Cell) -> u32 {
        self.scheme_connections.get(cell.scheme).copied().unwrap_or(1)
    }

    /// Whether a transfer of a cell is one connection from end to end, whose time has one account.
    pub fn is_one_connection(&self, cell: &Cell) -> bool {
        self.connections_of(cell) == 1 && self.links[cell.link].proxy.is_none()
    }

    /// A cell's name: the user's text on every axis, shown according to [`Shown`].
    pub fn id(&self, cell: &Cell) -> String {
        let mut axes: Vec<&Axis> = AXES.iter().collect();
        axes.sort_by_key(|axis| axis.shown.order());
        let part = |axis: &Axis| Some(format!("{}{}", axis.shown.prefix(), axis.text(self, cell)?));
        axes.into_iter().filter_map(part).collect::<Vec<_>>().join("/")
    }

    /// The traffic of a cell's flows as the user wrote it, with their idle policy and mobility if there is a choice.
    pub fn carried(&self, cell: &Cell) -> String {
        let part = |axis: &Axis| Some(format!("{}{}", axis.shown.prefix(), axis.text(self, cell)?));
        AXES.iter().filter(|axis| axis.is_carried).filter_map(part).collect::<Vec<_>>().join(" ")
    }

    /// A cell's values on the axes that names of cells show only if they differ from the default, by axis. Axes
    /// that are shown if there are several have fields of their own in results.
    pub fn otherwise(&self, cell: &Cell) -> BTreeMap<&'static str, String> {
        let axes = AXES.iter().filter(|axis| axis.is_shown_otherwise());
        axes.filter_map(|axis| Some((axis.name(), axis.text(self, cell)?.to_owned()))).collect()
    }

    /// The change of a cell's flows' path.
    pub fn mobility(&self, cell: &Cell) -> Option<&Move> {
        self.moves.get(cell.mobility)?.value.as_ref()
    }

    /// The transport of a cell's measured flows.
    pub fn profile(&self, cell: &Cell) -> Arc<Profile> {
        let profile = self.profile_for(self.transport_of(cell), &self.sizes[cell.size].value).1;
        match self.idle.get(cell.idle) {
            None => profile,
            Some(&idle) => Arc::new(Profile { idle, ..Profile::clone(&profile) }),
        }
    }

    /// The profile of flows that carry this, with its name: the transport's, unless that is of another protocol than an
    /// application needs.
    pub fn profile_for<'a>(&self, transport: &'a Transport, workload: &Workload) -> (&'a str, Arc<Profile>) {
        let Transport { profile_name, profile, .. } = transport;
        match workload.objects().and_then(|objects| objects.protocol()) {
            Some(protocol) if protocol != profile.protocol => {
                let (name, profile) = Profile::of_protocol(protocol);
                (name, Arc::new(profile))
            }
            _ => (profile_name, profile.clone()),
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

    /// The axis whose values answers compare: the first of `COMPARED` with a choice.
    pub fn compared(&self) -> Option<&'static Axis> {
        COMPARED.into_iter().find(|axis| axis.length(self) > 1)
    }

    /// The baseline of a cell: the same cell with the first value of the first axis of `COMPARED` that it has not the
    /// first value of. Transports and links are compared only if no axis before them has a choice. `None` for a cell
    /// that is itself a baseline.
    pub fn baseline_of(&self, cell: &Cell) -> Option<Cell> {
        let axis = COMPARED.into_iter().find(|axis| axis.place(*cell) > 0)?;
        if COMPARED_ALONE.contains(&axis) && self.compared()? != axis {
            return None;
        }
        let baseline = axis.at(*cell, 0);
        let index = AXES.iter().fold(0, |index, axis| index * axis.length(self) + axis.place(baseline));
        Some(Cell { index, ..baseline })
    }

    /// The seed of a repetition: the same for every cell, so that schemes meet the same channel and the same
    /// competitor.
    pub fn run_seed(&self, rep: u32) -> u64 {
        mix(mix(self.seed).wrapping_add(u64::from(rep)))
    }

    /// The phase of the competitor's cycle at which a repetition's flow starts, 0..1: a golden-ratio sequence (Weyl),
    /// which covers the cycle evenly for any number of repetitions.
    pub fn phase(&self, rep: u32) -> f64 {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
        let offset = (mix(self.seed ^ 0x9e37) >> 11) as f64 / (1u64 << 53) as f64;
        (offset + f64::from(rep) * GOLDEN_RATIO).fract()
    }
}
