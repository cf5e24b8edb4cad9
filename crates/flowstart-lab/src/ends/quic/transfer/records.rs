//! Records and traces of real flows, the same as those of model flows.

use flowstart_core::event::Decision;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::network::Network;
use flowstart_sim::observe::record::StartupExit;
use flowstart_sim::observe::trace::Event;
use flowstart_sim::packet::{Acknowledgement, Body, NO_OPTION};
use flowstart_sim::transport::handshake::{ANSWER, COMPLETE, OPEN, PARTIAL};
use flowstart_sim::transport::sender::Chunk;

use super::Transfer;
use crate::ends::quic::end::{CLIENT, SERVER, timestamp};
use crate::ends::quic::frames::Carried;

impl Transfer {
    /// Counts the bytes that the client has received.
    pub(super) fn note_arrival(&mut self, network: &mut Network, carried: &Carried) {
        for Chunk { offset, len } in carried.chunks() {
            network.note(self.number, || Event::Received { offset, len });
            network.record(self.number).delivered += self.received.insert(offset, offset + u64::from(len));
        }
        let Some(number) = carried.number else { return };
        self.arrived.insert(number, number + 1);
        if self.lost.remove(&number) {
            network.record(self.number).spurious += 1;
        }
    }

    /// A packet of the client in a trace.
    pub(super) fn note_client_sends(&mut self, network: &mut Network, carried: &Carried) -> Body {
        let now = network.now();
        if carried.chunk.is_some() {
            network.record(self.number).request_sent.get_or_insert(now);
            return Body::Handshake { flight: COMPLETE, part: 0, attempt: 0, quick_start: NO_OPTION };
        }
        let Some((position, delay)) = carried.acknowledged else {
            let flight =
                if self.received.ranges().is_empty() && self.streams[CLIENT].is_none() { OPEN } else { PARTIAL };
            return Body::Handshake { flight, part: 0, attempt: 0, quick_start: NO_OPTION };
        };
        let gaps = carried.ranges.len() > 1;
        // The exponent of the delay is the default, 3 (RFC 9000, section 18.2).
        let delay = Duration::from_nanos(delay.saturating_mul(8_000));
        Body::Acknowledgement(Acknowledgement {
            position,
            ranges: gaps.then(|| network.ranges.insert(carried.ranges.iter().copied())),
            delay,
            echo: Timestamp::ZERO,
            limit: carried.limit.unwrap_or(self.limit),
            ce_count: 0,
            requests: 0,
        })
    }

    /// Counts the bytes that the server sends, and returns the packet for a trace.
    pub(super) fn note_server_sends(&mut self, network: &mut Network, carried: &Carried) -> Body {
        let now = network.now();
        let (Some(number), Some(first)) = (carried.number, carried.chunk) else {
            return Body::Handshake { flight: ANSWER, part: 0, attempt: 0, quick_start: NO_OPTION };
        };
        let mut again = 0;
        for Chunk { offset, len } in carried.chunks() {
            let fresh = self.sent.insert(offset, offset + u64::from(len));
            let old = u64::from(len) - fresh;
            again += old;
            network.note(self.number, || Event::Sent { offset, len, retransmission: old > 0 });
        }
        let record = network.record(self.number);
        record.data_packets += 1;
        record.first_data_sent.get_or_insert(now);
        record.retransmitted += again;
        record.retransmissions += u64::from(again > 0);
        if network.is_traced() {
            self.pieces.insert(number, carried.chunks().collect());
        }
        let len = carried.chunks().map(|chunk| chunk.len).sum();
        Body::Data { number, offset: first.offset, len, least_unacknowledged: 0, sent_at: now, quick_start: None }
    }

    /// Turns the controller's inputs and decisions into records and traces.
    pub(super) fn note_controller(&mut self, network: &mut Network) {
        let traced = network.is_traced();
        if network.wants_variables() {
            self.flow.observe();
        }
        let (origin, lost, acknowledged) = {
            let seen = &mut *self.ends[SERVER].watch.seen();
            let Some(origin) = seen.origin else { return };
            (timestamp(origin), std::mem::take(&mut seen.lost), std::mem::take(&mut seen.acknowledged))
        };
        if let Some((told, used)) = self.ends[SERVER].watch.seen().hint.take() {
            network.note(self.number, || Event::Hint { told, used });
        }
        if !lost.is_empty() {
            self.steady = None;
        }
        let mut newly = 0;
        for number in acknowledged {
            for Chunk { offset, len } in self.pieces.remove(&number).unwrap_or_default() {
                newly += self.acknowledged.insert(offset, offset + u64::from(len));
            }
        }
        for number in lost {
            network.record(self.number).declared_lost += 1;
            for Chunk { offset, len } in self.pieces.get(&number).cloned().unwrap_or_default() {
                network.note(self.number, || Event::DeclaredLost { offset, len });
            }
            if self.arrived.containing(number).is_some() {
                network.record(self.number).spurious += 1;
            } else {
                self.lost.insert(number);
            }
        }
        if newly > 0 {
            let contiguous = self.acknowledged.contiguous_end(0);
            network.note(self.number, || Event::Acknowledged { contiguous, newly: Bytes::new(newly) });
        }
        let status = self.flow.status();
        while let Some((time, decision)) = self.flow.take_decision() {
            if matches!(decision, Decision::Launched { .. }) && !std::mem::replace(&mut self.has_launched, true) {
                network.note_sources(self.number, &self.flow.findings());
            }
            let record = network.record(self.number);
            match decision {
                Decision::Launched { .. } => record.handshake_rtt = record.handshake_rtt.or(status.min_rtt),
                Decision::StartupExited { reason, cwnd, .. } => {
                    let time = origin + time.since(Timestamp::ZERO);
                    record.exit.get_or_insert(StartupExit { time, reason, cwnd, reached: record.max_cwnd });
                }
                Decision::WindowReduced { .. } => record.window_cuts += 1,
                Decision::Collapsed { .. } => record.timeouts += 1,
                _ => {}
            }
            network.note(self.number, || Event::Decided(decision));
        }
        let record = network.record(self.number);
        record.max_cwnd = record.max_cwnd.max(status.cwnd);
        if traced && status.launch.is_some() {
            network.note(self.number, || Event::Window {
                cwnd: status.cwnd,
                ssthresh: status.ssthresh.unwrap_or(Bytes::MAX),
                in_flight: status.in_flight,
                pacing_rate: status.pacing_rate,
                srtt_nanos: status.smoothed_rtt.unwrap_or_default().as_nanos(),
            });
            if network.wants_variables() {
                for (owner, variable) in self.flow.take_variables() {
                    network.note(self.number, || Event::Variable { owner, variable });
                }
            }
        }
    }

    /// Records whether only flow control stops new data.
    pub(super) fn note_blocked(&mut self, network: &mut Network) {
        // If flow control lets everything pass, all data is written.
        if self.unwritten == 0 && self.blocked_since.is_none() {
            return;
        }
        let status = self.flow.status();
        let packet = Bytes::new(self.packet());
        let stopped = self.unwritten > 0 && self.sent.contiguous_end(0) >= self.limit;
        let blocked = stopped && status.in_flight + packet <= status.cwnd;
        if blocked == self.blocked_since.is_some() {
            return;
        }
        let (now, limit) = (network.now(), self.limit);
        match self.blocked_since.take() {
            Some(since) => network.record(self.number).flow_control_blocked += now.since(since),
            None => self.blocked_since = Some(now),
        }
        network.note(self.number, || Event::FlowControl { blocked, limit });
    }
}
