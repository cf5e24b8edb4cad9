//! The best value of an axis in each setting.

use flowstart_report::Kind;

use super::best;
use super::standing::{AS_FAST, Standing};
use super::words::{MOST_NAMED, NOBODY, at, plural};
use crate::results::summary::Summary;
use crate::study::plan::{AXES, Axis, Cell, Plan};

/// Most values that are as good as each other and are named.
pub(super) const MOST_EQUAL: usize = 3;

/// The best value in each setting, where it is not the same one in all of them.
pub(super) struct BestBySetting {
    /// What settings differ in: sizes alone, if there are many.
    pub(super) what: &'static str,
    /// Whether there is a best value in any of them.
    pub(super) is_anywhere: bool,
    /// The settings with their best values.
    pub(super) text: String,
    /// The values that are as good as the best in every setting.
    pub(super) always: Vec<String>,
}

impl BestBySetting {
    pub(super) fn of(plan: &Plan, summary: &Summary, axis: &'static Axis) -> Option<Self> {
        // Of two values there is one to compare, and it is told where it is better.
        if axis.length(plan) < 3 {
            return None;
        }
        let varied: Vec<&Axis> = AXES.iter().filter(|other| *other != axis && other.length(plan) > 1).collect();
        let count = |axes: &[&Axis]| axes.iter().map(|axis| axis.length(plan)).product::<usize>();
        let by = if count(&varied) <= MOST_NAMED { varied } else { vec![Axis::size()] };
        if !(2..=MOST_NAMED).contains(&count(&by)) || by.contains(&axis) {
            return None;
        }
        let places = |cell: &Cell| by.iter().map(|axis| axis.place(*cell)).collect::<Vec<_>>();
        let mut settings: Vec<Vec<usize>> = plan.cells().iter().map(places).collect();
        settings.sort_unstable();
        settings.dedup();
        let found: Vec<Best<'_>> =
            settings.iter().map(|setting| Best::of(plan, summary, axis, |cell| places(cell) == *setting)).collect();
        if found.iter().all(|best| best.names == found[0].names) {
            return None;
        }
        let label = |setting: &[usize]| {
            let words = by.iter().zip(setting).map(|(axis, place)| word(axis, axis.texts(plan)[*place]));
            words.collect::<Vec<_>>().join(" ")
        };
        // What holds with every value of the other axes is said once.
        let all: Vec<(&Vec<usize>, &Best<'_>)> = settings.iter().zip(&found).collect();
        let parts = all.chunk_by(|(a, _), (b, _)| a[0] == b[0]).flat_map(|alike| {
            let is_one = alike.iter().all(|(_, best)| best.text == alike[0].1.text);
            let (told, words) = if is_one { (&alike[..1], 1) } else { (alike, by.len()) };
            told.iter().map(|(setting, best)| format!("{} {}", label(&setting[..words]), best.text)).collect::<Vec<_>>()
        });
        let mut parts: Vec<String> = parts.collect();
        // The first gain says over what, and the others are shorter.
        let gains = parts.iter_mut().filter(|part| part.contains(AS_FAST));
        for (place, part) in gains.enumerate() {
            let words = if place == 0 { format!("{AS_FAST} as {}", axis.texts(plan)[0]) } else { "times".to_owned() };
            *part = part.replacen(AS_FAST, &words, 1);
        }
        let with_best = || found.iter().filter(|best| !best.names.is_empty());
        let is_always = |name: &&str| with_best().all(|best| best.names.contains(name));
        Some(Self {
            what: if by == [Axis::size()] { plural(plan, Axis::size()).trim_end_matches('s') } else { "setting" },
            is_anywhere: with_best().next().is_some(),
            text: parts.join("; "),
            always: axis.texts(plan).into_iter().filter(is_always).map(str::to_owned).collect(),
        })
    }
}

/// A value of an axis as a part of a setting's name.
fn word(axis: &Axis, text: &str) -> String {
    if axis == Axis::competitor() || text == NOBODY { at(axis, text) } else { text.to_owned() }
}

/// What is best in a setting.
struct Best<'a> {
    /// Those that cannot be told from the best, by the order of the axis; none where nothing is measurably faster.
    names: Vec<&'a str>,
    text: String,
}

impl<'a> Best<'a> {
    fn of(plan: &'a Plan, summary: &'a Summary, axis: &'static Axis, holds: impl Fn(&Cell) -> bool) -> Self {
        let standings = Standing::where_true(plan, summary, axis, |cell| holds(&cell));
        let is = |kind: Kind| standings.iter().any(|one| one.verdict.kind == kind);
        let Some(best) = best(&standings).map(|best| &standings[best]) else {
            let text = match (is(Kind::FasterByWaste), is(Kind::Faster)) {
                _ if standings.is_empty() => "nothing to compare",
                (true, _) => "none without waste",
                (false, true) => "none without more failures",
                (false, false) => "none",
            };
            return Self { names: Vec::new(), text: text.to_owned() };
        };
        let offered = |one: &&Standing<'_>| one.verdict == best.verdict && !one.fails_more() && one.is_as_good_as(best);
        let equal: Vec<&str> = standings.iter().filter(offered).map(|one| one.name).collect();
        let names: Vec<&str> = axis.texts(plan).into_iter().filter(|name| equal.contains(name)).collect();
        let others = names.len().saturating_sub(MOST_EQUAL);
        let mut named = names[..names.len() - others].join(" or ");
        if others > 0 {
            named.push_str(&format!(" or {others} more"));
        }
        let text = format!("{named} ({})", best.gain());
        Self { names, text }
    }
}
