//! Comparison of startup schemes from a server's metrics.
//!
//! The unit is the connection, as in its qlog files: `flowstart serve` counts each connection once per class of sizes,
//! with the mean time of its answers. Sums and sums of squares give means and their intervals (Student's t with Welch's
//! degrees of freedom; of a ratio, of its logarithm by the delta method). They hold for many connections; with a few
//! dozen and long tails, the bootstrap over qlog files is better. A histogram does not say where a time lies within a
//! bucket, so quantiles are brackets. The shares below its bounds have Wilson's intervals, and their differences
//! Newcombe's (1998, method 10).
//!
//! Counters go on for as long as a server runs. With several scrapes of a server, the difference between the first and
//! the last counts; with a single one, everything since the server's start. Different servers are added.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowstart_statistics::{Interval, LEVEL, Metric, upper_t_quantile, welch};
use serde::Serialize;

use super::exposition::{self, Sample, start_of};
use super::{Analysis, Comparison, Group, UnknownBaseline, baseline_of, mark_significant, not_drawn};
use crate::metrics::{SIZE_CLASSES, names, size_class_name};
use crate::scheme::of_label;

/// Two-sided 95 % of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Relative rounding error of sums.
const ROUNDING: f64 = 1e-9;

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// A line is malformed, or states something impossible.
    #[error("{path}:{line}: {cause}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1 on.
        line: usize,
        /// What is wrong, with the metric's name.
        cause: String,
    },
    /// It cannot be read, something is missing, or does not fit the rest.
    #[error("{path}: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// What.
        cause: String,
    },
}

/// Connections of one scheme with answers of one class of sizes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Arm {
    /// Connections below each bound, the bounds in order.
    below: Vec<(f64, f64)>,
    count: f64,
    seconds: f64,
    seconds_squared: f64,
    lost: f64,
    lost_squared: f64,
    answers: f64,
    exits: BTreeMap<String, f64>,
}

/// What a server had counted at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    path: PathBuf,
    server: String,
    answered: f64,
    unanswered: f64,
    arms: BTreeMap<(usize, String), Arm>,
}

/// What a histogram says of the times of connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    /// The bounds in milliseconds between which the median lies; the upper one is null beyond the last.
    pub median: [Option<f64>; 2],
    /// The same of the 95th percentile.
    pub p95: [Option<f64>; 2],
    /// Connections within each bound that tells connections apart.
    pub shares: Vec<Share>,
}

/// Connections that took at most this long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Milliseconds.
    pub within_ms: f64,
    /// Their share.
    pub share: f64,
    /// 95 % interval.
    pub ci95: [f64; 2],
}

/// A share of the scheme less that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareDelta {
    /// Milliseconds.
    pub within_ms: f64,
    /// The difference.
    pub delta: f64,
    /// 95 % interval.
    pub ci95: [f64; 2],
}

/// Reads a scrape.
///
/// # Errors
///
/// [`MetricsError`] with the file, the line and the metric.
pub fn read(path: &Path) -> Result<Scrape, MetricsError> {
    let unusable = |cause| MetricsError::File { path: path.to_owned(), cause };
    let bytes = flowstart_files::read(path, exposition::LONGEST).map_err(|error| unusable(error.to_string()))?;
    parse(&String::from_utf8(bytes).map_err(|error| unusable(error.to_string()))?, path)
}

/// Reads a scrape; `path` is for messages.
///
/// # Errors
///
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<Scrape, MetricsError> {
    let failed = |line, cause| MetricsError::Line { path: path.to_owned(), line, cause };
    let unfit = |cause| MetricsError::File { path: path.to_owned(), cause };
    let mut scrape = Scrape { path: path.to_owned(), ..Scrape::default() };
    let mut known = false;
    for sample in exposition::samples(text) {
        let sample = sample.map_err(|error| failed(error.line, error.cause))?;
        known |= scrape.take(&sample).map_err(|cause| failed(sample.line, format!("{}: {cause}", sample.name)))?;
    }
    if !known {
        let cause =
            format!("no {}; use what the address of `flowstart serve --metrics` answers to /metrics", names::SERVER);
        return Err(unfit(cause));
    }
    for ((size, scheme), arm) in &mut scrape.arms {
        let place = |cause: String| {
            unfit(format!("{} of {}, {}: {cause}", names::FCT, start_of(scheme), size_class_name(*size)))
        };
        arm.check().map_err(place)?;
    }
    Ok(scrape)
}

impl Scrape {
    /// Takes a sample; returns whether it identifies the server.
    fn take(&mut self, sample: &Sample) -> Result<bool, String> {
        let label = |name: &str| {
            sample.labels.get(name).map(String::as_str).ok_or_else(|| format!("label `{name}` is missing"))
        };
        let bucket = sample.name.strip_suffix("_bucket") == Some(names::FCT);
        let (sum, count) = (sample.name.strip_suffix("_sum"), sample.name.strip_suffix("_count"));
        let known = [
            names::FCT_SQUARED,
            names::LOST,
            names::LOST_SQUARED,
            names::ANSWERS,
            names::EXITS,
            names::ANSWERED,
            names::UNANSWERED,
            names::SERVER,
        ];
        if !bucket && sum != Some(names::FCT) && count != Some(names::FCT) && !known.contains(&sample.name.as_str()) {
            return Ok(false);
        }
        if !(sample.value >= 0.0 && sample.value.is_finite()) {
            return Err(format!("{} cannot be; use a number from 0 on", sample.value));
        }
        match sample.name.as_str() {
            names::SERVER => {
                label("instance")?.clone_into(&mut self.server);
                return Ok(true);
            }
            names::ANSWERED | names::UNANSWERED => {
                let answered = sample.name == names::ANSWERED;
                *(if answered { &mut self.answered } else { &mut self.unanswered }) = whole(sample.value)?;
                return Ok(false);
            }
            _ => {}
        }
        let size = label("size")?;
        let size = (0..SIZE_CLASSES)
            .find(|place| size_class_name(*place) == size)
            .ok_or_else(|| format!("label size: `{}` is no class of sizes", start_of(size)))?;
        let arm = self.arms.entry((size, label("scheme")?.to_owned())).or_default();
        match sample.name.as_str() {
            names::FCT_SQUARED => arm.seconds_squared = sample.value,
            names::LOST => arm.lost = sample.value,
            names::LOST_SQUARED => arm.lost_squared = sample.value,
            names::ANSWERS => arm.answers = whole(sample.value)?,
            names::EXITS => drop(arm.exits.insert(label("reason")?.to_owned(), whole(sample.value)?)),
            _ if bucket => {
                let bound = label("le")?;
                let bound: f64 = bound.parse().map_err(|_| format!("label le: `{}` is no number", start_of(bound)))?;
                if bound.is_nan() || arm.below.last().is_some_and(|(last, _)| *last >= bound) {
                    return Err(format!("label le: {bound} is not above the bound before it"));
                }
                arm.below.push((bound, whole(sample.value)?));
            }
            _ if count.is_some() => arm.count = whole(sample.value)?,
            _ => arm.seconds = sample.value,
        }
        Ok(false)
    }

    /// Adds what another server counted, or with -1 takes away what this one had counted before.
    fn add(&mut self, other: &Self, sign: f64) -> Result<(), MetricsError> {
        let unfit = |cause| MetricsError::File { path: other.path.clone(), cause };
        self.answered += sign * other.answered;
        self.unanswered += sign * other.unanswered;
        for (key, theirs) in &other.arms {
            let place = || format!("{} of {}, {}", names::FCT, start_of(&key.1), size_class_name(key.0));
            let arm = self.arms.entry(key.clone()).or_insert_with(|| Arm {
                below: theirs.below.iter().map(|(bound, _)| (*bound, 0.0)).collect(),
                ..Arm::default()
            });
            if !arm.below.iter().map(|(bound, _)| bound).eq(theirs.below.iter().map(|(bound, _)| bound)) {
                return Err(unfit(format!("{}: its bounds are not those of the other files", place())));
            }
            arm.below.iter_mut().zip(&theirs.below).for_each(|((_, count), (_, more))| *count += sign * more);
            arm.count += sign * theirs.count;
            arm.seconds += sign * theirs.seconds;
            arm.seconds_squared += sign * theirs.seconds_squared;
            arm.lost += sign * theirs.lost;
            arm.lost_squared += sign * theirs.lost_squared;
            arm.answers += sign * theirs.answers;
            for (reason, count) in &theirs.exits {
                *arm.exits.entry(reason.clone()).or_insert(0.0) += sign * count;
            }
            let whole =
                arm.exits.values().chain([&arm.count, &arm.answers]).chain(arm.below.iter().map(|(_, count)| count));
            if whole.into_iter().any(|count| *count < 0.0) {
                return Err(unfit(format!("{}: a counter is lower in a later scrape of the same server", place())));
            }
        }
        Ok(())
    }

    fn connections(&self) -> f64 {
        self.answered + self.unanswered
    }
}

/// A count.
fn whole(value: f64) -> Result<f64, String> {
    if value.fract() == 0.0 && value < 9e15 { Ok(value) } else { Err(format!("{value} is no whole number")) }
}

/// Mean and its variance, of so many values with this sum and sum of squares.
fn mean_of(count: f64, sum: f64, squares: f64) -> (Option<f64>, Option<f64>) {
    let mean = (count > 0.0).then(|| sum / count);
    let deviations = mean.map(|mean| (squares - sum * mean).max(0.0));
    // The difference of two sums that agree to the last digits is rounding.
    let deviations = deviations.map(|left| if left <= ROUNDING * squares { 0.0 } else { left });
    (mean, deviations.filter(|_| count > 1.0).map(|deviations| deviations / (count - 1.0) / count))
}

impl Arm {
    /// What cannot be.
    fn check(&self) -> Result<(), String> {
        let mut lower = 0.0;
        for (bound, count) in &self.below {
            if *count < lower {
                return Err(format!("{count} up to {bound} s are fewer than {lower} before"));
            }
            lower = *count;
        }
        match self.below.last() {
            Some((bound, count)) if bound.is_infinite() && *count == self.count => {}
            _ => return Err(format!("the bucket +Inf does not have the {} of _count", self.count)),
        }
        // No sum of squares is smaller than of equal values (Cauchy and Schwarz).
        let impossible = |sum: f64, squares: f64| sum * sum > squares * self.count * (1.0 + ROUNDING);
        if impossible(self.seconds, self.seconds_squared) {
            return Err(format!("{} is too small for _sum and _count", names::FCT_SQUARED));
        }
        if impossible(self.lost, self.lost_squared) || self.lost > self.count {
            return Err(format!("{} and {} do not fit to each other", names::LOST, names::LOST_SQUARED));
        }
        Ok(())
    }

    fn seconds(&self) -> (Option<f64>, Option<f64>) {
        mean_of(self.count, self.seconds, self.seconds_squared)
    }

    fn lost(&self) -> (Option<f64>, Option<f64>) {
        mean_of(self.count, self.lost, self.lost_squared)
    }

    fn metric(&self, (mean, variance): (Option<f64>, Option<f64>), unit: f64, most: f64) -> Metric {
        let margin = variance
            .filter(|variance| *variance > 0.0)
            .and_then(|variance| Some(upper_t_quantile(self.count - 1.0, (1.0 - LEVEL) / 2.0)? * variance.sqrt()));
        let ci95 =
            mean.zip(margin).map(|(mean, margin)| [(mean - margin).max(0.0) * unit, (mean + margin).min(most) * unit]);
        Metric { mean: mean.map(|mean| mean * unit), median: None, p95: None, p99: None, ci95 }
    }

    /// The bounds in milliseconds of the bucket in which the value of this rank lies.
    fn bracket(&self, quantile: f64) -> [Option<f64>; 2] {
        let rank = (quantile * self.count).ceil().max(1.0);
        let place = self.below.partition_point(|(_, count)| *count < rank);
        let millis =
            |place: usize| self.below.get(place).map(|(bound, _)| bound * 1e3).filter(|bound| bound.is_finite());
        [place.checked_sub(1).map_or(Some(0.0), millis), millis(place)]
    }

    /// Share, and interval, of those within the bound at `place`.
    fn share(&self, place: usize) -> Option<Share> {
        let (bound, count) = self.below.get(place).filter(|(bound, _)| bound.is_finite())?;
        Some(Share { within_ms: bound * 1e3, share: count / self.count, ci95: wilson(*count, self.count) })
    }

    fn histogram(&self) -> Histogram {
        let tells = |share: &Share| share.share > 0.0 && share.share < 1.0;
        let shares = (0..self.below.len()).filter_map(|place| self.share(place)).filter(tells).collect();
        Histogram { median: self.bracket(0.5), p95: self.bracket(0.95), shares }
    }
}

/// Wilson's interval of a share.
fn wilson(part: f64, of: f64) -> [f64; 2] {
    let share = part / of;
    let middle = share + Z * Z / (2.0 * of);
    let margin = Z * (share * (1.0 - share) / of + Z * Z / (4.0 * of * of)).sqrt();
    let scale = 1.0 + Z * Z / of;
    [((middle - margin) / scale).max(0.0), ((middle + margin) / scale).min(1.0)]
}

/// The scheme beside the baseline, and the p-value of the speed-up.
fn compare(baseline: &str, base: &Arm, arm: &Arm) -> (Comparison, Option<f64>) {
    let interval = |interval: Interval| [interval.low, interval.high];
    let ((before, before_variance), (after, after_variance)) = (base.seconds(), arm.seconds());
    let ratio = before.zip(after).filter(|(before, after)| *before > 0.0 && *after > 0.0);
    // The variance of a logarithm is the relative variance of its argument.
    let speedup =
        ratio.zip(before_variance.zip(after_variance)).and_then(|((before, after), (of_before, of_after))| {
            let parts = [(of_before / (before * before), base.count), (of_after / (after * after), arm.count)];
            // Without any scatter no conclusion is possible.
            if parts.iter().all(|(variance, _)| *variance == 0.0) {
                None
            } else {
                welch((before / after).ln(), parts, LEVEL)
            }
        });
    let ((lost_before, of_before), (lost_after, of_after)) = (base.lost(), arm.lost());
    let loss_delta = lost_before.zip(lost_after).map(|(before, after)| after - before);
    let loss_interval = loss_delta.zip(of_before.zip(of_after)).and_then(|(delta, (of_before, of_after))| {
        Some(welch(delta, [(of_before, base.count), (of_after, arm.count)], LEVEL)?.0)
    });
    let deltas = (0..base.below.len()).filter_map(|place| {
        let (base, arm) = (base.share(place)?, arm.share(place)?);
        let delta = arm.share - base.share;
        let below = (arm.share - arm.ci95[0]).hypot(base.ci95[1] - base.share);
        let above = (arm.ci95[1] - arm.share).hypot(base.share - base.ci95[0]);
        let apart = base.share != arm.share || (base.share > 0.0 && base.share < 1.0);
        apart.then_some(ShareDelta { within_ms: arm.within_ms, delta, ci95: [delta - below, delta + above] })
    });
    let comparison = Comparison {
        baseline: baseline.to_owned(),
        speedup: ratio.map(|(before, after)| before / after),
        speedup_ci95: speedup.map(|(log, _)| [log.low.exp(), log.high.exp()]),
        speedup_at_every_look: None,
        quantiles: BTreeMap::new(),
        loss_delta,
        loss_delta_ci95: loss_interval.map(interval),
        significant: false,
        shares_delta: Some(deltas.collect()),
    };
    (comparison, speedup.map(|(_, p_value)| p_value))
}

/// Why startup ended, with counts above 0.
fn exits(arm: &Arm) -> impl Iterator<Item = (String, usize)> {
    arm.exits.iter().filter(|(_, count)| **count > 0.0).map(|(reason, count)| (reason.clone(), *count as usize))
}

/// What happened between the first and the last scrape of each server, or since its start; all servers together.
///
/// # Errors
///
/// [`MetricsError`] for scrapes that do not fit each other.
pub fn total(scrapes: &[Scrape]) -> Result<Scrape, MetricsError> {
    let mut servers: BTreeMap<&str, Vec<&Scrape>> = BTreeMap::new();
    for scrape in scrapes {
        servers.entry(&scrape.server).or_default().push(scrape);
    }
    let mut total = Scrape::default();
    for mut of_server in servers.into_values() {
        of_server.sort_by(|a, b| a.connections().total_cmp(&b.connections()));
        let [first, .., last] = of_server.as_slice() else {
            of_server.iter().try_for_each(|only| total.add(only, 1.0))?;
            continue;
        };
        let mut between = (*last).clone();
        between.add(first, -1.0)?;
        total.add(&between, 1.0)?;
    }
    Ok(total)
}

/// Compares the schemes with `baseline`; without one, with the scheme that most connections had.
///
/// # Errors
///
/// [`UnknownBaseline`] when no connection had the scheme.
pub fn analyze(total: &Scrape, baseline: Option<&str>) -> Result<Analysis, UnknownBaseline> {
    let arms = || total.arms.iter().filter(|(_, arm)| arm.count > 0.0);
    let mut schemes: BTreeMap<&str, usize> = BTreeMap::new();
    for ((_, scheme), arm) in arms() {
        *schemes.entry(scheme).or_insert(0) += arm.count as usize;
    }
    let not_drawn = not_drawn(&schemes);
    let baseline = baseline_of(&schemes, baseline)?;
    let (mut groups, mut p_values) = (Vec::new(), Vec::new());
    for size in 0..SIZE_CLASSES {
        let base = total.arms.get(&(size, baseline.to_owned())).filter(|arm| arm.count > 0.0);
        let of_size =
            || arms().filter(|((place, _), _)| *place == size).map(|((_, scheme), arm)| (scheme.as_str(), arm));
        let others = of_size().filter(|(scheme, _)| *scheme != baseline);
        for (scheme, arm) in base.map(|arm| (baseline, arm)).into_iter().chain(others) {
            let vs_baseline = base.filter(|_| scheme != baseline && of_label(scheme).1).map(|base| {
                let (comparison, p_value) = compare(baseline, base, arm);
                p_values.push(p_value);
                comparison
            });
            groups.push(Group {
                size: size_class_name(size).to_owned(),
                network: None,
                scheme: scheme.to_owned(),
                n: arm.count as usize,
                answers: arm.answers as usize,
                metrics: BTreeMap::from([
                    ("fct_request_ms", arm.metric(arm.seconds(), 1e3, f64::INFINITY)),
                    ("lost_share", arm.metric(arm.lost(), 1.0, 1.0)),
                ]),
                exit_reasons: exits(arm).collect(),
                histogram: Some(arm.histogram()),
                vs_baseline,
            });
        }
    }
    mark_significant(&mut groups, &p_values);
    let (connections, without_answer) = (total.answered as usize, total.unanswered as usize);
    Ok(Analysis { schema: 1, connections, without_answer, not_drawn, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: &str = "10 to 100 KB";

    /// Metrics of a server whose connections with each scheme took so many seconds.
    fn text(instance: &str, arms: &[(&str, &[f64])]) -> String {
        let answered: usize = arms.iter().map(|(_, times)| times.len()).sum();
        let mut text = format!(
            "{}{{instance=\"{instance}\"}} 1\n{} {answered}\n{} 2\n",
            names::SERVER,
            names::ANSWERED,
            names::UNANSWERED
        );
        for (scheme, times) in arms {
            let labels = format!("scheme=\"{scheme}\",size=\"{SIZE}\"");
            for bound in ["0.1", "0.2", "0.4", "+Inf"] {
                let below = times.iter().filter(|time| **time <= bound.parse().unwrap()).count();
                text += &format!("{}_bucket{{{labels},le=\"{bound}\"}} {below}\n", names::FCT);
            }
            let (sum, squares): (f64, f64) = (times.iter().sum(), times.iter().map(|time| time * time).sum());
            text +=
                &format!("{}_sum{{{labels}}} {sum}\n{}_count{{{labels}}} {}\n", names::FCT, names::FCT, times.len());
            text += &format!(
                "{}{{{labels}}} {squares}\n{}{{{labels}}} {}\n",
                names::FCT_SQUARED,
                names::ANSWERS,
                times.len()
            );
            text += &format!("{}{{{labels},reason=\"loss\"}} {}\n", names::EXITS, times.len());
        }
        text + "# EOF\n"
    }

    fn scrape(text: &str) -> Result<Scrape, MetricsError> {
        parse(text, Path::new("m.prom"))
    }

    /// 40 times that scatter by a tenth around `middle`.
    fn scattered(middle: f64) -> Vec<f64> {
        (0..40).map(|place| middle * (0.9 + 0.005 * f64::from(place))).collect()
    }

    #[test]
    fn means_and_intervals_are_those_of_the_values() {
        let (slow, fast) = (scattered(0.2), scattered(0.1));
        let total = total(&[scrape(&text("a", &[("slow", &slow), ("fast", &fast)])).unwrap()]).unwrap();
        let analysis = analyze(&total, Some("slow")).unwrap();
        assert_eq!((analysis.connections, analysis.without_answer, analysis.groups.len()), (80, 2, 2));
        let fct = &analysis.groups[0].metrics["fct_request_ms"];
        // The deviation of 40 equidistant values is 1 ms * sqrt(40 * 41 / 12) = 11.69 ms; t of 39 degrees is 2.0227.
        let margin = 2.0227 * 11.690_4 / 40_f64.sqrt();
        let [low, high] = fct.ci95.unwrap();
        assert!((fct.mean.unwrap() - 199.5).abs() < 1e-6, "{fct:?}");
        assert!((low - (199.5 - margin)).abs() < 1e-3 && (high - (199.5 + margin)).abs() < 1e-3, "{low} {high}");
        let group = &analysis.groups[1];
        assert_eq!((group.scheme.as_str(), group.size.as_str(), group.n, group.answers), ("fast", SIZE, 40, 40));
        assert_eq!(group.exit_reasons, BTreeMap::from([("loss".to_owned(), 40)]));
        let comparison = group.vs_baseline.as_ref().unwrap();
        let [low, high] = comparison.speedup_ci95.unwrap();
        // Relative error 0.0586 / sqrt(40) of each mean, so 0.0131 of the logarithm; t of 78 degrees is 1.991.
        assert!((comparison.speedup.unwrap() - 2.0).abs() < 1e-9);
        assert!((low - 2.0 * (-0.02609_f64).exp()).abs() < 1e-3 && (high - 2.0 * 0.02609_f64.exp()).abs() < 1e-3);
        assert!(comparison.significant);
    }

    #[test]
    fn a_histogram_brackets_quantiles_and_compares_shares() {
        let (slow, fast) = (scattered(0.2), scattered(0.1));
        let total = scrape(&text("a", &[("slow", &slow), ("fast", &fast)])).unwrap();
        let analysis = analyze(&total, Some("slow")).unwrap();
        let slow = analysis.groups[0].histogram.as_ref().unwrap();
        // 21 of 40 values are at most 200 ms: 180, 181, ... 200.
        assert_eq!((slow.median, slow.p95), ([Some(100.0), Some(200.0)], [Some(200.0), Some(400.0)]));
        let share = slow.shares[0];
        assert_eq!((slow.shares.len(), share.within_ms, share.share), (1, 200.0, 0.525));
        // Wilson: (0.525 + 0.04802 -+ 1.95996 * sqrt(0.006234 + 0.0006002)) / 1.09604
        assert!((share.ci95[0] - 0.3750).abs() < 1e-3 && (share.ci95[1] - 0.6706).abs() < 1e-3, "{share:?}");
        let deltas = analysis.groups[1].vs_baseline.as_ref().unwrap().shares_delta.clone().unwrap();
        let at = deltas.iter().find(|delta| delta.within_ms == 200.0).unwrap();
        assert!((at.delta - 0.475).abs() < 1e-9);
        // Newcombe: 0.475 - hypot(1 - 0.9124, 0.6706 - 0.525), 0.475 + hypot(0, 0.525 - 0.3750)
        assert!((at.ci95[0] - 0.3051).abs() < 1e-3 && (at.ci95[1] - 0.625).abs() < 1e-3, "{at:?}");
    }

    #[test]
    fn of_one_server_the_difference_counts_and_servers_are_added() {
        let (early, late) = (scattered(0.3), [scattered(0.3), scattered(0.1)].concat());
        let scrapes = [("a", &late), ("a", &early), ("b", &early)];
        let scrapes: Vec<_> = scrapes.map(|(server, times)| scrape(&text(server, &[("slow", times)])).unwrap()).into();
        let mean = |scrapes: &[Scrape]| {
            let analysis = analyze(&total(scrapes).unwrap(), None).unwrap();
            (analysis.connections, analysis.groups[0].metrics["fct_request_ms"].mean.unwrap())
        };
        let expect = |(connections, mean): (usize, f64), of: usize, millis: f64| {
            assert!(connections == of && (mean - millis).abs() < 1e-6, "{connections} {mean}");
        };
        // In any order: the connections between them took 100 ms less a quarter.
        expect(mean(&scrapes[..2]), 40, 99.75);
        expect(mean(&scrapes), 80, 199.5);
        expect(mean(&scrapes[2..]), 40, 299.25);
        let mut changed = scrape(&text("a", &[("slow", &early), ("fast", &[0.1; 50])])).unwrap();
        let error = total(&[changed.clone(), scrapes[0].clone()]).unwrap_err().to_string();
        assert!(error.contains("slow, 10 to 100 KB") || error.contains("fast, 10 to 100 KB"), "{error}");
        changed.arms.values_mut().for_each(|arm| arm.below[0].0 = 0.05);
        changed.server = "c".into();
        let error = total(&[changed, scrapes[0].clone()]).unwrap_err().to_string();
        assert!(error.contains("its bounds are not those of the other files"), "{error}");
    }

    #[test]
    fn schemes_that_do_not_differ_are_not_told_apart() {
        let total = scrape(&text("a", &[("a", &scattered(0.2)), ("b", &scattered(0.2))])).unwrap();
        let analysis = analyze(&total, None).unwrap();
        assert!(!analysis.groups[1].vs_baseline.as_ref().unwrap().significant);
        assert!(analyze(&total, Some("c")).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let good = text("a", &[("slow", &scattered(0.2))]);
        let refused = [
            ("_sum{", "_sum{x", "m.prom:8: "),
            ("le=\"0.2\"} 21", "le=\"0.2\"} 41", "40 up to 0.4 s are fewer than 41 before"),
            (
                "le=\"0.2\"",
                "le=\"0.05\"",
                "m.prom:5: flowstart_connection_fct_seconds_bucket: label le: 0.05 is not above",
            ),
            (
                "_count{scheme=\"slow\",size=\"10 to 100 KB\"} 40",
                "_count{scheme=\"slow\",size=\"10 to 100 KB\"} 39",
                "+Inf",
            ),
            (
                "le=\"0.4\"} 40",
                "le=\"0.4\"} 39.5",
                "m.prom:6: flowstart_connection_fct_seconds_bucket: 39.5 is no whole number",
            ),
            ("le=\"0.4\"} 40", "le=\"0.4\"} -1", "-1 cannot be"),
            ("size=\"10 to 100 KB\"", "size=\"big\"", "`big` is no class of sizes"),
            ("scheme=\"slow\",", "", "label `scheme` is missing"),
            ("flowstart_server_info", "other_info", "m.prom: no flowstart_server_info"),
        ];
        for (from, to, message) in refused {
            let error = scrape(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(message), "{to}: {error}");
        }
        let squares = good.lines().find(|line| line.starts_with(names::FCT_SQUARED)).unwrap();
        let less = format!("{} 0.1", squares.rsplit_once(' ').unwrap().0);
        let error = scrape(&good.replace(squares, &less)).unwrap_err().to_string();
        assert!(error.contains("too small for _sum and _count"), "{error}");
    }
}
