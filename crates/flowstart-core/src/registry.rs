//! The macro behind the registries of startup schemes, congestion avoidance and queue disciplines, and what an algorithm
//! says about parameters that it cannot work with.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::RangeInclusive;

/// A parameter that an algorithm cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter as users write it.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

impl ConfigError {
    /// An error in `field`, which is `value` but may only be `allowed`.
    pub fn new(field: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), allowed: allowed.into() }
    }

    /// Refuses a value outside of `range`; NaN is outside of every range.
    pub fn unless_in<T: PartialOrd + fmt::Display>(
        field: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Self> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(Self::new(field, value, format!("{} to {}", range.start(), range.end())))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; allowed is {}", self.field, self.value, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

/// Generates, for one family of algorithms, the configuration enum (serde, tagged by `kind`), its names, its defaults
/// and the state enum with one variant per algorithm and a `Custom` one for algorithms outside this crate.
///
/// Each algorithm's module offers `Config` (serde, `Default`, unknown fields refused, `validate` for the ranges of its
/// parameters), a state type with `new(Config, Context)`, and `SUMMARY` and `REFERENCE` strings for listings.
macro_rules! algorithms {
    // A family whose algorithms have the four phases of startup: each module also offers `PHASES`.
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident: $algorithm:ident;
        context $context:ty;
        with phases;
        $( $variant:ident = $name:literal in $module:ident ),* $(,)?
    ) => {
        algorithms! {
            $(#[$config_doc])* config $config;
            $(#[$state_doc])* state $state: $algorithm;
            context $context;
            $( $variant = $name in $module ),*
        }

        impl $config {
            /// Sensing, Probing, Validation and Continuation, in a line.
            pub fn phases(&self) -> &'static str {
                match self { $(Self::$variant(_) => $module::PHASES),* }
            }
        }
    };
    (
        $(#[$config_doc:meta])* config $config:ident;
        $(#[$state_doc:meta])* state $state:ident: $algorithm:ident;
        context $context:ty;
        $( $variant:ident = $name:literal in $module:ident ),* $(,)?
    ) => {
        $(#[$config_doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $config {
            $(
                #[doc = concat!("`", $name, "`, see [`", stringify!($module), "`].")]
                #[serde(rename = $name)]
                $variant($module::Config),
            )*
        }

        impl $config {
            /// The names of all algorithms of the family, as users write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Every algorithm with its default configuration, in the order of [`Self::NAMES`].
            pub fn defaults() -> alloc::vec::Vec<Self> {
                alloc::vec![$(Self::$variant($module::Config::default())),*]
            }

            /// The name as users write it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name),* }
            }

            /// What the algorithm does, in one line.
            pub fn summary(&self) -> &'static str {
                match self { $(Self::$variant(_) => $module::SUMMARY),* }
            }

            /// The document that defines the algorithm.
            pub fn reference(&self) -> &'static str {
                match self { $(Self::$variant(_) => $module::REFERENCE),* }
            }

            /// Refuses parameters that the algorithm cannot work with. Whoever reads a configuration from outside calls
            /// this; the algorithm itself relies on it.
            pub fn validate(&self) -> Result<(), $crate::registry::ConfigError> {
                match self { $(Self::$variant(config) => config.validate()),* }
            }

            /// The algorithm in its initial state.
            pub fn build(&self, context: $context) -> $state {
                match self {
                    $(Self::$variant(config) => $state::$variant($module::$variant::new(config.clone(), context))),*
                }
            }
        }

        $(#[$state_doc])*
        #[derive(Clone, Debug)]
        pub enum $state {
            $(
                #[doc = concat!("`", $name, "`.")]
                $variant($module::$variant),
            )*
            /// An algorithm that lives outside this crate.
            Custom(alloc::boxed::Box<dyn $algorithm>),
        }

        impl $state {
            /// The algorithm behind its trait.
            #[inline]
            pub fn as_dyn(&mut self) -> &mut dyn $algorithm {
                match self {
                    $(Self::$variant(state) => state,)*
                    Self::Custom(state) => state.as_mut(),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::QueueConfig;
    use crate::avoidance::AvoidanceConfig;
    use crate::startup::StartupConfig;

    #[test]
    fn every_algorithm_accepts_its_own_defaults() {
        StartupConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
        AvoidanceConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
        QueueConfig::defaults().iter().for_each(|config| assert_eq!(config.validate(), Ok(())));
    }

    #[test]
    fn an_error_names_the_field_the_value_and_what_is_allowed() {
        let error = ConfigError::unless_in("beta", 1.5, 0.1..=0.99).unwrap_err();
        assert_eq!(error.to_string(), "beta is 1.5; allowed is 0.1 to 0.99");
        assert!(ConfigError::unless_in("beta", f64::NAN, 0.1..=0.99).is_err());
        assert_eq!(ConfigError::unless_in("beta", 0.1, 0.1..=0.99), Ok(()));
    }
}
