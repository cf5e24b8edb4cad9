//! The real QUIC stack as a transport: `quic`, with what it can be told.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_quic::hint::HintPolicy;
use flowstart_quic::hint::policy::Caps;
use flowstart_quic::{ControllerFactory, Unsupported};
use flowstart_sim::transport::policy::Opening;
use flowstart_sim::transport::profile::Profile;
use serde_json::{Value, json};

use super::transport::Transport;
use super::{InputError, Parts};

/// The stack.
const STACK: &str = "noq 1.4.0";

/// What only a real stack can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct StackOptions {
    /// The server wants every client's address validated by a Retry packet (RFC 9000, section 8.1.2). Default no.
    pub retry: bool,
    /// What the server does with a client's hint, which comes as a transport parameter. Its own link is the hosts' access link,
    /// and what the client's prefix ever delivered is what the saved path remembers. Default: uses it.
    pub hint_policy: HintPolicy,
    /// Both ends look for larger packets (RFC 8899): from `payload` of the profile up to noq's bound, 1452 bytes above UDP. The
    /// simulator's links carry packets of any size. Default no.
    pub mtu_discovery: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self { retry: false, hint_policy: HintPolicy::Accept, mtu_discovery: false }
    }
}

impl StackOptions {
    /// Whether noq can run a flow with this profile and these algorithms; what it cannot run, and why.
    pub(crate) fn check(
        &self,
        profile: &Profile,
        startup: &StartupConfig,
        avoidance: &AvoidanceConfig,
    ) -> Result<(), Unsupported> {
        ControllerFactory::with_config(profile.controller(startup.clone(), avoidance.clone())).map(|_| ())
    }

    /// The stack and its options for `summary.json`.
    pub(crate) fn resolved(&self) -> Value {
        let Self { retry, hint_policy, mtu_discovery } = self;
        json!({"name": STACK, "retry": retry, "hint_policy": hint_policy.to_string(), "mtu_discovery": mtu_discovery})
    }
}

/// What the real stack can be told: policies of its profile, and groups of them. All others are the stack's own.
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
/// Gains and absence of pacing are the controller's; bursts are the stack's.
const STACK_PACING: [&str; 3] = ["pacing", "pacing.startup_gain", "pacing.avoidance_gain"];
/// What a server can ask its client to do about acknowledgements.
const STACK_ACK: [&str; 2] = ["ack.every", "ack.max_delay"];

/// Reads the real stack's options.
pub(super) fn parse(field: &str, text: &str, parts: &Parts<'_>) -> Result<Transport, InputError> {
    let refused = |problem: String| InputError::new(field, text, problem);
    let mut options = StackOptions::default();
    let mut policies = String::from("model-quic:profile=noq");
    for (key, value) in &parts.keys {
        let group = key.split_once('.').map_or(*key, |(group, _)| group);
        match (*key, *value) {
            ("retry", value) => options.retry = flag("retry", value).map_err(refused)?,
            ("mtu_discovery", value) => options.mtu_discovery = flag("mtu_discovery", value).map_err(refused)?,
            ("hint_policy", policy) => {
                options.hint_policy = hint_policy(policy).map_err(refused)?;
            }
            _ if STACK_KEYS.contains(&group) || STACK_PACING.contains(key) || STACK_ACK.contains(key) => {
                policies.push_str(&format!(",{key}={value}"));
            }
            _ => {
                let own = ["retry", "hint_policy", "mtu_discovery"];
                let allowed = [&own[..], &STACK_KEYS, &STACK_PACING, &STACK_ACK].concat().join(", ");
                return Err(refused(format!("`{key}` is not for the real stack; allowed is {allowed}")));
            }
        }
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
    let model = Transport::settled(field, &policies, settle).map_err(|error| refused(error.problem))?;
    Ok(Transport { text: text.to_owned(), stack: Some(options), ..model })
}

fn flag(key: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("{key} is `{value}`; allowed is true or false"))
}

/// What a server does with hints: the policies of `flowstart serve` that concern one connection, and one cap at a time, because
/// a comma ends the value.
fn hint_policy(text: &str) -> Result<HintPolicy, String> {
    let allowed = "accept, ignore, validate:share=0.5, or cap: with one of rate=50mbit, link=0.5, history=4, age=3600s";
    match text.parse() {
        Ok(HintPolicy::Cap(Caps { prefix: Some(_), .. })) => {
            Err(format!("hint_policy: a total per prefix is for `flowstart serve`; allowed is {allowed}"))
        }
        Ok(policy) => Ok(policy),
        Err(_) => Err(format!("hint_policy is `{text}`; allowed is {allowed}")),
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
