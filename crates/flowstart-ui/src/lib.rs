//! The lab in the browser.
//!
//! A question stands in the address of its page, with the names of the options of `flowstart compare`; its runs come as
//! events, and its answer is the report of the lab. With the feature `server`, on by default, `serve` answers over
//! HTTP/1.1. Without it what is left needs no threads, files, clock or network, so it also runs inside a browser.
//!
//! | Looking for | Where |
//! |---|---|
//! | what may be asked, and from where it is read | `question/` |
//! | what can be chosen | `choices.rs` |
//! | the runs of a question, as events | `ask/` |
//! | pages | `page/`, `templates/` |
//! | results that were written before, and records | `results/` |
//! | connections, who may ask, which address leads where, answers that are kept | `server/` |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ask;
mod choices;
mod page;
mod question;
#[cfg(feature = "server")]
mod results;
#[cfg(feature = "server")]
mod server;

pub use ask::{Answered, Event, Program, Published, perform};
pub use choices::{Choice, Choices};
pub use page::answer::event as answer_of;
pub use page::assets::assets;
pub use page::lab::{asked, page as lab_page};
pub use page::packets::page as packets_page;
pub use page::{Site, problem as problem_page};
pub use question::{MOST_REPS, Question, Refusal, Run};
#[cfg(feature = "server")]
pub use results::{Folder, FolderError};
#[cfg(feature = "server")]
pub use server::{Guard, Lab, serve, token};
