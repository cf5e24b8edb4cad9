//! How many connections an experiment needs, from what connections of the baseline took, or from a scatter of times.
//!
//! A mean, a median and a 95th percentile scatter differently, so each needs its own number. Who looks before the end
//! needs more at worst, and may end sooner. What must not get worse is a guardrail: a number of connections shows
//! changes of it from a size on.

use flowstart_statistics::{
    LEVEL, errors_at_every_look, errors_at_one_look, log_variance_of_mean, log_variance_of_quantile, mean,
    sample_standard_deviation, values_needed,
};
use serde::Serialize;

use super::log::Connection;
use super::{Unit, UnknownBaseline, baseline_of, by_size};

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
    /// Connections at most if it is looked at as often as wanted.
    pub at_every_look: Option<f64>,
}

/// What an answer of one size needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfSize {
    /// The size, or the class of sizes; empty if the scatter was given.
    pub size: String,
    /// Connections that had such an answer.
    pub connections: usize,
    /// Connections that the experiment needs in all; only some of them have such an answer.
    pub needed: Vec<Needed>,
}

/// What must not get worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Guardrail {
    /// What it is.
    pub name: &'static str,
    /// Its value with the baseline.
    pub now: f64,
    /// The smallest change that is found with the power of the question.
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
    /// What each size needs.
    pub sizes: Vec<OfSize>,
    /// Connections that are enough for the mean of every size, at every look; the guardrails are of as many.
    pub connections: Option<f64>,
    /// What to watch.
    pub guardrails: Vec<Guardrail>,
}

/// The figures of times, and the quantile that each is.
const FIGURES: [(&str, Option<f64>); 3] = [("mean", None), ("p50", Some(0.5)), ("p95", Some(0.95))];

impl Question {
    /// The connections that a figure with this variance of its logarithm needs, if this part of them counts.
    fn needed(&self, figure: &'static str, variance: Option<f64>, part: f64) -> Needed {
        let all = |errors: Option<f64>| {
            let counted = values_needed(variance?, self.effect, self.share, errors?, self.power)?;
            Some((counted / part).ceil())
        };
        Needed {
            figure,
            at_one_look: all(errors_at_one_look(LEVEL)),
            at_every_look: all(errors_at_every_look(1.0, LEVEL)),
        }
    }

    /// The smallest change of a mean that is found with so many connections, whose values have this variance.
    fn found_from(&self, variance: f64, connections: f64) -> Option<f64> {
        // What one connection needs for a factor of e is the squared reach.
        let reach = values_needed(1e6, std::f64::consts::E, self.share, errors_at_every_look(1.0, LEVEL)?, self.power)?;
        Some((reach / 1e6 * variance / connections).sqrt())
    }
}

/// The plan for times whose logarithm is normal with this standard deviation.
pub fn of_scatter(question: Question, deviation: f64) -> Plan {
    let variance = deviation * deviation;
    // p (1 - p) over the squared density of the normal distribution at the quantile: pi / 2, and 0.0475 / 0.10314^2.
    let needed = FIGURES.map(|(figure, quantile)| {
        let of_figure = match quantile {
            None => variance.exp_m1(),
            Some(0.5) => std::f64::consts::FRAC_PI_2 * variance,
            Some(_) => 4.465 * variance,
        };
        question.needed(figure, Some(of_figure), 1.0)
    });
    let connections = needed[0].at_every_look;
    let sizes = vec![OfSize { size: String::new(), connections: 0, needed: needed.to_vec() }];
    Plan { schema: 1, question, baseline: String::new(), sizes, connections, guardrails: Vec::new() }
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
    let of_size = |(size, by_scheme): (String, super::ByScheme<'_>)| {
        let units: &[Unit<'_>] = by_scheme.get(baseline).map_or(&[], |units| units);
        let times: Vec<f64> = units.iter().map(|unit| unit.millis).collect();
        let part = units.len() as f64 / all.len() as f64;
        let needed = FIGURES.map(|(figure, probability)| {
            let variance = match probability {
                None => log_variance_of_mean(&times),
                Some(probability) => log_variance_of_quantile(&times, probability),
            };
            question.needed(figure, variance.filter(|variance| *variance > 0.0), part)
        });
        OfSize { size, connections: units.len(), needed: needed.to_vec() }
    };
    let sizes: Vec<OfSize> = by_size(&all).into_iter().map(of_size).collect();
    let each: Option<Vec<f64>> = sizes.iter().map(|size| size.needed[0].at_every_look).collect();
    let enough = each.and_then(|each| each.into_iter().max_by(f64::total_cmp));
    let guardrails = enough.map_or(Vec::new(), |enough| guardrails(&question, &all, enough));
    Ok(Plan { schema: 1, question, baseline: baseline.to_owned(), sizes, connections: enough, guardrails })
}

fn guardrails(question: &Question, all: &[&Connection], connections: f64) -> Vec<Guardrail> {
    let lost: Vec<f64> = all.iter().filter_map(|connection| connection.lost_share()).collect();
    let without = all.iter().filter(|connection| connection.answers.is_empty()).count() as f64 / all.len() as f64;
    // What was seen in none of n may still be as frequent as one in n.
    let likely = without.max(1.0 / all.len() as f64);
    let lost = mean(&lost).zip(sample_standard_deviation(&lost)).map(|(now, deviation)| (now, deviation * deviation));
    [("lost_share", lost), ("without_answer", Some((without, likely * (1.0 - likely))))]
        .into_iter()
        .filter_map(|(name, known)| {
            let (now, variance) = known?;
            Some(Guardrail { name, now, found_from: question.found_from(variance, connections)? })
        })
        .collect()
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
        // exp(0.25) - 1 = 0.284: (1.96 + 0.842)^2 / ln(1.1)^2 * 0.284 * 4 = 982; of the median 0.3927: 1358; of the 95th
        // percentile 1.116: 3858.
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
        assert_eq!((plan.baseline.as_str(), plan.sizes.len()), ("slow", 2));
        let large = &plan.sizes[1];
        assert_eq!((large.size.as_str(), large.connections), ("70KB", 200));
        // Uniform from 100 to 200: a variance of 833 over 149.75^2 = 0.0373; 7.849 / 0.009084 * 0.0373 * 4 = 129, and
        // twice as many, for half have such an answer.
        let needed = large.needed[0].at_one_look.unwrap();
        assert!((needed - 258.0).abs() < 4.0, "{needed}");
        let [lost, without] = plan.guardrails[..] else { panic!("{plan:?}") };
        assert_eq!((lost.name, without.name), ("lost_share", "without_answer"));
        assert!((lost.now - 0.005).abs() < 1e-4 && without.now == 0.0, "{lost:?} {without:?}");
        // (3.035 + 0.842)^2 * 4 = 60.1 times the variance of (0.0, 0.01, 0.02) in half of the connections, 5.8e-5, over
        // 494 connections, is 0.0027 squared.
        assert!((lost.found_from - 0.0027).abs() < 3e-4, "{lost:?} {:?}", plan.connections);
    }

    #[test]
    fn what_the_logs_do_not_say_is_unknown() {
        let same: Vec<Connection> = (0..50).map(|_| connection(100.0, 0)).collect();
        let plan = of_connections(QUESTION, &same, None).unwrap();
        assert_eq!((plan.sizes[0].needed[0].at_one_look, plan.connections), (None, None));
        assert_eq!(plan.guardrails, []);
        assert!(of_connections(QUESTION, &same, Some("fast")).is_err());
    }
}
