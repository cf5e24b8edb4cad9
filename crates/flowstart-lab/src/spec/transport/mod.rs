//! Transports: `model-quic` (the default) and `model-tcp` with a profile and overrides of its policies, as in
//! `model-tcp:profile=ns3,ack.every=1`, and `quic`, the real stack ([`stack`]).
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `profile` | the profile that the others override | `rfc9002`; TCP: `tcp-linux` |
//! | `receive_window` | a size, or the buffer that it follows from, `auto` or `open` | the profile's |
//! | all others | policies of the profile; `GROUP.KEY` reaches into a group, `none` removes a policy | the profile's |
//!
//! [`Profile`] documents each policy; `flowstart list transports --json` prints the profiles.

use std::sync::Arc;

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::spec::names;
use flowstart_sim::transport::policy::Protocol;
use flowstart_sim::transport::profile::{PROFILES, Profile};

use super::algorithm::{toml_value, unknown_field, unknown_key, unreadable};
use super::form::Key;
use super::{InputError, Spec, Written};

mod policies;
mod receive_window;
#[cfg(feature = "quic")]
pub mod stack;
#[cfg(not(feature = "quic"))]
#[path = "without_stack.rs"]
pub mod stack;

use stack::StackOptions;

/// A transport as the user chose it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// As written.
    pub text: String,
    /// Name of the profile it starts from.
    pub profile_name: String,
    /// The profile with its overrides. Beside a real stack it is the competitors' profile, and describes the stack as
    /// far as a model can.
    pub profile: Arc<Profile>,
    /// The measured flows are real QUIC; `None`: they are model flows.
    pub stack: Option<StackOptions>,
}

/// The transport when none is given.
pub const DEFAULT_TRANSPORT: &str = "model-quic";
/// The name of two transports: the model of QUIC and the real stack.
pub const BOTH: &str = "both";
/// The transports that [`BOTH`] names.
pub const OF_BOTH: [&str; 2] = ["model-quic", "quic"];

/// The key that chooses a profile.
const PROFILE: Key = Key::new("profile", "a name", "the profile that the others override", "rfc9002; TCP: tcp-linux");
/// TCP as Linux runs it.
const LINUX: &str = "model-tcp:profile=tcp-linux";
/// What profiles have that is no policy: the name before the colon says it, and the keys of `--avoidance`.
const NOT_FOR_USERS: [&str; 2] = ["protocol", "other_avoidances"];

/// The names users write.
const NAMES: [&str; 3] = ["model-quic", "model-tcp", "quic"];

/// The protocol of a model, and the profile that it has unless another one is chosen.
fn model(name: &str) -> Option<(Protocol, &'static str)> {
    match names::find(name, &NAMES)? {
        "model-quic" => Some((Protocol::Quic, "rfc9002")),
        "model-tcp" => Some((Protocol::Tcp, "tcp-linux")),
        _ => None,
    }
}

/// The profile of a model for which none is chosen.
pub fn default_profile(name: &str) -> Option<&'static str> {
    model(name).map(|(_, profile)| profile)
}

impl Transport {
    /// Reads a transport.
    ///
    /// # Errors
    ///
    /// Unreadable input, policies that a simulation cannot run with, and keys that have no effect beside the others.
    pub fn parse(field: &str, text: &str) -> Result<Self, InputError> {
        let mut spec = Spec::parse(field, text)?;
        let (protocol, default) = match (model(spec.name()), names::find(spec.name(), &NAMES)) {
            (Some(model), _) => model,
            (None, Some(_)) => return stack::read(&mut spec),
            (None, None) => {
                let name = spec.name();
                let called = if name.is_empty() { spec.unasked().unwrap_or_default() } else { name };
                let of_model = |profile: Profile| match profile.protocol {
                    Protocol::Quic => format!("it is a profile: model-quic:profile={called}"),
                    Protocol::Tcp => format!("it is a profile: model-tcp:profile={called}"),
                };
                let all = format!("use {} or {BOTH}", NAMES.join(", "));
                let use_instead = Profile::named(called).map_or(all, of_model);
                return Err(spec.refused(names::unknown(called, &NAMES, use_instead)));
            }
        };
        let profiles: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        let name = spec.value(PROFILE.name)?.unwrap_or(default);
        let name = names::find(name, &profiles).unwrap_or(name);
        Self::of_profile(&spec, protocol, name, |_| Ok(()))
    }

    /// Whether it is TCP as Linux runs it, but for the receive window, so that a kernel of Linux can take its place.
    pub fn is_of_linux(&self) -> bool {
        let Profile { receive_window, initial_receive_window, receive_buffer, .. } = *self.profile;
        let of = |linux: &Profile| Profile { receive_window, initial_receive_window, receive_buffer, ..linux.clone() };
        let is_like = |linux: Self| of(&linux.profile) == *self.profile;
        self.stack.is_none() && Self::parse("transport", LINUX).is_ok_and(is_like)
    }

    /// Congestion avoidance of a flow for which nobody chose one.
    pub fn own_avoidance(&self) -> Written<AvoidanceConfig> {
        let own = &self.profile.avoidance;
        Written { text: own.name().to_owned(), value: own.clone() }
    }

    /// A profile with the remaining keys of `spec`. `settle` completes or refuses it before the check.
    fn of_profile(
        spec: &Spec<'_>,
        protocol: Protocol,
        name: &str,
        settle: impl FnOnce(&mut Profile) -> Result<(), String>,
    ) -> Result<Self, InputError> {
        let of_protocol = || {
            let fits = |name: &&str| Profile::named(name).is_some_and(|profile| profile.protocol == protocol);
            PROFILES.iter().map(|(name, _)| *name).filter(fits).collect::<Vec<_>>()
        };
        let profile = Profile::named(name).filter(|profile| profile.protocol == protocol).ok_or_else(|| {
            let (names, meant) = (of_protocol().join(", "), names::suggestion(name, &of_protocol()));
            spec.refused(format_args!("profile `{name}` is not one of {names}{meant}"))
        })?;
        let mut table = toml::Table::try_from(&profile).map_err(|error| spec.refused(error))?;
        let [protocol_key, other_avoidances] = NOT_FOR_USERS;
        if spec.has(protocol_key) {
            return Err(spec.refused(format_args!("the name before the colon, {}, says the protocol", spec.name())));
        }
        if spec.has(other_avoidances) {
            let problem = "other_avoidances is the profile's; allowed is --avoidance with keys of its own";
            return Err(spec.refused(problem));
        }
        let owned_keys = spec.rest()?;
        let keys: Vec<(&str, &str)> = owned_keys.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let before = table.clone();
        let named = receive_window::choose(&keys, &mut table).map_err(|problem| spec.refused(problem))?;
        for &(key, value) in keys.iter().filter(|(key, _)| Some(*key) != named) {
            override_policy(&mut table, key, value, toml_value(value)).map_err(|problem| spec.refused(problem))?;
        }
        let mut profile: Profile = table.try_into().map_err(|error: toml::de::Error| {
            // A key within a group is listed with those of the group.
            let is_policy = unknown_field(&error).is_some_and(|field| keys.iter().any(|(key, _)| *key == field));
            let beside: &[Key] = if is_policy && spec.asked().contains(&PROFILE.name) { &[PROFILE] } else { &[] };
            if let Some(problem) = unknown_key(&error, Vec::new, &NOT_FOR_USERS, beside) {
                return spec.refused(problem);
            }
            unreadable(spec, &error, &owned_keys, |key, value| {
                let (mut table, text) = (before.clone(), value.as_str().unwrap_or_default().to_owned());
                override_policy(&mut table, key, &text, value).ok().filter(|()| Some(key) != named)?;
                table.try_into::<Profile>().err()
            })
        })?;
        profile.startup = profile.resolved(profile.startup.clone());
        settle(&mut profile)
            .and_then(|()| policies::check(&profile))
            .and_then(|()| policies::check_that_keys_act(&profile, &keys))
            .map_err(|problem| spec.refused(problem))?;
        Ok(Self {
            text: spec.text().to_owned(),
            profile_name: name.to_owned(),
            profile: Arc::new(profile),
            stack: None,
        })
    }
}

/// Sets a policy to the value of this text, or with `none` removes it. `ack.every=1` reaches into the group `ack`.
fn override_policy(table: &mut toml::Table, key: &str, text: &str, value: toml::Value) -> Result<(), String> {
    let (target, key) = match key.split_once('.') {
        None => (table, key),
        Some((group, key)) => {
            let groups: Vec<&str> = table.iter().filter(|(_, value)| value.is_table()).map(|(key, _)| &**key).collect();
            let meant = names::suggestion(group, &groups);
            let target = table.get_mut(group).and_then(toml::Value::as_table_mut);
            (target.ok_or_else(|| format!("`{group}` is not a group of policies{meant}"))?, key)
        }
    };
    if text == "none" {
        target.remove(key);
    } else {
        target.insert(key.to_owned(), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
