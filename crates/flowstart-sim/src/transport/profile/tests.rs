use flowstart_core::avoidance::{bbr, cubic};

use super::*;

#[test]
fn every_listed_profile_exists_and_survives_serialization() {
    for (name, _) in PROFILES {
        let profile = Profile::named(name).unwrap();
        let text = toml::to_string(&profile).unwrap();
        assert_eq!(toml::from_str::<Profile>(&text).unwrap(), profile, "{name}");
    }
    assert_eq!(Profile::named("tcp"), None);
}

#[test]
fn hystart_without_a_variant_is_the_hosts() {
    let of = |name: &str, variant| {
        let config = hystart::Config { variant, ..hystart::Config::default() };
        match Profile::named(name).unwrap().resolved(StartupConfig::Hystart(config)) {
            StartupConfig::Hystart(config) => config.variant,
            other => panic!("{other:?}"),
        }
    };
    use hystart::Variant::{Linux, Ns3, Quic};
    let own = ["tcp-linux", "tcp-rfc", "ns3", "gquic", "rfc9002", "noq"].map(|name| of(name, None));
    assert_eq!(own, [Linux, Linux, Ns3, Quic, Quic, Quic].map(Some));
    assert_eq!(of("tcp-linux", Some(Quic)), Some(Quic), "what is chosen stays");
}

#[test]
fn a_host_runs_other_algorithms_as_it_has_them() {
    let named = |profile: &Profile, name: &str| profile.avoidance_named(name).cloned();
    let linux = Profile::tcp_linux();
    assert!(matches!(named(&linux, "reno"), Some(AvoidanceConfig::Reno(config)) if config.whole_cuts));
    let Some(AvoidanceConfig::Bbr(config)) = named(&linux, "bbr") else { panic!("BBR is in Linux") };
    assert_eq!(config.version, bbr::Version::One);
    assert_eq!(named(&linux, "cubic"), Some(linux.avoidance.clone()));
    assert!(matches!(named(&Profile::ns3(), "reno"), Some(AvoidanceConfig::Reno(config)) if config.whole_segments));
    assert_eq!(named(&Profile::tcp_rfc(), "bbr"), None, "with its own defaults");
}

#[test]
fn timeouts_and_counts_are_those_of_the_hosts() {
    let timeouts = |profile: Profile| (profile.timeout_reduction, profile.slow_start_after_timeout);
    assert_eq!(timeouts(Profile::tcp_linux()), (TimeoutReduction::OncePerWindow, SlowStartAfterTimeout::Scheme));
    assert_eq!(timeouts(Profile::gquic()), (TimeoutReduction::HalfWindow, SlowStartAfterTimeout::Scheme));
    let AvoidanceConfig::Cubic(cubic) = Profile::tcp_linux().avoidance else { panic!("Linux runs CUBIC") };
    assert_eq!(cubic.surplus, cubic::Surplus::OneSegment);
    assert_eq!(cubic.recount_after, Duration::from_secs(1.0 / 32.0));
}

#[test]
fn packets_have_the_sizes_of_the_references() {
    let wire = |name: &str| Profile::named(name).unwrap().data_wire_size(Profile::named(name).unwrap().payload);
    assert_eq!((wire("ns2-sack1"), wire("ns3"), wire("gquic")), (1500, 1502, 1392));
}
