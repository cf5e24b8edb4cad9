//! What users write: specs, quantities, presets.
//!
//! A spec is `name:key=value,key=value`, read by [`Spec`]. What was written is kept beside what it means, so that
//! results can show both. Each file begins with what users write there, an example, and the default of each key.
//!
//! | Looking for | Where |
//! |---|---|
//! | startup schemes, congestion avoidance, queue disciplines | [`algorithm`], [`mod@aqm`] |
//! | links, their Quick-Start routers and the elements that advise rates | [`link`], [`routers`] |
//! | what measured flows carry | [`application`], [`size`], [`web`] |
//! | when they start, and when they move | [`arrival`], [`mobility`] |
//! | who else uses the link | [`competitor`] |
//! | how all flows are transported, in a model or by a real stack | [`transport`] |
//! | the scheme of measured flows, which may be the transport's own | [`measured_scheme`] |

use std::ops::RangeInclusive;

use flowstart_core::spec::Spec;
use flowstart_core::units::Rate;

pub mod algorithm;
pub mod application;
pub mod aqm;
pub mod arrival;
pub mod competitor;
pub mod link;
mod measured;
pub mod mobility;
pub mod routers;
mod scone;
pub mod size;
pub mod transport;
pub mod web;
pub mod workload;

pub use flowstart_core::spec::InputError;

pub(crate) use self::algorithm::host_avoidance;
pub use self::algorithm::{aqm, avoidance, scheme};
pub use self::measured::{STACK, STACK_SUMMARY, measured_scheme};
pub use self::transport::stack;

/// Rates that links and traffic may have.
const RATES: RangeInclusive<Rate> = Rate::from_bits_per_sec(1_000)..=Rate::from_bits_per_sec(10_000_000_000_000);

/// A value together with what the user wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// As written.
    pub text: String,
    /// What it means.
    pub value: T,
}
