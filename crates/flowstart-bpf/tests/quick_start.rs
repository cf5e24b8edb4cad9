//! The Quick-Start router in C approves as the one of `flowstart-core`: both get the same packets at the same times,
//! and the same bytes leave. It runs in user space, which takes a compiler of C, and with the feature `kernel` in the
//! kernel, which takes root and BTF.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use flowstart_bpf::quick_start::settings;
use flowstart_core::quick_start::nonce::Nonce;
use flowstart_core::quick_start::rate::RateCode;
use flowstart_core::quick_start::router::{
    Algorithm, Config, Router, UtilizationConfig, Verdict, peak_utilization, target,
};
use flowstart_core::quick_start::wire::{IpOption, IpVersion, LENGTH, WireError};
use flowstart_core::rng::Substream;
use flowstart_core::time::{Duration, Timestamp};
use flowstart_core::units::{Bytes, Rate};
use proptest::prelude::*;
use tempfile::TempDir;

/// Bytes of the header of Ethernet, and of IPv4 without options.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
/// The shortest frame of Ethernet without its checksum.
const SHORTEST: usize = 60;

/// A packet, when it comes after the one before, and what random number its nonce gets.
#[derive(Clone, Debug)]
struct Vector {
    frame: Vec<u8>,
    at: Timestamp,
    random: u32,
}

/// A frame that came out, and whether it left.
type Outcome = (bool, Vec<u8>);

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    !(fold(fold(sum)) as u16)
}

/// Writes the checksum of the header anew.
fn seal(frame: &mut [u8], header: usize) {
    frame[ETHERNET + 10..ETHERNET + 12].fill(0);
    let right = checksum(&frame[ETHERNET..ETHERNET + header]);
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&right.to_be_bytes());
}

fn frame(options: &[u8], ttl: u8, payload: usize) -> Vec<u8> {
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    let header = IPV4 + options.len();
    let mut frame = [&[2; 12][..], &[8, 0], &[0x40 | (header / 4) as u8, 0]].concat();
    frame.extend_from_slice(&((header + payload) as u16).to_be_bytes());
    frame.extend_from_slice(&[0, 7, 0x40, 0, ttl, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    frame.extend_from_slice(&options);
    seal(&mut frame, header);
    frame.resize((ETHERNET + header + payload).max(SHORTEST), 0x5a);
    frame
}

/// What `flowstart-core` makes of packets, with what the host of a router does with headers.
fn by_the_core(config: &Config, bandwidth: Rate, vectors: &[Vector], rng: &mut Substream) -> Vec<Outcome> {
    let mut router = Router::new(*config, bandwidth);
    let mut route = |vector: &Vector| {
        let mut frame = vector.frame.clone();
        let header = usize::from(frame[ETHERNET] & 0x0f) * 4;
        let length = usize::from(u16::from_be_bytes([frame[ETHERNET + 2], frame[ETHERNET + 3]]));
        let is_ipv4 = frame[12..14] == [8, 0] && frame[ETHERNET] >> 4 == 4 && header >= IPV4;
        if !is_ipv4 || length < header || ETHERNET + length > frame.len() {
            return (true, frame);
        }
        // The program leaves headers without options to whoever forwards them.
        if header > IPV4 && checksum(&frame[ETHERNET..ETHERNET + header]) != 0 {
            return (true, frame);
        }
        let begin = ETHERNET + IPV4;
        if let Ok(Some((place, option))) = IpOption::find(IpVersion::V4, &frame[begin..ETHERNET + header]) {
            if frame[ETHERNET + 8] <= 1 {
                return (false, frame);
            }
            let Verdict::Forward(left) = router.on_option(vector.at, 1, option, rng) else { panic!("it has to leave") };
            frame[ETHERNET + 8] -= 1;
            frame[begin + place..begin + place + LENGTH].copy_from_slice(&left.emit(IpVersion::V4));
            seal(&mut frame, header);
        }
        router.on_departure(vector.at, Bytes::new(length as u64), 1);
        (true, frame)
    };
    vectors.iter().map(&mut route).collect()
}

/// The random numbers that the core draws: one for each request that it grants.
fn drawn(config: &Config, bandwidth: Rate, vectors: &mut [Vector]) -> Vec<Outcome> {
    for upto in 0..vectors.len() {
        let mut rng = Substream::new(1, "router", 0);
        by_the_core(config, bandwidth, &vectors[..upto], &mut rng);
        vectors[upto].random = rng.next_u64() as u32;
    }
    by_the_core(config, bandwidth, vectors, &mut Substream::new(1, "router", 0))
}

fn program() -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let (folder, here) = (TempDir::new().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")));
        let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
        compiler.arg("-I").arg(here.join("bpf")).arg("-o").arg(folder.path().join("router"));
        assert!(compiler.arg(here.join("tests/quick_start/driver.c")).status().unwrap().success());
        folder
    });
    folder.path().join("router")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What the router in C makes of them, in user space.
fn by_the_program(config: &Config, bandwidth: Rate, vectors: &[Vector]) -> Vec<Outcome> {
    let mut running = Command::new(program());
    running.arg(hex(&settings(config, bandwidth).unwrap()));
    let mut running = running.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = running.stdin.take().unwrap();
    let lines = vectors.iter().map(|Vector { frame, at, random }| {
        format!("{} {random} {}\n", at.since(Timestamp::ZERO).as_nanos(), hex(frame))
    });
    let script: String = lines.collect();
    let writing = std::thread::spawn(move || stdin.write_all(script.as_bytes()).unwrap());
    let told = String::from_utf8(running.wait_with_output().unwrap().stdout).unwrap();
    writing.join().unwrap();
    let outcome = |line: &str| {
        let (left, frame) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&frame[at..at + 2], 16).unwrap();
        (left == "1", (0..frame.len()).step_by(2).map(byte).collect())
    };
    told.lines().map(outcome).collect()
}

/// An option of Quick-Start.
fn option() -> impl Strategy<Value = Vec<u8>> {
    (0..20_u8, 0..16_u8, any::<u8>(), any::<u32>(), 0..4_u8).prop_map(|(kind, rate, ttl, nonce, reserved)| {
        let (rate, nonce) = (RateCode::from_bits(rate), Nonce::from_bits(nonce));
        let option = match kind {
            0 | 1 => IpOption::ApprovedRate { rate, nonce },
            2 => IpOption::RateConfirmation { rate, ttl, nonce },
            _ => IpOption::RateRequest { rate, ttl, nonce },
        };
        let mut bytes = option.emit(IpVersion::V4).to_vec();
        bytes[7] |= reserved;
        if kind == 3 {
            bytes[2] |= 0x50;
        }
        bytes
    })
}

/// The options of a header, and its TTL, and the bytes behind it.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let filling = prop_oneof![4 => Just(vec![]), 1 => Just(vec![1]), 1 => Just(vec![1, 1, 1]), 1 => Just(vec![148, 4, 0, 0]),
        1 => Just(vec![7, 7, 4, 9, 9, 9, 9]), 1 => Just(vec![7, 3, 4])];
    let options = prop_oneof![
        6 => Just(vec![]),
        10 => (filling, option(), 0..9_usize).prop_map(|(before, own, behind)| [before, own, vec![1; behind]].concat()),
        1 => (option(), option()).prop_map(|(one, other)| [one, other].concat()),
        1 => option().prop_map(|option| [vec![0], option].concat()),
        2 => prop::collection::vec(any::<u8>(), 1..40),
    ];
    let ttl = prop_oneof![8 => Just(64_u8), 1 => 0..4_u8];
    (options, ttl, 0..1400_usize, 0..30_u8, any::<u8>()).prop_map(|(options, ttl, payload, trouble, byte)| {
        let mut frame = frame(&options, ttl, payload);
        match trouble {
            0 => frame[12..14].copy_from_slice(&[0x86, 0xdd]),
            1 => frame[ETHERNET + 10] ^= byte,
            2 => frame[ETHERNET + 2] = byte,
            3 => frame[ETHERNET] = byte,
            _ => {}
        }
        frame
    })
}

fn vectors() -> impl Strategy<Value = Vec<Vector>> {
    let pause = prop_oneof![20 => 0..2_000_u64, 6 => 1_000..90_000_u64, 1 => 100_000..2_000_000_u64];
    prop::collection::vec((frames(), pause), 1..60).prop_map(|packets| {
        let mut now = Timestamp::ZERO;
        let place = |(frame, pause): (Vec<u8>, u64)| {
            now += Duration::from_micros(pause);
            Vector { frame, at: now, random: 0 }
        };
        packets.into_iter().map(place).collect()
    })
}

fn routers() -> impl Strategy<Value = (Config, Rate)> {
    let limit = prop_oneof![3 => Just(None), 1 => (1..20_u32).prop_map(Some)];
    let parameters = (0..=100_u32, 10..400_u64, limit, 10..400_u64, 1..=12_usize, 0..1000_u64, 0..7_u32);
    parameters.prop_map(|(share, approvals, requests_per_second, peak, intervals, rate, scale)| {
        let target = target::Config {
            qs_thresh: f64::from(share) / 100.0,
            interval: Duration::from_millis(approvals),
            requests_per_second,
            ..target::Config::default()
        };
        let peak = peak_utilization::Config { interval: Duration::from_millis(peak), intervals, ..Default::default() };
        let config = Config {
            algorithm: Algorithm::Target(target),
            utilization: UtilizationConfig::PeakUtilization(peak),
            ..Config::default()
        };
        (config, Rate::from_bits_per_sec((64_013 + rate * 1_007) * 10_u64.pow(scale)))
    })
}

/// Says where two outcomes are not the same.
fn compare(config: &Config, vectors: &[Vector], ours: &[Outcome], theirs: &[Outcome]) {
    assert_eq!(ours.len(), theirs.len(), "{config:?}");
    for (place, ((one, other), vector)) in ours.iter().zip(theirs).zip(vectors).enumerate() {
        assert!(
            one.0 == other.0 && (!one.0 || one.1 == other.1),
            "packet {place} at {:?} of {config:?}: {}\ncore    {} {}\nprogram {} {}",
            vector.at,
            hex(&vector.frame),
            one.0,
            hex(&one.1),
            other.0,
            hex(&other.1)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_same_packets_at_the_same_times_leave_as_the_core_says((config, rate) in routers(), mut vectors in vectors()) {
        let expected = drawn(&config, rate, &mut vectors);
        compare(&config, &vectors, &expected, &by_the_program(&config, rate, &vectors));
    }
}

#[test]
fn a_request_is_lowered_to_what_the_link_has_and_the_rest_is_left_alone() {
    let (config, rate) = (Config::default(), Rate::from_mbit(20));
    let nonce = Nonce::from_bits(0x2abb_ccdd);
    let request = IpOption::RateRequest { rate: RateCode::MAX, ttl: 77, nonce }.emit(IpVersion::V4);
    let place = |frame, millis| Vector { frame, at: Timestamp::ZERO + Duration::from_millis(millis), random: u32::MAX };
    let vectors = [0, 1, 300].map(|millis| place(frame(&request, 64, 100), millis));
    let left: Vec<_> = by_the_program(&config, rate, &vectors).into_iter().map(|(_, frame)| frame).collect();
    let option = |frame: &[u8]| IpOption::among(IpVersion::V4, &frame[34..42]);
    // 90 % of 20 Mbit/s are 18, and 10.24 Mbit/s is the next rate below, code 8; all 18 are taken for two intervals.
    let Ok(Some(IpOption::RateRequest { rate, ttl, nonce: kept })) = option(&left[0]) else { panic!("no request") };
    assert_eq!((rate.bits(), ttl, left[0][22]), (8, 76, 63));
    assert!(nonce.confirms(kept, rate) && kept.bits() >> 16 == 0x3fff, "{kept:?}");
    let denied = IpOption::RateRequest { rate: RateCode::ZERO, ttl: 0, nonce: Nonce::default() };
    assert_eq!(option(&left[1]), Ok::<_, WireError>(Some(denied)));
    assert_eq!(option(&left[2]), option(&left[0]));
    assert!(left.iter().all(|frame| checksum(&frame[ETHERNET..ETHERNET + 28]) == 0));
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
mod in_the_kernel {
    use flowstart_bpf::kernel::quick_start::{self, QuickStartError};
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// A router in the kernel, unless this process may not have one.
    fn loaded(config: &Config, rate: Rate) -> Option<quick_start::Router> {
        match quick_start::Router::load(config, rate) {
            Ok(router) => Some(router),
            Err(QuickStartError::Kernel(why)) => {
                println!("skipped: {why}");
                assert!(!std::env::var("CI").is_ok_and(|value| value == "true"), "{why}");
                None
            }
            Err(why) => panic!("{why}"),
        }
    }

    #[test]
    fn the_same_packets_at_the_same_times_leave_as_the_core_says() {
        let mut runner = TestRunner::deterministic();
        for _ in 0..40 {
            let (config, rate) = routers().new_tree(&mut runner).unwrap().current();
            let mut vectors = vectors().new_tree(&mut runner).unwrap().current();
            let Some(mut router) = loaded(&config, rate) else { return };
            let expected = drawn(&config, rate, &mut vectors);
            let mut route = |vector: &Vector| {
                let mut frame = vector.frame.clone();
                (router.route(&mut frame, vector.at, vector.random).unwrap(), frame)
            };
            let left: Vec<_> = vectors.iter().map(&mut route).collect();
            compare(&config, &vectors, &expected, &left);
        }
    }

    #[test]
    fn what_is_measured_is_what_the_counts_say() {
        let Some(mut router) = loaded(&Config::default(), Rate::from_mbit(1_000_000)) else { return };
        let request = |rate| {
            let option = IpOption::RateRequest { rate, ttl: 77, nonce: Nonce::from_bits(9) };
            frame(&option.emit(IpVersion::V4), 64, 100)
        };
        let lowest = request(RateCode::from_bits(1));
        let cost = router.measure(&lowest, Duration::ZERO, 1000).unwrap();
        assert!(cost.router > 0.0 && cost.router < 100_000.0, "{cost:?}");
        let seen = router.seen().unwrap();
        assert_eq!((seen.requests, seen.reduced, seen.denied), (1000, 0, 0), "{seen:?}");
        // A frame of another length, and one that the kernel does not take.
        router.measure(&frame(&[], 64, 1000), Duration::ZERO, 100).unwrap();
        assert!(router.measure(&[0; 59], Duration::ZERO, 1).is_err());
        assert_eq!(router.seen().unwrap().requests, 1000);
    }
}
