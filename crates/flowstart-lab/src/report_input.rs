//! From results to what the report shows: the answer in a sentence, the cells, example runs.

use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;
use flowstart_sim::trace::Event;
use rayon::prelude::*;

use crate::experiment::{self, ExperimentError};
use crate::explain::explain;
use crate::flows::Row;
use crate::ideal::{ideal_fct, quick_start_rounds, slow_start_fct};
use crate::pairs::paired;
use crate::plan::{Cell, Plan};
use crate::report;
use crate::run::{self, Finished};
use crate::spec::competitor::Competitor;
use crate::spec::link::Buffer;
use crate::statistics::{anova_one_way, bca_mean_difference_paired, difference_interval, mean, median};
use crate::summary::{CellSummary, Comparison, Summary, felt, rows_by_cell, values};
use crate::trace_export;

mod rtt;
mod web;

/// Most example runs in a report: each brings its time series.
const MAX_EXAMPLES: usize = 6;
/// Most cells whose median runs are explained: each is simulated again, with its own warm-up.
const MAX_EXPLAINED: usize = 200;
/// Most repetitions whose media packets are drawn: each is simulated again.
const MEDIA_REPS: u32 = 10;
/// Inflation beyond which a scheme is not put forward as the answer.
const MODEST_INFLATION: f64 = 0.15;
/// Longest stretch of an example run that is shown.
const LONGEST_EXAMPLE: Duration = Duration::from_millis(12_000);

/// Text of a scenario that the report repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Title.
    pub title: String,
    /// Question.
    pub question: String,
    /// Analysis.
    pub analysis: String,
}

/// Builds the report. Runs that it shows are simulated again on `jobs` threads (0: one per core), whose number does not
/// show.
pub fn build(
    plan: &Plan,
    rows: &[Row],
    summary: &Summary,
    texts: &Texts,
    jobs: usize,
    method: report::Method,
) -> Result<report::Report, ExperimentError> {
    let by_cell = rows_by_cell(plan, rows);
    let cells = plan.cells();
    let explained = cells.len() <= MAX_EXPLAINED;
    let (causes, media, runs) = experiment::threads(jobs)?.install(|| {
        let causes: Vec<Option<report::Causes>> = cells
            .par_iter()
            .map(|cell| if explained { causes(plan, cell, &by_cell[cell.index]) } else { None })
            .collect();
        let reps = plan.reps.min(MEDIA_REPS);
        let media: Vec<Vec<f64>> = cells
            .par_iter()
            .map(|cell| (0..reps).flat_map(|rep| run::media_delays(plan, cell, rep)).collect())
            .collect();
        (causes, media, examples(plan, &by_cell))
    });
    let entries = cells.iter().zip(causes).zip(media).map(|((cell, causes), media)| {
        let mut entry = cell_input(plan, cell, &summary.cells[cell.index], &by_cell[cell.index]);
        entry.causes = causes;
        entry.samples.media_delay_ms = media;
        entry.curves = [web::curves(plan, cell, &summary.cells[cell.index]), rtt::curves(plan, cell, summary)].concat();
        entry
    });
    Ok(report::Report {
        title: if texts.title.is_empty() { "Comparison of startup schemes".into() } else { texts.title.clone() },
        answer: answer(plan, summary),
        question: Some(texts.question.clone()).filter(|text| !text.is_empty()),
        analysis: Some(texts.analysis.clone()).filter(|text| !text.is_empty()),
        links: plan.links.iter().map(|link| link_input(plan, link)).collect(),
        schemes: schemes(plan),
        cells: entries.collect(),
        unexplained: (!explained && !has_web(plan)).then(|| {
            format!(
                "Finding the causes needs every run again, so it is left out of reports with more than {MAX_EXPLAINED} \
                 cells; this one has {}. For any of them, write explain instead of trace in its replay command.",
                cells.len()
            )
        }),
        pairs: paired(plan, &summary.cells),
        published: None,
        runs,
        method,
    })
}

/// Where the time of the median run went.
fn causes(plan: &Plan, cell: &Cell, rows: &[&Row]) -> Option<report::Causes> {
    if plan.sizes[cell.size].value.web().is_some() {
        return None;
    }
    let run = trace_export::trace(plan, cell, median_rep(rows)?);
    explain(plan, cell, &run).as_ref().map(report::Causes::from)
}

/// What the schemes do, once for each kind.
fn schemes(plan: &Plan) -> Vec<(String, String)> {
    let mut schemes: Vec<(String, String)> = Vec::new();
    for scheme in &plan.schemes {
        let name = scheme.value.name();
        if !schemes.iter().any(|(known, _)| known == name) {
            schemes.push((name.to_owned(), scheme.value.summary().to_owned()));
        }
    }
    schemes
}

/// A link as the report draws it.
pub fn link_input(plan: &Plan, link: &crate::spec::link::Link) -> report::Link {
    let mut extra = Vec::new();
    if let Some(file) = &link.trace_file {
        extra.push(("capacity trace".to_owned(), file.display().to_string()));
    }
    if link.up_rate != link.rate {
        extra.push(("rate back".to_owned(), link.up_rate.to_string()));
    }
    if link.hops > 1 {
        extra.push(("bottleneck links in a row".to_owned(), link.hops.to_string()));
    }
    if let Some(jitter) = link.access_jitter {
        extra.push(("scheduling noise of hosts".to_owned(), format!("up to {}", jitter.amplitude)));
    }
    if let Some(routers) = &link.routers {
        extra.push(("Quick-Start routers".to_owned(), routers.to_string()));
    }
    if let Some(element) = &link.advising {
        extra.push(("advises".to_owned(), format!("{} (SCONE)", element.rate)));
    }
    if link.xcp {
        extra.push(("routers with".to_owned(), "XCP".to_owned()));
    }
    report::Link {
        name: link.text.clone(),
        rate_mbit: Some(link.rate.as_mbit()),
        rtt_ms: Some(link.rtt.as_millis()),
        buffer: match link.buffer {
            Buffer::Packets(packets) => format!("{packets} packets"),
            Buffer::Bdp(factor) => format!("{factor} × BDP"),
            other => other.to_string(),
        },
        aqms: plan.aqms.iter().map(|aqm| aqm.text.clone()).collect(),
        competitors: plan.competitors.iter().map(|competitor| competitor.text.clone()).collect(),
        measured_flows: plan.cells().iter().map(|cell| measured_flows(plan, cell)).max().unwrap_or(1),
        extra,
    }
}

/// Whether measured flows belong to web sessions.
fn has_web(plan: &Plan) -> bool {
    plan.sizes.iter().any(|size| size.value.web().is_some())
}

/// Measured flows of a cell; of web sessions how many there are, each with one connection or more at a time.
fn measured_flows(plan: &Plan, cell: &Cell) -> u32 {
    plan.sizes[cell.size].value.web().map_or(plan.flow_count(cell), |web| web.sessions)
}

/// The number of other flows that an equal split would count.
fn other_flows(competitor: &Competitor) -> Option<u32> {
    match competitor {
        Competitor::Bulk { count, .. } => Some(*count),
        Competitor::None
        | Competitor::Pattern { .. }
        | Competitor::Short { .. }
        | Competitor::Web { .. }
        | Competitor::Requests(_) => None,
    }
}

fn estimate(metric: &crate::summary::Metric) -> report::Estimate {
    report::Estimate { mean: metric.mean, ci95: metric.ci95 }
}

fn cell_input(plan: &Plan, cell: &Cell, summary: &CellSummary, rows: &[&Row]) -> report::Cell {
    let metric = |name: &str| summary.metrics.get(name).map(estimate).unwrap_or_default();
    let (name, felt) = felt(plan, cell);
    let versus = summary.vs_baseline.as_ref();
    let link = &plan.links[cell.link];
    report::Cell {
        id: summary.id.clone(),
        link: summary.link.clone(),
        aqm: summary.aqm.clone(),
        size: plan.carried(cell),
        size_bytes: summary.size_bytes,
        scheme: summary.scheme.clone(),
        avoidance: summary.avoidance.clone(),
        competitor: summary.competitor.clone(),
        transport: summary.transport.clone(),
        arrival: summary.arrival.clone().unwrap_or_default(),
        load: plan.arrivals[cell.arrival].value.load().map(|load| load.as_mbit() / link.rate.as_mbit()),
        model_speedup: model_speedup(plan, cell),
        rounds_speedup: rounds_speedup(plan, cell),
        is_baseline: cell.scheme == 0,
        n: summary.n as u32,
        failed: summary.failed as u32,
        // The limit is that of the flow.
        ideal_fct_ms: Some(summary.ideal_fct_ms).filter(|_| name == "fct_ms"),
        fct_ms: metric(name),
        speedup: versus.map_or_else(Default::default, |v| report::Estimate { mean: v.speedup, ci95: v.speedup_ci95 }),
        significant: versus.map(|v| v.significant),
        within_one_rtt: versus.and_then(|v| v.fct_delta_ms).map(|delta| delta.abs() < link.rtt.as_millis()),
        dropped_delta: versus
            .map_or_else(Default::default, |v| report::Estimate { mean: v.dropped_delta, ci95: v.dropped_delta_ci95 }),
        inflation: metric("inflation"),
        share: if summary.others.is_some() { metric("share") } else { report::Estimate::default() },
        equal_share: other_flows(&plan.competitors[cell.competitor].value).map(|others| 1.0 / f64::from(others + 1)),
        goodput_lost_mbit: summary
            .others
            .as_ref()
            .filter(|others| others.extra_fct_ms.is_none())
            .map_or_else(Default::default, |others| estimate(&others.goodput_lost_mbit)),
        extra_fct_ms: summary
            .others
            .as_ref()
            .and_then(|others| others.extra_fct_ms.as_ref())
            .map_or_else(Default::default, estimate),
        media: plan.competitors[cell.competitor].value.media().map(|_| report::Media {
            delay_p50_ms: metric("media_delay_p50_ms"),
            delay_p95_ms: metric("media_delay_p95_ms"),
            delay_p99_ms: metric("media_delay_p99_ms"),
            delay_max_ms: metric("media_delay_max_ms"),
            loss: metric("media_loss"),
            late: metric("media_late"),
            mos: metric("media_mos"),
            harm_mos: metric("media_harm_mos"),
            worst_1s_mos: metric("media_worst_1s_mos"),
            worst_5s_mos: metric("media_worst_5s_mos"),
            harm_ms: metric("media_harm_ms"),
        }),
        causes: None,
        replay_rep: median_rep(rows).unwrap_or(0),
        samples: report::Samples {
            fct_ms: values(rows, felt),
            share: if summary.others.is_some() { values(rows, |row| row.share) } else { Vec::new() },
            dropped_packets: values(rows, |row| Some(row.dropped_packets as f64)),
            media_delay_ms: Vec::new(),
            size_fct: web::connections(plan, cell, rows),
        },
        curves: Vec::new(),
    }
}

/// The size of a transfer that closed forms know: one flow alone that asks once, on a link of fixed rate.
fn alone(plan: &Plan, cell: &Cell) -> Option<Bytes> {
    let size = &plan.sizes[cell.size].value;
    let alone = plan.competitors[cell.competitor].value == Competitor::None && plan.flow_count(cell) == 1;
    let fixed = plan.links[cell.link].trace.is_none() && plan.mobility(cell).is_none();
    let once = size.application().is_none() && size.web().is_none();
    (alone && fixed && once).then(|| size.mean_bytes())
}

/// Initial window of the baseline in packets, where it is slow start.
fn baseline_window(plan: &Plan) -> Option<u64> {
    let StartupConfig::SlowStart(config) = &plan.schemes[0].value else { return None };
    Some(config.iw.map_or(plan.transport.profile.initial_window, u64::from))
}

/// Slow start's closed form over the physical limit.
fn model_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let (size, window) = (alone(plan, cell)?, baseline_window(plan)?);
    let (link, profile) = (&plan.links[cell.link], &plan.transport.profile);
    let limit = ideal_fct(link, profile, size, Timestamp::ZERO);
    Some(slow_start_fct(link, profile, size, window).as_secs() / limit.as_secs())
}

/// Quick-Start's speed-up over slow start by round trips.
fn rounds_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let StartupConfig::QuickStart(config) = &plan.schemes[cell.scheme].value else { return None };
    let (size, window) = (alone(plan, cell)?, baseline_window(plan)?);
    let [without, with] = quick_start_rounds(&plan.links[cell.link], &plan.transport.profile, size, window, config)?;
    Some(without / with)
}

/// The repetition whose FCT is the median one, or next to it.
pub fn median_rep(rows: &[&Row]) -> Option<u32> {
    rep_near(rows, median(&values(rows, |row| row.fct_ms))?)
}

/// The repetition at the 95th percentile of the FCT: the smallest FCT that 95 % of the runs do not exceed.
fn slow_rep(rows: &[&Row]) -> Option<u32> {
    let mut fcts = values(rows, |row| row.fct_ms);
    fcts.sort_by(f64::total_cmp);
    let rank = (fcts.len() as f64 * 0.95).ceil() as usize;
    rep_near(rows, *fcts.get(rank.checked_sub(1)?)?)
}

/// The repetition whose FCT is nearest to this one.
fn rep_near(rows: &[&Row], fct: f64) -> Option<u32> {
    rows.iter()
        .filter_map(|row| Some(((row.fct_ms? - fct).abs(), row.rep)))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        .map(|(_, rep)| rep as u32)
}

/// The answer: how the best scheme does over all settings, then how all comparisons went.
pub fn answer(plan: &Plan, summary: &Summary) -> Vec<String> {
    let failed: usize = summary.cells.iter().map(|cell| cell.failed).sum();
    let mut sentences: Vec<String> = web::answer(summary).into_iter().chain(rtt::answer(plan, summary)).collect();
    let mut standings: Vec<Standing<'_>> =
        (1..plan.schemes.len()).filter_map(|scheme| Standing::of(plan, summary, scheme)).collect();
    standings.sort_by(|a, b| b.middle.total_cmp(&a.middle));
    // A scheme that sends far more bytes is put forward only when nothing else was tried.
    let best = standings.iter().position(|standing| standing.bytes.is_none_or(|bytes| bytes <= MODEST_INFLATION));
    if let Some(standing) = standings.get(best.unwrap_or(0)) {
        sentences.push(standing.sentence(plan));
        if best.is_some_and(|best| best > 0) {
            let (first, bytes) = (&standings[0], standings[0].bytes.unwrap_or(0.0));
            sentences.push(format!(
                "{} is faster still, {:.2} times{}, but sends {:.0} % more bytes.",
                first.scheme,
                first.middle,
                if first.cells.len() > 1 { " in the median" } else { "" },
                bytes * 100.0
            ));
        }
        let compared: Vec<&Comparison> =
            standings.iter().flat_map(|s| s.cells.iter().map(|(_, versus)| *versus)).collect();
        let sure: Vec<_> = compared.iter().filter(|versus| versus.significant).collect();
        let faster = sure.iter().filter(|versus| versus.speedup.is_some_and(|speedup| speedup > 1.0)).count();
        if compared.len() > 1 {
            sentences.push(format!(
                "Of {} comparisons with {}, {faster} are faster, {} slower, and {} cannot be told apart.",
                compared.len(),
                plan.schemes[0].text,
                sure.len() - faster,
                compared.len() - sure.len()
            ));
        }
    } else if let Some(cell) = summary.cells.first()
        && let Some(fct) = cell.metrics.get("fct_ms").and_then(|metric| metric.mean)
        && !feels_objects(plan)
        && !has_web(plan)
        && sentences.is_empty()
    {
        let ratio = fct / cell.ideal_fct_ms;
        sentences.push(format!(
            "{} finishes {} on {} in {fct:.0} ms, {ratio:.2} times the physical limit.",
            cell.scheme,
            carried(cell),
            cell.link
        ));
    }
    if failed > 0 {
        sentences.push(format!("{failed} transfers did not finish and are counted as failed."));
    }
    sentences
}

/// How a scheme compares with the first one, over all settings.
struct Standing<'a> {
    scheme: &'a str,
    cells: Vec<(&'a CellSummary, &'a Comparison)>,
    /// The median speed-up, and the least and the largest.
    middle: f64,
    range: [f64; 2],
    /// The median of the extra bytes, as a part of the payload.
    bytes: Option<f64>,
    /// What others lost to this scheme and to the first one: medians in Mbit, or in milliseconds where they have an end.
    harm: Option<[f64; 2]>,
    /// Whether the harm is milliseconds.
    late: bool,
}

impl<'a> Standing<'a> {
    fn of(plan: &'a Plan, summary: &'a Summary, scheme: usize) -> Option<Self> {
        let late = plan.competitors.iter().any(|competitor| competitor.value.has_transfers());
        let harm_of = |cell: &CellSummary| {
            let others = cell.others.as_ref()?;
            if late { others.extra_fct_ms.as_ref()?.mean } else { others.goodput_lost_mbit.mean }
        };
        let (mut cells, mut speedups, mut bytes, mut harm, mut base_harm) = (vec![], vec![], vec![], vec![], vec![]);
        for cell in plan.cells().iter().filter(|cell| cell.scheme == scheme) {
            let own = &summary.cells[cell.index];
            let Some((versus, speedup)) = own.vs_baseline.as_ref().and_then(|v| Some((v, v.speedup?))) else {
                continue;
            };
            cells.push((own, versus));
            speedups.push(speedup);
            bytes.extend(versus.inflation_delta);
            if let Some((own, base)) = harm_of(own).zip(harm_of(&summary.cells[plan.baseline_of(cell).index])) {
                harm.push(own);
                base_harm.push(base);
            }
        }
        Some(Self {
            scheme: &plan.schemes[scheme].text,
            middle: median(&speedups)?,
            range: [speedups.iter().copied().reduce(f64::min)?, speedups.iter().copied().reduce(f64::max)?],
            bytes: median(&bytes),
            late,
            harm: median(&harm).zip(median(&base_harm)).map(|(own, base)| [own, base]),
            cells,
        })
    }

    fn sentence(&self, plan: &Plan) -> String {
        let baseline = &plan.schemes[0].text;
        let [verb, infinitive] = if feels_objects(plan) { ["delivers", "deliver"] } else { ["finishes", "finish"] };
        let bytes = self.bytes.map_or(String::new(), |bytes| match bytes * 100.0 {
            percent if percent.abs() < 0.05 => ", for as many bytes".to_owned(),
            percent if percent > 0.0 => format!(", for {percent:.1} % more bytes"),
            percent => format!(", for {:.1} % fewer bytes", -percent),
        });
        let harm = self.harm.map_or(String::new(), |[own, base]| match self.late {
            true => {
                format!("; the other transfers take {own:.0} ms longer beside it and {base:.0} ms beside {baseline}")
            }
            false => format!("; the other traffic loses {own:.1} Mbit to it and {base:.1} Mbit to {baseline}"),
        });
        let [low, high] = self.range;
        match self.cells[..] {
            [(cell, versus)] => {
                let size = carried(cell);
                let interval =
                    versus.speedup_ci95.map_or(String::new(), |[low, high]| format!(" (95 % {low:.2} to {high:.2})"));
                if !versus.significant {
                    let (scheme, link) = (self.scheme, &cell.link);
                    return format!(
                        "{scheme} does not {infinitive} {size} on {link} measurably sooner or later than {baseline}: \
                         {:.2} times as fast{interval}{bytes}{harm}.",
                        self.middle
                    );
                }
                format!(
                    "{} {verb} {size} {} on {}{interval}{bytes}{harm}.",
                    self.scheme,
                    against(self.middle, baseline),
                    cell.link
                )
            }
            _ => format!(
                "{} {verb} {} in the median over {} (range {low:.2} to {high:.2}){bytes}{harm}.",
                self.scheme,
                against(self.middle, baseline),
                settings(plan)
            ),
        }
    }
}

/// Whether the completion times are those of chunks.
fn feels_objects(plan: &Plan) -> bool {
    plan.sizes.iter().filter_map(|size| size.value.application()).any(|application| application.feels_objects())
}

/// What a cell's flows carry, in words.
fn carried(cell: &CellSummary) -> String {
    match &cell.application {
        None => format!("a {} transfer", Bytes::new(cell.size_bytes)),
        Some(application) => application.clone(),
    }
}

/// A speed-up over `baseline` as people say it.
fn against(speedup: f64, baseline: &str) -> String {
    let later = 1.0 / speedup;
    match speedup.max(later) {
        factor if factor < 1.005 => format!("as soon as {baseline}"),
        factor if speedup > 1.0 => format!("{factor:.2} times sooner than {baseline}"),
        factor => format!("{factor:.2} times later than {baseline}"),
    }
}

/// What the comparisons range over: `4 links and 3 sizes`.
fn settings(plan: &Plan) -> String {
    let counts = [
        (plan.links.len(), "links"),
        (plan.aqms.len(), "AQMs"),
        (plan.competitors.len(), "competitors"),
        (plan.sizes.len(), "sizes"),
        (plan.arrivals.len(), "arrivals"),
        (plan.idle.len(), "idle policies"),
        (plan.moves.len(), "mobilities"),
    ];
    let named: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 1).map(|(count, name)| format!("{count} {name}")).collect();
    match named.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "all settings".to_owned(),
    }
}

/// The cells whose median runs are shown: the baseline and the next schemes, in the middle size, on the first links.
fn example_cells(plan: &Plan) -> Vec<Cell> {
    let size = plan.sizes.len() / 2;
    let links = plan.links.len();
    // The middle of the list and its end stand for the rest.
    let mut shown: Vec<usize> = [links / 3, links - 1].to_vec();
    shown.dedup();
    let schemes = plan.schemes.len().min(MAX_EXAMPLES / shown.len());
    plan.cells()
        .into_iter()
        .filter(|cell| plan.sizes[cell.size].value.web().is_none())
        .filter(|cell| cell.size == size && cell.aqm == 0 && cell.competitor == plan.competitors.len() - 1)
        .filter(|cell| cell.arrival == plan.arrivals.len() / 2 && cell.idle == plan.idle.len() / 2)
        .filter(|cell| cell.mobility == plan.moves.len() / 2)
        .filter(|cell| shown.contains(&cell.link) && cell.scheme < schemes)
        .collect()
}

/// The median run of each of these cells, and a slow one if there is room for all.
fn examples(plan: &Plan, by_cell: &[Vec<&Row>]) -> Vec<report::ExampleRun> {
    let cells = example_cells(plan);
    let slow = cells.len() * 2 <= MAX_EXAMPLES;
    let mut wanted = Vec::new();
    for cell in &cells {
        let rows = &by_cell[cell.index];
        let Some(middle) = median_rep(rows) else { continue };
        wanted.push((cell, middle, "the median run"));
        let Some(late) = slow_rep(rows).filter(|late| slow && *late != middle) else { continue };
        let fct = |rep: u32| rows.iter().find(|row| row.rep == u64::from(rep)).and_then(|row| row.fct_ms);
        // A picture of the same run twice would only look like an error.
        if fct(late) > fct(middle) {
            wanted.push((cell, late, "a slow run (95th percentile)"));
        }
    }
    wanted.par_iter().filter_map(|(cell, rep, label)| example(plan, cell, *rep, label)).collect()
}

fn example(plan: &Plan, cell: &Cell, rep: u32, label: &str) -> Option<report::ExampleRun> {
    let mut finished = run::replay(plan, cell, rep);
    let outcome = run::outcomes(plan, cell, &mut finished).into_iter().next()?;
    let link = &plan.links[cell.link];
    let series = Series::read(&finished);
    let end = finished.world.now().since(finished.start).min(LONGEST_EXAMPLE).as_millis();
    let measured = finished.flows.first().copied()?;
    let flows = series
        .departures
        .into_iter()
        .map(|(flow, departures)| report::RunFlow {
            name: if finished.flows.contains(&flow) {
                plan.schemes[cell.scheme].text.clone()
            } else {
                plan.competitors[cell.competitor].text.clone()
            },
            measured: flow == measured,
            departures: departures.into_iter().filter(|point| point[0] <= end).collect(),
        })
        .collect();
    Some(report::ExampleRun {
        cell: plan.id(cell),
        rep,
        link: link.text.clone(),
        size: plan.carried(cell),
        scheme: plan.schemes[cell.scheme].text.clone(),
        competitor: plan.competitors[cell.competitor].text.clone(),
        label: label.into(),
        fct_ms: outcome.record.completed.zip(outcome.record.started).map(|(end, start)| end.since(start).as_millis()),
        rtt_ms: link.rtt.as_millis(),
        rate_mbit: Some(link.rate.as_mbit()),
        from_ms: series.from_ms,
        to_ms: end,
        flows,
        sent: series.sent.into_iter().filter(|point| point[0] <= end).collect(),
        cwnd: series.cwnd,
        in_flight: series.in_flight,
        queue_packets: series.queue,
        drops: series.drops,
        other_drops: series.other_drops,
    })
}

/// A traced run as time series, in milliseconds from the newcomer's start.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// When the trace begins.
    pub from_ms: f64,
    /// Departures of each flow at the bottleneck: time, wire bytes.
    pub departures: std::collections::BTreeMap<u32, Vec<[f64; 2]>>,
    /// cwnd in bytes.
    pub cwnd: Vec<[f64; 2]>,
    /// Bytes in flight.
    pub in_flight: Vec<[f64; 2]>,
    /// ssthresh in bytes, where it is set.
    pub ssthresh: Vec<[f64; 2]>,
    /// Pacing rate in Mbit/s.
    pub pacing_rate_mbit: Vec<[f64; 2]>,
    /// Packets waiting at the bottleneck.
    pub queue: Vec<[f64; 2]>,
    /// Data sent for the first time: time, offset.
    pub sent: Vec<[f64; 2]>,
    /// Data sent again.
    pub retransmitted: Vec<[f64; 2]>,
    /// Data dropped: time, offset.
    pub dropped: Vec<[f64; 2]>,
    /// Contiguously acknowledged bytes.
    pub acked: Vec<[f64; 2]>,
    /// Drops of the measured flow.
    pub drops: Vec<f64>,
    /// Drops of others.
    pub other_drops: Vec<f64>,
}

impl Series {
    /// Reads the trace of the first measured flow.
    pub fn read(finished: &Finished) -> Self {
        let mut series = Self::default();
        let Some(trace) = &finished.world.network.trace else { return series };
        let start = finished.start.as_secs() * 1000.0;
        let ms = |time: Timestamp| time.as_secs() * 1000.0 - start;
        let measured = finished.flows.first().copied();
        series.from_ms = trace.entries.first().map_or(0.0, |entry| ms(entry.time)).min(0.0);
        for entry in &trace.entries {
            let time = ms(entry.time);
            let own = Some(entry.flow) == measured;
            match entry.event {
                Event::Departed { size, .. } => {
                    series.departures.entry(entry.flow).or_default().push([time, f64::from(size)]);
                }
                Event::Queue { packets, .. } => push_change(&mut series.queue, time, f64::from(packets)),
                Event::Dropped { offset, .. } if own => {
                    series.drops.push(time);
                    series.dropped.extend(offset.map(|offset| [time, offset as f64]));
                }
                Event::Dropped { .. } => series.other_drops.push(time),
                Event::Sent { offset, retransmission, .. } if own => {
                    let list = if retransmission { &mut series.retransmitted } else { &mut series.sent };
                    list.push([time, offset as f64]);
                }
                Event::Acknowledged { contiguous, .. } if own => {
                    push_change(&mut series.acked, time, contiguous as f64);
                }
                Event::Window { cwnd, ssthresh, in_flight, pacing_rate, .. } if own => {
                    push_change(&mut series.cwnd, time, cwnd.get() as f64);
                    push_change(&mut series.in_flight, time, in_flight.get() as f64);
                    if ssthresh != Bytes::MAX {
                        push_change(&mut series.ssthresh, time, ssthresh.get() as f64);
                    }
                    if let Some(rate) = pacing_rate {
                        push_change(&mut series.pacing_rate_mbit, time, rate.as_mbit());
                    }
                }
                _ => {}
            }
        }
        series
    }
}

/// Adds a point unless the value is the one before.
fn push_change(series: &mut Vec<[f64; 2]>, time: f64, value: f64) {
    if series.last().is_none_or(|last| last[1] != value) {
        series.push([time, value]);
    }
}

/// A published table beside ours, as the report shows it. `published` gives, for a link, a size and an estimate, the
/// published speed-up, the difference of FCT in milliseconds and the extra losses.
pub fn published_table(
    plan: &Plan,
    rows: &[Row],
    published: impl Fn(&str, &str, f64) -> Option<(f64, f64, f64)>,
) -> Vec<report::PublishedCell> {
    let by_cell = rows_by_cell(plan, rows);
    let mut cells = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.scheme > 0) {
        let Some(estimate) = estimate_of(plan, cell) else { continue };
        let (link, size) = (&plan.links[cell.link], &plan.sizes[cell.size]);
        let (own, base) = (&by_cell[cell.index], &by_cell[plan.baseline_of(cell).index]);
        let (fct, base_fct) = (values(own, |row| row.fct_request_ms), values(base, |row| row.fct_request_ms));
        let lost = |rows: &[&Row]| values(rows, |row| Some(row.declared_lost_packets as f64));
        let (losses, base_losses) = (lost(own), lost(base));
        let theirs = published(&link.text, &size.text, estimate);
        let delta = mean(&fct).zip(mean(&base_fct)).map(|(own, base)| own - base);
        let seed = plan.seed ^ cell.index as u64;
        let speedup = crate::statistics::bca_mean_ratio_paired(&base_fct, &fct, 0.95, 10_000, seed);
        let loss = bca_mean_difference_paired(&base_losses, &losses, 0.95, 10_000, seed);
        cells.push(report::PublishedCell {
            estimate,
            link: link.text.clone(),
            size: size.text.clone(),
            ours_speedup: report::Estimate {
                mean: mean(&base_fct).zip(mean(&fct)).map(|(base, own)| base / own),
                ci95: speedup.map(|e| [e.interval.low, e.interval.high]),
            },
            ours_fct_delta_ms: delta,
            published_speedup: theirs.map(|t| t.0),
            published_fct_delta_ms: theirs.map(|t| t.1),
            ours_loss_delta: report::Estimate {
                mean: mean(&losses).zip(mean(&base_losses)).map(|(own, base)| own - base),
                ci95: loss.map(|e| [e.interval.low, e.interval.high]),
            },
            published_loss_delta: theirs.map(|t| t.2),
            significant: Some(paper_significant(&base_fct, &fct)),
            loss_significant: Some(paper_significant(&base_losses, &losses)),
            within_one_rtt: delta.map(|delta| delta.abs() < link.rtt.as_millis()),
        });
    }
    cells
}

/// The factor on the hint of a cell's scheme.
pub fn estimate_of(plan: &Plan, cell: &Cell) -> Option<f64> {
    match &plan.schemes[cell.scheme].value {
        StartupConfig::Blitzstart(config) => Some(config.estimate),
        _ => None,
    }
}

/// The paper's two tests: 0 lies outside the difference's 95 % interval, and an analysis of variance rejects equality.
fn paper_significant(a: &[f64], b: &[f64]) -> bool {
    let outside = difference_interval(a, b, 0.95).is_some_and(|interval| interval.zero_outside());
    outside && anova_one_way(&[a, b]).is_some_and(|anova| anova.p < 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::summary::summarize;
    use std::path::Path;

    fn answer_to(link: &[&str], size: &[&str], scheme: &[&str], competitor: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let scenario = Scenario {
            link: words(link),
            size: words(size),
            scheme: words(scheme),
            aqm: words(&["taildrop"]),
            competitor: words(&[competitor]),
            transport: "model-quic".into(),
            flows: 1,
            reps: 2,
            seed: 1,
            hint: true,
            ..Scenario::default()
        };
        let plan = scenario.plan(Path::new(".")).unwrap();
        let rows = experiment::execute(&plan, 1, &[], |_| {}).unwrap();
        answer(&plan, &summarize(&plan, &rows))
    }

    #[test]
    fn many_cells_are_answered_by_their_median() {
        let answer = answer_to(&["dsl-fast", "lte"], &["70KB", "2MB"], &["slow-start", "blitzstart"], "none");
        let first = &answer[0];
        assert!(first.starts_with("blitzstart finishes ") && first.contains(" than slow-start "), "{first}");
        assert!(first.contains(" in the median over 2 links and 2 sizes (range "), "{first}");
        assert!(!first.contains("other traffic") && first.ends_with('.'), "{first}");
        assert!(answer[1].starts_with("Of 4 comparisons with slow-start, "), "{answer:?}");
    }

    #[test]
    fn a_speed_up_of_one_is_neither_sooner_nor_later() {
        assert_eq!(against(1.004, "b"), "as soon as b");
        assert_eq!(against(0.996, "b"), "as soon as b");
        assert_eq!(against(1.006, "b"), "1.01 times sooner than b");
        assert_eq!(against(0.5, "b"), "2.00 times later than b");
    }

    #[test]
    fn one_cell_is_answered_by_itself() {
        let answer = answer_to(&["dsl-fast"], &["2MB"], &["slow-start", "hystart"], "cubic");
        assert_eq!(answer.len(), 1, "{answer:?}");
        assert!(answer[0].contains("2MB transfer") && answer[0].contains("dsl-fast"), "{answer:?}");
        assert!(answer[0].contains("; the other traffic loses "), "{answer:?}");
    }
}
