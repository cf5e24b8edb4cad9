//! The exchange between an application and the controller of its connection.
//!
//! A QUIC stack builds the controller itself, so the application has no access to it. A [`Flow`] given to the factory
//! connects the two. The application says what it knows of the path and how much it will send, and reads what the
//! controller did.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstart_core::event::{Decision, DecisionLog, ExitReason};
use flowstart_core::path::PathKnowledge;
use flowstart_core::sources::name::SCONE;
use flowstart_core::sources::{Finding, Known, Sources, Statement, Verdict};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::variable::{Owner, Variable};

use crate::hint::{BandwidthHint, policy};
use crate::sharing::SharedWindow;

/// Bytes of a packet that are not payload: short header with an 8-byte connection ID (11), authentication tag (16) and
/// the header of a STREAM frame (up to 8).
const PACKET_OVERHEAD: u64 = 35;

/// What a connection's controller did, for logs, metrics and the store of paths. Times count from when the host built
/// the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Status {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` before the first reduction.
    pub ssthresh: Option<Bytes>,
    /// Rate at which packets may leave.
    pub pacing_rate: Option<Rate>,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// Whether the startup scheme is in charge.
    pub in_startup: bool,
    /// Smallest RTT seen; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed RTT; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// Largest smoothed RTT so far; `None` before the first sample.
    pub longest_rtt: Option<Duration>,
    /// Highest rate at which the path delivered over at least one RTT.
    pub highest_rate: Option<Rate>,
    /// Bytes delivered.
    pub delivered: Bytes,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes sent while the startup scheme was in charge, and until the first of what it launched is acknowledged.
    pub startup_sent: Bytes,
    /// Of those, bytes declared lost so far.
    pub startup_lost: Bytes,
    /// When the scheme launched, its window and its rate.
    pub launch: Option<(Timestamp, Bytes, Option<Rate>)>,
    /// The rate at which the launch leaves: that of the scheme, or by the host's rule.
    pub launch_rate: Option<Rate>,
    /// When startup ended, why, and the window it left.
    pub exit: Option<(Timestamp, ExitReason, Bytes)>,
    /// How often the connection has moved to another path.
    pub moves: u64,
}

#[derive(Debug, Default)]
struct Shared {
    sources: Sources,
    /// The launch waits until the application has said how much it will send.
    waits: bool,
    /// Advice that the controller has not received yet.
    news: Option<Option<Rate>>,
    /// The advice that capped a launch.
    capped: Option<Rate>,
    decisions: DecisionLog,
    status: Status,
    /// The RTT of the handshake is only the client's word.
    doubts: bool,
    /// The most at which a launch leaves that depends on the client's word.
    cap: Option<Rate>,
    /// Data leaves before the handshake has measured the RTT.
    early: bool,
    /// Number of controllers built for this flow.
    built: u64,
    /// The window that it shares with other connections to its peer.
    window: Option<Arc<SharedWindow>>,
    /// The latest inner variables of the algorithms, if somebody wants them.
    variables: Option<Vec<(Owner, Variable)>>,
}

impl Shared {
    fn known(&self, first_path: bool) -> PathKnowledge {
        let path = self.sources.knowledge();
        if first_path { path.clone() } else { path.for_new_path() }
    }
}

/// What an application and the controller of one connection share.
#[derive(Debug, Default)]
pub struct Flow(Mutex<Shared>);

impl Flow {
    /// A connection with this knowledge. The scheme launches when the handshake has measured the RTT, or before with
    /// [`Flow::launch_early`].
    pub fn new(path: PathKnowledge) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Shared { sources: Sources::new(path), ..Shared::default() })))
    }

    /// Like [`Flow::new`], but the launch waits for [`Flow::expect`]. Schemes that launch the waiting data need to know
    /// its size. Until then the connection sends with its initial window. The first sign of congestion ends the
    /// waiting, because the controller has to respond: the scheme launches with the knowledge at that time, and the
    /// window is reduced.
    pub fn waiting(path: PathKnowledge) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Shared { sources: Sources::new(path), waits: true, ..Shared::default() })))
    }

    /// Another thread's panic while it holds the lock leaves nothing half-changed here.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of the path. Only what is known before the launch counts.
    pub fn learn(&self, change: impl FnOnce(&mut PathKnowledge)) {
        change(self.shared().sources.knowledge_mut());
    }

    /// Sources of knowledge speak. Only what is known before the launch counts.
    pub fn hear(&self, say: impl FnOnce(&mut Sources)) {
        say(&mut self.shared().sources);
    }

    /// What is known of the path so far.
    pub fn knowledge(&self) -> PathKnowledge {
        self.shared().sources.knowledge().clone()
    }

    /// What sources have stated so far, with verdicts after the launch.
    pub fn findings(&self) -> Vec<Finding> {
        self.shared().sources.findings().to_vec()
    }

    /// Elements of the path advise `rate` from now on (SCONE), which caps what the scheme launches; `None` ends the
    /// advice. Before the launch the advice applies at once. Later the controller receives it with the next
    /// acknowledgement.
    pub fn advise(&self, rate: Option<Rate>) {
        let mut shared = self.shared();
        shared.sources.knowledge_mut().advised_rate = rate;
        shared.news = Some(rate);
        // Verdicts are about the launch.
        if shared.status.launch.is_none() {
            match rate.map(Statement::Advised) {
                Some(advice) => shared.sources.believe(SCONE, advice),
                None => shared.sources.lack(SCONE, Verdict::Missing, ""),
            }
        }
    }

    /// The advice that has capped a launch of this connection; `None`: none has.
    pub fn capped_by(&self) -> Option<Rate> {
        self.shared().capped
    }

    /// The RTT of the handshake counts only as far as later samples bear it out. A client can lengthen it, and so get a
    /// larger window out of a rate. Only a call before the launch counts.
    pub fn doubt_handshake(&self) {
        self.shared().doubts = true;
    }

    /// Data leaves before the handshake has measured the RTT, in answer to a request that came with the first packets
    /// of a client (0-RTT). If an earlier connection is known, whose RTT is that of the path, a scheme that launches by
    /// it does so with the next call of [`Flow::expect`] and waits for no sample.
    pub fn launch_early(&self) {
        self.shared().early = true;
    }

    /// What is launched on the client's word, its hint or what it reports of the handshake, leaves no faster than this
    /// until it is acknowledged. Of several calls before the launch the lowest rate counts.
    pub fn cap_launch(&self, rate: Rate) {
        let mut shared = self.shared();
        shared.cap = Some(shared.cap.map_or(rate, |before| before.min(rate)));
    }

    /// The client states a hint, and this became of it by the server's policy: the sources say so, and a cap holds the
    /// launch.
    pub fn hear_hint(&self, source: &'static str, told: &BandwidthHint, verdict: &policy::Verdict) {
        verdict.cap.into_iter().for_each(|cap| self.cap_launch(cap));
        self.hear(|all| verdict.state(source, told, all));
    }

    /// The connection shares this window with others to its peer, if its scheme shares one. Only a call before the
    /// host builds the controller counts.
    pub fn share(&self, window: Arc<SharedWindow>) {
        self.shared().window = Some(window);
    }

    /// The window that the connection shares.
    pub(crate) fn shared_window(&self) -> Option<Arc<SharedWindow>> {
        self.shared().window.clone()
    }

    /// Whether [`Flow::doubt_handshake`] was called.
    pub(crate) fn doubts_handshake(&self) -> bool {
        self.shared().doubts
    }

    /// The launch leaves at this rate.
    pub(crate) fn launches_at(&self, rate: Option<Rate>) {
        self.shared().status.launch_rate = rate;
    }

    /// What Sensing may use if [`Flow::launch_early`] was called, an earlier connection is known, and the application
    /// has said how much it will send.
    pub(crate) fn ready_early(&self, first_path: bool) -> Option<PathKnowledge> {
        let shared = self.shared();
        let is_ready = first_path && shared.early && !shared.waits && shared.sources.knowledge().saved.is_some();
        is_ready.then(|| shared.known(first_path))
    }

    /// The rate of [`Flow::cap_launch`].
    pub(crate) fn launch_cap(&self) -> Option<Rate> {
        self.shared().cap
    }

    /// The application is about to send `payload` bytes; `packet` is the size of its UDP payloads. Ends the waiting of
    /// [`Flow::waiting`].
    pub fn expect(&self, payload: Bytes, packet: Bytes) {
        let mut shared = self.shared();
        shared.sources.knowledge_mut().bytes_waiting = Some(Self::with_overhead(payload, packet));
        shared.waits = false;
    }

    /// What `payload` bytes are in packets of this size, with what packets have beside data. A window that ends within
    /// the last packet would leave it for the next round trip, because a host sends only where a full one has room. So
    /// the last packet counts as full, and one more counts for what the first ones carry of the handshake's end.
    pub fn with_overhead(payload: Bytes, packet: Bytes) -> Bytes {
        let room = packet.get().saturating_sub(PACKET_OVERHEAD).max(1);
        let packets = payload.get().div_ceil(room).saturating_add(1);
        Bytes::new(packets.saturating_mul(room.saturating_add(PACKET_OVERHEAD)))
    }

    /// What the controller has done so far.
    pub fn status(&self) -> Status {
        self.shared().status
    }

    /// Takes the oldest decision of the controller that was not yet taken. The latest 32 are kept.
    pub fn take_decision(&self) -> Option<(Timestamp, Decision)> {
        self.shared().decisions.take()
    }

    /// From now on the controller shows the inner variables of its algorithms, for [`Flow::take_variables`].
    pub fn observe(&self) {
        self.shared().variables.get_or_insert_default();
    }

    /// Takes the inner variables after the latest event of the controller; empty if there was none, or nobody observes.
    pub fn take_variables(&self) -> Vec<(Owner, Variable)> {
        self.shared().variables.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A host builds a controller for this flow. The first one is for the path on which the connection began.
    pub(crate) fn begin(&self) -> Status {
        let mut shared = self.shared();
        shared.status.moves = shared.built;
        shared.built += 1;
        shared.status
    }

    /// What Sensing may use; `None` while the launch waits for the application.
    pub(crate) fn ready(&self, first_path: bool) -> Option<PathKnowledge> {
        let shared = self.shared();
        (!shared.waits).then(|| shared.known(first_path))
    }

    /// What Sensing may use now. This ends the waiting for the application.
    pub(crate) fn stop_waiting(&self, first_path: bool) -> PathKnowledge {
        let mut shared = self.shared();
        shared.waits = false;
        shared.known(first_path)
    }

    /// The controller is about to launch, and the launch depends on `used`. Statements are about the first path.
    pub(crate) fn launched(&self, first_path: bool, used: &[Known]) {
        if first_path {
            self.shared().sources.launched(used);
        }
    }

    /// Takes the controller's news and its decisions. Returns advice that the controller has not received yet.
    pub(crate) fn publish(
        &self,
        status: &Status,
        decided: impl Iterator<Item = (Timestamp, Decision)>,
        observe: impl FnOnce(&mut Vec<(Owner, Variable)>),
    ) -> Option<Option<Rate>> {
        let mut shared = self.shared();
        if let Some(variables) = &mut shared.variables {
            variables.clear();
            observe(variables);
        }
        shared.status = *status;
        for (time, decision) in decided {
            if let Decision::AdviceCapped { advised, .. } = decision {
                shared.capped = Some(advised);
            }
            shared.decisions.note(time, decision);
        }
        shared.news.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_with_the_overhead_of_its_packets() {
        let flow = Flow::waiting(PathKnowledge::default());
        assert_eq!(flow.ready(true), None);
        // 1165 bytes of payload fit in a packet of 1200: 3000 bytes need three full packets, and another.
        flow.expect(Bytes::new(3000), Bytes::new(1200));
        assert_eq!(flow.ready(true).unwrap().bytes_waiting, Some(Bytes::new(4800)));
    }

    #[test]
    fn of_another_path_only_the_two_ends_are_known() {
        let path = PathKnowledge {
            requested_rate: Some(Rate::from_mbit(50)),
            receive_window: Some(Bytes::new(1 << 20)),
            ..PathKnowledge::default()
        };
        let flow = Flow::new(path);
        assert_eq!((flow.begin().moves, flow.begin().moves), (0, 1));
        assert_eq!(flow.status().moves, 1);
        let known = flow.ready(false).unwrap();
        assert_eq!((known.requested_rate, known.receive_window), (None, Some(Bytes::new(1 << 20))));
    }
}
