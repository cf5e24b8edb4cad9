//! The charts, each a Vega-Lite specification with the words and the legend around it.
//!
//! A chart is one complete specification, the one that «chart specification» downloads. On the page a `grid` chart is
//! taken apart into its panels, so that they flow into as many columns as the screen has room for. A `stack` keeps its
//! panels together because they share a zoomable time axis. A `forest` has two drawings, of which the page shows the
//! one that fits the screen.
//!
//! | File | Charts |
//! |---|---|
//! | `forest.rs` | every comparison in a row: speed-up with interval, and its cost |
//! | `heat.rs` | speed-up where two things vary |
//! | `distribution.rs` | CDFs of completion times, queueing delays, shares and drops |
//! | `load.rs` | mean FCT against the offered load |
//! | `sizes.rs` | speed-up against the transfer size |
//! | `curves.rs` | metrics against what the experiment varies |
//! | `scatter.rs` | each connection's FCT against its size |
//! | `cost.rs` | FCT over the limit against inflation and harm |
//! | `media.rs` | one-way delay of interactive media |
//! | `pairs.rs` | AQM and scheme together: FCT against the peak of the queue |
//! | `waterfall.rs` | where the time went |
//! | `published.rs` | our speed-up against the published one |
//! | `series.rs` | a run as time series |
//! | `startups.rs` | what each scheme sends, in one picture |
//! | `sequence.rs` | a traced run, segment by segment |
//! | `variables.rs` | inner variables of a traced run's algorithms |
//! | `overlay.rs` | traced runs of several schemes |
//!
//! They are made of these, of which each uses only those above it:
//!
//! | File | Part |
//! |---|---|
//! | `style.rs` | colours, dashes and shapes |
//! | `legend.rs` | entries of legends |
//! | `document.rs` | a chart and its specification |
//! | `table.rs` | the data of a specification |
//! | `key.rs` | which cell has which colour, dash and shape |
//! | `panel.rs` | panels over time |

mod cost;
mod curves;
mod distribution;
mod document;
mod forest;
mod heat;
mod key;
mod legend;
mod lines;
mod load;
mod media;
mod overlay;
mod pairs;
mod panel;
mod published;
mod scatter;
mod sequence;
mod series;
mod sizes;
mod startups;
mod style;
mod table;
mod ticks;
mod variables;
mod waterfall;

pub(crate) use cost::pareto;
pub(crate) use curves::curves;
pub(crate) use distribution::distributions;
pub(crate) use document::Chart;
pub(crate) use forest::{changes, forest};
pub(crate) use heat::heat;
pub(crate) use key::Key;
pub(crate) use legend::LegendItem;
pub(crate) use load::loads;
pub(crate) use media::media;
pub(crate) use overlay::{domain, overlay};
pub(crate) use pairs::pairs;
pub(crate) use published::published;
pub(crate) use scatter::scatter;
pub(crate) use sequence::{numbered_events, time_domain, trace};
pub(crate) use series::{Extent, run, run_legend};
pub(crate) use sizes::sizes;
pub(crate) use startups::startups;
pub use style::series_colours;
pub(crate) use variables::variables;
pub use waterfall::cause_colours;
pub(crate) use waterfall::waterfall;
