//! A report is made of these. All of it is plain, owned and serializable, and nothing here draws.
//!
//! | File | holds |
//! |---|---|
//! | `report.rs` | a comparison: all of the below |
//! | `link.rs` | a link |
//! | `cell.rs` | a cell: what all repetitions of one combination measured |
//! | `estimate.rs` | a mean with its interval |
//! | `causes.rs` | where the time of a run went |
//! | `pairs.rs` | AQM and scheme together |
//! | `change.rs` | a question answered twice, before and after |
//! | `fleet.rs` | a question about a fleet |
//! | `published.rs` | a publication's numbers beside ours |
//! | `run.rs` | a repetition as time series |
//! | `method.rs` | how the numbers were obtained |
//! | `trace.rs` | a single run in all detail, and one with each of several schemes |
//! | `verdict.rs` | what a comparison shows |

mod causes;
mod cell;
mod change;
mod estimate;
mod fleet;
mod link;
mod method;
mod pairs;
mod published;
mod report;
mod run;
mod trace;
mod verdict;

pub use causes::{CAUSES, Cause, Causes};
pub use cell::{Call, Cell, CurvePoint, Media, Samples, Time};
pub use change::{Change, ChangeReport, Side};
pub use estimate::Estimate;
pub use fleet::{FleetChoice, FleetKind, FleetReport};
pub use link::Link;
pub use method::{DataFile, Method};
pub use pairs::{Pair, PairedSetting, SecondCriterion};
pub use published::{Check, PublishedCell, PublishedTable};
pub use report::Report;
pub use run::{ExampleRun, RunFlow};
pub use trace::{OverlayReport, TraceEvent, TraceEventKind, TraceReport, TraceVariable};
pub use verdict::{Certainty, Kind, Verdict, WASTE};
