//! What pages let their readers choose: what lists show.

use flowstart_lab::catalogue::{self, Entry, List, ListError};

/// Something that can be chosen.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Choice {
    /// As it is written in a question.
    pub text: String,
    /// What it is, in a line.
    pub summary: String,
}

/// What can be chosen on an axis.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The axis' key, as in `flowstart compare`.
    pub key: &'static str,
    /// The choices.
    pub choices: Vec<Choice>,
}

/// How an entry is written in a question.
type Written = fn(&Entry) -> String;

/// The axis of transports.
pub(crate) const TRANSPORT: &str = "transport";
/// Each list with the option that takes its entries. Competitors need keys, so their examples stand for them.
const LISTS: [(List, &str, Written); 7] = [
    (List::Links, "link", by_name),
    (List::Aqms, "aqm", by_name),
    (List::Schemes, "scheme", by_name),
    (List::Competitors, "competitor", by_example),
    (List::Transports, TRANSPORT, by_name),
    (List::Avoidance, "avoidance", by_name),
    (List::Applications, "application", by_example),
];

fn by_name(entry: &Entry) -> String {
    entry.name.clone()
}

/// What stands behind the option of its example.
fn by_example(entry: &Entry) -> String {
    entry.example.split_once(' ').map_or_else(|| entry.name.clone(), |(_, value)| value.to_owned())
}

/// The choices of each axis that has a list.
pub(crate) fn choices() -> Result<Vec<Choices>, ListError> {
    let of = |(list, key, written): (List, &'static str, Written)| {
        let entries = catalogue::of(list, None)?;
        let choice = |entry: &Entry| Choice { text: written(entry), summary: entry.summary.clone() };
        Ok(Choices { key, choices: entries.iter().map(choice).collect() })
    };
    LISTS.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_offered_as_it_is_written() {
        let all = choices().unwrap();
        let texts = |key: &str| {
            let of_key = all.iter().find(|one| one.key == key).unwrap();
            of_key.choices.iter().map(|choice| choice.text.clone()).collect::<Vec<_>>()
        };
        assert!(texts("link").contains(&"dsl-fast".to_owned()));
        assert!(texts("scheme").contains(&"slow-start".to_owned()));
        assert!(texts("competitor").contains(&"cbr:rate=5mbit".to_owned()));
        assert!(texts("transport").contains(&"quic".to_owned()));
    }
}
