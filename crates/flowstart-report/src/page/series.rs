//! The section on time series has runs that share their axes below each other.

use crate::chart::{self, Chart, Extent, LegendItem};
use crate::command::replay;
use crate::group::{Axis, Names, distinct};
use crate::{ExampleRun, RenderError, Report};
use serde::Serialize;

/// Runs that share their axes.
#[derive(Serialize)]
pub(super) struct Series {
    title: String,
    /// Whether other flows use the link.
    others: bool,
    /// What each scheme sends, in one picture.
    startups: Option<Chart>,
    legend: Vec<LegendItem>,
    charts: Vec<Chart>,
}

/// The runs of each link, size and competitor, in the order of their first appearance.
pub(super) fn series(report: &Report, schemes: &[String], names: &Names) -> Result<Vec<Series>, RenderError> {
    let title = |run: &ExampleRun| {
        let against = if run.competitor.is_empty() || run.competitor == "none" {
            String::new()
        } else {
            format!(" against {}", run.competitor)
        };
        format!("{} on {}{against}", run.size, names.short_of(Axis::Link, &run.link))
    };
    let titles: Vec<String> = report.runs.iter().map(title).collect();
    let mut all = Vec::new();
    for heading in distinct(titles.iter()) {
        let runs = || report.runs.iter().filter(|run| title(run) == heading);
        let extent = Extent::of(runs());
        let others = runs().any(|run| run.flows.iter().any(|f| !f.measured));
        let before = all.iter().map(|series: &Series| series.charts.len()).sum::<usize>();
        let charts = runs().zip(1_usize..).map(|(run, number)| {
            let command = (!run.cell.is_empty()).then(|| replay(&run.cell, run.rep, &report.method.directory));
            chart::run(format!("run-{before}-{number}"), run, extent, command).embedded()
        });
        let charts = charts.collect::<Result<_, _>>()?;
        let startups = chart::startups(format!("startups-{}", all.len() + 1), &runs().collect::<Vec<_>>(), schemes);
        all.push(Series {
            title: heading,
            others,
            startups: startups.map(Chart::embedded).transpose()?,
            legend: chart::run_legend(others, extent),
            charts,
        });
    }
    Ok(all)
}
