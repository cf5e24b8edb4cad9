//! What a connection has given to its transport for answers that have not ended.
//!
//! Neither QUIC nor this program knows which answer's bytes were acknowledged, only how many of the connection. So what
//! is held is at most what open answers were given, and at most what was given less what was delivered since none was
//! open. An answer that ends, because all of it has arrived or because it was cut, holds nothing any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What an answer takes besides its content: fields, trailers and the headers of packets, which are delivered, too.
const FIELDS: u64 = 1000;

/// The sums of a connection.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Answers that have not ended.
    open: u64,
    /// What they were given.
    of_open: u64,
    /// What all answers were given, above what was delivered when none was open.
    given: u64,
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
        }
        sums.open += 1;
        drop(sums);
        let mut answer = OpenAnswer { all: self, given: 0 };
        answer.give(FIELDS);
        answer
    }

    /// What is held, when this much was delivered.
    pub(super) fn held(&self, delivered: u64) -> u64 {
        let sums = self.sums();
        sums.of_open.min(sums.given.saturating_sub(delivered))
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
    fn what_was_cut_holds_nothing() {
        let all = Unacknowledged::default();
        let mut cut = all.begin(0);
        cut.give(30_000_000);
        assert_eq!(all.held(20_000), 29_981_000);
        drop(cut);
        assert_eq!(all.held(20_000), 0);
        // A small answer holds no more than it was given, whatever was cut before.
        let mut small = all.begin(20_000);
        small.give(50_000);
        assert_eq!((all.held(20_000), all.held(60_000)), (51_000, 11_000));
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
        assert!(all.held(delivered) >= 1_000_000);
        drop(large);
        // Nor do they count for ever.
        let next = all.begin(delivered);
        assert_eq!(all.held(delivered), FIELDS);
        drop(next);
    }
}
