//! The named profiles, one for each stack.

use flowstart_core::avoidance::{AvoidanceConfig, bbr, cubic, reno};
use flowstart_core::controller::{
    GrowthRule, Pacing, Reduction, ReductionBase, SlowStartAfterTimeout, TimeoutReduction, WindowValidation,
};
use flowstart_core::startup::{Increase, StartupConfig, hystart, slow_start};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;

use super::Profile;
use crate::transport::policy::{
    AckPolicy, AfterTimeout, IgnoreReceiveWindow, LossDetection, MixedAck, Opening, Pipe, Protocol, ReceiveBuffer,
    RttSamples, SpuriousDetection, TailRepair, TimeoutArithmetic, TimerRestart, TransitionGrowth, WindowTest,
};
use crate::transport::scone::SconePolicy;

impl Profile {
    /// QUIC as in RFC 9000 and 9002: 1200-byte datagrams over IPv4 and Ethernet.
    pub fn rfc9002() -> Self {
        Self {
            protocol: Protocol::Quic,
            opening: Opening::Request,
            // Datagram 1200 = 1 type + 8 connection ID + 2 packet number + 16 tag + 8 stream frame header + payload.
            payload: 1165,
            overhead_in_flight: 35,
            // IPv4 20, UDP 8, Ethernet 14.
            overhead: 35 + 42,
            ack_size: 42 + 11 + 16 + 6,
            ack_range_size: 4,
            ack_ranges: 64,
            opening_size: 1200 + 42,
            answer_packets: 3,
            answer_size: 1200 + 42,
            completion_size: 300 + 42,
            token: true,
            receive_window: Bytes::new(16_000_000),
            initial_receive_window: None,
            receive_buffer: None,
            ignore_receive_window: IgnoreReceiveWindow::Never,
            ack: AckPolicy::new(2, Duration::from_millis(25), 0),
            segment: 1200,
            initial_window: 10,
            min_window: 2,
            max_window: None,
            timeout_window: 2,
            timeout_reduction: TimeoutReduction::EachTimeout,
            slow_start_after_timeout: SlowStartAfterTimeout::Classic,
            increase: Increase::Bytes,
            reduction: Reduction::Immediate,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::NotAppLimited,
            transition_growth: TransitionGrowth::Nothing,
            window_test: WindowTest::Fits,
            packet_threshold: 3,
            time_threshold: Some(1.125),
            loss_detection: LossDetection::SackedAbove,
            loss_probe: false,
            dsack: false,
            spurious_detection: SpuriousDetection::None,
            pipe: Pipe::Scoreboard,
            lost_retransmissions: true,
            min_rto: Duration::ZERO,
            initial_timeout: Duration::from_millis(333),
            // PTO = RTT + 4 * RTT / 2 = 3 * 333 ms (RFC 9002, sections 5.3 and 6.2.1).
            handshake_timeout: Duration::from_millis(999),
            granularity: Duration::from_millis(1),
            sample_resolution: Duration::ZERO,
            rtt_samples: RttSamples::EveryAck,
            timeout_arithmetic: TimeoutArithmetic::Exact,
            timer_restart: TimerRestart::EveryAck,
            mixed_ack: MixedAck::ProgressAndDuplicate,
            tail_repair: TailRepair::Rescue,
            after_timeout: AfterTimeout::Outstanding,
            idle: WindowValidation::Keep,
            ecn: false,
            scone: SconePolicy::None,
            pacing: Some(Pacing { startup_gain: 1.25, ..Pacing::default() }),
            // quiche, from which most QUIC stacks have taken theirs.
            hystart: hystart::Variant::Quic,
            startup: StartupConfig::SlowStart(slow_start::Config::default()),
            avoidance: AvoidanceConfig::Reno(reno::Config::default()),
            other_avoidances: Vec::new(),
        }
    }

    /// QUIC as in noq 1.4.0: the behaviour of `--transport quic`, as far as a profile can describe it. Its token bucket
    /// holds 2 ms at the pacing rate, at least 10 packets but never more than 10 ms. At low initial rates not even an
    /// initial window leaves as one burst. The quantum is that of high rates.
    pub fn noq() -> Self {
        Self {
            // Datagram 1200 = 1 flags + 8 connection ID + 1 packet number + 16 tag + 6 stream frame header + payload.
            payload: 1168,
            overhead_in_flight: 32,
            overhead: 32 + 42,
            answer_packets: 1,
            receive_window: Bytes::new(1_000_000_000),
            pacing: Some(Pacing {
                startup_gain: 1.25,
                burst: 1,
                quantum: Duration::from_millis(2),
                ..Pacing::default()
            }),
            ..Self::rfc9002()
        }
    }

    /// Google's QUIC of 2018: cwnd in units of 1460 bytes while datagrams have 1350, IW 32 of which 10 leave
    /// immediately, paced over half an RTT in slow start and three quarters in congestion avoidance, two emulated CUBIC
    /// connections, hybrid slow start, PRR.
    pub fn gquic() -> Self {
        let cubic = cubic::Config {
            connections: 2,
            convergence_margin: 1.0,
            approach: cubic::Approach::HalfAcked,
            ..cubic::Config::default()
        };
        Self {
            // Datagram 1350 = 1 flags + 8 connection ID + 2 packet number + 12 tag + 5 stream frame header + payload.
            payload: 1322,
            overhead_in_flight: 28,
            overhead: 28 + 42,
            ack_size: 42 + 11 + 12 + 8,
            ack_ranges: 255,
            opening_size: 1350 + 42,
            answer_packets: 1,
            answer_size: 1350 + 42,
            completion_size: 1350 + 42,
            receive_window: Bytes::new(6_000_000),
            segment: 1460,
            initial_window: 32,
            max_window: Some(2000),
            timeout_reduction: TimeoutReduction::HalfWindow,
            slow_start_after_timeout: SlowStartAfterTimeout::Scheme,
            increase: Increase::Packets,
            reduction: Reduction::PrrPerPacket,
            growth: GrowthRule::ThreeSegmentsFree,
            window_test: WindowTest::Open,
            time_threshold: Some(1.25),
            initial_timeout: Duration::from_millis(100),
            handshake_timeout: Duration::from_millis(150),
            // The paper states three quarters of the RTT; the code of the time has a gain of 1.25.
            pacing: Some(Pacing {
                startup_gain: 2.0,
                avoidance_gain: 4.0 / 3.0,
                burst: 10,
                quantum: Duration::from_millis(1),
            }),
            startup: StartupConfig::Hystart(hystart::Config::default()),
            avoidance: AvoidanceConfig::Cubic(cubic),
            ..Self::rfc9002()
        }
    }

    /// TCP as in the RFCs: MSS 1460, no timestamps. One difference: slow start adds all that is acknowledged, without
    /// limit. RFC 5681, section 3.1, allows at most one segment for an acknowledgement (`slow-start:abc_limit=1`), RFC
    /// 3465 two (`abc_limit=2`).
    pub fn tcp_rfc() -> Self {
        Self {
            protocol: Protocol::Tcp,
            payload: 1460,
            overhead_in_flight: 0,
            overhead: 40,
            ack_size: 40,
            ack_range_size: 8,
            ack_ranges: 3,
            opening_size: 40,
            answer_packets: 1,
            answer_size: 40,
            completion_size: 140,
            ack: AckPolicy::new(2, Duration::from_millis(100), 0),
            segment: 1460,
            timeout_window: 1,
            reduction_base: ReductionBase::FlightSize,
            time_threshold: None,
            lost_retransmissions: false,
            min_rto: Duration::from_millis(1000),
            initial_timeout: Duration::from_millis(1000),
            handshake_timeout: Duration::from_millis(1000),
            pacing: None,
            hystart: hystart::Variant::Linux,
            ..Self::rfc9002()
        }
    }

    /// TCP as in Linux: timestamps, CUBIC with HyStart, PRR, an acknowledgement per packet at the start.
    pub fn tcp_linux() -> Self {
        let whole_segments = cubic::Config {
            approach: cubic::Approach::WholeSegments,
            surplus: cubic::Surplus::OneSegment,
            recount_after: Duration::from_micros(31_250),
            beta: 717.0 / 1024.0,
            ..cubic::Config::default()
        };
        Self {
            payload: 1448,
            overhead: 52 + 14,
            ack_size: 52 + 14,
            opening_size: 60 + 14,
            answer_size: 60 + 14,
            completion_size: 152 + 14,
            receive_buffer: Some(ReceiveBuffer::OPEN),
            ack: AckPolicy {
                while_growing: true,
                compression: Some(Duration::from_millis(1)),
                ..AckPolicy::new(2, Duration::from_millis(40), 16)
            },
            segment: 1448,
            timeout_reduction: TimeoutReduction::OncePerWindow,
            slow_start_after_timeout: SlowStartAfterTimeout::Scheme,
            reduction: Reduction::PrrSafe,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::HalfWindow,
            transition_growth: TransitionGrowth::Delivered,
            loss_detection: LossDetection::Rack,
            loss_probe: true,
            dsack: true,
            spurious_detection: SpuriousDetection::Timestamps,
            lost_retransmissions: true,
            timer_restart: TimerRestart::EveryAckAndRepair,
            tail_repair: TailRepair::Timer,
            idle: WindowValidation::Linux,
            min_rto: Duration::from_millis(200),
            // The floor of 200 ms is that of the variation: a timeout is at least the RTT and 200 ms.
            granularity: Duration::from_millis(200),
            sample_resolution: Duration::ZERO,
            startup: StartupConfig::Hystart(hystart::Config::default()),
            avoidance: AvoidanceConfig::Cubic(whole_segments),
            other_avoidances: vec![
                AvoidanceConfig::Reno(reno::Config {
                    whole_segments: true,
                    whole_cuts: true,
                    ..reno::Config::default()
                }),
                AvoidanceConfig::Bbr(bbr::Config { version: bbr::Version::One, ..bbr::Config::default() }),
            ],
            ..Self::tcp_rfc()
        }
    }

    /// ns-2.35's Agent/TCP/Sack1: IW 3, an acknowledgement per packet, classic pipe, the data sender opens.
    pub fn ns2_sack1() -> Self {
        Self {
            opening: Opening::Sender,
            completion_size: 0,
            receive_window: Bytes::new(14_600_000_000),
            ack: AckPolicy::new(1, Duration::ZERO, 0),
            initial_window: 3,
            increase: Increase::Acknowledgements,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::Always,
            pipe: Pipe::Classic,
            tail_repair: TailRepair::Timer,
            min_rto: Duration::from_millis(200),
            initial_timeout: Duration::from_millis(3000),
            handshake_timeout: Duration::from_millis(3000),
            granularity: Duration::from_millis(10),
            ..Self::tcp_rfc()
        }
    }

    /// ns-3 as configured for the reference runs: MSS 1448, 54 bytes of headers, PRR, delayed acknowledgements of 200
    /// ms, no pacing, the data sender opens. After a timeout ns-3 keeps the plateau of CUBIC. It also runs HyStart
    /// again and forgets the smallest RTT, by which CUBIC looks ahead; the profile does not model this.
    pub fn ns3() -> Self {
        let whole_segments = cubic::Config {
            approach: cubic::Approach::WholeSegments,
            after_timeout: cubic::AfterTimeout::KeepPlateau,
            ..cubic::Config::default()
        };
        Self {
            opening: Opening::Sender,
            payload: 1448,
            overhead: 54,
            ack_size: 54,
            opening_size: 58,
            answer_size: 58,
            completion_size: 54,
            receive_window: Bytes::new(64 << 20),
            // The first segment is acknowledged immediately, then every second one.
            ack: AckPolicy::new(2, Duration::from_millis(200), 1),
            segment: 1448,
            reduction: Reduction::PrrSafe,
            reduction_base: ReductionBase::Cwnd,
            growth: GrowthRule::HalfWindow,
            transition_growth: TransitionGrowth::Advance,
            lost_retransmissions: true,
            min_rto: Duration::from_millis(1000),
            initial_timeout: Duration::from_millis(3000),
            handshake_timeout: Duration::from_millis(3000),
            sample_resolution: Duration::from_millis(1),
            timer_restart: TimerRestart::FirstPartialAck,
            mixed_ack: MixedAck::DuplicateOnly,
            tail_repair: TailRepair::PartialAck,
            after_timeout: AfterTimeout::BelowHighestSack,
            hystart: hystart::Variant::Ns3,
            startup: StartupConfig::SlowStart(slow_start::Config::default()),
            avoidance: AvoidanceConfig::Cubic(whole_segments),
            other_avoidances: vec![AvoidanceConfig::Reno(reno::Config {
                whole_segments: true,
                ..reno::Config::default()
            })],
            ..Self::tcp_rfc()
        }
    }
}
