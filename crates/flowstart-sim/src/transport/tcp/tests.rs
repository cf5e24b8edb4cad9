use std::sync::Arc;

use flowstart_core::controller::Controller;
use flowstart_core::startup::Increase;
use flowstart_core::units::Rate;

use super::segment::Segment;
use super::*;
use crate::link::LinkConfig;
use crate::network::Route;
use crate::packet::FlowId;
use crate::traffic::Pattern;
use crate::transport::profile::Profile;

const SEGMENTS: u64 = 20;

/// A sender that has just sent all its segments, numbered from 0.
struct Bench {
    network: Network,
    sender: TcpSender,
    source: Source,
    segment: u64,
    /// CE marks that acknowledgements echo.
    ce_count: u32,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Profile)) -> Self {
        let mut profile = Profile::named("tcp-rfc").unwrap();
        profile.initial_window = SEGMENTS;
        change(&mut profile);
        let segment = u64::from(profile.payload);
        let mut network = Network::new(1);
        let link = network.add_link(&LinkConfig::new(Rate::from_mbit(1000), Duration::from_millis(10)));
        network.set_route(0, &Route { forward: vec![link], back: Vec::new() });
        let mut source = Source::new(Pattern::Transfer(Bytes::new(SEGMENTS * segment)), 1, 0);
        source.start(Timestamp::ZERO);
        let controller =
            Controller::new(profile.controller(profile.startup.clone(), profile.avoidance.clone())).unwrap();
        let base = SenderBase::new(FlowId { index: 0, generation: 0 }, Arc::new(profile), controller);
        let mut sender = TcpSender::new(base);
        sender.base.launch(&mut network, &mut Sources::default());
        sender.pump(&mut network, &source);
        Self { network, sender, source, segment, ce_count: 0 }
    }

    /// An acknowledgement of everything below segment `next`, with these segments SACKed; returns how many packets
    /// leave.
    fn ack(&mut self, next: u64, sacked: &[u64]) -> u64 {
        let before = self.network.record(0).data_packets;
        let blocks = sacked.iter().map(|index| (index * self.segment, (index + 1) * self.segment));
        let ranges = (!sacked.is_empty()).then(|| self.network.ranges.insert(blocks));
        let ack = Acknowledgement {
            position: next * self.segment,
            ranges,
            delay: Duration::ZERO,
            echo: Timestamp::ZERO,
            limit: u64::MAX,
            ce_count: self.ce_count,
            requests: 0,
        };
        self.sender.on_acknowledgement(&mut self.network, &ack);
        self.sender.pump(&mut self.network, &self.source);
        self.network.record(0).data_packets - before
    }

    fn outstanding(&self) -> impl Iterator<Item = &Segment> {
        (0..self.sender.board.len()).map(|index| self.sender.board.segment(index))
    }

    fn in_flight(&self) -> u64 {
        self.sender.base.in_flight.get() / self.segment
    }
}

#[test]
fn recovery_begins_with_a_retransmission_whatever_the_window() {
    let mut bench = Bench::new(|_| {});
    assert_eq!((bench.ack(0, &[1]), bench.ack(0, &[2, 1])), (0, 0));
    // 18 in flight, cut to 9; 20 - 3 SACKed - 1 lost = 16 are left, and yet segment 0 leaves: 17.
    assert_eq!(bench.ack(0, &[18, 2, 1]), 1);
    assert_eq!((bench.sender.base.controller.cwnd().get() / bench.segment, bench.in_flight()), (9, 17));
}

#[test]
fn a_mark_halves_what_was_in_flight_before_its_acknowledgement() {
    let mut bench = Bench::new(|_| {});
    bench.ce_count = 1;
    bench.ack(10, &[]);
    // 20 in flight become 10. What left before the reduction does not let the window grow.
    assert_eq!(bench.sender.base.controller.cwnd().get() / bench.segment, 10);
}

#[test]
fn what_is_retransmitted_without_evidence_counts_twice_until_it_is_known_lost() {
    let mut bench = Bench::new(|profile| profile.tail_repair = TailRepair::Timer);
    bench.ack(0, &[1]);
    bench.ack(0, &[2, 1]);
    bench.ack(0, &[17, 2, 1]);
    // Segments 0 and 3 to 14 are known lost once 15 to 17 are SACKed; 18 is not: only 19 is SACKed above it.
    bench.ack(0, &[17, 16, 15]);
    bench.ack(0, &[19]);
    // The copy of 0, segment 18 and seven of the holes fill the window of 9.
    assert_eq!(bench.in_flight(), 9);
    // 11 segments more arrive; holes 11 to 14 and then, for want of anything else, 18.
    bench.ack(11, &[19]);
    assert!(bench.outstanding().any(|s| s.seq == 18 * bench.segment && s.retransmitted && !s.lost));
    // Retransmitted 11 to 14, and 18 twice.
    assert_eq!(bench.in_flight(), 6);
}

#[test]
fn an_acknowledgement_that_advances_and_sacks_is_the_first_duplicate() {
    let mut bench = Bench::new(|_| {});
    bench.ack(0, &[2]);
    bench.ack(0, &[3, 2]);
    // Cumulative: the two before it no longer count (RFC 6675, section 5).
    bench.ack(1, &[5, 3, 2]);
    assert_eq!(bench.sender.duplicates, 1);
    assert!(bench.sender.board.segment(0).lost, "but three SACKed segments above the first one tell of its loss");
}

#[test]
fn as_a_duplicate_only_it_leaves_window_and_count_alone() {
    let grown = |mixed_ack| {
        let mut bench = Bench::new(|profile| profile.mixed_ack = mixed_ack);
        bench.ack(1, &[3]);
        let before = bench.sender.duplicates;
        bench.ack(2, &[4, 3]);
        (before, bench.sender.duplicates, bench.sender.base.controller.cwnd().get() / bench.segment)
    };
    assert_eq!(grown(MixedAck::DuplicateOnly), (1, 2, 20));
    assert_eq!(grown(MixedAck::ProgressAndDuplicate), (1, 1, 24));
}

#[test]
fn by_time_reordering_is_waited_for_until_the_threshold_is_sacked() {
    let sacked_at_repair = |threshold| {
        let mut bench = Bench::new(|profile| {
            (profile.loss_detection, profile.packet_threshold) = (LossDetection::Rack, threshold);
        });
        // The reordering window is 10 ms, and the bench's clock stands still.
        bench.sender.base.rtt.update(Timestamp::ZERO, Duration::from_millis(40), Duration::ZERO);
        (1..10).find(|last| bench.ack(0, &(1..=*last).rev().collect::<Vec<_>>()) > 0)
    };
    assert_eq!((sacked_at_repair(3), sacked_at_repair(5)), (Some(3), Some(5)));
}

/// The last segment is lost together with the first.
fn tail(tail_repair: TailRepair) -> (u64, u64) {
    let mut bench = Bench::new(|profile| profile.tail_repair = tail_repair);
    for last in 3..19 {
        bench.ack(0, &[last - 2, last - 1, last]);
    }
    (bench.network.record(0).retransmissions, bench.ack(19, &[]))
}

#[test]
fn a_lost_tail_is_repaired_as_the_policy_says() {
    // Rule 4: the last segment leaves when the window has room.
    assert_eq!(tail(TailRepair::Rescue), (2, 0));
    assert_eq!(tail(TailRepair::PartialAck), (1, 1));
    assert_eq!(tail(TailRepair::Timer), (1, 0));
}

#[test]
fn after_a_timeout_everything_or_what_lies_below_a_sack_is_sent_again() {
    let sent = |after_timeout| {
        let mut bench = Bench::new(|profile| profile.after_timeout = after_timeout);
        bench.ack(0, &[2]);
        bench.sender.on_timeout(&mut bench.network);
        bench.sender.pump(&mut bench.network, &bench.source);
        // Segment 0 has arrived: the window of 2 takes segment 1, and segment 3 if nothing is below.
        bench.ack(1, &[2])
    };
    assert_eq!(sent(AfterTimeout::Outstanding), 2);
    assert_eq!(sent(AfterTimeout::BelowHighestSack), 1);
    // Segments 1 and 2, as if nothing had been SACKed.
    assert_eq!(sent(AfterTimeout::GoBackN), 2);
}

#[test]
fn who_goes_back_sends_nothing_after_three_duplicates() {
    let mut bench = Bench::new(|profile| {
        (profile.pipe, profile.after_timeout) = (Pipe::Classic, AfterTimeout::GoBackN);
        profile.increase = Increase::Acknowledgements;
    });
    bench.sender.on_timeout(&mut bench.network);
    bench.sender.pump(&mut bench.network, &bench.source);
    // Before anything is acknowledged duplicates are from before the timeout.
    assert_eq!(bench.ack(0, &[5]), 0);
    // The window grows to 2, and each of the first two duplicates lets one more out.
    assert_eq!((bench.ack(1, &[5]), bench.ack(1, &[6, 5]), bench.ack(1, &[7, 5])), (2, 1, 1));
    assert_eq!((bench.ack(1, &[8, 5]), bench.ack(1, &[9, 5])), (0, 0));
    // 5 segments are acknowledged: the window is 3, and 5 to 7 leave although they were SACKed.
    assert_eq!(bench.ack(5, &[9]), 3);
    assert_eq!(bench.sender.base.in_flight, Bytes::new(3 * bench.segment));
}

/// The number of window reductions after half of the segments were sent, a probe repeated the last of them, and two
/// acknowledgements covered everything. The first acknowledgement has these blocks.
fn cuts_after_probe(again: bool, blocks: &[u64]) -> u64 {
    let mut bench = Bench::new(|profile| (profile.loss_probe, profile.initial_window) = (true, SEGMENTS / 2));
    if again {
        bench.sender.base.limit = bench.sender.board.high();
    }
    bench.sender.probe_due = true;
    bench.sender.pump(&mut bench.network, &bench.source);
    assert_eq!(bench.network.record(0).retransmissions, u64::from(again));
    let high = bench.sender.board.high();
    assert_eq!(bench.sender.probed, Some(Probe { high, again }));
    bench.ack(high / bench.segment, blocks);
    bench.ack(SEGMENTS, &[]);
    assert_eq!(bench.sender.probed, None);
    bench.network.record(0).window_cuts
}

#[test]
fn a_loss_that_a_probe_repaired_cuts_the_window() {
    assert_eq!(cuts_after_probe(true, &[]), 1);
    // It arrived twice, so nothing was lost. New data says nothing about earlier data.
    assert_eq!(cuts_after_probe(true, &[9]), 0);
    assert_eq!(cuts_after_probe(false, &[]), 0);
}
