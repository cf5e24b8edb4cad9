//! Inputs of flow startup that need I/O: the sources of `flowstart_core::path::PathKnowledge`.
//!
//! | Looking for | Where | Fills |
//! |---|---|---|
//! | measurements of earlier connections per destination | [`path_store`] | `saved` |
//! | the speed of the interface towards a destination | [`interface`] | `interface_rate` |
//! | a name for the network through which connections leave | [`access_network`] | |
//! | the rate, or size and deadline, that the application asks for | [`application_request`] | `requested_rate` |
//! | a service that tells others what connections measured, and its client | [`oracle`] | `oracle_rate` |
//! | a client's estimates of its access link, and its hints | [`estimator`] | `hint` |
//!
//! Every input may be missing, late or wrong. Functions return an error, and startup goes on without the input.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod access_network;
pub mod application_request;
pub mod estimator;
pub mod interface;
pub mod oracle;
pub mod path_store;

/// Longer than any bounded call takes, even on a busy machine. An unbounded call lasts longer.
#[cfg(test)]
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Says why a test cannot run here. With `CI=true` in the environment all of them have to.
#[cfg(test)]
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which cannot run: {reason}");
    eprintln!("skipped: {reason}");
}
