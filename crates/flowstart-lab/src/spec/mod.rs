//! User input: specs, quantities, presets.
//!
//! A spec is `name:key=value,key=value`, read by [`Spec`]. The written text is kept beside its meaning, so results can
//! show both. Each file begins with its input, an example, and the default of each key.
//!
//! | Looking for | Where |
//! |---|---|
//! | startup schemes, congestion avoidance, queue disciplines | [`algorithm`], [`mod@aqm`] |
//! | links, their Quick-Start routers and the elements that advise rates | [`link`], [`routers`] |
//! | traffic of measured flows | [`application`], [`http`], [`size`], [`video`], [`web`] |
//! | their starts, and changes of their path | [`arrival`], [`mobility`] |
//! | what users can list of the above | [`form`] |
//! | other users of the link | [`competitor`] |
//! | the transport of all flows, a model or a real stack | [`transport`] |
//! | the scheme of measured flows, which may be the transport's own | [`measured_scheme`] |

use std::ops::RangeInclusive;

use flowstart_core::spec::Spec;
use flowstart_core::units::Rate;

pub mod algorithm;
pub mod application;
pub mod aqm;
pub mod arrival;
pub mod competitor;
pub(crate) mod file;
pub mod form;
pub mod http;
pub mod link;
mod measured;
pub mod mobility;
pub mod routers;
mod scone;
pub mod size;
pub mod transport;
pub mod video;
pub mod web;
pub mod workload;

pub use flowstart_core::spec::InputError;

pub(crate) use self::algorithm::host_avoidance;
pub use self::algorithm::{aqm, avoidance, scheme};
pub use self::measured::{SCHEME_KEYS, STACK, STACK_SUMMARY, measured_scheme};
pub use self::transport::stack;

/// Rates that links and traffic may have.
const RATES: RangeInclusive<Rate> = Rate::from_bits_per_sec(1_000)..=Rate::from_bits_per_sec(10_000_000_000_000);

/// A value together with the user's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The text.
    pub text: String,
    /// Its meaning.
    pub value: T,
}
