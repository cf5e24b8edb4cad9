//! Where the knowledge of a path comes from: each source's statement, its age, and what became of it.
//!
//! A host collects statements in [`Sources`], which makes [`PathKnowledge`] of what is believed. At the launch each
//! statement gets its verdict: the launch depends on it, or it does not. So logs can say what a launch was made of, and
//! why the rest was left out.
//!
//! Whether a launch depends on a statement is tried, not declared: without it the scheme would launch otherwise, or
//! wait otherwise ([`StartupState::depends_on`]). Where several state the same, so that each can be left out and not
//! all of them, that counts which the scheme takes: the launch would be another if it stated less. By such trials a
//! scheme also shows what it can use at all ([`StartupConfig::senses`]), so a host that has none of it can refuse it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::event::DecisionLog;
use crate::path::{Concurrent, Hint, PathKnowledge, SavedPath};
use crate::startup::{StartupConfig, StartupState};
use crate::time::{Duration, Timestamp};
use crate::units::{Bytes, Rate};
use crate::window::Window;

/// Statements that are kept of one connection. A source that speaks again replaces what it said before.
const MOST_STATEMENTS: usize = 16;

/// Names of sources in logs and metrics, of all hosts.
pub mod name {
    /// The client's transport parameter, or what a simulated client says.
    pub const HINT: &str = "hint";
    /// The client's `Downlink` and `RTT` headers.
    pub const CLIENT_HINTS: &str = "client-hints";
    /// The host's own store of earlier connections.
    pub const PATH_STORE: &str = "path-store";
    /// What the client brings of an earlier connection.
    pub const PATH_STATE: &str = "path-state";
    /// A capacity oracle.
    pub const ORACLE: &str = "oracle";
    /// The routers of the path, asked by Quick-Start.
    pub const QUICK_START: &str = "quick-start";
    /// The sender's interface.
    pub const INTERFACE: &str = "interface";
    /// The application.
    pub const APPLICATION: &str = "application";
    /// The host's other connections to the same peer.
    pub const CONCURRENT: &str = "concurrent-connections";
    /// Elements of the path, which advise a rate.
    pub const SCONE: &str = "scone";
    /// What the client saw of the dispersion of the handshake.
    pub const HANDSHAKE_TRAIN: &str = "handshake-train";
}

/// A part of [`PathKnowledge`] that a source states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    /// What an earlier connection saved.
    Saved,
    /// The client's hint.
    Hint,
    /// The rate that the application asks for.
    Requested,
    /// The speed of the sender's interface.
    Interface,
    /// The rate that routers approved.
    Approved,
    /// A capacity oracle's answer.
    Oracle,
    /// What concurrent connections leave to this one.
    Concurrent,
    /// The rate that the path advises, which caps a launch and never makes one.
    Advised,
    /// The dispersion of the handshake, as the client reports it.
    Train,
}

impl Known {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Saved,
        Self::Hint,
        Self::Requested,
        Self::Interface,
        Self::Approved,
        Self::Oracle,
        Self::Concurrent,
        Self::Advised,
        Self::Train,
    ];

    /// What it is, in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saved => "an earlier connection",
            Self::Hint => "the client's hint",
            Self::Requested => "the application's rate",
            Self::Interface => "the interface's speed",
            Self::Approved => "the routers' approval",
            Self::Oracle => "an oracle",
            Self::Concurrent => "concurrent connections",
            Self::Advised => "the path's advice",
            Self::Train => "the handshake's train",
        }
    }

    /// What `path` has of it.
    pub fn stated_in(self, path: &PathKnowledge) -> Option<Statement> {
        match self {
            Self::Saved => path.saved.map(Statement::Saved),
            Self::Hint => path.hint.map(Statement::Hint),
            Self::Requested => path.requested_rate.map(Statement::Requested),
            Self::Interface => path.interface_rate.map(Statement::Interface),
            Self::Approved => path.approved_rate.map(Statement::Approved),
            Self::Oracle => path.oracle_rate.map(Statement::Oracle),
            Self::Concurrent => path.concurrent.map(Statement::Concurrent),
            Self::Advised => path.advised_rate.map(Statement::Advised),
            Self::Train => path.train_rate.map(Statement::Train),
        }
    }

    /// Whether `path` has it.
    pub fn is_in(self, path: &PathKnowledge) -> bool {
        self.stated_in(path).is_some()
    }

    /// `path` without it.
    fn forgotten(self, path: &PathKnowledge) -> PathKnowledge {
        let mut path = path.clone();
        match self {
            Self::Saved => path.saved = None,
            Self::Hint => path.hint = None,
            Self::Requested => path.requested_rate = None,
            Self::Interface => path.interface_rate = None,
            Self::Approved => path.approved_rate = None,
            Self::Oracle => path.oracle_rate = None,
            Self::Concurrent => path.concurrent = None,
            Self::Advised => path.advised_rate = None,
            Self::Train => path.train_rate = None,
        }
        path
    }

    /// `path` in which it states half of the rate, and half of the RTT where it states one.
    fn halved(self, path: &PathKnowledge) -> PathKnowledge {
        let mut path = path.clone();
        let half = |rate: &mut Option<Rate>| *rate = rate.map(|rate| rate.scale(0.5));
        match self {
            Self::Saved => {
                path.saved = path.saved.map(|saved| SavedPath { rtt: saved.rtt / 2, cwnd: saved.cwnd / 4, ..saved });
            }
            Self::Hint => path.hint = path.hint.map(|hint| Hint { bandwidth: hint.bandwidth.scale(0.5), ..hint }),
            Self::Requested => half(&mut path.requested_rate),
            Self::Interface => half(&mut path.interface_rate),
            Self::Approved => half(&mut path.approved_rate),
            Self::Oracle => half(&mut path.oracle_rate),
            Self::Concurrent => {
                path.concurrent = path.concurrent.map(|Concurrent { rtt, window }| {
                    let window = Window { cwnd: window.cwnd / 4, ssthresh: window.ssthresh / 4 };
                    Concurrent { rtt: rtt / 2, window }
                });
            }
            Self::Advised => half(&mut path.advised_rate),
            Self::Train => half(&mut path.train_rate),
        }
        path
    }
}

/// What a source states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// What an earlier connection saved.
    Saved(SavedPath),
    /// The client's hint.
    Hint(Hint),
    /// The rate that the application asks for.
    Requested(Rate),
    /// The speed of the sender's interface.
    Interface(Rate),
    /// The rate that routers approved.
    Approved(Rate),
    /// A capacity oracle's answer.
    Oracle(Rate),
    /// What concurrent connections leave to this one.
    Concurrent(Concurrent),
    /// The rate that the path advises.
    Advised(Rate),
    /// The rate at which the client saw the handshake arrive.
    Train(Rate),
}

impl Statement {
    /// Which part of the knowledge it is.
    pub const fn known(&self) -> Known {
        match self {
            Self::Saved(_) => Known::Saved,
            Self::Hint(_) => Known::Hint,
            Self::Requested(_) => Known::Requested,
            Self::Interface(_) => Known::Interface,
            Self::Approved(_) => Known::Approved,
            Self::Oracle(_) => Known::Oracle,
            Self::Concurrent(_) => Known::Concurrent,
            Self::Advised(_) => Known::Advised,
            Self::Train(_) => Known::Train,
        }
    }

    /// The rate that it states; of an earlier connection, the one that it reached.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Self::Saved(saved) => saved.rate(),
            Self::Hint(hint) => Some(hint.bandwidth),
            Self::Concurrent(concurrent) => Rate::from_transfer(concurrent.window.cwnd, concurrent.rtt),
            Self::Requested(rate)
            | Self::Interface(rate)
            | Self::Approved(rate)
            | Self::Oracle(rate)
            | Self::Advised(rate)
            | Self::Train(rate) => Some(*rate),
        }
    }

    fn put(self, path: &mut PathKnowledge) {
        match self {
            Self::Saved(saved) => path.saved = Some(saved),
            Self::Hint(hint) => path.hint = Some(hint),
            Self::Requested(rate) => path.requested_rate = Some(rate),
            Self::Interface(rate) => path.interface_rate = Some(rate),
            Self::Approved(rate) => path.approved_rate = Some(rate),
            Self::Oracle(rate) => path.oracle_rate = Some(rate),
            Self::Concurrent(concurrent) => path.concurrent = Some(concurrent),
            Self::Advised(rate) => path.advised_rate = Some(rate),
            Self::Train(rate) => path.train_rate = Some(rate),
        }
    }
}

/// What became of a source's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is believed; the launch has not come yet.
    Believed,
    /// The launch depends on it.
    Used,
    /// It is believed, but the launch would be the same without it.
    Unused,
    /// Another source of the same knowledge is believed.
    Superseded,
    /// It is not believed.
    Refused,
    /// The source has nothing to say of this path.
    Missing,
    /// The source did not answer in time.
    Late,
    /// The source cannot be asked, or answers nonsense.
    Failed,
}

impl Verdict {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Believed => "believed",
            Self::Used => "used",
            Self::Unused => "unused",
            Self::Superseded => "superseded",
            Self::Refused => "refused",
            Self::Missing => "missing",
            Self::Late => "late",
            Self::Failed => "failed",
        }
    }
}

/// A source's statement and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The source's name in logs and metrics.
    pub source: &'static str,
    /// What it stated; `None` if it stated nothing.
    pub stated: Option<Statement>,
    /// What is believed of it.
    pub believed: Option<Statement>,
    /// How old the statement was when it was taken.
    pub age: Option<Duration>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it is not believed, or not all of it; empty otherwise.
    pub reason: String,
}

/// What all sources state of one path, and the knowledge that follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    knowledge: PathKnowledge,
    findings: Vec<Finding>,
}

impl Sources {
    /// Knowledge whose source nobody names.
    pub const fn new(knowledge: PathKnowledge) -> Self {
        Self { knowledge, findings: Vec::new() }
    }

    /// What Sensing may use.
    pub const fn knowledge(&self) -> &PathKnowledge {
        &self.knowledge
    }

    /// Changes knowledge whose source nobody names.
    pub fn knowledge_mut(&mut self) -> &mut PathKnowledge {
        &mut self.knowledge
    }

    /// Each source's statement, in the order in which they came.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// `source` states something that is `age` old, and `believed` of it counts, for `reason` if that is less. It
    /// supersedes what another source stated of the same.
    pub fn state(
        &mut self,
        source: &'static str,
        stated: Statement,
        age: Option<Duration>,
        believed: Option<Statement>,
        reason: &str,
    ) {
        if let Some(believed) = believed {
            believed.put(&mut self.knowledge);
            let known = believed.known();
            for older in &mut self.findings {
                if older.verdict == Verdict::Believed && older.believed.is_some_and(|one| one.known() == known) {
                    older.verdict = Verdict::Superseded;
                }
            }
        }
        let verdict = if believed.is_some() { Verdict::Believed } else { Verdict::Refused };
        self.note(Finding { source, stated: Some(stated), believed, age, verdict, reason: reason.into() });
    }

    /// `source` states something of now, and all of it is believed.
    pub fn believe(&mut self, source: &'static str, stated: Statement) {
        self.state(source, stated, None, Some(stated), "");
    }

    /// `source` states something of which another source is believed.
    pub fn supersede(&mut self, source: &'static str, stated: Statement, age: Option<Duration>) {
        let verdict = Verdict::Superseded;
        self.note(Finding { source, stated: Some(stated), believed: None, age, verdict, reason: String::new() });
    }

    /// `source` states nothing: it is [`Verdict::Missing`], [`Verdict::Late`] or [`Verdict::Failed`].
    pub fn lack(&mut self, source: &'static str, verdict: Verdict, reason: &str) {
        self.note(Finding { source, stated: None, believed: None, age: None, verdict, reason: reason.into() });
    }

    fn note(&mut self, finding: Finding) {
        match self.findings.iter().position(|one| one.source == finding.source) {
            Some(before) => self.findings[before] = finding,
            None if self.findings.len() < MOST_STATEMENTS => self.findings.push(finding),
            None => {}
        }
    }

    /// The launch has come and depends on `used`: gives their verdicts to the statements that are believed.
    pub fn launched(&mut self, used: &[Known]) {
        for finding in self.findings.iter_mut().filter(|one| one.verdict == Verdict::Believed) {
            let is_used = finding.believed.is_some_and(|statement| used.contains(&statement.known()));
            finding.verdict = if is_used { Verdict::Used } else { Verdict::Unused };
        }
    }
}

/// How a scheme launches with this knowledge, and what state it is in then.
fn outcome(scheme: &StartupState, now: Timestamp, path: &PathKnowledge) -> String {
    let mut scheme = scheme.clone();
    let launch = scheme.as_dyn().launch(now, path, &mut DecisionLog::default());
    format!("{launch:?} {scheme:?}")
}

impl StartupState {
    /// The parts of `path` without which this scheme, which has not launched yet, would launch otherwise or be in
    /// another state afterwards. With these alone it launches as it does with all, so they are none only where it
    /// launches as it does without any.
    pub fn depends_on(&self, now: Timestamp, path: &PathKnowledge) -> Vec<Known> {
        let known = Known::ALL.into_iter().filter(|known| known.is_in(path)).collect::<Vec<_>>();
        if known.is_empty() {
            return known;
        }
        let with_all = outcome(self, now, path);
        let is_needed = |known: Known, of: &PathKnowledge| outcome(self, now, &known.forgotten(of)) != with_all;
        // Each is left out for good that is not needed beside those that stay. Those come last that the launch would
        // follow to another value.
        let (taken, ignored): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|known| outcome(self, now, &known.halved(path)) != with_all);
        let (mut left, mut used) = (path.clone(), Vec::new());
        for known in ignored.into_iter().rev().chain(taken.into_iter().rev()) {
            if is_needed(known, &left) || (left != *path && is_needed(known, path)) {
                used.push(known);
            } else {
                left = known.forgotten(&left);
            }
        }
        used.sort_unstable();
        used
    }
}

impl StartupState {
    /// The longest RTT, that of the handshake or that of an earlier connection, to which the launch of this scheme
    /// owes a part of its window. A peer that lengthens it gains. `None`: there is none. It has not launched yet.
    ///
    /// Of a handshake it counts only if the launch depends on what others state or leaves at a rate of its own: a
    /// scheme that takes its growth from the RTT alone is no launch at a rate.
    pub fn stretchable_rtt(&self, now: Timestamp, path: &PathKnowledge) -> Option<Duration> {
        let launch = |path: &PathKnowledge| self.clone().as_dyn().launch(now, path, &mut DecisionLog::default());
        let with_all = launch(path);
        // A limit on the window, such as the waiting data, may hide what half of the RTT would change.
        let shortest = Some(Duration::from_micros(1));
        let stretches = |other: PathKnowledge| launch(&other).cwnd < with_all.cwnd;
        let by_rate = || with_all.pacing_rate.is_some() || !self.depends_on(now, path).is_empty();
        let handshake = path
            .handshake_rtt
            .filter(|_| stretches(PathKnowledge { handshake_rtt: shortest, ..path.clone() }) && by_rate());
        // A window for the saved RTT falls with it. A saved window is the same for any, and its path was as long.
        let saved = path.saved.filter(|saved| {
            let with = |saved| PathKnowledge { saved, ..path.clone() };
            let of = |micros| with(Some(SavedPath { rtt: Duration::from_micros(micros), ..*saved }));
            stretches(of(1)) || (stretches(with(None)) && !stretches(of(1_000_000_000)))
        });
        handshake.max(saved.map(|saved| saved.rtt))
    }
}

impl StartupConfig {
    /// What the scheme can use of what sources state: the parts of the knowledge each of which alone changes its launch
    /// on a usual path. None of them: it launches without any source.
    pub fn senses(&self) -> Vec<Known> {
        let rtt = Duration::from_millis(50);
        let usual = PathKnowledge {
            handshake_rtt: Some(rtt),
            receive_window: Some(Bytes::new(16_000_000)),
            bytes_waiting: Some(Bytes::new(2_000_000)),
            ..PathKnowledge::default()
        };
        let (rate, scheme) = (Rate::from_mbit(50), self.for_usual_host());
        let saved = SavedPath { rtt, cwnd: rate.amount_in(rtt), age: Duration::from_millis(1000) };
        let statement = |known| match known {
            Known::Saved => Statement::Saved(saved),
            Known::Hint => {
                Statement::Hint(Hint { bandwidth: rate, technology: crate::path::AccessTechnology::Unknown })
            }
            Known::Requested => Statement::Requested(rate),
            Known::Interface => Statement::Interface(rate),
            Known::Approved => Statement::Approved(rate),
            Known::Oracle => Statement::Oracle(rate),
            Known::Advised => Statement::Advised(rate),
            Known::Train => Statement::Train(rate),
            Known::Concurrent => {
                let window = Window { cwnd: rate.amount_in(rtt), ssthresh: Bytes::MAX };
                Statement::Concurrent(Concurrent { rtt, window })
            }
        };
        let uses = |known: &Known| {
            let mut path = usual.clone();
            statement(*known).put(&mut path);
            !scheme.depends_on(Timestamp::ZERO, &path).is_empty()
        };
        Known::ALL.into_iter().filter(uses).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::{blitzstart, initial_start};

    fn senses(spec: &str) -> Vec<Known> {
        let config = StartupConfig::defaults().into_iter().find(|one| one.name() == spec).unwrap();
        config.senses()
    }

    #[test]
    fn schemes_show_what_they_can_use() {
        assert_eq!(senses("slow-start"), []);
        assert_eq!(senses("jump-start"), [], "what waits is known without a source");
        assert_eq!(senses("blitzstart"), [Known::Hint]);
        assert_eq!(senses("careful-resume"), [Known::Saved]);
        assert_eq!(senses("quick-start"), [Known::Approved]);
        assert_eq!(senses("ensemble-sharing"), [Known::Concurrent]);
        let all = [Known::Saved, Known::Hint, Known::Requested, Known::Approved, Known::Oracle, Known::Train];
        assert_eq!(senses("plumb"), all);
        let any = [Known::Saved, Known::Hint, Known::Requested, Known::Oracle];
        assert_eq!(senses("more-start"), any, "the interface only if it is named");
    }

    #[test]
    fn an_rtt_that_makes_a_window_larger_can_be_stretched() {
        let rate = Rate::from_mbit(10);
        let rtt = Duration::from_millis(50);
        let path = PathKnowledge {
            handshake_rtt: Some(rtt),
            bytes_waiting: Some(Bytes::new(40_000)),
            hint: Some(Hint { bandwidth: rate, technology: crate::path::AccessTechnology::Unknown }),
            saved: Some(SavedPath { rtt, cwnd: rate.amount_in(rtt), age: Duration::ZERO }),
            approved_rate: Some(rate),
            ..PathKnowledge::default()
        };
        let grows = |name: &str| {
            let config = StartupConfig::defaults().into_iter().find(|one| one.name() == name).unwrap();
            let state = config.for_usual_host();
            state.stretchable_rtt(Timestamp::ZERO, &path)
        };
        // The 40 KB that wait are less than 10 Mbit/s send in 50 ms, and hide nothing.
        assert_eq!(["more-start", "quick-start"].map(grows), [Some(rtt); 2]);
        assert_eq!(["slow-start", "jump-start", "careful-resume", "rapid-start", "hybla"].map(grows), [None; 5]);
        // Windows of an earlier connection, and windows for its RTT.
        let of = |config: StartupConfig, saved_rtt| {
            let saved = Some(SavedPath { rtt: saved_rtt, cwnd: rate.amount_in(saved_rtt), age: Duration::ZERO });
            let path = PathKnowledge { saved, bytes_waiting: Some(Bytes::new(40_000_000)), ..path.clone() };
            config.for_usual_host().stretchable_rtt(Timestamp::ZERO, &path)
        };
        let long = Duration::from_millis(600);
        let window = initial_start::Config { window: initial_start::WindowSource::Saved, ..Default::default() };
        assert_eq!(of(StartupConfig::InitialStart(window), long), Some(long));
        let cached = blitzstart::Config { rtt: blitzstart::RttSource::Cached, ..Default::default() };
        assert_eq!(of(StartupConfig::Blitzstart(cached), long), Some(long));
        // A rate of an earlier connection, with whatever RTT, makes a window for the handshake's.
        let past = StartupConfig::defaults().into_iter().find(|one| one.name() == "more-start").unwrap();
        let knows = PathKnowledge {
            handshake_rtt: Some(rtt),
            saved: Some(SavedPath { rtt: long, cwnd: rate.amount_in(long), age: Duration::ZERO }),
            bytes_waiting: Some(Bytes::new(40_000_000)),
            ..PathKnowledge::default()
        };
        assert_eq!(past.for_usual_host().stretchable_rtt(Timestamp::ZERO, &knows), Some(rtt));
    }

    #[test]
    fn a_launch_depends_on_the_first_rate_and_not_on_the_others() {
        let rate = Rate::from_mbit(10);
        let mut sources = Sources::default();
        sources.knowledge_mut().handshake_rtt = Some(Duration::from_millis(40));
        sources.state("oracle", Statement::Oracle(rate), None, Some(Statement::Oracle(rate)), "");
        let hint = |mbit| {
            Statement::Hint(Hint {
                bandwidth: Rate::from_mbit(mbit),
                technology: crate::path::AccessTechnology::Unknown,
            })
        };
        sources.state("hint", hint(80), Some(Duration::from_millis(7)), Some(hint(20)), "capped by rate");
        sources.lack("path-store", Verdict::Late, "no answer within 50ms");
        let scheme = StartupConfig::MoreStart(crate::startup::more_start::Config::default()).for_usual_host();
        let used = scheme.depends_on(Timestamp::ZERO, sources.knowledge());
        assert_eq!(used, [Known::Hint], "the hint comes before the oracle");
        sources.launched(&used);
        let verdicts: Vec<_> = sources.findings().iter().map(|one| (one.source, one.verdict)).collect();
        assert_eq!(verdicts, [("oracle", Verdict::Unused), ("hint", Verdict::Used), ("path-store", Verdict::Late)]);
        let capped = &sources.findings()[1];
        assert_eq!(capped.stated.and_then(|one| one.rate()), Some(Rate::from_mbit(80)));
        assert_eq!(capped.believed.and_then(|one| one.rate()), Some(Rate::from_mbit(20)));
    }

    #[test]
    fn of_sources_that_agree_that_counts_which_is_taken() {
        let rate = Rate::from_mbit(30);
        let hint = Hint { bandwidth: rate, technology: crate::path::AccessTechnology::Unknown };
        let agreed = PathKnowledge {
            handshake_rtt: Some(Duration::from_millis(50)),
            bytes_waiting: Some(Bytes::new(40_000_000)),
            hint: Some(hint),
            oracle_rate: Some(rate),
            ..PathKnowledge::default()
        };
        let of = |name: &str, path: &PathKnowledge| {
            let config = StartupConfig::defaults().into_iter().find(|one| one.name() == name).unwrap();
            config.for_usual_host().depends_on(Timestamp::ZERO, path)
        };
        assert_eq!(of("more-start", &agreed), [Known::Hint]);
        // More-Start takes the application's rate first, and the earlier connection's last.
        assert_eq!(
            of("more-start", &PathKnowledge { requested_rate: Some(rate), ..agreed.clone() }),
            [Known::Requested]
        );
        let rtt = Duration::from_millis(50);
        let saved = SavedPath { rtt, cwnd: rate.amount_in(rtt), age: Duration::ZERO };
        assert_eq!(of("more-start", &PathKnowledge { saved: Some(saved), ..agreed.clone() }), [Known::Hint]);
        // Two that bear each other out are both needed, and a third is not.
        assert_eq!(of("plumb", &agreed), [Known::Hint, Known::Oracle]);
        let third = PathKnowledge { train_rate: Some(rate), ..agreed.clone() };
        assert_eq!(of("plumb", &third), [Known::Hint, Known::Oracle]);
        assert_eq!(of("slow-start", &third), []);
    }

    #[test]
    fn a_later_source_of_the_same_supersedes_an_earlier_one_and_a_source_speaks_once() {
        let saved = |age| {
            let (rtt, cwnd) = (Duration::from_millis(40), Bytes::new(90_000));
            Statement::Saved(SavedPath { rtt, cwnd, age: Duration::from_millis(age) })
        };
        let mut sources = Sources::default();
        sources.state("path-store", saved(9000), None, Some(saved(9000)), "");
        sources.state("path-state", saved(1000), None, Some(saved(1000)), "");
        let verdicts: Vec<_> = sources.findings().iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::Superseded, Verdict::Believed]);
        assert_eq!(sources.knowledge().saved.unwrap().age, Duration::from_millis(1000));
        sources.lack("path-store", Verdict::Failed, "gone");
        assert_eq!(sources.findings().len(), 2);
    }
}
