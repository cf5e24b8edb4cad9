//! Whether two quantities move together.

use super::{count, finite, same};

/// Spearman's rank correlation, from -1 (one always falls as the other rises) to 1: the Pearson correlation of the
/// ranks, where equal values share the average of their ranks (Spearman 1904; Kendall 1948 for the ties).
///
/// `None` if the lengths differ, there are fewer than two pairs, a value is not finite, or all values of one sample are
/// equal.
#[must_use]
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    if x.len() != y.len() || !x.iter().chain(y).all(|value| value.is_finite()) {
        return None;
    }
    // Ranks have this mean with or without ties.
    let mean_rank = count(x.len() + 1) / 2.0;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (rank_x, rank_y) in ranks(x).iter().zip(ranks(y)) {
        let (from_mean_x, from_mean_y) = (rank_x - mean_rank, rank_y - mean_rank);
        xx += from_mean_x * from_mean_x;
        xy += from_mean_x * from_mean_y;
        yy += from_mean_y * from_mean_y;
    }
    // Ranks without spread give 0 / 0, which the last step turns into `None`.
    let correlation = xy / (xx.sqrt() * yy.sqrt());
    finite(correlation.clamp(-1.0, 1.0))
}

/// The rank of each value, from 1, in the order of `values`; equal values share the average of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    let mut smaller = 0;
    for equal in order.chunk_by(|&left, &right| same(values[left], values[right])) {
        // The group holds the ranks smaller + 1 to smaller + length.
        let average = count(smaller) + count(equal.len() + 1) / 2.0;
        for &index in equal {
            ranks[index] = average;
        }
        smaller += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_average_rank() {
        // Sorted: 1, 5, 5, 8. The two fives take ranks 2 and 3.
        assert_eq!(ranks(&[5.0, 1.0, 8.0, 5.0]), [2.5, 1.0, 4.0, 2.5]);
        // The two zeros are equal whatever their sign.
        assert_eq!(ranks(&[0.0, -0.0]), [1.5, 1.5]);
    }

    /// The example of the Wikipedia article "Spearman's rank correlation coefficient": IQ and hours of television.
    #[test]
    fn published_example_without_ties() {
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        // Squared rank differences sum to 194: 1 - 6 * 194 / (10 * (100 - 1)) = -29/165
        let correlation = spearman(&iq, &hours).unwrap();
        assert!((correlation + 29.0 / 165.0).abs() < 1e-15);
    }

    #[test]
    fn worked_example_with_ties() {
        // Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4, both with mean 2.5.
        // Products 2.25 + 0 + 0 + 2.25 = 4.5; squares 4.5 and 5; 4.5 / sqrt(4.5 * 5) = sqrt(0.9)
        let correlation = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((correlation - 0.9_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn only_the_order_of_values_matters() {
        let x = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6];
        let y = [2.0, 7.0, 1.0, 8.0, 2.8, 1.8];
        let cubes: Vec<f64> = x.iter().map(|x| x * x * x).collect();
        let negatives: Vec<f64> = x.iter().map(|x| -x).collect();
        assert_eq!(spearman(&cubes, &y), spearman(&x, &y));
        assert_eq!(spearman(&y, &x), spearman(&x, &y));
        assert_eq!(spearman(&negatives, &y), spearman(&x, &y).map(|rho| -rho));
        assert_eq!(spearman(&x, &cubes), Some(1.0));
        assert_eq!(spearman(&x, &negatives), Some(-1.0));
    }

    #[test]
    fn no_spread_no_correlation() {
        assert_eq!(spearman(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(spearman(&[1.0], &[3.0]), None);
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }
}
