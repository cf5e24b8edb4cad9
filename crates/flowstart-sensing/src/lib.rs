//! Inputs of flow startup that need I/O: what `flowstart_core::path::PathKnowledge` may be filled from.
//!
//! | Looking for | Where | Fills |
//! |---|---|---|
//! | what earlier connections saved per destination, and initial windows learned from it | [`path_store`] | `saved` |
//! | a share of the window of parallel connections to the same peer | [`shared_window`] | |
//! | the speed of the interface towards a destination | [`interface`] | `interface_rate` |
//! | the rate, or size and deadline, that the application asks for | [`application_request`] | `requested_rate` |
//! | a service that tells others what connections saw, and its client | [`oracle`] | `oracle_rate` |
//! | what a client can find out about its access link, and what it tells of it | [`estimator`] | `hint` |
//!
//! Everything here is a hint that may be missing, late or wrong: an error is told, and startup goes on without it.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod application_request;
pub mod estimator;
pub mod interface;
pub mod oracle;
pub mod path_store;
pub mod shared_window;

/// Longer than anything that ends takes, on a machine however busy. What has no bound lasts longer.
#[cfg(test)]
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Says why a test cannot run here. With `CI=true` in the environment all of them have to.
#[cfg(test)]
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI=true requires this test, which cannot run: {reason}");
    eprintln!("skipped: {reason}");
}
