//! The real QUIC stack as a transport: `quic`, with its options, as in `quic:retry=true,opening=zero-rtt`.
//!
//! | Key | Meaning | Default |
//! |---|---|---|
//! | `retry` | the server asks for a Retry | false |
//! | `hint_policy` | the server's use of a client's hint: `accept`, `ignore`, `cap:rate=20mbit` | accept |
//! | `mtu_discovery` | both ends probe for larger packets | false |
//! | policies of a profile | those that the stack can follow | those of the profile `noq` |

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::path::{PathKnowledge, SavedPath};
use flowstart_core::spec::names;
use flowstart_core::startup::StartupConfig;
use flowstart_quic::hint::policy::{Caps, Evidence, Verdict};
use flowstart_quic::hint::{BandwidthHint, HintPolicy};
use flowstart_quic::{ControllerFactory, Unsupported};
use flowstart_sim::transport::policy::{Opening, Protocol};
use flowstart_sim::transport::profile::Profile;
use serde_json::{Value, json};

use super::Transport;
use crate::spec::{InputError, Spec};

/// The stack.
const STACK: &str = "noq 1.4.0";

/// Options that only a real stack has.
#[derive(Clone, Debug, PartialEq)]
pub struct StackOptions {
    /// The server wants every client's address validated by a Retry packet (RFC 9000, section 8.1.2). Default no.
    pub retry: bool,
    /// The server's use of a client's hint, which is a transport parameter. The server's own link is the hosts' access
    /// link; the best delivery of the client's prefix is that of the saved path. Default: uses the hint.
    pub hint_policy: HintPolicy,
    /// Both ends probe for larger packets (RFC 8899): from `payload` of the profile up to noq's bound, 1452 bytes above
    /// UDP. The simulator's links carry packets of any size. Default no.
    pub mtu_discovery: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self { retry: false, hint_policy: HintPolicy::Accept, mtu_discovery: false }
    }
}

impl StackOptions {
    /// Whether noq and the network around it can run a flow with this profile and these algorithms; else why not.
    pub(crate) fn check(
        &self,
        profile: &Profile,
        startup: &StartupConfig,
        avoidance: &AvoidanceConfig,
    ) -> Result<(), String> {
        let config = profile.controller(startup.clone(), avoidance.clone());
        ControllerFactory::with_config(config).map(|_| ()).map_err(|error| {
            let schemes = ControllerFactory::schemes(avoidance);
            match error {
                Unsupported::Request { .. } => {
                    format!("{error}; allowed are the other keys, or --transport model-quic:profile=noq")
                }
                _ if schemes.is_empty() => error.to_string(),
                _ => format!("{error}; allowed are {}", schemes.join(", ")),
            }
        })
    }

    /// The server's use of a client's hint.
    pub fn hint_policy(&self) -> &HintPolicy {
        &self.hint_policy
    }

    /// Whether both ends probe for larger packets.
    pub fn mtu_discovery(&self) -> bool {
        self.mtu_discovery
    }

    /// Whether servers on sockets can follow it.
    pub(crate) fn is_of_sockets(&self) -> bool {
        !self.retry
    }

    /// What becomes of a client's hint by the server's policy, which knows this.
    pub(crate) fn judge(&self, hint: &BandwidthHint, known: &PathKnowledge) -> Verdict {
        let delivered = known.saved.as_ref().and_then(SavedPath::rate);
        let evidence = Evidence { link: known.interface_rate, delivered, ..Evidence::default() };
        self.hint_policy.decide(hint, &evidence)
    }

    /// The stack and its options for `summary.json`.
    pub(crate) fn resolved(&self) -> Value {
        let Self { retry, hint_policy, mtu_discovery } = self;
        json!({"name": STACK, "retry": retry, "hint_policy": hint_policy.to_string(), "mtu_discovery": mtu_discovery})
    }
}

/// Policies of a profile, and groups of them, that the real stack can follow. All others are the stack's own.
const STACK_KEYS: [&str; 23] = [
    "opening",
    "token",
    "payload",
    "receive_window",
    "initial_window",
    "min_window",
    "max_window",
    "timeout_window",
    "timeout_reduction",
    "slow_start_after_timeout",
    "increase",
    "reduction",
    "reduction_base",
    "growth",
    "transition_growth",
    "packet_threshold",
    "time_threshold",
    "initial_timeout",
    "idle",
    "ecn",
    "scone",
    "startup",
    "avoidance",
];
/// The controller sets the pacing gains or turns pacing off; the stack sets the bursts.
const STACK_PACING: [&str; 3] = ["pacing", "pacing.startup_gain", "pacing.avoidance_gain"];
/// Acknowledgement policies that a server can request from its client.
const STACK_ACK: [&str; 2] = ["ack.every", "ack.max_delay"];

/// Keys that are no policies of a profile.
const OWN: [&str; 3] = ["retry", "hint_policy", "mtu_discovery"];

/// Reads the real stack's options.
pub(super) fn read(spec: &mut Spec<'_>) -> Result<Transport, InputError> {
    let defaults = StackOptions::default();
    let options = StackOptions {
        retry: flag(spec, "retry")?.unwrap_or(defaults.retry),
        hint_policy: hint_policy(spec)?.unwrap_or(defaults.hint_policy),
        mtu_discovery: flag(spec, "mtu_discovery")?.unwrap_or(defaults.mtu_discovery),
    };
    let of_stack = |key: &str| {
        let group = key.split_once('.').map_or(key, |(group, _)| group);
        STACK_KEYS.contains(&group) || STACK_PACING.contains(&key) || STACK_ACK.contains(&key)
    };
    if let Some((key, _)) = spec.rest()?.into_iter().find(|(key, _)| !of_stack(key)) {
        let all = [&OWN[..], &STACK_KEYS, &STACK_PACING, &STACK_ACK].concat();
        let (meant, allowed) = (names::suggestion(&key, &all), all.join(", "));
        return Err(spec.refused(format_args!("`{key}` is not for the real stack{meant}; allowed is {allowed}")));
    }
    let settle = |profile: &mut Profile| {
        if profile.opening == Opening::Sender {
            return Err("opening is sender; allowed is request or zero-rtt".to_owned());
        }
        if profile.time_threshold.is_none() {
            return Err("time_threshold is none, which the stack cannot do; allowed is 0.1 to 100".to_owned());
        }
        let overhead = profile.overhead_in_flight;
        let (least, most) = (1200 - overhead, 65_000 - overhead);
        if !(least..=most).contains(&profile.payload) {
            return Err(format!("payload is {}; allowed is {least} to {most} bytes", profile.payload));
        }
        profile.segment = profile.payload + overhead;
        Ok(())
    };
    let model = Transport::of_profile(spec, Protocol::Quic, "noq", settle)?;
    Ok(Transport { stack: Some(options), ..model })
}

fn flag(spec: &mut Spec<'_>, key: &'static str) -> Result<Option<bool>, InputError> {
    let value = spec.value(key)?;
    let read = |value: &str| value.parse().map_err(|_| format!("{key} is `{value}`; allowed is true or false"));
    value.map(read).transpose().map_err(|problem| spec.refused(problem))
}

/// A server's use of hints: those policies of `flowstart serve` that concern one connection. Only one cap is possible,
/// because a comma ends the value.
fn hint_policy(spec: &mut Spec<'_>) -> Result<Option<HintPolicy>, InputError> {
    let Some(text) = spec.value("hint_policy")? else { return Ok(None) };
    let allowed = "accept, ignore, validate:share=0.5, or cap: with one of rate=50mbit, link=0.5, history=4, age=3600s";
    match text.parse() {
        Ok(HintPolicy::Cap(Caps { prefix: Some(_), .. })) => {
            let problem = "hint_policy: a total per prefix is for `flowstart serve`; allowed is";
            Err(spec.refused(format_args!("{problem} {allowed}")))
        }
        Ok(policy) => Ok(Some(policy)),
        Err(_) => Err(spec.refused(format_args!("hint_policy is `{text}`; allowed is {allowed}"))),
    }
}

#[cfg(test)]
mod tests {
    use flowstart_core::units::Bytes;

    use super::*;

    #[test]
    fn the_real_stack_takes_what_it_can_be_told() {
        let parse = |keys: &str| Transport::parse("--transport", &format!("quic{keys}"));
        let transport = parse(":retry=true,opening=zero-rtt,receive_window=2MB,pacing.startup_gain=1.5").unwrap();
        assert_eq!(transport.stack, Some(StackOptions { retry: true, ..StackOptions::default() }));
        let capped = parse(":hint_policy=cap:rate=20mbit,retry=true").unwrap().stack.unwrap();
        assert_eq!(capped.hint_policy.to_string(), "cap:rate=20mbit");
        assert!(parse(":mtu_discovery=true").unwrap().stack.unwrap().mtu_discovery);
        assert_eq!(transport.profile.opening, Opening::ZeroRtt);
        assert_eq!(transport.profile.receive_window, Bytes::new(2_000_000));
        assert_eq!(*parse("").unwrap().profile, Profile::noq());
        assert_eq!(*parse(":ack.every=2,ack.max_delay=25ms").unwrap().profile, Profile::noq());
        assert_eq!(parse(":payload=1400,ack.every=10").unwrap().profile.segment, 1432);
        for (keys, problem) in [
            (":pipe=classic", "`pipe` is not for the real stack"),
            (":pacing.burst=3", "`pacing.burst` is not for the real stack"),
            (":initial_receive_window=1MB", "`initial_receive_window` is not for the real stack"),
            (":ack.quick=1000", "`ack.quick` is not for the real stack"),
            (":ack.compression=1s", "`ack.compression` is not for the real stack; allowed is retry"),
            (":ack.while_growing=true", "avoidance_gain, ack.every, ack.max_delay"),
            (":time_threshold=none", "allowed is 0.1 to 100"),
            (":opening=sender", "allowed is request or zero-rtt"),
            (":payload=500", "allowed is 11"),
            (":retry=yes", "allowed is true or false"),
            (":mtu_discovery=1500", "mtu_discovery is `1500`; allowed is true or false"),
            (":hint_policy=half", "hint_policy is `half`; allowed is accept, ignore"),
            (":hint_policy=cap:prefix=5mbit", "a total per prefix is for `flowstart serve`"),
            (":initial_window=0", "initial_window is 0"),
        ] {
            let error = parse(keys).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
