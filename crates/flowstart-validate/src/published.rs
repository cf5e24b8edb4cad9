//! The tables of publications beside which results of a study are shown, by the name that a scenario gives
//! (`published`).

use flowstart_lab::results::flows::Row;
use flowstart_lab::results::summary::Summary;
use flowstart_lab::study::plan::Plan;
use flowstart_lab::study::scenario::Scenario;
use flowstart_report::PublishedTable;

use crate::table1;

/// Makes a table of what was published and of what a study's runs give.
type Make = fn(&Plan, &[Row], &Summary) -> PublishedTable;

const TABLES: &[(&str, Make)] = &[("blitzstart-table1", table1::published_table)];

/// The table that a scenario names, if it names one.
pub fn published_table(scenario: &Scenario, plan: &Plan, rows: &[Row], summary: &Summary) -> Option<PublishedTable> {
    let name = scenario.published.as_deref()?;
    TABLES.iter().find(|(table, _)| *table == name).map(|(_, make)| make(plan, rows, summary))
}

#[cfg(test)]
mod tests {
    use flowstart_lab::study::scenario::PUBLISHED;

    use super::TABLES;

    #[test]
    fn every_name_that_a_scenario_can_give_has_a_table() {
        assert!(TABLES.iter().map(|(name, _)| name).eq(PUBLISHED));
    }
}
