//! The two sets of cells: one on which a scheme is designed, and one that it does not know.
//!
//! | Drawn | From |
//! |---|---|
//! | rate | 1 Mbit/s to 1 Gbit/s |
//! | RTT | 10 to 700 ms |
//! | buffer | 0.1 to 8 BDP, at least 10 packets |
//! | size | 70 KB to 100 MB of all flows together, at most what the rate carries in a minute |
//! | acknowledgements | one per 1 to 10 packets; 30 % arrive together, once in 1 to 20 ms |
//! | policers | 7 %, with a bucket of 0.1 to 2 BDP |
//! | steps of the capacity | 8 %, by half or 80 %, each lasting 1 to 5 s |
//! | queue | half tail drop, else each discipline alike |
//! | others, knowledge, transport | [`OTHERS`], [`knowledge`], [`TRANSPORTS`] |
//!
//! Rates, RTTs, buffers and sizes are uniform by their logarithm. Sizes are bounded by a time because a start matters
//! little to what takes longer, and for the cost: the held-out set takes hours. Measured flows are CUBIC, see
//! [`cells`](super::cells).

use std::path::{Path, PathBuf};

use flowstart_lab::spec::link::Link;
use flowstart_lab::study::scenario::Scenario;
use sha2::{Digest, Sha256};

use super::draw::{between, choice, column, rounded};
use super::knowledge::{self, Kind, Truth};
use super::worst;

/// A set of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// For the design: presets, recordings, links at random, and the worst that a search has found.
    Design,
    /// For the judgement, once for each version that is called finished.
    HeldOut,
}

/// The presets of the design set.
const PRESETS: [&str; 8] = ["dsl-slow", "dsl-fast", "3g", "lte", "geo", "leo", "5g", "scharf"];
/// Presets whose capacity changes.
const VARYING: [&str; 2] = ["leo", "5g"];
/// Recordings, with the rest of their links and what they give in the mean.
const RECORDINGS: [(&str, &str, Truth); 3] = [
    (
        "TMobile-LTE-short",
        "rtt=70ms,buffer=560pkt,technology=lte,trace_start=varied",
        Truth { mbit: 16.7, rtt_ms: 70.0 },
    ),
    (
        "ATT-LTE-driving-2016",
        "rtt=70ms,buffer=560pkt,technology=lte,trace_start=varied",
        Truth { mbit: 4.56, rtt_ms: 70.0 },
    ),
    (
        "TMobile-UMTS-driving",
        "rtt=90ms,buffer=140pkt,technology=3g,trace_start=varied",
        Truth { mbit: 2.02, rtt_ms: 90.0 },
    ),
];
/// The share of random links that are recordings instead.
const RECORDED: f64 = 0.03;

/// Who else uses a link, and how often.
pub const OTHERS: &[(Others, f64)] = &[
    (Others::Nobody, 50.0),
    (Others::Established("cubic"), 9.0),
    (Others::Established("cubic:count=4"), 7.0),
    (Others::Established("reno"), 5.0),
    (Others::Established("bbr"), 5.0),
    (Others::Web, 5.0),
    (Others::Media, 5.0),
    (Others::Itself, 9.0),
    (Others::Mixed, 5.0),
];
/// How many start together, all with the scheme; the largest number has a bar of its own.
const TOGETHER: [u32; 8] = [2, 4, 8, 16, 32, 64, 64, 64];
/// The starts of others that begin together with a transfer.
const MIXED: [&str; 4] = ["slow-start", "initial-start", "jump-start", "blitzstart"];
/// Transports, and how often each is drawn.
pub const TRANSPORTS: &[(Transport, f64)] =
    &[(Transport::ModelQuic, 45.0), (Transport::ModelTcp, 35.0), (Transport::Quic, 20.0)];
/// Queue disciplines beside tail drop.
const AQMS: [&str; 14] = [
    "red",
    "adaptive-red",
    "hred",
    "pi",
    "avq",
    "pie",
    "codel",
    "predict",
    "fq-codel",
    "fq-pie",
    "sfq",
    "sfq-codel",
    "dualpi2",
    "cake",
];

/// Smallest and largest size, in bytes.
const SIZES: (f64, f64) = (70e3, 100e6);
/// The longest time that the link's rate needs for a size, in seconds.
const LONGEST: f64 = 60.0;
/// The smallest buffer and bucket: ten packets.
const SMALLEST: f64 = 15_000.0;

/// Who else uses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody.
    Nobody,
    /// Transfers that are there already.
    Established(&'static str),
    /// Short transfers that come at random.
    Web,
    /// Interactive audio.
    Media,
    /// Transfers that start at the same time, with the same scheme.
    Itself,
    /// Transfers that start at the same time, with another scheme.
    Mixed,
}

/// What carries the transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The model of QUIC.
    ModelQuic,
    /// The model of TCP.
    ModelTcp,
    /// The real stack, in the simulator's time.
    Quic,
}

/// What is special about a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traits {
    /// What is known.
    pub knowledge: Kind,
    /// Who else is there.
    pub others: Others,
    /// The transport.
    pub transport: Transport,
    /// Excess is dropped before the queue.
    pub is_policed: bool,
    /// The capacity changes by itself: in steps, or as it was recorded.
    pub is_varying: bool,
    /// Acknowledgements arrive together.
    pub is_aggregated: bool,
    /// The RTT of the empty path in milliseconds.
    pub rtt_ms: f64,
}

impl Traits {
    /// Whether nobody else is there.
    pub fn is_alone(&self) -> bool {
        self.others == Others::Nobody
    }

    /// Whether the link is a queue at one rate, with acknowledgements as they come.
    pub fn is_plain(&self) -> bool {
        !(self.is_policed || self.is_varying || self.is_aggregated)
    }
}

/// A cell of a set: everything but the schemes.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its name.
    pub name: String,
    /// What is special about it.
    pub traits: Traits,
    /// The link, as `--link` takes it.
    pub link: String,
    /// The queue discipline, as `--aqm` takes it.
    pub aqm: String,
    /// The size, as `--size` takes it.
    pub size: String,
    /// The others, as `--competitor` takes them.
    pub competitor: String,
    /// The transport, as `--transport` takes it.
    pub transport: String,
    /// Measured transfers.
    pub flows: u32,
}

impl Transport {
    /// As `--transport` takes it.
    fn text(self, acks: u32) -> String {
        let name = match self {
            Self::ModelQuic => "model-quic",
            Self::ModelTcp => "model-tcp",
            Self::Quic => "quic",
        };
        format!("{name}:ack.every={acks}")
    }
}

impl Drawn {
    /// The cell in a line.
    pub fn line(&self) -> String {
        let Self { name, traits, link, aqm, size, competitor, transport, flows } = self;
        let knowledge = traits.knowledge.name();
        format!("{name} {knowledge} {link} {aqm} {size} {competitor} {transport} {flows}")
    }

    /// The scenario with these schemes, as `flowstart run` reads it.
    pub fn scenario(&self, schemes: Vec<String>, reps: u32, seed: u64) -> Scenario {
        Scenario {
            title: self.name.clone(),
            link: vec![self.link.clone()],
            aqm: vec![self.aqm.clone()],
            size: vec![self.size.clone()],
            competitor: vec![self.competitor.clone()],
            transport: vec![self.transport.clone()],
            scheme: schemes,
            flows: self.flows,
            reps,
            seed,
            hint: true,
            unknown: self.traits.knowledge == Kind::Nothing,
            noise: true,
            ..Scenario::default()
        }
    }

    /// Whether its link is a recording, whose file has to be there.
    pub fn needs_recordings(&self) -> bool {
        self.link.contains("trace=")
    }
}

/// A column for each thing that is drawn, by its name.
struct Columns {
    seed: u64,
    count: usize,
}

impl Columns {
    fn of(&self, role: &str) -> Vec<f64> {
        column(self.seed, role, self.count)
    }
}

/// A link before it is known who else uses it.
enum Base {
    Preset(&'static str),
    Recording(usize),
    Random,
}

impl Set {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Design, Self::HeldOut];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::HeldOut => "held-out",
        }
    }

    /// The set with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Its seed, and the number of links at random.
    const fn drawn_from(self) -> (u64, usize) {
        match self {
            Self::Design => (20_260_401, 200),
            Self::HeldOut => (20_261_128, 800),
        }
    }

    /// The SHA-256 of its cells as text, a line each. That of the held-out set was written down before any scheme was
    /// tuned.
    pub const fn sha256(self) -> &'static str {
        match self {
            Self::Design => "b4c43d20ddbbe53e7bb9329d6d85626dc8ebf84c95f9605400ee2f7f2d585dea",
            Self::HeldOut => "7c949d4e1b36fa98127cea1096a1f4e29dcdd861fe9023eee30a659864f4b0e1",
        }
    }

    /// Its cells, the same on every machine.
    pub fn cells(self) -> Vec<Drawn> {
        let (seed, random) = self.drawn_from();
        let mut bases = Vec::new();
        if self == Self::Design {
            bases.extend(PRESETS.map(Base::Preset));
            bases.extend((0..RECORDINGS.len()).map(Base::Recording));
        }
        let columns = Columns { seed, count: bases.len() + random };
        let recorded = columns.of("recording");
        for part in &recorded[bases.len()..] {
            let which = (part / RECORDED * RECORDINGS.len() as f64) as usize;
            bases.push(if which < RECORDINGS.len() { Base::Recording(which) } else { Base::Random });
        }
        let names = ["rate", "rtt", "buffer", "size", "acks", "aggregation", "policer", "bucket", "steps", "period"];
        let more = ["depth", "aqm", "others", "number", "start", "knowledge", "far", "which", "transport"];
        let drawn: Vec<Vec<f64>> = names.iter().chain(&more).map(|name| columns.of(name)).collect();
        let cell = |(place, base): (usize, Base)| {
            let part = |name: &str| {
                let column = names.iter().chain(&more).position(|one| *one == name).map(|column| &drawn[column]);
                column.and_then(|column| column.get(place)).copied().unwrap_or_default()
            };
            draw(format!("{}-{:03}", self.name(), place + 1), &base, &part)
        };
        let mut cells: Vec<Drawn> = bases.into_iter().enumerate().map(cell).collect();
        if self == Self::Design {
            cells.extend(worst::FOUND.into_iter().zip(1..).map(|(found, number)| worst(self, found, number)));
        }
        cells
    }
}

/// The SHA-256 of cells as text, a line each.
pub fn sha256(cells: &[Drawn]) -> String {
    let mut hash = Sha256::new();
    for cell in cells {
        hash.update(cell.line());
        hash.update("\n");
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One of these, at `part` of all.
fn one_of<T: Copy>(all: &[T], part: f64) -> T {
    all[((part * all.len() as f64) as usize).min(all.len() - 1)]
}

/// Draws a cell; `part` is what its columns have.
fn draw(name: String, base: &Base, part: &dyn Fn(&str) -> f64) -> Drawn {
    let others = choice(OTHERS, part("others")).map_or(Others::Nobody, |(others, _)| others);
    let transport = choice(TRANSPORTS, part("transport")).map_or(Transport::ModelQuic, |(one, _)| one);
    let mut traits = Traits {
        knowledge: Kind::Nothing,
        others,
        transport,
        is_policed: false,
        is_varying: false,
        is_aggregated: false,
        rtt_ms: 0.0,
    };
    let (mut acks, mut aqm) = (2, "taildrop");
    let (truth, mut link) = match base {
        Base::Preset(preset) => {
            traits.is_varying = VARYING.contains(preset);
            (truth_of(preset), (*preset).to_owned())
        }
        Base::Recording(which) => {
            traits.is_varying = true;
            let (file, rest, truth) = RECORDINGS[*which];
            (truth, format!("trace={file}.down,up_trace={file}.up,{rest}"))
        }
        Base::Random => {
            acks = 1 + (part("acks") * 10.0) as u32;
            aqm = if part("aqm") < 0.5 { aqm } else { one_of(&AQMS, part("aqm") * 2.0 - 1.0) };
            random(&mut traits, part)
        }
    };
    traits.rtt_ms = truth.rtt_ms;
    let (kind, keys) = knowledge::draw(truth, part("knowledge"), part("far"), part("which"));
    traits.knowledge = kind;
    if !keys.is_empty() {
        link = format!("{link},{keys}");
    }
    let flows = if others == Others::Itself { one_of(&TOGETHER, part("number")) } else { 1 };
    // All flows together carry what one would.
    let most = (truth.mbit * 1e6 / 8.0 * LONGEST).min(SIZES.1) / f64::from(flows);
    let size = rounded(between(SIZES.0, most.max(SIZES.0), part("size")) / 1e3);
    let competitor = match others {
        Others::Nobody | Others::Itself => "none".to_owned(),
        Others::Established(text) => text.to_owned(),
        Others::Web => format!("web:load={}mbit", rounded(truth.mbit * 0.3)),
        Others::Media => "media".to_owned(),
        Others::Mixed => {
            let count = 2 + (part("number") * 7.0) as u32;
            format!("short:size={size}KB,count={count},avoidance=cubic,startup={}", one_of(&MIXED, part("start")))
        }
    };
    let size = format!("{size}KB");
    Drawn { name, traits, link, aqm: aqm.to_owned(), size, competitor, transport: transport.text(acks), flows }
}

/// The cell in which a search found a scheme at its worst.
fn worst(set: Set, (link, rtt_ms, aqm, size, competitor, acks, knowledge): worst::Found, number: u32) -> Drawn {
    let others = if competitor == "none" { Others::Nobody } else { Others::Established(competitor) };
    let transport = Transport::ModelQuic;
    let is_policed = link.contains("policer=");
    Drawn {
        name: format!("{}-worst-{number:02}", set.name()),
        traits: Traits { knowledge, others, transport, is_policed, is_varying: false, is_aggregated: false, rtt_ms },
        link: link.to_owned(),
        aqm: aqm.to_owned(),
        size: size.to_owned(),
        competitor: competitor.to_owned(),
        transport: transport.text(acks),
        flows: 1,
    }
}

/// A link at random, and what is special about it.
fn random(traits: &mut Traits, part: &dyn Fn(&str) -> f64) -> (Truth, String) {
    let (mbit, rtt_ms) = (rounded(between(1.0, 1000.0, part("rate"))), rounded(between(10.0, 700.0, part("rtt"))));
    let bdp = mbit * 1e6 / 8.0 * rtt_ms / 1e3;
    let buffer = rounded(between(0.1, 8.0, part("buffer")));
    let buffer = if buffer * bdp < SMALLEST { "10pkt".to_owned() } else { format!("{buffer}bdp") };
    let mut link = format!("rate={mbit}mbit,rtt={rtt_ms}ms,buffer={buffer}");
    let aggregation = part("aggregation");
    if aggregation < 0.3 {
        traits.is_aggregated = true;
        link += &format!(",up_aggregation={}ms", rounded(1.0 + 19.0 * aggregation / 0.3));
    }
    if part("policer") < 0.07 {
        traits.is_policed = true;
        let bucket = (bdp * between(0.1, 2.0, part("bucket"))).max(SMALLEST);
        link += &format!(",policer={}KB", rounded(bucket / 1e3));
    } else if part("steps") < 0.08 {
        traits.is_varying = true;
        let (depth, period) = (if part("depth") < 0.5 { "50%" } else { "80%" }, between(1.0, 5.0, part("period")));
        link += &format!(",rate_steps={depth}/{}s", rounded(period));
    }
    (Truth { mbit, rtt_ms }, link)
}

/// What is true of a preset.
fn truth_of(preset: &str) -> Truth {
    let link = Link::parse("link", preset, Path::new("."));
    link.map_or(Truth { mbit: 1.0, rtt_ms: 1.0 }, |link| Truth {
        mbit: rounded(link.rate.as_mbit()),
        rtt_ms: link.rtt.as_millis_f64(),
    })
}

/// The folder that has all recordings, of these; the first that lacks one is named.
///
/// # Errors
///
/// The file that is not there.
pub fn check_recordings(folder: &Path) -> Result<(), String> {
    for (name, ..) in RECORDINGS {
        for way in ["down", "up"] {
            let file: PathBuf = folder.join(format!("{name}.{way}"));
            if !file.is_file() {
                return Err(format!("{}: is not there; three recordings of Mahimahi are needed", file.display()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flowstart_core::aqm::QueueConfig;

    use super::*;

    #[test]
    fn the_sets_are_those_whose_checksums_were_written_down() {
        // Cells that changed would be another set: results of two programs would look alike and not be.
        assert_eq!(Set::ALL.map(|set| sha256(&set.cells())), Set::ALL.map(Set::sha256));
        assert_eq!(Set::ALL.map(|set| Set::named(set.name())), Set::ALL.map(Some));
        assert_eq!((Set::Design.cells().len(), Set::HeldOut.cells().len()), (223, 800));
    }

    #[test]
    fn every_cell_is_a_scenario_that_runs() {
        for cell in Set::ALL.into_iter().flat_map(Set::cells).filter(|cell| !cell.needs_recordings()) {
            let scenario = cell.scenario(vec!["slow-start".into()], 5, 1);
            let text = toml::to_string(&scenario).unwrap();
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new("."));
            let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", cell.line()));
            assert_eq!(plan.cells().len(), 1);
        }
    }

    #[test]
    fn cells_have_what_their_traits_say() {
        let cells = Set::HeldOut.cells();
        let share =
            |is: &dyn Fn(&Drawn) -> bool| cells.iter().filter(|cell| is(cell)).count() as f64 / cells.len() as f64;
        for (said, least, most) in [
            (share(&|cell| cell.link.contains("policer=")), 0.06, 0.08),
            (share(&|cell| cell.traits.is_policed), 0.06, 0.08),
            (share(&|cell| cell.traits.is_alone()), 0.49, 0.51),
            (share(&|cell| cell.traits.is_aggregated), 0.27, 0.31),
            (share(&|cell| cell.traits.knowledge == Kind::Nothing), 0.21, 0.23),
            (share(&|cell| cell.traits.knowledge.is_false()), 0.41, 0.43),
            (share(&Drawn::needs_recordings), 0.025, 0.035),
            (share(&|cell| cell.flows == 64), 0.02, 0.05),
        ] {
            assert!((least..=most).contains(&said), "{said} is not {least} to {most}");
        }
        let drawn: BTreeSet<&str> = cells.iter().map(|cell| &*cell.aqm).collect();
        let all: BTreeSet<&str> = AQMS.into_iter().chain(["taildrop"]).collect();
        assert_eq!(drawn, all);
        // A discipline that comes later is in no cell of these sets.
        assert!(all.iter().all(|name| QueueConfig::NAMES.contains(name)));
        let names: BTreeSet<&str> = cells.iter().map(|cell| &*cell.name).collect();
        assert_eq!(names.len(), cells.len());
    }
}
