//! What happened: the counts of each flow, what passed a link, and every event of a run.

pub mod monitor;
pub mod record;
pub mod trace;
