//! What a server's metrics say of the paths to its clients: three histograms, each by itself.
//!
//! The histograms may be another server's, if they have these names: smallest RTTs in seconds, highest rates in bytes
//! per second with the label `by` (`link`: the link limited them; `sender`: the link is faster), and payloads in bytes.
//! Samples of several servers in one text are added.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use super::exposition::{self, Sample, start_of};
pub use super::metrics::MetricsError;
use crate::metrics::{BY_LINK, path_names as names};

/// Most bounds of a histogram.
const MOST_BOUNDS: usize = 200;
/// Bounds of RTTs that a path may have, in seconds: those of a link.
const RTTS: RangeInclusive<f64> = 1e-6..=100.0;
/// Bounds of rates in bytes per second: 1 kbit/s to 10 Tbit/s, those of a link.
const RATES: RangeInclusive<f64> = 125.0..=1.25e12;
/// Bounds of payloads in bytes.
const SIZES: RangeInclusive<f64> = 1.0..=1e15;
/// Most series of a histogram, as of servers: each takes memory of several times its text.
const MOST_SERIES: usize = 10_000;

/// Connections between two bounds of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Their value: the geometric mean of the bounds. Of the first and the last bucket it is the bound that there is.
    pub value: f64,
    /// Their number, above 0.
    pub count: f64,
}

/// The distributions.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths {
    /// Smallest RTTs in seconds.
    pub rtts: Vec<Bucket>,
    /// Rates of links, in bytes per second.
    pub rates: Vec<Bucket>,
    /// Payloads in bytes.
    pub sizes: Vec<Bucket>,
    /// The part of the connections whose path was known.
    pub known: f64,
}

impl Bucket {
    /// How many connections these have.
    pub fn sum(buckets: &[Self]) -> f64 {
        buckets.iter().map(|bucket| bucket.count).sum()
    }
}

/// Reads metrics from a file.
///
/// # Errors
///
/// [`MetricsError`] with the file, the line and the metric.
pub fn read(path: &Path) -> Result<Paths, MetricsError> {
    let unusable = |cause| MetricsError::File { path: path.to_owned(), cause };
    let bytes = flowstart_files::read(path, exposition::LONGEST).map_err(|error| unusable(error.to_string()))?;
    parse(&bytes, path)
}

/// Reads metrics; `path` is for messages.
///
/// # Errors
///
/// As [`read`].
pub fn parse(text: &[u8], path: &Path) -> Result<Paths, MetricsError> {
    let file = |cause| MetricsError::File { path: path.to_owned(), cause };
    let text = std::str::from_utf8(text).map_err(|error| file(error.to_string()))?;
    let line = |line, cause| MetricsError::Line { path: path.to_owned(), line, cause };
    let of_link = |sample: &Sample| sample.labels.get("by").is_some_and(|by| by == BY_LINK);
    let kinds = [(names::MIN_RTT, RTTS), (names::RATE, RATES), (names::SIZE, SIZES)];
    let mut histograms = kinds.map(|(name, allowed)| Histogram::of(name, allowed));
    let mut known = 0.0;
    for sample in exposition::samples(text) {
        let sample = sample.map_err(|error| line(error.line, error.cause))?;
        if sample.name == names::KNOWN {
            known += sample.value;
        }
        let base = sample.name.strip_suffix("_bucket").unwrap_or_default();
        let counts = base != names::RATE || of_link(&sample);
        if let Some(histogram) = histograms.iter_mut().find(|histogram| counts && histogram.name == base) {
            let (number, name) = (sample.line, histogram.name);
            histogram.take(sample).map_err(|cause| line(number, format!("{name}: {cause}")))?;
        }
    }
    let [rtts, rates, sizes] = histograms.map(|histogram| {
        let name = histogram.name;
        histogram.buckets().map_err(|cause| file(format!("{name}: {cause}")))
    });
    let (rtts, rates, sizes) = (rtts?, rates?, sizes?);
    let connections = Bucket::sum(&rtts);
    if !(0.0..=connections).contains(&known) {
        let cause = format!("{}: {known} of {connections} connections cannot be", names::KNOWN);
        return Err(file(cause));
    }
    Ok(Paths { rtts, rates, sizes, known: known / connections })
}

/// A histogram under way.
struct Histogram {
    name: &'static str,
    /// Its bounds, but for the last.
    allowed: RangeInclusive<f64>,
    /// Of each series its last bound, and the connections up to there.
    series: BTreeMap<Vec<(String, String)>, (f64, f64)>,
    /// Connections of all series up to a bound, above the one before.
    between: BTreeMap<Bound, f64>,
}

impl Histogram {
    const fn of(name: &'static str, allowed: RangeInclusive<f64>) -> Self {
        Self { name, allowed, series: BTreeMap::new(), between: BTreeMap::new() }
    }

    fn take(&mut self, mut sample: Sample) -> Result<(), String> {
        let bound = sample.labels.remove("le").ok_or("label `le` is missing")?;
        let is_allowed = |bound: &f64| *bound == f64::INFINITY || self.allowed.contains(bound);
        let bound = bound.parse().ok().filter(is_allowed).ok_or_else(|| {
            format!("label le: allowed are {:e} to {:e}, and +Inf", self.allowed.start(), self.allowed.end())
        })?;
        let labels = sample.labels.into_iter().collect();
        let (last, below) = self.series.entry(labels).or_insert((0.0, 0.0));
        if bound <= *last {
            return Err(format!("label le: {bound} is not above the bound before it"));
        }
        if !(sample.value >= *below && sample.value < 9e15) {
            return Err(format!("{} up to {bound} cannot follow {below} before", sample.value));
        }
        *self.between.entry(Bound(bound)).or_insert(0.0) += sample.value - *below;
        (*last, *below) = (bound, sample.value);
        if self.between.len() > MOST_BOUNDS {
            return Err(format!("allowed are {MOST_BOUNDS} bounds"));
        }
        if self.series.len() > MOST_SERIES {
            return Err(format!("allowed are {MOST_SERIES} series; add those of several servers up before"));
        }
        Ok(())
    }

    fn buckets(self) -> Result<Vec<Bucket>, String> {
        if let Some((labels, _)) = self.series.iter().find(|(_, (last, _))| last.is_finite()) {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}={}", start_of(value))).collect();
            return Err(format!("{{{}}} has no bucket le=\"+Inf\"", labels.join(",")));
        }
        let mut buckets = Vec::new();
        let mut low: Option<f64> = None;
        for (Bound(high), count) in self.between {
            let value = match low {
                // Rounding must not lead out of the bucket, nor the product beyond what a number can be.
                Some(low) if high.is_finite() => (low.sqrt() * high.sqrt()).clamp(low, high),
                Some(low) => low,
                None => high,
            };
            if count > 0.0 && value.is_finite() {
                buckets.push(Bucket { value, count });
            }
            low = Some(high);
        }
        if buckets.is_empty() {
            return Err("counts no connection; it is needed, from `flowstart serve --metrics` or another server".into());
        }
        Ok(buckets)
    }
}

/// A bound of a histogram; they have an order.
#[derive(Clone, Copy, Debug)]
struct Bound(f64);

impl PartialEq for Bound {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        # TYPE flowstart_connection_min_rtt_seconds histogram\n\
        flowstart_connection_min_rtt_seconds_bucket{le=\"0.01\"} 1\n\
        flowstart_connection_min_rtt_seconds_bucket{le=\"0.04\"} 4\n\
        flowstart_connection_min_rtt_seconds_bucket{le=\"+Inf\"} 5\n\
        flowstart_connection_delivery_rate_bytes_per_second_bucket{le=\"1e6\",by=\"link\"} 2\n\
        flowstart_connection_delivery_rate_bytes_per_second_bucket{le=\"+Inf\",by=\"link\"} 2\n\
        flowstart_connection_delivery_rate_bytes_per_second_bucket{le=\"1e6\",by=\"sender\"} 3\n\
        flowstart_connection_delivery_rate_bytes_per_second_bucket{le=\"+Inf\",by=\"sender\"} 3\n\
        flowstart_connection_payload_bytes_bucket{le=\"1000\",instance=\"a\"} 2\n\
        flowstart_connection_payload_bytes_bucket{le=\"+Inf\",instance=\"a\"} 2\n\
        flowstart_connection_payload_bytes_bucket{le=\"1000\",instance=\"b\"} 2\n\
        flowstart_connection_payload_bytes_bucket{le=\"+Inf\",instance=\"b\"} 3\n\
        flowstart_connections_known_path_total 2\n\
        # EOF\n";

    fn parsed(text: &str) -> Result<Paths, MetricsError> {
        parse(text.as_bytes(), Path::new("a.prom"))
    }

    #[test]
    fn three_distributions_are_read() {
        let bucket = |value: f64, count: f64| Bucket { value, count };
        let paths = parsed(TEXT).unwrap();
        // Between 10 and 40 ms the geometric mean is 20 ms; beyond 40 ms only 40 ms is known.
        let micros: Vec<_> = paths.rtts.iter().map(|one| ((one.value * 1e6).round(), one.count)).collect();
        assert_eq!(micros, [(10_000.0, 1.0), (20_000.0, 3.0), (40_000.0, 1.0)]);
        assert_eq!(paths.rates, [bucket(1e6, 2.0)]);
        assert_eq!(paths.sizes, [bucket(1000.0, 4.0), bucket(1000.0, 1.0)]);
        assert_eq!(paths.known, 0.4);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let replaced = |from: &str, to: &str| parsed(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
        for (from, to, expected) in [
            ("le=\"0.04\"} 4", "le=\"0.04\"} 0", "a.prom:3: "),
            ("le=\"0.04\"", "le=\"0.004\"", "0.004 is not above the bound before it"),
            ("le=\"0.04\"", "le=\"many\"", "allowed are 1e-6 to 1e2, and +Inf"),
            ("le=\"0.04\"", "le=\"1e-290\"", "allowed are 1e-6 to 1e2, and +Inf"),
            ("le=\"1e6\"", "le=\"1e13\"", "allowed are 1.25e2 to 1.25e12, and +Inf"),
            ("le=\"0.04\"} 4", "le=\"0.04\"} NaN", "NaN up to 0.04"),
            ("known_path_total 2", "known_path_total 20", "20 of 5 connections"),
            ("le=\"+Inf\",by=\"link\"", "le=\"2e6\",by=\"link\"", "{by=link} has no bucket le=\"+Inf\""),
        ] {
            let told = replaced(from, to);
            assert!(told.contains(expected), "{expected}: {told}");
        }
        let without = TEXT.replace("payload_bytes", "other");
        let told = parsed(&without).unwrap_err().to_string();
        assert!(told.contains("flowstart_connection_payload_bytes: counts no connection"), "{told}");
        let many: String = (1..=MOST_BOUNDS + 1)
            .map(|bound| format!("flowstart_connection_min_rtt_seconds_bucket{{le=\"{}\"}} 1\n", bound as f64 / 10.0))
            .collect();
        assert!(parsed(&(many + "# EOF\n")).unwrap_err().to_string().contains("allowed are 200 bounds"));
        let many: String = (0..=MOST_SERIES)
            .map(|server| format!("flowstart_connection_min_rtt_seconds_bucket{{le=\"+Inf\",a=\"{server}\"}} 1\n"))
            .collect();
        assert!(parsed(&(many + "# EOF\n")).unwrap_err().to_string().contains("allowed are 10000 series"));
    }
}
