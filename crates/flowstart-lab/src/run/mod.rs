//! One repetition: the competitor's warm-up, a fork of the world for every newcomer, and one fork without newcomers.
//!
//! | Step | Where |
//! |---|---|
//! | every cell of a setting, or a replay of one cell | [`repetition`] |
//! | hosts, routers and elements of a link | `place.rs` |
//! | the competitor establishes itself | [`warm_up`], [`epochs`] |
//! | knowledge of Sensing | `knowledge.rs` |
//! | newcomers: their transfers, until they are complete | [`newcomers`] |
//! | proxies that split their connections | `proxy.rs` |
//! | their outcomes | [`outcome`] |
//! | their cost to the others | [`harm`] |
//! | web sessions in place of newcomers | [`web`] |
//! | interactive media beside them, and its quality | [`media`], [`quality`] |
//! | video calls beside them | [`call`] |
//! | the queue discipline that knows the truth | [`oracle`] |
//! | transfers outside the simulator | [`testbed`] |

#[cfg(test)]
mod applications_tests;
pub mod call;
pub mod epochs;
pub mod harm;
pub mod knowledge;
pub mod media;
pub mod newcomers;
pub mod oracle;
pub mod outcome;
mod place;
mod proxy;
pub mod quality;
pub mod repetition;
pub mod testbed;
#[cfg(test)]
mod tests;
pub mod warm_up;
pub mod web;
