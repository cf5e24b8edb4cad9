//! A study: what an experiment runs, from a scenario file to its cells.
//!
//! | Looking for | Where |
//! |---|---|
//! | scenario files | [`scenario`] |
//! | those that come with the program | [`shipped`] |
//! | the cells of an experiment | [`plan`] |
//! | the physical limit of a transfer | [`ideal`] |

pub mod ideal;
pub mod plan;
mod rules;
pub mod scenario;
pub mod shipped;
