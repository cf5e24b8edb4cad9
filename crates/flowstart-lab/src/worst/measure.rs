//! What can be bad about a scheme, and how bad it is in a setting.

use flowstart_statistics::{LEVEL, bca, mean, upper_t_quantile};
use serde::Serialize;

use crate::fleet::measured::Measured;

/// What can be bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The completion time over that of the fastest of the others.
    Regret,
    /// Bytes that others deliver less than beside the baseline, over the payload.
    Harm,
    /// Bytes that are sent twice beyond the baseline's, over the payload.
    Waste,
}

/// One repetition of two schemes: the baseline's, and the one in question.
type Pair = (f64, f64);

/// How bad a scheme is in a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Badness {
    /// The measure.
    pub value: f64,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// The same of the scheme alone: the mean completion time in milliseconds, or bytes over the payload.
    pub own: f64,
    /// The same of the scheme beside which it is bad.
    pub other: f64,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Regret, Self::Harm, Self::Waste];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regret => "regret",
            Self::Harm => "harm",
            Self::Waste => "waste",
        }
    }

    /// The value of a scheme that is as good as the others.
    pub const fn neutral(self) -> f64 {
        match self {
            Self::Regret => 1.0,
            Self::Harm | Self::Waste => 0.0,
        }
    }

    /// How bad the last of these schemes is, without an interval. `None` if the others' transfers fail. Infinite if
    /// only its own do.
    pub fn value(self, schemes: &[Measured], payload: f64) -> Option<f64> {
        let pairs = self.pairs(schemes, payload)?;
        self.of(&pairs)
    }

    /// How bad it surely is: the lower end of a 95 % interval (jackknife, Student's t). By the value alone, the worst
    /// of many settings would be one in which transfers scatter most.
    pub fn surely(self, schemes: &[Measured], payload: f64) -> Option<f64> {
        let pairs = self.pairs(schemes, payload)?;
        let value = self.of(&pairs)?;
        if value.is_infinite() {
            return Some(value);
        }
        let without = |left_out: usize| {
            let kept = pairs.iter().enumerate().filter(|(place, _)| *place != left_out);
            self.of(&kept.map(|(_, pair)| *pair).collect::<Vec<_>>())
        };
        let partial: Vec<f64> = (0..pairs.len()).map(without).collect::<Option<_>>()?;
        let middle = mean(&partial)?;
        let squares: f64 = partial.iter().map(|one| (one - middle).powi(2)).sum();
        let count = pairs.len() as f64;
        let errors = upper_t_quantile(count - 1.0, (1.0 - LEVEL) / 2.0)?;
        Some(value - errors * (squares * (count - 1.0) / count).sqrt())
    }

    /// The scheme beside which the last of these is bad, by its place.
    pub fn beside(self, schemes: &[Measured]) -> Option<usize> {
        let (_, others) = schemes.split_last()?;
        let times = others.iter().enumerate().filter_map(|(place, one)| Some((place, one.mean_fct_ms()?)));
        match self {
            Self::Regret => times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place),
            Self::Harm | Self::Waste => (!others.is_empty()).then_some(0),
        }
    }

    /// How bad the last of these schemes is beside another one, with its interval.
    pub fn badness(
        self,
        schemes: &[Measured],
        beside: usize,
        payload: f64,
        resamples: u32,
        seed: u64,
    ) -> Option<Badness> {
        let pairs = self.pairs_beside(schemes, beside, payload)?;
        let value = self.of(&pairs)?;
        let interval = bca(&pairs, |pairs| self.of(pairs), LEVEL, resamples, seed);
        let ci95 = interval.and_then(|estimate| estimate.interval_at(LEVEL)).map(|one| [one.low, one.high]);
        let (other, own): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        Some(Badness { value, ci95, own: mean(&own)?, other: mean(&other)? })
    }

    fn of(self, pairs: &[Pair]) -> Option<f64> {
        let (other, own): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        if own.iter().any(|own| own.is_infinite()) {
            return Some(f64::INFINITY);
        }
        let (other, own) = (mean(&other)?, mean(&own)?);
        Some(if self == Self::Regret { own / other } else { own - other })
    }

    /// The repetitions of the scheme beside which the last one is bad, and of the last one.
    fn pairs(self, schemes: &[Measured], payload: f64) -> Option<Vec<Pair>> {
        self.pairs_beside(schemes, self.beside(schemes)?, payload)
    }

    fn pairs_beside(self, schemes: &[Measured], beside: usize, payload: f64) -> Option<Vec<Pair>> {
        let (scheme, others) = schemes.split_last()?;
        let other = others.get(beside)?;
        let paired = |before: &[f64], after: &[f64]| before.iter().copied().zip(after.iter().copied()).collect();
        match self {
            Self::Regret => {
                let before: Vec<f64> = other.fct_ms.iter().copied().collect::<Option<_>>()?;
                let after: Vec<f64> = scheme.fct_ms.iter().map(|fct| fct.unwrap_or(f64::INFINITY)).collect();
                Some(paired(&before, &after))
            }
            Self::Harm => {
                let lost = |one: &Measured| -> Vec<f64> {
                    one.harm_mbit.iter().map(|mbit| mbit * 1e6 / 8.0 / payload).collect()
                };
                // Where there are no others, nobody loses anything.
                let pairs: Vec<Pair> = paired(&lost(other), &lost(scheme));
                Some(if pairs.is_empty() { vec![(0.0, 0.0); 2] } else { pairs })
            }
            Self::Waste => Some(paired(&other.inflation, &scheme.inflation)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(fct_ms: &[f64], inflation: f64, harm_mbit: Option<f64>) -> Measured {
        let reps = fct_ms.len();
        Measured {
            fct_ms: fct_ms.iter().map(|fct| Some(*fct).filter(|fct| *fct > 0.0)).collect(),
            inflation: vec![inflation; reps],
            harm_mbit: harm_mbit.map_or(Vec::new(), |mbit| vec![mbit; reps]),
            ..Measured::default()
        }
    }

    #[test]
    fn each_measure_compares_with_what_it_says() {
        let baseline = measured(&[100.0, 300.0], 0.1, Some(4.0));
        let rival = measured(&[100.0, 100.0], 0.5, Some(9.0));
        let scheme = measured(&[150.0, 150.0], 0.35, Some(12.0));
        let all = [baseline.clone(), rival, scheme];
        // The fastest takes 100 ms in the mean.
        assert_eq!(Measure::Regret.value(&all, 1e6), Some(1.5));
        // 8 Mbit more than beside the baseline are a megabyte, as much as the payload.
        assert_eq!(Measure::Harm.value(&all, 1e6), Some(1.0));
        assert!((Measure::Waste.value(&all, 1e6).unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(Measure::ALL.map(|measure| measure.beside(&all)), [Some(1), Some(0), Some(0)]);
        let told = Measure::Regret.badness(&all, 1, 1e6, 1_000, 1).unwrap();
        assert_eq!((told.own, told.other, told.ci95), (150.0, 100.0, Some([1.5, 1.5])));
    }

    #[test]
    fn what_scatters_is_not_surely_bad() {
        let baseline = measured(&[100.0, 100.0, 100.0], 0.0, None);
        let (steady, scattered) = (measured(&[150.0; 3], 0.0, None), measured(&[100.0, 100.0, 400.0], 0.0, None));
        let told = |scheme: &Measured| Measure::Regret.surely(&[baseline.clone(), scheme.clone()], 1e6).unwrap();
        assert_eq!(told(&steady), 1.5);
        // A mean of 200 with a standard error of 100; t of two degrees of freedom is 4.303: 2 - 4.303 * 1.
        assert!((told(&scattered) + 2.303).abs() < 1e-3, "{}", told(&scattered));
    }

    #[test]
    fn failures_and_nobody_else() {
        let (good, bad) = (measured(&[100.0, 100.0], 0.0, None), measured(&[100.0, -1.0], 0.0, None));
        assert_eq!(Measure::Regret.value(&[good.clone(), bad.clone()], 1e6), Some(f64::INFINITY));
        assert_eq!(Measure::Regret.value(&[bad, good.clone()], 1e6), None);
        assert_eq!(Measure::Harm.value(&[good.clone(), good], 1e6), Some(0.0));
    }
}
