//! A startup scheme beside all others, on links, traffic and knowledge that were drawn before it was tuned.
//!
//! | Looking for | Where |
//! |---|---|
//! | the cells, and how they are drawn | [`sets`], [`draw`] |
//! | cells that a search has found | `worst` |
//! | what is known of a cell's path | [`knowledge`] |
//! | what each scheme does in a cell | [`cells`], [`runs`] |
//! | running a set, or a part of it | [`mod@perform`] |
//! | results on disk, and going on where a run stopped | [`journal`] |
//! | who beats whom | [`beats`] |
//! | what the scheme in question has to reach | [`bars`] |
//! | how far schemes are from the best | [`regret`] |
//! | the results in words | [`page`] |
//!
//! The scheme in question is a parameter. A set of cells is fixed: its checksum stands beside its seed. The scheme is
//! tuned on one set and judged on the other.

pub mod bars;
pub mod beats;
pub mod cells;
pub mod draw;
pub mod journal;
pub mod knowledge;
pub mod page;
pub mod perform;
pub mod regret;
pub mod runs;
pub mod sets;
mod worst;
