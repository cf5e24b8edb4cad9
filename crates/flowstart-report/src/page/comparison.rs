//! A comparison becomes a page.

use super::template::fill;
use super::text::{or_untitled, paragraphs, sentences};
use super::{causes, media, method, pairs, published, series, setup, table, unbeaten};
use crate::chart::{self, Chart, Key};
use crate::group::{Names, distinct, groups};
use crate::time::time_words;
use crate::{RenderError, Report};
use minijinja::context;

/// Writes the page of a comparison.
///
/// # Errors
///
/// The renderer itself has a fault. No data is refused.
pub fn render(report: &Report) -> Result<String, RenderError> {
    let schemes = distinct(report.cells.iter().map(|c| &c.scheme));
    let names = Names::of(&report.cells.iter().collect::<Vec<_>>());
    let key = Key::of(&report.cells, &names);
    let curves = chart::curves(&report.cells);
    let many = curves.is_some() || report.cells.iter().any(|cell| !cell.samples.size_fct.is_empty());
    // Neither points of curves nor connections of many sizes are a distribution, and means over them say nothing.
    let groups = if many { Vec::new() } else { groups(&report.cells, &names) };
    let (mut distributions, mut folded) = (Vec::new(), Vec::new());
    for (chart, is_secondary) in chart::distributions(&groups, &key) {
        if is_secondary { &mut folded } else { &mut distributions }.push(chart.embedded()?);
    }
    let embedded = |chart: Option<Chart>| chart.map(Chart::embedded).transpose();
    fill(
        "report.html",
        context! {
            title => or_untitled(&report.title),
            answer => sentences(&report.answer),
            agreements => sentences(&report.agreements),
            forest => embedded(chart::forest(&report.cells))?,
            question => paragraphs(report.question.as_deref()),
            analysis => paragraphs(report.analysis.as_deref()),
            setup => setup::setup(&report.links, &schemes),
            changing => setup::changing(&report.cells, &names),
            time => time_words(report.cells.iter()),
            table => table::table(report, &names),
            heat => embedded(chart::heat(&report.cells, &report.links))?,
            published => report.published.as_ref().map(published::published).transpose()?,
            distributions => distributions,
            folded => folded,
            curves => embedded(curves)?,
            scatter => embedded(chart::scatter(&report.cells, &schemes))?,
            loads => embedded(chart::loads(&report.cells, &names, &key))?,
            sizes => embedded(chart::sizes(&report.cells, &names, &key))?,
            pareto => embedded(chart::pareto(&groups, &key))?,
            unbeaten => unbeaten::rows(&groups),
            media => embedded(chart::media(&groups, &key))?,
            media_rows => media::rows(&groups),
            media_headings => media::HEADINGS,
            call_rows => media::call_rows(&groups),
            call_headings => media::CALL_HEADINGS,
            pairs => embedded(chart::pairs(&report.pairs, &schemes))?,
            pair_rows => pairs::rows(&report.pairs),
            pair_heading => pairs::heading(&report.pairs),
            waterfall => embedded(chart::waterfall(&groups, &key))?,
            causes => causes::table(&groups),
            unexplained => report.unexplained,
            terms => causes::terms(),
            schemes => report.schemes,
            aqms => report.aqms,
            series => series::series(report, &schemes, &names)?,
            method => method::method(&report.method),
        },
    )
}
