//! Lists and entries as text.

use flowstart_lab::catalogue::{Entry, Parameter};
use textwrap::Options;

/// One line per entry, the name first. What does not fit is cut: the entry's own page has it.
pub(super) fn lines(entries: &[Entry], width: usize) -> String {
    let longest = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    // Long names leave at least half of the width to what they are.
    let column = longest.min(width / 2);
    let line = |entry: &Entry| {
        let what = if entry.title.is_empty() { &entry.summary } else { &entry.title };
        let in_kernel = entry.kernel_name.map(|_| "tcp");
        let unit = entry.unit.or(in_kernel).filter(|unit| !unit.is_empty());
        let unit = unit.map_or(String::new(), |unit| format!(" [{unit}]"));
        let name = format!("{:column$}  ", entry.name);
        let room = width.saturating_sub(name.chars().count() + unit.chars().count());
        format!("{name}{}{unit}", cut(&what.split_whitespace().collect::<Vec<_>>().join(" "), room))
    };
    entries.iter().map(|entry| line(entry).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// As many whole words as there is room for, or whole parts of a list without spaces.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for part in text.split_inclusive([' ', ',']) {
        if short.chars().count() + part.trim_end().chars().count() + 2 > room {
            break;
        }
        short += part;
    }
    let short = short.trim_end();
    format!("{} …", short.trim_end_matches([',', ';', ':']))
}

/// Everything about one entry.
pub(super) fn page(entry: &Entry, width: usize) -> String {
    let wrapped = |text: &str, indent: &str| textwrap::fill(text, options(width, indent));
    let title = if entry.title.is_empty() { entry.name.clone() } else { format!("{}: {}", entry.name, entry.title) };
    let mut text = format!("{}\n\n{}\n", wrapped(&title, ""), wrapped(&entry.summary, "  "));
    if let Some(unit) = entry.unit.filter(|unit| !unit.is_empty()) {
        text += &format!("\n  Unit: {unit}\n");
    }
    if !entry.cost.is_empty() {
        text += &format!("\n  Size: {}\n", entry.cost);
    }
    if !entry.source.is_empty() {
        let label = if entry.title.is_empty() { "Source: " } else { "" };
        text += &format!("\n{}\n", wrapped(&format!("{label}{}", entry.source), "  "));
    }
    if let Some(phases) = entry.phases {
        text.push('\n');
        for (phase, what) in ["Senses", "Probes", "Validates", "Continues"].iter().zip(phases.split("; ")) {
            text += &format!("{}\n", wrapped(&format!("{phase}: {what}"), "  "));
        }
        let in_kernel = match entry.kernel_name {
            Some(name) => format!("{name}, by `flowstart tcp load {}`", entry.name),
            None => "not there".to_owned(),
        };
        text += &format!("{}\n", wrapped(&format!("In the kernel's TCP: {in_kernel}"), "  "));
    }
    if !entry.parameters.is_empty() {
        text += &format!("\nParameters, {}\n", entry.usage);
        for parameter in &entry.parameters {
            text += &one(parameter, width);
        }
    }
    if !entry.example.is_empty() {
        text += &format!("\nExample: {}\n", entry.example);
    }
    text
}

/// A parameter: its name and values, below it what it means.
fn one(parameter: &Parameter, width: usize) -> String {
    let Parameter { name, values, meaning, default, example } = parameter;
    let default = match default {
        Some(default) => format!("default {default}"),
        None => "needed".into(),
    };
    let about = if values.is_empty() { default } else { format!("{values}; {default}") };
    let example = if example.is_empty() { String::new() } else { format!(", as in {example}") };
    let head = textwrap::fill(&format!("{name}: {about}"), options(width, "  ").subsequent_indent("      "));
    format!("{head}\n{}\n", textwrap::fill(&format!("{meaning}{example}"), options(width, "      ")))
}

fn options(width: usize, indent: &str) -> Options<'_> {
    Options::new(width).initial_indent(indent).subsequent_indent(indent).break_words(false)
}

#[cfg(test)]
mod tests {
    use flowstart_lab::catalogue::{LISTS, of};

    use super::*;

    #[test]
    fn lists_have_a_line_per_entry_that_fits_with_the_name_in_full() {
        for (list, ..) in LISTS {
            let entries = of(list, None).unwrap();
            for width in [60, 80, 132] {
                let text = lines(&entries, width);
                assert_eq!(text.lines().count(), entries.len());
                for (line, entry) in text.lines().zip(&entries) {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                    assert!(line.starts_with(&entry.name), "{line}");
                    assert!(line.len() > entry.name.len() + 10, "{line}");
                }
            }
        }
    }

    #[test]
    fn pages_fit_and_have_every_parameter_with_its_meaning() {
        for (list, ..) in LISTS {
            for entry in of(list, None).unwrap() {
                let page = page(&entry, 80);
                for line in page.lines() {
                    // Specs have no place to break.
                    let is_spec =
                        line.split_whitespace().any(|word| word.chars().count() > 60) || line.contains("KEY=");
                    assert!(line.chars().count() <= 80 || is_spec, "{line}");
                }
                for parameter in &entry.parameters {
                    let first = parameter.meaning.split_whitespace().next().unwrap();
                    assert!(page.contains(&format!("\n  {}: ", parameter.name)) && page.contains(first), "{page}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_cut_between_words() {
        assert_eq!(cut("one two three", 13), "one two three");
        assert_eq!(cut("one, two three", 12), "one, two …");
        assert_eq!(cut("one, two three", 8), "one …");
        assert_eq!(cut("one=1,two=2,three=3", 14), "one=1,two=2 …");
        assert_eq!(cut("onetwothree", 5), " …");
    }
}
