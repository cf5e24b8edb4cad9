//! The page of results that were written earlier.

use super::folder::{Published, method};
use super::{Again, Progress};
use crate::report::{self, Texts};
use crate::results::folder::ExperimentError;
use crate::results::identity::{Identity, other_question};
use crate::results::stored::Stored;
use crate::results::summary::summarize;
use crate::trace::observe::Kept;

/// Writes the page of stored results anew. The numbers are those of the rows; the few runs that are shown as time
/// series and explained are simulated again on `jobs` threads (0: one per core).
///
/// # Errors
///
/// The results are of another question than this program reads from their manifest, or no thread could be started.
pub fn page(
    stored: &Stored,
    published: Published<'_>,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<String, ExperimentError> {
    let Stored { folder, manifest, study, rows } = stored;
    let refused = |problem: String| ExperimentError::Report(format!("{}: {problem}", folder.display()));
    let mut method = method(folder, study, manifest);
    if let Some(then) = &manifest.experiment {
        let now = Identity::of(&study.plan);
        let differences = then.other_parts(&now);
        if !differences.is_empty() {
            return Err(ExperimentError::Question { folder: folder.clone(), problem: other_question(&differences) });
        }
        if let Some(program) = then.other_program(&now) {
            method.notes.push(format!("{program}; the runs that are shown and explained were simulated again"));
        }
    }
    let summary = summarize(&study.plan, rows);
    let texts = Texts::of(&study.scenario);
    let again = |again: Again| progress.again(again);
    let mut page = report::build(&study.plan, rows, &summary, &texts, jobs, method, Kept::default(), &again)?;
    page.published = published(&study.plan, rows, &summary);
    flowstart_report::render(&page).map_err(|error| refused(error.to_string()))
}
