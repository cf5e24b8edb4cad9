//! Observations of one run.
//!
//! | Looking for | Where |
//! |---|---|
//! | decisions of controllers, in words | [`decisions`] |
//! | a run with all its events, in memory | [`traced`] |
//! | the causes of a transfer's delay | [`explain`] |
//! | observations for a report, made during the run | [`observe`] |
//! | a run as a page and as files for other tools | [`export`] |

pub mod decisions;
pub mod explain;
pub mod export;
pub mod observe;
pub mod traced;
