//! Observations of one run.
//!
//! | Looking for | Where |
//! |---|---|
//! | decisions of controllers, in words | [`decisions`] |
//! | a run with all its events, in memory | [`traced`] |
//! | the causes of a transfer's delay | [`explain`] |
//! | a run with its causes, in words | [`explained`] |
//! | observations for a report, made during the run | [`observe`] |
//! | a run as a page and as files for other tools | [`export`] |
//! | the packets of a run, from host to host | [`packets`] |

pub mod decisions;
pub mod explain;
pub mod explained;
pub mod export;
pub mod observe;
pub mod packets;
pub mod traced;
