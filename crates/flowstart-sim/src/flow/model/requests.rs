//! Requests of the receiver for one object after the other: each travels with an acknowledgement, as the model has no
//! bytes for requests.
//!
//! Nothing may follow on a connection without data in flight, so a request without an answer is repeated. The timeout
//! is that of an end whose only RTT sample R is the handshake's: R + 4 * R / 2 (RFC 6298, section 2.2, RFC 9002,
//! section 5.3), and twice as long after each repetition.
//!
//! With pipelining a request follows while earlier answers are on their way. Their acknowledgements repeat it, should
//! it get lost, since each says how many requests there were.
//!
//! Differences: a client of HTTP/3 would also wait for the server's `max_ack_delay`, as part of its probe timeout (RFC
//! 9002, section 6.2.1). The profile's `granularity`, the least that four times the variation counts for, is left out,
//! though the timeout of its sender's data has it (`transport/tcp/mod.rs`). It matters where it is more than two RTTs:
//! `tcp-linux` has 200 ms, so over 50 ms Linux repeats a request after 250 ms, and this model after 200 ms (`min_rto`).

use flowstart_core::time::{Duration, Timestamp};

use super::ModelEnds;
use crate::network::Network;

/// Most repetitions that double the timeout.
const MOST_DOUBLINGS: u32 = 6;

/// The request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Data from here on answers it.
    answer_from: u64,
    /// When it is repeated.
    pub(super) repeat_at: Timestamp,
    repetitions: u32,
}

impl ModelEnds {
    /// The receiver requests the next object over the open connection.
    pub(crate) fn request_next(&mut self, network: &mut Network) {
        let answer_from = self.receiver.contiguous();
        self.receiver.request(network);
        self.schedule_receiver(network);
        self.asked =
            Some(Asked { answer_from, repeat_at: network.now() + self.answer_timeout(network), repetitions: 0 });
        self.schedule_application(network);
    }

    fn answer_timeout(&self, network: &mut Network) -> Duration {
        let rtt = network.record(self.id.index).handshake_rtt;
        rtt.map_or(self.profile.initial_timeout, |rtt| (rtt * 3).max(self.profile.min_rto))
    }

    /// Data up to here has arrived.
    pub(super) fn take_answer(&mut self, end: u64) {
        self.asked.take_if(|asked| end > asked.answer_from);
    }

    /// Repeats a request whose answer is overdue.
    pub(super) fn repeat_request(&mut self, network: &mut Network) {
        let now = network.now();
        let timeout = self.answer_timeout(network);
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.repeat_at <= now) else { return };
        asked.repetitions += 1;
        asked.repeat_at = now + timeout * (1 << asked.repetitions.min(MOST_DOUBLINGS));
        self.receiver.repeat_request(network);
    }
}
