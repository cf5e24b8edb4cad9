use flowstart_core::controller::WindowValidation;
use flowstart_core::units::Bytes;
use flowstart_sim::transport::policy::{IgnoreReceiveWindow, ReceiveBuffer};

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
        assert_eq!(policies::check(&Profile::named(name).unwrap()), Ok(()), "{name}");
    }
}

#[test]
fn policies_that_a_simulation_cannot_run_with_are_refused() {
    for policy in ["overhead=4294967295", "handshake_timeout=0s", "time_threshold=-1", "protocol=tcp", "ack_size=0"] {
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
    for keys in ["receive_window=auto,receive_buffer.largest=8MB", "receive_buffer.largest=8MB,receive_window=auto"] {
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
        let plan = crate::study::scenario::Scenario::from_text(&text).unwrap().plan(std::path::Path::new(".")).unwrap();
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

#[test]
fn a_slip_in_a_policy_gets_the_policy_that_was_meant() {
    let error = |text: &str| Transport::parse("--transport", text).unwrap_err().problem;
    for (text, meant) in [
        ("model-tcp:profil=tcp-linux", "`profil` (did you mean `profile`?), expected one of `opening`"),
        ("model-tcp:dsak=true", "`dsak` (did you mean `dsack`?)"),
        ("model-tcp:ack.evry=1", "`evry` (did you mean `every`?), expected one of `every`"),
        ("model-tcp:akc.every=1", "`akc` is not a group of policies (did you mean `ack`?)"),
        ("model-tcp:min_rto=0", "min_rto: `0` is not a duration"),
        ("model-tcp:ack.every=x", "ack.every `x`: allowed is a whole number from 0 on"),
    ] {
        assert!(error(text).contains(meant), "{}", error(text));
    }
    assert!(error("model-tcp:nothing=1").ends_with("`, `profile`"), "{}", error("model-tcp:nothing=1"));
    assert!(!error("model-tcp:nothing=1").contains("other_avoidances"));
    assert!(!error("model-tcp:ack.nothing=1").contains("`profile`"), "{}", error("model-tcp:ack.nothing=1"));
}
