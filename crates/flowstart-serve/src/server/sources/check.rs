//! Which schemes a server refuses: those that could only ever start as slow start, because it can know nothing that
//! they start from.

use flowstart_core::sources::Known;
use flowstart_quic::hint::HintPolicy;

use super::InterfaceChoice;
use crate::server::{Config, ServerError};

/// Why a server never knows something that a scheme could start from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lack {
    /// The configuration has no source of it.
    NoSource,
    /// The interface does not tell its speed.
    Interface(String),
    /// No interface tells its speed, or clients are on this host.
    NoInterface,
    /// The policy for hints goes by what the client's prefix has received, and there is no path store.
    NoHistory,
    /// The policy for hints goes by the speed of the server's link, which no interface tells.
    NoLink,
    /// The path store cannot be used: the reason, with the store's name.
    PathStore(String),
}

/// Refuses schemes without a source that could ever speak. `unusable` says why the path store cannot be used, if that
/// is known by now.
pub(in crate::server) fn check(config: &Config, unusable: Option<&str>) -> Result<(), ServerError> {
    for scheme in config.schemes.all() {
        let senses = scheme.senses();
        let lacks: Vec<_> = senses.iter().filter_map(|known| Some((*known, lack(config, *known, unusable)?))).collect();
        if !senses.is_empty() && lacks.len() == senses.len() {
            return Err(ServerError::NoSource { scheme: scheme.name().to_owned(), lacks });
        }
    }
    Ok(())
}

/// Why the server can never know this; `None`: it might.
fn lack(config: &Config, known: Known, unusable: Option<&str>) -> Option<Lack> {
    let unless = |given: bool, lack| (!given).then_some(lack);
    match known {
        Known::Hint => lack_of_hints(config, unusable),
        Known::Saved if config.path_state_key.is_some() => None,
        Known::Saved => match unusable {
            Some(problem) => Some(Lack::PathStore(problem.to_owned())),
            None => unless(config.path_store.is_some(), Lack::NoSource),
        },
        Known::Oracle => unless(config.oracle.is_some(), Lack::NoSource),
        Known::Interface => match &config.interface {
            None => Some(Lack::NoSource),
            Some(InterfaceChoice::Route) => unless(is_link_known(config), Lack::NoInterface),
            Some(InterfaceChoice::Name(name)) => unless(is_link_known(config), Lack::Interface(name.clone())),
        },
        Known::Requested => unless(config.deadline.is_some(), Lack::NoSource),
        // The server's own connections.
        Known::Concurrent => None,
        Known::Approved => unless(config.quick_start, Lack::NoSource),
        Known::Advised => unless(config.scone, Lack::NoSource),
        // Any client may report it.
        Known::Train => unless(config.hint_policy != HintPolicy::Ignore, Lack::NoSource),
    }
}

/// Why no hint is ever used.
fn lack_of_hints(config: &Config, unusable: Option<&str>) -> Option<Lack> {
    let policy = &config.hint_policy;
    if *policy == HintPolicy::Ignore {
        return Some(Lack::NoSource);
    }
    if policy.needs_history() {
        if let Some(problem) = unusable {
            return Some(Lack::PathStore(problem.to_owned()));
        }
        if config.path_store.is_none() {
            return Some(Lack::NoHistory);
        }
    }
    let nobody_tells = match &config.interface {
        Some(InterfaceChoice::Name(name)) => Lack::Interface(name.clone()),
        _ => Lack::NoLink,
    };
    (policy.needs_link() && !is_link_known(config)).then_some(nobody_tells)
}

/// Whether the speed of the interface that is named, or of one towards a client, may be known. Clients of a loopback
/// address are on this host, which no interface leads to.
fn is_link_known(config: &Config) -> bool {
    let interfaces = &config.interfaces;
    match &config.interface {
        // What is wrong with the name is an error of its own.
        Some(InterfaceChoice::Name(name)) => {
            !matches!(interfaces.speed(name), Ok(None)) || interfaces.may_come_up(name)
        }
        _ => !config.listen.ip().to_canonical().is_loopback() && interfaces.may_know_any_speed(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flowstart_core::avoidance::{AvoidanceConfig, cubic};
    use flowstart_core::startup::more_start::{self, RateSource};
    use flowstart_core::startup::{StartupConfig, blitzstart, careful_resume};
    use flowstart_core::units::Rate;

    use super::*;
    use crate::server::Schemes;
    use crate::{H3, Scheme, Warnings};

    /// A server with this scheme for all connections.
    fn with(startup: StartupConfig) -> Config {
        let avoidance = || AvoidanceConfig::Cubic(cubic::Config::default());
        let scheme = Scheme::new("it", startup, avoidance()).unwrap();
        let tls = crate::tls::Certificate::SelfSigned.config(&[H3], &Warnings::default()).unwrap();
        Config::new(tls, Schemes::new(scheme, Scheme::plain(&avoidance()).unwrap()))
    }

    /// What is lacking, if the scheme is refused.
    fn lacking(config: &Config, unusable: Option<&str>) -> Vec<Lack> {
        match check(config, unusable) {
            Ok(()) => Vec::new(),
            Err(ServerError::NoSource { lacks, .. }) => lacks.into_iter().map(|(_, lack)| lack).collect(),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_policy_without_its_evidence_is_no_source_of_hints() {
        let hints = |policy: &str, path_store: Option<&str>| Config {
            hint_policy: policy.parse().unwrap(),
            path_store: path_store.map(str::to_owned),
            ..with(StartupConfig::Blitzstart(blitzstart::Config::default()))
        };
        assert_eq!(lacking(&hints("ignore", Some("x")), None), [Lack::NoSource]);
        for policy in ["validate", "cap:history=4", "cap:rate=10mbit,history=4"] {
            assert_eq!(lacking(&hints(policy, None), None), [Lack::NoHistory], "{policy}");
            assert_eq!(lacking(&hints(policy, Some("x")), None), [], "{policy}");
            let broken = [Lack::PathStore("x: broken".into())];
            assert_eq!(lacking(&hints(policy, Some("x")), Some("x: broken")), broken, "{policy}");
        }
        // It listens on the loopback, which has no speed.
        assert_eq!(lacking(&hints("cap:link=0.5", Some("x")), None), [Lack::NoLink]);
        let mut named = hints("cap:link=0.5", Some("x"));
        named.interface = Some(InterfaceChoice::Name("lo".into()));
        assert_eq!(lacking(&named, None), [Lack::Interface("lo".into())]);
        named.interfaces.speeds.insert("lo".into(), Rate::from_mbit(5));
        assert_eq!(lacking(&named, None), [], "the operator tells it");
        for policy in ["accept", "cap:rate=10mbit,prefix=20mbit,age=60s"] {
            assert_eq!(lacking(&hints(policy, None), Some("x: broken")), [], "{policy}");
        }
    }

    #[test]
    fn a_path_store_that_cannot_be_used_is_missed_by_schemes_that_have_nothing_else() {
        let saved = || Config {
            path_store: Some("x".into()),
            ..with(StartupConfig::CarefulResume(careful_resume::Config::default()))
        };
        assert_eq!(lacking(&saved(), None), []);
        assert_eq!(lacking(&saved(), Some("x: broken")), [Lack::PathStore("x: broken".into())]);
        let sealed = Config { path_state_key: Some("key".into()), ..saved() };
        assert_eq!(lacking(&sealed, Some("x: broken")), []);
    }

    #[test]
    fn an_interface_without_a_speed_is_no_source() {
        let from = |source| with(StartupConfig::MoreStart(more_start::Config { source, ..Default::default() }));
        for (choice, lack) in [
            (InterfaceChoice::Name("lo".into()), Lack::Interface("lo".into())),
            // It listens on the loopback.
            (InterfaceChoice::Route, Lack::NoInterface),
        ] {
            let only = Config { interface: Some(choice), ..from(RateSource::Interface) };
            assert_eq!(lacking(&only, None), [lack]);
        }
        // What the operator says of it counts.
        let mut told = Config { interface: Some(InterfaceChoice::Name("lo".into())), ..from(RateSource::Interface) };
        told.interfaces.speeds.insert("lo".into(), Rate::from_mbit(100));
        assert_eq!(lacking(&told, None), []);
    }

    #[test]
    fn one_source_of_several_is_enough() {
        let any = || Config {
            hint_policy: "validate".parse().unwrap(),
            path_store: Some("x".into()),
            ..with(StartupConfig::MoreStart(more_start::Config::default()))
        };
        assert_eq!(lacking(&any(), Some("x: broken")).len(), 4);
        assert_eq!(lacking(&Config { deadline: Some(Duration::from_secs(1)), ..any() }, Some("x: broken")), []);
        assert_eq!(lacking(&Config { oracle: Some("http://h".into()), ..any() }, Some("x: broken")), []);
    }
}
