//! Ticks of an axis of ratios, on which 1 means no difference.

/// A domain with some room at both ends.
pub(super) fn padded(lowest: f64, highest: f64) -> [f64; 2] {
    let room = (highest / lowest).powf(0.05).max(1.01);
    [lowest / room, highest * room]
}

/// Round values in a domain around 1, about `count` of them.
pub(super) fn ticks([low, high]: [f64; 2], count: f64) -> Vec<f64> {
    if high / low > 3.0 {
        let all =
            [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0];
        let inside = || all.into_iter().filter(|tick| (low..=high).contains(tick));
        // Half of them where there are many.
        let few: Vec<f64> = inside().collect();
        return if (few.len() as f64) <= count + 2.0 {
            few
        } else {
            inside().filter(|tick| ![0.3, 0.7, 1.5, 3.0, 7.0].contains(tick)).collect()
        };
    }
    let rough = (high - low) / count;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * decade).find(|step| *step >= rough).unwrap_or(rough);
    let first = ((low - 1.0) / step).ceil() as i64;
    let last = ((high - 1.0) / step).floor() as i64;
    (first..=last).map(|k| 1.0 + k as f64 * step).collect()
}

/// The format of ticks: as many decimals as their step has, so that no two read the same. Far apart they have as many
/// digits as each needs.
pub(super) fn digits_of(ticks: &[f64]) -> String {
    let steps = || ticks.windows(2).map(|pair| pair[1] - pair[0]);
    let (step, longest) = (steps().fold(f64::INFINITY, f64::min), steps().fold(0.0, f64::max));
    if !step.is_finite() || step >= 0.0999 || longest > step * 1.5 {
        return ".3~g".to_owned();
    }
    // A step of 1, 2 or 5 of its decade.
    format!(".{}f", (-step.log10() - 1e-9).ceil() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_digits_of_their_step() {
        let format = |domain| digits_of(&ticks(domain, 7.0));
        // Steps of 0.002, of 0.01 and 0.05, and ticks that are far apart.
        assert_eq!(format([0.994, 1.007]), ".3f");
        assert_eq!(format([0.97, 1.03]), ".2f");
        assert_eq!(format([0.9, 1.2]), ".2f");
        assert_eq!((format([0.5, 1.5]), format([0.3, 20.0])), (".3~g".to_owned(), ".3~g".to_owned()));
        assert_eq!(digits_of(&[1.0]), ".3~g");
    }
}
