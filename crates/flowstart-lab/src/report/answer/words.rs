//! Numbers and lists in words.

use flowstart_report::digits_apart;

use crate::study::plan::{AXES, Axis, Plan};

/// From this factor on a longer time is a factor instead of a percentage.
const FACTOR: f64 = 2.0;

/// A speed-up below 1 as the longer time: `10 % longer`, or `2.5 times as long`.
pub(super) fn longer(speedup: f64) -> String {
    let later = 1.0 / speedup;
    match later >= FACTOR {
        true => format!("{} times as long", ratio([later; 2])),
        false => format!("{} longer", percent(later - 1.0)),
    }
}

/// A speed-up over `baseline` in words, with its interval: `1.4 times as fast as slow-start (1.3 to 1.5)` behind a
/// verb, or below 1 `10 % longer than slow-start (7 to 15)` behind `takes`.
pub(super) fn against(speedup: f64, interval: Option<[f64; 2]>, baseline: &str) -> String {
    let ends = |[low, high]: [f64; 2], digits: usize| format!(" ({low:.digits$} to {high:.digits$})");
    let later = 1.0 / speedup;
    if speedup >= 1.0 {
        let interval = interval.map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
        return format!("{} times as fast as {baseline}{interval}", ratio([speedup; 2]));
    }
    let interval = interval.map(|[low, high]| [1.0 / high, 1.0 / low]);
    if later >= FACTOR {
        let interval = interval.map_or(String::new(), |ends| format!(" ({})", ratio(ends)));
        return format!("{} times as long as {baseline}{interval}", ratio([later; 2]));
    }
    let percent = |factor: f64| (factor - 1.0) * 100.0;
    let (middle, interval) = (percent(later), interval.map(|ends| ends.map(percent)));
    // A small effect and a narrow interval have a digit more.
    let is_fine = middle < 2.0 || interval.is_some_and(|[low, high]| low.abs() < 1.0 || high - low < 2.0);
    let digits = usize::from(is_fine);
    // An end beside zero does not look like zero.
    let ends_at_zero = |digits: usize| {
        let zero = |end: f64| end != 0.0 && format!("{:.digits$}", end.abs()) == format!("{:.digits$}", 0.0);
        interval.is_some_and(|ends| ends.into_iter().any(zero))
    };
    let digits = (digits..3).find(|digits| !ends_at_zero(*digits)).unwrap_or(3);
    let interval = interval.map_or(String::new(), |interval| ends(interval, digits));
    format!("{middle:.digits$} % longer than {baseline}{interval}")
}

/// A range of ratios, with as many digits as the smaller one needs, and as tell an end from 1 and the ends from each
/// other; one number if both are the same.
pub(super) fn ratio([low, high]: [f64; 2]) -> String {
    let digits = match low.min(high) {
        small if small < 2.0 => 2,
        small if small < 20.0 => 1,
        _ => 0,
    };
    let digits = digits_apart(&[low, high], digits);
    let [low, high] = [low, high].map(|ratio| format!("{ratio:.digits$}"));
    if low == high { low } else { format!("{low} to {high}") }
}

/// A ratio and its interval behind it, with as many digits as tell them from 1 and the ends from each other.
pub(super) fn beside_one(middle: f64, interval: Option<[f64; 2]>) -> [String; 2] {
    let all: Vec<f64> = std::iter::once(middle).chain(interval.into_iter().flatten()).collect();
    let digits = digits_apart(&all, 2);
    let interval = interval.map_or(String::new(), |[low, high]| format!(" ({low:.digits$} to {high:.digits$})"));
    [format!("{middle:.digits$}"), interval]
}

/// A part of a whole in percent.
pub(super) fn percent(part: f64) -> String {
    match part * 100.0 {
        percent if percent == 0.0 || percent >= 9.95 => format!("{percent:.0} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// Parts of a whole in percent, from the smallest to the largest; one number if both look the same. `None`: there are
/// none.
pub(super) fn percent_range(parts: &[f64]) -> Option<String> {
    let [low, high] = [f64::min, f64::max].map(|end| parts.iter().copied().reduce(end));
    let [low, high] = [percent(low?), percent(high?)];
    Some(if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) })
}

/// The middle of this many numbers, in words: that of two is their mean.
pub(super) fn middle_of(count: usize) -> &'static str {
    if count == 2 { "mean" } else { "median" }
}

/// `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Most values of an axis that sentences speak of one by one.
pub(super) const MOST_NAMED: usize = 6;

/// What there is to say of every value of an axis: `taildrop 3 %; codel 0 %`. `None` where one has nothing, or where
/// there are too many for a sentence.
pub(super) fn listed_by_value(plan: &Plan, axis: &Axis, of: impl Fn(usize) -> Option<String>) -> Option<String> {
    if axis.length(plan) > MOST_NAMED {
        return None;
    }
    let texts = axis.texts(plan);
    let part = |place: usize| Some(format!("{} {}", value_of(axis, texts[place]), of(place)?));
    Some((0..texts.len()).map(part).collect::<Option<Vec<String>>>()?.join("; "))
}

/// The word for several values of an axis.
pub(super) fn plural(plan: &Plan, axis: &Axis) -> &'static str {
    let has_applications = || plan.sizes.iter().any(|size| size.value.objects().is_some());
    if axis == Axis::size() && has_applications() { "applications" } else { axis.plural }
}

/// The range of the comparisons of an axis: `4 links and 3 sizes, alone and beside cubic`.
pub(super) fn settings(plan: &Plan, compared: &Axis) -> String {
    let varied = || AXES.iter().filter(|axis| *axis != compared && axis.length(plan) > 1);
    let alone = varied().find(|axis| is_of_others(axis) && axis.texts(plan).contains(&NOBODY)).map(|axis| {
        let others: Vec<String> =
            axis.texts(plan).into_iter().filter(|text| *text != NOBODY).map(str::to_owned).collect();
        match others.len() {
            1..=3 => format!("alone and beside {}", listed(&others)),
            several => format!("alone and beside {several} competitors"),
        }
    });
    let named = varied().filter(|axis| !(is_of_others(axis) && alone.is_some()));
    let named: Vec<String> = named.map(|axis| format!("{} {}", axis.length(plan), plural(plan, axis))).collect();
    match (named.is_empty(), alone) {
        (true, None) => "all settings".to_owned(),
        (true, Some(alone)) => format!("runs {alone}"),
        (false, None) => listed(&named),
        (false, Some(alone)) => format!("{}, {alone}", listed(&named)),
    }
}

/// The competitor of a flow that is alone.
pub(super) const NOBODY: &str = "none";

/// Whether the values of an axis are the other users of the link.
pub(super) fn is_of_others(axis: &Axis) -> bool {
    axis == Axis::competitor()
}

/// Where a comparison is, on an axis: `with 70KB`, `beside cubic`, `alone` or `without move`.
pub(super) fn at(axis: &Axis, text: &str) -> String {
    match (is_of_others(axis), text) {
        (true, NOBODY) => "alone".to_owned(),
        (true, others) => format!("beside {others}"),
        (false, NOBODY) => format!("without {}", axis.name()),
        (false, text) => format!("with {text}"),
    }
}

/// The value of an axis in a list of what each of them does.
pub(super) fn value_of<'a>(axis: &Axis, text: &'a str) -> &'a str {
    if is_of_others(axis) && text == NOBODY { "alone" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sooner_is_a_factor_and_later_a_percentage() {
        assert_eq!(against(1.4, Some([1.3, 1.5]), "b"), "1.40 times as fast as b (1.30 to 1.50)");
        assert_eq!(against(3.84, Some([2.1, 5.0]), "b"), "3.8 times as fast as b (2.1 to 5.0)");
        // 1 / 0.909 is 1.1; 1 / 0.9346 and 1 / 0.8696 are 1.07 and 1.15.
        assert_eq!(against(0.909, Some([0.8696, 0.9346]), "b"), "10 % longer than b (7 to 15)");
        assert_eq!(against(0.97, Some([0.95, 0.995]), "b"), "3.1 % longer than b (0.5 to 5.3)");
        assert_eq!(against(0.985, None, "b"), "1.5 % longer than b");
        // What is significant does not look as if its interval reached 1.
        assert_eq!(against(0.95, Some([0.9, 0.9997]), "b"), "5.26 % longer than b (0.03 to 11.11)");
        assert_eq!(against(1.2, Some([1.002, 1.5]), "b"), "1.20 times as fast as b (1.002 to 1.500)");
        assert_eq!(against(0.4, Some([0.375, 0.5]), "b"), "2.5 times as long as b (2.0 to 2.7)");
    }

    #[test]
    fn percentages_have_a_digit_where_it_says_something() {
        assert_eq!([0.0, 0.004, 0.0996, 1.12].map(percent), ["0 %", "0.4 %", "10 %", "112 %"]);
        assert_eq!(percent_range(&[0.858, 0.0]).as_deref(), Some("0 to 86 %"));
        assert_eq!(percent_range(&[0.004, 0.0041]).as_deref(), Some("0.4 %"));
        assert_eq!(percent_range(&[]), None);
    }
}
