//! How often simultaneous intervals hold that stand on few repetitions.

use flowstart_statistics::simultaneous_coverage;

/// From this percentage on intervals hold as often as they say.
const AS_SAID: u32 = 94;
/// The largest family whose intervals were measured.
const MEASURED: usize = 500;

/// How often all of so many intervals hold, from this number of repetitions; `None`: as often as they say.
pub fn coverage(intervals: usize, repetitions: usize) -> Option<String> {
    let at_most = if intervals > MEASURED { "at most " } else { "" };
    let of = format!("With {repetitions} repetitions all of so many intervals hold");
    match simultaneous_coverage(intervals, repetitions) {
        AS_SAID.. => None,
        0 => Some(format!("{of} next to never.")),
        percent => Some(format!("{of} in {at_most}some {percent} % of experiments, not in 95 %.")),
    }
}
