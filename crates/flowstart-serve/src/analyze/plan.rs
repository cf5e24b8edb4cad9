//! How many connections an experiment needs, from what connections of the baseline took, or from a scatter of times.
//!
//! A mean, a median and a 95th percentile scatter differently, so each needs its own number. Who looks before the end
//! needs more at worst, and may end sooner. Several sizes share the allowed error, as in [`super::analyze`]. What must
//! not get worse is a guardrail: a number of connections shows changes of it from a size on.

use flowstart_statistics::{
    LEVEL, errors_at_every_look, errors_at_one_look, log_variance_of_mean, log_variance_of_quantile, mean,
    sample_standard_deviation, values_needed,
};
use serde::Serialize;

use super::log::Connection;
use super::{FEWEST_AT_EVERY_LOOK, Unit, UnknownBaseline, baseline_of, by_size};

/// What an experiment should find.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Question {
    /// How many times as fast the new scheme is.
    pub effect: f64,
    /// The part of the connections that get it.
    pub share: f64,
    /// The probability with which that is found.
    pub power: f64,
}

/// The connections that one figure of the times needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needed {
    /// The figure: `mean`, `p50` or `p95`.
    pub figure: &'static str,
    /// Connections if the result is looked at once, when all of them are there; `None`: the times do not say.
    pub at_one_look: Option<f64>,
    /// Connections with which the power is reached if the result is looked at as often as wanted. [`super::analyze`]
    /// has such an interval of the mean only.
    pub at_every_look: Option<f64>,
}

/// What an answer of one size needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfSize {
    /// The size, or the class of sizes; empty if the scatter was given.
    pub size: String,
    /// Connections that had such an answer.
    pub connections: usize,
    /// Their part of all connections. The plan leaves rare sizes out.
    pub part: f64,
    /// Connections that the experiment needs in all; only some of them have such an answer.
    pub needed: Vec<Needed>,
}

impl OfSize {
    /// Whether so few connections have such an answer that the experiment is not about it.
    pub fn is_rare(&self) -> bool {
        self.part < RARE
    }
}

/// What must not get worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Guardrail {
    /// What it is.
    pub name: &'static str,
    /// Its value with the baseline.
    pub now: f64,
    /// The smallest change that is found with the power of the question, at one look.
    pub found_from: f64,
}

/// A plan of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Version of this structure.
    pub schema: u32,
    /// The question.
    pub question: Question,
    /// The baseline; empty if the scatter was given.
    pub baseline: String,
    /// Connections that the plan rests on; 0 if the scatter was given.
    pub logged: usize,
    /// What each size needs.
    pub sizes: Vec<OfSize>,
    /// Connections that are enough for the means of all sizes that are not rare, at one look.
    pub at_one_look: Option<f64>,
    /// The same at every look; the guardrails are of as many.
    pub at_every_look: Option<f64>,
    /// What to watch.
    pub guardrails: Vec<Guardrail>,
}

/// The figures of times, and the quantile that each is.
const FIGURES: [(&str, Option<f64>); 3] = [("mean", None), ("p50", Some(0.5)), ("p95", Some(0.95))];
/// Sizes that a smaller part of the connections has are rare.
const RARE: f64 = 0.1;
/// Smallest effect that is planned for. [`super::analyze`] finds none below 1 %, and with this one chance seldom makes
/// less of it.
pub const SMALLEST_EFFECT: f64 = 1.015;

impl Question {
    /// The connections that a figure with this variance of its logarithm needs, if this part of them counts, and if
    /// there are so many comparisons, of which each has its part of the allowed error.
    fn needed(&self, figure: &'static str, variance: Option<f64>, part: f64, comparisons: usize) -> Needed {
        let level = 1.0 - (1.0 - LEVEL) / comparisons.max(1) as f64;
        let least = FEWEST_AT_EVERY_LOOK as f64 / self.share.min(1.0 - self.share);
        let all = |errors: Option<f64>, least: f64| {
            let counted = values_needed(variance?, self.effect, self.share, errors?, self.power)?;
            Some((counted.max(least) / part).ceil())
        };
        let at_every_look = all(errors_at_every_look(1.0, level), least).filter(|_| figure == FIGURES[0].0);
        Needed { figure, at_one_look: all(errors_at_one_look(level), 2.0), at_every_look }
    }

    /// The smallest change of a mean that is found with so many connections, whose values have this variance.
    fn found_from(&self, variance: f64, connections: f64) -> Option<f64> {
        // A factor of e needs the squared reach for each unit of variance.
        let squared = values_needed(PRECISE, std::f64::consts::E, self.share, errors_at_one_look(LEVEL)?, self.power)?;
        Some((squared / PRECISE * variance / connections).sqrt())
    }
}

/// So many that rounding to whole values does not count.
const PRECISE: f64 = 1e6;

/// The largest of the numbers of sizes that are not rare; `None` if one of them is not known.
fn enough(sizes: &[OfSize], of: fn(&Needed) -> Option<f64>) -> Option<f64> {
    let each = sizes.iter().filter(|size| !size.is_rare()).map(|size| of(&size.needed[0]));
    each.collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
}

/// The plan for times whose logarithm is normal with this standard deviation.
pub fn of_scatter(question: Question, deviation: f64) -> Plan {
    let variance = deviation * deviation;
    // p (1 - p) over the squared density of the normal distribution at the quantile: pi / 2, and 0.0475 / 0.10314^2.
    let variances = [variance.exp_m1(), std::f64::consts::FRAC_PI_2 * variance, 4.465 * variance];
    let needed =
        FIGURES.iter().zip(variances).map(|((figure, _), variance)| question.needed(figure, Some(variance), 1.0, 1));
    let sizes = vec![OfSize { size: String::new(), connections: 0, part: 1.0, needed: needed.collect() }];
    planned(question, String::new(), 0, sizes)
}

fn planned(question: Question, baseline: String, logged: usize, sizes: Vec<OfSize>) -> Plan {
    let at_one_look = enough(&sizes, |needed| needed.at_one_look);
    let at_every_look = enough(&sizes, |needed| needed.at_every_look);
    Plan { schema: 1, question, baseline, logged, sizes, at_one_look, at_every_look, guardrails: Vec::new() }
}

/// The plan for what these connections took with `baseline`; without one, with the scheme that most of them had.
///
/// # Errors
///
/// [`UnknownBaseline`] when no connection had the scheme.
pub fn of_connections(
    question: Question,
    connections: &[Connection],
    baseline: Option<&str>,
) -> Result<Plan, UnknownBaseline> {
    let mut schemes = std::collections::BTreeMap::new();
    for connection in connections {
        *schemes.entry(connection.scheme.as_str()).or_insert(0) += 1;
    }
    let baseline = baseline_of(&schemes, baseline)?;
    let all: Vec<&Connection> = connections.iter().filter(|connection| connection.scheme == baseline).collect();
    let by_size = by_size(&all);
    let comparisons = by_size.len();
    let of_size = |(size, by_scheme): (String, super::ByScheme<'_>)| {
        let units: &[Unit<'_>] = by_scheme.get(baseline).map_or(&[], |units| units);
        let times: Vec<f64> = units.iter().map(|unit| unit.millis).collect();
        let part = units.len() as f64 / all.len() as f64;
        let needed = FIGURES.map(|(figure, probability)| {
            let variance = match probability {
                None => log_variance_of_mean(&times),
                Some(probability) => log_variance_of_quantile(&times, probability),
            };
            question.needed(figure, variance.filter(|variance| *variance > 0.0), part, comparisons)
        });
        OfSize { size, connections: units.len(), part, needed: needed.to_vec() }
    };
    let sizes: Vec<OfSize> = by_size.into_iter().map(of_size).collect();
    let mut plan = planned(question, baseline.to_owned(), all.len(), sizes);
    let lost: Vec<f64> = all.iter().filter_map(|connection| connection.lost_share()).collect();
    // Where nothing was lost, nothing is known of how it would scatter.
    let scatter = sample_standard_deviation(&lost).filter(|deviation| *deviation > 0.0);
    if let (Some(now), Some(deviation), Some(connections)) = (mean(&lost), scatter, plan.at_every_look) {
        let found_from = question.found_from(deviation * deviation, connections);
        plan.guardrails.extend(found_from.map(|found_from| Guardrail { name: "lost_share", now, found_from }));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::log::Answer;
    use super::*;

    const QUESTION: Question = Question { effect: 1.1, share: 0.5, power: 0.8 };

    fn connection(millis: f64, lost: u64) -> Connection {
        Connection {
            scheme: "slow".into(),
            answers: vec![Answer { bytes: 70_000, millis }],
            sent: 100,
            lost,
            ..Connection::default()
        }
    }

    #[test]
    fn a_scatter_needs_connections_by_hand() {
        let plan = of_scatter(QUESTION, 0.5);
        // exp(0.25) - 1 = 0.284: (1.96 + 0.842)^2 / ln(1.1)^2 * 0.284 * 4 = 982; of the median 0.3927: 1358; of the
        // 95th percentile 1.116: 3858.
        let at_one: Vec<f64> = plan.sizes[0].needed.iter().map(|one| one.at_one_look.unwrap()).collect();
        for (number, expected) in at_one.iter().zip([982.0, 1358.0, 3858.0]) {
            assert!((number - expected).abs() < 3.0, "{at_one:?}");
        }
        // ((3.035 + 0.842) / (1.960 + 0.842))^2 = 1.915.
        let more = plan.sizes[0].needed[0].at_every_look.unwrap() / at_one[0];
        assert!((more - 1.915).abs() < 0.01, "{more}");
    }

    #[test]
    fn logs_say_what_an_experiment_needs_and_what_it_can_see() {
        // Every second connection has such an answer, with times from 100 to 200 ms.
        let mut connections: Vec<Connection> =
            (0..200).map(|place| connection(100.0 + 0.5 * f64::from(place), place as u64 % 3)).collect();
        for place in 0..200 {
            let other = vec![Answer { bytes: 1_000, millis: 50.0 + f64::from(place % 7) }];
            connections.push(Connection { answers: other, ..connection(1.0, 0) });
        }
        let plan = of_connections(QUESTION, &connections, None).unwrap();
        assert_eq!((plan.baseline.as_str(), plan.sizes.len(), plan.logged), ("slow", 2, 400));
        let large = &plan.sizes[1];
        assert_eq!((large.size.as_str(), large.connections, large.part), ("70KB", 200, 0.5));
        // Uniform from 100 to 200: a variance of 833 over 149.75^2 = 0.0373. Two sizes share 5 %, so an interval
        // reaches 2.241 errors: (2.241 + 0.842)^2 / 0.009084 * 0.0373 * 4 = 156, and twice as many, for half have such
        // an answer.
        let needed = large.needed[0].at_one_look.unwrap();
        assert!((needed - 312.0).abs() < 4.0, "{needed}");
        assert!(plan.at_one_look == Some(needed) && plan.at_every_look > plan.at_one_look, "{plan:?}");
        assert_eq!((large.needed[1].at_every_look, large.needed[1].at_one_look.is_some()), (None, true));
        let [lost] = plan.guardrails[..] else { panic!("{plan:?}") };
        assert!(lost.name == "lost_share" && (lost.now - 0.005).abs() < 1e-4, "{lost:?}");
        // (1.960 + 0.842)^2 * 4 = 31.4 times the variance of (0.0, 0.01, 0.02) in half of the connections, 5.8e-5, over
        // the connections.
        let expected = (31.4 * 5.8e-5 / plan.at_every_look.unwrap()).sqrt();
        assert!((lost.found_from / expected - 1.0).abs() < 0.05, "{lost:?} {expected}");
    }

    #[test]
    fn a_rare_size_plans_nothing_and_groups_are_large_enough() {
        let mut connections: Vec<Connection> =
            (0..200).map(|place| connection(100.0 + 0.01 * f64::from(place), 0)).collect();
        connections.push(Connection { answers: vec![Answer { bytes: 300, millis: 5.0 }], ..connection(1.0, 0) });
        let plan = of_connections(Question { share: 0.1, ..QUESTION }, &connections, None).unwrap();
        assert!(plan.sizes[0].is_rare() && !plan.sizes[1].is_rare());
        // Times scatter so little that two connections of each would do; an interval needs 50 in a tenth of them.
        assert!(plan.at_every_look.is_some_and(|number| (500.0..510.0).contains(&number)), "{plan:?}");
    }

    #[test]
    fn what_the_logs_do_not_say_is_unknown() {
        let same: Vec<Connection> = (0..50).map(|_| connection(100.0, 0)).collect();
        let plan = of_connections(QUESTION, &same, None).unwrap();
        assert_eq!((plan.sizes[0].needed[0].at_one_look, plan.at_every_look), (None, None));
        assert_eq!(plan.guardrails, []);
        assert!(of_connections(QUESTION, &same, Some("fast")).is_err());
    }
}
