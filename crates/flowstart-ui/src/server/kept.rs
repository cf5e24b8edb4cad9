//! Answers that are kept for a while: of a link that is opened again, and of a report that is asked for after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ask::Answered;

/// Most answers. Each has its rows, a run of each cell, and a report of a megabyte if somebody has asked for it.
const MOST: usize = 12;
/// Most rows of all of them: some 300 MB.
const MOST_ROWS: usize = 200_000;

/// The latest answers, the newest last.
#[derive(Default)]
pub(crate) struct Answers(Mutex<VecDeque<Arc<Answered>>>);

impl Answers {
    /// The answer to a question, by its address.
    pub(crate) fn get(&self, query: &str) -> Option<Arc<Answered>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|one| one.question.query == query)?;
        let found = kept.remove(place)?;
        kept.push_back(Arc::clone(&found));
        Some(found)
    }

    /// Keeps an answer, and forgets the one that was asked for least lately.
    pub(crate) fn add(&self, answered: Answered) -> Arc<Answered> {
        let answered = Arc::new(answered);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|one| one.question.query != answered.question.query);
        kept.push_back(Arc::clone(&answered));
        let rows = |kept: &VecDeque<Arc<Answered>>| kept.iter().map(|one| one.performed.rows.len()).sum::<usize>();
        while kept.len() > MOST || (kept.len() > 1 && rows(&kept) > MOST_ROWS) {
            kept.pop_front();
        }
        answered
    }
}
