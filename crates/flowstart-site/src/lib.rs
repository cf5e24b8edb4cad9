//! The lab as files for any web server.
//!
//! | Looking for | Where |
//! |---|---|
//! | what a page can ask of the simulator beside it | `desk.rs` |
//! | the functions by which JavaScript asks it | `boundary.rs` |
//! | the files | `files/` |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(target_family = "wasm")]
mod boundary;
mod desk;
mod files;

pub use desk::Desk;
pub use files::write;
