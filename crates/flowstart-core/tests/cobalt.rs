//! COBALT does what Linux does.
//!
//! `data/cobalt-linux.csv` was recorded from the functions `cobalt_queue_full`, `cobalt_queue_empty` and
//! `cobalt_should_drop` of `sch_cake.c` (the module outside of the kernel, as of 28 September 2022), run outside of a
//! kernel on events drawn at random, for a queue that had been at rest once. A row is an event `gap_us` after the one
//! before: a packet that has waited `sojourn_us` and can be marked or not, with the random number that BLUE would draw
//! (of 2^32); an overflow; or a turn of the empty queue. The other columns are what followed: whether the packet was
//! dropped or marked, `count`, `p_drop` (of 2^32), the time until `drop_next` in nanoseconds, and whether packets wait
//! too long.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a recording that cannot be read fails the test")]

use flowstart_core::aqm::cobalt::{Params, Vars, Verdict};
use flowstart_core::aqm::{EcnCodepoint, QueuedPacket};
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::Rate;

const RECORDING: &str = include_str!("data/cobalt-linux.csv");

/// Largest difference of `drop_next` after an event, in nanoseconds: Linux takes one step of Newton's method towards
/// each root, from the one before. The events of the recording keep further away from `drop_next`.
const CLOSE: i64 = 300_000;

#[test]
fn a_recording_of_linux_is_repeated_event_by_event() {
    for (link, rate, events) in [("20mbit", 20, 500), ("1mbit", 1, 500)] {
        let params = Params::new(Duration::from_millis(5), Duration::from_millis(100), Some(Rate::from_mbit(rate)));
        let mut now = Timestamp::ZERO + Duration::from_millis(1_000_000);
        let mut vars = Vars::default();
        let rows: Vec<_> = RECORDING.lines().filter(|row| row.starts_with(&format!("{link},"))).collect();
        assert_eq!(rows.len(), events);
        for row in rows {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |place: usize| cells[place].parse::<i64>().unwrap();
            now += Duration::from_micros(number(2) as u64);
            let mut verdict = Verdict::default();
            match cells[1] {
                "full" => vars.queue_full(&params, now),
                "empty" => vars.queue_empty(&params, now),
                "packet" => {
                    let ecn = if number(4) == 1 { EcnCodepoint::Ect0 } else { EcnCodepoint::NotEct };
                    let enqueued_at = now - Duration::from_micros(number(3) as u64);
                    let mut packet = QueuedPacket { handle: 0, size: 1514, flow: 0, ecn, enqueued_at };
                    let random = number(5) as f64 / 4_294_967_296.0;
                    verdict = vars.on_packet(&params, now, &mut packet, || random);
                    assert_eq!(packet.ecn == EcnCodepoint::Ce, verdict.marked);
                }
                other => panic!("{other}"),
            }
            let seen =
                (verdict.drop, verdict.marked, vars.count, (vars.p_drop * 4_294_967_296.0) as i64, vars.dropping);
            let recorded = (number(6) == 1, number(7) == 1, number(8) as u32, number(9), number(11) == 1);
            assert_eq!(seen, recorded, "{row}");
            let drop_next = Timestamp::from_nanos(now.as_nanos().saturating_add_signed(number(10)));
            let difference = vars.drop_next.as_nanos() as i64 - drop_next.as_nanos() as i64;
            assert!(difference.abs() <= CLOSE, "{row}: {difference} ns");
            // Approximations do not add up.
            vars.drop_next = drop_next;
        }
    }
}
