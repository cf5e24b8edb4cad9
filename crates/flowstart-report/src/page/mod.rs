//! A page is a template that is filled with sections.
//!
//! `comparison.rs`, `changes.rs`, `fleet.rs`, `trace.rs` and `overlay.rs` each make a page. `template.rs` has the
//! templates and fills them. The other files make what a section of a template shows:
//!
//! | File | Section |
//! |---|---|
//! | `setup.rs` | the set-up drawing and the table of links |
//! | `table.rs` | the table of cells |
//! | `published.rs` | our numbers beside those of a publication |
//! | `media.rs` | what happened to interactive media |
//! | `pairs.rs` | the pairs of AQM and scheme that nobody beats |
//! | `unbeaten.rs` | the schemes that nobody beats |
//! | `causes.rs` | where the time went, in numbers |
//! | `series.rs` | runs as time series |
//! | `method.rs` | how the numbers were obtained |
//!
//! `mark.rs` has the numbers and verdicts of the tables, `text.rs` the reader's sentences.

mod causes;
mod changes;
mod comparison;
mod fleet;
mod mark;
mod media;
mod method;
mod overlay;
mod pairs;
mod published;
mod series;
mod setup;
mod table;
mod template;
mod text;
mod trace;
mod unbeaten;

pub use changes::render_changes;
pub use comparison::render;
pub use fleet::render_fleet;
pub use overlay::render_overlay;
pub use template::STYLE;
pub use trace::render_trace;
