//! Numbers as people read them. What is undefined is an en dash.

use crate::Estimate;
use crate::digits::digits_apart;

/// Stands for a number that is undefined.
pub(crate) const UNDEFINED: &str = "–";

/// `None` for NaN and infinity.
pub(crate) fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}

/// How a quantity is written.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Milliseconds, bytes, packets and the like: three significant digits or whole numbers.
    Plain,
    /// A difference with its sign, at most one decimal.
    Signed,
    /// A factor: `×1.92`.
    Factor,
    /// A fraction as a percentage.
    Percent,
    /// A fraction from 0 to 1.
    Fraction,
}

impl Format {
    /// The number of decimals that suits a value of this size.
    fn decimals(self, value: f64) -> usize {
        let value = value.abs();
        match self {
            Self::Fraction => 2,
            Self::Factor => {
                if value < 9.995 {
                    2
                } else {
                    1
                }
            }
            Self::Percent => usize::from(value < 0.9995),
            Self::Signed => usize::from(value < 99.95 && value.fract() != 0.0),
            Self::Plain => {
                if value >= 99.95 || value.fract() == 0.0 {
                    0
                } else if value >= 9.995 {
                    1
                } else {
                    2
                }
            }
        }
    }

    fn write(self, value: f64, decimals: usize) -> String {
        match self {
            Self::Plain | Self::Fraction => grouped(value, decimals),
            Self::Signed => {
                let text = grouped(value, decimals);
                if text.starts_with('−') || text.chars().all(|c| c == '0' || c == '.') {
                    text
                } else {
                    format!("+{text}")
                }
            }
            Self::Factor => format!("×{}", grouped(value, decimals)),
            Self::Percent => format!("{}\u{202f}%", grouped(value * 100.0, decimals)),
        }
    }

    /// The value, or an en dash.
    pub fn show(self, value: Option<f64>) -> String {
        finite(value).map_or_else(|| UNDEFINED.to_owned(), |v| self.write(v, self.decimals(v)))
    }

    /// Mean and interval, both with the decimals that suit the mean; a factor has those that tell it and its ends from
    /// 1, and its ends from each other. The interval is empty when there is none.
    pub fn estimate(self, estimate: Estimate) -> (String, String) {
        let Some(mean) = finite(estimate.mean) else {
            return (UNDEFINED.to_owned(), String::new());
        };
        let ends = interval(estimate);
        let decimals = match self {
            Self::Factor => {
                let all: Vec<f64> = std::iter::once(mean).chain(ends.into_iter().flatten()).collect();
                digits_apart(&all, self.decimals(mean))
            }
            _ => self.decimals(mean),
        };
        let interval = ends.map_or_else(String::new, |[low, high]| {
            match self {
                // The unit once is enough.
                Self::Factor => {
                    format!("{} to {}", grouped(low, decimals), grouped(high, decimals))
                }
                Self::Percent => format!("{} to {}", grouped(low * 100.0, decimals), self.write(high, decimals)),
                _ => format!("{} to {}", self.write(low, decimals), self.write(high, decimals)),
            }
        });
        (self.write(mean, decimals), interval)
    }
}

/// The interval of an estimate when both ends are finite.
pub(crate) fn interval(estimate: Estimate) -> Option<[f64; 2]> {
    estimate.ci95.filter(|ends| ends.iter().all(|v| v.is_finite()))
}

/// Digits in groups of three with a thin space, and a real minus sign.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.chars().any(|c| c != '0' && c != '.') {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        // A number of four digits reads well without a gap.
        if i > 0 && (whole.len() - i) % 3 == 0 && whole.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_numbers() {
        assert_eq!(Format::Plain.show(Some(12345.6)), "12\u{202f}346");
        assert_eq!(Format::Plain.show(Some(1403.2)), "1403");
        assert_eq!(Format::Plain.show(Some(12.34)), "12.3");
        assert_eq!(Format::Plain.show(Some(-0.001)), "0.00");
        assert_eq!(Format::Signed.show(Some(-664.0)), "−664");
        assert_eq!(Format::Signed.show(Some(176.0)), "+176");
        assert_eq!(Format::Signed.show(Some(-3.52)), "−3.5");
        assert_eq!(Format::Signed.show(Some(16.0)), "+16");
        assert_eq!(Format::Signed.show(Some(0.0)), "0");
        assert_eq!(Format::Factor.show(Some(1.916)), "×1.92");
        assert_eq!(Format::Percent.show(Some(0.123)), "12.3\u{202f}%");
    }

    #[test]
    fn a_factor_and_its_ends_look_like_1_only_if_they_are() {
        let estimate = |mean, ends| Format::Factor.estimate(Estimate { mean: Some(mean), ci95: Some(ends) });
        assert_eq!(estimate(1.4, [1.003, 1.97]), ("×1.400".to_owned(), "1.003 to 1.970".to_owned()));
        assert_eq!(estimate(1.0, [1.0, 1.0]), ("×1.00".to_owned(), "1.00 to 1.00".to_owned()));
        // One that nothing tells from 1 does not hide the others.
        assert_eq!(estimate(0.999_45, [0.998_9, 0.999_99]), ("×0.999".to_owned(), "0.999 to 1.000".to_owned()));
    }

    #[test]
    fn undefined_is_an_en_dash() {
        for value in [None, Some(f64::NAN), Some(f64::INFINITY)] {
            assert_eq!(Format::Plain.show(value), "–");
        }
        let estimate = Estimate { mean: Some(2.0), ci95: Some([f64::NAN, 3.0]) };
        assert_eq!(Format::Factor.estimate(estimate), ("×2.00".to_owned(), String::new()));
    }
}
