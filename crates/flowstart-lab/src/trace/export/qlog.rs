//! A traced run as a qlog file.
//!
//! The file follows the qlog main schema (draft-ietf-quic-qlog-main-schema-13) and the QUIC events
//! (draft-ietf-quic-qlog-quic-events-12), in which recovery events have the namespace `quic`: a sequence of JSON texts
//! (RFC 7464), `.sqlog` by convention. The vantage point is the data sender. Times are milliseconds of simulated time
//! from the start of the transfer. `group_id` distinguishes several measured flows.
//!
//! | Event | When |
//! |---|---|
//! | `quic:packet_sent`, `quic:packet_received` | a packet leaves or reaches the data sender |
//! | `quic:packet_lost` | the sender declares a packet lost |
//! | `quic:recovery_metrics_updated` | the window, the bytes in flight, the RTT or the pacing rate changed: what changed |
//! | `quic:congestion_state_updated` | startup, recovery and congestion avoidance begin; `trigger`: why startup ended |
//! | `quic:timer_updated` | a retransmission or probe timer fired |
//! | `flowstart:launch` | startup launched: `cwnd_bytes`; `pacing_rate_bps` if it sets one; `sources` with name, value, age and verdict |
//! | `flowstart:hint_received` | a real client's hint: `hinted` and `used`, in bit/s, absent if unreadable and not used |
//! | `flowstart:hint_capped` | the client's hint was out of bounds: `hinted` and `used`, in bit/s |
//! | `flowstart:variable_updated` | if requested, an inner variable changed: `algorithm` (`startup` or `avoidance`), `variable`, `value`, and `unit` (`bytes`, `Mbit/s`, `ms` or empty) |
//! | `flowstart:advised` | throughput advice of the path (SCONE) reached the sender: `rate`, in bit/s |
//! | `flowstart:advice_capped` | throughput advice of the path capped a launch: `advised`, in bit/s, and `congestion_window`, what is left |
//!
//! Details that the simulation does not have are absent: packet numbers of handshake packets, frames other than the
//! stream's and acknowledgements, the reason why a packet counts as lost. TCP has no packet numbers and no packet
//! types: its segments have the type `unknown` and an additional field `tcp`, with `offset` and `length` of the
//! stream's bytes, or with `ack` and `sack` (first byte, byte after the last) counted like them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use flowstart_core::event::Decision;
use flowstart_core::sources::Finding;
use flowstart_core::time::Timestamp;
use flowstart_core::units::{Bytes, Rate};
use flowstart_core::variable::Variable;
use flowstart_quic::qlog::{SCHEMA, decision_events};
use flowstart_sim::observe::trace::{Entry, Event, HostPacket};
use flowstart_sim::packet::Body;
use flowstart_sim::transport::handshake::{ANSWER, OPEN, PARTIAL};
use flowstart_sim::transport::policy::{Opening, Protocol};
use flowstart_sim::transport::profile::Profile;
use qlog::events::quic::{
    AckRange, PacketHeader, PacketLost, PacketReceived, PacketSent, PacketType, QuicFrame, RecoveryMetricsUpdated,
    TimerEventType, TimerType, TimerUpdated,
};
use qlog::events::{EventData, QUIC_URI, RawInfo};
use qlog::{CommonFields, QLOGFILESEQ_URI, QlogSeq, ReferenceTime, TraceSeq, VantagePoint, VantagePointType};
use serde::Serialize;
use serde_json::{Value, json};

use super::{lower_headers, title};
use crate::study::plan::{Cell, Plan};
use crate::trace::traced::TracedRun;

/// Stands before every JSON text (RFC 7464).
const RECORD_SEPARATOR: &[u8] = b"\x1e";

/// An event as a line of the file.
#[derive(Serialize)]
struct Line<'a, T> {
    /// Milliseconds.
    time: f64,
    /// Name and data.
    #[serde(flatten)]
    event: T,
    /// The measured flow, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
}

/// An event that the library does not define.
#[derive(Serialize)]
struct Extended {
    name: &'static str,
    data: Value,
}

/// The state of a flow so far.
struct Flow {
    profile: Arc<Profile>,
    /// QUIC packets in flight: stream offset and packet number.
    offsets: BTreeSet<(u64, u64)>,
    /// QUIC packets in flight: packet number, stream offset and length.
    numbers: BTreeMap<u64, (u64, u32)>,
    /// Congestion state.
    state: Option<&'static str>,
    metrics: RecoveryMetricsUpdated,
    /// What sources have stated of its path.
    sources: Vec<Finding>,
    group: Option<String>,
}

impl TracedRun {
    /// Writes the measured flows as the data sender sees them, as qlog in JSON text sequences.
    pub fn write_qlog(&self, plan: &Plan, cell: &Cell, out: &mut dyn Write) -> io::Result<()> {
        let mut log = Log::new(out, plan, cell, self.finished.start)?;
        log.follow(&self.finished.flows);
        let Some(trace) = &self.finished.world.network.trace else { return Ok(()) };
        trace.sources.iter().for_each(|(flow, sources)| log.take_sources(*flow, sources));
        let mut packets = trace.packets.iter().peekable();
        for (index, entry) in trace.entries.iter().enumerate() {
            while let Some(packet) = packets.next_if(|packet| packet.entries_before <= index) {
                log.write_packet(packet, trace.ranges_of(packet))?;
            }
            log.write_event(entry)?;
        }
        packets.try_for_each(|packet| log.write_packet(packet, trace.ranges_of(packet)))
    }
}

/// A log that grows by one event at a time.
pub(super) struct Log<W> {
    pub(super) out: W,
    start: Timestamp,
    profile: Arc<Profile>,
    /// The measured flows, numbered in order from the first on.
    first: u32,
    flows: Vec<Flow>,
}

impl<W: Write> Log<W> {
    /// A log of a run whose newcomers start at `start`.
    pub(super) fn new(mut out: W, plan: &Plan, cell: &Cell, start: Timestamp) -> io::Result<Self> {
        let profile = plan.profile(cell);
        let initiates = profile.opening == Opening::Sender;
        let header = QlogSeq {
            file_schema: QLOGFILESEQ_URI.to_owned(),
            serialization_format: "application/qlog+json-seq".to_owned(),
            title: Some(title(plan, cell)),
            description: Some("simulated; times count from the start of the transfer".to_owned()),
            trace: TraceSeq {
                title: None,
                description: None,
                common_fields: Some(CommonFields {
                    reference_time: ReferenceTime::new_monotonic(None),
                    ..CommonFields::default()
                }),
                vantage_point: Some(VantagePoint {
                    name: Some("data sender".to_owned()),
                    ty: if initiates { VantagePointType::Client } else { VantagePointType::Server },
                    flow: None,
                }),
                event_schemas: vec![QUIC_URI.to_owned(), SCHEMA.to_owned()],
            },
        };
        write_record(&mut out, &header)?;
        Ok(Self { out, start, profile, first: u32::MAX, flows: Vec::new() })
    }

    /// Sets the measured flows, numbered in order.
    pub(super) fn follow(&mut self, flows: &[u32]) {
        let several = flows.len() > 1;
        let flow = |place| Flow {
            profile: self.profile.clone(),
            offsets: BTreeSet::new(),
            numbers: BTreeMap::new(),
            state: None,
            metrics: RecoveryMetricsUpdated::default(),
            sources: Vec::new(),
            group: several.then(|| format!("flow-{place}")),
        };
        self.first = flows.first().copied().unwrap_or(u32::MAX);
        self.flows = (0..flows.len()).map(flow).collect();
    }

    /// Milliseconds from the start of the transfer, as exact as the format can be.
    fn millis(&self, time: Timestamp) -> f64 {
        (time.as_nanos() as i64 - self.start.as_nanos() as i64) as f64 / 1e6
    }

    /// What sources have stated to a flow that is about to launch, if it is a measured one.
    pub(super) fn take_sources(&mut self, flow: u32, sources: &[Finding]) {
        if let Some(flow) = self.flows.get_mut(flow.wrapping_sub(self.first) as usize) {
            flow.sources = sources.to_vec();
        }
    }

    /// An event, if it is a measured flow's.
    pub(super) fn write_event(&mut self, entry: &Entry) -> io::Result<()> {
        let millis = self.millis(entry.time);
        match self.flows.get_mut(entry.flow.wrapping_sub(self.first) as usize) {
            Some(flow) => flow.write_event(millis, &entry.event, &mut self.out),
            None => Ok(()),
        }
    }

    /// A packet, if the sender of a measured flow sees it.
    pub(super) fn write_packet(&mut self, packet: &HostPacket, ranges: &[(u64, u64)]) -> io::Result<()> {
        let millis = self.millis(packet.time);
        match self.flows.get_mut(packet.flow.wrapping_sub(self.first) as usize) {
            Some(flow) if packet.is_at_sender() => flow.write_packet(millis, packet, ranges, &mut self.out),
            _ => Ok(()),
        }
    }
}

impl Flow {
    fn write(&self, time: f64, event: impl Serialize, out: &mut dyn Write) -> io::Result<()> {
        write_record(out, &Line { time, event, group_id: self.group.as_deref() })
    }

    fn write_packet(
        &mut self,
        time: f64,
        packet: &HostPacket,
        ranges: &[(u64, u64)],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let is_quic = self.profile.protocol == Protocol::Quic;
        let length = u64::from(packet.size.saturating_sub(lower_headers(&self.profile)));
        let mut header = PacketHeader::default();
        let mut raw = RawInfo { length: Some(length), ..RawInfo::default() };
        let mut frames = None;
        let mut tcp = None;
        match packet.body {
            Body::Handshake { flight, .. } if is_quic => {
                header.packet_type = match flight {
                    OPEN => PacketType::Initial,
                    ANSWER | PARTIAL => PacketType::Handshake,
                    _ if self.profile.opening == Opening::ZeroRtt => PacketType::ZeroRtt,
                    _ => PacketType::OneRtt,
                };
            }
            Body::Handshake { .. } => {}
            Body::Data { number, offset, len, .. } => {
                if is_quic {
                    header = numbered(number);
                    self.offsets.insert((offset, number));
                    self.numbers.insert(number, (offset, len));
                } else {
                    tcp = Some(json!({ "offset": offset, "length": len }));
                }
                raw.payload_length = Some(u64::from(len));
                frames = Some(vec![stream(offset, len)]);
            }
            Body::Acknowledgement(ack) if is_quic => {
                header.packet_type = PacketType::OneRtt;
                // Without ranges, everything from the oldest packet in flight on was received.
                let first = self.numbers.keys().next().map_or(ack.position, |first| *first.min(&ack.position));
                let all = [(first, ack.position + 1)];
                let acked = if ranges.is_empty() { &all } else { ranges };
                self.forget(acked);
                frames = Some(vec![QuicFrame::Ack {
                    ack_delay: Some(ack.delay.as_millis_f64() as f32),
                    acked_ranges: Some(acked.iter().map(|(start, end)| AckRange::new(*start, end - 1)).collect()),
                    ect1: None,
                    ect0: None,
                    ce: (ack.ce_count > 0).then_some(u64::from(ack.ce_count)),
                    raw: None,
                }]);
            }
            Body::Acknowledgement(ack) => tcp = Some(json!({ "ack": ack.position, "sack": ranges })),
        }
        let raw = Some(raw);
        let event = if packet.reached {
            EventData::QuicPacketReceived(PacketReceived {
                header,
                raw,
                frames,
                stateless_reset_token: None,
                supported_versions: None,
                datagram_id: None,
                trigger: None,
            })
        } else {
            EventData::QuicPacketSent(PacketSent { header, raw, frames, ..PacketSent::default() })
        };
        match tcp {
            None => self.write(time, event, out),
            Some(tcp) => {
                let mut event = serde_json::to_value(event)?;
                event["data"]["tcp"] = tcp;
                self.write(time, event, out)
            }
        }
    }

    /// Acknowledged packets are not in flight any more.
    fn forget(&mut self, acked: &[(u64, u64)]) {
        for &(start, end) in acked {
            while let Some((&number, &(offset, _))) = self.numbers.range(start..end).next() {
                self.numbers.remove(&number);
                self.offsets.remove(&(offset, number));
            }
        }
    }

    fn write_event(&mut self, time: f64, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        match *event {
            Event::DeclaredLost { offset, len } => self.write_lost(time, offset, len, out),
            Event::Window { cwnd, ssthresh, in_flight, pacing_rate, srtt_nanos } => {
                let metrics = RecoveryMetricsUpdated {
                    smoothed_rtt: Some((srtt_nanos as f64 / 1e6) as f32),
                    congestion_window: Some(cwnd.get()),
                    bytes_in_flight: Some(in_flight.get()),
                    ssthresh: Some(ssthresh.get()).filter(|_| ssthresh != Bytes::MAX),
                    pacing_rate: pacing_rate.map(Rate::bits_per_sec),
                    ..RecoveryMetricsUpdated::default()
                };
                let known = std::mem::replace(&mut self.metrics, metrics.clone());
                let changed = RecoveryMetricsUpdated {
                    smoothed_rtt: metrics.smoothed_rtt.filter(|_| metrics.smoothed_rtt != known.smoothed_rtt),
                    congestion_window: changed(metrics.congestion_window, known.congestion_window),
                    bytes_in_flight: changed(metrics.bytes_in_flight, known.bytes_in_flight),
                    ssthresh: changed(metrics.ssthresh, known.ssthresh),
                    pacing_rate: changed(metrics.pacing_rate, known.pacing_rate),
                    ..RecoveryMetricsUpdated::default()
                };
                if changed == RecoveryMetricsUpdated::default() {
                    return Ok(());
                }
                self.write(time, EventData::QuicMetricsUpdated(changed), out)
            }
            Event::FlowControl { blocked, limit } => {
                let name = if blocked { "flowstart:flow_control_blocked" } else { "flowstart:flow_control_unblocked" };
                self.write(time, Extended { name, data: json!({ "limit": limit }) }, out)
            }
            Event::Written { end } => {
                self.write(time, Extended { name: "flowstart:written", data: json!({ "end": end }) }, out)
            }
            Event::Hint { told, used } => {
                let bits = |rate: Option<Rate>| rate.map(Rate::bits_per_sec);
                let mut data = serde_json::Map::new();
                for (field, rate) in [("hinted", bits(told)), ("used", bits(used))] {
                    data.extend(rate.map(|rate| (field.to_owned(), json!(rate))));
                }
                self.write(time, Extended { name: "flowstart:hint_received", data: Value::Object(data) }, out)
            }
            Event::Advised { rate } => {
                let data = json!({ "rate": rate.bits_per_sec() });
                self.write(time, Extended { name: "flowstart:advised", data }, out)
            }
            Event::Variable { owner, variable: Variable { name, unit, value } } => {
                let data = json!({ "algorithm": owner.name(), "variable": name, "value": value, "unit": unit.name() });
                self.write(time, Extended { name: "flowstart:variable_updated", data }, out)
            }
            Event::TimerFired => {
                let timer_type = match self.profile.protocol {
                    Protocol::Quic => TimerType::Pto,
                    Protocol::Tcp => TimerType::LossTimeout,
                };
                let expired = TimerUpdated {
                    timer_type: Some(timer_type),
                    timer_id: None,
                    packet_number_space: None,
                    event_type: TimerEventType::Expired,
                    delta: None,
                };
                self.write(time, EventData::QuicTimerUpdated(expired), out)
            }
            Event::Decided(decision) => self.write_decision(time, decision, out),
            // Packets come from the events at hosts; queues and the receiver are outside the sender's view.
            Event::Sent { .. }
            | Event::Received { .. }
            | Event::Acknowledged { .. }
            | Event::Dropped { .. }
            | Event::Queue { .. }
            | Event::Departed { .. } => Ok(()),
        }
    }

    fn write_lost(&mut self, time: f64, offset: u64, len: u32, out: &mut dyn Write) -> io::Result<()> {
        let frames = Some(vec![stream(offset, len)]);
        if self.profile.protocol == Protocol::Tcp {
            let lost = PacketLost { header: Some(PacketHeader::default()), frames, ..PacketLost::default() };
            let mut event = serde_json::to_value(EventData::QuicPacketLost(lost))?;
            event["data"]["tcp"] = json!({ "offset": offset, "length": len });
            return self.write(time, event, out);
        }
        // Among packets with the same bytes, the oldest is declared lost first.
        let number = self.offsets.range((offset, 0)..=(offset, u64::MAX)).next().map(|(_, number)| *number);
        let header = number.map(|number| {
            self.offsets.remove(&(offset, number));
            self.numbers.remove(&number);
            numbered(number)
        });
        let lost = PacketLost { header, frames, ..PacketLost::default() };
        self.write(time, EventData::QuicPacketLost(lost), out)
    }

    fn write_decision(&mut self, time: f64, decision: Decision, out: &mut dyn Write) -> io::Result<()> {
        let collapse = match self.profile.protocol {
            Protocol::Quic => "persistent_congestion",
            Protocol::Tcp => "retransmission_timeout",
        };
        let events = decision_events(decision, &self.sources, &mut self.state, collapse);
        if matches!(decision, Decision::Launched { .. }) {
            // Later ones, on another path or after idle time, start from what the connection itself knows.
            self.sources.clear();
        }
        events.into_iter().try_for_each(|(name, data)| self.write(time, Extended { name, data }, out))
    }
}

/// A value that differs from the known one.
fn changed(value: Option<u64>, known: Option<u64>) -> Option<u64> {
    value.filter(|_| value != known)
}

/// The header of a QUIC packet with payload.
fn numbered(number: u64) -> PacketHeader {
    PacketHeader { packet_type: PacketType::OneRtt, packet_number: Some(number), ..PacketHeader::default() }
}

/// A piece of the stream.
fn stream(offset: u64, len: u32) -> QuicFrame {
    let raw = RawInfo { payload_length: Some(u64::from(len)), ..RawInfo::default() };
    QuicFrame::Stream { stream_id: 0, offset: Some(offset), fin: None, raw: Some(Box::new(raw)) }
}

fn write_record(out: &mut dyn Write, record: &impl Serialize) -> io::Result<()> {
    out.write_all(RECORD_SEPARATOR)?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}
