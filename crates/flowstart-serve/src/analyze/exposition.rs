//! The text format of servers' metrics (Prometheus text format, `OpenMetrics` 1.0, section "Text Format").
//!
//! The reader ignores the meaning of metrics: types, units and help are comments. It skips time stamps and exemplars.

use std::collections::BTreeMap;

/// Longest text that is read.
pub const LONGEST: u64 = 64 << 20;

/// The last line of a text.
const END: &str = "# EOF";

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Line of the text, from 1 on.
    pub line: usize,
    /// The metric's name with its suffix, such as `_total`.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// A line that is no sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct NoSample {
    /// Line of the text, from 1 on.
    pub line: usize,
    /// What is wrong.
    pub cause: String,
}

/// The samples of a text, one after the other.
///
/// # Errors
///
/// [`NoSample`] for a line that is neither a sample nor a comment, and for the end if it is not that of a whole text
/// (`# EOF`): counts of one that was cut would be too small.
pub fn samples(text: &str) -> impl Iterator<Item = Result<Sample, NoSample>> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let samples = lines.filter(|(_, content)| !content.is_empty() && !content.starts_with('#'));
    let samples = samples.map(|(line, content)| sample(line, content).map_err(|cause| NoSample { line, cause }));
    let last = text.lines().rev().map(str::trim).find(|content| !content.is_empty());
    let end = (last != Some(END)).then(|| {
        let cause =
            format!("the last line is not `{END}`, so the end may be missing; save metrics as OpenMetrics has them");
        Err(NoSample { line: text.lines().count(), cause })
    });
    samples.chain(end)
}

fn sample(line: usize, text: &str) -> Result<Sample, String> {
    let end = text.find(|one: char| one == '{' || one.is_whitespace()).ok_or("a sample has a name and a value")?;
    let (name, mut rest) = text.split_at(end);
    if !is_name(name) {
        return Err(format!("`{}` is no name of a metric", start_of(name)));
    }
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start();
            if let Some(behind) = rest.strip_prefix('}') {
                rest = behind;
                break;
            }
            let (label, value, behind) = label(rest)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("label `{}` is there twice", start_of(label)));
            }
            rest = behind.trim_start();
            match rest.strip_prefix(',') {
                Some(behind) => rest = behind,
                None if rest.starts_with('}') => {}
                None => return Err(format!("after label `{}` there is neither `,` nor `}}`", start_of(label))),
            }
        }
    }
    let value = rest.split_whitespace().next().ok_or_else(|| format!("{} has no value", start_of(name)))?;
    let value = value.parse().map_err(|_| format!("{}: `{}` is no number", start_of(name), start_of(value)))?;
    Ok(Sample { line, name: name.to_owned(), labels, value })
}

/// A label's name and value, and what follows.
fn label(text: &str) -> Result<(&str, String, &str), String> {
    let (name, rest) = text.split_once('=').ok_or("a label has the form name=\"value\"")?;
    let name = name.trim_end();
    if !is_name(name) {
        return Err(format!("`{}` is no name of a label", start_of(name)));
    }
    let open = || format!("label `{}`: its value is not between quotation marks", start_of(name));
    let rest = rest.trim_start().strip_prefix('"').ok_or_else(open)?;
    let (mut value, mut escaped) = (String::new(), false);
    for (place, one) in rest.char_indices() {
        match (escaped, one) {
            (false, '"') => return Ok((name, value, rest.get(place + 1..).unwrap_or_default())),
            (false, '\\') => {
                escaped = true;
                continue;
            }
            (true, 'n') => value.push('\n'),
            (true, '"' | '\\') | (false, _) => value.push(one),
            (true, _) => return Err(format!("label `{}`: `\\{one}` means nothing", start_of(name))),
        }
        escaped = false;
    }
    Err(open())
}

/// The part of a text that fits into a message.
pub(super) fn start_of(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|one: char| one.is_ascii_digit())
        && text.chars().all(|one| one.is_ascii_alphanumeric() || one == '_' || one == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Sample>, NoSample> {
        samples(text).collect()
    }

    #[test]
    fn samples_are_read() {
        let text = "# TYPE a counter\na_total{x=\"1\",y=\"a\\\"b\\\\,}\\n\"} 3 1700000000 # {id=\"7\"} 2\n\nb -1.5e3\nc{} +Inf\n# EOF\n";
        let read = all(text).unwrap();
        assert_eq!((read[0].name.as_str(), read[0].value, read[0].line), ("a_total", 3.0, 2));
        assert_eq!((read[0].labels["x"].as_str(), read[0].labels["y"].as_str()), ("1", "a\"b\\,}\n"));
        assert_eq!((read[1].value, read[1].labels.len(), read[2].value), (-1500.0, 0, f64::INFINITY));
    }

    #[test]
    fn what_was_cut_is_refused() {
        let whole = "a 1\nb 2\n# EOF\n";
        assert_eq!(all(whole).unwrap().len(), 2);
        for end in [8, 4, 0] {
            assert!(all(&whole[..end]).unwrap_err().cause.contains("`# EOF`"), "{end}");
        }
        assert!(all("a 1\n# EOF\nb 2\n").unwrap_err().cause.contains("`# EOF`"));
    }

    #[test]
    fn what_is_no_sample_is_refused_with_its_line() {
        let refused = [
            ("a", "a name and a value"),
            ("a{} ", "has no value"),
            ("1a 2", "no name of a metric"),
            ("a x", "`x` is no number"),
            ("a{x=1} 2", "quotation marks"),
            ("a{x=\"1} 2", "quotation marks"),
            ("a{x=\"1\" y=\"2\"} 2", "neither"),
            ("a{x=\"1\",x=\"2\"} 2", "twice"),
            ("a{x=\"\\t\"} 2", "means nothing"),
            ("a{x} 2", "form name"),
        ];
        for (line, message) in refused {
            let error = all(&format!("b 1\n{line}\n")).unwrap_err();
            assert!(error.line == 2 && error.cause.contains(message), "{line}: {error}");
        }
    }
}
