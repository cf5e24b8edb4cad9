//! The lab: what users write becomes a study, a study becomes runs, runs become results and a report.
//!
//! An experiment's way, from top to bottom:
//!
//! | Step | Where |
//! |---|---|
//! | what users write: links, schemes, competitors, transports | [`spec`] |
//! | scenario files and the cells of an experiment | [`study`] |
//! | real QUIC ends of measured flows, if the feature `quic` is on | [`ends`] |
//! | one repetition: warm-up, fork, newcomers, counterfactual | [`run`] |
//! | what a run shows while it goes on, why it took so long, and files for other tools | [`trace`] |
//! | rows, summaries, the journal and the folder of an experiment | [`results`] |
//! | all repetitions, on all cores | [`experiment`] |
//! | what a report says | [`report`] |
//! | from the first run to the folder of results | [`perform`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod ends;
pub mod experiment;
pub mod perform;
pub mod report;
pub mod results;
pub mod run;
pub mod spec;
pub mod study;
pub mod trace;
