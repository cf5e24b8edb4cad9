//! Sending again after idle time, and on another path.

use flowstart_core::controller::Resume;
use flowstart_core::pacer::Pacer;
use flowstart_core::path::PathKnowledge;
use flowstart_core::quick_start::host::Known;
use flowstart_core::rtt::RttEstimator;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use super::SenderBase;
use crate::network::Network;
use crate::transport::policy::IgnoreReceiveWindow;

/// State for the time after idle time.
#[derive(Clone, Debug, Default)]
pub(super) struct Resumption {
    /// Sensing's knowledge at the launch.
    pub(super) knowledge: PathKnowledge,
    /// The time when the last packet left; `None` before the first, and once the end of idle time is known.
    pub(super) last_sent: Option<Timestamp>,
}

impl SenderBase {
    /// Data from `next_offset` to `written` waits, and all sent data is acknowledged: validates the window for the idle
    /// time.
    pub(super) fn resume(&mut self, network: &mut Network, next_offset: u64, written: u64, timeout: Duration) {
        let now = network.now();
        let receive_window = Bytes::new(self.limit.saturating_sub(next_offset));
        let bytes_waiting = (written != u64::MAX).then(|| self.profile.bytes_in_flight(written - next_offset));
        let resumption = &mut self.resumption;
        let Some(last_sent) = resumption.last_sent.take() else { return };
        let obeys = self.profile.ignore_receive_window == IgnoreReceiveWindow::Never;
        resumption.knowledge.receive_window = obeys.then_some(receive_window);
        resumption.knowledge.bytes_waiting = bytes_waiting;
        resumption.knowledge.advised_rate = self.scone.as_mut().and_then(|scone| scone.rate(now));
        let resume = Resume { now, idle: now.since(last_sent), timeout };
        self.controller.on_resume(&resume, &resumption.knowledge, &self.rtt);
        self.enter_ensemble_again(network);
        if let Some(quick_start) = self.quick_start.as_mut().filter(|quick_start| quick_start.asks_after(resume.idle)) {
            let object = (written != u64::MAX).then(|| Bytes::new(written - next_offset));
            let rtt = Some(self.rtt.smoothed());
            let known = Known { rtt, object, receive_window: Some(receive_window), send_buffer: None };
            quick_start.ask(known, self.controller.cwnd());
        }
        // The window that remains will be used, from its first packet on.
        self.app_limited &= bytes_waiting.is_some_and(|waiting| waiting < self.controller.cwnd());
        if self.controller.in_startup() {
            self.ignore_limit(next_offset);
        }
        self.pacer.allow_burst(self.controller.output().burst);
        self.after_event(network);
    }

    /// Packets take another path from now on, of which only `knowledge` is known. `waiting` is the written data that
    /// was never sent.
    pub fn change_path(&mut self, network: &mut Network, knowledge: &PathKnowledge, waiting: Option<Bytes>) {
        let now = network.now();
        let knowledge = knowledge.for_new_path();
        self.path_since = now;
        // What the others know is the old path.
        self.stop_sharing(network);
        // Advice is specific to a path.
        self.scone = self.scone.take().map(|_| Box::default());
        self.rtt = RttEstimator::new(self.profile.initial_timeout);
        self.pacer = Pacer::new(self.profile.pacing.map_or(Duration::ZERO, |pacing| pacing.quantum));
        self.pacer.set_tick(self.tick);
        self.controller.on_path_change(now, &knowledge, &self.rtt);
        if let Some(quick_start) = &mut self.quick_start
            && quick_start.change_path()
        {
            let known = Known { object: waiting, receive_window: knowledge.receive_window, ..Known::default() };
            quick_start.ask(known, self.controller.cwnd());
        }
        self.pacer.allow_burst(self.controller.output().burst);
        self.resumption.knowledge = knowledge;
        self.after_event(network);
    }
}
