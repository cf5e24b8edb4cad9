//! Transports: `model-quic`, `model-tcp`, with a profile and overrides of its policies, and `quic`, the real stack.

use std::sync::Arc;

use flowstart_core::startup::quick_start::{self, OptionRoom};
use flowstart_core::time::Duration;
use flowstart_core::units::Bytes;
use flowstart_sim::transport::policy::{
    LossDetection, Protocol, ReceiveBuffer, RttSamples, TimeoutArithmetic, WindowTest,
};
use flowstart_sim::transport::profile::{PROFILES, Profile};

use super::stack::{self, StackOptions};
use super::{InputError, Parts, toml_value};

/// A transport as the user chose it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// As written.
    pub text: String,
    /// Name of the profile it starts from.
    pub profile_name: String,
    /// The profile with its overrides. Beside a real stack it is that of the competitors, and describes the stack as far as
    /// a model can.
    pub profile: Arc<Profile>,
    /// The measured flows are real QUIC; `None`: they are model flows.
    pub stack: Option<StackOptions>,
}

/// The names users write.
const NAMES: &str = "model-quic, model-tcp, quic";

impl Transport {
    /// Reads a transport.
    pub fn parse(field: &str, text: &str) -> Result<Self, InputError> {
        Self::settled(field, text, |_| Ok(()))
    }

    /// Reads a transport whose profile `settle` completes or refuses before it is checked.
    pub(super) fn settled(
        field: &str,
        text: &str,
        settle: impl FnOnce(&mut Profile) -> Result<(), String>,
    ) -> Result<Self, InputError> {
        let parts = Parts::parse(field, text)?;
        let refused = |problem: String| InputError::new(field, text, problem);
        let (protocol, default) = match parts.name {
            "model-quic" => (Protocol::Quic, "rfc9002"),
            "model-tcp" => (Protocol::Tcp, "tcp-linux"),
            "quic" => return stack::parse(field, text, &parts),
            _ => {
                let called = parts.called();
                let of_model = |profile: Profile| match profile.protocol {
                    Protocol::Quic => format!("it is a profile: model-quic:profile={called}"),
                    Protocol::Tcp => format!("it is a profile: model-tcp:profile={called}"),
                };
                let use_instead = Profile::named(called).map_or(format!("use {NAMES}"), of_model);
                return Err(refused(format!("`{called}` is not known; {use_instead}")));
            }
        };
        let of_protocol = || {
            let fits = |name: &&str| Profile::named(name).is_some_and(|profile| profile.protocol == protocol);
            PROFILES.iter().map(|(name, _)| *name).filter(fits).collect::<Vec<_>>().join(", ")
        };
        let name = parts.keys.iter().find(|(key, _)| *key == "profile").map_or(default, |(_, value)| value);
        let profile = Profile::named(name)
            .filter(|profile| profile.protocol == protocol)
            .ok_or_else(|| refused(format!("profile `{name}` is not one of {}", of_protocol())))?;
        let mut table = toml::Table::try_from(&profile).map_err(|error| refused(error.to_string()))?;
        if parts.keys.iter().any(|(key, _)| *key == "protocol") {
            return Err(refused(format!("the name before the colon, {}, says the protocol", parts.name)));
        }
        if parts.keys.iter().any(|(key, _)| *key == "other_avoidances") {
            return Err(refused(
                "other_avoidances is the profile's; allowed is --avoidance with keys of its own".into(),
            ));
        }
        let named = choose_receive_window(&parts, &mut table).map_err(refused)?;
        for (key, value) in parts.keys.iter().filter(|(key, _)| *key != "profile" && Some(*key) != named) {
            // `ack.every=1` reaches into the table `ack`.
            let mut target = &mut table;
            let mut key = *key;
            if let Some((outer, inner)) = key.split_once('.') {
                target = target
                    .get_mut(outer)
                    .and_then(toml::Value::as_table_mut)
                    .ok_or_else(|| refused(format!("`{outer}` is not a group of policies")))?;
                key = inner;
            }
            if *value == "none" {
                target.remove(key);
            } else {
                target.insert(key.to_owned(), toml_value(value));
            }
        }
        let mut profile: Profile = table.try_into().map_err(|error| refused(error.message().to_owned()))?;
        profile.startup = profile.resolved(profile.startup.clone());
        settle(&mut profile).map_err(refused)?;
        check(&profile).map_err(refused)?;
        check_that_they_act(&profile, &parts).map_err(refused)?;
        Ok(Self { text: text.to_owned(), profile_name: name.to_owned(), profile: Arc::new(profile), stack: None })
    }
}

/// Keys that make the receive window a size.
const SIZES: [&str; 2] = ["receive_window", "initial_receive_window"];
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

/// Puts the buffer there that the receive window follows from, whatever the order of the keys. Returns the key whose
/// value is the name of a buffer.
fn choose_receive_window<'a>(parts: &Parts<'a>, table: &mut toml::Table) -> Result<Option<&'a str>, String> {
    let name_of = |value: &str| ReceiveBuffer::NAMED.iter().find(|(name, _)| *name == value);
    let named = parts.keys.iter().find_map(|(key, value)| {
        let (_, buffer) = name_of(value).filter(|_| *key == "receive_window")?;
        Some((*key, *value, *buffer))
    });
    let sized = parts.keys.iter().find(|(key, value)| {
        SIZES.contains(key) && *value != "none" && !(*key == "receive_window" && name_of(value).is_some())
    });
    let of_buffer = parts.keys.iter().find(|(key, _)| key.starts_with("receive_buffer."));
    let without = parts.keys.iter().find(|(key, value)| *key == "receive_buffer" && *value == "none");
    let buffer = named.map(|(key, value, _)| (key, value)).or(of_buffer.copied());
    if let Some(((other, value), (key, of))) = sized.or(without).zip(buffer) {
        return Err(format!(
            "{other} is {value} beside {key}={of}; allowed is a size or a buffer that it follows from"
        ));
    }
    if let Some((_, _, buffer)) = named {
        let buffer = toml::Value::try_from(buffer).map_err(|error| error.to_string())?;
        table.insert("receive_buffer".to_owned(), buffer);
    }
    // A window that is given as a size follows from nothing else.
    if sized.is_some() || without.is_some() {
        table.remove("receive_buffer");
    }
    let follows = table.contains_key("receive_buffer");
    if follows && parts.keys.contains(&("initial_receive_window", "none")) {
        return Err(
            "initial_receive_window is none; allowed is none only beside a receive_window that is a size".into()
        );
    }
    Ok(named.map(|(key, ..)| key))
}

/// Refuses keys that change nothing beside the others.
fn check_that_they_act(profile: &Profile, parts: &Parts<'_>) -> Result<(), String> {
    let given = |key: &&&str| parts.keys.iter().any(|(known, _)| known == *key);
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

/// Policies that a simulation cannot run with.
fn check(profile: &Profile) -> Result<(), String> {
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
    // A window of one segment is the smallest, and lets out what fits.
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
        // Without a first timeout a sender would repeat itself at the same instant for ever.
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

/// Refuses what only the model's hosts can do about Quick-Start.
pub(crate) fn check_quick_start(config: &quick_start::Config) -> Result<(), String> {
    let why = if config.after_idle.is_some() || config.after_move {
        "after_idle and after_move are not for the real stack: its connections ask once, with the handshake"
    } else if config.granularity > Duration::ZERO {
        "granularity is not for the real stack, which paces by its own token bucket"
    } else if config.room == OptionRoom::Connection {
        "room=connection is not for the real stack: payload=1192 makes all its packets smaller by the option"
    } else {
        return Ok(());
    };
    Err(format!("{why}; allowed are the other keys, or --transport model-quic:profile=noq"))
}

#[cfg(test)]
mod tests {
    use flowstart_core::controller::WindowValidation;
    use flowstart_sim::transport::policy::IgnoreReceiveWindow;

    use super::*;

    #[test]
    fn profiles_can_be_named_and_overridden() {
        let transport = Transport::parse("--transport", "model-tcp:profile=ns3,min_rto=200ms,ack.every=1").unwrap();
        assert_eq!(transport.profile_name, "ns3");
        assert_eq!(transport.profile.min_rto.as_millis_f64(), 200.0);
        assert_eq!(transport.profile.ack.every, 1);
        let paced = Transport::parse("--transport", "model-quic:pacing=none").unwrap();
        assert_eq!(paced.profile.pacing, None);
        for name in ["model-tcp", "model-quic"] {
            assert!(!Transport::parse("--transport", name).unwrap().profile.ecn);
            assert!(Transport::parse("--transport", &format!("{name}:ecn=true")).unwrap().profile.ecn);
        }
    }

    #[test]
    fn a_profile_in_place_of_a_transport_is_told_where_it_belongs() {
        let error = |text| Transport::parse("--transport", text).unwrap_err().to_string();
        assert!(error("tcp-linux").contains("it is a profile: model-tcp:profile=tcp-linux"), "{}", error("tcp-linux"));
        assert!(error("gquic:ecn=true").contains("model-quic:profile=gquic"), "{}", error("gquic:ecn=true"));
        assert!(error("tcp").contains("use model-quic, model-tcp, quic"), "{}", error("tcp"));
    }

    #[test]
    fn idle_time_is_a_policy_of_every_transport() {
        for (name, expected) in [
            ("keep", WindowValidation::Keep),
            ("rfc5681", WindowValidation::Rfc5681),
            ("rfc2861", WindowValidation::Rfc2861),
            ("linux", WindowValidation::Linux),
            ("rfc7661", WindowValidation::Rfc7661),
            ("startup", WindowValidation::Startup),
        ] {
            for transport in ["model-tcp:profile=tcp-rfc", "model-quic:profile=gquic"] {
                let transport = Transport::parse("--transport", &format!("{transport},idle={name}")).unwrap();
                assert_eq!(transport.profile.idle, expected);
            }
        }
        let error = Transport::parse("--transport", "model-tcp:idle=rfc2581").unwrap_err().to_string();
        assert!(error.contains("rfc2581") && error.contains("`rfc2861`, `linux`, `rfc7661`, `startup`"), "{error}");
    }

    #[test]
    fn every_profile_passes_the_checks_of_its_policies() {
        for (name, _) in PROFILES {
            assert_eq!(check(&Profile::named(name).unwrap()), Ok(()), "{name}");
        }
    }

    #[test]
    fn policies_that_a_simulation_cannot_run_with_are_refused() {
        for policy in ["overhead=4294967295", "handshake_timeout=0s", "time_threshold=-1", "protocol=tcp", "ack_size=0"]
        {
            let error = Transport::parse("--transport", &format!("model-quic:{policy}")).unwrap_err().to_string();
            let key = policy.split_once('=').unwrap().0;
            assert!(error.contains(key), "{policy}: {error}");
        }
        let ticks = |rest| Transport::parse("--transport", &format!("{rest},timeout_arithmetic=ticks"));
        assert!(ticks("model-tcp:sample_resolution=10ms").is_ok());
        for without in ["model-tcp:sample_resolution=0s", "model-quic:sample_resolution=10ms"] {
            let error = ticks(without).unwrap_err().to_string();
            assert!(error.contains("sample_resolution above 0, else allowed is exact"), "{error}");
        }
    }

    #[test]
    fn receive_windows_grow_from_a_packet_to_the_largest() {
        let parse = |keys| Transport::parse("--transport", &format!("model-tcp:profile=tcp-rfc,{keys}"));
        let transport = parse("initial_receive_window=5840B,receive_window=4MB,ignore_receive_window=probing").unwrap();
        let Profile { initial_receive_window, receive_window, ignore_receive_window, .. } = *transport.profile;
        assert_eq!((initial_receive_window, receive_window), (Some(Bytes::new(5840)), Bytes::new(4_000_000)));
        assert_eq!(ignore_receive_window, IgnoreReceiveWindow::Probing);
        for wrong in ["initial_receive_window=1KB", "initial_receive_window=5MB,receive_window=4MB"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("allowed is one packet, 1.46KB, to receive_window"), "{error}");
        }
    }

    #[test]
    fn a_receive_window_is_a_size_or_that_of_a_buffer_with_a_name() {
        let parse = |keys: &str| Transport::parse("--transport", &format!("model-tcp:profile=tcp-linux{keys}"));
        let buffer = |keys| parse(keys).unwrap().profile.receive_buffer;
        assert_eq!(buffer(",receive_window=auto"), Some(ReceiveBuffer::AUTO));
        assert_eq!(buffer(",receive_window=open"), Some(ReceiveBuffer::OPEN));
        assert_eq!(buffer(""), Some(ReceiveBuffer::OPEN));
        let largest = buffer(",receive_window=auto,receive_buffer.largest=64MB").unwrap().largest;
        assert_eq!(largest, Bytes::new(64_000_000));
        let sized = parse(",receive_window=4MB").unwrap().profile;
        assert_eq!((sized.receive_buffer, sized.receive_window), (None, Bytes::new(4_000_000)));
        for wrong in [",receive_buffer.initial=1KB", ",receive_buffer.initial=5GB", ",receive_buffer.packet=0"] {
            assert!(parse(wrong).unwrap_err().to_string().contains("allowed is"), "{wrong}");
        }
        assert!(parse(",receive_window=closed").is_err());
        assert!(Transport::parse("--transport", "model-quic:receive_window=auto").is_err());
    }

    #[test]
    fn a_receive_window_does_not_depend_on_the_order_of_its_keys() {
        let parse = |keys: &str| Transport::parse("--transport", &format!("model-tcp:{keys}"));
        let largest = |keys: &str| parse(keys).unwrap().profile.receive_buffer.map(|buffer| buffer.largest);
        for keys in ["receive_window=auto,receive_buffer.largest=8MB", "receive_buffer.largest=8MB,receive_window=auto"]
        {
            assert_eq!(largest(keys), Some(Bytes::new(8_000_000)), "{keys}");
            assert_eq!(largest(&format!("profile=tcp-rfc,{keys}")), Some(Bytes::new(8_000_000)), "{keys}");
        }
        assert_eq!(largest("initial_receive_window=64KB"), None, "a size");
        assert_eq!(largest("receive_buffer=none"), None);
        for contradiction in [
            ["receive_buffer.largest=8MB", "receive_window=400KB"],
            ["receive_buffer.largest=8MB", "initial_receive_window=64KB"],
            ["receive_buffer.largest=8MB", "receive_buffer=none"],
            ["receive_window=auto", "initial_receive_window=64KB"],
            ["receive_window=auto", "initial_receive_window=none"],
            ["receive_window=auto", "receive_buffer=none"],
        ] {
            let [one, other] = contradiction;
            for keys in [format!("{one},{other}"), format!("{other},{one}")] {
                let error = parse(&keys).unwrap_err().to_string();
                assert!(error.contains("allowed is") && error.contains("a size"), "{keys}: {error}");
            }
        }
        let sized = parse("receive_window=400KB,initial_receive_window=none").unwrap().profile;
        assert_eq!((sized.receive_buffer, sized.initial_receive_window), (None, None));
    }

    #[test]
    fn keys_that_change_nothing_are_refused() {
        for (transport, problem) in [
            ("model-tcp:lost_retransmissions=false", "does nothing where loss_detection is rack"),
            ("model-tcp:tail_repair=rescue", "does nothing where loss_detection is rack"),
            ("model-tcp:tail_repair=rescue,profile=tcp-rfc,loss_detection=rack", "does nothing"),
            ("model-tcp:ack.while_growing=false,receive_window=1MB", "a receive_window that follows from a buffer"),
            ("model-tcp:time_threshold=1.25", "time_threshold is for QUIC"),
            ("model-quic:loss_detection=rack", "loss_detection is for TCP"),
            ("model-quic:profile=gquic,loss_probe=true", "loss_probe is for TCP"),
            ("model-quic:ack.while_growing=true", "ack.while_growing is for TCP"),
            ("model-quic:min_rto=1s", "min_rto is for TCP"),
        ] {
            let error = Transport::parse("--transport", transport).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("allowed"), "{transport}: {error}");
        }
        for acts in [
            "model-tcp:packet_threshold=5",
            "model-tcp:ack.while_growing=false",
            "model-tcp:loss_detection=sacked-above,lost_retransmissions=false,tail_repair=rescue",
            "model-tcp:profile=tcp-rfc,tail_repair=timer",
            "model-quic:time_threshold=1.25",
        ] {
            assert!(Transport::parse("--transport", acts).is_ok(), "{acts}");
        }
    }

    #[test]
    fn a_segment_holds_a_packet() {
        let parse = |text| Transport::parse("--transport", text);
        for (transport, least) in [
            ("model-tcp:profile=tcp-rfc,segment=1459", 1460),
            ("model-tcp:profile=tcp-linux,payload=8948", 8948),
            ("model-quic:segment=1199", 1200),
            ("model-quic:profile=gquic,window_test=fits,segment=1349", 1350),
        ] {
            let error = parse(transport).unwrap_err().to_string();
            assert!(error.contains(&format!("payload and overhead_in_flight, {least}, to 65000")), "{error}");
        }
        for transport in [
            "model-tcp:profile=tcp-rfc,payload=8960,segment=8960",
            "model-quic:segment=1200",
            "model-quic:profile=gquic,window_test=fits",
            // Anything that is free lets a packet out.
            "model-quic:profile=gquic,segment=500",
        ] {
            let text =
                format!("link = [\"lte\"]\nsize = [\"300KB\"]\nscheme = [\"slow-start\"]\ntransport = \"{transport}\"");
            let plan =
                crate::study::scenario::Scenario::from_text(&text).unwrap().plan(std::path::Path::new(".")).unwrap();
            let rows = crate::experiment::execute(&plan, 1, &[], |_| {}).unwrap();
            assert!(rows.iter().all(|row| row.fct_ms.is_some_and(|fct| fct < 20_000.0)), "{transport}: {rows:?}");
        }
    }

    #[cfg(not(feature = "quic"))]
    #[test]
    fn a_stack_that_is_not_in_the_program_is_refused() {
        let error = Transport::parse("--transport", "quic:retry=true").unwrap_err().to_string();
        assert!(error.contains("built without the feature `quic`; use model-quic:profile=noq"), "{error}");
    }

    #[test]
    fn wrong_names_list_what_exists() {
        let error = |text| Transport::parse("--transport", text).unwrap_err().to_string();
        assert!(error("tcp").contains("model-tcp"));
        assert!(error("model-tcp:profile=gquic").contains("tcp-rfc, tcp-linux, ns2-sack1, ns3"));
        assert!(error("model-quic:sgment=1").contains("sgment"));
        assert!(error("model-quic:segment=0").contains("1 to 65000"));
        assert!(error("model-quic:startup.iw=0").contains("startup.iw is 0; allowed is 1 to 100000"));
        assert!(error("model-quic:avoidance.beta=2").contains("avoidance.beta is 2; allowed is 0.1 to 0.99"));
        assert!(error("quick").contains("model-quic, model-tcp, quic"));
    }
}
