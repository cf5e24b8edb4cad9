//! The table of an experiment's cells, as wide as the terminal.

use std::collections::BTreeSet;

use flowstart_lab::results::cell_summary::CellSummary;
use flowstart_lab::results::felt::felt;
use flowstart_lab::results::harm::HarmIn;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::spec::application::Felt;
use flowstart_lab::spec::link::{ACCESS_RATE, Link};
use flowstart_lab::study::plan::{AXES, Axis, Cell, Plan};
use flowstart_report::{Verdict, own_keys};

use super::{filled, number, ratio};

/// Most cells in the table.
const MOST_CELLS: usize = 60;
/// Spaces between columns.
const GAP: usize = 2;
/// Columns of the terminal below which a table keeps only what matters most.
const NARROW: usize = 80;
/// Longest text of a value whose keys are all shown.
const LONGEST: usize = 24;
/// The least room for names. Longer names have a line of their own.
const NAMES: usize = 14;

/// The axes whose value a reader has to know, even if it is the default.
const ALWAYS: [&Axis; 2] = [Axis::transport(), Axis::aqm()];

/// The title of what the others deliver less.
const OTHERS_LOSE: &str = "others\n- Mbit";

/// A column of names, numbers or marks.
struct Column {
    title: String,
    is_number: bool,
    texts: Vec<String>,
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

impl Column {
    fn width(&self) -> usize {
        self.texts.iter().map(String::as_str).chain(self.title.lines()).map(width_of).max().unwrap_or(0)
    }

    /// A text at the column's side, filled up to this width.
    fn filled(&self, text: &str, width: usize) -> String {
        if self.is_number { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }
}

fn width_of_all(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// The table of cells for the terminal on stdout, with the values that all cells share above it.
pub(crate) fn cells(plan: &Plan, summary: &Summary) -> String {
    cells_within(plan, summary, super::width())
}

/// The same for this number of columns.
fn cells_within(plan: &Plan, summary: &Summary, width: usize) -> String {
    let all: Vec<(Cell, &CellSummary)> = plan.cells().into_iter().zip(&summary.cells).collect();
    let shown = &all[..all.len().min(MOST_CELLS)];
    let mut names = axes(plan, shown);
    let mut metrics = metrics(plan, shown);
    // Where the line is too short for all names, those that come first stand above the rows that share them.
    let mut above = Vec::new();
    if width_of_all(&names) + GAP + width_of_all(&metrics) > width {
        above.extend(names.drain(..names.len() - 1));
    }
    // The last numbers are those that a reader misses least.
    let least = if width < NARROW { 3 } else { 5 };
    let mut left_out = Vec::new();
    while width_of_all(&names).min(NAMES) + GAP + width_of_all(&metrics) > width && metrics.len() > least {
        left_out.extend(metrics.pop().map(|column| column.title.replace('\n', " ")));
    }
    let wrapped = |line: &str| filled(line, width, "") + "\n";
    let mut text = wrapped(&format!("everywhere: {}", everywhere(plan, &all, summary.reps))) + "\n";
    text += &drawn(&above, &names, &metrics, shown.len(), width);
    if metrics.iter().any(|column| column.title == OTHERS_LOSE) {
        text += &wrapped(
            "others - Mbit: what others deliver less than without the measured flow; on a full link they give up its \
             size at least",
        );
    }
    let mut notes = Vec::new();
    if all.len() > shown.len() {
        notes.push(format!("{} more cells are not shown", all.len() - shown.len()));
    }
    if !left_out.is_empty() {
        left_out.reverse();
        notes.push(format!("columns left out: {}", left_out.join(", ")));
    }
    if !notes.is_empty() {
        text += &wrapped(&format!("{}; --json and --out have everything", notes.join("; ")));
    }
    text
}

/// The lines of a table. Names `above` stand over the rows that share them.
fn drawn(above: &[Column], names: &[Column], metrics: &[Column], rows: usize, width: usize) -> String {
    let of_metrics = width_of_all(metrics);
    // One column of names may be longer than its room; more than one fit.
    let room = width.saturating_sub(of_metrics + GAP).max(NAMES);
    let widths: Vec<usize> = match names {
        [only] => vec![only.width().min(room)],
        _ => names.iter().map(Column::width).collect(),
    };
    let line = |texts: &[&str]| {
        let columns = names.iter().zip(widths.iter().copied());
        let columns = columns.chain(metrics.iter().map(|column| (column, column.width())));
        let filled: Vec<String> =
            columns.zip(texts).map(|((column, width), text)| column.filled(text, width)).collect();
        filled.join(&" ".repeat(GAP)).trim_end().to_owned() + "\n"
    };
    let columns = || names.iter().chain(metrics);
    let height = columns().map(|column| column.title.lines().count()).max().unwrap_or(1);
    let mut text = String::new();
    for row in 0..height {
        let titles: Vec<&str> = columns().map(|column| column.title.lines().nth(row).unwrap_or("")).collect();
        text += &line(&titles);
    }
    let rule = widths.iter().map(|width| width + GAP).sum::<usize>() + of_metrics;
    text += &("─".repeat(rule.min(width)) + "\n");
    let heading = |row: usize| above.iter().map(|column| column.texts[row].as_str()).collect::<Vec<_>>().join(" · ");
    for row in 0..rows {
        if !above.is_empty() && (row == 0 || heading(row) != heading(row - 1)) {
            let space = if row == 0 { "" } else { "\n" };
            text += &format!("{space}{}\n", filled(&heading(row), width, ""));
        }
        let mut texts: Vec<&str> = columns().map(|column| column.texts[row].as_str()).collect();
        if width_of(texts[0]) > widths[0] {
            text += &(filled(texts[0], width, "") + "\n");
            texts[0] = "";
        }
        text += &line(&texts);
    }
    text
}

/// Whether an axis is a part of the flows' traffic, which has one column.
fn is_traffic(axis: &Axis) -> bool {
    axis.is_carried && axis != Axis::size()
}

/// The axes that have a column where cells differ, in the order of the cells: the first varies slowest.
fn in_order() -> impl Iterator<Item = &'static Axis> {
    AXES.iter().filter(|axis| !is_traffic(axis))
}

fn title(plan: &Plan, axis: &Axis) -> String {
    let has_applications = axis == Axis::size() && plan.sizes.iter().any(|size| size.value.objects().is_some());
    if has_applications { "application".to_owned() } else { axis.name().to_owned() }
}

fn value(plan: &Plan, axis: &Axis, cell: &Cell) -> String {
    if axis.is_carried { plan.carried(cell) } else { axis.value(plan, cell).unwrap_or_default().to_owned() }
}

/// Whether the cells differ on an axis.
fn is_varied(plan: &Plan, axis: &Axis) -> bool {
    axis.length(plan) > 1 || (axis == Axis::size() && AXES.iter().any(|axis| is_traffic(axis) && axis.length(plan) > 1))
}

/// Short names of an axis's values, and the keys that they leave out, where all are specifications and one is long.
fn short_names(full: &[&str]) -> Option<(Vec<String>, String)> {
    let are_specifications = full.len() > 1 && full.iter().all(|text| text.contains('='));
    if !are_specifications || full.iter().all(|text| text.chars().count() <= LONGEST) {
        return None;
    }
    let (names, shared) = own_keys(full);
    let distinct = names.iter().enumerate().all(|(place, name)| !name.is_empty() && !names[..place].contains(name));
    (distinct && !shared.is_empty()).then_some((names, shared))
}

/// The columns of the axes with a choice; the scheme's if there is none.
fn axes(plan: &Plan, shown: &[(Cell, &CellSummary)]) -> Vec<Column> {
    let mut axes: Vec<_> = in_order().filter(|axis| is_varied(plan, axis)).collect();
    if axes.is_empty() {
        axes.push(Axis::scheme());
    }
    let column = |axis: &Axis| {
        let short = short_names(&axis.texts(plan)).filter(|_| !axis.is_carried);
        let text = |(cell, _): &(Cell, &CellSummary)| match &short {
            Some((names, _)) => names[axis.place(*cell)].clone(),
            None => value(plan, axis, cell),
        };
        Column { title: title(plan, axis), is_number: false, texts: shown.iter().map(text).collect() }
    };
    axes.into_iter().map(column).collect()
}

/// What all cells share, in a line.
fn everywhere(plan: &Plan, all: &[(Cell, &CellSummary)], reps: u32) -> String {
    let mut parts = Vec::new();
    if let Some((first, _)) = all.first() {
        for axis in in_order().filter(|axis| !is_varied(plan, axis)) {
            let is_default = axis.texts(plan) == axis.keys[0].default.as_slice();
            if !is_default || ALWAYS.contains(&axis) {
                let value = value(plan, axis, first);
                parts.extend((!value.is_empty()).then(|| format!("{} {value}", title(plan, axis))));
            }
        }
    }
    for axis in in_order().filter(|axis| is_varied(plan, axis) && !axis.is_carried) {
        let common = short_names(&axis.texts(plan)).map(|(_, common)| common);
        parts.extend(common.map(|common| format!("{} {common},..", title(plan, axis))));
    }
    parts.extend(avoidance(plan));
    parts.extend(buffer(plan));
    parts.extend(access_rate(plan));
    parts.extend(noise(plan));
    parts.push(if reps == 1 { "1 repetition".to_owned() } else { format!("{reps} repetitions") });
    parts.join(", ")
}

/// The congestion avoidance of transports that nobody chose another for, if no scheme names one.
fn avoidance(plan: &Plan) -> Option<String> {
    let names_one = |transport: usize| (0..plan.schemes.len()).any(|scheme| plan.names_avoidance(scheme, transport));
    if (0..plan.transports.len()).any(names_one) {
        return None;
    }
    let own = plan.transports.first()?.own_avoidance().text;
    let is_same = plan.avoidances.is_empty() && plan.transports.iter().all(|other| other.own_avoidance().text == own);
    is_same.then(|| format!("avoidance {own}"))
}

/// The buffer of links whose names do not say it, where it is the same. It decides how much a fast start may lose.
fn buffer(plan: &Plan) -> Option<String> {
    let says = |link: &Link| link.text.contains("buffer=");
    let first = plan.links.first()?.buffer;
    let is_same = plan.links.iter().all(|link| !says(link) && link.buffer == first);
    is_same.then(|| format!("buffer {first}"))
}

/// The noise of the hosts, if it is the same on all links: what makes repetitions differ.
fn noise(plan: &Plan) -> Option<String> {
    let jitter = plan.links.first()?.access_jitter?;
    let is_same = plan.links.iter().all(|link| link.access_jitter == Some(jitter));
    is_same.then(|| format!("host noise up to {}", jitter.amplitude))
}

/// The rate of the hosts' own links where names do not say it and it is the same. It paces a sender.
fn access_rate(plan: &Plan) -> Option<String> {
    let says = |link: &Link| link.text.contains("access_rate=");
    let first = plan.links.first()?.access_rate;
    let is_same = plan.links.iter().all(|link| !says(link) && link.access_rate == first);
    (is_same && first != ACCESS_RATE).then(|| format!("hosts' links {first}"))
}

/// The columns of numbers, those that matter most first.
fn metrics(plan: &Plan, shown: &[(Cell, &CellSummary)]) -> Vec<Column> {
    let column = |title: &str, is_number: bool, text: &dyn Fn(&Cell, &CellSummary) -> String| Column {
        title: title.to_owned(),
        is_number,
        texts: shown.iter().map(|(cell, row)| text(cell, row)).collect(),
    };
    let mean = |row: &CellSummary, name: &str| row.metrics.get(name).and_then(|metric| metric.mean);
    let in_percent = |value: Option<f64>| number(value.map(|value| value * 100.0), 1);
    let felt_by: Vec<Felt> = plan.sizes.iter().filter_map(|size| Some(size.value.objects()?.felt())).collect();
    let (objects, videos) = (!felt_by.is_empty(), felt_by.contains(&Felt::Start));
    let web = plan.sizes.iter().any(|size| size.value.sessions().is_some());
    let time = match &felt_by[..] {
        [] => "mean\nFCT ms",
        all if all.iter().all(|felt| *felt == Felt::Start) => "mean first\npicture ms",
        all if all.iter().all(|felt| *felt == Felt::Completion) => "mean\npage ms",
        all if all.iter().all(|felt| *felt == Felt::Objects) => "mean\nchunk ms",
        _ if videos => "mean page, chunk or\nfirst picture ms",
        _ => "mean page or\nchunk ms",
    };
    let mut columns = vec![column(time, true, &|cell, row| number(mean(row, felt(plan, cell).0), 0))];
    if shown.iter().any(|(_, row)| row.vs_baseline.is_some()) {
        columns.push(column("speed-up (95 %)", true, &|_, row| speedup(row)));
        columns.push(column("", false, &|_, row| mark(row)));
    }
    if shown.iter().any(|(_, row)| row.failed > 0) {
        columns.push(column("failed", true, &|_, row| row.failed.to_string()));
    }
    if shown.iter().any(|(_, row)| row.others.is_some()) {
        let measures = HarmIn::all_of(plan);
        for measure in &measures {
            let in_table = |cell: &Cell, row: &CellSummary| {
                let competitor = plan.competitors[cell.competitor].first();
                let is_its = measures.len() == 1 || HarmIn::of_one(competitor) == *measure;
                measure.mean(row).filter(|_| is_its)
            };
            columns.push(match measure {
                HarmIn::Time => column("others\n+ ms", true, &|cell, row| number(in_table(cell, row), 1)),
                HarmIn::Score => column("worst s\nMOS", true, &|cell, row| number(in_table(cell, row), 2)),
                HarmIn::Frames => column("frames not\nshown %", true, &|cell, row| in_percent(in_table(cell, row))),
                HarmIn::Goodput => column(OTHERS_LOSE, true, &|cell, row| number(in_table(cell, row), 1)),
            });
        }
    }
    columns.push(column("sent\ntwice %", true, &|_, row| in_percent(mean(row, "inflation"))));
    let dropped = |row: &CellSummary| row.others.as_ref().and_then(|others| others.dropped_packets.mean);
    if shown.iter().any(|(_, row)| dropped(row).is_some_and(|packets| packets.abs() >= 0.05)) {
        columns.push(column("others\nlost pkt", true, &|_, row| number(dropped(row), 1)));
    }
    // What is lost is sent twice, so it is the first that may be left out.
    columns.push(column("lost %", true, &|_, row| in_percent(row.lost_share.mean)));
    if videos {
        columns.push(column("stalled ms", true, &|_, row| number(mean(row, "stalled_ms"), 0)));
        columns.push(column("video\nMbit/s", true, &|_, row| number(mean(row, "video_mbps"), 2)));
    }
    if objects {
        let of_objects = [("first", "first_object_fct_ms"), ("later", "later_objects_fct_ms")];
        for (title, name) in [&of_objects[..], &[("worst ms", "worst_object_fct_ms")]].concat() {
            columns.push(column(title, true, &|_, row| number(mean(row, name), 0)));
        }
    }
    if web {
        columns.push(column("offered\nMbit/s", true, &|_, row| number(mean(row, "offered_mbps"), 2)));
        let shares = [
            ("used %", "utilization"),
            ("approved %", "quick_start_approved"),
            ("failed\nrequests %", "quick_start_failures"),
            ("in Quick-\nStart %", "quick_start_bytes"),
        ];
        for (title, name) in shares {
            columns.push(column(title, true, &|_, row| in_percent(mean(row, name))));
        }
    }
    if compared_axes(plan, shown) > 1 {
        let baseline = |cell: &Cell| changed(plan, cell).map_or(String::new(), |(_, baseline)| baseline.to_owned());
        columns.push(column("compared with", false, &|cell, _| baseline(cell)));
    }
    columns
}

/// The speed-up with its simultaneous interval.
fn speedup(row: &CellSummary) -> String {
    let Some(versus) = &row.vs_baseline else { return String::new() };
    ratio(versus.speedup, versus.speedup_ci)
}

/// What a cell is compared on: an axis, and its value in the baseline.
fn changed<'a>(plan: &'a Plan, cell: &Cell) -> Option<(&'static str, &'a str)> {
    let baseline = plan.baseline_of(cell)?;
    let axis = AXES.iter().find(|axis| axis.place(*cell) != axis.place(baseline))?;
    Some((axis.name(), axis.value(plan, &baseline)?))
}

/// On how many axes cells are compared. Where they are several, a mark does not say with what.
fn compared_axes(plan: &Plan, shown: &[(Cell, &CellSummary)]) -> usize {
    let axes: BTreeSet<&str> = shown.iter().filter_map(|(cell, _)| Some(changed(plan, cell)?.0)).collect();
    axes.len()
}

/// The mark of a comparison's verdict.
fn mark(row: &CellSummary) -> String {
    match &row.vs_baseline {
        None => "baseline".to_owned(),
        Some(versus) => versus.verdict.map_or_else(|| "–".to_owned(), Verdict::mark),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_lab::experiment::execute;
    use flowstart_lab::perform::concluded;
    use flowstart_lab::study::scenario::Scenario;
    use flowstart_report::Kind;

    use super::*;

    fn results(text: &str) -> (Plan, Summary) {
        let plan = Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = execute(&plan, 2, &[], |_| {}).unwrap();
        let summary = concluded(&plan, &rows);
        (plan, summary)
    }

    #[test]
    fn a_column_says_with_what_a_cell_is_compared_where_that_differs() {
        let table = |aqms: &str| {
            let (plan, summary) = results(&format!(
                "link = [\"dsl-fast\"]\nsize = [\"70KB\"]\nreps = 2\nscheme = [\"slow-start\", \"jump-start\"]\n\
                 aqm = [{aqms}]"
            ));
            cells_within(&plan, &summary, 100)
        };
        let both = table("\"taildrop\", \"codel\"");
        let last = |line: &str| line.split_whitespace().last().unwrap_or_default().to_owned();
        let with: Vec<String> = both.lines().map(last).collect();
        assert!(["with", "taildrop", "slow-start"].iter().all(|one| with.iter().any(|with| with == one)), "{both}");
        assert!(!table("\"taildrop\"").contains("compared with"));
    }

    fn widest(table: &str) -> usize {
        table.lines().map(|line| line.chars().count()).max().unwrap()
    }

    #[test]
    fn a_table_fits_the_terminal_and_names_what_is_the_same_everywhere() {
        let (plan, summary) = results(
            "link = [\"dsl-fast\", \"rate=20mbit,rtt=30ms,access_jitter=1ms/1ms\"]\nsize = [\"70KB\"]\nreps = 2\n\
             scheme = [\"slow-start\", \"blitzstart:estimate=1.5\"]\ncompetitor = [\"cubic\"]",
        );
        for width in [60, 80, 100, 200] {
            let table = cells_within(&plan, &summary, width);
            assert!(widest(&table) <= width, "{width}:\n{table}");
            assert!(
                table.replace('\n', " ").starts_with(
                    "everywhere: aqm taildrop, competitor cubic, transport model-quic, size 70KB, avoidance reno, \
                     2 repetitions  "
                ),
                "{table}"
            );
            assert!(!table[table.find("\n\n").unwrap()..].contains("cubic"), "{table}");
            assert!(table.contains("baseline") && table.contains("speed-up"), "{table}");
        }
        let wide = cells_within(&plan, &summary, 200);
        assert!(wide.contains("- Mbit") && !wide.contains("left out"), "{wide}");
        let narrow = cells_within(&plan, &summary, 60).replace('\n', " ");
        assert!(narrow.contains("columns left out: ") && narrow.contains("lost %; --json and --out"), "{narrow}");
    }

    #[test]
    fn no_name_is_broken_where_a_line_has_room_for_it() {
        let (plan, summary) = results(
            "link = [\"dsl-fast\", \"lte\"]\nsize = [\"70KB\", \"80KB\"]\naqm = [\"codel\", \"taildrop\"]\nreps = 2\n\
             scheme = [\"slow-start\", \"jump-start:threshold=64KiB\", \"blitzstart:estimate=1.5,pacing_fraction=0.5\"]",
        );
        let table = cells_within(&plan, &summary, 80);
        assert!(widest(&table) <= 80, "{table}");
        let lines: Vec<&str> = table.lines().collect();
        for heading in ["dsl-fast · codel · 70KB", "lte · taildrop · 80KB"] {
            let at = lines.iter().position(|line| *line == heading).unwrap();
            assert!(lines[at + 1].starts_with("slow-start "), "{table}");
            assert!(lines[at + 2].starts_with("jump-start:threshold=64KiB "));
            assert_eq!(lines[at + 3], "blitzstart:estimate=1.5,pacing_fraction=0.5");
            assert!(lines[at + 4].starts_with("    "), "{table}");
        }
        assert_eq!(lines.iter().filter(|line| line.contains(" · ")).count(), 8, "{table}");
        let wide = cells_within(&plan, &summary, 200);
        assert!(!wide.contains(" · ") && wide.contains("pacing_fraction=0.5  "), "{wide}");
    }

    #[test]
    fn long_values_are_the_keys_that_differ() {
        let links = ["rate=20mbit,rtt=30ms,buffer=50ms", "rate=20mbit,rtt=60ms,buffer=50ms"];
        let names = vec!["rtt=30ms".to_owned(), "rtt=60ms".to_owned()];
        assert_eq!(short_names(&links), Some((names, "rate=20mbit,buffer=50ms".to_owned())));
        // A name alone, short ones, and values that would become the same or nothing stay whole.
        assert_eq!(short_names(&["lte", links[0]]), None);
        assert_eq!(short_names(&["rate=20mbit,rtt=30ms", "rate=20mbit,rtt=60ms"]), None);
        assert_eq!(short_names(&[links[0], "rate=20mbit,rtt=30ms"]), None);
        assert_eq!(short_names(&["pie:target=15ms,interval=15ms,burst=1ms", "codel:target=5ms"]), None);
        let (plan, summary) = results(&format!(
            "link = [\"{}\", \"{}\"]\nsize = [\"5KB\"]\nscheme = [\"slow-start\"]\nreps = 1",
            links[0], links[1]
        ));
        let table = cells_within(&plan, &summary, 120);
        assert!(table.replace('\n', " ").starts_with(
            "everywhere: aqm taildrop, transport model-quic, size 5KB, scheme slow-start, link \
             rate=20mbit,buffer=50ms,.., avoidance reno, 1"
        ));
        assert!(table.contains("\nrtt=60ms ") && !table.contains("rtt=60ms,"), "{table}");
    }

    #[test]
    fn an_avoidance_that_schemes_name_is_not_everywhere() {
        let (plan, summary) = results(
            "link = [\"lte\"]\nsize = [\"5KB\"]\nreps = 1\n\
             scheme = [\"slow-start:avoidance=cubic\", \"slow-start:avoidance=bbr\"]",
        );
        let table = cells_within(&plan, &summary, 120);
        assert!(!table[..table.find("\n\n").unwrap()].contains("avoidance"), "{table}");
    }

    #[test]
    fn marks_are_those_of_the_verdicts() {
        let (plan, mut summary) = results(
            "link = [\"lte\"]\nsize = [\"5KB\"]\nreps = 1\nscheme = [\"slow-start\", \"slow-start:iw=10\", \"slow-start:iw=2\"]",
        );
        let marks = [
            (Verdict::of_interval(Kind::Faster), "▲ faster"),
            (Verdict::of_interval(Kind::FasterByWaste), "◭ waste"),
            (Verdict::of_interval(Kind::Slower), "▼ slower"),
            (Verdict::of_interval(Kind::Unclear), "● unclear"),
            (Verdict::of_interval(Kind::Negligible), "≈ 1 % at most"),
            (Verdict::of_one_run(Kind::Same), "= same"),
            (Verdict::of_one_run(Kind::Faster), "◆ one run"),
            (Verdict::of_one_run(Kind::FasterByWaste), "◭ waste, one run"),
            (Verdict::of_one_run(Kind::Slower), "◆ one run"),
        ];
        // The initial window of 10 is the default; one repetition says nothing of others.
        let table = cells_within(&plan, &summary, 80);
        assert!(table.contains("= same") && table.contains("one run"), "{table}");
        for (verdict, mark) in marks {
            summary.cells[1].vs_baseline.as_mut().unwrap().verdict = Some(verdict);
            let table = cells_within(&plan, &summary, 80);
            let line = table.lines().find(|line| line.contains("iw=10")).unwrap();
            assert!(line.contains(mark), "{line}");
        }
    }

    #[test]
    fn many_cells_are_cut_and_counted() {
        let sizes: Vec<String> = (1..=70).map(|kb| format!("\"{kb}KB\"")).collect();
        let text = format!("link = [\"lte\"]\nsize = [{}]\nreps = 1\nscheme = [\"slow-start\"]", sizes.join(", "));
        let (plan, summary) = results(&text);
        let table = cells_within(&plan, &summary, 80);
        assert!(table.contains("10 more cells are not shown; --json and --out have everything"), "{table}");
        assert!(table.contains("\n60KB ") && !table.contains("\n61KB "), "{table}");
    }
}
