//! How many digits a ratio needs.

/// The digits behind the point with which no ratio looks like 1 that is not 1: at least this many. Those that four
/// digits would not tell from 1 are 1 for every purpose, and more digits would only look as if they were not.
#[must_use]
pub fn digits_beside_one(ratios: &[f64], least: usize) -> usize {
    const MOST: usize = 4;
    let is_like_one = |ratio: &f64, digits: usize| format!("{ratio:.digits$}") == format!("{:.digits$}", 1.0);
    let others: Vec<f64> = ratios.iter().copied().filter(|ratio| !is_like_one(ratio, MOST)).collect();
    (least..MOST).find(|digits| !others.iter().any(|ratio| is_like_one(ratio, *digits))).unwrap_or(MOST.max(least))
}
