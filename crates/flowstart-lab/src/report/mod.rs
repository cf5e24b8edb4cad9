//! From results to the contents of the report: the answer in a sentence, the cells, example runs.

use flowstart_core::path::AccessTechnology;
use flowstart_core::startup::StartupConfig;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Bytes;

use crate::experiment;
use crate::results::cell_summary::CellSummary;
use crate::results::felt::felt;
use crate::results::flows::Row;
use crate::results::folder::ExperimentError;
use crate::results::pairs::paired;
use crate::results::summary::{Summary, rows_by_cell, values};
use crate::spec::STACK;
use crate::spec::application::Felt;
use crate::spec::competitor::Competitor;
use crate::spec::link::{ACCESS_RATE, Buffer};
use crate::spec::transport::Transport;
use crate::study::ideal::{ideal_fct, quick_start_rounds, slow_start_fct};
use crate::study::plan::{Cell, Plan};
use crate::study::scenario::Scenario;
use crate::trace::explain::Explanation;
use crate::trace::observe::{Kept, MOST_FLOWS, Shown, Wanted, Watched};
use again::see_the_rest;
use flowstart_report as report;

mod again;
mod answer;
mod changes;
mod examples;
mod published;
mod rtt;
mod shared;
mod trace;
mod web;

pub use again::Again;
pub use answer::answer;
pub use changes::changes;
pub use examples::{MeasuredFlow, median_flow};
pub use published::{estimate_of, published_table};
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
    experiment::threads(jobs)?.install(|| see_the_rest(plan, &shown, &mut kept, progress));
    let causes = cells.iter().map(|cell| causes(cell, standing[cell.index].middle?, &kept));
    let media = cells.iter().map(|cell| {
        let delays = (0..plan.reps.min(MEDIA_REPS)).filter_map(|rep| kept.get(cell, rep)?.media_delays.as_ref());
        delays.flatten().copied().collect::<Vec<f64>>()
    });
    let own = plan.own_schemes();
    let mut runs: Vec<_> =
        examples.iter().filter_map(|one| examples::example(plan, one, &by_cell[one.0.index], &kept)).collect();
    if !own.is_empty() {
        // The program that replays runs does not know these schemes, and so not the study.
        runs.iter_mut().for_each(|run| run.cell.clear());
        method.notes.push(format!(
            "{} {} from outside flowstart: only the program that wrote this page can run its cells again.",
            own.join(", "),
            if own.len() > 1 { "are schemes" } else { "is a scheme" }
        ));
    }
    let entries = cells.iter().zip(causes).zip(media).map(|((cell, causes), media)| {
        let mut entry = cell_input(plan, cell, &summary.cells[cell.index], &by_cell[cell.index]);
        entry.causes = causes;
        // Traces show one connection. Replays of a setting's cells show one repetition, unless it failed.
        let shown = standing[cell.index].middle.filter(|of| has_finished(&by_cell[cell.index], *of));
        entry.replay_rep = shown.or_else(|| median_flow(&by_cell[cell.index])).map(|of| of.rep);
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
        agreements: answer::agreements(plan, summary),
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

/// Descriptions of the schemes, one for each kind. [`STACK`] is a separate kind, which describes the transport's own
/// behaviour.
fn schemes(plan: &Plan) -> Vec<(String, String)> {
    let mut schemes: Vec<(String, String)> = Vec::new();
    for scheme in &plan.schemes {
        let (name, summary) = match &*scheme.text {
            STACK => {
                let does = |(place, transport): (usize, &Transport)| {
                    let (startup, avoidance) = (scheme.on(place), transport.profile.avoidance.name());
                    let (name, summary) = (startup.name(), startup.summary());
                    format!("what {} does: {name} with {avoidance}: {summary}", transport.text)
                };
                (STACK, plan.transports.iter().enumerate().map(does).collect::<Vec<_>>().join("; "))
            }
            _ => (scheme.first().name(), scheme.first().summary().to_owned()),
        };
        if !schemes.iter().any(|(known, _)| known == name) {
            schemes.push((name.to_owned(), summary));
        }
    }
    schemes
}

/// Descriptions of the AQMs, one for each kind, if there is a choice.
fn aqms(plan: &Plan) -> Vec<(String, String)> {
    let mut aqms: Vec<(String, String)> = Vec::new();
    for aqm in plan.aqms.iter().filter(|_| plan.aqms.len() > 1) {
        let (name, summary) = (aqm.value.name(), aqm.value.summary());
        if !aqms.iter().any(|(known, _)| known == name) {
            aqms.push((name.to_owned(), summary.to_owned()));
        }
    }
    aqms
}

/// A link in the report's form.
pub fn link_input(plan: &Plan, link: &crate::spec::link::Link) -> report::Link {
    let mut extra = properties(link);
    extra.extend(windows(plan));
    if let Some(routers) = &link.routers {
        extra.push(("Quick-Start routers".to_owned(), routers.to_string()));
    }
    if let Some(element) = &link.advising {
        extra.push(("advises".to_owned(), format!("{} (SCONE)", element.rate)));
    }
    if link.xcp {
        extra.push(("routers with".to_owned(), "XCP".to_owned()));
    }
    if let Some(proxy) = &link.proxy {
        extra.push(("proxy that splits connections".to_owned(), proxy.to_string()));
    }
    report::Link {
        name: link.text.clone(),
        rate_mbit: Some(link.rate.as_mbit()),
        rate_is_mean: link.trace.is_some() || link.varies.rate.is_some(),
        rtt_ms: Some(link.rtt.as_millis_f64()),
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

/// What is not the default about a link, in words.
fn properties(link: &crate::spec::link::Link) -> Vec<(String, String)> {
    let all = link.resolved();
    let starts = if link.trace_start_varies { "repetitions begin at different places of it" } else { "from its start" };
    let recording = |file: &std::path::PathBuf| format!("{}, {starts}", file.display());
    let jitter = |jitter: flowstart_sim::link::wire::Jitter| format!("up to {}", jitter.amplitude);
    let other = |is_other: bool, value: String| is_other.then_some(value);
    // Beside a recording it is constant, by default at its mean.
    let is_rate_back = (link.up_rate != link.rate || link.trace_file.is_some()) && link.up_trace.is_none();
    let properties = [
        ("recording", link.trace_file.as_ref().map(recording)),
        ("rate in steps", all.rate_steps),
        ("rate varies", all.rate_varies),
        ("delay in steps", all.rtt_steps),
        ("rate back", other(is_rate_back, link.up_rate.to_string())),
        ("recording of the way back", all.up_trace),
        ("buffer of the way back", other(link.up_buffer != Buffer::Unlimited, all.up_buffer)),
        ("bottleneck links in a row", other(link.hops > 1, link.hops.to_string())),
        ("others cross hop", all.cross),
        ("rate of the hosts' links", other(link.access_rate != ACCESS_RATE, all.access_rate)),
        ("delay of the hosts' links", other(link.access_delay > Duration::ZERO, all.access_delay)),
        ("scheduling noise of hosts", link.access_jitter.map(jitter)),
        ("jitter", link.jitter.map(jitter)),
        ("random loss", all.loss),
        ("reordering", all.reorder),
        ("token bucket", all.burst),
        ("policer with a bucket of", all.policer),
        ("the buffer", other(link.counts_in_service, "holds the packet in service, too".to_owned())),
        ("access technology", other(link.technology != AccessTechnology::Unknown, link.technology.to_string())),
        ("hinted rate", all.hint),
        ("steps of hints per factor of ten", all.hint_steps.map(|steps| steps.to_string())),
    ];
    properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The receivers' windows that are smaller than a transfer, and so may limit it.
fn windows(plan: &Plan) -> Vec<(String, String)> {
    let largest = plan.sizes.iter().map(|size| size.value.mean_bytes()).max().unwrap_or(Bytes::ZERO);
    let small = plan.transports.iter().filter(|transport| transport.profile.receive_window < largest);
    let mut windows: Vec<(String, String)> = Vec::new();
    for transport in small {
        let of = if plan.transports.len() > 1 {
            format!("receive window of {}", transport.text)
        } else {
            "receive window".to_owned()
        };
        windows.push((of, transport.profile.receive_window.to_string()));
    }
    windows
}

/// Whether measured flows belong to web sessions.
fn has_web(plan: &Plan) -> bool {
    plan.sizes.iter().any(|size| size.value.sessions().is_some())
}

/// Number of measured flows of a cell; for web sessions the number of sessions, each with one connection or more at a
/// time.
fn measured_flows(plan: &Plan, cell: &Cell) -> u32 {
    plan.sizes[cell.size].value.sessions().map_or(plan.flow_count(cell), |web| web.sessions)
}

/// The number of other flows in an equal split.
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

fn estimate(metric: &flowstart_statistics::Metric) -> report::Estimate {
    report::Estimate { mean: metric.mean, ci95: metric.ci95 }
}

/// What the time of a cell is that users notice.
fn time(plan: &Plan, cell: &Cell) -> report::Time {
    match plan.sizes[cell.size].value.objects().map(|application| application.felt()) {
        None | Some(Felt::Completion) => report::Time::Completion,
        Some(Felt::Objects) => report::Time::Chunk,
        Some(Felt::Start) => report::Time::FirstPicture,
    }
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
        transport: match (plan.worlds.len() > 1 || !plan.is_simulated(cell), plan.worlds[cell.world].name()) {
            (true, world) => format!("{}, {world}", summary.transport),
            (false, _) => summary.transport.clone(),
        },
        arrival: summary.otherwise.get("arrival").cloned().unwrap_or_default(),
        load: plan.arrivals[cell.arrival].value.load().map(|load| load.as_mbit() / link.rate.as_mbit()),
        model_speedup: model_speedup(plan, cell),
        rounds_speedup: rounds_speedup(plan, cell),
        baseline: versus.map_or_else(String::new, |versus| versus.baseline.clone()),
        is_baseline: versus.is_none(),
        n: summary.n as u32,
        failed: summary.failed as u32,
        // The limit is that of the flow.
        ideal_fct_ms: Some(summary.ideal_fct_ms).filter(|_| name == "fct_ms"),
        time: time(plan, cell),
        fct_ms: metric(name),
        speedup: versus.map_or_else(Default::default, |v| report::Estimate { mean: v.speedup, ci95: v.speedup_ci }),
        verdict: versus.and_then(|v| v.verdict),
        dropped_delta: versus
            .map_or_else(Default::default, |v| report::Estimate { mean: v.dropped_delta, ci95: v.dropped_delta_ci95 }),
        max_queue_delay_ms: metric("max_queue_delay_ms"),
        dropped_packets: metric("dropped_packets"),
        lost: estimate(&summary.lost_share),
        inflation: metric("inflation"),
        share: if summary.others.is_some() { metric("share") } else { report::Estimate::default() },
        // Several measured flows share with each other, too.
        equal_share: other_flows(plan.competitors[cell.competitor].on(cell.transport))
            .filter(|_| plan.flow_count(cell) * plan.connections_of(cell) == 1)
            .map(|others| 1.0 / f64::from(others + 1)),
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
        media: plan.competitors[cell.competitor].on(cell.transport).media().map(|_| report::Media {
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
        call: plan.competitors[cell.competitor].on(cell.transport).call().map(|_| report::Call {
            delay_p50_ms: metric("call_delay_p50_ms"),
            delay_p95_ms: metric("call_delay_p95_ms"),
            delay_p99_ms: metric("call_delay_p99_ms"),
            delay_max_ms: metric("call_delay_max_ms"),
            lost: metric("call_lost"),
            late: metric("call_late"),
            not_shown: metric("call_not_shown"),
            frozen: metric("call_frozen"),
            longest_freeze_ms: metric("call_longest_freeze_ms"),
            harm_ms: metric("call_harm_ms"),
        }),
        causes: None,
        replay_rep: None,
        samples: report::Samples {
            fct_ms: values(rows, felt),
            share: if summary.others.is_some() { values(rows, |row| row.share) } else { Vec::new() },
            dropped_packets: values(rows, |row| Some(row.dropped_packets as f64)),
            max_queue_delay_ms: values(rows, |row| row.max_queue_delay_ms),
            media_delay_ms: Vec::new(),
            size_fct: web::connections(plan, cell, rows),
        },
        curves: Vec::new(),
    }
}

/// The size of a transfer that closed forms cover: one flow alone with one request over one connection, as the
/// baseline's, on a steady link.
fn alone(plan: &Plan, cell: &Cell) -> Option<Bytes> {
    let size = &plan.sizes[cell.size].value;
    let alone = *plan.competitors[cell.competitor].on(cell.transport) == Competitor::None && plan.flow_count(cell) == 1;
    let steady = plan.links[cell.link].is_steady() && plan.mobility(cell).is_none();
    let plain = [*cell, Cell { scheme: 0, ..*cell }].iter().all(|cell| plan.is_one_connection(cell));
    let once = size.objects().is_none() && size.sessions().is_none() && plain;
    (alone && steady && once).then(|| size.mean_bytes())
}

/// Initial window of the baseline in packets, if it is slow start that doubles the window in each round.
fn baseline_window(plan: &Plan, cell: &Cell) -> Option<u64> {
    let StartupConfig::SlowStart(config) = plan.schemes[0].on(cell.transport) else { return None };
    config.is_classic().then(|| config.iw.map_or(plan.transport_of(cell).profile.initial_window, u64::from))
}

/// Slow start's closed form over the physical limit.
fn model_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let (size, window) = (alone(plan, cell)?, baseline_window(plan, cell)?);
    let (link, profile) = (&plan.links[cell.link], &plan.transport_of(cell).profile);
    let limit = ideal_fct(link, profile, size, Timestamp::ZERO);
    link.is_plain().then(|| slow_start_fct(link, profile, size, window).as_secs() / limit.as_secs())
}

/// Quick-Start's speed-up over slow start by round trips.
fn rounds_speedup(plan: &Plan, cell: &Cell) -> Option<f64> {
    let config = plan.schemes[cell.scheme].on(cell.transport).request()?;
    let (size, window) = (alone(plan, cell)?, baseline_window(plan, cell)?);
    let [without, with] =
        quick_start_rounds(&plan.links[cell.link], &plan.transport_of(cell).profile, size, window, config)?;
    Some(without / with)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::scenario::Scenario;

    #[test]
    fn closed_forms_are_of_one_plain_connection() {
        let covered = |link: &str, schemes: &str| {
            let text = format!(
                "link = [\"{link}\"]\nsize = [\"70KB\"]\nscheme = [{schemes}]\ntransport = \"model-tcp:profile=tcp-linux\""
            );
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            plan.cells().iter().map(|cell| model_speedup(&plan, cell).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(covered("geo", "\"slow-start\", \"suss\""), [true, true]);
        assert_eq!(covered("geo,pep=integrated", "\"slow-start\", \"suss\""), [false, false]);
        assert_eq!(covered("geo", "\"slow-start:connections=6\", \"suss\""), [false, false]);
        assert_eq!(covered("geo", "\"slow-start\", \"slow-start:connections=6\""), [true, false]);
        for link in ["geo,rtt_steps=20ms/15s", "geo,hops=2", "geo,xcp=on", "geo,policer=100KB", "geo,burst=100KB"] {
            assert_eq!(covered(link, "\"slow-start\", \"suss\""), [false, false], "{link}");
        }
        for scheme in ["slow-start:abc_limit=1", "slow-start:spread=true"] {
            assert_eq!(covered("geo", &format!("\"{scheme}\", \"suss\"")), [false, false], "{scheme}");
        }
    }

    #[test]
    fn the_stack_is_described_by_what_it_runs_beside_the_scheme_of_that_name() {
        let text = "link = [\"lte\"]\nsize = [\"70KB\"]\nscheme = [\"stack\", \"hystart\", \"slow-start:iw=3\", \"slow-start:iw=4\"]\n\
                    transport = \"model-tcp:profile=tcp-linux\"";
        let plan = Scenario::from_text(text).unwrap().plan(Path::new(".")).unwrap();
        let schemes = schemes(&plan);
        let names: Vec<&str> = schemes.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["stack", "hystart", "slow-start"]);
        assert!(
            schemes[0].1.starts_with("what model-tcp:profile=tcp-linux does: hystart with cubic: "),
            "{}",
            schemes[0].1
        );
    }

    #[test]
    fn the_time_of_a_video_is_that_of_its_first_picture() {
        let of = |application: &str| {
            let text = format!("link = [\"lte\"]\n{application}\nscheme = [\"slow-start\"]");
            let plan = Scenario::from_text(&text).unwrap().plan(Path::new(".")).unwrap();
            time(&plan, &plan.cells()[0])
        };
        assert_eq!(of("application = [\"video:count=15\"]"), report::Time::FirstPicture);
        assert_eq!(of("size = [\"70KB\"]"), report::Time::Completion);
    }
}
