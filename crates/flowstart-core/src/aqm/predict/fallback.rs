//! What keeps the queue short when there is no transient, or one that was not recognised: CoDel (RFC 8289, section 5) with
//! the interval that was measured.

/// Packets that the law lets wait: none is signalled while less than one more waits (RFC 8289, section 4.2: one packet).
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    target: f64,
    /// Seconds; the law sets it before each decision.
    pub(super) interval: f64,
    first_above_time: Option<f64>,
    dropping: bool,
    drop_next: f64,
    count: u32,
    lastcount: u32,
}

impl CoDel {
    pub(super) fn new(target: f64, interval: f64) -> Self {
        Self { target, interval, first_above_time: None, dropping: false, drop_next: 0.0, count: 0, lastcount: 0 }
    }

    fn control_law(&self, time: f64) -> f64 {
        time + self.interval / libm::sqrt(f64::from(self.count.max(1)))
    }

    /// Whether the packet that leaves now is signalled, after it waited `sojourn` seconds and with `full` if more than a
    /// packet still waits.
    pub(super) fn signals(&mut self, now: f64, sojourn: f64, full: bool) -> bool {
        let mut ok_to_drop = false;
        if sojourn < self.target || !full {
            self.first_above_time = None;
        } else {
            let above = *self.first_above_time.get_or_insert(now + self.interval);
            ok_to_drop = now >= above;
        }
        if self.dropping {
            self.dropping = ok_to_drop;
            if ok_to_drop && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.drop_next = self.control_law(self.drop_next);
                return true;
            }
            return false;
        }
        if ok_to_drop {
            self.dropping = true;
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now - self.drop_next < 16.0 * self.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
            return true;
        }
        false
    }
}
