//! How many digits ratios need.

/// The digits behind the point, at least `least`, with which no ratio looks like 1 that is not 1, and the smallest and
/// the largest do not look alike that differ. What four digits would not tell apart is the same for every purpose, and
/// more digits would only look as if it were not.
#[must_use]
pub fn digits_apart(ratios: &[f64], least: usize) -> usize {
    const MOST: usize = 4;
    let are_alike = |a: f64, b: f64, digits: usize| format!("{a:.digits$}") == format!("{b:.digits$}");
    let beside_one = ratios.iter().map(|ratio| [*ratio, 1.0]);
    let ends = [f64::min, f64::max].map(|end| ratios.iter().copied().reduce(end));
    let ends = ends[0].zip(ends[1]).map(|(low, high)| [low, high]);
    let apart: Vec<[f64; 2]> = beside_one.chain(ends).filter(|[a, b]| !are_alike(*a, *b, MOST)).collect();
    let tells_all = |digits: &usize| !apart.iter().any(|[a, b]| are_alike(*a, *b, *digits));
    (least..MOST).find(tells_all).unwrap_or(MOST.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_looks_different() {
        assert_eq!(digits_apart(&[1.5], 2), 2);
        assert_eq!(digits_apart(&[1.4, 1.5, 1.6], 2), 2);
        assert_eq!(digits_apart(&[1.4, 1.003, 1.97], 2), 3);
        // A narrow interval is not a number.
        assert_eq!(digits_apart(&[1.502, 1.5011, 1.5032], 2), 3);
        assert_eq!(digits_apart(&[1.502, 1.502, 1.502], 2), 2);
        assert_eq!(digits_apart(&[1.502, 1.502_000_1], 2), 2);
    }
}
