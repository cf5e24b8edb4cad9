//! From results to the contents of the report: the answer in a sentence, the cells, example runs.

use crate::experiment;
use crate::results::felt::felt;
use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::results::pairs::paired;
use crate::results::summary::{Summary, rows_by_cell};
use crate::study::plan::{Cell, Plan};
use crate::study::scenario::Scenario;
use crate::trace::explain::Explanation;
use crate::trace::observe::{Kept, MOST_FLOWS, Shown, Wanted, Watched};
use again::see_the_rest;
use cell::{cell_input, has_web};
use flowstart_report as report;
use set_up::{aqms, schemes};

mod again;
mod answer;
mod cell;
mod changes;
mod examples;
mod published;
mod rtt;
mod set_up;
mod shared;
mod trace;
mod web;

pub use again::Again;
pub use answer::{agreements, answer};
pub use changes::changes;
pub use examples::{MeasuredFlow, median_flow};
pub use published::{estimate_of, published_table};
pub use set_up::link_input;
pub use trace::{overlay, trace};

/// Most cells whose median runs are explained: a page with more bars is unreadable.
const MAX_EXPLAINED: usize = 200;
/// Most repetitions whose media packets are drawn.
const MEDIA_REPS: u32 = 10;

/// The texts of a scenario that the report repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Title.
    pub title: String,
    /// Question.
    pub question: String,
    /// Analysis.
    pub analysis: String,
}

impl Texts {
    /// The texts of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self { title: scenario.title.clone(), question: scenario.question.clone(), analysis: scenario.analysis.clone() }
    }
}

/// The observations that the report needs of runs, so that no run must be simulated again.
pub fn wanted(plan: &Plan) -> Wanted {
    let mut wanted = Wanted { series: examples::watched_cells(plan), ..Wanted::default() };
    for cell in plan.cells() {
        if is_explained(plan, &cell) && is_watched(plan, &cell) {
            wanted.causes.insert(cell.index);
        }
        if has_media(plan, &cell) {
            wanted.media.insert(cell.index, plan.reps.min(MEDIA_REPS));
        }
    }
    wanted
}

/// Whether the runs of a cell have few enough flows to watch each of them.
fn is_watched(plan: &Plan, cell: &Cell) -> bool {
    plan.flow_count(cell) * plan.connections_of(cell) <= MOST_FLOWS
}

/// Whether the causes of a cell are shown.
fn is_explained(plan: &Plan, cell: &Cell) -> bool {
    let has_one_path = plan.mobility(cell).is_none() && plan.is_one_connection(cell);
    plan.is_simulated(cell)
        && plan.sizes[cell.size].value.is_one_connection()
        && has_one_path
        && plan.cells().len() <= MAX_EXPLAINED
}

/// Whether the media packets beside a cell's newcomers are shown.
fn has_media(plan: &Plan, cell: &Cell) -> bool {
    plan.competitors[cell.competitor].on(cell.transport).media().is_some()
        && plan.sizes[cell.size].value.sessions().is_none()
}

/// The title of a report whose scenario has none.
fn title(plan: &Plan) -> String {
    let of = plan.compared().map_or("schemes", |axis| axis.plural);
    format!("Comparison of {}{of}", if of == "schemes" { "startup " } else { "" })
}

/// Builds the report. Shown runs of which nothing was `kept` are simulated again on `jobs` threads (0: one per core).
/// Their number does not affect the report. `progress` is called for each run.
#[expect(clippy::too_many_arguments, reason = "what a report is made of, of which nothing belongs together")]
pub fn build(
    plan: &Plan,
    rows: &[Row],
    summary: &Summary,
    texts: &Texts,
    jobs: usize,
    mut method: report::Method,
    mut kept: Kept,
    progress: &(dyn Fn(Again) + Sync),
) -> Result<report::Report, ExperimentError> {
    let by_cell = rows_by_cell(plan, rows);
    let cells = plan.cells();
    let explained = cells.len() <= MAX_EXPLAINED;
    let standing = shared::standing(plan, &by_cell);
    let examples = examples::examples(plan, &standing);
    let mut shown: Vec<(Cell, u32, Shown)> =
        examples.iter().map(|example| (example.0, example.1.rep, examples::shown(plan, example))).collect();
    for cell in &cells {
        if let Some(of) = standing[cell.index].middle.filter(|_| is_explained(plan, cell)) {
            let watched = Watched { causes: true, series: None };
            shown.push((*cell, of.rep, Shown { watched, media_delays: false }));
        }
        let reps = if has_media(plan, cell) { plan.reps.min(MEDIA_REPS) } else { 0 };
        shown.extend((0..reps).map(|rep| (*cell, rep, Shown { media_delays: true, ..Shown::default() })));
    }
    experiment::on_threads(jobs, || see_the_rest(plan, &shown, &mut kept, progress))?;
    let causes = cells.iter().map(|cell| causes(cell, standing[cell.index].middle?, &kept));
    let media = cells.iter().map(|cell| {
        let delays = (0..plan.reps.min(MEDIA_REPS)).filter_map(|rep| kept.get(cell, rep)?.media_delays.as_ref());
        delays.flatten().copied().collect::<Vec<f64>>()
    });
    let own = plan.own();
    let mut runs: Vec<_> =
        examples.iter().filter_map(|one| examples::example(plan, one, &by_cell[one.0.index], &kept)).collect();
    if !own.is_empty() {
        // The program that replays runs does not know these algorithms, and so not the study.
        runs.iter_mut().for_each(|run| run.cell.clear());
        method.notes.push(format!(
            "{} {} from outside flowstart: only the program that wrote this page can run its cells again.",
            own.join(", "),
            if own.len() > 1 { "are" } else { "is" }
        ));
    }
    let entries = cells.iter().zip(causes).zip(media).map(|((cell, causes), media)| {
        let mut entry = cell_input(plan, cell, &summary.cells[cell.index], &by_cell[cell.index]);
        entry.causes = causes;
        // Traces show one connection. Replays of a setting's cells show one repetition, unless it failed.
        let shown = standing[cell.index].middle.filter(|of| has_finished(&by_cell[cell.index], *of));
        entry.replay_rep = shown.or_else(|| median_flow(&by_cell[cell.index], felt(plan, cell).1)).map(|of| of.rep);
        let is_told = plan.sizes[cell.size].value.is_one_connection() && plan.is_simulated(cell);
        let can_replay = is_told && own.is_empty();
        entry.replay_rep = entry.replay_rep.filter(|_| can_replay);
        entry.samples.media_delay_ms = media;
        entry.curves = [web::curves(plan, cell, &summary.cells[cell.index]), rtt::curves(plan, cell, summary)].concat();
        entry
    });
    Ok(report::Report {
        title: if texts.title.is_empty() { title(plan) } else { texts.title.clone() },
        answer: answer::without_agreement(plan, summary),
        agreements: agreements(plan, summary),
        question: Some(texts.question.clone()).filter(|text| !text.is_empty()),
        analysis: Some(texts.analysis.clone()).filter(|text| !text.is_empty()),
        links: plan.links.iter().map(|link| link_input(plan, link)).collect(),
        schemes: schemes(plan),
        aqms: aqms(plan),
        cells: entries.collect(),
        unexplained: (!explained && !has_web(plan)).then(|| {
            let why = "Causes are left out of reports with more than";
            let how = match own.is_empty() {
                true => {
                    " For any of them, write explain instead of trace in its replay command; --flow names another flow \
                     than the first."
                }
                false => "",
            };
            format!("{why} {MAX_EXPLAINED} cells; this one has {}.{how}", cells.len())
        }),
        pairs: paired(plan, &summary.cells),
        published: None,
        runs,
        method,
    })
}

/// Whether this flow of a cell completed.
fn has_finished(rows: &[&Row], of: MeasuredFlow) -> bool {
    let is_that = |row: &&&Row| (row.rep, row.flow) == (u64::from(of.rep), of.flow as u64);
    rows.iter().find(is_that).is_some_and(|row| row.fct_ms.is_some())
}

/// The causes of a flow's delay.
fn causes(cell: &Cell, MeasuredFlow { rep, flow }: MeasuredFlow, kept: &Kept) -> Option<report::Causes> {
    kept.get(cell, rep)?.explanations.get(flow)?.as_ref().map(Explanation::causes)
}
