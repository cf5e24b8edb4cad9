//! Sensing: how many bytes may leave before the first acknowledgement, and at which rate.
//!
//! What leaves before the first acknowledgement leaves unseen. Its number of bytes, the blind budget, follows from how
//! many sources that do not depend on each other say the same.

use super::Config;
use crate::path::PathKnowledge;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// AGREE, 3/2: two rates agree if neither is larger than the other by more than this. The delivery rate is known within
/// 1.25, twice of that is 1.56.
const AGREE: (u64, u64) = (3, 2);
/// How far above the train's rate a claim may be used that it bears out: 11/10.
const ABOVE_TRAIN: (u64, u64) = (11, 10);
/// The RTT of an earlier connection is this path's if neither is more than this many times the other.
const SAME_RTT: u64 = 2;

/// How far the sources bear each other out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// There is no source: the initial window.
    Nothing,
    /// One source, or several that contradict each other: B1.
    Unverified,
    /// The handshake's train, above which no source is: BT.
    Measured,
    /// Two that do not measure the path agree: B2.
    Agreed,
    /// What an earlier connection measured agrees with a source of today, or routers have approved: no limit.
    Proven,
}

/// What the sources claim, and what follows from it before the first acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// W: bytes that may leave unseen.
    pub(super) window: Bytes,
    /// r: rate at which they leave after the train; `None`: the host's rule.
    pub(super) rate: Option<Rate>,
    /// What each source claims; zero: nothing.
    claims: [Rate; 4],
}

/// Whether two rates agree.
fn agree(one: Rate, other: Rate) -> bool {
    bears_out(one, other) && bears_out(other, one)
}

/// Whether a capacity of `capacity` bears out that the path carries `claim`.
pub(super) fn bears_out(capacity: Rate, claim: Rate) -> bool {
    let (most, of) = AGREE;
    u128::from(claim.bits_per_sec()) * u128::from(of) <= u128::from(capacity.bits_per_sec()) * u128::from(most)
}

/// `rate` times a fraction.
fn times(rate: Rate, (multiplied, divided): (u64, u64)) -> Rate {
    Rate::from_bits_per_sec(rate.bits_per_sec().saturating_mul(multiplied) / divided)
}

impl Budget {
    /// The initial window, at the host's rate.
    pub(super) const fn initial(window: Bytes) -> Self {
        Self { window, rate: None, claims: [Rate::ZERO; 4] }
    }

    /// The budget for `path`, whose RTT is `rtt`. It is at least `initial_window`.
    pub(super) fn of(
        path: &PathKnowledge,
        rtt: Duration,
        config: &Config,
        initial_window: Bytes,
        segment: Bytes,
    ) -> Self {
        let saved = path
            .saved
            .filter(|saved| saved.age <= config.max_age && saved.rtt <= rtt * SAME_RTT && rtt <= saved.rtt * SAME_RTT);
        let saved = saved.and_then(|saved| saved.rate());
        let today = [path.hint.map(|hint| hint.bandwidth), path.oracle_rate, path.requested_rate];
        let claims = [saved, today[0], today[1], today[2]].map(|claim| claim.filter(|rate| *rate > Rate::ZERO));
        let train = path.train_rate.filter(|rate| *rate > Rate::ZERO);
        let (trust, rate) = Self::believed(path.approved_rate, claims, train);
        let Some(rate) = rate else { return Self::initial(initial_window) };
        let most = match trust {
            Trust::Nothing => Bytes::ZERO,
            Trust::Unverified => segment * u64::from(config.unverified),
            Trust::Measured => segment * u64::from(config.measured),
            Trust::Agreed => segment * u64::from(config.agreed),
            Trust::Proven => Bytes::MAX,
        };
        let bounds = [Some(most), path.bytes_waiting, path.receive_window];
        let window = bounds.into_iter().flatten().fold(rate.amount_in(rtt), Bytes::min).max(initial_window);
        // All of it leaves within the RTT: what one source claims at no more than that needs, so that a claim that is
        // too high fills no buffer at once.
        let within_rtt = Rate::from_transfer(window, rtt);
        let rate = match trust {
            _ if window == initial_window => None,
            Trust::Unverified | Trust::Measured => within_rtt,
            Trust::Nothing | Trust::Agreed | Trust::Proven => within_rtt.max(Some(rate)),
        };
        Self { window, rate, claims: claims.map(Option::unwrap_or_default) }
    }

    /// How far the claims bear each other out, and the rate to launch at.
    fn believed(approved: Option<Rate>, claims: [Option<Rate>; 4], train: Option<Rate>) -> (Trust, Option<Rate>) {
        if let Some(approved) = approved.filter(|rate| *rate > Rate::ZERO) {
            return (Trust::Proven, Some(approved));
        }
        let [saved, hint, oracle, requested] = claims;
        let both = |(one, other): (Option<Rate>, Option<Rate>)| {
            let (one, other) = (one?, other?);
            agree(one, other).then(|| one.min(other))
        };
        let first = |pairs: [(Option<Rate>, Option<Rate>); 3]| pairs.into_iter().find_map(both);
        if let Some(rate) = first([(saved, hint), (saved, oracle), (saved, requested)]) {
            return (Trust::Proven, Some(rate));
        }
        // A train is a rough measure: what it bears out it does not exceed by more than a tenth.
        let seen = |claim: Option<Rate>| {
            let (claim, train) = (claim?, train?);
            agree(claim, train).then(|| claim.min(times(train, ABOVE_TRAIN)))
        };
        if let Some(rate) = seen(saved) {
            return (Trust::Proven, Some(rate));
        }
        if let Some(rate) = first([(hint, oracle), (hint, requested), (oracle, requested)]) {
            return (Trust::Agreed, Some(rate));
        }
        if let Some(rate) = [hint, oracle, requested].into_iter().find_map(seen) {
            return (Trust::Agreed, Some(rate));
        }
        let (least, most) = (claims.into_iter().flatten().min(), claims.into_iter().flatten().max());
        match train {
            // A source above the train says that one of both is wrong.
            Some(train) if most > Some(train) => (Trust::Unverified, least.min(Some(train))),
            Some(train) => (Trust::Measured, Some(train)),
            None if least.is_some() => (Trust::Unverified, least),
            None => (Trust::Nothing, None),
        }
    }

    /// The largest claim that a path of `capacity` bears out.
    pub(super) fn borne_out(&self, capacity: Rate) -> Option<Rate> {
        let claims = self.claims.into_iter().filter(|claim| *claim > Rate::ZERO);
        claims.filter(|claim| bears_out(capacity, *claim)).max()
    }
}
