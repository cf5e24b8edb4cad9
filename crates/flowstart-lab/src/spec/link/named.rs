//! Names that users give their links: `cable=rate=20mbit,rtt=30ms`.

use flowstart_core::spec::names;

use super::super::InputError;
use super::PRESETS;
use super::options::options;

/// Longest name.
const LONGEST: usize = 32;

/// Takes a link's text apart into the name that the user gave it, if there is one, and the rest.
///
/// # Errors
///
/// When the name is not allowed.
pub(super) fn split<'a>(field: &str, text: &'a str) -> Result<(Option<&'a str>, &'a str), InputError> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('=') else { return Ok((None, text)) };
    let (name, rest) = (name.trim(), rest.trim());
    let keys: Vec<&str> = options().map(|key| key.name).collect();
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    let first = rest.split(',').next().unwrap_or_default().trim();
    let describes = first.contains('=') || names::find(first, &presets).is_some();
    // `lte,buffer=1bdp` begins with a preset, `rate=20mbit` with a key, `bufer=1bdp` with a slip in a key.
    if name.contains(',') || names::find(name, &keys).is_some() || !describes {
        return Ok((None, text));
    }
    let refused = |problem: String| Err(InputError::new(field, text, problem));
    if names::find(name, &presets).is_some() {
        return refused(format!(
            "`{name}` is a preset, so it cannot be the name of another link: choose another name, or change the \
             preset, as in {name},buffer=1bdp"
        ));
    }
    let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "._-".contains(letter);
    let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(is_allowed);
    if !is_name || name.len() > LONGEST {
        return refused(format!(
            "`{name}` cannot be a link's name; allowed are up to {LONGEST} of a to z, 0 to 9, `.`, `_` and `-`, a \
             letter first"
        ));
    }
    Ok((Some(name), rest))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::Link;
    use super::*;

    fn parse(text: &str) -> Result<Link, InputError> {
        Link::parse("link", text, Path::new("."))
    }

    #[test]
    fn a_name_stands_for_a_link_and_the_text_is_kept() {
        let cable = parse(" cable = rate=20mbit,rtt=30ms,buffer=1bdp").unwrap();
        assert_eq!((&*cable.text, cable.stands_for.as_deref()), ("cable", Some("rate=20mbit,rtt=30ms,buffer=1bdp")));
        let plain = parse("rate=20mbit,rtt=30ms,buffer=1bdp").unwrap();
        assert_eq!(Link { text: plain.text.clone(), stands_for: None, ..cable }, plain);
        let home = parse("home=dsl-fast,buffer=2bdp").unwrap();
        assert_eq!((&*home.text, home.rtt), ("home", parse("dsl-fast").unwrap().rtt));
        assert_eq!(parse("my.link_2-x=lte").unwrap().text, "my.link_2-x");
        let resolved = serde_json::to_value(home.resolved()).unwrap();
        assert_eq!(resolved["stands_for"], "dsl-fast,buffer=2bdp");
    }

    #[test]
    fn texts_without_a_name_have_none() {
        for text in ["lte", "lte,buffer=1bdp", "rate=20mbit,rtt=30ms", "Up-Rate=1mbit,rate=20mbit,rtt=30ms"] {
            let link = parse(text).unwrap();
            assert_eq!((&*link.text, link.stands_for), (text, None));
        }
        let slip = parse("bufer=1bdp,rate=20mbit,rtt=30ms").unwrap_err();
        assert!(slip.problem.contains("did you mean `buffer`?"), "{slip}");
    }

    #[test]
    fn names_that_would_confuse_are_refused() {
        for (text, problem) in [
            ("lte=rate=20mbit,rtt=30ms", "`lte` is a preset"),
            ("DSL_Fast=rate=20mbit,rtt=30ms", "`DSL_Fast` is a preset"),
            ("Cable=rate=20mbit,rtt=30ms", "`Cable` cannot be"),
            ("a/b=rate=20mbit,rtt=30ms", "a letter first"),
            ("4g=rate=20mbit,rtt=30ms", "a letter first"),
            ("my link=rate=20mbit,rtt=30ms", "a letter first"),
            ("=rate=20mbit,rtt=30ms", "a letter first"),
            ("a12345678901234567890123456789012=lte", "up to 32"),
            ("rate=rate=20mbit,rtt=30ms", "`rate=20mbit` is not a rate"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_allowed_name_is_shown_and_changes_nothing(name in "[a-z][a-z0-9._-]{0,31}", rate in 1u32..1000) {
            let keys: Vec<&str> = options().map(|key| key.name).collect();
            prop_assume!(names::find(&name, &keys).is_none());
            prop_assume!(PRESETS.iter().all(|preset| !names::is_same(preset.name, &name)));
            let text = format!("rate={rate}mbit,rtt=30ms");
            let (named, plain) = (parse(&format!("{name}={text}")).unwrap(), parse(&text).unwrap());
            prop_assert_eq!(&named.text, &name);
            prop_assert_eq!(Link { text, stands_for: None, ..named }, plain);
        }
    }
}
