//! Scenario files: each asks one question, as TOML.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use flowstart_core::controller::WindowValidation;
use flowstart_core::spec::names;
use flowstart_core::spec::plain::plain;
use flowstart_core::units::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::spec::application::TRANSFER;
use crate::spec::aqm::Aqm;
use crate::spec::arrival::{Arrival, MAX_FLOWS};
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::mobility::Move;
use crate::spec::transport::{BOTH, OF_BOTH, Transport};
use crate::spec::workload::Workload;
use crate::spec::{InputError, Written};
use crate::study::axis::axes;
use crate::study::entries::{default_of, distinct, each};
use crate::study::own::Own;
use crate::study::per_transport::PerTransport;
use crate::study::plan::{AXES, Axis, Plan};
use crate::study::rules::{connections, cross_traffic, oracle, pages, proxies, sharing, sockets, trains, web_sessions};
use crate::study::world::World;

/// Most repetitions of a cell.
pub const MAX_REPS: u32 = 100_000;
/// Most rows of an experiment's results, one for each measured flow of a run. All of them are in memory when they are
/// compared.
const MAX_ROWS: u64 = 1_000_000;
/// Bytes of memory that a row takes at most, with texts of the usual length.
pub(crate) const LARGEST_ROW: u64 = 4_100;

/// Longest mean time between two arrivals, in seconds.
const LONGEST_MEAN_GAP_S: f64 = 1000.0;

/// Largest master seed: scenarios are stored as TOML, whose numbers are signed.
const MAX_SEED: u64 = i64::MAX as u64;

/// Published tables that results can be shown beside.
pub const PUBLISHED: &[&str] = &["blitzstart-table1"];

fn default_aqm() -> Vec<String> {
    default_of("aqm")
}

fn default_competitor() -> Vec<String> {
    default_of("competitor")
}

fn default_transport() -> Vec<String> {
    default_of("transport")
}

/// A list of which one entry may stand alone, without brackets.
mod one_or_several {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The two forms.
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text, or several in brackets")]
    enum Form {
        One(String),
        Several(Vec<String>),
    }

    pub(super) fn serialize<S: Serializer>(list: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        match list {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::One(one) => Ok(vec![one]),
            Form::Several(list) if list.is_empty() => Err(serde::de::Error::custom("at least one is needed")),
            Form::Several(list) => Ok(list),
        }
    }
}

/// A list that says something if it is written at all.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() { Err(serde::de::Error::custom("at least one is needed")) } else { Ok(list) }
}

/// A number that its type could not hold. The plan refuses those that are in range of the type only.
fn whole<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D, least: u32, most: u64) -> Result<T, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let refused = || serde::de::Error::custom(format_args!("`{number}`: allowed is {least} to {most}"));
    T::try_from(number).map_err(|_| refused())
}

fn flows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, 1, MAX_FLOWS.into())
}

fn reps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, 1, MAX_REPS.into())
}

fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer, 0, MAX_SEED)
}

macro_rules! scenario {
    ($($part:ident { $({
        $(#[doc = $doc:literal])+
        $list:ident: $type:ty, place: $place:ident, shown: $shown:expr, carried: $carried:expr,
        plural: $plural:literal, meaning: $meaning:expr,
        keys: { $($(#[$serde:meta])* $field:ident = $key:literal { $($about:tt)* })+ }
    })+ })+) => {
        /// A scenario as the user wrote it. An empty list stands for the default of its axis.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Scenario {
            /// Title of the report.
            #[serde(default)]
            pub title: String,
            /// The question it answers.
            #[serde(default)]
            pub question: String,
            /// The findings, and how to read them.
            #[serde(default)]
            pub analysis: String,
            $($($(
                #[doc = concat!("What is written under `", $key, "`.")]
                $(#[$serde])*
                #[serde(rename = $key)]
                pub $field: Vec<String>,
            )+)+)+
            /// Number of measured flows of each cell whose arrival does not specify it.
            #[serde(default = "default_flows", deserialize_with = "flows")]
            pub flows: u32,
            /// Repetitions.
            #[serde(default = "default_reps", deserialize_with = "reps")]
            pub reps: u32,
            /// Master seed.
            #[serde(default = "default_seed", deserialize_with = "seed")]
            pub seed: u64,
            /// Whether the client sends a hint of its bandwidth.
            #[serde(default = "default_hint")]
            pub hint: bool,
            /// Whether nothing is known of paths before their handshakes.
            #[serde(default)]
            pub unknown: bool,
            /// Keys that every link gets in addition, such as `access_jitter=1ms/1ms`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub link_options: Option<String>,
            /// Whether links have `noise=on` unless they say otherwise. Commands that describe a run set it.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub noise: bool,
            /// Published table to show beside the results.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub published: Option<String>,
        }

        impl Scenario {
            /// The entries of an axis's key.
            pub fn list(&mut self, key: &str) -> Option<&mut Vec<String>> {
                match key {
                    $($($($key => Some(&mut self.$field),)+)+)+
                    _ => None,
                }
            }
        }
    };
}
axes!(scenario);

fn default_flows() -> u32 {
    1
}

/// Repetitions when none are given.
pub fn default_reps() -> u32 {
    30
}

/// The master seed when none is given.
pub fn default_seed() -> u64 {
    1
}

fn default_hint() -> bool {
    true
}

/// A scenario file that cannot be used.
#[derive(Debug)]
pub enum ScenarioError {
    /// The file cannot be read.
    Unreadable(std::io::Error),
    /// The file is not text.
    NotText {
        /// Position of the first byte that is not text.
        offset: usize,
    },
    /// The file is not a scenario: the problem, and its place in the text.
    Invalid {
        /// The problem.
        message: String,
        /// The bytes of the text that it concerns.
        span: Option<Range<usize>>,
        /// The text.
        text: String,
    },
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::NotText { offset } => {
                write!(f, "is not text (byte {offset} is not UTF-8); expected a scenario in TOML")
            }
            Self::Invalid { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// The field of a scenario whose value has this place in it.
fn field_at(text: &str, place: &Range<usize>) -> Option<String> {
    let fields = DeTable::parse(text).ok()?.into_inner();
    let of_place = |(key, value): (Spanned<Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        let span = value.span();
        (span.start <= place.start && place.end <= span.end).then(|| key.into_inner().into_owned())
    };
    fields.into_iter().find_map(of_place)
}

impl Scenario {
    /// Reads a scenario.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        Self::read_with_text(file).map(|(scenario, _)| scenario)
    }

    /// Reads a scenario, and keeps its text for error messages.
    pub fn read_with_text(file: &Path) -> Result<(Self, String), ScenarioError> {
        Self::from_bytes(crate::spec::file::bytes(file).map_err(ScenarioError::Unreadable)?)
    }

    /// Reads a scenario from a stream, such as stdin, up to the length that files may have, and keeps its text.
    pub fn read_from(source: impl std::io::Read) -> Result<(Self, String), ScenarioError> {
        Self::from_bytes(crate::spec::file::stream(source).map_err(ScenarioError::Unreadable)?)
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<(Self, String), ScenarioError> {
        let text = String::from_utf8(bytes)
            .map_err(|error| ScenarioError::NotText { offset: error.utf8_error().valid_up_to() })?;
        Ok((Self::from_text(&text)?, text))
    }

    /// Reads a scenario from its text.
    pub fn from_text(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| {
            let problem = plain(&names::suggested(error.message()));
            let message = match error.span().and_then(|span| field_at(text, &span)) {
                Some(field) if !problem.contains(&field) => format!("{field}: {problem}"),
                _ => problem,
            };
            ScenarioError::Invalid { message, span: error.span(), text: text.to_owned() }
        })
    }

    /// Checks everything and returns a plan. Trace files are relative to `directory`.
    pub fn plan(&self, directory: &Path) -> Result<Plan, InputError> {
        self.plan_with(directory, &Own::default())
    }

    /// As [`Scenario::plan`]; its schemes and queue disciplines may also be the caller's `own`.
    pub fn plan_with(&self, directory: &Path, own: &Own) -> Result<Plan, InputError> {
        own.check()?;
        for (field, text) in [("title", &self.title), ("question", &self.question), ("analysis", &self.analysis)] {
            // They would reach terminals and pages.
            if let Some(place) =
                text.chars().position(|letter| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t'))
            {
                let problem = format!("its character {} is a control character; allowed are lines of text", place + 1);
                return Err(InputError::new(field, text.escape_debug().to_string(), problem));
            }
        }
        let transports = self.transports()?;
        if !(1..=MAX_REPS).contains(&self.reps) {
            return Err(InputError::new("reps", self.reps.to_string(), format!("allowed is 1 to {MAX_REPS}")));
        }
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            let allowed = format!("allowed is 1 to {MAX_FLOWS}");
            return Err(InputError::new("flows", self.flows.to_string(), allowed));
        }
        if self.seed > MAX_SEED {
            return Err(InputError::new("seed", self.seed.to_string(), format!("allowed is 0 to {MAX_SEED}")));
        }
        if let Some(published) = self.published.as_deref().filter(|name| !PUBLISHED.contains(name)) {
            return Err(InputError::new("published", published, format!("allowed is {}", PUBLISHED.join(", "))));
        }
        let options = self.link_options.as_deref();
        let worlds = each("world", &self.world, |text| World::parse("world", text))?;
        let links = each("link", &self.link, |text| Link::parse_with("link", text, options, self.noise, directory))?;
        for (place, link) in links.iter().enumerate() {
            if links[..place].iter().any(|earlier| earlier.text == link.text) {
                return Err(InputError::new("link", &link.text, "two links have this name; each needs its own"));
            }
        }
        let sizes = self.sizes(Bytes::new(u64::from(transports[0].profile.payload)))?;
        let readings = self.readings(&transports, &own.schemes, &links, &sizes)?;
        let (mut schemes, mut scheme_avoidances) = (Vec::new(), Vec::new());
        let (mut avoidances, mut competitors) = (Vec::new(), Vec::new());
        let scheme_connections = readings.first().map(|reading| reading.connections.clone()).unwrap_or_default();
        for reading in readings {
            schemes.push(reading.schemes);
            scheme_avoidances.push(reading.scheme_avoidances);
            avoidances.push(reading.avoidances);
            competitors.push(reading.competitors);
        }
        let plan = Plan {
            aqms: each("aqm", &self.aqm, |text| Aqm::parse_with("aqm", text, &own.aqms))?,
            avoidances: PerTransport::of(avoidances),
            scheme_avoidances,
            scheme_connections,
            competitors: PerTransport::of(competitors),
            links,
            sizes,
            schemes: PerTransport::of(schemes),
            transports,
            flows: self.flows,
            arrivals: each("arrival", &self.arrival, |text| Arrival::parse("arrival", text))?,
            idle: self.idle_policies()?,
            moves: self.mobility(directory)?,
            worlds,
            reps: self.reps,
            seed: self.seed,
            hint: self.hint,
            unknown: self.unknown,
            conditions: BTreeMap::new(),
        };
        web_sessions::check(&plan)?;
        oracle::check(&plan)?;
        connections::check(&plan)?;
        cross_traffic::check(&plan)?;
        pages::check(&plan)?;
        proxies::check(&plan)?;
        sharing::check(&plan)?;
        sockets::check(&plan)?;
        trains::check(&plan)?;
        for arrival in &plan.arrivals {
            let nearest = arrival.value.rtts.iter().min();
            if let Some((rtt, link)) = nearest.and_then(|rtt| Some((rtt, plan.links.iter().find(|l| l.rtt > *rtt)?))) {
                let problem = format!("rtts has {rtt}; allowed is {} or more, the RTT of {}", link.rtt, link.text);
                return Err(InputError::new("arrival", &arrival.text, problem));
            }
        }
        for (arrival, size) in
            plan.arrivals.iter().flat_map(|arrival| plan.sizes.iter().map(move |size| (arrival, size)))
        {
            let gap = arrival.value.load().map_or(0.0, |load| size.value.mean() * 8.0 / load.bits_per_sec() as f64);
            if gap > LONGEST_MEAN_GAP_S {
                let problem = format!(
                    "{gap:.0} s between two transfers of {} on average; allowed is up to {LONGEST_MEAN_GAP_S} s",
                    size.text
                );
                return Err(InputError::new("arrival", &arrival.text, problem));
            }
        }
        let times = |runs: u64, axis: &Axis| runs.saturating_mul(axis.length(&plan) as u64);
        let runs = AXES.iter().fold(u64::from(plan.reps), times);
        // `runs` has each arrival as often as the others.
        let flows = plan.arrivals.iter().map(|arrival| u64::from(arrival.value.flows.unwrap_or(plan.flows))).sum();
        let rows = (runs / (plan.arrivals.len() as u64).max(1)).saturating_mul(flows);
        if rows > MAX_ROWS {
            let (memory, flows) =
                (Bytes::new(MAX_ROWS * LARGEST_ROW), if rows > runs { " of several flows" } else { "" });
            let problem = format!(
                "{runs} runs{flows} have {rows} rows of results; allowed are {MAX_ROWS}, which take some {memory} of \
                 memory"
            );
            return Err(InputError::new("reps", self.reps.to_string(), problem));
        }
        Ok(plan)
    }

    /// The transports, both of [`BOTH`] where that is written.
    fn transports(&self) -> Result<Vec<Transport>, InputError> {
        let of_both = || OF_BOTH.map(str::to_owned).to_vec();
        let named = |text: &String| if names::is_same(text.trim(), BOTH) { of_both() } else { vec![text.clone()] };
        let texts: Vec<String> = self.transport.iter().flat_map(named).collect();
        each("transport", &texts, |text| Transport::parse("transport", text))
    }

    /// Whether flows carry something other than one transfer.
    fn has_application(&self) -> bool {
        !self.application.is_empty() && !matches!(&self.application[..], [one] if names::is_same(one.trim(), TRANSFER))
    }

    fn idle_policies(&self) -> Result<Vec<WindowValidation>, InputError> {
        if self.idle.is_empty() {
            return Ok(Vec::new());
        }
        each("idle", &self.idle, |text| {
            WindowValidation::ALL.into_iter().find(|policy| names::is_same(policy.name(), text)).ok_or_else(|| {
                let policies = WindowValidation::ALL.map(WindowValidation::name);
                let problem = names::unknown(text, &policies, format_args!("use one of {}", policies.join(", ")));
                InputError::new("idle", text, problem)
            })
        })
    }

    fn mobility(&self, directory: &Path) -> Result<Vec<Written<Option<Move>>>, InputError> {
        let options = self.link_options.as_deref();
        let read = each("move", &self.mobility, |text| Move::parse("move", text, options, self.noise, directory))?;
        match read.iter().find(|mobility| mobility.value.is_some()) {
            Some(mobility) if self.has_application() => Err(InputError::new(
                "move",
                &mobility.text,
                "only transfers move; leave out the application or the move",
            )),
            _ => Ok(read),
        }
    }

    /// The sizes of transfers, or the applications that replace them.
    fn sizes(&self, payload: Bytes) -> Result<Vec<Written<Workload>>, InputError> {
        if !self.has_application() {
            return distinct("size", each("size", &self.size, |text| Workload::parse_size("size", text))?);
        }
        let read = |text: &str| Workload::parse_application("application", text, payload);
        let sizes = distinct("application", each("application", &self.application, read)?)?;
        match self.size.first() {
            Some(size) => Err(InputError::new("size", size, "an application has sizes of its own; leave it out")),
            None => Ok(sizes),
        }
    }

    /// A note for users who chose no congestion avoidance for measured flows while a competitor, or another of their
    /// schemes, has a different one. Their comparison is then not about the scheme alone.
    pub fn unchosen_avoidance(&self, plan: &Plan) -> Option<String> {
        let differing = |(place, transport): (usize, &Transport)| {
            let own = transport.profile.avoidance.name();
            // A scheme that names its own has made the choice.
            let is_chosen = |scheme: usize| plan.names_avoidance(scheme, place);
            let unchosen: Vec<&str> =
                plan.schemes.iter().enumerate().filter(|one| !is_chosen(one.0)).map(|one| &*one.1.text).collect();
            if unchosen.is_empty() {
                return None;
            }
            let flows = match unchosen.len() == plan.schemes.len() {
                true => "the measured flows use".to_owned(),
                false => format!("the measured flows with {} use", unchosen.join(" or ")),
            };
            let mut others: Vec<&str> = Vec::new();
            for competitor in &plan.competitors {
                if let Competitor::Bulk { avoidance, .. } = competitor.on(place)
                    && avoidance.name() != own
                    && !others.contains(&avoidance.name())
                {
                    others.push(avoidance.name());
                }
            }
            let mut named: Vec<&str> = Vec::new();
            for other in plan.scheme_avoidances[place].iter().flatten().map(|other| other.value.name()) {
                if other != own && !named.contains(&other) {
                    named.push(other);
                }
            }
            let with = if plan.transports.len() > 1 { format!("with {} ", transport.text) } else { String::new() };
            let others = [("the competitor", others), ("other schemes", named)].into_iter();
            let others = others.filter(|(_, avoidances)| !avoidances.is_empty());
            let others: Vec<String> = others.map(|(who, which)| format!("{who} {}", which.join(" or "))).collect();
            (!others.is_empty()).then(|| format!("{with}{flows} {own}, {}", others.join(", ")))
        };
        let statements: Vec<String> = plan.transports.iter().enumerate().filter_map(differing).collect();
        (self.avoidance.is_empty() && !statements.is_empty()).then(|| statements.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::plan::Cell;

    #[test]
    fn an_avoidance_that_schemes_name_is_chosen() {
        let note = |schemes: &str| {
            let text = format!(
                "link = [\"lte\"]\nsize = [\"500KB\"]\ncompetitor = [\"cubic\"]\nscheme = [{schemes}]\nreps = 1"
            );
            let scenario = Scenario::from_text(&text).unwrap();
            scenario.unchosen_avoidance(&scenario.plan(Path::new(".")).unwrap())
        };
        assert_eq!(note("\"slow-start:avoidance=cubic\", \"blitzstart:avoidance=cubic\""), None);
        let all = note("\"slow-start\", \"blitzstart\"").unwrap();
        assert_eq!(all, "the measured flows use reno, the competitor cubic");
        let some = note("\"slow-start\", \"blitzstart:avoidance=cubic\"").unwrap();
        assert_eq!(some, "the measured flows with slow-start use reno, the competitor cubic, other schemes cubic");
    }

    #[test]
    fn a_scheme_without_a_launch_is_refused_beside_an_avoidance_that_probes_by_itself() {
        let text = |scheme: &str| {
            format!("link = [\"lte\"]\nsize = [\"1MB\"]\nscheme = [\"slow-start\", \"{scheme}\"]\navoidance = \"bbr\"")
        };
        let plan = |scheme: &str| Scenario::from_text(&text(scheme)).unwrap().plan(Path::new("."));
        for scheme in ["blitzstart", "more-start", "careful-resume", "swift-start", "jump-start"] {
            assert!(plan(scheme).is_ok(), "{scheme}");
        }
        for scheme in ["hystart", "hystart-plus-plus", "search", "suss", "rapid-start"] {
            let error = plan(scheme).unwrap_err().to_string();
            assert!(error.contains("takes only a scheme's launch"), "{error}");
        }
    }

    #[test]
    fn a_scenario_keeps_its_default_discipline_and_competitor_and_refuses_none() {
        let text = "link = [\"lte\"]\nsize = [\"1MB\"]\nscheme = [\"hystart\"]\n";
        let scenario = Scenario::from_text(text).unwrap();
        assert_eq!((&*scenario.aqm, &*scenario.competitor), (&["taildrop".to_owned()][..], &["none".to_owned()][..]));
        for key in ["aqm", "competitor"] {
            let error = Scenario::from_text(&format!("{text}{key} = []")).unwrap_err().to_string();
            assert!(error.contains("at least one is needed"), "{error}");
        }
    }

    #[test]
    fn arrivals_that_would_take_ages_are_refused() {
        // 1 GB at 1 Mbit/s: 8000 s between two arrivals.
        let text = "link = [\"lte\"]\nsize = [\"1GB\"]\nscheme = [\"hystart\"]\narrival = [\"poisson:load=1mbit\"]";
        let error = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap_err();
        assert!(error.field == "arrival" && error.problem.contains("8000 s"), "{error}");
    }

    #[test]
    fn every_axis_multiplies_the_cells_and_shows_in_their_names() {
        let text = "link = [\"lte\", \"3g\"]\naqm = [\"taildrop\", \"codel\"]\ncompetitor = [\"none\", \"bulk\"]\n\
                    size = [\"70KB\", \"2MB\"]\narrival = [\"together\", \"every=1ms\"]\n\
                    idle = [\"keep\", \"startup\"]\n\
                    move = [\"none\", \"3g,at=1s\"]\nscheme = [\"slow-start\", \"hystart\"]\n\
                    transport = [\"model-quic\", \"model-tcp\"]\navoidance = [\"cubic\", \"reno\"]";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let cells = plan.cells();
        // Sockets run few of these, so there is one world.
        assert_eq!(cells.len(), 1 << (AXES.len() - 1));
        assert!(cells.iter().enumerate().all(|(index, cell)| cell.index == index));
        // The first varies slowest.
        let places = |cell: &Cell| AXES.iter().map(|axis| axis.place(*cell)).collect::<Vec<_>>();
        assert!(cells.is_sorted_by_key(places));
        assert_eq!(plan.id(&cells[0]), "lte/taildrop/70KB/slow-start/none/model-quic/idle=keep/avoidance=cubic");
        let last = "3g/codel/2MB/hystart/bulk/model-tcp/every=1ms/idle=startup/move:3g,at=1s/avoidance=reno";
        let last_cell = cells[cells.len() - 1];
        assert_eq!(plan.id(&last_cell), last);
        assert_eq!(plan.cell(last), Some(last_cell));
        assert_eq!(plan.carried(&last_cell), "2MB idle=startup move:3g,at=1s");
        let by_setting: Vec<Cell> = plan.settings().into_iter().flat_map(|setting| plan.cells_of(setting)).collect();
        assert_eq!(by_setting, cells);
    }

    #[test]
    fn a_move_is_an_axis_of_transfers_and_shows_in_names() {
        let plan = |text: &str| {
            let text = format!("link = [\"lte\"]\nscheme = [\"hystart\"]\nmove = [\"none\", \"3g,at=1s\"]\n{text}");
            Scenario::from_text(&text).unwrap().plan(Path::new("."))
        };
        let moved = plan("size = [\"1MB\"]").unwrap();
        let names: Vec<String> = moved.cells().iter().map(|cell| moved.id(cell)).collect();
        assert_eq!(names, ["lte/taildrop/1MB/hystart/none", "lte/taildrop/1MB/hystart/none/move:3g,at=1s"]);
        assert_eq!(moved.cell(&names[1]), Some(moved.cells()[1]));
        let error = plan("application = [\"page:objects=2,size=1KB,waves=2\"]").unwrap_err();
        assert!(error.field == "move" && error.problem.contains("only transfers move"), "{error}");
    }

    #[test]
    fn an_application_takes_the_place_of_the_size() {
        let plan = |text: &str| {
            let text = format!("link = [\"lte\"]\nscheme = [\"hystart\"]\n{text}");
            Scenario::from_text(&text).unwrap().plan(Path::new("."))
        };
        let page = "page:objects=2,size=1KB,waves=2";
        let pages = plan(&format!("application = [\"{page}\"]\nidle = [\"keep\", \"startup\"]")).unwrap();
        let names: Vec<String> = pages.cells().iter().map(|cell| pages.id(cell)).collect();
        let name = |idle: &str| format!("lte/taildrop/{page}/hystart/none/idle={idle}");
        assert_eq!(names, [name("keep"), name("startup")]);
        assert_eq!(pages.cells().iter().map(|cell| cell.index).collect::<Vec<_>>(), [0, 1]);
        let plain = plan("size = [\"1MB\"]\napplication = [\"transfer\"]").unwrap();
        assert_eq!(plain.id(&plain.cells()[0]), "lte/taildrop/1MB/hystart/none");
        let error = |text: &str| plan(text).unwrap_err().to_string();
        assert!(error("application = [\"transfer\"]").contains("size: at least one is needed"));
        assert!(error(&format!("size = [\"1MB\"]\napplication = [\"{page}\"]")).contains("leave it out"));
        assert!(error(&format!("application = [\"transfer\", \"{page}\"]")).contains("transfer alone"));
        assert!(error("size = [\"1MB\"]\nidle = [\"sleep\"]").contains("use one of keep, rfc5681"));
    }

    #[test]
    fn entries_that_differ_only_in_space_are_the_same() {
        let text = "link = [\"lte\", \" lte\"]\nsize = [\"1MB\"]\nscheme = [\"hystart\"]";
        let error = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap_err();
        assert!(error.problem.contains("twice"), "{error}");
    }

    #[test]
    fn numbers_say_what_is_allowed() {
        let error = |line: &str| {
            let text = format!("link = [\"lte\"]\nsize = [\"1MB\"]\nscheme = [\"hystart\"]\n{line}");
            Scenario::from_text(&text).unwrap_err().to_string()
        };
        for (line, told) in [
            ("reps = -1", "`-1`: allowed is 1 to 100000"),
            ("flows = 99999999999", "`99999999999`: allowed is 1 to 10000"),
            ("seed = -1", "`-1`: allowed is 0 to 9223372036854775807"),
            ("reps = 2.5", "floating point `2.5`: allowed is a whole number"),
            ("hint = \"yes\"", "string \"yes\": allowed is true or false"),
            ("title = 3", "integer `3`: allowed is a text"),
            ("aqm = 3", "integer `3`: allowed is a list, as in [\"a\", \"b\"]"),
            ("aqm = [\"codel\", 3]", "integer `3`: allowed is a text"),
        ] {
            let (field, _) = line.split_once(' ').unwrap();
            assert_eq!(error(line), format!("{field}: {told}"));
        }
    }

    #[test]
    fn spellings_of_one_value_are_the_same() {
        let plan = |more: &str| {
            let text = "link = [\"lte\"]\nsize = [\"1MB\"]\nscheme = [\"hystart\"]";
            let (key, _) = more.split_once(' ').unwrap();
            let other = |line: &&str| !line.starts_with(key);
            let text: String = text.lines().filter(other).map(|line| format!("{line}\n")).collect();
            Scenario::from_text(&format!("{text}{more}")).unwrap().plan(Path::new("."))
        };
        for (more, same) in [
            ("aqm = [\"cake\", \"codel\", \"CAKE\"]", "cake"),
            ("aqm = [\"cake\", \"cake:\"]", "cake"),
            ("aqm = [\"fq_codel\", \"fq-codel\"]", "fq_codel"),
            ("scheme = [\"slow-start\", \"Slow-Start\"]", "slow-start"),
            ("scheme = [\"slow-start:iw=4,spread=true\", \"slow-start:spread=true,IW=4\"]", "slow-start:iw=4"),
            ("avoidance = [\"reno\", \"Reno\"]", "reno"),
            ("competitor = [\"none\", \"None\"]", "none"),
            ("competitor = [\"none\", \"none:\"]", "none"),
            ("transport = [\"model-tcp\", \"Model_TCP\"]", "model-tcp"),
            ("link = [\"lte\", \"LTE\"]", "lte"),
            ("size = [\"1MB\", \"1mb\"]", "1MB"),
            ("idle = [\"keep\", \"Keep\"]", "keep"),
        ] {
            let error = plan(more).unwrap_err();
            assert_eq!(Some(&*error.field), more.split(' ').next());
            assert!(error.problem.contains(&format!("given twice: `{same}")), "{more}: {error}");
        }
        // The same with its default written is no slip of the fingers.
        assert!(plan("aqm = [\"codel\", \"codel:target=5ms\"]").is_ok());
    }

    #[test]
    fn absurd_numbers_of_cells_are_refused_before_they_are_built() {
        let many = |prefix: &str, suffix: &str| (1..2000).map(|i| format!("{prefix}{i}{suffix}")).collect();
        let scenario = Scenario {
            link: many("rate=100mbit,rtt=", "ms"),
            size: many("", "KB"),
            scheme: many("slow-start:iw=", ""),
            competitor: many("bulk:count=", ""),
            flows: 1,
            reps: 1,
            ..Scenario::default()
        };
        assert_eq!(scenario.plan(Path::new(".")).unwrap_err().field, "reps");
    }

    #[test]
    fn results_that_would_fill_the_memory_are_refused() {
        let plan = |reps: u32, more: &str| {
            let text = format!(
                "link = [\"lte\"]\nsize = [\"1MB\"]\nscheme = [\"slow-start\", \"suss\"]\nreps = {reps}\n{more}"
            );
            Scenario::from_text(&text).unwrap().plan(Path::new("."))
        };
        // Two cells of 50,000 runs of 10 flows, or of 5 and 15, are a million rows.
        for flows in ["flows = 10", "arrival = [\"every=1ms,flows=10\"]"] {
            assert!(plan(50_000, flows).is_ok(), "{flows}");
            let problem = plan(50_001, flows).unwrap_err().problem;
            let told =
                "100002 runs of several flows have 1000020 rows of results; allowed are 1000000, which take some 4.1GB";
            assert!(problem.contains(told), "{problem}");
        }
        let two = "arrival = [\"every=1ms,flows=5\", \"every=2ms,flows=15\"]";
        assert!(plan(25_000, two).is_ok());
        assert!(plan(25_001, two).is_err());
    }
}
