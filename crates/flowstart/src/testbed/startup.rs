//! How startup goes in the kernel's TCP. Nobody is told when it ends, so the socket is looked at until ssthresh is
//! finite.
//!
//! A scheme may go on through a recovery that has lowered ssthresh; its startup counts as ended when that fell. Why it
//! ended the scheme has counted, and for the kernel's own slow start the counters of its HyStart.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

#[cfg(feature = "tcp")]
use flowstart_bpf::port;
use flowstart_core::event::ExitReason;
use flowstart_core::units::Bytes;
use flowstart_emu::dumbbell::Dumbbell;

use super::tcp_info::{State, TcpInfo};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// Counters of HyStart's exits (`LINUX_MIB_TCPHYSTART...`), and what each means.
const HYSTART: [(&str, ExitReason); 2] =
    [("TCPHystartTrainDetect", ExitReason::AckTrain), ("TCPHystartDelayDetect", ExitReason::Delay)];

/// Startup of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Startup {
    /// Most bytes in flight until it ended.
    pub(super) in_flight: Bytes,
    /// Largest cwnd until then.
    pub(super) reached: Bytes,
    /// How it ended; `None`: it did not.
    pub(super) end: Option<End>,
}

/// The first look at which ssthresh was finite.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// When.
    pub(super) at: Instant,
    /// What congestion avoidance begins with.
    pub(super) cwnd: Bytes,
    state: State,
}

impl Startup {
    /// Looks until startup ends, or the other end of this channel is gone.
    ///
    /// # Errors
    ///
    /// The socket tells nothing, or not all of it.
    pub(super) fn watch(socket: &impl AsFd, over: &Receiver<()>) -> io::Result<Self> {
        let mut seen = Self::default();
        loop {
            let info = TcpInfo::of(socket)?;
            seen.look(&info, Instant::now()).ok_or(io::ErrorKind::Unsupported)?;
            if seen.end.is_some() || over.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                return Ok(seen);
            }
        }
    }

    fn look(&mut self, info: &TcpInfo, now: Instant) -> Option<()> {
        self.in_flight = self.in_flight.max(info.in_flight()?);
        let (cwnd, ssthresh) = (info.cwnd()?, info.ssthresh()?);
        let Some(ssthresh) = ssthresh else {
            self.reached = self.reached.max(cwnd);
            return Some(());
        };
        let state = info.state()?;
        // A reduction takes its time to get there (RFC 6937).
        let cwnd = if state.is_reducing() { ssthresh } else { cwnd };
        self.reached = self.reached.max(cwnd);
        self.end = Some(End { at: now, cwnd, state });
        Some(())
    }
}

/// What is counted of exits: those of a scheme since it was loaded, and HyStart's in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exits {
    of_scheme: BTreeMap<&'static str, u64>,
    /// Connections whose start the scheme left to the kernel.
    fell_back: u64,
    of_hystart: [u64; HYSTART.len()],
}

impl Exits {
    /// Those so far.
    pub(super) fn now(scheme: &str, dumbbell: &Dumbbell) -> Result<Self, String> {
        let file = "/proc/thread-self/net/netstat";
        let counters = dumbbell.servers.within(|| fs::read_to_string(file));
        let counters = counters.map_err(|error| format!("{file}: {error}"))?;
        let of_hystart = HYSTART.map(|(name, _)| counter(&counters, name).unwrap_or(0));
        let (of_scheme, fell_back) = of_scheme(scheme)?;
        Ok(Self { of_scheme, fell_back, of_hystart })
    }

    /// Whether the scheme has left a start to the kernel since `before`.
    pub(super) fn has_fallen_back(&self, before: &Self) -> bool {
        self.fell_back > before.fell_back
    }

    /// Why a startup ended that is all that has ended since `before`.
    pub(super) fn reason(&self, before: &Self, end: &End) -> ExitReason {
        let earlier = |reason| before.of_scheme.get(reason).copied().unwrap_or(0);
        let told = self.of_scheme.iter().map(|(reason, count)| (*reason, count.saturating_sub(earlier(reason))));
        let told: Vec<_> = told.filter(|(_, count)| *count > 0).collect();
        let by_hystart = HYSTART.iter().zip(self.of_hystart.iter().zip(before.of_hystart));
        let by_hystart = by_hystart.filter(|(_, (now, before))| **now > *before).map(|((_, reason), _)| *reason);
        let by_hystart: Vec<_> = by_hystart.collect();
        let unknown = ExitReason::Other("unknown");
        match (told.as_slice(), end.state) {
            ([(reason, 1)], _) => ExitReason::named(reason).unwrap_or(ExitReason::Other(reason)),
            // Others on this host have the scheme too.
            ([_, ..], _) => unknown,
            ([], State::Recovery) => ExitReason::Loss,
            ([], State::Loss) => ExitReason::Timeout,
            ([], State::Reduced) => ExitReason::Ecn,
            // Where both have counted, another slow start has ended since.
            ([], State::Open) => match by_hystart.as_slice() {
                [only] => *only,
                _ => unknown,
            },
        }
    }
}

/// A counter of `TcpExt` in what `/proc/net/netstat` says: a line of names, and one of numbers.
fn counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:")).map(str::split_whitespace);
    let (mut names, mut numbers) = (lines.next()?, lines.next()?);
    numbers.nth(names.position(|one| one == name)?)?.parse().ok()
}

/// How often startups of a loaded scheme have ended, by reason, and how many it left to the kernel; nothing of the
/// kernel's own, and of what `tcp load` has not loaded.
#[cfg(feature = "tcp")]
fn of_scheme(scheme: &str) -> Result<(BTreeMap<&'static str, u64>, u64), String> {
    let Ok(port) = port::find(scheme) else { return Ok(Default::default()) };
    let statuses = flowstart_bpf::kernel::status().map_err(super::words)?;
    let found = statuses.loaded.into_iter().find(|status| status.port == port);
    Ok(found.map(|status| (status.counts.exits.into_iter().collect(), status.counts.fell_back)).unwrap_or_default())
}

/// As above, for a build that cannot look.
#[cfg(not(feature = "tcp"))]
#[expect(clippy::unnecessary_wraps, reason = "a build that looks may fail")]
fn of_scheme(_scheme: &str) -> Result<(BTreeMap<&'static str, u64>, u64), String> {
    Ok((BTreeMap::new(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(state: State) -> End {
        End { at: Instant::now(), cwnd: Bytes::ZERO, state }
    }

    #[test]
    fn counters_are_found_by_name() {
        let text = "IpExt: A B\nIpExt: 1 2\nTcpExt: SyncookiesSent TCPHystartTrainDetect\nTcpExt: 7 9\n";
        assert_eq!(counter(text, "TCPHystartTrainDetect"), Some(9));
        assert_eq!((counter(text, "A"), counter("TcpExt: A B\nTcpExt: 1\n", "B")), (None, None));
    }

    #[test]
    fn a_scheme_knows_why_and_otherwise_the_state_tells() {
        let none = Exits::default();
        let one = |reason, count| Exits { of_scheme: [(reason, count)].into(), ..Exits::default() };
        let why = |after: &Exits, before: &Exits, state| after.reason(before, &end(state)).name();
        // The state says loss, but the scheme was over before.
        assert_eq!(why(&one("delay", 5), &one("delay", 4), State::Recovery), "delay");
        assert_eq!(why(&one("idle", 1), &none, State::Open), "idle");
        // Two connections of this host ended theirs.
        assert_eq!(why(&one("delay", 5), &one("delay", 3), State::Recovery), "unknown");
        assert_eq!(why(&one("delay", 5), &one("delay", 5), State::Recovery), "loss");
        assert_eq!(why(&none, &none, State::Loss), "timeout");
        assert_eq!(why(&none, &none, State::Reduced), "ecn");
        let trained = Exits { of_hystart: [1, 0], ..Exits::default() };
        assert_eq!(why(&trained, &none, State::Open), "ack-train");
        assert_eq!(why(&Exits { of_hystart: [1, 3], ..none.clone() }, &trained, State::Open), "delay");
        assert_eq!(why(&Exits { of_hystart: [1, 1], ..none.clone() }, &none, State::Open), "unknown");
        // It was loaded again meanwhile.
        assert_eq!(why(&one("delay", 1), &one("delay", 3), State::Recovery), "loss");
        assert_eq!(why(&trained, &trained, State::Open), "unknown");
    }
}
