//! The lab turns user input into a study, a study into runs, and runs into results and a report.
//!
//! The steps of an experiment, from top to bottom:
//!
//! | Step | Where |
//! |---|---|
//! | user input: links, schemes, competitors, transports | [`spec`] |
//! | scenario files and the cells of an experiment | [`study`] |
//! | real QUIC ends of measured flows, if the feature `quic` is on | [`ends`] |
//! | one repetition: warm-up, fork, newcomers, counterfactual | [`run`] |
//! | observations of a run, causes of its delay, and files for other tools | [`trace`] |
//! | rows, summaries, the journal and the folder of an experiment | [`results`] |
//! | all repetitions, on all cores | [`experiment`] |
//! | what users may name, with its parameters | [`catalogue`] |
//! | the contents of a report | [`report`] |
//! | from the first run to the folder of results | [`perform`] |
//! | which start a fleet should use | [`fleet`] |
//! | the settings in which a scheme is worst | [`worst`] |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod catalogue;
pub mod ends;
pub mod experiment;
pub mod fleet;
pub mod perform;
pub mod report;
pub mod results;
pub mod run;
pub mod spec;
pub mod study;
pub mod trace;
pub mod worst;
