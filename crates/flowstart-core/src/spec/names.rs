//! Names that users choose from: how they may be spelled, and what to say about one that does not exist.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

/// Most names that a message suggests.
const MOST_SUGGESTED: usize = 3;

/// A character as names are compared.
fn folded(character: char) -> char {
    if character == '_' { '-' } else { character.to_ascii_lowercase() }
}

/// Whether two texts are the same name: case does not count, and `_` is `-`.
pub fn is_same(one: &str, other: &str) -> bool {
    one.chars().map(folded).eq(other.chars().map(folded))
}

/// The one of `names` that `written` means.
pub fn find<'n>(written: &str, names: &[&'n str]) -> Option<&'n str> {
    names.iter().copied().find(|name| is_same(written, name))
}

/// The text as a key of a configuration: lower case, with `_` for `-`.
pub fn key(written: &str) -> String {
    written.chars().map(|character| if character == '-' { '_' } else { character.to_ascii_lowercase() }).collect()
}

/// Those of `names` that `written` may be a slip of, the likeliest first.
pub fn closest<'n>(written: &str, names: &[&'n str]) -> Vec<&'n str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
    };
    let wanted = plain(written);
    let most = (wanted.len() / 3).max(1);
    let mut ranked: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let letters = plain(name);
        let distance = distance(&wanted, &letters);
        // A slip leaves most of a name as it is. A part of a name may be far from it in letters.
        if distance <= most && distance < letters.len() {
            ranked.push((distance, name));
        } else if wanted.len() >= 3 && starts_of_words(name).any(|rest| plain(rest).starts_with(&wanted)) {
            ranked.push((most + distance, name));
        }
    }
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(MOST_SUGGESTED).map(|(_, name)| name).collect()
}

/// The name from each of its words on.
fn starts_of_words(name: &str) -> impl Iterator<Item = &str> {
    let starts = |(place, _): &(usize, char)| *place == 0 || !name.as_bytes()[place - 1].is_ascii_alphanumeric();
    name.char_indices().filter(starts).map(|(place, _)| &name[place..])
}

/// The question whether the user meant one of `names`, with a space before it; empty if none is close.
pub fn suggestion(written: &str, names: &[&str]) -> String {
    let closest = closest(written, names);
    match &closest[..] {
        [] => String::new(),
        [one] => format!(" (did you mean `{one}`?)"),
        [others @ .., last] => format!(" (did you mean `{}` or `{last}`?)", others.join("`, `")),
    }
}

/// What to say about a name that is none of `names`. `allowed` says what is, or where that is listed.
pub fn unknown(written: &str, names: &[&str], allowed: impl Display) -> String {
    format!("`{written}` is not known{}; {allowed}", suggestion(written, names))
}

/// A message of serde about an unknown field or variant, with the names that may have been meant.
pub fn suggested(message: &str) -> String {
    let mut parts = message.split('`');
    match (parts.next(), parts.next()) {
        (Some("unknown field " | "unknown variant "), Some(written)) => {
            let names: Vec<&str> = parts.skip(1).step_by(2).collect();
            let place = "unknown field ".len().max(message.find('`').unwrap_or(0) + 1) + written.len() + 1;
            let (head, rest) = message.split_at_checked(place).unwrap_or((message, ""));
            format!("{head}{}{rest}", suggestion(written, &names))
        }
        _ => message.into(),
    }
}

/// Insertions, removals, replacements and swaps of neighbours that turn one text into the other (optimal string
/// alignment).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = alloc::vec![i + 1];
        for (j, against) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != against);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *against {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["slow-start", "limited-slow-start", "fq-codel", "codel", "dsl-slow", "dsl-fast"];

    #[test]
    fn case_and_underscores_do_not_change_a_name() {
        assert_eq!(find("FQ_CoDel", &NAMES), Some("fq-codel"));
        assert_eq!(find("fqcodel", &NAMES), None);
        assert_eq!(key("UP-Rate"), "up_rate");
    }

    #[test]
    fn distances_count_slips_of_the_fingers() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        for (one, other, expected) in
            [("", "", 0), ("abc", "", 3), ("codel", "codle", 1), ("kitten", "sitting", 3), ("ca", "abc", 3)]
        {
            assert_eq!(distance(&letters(one), &letters(other)), expected, "{one} {other}");
            assert_eq!(distance(&letters(other), &letters(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn the_closest_names_are_suggested_and_nothing_far_away() {
        assert_eq!(closest("slowstart", &NAMES), ["slow-start", "limited-slow-start"]);
        assert_eq!(closest("slow-strat", &NAMES), ["slow-start"]);
        assert_eq!(closest("dsl", &NAMES), ["dsl-fast", "dsl-slow"]);
        assert!(closest("vegas", &NAMES).is_empty() && closest("", &NAMES).is_empty());
        assert_eq!(unknown("codle", &NAMES, "use x"), "`codle` is not known (did you mean `codel`?); use x");
        assert_eq!(unknown("vegas", &NAMES, "use x"), "`vegas` is not known; use x");
    }

    #[test]
    fn messages_of_serde_get_the_name_that_was_meant() {
        assert_eq!(
            suggested("unknown field `repz`, expected one of `title`, `reps`"),
            "unknown field `repz` (did you mean `reps`?), expected one of `title`, `reps`"
        );
        assert_eq!(
            suggested("unknown variant `slwo`, expected `slow`"),
            "unknown variant `slwo` (did you mean `slow`?), expected `slow`"
        );
        for unchanged in ["invalid type: string \"x\", expected f64", "unknown field", "unknown field `é"] {
            assert_eq!(suggested(unchanged), unchanged);
        }
    }
}
