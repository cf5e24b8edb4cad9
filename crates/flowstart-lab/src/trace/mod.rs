//! What one run shows.
//!
//! | Looking for | Where |
//! |---|---|
//! | what controllers decide, in words | [`decisions`] |
//! | a run with everything that happened in it, in memory | [`traced`] |
//! | where the time of a transfer went | [`explain`] |
//! | what a report shows of a run, made while it goes on | [`observe`] |
//! | a run as a page and as files for other tools | [`export`] |

pub mod decisions;
pub mod explain;
pub mod export;
pub mod observe;
pub mod traced;
