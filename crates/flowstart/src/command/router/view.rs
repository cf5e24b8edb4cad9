//! What a router does, as a small table on a terminal that changes once a second.

use std::fmt::Write;
use std::sync::mpsc::Receiver;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_emu::router::{Direction, Told};
use indicatif::{ProgressBar, ProgressStyle};

use super::told::{Moment, mbit_per_second};
use crate::attention::shows_progress;

/// A table on stderr.
#[derive(Debug)]
pub(super) struct View(ProgressBar);

impl View {
    /// One on a terminal, unless the user wants quiet.
    pub(super) fn on_terminal() -> Option<Self> {
        if !shows_progress() {
            return None;
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Some(Self(bar))
    }

    /// Shows the latest moment until there is no further one; then the table goes away.
    pub(super) fn show(self, moments: &Receiver<Moment>) {
        let (mut since, mut before) = (Timestamp::ZERO, Told::default());
        for (at, told) in moments {
            self.0.set_message(table(&told, &before, at, at.since(since)));
            self.0.tick();
            (since, before) = (at, told);
        }
        self.0.finish_and_clear();
    }
}

fn table(now: &Told, before: &Told, at: Timestamp, passed: Duration) -> String {
    let time = format!("{} s", at.since(Timestamp::ZERO).as_secs() as u64);
    let titles = ["Mbit/s", "queue", "sojourn", "dropped", "marked"];
    let [rate, queue, sojourn, dropped, marked] = titles;
    let mut text = format!("{time:10}{rate:>10}{queue:>9}{sojourn:>12}{dropped:>9}{marked:>9}\n");
    for (name, now, before) in [("to clients", &now.down, &before.down), ("back", &now.up, &before.up)] {
        let Direction { link, marked, waiting: (waiting, _), sojourn, .. } = now;
        let rate = mbit_per_second(now, before, passed);
        let sojourn = format!("{:.1} ms", sojourn.as_millis_f64());
        // A string takes all that is written.
        let _ = writeln!(text, "{name:10}{rate:>10.2}{waiting:>9}{sojourn:>12}{:>9}{marked:>9}", link.dropped);
    }
    let options = &now.quick_start;
    if options.requests > 0 {
        let approved = options.approved();
        let _ = writeln!(
            text,
            "Quick-Start: {approved} of {} requests approved, {} reduced",
            options.requests, options.reduced
        );
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_what_changes() {
        let (mut before, mut now) = (Told::default(), Told::default());
        before.down.link.departed_bytes = 1_000_000;
        now.down.link.departed_bytes = 3_500_000;
        now.down.waiting = (17, flowstart_core::units::Bytes::new(25_500));
        now.down.sojourn = Duration::from_micros(10_250);
        (now.down.link.dropped, now.down.marked) = (3, 40);
        let at = Timestamp::ZERO + Duration::from_millis(12_000);
        let text = table(&now, &before, at, Duration::from_millis(1000));
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "12 s Mbit/s queue sojourn dropped marked");
        assert_eq!(lines[1..], ["to clients 20.00 17 10.2 ms 3 40", "back 0.00 0 0.0 ms 0 0"]);
        (now.quick_start.requests, now.quick_start.denied, now.quick_start.reduced) = (5, 2, 1);
        let text = table(&now, &before, at, Duration::from_millis(1000));
        assert!(text.ends_with("\nQuick-Start: 3 of 5 requests approved, 1 reduced"), "{text}");
    }
}
