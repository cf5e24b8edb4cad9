//! TCP of Linux: CUBIC with `HyStart`, Reno and BBR, alone on a link and beside an established flow.
//!
//! `validation/linux/README.md` says how the reference was made and why cells miss.

use std::path::Path;
use std::sync::Arc;

use flowstart_core::aqm::QueueLimit;
use flowstart_core::avoidance::{AvoidanceConfig, bbr, reno};
use flowstart_core::rng::Substream;
use flowstart_core::startup::{StartupConfig, slow_start};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::link::LinkConfig;
use flowstart_sim::network::Route;
use flowstart_sim::traffic::Pattern;
use flowstart_sim::transport::profile::{Profile, ReceiveBuffer};
use flowstart_sim::world::{FlowConfig, World};

use super::reference::{Row, Table};
use super::{Checker, Verdict};
use crate::statistics::median;

/// Simulated time after which a transfer has failed.
const LIMIT: Duration = Duration::from_millis(1_000_000);
/// How often the sender's window was sampled.
const SAMPLING: Duration = Duration::from_millis(2);
/// What the hosts of the measurement take: a server that starts a thread for each connection. It is the same in all cells without
/// a loss, within 0.5 ms, and part of the completion time, which begins with `connect`.
const HOST_TIME: Duration = Duration::from_micros(1200);
/// How long the established flow has been there, and the pause between newcomers.
const WARM_UP: Duration = Duration::from_millis(12_000);
const PAUSE_S: std::ops::Range<f64> = 2.3..4.3;
/// The way back has no limit: so fast that an acknowledgement takes less than a nanosecond.
const UNLIMITED: Rate = Rate::from_mbit(1_000_000);

/// Bands: completion time by this share or by the kernel's own spread, retransmissions and the window at the exit by this
/// many packets and this share.
const FCT_BAND: f64 = 0.01;
const RETRANSMISSIONS_BAND: f64 = 3.0;
const EXIT_BAND: f64 = 4.0;
const SHARE_BAND: f64 = 0.05;

const ALONE: [(&str, &str); 1] = [("alone.csv", include_str!("../../../../validation/linux/alone.csv"))];
const BESIDE: [(&str, &str); 1] = [("beside.csv", include_str!("../../../../validation/linux/beside.csv"))];

/// `linux-startup`: completion times, retransmissions and windows at the exit of transfers alone on a link; beside an
/// established flow medians and ranges in the note.
pub(super) fn startup(reference: Option<&Path>) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let mut closest = Closeness::default();
    let mut missing: Vec<String> = Vec::new();
    for cell in cells(reference)? {
        let name = cell.name();
        match cell.path.flow(&cell.congestion_control, &cell.receive_window) {
            Ok(flow) => {
                checker.declare(cell.comparisons());
                cell.compare(&cell.path.alone(&flow, cell.size), &mut checker, &mut closest);
            }
            Err(reason) => {
                checker.declare(1);
                checker.check(&name, "fct_ms", f64::NAN, cell.median(|run| run.fct_ms), false, &reason);
                if !missing.contains(&reason) {
                    missing.push(reason);
                }
            }
        }
    }
    let mut note = closest.note();
    for reason in missing {
        note.push_str(&format!("; {reason}"));
    }
    if reference.is_none() {
        note.push_str(&beside()?);
    }
    Ok(checker.verdict("linux-startup", note))
}

/// How far completion times are from the kernel's.
#[derive(Clone, Copy, Debug, Default)]
struct Closeness {
    cells: usize,
    within: usize,
    largest: f64,
}

impl Closeness {
    fn note(self) -> String {
        let Self { cells, within, largest } = self;
        format!("{within} of {cells} completion times inside, largest difference {:.2} %", largest * 100.0)
    }
}

/// The link and what is in front of it.
#[derive(Clone, Debug, PartialEq)]
struct Link {
    label: String,
    rate_bps: u64,
    rtt_us: u64,
    limit_packets: u64,
}

/// One transfer of the kernel's.
#[derive(Clone, Copy, Debug)]
struct Run {
    fct_ms: f64,
    retransmitted: f64,
    exit_cwnd: f64,
}

/// The repetitions of a transfer.
#[derive(Clone, Debug)]
struct Cell {
    path: Link,
    congestion_control: String,
    receive_window: String,
    size: Bytes,
    runs: Vec<Run>,
}

/// A transfer of ours.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    fct_ms: f64,
    retransmitted: f64,
    exit_cwnd: f64,
}

/// A profile with the startup scheme and congestion avoidance that run on it.
#[derive(Clone, Debug)]
struct Flow {
    profile: Arc<Profile>,
    startup: StartupConfig,
    avoidance: AvoidanceConfig,
}

/// The rows of the reference, the repetitions of a cell together.
fn cells(reference: Option<&Path>) -> Result<Vec<Cell>, String> {
    let mut cells: Vec<Cell> = Vec::new();
    for table in Table::load(reference, &ALONE)? {
        for row in table.rows() {
            let path = Link::read(&row)?;
            let (cc, window) = (row.text("cc")?, row.text("receive_window")?);
            let size = Bytes::new(row.number_in("size_bytes", 1.0..=1e12)? as u64);
            let run = Run {
                fct_ms: measured(&row, "fct_ms")?,
                retransmitted: measured(&row, "retransmitted")?,
                exit_cwnd: measured(&row, "exit_cwnd")?,
            };
            let known = cells.iter_mut().find(|cell| {
                cell.path == path && cell.congestion_control == cc && cell.receive_window == window && cell.size == size
            });
            match known {
                Some(cell) => cell.runs.push(run),
                None => cells.push(Cell {
                    path,
                    congestion_control: cc.to_owned(),
                    receive_window: window.to_owned(),
                    size,
                    runs: vec![run],
                }),
            }
        }
    }
    Ok(cells)
}

/// A number that a run may lack: an empty field is NaN.
fn measured(row: &Row<'_>, column: &str) -> Result<f64, String> {
    let text = row.text(column)?;
    if text.is_empty() || text.eq_ignore_ascii_case("nan") { Ok(f64::NAN) } else { row.number(column) }
}

impl Link {
    fn read(row: &Row<'_>) -> Result<Self, String> {
        Ok(Self {
            label: row.optional("link").unwrap_or_default().to_owned(),
            rate_bps: row.number_in("rate_bps", 1e3..=1e12)? as u64,
            rtt_us: (row.number_in("rtt_ms", 0.1..=1e5)? * 1e3).round() as u64,
            limit_packets: row.number_in("limit_packets", 1.0..=1e9)? as u64,
        })
    }

    /// The link as it was built: its name need not be known.
    fn name(&self) -> String {
        let Self { label, rate_bps, rtt_us, limit_packets } = self;
        let (rate, rtt) = (*rate_bps as f64 / 1e6, *rtt_us as f64 / 1e3);
        let numbers = format!("{rate} Mbit/s {rtt} ms {limit_packets} packets");
        if label.is_empty() { numbers } else { format!("{label} ({numbers})") }
    }

    /// What stands for a sender and receiver of the kernel's; the error says what is not modelled.
    fn flow(&self, congestion_control: &str, receive_window: &str) -> Result<Flow, String> {
        let known = ReceiveBuffer::NAMED.iter().find(|(name, _)| *name == receive_window);
        let (_, buffer) = known.ok_or_else(|| format!("receive_window {receive_window} is not modelled"))?;
        let profile = Profile { receive_buffer: Some(*buffer), ..Profile::tcp_linux() };
        let (startup, avoidance) = match congestion_control {
            "cubic" => (profile.startup.clone(), profile.avoidance.clone()),
            "reno" => {
                let whole_segments = reno::Config { whole_segments: true, whole_cuts: true, ..reno::Config::default() };
                (StartupConfig::SlowStart(slow_start::Config::default()), AvoidanceConfig::Reno(whole_segments))
            }
            "bbr" => {
                let version_1 = bbr::Config { version: bbr::Version::One, ..bbr::Config::default() };
                (StartupConfig::SlowStart(slow_start::Config::default()), AvoidanceConfig::Bbr(version_1))
            }
            _ => return Err(format!("cc {congestion_control} is not modelled")),
        };
        Ok(Flow { profile: Arc::new(profile), startup, avoidance })
    }

    /// Both directions in a new world.
    fn connect(&self, world: &mut World) -> Route {
        let delay = Duration::from_micros(self.rtt_us) / 2;
        let limit = QueueLimit { packets: Some(self.limit_packets), bytes: None, counts_in_service: false };
        let forward =
            world.add_link(&LinkConfig { limit, ..LinkConfig::new(Rate::from_bits_per_sec(self.rate_bps), delay) });
        let back = world.add_link(&LinkConfig::new(UNLIMITED, delay));
        Route { forward: vec![forward], back: vec![back] }
    }

    /// A transfer by itself. The window is looked at as the kernel's was: from the launch on, every 2 ms.
    fn alone(&self, flow: &Flow, size: Bytes) -> Transfer {
        let mut world = World::new(1);
        let route = self.connect(&mut world);
        let flow = world.add_flow(flow.at(Timestamp::ZERO, Pattern::Transfer(size), &route));
        let limit = Timestamp::ZERO + LIMIT;
        let _ = world.run_while(limit, |world| world.record(flow).first_data_sent.is_none());
        let mut exit_cwnd = f64::NAN;
        while exit_cwnd.is_nan() && world.record(flow).completed.is_none() && world.now() < limit {
            world.run_until(world.now() + SAMPLING);
            if world.record(flow).exit.is_some() {
                exit_cwnd = world.window(flow).map_or(f64::NAN, |(_, cwnd, _)| cwnd.get() as f64);
            }
        }
        // A transfer that does not end has no completion time, which no band contains.
        let _ = world.run_flow(flow, limit);
        let record = world.record(flow);
        let segment = f64::from(Profile::tcp_linux().segment);
        Transfer {
            fct_ms: completion_ms(&world, flow),
            retransmitted: record.retransmissions as f64,
            exit_cwnd: (exit_cwnd / segment).floor(),
        }
    }

    /// Transfers of each size in turn beside `bulk`, with pauses in between; their completion times by size.
    fn beside(&self, bulk: &Flow, newcomer: &Flow, sizes: &[(Bytes, usize)]) -> Vec<Vec<f64>> {
        let mut world = World::new(1);
        let mut rng = Substream::new(1, "pauses", 0);
        let route = self.connect(&mut world);
        world.add_flow(bulk.at(Timestamp::ZERO, Pattern::Bulk, &route));
        world.run_until(Timestamp::ZERO + WARM_UP);
        let mut times = Vec::new();
        for (size, count) in sizes {
            let mut of_size = Vec::new();
            for _ in 0..*count {
                let flow = world.add_flow(newcomer.at(world.now(), Pattern::Transfer(*size), &route));
                let _ = world.run_flow(flow, world.now() + LIMIT);
                of_size.push(completion_ms(&world, flow));
                let pause = PAUSE_S.start + rng.uniform() * (PAUSE_S.end - PAUSE_S.start);
                world.run_until(world.now() + Duration::from_secs(pause));
            }
            times.push(of_size);
        }
        times
    }
}

impl Flow {
    fn at(&self, start: Timestamp, pattern: Pattern, route: &Route) -> FlowConfig {
        FlowConfig {
            startup: self.startup.clone(),
            avoidance: self.avoidance.clone(),
            start,
            think_time: HOST_TIME,
            ..FlowConfig::new(self.profile.clone(), pattern, route.clone())
        }
    }
}

impl Cell {
    fn name(&self) -> String {
        format!("{} {} {} {}", self.path.name(), self.congestion_control, self.receive_window, self.size)
    }

    /// The median of the runs that have this number; NaN when most have none.
    fn median(&self, number: impl Fn(&Run) -> f64) -> f64 {
        let known: Vec<f64> = self.runs.iter().map(number).filter(|value| value.is_finite()).collect();
        if known.len() * 2 > self.runs.len() { median(&known).unwrap_or(f64::NAN) } else { f64::NAN }
    }

    /// How many numbers are compared: completion time, retransmissions and, where the kernel left slow start, the window then.
    fn comparisons(&self) -> usize {
        2 + usize::from(self.median(|run| run.exit_cwnd).is_finite())
    }

    fn compare(&self, ours: &Transfer, checker: &mut Checker, closeness: &mut Closeness) {
        let name = self.name();
        let fct = self.median(|run| run.fct_ms);
        let finite = || self.runs.iter().map(|run| run.fct_ms).filter(|fct| fct.is_finite());
        let spread = (finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min)) / fct;
        let (off, tolerance) = ((ours.fct_ms / fct - 1.0).abs(), spread.max(FCT_BAND));
        let inside = off <= tolerance;
        checker.check(&name, "fct_ms", ours.fct_ms, fct, inside, format!("within {:.2} %", tolerance * 100.0));
        closeness.cells += 1;
        closeness.within += usize::from(inside);
        closeness.largest = closeness.largest.max(off);
        let mut packets = |metric: &str, ours: f64, reference: f64, least: f64| {
            let inside = (ours - reference).abs() <= least + SHARE_BAND * reference;
            checker.check(
                &name,
                metric,
                ours,
                reference,
                inside,
                format!("within {least} and {} %", SHARE_BAND * 100.0),
            );
        };
        packets("retransmitted", ours.retransmitted, self.median(|run| run.retransmitted), RETRANSMISSIONS_BAND);
        let exit = self.median(|run| run.exit_cwnd);
        if exit.is_finite() {
            packets("exit_cwnd", ours.exit_cwnd, exit, EXIT_BAND);
        }
    }
}

fn completion_ms(world: &World, flow: u32) -> f64 {
    let record = world.record(flow);
    match (record.started, record.completed) {
        (Some(started), Some(completed)) => completed.since(started).as_secs() * 1e3,
        _ => f64::NAN,
    }
}

/// Newcomers of one kind beside one kind of established flow: the kernel's completion times by size.
struct Newcomers {
    path: Link,
    bulk: String,
    congestion_control: String,
    sizes: Vec<(Bytes, Vec<f64>)>,
}

/// Newcomers beside an established flow, for the note: there are eight of a kind, which scatter too much for a band.
fn beside() -> Result<String, String> {
    let mut groups: Vec<Newcomers> = Vec::new();
    for table in Table::load(None, &BESIDE)? {
        for row in table.rows() {
            let path = Link::read(&row)?;
            let (bulk, congestion_control) = (row.text("bulk_cc")?.to_owned(), row.text("cc")?.to_owned());
            let size = Bytes::new(row.number_in("size_bytes", 1.0..=1e12)? as u64);
            let fct = row.number("fct_ms")?;
            let known = groups.iter().position(|group| {
                group.path == path && group.bulk == bulk && group.congestion_control == congestion_control
            });
            let group = known.unwrap_or_else(|| {
                groups.push(Newcomers { path, bulk, congestion_control, sizes: Vec::new() });
                groups.len() - 1
            });
            let sizes = &mut groups[group].sizes;
            match sizes.iter_mut().find(|(known, _)| *known == size) {
                Some((_, times)) => times.push(fct),
                None => sizes.push((size, vec![fct])),
            }
        }
    }
    let mut note = String::new();
    for Newcomers { path, bulk, congestion_control, sizes } in &groups {
        let flows = path.flow(bulk, "open").and_then(|bulk| Ok((bulk, path.flow(congestion_control, "open")?)));
        let Ok((established, newcomer)) = flows else { continue };
        let counts: Vec<_> = sizes.iter().map(|(size, times)| (*size, times.len())).collect();
        for ((size, theirs), ours) in sizes.iter().zip(path.beside(&established, &newcomer, &counts)) {
            note.push_str(&format!("; {size} beside {bulk}: {}, kernel {}", summary(&ours), summary(theirs)));
        }
    }
    Ok(note)
}

/// Median and range in ms.
fn summary(times: &[f64]) -> String {
    let (low, high) = times.iter().fold((f64::MAX, f64::MIN), |(low, high), time| (low.min(*time), high.max(*time)));
    format!("{:.0} ({low:.0} to {high:.0}) ms", median(times).unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(text: &str) -> Result<Verdict, String> {
        let file = std::env::temp_dir().join(format!("flowstart-linux-{}-{}.csv", std::process::id(), text.len()));
        std::fs::write(&file, text).expect("a temporary file");
        let verdict = startup(Some(&file));
        std::fs::remove_file(&file).expect("the file is ours");
        verdict
    }

    const HEADER: &str = "link,rate_bps,rtt_ms,limit_packets,cc,receive_window,size_bytes,rep,fct_ms,retransmitted,exit_s,exit_cwnd,max_cwnd\n";

    #[test]
    fn links_of_any_name_are_built_from_their_numbers() {
        // Two RTTs, and one packet of 1514 bytes at 100 Mbit/s.
        let verdict = validate(&format!("{HEADER}x,100000000,40.0,100,reno,open,1448,0,81.32,0,,,10\n")).unwrap();
        assert_eq!((verdict.cells, verdict.misses.len()), (2, 0), "{:#?}", verdict.misses);
        assert!(validate("link,rate_bps\nx,1\n").unwrap_err().contains("rate_bps is 1"));
    }

    #[test]
    fn what_cannot_be_compared_is_a_miss() {
        for row in [
            "x,100000000,40.0,100,vegas,open,1448,0,81.32,0,,,10",
            "x,100000000,40.0,100,reno,tiny,1448,0,81.32,0,,,10",
            "x,100000000,40.0,100,reno,open,1448,0,,0,,,10",
            "x,100000000,40.0,100,reno,open,1448,0,NaN,0,,,10",
            "x,100000000,40.0,100,reno,open,1448,0,81.32,,,,10",
            // The kernel has left startup and the model has not.
            "x,100000000,40.0,100,reno,open,1448,0,81.32,0,0.05,10,10",
        ] {
            let verdict = validate(&format!("{HEADER}{row}\n")).unwrap();
            assert_eq!(verdict.misses.len(), 1, "{row}: {:#?}", verdict.misses);
        }
    }

    #[test]
    fn the_spread_of_the_kernel_widens_the_band_of_completion_times() {
        let rows = |times: [f64; 3]| {
            let row = |(rep, fct): (usize, &f64)| format!("x,100000000,40.0,100,reno,open,1448,{rep},{fct},0,,,10\n");
            HEADER.to_owned() + &times.iter().enumerate().map(row).collect::<String>()
        };
        // The median is 2 % more than 81.32: outside 1 %, inside a spread of 3 %.
        assert_eq!(validate(&rows([82.93, 82.95, 82.97])).unwrap().misses.len(), 1);
        assert_eq!(validate(&rows([81.2, 82.95, 83.7])).unwrap().misses.len(), 0);
    }
}
