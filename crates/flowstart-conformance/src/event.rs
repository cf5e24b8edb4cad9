//! Events of a vector, and their lines: flat JSON of whole numbers and names. Names end with their units.

use flowstart_core::path::{AccessTechnology, Concurrent, Hint, PathKnowledge, SavedPath};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::window::Window;
use serde_json::{Map, Value, json};

/// What a host knows of the path. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// RTT of the handshake in nanoseconds.
    pub handshake_rtt: u64,
    /// Bytes that an earlier connection delivered in one RTT.
    pub saved_cwnd: u64,
    /// Its smallest RTT in nanoseconds.
    pub saved_rtt: u64,
    /// How long ago that was, in nanoseconds.
    pub saved_age: u64,
    /// The receiver's window in bytes.
    pub receive_window: u64,
    /// Bytes that wait to be sent.
    pub bytes_waiting: u64,
    /// The client's hint in bits per second.
    pub hint: u64,
    /// The rate that the application asks for, in bits per second.
    pub requested: u64,
    /// Speed of the sender's interface in bits per second.
    pub interface: u64,
    /// The rate that routers approved, in bits per second.
    pub approved: u64,
    /// A capacity oracle's answer in bits per second.
    pub oracle: u64,
    /// The rate at which the client saw the handshake arrive, in bits per second.
    pub train: u64,
    /// The rate that elements of the path advise, in bits per second.
    pub advised: u64,
    /// This connection's share of the windows of others to the same peer, in bytes.
    pub shared_cwnd: u64,
    /// The same share of their thresholds in bytes; unknown as long as none of them has left slow start.
    pub shared_ssthresh: u64,
    /// The smallest RTT that they saw, in nanoseconds.
    pub shared_rtt: u64,
}

impl Known {
    /// The names of its fields in lines, and their values.
    fn fields(&self) -> [(&'static str, u64); 16] {
        [
            ("handshake_rtt_ns", self.handshake_rtt),
            ("saved_cwnd_bytes", self.saved_cwnd),
            ("saved_rtt_ns", self.saved_rtt),
            ("saved_age_ns", self.saved_age),
            ("receive_window_bytes", self.receive_window),
            ("bytes_waiting", self.bytes_waiting),
            ("hint_bits_per_s", self.hint),
            ("requested_bits_per_s", self.requested),
            ("interface_bits_per_s", self.interface),
            ("approved_bits_per_s", self.approved),
            ("oracle_bits_per_s", self.oracle),
            ("train_bits_per_s", self.train),
            ("advised_bits_per_s", self.advised),
            ("shared_cwnd_bytes", self.shared_cwnd),
            ("shared_ssthresh_bytes", self.shared_ssthresh),
            ("shared_rtt_ns", self.shared_rtt),
        ]
    }

    /// As the controller takes it.
    pub fn path(&self) -> PathKnowledge {
        let some = |value: u64| Some(value).filter(|value| *value > 0);
        let span = |nanos: u64| some(nanos).map(Duration::from_nanos);
        let rate = |bits: u64| some(bits).map(Rate::from_bits_per_sec);
        let age = Duration::from_nanos(self.saved_age);
        let ssthresh = some(self.shared_ssthresh).map_or(Bytes::MAX, Bytes::new);
        PathKnowledge {
            handshake_rtt: span(self.handshake_rtt),
            saved: span(self.saved_rtt).zip(some(self.saved_cwnd)).map(|(rtt, cwnd)| SavedPath {
                rtt,
                cwnd: Bytes::new(cwnd),
                age,
            }),
            receive_window: some(self.receive_window).map(Bytes::new),
            bytes_waiting: some(self.bytes_waiting).map(Bytes::new),
            hint: rate(self.hint).map(|bandwidth| Hint { bandwidth, technology: AccessTechnology::Unknown }),
            requested_rate: rate(self.requested),
            interface_rate: rate(self.interface),
            approved_rate: rate(self.approved),
            advised_rate: rate(self.advised),
            oracle_rate: rate(self.oracle),
            train_rate: rate(self.train),
            concurrent: span(self.shared_rtt)
                .zip(some(self.shared_cwnd))
                .map(|(rtt, cwnd)| Concurrent { rtt, window: Window { cwnd: Bytes::new(cwnd), ssthresh } }),
        }
    }
}

/// What an acknowledgement says, or a timer that finds losses: then nothing is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// When, in nanoseconds.
    pub now: u64,
    /// Largest packet number; counts only with bytes delivered or packets marked.
    pub largest: u64,
    /// Bytes newly delivered.
    pub bytes: u64,
    /// Packets newly delivered.
    pub packets: u64,
    /// Bytes in flight after it and after the losses before it.
    pub in_flight: u64,
    /// RTT sample in nanoseconds; 0: none.
    pub rtt: u64,
    /// Packets newly reported as marked.
    pub marks: u64,
    /// 1: nothing waited, and the newest of these packets did not leave a full window.
    pub app_limited: u64,
    /// 1: the losses before it establish persistent congestion.
    pub persistent: u64,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Data may leave.
    Launch {
        /// When.
        now: u64,
        /// What is known.
        known: Known,
    },
    /// Packets with consecutive numbers left together.
    Sent {
        /// When.
        now: u64,
        /// Number of the first.
        number: u64,
        /// How many.
        packets: u64,
        /// Bytes of each.
        bytes: u64,
        /// Bytes in flight with the last.
        in_flight: u64,
    },
    /// Packets with consecutive numbers were declared lost; the window moves with the [`Event::Acked`] that follows.
    Lost {
        /// Number of the first.
        number: u64,
        /// How many.
        packets: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// An acknowledgement.
    Acked(Acked),
    /// Time passes, and what the scheme has timed happens if it is due.
    Timer {
        /// When.
        now: u64,
    },
    /// A retransmission timeout (RFC 6298): all in flight is lost.
    Timeout {
        /// When.
        now: u64,
        /// Bytes in flight before it.
        in_flight: u64,
    },
    /// All packets behind the last reduction were delivered after all.
    Spurious {
        /// When.
        now: u64,
    },
    /// Full packets have another size from now on; nothing is in flight.
    Segment {
        /// Their bytes.
        bytes: u64,
    },
    /// Packets take another path from now on, and the scheme launches anew; nothing is in flight.
    Path {
        /// When.
        now: u64,
        /// What is known of the new path.
        known: Known,
    },
}

/// What a controller has decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Congestion window in bytes, at least two packets.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; 0: none yet.
    pub ssthresh: u64,
    /// Pacing rate in bits per second; 0: as the window allows.
    pub pacing_rate: u64,
    /// Whether the startup scheme moves the window.
    pub in_startup: bool,
    /// Why startup ended; empty: it has not.
    pub exit_reason: String,
}

/// An event, and what is decided behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The event.
    pub event: Event,
    /// What is expected.
    pub decided: Decided,
}

impl Event {
    /// Its name in lines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Launch { .. } => "launch",
            Self::Sent { .. } => "sent",
            Self::Lost { .. } => "lost",
            Self::Acked(_) => "acked",
            Self::Timer { .. } => "timer",
            Self::Timeout { .. } => "timeout",
            Self::Spurious { .. } => "spurious",
            Self::Segment { .. } => "segment",
            Self::Path { .. } => "path",
        }
    }

    /// What happens, as members of a line.
    pub(crate) fn members(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Launch { now, known } | Self::Path { now, known } => {
                [("now_ns", now)].into_iter().chain(known.fields()).collect()
            }
            Self::Sent { now, number, packets, bytes, in_flight } => vec![
                ("now_ns", now),
                ("packet_number", number),
                ("packets", packets),
                ("packet_bytes", bytes),
                ("in_flight_bytes", in_flight),
            ],
            Self::Lost { number, packets, bytes } => {
                vec![("packet_number", number), ("packets", packets), ("packet_bytes", bytes)]
            }
            Self::Acked(acked) => vec![
                ("now_ns", acked.now),
                ("largest_acked", acked.largest),
                ("delivered_bytes", acked.bytes),
                ("delivered_packets", acked.packets),
                ("in_flight_bytes", acked.in_flight),
                ("rtt_ns", acked.rtt),
                ("ce_packets", acked.marks),
                ("app_limited", acked.app_limited),
                ("persistent_congestion", acked.persistent),
            ],
            Self::Timer { now } | Self::Spurious { now } => vec![("now_ns", now)],
            Self::Timeout { now, in_flight } => vec![("now_ns", now), ("in_flight_bytes", in_flight)],
            Self::Segment { bytes } => vec![("segment_bytes", bytes)],
        }
    }
}

impl Decided {
    /// What is expected, as members of a line.
    pub(crate) fn write(&self, line: &mut Map<String, Value>) {
        line.insert("expect_cwnd_bytes".into(), json!(self.cwnd));
        line.insert("expect_ssthresh_bytes".into(), json!(self.ssthresh));
        line.insert("expect_pacing_rate_bits_per_s".into(), json!(self.pacing_rate));
        line.insert("expect_in_startup".into(), json!(u64::from(self.in_startup)));
        line.insert("expect_exit_reason".into(), json!(self.exit_reason));
    }
}
