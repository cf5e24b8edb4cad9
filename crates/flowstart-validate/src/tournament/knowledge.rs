//! What is known of a cell's path before its transfer: the same for every scheme.

use super::draw::{between, choice, rounded};

/// Kinds of knowledge, and how often each is drawn. What clients report of the handshake's train is not among them: by
/// itself every client of the model's QUIC reports it, and no other.
const KINDS: &[(Kind, f64)] = &[
    (Kind::Nothing, 22.0),
    (Kind::Hint, 9.0),
    (Kind::HintAndSaved, 11.0),
    (Kind::Oracle, 5.0),
    (Kind::Saved, 6.0),
    (Kind::Approval, 5.0),
    (Kind::FalseHint, 13.0),
    (Kind::FalseSaved, 11.0),
    (Kind::Old, 4.0),
    (Kind::OtherRtt, 4.0),
    (Kind::Contradictory, 10.0),
];

/// How far what is false is from the truth.
const FALSE: (f64, f64) = (0.1, 100.0);
/// How old is what is too old, in hours: up to a month.
const OLD_HOURS: (f64, f64) = (1.1, 720.0);
/// How far another RTT is from the path's, in either direction.
const OTHER_RTT: (f64, f64) = (2.5, 10.0);
/// The age of what an earlier connection saved, as links write it, if it is not too old.
const FRESH: &str = "60s";

/// A kind of knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// None.
    Nothing,
    /// A true hint of the client, alone.
    Hint,
    /// A true hint, and what an earlier connection saved, which agrees.
    HintAndSaved,
    /// A true capacity oracle, alone.
    Oracle,
    /// What an earlier connection saved, alone and true.
    Saved,
    /// Routers that approve a rate, alone.
    Approval,
    /// A false hint, alone.
    FalseHint,
    /// A false saved rate, alone.
    FalseSaved,
    /// What was saved more than an hour ago.
    Old,
    /// What was saved of a path with another RTT.
    OtherRtt,
    /// A hint and a saved rate, of which one is false.
    Contradictory,
}

impl Kind {
    /// Whether two independent sources agree, or routers approve.
    pub fn is_corroborated(self) -> bool {
        matches!(self, Self::HintAndSaved | Self::Approval)
    }

    /// Whether one source alone says what is true.
    pub fn is_single_and_true(self) -> bool {
        matches!(self, Self::Hint | Self::Oracle | Self::Saved)
    }

    /// Whether all that is known is true, and something is.
    pub fn is_true(self) -> bool {
        self.is_corroborated() || self.is_single_and_true()
    }

    /// Whether something that is known is false, or of another time or path.
    pub fn is_false(self) -> bool {
        self != Self::Nothing && !self.is_true()
    }

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Hint => "hint",
            Self::HintAndSaved => "hint-and-saved",
            Self::Oracle => "oracle",
            Self::Saved => "saved",
            Self::Approval => "approval",
            Self::FalseHint => "false-hint",
            Self::FalseSaved => "false-saved",
            Self::Old => "old",
            Self::OtherRtt => "other-rtt",
            Self::Contradictory => "contradictory",
        }
    }
}

/// What is true of a path: its rate in Mbit/s and its RTT in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// The rate.
    pub mbit: f64,
    /// The RTT.
    pub rtt_ms: f64,
}

/// The kind at `part` of all, and the keys that a link gets for it. `far` says how false it is, `which` what is false.
pub fn draw(truth: Truth, part: f64, far: f64, which: f64) -> (Kind, String) {
    let kind = choice(KINDS, part).map_or(Kind::Nothing, |(kind, _)| kind);
    let factor = between(FALSE.0, FALSE.1, far);
    let rate = |factor: f64| format!("{}mbit", rounded(truth.mbit * factor));
    let saved = |rate: String, rtt_ms: f64, age: &str| format!("{rate}/{}ms/{age}", rounded(rtt_ms));
    let keys = match kind {
        // The scenario says that nothing is known.
        Kind::Nothing => String::new(),
        Kind::Hint => "saved=none,oracle=none".into(),
        Kind::HintAndSaved => "oracle=none".into(),
        Kind::Oracle => "hint=none,saved=none".into(),
        Kind::Saved => "hint=none,oracle=none".into(),
        Kind::Approval => "hint=none,saved=none,oracle=none,quick_start=target".into(),
        Kind::FalseHint => format!("hint={},saved=none,oracle=none", rate(factor)),
        Kind::FalseSaved => format!("hint=none,saved={},oracle=none", saved(rate(factor), truth.rtt_ms, FRESH)),
        Kind::Old => {
            let hours = rounded(between(OLD_HOURS.0, OLD_HOURS.1, far));
            let age = format!("{}s", (hours * 3600.0).round());
            format!("hint=none,saved={},oracle=none", saved(rate(1.0), truth.rtt_ms, &age))
        }
        Kind::OtherRtt => {
            let factor = between(OTHER_RTT.0, OTHER_RTT.1, far);
            let factor = if which < 0.5 { factor } else { 1.0 / factor };
            format!("hint=none,saved={},oracle=none", saved(rate(1.0), truth.rtt_ms * factor, FRESH))
        }
        Kind::Contradictory => {
            let (hinted, earlier) = if which < 0.5 { (factor, 1.0) } else { (1.0, factor) };
            format!("hint={},saved={},oracle=none", rate(hinted), saved(rate(earlier), truth.rtt_ms, FRESH))
        }
    };
    (kind, keys)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use flowstart_lab::spec::link::Link;

    use super::*;

    const TRUTH: Truth = Truth { mbit: 20.0, rtt_ms: 50.0 };

    #[test]
    fn every_kind_is_drawn_and_links_read_its_keys() {
        let mut seen = Vec::new();
        for part in 0..100 {
            let (kind, keys) = draw(TRUTH, f64::from(part) / 100.0, 0.9, 0.2);
            let link = format!("rate=20mbit,rtt=50ms{}{keys}", if keys.is_empty() { "" } else { "," });
            Link::parse("link", &link, Path::new(".")).unwrap();
            assert_eq!([kind == Kind::Nothing, kind.is_true(), kind.is_false()].iter().filter(|is| **is).count(), 1);
            if !seen.contains(&kind) {
                seen.push(kind);
            }
        }
        assert_eq!(seen, KINDS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_false_is_as_far_off_as_was_drawn() {
        let of = |kind: Kind, far, which| {
            let before: f64 = KINDS.iter().take_while(|(one, _)| *one != kind).map(|(_, weight)| weight).sum();
            let all: f64 = KINDS.iter().map(|(_, weight)| weight).sum();
            let (drawn, keys) = draw(TRUTH, (before + 0.5) / all, far, which);
            assert_eq!(drawn, kind);
            keys
        };
        // From a tenth to a hundred times: the middle by the logarithm is the root of ten.
        assert_eq!(of(Kind::FalseHint, 0.5, 0.0), "hint=63.2mbit,saved=none,oracle=none");
        assert_eq!(of(Kind::FalseSaved, 0.0, 0.0), "hint=none,saved=2mbit/50ms/60s,oracle=none");
        assert_eq!(of(Kind::OtherRtt, 0.0, 0.9), "hint=none,saved=20mbit/20ms/60s,oracle=none");
        assert_eq!(of(Kind::Old, 0.0, 0.0), "hint=none,saved=20mbit/50ms/3960s,oracle=none");
        assert_eq!(of(Kind::Contradictory, 0.0, 0.9), "hint=20mbit,saved=2mbit/50ms/60s,oracle=none");
    }
}
