//! Replaces the options of the real QUIC stack in a program without the feature `quic`. The type has no values, because
//! nobody can choose the stack.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::startup::StartupConfig;
use flowstart_quic::hint::HintPolicy;
use flowstart_sim::transport::profile::Profile;
use serde_json::Value;

use super::Transport;
use crate::spec::{InputError, Spec};

/// Options of a missing stack.
#[derive(Clone, Debug, PartialEq)]
pub enum StackOptions {}

impl StackOptions {
    pub(crate) fn check(&self, _: &Profile, _: &StartupConfig, _: &AvoidanceConfig) -> Result<(), String> {
        match *self {}
    }

    /// The server's use of a client's hint.
    pub fn hint_policy(&self) -> &HintPolicy {
        match *self {}
    }

    /// Whether both ends probe for larger packets.
    pub fn mtu_discovery(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_of_sockets(&self) -> bool {
        match *self {}
    }

    pub(crate) fn resolved(&self) -> Value {
        match *self {}
    }
}

/// Refuses the real stack.
pub(super) fn read(spec: &mut Spec<'_>) -> Result<Transport, InputError> {
    let problem = "the real stack is not in this program, which was built without the feature `quic`; \
                   use model-quic:profile=noq";
    Err(spec.refused(problem))
}
