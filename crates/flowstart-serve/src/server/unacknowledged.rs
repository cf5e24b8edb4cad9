//! What a connection has given to its transport for answers that have not ended.
//!
//! Neither QUIC nor this program knows which answer's bytes were acknowledged, only how many of the connection. So what
//! is held is at most what open answers were given, and at most what was given less what was delivered since none was
//! open. An answer of which all has arrived holds nothing any more. One that was cut holds what it was given, and at
//! most what a connection may hold, until the peer has acknowledged its end: so long the transport keeps it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What an answer takes besides its content: fields, trailers and the headers of packets, which are delivered, too.
pub(super) const FIELDS: u64 = 1000;

/// What leaves before the launch and is not counted when it arrives: an initial window (RFC 9002, section 7.2).
const FIRST_FLIGHT: u64 = 14_720;
/// Answers whose fields may count with more than they have at a time.
const MOST_FIELDS: u64 = 32;

/// The sums of a connection.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Answers that have not ended.
    open: u64,
    /// Answers that have begun since none was open.
    begun: u64,
    /// What they were given.
    of_open: u64,
    /// What all answers were given, above what was delivered when none was open.
    given: u64,
    /// What answers hold that were cut.
    cut: u64,
}

/// An answer that was cut; dropped when the transport has forgotten it.
#[derive(Debug)]
pub(super) struct CutAnswer<'a> {
    all: &'a Unacknowledged,
    holds: u64,
}

/// An answer that has not ended; dropped at its end.
#[derive(Debug)]
pub(super) struct OpenAnswer<'a> {
    all: &'a Unacknowledged,
    given: u64,
}

impl Unacknowledged {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer begins; `delivered` is what the connection has delivered.
    pub(super) fn begin(&self, delivered: u64) -> OpenAnswer<'_> {
        let mut sums = self.sums();
        if sums.open == 0 {
            sums.given = delivered;
            sums.begun = 0;
        }
        sums.open += 1;
        sums.begun += 1;
        drop(sums);
        let mut answer = OpenAnswer { all: self, given: 0 };
        answer.give(FIELDS);
        answer
    }

    /// What is held, when this much was delivered. Of answers that were not cut it is at most `most`, and of others at
    /// most twice that: they are given nothing while these hold so much, besides what one of them is given then.
    pub(super) fn held(&self, delivered: u64, most: u64) -> u64 {
        let cut = self.sums().cut.min(most.saturating_mul(2));
        self.of_open(delivered).min(most) + cut
    }

    /// What answers hold that were not cut.
    pub(super) fn of_open(&self, delivered: u64) -> u64 {
        let sums = self.sums();
        sums.of_open.min(sums.given.saturating_sub(delivered))
    }

    /// As much seems to be held where all has arrived: fields are counted with more than they have, and the first
    /// flight is not delivered.
    pub(super) fn slack(&self) -> u64 {
        FIRST_FLIGHT + (self.sums().begun + 2).min(MOST_FIELDS) * FIELDS
    }

    /// What answers hold that were cut.
    pub(super) fn cut(&self) -> u64 {
        self.sums().cut
    }
}

impl OpenAnswer<'_> {
    /// It is given this much.
    pub(super) fn give(&mut self, bytes: u64) {
        self.given += bytes;
        let mut sums = self.all.sums();
        sums.of_open += bytes;
        sums.given += bytes;
    }
}

impl<'a> OpenAnswer<'a> {
    /// It is cut, and holds what it was given, at most `most`.
    pub(super) fn cut(self, most: u64) -> CutAnswer<'a> {
        let (all, holds) = (self.all, self.given.min(most));
        drop(self);
        all.sums().cut += holds;
        CutAnswer { all, holds }
    }
}

impl Drop for CutAnswer<'_> {
    fn drop(&mut self) {
        self.all.sums().cut -= self.holds;
    }
}

impl Drop for OpenAnswer<'_> {
    fn drop(&mut self) {
        let mut sums = self.all.sums();
        sums.open -= 1;
        sums.of_open -= self.given;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_holds_what_it_was_given_until_it_is_forgotten() {
        const MOST: u64 = 32_000_000;
        let all = Unacknowledged::default();
        let mut large = all.begin(0);
        large.give(30_000_000);
        assert_eq!(all.held(20_000, MOST), 29_981_000);
        let cut = large.cut(MOST);
        assert_eq!((all.held(20_000, MOST), all.cut()), (30_001_000, 30_001_000));
        // What is open beside it counts besides.
        let mut next = all.begin(20_000);
        next.give(50_000);
        assert_eq!(all.held(20_000, MOST), 30_052_000);
        drop(cut);
        // A small answer holds no more than it was given, whatever was cut before.
        assert_eq!((all.held(20_000, MOST), all.held(60_000, MOST), all.cut()), (51_000, 11_000, 0));
        drop(next);
        // However much a connection was given, it held no more than it may.
        let mut huge = all.begin(20_000);
        huge.give(10_000_000_000);
        assert_eq!(all.held(20_000, MOST), MOST);
        let cut = huge.cut(MOST);
        assert_eq!((all.held(20_000, MOST), all.of_open(20_000)), (MOST, 0));
        // Many that are cut at once were given most of that before, and it has arrived.
        let many: Vec<_> = (0..16)
            .map(|_| {
                let mut one = all.begin(20_000);
                one.give(MOST);
                one.cut(MOST)
            })
            .collect();
        assert_eq!(all.held(20_000, MOST), 2 * MOST);
        drop((cut, many));
        assert_eq!(all.held(20_000, MOST), 0);
    }

    #[test]
    fn answers_that_were_acknowledged_hide_nothing_that_is_not() {
        let all = Unacknowledged::default();
        let mut large = all.begin(0);
        large.give(1_000_000);
        // A thousand answers of nothing, each with 300 bytes of fields and headers.
        let mut delivered = 0;
        for _ in 0..1000 {
            drop(all.begin(delivered));
            delivered += 300;
        }
        assert!(all.held(delivered, u64::MAX) >= 1_000_000);
        drop(large);
        // Nor do they count for ever.
        assert_eq!(all.slack(), FIRST_FLIGHT + MOST_FIELDS * FIELDS, "a thousand small ones hide no more");
        let next = all.begin(delivered);
        assert_eq!((all.held(delivered, u64::MAX), all.slack()), (FIELDS, FIRST_FLIGHT + 3 * FIELDS));
        drop(next);
    }
}
