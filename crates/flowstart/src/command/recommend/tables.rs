//! A recommendation as tables.

use comfy_table::{CellAlignment, Table, presets};
use flowstart_lab::fleet::choices::Subject;
use flowstart_lab::fleet::recommendation::{OfChoice, Recommendation};
use flowstart_report::Kind;

use crate::output;

fn table(titles: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(titles);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn percent(value: Option<f64>) -> String {
    output::number(value.map(|value| value * 100.0), 1)
}

/// The choices, the fastest first. Queues have their delay and their drops in place of what is sent twice.
pub(super) fn of_choices(subject: Subject, told: &Recommendation) -> Table {
    let costs: &[&str] = match subject {
        Subject::Scheme => &["twice %"],
        Subject::Queue => &["queue ms", "drops"],
    };
    let titles =
        [&[subject.word(), "times as fast", "p50 ms", "p95 ms", "regret %"][..], costs, &["harm", ""][..]].concat();
    let mut table = table(&titles);
    let mut choices: Vec<&OfChoice> = told.choices.iter().collect();
    choices.sort_by(|a, b| b.gain.unwrap_or(0.0).total_cmp(&a.gain.unwrap_or(0.0)));
    for one in choices {
        let mark = match &one.refused {
            _ if Some(&one.choice) == told.choice.as_ref() => "recommended",
            _ if one.choice == told.choices[0].choice => "baseline",
            Some(_) => "not offered",
            None => "",
        };
        let mut row = vec![
            one.choice.clone(),
            output::ratio(one.gain, one.gain_ci),
            output::number(one.p50_ms, 0),
            output::number(one.p95_ms, 0),
            percent(one.regret),
        ];
        match subject {
            Subject::Scheme => row.push(percent(Some(one.inflation))),
            Subject::Queue => {
                row.push(output::number(one.queue_delay_ms, 0));
                row.push(output::number(Some(one.dropped_packets), 1));
            }
        }
        row.extend([output::number(one.harm_ratio, 2), mark.to_owned()]);
        table.add_row(row);
    }
    table
}

/// The recommended choice in each kind of transfer, where it gains least first.
pub(super) fn of_kinds(told: &Recommendation) -> Table {
    let title = told.choice.as_ref().map_or("over".to_owned(), |choice| format!("{choice} over"));
    let has_starts = told.kinds.iter().any(|kind| kind.start.is_some());
    let titles =
        [&[&*title, "path"][..], if has_starts { &["start"] } else { &[] }, &["transfers %", "times as fast", ""]];
    let mut table = table(&titles.concat());
    for kind in &told.kinds {
        let mark = match kind.verdict {
            Kind::Faster | Kind::FasterByWaste => "faster",
            Kind::Slower => "slower",
            Kind::Negligible => "within 1 %",
            Kind::Same => "the same",
            Kind::Unclear => "",
        };
        let mut row = vec![kind.name.clone(), if kind.known { "known" } else { "unknown" }.to_owned()];
        row.extend(kind.start.clone());
        row.extend([percent(Some(kind.share)), output::ratio(kind.gain, kind.gain_ci), mark.to_owned()]);
        table.add_row(row);
    }
    table
}
