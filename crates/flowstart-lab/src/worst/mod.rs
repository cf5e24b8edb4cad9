//! The settings in which a scheme is worst: the search for them, and the smallest that shows it.
//!
//! | Step | Where |
//! |---|---|
//! | links, traffic and knowledge among which it looks | [`dimension`], [`space`] |
//! | what is bad, and how bad | [`measure`] |
//! | the worst setting | [`search`] |
//! | the same with less that is special | [`smallest`] |
//! | the results in words | [`answer`] |

pub mod answer;
pub mod dimension;
pub mod measure;
pub mod search;
pub mod smallest;
pub mod space;
