//! What users write: specs of the command line, scenario files and recorded capacities.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use flowstart_core::aqm::QueueConfig;
use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_lab::spec::application::{MAX_OBJECTS, Objects};
use flowstart_lab::spec::arrival::{Arrival, MAX_FLOWS};
use flowstart_lab::spec::competitor::Competitor;
use flowstart_lab::spec::link::{Cross, Link};
use flowstart_lab::spec::mobility::Move;
use flowstart_lab::spec::size::TransferSize;
use flowstart_lab::spec::transport::Transport;
use flowstart_lab::spec::web::Sessions;
use flowstart_lab::spec::workload::Workload;
use flowstart_lab::spec::{self, InputError, Written};
use flowstart_lab::study::scenario::Scenario;
use flowstart_sim::link::capacity_trace::CapacityTrace;
use flowstart_sim::link::varying_rate::Variation;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::call::Encoder;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::transport::profile::Profile;
use serde::Serialize;

use super::{EXACT, text};

/// Rates that links and traffic may have.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000_000;

/// A recorded capacity in Mahimahi's format.
pub fn capacity_trace(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let trace = match CapacityTrace::parse(text) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(error.to_string().len() < 1000, "an error quotes little of its file");
            return false;
        }
    };
    for start in [0, 1, 1_000_000, 1 << 40].map(Timestamp::from_nanos) {
        let one = trace.finish_after(start, Bytes::new(1));
        let more = trace.finish_after(start, Bytes::new(10_000_000));
        assert!(start <= one && one <= more, "{start:?} {one:?} {more:?}");
    }
    trace.finish_after(Timestamp::NEVER, Bytes::MAX);
    trace.mean_rate();
    true
}

fn survives<T>(text: &str, smallest_units: impl Fn(T) -> u64) -> bool
where
    T: FromStr + Display + Copy + PartialEq + Debug,
    T::Err: Debug + Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            assert!(smallest_units(value) <= 1 << 62);
            let again: T = value.to_string().parse().expect("a written quantity can be read");
            assert!(again == value || smallest_units(value) > EXACT, "{value} is not {again}");
            true
        }
        Err(error) => {
            assert!(error.to_string().contains("is not"), "{error}");
            false
        }
    }
}

/// A quantity with its unit.
pub fn quantity(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let bytes = survives(text, Bytes::get);
    let rate = survives(text, Rate::bits_per_sec);
    let duration = survives(text, Duration::as_nanos);
    bytes || rate || duration
}

fn explained<T>(result: Result<T, InputError>) -> Option<T> {
    result.inspect_err(|error| assert!(!error.field.is_empty() && !error.problem.is_empty())).ok()
}

/// The spec of a configuration with every parameter written out.
fn canonical(name: &str, config: &impl Serialize) -> String {
    let mut table = toml::Table::try_from(config).expect("a configuration is a table");
    table.remove("kind");
    let keys: Vec<String> = table
        .iter()
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        })
        .collect();
    format!("{name}:{}", keys.join(","))
}

fn startups() -> StartupConfig {
    StartupConfig::defaults().remove(0)
}

fn avoidances() -> AvoidanceConfig {
    AvoidanceConfig::defaults().remove(0)
}

/// The name in front of a spec's colon.
fn named(text: &str) -> &str {
    text.split(':').next().unwrap_or_default().trim()
}

/// A startup scheme's spec.
pub fn scheme(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let read = |text: &str| spec::scheme("--scheme", text, &startups());
    let Some(Written { value, .. }) = explained(read(text)) else { return false };
    assert_eq!(value.validate(), Ok(()));
    assert!(names::is_same(value.name(), named(text)), "{} {text}", value.name());
    assert_eq!(read(&canonical(value.name(), &value)).map(|again| again.value), Ok(value));
    true
}

/// A congestion avoidance's spec.
pub fn avoidance(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let read = |text: &str| spec::avoidance("--avoidance", text, &avoidances());
    let Some(Written { value, .. }) = explained(read(text)) else { return false };
    assert_eq!(value.validate(), Ok(()));
    assert!(names::is_same(value.name(), named(text)), "{} {text}", value.name());
    assert_eq!(read(&canonical(value.name(), &value)).map(|again| again.value), Ok(value));
    true
}

/// A queue discipline's spec.
pub fn aqm(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let read = |text: &str| spec::aqm("--aqm", text);
    let Some(Written { value, .. }) = explained(read(text)) else { return false };
    assert_eq!(value.validate(), Ok(()));
    assert!(names::is_same(value.name(), named(text)), "{} {text}", value.name());
    assert_eq!(read(&canonical(value.name(), &value)).map(|again| again.value), Ok::<QueueConfig, _>(value));
    true
}

/// A competitor's spec.
pub fn competitor(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    for profile in ["gquic", "tcp-linux"].into_iter().filter_map(Profile::named) {
        let Some(read) = explained(Competitor::parse("--competitor", text, &profile)) else { return false };
        match read.value {
            Competitor::None => {}
            Competitor::Bulk { count, startup, avoidance } => {
                assert!((1..=10_000).contains(&count));
                assert_eq!(startup.validate(), Ok(()));
                assert_eq!(avoidance.validate(), Ok(()));
            }
            Competitor::Pattern { count, pattern: Pattern::Media(media) } => {
                assert!((1..=10_000).contains(&count));
                assert!(RATES.contains(&media.rate.bits_per_sec()) && media.interval > Duration::ZERO);
                assert!((41..=1440).contains(&media.packet()), "{}", media.packet());
            }
            Competitor::Pattern { count, pattern: Pattern::Call(call) } => {
                assert!((1..=10_000).contains(&count));
                assert!(call.interval() > Duration::ZERO && call.group() >= 1 && call.deadline > Duration::ZERO);
                let mut encoder = Encoder::new(call, 1, 0);
                let (size, is_key) = encoder.next_frame();
                assert!(is_key && size > Bytes::ZERO && u32::try_from(encoder.next_frame().0.get()).is_ok());
            }
            Competitor::Pattern { count, pattern } => {
                assert!((1..=10_000).contains(&count));
                let (Pattern::ConstantRate { rate, .. } | Pattern::OnOff { rate, .. }) = pattern else {
                    panic!("no competitor is {pattern:?}")
                };
                assert!(RATES.contains(&rate.bits_per_sec()));
            }
            Competitor::Short { count, size, every, startup, avoidance } => {
                assert!((1..=10_000).contains(&count) && size > Bytes::ZERO);
                assert!(every.is_none_or(|gap| gap <= Duration::from_millis(1_000_000)));
                assert_eq!(startup.validate(), Ok(()));
                assert_eq!(avoidance.validate(), Ok(()));
            }
            Competitor::Web { load, sizes, startup, receiver_rate } => {
                assert!(RATES.contains(&load.bits_per_sec()));
                assert!(receiver_rate.is_none_or(|rate| RATES.contains(&rate.bits_per_sec())));
                assert!(startup.is_none_or(|startup| startup.validate() == Ok(())));
                assert!(Bytes::ZERO < sizes.smallest && sizes.smallest < sizes.largest);
                assert!(sizes.mean() > 0.0 && sizes.mean() <= sizes.largest.get() as f64 * 1.001, "{}", sizes.mean());
            }
            Competitor::Requests(requests) => {
                assert!(requests.interval > Duration::ZERO && RATES.contains(&requests.ask.bits_per_sec()));
                assert!(requests.count != Some(0) && requests.confirm != Some(Duration::ZERO));
            }
        }
    }
    true
}

/// When measured flows start.
pub fn arrival(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let Some(Written { value, .. }) = explained(Arrival::parse("--arrival", text)) else { return false };
    assert!(value.flows.is_none_or(|flows| (1..=MAX_FLOWS).contains(&flows)));
    let starts = value.starts(20, 1e5, 1);
    assert_eq!((starts.len(), starts[0]), (20, Duration::ZERO));
    assert!(starts.is_sorted());
    let drawn = value.draw_rtts(20, 1);
    assert!(drawn.iter().all(|rtt| rtt.map_or(value.rtts.is_empty(), |rtt| value.rtts.contains(&rtt))));
    true
}

/// When measured flows take another path, and which.
pub fn mobility(data: &[u8]) -> bool {
    let Some(text) = text(data).filter(|text| !names_a_file(text)) else { return false };
    let read = Move::parse("--move", text, None, false, Path::new("."));
    let Some(Written { value, .. }) = explained(read) else { return false };
    let Some(moved) = value else { return true };
    assert!(moved.at <= Duration::from_millis(1_000_000) && moved.link.rtt > Duration::ZERO);
    true
}

/// What measured flows carry.
pub fn application(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let Some(Written { value, .. }) = explained(Objects::parse("--application", text)) else { return false };
    let Some(application) = value else { return true };
    assert!((1..=u64::from(MAX_OBJECTS)).contains(&application.objects()));
    assert!((1..=1_000_000_000_000).contains(&application.total().get()));
    true
}

/// Web sessions: what is accepted can be drawn from, and its canonical text means the same.
pub fn web(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let read = |text: &str| Sessions::parse("--application", text, Bytes::new(1460));
    let Some(Some(web)) = explained(read(text)) else { return false };
    assert!((0..20).all(|host| web.delay(1, host) <= web.longest_delay));
    let size = Workload::Sessions(web);
    assert!(size.draw(20, 1).iter().all(|size| *size >= web.payload) && size.mean() > 0.0);
    assert_eq!(read(&web.to_string()), Ok(Some(web)));
    true
}

/// The size of a transfer.
pub fn size(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let Some(Written { value, .. }) = explained(TransferSize::parse("--size", text)) else { return false };
    let (least, most) = match value {
        TransferSize::Fixed(size) => (size, size),
        TransferSize::Pareto(sizes) => (sizes.smallest, sizes.largest),
    };
    assert!(Bytes::ZERO < least && least <= most && most <= Bytes::new(1_000_000_000_000));
    assert!(Workload::Transfer(value).draw(20, 1).iter().all(|size| (least..=most).contains(size)));
    let mean = value.mean();
    assert!(mean >= least.get() as f64 * 0.999 && mean <= most.get() as f64 * 1.001, "{mean}");
    true
}

/// A transport's spec.
pub fn transport(data: &[u8]) -> bool {
    let Some(text) = text(data) else { return false };
    let Some(Transport { profile, .. }) = explained(Transport::parse("--transport", text)) else { return false };
    let expected = if names::is_same(named(text), "model-tcp") { Protocol::Tcp } else { Protocol::Quic };
    assert_eq!(profile.protocol, expected);
    assert!(profile.payload > 0 && profile.segment > 0 && profile.initial_window > 0);
    assert_eq!(profile.startup.validate(), Ok(()));
    assert_eq!(profile.avoidance.validate(), Ok(()));
    let written = toml::to_string(&*profile).expect("a profile can be written");
    assert_eq!(toml::from_str::<Profile>(&written).as_ref(), Ok(&*profile));
    true
}

/// A link's spec with every key written out.
fn spelled(link: &Link) -> String {
    let mut keys = vec![
        format!("rate={},rtt={},buffer={}", link.rate, link.rtt, link.buffer),
        format!("up_rate={},up_buffer={}", link.up_rate, link.up_buffer),
        format!("access_rate={},access_delay={},peak={}", link.access_rate, link.access_delay, link.peak),
        format!("hops={},counts={}", link.hops, if link.counts_in_service { "system" } else { "waiting" }),
    ];
    keys.extend(link.up_aggregation.map(|time| format!("up_aggregation={time}")));
    keys.extend(link.loss.map(|model| match model {
        LossModel::Independent { probability } => format!("loss={probability}"),
        LossModel::GilbertElliott { mean_good, mean_bad, probability_bad } => {
            format!("loss=gilbert/{mean_good}/{mean_bad}/{probability_bad}")
        }
    }));
    keys.extend(match link.cross {
        Cross::All => None,
        Cross::Each => Some("cross=each".to_owned()),
        Cross::Hop(hop) => Some(format!("cross={}", hop + 1)),
    });
    keys.extend(link.varies.rate.map(|variation| match variation {
        Variation::Steps { spread, every } => format!("rate_steps={spread}/{every}"),
        Variation::Fading { deviation, memory } => format!("rate_varies={deviation}/{memory}"),
    }));
    keys.extend(link.varies.delay.map(|steps| format!("rtt_steps={}/{}", steps.amplitude, steps.every)));
    keys.extend(link.jitter.map(|jitter| format!("jitter={}/{}", jitter.amplitude, jitter.step)));
    keys.extend(link.access_jitter.map(|jitter| format!("access_jitter={}/{}", jitter.amplitude, jitter.step)));
    keys.extend(link.reordering.map(|model| format!("reorder={}/{}", model.probability, model.delay)));
    keys.extend(link.burst.map(|bucket| format!("burst={bucket}")));
    keys.extend(link.policer.map(|bucket| format!("policer={bucket}")));
    keys.extend(link.hint.map(|hint| format!("hint={hint}")));
    keys.extend(link.hint_grid.map(|grid| format!("hint_steps={}", grid.steps_per_decade)));
    // What has no text that could be read again stays as it was written, in whatever way names may be written.
    let as_written = ["q", "scone", "xcp", "pep", "saved", "oracle", "handshake_train"];
    let is_kept = |text: &&str| as_written.iter().any(|name| names::key(text).starts_with(name));
    let written = link.text.split(',').map(str::trim).filter(is_kept);
    keys.extend(written.map(str::to_owned));
    keys.join(",")
}

/// Whether a text may make a parser open a file: which files there are is not what is tested, and some never end.
fn names_a_file(text: &str) -> bool {
    text.contains("trace")
}

/// A link's spec.
pub fn link(data: &[u8]) -> bool {
    let Some(text) = text(data).filter(|text| !names_a_file(text)) else { return false };
    let read = |text: &str| Link::parse("--link", text, Path::new("."));
    let Some(link) = explained(read(text)) else { return false };
    for rate in [link.rate, link.up_rate, link.access_rate, link.peak] {
        assert!(RATES.contains(&rate.bits_per_sec()), "{rate}");
    }
    assert!(link.rtt > Duration::ZERO && (1..=64).contains(&link.hops));
    link.hop(&QueueConfig::defaults().remove(0));
    assert!(link.in_run(1).carry(Timestamp::ZERO, Bytes::new(1)) > Timestamp::ZERO);
    link.resolved();
    let again = explained(read(&spelled(&link))).expect("a link that was spelled out can be read");
    let again =
        Link { text: link.text.clone(), stands_for: link.stands_for.clone(), technology: link.technology, ..again };
    assert_eq!(again, link);
    true
}

/// A scenario file.
pub fn scenario(data: &[u8]) -> bool {
    let Some(text) = text(data).filter(|text| !names_a_file(text)) else { return false };
    let Ok(scenario) = toml::from_str::<Scenario>(text) else { return false };
    let Some(plan) = explained(scenario.plan(Path::new("."))) else { return false };
    let cells = plan.cells();
    assert!(!cells.is_empty());
    for cell in cells.iter().take(100) {
        assert_eq!(plan.cell(&plan.id(cell)).as_ref(), Some(cell), "every cell has a name of its own");
    }
    // The manifest keeps the scenario in this form, and single runs are replayed from it.
    let written = toml::to_string(&scenario).expect("a scenario can be written");
    assert_eq!(toml::from_str::<Scenario>(&written).as_ref(), Ok(&scenario));
    assert_eq!(scenario.plan(Path::new(".")).as_ref(), Ok(&plan));
    true
}
