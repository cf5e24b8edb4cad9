//! Which start a fleet should use, or which queue its links: its transfers, with each choice, and a recommendation.
//!
//! | Step | Where |
//! |---|---|
//! | a table from what connections showed of their paths | [`observed`] |
//! | the fleet's transfers, from a table | [`population`] |
//! | what a question is about: schemes, or the queues of links | [`choices`] |
//! | each transfer with each choice | [`measured`] |
//! | the choice, within a budget, and for whom it is worse | [`recommendation`] |
//! | the recommendation in words | [`answer`] |
//! | the recommendation as files and as the contents of a page | [`files`], [`page`] |

pub mod answer;
pub mod choices;
pub mod files;
pub mod measured;
pub mod observed;
pub mod page;
pub mod population;
pub mod recommendation;
