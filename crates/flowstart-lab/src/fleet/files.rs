//! A recommendation as CSV: a line for each choice, and one for each kind of transfer.

use std::path::Path;

use super::choices::Subject;
use super::recommendation::{OfChoice, OfKind, Recommendation};

/// A number; nothing where it is undefined.
fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn ends(interval: Option<[f64; 2]>) -> [String; 2] {
    [0, 1].map(|end| number(interval.map(|interval| interval[end])))
}

fn written(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row)?;
    }
    writer.into_inner().map_err(|error| std::io::Error::other(error.to_string()))
}

/// The choices, in the order of the question.
fn choices(subject: Subject, told: &Recommendation) -> std::io::Result<Vec<u8>> {
    let header = [
        subject.word(),
        "gain",
        "gain_ci.lo",
        "gain_ci.hi",
        "p50_ms",
        "p50_ci95.lo",
        "p50_ci95.hi",
        "p95_ms",
        "p95_ci95.lo",
        "p95_ci95.hi",
        "regret",
        "regret_p95",
        "inflation",
        "harm_mbit",
        "harm_ratio",
        "queue_delay_ms",
        "dropped_packets",
        "failed",
        "refused",
    ];
    let row = |one: &OfChoice| {
        let mut row = vec![one.choice.clone()];
        for (value, interval) in [(one.gain, one.gain_ci), (one.p50_ms, one.p50_ci95), (one.p95_ms, one.p95_ci95)] {
            row.push(number(value));
            row.extend(ends(interval));
        }
        row.extend([one.regret, one.regret_p95, Some(one.inflation), one.harm_mbit, one.harm_ratio].map(number));
        row.extend([one.queue_delay_ms, Some(one.dropped_packets), Some(one.failed)].map(number));
        row.push(one.refused.clone().unwrap_or_default());
        row
    };
    written(&header, told.choices.iter().map(row))
}

/// The recommended choice in each kind, the smallest gain first.
fn kinds(told: &Recommendation) -> std::io::Result<Vec<u8>> {
    let row = |one: &OfKind| {
        let mut row = vec![one.name.clone(), one.known.to_string(), one.start.clone().unwrap_or_default()];
        row.extend([number(Some(one.share)), number(one.gain)]);
        row.extend(ends(one.gain_ci));
        row
    };
    written(&["name", "known", "start", "share", "gain", "gain_ci.lo", "gain_ci.hi"], told.kinds.iter().map(row))
}

/// Writes both tables into a folder.
///
/// # Errors
///
/// The name of the file that cannot be written, and why.
pub fn write(folder: &Path, subject: Subject, told: &Recommendation) -> Result<(), (String, std::io::Error)> {
    for (name, content) in [("choices.csv", choices(subject, told)), ("kinds.csv", kinds(told))] {
        let put = content.and_then(|content| flowstart_files::replace(&folder.join(name), &content));
        put.map_err(|error| (name.to_owned(), error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_numbers_are_empty_and_names_are_quoted() {
        let kind = OfKind {
            name: "dsl, far".into(),
            known: true,
            start: None,
            share: 0.25,
            gain: None,
            gain_ci: Some([0.5, 2.0]),
            verdict: flowstart_report::Kind::Unclear,
            baseline_failed: 0.0,
        };
        let told = Recommendation {
            choice: Some("a".into()),
            as_good: Vec::new(),
            level: 0.95,
            reps: 2,
            choices: Vec::new(),
            kinds: vec![kind],
        };
        let text = String::from_utf8(kinds(&told).unwrap()).unwrap();
        assert_eq!(text, "name,known,start,share,gain,gain_ci.lo,gain_ci.hi\n\"dsl, far\",true,,0.25,,0.5,2\n");
        let text = String::from_utf8(choices(Subject::Queue, &told).unwrap()).unwrap();
        assert!(text.starts_with("queue,gain,gain_ci.lo"), "{text}");
    }
}
