//! Compatible combinations of a transport's policies.

use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::transport::policy::{
    LossDetection, Protocol, ReceiveBuffer, RttSamples, TimeoutArithmetic, WindowTest,
};
use flowstart_sim::transport::profile::Profile;

/// Policies that only the model of TCP has.
const OF_TCP: [&str; 13] = [
    "ack.while_growing",
    "after_timeout",
    "dsack",
    "loss_detection",
    "loss_probe",
    "lost_retransmissions",
    "min_rto",
    "mixed_ack",
    "pipe",
    "sample_resolution",
    "spurious_detection",
    "tail_repair",
    "timer_restart",
];

/// Refuses keys that have no effect beside the others.
pub(super) fn check_that_keys_act(profile: &Profile, keys: &[(&str, &str)]) -> Result<(), String> {
    let given = |key: &&&str| keys.iter().any(|(known, _)| known == *key);
    match profile.protocol {
        Protocol::Quic => {
            if let Some(key) = OF_TCP.iter().find(given) {
                return Err(format!("{key} is for TCP; of QUIC allowed is that it is not given"));
            }
        }
        Protocol::Tcp => {
            if let Some(key) = ["time_threshold"].iter().find(given) {
                return Err(format!("{key} is for QUIC; of TCP allowed is that it is not given"));
            }
        }
    }
    let by_order = ["lost_retransmissions", "tail_repair"];
    if let Some(key) = by_order.iter().find(given).filter(|_| profile.loss_detection == LossDetection::Rack) {
        return Err(format!(
            "{key} does nothing where loss_detection is rack, which finds lost retransmissions and tails by itself; \
             allowed is it with loss_detection=sacked-above"
        ));
    }
    if given(&&"ack.while_growing") && profile.receive_buffer.is_none() {
        return Err(
            "ack.while_growing is for a receive_window that follows from a buffer; allowed are auto, open".into()
        );
    }
    Ok(())
}

/// Refuses policies that a simulation cannot run with.
pub(super) fn check(profile: &Profile) -> Result<(), String> {
    for (key, size, least) in [
        ("payload", profile.payload, 1),
        ("segment", profile.segment, 1),
        ("ack_size", profile.ack_size, 1),
        ("opening_size", profile.opening_size, 1),
        ("answer_size", profile.answer_size, 1),
        ("completion_size", profile.completion_size, 0),
        ("overhead", profile.overhead, 0),
        ("overhead_in_flight", profile.overhead_in_flight, 0),
        ("ack_range_size", profile.ack_range_size, 0),
    ] {
        if !(least..=65_000).contains(&size) {
            return Err(format!("{key} is {size}; allowed is {least} to 65000 bytes"));
        }
    }
    // The smallest window is one segment, and sends whatever fits.
    let packet = profile.payload + profile.overhead_in_flight;
    if profile.window_test == WindowTest::Fits && profile.segment < packet {
        return Err(format!(
            "segment is {}; allowed is a packet, payload and overhead_in_flight, {packet}, to 65000 bytes",
            profile.segment
        ));
    }
    if profile.protocol == Protocol::Tcp && !profile.scone.is_none() {
        return Err("scone is for QUIC; of TCP allowed is none".into());
    }
    if profile.protocol == Protocol::Quic && profile.rtt_samples != RttSamples::EveryAck {
        return Err("rtt_samples is for TCP; of QUIC allowed is every-ack".into());
    }
    if profile.timeout_arithmetic == TimeoutArithmetic::Ticks
        && (profile.protocol == Protocol::Quic || profile.sample_resolution == Duration::ZERO)
    {
        return Err(
            "timeout_arithmetic is ticks; that is for TCP with a sample_resolution above 0, else allowed is exact"
                .into(),
        );
    }
    for (key, number) in [("ack.every", profile.ack.every), ("packet_threshold", profile.packet_threshold)] {
        if number == 0 {
            return Err(format!("{key} must be at least 1"));
        }
    }
    if !(1..=1000).contains(&profile.ack_ranges) {
        return Err(format!("ack_ranges is {}; allowed is 1 to 1000", profile.ack_ranges));
    }
    let second = Duration::from_millis(1000);
    for (key, time, least) in [
        ("ack.max_delay", profile.ack.max_delay, Duration::ZERO),
        ("min_rto", profile.min_rto, Duration::ZERO),
        ("granularity", profile.granularity, Duration::ZERO),
        ("sample_resolution", profile.sample_resolution, Duration::ZERO),
        // With a first timeout of zero a sender would retransmit forever at the same instant.
        ("initial_timeout", profile.initial_timeout, second / 1000),
        ("handshake_timeout", profile.handshake_timeout, second / 1000),
    ] {
        if !(least..=second * 100).contains(&time) {
            return Err(format!("{key} is {time}; allowed is {least} to {}", second * 100));
        }
    }
    if profile.time_threshold.is_some_and(|factor| !(0.1..=100.0).contains(&factor)) {
        return Err("time_threshold: allowed is 0.1 to 100, or none".into());
    }
    if !(1..=60).contains(&profile.answer_packets) {
        return Err(format!("answer_packets is {}; allowed is 1 to 60", profile.answer_packets));
    }
    if profile.receive_window.get() < u64::from(profile.payload) {
        return Err(format!("receive_window {} is smaller than one packet", profile.receive_window));
    }
    if let Some(initial) = profile.initial_receive_window {
        let least = Bytes::new(u64::from(profile.payload));
        if !(least..=profile.receive_window).contains(&initial) {
            return Err(format!(
                "initial_receive_window is {initial}; allowed is one packet, {least}, to receive_window, {}",
                profile.receive_window
            ));
        }
    }
    if let Some(buffer) = profile.receive_buffer {
        let (packet, largest) = (Bytes::new(u64::from(buffer.packet)), Bytes::new(4_000_000_000));
        if profile.protocol == Protocol::Quic {
            return Err("receive_buffer is for TCP; of QUIC allowed is none".into());
        }
        if !(profile.payload..=65_536).contains(&buffer.packet) {
            return Err(format!("receive_buffer.packet is {packet}; allowed is a packet's payload to 65536 bytes"));
        }
        if !(packet * 4..=buffer.largest).contains(&buffer.initial) || buffer.largest > largest {
            let ReceiveBuffer { initial, largest, .. } = buffer;
            return Err(format!(
                "receive_buffer is {initial} to {largest}; allowed is from four times receive_buffer.packet to 4GB"
            ));
        }
    }
    if let Some(compression) = profile.ack.compression.filter(|compression| *compression > second) {
        return Err(format!("ack.compression is {compression}; allowed is up to 1s"));
    }
    if profile.receive_window > Bytes::new(1_000_000_000_000) {
        return Err(format!("receive_window is {}; allowed is up to 1000GB", profile.receive_window));
    }
    profile.startup.validate().map_err(|error| format!("startup.{error}"))?;
    profile.avoidance.validate().map_err(|error| format!("avoidance.{error}"))?;
    let controller = profile.controller(profile.startup.clone(), profile.avoidance.clone());
    controller.validate().map_err(|error| error.to_string())
}
