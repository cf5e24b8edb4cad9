//! Turns a [`Report`] into what the template shows.

use super::chart::{self, Chart, Extent, LegendItem};
use super::command::Invocation;
use super::drawing::{self, distinct};
use super::media::{self, HEADINGS};
use super::number::{Format, UNDEFINED, finite, interval};
use super::unbeaten::unbeaten;
use super::{Cell, Check, Estimate, Method, PublishedCell, PublishedTable, RenderError, Report};
use crate::Cause;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;

/// The libraries that draw the charts, in the order in which they need each other.
const LIBRARIES: [&str; 3] = [
    include_str!("vendor/vega.min.js"),
    include_str!("vendor/vega-lite.min.js"),
    include_str!("vendor/vega-embed.min.js"),
];

/// Their licences ask to be shown wherever the libraries go.
const LICENCES: [&str; 4] = [
    include_str!("vendor/vega.LICENSE"),
    include_str!("vendor/vega-lite.LICENSE"),
    include_str!("vendor/vega-embed.LICENSE"),
    include_str!("vendor/bundled-packages.LICENSE"),
];

const TEMPLATES: [(&str, &str); 6] = [
    ("page.html", include_str!("templates/page.html")),
    ("report.html", include_str!("templates/report.html")),
    ("trace.html", include_str!("templates/trace.html")),
    ("figure.html", include_str!("templates/figure.html")),
    ("setup.html", include_str!("templates/setup.html")),
    ("method.html", include_str!("templates/method.html")),
];

pub(super) fn render(report: &Report) -> Result<String, RenderError> {
    let schemes = distinct(report.cells.iter().map(|c| &c.scheme));
    let curves = chart::curves(&report.cells);
    let many = curves.is_some() || report.cells.iter().any(|cell| !cell.samples.size_fct.is_empty());
    // Nor are connections of many sizes a distribution of anything, or means over them.
    let groups = if many { Vec::new() } else { groups(&report.cells) };
    let distributions = groups
        .iter()
        .enumerate()
        .filter_map(|(i, group)| chart::distributions(format!("distribution-{}", i + 1), group, &schemes))
        .collect();
    let series = series(report, &schemes);
    write(
        "report.html",
        context! {
            title => or_untitled(&report.title),
            answer => sentences(&report.answer),
            question => paragraphs(report.question.as_deref()),
            analysis => paragraphs(report.analysis.as_deref()),
            setup => drawing::setup(&report.links, &schemes),
            table => table(report),
            published => report.published.as_ref().map(published).transpose()?,
            distributions => finished(distributions)?,
            curves => finished(curves.into_iter().collect())?.pop(),
            scatter => finished(chart::scatter(&report.cells, &schemes).into_iter().collect())?.pop(),
            loads => finished(chart::loads(&report.cells, &schemes).into_iter().collect())?.pop(),
            sizes => finished(chart::sizes(&report.cells, &schemes).into_iter().collect())?.pop(),
            pareto => finished(chart::pareto(&groups, &schemes).into_iter().collect())?.pop(),
            unbeaten => unbeaten(&groups),
            media => finished(chart::media(&groups, &schemes).into_iter().collect())?.pop(),
            media_rows => media::rows(&groups),
            media_headings => HEADINGS,
            pairs => finished(chart::pairs(&report.pairs, &schemes).into_iter().collect())?.pop(),
            pair_rows => media::pair_rows(&report.pairs),
            waterfall => finished(chart::waterfall(&groups, &schemes).into_iter().collect())?.pop(),
            causes => causes(&groups),
            unexplained => report.unexplained,
            terms => cause_terms(),
            schemes => report.schemes,
            aqms => report.aqms,
            series => series?,
            method => method(&report.method),
        },
    )
}

/// Fills a template with its own context and what every page needs.
pub(super) fn write(template: &str, page: Value) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(
        |name| {
            if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
        },
    );
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let common = context! {
        style => include_str!("templates/style.css"),
        script => include_str!("templates/page.js"),
        libraries => LIBRARIES.map(without_source_map),
        licences => LICENCES,
        undefined => UNDEFINED,
    };
    Ok(environment.get_template(template)?.render(context! { ..page, ..common })?)
}

/// A library without the comment that makes developer tools look for its source map.
fn without_source_map(library: &str) -> &str {
    library.rfind("//# sourceMappingURL=").map_or(library, |at| library[..at].trim_end())
}

/// Writes the specifications of charts into the form that the page embeds.
pub(super) fn finished(mut charts: Vec<Chart>) -> Result<Vec<Chart>, RenderError> {
    for chart in &mut charts {
        chart.json = chart::embed(&chart.spec)?;
    }
    Ok(charts)
}

pub(super) fn or_untitled(title: &str) -> &str {
    if title.is_empty() { "flowstart report" } else { title }
}

/// Sentences in which a number and its unit stay on one line, however narrow the screen.
pub(super) fn sentences(answer: &[String]) -> Vec<String> {
    let units = [" %", " ms", " Mbit", " MB", " KB"];
    let kept =
        |text: &String| units.iter().fold(text.clone(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")));
    answer.iter().map(kept).collect()
}

fn paragraphs(text: Option<&str>) -> Vec<String> {
    let text = text.unwrap_or_default().replace("\r\n", "\n");
    text.split("\n\n").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
}

// ------------------------------------------------------------------------------------------------------ groups

/// Cells that differ only in size and scheme.
pub(super) struct Group<'a> {
    /// The link, and AQM and competitor where the report has several.
    pub(super) label: String,
    pub(super) cells: Vec<&'a Cell>,
}

impl<'a> Group<'a> {
    /// The cells of each size, sizes in the order of their first appearance.
    pub(super) fn sizes(&self) -> Vec<(String, Vec<&'a Cell>)> {
        let names = distinct(self.cells.iter().map(|c| &c.size));
        let of = |name: &String| self.cells.iter().copied().filter(|c| c.size == *name).collect();
        names.iter().map(|name| (name.clone(), of(name))).collect()
    }
}

/// When the measured flows start, in the user's words.
fn arrival(cell: &Cell) -> &str {
    if cell.arrival.is_empty() { "together" } else { &cell.arrival }
}

fn groups(cells: &[Cell]) -> Vec<Group<'_>> {
    let several = |values: Vec<String>| values.len() > 1;
    let aqms = several(distinct(cells.iter().map(|c| &c.aqm)));
    let competitors = several(distinct(cells.iter().map(|c| &c.competitor)));
    let arrivals = several(distinct(cells.iter().map(|c| &c.arrival)));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cell in cells {
        let mut label = cell.link.clone();
        if aqms {
            label.push_str(&format!(", AQM {}", cell.aqm));
        }
        if competitors {
            label.push_str(&format!(", competitor {}", cell.competitor));
        }
        if arrivals {
            label.push_str(&format!(", arrival {}", arrival(cell)));
        }
        match groups.iter_mut().find(|g| g.label == label) {
            Some(group) => group.cells.push(cell),
            None => groups.push(Group { label, cells: vec![cell] }),
        }
    }
    groups
}

// ------------------------------------------------------------------------------------------------------ causes

/// What each cause is called and means.
pub(super) fn cause_terms() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.map(|cause| (cause.name(), cause.meaning())).to_vec()
}

/// Milliseconds: one decimal, which says nothing any more from a second on.
pub(super) fn cause_ms(ms: f64) -> String {
    match finite(Some(ms)) {
        None => UNDEFINED.to_owned(),
        Some(ms) if ms.abs() < 0.05 => "0".to_owned(),
        Some(ms) if ms.abs() < 999.95 => format!("{ms:.1}").replace('-', "−"),
        Some(ms) => Format::Plain.show(Some(ms.round())),
    }
}

/// A part of the time beyond the limit.
pub(super) fn percent(part: f64) -> String {
    match finite(Some((part * 100.0).round())) {
        // Without the sign of a negative zero.
        Some(0.0) => "0".to_owned(),
        percent => Format::Plain.show(percent),
    }
}

/// The numbers of the bars.
#[derive(Serialize)]
struct CauseTable {
    names: Vec<&'static str>,
    rows: Vec<CauseRow>,
}

#[derive(Serialize)]
struct CauseRow {
    /// Link and size.
    place: String,
    scheme: String,
    /// FCT, the physical limit, every cause.
    values: Vec<String>,
}

fn causes(groups: &[Group<'_>]) -> CauseTable {
    let mut rows = Vec::new();
    for group in groups {
        for (size, cells) in group.sizes() {
            for (cell, causes) in cells.iter().filter_map(|cell| Some((cell, cell.causes.as_ref()?))) {
                let values = [causes.fct_ms, causes.ideal_fct_ms].into_iter().chain(causes.causes_ms);
                rows.push(CauseRow {
                    place: format!("{}, {size}", group.label),
                    scheme: cell.scheme.clone(),
                    values: values.map(cause_ms).collect(),
                });
            }
        }
    }
    let names = ["FCT", "physical limit"].into_iter().chain(Cause::ALL.map(Cause::name)).collect();
    CauseTable { names, rows }
}

// ------------------------------------------------------------------------------------------------------- marks

/// Verdict on a difference from the baseline, told by shape, colour and words.
#[derive(Serialize, Clone, Copy)]
struct Mark {
    glyph: &'static str,
    class: &'static str,
    words: &'static str,
}

const BETTER: Mark = Mark { glyph: "▲", class: "better", words: "better than the baseline" };
const WORSE: Mark = Mark { glyph: "▼", class: "worse", words: "worse than the baseline" };
const BETTER_WITHIN: Mark = Mark { glyph: "△", class: "better", words: "better, but within the same RTT" };
const WORSE_WITHIN: Mark = Mark { glyph: "▽", class: "worse", words: "worse, but within the same RTT" };
const UNCLEAR: Mark = Mark { glyph: "●", class: "unclear", words: "no significant difference" };

/// Mark of a speed-up. Without a verdict on significance the interval decides.
fn speedup_mark(speedup: Estimate, significant: Option<bool>, within_one_rtt: Option<bool>) -> Option<Mark> {
    let mean = finite(speedup.mean)?;
    let significant = significant.or_else(|| interval(speedup).map(|[low, high]| low > 1.0 || high < 1.0))?;
    Some(match (significant, mean >= 1.0, within_one_rtt == Some(true)) {
        (false, _, _) => UNCLEAR,
        (true, true, false) => BETTER,
        (true, true, true) => BETTER_WITHIN,
        (true, false, false) => WORSE,
        (true, false, true) => WORSE_WITHIN,
    })
}

/// Mark of extra losses: fewer is better.
fn loss_mark(delta: Estimate, significant: Option<bool>) -> Option<Mark> {
    let mean = finite(delta.mean)?;
    let significant = significant.or_else(|| interval(delta).map(|[low, high]| low > 0.0 || high < 0.0))?;
    Some(match (significant, mean < 0.0) {
        (false, _) => UNCLEAR,
        (true, true) => BETTER,
        (true, false) => WORSE,
    })
}

// ------------------------------------------------------------------------------------------------------- table

#[derive(Serialize)]
struct Table {
    rows: Vec<TableRow>,
    /// Columns that are shown only when the cells differ in them.
    has_aqm: bool,
    has_competitor: bool,
    has_avoidance: bool,
    has_transport: bool,
    has_failed: bool,
    has_arrival: bool,
    /// Whether any cell shared its link.
    has_others: bool,
    /// Whether there is another scheme than the baseline.
    has_comparison: bool,
    has_harm: bool,
    has_late: bool,
    baseline: Option<String>,
    failed: u32,
}

#[derive(Serialize)]
struct TableRow {
    link: String,
    aqm: String,
    size: String,
    size_bytes: u64,
    scheme: String,
    avoidance: String,
    transport: String,
    competitor: String,
    arrival: String,
    baseline: bool,
    n: u32,
    failed: u32,
    fct: Number,
    queue: Number,
    speedup: Number,
    dropped: Number,
    inflation: Number,
    share: Number,
    harm: Number,
    late: Number,
    replay: String,
}

/// A number as shown, with its interval, what it is sorted by, and its mark.
#[derive(Serialize)]
struct Number {
    text: String,
    interval: String,
    /// Empty when undefined, which sorts last.
    sort: String,
    mark: Option<Mark>,
}

impl Number {
    fn new(format: Format, estimate: Estimate) -> Self {
        let (text, interval) = format.estimate(estimate);
        Self { text, interval, sort: finite(estimate.mean).map_or_else(String::new, |v| v.to_string()), mark: None }
    }

    fn marked(self, mark: Option<Mark>) -> Self {
        Self { mark, ..self }
    }
}

fn table(report: &Report) -> Table {
    let cells = &report.cells;
    let has_late = cells.iter().any(|c| finite(c.extra_fct_ms.mean).is_some());
    let varies = |field: fn(&Cell) -> &String| distinct(cells.iter().map(field)).len() > 1;
    Table {
        rows: cells.iter().map(|cell| table_row(cell, &report.method.directory)).collect(),
        has_aqm: varies(|c| &c.aqm),
        has_competitor: varies(|c| &c.competitor),
        has_avoidance: varies(|c| &c.avoidance),
        has_transport: varies(|c| &c.transport),
        has_arrival: varies(|c| &c.arrival),
        has_failed: cells.iter().any(|c| c.failed > 0),
        has_others: cells.iter().any(|c| finite(c.share.mean).or(finite(c.goodput_lost_mbit.mean)).is_some()),
        has_comparison: cells.iter().any(|c| !c.is_baseline),
        has_harm: cells.iter().any(|c| finite(c.goodput_lost_mbit.mean).is_some()) || !has_late,
        has_late,
        baseline: cells.iter().find(|c| c.is_baseline).map(|c| c.scheme.clone()),
        failed: cells.iter().map(|c| c.failed).sum(),
    }
}

fn table_row(cell: &Cell, directory: &str) -> TableRow {
    let mut fct = Number::new(Format::Plain, cell.fct_ms);
    if fct.text != UNDEFINED {
        fct.text.push_str("\u{a0}ms");
    }
    TableRow {
        link: cell.link.clone(),
        aqm: cell.aqm.clone(),
        size: cell.size.clone(),
        size_bytes: cell.size_bytes,
        scheme: cell.scheme.clone(),
        avoidance: cell.avoidance.clone(),
        transport: cell.transport.clone(),
        competitor: cell.competitor.clone(),
        arrival: arrival(cell).to_owned(),
        baseline: cell.is_baseline,
        n: cell.n,
        failed: cell.failed,
        fct,
        queue: Number::new(Format::Plain, cell.max_queue_delay_ms),
        speedup: Number::new(Format::Factor, cell.speedup).marked(speedup_mark(
            cell.speedup,
            cell.significant,
            cell.within_one_rtt,
        )),
        dropped: Number::new(Format::Signed, cell.dropped_delta).marked(loss_mark(cell.dropped_delta, None)),
        inflation: Number::new(Format::Percent, cell.inflation),
        share: Number::new(Format::Fraction, cell.share),
        harm: Number::new(Format::Plain, cell.goodput_lost_mbit),
        late: Number::new(Format::Plain, cell.extra_fct_ms),
        replay: cell.replay_rep.map_or_else(String::new, |rep| replay(&cell.id, rep, directory)),
    }
}

/// The command that replays a repetition.
fn replay(cell: &str, rep: u32, directory: &str) -> String {
    let invocation = Invocation::current();
    let directory = if directory.is_empty() { ".".to_owned() } else { invocation.path(directory) };
    invocation.command(&format!("flowstart trace --cell {} --rep {rep} --from {}", quoted(cell), quoted(&directory)))
}

/// A word of a shell command.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

// --------------------------------------------------------------------------------------------- published table

#[derive(Serialize)]
struct Published {
    source: String,
    note: Vec<String>,
    columns: Vec<PublishedLink>,
    /// Links and sizes, one for each column.
    labels: Vec<String>,
    /// Sizes of a link, at most: how many columns belong together.
    together: usize,
    rows: Vec<PublishedRow>,
    chart: Option<Chart>,
    checks: Vec<CheckRow>,
    /// "17 of 20", or empty.
    passed: String,
    /// Cells in which both agree on faster or slower, as words; empty when nothing can be compared.
    agreement: String,
}

#[derive(Serialize)]
struct PublishedLink {
    name: String,
    sizes: Vec<String>,
}

#[derive(Serialize)]
struct PublishedRow {
    estimate: String,
    cells: Vec<Option<PublishedEntry>>,
}

#[derive(Serialize)]
struct PublishedEntry {
    speedup: Number,
    fct_delta: String,
    published_speedup: String,
    published_fct_delta: String,
    speedup_off: String,
    loss: Number,
    published_loss: String,
    loss_off: String,
}

#[derive(Serialize)]
struct CheckRow {
    statement: String,
    expected: String,
    measured: String,
    verdict: &'static str,
    glyph: &'static str,
    class: &'static str,
}

fn published(table: &PublishedTable) -> Result<Published, RenderError> {
    let links = distinct(table.cells.iter().map(|c| &c.link));
    let columns: Vec<PublishedLink> = links
        .iter()
        .map(|link| PublishedLink {
            name: link.clone(),
            sizes: distinct(table.cells.iter().filter(|c| c.link == *link).map(|c| &c.size)),
        })
        .collect();
    let mut estimates: Vec<f64> = table.cells.iter().map(|c| c.estimate).filter(|e| e.is_finite()).collect();
    estimates.sort_by(f64::total_cmp);
    estimates.dedup();
    let row = |&estimate: &f64| PublishedRow {
        // At least one decimal, as 1.0 is how estimates are usually written.
        estimate: if estimate.fract() == 0.0 { format!("{estimate:.1}") } else { estimate.to_string() },
        cells: columns
            .iter()
            .flat_map(|c| c.sizes.iter().map(|size| (&c.name, size)))
            .map(|(link, size)| {
                let cell = table.cells.iter().find(|c| c.estimate == estimate && c.link == *link && c.size == *size);
                cell.map(published_entry)
            })
            .collect(),
    };
    let judged: Vec<bool> = table.checks.iter().filter_map(|c| c.pass).collect();
    Ok(Published {
        source: table.source.clone(),
        note: paragraphs(table.note.as_deref()),
        labels: columns.iter().flat_map(|c| c.sizes.iter().map(|size| format!("{}, {size}", c.name))).collect(),
        together: columns.iter().map(|c| c.sizes.len()).max().unwrap_or(1),
        rows: estimates.iter().map(row).collect(),
        chart: finished(chart::published(&table.cells, &links).into_iter().collect())?.pop(),
        checks: table.checks.iter().map(check_row).collect(),
        passed: if judged.is_empty() {
            String::new()
        } else {
            format!("{} of {}", judged.iter().filter(|p| **p).count(), judged.len())
        },
        agreement: agreement(&table.cells),
        columns,
    })
}

fn published_entry(cell: &PublishedCell) -> PublishedEntry {
    let ours = finite(cell.ours_speedup.mean);
    let theirs = finite(cell.published_speedup).filter(|v| *v > 0.0);
    let off = ours.zip(theirs).map(|(ours, theirs)| (ours / theirs - 1.0) * 100.0);
    let loss_off =
        finite(cell.ours_loss_delta.mean).zip(finite(cell.published_loss_delta)).map(|(a, b)| (a - b).round());
    PublishedEntry {
        speedup: Number::new(Format::Factor, cell.ours_speedup).marked(speedup_mark(
            cell.ours_speedup,
            cell.significant,
            cell.within_one_rtt,
        )),
        fct_delta: milliseconds(cell.ours_fct_delta_ms),
        // As published, without decimals that were not.
        published_speedup: theirs.map_or_else(|| UNDEFINED.to_owned(), |v| format!("×{}", (v * 100.0).round() / 100.0)),
        published_fct_delta: milliseconds(cell.published_fct_delta_ms),
        speedup_off: off.map_or_else(String::new, |v| format!("{}\u{202f}%", Format::Signed.show(Some(v.round())))),
        loss: Number::new(Format::Signed, cell.ours_loss_delta)
            .marked(loss_mark(cell.ours_loss_delta, cell.loss_significant)),
        published_loss: Format::Signed.show(cell.published_loss_delta),
        loss_off: loss_off.map_or_else(String::new, |v| Format::Signed.show(Some(v))),
    }
}

/// A difference of FCTs: whole milliseconds, seconds from one second on.
fn milliseconds(value: Option<f64>) -> String {
    match finite(value) {
        Some(v) if v.abs() >= 999.5 => format!("{}\u{a0}s", Format::Signed.show(Some(v / 1000.0))),
        Some(v) => format!("{}\u{a0}ms", Format::Signed.show(Some(v.round()))),
        None => UNDEFINED.to_owned(),
    }
}

fn agreement(cells: &[PublishedCell]) -> String {
    let pairs: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|c| {
            Some((finite(c.ours_speedup.mean).filter(|v| *v > 0.0)?, finite(c.published_speedup).filter(|v| *v > 0.0)?))
        })
        .collect();
    if pairs.is_empty() {
        return String::new();
    }
    let close = pairs.iter().filter(|(ours, theirs)| (ours / theirs).max(theirs / ours) <= 1.25).count();
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| (ours / theirs).max(theirs / ours)).collect();
    ratios.sort_by(f64::total_cmp);
    format!(
        "Of {} comparable cells, {close} have a speed-up within a factor of 1.25 of the published one; in the median cell the two differ by a factor of {:.2}.",
        pairs.len(),
        ratios[ratios.len() / 2]
    )
}

fn check_row(check: &Check) -> CheckRow {
    let (verdict, glyph, class) = match check.pass {
        Some(true) => ("pass", "✓", "better"),
        Some(false) => ("miss", "✗", "worse"),
        None => ("not checked", UNDEFINED, "unclear"),
    };
    CheckRow {
        statement: check.statement.clone(),
        expected: check.expected.clone(),
        measured: check.measured.clone(),
        verdict,
        glyph,
        class,
    }
}

// ------------------------------------------------------------------------------------------------- time series

/// Runs that share their axes.
#[derive(Serialize)]
struct Series {
    title: String,
    /// Whether other flows use the link.
    others: bool,
    /// What each scheme sends, in one picture.
    startups: Option<Chart>,
    legend: Vec<LegendItem>,
    charts: Vec<Chart>,
}

fn series(report: &Report, schemes: &[String]) -> Result<Vec<Series>, RenderError> {
    let title = |run: &super::ExampleRun| {
        let against = if run.competitor.is_empty() || run.competitor == "none" {
            String::new()
        } else {
            format!(" against {}", run.competitor)
        };
        format!("{} on {}{against}", run.size, run.link)
    };
    let titles: Vec<String> = report.runs.iter().map(title).collect();
    let mut all = Vec::new();
    for heading in distinct(titles.iter()) {
        let runs = || report.runs.iter().filter(|run| title(run) == heading);
        let extent = Extent::of(runs());
        let others = runs().any(|run| run.flows.iter().any(|f| !f.measured));
        let charts = runs()
            .map(|run| {
                let command = (!run.cell.is_empty()).then(|| replay(&run.cell, run.rep, &report.method.directory));
                let id = format!("run-{}", all.iter().map(|s: &Series| s.charts.len()).sum::<usize>());
                chart::run(id, run, extent, command)
            })
            .collect::<Vec<_>>();
        let charts = charts
            .into_iter()
            .enumerate()
            .map(|(i, chart)| Chart { id: format!("{}-{}", chart.id, i + 1), ..chart })
            .collect();
        let startups = chart::startups(format!("startups-{}", all.len() + 1), &runs().collect::<Vec<_>>(), schemes);
        all.push(Series {
            title: heading,
            others,
            startups: finished(startups.into_iter().collect())?.pop(),
            legend: chart::run_legend(others, extent),
            charts: finished(charts)?,
        });
    }
    Ok(all)
}

// ------------------------------------------------------------------------------------------------------ method

#[derive(Serialize)]
pub(super) struct MethodView {
    command: String,
    /// Name and value of what is known about the making of the page.
    facts: Vec<(&'static str, String)>,
    files: Vec<super::DataFile>,
    notes: Vec<String>,
}

pub(super) fn method(method: &Method) -> MethodView {
    let or_undefined = |text: &str| {
        if text.is_empty() { UNDEFINED.to_owned() } else { text.to_owned() }
    };
    let usual = [
        ("flows.csv", "one row per measured flow and repetition"),
        ("flows.parquet", "the same, for data frames"),
        ("summary.json", "one entry per cell: every metric with mean, median, percentiles and interval"),
        ("manifest.json", "version, command, seed, host and wall time"),
    ];
    let files = if method.files.is_empty() {
        usual.map(|(name, what)| super::DataFile { name: name.to_owned(), what: what.to_owned() }).to_vec()
    } else {
        method.files.clone()
    };
    let wall = finite(method.wall_time_s)
        .map_or_else(|| UNDEFINED.to_owned(), |s| format!("{} s", Format::Plain.show(Some(s))));
    MethodView {
        command: Invocation::current().command(&method.command),
        facts: [
            ("version", or_undefined(&method.version)),
            ("master seed", method.seed.map_or_else(|| UNDEFINED.to_owned(), |s| s.to_string())),
            ("repetitions per cell", method.repetitions.map_or_else(|| UNDEFINED.to_owned(), |n| n.to_string())),
            ("host", or_undefined(&method.host)),
            ("date", or_undefined(&method.date)),
            ("wall time", wall),
        ]
        .into_iter()
        .filter(|(_, value)| value != UNDEFINED)
        .collect(),
        files,
        notes: method.notes.clone(),
    }
}
