//! The section on causes says in numbers where the time went.

use crate::Cause;
use crate::group::Group;
use crate::number::{Format, UNDEFINED, finite};
use serde::Serialize;

/// What each cause is called and means.
pub(super) fn terms() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.map(|cause| (cause.name(), cause.meaning())).to_vec()
}

/// Milliseconds with one decimal. From a second on a decimal says nothing, so there is none.
pub(super) fn milliseconds(ms: f64) -> String {
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
pub(super) struct CauseTable {
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

/// The rows of the table, in the order of the cells.
pub(super) fn table(groups: &[Group<'_>]) -> CauseTable {
    let mut rows = Vec::new();
    let all = || groups.iter().flat_map(|group| &group.cells);
    let has_aqms = all().any(|cell| all().next().is_some_and(|first| first.aqm != cell.aqm));
    for group in groups {
        for (size, cells) in group.sizes() {
            for (cell, causes) in cells.iter().filter_map(|cell| Some((cell, cell.causes.as_ref()?))) {
                let values = [causes.fct_ms, causes.ideal_fct_ms].into_iter().chain(causes.causes_ms);
                rows.push(CauseRow {
                    place: format!("{}, {size}", group.label),
                    scheme: if has_aqms { format!("{} + {}", cell.aqm, cell.scheme) } else { cell.scheme.clone() },
                    values: values.map(milliseconds).collect(),
                });
            }
        }
    }
    let names = ["FCT", "physical limit"].into_iter().chain(Cause::ALL.map(Cause::name)).collect();
    CauseTable { names, rows }
}
