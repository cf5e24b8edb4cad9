//! Times as numbers.

use flowstart_core::time::Duration;

pub(super) fn seconds(time: Duration) -> f64 {
    time.as_millis_f64() / 1000.0
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_millis_f64() * 1000.0
}
