//! What a connection shows of its path: the same for its qlog file and for a server's metrics.
//!
//! A connection that ran out of data, or ended before its window was large enough, was slower than its link. Its rate
//! is only a lower bound of the link's, so it says which of both it is.

use flowstart_core::sources::{Verdict, name};
use flowstart_core::time::Duration;
use flowstart_core::units::{Bytes, Rate};
use flowstart_quic::Status;

/// A link that is filled delays packets by at least this part of the smallest RTT.
const QUEUE_PART: f64 = 0.25;
/// The same of a link with a short buffer, whose end was met. A loss without any queue may be the radio's.
const QUEUE_PART_WITH_LOSS: f64 = 0.1;
/// A shorter delay may be one of hosts and radios.
const LEAST_QUEUE: Duration = Duration::from_millis(5);
/// What fits into this many smallest RTTs at the highest rate has to be delivered. The first two RTTs of a connection
/// contain waiting, so a rate over them is too low.
const ROUNDS: f64 = 3.0;

/// What a connection shows of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathShown {
    /// Smallest RTT.
    pub min_rtt: Duration,
    /// Highest rate at which packets were acknowledged, over at least one smallest RTT; `None`: it was too short for
    /// one.
    pub highest_rate: Option<Rate>,
    /// Largest smoothed RTT less the smallest RTT.
    pub queue: Duration,
    /// Bytes acknowledged, with the headers of their packets.
    pub delivered: Bytes,
    /// Whether packets were declared lost.
    pub has_lost: bool,
}

impl PathShown {
    /// Whether the link and not the sender set the highest rate: packets waited in a queue, a shorter one where some
    /// were lost, and the connection lasted long enough. So what a policer without a queue lets through is not seen.
    pub fn is_rate_of_link(&self) -> bool {
        let Some(rate) = self.highest_rate else { return false };
        let part = if self.has_lost { QUEUE_PART_WITH_LOSS } else { QUEUE_PART };
        let is_filled = self.queue >= self.min_rtt.scale(part).max(LEAST_QUEUE);
        let enough = rate.amount_in(self.min_rtt).scale(ROUNDS);
        is_filled && self.delivered >= enough
    }

    /// What the status of a connection shows; `None` before an RTT was measured. After a move it is of two paths. Of a
    /// connection too short for a launch the controller says nothing, but the stack has a smoothed RTT.
    pub(crate) fn of(status: &Status, smoothed_rtt: Option<Duration>) -> Option<Self> {
        let min_rtt = status.min_rtt.or(smoothed_rtt)?;
        (status.moves == 0).then(|| Self {
            min_rtt,
            highest_rate: status.highest_rate.filter(|rate| rate.bits_per_sec() > 0),
            queue: status.longest_rtt.unwrap_or(min_rtt).saturating_sub(min_rtt),
            delivered: status.delivered,
            has_lost: status.lost_packets > 0,
        })
    }
}

/// The sources that know a path before a connection has sent anything over it.
const OF_PATHS: [&str; 7] = [
    name::HINT,
    name::CLIENT_HINTS,
    name::PATH_STORE,
    name::PATH_STATE,
    name::ORACLE,
    name::QUICK_START,
    name::CONCURRENT,
];

/// Whether a source with this verdict knew the path.
pub(crate) fn knows_path(source: &str, verdict: &str) -> bool {
    let is_believed = [Verdict::Believed, Verdict::Used, Verdict::Unused].iter().any(|one| one.name() == verdict);
    is_believed && OF_PATHS.contains(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_links_if_the_link_was_filled_for_long_enough() {
        let millis = Duration::from_millis;
        // 8 Mbit/s for 40 ms carry 40 KB, so 120 KB are enough.
        let shown = PathShown {
            min_rtt: millis(40),
            highest_rate: Some(Rate::from_mbit(8)),
            queue: millis(10),
            delivered: Bytes::new(120_000),
            has_lost: false,
        };
        assert!(shown.is_rate_of_link());
        assert!(!PathShown { queue: millis(9), ..shown }.is_rate_of_link());
        assert!(PathShown { queue: millis(5), has_lost: true, ..shown }.is_rate_of_link());
        // Random loss on a link that is not filled.
        assert!(!PathShown { queue: millis(4), has_lost: true, ..shown }.is_rate_of_link());
        assert!(!PathShown { delivered: Bytes::new(119_999), has_lost: true, ..shown }.is_rate_of_link());
        // 4 ms are a quarter of 16 ms, but a host may take as long.
        assert!(!PathShown { min_rtt: millis(16), queue: millis(4), ..shown }.is_rate_of_link());
    }

    #[test]
    fn who_measures_limits_or_asks_knows_no_path() {
        for source in [name::HANDSHAKE_TRAIN, name::SCONE, name::INTERFACE, name::APPLICATION] {
            assert!(!knows_path(source, "used"), "{source}");
        }
        assert!(knows_path(name::HINT, "unused") && !knows_path(name::HINT, "refused"));
    }

    #[test]
    fn a_status_says_nothing_before_measurements_and_after_a_move() {
        let status = Status {
            min_rtt: Some(Duration::from_millis(40)),
            longest_rtt: Some(Duration::from_millis(55)),
            highest_rate: Some(Rate::from_mbit(8)),
            ..Status::default()
        };
        assert_eq!(PathShown::of(&status, None).map(|shown| shown.queue), Some(Duration::from_millis(15)));
        assert_eq!(PathShown::of(&Status { moves: 1, ..status }, None), None);
        assert_eq!(PathShown::of(&Status { min_rtt: None, ..status }, None), None);
        let of_stack = PathShown::of(&Status::default(), Some(Duration::from_millis(42))).unwrap();
        assert_eq!((of_stack.min_rtt, of_stack.highest_rate), (Duration::from_millis(42), None));
        let short = PathShown::of(&Status { highest_rate: None, lost_packets: 1, ..status }, None).unwrap();
        assert!(short.has_lost && !short.is_rate_of_link());
    }
}
