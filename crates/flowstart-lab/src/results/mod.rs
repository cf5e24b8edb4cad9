//! The results of an experiment.
//!
//! | Looking for | Where |
//! |---|---|
//! | a row per flow and repetition, and its metrics | [`row`], [`metric`] |
//! | rows as CSV and Parquet | [`flows`] |
//! | `summary.json` | [`summary`], [`cell_summary`], [`comparison`], [`pairs`] |
//! | how sure intervals of few repetitions are | [`coverage`] |
//! | `manifest.json`, and the experiment that rows belong to | [`manifest`], [`identity`] |
//! | rows on disk while an experiment runs | [`journal`] |
//! | the folder and its files | [`folder`], [`files`] |
//! | results that were written earlier | [`stored`] |

pub mod cell_summary;
pub mod comparison;
pub mod coverage;
pub mod felt;
pub mod files;
pub mod flows;
pub mod folder;
pub mod harm;
pub mod identity;
pub mod journal;
pub mod manifest;
pub mod metric;
pub mod pairs;
pub mod row;
pub mod stored;
pub mod summary;
