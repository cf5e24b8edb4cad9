//! Series become small enough to embed, and show the same.

/// Most points of one line of a CDF.
pub(crate) const CDF_POINTS: usize = 200;

/// The empirical distribution as `[value, share of the values up to it]`, at most `most` points (and the start
/// at 0), in ascending order. Undefined values are left out.
pub(crate) fn cdf(values: &[f64], most: usize) -> Vec<[f64; 2]> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(&first), n) = (sorted.first(), sorted.len()) else {
        return Vec::new();
    };
    let steps = n.min(most.max(1));
    let mut points = vec![[first, 0.0]];
    for step in 1..=steps {
        // Evenly spaced ranks; the last is the maximum.
        let rank = step * n / steps;
        points.push([sorted[rank - 1], rank as f64 / n as f64]);
    }
    points
}

/// The median. Of nothing there is none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(low + (high - low) / 2.0)
}

/// Keeps about `most` points of a step line: of each stretch of time the first, lowest, highest and last, so that no
/// peak disappears.
pub(crate) fn thin_line(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    let points: Vec<[f64; 2]> = points.iter().copied().filter(is_finite).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    let (from, span) = (first[0], last[0] - first[0]);
    if points.len() <= most || span <= 0.0 {
        return points;
    }
    let buckets = (most / 4).max(1);
    let bucket_of = |p: &[f64; 2]| (((p[0] - from) / span * buckets as f64) as usize).min(buckets - 1);
    let mut kept = Vec::with_capacity(most);
    let mut start = 0;
    while start < points.len() {
        let bucket = bucket_of(&points[start]);
        let length = points[start..].iter().take_while(|p| bucket_of(p) == bucket).count().max(1);
        let stretch = &points[start..start + length];
        let lowest = (0..length).min_by(|&a, &b| stretch[a][1].total_cmp(&stretch[b][1])).unwrap_or(0);
        let highest = (0..length).max_by(|&a, &b| stretch[a][1].total_cmp(&stretch[b][1])).unwrap_or(0);
        let mut keep = [0, lowest, highest, length - 1].to_vec();
        keep.sort_unstable();
        keep.dedup();
        kept.extend(keep.into_iter().map(|i| stretch[i]));
        start += length;
    }
    kept
}

/// Keeps at most `most` of a set of points, evenly spaced in their order, first and last included.
pub(crate) fn thin_points<T: Copy>(points: &[T], most: usize) -> Vec<T> {
    if points.len() <= most || most < 2 {
        return points.iter().copied().take(most).collect();
    }
    (0..most).map(|i| points[i * (points.len() - 1) / (most - 1)]).collect()
}

/// Throughput in Mbit/s as the mean over the `window` milliseconds before each of `samples` instants from `from` to
/// `to`, of packets `[time in ms, bytes]` in order of time, or of the sums of bins that are `bin` milliseconds long and
/// end at these times. Of the time before `known` nothing is known, so a window that reaches beyond it is cut there.
pub(crate) fn rolling_mean(
    packets: &[[f64; 2]],
    bin: f64,
    window: f64,
    known: f64,
    from: f64,
    to: f64,
    samples: usize,
) -> Vec<[f64; 2]> {
    if !(window > 0.0 && to > from && from.is_finite() && to.is_finite()) || samples < 2 {
        return Vec::new();
    }
    let packets: Vec<[f64; 2]> = packets.iter().copied().filter(is_finite).collect();
    let (mut begin, mut end, mut bytes) = (0, 0, 0.0);
    (0..samples)
        .map(|i| {
            let now = from + (to - from) * i as f64 / (samples - 1) as f64;
            while end < packets.len() && packets[end][0] <= now {
                bytes += packets[end][1];
                end += 1;
            }
            while begin < end && packets[begin][0] <= now - window {
                bytes -= packets[begin][1];
                begin += 1;
            }
            // Of bins that lie on an end of the window only a part is in it.
            let part = |place: usize, end: f64| match packets.get(place) {
                Some([time, bytes]) if bin > 0.0 => ((end - time) / bin + 1.0).clamp(0.0, 1.0) * bytes,
                _ => 0.0,
            };
            let bytes = bytes + part(end, now) - part(begin, now - window);
            // bytes * 8 bits per window ms = kbit/s; / 1000 = Mbit/s
            [now, bytes * 8.0 / window.min(now - known) / 1000.0]
        })
        .filter(is_finite)
        .collect()
}

fn is_finite(point: &[f64; 2]) -> bool {
    point.iter().all(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cdf_of_three() {
        assert_eq!(cdf(&[3.0, 1.0, f64::NAN, 2.0], 200), [[1.0, 0.0], [1.0, 1.0 / 3.0], [2.0, 2.0 / 3.0], [3.0, 1.0]]);
        assert!(cdf(&[], 200).is_empty());
    }

    #[test]
    fn cdf_of_many_keeps_the_ends() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let points = cdf(&values, 200);
        assert_eq!(points.len(), 201);
        assert_eq!(points.last(), Some(&[9999.0, 1.0]));
        // Rank 5000 of 10000 is the value 4999.
        assert!(points.contains(&[4999.0, 0.5]));
    }

    #[test]
    fn thin_line_keeps_the_peak() {
        let mut points: Vec<[f64; 2]> = (0..50_000).map(|i| [f64::from(i), 1.0]).collect();
        points[31_234][1] = 99.0;
        let thin = thin_line(&points, 1000);
        assert!(thin.len() <= 1000 && thin.contains(&[31_234.0, 99.0]));
        assert!(thin.is_sorted_by_key(|p| p[0] as i64));
    }

    #[test]
    fn thin_points_keeps_both_ends() {
        let points: Vec<u32> = (0..1001).collect();
        let thin = thin_points(&points, 100);
        assert_eq!((thin.len(), thin[0], thin[99]), (100, 0, 1000));
        assert_eq!(thin_points(&points[..3], 100), [0, 1, 2]);
    }

    #[test]
    fn steady_flow_has_its_rate() {
        // 1250 bytes every ms = 10 Mbit/s
        let packets: Vec<[f64; 2]> = (0..1000).map(|i| [f64::from(i), 1250.0]).collect();
        let mean = rolling_mean(&packets, 0.0, 50.0, f64::NEG_INFINITY, 0.0, 999.0, 100);
        assert!((mean[99][1] - 10.0).abs() < 1e-9, "{:?}", mean[99]);
        // 100 ms after the record begins, a window of a second holds 101 packets: 10.1 Mbit/s, not 1.
        let cut = rolling_mean(&packets, 0.0, 1000.0, 0.0, 100.0, 999.0, 100);
        assert!((cut[0][1] - 10.1).abs() < 1e-9, "{:?}", cut[0]);
        // Bins of 7 ms do not divide the window, whose ends have parts of them.
        let bins: Vec<[f64; 2]> = (1..150).map(|i| [f64::from(7 * i - 1), 7.0 * 1250.0]).collect();
        let mean = rolling_mean(&bins, 7.0, 50.0, f64::NEG_INFINITY, 100.0, 999.0, 100);
        assert!(mean.iter().all(|point| (point[1] - 10.0).abs() < 1e-9), "{mean:?}");
    }
}
