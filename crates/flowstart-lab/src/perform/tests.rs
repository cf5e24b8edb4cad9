use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::study::scenario::Scenario;

/// A sink that counts the rows of every step.
#[derive(Default)]
struct Counted {
    rows: Mutex<usize>,
    reps: u32,
    /// The rows of an interrupted run.
    earlier: Vec<Row>,
    most: u32,
}

impl Sink for Counted {
    fn open(&mut self, _: &Study, most: u32, _: &dyn Progress) -> Result<Vec<Row>, ExperimentError> {
        self.most = most;
        Ok(self.earlier.clone())
    }

    fn wanted(&self, _: &Study) -> Wanted {
        Wanted::default()
    }

    fn add(&self, rows: &[Row], _: &dyn Progress) {
        *self.rows.lock().unwrap() += rows.len();
    }

    fn close(
        &mut self,
        study: &Study,
        _: &Performed,
        _: Kept,
        _: usize,
        _: &dyn Progress,
    ) -> Result<(), ExperimentError> {
        self.reps = study.plan.reps;
        Ok(())
    }
}

fn study(more: &str) -> Study {
    let text = format!("link = [\"lte\"]\nsize = [\"70KB\"]\nreps = 5\n{more}");
    Study::new(Scenario::from_text(&text).unwrap(), Path::new(".")).unwrap()
}

fn half_width(cell: &crate::results::cell_summary::CellSummary) -> f64 {
    let versus = cell.vs_baseline.as_ref().unwrap();
    let [low, high] = versus.speedup_ci.unwrap();
    (high - low) / 2.0 / versus.speedup.unwrap()
}

const NOISY: &str = "noise = true\nscheme = [\"slow-start\", \"blitzstart\"]\ncompetitor = [\"cubic\"]";

#[test]
fn repetitions_are_added_until_the_interval_is_small() {
    let study = study(NOISY);
    // Half of what the first repetitions give needs more of them.
    let wanted = half_width(&perform(&study, &mut (), None, 2, &()).unwrap().summary.cells[1]) / 2.0;
    let precision = Precision { relative: wanted, most: 400 };
    let mut sink = Counted::default();
    let performed = perform(&study, &mut sink, Some(precision), 2, &()).unwrap();
    let reps = performed.summary.reps;
    assert!((6..400).contains(&reps), "{reps}");
    assert!(half_width(&performed.summary.cells[1]) <= wanted);
    // Every run was made once, and the results are those of a study with as many repetitions from the start.
    assert_eq!((*sink.rows.lock().unwrap(), sink.reps), (2 * reps as usize, reps));
    let whole = perform(&study.with_reps(reps), &mut (), None, 1, &()).unwrap();
    assert_eq!((whole.rows, whole.summary), (performed.rows, performed.summary));
}

/// However far it got, an interrupted run with a precision goes on to the results of one that was not interrupted.
#[test]
fn repetitions_that_were_added_before_an_interruption_are_not_made_again() {
    let precision = Precision { relative: 0.0001, most: 20 };
    let whole = perform(&study(NOISY), &mut (), Some(precision), 2, &()).unwrap();
    assert_eq!(whole.summary.reps, 20);
    for known in [0, 3, 5, 6, 11, 20] {
        let earlier: Vec<Row> = whole.rows.iter().filter(|row| row.rep < known).cloned().collect();
        let mut sink = Counted { earlier, ..Counted::default() };
        let performed = perform(&study(NOISY), &mut sink, Some(precision), 2, &()).unwrap();
        assert_eq!((&performed.rows, &performed.summary), (&whole.rows, &whole.summary), "{known}");
        assert_eq!(*sink.rows.lock().unwrap(), 2 * (20 - known as usize), "{known}");
        assert_eq!((sink.reps, sink.most), (20, 20));
    }
}

#[test]
fn the_limit_of_repetitions_is_kept_and_named() {
    let precision = Precision { relative: 0.0001, most: 8 };
    let performed = perform(&study(NOISY), &mut (), Some(precision), 2, &()).unwrap();
    assert_eq!(performed.summary.reps, 8);
    let note = performed.summary.answer_notes.last().unwrap();
    assert!(note.starts_with("After 8 repetitions, the limit, these are not known to 0.01 %: lte/"), "{note}");
}

#[test]
fn repetitions_that_are_all_the_same_are_not_added_to() {
    let precision = Precision { relative: 0.0001, most: 100 };
    let quiet = "scheme = [\"slow-start\", \"slow-start:iw=40\"]";
    let performed = perform(&study(quiet), &mut (), Some(precision), 1, &()).unwrap();
    assert_eq!(performed.summary.reps, 5);
    assert!(!performed.summary.answer_notes.iter().any(|note| note.contains("the limit")));
    // Without comparisons the mean has to be precise.
    let alone = "noise = true\nscheme = [\"slow-start\"]\ncompetitor = [\"cubic\"]";
    let performed = perform(&study(alone), &mut (), Some(Precision { relative: 0.001, most: 12 }), 1, &()).unwrap();
    assert_eq!(performed.summary.reps, 12);
}

/// What has no interval because it scatters too much is not precise; what never completes is not waited for.
#[test]
fn a_comparison_without_an_interval_is_not_precise() {
    let mut performed = perform(&study(NOISY), &mut (), None, 2, &()).unwrap();
    let (plan, precision) = (study(NOISY).plan, Precision { relative: 0.9, most: 40 });
    assert_eq!((precision.next(&plan, &performed.summary), precision.note(&plan, &performed.summary)), (None, None));
    performed.summary.cells[1].vs_baseline.as_mut().unwrap().speedup_ci = None;
    assert_eq!(precision.next(&plan, &performed.summary), Some(20));
    let note = precision.note(&plan, &performed.summary).unwrap();
    let id = &performed.summary.cells[1].id;
    assert!(note.ends_with(&format!("not known to 90 %: {id} (too much scatter for an interval).")), "{note}");
    let versus = performed.summary.cells[1].vs_baseline.as_mut().unwrap();
    (versus.speedup, versus.verdict) = (None, None);
    assert_eq!(precision.next(&plan, &performed.summary), None);
    let note = precision.note(&plan, &performed.summary).unwrap();
    assert!(note.starts_with("No repetition of these completed beside their baseline"), "{note}");
}
