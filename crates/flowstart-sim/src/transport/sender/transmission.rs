//! The order in which packets leave: retransmissions, new data, and packets that wait only for the window or the pacer.

use flowstart_core::controller::WindowValidation;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use super::{Permission, Sender, SenderBase};
use crate::network::Network;
use crate::traffic::Source;

/// A protocol's part in sending packets: the choice of the next data, and its records.
pub trait Transmission: Sender {
    /// A choice of data.
    type Next: Copy;

    /// The common part.
    fn common(&mut self) -> &mut SenderBase;

    /// The next data to send; `None` if nothing waits.
    fn next(&mut self, source: &Source) -> Option<Self::Next>;

    /// The highest packet that may be sent again without evidence of loss. `None` if new data waits, even only for flow
    /// control, or if everything is acknowledged or was sent again.
    fn next_proactive(&mut self, source: &Source) -> Option<Self::Next>;

    /// Whether everything that was sent is acknowledged.
    fn is_settled(&self) -> bool;

    /// The current retransmission or probe timeout.
    fn timeout(&self) -> Duration;

    /// Payload bytes of `next`.
    fn payload(&self, next: Self::Next) -> u32;

    /// Sends it.
    fn send(&mut self, network: &mut Network, next: Self::Next);

    /// Sends while something waits and [`SenderBase::permission`] allows it. Returns when the pacer lets the next
    /// packet leave, [`Timestamp::NEVER`] if nothing waits for the pacer.
    #[inline]
    fn pump_permitted(&mut self, network: &mut Network, source: &Source) -> Timestamp {
        let now = network.now();
        if self.common().in_flight == Bytes::ZERO {
            self.end_idle_time(network, source);
        }
        loop {
            let Some(next) = self.next(source) else {
                let stopped = source.written() > self.next_offset();
                let base = self.common();
                let room = base.in_flight + Bytes::new(u64::from(base.profile.segment)) <= base.controller.cwnd();
                base.note_blocked(network, stopped && room);
                base.run_dry();
                if base.in_flight == Bytes::ZERO {
                    base.leave_ensemble(network);
                }
                if base.profile.idle != WindowValidation::Keep || base.quick_start.is_some() {
                    self.validate_limited(network);
                }
                let base = self.common();
                if base.controller.proactive_retransmit() == Bytes::ZERO {
                    return Timestamp::NEVER;
                }
                return self.pump_proactive(network, source);
            };
            let len = self.payload(next);
            let base = self.common();
            base.note_blocked(network, false);
            match base.permission(now, base.profile.in_flight_size(len)) {
                Permission::Now => {}
                Permission::Window => {
                    base.app_limited = false;
                    return Timestamp::NEVER;
                }
                Permission::Paced(time) => return time,
            }
            self.send(network, next);
        }
    }

    /// Congestion window validation if data waits after idle time.
    #[inline(never)]
    fn end_idle_time(&mut self, network: &mut Network, source: &Source) {
        if self.is_settled() && self.next(source).is_some() {
            let (next_offset, timeout) = (self.next_offset(), self.timeout());
            self.common().resume(network, next_offset, source.written(), timeout);
        }
    }

    /// Congestion window validation if nothing waits.
    #[inline(never)]
    fn validate_limited(&mut self, network: &mut Network) {
        let (next_offset, timeout) = (self.next_offset(), self.timeout());
        let base = self.common();
        let receive_window = base.in_flight + Bytes::new(base.limit.saturating_sub(next_offset));
        base.controller.on_limited(network.now(), base.in_flight, timeout, receive_window, &base.rtt);
        base.after_event(network);
    }

    /// Nothing waits: sends again, from the end, as much as the controller grants
    /// ([`proactive_retransmit`](flowstart_core::controller::Output::proactive_retransmit)). Returns the same as
    /// [`Transmission::pump_permitted`].
    #[inline(never)]
    fn pump_proactive(&mut self, network: &mut Network, source: &Source) -> Timestamp {
        let now = network.now();
        while let Some(next) = self.next_proactive(source) {
            let len = self.payload(next);
            let base = self.common();
            let size = base.profile.in_flight_size(len);
            if size > base.controller.proactive_retransmit() {
                break;
            }
            match base.permission(now, size) {
                Permission::Now => {}
                Permission::Window => break,
                Permission::Paced(time) => return time,
            }
            self.send(network, next);
            self.common().controller.on_proactive_retransmission(size);
        }
        Timestamp::NEVER
    }
}
