//! Which start a fleet should use: its transfers, with each scheme, and a recommendation.
//!
//! | Step | Where |
//! |---|---|
//! | the fleet's transfers, from a table | [`population`] |
//! | each of them with each scheme | [`measured`] |
//! | the scheme to use, within a budget, and for whom it is worse | [`recommendation`] |
//! | the recommendation in words | [`answer`] |

pub mod answer;
pub mod measured;
pub mod population;
pub mod recommendation;
