//! Drawing of cells: a Latin hypercube, and numbers as they are written.

use flowstart_core::rng::Substream;

/// A column of a Latin hypercube: one value in each of `count` equal parts of [0, 1), in random order (`McKay`, Beckman
/// and Conover, "A Comparison of Three Methods for Selecting Values of Input Variables", 1979). `role` names what the
/// values are for.
pub fn column(seed: u64, role: &str, count: usize) -> Vec<f64> {
    let mut rng = Substream::new(seed, role, 0);
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = (rng.uniform() * (last + 1) as f64) as usize;
        places.swap(last, other.min(last));
    }
    places.into_iter().map(|place| (place as f64 + rng.uniform()) / count.max(1) as f64).collect()
}

/// The value at `part` of a range by its logarithm.
pub fn between(least: f64, most: f64, part: f64) -> f64 {
    least * libm::pow(most / least, part)
}

/// The choice at `part` of all weight, and how far `part` is into it.
pub fn choice<T: Copy>(choices: &[(T, f64)], part: f64) -> Option<(T, f64)> {
    let all: f64 = choices.iter().map(|(_, weight)| weight).sum();
    let mut left = part * all;
    for (value, weight) in choices {
        if left < *weight {
            return Some((*value, left / weight));
        }
        left -= weight;
    }
    // What rounding left over is of the last one.
    choices.last().map(|(value, _)| (*value, 0.0))
}

/// A number with three significant digits.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_a_value_in_each_part() {
        for count in [1, 2, 7, 200] {
            let column = column(1, "rate", count);
            let mut parts: Vec<usize> = column.iter().map(|value| (value * count as f64) as usize).collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(column(1, "rate", 0), [0.0; 0]);
        assert_eq!(column(1, "rate", 50), column(1, "rate", 50));
        assert_ne!(column(1, "rate", 50), column(1, "rtt", 50));
        assert_ne!(column(1, "rate", 50), column(2, "rate", 50));
    }

    #[test]
    fn columns_do_not_rise_together() {
        let (a, b) = (column(1, "rate", 800), column(1, "rtt", 800));
        let correlation = flowstart_statistics::spearman(&a, &b).unwrap();
        assert!(correlation.abs() < 0.1, "{correlation}");
    }

    #[test]
    fn choices_have_their_weights() {
        let choices = [('a', 1.0), ('b', 3.0)];
        assert_eq!(choice(&choices, 0.0), Some(('a', 0.0)));
        assert_eq!(choice(&choices, 0.125), Some(('a', 0.5)));
        assert_eq!(choice(&choices, 0.25), Some(('b', 0.0)));
        assert_eq!(choice(&choices, 0.625), Some(('b', 0.5)));
        assert_eq!(choice(&choices, 1.0), Some(('b', 0.0)));
        assert_eq!(choice::<char>(&[], 0.5), None);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (value, written) in [(123.456, "123"), (0.123_456, "0.123"), (98_765.0, "98800"), (1.0, "1"), (9.999, "10")]
        {
            assert_eq!(rounded(value).to_string(), written);
        }
        assert_eq!(between(1.0, 100.0, 0.5).round(), 10.0);
    }
}
