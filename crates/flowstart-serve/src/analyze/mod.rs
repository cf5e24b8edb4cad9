//! Comparison of startup schemes on real connections, from a server's qlog files.
//!
//! A server that draws the scheme of each connection at random makes an experiment, and its qlog files are the
//! measurements. [`log`] reads one, this module compares them. The unit is the connection, because the server draws
//! schemes for connections. If a connection has several answers of the same size, their mean counts. Resamples are
//! drawn from the connections of both schemes together, so the size of each group varies as in the experiment.
//! Connections of one client share its network, which the intervals ignore: with few clients they are too narrow.
//!
//! Who looks before the end, and may stop then, asks for intervals that hold at every look: [`plan`] says how many
//! connections an experiment needs, and [`analyze`] takes that number.
//!
//! A server's metrics say less. [`metrics`] makes the same structure from them, with brackets where a histogram is no
//! more precise.

pub mod exposition;
pub mod log;
pub mod metrics;
mod path;
pub mod paths;
pub mod plan;

use std::collections::BTreeMap;

use flowstart_statistics::{
    BootstrapEstimate, Interval, LEAST_EFFECT, LEVEL, Metric, RESAMPLES, RUNS_FOR_P99, at_every_look, bca, bca_mean,
    errors_at_one_look, holm, log_variance_of_mean, log_variance_of_quantile, mean, median, quantile,
};
use serde::Serialize;

use self::log::Connection;
use crate::metrics::{size_class, size_class_name};
use crate::scheme::of_label;

/// Up to this many networks are told apart, those of most connections; the others are one.
const NETWORKS_APART: usize = 20;
/// The name of the others, and of those whose network was not written.
const OTHER_NETWORKS: &str = "other networks";
/// Up to this many different sizes have a row each; more are grouped into classes.
const SIZES_APART: usize = 8;

/// Answers of one size with one scheme.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Size of the answers, or their class.
    pub size: String,
    /// The network of the clients; absent unless networks are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The scheme as the operator wrote it.
    pub scheme: String,
    /// Connections.
    pub n: usize,
    /// Answers on them.
    pub answers: usize,
    /// Time from a request until its answer was acknowledged, and packets declared lost on a connection over those
    /// sent.
    pub metrics: BTreeMap<&'static str, Metric>,
    /// Why startup ended, by connection.
    pub exit_reasons: BTreeMap<String, usize>,
    /// Results from a histogram; absent if every time is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<metrics::Histogram>,
    /// Beside the baseline.
    pub vs_baseline: Option<Comparison>,
}

/// A scheme beside the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The scheme it is compared with.
    pub baseline: String,
    /// Mean time of the baseline over that of the scheme; over 1 is faster.
    pub speedup: Option<f64>,
    /// 95 % interval.
    pub speedup_ci95: Option<[f64; 2]>,
    /// The same if it holds at every look; absent unless that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_at_every_look: Option<[f64; 2]>,
    /// The same of the median and of the 95th percentile, each for itself; absent from histograms.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quantiles: BTreeMap<&'static str, QuantileRatio>,
    /// Difference of the lost shares.
    pub loss_delta: Option<f64>,
    /// 95 % interval.
    pub loss_delta_ci95: Option<[f64; 2]>,
    /// The interval of the speed-up, that which holds at every look if it was asked for, excludes 1 after Holm's
    /// correction over all comparisons, and the effect is over 1 %.
    pub significant: bool,
    /// Differences of the shares of connections within each bound; absent if every time is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_delta: Option<Vec<metrics::ShareDelta>>,
}

/// A quantile of the baseline's times over that of the scheme's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuantileRatio {
    /// Over 1 is faster.
    pub speedup: f64,
    /// Its 95 % interval, which holds at every look if that was asked for. Asymptotic: absent for few connections.
    pub ci95: Option<[f64; 2]>,
}

/// The quantiles that are compared.
const QUANTILES: [(&str, f64); 2] = [("median", 0.5), ("p95", 0.95)];

/// What many connections say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Version of this structure.
    pub schema: u32,
    /// Connections with an answer.
    pub connections: usize,
    /// Connections without an answer, which do not count.
    pub without_answer: usize,
    /// Connections with an answer whose scheme was not drawn: their network, the kill switch or losses decided. They
    /// are in groups of their own and compared with nothing, for what decided may also decide how long they take.
    pub not_drawn: usize,
    /// By size, then scheme, the baseline first.
    pub groups: Vec<Group>,
}

/// A baseline that no connection had.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{wanted}`: no connection drew it; there are {there}")]
pub struct UnknownBaseline {
    /// What was asked for.
    pub wanted: String,
    /// The schemes of the connections.
    pub there: String,
}

/// One connection's answers of one size.
#[derive(Clone, Copy, Debug)]
struct Unit<'a> {
    millis: f64,
    answers: usize,
    connection: &'a Connection,
}

/// Fewest connections of a group for an interval that holds at every look, which is asymptotic.
pub const FEWEST_AT_EVERY_LOOK: usize = 50;

/// Compares the schemes of `connections` with `baseline`; without one, with the scheme that most connections had. With
/// a number of `planned` connections of both schemes, also at every look. `by_network` tells the clients' networks
/// apart.
///
/// # Errors
///
/// [`UnknownBaseline`] when no connection had the scheme.
pub fn analyze(
    connections: &[Connection],
    baseline: Option<&str>,
    planned: Option<u64>,
    by_network: bool,
) -> Result<Analysis, UnknownBaseline> {
    let answered: Vec<&Connection> = connections.iter().filter(|connection| !connection.answers.is_empty()).collect();
    let mut schemes: BTreeMap<&str, usize> = BTreeMap::new();
    for connection in &answered {
        *schemes.entry(&connection.scheme).or_insert(0) += 1;
    }
    let not_drawn = not_drawn(&schemes);
    let baseline = baseline_of(&schemes, baseline)?;
    let mut groups = Vec::new();
    let mut p_values = Vec::new();
    let parts = if by_network { by_networks(&answered) } else { vec![(None, answered.clone())] };
    let parts = parts.iter().flat_map(|(network, of_it)| by_size(of_it).into_iter().map(move |one| (network, one)));
    for (network, (size, by_scheme)) in parts {
        let base = by_scheme.get(baseline);
        let others = by_scheme.iter().filter(|(scheme, _)| **scheme != baseline);
        for (scheme, units) in base.map(|units| (&baseline, units)).into_iter().chain(others) {
            let mut group = Group { network: network.clone(), ..group(&size, scheme, units) };
            if *scheme != baseline
                && of_label(scheme).1
                && let Some(base) = base
            {
                // Each network has its part of the trial, so all of it counts.
                let both = [baseline, scheme].iter().filter_map(|scheme| schemes.get(*scheme)).sum::<usize>();
                let done = planned.map(|planned| both as f64 / planned as f64);
                let (comparison, p_value) = compare(baseline, base, units, done);
                group.vs_baseline = Some(comparison);
                p_values.push(p_value);
            }
            groups.push(group);
        }
    }
    mark_significant(&mut groups, &p_values);
    let without_answer = connections.len() - answered.len();
    Ok(Analysis { schema: 1, connections: answered.len(), without_answer, not_drawn, groups })
}

/// Marks the significant comparisons, from the p-values of all of them in their order.
fn mark_significant(groups: &mut [Group], p_values: &[Option<f64>]) {
    let compared = groups.iter_mut().filter_map(|group| group.vs_baseline.as_mut());
    for (comparison, rejected) in compared.zip(holm(p_values, 1.0 - LEVEL)) {
        let effect = comparison.speedup.map_or(0.0, |speedup| (speedup - 1.0).abs());
        comparison.significant = rejected && effect > LEAST_EFFECT;
    }
}

/// How many connections have a scheme that was not drawn.
fn not_drawn(schemes: &BTreeMap<&str, usize>) -> usize {
    schemes.iter().filter(|(scheme, _)| !of_label(scheme).1).map(|(_, count)| count).sum()
}

/// The baseline among the schemes and their numbers of connections: the requested scheme, or of those that were drawn
/// the one of most connections.
fn baseline_of<'a>(schemes: &BTreeMap<&'a str, usize>, wanted: Option<&'a str>) -> Result<&'a str, UnknownBaseline> {
    let drawn = schemes.iter().filter(|(scheme, _)| of_label(scheme).1);
    let most = drawn.max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name))).map(|(name, _)| *name);
    match wanted {
        None => Ok(most.unwrap_or_default()),
        Some(wanted) if (schemes.contains_key(wanted) && of_label(wanted).1) || schemes.is_empty() => Ok(wanted),
        Some(wanted) => {
            let drawn = schemes.keys().copied().filter(|scheme| of_label(scheme).1);
            let there = drawn.collect::<Vec<_>>().join(", ");
            Err(UnknownBaseline { wanted: wanted.into(), there })
        }
    }
}

/// The connections of each network, that of most connections first.
fn by_networks<'a>(connections: &[&'a Connection]) -> Vec<(Option<String>, Vec<&'a Connection>)> {
    let mut networks: BTreeMap<&str, Vec<&Connection>> = BTreeMap::new();
    for connection in connections {
        networks.entry(connection.network.as_deref().unwrap_or_default()).or_default().push(connection);
    }
    let mut others = networks.remove("").unwrap_or_default();
    let mut apart: Vec<(&str, Vec<&Connection>)> = networks.into_iter().collect();
    apart.sort_by_key(|(_, of_it)| std::cmp::Reverse(of_it.len()));
    others.extend(apart.drain(NETWORKS_APART.min(apart.len())..).flat_map(|(_, of_it)| of_it));
    let mut all: Vec<_> = apart.into_iter().map(|(network, of_it)| (Some(network.to_owned()), of_it)).collect();
    if !others.is_empty() {
        all.push((Some(OTHER_NETWORKS.to_owned()), others));
    }
    all
}

type ByScheme<'a> = BTreeMap<&'a str, Vec<Unit<'a>>>;

/// The units of each size, the smallest first.
fn by_size<'a>(connections: &[&'a Connection]) -> Vec<(String, ByScheme<'a>)> {
    let mut sizes: Vec<u64> =
        connections.iter().flat_map(|connection| &connection.answers).map(|answer| answer.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let apart = sizes.len() <= SIZES_APART;
    let place = |bytes: u64| if apart { bytes } else { size_class(bytes) as u64 };
    let mut by_size: BTreeMap<u64, ByScheme<'a>> = BTreeMap::new();
    for connection in connections {
        let mut of_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for answer in &connection.answers {
            of_size.entry(place(answer.bytes)).or_default().push(answer.millis);
        }
        for (size, times) in of_size {
            let Some(millis) = mean(&times) else { continue };
            let unit = Unit { millis, answers: times.len(), connection };
            by_size.entry(size).or_default().entry(&connection.scheme).or_default().push(unit);
        }
    }
    let name = |size: u64| {
        if apart {
            return flowstart_core::units::Bytes::new(size).to_string();
        }
        size_class_name(size as usize).to_owned()
    };
    by_size.into_iter().map(|(size, units)| (name(size), units)).collect()
}

fn group(size: &str, scheme: &str, units: &[Unit<'_>]) -> Group {
    let times: Vec<f64> = units.iter().map(|unit| unit.millis).collect();
    let lost: Vec<f64> = units.iter().filter_map(|unit| unit.connection.lost_share()).collect();
    let mut exit_reasons = BTreeMap::new();
    for unit in units {
        let reason = unit.connection.exit.clone().unwrap_or_else(|| "transfer-ended".into());
        *exit_reasons.entry(reason).or_insert(0) += 1;
    }
    Group {
        size: size.to_owned(),
        network: None,
        scheme: scheme.to_owned(),
        n: units.len(),
        answers: units.iter().map(|unit| unit.answers).sum(),
        metrics: BTreeMap::from([("fct_request_ms", metric(&times)), ("lost_share", metric(&lost))]),
        exit_reasons,
        histogram: None,
        vs_baseline: None,
    }
}

fn metric(values: &[f64]) -> Metric {
    Metric {
        mean: mean(values),
        median: median(values),
        p95: quantile(values, 0.95),
        p99: if values.len() >= RUNS_FOR_P99 { quantile(values, 0.99) } else { None },
        ci95: bca_mean(values, LEVEL, RESAMPLES, 1).as_ref().map(interval),
    }
}

fn interval(estimate: &BootstrapEstimate) -> [f64; 2] {
    [estimate.interval.low, estimate.interval.high]
}

/// The comparison, and the p-value of the speed-up. At every look, if `done` says which part of the planned connections
/// are there.
fn compare(baseline: &str, base: &[Unit<'_>], units: &[Unit<'_>], done: Option<f64>) -> (Comparison, Option<f64>) {
    let times = |units: &[Unit<'_>]| units.iter().map(|unit| unit.millis).collect::<Vec<_>>();
    let lost = |units: &[Unit<'_>]| units.iter().filter_map(|unit| unit.connection.lost_share()).collect::<Vec<_>>();
    let speedup = two_groups(&times(base), &times(units), |before, after| before / after);
    let loss = two_groups(&lost(base), &lost(units), |before, after| after - before);
    let looked = done.map(|done| of_every_look(&times(base), &times(units), done));
    let comparison = Comparison {
        baseline: baseline.to_owned(),
        speedup: mean(&times(base)).zip(mean(&times(units))).map(|(before, after)| before / after),
        speedup_ci95: speedup.as_ref().map(interval),
        speedup_at_every_look: looked.flatten().map(|(interval, _)| interval),
        quantiles: QUANTILES
            .into_iter()
            .filter_map(|(name, probability)| {
                Some((name, of_quantile(&times(base), &times(units), probability, done)?))
            })
            .collect(),
        loss_delta: mean(&lost(base)).zip(mean(&lost(units))).map(|(before, after)| after - before),
        loss_delta_ci95: loss.as_ref().map(interval),
        significant: false,
        shares_delta: None,
    };
    let p_value = match looked {
        Some(looked) => looked.map(|(_, p_value)| p_value),
        None => speedup.and_then(|estimate| estimate.p_value(1.0)),
    };
    (comparison, p_value)
}

/// The interval of the speed-up that holds at every look, and its p-value; `None` for few connections, and where times
/// do not scatter. Answers of one size grow in number as the trial does, so the part of the trial that is `done`
/// counts.
fn of_every_look(base: &[f64], other: &[f64], done: f64) -> Option<([f64; 2], f64)> {
    if base.len().min(other.len()) < FEWEST_AT_EVERY_LOOK {
        return None;
    }
    let part = |values: &[f64]| Some((mean(values)?.ln(), log_variance_of_mean(values)? / values.len() as f64));
    let ((before, error), (after, other_error)) = (part(base)?, part(other)?);
    if error == 0.0 || other_error == 0.0 {
        return None;
    }
    let (interval, p_value) = at_every_look(before - after, (error + other_error).sqrt(), done, 1.0, LEVEL)?;
    Some(([interval.low.exp(), interval.high.exp()], p_value))
}

/// The ratio of a quantile, and its interval: at every look, if the part of the trial that is `done` is known.
fn of_quantile(base: &[f64], other: &[f64], probability: f64, done: Option<f64>) -> Option<QuantileRatio> {
    let at = |values: &[f64]| quantile(values, probability).filter(|value| *value > 0.0);
    let ratio = (at(base)? / at(other)?).ln();
    let error = |values: &[f64]| Some(log_variance_of_quantile(values, probability)? / values.len() as f64);
    let interval = || {
        if base.len().min(other.len()) < FEWEST_AT_EVERY_LOOK {
            return None;
        }
        let error = (error(base)? + error(other)?).sqrt();
        match done {
            Some(done) => Some(at_every_look(ratio, error, done, 1.0, LEVEL)?.0),
            None => {
                let margin = errors_at_one_look(LEVEL)? * error;
                Some(Interval { low: ratio - margin, high: ratio + margin })
            }
        }
    };
    let ci95 = interval().map(|interval| [interval.low.exp(), interval.high.exp()]);
    Some(QuantileRatio { speedup: ratio.exp(), ci95 })
}

/// A statistic of the means of two groups, whose members were assigned at random. `None` when a group is so small that
/// a resample may lack it.
fn two_groups(base: &[f64], other: &[f64], of_means: impl Fn(f64, f64) -> f64) -> Option<BootstrapEstimate> {
    let rows: Vec<(bool, f64)> =
        base.iter().map(|value| (false, *value)).chain(other.iter().map(|value| (true, *value))).collect();
    let statistic = |rows: &[(bool, f64)]| {
        let mut sums = [(0.0, 0.0); 2];
        for (group, value) in rows {
            let (sum, count) = &mut sums[usize::from(*group)];
            *sum += value;
            *count += 1.0;
        }
        let [(before, a), (after, b)] = sums;
        (a > 0.0 && b > 0.0).then(|| of_means(before / a, after / b))
    };
    bca(&rows, statistic, LEVEL, RESAMPLES, 1)
}

#[cfg(test)]
mod tests {
    use super::log::Answer;
    use super::*;

    fn connection(scheme: &str, bytes: u64, millis: f64) -> Connection {
        Connection {
            id: None,
            scheme: scheme.into(),
            answers: vec![Answer { bytes, millis }],
            sent: 100,
            lost: u64::from(scheme == "fast"),
            ..Connection::default()
        }
    }

    /// Times that scatter by a tenth around `middle`.
    fn scattered(scheme: &str, middle: f64) -> Vec<Connection> {
        (0..40).map(|place| connection(scheme, 70_000, middle * (0.9 + 0.005 * f64::from(place)))).collect()
    }

    #[test]
    fn networks_are_told_apart_the_largest_first() {
        let of = |network: Option<&str>, scheme: &str, middle: f64| {
            let network = network.map(str::to_owned);
            let connections = scattered(scheme, middle).into_iter();
            connections.map(move |one| Connection { network: network.clone(), ..one }).collect::<Vec<_>>()
        };
        let near = "192.0.2.0/24";
        let far = "2001:db8:1::/48";
        let mut connections = [of(Some(near), "slow", 100.0), of(Some(near), "fast", 100.0)].concat();
        connections.extend([of(Some(far), "slow", 400.0), of(Some(far), "fast", 200.0)].concat());
        connections.extend(of(Some(far), "slow", 400.0));
        connections.extend(of(None, "slow", 100.0));
        let analysis = analyze(&connections, Some("slow"), None, true).unwrap();
        let told: Vec<_> = analysis.groups.iter().map(|one| (one.network.as_deref().unwrap(), &*one.scheme)).collect();
        let expected = [(far, "slow"), (far, "fast"), (near, "slow"), (near, "fast"), (OTHER_NETWORKS, "slow")];
        assert_eq!(told, expected);
        let significant = |place: usize| analysis.groups[place].vs_baseline.as_ref().unwrap().significant;
        assert!(significant(1) && !significant(3));
        let many: Vec<Connection> =
            (0..100).flat_map(|place| of(Some(&format!("10.0.{place}.0/24")), "slow", 100.0)).collect();
        let many = analyze(&many, None, None, true).unwrap();
        assert_eq!(many.groups.len(), NETWORKS_APART + 1);
        assert_eq!(many.groups.iter().map(|group| group.n).sum::<usize>(), 4_000);
    }

    #[test]
    fn quantiles_are_compared_also_at_every_look() {
        // All times are halved, so every quantile is.
        let times = |scheme: &str, factor: f64| -> Vec<Connection> {
            (0..400).map(|place| connection(scheme, 70_000, factor * (50.0 + f64::from(place * 7 % 400)))).collect()
        };
        let connections = [times("slow", 2.0), times("fast", 1.0)].concat();
        let of = |planned: Option<u64>| {
            let analysis = analyze(&connections, Some("slow"), planned, false).unwrap();
            analysis.groups[1].vs_baseline.clone().unwrap().quantiles
        };
        let (once, always) = (of(None), of(Some(800)));
        assert_eq!(once.keys().copied().collect::<Vec<_>>(), ["median", "p95"]);
        for (name, one) in &once {
            let ([low, high], [wide, wider]) = (one.ci95.unwrap(), always[name].ci95.unwrap());
            assert!((one.speedup - 2.0).abs() < 1e-9 && low < 2.0 && high > 2.0, "{name}: {one:?}");
            assert!(wide < low && wider > high, "{name}: {always:?}");
        }
        // The density at the median is 1/400 per ms, of 200 to 250 ms: 2 x 0.5 x sqrt(2 / 400) x 400 / 250 as a part.
        let [low, high] = once["median"].ci95.unwrap();
        assert!((high.ln() - low.ln() - 2.0 * 1.96 * 0.5 * (2.0_f64 / 400.0).sqrt() * 400.0 / 250.0).abs() < 0.05);
        let few = [scattered("slow", 200.0), scattered("fast", 100.0)].concat();
        let few = analyze(&few, Some("slow"), None, false).unwrap().groups[1].vs_baseline.clone().unwrap();
        assert!(few.quantiles.values().all(|one| one.ci95.is_none()), "{few:?}");
    }

    #[test]
    fn a_scheme_that_halves_the_time_is_found_and_its_price_too() {
        let connections = [scattered("slow", 200.0), scattered("fast", 100.0)].concat();
        let analysis = analyze(&connections, Some("slow"), None, false).unwrap();
        let fast = &analysis.groups[1];
        assert_eq!((fast.scheme.as_str(), fast.size.as_str(), fast.n), ("fast", "70KB", 40));
        let comparison = fast.vs_baseline.as_ref().unwrap();
        assert!((comparison.speedup.unwrap() - 2.0).abs() < 1e-9);
        let [low, high] = comparison.speedup_ci95.unwrap();
        assert!(low > 1.9 && low < 2.0 && high > 2.0 && high < 2.1, "{low} to {high}");
        assert!(comparison.significant);
        // One packet of a hundred more.
        assert!((comparison.loss_delta.unwrap() - 0.01).abs() < 1e-12);
    }

    #[test]
    fn connections_whose_scheme_was_not_drawn_are_compared_with_nothing() {
        // A lossy network falls back to the slow scheme: its connections say nothing of that scheme elsewhere.
        let fallen_back = scattered("slow (not drawn)", 2000.0);
        let connections = [scattered("slow", 200.0), scattered("fast", 200.0), fallen_back].concat();
        for baseline in [Some("slow"), None] {
            let analysis = analyze(&connections, baseline, None, false).unwrap();
            assert_eq!((analysis.connections, analysis.not_drawn), (120, 40));
            let of = |scheme: &str| analysis.groups.iter().find(|group| group.scheme == scheme).unwrap();
            assert!(of("slow (not drawn)").vs_baseline.is_none());
            let compared: Vec<&Comparison> =
                analysis.groups.iter().filter_map(|group| group.vs_baseline.as_ref()).collect();
            assert!(compared.len() == 1 && !compared[0].significant, "{compared:?}");
        }
        // Nor is anything compared with them.
        let error = analyze(&connections, Some("slow (not drawn)"), None, false).unwrap_err();
        assert_eq!(error.to_string(), "`slow (not drawn)`: no connection drew it; there are fast, slow");
    }

    #[test]
    fn schemes_that_do_not_differ_are_not_told_apart() {
        let connections = [scattered("a", 200.0), scattered("b", 200.0)].concat();
        let analysis = analyze(&connections, None, None, false).unwrap();
        // As many connections of each: the first by name is the baseline.
        assert_eq!(analysis.groups[0].scheme, "a");
        let comparison = analysis.groups[1].vs_baseline.as_ref().unwrap();
        assert!(!comparison.significant, "{comparison:?}");
    }

    #[test]
    fn answers_of_one_connection_count_once() {
        let mut one = connection("slow", 1000, 10.0);
        one.answers.push(Answer { bytes: 1000, millis: 30.0 });
        let silent = Connection { answers: Vec::new(), ..connection("slow", 0, 0.0) };
        let analysis = analyze(&[one, connection("slow", 1000, 40.0), silent], None, None, false).unwrap();
        let group = &analysis.groups[0];
        assert_eq!((group.n, group.answers, analysis.without_answer), (2, 3, 1));
        assert_eq!(group.metrics["fct_request_ms"].mean, Some(30.0));
    }

    #[test]
    fn many_sizes_are_put_into_classes() {
        let connections: Vec<_> = (1..=20).map(|size| connection("slow", size * 1000, 1.0)).collect();
        let names: Vec<_> =
            analyze(&connections, None, None, false).unwrap().groups.into_iter().map(|group| group.size).collect();
        assert_eq!(names, ["up to 10 KB", "10 to 100 KB"]);
    }

    #[test]
    fn a_baseline_that_nobody_had_is_refused() {
        let error = analyze(&[connection("slow", 1, 1.0)], Some("fast"), None, false).unwrap_err();
        assert_eq!(error.to_string(), "`fast`: no connection drew it; there are slow");
    }

    #[test]
    fn an_early_look_decides_later_than_a_single_one() {
        let far =
            [scattered("slow", 200.0), scattered("slow", 201.0), scattered("fast", 150.0), scattered("fast", 151.0)];
        let comparison = |connections: &[Connection], planned| {
            analyze(connections, Some("slow"), planned, false).unwrap().groups[1].vs_baseline.clone().unwrap()
        };
        let (once, always) = (comparison(&far.concat(), None), comparison(&far.concat(), Some(160)));
        assert!(once.speedup_at_every_look.is_none() && once.significant && always.significant);
        let ([low, high], [lower, higher]) = (once.speedup_ci95.unwrap(), always.speedup_at_every_look.unwrap());
        assert!(lower < low && higher > high && lower > 1.2, "{once:?} {always:?}");
        assert_eq!(always.speedup_ci95, once.speedup_ci95);
        // 3 % with a deviation of 6 % and 80 connections of each: 3.2 standard errors, of which one look needs 2.0, and
        // a look at a twentieth of what is planned 4.
        let near =
            [scattered("slow", 200.0), scattered("slow", 201.0), scattered("fast", 194.0), scattered("fast", 195.0)];
        let (once, always) = (comparison(&near.concat(), None), comparison(&near.concat(), Some(3200)));
        assert!(once.significant && !always.significant, "{once:?} {always:?}");
        // Few connections have no such interval, and decide nothing.
        let few = [scattered("slow", 200.0), scattered("fast", 100.0)].concat();
        let few = comparison(&few, Some(160));
        assert!(few.speedup_at_every_look.is_none() && !few.significant, "{few:?}");
    }
}
