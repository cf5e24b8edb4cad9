//! Schemes of measured flows: one of the registry, as in `blitzstart:estimate=1.5`, also with its own congestion
//! avoidance, as in `slow-start:iw=4,avoidance=xcp`, or over several connections, `slow-start:connections=6`; or
//! `stack`, the transport's own behaviour.
//!
//! [`SCHEME_KEYS`] are for all of the registry. Other keys are parameters of the scheme, with the defaults of the
//! transport's profile, else the scheme's.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::spec::names;
use flowstart_core::startup::{CustomStartup, StartupConfig};

use super::algorithm::{SCHEMES_LISTED, beside, host_avoidance, host_startup};
use super::form::Key;
use super::transport::Transport;
use super::{InputError, Spec, Written};

/// The name that selects no scheme but the transport's own behaviour.
pub const STACK: &str = "stack";
/// One line for listings.
pub const STACK_SUMMARY: &str =
    "what the transport profile does by itself: its own startup and congestion avoidance; takes no --avoidance";

/// Most connections of a transfer.
const MOST_CONNECTIONS: u32 = 100;

/// The keys of every scheme of the registry, beside its own parameters.
pub const SCHEME_KEYS: &[Key] = &[
    Key::new("avoidance", "a name", "Its congestion avoidance, with one key at most, bbr:version=1.", "the command's"),
    Key::new("connections", "1 to 100", "Connections that carry a transfer together, each an equal part.", "1"),
];

/// How measured flows send.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The startup scheme.
    pub startup: Written<StartupConfig>,
    /// The congestion avoidance that comes with it.
    pub avoidance: Option<Written<AvoidanceConfig>>,
    /// Connections that carry a transfer together.
    pub connections: u32,
}

/// Reads the scheme of measured flows. It may name its own congestion avoidance, `slow-start:avoidance=xcp`, and a
/// number of connections, or be [`STACK`], or one of the caller's `own` schemes, which has no other keys.
///
/// # Errors
///
/// What cannot be read of either.
pub fn measured_scheme(
    field: &str,
    text: &str,
    transport: &Transport,
    own: &[CustomStartup],
) -> Result<Measured, InputError> {
    let profile = &*transport.profile;
    let mut spec = Spec::parse(field, text)?;
    let own_names = own.iter().map(CustomStartup::name);
    let names: Vec<&str> = StartupConfig::NAMES.iter().copied().chain([STACK]).chain(own_names).collect();
    if let Some(avoidance) = names::find(spec.name(), AvoidanceConfig::NAMES).filter(|name| !names.contains(name)) {
        let meant = format_args!("slow-start:avoidance={avoidance}, or --avoidance {avoidance}");
        return Err(spec.refused(format_args!("{avoidance} is a congestion avoidance: {meant}")));
    }
    let name = spec.choose(&names, format_args!("{SCHEMES_LISTED}{}", beside(own)))?;
    if name == STACK {
        return own_stack(&spec, transport);
    }
    let connections = spec.within("connections", 1..=MOST_CONNECTIONS)?.unwrap_or(1);
    let own_scheme = own.iter().find(|scheme| scheme.name() == name);
    let named = spec.value("avoidance")?;
    let value = match own_scheme {
        Some(scheme) => {
            spec.finish()?;
            StartupConfig::Custom(scheme.clone())
        }
        None => host_startup(&spec, profile, SCHEME_KEYS)?,
    };
    let startup = Written { text: text.to_owned(), value };
    let avoidance = named.map(|named| host_avoidance(field, named, profile)).transpose()?;
    // A host that divides a request among its connections knows their number.
    let parts = startup.value.request().map_or(1, |request| request.parallel);
    if connections > 1 && ![1, connections].contains(&parts) {
        return Err(spec.refused(format_args!(
            "parallel is {parts}; beside connections={connections} allowed is {connections}, or 1 if none shares its \
             request"
        )));
    }
    Ok(Measured { startup, avoidance, connections })
}

/// [`STACK`], which takes no keys.
fn own_stack(spec: &Spec<'_>, transport: &Transport) -> Result<Measured, InputError> {
    let profile = &*transport.profile;
    if let Some(key) = spec.unasked() {
        return Err(spec.refused(format_args!(
            "`{key}` is not for {STACK}, which is what profile {} does by itself, {} and {}; allowed is {STACK} alone",
            transport.profile_name,
            profile.startup.name(),
            profile.avoidance.name()
        )));
    }
    if transport.stack.is_some() {
        return Err(spec.refused(
            "the real stack runs the controller of this program, never its own; allowed are the other schemes, such as \
             slow-start:avoidance=cubic, or --transport model-quic and model-tcp",
        ));
    }
    let startup = Written { text: STACK.to_owned(), value: profile.resolved(profile.startup.clone()) };
    let avoidance = Written { text: profile.avoidance.name().to_owned(), value: profile.avoidance.clone() };
    Ok(Measured { startup, avoidance: Some(avoidance), connections: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_gets_the_key_or_the_option_that_was_meant() {
        let transport = Transport::parse("--transport", "model-quic").unwrap();
        let error = |text: &str| measured_scheme("--scheme", text, &transport, &[]).unwrap_err().problem;
        for (text, meant) in [
            ("slow-start:conections=6", "`conections` (did you mean `connections`?), expected one of `iw`, "),
            ("slow-start:avoidence=bbr", "`avoidence` (did you mean `avoidance`?)"),
            ("hystart:nothing=6", "`, `avoidance`, `connections`"),
            ("slow-start:connections=-1", "connections `-1`: allowed is a whole number, 1 to 100"),
            ("slow-start,iw=4", "a colon ends the name; expected is slow-start:iw=4"),
        ] {
            assert!(error(text).contains(meant), "{}", error(text));
        }
        for name in AvoidanceConfig::NAMES {
            let meant = format!("{name} is a congestion avoidance: slow-start:avoidance={name}, or --avoidance {name}");
            assert_eq!(error(&name.to_uppercase()), meant);
            measured_scheme("--scheme", &format!("slow-start:avoidance={name}"), &transport, &[]).unwrap();
        }
    }
}
