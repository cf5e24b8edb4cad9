//! A change of the measured flows' path: `none` (the default), or the new link with the time `at`, as in
//! `at=2s,rate=5mbit,rtt=80ms` or `lte,at=2s`.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `at` | time of the change, from the flow's start | needed |
//! | all others | those of the link ([`super::link`]) | the link's |

use std::path::Path;

use flowstart_core::spec::names;
use flowstart_core::time::Duration;

use super::link::{self, Link};
use super::{InputError, Spec, Written};

/// The default mobility. The names of cells omit it.
pub const NONE: &str = "none";

/// Latest move, from the flow's start.
const LATEST: Duration = Duration::from_millis(1_000_000);

/// A mobility event of each measured flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Time from the flow's start. A flow that has not sent data by then moves with its first data.
    pub at: Duration,
    /// The new path, which only the measured flows use.
    pub link: Link,
}

impl Move {
    /// Reads a mobility event. `options` and `noise` apply to its link as to other links.
    pub fn parse(
        field: &str,
        text: &str,
        options: Option<&str>,
        noise: bool,
        directory: &Path,
    ) -> Result<Written<Option<Self>>, InputError> {
        let text = text.trim();
        if names::is_same(text, NONE) {
            return Ok(Written { text: NONE.to_owned(), value: None });
        }
        let mut spec = Spec::parse(field, text)?;
        let at = spec.within("at", Duration::ZERO..=LATEST)?;
        let is_link = |part: &&str| part.split('=').next().is_some_and(|key| !names::is_same(key.trim(), "at"));
        let link: Vec<&str> = text.split(',').filter(is_link).collect();
        let at = at.ok_or_else(|| {
            let missing = "`at` is missing, as in at=2s,rate=5mbit,rtt=80ms; or use none";
            let is_of_links = |key: &&str| link::options().any(|known| names::is_same(known.name, key));
            let keys = link.iter().filter_map(|part| Some(part.split_once('=')?.0.trim()));
            let slip = keys.filter(|key| !is_of_links(key)).find(|key| !names::closest(key, &["at"]).is_empty());
            match slip {
                Some(slip) => spec.refused(names::unknown(slip, &["at"], missing)),
                None => spec.refused(missing),
            }
        })?;
        if link.is_empty() {
            return Err(spec.refused("a link is missing, as in at=2s,rate=5mbit,rtt=80ms or lte,at=2s"));
        }
        let link = Link::parse_with(field, &link.join(","), options, noise, directory)?;
        if link.stands_for.is_some() {
            return Err(
                spec.refused(format_args!("`{}` is not known here; only links of --link have names", link.text))
            );
        }
        Ok(Written { text: text.to_owned(), value: Some(Self { at, link }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Move>, InputError> {
        Move::parse("--move", text, None, false, Path::new(".")).map(|written| written.value)
    }

    #[test]
    fn a_move_is_a_time_and_a_link() {
        assert_eq!(parse("none").unwrap(), None);
        let moved = parse("at=2s,rate=5mbit,rtt=80ms").unwrap().unwrap();
        assert_eq!((moved.at, moved.link.rtt), (Duration::from_millis(2000), Duration::from_millis(80)));
        assert_eq!(parse("lte,at=500ms").unwrap().unwrap().link.rtt, Duration::from_millis(70));
    }

    #[test]
    fn wrong_moves_say_what_is_allowed() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("rate=5mbit,rtt=80ms").contains("`at` is missing"));
        assert!(
            error("lte,att=1s").contains("`att` is not known (did you mean `at`?); `at` is missing, as in"),
            "{}",
            error("lte,att=1s")
        );
        assert!(error("at=2h,rate=5mbit,rtt=80ms").contains("at"));
        assert!(error("at=2s").contains("a link is missing"));
        assert!(error("other=rate=5mbit,rtt=80ms,at=2s").contains("only links of --link have names"));
        assert!(error("lte,at=2000s").contains("0s to"));
        assert!(error("at=2s,rate=5mbit,speed=3").contains("speed"));
    }
}
