//! How urgent a request is (RFC 9218).
//!
//! Left out: `PRIORITY_UPDATE` frames (section 7), which change it later.

use http::{HeaderValue, Request};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The urgency of a request that names none, of 0 to 7, 0 first (RFC 9218, section 4.1).
const USUAL: i64 = 3;

/// Whether others come first: its urgency is lower than the usual one. What cannot be read counts as not said (section
/// 4).
pub(super) fn can_wait(request: &Request<()>) -> bool {
    urgency(request).is_some_and(|urgency| (USUAL + 1..=7).contains(&urgency))
}

fn urgency(request: &Request<()>) -> Option<i64> {
    // Several lines of a field are one (RFC 9651, section 4.2).
    let lines: Vec<&[u8]> = request.headers().get_all("priority").iter().map(HeaderValue::as_bytes).collect();
    let priority: Dictionary = Parser::new(&lines.join(&b", "[..])).parse().ok()?;
    match priority.get("u")? {
        ListEntry::Item(item) => match &item.bare_item {
            BareItem::Integer(urgency) => Some(i64::from(*urgency)),
            _ => None,
        },
        ListEntry::InnerList(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lower_urgency_waits_and_nonsense_is_none() {
        let of = |priority: &[u8]| can_wait(&Request::builder().header("priority", priority).body(()).unwrap());
        for waits in ["u=4", "u=7, i", "i, u=5;x=1"] {
            assert!(of(waits.as_bytes()), "{waits}");
        }
        for usual in ["", "i", "u=3", "u=0", "u=8", "u=-1", "u=99999999999999999", "u=\"5\"", "u=(5)", "u=5.0", "u"] {
            assert!(!of(usual.as_bytes()), "{usual}");
        }
        assert!(!of(&[b'u', b'=', 0xff]));
        assert!(!can_wait(&Request::new(())));
        let lines = |lines: &[&str]| {
            let fields = lines.iter().fold(Request::builder(), |all, line| all.header("priority", *line));
            can_wait(&fields.body(()).unwrap())
        };
        assert!(lines(&["i", "u=5"]) && lines(&["u=1", "u=5"]) && !lines(&["u=5", "u=1"]));
    }
}
