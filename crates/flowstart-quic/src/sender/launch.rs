//! The launch, and the window that the connection shares with others to the same peer.

use std::time::Instant;

use flowstart_core::doubt::Doubt;
use flowstart_core::needs::Needs;
use flowstart_core::path::PathKnowledge;
use flowstart_core::sources::name::CONCURRENT;
use flowstart_core::sources::{Known, Statement, Verdict};
use flowstart_core::units::Bytes;

use super::{Membership, Sender, UNPACED};

/// Initial windows that leave before anything proves that the client still has its address. Whoever sends the first
/// packet of a connection with a token of an address that it has lost makes the server send to whom has it now (RFC
/// 9000, section 21.3).
const EARLY_FLIGHT: u64 = 5;

impl Sender {
    /// Congestion needs a response, and only a launched controller can give it: the launch uses what is known by now.
    pub(super) fn launch_into_congestion(&mut self) {
        if self.launched_after.is_none() {
            let path = self.flow.stop_waiting(self.first_path);
            self.launch(path);
        }
    }

    pub(super) fn launch(&mut self, mut path: PathKnowledge) {
        path.handshake_rtt = self.rtt.min();
        if let Some(membership) = &mut self.membership {
            path.concurrent = membership.enter(self.now);
            self.flow.hear(|sources| match path.concurrent.map(Statement::Concurrent) {
                Some(share) => sources.believe(CONCURRENT, share),
                None => sources.lack(CONCURRENT, Verdict::Missing, ""),
            });
        }
        let position = self.sent.last_position();
        self.controller.on_sent_before_launch(position);
        let used = self.controller.depends_on(self.now, &path);
        let stretchable =
            if self.flow.doubts_handshake() { self.controller.stretchable_rtt(self.now, &path) } else { None };
        self.flow.launched(self.first_path, &used);
        let initial = self.controller.cwnd();
        self.early_flight = (!self.rtt.is_sampled()).then(|| initial * EARLY_FLIGHT);
        self.controller.launch(self.now, &path, &self.rtt);
        self.launched_after = Some(position);
        self.first_flight = true;
        self.publish();
        let is_claimed = used.iter().any(|known| matches!(known, Known::Hint | Known::Train));
        let cap = self.flow.launch_cap().filter(|_| is_claimed);
        let launch = self.status.launch.filter(|_| stretchable.is_some() || cap.is_some());
        self.doubt = launch.map(|(_, window, rate)| {
            let most = rate.into_iter().chain(cap).min();
            Doubt::new(window, most, stretchable)
        });
        self.status.launch_rate = Some(self.present().pacing_rate).filter(|rate| *rate != UNPACED);
        self.flow.launches_at(self.status.launch_rate);
    }

    /// The sender, whose time zero is `origin`, takes part in the flow's shared window if its scheme shares one.
    pub(crate) fn share_from(&mut self, origin: Instant) {
        let shares = self.first_path && self.controller.needs().contains(Needs::SHARED_WINDOW);
        let shared = self.flow.shared_window().filter(|_| shares);
        self.membership = shared.map(|shared| Membership::new(shared, origin));
    }

    /// Data leaves again after idle time: the window is the share that others leave.
    pub(super) fn enter_again(&mut self) {
        let Some(membership) = self.membership.as_mut().filter(|membership| !membership.sends()) else { return };
        if let Some(concurrent) = membership.enter(self.now) {
            self.controller.take_share(self.now, concurrent.window.cwnd, &self.rtt);
        }
    }

    /// Tells the others of the window, or of idle time, and takes over what they gave or took.
    pub(super) fn share_window(&mut self) {
        let Some(membership) = self.membership.as_mut().filter(|membership| membership.sends()) else { return };
        if self.in_flight == Bytes::ZERO && self.app_limited {
            membership.leave(self.now);
        } else if let Some(window) = self.controller.shared_window()
            && let Some(cwnd) = membership.report(self.now, window, self.rtt.min().unwrap_or(self.rtt.smoothed()))
        {
            self.controller.take_share(self.now, cwnd, &self.rtt);
        }
    }
}
