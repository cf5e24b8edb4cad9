//! The effect of newcomers on video calls that share their link.

use flowstart_core::time::{Duration, Timestamp};
use flowstart_sim::traffic::call::{Call, Fate, FrameTimes};
use flowstart_sim::world::World;
use flowstart_statistics::quantile;

/// Frames of the last second may still be in flight.
const IN_FLIGHT: Duration = Duration::from_millis(1000);

/// The quality of video calls from the newcomers' start until 5 s after their end. The frames of all calls count
/// together, but freezes and harm are those of the worst call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallOutcome {
    /// Time from a frame's encoding until all of it had arrived, in milliseconds: the median, ...
    pub delay_p50_ms: Option<f64>,
    /// ... the time that 95 % do not exceed, ...
    pub delay_p95_ms: Option<f64>,
    /// ... that 99 % do not exceed, ...
    pub delay_p99_ms: Option<f64>,
    /// ... and the longest.
    pub delay_max_ms: Option<f64>,
    /// Part of the frames that lacked a packet.
    pub lost: Option<f64>,
    /// Part of the frames that could be shown only after their deadline.
    pub late: Option<f64>,
    /// Part of the frames that were not shown.
    pub not_shown: Option<f64>,
    /// Part of the time in which the picture was frozen.
    pub frozen: Option<f64>,
    /// Longest time for which the picture was frozen; 0 without.
    pub longest_freeze_ms: Option<f64>,
    /// From the newcomers' start until the end of the last frame that was not shown; 0 if all were.
    pub harm_ms: Option<f64>,
}

/// The quality of the calls, the first `flows` of the world, between `start` and `end`.
pub fn outcome(world: &World, call: &Call, flows: u32, start: Timestamp, end: Timestamp) -> CallOutcome {
    let calls: Vec<&[FrameTimes]> = (0..flows).map(|flow| world.record(flow).frames.as_slice()).collect();
    of_calls(&calls, call, start, (end - IN_FLIGHT).max(start))
}

/// The quality of the frames that were encoded from `start` until `end`.
fn of_calls(calls: &[&[FrameTimes]], call: &Call, start: Timestamp, end: Timestamp) -> CallOutcome {
    let (mut delays, mut fates) = (Vec::new(), Vec::new());
    let (mut frozen, mut longest, mut harm) = (None::<f64>, None, None);
    for frames in calls {
        // A frame's fate depends on those before it, from before the newcomers on.
        let all = call.fates(frames);
        let first = frames.partition_point(|frame| frame.sent < start);
        let last = frames.partition_point(|frame| frame.sent < end).max(first);
        let (frames, seen) = (&frames[first..last], &all[first..last]);
        if frames.is_empty() {
            continue;
        }
        delays.extend(frames.iter().filter_map(|frame| Some(frame.delay()?.as_millis_f64())));
        let freezes = call.freezes(seen);
        let sum = freezes.iter().fold(Duration::ZERO, |sum, freeze| sum + *freeze);
        let time = call.interval() * (frames.len() as u64 + 1);
        frozen = Some(frozen.unwrap_or_default().max(sum.as_secs() / time.as_secs()));
        longest = longest.max(Some(freezes.into_iter().max().unwrap_or_default()));
        let missed = seen.iter().rposition(|fate| *fate != Fate::Shown);
        let until = missed.map(|place| (frames[place].sent + call.interval()).since(start));
        harm = harm.max(Some(until.unwrap_or_default()));
        fates.extend_from_slice(seen);
    }
    let part = |counts: &dyn Fn(Fate) -> bool| {
        let count = fates.iter().filter(|fate| counts(**fate)).count();
        (!fates.is_empty()).then(|| count as f64 / fates.len() as f64)
    };
    CallOutcome {
        delay_p50_ms: quantile(&delays, 0.5),
        delay_p95_ms: quantile(&delays, 0.95),
        delay_p99_ms: quantile(&delays, 0.99),
        delay_max_ms: quantile(&delays, 1.0),
        lost: part(&|fate| fate == Fate::Lost),
        late: part(&|fate| fate == Fate::Late),
        not_shown: part(&|fate| fate != Fate::Shown),
        frozen,
        longest_freeze_ms: longest.map(Duration::as_millis_f64),
        harm_ms: harm.map(Duration::as_millis_f64),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Rate;

    use super::*;

    const CALL: Call = Call {
        rate: Rate::from_bits_per_sec(2_500_000),
        fps: 50,
        key: Duration::from_millis(1000),
        deadline: Duration::from_millis(150),
        pace: 2.5,
    };

    /// A frame every 20 ms from 0 on, complete after these times in ms, or never (0). All are key frames.
    fn frames(delays: &[u64]) -> Vec<FrameTimes> {
        let frame = |(place, delay): (usize, &u64)| {
            let sent = Timestamp::ZERO + CALL.interval() * place as u64;
            let complete = (*delay > 0).then(|| sent + Duration::from_millis(*delay));
            FrameTimes { sent, start: place as u64, size: 1, is_key: true, received: 1, complete }
        };
        delays.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn frames_count_from_the_newcomers_start_and_freezes_are_those_of_the_worst_call() {
        let at = |ms: u64| Timestamp::ZERO + Duration::from_millis(ms);
        // 50 frames before the newcomers at 1 s, of which 20 never arrive; then 10 in time, 15 lost and 25 in time.
        let worse = frames(&[vec![30; 30], vec![0; 20], vec![30; 10], vec![0; 15], vec![40; 25]].concat());
        let better = frames(&[vec![30; 95], vec![160; 1], vec![30; 4]].concat());
        let outcome = of_calls(&[&worse, &better], &CALL, at(1000), at(2000));
        // Of 100 frames 15 are lost; one is late (160 ms); it delays nobody, because all are key frames, but the next
        // waits for it: 160 - 20 = 140 ms, which is in time.
        assert_eq!((outcome.lost, outcome.late, outcome.not_shown), (Some(0.15), Some(0.01), Some(0.16)));
        // 15 missing frames leave a picture for 16 * 20 = 320 ms, of 51 * 20 ms.
        assert_eq!(outcome.longest_freeze_ms, Some(320.0));
        assert!((outcome.frozen.unwrap() - 320.0 / 1020.0).abs() < 1e-12, "{:?}", outcome.frozen);
        // The worse call has its last missing frame from 480 to 500 ms, the better one from 900 to 920 ms.
        assert_eq!(outcome.harm_ms, Some(920.0));
        assert_eq!((outcome.delay_p50_ms, outcome.delay_max_ms), (Some(30.0), Some(160.0)));
        assert_eq!(of_calls(&[], &CALL, at(0), at(1)), CallOutcome::default());
    }

    /// Rows of one repetition with one flow of 1 MB by each of these schemes.
    fn rows(schemes: &str, competitor: &str, size: &str) -> Vec<crate::results::flows::Row> {
        let text = format!(
            "link = [\"rate=6mbit,rtt=40ms,buffer=300ms\"]\nsize = [\"{size}\"]\nscheme = [{schemes}]\n\
             competitor = [\"{competitor}\"]\nreps = 1\ntransport = \"model-tcp:profile=tcp-linux\"\n\
             avoidance = \"cubic\""
        );
        let plan = crate::study::scenario::Scenario::from_text(&text).unwrap().plan(std::path::Path::new(".")).unwrap();
        crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap()
    }

    #[test]
    fn a_call_suffers_from_a_launch_and_not_from_a_packet() {
        let alone = &rows("\"slow-start\"", "call:rate=2mbit", "1KB")[0];
        // 20 ms of propagation, and a frame of 7.6 KB paced at 5 Mbit/s: 12 ms.
        let p50 = alone.call_delay_p50_ms.unwrap();
        assert!((31.0..34.0).contains(&p50), "{p50}");
        assert_eq!((alone.call_not_shown, alone.call_frozen, alone.call_harm_ms), (Some(0.0), Some(0.0), Some(0.0)));
        let rows = rows("\"slow-start:iw=3\", \"jump-start\"", "call:rate=2mbit,count=2", "1MB");
        let frozen = |row: &crate::results::flows::Row| row.call_frozen.unwrap();
        assert!(frozen(&rows[1]) > 0.0 && rows[1].call_lost.unwrap() > 0.0, "{:?}", rows[1]);
        assert!(rows.iter().all(|row| row.call_harm_ms.unwrap() > 100.0));
    }

    #[test]
    fn columns_of_calls_exist_only_beside_calls() {
        let header = |competitor: &str| {
            let mut out = Vec::new();
            let rows = rows("\"slow-start\"", competitor, "1KB");
            crate::results::flows::write_csv(&rows, &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().next().unwrap().to_owned()
        };
        assert!(header("call:rate=1mbit").ends_with(",call_harm_ms"));
        assert!(!header("media").contains("call_"));
    }
}
