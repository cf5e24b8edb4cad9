//! Observation: the counts of each flow, the packets at a link, and every event of a run.

pub mod monitor;
pub mod record;
pub mod trace;
