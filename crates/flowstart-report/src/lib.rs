//! Results become one self-contained HTML page.
//!
//! [`render`] writes the page of a comparison, [`render_changes`] that of two runs of one question, [`render_fleet`]
//! that of a question about a fleet, [`render_trace`] that of a single run, and [`render_overlay`] that of one run with
//! each of several schemes. They take plain data and
//! return the page as a string. Style, script, charts and the libraries that draw them are inside it, and the page
//! requests nothing from anywhere.
//!
//! ```
//! use flowstart_report::{Cell, Estimate, Report, render};
//!
//! let fct = Estimate { mean: Some(812.0), ci95: Some([790.0, 835.0]) };
//! let cell = Cell { scheme: "slow-start".into(), size: "2MB".into(), fct_ms: fct, ..Cell::default() };
//! let page = render(&Report { title: "A first look".into(), cells: vec![cell], ..Report::default() })?;
//! assert!(page.contains("A first look") && page.contains("812"));
//! # Ok::<(), flowstart_report::RenderError>(())
//! ```
//!
//! Every number may be missing: `None`, NaN and infinity all mean "undefined". The page shows an en dash.
//!
//! Each module uses only those above it:
//!
//! | Module | Job |
//! |---|---|
//! | `data/` | is what a report is made of: [`Report`] and [`TraceReport`], and what stands in them |
//! | `error.rs` | says why a page could not be written |
//! | `number.rs` | writes numbers for people |
//! | `command.rs` | writes commands as the reader can paste them |
//! | `reduce.rs` | makes series small enough to embed |
//! | `group.rs` | says which cells stand together, and what they are called |
//! | `baseline.rs` | says what each cell is compared with |
//! | `names.rs` | shortens what users wrote, and keeps what differs |
//! | `time.rs` | says what the time of cells is called |
//! | `pareto.rs` | says which scheme beats which |
//! | `verdict.rs` | says how the verdict on a comparison looks |
//! | `chart/` | writes the Vega-Lite specifications, a file for each chart |
//! | `page/` | writes the sections of a page, a file for each, and fills the templates |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod baseline;
mod chart;
mod command;
mod data;
mod digits;
mod error;
mod group;
mod names;
mod number;
mod page;
mod pareto;
mod reduce;
#[cfg(test)]
mod tests;
mod time;
mod verdict;

pub use chart::{cause_colours, series_colours};
pub use data::{
    CAUSES, Call, Cause, Causes, Cell, Certainty, Change, ChangeReport, Check, CurvePoint, DataFile, Estimate,
    ExampleRun, FleetChoice, FleetKind, FleetReport, Kind, Link, Media, Method, OverlayReport, Pair, PairedSetting,
    PublishedCell, PublishedTable, Report, RunFlow, Samples, SecondCriterion, Side, Time, TraceEvent, TraceEventKind,
    TraceReport, TraceVariable, Verdict, WASTE,
};
pub use digits::digits_apart;
pub use error::RenderError;
pub use names::own_keys;
pub use number::Format;
pub use page::{STYLE, render, render_changes, render_fleet, render_overlay, render_trace};
pub use verdict::legend;
