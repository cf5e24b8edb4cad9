//! Adaptive video over a path: what the player requests, and what the viewer sees.

use std::sync::Arc;

use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use flowstart_sim::flow::FlowConfig;
use flowstart_sim::link::LinkConfig;
use flowstart_sim::link::wire::LossModel;
use flowstart_sim::observe::record::FlowRecord;
use flowstart_sim::topology::{Access, Chain};
use flowstart_sim::traffic::Pattern;
use flowstart_sim::traffic::video::{Ladder, Rule, Video};
use flowstart_sim::transport::profile::Profile;
use flowstart_sim::world::World;

const RTT: Duration = Duration::from_millis(100);
const LIMIT: Timestamp = Timestamp::from_nanos(600_000_000_000);
const TRANSPORTS: [&str; 2] = ["rfc9002", "tcp-rfc"];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Chunks of 2 s at 0.4, 1.6 and 6.4 Mbit/s and a buffer of 12 s; the highest rate from 8 s on.
fn video(rule: Rule, count: u32) -> Video {
    let ladder = Ladder::new(&[400_000, 1_600_000, 6_400_000].map(Rate::from_bits_per_sec)).expect("it ascends");
    Video { ladder, chunk: ms(2000), count, buffer: ms(12_000), start: ms(2000), rule }
}

const BBA: Rule = Rule::Buffer { reservoir: Duration::from_millis(3000), upper: Duration::from_millis(8000) };

/// The video over a path of this rate with a window that holds everything.
fn watch(name: &str, video: Video, kbit: u64, lost_back: f64) -> FlowRecord {
    let profile = Profile { initial_window: 1000, pacing: None, ..Profile::named(name).expect("a listed profile") };
    let mut world = World::new(7);
    let link = LinkConfig::new(Rate::from_bits_per_sec(kbit * 1000), RTT / 2);
    let loss = (lost_back > 0.0).then_some(LossModel::Independent { probability: lost_back });
    let chain = Chain::dumbbell(&mut world, &link, &LinkConfig { loss, ..link.clone() });
    let host = Access { rate: Rate::from_mbit(10_000), delay: Duration::ZERO, jitter: None };
    let route = chain.connect(&mut world, host, host);
    let pattern = Pattern::Video(Box::new(video));
    let flow = world.add_flow(FlowConfig::new(Arc::new(profile), pattern, route));
    world.run_flow(flow, LIMIT).expect("the video arrives");
    world.record(flow).clone()
}

#[test]
fn the_first_picture_takes_the_handshake_and_a_chunk_of_the_lowest_rate() {
    for name in TRANSPORTS {
        let record = watch(name, video(BBA, 3), 100_000, 0.0);
        let began = record.playback.as_ref().unwrap().began.unwrap();
        // Two round trips, and 100 KB at 100 Mbit/s.
        let delay = began.since(record.started.unwrap()).as_millis_f64();
        assert!((208.0..213.0).contains(&delay), "{name}: {delay}");
        assert_eq!(Some(began), record.objects[0].arrived);
    }
}

#[test]
fn a_full_buffer_pauses_the_requests_for_the_time_of_a_chunk() {
    for name in TRANSPORTS {
        let record = watch(name, video(BBA, 20), 100_000, 0.0);
        let playback = record.playback.as_ref().unwrap();
        assert_eq!((playback.stalls, playback.rates[0], playback.rates[19]), (0, 0, 2));
        let last: Vec<f64> =
            record.objects[15..].windows(2).map(|pair| pair[1].requested.since(pair[0].requested).as_secs()).collect();
        assert!(last.iter().all(|gap| (gap - 2.0).abs() < 1e-6), "{name}: {last:?}");
        let bytes: u64 = playback.rates.iter().map(|place| [100_000, 400_000, 1_600_000][usize::from(*place)]).sum();
        assert_eq!(record.delivered, bytes, "{name}");
        assert_eq!(record.objects.last().unwrap().arrived, record.completed);
    }
}

#[test]
fn the_throughput_rule_finds_the_rate_of_the_path_and_stalls_only_below_the_lowest() {
    for name in TRANSPORTS {
        let fits = watch(name, video(Rule::Throughput, 12), 4000, 0.0);
        let playback = fits.playback.as_ref().unwrap();
        assert_eq!((playback.rates[1..].to_vec(), playback.stalls), (vec![1; 11], 0), "{name}");
        // 0.3 Mbit/s for a video of 0.4: each chunk of 2 s takes 2.7 s and more.
        let slow = watch(name, video(Rule::Throughput, 12), 300, 0.0);
        let playback = slow.playback.as_ref().unwrap();
        assert_eq!((playback.stalls, playback.switches()), (11, 0), "{name}");
        let stalled = playback.stalled.as_secs();
        assert!((8.0..12.0).contains(&stalled), "{name}: {stalled}");
    }
}

#[test]
fn requests_that_are_lost_are_repeated() {
    for name in TRANSPORTS {
        let small = Video { buffer: ms(4000), ..video(Rule::Throughput, 30) };
        let record = watch(name, small, 100_000, 0.3);
        assert_eq!(record.objects.len(), 30, "{name}");
        assert!(record.dropped > 10, "{name}: {}", record.dropped);
        assert!(record.delivered > Bytes::new(29 * 400_000).get(), "{name}");
    }
}
