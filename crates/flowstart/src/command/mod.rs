//! The subcommands.

pub(crate) mod analyze;
mod axes;
pub(crate) mod break_scheme;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod judge;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod oracle;
pub(crate) mod perf;
#[cfg(target_os = "linux")]
mod real_link;
pub(crate) mod recommend;
#[cfg(target_os = "linux")]
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod router;
pub(crate) mod run;
#[cfg(target_os = "linux")]
pub(crate) mod scone_element;
pub(crate) mod serve;
pub(crate) mod tcp;
#[cfg(target_os = "linux")]
pub(crate) mod testbed;
pub(crate) mod trace;
pub(crate) mod trial;
pub(crate) mod ui;
pub(crate) mod validate;
