//! The table of an experiment's cells, as wide as the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use flowstart_lab::results::cell_summary::CellSummary;
use flowstart_lab::results::felt::felt;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::{AXES, Axis, Cell, Plan};
use flowstart_report::Verdict;

use super::number;

/// Columns of a terminal of unknown width.
const WIDTH: u16 = 80;
/// Narrowest table: what does not fit a line is wrapped by the terminal.
const LEAST_WIDTH: u16 = 40;
/// Most cells in the table.
const MOST_CELLS: usize = 60;
/// Spaces around and between columns.
const GAP: usize = 3;

/// A column of names, numbers or marks.
struct Column {
    title: String,
    is_number: bool,
    /// Whether its texts may be broken where the terminal is too narrow.
    wraps: bool,
    texts: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let lines = self.texts.iter().map(String::as_str).chain(self.title.lines());
        lines.map(|line| line.chars().count()).max().unwrap_or(0) + GAP
    }
}

/// The table of cells for the terminal on stdout, with the values that all cells share above it.
pub(crate) fn cells(plan: &Plan, summary: &Summary) -> String {
    cells_within(plan, summary, Table::new().width().unwrap_or(WIDTH).max(LEAST_WIDTH))
}

/// The same for this number of columns.
fn cells_within(plan: &Plan, summary: &Summary, width: u16) -> String {
    let all: Vec<(Cell, &CellSummary)> = plan.cells().into_iter().zip(&summary.cells).collect();
    let shown = &all[..all.len().min(MOST_CELLS)];
    let mut columns = axes(plan, shown);
    let fixed = columns.len();
    columns.extend(metrics(plan, shown));
    // The last columns are those that a reader misses least. On a terminal of the usual width, names are wrapped before
    // the costs go.
    let least = fixed + if width < WIDTH { 3 } else { 5 };
    let mut left_out = Vec::new();
    let needed = |columns: &[Column]| columns.iter().map(Column::width).sum::<usize>();
    // There is no gap behind the last one.
    while needed(&columns) > usize::from(width) + 1 && columns.len() > least {
        left_out.extend(columns.pop().map(|column| column.title.replace('\n', " ")));
    }
    let wrapped = |line: &str| textwrap::fill(line, usize::from(width)) + "\n";
    let mut text = wrapped(&format!("everywhere: {}", everywhere(plan, &all)));
    text += &format!("{}\n", drawn(&columns, shown.len(), width));
    let mut notes = Vec::new();
    if all.len() > shown.len() {
        notes.push(format!("{} more cells are not shown", all.len() - shown.len()));
    }
    if !left_out.is_empty() {
        left_out.reverse();
        notes.push(format!("not shown: {}", left_out.join(", ")));
    }
    if !notes.is_empty() {
        text += &wrapped(&format!("{}; --json and --out have everything", notes.join("; ")));
    }
    text
}

fn drawn(columns: &[Column], rows: usize, width: u16) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(columns.iter().map(|column| &column.title));
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| &column.texts[row]));
    }
    for (place, column) in columns.iter().enumerate().filter(|(_, column)| !column.wraps) {
        if let Some(drawn) = table.column_mut(place) {
            drawn.set_constraint(ColumnConstraint::ContentWidth);
            if column.is_number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
}

/// Whether an axis is a part of the flows' traffic, which has one column.
fn is_traffic(axis: &Axis) -> bool {
    axis.is_carried && axis.name() != "size"
}

fn in_order() -> Vec<&'static Axis> {
    let mut axes: Vec<_> = AXES.iter().filter(|axis| !is_traffic(axis)).collect();
    axes.sort_by_key(|axis| axis.shown.order());
    axes
}

fn title(plan: &Plan, axis: &Axis) -> String {
    let has_applications = axis.name() == "size" && plan.sizes.iter().any(|size| size.value.objects().is_some());
    if has_applications { "application".to_owned() } else { axis.name().to_owned() }
}

fn value(plan: &Plan, axis: &Axis, cell: &Cell) -> String {
    if axis.is_carried { plan.carried(cell) } else { axis.value(plan, cell).unwrap_or_default().to_owned() }
}

/// Whether the cells differ on an axis.
fn is_varied(plan: &Plan, axis: &Axis) -> bool {
    axis.length(plan) > 1
        || (axis.name() == "size" && AXES.iter().any(|axis| is_traffic(axis) && axis.length(plan) > 1))
}

/// The columns of the axes with a choice; the scheme's if there is none.
fn axes(plan: &Plan, shown: &[(Cell, &CellSummary)]) -> Vec<Column> {
    let mut axes: Vec<_> = in_order().into_iter().filter(|axis| is_varied(plan, axis)).collect();
    if axes.is_empty() {
        axes.extend(AXES.iter().find(|axis| axis.name() == "scheme"));
    }
    axes.into_iter()
        .map(|axis| Column {
            title: title(plan, axis),
            is_number: false,
            wraps: true,
            texts: shown.iter().map(|(cell, _)| value(plan, axis, cell)).collect(),
        })
        .collect()
}

/// What all cells share, in a line.
fn everywhere(plan: &Plan, all: &[(Cell, &CellSummary)]) -> String {
    let mut parts = Vec::new();
    if let Some((first, _)) = all.first() {
        for axis in in_order().into_iter().filter(|axis| !is_varied(plan, axis)) {
            let is_default = axis.texts(plan) == axis.keys[0].default.as_slice();
            if !is_default {
                let value = value(plan, axis, first);
                parts.extend((!value.is_empty()).then(|| format!("{} {value}", title(plan, axis))));
            }
        }
    }
    let reps = plan.reps;
    parts.push(if reps == 1 { "1 repetition".to_owned() } else { format!("{reps} repetitions") });
    parts.join(", ")
}

/// The columns of numbers, those that matter most first.
fn metrics(plan: &Plan, shown: &[(Cell, &CellSummary)]) -> Vec<Column> {
    let column = |title: &str, is_number: bool, text: &dyn Fn(&Cell, &CellSummary) -> String| Column {
        title: title.to_owned(),
        is_number,
        wraps: false,
        texts: shown.iter().map(|(cell, row)| text(cell, row)).collect(),
    };
    let mean = |row: &CellSummary, name: &str| row.metrics.get(name).and_then(|metric| metric.mean);
    let in_percent = |value: Option<f64>| number(value.map(|value| value * 100.0), 1);
    let objects = plan.sizes.iter().any(|size| size.value.objects().is_some());
    let web = plan.sizes.iter().any(|size| size.value.sessions().is_some());
    let time = if objects { "page or mean chunk ms" } else { "FCT ms" };
    let mut columns = vec![column(time, true, &|cell, row| number(mean(row, felt(plan, cell).0), 0))];
    if shown.iter().any(|(_, row)| row.vs_baseline.is_some()) {
        columns.push(column("speed-up (95 %)", true, &|_, row| speedup(row)));
        columns.push(column("", false, &|_, row| mark(row).to_owned()));
    }
    if shown.iter().any(|(_, row)| row.failed > 0) {
        columns.push(column("failed", true, &|_, row| row.failed.to_string()));
    }
    columns.push(column("lost %", true, &|_, row| in_percent(row.lost_share.mean)));
    columns.push(column("sent\ntwice %", true, &|_, row| in_percent(mean(row, "inflation"))));
    if shown.iter().any(|(_, row)| row.others.is_some()) {
        columns.push(if plan.competitors.iter().any(|competitor| competitor.value.has_transfers()) {
            column("others\n+ ms", true, &|_, row| {
                number(row.others.as_ref().and_then(|others| others.extra_fct_ms.as_ref()?.mean), 1)
            })
        } else if plan.competitors.iter().any(|competitor| competitor.value.media().is_some()) {
            column("worst s\nMOS", true, &|_, row| number(mean(row, "media_worst_1s_mos"), 2))
        } else {
            column("others\n- Mbit", true, &|_, row| {
                number(row.others.as_ref().and_then(|others| others.goodput_lost_mbit.mean), 1)
            })
        });
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
    columns
}

/// The speed-up with its simultaneous interval.
fn speedup(row: &CellSummary) -> String {
    let Some(versus) = &row.vs_baseline else { return String::new() };
    let interval = versus.speedup_ci.map_or(String::new(), |[low, high]| format!(" ({low:.2}–{high:.2})"));
    format!("{}{interval}", number(versus.speedup, 2))
}

/// The mark of a comparison's verdict.
fn mark(row: &CellSummary) -> &'static str {
    let Some(versus) = &row.vs_baseline else { return "baseline" };
    match versus.verdict {
        None => "–",
        Some(Verdict::Faster) => "▲ faster",
        Some(Verdict::FasterByWaste) => "◭ waste",
        Some(Verdict::Slower) => "▼ slower",
        Some(Verdict::Unclear) => "● unclear",
        Some(Verdict::Same) => "= same",
        Some(Verdict::Deterministic) => "one run",
    }
}

#[cfg(test)]
mod tests {
    use flowstart_lab::experiment::execute;
    use flowstart_lab::perform::concluded;
    use flowstart_lab::study::scenario::Scenario;

    use super::*;

    fn results(text: &str) -> (Plan, Summary) {
        let plan = Scenario::from_text(text).unwrap().plan(std::path::Path::new(".")).unwrap();
        let rows = execute(&plan, 2, &[], |_| {}).unwrap();
        let summary = concluded(&plan, &rows);
        (plan, summary)
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
            assert!(widest(&table) <= usize::from(width), "{width}:\n{table}");
            assert!(table.starts_with("everywhere: size 70KB, competitor cubic, 2 repetitions\n"), "{table}");
            assert!(!table[table.find('\n').unwrap()..].contains("cubic"), "{table}");
            assert!(table.contains("baseline") && table.contains("speed-up"), "{table}");
        }
        let wide = cells_within(&plan, &summary, 200);
        assert!(wide.contains("- Mbit") && !wide.contains("not shown"), "{wide}");
        let narrow = cells_within(&plan, &summary, 60).replace('\n', " ");
        assert!(narrow.contains("not shown: ") && narrow.contains("others - Mbit; --json and --out"), "{narrow}");
    }

    #[test]
    fn marks_are_those_of_the_verdicts() {
        let (plan, mut summary) = results(
            "link = [\"lte\"]\nsize = [\"5KB\"]\nreps = 1\nscheme = [\"slow-start\", \"slow-start:iw=10\", \"slow-start:iw=2\"]",
        );
        let marks = [
            (Verdict::Faster, "▲ faster"),
            (Verdict::FasterByWaste, "◭ waste"),
            (Verdict::Slower, "▼ slower"),
            (Verdict::Unclear, "● unclear"),
            (Verdict::Same, "= same"),
            (Verdict::Deterministic, "one run"),
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
        assert!(table.contains(" 60KB ") && !table.contains(" 61KB "), "{table}");
    }
}
