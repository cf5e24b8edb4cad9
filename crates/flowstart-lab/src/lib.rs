//! The lab: scenarios become plans, plans become runs, runs become statistics and reports.
//!
//! | Looking for | Where |
//! |---|---|
//! | what users write: links, schemes, competitors, transports | [`spec`] |
//! | scenario files | [`scenario`] |
//! | the cells of an experiment | [`plan`] |
//! | flows with real QUIC ends, if the feature `quic` is on | [`quic`] |
//! | what a capture at their senders has | [`capture`] |
//! | one repetition: warm-up, fork, newcomer, counterfactual | [`run`] |
//! | the same for web sessions | [`web`] |
//! | the physical limit of a transfer | [`ideal`] |
//! | where the time of a transfer went | [`explain`] |
//! | what a report shows of a run, made while it goes on | [`observe`] |
//! | a row per flow and repetition, CSV and Parquet | [`flows`] |
//! | load transients and how queue disciplines control them | [`transient`] |
//! | statistics | [`statistics`] |
//! | `summary.json` and `manifest.json` | [`summary`] |
//! | the report | [`report`], [`report_input`] |
//! | an experiment from plan to files | [`experiment`] |
//! | published figures and reference runs | [`validate`] |
//! | real connections: a server's qlog files compared by scheme | [`analyze`] |

pub mod analyze;
pub mod capture;
pub mod experiment;
pub mod explain;
pub mod flows;
pub mod ideal;
pub mod journal;
pub mod media;
pub mod observe;
pub mod pairs;
pub mod plan;
pub mod quality;
#[cfg(feature = "quic")]
pub mod quic;
#[cfg(not(feature = "quic"))]
#[path = "without_quic.rs"]
pub mod quic;
pub mod report;
pub mod report_input;
pub mod run;
pub mod scenario;
pub mod spec;
pub mod summary;
pub mod trace_export;
pub mod transient;
pub mod validate;
pub mod web;

pub use flowstart_statistics as statistics;
