//! A sender's part in the window that connections to the same host share ([`Ensemble`](flowstart_core::ensemble)).

use flowstart_core::needs::Needs;
use flowstart_core::path::Concurrent;

use super::SenderBase;
use crate::network::Network;

/// A sender's place among those that share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// The number of the ensemble in its network.
    ensemble: u32,
    /// Whether the sender has data in flight or waiting, as far as the ensemble knows.
    sends: bool,
}

impl SenderBase {
    /// The sender shares the window of this ensemble if its scheme shares one.
    pub fn share_window(&mut self, ensemble: Option<u32>) {
        let shares = self.controller.needs().contains(Needs::SHARED_WINDOW);
        self.sharing = ensemble.filter(|_| shares).map(|ensemble| Sharing { ensemble, sends: false });
    }

    /// The sender begins to send: what the others leave to it.
    pub(super) fn enter_ensemble(&mut self, network: &mut Network) -> Option<Concurrent> {
        let sharing = self.sharing.as_mut()?;
        sharing.sends = true;
        let now = network.now();
        network.ensembles[sharing.ensemble as usize].enter(now, self.flow.number())
    }

    /// Data waits after idle time: the window is the share that the others leave.
    pub(super) fn enter_ensemble_again(&mut self, network: &mut Network) {
        if let Some(concurrent) = self.enter_ensemble(network) {
            self.controller.take_share(network.now(), concurrent.window.cwnd, &self.rtt);
        }
    }

    /// Reports the window, and takes over what others gave or took.
    pub(super) fn report_window(&mut self, network: &mut Network) {
        let Some(sharing) = self.sharing.filter(|sharing| sharing.sends) else { return };
        let Some(window) = self.controller.shared_window() else { return };
        let rtt = self.rtt.min().unwrap_or_else(|| self.rtt.smoothed());
        let ensemble = &mut network.ensembles[sharing.ensemble as usize];
        if let Some(cwnd) = ensemble.report(self.flow.number(), window, rtt) {
            self.controller.take_share(network.now(), cwnd, &self.rtt);
        }
    }

    /// The sender shares no longer: its window goes to the others.
    pub(super) fn stop_sharing(&mut self, network: &mut Network) {
        self.leave_ensemble(network);
        self.sharing = None;
    }

    /// Nothing is in flight and nothing waits: the window goes to the others.
    pub(super) fn leave_ensemble(&mut self, network: &mut Network) {
        if let Some(sharing) = self.sharing.as_mut().filter(|sharing| sharing.sends) {
            sharing.sends = false;
            let now = network.now();
            network.ensembles[sharing.ensemble as usize].leave(now, self.flow.number());
        }
    }
}
