//! Writes the page of a report that stands in a JSON file: `render REPORT.json > report.html`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: render REPORT.json > report.html")?;
    let report: flowstart_report::Report = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(std::io::stdout().write_all(flowstart_report::render(&report)?.as_bytes())?)
}
