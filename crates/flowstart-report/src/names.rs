//! Short names of what users wrote, which differ wherever the whole texts do.

/// Longest short name of a value.
const LONGEST: usize = 28;

/// The keys that specifications such as `rate=20mbit,rtt=30ms` do not share, for each of them, and those that all
/// share.
pub fn own_keys(specifications: &[&str]) -> (Vec<String>, String) {
    let parts = |text: &str| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = specifications.iter().map(|text| parts(text)).collect();
    let is_shared = |part: &String| all.iter().all(|parts| parts.contains(part));
    let own = |parts: &Vec<String>| parts.iter().filter(|part| !is_shared(part)).cloned().collect::<Vec<_>>().join(",");
    let shared =
        all.first().map_or_else(Vec::new, |parts| parts.iter().filter(|part| is_shared(part)).cloned().collect());
    (all.iter().map(own).collect(), shared.join(","))
}

/// Short names that differ from each other. Of long specifications only the keys remain that differ.
pub(crate) fn short_names(full: &[String]) -> Vec<String> {
    let specifications: Vec<&str> = full.iter().map(String::as_str).filter(|text| text.contains('=')).collect();
    let (own, _) = own_keys(&specifications);
    let own = |text: &String| {
        let place = specifications.iter().position(|one| one == text);
        let is_long = specifications.len() > 1 && text.chars().count() > LONGEST;
        let short = place.map(|place| &own[place]).filter(|short| is_long && !short.is_empty());
        short.unwrap_or(text).clone()
    };
    let mut names: Vec<String> = Vec::new();
    for short in shortened_apart(&full.iter().map(own).collect::<Vec<_>>(), LONGEST) {
        names.push(if names.contains(&short) {
            let number = format!(" no. {}", names.len() + 1);
            shortened(&short, LONGEST - number.chars().count()) + &number
        } else {
            short
        });
    }
    names
}

/// Texts of at most this many characters. Of long ones that begin alike, their start and what differs remains.
pub(crate) fn shortened_apart(texts: &[String], most: usize) -> Vec<String> {
    let cut: Vec<String> = texts.iter().map(|text| shortened(text, most)).collect();
    let one = |(text, short): (&String, &String)| {
        let alike = || texts.iter().zip(&cut).filter(|(other, cut)| *cut == short && *other != text && *cut != *other);
        let shared = |other: &String| text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let Some(shared) = alike().map(|(other, _)| shared(other)).min().filter(|_| text != short) else {
            return short.clone();
        };
        let letters: Vec<char> = text.chars().collect();
        let head = most / 3;
        let room = most - head - 1;
        let whole = letters.len().saturating_sub(room);
        let from = if whole <= shared {
            whole
        } else {
            let ends_part = |letter: &char| matches!(letter, ',' | ' ');
            letters[head..shared].iter().rposition(ends_part).map_or(shared, |place| head + place + 1)
        };
        let start: String = letters[..head].iter().collect();
        let rest: String = letters[from..].iter().collect();
        format!("{start}…{}", shortened(&rest, room))
    };
    texts.iter().zip(&cut).map(one).collect()
}

/// A text of at most this many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end_matches(','))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::distinct;

    #[test]
    fn names_of_long_links_are_the_keys_that_differ() {
        let common = "rtt=30ms,buffer=1bdp,up_rate=5mbit,access_jitter=1ms/1ms";
        let links: Vec<String> = ["20mbit", "40mbit"].iter().map(|rate| format!("rate={rate},{common}")).collect();
        assert_eq!(short_names(&links), ["rate=20mbit", "rate=40mbit"]);
        let alone = short_names(&[format!("rate=20mbit,{common}"), "lte".to_owned()]);
        assert_eq!(alone, ["rate=20mbit,rtt=30ms,buffer…", "lte"]);
        // Names that begin alike stay different, by what differs.
        let begins = "rate=20mbit,rtt=30ms,buffer=1bdp,access_jitter=";
        let alike = [format!("{begins}1ms,noise=off"), format!("{begins}1ms,noise=on"), "lte".to_owned()];
        let names = shortened_apart(&alike, 28);
        assert_eq!(names, ["rate=20mb…tter=1ms,noise=off", "rate=20mb…itter=1ms,noise=on", "lte"]);
        let far = [format!("{begins}1ms,{}", "a".repeat(40)), format!("{begins}2ms,{}", "a".repeat(40))];
        assert_eq!(shortened_apart(&far, 28)[0], "rate=20mb…access_jitter=1ms…");
        let long = "x".repeat(120);
        let names = short_names(&(0..12).map(|number| format!("{long}{number:02}")).collect::<Vec<_>>());
        assert!(names.iter().all(|name| name.chars().count() <= LONGEST), "{names:?}");
        assert_eq!(distinct(names.iter()).len(), 12, "{names:?}");
    }
}
