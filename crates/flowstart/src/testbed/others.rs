//! Others beside a measured transfer: established flows of the kernel's TCP, from servers to clients. Where the
//! transport's profile paces, so does the kernel, at the same multiple of cwnd / SRTT. Without that its slow start may
//! overflow a queue in which the profile's stays, and an avoidance that then grows by a segment a round trip has not
//! filled the link when the newcomer comes.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::Pacing;
use flowstart_core::time::Timestamp;
use flowstart_emu::dumbbell::{Dumbbell, OTHERS, SERVERS};
use flowstart_lab::run::epochs::{self, Epochs};
use flowstart_lab::spec::competitor::Competitor;
use flowstart_lab::study::plan::{Plan, Setting};

use nix::sys::socket::setsockopt;
use nix::{libc, setsockopt_impl, sockopt_impl};

use super::tcp::{available, listen, prepare};
use super::tcp_info::{State, TcpInfo};
use super::words;
use crate::quic::std_time;

/// How often the first flow is looked at: a reduction of its window takes an RTT.
const LOOK: Duration = Duration::from_millis(1);
/// How long nobody looks at whether the work is to end.
const NAP: Duration = Duration::from_millis(50);
/// Longest time of a handshake, beside flows that fill the queue.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// Bytes that are written or read at a time.
const BLOCK: usize = 1 << 16;

/// Flows that send until it is over.
#[derive(Debug, Default)]
pub(super) struct Others {
    is_over: AtomicBool,
    /// Payload bytes that their clients have read.
    delivered: AtomicU64,
    /// The server's socket of the first of them.
    first: Mutex<Option<TcpStream>>,
    /// Why one of them failed.
    problem: Mutex<Option<String>>,
    /// Whether they pace.
    are_paced: bool,
}

sockopt_impl!(
    /// The highest rate of a socket in bytes per second (socket(7)). With any bound TCP paces by itself.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64
);

/// A bound that bounds nothing; the largest number stands for none.
const UNBOUNDED: u64 = u64::MAX - 1;

/// Gives TCP of servers the pacing of a profile, for the sockets that pace.
fn prepare_pacing(pacing: &Pacing, dumbbell: &Dumbbell) -> Result<(), String> {
    for (phase, gain) in [("ss", pacing.startup_gain), ("ca", pacing.avoidance_gain)] {
        let (name, percent) = (format!("/proc/sys/net/ipv4/tcp_pacing_{phase}_ratio"), (gain * 100.0).round());
        let given = dumbbell.servers.within(|| fs::write(&name, percent.to_string()));
        given.map_err(|error| format!("pacing at {percent} % of cwnd / SRTT ({name}): {error}"))?;
    }
    Ok(())
}

/// Ends them when it is dropped.
struct Ending<'a>(&'a Others);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Refuses others that this kernel does not have.
pub(super) fn check(plan: &Plan, setting: Setting) -> Result<(), String> {
    let competitor = &plan.competitors[setting.competitor];
    let Competitor::Bulk { avoidance, .. } = competitor.on(setting.transport) else { return Ok(()) };
    let known = available();
    if known.iter().any(|one| one == avoidance.name()) {
        return Ok(());
    }
    let known: Vec<&str> =
        AvoidanceConfig::NAMES.iter().copied().filter(|name| known.iter().any(|one| one == name)).collect();
    Err(format!(
        "--competitor `{}`: this kernel has no {}; with world sockets allowed is none, or {}",
        competitor.text,
        avoidance.name(),
        known.join(", ")
    ))
}

/// Does this beside the others of a setting, if it has any, when they are established.
pub(super) fn beside<T>(
    plan: &Plan,
    setting: Setting,
    rep: u32,
    dumbbell: &Dumbbell,
    work: impl FnOnce(Option<&Others>) -> Result<T, String>,
) -> Result<T, String> {
    let competitor = plan.competitors[setting.competitor].on(setting.transport);
    let Competitor::Bulk { count, avoidance, .. } = competitor else { return work(None) };
    let profile = &plan.transports[setting.transport].profile;
    prepare(profile, dumbbell)?;
    profile.pacing.as_ref().map_or(Ok(()), |pacing| prepare_pacing(pacing, dumbbell))?;
    let listener = listen(dumbbell, OTHERS, avoidance.name(), NAP)?;
    let others = Others { are_paced: profile.pacing.is_some(), ..Others::default() };
    let starts = epochs::starts(&plan.links[setting.link], plan.run_seed(rep), *count);
    let others = &others;
    thread::scope(|scope| {
        let _ending = Ending(others);
        let began = Instant::now();
        let thread = || thread::Builder::new().name("others".into());
        for start in starts.map(std_time) {
            thread().spawn_scoped(scope, || others.note(others.serve(&listener))).map_err(words)?;
            let after = start.saturating_sub(began.elapsed());
            thread().spawn_scoped(scope, move || others.note(others.get(dumbbell, after))).map_err(words)?;
        }
        others.wait_for_epochs(began, avoidance, plan.phase(rep))?;
        let done = work(Some(others))?;
        others.problem()?;
        Ok(done)
    })
}

impl Others {
    /// Payload bytes that they have received so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Keeps why a flow failed, unless they have all ended.
    fn note(&self, ended: io::Result<()>) {
        if let Err(error) = ended
            && !self.is_over()
        {
            self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
        }
    }

    /// Why one of them failed.
    fn problem(&self) -> Result<(), String> {
        match &*self.problem.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(problem) => Err(format!("a flow of the competitor: {problem}")),
            None => Ok(()),
        }
    }

    /// One of them: sends until it is over.
    fn serve(&self, listener: &TcpListener) -> io::Result<()> {
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if is_patience(&error) && !self.is_over() => {}
                Err(error) => return Err(error),
            }
        };
        stream.set_write_timeout(Some(NAP))?;
        if self.are_paced {
            setsockopt(&stream, MaxPacingRate, &UNBOUNDED)?;
        }
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stream.try_clone()?);
        let block = vec![0; BLOCK];
        self.until_over(|| stream.write(&block).map(drop))
    }

    /// The other side of one, which begins after this time.
    fn get(&self, dumbbell: &Dumbbell, after: Duration) -> io::Result<()> {
        thread::sleep(after);
        let connect = || TcpStream::connect_timeout(&(SERVERS, OTHERS).into(), HANDSHAKE);
        let mut stream = dumbbell.clients.within(connect)?;
        stream.set_read_timeout(Some(NAP))?;
        let mut block = vec![0; BLOCK];
        self.until_over(|| match stream.read(&mut block)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.delivered.fetch_add(length as u64, Ordering::Relaxed);
                Ok(())
            }
        })
    }

    fn until_over(&self, mut work: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        while !self.is_over() {
            match work() {
                Err(error) if !is_patience(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits until the first of them has completed its epochs, and then to the position `phase` in the next one: as in
    /// the simulator.
    fn wait_for_epochs(&self, began: Instant, avoidance: &AvoidanceConfig, phase: f64) -> Result<(), String> {
        let limit = std_time(epochs::longest_in_real_time(avoidance));
        let now = || Timestamp::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let mut epochs = Epochs::new(now());
        let mut was_reducing = false;
        while !epochs.are_enough() {
            if began.elapsed() > limit {
                return self.problem();
            }
            thread::sleep(LOOK);
            self.problem()?;
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(info) = first.as_ref().map(TcpInfo::of).transpose().map_err(words)? else { continue };
            let is_reducing = info.state().is_some_and(State::is_reducing);
            if is_reducing && !was_reducing {
                epochs.cut(now(), info.rtt().unwrap_or_default());
            }
            was_reducing = is_reducing;
        }
        thread::sleep(std_time(epochs.until(phase)));
        self.problem()
    }
}

/// Whether a socket has only waited for so long as it was to.
fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
